//! The fields that rules version 2 adds, each out of its range.

use super::{order, rejected, world};
use crate::venue::{Venue, WHOLE};
use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::units::*;

/// Symbol with every order type and flag, filters as `ONE`'s and those of version 2.
pub(crate) const WIDE: SymbolId = SymbolId(5);

/// As the world of version 1, with the symbol `WIDE` more.
pub(crate) fn world_2() -> Venue {
    let mut venue = world();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    let filters = SymbolFilters {
        iceberg_parts: 4,
        max_iceberg_orders: 1,
        max_algo_orders: 1,
        ..venue.core.symbol(super::ONE).unwrap().filters
    };
    let flags = SYMBOL_ICEBERG | SYMBOL_OCO | SYMBOL_QUOTE_QUANTITY;
    venue.symbol_of("WIDE", (AssetId(0), AssetId(1)), filters, (ORDER_TYPES_2, flags));
    venue
}

type Change = fn(&mut NewOrder);

fn reject_all(venue: &mut Venue, cases: &[(Change, Why)]) {
    for (change, reason) in cases {
        let message = order(venue, |order| {
            order.symbol = WIDE;
            change(order);
        });
        rejected(venue, &message, *reason, 0);
    }
}

#[test]
fn icebergs() {
    let mut venue = world_2();
    reject_all(
        &mut venue,
        &[
            (|it| it.iceberg_quantity = -1, Why::InvalidQuantity),
            (|it| it.iceberg_quantity = i64::MIN, Why::InvalidQuantity),
            (|it| it.iceberg_quantity = 1, Why::LotSize),
            (|it| it.iceberg_quantity = i64::MAX, Why::LotSize),
            (|it| it.iceberg_quantity = WHOLE, Why::LotSize),
            (|it| (it.quantity, it.iceberg_quantity) = (9 * WHOLE, 2 * WHOLE), Why::IcebergParts),
            (
                |it| (it.time_in_force, it.iceberg_quantity) = (2, 2 * WHOLE),
                Why::UnsupportedCombination,
            ),
            (
                |it| (it.time_in_force, it.iceberg_quantity) = (3, 2 * WHOLE),
                Why::UnsupportedCombination,
            ),
            (
                |it| (it.symbol, it.iceberg_quantity) = (super::ONE, 2 * WHOLE),
                Why::UnsupportedCombination,
            ),
        ],
    );
    let iceberg = |venue: &mut Venue| {
        order(venue, |order| {
            (order.symbol, order.quantity, order.iceberg_quantity) = (WIDE, 8 * WHOLE, 2 * WHOLE);
        })
    };
    let first = iceberg(&mut venue);
    venue.must(&first);
    let second = iceberg(&mut venue);
    rejected(&mut venue, &second, Why::MaxNumIcebergOrders, 0);
}

#[test]
fn makers_only() {
    let mut venue = world_2();
    let sell = order(&mut venue, |order| (order.symbol, order.side) = (WIDE, 2));
    venue.must(&sell);
    reject_all(
        &mut venue,
        &[
            (|it| it.order_type = 7, Why::UnsupportedCombination),
            (|it| (it.order_type, it.time_in_force) = (7, 9), Why::UnsupportedCombination),
            (|it| (it.order_type, it.time_in_force) = (7, 0), Why::WouldTake),
            (|it| (it.order_type, it.time_in_force, it.price) = (7, 0, 0), Why::InvalidPrice),
            (
                |it| (it.symbol, it.order_type, it.time_in_force) = (super::ONE, 7, 0),
                Why::OrderTypeNotSupported,
            ),
        ],
    );
}

/// A buy stop at 2000 with the limit 1000.
fn stop(order: &mut NewOrder) {
    (order.order_type, order.stop_price) = (4, 2000);
}

/// The same without a limit.
fn market_stop(order: &mut NewOrder) {
    (order.order_type, order.stop_price) = (3, 2000);
    (order.price, order.time_in_force) = (0, 0);
}

fn and(change: Change, order: &mut NewOrder, more: Change) {
    change(order);
    more(order);
}

