//! Every field out of its range, one at a time, gets its own reason and changes nothing; arbitrary
//! bytes never panic. (`Venue::apply` checks after every command that a reject left the state hash and
//! the outbox alone and that the venue is sound.)

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "bad_input/bytes.rs"]
mod bytes;
#[path = "bad_input/definitions.rs"]
mod definitions;
#[path = "bad_input/rules_2.rs"]
mod rules_2;
#[path = "support/venue.rs"]
mod venue;
#[path = "bad_input/what_orders_say.rs"]
mod what_orders_say;

use std::panic::{AssertUnwindSafe, catch_unwind};
use touchline_core::limits::number;
use touchline_core::{AMOUNT_MAX, Applied, ORDER_TYPES, Outbox};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::{Lane, RejectReason as Why, Role};
use touchline_protocol::message::event::Done;
use touchline_protocol::text::{AssetName, Name, SymbolName};
use touchline_protocol::units::*;
use venue::{Venue, WHOLE, named, roomy};

const ONE: SymbolId = SymbolId(0);
const BARE: SymbolId = SymbolId(1);
const HALTED: SymbolId = SymbolId(2);
const MARGIN: SymbolId = SymbolId(3);

/// Key 1: an account with funds. 2: no funds. 3: may not trade. 4: KEY_USER_DATA only. 5: revoked.
fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(Limits { orders_per_interval_0: 50, ..roomy() });
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    let filters = SymbolFilters {
        price_min: 100,
        price_max: 1_000_000,
        tick_size: 50,
        lot_min: 2 * WHOLE,
        lot_max: 100 * WHOLE,
        lot_step: WHOLE,
        market_lot_min: 3 * WHOLE,
        market_lot_max: 50 * WHOLE,
        market_lot_step: 2 * WHOLE,
        min_notional: 1000,
        max_orders: 3,
        ..Default::default()
    };
    venue.symbol("ONE", pair, filters);
    venue.symbol("BARE", pair, SymbolFilters::default());
    venue.symbol("HALTED", pair, SymbolFilters::default());
    venue.symbol("MARGIN", pair, SymbolFilters::default());
    venue.must(&SetSymbolStatus { symbol: HALTED, status: 5, ..Default::default() });
    let mut define = symbol("MARGIN-2");
    define.permissions = PERMISSION_MARGIN;
    venue.must(&define);
    let (rich, _) = venue.account("rich", (0, 0));
    venue.deposit(rich, pair.0, 1000 * WHOLE);
    venue.deposit(rich, pair.1, 1000 * WHOLE);
    let (poor, _) = venue.account("poor", (0, 0));
    let idle = CreateAccount { name: name("idle"), permissions: 1, ..Default::default() };
    venue.must(&idle);
    let account = AccountId(3);
    venue.must(&CreateKey { account, permissions: KEY_ALL, ..Default::default() });
    let permissions = KEY_USER_DATA;
    venue.must(&CreateKey { account: rich, permissions, ..Default::default() });
    venue.must(&CreateKey { account: poor, permissions: KEY_ALL, ..Default::default() });
    venue.must(&RevokeKey { key: KeyId(5), ..Default::default() });
    venue.logon("adapter", Role::Adapter, Lane::Hot, KeyId(0));
    venue
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn symbol(text: &str) -> DefineSymbol {
    DefineSymbol {
        name: SymbolName::new(text).unwrap(),
        base: AssetId(0),
        quote: AssetId(1),
        status: 2,
        order_types: ORDER_TYPES,
        permissions: PERMISSION_SPOT,
        ..Default::default()
    }
}

#[track_caller]
fn rejected<M: Message + std::fmt::Debug>(
    venue: &mut Venue,
    message: &M,
    reason: Why,
    detail: u32,
) {
    let reject = venue.apply(message).expect_err("a reject");
    assert_eq!((reject.reason, reject.detail), (reason, detail), "{message:?}");
}

/// A sound order of the funded account, by the adapter, and the same with one thing changed.
fn order(venue: &mut Venue, change: impl FnOnce(&mut NewOrder)) -> NewOrder {
    let mut order = NewOrder {
        command: venue.header(SessionId(1), KeyId(1)),
        symbol: ONE,
        side: 1,
        order_type: 1,
        time_in_force: 1,
        price: 1000,
        quantity: 4 * WHOLE,
        ..Default::default()
    };
    change(&mut order);
    order
}

