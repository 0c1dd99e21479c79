//! The command line of `touchline-bench records`. Called by [`super`].

use anyhow::Result;

use super::engine::OrdersArguments;
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

/// Measures and prints.
pub(super) fn run(arguments: OrdersArguments) -> Result<bool> {
    let report = records::run(&RecordsOptions {
        engine: arguments.engine.options()?,
        runs: arguments.runs.count(),
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
