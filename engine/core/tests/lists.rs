//! Order lists (OCO) by hand-made examples: every row of facts §5.5, money, and the ways in which a
//! list comes to its end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "lists/cancels.rs"]
mod cancels;
#[path = "lists/filters.rs"]
mod filters;
#[path = "lists/placing.rs"]
mod placing;
#[path = "lists/steps.rs"]
mod steps;
#[path = "lists/touched.rs"]
mod touched;
#[path = "lists/triggered.rs"]
mod triggered;
#[path = "support/venue.rs"]
mod venue;

use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, named, roomy};

const ONE: SymbolId = SymbolId(0);
const BASE: AssetId = AssetId(0);
const QUOTE: AssetId = AssetId(1);
const ANN: AccountId = AccountId(1);
const BUY: u8 = 1;
const SELL: u8 = 2;
const GTC: u8 = 1;
const IOC: u8 = 2;
const FOK: u8 = 3;
const STOP_LOSS: u8 = 3;
const STOP_LOSS_LIMIT: u8 = 4;
const LIMIT_MAKER: u8 = 7;
const FUNDS: i64 = 100_000 * WHOLE;

const NEW: u8 = 1;
const PARTIALLY_FILLED: u8 = 2;
const FILLED: u8 = 3;
const CANCELED: u8 = 4;
const EXPIRED: u8 = 5;

/// Ann (1), Bob (2) and Carl (3), with 100,000 of each asset, and a last price of 100.
fn world_of(limits: Limits, filters: SymbolFilters) -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(limits);
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    let takes = (ORDER_TYPES_2, SYMBOL_ICEBERG | SYMBOL_OCO);
    venue.symbol_of("ONE", pair, filters, takes);
    for name in ["ann", "bob", "carl"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, FUNDS);
        venue.deposit(account, pair.1, FUNDS);
    }
    for (key, side) in [(2, SELL), (3, BUY)] {
        venue.must(&limit(key, side, 100, 10));
    }
    venue
}

fn world() -> Venue {
    world_of(roomy(), SymbolFilters::default())
}

fn limit(key: u64, side: u8, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        command: header(key),
        symbol: ONE,
        side,
        order_type: 1,
        time_in_force: GTC,
        price: price * WHOLE,
        quantity: quantity * WHOLE,
        ..Default::default()
    }
}

fn header(key: u64) -> CommandHeader {
    CommandHeader { key_id: KeyId(key), ..Default::default() }
}

/// Makes the last price: Bob sells one unit to Carl.
fn trade_at(venue: &mut Venue, price: i64) {
    venue.must(&limit(2, SELL, price, 1));
    venue.must(&limit(3, BUY, price, 1));
}

/// A list of Ann's of 10 units; a stop limit price of 0 is none.
fn list(side: u8, price: i64, stop_price: i64, stop_limit_price: i64) -> PlaceOrderList {
    PlaceOrderList {
        command: header(1),
        symbol: ONE,
        side,
        stop_limit_time_in_force: u8::from(stop_limit_price > 0),
        quantity: 10 * WHOLE,
        price: price * WHOLE,
        stop_price: stop_price * WHOLE,
        stop_limit_price: stop_limit_price * WHOLE,
        list_client_order_id: named("list"),
        limit_client_order_id: named("limit"),
        stop_client_order_id: named("stop"),
        ..Default::default()
    }
}

/// Sells at 110, or when the price falls to 90, at 80 or better.
fn sell_list() -> PlaceOrderList {
    list(SELL, 110, 90, 80)
}

/// Buys at 90, or when the price rises to 110, at 120 or better.
fn buy_list() -> PlaceOrderList {
    list(BUY, 90, 110, 120)
}

/// The numbers of the first list's orders: two orders made the last price.
const STOP: OrderId = OrderId(3);
const LIMIT: OrderId = OrderId(4);

