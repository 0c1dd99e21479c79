//! The in-flight contract of `protocol/FORMATS.md`, case by case: what a client knows after each kind of
//! failure, and that nothing it sends again happens twice.

use super::binary::{KEY_A, KEY_B};
use super::process::WATCHDOG;
use super::stream_client::{Member, address, arguments, limit, options, over_epoll, unix};
use super::venue::{Part, Venue};
use crate::patience::{Wait, eventually, until_still};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};
use touchline_protocol::client::{
    Acknowledgement, Back, CallError, Client, ClientOptions, ConnectError, Endpoint, Notice,
    SteadyClient, Told,
};
use touchline_protocol::log::control::LogState;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{RejectReason, Side, TimeInForce};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{KeyId, Sequence};

fn shared(venue: &Venue) -> Endpoint {
    Endpoint::SharedMemory(venue.data().join("engine.sock"))
}

fn tcp(venue: &mut Venue) -> Endpoint {
    Endpoint::Tcp(address(&venue.part(Part::Engine).lines()))
}

/// An order that can be told from all others.
fn numbered(number: usize) -> NewOrder {
    let name = format!("order-{number}");
    let client_order_id = ClientOrderId::new(&name).expect("a short name");
    let mut order = NewOrder { client_order_id, ..limit(Side::Buy, 10, 1) };
    order.command.key_id = KeyId(KEY_A);
    order.command.correlation = number as u64;
    order
}

/// The names of what the account has open.
fn open_orders(venue: &Venue) -> Vec<String> {
    let mut reader = Member::connect(unix(venue), "reader", (KEY_A, &venue.key_a()));
    reader.client.sender().request_state(1).expect("it is connected");
    let (_, notices) = reader.until(|notice| matches!(notice, Notice::State(_)));
    let name = |notice: &Notice| match notice {
        Notice::Order(order) => Some(order.client_order_id.as_str().to_owned()),
        _ => None,
    };
    notices.iter().filter_map(name).collect()
}

/// Sends orders, kills the engine in the middle, and goes on until each is decided.
fn through_a_kill(venue: &mut Venue, options: ClientOptions, count: usize, lose_window: bool) {
    let durable = options.acknowledgement == Acknowledgement::Durable;
    let mut client = SteadyClient::connect(options).expect("an honest client is let in");
    let begin = Instant::now();
    let mut answered = BTreeSet::new();
    let mut is_killed = false;
    let mut returns = 0;
    let (first, rest) = (0..count / 2, count / 2..count);
    let send = |client: &mut SteadyClient, numbers: Range<usize>| {
        numbers.for_each(|number| {
            client.send(&mut numbered(number)).expect("there is room");
        });
    };
    send(&mut client, first);
    while client.undecided() > 0 {
        if answered.len() >= 10 && !is_killed {
            is_killed = true;
            venue.kill9(Part::Engine);
            if lose_window {
                venue.lose_live_window();
            }
            send(&mut client, rest.clone());
            venue.start_engine();
        }
        match client.poll() {
            Ok(Some(Told::Reply(reply))) => match reply.event.event() {
                Ok(Event::Rejected(rejected)) => panic!("{rejected:?}"),
                _ if reply.is_terminal() => {
                    assert!(answered.insert(reply.envelope.sequence), "two answers to one");
                }
                _ => {}
            },
            Ok(Some(Told::Connection(Back::Returned { decided, .. }))) => {
                returns += 1;
                answered.extend(decided);
            }
            Ok(Some(_)) => {}
            Ok(None) => client.wait(Duration::from_millis(600)),
            Err(ConnectError::HistoryLost { .. }) => {
                // A power cut may take back what was only appended, and it is told.
                assert!(lose_window && !durable, "nothing durable is ever lost");
                client.accept_history_loss();
            }
            Err(error) => panic!("{error}"),
        }
        assert!(begin.elapsed() < WATCHDOG, "{} are undecided", client.undecided());
    }
    assert!(is_killed && returns == 1);
    let expected: BTreeSet<Sequence> = (1..=count as u64).map(Sequence).collect();
    assert_eq!(answered, expected, "each command has an answer");
    if lose_window && !durable {
        return;
    }
    let open = open_orders(venue);
    let distinct: BTreeSet<&String> = open.iter().collect();
    assert_eq!((open.len(), distinct.len()), (count, count), "each is there once");
}

