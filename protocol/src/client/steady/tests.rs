//! A client beside engines that break off, refuse, or say much at once.

mod seen;

use super::*;
use crate::client::{Endpoint, Notice, ReceiveError};
use crate::framing::{FrameFault, frame_length};
use crate::log::control;
use crate::message::command::NewOrder;
use crate::message::decode::{ENVELOPED_BYTES_MAX, disclose, enclose};
use crate::message::enums::{Lane, Role};
use crate::message::event::{ENVELOPE_UNSOLICITED, Envelope, Gap, Trade};
use crate::message::handshake::{Hello, Refused, Welcome};
use crate::message::stream::{Logout, ReplayRequest, StateEnd, StateRequest};
use crate::message::{Message, MessageHeader};
use crate::patience::{PATIENCE, Wait, join};
use crate::ring::{MessageBuffer, RingCapacities, SessionDescriptors, SessionEnd};
use crate::shm::descriptors::send_with_descriptors;
use crate::shm::{PeerAccess, Region};
use crate::text::Name;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::thread;

/// A client that has lost its connection.
fn lost(endpoint: Endpoint) -> SteadyClient {
    let name = Name::new("steady").unwrap();
    let mut options = ClientOptions::new(endpoint, Role::Adapter, Lane::Hot, name);
    options.handshake_timeout = Duration::from_millis(500);
    SteadyClient::without_connection(options)
}

/// An engine's door, and a client that has lost its connection to it and is patient.
fn lost_and_patient() -> (TcpListener, SteadyClient) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = lost(Endpoint::Tcp(tcp.local_addr().unwrap()));
    client.options.handshake_timeout = PATIENCE;
    (tcp, client)
}

/// Whoever comes next to a listener, if somebody comes.
fn accepted(listener: impl AsFd) -> File {
    let patience = PATIENCE.try_into().unwrap();
    let mut comes = [PollFd::new(&listener, PollFlags::IN)];
    assert_eq!(poll(&mut comes, Some(&patience)), Ok(1), "no client comes");
    let socket = rustix::net::accept(&listener).unwrap();
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).unwrap();
    socket.into()
}

/// Says this to whoever comes next, behind the Hello.
fn say(listener: &TcpListener, said: &[u8]) -> File {
    let mut socket = accepted(listener);
    socket.read_exact(&mut [0; size_of::<Hello>()]).unwrap();
    socket.write_all(said).unwrap();
    socket
}

/// An engine that is gone, or stands still, behind the Hello of whoever comes next.
fn break_off(mut socket: impl Read, stands_still: bool) {
    socket.read_exact(&mut [0; size_of::<Hello>()]).unwrap();
    if stands_still {
        let _until_the_client_goes = socket.read(&mut [0]);
    }
}

#[test]
fn an_engine_that_breaks_off_the_handshake_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    let unix = UnixListener::bind(&path).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    // Its time is up where the engine stands still, and not where that breaks off.
    let is_tried_again = |mut client: SteadyClient, stands_still: bool| {
        if !stands_still {
            client.options.handshake_timeout = PATIENCE;
        }
        let told = client.poll();
        let why = client.why_away();
        let is_late = matches!(why, Some(ConnectError::NoAnswer { .. }));
        let is_told = why.is_some() && is_late == stands_still;
        assert!(matches!(told, Ok(None)) && is_told, "{stands_still}: {told:?}, {why:?}");
    };
    for stands_still in [false, true] {
        for endpoint in [Endpoint::SharedMemory(path.clone()), Endpoint::Unix(path.clone())] {
            thread::scope(|scope| {
                scope.spawn(|| break_off(accepted(&unix), stands_still));
                is_tried_again(lost(endpoint), stands_still);
            });
        }
        thread::scope(|scope| {
            scope.spawn(|| break_off(accepted(&tcp), stands_still));
            is_tried_again(lost(Endpoint::Tcp(address)), stands_still);
        });
    }
}

