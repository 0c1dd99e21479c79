//! An aggressor over more makers than a transaction visits: in parts, with nothing between them and
//! one answer behind them.

use super::client::{Client, Reply, limit};
use super::record::{of_session, transactions};
use super::unsolicited::names;
use super::venue::{Venue, deposit};
use crate::patience::Wait;
use touchline_engine::mailbox::{StateLetter, ToDuty};
use touchline_protocol::message::command::CancelOrder;
use touchline_protocol::message::decode::{self, Event, Stream};
use touchline_protocol::message::enums::{OrderStatus, RejectReason, Role, Side};
use touchline_protocol::message::stream::{OrderState, StateEnd};
use touchline_protocol::units::{AccountId, AssetId, SymbolId};

const MAKERS: u64 = 7;

/// Two makers per transaction, one further step per turn: the aggressor takes four transactions.
fn venue() -> Venue {
    Venue::new("pending_per_turn = 1", "max_steps = 2")
}

fn place_makers(venue: &mut Venue, maker: &mut Client) {
    for _ in 0..MAKERS {
        maker.send(limit(0, Side::Sell, 100, 1));
    }
    venue.settle();
    assert_eq!(maker.count_answers(), MAKERS);
}

/// Has an aggressor begin on makers that are there, for all of them and `more`; gives its sequence.
fn begin_aggressor(venue: &mut Venue, taker: &mut Client, more: i64) -> u64 {
    let aggressor = taker.send(limit(0, Side::Buy, 100, MAKERS as i64 + more));
    venue.duty.turn();
    assert!(venue.duty.core().pending_head().is_some(), "it is done in one turn");
    aggressor
}

/// Checks the replies to the aggressor; gives the position behind its last part.
fn check_aggressor(client: &Client, sequence: u64, replies: &[Reply]) -> u64 {
    assert_eq!(names(replies), "ATT+TT+TT+TR");
    for reply in replies {
        let envelope = reply.envelope;
        assert_eq!(envelope.sequence.0, sequence);
        assert_eq!(envelope.correlation, client.correlation(sequence));
        assert_eq!(envelope.session, client.identity().0);
        assert_eq!(reply.is_terminal(), matches!(reply.event(), Event::OrderResult(_)));
    }
    assert!(replies.is_sorted_by_key(|reply| reply.envelope.position));
    let Event::OrderResult(result) = replies.last().unwrap().event() else { unreachable!() };
    assert_eq!(result.status, OrderStatus::Filled.to_wire());
    assert_eq!(result.executed_quantity, MAKERS as i64 * 100_000_000);
    replies.last().unwrap().envelope.position.0
}

#[test]
fn an_order_in_parts_is_answered_once_and_commands_sent_meanwhile_come_after_it() {
    let mut venue = venue();
    let mut maker = venue.trader("maker", 2);
    let mut taker = venue.trader("taker", 1);
    let mut third = venue.trader("third", 3);
    let mut admin = venue.cold("admin", Role::Admin);
    place_makers(&mut venue, &mut maker);
    let aggressor = begin_aggressor(&mut venue, &mut taker, 0);
    let open = venue.duty.core().open_orders(SymbolId(0), Side::Sell).last().unwrap().order_id;
    maker.send(CancelOrder { symbol: SymbolId(0), order_id: open, ..Default::default() });
    third.send(limit(0, Side::Buy, 100, 1));
    third.send(limit(1, Side::Buy, 100, 1));
    taker.send(limit(0, Side::Sell, 200, 1));
    admin.send(deposit());
    let mut deposits = 0;
    let wait = Wait::begin();
    while venue.duty.core().pending_head().is_some() {
        wait.go_on("the aggressor is not finished");
        let others = [&mut maker, &mut third];
        assert!(others.into_iter().all(|client| client.read().is_empty()), "it is not done yet");
        deposits += admin.count_answers();
        assert!(venue.duty.turn() > 0, "unfinished work is left lying");
    }
    venue.settle();
    let mut replies = taker.read();
    let own_later = replies.split_off(replies.len() - 2);
    let end = check_aggressor(&taker, aggressor, &replies);
    assert_eq!(deposits, 1, "what an operator sends does not wait");
    let others = [own_later, maker.read(), third.read()];
    let later: Vec<Reply> = others.into_iter().flatten().collect();
    assert_eq!(later.iter().filter(|reply| reply.is_terminal()).count(), 4);
    for reply in &later {
        match reply.reason() {
            // The aggressor had taken the order: decided behind it too, without a transaction.
            Some(reason) => {
                assert_eq!(reason, RejectReason::UnknownOrder);
                assert!(reply.envelope.position.0 >= end);
            }
            None => assert!(reply.envelope.position.0 > end, "{:?} before {end}", reply.event()),
        }
    }
    let parts = of_session(venue.folder.path(), taker.identity().0);
    let names: Vec<_> = parts[&aggressor].iter().map(|part| part.command).collect();
    assert_eq!(names, ["NewOrder", "RunPending", "RunPending", "RunPending"]);
}