/// At either level, over rings and over a socket, to a venue of its own each.
fn in_each_way(through: impl Fn(&mut Venue, ClientOptions)) {
    for acknowledgement in [Acknowledgement::Appended, Acknowledgement::Durable] {
        for endpoint in [shared, unix] {
            let mut venue = Venue::separate(&arguments(&[]));
            let mut wishes = options(endpoint(&venue), "steady", (KEY_A, &venue.key_a()));
            wishes.acknowledgement = acknowledgement;
            through(&mut venue, wishes);
        }
    }
}

#[test]
fn an_engine_killed_in_the_middle_does_everything_once() {
    in_each_way(|venue, wishes| through_a_kill(venue, wishes, 150, false));
}

/// More orders than there is room for on the way to the engine.
const ORDERS: Range<usize> = 0..20_000;

/// An order that leaves nothing behind, of which there may be any number.
fn immediate(number: usize) -> NewOrder {
    NewOrder { time_in_force: TimeInForce::Ioc.to_wire(), ..numbered(number) }
}

/// Waits until the engine decides nothing more: as many answers as may wait for a client do.
fn until_it_waits(venue: &Venue) {
    let log = LogReader::open(venue.data(), Follow::Durable).expect("the venue has a log");
    let appended = || log.signs_of_life().expect("it runs").appended;
    assert!(until_still(appended), "it goes on without an end");
}

/// Tells the engine to end, and waits until its log is closed.
fn close_log(venue: &mut Venue, looks: &mut Looks) {
    let log = LogReader::open(venue.data(), Follow::Durable).expect("the venue has a log");
    venue.part(Part::Engine).signal(Signal::TERM);
    let is_closed = || {
        looks.note();
        log.state() == Some(LogState::Stopped)
    };
    assert!(eventually(is_closed), "the log is not closed");
}

/// How long a test stands still between two looks from the engine's end on: who does not read for a second is given up,
/// by rights, and nothing is shown of an attempt in which the machine let the test do nothing for half of that.
struct Looks {
    last: Instant,
    longest: Duration,
}

impl Looks {
    fn begin() -> Self {
        Self { last: Instant::now(), longest: Duration::ZERO }
    }

    fn note(&mut self) {
        self.longest = self.longest.max(self.last.elapsed());
        self.last = Instant::now();
    }

    fn were_steady(&self) -> bool {
        self.longest < Duration::from_millis(500)
    }
}

/// What comes of the first attempt in which the test looked steadily: of what it gives with its looks.
fn while_looking<T>(mut attempt: impl FnMut() -> (T, Looks)) -> T {
    const ATTEMPTS: u32 = 10;
    for _ in 0..ATTEMPTS {
        let (outcome, looks) = attempt();
        if looks.were_steady() {
            return outcome;
        }
    }
    panic!("the machine stood still in each of {ATTEMPTS} attempts")
}

/// Sends orders, stops the engine in the middle, and comes back: gives what was decided without an answer.
fn through_a_stop(venue: &mut Venue, options: ClientOptions) -> (Vec<Sequence>, Looks) {
    let mut looks = Looks::begin();
    let mut client = SteadyClient::connect(options).expect("an honest client is let in");
    let begin = Instant::now();
    for mut order in ORDERS.map(immediate) {
        client.send(&mut order).expect("there is room");
    }
    let (mut is_stopped, mut is_lost) = (false, false);
    let mut further = ORDERS.end..;
    loop {
        if client.undecided() < ORDERS.len() - 10 && !is_stopped {
            is_stopped = true;
            // Of the answers that wait for a client some still do when the log is closed.
            until_it_waits(venue);
            looks = Looks::begin();
            close_log(venue, &mut looks);
        }
        // On a loaded machine a whole queue may be decided before the engine hears that it is to end.
        while is_stopped && client.undecided() < ORDERS.len() / 2 {
            let mut order = immediate(further.next().expect("no end"));
            client.send(&mut order).expect("there is room");
        }
        if is_stopped && !is_lost {
            looks.note();
        }
        match client.poll() {
            Ok(Some(Told::Connection(Back::Lost(_)))) => {
                is_lost = true;
                let undecided = client.undecided();
                assert!(
                    is_stopped && undecided > 0,
                    "stopped: {is_stopped}, undecided: {undecided}"
                );
                assert!(venue.part(Part::Engine).wait_for_end().success());
                venue.start_engine();
            }
            Ok(Some(Told::Connection(Back::Returned { decided, .. }))) => return (decided, looks),
            Ok(Some(_)) => {}
            Ok(None) => client.wait(Duration::from_millis(50)),
            Err(error) => panic!("{error}"),
        }
        assert!(begin.elapsed() < WATCHDOG, "{} are undecided", client.undecided());
    }
}

