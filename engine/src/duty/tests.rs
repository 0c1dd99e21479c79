//! Who is served first of those who have sent something while there was nothing to do, and who waits that sends more
//! than it may.

use super::clients::Terms;
use super::connection::Connection;
use super::*;
use crate::config::{EngineConfig, Wait};
use crate::log::{Environment, KeeperHandle, LogOptions, open_in};
use crate::mailbox::{Asked, Detail, FromDuty, LogonLetter, LogonRequest, Wishes};
use crate::patience::eventually;
use crate::rate::RateLimit;
use crate::recovery::NothingToReplay;
use std::collections::HashMap;
use std::path::Path;
use std::thread;
use touchline_protocol::message::command::{CancelOrder, Logon};
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::ring::RingCapacities;
use touchline_protocol::ring::layout::MIN_SESSION_SLOTS;
use touchline_protocol::text::Name;
use touchline_protocol::units::{KeyId, Position};

/// A duty thread over a log in a folder, and the ends of two clients whose sessions it serves, the first one so many
/// commands a second; 0: all.
fn serves_two(data: &Path, per_second: u32) -> (Duty, KeeperHandle, [SessionEnd; 2]) {
    let environment = Environment::default();
    let log =
        open_in(&environment, &LogOptions::small(data), &mut NothingToReplay, &mut |_| {}).unwrap();
    let settings = EngineSection { wait: Wait::Spin, ..Default::default() };
    let (mut duty, ..) = fixture::empty(log.writer, settings);
    let sizes = RingCapacities::new(MIN_SESSION_SLOTS, MIN_SESSION_SLOTS).unwrap();
    let clients = [1, 2].map(|session| {
        let (end, descriptors) = SessionEnd::create(sizes).unwrap();
        let terms = Terms {
            account: None,
            side: None,
            rate: RateLimit::new(if session == 1 { per_second } else { 0 }),
            awaits_disk: false,
            detail: Detail::Whole,
        };
        let (identity, kind) = ((SessionId(session), Epoch(1)), (Role::Trader, Lane::Hot));
        let connection = Connection::new(identity, kind, terms, Box::new(end), Position(0));
        duty.clients.connections.push(connection);
        SessionEnd::attach(&descriptors, sizes).unwrap()
    });
    (duty, log.keeper, clients)
}

#[test]
fn of_two_that_send_together_each_is_served_first_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    let (mut duty, keeper, mut clients) = serves_two(folder.path(), 0);
    let found = |duty: &mut Duty| {
        [0, 1, 2, 3].map(|next| {
            duty.next_hot = next;
            assert!(duty.idle());
            duty.next_hot
        })
    };
    let mut send = |client: usize| {
        let command = bytemuck::bytes_of(&CancelOrder::default()).to_vec();
        clients[client].output.try_push(&command).unwrap();
    };
    assert_eq!(found(&mut duty), [0, 1, 2, 3], "nobody has sent anything");
    send(1);
    assert_eq!(found(&mut duty), [1; 4]);
    send(0);
    assert_eq!(found(&mut duty), [0, 1, 0, 1]);
    keeper.stop();
}

/// Sends one message again and again until nothing of it is taken; gives how often it was answered with each reason.
fn answered(duty: &mut Duty, client: &mut SessionEnd, message: &[u8]) -> HashMap<u16, u32> {
    let mut answers: HashMap<u16, u32> = HashMap::new();
    let mut buffer = MessageBuffer::new();
    loop {
        assert!(answers.values().sum::<u32>() < 100_000, "there is no end of it: {answers:?}");
        while client.output.try_push(message).is_ok() {}
        if duty.work() == 0 {
            return answers;
        }
        while let Some(length) = client.input.poll(&mut buffer).unwrap() {
            let (_, event) = decode::disclose(buffer.bytes(length)).unwrap();
            let Ok(decode::Event::Rejected(rejected)) = event.event() else { panic!("taken") };
            *answers.entry(rejected.reason).or_default() += 1;
        }
        client.input.release();
    }
}

