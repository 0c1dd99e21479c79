//! The folder of snapshots: which there are, which of them this log has, and the newest that is whole.
//! Called by recovery, by whoever makes snapshots, and by the tools.

use std::path::{Path, PathBuf};

use std::io;
use touchline_core::{Core, Definitions};
use touchline_protocol::folder::why_no_folder;
use touchline_protocol::snapshot::{
    SNAPSHOT_FOLDER, SnapshotHeader, snapshot_path, snapshot_position,
};
use touchline_protocol::units::Position;

use super::file::{SnapshotContent, SnapshotFault, read_header};
use crate::inspect::{Replica, segments_for_reading, table_seed};
use crate::log::disk::disk_error;
use crate::log::storage::Storage;
use crate::recovery::{RecoveryError, Segments, walk};

/// The folder of snapshots.
pub(crate) fn snapshot_folder(data: &Path) -> PathBuf {
    data.join(SNAPSHOT_FOLDER)
}

/// Refuses a folder of snapshots that is a link to what is not there: an engine would go on without those that lie on a
/// disk that is not mounted, and make none. Who only reads does without them.
///
/// # Errors
/// If it is one.
pub fn check_snapshot_folder(data: &Path) -> Result<(), RecoveryError> {
    let folder = snapshot_folder(data);
    match why_no_folder(&folder) {
        Some(why) => {
            Err(disk_error("listing", &folder)(io::Error::new(io::ErrorKind::NotADirectory, why)))?
        }
        None => Ok(()),
    }
}

/// Positions of the snapshots that there are, newest first.
pub(super) fn positions(storage: &dyn Storage, folder: &Path) -> Result<Vec<u64>, RecoveryError> {
    let names = match storage.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(disk_error("listing", folder))?,
    };
    let mut positions: Vec<u64> = names.iter().filter_map(|name| snapshot_position(name)).collect();
    positions.sort_unstable_by(|one, other| other.cmp(one));
    Ok(positions)
}

/// A snapshot that lies in the folder.
#[derive(Debug)]
pub struct Listed {
    /// Its file.
    pub path: PathBuf,
    /// Its position, by its name.
    pub position: u64,
    /// Its header, if that is one of this log; nothing behind it was looked at.
    pub header: Result<SnapshotHeader, SnapshotFault>,
}

/// What vouches, beside a log and its window, for how far it was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Witness {
    /// A snapshot: it is made of what is durable alone.
    Snapshot,
    /// A reader's lease: it names what is durable alone.
    Lease,
}

/// A position that something vouches for: the log was durable up to there when it was made.
#[derive(Clone, Debug)]
pub(crate) struct Attesting {
    pub(crate) position: u64,
    pub(crate) path: PathBuf,
    pub(crate) witness: Witness,
}

/// What came of looking for a snapshot to go on from.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// The one whose state was taken.
    pub(crate) header: Option<SnapshotHeader>,
    /// Those that were not used, newest first: their files, and why.
    pub(crate) skipped: Vec<(PathBuf, SnapshotFault)>,
    /// The highest position that any of this log vouches for.
    pub(crate) attesting: Option<Attesting>,
    /// The highest incarnation that any of this log ends with.
    pub(crate) incarnation: u32,
}

impl Restored {
    /// Why the snapshots that are there could not be used, as the end of a sentence.
    pub(crate) fn reasons(&self) -> String {
        self.skipped.iter().map(|(path, why)| format!("; {}: {why}", path.display())).collect()
    }
}

/// The snapshots of a log, newest first.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn list_in(segments: &Segments, data: &Path) -> Result<Vec<Listed>, RecoveryError> {
    let folder = snapshot_folder(data);
    let storage = segments.storage.as_ref();
    let listed = positions(storage, &folder)?.into_iter().map(|position| {
        let path = snapshot_path(&folder, position);
        let header = storage
            .open(&path)
            .map_err(SnapshotFault::from)
            .and_then(|file| read_header(file.as_ref(), &segments.identity, position));
        Listed { path, position, header }
    });
    Ok(listed.collect())
}

/// The newest snapshot by name, whatever is in it.
pub(crate) fn newest_path(
    storage: &dyn Storage,
    data: &Path,
) -> Result<Option<PathBuf>, RecoveryError> {
    let folder = snapshot_folder(data);
    let newest = positions(storage, &folder)?.first().copied();
    Ok(newest.map(|position| snapshot_path(&folder, position)))
}

/// The snapshots in the data folder `data`, newest first.
///
/// # Errors
/// If there is no log, or the folder cannot be read.
pub fn list(data: &Path) -> Result<Vec<Listed>, RecoveryError> {
    list_in(&segments_for_reading(data)?, data)
}

/// The venue of a listed snapshot, read to its end and found to be of the log in `data`.
///
/// # Errors
/// Why it is not used.
pub fn load(data: &Path, listed: Listed) -> Result<Replica, SnapshotFault> {
    let header = listed.header?;
    let segments =
        segments_for_reading(data).map_err(|error| SnapshotFault::Disk(io::Error::other(error)))?;
    check_in_log(&segments, &header)?;
    let mut core = None;
    restore(&segments, &listed.path, &header, &mut |content| {
        let (read, state_hash) = Core::read_snapshot(&mut |into| content.fill(into), table_seed())
            .map_err(|error| error.to_string())?;
        content.finish(state_hash)?;
        core = Some(read);
        Ok(())
    })?;
    let core = core.ok_or_else(|| SnapshotFault::State("it was not taken".to_owned()))?;
    Ok(Replica::at(core, Position(header.position), header.transactions))
}

