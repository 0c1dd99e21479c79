//! Opening a session: the client's side of the handshake, and what carries the session behind it.

use super::handshake::{self, Step};
use super::options::OptionsError;
use super::receiver::Inlet;
use super::rings::{RingReceiver, Watermarks};
use super::sender::Outlet;
use super::stream::{StreamLine, StreamReceiver};
use super::{Acknowledgement, Client, ClientOptions, Endpoint, Line, Receiver, Sender};
use crate::log::control;
use crate::log::segment::log_id_text;
use crate::message::command::{LOGON_BRIEF, LOGON_TERSE, LOGON_WISHES};
use crate::message::decode::{self, DecodeError, Handshake};
use crate::message::enums::RejectReason;
use crate::message::handshake::{
    ACKNOWLEDGE_APPENDED, ACKNOWLEDGE_DURABLE, CARRIER_RINGS, CARRIER_STREAM,
    HEARTBEAT_SECONDS_MAX, Hello, RefusalReason, Refused, Welcome,
};
use crate::message::{PROTOCOL_MAJOR, PROTOCOL_MINOR};
use crate::ring::{
    CapacityError, MessageBuffer, RingCapacities, SessionDescriptors, SessionEnd, SessionError,
};
use crate::shm::descriptors::PassError;
use crate::shm::{ReadOnlyRegion, ShmError};
use crate::sync::EndFlag;
use crate::units::Position;
use crate::wait::Waiter;
use rustix::io::ioctl_fionbio;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why no session was opened.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The options are none that any engine takes; nothing was dialled.
    #[error("cannot open a session: {0}")]
    Options(#[from] OptionsError),
    /// Nobody listens on the socket.
    #[error("cannot connect to the engine at {endpoint}: {source}")]
    Connect {
        /// Where it was looked for.
        endpoint: Endpoint,
        /// What the system said.
        source: io::Error,
    },
    /// The engine takes connections and says nothing: it is stopped, or its machine gives it no time.
    #[error(
        "the engine at {endpoint} does not answer: it took the connection and then nothing came for \
         {waited:?}; it is stopped, or its machine is busy with other things"
    )]
    NoAnswer {
        /// Where it was dialled.
        endpoint: Endpoint,
        /// So long it was waited for.
        waited: Duration,
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
    #[error("the engine refused the session: {}", handshake::why(*reason, *reject))]
    Refused {
        /// Why; `None` for a reason that this client does not know.
        reason: Option<RefusalReason>,
        /// The core's reason, when it was the core.
        reject: Option<RejectReason>,
    },
    /// The log does not have what the client saw last: see [`RefusalReason::HistoryLost`].
    #[error(
        "the engine's log has what this client saw up to {position} and not the position that it saw last: what \
         it was told since may not have happened, or, if that is not below it, the log was pruned"
    )]
    HistoryLost {
        /// Up to where the log has what the client was told.
        position: Position,
    },
    /// The engine has another log than [`ClientOptions::log_id`]: nothing that is known of the one holds of it.
    #[error(
        "the engine has the log {}, and not {}: another venue is at this place",
        log_id_text(found),
        log_id_text(expected)
    )]
    OtherLog {
        /// The engine's.
        found: [u8; 16],
        /// What was asked for.
        expected: [u8; 16],
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

/// What an engine that does not know it refuses, and a session can do without.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wishes {
    /// `LOGON_*` bits: to be told less, where what is told besides is passed over.
    flags: u8,
    /// Over rings, that the engine hurries to the disk: replies are held back here in any case.
    durable: bool,
}

/// Flags of a logon that an older engine does not know, each with what is asked for instead; the newest first.
const INSTEAD: [(u8, u8); 2] = [(LOGON_TERSE, LOGON_BRIEF), (LOGON_BRIEF, 0)];

/// What engines are asked for one after the other, once each: from the newest to the oldest.
fn wishes(options: &ClientOptions) -> impl Iterator<Item = Wishes> {
    let is_ring = matches!(options.endpoint, Endpoint::SharedMemory(_));
    let durable = is_ring && options.acknowledgement == Acknowledgement::Durable;
    let mut flags = options.flags;
    let fewer = INSTEAD.into_iter().filter_map(move |(bit, instead)| {
        let is_asked = flags & bit != 0;
        flags = if is_asked { flags & !bit | instead } else { flags };
        is_asked.then_some(flags)
    });
    let all = iter::once(options.flags).chain(fewer).map(move |flags| Wishes { flags, durable });
    let plain = options.flags & !LOGON_WISHES;
    all.chain(durable.then_some(Wishes { flags: plain, durable: false }))
}