/// The venue is empty, so whatever is admitted is rejected too, but as what it is.
#[test]
fn a_flood_is_refused_for_a_while_and_then_waits_and_wakes_nobody() {
    const PER_SECOND: u32 = 100;
    const REFUSED: u32 = 1000;
    let rate_exceeded = RejectReason::RateExceeded.to_wire();
    let order = |epoch: u32| {
        let mut order = CancelOrder::default();
        (order.command.session, order.command.epoch) = (SessionId(1), Epoch(epoch));
        bytemuck::bytes_of(&order).to_vec()
    };
    let mut unreadable = order(1);
    unreadable[2] = 99;
    // What is admitted, of a message that counts as a command and of those that count as refusals first.
    for (message, own) in [(order(1), PER_SECOND), (order(2), REFUSED), (unreadable, REFUSED)] {
        let folder = tempfile::tempdir().unwrap();
        let (mut duty, keeper, [mut flooder, mut other]) = serves_two(folder.path(), PER_SECOND);
        let answers = answered(&mut duty, &mut flooder, &message);
        assert_eq!(answers.values().sum::<u32>(), PER_SECOND + REFUSED, "{answers:?}");
        let exceeded = answers.get(&rate_exceeded).copied().unwrap_or_default();
        assert_eq!(exceeded, if own == PER_SECOND { REFUSED } else { 0 }, "{answers:?}");
        let heard = |duty: &Duty| {
            let connection = &duty.clients.connections[0];
            let (lines, limit) = (duty.clients.parking_lines().count(), duty.clients.sleep_limit());
            (connection.is_kept_waiting(), connection.is_ready(), lines, limit.as_micros())
        };
        // The gateway wakes the thread, and the other client.
        assert_eq!(heard(&duty), (true, false, 2, 1500));

        other.output.try_push(&order(1)).unwrap();
        assert_eq!(duty.work(), 1, "others are heard");
        duty.now_ns += 3_000_000;
        let more = answered(&mut duty, &mut flooder, &message);
        assert_eq!(more.values().sum::<u32>(), 3, "{more:?}");
        duty.now_ns += 3_000_000;
        assert_eq!((duty.work(), duty.paced_work), (3, 3), "nothing to stay awake for");
        duty.now_ns += 1_000_000;
        other.output.try_push(&order(1)).unwrap();
        assert_eq!((duty.work(), duty.paced_work), (2, 1));
        assert_eq!((duty.work(), duty.paced_work), (0, 0));
        while flooder.input.poll(&mut MessageBuffer::new()).unwrap().is_some() {}
        duty.now_ns += 10_000_000_000;
        let more = answered(&mut duty, &mut flooder, &message);
        assert_eq!(more, answers, "it has been silent for long enough");

        // What is left in its ring, and then no more than it may.
        duty.now_ns += 10_000_000_000;
        let mut buffer = MessageBuffer::new();
        while duty.work() > 0 {
            while flooder.input.poll(&mut buffer).unwrap().is_some() {}
        }
        assert_eq!(heard(&duty), (false, false, 3, 500_000), "it is heard as before");
        duty.now_ns += 10_000_000_000;
        for _ in 0..PER_SECOND + REFUSED {
            while flooder.input.poll(&mut buffer).unwrap().is_some() {}
            flooder.output.try_push(&message).unwrap();
            assert_eq!(duty.work(), 1);
        }
        assert_eq!(duty.work(), 0);
        assert_eq!(heard(&duty), (false, false, 3, 500_000), "nothing waits");
        let slots = flooder.output.capacity().slots() as u64;
        assert_eq!(flooder.output.free_slots(slots), Ok(slots), "all of the ring is its own again");
        keeper.stop();
    }
}

/// A venue with one key, a session of which may send twenty commands a second, and the gateway's end of its mail.
fn with_one_key(data: &Path) -> (Duty, KeeperHandle, Arc<Mail>, SessionEnd) {
    let text = "[engine]\ncommands_per_second = 20\n[[assets]]\nname = \"A\"\n\
                [[accounts]]\nname = \"a\"\nkeys = 1\n";
    let config: EngineConfig = toml::from_str(text).unwrap();
    let (options, environment) = (LogOptions::small(data), Environment::default());
    let log = open_in(&environment, &options, &mut NothingToReplay, &mut |_| {}).unwrap();
    let (duty, mail, streams) = fixture::defined(log.writer, &config);
    (duty, log.keeper, mail, streams)
}

/// What the gateway asks for a session of the key's.
fn asks(name: &str, end: Option<Box<SessionEnd>>) -> Asked {
    let mut logon = Logon { name: Name::new(name).unwrap(), ..Default::default() };
    (logon.role, logon.lane) = (Role::Trader.to_wire(), Lane::Hot.to_wire());
    logon.command.key_id = KeyId(1);
    Asked::new(LogonRequest { logon: Box::new(logon), end, wishes: Wishes::default() })
}

/// Opens the key's session as the gateway does, at the time that the duty thread has read last.
fn log_on(duty: &mut Duty, mail: &Mail, end: Option<Box<SessionEnd>>) -> SessionStarted {
    let asked = asks("again", end);
    mail.to_duty.put(ToDuty::Logon(LogonLetter { ticket: 1, asked }));
    duty.work();
    loop {
        match mail.from_duty.take() {
            Some(FromDuty::Opened { started, .. }) => return started,
            // Its older connection.
            Some(FromDuty::Closed { .. }) => {}
            _ => panic!("it is not let in"),
        }
    }
}

/// How many of so many commands that are sent at once are not refused for their number.
fn admitted(duty: &mut Duty, end: &mut SessionEnd, started: &SessionStarted, sent: u32) -> u32 {
    let mut command = CancelOrder::default();
    (command.command.session, command.command.epoch) = (started.session, started.epoch);
    command.command.key_id = started.key_id;
    (0..sent).for_each(|_| end.output.try_push(bytemuck::bytes_of(&command)).unwrap());
    while duty.work() > 0 {}
    let (mut buffer, mut answers) = (MessageBuffer::new(), Vec::new());
    while let Some(length) = end.input.poll(&mut buffer).unwrap() {
        let (_, event) = decode::disclose(buffer.bytes(length)).unwrap();
        let Ok(decode::Event::Rejected(rejected)) = event.event() else { panic!("taken") };
        answers.push(rejected.reason);
    }
    end.input.release();
    assert_eq!(answers.len(), sent as usize);
    let rate_exceeded = RejectReason::RateExceeded.to_wire();
    answers.iter().filter(|&&reason| reason != rate_exceeded).count() as u32
}

