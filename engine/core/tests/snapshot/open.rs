//! Open orders, lists and balances that no venue has: each is refused for what is wrong with it, however
//! right the hashes are.

use crate::altered::{reason, records_of, with_records};
use crate::parts::{again, write};
use crate::taking::order;
use crate::venue::{Venue, WHOLE, named, roomy};
use touchline_core::{AMOUNT_MAX, ORDER_TYPES_2, RULES_MAX};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, Side};
use touchline_protocol::snapshot::records::*;
use touchline_protocol::units::*;

const FLAGS: &str = "flags and details that do not go together";
const PLACE: &str = "an order that cannot be where it is";
const AMOUNTS: &str = "amounts out of range";
const LIST: &str = "a list that its orders do not fit";

/// One of each kind that a snapshot tells apart; the last price is 10.
fn venue() -> Venue {
    let mut venue = Venue::new();
    venue.take_rules(RULES_MAX);
    venue.set_limits(roomy());
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    let kinds = (ORDER_TYPES_2, SYMBOL_ICEBERG | SYMBOL_OCO);
    venue.symbol_of("ONE", pair, SymbolFilters::default(), kinds);
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 1000 * WHOLE);
        venue.deposit(account, pair.1, 1000 * WHOLE);
    }
    let of = |name: &str, order: NewOrder| NewOrder { client_order_id: named(name), ..order };
    venue.must(&of("reduced", order(1, Side::Buy, 10, 3)));
    venue.must(&order(2, Side::Sell, 10, 1));
    venue.must(&ReduceOrder {
        command: order(1, Side::Buy, 10, 1).command,
        order_id: OrderId(1),
        new_quantity: 2 * WHOLE,
        ..Default::default()
    });
    venue.must(&of("plain", order(1, Side::Sell, 20, 1)));
    let iceberg = NewOrder { iceberg_quantity: WHOLE, ..order(1, Side::Sell, 21, 3) };
    venue.must(&of("iceberg", iceberg));
    let stop = |order_type: OrderType, stop_price: i64, price: i64| NewOrder {
        order_type: order_type.to_wire(),
        time_in_force: u8::from(price > 0),
        stop_price: stop_price * WHOLE,
        ..order(1, Side::Sell, price, 1)
    };
    venue.must(&of("waiting", stop(OrderType::StopLossLimit, 6, 5)));
    venue.must(&of("market", stop(OrderType::StopLoss, 5, 0)));
    venue.must(&PlaceOrderList {
        command: order(1, Side::Sell, 1, 1).command,
        side: Side::Sell.to_wire(),
        quantity: WHOLE,
        price: 22 * WHOLE,
        stop_price: 4 * WHOLE,
        limit_client_order_id: named("limit"),
        stop_client_order_id: named("stop"),
        ..Default::default()
    });
    again(&venue.core, 7);
    venue
}

/// Why a venue is refused when somebody has altered the order of this name.
fn refusal(
    bytes: &[u8],
    (section, name): (u32, &str),
    alter: fn(&mut OrderRecord, &mut OrderDetailsRecord),
) -> &'static str {
    let (mut rest, mut altered, mut count) = (records_of(bytes, section), Vec::new(), 0);
    while !rest.is_empty() {
        let (record, behind) = rest.split_at(size_of::<OrderRecord>());
        rest = behind;
        let mut record: OrderRecord = bytemuck::pod_read_unaligned(record);
        let mut details =
            OrderDetailsRecord { order_list_id: OrderListId(-1), ..Default::default() };
        if record.flags != 0 {
            let (found, behind) = rest.split_at(size_of::<OrderDetailsRecord>());
            (rest, details) = (behind, bytemuck::pod_read_unaligned(found));
        }
        if record.client_order_id == named(name) {
            alter(&mut record, &mut details);
            count += 100;
        }
        altered.extend_from_slice(bytemuck::bytes_of(&record));
        if record.flags != 0 {
            altered.extend_from_slice(bytemuck::bytes_of(&details));
        }
        count += 1;
    }
    assert!(count > 100, "{name} is there");
    reason(&with_records(bytes, section, count % 100, &altered))
}

#[test]
fn every_order_is_where_it_can_be_and_as_it_can_be() {
    let bytes = write(&venue().core);
    type Alteration = fn(&mut OrderRecord, &mut OrderDetailsRecord);
    let books: [(&str, &str, Alteration); 15] = [
        ("", "plain", |_, _| {}),
        (FLAGS, "plain", |order, _| order.flags = 32),
        (FLAGS, "plain", |order, _| order.flags = ORDER_OF_LIST),
        (FLAGS, "plain", |order, _| order.flags = ORDER_OWN_LOCK),
        (PLACE, "plain", |order, _| order.flags = ORDER_WAITING),
        (FLAGS, "iceberg", |_, details| details.order_list_id = OrderListId(0)),
        (FLAGS, "iceberg", |_, details| details.own_lock = 1),
        (FLAGS, "iceberg", |_, details| details.limit_price = 1),
        (FLAGS, "iceberg", |order, details| {
            (order.flags, details.order_list_id) = (ORDER_OF_LIST, OrderListId(0));
            details.iceberg = 0;
        }),
        (PLACE, "iceberg", |_, details| details.fired_by = 1),
        (AMOUNTS, "iceberg", |_, details| details.hidden = i64::MAX),
        (AMOUNTS, "reduced", |_, details| details.own_lock -= 1),
        // By itself it locks what there may be; the next one locks some of the same asset.
        ("orders lock more than a venue can hold", "plain", |order, _| {
            (order.price, order.quantity, order.remaining) = (1, AMOUNT_MAX, AMOUNT_MAX);
        }),
        (LIST, "limit", |order, _| order.order_type = OrderType::Limit.to_wire()),
        (LIST, "limit", |order, _| order.remaining -= 1),
    ];
    for (number, (why, name, alter)) in books.into_iter().enumerate() {
        assert_eq!(refusal(&bytes, (BOOKS, name), alter), why, "{number}: {name}");
    }
    let waiting: [(&str, &str, Alteration); 8] = [
        ("", "waiting", |_, _| {}),
        (FLAGS, "waiting", |order, _| order.flags |= ORDER_OWN_LOCK),
        (PLACE, "waiting", |_, details| details.limit_price = 0),
        (PLACE, "waiting", |_, details| details.fired_by = 1),
        (PLACE, "waiting", |order, _| order.remaining -= 1),
        (PLACE, "market", |_, details| details.limit_price = 1),
        (LIST, "stop", |order, _| (order.quantity, order.remaining) = (2 * WHOLE, 2 * WHOLE)),
        (LIST, "stop", |order, _| order.side = Side::Buy.to_wire()),
    ];
    for (number, (why, name, alter)) in waiting.into_iter().enumerate() {
        assert_eq!(refusal(&bytes, (WAITING, name), alter), why, "{number}: {name}");
    }
}

#[test]
fn an_open_list_is_there_and_so_is_what_it_locks() {
    let bytes = write(&venue().core);
    let none = with_records(&bytes, LISTS, 0, &[]);
    assert_eq!(reason(&none), "orders of open lists that are missing");
    let balances = records_of(&bytes, BALANCES);
    let size = size_of::<BalanceRecord>();
    let of_ann = &balances[size..];
    let missing = with_records(&bytes, BALANCES, (of_ann.len() / size) as u64, of_ann);
    assert_eq!(reason(&missing), "a balance with locked money is missing");
    let count = (balances.len() / size) as u64 + 1;
    let twice = with_records(&bytes, BALANCES, count, &[&balances[..size], balances].concat());
    assert_eq!(reason(&twice), "a field out of range, or out of its order");
}
