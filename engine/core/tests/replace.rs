//! Replacing open orders by hand-made examples: which place they get, what they lock, what they take,
//! and that a refused one leaves everything as it was.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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

#[test]
fn a_maker_only_order_never_takes() {
    let mut venue = world();
    let maker =
        |side, price| NewOrder { order_type: 7, time_in_force: 0, ..limit(ANN, side, price, 5) };
    venue.must(&limit(BOB, SELL, 12, 1));
    venue.must(&maker(BUY, 10));
    rejected(&mut venue, &replace(2, 12, 5), Why::WouldTake, 0);
    rejected(&mut venue, &replace(2, 13, 9), Why::WouldTake, 0);
    assert_eq!(result(&venue.must(&replace(2, 11, 5))).status, 1);
    venue.check_replay();
}

/// Every reason, and the place in the queue as it was each time.
#[test]
fn every_reason() {
    let mut venue = world();
    let define = DefineSymbol {
        name: touchline_protocol::text::SymbolName::new("MARGIN").unwrap(),
        base: AssetId(0),
        quote: AssetId(1),
        status: 2,
        order_types: ORDER_TYPES_2,
        permissions: PERMISSION_MARGIN,
        ..Default::default()
    };
    venue.must(&define);
    venue.must(&limit(BOB, BUY, 10, 5));
    venue.must(&limit(ANN, BUY, 10, 5));
    venue.must(&limit(CAT, BUY, 10, 5));
    venue.must(&limit(CAT, SELL, 10, 7));
    let stop = NewOrder { order_type: 4, stop_price: 20 * WHOLE, ..limit(ANN, BUY, 20, 5) };
    venue.must(&stop);
    type Change = fn(&mut ReplaceOrder);
    let cases: &[(Change, Why)] = &[
        (|it| it.command.key_id = KeyId(9), Why::UnknownKey),
        (|it| it.command.session = SessionId(9), Why::UnknownSession),
        (|it| it.command.not_after_ns = 1, Why::TooLate),
        (|it| it.command.key_id = KeyId(BOB), Why::UnknownOrder),
        (|it| it.symbol = SymbolId(2), Why::UnknownSymbol),
        (|it| it.symbol = SymbolId(u32::MAX), Why::UnknownSymbol),
        (|it| it.symbol = SymbolId(1), Why::SymbolNotPermitted),
        (|it| it.order_id = OrderId(0), Why::UnknownOrder),
        (|it| it.order_id = OrderId(1), Why::UnknownOrder),
        (|it| it.order_id = OrderId(99), Why::UnknownOrder),
        (|it| it.order_id = OrderId(u64::MAX), Why::UnknownOrder),
        (|it| it.order_id = OrderId(5), Why::NotReplaceable),
        (|it| (it.order_id, it.new_price) = (OrderId(5), 21 * WHOLE), Why::NotReplaceable),
        (|it| it.new_price = 0, Why::InvalidPrice),
        (|it| it.new_price = -1, Why::InvalidPrice),
        (|it| it.new_price = i64::MIN, Why::InvalidPrice),
        (|it| it.new_price = i64::MAX, Why::PriceFilter),
        (|it| it.new_price = 1001 * WHOLE, Why::PriceFilter),
        (|it| it.new_price += 1, Why::PriceFilter),
        (|it| it.new_price = 101 * WHOLE, Why::PercentPrice),
        (|it| it.new_quantity = 0, Why::InvalidQuantity),
        (|it| it.new_quantity = -1, Why::InvalidQuantity),
        (|it| it.new_quantity = i64::MIN, Why::InvalidQuantity),
        (|it| (it.new_price, it.new_quantity) = (11 * WHOLE, i64::MIN), Why::InvalidQuantity),
        (|it| (it.new_price, it.new_quantity) = (11 * WHOLE, 0), Why::InvalidQuantity),
        (|it| it.new_quantity = i64::MAX, Why::LotSize),
        (|it| it.new_quantity += 1, Why::LotSize),
        (|it| it.new_quantity -= 1, Why::LotSize),
        (|it| it.new_quantity = 1001 * WHOLE, Why::LotSize),
        (|it| it.new_quantity = 2 * WHOLE, Why::QuantityBelowExecuted),
        (|it| (it.new_price, it.new_quantity) = (9 * WHOLE, 2 * WHOLE), Why::QuantityBelowExecuted),
        (|_| (), Why::NothingChanged),
        (|it| (it.new_price, it.new_quantity) = (9 * WHOLE, 1000 * WHOLE), Why::MaxPosition),
    ];
    for (change, reason) in cases {
        let mut message = replace(2, 10, 5);
        change(&mut message);
        rejected(&mut venue, &message, *reason, 0);
        assert_eq!(queue(&venue, Side::Buy), [2, 3]);
    }
    venue.must(&SetSymbolStatus { symbol: ONE, status: 5, ..Default::default() });
    rejected(&mut venue, &replace(2, 11, 5), Why::SymbolNotTrading, 0);
    rejected(&mut venue, &replace(2, 10, 4), Why::SymbolNotTrading, 0);
    venue.check_replay();
}

#[test]
fn by_rules_1_there_is_none() {
    let mut venue = Venue::new();
    venue.set_rules();
    rejected(&mut venue, &replace(1, 10, 5), Why::UnexpectedMessage, 0);
}

