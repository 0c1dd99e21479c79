//! Several sessions between the duty thread and sockets, both of which the test is: each gets its own answers
//! and no other's, all of what it sends goes on once and in order, and who waits is looked at again.

use super::*;
use crate::gateway::Mail;
use crate::gateway::backend::READ_BYTES;
use crate::gateway::tests::sockets::{Done, Sockets};
use crate::mailbox::{FromDuty, StateLetter};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use touchline_protocol::framing::frame_length;
use touchline_protocol::message::decode::disclose;
use touchline_protocol::message::stream::{
    Heartbeat, ReplayRequest, SessionClosed, StateEnd, StateRequest,
};
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::ring::RingCapacities;
use touchline_protocol::ring::layout::MIN_SESSION_SLOTS;

/// Room for the answers to as many commands as may be under way.
const PLENTY: usize = 1 << 20;

/// What a session was told, as [`Site::told`] gives it: in place of a correlation.
const STATE: u64 = u64::MAX;
const CLOSED: u64 = u64::MAX - 1;

/// A gateway whose rings are small, and the test at both sides of it.
struct Venue {
    gateway: Gateway,
    duty: SessionEnd,
    mail: Arc<Mail>,
    done: Arc<Mutex<Done>>,
    log: Log,
    _folder: TempDir,
}

