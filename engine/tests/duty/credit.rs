//! Clients that do not read: what was taken is answered, what did not fit is announced, and nobody
//! else waits.

use super::client::{Client, Reply, limit};
use super::failure::run_thread;
use super::record::{Transaction, of_session, own_side, transactions};
use super::venue::Venue;
use crate::patience::eventually;
use crate::split_mix::SplitMix64;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use touchline_protocol::message::command::{CancelOrder, NewOrder};
use touchline_protocol::message::decode::{self, Event};
use touchline_protocol::message::enums::{Lane, Role, Side, TimeInForce};
use touchline_protocol::units::{OrderId, SymbolId};

/// The smallest reply ring: full after a few aggressors.
const FEW_SLOTS: usize = 1024;

/// A reply that a client is owed.
struct Owed {
    sequence: u64,
    /// Its transaction; none for a reject.
    transaction: Option<(u64, u64)>,
    terminal: bool,
    event: Vec<u8>,
}

/// All replies that a session with commands 1 to `last` is owed, in order.
fn owed(commands: &BTreeMap<u64, Vec<Transaction>>, last: u64) -> Vec<Owed> {
    let mut all = Vec::new();
    let mut accounts =
        commands.values().flatten().flat_map(|part| &part.events).filter_map(|event| {
            match decode::event(event).unwrap() {
                Event::OrderAccepted(accepted) => Some(accepted.account),
                _ => None,
            }
        });
    let account = accounts.next().expect("it placed an order");
    for sequence in 1..=last {
        let Some(parts) = commands.get(&sequence) else {
            all.push(Owed { sequence, transaction: None, terminal: true, event: Vec::new() });
            continue;
        };
        assert!(!parts.last().unwrap().continues, "command {sequence} was never finished");
        for part in parts {
            for (n, event) in part.events.iter().enumerate() {
                let Some(event) = own_side(event, account) else { continue };
                all.push(Owed {
                    sequence,
                    transaction: Some((part.start, part.end)),
                    terminal: n + 1 == part.events.len() && !part.continues,
                    event,
                });
            }
        }
    }
    all
}

/// Checks that `replies` are what is owed, in order, but for non-terminal ones whose lack a gap
/// announces right before the next terminal one. Gives the number of gaps.
fn check_replies(client: &Client, owed: &[Owed], replies: &[Reply]) -> u64 {
    let (mut next, mut gaps) = (0, 0);
    let mut announced: Option<u64> = None;
    let mut told_until = 0;
    for reply in replies {
        if let Event::Gap(gap) = reply.event() {
            assert!(!reply.is_terminal() && announced.is_none(), "two gaps before one reply");
            let missing = &owed[next];
            let (start, _) = missing.transaction.expect("a reject never misses");
            assert!(!missing.terminal, "a terminal reply is missing");
            assert!(gap.from.0 <= start, "the gap begins at {}, behind {start}", gap.from);
            assert!(gap.from.0 >= told_until, "the gap begins before what was told");
            announced = Some(gap.from.0);
            gaps += 1;
            continue;
        }
        if announced.take().is_some() {
            next += owed[next..].iter().position(|one| one.terminal).unwrap();
        }
        let expected = &owed[next];
        next += 1;
        let envelope = reply.envelope;
        assert_eq!(envelope.sequence.0, expected.sequence);
        assert_eq!(envelope.correlation, client.correlation(expected.sequence));
        assert_eq!(envelope.session, client.identity().0);
        assert_eq!(reply.is_terminal(), expected.terminal, "{:?}", reply.event());
        match expected.transaction {
            Some((_, end)) => {
                assert_eq!(reply.event().bytes(), expected.event);
                assert_eq!(envelope.position.0, end);
                if reply.is_terminal() {
                    told_until = end;
                }
            }
            None => assert!(reply.reason().is_some(), "{:?}", reply.event()),
        }
    }
    assert_eq!((next, announced), (owed.len(), None), "replies are missing at the end");
    gaps
}

