//! Every error code of facts §1.3 that this service can give, each with the request that provokes it.
//! Other tests look at one operation from all sides; this one sees that no code is missing or untold.

use super::http::{Request, Response};
use super::order_kinds::trade_at_20000;
use super::process::{Process, eventually, send_signal, stop};
use super::trader::Trader;
use super::venue::{FRONTS, Part, Venue, unlimited_on};
use crate::patience::Wait;
use rustix::process::Signal;
use std::collections::BTreeSet;

/// Codes of facts §1.3, all of them.
const CODES: [i128; 45] = [
    -1000, -1001, -1002, -1003, -1006, -1007, -1008, -1013, -1014, -1015, -1016, -1020, -1021,
    -1022, -1023, -1100, -1101, -1102, -1104, -1105, -1106, -1108, -1111, -1112, -1115, -1116,
    -1117, -1118, -1119, -1120, -1121, -1125, -1127, -1128, -1130, -1131, -1136, -2010, -2011,
    -2013, -2014, -2015, -2016, -2018, -2039,
];

/// Codes that no request provokes in a sound service, and why.
const NOT_PROVOKED: [(i128, &str); 5] = [
    (-1000, "a fault of the service itself: the front's own tests make a handler panic"),
    (-1002, "a signed operation without a key, which its key check refuses before"),
    (
        -1006,
        "an answer of the engine that is none, or a connection lost in the middle of a command",
    ),
    (-1016, "a service that ends answers what it has taken and closes its door"),
    (-1112, "a MARKET order on an empty book is accepted and expires"),
];

/// What was provoked so far.
#[derive(Default)]
struct Seen {
    codes: BTreeSet<i128>,
}

impl Seen {
    fn note(&mut self, what: &str, reply: &Response, expected: (u16, i128, &str)) {
        let (status, code, message) = reply.error();
        assert_eq!((status, code, &*message), expected, "{what}");
        self.codes.insert(code);
    }
}

/// Sends a request of A and notes its answer.
struct Bench {
    seen: Seen,
    a: Trader,
}

impl Bench {
    /// A signed request.
    fn signed(&mut self, call: (&str, &str), parameters: &str, expected: (u16, i128, &str)) {
        let (method, path) = call;
        let reply = self.a.call(method, &format!("/api/v3/{path}"), parameters);
        self.seen.note(&format!("{method} {path} {parameters}"), &reply, expected);
    }

    fn order(&mut self, parameters: &str, expected: (u16, i128, &str)) {
        self.signed(("POST", "order"), parameters, expected);
    }

    /// An open request.
    fn open(&mut self, target: &str, expected: (u16, i128, &str)) {
        let reply = self.a.http.get(&format!("/api/v3/{target}"));
        self.seen.note(target, &reply, expected);
    }
}

const BUY: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=10000";

fn parameters(bench: &mut Bench) {
    let symbol =
        r"Illegal characters found in parameter 'symbol'; legal range is '^[A-Z0-9-_.]{1,20}$'.";
    bench.open("depth?symbol=btcusdt", (400, -1100, symbol));
    let many = "Too many parameters; expected '2' and received '3'.";
    bench.open("depth?symbol=BTCUSDT&limit=5&more=1", (400, -1101, many));
    let twice = "Duplicate values for a parameter detected.";
    bench.open("depth?symbol=BTCUSDT&symbol=BTCUSDT", (400, -1101, twice));
    let missing = "Mandatory parameter 'symbol' was not sent, was empty/null, or malformed.";
    bench.open("depth", (400, -1102, missing));
    let neither = "Param 'origClientOrderId' or 'orderId' must be sent, but both were empty/null!";
    bench.signed(("GET", "order"), "symbol=BTCUSDT", (400, -1102, neither));
    let unread = "Not all sent parameters were read; read '1' parameter(s) but was sent '2'.";
    bench.open("depth?symbol=BTCUSDT&more=1", (400, -1104, unread));
    bench.open("depth?symbol=BTCUSDT&limit=", (400, -1105, "Parameter 'limit' was empty."));
    let market = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1";
    let not_required = "Parameter 'timeInForce' sent when not required.";
    bench.order(&format!("{market}&timeInForce=GTC"), (400, -1106, not_required));
    let overflow = "Parameter 'orderId' overflowed.";
    let wide = "symbol=BTCUSDT&orderId=99999999999999999999";
    bench.signed(("GET", "order"), wide, (400, -1108, overflow));
    let precision = "Precision is over the maximum defined for this asset.";
    bench.order(&BUY.replace("quantity=1", "quantity=1.123456789"), (400, -1111, precision));
    bench.order(&BUY.replace("GTC", "DAY"), (400, -1115, "Invalid timeInForce."));
    bench.order(&BUY.replace("LIMIT", "WISH"), (400, -1116, "Invalid orderType."));
    bench.order(&BUY.replace("BUY", "HOLD"), (400, -1117, "Invalid side."));
    bench
        .order(&format!("{BUY}&newClientOrderId="), (400, -1118, "New client order ID was empty."));
    let empty = "Original client order ID was empty.";
    bench.signed(("GET", "order"), "symbol=BTCUSDT&origClientOrderId=", (400, -1119, empty));
    bench.open("klines?symbol=BTCUSDT&interval=7m", (400, -1120, "Invalid interval."));
    bench.open("depth?symbol=ADAUSDT", (400, -1121, "Invalid symbol."));
    let combination = "Combination of optional parameters invalid.";
    bench.order(&format!("{market}&quoteOrderQty=1"), (400, -1128, combination));
    let without = "Combination of optional parameters invalid. Recommendation: 'stopLimitTimeInForce' should also be sent.";
    let oco = "symbol=BTCUSDT&side=SELL&quantity=1&price=30000&stopPrice=10000&stopLimitPrice=9000";
    bench.signed(("POST", "order/oco"), oco, (400, -1128, without));
    let invalid = "Data sent for parameter 'limit' is not valid.";
    bench.open("trades?symbol=BTCUSDT&limit=0", (400, -1130, invalid));
    bench.order(&format!("{BUY}&newOrderRespType=ALL"), (400, -1136, "Invalid newOrderRespType"));
    let times = "symbol=BTCUSDT&startTime=2&endTime=1";
    let order = "Start time is greater than end time.";
    bench.open(&format!("aggTrades?{times}"), (400, -1023, order));
    let span = "symbol=BTCUSDT&startTime=1600000000000&endTime=1600003600000";
    let hours = "More than 1 hours between startTime and endTime.";
    bench.open(&format!("aggTrades?{span}"), (400, -1127, hours));
}