/// Which is the last time at which it may be decided.
#[test]
fn a_command_is_not_too_late_at_the_time_that_it_names() {
    let mut venue = world();
    let order = order(&mut venue, |order| order.command.not_after_ns = venue::START_NS);
    venue.must(&order);
}

#[test]
fn every_field_of_an_order() {
    let mut venue = world();
    type Change = fn(&mut NewOrder);
    let limits: &[(Change, Why)] = &[
        (|order| order.command.session = SessionId(2), Why::UnknownSession),
        (|order| order.command.session = SessionId(u32::MAX), Why::UnknownSession),
        (|order| order.command.epoch = Epoch(0), Why::StaleEpoch),
        (|order| order.command.epoch = Epoch(u32::MAX), Why::StaleEpoch),
        (|order| order.command.sequence = Sequence(0), Why::DuplicateSequence),
        (|order| order.command.not_after_ns = venue::START_NS - 1, Why::TooLate),
        (|order| order.command.not_after_ns = 1, Why::TooLate),
        (|order| order.command.key_id = KeyId(0), Why::UnknownKey),
        (|order| order.command.key_id = KeyId(6), Why::UnknownKey),
        (|order| order.command.key_id = KeyId(u64::MAX), Why::UnknownKey),
        (|order| order.command.key_id = KeyId(5), Why::UnknownKey),
        (|order| order.command.key_id = KeyId(4), Why::KeyNotPermitted),
        (|order| order.command.key_id = KeyId(3), Why::AccountCannotTrade),
        (|order| order.symbol = SymbolId(5), Why::UnknownSymbol),
        (|order| order.symbol = SymbolId(u32::MAX), Why::UnknownSymbol),
        (|order| order.symbol = SymbolId(4), Why::SymbolNotPermitted),
        (|order| order.side = 0, Why::InvalidSide),
        (|order| order.side = 3, Why::InvalidSide),
        (|order| order.side = u8::MAX, Why::InvalidSide),
        (|order| order.order_type = 0, Why::InvalidOrderType),
        (|order| order.order_type = 8, Why::InvalidOrderType),
        (|order| order.order_type = u8::MAX, Why::InvalidOrderType),
        (|order| order.order_type = 3, Why::OrderTypeNotSupported),
        (|order| order.order_type = 7, Why::OrderTypeNotSupported),
        // Rules version 1 does not ask what it takes of such a type.
        (|order| (order.order_type, order.time_in_force) = (4, 0), Why::OrderTypeNotSupported),
        (|order| (order.order_type, order.time_in_force) = (6, 9), Why::OrderTypeNotSupported),
        (|order| order.time_in_force = 0, Why::InvalidTimeInForce),
        (|order| order.time_in_force = 4, Why::InvalidTimeInForce),
        (|order| order.flags = 2, Why::UnsupportedCombination),
        (|order| order.flags = u8::MAX, Why::UnsupportedCombination),
        (|order| order.quote_quantity = 1, Why::UnsupportedCombination),
        (|order| order.quote_quantity = i64::MIN, Why::UnsupportedCombination),
        (|order| order.stop_price = -1, Why::UnsupportedCombination),
        (|order| order.stop_price = i64::MAX, Why::UnsupportedCombination),
        (|order| order.iceberg_quantity = 1, Why::UnsupportedCombination),
        (|order| order.iceberg_quantity = i64::MIN, Why::UnsupportedCombination),
        (|order| order.self_trade_prevention = 1, Why::UnsupportedCombination),
        (|order| order.price = 0, Why::InvalidPrice),
        (|order| order.price = -1, Why::InvalidPrice),
        (|order| order.price = i64::MIN, Why::InvalidPrice),
        (|order| order.quantity = 0, Why::InvalidQuantity),
        (|order| order.quantity = -1, Why::InvalidQuantity),
        (|order| order.quantity = i64::MIN, Why::InvalidQuantity),
        (|order| order.price = 50, Why::PriceFilter),
        (|order| order.price = 1_000_050, Why::PriceFilter),
        (|order| order.price = 1001, Why::PriceFilter),
        (|order| order.price = i64::MAX, Why::PriceFilter),
        (|order| order.quantity = WHOLE, Why::LotSize),
        (|order| order.quantity = 101 * WHOLE, Why::LotSize),
        (|order| order.quantity = 4 * WHOLE + 1, Why::LotSize),
        (|order| order.quantity = i64::MAX, Why::LotSize),
        (|order| (order.price, order.quantity) = (100, 9 * WHOLE), Why::MinNotional),
        (|order| order.symbol = HALTED, Why::SymbolNotTrading),
        (|order| (order.symbol, order.flags) = (HALTED, 1), Why::SymbolNotTrading),
        (|order| (order.symbol, order.price) = (HALTED, -1), Why::SymbolNotTrading),
        (|order| order.command.key_id = KeyId(2), Why::InsufficientBalance),
        (|order| (order.command.key_id, order.side) = (KeyId(2), 2), Why::InsufficientBalance),
    ];
    for (change, reason) in limits {
        let order = order(&mut venue, change);
        rejected(&mut venue, &order, *reason, 0);
    }
    let sound = order(&mut venue, |_| ());
    venue.must(&sound);
    rejected(&mut venue, &sound, Why::DuplicateSequence, 0);
}

