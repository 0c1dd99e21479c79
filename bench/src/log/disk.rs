//! The bare disk: what one direct, synchronous write takes, and how many bytes it takes per second.
//! Called by [`super`] in every round, so that what the log does can be told in its terms.
//!
//! Buffers lie in large pages and the largest writes are as large as the keeper's, as whoever wrote to this
//! disk without a log would have them: a yardstick that is slower than it need be flatters.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use memmap2::{Advice, MmapMut};
use rustix::fs::OFlags;
use rustix::io::Errno;
use touchline_protocol::log::{BLOCK_BYTES, SEGMENT_BYTES_DEFAULT, WINDOW_SEGMENT_BYTES};

use super::SMALL_FRAME;
use crate::interrupt;
use crate::latency::{Distribution, Percentiles};
use crate::machine::nanoseconds;
use crate::scratch::Scratch;
use crate::temporary::Temporary;

/// Single blocks written per round.
const WRITES: u64 = 500;

/// Bytes of the largest write: as many as the keeper writes at once when the disk has fallen behind.
const PIECE_BYTES: u64 = 4 * WINDOW_SEGMENT_BYTES;

/// Bytes of the file, which is written over and over.
const FILE_BYTES: u64 = SEGMENT_BYTES_DEFAULT;

/// What bare writes on a schedule took.
#[derive(Default)]
pub(super) struct Bare {
    /// Each write.
    pub(super) writes: Distribution,
    /// From when each record was due to when its write had ended.
    pub(super) durable: Distribution,
}

/// A file of zeros, written past the page cache.
pub(super) struct BareDisk {
    file: File,
    /// Where another file may lie for a while.
    new: PathBuf,
    buffer: MmapMut,
    _folder: Temporary,
}

impl BareDisk {
    /// Makes the file below `scratch`; `None` where the file system refuses direct writes, or is memory.
    pub(super) fn new(scratch: &Path) -> Result<Option<Self>> {
        let folder = Temporary::new(scratch)?;
        // One in memory takes direct writes and has no disk.
        if Scratch::of(folder.path())?.in_memory {
            return Ok(None);
        }
        let path = folder.path().join("bare");
        let mut buffer = MmapMut::map_anon(usize::try_from(PIECE_BYTES)?)?;
        // As the keeper's: from large pages the disk takes more. Where there are none it goes without.
        let _unknown = buffer.advise(Advice::HugePage);
        let file = match reserved(&path, FILE_BYTES) {
            Err(error) if is_refusal(&error) => return Ok(None),
            file => file.with_context(|| format!("cannot make {}", path.display()))?,
        };
        for offset in (0..FILE_BYTES).step_by(buffer.len()) {
            match file.write_all_at(&buffer, offset) {
                Err(error) if is_refusal(&error) => return Ok(None),
                written => written?,
            }
        }
        file.sync_all()?;
        buffer.fill(7);
        let new = folder.path().join("new");
        Ok(Some(Self { file, new, buffer, _folder: folder }))
    }

    /// D: one block after the other.
    pub(super) fn single_writes(&self) -> Result<Percentiles> {
        let mut taken = Distribution::default();
        for write in 0..WRITES {
            interrupt::check()?;
            let begin = Instant::now();
            self.file.write_all_at(
                &self.buffer[..usize::try_from(BLOCK_BYTES)?],
                write * BLOCK_BYTES % FILE_BYTES,
            )?;
            taken.record(nanoseconds(begin.elapsed()));
        }
        Ok(taken.percentiles())
    }

    /// Writes `records` records of [`SMALL_FRAME`] bytes, one of which is due each `period_ns`, as whole
    /// blocks, always all that is due by then in one write: what the keeper does, without a log, a window
    /// or another thread. The first `warm_up` records, and writes of them alone, do not count. Each `turn` writes
    /// behind the one before, as long as there is file.
    pub(super) fn on_schedule(
        &self,
        turn: u64,
        (records, warm_up): (u64, u64),
        period_ns: u64,
        into: &mut Bare,
    ) -> Result<()> {
        let bytes = (records * SMALL_FRAME).next_multiple_of(BLOCK_BYTES);
        ensure!(bytes <= FILE_BYTES, "{records} records are too many for the file");
        let first = turn % (FILE_BYTES / bytes) * bytes;
        let largest = self.buffer.len() as u64 / SMALL_FRAME - BLOCK_BYTES / SMALL_FRAME;
        let begin = Instant::now();
        let mut written = 0;
        while written < records {
            interrupt::check()?;
            let due = nanoseconds(begin.elapsed()) / period_ns + 1;
            let end = due.min(records).min(written + largest);
            if end == written {
                std::hint::spin_loop();
                continue;
            }
            let from = written * SMALL_FRAME / BLOCK_BYTES * BLOCK_BYTES;
            let bytes = (end * SMALL_FRAME).next_multiple_of(BLOCK_BYTES) - from;
            let began = Instant::now();
            self.file.write_all_at(&self.buffer[..usize::try_from(bytes)?], first + from)?;
            let took = nanoseconds(began.elapsed());
            let ended = nanoseconds(begin.elapsed());
            if end > warm_up {
                into.writes.record(took);
            }
            let counted = written.max(warm_up)..end;
            counted.for_each(|record| into.durable.record(ended - record * period_ns));
            written = end;
        }
        Ok(())
    }

    /// Bytes per second in writes of [`PIECE_BYTES`]: into space that is reserved and was never written,
    /// which is where the log of a flood goes, and over what was written before.
    pub(super) fn bytes_per_second(&self, bytes: u64) -> Result<(u64, u64)> {
        let file = reserved(&self.new, bytes)
            .with_context(|| format!("cannot make {}", self.new.display()))?;
        let new = self.fill(&file, bytes, bytes);
        std::fs::remove_file(&self.new)?;
        Ok((new?, self.fill(&self.file, bytes, FILE_BYTES)?))
    }

    /// Writes `bytes` bytes into the first `within` of a file; gives how many per second.
    fn fill(&self, file: &File, bytes: u64, within: u64) -> Result<u64> {
        let begin = Instant::now();
        for offset in (0..bytes).step_by(self.buffer.len()) {
            interrupt::check()?;
            file.write_all_at(&self.buffer, offset % within)?;
        }
        Ok(super::per_second(bytes, nanoseconds(begin.elapsed())))
    }
}

/// A new file with space for so many bytes, whose writes go past the page cache and return when they are
/// durable.
fn reserved(path: &Path, bytes: u64) -> io::Result<File> {
    let flags = (OFlags::DIRECT | OFlags::DSYNC).bits() as i32;
    let file = OpenOptions::new().write(true).create_new(true).custom_flags(flags).open(path)?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
    Ok(file)
}

fn is_refusal(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::INVAL)
}
