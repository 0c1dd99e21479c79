//! Writing off a backlog: what is appended and not on disk while the disk is behind. Called by the keeper.
//!
//! A thread of its own writes one piece after the other, each behind the one before, so that the disk is
//! never without a write. Meanwhile the keeper copies the next piece out of the live window, moves the
//! watermark, and hands what is on disk to the log writer. There is one write at a time, as ever: what is
//! durable is all that lies below what was written last.

use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, Scope},
};

use memmap2::MmapMut;
use touchline_protocol::log::WINDOW_SEGMENT_BYTES;

use super::{
    super::disk::{DiskError, DiskLog, aligned_buffer},
    Keeper,
    progress::{Piece, Progress},
};

/// Bytes of a piece.
pub(super) const PIECE_BYTES: u64 = WINDOW_SEGMENT_BYTES;

/// Pieces under way: one is written, one waits for it, one is copied.
const PIECES: usize = 3;

/// A piece in the memory that it is written from.
type Copied = (MmapMut, Piece);

/// A piece that was written, or why it was not.
type Written = Result<Copied, DiskError>;

impl Keeper {
    /// Writes whole pieces until less than one is left or the keeper is to end. Where there is no
    /// memory for that, or no thread, it writes one piece by itself.
    pub(super) fn write_backlog(&mut self) -> Result<(), DiskError> {
        while self.buffers.len() < PIECES {
            let Ok(buffer) = aligned_buffer(PIECE_BYTES) else { return self.write_some() };
            self.buffers.push(buffer);
        }
        let Self { progress, disk, buffers, .. } = self;
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
                && appended - copied_to >= PIECE_BYTES
                && let Some(mut buffer) = buffers.pop()
            {
                let piece = progress.copy(copied_to, appended, &mut buffer);
                copied_to = piece.end;
                under_way += 1;
                // A thread that takes none has panicked, which the scope tells.
                let _ended = self.copied.send((buffer, piece));
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
    for (buffer, piece) in copied {
        disk.set_behind(piece.is_behind_for_long);
        let written = disk.write(piece.start, &buffer[..piece.bytes]);
        let is_last = written.is_err();
        // Nobody takes it when the keeper has panicked.
        let _ended = done.send(written.map(|()| (buffer, piece)));
        if is_last {
            return;
        }
    }
}