#[test]
fn stops() {
    let mut venue = world_2();
    let trade = |venue: &mut Venue, side| {
        let order = order(venue, |order| (order.symbol, order.side) = (WIDE, side));
        venue.must(&order);
    };
    trade(&mut venue, 2);
    trade(&mut venue, 1);
    reject_all(
        &mut venue,
        &[
            (|it| it.stop_price = 1000, Why::UnsupportedCombination),
            (|it| it.order_type = 4, Why::InvalidPrice),
            (|it| and(stop, it, |it| it.stop_price = -1), Why::InvalidPrice),
            (|it| and(stop, it, |it| it.stop_price = i64::MIN), Why::InvalidPrice),
            (|it| and(stop, it, |it| it.price = 0), Why::InvalidPrice),
            (|it| and(stop, it, |it| it.stop_price = 2001), Why::PriceFilter),
            (|it| and(stop, it, |it| it.stop_price = i64::MAX), Why::PriceFilter),
            (|it| and(stop, it, |it| it.price = 1001), Why::PriceFilter),
            (|it| and(stop, it, |it| it.time_in_force = 0), Why::InvalidTimeInForce),
            (|it| and(stop, it, |it| it.quantity = i64::MAX), Why::LotSize),
            (|it| and(stop, it, |it| it.quote_quantity = 1), Why::UnsupportedCombination),
            (|it| and(stop, it, |it| it.symbol = super::ONE), Why::OrderTypeNotSupported),
            (|it| and(market_stop, it, |it| it.price = 100), Why::UnsupportedCombination),
            (|it| and(market_stop, it, |it| it.time_in_force = 1), Why::UnsupportedCombination),
            (
                |it| and(market_stop, it, |it| it.iceberg_quantity = 2 * WHOLE),
                Why::UnsupportedCombination,
            ),
            (
                |it| and(market_stop, it, |it| (it.stop_price, it.quantity) = (100, 2 * WHOLE)),
                Why::MinNotional,
            ),
            // The last trade was at 1000: each of the four kinds, exactly there.
            (|it| and(stop, it, |it| it.stop_price = 1000), Why::WouldTrigger),
            (|it| and(market_stop, it, |it| it.stop_price = 950), Why::WouldTrigger),
            (|it| and(stop, it, |it| (it.side, it.stop_price) = (2, 1000)), Why::WouldTrigger),
            (|it| and(stop, it, |it| it.order_type = 6), Why::WouldTrigger),
            (|it| and(market_stop, it, |it| it.order_type = 5), Why::WouldTrigger),
            (
                |it| and(stop, it, |it| (it.order_type, it.side, it.stop_price) = (6, 2, 1000)),
                Why::WouldTrigger,
            ),
            (|it| and(stop, it, |it| it.command.key_id = KeyId(2)), Why::InsufficientBalance),
        ],
    );
    let sound = order(&mut venue, |it| and(stop, it, |it| it.symbol = WIDE));
    venue.must(&sound);
    reject_all(&mut venue, &[(stop, Why::MaxNumAlgoOrders)]);
    venue.must(&SetVenueFilters { max_orders: 1, ..Default::default() });
    reject_all(&mut venue, &[(|_| (), Why::ExchangeMaxNumOrders)]);
    venue.must(&SetVenueFilters { max_algo_orders: 1, ..Default::default() });
    let sound = order(&mut venue, |_| ());
    venue.must(&sound);
}

#[test]
fn the_exchanges_filters_are_of_rules_2() {
    let mut venue = world();
    rejected(&mut venue, &SetVenueFilters::default(), Why::UnexpectedMessage, 0);
}

#[test]
fn quote_quantities() {
    let mut venue = world_2();
    let sell = order(&mut venue, |order| (order.symbol, order.side) = (WIDE, 2));
    venue.must(&sell);
    fn by_quote(order: &mut NewOrder, amount: i64) {
        (order.order_type, order.time_in_force, order.price) = (2, 0, 0);
        (order.quantity, order.quote_quantity) = (0, amount);
    }
    reject_all(
        &mut venue,
        &[
            (|it| it.quote_quantity = 1, Why::UnsupportedCombination),
            (|it| by_quote(it, -1), Why::InvalidQuantity),
            (|it| by_quote(it, i64::MIN), Why::InvalidQuantity),
            // Two lots are the least; nothing is there to sell to.
            (|it| by_quote(it, 1999), Why::LotSize),
            // Three are the least of a MARKET order.
            (|it| by_quote(it, 2999), Why::MarketLotSize),
            (
                |it| {
                    by_quote(it, i64::MAX);
                    it.side = 2;
                },
                Why::LotSize,
            ),
            (|it| by_quote(it, i64::MAX), Why::InsufficientBalance),
            (
                |it| {
                    by_quote(it, 4000);
                    it.quantity = WHOLE;
                },
                Why::UnsupportedCombination,
            ),
            (
                |it| {
                    by_quote(it, 4000);
                    it.symbol = super::ONE;
                },
                Why::UnsupportedCombination,
            ),
        ],
    );
    let sound = order(&mut venue, |order| {
        order.symbol = WIDE;
        by_quote(order, 3999);
    });
    venue.must(&sound);
    assert_eq!(venue.core.open_order(WIDE, OrderId(1)).unwrap().remaining, Qty(WHOLE));
}

