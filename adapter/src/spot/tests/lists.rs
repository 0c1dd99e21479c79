//! Order lists and what else is about more than one order: the command that the engine sees, and the answer
//! as literal JSON. Their cancels are in `cancels`.

mod cancels;

use touchline_protocol::message::command::{
    DefineSymbol, ORDER_VALIDATE_ONLY, PlaceOrderList, SYMBOL_ICEBERG, SYMBOL_OCO,
};
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{
    ListOrderStatus, ListStatusType, OrderType, RejectReason, Side,
};
use touchline_protocol::message::event::{OrderAccepted, OrderListChanged};
use touchline_protocol::text::{ClientOrderId, SymbolName};
use touchline_protocol::units::{BookUpdateId, OrderId, OrderListId, SymbolId};

use super::errors::assert_error;
use super::fixture::{ALICES_KEY, BOBS_KEY, Site, body, decided, header};
use crate::http::Method::{Delete, Get, Post};
use crate::link::{OrderCommand, Terminal};
use crate::views::fixture::{ALICE, Log, ONE, btcusdt};

const OCO: SymbolId = SymbolId(2);

fn id(name: &str) -> ClientOrderId {
    ClientOrderId::new(name).unwrap()
}

/// A venue with a symbol that takes everything.
fn log() -> Log {
    let mut log = Log::venue();
    let oco = DefineSymbol {
        name: SymbolName::new("OCO").unwrap(),
        order_types: 0xfe,
        flags: SYMBOL_ICEBERG | SYMBOL_OCO,
        ..btcusdt()
    };
    log.done(Command::DefineSymbol(&oco), 2);
    log
}

fn list_changed(status: ListOrderStatus) -> OrderListChanged {
    let list_status_type = match status {
        ListOrderStatus::Executing => ListStatusType::ExecStarted,
        _ => ListStatusType::AllDone,
    };
    OrderListChanged {
        order_list_id: OrderListId(0),
        account: ALICE,
        symbol: OCO,
        limit_order_id: OrderId(8),
        stop_order_id: OrderId(7),
        list_status_type: list_status_type.to_wire(),
        list_order_status: status.to_wire(),
        list_client_order_id: id("both"),
        order_count_0: 2,
        order_count_1: 5,
        book_update_id: BookUpdateId(1),
        ..Default::default()
    }
}

/// Folds a list of Alice's: she sells 2 at 110, or when 90 is reached at 89, of which 1 shows.
fn place_list(log: &mut Log) {
    let placed = PlaceOrderList {
        symbol: OCO,
        stop_price: 90 * ONE,
        stop_iceberg_quantity: ONE,
        list_client_order_id: id("both"),
        limit_client_order_id: id("up"),
        stop_client_order_id: id("down"),
        ..Default::default()
    };
    let leg = |order: u64, kind: OrderType, price, locked| OrderAccepted {
        order_id: OrderId(order),
        account: ALICE,
        symbol: OCO,
        locked,
        price,
        quantity: 2 * ONE,
        order_list_id: OrderListId(0),
        side: Side::Sell.to_wire(),
        order_type: kind.to_wire(),
        time_in_force: 1,
        ..Default::default()
    };
    let stop = leg(7, OrderType::StopLossLimit, 89 * ONE, 0);
    let limit = leg(8, OrderType::LimitMaker, 110 * ONE, 2 * ONE);
    let changed = list_changed(ListOrderStatus::Executing);
    let events = [
        Event::OrderAccepted(&stop),
        Event::OrderAccepted(&limit),
        Event::OrderListChanged(&changed),
    ];
    log.fold(Command::PlaceOrderList(&placed), &events).unwrap();
}

const ORDERS: &str = concat!(
    r#""orders":[{"symbol":"OCO","orderId":7,"clientOrderId":"down"},"#,
    r#"{"symbol":"OCO","orderId":8,"clientOrderId":"up"}]"#,
);

const PLACE: &str = concat!(
    "symbol=OCO&side=SELL&quantity=2&price=110&stopPrice=90&stopLimitPrice=89",
    "&stopLimitTimeInForce=GTC&stopIcebergQty=1&listClientOrderId=both",
    "&limitClientOrderId=up&stopClientOrderId=down",
);

