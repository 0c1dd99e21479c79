//! One peer of the gateway: from its first byte to an open session or a refusal. Every byte is
//! hostile; a peer holds at most one message's worth of them.

use super::GatewayOptions;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;
use touchline_protocol::client::proof;
use touchline_protocol::message::command::{
    LOGON_ACCOUNT_EVENTS, LOGON_CANCEL_ON_DISCONNECT, Logon,
};
use touchline_protocol::message::decode::{self, Handshake};
use touchline_protocol::message::enums::{Lane, RejectReason, Role};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::message::handshake::{
    Challenge, Hello, Proof, RefusalReason, Refused, Welcome,
};
use touchline_protocol::message::{Message, MessageHeader, PROTOCOL_MAJOR, PROTOCOL_MINOR};
use touchline_protocol::ring::{RingCapacities, SessionDescriptors, SessionEnd};
use touchline_protocol::shm::descriptors::send_with_descriptors;
use touchline_protocol::units::{Epoch, Position, SessionId};

/// Room for the longest message that a peer may send, in words.
const BUFFER_WORDS: usize = size_of::<Hello>() / 8;

enum State {
    AwaitHello,
    AwaitProof { hello: Box<Hello>, nonce: [u8; 32] },
    AwaitDuty { descriptors: SessionDescriptors, capacities: RingCapacities },
    Open { session: SessionId, epoch: Epoch },
}

/// What a peer's bytes led to.
pub(super) enum Progress {
    /// More is to come.
    Waiting,
    /// The peer proved who it is.
    LogOn { logon: Box<Logon>, end: Box<SessionEnd> },
    /// The peer is to be forgotten; with a line to print when it was not its own wish.
    Gone(Option<String>),
}

pub(super) struct Peer {
    socket: UnixStream,
    state: State,
    since: Instant,
    buffer: [u64; BUFFER_WORDS],
    filled: usize,
}

impl Peer {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            state: State::AwaitHello,
            since: Instant::now(),
            buffer: [0; BUFFER_WORDS],
            filled: 0,
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// True once the peer has proved who it is.
    pub(super) const fn is_admitted(&self) -> bool {
        matches!(self.state, State::Open { .. } | State::AwaitDuty { .. })
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

    /// Tells the peer that it is refused; it is to be dropped afterwards.
    pub(super) fn refuse(&mut self, reason: RefusalReason, reject: Option<RejectReason>) {
        let refused = Refused {
            reason: reason as u16,
            protocol_major: PROTOCOL_MAJOR,
            protocol_minor: PROTOCOL_MINOR,
            reject_reason: reject.map_or(0, RejectReason::to_wire),
            ..Default::default()
        };
        // A peer that does not read learns it by the socket's end.
        let _written = self.socket.write_all(bytemuck::bytes_of(&refused));
    }

    fn refused(&mut self, reason: RefusalReason, why: &str) -> Progress {
        self.refuse(reason, None);
        Progress::Gone(Some(format!("refused a connection: {why}")))
    }

    /// Reads what there is and goes as far as it leads.
    pub(super) fn ready(&mut self, options: &GatewayOptions) -> Progress {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.buffer);
        match self.socket.read(&mut bytes[self.filled..]) {
            Ok(0) => return Progress::Gone(None),
            Ok(count) => self.filled += count,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return Progress::Waiting;
            }
            Err(_) => return Progress::Gone(None),
        }
        match self.state {
            State::AwaitHello => self.hello(),
            State::AwaitProof { .. } => self.proof(options),
            // After the handshake a client says nothing on the socket.
            State::AwaitDuty { .. } | State::Open { .. } => {
                Progress::Gone(Some("closed a connection: bytes after the handshake".to_owned()))
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.buffer)[..self.filled]
    }

