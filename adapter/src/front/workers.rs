//! The threads of the front on hyper. Started and ended by [`super::Front`] and its handle.
//!
//! One thread per worker, each with a single-threaded runtime that owns its connections; the first
//! worker also accepts and deals new sockets round robin.

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

use super::hyper::{self, Shared};
use super::places::{Place, Places};
use super::{FrontConfig, FrontError};
use crate::http::{Fault, Reply, Service};
use crate::notice::alert;

/// Connections that the kernel may hold ready while the acceptor is busy.
const BACKLOG: u32 = 1024;

/// Connections at the most that are accepted, or refused, before whoever is served already has a turn: they may come
/// by the thousand.
const ACCEPTS_IN_A_TURN: usize = 16;

/// Pause after an `accept` that failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// So often at the most it is told that nothing can be accepted.
const TELL_PAUSE: Duration = Duration::from_secs(10);

/// Refused connections that may wait for their 503 at the same time; more are closed at once.
const MAX_REFUSALS: usize = 64;

/// The running threads. Dropping them ends them at once.
#[derive(Debug)]
pub(super) struct Workers {
    stop: watch::Sender<Option<Instant>>,
    threads: Vec<JoinHandle<usize>>,
}

impl Workers {
    /// Starts them and returns once the socket listens.
    pub(super) fn start(
        config: FrontConfig,
        service: Arc<dyn Service>,
        places: &Arc<Places>,
    ) -> Result<(Self, SocketAddr), FrontError> {
        let mut address = config.listen;
        let mut workers =
            Self { stop: watch::Sender::new(None), threads: Vec::with_capacity(config.workers) };
        let shared = Arc::new(Shared::new(config, service));
        let (inboxes, receivers): (Vec<_>, Vec<_>) =
            (0..shared.config.workers).map(|_| mpsc::unbounded_channel()).unzip();
        let mut inboxes = Some(inboxes);
        for (number, inbox) in receivers.into_iter().enumerate() {
            let worker = Worker {
                number,
                inbox,
                shared: shared.clone(),
                stop: workers.stop.subscribe(),
                places: places.clone(),
            };
            let (started, outcome) = sync_mpsc::channel();
            let inboxes = inboxes.take();
            let thread = thread::Builder::new()
                .name(format!("front-{number}"))
                .spawn(move || worker.run(inboxes, &started))
                .map_err(|source| FrontError::Worker { worker: number, source })?;
            workers.threads.push(thread);
            match outcome.recv() {
                Ok(started) => address = started?.unwrap_or(address),
                Err(sync_mpsc::RecvError) => {
                    let source = io::Error::other("the worker ended at once");
                    return Err(FrontError::Worker { worker: number, source });
                }
            }
        }
        Ok((workers, address))
    }

    /// Ends them as [`super::FrontHandle::shutdown`] says.
    pub(super) fn end(&mut self, timeout: Duration) -> usize {
        self.stop.send_replace(Some(Instant::now() + timeout));
        self.threads.drain(..).map(|thread| thread.join().unwrap_or_default()).sum()
    }
}

impl Drop for Workers {
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
        let awake = Awake::begin(&self.shared.service);
        let (sleeps, wakes) = (Arc::clone(&awake.0), Arc::clone(&awake.0));
        let runtime = match runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || sleeps.worker_sleeps())
            .on_thread_unpark(move || wakes.worker_wakes())
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

/// A worker that the service knows of. The runtime tells when it has nothing to do; what the service hands
/// on then is done before it sleeps.
struct Awake(Arc<dyn Service>);

impl Awake {
    fn begin(service: &Arc<dyn Service>) -> Self {
        service.worker_wakes();
        Self(Arc::clone(service))
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.0.worker_sleeps();
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
        let refusals = Places::new(MAX_REFUSALS, MAX_REFUSALS, Vec::new());
        let (mut turn, mut told) = (0, None::<Instant>);
        for accepts in 1_usize.. {
            if accepts.is_multiple_of(ACCEPTS_IN_A_TURN) {
                tokio::task::yield_now().await;
            }
            let accepted = tokio::select! {
                biased;
                _ = self.stop.wait_for(Option::is_some) => return,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if !concerns_one_connection(&error) {
                        if told.is_none_or(|told| told.elapsed() >= TELL_PAUSE) {
                            alert!("adapter: cannot accept a connection: {error}");
                            told = Some(Instant::now());
                        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::Wait;

    #[test]
    fn of_a_crowd_no_more_than_a_few_are_accepted_at_a_time() {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .unwrap();
        // No more than any system lets wait to be accepted.
        const CROWD: usize = 100;
        let most_at_once = runtime.block_on(async {
            let (listener, address) = listen(([127, 0, 0, 1], 0).into()).unwrap();
            let crowd: Vec<_> =
                (0..CROWD).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
            let (inbox, _let_in) = mpsc::unbounded_channel();
            let (_stop, stop) = watch::channel(None);
            let places = Places::new(CROWD, CROWD, Vec::new());
            let linger = Duration::ZERO;
            let acceptor =
                Acceptor { listener, inboxes: vec![inbox], places: places.clone(), linger, stop };
            tokio::task::spawn_local(acceptor.run());
            let (mut most, mut before) = (0, 0);
            let wait = Wait::begin();
            while before < crowd.len() {
                wait.go_on("not all of the crowd are accepted");
                tokio::task::yield_now().await;
                let taken = places.taken();
                most = most.max(taken - before);
                before = taken;
            }
            most
        });
        assert!((1..=ACCEPTS_IN_A_TURN).contains(&most_at_once), "{most_at_once} at once");
    }
}
