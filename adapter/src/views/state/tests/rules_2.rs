//! Made-up frames of what came with rules version 2: what the book shows of an order, and where it
//! stands, through every event that moves it.

use crate::views::accounts::Account;
use crate::views::book::Level;
use crate::views::error::FoldError;
use crate::views::fixture::{
    ALICE, BOB, BTC, BTCUSDT, Log, ONE, USDT, btcusdt, limit_order, resting,
};
use crate::views::orders::Order;

use super::{balance, level};
use touchline_protocol::message::command::{
    CancelOrderList, CancelReplace, ChangeSymbol, EVERY, KillAccount, MassCancel, NewOrder,
    PlaceOrderList, ReduceOrder, ReplaceOrder, RevokeKey, RunPending, SYMBOL_OCO, SetAccount,
    SetFees, SetVenueFilters,
};
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{ListOrderStatus, OrderStatus, OrderType, Side};
use touchline_protocol::message::event::{
    Done, MassCanceled, OrderAccepted, OrderCanceled, OrderContinues, OrderListChanged,
    OrderReduced, OrderRefilled, OrderReplaced, OrderTriggered, SelfTradePrevented, Trade,
};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{BookUpdateId, KeyId, OrderId, OrderListId, SymbolId};

fn order(log: &Log, id: u64) -> Order {
    log.order(id)
}

fn asks(log: &Log) -> Vec<Level> {
    log.state.venue.symbols()[0].book.depth(10).asks
}

fn account(log: &Log) -> &Account {
    log.state.accounts.get(BOB).unwrap()
}

/// Bob's sell of 10 at 100 that shows 4 at a time, as order 1.
fn iceberg() -> Log {
    let mut log = Log::venue();
    let (order, accepted) = limit_order(BOB, Side::Sell, 1, 100 * ONE, 10 * ONE);
    let order = NewOrder { iceberg_quantity: 4 * ONE, ..order };
    log.place(&order, &accepted, &[], &resting(&accepted, 1)).unwrap();
    log
}

/// Bob's order 1 sells to Alice's order at its price, all of it what Bob shows.
fn sale(taker: u64, quantity: i64, left: i64) -> Trade {
    Trade {
        symbol: BTCUSDT,
        aggressor_side: Side::Buy.to_wire(),
        price: 100 * ONE,
        quantity,
        quote_amount: quantity * 100,
        maker_order_id: OrderId(1),
        taker_order_id: OrderId(taker),
        maker_account: BOB,
        taker_account: ALICE,
        maker_remaining: left,
        ..Default::default()
    }
}

#[test]
fn an_iceberg_shows_a_slice_at_a_time() {
    let mut log = iceberg();
    assert_eq!(asks(&log), [level(100 * ONE, 4 * ONE)]);
    let (order_2, accepted) = limit_order(ALICE, Side::Buy, 2, 100 * ONE, 5 * ONE);
    let trades = [sale(2, 4 * ONE, 6 * ONE), sale(2, ONE, 5 * ONE)];
    let next = |visible| OrderRefilled {
        order_id: OrderId(1),
        symbol: BTCUSDT,
        visible,
        book_update_id: BookUpdateId(2),
        ..Default::default()
    };
    let refilled = next(4 * ONE);
    let mut result = resting(&accepted, 2);
    (result.executed_quantity, result.executed_quote) = (5 * ONE, 500 * ONE);
    result.status = OrderStatus::Filled.to_wire();
    let events = [
        Event::OrderAccepted(&accepted),
        Event::Trade(&trades[0]),
        Event::OrderRefilled(&refilled),
        Event::Trade(&trades[1]),
        Event::OrderResult(&result),
    ];
    let mut early = Log { state: log.state.clone(), time_ns: log.time_ns };
    let outcome = early.fold(Command::NewOrder(&order_2), &[events[0], events[2]]);
    assert!(matches!(outcome, Err(FoldError::Standing { event: "OrderRefilled", .. })));
    let mut wrong = Log { state: log.state.clone(), time_ns: log.time_ns };
    let refilled_wrongly = next(3 * ONE);
    let events_wrong = [events[0], events[1], Event::OrderRefilled(&refilled_wrongly)];
    let outcome = wrong.fold(Command::NewOrder(&order_2), &events_wrong);
    assert!(matches!(outcome, Err(FoldError::Mismatch { what: "next slice", .. })));
    log.fold(Command::NewOrder(&order_2), &events).unwrap();
    assert_eq!(asks(&log), [level(100 * ONE, 3 * ONE)]);
    assert_eq!((order(&log, 1).remaining(), order(&log, 1).visible), (5 * ONE, 3 * ONE));
}