/// Which is what a client goes by whose engine is stopped in the midst of it, without a terminal reply: the next engine
/// goes on with it.
#[test]
fn an_order_in_parts_counts_as_decided_from_its_first_part_on() {
    let mut venue = venue();
    let mut maker = venue.trader("maker", 2);
    let mut taker = venue.trader("taker", 1);
    place_makers(&mut venue, &mut maker);
    let before = taker.sequence();
    let aggressor = begin_aggressor(&mut venue, &mut taker, 0);
    let told = taker.read();
    assert!(!told.is_empty() && !told.iter().any(Reply::is_terminal), "{}", names(&told));
    let again = venue.trader("taker", 1);
    assert_eq!((again.sequence(), aggressor), (before + 1, before + 1));
}

/// What a client is told that asks for its account's state now: the orders, the amounts that are locked, the
/// end.
fn state(
    venue: &mut Venue,
    client: &Client,
    account: AccountId,
) -> (Vec<OrderState>, i64, StateEnd) {
    let (session, epoch) = client.identity();
    let ask = ToDuty::State { ticket: 1, session, epoch, account, correlation: 9 };
    venue.mail.to_duty.put(ask);
    venue.duty.turn();
    let StateLetter { messages: mut told, .. } =
        venue.mail.states.take().expect("the state is not told");
    let (mut orders, mut locked) = (Vec::new(), 0);
    loop {
        let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(&told);
        let message = decode::stream(bytemuck::cast_slice(&words)).unwrap();
        match message {
            Stream::OrderState(order) => orders.push(*order),
            Stream::BalanceState(balance) => locked += balance.locked,
            Stream::StateEnd(end) => return (orders, locked, *end),
            other => panic!("{}", other.name()),
        }
        told.drain(..message.bytes().len());
    }
}

#[test]
fn an_order_in_parts_is_open_for_who_asks_for_the_state() {
    let mut venue = venue();
    let mut maker = venue.trader("maker", 2);
    let mut taker = venue.trader("taker", 1);
    place_makers(&mut venue, &mut maker);
    let account = AccountId(1);
    taker.send(limit(0, Side::Buy, 50, 1));
    venue.settle();
    begin_aggressor(&mut venue, &mut taker, 1);
    let whole = 100_000_000;
    let (orders, locked, end) = state(&mut venue, &taker, account);
    let found: Vec<_> = orders
        .iter()
        .map(|order| (order.price / whole, order.quantity / whole, order.remaining / whole))
        .collect();
    assert_eq!(found, [(50, 1, 1), (100, 8, 4)], "four makers were met");
    assert_eq!(orders[1].executed_quote, 400 * whole);
    assert_eq!((orders[1].session, orders[1].locked), (taker.identity().0, 400 * whole));
    assert_eq!(orders.iter().map(|order| order.locked).sum::<i64>(), locked);
    assert_eq!((end.correlation, end.orders, end.omitted), (9, 2, 0));
    venue.settle();
    // It has come to rest.
    let (orders, locked, end) = state(&mut venue, &taker, account);
    assert_eq!((orders.len(), orders[1].remaining, end.orders), (2, whole, 2));
    assert_eq!(orders.iter().map(|order| order.locked).sum::<i64>(), locked);
}