impl Venue {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = log_in(folder.path());
        let (mail, _rings) = gateway::mail().expect("memory for rings");
        let sizes = RingCapacities::new(MIN_SESSION_SLOTS, MIN_SESSION_SLOTS).expect("sizes");
        let (duty, descriptors) = SessionEnd::create(sizes).expect("memory for rings");
        let end = SessionEnd::attach(&descriptors, sizes).expect("memory for rings");
        let unread = Some(1);
        let done = Arc::new(Mutex::new(Done { unread, ..Done::default() }));
        let backend = Box::new(Sockets { done: Arc::clone(&done), came: Vec::new() });
        let options = Arc::new(peers::options(folder.path()));
        let theirs = Arc::clone(&mail);
        let gateway =
            Gateway::new(options, log.control.clone(), backend, theirs, end).expect("it starts");
        Self { gateway, duty, mail, done, log, _folder: folder }
    }

    fn open(&mut self, ticket: usize, session: u32, epoch: u32, unsent_bytes: usize) {
        let (session, epoch) = (SessionId(session), Epoch(epoch));
        let role = Role::Trader.to_wire();
        let started = SessionStarted { session, epoch, role, ..Default::default() };
        let heartbeat = Duration::from_secs(60);
        let terms = Terms { acknowledgement: 0, heartbeat, unsent_bytes };
        let logon = Position(0)..Position(0);
        self.gateway.sessions.open(ticket, &started, terms, (logon, self.gateway.now));
    }

    /// Bytes come of a socket.
    fn comes(&mut self, ticket: usize, bytes: &[u8]) {
        let (done, came) = (Arc::clone(&self.done), bytes.to_vec());
        self.gateway.backend = Box::new(Sockets { done, came });
        self.gateway.session_received(ticket, &(0..bytes.len()));
    }

    /// Commands of a session come, with these correlations.
    fn commands(&mut self, ticket: usize, correlations: Range<u64>) {
        let stream = &self.gateway.sessions.streams[&ticket];
        let (session, epoch) = (stream.session, stream.epoch);
        let bytes: Vec<u8> = correlations.flat_map(|it| command(session, epoch, it)).collect();
        self.comes(ticket, &bytes);
    }

    /// Passes on what may be; gives sessions and correlations of what the duty thread then has.
    fn passed_on(&mut self) -> Vec<(u32, u64)> {
        self.gateway.pass_on();
        let mut buffer = MessageBuffer::default();
        let mut passed = Vec::new();
        while let Some(length) = self.duty.input.poll(&mut buffer).expect("an honest peer") {
            let bytes = &buffer.bytes(length)[MessageHeader::BYTES..];
            let header = &bytes[..size_of::<CommandHeader>()];
            let header: CommandHeader = bytemuck::pod_read_unaligned(header);
            passed.push((header.session.0, header.correlation));
        }
        self.duty.input.release();
        passed
    }

    /// The duty thread answers a command of this connection.
    fn answer(&mut self, session: u32, epoch: u32, correlation: u64) {
        let [low, middle, high, _] = epoch.to_le_bytes();
        let envelope = Envelope {
            session: SessionId(session),
            reserved: [low, middle, high],
            correlation,
            flags: ENVELOPE_TERMINAL,
            ..Default::default()
        };
        let mut enclosed = [0; ENVELOPED_BYTES_MAX];
        let done = touchline_protocol::message::event::Done::default();
        let length = enclose(&envelope, bytemuck::bytes_of(&done), &mut enclosed).expect("short");
        self.duty.output.try_push(&enclosed[..length]).expect("there is room");
    }

    /// What leaves for a session once the replies in the ring are read: correlations, in order. Its socket takes
    /// all.
    fn told(&mut self, ticket: usize) -> Vec<u64> {
        self.gateway.sessions.drain(&self.mail);
        let mut bytes = Vec::new();
        loop {
            self.gateway.flush();
            let mut done = self.done.lock().unwrap();
            let found = done.sent.iter().position(|(to, _)| *to == ticket);
            let Some((_, sent)) = found.map(|at| done.sent.remove(at)) else { break };
            drop(done);
            bytes.extend_from_slice(&sent);
            self.gateway.session_sent(ticket, Vec::new());
        }
        let (mut bytes, mut told) = (&bytes[..], Vec::new());
        while let Some(length) = frame_length(bytes).expect("messages") {
            let (message, rest) = bytes.split_at(length);
            let header: MessageHeader =
                bytemuck::pod_read_unaligned(&message[..MessageHeader::BYTES]);
            told.push(match header.template_id {
                StateEnd::TEMPLATE => STATE,
                SessionClosed::TEMPLATE => CLOSED,
                _ => {
                    let envelope = disclose(message).expect("an event").0;
                    assert_eq!(envelope.reserved, [0; 3], "they are the gateway's");
                    envelope.correlation
                }
            });
            bytes = rest;
        }
        told
    }

    fn close(&mut self, session: u32, epoch: u32) {
        let reason = CloseReason::LoggedOut;
        self.gateway.close_session(SessionId(session), Epoch(epoch), reason);
    }

    fn forgotten(&self) -> Vec<usize> {
        std::mem::take(&mut self.done.lock().unwrap().forgotten)
    }

    fn held(&self) -> Vec<(usize, bool)> {
        std::mem::take(&mut self.done.lock().unwrap().held)
    }

    /// Sessions of which the duty thread is told that their sockets have ended.
    fn ended(&self) -> Vec<u32> {
        let letters = std::iter::from_fn(|| self.mail.to_duty.take());
        let ended = letters.map(|letter| match letter {
            ToDuty::Ended { session, .. } => session.0,
            _ => panic!("another letter"),
        });
        ended.collect()
    }
}

fn command(session: SessionId, epoch: Epoch, correlation: u64) -> Vec<u8> {
    let command = CommandHeader { session, epoch, correlation, ..Default::default() };
    bytemuck::bytes_of(&CancelOrder { command, ..Default::default() }).to_vec()
}

