//! The command line of `touchline-bench rest`. Called by [`super`].

use std::path::PathBuf;

use anyhow::Result;
use touchline_adapter::front::FrontKind;

use super::{executable, show};
use crate::rest::{self, RestOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
Three servers get the same signed orders in turn, block by block: the front with a constant answer of 400
bytes, and a whole venue each that answers when an order is appended and when it is durable. CPU is that
of the serving process (front and adapter; the engine is a process of its own), while each connection
sends as fast as it is answered, until views and history have all of it on disk. What that wait costs an
adapter with nothing to do stands beside it: it is in the figure, and the fewer the requests the more of it
it is. Latencies are taken at a scheduled rate, from when a request was due.
Orders at the scheduled rate are then sent beside thousands of connections that take part in nothing, for at
most 5 s at a time and once the adapter has taken all of them: as often as there are runs, each beside the
same without them.
With --front may the constant answer and the appended orders are measured on that front too. All ratios are
to the constant answer on hyper.";

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The executable touchline [default: beside this one]
    #[arg(long, value_name = "PATH")]
    engine: Option<PathBuf>,
    /// Folder for temporary data folders [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Measured runs, whose medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// Requests of each block
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    requests: u32,
    /// Kept connections
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    /// Requests per second of the scheduled blocks
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    /// Further connections that send nothing or a byte now and then; 0 leaves that part out
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u16).range(0..=20_000))]
    bystanders: u16,
    /// may: measure the second front beside the first, in the same runs
    #[arg(long, value_name = "NAME", default_value = "hyper")]
    front: FrontKind,
    /// Print one line of JSON instead of text: durations in ns, ratios in hundredths
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let report = rest::run(&RestOptions {
        executable: executable(arguments.engine.as_deref())?,
        scratch: arguments.scratch.unwrap_or_else(std::env::temp_dir),
        runs: arguments.runs.into(),
        requests: arguments.requests,
        connections: arguments.connections.into(),
        rate: arguments.rate,
        bystanders: arguments.bystanders.into(),
        front: arguments.front,
    })?;
    show(arguments.json, &report, || report.text())?;
    Ok(true)
}
