//! The open endpoints: ping, time, exchangeInfo, depth (spot contract §4 General endpoints, Market
//! data).

use touchline_protocol::message::command::{
    Limits, PERMISSION_MARGIN, PERMISSION_SPOT, SYMBOL_ICEBERG, SYMBOL_OCO, SYMBOL_QUOTE_QUANTITY,
    SymbolFilters,
};
use touchline_protocol::message::enums::OrderType;

use super::intake::Intake;
use super::names;
use super::responses::{
    Decimal, Empty, ExchangeInformation, Filter, OrderBook, RateLimit, ServerTime, Symbol,
};
use super::{REPLY_BYTES, json, json_within};
use crate::api_error::ApiError;
use crate::http::Reply;
use crate::limits::Limits as RequestLimits;
use crate::limits::counts::{Counted, RequestLimit};
use crate::parameters::ParameterError;
use crate::route::{DEPTH_LIMITS, DEPTH_LIMITS_LEGAL};
use crate::views::book::Level;
use crate::views::venue;
use crate::views::venue::Venue;

/// `limit` of GET /depth when none is sent.
const DEPTH_DEFAULT: u32 = 100;

/// Room for a level of GET /depth, in bytes: a price and a quantity of ten digits before the point fit.
const LEVEL_BYTES: usize = 48;

/// Room for a symbol of GET /exchangeInfo, in bytes: most of it is its filters.
const SYMBOL_BYTES: usize = 1536;

/// Commissions are truncated to this many fraction digits, whatever the asset shows.
const COMMISSION_PRECISION: u8 = 8;

/// Order types that may be icebergs (spot contract §4 POST /order).
const ICEBERG_TYPES: [OrderType; 4] =
    [OrderType::Limit, OrderType::LimitMaker, OrderType::StopLossLimit, OrderType::TakeProfitLimit];

pub(super) fn ping(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    intake.open()?;
    json(&Empty {})
}

pub(super) fn time(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    intake.open()?;
    json(&ServerTime { server_time: intake.now_ms() })
}

pub(super) fn depth(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let name = intake.parameters.required_symbol("symbol")?;
    let limit = intake.parameters.choice("limit", &DEPTH_LIMITS, DEPTH_LIMITS_LEGAL)?;
    intake.open()?;
    let limit = limit.unwrap_or(DEPTH_DEFAULT) as usize;
    let depth = intake
        .read(|state| state.venue.symbol_named(name).map(|symbol| symbol.book.depth(limit)))
        .ok_or(ApiError::invalid_symbol())?;
    let pairs = |levels: Vec<Level>| {
        levels.into_iter().map(|level| (Decimal(level.price), Decimal(level.quantity))).collect()
    };
    let book = OrderBook {
        last_update_id: depth.last_update.0,
        bids: pairs(depth.bids),
        asks: pairs(depth.asks),
    };
    let levels = book.bids.len() + book.asks.len();
    json_within(REPLY_BYTES + LEVEL_BYTES * levels, &book)
}

/// An empty list `symbols=[]` asks for no symbol and gets none, unlike no list at all: a client that
/// filters by a list of its own is told what it asked for, also when its list has become empty.
pub(super) fn exchange_information(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let one = intake.parameters.symbol("symbol")?;
    let several = intake.parameters.symbols("symbols")?;
    intake.open()?;
    let wanted = match (one, several) {
        (Some(_), Some(_)) => return Err(ParameterError::Combination.into()),
        (Some(one), None) => Some(vec![one]),
        (None, several) => several,
    };
    let write = || written(intake, wanted.as_deref());
    if wanted.is_some() {
        return write().map(|(_, reply)| reply);
    }
    let edition = intake.read(|state| state.venue.edition());
    intake.information().reply(edition, intake.now_ms(), write)
}

