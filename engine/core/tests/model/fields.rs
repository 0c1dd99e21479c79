//! The model: what a new order must be like, whatever the state of book and account: fields that go
//! together, and the filters that look at the order alone or at average prices (contract 2, facts 6).

use crate::state::{
    Model, ONE, Rejection, Symbol, check, down, fits, has_limit, is_stop, is_timed, up,
};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, RejectReason as Why, Side, TimeInForce};

/// An order may not be split into more slices than this, whatever the filter says.
const MOST_PARTS: u32 = 1000;

/// The order's enumerations, once they are known to be sound.
pub(crate) fn side_of(m: &NewOrder) -> Side {
    Side::from_wire(m.side).expect("checked")
}

pub(crate) fn type_of(m: &NewOrder) -> OrderType {
    OrderType::from_wire(m.order_type).expect("checked")
}

/// GTC for the types that have none.
pub(crate) fn time_in_force_of(m: &NewOrder) -> TimeInForce {
    TimeInForce::from_wire(m.time_in_force).unwrap_or(TimeInForce::Gtc)
}

impl Model {
    /// Everything that the order's fields and the average prices decide, in the order of the reasons.
    pub(crate) fn check_order(&self, symbol: u32, m: &NewOrder) -> Result<(), Rejection> {
        let symbol = self.symbol(symbol);
        self.check_combination(symbol, m)?;
        check(symbol.is_trading(), Why::SymbolNotTrading)?;
        Self::check_filters(&symbol.filters, m)?;
        self.check_averages(symbol, m)
    }

    /// Which fields a type has, and what the symbol takes.
    pub(crate) fn check_combination(&self, symbol: &Symbol, m: &NewOrder) -> Result<(), Rejection> {
        check(Side::from_wire(m.side).is_some(), Why::InvalidSide)?;
        let order_type = OrderType::from_wire(m.order_type).ok_or((Why::InvalidOrderType, 0))?;
        let known = self.rules > 1 || matches!(order_type, OrderType::Limit | OrderType::Market);
        let time_in_force = TimeInForce::from_wire(m.time_in_force);
        let timed = is_timed(order_type);
        check(!(known && timed) || time_in_force.is_some(), Why::InvalidTimeInForce)?;
        let taken = known && symbol.order_types >> m.order_type & 1 == 1;
        check(taken, Why::OrderTypeNotSupported)?;
        let with = |flag: u8| self.rules > 1 && symbol.flags & flag != 0;
        let gtc = order_type == OrderType::LimitMaker || time_in_force == Some(TimeInForce::Gtc);
        let market = order_type == OrderType::Market;
        let sound = [
            m.price == 0 || has_limit(order_type),
            m.time_in_force == 0 || timed,
            m.stop_price == 0 || is_stop(order_type),
            m.quote_quantity == 0 || market && m.quantity == 0 && with(SYMBOL_QUOTE_QUANTITY),
            m.iceberg_quantity == 0 || has_limit(order_type) && gtc && with(SYMBOL_ICEBERG),
            m.self_trade_prevention == 0 || self.rules > 1 && m.self_trade_prevention <= 4,
            m.flags & !ORDER_VALIDATE_ONLY == 0,
        ];
        check(!sound.contains(&false), Why::UnsupportedCombination)
    }

    /// PRICE_FILTER, LOT_SIZE, ICEBERG_PARTS, MARKET_LOT_SIZE and MIN_NOTIONAL at the order's own price.
    pub(crate) fn check_filters(f: &SymbolFilters, m: &NewOrder) -> Result<(), Rejection> {
        let order_type = type_of(m);
        let (limit, stop) = (has_limit(order_type), is_stop(order_type));
        check(!limit || m.price > 0, Why::InvalidPrice)?;
        check(!stop || m.stop_price > 0, Why::InvalidPrice)?;
        if m.quote_quantity != 0 {
            return check(m.quote_quantity > 0, Why::InvalidQuantity);
        }
        check(m.quantity > 0 && m.iceberg_quantity >= 0, Why::InvalidQuantity)?;
        check(!limit || fits_price(f, m.price), Why::PriceFilter)?;
        check(!stop || fits_price(f, m.stop_price), Why::PriceFilter)?;
        check(fits_lot(f, m.quantity), Why::LotSize)?;
        if m.iceberg_quantity > 0 {
            check(fits_lot(f, m.iceberg_quantity), Why::LotSize)?;
            check(parts_allowed(f, m.quantity, m.iceberg_quantity), Why::IcebergParts)?;
        }
        if order_type == OrderType::Market {
            return check(fits_market_lot(f, m.quantity), Why::MarketLotSize);
        }
        // MIN_NOTIONAL of a stop without a limit: at the price that fires it.
        check_notional(f, if limit { m.price } else { m.stop_price }, m.quantity)
    }