#[test]
fn extremes_of_a_symbol_without_filters() {
    let mut venue = world();
    let edge: [(i64, i64, Why); 7] = [
        (i64::MAX, i64::MAX, Why::Overflow),
        (i64::MAX, WHOLE, Why::Overflow),
        (WHOLE, AMOUNT_MAX + 1, Why::Overflow),
        (1, 1, Why::NotionalTooSmall),
        (1, WHOLE - 1, Why::NotionalTooSmall),
        (AMOUNT_MAX, WHOLE, Why::InsufficientBalance),
        (1, i64::MAX, Why::InsufficientBalance),
    ];
    for side in [1, 2] {
        for (price, quantity, reason) in edge {
            let order = order(&mut venue, |order| {
                (order.symbol, order.side, order.price, order.quantity) =
                    (BARE, side, price, quantity);
            });
            if (side, reason) == (2, Why::InsufficientBalance) && quantity == WHOLE {
                venue.must(&order);
            } else {
                rejected_or_funded(&mut venue, &order, reason);
            }
        }
    }
}

/// A buy of a huge quantity at the lowest price costs 922 units, which the account has.
fn rejected_or_funded(venue: &mut Venue, order: &NewOrder, reason: Why) {
    if order.side == 1 && order.price == 1 && order.quantity == i64::MAX {
        venue.must(order);
    } else {
        rejected(venue, order, reason, 0);
    }
}

#[test]
fn every_field_of_a_market_order() {
    let mut venue = world();
    type Change = fn(&mut NewOrder);
    let market: &[(Change, Why)] = &[
        (|order| order.price = 1, Why::UnsupportedCombination),
        (|order| order.price = i64::MIN, Why::UnsupportedCombination),
        (|order| order.time_in_force = 1, Why::UnsupportedCombination),
        (|order| order.time_in_force = u8::MAX, Why::UnsupportedCombination),
        (|order| order.quote_quantity = 1, Why::UnsupportedCombination),
        (|order| order.quantity = 0, Why::InvalidQuantity),
        (|order| order.quantity = i64::MIN, Why::InvalidQuantity),
        (|order| order.quantity = i64::MAX, Why::LotSize),
        (|order| order.quantity = WHOLE, Why::LotSize),
        (|order| order.quantity = 2 * WHOLE, Why::MarketLotSize),
        (|order| order.quantity = 4 * WHOLE, Why::MarketLotSize),
        (|order| order.quantity = 51 * WHOLE, Why::MarketLotSize),
    ];
    for (change, reason) in market {
        let order = order(&mut venue, |order| {
            (order.order_type, order.time_in_force, order.price) = (2, 0, 0);
            order.quantity = 5 * WHOLE;
            change(order);
        });
        rejected(&mut venue, &order, *reason, 0);
    }
    // A sell locks its quantity whatever is on the book.
    let sell = order(&mut venue, |order| {
        (order.symbol, order.side, order.order_type, order.time_in_force) = (BARE, 2, 2, 0);
        (order.price, order.quantity) = (0, i64::MAX);
    });
    rejected(&mut venue, &sell, Why::InsufficientBalance, 0);
}

