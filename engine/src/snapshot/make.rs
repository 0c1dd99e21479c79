//! Making a snapshot: the newest one there is, the log behind it replayed up to what is durable, and the
//! state written to a file that gets its name when it is whole. Called by `touchline log snapshot`, which
//! an operator runs, or the engine's keeper in a child process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{getpid, nice};
use rustix::thread::{CpuSet, sched_setaffinity};
use thiserror::Error;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use touchline_core::Core;
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::segment_path;
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::message::command::EngineStarted;
use touchline_protocol::message::decode::Command;
use touchline_protocol::regular_file;
use touchline_protocol::snapshot::{HEADER_BYTES, SnapshotHeader, snapshot_path};
use touchline_protocol::units::Position;

use super::file::{BlockWriter, SnapshotFault};
use super::folder::{Restored, check_in_log, positions, restore_newest, snapshot_folder};
use super::paced::{Paced, SYNC_BYTES};
use crate::inspect::{
    Replica, Verdict, check_window, inspect_end, segments_for_reading, table_seed,
};
use crate::log::disk::{DiskError, disk_error};
use crate::log::lock::FolderLock;
use crate::log::storage::FileStorage;
use crate::recovery::{EndReason, RecoveryError, ReplayFault, Segments};

/// Nice value of a process that makes snapshots beside an engine: the lowest priority.
const LOWEST_PRIORITY: i32 = 19;

/// Of processes, the first to go when memory runs out.
const OOM_SCORE_MAX: &str = "1000";

/// Why no snapshot was made.
#[derive(Debug, Error)]
pub enum MakeError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] RecoveryError),
    /// The log cannot be followed.
    #[error(transparent)]
    Reader(#[from] ReadError),
    /// The log is damaged.
    #[error(
        "{} offset {offset} (position {position}): {why}; but the log is known to be good up to position \
         {attested}: no snapshot is made of a damaged log",
        path.display()
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// Position of the first bad frame.
        position: Position,
        /// Position up to which the log was durable at least.
        attested: Position,
        /// What is wrong there.
        why: EndReason,
    },
    /// What was read is not on disk: another log, or another copy of it, has come in its place.
    #[error(
        "the log was read up to position {position}, and on disk it is another one: {why}; no snapshot is made of \
         what is not there"
    )]
    NotOnDisk {
        /// How far it was read.
        position: Position,
        /// What is wrong on disk.
        why: SnapshotFault,
    },
    /// The snapshot cannot be written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Another process makes one, or removes segments.
    #[error("{} is locked: another process makes a snapshot or removes segments", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The beginning of the log is gone, and no snapshot stands for it.
    #[error(
        "the log begins at position {begin}, and no snapshot stands for what was before it{why}"
    )]
    NoBeginning {
        /// Its first position.
        begin: u64,
        /// Why those that are there do not.
        why: String,
    },
    /// The log holds no whole definition of a venue.
    #[error("no engine has started on this log yet: there is nothing to go on from")]
    NoVenue,
    /// This build does not decide as the one that wrote the log.
    #[error("at position {position}: {why}{}", why.judgement())]
    Replay {
        /// Where the transaction begins.
        position: Position,
        /// What is different.
        why: ReplayFault,
    },
}

/// How a snapshot is made.
#[derive(Clone, Debug)]
pub struct MakeOptions {
    /// The data folder.
    pub data: PathBuf,
    /// So many snapshots are kept, this one included and any that cannot be used not counted; at least
    /// one.
    pub kept: usize,
}

/// A snapshot that was made.
#[derive(Debug)]
pub struct Made {
    /// Its file; that of the newest snapshot if the log had nothing behind that.
    pub path: PathBuf,
    /// Behind the last transaction that it holds.
    pub position: Position,
    /// Transactions that it holds.
    pub transactions: u64,
    /// Transactions that were replayed for it; 0: none was made, since there was one already.
    pub replayed: u64,
    /// The snapshot that it was made from.
    pub previous: Option<Position>,
    /// Bytes of its file.
    pub bytes: u64,
    /// The state hash.
    pub state_hash: u64,
    /// Snapshots that were there and could not be used: their files, and why.
    pub skipped: Vec<(PathBuf, SnapshotFault)>,
    /// Older snapshots that were removed.
    pub removed: Vec<PathBuf>,
}

