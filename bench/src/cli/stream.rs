//! The command line of `touchline-bench stream`. Called by [`super`].

use anyhow::Result;

use super::engine::{EngineArguments, Runs};
use super::show;
use crate::stream::{self, StreamOptions};

/// What the help ends with.
pub(super) use crate::stream::HELP;

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Messages of each kind per run
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    runs: Runs,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let (engine, runs) = (arguments.engine.options()?, arguments.runs.count());
    let report = stream::run(&StreamOptions { engine, runs, messages: arguments.messages })?;
    show(arguments.engine.json, &report, || report.to_string())?;
    Ok(true)
}
