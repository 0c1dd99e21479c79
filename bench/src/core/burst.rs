//! Bursts: an engine on one core whose reports go to another through a ring, the same one for every
//! engine. Called by [`super`].
//!
//! Each operation and each fill is one report. They are staged one by one and published in batches, as
//! a duty thread would; the other side folds them into the tally that is checked. What is timed is the
//! engine's thread: matching, and handing over what came of it. A side that has to wait yields.

use super::engines::Engine;
use super::flows::Flow;
use super::measure::{self, BATCH, Outcome, judge, patience, per_operation};
use super::operation::{Depth, Reports, Tally};
use super::reports::{Reader, Writer, ring};
use super::stopwatch::Stopwatch;
use crate::cores;
use crate::machine::nanoseconds;

/// What a report's first word says, by its uppermost bits. Below them: a quantity of 30 bits and an id
/// of 32. A fill has two words more: the taker's id, the price.
const DONE: u64 = 0;
const FILL: u64 = 1 << 62;
const END: u64 = 1 << 63;
const KIND: u64 = FILL | END;

/// A quantity that does not fit makes the tally a wrong one: no flow has such.
#[inline]
fn packed(kind: u64, id: u32, quantity: u64) -> u64 {
    kind | (quantity << 32 & !KIND) | u64::from(id)
}

/// Reports that go through the ring.
struct Reporter {
    writer: Writer,
}

/// The reader ends with its writer, also with one that panics.
impl Drop for Reporter {
    fn drop(&mut self) {
        self.writer.stage([END]);
    }
}

impl Reports for Reporter {
    #[inline]
    fn fill(&mut self, maker: u32, taker: u32, price: i64, quantity: u64) {
        let first = packed(FILL, maker, quantity);
        self.writer.stage([first, u64::from(taker), price.cast_unsigned()]);
    }

    #[inline]
    fn done(&mut self, id: u32, open: u64) {
        self.writer.stage([packed(DONE, id, open)]);
    }
}

/// Folds reports until the end.
fn consume(mut reader: Reader) -> Tally {
    let mut tally = Tally::default();
    loop {
        let first = reader.take();
        let (id, quantity) = (first as u32, (first & !KIND) >> 32);
        match first & KIND {
            DONE => tally.done(id, quantity),
            FILL => {
                let (taker, price) = (reader.take() as u32, reader.take().cast_signed());
                tally.fill(id, taker, price, quantity);
            }
            _ => return tally,
        }
    }
}

/// Times the flow with its reports, until the last one is handed over. Engine and reader have a core
/// each where there are two: on one they would take turns, and what that costs is the kernel's.
pub(super) fn throughput<E: Engine>(flow: &Flow, checked: bool) -> Outcome {
    let (writer, reader) = ring();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            cores::stay_on(0);
            consume(reader)
        });
        let engine = scope.spawn(move || {
            cores::stay_on(1);
            produce::<E>(flow, writer)
        });
        let produced = engine.join();
        let tally = reader.join().unwrap_or_default();
        match produced {
            Ok(Some((time, depth))) => match judge(flow, &depth, &tally) {
                Err(difference) if checked => Outcome::Wrong(time, difference),
                _ => Outcome::Right(time),
            },
            Ok(None) => Outcome::GivenUp(patience(flow.measured.len())),
            Err(_) => Outcome::Panicked,
        }
    })
}

/// Feeds an engine; gives ps per operation and the book, or nothing if it took too long.
fn produce<E: Engine>(flow: &Flow, writer: Writer) -> Option<(u64, Depth)> {
    let mut reporter = Reporter { writer };
    let mut engine = measure::filled::<E>(flow);
    let patience = patience(flow.measured.len());
    let begin = Stopwatch::start();
    for (turn, batch) in flow.measured.chunks(BATCH).enumerate() {
        engine.look_ahead(batch);
        for operation in batch {
            engine.apply(operation, &mut reporter);
        }
        reporter.writer.publish();
        if measure::is_hopeless(turn, &begin, patience) {
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
        assert_eq!(throughput::<Panics>(&flow, true), Outcome::Panicked);
        assert!(matches!(throughput::<Touchline>(&flow, true), Outcome::Right(_)));
    }
}
