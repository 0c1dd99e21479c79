//! How far the log is on disk, and what follows when it moves: the watermark, room in the live window,
//! snapshots. Owned by the keeper's thread.

use std::{io::IoSlice, time::Duration};

use touchline_protocol::log::{BLOCK_BYTES, WINDOW_SEGMENT_BYTES};

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

impl Piece {
    /// What the next write brings to disk where the log is durable up to `durable` and published up to
    /// `appended`, which is higher, in segments and in a window of so many bytes: all of it, or so many window
    /// segments, where a frame always ends, as lie one behind the other in window and disk, and are not too many
    /// for one write.
    fn next(durable: u64, appended: u64, segment_bytes: u64, window_bytes: u64) -> Self {
        let start = durable - durable % BLOCK_BYTES;
        let reach = (segment_bytes - start % segment_bytes)
            .min(window_bytes - start % window_bytes)
            .min(piece_bytes(window_bytes));
        let limit = start + reach;
        let end = if appended <= limit { appended } else { limit - limit % WINDOW_SEGMENT_BYTES };
        Self { start, end }
    }

    /// Its blocks as they are to be written: those that are full, where they lie in the window, and the one that
    /// is not, if there is one, copied into `last` with zeros behind it.
    fn blocks<'a>(&self, body: &'a Body, last: &'a mut [u8]) -> [IoSlice<'a>; 2] {
        let full_to = self.end - self.end % BLOCK_BYTES;
        let full = body.published(self.start, full_to);
        let begun = body.published(full_to, self.end);
        let last = &mut last[..begun.len().next_multiple_of(BLOCK_BYTES as usize)];
        let (copied, zeros) = last.split_at_mut(begun.len());
        copied.copy_from_slice(begun);
        zeros.fill(0);
        [IoSlice::new(full), IoSlice::new(last)]
    }
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

    /// What the next write brings to disk of what is published up to `appended`, which is more than is on disk.
    pub(super) fn next_piece(&self, appended: u64) -> Piece {
        let segment_bytes = self.control.identity().segment_bytes;
        Piece::next(self.durable, appended, segment_bytes, self.body.bytes())
    }

    /// The blocks of a piece, the last of which may lie in `last`, a block.
    pub(super) fn blocks<'a>(&'a self, piece: Piece, last: &'a mut [u8]) -> [IoSlice<'a>; 2] {
        piece.blocks(&self.body, last)
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

    /// Whether it knows when to have snapshots made.
    pub(super) fn has_schedule(&self) -> bool {
        self.snapshots.is_some()
    }

    /// How long what is to follow may wait, if anything is.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.snapshots.as_ref().map(SnapshotStarter::patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::window::tests::{publish, window};
    use proptest::prelude::*;

    #[test]
    fn pieces_are_whole_window_segments_and_a_small_part_of_the_window() {
        let of = |mib: u64| piece_bytes(mib << 20) >> 20;
        assert_eq!([8, 16, 30, 32, 36, 64, 1024].map(of), [2, 2, 2, 4, 4, 8, 8]);
    }

    proptest! {
        #[test]
        fn pieces_lie_in_one_stretch_of_window_and_disk_and_end_where_a_frame_does(
            durable in 1_u64..1 << 30,
            behind in prop_oneof![1_u64..3 * BLOCK_BYTES, 1_u64..80 << 20],
            (segment, window) in (1_u64..40, 4_u64..40),
        ) {
            let [segment, window] = [segment, window].map(|segments| segments * WINDOW_SEGMENT_BYTES);
            let appended = durable + behind.min(window);
            let mut reached = durable;
            while reached < appended {
                let Piece { start, end } = Piece::next(reached, appended, segment, window);
                prop_assert_eq!(start, reached - reached % BLOCK_BYTES);
                prop_assert!(reached < end && end <= appended);
                prop_assert_eq!(start / segment, (end - 1) / segment, "one file");
                prop_assert_eq!(start / window, (end - 1) / window, "one lap");
                prop_assert!(end - start <= piece_bytes(window));
                prop_assert!(end == appended || end.is_multiple_of(WINDOW_SEGMENT_BYTES));
                reached = end;
            }
        }
    }

    #[test]
    fn only_a_block_that_is_not_full_is_copied() {
        let (mut tail, mut body, _control) = window();
        publish(&mut tail, WINDOW_SEGMENT_BYTES);
        tail.publish(WINDOW_SEGMENT_BYTES + 100);
        body.appended();
        let mut last = vec![7; BLOCK_BYTES as usize];
        let lent = body.published(BLOCK_BYTES, WINDOW_SEGMENT_BYTES).as_ptr();
        let mut of = |end, copied: usize| {
            let piece = Piece { start: BLOCK_BYTES, end };
            let [full, last] = piece.blocks(&body, &mut last);
            assert_eq!(full.as_ptr(), lent);
            assert_eq!(full.len() as u64, end - end % BLOCK_BYTES - BLOCK_BYTES);
            assert_eq!(last.len(), copied.next_multiple_of(BLOCK_BYTES as usize));
            assert!(last[..copied].iter().all(|&byte| byte == 1));
            assert!(last[copied..].iter().all(|&byte| byte == 0), "zeros behind {copied} bytes");
        };
        of(3 * BLOCK_BYTES - 1, BLOCK_BYTES as usize - 1);
        of(2 * BLOCK_BYTES + 9, 9);
        of(BLOCK_BYTES + 9, 9);
        of(2 * BLOCK_BYTES, 0);
        of(WINDOW_SEGMENT_BYTES, 0);
    }
}
