//! The static rules of an order: what its fields may be, and the symbol's filters (spot contract §2
//! Filters). Called by placement and reductions, and by the definition of symbols.
//!
//! Rules version 1 takes LIMIT and MARKET by quantity, and enforces PRICE_FILTER, LOT_SIZE,
//! MARKET_LOT_SIZE, MIN_NOTIONAL (of LIMIT) and MAX_NUM_ORDERS. Version 2 adds LIMIT_MAKER, MARKET by
//! quote quantity, icebergs with ICEBERG_PARTS and MAX_NUM_ICEBERG_ORDERS, the four stop types with
//! MAX_NUM_ALGO_ORDERS, PERCENT_PRICE, MIN_NOTIONAL of MARKET, and MAX_POSITION. (What needs the account is
//! checked by placement.) A definition that asks for more is refused rather than half obeyed.

use crate::Reject;
use crate::averages::AVERAGE_MINUTES_MAX;
use crate::book::Aggressor;
use crate::money::AMOUNT_MAX;
use crate::symbols::Symbol;
use touchline_protocol::message::command::{
    NewOrder, ORDER_VALIDATE_ONLY, SYMBOL_ICEBERG, SYMBOL_OCO, SYMBOL_QUOTE_QUANTITY, SymbolFilters,
};
use touchline_protocol::message::enums::{
    OrderType, RejectReason, SelfTradePrevention, Side, TimeInForce,
};
use touchline_protocol::units::{Price, Qty, UNITS_PER_WHOLE, notional};

/// Bits of the order types that rules version 1 takes.
pub const ORDER_TYPES: u8 = 1 << OrderType::Limit.to_wire() | 1 << OrderType::Market.to_wire();

/// Bits of the order types that rules version 2 takes.
pub const ORDER_TYPES_2: u8 = ORDER_TYPES | STOPS | 1 << OrderType::LimitMaker.to_wire();

const STOPS: u8 = 1 << OrderType::StopLoss.to_wire()
    | 1 << OrderType::StopLossLimit.to_wire()
    | 1 << OrderType::TakeProfit.to_wire()
    | 1 << OrderType::TakeProfitLimit.to_wire();

/// Bits of the order types that a rules version takes.
pub(crate) const fn order_types(rules: u32) -> u8 {
    if rules < 2 { ORDER_TYPES } else { ORDER_TYPES_2 }
}

/// `SYMBOL_*` bits that a rules version takes.
pub(crate) const fn symbol_flags(rules: u32) -> u8 {
    if rules < 2 { 0 } else { SYMBOL_ICEBERG | SYMBOL_OCO | SYMBOL_QUOTE_QUANTITY }
}

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
    #[inline(always)]
    pub(crate) const fn aggressor(self, price: Price, quantity: Qty) -> Aggressor {
        let limit = match (self.is_market(), self.side) {
            (true, Side::Buy) => Price::MAX,
            (true, Side::Sell) => Price(i64::MIN),
            (false, _) => price,
        };
        Aggressor { side: self.side, limit, quantity }
    }

    /// True when what it cannot take will rest.
    #[inline(always)]
    pub(crate) const fn may_rest(self) -> bool {
        !self.is_market() && matches!(self.time_in_force, TimeInForce::Gtc)
    }

    /// True when it takes at any price.
    #[inline(always)]
    pub(crate) const fn is_market(self) -> bool {
        matches!(self.order_type, OrderType::Market | OrderType::StopLoss | OrderType::TakeProfit)
    }

    /// True when it waits for a trade at its stop price before it does anything.
    #[inline(always)]
    pub(crate) const fn is_stop(self) -> bool {
        STOPS & 1 << self.order_type.to_wire() != 0
    }

    /// True for a stop that fires at its stop price or above, false for one that fires at it or below
    /// (facts §5.3).
    pub(crate) const fn fires_upwards(self) -> bool {
        let is_loss = matches!(self.order_type, OrderType::StopLoss | OrderType::StopLossLimit);
        is_loss == matches!(self.side, Side::Buy)
    }

    /// True when a trade at `last` fires a stop of this kind.
    pub(crate) fn is_fired_by(self, last: Price, stop_price: i64) -> bool {
        if self.fires_upwards() { last.0 >= stop_price } else { last.0 <= stop_price }
    }
}

