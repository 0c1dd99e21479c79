//! Why a log is not opened: what was found where, and what the operator may do. Given by every step of
//! recovery.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;
use touchline_protocol::log::{
    control::{CONTROL_FILE, ControlHeader, MAGIC},
    segment::SegmentError,
};
use touchline_protocol::regular_file;

use super::{chain::EndReason, replay::ReplayFault};
use crate::log::{DiskError, lock::WindowIsLocked};

/// Why the log is not opened.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// An option is out of range.
    #[error("{0}")]
    Options(String),
    /// A disk call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Something of this log tells of the highest incarnation that there is.
    #[error(
        "the log, a snapshot or a lease of it, or a file kept of them, is of the highest incarnation there is: no other one can begin"
    )]
    IncarnationsUsedUp,
    /// Another engine runs on this data folder.
    #[error(
        "{} is locked{}: another engine runs on this data folder",
        path.display(),
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    Locked {
        /// The lock file, or the folder of segments where somebody has removed that.
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
        "{} is missing, though {} is there; bring it back from a copy, or move {} and all behind it away to lose \
         what they hold, and start with --accept-loss where that is asked for then",
        missing.display(),
        next.display(),
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
        "{} has {found} bytes, a segment of this log has {expected}; bring it back from a copy, or give it that length \
         with zeros behind what it has (`truncate -s {expected}`), or move it and all behind it away to lose what \
         they hold, and start with --accept-loss where that is asked for then",
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
    /// The beginning of the log is missing, and no snapshot stands for it.
    #[error(
        "the log in {} begins at position {position}, and no snapshot stands for what was before \
         it{why}; bring back a snapshot, or the segments before it, from a copy",
        folder.display()
    )]
    NotFromBeginning {
        /// The segment folder.
        folder: PathBuf,
        /// Its first position.
        position: u64,
        /// Why the snapshots that are there do not.
        why: String,
    },
    /// There is no log.
    #[error("{} holds no log segments", folder.display())]
    NoSegments {
        /// The segment folder.
        folder: PathBuf,
    },
    /// The log is gone.
    #[error(
        "there is no segment in {}, though {} is there; bring the segments back from a copy",
        folder.display(), snapshot.display()
    )]
    SegmentsGone {
        /// The segment folder.
        folder: PathBuf,
        /// The newest snapshot.
        snapshot: PathBuf,
    },
    /// The log is gone, and what goes with one is here.
    #[error(
        "there is no segment in {}, though there is what goes with a log that was there: {}; bring the segments \
         back from a copy, or move that away too for a new venue, which has nothing of the old one",
        folder.display(), listed(traces)
    )]
    LogGone {
        /// The segment folder.
        folder: PathBuf,
        /// What is of the log that was there.
        traces: Vec<PathBuf>,
    },
    /// The log ends before a snapshot of it.
    #[error(
        "{} offset {offset} (position {position}): {why}; but {} holds the state at position \
         {attested}, so the log was good up to there, and this is damage and not an unfinished write; \
         bring back the segment from a copy, or start with --accept-loss to end the log at position \
         {position} and lose what follows, the snapshot included",
        path.display(), snapshot.display()
    )]
    BehindSnapshot {
        /// The segment.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// Where the log ends.
        position: u64,
        /// The snapshot.
        snapshot: PathBuf,
        /// Its position.
        attested: u64,
        /// What is wrong where the log ends.
        why: EndReason,
    },
    /// The log ends before the last transaction of one of its readers.
    #[error(
        "{} offset {offset} (position {position}): {why}; but by {} a reader of this log had a transaction up to \
         position {attested} at least, and names none before it is durable, so this is damage and not an unfinished \
         write; bring back the segments from a copy, or start with --accept-loss to end the log at position \
         {position} and lose what follows",
        path.display(), lease.display()
    )]
    BehindLease {
        /// The segment.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// Where the log ends.
        position: u64,
        /// The reader's lease.
        lease: PathBuf,
        /// The least position behind the transaction that it names.
        attested: u64,
        /// What is wrong where the log ends.
        why: EndReason,
    },
    /// The new live window cannot be made.
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
    /// The live window that the last engine has left is there, and nobody can go on from it.
    #[error(
        "the live window that the last engine left in {}: {source}; let it be read as it was left, or move that \
         folder away to go on from the disk alone: what was only appended, and is not on disk, is lost then",
        folder.display()
    )]
    WindowLeft {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The live window that the last engine has left is there, and this process may not write it.
    #[error(
        "the live window that the last engine left in {}: {source}; a start must be able to write it: mind who owns \
         its files, their modes and attributes, and how that folder is mounted",
        folder.display()
    )]
    WindowUnwritable {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// Somebody else has locked a live window's folder and does not let go of it, though not the data folder.
    #[error(
        "the live window's folder {} is locked by another process{}: an engine still runs on this data folder, whose \
         file `lock` was removed or replaced since, or is about to end; look which process it is (`fuser -v` with \
         the folder's name tells), and let it end first",
        folder.display(),
        pid.map(|pid| format!(" (the engine that wrote the window was {pid})")).unwrap_or_default()
    )]
    WindowLocked {
        /// Its folder.
        folder: PathBuf,
        /// The process that the window's control page names, as that saw itself.
        pid: Option<u32>,
    },
    /// The live window that the last engine has left is another user's.
    #[error(
        "the last engine ran as user {user}, did not end in order, and has left its live window in {}: what it \
         acknowledged may be there alone; start as that user, or move that folder away to go on from the disk alone: \
         what was only appended, and is not on disk, is lost then",
        folder.display()
    )]
    WindowOfOther {
        /// Its folder.
        folder: PathBuf,
        /// The number of that user.
        user: u32,
    },
    /// The live window that the last engine has left may be where this user must not look.
    #[error(
        "the last engine ran as user {user}, did not end in order, and may have left its live window in {}, where this \
         user cannot look: what it acknowledged may be there alone; start as that user, or, if that folder is not \
         there or what is not on disk may be lost, remove {} to go on from the disk alone",
        folder.display(), listed(told_by)
    )]
    WindowUnseen {
        /// Its folder.
        folder: PathBuf,
        /// The number of that user.
        user: u32,
        /// The files of the data folder that tell who ran it.
        told_by: Vec<PathBuf>,
    },
    /// Window and disk differ where both must hold the same.
    #[error(
        "{} offset {offset} (position {position}) differs from the live window in {}, though the log \
         was durable up to {durable}: the disk has changed bytes, or this is a copy that was made while an engine ran, \
         from which `live` is to be left out; bring back the segment from a copy, or move the window's folder away to \
         go on from the disk alone",
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
         from the disk alone: what is not on disk is lost then, though it was acknowledged as durable",
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
    /// A segment is of another place, log or format.
    #[error(
        "{} offset 0: {source}; no write that was broken off leaves that: this file does not belong there, or \
         another build wrote it; bring back the right one from a copy, or start with --accept-loss to end the \
         log at position {position} and lose what follows",
        path.display()
    )]
    Misplaced {
        /// The segment.
        path: PathBuf,
        /// Where the log's good frames end, at that segment or before it.
        position: u64,
        /// What is wrong with its header.
        source: SegmentError,
    },
    /// The data folder is marked as another log's.
    #[error(
        "the log that is there is {found}, but {} tells of {told}: is this the right disk? bring back the \
         segments of that log; or, to go on with the one that is there, remove that file",
        path.display()
    )]
    OtherLog {
        /// The file that tells which log is there.
        path: PathBuf,
        /// The id in it, hexadecimal.
        told: String,
        /// The id of the log that is there, by its first segment.
        found: String,
    },
    /// The log does not replay to itself.
    #[error(
        "{} offset {offset} (position {position}): {why}{}",
        path.display(),
        why.judgement()
    )]
    Replay {
        /// The segment.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// Position of the transaction.
        position: u64,
        /// What is different.
        why: ReplayFault,
    },
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl RecoveryError {
    /// What keeps a start from the window that the last engine has left in `folder`.
    pub(crate) fn of_left_window(folder: &Path, source: io::Error) -> Self {
        if let Some(locked) = Self::locked_window(folder, &source) {
            return locked;
        }
        let folder = folder.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::WindowUnwritable { folder, source }
            }
            _ => Self::WindowLeft { folder, source },
        }
    }

    /// What keeps a start from making its window in `folder`.
    pub(crate) fn of_new_window(folder: &Path, source: io::Error) -> Self {
        Self::locked_window(folder, &source)
            .unwrap_or_else(|| Self::Window { folder: folder.to_owned(), source })
    }

    fn locked_window(folder: &Path, source: &io::Error) -> Option<Self> {
        if !source.get_ref().is_some_and(|error| error.is::<WindowIsLocked>()) {
            return None;
        }
        let page = regular_file::open(&folder.join(CONTROL_FILE));
        let header = page.ok().and_then(|page| ControlHeader::read(&page).ok().flatten());
        let pid = header.filter(|header| header.magic == MAGIC).map(|header| header.pid);
        Some(Self::WindowLocked { folder: folder.to_owned(), pid })
    }

    /// True if the window that the last engine has left is of another past than the disk.
    #[must_use]
    pub const fn is_of_window(&self) -> bool {
        matches!(
            self,
            Self::WindowDiffers { .. } | Self::WindowGap { .. } | Self::WindowStale { .. }
        )
    }

    /// True if a file that was there a moment ago is gone.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Disk(error) if error.source.kind() == io::ErrorKind::NotFound)
    }
}