#[test]
fn no_connection_is_told_what_is_meant_for_another_of_its_session() {
    let mut venue = Venue::new();
    venue.open(10, 1, 1, PLENTY);
    venue.open(20, 2, 1, PLENTY);
    for (session, epoch) in [(1, 1), (2, 1)] {
        venue.close(session, epoch);
    }
    assert_eq!((venue.told(10), venue.told(20)), (vec![CLOSED], vec![CLOSED]));
    venue.open(11, 1, 2, PLENTY);
    venue.answer(1, 1, 7);
    venue.answer(1, 2, 8);
    venue.answer(2, 2, 9);
    assert_eq!((venue.told(10), venue.told(11), venue.told(20)), (vec![], vec![8], vec![]));
    // Word of the older one's end that comes late ends nothing of the newer one's.
    venue.close(1, 1);
    assert!(!venue.gateway.sessions.streams[&11].is_closing());
    venue.gateway.session_ended(10);
    assert_eq!((venue.forgotten(), venue.ended()), (vec![10], vec![]), "it is ended already");
    venue.answer(1, 2, 9);
    assert_eq!(venue.told(11), [9], "the older one's socket was not its way");
    venue.gateway.session_ended(11);
    assert_eq!((venue.forgotten(), venue.ended()), (vec![11], vec![1]));
    venue.log.keeper.stop();
}

#[test]
fn of_a_session_one_older_connection_stays_to_be_read_and_those_of_others_do() {
    let mut venue = Venue::new();
    venue.open(20, 2, 1, PLENTY);
    venue.close(2, 1);
    for (ticket, epoch) in [(10, 1), (11, 2)] {
        venue.open(ticket, 1, epoch, PLENTY);
        venue.close(1, epoch);
        venue.told(ticket);
    }
    assert_eq!(venue.forgotten(), [10]);
    venue.open(12, 1, 3, PLENTY);
    venue.told(12);
    assert!(venue.forgotten().is_empty(), "it goes on");
    // It is ended from this side.
    venue.comes(12, &[0xff; 64]);
    venue.passed_on();
    assert_eq!((venue.told(12), venue.forgotten()), (vec![CLOSED], vec![11]));
    assert_eq!(venue.ended(), [1]);
    assert!(venue.gateway.sessions.streams.contains_key(&20), "it has nothing to do with that");
    venue.log.keeper.stop();
}

#[test]
fn answers_that_come_before_word_of_the_logon_wait_for_it() {
    let mut venue = Venue::new();
    let letter = FromDuty::Closed {
        session: SessionId(9),
        epoch: Epoch(1),
        reason: CloseReason::LoggedOut,
        why: String::new(),
        end: None,
    };
    venue.mail.from_duty.put(letter);
    for (session, correlation) in [(1, 1), (2, 2), (1, 3), (3, 4)] {
        venue.answer(session, 1, correlation);
    }
    venue.gateway.sessions.drain(&venue.mail);
    venue.open(20, 2, 1, PLENTY);
    venue.open(10, 1, 1, PLENTY);
    assert_eq!((venue.told(10), venue.told(20)), (vec![1, 3], vec![2]));
    venue.gateway.sessions.forget_early();
    assert!(venue.gateway.sessions.early.is_empty(), "nobody is left to come");
    venue.log.keeper.stop();
}

#[test]
fn all_that_a_session_sends_goes_on_by_turns_with_others() {
    let mut venue = Venue::new();
    venue.open(10, 1, 1, PLENTY);
    venue.open(20, 2, 1, PLENTY);
    venue.commands(10, 0..40);
    venue.commands(20, 0..1);
    let first = venue.passed_on();
    let expected: Vec<_> =
        (0..MESSAGES_PER_TURN as u64).map(|it| (1, it)).chain([(2, 0)]).collect();
    assert_eq!(first, expected, "some of the one, and then it is the other's turn");
    let rest: Vec<_> = (0..5).flat_map(|_| venue.passed_on()).collect();
    assert_eq!(rest, (16..40).map(|it| (1, it)).collect::<Vec<_>>());
    // More of them than one session may have under way: an answer lets one more go on.
    venue.commands(10, 40..70);
    let rest: Vec<_> = (0..5).flat_map(|_| venue.passed_on()).collect();
    assert_eq!(rest, (40..64).map(|it| (1, it)).collect::<Vec<_>>());
    venue.answer(1, 1, 0);
    venue.gateway.sessions.drain(&venue.mail);
    assert_eq!(venue.passed_on(), [(1, 64)]);
    venue.log.keeper.stop();
}

