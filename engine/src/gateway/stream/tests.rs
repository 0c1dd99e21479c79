//! What one session may have others do for it, and when its client is to blame for a standstill.

use super::*;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::event::Done;
use touchline_protocol::units::Sequence;

const STALL: Duration = Duration::from_secs(5);

fn stream(acknowledgement: u8, now: Instant) -> Stream {
    let heartbeat = Duration::from_secs(60);
    let terms = Terms { acknowledgement, heartbeat, unsent_bytes: 256 << 10 };
    let rate = RateLimit::new(0);
    Stream::new(&SessionStarted::default(), (terms, rate), Position(0)..Position(0), now)
}

fn ask_for_replay(stream: &mut Stream, correlation: u64, now: Instant) {
    let request = ReplayRequest { correlation, ..Default::default() };
    assert!(stream.received(bytemuck::bytes_of(&request), now));
}

/// Answers at `position` until nothing more fits, and one command that waits behind them.
fn fill(stream: &mut Stream, position: Position, now: Instant) {
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    let envelope = Envelope { position, flags: ENVELOPE_TERMINAL, ..Default::default() };
    let done = Done::default();
    let length = enclose(&envelope, bytemuck::bytes_of(&done), &mut enclosed).unwrap();
    while stream.outgoing.has_credit() {
        stream.outgoing.passed_on();
        stream.put(&envelope, &enclosed[..length]);
    }
    assert!(stream.received(bytemuck::bytes_of(&Heartbeat::default()), now));
}

#[test]
fn a_replay_waits_for_the_piece_that_is_due() {
    let now = Instant::now();
    let mut stream = stream(0, now);
    for correlation in 1..=3 {
        ask_for_replay(&mut stream, correlation, now);
    }
    for wanted in 1..=3 {
        let Next::Replay { correlation, .. } = stream.next() else { panic!("replay {wanted}") };
        assert_eq!(correlation, wanted);
        stream.replaying = Replaying::Due;
        assert!(matches!(stream.next(), Next::Nothing), "one piece at a time");
        // One that waits for room may be given up for another.
        stream.replaying = if wanted == 1 { Replaying::Hungry } else { Replaying::Not };
    }
}

#[test]
fn what_one_look_brings_finds_room_until_the_stream_is_full() {
    let now = Instant::now();
    let mut stream = stream(0, now);
    let mut looks = 0;
    while !stream.is_full() {
        assert!(stream.received(&[0; READ_BYTES], now), "look {looks}");
        looks += 1;
    }
    assert_eq!(looks, INPUT_BYTES / READ_BYTES);
    assert!(!stream.received(&[0; READ_BYTES], now), "nothing is dropped in silence");
}

#[test]
fn a_client_is_blamed_for_what_it_does_not_read_and_not_for_a_late_disk() {
    let (now, marks) = (Instant::now(), (Position(64), Position(0)));
    let later = now + STALL;
    let mut durable = stream(ACKNOWLEDGE_DURABLE, now);
    fill(&mut durable, Position(64), now);
    assert!(durable.take(Position(0), now).is_none(), "nothing is on disk");
    assert!(durable.tick(now, STALL, marks, None).is_none());
    assert!(durable.tick(later, STALL, marks, None).is_none(), "the disk is late, not the client");
    assert!(durable.take(Position(64), later).is_some());
    assert!(durable.tick(later, STALL, marks, None).is_none());
    let ended = durable.tick(later + STALL, STALL, marks, None);
    assert!(matches!(ended, Some((CloseReason::ReaderStalled, _))), "{ended:?}");
}

/// Sixteen answers at positions 1 to 16, as a session has them that waits for nothing.
fn answer(stream: &mut Stream) {
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    for position in 1..=16 {
        let position = Position(position);
        let envelope = Envelope { position, flags: ENVELOPE_TERMINAL, ..Default::default() };
        let done = Done { id: position.0, ..Default::default() };
        let length = enclose(&envelope, bytemuck::bytes_of(&done), &mut enclosed).unwrap();
        stream.outgoing.passed_on();
        stream.put(&envelope, &enclosed[..length]);
    }
}

