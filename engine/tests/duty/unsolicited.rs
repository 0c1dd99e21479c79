//! What others do to a session's orders: told to whom it concerns, in the log's order and once each,
//! and never at the cost of the replies of who is told.

use super::client::{Client, Reply, limit, list};
use super::record::{Transaction, own_side, transactions};
use super::streams;
use super::venue::Venue;
use crate::patience::Wait;
use crate::split_mix::SplitMix64;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{self, Event};
use touchline_protocol::message::enums::{CancelScope, Lane, OrderStatus, OrderType, Role, Side};
use touchline_protocol::units::*;

const ONE: SymbolId = SymbolId(0);
const WHOLE: i64 = 100_000_000;

/// A letter for each message.
pub(super) fn names<'reply>(replies: impl IntoIterator<Item = &'reply Reply>) -> String {
    let of = |reply: &Reply| match reply.event() {
        Event::OrderAccepted(_) => 'A',
        Event::Trade(_) => 'T',
        Event::OrderResult(_) => 'R',
        Event::OrderCanceled(_) => 'C',
        Event::OrderTriggered(_) => 'S',
        Event::OrderListChanged(_) => 'L',
        Event::OrderContinues(_) => '+',
        Event::Gap(_) => 'G',
        Event::OrderOpened(_) => 'O',
        Event::OrderClosed(_) => 'c',
        Event::OrderFilled(_) => 'f',
        Event::OrderRefilled(_) => 'F',
        Event::SelfTradePrevented(_) => 'P',
        other => panic!("{other:?}"),
    };
    replies.into_iter().map(of).collect()
}

/// Checks that what was told is no reply, and of the transaction that `of` answers.
fn check_envelopes(client: &Client, told: &[Reply], of: &Reply) {
    for event in told {
        let envelope = event.envelope;
        assert!(event.is_unsolicited() && !event.is_terminal());
        assert_eq!((envelope.correlation, envelope.sequence.0), (0, 0));
        assert_eq!(envelope.session, client.identity().0);
        assert_eq!(envelope.position, of.envelope.position);
        assert_eq!(envelope.time_ns, of.envelope.time_ns);
    }
}

pub(super) fn send<C: touchline_protocol::client::ClientCommand>(
    venue: &mut Venue,
    client: &mut Client,
    command: C,
) -> Vec<Reply> {
    client.send(command);
    venue.settle();
    client.read()
}

#[test]
fn a_maker_is_told_of_each_fill_and_nobody_else_is() {
    let mut venue = Venue::new("", "");
    let mut taker = venue.trader("taker", 1);
    let mut maker = venue.trader("maker", 2);
    let mut third = venue.trader("third", 3);
    send(&mut venue, &mut maker, limit(0, Side::Sell, 100, 3));
    for (quantity, remaining) in [(1, 2), (2, 0)] {
        let replies = send(&mut venue, &mut taker, limit(0, Side::Buy, 100, quantity));
        let told = maker.told();
        assert_eq!(names(&told), "T");
        check_envelopes(&maker, &told, &replies[0]);
        let (Event::Trade(for_maker), Event::Trade(for_taker)) =
            (told[0].event(), replies[1].event())
        else {
            unreachable!()
        };
        assert_eq!(for_maker.trade_id, for_taker.trade_id);
        assert_eq!(for_maker.maker_remaining, remaining * WHOLE);
        // Each its own side.
        assert_eq!(for_maker.taker_account, AccountId::UNDISCLOSED);
        assert_eq!(for_taker.maker_account, AccountId::UNDISCLOSED);
        assert_eq!(for_taker.maker_remaining, -1);
        assert_ne!(for_maker.maker_account, for_taker.taker_account);
    }
    // What is left of an aggressor rests, and is then a maker itself.
    send(&mut venue, &mut taker, limit(0, Side::Buy, 90, 1));
    send(&mut venue, &mut maker, limit(0, Side::Sell, 90, 3));
    assert_eq!(names(&taker.told()), "T");
    assert_eq!(names(&maker.told()), "");
    assert_eq!(names(&third.told()), "");
}

