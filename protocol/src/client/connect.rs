//! The client's side of the handshake.

use super::receiver::Inlet;
use super::rings::{RingReceiver, Watermarks};
use super::sender::Outlet;
use super::stream::{StreamLine, StreamReceiver};
use super::{Acknowledgement, Client, ClientOptions, Endpoint, Line, Receiver, Sender};
use crate::log::control;
use crate::message::decode::{self, DecodeError, Handshake};
use crate::message::enums::RejectReason;
use crate::message::handshake::{
    ACKNOWLEDGE_APPENDED, ACKNOWLEDGE_DURABLE, CARRIER_RINGS, CARRIER_STREAM, Challenge, Hello,
    Proof, RefusalReason, Refused, Welcome,
};
use crate::message::{MessageHeader, PROTOCOL_MAJOR, PROTOCOL_MINOR};
use crate::ring::{
    CapacityError, MessageBuffer, RingCapacities, SessionDescriptors, SessionEnd, SessionError,
};
use crate::shm::descriptors::{PassError, receive_with_descriptors};
use crate::shm::{ReadOnlyRegion, ShmError};
use crate::units::{KeyId, Position};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;
use thiserror::Error;

/// Why no session was opened.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// Nobody listens on the socket.
    #[error("cannot connect to the engine at {endpoint}: {source}")]
    Connect {
        /// Where it was looked for.
        endpoint: Endpoint,
        /// What the system said.
        source: io::Error,
    },
    /// The handshake broke off.
    #[error("handshake with the engine: {0}")]
    Io(#[from] io::Error),
    /// The engine said something that is no message.
    #[error("handshake with the engine: {0}")]
    Decode(#[from] DecodeError),
    /// The engine said something that is out of place.
    #[error("handshake with the engine: unexpected {0}")]
    Unexpected(&'static str),
    /// The engine speaks another version.
    #[error(
        "the engine speaks protocol {major}.{minor}, this client {PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"
    )]
    Version {
        /// The engine's major.
        major: u16,
        /// The engine's minor.
        minor: u16,
    },
    /// The engine refused.
    #[error("the engine refused the session: {reason:?}{}", reject.map_or(String::new(), |reject| format!(" ({reject:?})")))]
    Refused {
        /// Why; `None` for a reason that this client does not know.
        reason: Option<RefusalReason>,
        /// The core's reason, when it was the core.
        reject: Option<RejectReason>,
    },
    /// The log does not have what the client saw last: see [`RefusalReason::HistoryLost`].
    #[error(
        "the engine's log ends at {position} and does not have the position that this client saw: what \
         it was told since may not have happened"
    )]
    HistoryLost {
        /// How far the log goes.
        position: Position,
    },
    /// The descriptors did not come.
    #[error("handshake with the engine: {0}")]
    Pass(#[from] PassError),
    /// The session's pages are not as agreed.
    #[error("session memory: {0}")]
    Session(#[from] SessionError),
    /// The control page is not as agreed.
    #[error("control page: {0}")]
    Control(#[from] ShmError),
    /// The engine states ring capacities that no ring has.
    #[error("ring capacity: {0}")]
    Capacity(#[from] CapacityError),
}

/// The proof that a client gives for a challenge: HMAC-SHA256 keyed with the secret's text over the
/// nonce and the whole Hello. Both sides compute it here.
#[must_use]
pub fn proof(secret: &str, nonce: &[u8; 32], hello: &Hello) -> [u8; 32] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(nonce);
    mac.update(bytemuck::bytes_of(hello));
    mac.finalize().into_bytes().into()
}

pub(super) fn connect(options: &ClientOptions) -> Result<Client, ConnectError> {
    let failed = |source| ConnectError::Connect { endpoint: options.endpoint.clone(), source };
    match &options.endpoint {
        Endpoint::SharedMemory(path) => {
            let mut socket = UnixStream::connect(path).map_err(failed)?;
            socket.set_read_timeout(Some(options.handshake_timeout))?;
            socket.set_write_timeout(Some(options.handshake_timeout))?;
            prove(&mut socket, options)?;
            attach(options, socket)
        }
        Endpoint::Unix(path) => {
            let mut socket = UnixStream::connect(path).map_err(failed)?;
            socket.set_read_timeout(Some(options.handshake_timeout))?;
            socket.set_write_timeout(Some(options.handshake_timeout))?;
            prove(&mut socket, options)?;
            let welcome = welcome_of_stream(&mut socket)?;
            socket.set_nonblocking(true)?;
            Ok(stream_client(options, &welcome, socket.into()))
        }
        Endpoint::Tcp(address) => {
            let mut socket =
                TcpStream::connect_timeout(address, options.handshake_timeout).map_err(failed)?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(options.handshake_timeout))?;
            socket.set_write_timeout(Some(options.handshake_timeout))?;
            prove(&mut socket, options)?;
            let welcome = welcome_of_stream(&mut socket)?;
            socket.set_nonblocking(true)?;
            Ok(stream_client(options, &welcome, socket.into()))
        }
    }
}

/// Says who we are, and proves it if there is a key.
fn prove(socket: &mut (impl Read + Write), options: &ClientOptions) -> Result<(), ConnectError> {
    let hello = hello(options)?;
    socket.write_all(bytemuck::bytes_of(&hello))?;
    if let Some((_, secret)) = &options.key {
        let nonce = challenge(socket)?;
        let proof = Proof { mac: proof(secret, &nonce, &hello), ..Default::default() };
        socket.write_all(bytemuck::bytes_of(&proof))?;
    }
    Ok(())
}

fn hello(options: &ClientOptions) -> io::Result<Hello> {
    let mut client_nonce = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut client_nonce)?;
    let is_stream = !matches!(options.endpoint, Endpoint::SharedMemory(_));
    let is_durable = options.acknowledgement == Acknowledgement::Durable;
    let (last_incarnation, last_position) = options.last_seen.unwrap_or_default();
    Ok(Hello {
        protocol_major: PROTOCOL_MAJOR,
        protocol_minor: PROTOCOL_MINOR,
        role: options.role.to_wire(),
        lane: options.lane.to_wire(),
        key_id: options.key.as_ref().map_or(KeyId(0), |(key, _)| *key),
        name: options.name,
        flags: options.flags,
        carrier: if is_stream { CARRIER_STREAM } else { CARRIER_RINGS },
        request_slots: options.request_slots,
        reply_slots: options.reply_slots,
        acknowledgement: if is_stream && is_durable {
            ACKNOWLEDGE_DURABLE
        } else {
            ACKNOWLEDGE_APPENDED
        },
        heartbeat_seconds: if is_stream { options.heartbeat_seconds } else { 0 },
        last_incarnation,
        last_position,
        client_nonce,
        ..Default::default()
    })
}

