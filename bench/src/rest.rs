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
use std::time::Duration;

use anyhow::{Result, ensure};
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

/// Longest time that orders beside connections which take part in nothing are scheduled for, seconds: an adapter closes
/// those that have said nothing for ten.
const CROWD_SECONDS: u32 = 5;

/// Longest time that an adapter may take to have all such connections, and to come to rest behind that.
const LETTING_IN: Duration = Duration::from_secs(2);

/// Longest time that it may take to come to rest behind other work.
const SETTLING: Duration = Duration::from_secs(20);

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

/// What connections that take part in nothing do to others in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CrowdRun {
    /// Latency of orders at the scheduled rate without them.
    pub without: Percentiles,
    /// And with them, once the adapter has taken all of them.
    pub with: Percentiles,
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

/// One run, and what the adapter's resident memory grew by meanwhile per connection, bytes.
fn crowd(options: &RestOptions, subject: &mut Subject) -> Result<(CrowdRun, u64)> {
    let requests = options.requests.min(CROWD_SECONDS * options.rate);
    let options = &RestOptions { requests, ..options.clone() };
    let (pid, connections) = (subject.pid, options.bystanders);
    usage::settle(pid, SETTLING)?;
    let without = subject.paced(options)?;
    usage::settle(pid, SETTLING)?;
    let (bytes, sockets) = (usage::resident_bytes(pid)?, usage::sockets(pid)?);
    let bystanders = Bystanders::start(subject.address, connections)?;
    // Else the first orders wait while thousands of connections are accepted: that is a flood, and no crowd.
    usage::wait_for_sockets(pid, sockets + connections, LETTING_IN)?;
    usage::settle(pid, LETTING_IN)?;
    let with = subject.paced(options)?;
    // Looked at behind the orders: by then the slow ones have sent bytes, which the adapter keeps.
    let grown = usage::resident_bytes(pid)?.saturating_sub(bytes);
    let left = usage::sockets(pid)?.saturating_sub(sockets);
    bystanders.end()?;
    ensure!(
        left >= connections,
        "the adapter has closed some of the {connections} connections while orders were sent beside them: take fewer"
    );
    Ok((CrowdRun { without, with }, grown / connections as u64))
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
