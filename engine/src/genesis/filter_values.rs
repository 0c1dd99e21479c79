//! A symbol's filters by the keys of `venue.toml`. Called by whoever names one, by the engine's start and by
//! `touchline admin`.

use touchline_protocol::message::command::SymbolFilters;

/// Keys of a symbol's filters, in the order of [`SymbolFilters`].
pub(super) const FILTER_KEYS: [&str; 20] = [
    "price_min",
    "price_max",
    "tick_size",
    "lot_min",
    "lot_max",
    "lot_step",
    "market_lot_min",
    "market_lot_max",
    "market_lot_step",
    "percent_price_up",
    "percent_price_down",
    "min_notional",
    "max_position",
    "percent_price_minutes",
    "min_notional_minutes",
    "iceberg_parts",
    "max_orders",
    "max_algo_orders",
    "max_iceberg_orders",
    "min_notional_applies_to_market",
];

/// What a key of a symbol's filters is set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterValue {
    /// In 10⁻⁸.
    Decimal(i64),
    /// Minutes, parts or orders.
    Count(u32),
    /// Whether it is so.
    Flag(bool),
}

/// Every key of a symbol's filters and its value.
pub fn filter_values(
    filters: &SymbolFilters,
) -> impl Iterator<Item = (&'static str, FilterValue)> + use<> {
    let decimals = filters.decimals().into_iter().map(FilterValue::Decimal);
    let counts = filters.counts().into_iter().map(FilterValue::Count);
    let flag = FilterValue::Flag(filters.min_notional_applies_to_market != 0);
    FILTER_KEYS.into_iter().zip(decimals.chain(counts).chain([flag]))
}