pub(super) fn connect(options: &ClientOptions) -> Result<Client, ConnectError> {
    options.check()?;
    let mut refused = None;
    for wishes in wishes(options) {
        match open(options, wishes) {
            Err(
                error @ ConnectError::Refused { reason: Some(RefusalReason::InvalidHello), .. },
            ) => refused = Some(error),
            outcome => return outcome,
        }
    }
    Err(refused.unwrap_or(ConnectError::Unexpected("no answer")))
}

fn open(options: &ClientOptions, wishes: Wishes) -> Result<Client, ConnectError> {
    let limit = options.handshake_timeout;
    let failed = |source| ConnectError::Connect { endpoint: options.endpoint.clone(), source };
    let hello = hello(options, wishes)?;
    let opened = match &options.endpoint {
        Endpoint::SharedMemory(path) => {
            over_rings(options, hello, handshake::dial(path, limit).map_err(failed)?)
        }
        Endpoint::Unix(path) => {
            over_stream(options, hello, handshake::dial(path, limit).map_err(failed)?)
        }
        Endpoint::Tcp(address) => {
            over_stream(options, hello, handshake::dial_tcp(*address, limit).map_err(failed)?)
        }
    };
    opened.map_err(|error| error.or_no_answer(options))
}

impl ConnectError {
    /// A wait that took too long, by what it means.
    fn or_no_answer(self, options: &ClientOptions) -> Self {
        let (Self::Io(source) | Self::Pass(PassError::System(source))) = &self else { return self };
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::NoAnswer {
                endpoint: options.endpoint.clone(),
                waited: options.handshake_timeout,
            },
            _ => self,
        }
    }
}

fn hello(options: &ClientOptions, wishes: Wishes) -> io::Result<Hello> {
    let is_stream = !matches!(options.endpoint, Endpoint::SharedMemory(_));
    let is_durable = options.acknowledgement == Acknowledgement::Durable;
    let is_durable = is_durable && (is_stream || wishes.durable);
    let (last_incarnation, last_position) = options.last_seen.unwrap_or_default();
    Ok(Hello {
        role: options.role.to_wire(),
        lane: options.lane.to_wire(),
        flags: wishes.flags,
        carrier: if is_stream { CARRIER_STREAM } else { CARRIER_RINGS },
        request_slots: options.request_slots,
        reply_slots: options.reply_slots,
        acknowledgement: if is_durable { ACKNOWLEDGE_DURABLE } else { ACKNOWLEDGE_APPENDED },
        heartbeat_seconds: options.heartbeat_seconds,
        last_incarnation,
        last_position,
        ..handshake::hello(options.key.as_ref(), options.name)?
    })
}

/// Goes on with rings, whose descriptors come with the Welcome.
fn over_rings(
    options: &ClientOptions,
    hello: Hello,
    mut socket: UnixStream,
) -> Result<Client, ConnectError> {
    let limit = options.handshake_timeout;
    handshake::prove(&mut socket, &hello, (options.key.as_ref(), limit), out_of_place)?;
    let (welcome, descriptors, control) = welcome(Step::begin(&socket, limit))?;
    check_log(options, &welcome)?;
    let granted = (welcome, hello.flags);
    let capacities =
        RingCapacities::new(welcome.request_slots as usize, welcome.reply_slots as usize)?;
    let end = SessionEnd::attach(&descriptors, capacities)?;
    let control = ReadOnlyRegion::map_file(&File::from(control), control::CONTROL_BYTES)?;
    socket.set_nonblocking(true)?;
    Ok(assemble(options, granted, end, &control, socket)?)
}