/// Funds and position are reckoned with the order gone.
#[test]
fn funds_and_position_of_the_difference() {
    let mut venue = world();
    venue.must(&limit(ANN, BUY, 100, 100));
    assert_eq!(money(&venue, 1), [10_000, 0, 0, 10_000]);
    rejected(&mut venue, &replace(1, 101, 100), Why::InsufficientBalance, 0);
    rejected(&mut venue, &replace(1, 99, 102), Why::MaxPosition, 0);
    rejected(&mut venue, &replace(1, 1, 1), Why::MinNotional, 0);
    venue.must(&replace(1, 200, 50));
    venue.must(&replace(1, 99, 100));
    assert_eq!(money(&venue, 1), [10_000, 0, 100, 9_900]);
    venue.must(&limit(BOB, SELL, 1000, 10));
    let mut other = replace(2, 1000, 11);
    other.command = key(BOB);
    venue.must(&other);
    assert_eq!(money(&venue, 2), [9_989, 11, 10_000, 0]);
    other.new_quantity = 1000 * WHOLE;
    venue.must(&other);
    venue.check_replay();
}

/// A full venue: the order's own room and level are its successor's.
#[test]
fn room_of_the_order_is_its_own() {
    let mut venue = world_of(
        Limits { open_orders: 3, price_levels: 2, pending_work: 0, max_steps: 2, ..roomy() },
        filters(),
    );
    venue.must(&limit(ANN, BUY, 10, 5));
    venue.must(&limit(BOB, BUY, 10, 5));
    venue.must(&limit(ANN, BUY, 9, 5));
    rejected(&mut venue, &replace(1, 8, 5), Why::CapacityReached, number::PRICE_LEVELS);
    venue.must(&replace(3, 8, 5));
    venue.must(&replace(1, 8, 5));
    assert_eq!(queue(&venue, Side::Buy), [2, 3, 1]);
    venue.check_replay();
    // What may take longer than one transaction needs room in the queue of pending work.
    let limits = Limits { pending_work: 0, max_steps: 2, ..roomy() };
    let mut venue = world_of(limits, filters());
    for _ in 0..3 {
        venue.must(&limit(BOB, SELL, 12, 1));
    }
    venue.must(&limit(ANN, BUY, 10, 5));
    rejected(&mut venue, &replace(4, 12, 5), Why::CapacityReached, number::PENDING_WORK);
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

/// However often an order is replaced and executed, what it has executed stays in range.
#[test]
fn executed_quote_is_bounded() {
    let mut venue = world_of(roomy(), SymbolFilters::default());
    for asset in [0, 1] {
        let rest = AMOUNT_MAX - 30_000 * WHOLE;
        venue.deposit(AccountId(1), AssetId(asset), rest);
    }
    let round = |quantity, price| NewOrder { price, quantity, ..limit(ANN, BUY, 0, 0) };
    let half = AMOUNT_MAX / 2 - 10_000 * WHOLE;
    venue.must(&round(2 * WHOLE, half));
    venue.must(&NewOrder { side: SELL, ..round(WHOLE, half) });
    let message = |price, quantity| ReplaceOrder {
        new_price: price,
        new_quantity: quantity,
        ..replace(1, 0, 0)
    };
    // Half of the most is executed; the rest may be worth the other half and no more.
    let other = AMOUNT_MAX - half;
    rejected(&mut venue, &message(other / 2 + 1, 3 * WHOLE), Why::Overflow, 0);
    rejected(&mut venue, &message(other + 1, 2 * WHOLE), Why::Overflow, 0);
    venue.must(&message(half / 3, 4 * WHOLE));
    venue.must(&NewOrder { side: SELL, ..round(WHOLE, half / 3) });
    rejected(&mut venue, &message(half / 2, 4 * WHOLE), Why::Overflow, 0);
    venue.check_replay();
}

/// A venue to which refused replacements happen goes the same way as one without them.
#[test]
fn a_refused_replacement_leaves_no_trace() {
    let run = |with_rejects: bool| {
        let mut venue = world_of(Limits { price_levels: 3, ..roomy() }, filters());
        for (owner, side, price, quantity) in [
            (BOB, BUY, 10, 3),
            (ANN, BUY, 10, 4),
            (CAT, BUY, 10, 5),
            (ANN, BUY, 9, 4),
            (ANN, SELL, 12, 6),
        ] {
            let mut order = limit(owner, side, price, quantity);
            order.iceberg_quantity = if quantity > 3 { 2 * WHOLE } else { 0 };
            venue.must(&order);
        }
        for round in 0..12 {
            if with_rejects {
                // First, in the middle and last of a queue, alone on a level, of either side.
                for order_id in [2, 4, 5] {
                    for (price, quantity) in [(11, 4), (10, 900), (8, 4), (9, 8)] {
                        let message = replace(order_id, price, quantity);
                        let open = venue.core.open_order(ONE, OrderId(order_id));
                        if open.is_some() {
                            let _ = venue.apply(&replace(order_id, price, 5000));
                        }
                        if quantity == 900 {
                            assert!(venue.apply(&message).is_err());
                        }
                    }
                }
            }
            let side = if round % 3 == 2 { BUY } else { SELL };
            let price = if side == BUY { 12 } else { 9 };
            venue.must(&NewOrder { time_in_force: 2, ..limit(CAT, side, price, 1) });
        }
        let events: Vec<u8> =
            venue.journal.iter().flat_map(|entry| entry.events.iter().copied()).collect();
        (events, venue.core.state_hash())
    };
    assert_eq!(run(true), run(false));
}
