//! One engine, one flow, one pass: timed, checked, or counted in bytes. Called by [`super`] in rounds.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::engines::Engine;
use super::flows::{Capacity, Flow};
use super::operation::{Depth, Tally};
use super::stopwatch::Stopwatch;
use crate::allocation::live_bytes;
use crate::interrupt::is_interrupted;
use crate::latency::{Distribution, Percentiles};
use crate::machine::nanoseconds;

/// Operations that an engine may look ahead, and that are published together.
pub(super) const BATCH: usize = 64;

/// A pass that takes longer is given up: 5 us per operation, which is some hundred times what a book takes,
/// and no less than 10 s. In seconds.
pub(super) const fn patience(operations: usize) -> u64 {
    let seconds = operations as u64 / 200_000;
    if seconds < 10 { 10 } else { seconds }
}

/// What came of a pass.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Results as they must be; picoseconds per operation.
    Right(u64),
    /// Other results: picoseconds per operation, which do not count, and what differs.
    Wrong(u64, String),
    /// It took longer than so many seconds.
    GivenUp(u64),
    /// The engine panicked.
    Panicked,
    /// The engine cannot do what the flow asks.
    Unsuited,
}

/// Fills the book and gives the engine.
pub(super) fn filled<E: Engine>(flow: &Flow) -> E {
    filled_with(flow, &flow.capacity)
}

fn filled_with<E: Engine>(flow: &Flow, capacity: &Capacity) -> E {
    let mut engine = E::new(capacity);
    let mut tally = Tally::default();
    for batch in flow.prefill.chunks(1 << 12) {
        if is_interrupted() {
            break;
        }
        for operation in batch {
            engine.apply(operation, &mut tally);
        }
    }
    engine
}

/// Compares what an engine came to with what it must.
pub(super) fn judge(flow: &Flow, depth: &Depth, tally: &Tally) -> Result<(), String> {
    let expected = &flow.expected;
    if tally != expected {
        return Err(format!(
            "{} fills instead of {}, hash {:x}",
            tally.trades, expected.trades, tally.hash
        ));
    }
    if *depth != flow.depth {
        return Err("another book at the end".to_owned());
    }
    Ok(())
}

/// Times the whole flow. `checked`: without engine there is nothing to check.
pub(super) fn throughput<E: Engine>(flow: &Flow, checked: bool) -> Outcome {
    if !E::suits(flow) {
        return Outcome::Unsuited;
    }
    let mut engine = filled::<E>(flow);
    let mut tally = Tally::default();
    let patience = patience(flow.measured.len());
    let begin = Stopwatch::start();
    for (turn, batch) in flow.measured.chunks(BATCH).enumerate() {
        engine.look_ahead(batch);
        for operation in batch {
            engine.apply(operation, &mut tally);
        }
        if is_hopeless(turn, &begin, patience) {
            return Outcome::GivenUp(patience);
        }
    }
    let took = nanoseconds(begin.elapsed());
    std::hint::black_box(&tally);
    let time = per_operation(took, flow.measured.len());
    match judge(flow, &engine.depth(), &tally) {
        Err(difference) if checked => Outcome::Wrong(time, difference),
        _ => Outcome::Right(time),
    }
}

/// True when the pass is given up; asked after each batch. `patience` is in seconds.
pub(super) fn is_hopeless(turn: usize, begin: &Stopwatch, patience: u64) -> bool {
    turn % 256 == 255 && (begin.elapsed() > Duration::from_secs(patience) || is_interrupted())
}

/// Picoseconds per operation.
pub(super) fn per_operation(nanoseconds: u64, operations: usize) -> u64 {
    (nanoseconds * 1000).checked_div(operations as u64).unwrap_or(0)
}

/// Times each batch of [`BATCH`] operations. `checked`: as for [`throughput`].
///
/// # Errors
/// Why the times do not count.
pub(super) fn batches<E: Engine>(flow: &Flow, checked: bool) -> Result<Percentiles, String> {
    let mut engine = filled::<E>(flow);
    let mut tally = Tally::default();
    let mut distribution = Distribution::default();
    let patience = patience(flow.measured.len());
    let whole = Stopwatch::start();
    for (turn, batch) in flow.measured.chunks(BATCH).enumerate() {
        let begin = Instant::now();
        engine.look_ahead(batch);
        for operation in batch {
            engine.apply(operation, &mut tally);
        }
        let took = begin.elapsed();
        if batch.len() == BATCH {
            distribution.record(nanoseconds(took));
        }
        if is_hopeless(turn, &whole, patience) {
            return Err(format!("given up after {patience} s"));
        }
    }
    std::hint::black_box(&tally);
    match judge(flow, &engine.depth(), &tally) {
        Err(difference) if checked => Err(format!("wrong: {difference}")),
        _ => Ok(distribution.percentiles()),
    }
}

/// Bytes that a book with the flow's orders in it takes; 0 where nothing is counted.
pub(super) fn memory<E: Engine>(flow: &Flow) -> usize {
    // The measured operations do not come, so that nobody is to reserve anything for them.
    let operations = flow.prefill.len() as u32;
    let before = live_bytes();
    let engine = filled_with::<E>(flow, &Capacity { operations, ..flow.capacity });
    let taken = live_bytes().saturating_sub(before);
    drop(std::hint::black_box(engine));
    taken
}

#[cfg(test)]
mod tests {
    use super::super::engines::{Empty, Touchline};
    use super::super::flows::Synthetic;
    use super::*;

    #[test]
    fn patience_grows_with_the_operations() {
        let seconds = [0, 1_000_000, 2_000_000, 2_200_000, 100_000_000].map(patience);
        assert_eq!(seconds, [10, 10, 10, 11, 500]);
    }

    #[test]
    fn batches_of_an_engine_that_is_wrong_do_not_count() {
        // The last batch is a short one, and its results count as well.
        let flow = Synthetic::Calm.generate(10 * BATCH + 7);
        let percentiles = batches::<Touchline>(&flow, true).unwrap();
        assert_eq!(percentiles.count, 10);
        assert!(batches::<Empty>(&flow, true).unwrap_err().starts_with("wrong"));
        assert!(batches::<Empty>(&flow, false).is_ok());
    }
}
