//! A venue of one symbol with rich accounts, and the orders that the situations are made of. Prices and
//! quantities are in whole units.

use crate::venue::{Venue, WHOLE, named, roomy};
use touchline_core::{Core, ORDER_TYPES, ORDER_TYPES_2, OpenOrder};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::units::*;

/// The symbol.
pub(crate) const ONE: SymbolId = SymbolId(0);
/// Accounts that trade, numbered from 1 as their keys are.
pub(crate) const ACCOUNTS: u32 = 4;

/// Limits with room for so many orders, each on a price of its own.
pub(crate) fn limits(max_steps: u32, orders: i64) -> Limits {
    let orders = orders as u32;
    Limits { open_orders: orders, price_levels: orders, max_steps, ..roomy() }
}

/// The venue, of this rules version. The accounts pay different commissions.
pub(crate) fn world(rules: u32, limits: Limits) -> Venue {
    let mut venue = Venue::new();
    venue.take_rules(rules);
    venue.set_limits(limits);
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    let kinds = if rules < 2 {
        (ORDER_TYPES, 0)
    } else {
        (ORDER_TYPES_2, SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY | SYMBOL_OCO)
    };
    venue.symbol_of("ONE", pair, SymbolFilters::default(), kinds);
    for number in 1..=ACCOUNTS {
        let rates = (i64::from(number) * 10_000, i64::from(number) * 15_000);
        let (account, _) = venue.account(&format!("account {number}"), rates);
        for asset in [pair.0, pair.1] {
            venue.deposit(account, asset, 1_000_000_000 * WHOLE);
        }
    }
    venue
}

/// All open orders: both sides in the order in which they would trade, then the waiting stops; but for
/// their priorities, which are positions in the log and depend on what lies before.
pub(crate) fn orders(core: &Core) -> Vec<OpenOrder> {
    core.open_orders(ONE, Side::Buy)
        .chain(core.open_orders(ONE, Side::Sell))
        .chain(core.waiting_orders(ONE))
        .map(|order| OpenOrder { priority: Position(0), ..order })
        .collect()
}

/// The header of a key's command that no session sends.
pub(crate) fn by(key: u64) -> CommandHeader {
    CommandHeader { key_id: KeyId(key), ..Default::default() }
}

/// A limit order that may rest.
pub(crate) fn limit(key: u64, side: Side, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        command: by(key),
        symbol: ONE,
        side: side.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: price * WHOLE,
        quantity: quantity * WHOLE,
        ..Default::default()
    }
}

/// An order that takes at any price.
pub(crate) fn market(key: u64, side: Side, quantity: i64) -> NewOrder {
    NewOrder {
        order_type: OrderType::Market.to_wire(),
        time_in_force: 0,
        ..limit(key, side, 0, quantity)
    }
}

/// A stop of one unit that becomes a MARKET order.
pub(crate) fn stop(key: u64, order_type: OrderType, side: Side, stop_price: i64) -> NewOrder {
    NewOrder {
        order_type: order_type.to_wire(),
        time_in_force: 0,
        stop_price: stop_price * WHOLE,
        ..limit(key, side, 0, 1)
    }
}

/// A stop of one unit that becomes a LIMIT order.
pub(crate) fn stop_limit(
    key: u64,
    order_type: OrderType,
    side: Side,
    (stop_price, price): (i64, i64),
) -> NewOrder {
    NewOrder {
        order_type: order_type.to_wire(),
        stop_price: stop_price * WHOLE,
        ..limit(key, side, price, 1)
    }
}

/// Two orders of one unit of which one cancels the other: the limit leg at `price`, and a stop that
/// becomes a MARKET order.
pub(crate) fn list(key: u64, side: Side, price: i64, stop_price: i64) -> PlaceOrderList {
    PlaceOrderList {
        command: by(key),
        symbol: ONE,
        side: side.to_wire(),
        quantity: WHOLE,
        price: price * WHOLE,
        stop_price: stop_price * WHOLE,
        ..Default::default()
    }
}

/// Makes the last price: two accounts trade one unit.
pub(crate) fn trade_at(venue: &mut Venue, price: i64) {
    venue.must_quickly(&limit(2, Side::Sell, price, 1));
    venue.must_quickly(&limit(3, Side::Buy, price, 1));
}

/// The same order with a name.
pub(crate) fn with_name(order: NewOrder, name: &str) -> NewOrder {
    NewOrder { client_order_id: named(name), ..order }
}