fn attach(options: &ClientOptions, socket: UnixStream) -> Result<Client, ConnectError> {
    let (welcome, descriptors, control) = welcome(&socket)?;
    let capacities =
        RingCapacities::new(welcome.request_slots as usize, welcome.reply_slots as usize)?;
    let end = SessionEnd::attach(&descriptors, capacities)?;
    let control = ReadOnlyRegion::map_file(&File::from(control), control::CONTROL_BYTES)?;
    socket.set_nonblocking(true)?;
    Ok(assemble(options, welcome, end, &control, socket)?)
}

fn welcome_of_stream(socket: &mut impl Read) -> Result<Welcome, ConnectError> {
    let mut words = [0; 16];
    read_message(socket, &mut words)?;
    match decode::handshake(bytemuck::cast_slice(&words))? {
        Handshake::Welcome(welcome) => Ok(*welcome),
        Handshake::Refused(refused) => Err(refusal(refused)),
        other => Err(ConnectError::Unexpected(other.name())),
    }
}

fn stream_client(options: &ClientOptions, welcome: &Welcome, socket: OwnedFd) -> Client {
    let heartbeat = Duration::from_secs(u64::from(welcome.heartbeat_seconds.max(1)));
    let line = Arc::new(StreamLine::new(socket, heartbeat));
    let sender = Sender {
        outlet: Outlet::Stream(Arc::clone(&line)),
        session: welcome.session,
        epoch: welcome.epoch,
        last_sequence: welcome.last_sequence,
    };
    let receiver = StreamReceiver::new(line, options, welcome.durable);
    let receiver = Receiver(Inlet::Stream(Box::new(receiver)));
    Client { sender, receiver, welcome: *welcome }
}