fn cancel(order_id: OrderId) -> CancelOrder {
    CancelOrder { command: header(1), symbol: ONE, order_id, ..Default::default() }
}

fn cancel_list(id: i64, name: &str) -> CancelOrderList {
    CancelOrderList {
        command: header(1),
        symbol: ONE,
        order_list_id: OrderListId(id),
        list_client_order_id: named(name),
        ..Default::default()
    }
}

/// What an account has free and locked.
fn money(venue: &Venue, account: AccountId, asset: AssetId) -> (i64, i64) {
    let balance = venue.core.balance(account, asset).unwrap();
    (balance.free.0, balance.locked.0)
}

fn book_update(venue: &Venue) -> BookUpdateId {
    venue.core.symbol(ONE).unwrap().counters.book_update
}

/// Nothing of Ann's is open or locked, and a replay comes to the same.
fn is_over(venue: &Venue) {
    assert_eq!(venue.core.open_order_count(ANN, ONE), 0);
    assert_eq!(money(venue, ANN, BASE).1, 0);
    assert_eq!(money(venue, ANN, QUOTE).1, 0);
    venue.check_replay();
}

/// The report of the first list's end.
fn all_done(venue: &Venue) -> Owned {
    Owned::ListChanged(OrderListChanged {
        order_list_id: OrderListId(0),
        account: ANN,
        symbol: ONE,
        limit_order_id: LIMIT,
        stop_order_id: STOP,
        list_status_type: 3,
        list_order_status: 2,
        list_client_order_id: named("list"),
        book_update_id: book_update(venue),
        ..Default::default()
    })
}

/// The report of the end of one order of a list, of which nothing was executed; it releases `released`.
fn ended(venue: &Venue, placed: &PlaceOrderList, order_id: OrderId, ends: (u8, i64)) -> Owned {
    let (status, released) = ends;
    let common = OrderCanceled {
        order_id,
        account: ANN,
        symbol: ONE,
        quantity: placed.quantity,
        released,
        book_update_id: book_update(venue),
        order_list_id: OrderListId(0),
        status,
        side: placed.side,
        ..Default::default()
    };
    Owned::Canceled(if order_id == STOP {
        OrderCanceled {
            price: placed.stop_limit_price,
            order_type: if placed.stop_limit_price > 0 { STOP_LOSS_LIMIT } else { STOP_LOSS },
            time_in_force: placed.stop_limit_time_in_force.max(GTC),
            client_order_id: placed.stop_client_order_id,
            ..common
        }
    } else {
        OrderCanceled {
            price: placed.price,
            order_type: LIMIT_MAKER,
            time_in_force: GTC,
            client_order_id: placed.limit_client_order_id,
            ..common
        }
    })
}

fn results(events: &[Owned]) -> Vec<OrderResult> {
    let of = |event: &Owned| match event {
        Owned::Result(result) => Some(*result),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn trades(events: &[Owned]) -> Vec<Trade> {
    let of = |event: &Owned| match event {
        Owned::Trade(trade) => Some(*trade),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn triggered(events: &[Owned]) -> Vec<OrderTriggered> {
    let of = |event: &Owned| match event {
        Owned::Triggered(triggered) => Some(*triggered),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// What kind of event each is.
fn kinds(events: &[Owned]) -> Vec<&'static str> {
    let of = |event: &Owned| match event {
        Owned::Accepted(_) => "accepted",
        Owned::Trade(_) => "trade",
        Owned::Result(_) => "result",
        Owned::Canceled(_) => "canceled",
        Owned::Continues(_) => "continues",
        Owned::Triggered(_) => "triggered",
        Owned::ListChanged(_) => "list",
        Owned::Refilled(_) => "refilled",
        other => panic!("{other:?}"),
    };
    events.iter().map(of).collect()
}

fn reason<M: Message>(venue: &mut Venue, message: &M) -> Option<(Why, u32)> {
    venue.apply(message).err().map(|reject| (reject.reason, reject.detail))
}
