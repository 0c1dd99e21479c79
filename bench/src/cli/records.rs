//! The command line of `touchline-bench records`. Called by [`super`].

use anyhow::Result;

use super::engine::{EngineArguments, Runs};
use super::show;
use crate::records::{self, RecordsOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
Blocks of three kinds alternate: orders alone, beside a thread that only computes, and beside one that
writes records of 60 bytes, over an adapter's session of the cold lane, as fast as the engine takes them;
before each, all is answered and on disk that the one before has left.
An order is a LIMIT that rests, to its terminal reply; each is cancelled before the next. What the records
cost is the third kind against the second: whoever is busy takes a core from somebody. Ratios are taken
within a run; medians over the runs are printed.";

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Orders of each kind per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    runs: Runs,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let report = records::run(&RecordsOptions {
        engine: arguments.engine.options()?,
        runs: arguments.runs.count(),
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
