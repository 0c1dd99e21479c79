//! The command line of `touchline-bench records`. Called by [`super`].

use anyhow::Result;

use super::engine::EngineArguments;
use super::show;
use crate::records::{self, RecordsOptions};

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
    let report = records::run(&RecordsOptions {
        engine: arguments.engine.options()?,
        runs: arguments.engine.runs,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