#[test]
fn more_than_an_iceberg_shows_cannot_be_taken() {
    let mut log = iceberg();
    let (order, accepted) = limit_order(ALICE, Side::Buy, 2, 100 * ONE, 5 * ONE);
    let trade = sale(2, 5 * ONE, 5 * ONE);
    let outcome = log.place(&order, &accepted, &[trade], &resting(&accepted, 2));
    assert_eq!(outcome, Err(FoldError::Negative(-ONE)));
}

#[test]
fn a_reduced_iceberg_gives_up_what_it_hides_first() {
    let mut log = iceberg();
    for (quantity, shown) in [(5, 4), (3, 3)] {
        let reduced = OrderReduced {
            order_id: OrderId(1),
            symbol: BTCUSDT,
            quantity: quantity * ONE,
            book_update_id: BookUpdateId(2),
            ..Default::default()
        };
        let command = ReduceOrder::default();
        log.fold(Command::ReduceOrder(&command), &[Event::OrderReduced(&reduced)]).unwrap();
        assert_eq!(asks(&log), [level(100 * ONE, shown * ONE)]);
    }
    log.cancel(1, 10 * ONE, 3).unwrap();
    assert_eq!(asks(&log), []);
    assert_eq!(balance(&log, BOB, BTC), (1000 * ONE, 0));
}

/// Alice's stop that buys 2 at up to 101, as order `id`.
fn stop(id: u64) -> (NewOrder, OrderAccepted) {
    let (order, accepted) = limit_order(ALICE, Side::Buy, id, 101 * ONE, 2 * ONE);
    let order_type = OrderType::StopLossLimit.to_wire();
    (
        NewOrder { order_type, stop_price: 100 * ONE, ..order },
        OrderAccepted { order_type, ..accepted },
    )
}

#[test]
fn a_stop_waits_until_it_is_triggered_and_rests_then() {
    let mut log = Log::venue();
    let (placed, accepted) = stop(1);
    log.place(&placed, &accepted, &[], &resting(&accepted, 0)).unwrap();
    let waiting = order(&log, 1);
    assert_eq!((waiting.working, waiting.resting, waiting.stop_price), (false, false, 100 * ONE));
    assert_eq!(log.state.venue.symbols()[0].book.depth(1).bids, []);
    assert_eq!(balance(&log, ALICE, USDT).1, 202 * ONE);
    let triggered = |locked| OrderTriggered {
        order_id: OrderId(1),
        account: ALICE,
        symbol: BTCUSDT,
        locked,
        ..Default::default()
    };
    let run = RunPending::default();
    let result = resting(&accepted, 1);
    let mut other = Log { state: log.state.clone(), time_ns: log.time_ns };
    let event = triggered(i64::MIN);
    let outcome = other.fold(Command::RunPending(&run), &[Event::OrderTriggered(&event)]);
    assert_eq!(outcome, Err(FoldError::Negative(i64::MIN)));
    let event = triggered(-2 * ONE);
    let events = [Event::OrderTriggered(&event), Event::OrderResult(&result)];
    log.fold(Command::RunPending(&run), &events).unwrap();
    let found = order(&log, 1);
    assert_eq!((found.working, found.resting, found.stop_price), (true, true, 100 * ONE));
    assert_eq!((found.status, found.update_ms - found.time_ms), (OrderStatus::New, 1));
    assert_eq!(log.state.venue.symbols()[0].book.depth(1).bids, [level(101 * ONE, 2 * ONE)]);
    assert_eq!(balance(&log, ALICE, USDT).1, 200 * ONE);
    let again = log.fold(Command::RunPending(&run), &events[..1]);
    let expected = FoldError::Standing {
        event: "OrderTriggered",
        symbol: BTCUSDT,
        order: OrderId(1),
        found: "rests in the book",
    };
    assert_eq!(again, Err(expected));
}

