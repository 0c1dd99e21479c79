//! The disk log as its writer sees it: whole blocks at positions, into segment files made ahead.
//! Owned by the keeper; used by recovery before the keeper runs.
//!
//! A segment is made under the name `NNNNNNNN.seg.new`, filled with zeros, synced and then renamed:
//! a file named `.seg` has its whole length and space, and a write into it changes no metadata, which
//! makes it cheap. Where the writes are so many that the zeros would take half of what the disk can do, or a
//! segment is needed before it has all of them, it is left as the file system reserves it, which reads as zeros
//! too: then each write also changes the metadata of its blocks, and is durable only with them. That costs a large
//! write little, and makes a small one behind a burst three times as dear, until the segment ends.

use std::{
    io::{self, IoSlice},
    path::{Path, PathBuf},
    sync::Arc,
};

use memmap2::{Advice, MmapMut};
use rustix::io::Errno;
use thiserror::Error;
use touchline_protocol::log::{
    BLOCK_BYTES, SEGMENT_HEADER_BYTES, segment::LogIdentity, segment_number, segment_path,
};

use super::{
    ahead::{Ahead, Load},
    storage::{BlockFile, Storage},
};
use crate::huge_pages::HUGE_PAGE_BYTES;

/// Zeros written at once when a segment is made and somebody waits for it, or soon will.
const ZEROS_BYTES: u64 = 1 << 20;

/// A disk call that failed.
#[derive(Debug, Error)]
#[error("{what} {}: {source}{}", path.display(), advice(what, path, source))]
pub struct DiskError {
    /// What was tried.
    pub what: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// What to do where the disk does not give the bytes of a segment any more: that refuses a start whatever loss is
/// accepted, for they may be there.
fn advice(what: &str, path: &Path, source: &io::Error) -> &'static str {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_segment = name.is_some_and(|name| segment_number(name).is_some());
    if what == READING && is_segment && Errno::from_io_error(source) == Some(Errno::IO) {
        "; bring this file back from a copy; or put one of its length in its place that has what can be read of it, and \
         zeros for the rest, and start with --accept-loss where that is asked for then"
    } else {
        ""
    }
}

/// What is tried of a segment's bytes.
pub(crate) const READING: &str = "reading";

/// For `map_err`.
pub(crate) fn disk_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    move |source| DiskError { what, path: path.to_owned(), source }
}

/// Zeroed memory at a page boundary, which direct writes need.
pub(crate) fn aligned_buffer(bytes: u64) -> Result<MmapMut, DiskError> {
    let buffer = MmapMut::map_anon(usize::try_from(bytes).unwrap_or(usize::MAX))
        .map_err(disk_error("reserving memory for", Path::new("disk buffers")))?;
    if bytes >= HUGE_PAGE_BYTES as u64 {
        // They spare a direct call looking up each small page; where there are none it goes without.
        let _unknown = buffer.advise(Advice::HugePage);
    }
    Ok(buffer)
}

/// The temporary name of a segment that is being made.
pub(crate) fn unfinished_path(path: &Path) -> PathBuf {
    path.with_extension("seg.new")
}

/// A segment that is being made.
struct Unfinished {
    number: u64,
    file: Box<dyn BlockFile>,
    zeroed: u64,
}

/// Makes segments, in bounded parts.
pub(crate) struct SegmentMaker {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    identity: LogIdentity,
    /// One behind the highest segment that exists.
    next: u64,
    unfinished: Option<Unfinished>,
    zeros: MmapMut,
}

impl SegmentMaker {
    /// One behind the highest segment that exists.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes of the next segment that zeros were written to; durable only once it has its name.
    pub(super) fn zeroed(&self) -> u64 {
        self.unfinished.as_ref().map_or(0, |unfinished| unfinished.zeroed)
    }

    /// Takes the space of the next segment, if it has none yet; whether it may do without zeros.
    pub(super) fn reserve(&mut self) -> Result<bool, DiskError> {
        let is_filled = self.zero_some(self.next, 0)?;
        let is_reserved = self.unfinished.as_ref().is_some_and(|made| made.file.is_reserved());
        Ok(is_filled || is_reserved)
    }

    /// Makes the next segment without filling what is not filled yet, where the file system lets it;
    /// else does a part of making it.
    pub(super) fn make_unfilled(&mut self, bytes: u64) -> Result<(), DiskError> {
        if self.reserve()? { self.finish() } else { self.make_some(bytes) }
    }

    /// Does a part of making the next segment: writes at most so many zeros, a multiple of
    /// [`BLOCK_BYTES`], of which it never writes more than 1 MiB.
    pub(super) fn make_some(&mut self, bytes: u64) -> Result<(), DiskError> {
        if self.zero_some(self.next, bytes)? { self.finish() } else { Ok(()) }
    }

    /// Makes the first segment with its header.
    fn make_first(&mut self) -> Result<(), DiskError> {
        while !self.zero_some(0, ZEROS_BYTES)? {}
        let mut header = aligned_buffer(SEGMENT_HEADER_BYTES)?;
        self.identity.write_header(0, &mut header);
        if let Some(unfinished) = &self.unfinished {
            let path = unfinished_path(&segment_path(&self.folder, 0));
            unfinished
                .file
                .write_blocks(0, &header)
                .map_err(disk_error("writing the header of", &path))?;
        }
        self.finish()
    }

