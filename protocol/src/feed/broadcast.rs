//! The two ends of the broadcast ring: [`Broadcaster`] writes, each [`BroadcastReader`] reads at its own
//! pace. The rule by which no torn message is ever believed is in [`super::layout`];
//! `tests/loom_broadcast.rs` explores every interleaving of it.
//!
//! Memory is seen as words through [`BroadcastOutput`] and [`BroadcastInput`], so there is no unsafe code
//! here and tests need no shared memory.

use std::sync::Arc;

use super::layout::{BUSY, MARK_WORD, SLOT_WORDS};
use crate::message::MessageHeader;
use crate::sync::{AtomicU64, Ordering, ReadOnlyU64, ReadOnlyWords, fence};
use crate::units::FeedSequence;

/// What the writer sees of the memory.
pub trait BroadcastOutput {
    /// All slots: a power of two of them.
    fn slots(&self) -> &[AtomicU64];
    /// The word that says what is published.
    fn published(&self) -> &AtomicU64;
}

/// What a reader sees of the memory.
pub trait BroadcastInput {
    /// All slots: a power of two of them.
    fn slots(&self) -> ReadOnlyWords<'_>;
    /// The word that says what is published.
    fn published(&self) -> ReadOnlyU64<'_>;
}

/// A message in a buffer as long as a slot. What lies behind it means nothing.
pub type SlotWords = [u64; SLOT_WORDS];

/// Bytes that a message's own header states, header included.
const fn stated_bytes(header: u64) -> usize {
    MessageHeader::BYTES + (u64::from_le(header) & 0xffff) as usize
}

/// Words of a message whose first word is `header`: from the mark up to what a slot holds.
const fn stated_words(header: u64, most: usize) -> usize {
    let words = stated_bytes(header).div_ceil(8);
    if words < MARK_WORD + 1 {
        MARK_WORD + 1
    } else if words > most {
        most
    } else {
        words
    }
}

/// Writes `message`, which states its own length, as number `sequence` into a slot.
#[inline]
pub fn write_slot(slot: &[AtomicU64], sequence: u64, message: &[u64]) {
    let words = stated_words(message[0], slot.len().min(message.len()));
    // SYNC: the fence puts it before every word of the message: a reader that copies one of them and
    // looks at the mark behind a fence of its own sees this mark or a later one.
    slot[MARK_WORD].store(BUSY | sequence, Ordering::Relaxed);
    fence(Ordering::Release);
    for (index, (word, value)) in slot.iter().zip(message).enumerate().take(words) {
        if index != MARK_WORD {
            // SYNC: ordered by the release store below.
            word.store(*value, Ordering::Relaxed);
        }
    }
    // SYNC: pairs with the acquire fence behind the first look in `read_slot`.
    slot[MARK_WORD].store(sequence, Ordering::Release);
}

/// What a reader finds in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Its message is not there yet.
    NotYet,
    /// Its message was copied out whole.
    Copied,
    /// A later message has taken the place, or did while it was copied; this one at the least.
    Overrun(u64),
}

/// Copies message `sequence` out of a slot. Only with [`Found::Copied`] does `into` mean anything.
#[inline]
pub fn read_slot(slot: ReadOnlyWords<'_>, sequence: u64, into: &mut [u64]) -> Found {
    let mut mark = [0];
    slot.copy_to(MARK_WORD, &mut mark);
    // SYNC: pairs with the release store in `write_slot`: who sees the mark sees the message.
    fence(Ordering::Acquire);
    if mark[0] != sequence {
        let other = mark[0] & !BUSY;
        return if other > sequence { Found::Overrun(other) } else { Found::NotYet };
    }
    slot.copy_to(0, &mut into[..1]);
    // What was read may be torn: it decides how much is copied, within the slot, and nothing else.
    let words = stated_words(into[0], slot.len().min(into.len()));
    slot.copy_to(1, &mut into[1..words]);
    // SYNC: pairs with the fence in `write_slot`: if a word of the copy came from a later message, the
    // load below sees that message's mark.
    fence(Ordering::Acquire);
    slot.copy_to(MARK_WORD, &mut mark);
    if mark[0] == sequence {
        // Copied when the slot was already another's, it could differ.
        into[MARK_WORD] = sequence;
        Found::Copied
    } else {
        Found::Overrun(mark[0] & !BUSY)
    }
}

/// The writing end. One per ring.
pub struct Broadcaster<M> {
    memory: M,
    mask: u64,
    last: u64,
}

impl<M: BroadcastOutput> Broadcaster<M> {
    /// Takes the writing end of a ring on which nothing was written yet.
    pub fn new(memory: M) -> Self {
        let mask = (memory.slots().len() / SLOT_WORDS) as u64 - 1;
        Self { memory, mask, last: 0 }
    }

