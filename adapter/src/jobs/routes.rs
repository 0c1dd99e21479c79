//! The contract's table of operations (jobs contract §4): one row each, with what serves it.

use super::exchange::Exchange;
use super::{listing, users, writes};
use crate::http::Method::{self, Delete, Get, Patch, Post};
use crate::route::{Route, Security, Weight};

/// What serves an operation: it answers the exchange, now or later.
pub(super) type Handler = fn(Exchange);

const JOBS: &str = "/api/v1/jobs";
const JOB: &str = "/api/v1/jobs/{id}";

/// Method, path and security of every operation that is served.
#[must_use]
pub fn operations() -> Vec<(Method, &'static str, Security)> {
    routes().into_iter().map(|route| (route.method, route.path, route.security)).collect()
}

/// The rows in the contract's order.
pub(super) fn routes() -> Vec<Route<Handler>> {
    let row = |method, path, security, handler: Handler| Route {
        method,
        path,
        security,
        // These requests cost no request weight, which is the trading service's.
        weight: Weight::Fixed(0),
        order_cost: 0,
        handler,
    };
    vec![
        row(Get, JOBS, Security::Bearer, listing::all),
        row(Post, JOBS, Security::Bearer, writes::create),
        row(Get, JOB, Security::Bearer, listing::one),
        row(Patch, JOB, Security::Bearer, writes::update),
        row(Delete, JOB, Security::Bearer, writes::delete),
        row(Post, "/api/v1/auth/register", Security::None, users::register),
        row(Post, "/api/v1/auth/login", Security::None, users::log_in),
    ]
}