#[test]
fn an_engine_that_is_stopped_has_answered_what_it_has_decided() {
    in_each_way(|venue, wishes| {
        let acknowledgement = wishes.acknowledgement;
        let lost = while_looking(|| through_a_stop(venue, wishes.clone()));
        assert_eq!(lost, [], "{acknowledgement:?}: answers are lost");
    });
}

/// Sends orders over TCP, stops the engine in the middle: gives how many were answered, and how many decided.
fn over_tcp_through_a_stop(venue: &mut Venue, name: &str) -> ((u64, u64), Looks) {
    let wishes = options(tcp(venue), name, (KEY_A, &venue.key_a()));
    let mut client = Client::connect(&wishes).expect("an honest client is let in");
    for mut order in ORDERS.map(immediate) {
        client.sender().send(&mut order).expect("there is room");
    }
    // The gateway has passed on as much as there is room for, and reads no more.
    until_it_waits(venue);
    let mut looks = Looks::begin();
    close_log(venue, &mut looks);
    let begin = Instant::now();
    let mut answered = 0;
    loop {
        looks.note();
        match client.receiver().poll() {
            Ok(Some(reply)) => answered += u64::from(reply.is_terminal()),
            Ok(None) => client.receiver().wait(Duration::from_millis(50)),
            Err(_) => break,
        }
        assert!(begin.elapsed() < WATCHDOG, "{answered} are answered, and there is no end");
    }
    drop(client);
    assert!(venue.part(Part::Engine).wait_for_end().success());
    venue.start_engine();
    let wishes = options(shared(venue), name, (KEY_A, &venue.key_a()));
    let member = Member::open(&wishes).expect("it is let in again");
    ((answered, member.client.welcome().last_sequence.0), looks)
}

#[test]
fn what_a_stopped_engine_has_answered_arrives_over_tcp_though_commands_are_left() {
    let mut venue = Venue::separate(&arguments(&[]));
    let mut names = 0..;
    for _ in 0..2 {
        let (answered, decided) = while_looking(|| {
            let name = format!("try-{}", names.next().expect("no end"));
            over_tcp_through_a_stop(&mut venue, &name)
        });
        assert_eq!(answered, decided, "answered of decided");
        assert!(decided < ORDERS.len() as u64, "no command is left");
    }
}

#[test]
fn a_power_cut_takes_back_nothing_durable_and_tells_what_else() {
    for acknowledgement in [Acknowledgement::Appended, Acknowledgement::Durable] {
        let mut venue = Venue::separate(&arguments(&[]));
        let mut wishes = options(unix(&venue), "steady", (KEY_A, &venue.key_a()));
        wishes.acknowledgement = acknowledgement;
        through_a_kill(&mut venue, wishes, 150, true);
    }
}

/// Each return of one throws the other out, and is a transaction of the log. That it comes ever later is what the client
/// does by its clock.
#[test]
fn two_clients_of_one_session_throw_each_other_out() {
    let venue = Venue::separate(&arguments(&[]));
    let wishes = options(unix(&venue), "twins", (KEY_A, &venue.key_a()));
    let mut twins = [wishes.clone(), wishes].map(|wishes| {
        SteadyClient::connect(wishes).expect("who comes later takes the session over")
    });
    let wait = Wait::begin();
    let mut losses = [0, 0];
    while losses.iter().any(|&count| count < 2) {
        wait.go_on(format_args!("they leave each other alone: {losses:?}"));
        for (twin, losses) in twins.iter_mut().zip(&mut losses) {
            let told = twin.poll().expect("nothing that an attempt would not mend");
            *losses += u32::from(matches!(told, Some(Told::Connection(Back::Lost(_)))));
            twin.wait(Duration::from_millis(1));
        }
    }
}

