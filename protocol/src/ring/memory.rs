//! What a ring needs of memory, and the memory on the heap that serves within one process.

use std::sync::Arc;

use super::layout::{SLOT_BYTES, SLOT_WORDS};
use super::{Capacity, Consumer, Producer};
use crate::sync::{AtomicU64, ReadOnlyU64, ReadOnlyWords};

/// The producer's view of a ring: it writes slots and tail, and reads the head.
pub trait ProducerMemory {
    /// Number of slots.
    fn capacity(&self) -> Capacity;
    /// The producer's index, which only it writes.
    fn tail(&self) -> &AtomicU64;
    /// The consumer's index.
    fn head(&self) -> ReadOnlyU64<'_>;
    /// All slots: `capacity().words()` words, of which 8 make a slot.
    fn slots(&self) -> &[AtomicU64];
}

/// The consumer's view of a ring: it writes the head, and reads slots and tail.
pub trait ConsumerMemory {
    /// Number of slots.
    fn capacity(&self) -> Capacity;
    /// The consumer's index, which only it writes.
    fn head(&self) -> &AtomicU64;
    /// The producer's index.
    fn tail(&self) -> ReadOnlyU64<'_>;
    /// All slots: `capacity().words()` words, of which 8 make a slot.
    fn slots(&self) -> ReadOnlyWords<'_>;
}

/// Keeps what is inside off the cache lines of its neighbours.
#[repr(align(128))]
struct OwnLine<T>(T);

/// A ring's memory on the heap, for the threads of one process.
pub struct HeapRing {
    capacity: Capacity,
    tail: OwnLine<AtomicU64>,
    head: OwnLine<AtomicU64>,
    /// With a cache line to spare, so that slots can begin where a line does.
    words: Box<[AtomicU64]>,
    /// The first word of the first slot.
    first: usize,
}

impl HeapRing {
    /// An empty ring whose indices start at zero.
    pub fn new(capacity: Capacity) -> Self {
        Self::starting_at(capacity, 0)
    }

    /// An empty ring whose indices start at `index`, so that their wrap can be reached.
    pub fn starting_at(capacity: Capacity, index: u64) -> Self {
        let words: Box<[AtomicU64]> =
            (0..capacity.words() + SLOT_WORDS - 1).map(|_| AtomicU64::new(0)).collect();
        let beyond = words.as_ptr().addr() % SLOT_BYTES;
        let first = (SLOT_BYTES - beyond) % SLOT_BYTES / size_of::<u64>();
        Self {
            capacity,
            tail: OwnLine(AtomicU64::new(index)),
            head: OwnLine(AtomicU64::new(index)),
            words,
            // Loom's words are larger; it knows no cache lines.
            first: if cfg!(loom) { 0 } else { first },
        }
    }

    fn slots(&self) -> &[AtomicU64] {
        &self.words[self.first..][..self.capacity.words()]
    }
}

impl ProducerMemory for Arc<HeapRing> {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn tail(&self) -> &AtomicU64 {
        &self.tail.0
    }

    fn head(&self) -> ReadOnlyU64<'_> {
        ReadOnlyU64::new(&self.head.0)
    }

    fn slots(&self) -> &[AtomicU64] {
        HeapRing::slots(self)
    }
}

impl ConsumerMemory for Arc<HeapRing> {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn head(&self) -> &AtomicU64 {
        &self.head.0
    }

    fn tail(&self) -> ReadOnlyU64<'_> {
        ReadOnlyU64::new(&self.tail.0)
    }

    fn slots(&self) -> ReadOnlyWords<'_> {
        ReadOnlyWords::new(HeapRing::slots(self))
    }
}

/// Both ends of a new ring on the heap. One that is to carry every message has 64 slots or more ([`Capacity`]).
pub fn heap_ring(capacity: Capacity) -> (Producer<Arc<HeapRing>>, Consumer<Arc<HeapRing>>) {
    let ring = Arc::new(HeapRing::new(capacity));
    (Producer::new(Arc::clone(&ring)), Consumer::new(ring))
}