#[test]
fn what_depends_on_open_orders() {
    let mut venue = world();
    let first = order(&mut venue, |order| order.client_order_id = named("x"));
    venue.must(&first);
    let again = order(&mut venue, |order| order.client_order_id = named("x"));
    rejected(&mut venue, &again, Why::DuplicateClientOrderId, 0);
    for _ in 0..2 {
        let more = order(&mut venue, |_| ());
        venue.must(&more);
    }
    let fourth = order(&mut venue, |_| ());
    rejected(&mut venue, &fourth, Why::MaxNumOrders, 0);
    for _ in 3..50 {
        let ioc = order(&mut venue, |order| (order.symbol, order.time_in_force) = (BARE, 2));
        venue.must(&ioc);
    }
    let beyond = order(&mut venue, |order| order.symbol = BARE);
    rejected(&mut venue, &beyond, Why::TooManyOrders, 0);
    let validated = order(&mut venue, |order| (order.symbol, order.flags) = (BARE, 1));
    rejected(&mut venue, &validated, Why::TooManyOrders, 0);
    venue.time_ns += 10_000_000_000;
    let later = order(&mut venue, |order| order.symbol = BARE);
    venue.must(&later);
}

#[test]
fn capacities_are_named_by_their_number() {
    let mut venue = world();
    let place = |venue: &mut Venue, price, side| {
        let order =
            order(venue, |order| (order.symbol, order.price, order.side) = (BARE, price, side));
        venue.apply(&order).map_err(|reject| (reject.reason, reject.detail))
    };
    let full = Limits { open_orders: 3, price_levels: 2, ..roomy() };
    venue.set_limits(full);
    place(&mut venue, 500, 1).unwrap();
    place(&mut venue, 600, 1).unwrap();
    let levels = Err((Why::CapacityReached, number::PRICE_LEVELS));
    assert_eq!(place(&mut venue, 700, 1), levels);
    place(&mut venue, 600, 1).unwrap();
    let orders = Err((Why::CapacityReached, number::OPEN_ORDERS));
    assert_eq!(place(&mut venue, 600, 1), orders);
    let below = Limits { open_orders: 2, ..full };
    let message = SetLimits { limits: below, ..Default::default() };
    rejected(&mut venue, &message, Why::LimitOutOfRange, number::OPEN_ORDERS);
    // One that takes first makes its own room.
    place(&mut venue, 400, 2).unwrap();
    venue.set_limits(Limits { max_steps: 1, pending_work: 0, open_orders: 9, ..full });
    place(&mut venue, 600, 1).unwrap();
    place(&mut venue, 600, 1).unwrap();
    let sell = order(&mut venue, |order| {
        (order.symbol, order.side, order.quantity) = (BARE, 2, 9 * WHOLE);
        order.price = 600;
    });
    rejected(&mut venue, &sell, Why::CapacityReached, number::PENDING_WORK);
}

