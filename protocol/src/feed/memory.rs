//! The broadcast ring in shared memory: made by the engine, which alone can write it, and mapped without
//! write permission by each reader.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::broadcast::{BroadcastInput, BroadcastOutput};
use super::layout::{
    EVENT_OFFSET, FeedHeader, FeedState, MAGIC, PUBLISHED_OFFSET, READ_OFFSET, SLOT_WORDS,
    SLOTS_MAX, SLOTS_MIN, SLOTS_OFFSET, STATE_OFFSET, VERSION, is_slot_count, memory_bytes,
};
use crate::shm::{PeerAccess, ReadOnlyRegion, Region, Shared, SharedReadOnly, ShmError};
use crate::sync::{AtomicU32, AtomicU64, Ordering, ReadOnlyU64, ReadOnlyWords};
use crate::units::{Incarnation, Position};
use crate::wait::{EventCounter, EventWatch};

/// Why memory is no broadcast ring.
#[derive(Debug, thiserror::Error)]
pub enum FeedMemoryError {
    /// It could not be made or mapped.
    #[error("feed memory: {0}")]
    Shm(#[from] ShmError),
    /// No ring has so many slots.
    #[error("feed of {slots} slots: a power of two from {SLOTS_MIN} to {SLOTS_MAX} is needed")]
    Slots {
        /// What was asked for, or stated.
        slots: u32,
    },
    /// Its header is not what was agreed.
    #[error(
        "feed memory has mark {magic:02x?}, layout {version}, {slots} slots; expected layout {VERSION}, {expected} slots"
    )]
    Header {
        /// Its first eight bytes.
        magic: [u8; 8],
        /// Its layout.
        version: u32,
        /// Its slots.
        slots: u32,
        /// Slots that the engine stated.
        expected: u32,
    },
}

/// The engine's end of the memory.
pub struct FeedOutput {
    slots: Shared<[AtomicU64]>,
    published: Shared<AtomicU64>,
    event: Shared<AtomicU32>,
    state: Shared<AtomicU32>,
    read: Shared<AtomicU64>,
}

impl FeedOutput {
    /// Makes the memory of a ring of `slots` slots; the descriptor is for readers, who cannot write.
    ///
    /// # Errors
    /// If no ring has so many slots, or the system refuses.
    pub fn create(
        slots: u32,
        incarnation: Incarnation,
        log_id: [u8; 16],
    ) -> Result<(Self, OwnedFd), FeedMemoryError> {
        if !is_slot_count(slots) {
            return Err(FeedMemoryError::Slots { slots });
        }
        let (region, descriptor) =
            Region::create("touchline feed", memory_bytes(slots), PeerAccess::ReadOnly)?;
        let header = FeedHeader {
            magic: MAGIC,
            version: VERSION,
            incarnation: incarnation.0,
            log_id,
            slots,
            pid: std::process::id(),
            reserved: 0,
        };
        let words: [u64; size_of::<FeedHeader>() / 8] = bytemuck::cast(header);
        for (word, value) in region.words(0, words.len())?.iter().zip(words) {
            // SYNC: nobody else has the memory yet.
            word.store(value, Ordering::Relaxed);
        }
        let output = Self {
            slots: region.words(SLOTS_OFFSET, slots as usize * SLOT_WORDS)?,
            published: region.u64_at(PUBLISHED_OFFSET)?,
            event: region.u32_at(EVENT_OFFSET)?,
            state: region.u32_at(STATE_OFFSET)?,
            read: region.u64_at(READ_OFFSET)?,
        };
        output.state.store(FeedState::Running as u32, Ordering::Release);
        Ok((output, descriptor))
    }

    /// Says that the log was read up to `position`, and all of it that is public is published.
    pub fn set_read(&self, position: Position) {
        // SYNC: pairs with the acquire load in `FeedInput::read_to`: who sees it sees all messages in front of it.
        self.read.store(position.0, Ordering::Release);
    }

    /// Wakes all readers that sleep; a system call.
    pub fn wake_readers(&self) {
        EventCounter::new(&self.event).advance();
    }

    /// Says that nothing comes any more, and wakes all readers.
    pub fn end(&self) {
        // SYNC: pairs with the acquire load in `FeedInput::has_ended`: who sees it sees all messages.
        self.state.store(FeedState::Ended as u32, Ordering::Release);
        self.wake_readers();
    }
}

impl BroadcastOutput for FeedOutput {
    fn slots(&self) -> &[AtomicU64] {
        &self.slots
    }

    fn published(&self) -> &AtomicU64 {
        &self.published
    }
}