#[test]
fn a_logon_that_finds_no_room_now_is_tried_again() {
    for (reason, passes) in [
        (RejectReason::LogUnavailable, true),
        (RejectReason::CapacityReached, true),
        (RejectReason::RateExceeded, true),
        (RejectReason::UnknownKey, false),
        (RejectReason::Quarantined, false),
    ] {
        let refused = Refused {
            reason: RefusalReason::Rejected as u16,
            reject_reason: reason.to_wire(),
            ..Default::default()
        };
        let (tcp, mut client) = lost_and_patient();
        thread::scope(|scope| {
            scope.spawn(|| say(&tcp, bytemuck::bytes_of(&refused)));
            let told = client.poll();
            assert_eq!(matches!(told, Ok(None)), passes, "{reason:?}: {told:?}");
        });
    }
}

/// A trade as the engine says it.
fn trade(position: u64) -> Vec<u8> {
    let (position, flags) = (Position(position), ENVELOPE_UNSOLICITED);
    let envelope = Envelope { position, flags, ..Default::default() };
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    let event = Trade::default();
    let length = enclose(&envelope, bytemuck::bytes_of(&event), &mut enclosed).unwrap();
    enclosed[..length].to_vec()
}

#[test]
fn what_was_missed_begins_behind_the_last_transaction_of_which_all_has_come() {
    let (tcp, mut client) = lost_and_patient();
    client.options.last_seen = Some((Incarnation(1), Position(64)));
    let come_back = |client: &mut SteadyClient, position: u64| {
        let (incarnation, position) = (Incarnation(1), Position(position));
        let welcome = Welcome { incarnation, position, ..Default::default() };
        let (told, _) = back_beside((&tcp, client), &welcome, |_, told| told);
        let Ok(Some(Told::Connection(Back::Returned { missed, .. }))) = told else {
            panic!("{told:?}");
        };
        missed.iter().map(|missed| (missed.from.0, missed.seen.0, missed.to.0)).collect::<Vec<_>>()
    };
    let see = |client: &mut SteadyClient, positions: &[u64]| {
        for position in positions {
            let (envelope, event) = disclose(&trade(*position)).unwrap();
            client.saw(&Reply { envelope, event });
        }
    };
    // The line may have been cut in the middle of the last one.
    see(&mut client, &[128, 192, 192]);
    assert_eq!(client.last_seen(), Some((Incarnation(1), Position(192))));
    assert_eq!(come_back(&mut client, 512), [(128, 192, 512)]);
    // Until the caller has caught up it is named again, and what came live in between is not.
    assert_eq!(come_back(&mut client, 640), [(128, 192, 640)]);
    see(&mut client, &[704, 768]);
    assert_eq!(come_back(&mut client, 1024), [(128, 192, 640), (704, 768, 1024)]);
    client.caught_up(Position(256));
    assert_eq!(come_back(&mut client, 1088), [(256, 256, 640), (704, 768, 1088)]);
    client.caught_up(Position(640));
    see(&mut client, &[1152, 1216]);
    assert_eq!(come_back(&mut client, 1280), [(704, 768, 1088), (1152, 1216, 1280)]);
    client.caught_up(Position(1280));
    assert_eq!(come_back(&mut client, 1344), [(1280, 1280, 1344)]);
    // One transaction alone, of which perhaps not all has come.
    see(&mut client, &[1408]);
    let expected = [(1280, 1280, 1344), (1344, 1408, 1472)];
    assert_eq!(come_back(&mut client, 1472), expected);
    client.accept_history_loss();
    assert_eq!(come_back(&mut client, 1536), []);
}

