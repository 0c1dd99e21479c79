//! Placements and cancels that succeed: the command that the engine sees, and the answer as literal
//! JSON.

use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::message::event::{OrderCanceled, OrderResult, Trade};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{OrderId, OrderListId, Position, TradeId};

use super::fixture::{ALICES_KEY, BOBS_KEY, DECIDED_NS, NOW_MS, Site, body, decided, header, open};
use crate::http::Method::{Delete, Post};
use crate::link::{Decision, OrderCommand, Outcome, Terminal, Told};
use crate::views::fixture::{ALICE, BOB, BTCUSDT, Log, ONE, limit_order, resting};

const LIMIT_SELL: &str = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=3&price=99.00&newClientOrderId=mine";

fn result(status: OrderStatus, executed: i64, quote: i64) -> OrderResult {
    OrderResult {
        order_id: OrderId(28),
        account: ALICE,
        symbol: BTCUSDT,
        quantity: 3 * ONE,
        executed_quantity: executed,
        executed_quote: quote,
        order_list_id: OrderListId::NONE,
        order_count_0: 4,
        order_count_1: 17,
        status: status.to_wire(),
        ..Default::default()
    }
}

fn trade(id: u64, price: i64, quantity: i64, commission: i64) -> Trade {
    Trade {
        trade_id: TradeId(id),
        symbol: BTCUSDT,
        aggressor_side: Side::Sell.to_wire(),
        price,
        quantity,
        quote_amount: price / ONE * quantity,
        maker_order_id: OrderId(id),
        taker_order_id: OrderId(28),
        maker_account: BOB,
        taker_account: ALICE,
        taker_commission: commission,
        ..Default::default()
    }
}

fn fills(trades: Vec<Trade>) -> Told {
    Told { trades, ..Told::default() }
}

fn partly_filled() -> Outcome {
    Outcome::from(Decision {
        connection: 1,
        position: Position(0),
        time_ns: DECIDED_NS,
        told: fills(vec![trade(56, 101 * ONE, ONE, 15_150_000), trade(57, 100 * ONE, ONE / 2, 7)]),
        terminal: Terminal::Placed(result(OrderStatus::PartiallyFilled, 3 * ONE / 2, 151 * ONE)),
    })
}

const ACK: &str = r#"{"symbol":"BTCUSDT","orderId":28,"orderListId":-1,"clientOrderId":"mine","transactTime":1700000100007"#;

const RESULT: &str = concat!(
    r#","price":"99.00000000","origQty":"3.00000000","executedQty":"1.50000000","#,
    r#""cummulativeQuoteQty":"151.00000000","status":"PARTIALLY_FILLED","timeInForce":"GTC","#,
    r#""type":"LIMIT","side":"SELL""#,
);

const FILLS: &str = concat!(
    r#","fills":[{"price":"101.00000000","qty":"1.00000000","commission":"0.15150000","commissionAsset":"USDT","tradeId":56},"#,
    r#"{"price":"100.00000000","qty":"0.50000000","commission":"0.00000007","commissionAsset":"USDT","tradeId":57}]"#,
);

#[test]
fn the_three_forms_of_a_placement() {
    let site = Site::new(Log::venue());
    for (form, expected) in [
        ("&newOrderRespType=ACK", format!("{ACK}}}")),
        ("&newOrderRespType=RESULT", format!("{ACK}{RESULT}}}")),
        ("&newOrderRespType=FULL", format!("{ACK}{RESULT}{FILLS}}}")),
        ("", format!("{ACK}{RESULT}{FILLS}}}")),
    ] {
        site.expect(partly_filled());
        let reply = site.reply(site.signed(Post, "order", &format!("{LIMIT_SELL}{form}")));
        assert_eq!((reply.status, body(&reply)), (200, &*expected), "{form}");
        assert_eq!(header(&reply, "X-SVC-ORDER-COUNT-10S"), Some("4"));
        assert_eq!(header(&reply, "X-SVC-ORDER-COUNT-1D"), Some("17"));
    }
}

