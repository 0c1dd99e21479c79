//! Ten thousand orders: no transaction's burden, and none is lost.

use crate::venue::{Owned, Venue};
use crate::world::*;
use std::collections::BTreeSet;
use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, RejectReason, Role, Side};
use touchline_protocol::units::*;

const ORDERS: u64 = 10_000;

fn limits(max_steps: u32) -> Limits {
    Limits { open_orders: 30_000, price_levels: 2_000, ..steps(max_steps) }
}

/// Ten thousand orders and stops of Ann's over two symbols, and a few of Bob's among them.
fn crowd(max_steps: u32) -> Venue {
    let mut venue = world(limits(max_steps));
    for n in 0..ORDERS as i64 {
        let symbol = SymbolId((n % 2) as u32);
        if n % 10 == 3 {
            venue.must_quickly(&stop_limit(by(ANN), symbol, Side::Buy, (300 + n % 17, 310)));
        } else {
            let (side, price) = if n % 3 == 0 { (Side::Sell, 200) } else { (Side::Buy, 100) };
            let price = price + n * 37 % 90;
            venue.must_quickly(&limit(by(ANN), symbol, side, (price, 1)));
        }
        if n % 100 == 0 {
            venue.must_quickly(&limit(by(BOB), symbol, Side::Buy, (50, 1)));
        }
    }
    venue.core.validate().unwrap();
    venue
}

/// Runs a sweep in transactions that each do their share; gives what was ended.
fn run<M: Message>(venue: &mut Venue, message: &M, max_steps: u32) -> Vec<(SymbolId, u64)> {
    let mut events = venue.must_quickly(message);
    let mut found = Vec::new();
    let mut transactions = 1;
    loop {
        let part = ended(&events);
        assert!(part.len() as u32 <= max_steps.div_ceil(2), "{} orders at once", part.len());
        assert_eq!(events.len(), part.len() + 1);
        found.extend(part);
        let is_done = matches!(events.last(), Some(Owned::MassCanceled(_)));
        assert_eq!(is_done, venue.core.pending_head().is_none());
        if is_done {
            let Some(Owned::MassCanceled(total)) = events.last() else { unreachable!() };
            assert_eq!(total.orders, found.len() as u64);
            assert_eq!(transactions, found.len().div_ceil(max_steps.div_ceil(2) as usize));
            return found;
        }
        transactions += 1;
        events = venue.must_quickly(&RunPending::default());
        if transactions % 40 == 0 {
            venue.core.validate().unwrap();
        }
    }
}

#[test]
fn a_mass_cancel_of_ten_thousand() {
    for max_steps in [64, 255] {
        let mut venue = crowd(max_steps);
        let found = run(&mut venue, &mass_cancel(by(ANN), ALL, 2), max_steps);
        assert_eq!(found.len() as u64, ORDERS);
        // Numbers are given out by symbol in the order of placement.
        for symbol in [ONE, TWO] {
            let of: Vec<u64> =
                found.iter().filter(|(of, _)| *of == symbol).map(|(_, order)| *order).collect();
            assert!(of.is_sorted() && of.len() as u64 == ORDERS / 2);
        }
        assert_eq!(venue.core.counts().open_orders, 100, "Bob's");
        venue.core.validate().unwrap();
        venue.check_replay();
    }
}

#[test]
fn expire_all_of_ten_thousand() {
    let mut venue = crowd(64);
    let mut found = BTreeSet::new();
    for symbol in [ONE, TWO] {
        let open = venue.core.symbol(symbol).unwrap().counters.order.0;
        let of = run(&mut venue, &expire_all(symbol), 64);
        assert_eq!(of.len() as u64, open);
        found.extend(of);
    }
    assert_eq!(found.len() as u64, ORDERS + 100);
    check_empty(&venue);
    venue.core.validate().unwrap();
    venue.check_replay();
}

