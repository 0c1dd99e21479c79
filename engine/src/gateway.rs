//! Two threads with sockets. The door (`door`) has the handshake on the engine's Unix socket and on TCP: it
//! checks versions, roles and proofs. The gateway (`service`) has who came through: sessions that go on over
//! such a socket, and the end of each connection; what a session may do is the core's to say. The memory of
//! sessions with rings of their own is made when nothing stands before their logon any more (`peer`). Started
//! by [`crate::run`]; the gateway talks with the duty thread by mail and, for all stream sessions together, over
//! one pair of rings.

mod backend;
mod bell;
mod crowd;
mod door;
mod epoll;
mod hear_out;
mod history;
mod logons;
mod peer;
#[cfg(test)]
mod pieces;
mod readers;
mod refusals;
mod service;
mod sessions;
mod stall;
mod stream;
mod uring;
mod watches;

pub use bell::Bell;
pub use service::SESSIONLESS_MAX;

use crate::config::{GatewayBackend, GatewaySection};
use crate::feed::FeedDesk;
use crate::log::Control;
use crate::mailbox::{FromDuty, Mailbox, StateLetter, ToDuty};
use crate::notice::say;
use backend::{Backend, Listener};
use door::{Arrival, Door};
pub use readers::ReaderLimits;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use service::Gateway;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::ring::layout::MAX_SLOTS;
use touchline_protocol::ring::{RingCapacities, SessionEnd};
use touchline_protocol::shm::descriptors::refuse_descriptors;
use touchline_protocol::units::Incarnation;
use touchline_protocol::wait::LocalSignal;

/// What the gateway needs.
pub struct GatewayOptions {
    /// Where to listen.
    pub socket: PathBuf,
    /// For checking proofs.
    pub master_key: MasterKey,
    /// The log's control page, read-only, given to every session.
    pub control: OwnedFd,
    /// The log's identity.
    pub log_id: [u8; 16],
    /// This start's incarnation.
    pub incarnation: Incarnation,
    /// Connections with rings of their own at once.
    pub connections_max: usize,
    /// The public feed, if there is one, and how many may read it at once.
    pub feed: Option<(Arc<FeedDesk>, ReaderLimits)>,
    /// Section `[gateway]`.
    pub settings: GatewaySection,
    /// Commands, and logons of a key, per second; 0: unlimited.
    pub commands_per_second: u32,
    /// So long a stream's commands may wait for its reader.
    pub reader_stall: Duration,
    /// The data folder, whose log sessions may ask for.
    pub data: PathBuf,
    /// Set when the gateway ends unasked: an engine that nobody can reach ends too.
    pub engine_stop: Arc<AtomicBool>,
}

/// The mailboxes and how to wake their readers.
pub struct Mail {
    /// To the duty thread.
    pub to_duty: Mailbox<ToDuty>,
    /// From the duty thread.
    pub from_duty: Mailbox<FromDuty>,
    /// From the duty thread too: each has its place among what the ring of the streams carries.
    pub states: Mailbox<StateLetter>,
    /// What the duty thread sleeps on.
    pub duty_signal: LocalSignal,
    /// From the door to the gateway.
    arrivals: Mailbox<Arrival>,
    bell: Arc<Bell>,
}

impl Mail {
    /// Puts a letter to the gateway and wakes it.
    pub fn tell_gateway(&self, letter: FromDuty) {
        self.from_duty.put(letter);
        self.bell.ring();
    }

    /// Puts a state to the gateway and wakes it.
    pub fn tell_state(&self, letter: StateLetter) {
        self.states.put(letter);
        self.bell.ring();
    }

    /// What wakes the gateway.
    #[must_use]
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    fn tell_duty(&self, letter: ToDuty) {
        self.to_duty.put(letter);
        self.duty_signal.wake();
    }
}

/// The two ends of the rings that all stream sessions share.
pub struct StreamRings {
    /// The duty thread's.
    pub duty: SessionEnd,
    /// The gateway's.
    pub gateway: SessionEnd,
}

/// The running gateway and its door.
pub struct GatewayHandle {
    mail: Arc<Mail>,
    stop: Arc<AtomicBool>,
    /// Each with what wakes it.
    threads: [(Arc<Bell>, JoinHandle<io::Result<()>>); 2],
    socket: PathBuf,
}

