//! The contract's table of operations (spot contract §4), as far as it is served: one row each, with the
//! parameters that it knows and what serves it. The spot service looks requests up in it; a test holds
//! it against the contract's own table, and `document` describes each of them.

use std::sync::LazyLock;

use super::intake::{self, Intake};
use super::long::Steps;
use super::submission::Submission;
use super::{cancel, forms, market, market_data, place, query, streams};
use crate::api_error::ApiError;
use crate::http::Method::{self, Delete, Get, Post, Put};
use crate::http::{Reply, Request};
use crate::parameters::pattern::Form;
use crate::parameters::{ParameterError, Parameters};
use crate::route::{Route, RouteTable, Security, Weight};

/// What every signed request may carry besides its own parameters (spot contract §5).
const OF_SIGNATURES: [&str; 3] = ["recvWindow", "timestamp", "signature"];

/// Every operation by path and method, made with the first request.
pub(super) static TABLE: LazyLock<RouteTable<Handler>> =
    LazyLock::new(|| RouteTable::new(routes()).expect("no route stands there twice"));

/// What serves an operation.
pub(super) struct Handler {
    /// The operation's own parameters, `!` behind the names of the mandatory ones.
    pub(super) parameters: &'static [&'static str],
    /// How many parameters a request may have: those, and those of signatures.
    most: usize,
    /// The forms of all that have one, found out once and not with each request.
    forms: Vec<(&'static str, Form)>,
    pub(super) serve: Serve,
}

