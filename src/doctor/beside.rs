//! What lies beside the log in a data folder, as a start takes it: the venue's keys, the live window, and what must be
//! a file or a folder there, or written; and whether the log of an engine that runs has failed. Called by [`super`].

use super::{Finding, no_folder};
use crate::histories::missing_history;
use crate::log::LOG_FAILED;
use anyhow::{Context, Result, ensure};
use rustix::fs::{Access, access};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use touchline_adapter::any_had_history;
use touchline_adapter::auth::keys::{FILE_NAME, KeyRing};
use touchline_adapter::limits::key_addresses::{KEY_ADDRESSES_FILE, KeyAddresses, read_text};
use touchline_engine::recovery::{RecoveryError, check_files, check_window};
use touchline_engine::{check_master_key, has_engine, has_log};
use touchline_protocol::causes::with_causes;
use touchline_protocol::client::SOCKET_NAME;
use touchline_protocol::log::control::LogState;
use touchline_protocol::log::lease::LEASE_FOLDER;
use touchline_protocol::log::place::{HISTORY_FILE, HISTORY_FOLDER, LIVE_FOLDER, SHARED_MEMORY};
use touchline_protocol::log::reader::{Follow, LogReader};

/// What an engine locks while it runs.
const LOCK_FILE: &str = "lock";

/// What this is about, in findings.
const NAME: &str = "files";

/// What an engine, or the adapter of this name, would not start with. Nothing is told of a folder that is yet to
/// be made.
pub(super) fn look(data: &Path, instance: &str) -> Vec<Finding> {
    if !data.is_dir() {
        return Vec::new();
    }
    let looked_at = [
        master_key(data),
        token_keys(data),
        key_addresses(data),
        written(data),
        window(data),
        log_files(data),
    ];
    let told =
        looked_at.into_iter().filter_map(Result::err).map(|error| with_causes(error.as_ref()));
    let wrong = told.chain(of_another_kind(data, instance));
    let wrong = wrong.map(|found| Finding::wrong(NAME, found, ""));
    let beside = [failed_log(data), history(data, instance), tokens(data)];
    let mut found: Vec<_> = wrong.chain(beside.into_iter().flatten()).collect();
    if found.is_empty() {
        found.push(Finding::good(NAME, "what lies beside the log is as a start takes it"));
    }
    found
}

/// Whether there is a file, which can be read without waiting for anybody.
fn is_file(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
        Ok(found) => {
            ensure!(found.is_file(), "{} is there and is no file", path.display());
            Ok(true)
        }
    }
}

/// A new venue makes its own.
fn master_key(data: &Path) -> Result<()> {
    let path = data.join("master.key");
    // Where the log cannot be looked for is told of the definition.
    if is_file(&path)? || has_log(data).unwrap_or(false) {
        check_master_key(data)?;
    }
    Ok(())
}

