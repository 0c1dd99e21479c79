//! The JSON of every reply, one struct per object, fields in the contract's order (spot contract
//! §2). Filled by the handlers; `document` describes them by the schemas that are derived here.

use std::fmt;

use serde::{Serialize, Serializer};
use touchline_protocol::decimal::DecimalText;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::document;

/// 10⁻⁸ units as a decimal string with eight fraction digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal(pub(super) i64);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Most of an order's are.
        if self.0 == 0 {
            return serializer.serialize_str("0.00000000");
        }
        serializer.serialize_str(DecimalText::new(self.0).as_str())
    }
}

impl ToSchema for Decimal {}

impl utoipa::PartialSchema for Decimal {
    fn schema() -> RefOr<Schema> {
        document::decimal(8, "A decimal with eight fraction digits.").into()
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(DecimalText::new(self.0).as_str())
    }
}

/// `{}`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Empty {}

/// GET /time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerTime {
    pub(super) server_time: u64,
}

/// GET /depth: levels as `[price, quantity]`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderBook {
    pub(super) last_update_id: u64,
    pub(super) bids: Vec<(Decimal, Decimal)>,
    pub(super) asks: Vec<(Decimal, Decimal)>,
}

/// GET /exchangeInfo.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExchangeInformation {
    pub(super) timezone: &'static str,
    pub(super) server_time: u64,
    pub(super) rate_limits: Vec<RateLimit>,
    pub(super) exchange_filters: Vec<Filter>,
    pub(super) symbols: Vec<Symbol>,
}

/// A rate limit without its count.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimit {
    pub(super) rate_limit_type: &'static str,
    pub(super) interval: &'static str,
    pub(super) interval_num: u32,
    pub(super) limit: u64,
}

/// A symbol of GET /exchangeInfo.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Symbol {
    pub(super) symbol: String,
    pub(super) status: &'static str,
    pub(super) base_asset: String,
    pub(super) base_asset_precision: u8,
    pub(super) quote_asset: String,
    pub(super) quote_precision: u8,
    pub(super) quote_asset_precision: u8,
    pub(super) base_commission_precision: u8,
    pub(super) quote_commission_precision: u8,
    pub(super) order_types: Vec<&'static str>,
    pub(super) iceberg_allowed: bool,
    pub(super) oco_allowed: bool,
    pub(super) quote_order_qty_market_allowed: bool,
    pub(super) is_spot_trading_allowed: bool,
    pub(super) is_margin_trading_allowed: bool,
    pub(super) filters: Vec<Filter>,
    pub(super) permissions: Vec<&'static str>,
}

/// A filter of a symbol or of the exchange.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "filterType", rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Filter {
    #[serde(rename = "PRICE_FILTER", rename_all = "camelCase")]
    Price { min_price: Decimal, max_price: Decimal, tick_size: Decimal },
    #[serde(rename_all = "camelCase")]
    PercentPrice { multiplier_up: Decimal, multiplier_down: Decimal, avg_price_mins: u32 },
    #[serde(rename_all = "camelCase")]
    LotSize { min_qty: Decimal, max_qty: Decimal, step_size: Decimal },
    #[serde(rename_all = "camelCase")]
    MinNotional { min_notional: Decimal, apply_to_market: bool, avg_price_mins: u32 },
    #[serde(rename_all = "camelCase")]
    IcebergParts { limit: u32 },
    #[serde(rename_all = "camelCase")]
    MarketLotSize { min_qty: Decimal, max_qty: Decimal, step_size: Decimal },
    #[serde(rename_all = "camelCase")]
    MaxNumOrders { max_num_orders: u32 },
    #[serde(rename_all = "camelCase")]
    MaxNumAlgoOrders { max_num_algo_orders: u32 },
    #[serde(rename_all = "camelCase")]
    MaxNumIcebergOrders { max_num_iceberg_orders: u32 },
    #[serde(rename_all = "camelCase")]
    MaxPosition { max_position: Decimal },
    #[serde(rename_all = "camelCase")]
    ExchangeMaxNumOrders { max_num_orders: u32 },
    #[serde(rename_all = "camelCase")]
    ExchangeMaxNumAlgoOrders { max_num_algo_orders: u32 },
}

/// POST /order, form ACK.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Acknowledgement<'a> {
    pub(super) symbol: &'a str,
    pub(super) order_id: u64,
    pub(super) order_list_id: i64,
    pub(super) client_order_id: &'a str,
    pub(super) transact_time: u64,
}

/// POST /order, forms RESULT and FULL: the latter with fills, which may be none. Its fields are its own, and none of
/// another struct: names that come by a map are written in four times the time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Placed<'a> {
    pub(super) symbol: &'a str,
    pub(super) order_id: u64,
    pub(super) order_list_id: i64,
    pub(super) client_order_id: &'a str,
    pub(super) transact_time: u64,
    pub(super) price: Decimal,
    pub(super) orig_qty: Decimal,
    pub(super) executed_qty: Decimal,
    pub(super) cummulative_quote_qty: Decimal,
    pub(super) status: &'static str,
    pub(super) time_in_force: &'static str,
    pub(super) r#type: &'static str,
    pub(super) side: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) stop_price: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) iceberg_qty: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) fills: Option<Vec<Fill<'a>>>,
}

