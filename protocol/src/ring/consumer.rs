//! The reading end of a ring. Whatever the other side writes, it ends in a message or a fault.

use super::{
    Capacity, ConsumerMemory, MAX_MESSAGE_BYTES, MessageBuffer, RELEASE_EVERY, RingFault,
    layout::SLOT_WORDS, slots_for, stated_length,
};
use crate::sync::Ordering;

/// Slots that are brought near ahead of the message that is read: the replies of some four orders.
const LOOK_AHEAD: u64 = 16;

/// Block lengths of messages that take one slot: multiples of 8 up to 56.
const ONE_SLOT_LENGTHS: u64 = 0x38;

/// Slots that are brought near by a look whether there are any: those of an order.
const LONGEST_ORDER: u64 = 3;

/// The reading end. One per ring, used by one thread at a time.
pub struct Consumer<M> {
    memory: M,
    capacity: Capacity,
    /// One past the last slot read. Private: what the peer could write never becomes this.
    head: u64,
    /// The head that the producer may see.
    released: u64,
    /// The producer's index when last read.
    tail: u64,
    /// One past the last slot that was brought near; at most `tail`, unless there is a fault, and at most
    /// [`LOOK_AHEAD`] past `head`.
    near: u64,
    fault: Option<RingFault>,
}

impl<M: ConsumerMemory> Consumer<M> {
    /// Takes the reading end of `memory`, going on where its head stands.
    pub fn new(memory: M) -> Self {
        let capacity = memory.capacity();
        // SYNC: only this side writes the head, so there is nothing to pair with.
        let head = memory.head().load(Ordering::Relaxed);
        Self { memory, capacity, head, released: head, tail: head, near: head, fault: None }
    }

    /// Number of slots of the ring.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Copies the next message into `into` and returns its length in bytes (a multiple of 8 from 8
    /// to [`MAX_MESSAGE_BYTES`]); `None` if there is none. Only the framing is checked here; what
    /// the message says is checked by its reader, in the copy.
    ///
    /// # Errors
    /// If the producer broke the ring, now or before: then each later poll gives the same fault.
    #[inline(always)]
    pub fn poll(&mut self, into: &mut MessageBuffer) -> Result<Option<usize>, RingFault> {
        // Handed on in a register: a result in memory would be read in another size than it was stored in, which
        // waits for all stores in front of it, the message's and the last replies' too.
        match self.poll_length(into) {
            0 => self.fault.map_or(Ok(None), Err),
            length => Ok(Some(length)),
        }
    }

    /// As [`poll`](Self::poll): 0 if there is no message or a fault.
    #[inline(always)]
    fn poll_length(&mut self, into: &mut MessageBuffer) -> usize {
        if self.tail == self.head {
            match self.find() {
                Ok(true) => {}
                Ok(false) => {
                    self.release();
                    return 0;
                }
                Err(_) => return 0,
            }
        }
        self.look_ahead();
        let length = self.take(into);
        if self.head.wrapping_sub(self.released) >= RELEASE_EVERY {
            self.release();
        }
        length
    }

