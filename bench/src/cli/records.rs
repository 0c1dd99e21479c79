//! The command line of `touchline-bench records`. Called by [`super`].

use anyhow::Result;

use super::engine::OrdersArguments;
use super::show;
use crate::records::{self, RecordsOptions};

/// Measures and prints.
pub(super) fn run(arguments: OrdersArguments) -> Result<bool> {
    let report = records::run(&RecordsOptions {
        engine: arguments.engine.options()?,
        runs: arguments.engine.runs,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
