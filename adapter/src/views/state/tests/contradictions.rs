//! Frames that contradict what the log said before, one field each: all are refused, by name. And what each event that
//! moves an order says of when it changed last.

use crate::views::error::FoldError;
use crate::views::fixture::{ALICE, BEGIN_NS, BOB, BTC, BTCUSDT, Log, ONE, limit_order, resting};
use crate::views::orders::Order;

use touchline_protocol::message::command::{
    NewOrder, PlaceOrderList, ReduceOrder, ReplaceOrder, RunPending,
};
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{
    ListOrderStatus, ListStatusType, OrderStatus, OrderType, Side,
};
use touchline_protocol::message::event::{
    OrderAccepted, OrderContinues, OrderListChanged, OrderReduced, OrderRefilled, OrderReplaced,
    OrderResult, Trade,
};
use touchline_protocol::units::{BookUpdateId, OrderId, OrderListId, TradeId};

const STOP_LOSS_LIMIT: u8 = OrderType::StopLossLimit.to_wire();
const LIMIT_MAKER: u8 = OrderType::LimitMaker.to_wire();

fn mismatch(what: &'static str, found: i64, expected: i64) -> FoldError {
    FoldError::Mismatch { what, found: found.into(), expected: expected.into() }
}

fn standing(event: &'static str, order: u64, found: &'static str) -> FoldError {
    FoldError::Standing { event, symbol: BTCUSDT, order: OrderId(order), found }
}

/// Bob sells 1 at 100 (order 1) and would buy 1 at 90 (order 3), Alice would sell 1 at 200 (order 4) and waits to buy 1
/// at 300 (order 5).
fn venue() -> Log {
    let mut log = Log::venue();
    log.rest(BOB, Side::Sell, 1, 100 * ONE, ONE);
    log.rest(BOB, Side::Buy, 3, 90 * ONE, ONE);
    log.rest(ALICE, Side::Sell, 4, 200 * ONE, ONE);
    let (order, accepted) = limit_order(ALICE, Side::Buy, 5, 300 * ONE, ONE);
    let order = NewOrder { order_type: STOP_LOSS_LIMIT, stop_price: 250 * ONE, ..order };
    let accepted = OrderAccepted { order_type: STOP_LOSS_LIMIT, ..accepted };
    log.place(&order, &accepted, &[], &resting(&accepted, 5)).unwrap();
    log
}

/// Folds Alice's order 9, which buys what Bob's order 1 sells: as `change` has it.
fn buy(
    change: impl FnOnce(&mut OrderAccepted, &mut Trade, &mut OrderResult),
) -> Result<Log, FoldError> {
    let mut log = venue();
    let (order, mut accepted) = limit_order(ALICE, Side::Buy, 9, 100 * ONE, ONE);
    let mut trade = Trade {
        trade_id: TradeId(1),
        symbol: BTCUSDT,
        aggressor_side: Side::Buy.to_wire(),
        price: 100 * ONE,
        quantity: ONE,
        quote_amount: 100 * ONE,
        maker_order_id: OrderId(1),
        taker_order_id: OrderId(9),
        maker_account: BOB,
        taker_account: ALICE,
        ..Default::default()
    };
    let mut result = OrderResult {
        executed_quantity: ONE,
        executed_quote: 100 * ONE,
        status: OrderStatus::Filled.to_wire(),
        ..resting(&accepted, 9)
    };
    change(&mut accepted, &mut trade, &mut result);
    log.place(&order, &accepted, &[trade], &result).map(|()| log)
}