#[test]
fn a_session_that_trades_with_itself_gets_replies_only() {
    let mut venue = Venue::new("", "");
    let mut both = venue.trader("both", 1);
    send(&mut venue, &mut both, limit(0, Side::Sell, 100, 1));
    assert_eq!(names(&send(&mut venue, &mut both, limit(0, Side::Buy, 100, 1))), "ATR");
    assert_eq!(names(&both.told()), "");
}

#[test]
fn who_placed_a_stop_is_told_that_it_fires_and_what_it_does_then() {
    let mut venue = Venue::new("", "");
    let mut bidder = venue.trader("bidder", 1);
    let mut owner = venue.trader("owner", 2);
    let mut third = venue.trader("third", 3);
    let stop = NewOrder {
        order_type: OrderType::StopLoss.to_wire(),
        time_in_force: 0,
        stop_price: 100 * WHOLE,
        ..limit(0, Side::Sell, 0, 1)
    };
    send(&mut venue, &mut owner, stop);
    send(&mut venue, &mut bidder, limit(0, Side::Buy, 100, 2));
    send(&mut venue, &mut third, limit(0, Side::Sell, 100, 1));
    assert_eq!(names(&owner.told()), "STR");
    assert_eq!(names(&bidder.told()), "TT", "the stop's trade too");
    assert_eq!(names(&third.told()), "", "whatever its trade set off");
}

#[test]
fn who_placed_a_list_is_told_of_its_other_leg() {
    let mut venue = Venue::new("", "");
    let mut taker = venue.trader("taker", 1);
    let mut owner = venue.trader("owner", 2);
    send(&mut venue, &mut owner, limit(0, Side::Buy, 100, 1));
    send(&mut venue, &mut taker, limit(0, Side::Sell, 100, 1));
    assert_eq!(names(&owner.told()), "T");
    assert_eq!(names(&send(&mut venue, &mut owner, list())), "AAL");
    let replies = send(&mut venue, &mut taker, limit(0, Side::Buy, 110, 1));
    let told = owner.told();
    assert_eq!(names(&told), "TCL");
    check_envelopes(&owner, &told, &replies[0]);
    let Event::OrderCanceled(stop) = told[1].event() else { unreachable!() };
    assert_eq!(stop.status, OrderStatus::Expired.to_wire());
}

/// Cancels by another than who placed the orders: each is told to who placed it.
#[test]
fn who_placed_an_order_is_told_that_another_cancels_it() {
    let mut venue = Venue::new("", "");
    let mut owner = venue.trader("owner", 1);
    let mut other = venue.trader("other", 1);
    let mut foreign = venue.trader("foreign", 2);
    let mut admin = venue.cold("admin", Role::Admin);
    let mut rest = |venue: &mut Venue| {
        for client in [&mut owner, &mut other, &mut foreign] {
            send(venue, client, limit(0, Side::Buy, 100, 1));
        }
        [&mut owner, &mut other, &mut foreign].map(|client| names(&client.told())).concat()
    };
    let mass = MassCancel {
        symbol: SymbolId(EVERY),
        scope: CancelScope::Account.to_wire(),
        ..Default::default()
    };
    assert_eq!(rest(&mut venue), "");
    venue.settle();
    let (mut owner, mut other, mut foreign) = (owner, other, foreign);
    assert_eq!(send(&mut venue, &mut other, mass).len(), 3, "two orders and the end");
    assert_eq!(names(&owner.told()), "C");
    assert_eq!((names(&other.told()), names(&foreign.told())), (String::new(), String::new()));

    let placed = send(&mut venue, &mut owner, limit(0, Side::Buy, 100, 1));
    let Event::OrderAccepted(accepted) = placed[0].event() else { unreachable!() };
    let cancel = CancelOrder { symbol: ONE, order_id: accepted.order_id, ..Default::default() };
    send(&mut venue, &mut other, cancel);
    assert_eq!(names(&owner.told()), "C", "an order by its number");

    send(&mut venue, &mut owner, limit(0, Side::Buy, 100, 1));
    let kill = KillAccount { account: AccountId(1), killed: 1, ..Default::default() };
    send(&mut venue, &mut admin, kill);
    assert_eq!(names(&owner.told()), "C", "the kill switch");
    let expire = ExpireAll { symbol: ONE, ..Default::default() };
    send(&mut venue, &mut admin, expire);
    let told = foreign.told();
    assert_eq!(names(&told), "C", "maintenance");
    let Event::OrderCanceled(expired) = told[0].event() else { unreachable!() };
    assert_eq!(expired.status, OrderStatus::Expired.to_wire());
    assert_eq!(names(&admin.told()), "");
}