#[test]
fn a_program_that_starts_again_is_told_what_it_missed_from_the_transaction_that_came_in_part() {
    let (tcp, mut client) = lost_and_patient();
    let welcome = |position| Welcome { position: Position(position), ..Default::default() };
    let told_to = |client: &SteadyClient| client.told_to().map(|position| position.0);
    assert_eq!(told_to(&client), None);
    back_beside((&tcp, &mut client), &welcome(64), |_, _| {});
    for (position, expected) in [(128, 64), (192, 128), (192, 128)] {
        let (envelope, event) = disclose(&trade(position)).unwrap();
        client.saw(&Reply { envelope, event });
        assert_eq!(told_to(&client), Some(expected));
    }
    let kept = (client.options.clone(), client.told_to().unwrap());
    drop(client);
    let engine = thread::spawn(move || {
        let first = say(&tcp, bytemuck::bytes_of(&welcome(512)));
        (first, say(&tcp, bytemuck::bytes_of(&welcome(640))))
    });
    let mut client = SteadyClient::resume(kept.0, kept.1).unwrap();
    let missed = |told: Option<Told>| match told {
        Some(Told::Connection(Back::Returned { missed, .. })) => Some(missed),
        _ => None,
    };
    client.wait(Duration::MAX);
    let part = Missed { from: Position(128), seen: Position(128), to: Position(512) };
    assert_eq!(missed(client.poll().unwrap()), Some(vec![part]));
    assert_eq!(told_to(&client), Some(128), "until it has caught up");
    client.lose(ReceiveError::Disconnected.into(), Instant::now());
    client.try_at = Instant::now();
    let next = Missed { from: Position(128), seen: Position(128), to: Position(640) };
    assert_eq!(
        missed(client.poll().unwrap()),
        Some(vec![next]),
        "a loss before that forgets nothing"
    );
    client.caught_up(Position(640));
    assert_eq!(told_to(&client), Some(640));
    drop(client);
    join(engine, "the engine");
}

#[test]
fn a_log_that_ends_in_front_of_what_an_earlier_run_was_told_has_lost_it() {
    let (tcp, client) = lost_and_patient();
    let welcome = Welcome { position: Position(128), ..Default::default() };
    let engine = thread::spawn(move || [(); 2].map(|()| say(&tcp, bytemuck::bytes_of(&welcome))));
    let resumed = SteadyClient::resume(client.options.clone(), Position(192));
    let told = resumed.map(|_| ());
    assert!(
        matches!(told, Err(ConnectError::HistoryLost { position: Position(0) })),
        "of what it does not have it says that nothing is missing: {told:?}"
    );
    let resumed = SteadyClient::resume(client.options, Position(128)).unwrap();
    assert_eq!(resumed.told_to(), Some(Position(128)));
    drop(resumed);
    join(engine, "the engine");
}

/// Has it see a gap.
fn see_gap(client: &mut SteadyClient, from: u64, to: u64) {
    let (position, flags) = (Position(to), ENVELOPE_UNSOLICITED);
    let envelope = Envelope { position, flags, ..Default::default() };
    let gap = Gap { from: Position(from), ..Default::default() };
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    let length = enclose(&envelope, bytemuck::bytes_of(&gap), &mut enclosed).unwrap();
    let (envelope, event) = disclose(&enclosed[..length]).unwrap();
    client.saw(&Reply { envelope, event });
}

