//! The client library: opens a session with the engine, sends commands and receives replies, over
//! shared-memory rings, TCP or a Unix socket alike. Used by the adapter's link, by `touchline admin`, by
//! the benches and by programs of their own. No async runtime: blocking with [`Receiver::wait`], or
//! poll-style.
//!
//! [`Client::split`] gives the two directions to two threads. A sender numbers its commands; a
//! receiver hands replies on at the acknowledgement level that its owner chose. [`SteadyClient`] comes
//! back by itself when a connection is lost, and does nothing twice.

mod connect;
pub(crate) mod handshake;
mod options;
mod receiver;
mod rings;
mod sender;
mod steady;
mod stream;

pub use connect::ConnectError;
pub use handshake::proof;
pub use options::OptionsError;
pub use receiver::{Bell, Notice, ReceiveError, Receiver, Reply, Rings};
pub use sender::{ClientCommand, SendError, Sender};
pub use steady::{Back, Loss, Missed, SteadyClient, Told};

use crate::credentials::Secret;
use crate::message::decode::Event;
use crate::message::enums::{Lane, RejectReason, Role};
use crate::message::event::Rejected;
use crate::message::handshake::Welcome;
use crate::sync::EndFlag;
use crate::text::Name;
use crate::units::{Incarnation, KeyId, Position};
use crate::wait::WaitStrategy;
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Name of the engine's socket in the data folder.
pub const SOCKET_NAME: &str = "engine.sock";

/// When a reply counts as an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Acknowledgement {
    /// Once its transaction is in the log's live window: survives a crash of the engine, but a power cut
    /// only once it is written: after `log.gather_us`, or `log.write_interval_us` if that is longer, the write
    /// under way then, and its own.
    #[default]
    Appended,
    /// Once its transaction is on disk: survives a power cut. Replies are held back until then.
    Durable,
}

/// Where the engine is, and what carries the session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// Rings in shared memory, by the engine's socket: [`SOCKET_NAME`] in its data folder. For the engine's own Unix
    /// user, to whom alone that socket is open (mode 0600).
    SharedMemory(PathBuf),
    /// The engine's Unix socket itself. For traders and readers who run as the engine's own Unix user.
    Unix(PathBuf),
    /// The engine's TCP address. For traders and readers.
    Tcp(SocketAddr),
}

impl From<PathBuf> for Endpoint {
    /// Shared memory.
    fn from(socket: PathBuf) -> Self {
        Self::SharedMemory(socket)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedMemory(path) | Self::Unix(path) => path.display().fmt(formatter),
            Self::Tcp(address) => address.fmt(formatter),
        }
    }
}

