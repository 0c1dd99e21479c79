//! What a client knows of what it was told, and when it dials again.

use super::*;
use crate::message::event::{
    ENVELOPE_REPLAYED, ENVELOPE_TERMINAL, OrderResult, OrderValid, Rejected,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// Has it see an event in this envelope.
fn see(client: &mut SteadyClient, envelope: Envelope, event: &impl bytemuck::NoUninit) {
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    let length = enclose(&envelope, bytemuck::bytes_of(event), &mut enclosed).unwrap();
    let (envelope, event) = disclose(&enclosed[..length]).unwrap();
    client.saw(&Reply { envelope, event });
}

#[test]
fn what_is_replayed_moves_nothing_that_was_seen_or_told() {
    let (_tcp, mut client) = lost_and_patient();
    client.options.last_seen = Some((Incarnation(1), Position(192)));
    client.told_to = Some(Position(128));
    let (position, flags) = (Position(640), ENVELOPE_REPLAYED);
    let envelope = Envelope { position, flags, ..Default::default() };
    see(&mut client, envelope, &Trade::default());
    see(&mut client, envelope, &Gap { from: Position(64), ..Default::default() });
    assert_eq!(client.last_seen(), Some((Incarnation(1), Position(192))));
    assert_eq!(client.told_to(), Some(Position(128)));
}

#[test]
fn a_command_is_undecided_until_its_own_last_reply() {
    let (_tcp, mut client) = lost_and_patient();
    let mut order = NewOrder::default();
    for sequence in [1, 2] {
        assert_eq!(client.send(&mut order), Ok(Sequence(sequence)));
        assert_eq!(order.command.sequence, Sequence(sequence));
    }
    for (sequence, flags, expected) in
        [(2, 0, 2), (3, ENVELOPE_TERMINAL, 2), (2, ENVELOPE_TERMINAL, 1), (2, ENVELOPE_TERMINAL, 1)]
    {
        let envelope = Envelope { sequence: Sequence(sequence), flags, ..Default::default() };
        see(&mut client, envelope, &Trade::default());
        assert_eq!(client.undecided(), expected, "{sequence} {flags}");
    }
    assert_eq!(client.undecided[0].sequence, Sequence(1));
}

#[test]
fn of_several_losses_the_first_says_up_to_where_all_was_told() {
    let (_tcp, mut client) = lost_and_patient();
    let missed = |[from, seen, to]: [u64; 3]| Missed {
        from: Position(from),
        seen: Position(seen),
        to: Position(to),
    };
    client.told_to = Some(Position(1024));
    client.missed = [[128, 192, 640], [704, 768, 1024]].map(missed).to_vec();
    assert_eq!(client.told_to(), Some(Position(128)));
    client.caught_up(Position(640));
    assert_eq!(client.told_to(), Some(Position(704)));
}

#[test]
fn behind_a_loss_of_history_a_gap_counts_wherever_it_was_caught_up_before() {
    let (tcp, mut client) = lost_and_patient();
    client.caught_up(Position(1000));
    client.accept_history_loss();
    let welcome = Welcome { position: Position(64), ..Default::default() };
    back_beside((&tcp, &mut client), &welcome, |_, _| {});
    see_gap(&mut client, 100, 256);
    let (position, flags) = (Position(512), ENVELOPE_UNSOLICITED);
    for position in [position, Position(576)] {
        let envelope = Envelope { position, flags, ..Default::default() };
        see(&mut client, envelope, &Trade::default());
    }
    assert_eq!(client.told_to(), Some(Position(100)));
}

#[test]
fn what_comes_over_the_line_has_been_seen() {
    let (tcp, mut client) = lost_and_patient();
    let mut said = bytemuck::bytes_of(&Welcome::default()).to_vec();
    said.extend([trade(64), trade(128)].concat());
    thread::scope(|scope| {
        scope.spawn(|| say(&tcp, &said));
        let (wait, mut seen) = (Wait::begin(), Vec::new());
        while seen.len() < 3 {
            wait.go_on(format!("{seen:?}"));
            if client.poll().unwrap().is_some() {
                seen.push(client.last_seen().unwrap().1.0);
            }
        }
        assert_eq!(seen, [0, 64, 128]);
    });
    assert_eq!(client.told_to(), Some(Position(64)));
}

#[test]
fn the_first_connection_numbers_on_from_what_the_engine_has() {
    let (tcp, client) = lost_and_patient();
    let welcome = Welcome { last_sequence: Sequence(7), ..Default::default() };
    let engine = thread::spawn(move || say(&tcp, bytemuck::bytes_of(&welcome)));
    let mut client = SteadyClient::connect(client.options).unwrap();
    let _socket = join(engine, "the engine");
    assert_eq!(client.send(&mut NewOrder::default()), Ok(Sequence(8)));
}

#[test]
fn a_log_without_what_was_accepted_has_lost_it_wherever_it_ends() {
    let (tcp, mut client) = lost_and_patient();
    let welcome = |last| Welcome {
        last_sequence: Sequence(last),
        position: Position(4096),
        ..Default::default()
    };
    let envelope = |sequence| Envelope {
        sequence: Sequence(sequence),
        flags: ENVELOPE_TERMINAL,
        ..Default::default()
    };
    back_beside((&tcp, &mut client), &welcome(3), |client, _| {
        see(client, envelope(4), &OrderResult::default());
        see(client, envelope(5), &Rejected::default());
        see(client, envelope(6), &OrderValid::default());
    });
    // What was refused, and what was only checked, was not accepted.
    back_beside((&tcp, &mut client), &welcome(4), |_, _| {});
    client.lose(ReceiveError::Disconnected.into(), Instant::now());
    thread::scope(|scope| {
        scope.spawn(|| say(&tcp, bytemuck::bytes_of(&welcome(3))));
        // It logs on once.
        for _ in 0..2 {
            client.try_at = Instant::now();
            let told = client.poll();
            let lost = matches!(told, Err(ConnectError::HistoryLost { position: Position(0) }));
            assert!(lost && client.connection().is_none(), "{told:?}");
        }
    });
    client.accept_history_loss();
    client.try_at = Instant::now();
    back_beside((&tcp, &mut client), &welcome(3), |_, _| {});
    assert_eq!(client.last_seen().map(|(_, position)| position), Some(Position(4096)));
}

#[test]
fn who_resumes_where_the_log_ends_has_missed_nothing() {
    let (tcp, client) = lost_and_patient();
    let welcome = Welcome { position: Position(128), ..Default::default() };
    let engine = thread::spawn(move || say(&tcp, bytemuck::bytes_of(&welcome)));
    let mut client = SteadyClient::resume(client.options, Position(128)).unwrap();
    let _socket = join(engine, "the engine");
    let told = client.poll().unwrap();
    let Some(Told::Connection(Back::Returned { missed, .. })) = told else { panic!("{told:?}") };
    assert_eq!(missed, []);
}

#[test]
fn so_many_commands_may_be_undecided_and_one_more_takes_no_sequence() {
    let (_tcp, mut client) = lost_and_patient();
    let mut order = NewOrder::default();
    for sequence in 1..=UNDECIDED_MAX as u64 {
        assert_eq!(client.send(&mut order), Ok(Sequence(sequence)));
    }
    assert_eq!(client.send(&mut order), Err(SendError::Full));
    assert_eq!(client.undecided(), UNDECIDED_MAX);
    client.undecided.pop_front();
    assert_eq!(client.send(&mut order), Ok(Sequence(UNDECIDED_MAX as u64 + 1)));
}

/// A connection that was short counts as an attempt that failed, so that two clients of one session do not throw each
/// other out without pause; one that was not begins the pauses anew.
#[test]
fn the_pause_before_the_next_attempt_grows_with_each_that_fails_and_with_short_connections() {
    let (_tcp, mut client) = lost_and_patient();
    let (begin, long) = (Instant::now(), 2 * PAUSES[1]);
    let lose = |client: &mut SteadyClient, lasted| {
        (client.since, client.try_at) = (begin, begin);
        client.lose(ReceiveError::Disconnected.into(), begin + lasted);
        client.try_at - (begin + lasted)
    };
    let mut expected = PAUSES[0];
    for lasted in [Duration::ZERO, long - Duration::from_nanos(1)].into_iter().cycle().take(10) {
        assert_eq!(lose(&mut client, lasted), expected);
        expected = (2 * expected).min(PAUSES[1]);
        assert_eq!(client.pause, expected);
    }
    assert_eq!(expected, PAUSES[1], "and no longer than that");
    assert_eq!(lose(&mut client, long), Duration::ZERO, "what has lasted is dialled again at once");
    assert_eq!((client.since, client.pause), (begin + long, PAUSES[0]));
}

#[test]
fn nobody_dials_before_the_pause_is_over_and_waiting_lasts_as_long() {
    let (tcp, mut client) = lost_and_patient();
    tcp.set_nonblocking(true).unwrap();
    client.try_at = Instant::now() + 10 * PATIENCE;
    assert!(matches!(client.poll(), Ok(None)));
    assert!(client.why_away().is_none(), "it has tried");
    assert!(tcp.accept().is_err(), "it has dialled");
    let (now, pause) = (client.try_at - PATIENCE, PATIENCE);
    let slept = |client: &mut SteadyClient, now: Instant, limit: Duration| {
        let mut slept = None;
        client.wait_from(now, limit, |pause| slept = Some(pause));
        slept
    };
    let short = Duration::from_millis(20);
    assert_eq!(slept(&mut client, now, short), Some(short), "there is nothing to poll before");
    assert_eq!(slept(&mut client, now, 2 * pause), Some(pause), "it may dial then");
    assert_eq!(slept(&mut client, now + 2 * pause, short), Some(Duration::ZERO));
    // What is there already is not waited for.
    client.next_reply = Some(Box::default());
    assert_eq!(slept(&mut client, now, 2 * pause), None);
}

#[test]
fn what_finds_no_room_leaves_later_in_its_order_and_a_logout_not_before_it() {
    // More than the client and the system keep for an engine that does not read.
    const COUNT: u64 = UNDECIDED_MAX as u64;
    let (tcp, mut client) = lost_and_patient();
    let (go, may_read) = mpsc::channel();
    let has_all = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&has_all);
    let engine = thread::spawn(move || {
        let mut socket = say(&tcp, bytemuck::bytes_of(&Welcome::default()));
        may_read.recv().unwrap();
        let mut said = vec![0; COUNT as usize * size_of::<NewOrder>() + size_of::<Logout>()];
        socket.read_exact(&mut said).unwrap();
        told.store(true, Ordering::Release);
        said
    });
    let back = client.poll();
    assert!(matches!(back, Ok(Some(Told::Connection(Back::Returned { .. })))), "{back:?}");
    let mut order = NewOrder::default();
    for correlation in 1..=COUNT {
        order.command.correlation = correlation;
        client.send(&mut order).unwrap();
    }
    assert_eq!(client.log_out(), Err(SendError::Full));
    go.send(()).unwrap();
    let wait = Wait::begin();
    while !client.undecided[UNDECIDED_MAX - 1].has_left {
        wait.go_on("what waits does not leave");
        assert!(matches!(client.poll(), Ok(None)));
    }
    let wait = Wait::begin();
    while client.log_out() == Err(SendError::Full) {
        wait.go_on("there is no room for the logout");
        client.poll().unwrap();
    }
    // What the line has not given the socket yet goes with polls, until the engine has the logout.
    let wait = Wait::begin();
    while !has_all.load(Ordering::Acquire) {
        wait.go_on("the logout does not come");
        client.poll().unwrap();
    }
    client.client = None;
    let said = join(engine, "the engine");
    assert!(orders_in(&said).into_iter().eq((1..=COUNT).map(|number| (number, number))));
    let logout = said.len() - size_of::<Logout>();
    let last: MessageHeader = bytemuck::pod_read_unaligned(&said[logout..][..MessageHeader::BYTES]);
    assert_eq!(last.template_id, Logout::TEMPLATE);
}

