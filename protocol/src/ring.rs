//! The single-producer single-consumer ring of 64-byte slots, over which every session talks.
//! Called by the duty thread, the gateway and the client library.
//!
//! A message is an SBE message: an 8-byte header whose first field, a little-endian u16, is the
//! length of the block behind it. It takes as many consecutive slots as its bytes need (wrapping at
//! the end of the ring), the rest of the last slot is zero, and one release store of the tail makes
//! it visible as a whole. Indices count slots, run freely through all of u64 and wrap.
//!
//! Neither side trusts the other. A side keeps its own index in private memory and only publishes
//! it; what it reads of the peer is checked before use, and a message is copied once and judged by
//! that copy alone. The first thing that cannot be right is a [`RingFault`], for good.
//!
//! Memory is seen as words through [`ProducerMemory`] and [`ConsumerMemory`], so there is no unsafe
//! code here: [`HeapRing`] serves within a process, [`SessionEnd`] across two.

mod buffer;
mod consumer;
pub mod layout;
mod memory;
mod producer;
#[cfg(not(loom))]
mod session;

pub use buffer::MessageBuffer;
pub use consumer::Consumer;
pub use memory::{ConsumerMemory, HeapRing, ProducerMemory, heap_ring};
pub use producer::{Producer, PushError};
#[cfg(not(loom))]
pub use session::{
    Alive, PeerMoves, RingCapacities, SessionDescriptors, SessionEnd, SessionError, SharedInput,
    SharedOutput, Signals,
};

use layout::{MAX_SLOTS, SLOT_WORDS};

/// Largest message in bytes, header included: 64 slots.
pub const MAX_MESSAGE_BYTES: usize = 4096;

/// Bytes of the SBE message header that every message starts with.
pub const MESSAGE_HEADER_BYTES: usize = 8;

/// Slots consumed before the consumer publishes its head, unless it sees the ring empty first.
pub const RELEASE_EVERY: u64 = 32;

/// Number of slots of a ring: a power of two, at most [`layout::MAX_SLOTS`].
///
/// The longest message takes 64 slots: a ring of fewer carries only messages that fit into it whole, and is
/// [full](PushError::Full) for every longer one, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity(u32);

impl Capacity {
    /// Checks `slots`.
    ///
    /// # Errors
    /// If it is not a power of two between 1 and [`layout::MAX_SLOTS`].
    pub fn new(slots: usize) -> Result<Self, CapacityError> {
        match u32::try_from(slots) {
            Ok(count) if slots.is_power_of_two() && slots <= MAX_SLOTS => Ok(Self(count)),
            _ => Err(CapacityError { slots, least: 1, most: MAX_SLOTS }),
        }
    }

    /// Number of slots.
    #[inline]
    pub fn slots(self) -> usize {
        self.0 as usize
    }

    /// Number of 64-bit words of all slots.
    #[inline]
    pub fn words(self) -> usize {
        self.slots() * SLOT_WORDS
    }

    #[inline]
    fn count(self) -> u64 {
        u64::from(self.0)
    }

    /// Index of the first word of the slot at the free-running `index`.
    #[inline]
    fn first_word(self, index: u64) -> usize {
        (index & (self.count() - 1)) as usize * SLOT_WORDS
    }
}

/// A number of slots that no ring can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{slots} slots: a power of two from {least} to {most} is needed")]
pub struct CapacityError {
    /// What was asked for.
    pub slots: usize,
    /// Least number of slots allowed there.
    pub least: usize,
    /// Largest number of slots allowed there.
    pub most: usize,
}

/// What the peer wrote and no honest peer writes. The side that sees it uses the ring no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingFault {
    /// The peer's index went backwards, or further than the ring allows.
    #[error("ring index jumped: head {head}, tail {tail}, capacity {capacity} slots")]
    IndexJump {
        /// Consumer's index, in slots.
        head: u64,
        /// Producer's index, in slots.
        tail: u64,
        /// Slots of the ring.
        capacity: u64,
    },
    /// The header states a length in bytes (header included) that is not a multiple of 8.
    #[error("message length of {length} bytes is not a multiple of 8")]
    LengthNotMultipleOf8 {
        /// Stated length in bytes, header included.
        length: usize,
    },
    /// The header states a length beyond [`MAX_MESSAGE_BYTES`].
    #[error("message length of {length} bytes exceeds 4096")]
    TooLong {
        /// Stated length in bytes, header included.
        length: usize,
    },
    /// The header states more slots than were published.
    #[error("message needs {needed} slots, {available} are published")]
    Truncated {
        /// Slots that the stated length needs.
        needed: u64,
        /// Slots between head and tail.
        available: u64,
    },
}

/// Slots that `bytes` bytes take.
#[inline]
fn slots_for(bytes: usize) -> u64 {
    bytes.div_ceil(layout::SLOT_BYTES) as u64
}

/// Total length in bytes that a message's own header states, from the header's bytes seen as a word.
#[inline]
fn stated_length(header: u64) -> usize {
    MESSAGE_HEADER_BYTES + (u64::from_le(header) & 0xffff) as usize
}
