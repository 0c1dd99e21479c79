//! Changing a symbol: which changes wait for an empty book, what binds new orders only, and the seven
//! statuses; and symbols whose tick times step is finer than the smallest amount.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use touchline_core::{ORDER_TYPES, ORDER_TYPES_2, Reject};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{RejectReason as Why, SymbolStatus};
use touchline_protocol::message::event::Done;
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, roomy};

const ONE: SymbolId = SymbolId(0);

/// Prices in tenths from 1 on, quantities in hundredths from 0.05 on.
const FILTERS: SymbolFilters = SymbolFilters {
    price_min: WHOLE,
    price_max: 1000 * WHOLE,
    tick_size: WHOLE / 10,
    lot_min: WHOLE / 20,
    lot_max: 1000 * WHOLE,
    lot_step: WHOLE / 100,
    market_lot_min: 0,
    market_lot_max: 0,
    market_lot_step: WHOLE / 10,
    percent_price_up: 0,
    percent_price_down: 0,
    min_notional: 0,
    max_position: 0,
    percent_price_minutes: 0,
    min_notional_minutes: 0,
    iceberg_parts: 0,
    max_orders: 0,
    max_algo_orders: 0,
    max_iceberg_orders: 0,
    min_notional_applies_to_market: 0,
    reserved: [0; 7],
    reserved_1: 0,
};

fn world(filters: SymbolFilters) -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(roomy());
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol_of("ONE", pair, filters, (ORDER_TYPES_2, 0));
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (WHOLE / 1000, WHOLE / 1000));
        venue.deposit(account, pair.0, 1000 * WHOLE);
        venue.deposit(account, pair.1, 1000 * WHOLE);
    }
    venue
}

fn change(filters: SymbolFilters) -> ChangeSymbol {
    ChangeSymbol {
        symbol: ONE,
        order_types: ORDER_TYPES_2,
        flags: 0,
        permissions: PERMISSION_SPOT,
        filters,
        ..Default::default()
    }
}

fn order(key: u64, side: u8, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id: KeyId(key), ..Default::default() },
        symbol: ONE,
        side,
        order_type: 1,
        time_in_force: 1,
        price,
        quantity,
        ..Default::default()
    }
}

fn status(status: SymbolStatus) -> SetSymbolStatus {
    SetSymbolStatus { symbol: ONE, status: status.to_wire(), ..Default::default() }
}

fn cancel_all(key: u64) -> CancelAll {
    CancelAll {
        command: CommandHeader { key_id: KeyId(key), ..Default::default() },
        symbol: ONE,
        ..Default::default()
    }
}

fn grids() -> [SymbolFilters; 7] {
    [
        SymbolFilters { tick_size: WHOLE / 100, ..FILTERS },
        SymbolFilters { tick_size: 0, ..FILTERS },
        SymbolFilters { price_min: 2 * WHOLE, ..FILTERS },
        SymbolFilters { lot_step: WHOLE / 1000, ..FILTERS },
        SymbolFilters { lot_step: 0, ..FILTERS },
        SymbolFilters { lot_min: WHOLE / 10, ..FILTERS },
        SymbolFilters { market_lot_step: WHOLE / 100, ..FILTERS },
    ]
}

#[test]
fn ticks_and_steps_change_only_while_nothing_is_open_and_nothing_can_be_placed() {
    let in_use = Err(Reject::from(Why::SymbolInUse));
    for filters in grids() {
        let message = change(filters);
        let mut venue = world(FILTERS);
        assert_eq!(venue.apply(&message), in_use, "it is trading");
        venue.must(&order(1, 1, 5 * WHOLE, WHOLE));
        venue.must(&status(SymbolStatus::Halt));
        assert_eq!(venue.apply(&message), in_use, "an order rests");
        venue.must(&cancel_all(1));
        venue.must(&status(SymbolStatus::Trading));
        venue.must(&NewOrder {
            order_type: 4,
            stop_price: 6 * WHOLE,
            ..order(1, 1, 5 * WHOLE, WHOLE)
        });
        assert_eq!(venue.apply(&message), in_use, "it is trading");
        venue.must(&status(SymbolStatus::EndOfDay));
        assert_eq!(venue.apply(&message), in_use, "a stop waits");
        venue.must(&ExpireAll { symbol: ONE, ..Default::default() });
        let done = Done { id: 0, ..Default::default() };
        assert_eq!(venue.must(&message), [Owned::Done(done)]);
        assert_eq!(venue.core.symbol(ONE).unwrap().filters, filters);
        venue.check_replay();
    }
}