/// Reads an order's enumerations and checks that its fields go together.
#[inline(always)]
pub(crate) fn order_kind(
    rules: u32,
    message: &NewOrder,
    symbol: &Symbol,
) -> Result<OrderKind, Reject> {
    let side = Side::from_wire(message.side).ok_or(RejectReason::InvalidSide)?;
    let order_type =
        OrderType::from_wire(message.order_type).ok_or(RejectReason::InvalidOrderType)?;
    let time_in_force = match order_type {
        OrderType::StopLossLimit | OrderType::TakeProfitLimit if rules < 2 => TimeInForce::Gtc,
        OrderType::Limit | OrderType::StopLossLimit | OrderType::TakeProfitLimit => {
            TimeInForce::from_wire(message.time_in_force).ok_or(RejectReason::InvalidTimeInForce)?
        }
        _ => TimeInForce::Gtc,
    };
    if symbol.order_types & order_types(rules) & 1 << message.order_type == 0 {
        return Err(RejectReason::OrderTypeNotSupported.into());
    }
    let kind = OrderKind { side, order_type, time_in_force };
    let fits =
        if rules < 2 { fits_rules_1(message, kind) } else { fits(message, kind, symbol.flags) };
    if fits { Ok(kind) } else { Err(RejectReason::UnsupportedCombination.into()) }
}

/// True when an order has only fields that its type may have.
const fn fits_rules_1(message: &NewOrder, kind: OrderKind) -> bool {
    message.quote_quantity == 0
        && message.stop_price == 0
        && message.iceberg_quantity == 0
        && message.self_trade_prevention == 0
        && message.flags & !ORDER_VALIDATE_ONLY == 0
        && (!kind.is_market() || message.price == 0 && message.time_in_force == 0)
}

/// As [`fits_rules_1`], for rules version 2.
#[inline(always)]
const fn fits(message: &NewOrder, kind: OrderKind, symbol_flags: u8) -> bool {
    let has_time_in_force = !kind.is_market() && !matches!(kind.order_type, OrderType::LimitMaker);
    let may_have_quote =
        matches!(kind.order_type, OrderType::Market) && symbol_flags & SYMBOL_QUOTE_QUANTITY != 0;
    let may_hide = kind.may_rest() && symbol_flags & SYMBOL_ICEBERG != 0;
    (message.price == 0 || !kind.is_market())
        && (message.time_in_force == 0 || has_time_in_force)
        && (message.quote_quantity == 0 || may_have_quote && message.quantity == 0)
        && (message.stop_price == 0 || kind.is_stop())
        && (message.iceberg_quantity == 0 || may_hide)
        && (message.self_trade_prevention == 0
            || SelfTradePrevention::from_wire(message.self_trade_prevention).is_some())
        && message.flags & !ORDER_VALIDATE_ONLY == 0
}

/// Checks prices and quantities of a new order.
#[inline(always)]
pub(crate) fn check_order(
    filters: &SymbolFilters,
    kind: OrderKind,
    message: &NewOrder,
) -> Result<(), Reject> {
    let NewOrder { price, quantity, quote_quantity, stop_price, iceberg_quantity, .. } = *message;
    let is_market = kind.is_market();
    if !is_market && price <= 0 || kind.is_stop() && stop_price <= 0 {
        return Err(RejectReason::InvalidPrice.into());
    }
    if quote_quantity != 0 {
        return if quote_quantity > 0 { Ok(()) } else { Err(RejectReason::InvalidQuantity.into()) };
    }
    if quantity <= 0 || iceberg_quantity < 0 {
        return Err(RejectReason::InvalidQuantity.into());
    }
    let has_tick =
        |price| is_in_grid(price, filters.price_min, filters.price_max, filters.tick_size);
    if !is_market && !has_tick(price) || kind.is_stop() && !has_tick(stop_price) {
        return Err(RejectReason::PriceFilter.into());
    }
    check_lot(filters, quantity)?;
    if iceberg_quantity > 0 {
        check_iceberg(filters, quantity, iceberg_quantity)?;
    }
    match (is_market, kind.is_stop()) {
        (true, false) => check_market_lot(filters, quantity),
        (true, true) => check_notional(filters, stop_price, quantity),
        (false, _) => check_notional(filters, price, quantity),
    }
}

