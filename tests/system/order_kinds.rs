//! Every kind of order over REST against a running engine: what each is answered, how it is shown while
//! it is open and when it has ended, tests of orders, and cancels of all.

use super::json::Json;
use super::orders::assert_texts;
use super::process::eventually;
use super::trader::Trader;
use super::venue::Venue;

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

/// Lets the last price of BTCUSDT be 20,000.
pub(crate) fn trade_at_20000(a: &mut Trader, b: &mut Trader) {
    b.limit("BTCUSDT", "SELL", "0.01", "20000");
    let taken = a.limit("BTCUSDT", "BUY", "0.01", "20000");
    assert_eq!(taken.text_at("status"), "FILLED");
}

fn order_of(trader: &mut Trader, placed: &Json) -> Json {
    trader.order("BTCUSDT", placed.integer_at("orderId"))
}

#[test]
fn each_kind_is_acknowledged_by_its_own_default_and_shown_with_all_it_was_placed_with() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    trade_at_20000(&mut a, &mut b);
    let kinds = [
        // type, side, parameters, keys of the answer, stopPrice and icebergQty shown, isWorking
        ("LIMIT", "BUY", "timeInForce=GTC&price=19000", 14, ("0", "0"), true),
        ("LIMIT", "BUY", "timeInForce=GTC&price=19000&icebergQty=0.2", 14, ("0", "0.2"), true),
        ("LIMIT_MAKER", "SELL", "price=21000", 5, ("0", "0"), true),
        ("LIMIT_MAKER", "SELL", "price=21000&icebergQty=0.1", 5, ("0", "0.1"), true),
        ("STOP_LOSS", "SELL", "stopPrice=18000", 5, ("18000", "0"), false),
        ("STOP_LOSS", "BUY", "stopPrice=22000", 5, ("22000", "0"), false),
        ("TAKE_PROFIT", "SELL", "stopPrice=22000", 5, ("22000", "0"), false),
        ("TAKE_PROFIT", "BUY", "stopPrice=18000", 5, ("18000", "0"), false),
        (
            "STOP_LOSS_LIMIT",
            "SELL",
            "timeInForce=GTC&stopPrice=18000&price=17900&icebergQty=0.5",
            5,
            ("18000", "0.5"),
            false,
        ),
        (
            "TAKE_PROFIT_LIMIT",
            "BUY",
            "timeInForce=IOC&stopPrice=18000&price=18100",
            5,
            ("18000", "0"),
            false,
        ),
    ];
    let mut shown = Vec::new();
    for (kind, side, parameters, keys, (stop, iceberg), is_working) in kinds {
        let placed =
            a.place(&format!("symbol=BTCUSDT&side={side}&type={kind}&quantity=1&{parameters}"));
        assert_eq!(placed.keys().len(), keys, "{kind}: {placed:?}");
        let order = order_of(&mut a, &placed);
        let decimal = |text: &str| match text.split_once('.') {
            Some((whole, fraction)) => format!("{whole}.{fraction:0<8}"),
            None => format!("{text}.00000000"),
        };
        assert_texts(
            &order,
            &[
                ("type", kind),
                ("side", side),
                ("status", "NEW"),
                ("origQty", "1.00000000"),
                ("stopPrice", &decimal(stop)),
                ("icebergQty", &decimal(iceberg)),
            ],
        );
        assert_eq!(order.at("isWorking"), &Json::Bool(is_working), "{kind}");
        shown.push(order);
    }
    // What is open is the same in both forms of the list, oldest first.
    let open = a.call("GET", "/api/v3/openOrders", "symbol=BTCUSDT").ok();
    assert_eq!(open.items(), shown);
    assert_eq!(a.call("GET", "/api/v3/openOrders", "").ok().items(), shown);
    assert_eq!(b.call("GET", "/api/v3/openOrders", "").ok().items(), []);

    // Each cancel report says of stops and icebergs what they were.
    for order in &shown {
        let id = order.integer_at("orderId");
        let report = a.cancel(&format!("symbol=BTCUSDT&orderId={id}"));
        let is_set = |key: &&str| order.text_at(key) != "0.00000000";
        let extras = ["stopPrice", "icebergQty"].into_iter().filter(is_set);
        let keys: Vec<_> = CANCEL_KEYS.into_iter().chain(extras.clone()).collect();
        assert_eq!(report.keys(), keys);
        for key in extras.chain(["price", "origQty", "type", "side", "timeInForce"]) {
            assert_eq!(report.text_at(key), order.text_at(key), "{key}");
        }
        assert_eq!(report.text_at("status"), "CANCELED");
    }
    assert_eq!(a.call("GET", "/api/v3/openOrders", "").ok().items(), []);
}