#[test]
fn a_client_hears_of_its_engine_while_the_disk_is_late() {
    let start = Instant::now();
    let mut plain = stream(0, start);
    answer(&mut plain);
    let answers = plain.take(Position(0), start).unwrap();

    let mut durable = stream(ACKNOWLEDGE_DURABLE, start);
    answer(&mut durable);
    let (mut now, mut heard) = (start, Vec::new());
    // The log is on disk as far as `on_disk`; nothing, a part and a part again while nothing comes.
    for on_disk in [0, 0, 5, 5, 16].map(Position) {
        let marks = (Position(16), on_disk);
        if let Some(leaving) = durable.take(on_disk, now) {
            heard.extend_from_slice(&leaving);
            durable.sent(Vec::new());
        }
        now += durable.heartbeat;
        durable.heard = now;
        assert!(durable.tick(now, STALL, marks, None).is_none());
        let leaving = durable.take(on_disk, now).expect("a sign of life");
        let expected = Heartbeat { appended: Position(16), durable: on_disk, ..Default::default() };
        assert_eq!(leaving, bytemuck::bytes_of(&expected));
        assert!(durable.tick(now, STALL, marks, None).is_none());
        durable.sent(Vec::new());
        assert!(durable.take(on_disk, now).is_none(), "one for each interval");
    }
    assert_eq!(heard, answers, "behind which all comes that was held, once and in order");
    assert!(!durable.awaits_durable());
}

#[test]
fn a_client_that_does_not_read_its_replay_is_ended() {
    let now = Instant::now();
    let mut stream = stream(0, now);
    stream.put_as_of(Position(0), &[0; 64]);
    assert!(stream.take(Position(0), now).is_some());
    assert!(stream.tick(now, STALL, Default::default(), None).is_none());
    assert!(
        stream.tick(now + STALL, STALL, Default::default(), None).is_none(),
        "nobody waits for it"
    );
    stream.replaying = Replaying::Hungry;
    assert!(stream.tick(now + STALL, STALL, Default::default(), None).is_none());
    let ended = stream.tick(now + 2 * STALL, STALL, Default::default(), None);
    assert!(matches!(ended, Some((CloseReason::ReaderStalled, _))), "{ended:?}");
}

#[test]
fn the_kernel_keeps_little_for_who_does_not_read() {
    use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = OwnedFd::from(socket);
    bound_kernel(&socket);
    for bytes in [socket_send_buffer_size(&socket), socket_recv_buffer_size(&socket)] {
        let bytes = bytes.unwrap();
        assert!((KERNEL_BYTES..=2 * KERNEL_BYTES).contains(&bytes), "{bytes} bytes");
    }
}

#[test]
fn a_logout_that_cannot_be_read_is_answered_and_ends_nothing() {
    let now = Instant::now();
    let mut stream = stream(0, now);
    let newer = Logout {
        header: MessageHeader {
            version: Logout::default().header.version + 1,
            ..Logout::default().header
        },
        ..Default::default()
    };
    assert!(decode::as_message::<Logout>(bytemuck::bytes_of(&newer)).is_err());
    assert!(stream.received(bytemuck::bytes_of(&newer), now));
    assert!(matches!(stream.next(), Next::Done));
    let said = stream.take(Position(0), now).expect("it is answered");
    let (envelope, event) = decode::disclose(&said).expect("an event");
    let Ok(Event::Rejected(rejected)) = event.event() else { panic!("it is a reject") };
    assert_eq!(rejected.reason, RejectReason::Malformed.to_wire());
    assert_eq!(rejected.template_id, Logout::TEMPLATE);
    assert_eq!(envelope.flags & ENVELOPE_TERMINAL, ENVELOPE_TERMINAL);
    stream.progressed(said.len());
    stream.sent(said);
    let good = Logout::default();
    assert!(stream.received(bytemuck::bytes_of(&good), now));
    let Next::Command(length) = stream.next() else { panic!("a good one goes on") };
    stream.passed_on(length);
    assert!(matches!(stream.next(), Next::Nothing));
}