/// What the venue of a listed snapshot is defined as, which is found to be of the log in `data`. The rest of
/// the file is not read.
///
/// # Errors
/// Why it is not used.
pub fn definitions(data: &Path, listed: Listed) -> Result<Definitions, SnapshotFault> {
    let header = listed.header?;
    let segments =
        segments_for_reading(data).map_err(|error| SnapshotFault::Disk(io::Error::other(error)))?;
    check_in_log(&segments, &header)?;
    let file = segments.storage.open(&listed.path)?;
    let mut content = SnapshotContent::new(file.as_ref(), &header)?;
    Definitions::read(&mut |into| content.fill(into), table_seed())
        .map_err(|error| SnapshotFault::State(error.to_string()))
}

/// Gives `take` the content of the newest snapshot that the log has and that is whole; `take` has changed
/// nothing if it fails.
pub(crate) fn restore_newest(
    segments: &Segments,
    data: &Path,
    take: &mut dyn FnMut(&mut SnapshotContent<'_>) -> Result<(), String>,
) -> Result<Restored, RecoveryError> {
    let mut restored = Restored::default();
    for Listed { path, position, header } in list_in(segments, data)? {
        let incarnation = header.as_ref().map_or(0, |header| header.last_incarnation);
        restored.incarnation = restored.incarnation.max(incarnation);
        if header.is_ok() && restored.attesting.is_none() {
            let witness = Witness::Snapshot;
            restored.attesting = Some(Attesting { position, path: path.clone(), witness });
        }
        if restored.header.is_some() {
            continue;
        }
        let used = header.and_then(|header| {
            check_in_log(segments, &header)?;
            restore(segments, &path, &header, take)?;
            Ok(header)
        });
        match used {
            Ok(header) => restored.header = Some(header),
            Err(fault) => restored.skipped.push((path, fault)),
        }
    }
    Ok(restored)
}

/// Reads a snapshot whose header was checked.
pub(super) fn restore(
    segments: &Segments,
    path: &Path,
    header: &SnapshotHeader,
    take: &mut dyn FnMut(&mut SnapshotContent<'_>) -> Result<(), String>,
) -> Result<(), SnapshotFault> {
    let file = segments.storage.open(path)?;
    let mut content = SnapshotContent::new(file.as_ref(), header)?;
    let outcome = take(&mut content);
    content.outcome(outcome)
}

/// Checks that the log has the transaction that a snapshot ends with.
pub(super) fn check_in_log(
    segments: &Segments,
    header: &SnapshotHeader,
) -> Result<(), SnapshotFault> {
    let position = header.last_position;
    let not_in_log = |found: Option<String>| SnapshotFault::NotInLog { position, found };
    if position < segments.begin() {
        let begin = segments.begin();
        return Err(not_in_log(Some(format!("that begins at position {begin}"))));
    }
    if header.position > segments.end() {
        let end = segments.end();
        return Err(not_in_log(Some(format!("its files end at position {end}"))));
    }
    let mut last = None;
    let walked = walk(segments, position..header.position, &mut |transaction, _| {
        last = Some((transaction.bookmark(), transaction.end()));
        Ok(())
    })
    .map_err(|error| not_in_log(Some(error.to_string())))?;
    let Some((bookmark, end)) = last.filter(|_| walked.transactions == 1) else {
        return Err(not_in_log(Some(walked.reason.to_string())));
    };
    if bookmark == header.last() && end.0 == header.position {
        return Ok(());
    }
    Err(not_in_log(Some(format!(
        "one of incarnation {} with checksum {:08x} is there, not of incarnation {} with {:08x}",
        bookmark.incarnation, bookmark.crc, header.last_incarnation, header.last_crc
    ))))
}

/// A snapshot behind the end of a log, and where it is put aside.
pub(crate) struct Aside {
    path: PathBuf,
    pub(crate) kept: PathBuf,
}

/// The snapshots behind the end of a log, whose end was accepted though they vouch for more: what they hold is no
/// part of the log any more. `incarnation` is the one that begins there.
pub(crate) fn behind(
    storage: &dyn Storage,
    data: &Path,
    end: u64,
    incarnation: u32,
) -> Result<Vec<Aside>, RecoveryError> {
    let folder = snapshot_folder(data);
    let positions = positions(storage, &folder)?.into_iter().filter(|&position| position > end);
    let aside = |position| {
        let path = snapshot_path(&folder, position);
        let kept = path.with_extension(format!("snap.dropped-{incarnation}"));
        Aside { path, kept }
    };
    Ok(positions.map(aside).collect())
}

/// Puts them aside.
pub(crate) fn put_aside(
    storage: &dyn Storage,
    data: &Path,
    snapshots: &[Aside],
) -> Result<(), RecoveryError> {
    for Aside { path, kept } in snapshots {
        storage.rename(path, kept).map_err(disk_error("renaming", path))?;
    }
    if !snapshots.is_empty() {
        let folder = snapshot_folder(data);
        storage.sync_folder(&folder).map_err(disk_error("syncing", &folder))?;
    }
    Ok(())
}