#[test]
fn a_market_order_by_quote_quantity_spends_what_it_can_by_whole_lots() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    b.limit("BTCUSDT", "SELL", "0.5", "20000");
    b.limit("BTCUSDT", "SELL", "0.5", "30000");
    let market = "symbol=BTCUSDT&side=BUY&type=MARKET";
    let placed = a.place(&format!("{market}&quoteOrderQty=10000.1"));
    assert_texts(
        &placed,
        &[
            ("status", "FILLED"),
            ("price", "0.00000000"),
            ("origQty", "0.50000000"),
            ("executedQty", "0.50000000"),
            ("cummulativeQuoteQty", "10000.00000000"),
            ("timeInForce", "GTC"),
        ],
    );
    let order = order_of(&mut a, &placed);
    assert_eq!(order.text_at("origQuoteOrderQty"), "10000.10000000");
    // What the book has left is less than was asked for.
    let dry = a.place(&format!("{market}&quoteOrderQty=20000"));
    assert_texts(&dry, &[("status", "EXPIRED"), ("executedQty", "0.50000000")]);
    // Now there is nothing to buy.
    let nothing = a.call("POST", "/api/v3/order", &format!("{market}&quoteOrderQty=20000"));
    let liquidity = "Order book liquidity is less than `LOT_SIZE` filter minimum quantity.";
    assert_eq!(nothing.error(), (400, -2010, liquidity.to_owned()));
    // 0.1 comes to less than the least lot.
    b.limit("BTCUSDT", "SELL", "0.5", "20000");
    let refused = a.call("POST", "/api/v3/order", &format!("{market}&quoteOrderQty=0.1"));
    assert_eq!(refused.error(), (400, -2010, liquidity.to_owned()));
}

#[test]
fn a_stop_that_fires_trades_under_its_own_number() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    trade_at_20000(&mut a, &mut b);
    let stop = "symbol=BTCUSDT&side=SELL&type=STOP_LOSS&quantity=0.2&stopPrice=19000";
    let stop = a.place(stop);
    b.limit("BTCUSDT", "BUY", "0.5", "19000");
    a.limit("BTCUSDT", "SELL", "0.1", "19000");
    // The stop has its turn behind the trade's own transaction.
    assert!(eventually(|| order_of(&mut a, &stop).text_at("status") == "FILLED"));
    let order = order_of(&mut a, &stop);
    assert_texts(
        &order,
        &[
            ("type", "STOP_LOSS"),
            ("executedQty", "0.20000000"),
            ("cummulativeQuoteQty", "3800.00000000"),
            ("stopPrice", "19000.00000000"),
        ],
    );
    assert_eq!(order.at("isWorking"), &Json::Bool(true));
    let refused = a.call(
        "POST",
        "/api/v3/order",
        "symbol=BTCUSDT&side=SELL&type=STOP_LOSS&quantity=0.2&stopPrice=19000",
    );
    assert_eq!(refused.error(), (400, -2010, "Order would trigger immediately.".to_owned()));
}

