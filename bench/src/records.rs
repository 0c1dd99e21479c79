//! `touchline-bench records`: round trips of orders with and without a flood of record writes beside
//! them, through one engine.
//!
//! On a machine of few cores the program that floods takes a core from somebody, whatever the engine
//! does. So blocks of three kinds alternate: orders alone, orders beside a thread that only computes, and
//! orders beside one that writes records. What the records cost is the third against the second. Before each block
//! all is answered and on disk that the one before has left.

mod flood;

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::engine::{Engine, EngineOptions};
use crate::latency::{
    Distribution, Percentiles, hundredths, median, median_far_ratio, median_ratio, ratio,
};
use crate::machine::Machine;
use crate::rtt::{Trader, wait_name};
use crate::scratch::Scratch;
use flood::{Beside, Flood};

/// Blocks of each kind per run.
const BLOCKS: u32 = 10;

/// Unrecorded round trips at the begin of each block.
const WARM_UP: u32 = 64;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct RecordsOptions {
    /// The engine.
    pub engine: EngineOptions,
    /// Runs, each with an engine of its own; medians over them are reported.
    pub runs: usize,
    /// Orders of each kind per run, at least; blocks are equally long.
    pub messages: u32,
}

impl RecordsOptions {
    /// Orders of a block.
    const fn trips(&self) -> u32 {
        self.messages.div_ceil(BLOCKS)
    }
}

/// One run: orders that rest, to their terminal replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Run {
    /// Nothing beside them.
    pub alone: Percentiles,
    /// A thread beside them that only computes.
    pub computing: Percentiles,
    /// Records beside them.
    pub flooded: Percentiles,
    /// Records per second meanwhile.
    pub records_per_second: u64,
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RecordsReport {
    /// What it was measured on.
    pub machine: Machine,
    /// Where temporary data was.
    pub scratch: Scratch,
    /// `adaptive` or `spin`.
    pub wait: &'static str,
    /// Orders of each kind per run: as many as were recorded, in whole blocks.
    pub messages: u32,
    /// Each run.
    pub runs: Vec<Run>,
    /// Medians of the runs.
    pub median: Run,
    /// Median of the runs' ratios of p50, flooded to computing, in hundredths.
    pub flooded_to_computing: u64,
    /// As before, of p99; none of too few orders.
    pub flooded_to_computing_p99: Option<u64>,
    /// As `flooded_to_computing`, flooded to alone.
    pub flooded_to_alone: u64,
}

/// Measures.
///
/// # Errors
/// If the engine does not start, ends early or answers wrongly, or the run was interrupted.
pub fn run(options: &RecordsOptions) -> Result<RecordsReport> {
    let mut runs = Vec::new();
    for _ in 0..options.runs {
        runs.push(one_run(options)?);
    }
    let of = |field: fn(&Run) -> Percentiles| {
        Percentiles::median(&runs.iter().map(field).collect::<Vec<_>>())
    };
    let to = |over: fn(&Run) -> (u64, u64)| median_ratio(runs.iter().map(over));
    let far = runs.iter().map(|run| (run.flooded.p99, run.computing.p99));
    Ok(RecordsReport {
        machine: Machine::here(),
        scratch: Scratch::of(&options.engine.scratch)?,
        wait: wait_name(options.engine.wait),
        messages: options.trips() * BLOCKS,
        median: Run {
            alone: of(|run| run.alone),
            computing: of(|run| run.computing),
            flooded: of(|run| run.flooded),
            records_per_second: median(runs.iter().map(|run| run.records_per_second)),
        },
        flooded_to_computing: to(|run| (run.flooded.p50, run.computing.p50)),
        flooded_to_computing_p99: median_far_ratio(far),
        flooded_to_alone: to(|run| (run.flooded.p50, run.alone.p50)),
        runs,
    })
}

fn one_run(options: &RecordsOptions) -> Result<Run> {
    let engine = Engine::start(&options.engine)?;
    let mut trader = Trader::open(&engine, 0)?;
    let flood = Flood::start(&engine)?;
    let kinds = [Beside::Nothing, Beside::Computing, Beside::Records];
    let mut orders = kinds.map(|_| Distribution::default());
    let mut cancels = Distribution::default();
    let trips = options.trips();
    let (mut records, mut seconds) = (0, 0.0);
    for block in 0..BLOCKS as usize {
        // Another one first each time: what the waits learn in a block lasts into the next.
        for at in (block..block + kinds.len()).map(|at| at % kinds.len()) {
            let beside = kinds[at];
            if !flood.settle()? {
                flood.stop()?;
                bail!("the thread beside the orders ended");
            }
            flood.set(beside);
            let (begin, before) = (Instant::now(), flood.answered());
            trader.block(WARM_UP, trips, &mut orders[at], &mut cancels)?;
            if beside == Beside::Records {
                records += flood.answered() - before;
                seconds += begin.elapsed().as_secs_f64();
            }
        }
    }
    flood.stop()?;
    drop(trader);
    engine.stop()?;
    let [alone, computing, flooded] = orders;
    Ok(Run {
        alone: alone.percentiles(),
        computing: computing.percentiles(),
        flooded: flooded.percentiles(),
        records_per_second: (records as f64 / seconds) as u64,
    })
}

impl RecordsReport {
    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "orders beside records: {} round trips of each kind per run, median of {} run(s), \
             waiting {}\nmachine: {}\nscratch: {}\n\n{:<26}{}\n",
            self.messages,
            self.runs.len(),
            self.wait,
            self.machine.line(),
            self.scratch.line(),
            "",
            Percentiles::HEADING,
        );
        for (name, percentiles) in [
            ("alone", self.median.alone),
            ("beside a busy thread", self.median.computing),
            ("beside a flood of records", self.median.flooded),
        ] {
            // Writing to a String cannot fail.
            let _infallible = writeln!(text, "{name:<26}{}", percentiles.columns());
        }
        let _infallible = write!(
            text,
            "\nrecords meanwhile: {} per second\nflood to busy thread: p50 {}, p99 {}; flood to \
             alone: p50 {}\n",
            self.median.records_per_second,
            ratio(self.flooded_to_computing, 100),
            hundredths(self.flooded_to_computing_p99),
            ratio(self.flooded_to_alone, 100),
        );
        text
    }
}
