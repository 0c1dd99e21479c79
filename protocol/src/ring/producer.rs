//! The writing end of a ring.

use super::{
    Capacity, MAX_MESSAGE_BYTES, MESSAGE_HEADER_BYTES, ProducerMemory, RingFault,
    layout::{SLOT_BYTES, SLOT_WORDS},
    slots_for, stated_length,
};
use crate::sync::{AtomicU64, Ordering};

/// Why a message was not taken. Nothing of it is in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The consumer has not freed enough slots. Later it may have, unless `needed` is more than the ring has: that
    /// message never fits, however often it is tried ([`Capacity`]).
    #[error("ring full: the message needs {needed} slots, {free} are free")]
    Full {
        /// Slots that the message takes.
        needed: u64,
        /// Slots that are free, staged messages counted as taken.
        free: u64,
    },
    /// No consumer could tell where this message ends.
    #[error(
        "message of {bytes} bytes whose header states {stated}: both must be the same \
         multiple of 8 from 8 to 4096"
    )]
    Unframed {
        /// Length of the bytes given.
        bytes: usize,
        /// Length by the message's own header, itself included; 0 if there is no header.
        stated: usize,
    },
    /// The consumer broke the ring.
    #[error(transparent)]
    Peer(#[from] RingFault),
}

/// The writing end. One per ring, used by one thread at a time.
///
/// Messages are first staged, then published together. What was staged and never published is
/// forgotten with the producer.
pub struct Producer<M> {
    memory: M,
    capacity: Capacity,
    /// The tail that the consumer may see.
    published: u64,
    /// One past the last slot written.
    staged: u64,
    /// The consumer's index when last read; never ahead of `published`.
    head: u64,
    /// One past the last free slot that was brought near, unless `staged` has passed it.
    near: u64,
    fault: Option<RingFault>,
}

impl<M: ProducerMemory> Producer<M> {
    /// Takes the writing end of `memory`, going on where its tail stands.
    pub fn new(memory: M) -> Self {
        let capacity = memory.capacity();
        // SYNC: only this side writes the tail, so there is nothing to pair with.
        let tail = memory.tail().load(Ordering::Relaxed);
        // Taking the ring for full makes the first message read the real head.
        let head = tail.wrapping_sub(capacity.count());
        Self { memory, capacity, published: tail, staged: tail, head, near: tail, fault: None }
    }