/// Sends one command of a mix of takers, resting orders, and what is rejected. False: no room.
fn send_any(client: &mut Client, random: &mut SplitMix64) -> bool {
    let mut order = limit(0, Side::Buy, 100, 1 + random.below(30) as i64);
    match random.below(8) {
        0 => order.price = 0,
        1 => order = limit(1, Side::Buy, 1, 1),
        2 => {
            let unknown = OrderId(u64::MAX >> 1);
            return client.try_send(CancelOrder {
                symbol: SymbolId(0),
                order_id: unknown,
                ..Default::default()
            });
        }
        _ => order.time_in_force = TimeInForce::Ioc.to_wire(),
    }
    client.try_send(order)
}

#[test]
fn a_client_that_reads_late_gets_one_answer_each_and_a_gap_for_what_is_missing() {
    let mut gaps = 0;
    for seed in 1..=3 {
        let mut random = SplitMix64(seed);
        let mut venue = Venue::new("messages_per_turn = 8\npending_per_turn = 2", "max_steps = 7");
        let mut late = venue.try_open("late", (Role::Trader, Lane::Hot, 1), FEW_SLOTS).unwrap();
        let mut prompt = venue.trader("prompt", 2);
        let (mut late_replies, mut prompt_replies) = (Vec::new(), Vec::new());
        let mut waited = 0;
        for _ in 0..300 {
            for _ in 0..40 {
                prompt.try_send(limit(0, Side::Sell, 100, 1));
            }
            while send_any(&mut late, &mut random) {}
            for _ in 0..1 + random.below(6) {
                venue.duty.turn();
                waited += u32::from(late.end.output.free_slots(1024).unwrap() < 3);
            }
            prompt_replies.extend(prompt.read());
            if random.below(6) == 0 {
                let some = random.below(300) as usize;
                late_replies.extend(late.read_some(some));
            }
        }
        assert!(waited > 50, "the commands of the late client never waited");
        while late_replies.last().is_none_or(|reply: &Reply| {
            !reply.is_terminal() || reply.envelope.sequence.0 < late.sequence()
        }) {
            venue.settle();
            let read = late.read();
            assert!(!read.is_empty(), "a taken command is not answered");
            late_replies.extend(read);
        }
        venue.settle();
        prompt_replies.extend(prompt.read());
        let data = venue.folder.path();
        let of = |client: &Client| owed(&of_session(data, client.identity().0), client.sequence());
        gaps += check_replies(&late, &of(&late), &late_replies);
        assert_eq!(check_replies(&prompt, &of(&prompt), &prompt_replies), 0, "a prompt reader");
        assert_eq!(venue.closed(), []);
        venue.duty.core().validate().unwrap();
    }
    assert!(gaps > 30, "{gaps} gaps");
}

/// Replies of one slot each that a ring of [`FEW_SLOTS`] takes: the next command, if its answer were
/// the largest and a gap came before it, would not fit.
const FULL: usize = FEW_SLOTS - 3;

/// Sends commands that are rejected, one reply slot each, until no more of them are taken; nothing
/// is left in the request ring.
fn fill_replies(venue: &mut Venue, client: &mut Client) {
    for _ in 0..FULL {
        if !client.try_send(unknown_symbol()) {
            venue.settle();
            client.send(unknown_symbol());
        }
    }
    venue.settle();
}

/// An order that is rejected: an answer of one slot, and nothing in the log.
fn unknown_symbol() -> NewOrder {
    limit(7, Side::Buy, 1, 1)
}