#[test]
fn what_finds_the_duty_threads_ring_full_goes_on_when_there_is_room() {
    let mut venue = Venue::new();
    let sessions = 1..=20;
    for session in sessions.clone() {
        venue.open(session as usize, session, 1, PLENTY);
        venue.commands(session as usize, 0..64);
    }
    for _ in 0..10 {
        venue.gateway.pass_on();
    }
    assert!(venue.gateway.sessions.is_kept_waiting());
    let mut passed: Vec<_> = (0..20).flat_map(|_| venue.passed_on()).collect();
    assert!(!venue.gateway.sessions.is_kept_waiting());
    // Each session's in order.
    passed.sort_by_key(|(session, _)| *session);
    let expected = sessions.flat_map(|session| (0..64).map(move |it| (session, it)));
    assert_eq!(passed, expected.collect::<Vec<_>>());
    venue.log.keeper.stop();
}

/// All that a session may say at once, which is answered: its next correlation behind that.
fn flood(venue: &mut Venue, (ticket, session, epoch): (usize, u32, u32)) -> u64 {
    let mut next = 0;
    loop {
        venue.commands(ticket, next..next + MESSAGES_PER_TURN as u64);
        let passed = venue.passed_on();
        for &(_, correlation) in &passed {
            assert_eq!(correlation, next);
            venue.answer(session, epoch, correlation);
            next += 1;
        }
        venue.gateway.sessions.drain(&venue.mail);
        if passed.len() < MESSAGES_PER_TURN {
            return next;
        }
        assert!(next < 100_000, "there is no end of it");
    }
}

#[test]
fn who_says_more_than_it_may_waits_for_its_time_and_others_do_not() {
    const PER_SECOND: u32 = 2;
    // Beside its commands as many again, and a thousand at the least: what is refused by the duty thread.
    const AT_ONCE: u64 = PER_SECOND as u64 + 1000;
    let mut venue = Venue::new();
    venue.gateway.sessions.debts = Debts::new(PER_SECOND);
    venue.open(10, 1, 1, PLENTY);
    venue.open(20, 2, 1, PLENTY);
    assert_eq!(flood(&mut venue, (10, 1, 1)), AT_ONCE);
    assert!(venue.gateway.sessions.is_kept_waiting());
    assert_eq!(venue.told(10).len() as u64, AT_ONCE);
    assert_eq!(venue.passed_on(), []);
    venue.gateway.flush();
    let durable = venue.gateway.durable();
    assert!(!venue.gateway.sessions.has_work(durable), "nobody looks for it without end");
    venue.commands(20, 0..1);
    assert_eq!(venue.passed_on(), [(2, 0)]);
    assert_eq!(venue.passed_on(), []);
    // Looked at once in a while, and then again and again.
    venue.gateway.sessions.mark_ready(10);
    let looked = venue.gateway.sessions.paced_at;
    venue.gateway.now += Duration::from_micros(900);
    assert_eq!(venue.passed_on(), []);
    assert_eq!(venue.gateway.sessions.paced, [10]);
    assert_eq!(venue.gateway.sessions.paced_at, looked);
    venue.gateway.now += Duration::from_micros(2100);
    assert_eq!(venue.passed_on(), [0, 1, 2].map(|more| (1, AT_ONCE + more)));
    assert_eq!(venue.gateway.sessions.paced_at, venue.gateway.now);
    venue.gateway.now += Duration::from_millis(1);
    assert_eq!(venue.passed_on(), [(1, AT_ONCE + 3)]);
    venue.gateway.now += Duration::from_millis(1);
    assert_eq!(venue.passed_on(), [(1, AT_ONCE + 4)]);
    // Ended, its next connection goes on with what is left, whatever that is.
    venue.gateway.close_session(SessionId(1), Epoch(1), CloseReason::Replaced);
    venue.open(30, 1, 2, PLENTY);
    venue.commands(30, 0..4);
    assert_eq!(venue.passed_on(), []);
    venue.gateway.now += Duration::from_millis(1);
    assert_eq!(venue.passed_on(), [(1, 0)]);
    venue.gateway.session_ended(30);
    venue.open(40, 1, 3, PLENTY);
    venue.commands(40, 0..4);
    assert_eq!(venue.passed_on(), []);
    venue.gateway.now += Duration::from_secs(1);
    assert_eq!(venue.passed_on(), [0, 1, 2, 3].map(|it| (1, it)));
    assert!(!venue.gateway.sessions.is_kept_waiting());
    venue.log.keeper.stop();
}

