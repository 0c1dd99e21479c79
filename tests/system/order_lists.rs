//! Order lists (OCO), order counts and user data stream handles over REST against a running engine.

use super::json::Json;
use super::order_kinds::trade_at_20000;
use super::orders::{assert_texts, is_generated_id};
use super::process::eventually;
use super::trader::Trader;
use super::venue::{Part, Venue};

const LIST_KEYS: [&str; 8] = [
    "orderListId",
    "contingencyType",
    "listStatusType",
    "listOrderStatus",
    "listClientOrderId",
    "transactionTime",
    "symbol",
    "orders",
];

const SELL: &str = "symbol=BTCUSDT&side=SELL&quantity=1&price=21000&stopPrice=19000";

fn oco(trader: &mut Trader, parameters: &str) -> Json {
    trader.call("POST", "/api/v3/order/oco", parameters).ok()
}

fn statuses(trader: &mut Trader, list: &Json) -> Vec<String> {
    let orders = list.at("orders").items();
    let status = |order: &Json| {
        let order = trader.order("BTCUSDT", order.integer_at("orderId"));
        order.text_at("status").to_owned()
    };
    orders.iter().map(status).collect()
}

#[test]
fn a_list_lives_until_either_order_ends() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    trade_at_20000(&mut a, &mut b);
    let before = a.balances();
    let list = oco(&mut a, SELL);
    let keys: Vec<_> = LIST_KEYS.into_iter().chain(["orderReports"]).collect();
    assert_eq!(list.keys(), keys);
    assert_texts(
        &list,
        &[
            ("contingencyType", "OCO"),
            ("listStatusType", "EXEC_STARTED"),
            ("listOrderStatus", "EXECUTING"),
            ("symbol", "BTCUSDT"),
        ],
    );
    assert!(is_generated_id(list.text_at("listClientOrderId")));
    let [stop, limit] = list.at("orderReports").items() else { panic!("two reports") };
    assert_texts(stop, &[("type", "STOP_LOSS"), ("stopPrice", "19000.00000000")]);
    assert_texts(limit, &[("type", "LIMIT_MAKER"), ("price", "21000.00000000")]);
    assert_eq!(limit.integer_at("orderId"), stop.integer_at("orderId") + 1);

    // Shown by number, by name, among the open ones; its orders among the open orders.
    let id = list.integer_at("orderListId");
    let name = list.text_at("listClientOrderId");
    let path = "/api/v3/orderList";
    let shown = a.call("GET", path, &format!("orderListId={id}")).ok();
    assert_eq!(shown.keys(), LIST_KEYS);
    for key in LIST_KEYS {
        assert_eq!(shown.at(key), list.at(key), "{key}");
    }
    assert_eq!(a.call("GET", path, &format!("origClientOrderId={name}")).ok(), shown);
    assert_eq!(a.call("GET", "/api/v3/openOrderList", "").ok().items(), [shown]);
    assert_eq!(b.call("GET", "/api/v3/openOrderList", "").ok().items(), []);
    let unknown = b.call("GET", path, &format!("orderListId={id}")).error();
    assert_eq!(unknown, (400, -2018, "Order list does not exist.".to_owned()));
    let open = a.call("GET", "/api/v3/openOrders", "symbol=BTCUSDT").ok();
    assert!(open.items().iter().all(|order| order.integer_at("orderListId") == id));
    assert_eq!(open.items().len(), 2);

    // One leg is cancelled, so both are; the report is about the one that was named.
    let id_of_limit = limit.integer_at("orderId");
    let report = a.cancel(&format!("symbol=BTCUSDT&orderId={id_of_limit}"));
    assert_eq!(report.integer_at("orderId"), id_of_limit);
    assert_texts(&report, &[("type", "LIMIT_MAKER"), ("status", "CANCELED")]);
    assert_eq!(statuses(&mut a, &list), ["CANCELED", "CANCELED"]);
    let shown = a.call("GET", path, &format!("orderListId={id}")).ok();
    assert_texts(&shown, &[("listStatusType", "ALL_DONE"), ("listOrderStatus", "ALL_DONE")]);
    assert_eq!(shown.at("transactionTime"), list.at("transactionTime"), "of its placement");
    assert_eq!(a.call("GET", "/api/v3/openOrderList", "").ok().items(), []);
    assert_eq!(a.balances(), before);

    // The list is cancelled by its name.
    oco(
        &mut a,
        &format!("{SELL}&listClientOrderId=mine&stopLimitPrice=18900&stopLimitTimeInForce=GTC"),
    );
    let parameters = "symbol=BTCUSDT&listClientOrderId=mine&newClientOrderId=end";
    let ended = a.call("DELETE", path, parameters).ok();
    assert_eq!(ended.keys(), keys);
    assert_texts(&ended, &[("listClientOrderId", "mine"), ("listStatusType", "ALL_DONE")]);
    for report in ended.at("orderReports").items() {
        assert_texts(report, &[("clientOrderId", "end"), ("status", "CANCELED")]);
    }
    let unknown = a.call("DELETE", path, parameters).error();
    assert_eq!(unknown, (400, -2011, "Unknown order list sent.".to_owned()));
}

