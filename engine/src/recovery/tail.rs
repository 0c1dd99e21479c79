//! Ending the log: everything behind its end is kept in files of its own and taken out of the log.
//! Called by recovery once it is decided where the log ends; may be repeated after a crash anywhere.

use std::io;
use std::path::{Path, PathBuf};

use touchline_protocol::log::{BLOCK_BYTES, segment_number};
use touchline_protocol::snapshot::snapshot_position;

use super::{RecoveryError, chain::Beyond, segments::Segments};
use crate::log::{
    DiskError,
    disk::{aligned_buffer, disk_error},
    storage::Storage,
};
use crate::snapshot::snapshot_folder;

/// Copied or zeroed at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// What is taken out of the log.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dropped {
    /// From the log's end to the last byte behind it that was not zero.
    pub bytes: u64,
    /// Good frames among them.
    pub frames: u64,
    /// Where they are kept. A byte lies at the offset that it had in its segment.
    pub kept_in: Vec<PathBuf>,
}

/// The highest incarnation in the names of files in which an ending of the log has kept something: segments,
/// parts of them, and snapshots.
pub(super) fn highest_dropped(
    storage: &dyn Storage,
    segments: &Path,
    data: &Path,
) -> Result<u32, RecoveryError> {
    let of_segments = dropped(storage, segments, |name| segment_number(name).is_some())?;
    let folder = snapshot_folder(data);
    let of_snapshots = dropped(storage, &folder, |name| snapshot_position(name).is_some())?;
    Ok(of_segments.into_iter().chain(of_snapshots).max().unwrap_or(0))
}

/// What is to be taken out of the log, which ends at `end`; `incarnation` is the one that begins there, and that no
/// kept file is named after yet.
pub(super) fn plan(
    segments: &Segments,
    end: u64,
    beyond: &Beyond,
    incarnation: u32,
) -> Result<Dropped, RecoveryError> {
    let Some(used) = beyond.used else { return Ok(Dropped::default()) };
    let segment_bytes = segments.identity.segment_bytes;
    // A segment that the log ends in is kept in part, one behind it as a whole.
    let first_whole = end.div_ceil(segment_bytes);
    let mut kept_in = Vec::new();
    if let Some((from, to)) = part(end, used, segment_bytes) {
        let kept = kept_already(segments, from, to)?;
        kept_in.push(kept.unwrap_or_else(|| kept_path(segments, end / segment_bytes, incarnation)));
    }
    let whole = first_whole..used.div_ceil(segment_bytes).min(segments.next);
    kept_in.extend(whole.map(|number| kept_path(segments, number, incarnation)));
    Ok(Dropped { bytes: used - end, frames: beyond.frames, kept_in })
}

/// What is taken out of the segment that the log ends in.
fn part(end: u64, used: u64, segment_bytes: u64) -> Option<(u64, u64)> {
    let to = used.min(end.next_multiple_of(segment_bytes));
    (end < to).then_some((end, to))
}

/// Ends the log at `end`, as planned in `dropped`. An attempt that is broken off is followed by one with an incarnation of its
/// own, which keeps what it still finds, unless a file has it already: no kept file is ever written to again, or
/// takes the place of another one.
pub(super) fn cut(
    segments: &mut Segments,
    (end, beyond): (u64, &Beyond),
    dropped: &Dropped,
    incarnation: u32,
) -> Result<(), RecoveryError> {
    let Some(used) = beyond.used else { return remove_blank(segments, end) };
    // From the last to the first, so that a crash in between leaves no hole.
    let segment_bytes = segments.identity.segment_bytes;
    let first_whole = end.div_ceil(segment_bytes);
    for number in (first_whole..segments.next).rev() {
        let path = segments.path(number);
        if number * segment_bytes < used {
            let kept = kept_path(segments, number, incarnation);
            segments.storage.rename(&path, &kept).map_err(disk_error("renaming", &path))?;
        } else {
            segments.storage.remove(&path).map_err(disk_error("removing", &path))?;
        }
        segments.next = number;
        sync(segments)?;
    }
    if let Some((from, to)) = part(end, used, segment_bytes) {
        let own = kept_path(segments, from / segment_bytes, incarnation);
        // Else an attempt before has kept it.
        if dropped.kept_in.first() == Some(&own) {
            keep(segments, (from, to), &own)?;
        }
        clear(segments, from, to)?;
    }
    Ok(())
}

/// Segments made ahead hold nothing: the one behind the end's is of use, others would be in the way.
fn remove_blank(segments: &mut Segments, end: u64) -> Result<(), RecoveryError> {
    let keep = end.div_ceil(segments.identity.segment_bytes) + 1;
    while segments.next > keep {
        let path = segments.path(segments.next - 1);
        segments.storage.remove(&path).map_err(disk_error("removing", &path))?;
        segments.next -= 1;
        sync(segments)?;
    }
    Ok(())
}

fn sync(segments: &Segments) -> Result<(), DiskError> {
    segments.storage.sync_folder(&segments.folder).map_err(disk_error("syncing", &segments.folder))
}

