//! The other process of a baseline: started from the own executable, told over a socket how many
//! round trips come next, asleep until then. It ends when the socket does. Called by
//! [`super::ping_pong`] and [`super::echo`].

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use touchline_protocol::shm::descriptors::{receive_with_descriptors, send_with_descriptors};

use super::{echo, ping_pong};
use crate::child::{self, Guarded};
use crate::interrupt;

/// Name of the hidden subcommand that [`serve`] is.
const SUBCOMMAND: &str = "rtt-peer";

/// Longest wait for one answer of the other process.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Which baseline a process serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PeerKind {
    /// A bare cache line.
    PingPong,
    /// Our ring, waiting adaptively.
    EchoAdaptive,
    /// Our ring, spinning.
    EchoSpin,
}

/// The other process, as this one sees it.
pub(super) struct Peer {
    // Closed before the process is ended: fields are dropped in this order.
    line: UnixStream,
    _process: Guarded,
}

impl Peer {
    /// Starts a process for `kind` and gives it `descriptors`.
    pub(super) fn start(kind: PeerKind, descriptors: &[BorrowedFd<'_>]) -> Result<Self> {
        let (line, theirs) = UnixStream::pair()?;
        let own = std::env::current_exe().context("cannot find the own executable")?;
        let name = kind.to_possible_value().context("every kind has a name")?;
        let process = Guarded::spawn(
            child::command(&own, [SUBCOMMAND, name.get_name()])?
                .stdin(Stdio::from(OwnedFd::from(theirs))),
        )?;
        send_with_descriptors(&line, &[0], descriptors)?;
        Ok(Self { line, _process: process })
    }

    /// Tells the process that `trips` round trips come now.
    pub(super) fn announce(&mut self, trips: u32) -> Result<()> {
        Ok(self.line.write_all(&trips.to_le_bytes())?)
    }
}

/// Looks now and then, within a loop that waits for the other process, whether to go on waiting.
pub(super) struct Patience {
    begin: Instant,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { begin: Instant::now() }
    }

    pub(super) fn check(&self) -> Result<()> {
        interrupt::check()?;
        if self.begin.elapsed() > ANSWER_LIMIT {
            bail!("the other process did not answer within {ANSWER_LIMIT:?}");
        }
        Ok(())
    }
}

/// Is the other process: serves until its standard input, a socket, is closed.
///
/// # Errors
/// If standard input is no such socket, or the descriptors are not as agreed.
pub fn serve(kind: PeerKind) -> Result<()> {
    let mut line = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (_, descriptors) = receive_with_descriptors(&line, &mut [0], 2)?;
    let blocks = std::iter::from_fn(move || {
        let mut trips = [0; 4];
        match line.read_exact(&mut trips) {
            Ok(()) => Some(Ok(u32::from_le_bytes(trips))),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
            Err(error) => Some(Err(error)),
        }
    });
    match kind {
        PeerKind::PingPong => ping_pong::serve(descriptors, blocks),
        PeerKind::EchoAdaptive | PeerKind::EchoSpin => echo::serve(kind, descriptors, blocks),
    }
}
