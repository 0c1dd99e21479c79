//! What a ring needs of memory, and the memory on the heap that serves within one process.

use std::sync::Arc;

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
    slots: Box<[AtomicU64]>,
}

impl HeapRing {
    /// An empty ring whose indices start at zero.
    pub fn new(capacity: Capacity) -> Self {
        Self::starting_at(capacity, 0)
    }

    /// An empty ring whose indices start at `index`, so that their wrap can be reached.
    pub fn starting_at(capacity: Capacity, index: u64) -> Self {
        Self {
            capacity,
            tail: OwnLine(AtomicU64::new(index)),
            head: OwnLine(AtomicU64::new(index)),
            slots: (0..capacity.words()).map(|_| AtomicU64::new(0)).collect(),
        }
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
        &self.slots
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
        ReadOnlyWords::new(&self.slots)
    }
}

/// Both ends of a new ring on the heap.
pub fn heap_ring(capacity: Capacity) -> (Producer<Arc<HeapRing>>, Consumer<Arc<HeapRing>>) {
    let ring = Arc::new(HeapRing::new(capacity));
    (Producer::new(Arc::clone(&ring)), Consumer::new(ring))
}
