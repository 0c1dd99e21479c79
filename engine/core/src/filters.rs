//! The static rules of an order: what its fields may be, and the symbol's filters (spot contract §2
//! Filters). Called by placement and reductions, and by the definition of symbols.
//!
//! Rules version 1 takes LIMIT and MARKET by quantity, and enforces PRICE_FILTER, LOT_SIZE,
//! MARKET_LOT_SIZE, MIN_NOTIONAL (of LIMIT) and MAX_NUM_ORDERS (which needs the account and is checked
//! by placement). A definition that asks for more is refused rather than half obeyed.

use crate::Reject;
use crate::book::Aggressor;
use crate::money::{self, AMOUNT_MAX};
use touchline_protocol::message::command::{NewOrder, ORDER_VALIDATE_ONLY, SymbolFilters};
use touchline_protocol::message::enums::{OrderType, RejectReason, Side, TimeInForce};
use touchline_protocol::units::{Price, Qty, UNITS_PER_WHOLE, notional};

/// Bits of the order types that rules version 1 takes.
pub const ORDER_TYPES: u8 = 1 << OrderType::Limit.to_wire() | 1 << OrderType::Market.to_wire();

/// An order's enumerations, read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OrderKind {
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    /// GTC for types that have none, as it is reported.
    pub(crate) time_in_force: TimeInForce,
}

impl OrderKind {
    /// Fills slots that hold no order.
    pub(crate) const LIMIT_BUY: Self =
        Self { side: Side::Buy, order_type: OrderType::Limit, time_in_force: TimeInForce::Gtc };

    /// What an order of this kind asks of the book.
    pub(crate) const fn aggressor(self, price: Price, quantity: Qty) -> Aggressor {
        let limit = match (self.order_type, self.side) {
            (OrderType::Market, Side::Buy) => Price::MAX,
            (OrderType::Market, Side::Sell) => Price(i64::MIN),
            _ => price,
        };
        Aggressor { side: self.side, limit, quantity }
    }

    /// True when what it cannot take will rest.
    pub(crate) const fn may_rest(self) -> bool {
        matches!((self.order_type, self.time_in_force), (OrderType::Limit, TimeInForce::Gtc))
    }
}

/// Reads an order's enumerations and checks that its fields go together.
pub(crate) fn order_kind(message: &NewOrder, symbol_order_types: u8) -> Result<OrderKind, Reject> {
    let side = Side::from_wire(message.side).ok_or(RejectReason::InvalidSide)?;
    let order_type =
        OrderType::from_wire(message.order_type).ok_or(RejectReason::InvalidOrderType)?;
    let time_in_force = match order_type {
        OrderType::Limit => {
            TimeInForce::from_wire(message.time_in_force).ok_or(RejectReason::InvalidTimeInForce)?
        }
        _ => TimeInForce::Gtc,
    };
    if symbol_order_types & ORDER_TYPES & 1 << message.order_type == 0 {
        return Err(RejectReason::OrderTypeNotSupported.into());
    }
    let of_later_rules = message.quote_quantity != 0
        || message.stop_price != 0
        || message.iceberg_quantity != 0
        || message.self_trade_prevention != 0
        || message.flags & !ORDER_VALIDATE_ONLY != 0;
    let not_of_market =
        order_type == OrderType::Market && (message.price != 0 || message.time_in_force != 0);
    if of_later_rules || not_of_market {
        return Err(RejectReason::UnsupportedCombination.into());
    }
    Ok(OrderKind { side, order_type, time_in_force })
}

/// Checks price and quantity of a new order.
pub(crate) fn check_order(
    filters: &SymbolFilters,
    order_type: OrderType,
    price: i64,
    quantity: i64,
) -> Result<(), Reject> {
    if order_type == OrderType::Limit && price <= 0 {
        return Err(RejectReason::InvalidPrice.into());
    }
    if quantity <= 0 {
        return Err(RejectReason::InvalidQuantity.into());
    }
    if order_type == OrderType::Limit
        && !is_in_grid(price, filters.price_min, filters.price_max, filters.tick_size)
    {
        return Err(RejectReason::PriceFilter.into());
    }
    check_lot(filters, quantity)?;
    let SymbolFilters { market_lot_min, market_lot_max, market_lot_step, .. } = *filters;
    if order_type == OrderType::Market
        && !is_in_grid(quantity, market_lot_min, market_lot_max, market_lot_step)
    {
        return Err(RejectReason::MarketLotSize.into());
    }
    if order_type == OrderType::Limit { check_notional(filters, price, quantity) } else { Ok(()) }
}

/// LOT_SIZE: applies to every quantity, that of MARKET orders included (facts §6).
pub(crate) fn check_lot(filters: &SymbolFilters, quantity: i64) -> Result<(), Reject> {
    if is_in_grid(quantity, filters.lot_min, filters.lot_max, filters.lot_step) {
        Ok(())
    } else {
        Err(RejectReason::LotSize.into())
    }
}