#[test]
fn what_did_not_fit_was_not_told_until_the_caller_has_caught_up_with_it() {
    let (tcp, mut client) = lost_and_patient();
    let welcome = |position| Welcome { position: Position(position), ..Default::default() };
    let told_to = |client: &SteadyClient| client.told_to().map(|position| position.0);
    let see = |client: &mut SteadyClient, position| {
        let (envelope, event) = disclose(&trade(position)).unwrap();
        client.saw(&Reply { envelope, event });
    };
    back_beside((&tcp, &mut client), &welcome(64), |_, _| {});
    see(&mut client, 128);
    see_gap(&mut client, 100, 256);
    see(&mut client, 512);
    see(&mut client, 576);
    assert_eq!(told_to(&client), Some(100));
    // As far as one replay has read, of two gaps.
    see_gap(&mut client, 576, 704);
    see(&mut client, 768);
    see(&mut client, 832);
    client.caught_up(Position(255));
    assert_eq!(told_to(&client), Some(255));
    client.caught_up(Position(703));
    assert_eq!(told_to(&client), Some(703));
    // The end of the connection makes up for nothing.
    back_beside((&tcp, &mut client), &welcome(896), |_, _| {});
    assert_eq!(told_to(&client), Some(703));
    client.caught_up(Position(704));
    assert_eq!(told_to(&client), Some(768), "what was missed since");
    client.caught_up(Position(896));
    assert_eq!(told_to(&client), Some(896));
    // A replay may have read on beyond a notice that comes later.
    client.caught_up(Position(1000));
    see_gap(&mut client, 896, 1000);
    see(&mut client, 1100);
    see(&mut client, 1200);
    assert_eq!(told_to(&client), Some(1100));
    see_gap(&mut client, 900, 1300);
    see(&mut client, 1400);
    assert_eq!(told_to(&client), Some(1000), "from where it does not know all");
    client.accept_history_loss();
    back_beside((&tcp, &mut client), &welcome(2000), |_, _| {});
    assert_eq!(told_to(&client), Some(2000));
}

#[test]
fn why_it_stays_away_is_told_until_it_is_back() {
    let (tcp, mut client) = lost_and_patient();
    assert!(client.why_away().is_none(), "nothing was tried");
    let refused = |reason: RefusalReason| Refused { reason: reason as u16, ..Default::default() };
    let refuse = |client: &mut SteadyClient, reason| {
        thread::scope(|scope| {
            scope.spawn(|| say(&tcp, bytemuck::bytes_of(&refused(reason))));
            let told = client.poll();
            client.try_at = Instant::now();
            told
        })
    };
    assert!(matches!(refuse(&mut client, RefusalReason::TooManySessions), Ok(None)));
    let crowded = Some(RefusalReason::TooManySessions);
    let why = client.why_away();
    assert!(
        matches!(why, Some(ConnectError::Refused { reason, .. }) if *reason == crowded),
        "{why:?}"
    );
    assert!(refuse(&mut client, RefusalReason::RoleNotPermitted).is_err());
    assert!(client.why_away().is_none(), "the caller has it");
    let there = client.options.endpoint.clone();
    client.options.endpoint = Endpoint::Unix("/nobody/listens/here".into());
    assert!(matches!(client.poll(), Ok(None)));
    let why = client.why_away().map(ToString::to_string).unwrap_or_default();
    assert!(why.starts_with("cannot connect to the engine at /nobody/listens/here: "), "{why}");
    (client.options.endpoint, client.try_at) = (there, Instant::now());
    back_beside((&tcp, &mut client), &Welcome::default(), |client, told| {
        assert!(matches!(told, Ok(Some(Told::Connection(Back::Returned { .. })))), "{told:?}");
        assert!(client.why_away().is_none());
    });
}

/// By the account's state, or a replay up to the log's end.
#[test]
fn who_has_caught_up_beyond_the_logon_is_told_of_nothing_before_that() {
    let (tcp, mut client) = lost_and_patient();
    client.options.last_seen = Some((Incarnation(1), Position(64)));
    let come_back = |client: &mut SteadyClient, position: u64| {
        let (incarnation, position) = (Incarnation(1), Position(position));
        let welcome = Welcome { incarnation, position, ..Default::default() };
        let (told, _) = back_beside((&tcp, client), &welcome, |_, told| told);
        match told {
            Ok(Some(Told::Connection(Back::Returned { missed, .. }))) => missed,
            told => panic!("{told:?}"),
        }
    };
    come_back(&mut client, 512);
    client.caught_up(Position(1000));
    assert_eq!(come_back(&mut client, 768), []);
    let [from, seen] = [Position(1000); 2];
    assert_eq!(come_back(&mut client, 2000), [Missed { from, seen, to: Position(2000) }]);
}