/// How to open a session.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Where, and over what.
    pub endpoint: Endpoint,
    /// What the session may do.
    pub role: Role,
    /// How urgently it is polled.
    pub lane: Lane,
    /// The session's name, unique per key, 1 to 31 printable characters of ASCII. To be kept from run to run, never
    /// made anew: the session of a name is there for ever, with the role and lane of its first logon. A key has 32
    /// names at the most, and one more is refused ([`RefusalReason::Rejected`] with
    /// [`RejectReason::CapacityReached`]), as is one beyond `limits.sessions`.
    ///
    /// [`RefusalReason::Rejected`]: crate::message::handshake::RefusalReason::Rejected
    pub name: Name,
    /// Key and secret of a trader or reader; the local user's roles have none. A command whose `key_id` is 0 is
    /// sent on behalf of this key.
    pub key: Option<(KeyId, Secret)>,
    /// Slots of 64 bytes in the request ring: a power of two, 1,024 to 16,384.
    pub request_slots: u32,
    /// Slots of 64 bytes in the reply ring: a power of two, 1,024 to 16,384.
    pub reply_slots: u32,
    /// `LOGON_*` bits: what else is asked for. `LOGON_TERSE` and `LOGON_BRIEF` are wishes: an engine that does not
    /// know the first is asked for the second, and one that knows neither for none; [`Client::flags`] tells. Which
    /// reply is the last only the terminal flag says. The orders of a terse session over shared memory leave in
    /// their short form where they have one ([`short_order`](crate::message::short_order)).
    pub flags: u8,
    /// When replies are handed on.
    pub acknowledgement: Acknowledgement,
    /// Last incarnation and position that an earlier connection of the session saw: a log that does not
    /// have them refuses ([`ConnectError::HistoryLost`]).
    pub last_seen: Option<(Incarnation, Position)>,
    /// The log that the engine must have: one of another venue at the same place is left
    /// ([`ConnectError::OtherLog`]).
    pub log_id: Option<[u8; 16]>,
    /// Of a stream: seconds after which a silent side sends a heartbeat, 1 to 60; 0: the engine's setting.
    /// Over shared memory: the program calls [`Receiver::poll`] or [`Receiver::wait`], or sends something, at least once
    /// in so many seconds, 1 to 60, or the engine ends the connection after three times as long, and cancels what the
    /// session asked for ([`LOGON_CANCEL_ON_DISCONNECT`](crate::message::command::LOGON_CANCEL_ON_DISCONNECT)); 0: it may
    /// stand still for ever. An engine before handshake 1.7 refuses anything else there
    /// ([`RefusalReason::InvalidHello`](crate::message::handshake::RefusalReason::InvalidHello)).
    pub heartbeat_seconds: u8,
    /// How [`Receiver::wait`] waits.
    pub wait: WaitStrategy,
    /// Longest that each step of the handshake may take: to connect, and each message from its beginning to its
    /// end. An engine whose log is slow lets in, or refuses, within 5 s; who gives up earlier learns neither.
    pub handshake_timeout: Duration,
}

impl ClientOptions {
    /// Rings of 1,024 and 4,096 slots, replies as soon as appended, adaptive waiting, 5 s per step.
    #[must_use]
    pub fn new(endpoint: impl Into<Endpoint>, role: Role, lane: Lane, name: Name) -> Self {
        Self {
            endpoint: endpoint.into(),
            role,
            lane,
            name,
            key: None,
            request_slots: 1024,
            reply_slots: 4096,
            flags: 0,
            acknowledgement: Acknowledgement::Appended,
            last_seen: None,
            log_id: None,
            heartbeat_seconds: 0,
            wait: WaitStrategy::Adaptive,
            handshake_timeout: Duration::from_secs(5),
        }
    }
}

/// The socket of the handshake, kept open: its end is the end of the connection.
#[derive(Debug)]
struct Line {
    socket: UnixStream,
    closed: EndFlag,
    /// The client has said that it sends nothing more.
    logged_out: AtomicBool,
    /// How often the request ring was full.
    refusals: AtomicU32,
}

impl Line {
    fn is_closed(&self) -> bool {
        self.closed.is_set()
    }

    /// Looks whether the engine has closed the socket; one system call.
    fn check(&self) -> bool {
        if !self.is_closed() {
            // The engine says nothing on the socket after the handshake: a byte is as bad as an end.
            let alive = matches!((&self.socket).read(&mut [0]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted));
            if !alive {
                self.closed.set();
            }
        }
        self.is_closed()
    }
}

