//! One peer of the gateway: from its first byte to an open session or a refusal. Every byte is
//! hostile; a peer holds at most one message's worth of them.

use super::GatewayOptions;
use super::backend::Listener;
use super::readers::{FeedWish, StreamTerms};
use super::stream::{Terms, bound_kernel};
use super::watches::Watch;
use crate::mailbox::{Asked, Detail, Wishes};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SendFlags, getpeername, send};
use rustix::process::geteuid;
use std::io;
use std::mem::discriminant;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use touchline_protocol::client::proof;
use touchline_protocol::message::command::{LOGON_FEED, LOGON_OF_SESSIONS, LOGON_WISHES, Logon};
use touchline_protocol::message::decode::{self, Handshake};
use touchline_protocol::message::enums::{Lane, RejectReason, Role};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::message::handshake::{
    ACKNOWLEDGE_APPENDED, ACKNOWLEDGE_DURABLE, CARRIER_RINGS, CARRIER_STREAM, Challenge,
    HEARTBEAT_SECONDS_MAX, Hello, Proof, RefusalReason, Refused, Welcome,
};
use touchline_protocol::message::{
    FEED_POSITION_MINOR, Message, MessageHeader, PROTOCOL_MAJOR, PROTOCOL_MINOR, SCHEMA_ID,
    SCHEMA_VERSION,
};
use touchline_protocol::ring::{RingCapacities, SessionDescriptors, SessionEnd};
use touchline_protocol::shm::descriptors::send_with_descriptors;
use touchline_protocol::units::{Epoch, Incarnation, KeyId, Position, SessionId};

/// Room for the longest message that a peer may send, in words.
const BUFFER_WORDS: usize = size_of::<Hello>() / 8;

/// What carries the session to come.
enum Carrier {
    Rings { descriptors: SessionDescriptors, capacities: RingCapacities, watch: Option<Watch> },
    Stream(Terms),
}

enum State {
    AwaitHello,
    AwaitProof {
        hello: Box<Hello>,
        nonce: [u8; 32],
    },
    AwaitHistory {
        hello: Box<Hello>,
    },
    AwaitDuty(Carrier),
    Open {
        session: SessionId,
        epoch: Epoch,
    },
    /// It wants the public feed, and the feed thread judges its key.
    AwaitFeed(FeedWish),
}

/// What a peer's bytes led to.
pub(super) enum Progress {
    /// More is to come.
    Waiting,
    /// The peer proved who it is, and says what it saw last: does the log have it?
    Check { incarnation: Incarnation, position: Position },
    /// The peer proved who it is. Without rings the session will be a stream's.
    LogOn { logon: Box<Logon>, end: Option<Box<SessionEnd>>, wishes: Wishes },
    /// The peer proved that it holds this key (0: it is of the engine's own user), and wants the feed.
    Subscribe(KeyId),
    /// The peer is to be forgotten; with a line to print when it was not its own wish.
    Gone(Option<String>),
}

/// Where a peer comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Origin {
    /// The engine's Unix socket.
    Local,
    /// An address; of IPv6 the network that one host has for itself, 64 bits.
    Remote(IpAddr),
}

impl Origin {
    /// Of a connection that was accepted.
    pub(super) fn of(listener: Listener, socket: &OwnedFd) -> io::Result<Self> {
        if listener == Listener::Local {
            return Ok(Self::Local);
        }
        let address = getpeername(socket)?.ok_or(io::ErrorKind::NotConnected)?;
        Ok(Self::remote(SocketAddr::try_from(address)?.ip()))
    }

    /// One of IPv4 is the same whether it comes over IPv4 or, mapped, over a listener of both.
    fn remote(address: IpAddr) -> Self {
        Self::Remote(match address.to_canonical() {
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
            }
            address => address,
        })
    }
}

/// What a peer has said at the door.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Said {
    /// Not a byte.
    Nothing,
    /// The beginning of a Hello.
    Part,
    /// A Hello of this key, which is to be proved.
    Hello(KeyId),
}

impl Said {
    /// True if both have said equally much, whatever keys they name.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other)
    }
}

pub(super) struct Peer {
    socket: Arc<OwnedFd>,
    origin: Origin,
    state: State,
    /// What it asked the duty thread for.
    asked: Option<Asked>,
    since: Instant,
    buffer: [u64; BUFFER_WORDS],
    filled: usize,
}

