//! Recovery: from whatever the last engine has left to a log whose end is known and a state that equals
//! it. Called when the log is opened, before anything else of the engine exists.
//!
//! 1. lock the data folder and the folder of the last window;
//! 2. compare what both window and disk have; a difference is refused;
//! 3. bring onto disk what only the window has;
//! 4. take the state of the newest snapshot that is whole, replay what lies behind it, find where the
//!    log ends, take the window out of use, and take out what lies behind the end;
//! 5. write the record of the new incarnation, and
//! 6. only then let the new window be found (both in [`crate::log::open`]).
//!
//! Each step may be repeated after a crash anywhere in it or behind it. What steps 1 to 4 refuse changes nothing
//! but the disk blocks that step 3 completes, and leaves the log's id in the data folder. What step 4 takes out is
//! told before it does, for whoever comes next finds it done.

mod ahead;
mod chain;
mod copied;
mod end;
mod error;
mod files;
mod leases;
mod left_window;
mod leftover;
mod mark;
mod other_user;
mod remounted;
mod replay;
mod report;
mod segments;
mod tail;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use touchline_protocol::client::SOCKET_NAME;
use touchline_protocol::{folder, regular_file};
use touchline_protocol::{
    log::{
        WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES, is_segment_size,
        place::{WindowFolders, boot_id},
        segment::LogIdentity,
    },
    units::Incarnation,
};

use self::{
    chain::Beyond,
    copied::{CopiedWindow, highest_told},
    leases::AsideLease,
    leftover::{Leftover, Purpose},
    replay::Replay,
};
pub use self::{
    chain::EndReason,
    error::RecoveryError,
    files::check_files,
    left_window::check_window,
    leftover::Poison,
    replay::{NothingToReplay, Progress, ReplayFault, Replayed},
    report::StartReport,
    tail::Dropped,
};
pub(crate) use self::{
    chain::{Visit, Walked, search_beyond, walk},
    end::{Fault, fault},
    leases::Leases,
    leftover::FATAL,
    mark::{check_no_log_is_lost, of_another_log},
    other_user::note_place,
    replay::same_events,
    report::Findings,
    segments::{Segments, segment_numbers},
};
use crate::log::{
    DiskError, Environment, LogOptions,
    disk::{DiskLog, disk_error},
    lock::{DataLock, FolderLock, is_held},
    segment_folder,
    storage::Storage,
};
use crate::notice::alert;
use crate::snapshot::{
    Aside, Attesting, Restored, Witness, behind, check_snapshot_folder, put_aside, restore_newest,
};

/// The folder of commands that have ended an engine, in the data folder.
pub(crate) const POISON_FOLDER: &str = "poison";

/// The file in a data folder that is locked while an engine runs.
pub(crate) const LOCK_FILE: &str = "lock";

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
    pub(crate) lock: DataLock,
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
    let places = window_places(data, &identity, &environment.shared_memory)?;
    let (leftover, copies) = take_left_windows(&segments, &places)?;
    let (folders, boot_id) = places;
    let heartbeat_ns = leftover.as_ref().map_or(0, |window| window.heartbeat_ns);
    let mut findings = Findings { new_log, heartbeat_ns, ..Findings::default() };
    if let Some(window) = leftover.as_ref().filter(|window| window.counts) {
        window.compare(&segments)?;
        let mut disk = disk_log(&environment.storage, &segments)?;
        findings.from_window = window.flush(&mut disk)?;
        segments.extend(disk.next());
    }

    check_snapshot_folder(data)?;
    let restored = restore_newest(&segments, data, &mut |content| state.restore(content))?;
    let restored_incarnation = restored.incarnation;
    let walked = replay(&segments, &restored, (state, progress), &mut findings)?;
    if !walked.closed
        && walked.incarnation > 0
        && leftover.as_ref().is_none_or(|window| !window.counts)
    {
        other_user::check_none(data, &folders)?;
    }
    sync_last(&segments, walked.end)?;
    let beyond = search_beyond(&segments, walked.end, walked.incarnation)?;
    let leases = Leases::of(data, &identity.log_id);
    let newest = walked.incarnation.max(beyond.incarnation);
    let beside = restored.attesting.iter().cloned().chain(leases.attesting(newest));
    let attested = (leftover.as_ref(), beside.max_by_key(|beside| beside.position));
    findings.loss_accepted = check_end(&segments, &walked, &beyond, attested, options.accept_loss)?;
    findings.take_snapshots(restored);

    let incarnation = next_incarnation(
        data,
        &segments,
        &folders,
        newest.max(restored_incarnation).max(leases.incarnation()),
    )?;
    let snapshots = behind(environment.storage.as_ref(), data, walked.end, incarnation)?;
    let leases = leases.behind(walked.end, incarnation);
    let given_up = GivenUp { leftover, copies, snapshots, leases, beyond };
    given_up.note(data, &walked, &mut findings);
    findings.dropped = tail::plan(&segments, walked.end, &given_up.beyond, incarnation)?;
    findings.describe(&walked, incarnation);
    // Told before it is done: a start that comes behind one that was refused or killed from here on finds it done.
    for line in findings.lines(options) {
        progress(Progress::Found(line));
    }
    mark::correct(data, &identity);
    given_up.take_out(data, &mut segments, &findings)?;
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