/// Why a call got no result.
#[derive(Debug, Error)]
pub enum CallError {
    /// The command did not leave.
    #[error(transparent)]
    Send(#[from] SendError),
    /// No reply can come any more; whether the command was carried out is unknown.
    #[error("{0}; whether the command was carried out is unknown")]
    Receive(#[from] ReceiveError),
    /// No reply came in time; whether the command was carried out is unknown.
    #[error("no reply within {0:?}; whether the command was carried out is unknown")]
    Timeout(Duration),
    /// The command was rejected and changed nothing.
    #[error("rejected: {reason:?} (detail {detail})")]
    Rejected {
        /// Why.
        reason: RejectReason,
        /// As the reason says.
        detail: u32,
    },
    /// The command was rejected for a reason that this client does not know.
    #[error("rejected for the unknown reason {0}")]
    RejectedUnknown(u16),
}

/// An open session.
///
/// ```no_run
/// use std::time::Duration;
/// use touchline_protocol::client::{Client, ClientOptions, Endpoint, ReceiveError};
/// use touchline_protocol::message::command::NewOrder;
/// use touchline_protocol::message::enums::{Lane, OrderType, Role, Side, TimeInForce};
/// use touchline_protocol::text::Name;
/// use touchline_protocol::units::{KeyId, SymbolId, UNITS_PER_WHOLE};
///
/// // Or over TCP, where `gateway.tcp` says so: Endpoint::Tcp("127.0.0.1:9000".parse()?).
/// let endpoint = Endpoint::SharedMemory("touchline-data/engine.sock".into());
/// let name = Name::new("my-program").ok_or("31 characters of ASCII at the most")?;
/// let mut options = ClientOptions::new(endpoint, Role::Trader, Lane::Hot, name);
/// let key = KeyId(std::env::var("KEY_ID")?.parse()?);
/// options.key = Some((key, std::env::var("SECRET_KEY")?.into()));
/// let mut client = Client::connect(&options)?;
///
/// let mut order = NewOrder {
///     symbol: SymbolId(0),
///     side: Side::Buy.to_wire(),
///     order_type: OrderType::Limit.to_wire(),
///     time_in_force: TimeInForce::Gtc.to_wire(),
///     price: 10 * UNITS_PER_WHOLE,
///     quantity: 2 * UNITS_PER_WHOLE,
///     ..Default::default()
/// };
/// let sequence = client.sender().send(&mut order)?;
/// client.sender().log_out()?;
/// loop {
///     match client.receiver().poll() {
///         Ok(Some(reply)) if reply.envelope.sequence == sequence => {
///             println!("{:?}", reply.event.event()?);
///         }
///         // What others did to orders of this session.
///         Ok(Some(_)) => {}
///         Ok(None) => client.receiver().wait(Duration::from_secs(1)),
///         // All that was sent is answered by now.
///         Err(ReceiveError::Disconnected) => break,
///         Err(error) => return Err(error.into()),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Client {
    sender: Sender,
    receiver: Receiver,
    welcome: Welcome,
    flags: u8,
}

impl Client {
    /// Connects, proves who it is and attaches to the session's rings.
    ///
    /// # Errors
    /// See [`ConnectError`]; nothing is left open.
    pub fn connect(options: &ClientOptions) -> Result<Self, ConnectError> {
        connect::connect(options)
    }

    /// What the engine said when it opened the session.
    #[must_use]
    pub const fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// What the engine has granted of [`ClientOptions::flags`]: all of them, but for `LOGON_BRIEF` by an engine that
    /// does not know it, and `LOGON_TERSE`, in whose place an engine that does not know it has `LOGON_BRIEF`.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.flags
    }

    /// The sending half.
    pub const fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    /// The receiving half.
    pub const fn receiver(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    /// Both halves, for two threads. The connection ends when both are dropped.
    #[must_use]
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }

    /// Sends one command and waits for its terminal reply, passing over all replies and events before it: for tools
    /// that do one thing at a time. What is no reply stays for [`Receiver::next_notice`]: who asks for states besides
    /// has to take them between two calls, or one is told [`ReceiveError::Notices`] in the end.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call<C: ClientCommand>(
        &mut self,
        command: &mut C,
        timeout: Duration,
    ) -> Result<Reply, CallError> {
        let mut reply = Reply::default();
        let begin = Instant::now();
        let sequence = self.sender.send(command)?;
        loop {
            let has_come = self.receiver.poll_into(&mut reply)?;
            if has_come && reply.is_terminal() && reply.envelope.sequence == sequence {
                return accepted(reply);
            }
            let left = timeout.checked_sub(begin.elapsed()).ok_or(CallError::Timeout(timeout))?;
            if !has_come {
                self.receiver.wait(left);
            }
        }
    }
}

fn accepted(reply: Reply) -> Result<Reply, CallError> {
    match reply.event.event() {
        Ok(Event::Rejected(&Rejected { reason, detail, .. })) => {
            Err(RejectReason::from_wire(reason).map_or(
                CallError::RejectedUnknown(reason),
                |reason| CallError::Rejected { reason, detail },
            ))
        }
        _ => Ok(reply),
    }
}