/// Makes a snapshot of what of the log in a data folder is durable, beside a running engine or without
/// one. `progress` is told how far the replay is.
///
/// # Errors
/// See [`MakeError`]. What was there before still is.
pub fn make(options: &MakeOptions, progress: &mut dyn FnMut(Position)) -> Result<Made, MakeError> {
    let data = &options.data;
    let _lock = lock(data)?;
    let segments = segments_for_reading(data)?;
    let mut found = None;
    let restored = restore_newest(&segments, data, &mut |content| {
        let (core, state_hash) = Core::read_snapshot(&mut |into| content.fill(into), table_seed())
            .map_err(|error| error.to_string())?;
        content.finish(state_hash)?;
        found = Some(core);
        Ok(())
    })?;
    let mut replica = match (found, &restored.header) {
        (Some(core), Some(header)) => {
            Replica::at(core, Position(header.position), header.transactions)
        }
        _ if segments.begin() == 0 => Replica::new(),
        _ => {
            let (begin, why) = (segments.begin(), restored.reasons());
            return Err(MakeError::NoBeginning { begin, why });
        }
    };
    let (last, replayed) = follow(data, &restored, &mut replica, progress)?;
    let Restored { header: previous, skipped, .. } = restored;
    let Some((last, last_time_ns)) = last else {
        let header = previous.ok_or(MakeError::NoVenue)?;
        return already_there(data, &header, skipped, options.kept);
    };
    sync_behind(&segments, replica.position())?;
    let header = SnapshotHeader {
        position: replica.position().0,
        last_position: last.position.0,
        last_incarnation: last.incarnation.0,
        last_crc: last.crc,
        last_time_ns,
        previous: previous.map_or(0, |header| header.position),
        transactions: replica.transactions(),
        ..Default::default()
    };
    // What was read may have come out of a live window: a snapshot stands for what is on disk, as that is now.
    check_in_log(&segments_for_reading(data)?, &header)
        .map_err(|why| MakeError::NotOnDisk { position: replica.position(), why })?;
    let (path, bytes, state_hash) = publish(data, &segments, header, replica.core())?;
    let removed = remove_old(data, replica.position(), &skipped, options.kept)?;
    Ok(Made {
        path,
        position: replica.position(),
        transactions: replica.transactions(),
        replayed,
        previous: previous.map(|header| Position(header.position)),
        bytes,
        state_hash,
        skipped,
        removed,
    })
}

/// Takes the lock of who changes the folder of snapshots, or the segments that they stand for.
pub(super) fn lock(data: &Path) -> Result<FolderLock, MakeError> {
    // A mistyped folder is told by the log that is missing, not given a new folder of snapshots.
    segments_for_reading(data)?;
    let folder = snapshot_folder(data);
    touchline_protocol::folder::make(&folder).map_err(disk_error("making", &folder))?;
    sync_folder(data)?;
    let path = folder.join("lock");
    let mut how = OpenOptions::new();
    how.write(true).create(true).truncate(false).mode(0o600);
    let file = regular_file::open_as(&how, &path).map_err(disk_error("opening", &path))?;
    let taken = FolderLock::take(file).map_err(disk_error("locking", &path))?;
    taken.ok_or(MakeError::Locked { path })
}

type Last = Option<(Bookmark, u64)>;

/// Replays what is durable behind the restored state; gives the last transaction of it with its time,
/// if there was any, and how many there were.
fn follow(
    data: &Path,
    restored: &Restored,
    replica: &mut Replica,
    progress: &mut dyn FnMut(Position),
) -> Result<(Last, u64), MakeError> {
    let mut reader = LogReader::open(data, Follow::Durable)?;
    check_window(data, &reader)?;
    let begin = reader.position();
    let mut has_venue = false;
    if let Some(header) = &restored.header {
        has_venue = true;
        if !reader.resume(&header.last())? {
            check_end(data, Position(header.last_position))?;
            return Err(ReadError::HistoryLost { position: header.last_position }.into());
        }
    }
    // Under load the log grows as fast as it is followed: the end is what is durable now.
    let end = reader.incarnation().map(|_| reader.watermark());
    let (mut last, mut replayed) = (None, 0);
    while end.is_none_or(|end| reader.position() < end)
        && let Some(transaction) = reader.next()?
    {
        has_venue |=
            matches!(transaction.command(), Ok(Command::EngineStarted(EngineStarted { .. })));
        let position = transaction.position();
        replica.apply(&transaction).map_err(|why| MakeError::Replay { position, why })?;
        last = Some((transaction.bookmark(), transaction.time_ns()));
        replayed += 1;
        progress(transaction.end());
    }
    if end.is_none() {
        // Without an engine damage looks like the log's end, which the next start would take from the snapshot.
        let stood = restored.header.as_ref().map(|header| Position(header.last_position));
        let read_last = last.as_ref().map(|(last, _)| last.position);
        check_end(data, read_last.or(stood).unwrap_or(begin))?;
    }
    if !has_venue {
        return Err(MakeError::NoVenue);
    }
    Ok((last, replayed))
}