/// What the reports of a list's legs and of cancelled orders have in addition where it is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extras {
    pub(super) stop_price: Option<Decimal>,
    pub(super) iceberg_qty: Option<Decimal>,
}

impl Extras {
    /// 0 stands for what is not set.
    pub(super) fn new(stop_price: i64, iceberg_quantity: i64) -> Self {
        let set = |value| (value != 0).then_some(Decimal(value));
        Self { stop_price: set(stop_price), iceberg_qty: set(iceberg_quantity) }
    }
}

/// GET /myTrades.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountTrade<'a> {
    pub(super) symbol: &'a str,
    pub(super) id: u64,
    pub(super) order_id: u64,
    pub(super) order_list_id: i64,
    pub(super) price: Decimal,
    pub(super) qty: Decimal,
    pub(super) quote_qty: Decimal,
    pub(super) commission: Decimal,
    pub(super) commission_asset: &'a str,
    pub(super) time: u64,
    pub(super) is_buyer: bool,
    pub(super) is_maker: bool,
    pub(super) is_best_match: bool,
}

/// An order list, in queries without reports of its orders.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderList<'a, R: Serialize> {
    pub(super) order_list_id: i64,
    pub(super) contingency_type: &'static str,
    pub(super) list_status_type: &'static str,
    pub(super) list_order_status: &'static str,
    pub(super) list_client_order_id: &'a str,
    pub(super) transaction_time: u64,
    pub(super) symbol: &'a str,
    pub(super) orders: [ListedOrder<'a>; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) order_reports: Option<[R; 2]>,
}

/// An order of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedOrder<'a> {
    pub(super) symbol: &'a str,
    pub(super) order_id: u64,
    pub(super) client_order_id: &'a str,
}

/// The report of a list's leg when it is placed: as much as was asked for. Its schema stands with those of
/// the replies.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum PlacedLeg<'a> {
    Acknowledged(Acknowledgement<'a>),
    Placed(Box<Placed<'a>>),
}

/// An entry of DELETE /openOrders.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Canceled<'a> {
    Order(Box<CancelReport<'a>>),
    List(Box<OrderList<'a, CancelReport<'a>>>),
}

/// One fill of a placement.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fill<'a> {
    pub(super) price: Decimal,
    pub(super) qty: Decimal,
    pub(super) commission: Decimal,
    pub(super) commission_asset: &'a str,
    pub(super) trade_id: u64,
}

/// DELETE /order, and the cancelled orders of a list.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelReport<'a> {
    pub(super) symbol: &'a str,
    pub(super) orig_client_order_id: &'a str,
    pub(super) order_id: u64,
    pub(super) order_list_id: i64,
    pub(super) client_order_id: &'a str,
    pub(super) price: Decimal,
    pub(super) orig_qty: Decimal,
    pub(super) executed_qty: Decimal,
    pub(super) cummulative_quote_qty: Decimal,
    pub(super) status: &'static str,
    pub(super) time_in_force: &'static str,
    pub(super) r#type: &'static str,
    pub(super) side: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) stop_price: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) iceberg_qty: Option<Decimal>,
}

/// GET /order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Order<'a> {
    pub(super) symbol: &'a str,
    pub(super) order_id: u64,
    pub(super) order_list_id: i64,
    pub(super) client_order_id: &'a str,
    pub(super) price: Decimal,
    pub(super) orig_qty: Decimal,
    pub(super) executed_qty: Decimal,
    pub(super) cummulative_quote_qty: Decimal,
    pub(super) status: &'static str,
    pub(super) time_in_force: &'static str,
    pub(super) r#type: &'static str,
    pub(super) side: &'static str,
    pub(super) stop_price: Decimal,
    pub(super) iceberg_qty: Decimal,
    pub(super) time: u64,
    pub(super) update_time: u64,
    pub(super) is_working: bool,
    pub(super) orig_quote_order_qty: Decimal,
}

/// GET /rateLimit/order: a rate limit with what is used up of it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsedRateLimit {
    #[serde(flatten)]
    pub(super) limit: RateLimit,
    pub(super) count: u32,
}

/// POST /userDataStream.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListenKey<'a> {
    pub(super) listen_key: &'a str,
}

/// GET /account.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Account {
    pub(super) maker_commission: i64,
    pub(super) taker_commission: i64,
    pub(super) buyer_commission: i64,
    pub(super) seller_commission: i64,
    pub(super) can_trade: bool,
    pub(super) can_withdraw: bool,
    pub(super) can_deposit: bool,
    pub(super) update_time: u64,
    pub(super) account_type: &'static str,
    pub(super) balances: Vec<Balance>,
    pub(super) permissions: Vec<&'static str>,
}

/// One asset of an account.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Balance {
    pub(super) asset: String,
    pub(super) free: Decimal,
    pub(super) locked: Decimal,
}
