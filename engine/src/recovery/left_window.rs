//! Whether a start can go on from the live window that lies there, looked at without a lock and without a change. A
//! start itself opens it in [`super::leftover`]. Called by `touchline doctor`.

use std::{io, path::Path};

use touchline_protocol::{
    log::{
        control::{
            APPENDED_OFFSET, CONTROL_BYTES, CONTROL_FILE, ControlHeader, DURABLE_OFFSET, LogState,
            STATE_OFFSET, WINDOW_BASE_OFFSET, WINDOW_FILE,
        },
        place::{WindowFolders, boot_id},
        segment::LogIdentity,
    },
    regular_file,
    shm::ReadOnlyRegion,
};

use super::{
    RecoveryError,
    leftover::{check_header, check_positions, map_window, named},
};
use crate::inspect::segments_for_reading;
use crate::log::disk::disk_error;

/// Looks at the windows of the log in the data folder `data`, of an engine that has ended or of one that runs, as a
/// start would; `shared_memory` is [`touchline_protocol::log::place::SHARED_MEMORY`] or what stands for it.
///
/// # Errors
/// What a start would be refused for; also if there is no log, or it cannot be read.
pub fn check_window(data: &Path, shared_memory: &Path) -> Result<(), RecoveryError> {
    let identity = segments_for_reading(data)?.identity;
    let folders = WindowFolders::of(data, &identity.log_id, shared_memory)
        .map_err(disk_error("looking at", data))?;
    let boot_id = boot_id().map_err(disk_error("reading the boot id from", Path::new("/proc")))?;
    for folder in folders.to_search().map_err(unusable(&folders.shared_memory))? {
        check_folder(folder, &identity, &boot_id).map_err(unusable(folder))?;
    }
    Ok(())
}

fn unusable(folder: &Path) -> impl FnOnce(io::Error) -> RecoveryError {
    move |source| RecoveryError::of_left_window(folder, source)
}

fn check_folder(folder: &Path, identity: &LogIdentity, boot_id: &[u8; 16]) -> io::Result<()> {
    let page = folder.join(CONTROL_FILE);
    let file = match regular_file::open(&page) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(named(&page))?,
    };
    let header = ControlHeader::read(&file).map_err(named(&page))?;
    let Some(header) = header.filter(|header| !header.is_of_another_boot(boot_id)) else {
        return Ok(());
    };
    check_header(&header, identity)?;
    let control = ReadOnlyRegion::map_file(&file, CONTROL_BYTES)
        .map_err(|error| named(&page)(io::Error::other(error)))?;
    let word = |offset| -> io::Result<u64> {
        Ok(control.u64_at(offset).map_err(io::Error::other)?.view().load_acquire())
    };
    let base = word(WINDOW_BASE_OFFSET)?;
    let (durable, appended) = (word(DURABLE_OFFSET)?, word(APPENDED_OFFSET)?);
    // One that has moved meanwhile is in use, and in order.
    if word(WINDOW_BASE_OFFSET)? == base {
        check_positions(&header, (base, durable, appended))?;
    }
    let state = control.u32_at(STATE_OFFSET).map_err(io::Error::other)?;
    let is_wanted = || LogState::from_word(state.view().load_acquire()) != Some(LogState::Stopped);
    let path = folder.join(WINDOW_FILE);
    let window = match regular_file::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.and_then(|file| map_window(&file, &header).map(drop)),
    };
    // A start stops the old page before it touches the old window.
    if is_wanted() { window.map_err(named(&path)) } else { Ok(()) }
}