#[test]
fn a_session_whose_disk_has_failed_is_refused_what_it_would_wait_for_in_vain() {
    let now = Instant::now();
    let mut stream = stream(ACKNOWLEDGE_DURABLE, now);
    let durable = Position(64);
    stream.fail(durable);
    assert_eq!(stream.end(), Some(durable));
    let request = StateRequest { correlation: 7, ..Default::default() };
    assert!(stream.received(bytemuck::bytes_of(&request), now));
    assert!(matches!(stream.next(), Next::Done));
    let said = stream.take(durable, now).expect("it is answered");
    let (envelope, event) = decode::disclose(&said).expect("an event");
    let Ok(Event::Rejected(rejected)) = event.event() else { panic!("it is a reject") };
    assert_eq!(rejected.reason, RejectReason::LogUnavailable.to_wire());
    assert_eq!((rejected.template_id, envelope.correlation), (StateRequest::TEMPLATE, 7));
    // Who does not wait for the disk is told what there is.
    let mut appended = self::stream(0, now);
    appended.fail(durable);
    assert!(appended.received(bytemuck::bytes_of(&request), now));
    assert!(matches!(appended.next(), Next::State { correlation: 7 }));
}

#[test]
fn a_pause_of_the_gateway_is_no_silence_and_no_stall_of_its_clients() {
    let (begin, marks) = (Instant::now(), Default::default());
    let mut stream = stream(0, begin);
    let limit = stream.heartbeat * SILENT_INTERVALS;
    fill(&mut stream, Position(0), begin);
    assert!(stream.take(Position(0), begin).is_some());
    assert!(stream.tick(begin, STALL, marks, None).is_none());
    // It was heard of a moment before a pause that is longer than either limit.
    let now = begin + 2 * limit;
    stream.forgive(2 * limit - STALL / 2, now);
    assert!(stream.tick(now, STALL, marks, None).is_none());
    let ended = stream.tick(now + STALL, STALL, marks, None);
    assert!(matches!(ended, Some((CloseReason::ReaderStalled, _))), "{ended:?}");
    // Nobody is forgiven anything ahead.
    stream.progressed(1);
    stream.forgive(2 * limit, now);
    let ended = stream.tick(now + limit, STALL, marks, None);
    assert!(matches!(ended, Some((CloseReason::Silent, _))), "{ended:?}");
}

/// Its socket has no room all the while.
#[test]
fn who_reads_slowly_is_kept_and_who_reads_nothing_more_is_not() {
    let (mut now, marks) = (Instant::now(), Default::default());
    let mut stream = stream(0, now);
    fill(&mut stream, Position(0), now);
    assert!(stream.take(Position(0), now).is_some());
    for unread in (7..=100).rev() {
        assert!(stream.is_waited_for());
        assert!(stream.tick(now, STALL, marks, Some(unread)).is_none(), "{unread} are left");
        now += STALL * 2 / 3;
        assert!(stream.received(bytemuck::bytes_of(&Heartbeat::default()), now));
    }
    // What has become more was read by nobody, and what is not known neither.
    now -= STALL * 2 / 3;
    for unread in [Some(8), None] {
        now += STALL / 3;
        assert!(stream.tick(now, STALL, marks, unread).is_none());
    }
    let ended = stream.tick(now + STALL / 2, STALL, marks, Some(8));
    assert!(matches!(ended, Some((CloseReason::ReaderStalled, _))), "{ended:?}");
}

#[test]
fn who_has_logged_out_may_read_its_answers_slowly_and_is_given_up_when_it_reads_none() {
    let (mut now, marks) = (Instant::now(), Default::default());
    let mut stream = stream(0, now);
    fill(&mut stream, Position(0), now);
    stream.close(CloseReason::LoggedOut, STALL, now);
    let mut left = stream.take(Position(0), now).expect("answers, and the last word").len();
    // The socket says so, or what it keeps becomes less; the time of both is far longer than a stall.
    for unread in (0..20).rev() {
        stream.progressed(1000);
        left -= 1000;
        for unread in [2 * unread + 1, 2 * unread] {
            assert!(stream.tick(now, STALL, marks, Some(unread)).is_none());
            assert!(!stream.is_over(None, now), "{left} bytes are left");
            now += STALL * 2 / 3;
        }
    }
    assert!(stream.is_owed(None));
    assert!(stream.tick(now, STALL, marks, Some(0)).is_none());
    now += STALL;
    assert!(stream.tick(now, STALL, marks, Some(0)).is_none(), "it is ended already");
    assert!(stream.is_over(None, now), "it reads nothing more");
}