#[test]
fn what_a_lost_connection_leaves_to_be_cancelled_is_told_to_the_next_one_and_to_the_account() {
    let mut venue = Venue::new("", "");
    let mut watcher = venue.watcher("watcher", 3);
    let mut first = venue.trader_that_leaves_nothing("quitter", 3);
    send(&mut venue, &mut first, limit(0, Side::Buy, 100, 1));
    assert_eq!(names(&watcher.told()), "AR");
    let mut second = venue.trader_that_leaves_nothing("quitter", 3);
    assert_eq!(first.identity().0, second.identity().0);
    venue.settle();
    assert_eq!(names(&first.told()), "", "its connection had ended");
    assert_eq!(names(&second.told()), "C", "of the older connection's orders");
    assert_eq!(names(&watcher.told()), "C");
    send(&mut venue, &mut second, limit(0, Side::Buy, 100, 1));
    venue.disconnect(&second);
    venue.settle();
    assert_eq!(names(&watcher.told()), "ARC");
}

#[test]
fn whoever_stands_still_is_ended_as_one_that_is_gone() {
    let mut venue = Venue::new("", "");
    let mut still = venue.trader_that_leaves_nothing("still", 3);
    let mut stays = venue.trader("stays", 3);
    for client in [&mut still, &mut stays] {
        send(&mut venue, client, limit(0, Side::Buy, 100, 1));
        venue.end_silent(client);
        venue.settle();
        let (session, epoch) = client.identity();
        let why = "nothing moved for three intervals of heartbeats".to_owned();
        assert_eq!(venue.closed(), [(session, epoch, why)]);
    }
    let left = venue.duty.core().counts().open_orders;
    assert_eq!(left, 1, "the second one did not ask for its order to go too");
}

/// The revocation itself takes the orders away, before the connections that it fences are closed.
#[test]
fn who_is_fenced_is_told_nothing_of_what_that_takes_away() {
    let mut venue = Venue::new("", "");
    let mut fenced = venue.trader_that_leaves_nothing("fenced", 3);
    let mut stream = streams::open(&mut venue, "stream", 3, LOGON_CANCEL_ON_DISCONNECT);
    let mut admin = venue.cold("admin", Role::Admin);
    send(&mut venue, &mut fenced, limit(0, Side::Buy, 100, 1));
    assert!(stream.send(&mut venue, limit(0, Side::Buy, 100, 1)));
    venue.settle();
    assert_eq!(streams::read(&mut venue).len(), 2, "the order and its result");
    send(&mut venue, &mut admin, RevokeKey { key: KeyId(3), ..Default::default() });
    assert_eq!(venue.duty.core().counts().open_orders, 0);
    assert_eq!(venue.closed().len(), 2, "both connections of the key");
    assert_eq!(names(&fenced.told()), "");
    assert!(streams::read(&mut venue).is_empty());
}

#[test]
fn a_gap_in_what_the_logon_itself_took_away_begins_before_the_logon() {
    const ORDERS: i64 = 250;
    let mut venue = Venue::new("", "max_steps = 512");
    let mut first = venue.trader_that_leaves_nothing("quitter", 3);
    for price in 1..=ORDERS {
        send(&mut venue, &mut first, limit(0, Side::Buy, price, 1));
    }
    let before = venue.control.appended();
    let quitter = (Role::Trader, Lane::Hot, 3);
    let mut second =
        venue.log_on_as("quitter", quitter, LOGON_CANCEL_ON_DISCONNECT, FEW_SLOTS).unwrap();
    venue.settle();
    let told = second.told();
    assert_eq!(names(&told), "C".repeat(told.len() - 1) + "G", "not all find room");
    assert!(told[0].envelope.position > before, "the logon's own");
    let Event::Gap(gap) = told.last().unwrap().event() else { unreachable!() };
    assert!(gap.from <= before, "{gap:?}, and the logon lies behind {before}");
}

