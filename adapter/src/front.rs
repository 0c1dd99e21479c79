//! The HTTP front: sockets in, [`Request`](crate::http::Request)s to a [`Service`], replies out.
//! Started by the adapter's main, which hands it the composed service.
//!
//! One thread per worker, each with a single-threaded runtime that owns its connections; the
//! first worker also accepts and deals new sockets round robin. Every resource that a client
//! could use up has a limit in [`FrontConfig`]: connections, head, fields, body, and the time
//! that each phase of a request may take.

mod body;
mod gate;
mod head;
mod hyper;
mod places;
mod quoted_query;
mod socket;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc as sync_mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{self, LocalOptions};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::http::{Fault, Reply, Service};
use hyper::Shared;
use places::{Place, Places};

/// Connections that the kernel may hold ready while the acceptor is busy.
const BACKLOG: u32 = 1024;

/// Pause after an `accept` that failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Refused connections that may wait for their 503 at the same time; more are closed at once.
const MAX_REFUSALS: usize = 64;

/// Most header fields that [`FrontConfig::max_headers`] can allow.
pub const MAX_HEADERS: usize = 100;

/// Limits of a front. Memory is bounded by about `max_connections` times the sum of
/// `max_head_bytes`, `max_body_bytes` and the longest reply, all of which takes a client that
/// really sends that much.
#[derive(Debug, Clone)]
pub struct FrontConfig {
    /// Where to listen; port 0 takes any free one, see [`FrontHandle::local_addr`].
    pub listen: SocketAddr,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Open connections over all workers. One more is answered 503 and closed.
    pub max_connections: usize,
    /// Open connections of one client address (an IPv6 client is its /64 network), so that none
    /// takes all places. One more is answered 503 and closed.
    pub max_connections_per_address: usize,
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
            listen,
            workers: 1,
            max_connections: 10_000,
            max_connections_per_address: 2_500,
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
    /// Starts the workers and returns once the socket listens.
    ///
    /// # Errors
    /// [`FrontError`]; nothing is left running then.
    pub fn start(
        config: FrontConfig,
        service: Arc<dyn Service>,
    ) -> Result<FrontHandle, FrontError> {
        config.check()?;
        let mut handle = FrontHandle {
            local_addr: config.listen,
            stop: watch::Sender::new(None),
            places: Places::new(config.max_connections, config.max_connections_per_address),
            workers: Vec::with_capacity(config.workers),
        };
        let shared = Arc::new(Shared::new(config, service));
        let (inboxes, receivers): (Vec<_>, Vec<_>) =
            (0..shared.config.workers).map(|_| mpsc::unbounded_channel()).unzip();
        let mut inboxes = Some(inboxes);
        for (number, inbox) in receivers.into_iter().enumerate() {
            let worker = Worker {
                number,
                inbox,
                shared: shared.clone(),
                stop: handle.stop.subscribe(),
                places: handle.places.clone(),
            };
            let (started, outcome) = sync_mpsc::channel();
            let inboxes = inboxes.take();
            let thread = thread::Builder::new()
                .name(format!("front-{number}"))
                .spawn(move || worker.run(inboxes, &started))
                .map_err(|source| FrontError::Worker { worker: number, source })?;
            handle.workers.push(thread);
            match outcome.recv() {
                Ok(started) => handle.local_addr = started?.unwrap_or(handle.local_addr),
                Err(sync_mpsc::RecvError) => {
                    let source = io::Error::other("the worker ended at once");
                    return Err(FrontError::Worker { worker: number, source });
                }
            }
        }
        Ok(handle)
    }
}

/// A running front. Dropping it ends the front at once, requests in progress included; see
/// [`FrontHandle::shutdown`] for the orderly way.
#[derive(Debug)]
pub struct FrontHandle {
    local_addr: SocketAddr,
    stop: watch::Sender<Option<Instant>>,
    places: Arc<Places>,
    workers: Vec<JoinHandle<usize>>,
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

    /// Stops accepting, lets requests in progress finish for at most `timeout`, closes idle
    /// connections, ends the threads. Returns how many connections had to be cut off.
    pub fn shutdown(mut self, timeout: Duration) -> usize {
        self.end(timeout)
    }

    fn end(&mut self, timeout: Duration) -> usize {
        self.stop.send_replace(Some(Instant::now() + timeout));
        self.workers.drain(..).map(|worker| worker.join().unwrap_or_default()).sum()
    }
}