#[test]
fn a_waiting_stop_neither_takes_nor_makes() {
    let mut log = Log::venue();
    log.rest(BOB, Side::Sell, 1, 100 * ONE, 10 * ONE);
    let (placed, accepted) = stop(2);
    let outcome = log.place(&placed, &accepted, &[sale(2, ONE, 9 * ONE)], &resting(&accepted, 0));
    assert!(matches!(outcome, Err(FoldError::Standing { found: "waits for its trigger", .. })));
}

#[test]
fn a_replaced_order_leaves_its_place_and_rests_at_another() {
    let mut log = iceberg();
    let replaced = OrderReplaced {
        order_id: OrderId(1),
        account: BOB,
        symbol: BTCUSDT,
        price: 99 * ONE,
        quantity: 12 * ONE,
        locked: 2 * ONE,
        book_update_id: BookUpdateId(1),
        ..Default::default()
    };
    let (_, accepted) = limit_order(BOB, Side::Sell, 1, 99 * ONE, 12 * ONE);
    let result = resting(&accepted, 2);
    let command = ReplaceOrder::default();
    let events = [Event::OrderReplaced(&replaced), Event::OrderResult(&result)];
    log.fold(Command::ReplaceOrder(&command), &events).unwrap();
    assert_eq!(asks(&log), [level(99 * ONE, 4 * ONE)]);
    assert_eq!(balance(&log, BOB, BTC), (988 * ONE, 12 * ONE));
    assert_eq!((order(&log, 1).quantity, order(&log, 1).price), (12 * ONE, 99 * ONE));
    let (placed, accepted) = stop(2);
    log.place(&placed, &accepted, &[], &resting(&accepted, 2)).unwrap();
    let replaced = OrderReplaced { order_id: OrderId(2), account: ALICE, ..replaced };
    let outcome = log.fold(Command::ReplaceOrder(&command), &[Event::OrderReplaced(&replaced)]);
    assert!(matches!(outcome, Err(FoldError::Standing { event: "OrderReplaced", .. })));
}

#[test]
fn cancel_and_placement_in_one_transaction() {
    let mut log = iceberg();
    let canceled = OrderCanceled {
        order_id: OrderId(1),
        account: BOB,
        symbol: BTCUSDT,
        quantity: 10 * ONE,
        released: 10 * ONE,
        book_update_id: BookUpdateId(2),
        status: OrderStatus::Canceled.to_wire(),
        ..Default::default()
    };
    let (_, accepted) = limit_order(BOB, Side::Sell, 2, 98 * ONE, 3 * ONE);
    let result = resting(&accepted, 2);
    let name = ClientOrderId::new("second").unwrap();
    let command =
        CancelReplace { client_order_id: name, iceberg_quantity: ONE, ..Default::default() };
    let events = [
        Event::OrderCanceled(&canceled),
        Event::OrderAccepted(&accepted),
        Event::OrderResult(&result),
    ];
    log.fold(Command::CancelReplace(&command), &events).unwrap();
    assert_eq!(asks(&log), [level(98 * ONE, ONE)]);
    let found = log.state.orders.named(BOB, BTCUSDT, name).unwrap();
    assert_eq!((found.order_id, found.iceberg_quantity), (OrderId(2), ONE));
    assert_eq!(order(&log, 1).status, OrderStatus::Canceled);
    let open =
        OrderCanceled { status: OrderStatus::New.to_wire(), order_id: OrderId(2), ..canceled };
    let outcome = log.fold(Command::CancelReplace(&command), &[Event::OrderCanceled(&open)]);
    assert!(matches!(outcome, Err(FoldError::Number { .. })));
}

fn list_changed(type_and_status: (u8, u8), update: u64) -> OrderListChanged {
    OrderListChanged {
        order_list_id: OrderListId(0),
        account: BOB,
        symbol: BTCUSDT,
        limit_order_id: OrderId(2),
        stop_order_id: OrderId(1),
        list_status_type: type_and_status.0,
        list_order_status: type_and_status.1,
        list_client_order_id: ClientOrderId::new("list").unwrap(),
        book_update_id: BookUpdateId(update),
        ..Default::default()
    }
}