/// Reads one message of the handshake: the header, then as much as it says, both bounded.
fn read_message(socket: &mut impl Read, words: &mut [u64; 16]) -> Result<(), ConnectError> {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
    socket.read_exact(&mut bytes[..MessageHeader::BYTES])?;
    let header: MessageHeader = bytemuck::pod_read_unaligned(&bytes[..MessageHeader::BYTES]);
    let end = MessageHeader::BYTES + usize::from(header.block_length);
    let block = bytes
        .get_mut(MessageHeader::BYTES..end)
        .ok_or(DecodeError::Template { template: header.template_id })?;
    socket.read_exact(block)?;
    Ok(())
}

fn challenge(socket: &mut impl Read) -> Result<[u8; 32], ConnectError> {
    let mut words = [0; 16];
    read_message(socket, &mut words)?;
    match decode::handshake(bytemuck::cast_slice(&words))? {
        Handshake::Challenge(Challenge { nonce, .. }) => Ok(*nonce),
        Handshake::Refused(refused) => Err(refusal(refused)),
        other => Err(ConnectError::Unexpected(other.name())),
    }
}

/// Welcome comes in one piece with its descriptors, Refused without any.
fn welcome(socket: &UnixStream) -> Result<(Welcome, SessionDescriptors, OwnedFd), ConnectError> {
    let mut words = [0u64; 16];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let (length, descriptors) = receive_with_descriptors(socket, bytes, 3)?;
    match decode::handshake(&bytemuck::cast_slice(&words)[..length])? {
        Handshake::Welcome(welcome) => {
            let [client_pages, engine_pages, control] = <[OwnedFd; 3]>::try_from(descriptors)
                .map_err(|_| ConnectError::Unexpected("number of descriptors"))?;
            Ok((*welcome, SessionDescriptors { client_pages, engine_pages }, control))
        }
        Handshake::Refused(refused) => Err(refusal(refused)),
        other => Err(ConnectError::Unexpected(other.name())),
    }
}

fn refusal(refused: &Refused) -> ConnectError {
    match RefusalReason::from_wire(refused.reason) {
        Some(RefusalReason::Version) => {
            ConnectError::Version { major: refused.protocol_major, minor: refused.protocol_minor }
        }
        Some(RefusalReason::HistoryLost) => {
            ConnectError::HistoryLost { position: refused.position }
        }
        reason => {
            ConnectError::Refused { reason, reject: RejectReason::from_wire(refused.reject_reason) }
        }
    }
}

fn assemble(
    options: &ClientOptions,
    welcome: Welcome,
    end: SessionEnd,
    control: &ReadOnlyRegion,
    socket: UnixStream,
) -> Result<Client, ShmError> {
    let line = Arc::new(Line { socket, closed: AtomicBool::new(false) });
    let sender = Sender {
        outlet: Outlet::Rings {
            output: end.output,
            signals: end.signals.clone(),
            line: Arc::clone(&line),
        },
        session: welcome.session,
        epoch: welcome.epoch,
        last_sequence: welcome.last_sequence,
    };
    let receiver = RingReceiver {
        input: end.input,
        signals: end.signals,
        line,
        watermarks: Watermarks {
            durable: control.u64_at(control::DURABLE_OFFSET)?,
            durable_event: control.u32_at(control::DURABLE_EVENT_OFFSET)?,
        },
        acknowledgement: options.acknowledgement,
        wait: options.wait,
        held: VecDeque::new(),
        buffer: Box::new(MessageBuffer::new()),
        parked_for_durable: AtomicU32::new(0),
    };
    Ok(Client { sender, receiver: Receiver(Inlet::Rings(Box::new(receiver))), welcome })
}
