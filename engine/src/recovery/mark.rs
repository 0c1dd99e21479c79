//! What tells, beside a log, that it is or was there: its id in a file of the data folder, and what else goes with
//! a log. Called by recovery; the tools ask whether the id is the log's.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use touchline_protocol::log::{
    lease::{LEASE_FOLDER, each_lease},
    place::{HISTORY_FILE, HISTORY_FOLDER},
    segment::{LogIdentity, log_id_text},
};
use touchline_protocol::regular_file;

use super::RecoveryError;
use crate::log::{segment_folder, storage::Storage};
use crate::notice::alert;
use crate::snapshot::newest_path;

/// The file in a data folder that says which log is, or was, there.
const LOG_ID_FILE: &str = "log-id";

/// The file that says which log is there, and what it says, if that is the id of another one than `log_id`.
pub(crate) fn of_another_log(data: &Path, log_id: &[u8; 16]) -> Option<(PathBuf, String)> {
    let path = data.join(LOG_ID_FILE);
    let told = regular_file::read_to_string(&path).ok()?.trim_end().to_owned();
    // Whatever else stands there tells of no log.
    let is_id = told.len() == 32 && told.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && told != log_id_text(log_id)).then_some((path, told))
}

/// Refuses a log in the place of another one.
pub(super) fn check(data: &Path, identity: &LogIdentity) -> Result<(), RecoveryError> {
    let found = log_id_text(&identity.log_id);
    match of_another_log(data, &identity.log_id) {
        Some((path, told)) => Err(RecoveryError::OtherLog { path, told, found }),
        None => Ok(()),
    }
}

/// Leaves the log's id in the data folder, if there is none, so that no other log is begun there when this one is
/// lost. A disk that is full keeps no log from being opened: the next start tries again.
pub(super) fn leave(data: &Path, identity: &LogIdentity) {
    if !data.join(LOG_ID_FILE).exists() {
        write(data, identity);
    }
}

/// Has the file say this log's id, whatever it said.
pub(super) fn correct(data: &Path, identity: &LogIdentity) {
    let path = data.join(LOG_ID_FILE);
    let id = log_id_text(&identity.log_id);
    let is_other = match regular_file::read_to_string(&path) {
        Ok(told) => told.trim_end() != id,
        Err(error) => error.kind() == ErrorKind::FileTooLarge,
    };
    if is_other {
        alert!("log: {} did not tell of the log that is there, {id}, and does now", path.display());
        write(data, identity);
    }
}

fn write(data: &Path, identity: &LogIdentity) {
    let path = data.join(LOG_ID_FILE);
    let line = format!("{}\n", log_id_text(&identity.log_id));
    if let Err(error) = regular_file::put_whole(&path, 0o644, line.as_bytes()) {
        alert!("log: cannot write {}: {error}", path.display());
    }
}

/// Refuses to begin a log where what goes with one says that there was one: its id, a snapshot, leases of its readers,
/// and what they keep of it.
pub(crate) fn check_no_log_is_lost(
    storage: &dyn Storage,
    data: &Path,
) -> Result<(), RecoveryError> {
    let folder = segment_folder(data);
    if let Some(snapshot) = newest_path(storage, data)? {
        return Err(RecoveryError::SegmentsGone { folder, snapshot });
    }
    let leases = each_lease(data).is_ok_and(|leases| !leases.is_empty());
    let histories = fs::read_dir(data.join(HISTORY_FOLDER)).into_iter().flatten().flatten();
    let mut traces: Vec<PathBuf> = histories
        .map(|entry| entry.path())
        .filter(|instance| instance.join(HISTORY_FILE).exists())
        .collect();
    if leases {
        traces.push(data.join(LEASE_FOLDER));
    }
    let mark = data.join(LOG_ID_FILE);
    if mark.exists() {
        traces.push(mark);
    }
    if traces.is_empty() { Ok(()) } else { Err(RecoveryError::LogGone { folder, traces }) }
}
