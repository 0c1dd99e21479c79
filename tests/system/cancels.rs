//! Cancels, client order ids, the places where clients put parameters, and the limit on open orders.

use super::admin::admin;
use super::binary::{KEY_A, connect, limit, place, whole};
use super::http::Request;
use super::orders::{assert_texts, is_generated_id};
use super::trader::{Trader, levels};
use super::units::WHOLE;
use super::venue::{UNLIMITED, Venue};
use std::collections::BTreeSet;
use touchline_protocol::message::enums::Side;

const CANCEL_KEYS: [&str; 13] = [
    "symbol",
    "origClientOrderId",
    "orderId",
    "orderListId",
    "clientOrderId",
    "price",
    "origQty",
    "executedQty",
    "cummulativeQuoteQty",
    "status",
    "timeInForce",
    "type",
    "side",
];

#[test]
fn cancels_by_either_id_report_the_order_and_free_its_lock() {
    let venue = Venue::up(&[]);
    let mut a = venue.a();
    let before = a.balances();
    let id = a.limit("BTCUSDT", "BUY", "0.5", "10000").integer_at("orderId");
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();

    let report = a.cancel(&format!("symbol=BTCUSDT&orderId={id}&newClientOrderId=the-cancel"));
    assert_eq!(report.keys(), CANCEL_KEYS);
    assert_texts(
        &report,
        &[
            ("symbol", "BTCUSDT"),
            ("clientOrderId", "the-cancel"),
            ("price", "10000.00000000"),
            ("origQty", "0.50000000"),
            ("executedQty", "0.00000000"),
            ("cummulativeQuoteQty", "0.00000000"),
            ("status", "CANCELED"),
            ("timeInForce", "GTC"),
            ("type", "LIMIT"),
            ("side", "BUY"),
        ],
    );
    assert!(is_generated_id(report.text_at("origClientOrderId")));
    assert_eq!((report.integer_at("orderId"), report.integer_at("orderListId")), (id, -1));
    assert_eq!(a.balances(), before);
    let after = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert!(levels(&after, "bids").is_empty());
    assert!(after.integer_at("lastUpdateId") > depth.integer_at("lastUpdateId"));
    let order = a.order("BTCUSDT", id);
    assert_texts(
        &order,
        &[("status", "CANCELED"), ("clientOrderId", report.text_at("origClientOrderId"))],
    );

    let named = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000\
                 &newClientOrderId=my.order:1/A_b-c";
    a.place(named);
    let report = a.cancel("symbol=BTCUSDT&origClientOrderId=my.order:1/A_b-c");
    assert_eq!(report.text_at("origClientOrderId"), "my.order:1/A_b-c");
    assert!(is_generated_id(report.text_at("clientOrderId")), "{report:?}");
    assert_eq!(a.balances(), before);
}

#[test]
fn a_client_order_id_is_taken_while_its_order_is_open() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let order = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000\
                 &newClientOrderId=mine";
    let first = a.place(order).integer_at("orderId");
    let duplicate = a.call("POST", "/api/v3/order", order);
    assert_eq!(duplicate.error(), (400, -2010, "Duplicate order sent.".to_owned()));
    b.place(order);

    a.cancel(&format!("symbol=BTCUSDT&orderId={first}"));
    let second = a.place(order).integer_at("orderId");
    assert_eq!(second, first + 2, "a rejected order takes no number");
    let found = a.call("GET", "/api/v3/order", "symbol=BTCUSDT&origClientOrderId=mine").ok();
    assert_eq!(found.integer_at("orderId"), second, "the open order is the one that is meant");
}

#[test]
fn parameters_may_stand_where_known_clients_put_them() {
    let venue = Venue::up(&[]);
    let mut a = venue.a();
    let key = venue.key_a();
    let send = |a: &mut Trader, request: Request| {
        a.http.call(&request.header("X-SVC-APIKEY", &key.api)).ok()
    };
    let order = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";
    let path = "/api/v3/order";
    let timed = |text: &str| format!("{text}&timestamp={}", super::http::now_ms());

    let in_query = Request::new("POST", format!("{path}?{}", key.signed(order)))
        .header("Content-Type", "application/json;charset=utf-8");
    let first = send(&mut a, in_query);
    let in_body = Request::new("POST", path).form(key.signed(order));
    send(&mut a, in_body);
    let untyped_body = Request::new("POST", path).body(key.signed(order));
    send(&mut a, untyped_body);

    let (query, body) = ("symbol=BTCUSDT&side=SELL&type=LIMIT&quantity=2", timed(order));
    let signature = key.sign(&format!("{query}{body}"));
    let split = Request::new("POST", format!("{path}?{query}"))
        .form(format!("{body}&signature={signature}"));
    assert_eq!(send(&mut a, split).text_at("origQty"), "2.00000000", "the query's value is used");

    let text = timed(order);
    let upper = key.sign(&text).to_uppercase();
    send(&mut a, Request::new("POST", path).form(format!("{text}&signature={upper}")));
    let signature = key.sign(&text);
    let in_front = format!("{path}?signature={signature}&{text}");
    send(&mut a, Request::new("POST", in_front));
    let encoded = key.signed(&order.replace("BTCUSDT", "BTC%55SDT"));
    send(&mut a, Request::new("POST", path).form(encoded));

    let cancel = format!("symbol=BTCUSDT&orderId={}", first.integer_at("orderId"));
    let cancel_in_body = Request::new("DELETE", path).form(key.signed(&cancel));
    assert_eq!(send(&mut a, cancel_in_body).text_at("status"), "CANCELED");
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert_eq!(levels(&depth, "asks"), [(50_000 * WHOLE, 7 * WHOLE)]);
    let account = Request::new(
        "GET",
        format!("/api/v3/account?{}", key.signed_as_is(&timed("&recvWindow=5000"))),
    )
    .header("Content-Type", "application/json");
    send(&mut a, account);
}

#[test]
fn open_orders_per_account_and_symbol_are_limited() {
    let venue = Venue::up(&UNLIMITED);
    let (mut a, mut b) = (venue.a(), venue.b());
    for _ in 0..200 {
        a.limit("BTCUSDT", "BUY", "0.01", "1000");
    }
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=1000";
    let refused = a.call("POST", "/api/v3/order", order);
    assert_eq!(refused.error(), (400, -2010, "Filter failure: MAX_NUM_ORDERS".to_owned()));
    a.limit("ETHUSDT", "BUY", "0.01", "1000");
    b.limit("BTCUSDT", "SELL", "0.01", "1000");
    a.limit("BTCUSDT", "BUY", "0.01", "1000");
    assert_eq!(a.call("POST", "/api/v3/order", order).status, 400);
}

/// The engine ends thousands of orders before the adapter has woken: it reports all of them.
#[test]
fn thousands_of_orders_are_cancelled_at_once_and_each_is_reported() {
    let venue = Venue::up(&UNLIMITED);
    admin(&venue, &["symbol", "change", "BTCUSDT", "max_orders=0"]);
    let mut maker = connect(&venue, "maker", KEY_A, &venue.key_a());
    let orders: BTreeSet<i128> = (0..4_000)
        .map(|_| i128::from(place(&mut maker, limit(Side::Buy, whole(10), whole(1))).0.order_id.0))
        .collect();
    let reports = venue.a().call("DELETE", "/api/v3/openOrders", "symbol=BTCUSDT").ok();
    let ended = |report: &super::json::Json| {
        assert_eq!(report.text_at("status"), "CANCELED");
        report.integer_at("orderId")
    };
    assert_eq!(reports.items().iter().map(ended).collect::<BTreeSet<_>>(), orders);
}