#[test]
fn of_many_who_ask_for_the_state_one_is_answered_in_a_turn_and_orders_in_between() {
    let mut venue = venue();
    let mut trader = venue.trader("trader", 2);
    let asking = venue.trader("asking", 1);
    let (session, epoch) = asking.identity();
    for correlation in 1..=5 {
        let account = AccountId(1);
        venue.mail.to_duty.put(ToDuty::State { ticket: 1, session, epoch, account, correlation });
    }
    for _ in 0..5 {
        trader.send(limit(0, Side::Buy, 50, 1));
        venue.duty.turn();
        assert_eq!(trader.count_answers(), 1);
        assert!(venue.mail.states.take().is_some() && venue.mail.states.take().is_none());
    }
    venue.duty.turn();
    assert!(venue.mail.states.take().is_none());
}

#[test]
fn of_too_many_orders_the_state_says_how_many_it_leaves_out() {
    let mut venue = venue();
    let mut maker = venue.trader("maker", 2);
    let mut taker = venue.trader("taker", 1);
    place_makers(&mut venue, &mut maker);
    for _ in 0..10 {
        (0..100).for_each(|_| _ = taker.send(limit(0, Side::Buy, 50, 1)));
        venue.settle();
        assert_eq!(taker.count_answers(), 100);
    }
    let told = |(orders, _, end): (Vec<OrderState>, i64, StateEnd)| {
        assert_eq!(orders.len(), end.orders as usize);
        (end.orders, end.omitted)
    };
    assert_eq!(told(state(&mut venue, &taker, AccountId(1))), (1000, 0));
    taker.send(limit(0, Side::Buy, 100, MAKERS as i64));
    venue.duty.turn();
    assert_eq!(told(state(&mut venue, &taker, AccountId(1))), (1000, 1));
}

#[test]
fn what_is_all_locked_is_told_of_as_well() {
    let mut venue = venue();
    let mut trader = venue.trader("trader", 1);
    trader.send(limit(0, Side::Sell, 100, 10_000_000));
    venue.settle();
    assert_eq!(trader.count_answers(), 1);
    let held = venue.duty.core().balance(AccountId(1), AssetId(0)).expect("it is defined");
    assert_eq!(held.free.0, 0, "all of it is for sale");
    let (_, locked, end) = state(&mut venue, &trader, AccountId(1));
    assert_eq!((locked, end.balances), (held.locked.0, 2));
}

#[test]
fn nothing_comes_between_the_parts_whoever_sends_first() {
    // Reading the log asserts that nothing stands between the parts of an order.
    for round in 0..8 {
        let mut venue = venue();
        let mut clients: Vec<Client> = (1..=3).map(|key| venue.trader("trader", key)).collect();
        let mut admin = venue.cold("admin", Role::Admin);
        for step in 0..12 {
            for (n, client) in clients.iter_mut().enumerate() {
                let (side, orders, quantity) =
                    if (step + round) % 3 == n { (Side::Buy, 2, 5) } else { (Side::Sell, 5, 1) };
                (0..orders).for_each(|_| _ = client.send(limit(0, side, 100, quantity)));
            }
            admin.send(deposit());
            (0..=step % 4).for_each(|_| _ = venue.duty.turn());
        }
        venue.settle();
        let log = transactions(venue.folder.path());
        assert!(log.iter().filter(|one| one.command == "RunPending").count() > 10);
        for client in &mut clients {
            assert_eq!(client.count_answers(), client.sequence(), "one answer each");
        }
        assert_eq!(admin.count_answers(), admin.sequence());
    }
}

