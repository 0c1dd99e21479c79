//! What an account has done: GET /allOrders, /allOrderList and /myTrades, as literal JSON, by every set
//! of parameters that is legal, and what they refuse. Orders and lists that only the history has.

use touchline_protocol::message::command::{CancelOrderNamed, PlaceOrderList};
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{
    ListOrderStatus, ListStatusType, OrderStatus, OrderType, Side,
};
use touchline_protocol::message::event::{OrderAccepted, OrderListChanged, OrderResult, Trade};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AggregateTradeId, OrderId, OrderListId, TradeId};

use super::fixture::{ALICES_KEY, BOBS_KEY, NOW_MS, Site, body};
use crate::http::Method::Get;
use crate::views::fixture::{ALICE, BOB, BTCUSDT, Log, ONE, limit_order, resting};

const DAY_MS: u64 = 86_400_000;

/// Five trades of Bob's orders 1, 3 … 9 with Alice's 2, 4 … 10, a day apart, the last one second before
/// the requests; then 11 and 12, which rest.
fn traded() -> Site {
    let mut log = Log::venue_at((NOW_MS - 10 * DAY_MS) * 1_000_000);
    for id in 1..=5 {
        log.time_ns = time_of(id) * 1_000_000 - 1_000_000;
        log.trade(id, 100 * ONE, ONE / 100);
    }
    log.rest(BOB, Side::Sell, 11, 200 * ONE, ONE);
    log.rest(ALICE, Side::Buy, 12, 50 * ONE, ONE);
    Site::new(log)
}

/// When trade `id` was.
fn time_of(id: u64) -> u64 {
    NOW_MS - 1000 - (5 - id) * DAY_MS
}

fn values(site: &Site, path: &str, query: &str, key: &str) -> Vec<u64> {
    let query = format!("symbol=BTCUSDT{query}");
    let reply = site.reply(site.signed_by(BOBS_KEY, Get, path, &query));
    assert_eq!(reply.status, 200, "{path} {query}: {}", body(&reply));
    let list: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    list.as_array().unwrap().iter().map(|entry| entry[key].as_u64().unwrap()).collect()
}

#[test]
fn all_orders_are_chosen_by_number_or_time() {
    let site = traded();
    let (second, third) = (time_of(2) - 1, time_of(3) - 1);
    for (query, expected) in [
        (String::new(), &[1, 3, 5, 7, 9, 11][..]),
        ("&limit=2".to_owned(), &[9, 11]),
        ("&limit=5000".to_owned(), &[1, 3, 5, 7, 9, 11]),
        ("&orderId=5".to_owned(), &[5, 7, 9, 11]),
        ("&orderId=4&limit=2".to_owned(), &[5, 7]),
        ("&orderId=10".to_owned(), &[11]),
        ("&orderId=12".to_owned(), &[]),
        (format!("&startTime={third}"), &[5, 7, 9, 11]),
        (format!("&startTime={}", third + 1), &[7, 9, 11]),
        (format!("&startTime={third}&limit=1"), &[5]),
        (format!("&endTime={third}"), &[1, 3, 5]),
        (format!("&endTime={third}&limit=2"), &[3, 5]),
        (format!("&startTime={second}&endTime={third}"), &[3, 5]),
        (format!("&startTime={second}&endTime={}", third - 1), &[3]),
        (format!("&startTime={}&endTime={}", second + 1, third - 1), &[]),
        ("&endTime=5".to_owned(), &[]),
        (format!("&startTime={}", NOW_MS * 2), &[]),
        // The number wins.
        (format!("&orderId=9&startTime={second}&endTime={third}"), &[9, 11]),
        // Whatever the times are.
        ("&orderId=9&startTime=2&endTime=1".to_owned(), &[9, 11]),
        (format!("&orderId=9&startTime=1&endTime={NOW_MS}"), &[9, 11]),
    ] {
        assert_eq!(values(&site, "allOrders", &query, "orderId"), expected, "{query}");
    }
    assert_eq!(
        body(&site.reply(site.signed_by(BOBS_KEY, Get, "allOrders", "symbol=ETHBTC"))),
        "[]"
    );
}

/// Four orders of Bob's in four seconds, of which the first three have ended, and three more in three, which rest.
fn ended_and_open() -> Site {
    let mut log = Log::venue_at((NOW_MS - 10_000) * 1_000_000);
    for id in 1..=7 {
        log.time_ns = (NOW_MS - 9000 + 1000 * id) * 1_000_000;
        log.rest(BOB, Side::Buy, id, 100 * ONE, ONE / 1000);
        if id <= 3 {
            log.cancel(id, ONE / 10, id).unwrap();
        }
    }
    Site::new(log)
}

