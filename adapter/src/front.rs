//! The HTTP front: sockets in, [`Request`](crate::http::Request)s to a [`Service`], replies out.
//! Started by the adapter's main, which hands it the composed service.
//!
//! There are two, behind one interface. The one on hyper is for everybody: every resource that a client
//! could use up has a limit in [`FrontConfig`]: connections, head, fields, body, and the time that each
//! phase of a request may take. The one on may_minihttp is for trusted networks and measurements, because
//! that server bounds little of this; `may.rs` says what it cannot do.

mod body;
mod faults;
mod gate;
mod head;
mod header_names;
mod hyper;
mod may;
mod places;
mod quoted_query;
mod socket;
// For a fuzz target outside of this crate alone.
#[doc(hidden)]
pub mod trial;
mod workers;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::http::Service;
use crate::limits::network::Network;
use may::May;
use places::Places;
use workers::Workers;

/// Most header fields that [`FrontConfig::max_headers`] can allow.
pub const MAX_HEADERS: usize = 100;

/// Which HTTP server a front runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrontKind {
    /// hyper, for everybody.
    #[default]
    Hyper,
    /// may_minihttp, for trusted networks and measurements.
    May,
}

impl FrontKind {
    /// As it stands in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hyper => "hyper",
            Self::May => "may",
        }
    }

    /// Files that a connection keeps open.
    pub(crate) const fn files_per_connection(self) -> usize {
        match self {
            Self::Hyper => 1,
            // The library's descriptor of the socket, and ours.
            Self::May => 2,
        }
    }
}

impl FromStr for FrontKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::Hyper, Self::May]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| format!("front is {name:?}, must be hyper or may"))
    }
}

/// Whether a front could listen there at this moment. To be asked before anything is made for one that would not start.
///
/// # Errors
/// [`FrontError::Listen`].
pub fn check_free(address: SocketAddr) -> Result<(), FrontError> {
    TcpListener::bind(address).map(drop).map_err(|source| FrontError::Listen { address, source })
}

/// Limits of a front. Memory is bounded by about `max_connections` times the sum of
/// `max_head_bytes`, `max_body_bytes` and the longest reply, all of which takes a client that
/// really sends that much.
#[derive(Debug, Clone)]
pub struct FrontConfig {
    /// The server. [`FrontKind::May`] keeps to `max_body_bytes`, `max_connections`,
    /// `max_connections_per_address` and `proxies` alone.
    pub kind: FrontKind,
    /// Where to listen; port 0 takes any free one, see [`FrontHandle::local_addr`].
    pub listen: SocketAddr,
    /// Worker threads, at least 1, on [`FrontKind::May`] exactly 1.
    pub workers: usize,
    /// Open connections over all workers. One more is answered 503 and closed.
    pub max_connections: usize,
    /// Open connections of one client address (an IPv6 client is its /64 network), so that none
    /// takes all places. One more is answered 503 and closed.
    pub max_connections_per_address: usize,
    /// Proxies, which connect for many clients: one of these may have all places.
    pub proxies: Vec<Network>,
    /// Header fields per request, at most [`MAX_HEADERS`]. More are answered 431.
    pub max_headers: usize,
    /// Bytes of request line and header fields together. More are answered 431.
    pub max_head_bytes: usize,
    /// Bytes of a request body, or fewer if the service says so. More are answered 413.
    pub max_body_bytes: usize,
    /// From the first byte of a request (or from connecting) to the end of its head.
    pub head_timeout: Duration,
    /// From the end of the head to the end of the body; answered 408.
    pub body_timeout: Duration,
    /// From a reply to the first byte of the next request.
    pub idle_timeout: Duration,
    /// From the first byte of a reply that has to wait for the client until all is written.
    pub write_timeout: Duration,
    /// How long a connection that is closed in the middle of a request is still read from, so
    /// that the client gets to see the reply that says why.
    pub linger_timeout: Duration,
}

impl FrontConfig {
    /// The default limits: one worker, 10,000 connections, of one address 2,500; 64 header fields in 16 KiB, bodies of
    /// 100 KiB; 10 s for a head, 10 s for a body, 75 s idle, 30 s for a reply, 1 s of linger.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            kind: FrontKind::Hyper,
            listen,
            workers: 1,
            max_connections: 10_000,
            max_connections_per_address: 2_500,
            proxies: Vec::new(),
            max_headers: 64,
            max_head_bytes: 16 * 1024,
            max_body_bytes: 100 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            linger_timeout: Duration::from_secs(1),
        }
    }

    fn check(&self) -> Result<(), FrontError> {
        let refuse =
            |setting, value, expected| Err(FrontError::Setting { setting, value, expected });
        if self.workers == 0 {
            return refuse("workers", 0, "at least 1");
        }
        if self.kind == FrontKind::May && self.workers != 1 {
            return refuse("workers", self.workers, "1 on may");
        }
        if self.max_connections == 0 {
            return refuse("max_connections", 0, "at least 1");
        }
        if self.max_connections_per_address == 0 {
            return refuse("max_connections_per_address", 0, "at least 1");
        }
        if self.max_headers > MAX_HEADERS {
            return refuse("max_headers", self.max_headers, "at most 100");
        }
        Ok(())
    }
}

/// Why a front did not start.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// A setting of [`FrontConfig`] is out of range.
    #[error("front setting {setting} is {value}, must be {expected}")]
    Setting {
        /// The field of [`FrontConfig`].
        setting: &'static str,
        /// Its value.
        value: usize,
        /// What it may be.
        expected: &'static str,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// A worker's thread or runtime could not be started.
    #[error("cannot start front worker {worker}: {source}")]
    Worker {
        /// Its number, from 0.
        worker: usize,
        /// The system's answer.
        source: io::Error,
    },
}

/// Starts fronts.
pub struct Front;

impl Front {
    /// Starts the server and returns once its socket listens.
    ///
    /// # Errors
    /// [`FrontError`]; nothing is left running then.
    pub fn start(
        config: FrontConfig,
        service: Arc<dyn Service>,
    ) -> Result<FrontHandle, FrontError> {
        config.check()?;
        let places = Places::new(
            config.max_connections,
            config.max_connections_per_address,
            config.proxies.clone(),
        );
        let (running, local_addr) = match config.kind {
            FrontKind::Hyper => {
                let (workers, address) = Workers::start(config, service, &places)?;
                (Running::Hyper(workers), address)
            }
            FrontKind::May => {
                let (may, address) = May::start(&config, service, Arc::clone(&places))?;
                (Running::May(may), address)
            }
        };
        Ok(FrontHandle { local_addr, places, running })
    }
}

/// The server of a running front.
#[derive(Debug)]
enum Running {
    Hyper(Workers),
    May(May),
}

/// A running front. Dropping it ends the front at once, requests in progress included; see
/// [`FrontHandle::shutdown`] for the orderly way.
#[derive(Debug)]
pub struct FrontHandle {
    local_addr: SocketAddr,
    places: Arc<Places>,
    running: Running,
}

impl FrontHandle {
    /// The address listened on, with the real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The number of connections now open.
    pub fn open_connections(&self) -> usize {
        self.places.taken()
    }

    /// Stops accepting, lets requests that were read whole finish for at most `timeout`, closes all
    /// other connections, ends the threads. Returns how many connections had to be cut off.
    ///
    /// On [`FrontKind::May`] threads, socket and idle connections stay until the process ends, and
    /// whatever comes is answered 503.
    pub fn shutdown(self, timeout: Duration) -> usize {
        match self.running {
            Running::Hyper(mut workers) => workers.end(timeout),
            Running::May(mut may) => may.end(timeout),
        }
    }
}
