//! Opening a session: the client's side of the handshake, and what carries the session behind it.

use super::handshake;
use super::options::OptionsError;
use super::receiver::Inlet;
use super::rings::{RingReceiver, Watermarks};
use super::sender::Outlet;
use super::stream::{StreamLine, StreamReceiver};
use super::{Acknowledgement, Client, ClientOptions, Endpoint, Line, Receiver, Sender};
use crate::log::control;
use crate::message::command::{LOGON_BRIEF, LOGON_TERSE, LOGON_WISHES};
use crate::message::decode::{self, DecodeError, Handshake};
use crate::message::enums::RejectReason;
use crate::message::handshake::{
    ACKNOWLEDGE_APPENDED, ACKNOWLEDGE_DURABLE, CARRIER_RINGS, CARRIER_STREAM, Hello, RefusalReason,
    Refused, Welcome,
};
use crate::message::{PROTOCOL_MAJOR, PROTOCOL_MINOR};
use crate::ring::{
    CapacityError, MessageBuffer, RingCapacities, SessionDescriptors, SessionEnd, SessionError,
};
use crate::shm::descriptors::{PassError, receive_with_descriptors};
use crate::shm::{ReadOnlyRegion, ShmError};
use crate::units::Position;
use crate::wait::Waiter;
use rustix::io::ioctl_fionbio;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::iter;
use std::os::fd::OwnedFd;
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
        "the engine's log ends at {position} and does not have the position that this client saw: what \
         it was told since may not have happened"
    )]
    HistoryLost {
        /// How far the log goes.
        position: Position,
    },
    /// The engine has another log than [`ClientOptions::log_id`]: nothing that is known of the one holds of it.
    #[error(
        "the engine has the log {}, and not {}: another venue is at this place",
        hex(found),
        hex(expected)
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