impl Peer {
    pub(super) fn new(socket: Arc<OwnedFd>, origin: Origin) -> Self {
        Self {
            socket,
            origin,
            state: State::AwaitHello,
            asked: None,
            since: Instant::now(),
            buffer: [0; BUFFER_WORDS],
            filled: 0,
        }
    }

    /// Where it comes from.
    pub(super) const fn origin(&self) -> Origin {
        self.origin
    }

    /// What it has said so far.
    pub(super) fn said(&self) -> Said {
        match &self.state {
            State::AwaitHello if self.filled == 0 => Said::Nothing,
            State::AwaitHello => Said::Part,
            State::AwaitProof { hello, .. } => Said::Hello(hello.key_id),
            // It has proved who it is, and is not at the door any more.
            _ => Said::Hello(KeyId::default()),
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// True once the peer has proved who it is.
    pub(super) const fn is_admitted(&self) -> bool {
        matches!(self.state, State::Open { .. } | State::AwaitDuty(_))
    }

    /// True when its session is to be, or would be, a stream's.
    pub(super) const fn is_stream(&self) -> bool {
        matches!(self.state, State::AwaitDuty(Carrier::Stream(_)))
    }

    /// The wish of a peer that wants the public feed and waits for an answer.
    pub(super) const fn wants_feed(&self) -> Option<FeedWish> {
        match self.state {
            State::AwaitFeed(wish) => Some(wish),
            _ => None,
        }
    }

    /// The key of a peer that waits for the log or for the feed thread; 0 of the engine's own user.
    pub(super) fn waits_as(&self) -> Option<KeyId> {
        match &self.state {
            State::AwaitHistory { hello } => Some(hello.key_id),
            State::AwaitFeed(wish) => Some(wish.key),
            _ => None,
        }
    }

    /// Its socket.
    pub(super) fn socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }

    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    pub(super) const fn session(&self) -> Option<(SessionId, Epoch)> {
        match self.state {
            State::Open { session, epoch } => Some((session, epoch)),
            _ => None,
        }
    }

    /// This is what the duty thread is asked for.
    pub(super) fn has_asked(&mut self, asked: Asked) {
        self.asked = Some(asked);
    }

    /// Takes back what the duty thread was asked for, so that no logon is logged of a peer that is gone or was told to
    /// come again. False if the duty thread has it already.
    pub(super) fn withdraw(&self) -> bool {
        self.asked.as_ref().is_none_or(|asked| asked.take().is_some())
    }

    /// Tells the peer that it is refused; it is to be dropped afterwards.
    pub(super) fn refuse(&self, reason: RefusalReason, reject: Option<RejectReason>) {
        let refused = Refused {
            reason: reason as u16,
            protocol_major: PROTOCOL_MAJOR,
            protocol_minor: PROTOCOL_MINOR,
            reject_reason: reject.map_or(0, RejectReason::to_wire),
            ..Default::default()
        };
        // A peer that does not read learns it by the socket's end.
        let _written = self.write(bytemuck::bytes_of(&refused));
    }

    /// Tells the peer that the log does not have what it saw last, but what it saw up to `position`.
    pub(super) fn refuse_history(&self, position: Position) {
        let refused = Refused {
            reason: RefusalReason::HistoryLost as u16,
            protocol_major: PROTOCOL_MAJOR,
            protocol_minor: PROTOCOL_MINOR,
            position,
            ..Default::default()
        };
        let _written = self.write(bytemuck::bytes_of(&refused));
    }

    /// Writes a message of the handshake; false if the socket does not take it at once.
    pub(super) fn write(&self, bytes: &[u8]) -> bool {
        loop {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Err(Errno::INTR) => {}
                Ok(count) => return count == bytes.len(),
                Err(_) => return false,
            }
        }
    }

    fn refused(&mut self, reason: RefusalReason, why: &str) -> Progress {
        self.refuse(reason, None);
        Progress::Gone(Some(format!("refused a connection: {why}")))
    }

