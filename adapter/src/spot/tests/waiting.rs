//! When an answer has to wait for the views, and for how long.

use std::sync::atomic::Ordering;
use std::time::Duration;

use touchline_protocol::message::command::{
    ChangeSymbol, CreateKey, DefineSymbol, KEY_ALL, SYMBOL_ICEBERG, SYMBOL_OCO,
    SYMBOL_QUOTE_QUANTITY,
};
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{OrderStatus, OrderType, RejectReason, Side};
use touchline_protocol::message::event::{Done, MassCanceled, OrderCanceled, OrderResult};
use touchline_protocol::text::{ClientOrderId, SymbolName};
use touchline_protocol::units::{KeyId, OrderId, OrderListId, Position, SymbolId};

use super::fixture::{Site, body, canceled, config, decided, header, open};
use crate::http::Method::{Delete, Get, Post};
use crate::link::{Decision, Outcome, Terminal, Told};
use crate::spot::SpotConfig;
use crate::views::fixture::{ALICE, BTCUSDT, Log, ONE, btcusdt, limit_order, resting};

/// Alice has order 1.
fn site() -> Site {
    let mut log = Log::venue();
    log.rest(ALICE, Side::Buy, 1, 100 * ONE, ONE);
    Site::new(log)
}

#[test]
fn a_read_waits_for_all_that_was_acknowledged_when_it_came() {
    let site = Site::new(Log::venue());
    site.watermark.store(640, Ordering::SeqCst);
    let waiting = [
        site.send(site.signed(Get, "account", "")),
        site.send(site.signed(Get, "order", "symbol=BTCUSDT&orderId=1")),
        site.send(open(Get, "depth", "symbol=BTCUSDT")),
        site.send(open(Get, "exchangeInfo", "")),
    ];
    site.watermark.store(1280, Ordering::SeqCst);
    let later = site.send(open(Get, "depth", "symbol=BTCUSDT"));
    assert_eq!(site.reply(open(Get, "ping", "")).status, 200, "needs no view");
    assert_eq!(site.reply(open(Get, "time", "")).status, 200, "needs no view");
    assert!(waiting.iter().all(|reply| reply.try_recv().is_err()));
    site.views.arrive(Position(640));
    let [account, order, depth, info] = waiting;
    for reply in [account, depth, info] {
        assert_eq!(reply.try_recv().unwrap().status, 200);
    }
    assert!(later.try_recv().is_err());
    // What was under way may have been done meanwhile: nothing is denied before that is known.
    assert!(order.try_recv().is_err());
    site.views.arrive(Position(1280));
    assert_eq!(later.try_recv().unwrap().status, 200);
    assert_eq!(order.try_recv().unwrap().status, 400);
}

#[test]
fn a_read_waits_for_what_its_own_adapter_has_answered() {
    let site = site();
    site.expect(Outcome::from(Decision {
        connection: 1,
        position: Position(320),
        time_ns: 0,
        told: Told::default(),
        terminal: Terminal::Canceled(canceled()),
    }));
    let cancel = site.signed(Delete, "order", "symbol=BTCUSDT&orderId=1");
    assert_eq!(site.reply(cancel).status, 200);
    let read = site.send(open(Get, "depth", "symbol=BTCUSDT"));
    assert!(read.try_recv().is_err());
    site.views.arrive(Position(320));
    assert_eq!(read.try_recv().unwrap().status, 200);
}

#[test]
fn a_view_that_stays_behind_is_a_timeout() {
    let config = SpotConfig { deadline: Duration::ZERO, ..config() };
    let site = Site::with(Log::venue(), config);
    site.watermark.store(640, Ordering::SeqCst);
    let reply = site.send(open(Get, "depth", "symbol=BTCUSDT"));
    site.views.expire_now();
    let reply = reply.try_recv().unwrap();
    assert_eq!(
        (reply.status, body(&reply)),
        (
            504,
            r#"{"code":-1007,"msg":"Timeout waiting for response from backend server. Send status unknown; execution status unknown."}"#
        )
    );
}

