//! The command line of `touchline-bench hostile`. Called by [`super`].

use anyhow::Result;

use super::engine::OrdersArguments;
use super::show;
use crate::hostile::{self, HostileOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
Blocks of four kinds alternate over each carrier: orders alone, beside a thread that only computes, beside
a client that sends what is rejected and never reads, and beside one that knocks, says nonsense and is shown
the door. On a machine of few cores whoever is busy takes a core from somebody, whatever the engine does; so
the third and the fourth count against the second. Ratios are taken within a run.";

/// Measures and prints.
pub(super) fn run(arguments: OrdersArguments) -> Result<bool> {
    let report = hostile::run(&HostileOptions {
        engine: arguments.engine.options()?,
        runs: arguments.engine.runs,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