    /// Takes bytes that came and goes as far as they lead.
    pub(super) fn received(&mut self, mut bytes: &[u8], options: &GatewayOptions) -> Progress {
        while !bytes.is_empty() {
            let into = &mut bytemuck::cast_slice_mut(&mut self.buffer)[self.filled..];
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
            let progress = match self.state {
                State::AwaitHello => self.hello(options),
                State::AwaitProof { .. } => self.proof(options),
                State::AwaitHistory { .. } | State::AwaitDuty(_) | State::AwaitFeed(_) => {
                    self.refused(RefusalReason::Malformed, "bytes before its session was open")
                }
                // A client with rings says nothing more on the socket.
                State::Open { .. } => {
                    let why = "closed a connection: bytes after the handshake";
                    Progress::Gone(Some(why.to_owned()))
                }
            };
            match progress {
                Progress::Waiting => {}
                gone @ Progress::Gone(_) => return gone,
                led if bytes.is_empty() => return led,
                _ => return self.refused(RefusalReason::Malformed, "bytes behind its messages"),
            }
        }
        Progress::Waiting
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.buffer)[..self.filled]
    }

    fn hello(&mut self, options: &GatewayOptions) -> Progress {
        // The versions are judged before the layout, which another may have changed.
        let Some(start) = self.bytes().first_chunk::<12>() else { return Progress::Waiting };
        let header: MessageHeader = bytemuck::pod_read_unaligned(&start[..8]);
        let major = u16::from(start[8]) | u16::from(start[9]) << 8;
        if header.template_id == Hello::TEMPLATE && major != PROTOCOL_MAJOR {
            let why = format!("its protocol is {major}, this engine's {PROTOCOL_MAJOR}");
            return self.refused(RefusalReason::Version, &why);
        }
        let is_hello = header.template_id == Hello::TEMPLATE && header.schema_id == SCHEMA_ID;
        if is_hello && header.version > SCHEMA_VERSION {
            let schema = header.version;
            let why = format!("its message schema is {schema}, this engine's {SCHEMA_VERSION}");
            return self.refused(RefusalReason::Version, &why);
        }
        if header != MessageHeader::of::<Hello>() {
            return self.refused(RefusalReason::Malformed, "its first message is no Hello");
        }
        if self.filled < size_of::<Hello>() {
            return Progress::Waiting;
        }
        let hello = match decode::handshake(self.bytes()) {
            Ok(Handshake::Hello(hello)) => *hello,
            _ => return self.refused(RefusalReason::Malformed, "its Hello is malformed"),
        };
        self.filled = 0;
        self.judge(hello, options)
    }

    fn judge(&mut self, hello: Hello, options: &GatewayOptions) -> Progress {
        let (Some(role), Some(lane)) = (Role::from_wire(hello.role), Lane::from_wire(hello.lane))
        else {
            return self.refused(RefusalReason::InvalidHello, "unknown role or lane");
        };
        // Nothing that a key's session may send belongs to the cold lane.
        if lane == Lane::Cold && role.has_key() {
            return self.refused(RefusalReason::InvalidHello, "the cold lane is not for its role");
        }
        let is_known = hello.flags & !LOGON_OF_SESSIONS == 0 || hello.flags == LOGON_FEED;
        if hello.name.is_empty() || !is_known {
            return self.refused(RefusalReason::InvalidHello, "no session name, or unknown flags");
        }
        let local = !role.has_key();
        if local != (hello.key_id.0 == 0) {
            return self.refused(RefusalReason::InvalidHello, "role and key do not go together");
        }
        let is_stream = hello.carrier == CARRIER_STREAM;
        if hello.flags == LOGON_FEED
            && (is_stream && hello.heartbeat_seconds == 0
                || hello.acknowledgement != ACKNOWLEDGE_APPENDED)
        {
            let why = "the feed over a stream without heartbeats, or with another acknowledgement";
            return self.refused(RefusalReason::InvalidHello, why);
        }
        if let Err((reason, why)) = check_carrier(&hello, local, self.origin == Origin::Local) {
            return self.refused(reason, why);
        }
        if local {
            let same_user = socket_peercred(self.socket.as_fd())
                .is_ok_and(|credentials| credentials.uid == geteuid());
            if !same_user {
                return self.refused(RefusalReason::RoleNotPermitted, "role of another user");
            }
            return self.proven(hello, options);
        }
        self.challenge(hello)
    }

    fn challenge(&mut self, hello: Hello) -> Progress {
        let mut nonce = [0; 32];
        if let Err(error) = getrandom::fill(&mut nonce) {
            return self.refused(RefusalReason::NotAuthenticated, &format!("no nonce: {error}"));
        }
        let challenge = Challenge { nonce, ..Default::default() };
        if !self.write(bytemuck::bytes_of(&challenge)) {
            return Progress::Gone(None);
        }
        self.state = State::AwaitProof { hello: Box::new(hello), nonce };
        Progress::Waiting
    }

    fn proof(&mut self, options: &GatewayOptions) -> Progress {
        if self.filled < size_of::<Proof>() {
            return Progress::Waiting;
        }
        let given = match decode::handshake(self.bytes()) {
            Ok(Handshake::Proof(given)) if self.filled == size_of::<Proof>() => given.mac,
            _ => return self.refused(RefusalReason::Malformed, "its proof is malformed"),
        };
        self.filled = 0;
        let State::AwaitProof { hello, nonce } = &self.state else { return Progress::Waiting };
        let hello = **hello;
        let expected = proof(&options.master_key.secret(hello.key_id), nonce, &hello);
        // Every byte is compared whatever the first ones were.
        let difference = given
            .iter()
            .zip(expected)
            .fold(0, |difference, (left, right)| difference | (left ^ right));
        if difference != 0 {
            return self.refused(RefusalReason::NotAuthenticated, "wrong proof");
        }
        self.proven(hello, options)
    }

    fn proven(&mut self, hello: Hello, options: &GatewayOptions) -> Progress {
        let (incarnation, position) = (hello.last_incarnation, hello.last_position);
        if incarnation.0 == 0 {
            return self.go_on(&hello, options);
        }
        self.state = State::AwaitHistory { hello: Box::new(hello) };
        Progress::Check { incarnation, position }
    }

    /// The log has what the peer saw last.
    pub(super) fn history_is_there(&mut self, options: &GatewayOptions) -> Progress {
        let State::AwaitHistory { hello } = &self.state else { return Progress::Waiting };
        let hello = **hello;
        self.go_on(&hello, options)
    }

    /// To the feed, or to a session.
    fn go_on(&mut self, hello: &Hello, options: &GatewayOptions) -> Progress {
        if hello.flags == LOGON_FEED {
            let stream = (hello.carrier == CARRIER_STREAM).then(|| StreamTerms {
                heartbeat: Duration::from_secs(hello.heartbeat_seconds.into()),
                takes_position: hello.protocol_minor >= FEED_POSITION_MINOR,
            });
            self.state = State::AwaitFeed(FeedWish { key: hello.key_id, stream });
            return Progress::Subscribe(hello.key_id);
        }
        self.log_on(hello, options)
    }

    fn log_on(&mut self, hello: &Hello, options: &GatewayOptions) -> Progress {
        let (carrier, end) = if hello.carrier == CARRIER_STREAM {
            (Carrier::Stream(terms(hello, options)), None)
        } else {
            match rings(hello) {
                Ok((carrier, end)) => (carrier, Some(Box::new(end))),
                Err((reason, why)) => return self.refused(reason, &why),
            }
        };
        let mut logon = Logon {
            name: hello.name,
            role: hello.role,
            lane: hello.lane,
            flags: hello.flags & !LOGON_WISHES,
            last_incarnation: hello.last_incarnation.0,
            last_position: hello.last_position.0,
            ..Default::default()
        };
        logon.command.key_id = hello.key_id;
        self.state = State::AwaitDuty(carrier);
        let wishes = Wishes {
            awaits_disk: hello.acknowledgement == ACKNOWLEDGE_DURABLE,
            detail: Detail::of(hello),
        };
        Progress::LogOn { logon: Box::new(logon), end, wishes }
    }

    /// Tells the peer that its session is open, and passes its memory if it has any; the descriptors are
    /// closed here afterwards.
    pub(super) fn welcome(
        &mut self,
        options: &GatewayOptions,
        started: &SessionStarted,
        position: Position,
        durable: Position,
    ) -> Welcomed {
        let opened = State::Open { session: started.session, epoch: started.epoch };
        let State::AwaitDuty(carrier) = std::mem::replace(&mut self.state, opened) else {
            return Welcomed::Gone;
        };
        let mut welcome = Welcome {
            session: started.session,
            epoch: started.epoch,
            last_sequence: started.last_sequence,
            incarnation: options.incarnation,
            position,
            log_id: options.log_id,
            durable,
            ..Default::default()
        };
        match carrier {
            Carrier::Stream(terms) => {
                bound_kernel(&self.socket);
                welcome.heartbeat_seconds = terms.heartbeat.as_secs() as u32;
                if self.write(bytemuck::bytes_of(&welcome)) {
                    Welcomed::Stream(terms)
                } else {
                    Welcomed::Gone
                }
            }
            Carrier::Rings { descriptors, capacities, watch } => {
                welcome.request_slots = capacities.requests().slots() as u32;
                welcome.reply_slots = capacities.replies().slots() as u32;
                let interval = watch.as_ref().map(|watch| watch.interval.as_secs());
                welcome.heartbeat_seconds = interval.unwrap_or_default() as u32;
                let passed = [
                    descriptors.client_pages.as_fd(),
                    descriptors.engine_pages.as_fd(),
                    options.control.as_fd(),
                ];
                let bytes = bytemuck::bytes_of(&welcome);
                match send_with_descriptors(&self.socket, bytes, &passed) {
                    Ok(()) => Welcomed::Rings(watch),
                    Err(_) => Welcomed::Gone,
                }
            }
        }
    }
}

