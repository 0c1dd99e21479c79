//! The command line of `touchline-bench history`. Called by [`super`].

use std::path::PathBuf;

use anyhow::Result;

use super::show;
use crate::history::{self, HistoryOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
No process but this one runs; fold, store, tailer, writer and handlers are the adapter's own, on a made-up
log. First one thread folds it and writes each batch, synced, until the store has so many rows: a line per
million. Then the adapter's threads follow the log at a steady rate, while pages are asked for, one after
the other, and timed from the call of the handler to its reply, JSON included; they come out of the page
cache, and those from a number begin anywhere in the history. Events are those of the log:
two of an order that comes to rest, one of a cancel, three of an order that takes.";

/// Events of a transaction, on average: of fewer per second none would arrive in a second.
const EVENTS_MIN: u64 = 2;

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Folder for the temporary store, on the disk that is to be measured [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Millions of rows that the store grows to
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    millions: u64,
    /// Events per second that arrive while pages are read
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(EVENTS_MIN..=10_000_000))]
    rate: u64,
    /// Pages of each kind
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pages: u32,
    /// Print one line of JSON instead of text: durations in ns
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let report = history::run(&HistoryOptions {
        scratch: arguments.scratch.unwrap_or_else(std::env::temp_dir),
        millions: arguments.millions,
        rate: arguments.rate,
        pages: arguments.pages,
    })?;
    show(arguments.json, &report, || report.to_string())?;
    Ok(true)
}