/// Some of a page may have ended and some be open, and more of either than it holds.
#[test]
fn a_page_of_orders_takes_the_right_end_of_those_that_are_open() {
    let site = ended_and_open();
    let time = |id: u64| NOW_MS - 9000 + 1000 * id;
    for (query, expected) in [
        ("&orderId=4&limit=2".to_owned(), &[4, 5][..]),
        ("&orderId=3&limit=2".to_owned(), &[3, 4]),
        ("&orderId=1&limit=5".to_owned(), &[1, 2, 3, 4, 5]),
        ("&limit=2".to_owned(), &[6, 7]),
        ("&limit=5".to_owned(), &[3, 4, 5, 6, 7]),
        (format!("&startTime={}&limit=2", time(4)), &[4, 5]),
        (format!("&startTime={}&limit=3", time(3)), &[3, 4, 5]),
        (format!("&endTime={}&limit=2", time(6)), &[5, 6]),
        (format!("&endTime={}&limit=2", time(2)), &[1, 2]),
        (format!("&endTime={}", time(1)), &[1]),
        (format!("&endTime={}", time(2) - 1), &[1]),
        (format!("&endTime={}", time(1) - 1), &[]),
        (format!("&startTime={}&endTime={}", time(2), time(5)), &[2, 3, 4, 5]),
    ] {
        assert_eq!(values(&site, "allOrders", &query, "orderId"), expected, "{query}");
    }
}

#[test]
fn an_order_of_the_past_is_shown_as_queries_show_it() {
    let site = traded();
    let reply = site.reply(site.signed_by(BOBS_KEY, Get, "allOrders", "symbol=BTCUSDT&limit=6"));
    let list: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    let first = site.reply(site.signed_by(BOBS_KEY, Get, "order", "symbol=BTCUSDT&orderId=1"));
    let expected: serde_json::Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!(list[0], expected);
    assert_eq!((&list[0]["status"], &list[5]["status"]), (&"FILLED".into(), &"NEW".into()));
    assert!(body(&reply).starts_with(&format!("[{}", body(&first))), "the same keys in order");
}

#[test]
fn own_trades_are_chosen_by_every_legal_set() {
    let site = traded();
    let (second, third) = (time_of(2), time_of(3));
    for (query, expected) in [
        (String::new(), &[1, 2, 3, 4, 5][..]),
        ("&limit=2".to_owned(), &[4, 5]),
        ("&fromId=3".to_owned(), &[3, 4, 5]),
        ("&fromId=0&limit=2".to_owned(), &[1, 2]),
        ("&fromId=9223372036854775807".to_owned(), &[]),
        ("&orderId=5".to_owned(), &[3]),
        ("&orderId=5&fromId=3".to_owned(), &[3]),
        ("&orderId=5&fromId=4".to_owned(), &[]),
        ("&orderId=6".to_owned(), &[]),
        ("&orderId=11".to_owned(), &[]),
        (format!("&startTime={third}"), &[3, 4, 5]),
        (format!("&startTime={third}&limit=1"), &[3]),
        (format!("&endTime={third}"), &[1, 2, 3]),
        (format!("&endTime={}&limit=1", third - 1), &[2]),
        (format!("&startTime={second}&endTime={third}"), &[2, 3]),
        (format!("&startTime={}&endTime={}", second + 1, third - 1), &[]),
        (format!("&startTime={}", time_of(5) + 1), &[]),
        ("&endTime=5".to_owned(), &[]),
    ] {
        assert_eq!(values(&site, "myTrades", &query, "id"), expected, "{query}");
        // Alice is on the other side of each, by an order whose number is one higher.
        let query = format!("symbol=BTCUSDT{}", query.replace("orderId=5", "orderId=6"));
        if !query.contains("orderId") {
            let reply = site.reply(site.signed(Get, "myTrades", &query));
            let list: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            let ids = list.as_array().unwrap().iter().map(|entry| entry["id"].as_u64().unwrap());
            assert_eq!(ids.collect::<Vec<_>>(), expected, "{query} of Alice's");
        }
    }
}