#[test]
fn a_placement_is_taken_as_a_whole_or_what_is_wrong_is_named() {
    let log = buy(|_, _, _| {}).unwrap();
    let order = |id| log.order(id);
    assert_eq!([1, 9].map(|id| order(id).status), [OrderStatus::Filled; 2]);
    assert_eq!(
        [1, 9].map(|id| (order(id).first_trade, order(id).last_trade)),
        [(TradeId(1), TradeId(1)); 2]
    );

    type Wrong = fn(&mut OrderAccepted, &mut Trade, &mut OrderResult);
    let cases: [(Wrong, FoldError); 21] = [
        (|accepted, _, _| accepted.locked = -1, FoldError::Negative(-1)),
        (|accepted, _, _| accepted.price = -2, FoldError::Negative(-2)),
        (|accepted, _, _| accepted.quantity = -3, FoldError::Negative(-3)),
        (|_, trade, _| trade.price = -1, FoldError::Negative(-1)),
        (|_, trade, _| trade.quantity = -2, FoldError::Negative(-2)),
        (|_, trade, _| trade.quote_amount = -3, FoldError::Negative(-3)),
        (|_, trade, _| trade.maker_commission = -4, FoldError::Negative(-4)),
        (|_, trade, _| trade.taker_commission = -5, FoldError::Negative(-5)),
        (|_, trade, _| trade.maker_released = -6, FoldError::Negative(-6)),
        (
            |_, trade, _| trade.taker_order_id = OrderId(4),
            standing("Trade as aggressor", 4, "rests in the book"),
        ),
        (
            |_, trade, _| trade.taker_order_id = OrderId(5),
            standing("Trade as aggressor", 5, "waits for its trigger"),
        ),
        (
            |_, trade, _| trade.maker_order_id = OrderId(5),
            standing("Trade as maker", 5, "waits for its trigger"),
        ),
        // Both have what it would cost.
        (
            |_, trade, _| {
                trade.aggressor_side = Side::Sell.to_wire();
                trade.quote_amount = 90 * ONE;
            },
            mismatch("maker's side", 2, 1),
        ),
        (|_, trade, _| trade.price = 99 * ONE, mismatch("maker's price", 99 * ONE, 100 * ONE)),
        (|_, trade, _| trade.maker_remaining = 1, mismatch("maker's remaining quantity", 1, 0)),
        (
            |_, trade, _| {
                trade.quantity = ONE / 2;
                trade.maker_remaining = ONE / 2;
            },
            mismatch("executed quantity", ONE, ONE / 2),
        ),
        (|_, _, result| result.released = -1, FoldError::Negative(-1)),
        (|_, _, result| result.quantity = 1, mismatch("quantity", 1, ONE)),
        (|_, _, result| result.executed_quantity = 2, mismatch("executed quantity", 2, ONE)),
        (|_, _, result| result.executed_quote = 3, mismatch("executed quote", 3, 100 * ONE)),
        // Nothing is left that could rest.
        (
            |_, _, result| result.status = OrderStatus::PartiallyFilled.to_wire(),
            standing("OrderResult", 9, "has nothing left"),
        ),
    ];
    for (index, (wrong, expected)) in cases.into_iter().enumerate() {
        assert_eq!(buy(wrong).err(), Some(expected), "case {index}");
    }
}

#[test]
fn an_order_that_rests_is_moved_by_what_is_true_of_it_only() {
    let pending = RunPending::default();
    let continues = OrderContinues {
        order_id: OrderId(1),
        symbol: BTCUSDT,
        remaining: 7,
        book_update_id: BookUpdateId(9),
        ..Default::default()
    };
    // A stop that waits shows nothing yet.
    let refilled = OrderRefilled {
        order_id: OrderId(5),
        symbol: BTCUSDT,
        visible: ONE,
        book_update_id: BookUpdateId(9),
        ..Default::default()
    };
    for (event, expected) in [
        (Event::OrderContinues(&continues), mismatch("remaining quantity", 7, ONE)),
        (Event::OrderRefilled(&refilled), standing("OrderRefilled", 5, "waits for its trigger")),
    ] {
        assert_eq!(venue().fold(Command::RunPending(&pending), &[event]), Err(expected));
    }
}