/// What is told of the symbols that are wanted, and the edition of the venue that it is of.
fn written(intake: &Intake<'_>, wanted: Option<&[&str]>) -> Result<(u64, Reply), ApiError> {
    let (edition, information) = intake.read(|state| {
        let information = ExchangeInformation {
            timezone: "UTC",
            server_time: intake.now_ms(),
            rate_limits: rate_limits(intake.limits(), &state.venue.limits),
            exchange_filters: exchange_filters(&state.venue),
            symbols: symbols(&state.venue, wanted)?,
        };
        Ok::<_, ApiError>((state.venue.edition(), information))
    })?;
    let room = REPLY_BYTES + SYMBOL_BYTES * information.symbols.len();
    Ok((edition, json_within(room, &information)?))
}

/// The symbols that are asked for, all of them without a wish, in order of definition.
fn symbols(venue: &Venue, wanted: Option<&[&str]>) -> Result<Vec<Symbol>, ApiError> {
    let wanted = match wanted {
        Some(names) => venue.symbols_named(names).ok_or(ApiError::invalid_symbol())?,
        None => venue.symbols().iter().collect(),
    };
    Ok(wanted.into_iter().map(|found| symbol(venue, found)).collect())
}

fn symbol(venue: &Venue, symbol: &venue::Symbol) -> Symbol {
    let asset = |id| {
        let asset = venue.asset(id);
        asset.map(|asset| (asset.name.as_str().to_owned(), asset.precision)).unwrap_or_default()
    };
    let (base_asset, base_asset_precision) = asset(symbol.base);
    let (quote_asset, quote_asset_precision) = asset(symbol.quote);
    let takes_any = |kinds: &[OrderType]| kinds.iter().any(|kind| kind.is_in(symbol.order_types));
    // A flag is of no use without an order type that it is about: the operator sets them apart from each other.
    let allows = |flag, kinds: &[OrderType]| symbol.flags & flag != 0 && takes_any(kinds);
    Symbol {
        symbol: symbol.name.as_str().to_owned(),
        status: names::symbol_status(symbol.status),
        base_asset,
        base_asset_precision,
        quote_asset,
        quote_precision: quote_asset_precision,
        quote_asset_precision,
        base_commission_precision: COMMISSION_PRECISION,
        quote_commission_precision: COMMISSION_PRECISION,
        order_types: symbol.order_types().map(names::order_type).collect(),
        iceberg_allowed: allows(SYMBOL_ICEBERG, &ICEBERG_TYPES),
        oco_allowed: allows(SYMBOL_OCO, &[OrderType::StopLoss, OrderType::StopLossLimit])
            && takes_any(&[OrderType::LimitMaker]),
        quote_order_qty_market_allowed: allows(SYMBOL_QUOTE_QUANTITY, &[OrderType::Market]),
        is_spot_trading_allowed: symbol.permissions & PERMISSION_SPOT != 0,
        is_margin_trading_allowed: symbol.permissions & PERMISSION_MARGIN != 0,
        filters: filters(&symbol.filters, symbol.flags),
        permissions: names::permissions(symbol.permissions),
    }
}