/// Alice's order 4, which has filled Bob's orders 1, 2 and 3.
pub(super) fn swept() -> Site {
    let (price, each) = (100 * ONE, ONE / 100);
    let mut log = Log::venue_at((NOW_MS - 1000) * 1_000_000);
    (1..=3).for_each(|id| log.rest(BOB, Side::Sell, id, price, each));
    let (order, accepted) = limit_order(ALICE, Side::Buy, 4, price, 3 * each);
    let trades = [1, 2, 3].map(|id| Trade {
        trade_id: TradeId(id),
        aggregate_trade_id: AggregateTradeId(1),
        symbol: BTCUSDT,
        aggressor_side: Side::Buy.to_wire(),
        price,
        quantity: each,
        quote_amount: ONE,
        maker_order_id: OrderId(id),
        taker_order_id: OrderId(4),
        maker_account: BOB,
        taker_account: ALICE,
        maker_commission: 7,
        taker_commission: 5,
        ..Default::default()
    });
    let result = OrderResult {
        executed_quantity: 3 * each,
        executed_quote: 3 * ONE,
        released: accepted.locked - 3 * ONE,
        status: OrderStatus::Filled.to_wire(),
        ..resting(&accepted, 4)
    };
    log.place(&order, &accepted, &trades, &result).unwrap();
    Site::new(log)
}

#[test]
fn of_an_orders_trades_the_most_recent_are_shown_unless_one_is_named() {
    let site = swept();
    for (query, expected) in [
        ("", &[1, 2, 3][..]),
        ("&limit=2", &[2, 3]),
        ("&limit=1", &[3]),
        ("&fromId=1&limit=2", &[1, 2]),
        ("&fromId=0&limit=1", &[1]),
    ] {
        let query = format!("symbol=BTCUSDT&orderId=4{query}");
        let reply = site.reply(site.signed_by(ALICES_KEY, Get, "myTrades", &query));
        let list: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        let ids = list.as_array().unwrap().iter().map(|entry| entry["id"].as_u64().unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), expected, "{query}");
    }
}

#[test]
fn each_side_of_a_trade_shows_what_it_was_charged() {
    let site = swept();
    for (key, order, commission, asset) in
        [(ALICES_KEY, 4, "0.00000005", "BTC"), (BOBS_KEY, 2, "0.00000007", "USDT")]
    {
        let reply =
            site.reply(site.signed_by(key, Get, "myTrades", "symbol=BTCUSDT&fromId=2&limit=1"));
        let list: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        let found = (&list[0]["orderId"], &list[0]["commission"], &list[0]["commissionAsset"]);
        assert_eq!(found, (&order.into(), &commission.into(), &asset.into()));
    }
}

#[test]
fn both_sides_of_a_trade_are_told_from_each_other() {
    let site = traded();
    let shown = |key, order, is_buyer, is_maker, asset| {
        let reply =
            site.reply(site.signed_by(key, Get, "myTrades", "symbol=BTCUSDT&fromId=2&limit=1"));
        let expected = format!(
            concat!(
                r#"[{{"symbol":"BTCUSDT","id":2,"orderId":{},"orderListId":-1,"#,
                r#""price":"100.00000000","qty":"0.01000000","quoteQty":"1.00000000","#,
                r#""commission":"0.00000000","commissionAsset":"{}","time":{},"isBuyer":{},"#,
                r#""isMaker":{},"isBestMatch":true}}]"#,
            ),
            order,
            asset,
            time_of(2),
            is_buyer,
            is_maker
        );
        assert_eq!(body(&reply), expected);
    };
    shown(BOBS_KEY, 3, false, true, "USDT");
    shown(ALICES_KEY, 4, true, false, "BTC");
}

#[test]
fn what_only_the_history_has_is_found_by_number_and_name() {
    let mut log = Log::venue_at((NOW_MS - DAY_MS) * 1_000_000);
    for id in 1..=1200 {
        log.rest(BOB, Side::Buy, id, 100 * ONE, ONE / 1000);
        log.cancel(id, ONE / 10, id).unwrap();
    }
    assert!(log.state.orders.open().next().is_none());
    let site = Site::new(log);
    for query in ["orderId=1", "origClientOrderId=c1", "orderId=1&origClientOrderId=c1"] {
        let query = format!("symbol=BTCUSDT&{query}");
        let reply = site.reply(site.signed_by(BOBS_KEY, Get, "order", &query));
        let order: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!((&order["orderId"], &order["status"]), (&1.into(), &"CANCELED".into()));
        let reply = site.reply(site.signed(Get, "order", &query));
        assert!(body(&reply).contains("-2013"), "nobody else's: {}", body(&reply));
    }
    let query = "symbol=BTCUSDT&orderId=1&origClientOrderId=c2";
    let reply = site.reply(site.signed_by(BOBS_KEY, Get, "order", query));
    assert!(body(&reply).contains("-2039"), "{}", body(&reply));
    let ids = values(&site, "allOrders", "&orderId=1&limit=1000", "orderId");
    assert_eq!(ids, (1..=1000).collect::<Vec<_>>());
    let ids = values(&site, "allOrders", "", "orderId");
    assert_eq!(ids, (701..=1200).collect::<Vec<_>>());
}

