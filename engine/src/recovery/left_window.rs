//! Whether a start can go on from the live window that lies there, looked at without a lock and without a change.
//! Called by `touchline doctor`.

use std::{io, path::Path};

use rustix::fs::{Access, access};
use touchline_protocol::log::control::{CONTROL_FILE, WINDOW_FILE};

use super::{
    RecoveryError, chain::Walked, files::last_frames, has_engine, leftover::named, look_at_window,
    other_user, window_places,
};
use crate::inspect::segments_for_reading;

/// Looks at the windows of the log in the data folder `data`, of an engine that has ended or of one that runs, as a
/// start would; `shared_memory` is [`touchline_protocol::log::place::SHARED_MEMORY`] or what stands for it.
///
/// # Errors
/// What a start would be refused for; also if there is no log, or it cannot be read.
pub fn check_window(data: &Path, shared_memory: &Path) -> Result<(), RecoveryError> {
    let segments = segments_for_reading(data)?;
    let identity = segments.identity;
    let found = look_at_window(data, shared_memory, &identity)?;
    if found.as_ref().is_none_or(|window| !window.counts) && !has_engine(data) {
        let (folders, _) = window_places(data, &identity, shared_memory)?;
        if let Err(left) = other_user::check_none(data, &folders)
            && !is_closed(&last_frames(&segments)?)
        {
            return Err(left);
        }
    }
    let Some(left) = found else { return Ok(()) };
    let window = left.counts.then_some(WINDOW_FILE);
    for path in [CONTROL_FILE].into_iter().chain(window).map(|name| left.folder.join(name)) {
        access(&path, Access::WRITE_OK)
            .map_err(|errno| named(&path)(io::Error::from(errno)))
            .map_err(|source| RecoveryError::of_left_window(&left.folder, source))?;
    }
    Ok(())
}

/// True if the log ends as an engine does that ends in order, or has no frame.
const fn is_closed(walked: &Walked) -> bool {
    walked.closed || walked.incarnation == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_write_it_is_told_to_look_at_its_rights_and_not_to_move_it_away() {
        let of_kind = |kind| {
            let source = named(Path::new("/v/live/control"))(io::Error::from(kind));
            RecoveryError::of_left_window(Path::new("/v/live"), source)
        };
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let error = of_kind(kind);
            assert!(matches!(error, RecoveryError::WindowUnwritable { .. }), "{error}");
            assert!(!error.to_string().contains("away"), "{error}");
        }
        let damaged = of_kind(io::ErrorKind::InvalidData);
        assert!(matches!(damaged, RecoveryError::WindowLeft { .. }), "{damaged}");
    }
}