/// What is wished for by `LOGON_*` bits, in the place of what an engine does not know: from the newest engines to
/// the oldest.
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
        heartbeat_seconds: if is_stream { options.heartbeat_seconds } else { 0 },
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
    handshake::prove(&mut socket, &hello, options.key.as_ref(), out_of_place)?;
    let (welcome, descriptors, control) = welcome(&socket)?;
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
fn over_stream<S: Read + Write + Into<OwnedFd>>(
    options: &ClientOptions,
    hello: Hello,
    mut socket: S,
) -> Result<Client, ConnectError> {
    handshake::prove(&mut socket, &hello, options.key.as_ref(), out_of_place)?;
    let mut words = [0; 16];
    handshake::read_message::<ConnectError>(&mut socket, &mut words)?;
    let welcome = match decode::handshake(bytemuck::cast_slice(&words))? {
        Handshake::Welcome(welcome) => *welcome,
        other => return Err(out_of_place(other)),
    };
    check_log(options, &welcome)?;
    let socket = socket.into();
    ioctl_fionbio(&socket, true).map_err(io::Error::from)?;
    let heartbeat = Duration::from_secs(u64::from(welcome.heartbeat_seconds.max(1)));
    let line = Arc::new(StreamLine::new(socket, heartbeat));
    let sender = Sender {
        outlet: Outlet::Stream(Arc::clone(&line)),
        session: welcome.session,
        epoch: welcome.epoch,
        last_sequence: welcome.last_sequence,
        shortens: false,
    };
    let receiver = StreamReceiver::new(line, options, welcome.durable);
    let receiver = Receiver(Inlet::Stream(Box::new(receiver)));
    Ok(Client { sender, receiver, welcome, flags: hello.flags })
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

fn hex(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Welcome comes in one piece with its descriptors, Refused without any.
fn welcome(socket: &UnixStream) -> Result<(Welcome, SessionDescriptors, OwnedFd), ConnectError> {
    let mut words = [0u64; 16];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let (length, descriptors) = receive_with_descriptors(socket, bytes, 3)?;
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
        shortens: flags & LOGON_TERSE != 0,
    };
    let receiver = RingReceiver {
        input: end.input,
        signals: end.signals,
        line,
        watermarks: Watermarks {
            durable: control.u64_at(control::DURABLE_OFFSET)?,
            durable_event: control.u32_at(control::DURABLE_EVENT_OFFSET)?,
            state: control.u32_at(control::STATE_OFFSET)?,
        },
        acknowledgement: options.acknowledgement,
        waiter: Waiter::new(options.wait),
        held: VecDeque::new(),
        buffer: Box::new(MessageBuffer::new()),
        parked_for_durable: AtomicU32::new(0),
        own_bell: Arc::default(),
        polls: 0,
        checked: Instant::now(),
        unreported: None,
        ended: None,
    };
    Ok(Client { sender, receiver: Receiver(Inlet::Rings(Box::new(receiver))), welcome, flags })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::rings::HELD_MAX;
    use crate::client::{ReceiveError, Reply, SendError};
    use crate::log::control::LogState;
    use crate::message::command::{LOGON_CANCEL_ON_DISCONNECT, NewOrder, SHORT_ORDER_BYTES};
    use crate::message::decode::{ENVELOPED_BYTES_MAX, Event, enclose};
    use crate::message::enums::{Lane, Role};
    use crate::message::event::{Done, Envelope, Gap};
    use crate::message::short_order;
    use crate::patience::{Wait, join};
    use crate::shm::descriptors::send_with_descriptors;
    use crate::shm::{PeerAccess, Region};
    use crate::text::Name;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::Ordering;
    use std::thread;

    /// A client over rings, the engine's end of them, its control page and its socket.
    fn over_rings(acknowledgement: Acknowledgement) -> (Client, SessionEnd, Region, UnixStream) {
        over_rings_with(acknowledgement, 0)
    }

    /// The same, granted those `LOGON_*` bits.
    fn over_rings_with(
        acknowledgement: Acknowledgement,
        flags: u8,
    ) -> (Client, SessionEnd, Region, UnixStream) {
        let sizes = RingCapacities::new(1024, 1024).unwrap();
        let (engine, descriptors) = SessionEnd::create(sizes).unwrap();
        let end = SessionEnd::attach(&descriptors, sizes).unwrap();
        let bytes = control::CONTROL_BYTES;
        let (engines, page) = Region::create("control page", bytes, PeerAccess::ReadOnly).unwrap();
        let page = ReadOnlyRegion::from_descriptor(page.as_fd(), bytes).unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let name = Name::new("client").unwrap();
        let options = ClientOptions::new(PathBuf::new(), Role::Trader, Lane::Hot, name);
        let options = ClientOptions { acknowledgement, ..options };
        let client = assemble(&options, (Welcome::default(), flags), end, &page, near).unwrap();
        (client, engine, engines, far)
    }

    /// An answer that is to be on disk up to position 64.
    fn answer(engine: &mut SessionEnd) {
        answer_as_of(engine, Position(64));
    }

    fn answer_as_of(engine: &mut SessionEnd, position: Position) {
        say(engine, position, bytemuck::bytes_of(&Done::default()));
    }

    fn say(engine: &mut SessionEnd, position: Position, event: &[u8]) {
        let envelope = Envelope { position, ..Default::default() };
        let mut enclosed = [0; ENVELOPED_BYTES_MAX];
        let length = enclose(&envelope, event, &mut enclosed).unwrap();
        engine.output.try_push(&enclosed[..length]).unwrap();
    }

    /// An engine that is gone is waited for, and not without an end.
    fn is_given_up(client: &mut Client) {
        let wait = Wait::begin();
        while matches!(client.receiver().poll(), Ok(None)) {
            wait.go_on("it is waited for without an end");
            client.receiver().wait(Duration::from_millis(50));
        }
        assert!(matches!(client.receiver().poll(), Err(ReceiveError::Disconnected)));
    }

    #[test]
    fn an_engine_that_closes_a_connection_may_still_write_to_disk_what_it_has_answered() {
        let (mut client, mut engine, page, far) = over_rings(Acknowledgement::Durable);
        answer(&mut engine);
        drop(far);
        assert!(!client.receiver().is_connected());
        assert!(matches!(client.receiver().poll(), Ok(None)), "it is not on disk");
        page.u64_at(control::DURABLE_OFFSET).unwrap().store(64, Ordering::Release);
        assert!(matches!(client.receiver().poll(), Ok(Some(_))));
        assert!(matches!(client.receiver().poll(), Err(ReceiveError::Disconnected)));
    }

    #[test]
    fn what_is_not_on_disk_is_not_shown() {
        let (mut client, mut engine, page, _far) = over_rings(Acknowledgement::Durable);
        answer(&mut engine);
        let before = Envelope { correlation: 9, ..Default::default() };
        let mut reply = Reply { envelope: before, ..Default::default() };
        assert_eq!(client.receiver().poll_into(&mut reply), Ok(false));
        assert_eq!(reply.envelope, before);
        assert!(reply.event.event().is_err(), "{reply:?}");
        page.u64_at(control::DURABLE_OFFSET).unwrap().store(64, Ordering::Release);
        assert_eq!(client.receiver().poll_into(&mut reply), Ok(true));
        assert_eq!(reply.envelope.position, Position(64));
        assert_eq!(reply.event.event(), Ok(Event::Done(&Done::default())));
    }

    #[test]
    fn bytes_that_are_no_message_are_reported_behind_what_came_before_them() {
        for acknowledgement in [Acknowledgement::Appended, Acknowledgement::Durable] {
            let (mut client, mut engine, page, _far) = over_rings(acknowledgement);
            page.u64_at(control::DURABLE_OFFSET).unwrap().store(64, Ordering::Release);
            answer(&mut engine);
            engine.output.try_push(&[0; 8]).unwrap();
            answer(&mut engine);
            assert!(matches!(client.receiver().poll(), Ok(Some(_))));
            let mut reply = Reply::default();
            let fault = client.receiver().poll_into(&mut reply);
            assert!(
                matches!(fault, Err(ReceiveError::Decode(_))),
                "{acknowledgement:?}: {fault:?}"
            );
            assert!(reply.event.event().is_err(), "{reply:?}");
            assert!(matches!(client.receiver().poll(), Ok(Some(_))));
            assert!(matches!(client.receiver().poll(), Ok(None)));
        }
    }

    #[test]
    fn what_a_failed_log_never_writes_holds_up_nothing() {
        let (mut client, mut engine, page, _far) = over_rings(Acknowledgement::Durable);
        let state = page.u32_at(control::STATE_OFFSET).unwrap();
        state.store(LogState::Running as u32, Ordering::Release);
        page.u64_at(control::DURABLE_OFFSET).unwrap().store(64, Ordering::Release);
        for position in [64, 128, 192].map(Position) {
            answer_as_of(&mut engine, position);
        }
        assert!(matches!(client.receiver().poll(), Ok(Some(_))));
        assert!(matches!(client.receiver().poll(), Ok(None)), "it is not on disk");
        for from in [32, 64].map(Position) {
            let gap = Gap { from, ..Default::default() };
            say(&mut engine, Position(192), bytemuck::bytes_of(&gap));
        }
        state.store(LogState::LogFailed as u32, Ordering::Release);
        let told = client.receiver().poll().unwrap().expect("what is on disk may be missing");
        assert!(matches!(told.event.event(), Ok(Event::Gap(gap)) if gap.from == Position(32)));
        assert!(matches!(client.receiver().poll(), Ok(None)), "it never is");
        answer_as_of(&mut engine, Position(64));
        let reply = client.receiver().poll().unwrap().expect("a refusal waits for no disk");
        assert_eq!(reply.envelope.position, Position(64));
        assert!(!client.receiver().holds_back());
    }

    #[test]
    fn what_an_engine_that_is_gone_has_not_written_is_waited_for_in_vain_and_not_for_long() {
        let (mut client, mut engine, _page, far) = over_rings(Acknowledgement::Durable);
        answer(&mut engine);
        drop(far);
        is_given_up(&mut client);
    }

    #[test]
    fn an_engine_that_is_gone_is_missed_also_by_who_can_hold_no_more_back() {
        const TOGETHER: usize = 256;
        let (mut client, mut engine, _page, far) = over_rings(Acknowledgement::Durable);
        for _ in 0..HELD_MAX / TOGETHER {
            (0..TOGETHER).for_each(|_| answer(&mut engine));
            assert!(matches!(client.receiver().poll(), Ok(None)), "it is not on disk");
        }
        // What finds no room is nothing to wake up for.
        answer(&mut engine);
        let (begin, limit) = (Instant::now(), Duration::from_millis(50));
        client.receiver().wait(limit);
        assert!(begin.elapsed() >= limit, "it does not sleep while the disk is late");
        drop(far);
        is_given_up(&mut client);
    }

    #[test]
    fn who_polls_over_rings_and_never_waits_learns_that_the_engine_is_gone() {
        let (mut client, _engine, _page, far) = over_rings(Acknowledgement::Appended);
        assert!(matches!(client.receiver().poll(), Ok(None)));
        drop(far);
        let wait = Wait::begin();
        let learnt = loop {
            match client.receiver().poll() {
                Ok(None) => wait.go_on("it never does"),
                other => break other,
            }
        };
        assert!(matches!(learnt, Err(ReceiveError::Disconnected)), "{learnt:?}");
        let sent = client.sender().send(&mut NewOrder::default());
        assert_eq!(sent, Err(SendError::Disconnected));
    }

    fn next_hello(listener: &UnixListener) -> Option<(Hello, UnixStream)> {
        let mut socket = listener.accept().unwrap().0;
        let mut words = [0; 16];
        handshake::read_message::<ConnectError>(&mut socket, &mut words).ok()?;
        match decode::handshake(bytemuck::cast_slice(&words)) {
            Ok(Handshake::Hello(hello)) => Some((*hello, socket)),
            other => panic!("{other:?}"),
        }
    }

    fn refuse(socket: &mut UnixStream) {
        let reason = RefusalReason::InvalidHello.to_wire();
        let refused = Refused { reason, protocol_minor: 1, ..Default::default() };
        socket.write_all(bytemuck::bytes_of(&refused)).unwrap();
    }

    /// An engine of an earlier handshake, which refuses every wish; what it was asked for, each time.
    fn asked_of_an_older_engine(
        endpoint: fn(&Path) -> Endpoint,
        acknowledgement: Acknowledgement,
        flags: u8,
    ) -> Vec<(u8, u8)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let engine = thread::spawn(move || {
            let mut asked = Vec::new();
            while let Some((hello, mut socket)) = next_hello(&listener) {
                asked.push((hello.flags, hello.acknowledgement));
                refuse(&mut socket);
            }
            asked
        });
        let name = Name::new("newer").unwrap();
        let options = ClientOptions {
            flags,
            acknowledgement,
            ..ClientOptions::new(endpoint(&path), Role::Adapter, Lane::Hot, name)
        };
        let outcome = Client::connect(&options).map(|_| ());
        let is_refused = |error: &ConnectError| {
            matches!(error, ConnectError::Refused { reason: Some(RefusalReason::InvalidHello), .. })
        };
        assert!(outcome.as_ref().is_err_and(is_refused), "{outcome:?}");
        drop(UnixStream::connect(&path).unwrap());
        join(engine, "the engine")
    }

    /// Connects with those `LOGON_*` bits to an engine that refuses the first Hello and serves the second one;
    /// gives the client and what `serve` gives.
    fn connected_to_an_older_engine<T: Send + 'static>(
        endpoint: impl Fn(&Path) -> Endpoint,
        flags: u8,
        serve: impl FnOnce(Hello, UnixStream) -> T + Send + 'static,
    ) -> (Client, thread::JoinHandle<T>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let engine = thread::spawn(move || {
            let (_, mut older) = next_hello(&listener).unwrap();
            refuse(&mut older);
            let (hello, socket) = next_hello(&listener).unwrap();
            serve(hello, socket)
        });
        let name = Name::new("newer").unwrap();
        let options = ClientOptions {
            flags,
            ..ClientOptions::new(endpoint(&path), Role::Adapter, Lane::Hot, name)
        };
        (Client::connect(&options).unwrap(), engine)
    }

    #[test]
    fn a_client_knows_what_was_granted() {
        let (client, engine) = connected_to_an_older_engine(
            |path| Endpoint::Unix(path.to_owned()),
            LOGON_CANCEL_ON_DISCONNECT | LOGON_BRIEF,
            |hello, mut socket| {
                socket.write_all(bytemuck::bytes_of(&Welcome::default())).unwrap();
                hello.flags
            },
        );
        assert_eq!(client.flags(), LOGON_CANCEL_ON_DISCONNECT);
        assert_eq!(join(engine, "the engine"), LOGON_CANCEL_ON_DISCONNECT);
    }

    #[test]
    fn an_older_engine_is_asked_again_without_what_it_does_not_know() {
        let rings = |path: &Path| Endpoint::SharedMemory(path.to_owned());
        let stream = |path: &Path| Endpoint::Unix(path.to_owned());
        let (plain, brief) = (LOGON_CANCEL_ON_DISCONNECT, LOGON_CANCEL_ON_DISCONNECT | LOGON_BRIEF);
        let (appended, durable) = (ACKNOWLEDGE_APPENDED, ACKNOWLEDGE_DURABLE);
        let asked = asked_of_an_older_engine(rings, Acknowledgement::Durable, brief);
        assert_eq!(asked, [(brief, durable), (plain, durable), (plain, appended)]);
        let asked = asked_of_an_older_engine(rings, Acknowledgement::Durable, plain);
        assert_eq!(asked, [(plain, durable), (plain, appended)]);
        let asked = asked_of_an_older_engine(rings, Acknowledgement::Appended, plain);
        assert_eq!(asked, [(plain, appended)], "once, who wishes nothing");
        // Over a stream the level is the engine's own affair, from the first handshake on.
        let asked = asked_of_an_older_engine(stream, Acknowledgement::Durable, brief);
        assert_eq!(asked, [(brief, durable), (plain, durable)]);
        // In the place of the newest wish stands the one that came before it.
        let terse = plain | LOGON_TERSE;
        let asked = asked_of_an_older_engine(rings, Acknowledgement::Durable, terse);
        let expected = [(terse, durable), (brief, durable), (plain, durable), (plain, appended)];
        assert_eq!(asked, expected);
        let asked =
            asked_of_an_older_engine(stream, Acknowledgement::Appended, brief | LOGON_TERSE);
        let expected = [brief | LOGON_TERSE, brief, plain].map(|flags| (flags, appended));
        assert_eq!(asked, expected);
    }

    #[test]
    fn an_engine_that_does_not_know_short_orders_is_sent_whole_ones() {
        let serve = |hello: Hello, socket: UnixStream| {
            let sizes = RingCapacities::new(1024, 1024).unwrap();
            let (mut engine, theirs) = SessionEnd::create(sizes).unwrap();
            let (_, page) =
                Region::create("control page", control::CONTROL_BYTES, PeerAccess::ReadOnly)
                    .unwrap();
            let welcome = Welcome { request_slots: 1024, reply_slots: 1024, ..Default::default() };
            let passed = [theirs.client_pages.as_fd(), theirs.engine_pages.as_fd(), page.as_fd()];
            send_with_descriptors(&socket, bytemuck::bytes_of(&welcome), &passed).unwrap();
            let (wait, mut buffer) = (Wait::begin(), MessageBuffer::new());
            loop {
                wait.go_on("no order comes");
                if let Some(length) = engine.input.poll(&mut buffer).unwrap() {
                    return (hello.flags, length);
                }
                thread::yield_now();
            }
        };
        let rings = |path: &Path| Endpoint::SharedMemory(path.to_owned());
        let (mut client, engine) = connected_to_an_older_engine(rings, LOGON_TERSE, serve);
        assert_eq!(client.flags(), LOGON_BRIEF);
        client.sender().send(&mut NewOrder::default()).unwrap();
        assert_eq!(join(engine, "the engine"), (LOGON_BRIEF, size_of::<NewOrder>()));
    }

    #[test]
    fn orders_leave_in_their_short_form_where_the_engine_takes_it() {
        for (flags, length) in [(LOGON_BRIEF, 144), (LOGON_TERSE, SHORT_ORDER_BYTES)] {
            let (mut client, mut engine, _page, _far) =
                over_rings_with(Acknowledgement::Appended, flags);
            let mut order = NewOrder { price: 7, ..Default::default() };
            client.sender().send(&mut order).unwrap();
            let mut buffer = MessageBuffer::new();
            assert_eq!(engine.input.poll(&mut buffer).unwrap(), Some(length));
            let whole = short_order::restore(&mut buffer, length);
            assert_eq!(buffer.bytes(whole), bytemuck::bytes_of(&order), "with its sequence");
            // So is one that is sent again.
            let sequence = order.command.sequence;
            client.sender().stage_bytes(bytemuck::bytes_of_mut(&mut order), sequence).unwrap();
            client.sender().publish();
            assert_eq!(engine.input.poll(&mut buffer).unwrap(), Some(length));
        }
    }
}