    /// The last message that was written.
    pub fn last(&self) -> FeedSequence {
        FeedSequence(self.last)
    }

    /// Number of slots.
    pub fn slots(&self) -> u64 {
        self.mask + 1
    }

    /// Writes the next message; its second word becomes its sequence.
    #[inline]
    pub fn write(&mut self, message: &mut SlotWords) {
        self.last += 1;
        message[MARK_WORD] = self.last;
        let first = (self.last & self.mask) as usize * SLOT_WORDS;
        write_slot(&self.memory.slots()[first..first + SLOT_WORDS], self.last, message);
    }

    /// Says that all that was written is published.
    #[inline]
    pub fn publish(&mut self) {
        // SYNC: pairs with the acquire load in `BroadcastReader::published`; the messages themselves are
        // handed over by their marks.
        self.memory.published().store(self.last, Ordering::Release);
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

/// The reader was overtaken: messages from `expected` on were overwritten before it had read them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("overrun: message {expected} was overwritten by message {found}")]
pub struct Overrun {
    /// The message that was to be read.
    pub expected: FeedSequence,
    /// What was found in its place.
    pub found: FeedSequence,
}

/// A reading end. Any number of them, and none knows of another.
pub struct BroadcastReader<M> {
    memory: M,
    mask: u64,
    next: u64,
}

impl<M: BroadcastInput> BroadcastReader<M> {
    /// A reader in front of the first message.
    pub fn new(memory: M) -> Self {
        let mask = (memory.slots().len() / SLOT_WORDS) as u64 - 1;
        Self { memory, mask, next: 1 }
    }

    /// Goes behind message `last`, so that the one behind it is read next.
    pub fn seek(&mut self, last: FeedSequence) {
        // Sequences never reach the mark's top bit; a number that does means nothing and is passed over.
        self.next = (last.0 & !BUSY).wrapping_add(1) & !BUSY;
    }

    /// The message that is read next.
    pub fn next_sequence(&self) -> FeedSequence {
        FeedSequence(self.next)
    }

    /// The last message that is published.
    pub fn published(&self) -> FeedSequence {
        // SYNC: pairs with the release store in `Broadcaster::publish`.
        FeedSequence(self.memory.published().load_acquire())
    }

    /// True when a poll would give a message or an overrun.
    #[inline]
    pub fn has_more(&self) -> bool {
        let mut mark = [0];
        self.memory.slots().copy_to(self.first_word() + MARK_WORD, &mut mark);
        mark[0] == self.next || mark[0] & !BUSY > self.next
    }

    /// Copies the next message into `into`; false if it is not there yet.
    ///
    /// # Errors
    /// If it was overwritten. The reader stays where it is until it is told where to [`seek`](Self::seek).
    #[inline]
    pub fn poll(&mut self, into: &mut SlotWords) -> Result<bool, Overrun> {
        let first = self.first_word();
        match read_slot(self.memory.slots().part(first, SLOT_WORDS), self.next, into) {
            Found::NotYet => Ok(false),
            Found::Copied => {
                self.next += 1;
                Ok(true)
            }
            Found::Overrun(found) => {
                Err(Overrun { expected: FeedSequence(self.next), found: FeedSequence(found) })
            }
        }
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    fn first_word(&self) -> usize {
        (self.next & self.mask) as usize * SLOT_WORDS
    }
}

/// A ring within a process, for tests and whoever has both ends.
#[derive(Clone)]
pub struct HeapBroadcast(Arc<(Box<[AtomicU64]>, AtomicU64)>);

impl HeapBroadcast {
    /// A ring of `slots` slots: a power of two. Clones share it.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "{slots} slots");
        let words = (0..slots * SLOT_WORDS).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new((words, AtomicU64::new(0))))
    }
}

impl BroadcastOutput for HeapBroadcast {
    fn slots(&self) -> &[AtomicU64] {
        &self.0.0
    }

    fn published(&self) -> &AtomicU64 {
        &self.0.1
    }
}

impl BroadcastInput for HeapBroadcast {
    fn slots(&self) -> ReadOnlyWords<'_> {
        ReadOnlyWords::new(&self.0.0)
    }

    fn published(&self) -> ReadOnlyU64<'_> {
        ReadOnlyU64::new(&self.0.1)
    }
}

/// The bytes of a message in a slot's words: as many as it states, or all.
#[must_use]
pub fn message_bytes(words: &SlotWords) -> &[u8] {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    &bytes[..stated_bytes(words[0]).min(bytes.len())]
}