impl Drop for FrontHandle {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// An accepted socket on its way to the worker that will serve it.
struct Accepted {
    stream: std::net::TcpStream,
    peer: SocketAddr,
    place: Place,
}

/// What one worker thread owns.
struct Worker {
    number: usize,
    inbox: mpsc::UnboundedReceiver<Accepted>,
    shared: Arc<Shared>,
    stop: watch::Receiver<Option<Instant>>,
    places: Arc<Places>,
}

type Started = Result<Option<SocketAddr>, FrontError>;

impl Worker {
    /// The thread's whole life. With `inboxes` it is the one that listens and accepts. Returns
    /// the number of connections that were cut off at the end.
    fn run(
        self,
        inboxes: Option<Vec<mpsc::UnboundedSender<Accepted>>>,
        started: &sync_mpsc::Sender<Started>,
    ) -> usize {
        // The receiver waits for exactly this one message.
        let tell = |outcome| drop(started.send(outcome));
        let runtime = match runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
        {
            Ok(runtime) => runtime,
            Err(source) => {
                tell(Err(FrontError::Worker { worker: self.number, source }));
                return 0;
            }
        };
        runtime.block_on(async {
            if let Some(inboxes) = inboxes {
                match listen(self.shared.config.listen) {
                    Ok((listener, address)) => {
                        let acceptor = Acceptor {
                            listener,
                            inboxes,
                            places: self.places.clone(),
                            linger: self.shared.config.linger_timeout,
                            stop: self.stop.clone(),
                        };
                        tokio::task::spawn_local(acceptor.run());
                        tell(Ok(Some(address)));
                    }
                    Err(error) => {
                        tell(Err(error));
                        return 0;
                    }
                }
            } else {
                tell(Ok(None));
            }
            self.serve().await
        })
    }

    async fn serve(mut self) -> usize {
        let mut connections = JoinSet::new();
        let mut stop = self.stop.clone();
        let deadline = loop {
            tokio::select! {
                Some(accepted) = self.inbox.recv() => {
                    let Accepted { stream, peer, place } = accepted;
                    if let Ok(stream) = TcpStream::from_std(stream) {
                        let serving = hyper::serve(
                            stream, peer, self.shared.clone(), self.stop.clone(),
                        );
                        connections.spawn_local(async move {
                            serving.await;
                            drop(place);
                        });
                    }
                }
                Some(_) = connections.join_next() => {}
                asked = stop.wait_for(Option::is_some) => {
                    // A handle that is gone without a word counts as a stop without grace.
                    break asked.ok().and_then(|deadline| *deadline).unwrap_or_else(Instant::now);
                }
            }
        };
        let all_done = async { while connections.join_next().await.is_some() {} };
        match tokio::time::timeout_at(deadline, all_done).await {
            Ok(()) => 0,
            Err(_) => connections.len(),
        }
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), FrontError> {
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let local = listener.local_addr()?;
        Ok((listener, local))
    };
    open().map_err(|source| FrontError::Listen { address, source })
}

/// Accepts connections and deals them to the workers in turn.
struct Acceptor {
    listener: TcpListener,
    inboxes: Vec<mpsc::UnboundedSender<Accepted>>,
    places: Arc<Places>,
    linger: Duration,
    stop: watch::Receiver<Option<Instant>>,
}

impl Acceptor {
    async fn run(mut self) {
        let refusals = Places::new(MAX_REFUSALS, MAX_REFUSALS);
        let mut turn = 0;
        loop {
            let accepted = tokio::select! {
                biased;
                _ = self.stop.wait_for(Option::is_some) => return,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if !concerns_one_connection(&error) {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                    continue;
                }
            };
            let Some(place) = self.places.take(peer.ip()) else {
                if let Some(refusal) = refusals.take(peer.ip()) {
                    tokio::task::spawn_local(refuse(stream, self.linger, refusal));
                }
                continue;
            };
            // A peer that is already gone fails here; the next one is none the worse.
            if stream.set_nodelay(true).is_err() {
                continue;
            }
            if let Ok(stream) = stream.into_std() {
                let inbox = &self.inboxes[turn];
                turn = (turn + 1) % self.inboxes.len();
                // A worker is gone only when the whole front is about to be.
                let _ = inbox.send(Accepted { stream, peer, place });
            }
        }
    }
}

/// Errors of `accept` that say something about the peer, not about this process.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// Answers 503 without reading the request, then reads on for a moment: closing with unread
/// bytes would reset the connection before the client has seen the answer.
async fn refuse(mut stream: TcpStream, linger: Duration, refusal: Place) {
    let Reply { status, body, .. } = Fault::Overloaded.reply();
    let head = format!(
        "HTTP/1.1 {status} Service Unavailable\r\ncontent-type: {}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        crate::http::JSON,
        body.len()
    );
    let answer = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.shutdown().await?;
        let mut scratch = [0; 1024];
        while stream.read(&mut scratch).await? > 0 {}
        io::Result::Ok(())
    };
    // Neither a peer that left nor one that keeps sending is of interest any more.
    let _ = tokio::time::timeout(linger, answer).await;
    drop(refusal);
}