#[test]
fn the_command_says_what_the_request_said() {
    let site = Site::new(Log::venue());
    site.expect(partly_filled());
    site.reply(site.signed(Post, "order", LIMIT_SELL));
    let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
    assert_eq!(order.symbol, BTCUSDT);
    assert_eq!(order.side, Side::Sell.to_wire());
    assert_eq!(order.order_type, OrderType::Limit.to_wire());
    assert_eq!(order.time_in_force, TimeInForce::Gtc.to_wire());
    assert_eq!((order.price, order.quantity), (99 * ONE, 3 * ONE));
    assert_eq!((order.quote_quantity, order.stop_price, order.iceberg_quantity), (0, 0, 0));
    assert_eq!(order.client_order_id.as_str(), "mine");
    assert_eq!(order.command.key_id, ALICES_KEY);
    // The default window of 5 s ends before the deadline of 10 s; its last millisecond counts.
    assert_eq!(order.command.not_after_ns, (NOW_MS + 5000) * 1_000_000 + 999_999);
    site.expect(partly_filled());
    site.reply(site.signed(Post, "order", &format!("{LIMIT_SELL}&recvWindow=60000")));
    let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
    assert_eq!(order.command.not_after_ns, (NOW_MS + 10_000) * 1_000_000 + 999);
}

/// An engine that hangs and goes on is not to carry out what came too late, wherever its clock was left behind.
#[test]
fn a_command_is_good_for_no_longer_where_the_engines_clock_is_behind() {
    let site = Site::new(Log::venue());
    // Of one that is ahead the link knows.
    for (ahead_ms, expected_ms) in
        [(-3_600_000, NOW_MS + 5000 - 3_600_000), (3_600_000, NOW_MS + 5000)]
    {
        site.views.note_ahead(ahead_ms);
        site.expect(partly_filled());
        site.reply(site.signed(Post, "order", LIMIT_SELL));
        let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
        assert_eq!(order.command.not_after_ns, expected_ms * 1_000_000 + 999_999);
    }
}

#[test]
fn parameters_may_stand_in_the_body() {
    let site = Site::new(Log::venue());
    site.expect(partly_filled());
    let mut request = site.signed(Post, "order", LIMIT_SELL);
    request.body = std::mem::take(&mut request.query);
    assert_eq!(site.reply(request).status, 200);
}

#[test]
fn a_market_order_reports_gtc_and_no_price() {
    let site = Site::new(Log::venue());
    let market = OrderResult { quantity: ONE / 2, ..result(OrderStatus::Expired, 0, 0) };
    site.expect(decided(Terminal::Placed(market)));
    let query = "symbol=BTCUSDT&side=buy&type=market&quantity=0.5&newClientOrderId=mine";
    let reply = site.reply(site.signed(Post, "order", query));
    let expected = concat!(
        r#","price":"0.00000000","origQty":"0.50000000","executedQty":"0.00000000","#,
        r#""cummulativeQuoteQty":"0.00000000","status":"EXPIRED","timeInForce":"GTC","#,
        r#""type":"MARKET","side":"BUY","fills":[]}"#,
    );
    assert_eq!(body(&reply), format!("{ACK}{expected}"));
    let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
    assert_eq!(order.time_in_force, 0);
}

#[test]
fn a_buyer_pays_commission_in_base() {
    let site = Site::new(Log::venue());
    let filled = OrderResult { quantity: ONE, ..result(OrderStatus::Filled, ONE, 100 * ONE) };
    site.expect(Outcome::from(Decision {
        connection: 1,
        position: Position(0),
        time_ns: DECIDED_NS,
        told: fills(vec![trade(1, 100 * ONE, ONE, 150_000)]),
        terminal: Terminal::Placed(filled),
    }));
    let query = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1";
    let reply = site.reply(site.signed(Post, "order", query));
    assert!(body(&reply).ends_with(
        r#""fills":[{"price":"100.00000000","qty":"1.00000000","commission":"0.00150000","commissionAsset":"BTC","tradeId":1}]}"#
    ));
}

#[test]
fn an_order_without_a_name_gets_one() {
    let site = Site::new(Log::venue());
    let query = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1&newOrderRespType=ACK";
    let mut names = Vec::new();
    for _ in 0..2 {
        site.expect(partly_filled());
        let reply = site.reply(site.signed(Post, "order", query));
        let answer: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        let name = answer["clientOrderId"].as_str().unwrap().to_owned();
        assert_eq!(name.len(), 22);
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let OrderCommand::Place(order) = site.command() else { panic!("not a placement") };
        assert_eq!(order.client_order_id.as_str(), name);
        names.push(name);
    }
    assert_ne!(names[0], names[1]);
}