/// A reader's end of the memory.
pub struct FeedInput {
    slots: SharedReadOnly<[AtomicU64]>,
    published: SharedReadOnly<AtomicU64>,
    event: SharedReadOnly<AtomicU32>,
    state: SharedReadOnly<AtomicU32>,
    read: SharedReadOnly<AtomicU64>,
}

impl FeedInput {
    /// Maps the memory of a ring of `slots` slots.
    ///
    /// # Errors
    /// If the descriptor is no sealed memory of that size, or its header says something else.
    pub fn map(descriptor: BorrowedFd<'_>, slots: u32) -> Result<Self, FeedMemoryError> {
        if !is_slot_count(slots) {
            return Err(FeedMemoryError::Slots { slots });
        }
        let region = ReadOnlyRegion::from_descriptor(descriptor.as_fd(), memory_bytes(slots))?;
        let mut words = [0; size_of::<FeedHeader>() / 8];
        region.words(0, words.len())?.view().copy_to(0, &mut words);
        let header: FeedHeader = bytemuck::cast(words);
        if header.magic != MAGIC || header.version != VERSION || header.slots != slots {
            return Err(FeedMemoryError::Header {
                magic: header.magic,
                version: header.version,
                slots: header.slots,
                expected: slots,
            });
        }
        Ok(Self {
            slots: region.words(SLOTS_OFFSET, slots as usize * SLOT_WORDS)?,
            published: region.u64_at(PUBLISHED_OFFSET)?,
            event: region.u32_at(EVENT_OFFSET)?,
            state: region.u32_at(STATE_OFFSET)?,
            read: region.u64_at(READ_OFFSET)?,
        })
    }

    /// True once nothing comes any more; what is published may still be read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // SYNC: pairs with the release store in `FeedOutput::end`.
        self.state.view().load_acquire() != FeedState::Running as u32
    }

    /// Position up to which the feed has read the log; all that is public in front of it is published. `None` if
    /// the engine does not tell.
    #[must_use]
    pub fn read_to(&self) -> Option<Position> {
        // SYNC: pairs with the release store in `FeedOutput::set_read`.
        Some(Position(self.read.view().load_acquire())).filter(|position| position.0 > 0)
    }

    /// What a reader sleeps on.
    #[must_use]
    pub fn events(&self) -> EventWatch<'_> {
        EventWatch::new(self.event.view())
    }
}

impl BroadcastInput for FeedInput {
    fn slots(&self) -> ReadOnlyWords<'_> {
        self.slots.view()
    }

    fn published(&self) -> ReadOnlyU64<'_> {
        self.published.view()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maps memory whose header has this word in the place of its own.
    fn mapped(word: usize, value: u64) -> Result<(), FeedMemoryError> {
        let (region, descriptor) =
            Region::create("touchline feed test", memory_bytes(SLOTS_MIN), PeerAccess::ReadOnly)?;
        let header = FeedHeader {
            magic: MAGIC,
            version: VERSION,
            incarnation: 1,
            log_id: [7; 16],
            slots: SLOTS_MIN,
            pid: 1,
            reserved: 0,
        };
        let mut words: [u64; size_of::<FeedHeader>() / 8] = bytemuck::cast(header);
        words[word] = value;
        for (place, value) in region.words(0, words.len())?.iter().zip(words) {
            place.store(value, Ordering::Relaxed);
        }
        FeedInput::map(descriptor.as_fd(), SLOTS_MIN).map(|_| ())
    }

    #[test]
    fn a_reader_sees_how_far_the_log_was_read() {
        let (output, memory) = FeedOutput::create(SLOTS_MIN, Incarnation(1), [7; 16]).unwrap();
        let input = FeedInput::map(memory.as_fd(), SLOTS_MIN).unwrap();
        assert_eq!(input.read_to(), None, "it was not told");
        output.set_read(Position(4160));
        assert_eq!(input.read_to(), Some(Position(4160)));
        assert_eq!((input.published().load_acquire(), input.has_ended()), (0, false));
    }

    #[test]
    fn memory_of_another_layout_is_not_read() {
        let own = |version: u32| u64::from(version) | 1 << 32;
        assert!(mapped(1, own(VERSION)).is_ok());
        for (word, value) in [
            (0, u64::from_le_bytes(*b"TLINEFEE")),
            (1, own(VERSION + 1)),
            (4, u64::from(SLOTS_MIN * 2)),
        ] {
            let found = mapped(word, value);
            assert!(matches!(found, Err(FeedMemoryError::Header { .. })), "word {word}");
        }
    }
}
