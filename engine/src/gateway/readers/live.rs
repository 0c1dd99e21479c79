//! The broadcast ring as the gateway reads it, for readers over streams: what comes next for each, in
//! pieces that are made once for all who stand at the same message. Nobody waits for the gateway either: what
//! was overwritten before it was read is told as a gap. Called by [`super`].

use touchline_protocol::feed::FeedInput;
use touchline_protocol::feed::broadcast::{BroadcastReader, SlotWords, message_bytes};
use touchline_protocol::feed::layout::{SLOT_BYTES, SLOT_WORDS};
use touchline_protocol::message::feed::FeedGap;
use touchline_protocol::units::FeedSequence;

use super::PIECE_BYTES;

/// How far the feed is, as far as anybody has looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reached {
    published: FeedSequence,
    has_ended: bool,
}

/// The gateway's own reading end.
pub(super) struct Live {
    ring: BroadcastReader<FeedInput>,
    message: Box<SlotWords>,
    /// The last piece: what comes behind message `from`, up to `to`.
    piece: Vec<u8>,
    from: FeedSequence,
    to: FeedSequence,
}

impl Live {
    /// Over the ring's memory.
    pub(super) fn new(memory: FeedInput) -> Self {
        Self {
            ring: BroadcastReader::new(memory),
            message: Box::new([0; SLOT_WORDS]),
            piece: Vec::with_capacity(PIECE_BYTES),
            from: FeedSequence(0),
            to: FeedSequence(0),
        }
    }

    pub(super) fn reached(&self) -> Reached {
        // The end first: behind it nothing is published any more.
        let has_ended = self.ring.memory().has_ended();
        Reached { published: self.ring.published(), has_ended }
    }

    pub(super) fn published(&self) -> FeedSequence {
        self.ring.published()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ring.memory().has_ended()
    }

    /// Whole messages for who has everything up to `last`, none if there are none, and the last message
    /// that a reader then has.
    pub(super) fn piece_behind(&mut self, last: FeedSequence) -> (&[u8], FeedSequence) {
        if self.from != last || self.piece.is_empty() {
            self.read_behind(last);
        }
        (&self.piece, self.to)
    }

    fn read_behind(&mut self, last: FeedSequence) {
        self.piece.clear();
        self.from = last;
        self.ring.seek(last);
        while self.piece.len() + SLOT_BYTES <= PIECE_BYTES {
            match self.ring.poll(&mut self.message) {
                Ok(true) => self.piece.extend_from_slice(message_bytes(&self.message)),
                Ok(false) => break,
                // What was copied is whole; the gap is told next.
                Err(_) if !self.piece.is_empty() => break,
                Err(overrun) => {
                    let from = overrun.expected;
                    // With the newest: a reader that was too slow is to catch up. What is written may be
                    // more than a lap ahead of what is published.
                    self.ring.seek(self.ring.published().max(overrun.found));
                    let next = self.ring.next_sequence();
                    let gap = FeedGap { from, next, ..Default::default() };
                    self.piece.extend_from_slice(bytemuck::bytes_of(&gap));
                    break;
                }
            }
        }
        self.to = FeedSequence(self.ring.next_sequence().0.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests;