/// Goes on over the socket itself.
fn over_stream<S: Read + Write + AsFd + Into<OwnedFd>>(
    options: &ClientOptions,
    hello: Hello,
    mut socket: S,
) -> Result<Client, ConnectError> {
    let limit = options.handshake_timeout;
    handshake::prove(&mut socket, &hello, (options.key.as_ref(), limit), out_of_place)?;
    let mut words = [0; 16];
    handshake::read_message::<ConnectError>(&mut Step::begin(&mut socket, limit), &mut words)?;
    let welcome = match decode::handshake(bytemuck::cast_slice(&words))? {
        Handshake::Welcome(welcome) => *welcome,
        other => return Err(out_of_place(other)),
    };
    check_log(options, &welcome)?;
    let socket = socket.into();
    ioctl_fionbio(&socket, true).map_err(io::Error::from)?;
    let line = Arc::new(StreamLine::new(socket, heartbeat(&welcome)));
    let outlet = Outlet::Stream(Arc::clone(&line));
    let sender = Sender::new(options, &welcome, (outlet, false));
    let receiver = StreamReceiver::new(line, options, welcome.durable);
    let receiver = Receiver(Inlet::Stream(Box::new(receiver)));
    Ok(Client { sender, receiver, welcome, flags: hello.flags })
}

/// The announced interval, brought into its range: by a broken one of years no dead peer would ever be given up.
fn heartbeat(welcome: &Welcome) -> Duration {
    Duration::from_secs(welcome.heartbeat_seconds.clamp(1, HEARTBEAT_SECONDS_MAX.into()).into())
}

/// Of another log even the same numbers mean other sessions, keys and symbols.
fn check_log(options: &ClientOptions, welcome: &Welcome) -> Result<(), ConnectError> {
    match options.log_id {
        Some(expected) if expected != welcome.log_id => {
            Err(ConnectError::OtherLog { found: welcome.log_id, expected })
        }
        _ => Ok(()),
    }
}

/// Welcome comes in one piece with its descriptors, Refused without any.
fn welcome(
    step: Step<&UnixStream>,
) -> Result<(Welcome, SessionDescriptors, OwnedFd), ConnectError> {
    let mut words = [0u64; 16];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let (length, descriptors) = step.receive_with_descriptors(bytes, 3)?;
    if length == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    match decode::handshake(&bytemuck::cast_slice(&words)[..length])? {
        Handshake::Welcome(welcome) => {
            let [client_pages, engine_pages, control] = <[OwnedFd; 3]>::try_from(descriptors)
                .map_err(|_| ConnectError::Unexpected("number of descriptors"))?;
            Ok((*welcome, SessionDescriptors { client_pages, engine_pages }, control))
        }
        other => Err(out_of_place(other)),
    }
}

/// What another message than the one that is due says.
fn out_of_place(message: Handshake<'_>) -> ConnectError {
    match message {
        Handshake::Refused(refused) => refusal(refused),
        other => ConnectError::Unexpected(other.name()),
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
    (welcome, flags): (Welcome, u8),
    end: SessionEnd,
    control: &ReadOnlyRegion,
    socket: UnixStream,
) -> Result<Client, ShmError> {
    let line = Arc::new(Line {
        socket,
        closed: EndFlag::new(),
        logged_out: AtomicBool::new(false),
        refusals: AtomicU32::new(0),
    });
    let outlet =
        Outlet::Rings { output: end.output, signals: end.signals.clone(), line: Arc::clone(&line) };
    let sender = Sender::new(options, &welcome, (outlet, flags & LOGON_TERSE != 0));
    let receiver = RingReceiver {
        input: end.input,
        signals: end.signals,
        alive: (welcome.heartbeat_seconds != 0).then_some(end.alive),
        line,
        watermarks: Watermarks {
            durable: control.u64_at(control::DURABLE_OFFSET)?,
            durable_event: control.u32_at(control::DURABLE_EVENT_OFFSET)?,
            state: control.u32_at(control::STATE_OFFSET)?,
            heartbeat_ns: control.u64_at(control::HEARTBEAT_NS_OFFSET)?,
        },
        acknowledgement: options.acknowledgement,
        waiter: Waiter::new(options.wait),
        held: VecDeque::new(),
        buffer: Box::new(MessageBuffer::new()),
        parked_for_durable: AtomicU32::new(0),
        own_bell: Arc::default(),
        polls: 0,
        polls_between: 0,
        checked: Instant::now(),
        beat: (0, Instant::now()),
        looked: Instant::now(),
        was_silent: false,
        unreported: None,
        ended: None,
    };
    Ok(Client { sender, receiver: Receiver(Inlet::Rings(Box::new(receiver))), welcome, flags })
}

#[cfg(test)]
mod tests;
