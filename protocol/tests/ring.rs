//! The ring against a naive model, at full speed between threads, and against hostile peers.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "../../tests/support/patience.rs"]
mod patience;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use patience::Wait;
use proptest::prelude::*;
use touchline_protocol::ring::{
    Capacity, CapacityError, Consumer, ConsumerMemory, HeapRing, MAX_MESSAGE_BYTES, MessageBuffer,
    Producer, ProducerMemory, PushError, RELEASE_EVERY, RingFault, heap_ring,
};

/// Says at the end of its life, also if that is a failed assertion, that this side does no more.
struct Leaves<'a>(&'a AtomicBool);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Ends = (Arc<HeapRing>, Producer<Arc<HeapRing>>, Consumer<Arc<HeapRing>>);

fn ends(slots: usize, start: u64) -> Ends {
    let ring = Arc::new(HeapRing::starting_at(Capacity::new(slots).unwrap(), start));
    (Arc::clone(&ring), Producer::new(Arc::clone(&ring)), Consumer::new(ring))
}

/// A framed message of `words` 8-byte words, whose contents follow from `seed`.
fn message(words: usize, seed: u64) -> Vec<u8> {
    let header = (words as u64 * 8 - 8) | seed.wrapping_mul(0x9e37_79b9) << 16;
    let mut bytes = header.to_le_bytes().to_vec();
    for index in 1..words as u64 {
        bytes.extend((seed.rotate_left(17) ^ index.wrapping_mul(0xff51_afd7)).to_le_bytes());
    }
    bytes
}

fn slots(message: &[u8]) -> u64 {
    message.len().div_ceil(64) as u64
}

