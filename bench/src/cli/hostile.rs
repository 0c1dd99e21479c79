//! The command line of `touchline-bench hostile`. Called by [`super`].

use anyhow::Result;

use super::engine::EngineArguments;
use super::show;
use crate::hostile::{self, HostileOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
Blocks of four kinds alternate over each carrier: orders alone, beside a thread that only computes, beside
a client that sends what is rejected and never reads, and beside one that knocks, says nonsense and is shown
the door. On a machine of few cores whoever is busy takes a core from somebody, whatever the engine does; so
the third and the fourth count against the second. Ratios are taken within a run.";

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Orders of each kind per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let report = hostile::run(&HostileOptions {
        engine: arguments.engine.options()?,
        runs: arguments.engine.runs,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
