//! One account's view of the venue over REST: signed requests on a connection of its own. Called by
//! the tests that trade.

use super::http::{Http, Key, Request, Response};
use super::json::Json;
use super::units::units;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

/// Free and locked balance per asset, in 10⁻⁸.
pub(crate) type Balances = BTreeMap<String, (i128, i128)>;

/// A client that signs with one key.
pub(crate) struct Trader {
    pub(crate) http: Http,
    pub(crate) key: Key,
    key_header: String,
}

impl Trader {
    /// A client of `address` that sends its key in the header of `prefix`.
    pub(crate) fn new(address: SocketAddr, prefix: &str, key: Key) -> Self {
        Self { http: Http::new(address), key, key_header: format!("{prefix}-APIKEY") }
    }

    /// A signed request: parameters in the body of a POST, else in the query.
    pub(crate) fn request(&self, method: &str, path: &str, parameters: &str) -> Request {
        let signed = self.key.signed(parameters);
        let request = if method == "POST" {
            Request::new(method, path).form(signed)
        } else {
            Request::new(method, format!("{path}?{signed}"))
        };
        request.header(&self.key_header, &self.key.api)
    }

    /// Sends a signed request. An error leaves the outcome unknown.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        parameters: &str,
    ) -> io::Result<Response> {
        let request = self.request(method, path, parameters);
        self.http.send(&request)
    }

    /// Sends a signed request that has to be answered.
    pub(crate) fn call(&mut self, method: &str, path: &str, parameters: &str) -> Response {
        let request = self.request(method, path, parameters);
        self.http.call(&request)
    }

    /// Sends a request with the key alone, unsigned.
    pub(crate) fn keyed(&mut self, method: &str, path: &str, parameters: &str) -> Response {
        let request = Request::new(method, format!("{path}?{parameters}"));
        self.http.call(&request.header(&self.key_header, &self.key.api))
    }

    /// Places an order that has to be accepted.
    pub(crate) fn place(&mut self, parameters: &str) -> Json {
        self.call("POST", "/api/v3/order", parameters).ok()
    }

    /// Places a LIMIT GTC order that has to be accepted.
    pub(crate) fn limit(&mut self, symbol: &str, side: &str, quantity: &str, price: &str) -> Json {
        self.place(&format!(
            "symbol={symbol}&side={side}&type=LIMIT&timeInForce=GTC&quantity={quantity}&price={price}"
        ))
    }

    /// Cancels an order that has to be open.
    pub(crate) fn cancel(&mut self, parameters: &str) -> Json {
        self.call("DELETE", "/api/v3/order", parameters).ok()
    }

    /// Queries an order that has to exist.
    pub(crate) fn order(&mut self, symbol: &str, id: i128) -> Json {
        self.call("GET", "/api/v3/order", &format!("symbol={symbol}&orderId={id}")).ok()
    }

    /// The account.
    pub(crate) fn account(&mut self) -> Json {
        self.call("GET", "/api/v3/account", "").ok()
    }

    /// The account's balances.
    pub(crate) fn balances(&mut self) -> Balances {
        balances_of(&self.account())
    }
}

/// The balances in an account reply.
pub(crate) fn balances_of(account: &Json) -> Balances {
    let rows = account.at("balances").items();
    let balances: Balances = rows
        .iter()
        .map(|row| {
            assert_eq!(row.keys(), ["asset", "free", "locked"]);
            let amounts = (units(row.text_at("free")), units(row.text_at("locked")));
            (row.text_at("asset").to_owned(), amounts)
        })
        .collect();
    assert_eq!(balances.len(), rows.len(), "an asset is listed twice: {rows:?}");
    balances
}

/// One side of a depth reply as price and quantity in 10⁻⁸.
pub(crate) fn levels(depth: &Json, side: &str) -> Vec<(i128, i128)> {
    depth
        .at(side)
        .items()
        .iter()
        .map(|level| match level.items() {
            [price, quantity] => (units(price.text()), units(quantity.text())),
            other => panic!("a level is a pair, not {other:?}"),
        })
        .collect()
}