#[test]
fn what_happens_to_one_order_of_a_list_ends_the_other() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    trade_at_20000(&mut a, &mut b);
    // The limit leg is touched.
    let list = oco(&mut a, SELL);
    b.limit("BTCUSDT", "BUY", "0.4", "21000");
    assert_eq!(statuses(&mut a, &list), ["EXPIRED", "PARTIALLY_FILLED"]);
    let id = list.integer_at("orderListId");
    let done = a.call("GET", "/api/v3/orderList", &format!("orderListId={id}")).ok();
    assert_texts(&done, &[("listOrderStatus", "ALL_DONE")]);
    a.call("DELETE", "/api/v3/openOrders", "symbol=BTCUSDT").ok();
    // The stop leg fires; the last price is 21,000 now.
    let list = oco(
        &mut a,
        &SELL.replace("price=21000", "price=22000").replace("stopPrice=19000", "stopPrice=18000"),
    );
    b.limit("BTCUSDT", "BUY", "2", "18000");
    a.limit("BTCUSDT", "SELL", "0.1", "18000");
    assert!(eventually(|| statuses(&mut a, &list) == ["FILLED", "EXPIRED"]));
}

#[test]
fn lists_that_are_refused() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let path = "/api/v3/order/oco";
    let prices = "The relationship of the prices for the orders is not correct.";
    assert_eq!(a.call("POST", path, SELL).error(), (400, -2010, prices.to_owned()), "no price yet");
    trade_at_20000(&mut a, &mut b);
    let refused = |a: &mut Trader, parameters: &str, expected: (i128, &str)| {
        let (code, message) = expected;
        let error = a.call("POST", path, parameters).error();
        assert_eq!(error, (400, code, message.to_owned()), "{parameters}");
    };
    refused(&mut a, &SELL.replace("side=SELL", "side=BUY"), (-2010, prices));
    refused(
        &mut a,
        &SELL.replace("price=21000", "price=19500").replace("stopPrice=19000", "stopPrice=19400"),
        (-2010, prices),
    );
    let insufficient = "Account has insufficient balance for requested action.";
    refused(&mut a, &SELL.replace("quantity=1&", "quantity=5000&"), (-2010, insufficient));
    refused(
        &mut a,
        &SELL.replace("quantity=1&", "quantity=0.00001&"),
        (-1013, "Filter failure: MIN_NOTIONAL"),
    );
    let same = format!("{SELL}&limitClientOrderId=x&stopClientOrderId=x");
    refused(&mut a, &same, (-2010, "Duplicate order sent."));
    oco(&mut a, &format!("{SELL}&listClientOrderId=mine"));
    refused(&mut a, &format!("{SELL}&listClientOrderId=mine"), (-2010, "Duplicate order sent."));
}

