//! How far the log is on disk, and what follows when it moves: the watermark, room in the live window,
//! snapshots. Owned by the keeper's thread.

use std::time::Duration;

use touchline_protocol::log::{BLOCK_BYTES, WINDOW_SEGMENT_BYTES, window_segment_rest};

use super::super::{ahead::Load, control::Control, window::Body};
use crate::snapshot::SnapshotStarter;

/// Of the window so much is kept ready ahead of the tail, at least two segments: the writer goes on for so
/// long while a write to the disk takes its time. The rest holds what was published last, for readers.
const PREPARED_SHARE: u64 = 4;
const PREPARED_MIN: u64 = 2 * WINDOW_SEGMENT_BYTES;

/// When more than this is appended and not on disk, the disk is behind.
const BEHIND: u64 = WINDOW_SEGMENT_BYTES;

/// When this share of a segment was written while it was behind, it is to do nothing else than to write: a
/// burst passes sooner.
const LASTING_SHARE: u64 = 4;

/// What one write brings to disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Where its first block begins.
    pub(super) start: u64,
    /// Its whole blocks, bytes.
    pub(super) bytes: usize,
    /// The log is durable up to here when it is written: a frame ends there.
    pub(super) end: u64,
}

/// The keeper's place in the log.
pub(super) struct Progress {
    pub(super) body: Body,
    pub(super) control: Control,
    durable: u64,
    /// Bytes of the window that are to be ready ahead of the tail.
    prepared_ahead: u64,
    /// Since which position the disk is behind.
    behind_since: Option<u64>,
    /// Has snapshots made, once it is told to.
    snapshots: Option<SnapshotStarter>,
}

impl Progress {
    pub(super) fn new(body: Body, control: Control, durable: u64) -> Self {
        let prepared_ahead = (body.bytes() / PREPARED_SHARE).max(PREPARED_MIN);
        Self { body, control, durable, prepared_ahead, behind_since: None, snapshots: None }
    }

    /// On disk up to here.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// Whether somebody waits for more than is on disk.
    pub(super) fn is_wanted(&self) -> bool {
        self.control.keeper_rest().wanted() > self.durable
    }

    /// Looks how far the log is published.
    pub(super) fn look(&mut self) -> u64 {
        self.body.appended()
    }

    /// Copies what is published from `from` up to `appended`, at most up to the next boundary of a window
    /// segment, where a frame always ends, and at least a byte, to the beginning of `buffer`: from the
    /// beginning of its first block on, and with zeros up to the end of its last one.
    pub(super) fn copy(&self, from: u64, appended: u64, buffer: &mut [u8]) -> Piece {
        let end = appended.min(from + window_segment_rest(from));
        let start = from - from % BLOCK_BYTES;
        let used = (end - start) as usize;
        let bytes = used.next_multiple_of(BLOCK_BYTES as usize);
        self.body.copy(start, &mut buffer[..used]);
        buffer[used..bytes].fill(0);
        Piece { start, bytes, end }
    }

    /// As [`Progress::copy`], and goes on with as many whole window segments as are published, have room in
    /// `buffer` and lie in the same segment of the disk log.
    pub(super) fn copy_segments(&self, from: u64, appended: u64, buffer: &mut [u8]) -> Piece {
        let mut piece = self.copy(from, appended, buffer);
        let segment_bytes = self.control.identity().segment_bytes;
        let segment_end = piece.start - piece.start % segment_bytes + segment_bytes;
        let end = appended.min(segment_end).min(piece.start + buffer.len() as u64);
        while piece.end + WINDOW_SEGMENT_BYTES <= end {
            let next = self.copy(piece.end, appended, &mut buffer[piece.bytes..]);
            piece.bytes += next.bytes;
            piece.end = next.end;
        }
        piece
    }

    /// How much there is to be written when the log is published up to `appended`. It is a flood if the disk was
    /// behind, whenever this was asked, while the last quarter of a segment and more was written.
    pub(super) fn load(&mut self, appended: u64) -> Load {
        if appended - self.durable <= BEHIND {
            self.behind_since = None;
            return Load::Calm;
        }
        let since = *self.behind_since.get_or_insert(self.durable);
        let is_lasting =
            self.durable - since >= self.control.identity().segment_bytes / LASTING_SHARE;
        if is_lasting { Load::Flood } else { Load::Burst }
    }

    /// The log is on disk up to `end`.
    pub(super) fn reach(&mut self, end: u64) {
        self.durable = end;
        self.control.set_durable(end);
        self.control.wake_follower();
    }

    /// Does what the last move allows: hands segments to the tail, as long as few are ready for it and the
    /// lowest one is on disk, and has snapshots made.
    pub(super) fn follow_up(&mut self) {
        let identity = *self.control.identity();
        let appended = self.body.appended();
        let mut has_recycled = false;
        while self.body.prepared() - appended < self.prepared_ahead
            && self.body.recycle(self.durable, |position, segment| {
                if position.is_multiple_of(identity.segment_bytes) {
                    identity.write_header(position / identity.segment_bytes, segment);
                }
            })
        {
            has_recycled = true;
        }
        if has_recycled {
            self.control.wake_duty();
        }
        if self.snapshots.is_none() {
            let schedule = self.control.snapshot_schedule().cloned();
            self.snapshots = schedule.map(SnapshotStarter::new);
        }
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.tick(self.durable);
        }
    }

    /// How long what is to follow may wait, if anything is.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.snapshots.as_ref().map(SnapshotStarter::patience)
    }
}