/// The incarnation that begins: one above all that were used, of which frames, snapshots and leases show `seen`.
fn next_incarnation(
    data: &Path,
    segments: &Segments,
    folders: &WindowFolders,
    seen: u32,
) -> Result<u32, RecoveryError> {
    let places = folders.to_search().into_iter().flatten();
    let of_log = |folder: &PathBuf| highest_told(folder, &segments.identity.log_id);
    let of_windows = places.map(of_log).max().unwrap_or(0);
    let used = seen.max(of_windows).max(highest_kept(data, segments)?);
    used.checked_add(1).ok_or(RecoveryError::IncarnationsUsedUp)
}

/// What a start has no more use for, once its findings are told.
struct GivenUp {
    leftover: Option<Leftover>,
    copies: Vec<CopiedWindow>,
    snapshots: Vec<Aside>,
    leases: Vec<AsideLease>,
    beyond: Beyond,
}

impl GivenUp {
    /// Finds what a command has done to the last engine, and what else goes with what is given up.
    fn note(&self, data: &Path, walked: &Walked, findings: &mut Findings) {
        let left = self.leftover.as_ref();
        let counting = left.filter(|window| window.counts);
        findings.poison = counting.and_then(|window| window.poison(&data.join(POISON_FOLDER)));
        // Without any frame no engine ever accepted a command.
        findings.window_lost =
            left.is_none_or(|window| window.is_lost) && !walked.closed && walked.incarnation > 0;
        findings.snapshots_dropped = self.snapshots.iter().map(|one| one.kept.clone()).collect();
        findings.leases_dropped = self.leases.iter().map(|one| one.kept.clone()).collect();
    }

    /// Keeps aside what is to be kept, and takes the rest out of use. Where that is cut short the next start does
    /// the rest of it.
    fn take_out(
        self,
        data: &Path,
        segments: &mut Segments,
        findings: &Findings,
    ) -> Result<(), RecoveryError> {
        if let Some(poison) = &findings.poison {
            keep_poison(data, poison)?;
        }
        for copied in self.copies {
            copied.put_aside()?;
        }
        if let Some(window) = &self.leftover {
            // Before anything that it holds too is taken out of the log: an attempt that comes after this one
            // would refuse to start beside it.
            window.retire(findings.loss_accepted.is_some())?;
        }
        put_aside(segments.storage.as_ref(), data, &self.snapshots)?;
        leases::put_aside(data, segments.begin(), &self.leases)?;
        let end = findings.recovered_end;
        tail::cut(segments, (end, &self.beyond), &findings.dropped, findings.incarnation)
    }
}

/// Where a window of the log may lie, and the id of this running of the machine, of which it must be.
fn window_places(
    data: &Path,
    identity: &LogIdentity,
    shared_memory: &Path,
) -> Result<(WindowFolders, [u8; 16]), DiskError> {
    let folders = WindowFolders::of(data, &identity.log_id, shared_memory)
        .map_err(disk_error("looking at", data))?;
    let boot_id = boot_id().map_err(disk_error("reading the boot id from", Path::new("/proc")))?;
    Ok((folders, boot_id))
}

/// Takes the window of the last engine, and those that were copied to where they lie.
fn take_left_windows(
    segments: &Segments,
    (folders, boot_id): &(WindowFolders, [u8; 16]),
) -> Result<(Option<Leftover>, Vec<CopiedWindow>), RecoveryError> {
    remounted::find_again(folders, boot_id, segments)
        .map_err(|source| RecoveryError::of_left_window(&folders.user, source))?;
    let mut copies = Vec::new();
    let leftover =
        Leftover::find(folders, &segments.identity, boot_id, Purpose::Take, &mut copies)?;
    Ok((leftover, copies))
}

