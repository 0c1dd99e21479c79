//! Ending the log: everything behind its end is kept in files of its own and taken out of the log.
//! Called by recovery once it is decided where the log ends; may be repeated after a crash anywhere.

use std::io;
use std::path::{Path, PathBuf};

use touchline_protocol::log::BLOCK_BYTES;

use super::{RecoveryError, chain::Beyond, segments::Segments};
use crate::log::{
    DiskError,
    disk::{aligned_buffer, disk_error},
    storage::Storage,
};

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
    folders: [&Path; 2],
) -> Result<u32, RecoveryError> {
    let mut highest = 0;
    for folder in folders {
        let names = match storage.list(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            listed => listed.map_err(disk_error("listing", folder))?,
        };
        let incarnations =
            names.iter().filter_map(|name| name.rsplit_once(".dropped-")?.1.parse::<u32>().ok());
        highest = incarnations.max().unwrap_or(0).max(highest);
    }
    Ok(highest)
}

/// What is to be taken out of the log, which ends at `end`; `incarnation` is the one that begins there, and that no
/// kept file is named after yet.
pub(super) fn plan(segments: &Segments, end: u64, beyond: &Beyond, incarnation: u32) -> Dropped {
    let Some(used) = beyond.used else { return Dropped::default() };
    let segment_bytes = segments.identity.segment_bytes;
    // A segment that the log ends in is kept in part, one behind it as a whole.
    let numbers = end / segment_bytes..used.div_ceil(segment_bytes).min(segments.next);
    let kept_in = numbers.map(|number| kept_path(segments, number, incarnation)).collect();
    Dropped { bytes: used - end, frames: beyond.frames, kept_in }
}

/// Ends the log at `end`, as planned. An attempt that is broken off is followed by one with an incarnation of its
/// own, which keeps what it still finds: no kept file is ever written to again, or takes the place of another one.
pub(super) fn cut(
    segments: &mut Segments,
    end: u64,
    beyond: &Beyond,
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
    let of_last = first_whole * segment_bytes;
    if end < of_last.min(used) {
        keep(segments, end, used.min(of_last), incarnation)?;
        clear(segments, end, used.min(of_last))?;
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

/// Copies the blocks from `from` to `to` to a file beside their segment.
fn keep(segments: &Segments, from: u64, to: u64, incarnation: u32) -> Result<(), RecoveryError> {
    let segment_bytes = segments.identity.segment_bytes;
    let number = from / segment_bytes;
    let kept = kept_path(segments, number, incarnation);
    let storage = &segments.storage;
    let unfinished = segments.unfinished(number);
    let file =
        storage.create(&unfinished, segment_bytes).map_err(disk_error("making", &unfinished))?;
    let mut buffer = aligned_buffer(CHUNK_BYTES)?;
    for (position, length) in chunks(from, to) {
        let bytes = &mut buffer[..length];
        segments.read(position, bytes)?;
        file.write_blocks(position % segment_bytes, bytes)
            .map_err(disk_error("writing", &unfinished))?;
    }
    file.sync().map_err(disk_error("syncing", &unfinished))?;
    storage.rename(&unfinished, &kept).map_err(disk_error("naming", &kept))?;
    Ok(sync(segments)?)
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