/// A list of Bob's: he sells 1 at 110 (order 7), or by a stop (order 6), as `change` has its placement.
fn place_list(change: impl FnOnce(&mut [OrderAccepted; 2])) -> Result<Log, FoldError> {
    let mut log = venue();
    let list = PlaceOrderList { symbol: BTCUSDT, ..Default::default() };
    let mut legs = [(6, STOP_LOSS_LIMIT), (7, LIMIT_MAKER)].map(|(id, order_type)| {
        let (_, accepted) = limit_order(BOB, Side::Sell, id, 110 * ONE, ONE);
        OrderAccepted { order_list_id: OrderListId(0), order_type, ..accepted }
    });
    // What the list holds it holds once.
    legs[1].locked = 0;
    change(&mut legs);
    let placed = OrderListChanged {
        order_list_id: OrderListId(0),
        account: BOB,
        symbol: BTCUSDT,
        limit_order_id: OrderId(7),
        stop_order_id: OrderId(6),
        list_status_type: ListStatusType::ExecStarted.to_wire(),
        list_order_status: ListOrderStatus::Executing.to_wire(),
        book_update_id: BookUpdateId(7),
        ..Default::default()
    };
    let events = [
        Event::OrderAccepted(&legs[0]),
        Event::OrderAccepted(&legs[1]),
        Event::OrderListChanged(&placed),
    ];
    log.fold(Command::PlaceOrderList(&list), &events).map(|()| log)
}

#[test]
fn the_legs_of_a_list_are_its_own() {
    let log = place_list(|_| {}).unwrap();
    assert!(!log.order(6).working && log.order(7).resting);
    for leg in [0, 1] {
        let other_list = place_list(|legs| legs[leg].order_list_id = OrderListId(3));
        assert_eq!(other_list.err(), Some(mismatch("leg's list", 3, 0)));
        let other_owner = place_list(|legs| legs[leg].account = ALICE);
        assert_eq!(other_owner.err(), Some(mismatch("leg's owner", 1, 2)));
    }
}

#[test]
fn an_order_changed_last_when_an_event_moved_it() {
    let mut log = Log::venue();
    let (order, accepted) = limit_order(BOB, Side::Sell, 1, 100 * ONE, 3 * ONE);
    log.place(&order, &accepted, &[], &resting(&accepted, 1)).unwrap();
    let moments = |log: &Log| {
        let Order { time_ms, update_ms, .. } = log.order(1);
        let since = |ms: u64| ms - BEGIN_NS / 1_000_000;
        (since(time_ms), since(update_ms))
    };
    let placed = moments(&log).0;
    let reduced = OrderReduced {
        order_id: OrderId(1),
        symbol: BTCUSDT,
        quantity: 2 * ONE,
        released: ONE,
        book_update_id: BookUpdateId(2),
        ..Default::default()
    };
    let reduce = ReduceOrder::default();
    log.fold(Command::ReduceOrder(&reduce), &[Event::OrderReduced(&reduced)]).unwrap();
    assert_eq!(moments(&log), (placed, placed + 1));
    let replaced = OrderReplaced {
        order_id: OrderId(1),
        symbol: BTCUSDT,
        price: 101 * ONE,
        quantity: 2 * ONE,
        book_update_id: BookUpdateId(3),
        ..Default::default()
    };
    let result = OrderResult { quantity: 2 * ONE, ..resting(&accepted, 4) };
    let replace = ReplaceOrder::default();
    let events = [Event::OrderReplaced(&replaced), Event::OrderResult(&result)];
    log.fold(Command::ReplaceOrder(&replace), &events).unwrap();
    assert_eq!(moments(&log), (placed, placed + 2));
    // It rests already.
    let again = log.fold(Command::ReplaceOrder(&replace), &[Event::OrderResult(&result)]);
    assert_eq!(again, Err(standing("OrderResult", 1, "rests in the book")));
}

#[test]
fn what_was_saved_of_a_balance_is_not_below_nothing() {
    let mut log = Log::venue();
    for (saved, negative) in [([-1, 0], -1), ([0, -2], -2)] {
        let restored =
            log.state.accounts.restore_balance(BOB, BTC, &bytemuck::cast::<[i64; 2], _>(saved), 3);
        assert_eq!(restored, Err(FoldError::Negative(negative)));
    }
}