fn kept_path(segments: &Segments, number: u64, incarnation: u32) -> PathBuf {
    segments.path(number).with_extension(format!("dropped-{incarnation}"))
}

/// Incarnations in the names of files that were kept of segments or snapshots in `folder` of which `is_of` likes the
/// name.
fn dropped(
    storage: &dyn Storage,
    folder: &Path,
    is_of: impl Fn(&str) -> bool,
) -> Result<Vec<u32>, RecoveryError> {
    let names = match storage.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(disk_error("listing", folder))?,
    };
    let incarnation = |name: &String| {
        let (of, incarnation) = name.split_once(".dropped-")?;
        // A snapshot keeps the end of its name, a segment does not.
        let is_known = is_of(of) || is_of(&format!("{of}.seg"));
        incarnation.parse().ok().filter(|_| is_known)
    };
    Ok(names.iter().filter_map(incarnation).collect())
}

/// A file that has all that is left of the blocks from `from` to `to`, kept by an attempt before, which may have
/// cleared a part of them since.
fn kept_already(segments: &Segments, from: u64, to: u64) -> Result<Option<PathBuf>, RecoveryError> {
    let number = from / segments.identity.segment_bytes;
    let is_of = |name: &str| segment_number(name) == Some(number);
    for incarnation in dropped(segments.storage.as_ref(), &segments.folder, is_of)? {
        let kept = kept_path(segments, number, incarnation);
        if has_all(segments, &kept, (from, to))? {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

/// Whether a kept file has every byte of the blocks that is not zero.
fn has_all(
    segments: &Segments,
    kept: &Path,
    (from, to): (u64, u64),
) -> Result<bool, RecoveryError> {
    let Ok(file) = segments.storage.open(kept) else { return Ok(false) };
    let mut ours = aligned_buffer(CHUNK_BYTES)?;
    let mut theirs = aligned_buffer(CHUNK_BYTES)?;
    for (position, length) in chunks(from, to) {
        let (ours, theirs) = (&mut ours[..length], &mut theirs[..length]);
        segments.read(position, ours)?;
        if file.read(position % segments.identity.segment_bytes, theirs).is_err() {
            return Ok(false);
        }
        // What stands before `from` in its block is no part of it.
        let before = from.saturating_sub(position) as usize;
        if ours
            .iter()
            .zip(theirs.iter())
            .skip(before)
            .any(|(ours, kept)| *ours != 0 && ours != kept)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Copies the blocks from `from` to `to` to a file beside their segment, which takes no more room than they do: a
/// start that drops a few bytes is to need no segment's room for them.
fn keep(segments: &Segments, (from, to): (u64, u64), kept: &Path) -> Result<(), RecoveryError> {
    let unfinished = segments.unfinished(from / segments.identity.segment_bytes);
    copy(segments, (from, to), &unfinished).inspect_err(|_| {
        // What there was room for of it would keep a full disk full.
        let _gone = segments.storage.remove(&unfinished);
    })?;
    segments.storage.rename(&unfinished, kept).map_err(disk_error("naming", kept))?;
    Ok(sync(segments)?)
}

/// Likewise, to a new file at `path`, which is durable but for its name.
fn copy(segments: &Segments, (from, to): (u64, u64), path: &Path) -> Result<(), DiskError> {
    let begin = from - from % segments.identity.segment_bytes;
    let bytes = to.next_multiple_of(BLOCK_BYTES) - begin;
    let file = segments.storage.create_sparse(path, bytes).map_err(disk_error("making", path))?;
    let mut buffer = aligned_buffer(CHUNK_BYTES)?;
    for (position, length) in chunks(from, to) {
        let bytes = &mut buffer[..length];
        segments.read(position, bytes)?;
        file.write_blocks(position - begin, bytes).map_err(disk_error("writing", path))?;
    }
    file.sync().map_err(disk_error("syncing", path))
}

/// Zeroes from `from` to the end of the block of `to`; what stands before `from` in its block stays.
fn clear(segments: &Segments, from: u64, to: u64) -> Result<(), RecoveryError> {
    let segment_bytes = segments.identity.segment_bytes;
    let path = segments.path(from / segment_bytes);
    let file = segments.file(from / segment_bytes)?;
    let mut buffer = aligned_buffer(CHUNK_BYTES)?;
    for (position, length) in chunks(from, to) {
        let bytes = &mut buffer[..length];
        bytes.fill(0);
        let before = from.saturating_sub(position) as usize;
        segments.read(position, &mut bytes[..before])?;
        file.write_blocks(position % segment_bytes, bytes)
            .map_err(disk_error("clearing", &path))?;
    }
    Ok(())
}

/// Whole blocks that cover `from` to `to`, in portions: position and length.
fn chunks(from: u64, to: u64) -> impl Iterator<Item = (u64, usize)> {
    let start = from - from % BLOCK_BYTES;
    let end = to.next_multiple_of(BLOCK_BYTES);
    (start..end)
        .step_by(CHUNK_BYTES as usize)
        .map(move |position| (position, CHUNK_BYTES.min(end - position) as usize))
}
