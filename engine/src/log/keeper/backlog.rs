//! Writing off a backlog: what is appended and not on disk while the disk is behind. Called by the keeper.
//!
//! A thread of its own writes one piece after the other, each behind the one before, so that the disk is
//! never without a write. Meanwhile the keeper copies the next piece out of the live window, moves the
//! watermark, and hands what is on disk to the log writer. There is one write at a time, as ever: what is
//! durable is all that lies below what was written last.
//!
//! A piece is all that has come together when its memory is free, up to a bound: what a write costs
//! beside its bytes, above all the file system's note of it in its journal, is paid less often the further the
//! disk is behind.

use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, Scope},
};

use memmap2::MmapMut;
use touchline_protocol::log::WINDOW_SEGMENT_BYTES;

use super::{
    super::{
        ahead::Load,
        disk::{DiskError, DiskLog, aligned_buffer},
    },
    Keeper,
    progress::{Piece, Progress},
};

/// Bytes of a piece at the most. Twice as many gain little more, and keep who waits for the disk waiting.
const PIECE_MAX: u64 = 4 * WINDOW_SEGMENT_BYTES;

/// A piece is no larger than this share of the window, or than one window segment: the log writer gets its
/// room back by so much at a time.
const PIECE_SHARE: u64 = 8;

/// Pieces under way: one is written, the other one is copied or waits. A third would only cut what comes
/// together into smaller ones.
const PIECES: usize = 2;

/// Bytes of a piece of a window of so many bytes, at the most.
fn piece_bytes(window_bytes: u64) -> u64 {
    let share = window_bytes / PIECE_SHARE;
    (share - share % WINDOW_SEGMENT_BYTES).clamp(WINDOW_SEGMENT_BYTES, PIECE_MAX)
}

/// A piece in the memory that it is written from, and how much there is to be written with it.
type Copied = (MmapMut, Piece, Load);

/// A piece that was written, and its memory, or why it was not.
type Written = Result<(MmapMut, Piece), DiskError>;

impl Keeper {
    /// Writes whole window segments until less than one is left or the keeper is to end. Where there is no
    /// memory for that, or no thread, it writes one by itself.
    pub(super) fn write_backlog(&mut self) -> Result<(), DiskError> {
        while self.backlog_buffers.len() < PIECES {
            let bytes = piece_bytes(self.progress.body.bytes());
            let Ok(buffer) = aligned_buffer(bytes) else { return self.write_some() };
            self.backlog_buffers.push(buffer);
        }
        let Self { progress, disk, backlog_buffers: buffers, .. } = self;
        let has_thread = thread::scope(|scope| match Writing::start(scope, disk) {
            Ok(writing) => writing.run(progress, buffers).map(|()| true),
            Err(_) => Ok(false),
        })?;
        if has_thread { Ok(()) } else { self.write_some() }
    }
}

/// The keeper's ends of what leads to the thread and back. Dropping them ends it.
struct Writing {
    copied: SyncSender<Copied>,
    written: Receiver<Written>,
}

impl Writing {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        disk: &'scope mut DiskLog,
    ) -> io::Result<Self> {
        let (copied, to_write) = sync_channel(PIECES);
        let (done, written) = sync_channel(PIECES);
        thread::Builder::new()
            .name("keeper-disk".to_owned())
            .spawn_scoped(scope, move || write(disk, &to_write, &done))?;
        Ok(Self { copied, written })
    }

    fn run(self, progress: &mut Progress, buffers: &mut Vec<MmapMut>) -> Result<(), DiskError> {
        let mut copied_to = progress.durable();
        let mut under_way = 0;
        loop {
            let appended = progress.look();
            while !progress.control.keeper_should_stop()
                && appended - copied_to >= WINDOW_SEGMENT_BYTES
                && let Some(mut buffer) = buffers.pop()
            {
                let piece = progress.copy_segments(copied_to, appended, &mut buffer);
                copied_to = piece.end;
                under_way += 1;
                // A thread that takes none has panicked, which the scope tells.
                let _ended = self.copied.send((buffer, piece, progress.load(appended)));
            }
            if under_way == 0 {
                return Ok(());
            }
            let Ok(written) = self.written.recv() else { return Ok(()) };
            let (buffer, piece) = written?;
            under_way -= 1;
            buffers.push(buffer);
            progress.reach(piece.end);
            progress.follow_up();
        }
    }
}

/// The thread: writes what it is given until there is no more, or a write fails.
fn write(disk: &mut DiskLog, copied: &Receiver<Copied>, done: &SyncSender<Written>) {
    for (buffer, piece, load) in copied {
        disk.set_load(load);
        let written = disk.write(piece.start, &buffer[..piece.bytes]);
        let is_last = written.is_err();
        // Nobody takes it when the keeper has panicked.
        let _ended = done.send(written.map(|()| (buffer, piece)));
        if is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_window_segments_and_a_small_part_of_the_window() {
        let of = |mib: u64| piece_bytes(mib << 20) >> 20;
        assert_eq!([8, 16, 30, 32, 36, 64, 1024].map(of), [2, 2, 2, 4, 4, 8, 8]);
    }
}