#[test]
fn a_list_is_placed_and_reported_in_the_form_that_was_asked_for() {
    let site = Site::new(log());
    let leg = |order, name| {
        format!(
            concat!(
                r#"{{"symbol":"OCO","orderId":{},"orderListId":0,"clientOrderId":"{}","#,
                r#""transactTime":1700000100007"#,
            ),
            order, name
        )
    };
    let result = |price, kind| {
        format!(
            concat!(
                r#","price":"{}.00000000","origQty":"2.00000000","executedQty":"0.00000000","#,
                r#""cummulativeQuoteQty":"0.00000000","status":"NEW","timeInForce":"GTC","#,
                r#""type":"{}","side":"SELL""#,
            ),
            price, kind
        )
    };
    let extras = r#","stopPrice":"90.00000000","icebergQty":"1.00000000""#;
    let (stop, limit) = (leg(7, "down"), leg(8, "up"));
    let (stop_result, limit_result) = (result(89, "STOP_LOSS_LIMIT"), result(110, "LIMIT_MAKER"));
    let fills = r#","fills":[]"#;
    for (form, reports) in [
        ("&newOrderRespType=ACK", format!("{stop}}},{limit}}}")),
        ("", format!("{stop}{stop_result}{extras}}},{limit}{limit_result}}}")),
        (
            "&newOrderRespType=RESULT",
            format!("{stop}{stop_result}{extras}}},{limit}{limit_result}}}"),
        ),
        (
            "&newOrderRespType=FULL",
            format!("{stop}{stop_result}{extras}{fills}}},{limit}{limit_result}{fills}}}"),
        ),
    ] {
        site.expect(decided(Terminal::List(list_changed(ListOrderStatus::Executing))));
        let reply = site.reply(site.signed(Post, "order/oco", &format!("{PLACE}{form}")));
        let expected = format!(
            concat!(
                r#"{{"orderListId":0,"contingencyType":"OCO","listStatusType":"EXEC_STARTED","#,
                r#""listOrderStatus":"EXECUTING","listClientOrderId":"both","#,
                r#""transactionTime":1700000100007,"symbol":"OCO",{},"orderReports":[{}]}}"#,
            ),
            ORDERS, reports
        );
        assert_eq!((reply.status, body(&reply)), (200, &*expected), "{form}");
        assert_eq!(header(&reply, "X-SVC-ORDER-COUNT-10S"), Some("2"));
        assert_eq!(header(&reply, "X-SVC-ORDER-COUNT-1D"), Some("5"));
    }
    let OrderCommand::PlaceList(list) = site.command() else { panic!("not a list") };
    assert_eq!((list.symbol, list.side, list.quantity), (OCO, Side::Sell.to_wire(), 2 * ONE));
    assert_eq!((list.price, list.limit_iceberg_quantity), (110 * ONE, 0));
    assert_eq!((list.stop_price, list.stop_limit_price), (90 * ONE, 89 * ONE));
    assert_eq!((list.stop_limit_time_in_force, list.stop_iceberg_quantity), (1, ONE));
    let names = [list.list_client_order_id, list.limit_client_order_id, list.stop_client_order_id];
    assert_eq!(names, [id("both"), id("up"), id("down")]);
    assert_eq!(list.command.key_id, ALICES_KEY);
}

#[test]
fn a_list_without_names_gets_three() {
    let site = Site::new(log());
    site.expect(decided(Terminal::List(list_changed(ListOrderStatus::Executing))));
    let query = "symbol=OCO&side=SELL&quantity=2&price=110&stopPrice=90";
    assert_eq!(site.reply(site.signed(Post, "order/oco", query)).status, 200);
    let OrderCommand::PlaceList(list) = site.command() else { panic!("not a list") };
    let names = [list.list_client_order_id, list.limit_client_order_id, list.stop_client_order_id];
    assert!(names.iter().all(|name| name.as_str().len() == 22));
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
    assert_eq!((list.stop_limit_time_in_force, list.stop_limit_price), (0, 0));
}

#[test]
fn a_test_of_an_order_is_a_placement_that_changes_nothing() {
    let site = Site::new(log());
    let query = "symbol=OCO&side=SELL&type=STOP_LOSS_LIMIT&timeInForce=GTC&quantity=3&price=99&stopPrice=100&icebergQty=1&newClientOrderId=mine&newOrderRespType=FULL";
    site.expect(decided(Terminal::Valid));
    let reply = site.reply(site.signed(Post, "order/test", query));
    assert_eq!((reply.status, body(&reply)), (200, "{}"));
    assert_eq!(header(&reply, "X-SVC-ORDER-COUNT-10S"), None, "nothing is counted");
    let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
    assert_eq!(order.flags, ORDER_VALIDATE_ONLY);
    assert_eq!((order.price, order.stop_price, order.quantity), (99 * ONE, 100 * ONE, 3 * ONE));
    assert_eq!((order.iceberg_quantity, order.client_order_id), (ONE, id("mine")));
    site.expect(decided(Terminal::Valid));
    site.reply(site.signed(Post, "order", query));
    let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
    assert_eq!(order.flags, 0, "a placement is no test");
}