/// The folder, and the file that an engine writes first: each must be this user's to write, and on a file system that
/// takes it.
fn written(data: &Path) -> Result<()> {
    let lock = data.join(LOCK_FILE);
    // What is written to the lock file is for people: a device will do.
    let is_device = fs::metadata(&lock).is_ok_and(|found| found.file_type().is_char_device());
    let lock = (is_device || is_file(&lock)?).then_some(&*lock);
    for path in [data].into_iter().chain(lock) {
        access(path, Access::WRITE_OK)
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

/// The one that the last engine has left, or writes. Of a log that cannot be read is told of the definition.
fn window(data: &Path) -> Result<()> {
    match check_window(data, Path::new(SHARED_MEMORY)) {
        Err(
            error @ (RecoveryError::WindowLeft { .. }
            | RecoveryError::WindowUnwritable { .. }
            | RecoveryError::WindowOfOther { .. }
            | RecoveryError::WindowUnseen { .. }),
        ) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether it is the log that the folder tells of, and goes as far as what was made of it. Of one that cannot be read is
/// told of the definition.
fn log_files(data: &Path) -> Result<()> {
    match check_files(data, Path::new(SHARED_MEMORY)) {
        Err(
            error @ (RecoveryError::OtherLog { .. }
            | RecoveryError::BehindSnapshot { .. }
            | RecoveryError::BehindLease { .. }
            | RecoveryError::Damaged { .. }
            | RecoveryError::Misplaced { .. }),
        ) => Err(error.into()),
        _ => Ok(()),
    }
}

/// That of an engine that runs, once its disk has refused a write. Whoever tries the disk later may find it to be good:
/// the engine does not try again.
fn failed_log(data: &Path) -> Option<Finding> {
    // Of a log that cannot be read is told of the definition.
    let reader = LogReader::open(data, Follow::Durable).ok()?;
    // What an engine has left behind says nothing of the next one.
    let has_failed = reader.state() == Some(LogState::LogFailed) && has_engine(data);
    let advice = "once the disk takes writes again and has room, end the engine and start it: what was appended is \
                  brought to disk from the live window";
    has_failed.then(|| Finding::wrong("log", LOG_FAILED, advice))
}

/// That of the adapter, where there is no log any more to make it of.
fn history(data: &Path, instance: &str) -> Option<Finding> {
    // Of a log that cannot be read is told of the definition.
    let why = missing_history(data, instance).ok().flatten()?;
    let advice = "bring the history's folder, or the segments that were pruned, back from a copy";
    Some(Finding::wrong(NAME, why, advice))
}

/// Those that the jobs service has given, which a start without its keys believes no more. Whether there are any is not
/// known without reading the log: a history tells that an adapter has served it.
fn tokens(data: &Path) -> Option<Finding> {
    let path = data.join(FILE_NAME);
    let is_gone =
        matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
    let reader = is_gone.then(|| LogReader::open(data, Follow::Durable).ok()).flatten()?;
    let found = format!(
        "{} is not there: the next start of an adapter makes it anew, and tokens of the jobs service that were given \
         before are not believed any more",
        path.display()
    );
    let advice = "bring it back from a copy, if any user has a token";
    any_had_history(data, reader.log_id()).then(|| Finding::could(NAME, found, advice))
}

/// The adapter makes them where there are none.
fn token_keys(data: &Path) -> Result<()> {
    let path = data.join(FILE_NAME);
    if is_file(&path)? {
        KeyRing::open(path)?;
    }
    Ok(())
}

fn key_addresses(data: &Path) -> Result<()> {
    let path = data.join(KEY_ADDRESSES_FILE);
    if !is_file(&path)? {
        return Ok(());
    }
    let shown = || path.display().to_string();
    let text = read_text(&path).with_context(shown)?.unwrap_or_default();
    KeyAddresses::from_text(&text).with_context(shown)?;
    Ok(())
}

/// What is none under the names of files, and of folders. Of those of the log and of snapshots is told where
/// they are listed.
fn of_another_kind(data: &Path, instance: &str) -> Vec<String> {
    let history = format!("{HISTORY_FOLDER}/{instance}");
    // Nobody reads what an adapter locks: a device will do.
    let lock = data.join(format!("adapter-{instance}.lock"));
    let is_device = fs::metadata(&lock).is_ok_and(|found| found.file_type().is_char_device());
    let of_history = ["lock", HISTORY_FILE, "lock.mdb"].map(|name| format!("{history}/{name}"));
    let read = [format!("bans-{instance}")].into_iter().chain(of_history);
    let read = read.map(|name| data.join(name));
    let files = (!is_device).then_some(lock).into_iter().chain(read);
    let no_files = files.filter_map(|path| match fs::metadata(&path) {
        Ok(found) if !found.is_file() => {
            Some(format!("{} is there and is no file", path.display()))
        }
        _ => None,
    });
    let socket = data.join(SOCKET_NAME);
    let folder = socket.is_dir().then(|| format!("{} is there and is a folder", socket.display()));
    let folders = [LIVE_FOLDER, LEASE_FOLDER, HISTORY_FOLDER, &history].map(|name| data.join(name));
    // A link that leads nowhere has the name, too.
    let no_folders =
        folders.into_iter().filter(|path| path.symlink_metadata().is_ok() && !path.is_dir());
    let no_folders = no_folders.map(|path| no_folder(&path));
    no_files.chain(folder).chain(no_folders).collect()
}
