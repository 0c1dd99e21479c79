//! What each operation does and answers: the table that ties the rows of the route table to the structs
//! of their replies, whose schemas are derived where they stand.

use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::http::Method::{self, Delete, Get, Post, Put};
use crate::spot::market_data::responses::{
    AggregateTrade, AveragePrice, BookTicker, KlineSchema, PriceTicker, PublicTrade, Statistics,
};
use crate::spot::responses::{
    Account, AccountTrade, Acknowledgement, CancelReport, Canceled, Empty, ExchangeInformation,
    ListenKey, Order, OrderBook, OrderList, Placed, PlacedLeg, ServerTime, UsedRateLimit,
};

/// Schemas by name, which others refer to.
pub(super) type Schemas = Vec<(String, RefOr<Schema>)>;

/// What an operation does and answers.
pub(super) struct Reply {
    method: Method,
    path: &'static str,
    pub(super) summary: &'static str,
    /// The schema of its answer; adds those that it refers to.
    pub(super) schema: fn(&mut Schemas) -> RefOr<Schema>,
}

/// The reply of an operation.
pub(super) fn find(method: Method, path: &str) -> Option<&'static Reply> {
    REPLIES.iter().find(|reply| reply.method == method && reply.path == path)
}

const fn reply(
    method: Method,
    path: &'static str,
    summary: &'static str,
    schema: fn(&mut Schemas) -> RefOr<Schema>,
) -> Reply {
    Reply { method, path, summary, schema }
}

/// In the order of the route table.
pub(super) const REPLIES: [Reply; 30] = [
    reply(Get, "/api/v3/ping", "Whether the service answers", of::<Empty>),
    reply(Get, "/api/v3/time", "The server's time", of::<ServerTime>),
    reply(Get, "/api/v3/exchangeInfo", "Symbols, filters and limits", of::<ExchangeInformation>),
    reply(Get, "/api/v3/depth", "The order book, best prices first", of::<OrderBook>),
    reply(Get, "/api/v3/trades", "The latest trades", list_of::<PublicTrade>),
    reply(Get, "/api/v3/historicalTrades", "Trades from an id on", list_of::<PublicTrade>),
    reply(
        Get,
        "/api/v3/aggTrades",
        "Trades of one aggressor at one price and time, taken together",
        list_of::<AggregateTrade>,
    ),
    reply(Get, "/api/v3/klines", "Candles", list_of::<KlineSchema>),
    reply(Get, "/api/v3/avgPrice", "The average price of the last minutes", of::<AveragePrice>),
    reply(Get, "/api/v3/ticker/24hr", "Statistics of 24 hours", one_or_all::<Statistics>),
    reply(Get, "/api/v3/ticker/price", "The last price", one_or_all::<PriceTicker>),
    reply(Get, "/api/v3/ticker/bookTicker", "The best prices", one_or_all::<BookTicker>),
    reply(Post, "/api/v3/order", "Places an order", placed),
    reply(Post, "/api/v3/order/test", "Checks an order without placing it", of::<Empty>),
    reply(Get, "/api/v3/order", "An order", of::<Order<'static>>),
    reply(Delete, "/api/v3/order", "Cancels an order", of::<CancelReport<'static>>),
    reply(Delete, "/api/v3/openOrders", "Cancels all of a symbol", list_of::<Canceled<'static>>),
    reply(Get, "/api/v3/openOrders", "Open orders", list_of::<Order<'static>>),
    reply(Get, "/api/v3/allOrders", "Orders, open and ended", list_of::<Order<'static>>),
    reply(Post, "/api/v3/order/oco", "Places an order list", order_list::<PlacedLeg<'static>>),
    reply(Delete, "/api/v3/orderList", "Cancels a list", order_list::<CancelReport<'static>>),
    reply(Get, "/api/v3/orderList", "An order list", order_list::<CancelReport<'static>>),
    reply(Get, "/api/v3/allOrderList", "Order lists, open and ended", lists),
    reply(Get, "/api/v3/openOrderList", "Open order lists", lists),
    reply(Get, "/api/v3/account", "Balances and rights of the account", of::<Account>),
    reply(Get, "/api/v3/myTrades", "Trades of the account", list_of::<AccountTrade<'static>>),
    reply(Get, "/api/v3/rateLimit/order", "Order counts", list_of::<UsedRateLimit>),
    reply(Post, "/api/v3/userDataStream", "Opens a stream", of::<ListenKey<'static>>),
    reply(Put, "/api/v3/userDataStream", "Keeps a stream open for an hour", of::<Empty>),
    reply(Delete, "/api/v3/userDataStream", "Closes a stream", of::<Empty>),
];

/// A reference to the schema of `T`.
fn of<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    T::schemas(schemas);
    schemas.push((T::name().into_owned(), T::schema()));
    Ref::from_schema_name(T::name()).into()
}

fn list_of<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    ArrayBuilder::new().items(of::<T>(schemas)).into()
}

/// One with a symbol, all without.
fn one_or_all<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    AnyOfBuilder::new().item(of::<T>(schemas)).item(list_of::<T>(schemas)).into()
}

/// As much as was asked for.
fn placed(schemas: &mut Schemas) -> RefOr<Schema> {
    PlacedLeg::schemas(schemas);
    PlacedLeg::schema()
}

/// Not derived: `oneOf` would refuse every placement, which has all that its acknowledgement has.
impl PartialSchema for PlacedLeg<'_> {
    fn schema() -> RefOr<Schema> {
        let reference = |name| Ref::from_schema_name(name);
        let acknowledgement = reference(Acknowledgement::name());
        AnyOfBuilder::new().item(acknowledgement).item(reference(Placed::name())).into()
    }
}

impl ToSchema for PlacedLeg<'_> {
    fn schemas(schemas: &mut Schemas) {
        let _references = (of::<Acknowledgement<'_>>(schemas), of::<Placed<'_>>(schemas));
    }
}

/// A list with reports of its orders, written out: they are of more than one kind.
fn order_list<R: ToSchema + serde::Serialize + 'static>(schemas: &mut Schemas) -> RefOr<Schema> {
    OrderList::<'static, R>::schemas(schemas);
    of::<R>(schemas);
    <OrderList<'static, R> as PartialSchema>::schema()
}

fn lists(schemas: &mut Schemas) -> RefOr<Schema> {
    ArrayBuilder::new().items(order_list::<CancelReport<'static>>(schemas)).into()
}