/// Without a tick or a step the least value is a mere bound.
#[test]
fn a_bound_is_no_grid() {
    let free = SymbolFilters { tick_size: 0, lot_step: 0, ..FILTERS };
    let mut venue = world(free);
    venue.must(&order(1, 1, 5 * WHOLE, WHOLE));
    let tight = SymbolFilters { price_min: 6 * WHOLE, lot_min: 2 * WHOLE, ..free };
    venue.must(&change(tight));
    let reason = |verdict: Result<Vec<Owned>, Reject>| verdict.expect_err("a reject").reason;
    assert_eq!(reason(venue.apply(&order(1, 1, 5 * WHOLE, 2 * WHOLE))), Why::PriceFilter);
    assert_eq!(reason(venue.apply(&order(1, 1, 6 * WHOLE, WHOLE))), Why::LotSize);
    venue.check_replay();
}

#[test]
fn everything_else_changes_while_it_trades_and_binds_new_orders() {
    let mut venue = world(FILTERS);
    venue.must(&order(1, 1, 900 * WHOLE, WHOLE));
    let filters = SymbolFilters {
        price_max: 10 * WHOLE,
        lot_max: WHOLE,
        market_lot_min: WHOLE / 10,
        market_lot_max: WHOLE,
        percent_price_up: 2 * WHOLE,
        percent_price_down: WHOLE / 2,
        min_notional: WHOLE,
        max_position: 2000 * WHOLE,
        percent_price_minutes: 1,
        min_notional_minutes: 5,
        iceberg_parts: 3,
        max_orders: 2,
        max_algo_orders: 1,
        max_iceberg_orders: 1,
        min_notional_applies_to_market: 1,
        ..FILTERS
    };
    let message = ChangeSymbol {
        order_types: ORDER_TYPES,
        flags: SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY | SYMBOL_OCO,
        permissions: PERMISSION_SPOT | PERMISSION_MARGIN,
        ..change(filters)
    };
    venue.must(&message);
    let view = venue.core.symbol(ONE).unwrap();
    assert_eq!((view.filters, view.order_types, view.flags), (filters, ORDER_TYPES, 7));
    assert_eq!(view.permissions, PERMISSION_SPOT | PERMISSION_MARGIN);
    let reject = venue.apply(&order(1, 1, 11 * WHOLE, WHOLE)).expect_err("a reject");
    assert_eq!(reject.reason, Why::PriceFilter);
    // The old order trades all the same.
    let events = venue.must(&order(2, 2, 10 * WHOLE, WHOLE));
    assert!(events.iter().any(|event| matches!(event, Owned::Trade(_))));
    venue.check_replay();
}

#[test]
fn every_field_out_of_range() {
    let mut venue = world(FILTERS);
    venue.must(&status(SymbolStatus::Break));
    let mut rejected = |message: ChangeSymbol, reason, detail| {
        assert_eq!(venue.apply(&message), Err(Reject { reason, detail }));
    };
    let sound = change(FILTERS);
    for symbol in [1, u32::MAX] {
        rejected(ChangeSymbol { symbol: SymbolId(symbol), ..sound }, Why::UnknownSymbol, 0);
    }
    for order_types in (0..=u8::MAX).filter(|types| types & !ORDER_TYPES_2 != 0) {
        rejected(ChangeSymbol { order_types, ..sound }, Why::InvalidDefinition, 1);
    }
    for flags in 8..=u8::MAX {
        rejected(ChangeSymbol { flags, ..sound }, Why::InvalidDefinition, 2);
    }
    for permissions in 16..=u8::MAX {
        rejected(ChangeSymbol { permissions, ..sound }, Why::InvalidDefinition, 3);
    }
    // Each filter in turn below zero, by its number.
    for at in 0..13usize {
        let mut words: [i64; 18] = bytemuck::cast(FILTERS);
        words[at] = -1;
        rejected(change(bytemuck::cast(words)), Why::InvalidDefinition, 5 + at as u32);
    }
    let contradictions = [
        (SymbolFilters { price_max: WHOLE / 2, ..FILTERS }, 1),
        (SymbolFilters { lot_max: WHOLE / 50, ..FILTERS }, 4),
        (SymbolFilters { market_lot_min: 2, market_lot_max: 1, ..FILTERS }, 7),
        (SymbolFilters { percent_price_minutes: u32::MAX, ..FILTERS }, 13),
        (SymbolFilters { min_notional_minutes: u32::MAX, ..FILTERS }, 14),
        (SymbolFilters { min_notional_applies_to_market: 2, ..FILTERS }, 19),
    ];
    for (filters, field) in contradictions {
        rejected(change(filters), Why::InvalidDefinition, 5 + field);
    }
    let mut old = Venue::new();
    old.set_rules();
    old.set_limits(roomy());
    let pair = (old.asset("BASE"), old.asset("QUOTE"));
    old.symbol("ONE", pair, SymbolFilters::default());
    let reject = old.apply(&change(SymbolFilters::default())).expect_err("a reject");
    assert_eq!(reject.reason, Why::UnexpectedMessage);
}

