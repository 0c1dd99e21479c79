//! The JSON of the market data, one struct per object, fields in the contract's order (spot contract
//! §2). Filled by the handlers beside.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use touchline_protocol::units::UNITS_PER_WHOLE;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ArrayItems, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::spot::document;
use crate::spot::responses::Decimal;

/// A sum of 10⁻⁸ units, which may be beyond what an order or a balance can hold, as a decimal string
/// with eight fraction digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum(pub(super) i128);

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let one = UNITS_PER_WHOLE as u128;
        let (units, sign) = (self.0.unsigned_abs(), if self.0 < 0 { "-" } else { "" });
        serializer.collect_str(&format_args!("{sign}{}.{:08}", units / one, units % one))
    }
}

impl ToSchema for Sum {}

impl PartialSchema for Sum {
    fn schema() -> RefOr<Schema> {
        document::decimal(8, "A decimal with eight fraction digits, of any size.").into()
    }
}

/// 1/1000 of a percent, as a decimal string with three fraction digits (facts §7 ticker/24hr).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percent(pub(super) i128);

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (units, sign) = (self.0.unsigned_abs(), if self.0 < 0 { "-" } else { "" });
        serializer.collect_str(&format_args!("{sign}{}.{:03}", units / 1000, units % 1000))
    }
}

impl ToSchema for Percent {}

impl PartialSchema for Percent {
    fn schema() -> RefOr<Schema> {
        document::decimal(3, "A percentage with three fraction digits.").into()
    }
}

/// GET /trades, GET /historicalTrades.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::spot) struct PublicTrade {
    pub(super) id: u64,
    pub(super) price: Decimal,
    pub(super) qty: Decimal,
    pub(super) quote_qty: Decimal,
    pub(super) time: u64,
    pub(super) is_buyer_maker: bool,
    pub(super) is_best_match: bool,
}

/// GET /aggTrades.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::spot) struct AggregateTrade {
    #[serde(rename = "a")]
    pub(super) id: u64,
    #[serde(rename = "p")]
    pub(super) price: Decimal,
    #[serde(rename = "q")]
    pub(super) quantity: Sum,
    #[serde(rename = "f")]
    pub(super) first: u64,
    #[serde(rename = "l")]
    pub(super) last: u64,
    #[serde(rename = "T")]
    pub(super) time: u64,
    #[serde(rename = "m")]
    pub(super) is_buyer_maker: bool,
    #[serde(rename = "M")]
    pub(super) is_best_match: bool,
}

/// GET /klines: open time, open, high, low, close, volume, close time, quote volume, trades, taker
/// base volume, taker quote volume, and what is ignored.
pub(super) type Kline =
    (u64, Decimal, Decimal, Decimal, Decimal, Sum, u64, Sum, u64, Sum, Sum, &'static str);

/// What is said of [`Kline`]: each item by itself, as its place is its name.
pub(in crate::spot) struct KlineSchema;

impl ToSchema for KlineSchema {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Kline")
    }
}

impl PartialSchema for KlineSchema {
    fn schema() -> RefOr<Schema> {
        let (number, decimal) = (document::number, || document::decimal(8, "A decimal."));
        let ignored = || document::decimal(0, "Of no meaning.");
        let items = [
            number(),
            decimal(),
            decimal(),
            decimal(),
            decimal(),
            decimal(),
            number(),
            decimal(),
            number(),
            decimal(),
            decimal(),
            ignored(),
        ];
        let array = ArrayBuilder::new()
            .items(ArrayItems::False)
            .prefix_items(items)
            .description(Some(
                "Open time, open, high, low, close, volume, close time, quote volume, number of \
                 trades, taker's base volume, taker's quote volume, an item without meaning.",
            ))
            .build();
        array.into()
    }
}

/// GET /avgPrice.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::spot) struct AveragePrice {
    pub(super) mins: u32,
    pub(super) price: Decimal,
}

/// GET /ticker/24hr. The quantities of the best prices may be there (spot contract §2 24-hour ticker).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::spot) struct Statistics {
    pub(super) symbol: String,
    pub(super) price_change: Decimal,
    pub(super) price_change_percent: Percent,
    pub(super) weighted_avg_price: Sum,
    pub(super) prev_close_price: Decimal,
    pub(super) last_price: Decimal,
    pub(super) last_qty: Decimal,
    pub(super) bid_price: Decimal,
    pub(super) bid_qty: Decimal,
    pub(super) ask_price: Decimal,
    pub(super) ask_qty: Decimal,
    pub(super) open_price: Decimal,
    pub(super) high_price: Decimal,
    pub(super) low_price: Decimal,
    pub(super) volume: Sum,
    pub(super) quote_volume: Sum,
    pub(super) open_time: u64,
    pub(super) close_time: u64,
    pub(super) first_id: i64,
    pub(super) last_id: i64,
    pub(super) count: u64,
}

/// GET /ticker/price.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::spot) struct PriceTicker {
    pub(super) symbol: String,
    pub(super) price: Decimal,
}

/// GET /ticker/bookTicker.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::spot) struct BookTicker {
    pub(super) symbol: String,
    pub(super) bid_price: Decimal,
    pub(super) bid_qty: Decimal,
    pub(super) ask_price: Decimal,
    pub(super) ask_qty: Decimal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_beyond_what_an_order_holds() {
        let text = |value: &dyn erased::Json| value.json();
        assert_eq!(text(&Sum(0)), r#""0.00000000""#);
        assert_eq!(text(&Sum(-1)), r#""-0.00000001""#);
        assert_eq!(text(&Sum(i128::from(i64::MAX) * 1000)), r#""92233720368547.75807000""#);
        assert_eq!(text(&Percent(-95_960)), r#""-95.960""#);
        assert_eq!(text(&Percent(7)), r#""0.007""#);
    }

    mod erased {
        pub(super) trait Json {
            fn json(&self) -> String;
        }

        impl<T: serde::Serialize> Json for T {
            fn json(&self) -> String {
                serde_json::to_string(self).unwrap()
            }
        }
    }
}