#[test]
fn every_field_of_cancels_and_reductions() {
    let mut venue = world();
    let placed = order(&mut venue, |order| order.client_order_id = named("mine"));
    venue.must(&placed);
    let cancel = |venue: &mut Venue, key, symbol, order_id| CancelOrder {
        command: venue.header(SessionId(1), KeyId(key)),
        symbol,
        order_id: OrderId(order_id),
        ..Default::default()
    };
    for (key, symbol, id, reason) in [
        (4, ONE, 1, Why::KeyNotPermitted),
        (3, ONE, 1, Why::AccountCannotTrade),
        (1, SymbolId(9), 1, Why::UnknownSymbol),
        (1, ONE, 0, Why::UnknownOrder),
        (1, ONE, 2, Why::UnknownOrder),
        (1, ONE, u64::MAX, Why::UnknownOrder),
        (1, BARE, 1, Why::UnknownOrder),
        (2, ONE, 1, Why::UnknownOrder),
    ] {
        let message = cancel(&mut venue, key, symbol, id);
        rejected(&mut venue, &message, reason, 0);
    }
    let by_name = |venue: &mut Venue, key, order_id, name: &str| CancelOrderNamed {
        command: venue.header(SessionId(1), KeyId(key)),
        symbol: ONE,
        order_id: OrderId(order_id),
        client_order_id: named(name),
        ..Default::default()
    };
    for (key, id, text, reason) in [
        (1, 0, "", Why::UnknownOrder),
        (1, 0, "other", Why::UnknownOrder),
        (2, 0, "mine", Why::UnknownOrder),
        (2, 1, "mine", Why::UnknownOrder),
        (1, 1, "other", Why::ClientOrderIdMismatch),
        (1, 2, "mine", Why::UnknownOrder),
    ] {
        let message = by_name(&mut venue, key, id, text);
        rejected(&mut venue, &message, reason, 0);
    }
    let reduce = |venue: &mut Venue, order_id, new_quantity| ReduceOrder {
        command: venue.header(SessionId(1), KeyId(1)),
        symbol: ONE,
        order_id: OrderId(order_id),
        new_quantity,
        ..Default::default()
    };
    for (id, quantity, reason) in [
        (1, 0, Why::InvalidQuantity),
        (1, i64::MIN, Why::InvalidQuantity),
        (1, WHOLE, Why::LotSize),
        (1, 3 * WHOLE + 1, Why::LotSize),
        (1, i64::MAX, Why::LotSize),
        (1, 4 * WHOLE, Why::NotReduced),
        (1, 5 * WHOLE, Why::NotReduced),
        (2, 3 * WHOLE, Why::UnknownOrder),
    ] {
        let message = reduce(&mut venue, id, quantity);
        rejected(&mut venue, &message, reason, 0);
    }
    let sell = order(&mut venue, |order| (order.side, order.quantity) = (2, 3 * WHOLE));
    venue.must(&sell);
    let message = reduce(&mut venue, 1, 3 * WHOLE);
    rejected(&mut venue, &message, Why::QuantityBelowExecuted, 0);
    venue.must(&SetSymbolStatus { symbol: ONE, status: 7, ..Default::default() });
    let message = reduce(&mut venue, 1, 3 * WHOLE);
    rejected(&mut venue, &message, Why::SymbolNotTrading, 0);
    let message = by_name(&mut venue, 1, 1, "mine");
    venue.must(&message);
}

#[test]
fn a_reduction_obeys_the_least_notional() {
    let mut venue = world();
    let placed = order(&mut venue, |order| (order.price, order.quantity) = (100, 11 * WHOLE));
    venue.must(&placed);
    let mut message = ReduceOrder {
        command: venue.header(SessionId(1), KeyId(1)),
        symbol: ONE,
        order_id: OrderId(1),
        new_quantity: 9 * WHOLE,
        ..Default::default()
    };
    rejected(&mut venue, &message, Why::MinNotional, 0);
    message.new_quantity = 10 * WHOLE;
    venue.must(&message);
}

#[test]
fn nothing_but_a_start_before_the_rules() {
    let mut venue = Venue::new();
    let asset = DefineAsset { name: AssetName::new("A").unwrap(), ..Default::default() };
    venue.must(&EngineStarted { incarnation: 1, ..Default::default() });
    venue.must(&SetLimits { limits: roomy(), ..Default::default() });
    rejected(&mut venue, &asset, Why::UnexpectedMessage, 0);
    rejected(&mut venue, &NewOrder::default(), Why::UnexpectedMessage, 0);
    venue.set_rules();
    venue.must(&asset);
    venue.check_replay();
}

#[test]
#[should_panic(expected = "time goes back")]
fn time_never_goes_back() {
    let mut venue = world();
    venue.time_ns -= 1;
    let sound = order(&mut venue, |_| ());
    let _outcome = venue.apply(&sound);
}

/// In the middle of a command it would leave behind what it has done by then.
#[test]
fn an_outbox_without_room_for_a_command_is_refused_before_anything_happens() {
    let mut venue = world();
    let mut memory = venue::outbox_memory();
    let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut memory));
    let context = venue.context();
    let sound = order(&mut venue, |_| ());
    let words = venue::aligned(bytemuck::bytes_of(&sound));
    let command = decode::command(bytemuck::cast_slice(&words)).unwrap();
    outbox.push(&Done::default());
    let before = venue.core.state_hash();
    let applied =
        catch_unwind(AssertUnwindSafe(|| venue.core.apply(&context, &command, &mut outbox)));
    let why = applied.unwrap_err();
    let why = why.downcast_ref::<&str>().unwrap();
    assert!(why.contains("clear"), "{why}");
    assert_eq!(venue.core.state_hash(), before);
    outbox.clear();
    assert_eq!(venue.core.apply(&context, &command, &mut outbox), Ok(Applied::Committed));
    venue.core.validate().unwrap();
}