#[test]
fn a_command_that_states_another_length_is_refused_and_takes_no_sequence() {
    let (_tcp, mut client) = lost_and_patient();
    let mut order = NewOrder::default();
    order.header.block_length += 8;
    assert_eq!(client.send(&mut order), Err(SendError::Unframed));
    assert_eq!(client.send(&mut NewOrder::default()), Ok(Sequence(1)));
}

#[test]
fn of_what_was_missed_so_many_parts_are_kept() {
    let (_tcp, mut client) = lost_and_patient();
    let mut lose = |number: u64| {
        client.told_to = Some(Position(128 * number));
        client.options.last_seen = Some((Incarnation(1), Position(128 * number + 32)));
        client.miss(Position(128 * number + 64));
    };
    (0..MISSED_MAX as u64 + 1).for_each(&mut lose);
    assert_eq!(client.missed.len(), MISSED_MAX);
    let missed =
        |from, seen, to| Missed { from: Position(from), seen: Position(seen), to: Position(to) };
    assert_eq!(client.missed[0], missed(0, 32, 192));
    assert_eq!(client.missed[1], missed(256, 288, 320));
}

#[test]
fn all_that_the_engine_says_is_told_in_its_order() {
    let (tcp, mut client) = lost_and_patient();
    let state = |correlation| StateEnd { correlation, ..Default::default() };
    let mut said = bytemuck::bytes_of(&Welcome::default()).to_vec();
    for number in [1, 3] {
        said.extend_from_slice(bytemuck::bytes_of(&state(number)));
        said.extend(trade(64));
    }
    said.extend_from_slice(bytemuck::bytes_of(&state(5)));
    thread::scope(|scope| {
        scope.spawn(|| say(&tcp, &said));
        let (wait, mut told) = (Wait::begin(), String::new());
        while !told.ends_with('L') {
            wait.go_on(&told);
            told.push(match client.poll().unwrap() {
                None => continue,
                Some(Told::Reply(_)) => 'R',
                Some(Told::Notice(Notice::State(_))) => 'S',
                Some(Told::Connection(Back::Returned { .. })) => 'B',
                Some(Told::Connection(Back::Lost(_))) => 'L',
                Some(other) => panic!("{other:?}"),
            });
        }
        assert_eq!(told, "BSRSRSL");
    });
}

#[test]
fn a_notice_that_no_reply_follows_is_told_by_the_poll_that_finds_it() {
    let (tcp, mut client) = lost_and_patient();
    let welcome = Welcome::default();
    let said = [bytemuck::bytes_of(&welcome), bytemuck::bytes_of(&StateEnd::default())].concat();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = say(&tcp, &said);
            let _until_the_client_goes = socket.read(&mut [0]);
        });
        let back = client.poll();
        assert!(matches!(back, Ok(Some(Told::Connection(Back::Returned { .. })))), "{back:?}");
        client.wait(PATIENCE);
        let told = client.poll();
        client.client = None;
        assert!(matches!(told, Ok(Some(Told::Notice(Notice::State(_))))), "{told:?}");
    });
}