/// The filters that are set, and the bound on icebergs' parts wherever there are icebergs, as it holds there in
/// any case; in the contract's order (spot contract §2 Filters).
fn filters(set: &SymbolFilters, flags: u8) -> Vec<Filter> {
    let any = |values: [i64; 3]| values.iter().any(|value| *value != 0);
    let mut filters = Vec::with_capacity(10);
    if any([set.price_min, set.price_max, set.tick_size]) {
        filters.push(Filter::Price {
            min_price: Decimal(set.price_min),
            max_price: Decimal(set.price_max),
            tick_size: Decimal(set.tick_size),
        });
    }
    if any([set.percent_price_up, set.percent_price_down, 0]) {
        filters.push(Filter::PercentPrice {
            multiplier_up: Decimal(largest_if_unset(set.percent_price_up)),
            multiplier_down: Decimal(set.percent_price_down),
            avg_price_mins: set.percent_price_minutes,
        });
    }
    if any([set.lot_min, set.lot_max, set.lot_step]) {
        filters.push(Filter::LotSize {
            min_qty: Decimal(set.lot_min),
            max_qty: Decimal(largest_if_unset(set.lot_max)),
            // Finer than which no quantity is.
            step_size: Decimal(set.lot_step.max(1)),
        });
    }
    if set.min_notional != 0 {
        filters.push(Filter::MinNotional {
            min_notional: Decimal(set.min_notional),
            apply_to_market: set.min_notional_applies_to_market != 0,
            avg_price_mins: set.min_notional_minutes,
        });
    }
    if set.iceberg_parts != 0 || flags & SYMBOL_ICEBERG != 0 {
        filters.push(Filter::IcebergParts { limit: set.iceberg_parts_max() });
    }
    if any([set.market_lot_min, set.market_lot_max, set.market_lot_step]) {
        filters.push(Filter::MarketLotSize {
            min_qty: Decimal(set.market_lot_min),
            max_qty: Decimal(largest_if_unset(set.market_lot_max)),
            // Of this filter 0 is no step (facts §6).
            step_size: Decimal(set.market_lot_step),
        });
    }
    filters.extend(order_count_filters(set));
    if set.max_position != 0 {
        filters.push(Filter::MaxPosition { max_position: Decimal(set.max_position) });
    }
    filters
}

/// An upper bound as its filter's formula has it, in which 0 would forbid everything (spot contract §2 Filters; that of
/// PRICE_FILTER alone says that 0 is no bound).
const fn largest_if_unset(bound: i64) -> i64 {
    if bound == 0 { i64::MAX } else { bound }
}

fn order_count_filters(set: &SymbolFilters) -> impl Iterator<Item = Filter> {
    let (orders, algo, iceberg) = (set.max_orders, set.max_algo_orders, set.max_iceberg_orders);
    [
        (orders != 0).then_some(Filter::MaxNumOrders { max_num_orders: orders }),
        (algo != 0).then_some(Filter::MaxNumAlgoOrders { max_num_algo_orders: algo }),
        (iceberg != 0).then_some(Filter::MaxNumIcebergOrders { max_num_iceberg_orders: iceberg }),
    ]
    .into_iter()
    .flatten()
}

/// The filters of the exchange that are set (spot contract §2 Filters).
fn exchange_filters(venue: &Venue) -> Vec<Filter> {
    let (orders, algo) = (venue.max_orders, venue.max_algo_orders);
    [
        (orders != 0).then_some(Filter::ExchangeMaxNumOrders { max_num_orders: orders }),
        (algo != 0).then_some(Filter::ExchangeMaxNumAlgoOrders { max_num_algo_orders: algo }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Request weight, the two order counts as far as they are limited, raw requests.
fn rate_limits(requests: &RequestLimits, limits: &Limits) -> Vec<RateLimit> {
    let of_requests = |counted| {
        let is_it = move |limit: &&RequestLimit| limit.counted == counted;
        requests.request_limits().iter().filter(is_it).map(|limit| RateLimit {
            rate_limit_type: limit.counted.name(),
            interval: limit.interval.name(),
            interval_num: limit.interval_num,
            limit: limit.limit,
        })
    };
    let orders = order_count_limits(limits).into_iter().flatten().map(|(seconds, limit)| {
        let (interval, interval_num) = names::interval(seconds);
        RateLimit {
            rate_limit_type: "ORDERS",
            interval: interval.name(),
            interval_num,
            limit: u64::from(limit),
        }
    });
    of_requests(Counted::RequestWeight)
        .chain(orders)
        .chain(of_requests(Counted::RawRequests))
        .collect()
}

/// Seconds and limit of each of the two order counts; `None` for one that is not limited.
pub(super) fn order_count_limits(limits: &Limits) -> [Option<(u32, u32)>; 2] {
    [
        (limits.interval_0_seconds, limits.orders_per_interval_0),
        (limits.interval_1_seconds, limits.orders_per_interval_1),
    ]
    .map(|(seconds, limit)| (seconds != 0 && limit != 0).then_some((seconds, limit)))
}
