//! What the fold gives: the messages of one transaction, each in words of its own. Called by [`super`], and
//! read by the feed thread.

use touchline_protocol::feed::broadcast::SlotWords;
use touchline_protocol::feed::layout::SLOT_WORDS;
use touchline_protocol::message::Message;
use touchline_protocol::message::feed::{
    FEED_FLAGS_OFFSET, FEED_LAST, FeedSymbolChanged, FeedTrade,
};
use touchline_protocol::units::Position;

/// The messages of one transaction, in order; each in words of its own, as a slot of the ring has them.
#[derive(Debug, Default)]
pub struct Messages(Vec<SlotWords>);

impl Messages {
    pub(super) fn push<M: Message>(&mut self, message: &M) {
        const { assert!(size_of::<M>() <= size_of::<SlotWords>()) };
        let mut words = [0; SLOT_WORDS];
        bytemuck::cast_slice_mut(&mut words)[..size_of::<M>()]
            .copy_from_slice(bytemuck::bytes_of(message));
        self.0.push(words);
    }

    /// The messages; their sequences are zero.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut SlotWords> {
        self.0.iter_mut()
    }

    /// Number of messages.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// True without messages.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets those of an earlier transaction.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Puts into each message where its transaction stands, and marks the last one.
    pub(super) fn finish(&mut self, position: Position, time_ns: u64) {
        for words in &mut self.0 {
            words[POSITION_WORD] = position.0;
            words[TIME_WORD] = time_ns;
        }
        if let Some(last) = self.0.last_mut() {
            bytemuck::cast_slice_mut::<u64, u8>(last)[FEED_FLAGS_OFFSET] |= FEED_LAST;
        }
    }
}

/// Words of every message of the feed that hold position and time.
const POSITION_WORD: usize = 2;
const TIME_WORD: usize = 3;
const _: () = {
    assert!(core::mem::offset_of!(FeedTrade, position) == POSITION_WORD * 8);
    assert!(core::mem::offset_of!(FeedTrade, time_ns) == TIME_WORD * 8);
    assert!(core::mem::offset_of!(FeedSymbolChanged, position) == POSITION_WORD * 8);
    assert!(core::mem::offset_of!(FeedSymbolChanged, flags) == FEED_FLAGS_OFFSET);
    assert!(core::mem::offset_of!(FeedTrade, flags) == FEED_FLAGS_OFFSET);
};
