//! The command line of `touchline-bench replay`. Called by [`super`].

use std::path::PathBuf;

use anyhow::Result;

use super::engine::{EngineArguments, RUNS_MAX};
use super::print;
use crate::replay::{self, ReplayOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
FILE and the top-of-book file have the layout of LOBSTER's samples: no line of headings, and in each row
  FILE         seconds after midnight, event, order number, size, price, side of the order that rests
  top of book  best ask, its size, best bid, its size
with sizes in whole units, prices times 10,000, and 1 for a buy, -1 for a sell. Events: 1 new order,
2 part of one cancelled, 3 one cancelled, 4 one executed, 5 a hidden one executed, 7 a halt.

Rows become commands: 1 LIMIT GTC, 2 reduction, 3 cancel, 4 opposite LIMIT IOC that must hit exactly
the recorded order, 5 and 7 none. Rows about orders that no row introduced are skipped and counted.
An execution out of price-time order is taken from the named order directly and counted by cause.

The top of book after each row is rebuilt from the engine's replies alone. Distinct states (both
sides present, other than the one before) are matched with the recorded ones by the longest common
subsequence. The recorded file is cut where the completed flow ends best.

The completed flow is a second pass with what the recording itself reveals: orders that no row
introduced (later rows tell their price, side and size; their number tells when they came), and
orders that left the recorded depth and are never mentioned again (removed there, unseen). A
difference of the first pass is explained only if one of the two changes the top of book where it is,
and only differences that the second pass does not have any more are explained at all. The rest is
`other`.

Exit code 1 if `other` is not 0, a command had an unexpected outcome, the engine's book differs from
the independent price-time book after any row, or a measured pass had other events.";

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Recorded messages: CSV or gzip of it
    file: PathBuf,
    /// Recorded top-of-book states [default: the only file named *top-of-book* beside FILE]
    #[arg(long, value_name = "FILE")]
    top_of_book: Option<PathBuf>,
    /// Best price levels per side that the recording covers
    #[arg(long, value_name = "LEVELS", default_value_t = 50)]
    depth: usize,
    /// Commands per second of the scheduled pass, or max to leave it out
    #[arg(long, value_name = "N|max", default_value = "50000", value_parser = rate)]
    rate: Rate,
    /// Measured runs, whose medians are printed; 0 leaves only the checks, and null in place of the medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(0..=RUNS_MAX))]
    runs: u16,
    #[command(flatten)]
    engine: EngineArguments,
}

impl Arguments {
    /// Whether anything is timed, and not only checked.
    pub(super) const fn is_timed(&self) -> bool {
        self.runs > 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rate(Option<u32>);

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate(None));
    }
    match text.parse() {
        Ok(rate @ 1..=100_000_000) => Ok(Rate(Some(rate))),
        _ => Err("expected max or a number from 1 to 100000000".to_owned()),
    }
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let top_of_book = match arguments.top_of_book {
        Some(path) => path,
        None => replay::top_of_book_beside(&arguments.file)?,
    };
    let report = replay::run(&ReplayOptions {
        messages: arguments.file,
        top_of_book,
        recorded_depth: arguments.depth,
        engine: arguments.engine.options()?,
        rate: arguments.rate.0,
        runs: arguments.runs.into(),
    })?;
    print(&if arguments.engine.json { report.json()? + "\n" } else { report.text() })?;
    Ok(report.passed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_or_max() {
        assert_eq!(rate("max"), Ok(Rate(None)));
        assert_eq!(rate("1000"), Ok(Rate(Some(1000))));
        for wrong in ["0", "-1", "", "1e5", "100000001"] {
            assert!(rate(wrong).is_err(), "{wrong:?}");
        }
    }
}