fn order_counts(trader: &mut Trader) -> Vec<i128> {
    let limits = trader.call("GET", "/api/v3/rateLimit/order", "").ok();
    let keys = ["rateLimitType", "interval", "intervalNum", "limit", "count"];
    let row = |limit: &Json| {
        assert_eq!(limit.keys(), keys);
        assert_eq!(limit.text_at("rateLimitType"), "ORDERS");
        limit.integer_at("count")
    };
    limits.items().iter().map(row).collect()
}

#[test]
fn order_counts_are_the_same_after_a_restart_of_everything() {
    let mut venue = Venue::separate(&[
        // So long that the test ends within one.
        "--set",
        "limits.interval_0_seconds=86400",
        "--set",
        "limits.orders_per_interval_0=7",
    ]);
    let (mut a, mut b) = (venue.a(), venue.b());
    assert_eq!(order_counts(&mut a), [0, 0]);
    trade_at_20000(&mut a, &mut b);
    assert_eq!(order_counts(&mut a), [1, 1]);
    let reply = a.call("POST", "/api/v3/order/oco", SELL);
    assert_eq!(reply.number("X-SVC-ORDER-COUNT-1D"), 3, "a list counts two");
    a.call("DELETE", "/api/v3/openOrders", "symbol=BTCUSDT").ok();
    // What is refused counts nothing.
    a.call(
        "POST",
        "/api/v3/order",
        "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=9000&price=20000",
    )
    .error();
    assert_eq!(order_counts(&mut a), [3, 3]);
    assert_eq!(order_counts(&mut b), [1, 1]);
    for part in [Part::Adapter, Part::Engine] {
        venue.kill9(part);
    }
    venue.start_engine();
    venue.start_adapter();
    let mut a = venue.a();
    assert_eq!(order_counts(&mut a), [3, 3]);
    for _ in 0..4 {
        a.limit("BTCUSDT", "BUY", "0.01", "10000");
    }
    let refused = a.call(
        "POST",
        "/api/v3/order",
        "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=10000",
    );
    let message = "Too many new orders; current limit is 7 orders per DAY.";
    assert_eq!(refused.error(), (429, -1015, message.to_owned()));
    assert_eq!(refused.header("Retry-After"), None);
    assert_eq!(order_counts(&mut a), [7, 7]);
}

#[test]
fn a_user_data_stream_has_a_handle() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let path = "/api/v3/userDataStream";
    let call = |trader: &mut Trader, method: &str, target: &str, body: &str| {
        let request = super::http::Request::new(method, target)
            .header("X-SVC-APIKEY", &trader.key.api.clone())
            .body(body);
        trader.http.call(&request)
    };
    let opened = call(&mut a, "POST", path, "").ok();
    assert_eq!(opened.keys(), ["listenKey"]);
    let key = opened.text_at("listenKey");
    assert!(key.len() == 60 && key.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(call(&mut a, "POST", path, "").ok(), opened, "the same while it lives");
    // In the query or, as clients do it, in a body without a type.
    assert_eq!(call(&mut a, "PUT", &format!("{path}?listenKey={key}"), "").body, "{}");
    assert_eq!(call(&mut a, "PUT", path, &format!("listenKey={key}")).body, "{}");
    let unknown = (400, -1125, "This listenKey does not exist.".to_owned());
    assert_eq!(call(&mut b, "PUT", path, &format!("listenKey={key}")).error(), unknown);
    let mandatory = "Mandatory parameter 'listenKey' was not sent, was empty/null, or malformed.";
    for method in ["PUT", "DELETE"] {
        let error = call(&mut a, method, path, "").error();
        assert_eq!(error, (400, -1102, mandatory.to_owned()));
    }
    assert_eq!(call(&mut a, "DELETE", path, &format!("listenKey={key}")).body, "{}");
    assert_eq!(call(&mut a, "DELETE", path, &format!("listenKey={key}")).error(), unknown);
    assert_ne!(call(&mut a, "POST", path, "").ok(), opened);
    let no_key = super::http::Request::new("POST", path);
    let format = "API-key format invalid.".to_owned();
    assert_eq!(venue.http().call(&no_key).error(), (401, -2014, format));
}
