//! The command line of `touchline-bench tcp`. Called by [`super`].

use anyhow::Result;

use super::engine::{EngineArguments, Runs};
use super::show;
use crate::tcp::{self, TcpOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
T is an echo by one thread over a standard TCP socket, which spins whatever --wait says; T2 one with a second
thread behind a pair of rings, whose threads wait as the engine's do. A look at its socket is a call of the
system, so T2 is measured twice, looking as often as the gateway before it gives its core away, and once;
whichever of both has the shorter p50 in a run is what its figures are compared with. The engine's orders are
a sell that rests and a buy that takes it, in turn. Messages are sent when they are due, 256 under way at
the most, and times count from when they were due. Ratios are taken within a run; medians over the runs are
printed; no verdict (noise) where T took longer than T2, or T or T2 of one run more than three times that of
another.
Gateway and duty thread are two threads and the client is a third: with fewer than three cores free they
take each other's.";

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Messages of each kind per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    /// Messages per second
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    runs: Runs,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let report = tcp::run(&TcpOptions {
        engine: arguments.engine.options()?,
        runs: arguments.runs.count(),
        messages: arguments.messages,
        rate: arguments.rate,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