/// The allowance is the session's, whatever carries it.
#[test]
fn who_logs_on_anew_may_send_no_more_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut duty, keeper, mail, mut stream) = with_one_key(folder.path());
    let sizes = RingCapacities::new(MIN_SESSION_SLOTS, MIN_SESSION_SLOTS).unwrap();
    // After so many ms so many more are paid for.
    for (one, (passed_ms, expected)) in
        [(0, 20), (0, 0), (0, 0), (500, 10), (0, 0), (50, 1), (49, 0), (1, 1), (5000, 20), (0, 0)]
            .into_iter()
            .enumerate()
    {
        duty.now_ns += passed_ms * 1_000_000;
        let found = if one % 2 == 0 {
            let started = log_on(&mut duty, &mail, None);
            admitted(&mut duty, &mut stream, &started, 25)
        } else {
            let (end, descriptors) = SessionEnd::create(sizes).unwrap();
            let mut client = SessionEnd::attach(&descriptors, sizes).unwrap();
            let started = log_on(&mut duty, &mail, Some(Box::new(end)));
            admitted(&mut duty, &mut client, &started, 25)
        };
        assert_eq!(found, expected, "connection {one}");
    }
    keeper.stop();
}

/// As where both share a core: the gateway's thread may lose that at any time, for as long as a scheduler's slice.
#[test]
fn a_gateway_that_stands_still_in_the_middle_of_a_letter_holds_no_order_up() {
    const LETTERS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let (mut duty, keeper, mail, _stream) = with_one_key(folder.path());
    let sizes = RingCapacities::new(MIN_SESSION_SLOTS, MIN_SESSION_SLOTS).unwrap();
    let (end, descriptors) = SessionEnd::create(sizes).unwrap();
    let mut client = SessionEnd::attach(&descriptors, sizes).unwrap();
    let started = log_on(&mut duty, &mail, Some(Box::new(end)));
    let SessionStarted { session, epoch, account, .. } = started;
    let withdrawn = asks("withdrawn", None);
    let put = |ticket: usize| {
        let asked = if ticket == 1 { withdrawn.clone() } else { asks("other", None) };
        mail.to_duty.put(match ticket % 2 {
            0 => ToDuty::State { ticket, session, epoch, account, correlation: 0 },
            _ => ToDuty::Logon(LogonLetter { ticket, asked }),
        });
    };
    let told = || {
        let states = std::iter::from_fn(|| mail.states.take()).map(|state| state.ticket);
        let opened =
            std::iter::from_fn(|| mail.from_duty.take()).filter_map(|letter| match letter {
                FromDuty::Opened { ticket, .. } => Some(ticket),
                _ => None,
            });
        (states.collect::<Vec<_>>(), opened.collect::<Vec<_>>())
    };
    (0..LETTERS).for_each(put);
    let is_over = thread::scope(|scope| {
        let _held = (
            mail.to_duty.hold_putting(),
            mail.from_duty.hold_taking(),
            mail.states.hold_taking(),
            withdrawn.hold_taking(),
        );
        let turns = scope.spawn(|| admitted(&mut duty, &mut client, &started, 5));
        // Else the letters are let go, and the thread with them.
        eventually(|| turns.is_finished())
    });
    assert!(is_over, "its orders wait for the gateway");
    assert_eq!(told(), (vec![0, 2, 4, 6, 8, 10], vec![3, 5, 7, 9, 11]), "once and in order");
    (LETTERS..LETTERS + 4).for_each(put);
    admitted(&mut duty, &mut client, &started, 1);
    assert_eq!(told(), (vec![12, 14], vec![13, 15]));
    keeper.stop();
}

#[test]
fn of_many_ends_that_are_owed_so_many_are_tried_again_in_a_turn() {
    let folder = tempfile::tempdir().unwrap();
    let (mut duty, keeper, _clients) = serves_two(folder.path(), 0);
    let end = |session: u32| ConnectionEnded {
        ended_session: SessionId(session),
        ended_epoch: Epoch(1),
        ..Default::default()
    };
    duty.ends_owed.extend((1..=21).map(end));
    for (left, done) in [(21, 8), (13, 8), (5, 5), (0, 0)] {
        assert_eq!(duty.ends_owed.len(), left);
        assert_eq!(duty.work(), done, "it is work, so that no turn without any follows");
    }
    keeper.stop();
}

#[test]
fn whoever_comes_next_is_found_first() {
    let all = [true, false, true];
    let found = [0, 1, 2, 3, 4, usize::MAX].map(|from| first_from(&all, from, |one| *one));
    assert_eq!(found, [0, 2, 2, 0, 2, 0].map(Some));
    assert_eq!(first_from(&[false; 3], 1, |one| *one), None);
    assert_eq!(first_from(&[true; 0], 0, |one| *one), None);
}