#[test]
fn who_sends_and_never_reads_is_given_up_and_others_are_left_alone() {
    let mut venue = Venue::new("reader_stall_seconds = 1", "");
    let mut open =
        |name: &str, key| venue.try_open(name, (Role::Trader, Lane::Hot, key), FEW_SLOTS).unwrap();
    let (mut silent, mut stalled) = (open("silent", 1), open("stalled", 2));
    let (mut slow, mut honest) = (open("slow", 2), open("honest", 3));
    fill_replies(&mut venue, &mut silent);
    fill_replies(&mut venue, &mut slow);
    for _ in 0..100 {
        assert_eq!(venue.duty.turn(), 0, "a client that neither reads nor sends costs turns");
    }

    honest.send(unknown_symbol());
    venue.settle();
    let before_stall = honest.read_one().envelope.time_ns;
    fill_replies(&mut venue, &mut stalled);
    stalled.send(limit(0, Side::Buy, 1, 1));
    let closed = loop {
        while slow.try_send(unknown_symbol()) {}
        let sequence = honest.send(unknown_symbol());
        venue.settle();
        let answer = honest.read_one().envelope;
        assert_eq!(answer.sequence.0, sequence, "an honest client waits");
        // A consumer gives slots back by the 32, and no sooner than that.
        assert_eq!(slow.read_some(32).len(), 32, "a slow reader waits");
        let closed = venue.closed();
        assert!(answer.time_ns - before_stall < 60_000_000_000, "it is never given up");
        if !closed.is_empty() {
            break closed;
        }
    };
    let (session, epoch) = stalled.identity();
    assert_eq!(closed.len(), 1, "{closed:?}");
    assert_eq!((closed[0].0, closed[0].1), (session, epoch));
    assert!(closed[0].2.contains("read"), "{}", closed[0].2);
    // The answer that came in the same turns may be older than the end of the connection.
    let mut given_up = u64::MAX;
    for transaction in transactions(venue.folder.path()) {
        assert_ne!(transaction.owner.0, session, "a command without credit is in the log");
        if transaction.command == "ConnectionEnded" {
            given_up = given_up.min(transaction.time_ns);
        }
    }
    assert_ne!(given_up, u64::MAX, "the end of the connection is in the log");
    assert!(given_up - before_stall >= 1_000_000_000, "given up too soon");
    assert_eq!(stalled.count_answers(), FULL as u64, "what was taken was answered");

    venue.disconnect(&slow);
    venue.settle();
    for _ in 0..100 {
        assert_eq!(venue.duty.turn(), 0);
    }
    assert_eq!(silent.count_answers(), FULL as u64);
    let sequence = silent.send(unknown_symbol());
    venue.settle();
    assert_eq!(silent.read_one().envelope.sequence.0, sequence, "who is silent stays connected");
}

#[test]
fn a_pause_of_the_machine_is_no_stall_of_a_reader() {
    let mut venue = Venue::new("reader_stall_seconds = 1", "");
    let mut client = venue.try_open("client", (Role::Trader, Lane::Hot, 1), FEW_SLOTS).unwrap();
    fill_replies(&mut venue, &mut client);
    client.send(unknown_symbol());
    assert_eq!(venue.duty.turn(), 0, "its reader stands still from now on");
    thread::sleep(Duration::from_millis(1500));
    venue.duty.turn();
    assert_eq!(venue.closed(), [], "it could not have read meanwhile");
    assert_eq!(client.count_answers(), FULL as u64);
    assert!(eventually(|| {
        venue.duty.turn();
        client.count_answers() == 1
    }));
    assert_eq!(venue.closed(), []);
}

#[test]
fn who_has_no_credit_wakes_nobody() {
    let mut venue = Venue::new("reader_stall_seconds = 60", "");
    let mut silent = venue.try_open("silent", (Role::Trader, Lane::Hot, 1), FEW_SLOTS).unwrap();
    let mut honest = venue.trader("honest", 2);
    fill_replies(&mut venue, &mut silent);
    silent.send(unknown_symbol());
    venue.settle();
    run_thread(venue, |sleeps| {
        for _ in 0..20 {
            assert!(sleeps(), "a command without credit keeps the thread awake");
            assert!(
                !silent.end.signals.wake_peer(),
                "the thread is woken for what it does not take"
            );
        }
        honest.send(unknown_symbol());
        honest.end.signals.wake_peer();
        assert!(eventually(|| honest.count_answers() == 1));
        let requests = &mut silent.end.output;
        assert_ne!(requests.consumed().unwrap(), requests.published(), "it was taken on no credit");
        // The thread may be awake still, and take it as soon as there is room.
        assert_eq!(silent.read_some(FULL).len(), FULL);
        assert!(eventually(|| silent.count_answers() == 1), "its reader has caught up");
    });
}