/// How an operation comes to its answer.
#[derive(Clone, Copy)]
pub(super) enum Serve {
    /// From the request alone.
    AtOnce(fn(&Intake<'_>) -> Result<Reply, ApiError>),
    /// From the views, once they hold all that was acknowledged when the request arrived.
    FromViews(fn(&Intake<'_>) -> Result<Reply, ApiError>),
    /// As [`Serve::FromViews`], but in steps: what it looks at grows with the venue. Of open routes.
    InSteps(fn(&Intake<'_>) -> Result<Steps, ApiError>),
    /// From what the engine decides about a command.
    ByEngine(fn(&Intake<'_>) -> Result<Submission, ApiError>),
}

use Serve::{AtOnce, ByEngine, FromViews, InSteps};

/// One operation as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its method.
    pub method: Method,
    /// Its path.
    pub path: &'static str,
    /// What a request must prove.
    pub security: Security,
    /// What a request costs its address.
    pub weight: Weight,
    /// What an accepted request adds to the account's order counts.
    pub order_cost: u8,
    /// Its own parameters: not those of signatures.
    pub parameters: Vec<Parameter>,
}

/// A parameter of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Whether a request must have it.
    pub is_required: bool,
}

impl Parameter {
    /// Reads it as it stands in a row.
    fn read(text: &'static str) -> Self {
        let name = text.trim_end_matches('!');
        Self { name, is_required: name != text }
    }
}

/// Every operation that is served.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let operation = |route: Route<Handler>| Operation {
        method: route.method,
        path: route.path,
        security: route.security,
        weight: route.weight,
        order_cost: route.order_cost,
        parameters: route.handler.parameters.iter().copied().map(Parameter::read).collect(),
    };
    routes().into_iter().map(operation).collect()
}

impl Route<Handler> {
    /// The parameters of a request. Of those that are more than any operation has, the refusal tells how many this
    /// one knows.
    pub(super) fn parameters<'a>(
        &self,
        request: &'a Request,
    ) -> Result<Parameters<'a>, ParameterError> {
        intake::parameters(request).map_err(|error| match error {
            ParameterError::TooMany { received, .. } => {
                ParameterError::TooMany { expected: self.handler.most, received }
            }
            other => other,
        })
    }
}

/// Refuses more parameters than the operation knows, and values that have not the form of their parameter: both
/// come before what is missing (facts §1.4).
pub(super) fn check_forms(
    route: &Route<Handler>,
    sent: &Parameters<'_>,
) -> Result<(), ParameterError> {
    let Handler { most, forms, .. } = &route.handler;
    sent.at_most(*most)?;
    forms.iter().try_for_each(|(name, form)| sent.require_form(name, *form))
}

/// An operation that adds nothing to the order counts.
fn row(
    method: Method,
    path: &'static str,
    (security, weight): (Security, Weight),
    parameters: &'static [&'static str],
    serve: Serve,
) -> Route<Handler> {
    let of_signatures: &[_] = if security.needs_signature() { &OF_SIGNATURES } else { &[] };
    let names = parameters.iter().chain(of_signatures).map(|text| Parameter::read(text).name);
    let handler = Handler {
        parameters,
        most: parameters.len() + of_signatures.len(),
        forms: names.filter_map(|name| Some((name, forms::of(weight, name)?))).collect(),
        serve,
    };
    Route { method, path, security, weight, order_cost: 0, handler }
}

/// The rows in the contract's order.
pub(super) fn routes() -> Vec<Route<Handler>> {
    let mut routes = general();
    routes.extend(market_data());
    routes.extend(trading());
    routes.extend(account());
    routes
}

/// An open operation and its weight.
const fn open(weight: u32) -> (Security, Weight) {
    (Security::None, Weight::Fixed(weight))
}

/// General endpoints.
fn general() -> Vec<Route<Handler>> {
    vec![
        row(Get, "/api/v3/ping", open(1), &[], AtOnce(market::ping)),
        row(Get, "/api/v3/time", open(1), &[], AtOnce(market::time)),
        row(
            Get,
            "/api/v3/exchangeInfo",
            open(10),
            &["symbol", "symbols"],
            FromViews(market::exchange_information),
        ),
    ]
}

/// Market data. The tickers know `symbols` beside the contract's `symbol`, at the weight of all. Those of 24
/// hours know the `type` of what they show by its name, which some clients send always.
fn market_data() -> Vec<Route<Handler>> {
    let by_limit = (Security::None, Weight::ByDepthLimit);
    let by_key = (Security::MarketData, Weight::Fixed(5));
    let ticker = |path, without, parameters, serve| {
        let by_symbol = (Security::None, Weight::BySymbol { with: 1, without });
        row(Get, path, by_symbol, parameters, serve)
    };
    let which = &["symbol", "symbols"];
    let in_full = &["symbol", "symbols", "type"];
    let get = |path, cost, parameters, serve| row(Get, path, cost, parameters, FromViews(serve));
    vec![
        get("/api/v3/depth", by_limit, &["symbol!", "limit"], market::depth),
        get("/api/v3/trades", open(1), &["symbol!", "limit"], market_data::trades),
        get(
            "/api/v3/historicalTrades",
            by_key,
            &["symbol!", "limit", "fromId"],
            market_data::historical_trades,
        ),
        get(
            "/api/v3/aggTrades",
            open(1),
            &["symbol!", "fromId", "startTime", "endTime", "limit"],
            market_data::aggregate_trades,
        ),
        get(
            "/api/v3/klines",
            open(1),
            &["symbol!", "interval!", "startTime", "endTime", "limit"],
            market_data::klines,
        ),
        get("/api/v3/avgPrice", open(1), &["symbol!"], market_data::average_price),
        ticker("/api/v3/ticker/24hr", 40, in_full, InSteps(market_data::statistics)),
        ticker("/api/v3/ticker/price", 2, which, FromViews(market_data::price)),
        ticker("/api/v3/ticker/bookTicker", 2, which, FromViews(market_data::book_ticker)),
    ]
}

/// Orders and order lists.
fn trading() -> Vec<Route<Handler>> {
    let trade = (Security::Trade, Weight::Fixed(1));
    let user_data = |weight| (Security::UserData, Weight::Fixed(weight));
    let by_symbol = (Security::UserData, Weight::BySymbol { with: 3, without: 40 });
    let new_order = |path, serve| row(Post, path, trade, &place::PARAMETERS, ByEngine(serve));
    let oco = &place::list::PARAMETERS;
    let oco = row(Post, "/api/v3/order/oco", trade, oco, ByEngine(place::list::oco));
    let one_order = &["symbol!", "orderId", "origClientOrderId"];
    vec![
        Route { order_cost: 1, ..new_order("/api/v3/order", place::order) },
        new_order("/api/v3/order/test", place::test),
        row(Get, "/api/v3/order", user_data(2), one_order, FromViews(query::order)),
        row(
            Delete,
            "/api/v3/order",
            trade,
            &["symbol!", "orderId", "origClientOrderId", "newClientOrderId"],
            ByEngine(cancel::order),
        ),
        row(Delete, "/api/v3/openOrders", trade, &["symbol!"], ByEngine(cancel::all)),
        row(Get, "/api/v3/openOrders", by_symbol, &["symbol"], FromViews(query::open_orders)),
        row(
            Get,
            "/api/v3/allOrders",
            user_data(10),
            &["symbol!", "orderId", "startTime", "endTime", "limit"],
            FromViews(query::past::orders),
        ),
        Route { order_cost: 2, ..oco },
        row(
            Delete,
            "/api/v3/orderList",
            trade,
            &["symbol!", "orderListId", "listClientOrderId", "newClientOrderId"],
            ByEngine(cancel::list),
        ),
        row(
            Get,
            "/api/v3/orderList",
            user_data(2),
            &["orderListId", "origClientOrderId", "listClientOrderId"],
            FromViews(query::lists::one),
        ),
        row(
            Get,
            "/api/v3/allOrderList",
            user_data(10),
            &["fromId", "startTime", "endTime", "limit"],
            FromViews(query::past::lists),
        ),
        row(Get, "/api/v3/openOrderList", user_data(3), &[], FromViews(query::lists::open)),
    ]
}

/// The account and its user data stream.
fn account() -> Vec<Route<Handler>> {
    let user_data = |weight| (Security::UserData, Weight::Fixed(weight));
    let signed = (Security::Signed, Weight::Fixed(20));
    let user_stream = (Security::UserStream, Weight::Fixed(1));
    let stream = "/api/v3/userDataStream";
    let order_counts = FromViews(query::order_counts);
    vec![
        row(Get, "/api/v3/account", user_data(10), &[], FromViews(query::account)),
        row(
            Get,
            "/api/v3/myTrades",
            user_data(10),
            &["symbol!", "orderId", "startTime", "endTime", "fromId", "limit"],
            FromViews(query::past::trades),
        ),
        row(Get, "/api/v3/rateLimit/order", signed, &[], order_counts),
        row(Post, stream, user_stream, &[], FromViews(streams::open)),
        row(Put, stream, user_stream, &["listenKey!"], FromViews(streams::keep_alive)),
        row(Delete, stream, user_stream, &["listenKey!"], FromViews(streams::close)),
    ]
}
