//! The gateway thread: the handshake on the engine's Unix socket. It checks versions, roles and
//! proofs, makes each session's memory and watches for the end of each connection; what a session
//! may do is the core's to say. Started by [`crate::run`]; talks with the duty thread by mail.

mod peer;

use crate::mailbox::{FromDuty, Mailbox, ToDuty};
use crate::notice::alert;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use peer::{Peer, Progress};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::units::{Epoch, Incarnation, SessionId};
use touchline_protocol::wait::LocalSignal;

const LISTENER: Token = Token(usize::MAX);
const MAIL: Token = Token(usize::MAX - 1);
/// A peer that has not finished its handshake by then is closed.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// Connections that only the local user's roles may open, or a quarter of all if that is less: no
/// trader can lock out admin or adapter.
const LOCAL_CONNECTIONS: usize = 8;
/// Peers in their handshake at once; one more closes the oldest of them.
const HANDSHAKES_MAX: usize = 64;
/// Refusals are printed at most once in this time, with the number of those passed over.
const PRINT_EVERY: Duration = Duration::from_secs(1);

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
    /// Connections at once.
    pub connections_max: usize,
    /// Set when the gateway ends unasked: an engine that nobody can reach ends too.
    pub engine_stop: Arc<AtomicBool>,
}

/// The two mailboxes and how to wake their readers.
pub struct Mail {
    /// To the duty thread.
    pub to_duty: Mailbox<ToDuty>,
    /// From the duty thread.
    pub from_duty: Mailbox<FromDuty>,
    /// What the duty thread sleeps on.
    pub duty_signal: LocalSignal,
    gateway_waker: Waker,
}

impl Mail {
    /// Puts a letter to the gateway and wakes it.
    pub fn tell_gateway(&self, letter: FromDuty) {
        self.from_duty.put(letter);
        // An unwoken gateway finds the letter at its next timeout.
        let _woken = self.gateway_waker.wake();
    }

    fn tell_duty(&self, letter: ToDuty) {
        self.to_duty.put(letter);
        self.duty_signal.wake();
    }
}

/// The running gateway.
pub struct GatewayHandle {
    mail: Arc<Mail>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
    socket: PathBuf,
}

impl GatewayHandle {
    /// Closes the listener and all connections, and waits for the thread.
    ///
    /// # Errors
    /// If the thread had ended before.
    pub fn stop(self) -> io::Result<()> {
        self.stop.store(true, Ordering::Release);
        let _woken = self.mail.gateway_waker.wake();
        let outcome = self.thread.join();
        let _gone = fs::remove_file(&self.socket);
        outcome.unwrap_or_else(|_| Err(io::Error::other("the gateway thread panicked")))
    }
}

/// Makes the mailboxes; the poll is the gateway's.
///
/// # Errors
/// If the system gives no epoll or eventfd.
pub fn mail() -> io::Result<(Poll, Arc<Mail>)> {
    let poll = Poll::new()?;
    let gateway_waker = Waker::new(poll.registry(), MAIL)?;
    let mail = Mail {
        to_duty: Mailbox::default(),
        from_duty: Mailbox::default(),
        duty_signal: LocalSignal::new(),
        gateway_waker,
    };
    Ok((poll, Arc::new(mail)))
}

/// Listens and starts the thread.
///
/// # Errors
/// If the socket cannot be made.
pub fn start(options: GatewayOptions, poll: Poll, mail: Arc<Mail>) -> io::Result<GatewayHandle> {
    let listener = listen(&options.socket)?;
    poll.registry().register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)?;
    let stop = Arc::new(AtomicBool::new(false));
    let socket = options.socket.clone();
    let gateway = Gateway {
        options,
        poll,
        listener,
        mail: Arc::clone(&mail),
        peers: HashMap::new(),
        open: HashMap::new(),
        next_ticket: 0,
        refusals: Refusals::default(),
    };
    let stopping = Arc::clone(&stop);
    let ended =
        EndsEngine { stop: Arc::clone(&gateway.options.engine_stop), mail: Arc::clone(&mail) };
    let thread = thread::Builder::new().name("gateway".to_owned()).spawn(move || {
        let _ended = ended;
        gateway.run(&stopping)
    })?;
    Ok(GatewayHandle { mail, stop, thread, socket })
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    // The data folder is locked, so a socket that lies there is a dead engine's.
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Ends the engine when the gateway thread ends, by whatever way; at a wished end it is stopped already.
struct EndsEngine {
    stop: Arc<AtomicBool>,
    mail: Arc<Mail>,
}

impl Drop for EndsEngine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.mail.duty_signal.wake();
    }
}

#[derive(Default)]
struct Refusals {
    last_print: Option<Instant>,
    passed_over: u64,
}

impl Refusals {
    fn print(&mut self, what: &str) {
        if self.last_print.is_some_and(|last| last.elapsed() < PRINT_EVERY) {
            self.passed_over += 1;
            return;
        }
        match self.passed_over {
            0 => alert!("engine: {what}"),
            more => alert!("engine: {what} (and {more} other notices before it)"),
        }
        self.last_print = Some(Instant::now());
        self.passed_over = 0;
    }
}

