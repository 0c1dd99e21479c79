//! Removing the segments that no start needs any more. Called by `touchline log prune`.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;
use touchline_protocol::log::lease::{HeldLease, LeaseError, leases};
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::log::{segment_number, segment_path};
use touchline_protocol::units::Position;

use super::file::SnapshotFault;
use super::folder::{list_in, load};
use super::make::{MakeError, lock};
use crate::inspect::segments_for_reading;
use crate::log::disk::{DiskError, disk_error};
use crate::recovery::{RecoveryError, Segments};

/// Why nothing was removed.
#[derive(Debug, Error)]
pub enum PruneError {
    /// Another process is at it.
    #[error(transparent)]
    Lock(#[from] MakeError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] RecoveryError),
    /// A segment cannot be removed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The log cannot be followed.
    #[error(transparent)]
    Reader(#[from] ReadError),
    /// What a reader still needs cannot be told.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A snapshot that is to stand for what is removed is not whole.
    #[error(
        "{}: {why}; move it out of the folder, or have later ones take its place first: touchline log \
         snapshot",
        path.display()
    )]
    Snapshot {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        why: SnapshotFault,
    },
    /// There is none.
    #[error(
        "there is no snapshot that could stand for old segments; make one first: touchline log snapshot"
    )]
    NoSnapshot,
}

/// What was removed, or would be.
#[derive(Debug)]
pub struct Pruned {
    /// Where the log began.
    pub begin: Position,
    /// Where it begins then.
    pub now: Position,
    /// The oldest snapshot: the earliest state that can be rebuilt.
    pub oldest_snapshot: Position,
    /// The segments, oldest first.
    pub segments: Vec<PathBuf>,
    /// The leases without which more would be removed, by name.
    pub kept_for: Vec<HeldLease>,
}

/// Removes the segments that lie wholly before the last transaction of the oldest snapshot and before what
/// any lease on this log holds, or any of `further`, which says what leases do not; after every snapshot was read and
/// found whole. Only tells which, if `dry_run`. `told` is shown each segment as soon as it is gone. Safe beside a running engine and beside whoever
/// holds a lease, also one that comes meanwhile: who takes a lease and then finds the log's beginning still there
/// has it as long as the lease needs it.
///
/// # Errors
/// See [`PruneError`]. Some may be gone then: the oldest ones, with no hole.
pub fn prune(
    data: &Path,
    dry_run: bool,
    further: &[HeldLease],
    told: &mut dyn FnMut(&Path),
) -> Result<Pruned, PruneError> {
    // Who only looks changes nothing, and may have no right to.
    let _lock = if dry_run { None } else { Some(lock(data)?) };
    let mut segments = segments_for_reading(data)?;
    if !dry_run && take_back(&segments)? {
        segments = segments_for_reading(data)?;
    }
    let mut oldest = None;
    for listed in list_in(&segments, data)? {
        let (path, header) = (listed.path.clone(), listed.header.as_ref().ok().copied());
        let _whole = load(data, listed).map_err(|why| PruneError::Snapshot { path, why })?;
        oldest = header;
    }
    let oldest = oldest.ok_or(PruneError::NoSnapshot)?;
    let segment_bytes = segments.identity.segment_bytes;
    // The segment with the snapshot's last transaction stays: by that it is known to be of this log.
    let by_snapshot = (oldest.last_position / segment_bytes).max(segments.first);
    let (mut kept_for, first_kept) = needed(data, &segments, further, by_snapshot)?;
    let mut now = if dry_run { first_kept } else { segments.first };
    while now < first_kept {
        let path = segment_path(&segments.folder, now);
        if let Some(now_kept_for) = remove(data, &segments, (now, &path), (further, by_snapshot))? {
            kept_for = now_kept_for;
            break;
        }
        told(&path);
        now += 1;
    }
    let gone = segments.first..now;
    Ok(Pruned {
        begin: Position(segments.begin()),
        now: Position(now * segment_bytes),
        oldest_snapshot: Position(oldest.position),
        segments: gone.map(|number| segment_path(&segments.folder, number)).collect(),
        kept_for,
    })
}

