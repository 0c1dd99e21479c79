//! Writing off a backlog: what is appended and not on disk while the disk is behind. Called by the keeper.
//!
//! Two threads write one piece each, in turns, so that the disk is never without a write: while one write
//! comes to its end, with what the file system has to note for it, the disk already has the next. Meanwhile
//! the keeper copies another piece out of the live window, moves the watermark, and hands what is on disk to
//! the log writer. Pieces may reach the disk in any order; the watermark goes along them in theirs, and what
//! is durable is all that lies below it, as ever.

use std::{
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
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

/// Threads that write.
const LANES: usize = 2;

/// The keeper has at most so many bytes under way to the disk at a time: what lies further back than this
/// from the log's last frame is durable.
pub(crate) const UNDER_WAY_BYTES: u64 = LANES as u64 * PIECE_BYTES;

/// Pieces under way: one is written and one waits for it in each lane.
const PIECES: usize = 2 * LANES;

/// A piece in the memory that it is written from.
type Copied = (MmapMut, Piece);

/// A piece that was written, or why it was not.
type Written = Result<Copied, DiskError>;

/// The disk log, which the threads share but for the writes themselves.
type Shared<'keeper> = Mutex<&'keeper mut DiskLog>;

impl Keeper {
    /// Writes whole pieces until less than one is left or the keeper is to end. Where there is no
    /// memory for that, or no thread, it writes one piece by itself.
    pub(super) fn write_backlog(&mut self) -> Result<(), DiskError> {
        while self.buffers.len() < PIECES {
            let Ok(buffer) = aligned_buffer(PIECE_BYTES) else { return self.write_some() };
            self.buffers.push(buffer);
        }
        let Self { progress, disk, buffers, .. } = self;
        let disk = Mutex::new(disk);
        let has_threads = thread::scope(|scope| match Lanes::start(scope, &disk) {
            Ok(lanes) => lanes.run(progress, buffers).map(|()| true),
            Err(_) => Ok(false),
        })?;
        if has_threads { Ok(()) } else { self.write_some() }
    }
}

/// The keeper's ends of what leads to one thread and back. Dropping them ends it.
struct Lane {
    copied: SyncSender<Copied>,
    written: Receiver<Written>,
}

impl Lane {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        disk: &'scope Shared<'_>,
    ) -> io::Result<Self> {
        let (copied, to_write) = sync_channel(PIECES);
        let (done, written) = sync_channel(PIECES);
        thread::Builder::new()
            .name("keeper-disk".to_owned())
            .spawn_scoped(scope, move || write_all(disk, &to_write, &done))?;
        Ok(Self { copied, written })
    }
}

/// The threads: pieces are given to them in turns, and taken back in the same turns.
struct Lanes([Lane; LANES]);

impl Lanes {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        disk: &'scope Shared<'_>,
    ) -> io::Result<Self> {
        Ok(Self([Lane::start(scope, disk)?, Lane::start(scope, disk)?]))
    }

    fn run(self, progress: &mut Progress, buffers: &mut Vec<MmapMut>) -> Result<(), DiskError> {
        let Self(lanes) = self;
        let mut copied_to = progress.durable();
        // Whose turn it is to get a piece, and to give the oldest one back.
        let (mut next, mut oldest) = (lanes.iter().cycle(), lanes.iter().cycle());
        let mut under_way = 0;
        loop {
            let appended = progress.look();
            while !progress.control.keeper_should_stop()
                && appended - copied_to >= PIECE_BYTES
                && let Some(mut buffer) = buffers.pop()
                && let Some(lane) = next.next()
            {
                let piece = progress.copy(copied_to, appended, &mut buffer);
                copied_to = piece.end;
                under_way += 1;
                // A thread that takes none has panicked, which the scope tells.
                let _ended = lane.copied.send((buffer, piece));
            }
            if under_way == 0 {
                return Ok(());
            }
            let Some(Ok(written)) = oldest.next().map(|lane| lane.written.recv()) else {
                return Ok(());
            };
            let (buffer, piece) = written?;
            under_way -= 1;
            buffers.push(buffer);
            progress.reach(piece.end);
            progress.follow_up();
        }
    }
}

/// A thread: writes what it is given until there is no more, or a write fails.
fn write_all(disk: &Shared<'_>, copied: &Receiver<Copied>, done: &SyncSender<Written>) {
    for (buffer, piece) in copied {
        let written = write(disk, &buffer, &piece);
        let is_last = written.is_err();
        // Nobody takes it when the keeper has panicked, or when a piece before it was not written.
        let _ended = done.send(written.map(|()| (buffer, piece)));
        if is_last {
            return;
        }
    }
}

fn write(disk: &Shared<'_>, buffer: &[u8], piece: &Piece) -> Result<(), DiskError> {
    let bytes = &buffer[..piece.bytes];
    let place = {
        let mut disk = lock(disk);
        disk.set_behind(piece.is_behind_for_long);
        disk.place(piece.start)?
    };
    place.write(bytes)?;
    lock(disk).wrote(&place, bytes.len());
    Ok(())
}

/// Whoever panicked while it held the log has left it as it was.
fn lock<'shared, 'keeper>(
    disk: &'shared Shared<'keeper>,
) -> MutexGuard<'shared, &'keeper mut DiskLog> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}