fn keys_and_times(bench: &mut Bench) {
    let account = |text: String| Request::new("GET", format!("/api/v3/account?{text}"));
    let key = bench.a.key.clone();
    let with_key = |text: String| account(text).header("X-SVC-APIKEY", &key.api);
    let timed = |offset_ms: i128| {
        let time = super::http::now_ms() + offset_ms;
        with_key(key.signed_as_is(&format!("timestamp={time}")))
    };
    let stream = Request::new("PUT", "/api/v3/userDataStream?listenKey=x");
    for (request, expected) in [
        (account(String::new()), (401, -2014, "API-key format invalid.")),
        (
            account(String::new()).header("X-SVC-APIKEY", "unknown"),
            (401, -2015, "Invalid API-key, IP, or permissions for action."),
        ),
        (timed(-60_001), (400, -1021, "Timestamp for this request is outside of the recvWindow.")),
        (
            timed(60_000),
            (400, -1021, "Timestamp for this request was 1000ms ahead of the server's time."),
        ),
        (
            with_key(key.signed("recvWindow=60001")),
            (400, -1131, "'recvWindow' must be less than 60000."),
        ),
        (
            with_key(key.signed("recvWindow=6000").replace("=6000", "=7000")),
            (400, -1022, "Signature for this request is not valid."),
        ),
        (stream.header("X-SVC-APIKEY", &key.api), (400, -1125, "This listenKey does not exist.")),
        (Request::new("PUT", "/api/v3/order"), (405, -1020, "This operation is not supported.")),
    ] {
        let reply = bench.a.http.call(&request);
        bench.seen.note(&format!("{request:?}"), &reply, expected);
    }
}

fn orders(bench: &mut Bench) {
    let filter = "Filter failure: PRICE_FILTER";
    bench.order(&BUY.replace("price=10000", "price=10000.001"), (400, -1013, filter));
    let stop = "symbol=ETHBTC&side=SELL&type=STOP_LOSS&quantity=1&stopPrice=1";
    let unsupported = "Stop loss orders are not supported for this symbol.";
    bench.order(stop, (400, -1013, unsupported));
    let combination = "Unsupported order combination.";
    let iceberg = BUY.replace("GTC", "IOC") + "&icebergQty=0.5";
    bench.order(&iceberg, (400, -1014, combination));
    let insufficient = "Account has insufficient balance for requested action.";
    bench.order(&BUY.replace("quantity=1", "quantity=8000"), (400, -2010, insufficient));
    let takes = "Order would immediately match and take.";
    let maker = "symbol=BTCUSDT&side=BUY&type=LIMIT_MAKER&quantity=1&price=30000";
    bench.order(maker, (400, -2010, takes));
    let fires = "symbol=BTCUSDT&side=SELL&type=STOP_LOSS&quantity=1&stopPrice=20000";
    bench.order(fires, (400, -2010, "Order would trigger immediately."));
    let prices = "The relationship of the prices for the orders is not correct.";
    let list = "symbol=BTCUSDT&side=SELL&quantity=1&price=19000&stopPrice=10000";
    bench.signed(("POST", "order/oco"), list, (400, -2010, prices));
    bench.a.place(&format!("{BUY}&newClientOrderId=one"));
    bench.order(&format!("{BUY}&newClientOrderId=one"), (400, -2010, "Duplicate order sent."));
    let unknown = (400, -2011, "Unknown order sent.");
    bench.signed(("DELETE", "order"), "symbol=BTCUSDT&orderId=999", unknown);
    let unknown_list = (400, -2011, "Unknown order list sent.");
    bench.signed(("DELETE", "orderList"), "symbol=BTCUSDT&orderListId=999", unknown_list);
    let none = (400, -2013, "Order does not exist.");
    bench.signed(("GET", "order"), "symbol=BTCUSDT&orderId=999", none);
    let no_list = (400, -2018, "Order list does not exist.");
    bench.signed(("GET", "orderList"), "orderListId=999", no_list);
    let mismatch = (400, -2039, "Client order ID is not correct for this order ID.");
    let other = "symbol=BTCUSDT&orderId=2&origClientOrderId=other";
    bench.signed(("GET", "order"), other, mismatch);
    let window = "No trading window could be found for the symbol. Try ticker/24hrs instead.";
    bench.open("avgPrice?symbol=ETHUSDT", (400, -2016, window));
}