impl GatewayHandle {
    /// Closes the listeners and all connections, and waits for the threads.
    ///
    /// # Errors
    /// If one of them had ended before.
    pub fn stop(self) -> io::Result<()> {
        self.stop.store(true, Ordering::Release);
        // Nobody is let in while the gateway says its last words.
        for (bell, _) in &self.threads {
            bell.ring();
        }
        let outcomes = self.threads.map(|(_, thread)| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a gateway thread panicked")))
        });
        // Those who came through the door and were not taken any more.
        while self.mail.arrivals.take().is_some() {}
        let _gone = fs::remove_file(&self.socket);
        outcomes.into_iter().collect()
    }
}

/// Makes the mailboxes, the bell and the rings between duty thread and gateway.
///
/// # Errors
/// If the system gives no eventfd or no memory.
pub fn mail() -> io::Result<(Arc<Mail>, StreamRings)> {
    let mail = Mail {
        to_duty: Mailbox::default(),
        from_duty: Mailbox::default(),
        states: Mailbox::default(),
        duty_signal: LocalSignal::new(),
        arrivals: Mailbox::default(),
        bell: Arc::new(Bell::new()?),
    };
    let capacities = RingCapacities::new(MAX_SLOTS, MAX_SLOTS).map_err(io::Error::other)?;
    let (duty, descriptors) = SessionEnd::create(capacities).map_err(io::Error::other)?;
    let gateway = SessionEnd::attach(&descriptors, capacities).map_err(io::Error::other)?;
    Ok((Arc::new(mail), StreamRings { duty, gateway }))
}

/// Listens and starts the threads; prints what was chosen, and the TCP address if there is one.
///
/// # Errors
/// If a socket cannot be made.
pub fn start(
    options: GatewayOptions,
    log: Control,
    mail: Arc<Mail>,
    rings: SessionEnd,
) -> io::Result<GatewayHandle> {
    let gateway = choose_and_tell(options.settings.backend, &mail.bell())?;
    let at_door = Arc::new(Bell::new()?);
    let door = match gateway.name() {
        // Why it is that one was told above.
        epoll::NAME => Box::new(epoll::Epoll::new(Arc::clone(&at_door))?),
        _ => choose_and_tell(options.settings.backend, &at_door)?,
    };
    let backends = Backends { gateway, door, at_door };
    start_over(backends, options, log, mail, rings)
}

/// What the two threads have of the kernel.
struct Backends {
    gateway: Box<dyn Backend + Send>,
    door: Box<dyn Backend + Send>,
    /// Wakes the door.
    at_door: Arc<Bell>,
}

/// As [`start`], over these backends.
fn start_over(
    mut backends: Backends,
    options: GatewayOptions,
    log: Control,
    mail: Arc<Mail>,
    rings: SessionEnd,
) -> io::Result<GatewayHandle> {
    // Where it cannot listen there it leaves no socket behind.
    let tcp = options.settings.tcp.0.map(listen_tcp).transpose()?;
    let local = listen(&options.socket).map_err(|error| {
        io::Error::new(error.kind(), format!("the socket {}: {error}", options.socket.display()))
    })?;
    backends.door.listen(Listener::Local, local)?;
    let mut chosen = format!("gateway: {}", backends.gateway.name());
    if let Some((listener, bound)) = tcp {
        backends.door.listen(Listener::Tcp, listener)?;
        chosen.push_str(&format!(" tcp={bound}"));
    }
    say!("{chosen} unix={}", options.socket.display());
    let Backends { gateway, door, at_door } = backends;
    let (options, stop) = (Arc::new(options), Arc::new(AtomicBool::new(false)));
    let door = Door::new(Arc::clone(&options), door, Arc::clone(&at_door), Arc::clone(&mail));
    let gateway = Gateway::new(Arc::clone(&options), log, gateway, Arc::clone(&mail), rings)?;
    let ends = EndsEngine { stop: Arc::clone(&options.engine_stop), mail: Arc::clone(&mail) };
    let gateway = spawn("gateway", &ends, &stop, move |stop| gateway.run(stop))?;
    let door = match spawn("door", &ends, &stop, move |stop| door.run(stop)) {
        Ok(door) => door,
        Err(error) => {
            stop.store(true, Ordering::Release);
            mail.bell.ring();
            let _ended = gateway.join();
            return Err(error);
        }
    };
    let threads = [(mail.bell(), gateway), (at_door, door)];
    let socket = options.socket.clone();
    Ok(GatewayHandle { mail, stop, threads, socket })
}