#[test]
fn requests_between_commands_take_no_sequence_of_theirs() {
    let (tcp, mut client) = lost_and_patient();
    assert_eq!(client.request_state(1), Err(SendError::Disconnected));
    assert_eq!(client.log_out(), Err(SendError::Disconnected));
    let welcome = Welcome { last_sequence: Sequence(7), ..Default::default() };
    thread::scope(|scope| {
        let engine = scope.spawn(|| {
            let mut socket = say(&tcp, bytemuck::bytes_of(&welcome));
            let mut said = Vec::new();
            socket.read_to_end(&mut said).unwrap();
            said
        });
        let back = client.poll();
        assert!(matches!(back, Ok(Some(Told::Connection(Back::Returned { .. })))), "{back:?}");
        let seen = client.connection().map(|connection| connection.welcome().last_sequence);
        assert_eq!(seen, Some(Sequence(7)));
        let mut order = NewOrder::default();
        assert_eq!(client.send(&mut order), Ok(Sequence(8)));
        client.request_state(1).unwrap();
        assert_eq!(client.send(&mut order), Ok(Sequence(9)));
        client.request_replay(2, Position(64)).unwrap();
        assert_eq!(client.send(&mut order), Ok(Sequence(10)));
        client.log_out().unwrap();
        client.client = None;
        let said = engine.join().unwrap();
        let (mut left, mut came) = (&said[..], Vec::new());
        while let Some(length) = frame_length(left).unwrap() {
            let template =
                bytemuck::pod_read_unaligned::<MessageHeader>(&left[..MessageHeader::BYTES])
                    .template_id;
            let order = (template == NewOrder::TEMPLATE).then(|| {
                bytemuck::pod_read_unaligned::<NewOrder>(&left[..length]).command.sequence.0
            });
            came.push((template, order));
            left = &left[length..];
        }
        let order = |sequence| (NewOrder::TEMPLATE, Some(sequence));
        assert_eq!(
            came,
            [
                order(8),
                (StateRequest::TEMPLATE, None),
                order(9),
                (ReplayRequest::TEMPLATE, None),
                order(10),
                (Logout::TEMPLATE, None),
            ]
        );
    });
}

#[test]
fn a_session_that_has_no_sequence_left_says_so_and_sends_nothing() {
    let (tcp, mut client) = lost_and_patient();
    client.last_sequence = Sequence(u64::MAX - 1);
    let mut order = NewOrder::default();
    assert_eq!(client.send(&mut order), Ok(Sequence(u64::MAX)));
    assert_eq!(client.send(&mut order), Err(SendError::NoSequence));
    assert_eq!(client.undecided(), 1, "the last one that there is a number for");

    let welcome = Welcome { last_sequence: Sequence(u64::MAX - 1), ..Default::default() };
    let engine = thread::spawn(move || say(&tcp, bytemuck::bytes_of(&welcome)));
    let mut plain = Client::connect(&client.options).unwrap();
    let _socket = join(engine, "the engine");
    assert_eq!(plain.sender().stage(&mut order), Ok(Sequence(u64::MAX)));
    assert_eq!(plain.sender().stage(&mut order), Err(SendError::NoSequence));
    assert_eq!(plain.sender().send(&mut order), Err(SendError::NoSequence));
    assert_eq!(plain.sender().last_sequence(), Sequence(u64::MAX));
}

/// Comes back to an engine that says this Welcome, and is there until the client goes; what `then` gives.
fn back_beside<T>(
    (tcp, client): (&TcpListener, &mut SteadyClient),
    welcome: &Welcome,
    then: impl FnOnce(&mut SteadyClient, Result<Option<Told>, ConnectError>) -> T,
) -> (T, Vec<u8>) {
    thread::scope(|scope| {
        let engine = scope.spawn(|| {
            let mut socket = say(tcp, bytemuck::bytes_of(welcome));
            let mut said = Vec::new();
            socket.read_to_end(&mut said).unwrap();
            said
        });
        let told = client.poll();
        let outcome = then(client, told);
        (client.client, client.try_at) = (None, Instant::now());
        (outcome, engine.join().unwrap())
    })
}

#[test]
fn another_venue_at_the_same_place_is_not_gone_over_to() {
    let (tcp, mut client) = lost_and_patient();
    let welcome = |venue| Welcome { log_id: [venue; 16], ..Default::default() };
    let is_back = |told: &Result<Option<Told>, ConnectError>| {
        matches!(told, Ok(Some(Told::Connection(Back::Returned { .. }))))
    };
    for (venue, is_taken) in [(1, true), (2, false), (1, true), (2, false)] {
        let (told, _) = back_beside((&tcp, &mut client), &welcome(venue), |_, told| told);
        assert_eq!(is_back(&told), is_taken, "{told:?}");
        if !is_taken {
            let others = matches!(told, Err(ConnectError::OtherLog { found: [2, ..], .. }));
            assert!(others, "{told:?}");
        }
        // What is lost of the one log makes none of another.
        client.accept_history_loss();
    }
}

