//! Cancels of order lists, of one of their orders, and of all that is open on a symbol.

use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{ListOrderStatus, OrderStatus, OrderType, Side};
use touchline_protocol::message::event::{MassCanceled, OrderCanceled, OrderListChanged};
use touchline_protocol::units::{BookUpdateId, OrderId, OrderListId, Position};

use super::{OCO, ORDERS, PLACE, id, list_changed, log, place_list};
use crate::http::Method::{Delete, Post};
use crate::link::{Decision, OrderCommand, Outcome, Terminal, Told};
use crate::spot::tests::fixture::{DECIDED_NS, Site, body, header};
use crate::views::fixture::{ALICE, BTCUSDT, ONE};

fn leg_canceled(order: u64, name: &str, kind: OrderType, price: i64) -> OrderCanceled {
    OrderCanceled {
        order_id: OrderId(order),
        account: ALICE,
        symbol: OCO,
        price,
        quantity: 2 * ONE,
        order_list_id: OrderListId(0),
        status: OrderStatus::Canceled.to_wire(),
        side: Side::Sell.to_wire(),
        order_type: kind.to_wire(),
        time_in_force: 1,
        client_order_id: id(name),
        ..Default::default()
    }
}

fn legs_canceled() -> Vec<OrderCanceled> {
    vec![
        leg_canceled(7, "down", OrderType::StopLossLimit, 89 * ONE),
        leg_canceled(8, "up", OrderType::LimitMaker, 110 * ONE),
    ]
}

fn told(canceled: Vec<OrderCanceled>, terminal: Terminal) -> Outcome {
    told_with(Told { canceled, ..Told::default() }, terminal)
}

fn told_with(told: Told, terminal: Terminal) -> Outcome {
    Outcome::from(Decision {
        connection: 1,
        position: Position(0),
        time_ns: DECIDED_NS,
        told,
        terminal,
    })
}

const STOP_CANCELED: &str = concat!(
    r#"{"symbol":"OCO","origClientOrderId":"down","orderId":7,"orderListId":0,"#,
    r#""clientOrderId":"end","price":"89.00000000","origQty":"2.00000000","#,
    r#""executedQty":"0.00000000","cummulativeQuoteQty":"0.00000000","status":"CANCELED","#,
    r#""timeInForce":"GTC","type":"STOP_LOSS_LIMIT","side":"SELL","#,
    r#""stopPrice":"90.00000000","icebergQty":"1.00000000"}"#,
);

const LIMIT_CANCELED: &str = concat!(
    r#"{"symbol":"OCO","origClientOrderId":"up","orderId":8,"orderListId":0,"#,
    r#""clientOrderId":"end","price":"110.00000000","origQty":"2.00000000","#,
    r#""executedQty":"0.00000000","cummulativeQuoteQty":"0.00000000","status":"CANCELED","#,
    r#""timeInForce":"GTC","type":"LIMIT_MAKER","side":"SELL"}"#,
);

fn list_canceled() -> String {
    format!(
        concat!(
            r#"{{"orderListId":0,"contingencyType":"OCO","listStatusType":"ALL_DONE","#,
            r#""listOrderStatus":"ALL_DONE","listClientOrderId":"both","#,
            r#""transactionTime":1700000100007,"symbol":"OCO",{},"orderReports":[{},{}]}}"#,
        ),
        ORDERS, STOP_CANCELED, LIMIT_CANCELED,
    )
}

#[test]
fn a_cancelled_list_is_reported_with_both_orders() {
    let mut log = log();
    place_list(&mut log);
    let site = Site::new(log);
    let done = || Terminal::List(list_changed(ListOrderStatus::AllDone));
    for query in
        ["&orderListId=0", "&listClientOrderId=both", "&orderListId=0&listClientOrderId=both"]
    {
        site.expect(told(legs_canceled(), done()));
        let query = format!("symbol=OCO{query}&newClientOrderId=end");
        let reply = site.reply(site.signed(Delete, "orderList", &query));
        assert_eq!((reply.status, body(&reply)), (200, &*list_canceled()), "{query}");
        assert_eq!(header(&reply, "X-SVC-ORDER-COUNT-10S"), None, "cancels are not counted");
    }
    let OrderCommand::CancelList(cancel) = site.command() else { panic!("not a cancel") };
    assert_eq!((cancel.order_list_id, cancel.list_client_order_id), (OrderListId(0), id("both")));
    assert_eq!(cancel.cancel_client_order_id, id("end"));
    site.expect(told(legs_canceled(), done()));
    site.reply(site.signed(Delete, "orderList", "symbol=OCO&listClientOrderId=both"));
    let OrderCommand::CancelList(cancel) = site.command() else { panic!("not a cancel") };
    assert_eq!(cancel.order_list_id, OrderListId::NONE);
    assert_eq!(cancel.cancel_client_order_id.as_str().len(), 22);
}