#[test]
fn whatever_is_said_counts_and_what_is_not_read_yet_does_not() {
    let replay = ReplayRequest { from: Position(0), ..Default::default() };
    let state = StateRequest::default();
    let [replay, state] = [bytemuck::bytes_of(&replay), bytemuck::bytes_of(&state)];
    let stale = command(SessionId(1), Epoch(9), 0);
    for said in [bytemuck::bytes_of(&Heartbeat::default()), replay, state, &stale] {
        let mut venue = Venue::new();
        venue.gateway.sessions.debts = Debts::new(1000);
        venue.open(10, 1, 1, PLENTY);
        let now_ns = venue.gateway.sessions.nanoseconds(venue.gateway.now);
        let left = |venue: &Venue| {
            let mut rate = venue.gateway.sessions.streams[&10].rate;
            let mut left = 0;
            while !rate.is_spent(now_ns) {
                rate.count_passed_on(now_ns);
                left += 1;
            }
            left
        };
        assert_eq!((left(&venue), venue.passed_on()), (2000, vec![]));
        venue.comes(10, &said[..8]);
        assert_eq!((venue.passed_on(), left(&venue)), (vec![], 2000));
        venue.comes(10, &said[8..]);
        assert_eq!((venue.passed_on(), left(&venue)), (vec![], 1999), "{said:?}");
        let stream = venue.gateway.sessions.streams.get_mut(&10).unwrap();
        (0..1999).for_each(|_| stream.rate.count_passed_on(now_ns));
        venue.gateway.sessions.mark_ready(10);
        assert_eq!((venue.passed_on(), left(&venue)), (vec![], 0));
        assert!(!venue.gateway.sessions.is_kept_waiting(), "it has said nothing more");
        venue.log.keeper.stop();
    }
}

#[test]
fn who_waits_for_room_goes_on_when_its_socket_has_taken_some() {
    for is_all in [false, true] {
        let mut venue = Venue::new();
        venue.open(10, 1, 1, 4096);
        venue.commands(10, 0..100);
        let mut next = 0;
        loop {
            let passed = venue.passed_on();
            for &(_, correlation) in &passed {
                assert_eq!(correlation, next);
                venue.answer(1, 1, correlation);
                next += 1;
            }
            venue.gateway.sessions.drain(&venue.mail);
            if passed.is_empty() {
                break;
            }
        }
        assert!((1..60).contains(&next), "{next} answers fit");
        venue.gateway.flush();
        assert!(venue.passed_on().is_empty());
        let (to, sent) = venue.done.lock().unwrap().sent.remove(0);
        assert_eq!(to, 10);
        if is_all {
            venue.gateway.session_sent(10, Vec::new());
        } else {
            venue.gateway.session_progressed(10, sent.len());
        }
        assert_eq!(venue.passed_on().first(), Some(&(1, next)));
        venue.log.keeper.stop();
    }
}