/// A logout takes less room than an order does.
#[test]
fn no_logout_overtakes_an_order_that_waits_for_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    let unix = UnixListener::bind(&path).unwrap();
    let mut client = lost(Endpoint::SharedMemory(path));
    client.options.handshake_timeout = PATIENCE;
    let (mut engine, _theirs, _socket) = thread::scope(|scope| {
        let engine = scope.spawn(|| opens_rings(&unix));
        let back = client.poll();
        assert!(matches!(back, Ok(Some(Told::Connection(Back::Returned { .. })))), "{back:?}");
        engine.join().unwrap()
    });
    while client.undecided.back().is_none_or(|last| last.has_left) {
        client.send(&mut NewOrder::default()).unwrap();
    }
    assert_eq!(client.log_out(), Err(SendError::Full));
    let mut buffer = MessageBuffer::new();
    while engine.input.poll(&mut buffer).unwrap().is_some() {}
    client.log_out().unwrap();
    let mut templates = Vec::new();
    while let Some(length) = engine.input.poll(&mut buffer).unwrap() {
        let header = &buffer.bytes(length)[..MessageHeader::BYTES];
        templates.push(bytemuck::pod_read_unaligned::<MessageHeader>(header).template_id);
    }
    assert_eq!(templates, [NewOrder::TEMPLATE, Logout::TEMPLATE]);
}