/// While an aggressor waits to go on, its symbol is not changed under it.
#[test]
fn a_symbol_with_pending_work_is_not_changed() {
    let mut venue = world(FILTERS);
    venue.set_limits(Limits { max_steps: 1, ..roomy() });
    for _ in 0..3 {
        venue.must(&order(1, 2, 5 * WHOLE, WHOLE));
    }
    venue.must(&order(2, 1, 5 * WHOLE, 3 * WHOLE));
    assert!(venue.core.has_pending(ONE));
    assert!(venue.apply(&change(FILTERS)).is_err());
    // A halt is taken; the order goes on.
    venue.must(&status(SymbolStatus::Halt));
    venue.drain();
    venue.must(&change(grids()[0]));
    venue.check_replay();
}

#[test]
fn orders_are_placed_in_one_of_seven_statuses_and_cancelled_in_all() {
    let mut venue = world(FILTERS);
    for &at in SymbolStatus::ALL {
        venue.must(&status(SymbolStatus::Trading));
        venue.must(&order(1, 1, 5 * WHOLE, WHOLE));
        venue.must(&order(1, 1, 6 * WHOLE, WHOLE));
        venue.must(&status(at));
        assert_eq!(venue.core.symbol(ONE).unwrap().status, at);
        let verdict = venue.apply(&order(2, 1, 4 * WHOLE, WHOLE));
        if at == SymbolStatus::Trading {
            verdict.unwrap();
        } else {
            assert_eq!(verdict, Err(Reject::from(Why::SymbolNotTrading)), "{at:?}");
        }
        let first = venue.core.open_orders(ONE, touchline_protocol::message::enums::Side::Buy);
        let order_id = first.map(|order| order.order_id).next().unwrap();
        let command = CommandHeader { key_id: KeyId(1), ..Default::default() };
        venue.must(&CancelOrder { command, symbol: ONE, order_id, ..Default::default() });
        venue.must(&cancel_all(1));
    }
    assert_eq!(SymbolStatus::ALL.len(), 7);
    venue.check_replay();
}

/// Tick and step are the smallest units: most fills are worth no whole unit of the quote asset. Amounts
/// are truncated, locks rounded up, nothing is lost, and an order that is worth nothing is refused.
#[test]
fn a_tick_times_step_finer_than_the_smallest_amount() {
    let finest = SymbolFilters { tick_size: 1, lot_step: 1, ..SymbolFilters::default() };
    let mut venue = world(finest);
    venue.must(&status(SymbolStatus::Halt));
    venue.must(&change(SymbolFilters { tick_size: 3, ..finest }));
    venue.must(&change(finest));
    venue.must(&status(SymbolStatus::Trading));
    let verdict = venue.apply(&order(1, 2, WHOLE - 1, 1));
    assert_eq!(verdict, Err(Reject::from(Why::NotionalTooSmall)));
    // 3 units at 0.99999999: worth 2, locked as 3.
    venue.must(&order(1, 1, WHOLE - 1, 3));
    assert_eq!(venue.core.balance(AccountId(1), AssetId(1)).unwrap().locked, Amount(3));
    // One by one: each fill is worth nothing, and the lock goes back at the end.
    for left in [2, 1, 0] {
        let sell = NewOrder { order_type: 2, time_in_force: 0, price: 0, ..order(2, 2, 0, 1) };
        let events = venue.must(&sell);
        let Owned::Trade(trade) = events[1] else { panic!("{events:?}") };
        assert_eq!((trade.quote_amount, trade.taker_commission), (0, 0));
        assert_eq!(trade.maker_remaining, left);
        assert_eq!(trade.maker_released, if left == 0 { 3 } else { 0 });
    }
    assert_eq!(venue.core.balance(AccountId(1), AssetId(1)).unwrap().locked, Amount(0));
    assert_eq!(venue.core.balance(AccountId(1), AssetId(0)).unwrap().free.0, 1000 * WHOLE + 3);
    venue.check_replay();
}