/// Stages `message`, whose first `front` words lie elsewhere than the others.
fn stage_behind(
    producer: &mut Producer<Arc<HeapRing>>,
    front: usize,
    message: &[u8],
) -> Result<(), PushError> {
    fn go<const FRONT: usize>(
        producer: &mut Producer<Arc<HeapRing>>,
        message: &[u8],
    ) -> Result<(), PushError> {
        let (words, _) = message.as_chunks::<8>();
        let words: [u64; FRONT] = std::array::from_fn(|at| u64::from_le_bytes(words[at]));
        producer.stage_behind(&words, &message[FRONT * 8..])
    }
    match front {
        1 => go::<1>(producer, message),
        2 => go::<2>(producer, message),
        3 => go::<3>(producer, message),
        4 => go::<4>(producer, message),
        5 => go::<5>(producer, message),
        6 => go::<6>(producer, message),
        7 => go::<7>(producer, message),
        8 => go::<8>(producer, message),
        _ => unreachable!("a slot has eight words"),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push(usize),
    Stage(usize),
    /// The first so many words lie elsewhere than the others.
    StageBehind(usize, usize),
    BringNear(u64),
    Publish,
    Poll,
    Release,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let words = prop_oneof![4 => 1..=24_usize, 1 => 1..=512_usize];
    let step = prop_oneof![
        3 => words.clone().prop_map(Step::Push),
        2 => words.clone().prop_map(Step::Stage),
        2 => (1..=8_usize, words).prop_map(|(front, words)| Step::StageBehind(front, words.max(front))),
        1 => (0..=20_u64).prop_map(Step::BringNear),
        1 => Just(Step::Publish),
        5 => Just(Step::Poll),
        1 => Just(Step::Release),
    ];
    proptest::collection::vec(step, 1..400)
}

/// A ring as a queue: published messages, staged ones, and the slots taken.
#[derive(Default)]
struct Model {
    published: VecDeque<Vec<u8>>,
    staged: VecDeque<Vec<u8>>,
    /// Slots read since the last release.
    unreleased: u64,
}

impl Model {
    fn free(&self, capacity: u64) -> u64 {
        let waiting = self.published.iter().chain(&self.staged);
        capacity - self.unreleased - waiting.map(|message| slots(message)).sum::<u64>()
    }

    fn stage(&mut self, message: &[u8], capacity: u64) -> Result<(), PushError> {
        let (needed, free) = (slots(message), self.free(capacity));
        if needed > free {
            return Err(PushError::Full { needed, free });
        }
        self.staged.push_back(message.to_vec());
        Ok(())
    }

    fn publish(&mut self) {
        self.published.append(&mut self.staged);
    }

    fn poll(&mut self) -> Option<Vec<u8>> {
        let Some(message) = self.published.pop_front() else {
            self.unreleased = 0;
            return None;
        };
        self.unreleased += slots(&message);
        if self.unreleased >= RELEASE_EVERY {
            self.unreleased = 0;
        }
        Some(message)
    }
}

proptest! {
    #[test]
    fn the_ring_does_what_a_queue_does(
        steps in steps(),
        exponent in 0..=8_u32,
        start in prop_oneof![Just(0), Just(u64::MAX - 40), any::<u64>()],
    ) {
        let capacity = 1 << exponent;
        let (ring, mut producer, mut consumer) = ends(capacity, start);
        let capacity = capacity as u64;
        let mut model = Model::default();
        let mut into = MessageBuffer::new();
        for (seed, step) in (1..).zip(steps) {
            match step {
                Step::Push(words) => {
                    let message = message(words, seed);
                    let expected = model.stage(&message, capacity);
                    if expected.is_ok() {
                        model.publish();
                    }
                    prop_assert_eq!(producer.try_push(&message), expected);
                }
                Step::Stage(words) => {
                    let message = message(words, seed);
                    prop_assert_eq!(producer.stage(&message), model.stage(&message, capacity));
                }
                Step::StageBehind(front, words) => {
                    let message = message(words, seed);
                    let staged = stage_behind(&mut producer, front, &message);
                    prop_assert_eq!(staged, model.stage(&message, capacity));
                }
                Step::BringNear(slots) => {
                    let words = || {
                        let words = ring.slots_to_write().iter();
                        words.map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>()
                    };
                    let before = words();
                    producer.bring_near(slots);
                    prop_assert_eq!(words(), before);
                }
                Step::Publish => {
                    producer.publish();
                    model.publish();
                }
                Step::Poll => {
                    prop_assert_eq!(consumer.has_messages(), !model.published.is_empty());
                    let first = model.published.front().map(|next| {
                        u64::from_le_bytes(*next.first_chunk().expect("a header at the least"))
                    });
                    prop_assert_eq!(consumer.peek(), Ok(first));
                    prop_assert_eq!(consumer.peek(), Ok(first), "a look takes nothing");
                    let polled = consumer.poll(&mut into).unwrap();
                    prop_assert_eq!(polled.map(|length| into.bytes(length).to_vec()), model.poll());
                }
                Step::Release => {
                    consumer.release();
                    model.unreleased = 0;
                }
            }
            prop_assert_eq!(producer.free_slots(u64::MAX), Ok(model.free(capacity)));
            let is_at_rest = model.published.is_empty() && model.unreleased == 0;
            prop_assert_eq!(consumer.is_at_rest(), is_at_rest);
        }
    }

    #[test]
    fn whatever_the_producer_wrote_a_poll_ends_in_a_message_or_a_lasting_fault(
        words in proptest::collection::vec(any::<u64>(), 128),
        block_lengths in proptest::collection::vec(0..600_u64, 16),
        start in any::<u64>(),
        published in prop_oneof![9 => 0..=17_u64, 1 => any::<u64>()],
    ) {
        let (ring, _, mut consumer) = ends(16, start);
        for (slot, word) in ring.slots_to_write().iter().zip(&words) {
            slot.store(*word, Ordering::Relaxed);
        }
        for (slot, length) in ring.slots_to_write().chunks(8).zip(&block_lengths) {
            slot[0].store(*length, Ordering::Relaxed);
        }
        ring.tail_to_write(start.wrapping_add(published));
        let mut into = MessageBuffer::new();
        let mut left = published;
        let fault = loop {
            match consumer.poll(&mut into) {
                Ok(Some(length)) => {
                    prop_assert!(length % 8 == 0 && (8..=MAX_MESSAGE_BYTES).contains(&length));
                    let header = into.bytes(length);
                    prop_assert_eq!(u16::from_le_bytes([header[0], header[1]]) as usize + 8, length);
                    left -= length.div_ceil(64) as u64;
                }
                Ok(None) => {
                    prop_assert_eq!(left, 0);
                    return Ok(());
                }
                Err(fault) => break fault,
            }
        };
        prop_assert!(consumer.has_messages());
        ring.tail_to_write(start);
        prop_assert_eq!(consumer.poll(&mut into), Err(fault));
    }
}

/// Write access to a heap ring from the outside, as a hostile peer has it.
trait Hostile {
    fn slots_to_write(&self) -> &[std::sync::atomic::AtomicU64];
    fn tail_to_write(&self, tail: u64);
    fn head_to_write(&self, head: u64);
}

impl Hostile for Arc<HeapRing> {
    fn slots_to_write(&self) -> &[std::sync::atomic::AtomicU64] {
        ProducerMemory::slots(self)
    }

    fn tail_to_write(&self, tail: u64) {
        ProducerMemory::tail(self).store(tail, Ordering::Release);
    }

    fn head_to_write(&self, head: u64) {
        ConsumerMemory::head(self).store(head, Ordering::Release);
    }
}

#[test]
fn every_fault_of_a_producer_is_named_and_lasts() {
    let cases = [
        // (tail, block length of the message at the head, fault)
        (17, 0, RingFault::IndexJump { head: 0, tail: 17, capacity: 16 }),
        (u64::MAX, 0, RingFault::IndexJump { head: 0, tail: u64::MAX, capacity: 16 }),
        (1 << 63, 0, RingFault::IndexJump { head: 0, tail: 1 << 63, capacity: 16 }),
        (1, 1, RingFault::LengthNotMultipleOf8 { length: 9 }),
        (1, 4087, RingFault::LengthNotMultipleOf8 { length: 4095 }),
        (1, 4089, RingFault::TooLong { length: 4097 }),
        (1, 4096, RingFault::TooLong { length: 4104 }),
        (1, 65_535, RingFault::TooLong { length: 65_543 }),
        (1, 64, RingFault::Truncated { needed: 2, available: 1 }),
        (2, 128, RingFault::Truncated { needed: 3, available: 2 }),
        (16, 4088, RingFault::Truncated { needed: 64, available: 16 }),
    ];
    for (tail, block_length, fault) in cases {
        let (ring, mut producer, mut consumer) = ends(16, 0);
        // What stands in the rest of the header must not matter.
        ring.slots_to_write()[0].store(0xffff_ffff_ffff_0000 | block_length, Ordering::Relaxed);
        ring.tail_to_write(tail);
        let mut into = MessageBuffer::new();
        assert_eq!(consumer.poll(&mut into), Err(fault));
        // Mending the ring mends nothing.
        ring.tail_to_write(0);
        assert!(consumer.has_messages() && !consumer.is_at_rest());
        producer.try_push(&message(1, 1)).unwrap();
        assert_eq!(consumer.poll(&mut into), Err(fault));
        assert_eq!(consumer.peek(), Err(fault));
        assert!(consumer.has_messages());
        assert_eq!(ConsumerMemory::head(&ring).load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_tail_that_goes_backwards_is_a_fault() {
    let (ring, mut producer, mut consumer) = ends(16, 0);
    let mut into = MessageBuffer::new();
    for seed in 0..3 {
        producer.try_push(&message(1, seed)).unwrap();
        assert_eq!(consumer.poll(&mut into), Ok(Some(8)));
    }
    ring.tail_to_write(2);
    let fault = RingFault::IndexJump { head: 3, tail: 2, capacity: 16 };
    assert_eq!(consumer.peek(), Err(fault), "a look finds it too");
    assert_eq!(consumer.poll(&mut into), Err(fault));
}

#[test]
fn a_published_head_is_never_read_back() {
    let (ring, mut producer, mut consumer) = ends(16, 0);
    let mut into = MessageBuffer::new();
    producer.try_push(&message(1, 1)).unwrap();
    producer.try_push(&message(2, 2)).unwrap();
    assert_eq!(consumer.poll(&mut into), Ok(Some(8)));
    ring.head_to_write(12);
    assert_eq!(consumer.poll(&mut into), Ok(Some(16)));
    assert_eq!(consumer.poll(&mut into), Ok(None));
    assert_eq!(ConsumerMemory::head(&ring).load(Ordering::Relaxed), 2);
}

#[test]
fn every_fault_of_a_consumer_is_named_and_lasts() {
    let start = u64::MAX - 1;
    let tail = start.wrapping_add(3);
    // Ahead of what is published (staged is not), far ahead, and behind where it was.
    for head in [tail.wrapping_add(1), tail.wrapping_add(1 << 40), start.wrapping_sub(1)] {
        let (ring, mut producer, mut consumer) = ends(4, start);
        let mut into = MessageBuffer::new();
        producer.try_push(&message(1, 1)).unwrap();
        assert_eq!(consumer.poll(&mut into), Ok(Some(8)));
        consumer.release();
        assert_eq!(producer.free_slots(4), Ok(4));
        producer.try_push(&message(16, 2)).unwrap();
        producer.stage(&message(1, 3)).unwrap();

        ring.head_to_write(head);
        let fault = RingFault::IndexJump { head, tail, capacity: 4 };
        assert!(!producer.is_broken(), "nobody has looked");
        assert_eq!(producer.stage(&message(16, 4)), Err(PushError::Peer(fault)));
        assert!(producer.is_broken());
        ring.head_to_write(tail);
        assert_eq!(producer.try_push(&message(1, 5)), Err(PushError::Peer(fault)));
        assert_eq!(producer.free_slots(0), Err(fault));
        assert_eq!(producer.consumed(), Err(fault));
        assert_eq!(ProducerMemory::tail(&ring).load(Ordering::Relaxed), tail);
    }
}

#[test]
fn a_head_that_stands_still_is_seen() {
    let (_, mut producer, mut consumer) = ends(16, 0);
    producer.try_push(&message(9, 1)).unwrap();
    assert_eq!((producer.published(), producer.consumed()), (2, Ok(0)));
    let mut into = MessageBuffer::new();
    consumer.poll(&mut into).unwrap();
    assert_eq!(producer.consumed(), Ok(0));
    consumer.release();
    assert_eq!(producer.consumed(), Ok(2));
}

#[test]
fn only_framed_messages_are_taken() {
    let (_, mut producer, mut consumer) = ends(128, 0);
    let with_length = |bytes: usize, block_length: u16| {
        let mut message = vec![0xee; bytes];
        message[..2].copy_from_slice(&block_length.to_le_bytes());
        message
    };
    let unframed = [
        (vec![], 0),
        (vec![0; 7], 0),
        (with_length(8, 8), 16),
        (with_length(16, 0), 8),
        (with_length(12, 4), 12),
        (with_length(4097, 4089), 4097),
        (with_length(4104, 4096), 4104),
        (with_length(65_536 + 8, 0), 8),
    ];
    for (message, stated) in unframed {
        let bytes = message.len();
        assert_eq!(producer.try_push(&message), Err(PushError::Unframed { bytes, stated }));
        if let Some((header, rest)) = message.split_first_chunk::<8>() {
            let staged = producer.stage_behind(&[u64::from_le_bytes(*header)], rest);
            assert_eq!(staged, Err(PushError::Unframed { bytes, stated }));
        }
    }
    assert_eq!(consumer.poll(&mut MessageBuffer::new()), Ok(None));

    let mut into = MessageBuffer::new();
    for words in [1, 2, 8, 9, 511, 512] {
        producer.try_push(&message(words, 5)).unwrap();
        assert_eq!(consumer.poll(&mut into), Ok(Some(words * 8)));
        assert_eq!(into.bytes(words * 8), message(words, 5));
        assert_eq!(into.bytes(words * 8).as_ptr().align_offset(8), 0);
    }
}

#[test]
fn the_rest_of_the_last_slot_is_zero_also_where_older_messages_stood() {
    let (ring, mut producer, mut consumer) = ends(4, 0);
    let mut into = MessageBuffer::new();
    producer.try_push(&message(32, 7)).unwrap();
    consumer.poll(&mut into).unwrap();
    assert_eq!(consumer.poll(&mut into), Ok(None));
    producer.try_push(&message(9, 8)).unwrap();
    stage_behind(&mut producer, 2, &message(3, 9)).unwrap();
    let words = ring.slots_to_write()[..24].iter().map(|word| word.load(Ordering::Relaxed));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    assert_eq!(bytes[..72], message(9, 8));
    assert_eq!(bytes[72..128], [0; 56]);
    assert_eq!(bytes[128..152], message(3, 9));
    assert_eq!(bytes[152..], [0; 40]);
}

#[test]
fn the_head_is_published_every_32_slots_and_when_the_ring_is_seen_empty() {
    let (ring, mut producer, mut consumer) = ends(64, 0);
    let released = || ConsumerMemory::head(&ring).load(Ordering::Relaxed);
    for seed in 0..40 {
        producer.try_push(&message(1, seed)).unwrap();
    }
    let mut into = MessageBuffer::new();
    for consumed in 1..=40 {
        consumer.poll(&mut into).unwrap();
        assert_eq!(released(), if consumed < 32 { 0 } else { 32 });
    }
    assert_eq!(consumer.poll(&mut into), Ok(None));
    assert_eq!(released(), 40);
}

#[test]
fn capacities_are_powers_of_two_within_bounds() {
    for slots in [1, 2, 1024, 16_384] {
        assert_eq!(Capacity::new(slots).map(Capacity::slots), Ok(slots));
    }
    for slots in [0, 3, 1023, 16_385, 32_768, 1 << 32, usize::MAX] {
        let error = CapacityError { slots, least: 1, most: 16_384 };
        assert_eq!(Capacity::new(slots), Err(error));
    }
}

#[test]
fn a_million_messages_pass_between_two_threads() {
    const MESSAGES: u64 = 1_000_000;
    let words = |seed: u64| 1 + (seed.wrapping_mul(0x9e37_79b9) >> 7) as usize % 24;
    let (mut producer, mut consumer) = heap_ring(Capacity::new(1024).unwrap());
    let reader_gone = &AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            for seed in 0..MESSAGES {
                let message = message(words(seed), seed);
                while let Err(error) = producer.stage(&message) {
                    assert!(matches!(error, PushError::Full { .. }), "{error}");
                    assert!(!reader_gone.load(Ordering::Relaxed));
                    producer.publish();
                    thread::yield_now();
                }
                if seed % 16 == 0 {
                    producer.publish();
                }
            }
            producer.publish();
        });
        let _leaves = Leaves(reader_gone);
        let mut into = MessageBuffer::new();
        for seed in 0..MESSAGES {
            let wait = Wait::begin();
            let length = loop {
                wait.go_on("the sender lives and sends nothing");
                let last_look = sender.is_finished();
                match consumer.poll(&mut into).unwrap() {
                    Some(length) => break length,
                    None => thread::yield_now(),
                }
                assert!(!last_look, "message {seed} is lost");
            };
            assert_eq!(into.bytes(length), message(words(seed), seed));
        }
        assert_eq!(consumer.poll(&mut into), Ok(None));
    });
}

#[test]
fn a_header_that_changes_under_the_reader_cannot_part_length_and_copy() {
    let (ring, _, mut consumer) = ends(64, 0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for block_length in [0, 8, 120, 4088, 65_535, 3] {
                    ring.slots_to_write()[0].store(block_length, Ordering::Relaxed);
                }
            }
        });
        let _leaves = Leaves(&done);
        let mut into = MessageBuffer::new();
        for _ in 0..20_000 {
            // The same slot again: a new consumer on the same hostile words.
            ring.tail_to_write(64);
            if let Ok(Some(length)) = consumer.poll(&mut into) {
                let copy = into.bytes(length);
                assert_eq!(u16::from_le_bytes([copy[0], copy[1]]) as usize + 8, length);
            }
            ring.head_to_write(0);
            consumer = Consumer::new(Arc::clone(&ring));
        }
    });
}
