//! Bad requests, in tables: each gets the contract's status, code and message, and after each one
//! nothing has changed and the service still answers.

mod authentication;
mod orders;
mod queries;

use super::http::Request;
use super::trader::Trader;
use super::venue::{UNLIMITED, Venue};

const ORDER: &str = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";
const ORDER_PATH: &str = "/api/v3/order";
const DECIMAL_RANGE: &str = "^([0-9]{1,20})(\\.[0-9]{1,20})?$";
const LONG_RANGE: &str = "^[0-9]{1,20}$";
const SYMBOL_RANGE: &str = "^[A-Z0-9-_.]{1,20}$";
const CLIENT_ID_RANGE: &str = "^[\\.A-Z\\:/a-z0-9_-]{1,36}$";

/// Makes a request when it is sent: its time is good for a few seconds, and the cases before it may take longer.
struct Maker(Box<dyn Fn() -> Request>);

impl<F: Fn() -> Request + 'static> From<F> for Maker {
    fn from(make: F) -> Self {
        Self(Box::new(make))
    }
}

/// Of one that has no time, or one that is as bad later.
impl From<Request> for Maker {
    fn from(request: Request) -> Self {
        Self(Box::new(move || request.clone()))
    }
}

/// One bad request and the answers that the contract allows for it.
struct Case {
    name: String,
    request: Maker,
    allowed: Vec<(u16, i128, String)>,
}

impl Case {
    fn new(
        name: impl Into<String>,
        request: impl Into<Maker>,
        answer: (u16, i128, String),
    ) -> Self {
        Self { name: name.into(), request: request.into(), allowed: vec![answer] }
    }

    /// Another answer, where the contract leaves a choice.
    fn or(mut self, answer: (u16, i128, String)) -> Self {
        self.allowed.push(answer);
        self
    }
}

fn answer(code: i128, message: impl Into<String>) -> (u16, i128, String) {
    let status = if matches!(code, -2015 | -2014) { 401 } else { 400 };
    (status, code, message.into())
}

fn illegal(parameter: &str, range: &str) -> (u16, i128, String) {
    let message =
        format!("Illegal characters found in parameter '{parameter}'; legal range is '{range}'.");
    answer(-1100, message)
}

fn missing(parameter: &str) -> (u16, i128, String) {
    let message =
        format!("Mandatory parameter '{parameter}' was not sent, was empty/null, or malformed.");
    answer(-1102, message)
}

fn empty(parameter: &str) -> (u16, i128, String) {
    answer(-1105, format!("Parameter '{parameter}' was empty."))
}

fn not_required(parameter: &str) -> (u16, i128, String) {
    answer(-1106, format!("Parameter '{parameter}' sent when not required."))
}

fn filter(name: &str) -> (u16, i128, String) {
    answer(-1013, format!("Filter failure: {name}"))
}

/// `parameters` with the value of `name` replaced, or with the parameter added.
fn with(parameters: &str, name: &str, value: &str) -> String {
    let kept = without(parameters, name);
    format!("{kept}&{name}={value}")
}

/// `parameters` without `name`.
fn without(parameters: &str, name: &str) -> String {
    let kept: Vec<_> = parameters
        .split('&')
        .filter(|pair| pair.split_once('=').is_none_or(|(key, _)| key != name))
        .collect();
    kept.join("&")
}

/// Everything that a bad request must leave as it is.
#[derive(PartialEq, Eq, Debug)]
struct Snapshot {
    accounts: Vec<String>,
    depths: Vec<String>,
    orders: Vec<String>,
}

/// A venue with resting orders on both sides and the state before the first bad request.
struct Bench {
    venue: Venue,
    a: Trader,
    b: Trader,
    resting: [i128; 2],
    before: Snapshot,
}

impl Bench {
    fn new() -> Self {
        let venue = Venue::up(&UNLIMITED);
        let (mut a, mut b) = (venue.a(), venue.b());
        let named = with(ORDER, "newClientOrderId", "resting");
        let resting = [
            a.place(&named).integer_at("orderId"),
            b.limit("BTCUSDT", "BUY", "1", "20000").integer_at("orderId"),
        ];
        let before = snapshot(&venue, &mut a, &mut b, resting);
        Self { venue, a, b, resting, before }
    }

    /// A signed POST of an order.
    fn post(&self, parameters: &str) -> Maker {
        self.signed("POST", ORDER_PATH, parameters)
    }

    /// A request of the first account.
    fn signed(&self, method: &str, path: &str, parameters: &str) -> Maker {
        let [method, path, parameters] = [method, path, parameters].map(str::to_owned);
        let a = self.venue.a();
        Maker::from(move || a.request(&method, &path, &parameters))
    }

    fn check(mut self, cases: Vec<Case>) {
        assert!(!cases.is_empty());
        for case in cases {
            let found = self.a.http.call(&(case.request.0)()).error();
            assert!(
                case.allowed.contains(&found),
                "{}: answered {found:?}, allowed {:?}",
                case.name,
                case.allowed
            );
            let after = snapshot(&self.venue, &mut self.a, &mut self.b, self.resting);
            assert_eq!(after, self.before, "{} changed something", case.name);
        }
        let accepted = self.a.call("POST", ORDER_PATH, ORDER);
        accepted.ok();
        assert_eq!(accepted.number("X-SVC-ORDER-COUNT-1D"), 2, "bad requests are not counted");
    }
}

fn snapshot(venue: &Venue, a: &mut Trader, b: &mut Trader, resting: [i128; 2]) -> Snapshot {
    let mut http = venue.http();
    let mut depth = |symbol: &str| http.get(&format!("/api/v3/depth?symbol={symbol}")).body;
    let depths = ["BTCUSDT", "ETHUSDT", "ETHBTC"].map(&mut depth).into();
    let order = |trader: &mut Trader, id: i128| {
        let response = trader.call("GET", ORDER_PATH, &format!("symbol=BTCUSDT&orderId={id}"));
        response.ok();
        response.body
    };
    let orders = vec![order(a, resting[0]), order(b, resting[1])];
    let accounts = [a, b].map(|trader| trader.call("GET", "/api/v3/account", "").body).into();
    Snapshot { accounts, depths, orders }
}
