//! Bursts: an engine on one core whose reports go to another through the project's own ring, the same
//! one for every engine. Called by [`super`].
//!
//! Each operation and each fill is one message of one slot. They are staged one by one and published
//! in batches, as a duty thread would; the other side folds them into the tally that is checked. What
//! is timed is the engine's thread: matching, and handing over what came of it. A side that has to wait
//! yields, so that waiting costs it no processor time.

use std::sync::Arc;

use touchline_protocol::ring::{
    Capacity, Consumer, HeapRing, MESSAGE_HEADER_BYTES, MessageBuffer, Producer, heap_ring,
};

use super::engines::Engine;
use super::flows::Flow;
use super::measure::{self, BATCH, Outcome, judge, per_operation};
use super::operation::{Depth, Reports, Tally};
use super::stopwatch::Stopwatch;
use crate::machine::nanoseconds;

const SLOTS: usize = 4096;
/// Header, then four words.
const MESSAGE_BYTES: usize = MESSAGE_HEADER_BYTES + 32;
const HEADER: u64 = 32;

/// What the fourth word of a message means, by its uppermost bits; the rest is a quantity.
const FILL: u64 = 0;
const DONE: u64 = 1 << 62;
const END: u64 = 1 << 63;

/// Reports that go through the ring.
struct Reporter {
    producer: Producer<Arc<HeapRing>>,
}

impl Reporter {
    #[inline]
    fn send(&mut self, words: [u64; 4]) {
        let [first, second, third, fourth] = words;
        let message: [u64; 5] = [HEADER, first, second, third, fourth].map(u64::to_le);
        let mut bytes = [0; MESSAGE_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(message) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        while self.producer.stage(&bytes).is_err() {
            self.producer.publish();
            std::thread::yield_now();
        }
    }
}

/// The reader ends with its writer, also with one that panics.
impl Drop for Reporter {
    fn drop(&mut self) {
        self.send([0, 0, 0, END]);
        self.producer.publish();
    }
}

impl Reports for Reporter {
    #[inline]
    fn fill(&mut self, maker: u32, taker: u32, price: i64, quantity: u64) {
        self.send([u64::from(maker), u64::from(taker), price.cast_unsigned(), quantity | FILL]);
    }

    #[inline]
    fn done(&mut self, id: u32, open: u64) {
        self.send([u64::from(id), 0, 0, open | DONE]);
    }
}

/// Folds messages until the end.
fn consume(mut consumer: Consumer<Arc<HeapRing>>) -> Tally {
    let mut tally = Tally::default();
    let mut buffer = MessageBuffer::new();
    loop {
        match consumer.poll(&mut buffer) {
            Ok(None) => std::thread::yield_now(),
            Ok(Some(length)) => {
                let mut words = [0; 4];
                let bytes = buffer.bytes(length)[MESSAGE_HEADER_BYTES..].as_chunks::<8>().0;
                for (word, bytes) in words.iter_mut().zip(bytes) {
                    *word = u64::from_le_bytes(*bytes);
                }
                let [first, second, third, fourth] = words;
                match fourth & (DONE | END) {
                    FILL => tally.fill(first as u32, second as u32, third.cast_signed(), fourth),
                    DONE => tally.done(first as u32, fourth & !DONE),
                    _ => return tally,
                }
            }
            // Both ends are ours; a wrong tally says so as well as anything.
            Err(_) => return tally,
        }
    }
}

/// Times the flow with its reports, until the last one is handed over. Engine and reader have a core
/// each where there are two: on one they would take turns, and what that costs is the kernel's.
pub(super) fn throughput<E: Engine>(flow: &Flow, checked: bool) -> Outcome {
    let capacity = Capacity::new(SLOTS).expect("a power of two within the limit");
    let (producer, consumer) = heap_ring(capacity);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            stay_on_core(0);
            consume(consumer)
        });
        let engine = scope.spawn(move || {
            stay_on_core(1);
            produce::<E>(flow, producer)
        });
        let produced = engine.join();
        let tally = reader.join().unwrap_or_default();
        match produced {
            Ok(Some((time, depth))) => match judge(flow, &depth, &tally) {
                Err(difference) if checked => Outcome::Wrong(time, difference),
                _ => Outcome::Right(time),
            },
            _ => Outcome::GivenUp,
        }
    })
}

/// Where the system refuses, the thread stays where it is put.
fn stay_on_core(number: usize) {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let _refused = cores.get(number).map(|&core| core_affinity::set_for_current(core));
}

/// Feeds an engine; gives ps per operation and the book, or nothing if it took too long.
fn produce<E: Engine>(flow: &Flow, producer: Producer<Arc<HeapRing>>) -> Option<(u64, Depth)> {
    let mut reporter = Reporter { producer };
    let mut engine = measure::filled::<E>(flow);
    let begin = Stopwatch::start();
    for (turn, batch) in flow.measured.chunks(BATCH).enumerate() {
        engine.look_ahead(batch);
        for operation in batch {
            engine.apply(operation, &mut reporter);
        }
        reporter.producer.publish();
        if measure::is_hopeless(turn, &begin) {
            return None;
        }
    }
    let took = nanoseconds(begin.elapsed());
    Some((per_operation(took, flow.measured.len()), engine.depth()))
}

#[cfg(test)]
mod tests {
    use super::super::engines::Touchline;
    use super::super::flows::{self, Synthetic};
    use super::super::operation::Operation;
    use super::*;

    struct Panics;

    impl Engine for Panics {
        fn new(_capacity: &flows::Capacity) -> Self {
            Self
        }

        fn apply<R: Reports>(&mut self, operation: &Operation, _reports: &mut R) {
            panic!("no {operation:?}");
        }

        fn depth(&self) -> Depth {
            Depth::default()
        }
    }

    #[test]
    fn the_reader_ends_with_an_engine_that_panics() {
        let flow = Synthetic::Calm.generate(1_000);
        assert_eq!(throughput::<Panics>(&flow, true), Outcome::GivenUp);
        assert!(matches!(throughput::<Touchline>(&flow, true), Outcome::Right(_)));
    }
}
