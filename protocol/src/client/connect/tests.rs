//! Connecting, to engines that are made up here.

use super::*;
use crate::client::receiver::Inlet;
use crate::client::rings::{HELD_MAX, POLLS, SILENCE};
use crate::client::{CallError, ReceiveError, Reply, SendError};
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
use crate::units::{KeyId, Sequence};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;

/// The key of every client here.
const KEY: KeyId = KeyId(7);

/// A client over rings, the engine's end of them, its control page and its socket.
fn over_rings(acknowledgement: Acknowledgement) -> (Client, SessionEnd, Region, UnixStream) {
    over_rings_with(acknowledgement, 0)
}

/// The same, granted those `LOGON_*` bits.
fn over_rings_with(
    acknowledgement: Acknowledgement,
    flags: u8,
) -> (Client, SessionEnd, Region, UnixStream) {
    over_rings_as(acknowledgement, (Welcome::default(), flags))
}

/// The same, with another Welcome.
fn over_rings_as(
    acknowledgement: Acknowledgement,
    granted: (Welcome, u8),
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
    let key = Some((KEY, "secret".to_owned().into()));
    let options = ClientOptions { acknowledgement, key, ..options };
    let client = assemble(&options, granted, end, &page, near).unwrap();
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
        assert!(matches!(fault, Err(ReceiveError::Decode(_))), "{acknowledgement:?}: {fault:?}");
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
    assert!(!rings(&mut client).is_ready(), "it does not sleep while the disk is late");
    assert!(matches!(client.receiver().poll(), Ok(None)), "it is not on disk");
    assert_eq!(rings(&mut client).held.len(), HELD_MAX, "no engine fills its memory");
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
    let asked = asked_of_an_older_engine(stream, Acknowledgement::Appended, brief | LOGON_TERSE);
    let expected = [brief | LOGON_TERSE, brief, plain].map(|flags| (flags, appended));
    assert_eq!(asked, expected);
}

