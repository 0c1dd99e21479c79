//! Replacing open orders by hand-made examples: which place they get, what they lock, what they take,
//! and that a refused one leaves everything as it was.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "replace/refused.rs"]
mod refused;
#[path = "support/venue.rs"]
mod venue;

use touchline_core::limits::number;
use touchline_core::{AMOUNT_MAX, ORDER_TYPES_2};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, RejectReason as Why, Role, Side};
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, named, roomy};

const ONE: SymbolId = SymbolId(0);
const ANN: u64 = 1;
const BOB: u64 = 2;
const CAT: u64 = 3;
const BUY: u8 = 1;
const SELL: u8 = 2;

fn filters() -> SymbolFilters {
    SymbolFilters {
        price_max: 1000 * WHOLE,
        tick_size: WHOLE,
        lot_min: WHOLE,
        lot_max: 1000 * WHOLE,
        lot_step: WHOLE,
        min_notional: 2 * WHOLE,
        iceberg_parts: 4,
        percent_price_up: 10 * WHOLE,
        max_position: 10_100 * WHOLE,
        ..Default::default()
    }
}

/// Ann (1), Bob (2) and Cat (3), with 10,000 of each asset.
fn world_of(limits: Limits, filters: SymbolFilters) -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(limits);
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol_of("ONE", pair, filters, (ORDER_TYPES_2, SYMBOL_ICEBERG));
    for name in ["ann", "bob", "cat"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 10_000 * WHOLE);
        venue.deposit(account, pair.1, 10_000 * WHOLE);
    }
    venue
}

fn world() -> Venue {
    world_of(roomy(), filters())
}

fn key(key: u64) -> CommandHeader {
    CommandHeader { key_id: KeyId(key), ..Default::default() }
}

fn limit(owner: u64, side: u8, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        command: key(owner),
        symbol: ONE,
        side,
        order_type: 1,
        time_in_force: 1,
        price: price * WHOLE,
        quantity: quantity * WHOLE,
        ..Default::default()
    }
}

/// Ann's order `order_id` with other values.
fn replace(order_id: u64, price: i64, quantity: i64) -> ReplaceOrder {
    ReplaceOrder {
        command: key(ANN),
        symbol: ONE,
        order_id: OrderId(order_id),
        new_price: price * WHOLE,
        new_quantity: quantity * WHOLE,
        ..Default::default()
    }
}

fn cancel(order_id: u64) -> CancelOrder {
    CancelOrder {
        command: key(ANN),
        symbol: ONE,
        order_id: OrderId(order_id),
        ..Default::default()
    }
}

/// Free and locked base, free and locked quote, in whole units.
fn money(venue: &Venue, account: u32) -> [i64; 4] {
    let of = |asset| venue.core.balance(AccountId(account), AssetId(asset)).unwrap();
    let (base, quote) = (of(0), of(1));
    let all = [base.free, base.locked, quote.free, quote.locked];
    assert!(all.iter().all(|amount| amount.0 % WHOLE == 0), "{all:?}");
    all.map(|amount| amount.0 / WHOLE)
}

fn queue(venue: &Venue, side: Side) -> Vec<u64> {
    venue.core.open_orders(ONE, side).map(|order| order.order_id.0).collect()
}