#[test]
fn what_is_sent_again_is_decided_once() {
    let mut venue = Venue::separate(&arguments(&[]));
    for (endpoint, name) in [(shared(&venue), "memory"), (tcp(&mut venue), "tcp")] {
        let wishes = options(endpoint, name, (KEY_A, &venue.key_a()));
        let mut member = Member::open(&wishes).expect("an honest client is let in");
        member.place(limit(Side::Buy, 10, 1));
        // Rejected: nothing is decided under its sequence, and it may be sent again.
        let wrong = member.call(NewOrder { price: 0, ..limit(Side::Buy, 10, 1) });
        assert!(matches!(wrong, Err(CallError::Rejected { .. })));
        drop(member);
        let mut member = Member::open(&wishes).expect("it is let in again");
        assert_eq!(member.client.welcome().last_sequence, Sequence(1));
        for (sequence, expected) in [
            (1, Some(RejectReason::DuplicateSequence)),
            (2, None),
            (2, Some(RejectReason::DuplicateSequence)),
            (9, None),
            (5, Some(RejectReason::DuplicateSequence)),
        ] {
            let mut order = limit(Side::Buy, 10, 1);
            order.command.key_id = KeyId(KEY_A);
            let sender = member.client.sender();
            sender.stage_as(&mut order, Sequence(sequence)).expect("there is room");
            sender.publish();
            let reply = member.wait_for(touchline_protocol::client::Reply::is_terminal);
            let reason = match reply.event.event() {
                Ok(Event::Rejected(rejected)) => RejectReason::from_wire(rejected.reason),
                _ => None,
            };
            assert_eq!(reason, expected, "sequence {sequence}");
        }
        drop(member);
    }
    assert_eq!(open_orders(&venue).len(), 2 * 3, "three orders over each carrier");
}

/// The connection dies and the engine does not: what was not taken is given up, the rest is decided.
#[test]
fn a_lost_connection_leaves_a_prefix_decided() {
    let mut venue = Venue::separate(&arguments(&[]));
    for (endpoint, name) in [(shared(&venue), "memory"), (tcp(&mut venue), "tcp")] {
        let wishes = options(endpoint, name, (KEY_A, &venue.key_a()));
        let mut member = Member::open(&wishes).expect("an honest client is let in");
        for number in 0..50 {
            let mut order = NewOrder { client_order_id: Default::default(), ..numbered(number) };
            member.client.sender().send(&mut order).expect("there is room");
        }
        drop(member);
        let member = Member::open(&wishes).expect("it is let in again");
        let decided = member.client.welcome().last_sequence.0;
        assert!(decided <= 50);
        let open = open_orders(&venue).len() as u64;
        drop(member);
        // Of the second carrier the first one's orders are there too: all 50 of it were made up for.
        assert!(open >= decided);
        let mut member = Member::open(&wishes).expect("it is let in again");
        for _ in decided..50 {
            member.place(limit(Side::Buy, 10, 1));
        }
    }
    assert_eq!(open_orders(&venue).len(), 100);
}

/// A command that comes too late, or under another connection's name, is rejected and nothing happens.
#[test]
fn a_command_that_is_of_no_use_any_more_changes_nothing() {
    let mut venue = Venue::separate(&arguments(&[]));
    for (endpoint, name) in [(shared(&venue), "memory"), (tcp(&mut venue), "tcp")] {
        let wishes = options(endpoint, name, (KEY_A, &venue.key_a()));
        let mut member = Member::open(&wishes).expect("an honest client is let in");
        let mut late = limit(Side::Buy, 10, 1);
        late.command.not_after_ns = 1;
        let rejected = member.call(late);
        assert!(
            matches!(rejected, Err(CallError::Rejected { reason: RejectReason::TooLate, .. })),
            "{rejected:?}"
        );
        drop(member);
        let mut member = Member::open(&wishes).expect("it is let in again");
        assert_eq!(member.client.welcome().last_sequence, Sequence(0), "nothing was decided");
        // The same sequence again, in time.
        let mut order = limit(Side::Buy, 10, 1);
        order.command.key_id = KeyId(KEY_A);
        let sender = member.client.sender();
        sender.stage_as(&mut order, Sequence(1)).expect("there is room");
        sender.publish();
        let reply = member.wait_for(touchline_protocol::client::Reply::is_terminal);
        assert!(matches!(reply.event.event(), Ok(Event::OrderResult(_))));
    }
    assert_eq!(open_orders(&venue).len(), 2, "one order over each carrier");
}