#[test]
fn an_engine_that_does_not_know_short_orders_is_sent_whole_ones() {
    let serve = |hello: Hello, socket: UnixStream| {
        let sizes = RingCapacities::new(1024, 1024).unwrap();
        let (mut engine, theirs) = SessionEnd::create(sizes).unwrap();
        let (_, page) =
            Region::create("control page", control::CONTROL_BYTES, PeerAccess::ReadOnly).unwrap();
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
        order.command.key_id = KEY;
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

/// As the engine sees it.
fn key_that_came(engine: &mut SessionEnd) -> KeyId {
    let mut buffer = MessageBuffer::new();
    let length = engine.input.poll(&mut buffer).unwrap().expect("a command");
    bytemuck::pod_read_unaligned::<NewOrder>(buffer.bytes(length)).command.key_id
}

#[test]
fn a_command_that_names_no_key_is_sent_on_behalf_of_the_sessions_own() {
    let (mut client, mut engine, _page, _far) = over_rings(Acknowledgement::Appended);
    let mut order = NewOrder::default();
    for (named, sent) in [(KeyId(0), KEY), (KeyId(9), KeyId(9))] {
        order.command.key_id = named;
        client.sender().send(&mut order).unwrap();
        assert_eq!(key_that_came(&mut engine), sent);
        assert_eq!(order.command.key_id, named, "another session may send it too");
        let mut bytes = *bytemuck::bytes_of(&order).first_chunk::<144>().unwrap();
        client.sender().stage_bytes(&mut bytes, Sequence(9)).unwrap();
        client.sender().publish();
        assert_eq!(key_that_came(&mut engine), sent, "sent again");
    }
}

fn rings(client: &mut Client) -> &mut RingReceiver {
    match &mut client.receiver().0 {
        Inlet::Rings(rings) => rings,
        Inlet::Stream(_) => panic!("it is a stream"),
    }
}

fn long_ago() -> Instant {
    Instant::now().checked_sub(2 * SILENCE).expect("the machine runs for longer")
}

#[test]
fn behind_a_logout_the_disk_is_waited_for_as_long_as_the_engine_lives() {
    let (mut client, mut engine, page, far) = over_rings(Acknowledgement::Durable);
    let beat = page.u64_at(control::HEARTBEAT_NS_OFFSET).unwrap();
    page.u32_at(control::STATE_OFFSET).unwrap().store(LogState::Running as u32, Ordering::Release);
    beat.store(7, Ordering::Relaxed);
    answer(&mut engine);
    client.sender().log_out().unwrap();
    drop(far);
    assert!(!client.receiver().is_connected());
    assert!(matches!(client.receiver().poll(), Ok(None)), "it is not on disk");
    // However long the disk takes.
    rings(&mut client).ended = Some(long_ago());
    rings(&mut client).beat = (6, long_ago());
    assert!(matches!(client.receiver().poll(), Ok(None)), "an engine that lives writes on");
    page.u64_at(control::DURABLE_OFFSET).unwrap().store(64, Ordering::Release);
    assert!(matches!(client.receiver().poll(), Ok(Some(_))));
    answer_as_of(&mut engine, Position(128));
    assert!(matches!(client.receiver().poll(), Ok(None)));
    rings(&mut client).beat = (7 + 64, long_ago());
    let given_up = client.receiver().poll();
    assert!(matches!(given_up, Err(ReceiveError::Disconnected)), "it is gone: {given_up:?}");
}

#[test]
fn behind_a_logout_an_engine_that_has_stopped_writing_is_not_waited_for() {
    let (mut client, mut engine, page, far) = over_rings(Acknowledgement::Durable);
    page.u64_at(control::HEARTBEAT_NS_OFFSET).unwrap().store(7, Ordering::Relaxed);
    answer(&mut engine);
    client.sender().log_out().unwrap();
    drop(far);
    assert!(!client.receiver().is_connected());
    let state = page.u32_at(control::STATE_OFFSET).unwrap();
    let mut poll_in = |written| {
        state.store(written as u32, Ordering::Release);
        rings(&mut client).ended = Some(long_ago());
        // It beats.
        rings(&mut client).beat = (6, long_ago());
        client.receiver().poll()
    };
    assert!(matches!(poll_in(LogState::Running), Ok(None)), "it is not on disk");
    let given_up = poll_in(LogState::Stopped);
    assert!(matches!(given_up, Err(ReceiveError::Disconnected)), "it never is: {given_up:?}");
}

#[test]
fn an_order_that_is_sent_again_has_later_ones_numbered_above_all() {
    let (mut client, mut engine, _page, _far) = over_rings(Acknowledgement::Appended);
    let (sender, mut order) = (client.sender(), NewOrder::default());
    for sequence in [5, 3] {
        sender.stage_as(&mut order, Sequence(sequence)).unwrap();
    }
    let mut bytes = *bytemuck::bytes_of(&order).first_chunk::<144>().unwrap();
    sender.stage_bytes(&mut bytes, Sequence(4)).unwrap();
    assert_eq!(sender.send(&mut order), Ok(Sequence(6)));
    let mut buffer = MessageBuffer::new();
    let mut sequence_that_came = || {
        let length = engine.input.poll(&mut buffer).unwrap().expect("a command");
        bytemuck::pod_read_unaligned::<NewOrder>(buffer.bytes(length)).command.sequence.0
    };
    assert_eq!([(); 4].map(|()| sequence_that_came()), [5, 3, 4, 6]);
}

#[test]
fn an_engine_that_stands_still_is_given_up() {
    let (mut client, _engine, page, _far) = over_rings(Acknowledgement::Appended);
    let beat = page.u64_at(control::HEARTBEAT_NS_OFFSET).unwrap();
    beat.store(5, Ordering::Relaxed);
    let mut poll_later = |seen| {
        rings(&mut client).beat = (seen, long_ago());
        rings(&mut client).checked = long_ago();
        client.receiver().poll()
    };
    assert!(matches!(poll_later(4), Ok(None)), "it has moved since");
    assert!(matches!(poll_later(5), Err(ReceiveError::Disconnected)));
    assert!(client.receiver().was_silent(), "it may go on with what it was sent");
}

/// A machine that sleeps stops both.
#[test]
fn who_has_not_looked_himself_for_so_long_gives_no_engine_up() {
    let (mut client, _engine, _page, far) = over_rings(Acknowledgement::Appended);
    rings(&mut client).beat = (0, long_ago());
    rings(&mut client).looked = long_ago();
    rings(&mut client).checked = long_ago();
    assert!(matches!(client.receiver().poll(), Ok(None)), "it may have been stopped as well");
    drop(far);
    rings(&mut client).checked = long_ago();
    is_given_up(&mut client);
    assert!(!client.receiver().was_silent(), "it has closed the connection");
}

#[test]
fn who_polls_seldom_learns_of_the_end_by_the_first_poll() {
    let (mut client, _engine, _page, far) = over_rings(Acknowledgement::Appended);
    // At first it polls often.
    for _ in 0..10_000 {
        assert!(matches!(client.receiver().poll(), Ok(None)));
    }
    let mut poll_later = || {
        rings(&mut client).checked = long_ago();
        client.receiver().poll()
    };
    // By then it is known to poll seldom.
    (0..2 * POLLS).for_each(|_| assert!(matches!(poll_later(), Ok(None))));
    drop(far);
    assert!(matches!(poll_later(), Err(ReceiveError::Disconnected)));
}

#[test]
fn a_sender_whose_ring_is_full_learns_that_the_engine_is_gone() {
    let (mut client, _engine, _page, far) = over_rings(Acknowledgement::Appended);
    while client.sender().send(&mut NewOrder::default()).is_ok() {}
    for _ in 0..1000 {
        assert_eq!(client.sender().send(&mut NewOrder::default()), Err(SendError::Full));
    }
    drop(far);
    let mut sent = (0..1000).map(|_| client.sender().send(&mut NewOrder::default()));
    assert!(sent.any(|outcome| outcome == Err(SendError::Disconnected)));
}

#[test]
fn a_command_that_states_another_length_does_not_leave() {
    let (mut client, mut engine, _page, _far) = over_rings(Acknowledgement::Appended);
    let mut order = NewOrder::default();
    for block_length in [0, order.header.block_length - 8, order.header.block_length + 8, u16::MAX]
    {
        order.header.block_length = block_length;
        assert_eq!(client.sender().send(&mut order), Err(SendError::Unframed), "{block_length}");
    }
    let sequence = client.sender().send(&mut NewOrder::default()).unwrap();
    assert_eq!(sequence.0, 1, "what did not leave takes no sequence");
    let mut buffer = MessageBuffer::new();
    assert_eq!(engine.input.poll(&mut buffer), Ok(Some(size_of::<NewOrder>())));
}

#[test]
fn a_call_ends_in_time_though_there_is_always_something_to_read() {
    let (mut client, mut engine, _page, _far) = over_rings(Acknowledgement::Appended);
    (0..100).for_each(|_| answer(&mut engine));
    let outcome = client.call(&mut NewOrder::default(), Duration::ZERO).map(|_| ());
    assert!(matches!(outcome, Err(CallError::Timeout(_))), "{outcome:?}");
    assert!(matches!(client.receiver().poll(), Ok(Some(_))), "it has read all that there was");
}

#[test]
fn no_interval_of_heartbeats_is_so_long_that_an_engine_which_is_gone_is_never_given_up() {
    for (seconds, expected) in [(0, 1), (1, 1), (60, 60), (61, 60), (u32::MAX, 60)] {
        let welcome = Welcome { heartbeat_seconds: seconds, ..Default::default() };
        assert_eq!(heartbeat(&welcome), Duration::from_secs(expected));
    }
}

/// Also while it holds back all that it may, and while there is always something to read.
#[test]
fn an_engine_that_watches_sees_each_look_for_replies_and_each_command() {
    for acknowledgement in [Acknowledgement::Appended, Acknowledgement::Durable] {
        for (heartbeat_seconds, is_watched) in [(1, true), (0, false)] {
            let welcome = Welcome { heartbeat_seconds, ..Default::default() };
            let (mut client, mut engine, _page, _far) =
                over_rings_as(acknowledgement, (welcome, 0));
            let mut seen = engine.peer_moves.look();
            let moves = engine.peer_moves.clone();
            let mut has_moved = || std::mem::replace(&mut seen, moves.look()) != seen;
            assert!(!has_moved());
            assert!(matches!(client.receiver().poll(), Ok(None)));
            assert_eq!(has_moved(), is_watched);
            client.receiver().wait(Duration::ZERO);
            assert_eq!(has_moved(), is_watched);
            (0..100).for_each(|_| answer(&mut engine));
            for _ in 0..10 {
                assert!(client.receiver().poll().is_ok());
                assert_eq!(has_moved(), is_watched);
            }
            assert!(!has_moved(), "it stands still");
            client.sender().send(&mut NewOrder::default()).unwrap();
            assert!(has_moved(), "a command is seen in any case");
        }
    }
}

#[test]
fn an_interval_of_heartbeats_is_told_the_engine_whatever_carries_the_session() {
    let name = Name::new("client").unwrap();
    for endpoint in [Endpoint::SharedMemory(PathBuf::new()), Endpoint::Unix(PathBuf::new())] {
        let options = ClientOptions::new(endpoint, Role::Trader, Lane::Hot, name);
        for heartbeat_seconds in [0, 7] {
            let options = ClientOptions { heartbeat_seconds, ..options.clone() };
            let first = wishes(&options).next().unwrap();
            assert_eq!(hello(&options, first).unwrap().heartbeat_seconds, heartbeat_seconds);
        }
    }
}