/// The leases on this log that need a segment before `by_snapshot`, and the first one that stays for them. Of a lease
/// that is among `further`, too, the one that needs more.
fn needed(
    data: &Path,
    segments: &Segments,
    further: &[HeldLease],
    by_snapshot: u64,
) -> Result<(Vec<HeldLease>, u64), PruneError> {
    let segment_of = |lease: &HeldLease| lease.last.position.0 / segments.identity.segment_bytes;
    let mut kept_for = leases(data)?;
    kept_for.retain(|lease| lease.log_id == segments.identity.log_id);
    for needs in further {
        kept_for
            .retain(|lease| lease.name != needs.name || lease.last.position < needs.last.position);
        if kept_for.iter().all(|lease| lease.name != needs.name) {
            kept_for.push(needs.clone());
        }
    }
    need_all_of_another_past(data, segments, &mut kept_for)?;
    kept_for.retain(|lease| segment_of(lease) < by_snapshot);
    let by_leases = kept_for.iter().map(segment_of).min();
    let first_kept = by_leases.map_or(by_snapshot, |kept| kept.max(segments.first));
    Ok((kept_for, first_kept))
}

/// What a reader has made of a past that the log does not have is of no use: it will be made anew, from the log's
/// beginning.
fn need_all_of_another_past(
    data: &Path,
    segments: &Segments,
    leases: &mut [HeldLease],
) -> Result<(), PruneError> {
    let mut reader = LogReader::open(data, Follow::Durable)?;
    for lease in leases.iter_mut().filter(|lease| lease.last.incarnation.0 > 0) {
        let is_there = reader.resume(&lease.last);
        if !matches!(is_there, Ok(true)) {
            lease.last = Bookmark::nothing_before(Position(segments.begin()));
        }
    }
    Ok(())
}

/// What the name of a segment ends with that is about to be removed.
const LEAVING: &str = "seg.leaving";

/// Removes the oldest segment, durably before the next, so that a crash in between leaves no hole. First it loses its
/// name: then either a lease that came meanwhile is seen here, and the segment gets its name back, or whoever took
/// that lease sees that the log begins behind it. Gives the leases that it stays for, if it does.
fn remove(
    data: &Path,
    segments: &Segments,
    (number, path): (u64, &Path),
    (further, by_snapshot): (&[HeldLease], u64),
) -> Result<Option<Vec<HeldLease>>, PruneError> {
    let leaving = path.with_extension(LEAVING);
    fs::rename(path, &leaving).map_err(disk_error("renaming", path))?;
    let found = needed(data, segments, further, by_snapshot);
    if matches!(&found, Ok((_, first_kept)) if number < *first_kept) {
        fs::remove_file(&leaving).map_err(disk_error("removing", &leaving))?;
    } else {
        fs::rename(&leaving, path).map_err(disk_error("renaming", &leaving))?;
    }
    let sync = || fs::File::open(&segments.folder)?.sync_all();
    sync().map_err(disk_error("syncing", &segments.folder))?;
    let (kept_for, first_kept) = found?;
    Ok((number >= first_kept).then_some(kept_for))
}

/// Gives segments their names back that a prune has left without, which was killed before it had looked at the leases
/// again; true if there were any. What is of no use any more, because its neighbour is gone or it is there itself, goes.
fn take_back(segments: &Segments) -> Result<bool, DiskError> {
    let folder = &segments.folder;
    let names = segments.storage.list(folder).map_err(disk_error("listing", folder))?;
    let number = |name: &String| segment_number(name.strip_suffix(".leaving")?);
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    let mut first = segments.first;
    for number in numbers {
        let path = segment_path(folder, number);
        let leaving = path.with_extension(LEAVING);
        if number.checked_add(1) == Some(first) {
            fs::rename(&leaving, &path).map_err(disk_error("renaming", &leaving))?;
            first = number;
        } else {
            fs::remove_file(&leaving).map_err(disk_error("removing", &leaving))?;
        }
    }
    Ok(first < segments.first)
}