/// Codes of a venue that is full, of one whose engine is away or silent, of clients that ask too much.
fn limits(seen: &mut Seen, front: &str) {
    let mut venue = Venue::separate(&[
        "--set",
        front,
        "--set",
        "limits.open_orders=2",
        "--set",
        "limits.orders_per_interval_0=0",
        "--set",
        "limits.orders_per_interval_1=3",
        "--set",
        "adapter.deadline_ms=5000",
        "--set",
        "adapter.refusals_before_ban=2",
    ]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let place = |trader: &mut Trader| trader.call("POST", "/api/v3/order", BUY);
    place(&mut a).ok();
    place(&mut a).ok();
    let overloaded =
        "Server is currently overloaded with other requests. Please try again in a few minutes.";
    seen.note("a full venue", &place(&mut b), (503, -1008, overloaded));
    a.call("DELETE", "/api/v3/openOrders", "symbol=BTCUSDT").ok();
    place(&mut a).ok();
    let many = "Too many new orders; current limit is 3 orders per DAY.";
    seen.note("a fourth order", &place(&mut a), (429, -1015, many));

    let silent = venue.part(Part::Engine).pid();
    stop(silent);
    let timeout = "Timeout waiting for response from backend server. Send status unknown; execution status unknown.";
    seen.note("a silent engine", &place(&mut b), (504, -1007, timeout));
    send_signal(silent, Signal::CONT);
    venue.wait_until_engine_answers();
    venue.kill9(Part::Engine);
    let away = "Internal error; unable to process your request. Please try again.";
    let is_away = || place(&mut venue.b()).error().1 == -1001;
    assert!(eventually(is_away), "the link notices that its engine is gone");
    seen.note("no engine", &place(&mut b), (500, -1001, away));

    let weight = "Too much request weight used; current limit is 1200 request weight per 1 MINUTE. Please use the websocket for live updates to avoid polling the API.";
    let mut http = venue.http();
    let mut dear = || http.get("/api/v3/ticker/24hr");
    let wait = Wait::begin();
    let refused = loop {
        wait.go_on("no weight is too much");
        let reply = dear();
        if reply.status != 200 {
            break reply;
        }
    };
    seen.note("too much weight", &refused, (429, -1003, weight));
    assert!(refused.header("Retry-After").is_some());
    // The minute may end in between: then it takes another round.
    let mut banned = dear();
    let wait = Wait::begin();
    while banned.status != 418 {
        wait.go_on("it is never banned");
        banned = dear();
    }
    let (_, code, message) = banned.error();
    assert_eq!(code, -1003);
    assert!(
        message.starts_with("Way too much request weight used; IP banned until 1"),
        "{message}"
    );
}

#[test]
fn every_code_that_the_service_can_give_is_provoked() {
    FRONTS.into_iter().for_each(every_code_is_provoked);
}

fn every_code_is_provoked(front: &str) {
    let venue = Venue::up(&unlimited_on(front));
    let (mut a, mut b) = (venue.a(), venue.b());
    trade_at_20000(&mut a, &mut b);
    b.limit("BTCUSDT", "SELL", "1", "25000");
    let mut bench = Bench { seen: Seen::default(), a };
    parameters(&mut bench);
    keys_and_times(&mut bench);
    orders(&mut bench);
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let stopped =
        Process::start(&["admin", "--data", data, "can-trade", "A", "false"]).wait_for_end();
    assert!(stopped.success());
    let disabled = "This action is disabled on this account.";
    bench.order(BUY, (400, -2010, disabled));
    bench.signed(("DELETE", "order"), "symbol=BTCUSDT&orderId=1", (400, -2011, disabled));
    let mut seen = bench.seen;
    limits(&mut seen, front);

    let mut expected: BTreeSet<_> = CODES.into_iter().collect();
    for (code, _why) in NOT_PROVOKED {
        assert!(expected.remove(&code), "{code} is none of the list");
    }
    assert_eq!(seen.codes, expected);
}