#[test]
fn who_is_not_read_is_read_again_when_there_is_room_or_it_is_ended() {
    // By the duty thread, from this side, or not at all.
    for end in 0..3 {
        let mut venue = Venue::new();
        venue.open(10, 1, 1, PLENTY);
        let count = (READ_BYTES / command(SessionId(1), Epoch(1), 0).len()) as u64;
        venue.commands(10, 0..64);
        let passed: Vec<_> = (0..10).flat_map(|_| venue.passed_on()).collect();
        assert_eq!(passed.len(), 64, "as many as may be under way");
        venue.commands(10, 0..count);
        assert!(venue.held().is_empty());
        venue.commands(10, count..count + 1);
        venue.commands(10, count + 1..count + 2);
        assert_eq!(venue.held(), [(10, true)], "once");
        assert!(venue.passed_on().is_empty() && venue.held().is_empty(), "it is full");
        // So long it could not be heard.
        venue.gateway.now += Duration::from_secs(200);
        match end {
            0 => venue.close(1, 1),
            1 => venue.gateway.end_session(10, CloseReason::Other, "the test says so"),
            _ => (0..64).for_each(|it| venue.answer(1, 1, it)),
        }
        venue.gateway.sessions.drain(&venue.mail);
        let passed: Vec<_> = (0..10).flat_map(|_| venue.passed_on()).collect();
        assert_eq!(passed.len(), if end < 2 { 0 } else { 64 }, "nothing behind its end");
        assert_eq!(venue.held(), [(10, false)]);
        venue.gateway.tick_sessions();
        assert_eq!(venue.gateway.sessions.streams[&10].is_closing(), end < 2);
        venue.log.keeper.stop();
    }
}

/// However many they are.
#[test]
fn what_comes_while_its_socket_is_busy_leaves_when_that_is_free() {
    let mut venue = Venue::new();
    venue.open(10, 1, 1, PLENTY);
    let sent = |venue: &Venue| venue.done.lock().unwrap().sent.len();
    for number in 0..MIN_SESSION_SLOTS as u64 {
        venue.answer(1, 1, 2 * number);
        venue.gateway.sessions.drain(&venue.mail);
        venue.gateway.flush();
        venue.answer(1, 1, 2 * number + 1);
        venue.gateway.sessions.drain(&venue.mail);
        venue.gateway.flush();
        assert_eq!(sent(&venue), 1, "one buffer at a time");
        assert_eq!(venue.told(10), [2 * number, 2 * number + 1]);
    }
    venue.gateway.now += Duration::from_secs(60);
    venue.gateway.tick_sessions();
    assert_eq!(sent(&venue), 1, "a heartbeat");
    venue.log.keeper.stop();
}

#[test]
fn all_that_was_answered_comes_in_front_of_the_engines_last_word() {
    let mut venue = Venue::new();
    for (ticket, session) in [(10, 1), (20, 2)] {
        venue.open(ticket, session, 1, PLENTY);
        (1..4).for_each(|it| venue.answer(session, 1, it));
    }
    venue.gateway.close_all_sessions(CloseReason::EngineStopped);
    for ticket in [10, 20] {
        assert_eq!(venue.told(ticket), [1, 2, 3, CLOSED]);
    }
    venue.gateway.now += Duration::from_secs(60);
    venue.gateway.tick_sessions();
    assert!(venue.forgotten().is_empty(), "the gateway's end hears them out");
    venue.log.keeper.stop();
}

#[test]
fn what_comes_behind_a_request_for_a_state_waits_for_it() {
    let mut venue = Venue::new();
    venue.open(10, 1, 1, PLENTY);
    for correlation in 1..3 {
        let request = StateRequest { correlation, ..Default::default() };
        venue.comes(10, bytemuck::bytes_of(&request));
        assert!(venue.passed_on().is_empty());
        venue.commands(10, correlation..correlation + 1);
        assert!(venue.passed_on().is_empty(), "it may be behind the state");
        let asked = venue.mail.to_duty.take();
        let Some(ToDuty::State { ticket: 10, correlation: asked, .. }) = asked else {
            panic!("it is asked for")
        };
        assert_eq!(asked, correlation);
        assert!(venue.mail.to_duty.take().is_none(), "once");
        let position = Position(0);
        let messages = bytemuck::bytes_of(&StateEnd { correlation, ..Default::default() }).to_vec();
        let behind = venue.duty.output.published();
        venue.mail.states.put(StateLetter { ticket: 10, behind, position, messages });
        venue.gateway.sessions.drain(&venue.mail);
        assert_eq!(venue.passed_on(), [(1, correlation)]);
        assert_eq!(venue.told(10), [STATE]);
    }
    venue.log.keeper.stop();
}