#[test]
fn a_cancelled_order_of_a_list_is_reported_alone() {
    let mut log = log();
    place_list(&mut log);
    let site = Site::new(log);
    for (query, expected) in [
        ("orderId=7", STOP_CANCELED),
        ("orderId=8", LIMIT_CANCELED),
        ("origClientOrderId=down", STOP_CANCELED),
        ("origClientOrderId=up", LIMIT_CANCELED),
    ] {
        let done = Terminal::List(list_changed(ListOrderStatus::AllDone));
        site.expect(told(legs_canceled(), done));
        let query = format!("symbol=OCO&{query}&newClientOrderId=end");
        let reply = site.reply(site.signed(Delete, "order", &query));
        assert_eq!((reply.status, body(&reply)), (200, expected), "{query}");
    }
}

/// It was placed over this adapter, which need not wait for views that are far behind to know what with.
#[test]
fn a_cancel_of_a_list_that_this_adapter_has_placed_needs_no_views() {
    let site = Site::new(log());
    let expect = |canceled, status| {
        let told = Told { canceled, ..Told::default() };
        let (position, terminal) = (Position(640), Terminal::List(list_changed(status)));
        let decision = Decision { connection: 1, position, time_ns: DECIDED_NS, told, terminal };
        site.expect(Outcome::from(decision));
    };
    expect(vec![], ListOrderStatus::Executing);
    assert_eq!(site.reply(site.signed(Post, "order/oco", PLACE)).status, 200);
    for (path, query, expected) in [
        ("orderList", "orderListId=0", &*list_canceled()),
        ("order", "orderId=7", STOP_CANCELED),
        ("order", "orderId=8", LIMIT_CANCELED),
    ] {
        expect(legs_canceled(), ListOrderStatus::AllDone);
        let query = format!("symbol=OCO&{query}&newClientOrderId=end");
        let reply = site.reply(site.signed(Delete, path, &query));
        assert_eq!((reply.status, body(&reply)), (200, expected), "{path}?{query}");
    }
}

/// The reply ring overflowed: what it lost is in the log, and so in the views.
#[test]
fn what_a_cancel_of_a_list_lost_comes_from_the_views() {
    let mut log = log();
    place_list(&mut log);
    let done = list_changed(ListOrderStatus::AllDone);
    let [stop, limit] = [0, 1].map(|index| legs_canceled()[index]);
    let limit = OrderCanceled { released: 2 * ONE, book_update_id: BookUpdateId(2), ..limit };
    let stop = OrderCanceled { book_update_id: BookUpdateId(2), ..stop };
    let ended = OrderListChanged { book_update_id: BookUpdateId(2), ..done };
    let events = [
        Event::OrderCanceled(&stop),
        Event::OrderCanceled(&limit),
        Event::OrderListChanged(&ended),
    ];
    log.fold(Command::CancelOrderList(&Default::default()), &events).unwrap();
    let site = Site::new(log);
    for canceled in [vec![], vec![stop]] {
        site.expect(told(canceled, Terminal::List(done)));
        let query = "symbol=OCO&orderListId=0&newClientOrderId=end";
        let reply = site.reply(site.signed(Delete, "orderList", query));
        assert_eq!((reply.status, body(&reply)), (200, &*list_canceled()));
    }
}

#[test]
fn a_cancel_of_all_reports_orders_and_lists_in_turn() {
    let mut log = log();
    place_list(&mut log);
    log.rest(ALICE, Side::Sell, 5, 120 * ONE, ONE);
    let site = Site::new(log);
    let single = OrderCanceled {
        order_id: OrderId(5),
        account: ALICE,
        symbol: BTCUSDT,
        price: 120 * ONE,
        quantity: ONE,
        order_list_id: OrderListId::NONE,
        status: OrderStatus::Canceled.to_wire(),
        side: Side::Sell.to_wire(),
        order_type: 1,
        time_in_force: 1,
        client_order_id: id("c5"),
        ..Default::default()
    };
    let all = |orders, lists| MassCanceled { orders, lists, ..Default::default() };
    let canceled = [legs_canceled(), vec![single]].concat();
    let lists = vec![list_changed(ListOrderStatus::AllDone)];
    let told = Told { canceled, lists, ..Told::default() };
    site.expect(told_with(told.clone(), Terminal::CanceledAll(all(3, 1))));
    let reply = site.reply(site.signed(Delete, "openOrders", "symbol=OCO"));
    let OrderCommand::CancelAll(cancel) = site.command() else { panic!("not a cancel") };
    let name = cancel.cancel_client_order_id;
    assert_eq!((cancel.symbol, name.as_str().len()), (OCO, 22));
    let with_name = |text: &str| text.replace(r#""end""#, &format!("{:?}", name.as_str()));
    let expected = format!(
        concat!(
            r#"[{},{{"symbol":"OCO","origClientOrderId":"c5","orderId":5,"orderListId":-1,"#,
            r#""clientOrderId":"end","price":"120.00000000","origQty":"1.00000000","#,
            r#""executedQty":"0.00000000","cummulativeQuoteQty":"0.00000000","#,
            r#""status":"CANCELED","timeInForce":"GTC","type":"LIMIT","side":"SELL"}}]"#,
        ),
        list_canceled()
    );
    assert_eq!((reply.status, body(&reply)), (200, &*with_name(&expected)));
    // One reply was lost: which order it was about, nobody can say.
    site.expect(told_with(told, Terminal::CanceledAll(all(4, 1))));
    let reply = site.reply(site.signed(Delete, "openOrders", "symbol=OCO"));
    assert!(body(&reply).starts_with(r#"{"code":-1006,"#));
}
