//! What a signed order costs from socket to socket: the REST adapter beside the same HTTP front with a
//! constant answer, in the same run. Called by the command line.
//!
//! Both get the same requests over the same number of kept connections. What is compared is the CPU
//! time that the serving process takes per request, which a busy machine falsifies least; rates and
//! latencies stand beside it. Then thousands of connections that send nothing, or a byte now and then,
//! are opened: what each takes of the adapter's memory, and what they do to the others' latency.

mod bystanders;
pub mod constant;
pub(crate) mod load;
mod orders;
mod report;
pub(crate) mod usage;
mod venue;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use touchline_adapter::front::FrontKind;

use crate::latency::{Percentiles, median};
use crate::level;
use crate::machine::Machine;
use crate::scratch::Scratch;
use crate::temporary::Temporary;
use bystanders::Bystanders;
use constant::ConstantFront;
use load::{Load, Pace};
use orders::Orders;
pub use report::RestReport;
use venue::Venue;

/// Requests before each measured block: connections are opened and caches filled.
const WARM_UP: u32 = 500;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct RestOptions {
    /// The executable `touchline`.
    pub executable: PathBuf,
    /// Folder for temporary data folders.
    pub scratch: PathBuf,
    /// Runs; medians over them are reported.
    pub runs: usize,
    /// Requests of each block.
    pub requests: u32,
    /// Kept connections.
    pub connections: usize,
    /// Requests per second of the scheduled blocks.
    pub rate: u32,
    /// Further connections that send nothing or next to nothing; 0 leaves that part out.
    pub bystanders: usize,
    /// The front that is measured beside hyper, if it is another one.
    pub front: FrontKind,
}

/// What was measured of one server in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Block {
    /// CPU time of the serving process per request, ns, each connection sending its next request when
    /// it has its reply.
    pub cpu_ns: u64,
    /// What of that the asking and waiting until the adapter is level comes to, by as long a wait of an adapter with
    /// nothing to do, per request, ns. It is the same for few requests as for many, and no part of what one costs.
    pub waiting_ns: u64,
    /// Requests per second meanwhile.
    pub rate: u64,
    /// From when a request was due to its whole reply, at the scheduled rate.
    pub latency: Percentiles,
}

/// What connections cost in one run that take part in nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CrowdRun {
    /// Latency of orders at the scheduled rate without them.
    pub without: Percentiles,
    /// And with them, once the adapter has taken all of them.
    pub with: Percentiles,
    /// Resident memory of the adapter per such connection, bytes, behind the orders beside them.
    pub bytes_per_connection: u64,
}

/// What was measured of the second front in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SecondFront {
    /// A constant answer.
    pub constant: Block,
    /// Orders, answered when they are in the live window.
    pub appended: Block,
}

/// One run: three servers on hyper, and two on the second front if it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Run {
    /// The same front with a constant answer.
    pub constant: Block,
    /// Orders, answered when they are in the live window.
    pub appended: Block,
    /// Orders, answered when they are on disk.
    pub durable: Block,
    /// The second front.
    pub may: Option<SecondFront>,
}

/// A server and what is sent to it.
struct Subject {
    address: SocketAddr,
    pid: u32,
    orders: Orders,
    /// It has views and a history of a log to bring level.
    has_log: bool,
}

impl Subject {
    fn load(&self, connections: usize) -> Result<Load> {
        Load::connect(self.address, connections)
    }

    /// CPU time of the process so far, ns, once it has done all that requests have asked of it; and how many times it
    /// had not yet.
    fn cpu_ns(&self) -> Result<(u64, u32)> {
        let behind = if self.has_log { level::wait(self.address)? } else { 0 };
        Ok((usage::cpu_ns(self.pid)?, behind))
    }

    /// CPU time of as long a wait when there is nothing to do, ns.
    fn waiting_ns(&self, behind: u32) -> Result<u64> {
        if !self.has_log {
            return Ok(0);
        }
        let before = usage::cpu_ns(self.pid)?;
        level::ask_as_often(self.address, behind)?;
        Ok(usage::cpu_ns(self.pid)?.saturating_sub(before))
    }

    fn paced(&mut self, options: &RestOptions) -> Result<Percentiles> {
        let mut load = self.load(options.connections)?;
        load.run(Pace::EachAfterItsReply, WARM_UP, &mut self.orders)?;
        let outcome =
            load.run(Pace::PerSecond(options.rate), options.requests, &mut self.orders)?;
        Ok(outcome.latency.percentiles())
    }