#[test]
fn who_has_logged_out_is_not_blamed_for_a_late_disk() {
    let (now, marks) = (Instant::now(), Default::default());
    let mut durable = stream(ACKNOWLEDGE_DURABLE, now);
    fill(&mut durable, Position(64), now);
    durable.close(CloseReason::LoggedOut, STALL, now);
    let later = now + 10 * STALL;
    for now in [now, later] {
        assert!(durable.take(Position(0), now).is_none(), "nothing is on disk");
        assert!(durable.tick(now, STALL, marks, None).is_none());
        assert!(!durable.is_over(None, now));
    }
    let answers = durable.take(Position(64), later).expect("answers, and the last word");
    durable.sent(answers);
    assert!(durable.is_over(None, later) && !durable.is_owed(None));
}

/// An event at a position, and its envelope.
fn event(position: Position, flags: u8) -> (Envelope, Vec<u8>) {
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    let envelope = Envelope { position, flags, ..Default::default() };
    let done = Done::default();
    let length = enclose(&envelope, bytemuck::bytes_of(&done), &mut enclosed).unwrap();
    (envelope, enclosed[..length].to_vec())
}

/// Template ids of what leaves now; the socket takes it.
fn leaving(stream: &mut Stream, durable: Position, now: Instant) -> Vec<u16> {
    let Some(sent) = stream.take(durable, now) else { return Vec::new() };
    let (mut rest, mut templates) = (&sent[..], Vec::new());
    while let Some(length) = touchline_protocol::framing::frame_length(rest).unwrap() {
        let (message, behind) = rest.split_at(length);
        templates.push(match decode::disclose(message) {
            Ok((_, event)) => event.event().map_or(0, |event| template_of(event.bytes())),
            Err(_) => template_of(message),
        });
        rest = behind;
    }
    stream.sent(Vec::new());
    templates
}

#[test]
fn nothing_goes_on_behind_a_goodbye_and_what_still_comes_is_dropped() {
    let now = Instant::now();
    let mut stream = stream(0, now);
    let command = touchline_protocol::message::command::CancelOrder::default();
    let both = [bytemuck::bytes_of(&Logout::default()), bytemuck::bytes_of(&command)].concat();
    assert!(stream.received(&both, now));
    let Next::Command(length) = stream.next() else { panic!("it logs out") };
    stream.passed_on(length);
    assert!(matches!(stream.next(), Next::Nothing), "it came with the goodbye");
    for _ in 0..2 * INPUT_BYTES / READ_BYTES {
        assert!(stream.received(&[0; READ_BYTES], now), "it owes no room for that");
    }
    assert!(matches!(stream.next(), Next::Nothing));
    // One that is ended otherwise has its say no more either.
    let mut ended = self::stream(0, now);
    assert!(ended.received(bytemuck::bytes_of(&command), now));
    ended.close(CloseReason::KeyRevoked, STALL, now);
    assert!(matches!(ended.next(), Next::Nothing));
    for _ in 0..2 * INPUT_BYTES / READ_BYTES {
        assert!(ended.received(&[0; READ_BYTES], now) && !ended.is_full());
    }
}

#[test]
fn nothing_is_said_behind_the_end_and_what_is_missing_in_front_of_it() {
    use touchline_protocol::message::event::{ENVELOPE_UNSOLICITED, Gap};
    let now = Instant::now();
    let mut stream = stream(0, now);
    let (envelope, message) = event(Position(64), ENVELOPE_UNSOLICITED);
    for _ in 0..10_000 {
        stream.put(&envelope, &message);
    }
    assert_eq!(leaving(&mut stream, Position(0), now).last(), Some(&Done::TEMPLATE));
    assert_eq!(leaving(&mut stream, Position(0), now), [Gap::TEMPLATE], "there is room again");
    for _ in 0..10_000 {
        stream.put(&envelope, &message);
    }
    stream.close(CloseReason::LoggedOut, STALL, now);
    stream.close(CloseReason::EngineStopped, STALL, now);
    let (envelope, message) = event(Position(65), ENVELOPE_TERMINAL);
    stream.put(&envelope, &message);
    stream.put_as_of(Position(65), &message);
    let said = leaving(&mut stream, Position(0), now);
    assert_eq!(said[said.len() - 3..], [Done::TEMPLATE, Gap::TEMPLATE, SessionClosed::TEMPLATE]);
    assert_eq!(said.iter().filter(|&&it| it == SessionClosed::TEMPLATE).count(), 1);
    assert!(leaving(&mut stream, Position(0), now).is_empty());
}