#[test]
fn all_of_an_account_is_told_to_who_asked_once_each() {
    let mut venue = Venue::new("", "");
    let mut owner = venue.trader("owner", 1);
    let mut other = venue.trader("other", 2);
    let mut watcher = venue.watcher("watcher", 1);
    let mut foreign = venue.watcher("watcher", 3);
    let placed = send(&mut venue, &mut owner, limit(0, Side::Sell, 100, 3));
    let told = watcher.told();
    assert_eq!(names(&told), "AR", "replies of another session of the account");
    check_envelopes(&watcher, &told, &placed[0]);
    send(&mut venue, &mut other, limit(0, Side::Buy, 100, 1));
    assert_eq!((names(&watcher.told()), names(&owner.told())), ("T".into(), "T".into()));
    // Both sides are the account's.
    send(&mut venue, &mut owner, limit(0, Side::Buy, 100, 2));
    assert_eq!((names(&watcher.told()), names(&owner.told())), ("ATR".into(), String::new()));
    assert_eq!((names(&other.told()), names(&foreign.told())), (String::new(), String::new()));
    venue.disconnect(&watcher);
    venue.settle();
    send(&mut venue, &mut owner, limit(0, Side::Buy, 100, 2));
    assert_eq!(names(&watcher.told()), "");
}

#[test]
fn an_adapter_is_told_nothing() {
    let mut venue = Venue::new("", "");
    let mut taker = venue.trader("taker", 1);
    let mut adapter = venue.try_open("a", (Role::Adapter, Lane::Hot, 0), 16_384).unwrap();
    let mut order = limit(0, Side::Sell, 100, 1);
    order.command = adapter.header(1);
    order.command.key_id = KeyId(2);
    adapter.push(bytemuck::bytes_of(&order));
    venue.settle();
    let placed = adapter.read();
    assert_eq!(names(&placed), "AR");
    send(&mut venue, &mut taker, limit(0, Side::Buy, 100, 1));
    assert_eq!(names(&adapter.told()), "");
}

/// What the log says that a session is to be told: trades with its resting orders, by the position
/// behind their transactions.
fn owed(log: &[Transaction], account: AccountId) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    for transaction in log {
        for event in &transaction.events {
            if let Event::Trade(trade) = decode::event(event).unwrap()
                && trade.maker_account == account
            {
                assert_ne!(trade.taker_account, account);
                all.push((transaction.end, own_side(event, account).unwrap()));
            }
        }
    }
    all
}

/// Checks that what was told is what was owed but for what the gap notices say. Gives their number.
fn check_told(owed: &[(u64, Vec<u8>)], told: &[Reply]) -> usize {
    let (mut next, mut gaps, mut said_until) = (0, 0, 0);
    for reply in told {
        let position = reply.envelope.position.0;
        if let Event::Gap(gap) = reply.event() {
            gaps += 1;
            said_until = position;
            assert!(owed[next..].first().is_some_and(|one| one.0 > gap.from.0), "no gap");
            while owed.get(next).is_some_and(|one| one.0 <= position) {
                assert!(owed[next].0 > gap.from.0, "missing before the gap");
                next += 1;
            }
            continue;
        }
        // What comes behind a gap at its own position is among what it is about.
        if position == said_until {
            assert!(owed.contains(&(position, reply.event().bytes().to_vec())));
            continue;
        }
        assert_eq!((position, reply.event().bytes()), (owed[next].0, owed[next].1.as_slice()));
        next += 1;
    }
    assert_eq!(next, owed.len(), "told nothing of the last ones");
    gaps
}

const FEW_SLOTS: usize = 1024;

/// A maker with a small ring and a large order, and a taker.
fn pair(engine: &str) -> (Venue, Client, Client) {
    let mut venue = Venue::new(engine, "");
    let maker = venue.try_open("maker", (Role::Trader, Lane::Hot, 2), FEW_SLOTS);
    let (mut maker, taker) = (maker.unwrap(), venue.trader("taker", 1));
    send(&mut venue, &mut maker, limit(0, Side::Sell, 100, 1_000_000));
    (venue, maker, taker)
}