/// The reply ring overflowed: one of the two fills came, the other is in the log.
#[test]
fn fills_that_the_reply_lost_come_from_the_views() {
    let mut log = Log::venue();
    for (id, price) in [(1, 101), (2, 100)] {
        log.rest(BOB, Side::Buy, id, price * ONE, ONE);
    }
    let (order, accepted) = limit_order(ALICE, Side::Sell, 28, 99 * ONE, 3 * ONE);
    let trades = [trade(1, 101 * ONE, ONE, 5), trade(2, 100 * ONE, ONE, 6)];
    let placed = OrderResult {
        book_update_id: resting(&accepted, 3).book_update_id,
        ..result(OrderStatus::PartiallyFilled, 2 * ONE, 201 * ONE)
    };
    log.place(&order, &accepted, &trades, &placed).unwrap();
    let site = Site::new(log);
    site.expect(Outcome::from(Decision {
        connection: 1,
        position: Position(0),
        time_ns: DECIDED_NS,
        told: fills(vec![trades[1]]),
        terminal: Terminal::Placed(placed),
    }));
    let reply = site.reply(site.signed(Post, "order", LIMIT_SELL));
    let answer: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    let ids: Vec<_> =
        answer["fills"].as_array().unwrap().iter().map(|fill| &fill["tradeId"]).collect();
    assert_eq!(ids, [1, 2]);
    let forgotten = OrderResult { order_id: OrderId(99), ..placed };
    site.expect(decided(Terminal::Placed(forgotten)));
    let reply = site.reply(site.signed(Post, "order", LIMIT_SELL));
    assert_eq!(reply.status, 500);
    assert!(body(&reply).starts_with(r#"{"code":-1006,"#));
}

fn canceled() -> OrderCanceled {
    OrderCanceled {
        order_id: OrderId(4),
        account: BOB,
        symbol: BTCUSDT,
        price: 2 * ONE,
        quantity: ONE,
        executed_quantity: ONE / 4,
        executed_quote: ONE / 2,
        released: 0,
        order_list_id: OrderListId::NONE,
        status: OrderStatus::Canceled.to_wire(),
        side: Side::Buy.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        client_order_id: ClientOrderId::new("theirs").unwrap(),
        ..Default::default()
    }
}

#[test]
fn a_cancel_reports_how_the_order_ended() {
    let mut log = Log::venue();
    log.rest(BOB, Side::Buy, 4, 2 * ONE, ONE);
    let site = Site::new(log);
    site.expect(decided(Terminal::Canceled(canceled())));
    let query = "symbol=BTCUSDT&orderId=4&origClientOrderId=theirs&newClientOrderId=stop";
    let reply = site.reply(site.signed_by(BOBS_KEY, Delete, "order", query));
    let expected = concat!(
        r#"{"symbol":"BTCUSDT","origClientOrderId":"theirs","orderId":4,"orderListId":-1,"#,
        r#""clientOrderId":"stop","price":"2.00000000","origQty":"1.00000000","#,
        r#""executedQty":"0.25000000","cummulativeQuoteQty":"0.50000000","status":"CANCELED","#,
        r#""timeInForce":"GTC","type":"LIMIT","side":"BUY"}"#,
    );
    assert_eq!((reply.status, body(&reply)), (200, expected));
    assert_eq!(header(&reply, "X-SVC-ORDER-COUNT-10S"), None, "cancels are not counted");
    let OrderCommand::Cancel(cancel) = site.command() else { panic!("not a cancel") };
    assert_eq!((cancel.order_id, cancel.symbol), (OrderId(4), BTCUSDT));
    assert_eq!(cancel.client_order_id.as_str(), "theirs");
    assert_eq!(cancel.cancel_client_order_id.as_str(), "stop");
    assert_eq!(cancel.command.key_id, BOBS_KEY);
    assert_eq!(cancel.command.not_after_ns, (NOW_MS + 5000) * 1_000_000 + 999_999);
}

#[test]
fn a_cancel_by_name_alone_gets_a_name_of_its_own() {
    let mut log = Log::venue();
    log.rest(BOB, Side::Buy, 4, 2 * ONE, ONE);
    let site = Site::new(log);
    site.expect(decided(Terminal::Canceled(canceled())));
    let mut request = site.signed(Delete, "order", "symbol=BTCUSDT&origClientOrderId=theirs");
    request.body = std::mem::take(&mut request.query);
    let reply = site.reply(request);
    let answer: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    let OrderCommand::Cancel(cancel) = site.command() else { panic!("not a cancel") };
    assert_eq!(cancel.order_id, OrderId(0));
    assert_eq!(cancel.cancel_client_order_id.as_str().len(), 22);
    assert_eq!(answer["clientOrderId"], cancel.cancel_client_order_id.as_str());
}

#[test]
fn the_engine_is_not_asked_without_a_key() {
    let site = Site::new(Log::venue());
    let reply = site.reply(open(Post, "order", LIMIT_SELL));
    assert_eq!(reply.status, 401);
    assert!(site.engine.seen.lock().unwrap().is_empty());
}