#[test]
fn a_test_of_an_order_checks_what_needs_no_book_and_touches_nothing() {
    // A day, which does not turn while orders are counted.
    let venue = Venue::up(&["--set", "limits.interval_0_seconds=86400"]);
    let (mut a, mut b) = (venue.a(), venue.b());
    trade_at_20000(&mut a, &mut b);
    let test = "/api/v3/order/test";
    let sell = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC";
    let named = format!("{sell}&quantity=1&price=30000&newClientOrderId=one");
    a.place(&named);
    let state = |a: &mut Trader, b: &mut Trader| {
        let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").body;
        let seen = |trader: &mut Trader, path: &str| trader.call("GET", path, "").body;
        let paths = ["/api/v3/account", "/api/v3/openOrders", "/api/v3/rateLimit/order"];
        let of = |trader: &mut Trader| paths.map(|path| seen(trader, path));
        (depth, of(a), of(b))
    };
    let before = state(&mut a, &mut b);
    // Neither balance nor book nor names are asked: these need the engine's state.
    for fine in [
        format!("{sell}&quantity=1&price=30000"),
        format!("{sell}&quantity=8000&price=30000"),
        named,
        "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1".to_owned(),
        "symbol=BTCUSDT&side=BUY&type=MARKET&quoteOrderQty=100".to_owned(),
        "symbol=BTCUSDT&side=SELL&type=STOP_LOSS&quantity=1&stopPrice=21000".to_owned(),
        "symbol=BTCUSDT&side=BUY&type=LIMIT_MAKER&quantity=1&price=30000".to_owned(),
    ] {
        let reply = a.call("POST", test, &fine);
        assert_eq!((reply.status, &*reply.body), (200, "{}"), "{fine}");
        assert_eq!(reply.header("X-SVC-ORDER-COUNT-1D"), None);
    }
    let filter = |name: &str| (-1013, format!("Filter failure: {name}"));
    let says = |code, text: &str| (code, text.to_owned());
    for (order, (code, message)) in [
        (format!("{sell}&quantity=1&price=30000.001"), filter("PRICE_FILTER")),
        (format!("{sell}&quantity=1&price=2000000"), filter("PRICE_FILTER")),
        (format!("{sell}&quantity=0.000001&price=30000"), filter("LOT_SIZE")),
        (format!("{sell}&quantity=0.00001&price=30000"), filter("MIN_NOTIONAL")),
        (format!("{sell}&quantity=1&price=30000&icebergQty=0.01"), filter("ICEBERG_PARTS")),
        ("symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1001".to_owned(), filter("MARKET_LOT_SIZE")),
        (format!("{sell}&quantity=0&price=30000"), says(-1013, "Invalid quantity.")),
        (format!("{sell}&quantity=1&price=0"), says(-1013, "Invalid price.")),
        (
            format!("{sell}&quantity=1&price=30000&icebergQty=2"),
            says(-1013, "IcebergQty exceeds QTY."),
        ),
        (
            format!("{sell}&quantity=1&price=30000&stopPrice=1"),
            says(-1106, "Parameter 'stopPrice' sent when not required."),
        ),
        (
            "symbol=ETHBTC&side=SELL&type=LIMIT_MAKER&quantity=1&price=1".to_owned(),
            says(-1013, "Limit maker orders are not supported for this symbol."),
        ),
    ] {
        let (status, found_code, found) = a.call("POST", test, &order).error();
        assert_eq!((status, found_code, found), (400, code, message), "{order}");
    }
    assert_eq!(state(&mut a, &mut b), before);
}

#[test]
fn a_cancel_of_all_takes_everything_of_one_account_on_one_symbol() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    trade_at_20000(&mut a, &mut b);
    let limit = a.limit("BTCUSDT", "BUY", "1", "19000").integer_at("orderId");
    let list = a
        .call(
            "POST",
            "/api/v3/order/oco",
            "symbol=BTCUSDT&side=SELL&quantity=1&price=21000&stopPrice=19000",
        )
        .ok();
    let stop = a
        .place("symbol=BTCUSDT&side=SELL&type=STOP_LOSS&quantity=1&stopPrice=18000")
        .integer_at("orderId");
    let other = a.limit("ETHUSDT", "BUY", "1", "1000").integer_at("orderId");
    let theirs = b.limit("BTCUSDT", "BUY", "1", "19000").integer_at("orderId");
    let ended = a.call("DELETE", "/api/v3/openOrders", "symbol=BTCUSDT").ok();
    let [first, second, third] = ended.items() else { panic!("three entries, not {ended:?}") };
    assert_eq!((first.integer_at("orderId"), third.integer_at("orderId")), (limit, stop));
    assert_eq!(third.text_at("stopPrice"), "18000.00000000");
    assert_eq!(second.at("orderListId"), list.at("orderListId"));
    assert_eq!(second.at("orders"), list.at("orders"));
    assert_texts(second, &[("listStatusType", "ALL_DONE"), ("listOrderStatus", "ALL_DONE")]);
    let name = first.text_at("clientOrderId");
    let reports = second.at("orderReports").items();
    for report in reports.iter().chain([third]) {
        assert_texts(report, &[("clientOrderId", name), ("status", "CANCELED")]);
    }
    let open = a.call("GET", "/api/v3/openOrders", "").ok();
    assert_eq!(open.items().len(), 1);
    assert_eq!(open.items()[0].integer_at("orderId"), other);
    assert_eq!(b.order("BTCUSDT", theirs).text_at("status"), "NEW");
    let nothing = a.call("DELETE", "/api/v3/openOrders", "symbol=BTCUSDT").error();
    assert_eq!(nothing, (400, -2011, "Unknown order sent.".to_owned()));
}