    fn hello(&mut self) -> Progress {
        // The version is judged before the layout, which another major may have changed.
        let Some(start) = self.bytes().first_chunk::<12>() else { return Progress::Waiting };
        let header: MessageHeader = bytemuck::pod_read_unaligned(&start[..8]);
        let major = u16::from(start[8]) | u16::from(start[9]) << 8;
        if header.template_id == Hello::TEMPLATE && major != PROTOCOL_MAJOR {
            let why = format!("its protocol is {major}, this engine's {PROTOCOL_MAJOR}");
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
        self.judge(hello)
    }

    fn judge(&mut self, hello: Hello) -> Progress {
        let (Some(role), Some(lane)) = (Role::from_wire(hello.role), Lane::from_wire(hello.lane))
        else {
            return self.refused(RefusalReason::InvalidHello, "unknown role or lane");
        };
        // Nothing that a key's session may send belongs to the cold lane.
        if lane == Lane::Cold && matches!(role, Role::Trader | Role::ReadOnly) {
            return self.refused(RefusalReason::InvalidHello, "the cold lane is not for its role");
        }
        let known = LOGON_CANCEL_ON_DISCONNECT | LOGON_ACCOUNT_EVENTS;
        if hello.name.is_empty() || hello.flags & !known != 0 {
            return self.refused(RefusalReason::InvalidHello, "no session name, or unknown flags");
        }
        let local = matches!(role, Role::Admin | Role::Adapter);
        if local != (hello.key_id.0 == 0) {
            return self.refused(RefusalReason::InvalidHello, "role and key do not go together");
        }
        if local {
            let same_user = socket_peercred(self.socket.as_fd())
                .is_ok_and(|credentials| credentials.uid == geteuid());
            if !same_user {
                return self.refused(RefusalReason::RoleNotPermitted, "role of another user");
            }
            return self.log_on(&hello);
        }
        self.challenge(hello)
    }

    fn challenge(&mut self, hello: Hello) -> Progress {
        let mut nonce = [0; 32];
        if let Err(error) = getrandom::fill(&mut nonce) {
            return self.refused(RefusalReason::NotAuthenticated, &format!("no nonce: {error}"));
        }
        let challenge = Challenge { nonce, ..Default::default() };
        if self.socket.write_all(bytemuck::bytes_of(&challenge)).is_err() {
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
        self.log_on(&hello)
    }

    fn log_on(&mut self, hello: &Hello) -> Progress {
        let capacities =
            match RingCapacities::new(hello.request_slots as usize, hello.reply_slots as usize) {
                Ok(capacities) => capacities,
                Err(error) => {
                    return self.refused(RefusalReason::InvalidHello, &error.to_string());
                }
            };
        let (end, descriptors) = match SessionEnd::create(capacities) {
            Ok(made) => made,
            Err(error) => {
                return self.refused(RefusalReason::TooManySessions, &error.to_string());
            }
        };
        let mut logon = Logon {
            name: hello.name,
            role: hello.role,
            lane: hello.lane,
            flags: hello.flags,
            last_incarnation: hello.last_incarnation.0,
            last_position: hello.last_position.0,
            ..Default::default()
        };
        logon.command.key_id = hello.key_id;
        self.state = State::AwaitDuty { descriptors, capacities };
        Progress::LogOn { logon: Box::new(logon), end: Box::new(end) }
    }

    /// Tells the peer that its session is open, and passes its memory; the descriptors are closed
    /// here afterwards. False if the peer is gone.
    pub(super) fn welcome(
        &mut self,
        options: &GatewayOptions,
        started: &SessionStarted,
        position: Position,
    ) -> bool {
        let opened = State::Open { session: started.session, epoch: started.epoch };
        let State::AwaitDuty { descriptors, capacities } =
            std::mem::replace(&mut self.state, opened)
        else {
            return false;
        };
        let welcome = Welcome {
            session: started.session,
            epoch: started.epoch,
            last_sequence: started.last_sequence,
            incarnation: options.incarnation,
            request_slots: capacities.requests().slots() as u32,
            reply_slots: capacities.replies().slots() as u32,
            position,
            log_id: options.log_id,
            ..Default::default()
        };
        let passed = [
            descriptors.client_pages.as_fd(),
            descriptors.engine_pages.as_fd(),
            options.control.as_fd(),
        ];
        send_with_descriptors(&self.socket, bytemuck::bytes_of(&welcome), &passed).is_ok()
    }
}

#[cfg(test)]
mod tests;
