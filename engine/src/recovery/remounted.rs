//! The window in shared memory of a data folder that was mounted anew since its engine died, as behind the repair of
//! its disk: the file system may have another device number by then, after which the window's folder is named. Called
//! by recovery, before it looks for windows.

use std::{fs, io, path::Path};

use touchline_protocol::log::{place::WindowFolders, segment::LogIdentity};

use super::{
    RecoveryError,
    leftover::{Leftover, Purpose},
    segments::Segments,
};
use crate::{log::live::origin, notice::alert};

/// Gives the folder of such a window the name by which it is looked for: one of this log, of a data folder with the
/// same path and inode, if it is the only one that goes with the log on disk. Of any other, and of what cannot be
/// judged, nothing is changed: it does not count, as it would not without this.
pub(super) fn find_again(
    folders: &WindowFolders,
    boot_id: &[u8; 16],
    segments: &Segments,
) -> io::Result<()> {
    let own = &folders.shared_memory;
    if !folders.to_search()?.any(|folder| folder == own) || own.exists() {
        return Ok(());
    }
    let Some(data) = folders.data.parent().map(fs::canonicalize).transpose()? else {
        return Ok(());
    };
    let entries = fs::read_dir(&folders.user)?.flatten().map(|entry| entry.path());
    let of_path = entries.filter(|folder| {
        differ_in_device(own, folder) && origin(folder).ok().flatten().as_ref() == Some(&data)
    });
    // Each holds its lock.
    let mut found = of_path.filter_map(|folder| {
        let window = window_of(&folder, (&segments.identity, boot_id), segments)?;
        Some((folder, window))
    });
    let (Some((folder, window)), None) = (found.next(), found.next()) else { return Ok(()) };
    fs::rename(&folder, own)?;
    drop(window);
    alert!(
        "log: the live window in {} is this data folder's, which was mounted anew since; it lies in {} from now on",
        folder.display(),
        own.display()
    );
    Ok(())
}

/// The window in `folder`, if it counts and goes with the log on disk. Of one that does not it is told.
fn window_of(
    folder: &Path,
    (identity, boot_id): (&LogIdentity, &[u8; 16]),
    segments: &Segments,
) -> Option<Leftover> {
    let open = |purpose| {
        let found = Leftover::open(folder, (identity, boot_id), purpose, &mut Vec::new());
        found.map(|found| found.filter(|window| window.counts))
    };
    // First without its lock: of one that was copied there nothing is to be told or done.
    let judged = match open(Purpose::Look) {
        Ok(None) => return None,
        Ok(Some(_)) => open(Purpose::Take),
        unreadable => unreadable,
    };
    let judged = judged.map_err(|source| RecoveryError::of_left_window(folder, source));
    let compared = judged.and_then(|window| {
        window.as_ref().map_or(Ok(()), |window| window.compare(segments)).map(|()| window)
    });
    compared
        .inspect_err(|error| {
            alert!(
                "log: a live window of this log, whose data folder had this path and inode on another device, is not \
                 gone on from, and stays as long as nobody removes it: {error}"
            );
        })
        .ok()
        .flatten()
}

/// Whether two folders are of one log and of one inode, and of two devices.
fn differ_in_device(own: &Path, other: &Path) -> bool {
    let parts = |path: &Path| {
        let mut parts = path.file_name()?.to_str()?.split('-').map(str::to_owned);
        let (log, device, inode) = (parts.next()?, parts.next()?, parts.next()?);
        parts.next().is_none().then_some((log, device, inode))
    };
    let (Some(own), Some(other)) = (parts(own), parts(other)) else { return false };
    (&own.0, &own.2) == (&other.0, &other.2) && own.1 != other.1
}
