//! Work of many transactions outlives the engine that began it: an order that takes a hundred thousand
//! others, a mass cancel of as many and forty thousand stops that fire each other are killed in the
//! middle, and again, and the next engines do the rest before anything else. The log decides, not the
//! time that anything takes; only a kill that came when the work was done is tried again.

mod stage;

use super::binary::{KEY_A, KEY_B, whole};
use stage::{Stage, Trader, limit, watch};
use touchline_protocol::message::command::{MassCancel, NewOrder};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{CancelScope, OrderStatus, OrderType, Side};
use touchline_protocol::units::{AccountId, OrderId, SymbolId};

/// The symbol.
const ONE: SymbolId = SymbolId(0);
/// Tries of a kill in the middle. On a machine where much else runs one in three comes too late.
const TRIES: u32 = 12;

/// The last event of an order's work.
fn ends(order: u64) -> impl Fn(&Event<'_>) -> bool {
    move |event| matches!(event, Event::OrderResult(result) if result.order_id.0 == order)
}

/// Everything that was told to these clients is in the log.
fn check_told(audit: &super::audit::Audit, traders: &[&Trader]) {
    assert!(audit.core.pending_head().is_none());
    for trader in traders {
        audit.has(&trader.answers);
        assert!(trader.trades.is_subset(&audit.trades), "a trade that was told is lost");
        assert!(trader.canceled.is_subset(&audit.canceled), "a cancel that was told is lost");
    }
}

/// Kills two engines in the middle of a sweep. False when a kill came too late: the work was done.
fn sweep_under_fire() -> bool {
    const RESTING: u64 = 100_000;
    let mut stage = Stage::new();
    let mut maker = stage.trader("maker", KEY_A);
    for n in 0..RESTING as i64 {
        maker.send(limit(Side::Sell, 1_000 + n * 387 % 1_000, 1));
    }
    let mut reader = stage.reader(maker.settle());
    let mut taker = stage.trader("taker", KEY_B);
    taker.send(limit(Side::Buy, 3_000, RESTING as i64 + 5));
    watch(&mut reader, 1, ends(RESTING + 1));
    // These wait behind it and are lost with their rings, unless the kill comes too late.
    taker.send(limit(Side::Buy, 10, 1));
    maker.send(limit(Side::Sell, 3_500, 1));
    stage.crash_twice(&mut reader, RESTING, ends(RESTING + 1));
    maker.read();
    taker.read();

    // The first who come to the engine that does the rest.
    let mut again = stage.trader("taker", KEY_B);
    again.send(limit(Side::Sell, 2_500, 7));
    again.settle();
    let mut other = stage.trader("other", KEY_A);
    other.send(limit(Side::Sell, 3_600, 1));
    other.settle();
    let audit = stage.audit();
    check_told(&audit, &[&maker, &taker, &again, &other]);
    // The rest of five has met the sell that came behind the sweep.
    let result = audit.results[&OrderId(RESTING + 1)];
    assert_eq!(result.executed_quantity, whole(RESTING as i64));
    assert_eq!(result.status, OrderStatus::PartiallyFilled.to_wire());
    assert_eq!(audit.trades.len() as u64, RESTING + 1);
    assert_eq!(audit.results[&again.orders[0]].executed_quantity, whole(5));
    audit.workers.len() > 2
}

#[test]
fn a_sweep_that_is_killed_twice_is_finished_before_anything_else() {
    assert!((0..TRIES).any(|_| sweep_under_fire()), "each kill came too late");
}

/// As [`sweep_under_fire`], of a mass cancel.
fn mass_cancel_under_fire() -> bool {
    const ORDERS: u64 = 100_000;
    let mut stage = Stage::new();
    let mut maker = stage.trader("maker", KEY_A);
    let mut other = stage.trader("other", KEY_B);
    for n in 0..ORDERS as i64 {
        let (side, price) = if n % 2 == 0 { (Side::Sell, 2_000) } else { (Side::Buy, 1_000) };
        maker.send(limit(side, price + n * 37 % 500, 1));
        if n % 100 == 0 {
            other.send(limit(Side::Buy, 500, 1));
        }
    }
    other.settle();
    let mut reader = stage.reader(maker.settle());
    maker.send(MassCancel {
        symbol: ONE,
        scope: CancelScope::Account.to_wire(),
        ..Default::default()
    });
    let is_last = |event: &Event<'_>| matches!(event, Event::MassCanceled(_));
    watch(&mut reader, 1, is_last);
    // Not the maker, whose ring is full of cancels, so that it is not asked for more.
    other.send(limit(Side::Sell, 3_000, 1));
    stage.crash_twice(&mut reader, ORDERS, is_last);
    maker.read();
    other.read();

    let mut again = stage.trader("maker", KEY_A);
    again.send(limit(Side::Sell, 3_000, 2));
    again.settle();
    let audit = stage.audit();
    check_told(&audit, &[&maker, &other, &again]);
    assert_eq!(audit.mass_cancels, [ORDERS]);
    assert_eq!(audit.canceled.len() as u64, ORDERS);
    let open = |account| u64::from(audit.core.open_order_count(AccountId(account), ONE));
    let late = u64::from(other.answers.last().is_some_and(|last| last.sequence.0 > ORDERS / 100));
    assert_eq!([open(1), open(2)], [1, ORDERS / 100 + late]);
    audit.workers.len() > 2
}

#[test]
fn a_mass_cancel_that_is_killed_twice_is_finished_before_anything_else() {
    assert!((0..TRIES).any(|_| mass_cancel_under_fire()), "each kill came too late");
}

/// As [`sweep_under_fire`], of stops of which each one's trade fires the next.
fn cascade_under_fire() -> bool {
    const STOPS: u64 = 40_000;
    const TOP: i64 = 80_000;
    let mut stage = Stage::new();
    let mut owner = stage.trader("owner", KEY_A);
    let mut buyer = stage.trader("buyer", KEY_B);
    for n in 0..STOPS as i64 {
        owner.send(NewOrder {
            order_type: OrderType::StopLoss.to_wire(),
            time_in_force: 0,
            stop_price: whole(TOP - n),
            ..limit(Side::Sell, 0, 1)
        });
        buyer.send(limit(Side::Buy, TOP - n, 1));
    }
    // One bid more, for the trade that sets it all off.
    buyer.send(limit(Side::Buy, TOP - STOPS as i64, 1));
    owner.settle();
    let mut reader = stage.reader(buyer.settle());
    let last_stop = *owner.orders.last().expect("they were placed");
    buyer.send(limit(Side::Sell, TOP, 1));
    watch(&mut reader, 1, ends(last_stop.0));
    owner.send(limit(Side::Sell, 2 * TOP, 1));
    // Each is collected, runs and trades in transactions of its own.
    stage.crash_twice(&mut reader, 3 * STOPS, ends(last_stop.0));
    owner.read();
    buyer.read();

    let mut again = stage.trader("owner", KEY_A);
    again.send(limit(Side::Sell, 2 * TOP, 2));
    again.settle();
    let audit = stage.audit();
    check_told(&audit, &[&owner, &buyer, &again]);
    assert_eq!(audit.trades.len() as u64, STOPS + 1);
    for stop in &owner.orders[..STOPS as usize] {
        assert_eq!(audit.results[stop].executed_quantity, whole(1), "{stop:?}");
    }
    audit.workers.len() > 2
}

#[test]
fn a_cascade_of_stops_that_is_killed_twice_is_finished_before_anything_else() {
    assert!((0..TRIES).any(|_| cascade_under_fire()), "each kill came too late");
}
