//! `touchline-bench feed`: what readers of the public feed cost the duty thread, and how far behind an
//! order's reply its message is.
//!
//! The cost is taken without any other process: the engine's own duty, log, keeper and feed, with the duty
//! thread on one core and all other threads off it. A request ring is filled, and the duty thread eats it
//! while readers follow: parked at the begin of a block, woken by fillings that are not timed, awake or asleep
//! as they go while others are. Blocks of all kinds alternate; ratios are taken between
//! neighbours. The lag is that of a real engine process.

mod lag;
mod readers;
mod venue;

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::cores::Pinned;
use crate::engine::EngineOptions;
use crate::goal::{Compared, Goal};
use crate::latency::{Percentiles, duration, median, median_ratio, ratio};
use crate::machine::Machine;
use crate::rtt::wait_name;
use crate::scratch::Scratch;
use lag::Lag;
use readers::{Readers, Reading};
use venue::Venue;

/// Readers of each kind of block; the first kind has no feed at all.
pub const READERS: [Option<usize>; 4] = [None, Some(0), Some(1), Some(8)];

/// Fillings of the ring per block.
const FILLINGS: u32 = 50;

/// With less than so many percent of the messages read by the end of what is timed, the cost of readers is not told:
/// some of it came later.
const LEAST_READ: u64 = 50;

/// What a command may cost with readers, to what it costs without, in hundredths; and of how many blocks of each kind at
/// least that is told.
const TO_NO_READER: u64 = 110;
const LEAST_BLOCKS: usize = 9;

/// Said in the place of a verdict.
const TOO_LATE: &str = "read too late to tell";
const TOO_FEW: &str = "too few blocks";

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// The engine whose lag is measured; its scratch folder is that of the logs too.
    pub engine: EngineOptions,
    /// Blocks of each kind.
    pub blocks: usize,
    /// The duty thread's core; none: it and its readers run anywhere.
    pub core: Option<usize>,
    /// Orders whose messages are waited for.
    pub messages: u32,
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FeedReport {
    /// What it was measured on.
    pub machine: Machine,
    /// What the engine's log was written to.
    pub scratch: Scratch,
    /// Blocks of each kind.
    pub blocks: usize,
    /// Commands of a block.
    pub commands: u64,
    /// A thousand commands, ns, medians over the blocks, in [`READERS`]' order.
    pub ns_per_1000: [u64; 4],
    /// Each kind to a feed without readers, medians of the ratios of neighbours, in hundredths.
    pub to_no_reader: [u64; 4],
    /// Messages that readers missed.
    pub missed: u64,
    /// Messages that were read while commands were timed, to those that came meanwhile, in percent, 100 at the most, in
    /// [`READERS`]' order; 100 where there are no readers.
    pub read_percent: [u64; 4],
    /// What is to be reached.
    pub goals: Vec<Goal>,
    /// How the lag's two sides wait.
    pub wait: &'static str,
    /// Order to reply, and to its message, over shared memory and over TCP.
    pub lag: Lag,
}

/// Measures.
///
/// # Errors
/// If a log, a thread or the engine does not start, the engine answers wrongly, or the run was interrupted.
pub fn run(options: &FeedOptions) -> Result<FeedReport> {
    // A core that cannot be had is told before anything is made.
    drop(Pinned::to(options.core)?);
    let scratch = &options.engine.scratch;
    let mut without = Venue::new(scratch, options.core, false)?;
    let mut with = Venue::new(scratch, options.core, true)?;
    let eaten = eat(&mut without, &mut with, options);
    // Whatever came of it: a feed that runs on would say that its folder is gone.
    with.stop();
    without.stop();
    let Eaten { blocks, commands, missed, reading } = eaten?;
    // What was late from before, and read while commands were timed, is as much work as what was new.
    let percent = |of: Reading| (of.read * 100).checked_div(of.published).unwrap_or(100).min(100);
    let read_percent = reading.map(percent);
    ensure!(read_percent.iter().all(|&percent| percent > 0), "readers slept through all of it");
    let kinds: [usize; 4] = std::array::from_fn(|kind| kind);
    let lag = lag::measure(&options.engine, options.messages)?;
    Ok(FeedReport {
        machine: Machine::here(),
        scratch: Scratch::of(&options.engine.scratch)?,
        blocks: options.blocks,
        commands,
        ns_per_1000: kinds.map(|kind| median(blocks.iter().map(|block| block[kind]))),
        to_no_reader: kinds
            .map(|kind| median_ratio(blocks.iter().map(|block| (block[kind], block[1])))),
        missed,
        read_percent,
        goals: goals(&blocks, &read_percent),
        wait: wait_name(options.engine.wait),
        lag,
    })
}