/// The window of the last engine, to be looked at beside whoever else does.
fn look_at_window(
    data: &Path,
    shared_memory: &Path,
    identity: &LogIdentity,
) -> Result<Option<Leftover>, RecoveryError> {
    let (folders, boot_id) = window_places(data, identity, shared_memory)?;
    Leftover::find(&folders, identity, &boot_id, Purpose::Look, &mut Vec::new())
}

/// Step 2 alone, which changes nothing: whether the window that an engine of `incarnation` has left, if it is the one
/// that counts, is of the log on disk.
pub(crate) fn compare_window(
    data: &Path,
    shared_memory: &Path,
    segments: &Segments,
    incarnation: Incarnation,
) -> Result<(), RecoveryError> {
    let window = look_at_window(data, shared_memory, &segments.identity)?;
    match window.filter(|it| it.counts && it.header.incarnation == incarnation.0) {
        Some(window) => window.compare(segments),
        None => Ok(()),
    }
}

/// How far a control page vouches for the log on disk whose window does not count any more, as it does for a start:
/// another start has brought all of it to disk, or somebody has removed the window's file. One that a start cannot
/// judge is for that to tell; that of an engine that runs moves, and whoever looks sees as much on disk.
pub(crate) fn attested_by_page(data: &Path, shared_memory: &Path, identity: &LogIdentity) -> u64 {
    if has_engine(data) {
        return 0;
    }
    let window = look_at_window(data, shared_memory, identity).ok().flatten();
    window.filter(|window| !window.counts).map_or(0, |window| window.appended)
}

/// Replays what lies behind the snapshot that was restored, or the whole log without one.
fn replay(
    segments: &Segments,
    restored: &Restored,
    (state, progress): (&mut impl Replayed, &mut dyn FnMut(Progress)),
    findings: &mut Findings,
) -> Result<Walked, RecoveryError> {
    // From the snapshot's last transaction on: its frame tells which incarnation may follow.
    let begin = match &restored.header {
        Some(header) => header.last_position,
        None if segments.begin() == 0 => 0,
        None => {
            return Err(RecoveryError::NotFromBeginning {
                folder: segments.folder.clone(),
                position: segments.begin(),
                why: restored.reasons(),
            });
        }
    };
    let held = restored.header.map_or(0, |header| header.position);
    let mut replay = Replay::new(state, progress, segments.end());
    let walked = walk(segments, begin..segments.end(), &mut |transaction, behind| {
        if transaction.position().0 < held {
            return Ok(());
        }
        replay.apply(segments, transaction, behind)
    })?;
    findings.transactions = replay.transactions();
    findings.begin = segments.begin();
    Ok(walked)
}

impl Findings {
    fn take_snapshots(&mut self, restored: Restored) {
        let Restored { header, skipped, .. } = restored;
        self.snapshot = header.map(|header| (header.position, header.transactions));
        self.snapshots_skipped = skipped
            .into_iter()
            .map(|(path, why)| format!("{} is not used: {why}", path.display()))
            .collect();
    }