struct Gateway {
    options: GatewayOptions,
    poll: Poll,
    listener: UnixListener,
    mail: Arc<Mail>,
    peers: HashMap<usize, Peer>,
    open: HashMap<(SessionId, Epoch), usize>,
    next_ticket: usize,
    refusals: Refusals,
}

impl Gateway {
    fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = Events::with_capacity(128);
        while !stop.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, Some(self.timeout())) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    MAIL => {}
                    Token(ticket) => self.peer_ready(ticket),
                }
            }
            self.read_mail();
            self.close_late_peers();
        }
        Ok(())
    }

    /// A second while handshakes are under way, else a minute: idle costs nothing.
    fn timeout(&self) -> Duration {
        let shaking = self.peers.values().any(|peer| !peer.is_open());
        Duration::from_secs(if shaking { 1 } else { 60 })
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => self.admit(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.refusals.print(&format!("cannot accept a connection: {error}"));
                    return;
                }
            }
        }
    }

    fn admit(&mut self, socket: UnixStream) {
        let ticket = self.next_ticket;
        let registered = socket.set_nonblocking(true).and_then(|()| {
            self.poll.registry().register(
                &mut SourceFd(&socket.as_raw_fd()),
                Token(ticket),
                Interest::READABLE,
            )
        });
        if let Err(error) = registered {
            self.refusals.print(&format!("cannot watch a connection: {error}"));
            return;
        }
        self.next_ticket += 1;
        let shaking = self.peers.iter().filter(|(_, peer)| !peer.is_admitted());
        if shaking.clone().count() >= HANDSHAKES_MAX
            && let Some(oldest) = shaking.map(|(ticket, _)| *ticket).min()
        {
            self.refusals.print("closed a connection: too many are in their handshake");
            self.remove(oldest);
        }
        self.peers.insert(ticket, Peer::new(socket));
    }

    /// True when one more session of a key, or of the local user's roles, may be opened.
    fn has_place(&self, is_local: bool) -> bool {
        let most = self.options.connections_max;
        let kept_back = if is_local { 0 } else { LOCAL_CONNECTIONS.min(most / 4) };
        // The peer itself is admitted already.
        self.peers.values().filter(|peer| peer.is_admitted()).count() + kept_back <= most
    }

    fn peer_ready(&mut self, ticket: usize) {
        let Some(peer) = self.peers.get_mut(&ticket) else { return };
        match peer.ready(&self.options) {
            Progress::Waiting => {}
            Progress::LogOn { logon, end } => {
                if self.has_place(logon.command.key_id.0 == 0) {
                    self.mail.tell_duty(ToDuty::Logon { ticket, logon, end });
                } else if let Some(mut peer) = self.peers.remove(&ticket) {
                    peer.refuse(RefusalReason::TooManySessions, None);
                    self.refusals.print("refused a session: engine.connections are in use");
                }
            }
            Progress::Gone(why) => {
                if let Some(why) = why {
                    self.refusals.print(&why);
                }
                self.remove(ticket);
            }
        }
    }

    /// Forgets a peer; dropping its socket closes it.
    fn remove(&mut self, ticket: usize) {
        let Some(peer) = self.peers.remove(&ticket) else { return };
        if let Some((session, epoch)) = peer.session() {
            self.open.remove(&(session, epoch));
            self.mail.tell_duty(ToDuty::Ended { session, epoch });
        }
    }

    fn read_mail(&mut self) {
        while let Some(letter) = self.mail.from_duty.take() {
            match letter {
                FromDuty::Opened { ticket, started, position } => {
                    let (session, epoch) = (started.session, started.epoch);
                    let welcomed = self
                        .peers
                        .get_mut(&ticket)
                        .is_some_and(|peer| peer.welcome(&self.options, &started, position));
                    if welcomed {
                        self.open.insert((session, epoch), ticket);
                    } else {
                        self.peers.remove(&ticket);
                        self.mail.tell_duty(ToDuty::Ended { session, epoch });
                    }
                }
                FromDuty::Refused { ticket, reason } => {
                    if let Some(mut peer) = self.peers.remove(&ticket) {
                        peer.refuse(RefusalReason::Rejected, Some(reason));
                        self.refusals.print(&format!("refused a logon: {reason:?}"));
                    }
                }
                FromDuty::Closed { session, epoch, why, end } => {
                    drop(end);
                    self.refusals.print(&format!("session {session} ended: {why}"));
                    if let Some(ticket) = self.open.remove(&(session, epoch)) {
                        self.peers.remove(&ticket);
                    }
                }
            }
        }
    }

    fn close_late_peers(&mut self) {
        let late: Vec<usize> = self
            .peers
            .iter()
            .filter(|(_, peer)| !peer.is_open() && peer.since().elapsed() > HANDSHAKE_LIMIT)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in late {
            self.refusals.print("closed a connection whose handshake took over 5 s");
            self.remove(ticket);
        }
    }
}