fn trades(events: &[Owned]) -> Vec<(u64, i64, i64)> {
    let of = |event: &Owned| match event {
        Owned::Trade(trade) => {
            Some((trade.maker_order_id.0, trade.price / WHOLE, trade.quantity / WHOLE))
        }
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn result(events: &[Owned]) -> OrderResult {
    let Some(Owned::Result(result)) = events.last() else { panic!("{events:?}") };
    *result
}

#[track_caller]
fn rejected(venue: &mut Venue, message: &ReplaceOrder, reason: Why, detail: u32) {
    let reject = venue.apply(message).expect_err("a reject");
    assert_eq!((reject.reason, reject.detail), (reason, detail), "{message:?}");
}

#[test]
fn a_lower_quantity_keeps_the_place() {
    let mut venue = world();
    venue.must(&limit(ANN, BUY, 10, 5));
    venue.must(&limit(BOB, BUY, 10, 5));
    venue.must(&limit(CAT, SELL, 10, 1));
    let events = venue.must(&replace(1, 10, 3));
    assert_eq!(
        events,
        [Owned::Reduced(OrderReduced {
            order_id: OrderId(1),
            account: AccountId(1),
            symbol: ONE,
            quantity: 3 * WHOLE,
            executed_quantity: WHOLE,
            released: 20 * WHOLE,
            book_update_id: BookUpdateId(4),
            price: 10 * WHOLE,
            ..Default::default()
        })]
    );
    assert_eq!(queue(&venue, Side::Buy), [1, 2]);
    assert_eq!(money(&venue, 1), [10_001, 0, 9_970, 20]);
    venue.check_replay();
}

#[test]
fn a_higher_quantity_or_another_price_loses_the_place() {
    for (price, quantity, locked, queued) in [
        (10, 6, 10, [2, 1, 3]),
        (11, 5, 5, [1, 2, 3]),
        (9, 5, -5, [2, 3, 1]),
        (9, 7, 13, [2, 3, 1]),
    ] {
        let mut venue = world();
        venue.must(&limit(ANN, BUY, 10, 5));
        venue.must(&limit(BOB, BUY, 10, 5));
        venue.must(&limit(CAT, BUY, 9, 5));
        let position = venue.position;
        let events = venue.must(&replace(1, price, quantity));
        assert_eq!(
            events,
            [
                Owned::Replaced(OrderReplaced {
                    order_id: OrderId(1),
                    account: AccountId(1),
                    symbol: ONE,
                    price: price * WHOLE,
                    quantity: quantity * WHOLE,
                    executed_quantity: 0,
                    locked: locked * WHOLE,
                    book_update_id: BookUpdateId(3),
                    ..Default::default()
                }),
                Owned::Result(OrderResult {
                    order_id: OrderId(1),
                    account: AccountId(1),
                    symbol: ONE,
                    quantity: quantity * WHOLE,
                    book_update_id: BookUpdateId(4),
                    order_list_id: OrderListId::NONE,
                    order_count_0: 1,
                    order_count_1: 1,
                    status: 1,
                    ..Default::default()
                })
            ]
        );
        assert_eq!(queue(&venue, Side::Buy), queued, "{price} {quantity}");
        assert_eq!(venue.core.open_order(ONE, OrderId(1)).unwrap().priority, Position(position));
        assert_eq!(money(&venue, 1)[3], price * quantity);
        // Who trades first: what stands first.
        let first = trades(&venue.must(&limit(BOB, SELL, 1, 2)))[0].0;
        assert_eq!(first, queued[0]);
        venue.check_replay();
    }
}

#[test]
fn a_new_price_may_take() {
    let mut venue = world();
    venue.must(&limit(BOB, SELL, 12, 2));
    venue.must(&limit(BOB, SELL, 13, 2));
    venue.must(&limit(ANN, BUY, 10, 5));
    venue.must(&limit(CAT, SELL, 10, 1));
    let events = venue.must(&replace(3, 12, 6));
    assert_eq!(trades(&events), [(1, 12, 2)]);
    let Owned::Replaced(replaced) = events[0] else { panic!("{events:?}") };
    assert_eq!((replaced.executed_quantity, replaced.locked), (WHOLE, 20 * WHOLE));
    let found = result(&events);
    assert_eq!((found.status, found.book_update_id), (2, BookUpdateId(5)), "one update in all");
    assert_eq!((found.executed_quantity, found.executed_quote), (3 * WHOLE, 34 * WHOLE));
    assert_eq!(money(&venue, 1), [10_003, 0, 9_930, 36]);
    let events = venue.must(&replace(3, 13, 5));
    assert_eq!(trades(&events), [(2, 13, 2)]);
    assert_eq!(result(&events).status, 3);
    assert_eq!(money(&venue, 1), [10_005, 0, 9_940, 0]);
    venue.check_replay();
}

/// What was paid before has no part in what is locked for the rest, at whatever price that is.
#[test]
fn money_of_an_order_that_was_executed_in_part() {
    let mut venue = world_of(roomy(), SymbolFilters::default());
    venue.must(&limit(ANN, BUY, 100, 10));
    venue.must(&limit(CAT, SELL, 100, 9));
    assert_eq!(money(&venue, 1), [10_009, 0, 9_000, 100]);
    let events = venue.must(&replace(1, 1, 10 + 4));
    let Owned::Replaced(replaced) = events[0] else { panic!("{events:?}") };
    assert_eq!((replaced.locked, replaced.executed_quantity), (-95 * WHOLE, 9 * WHOLE));
    assert_eq!(result(&events).status, 2);
    assert_eq!(money(&venue, 1), [10_009, 0, 9_095, 5]);
    // A fill, a reduction and a reduction by replacement, each releases its share.
    venue.must(&limit(CAT, SELL, 1, 2));
    assert_eq!(money(&venue, 1), [10_011, 0, 9_095, 3]);
    let reduce = ReduceOrder {
        command: key(ANN),
        symbol: ONE,
        order_id: OrderId(1),
        new_quantity: 13 * WHOLE,
        ..Default::default()
    };
    let events = venue.must(&reduce);
    let Owned::Reduced(reduced) = events[0] else { panic!("{events:?}") };
    assert_eq!((reduced.released, reduced.executed_quantity), (WHOLE, 11 * WHOLE));
    assert_eq!(money(&venue, 1), [10_011, 0, 9_096, 2]);
    // Up again, twice, and a part cancelled in the end.
    venue.must(&replace(1, 50, 13));
    assert_eq!(money(&venue, 1), [10_011, 0, 8_998, 100]);
    venue.must(&limit(CAT, SELL, 50, 1));
    venue.must(&replace(1, 60, 14));
    assert_eq!(money(&venue, 1), [10_012, 0, 8_928, 120]);
    let events = venue.must(&cancel(1));
    let Owned::Canceled(canceled) = events[0] else { panic!("{events:?}") };
    assert_eq!((canceled.released, canceled.executed_quantity), (120 * WHOLE, 12 * WHOLE));
    assert_eq!(canceled.executed_quote, (900 + 2 + 50) * WHOLE);
    assert_eq!(money(&venue, 1), [10_012, 0, 9_048, 0]);
    venue.check_replay();
}

/// The same for a sell, which locks what it has open; and it is filled whole at the end.
#[test]
fn a_sell_locks_what_it_has_open() {
    let mut venue = world();
    venue.must(&limit(ANN, SELL, 10, 10));
    venue.must(&limit(CAT, BUY, 10, 4));
    let events = venue.must(&replace(1, 8, 20));
    let Owned::Replaced(replaced) = events[0] else { panic!("{events:?}") };
    assert_eq!(replaced.locked, 10 * WHOLE);
    assert_eq!(money(&venue, 1), [9_980, 16, 10_040, 0]);
    let events = venue.must(&limit(CAT, BUY, 8, 16));
    let Owned::Trade(trade) = events[1] else { panic!("{events:?}") };
    assert_eq!((trade.maker_remaining, trade.maker_released), (0, 0));
    assert_eq!(money(&venue, 1), [9_980, 0, 10_168, 0]);
    venue.check_replay();
}

/// A replaced buy that is filled as a maker gives back what its fills were rounded down by.
#[test]
fn a_filled_replaced_buy_leaves_no_lock() {
    let mut venue = world_of(roomy(), SymbolFilters::default());
    let odd =
        |owner, side, price, quantity| NewOrder { price, quantity, ..limit(owner, side, 0, 0) };
    venue.must(&odd(ANN, BUY, 333_333_337, 777_777_777));
    venue.must(&odd(CAT, SELL, 333_333_337, 123_456_789));
    let message =
        ReplaceOrder { new_price: 111_111_113, new_quantity: 999_999_999, ..replace(1, 0, 0) };
    venue.must(&message);
    for quantity in [7, 100_000_001, 223_344_557] {
        venue.must(&odd(CAT, SELL, 111_111_113, quantity));
    }
    let left = venue.core.open_order(ONE, OrderId(1)).unwrap().remaining.0;
    let events = venue.must(&odd(CAT, SELL, 111_111_113, left));
    let Owned::Trade(trade) = events[1] else { panic!("{events:?}") };
    assert_eq!((trade.maker_remaining, trade.maker_released), (0, 2));
    assert_eq!(venue.core.balance(AccountId(1), AssetId(1)).unwrap().locked, Amount(0));
    venue.check_replay();
}

#[test]
fn an_iceberg_stays_one() {
    let mut venue = world();
    let mut iceberg = limit(ANN, SELL, 10, 8);
    iceberg.iceberg_quantity = 3 * WHOLE;
    venue.must(&iceberg);
    venue.must(&limit(CAT, BUY, 10, 2));
    venue.must(&replace(1, 11, 12));
    let order = venue.core.open_order(ONE, OrderId(1)).unwrap();
    assert_eq!((order.visible.0, order.remaining.0), (3 * WHOLE, 10 * WHOLE));
    assert_eq!((order.iceberg.0, order.locked.0), (3 * WHOLE, 10 * WHOLE));
    rejected(&mut venue, &replace(1, 11, 13), Why::IcebergParts, 0);
    rejected(&mut venue, &replace(1, 12, 13), Why::IcebergParts, 0);
    // What is left of its slice while it waited in front is not shown on: a new place, a new slice.
    assert_eq!(trades(&venue.must(&limit(CAT, BUY, 11, 5))), [(1, 11, 3), (1, 11, 2)]);
    venue.must(&replace(1, 11, 8));
    assert_eq!(venue.core.open_order(ONE, OrderId(1)).unwrap().visible.0, WHOLE);
    venue.check_replay();
}

/// A stop that was triggered and rests is an order as any other.
#[test]
fn a_triggered_stop_in_the_book_can_be_replaced() {
    let mut venue = world();
    let stop = NewOrder {
        order_type: 4,
        stop_price: 20 * WHOLE,
        client_order_id: named("stop"),
        ..limit(ANN, BUY, 19, 5)
    };
    venue.must(&stop);
    venue.must(&limit(BOB, SELL, 20, 2));
    venue.must(&limit(CAT, BUY, 20, 1));
    venue.drain();
    let events = venue.must(&replace(1, 20, 5));
    assert_eq!(trades(&events), [(2, 20, 1)]);
    let order = venue.core.find_open_order(AccountId(1), ONE, &named("stop")).unwrap();
    assert_eq!((order.order_id, order.price.0), (OrderId(1), 20 * WHOLE));
    assert_eq!(order.order_type.to_wire(), 4);
    venue.check_replay();
}

/// The reply goes to the session that asked; the order stays that of the session that placed it. Its
/// order counts are what they were.
#[test]
fn sessions_and_order_counts() {
    let limits = Limits { orders_per_interval_0: 2, max_steps: 1, ..roomy() };
    let mut venue = world_of(limits, filters());
    let one = venue.logon("one", Role::Trader, Lane::Hot, KeyId(ANN));
    let two = venue.logon("two", Role::Trader, Lane::Hot, KeyId(ANN));
    for _ in 0..2 {
        venue.must(&limit(BOB, SELL, 12, 1));
    }
    for _ in 0..2 {
        let command = venue.header(one, KeyId(ANN));
        venue.must(&NewOrder { command, ..limit(ANN, BUY, 10, 5) });
    }
    let command = venue.header(two, KeyId(ANN));
    let events = venue.must(&ReplaceOrder { command, ..replace(3, 12, 5) });
    assert!(matches!(events.last(), Some(Owned::Continues(_))), "{events:?}");
    let head = venue.core.pending_head().unwrap();
    assert_eq!((head.session, head.correlation), (two, command.correlation));
    assert_eq!((head.sequence, head.epoch), (command.sequence, command.epoch));
    let found = result(&venue.drain());
    assert_eq!((found.order_count_0, found.order_count_1), (2, 2));
    assert_eq!(venue.core.open_order(ONE, OrderId(3)).unwrap().session, one);
    // In another window nothing is counted yet.
    venue.time_ns += 10_000_000_000;
    let command = venue.header(two, KeyId(ANN));
    let found = result(&venue.must(&ReplaceOrder { command, ..replace(4, 9, 5) }));
    assert_eq!((found.order_count_0, found.order_count_1), (0, 2));
    venue.check_replay();
}

/// It keeps its self-trade prevention.
#[test]
fn a_replaced_order_obeys_its_mode() {
    let mut venue = world();
    venue.must(&limit(ANN, SELL, 12, 1));
    venue.must(&NewOrder { self_trade_prevention: 2, ..limit(ANN, BUY, 10, 5) });
    let events = venue.must(&replace(2, 12, 5));
    assert!(matches!(events[1], Owned::Prevented(_)), "{events:?}");
    let found = result(&events);
    assert_eq!((found.status, found.released), (5, 60 * WHOLE));
    assert_eq!(found.book_update_id, BookUpdateId(3), "it has left its place");
    assert_eq!(money(&venue, 1), [9_999, 1, 10_000, 0]);
    venue.check_replay();
}

/// Wherever the steps run out, the same trades happen and the same is left.
#[test]
fn steps_run_out_at_every_point() {
    let run = |max_steps| {
        let mut venue = world_of(Limits { max_steps, ..roomy() }, filters());
        venue.must(&limit(ANN, BUY, 10, 9));
        venue.must(&limit(CAT, SELL, 10, 2));
        venue.drain();
        for price in 11..15 {
            let mut iceberg = limit(BOB, SELL, price, 4);
            iceberg.iceberg_quantity = WHOLE;
            venue.must(&iceberg);
            venue.must(&limit(CAT, SELL, price, 1));
            let stop_price = price * WHOLE;
            venue.must(&NewOrder { order_type: 6, stop_price, ..limit(CAT, SELL, price, 1) });
        }
        let mut events = venue.must(&replace(1, 13, 40));
        events.extend(venue.drain());
        venue.check_replay();
        (trades(&events), [1, 2, 3].map(|account| money(&venue, account)), queue(&venue, Side::Buy))
    };
    let whole = run(256);
    assert!(whole.0.len() > 12, "{whole:?}");
    for max_steps in 1..32 {
        assert_eq!(run(max_steps), whole, "{max_steps} steps");
    }
}