/// A fill while the connection is lost, and one behind the logon that a replay tells as well.
#[test]
fn what_was_missed_and_what_came_live_behind_it_is_counted_once() {
    let mut venue = Venue::separate(&arguments(&[]));
    let (a, b) = (venue.key_a(), venue.key_b());
    let wishes = options(unix(&venue), "steady", (KEY_A, &a));
    let mut steady = SteadyClient::connect(wishes).expect("an honest client is let in");
    let begin = Instant::now();
    let tell = |steady: &mut SteadyClient| loop {
        assert!(begin.elapsed() < WATCHDOG, "nothing comes");
        match steady.poll().expect("nothing that an attempt would not mend") {
            Some(told) => return told,
            None => steady.wait(Duration::from_millis(600)),
        }
    };
    steady
        .send(&mut NewOrder { quantity: 3 * limit(Side::Buy, 10, 1).quantity, ..numbered(0) })
        .expect("there is room");
    while !matches!(tell(&mut steady), Told::Reply(reply) if reply.is_terminal()) {}
    venue.kill9(Part::Engine);
    venue.start_engine();
    let mut taker = Member::connect(unix(&venue), "taker", (KEY_B, &b));
    taker.place(limit(Side::Sell, 10, 1));
    let gap = loop {
        match tell(&mut steady) {
            Told::Connection(Back::Returned { missed, .. }) => break missed,
            Told::Reply(reply) => panic!("{reply:?}"),
            _ => {}
        }
    };
    let [gap] = gap[..] else { panic!("{gap:?}") };
    taker.place(limit(Side::Sell, 10, 1));
    steady.request_replay(7, gap.from).expect("it is connected");
    let (mut live, mut replayed, mut has_ended) = (0, Vec::new(), false);
    while live == 0 || !has_ended {
        match tell(&mut steady) {
            Told::Notice(Notice::Replayed(_)) => has_ended = true,
            Told::Reply(reply) if matches!(reply.event.event(), Ok(Event::Trade(_))) => {
                if reply.is_replayed() {
                    replayed.push(reply.envelope.position);
                } else {
                    live += 1;
                }
            }
            _ => {}
        }
    }
    assert_eq!((live, replayed.len()), (1, 2), "{replayed:?}");
    replayed.retain(|position| *position <= gap.to);
    assert_eq!(replayed.len(), 1, "what came live is behind {gap:?}");
}

/// The place of a lost connection is taken by somebody else, who leaves it later.
#[test]
fn a_client_that_finds_no_place_tries_again_until_there_is_one() {
    let mut venue = Venue::separate(&arguments(&["gateway.sessions=1"]));
    let a = venue.key_a();
    let wishes = options(unix(&venue), "steady", (KEY_A, &a));
    let mut steady = SteadyClient::connect(wishes).expect("an honest client is let in");
    venue.kill9(Part::Engine);
    venue.start_engine();
    let mut other = Some(Member::connect(unix(&venue), "other", (KEY_A, &a)));
    let (mut turns, begin) = (0, Instant::now());
    loop {
        match steady.poll() {
            Ok(Some(Told::Connection(Back::Returned { .. }))) => break,
            Ok(_) => steady.wait(Duration::from_millis(60)),
            Err(error) => panic!("{error}"),
        }
        assert!(begin.elapsed() < WATCHDOG, "it does not come back");
        turns += 1;
        if turns < 5 {
            let third = Member::open(&options(unix(&venue), "third", (KEY_A, &a))).err();
            let reason = Some(RefusalReason::TooManySessions);
            assert!(
                matches!(&third, Some(ConnectError::Refused { reason: found, .. }) if *found == reason),
                "{third:?}"
            );
        } else {
            other = None;
        }
    }
    assert!(other.is_none(), "there was no place before");
}

over_epoll!(
    an_engine_that_is_stopped_has_answered_what_it_has_decided,
    what_a_stopped_engine_has_answered_arrives_over_tcp_though_commands_are_left,
);
