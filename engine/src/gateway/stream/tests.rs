//! What one session may have others do for it, and when its client is to blame for a standstill.

use super::*;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::event::Done;

const STALL: Duration = Duration::from_secs(5);

fn stream(acknowledgement: u8, now: Instant) -> Stream {
    let heartbeat = Duration::from_secs(60);
    let terms = Terms { acknowledgement, heartbeat, unsent_bytes: 256 << 10 };
    Stream::new(&SessionStarted::default(), terms, Position(0)..Position(0), now)
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
