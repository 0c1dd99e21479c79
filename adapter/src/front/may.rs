//! The front on may_minihttp 0.1.11, for trusted networks and measurements. Started and ended by
//! [`super::Front`] and its handle.
//!
//! That server runs each connection as a coroutine and gives a service one whole head at a time. What it
//! leaves open is closed here as far as it can be from behind its interface: the service refuses what
//! would make it panic (a bad Content-Length) or run bytes of a body as the next request (chunks, bodies
//! that are too long), waits for replies without blocking the thread, and keeps counts of connections.
//! What remains is its nature, and why it must not face the public: heads of more than 16 fields and
//! malformed ones end the connection without a word, so does a client that stops sending before it has
//! its answer; there are no timeouts and no bound on what a client sends without reading; answers cannot
//! be streamed, and a connection is not closed behind an answer that went well. The README lists it, and
//! `adapter/tests/front/may.rs` tests that list.
//!
//! There is one worker thread. With more of them coroutines would move between threads in the middle of a
//! call, for which safe Rust is not made.

mod connection;
mod factory;
mod lines;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use may_minihttp::HttpServiceFactory;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

use super::places::Places;
use super::{FrontConfig, FrontError};
use crate::http::Service;
use factory::Factory;

/// Stack of a coroutine in words: 512 KiB, of which the kernel provides what is touched. The library's
/// 32 KiB are too few for handlers.
const STACK_WORDS: usize = 64 * 1024;

/// Stacks that are kept for coroutines to come.
const STACKS_KEPT: usize = 128;

/// A running server. Its thread, its socket and its connections stay until the process ends: the library
/// has no safe way to end a coroutine. Dropped, it answers 503.
pub(super) struct May {
    shared: Arc<Shared>,
}

impl May {
    /// Starts it and returns once its socket listens.
    pub(super) fn start(
        config: &FrontConfig,
        service: Arc<dyn Service>,
        places: Arc<Places>,
    ) -> Result<(Self, SocketAddr), FrontError> {
        configure();
        let failed = |source| FrontError::Listen { address: config.listen, source };
        let (reserved, address) = reserve(config.listen).map_err(failed)?;
        let shared = Arc::new(Shared {
            service,
            places,
            max_body_bytes: config.max_body_bytes,
            progress: Progress::default(),
        });
        let factory = Factory { shared: Arc::clone(&shared) };
        // Runs on without its handle.
        let _acceptor = factory.start(address).map_err(failed)?;
        drop(reserved);
        Ok((Self { shared }, address))
    }

    /// Takes no more requests and waits until those in progress have their replies, which the library
    /// writes right behind; returns how many are left.
    pub(super) fn end(&mut self, timeout: Duration) -> usize {
        self.shared.progress.end(timeout)
    }
}

impl Drop for May {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

impl fmt::Debug for May {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("May")
    }
}

/// Settings of the library, which has them once per process and reads them at its first use.
fn configure() {
    static CONFIGURED: Once = Once::new();
    CONFIGURED.call_once(|| {
        let settings = may::config();
        settings.set_workers(1).set_stack_size(STACK_WORDS).set_pool_capacity(STACKS_KEPT);
        // It would pin its thread to the first core, which may be the engine's.
        settings.set_worker_pin(false);
    });
}

/// A socket that is bound and does not listen. The library neither tells the port that it was given nor
/// refuses one on which this user listens already; so this finds a port, and holds it meanwhile.
fn reserve(address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    let address = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((socket, address))
}

/// What all connections share.
struct Shared {
    service: Arc<dyn Service>,
    places: Arc<Places>,
    /// Longest body of a request, bytes.
    max_body_bytes: usize,
    progress: Progress,
}

/// Counts requests that are being answered.
#[derive(Default)]
struct Progress {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    requests: usize,
    is_ending: bool,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, unless the front is ending.
    fn begin(&self) -> Option<InProgress<'_>> {
        let mut counts = self.lock();
        if counts.is_ending {
            return None;
        }
        counts.requests += 1;
        Some(InProgress(self))
    }

    fn end(&self, timeout: Duration) -> usize {
        let mut counts = self.lock();
        counts.is_ending = true;
        let left = self.changed.wait_timeout_while(counts, timeout, |counts| counts.requests > 0);
        left.unwrap_or_else(PoisonError::into_inner).0.requests
    }
}

/// A request that is being answered.
struct InProgress<'a>(&'a Progress);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        let mut counts = self.0.lock();
        counts.requests -= 1;
        if counts.is_ending {
            self.0.changed.notify_all();
        }
    }
}