    /// The first word of the next message, which stays where it is; `None` if there is none. Good for
    /// deciding when to take it, and for nothing else: the producer may still change it.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn peek(&mut self) -> Result<Option<u64>, RingFault> {
        if self.tail == self.head && !self.find()? {
            return Ok(None);
        }
        let mut first = [0; SLOT_WORDS];
        self.memory.slots().copy_to(self.capacity.first_word(self.head), &mut first);
        Ok(Some(first[0]))
    }

    /// Slots that the producer has published since the ring began. What it did before it published them is
    /// seen by who has seen this.
    pub fn published(&self) -> u64 {
        // SYNC: pairs with the release store of the tail in `Producer::publish`.
        self.memory.tail().load_acquire()
    }

    /// Slots consumed since the ring began, the counterpart of [`published`](Self::published).
    pub fn consumed(&self) -> u64 {
        self.head
    }

    /// Whether a poll would return something other than `None`. Changes nothing, so it can be the
    /// last look before sleeping. What is there is on its way to this core then, while the caller gets
    /// round to polling it.
    #[inline]
    pub fn has_messages(&self) -> bool {
        // SYNC: no data is read on the strength of this load; `refresh` loads the tail again. Its
        // order against the parked flag comes from the fence in `wait::park`.
        let published = self.memory.tail().load_relaxed().wrapping_sub(self.head);
        for ahead in 0..published.min(LONGEST_ORDER) {
            self.memory.slots().touch(self.capacity.first_word(self.head.wrapping_add(ahead)));
        }
        self.fault.is_some() || published != 0
    }

    /// Whether a poll would find nothing and have nothing to give back to the producer: so it may be left out.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        // SYNC: no data is read on the strength of this load.
        let published = self.memory.tail().load_relaxed();
        let is_read = published == self.head && self.tail == self.head;
        is_read && self.released == self.head && self.fault.is_none()
    }

    /// Gives the slots read so far back to the producer. Polling does this by itself every
    /// [`RELEASE_EVERY`] slots and whenever the ring is empty.
    #[inline]
    pub fn release(&mut self) {
        if self.released == self.head {
            return;
        }
        self.released = self.head;
        // SYNC: pairs with the acquire load of the head in `Producer::refresh`: our reads of these
        // slots come before the producer's next writes to them.
        self.memory.head().store(self.released, Ordering::Release);
    }

    /// Whether there is a message where none was known of.
    #[inline]
    fn find(&mut self) -> Result<bool, RingFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.refresh().map_err(|fault| self.poison(fault))?;
        Ok(self.tail != self.head)
    }

    #[cold]
    fn poison(&mut self, fault: RingFault) -> RingFault {
        self.fault = Some(fault);
        // So that a poll or a look goes no further than whether it knows of a message.
        self.tail = self.head;
        fault
    }

    fn refresh(&mut self) -> Result<(), RingFault> {
        // SYNC: pairs with the release store of the tail in `Producer::publish`: the slots below
        // this tail are complete.
        let tail = self.memory.tail().load_acquire();
        // A tail that went backwards is behind the head by wrapping, so it is beyond the capacity.
        let published = tail.wrapping_sub(self.head);
        if published > self.capacity.count() {
            return Err(RingFault::IndexJump {
                head: self.head,
                tail,
                capacity: self.capacity.count(),
            });
        }
        self.tail = tail;
        Ok(())
    }

    /// Brings what was published near, some slots ahead: where a message begins is known only when the one before
    /// it has come from the producer's core, and so their lines would come one after the other.
    #[inline]
    fn look_ahead(&mut self) {
        let ahead = self.near.wrapping_sub(self.head);
        // Half a window at a time; a message may have been longer than what was brought.
        if !(LOOK_AHEAD / 2 < ahead && ahead <= LOOK_AHEAD) {
            self.bring_near(ahead);
        }
    }

    // Not inlined: most polls need nothing brought, and are shorter without it.
    #[inline(never)]
    fn bring_near(&mut self, ahead: u64) {
        if ahead > LOOK_AHEAD {
            self.near = self.head;
        }
        let published = self.tail.wrapping_sub(self.head);
        let end = self.head.wrapping_add(published.min(LOOK_AHEAD));
        while self.near != end {
            self.memory.slots().touch(self.capacity.first_word(self.near));
            self.near = self.near.wrapping_add(1);
        }
    }

    /// Copies the message at the head, of which at least one slot is published; 0 if there is a fault.
    // Inlined as far as most messages go: the calls and the results in memory of all of it were a third of what a
    // message took.
    #[inline(always)]
    fn take(&mut self, into: &mut MessageBuffer) -> usize {
        let mut first = [0; SLOT_WORDS];
        self.memory.slots().copy_to(self.capacity.first_word(self.head), &mut first);
        // From here on only the copy is read: the producer may change the slot at any time.
        let (copies, _) = into.words_mut().as_chunks_mut::<SLOT_WORDS>();
        copies[0] = first;
        // The most frequent lengths, which nothing could object to.
        if first[0] & 0xffff & !ONE_SLOT_LENGTHS == 0 {
            self.head = self.head.wrapping_add(1);
            return stated_length(first[0]);
        }
        self.take_rest(stated_length(first[0]), copies)
    }

    /// Copies what is behind the first slot of a message of `length` bytes, and steps over it; 0 if there is a fault.
    #[inline(never)]
    fn take_rest(&mut self, length: usize, copies: &mut [[u64; SLOT_WORDS]]) -> usize {
        let needed = match self.check_length(length) {
            Ok(needed) => needed,
            Err(fault) => {
                self.poison(fault);
                return 0;
            }
        };
        let slots = self.memory.slots();
        for (index, copy) in (1..needed).zip(&mut copies[1..]) {
            slots.copy_to(self.capacity.first_word(self.head.wrapping_add(index)), copy);
        }
        self.head = self.head.wrapping_add(needed);
        length
    }

    /// The slots of a message that says it has `length` bytes, all of which are published.
    #[inline]
    fn check_length(&self, length: usize) -> Result<u64, RingFault> {
        if length > MAX_MESSAGE_BYTES {
            return Err(RingFault::TooLong { length });
        }
        if !length.is_multiple_of(8) {
            return Err(RingFault::LengthNotMultipleOf8 { length });
        }
        let needed = slots_for(length);
        let available = self.tail.wrapping_sub(self.head);
        if needed > available {
            return Err(RingFault::Truncated { needed, available });
        }
        Ok(needed)
    }
}
