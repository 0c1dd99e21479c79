//! The fields that rules version 2 adds, each out of its range.

use super::{order, rejected, world};
use crate::venue::{Venue, WHOLE};
use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::units::*;

/// Symbol with every order type and flag, filters as `ONE`'s and those of version 2.
const WIDE: SymbolId = SymbolId(5);

/// As the world of version 1, with the symbol `WIDE` more.
fn world_2() -> Venue {
    let mut venue = world();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    let filters = SymbolFilters {
        iceberg_parts: 4,
        max_iceberg_orders: 1,
        ..venue.core.symbol(super::ONE).unwrap().filters
    };
    let flags = SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY;
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
        by_quote(order, 2999);
    });
    venue.must(&sound);
    assert_eq!(venue.core.open_order(WIDE, OrderId(1)).unwrap().remaining, Qty(2 * WHOLE));
}