/// MARKET_LOT_SIZE: of MARKET orders, and of stops that become one at that moment (facts §6).
pub(crate) fn check_market_lot(filters: &SymbolFilters, quantity: i64) -> Result<(), Reject> {
    let SymbolFilters { market_lot_min, market_lot_max, market_lot_step, .. } = *filters;
    if is_in_grid(quantity, market_lot_min, market_lot_max, market_lot_step) {
        Ok(())
    } else {
        Err(RejectReason::MarketLotSize.into())
    }
}

/// LOT_SIZE of what an iceberg shows, and ICEBERG_PARTS: how many times it is shown at the most.
fn check_iceberg(filters: &SymbolFilters, quantity: i64, shown: i64) -> Result<(), Reject> {
    check_lot(filters, shown)?;
    let parts = quantity.cast_unsigned().div_ceil(shown.cast_unsigned());
    if parts > u64::from(filters.iceberg_parts_max()) {
        return Err(RejectReason::IcebergParts.into());
    }
    Ok(())
}

/// LOT_SIZE: applies to every quantity, that of MARKET orders included (facts §6).
#[inline(always)]
pub(crate) fn check_lot(filters: &SymbolFilters, quantity: i64) -> Result<(), Reject> {
    if is_in_grid(quantity, filters.lot_min, filters.lot_max, filters.lot_step) {
        Ok(())
    } else {
        Err(RejectReason::LotSize.into())
    }
}

/// PERCENT_PRICE: a limit not too far from the average price; each of the two rules may be disabled.
#[inline(always)]
pub(crate) fn check_percent_price(
    filters: &SymbolFilters,
    price: i64,
    average: Price,
) -> Result<(), Reject> {
    let SymbolFilters { percent_price_up: up, percent_price_down: down, .. } = *filters;
    let bound = |multiplier: i64| i128::from(average.0) * i128::from(multiplier);
    let exact = i128::from(price) * i128::from(UNITS_PER_WHOLE);
    if up != 0 && exact > bound(up) || down != 0 && exact < bound(down) {
        return Err(RejectReason::PercentPrice.into());
    }
    Ok(())
}

/// MIN_NOTIONAL of a MARKET order, where it applies: of its quote quantity, or of its quantity at the
/// average price; without any average it cannot be met (facts §6).
pub(crate) fn check_market_notional(
    filters: &SymbolFilters,
    message: &NewOrder,
    average: Option<Price>,
) -> Result<(), Reject> {
    let least = i128::from(filters.min_notional) * i128::from(UNITS_PER_WHOLE);
    let found = match (message.quote_quantity, average) {
        (0, None) => return Err(RejectReason::MinNotional.into()),
        (0, Some(average)) => notional(average, Qty(message.quantity)),
        (amount, _) => i128::from(amount) * i128::from(UNITS_PER_WHOLE),
    };
    if found < least { Err(RejectReason::MinNotional.into()) } else { Ok(()) }
}

/// A quantity that is worth nothing at a price: its notional, once truncated to a unit of quote, is none (facts §1.3).
#[inline(always)]
pub(crate) fn check_worth(price: i64, quantity: i64) -> Result<(), Reject> {
    if notional(Price(price), Qty(quantity)) < i128::from(UNITS_PER_WHOLE) {
        return Err(RejectReason::NotionalTooSmall.into());
    }
    Ok(())
}

