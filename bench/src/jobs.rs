//! What the jobs service costs: jobs of many users made over REST, one long list, and starts with all of
//! it there. Called by the command line.
//!
//! Users are written as records, as the adapter writes them, with one password's hash for all of them:
//! ten thousand registrations would measure the hash and nothing else. Their tokens are signed here, with
//! the venue's own keys. What is compared is the CPU time that a process takes per job, which a busy
//! machine falsifies least, and what it does for a job behind its reply is in it.

mod listing;
mod report;
mod requests;
mod venue;

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::level;
use crate::machine::Machine;
use crate::rest::load::{Load, Pace};
use crate::rest::usage;
use crate::scratch::Scratch;
use crate::temporary::Temporary;
pub use report::{JobsReport, Listed, Starts};
use requests::Requests;
use venue::{Running, Venue};

/// Jobs made before anything counts: connections are opened and caches filled.
const WARM_UP: u32 = 2_000;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct JobsOptions {
    /// The executable `touchline`.
    pub executable: PathBuf,
    /// Folder for the temporary data folders.
    pub scratch: PathBuf,
    /// Users, at least 1.
    pub users: u32,
    /// Jobs that they make, all in turn.
    pub jobs: u32,
    /// Further jobs of one of them, whose list is then asked for.
    pub list: u32,
    /// Kept connections.
    pub connections: usize,
}

impl JobsOptions {
    /// Jobs of the user whose list is asked for: those of the long list, and his share of all others.
    fn listed(&self) -> u32 {
        (WARM_UP + self.jobs).div_ceil(self.users) + self.list
    }

    /// Jobs that there are in the end.
    fn all_jobs(&self) -> u32 {
        WARM_UP + self.jobs + self.list
    }
}

/// What the two processes have used and hold.
#[derive(Clone, Copy, Default)]
struct Used {
    /// CPU time, ns.
    adapter_cpu: u64,
    engine_cpu: u64,
    /// Bytes of their own.
    adapter_memory: u64,
    engine_memory: u64,
}

impl Used {
    fn by(running: &Running) -> Result<Self> {
        let (adapter, engine) = (running.adapter.id(), running.engine.id());
        Ok(Self {
            adapter_cpu: usage::cpu_ns(adapter)?,
            engine_cpu: usage::cpu_ns(engine)?,
            adapter_memory: usage::own_bytes(adapter)?,
            engine_memory: usage::own_bytes(engine)?,
        })
    }

    /// Of each figure the part of each of `shares`.
    fn since(self, before: Self, shares: u32) -> Self {
        let each = |now: u64, before: u64| now.saturating_sub(before) / u64::from(shares.max(1));
        Self {
            adapter_cpu: each(self.adapter_cpu, before.adapter_cpu),
            engine_cpu: each(self.engine_cpu, before.engine_cpu),
            adapter_memory: each(self.adapter_memory, before.adapter_memory),
            engine_memory: each(self.engine_memory, before.engine_memory),
        }
    }
}

/// Measures.
///
/// # Errors
/// If a process does not start or ends early, a request is refused, or the run was interrupted.
pub fn run(options: &JobsOptions) -> Result<JobsReport> {
    usage::allow_open_files(options.connections)?;
    let folder = Temporary::new(&options.scratch)?;
    let empty_engine = venue::memory_without_records(options, folder.path())?;
    let venue = Venue::new(options, folder.path())?;
    let running = venue.start()?;
    let tokens = venue.make_users(options.users)?;
    let mut requests = Requests::new(&tokens);
    let mut load = Load::connect(running.address, options.connections)?;
    load.run(Pace::EachAfterItsReply, WARM_UP, &mut requests)?;
    level::wait(running.address)?;
    let before = Used::by(&running)?;
    let outcome = load.run(Pace::EachAfterItsReply, options.jobs, &mut requests)?;
    level::wait(running.address)?;
    let each = Used::by(&running)?.since(before, options.jobs);
    requests.make_all_for(0);
    load.run(Pace::EachAfterItsReply, options.list, &mut requests)?;
    drop(load);
    level::wait(running.address)?;
    let list = listing::read(&running, &tokens[0])?;
    ensure!(
        list.jobs == options.listed(),
        "the list has {} of {} jobs",
        list.jobs,
        options.listed()
    );
    let of_engine = Used { engine_memory: empty_engine, ..Used::default() };
    let engine_bytes = Used::by(&running)?.since(of_engine, options.all_jobs()).engine_memory;
    running.stop()?;
    let starts = venue.time_starts()?;
    let rate_per_adapter_core = 1_000_000_000 / each.adapter_cpu.max(1);
    Ok(JobsReport {
        machine: Machine::here(),
        scratch: Scratch::of(&options.scratch)?,
        users: options.users,
        jobs: options.jobs,
        connections: options.connections,
        rate: outcome.rate(),
        adapter_cpu_ns: each.adapter_cpu,
        engine_cpu_ns: each.engine_cpu,
        rate_per_adapter_core,
        latency: outcome.latency.percentiles(),
        adapter_bytes: each.adapter_memory,
        engine_bytes,
        list,
        starts,
        goals: report::goals(rate_per_adapter_core, engine_bytes),
    })
}
