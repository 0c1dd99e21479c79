//! Writing a snapshot so that the log beside it hardly feels it: the disk is the log's too, its time and its
//! room. Called where snapshots are made.

use std::fs::File;
use std::io::{self, Write};

use rustix::fs::fstatvfs;

use crate::host::free_of;

/// How much of a snapshot is written before it is synced.
pub(super) const SYNC_BYTES: usize = 4 << 20;

/// Log segments that are to find room on the disk behind a snapshot.
const SEGMENTS_KEPT_FREE: u64 = 2;

/// A file that is synced as it grows: the disk is the log's too, and one sync of all at the end would
/// keep it from the engine for as long as that takes.
pub(super) struct Paced<'file> {
    file: &'file File,
    unsynced: usize,
    room: Room,
}

impl<'file> Paced<'file> {
    /// Of a new file, beside a log whose segments have so many bytes.
    ///
    /// # Errors
    /// If there is no room beside what is left to the log.
    pub(super) fn new(file: &'file File, segment_bytes: u64) -> io::Result<Self> {
        let room = Room::of(segment_bytes);
        room.check(file)?;
        Ok(Self { file, unsynced: 0, room })
    }
}

/// What is left of the disk to the log, whose next segments must find room.
struct Room {
    /// Bytes that are to stay free.
    kept: u64,
    /// Bytes that are free where a file lies.
    free: fn(&File) -> io::Result<u64>,
}

impl Room {
    /// For a log of such segments.
    const fn of(segment_bytes: u64) -> Self {
        Self { kept: SEGMENTS_KEPT_FREE * segment_bytes, free: free_bytes }
    }

    fn check(&self, file: &File) -> io::Result<()> {
        let free = (self.free)(file)?;
        if free >= self.kept + SYNC_BYTES as u64 {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!(
                "{free} bytes are free, and {} of them are left to the log for its next \
                 {SEGMENTS_KEPT_FREE} segments: make room, or prune",
                self.kept
            ),
        ))
    }
}

fn free_bytes(file: &File) -> io::Result<u64> {
    Ok(free_of(&fstatvfs(file)?))
}

impl Write for Paced<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written;
        if self.unsynced >= SYNC_BYTES {
            self.flush()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unsynced = 0;
        self.file.sync_data()?;
        self.room.check(self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_ends_where_the_log_needs_the_rest_of_the_disk() {
        let file = tempfile::tempfile().unwrap();
        let enough: fn(&File) -> io::Result<u64> = |_| Ok(9 << 20);
        let less: fn(&File) -> io::Result<u64> = |file| Ok((13 << 20) - file.metadata()?.len());
        let mut whole =
            Paced { file: &file, unsynced: 0, room: Room { kept: 5 << 20, free: enough } };
        for _ in 0..4 {
            whole.write_all(&[7; 2 << 20]).unwrap();
        }
        file.set_len(0).unwrap();
        let mut cut = Paced { room: Room { kept: 5 << 20, free: less }, ..whole };
        let mut written = 0;
        let error = loop {
            match cut.write_all(&[7; 1 << 20]) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("left to the log"), "{error}");
        // Never into what is kept.
        assert!(written < 8, "{written} MiB of 13, of which 5 are kept");
        assert!(free_bytes(&file).is_ok());
        let of_no_size = File::open("/proc/self/stat").unwrap();
        assert_eq!(free_bytes(&of_no_size).unwrap(), u64::MAX);
    }
}