#[test]
fn a_command_under_anothers_name_is_refused_and_takes_nobodys_place() {
    let now = Instant::now();
    let started = SessionStarted { session: SessionId(1), epoch: Epoch(2), ..Default::default() };
    let heartbeat = Duration::from_secs(60);
    let terms = Terms { acknowledgement: 0, heartbeat, unsent_bytes: 256 << 10 };
    let mut stream =
        Stream::new(&started, (terms, RateLimit::new(0)), Position(0)..Position(0), now);
    let command = |session, epoch| {
        let (session, epoch) = (SessionId(session), Epoch(epoch));
        let command = CommandHeader {
            session,
            epoch,
            correlation: 7,
            sequence: Sequence(8),
            ..Default::default()
        };
        touchline_protocol::message::command::CancelOrder { command, ..Default::default() }
    };
    let own = command(1, 2);
    assert!(stream.received(bytemuck::bytes_of(&own), now));
    let Next::Command(length) = stream.next() else { panic!("it is its own") };
    assert_eq!(stream.message(length), bytemuck::bytes_of(&own));
    stream.passed_on(length);
    let room = stream.spare_room();
    for (session, epoch) in [(2, 2), (1, 1), (1, 3)] {
        assert!(stream.received(bytemuck::bytes_of(&command(session, epoch)), now));
        assert!(matches!(stream.next(), Next::Done), "{session} {epoch}");
        let said = stream.take(Position(0), now).expect("it is told");
        let (envelope, event) = decode::disclose(&said).expect("an event");
        let Ok(Event::Rejected(rejected)) = event.event() else { panic!("it is refused") };
        assert_eq!(rejected.reason, RejectReason::StaleEpoch.to_wire());
        assert_eq!((envelope.correlation, envelope.sequence.0), (7, 8));
        stream.sent(Vec::new());
    }
    assert_eq!(stream.spare_room(), room, "the answer to its own one still has its room");
}

#[test]
fn what_is_on_disk_to_the_last_byte_is_told_when_the_disk_has_failed() {
    let now = Instant::now();
    let durable = Position(64);
    let piece = |position| {
        let mut stream = stream(ACKNOWLEDGE_DURABLE, now);
        stream.fail(durable);
        (stream.awaits_state, stream.replay) = (Some(7), 9);
        let (_, message) = event(durable, 0);
        stream.state_came(position, &message);
        assert_eq!(stream.awaits_state, None);
        let of_state = leaving(&mut stream, durable, now);
        stream.replaying = Replaying::Due;
        let goes_on = stream.history_came(position, &message, false);
        let replaying = stream.replaying;
        (of_state, leaving(&mut stream, durable, now), goes_on, replaying)
    };
    let there = vec![Done::TEMPLATE];
    assert_eq!(piece(durable), (there.clone(), there, true, Replaying::Hungry));
    let (refused, broken_off) = (vec![Rejected::TEMPLATE], vec![ReplayEnd::TEMPLATE]);
    assert_eq!(piece(Position(65)), (refused, broken_off, false, Replaying::Not));
}

#[test]
fn last_words_are_waited_for_until_the_peer_has_them_or_the_time_is_over() {
    let (now, marks) = (Instant::now(), Default::default());
    let (second, most) = (Duration::from_secs(1), Duration::from_secs(2));
    let mut stream = stream(0, now);
    stream.close(CloseReason::KeyRevoked, STALL, now);
    assert!(!stream.has_said_all() && !stream.is_over(Some(0), now));
    assert_eq!(leaving(&mut stream, Position(0), now), [SessionClosed::TEMPLATE]);
    assert!(stream.has_said_all() && stream.is_waited_for());
    assert!(!stream.is_over(Some(1), now) && stream.is_over(Some(0), now));
    assert!(stream.is_over(None, now), "where the kernel does not say");
    assert!(stream.is_over(Some(1), now + most));
    stream.forgive(second, now + most);
    assert!(!stream.is_over(Some(1), now + most) && stream.is_over(Some(1), now + most + second));
    assert!(!stream.is_owed(Some(1)), "it was told why");
    // Who has logged out has its time as long as it reads.
    let mut owed = self::stream(0, now);
    owed.close(CloseReason::LoggedOut, STALL, now);
    leaving(&mut owed, Position(0), now);
    for (unread, later) in [(2, 0), (1, 1), (1, 2)] {
        let now = now + STALL * later * 2 / 3;
        assert!(owed.tick(now, STALL, marks, Some(unread)).is_none());
        assert!(!owed.is_over(Some(unread), now) && owed.is_owed(Some(unread)));
    }
    let late = now + 2 * STALL;
    assert!(owed.tick(late, STALL, marks, Some(1)).is_none() && owed.is_over(Some(1), late));
    assert!(!owed.is_owed(Some(0)) && !owed.is_owed(None));
}