/// A command that the views kept from leaving has not happened, and is not told as if it might have.
#[test]
fn a_command_that_a_view_holds_back_to_the_end_is_certain_to_have_done_nothing() {
    let config = SpotConfig { deadline: Duration::ZERO, ..config() };
    let site = Site::with(Log::venue(), config);
    site.watermark.store(640, Ordering::SeqCst);
    let query = "symbol=ADA&side=BUY&type=MARKET&quantity=1";
    let reply = site.send(site.signed(Post, "order", query));
    site.views.expire_now();
    let reply = reply.try_recv().unwrap();
    assert_eq!(
        (reply.status, body(&reply)),
        (429, r#"{"code":-1003,"msg":"Too many requests queued."}"#)
    );
    assert_eq!(header(&reply, "Retry-After"), Some("1"));
    assert!(site.engine.seen.lock().unwrap().is_empty());
}

#[test]
fn a_view_that_has_stopped_is_an_internal_error() {
    let site = Site::new(Log::venue());
    site.views.halt();
    site.watermark.store(640, Ordering::SeqCst);
    let reply = site.reply(open(Get, "depth", "symbol=BTCUSDT"));
    assert_eq!(
        (reply.status, body(&reply)),
        (
            500,
            r#"{"code":-1001,"msg":"Internal error; unable to process your request. Please try again."}"#
        )
    );
}

/// An order does not wait for the views, unless they know its key or its symbol not yet.
#[test]
fn an_order_waits_only_for_a_key_or_a_symbol_that_may_be_new() {
    let site = site();
    site.watermark.store(640, Ordering::SeqCst);
    site.expect(decided(Terminal::Canceled(canceled())));
    let query = "symbol=BTCUSDT&orderId=1";
    assert_eq!(site.reply(site.signed(Delete, "order", query)).status, 200);
    let new_key = site.send(site.signed_by(KeyId(3), Delete, "order", query));
    let no_symbol =
        site.send(site.signed(Post, "order", "symbol=ADA&side=BUY&type=MARKET&quantity=1"));
    let illegal = site.reply(site.signed(Post, "order", "symbol=ada"));
    assert_eq!(illegal.status, 400);
    assert!(new_key.try_recv().is_err() && no_symbol.try_recv().is_err());
    let create = CreateKey { account: ALICE, permissions: KEY_ALL, ..Default::default() };
    let done = Done { id: 3, ..Default::default() };
    site.views.fold(Command::CreateKey(&create), &[Event::Done(&done)]);
    site.expect(decided(Terminal::Canceled(canceled())));
    site.views.arrive(Position(640));
    assert_eq!(new_key.try_recv().unwrap().status, 200);
    let no_symbol = no_symbol.try_recv().unwrap();
    assert_eq!(body(&no_symbol), r#"{"code":-1121,"msg":"Invalid symbol."}"#);
}

/// What a symbol did not do when the views saw it last, it may do by now.
#[test]
fn an_order_waits_for_a_symbol_that_may_do_more_by_now() {
    let site = site();
    site.watermark.store(640, Ordering::SeqCst);
    let limit = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=2&price=100";
    let waiting = [
        ("order", format!("{limit}&icebergQty=1")),
        ("order", "symbol=BTCUSDT&side=BUY&type=MARKET&quoteOrderQty=100".to_owned()),
        ("order/oco", "symbol=BTCUSDT&side=SELL&quantity=1&price=110&stopPrice=90".to_owned()),
    ]
    .map(|(path, query)| site.send(site.signed(Post, path, &query)));
    assert!(waiting.iter().all(|reply| reply.try_recv().is_err()));
    let flags = SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY;
    let change = ChangeSymbol { symbol: BTCUSDT, flags, ..Default::default() };
    site.views.fold(Command::ChangeSymbol(&change), &[Event::Done(&Done::default())]);
    for _ in 0..2 {
        site.expect_reject(RejectReason::MarketLotSize, 0);
    }
    site.views.arrive(Position(640));
    let decided = r#"{"code":-1013,"msg":"Filter failure: MARKET_LOT_SIZE"}"#;
    let refused = r#"{"code":-1013,"msg":"OCO orders are not supported for this symbol"}"#;
    // How much it is, the book says.
    let by_quote = r#"{"code":-2010,"msg":"Order book liquidity is less than `LOT_SIZE` filter minimum quantity."}"#;
    for (reply, expected) in waiting.iter().zip([decided, by_quote, refused]) {
        assert_eq!(body(&reply.try_recv().unwrap()), expected);
    }
}

/// So it is with an order type that only one order of a list has.
#[test]
fn a_list_waits_for_a_symbol_that_may_take_both_its_orders_by_now() {
    let mut log = Log::venue();
    let stops = 1 << OrderType::StopLoss.to_wire();
    let both = stops | 1 << OrderType::LimitMaker.to_wire();
    let name = SymbolName::new("OCO").unwrap();
    let oco = DefineSymbol { name, order_types: stops, flags: SYMBOL_OCO, ..btcusdt() };
    log.done(Command::DefineSymbol(&oco), 2);
    let site = Site::new(log);
    site.watermark.store(640, Ordering::SeqCst);
    let query = "symbol=OCO&side=SELL&quantity=1&price=110&stopPrice=90";
    let reply = site.send(site.signed(Post, "order/oco", query));
    assert!(reply.try_recv().is_err());
    let change = ChangeSymbol {
        symbol: SymbolId(2),
        order_types: both,
        flags: SYMBOL_OCO,
        ..Default::default()
    };
    site.views.fold(Command::ChangeSymbol(&change), &[Event::Done(&Done::default())]);
    site.expect_reject(RejectReason::OrderListPrices, 0);
    site.views.arrive(Position(640));
    assert!(body(&reply.try_recv().unwrap()).starts_with(r#"{"code":-2010,"#));
}

/// The stop price of a cancelled order is the views', which may not have seen it yet.
#[test]
fn a_cancel_report_waits_for_an_order_that_was_placed_a_moment_ago() {
    let site = Site::new(Log::venue());
    let decision = || {
        Outcome::from(Decision {
            connection: 1,
            position: Position(320),
            time_ns: 0,
            told: Told::default(),
            terminal: Terminal::Canceled(canceled()),
        })
    };
    site.expect(decision());
    let query = "symbol=BTCUSDT&orderId=1";
    let reply = site.send(site.signed(Delete, "order", query));
    assert!(reply.try_recv().is_err());
    let (mut order, mut accepted) = limit_order(ALICE, Side::Buy, 1, 100 * ONE, ONE);
    order.stop_price = 110 * ONE;
    order.order_type = OrderType::StopLossLimit.to_wire();
    accepted.order_type = order.order_type;
    let result = resting(&accepted, 0);
    let events = [Event::OrderAccepted(&accepted), Event::OrderResult(&result)];
    site.views.fold(Command::NewOrder(&order), &events);
    site.views.arrive(Position(320));
    let reply = reply.try_recv().unwrap();
    let expected = r#""side":"BUY","stopPrice":"110.00000000"}"#;
    assert!(reply.status == 200 && body(&reply).ends_with(expected), "{}", body(&reply));
    // One that the views have forgotten was cancelled all the same.
    let site = Site::new(Log::venue());
    site.views.arrive(Position(320));
    site.expect(decision());
    let reply = site.reply(site.signed(Delete, "order", query));
    assert!(body(&reply).starts_with(r#"{"code":-1006,"#), "{}", body(&reply));
}

const EVERYTHING: SymbolId = SymbolId(2);

/// A symbol that takes all orders, and views that have never moved.
fn behind() -> Site {
    let mut log = Log::venue();
    let name = SymbolName::new("ALL").unwrap();
    let all = DefineSymbol { name, order_types: 0xfe, flags: SYMBOL_ICEBERG, ..btcusdt() };
    log.done(Command::DefineSymbol(&all), 2);
    let site = Site::new(log);
    site.watermark.store(640, Ordering::SeqCst);
    site
}

/// Decided where the views are not yet.
fn beyond(connection: u64, canceled: &[OrderCanceled], terminal: Terminal) -> Outcome {
    let told = Told { canceled: canceled.to_vec(), ..Told::default() };
    Outcome::from(Decision { connection, position: Position(640), time_ns: 0, told, terminal })
}

fn everything_canceled(id: u64, kind: OrderType, price: i64) -> OrderCanceled {
    OrderCanceled {
        order_id: OrderId(id),
        account: ALICE,
        symbol: EVERYTHING,
        price: price * ONE,
        quantity: 2 * ONE,
        order_list_id: OrderListId::NONE,
        status: OrderStatus::Canceled.to_wire(),
        side: Side::Buy.to_wire(),
        order_type: kind.to_wire(),
        time_in_force: 1,
        client_order_id: ClientOrderId::new(&format!("c{id}")).unwrap(),
        ..Default::default()
    }
}

/// Alice places an order, an iceberg and a stop over this adapter; gives how each ends, and what it is reported with in
/// addition.
fn place_three(site: &Site) -> [(OrderCanceled, &'static str); 3] {
    for (id, order) in [
        (1, "type=LIMIT&timeInForce=GTC&price=100"),
        (2, "type=LIMIT&timeInForce=GTC&price=100&icebergQty=1"),
        (3, "type=STOP_LOSS&stopPrice=110"),
    ] {
        let placed = OrderResult {
            order_id: OrderId(id),
            symbol: EVERYTHING,
            quantity: 2 * ONE,
            order_list_id: OrderListId::NONE,
            status: OrderStatus::New.to_wire(),
            ..Default::default()
        };
        site.expect(beyond(1, &[], Terminal::Placed(placed)));
        let query = format!("symbol=ALL&side=BUY&quantity=2&{order}&newClientOrderId=c{id}");
        assert_eq!(site.reply(site.signed(Post, "order", &query)).status, 200);
    }
    [
        (everything_canceled(1, OrderType::Limit, 100), ""),
        (everything_canceled(2, OrderType::Limit, 100), r#","icebergQty":"1.00000000""#),
        (everything_canceled(3, OrderType::StopLoss, 0), r#","stopPrice":"110.00000000""#),
    ]
}

/// A flood that the history's store cannot take leaves the views behind, and the engine cancels all the same.
#[test]
fn a_cancel_of_what_this_adapter_has_placed_needs_no_views() {
    let site = behind();
    let ended = place_three(&site);
    for (order, extras) in ended {
        let (id, price) = (order.order_id, order.price / ONE);
        let kind = if price == 0 { "STOP_LOSS" } else { "LIMIT" };
        site.expect(beyond(1, &[], Terminal::Canceled(order)));
        let query = format!("symbol=ALL&orderId={id}&newClientOrderId=end");
        let reply = site.reply(site.signed(Delete, "order", &query));
        let expected = format!(
            concat!(
                r#"{{"symbol":"ALL","origClientOrderId":"c{}","orderId":{},"orderListId":-1,"#,
                r#""clientOrderId":"end","price":"{}.00000000","origQty":"2.00000000","#,
                r#""executedQty":"0.00000000","cummulativeQuoteQty":"0.00000000","#,
                r#""status":"CANCELED","timeInForce":"GTC","type":"{}","side":"BUY"{}}}"#,
            ),
            id, id, price, kind, extras
        );
        assert_eq!((reply.status, body(&reply)), (200, &*expected));
    }
    let all = Terminal::CanceledAll(MassCanceled { orders: 3, ..Default::default() });
    site.expect(beyond(1, &ended.map(|(order, _)| order), all));
    let reply = site.reply(site.signed(Delete, "openOrders", "symbol=ALL"));
    let reports: Vec<_> = body(&reply).split("},{").collect();
    assert_eq!(reports.len(), 3, "{}", body(&reply));
    for (report, (_, extras)) in reports.iter().zip(ended) {
        assert!(report.trim_end_matches("}]").ends_with(&format!(r#""side":"BUY"{extras}"#)));
    }
}

/// So may be what another engine calls by the same number.
#[test]
fn a_cancel_of_what_others_may_have_placed_waits_for_the_views() {
    let site = behind();
    let [(one, _), ..] = place_three(&site);
    let others = everything_canceled(4, OrderType::Limit, 100);
    for (connection, order) in [(2, one), (1, others)] {
        site.expect(beyond(connection, &[], Terminal::Canceled(order)));
        let query = format!("symbol=ALL&orderId={}", order.order_id);
        let reply = site.send(site.signed(Delete, "order", &query));
        assert!(reply.try_recv().is_err(), "{connection}");
    }
}
