//! Ending the log: everything behind its end is kept in files of its own and taken out of the log.
//! Called by recovery once it is decided where the log ends; may be repeated after a crash anywhere.

use std::path::PathBuf;

use touchline_protocol::log::BLOCK_BYTES;

use super::{RecoveryError, chain::Beyond, segments::Segments};
use crate::log::{
    DiskError,
    disk::{aligned_buffer, disk_error},
};

/// Copied or zeroed at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// What was taken out of the log.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dropped {
    /// From the log's end to the last byte behind it that was not zero.
    pub bytes: u64,
    /// Good frames among them.
    pub frames: u64,
    /// Where they are kept. A byte lies at the offset that it had in its segment.
    pub kept_in: Vec<PathBuf>,
}

/// The highest incarnation in the names of files that an earlier ending of the log has made.
pub(super) fn highest_dropped(segments: &Segments) -> Result<u32, RecoveryError> {
    let names =
        segments.storage.list(&segments.folder).map_err(disk_error("listing", &segments.folder))?;
    let incarnations =
        names.iter().filter_map(|name| name.rsplit_once(".dropped-")?.1.parse::<u32>().ok());
    Ok(incarnations.max().unwrap_or(0))
}

/// Ends the log at `end`; `incarnation` is the one that begins there.
pub(super) fn cut(
    segments: &mut Segments,
    end: u64,
    beyond: &Beyond,
    incarnation: u32,
) -> Result<Dropped, RecoveryError> {
    let Some(used) = beyond.used else {
        remove_blank(segments, end)?;
        return Ok(Dropped::default());
    };
    let mut dropped = Dropped { bytes: used - end, frames: beyond.frames, kept_in: Vec::new() };
    // From the last to the first, so that a crash in between leaves no hole.
    let segment_bytes = segments.identity.segment_bytes;
    let first_whole = end.div_ceil(segment_bytes);
    for number in (first_whole..segments.next).rev() {
        let path = segments.path(number);
        if number * segment_bytes < used {
            let kept = kept_path(segments, number, incarnation);
            segments.storage.rename(&path, &kept).map_err(disk_error("renaming", &path))?;
            dropped.kept_in.push(kept);
        } else {
            segments.storage.remove(&path).map_err(disk_error("removing", &path))?;
        }
        segments.next = number;
        sync(segments)?;
    }
    let of_last = first_whole * segment_bytes;
    if end < of_last.min(used) {
        dropped.kept_in.push(keep(segments, end, used.min(of_last), incarnation)?);
        clear(segments, end, used.min(of_last))?;
    }
    dropped.kept_in.reverse();
    Ok(dropped)
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

/// Copies the blocks from `from` to `to` to a file beside their segment, unless an earlier attempt has
/// done so: after that the segment may already be cleared in part.
fn keep(
    segments: &Segments,
    from: u64,
    to: u64,
    incarnation: u32,
) -> Result<PathBuf, RecoveryError> {
    let segment_bytes = segments.identity.segment_bytes;
    let number = from / segment_bytes;
    let kept = kept_path(segments, number, incarnation);
    let storage = &segments.storage;
    if storage.open(&kept).is_ok() {
        return Ok(kept);
    }
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
    sync(segments)?;
    Ok(kept)
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