/// Sequences and correlations of the orders among what was said.
fn orders_in(mut said: &[u8]) -> Vec<(u64, u64)> {
    let mut orders = Vec::new();
    while let Some(length) = frame_length(said).unwrap() {
        let header: MessageHeader = bytemuck::pod_read_unaligned(&said[..MessageHeader::BYTES]);
        if header.template_id == NewOrder::TEMPLATE {
            let command = bytemuck::pod_read_unaligned::<NewOrder>(&said[..length]).command;
            orders.push((command.sequence.0, command.correlation));
        }
        said = &said[length..];
    }
    orders
}

#[test]
fn what_never_left_is_not_decided_by_what_another_sent_under_the_sessions_name() {
    let (tcp, mut client) = lost_and_patient();
    let welcome = |last| Welcome { last_sequence: Sequence(last), ..Default::default() };
    let send = |client: &mut SteadyClient, correlation| {
        let mut order = NewOrder::default();
        order.command.correlation = correlation;
        client.send(&mut order).unwrap().0
    };
    // Two leave, and two wait for a connection.
    let (sent, said) = back_beside((&tcp, &mut client), &welcome(3), |client, _| {
        [send(client, 71), send(client, 72)]
    });
    assert_eq!((sent, orders_in(&said)), ([4, 5], vec![(4, 71), (5, 72)]));
    assert_eq!([send(&mut client, 73), send(&mut client, 74)], [6, 7]);
    // Whoever held the name meanwhile sent one, or they were both this client's.
    let (told, said) = back_beside((&tcp, &mut client), &welcome(6), |_, told| told);
    let Ok(Some(Told::Connection(Back::Returned { decided, resent, renumbered, .. }))) = told
    else {
        panic!("{told:?}");
    };
    assert_eq!((decided, resent), (vec![Sequence(4), Sequence(5)], 0));
    assert_eq!(renumbered, [(6, 8), (7, 9)].map(|(old, new)| (Sequence(old), Sequence(new))));
    // In their order, above all that was decided or given to this one's caller.
    assert_eq!(orders_in(&said), [(8, 73), (9, 74)]);
    assert_eq!(client.undecided(), 2);
    assert_eq!(send(&mut client, 75), 10);
    // What did leave stays what it is.
    let (told, said) = back_beside((&tcp, &mut client), &welcome(8), |_, told| told);
    let Ok(Some(Told::Connection(Back::Returned { decided, resent, renumbered, .. }))) = told
    else {
        panic!("{told:?}");
    };
    assert_eq!((decided, resent, renumbered), (vec![Sequence(8)], 1, vec![]));
    assert_eq!(orders_in(&said), [(9, 74), (10, 75)]);
}

#[test]
fn what_never_left_keeps_its_number_where_no_higher_one_is_left() {
    let (tcp, mut client) = lost_and_patient();
    client.last_sequence = Sequence(u64::MAX - 1);
    client.send(&mut NewOrder::default()).unwrap();
    let welcome = Welcome { last_sequence: Sequence(u64::MAX), ..Default::default() };
    let (told, said) = back_beside((&tcp, &mut client), &welcome, |_, told| told);
    let Ok(Some(Told::Connection(Back::Returned { decided, renumbered, .. }))) = told else {
        panic!("{told:?}");
    };
    assert_eq!((decided, renumbered), (vec![], vec![]));
    // The engine answers that it is a duplicate.
    assert_eq!(orders_in(&said), [(u64::MAX, 0)]);
}