    fn describe(&mut self, walked: &Walked, incarnation: u32) {
        self.incarnation = incarnation;
        self.recovered_end = walked.end;
        self.last_time_ns = walked.time_ns;
        self.clean = walked.closed;
        self.end_reason = walked.reason.to_string();
        self.files_end = walked.reason == EndReason::NoSegment;
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

/// True while an engine runs on the data folder, as far as this user can see.
#[must_use]
pub fn has_engine(data: &Path) -> bool {
    is_held(&data.join(LOCK_FILE))
}

/// The user whose venue it is: the one that the engine runs as, or without an engine that of the first start. None where
/// there is no venue, or this user may not look.
#[must_use]
pub fn owner(data: &Path) -> Option<u32> {
    let of = |name: &str| Some(data.join(name).metadata().ok()?.uid());
    let socket = has_engine(data).then(|| of(SOCKET_NAME)).flatten();
    socket.or_else(|| of(LOCK_FILE))
}

/// The process id of the last engine that has locked the data folder, if that could be written.
#[must_use]
pub fn last_engine(data: &Path) -> Option<u32> {
    regular_file::read_to_string(&data.join(LOCK_FILE)).ok()?.trim().parse().ok()
}

/// Makes the data folder if need be and locks it. Nothing else of it is touched before both locks are held.
fn lock_data(data: &Path) -> Result<DataLock, RecoveryError> {
    let segments = segment_folder(data);
    for folder in [data, &segments] {
        folder::make(folder).map_err(disk_error("making", folder))?;
    }
    let path = data.join(LOCK_FILE);
    let mut how = OpenOptions::new();
    how.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file =
        regular_file::open_or_device(&how, &path).map_err(disk_error("opening", &path))?;
    let mut holder = String::new();
    // Only to tell the operator: whatever stands there is no reason to refuse.
    let _unreadable = Read::by_ref(&mut file).take(32).read_to_string(&mut holder);
    let write_pid = |mut file: &File| {
        file.set_len(0)?;
        io::Seek::rewind(&mut file)?;
        writeln!(file, "{}", std::process::id())
    };
    let taken = FolderLock::take_data(&file).map_err(disk_error("locking", &path))?;
    let pid = holder.trim().parse().ok();
    let lock = taken.ok_or(RecoveryError::Locked { path, pid })?;
    let on_segments = FolderLock::take_where_possible(&segments)
        .map_err(disk_error("locking", &segments))?
        .ok_or(RecoveryError::Locked { path: segments, pid })?;
    // As above; and a full disk is no reason either.
    let _unwritten = write_pid(&file);
    Ok(DataLock { _file: lock, _segments: on_segments })
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
    let new_log = segment_numbers(storage.as_ref(), &folder)?.is_empty();
    if new_log {
        check_no_log_is_lost(storage.as_ref(), &options.data)?;
        sync_ancestors(storage.as_ref(), &folder)?;
        let identity = new_identity(options.segment_bytes)?;
        let mut disk = DiskLog::new(Arc::clone(storage), folder.clone(), identity, 0)?;
        disk.create_first()?;
    }
    let segments = Segments::open_all(storage, &folder)?;
    if !options.accept_loss {
        mark::check(&options.data, &segments.identity)?;
    }
    mark::leave(&options.data, &segments.identity);
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

/// Refuses a log that may not end where its good frames end; gives the fault if the loss was accepted.
fn check_end(
    segments: &Segments,
    walked: &Walked,
    beyond: &Beyond,
    (leftover, beside): (Option<&Leftover>, Option<Attesting>),
    accept_loss: bool,
) -> Result<Option<Fault>, RecoveryError> {
    let appended = leftover.map_or(0, |window| window.appended);
    let Some(fault) = fault(segments, walked, beyond, (appended, beside)) else { return Ok(None) };
    if accept_loss {
        return Ok(Some(fault));
    }
    let (path, offset) = segments.place(walked.end);
    let (position, why) = (walked.end, walked.reason);
    Err(match fault {
        Fault::Misplaced { path, why: source, .. } => {
            RecoveryError::Misplaced { path, position, source }
        }
        Fault::Damaged { attested, by: None } => {
            RecoveryError::Damaged { path, offset, position, attested, why }
        }
        Fault::Damaged { attested, by: Some((Witness::Snapshot, snapshot)) } => {
            RecoveryError::BehindSnapshot { path, offset, position, snapshot, attested, why }
        }
        Fault::Damaged { attested, by: Some((Witness::Lease, lease)) } => {
            RecoveryError::BehindLease { path, offset, position, lease, attested, why }
        }
    })
}

/// The highest incarnation in the name of a file in which an ending of the log has kept something. One that was used
/// must not begin again: what readers and clients have by its number and a position would seem to be in the log.
fn highest_kept(data: &Path, segments: &Segments) -> Result<u32, RecoveryError> {
    let of_log = tail::highest_dropped(segments.storage.as_ref(), &segments.folder, data)?;
    Ok(of_log.max(leases::highest_kept(data)))
}

/// Keeps the command that an engine died over. One that was not panicked of refuses nobody, so it is no reason to
/// refuse a start that has no room for it.
fn keep_poison(data: &Path, poison: &Poison) -> Result<(), DiskError> {
    match save_poison(data, poison) {
        Err(error) if !poison.is_fatal => {
            alert!("log: {error}; it is not kept, and nobody would be refused for it");
            Ok(())
        }
        saved => saved,
    }
}

fn save_poison(data: &Path, poison: &Poison) -> Result<(), DiskError> {
    let folder = data.join(POISON_FOLDER);
    let Poison { path, command, .. } = poison;
    let save = || {
        folder::make(&folder)?;
        // As secret as the log, whatever folder the venue was given.
        regular_file::put_whole(path, 0o600, command)?;
        File::open(data)?.sync_all()
    };
    save().map_err(disk_error("keeping the last command in", path))
}

#[cfg(test)]
mod tests;
