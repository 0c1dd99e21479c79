//! Where everything lies in the two shared mappings of a session: offsets and sizes, no behaviour.
//! Read by [`crate::ring`] and by whoever attaches to a session from another language.
//!
//! Each side has one mapping that it alone writes; the peer maps the same pages read-only. Both
//! mappings have the same picture. All integers are in the machine's byte order (little-endian on
//! every supported machine), offsets in bytes:
//!
//! ```text
//!        offset  size
//!             0     8   tail      u64  slots published in the ring that this side produces
//!             8   120   zero
//!           128     8   head      u64  slots consumed in the ring that the peer produces
//!           136   120   zero
//!           256     4   parked    u32  1 while this side sleeps or is about to, else 0
//!           260   124   zero
//!           384     4   doorbell  u32  counts the times this side woke the peer; the peer's futex
//!           388   124   zero
//!           512     4   alive     u32  moved by a client that is watched; else 0, as the engine's is
//!           516  3580   zero
//!          4096  64*n   slots          n = capacity of the ring that this side produces
//!
//!   client pages (client writes, engine reads)      engine pages (engine writes, client reads)
//!   ┌─────────────────────────────┐                 ┌─────────────────────────────┐
//!   │ tail of the request ring    │────────────────►│ head of the request ring    │
//!   │ head of the reply ring      │◄────────────────│ tail of the reply ring      │
//!   │ client parked, its doorbell │                 │ engine parked, its doorbell │
//!   │ client alive                │                 │                             │
//!   ├─────────────────────────────┤                 ├─────────────────────────────┤
//!   │ request slots               │                 │ reply slots                 │
//!   └─────────────────────────────┘                 └─────────────────────────────┘
//!
//!   a slot, and a message of 136 bytes in three of them
//!   ┌────────────────┬──────────────────────────────────────────────┐
//!   │ SBE header  8  │ block, bytes 0..56                           │
//!   ├────────────────┴──────────────────────────────────────────────┤
//!   │ block, bytes 56..120                                          │
//!   ├────────────────┬──────────────────────────────────────────────┤
//!   │ block 120..128 │ zero                                         │
//!   └────────────────┴──────────────────────────────────────────────┘
//! ```
//!
//! Words that one side writes often are 128 bytes apart: two cache lines, because the adjacent-line
//! prefetcher fetches lines in pairs.

/// Bytes of a slot: one cache line.
pub const SLOT_BYTES: usize = 64;

/// 64-bit words of a slot.
pub const SLOT_WORDS: usize = SLOT_BYTES / 8;

/// Distance in bytes between words that are written independently.
pub const LINE_BYTES: usize = 128;

/// Offset of the u64 tail of the ring that the owner of the pages produces.
pub const TAIL_OFFSET: usize = 0;

/// Offset of the u64 head of the ring that the owner of the pages consumes.
pub const HEAD_OFFSET: usize = LINE_BYTES;

/// Offset of the owner's u32 parked flag.
pub const PARKED_OFFSET: usize = 2 * LINE_BYTES;

/// Offset of the u32 doorbell by which the owner wakes its peer.
pub const DOORBELL_OFFSET: usize = 3 * LINE_BYTES;

/// Offset of the u32 that the owner moves to show that it goes on, where its peer watches for that.
pub const ALIVE_OFFSET: usize = 4 * LINE_BYTES;

/// Offset of the first slot: a page boundary.
pub const SLOTS_OFFSET: usize = 4096;

/// Least number of slots of a session's ring (small rings make batches small).
pub const MIN_SESSION_SLOTS: usize = 1024;

/// Largest number of slots of any ring: 1 MiB; beyond a few MiB the address translation misses.
pub const MAX_SLOTS: usize = 16_384;

/// Bytes of the pages whose owner produces into a ring of `slots` slots.
pub const fn pages_bytes(slots: usize) -> usize {
    SLOTS_OFFSET + slots * SLOT_BYTES
}

const _: () = {
    assert!(SLOT_BYTES == 64 && SLOT_WORDS * 8 == SLOT_BYTES);
    assert!(TAIL_OFFSET == 0 && HEAD_OFFSET == 128);
    assert!(PARKED_OFFSET == 256 && DOORBELL_OFFSET == 384);
    assert!(ALIVE_OFFSET == 512 && ALIVE_OFFSET + LINE_BYTES <= SLOTS_OFFSET);
    assert!(SLOTS_OFFSET == 4096);
    assert!(MIN_SESSION_SLOTS.is_power_of_two() && MAX_SLOTS.is_power_of_two());
    assert!(pages_bytes(MIN_SESSION_SLOTS) == 69_632);
    assert!(pages_bytes(MAX_SLOTS) == 1_052_672);
};
