//! The command line of `touchline-bench jobs`. Called by [`super`].

use std::path::PathBuf;

use anyhow::Result;

use super::{executable, show};
use crate::jobs::{self, JobsOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
Users are written as records with one password's hash for all, and their tokens signed here: passwords
are not what is measured. CPU is that of the process named, until the adapter's views and history have all
jobs; the machine's cores carry adapter, engine and load together. All answers come when a job is in the live window (appended). Memory is that of the process
alone, without files and what it shares.";

/// Jobs of the short run.
const QUICK_JOBS: u32 = 50_000;

/// Users of the short run.
const QUICK_USERS: u32 = 500;

/// Jobs of the short run's long list.
const QUICK_LIST: u32 = 10_000;

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Users
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    users: u32,
    /// Jobs that they make
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    jobs: u32,
    /// Further jobs of one user, whose list is asked for
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    list: u32,
    /// A short run: 50,000 jobs of 500 users, and a list of 10,000
    #[arg(long, conflicts_with_all = ["users", "jobs", "list"])]
    quick: bool,
    /// Kept connections
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    /// The executable touchline [default: beside this one]
    #[arg(long, value_name = "PATH")]
    engine: Option<PathBuf>,
    /// Folder for the temporary data folder [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Print one line of JSON instead of text: durations in ns
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let (users, jobs, list) = match arguments.quick {
        true => (QUICK_USERS, QUICK_JOBS, QUICK_LIST),
        false => (arguments.users, arguments.jobs, arguments.list),
    };
    let report = jobs::run(&JobsOptions {
        executable: executable(arguments.engine.as_deref())?,
        scratch: arguments.scratch.unwrap_or_else(std::env::temp_dir),
        users,
        jobs,
        list,
        connections: arguments.connections.into(),
    })?;
    show(arguments.json, &report, || report.text())?;
    Ok(true)
}