/// An engine over rings of 1024 slots for requests, with what its client was passed and the socket.
fn opens_rings(listener: &UnixListener) -> (SessionEnd, SessionDescriptors, File) {
    let mut socket = accepted(listener);
    socket.read_exact(&mut [0; size_of::<Hello>()]).unwrap();
    let sizes = RingCapacities::new(1024, 4096).unwrap();
    let (engine, theirs) = SessionEnd::create(sizes).unwrap();
    let bytes = control::CONTROL_BYTES;
    let (_, page) = Region::create("control page", bytes, PeerAccess::ReadOnly).unwrap();
    let welcome = Welcome { request_slots: 1024, reply_slots: 4096, ..Default::default() };
    let passed = [theirs.client_pages.as_fd(), theirs.engine_pages.as_fd(), page.as_fd()];
    send_with_descriptors(&socket, bytemuck::bytes_of(&welcome), &passed).unwrap();
    (engine, theirs, socket)
}

/// The same, whose end of the request ring goes wild behind the first command.
fn takes_more_than_there_is(listener: &UnixListener) -> (SessionEnd, File) {
    let (mut engine, theirs, socket) = opens_rings(listener);
    let (wait, mut buffer) = (Wait::begin(), MessageBuffer::new());
    while engine.input.poll(&mut buffer).unwrap().is_none() {
        wait.go_on("no order comes");
        thread::yield_now();
    }
    // Slots of zeros are messages of eight bytes each.
    let pages = File::from(theirs.client_pages);
    for tail in [1000_u64, 2000] {
        pages.write_all_at(bytemuck::bytes_of(&tail), 0).unwrap();
        while engine.input.poll(&mut buffer).unwrap().is_some() {}
    }
    (engine, socket)
}

#[test]
fn a_request_ring_that_is_broken_loses_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    let unix = UnixListener::bind(&path).unwrap();
    let mut client = lost(Endpoint::SharedMemory(path));
    client.options.handshake_timeout = PATIENCE;
    let (_engine, _socket) = thread::scope(|scope| {
        let engine = scope.spawn(|| takes_more_than_there_is(&unix));
        let back = client.poll();
        assert!(matches!(back, Ok(Some(Told::Connection(Back::Returned { .. })))), "{back:?}");
        client.send(&mut NewOrder::default()).unwrap();
        engine.join().unwrap()
    });
    // It shows when there seems to be no room.
    for _ in 0..400 {
        client.send(&mut NewOrder::default()).unwrap();
    }
    assert!(matches!(client.log_out(), Err(SendError::Ring(_))));
    let wait = Wait::begin();
    let told = loop {
        match client.poll().unwrap() {
            None => wait.go_on("it says nothing"),
            Some(told) => break told,
        }
    };
    let Told::Connection(Back::Lost(Loss::Send(SendError::Ring(_)))) = told else {
        panic!("{told:?}");
    };
    assert_eq!(client.undecided(), 401);
    assert!(client.connection().is_none());
}

#[test]
fn why_the_connection_is_lost_is_told() {
    let (tcp, mut client) = lost_and_patient();
    let no_message = [0xff; 8];
    for (said, reason) in [
        (&[][..], ReceiveError::Disconnected),
        (&no_message[..], ReceiveError::Frame(FrameFault::Schema { found: 0xffff })),
    ] {
        let said = [bytemuck::bytes_of(&Welcome::default()), said].concat();
        thread::scope(|scope| {
            scope.spawn(|| say(&tcp, &said));
            let back = client.poll();
            assert!(matches!(back, Ok(Some(Told::Connection(Back::Returned { .. })))), "{back:?}");
        });
        let wait = Wait::begin();
        let told = loop {
            match client.poll().unwrap() {
                None => wait.go_on("it says nothing"),
                Some(Told::Connection(told)) => break told,
                Some(other) => panic!("{other:?}"),
            }
        };
        assert_eq!(told, Back::Lost(Loss::Receive(reason)));
        client.try_at = Instant::now();
    }
}