#[test]
fn each_time_that_it_is_crowded_out_it_is_patient_anew() {
    let (tcp, mut client) = lost_and_patient();
    let reason = RefusalReason::TooManySessions as u16;
    let refused = Refused { reason, ..Default::default() };
    let poll_refused = |client: &mut SteadyClient| {
        client.try_at = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| say(&tcp, bytemuck::bytes_of(&refused)));
            client.poll()
        })
    };
    let long_ago = Instant::now().checked_sub(CROWDED_LIMIT);
    assert!(long_ago.is_some(), "the machine runs for longer");
    client.crowded_since = long_ago;
    let told = poll_refused(&mut client);
    assert!(matches!(told, Err(ConnectError::Refused { .. })), "for too long: {told:?}");
    // It was in meanwhile.
    client.try_at = Instant::now();
    back_beside((&tcp, &mut client), &Welcome::default(), |_, _| {});
    let told = poll_refused(&mut client);
    assert!(matches!(told, Ok(None)), "{told:?}");
    // Nobody was there meanwhile, and so nobody crowded it out.
    client.crowded_since = long_ago;
    let there = client.options.endpoint.clone();
    client.options.endpoint = Endpoint::Unix("/nobody/listens/here".into());
    client.try_at = Instant::now();
    assert!(matches!(client.poll(), Ok(None)));
    client.options.endpoint = there;
    let told = poll_refused(&mut client);
    assert!(matches!(told, Ok(None)), "{told:?}");
}

#[test]
fn another_venue_behind_the_same_socket_is_not_gone_over_to_over_rings_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    let unix = UnixListener::bind(&path).unwrap();
    let mut client = lost(Endpoint::SharedMemory(path));
    client.options.handshake_timeout = PATIENCE;
    client.options.log_id = Some([9; 16]);
    thread::scope(|scope| {
        let engine = scope.spawn(|| opens_rings(&unix));
        let told = client.poll();
        let is_other =
            matches!(&told, Err(ConnectError::OtherLog { expected, .. }) if *expected == [9; 16]);
        assert!(is_other, "{told:?}");
        engine.join().unwrap();
    });
    assert!(client.connection().is_none());
}