/// Starts a thread whose end ends the engine.
fn spawn(
    name: &str,
    ends: &EndsEngine,
    stop: &Arc<AtomicBool>,
    run: impl FnOnce(&AtomicBool) -> io::Result<()> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let (ends, stop) = (ends.clone(), Arc::clone(stop));
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _ended = Ended(ends);
        run(&stop)
    })
}

/// Whether io_uring is permitted with all that the gateway needs of it.
pub(crate) fn try_io_uring() -> io::Result<()> {
    uring::Uring::new(Arc::new(Bell::new()?)).map(drop)
}

/// The backend that was asked for; where io_uring is not permitted epoll, and why.
fn choose_backend(wanted: GatewayBackend, bell: &Arc<Bell>) -> io::Result<Chosen> {
    let mut refused = None;
    if wanted != GatewayBackend::Epoll {
        match uring::Uring::new(Arc::clone(bell)) {
            Ok(uring) => return Ok((Box::new(uring), None)),
            Err(error) => refused = Some(error),
        }
    }
    Ok((Box::new(epoll::Epoll::new(Arc::clone(bell))?), refused))
}

/// As [`choose_backend`]; why is told in a line.
fn choose_and_tell(
    wanted: GatewayBackend,
    bell: &Arc<Bell>,
) -> io::Result<Box<dyn Backend + Send>> {
    let (backend, refused) = choose_backend(wanted, bell)?;
    if let Some(error) = refused {
        say!("gateway: io_uring is refused ({error}), so it is epoll");
    }
    Ok(backend)
}

/// A backend, and why it is not the one that was asked for.
type Chosen = (Box<dyn Backend + Send>, Option<io::Error>);

/// How long a gateway that spins takes to find out `looks` times that nothing has happened to its sockets,
/// and over which backend. For `touchline-bench tcp`.
///
/// # Errors
/// If a socket cannot be made or looked at.
pub fn time_idle_looks(wanted: GatewayBackend, looks: u32) -> io::Result<(&'static str, Duration)> {
    let (mut backend, _) = choose_backend(wanted, &Arc::new(Bell::new()?))?;
    let (listener, _) = listen_tcp(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    backend.listen(Listener::Tcp, listener)?;
    let mut happened = Vec::new();
    // The first turn hands the kernel what was asked for.
    backend.turn(Duration::ZERO, &mut happened)?;
    let begin = Instant::now();
    for _ in 0..looks {
        backend.turn(Duration::ZERO, &mut happened)?;
    }
    Ok((backend.name(), begin.elapsed()))
}

fn listen(socket: &Path) -> io::Result<OwnedFd> {
    // The data folder is locked, so a socket that lies there is a dead engine's.
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Before anybody can come. A kernel that cannot do it leaves the engine's own user one more way to harm it.
    let _refuses = refuse_descriptors(&listener)?;
    bind(&listener, &SocketAddrUnix::new(socket)?)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    // As many may wait as the system allows.
    rustix::net::listen(&listener, i32::MAX)?;
    Ok(listener)
}

/// Whether a gateway could listen there at this moment.
///
/// # Errors
/// What keeps it from that.
pub(crate) fn check_tcp(address: SocketAddr) -> io::Result<()> {
    listen_tcp(address).map(drop)
}

fn listen_tcp(address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let listener = TcpListener::bind(address).map_err(|error| {
        io::Error::new(error.kind(), format!("gateway.tcp = {address}: {error}"))
    })?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    Ok((listener.into(), bound))
}

/// How to end the engine.
#[derive(Clone)]
struct EndsEngine {
    stop: Arc<AtomicBool>,
    mail: Arc<Mail>,
}

/// Ends the engine when it is dropped, with the thread that has it; at a wished end it is stopped already.
struct Ended(EndsEngine);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Release);
        self.0.mail.duty_signal.wake();
    }
}

#[cfg(test)]
mod tests;