/// The notional of a limit order: not so small that it is worth nothing, not so large that sums could
/// overflow, and at least MIN_NOTIONAL.
pub(crate) fn check_notional(
    filters: &SymbolFilters,
    price: i64,
    quantity: i64,
) -> Result<(), Reject> {
    if money::quote_rounded_up(price, quantity).is_none_or(|amount| amount > AMOUNT_MAX) {
        return Err(RejectReason::Overflow.into());
    }
    if money::quote_truncated(price, quantity) == Some(0) {
        return Err(RejectReason::NotionalTooSmall.into());
    }
    let least = i128::from(filters.min_notional) * i128::from(UNITS_PER_WHOLE);
    if notional(Price(price), Qty(quantity)) < least {
        return Err(RejectReason::MinNotional.into());
    }
    Ok(())
}

/// `least <= value <= most` and `value` a whole number of steps above `least`; a bound of 0 is none.
/// All are at least 0, `value` is above it.
const fn is_in_grid(value: i64, least: i64, most: i64, step: i64) -> bool {
    value >= least && (most == 0 || value <= most) && (step == 0 || (value - least) % step == 0)
}

/// Numbers of the fields of [`SymbolFilters`], from 0 in the order of their declaration.
mod number {
    pub(super) const PRICE_MAX: u32 = 1;
    pub(super) const LOT_MAX: u32 = 4;
    pub(super) const MARKET_LOT_MAX: u32 = 7;
    pub(super) const PERCENT_PRICE_UP: u32 = 9;
    pub(super) const PERCENT_PRICE_DOWN: u32 = 10;
    pub(super) const MAX_POSITION: u32 = 12;
    pub(super) const PERCENT_PRICE_MINUTES: u32 = 13;
    pub(super) const ICEBERG_PARTS: u32 = 15;
    pub(super) const MAX_ALGO_ORDERS: u32 = 17;
    pub(super) const MAX_ICEBERG_ORDERS: u32 = 18;
    pub(super) const MIN_NOTIONAL_APPLIES_TO_MARKET: u32 = 19;
    pub(super) const RESERVED: u32 = 20;
    pub(super) const RESERVED_1: u32 = 21;
}

/// The number of the first field that contradicts another, is negative, or asks for a rule that
/// version 1 does not enforce; `None` when the filters can be obeyed.
pub(crate) fn first_bad_field(filters: &SymbolFilters) -> Option<u32> {
    let values = [
        filters.price_min,
        filters.price_max,
        filters.tick_size,
        filters.lot_min,
        filters.lot_max,
        filters.lot_step,
        filters.market_lot_min,
        filters.market_lot_max,
        filters.market_lot_step,
        filters.percent_price_up,
        filters.percent_price_down,
        filters.min_notional,
        filters.max_position,
    ];
    if let Some(at) = values.iter().position(|&value| value < 0) {
        return Some(at as u32);
    }
    let contradicts = |least: i64, most: i64| most != 0 && most < least;
    let bad = [
        (contradicts(filters.price_min, filters.price_max), number::PRICE_MAX),
        (contradicts(filters.lot_min, filters.lot_max), number::LOT_MAX),
        (contradicts(filters.market_lot_min, filters.market_lot_max), number::MARKET_LOT_MAX),
        (filters.percent_price_up != 0, number::PERCENT_PRICE_UP),
        (filters.percent_price_down != 0, number::PERCENT_PRICE_DOWN),
        (filters.max_position != 0, number::MAX_POSITION),
        (filters.percent_price_minutes != 0, number::PERCENT_PRICE_MINUTES),
        (filters.iceberg_parts != 0, number::ICEBERG_PARTS),
        (filters.max_algo_orders != 0, number::MAX_ALGO_ORDERS),
        (filters.max_iceberg_orders != 0, number::MAX_ICEBERG_ORDERS),
        (filters.min_notional_applies_to_market != 0, number::MIN_NOTIONAL_APPLIES_TO_MARKET),
        (filters.reserved != [0; 7], number::RESERVED),
        (filters.reserved_1 != 0, number::RESERVED_1),
    ];
    bad.iter().find(|(is_bad, _)| *is_bad).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_starts_at_its_least_value() {
        assert!(is_in_grid(7, 1, 0, 3));
        assert!(!is_in_grid(6, 1, 0, 3));
        assert!(is_in_grid(6, 0, 0, 3));
        assert!(!is_in_grid(9, 0, 8, 3) && is_in_grid(8, 8, 8, 1) && !is_in_grid(7, 8, 0, 0));
        assert!(is_in_grid(i64::MAX, 0, 0, 0));
    }

    #[test]
    fn the_smallest_and_the_largest_notional() {
        let none = SymbolFilters::default();
        let reason = |filters: &SymbolFilters, price, quantity| {
            check_notional(filters, price, quantity).err().map(|reject| reject.reason)
        };
        assert_eq!(reason(&none, 1, UNITS_PER_WHOLE - 1), Some(RejectReason::NotionalTooSmall));
        assert_eq!(reason(&none, 1, UNITS_PER_WHOLE), None);
        assert_eq!(reason(&none, AMOUNT_MAX, UNITS_PER_WHOLE), None);
        assert_eq!(reason(&none, AMOUNT_MAX, UNITS_PER_WHOLE + 1), Some(RejectReason::Overflow));
        assert_eq!(reason(&none, i64::MAX, i64::MAX), Some(RejectReason::Overflow));
        let least = SymbolFilters { min_notional: 10, ..none };
        assert_eq!(reason(&least, 3, 4 * UNITS_PER_WHOLE), None);
        assert_eq!(reason(&least, 3, 3 * UNITS_PER_WHOLE), Some(RejectReason::MinNotional));
    }
}
