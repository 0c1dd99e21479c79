//! The adapter's front with a service that answers everything alike, in a process of its own. Started
//! by [`super::run`], which this executable's hidden subcommand serves.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use touchline_adapter::front::{Front, FrontConfig, FrontKind};
use touchline_adapter::http::{Completion, Reply, Request, Service};

use super::Subject;
use super::venue::Venue;
use crate::process::Process;

/// Name of the hidden subcommand that [`serve`] serves.
pub const SUBCOMMAND: &str = "rest-constant";

/// Length of the answer's body: about that of an order's.
const BODY_BYTES: usize = 400;

/// What precedes the address on the line that says that it is ready.
const READY: &str = "constant front ready http=";

struct Constant {
    body: bytes::Bytes,
}

impl Service for Constant {
    fn call(&self, _: Request, done: Completion) {
        done.send(Reply::json(200, self.body.clone()));
    }
}

/// Serves on a free port until SIGTERM.
///
/// # Errors
/// If the system refuses a thread, a socket or a signal handler.
pub fn serve(kind: FrontKind) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let body = format!("{{\"filler\":\"{}\"}}", "x".repeat(BODY_BYTES - 13));
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = FrontConfig { kind, ..FrontConfig::new(address) };
    let front = Front::start(config, Arc::new(Constant { body: body.into() }))?;
    println!("{READY}{}", front.local_addr());
    let _asked_to_end = signals.forever().next();
    Ok(())
}

/// The running process.
pub(super) struct ConstantFront {
    process: Process,
    address: SocketAddr,
}

impl ConstantFront {
    /// It, and the orders of a venue, which it takes for no more than bytes.
    pub(super) fn subject(&self, venue: &Venue) -> Result<Subject> {
        Ok(Subject {
            address: self.address,
            pid: self.process.id(),
            orders: venue.orders()?,
            has_log: false,
        })
    }

    pub(super) fn stop(self) -> Result<()> {
        self.process.stop()
    }
}

pub(super) fn start(folder: &Path, kind: FrontKind) -> Result<ConstantFront> {
    let own = std::env::current_exe().context("cannot find the own executable")?;
    let name = match kind {
        FrontKind::Hyper => "constant",
        FrontKind::May => "constant-may",
    };
    let arguments = [SUBCOMMAND, kind.name()];
    let (process, address) = Process::start(name, &own, arguments, folder, READY)?;
    let address = address.parse().with_context(|| format!("address {address:?}"))?;
    Ok(ConstantFront { process, address })
}