    fn block(&mut self, options: &RestOptions) -> Result<Block> {
        let mut load = self.load(options.connections)?;
        load.run(Pace::EachAfterItsReply, WARM_UP, &mut self.orders)?;
        let (before, _) = self.cpu_ns()?;
        let outcome = load.run(Pace::EachAfterItsReply, options.requests, &mut self.orders)?;
        let (after, behind) = self.cpu_ns()?;
        let waiting = self.waiting_ns(behind)?;
        drop(load);
        let each = |cpu: u64| cpu / u64::from(options.requests);
        Ok(Block {
            cpu_ns: each(after.saturating_sub(before)),
            waiting_ns: each(waiting),
            rate: outcome.rate(),
            latency: self.paced(options)?,
        })
    }
}

/// Measures.
///
/// # Errors
/// If a process does not start or ends early, a request is refused, or the run was interrupted.
pub fn run(options: &RestOptions) -> Result<RestReport> {
    usage::allow_open_files(options.bystanders + 2 * options.connections)?;
    let folder = Temporary::new(&options.scratch)?;
    let hyper = FrontKind::Hyper;
    let appended = Venue::start(options, folder.path(), "appended", hyper)?;
    let durable = Venue::start(options, folder.path(), "durable", hyper)?;
    let front = constant::start(folder.path(), hyper)?;
    let mut second = match options.front {
        FrontKind::Hyper => None,
        FrontKind::May => Some(Second::start(options, folder.path())?),
    };
    let constant = front.subject(&appended)?;
    let mut subjects = [constant, appended.subject()?, durable.subject()?];
    let mut runs = Vec::with_capacity(options.runs);
    for _ in 0..options.runs {
        let [constant, appended, durable] = &mut subjects;
        runs.push(Run {
            constant: constant.block(options)?,
            appended: appended.block(options)?,
            durable: durable.block(options)?,
            may: second.as_mut().map(|second| second.run(options)).transpose()?,
        });
    }
    let mut crowds = Vec::new();
    if options.bystanders > 0 {
        for _ in 0..options.runs {
            crowds.push(crowd(options, &mut subjects[1])?);
        }
    }
    front.stop()?;
    appended.stop()?;
    durable.stop()?;
    second.map_or(Ok(()), Second::stop)?;
    let place = (Machine::here(), Scratch::of(&options.scratch)?);
    Ok(RestReport::new(place, options, runs, crowds))
}

/// The servers on the second front.
struct Second {
    front: ConstantFront,
    venue: Venue,
    constant: Subject,
    appended: Subject,
}

impl Second {
    fn start(options: &RestOptions, folder: &Path) -> Result<Self> {
        let venue = Venue::start(options, folder, "appended", options.front)?;
        let front = constant::start(folder, options.front)?;
        let (constant, appended) = (front.subject(&venue)?, venue.subject()?);
        Ok(Self { front, venue, constant, appended })
    }

    fn run(&mut self, options: &RestOptions) -> Result<SecondFront> {
        let constant = self.constant.block(options)?;
        Ok(SecondFront { constant, appended: self.appended.block(options)? })
    }

    fn stop(self) -> Result<()> {
        self.front.stop()?;
        self.venue.stop()
    }
}

/// The first run's memory is what counts: later ones have their connections where those of the run before were.
fn crowd(options: &RestOptions, subject: &mut Subject) -> Result<CrowdRun> {
    usage::settle(subject.pid)?;
    let without = subject.paced(options)?;
    let before = usage::resident_bytes(subject.pid)?;
    let bystanders = Bystanders::start(subject.address, options.bystanders)?;
    // Else the first orders wait while thousands of connections are accepted, which is a flood and no crowd.
    usage::settle(subject.pid)?;
    let with = subject.paced(options)?;
    // Now: the slow ones have sent bytes.
    let grown = usage::resident_bytes(subject.pid)?.saturating_sub(before);
    bystanders.end()?;
    Ok(CrowdRun { without, with, bytes_per_connection: grown / options.bystanders as u64 })
}

fn median_block(blocks: impl Iterator<Item = Block> + Clone) -> Block {
    let latencies: Vec<_> = blocks.clone().map(|block| block.latency).collect();
    Block {
        cpu_ns: median(blocks.clone().map(|block| block.cpu_ns)),
        waiting_ns: median(blocks.clone().map(|block| block.waiting_ns)),
        rate: median(blocks.map(|block| block.rate)),
        latency: Percentiles::median(&latencies),
    }
}