/// Bob sells 10 at 110, of which 4 show, or when the price falls to 90: orders 2 and 1 of list 0.
fn list() -> Log {
    let mut log = Log::venue();
    let (_, limit) = limit_order(BOB, Side::Sell, 2, 110 * ONE, 10 * ONE);
    let limit = OrderAccepted {
        order_type: OrderType::LimitMaker.to_wire(),
        order_list_id: OrderListId(0),
        ..limit
    };
    let stop = OrderAccepted {
        order_id: OrderId(1),
        order_type: OrderType::StopLoss.to_wire(),
        price: 0,
        locked: 0,
        ..limit
    };
    let command = PlaceOrderList {
        stop_price: 90 * ONE,
        limit_iceberg_quantity: 4 * ONE,
        limit_client_order_id: ClientOrderId::new("limit").unwrap(),
        stop_client_order_id: ClientOrderId::new("stop").unwrap(),
        ..Default::default()
    };
    let placed = list_changed((2, 1), 1);
    let events = [
        Event::OrderAccepted(&stop),
        Event::OrderAccepted(&limit),
        Event::OrderListChanged(&placed),
    ];
    log.fold(Command::PlaceOrderList(&command), &events).unwrap();
    log
}

fn ended_leg(id: u64, status: OrderStatus, released: i64) -> OrderCanceled {
    OrderCanceled {
        order_id: OrderId(id),
        account: BOB,
        symbol: BTCUSDT,
        quantity: 10 * ONE,
        released,
        book_update_id: BookUpdateId(2),
        order_list_id: OrderListId(0),
        status: status.to_wire(),
        ..Default::default()
    }
}

#[test]
fn a_list_rests_its_limit_leg_and_its_stop_leg_waits() {
    let log = list();
    assert_eq!(asks(&log), [level(110 * ONE, 4 * ONE)]);
    assert_eq!(log.state.venue.symbols()[0].book.last_update(), BookUpdateId(1));
    let (stop, limit) = (order(&log, 1), order(&log, 2));
    assert_eq!((stop.working, stop.stop_price, stop.iceberg_quantity), (false, 90 * ONE, 0));
    assert_eq!((limit.working, limit.stop_price, limit.iceberg_quantity), (true, 0, 4 * ONE));
    assert_eq!((stop.client_order_id.as_str(), limit.client_order_id.as_str()), ("stop", "limit"));
    assert_eq!((stop.order_list_id, limit.order_list_id), (OrderListId(0), OrderListId(0)));
    let list = log.state.lists.get(OrderListId(0)).unwrap();
    assert!(list.is_open());
    assert_eq!(list.client_order_id.as_str(), "list");
    assert_eq!(balance(&log, BOB, BTC), (990 * ONE, 10 * ONE));
}

#[test]
fn a_canceled_list_takes_both_orders_with_it() {
    let mut log = list();
    let stop = ended_leg(1, OrderStatus::Canceled, 0);
    let limit = ended_leg(2, OrderStatus::Canceled, 10 * ONE);
    let done = list_changed((3, 2), 2);
    let events =
        [Event::OrderCanceled(&stop), Event::OrderCanceled(&limit), Event::OrderListChanged(&done)];
    let command = CancelOrderList::default();
    log.fold(Command::CancelOrderList(&command), &events).unwrap();
    assert_eq!(asks(&log), []);
    assert_eq!(balance(&log, BOB, BTC), (1000 * ONE, 0));
    let list = log.state.list(BOB, OrderListId(0)).unwrap().find().unwrap().unwrap();
    assert_eq!((list.status, list.update_ms - list.time_ms), (ListOrderStatus::AllDone, 1));
    let again = log.fold(Command::CancelOrderList(&command), &events[2..]);
    assert_eq!(again, Err(FoldError::ListNotOpen(OrderListId(0))));
    let refused = list_changed((1, 3), 2);
    let outcome =
        log.fold(Command::CancelOrderList(&command), &[Event::OrderListChanged(&refused)]);
    assert!(matches!(outcome, Err(FoldError::Unexpected { .. })));
}