/// Checks that the log may end where its frames from `begin` on do.
fn check_end(data: &Path, begin: Position) -> Result<(), MakeError> {
    match inspect_end(data, begin)? {
        Verdict::Damaged { path, offset, position, attested, why, .. } => {
            Err(MakeError::Damaged { path, offset, position, attested, why })
        }
        Verdict::Misplaced { path, position, why } => {
            Err(RecoveryError::Misplaced { path, position: position.0, source: why }.into())
        }
        // Of the window is judged where the log is opened.
        Verdict::Sound | Verdict::UnfinishedTail { .. } | Verdict::OtherWindow { .. } => Ok(()),
    }
}

fn already_there(
    data: &Path,
    header: &SnapshotHeader,
    skipped: Vec<(PathBuf, SnapshotFault)>,
    kept: usize,
) -> Result<Made, MakeError> {
    let path = snapshot_path(&snapshot_folder(data), header.position);
    let bytes = fs::metadata(&path).map_err(disk_error("looking at", &path))?.len();
    let removed = remove_old(data, Position(header.position), &skipped, kept)?;
    Ok(Made {
        path,
        position: Position(header.position),
        transactions: header.transactions,
        replayed: 0,
        previous: None,
        bytes,
        state_hash: header.state_hash,
        skipped,
        removed,
    })
}

/// Makes the segment durable in which the followed part of the log ends. Without an engine its last
/// bytes may be in the page cache only, and a snapshot vouches for them.
fn sync_behind(segments: &Segments, position: Position) -> Result<(), DiskError> {
    let number = position.0.saturating_sub(1) / segments.identity.segment_bytes;
    let path = segment_path(&segments.folder, number);
    let sync = || File::open(&path)?.sync_all();
    sync().map_err(disk_error("syncing", &path))
}

fn sync_folder(folder: &Path) -> Result<(), DiskError> {
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(disk_error("syncing", folder))
}

/// Writes a state to the file of its position; gives that, its bytes, and the state hash.
fn publish(
    data: &Path,
    segments: &Segments,
    header: SnapshotHeader,
    core: &Core,
) -> Result<(PathBuf, u64, u64), DiskError> {
    let folder = snapshot_folder(data);
    remove_unfinished(&folder)?;
    let path = snapshot_path(&folder, header.position);
    let unfinished = path.with_extension("snap.new");
    let written = write(&unfinished, segments, header, core);
    let (bytes, state_hash) = written.map_err(|error| {
        // A full disk is not kept full by half a snapshot.
        let _left = fs::remove_file(&unfinished);
        disk_error("writing", &unfinished)(error)
    })?;
    fs::rename(&unfinished, &path).map_err(disk_error("naming", &path))?;
    sync_folder(&folder)?;
    Ok((path, bytes, state_hash))
}

fn write(
    path: &Path,
    segments: &Segments,
    header: SnapshotHeader,
    core: &Core,
) -> io::Result<(u64, u64)> {
    let mut how = OpenOptions::new();
    how.write(true).create(true).truncate(true).mode(0o600);
    let file = regular_file::open_as(&how, path)?;
    let to = Paced::new(&file, segments.identity.segment_bytes)?;
    let mut to = BufWriter::with_capacity(SYNC_BYTES / 4, to);
    to.write_all(&[0; HEADER_BYTES])?;
    let mut blocks = BlockWriter::new(to, segments.identity.salt);
    let state_hash = core.write_snapshot(&mut |portion| blocks.add(portion))?;
    blocks.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    // The header last: before it, this is no snapshot, whatever its name.
    let header = SnapshotHeader { state_hash, ..header }.sealed(&segments.identity);
    file.write_all_at(bytemuck::bytes_of(&header), 0)?;
    file.sync_all()?;
    Ok((file.metadata()?.len(), state_hash))
}

/// Removes what an interrupted making has left.
fn remove_unfinished(folder: &Path) -> Result<(), DiskError> {
    for entry in fs::read_dir(folder).map_err(disk_error("listing", folder))? {
        let path = entry.map_err(disk_error("listing", folder))?.path();
        if path.extension().is_some_and(|extension| extension == "new") {
            fs::remove_file(&path).map_err(disk_error("removing", &path))?;
        }
    }
    Ok(())
}