fn goals(blocks: &[[u64; 4]], read_percent: &[u64; 4]) -> Vec<Goal> {
    let of_kind = |(kind, readers): (usize, Option<usize>)| {
        let readers = readers.filter(|&readers| readers > 0)?;
        // A thousand commands took as many ns as each took thousandths.
        let thousandths = |ns| format!("{}.{} ns", ns / 1000, ns % 1000 / 100);
        let pairs = blocks.iter().map(|block| (block[kind], block[1]));
        let goal = Compared::beside(pairs, &thousandths)
            .at_most(format!("a command, {readers} reader(s), to none"), TO_NO_READER);
        Some(if read_percent[kind] < LEAST_READ {
            goal.without_verdict(TOO_LATE)
        } else if blocks.len() < LEAST_BLOCKS {
            goal.without_verdict(TOO_FEW)
        } else {
            goal
        })
    };
    READERS.into_iter().enumerate().filter_map(of_kind).collect()
}

/// What came of the blocks.
#[derive(Default)]
struct Eaten {
    /// A thousand commands, ns, in [`READERS`]' order.
    blocks: Vec<[u64; 4]>,
    /// Commands of each.
    commands: u64,
    missed: u64,
    /// In [`READERS`]' order.
    reading: [Reading; 4],
}

fn eat(without: &mut Venue, with: &mut Venue, options: &FeedOptions) -> Result<Eaten> {
    let mut eaten = Eaten::default();
    for _ in 0..options.blocks {
        let mut block = [0; 4];
        for (kind, (ns, readers)) in block.iter_mut().zip(READERS).enumerate() {
            let venue = if readers.is_some() { &mut *with } else { &mut *without };
            let readers = Readers::start(venue, readers.unwrap_or(0), options.core)?;
            let (took, done, reading) = venue.eat(FILLINGS, &readers)?;
            eaten.reading[kind] += reading;
            eaten.missed += readers.stop()?;
            *ns = took * 1000 / done;
            eaten.commands = done;
        }
        eaten.blocks.push(block);
    }
    Ok(eaten)
}

impl FeedReport {
    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "duty thread eating a full ring: {} blocks of {} commands of each kind, medians\nmachine: \
             {}\nscratch: {}\n\n{:<22}{:>12}   to no reader   read meanwhile\n",
            self.blocks,
            self.commands,
            self.machine.line(),
            self.scratch.line(),
            "",
            "per command",
        );
        for (kind, readers) in READERS.into_iter().enumerate() {
            let name =
                readers.map_or("no feed".to_owned(), |count| format!("feed, {count} readers"));
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                text,
                "{name:<22}{:>12}   {:>12}   {:>13}%{}",
                duration(self.ns_per_1000[kind] / 1000),
                ratio(self.to_no_reader[kind], 100),
                self.read_percent[kind],
                if self.read_percent[kind] < LEAST_READ { ": too late to tell" } else { "" },
            );
        }
        text.push_str(&Goal::lines(&self.goals));
        let _infallible = writeln!(
            text,
            "\nmessages that readers missed: {}\n\none order at a time, waiting {}, from when it was \
             sent\n{:<34}{}",
            self.missed,
            self.wait,
            "",
            Percentiles::HEADING,
        );
        let lag = &self.lag;
        for (name, percentiles) in [
            ("to its reply, feed in memory", lag.memory.reply),
            ("to its message there", lag.memory.message),
            ("to its reply, feed over TCP", lag.tcp.reply),
            ("to its message there", lag.tcp.message),
        ] {
            let _infallible = writeln!(text, "{name:<34}{}", percentiles.columns());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_judged_by_what_they_cost_if_they_read_in_time_and_often_enough() {
        let blocks = |count, eight| vec![[1, 100_000, 110_000, eight]; count];
        let told = |blocks: &[[u64; 4]], percent| -> Vec<_> {
            let goals = goals(blocks, &[100, 100, percent, 100]);
            goals.into_iter().map(|goal| (goal.reached, goal.untold)).collect()
        };
        let (yes, no) = ((Some(true), None), (Some(false), None));
        assert_eq!(told(&blocks(9, 110_001), 50), [yes, no]);
        assert_eq!(told(&blocks(9, 110_000), 49), [(None, Some(TOO_LATE)), yes]);
        assert_eq!(told(&blocks(8, 1), 50), [(None, Some(TOO_FEW)); 2]);
    }
}
