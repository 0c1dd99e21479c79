//! The command line of `touchline-bench rtt`. Called by [`super`].

use anyhow::Result;

use super::engine::{EngineArguments, Runs};
use super::show;
use crate::rtt::{self, IDLE_SESSIONS_MAX, RttOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
Per run, blocks of all kinds alternate: a bare cache line with a sequence word between two spinning
processes, a 64-byte message through the ring to an echoing process, and through a real engine a LIMIT order
that rests, its cancel, and a LIMIT order that takes one of another account: in a session that is told all,
in a brief one, and in a terse one. What is taken was placed beforehand, by a session that is told all, and
is not timed. One order follows the reply to the other; those that take, and those by way of a second thread
(waiting adaptively), are sent on a schedule as well (--rate), their time counting from when each was due,
and are judged alike. No thread is pinned to a core. Ratios are taken within a run; medians over the runs are printed. The goal is that of orders
that take, with --wait spin: waiting adaptively the bare cache line spins and the others do not, so nothing is
judged.";

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Round trips of each kind per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    /// Orders per second of those that go on a schedule
    #[arg(
        long,
        default_value_t = 20_000,
        conflicts_with = "no_engine",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000),
    )]
    rate: u32,
    /// Measure the two baselines only
    #[arg(long, conflicts_with = "engine")]
    no_engine: bool,
    /// Sessions that are open beside those that are measured and send nothing
    #[arg(
        long,
        default_value_t = 0,
        conflicts_with = "no_engine",
        value_parser = clap::value_parser!(u32).range(..=IDLE_SESSIONS_MAX),
    )]
    idle_sessions: u32,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    runs: Runs,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let engine = if arguments.no_engine { None } else { Some(arguments.engine.options()?) };
    let report = rtt::run(&RttOptions {
        engine,
        wait: arguments.engine.wait.into(),
        runs: arguments.runs.count(),
        messages: arguments.messages,
        idle_sessions: arguments.idle_sessions,
        rate: arguments.rate,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