    /// Writes at most `bytes` zeros into the segment `number` that is being made; true when all are
    /// written.
    fn zero_some(&mut self, number: u64, bytes: u64) -> Result<bool, DiskError> {
        let path = unfinished_path(&segment_path(&self.folder, number));
        let segment_bytes = self.identity.segment_bytes;
        let unfinished = match self.unfinished.take() {
            Some(unfinished) if unfinished.number == number => unfinished,
            _ => {
                let file = self
                    .storage
                    .create(&path, segment_bytes)
                    .map_err(disk_error("making", &path))?;
                Unfinished { number, file, zeroed: 0 }
            }
        };
        let unfinished = self.unfinished.insert(unfinished);
        let count = bytes.min(ZEROS_BYTES).min(segment_bytes - unfinished.zeroed);
        if count > 0 {
            unfinished
                .file
                .write_unsynced(unfinished.zeroed, &self.zeros[..count as usize])
                .map_err(disk_error("filling", &path))?;
        }
        unfinished.zeroed += count;
        Ok(unfinished.zeroed == segment_bytes)
    }

    fn finish(&mut self) -> Result<(), DiskError> {
        let Some(Unfinished { number, file, .. }) = self.unfinished.take() else { return Ok(()) };
        let path = segment_path(&self.folder, number);
        let unfinished = unfinished_path(&path);
        file.sync().map_err(disk_error("syncing", &unfinished))?;
        self.storage.rename(&unfinished, &path).map_err(disk_error("naming", &path))?;
        self.storage.sync_folder(&self.folder).map_err(disk_error("syncing", &self.folder))?;
        self.next = number + 1;
        Ok(())
    }
}

/// Who makes the segments that are written to next.
enum Making {
    /// Whoever writes, when they are needed: while the log is recovered.
    Here(SegmentMaker),
    /// A thread, ahead of the writes.
    Ahead(Ahead),
}

/// The segments of one log, to be written.
pub(crate) struct DiskLog {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    segment_bytes: u64,
    /// One behind the highest segment that is known to exist.
    next: u64,
    open: Option<(u64, Box<dyn BlockFile>)>,
    making: Making,
}

impl DiskLog {
    /// A disk log in whose `folder` the segments below `next` exist.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        folder: PathBuf,
        identity: LogIdentity,
        next: u64,
    ) -> Result<Self, DiskError> {
        let maker = SegmentMaker {
            storage: Arc::clone(&storage),
            folder: folder.clone(),
            identity,
            next,
            unfinished: None,
            zeros: aligned_buffer(ZEROS_BYTES)?,
        };
        let segment_bytes = identity.segment_bytes;
        Ok(Self { storage, folder, segment_bytes, next, open: None, making: Making::Here(maker) })
    }

    /// One behind the highest segment that is known to exist.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Makes the first segment with its header: afterwards there is a log.
    pub(crate) fn create_first(&mut self) -> Result<(), DiskError> {
        let Making::Here(maker) = &mut self.making else { return Ok(()) };
        maker.make_first()?;
        self.next = maker.next();
        Ok(())
    }

    /// From now on a thread makes the segments, one ahead of the one that is written.
    pub(super) fn make_ahead(self) -> io::Result<Self> {
        let wanted = self.open.as_ref().map_or(self.next, |(open, _)| open + 1);
        let making = match self.making {
            Making::Here(maker) => Making::Ahead(Ahead::start(maker, wanted)?),
            ahead => ahead,
        };
        Ok(Self { making, ..self })
    }

    #[cfg(test)]
    pub(super) fn maker_turns(&self) -> u64 {
        match &self.making {
            Making::Ahead(ahead) => ahead.turns(),
            Making::Here(_) => 0,
        }
    }

    /// Tells how much there is to be written, for the zeros of the segments ahead.
    pub(super) fn set_load(&self, load: Load) {
        if let Making::Ahead(ahead) = &self.making {
            ahead.set_load(load);
        }
    }

    /// Writes whole blocks at `position`; they are durable when it returns. They lie in one segment.
    /// The address of each part is a multiple of [`BLOCK_BYTES`].
    pub(crate) fn write(&mut self, position: u64, parts: &[IoSlice<'_>]) -> Result<(), DiskError> {
        debug_assert!(position.is_multiple_of(BLOCK_BYTES));
        let (number, offset) = (position / self.segment_bytes, position % self.segment_bytes);
        let path = segment_path(&self.folder, number);
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            self.wait_for(number)?;
            let file = self.storage.open(&path).map_err(disk_error("opening", &path))?;
            self.open = Some((number, file));
            if let Making::Ahead(ahead) = &self.making {
                // First: what was told of the segment before would have it hurry.
                ahead.keep_pace(offset);
                ahead.want(number + 1);
            }
        }
        let Some((_, file)) = &self.open else { return Ok(()) };
        file.write_parts(offset, parts).map_err(disk_error("writing", &path))?;
        if let Making::Ahead(ahead) = &self.making {
            let bytes: usize = parts.iter().map(|part| part.len()).sum();
            ahead.keep_pace(offset + bytes as u64);
        }
        Ok(())
    }

    /// Returns when the segment `number` exists.
    fn wait_for(&mut self, number: u64) -> Result<(), DiskError> {
        while self.next <= number {
            self.next = match &mut self.making {
                Making::Here(maker) => {
                    maker.make_some(ZEROS_BYTES)?;
                    maker.next()
                }
                Making::Ahead(ahead) => ahead.wait_for(number)?,
            };
        }
        Ok(())
    }
}
