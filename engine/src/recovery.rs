//! Recovery: from whatever the last engine has left to a log whose end is known and a state that equals
//! it. Called when the log is opened, before anything else of the engine exists.
//!
//! 1. lock the data folder and the folder of the last window;
//! 2. compare what both window and disk have; a difference is refused;
//! 3. bring onto disk what only the window has;
//! 4. replay, find where the log ends, and take out what lies behind the end;
//! 5. write the record of the new incarnation, and
//! 6. only then let the new window be found (both in [`crate::log::open`]).
//!
//! Each step may be repeated after a crash anywhere in it or behind it. What refuses changes nothing
//! but the disk blocks that step 3 completes.

mod chain;
mod leftover;
mod replay;
mod report;
mod segments;
mod tail;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;
use touchline_protocol::{
    log::{
        WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES, is_segment_size,
        place::{WindowFolders, boot_id},
        segment::{LogIdentity, SegmentError},
    },
    units::{Incarnation, Position},
};

use self::{chain::Beyond, leftover::Leftover, replay::Replay};
pub use self::{
    chain::EndReason,
    leftover::Poison,
    replay::{Progress, Replayed},
    report::StartReport,
    tail::Dropped,
};
pub(crate) use self::{
    chain::{Walked, search_beyond, walk},
    replay::same_events,
    report::Findings,
    segments::{Segments, segment_numbers},
};
use crate::log::{
    DiskError, Environment, LogOptions,
    disk::{DiskLog, disk_error},
    lock::FolderLock,
    segment_folder,
    storage::Storage,
};

/// Why the log is not opened.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// An option is out of range.
    #[error("{0}")]
    Options(String),
    /// A disk call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Another engine runs on this data folder.
    #[error(
        "{} is locked{}: another engine runs on this data folder",
        path.display(),
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that wrote itself down there.
        pid: Option<u32>,
    },
    /// The first segment does not say which log this is.
    #[error(
        "{} offset 0: {source}; bring back this file from a copy, or use the build that wrote it",
        path.display()
    )]
    FirstSegment {
        /// The segment.
        path: PathBuf,
        /// What is wrong.
        source: SegmentError,
    },
    /// A segment is missing between others.
    #[error(
        "{} is missing, though {} is there; bring it back from a copy",
        missing.display(),
        next.display()
    )]
    MissingSegment {
        /// The missing one.
        missing: PathBuf,
        /// The one behind it.
        next: PathBuf,
    },
    /// A segment does not have its length.
    #[error(
        "{} has {found} bytes, a segment of this log has {expected}; bring it back from a copy",
        path.display()
    )]
    SegmentLength {
        /// The segment.
        path: PathBuf,
        /// Bytes it has.
        found: u64,
        /// Bytes it must have.
        expected: u64,
    },
    /// The beginning of the log is missing.
    #[error(
        "the log in {} begins at position {position}: bring back the segments before it from a copy",
        folder.display()
    )]
    NotFromBeginning {
        /// The segment folder.
        folder: PathBuf,
        /// Its first position.
        position: u64,
    },
    /// The live window cannot be made or read.
    #[error(
        "live window in {}: {source}; make room, or choose another place or size for it",
        folder.display()
    )]
    Window {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// Window and disk differ where both must hold the same.
    #[error(
        "{} offset {offset} (position {position}) differs from the live window in {}, though the log \
         was durable up to {durable}: the disk has changed bytes; bring back the segment from a copy, \
         or move the window's folder away to go on from the disk alone",
        path.display(), folder.display()
    )]
    WindowDiffers {
        /// The window's folder.
        folder: PathBuf,
        /// The segment.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// First position that differs.
        position: u64,
        /// Durable position of the last engine.
        durable: u64,
    },
    /// The disk log ends before the place up to which the window says it is durable.
    #[error(
        "the disk log ends at position {disk_end}, though the live window in {} says that it is durable \
         up to {durable}; bring back the missing segments, or move the window's folder away to go on \
         from the disk alone",
        folder.display()
    )]
    WindowGap {
        /// The window's folder.
        folder: PathBuf,
        /// End of the last segment.
        disk_end: u64,
        /// Durable position of the last engine.
        durable: u64,
    },
    /// The disk log was continued without the window.
    #[error(
        "the live window in {} ends at position {appended} with incarnation {incarnation}, but the disk \
         log goes on to position {disk_end} with incarnation {disk_incarnation}: it was continued \
         without this window; move the window's folder away to go on from the disk alone",
        folder.display()
    )]
    WindowStale {
        /// The window's folder.
        folder: PathBuf,
        /// Where the window ends.
        appended: u64,
        /// The window's incarnation.
        incarnation: u32,
        /// Where the disk log ends.
        disk_end: u64,
        /// Its last incarnation.
        disk_incarnation: u32,
    },
    /// The log is damaged where it was durable.
    #[error(
        "{} offset {offset} (position {position}): {why}; but the log is known to be good up to \
         position {attested}, so this is damage and not an unfinished write; bring back the segment \
         from a copy, or start with --accept-loss to end the log at position {position} and lose what \
         follows",
        path.display()
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// Position of the first bad frame.
        position: u64,
        /// Position up to which the log was durable at least.
        attested: u64,
        /// What is wrong there.
        why: EndReason,
    },
    /// The log does not replay to itself.
    #[error(
        "{} offset {offset} (position {position}): {why}; this build does not decide as the one that \
         wrote the log: use that one",
        path.display()
    )]
    Replay {
        /// The segment.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// Position of the transaction.
        position: u64,
        /// What is different.
        why: String,
    },
}