/// Removes the snapshots that those up to the one at `newest` supersede. Any behind it are none of this
/// log.
fn remove_old(
    data: &Path,
    newest: Position,
    skipped: &[(PathBuf, SnapshotFault)],
    kept: usize,
) -> Result<Vec<PathBuf>, MakeError> {
    let folder = snapshot_folder(data);
    let mut removed = Vec::new();
    let ours = positions(&FileStorage, &folder)?.into_iter().filter(|&at| at <= newest.0);
    let paths = ours.map(|position| snapshot_path(&folder, position));
    // One that could not be used and has the newest one's name was replaced by it.
    let newest = snapshot_path(&folder, newest.0);
    let is_usable =
        |path: &Path| path == newest || skipped.iter().all(|(skipped, _)| skipped != path);
    for path in superseded(paths, is_usable, kept) {
        fs::remove_file(&path).map_err(disk_error("removing", &path))?;
        removed.push(path);
    }
    Ok(removed)
}

/// Of snapshots, newest first, those behind as many usable ones as are kept: one that cannot be used
/// stands for nothing, and takes no other's place.
fn superseded(
    newest_first: impl Iterator<Item = PathBuf>,
    is_usable: impl Fn(&Path) -> bool,
    kept: usize,
) -> impl Iterator<Item = PathBuf> {
    let mut usable = 0;
    newest_first.skip_while(move |path| {
        let is_kept = usable < kept.max(1);
        usable += usize::from(is_usable(path));
        is_kept
    })
}

/// Makes this process give way to an engine beside it: the lowest priority, in no real-time class and on any
/// core, whatever it inherited, and the first to go when memory runs out. What the system refuses of it is
/// no reason not to go on. To be called by the first thread before there are others.
pub fn lower_priority() {
    leave_real_time();
    let _refused = nice(LOWEST_PRIORITY);
    let _refused = fs::write("/proc/self/oom_score_adj", OOM_SCORE_MAX);
    let mut all = CpuSet::new();
    for core in 0..CpuSet::MAX_CPU {
        all.set(core);
    }
    let _refused = sched_setaffinity(Some(getpid()), &all);
}

/// Puts the calling thread into the class of ordinary threads. In a real-time class, as under an engine that
/// was started by `chrt`, a nice value is of no account.
fn leave_real_time() {
    let ordinary = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    let _refused =
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, ordinary);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::skipped;
    use rustix::process::getpriority_process;
    use thread_priority::{RealtimeThreadSchedulePolicy, thread_schedule_policy};

    #[test]
    fn a_real_time_class_is_left() {
        let thread = std::thread::spawn(|| {
            let real_time = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
            let inherited = set_thread_priority_and_policy(
                thread_native_id(),
                ThreadPriority::Crossplatform(1.try_into().unwrap()),
                real_time,
            );
            if let Err(error) = inherited {
                skipped(format_args!("right to a real-time class ({error:?})"));
            } else {
                assert_eq!(thread_schedule_policy(), Ok(real_time));
            }
            leave_real_time();
            let ordinary = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
            assert_eq!(thread_schedule_policy(), Ok(ordinary));
            assert_eq!(getpriority_process(None).unwrap(), LOWEST_PRIORITY);
        });
        thread.join().unwrap();
    }

    #[test]
    fn what_cannot_be_used_takes_the_place_of_nothing_that_can() {
        let superseded = |snapshots: &[(&str, bool)], kept| {
            let paths = snapshots.iter().map(|(name, _)| PathBuf::from(name));
            let is_usable = |path: &Path| snapshots.contains(&(path.to_str().unwrap(), true));
            let removed = superseded(paths, is_usable, kept);
            removed.map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let sound = [("4", true), ("3", true), ("2", true), ("1", true)];
        assert_eq!(superseded(&sound, 2), ["2", "1"]);
        assert_eq!(superseded(&sound, 0), ["3", "2", "1"]);
        assert!(superseded(&sound, 4).is_empty());
        let rotten = [("4", true), ("3", false), ("2", true), ("1", false), ("0", true)];
        assert_eq!(superseded(&rotten, 2), ["1", "0"]);
        assert_eq!(superseded(&rotten, 1), ["3", "2", "1", "0"]);
        assert!(superseded(&rotten, 3).is_empty());
    }
}