/// A symbol with the filters on averages and positions, on which nothing has been traded.
fn with_averages(venue: &mut Venue) -> SymbolId {
    let filters = SymbolFilters {
        percent_price_up: 3 * WHOLE / 2,
        percent_price_down: WHOLE / 2,
        percent_price_minutes: 5,
        min_notional: 3000,
        min_notional_minutes: 0,
        min_notional_applies_to_market: 1,
        max_position: 1010 * WHOLE,
        ..Default::default()
    };
    let flags = SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY;
    venue.symbol_of("AVERAGE", (AssetId(0), AssetId(1)), filters, (ORDER_TYPES_2, flags))
}

#[test]
fn filters_on_averages_and_positions() {
    let mut venue = world_2();
    let id = with_averages(&mut venue);
    let try_one = |venue: &mut Venue, change: &dyn Fn(&mut NewOrder)| {
        let message = order(venue, |order| {
            order.symbol = id;
            change(order);
        });
        venue.apply(&message).err().map(|reject| reject.reason)
    };
    let market = |order: &mut NewOrder, quantity: i64| {
        (order.order_type, order.time_in_force, order.price) = (2, 0, 0);
        order.quantity = quantity * WHOLE;
    };
    // No average yet: any price, no MARKET order by quantity.
    assert_eq!(try_one(&mut venue, &|it| market(it, 4)), Some(Why::MinNotional));
    assert_eq!(try_one(&mut venue, &|it| (it.side, it.price) = (2, 1000)), None);
    assert_eq!(try_one(&mut venue, &|it| it.price = 1000), None);
    // The average is 1000.
    for (price, reason) in [(1501, Some(Why::PercentPrice)), (499, Some(Why::PercentPrice))] {
        assert_eq!(
            try_one(&mut venue, &|it| (it.price, it.quantity) = (price, 7 * WHOLE)),
            reason,
            "{price}"
        );
    }
    let wide = |it: &mut NewOrder, price| (it.side, it.price, it.quantity) = (2, price, 6 * WHOLE);
    assert_eq!(try_one(&mut venue, &|it| wide(it, 1500)), None);
    assert_eq!(
        try_one(&mut venue, &|it| {
            wide(it, 500);
            it.side = 1;
        }),
        None
    );
    assert_eq!(try_one(&mut venue, &|it| market(it, 2)), Some(Why::MinNotional));
    let by_quote = |it: &mut NewOrder, amount: i64| {
        market(it, 0);
        it.quote_quantity = amount;
    };
    assert_eq!(try_one(&mut venue, &|it| by_quote(it, 2999)), Some(Why::MinNotional));
    // 1000 are there and 6 on their way: 4 more may be bought, not 5.
    let buy = |it: &mut NewOrder, lots: i64| (it.price, it.quantity) = (900, lots * WHOLE);
    assert_eq!(try_one(&mut venue, &|it| buy(it, 5)), Some(Why::MaxPosition));
    assert_eq!(try_one(&mut venue, &|it| buy(it, 4)), None);
    assert_eq!(try_one(&mut venue, &|it| market(it, 3)), Some(Why::MaxPosition));
    venue.check_replay();
}

#[test]
fn windows_and_flags_of_a_definition() {
    let mut venue = world_2();
    type Field = fn(&mut DefineSymbol);
    let fields: [(Field, u32); 6] = [
        (|it| it.order_types = 1, 4),
        (|it| it.flags = 8, 5),
        (|it| it.filters.percent_price_minutes = 61, 21),
        (|it| it.filters.min_notional_minutes = u32::MAX, 22),
        (|it| it.filters.min_notional_applies_to_market = 2, 27),
        (|it| it.filters.percent_price_up = -1, 17),
    ];
    for (change, detail) in fields {
        let mut message = super::symbol("NEW");
        change(&mut message);
        rejected(&mut venue, &message, Why::InvalidDefinition, detail);
    }
}