/// The other leg expires in the middle of the aggressor's transaction.
#[test]
fn a_touched_list_loses_its_stop_leg_before_the_aggressor_goes_on() {
    let mut log = list();
    let (placed, accepted) = limit_order(ALICE, Side::Buy, 3, 110 * ONE, 5 * ONE);
    let touch = Trade {
        price: 110 * ONE,
        quote_amount: 440 * ONE,
        maker_order_id: OrderId(2),
        ..sale(3, 4 * ONE, 6 * ONE)
    };
    let refilled = OrderRefilled {
        order_id: OrderId(2),
        symbol: BTCUSDT,
        visible: 4 * ONE,
        book_update_id: BookUpdateId(2),
        ..Default::default()
    };
    let stop = ended_leg(1, OrderStatus::Expired, 0);
    let done = list_changed((3, 2), 2);
    let on = Trade { quantity: ONE, quote_amount: 110 * ONE, maker_remaining: 5 * ONE, ..touch };
    let mut result = resting(&accepted, 2);
    (result.executed_quantity, result.executed_quote) = (5 * ONE, 550 * ONE);
    result.status = OrderStatus::Filled.to_wire();
    let events = [
        Event::OrderAccepted(&accepted),
        Event::Trade(&touch),
        Event::OrderRefilled(&refilled),
        Event::OrderCanceled(&stop),
        Event::OrderListChanged(&done),
        Event::Trade(&on),
        Event::OrderResult(&result),
    ];
    log.fold(Command::NewOrder(&placed), &events).unwrap();
    assert_eq!(asks(&log), [level(110 * ONE, 3 * ONE)]);
    let stop = order(&log, 1);
    assert_eq!((stop.status, stop.working), (OrderStatus::Expired, false));
    let limit = order(&log, 2);
    assert_eq!((limit.status, limit.remaining()), (OrderStatus::PartiallyFilled, 5 * ONE));
    assert_eq!(log.state.lists.open().count(), 0);
}

#[test]
fn a_list_whose_orders_are_not_its_own_is_named() {
    let mut log = Log::venue();
    log.rest(BOB, Side::Sell, 1, 100 * ONE, ONE);
    log.rest(BOB, Side::Sell, 2, 100 * ONE, ONE);
    let placed = list_changed((2, 1), 2);
    let command = PlaceOrderList::default();
    let event = Event::OrderListChanged(&placed);
    let outcome = log.fold(Command::PlaceOrderList(&command), &[event]);
    assert!(matches!(outcome, Err(FoldError::Mismatch { what: "leg's list", .. })));
    let (_, market) = limit_order(BOB, Side::Sell, 3, 100 * ONE, ONE);
    let outcome = log.fold(Command::PlaceOrderList(&command), &[Event::OrderAccepted(&market)]);
    let expected = FoldError::Unexpected { event: "OrderAccepted", command: "PlaceOrderList" };
    assert_eq!(outcome, Err(expected), "a list has no LIMIT order");
}

#[test]
fn orders_of_one_owner_that_met_go_on_as_their_own_events_say() {
    let mut log = Log::venue();
    log.rest(BOB, Side::Sell, 1, 100 * ONE, ONE);
    let (placed, accepted) = limit_order(BOB, Side::Buy, 2, 100 * ONE, ONE);
    let prevented = SelfTradePrevented {
        maker_order_id: OrderId(1),
        taker_order_id: OrderId(2),
        account: BOB,
        symbol: BTCUSDT,
        price: 100 * ONE,
        quantity: ONE,
        ..Default::default()
    };
    let maker = OrderCanceled {
        order_id: OrderId(1),
        symbol: BTCUSDT,
        released: ONE,
        book_update_id: BookUpdateId(2),
        status: OrderStatus::Expired.to_wire(),
        ..Default::default()
    };
    let result = resting(&accepted, 2);
    let mut other = Log { state: log.state.clone(), time_ns: log.time_ns };
    let somebody = SelfTradePrevented { account: ALICE, ..prevented };
    let events = [Event::OrderAccepted(&accepted), Event::SelfTradePrevented(&somebody)];
    let outcome = other.fold(Command::NewOrder(&placed), &events);
    assert!(matches!(outcome, Err(FoldError::Mismatch { what: "maker's owner", .. })));
    let events = [
        Event::OrderAccepted(&accepted),
        Event::SelfTradePrevented(&prevented),
        Event::OrderCanceled(&maker),
        Event::OrderResult(&result),
    ];
    log.fold(Command::NewOrder(&placed), &events).unwrap();
    assert_eq!(asks(&log), []);
    assert_eq!(log.state.venue.symbols()[0].book.depth(1).bids, [level(100 * ONE, ONE)]);
}