#[test]
fn who_takes_something_begins_anew_to_stand_still() {
    let (now, marks) = (Instant::now(), Default::default());
    for is_all in [false, true] {
        let mut stream = stream(0, now);
        let (envelope, message) = event(Position(0), ENVELOPE_TERMINAL);
        fill(&mut stream, Position(0), now);
        assert!(stream.take(Position(0), now).is_some());
        assert!(stream.tick(now, STALL, marks, None).is_none());
        let almost = now + STALL * 9 / 10;
        assert!(stream.has_words(almost, STALL) && !stream.has_words(now + STALL, STALL));
        if is_all {
            stream.sent(Vec::new());
            while stream.outgoing.has_credit() {
                stream.outgoing.passed_on();
                stream.put(&envelope, &message);
            }
            assert!(stream.take(Position(0), almost).is_some());
        } else {
            stream.progressed(1);
        }
        assert!(stream.tick(now + STALL, STALL, marks, None).is_none(), "{is_all}");
        let ended = stream.tick(now + 2 * STALL, STALL, marks, None);
        assert!(matches!(ended, Some((CloseReason::ReaderStalled, _))), "{ended:?}");
    }
}

#[test]
fn who_stood_still_has_its_time_anew_when_it_logs_out_and_who_sends_nothing_is_not_waited_for() {
    let (now, marks) = (Instant::now(), Default::default());
    let mut stream = stream(0, now);
    fill(&mut stream, Position(0), now);
    assert!(stream.take(Position(0), now).is_some());
    assert!(stream.tick(now, STALL, marks, None).is_none());
    let late = now + STALL;
    stream.close(CloseReason::LoggedOut, STALL, late);
    assert!(!stream.is_over(None, late));
    assert!(stream.tick(late, STALL, marks, None).is_none());
    assert!(!stream.is_over(None, late) && stream.is_over(None, late + STALL));
    // Its answers take all room, and it wants nothing that they would be in the way of.
    let mut content = self::stream(0, now);
    let (envelope, message) = event(Position(0), ENVELOPE_TERMINAL);
    while content.outgoing.has_credit() {
        content.outgoing.passed_on();
        content.put(&envelope, &message);
    }
    assert!(content.take(Position(0), now).is_some());
    assert!(!content.is_waited_for());
}

#[test]
fn a_heartbeat_comes_when_nothing_was_said_and_who_is_not_read_is_not_silent() {
    let (begin, marks) = (Instant::now(), Default::default());
    let mut stream = stream(0, begin);
    let interval = stream.heartbeat;
    let (envelope, message) = event(Position(0), 0);
    stream.put(&envelope, &message);
    let said = begin + interval / 2;
    assert_eq!(leaving(&mut stream, Position(0), said), [Done::TEMPLATE]);
    assert!(stream.tick(begin + interval, STALL, marks, None).is_none());
    assert!(leaving(&mut stream, Position(0), begin + interval).is_empty(), "it said something");
    assert!(stream.tick(said + interval, STALL, marks, None).is_none());
    assert_eq!(leaving(&mut stream, Position(0), said + interval), [Heartbeat::TEMPLATE]);
    let silent = begin + interval * SILENT_INTERVALS;
    stream.is_held = true;
    assert!(stream.tick(silent, STALL, marks, None).is_none());
    stream.let_go(silent);
    assert!(!stream.is_held && stream.tick(silent, STALL, marks, None).is_none());
    let ended = stream.tick(silent + interval * SILENT_INTERVALS, STALL, marks, None);
    assert!(matches!(ended, Some((CloseReason::Silent, _))), "{ended:?}");
}
