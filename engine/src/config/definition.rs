//! The venue's definition in `venue.toml`: assets, symbols, accounts and the filters of the exchange. A new
//! venue logs it ([`crate::genesis`]); `touchline admin` reads a symbol's keys by the same rules.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use touchline_protocol::decimal;
use touchline_protocol::message::enums::OrderType;

/// A decimal of `venue.toml`, in 10⁻⁸ units, at least 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decimal(pub i64);

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        decimal::parse(text.as_bytes())
            .map(Self)
            .map_err(|error| D::Error::custom(format!("decimal {text:?}: {error}")))
    }
}

/// An entry of `[[assets]]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssetSection {
    /// Unique name, 1 to 15 printable characters.
    pub name: String,
    /// Decimal places that exchangeInfo tells and that orders over REST may have, at most 8.
    #[serde(default = "eight")]
    pub precision: u8,
}

const fn eight() -> u8 {
    8
}

/// The order types that a symbol takes; in `venue.toml` a list of their names in the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderTypes {
    /// Bit n is set when the type with wire number n is taken.
    pub bits: u8,
}

impl OrderTypes {
    /// The names of the types, in the order of their numbers.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let taken = OrderType::NAMES.into_iter().filter(move |(_, kind)| kind.is_in(self.bits));
        taken.map(|(name, _)| name)
    }
}

impl Default for OrderTypes {
    fn default() -> Self {
        Self { bits: 1 << OrderType::Limit.to_wire() | 1 << OrderType::Market.to_wire() }
    }
}

impl<'de> Deserialize<'de> for OrderTypes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let mut bits = 0;
        for name in names {
            let known = OrderType::NAMES.iter().find(|(known, _)| *known == name);
            let (_, order_type) = known.ok_or_else(|| {
                let known = OrderType::NAMES.map(|(known, _)| known).join(", ");
                D::Error::custom(format!("order type {name:?}, expected one of {known}"))
            })?;
            bits |= 1 << order_type.to_wire();
        }
        Ok(Self { bits })
    }
}

/// Keys of a section of `venue.toml` that have several spellings.
const SPELLINGS: [(&str, &[&str]); 2] = [
    ("exchange", &["max_orders", "EXCHANGE_MAX_NUM_ORDERS"]),
    ("exchange", &["max_algo_orders", "EXCHANGE_MAX_NUM_ALGO_ORDERS", "EXCHANGE_MAX_ALGO_ORDERS"]),
];

/// Every spelling of a key of a section of `venue.toml`: of most keys none but itself.
pub fn spellings<'a>(section: &str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let several = SPELLINGS.iter().find(|(of, keys)| *of == section && keys.contains(&key));
    let others = several.map_or(&[][..], |(_, keys)| keys).iter().copied();
    std::iter::once(key).chain(others.filter(move |other| *other != key))
}

/// Section `[exchange]`: filters on the open orders of an account on all symbols, of a new venue (spot
/// contract §2 Filters).
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExchangeSection {
    /// EXCHANGE_MAX_NUM_ORDERS maxNumOrders; 0: no limit.
    #[serde(alias = "EXCHANGE_MAX_NUM_ORDERS")]
    pub max_orders: u32,
    /// EXCHANGE_MAX_NUM_ALGO_ORDERS maxNumAlgoOrders, which the contract spells in two ways; 0: no limit.
    #[serde(alias = "EXCHANGE_MAX_NUM_ALGO_ORDERS", alias = "EXCHANGE_MAX_ALGO_ORDERS")]
    pub max_algo_orders: u32,
}

/// An entry of `[[symbols]]`. Filter values of 0 disable their rule (spot contract §2 Filters).
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SymbolSection {
    /// Unique name, 1 to 20 characters of A-Z, 0-9, `-`, `_`, `.`.
    pub name: String,
    /// Name of the base asset.
    pub base: String,
    /// Name of the quote asset.
    pub quote: String,
    /// Order types that it takes.
    pub order_types: OrderTypes,
    /// It takes icebergs.
    pub iceberg: bool,
    /// It takes order lists (OCO); for these it takes LIMIT_MAKER and a stop loss type too.
    pub oco: bool,
    /// It takes MARKET orders by quote quantity.
    pub quote_quantity: bool,
    /// PRICE_FILTER minPrice.
    pub price_min: Decimal,
    /// PRICE_FILTER maxPrice.
    pub price_max: Decimal,
    /// PRICE_FILTER tickSize.
    pub tick_size: Decimal,
    /// PERCENT_PRICE multiplierUp.
    pub percent_price_up: Decimal,
    /// PERCENT_PRICE multiplierDown.
    pub percent_price_down: Decimal,
    /// PERCENT_PRICE avgPriceMins; 0: the last price.
    pub percent_price_minutes: u32,
    /// LOT_SIZE minQty.
    pub lot_min: Decimal,
    /// LOT_SIZE maxQty.
    pub lot_max: Decimal,
    /// LOT_SIZE stepSize.
    pub lot_step: Decimal,
    /// MARKET_LOT_SIZE minQty.
    pub market_lot_min: Decimal,
    /// MARKET_LOT_SIZE maxQty.
    pub market_lot_max: Decimal,
    /// MARKET_LOT_SIZE stepSize.
    pub market_lot_step: Decimal,
    /// MIN_NOTIONAL minNotional.
    pub min_notional: Decimal,
    /// MIN_NOTIONAL applyToMarket.
    pub min_notional_applies_to_market: bool,
    /// MIN_NOTIONAL avgPriceMins; 0: the last price.
    pub min_notional_minutes: u32,
    /// ICEBERG_PARTS limit; 0: 1,000.
    pub iceberg_parts: u32,
    /// MAX_NUM_ORDERS maxNumOrders.
    pub max_orders: u32,
    /// MAX_NUM_ALGO_ORDERS maxNumAlgoOrders.
    pub max_algo_orders: u32,
    /// MAX_NUM_ICEBERG_ORDERS maxNumIcebergOrders.
    pub max_iceberg_orders: u32,
    /// MAX_POSITION maxPosition.
    pub max_position: Decimal,
}

/// An entry of `[[accounts]]`, made at the first start.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSection {
    /// Unique name, 1 to 31 printable characters, and no blank at its ends.
    pub name: String,
    /// Commission as the maker, share of the received amount.
    #[serde(default)]
    pub maker_rate: Decimal,
    /// Commission as the taker, share of the received amount.
    #[serde(default)]
    pub taker_rate: Decimal,
    /// API keys to make, with every permission.
    #[serde(default)]
    pub keys: u32,
    /// Free balances by asset name.
    #[serde(default)]
    pub balances: BTreeMap<String, Decimal>,
}
