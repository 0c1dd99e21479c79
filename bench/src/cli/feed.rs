//! The command line of `touchline-bench feed`. Called by [`super`].

use anyhow::Result;

use super::engine::{EngineArguments, Runs};
use super::show;
use crate::feed::{self, FeedOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
The cost is taken in this process, by the engine's own parts: with --core N the duty thread is on core N and
all others are off it. Blocks without a feed, with a feed and no reader, one and eight readers alternate.
Three blocks of each per run. Readers are threads that sleep when there is nothing; ten fillings of the ring,
which are not timed, have woken them when the time begins, and they follow from there. The lag is a real
engine's, one order at a time, seen by a client that waits for the reply and then for the message.";

/// Blocks of each kind that `feed` makes for each of its runs.
const BLOCKS_PER_RUN: usize = 3;

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The duty thread's core; without it all threads run anywhere
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Orders whose messages are waited for, over each carrier
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    runs: Runs,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let report = feed::run(&FeedOptions {
        engine: arguments.engine.options()?,
        blocks: arguments.runs.count() * BLOCKS_PER_RUN,
        core: arguments.core,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
