//! How far the log is on disk, and what follows when it moves: the watermark, room in the live window,
//! snapshots. Owned by the keeper's thread.

use std::{io::IoSlice, time::Duration};

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

/// Bytes of a piece at the most. Twice as many gain little more, and keep who waits for the disk waiting.
const PIECE_MAX: u64 = 4 * WINDOW_SEGMENT_BYTES;

/// A piece is no larger than this share of the window, or than one window segment: the log writer gets its
/// room back by so much at a time.
const PIECE_SHARE: u64 = 8;

/// What one write brings to disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Where its first block begins.
    pub(super) start: u64,
    /// The log is durable up to here when it is written: a frame ends there.
    pub(super) end: u64,
}

/// Bytes of a piece of a window of so many bytes, at the most.
fn piece_bytes(window_bytes: u64) -> u64 {
    let share = window_bytes / PIECE_SHARE;
    (share - share % WINDOW_SEGMENT_BYTES).clamp(WINDOW_SEGMENT_BYTES, PIECE_MAX)
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

    /// What the next write brings to disk of what is published up to `appended`, which is more than is on
    /// disk: all of it, or so many window segments, where a frame always ends, as are published, lie one
    /// behind the other in window and disk, and are not too many for one write.
    pub(super) fn next_piece(&self, appended: u64) -> Piece {
        let start = self.durable - self.durable % BLOCK_BYTES;
        let segment_bytes = self.control.identity().segment_bytes;
        let reach = (segment_bytes - start % segment_bytes)
            .min(self.body.lap_rest(start))
            .min(piece_bytes(self.body.bytes()));
        let limit = appended.min(start + reach);
        let is_one = limit - self.durable <= window_segment_rest(self.durable);
        let end = if is_one { limit } else { limit - limit % WINDOW_SEGMENT_BYTES };
        Piece { start, end }
    }

    /// A piece as it is to be written: its full blocks as they lie in the window, and the one that is not
    /// full, if there is one, copied into `last` with zeros behind it.
    pub(super) fn blocks<'a>(&'a self, piece: Piece, last: &'a mut [u8]) -> [IoSlice<'a>; 2] {
        let full_to = piece.end - piece.end % BLOCK_BYTES;
        let full = self.body.published(piece.start, full_to);
        let begun = self.body.published(full_to, piece.end);
        let last = &mut last[..begun.len().next_multiple_of(BLOCK_BYTES as usize)];
        let (copied, zeros) = last.split_at_mut(begun.len());
        copied.copy_from_slice(begun);
        zeros.fill(0);
        [IoSlice::new(full), IoSlice::new(last)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_window_segments_and_a_small_part_of_the_window() {
        let of = |mib: u64| piece_bytes(mib << 20) >> 20;
        assert_eq!([8, 16, 30, 32, 36, 64, 1024].map(of), [2, 2, 2, 4, 4, 8, 8]);
    }
}
