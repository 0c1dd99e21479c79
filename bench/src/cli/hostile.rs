//! The command line of `touchline-bench hostile`. Called by [`super`].

use anyhow::Result;

use super::engine::OrdersArguments;
use super::show;
use crate::hostile::{self, HostileOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
Blocks of six kinds alternate over each carrier: orders alone, beside a thread that only computes, beside a
client that floods a plain server over TCP, beside one that sends the engine what is rejected and never
reads, beside one that opens connections to the plain server without end, and beside one that does so to the
engine, says nonsense and is shown the door. On a machine of few cores whoever is busy takes a core from
somebody, whatever the engine does; so harm counts against the thread that computes, and against the same
harm done to the plain server, which is over TCP whatever carries the orders. Ratios are taken within a run.";

/// Measures and prints.
pub(super) fn run(arguments: OrdersArguments) -> Result<bool> {
    let report = hostile::run(&HostileOptions {
        engine: arguments.engine.options()?,
        runs: arguments.runs.count(),
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