/// The flag holds also when the cancels are not done, or there is nothing to cancel.
#[test]
fn a_killed_account_is_killed_whatever_ends_the_transaction() {
    let mut log = iceberg();
    let kill = |killed| KillAccount { account: BOB, killed, ..Default::default() };
    let continues = OrderContinues { symbol: SymbolId(EVERY), ..Default::default() };
    let events = [Event::OrderContinues(&continues)];
    log.fold(Command::KillAccount(&kill(1)), &events).unwrap();
    assert!(account(&log).killed);
    log.done(Command::KillAccount(&kill(0)), 0);
    assert!(!account(&log).killed);
    let canceled = ended_leg(1, OrderStatus::Canceled, 10 * ONE);
    let all = MassCanceled {
        account: BOB,
        symbol: SymbolId(EVERY),
        orders: 1,
        lists: 0,
        ..Default::default()
    };
    let events = [Event::OrderCanceled(&canceled), Event::MassCanceled(&all)];
    log.fold(Command::KillAccount(&kill(1)), &events).unwrap();
    assert!(account(&log).killed);
    let mass = MassCancel::default();
    log.fold(Command::MassCancel(&mass), &events[1..]).unwrap();
    let revoke = RevokeKey { key: KeyId(1), ..Default::default() };
    log.fold(Command::RevokeKey(&revoke), &events[1..]).unwrap();
    assert!(log.state.accounts.key(KeyId(1)).unwrap().revoked);
    let unknown = KillAccount { account: touchline_protocol::units::AccountId(9), ..kill(1) };
    let outcome = log.fold(Command::KillAccount(&unknown), &[]);
    assert!(matches!(outcome, Err(FoldError::UnknownAccount(_))));
}

#[test]
fn settings_of_accounts_symbols_and_exchange() {
    let mut log = Log::venue();
    let set = SetAccount { account: BOB, flags: 5, permissions: 3, ..Default::default() };
    log.done(Command::SetAccount(&set), 0);
    assert_eq!((account(&log).flags, account(&log).permissions), (5, 3));
    let fees = SetFees {
        account: BOB,
        symbol: SymbolId(EVERY),
        maker_rate: 1,
        taker_rate: 2,
        buyer_rate: 3,
        seller_rate: 4,
        ..Default::default()
    };
    log.done(Command::SetFees(&fees), 0);
    let of_a_symbol = SetFees { symbol: BTCUSDT, maker_rate: 9, ..fees };
    log.done(Command::SetFees(&of_a_symbol), 0);
    let found = account(&log);
    let rates = [found.maker_rate, found.taker_rate, found.buyer_rate, found.seller_rate];
    assert_eq!(rates, [1, 2, 3, 4]);
    let exchange = SetVenueFilters { max_orders: 7, max_algo_orders: 8, ..Default::default() };
    log.done(Command::SetVenueFilters(&exchange), 0);
    assert_eq!((log.state.venue.max_orders, log.state.venue.max_algo_orders), (7, 8));
    log.rest(BOB, Side::Sell, 1, 100 * ONE, ONE);
    let mut changed = ChangeSymbol {
        symbol: BTCUSDT,
        order_types: 0b1000_0110,
        flags: SYMBOL_OCO,
        permissions: 3,
        filters: btcusdt().filters,
        ..Default::default()
    };
    changed.filters.max_orders = 11;
    log.done(Command::ChangeSymbol(&changed), 0);
    let symbol = &log.state.venue.symbols()[0];
    assert_eq!(
        (symbol.order_types, symbol.flags, symbol.permissions),
        (0b1000_0110, SYMBOL_OCO, 3)
    );
    assert_eq!(symbol.filters.max_orders, 11);
    assert_eq!(asks(&log), [level(100 * ONE, ONE)], "its book stays");
    let elsewhere = ChangeSymbol { symbol: SymbolId(9), ..changed };
    let done = Done::default();
    let outcome = log.fold(Command::ChangeSymbol(&elsewhere), &[Event::Done(&done)]);
    assert_eq!(outcome, Err(FoldError::UnknownSymbol(SymbolId(9))));
}