/// What became of a peer whose session is open.
pub(super) enum Welcomed {
    /// It has its rings, and its socket is only watched for its end; its pages are watched if it asked for that.
    Rings(Option<Watch>),
    /// The session goes on over its socket.
    Stream(Terms),
    /// It is not there any more.
    Gone,
}

type Refusal = (RefusalReason, &'static str);

/// What a session may be carried by: rings by the local socket, streams for who has a key.
fn check_carrier(hello: &Hello, is_operator: bool, is_local: bool) -> Result<(), Refusal> {
    if ![ACKNOWLEDGE_APPENDED, ACKNOWLEDGE_DURABLE].contains(&hello.acknowledgement) {
        return Err((RefusalReason::InvalidHello, "unknown acknowledgement"));
    }
    match hello.carrier {
        CARRIER_RINGS if !is_local => Err((RefusalReason::InvalidHello, "shared memory over TCP")),
        CARRIER_RINGS if hello.flags == LOGON_FEED && hello.heartbeat_seconds != 0 => {
            Err((RefusalReason::InvalidHello, "heartbeats of who reads the feed in shared memory"))
        }
        CARRIER_STREAM if is_operator => {
            Err((RefusalReason::RoleNotPermitted, "an operator's role over a stream"))
        }
        CARRIER_RINGS | CARRIER_STREAM if hello.heartbeat_seconds > HEARTBEAT_SECONDS_MAX => {
            Err((RefusalReason::InvalidHello, "heartbeats too rare"))
        }
        CARRIER_RINGS | CARRIER_STREAM => Ok(()),
        _ => Err((RefusalReason::InvalidHello, "unknown carrier")),
    }
}

fn terms(hello: &Hello, options: &GatewayOptions) -> Terms {
    let seconds = match hello.heartbeat_seconds {
        0 => options.settings.heartbeat_seconds,
        wished => wished,
    };
    Terms {
        acknowledgement: hello.acknowledgement,
        heartbeat: Duration::from_secs(seconds.into()),
        unsent_bytes: options.settings.unsent_kib << 10,
    }
}

fn rings(hello: &Hello) -> Result<(Carrier, SessionEnd), (RefusalReason, String)> {
    let capacities = RingCapacities::new(hello.request_slots as usize, hello.reply_slots as usize)
        .map_err(|error| (RefusalReason::InvalidHello, error.to_string()))?;
    let (end, descriptors) = SessionEnd::create(capacities)
        .map_err(|error| (RefusalReason::TooManySessions, error.to_string()))?;
    let watch = (hello.heartbeat_seconds != 0).then(|| Watch {
        interval: Duration::from_secs(hello.heartbeat_seconds.into()),
        moves: end.peer_moves.clone(),
    });
    Ok((Carrier::Rings { descriptors, capacities, watch }, end))
}

#[cfg(test)]
mod tests;