#[test]
fn lists_are_shown_by_number_and_by_name() {
    let mut log = log();
    let time = log.time_ns / 1_000_000;
    place_list(&mut log);
    let site = Site::new(log);
    let list = format!(
        concat!(
            r#"{{"orderListId":0,"contingencyType":"OCO","listStatusType":"EXEC_STARTED","#,
            r#""listOrderStatus":"EXECUTING","listClientOrderId":"both","#,
            r#""transactionTime":{},"symbol":"OCO",{}}}"#,
        ),
        time, ORDERS
    );
    for query in [
        "orderListId=0",
        "origClientOrderId=both",
        "listClientOrderId=both",
        "orderListId=0&origClientOrderId=both",
    ] {
        let reply = site.reply(site.signed(Get, "orderList", query));
        assert_eq!((reply.status, body(&reply)), (200, &*list), "{query}");
    }
    let reply = site.reply(site.signed(Get, "openOrderList", ""));
    assert_eq!((reply.status, body(&reply)), (200, &*format!("[{list}]")));
    let reply = site.reply(site.signed_by(BOBS_KEY, Get, "openOrderList", ""));
    assert_eq!((reply.status, body(&reply)), (200, "[]"));
    let unknown = (400, -2018, "Order list does not exist.");
    for (key, query) in [
        (BOBS_KEY, "orderListId=0"),
        (BOBS_KEY, "origClientOrderId=both"),
        (ALICES_KEY, "orderListId=1"),
        (ALICES_KEY, "origClientOrderId=other"),
    ] {
        assert_error(&site.reply(site.signed_by(key, Get, "orderList", query)), unknown, query);
    }
    let mismatch = (400, -2039, "Client order ID is not correct for this order ID.");
    let query = "orderListId=0&origClientOrderId=other";
    assert_error(&site.reply(site.signed(Get, "orderList", query)), mismatch, query);
}