    /// PERCENT_PRICE, and MIN_NOTIONAL for MARKET: by average prices.
    pub(crate) fn check_averages(&self, symbol: &Symbol, m: &NewOrder) -> Result<(), Rejection> {
        let f = &symbol.filters;
        if m.price > 0 {
            self.check_percent_price(symbol, m.price)?;
        }
        if type_of(m) != OrderType::Market || f.min_notional_applies_to_market == 0 {
            return Ok(());
        }
        // Never traded: there is no average, and nothing passes.
        let average = self.average(symbol, f.min_notional_minutes).unwrap_or(0);
        let worth = if m.quote_quantity > 0 {
            i128::from(m.quote_quantity) * ONE
        } else {
            average * i128::from(m.quantity)
        };
        check(worth >= i128::from(f.min_notional) * ONE, Why::MinNotional)
    }

    /// Skipped where nothing has ever been traded.
    pub(crate) fn check_percent_price(&self, symbol: &Symbol, price: i64) -> Result<(), Rejection> {
        let f = &symbol.filters;
        let Some(average) = self.average(symbol, f.percent_price_minutes) else { return Ok(()) };
        let price = i128::from(price) * ONE;
        let (up, down) = (i128::from(f.percent_price_up), i128::from(f.percent_price_down));
        check(up == 0 || price <= average * up, Why::PercentPrice)?;
        check(down == 0 || price >= average * down, Why::PercentPrice)
    }

    /// Average price of the last minutes: the running minute and those before it. No trade in them: the
    /// last price; 0 minutes: the last price.
    fn average(&self, symbol: &Symbol, minutes: u32) -> Option<i128> {
        let minute = |time: u64| time / 60_000_000_000;
        let first = minute(self.time) + 1 - u64::from(minutes);
        let recent = symbol.history.iter().filter(|(at, ..)| minute(*at) >= first);
        let (mut paid, mut bought) = (0i128, 0i128);
        for (_, price, quantity) in recent {
            paid += i128::from(*price) * i128::from(*quantity);
            bought += i128::from(*quantity);
        }
        if bought > 0 { Some(paid / bought) } else { symbol.last.map(i128::from) }
    }
}

pub(crate) fn fits_price(f: &SymbolFilters, price: i64) -> bool {
    fits(price, f.price_min, f.price_max, f.tick_size)
}

pub(crate) fn fits_lot(f: &SymbolFilters, quantity: i64) -> bool {
    fits(quantity, f.lot_min, f.lot_max, f.lot_step)
}

pub(crate) fn fits_market_lot(f: &SymbolFilters, quantity: i64) -> bool {
    fits(quantity, f.market_lot_min, f.market_lot_max, f.market_lot_step)
}

/// ICEBERG_PARTS: CEIL(quantity / iceberg quantity).
pub(crate) fn parts_allowed(f: &SymbolFilters, quantity: i64, iceberg: i64) -> bool {
    let parts = (i128::from(quantity) + i128::from(iceberg) - 1) / i128::from(iceberg);
    let most = if f.iceberg_parts == 0 { MOST_PARTS } else { f.iceberg_parts.min(MOST_PARTS) };
    parts <= most.into()
}

/// MIN_NOTIONAL, and that the amounts can be counted at all.
pub(crate) fn check_notional(
    f: &SymbolFilters,
    price: i64,
    quantity: i64,
) -> Result<(), Rejection> {
    check(up(price, quantity) <= i128::from(i64::MAX / 2), Why::Overflow)?;
    check(down(price, quantity) > 0, Why::NotionalTooSmall)?;
    let notional = i128::from(price) * i128::from(quantity);
    check(notional >= i128::from(f.min_notional) * ONE, Why::MinNotional)
}