    /// Number of slots of the ring.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Free slots, staged messages counted as taken. The consumer's index is read anew only if the
    /// value known from before is less than `wanted`; so the answer is exact when below `wanted`,
    /// and else a lower bound.
    ///
    /// # Errors
    /// If the consumer's index cannot be right, now or before.
    #[inline]
    pub fn free_slots(&mut self, wanted: u64) -> Result<u64, RingFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let free = self.known_free();
        if free >= wanted {
            return Ok(free);
        }
        self.refresh()?;
        Ok(self.known_free())
    }

    /// The consumer's index in slots, read anew: one that stands still while messages wait is the
    /// mark of a reader that hangs.
    ///
    /// # Errors
    /// If the consumer's index cannot be right, now or before.
    pub fn consumed(&mut self) -> Result<u64, RingFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.refresh()?;
        Ok(self.head)
    }

    /// True once the consumer was found to have broken the ring. Looks at nothing.
    pub fn is_broken(&self) -> bool {
        self.fault.is_some()
    }

    /// Slots published since the ring began, the counterpart of [`consumed`](Self::consumed).
    pub fn published(&self) -> u64 {
        self.published
    }

    /// True when something is staged that the consumer does not see yet.
    pub fn has_staged(&self) -> bool {
        self.staged != self.published
    }

    /// Writes `message` behind what is staged. The consumer does not see it before
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// If it does not fit now, is not a framed message, or the consumer broke the ring. Then
    /// nothing of it is staged; what was staged before stays so.
    // A core holds a few dozen stores that wait for a line from another core, in order. Those of a call
    // that is not inlined (registers saved, the result returned through memory) leave room for a third of
    // the slots: the ring is three times slower then.
    #[inline(always)]
    pub fn stage(&mut self, message: &[u8]) -> Result<(), PushError> {
        let header = message.first_chunk::<MESSAGE_HEADER_BYTES>();
        let header = header.map(|header| bytemuck::cast(*header));
        let needed = self.reserve(header, message.len())?;
        self.write(self.staged, message);
        self.staged = self.staged.wrapping_add(needed);
        Ok(())
    }

    /// [`stage`](Self::stage) of a message whose beginning is not yet in one place with what is behind it:
    /// the header and what goes with it in words, then `rest`.
    ///
    /// # Errors
    /// As for `stage`.
    #[inline(always)]
    pub fn stage_behind<const FRONT: usize>(
        &mut self,
        front: &[u64; FRONT],
        rest: &[u8],
    ) -> Result<(), PushError> {
        const { assert!(0 < FRONT && FRONT <= SLOT_WORDS, "the front lies in one slot") }
        let needed = self.reserve(Some(front[0]), FRONT * 8 + rest.len())?;
        let beside = rest.len().min((SLOT_WORDS - FRONT) * 8);
        let (beside, behind) = rest.split_at(beside);
        store_part(self.memory.slots(), self.capacity.first_word(self.staged), front, beside);
        self.write(self.staged.wrapping_add(1), behind);
        self.staged = self.staged.wrapping_add(needed);
        Ok(())
    }

    /// Lets the consumer see all that is staged.
    #[inline]
    pub fn publish(&mut self) {
        if self.staged == self.published {
            return;
        }
        self.published = self.staged;
        // SYNC: pairs with the acquire load of the tail in `Consumer::refresh`: whoever sees this
        // tail sees every slot below it.
        self.memory.tail().store(self.published, Ordering::Release);
    }

    /// [`stage`](Self::stage) and [`publish`](Self::publish) in one.
    ///
    /// # Errors
    /// As for `stage`; then nothing is published.
    #[inline]
    pub fn try_push(&mut self, message: &[u8]) -> Result<(), PushError> {
        self.stage(message)?;
        self.publish();
        Ok(())
    }

    /// How many slots a message of `bytes` bytes takes; an error if its length or its header is none of a message's, or
    /// so many are not free.
    #[inline(always)]
    fn reserve(&mut self, header: Option<u64>, bytes: usize) -> Result<u64, PushError> {
        check_framing(header, bytes)?;
        let needed = slots_for(bytes);
        let free = self.free_slots(needed)?;
        if free < needed {
            return Err(PushError::Full { needed, free });
        }
        Ok(needed)
    }

    /// Fetches the cache lines of the next `slots` slots for writing, as far as they are known to be free: the
    /// consumer's core has read them last. To be called while there is nothing to send; otherwise the next message
    /// waits for these lines while its consumer waits for the message. Calling it again with the same `slots` fetches
    /// none twice.
    #[inline]
    pub fn bring_near(&mut self, slots: u64) {
        let wanted = slots.min(self.known_free());
        if self.near.wrapping_sub(self.staged) > wanted {
            self.near = self.staged;
        }
        let end = self.staged.wrapping_add(wanted);
        while self.near != end {
            let word = &self.memory.slots()[self.capacity.first_word(self.near)];
            // SYNC: of a free slot, which only this side touches. A store, since `touch` in `crate::sync` leaves
            // the line with whoever else has it.
            word.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
            self.near = self.near.wrapping_add(1);
        }
    }

    #[inline]
    fn known_free(&self) -> u64 {
        self.capacity.count() - self.staged.wrapping_sub(self.head)
    }

    #[cold]
    #[inline(never)]
    fn refresh(&mut self) -> Result<(), RingFault> {
        // SYNC: pairs with the release store of the head in `Consumer::release`: the consumer has
        // read the slots below this head before they are written again.
        let head = self.memory.head().load_acquire();
        // One comparison for both sins: going backwards, and passing what was published.
        if head.wrapping_sub(self.head) > self.published.wrapping_sub(self.head) {
            let fault = RingFault::IndexJump {
                head,
                tail: self.published,
                capacity: self.capacity.count(),
            };
            self.fault = Some(fault);
            return Err(fault);
        }
        self.head = head;
        Ok(())
    }

    /// Writes bytes that are known to fit from the slot `index` on. Slot by slot, because copies of a
    /// length known in advance are several times faster.
    #[inline(always)]
    fn write(&self, mut index: u64, bytes: &[u8]) {
        let slots = self.memory.slots();
        let (full, rest) = bytes.as_chunks::<SLOT_BYTES>();
        for bytes in full {
            store(slots, self.capacity.first_word(index), bytemuck::cast(*bytes));
            index = index.wrapping_add(1);
        }
        if !rest.is_empty() {
            store_part(slots, self.capacity.first_word(index), &[], rest);
        }
    }
}

/// Stores `words` into the slot that begins at the word `first`.
#[inline]
fn store(slots: &[AtomicU64], first: usize, words: [u64; SLOT_WORDS]) {
    for (slot, word) in slots[first..first + SLOT_WORDS].iter().zip(words) {
        // SYNC: ordered by the release store of the tail in `publish`.
        slot.store(word, Ordering::Relaxed);
    }
}

/// Stores `front` and the whole words of `bytes` behind it, which fit, into the slot that begins at the word `first`, and
/// zeros into the rest of it. Word by word from where they are: what has just been written in words comes to a copy
/// that loads more at a time only when it has left the core, with all that was written before.
#[inline(always)]
fn store_part<const FRONT: usize>(
    slots: &[AtomicU64],
    first: usize,
    front: &[u64; FRONT],
    bytes: &[u8],
) {
    let (in_front, behind) = slots[first..first + SLOT_WORDS].split_at(FRONT);
    for (slot, word) in in_front.iter().zip(front) {
        // SYNC: as in `store`.
        slot.store(*word, Ordering::Relaxed);
    }
    let (words, _) = bytes.as_chunks::<8>();
    for (index, slot) in behind.iter().enumerate() {
        let word = words.get(index).map_or(0, |bytes| bytemuck::cast(*bytes));
        // SYNC: as in `store`.
        slot.store(word, Ordering::Relaxed);
    }
}

#[inline]
fn check_framing(header: Option<u64>, bytes: usize) -> Result<(), PushError> {
    let stated = header.map_or(0, stated_length);
    if header.is_some() && bytes == stated && bytes.is_multiple_of(8) && bytes <= MAX_MESSAGE_BYTES
    {
        Ok(())
    } else {
        Err(PushError::Unframed { bytes, stated })
    }
}
