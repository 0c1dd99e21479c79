//! The adapter's front with a service that answers everything alike, in a process of its own. Started
//! by [`super::run`], which this executable's hidden subcommand serves.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use touchline_adapter::front::{Front, FrontConfig};
use touchline_adapter::http::{Completion, Reply, Request, Service};

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
pub fn serve() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let body = format!("{{\"filler\":\"{}\"}}", "x".repeat(BODY_BYTES - 13));
    let config = FrontConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let front = Front::start(config, Arc::new(Constant { body: body.into() }))?;
    println!("{READY}{}", front.local_addr());
    let _asked_to_end = signals.forever().next();
    Ok(())
}

/// The running process.
pub(super) struct ConstantFront {
    process: Process,
    pub(super) address: SocketAddr,
}

impl ConstantFront {
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn stop(self) -> Result<()> {
        self.process.stop()
    }
}

pub(super) fn start(folder: &Path) -> Result<ConstantFront> {
    let own = std::env::current_exe().context("cannot find the own executable")?;
    let (process, address) = Process::start("constant", &own, [SUBCOMMAND], folder, READY)?;
    let address = address.parse().with_context(|| format!("address {address:?}"))?;
    Ok(ConstantFront { process, address })
}