#[test]
fn an_order_whose_owner_came_anew_is_finished_and_not_answered_to_the_new_connection() {
    let mut venue = venue();
    let mut maker = venue.trader("maker", 2);
    let mut taker = venue.trader("taker", 1);
    place_makers(&mut venue, &mut maker);
    let aggressor = taker.send(limit(0, Side::Buy, 100, MAKERS as i64));
    venue.duty.turn();
    assert!(venue.duty.core().pending_head().is_some());
    let mut again = venue.trader("taker", 1);
    assert_eq!(again.identity().0, taker.identity().0);
    assert_eq!(again.sequence(), aggressor, "it was decided");
    venue.settle();
    let told = again.told();
    assert!(told.iter().any(|event| matches!(event.event(), Event::OrderResult(_))));
    assert!(told.iter().all(|event| event.envelope.sequence.0 == 0), "not as replies");
    assert!(taker.read().iter().all(|reply| !reply.is_terminal()));
    let parts = of_session(venue.folder.path(), taker.identity().0);
    assert!(!parts[&aggressor].last().unwrap().continues, "it is finished");
    assert_eq!(venue.duty.core().open_orders(SymbolId(0), Side::Sell).count(), 0);
    let sequence = again.send(limit(0, Side::Sell, 100, 1));
    venue.settle();
    assert_eq!(again.read().last().unwrap().envelope.sequence.0, sequence);
}

#[test]
fn a_connection_that_ends_while_the_pending_work_is_full_leaves_no_orders() {
    let mut venue = Venue::new("pending_per_turn = 1", "max_steps = 2\npending_work = 1");
    let mut maker = venue.trader("maker", 2);
    let mut taker = venue.trader("taker", 1);
    let mut quitter = venue.trader_that_leaves_nothing("quitter", 3);
    for price in 1..=5 {
        quitter.send(limit(1, Side::Buy, price, 1));
    }
    place_makers(&mut venue, &mut maker);
    taker.send(limit(0, Side::Buy, 100, MAKERS as i64));
    venue.duty.turn();
    assert!(venue.duty.core().pending_head().is_some(), "the queue is full");
    venue.disconnect(&quitter);
    venue.settle();
    let left = venue.duty.core().open_orders(SymbolId(1), Side::Buy).count();
    assert_eq!(left, 0, "orders of a session that has ended");
    let session = venue.duty.core().session(quitter.identity().0).unwrap();
    assert!(!session.connected);
}

#[test]
fn an_end_that_finds_no_room_for_what_it_cancels_keeps_no_other_waiting() {
    let mut venue = Venue::new("", "max_steps = 2\npending_work = 0");
    let open = |venue: &Venue| venue.duty.core().open_orders(SymbolId(1), Side::Buy).count();
    let mut large = venue.trader_that_leaves_nothing("large", 3);
    (1..=5).for_each(|price| _ = large.send(limit(1, Side::Buy, price, 1)));
    let mut small: Vec<Client> = (0..20)
        .map(|number| venue.trader_that_leaves_nothing(&format!("small{number}"), 1))
        .collect();
    small.iter_mut().for_each(|one| _ = one.send(limit(1, Side::Buy, 9, 1)));
    venue.settle();
    assert_eq!(open(&venue), 25);
    venue.disconnect(&large);
    venue.duty.turn();
    small.iter().for_each(|one| venue.disconnect(one));
    (0..10).for_each(|_| _ = venue.duty.turn());
    assert_eq!(
        open(&venue),
        5,
        "those of whom nothing is left to do but what there is no room for"
    );
    // There is once nothing of it is left but what one transaction cancels.
    let mut other = venue.trader("other", 2);
    (2..=5).for_each(|_| _ = other.send(limit(1, Side::Sell, 1, 1)));
    (0..10).for_each(|_| _ = venue.duty.turn());
    assert_eq!(open(&venue), 0);
    assert!(!venue.duty.core().session(large.identity().0).unwrap().connected);
}