/// Folds a list of Bob's: he sells 0.01 at 110, or when 90 is reached at 89.
pub(super) fn place_list(log: &mut Log, id: u64, stop: u64, limit: u64) {
    let name = |text: String| ClientOrderId::new(&text).unwrap();
    let placed = PlaceOrderList {
        symbol: BTCUSDT,
        stop_price: 90 * ONE,
        list_client_order_id: name(format!("list{id}")),
        limit_client_order_id: name(format!("l{id}")),
        stop_client_order_id: name(format!("s{id}")),
        ..Default::default()
    };
    let leg = |order: u64, kind: OrderType, price, locked| OrderAccepted {
        order_id: OrderId(order),
        account: BOB,
        symbol: BTCUSDT,
        locked,
        price,
        quantity: ONE / 100,
        order_list_id: OrderListId(id.cast_signed()),
        side: Side::Sell.to_wire(),
        order_type: kind.to_wire(),
        time_in_force: 1,
        ..Default::default()
    };
    let legs = [
        leg(stop, OrderType::StopLossLimit, 89 * ONE, ONE / 100),
        leg(limit, OrderType::LimitMaker, 110 * ONE, 0),
    ];
    let begun = OrderListChanged {
        list_status_type: ListStatusType::ExecStarted.to_wire(),
        list_order_status: ListOrderStatus::Executing.to_wire(),
        ..changed(id, stop, limit)
    };
    let events = [
        Event::OrderAccepted(&legs[0]),
        Event::OrderAccepted(&legs[1]),
        Event::OrderListChanged(&begun),
    ];
    log.fold(Command::PlaceOrderList(&placed), &events).unwrap();
}

/// A list of Bob's that has ended.
/// How a list of Bob's is when all of it is done.
pub(super) fn changed(id: u64, stop: u64, limit: u64) -> OrderListChanged {
    OrderListChanged {
        order_list_id: OrderListId(id.cast_signed()),
        account: BOB,
        symbol: BTCUSDT,
        limit_order_id: OrderId(limit),
        stop_order_id: OrderId(stop),
        list_status_type: ListStatusType::AllDone.to_wire(),
        list_order_status: ListOrderStatus::AllDone.to_wire(),
        list_client_order_id: ClientOrderId::new(&format!("list{id}")).unwrap(),
        ..Default::default()
    }
}

/// Three lists of Bob's, one second apart, of which the first two have ended.
fn listed() -> Site {
    let mut log = Log::venue_at((NOW_MS - DAY_MS) * 1_000_000);
    for id in 0..3 {
        log.time_ns = (NOW_MS - 10_000 + 1000 * id) * 1_000_000;
        let (stop, limit) = (2 * id + 1, 2 * id + 2);
        place_list(&mut log, id, stop, limit);
        if id < 2 {
            let ended = changed(id, stop, limit);
            let cancel = CancelOrderNamed::default();
            let events = [Event::OrderListChanged(&ended)];
            log.fold(Command::CancelOrderNamed(&cancel), &events).unwrap();
        }
    }
    Site::new(log)
}

