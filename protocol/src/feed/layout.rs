//! Where everything lies in the memory of the public feed's broadcast ring: offsets and sizes, no
//! behaviour. Written by the engine's feed thread, mapped read-only by readers.
//!
//! All integers little-endian, offsets in bytes:
//!
//! ```text
//!  offset  size
//!       0    48   FeedHeader   written once, before anybody gets the memory
//!     128     8   published  u64  sequence of the last message that is published; 0: none yet
//!     256     4   event      u32  counts publications while there are readers; a futex
//!     384     4   state      u32  FeedState
//!     388   124   zero
//!     512     8   read       u64  position up to which the feed has read the log: all that is public in front of
//!                                 it is published; 0 if the engine does not tell
//!     520  3576   zero
//!    4096  128*n  slots           n = slots of the header
//! ```
//!
//! A slot holds one message, from its beginning on; what lies behind the message in its slot means
//! nothing. The message with sequence `s` lies in slot `s mod n`. Its own sequence, the second word of
//! each message of the feed, is also the slot's mark:
//!
//! ```text
//!   writer of message s                   reader of message s
//!   mark := BUSY | s                      mark = s ?   else see below
//!   fence                                 copy the message, word by word
//!   write the message but for its mark    fence
//!   mark := s, release                    mark = s ?   else throw the copy away: overrun
//! ```
//!
//! A mark below `s`, or `BUSY | s`: not there yet. A mark above `s`, busy or not: overrun. Slots are two
//! cache lines, because the adjacent-line prefetcher fetches lines in pairs; most messages take one.

use bytemuck::{Pod, Zeroable};

/// The first eight bytes.
pub const MAGIC: [u8; 8] = *b"TLINEFED";

/// Version of this layout; any other is refused.
pub const VERSION: u32 = 1;

/// Offset of the u64 sequence of the last published message.
pub const PUBLISHED_OFFSET: usize = 128;

/// Offset of the u32 that counts publications.
pub const EVENT_OFFSET: usize = 256;

/// Offset of the u32 [`FeedState`].
pub const STATE_OFFSET: usize = 384;

/// Offset of the u64 position up to which the feed has read the log.
pub const READ_OFFSET: usize = 512;

/// Offset of the first slot.
pub const SLOTS_OFFSET: usize = 4096;

/// Bytes of a slot; the longest message of the feed is shorter.
pub const SLOT_BYTES: usize = 128;

/// 64-bit words of a slot.
pub const SLOT_WORDS: usize = SLOT_BYTES / 8;

/// Which word of a slot is its mark: where a message has its sequence.
pub const MARK_WORD: usize = 1;

/// Which word of a message is the position behind its transaction.
pub const POSITION_WORD: usize = 2;

/// Set in the mark while the slot is written.
pub const BUSY: u64 = 1 << 63;

/// Fewest slots of a ring.
pub const SLOTS_MIN: u32 = 1024;

/// Most slots of a ring: 1 GiB.
pub const SLOTS_MAX: u32 = 1 << 23;

/// What holds for the whole life of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct FeedHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// Incarnation of the engine that made it.
    pub incarnation: u32,
    /// The log, as in its segment headers.
    pub log_id: [u8; 16],
    /// Number of slots: a power of two.
    pub slots: u32,
    /// Process id of the engine.
    pub pid: u32,
    /// Zero.
    pub reserved: u64,
}

/// Whether anything may still come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum FeedState {
    /// The engine writes it.
    Running = 1,
    /// The engine ended, or its feed did: what is published is all there is.
    Ended = 2,
}

/// Bytes of the memory of a ring of so many slots.
#[must_use]
pub const fn memory_bytes(slots: u32) -> usize {
    SLOTS_OFFSET + slots as usize * SLOT_BYTES
}

/// True for a number of slots that a ring may have.
#[must_use]
pub const fn is_slot_count(slots: u32) -> bool {
    slots.is_power_of_two() && slots >= SLOTS_MIN && slots <= SLOTS_MAX
}

const _: () = {
    assert!(size_of::<FeedHeader>() == 48);
    assert!(core::mem::offset_of!(FeedHeader, version) == 8);
    assert!(core::mem::offset_of!(FeedHeader, incarnation) == 12);
    assert!(core::mem::offset_of!(FeedHeader, log_id) == 16);
    assert!(core::mem::offset_of!(FeedHeader, slots) == 32);
    assert!(core::mem::offset_of!(FeedHeader, pid) == 36);
    assert!(PUBLISHED_OFFSET == 128 && EVENT_OFFSET == 256 && STATE_OFFSET == 384);
    assert!(READ_OFFSET == 512 && READ_OFFSET + 8 <= SLOTS_OFFSET);
    assert!(SLOTS_OFFSET.is_multiple_of(SLOT_BYTES));
    assert!(FeedState::Running as u32 == 1 && FeedState::Ended as u32 == 2);
};