#[test]
fn what_is_open_is_shown_oldest_first() {
    let mut log = log();
    log.rest(ALICE, Side::Buy, 3, 90 * ONE, ONE);
    place_list(&mut log);
    log.rest(ALICE, Side::Buy, 4, 91 * ONE, ONE);
    let site = Site::new(log);
    let ids = |query: &str| -> Vec<u64> {
        let reply = site.reply(site.signed(Get, "openOrders", query));
        let orders: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        orders.as_array().unwrap().iter().map(|order| order["orderId"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids(""), [3, 7, 8, 4]);
    assert_eq!(ids("symbol=OCO"), [7, 8]);
    assert_eq!(ids("symbol=BTCUSDT"), [3, 4]);
    assert_eq!(ids("symbol=ETHBTC"), [0; 0]);
    let reply = site.reply(site.signed(Get, "openOrders", "symbol=NONE"));
    assert_error(&reply, (400, -1121, "Invalid symbol."), "symbol=NONE");
}

#[test]
fn order_counts_are_those_of_the_present_windows() {
    let mut log = log();
    place_list(&mut log);
    let mut site = Site::new(log);
    let row = |interval, num: u32, limit: u32, count: u32| {
        format!(
            r#"{{"rateLimitType":"ORDERS","interval":"{interval}","intervalNum":{num},"limit":{limit},"count":{count}}}"#
        )
    };
    // The list was placed 100 s before the request: the window of ten seconds is over.
    let expected = format!("[{},{}]", row("SECOND", 10, 50, 0), row("DAY", 1, 160_000, 2));
    let reply = site.reply(site.signed(Get, "rateLimit/order", ""));
    assert_eq!((reply.status, body(&reply)), (200, &*expected));
    // For an engine that has not followed a clock which was set since, it is not.
    site.views.note_ahead(-100_000);
    let expected = format!("[{},{}]", row("SECOND", 10, 50, 2), row("DAY", 1, 160_000, 2));
    assert_eq!(body(&site.reply(site.signed(Get, "rateLimit/order", ""))), expected);
    site = Site::new(self::log());
    let expected = format!("[{},{}]", row("SECOND", 10, 50, 0), row("DAY", 1, 160_000, 0));
    assert_eq!(body(&site.reply(site.signed(Get, "rateLimit/order", ""))), expected);
}

/// The engine's clock may be ahead of the adapter's: what it counts in a window that has only begun for it is
/// shown all the same.
#[test]
fn order_counts_are_those_of_the_engines_windows() {
    let mut log = log();
    // 20 s behind the request, by the adapter's clock.
    log.time_ns += 120_000_000_000;
    place_list(&mut log);
    let site = Site::new(log);
    let reply = site.reply(site.signed(Get, "rateLimit/order", ""));
    let shown: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    let counts: Vec<_> = shown.as_array().unwrap().iter().map(|limit| &limit["count"]).collect();
    assert_eq!(counts, [2, 2]);
}

#[test]
fn lists_that_the_engine_never_sees() {
    let mut log = log();
    let name = SymbolName::new("PLAIN").unwrap();
    let plain = DefineSymbol { name, order_types: 0xfe, flags: SYMBOL_OCO, ..btcusdt() };
    log.done(Command::DefineSymbol(&plain), 3);
    let site = Site::new(log);
    let stop_iceberg = "&stopLimitPrice=89&stopLimitTimeInForce=GTC&stopIcebergQty=1";
    let mandatory =
        |name| format!("Mandatory parameter '{name}' was not sent, was empty/null, or malformed.");
    let base = "symbol=OCO&side=SELL&quantity=2&price=110&stopPrice=90";
    let with = |more: &str| format!("{base}{more}");
    let cases = [
        ("side=SELL".to_owned(), -1102, mandatory("symbol")),
        ("symbol=OCO".to_owned(), -1102, mandatory("side")),
        ("symbol=OCO&side=SELL".to_owned(), -1102, mandatory("quantity")),
        ("symbol=OCO&side=SELL&quantity=1".to_owned(), -1102, mandatory("price")),
        ("symbol=OCO&side=SELL&quantity=1&price=1".to_owned(), -1102, mandatory("stopPrice")),
        (
            with("&stopLimitPrice=89"),
            -1128,
            "Combination of optional parameters invalid. Recommendation: 'stopLimitTimeInForce' should also be sent.".to_owned(),
        ),
        (
            with("&stopLimitTimeInForce=GTC"),
            -1106,
            "Parameter 'stopLimitTimeInForce' sent when not required.".to_owned(),
        ),
        (
            with("&stopIcebergQty=1"),
            -1106,
            "Parameter 'stopIcebergQty' sent when not required.".to_owned(),
        ),
        (
            with("&stopLimitPrice=89&stopLimitTimeInForce=IOC&stopIcebergQty=1"),
            -1014,
            "Unsupported order combination.".to_owned(),
        ),
        (
            with("&stopLimitPrice=89&stopLimitTimeInForce=DAY"),
            -1115,
            "Invalid timeInForce.".to_owned(),
        ),
        (
            with("&stopLimitPrice=0&stopLimitTimeInForce=GTC"),
            -1013,
            "Invalid price.".to_owned(),
        ),
        (with("&limitIcebergQty=3"), -1013, "IcebergQty exceeds QTY.".to_owned()),
        (
            with("&stopLimitPrice=89&stopLimitTimeInForce=GTC&stopIcebergQty=3"),
            -1013,
            "IcebergQty exceeds QTY.".to_owned(),
        ),
        (with("&limitIcebergQty=0"), -1013, "Invalid quantity.".to_owned()),
        (
            with("&stopLimitPrice=89&stopLimitTimeInForce=GTC&stopIcebergQty=0.0"),
            -1013,
            "Invalid quantity.".to_owned(),
        ),
        (with("&newOrderRespType=ALL"), -1136, "Invalid newOrderRespType".to_owned()),
        (
            with("&listClientOrderId="),
            -1105,
            "Parameter 'listClientOrderId' was empty.".to_owned(),
        ),
        (
            base.replace("OCO", "BTCUSDT"),
            -1013,
            "OCO orders are not supported for this symbol".to_owned(),
        ),
        (
            format!("{}&limitIcebergQty=1", base.replace("OCO", "PLAIN")),
            -1013,
            "Iceberg orders are not supported for this symbol.".to_owned(),
        ),
        (
            format!("{}{stop_iceberg}", base.replace("OCO", "PLAIN")),
            -1013,
            "Iceberg orders are not supported for this symbol.".to_owned(),
        ),
        (base.replace("OCO", "NONE"), -1121, "Invalid symbol.".to_owned()),
        (base.replace("SELL", "HOLD"), -1117, "Invalid side.".to_owned()),
    ];
    for (query, code, message) in cases {
        let reply = site.reply(site.signed(Post, "order/oco", &query));
        assert_error(&reply, (400, code, &message), &query);
    }
    let neither =
        "Param 'orderListId' or 'listClientOrderId' must be sent, but both were empty/null!";
    let reply = site.reply(site.signed(Delete, "orderList", "symbol=OCO"));
    assert_error(&reply, (400, -1102, neither), "a list without a name");
    let neither =
        "Param 'origClientOrderId' or 'orderListId' must be sent, but both were empty/null!";
    let reply = site.reply(site.signed(Get, "orderList", ""));
    assert_error(&reply, (400, -1102, neither), "a list without a name");
    assert!(site.engine.seen.lock().unwrap().is_empty());
}

/// The stop leg, which comes first, if it takes neither.
#[test]
fn the_order_of_a_list_that_its_symbol_does_not_take_is_named() {
    let bits = |kinds: &[OrderType]| kinds.iter().fold(0, |bits, kind| bits | 1 << kind.to_wire());
    let (stop, limit) = (OrderType::StopLoss, OrderType::LimitMaker);
    let stop_limit = OrderType::StopLossLimit;
    for (kinds, parameters, expected) in [
        (bits(&[stop, stop_limit]), "", "Limit maker"),
        (bits(&[stop, stop_limit]), "&stopLimitPrice=89&stopLimitTimeInForce=GTC", "Limit maker"),
        (bits(&[stop_limit, limit]), "", "Stop loss"),
        (bits(&[stop, limit]), "&stopLimitPrice=89&stopLimitTimeInForce=GTC", "Stop loss limit"),
        (bits(&[OrderType::Limit]), "", "Stop loss"),
    ] {
        let mut log = Log::venue();
        let oco = DefineSymbol {
            name: SymbolName::new("OCO").unwrap(),
            order_types: kinds,
            flags: SYMBOL_OCO,
            ..btcusdt()
        };
        log.done(Command::DefineSymbol(&oco), 2);
        let site = Site::new(log);
        site.expect_reject(RejectReason::OrderTypeNotSupported, 0);
        let query = format!("symbol=OCO&side=SELL&quantity=2&price=110&stopPrice=90{parameters}");
        let reply = site.reply(site.signed(Post, "order/oco", &query));
        let message = format!("{expected} orders are not supported for this symbol.");
        assert_error(&reply, (400, -1013, &message), &query);
    }
}

#[test]
fn rejects_of_lists_and_of_many() {
    let mut log = log();
    place_list(&mut log);
    let site = Site::new(log);
    for (method, path, query, reason, expected) in [
        (
            Post,
            "order/oco",
            PLACE,
            RejectReason::OrderListPrices,
            (400, -2010, "The relationship of the prices for the orders is not correct."),
        ),
        (
            Post,
            "order/oco",
            PLACE,
            RejectReason::OrderTypeNotSupported,
            (400, -1013, "Stop loss limit orders are not supported for this symbol."),
        ),
        (
            Delete,
            "orderList",
            "symbol=OCO&orderListId=5",
            RejectReason::UnknownOrderList,
            (400, -2011, "Unknown order list sent."),
        ),
        (
            Delete,
            "orderList",
            "symbol=OCO&orderListId=0&listClientOrderId=x",
            RejectReason::OrderListIdMismatch,
            (400, -2039, "Client order ID is not correct for this order ID."),
        ),
        (
            Delete,
            "openOrders",
            "symbol=OCO",
            RejectReason::UnknownOrder,
            (400, -2011, "Unknown order sent."),
        ),
        (
            Post,
            "order/test",
            "symbol=OCO&side=BUY&type=MARKET&quantity=1",
            RejectReason::MarketLotSize,
            (400, -1013, "Filter failure: MARKET_LOT_SIZE"),
        ),
    ] {
        site.expect_reject(reason, 0);
        assert_error(&site.reply(site.signed(method, path, query)), expected, path);
    }
}
