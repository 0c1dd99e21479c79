//! Every error that these endpoints give: the request, and status, code and text as literals.

use touchline_protocol::message::command::{
    DefineAsset, DefineSymbol, SYMBOL_ICEBERG, SYMBOL_QUOTE_QUANTITY,
};
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::{RejectReason, Side};
use touchline_protocol::text::{AssetName, SymbolName};
use touchline_protocol::units::AssetId;

use super::fixture::{ALICES_KEY, NOW_MS, Site, body, open};
use crate::http::Method::{self, Delete, Get, Post, Put};
use crate::http::{Reply, Request};
use crate::link::OrderCommand;
use crate::views::fixture::{BOB, Log, ONE, btcusdt};

/// Alice has order 1 (named c1), Bob order 2; FLEX takes icebergs and quote quantities.
fn site() -> Site {
    let mut log = Log::venue();
    log.rest(crate::views::fixture::ALICE, Side::Buy, 1, 100 * ONE, ONE);
    log.rest(BOB, Side::Buy, 2, 100 * ONE, ONE);
    let flex = DefineSymbol {
        name: SymbolName::new("FLEX").unwrap(),
        flags: SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY,
        ..btcusdt()
    };
    log.done(Command::DefineSymbol(&flex), 2);
    Site::new(log)
}

