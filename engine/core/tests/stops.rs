//! Stops by hand-made examples: what fires them, in which order they run, and that ten thousand of them
//! are no transaction's burden.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::OrderStatus;
use touchline_protocol::message::event::OrderResult;
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, roomy};

const ONE: SymbolId = SymbolId(0);
const BUY: u8 = 1;
const SELL: u8 = 2;
const STOP_LOSS: u8 = 3;
const STOP_LOSS_LIMIT: u8 = 4;
const TAKE_PROFIT: u8 = 5;

/// Ann (1) and Bob (2), with 100,000 of each asset.
fn world(limits: Limits) -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(limits);
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol_of("ONE", pair, SymbolFilters::default(), (ORDER_TYPES_2, SYMBOL_ICEBERG));
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 100_000 * WHOLE);
        venue.deposit(account, pair.1, 100_000 * WHOLE);
    }
    venue
}

fn limit(key: u64, side: u8, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id: KeyId(key), ..Default::default() },
        symbol: ONE,
        side,
        order_type: 1,
        time_in_force: 1,
        price: price * WHOLE,
        quantity: quantity * WHOLE,
        ..Default::default()
    }
}

/// A stop of Ann's; a limit of 0 is none.
fn stop(order_type: u8, side: u8, stop_price: i64, price: i64) -> NewOrder {
    NewOrder {
        order_type,
        time_in_force: u8::from(price > 0),
        stop_price: stop_price * WHOLE,
        ..limit(1, side, price, 1)
    }
}

/// Makes the last price: Bob trades one unit with himself.
fn trade_at(venue: &mut Venue, price: i64) -> Vec<Owned> {
    venue.must(&limit(2, SELL, price, 1));
    venue.must(&limit(2, BUY, price, 1))
}

fn triggered(events: &[Owned]) -> Vec<u64> {
    let of = |event: &Owned| match event {
        Owned::Triggered(triggered) => Some(triggered.order_id.0),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn results(events: &[Owned]) -> Vec<OrderResult> {
    let of = |event: &Owned| match event {
        Owned::Result(result) => Some(*result),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn each_kind_fires_at_its_price_and_not_before() {
    for (order_type, side, before, at) in [
        (STOP_LOSS, BUY, 19, 20),
        (STOP_LOSS, SELL, 21, 20),
        (TAKE_PROFIT, BUY, 21, 20),
        (TAKE_PROFIT, SELL, 19, 20),
    ] {
        let mut venue = world(roomy());
        venue.must(&stop(order_type, side, 20, 0));
        trade_at(&mut venue, before);
        assert!(venue.drain().is_empty(), "type {order_type}, side {side}");
        trade_at(&mut venue, at);
        assert_eq!(triggered(&venue.drain()), [1], "type {order_type}, side {side}");
        venue.check_replay();
    }
}

#[test]
fn stops_of_one_trade_run_by_placement_and_cascade_by_trade() {
    let mut venue = world(roomy());
    // Sells that fire on the way down, the nearest placed last; a buy that fires at the same trade.
    venue.must(&stop(STOP_LOSS_LIMIT, SELL, 8, 1));
    venue.must(&stop(STOP_LOSS_LIMIT, SELL, 9, 1));
    venue.must(&stop(TAKE_PROFIT, BUY, 9, 0));
    venue.must(&stop(STOP_LOSS_LIMIT, SELL, 5, 1));
    trade_at(&mut venue, 10);
    for price in [7, 5, 3] {
        venue.must(&limit(2, BUY, price, 1));
    }
    let events = trade_at(&mut venue, 8);
    assert_eq!(triggered(&events), [0u64; 0], "the aggressor's own reply comes first");
    let events = venue.drain();
    // 1 trades at 7, 2 at 5 (which fires 4), 3 finds no sells, then 4 trades at 3.
    assert_eq!(triggered(&events), [1, 2, 3, 4]);
    let found: Vec<_> =
        results(&events).iter().map(|result| (result.order_id.0, result.status)).collect();
    let (filled, expired) = (OrderStatus::Filled.to_wire(), OrderStatus::Expired.to_wire());
    assert_eq!(found, [(1, filled), (2, filled), (3, expired), (4, filled)]);
    assert_eq!(venue.core.waiting_orders(ONE).count(), 0);
    venue.check_replay();
}

#[test]
fn a_market_stop_that_cannot_be_paid_expires() {
    let mut venue = world(roomy());
    let mut rich = stop(STOP_LOSS, BUY, 10, 0);
    rich.quantity = 10_000 * WHOLE;
    venue.must(&rich);
    venue.must(&limit(2, SELL, 11, 9_500));
    venue.must(&limit(2, BUY, 11, 1));
    let events = venue.drain();
    // 100,000 are locked, all that there is; what rests costs 104,489.
    assert_eq!(results(&events)[0].status, OrderStatus::Expired.to_wire());
    assert_eq!(results(&events)[0].released, 100_000 * WHOLE);
    venue.check_replay();
}

#[test]
fn a_triggered_limit_rests_with_a_new_place() {
    let mut venue = world(roomy());
    venue.must(&stop(STOP_LOSS_LIMIT, BUY, 10, 9));
    venue.must(&limit(2, BUY, 9, 1));
    trade_at(&mut venue, 10);
    let events = venue.drain();
    assert_eq!(results(&events)[0].status, OrderStatus::New.to_wire());
    let queue: Vec<u64> = venue
        .core
        .open_orders(ONE, touchline_protocol::message::enums::Side::Buy)
        .map(|order| order.order_id.0)
        .collect();
    assert_eq!(queue, [2, 1]);
    venue.check_replay();
}

/// One trade fires ten thousand stops on a hundred prices: each transaction does its share, they run by
/// placement, and a replay (also one that begins in the middle of it) comes to the same.
#[test]
fn ten_thousand_stops_are_spread_over_transactions() {
    const STOPS: u64 = 10_000;
    let limits = Limits { open_orders: 20_000, price_levels: 20_000, max_steps: 64, ..roomy() };
    let mut venue = world(limits);
    for n in 0..STOPS as i64 {
        venue.must_quickly(&stop(STOP_LOSS_LIMIT, SELL, 400 - n * 37 % 100, 1));
    }
    venue.must_quickly(&limit(2, BUY, 2, 5_000));
    venue.must_quickly(&limit(2, BUY, 300, 1));
    venue.must_quickly(&limit(2, SELL, 300, 1));
    let mut order = Vec::new();
    let mut transactions = 0;
    while venue.core.pending_head().is_some() {
        let events = venue.must_quickly(&RunPending::default());
        assert!(!events.is_empty() && events.len() <= 200, "{} events", events.len());
        order.extend(triggered(&events));
        transactions += 1;
        if transactions % 100 == 0 {
            venue.core.validate().unwrap();
            venue.check_replay();
        }
    }
    assert!(transactions > 300, "{transactions} transactions");
    assert_eq!(order, (1..=STOPS).collect::<Vec<_>>());
    assert_eq!(venue.core.depth(ONE, touchline_protocol::message::enums::Side::Sell).count(), 1);
    venue.core.validate().unwrap();
    venue.check_replay();
}