#[test]
fn all_lists_are_chosen_by_number_or_time() {
    let site = listed();
    let begin = NOW_MS - 10_000;
    let list = |id: u64| {
        let status = if id < 2 { "ALL_DONE" } else { "EXECUTING" };
        let kind = if id < 2 { "ALL_DONE" } else { "EXEC_STARTED" };
        format!(
            concat!(
                r#"{{"orderListId":{},"contingencyType":"OCO","listStatusType":"{}","#,
                r#""listOrderStatus":"{}","listClientOrderId":"list{}","transactionTime":{},"#,
                r#""symbol":"BTCUSDT","orders":[{{"symbol":"BTCUSDT","orderId":{},"clientOrderId":"s{}"}},"#,
                r#"{{"symbol":"BTCUSDT","orderId":{},"clientOrderId":"l{}"}}]}}"#,
            ),
            id,
            kind,
            status,
            id,
            begin + 1000 * id,
            2 * id + 1,
            id,
            2 * id + 2,
            id
        )
    };
    for (query, expected) in [
        (String::new(), 0..3),
        ("limit=1".to_owned(), 2..3),
        ("fromId=1".to_owned(), 1..3),
        ("fromId=0&limit=2".to_owned(), 0..2),
        ("fromId=3".to_owned(), 3..3),
        (format!("startTime={}", begin + 1), 1..3),
        (format!("endTime={}", begin + 1000), 0..2),
        (format!("endTime={begin}"), 0..1),
        (format!("endTime={}", begin - 1), 0..0),
        (format!("endTime={}&limit=1", begin + 1000), 1..2),
        (format!("startTime={}&endTime={}", begin + 1000, begin + 2000), 1..3),
    ] {
        let reply = site.reply(site.signed_by(BOBS_KEY, Get, "allOrderList", &query));
        let lists: Vec<_> = expected.map(list).collect();
        assert_eq!(body(&reply), format!("[{}]", lists.join(",")), "{query}");
    }
    assert_eq!(body(&site.reply(site.signed(Get, "allOrderList", ""))), "[]", "Alice has none");
    for query in ["orderListId=0", "origClientOrderId=list0"] {
        let reply = site.reply(site.signed_by(BOBS_KEY, Get, "orderList", query));
        assert_eq!(body(&reply), list(0), "{query}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let site = traded();
    let combination = "-1128 Combination of optional parameters invalid.";
    let reversed = "-1023 Start time is greater than end time.";
    let long = "-1127 More than 24 hours between startTime and endTime.";
    let span = format!("startTime={}&endTime={}", NOW_MS - DAY_MS - 1, NOW_MS);
    let day = format!("startTime={}&endTime={}", NOW_MS - DAY_MS, NOW_MS);
    for (path, query, expected) in [
        (
            "allOrders",
            "",
            "-1102 Mandatory parameter 'symbol' was not sent, was empty/null, or malformed.",
        ),
        ("allOrders", "symbol=NONE", "-1121 Invalid symbol."),
        (
            "allOrders",
            "symbol=BTCUSDT&limit=0",
            "-1130 Data sent for parameter 'limit' is not valid.",
        ),
        ("allOrders", "symbol=BTCUSDT&startTime=2&endTime=1", reversed),
        ("allOrders", &format!("symbol=BTCUSDT&{span}"), long),
        ("allOrders", "symbol=BTCUSDT&orderId=", "-1105 Parameter 'orderId' was empty."),
        (
            "allOrders",
            "symbol=BTCUSDT&orderId=1&startTime=x",
            "-1100 Illegal characters found in parameter 'startTime'; legal range is '^[0-9]{1,20}$'.",
        ),
        ("allOrderList", "fromId=1&startTime=1", combination),
        ("allOrderList", "fromId=1&endTime=1", combination),
        ("allOrderList", "startTime=2&endTime=1", reversed),
        ("allOrderList", &span, long),
        ("allOrderList", "limit=0", "-1130 Data sent for parameter 'limit' is not valid."),
        (
            "myTrades",
            "",
            "-1102 Mandatory parameter 'symbol' was not sent, was empty/null, or malformed.",
        ),
        ("myTrades", "symbol=NONE", "-1121 Invalid symbol."),
        ("myTrades", "symbol=BTCUSDT&orderId=1&startTime=1", combination),
        ("myTrades", "symbol=BTCUSDT&orderId=1&endTime=1", combination),
        ("myTrades", "symbol=BTCUSDT&fromId=1&startTime=1", combination),
        ("myTrades", "symbol=BTCUSDT&fromId=1&endTime=1", combination),
        ("myTrades", "symbol=BTCUSDT&startTime=2&endTime=1", reversed),
        ("myTrades", &format!("symbol=BTCUSDT&{span}"), long),
    ] {
        let reply = site.reply(site.signed_by(BOBS_KEY, Get, path, query));
        let error: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        let found = format!("{} {}", error["code"], error["msg"].as_str().unwrap_or_default());
        assert_eq!((reply.status, &*found), (400, expected), "{path}?{query}");
    }
    for path in ["allOrders", "myTrades"] {
        assert_eq!(
            values(&site, path, &format!("&{day}"), "orderId").len(),
            2 - usize::from(path == "myTrades")
        );
    }
}