pub(super) fn assert_error(reply: &Reply, expected: (u16, i32, &str), what: &str) {
    let (status, code, message) = expected;
    let json = serde_json::json!({ "code": code, "msg": message });
    let got: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((reply.status, &got), (status, &json), "{what}");
    assert!(body(reply).starts_with(&format!(r#"{{"code":{code},"msg":""#)), "{what}");
}

pub(super) fn illegal(name: &str, legal: &str) -> String {
    format!("Illegal characters found in parameter '{name}'; legal range is '{legal}'.")
}

fn mandatory(name: &str) -> String {
    format!("Mandatory parameter '{name}' was not sent, was empty/null, or malformed.")
}

const SYMBOL: &str = "^[A-Z0-9-_.]{1,20}$";
const DECIMAL: &str = r"^([0-9]{1,20})(\.[0-9]{1,20})?$";
const LONG: &str = "^[0-9]{1,20}$";
const CLIENT_ID: &str = r"^[\.A-Z\:/a-z0-9_-]{1,36}$";
const SYMBOLS: &str = r#"^\[("[A-Z0-9-_.]{1,20}"(,"[A-Z0-9-_.]{1,20}"){0,}){0,1}\]$"#;

#[test]
fn open_endpoints() {
    let site = site();
    let cases: &[(&str, &str, i32, &str)] = &[
        ("ping", "a=1", -1101, "Too many parameters; expected '0' and received '1'."),
        ("time", "a=1&b=2", -1101, "Too many parameters; expected '0' and received '2'."),
        ("depth", "", -1102, &mandatory("symbol")),
        ("depth", "symbol=", -1102, &mandatory("symbol")),
        ("depth", "symbol=btcusdt", -1100, &illegal("symbol", SYMBOL)),
        ("depth", "symbol=ADAUSDT", -1121, "Invalid symbol."),
        (
            "depth",
            "symbol=BTCUSDT&limit=7",
            -1100,
            &illegal("limit", "5, 10, 20, 50, 100, 500, 1000, 5000"),
        ),
        ("depth", "symbol=BTCUSDT&limit=", -1105, "Parameter 'limit' was empty."),
        (
            "depth",
            "symbol=BTCUSDT&limits=5",
            -1104,
            "Not all sent parameters were read; read '1' parameter(s) but was sent '2'.",
        ),
        (
            "depth",
            "symbol=BTCUSDT&symbol=BTCUSDT",
            -1101,
            "Duplicate values for a parameter detected.",
        ),
        (
            "depth",
            "symbol=BTCUSDT&limit=5&a=1",
            -1101,
            "Too many parameters; expected '2' and received '3'.",
        ),
        ("exchangeInfo", "symbol=ADAUSDT", -1121, "Invalid symbol."),
        ("exchangeInfo", "symbols=[\"BTCUSDT\",\"ADAUSDT\"]", -1121, "Invalid symbol."),
        ("exchangeInfo", "symbols=[\"BTCUSDT\", \"ETHBTC\"]", -1100, &illegal("symbols", SYMBOLS)),
        ("exchangeInfo", "symbols=[\"BTCUSDT\",\"BTCUSDT\"]", -1102, &mandatory("symbols")),
        (
            "exchangeInfo",
            "symbol=BTCUSDT&symbols=[\"BTCUSDT\"]",
            -1128,
            "Combination of optional parameters invalid.",
        ),
        ("exchangeInfo", "symbol=", -1105, "Parameter 'symbol' was empty."),
    ];
    for (path, query, code, message) in cases {
        let reply = site.reply(open(Get, path, query));
        assert_error(&reply, (400, *code, message), &format!("{path}?{query}"));
    }
    // Parameters of a GET stand in its query only.
    let mut request = open(Get, "depth", "");
    request.body = "symbol=BTCUSDT".into();
    assert_error(&site.reply(request), (400, -1102, &mandatory("symbol")), "body of a GET");
}

#[test]
fn paths_and_methods() {
    let site = site();
    let reply = site.reply(open(Get, "unknown", ""));
    assert_eq!((reply.status, reply.body.len()), (404, 0));
    let reply = site.reply(open(Put, "order", ""));
    assert_error(&reply, (405, -1020, "This operation is not supported."), "PUT order");
}

/// The signed endpoints, each with parameters that pass.
const SIGNED: [(Method, &str, &str); 4] = [
    (Get, "account", ""),
    (Get, "order", "symbol=BTCUSDT&orderId=1"),
    (Delete, "order", "symbol=BTCUSDT&orderId=1"),
    (Post, "order", "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1"),
];

#[test]
fn keys_timing_and_signatures() {
    let site = site();
    let format = (401, -2014, "API-key format invalid.");
    let key = (401, -2015, "Invalid API-key, IP, or permissions for action.");
    let outside = (400, -1021, "Timestamp for this request is outside of the recvWindow.");
    let ahead = (400, -1021, "Timestamp for this request was 1000ms ahead of the server's time.");
    let signature = (400, -1022, "Signature for this request is not valid.");
    for (method, path, query) in SIGNED {
        let what = format!("{} {path}", method.token());
        let with_key = |text: &str| {
            let mut request = open(method, path, query);
            request.headers.push("x-svc-apikey", text.as_bytes());
            request
        };
        let timed = |times: &str| {
            let separator = if query.is_empty() { "" } else { "&" };
            site.signed_as_is(ALICES_KEY, method, path, &format!("{query}{separator}{times}"))
        };
        let mut forged = site.signed(method, path, query);
        forged.query = String::from_utf8(forged.query.to_vec())
            .unwrap()
            .replace("timestamp=17", "recvWindow=6000&timestamp=17")
            .into();
        let unsigned = with_key(&site.keys.api_key(ALICES_KEY));
        let mut timed_unsigned = unsigned.clone();
        timed_unsigned.query = format!("{query}&timestamp={NOW_MS}").into();
        let cases: [(Request, (u16, i32, &str)); 14] = [
            (open(method, path, query), format),
            (with_key(""), format),
            (with_key("a key"), format),
            (with_key(&"k".repeat(129)), format),
            (with_key("unknown"), key),
            (with_key(&"k".repeat(64)), key),
            (unsigned, (400, -1102, &mandatory("timestamp"))),
            (timed_unsigned, (400, -1102, &mandatory("signature"))),
            (timed(&format!("timestamp={}", NOW_MS - 5001)), outside),
            (timed(&format!("timestamp={}", NOW_MS + 1000)), ahead),
            (timed("timestamp=soon"), (400, -1100, &illegal("timestamp", LONG))),
            (
                timed(&format!("timestamp={NOW_MS}&recvWindow=60001")),
                (400, -1131, "'recvWindow' must be less than 60000."),
            ),
            (
                timed(&format!("timestamp={NOW_MS}&recvWindow=")),
                (400, -1105, "Parameter 'recvWindow' was empty."),
            ),
            (forged, signature),
        ];
        for (request, expected) in cases {
            let query = String::from_utf8_lossy(&request.query).into_owned();
            assert_error(&site.reply(request), expected, &format!("{what}?{query}"));
        }
        let other = site.signed_by(ALICES_KEY, method, path, &format!("{query}&more=1"));
        let reply = site.reply(other);
        let code =
            serde_json::from_slice::<serde_json::Value>(&reply.body).unwrap()["code"].clone();
        assert!(code == -1104 || code == -1101, "{what}: {code}");
    }
}

#[test]
fn looking_up_and_cancelling_orders() {
    let site = site();
    let neither = "Param 'origClientOrderId' or 'orderId' must be sent, but both were empty/null!";
    let unread = "Not all sent parameters were read; read '4' parameter(s) but was sent '5'.";
    let cases: &[(&str, i32, &str)] = &[
        ("", -1102, &mandatory("symbol")),
        ("symbol=BTCUSDT", -1102, neither),
        ("symbol=btc&orderId=1", -1100, &illegal("symbol", SYMBOL)),
        ("symbol=BTCUSDT&orderId=x", -1100, &illegal("orderId", LONG)),
        ("symbol=BTCUSDT&orderId=-1", -1100, &illegal("orderId", LONG)),
        ("symbol=BTCUSDT&orderId=", -1105, "Parameter 'orderId' was empty."),
        ("symbol=BTCUSDT&orderId=99999999999999999999", -1108, "Parameter 'orderId' overflowed."),
        ("symbol=BTCUSDT&origClientOrderId=", -1119, "Original client order ID was empty."),
        ("symbol=BTCUSDT&origClientOrderId=a b", -1100, &illegal("origClientOrderId", CLIENT_ID)),
        ("symbol=BTCUSDT&orderId=1&id=1", -1104, unread),
        ("symbol=ADAUSDT&orderId=1", -1121, "Invalid symbol."),
    ];
    for (query, code, message) in cases {
        for method in [Get, Delete] {
            let reply = site.reply(site.signed(method, "order", query));
            assert_error(&reply, (400, *code, message), &format!("{} {query}", method.token()));
        }
    }
    let unknown = (400, -2013, "Order does not exist.");
    for (query, expected) in [
        ("symbol=BTCUSDT&orderId=3", unknown),
        ("symbol=BTCUSDT&orderId=0", unknown),
        ("symbol=BTCUSDT&orderId=2", unknown),
        ("symbol=BTCUSDT&origClientOrderId=c2", unknown),
        ("symbol=ETHBTC&orderId=1", unknown),
        (
            "symbol=BTCUSDT&orderId=1&origClientOrderId=c2",
            (400, -2039, "Client order ID is not correct for this order ID."),
        ),
    ] {
        assert_error(&site.reply(site.signed(Get, "order", query)), expected, query);
    }
    let unknown = (400, -2011, "Unknown order sent.");
    let reply = site.reply(site.signed(Delete, "order", "symbol=BTCUSDT&orderId=0"));
    assert_error(&reply, unknown, "order 0");
    for (query, expected) in [
        ("&newClientOrderId=", (400, -1118, "New client order ID was empty.")),
        ("&newClientOrderId=%21", (400, -1100, &*illegal("newClientOrderId", CLIENT_ID))),
    ] {
        let query = format!("symbol=BTCUSDT&orderId=1{query}");
        assert_error(&site.reply(site.signed(Delete, "order", &query)), expected, &query);
    }
    for (reason, expected) in [
        (RejectReason::UnknownOrder, unknown),
        (
            RejectReason::ClientOrderIdMismatch,
            (400, -2039, "Client order ID is not correct for this order ID."),
        ),
        (
            RejectReason::AccountCannotTrade,
            (400, -2011, "This action is disabled on this account."),
        ),
        (
            RejectReason::TooLate,
            (400, -1021, "Timestamp for this request is outside of the recvWindow."),
        ),
    ] {
        site.expect_reject(reason, 0);
        let reply = site.reply(site.signed(Delete, "order", "symbol=BTCUSDT&orderId=1"));
        assert_error(&reply, expected, "rejected cancel");
    }
}

#[test]
fn placements_that_the_engine_never_sees() {
    let site = site();
    let not_required = |name| format!("Parameter '{name}' sent when not required.");
    let precision = "Precision is over the maximum defined for this asset.";
    let limit = "symbol=BTCUSDT&side=BUY&type=LIMIT";
    let market = "symbol=BTCUSDT&side=BUY&type=MARKET";
    let cases: &[(String, i32, &str)] = &[
        (String::new(), -1102, &mandatory("symbol")),
        ("symbol=BTCUSDT".to_owned(), -1102, &mandatory("side")),
        ("symbol=BTCUSDT&side=BUY".to_owned(), -1102, &mandatory("type")),
        ("symbol=BTCUSDT&side=&type=LIMIT".to_owned(), -1102, &mandatory("side")),
        (limit.to_owned(), -1102, &mandatory("timeInForce")),
        (format!("{limit}&timeInForce=GTC&price=1"), -1102, &mandatory("quantity")),
        (format!("{limit}&timeInForce=GTC&quantity=1"), -1102, &mandatory("price")),
        (
            format!("{limit}&timeInForce=GTC&quantity=1&price=1&stopPrice=1"),
            -1106,
            &not_required("stopPrice"),
        ),
        (
            format!("{limit}&timeInForce=GTC&quantity=1&price=1&quoteOrderQty=1"),
            -1106,
            &not_required("quoteOrderQty"),
        ),
        (
            format!("{limit}&timeInForce=IOC&quantity=1&price=1&icebergQty=1"),
            -1014,
            "Unsupported order combination.",
        ),
        (
            format!("{limit}&timeInForce=GTC&quantity=1&price=1&icebergQty=0.5"),
            -1013,
            "Iceberg orders are not supported for this symbol.",
        ),
        (format!("{limit}&timeInForce=GTC&quantity=1&price=.5"), -1100, &illegal("price", DECIMAL)),
        (
            format!("{limit}&timeInForce=GTC&quantity=1e5&price=1"),
            -1100,
            &illegal("quantity", DECIMAL),
        ),
        (
            format!("{limit}&timeInForce=GTC&quantity=-1&price=1"),
            -1100,
            &illegal("quantity", DECIMAL),
        ),
        (
            format!("{limit}&timeInForce=GTC&quantity=&price=1"),
            -1105,
            "Parameter 'quantity' was empty.",
        ),
        (format!("{limit}&timeInForce=GTC&quantity=1.123456789&price=1"), -1111, precision),
        (format!("{limit}&timeInForce=GTC&quantity=1&price=0.000000001"), -1111, precision),
        (
            format!("{limit}&timeInForce=GTC&quantity=99999999999999999999&price=1"),
            -1108,
            "Parameter 'quantity' overflowed.",
        ),
        (format!("{limit}&timeInForce=DAY&quantity=1&price=1"), -1115, "Invalid timeInForce."),
        (
            format!("{limit}&timeInForce=GTC&quantity=1&price=1&newClientOrderId="),
            -1118,
            "New client order ID was empty.",
        ),
        (
            format!(
                "{limit}&timeInForce=GTC&quantity=1&price=1&newClientOrderId={}",
                "x".repeat(37)
            ),
            -1100,
            &illegal("newClientOrderId", CLIENT_ID),
        ),
        (
            format!("{limit}&timeInForce=GTC&quantity=1&price=1&newOrderRespType=ALL"),
            -1136,
            "Invalid newOrderRespType",
        ),
        (
            format!("{limit}&timeInForce=GTC&quantity=1&price=1&clientId=a"),
            -1104,
            "Not all sent parameters were read; read '8' parameter(s) but was sent '9'.",
        ),
        (
            market.to_owned(),
            -1102,
            "Param 'quantity' or 'quoteOrderQty' must be sent, but both were empty/null!",
        ),
        (
            format!("{market}&quantity=1&quoteOrderQty=1"),
            -1128,
            "Combination of optional parameters invalid.",
        ),
        (format!("{market}&quantity=1&timeInForce=GTC"), -1106, &not_required("timeInForce")),
        (format!("{market}&quantity=1&price=1"), -1106, &not_required("price")),
        (format!("{market}&quantity=1&icebergQty=1"), -1106, &not_required("icebergQty")),
        (
            format!("{market}&quoteOrderQty=1"),
            -1013,
            "Quote order qty market orders are not support for this symbol.",
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=STOP_LOSS&quantity=1".to_owned(),
            -1102,
            &mandatory("stopPrice"),
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=TAKE_PROFIT&quantity=1&stopPrice=1&price=1".to_owned(),
            -1106,
            &not_required("price"),
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=STOP_LOSS_LIMIT&quantity=1&stopPrice=1&price=1"
                .to_owned(),
            -1102,
            &mandatory("timeInForce"),
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT_MAKER&quantity=1&price=1&timeInForce=GTC"
                .to_owned(),
            -1106,
            &not_required("timeInForce"),
        ),
        (
            "symbol=FLEX&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=1&icebergQty=0"
                .to_owned(),
            -1013,
            "Invalid quantity.",
        ),
        (
            "symbol=FLEX&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=1&icebergQty=2"
                .to_owned(),
            -1013,
            "IcebergQty exceeds QTY.",
        ),
        ("symbol=ADAUSDT&side=BUY&type=MARKET&quantity=1".to_owned(), -1121, "Invalid symbol."),
        (
            "symbol=btcusdt&side=BUY&type=MARKET&quantity=1".to_owned(),
            -1100,
            &illegal("symbol", SYMBOL),
        ),
        ("symbol=BTCUSDT&side=BUY&type=PEG&quantity=1".to_owned(), -1116, "Invalid orderType."),
        ("symbol=BTCUSDT&side=SHORT&type=MARKET&quantity=1".to_owned(), -1117, "Invalid side."),
        (
            "symbol=BTCUSDT&side=BUY&side=BUY".to_owned(),
            -1101,
            "Duplicate values for a parameter detected.",
        ),
    ];
    for (query, code, message) in cases {
        for path in ["order", "order/test"] {
            let reply = site.reply(site.signed(Post, path, query));
            assert_error(&reply, (400, *code, message), query);
        }
    }
    assert!(site.engine.seen.lock().unwrap().is_empty());
}

/// A LIMIT_MAKER has no timeInForce, and may be an iceberg all the same (facts §14), also one that shows all of it.
#[test]
fn an_iceberg_that_only_rests_gets_to_the_engine() {
    for shown in [1, 2] {
        let site = site();
        site.expect_reject(RejectReason::SymbolNotTrading, 0);
        let query =
            format!("symbol=FLEX&side=BUY&type=LIMIT_MAKER&quantity=2&price=1&icebergQty={shown}");
        site.reply(site.signed(Post, "order", &query));
        let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
        assert_eq!((order.quantity, order.iceberg_quantity), (2 * ONE, shown * ONE));
    }
}

/// Prices and quote amounts are of the quote asset, quantities of the base asset.
#[test]
fn an_amount_has_no_more_digits_than_its_asset() {
    let mut log = Log::venue();
    for (id, name, precision) in [(3, "WHOLE", 0), (4, "CENT", 2)] {
        let name = AssetName::new(name).unwrap();
        log.done(Command::DefineAsset(&DefineAsset { name, precision, ..Default::default() }), id);
    }
    let coarse = DefineSymbol {
        name: SymbolName::new("COARSE").unwrap(),
        base: AssetId(3),
        quote: AssetId(4),
        order_types: 0xfe,
        flags: SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY,
        ..btcusdt()
    };
    log.done(Command::DefineSymbol(&coarse), 2);
    let site = Site::new(log);
    let precision = (400, -1111, "Precision is over the maximum defined for this asset.");
    let stop_limit = "side=BUY&type=STOP_LOSS_LIMIT&timeInForce=GTC";
    for query in [
        format!("{stop_limit}&quantity=2.5&price=1&stopPrice=1"),
        format!("{stop_limit}&quantity=2&price=1.001&stopPrice=1"),
        format!("{stop_limit}&quantity=2&price=1&stopPrice=1.001"),
        format!("{stop_limit}&quantity=2&price=1&stopPrice=1&icebergQty=0.1"),
        "side=BUY&type=MARKET&quoteOrderQty=0.00000001".to_owned(),
    ] {
        let reply = site.reply(site.signed(Post, "order", &format!("symbol=COARSE&{query}")));
        assert_error(&reply, precision, &query);
    }
    assert!(site.engine.seen.lock().unwrap().is_empty());
    // Zeros behind the last digit are none.
    site.expect_reject(RejectReason::SymbolNotTrading, 0);
    let query = "quantity=2.0&price=1.010&stopPrice=1.02000000&icebergQty=1.000";
    site.reply(site.signed(Post, "order", &format!("symbol=COARSE&{stop_limit}&{query}")));
    let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
    assert_eq!((order.quantity, order.iceberg_quantity), (2 * ONE, ONE));
    assert_eq!((order.price, order.stop_price), (101 * ONE / 100, 102 * ONE / 100));
}

/// The table of all rejects is tested where it stands; here, that placements go through it.
#[test]
fn placements_that_the_engine_rejects() {
    let site = site();
    let query = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1";
    for (reason, detail, expected) in [
        (RejectReason::SymbolNotTrading, 0, (400, -1013, "Market is closed.")),
        (RejectReason::LotSize, 0, (400, -1013, "Filter failure: LOT_SIZE")),
        (RejectReason::MaxNumOrders, 0, (400, -2010, "Filter failure: MAX_NUM_ORDERS")),
        (
            RejectReason::InsufficientBalance,
            0,
            (400, -2010, "Account has insufficient balance for requested action."),
        ),
        (RejectReason::DuplicateClientOrderId, 0, (400, -2010, "Duplicate order sent.")),
        (
            RejectReason::OrderTypeNotSupported,
            0,
            (400, -1013, "Market orders are not supported for this symbol."),
        ),
        (
            RejectReason::TooManyOrders,
            0,
            (429, -1015, "Too many new orders; current limit is 50 orders per 10 SECOND."),
        ),
        (
            RejectReason::TooManyOrders,
            1,
            (429, -1015, "Too many new orders; current limit is 160000 orders per DAY."),
        ),
    ] {
        site.expect_reject(reason, detail);
        let reply = site.reply(site.signed(Post, "order", query));
        assert_error(&reply, expected, &format!("{reason:?}"));
        assert!(reply.headers.iter().all(|(name, _)| name != "Retry-After"), "{reason:?}");
    }
}
