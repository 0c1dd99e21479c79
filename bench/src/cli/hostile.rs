//! The command line of `touchline-bench hostile`. Called by [`super`].

use anyhow::Result;

use super::engine::{EngineArguments, Runs};
use super::show;
use crate::hostile::{self, HostileOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
Blocks of seven kinds alternate over each carrier: orders alone, beside a thread that only computes, beside a
client that floods a plain server over TCP, beside one that sends the engine what is rejected and reads the
replies, beside one that does not read them, beside one that opens connections to the plain server without
end, and beside one that does so to the engine, says nonsense and is shown the door. An order is due every
500 us and its time counts from then. On a machine of few cores whoever is busy takes a core from somebody,
whatever the engine does; so harm counts against the orders alone and against the thread that computes, which
are both judged, and against the same harm done to the plain server, which is over TCP whatever carries the
orders; with --core N it has only what others leave it of the cores. Ratios are taken within a run.";

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The duty thread's core, off which all others are; of theirs the vandal, and the thread that computes, have
    /// only what nobody else needs. Without it all take turns on all cores
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Commands that the engine takes of a session in a second (engine.commands_per_second); 0: all. The honest client
    /// sends 2,000
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000_000))]
    commands_per_second: u32,
    /// Orders of each kind per run, two a millisecond
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    runs: Runs,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let report = hostile::run(&HostileOptions {
        engine: arguments.engine.options()?,
        runs: arguments.runs.count(),
        messages: arguments.messages,
        core: arguments.core,
        commands_per_second: arguments.commands_per_second,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}