/// A log whose end is known, all of it on disk.
pub(crate) struct Recovered {
    pub(crate) identity: LogIdentity,
    pub(crate) segments: Segments,
    pub(crate) disk: DiskLog,
    pub(crate) end: u64,
    pub(crate) incarnation: u32,
    pub(crate) last_time_ns: u64,
    pub(crate) boot_id: [u8; 16],
    pub(crate) folders: WindowFolders,
    pub(crate) lock: FolderLock,
    pub(crate) report: Findings,
}

/// Steps 1 to 4.
pub(crate) fn recover(
    environment: &Environment,
    options: &LogOptions,
    state: &mut impl Replayed,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recovered, RecoveryError> {
    check_options(options)?;
    let data = &options.data;
    let lock = lock_data(data)?;
    let (mut segments, new_log) = open_segments(&environment.storage, options)?;
    let identity = segments.identity;
    let folders = WindowFolders::of(data, &identity.log_id, &environment.shared_memory)
        .map_err(disk_error("looking at", data))?;
    let boot_id = boot_id().map_err(disk_error("reading the boot id from", Path::new("/proc")))?;

    let leftover = Leftover::find(&folders, &identity, &boot_id)?;
    let mut findings = Findings { new_log, ..Findings::default() };
    if let Some(window) = leftover.as_ref().filter(|window| window.counts) {
        window.compare(&segments)?;
        let mut disk = disk_log(&environment.storage, &segments)?;
        findings.from_window = window.flush(&mut disk)?;
        segments.extend(disk.next());
    }

    let mut replay = Replay::new(state, progress, segments.end());
    let walked = walk(&segments, segments.begin()..segments.end(), &mut |transaction| {
        replay.apply(&segments, transaction)
    })?;
    sync_last(&segments, walked.end)?;
    let beyond = search_beyond(&segments, walked.end, walked.incarnation)?;
    findings.loss_accepted_below =
        check_end(&segments, &walked, &beyond, leftover.as_ref(), options.accept_loss)?;

    let window_incarnation = leftover.as_ref().map_or(0, |window| window.header.incarnation);
    let seen = walked.incarnation.max(beyond.incarnation).max(window_incarnation);
    // An ending that was interrupted has named its files after the incarnation that is still to come.
    let incarnation = (seen + 1).max(tail::highest_dropped(&segments)?);
    findings.dropped = tail::cut(&mut segments, walked.end, &beyond, incarnation)?;
    findings.poison = match leftover.as_ref().filter(|window| window.counts) {
        Some(window) => save_poison(data, window)?,
        None => None,
    };
    // Without any frame no engine ever accepted a command.
    findings.window_lost = leftover.is_none() && !walked.closed && walked.incarnation > 0;
    if let Some(window) = leftover {
        window.retire()?;
    }
    findings.describe(&walked, incarnation);
    let disk = disk_log(&environment.storage, &segments)?;
    Ok(Recovered {
        identity,
        segments,
        disk,
        end: walked.end,
        incarnation,
        last_time_ns: walked.time_ns,
        boot_id,
        folders,
        lock,
        report: findings,
    })
}

impl Findings {
    fn describe(&mut self, walked: &Walked, incarnation: u32) {
        self.incarnation = incarnation;
        self.recovered_end = walked.end;
        self.transactions = walked.transactions;
        self.last_time_ns = walked.time_ns;
        self.clean = walked.closed;
        self.end_reason = walked.reason.to_string();
    }
}

fn check_options(options: &LogOptions) -> Result<(), RecoveryError> {
    if !is_segment_size(options.segment_bytes) {
        return Err(RecoveryError::Options(format!(
            "a log segment of {} bytes: it must be a multiple of {WINDOW_SEGMENT_BYTES} up to 1 TiB",
            options.segment_bytes
        )));
    }
    match options.window_bytes {
        Some(bytes) if bytes < WINDOW_BYTES_MIN || !bytes.is_multiple_of(WINDOW_SEGMENT_BYTES) => {
            Err(RecoveryError::Options(format!(
                "a live window of {bytes} bytes: it must be a multiple of {WINDOW_SEGMENT_BYTES} and \
                 at least {WINDOW_BYTES_MIN}"
            )))
        }
        _ => Ok(()),
    }
}

/// Makes the data folder if need be and locks it.
fn lock_data(data: &Path) -> Result<FolderLock, RecoveryError> {
    for folder in [data, &segment_folder(data)] {
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(folder)
            .map_err(disk_error("making", folder))?;
    }
    let path = data.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(disk_error("opening", &path))?;
    let mut holder = String::new();
    // Only to tell the operator: whatever stands there is no reason to refuse.
    let _unreadable = Read::by_ref(&mut file).take(32).read_to_string(&mut holder);
    let write_pid = |mut file: &File| {
        file.set_len(0)?;
        io::Seek::rewind(&mut file)?;
        writeln!(file, "{}", std::process::id())
    };
    let for_pid = file.try_clone().map_err(disk_error("opening", &path))?;
    let taken = FolderLock::take(file).map_err(disk_error("locking", &path))?;
    let lock = taken.ok_or_else(|| RecoveryError::Locked {
        path: path.clone(),
        pid: holder.trim().parse().ok(),
    })?;
    write_pid(&for_pid).map_err(disk_error("writing", &path))?;
    Ok(lock)
}

/// The segments that are there; without any, the first one of a new log is made.
fn open_segments(
    storage: &Arc<dyn Storage>,
    options: &LogOptions,
) -> Result<(Segments, bool), RecoveryError> {
    let folder = segment_folder(&options.data);
    segments::remove_unfinished(storage.as_ref(), &folder)?;
    // An engine that died may have given names that are not durable yet, and this one builds on them.
    storage.sync_folder(&folder).map_err(disk_error("syncing", &folder))?;
    let mut numbers = segment_numbers(storage.as_ref(), &folder)?;
    let new_log = numbers.is_empty();
    if new_log {
        sync_ancestors(storage.as_ref(), &folder)?;
        let identity = new_identity(options.segment_bytes)?;
        let mut disk = DiskLog::new(Arc::clone(storage), folder.clone(), identity, 0)?;
        disk.create_first()?;
        numbers.push(0);
    }
    let segments = Segments::open(Arc::clone(storage), folder.clone(), &numbers)?;
    if segments.first != 0 {
        return Err(RecoveryError::NotFromBeginning { folder, position: segments.begin() });
    }
    Ok((segments, new_log))
}

/// Makes the names of the segment folder and of all folders above it in its file system durable: whoever
/// made them may have done so just now.
fn sync_ancestors(storage: &dyn Storage, folder: &Path) -> Result<(), DiskError> {
    let folder = fs::canonicalize(folder).map_err(disk_error("looking at", folder))?;
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
    let own = device(&folder).map_err(disk_error("looking at", &folder))?;
    for ancestor in folder.ancestors().skip(1) {
        if device(ancestor).map_err(disk_error("looking at", ancestor))? != own {
            break;
        }
        match storage.sync_folder(ancestor) {
            // What this user may not even look into, this user has not made.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced.map_err(disk_error("syncing", ancestor))?,
        }
    }
    Ok(())
}

fn new_identity(segment_bytes: u64) -> Result<LogIdentity, DiskError> {
    let mut log_id = [0; 16];
    let mut salt = [0; 4];
    getrandom::fill(&mut log_id)
        .and_then(|()| getrandom::fill(&mut salt))
        .map_err(io::Error::other)
        .map_err(disk_error("drawing the id of", Path::new("a new log")))?;
    Ok(LogIdentity { log_id, salt: u32::from_le_bytes(salt), segment_bytes })
}

fn disk_log(storage: &Arc<dyn Storage>, segments: &Segments) -> Result<DiskLog, DiskError> {
    DiskLog::new(Arc::clone(storage), segments.folder.clone(), segments.identity, segments.next)
}

/// Makes the segment durable in which the log ends. Where there are no direct writes, the last write of
/// an engine that died may have been read from the page cache without being on the disk.
fn sync_last(segments: &Segments, end: u64) -> Result<(), DiskError> {
    let Some(last) = end.checked_sub(1) else { return Ok(()) };
    let number = last / segments.identity.segment_bytes;
    let path = segments.path(number);
    segments.file(number)?.sync().map_err(disk_error("syncing", &path))
}

/// Whether the log may end where its good frames end. Below what anybody vouches for it may not: that
/// is damage. At or above it is the tail of the last writes, of which any part may be missing. Gives
/// the position vouched for if the loss was accepted.
fn check_end(
    segments: &Segments,
    walked: &Walked,
    beyond: &Beyond,
    leftover: Option<&Leftover>,
    accept_loss: bool,
) -> Result<Option<u64>, RecoveryError> {
    let appended = leftover.map_or(0, |window| window.appended);
    let attested = walked.attested.max(beyond.attested).max(appended);
    if walked.end >= attested {
        return Ok(None);
    }
    if accept_loss {
        return Ok(Some(attested));
    }
    let (path, offset) = segments.place(walked.end);
    Err(RecoveryError::Damaged { path, offset, position: walked.end, attested, why: walked.reason })
}

/// Keeps the command that the last engine died of, if it did.
fn save_poison(data: &Path, window: &Leftover) -> Result<Option<Poison>, RecoveryError> {
    let Some((position, command)) = window.poison() else { return Ok(None) };
    let folder = data.join("poison");
    let incarnation = window.header.incarnation;
    let path = folder.join(format!("{incarnation}-{position}.bin"));
    let save = || {
        fs::create_dir_all(&folder)?;
        let mut file = File::create(&path)?;
        file.write_all(&command)?;
        file.sync_all()?;
        File::open(&folder)?.sync_all()?;
        File::open(data)?.sync_all()
    };
    save().map_err(disk_error("keeping the last command in", &path))?;
    Ok(Some(Poison {
        incarnation: Incarnation(incarnation),
        position: Position(position),
        path,
        command,
    }))
}