/// The notional of a limit order: not so small that it is worth nothing, not so large that sums could
/// overflow, and at least MIN_NOTIONAL.
#[inline(always)]
pub(crate) fn check_notional(
    filters: &SymbolFilters,
    price: i64,
    quantity: i64,
) -> Result<(), Reject> {
    // Without dividing: an amount is more than AMOUNT_MAX once rounded up when it exactly is.
    let exact = notional(Price(price), Qty(quantity));
    if exact > i128::from(AMOUNT_MAX) * i128::from(UNITS_PER_WHOLE) {
        return Err(RejectReason::Overflow.into());
    }
    check_worth(price, quantity)?;
    if exact < i128::from(filters.min_notional) * i128::from(UNITS_PER_WHOLE) {
        return Err(RejectReason::MinNotional.into());
    }
    Ok(())
}

/// `least <= value <= most` and `value` a whole number of steps above `least`; a bound of 0 is none.
/// All are at least 0, `value` is above it.
#[inline(always)]
const fn is_in_grid(value: i64, least: i64, most: i64, step: i64) -> bool {
    let is_within = value >= least && (most == 0 || value <= most);
    let beyond = value.wrapping_sub(least).cast_unsigned();
    is_within && (step == 0 || beyond.is_multiple_of(step.cast_unsigned()))
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
    pub(super) const MIN_NOTIONAL_MINUTES: u32 = 14;
    pub(super) const ICEBERG_PARTS: u32 = 15;
    pub(super) const MAX_ALGO_ORDERS: u32 = 17;
    pub(super) const MAX_ICEBERG_ORDERS: u32 = 18;
    pub(super) const MIN_NOTIONAL_APPLIES_TO_MARKET: u32 = 19;
    pub(super) const RESERVED: u32 = 20;
    pub(super) const RESERVED_1: u32 = 21;
}

/// The number of the first field that contradicts another, is negative, or asks for a rule that
/// the version does not enforce; `None` when the filters can be obeyed.
pub(crate) fn first_bad_field(rules: u32, filters: &SymbolFilters) -> Option<u32> {
    let of_rules_2 = |value: u32| rules < 2 && value != 0;
    let is_bad_window =
        |minutes: u32, most: u32| minutes > if rules < 2 { most } else { AVERAGE_MINUTES_MAX };
    if let Some(at) = filters.decimals().iter().position(|&value| value < 0) {
        return Some(at as u32);
    }
    let contradicts = |least: i64, most: i64| most != 0 && most < least;
    let bad = [
        (contradicts(filters.price_min, filters.price_max), number::PRICE_MAX),
        (contradicts(filters.lot_min, filters.lot_max), number::LOT_MAX),
        (contradicts(filters.market_lot_min, filters.market_lot_max), number::MARKET_LOT_MAX),
        (rules < 2 && filters.percent_price_up != 0, number::PERCENT_PRICE_UP),
        (rules < 2 && filters.percent_price_down != 0, number::PERCENT_PRICE_DOWN),
        (rules < 2 && filters.max_position != 0, number::MAX_POSITION),
        (is_bad_window(filters.percent_price_minutes, 0), number::PERCENT_PRICE_MINUTES),
        (is_bad_window(filters.min_notional_minutes, u32::MAX), number::MIN_NOTIONAL_MINUTES),
        (of_rules_2(filters.iceberg_parts), number::ICEBERG_PARTS),
        (of_rules_2(filters.max_algo_orders), number::MAX_ALGO_ORDERS),
        (of_rules_2(filters.max_iceberg_orders), number::MAX_ICEBERG_ORDERS),
        (
            filters.min_notional_applies_to_market > u8::from(rules >= 2),
            number::MIN_NOTIONAL_APPLIES_TO_MARKET,
        ),
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