#[test]
fn what_is_refused_here_is_told_at_once() {
    let mut venue = Venue::new();
    venue.open(10, 1, 1, PLENTY);
    venue.comes(10, &command(SessionId(2), Epoch(1), 5));
    venue.comes(10, &command(SessionId(1), Epoch(2), 6));
    assert_eq!((venue.passed_on(), venue.told(10)), (vec![], vec![5, 6]));
    venue.log.keeper.stop();
}

/// What the gateway looks at before it sleeps.
#[test]
fn whoever_waits_is_work_that_no_socket_tells_of() {
    let mut venue = Venue::new();
    venue.open(10, 1, 1, PLENTY);
    let durable = venue.gateway.durable();
    let has_work = |venue: &Venue| venue.gateway.sessions.has_work(durable);
    venue.gateway.flush();
    assert!(!has_work(&venue));
    venue.commands(10, 0..1);
    assert!(has_work(&venue), "a command");
    venue.passed_on();
    assert!(!has_work(&venue));
    venue.answer(1, 1, 0);
    let (now, limit) = (venue.gateway.now, Duration::from_secs(5));
    assert!(has_work(&venue) && venue.gateway.sessions.have_words(now, limit), "in the ring");
    venue.gateway.sessions.drain(&venue.mail);
    assert!(has_work(&venue), "to leave");
    assert_eq!(venue.told(10), [0]);
    venue.passed_on();
    assert!(!has_work(&venue) && !venue.gateway.sessions.have_words(now, limit));
    venue.log.keeper.stop();
}

/// The keeper rings nobody who is awake, so who is about to sleep looks whether the log has failed.
#[test]
fn a_log_that_fails_in_front_of_a_sleep_is_not_slept_through() {
    let mut venue = Venue::new();
    venue.open(1, 1, 1, PLENTY);
    let stop = AtomicBool::new(false);
    let patience = |venue: &mut Venue| {
        venue.gateway.sleep(&stop).expect("a turn");
        venue.done.lock().unwrap().patience
    };
    assert!((0..10).any(|_| !patience(&mut venue).is_zero()), "there is nothing to do");
    venue.log.control.fail("the test says so");
    assert_eq!(patience(&mut venue), Duration::ZERO);
    assert!(!venue.gateway.log_has_failed(), "the sessions know of it");
    assert!((0..10).any(|_| !patience(&mut venue).is_zero()), "there is nothing more to do");
    venue.log.keeper.stop();
}

/// Its socket has no room all the while.
#[test]
fn whose_peer_reads_slowly_is_kept_and_whose_peer_reads_nothing_is_not() {
    let mut venue = Venue::new();
    venue.open(10, 1, 1, 4096);
    venue.commands(10, 0..200);
    let mut answered = 0;
    loop {
        let passed = venue.passed_on();
        if passed.is_empty() {
            break;
        }
        answered += passed.len();
        passed.iter().for_each(|(_, correlation)| venue.answer(1, 1, *correlation));
        venue.gateway.sessions.drain(&venue.mail);
        venue.gateway.flush();
    }
    assert!((1..200).contains(&answered), "{answered} of 200 are answered");
    let (stall, step) = (venue.gateway.options.reader_stall, Duration::from_millis(250));
    let is_given_up_in = |venue: &mut Venue, time: Duration, unread| {
        venue.done.lock().unwrap().unread = Some(unread);
        // No pause of the gateway's own.
        for _ in 0..(time.as_millis() / step.as_millis()) {
            let now = venue.gateway.now + step;
            venue.gateway.turn_at(now, Vec::new()).expect("a turn");
        }
        venue.gateway.sessions.streams.get(&10).is_none_or(Stream::is_closing)
    };
    for unread in (1..=10).rev() {
        assert!(!is_given_up_in(&mut venue, stall * 2 / 3, unread), "{unread} are left");
    }
    assert!(is_given_up_in(&mut venue, stall + step, 1), "it reads nothing");
    venue.log.keeper.stop();
}