/// An account's many orders on another symbol are passed over a bounded number at a time, and each of
/// them once only.
#[test]
fn orders_that_a_sweep_is_not_about_are_passed_over_in_parts() {
    let mut venue = world(limits(256));
    let mut expected = Vec::new();
    for n in 0..ORDERS as i64 {
        venue.must_quickly(&limit(by(ANN), TWO, Side::Buy, (100 + n * 37 % 90, 1)));
        if n % 2_500 == 2_499 {
            let events = venue.must_quickly(&limit(by(ANN), ONE, Side::Buy, (5, 1)));
            let Owned::Accepted(accepted) = events[0] else { panic!("{events:?}") };
            expected.push((ONE, accepted.order_id.0));
        }
    }
    let mut events = venue.must_quickly(&cancel_all(by(ANN), ONE));
    let mut transactions = 1;
    while venue.core.pending_head().is_some() {
        venue.core.validate().unwrap();
        // The other symbol goes on meanwhile; so may the order at which the sweep stands.
        let next = venue.core.open_orders(TWO, Side::Buy).map(|order| order.order_id).min();
        let cancel = |order_id| CancelOrder {
            command: by(ANN),
            symbol: TWO,
            order_id,
            ..Default::default()
        };
        venue.must_quickly(&cancel(next.unwrap()));
        let at = OrderId(1024 * transactions - transactions);
        if venue.core.open_order(TWO, at).is_some() {
            venue.must_quickly(&cancel(at));
        }
        venue.must_quickly(&limit(by(ANN), TWO, Side::Buy, (99, 1)));
        events.extend(venue.must_quickly(&RunPending::default()));
        transactions += 1;
    }
    assert_eq!(ended(&events), expected);
    assert_eq!(transactions, ORDERS.div_ceil(1024));
    venue.core.validate().unwrap();
    venue.check_replay();
}

/// A sweep that passes over as many orders as it may in a transaction, with a place of a pending order
/// among them, does not end in that transaction: without room to go on it is refused.
#[test]
fn places_of_pending_orders_are_passed_over_too() {
    let passed = 1024;
    // Behind them is the one order that the sweep is about.
    for (orders, fits) in [(passed - 2, true), (passed - 1, false), (passed, false)] {
        let mut venue = world(Limits { pending_work: 1, ..limits(1) });
        let pair = (AssetId(0), AssetId(1));
        let three = SymbolId(2);
        venue.symbol_of("THREE", pair, SymbolFilters::default(), (ORDER_TYPES_2, 0));
        for _ in 0..orders {
            venue.must_quickly(&limit(by(ANN), ONE, Side::Buy, (1, 1)));
        }
        venue.must_quickly(&limit(by(ANN), three, Side::Buy, (1, 1)));
        for _ in 0..2 {
            venue.must_quickly(&limit(by(BOB), TWO, Side::Sell, (10, 1)));
        }
        let events = venue.must_quickly(&limit(by(ANN), TWO, Side::Buy, (10, 5)));
        assert!(matches!(events.last(), Some(Owned::Continues(_))), "{events:?}");
        let sweep = MassCancel { command: by(ANN), symbol: three, scope: 2, ..Default::default() };
        let outcome = venue.apply(&sweep);
        match outcome {
            Ok(events) => {
                assert!(fits && matches!(events[..], [Owned::Canceled(_), Owned::MassCanceled(_)]));
            }
            Err(reject) => {
                assert_eq!((fits, reject.reason), (false, RejectReason::CapacityReached));
            }
        }
        venue.core.validate().unwrap();
    }
}

/// A session that has nothing open costs its account's other orders nothing, however many they are: all
/// of it is done at once, and no symbol waits.
#[test]
fn a_sweep_that_is_about_nothing_looks_at_nothing() {
    let mut venue = world(Limits { pending_work: 0, ..limits(1) });
    let idle = venue.logon("idle", Role::Trader, Lane::Hot, KeyId(ANN));
    for _ in 0..3_000 {
        venue.must_quickly(&limit(by(ANN), ONE, Side::Buy, (1, 1)));
    }
    for symbol in [ALL, ONE, TWO] {
        let command = venue.header(idle, KeyId(ANN));
        let events = venue.must_quickly(&mass_cancel(command, symbol, 1));
        assert_eq!(events, [mass(1, symbol, 0)]);
    }
    assert_eq!(venue.must_quickly(&mass_cancel(by(ANN), TWO, 2)), [mass(1, TWO, 0)]);
    venue.core.validate().unwrap();
    venue.check_replay();
}