fn trade(venue: &mut Venue, taker: &mut Client, count: usize) {
    let wait = Wait::begin();
    for _ in 0..count {
        // A disk that is slow may leave no room in the log for a while.
        while !taker.try_send(limit(0, Side::Buy, 100, 1)) {
            wait.go_on("nothing is taken");
            venue.settle();
            taker.read();
        }
    }
    venue.settle();
    taker.read();
}

#[test]
fn who_does_not_read_gets_one_gap_and_then_goes_on() {
    let (mut venue, mut maker, mut taker) = pair("");
    trade(&mut venue, &mut taker, 2 * FEW_SLOTS);
    let mut told = maker.told();
    assert_eq!(names(&told[..told.len() - 1]), "T".repeat(told.len() - 1));
    assert_eq!(names(&told).matches('G').count(), 1, "one gap, the last thing");
    assert!(
        told.len() < FEW_SLOTS / 4 && told.len() > FEW_SLOTS / 8,
        "half of the ring: {}",
        told.len()
    );
    venue.duty.turn();
    let notice = maker.told();
    assert_eq!(names(&notice), "G", "what was missed since, without waiting for another trade");
    told.extend(notice);
    trade(&mut venue, &mut taker, 3);
    let last = maker.told();
    assert_eq!(names(&last), "TTT");
    told.extend(last);
    let log = transactions(venue.folder.path());
    assert_eq!(check_told(&owed(&log, AccountId(2)), &told), 2);
    assert_eq!(venue.closed(), []);
}

#[test]
fn the_room_of_replies_is_kept_from_what_others_do() {
    let (mut venue, mut maker, mut taker) = pair("");
    trade(&mut venue, &mut taker, 2 * FEW_SLOTS);
    // Unread as all of it is, so many commands are taken and answered as half of the ring has room for.
    let rejected = limit(7, Side::Buy, 1, 1);
    let count = FEW_SLOTS / 2 - 16;
    for _ in 0..count {
        if !maker.try_send(rejected) {
            venue.settle();
            maker.send(rejected);
        }
    }
    venue.settle();
    assert_eq!(maker.count_answers(), count as u64);
    // The gap that the first answer told of is the last that was missing.
    let mut told = maker.told_so_far();
    venue.settle();
    trade(&mut venue, &mut taker, 1);
    told.extend(maker.told());
    assert_eq!(names(told.last()), "T");
}

#[test]
fn whenever_a_maker_reads_it_knows_what_it_missed() {
    let mut gaps = 0;
    for seed in 1..=3u64 {
        let mut random = SplitMix64(seed);
        let (mut venue, mut maker, mut taker) = pair("messages_per_turn = 8");
        for _ in 0..300 {
            for _ in 0..random.below(40) {
                taker.try_send(limit(0, Side::Buy, 100, 1));
            }
            (0..random.below(4)).for_each(|_| _ = venue.duty.turn());
            taker.read();
            if random.below(8) == 0 {
                maker.read_some_told(random.below(200) as usize);
            }
        }
        venue.settle();
        maker.read();
        venue.duty.turn();
        let told = maker.told();
        let log = transactions(venue.folder.path());
        gaps += check_told(&owed(&log, AccountId(2)), &told);
    }
    assert!(gaps > 6, "{gaps} gaps");
}

#[test]
fn a_maker_that_sleeps_keeps_connection_and_orders_while_others_trade_with_it() {
    let (mut venue, mut maker, mut taker) = pair("reader_stall_seconds = 1");
    trade(&mut venue, &mut taker, 100_000);
    let session = venue.duty.core().session(maker.identity().0).unwrap();
    assert!(session.connected && session.epoch == maker.identity().1);
    assert_eq!(venue.closed(), []);
    let open = venue.duty.core().open_orders(ONE, Side::Sell).next().unwrap();
    assert_eq!(open.remaining.0, 900_000 * WHOLE);
    // It is woken, and served at once.
    let sequence = maker.send(limit(0, Side::Sell, 101, 1));
    venue.settle();
    let answers = maker.read();
    assert_eq!(answers.last().unwrap().envelope.sequence.0, sequence);
    assert!(answers.last().unwrap().is_terminal());
}
