//! What the fold tells of events one by one; that it tells the core's books is held against the core.

use super::*;
use touchline_protocol::feed::broadcast::message_bytes;
use touchline_protocol::message::command::{NewOrder, RunPending};
use touchline_protocol::message::decode::{self, FeedMessage};
use touchline_protocol::units::{AggregateTradeId, TradeId};

const SYMBOL: SymbolId = SymbolId(0);

/// Folds a transaction of these events; tells its messages in words.
fn told(fold: &mut Fold, command: Command<'_>, events: &[Event<'_>]) -> Result<String, FoldError> {
    let messages = fold.fold(Position(64), 1, command, events.iter().copied().map(Ok))?;
    let of = |words: &mut _| match decode::feed(message_bytes(words)).unwrap() {
        FeedMessage::FeedOrderAdded(it) => {
            format!("order {}: {} at {}", it.order_id.0, it.quantity, it.price)
        }
        FeedMessage::FeedOrderDeleted(it) => {
            format!("no order {}: {} at {}", it.order_id.0, it.quantity, it.price)
        }
        FeedMessage::FeedTrade(it) => {
            let numbers = (it.trade_id.0, it.aggregate_trade_id.0);
            format!("trade {numbers:?} with {}: {} at {}", it.order_id.0, it.quantity, it.price)
        }
        other => other.name().to_owned(),
    };
    Ok(messages.iter_mut().map(of).collect::<Vec<_>>().join(", "))
}

/// The same of a transaction whose command does not matter.
fn tells(fold: &mut Fold, events: &[Event<'_>]) -> Result<String, FoldError> {
    told(fold, Command::RunPending(&RunPending::default()), events)
}

fn accepted(order: u64, order_type: OrderType, quantity: i64) -> OrderAccepted {
    OrderAccepted {
        symbol: SYMBOL,
        order_id: OrderId(order),
        side: Side::Sell.to_wire(),
        order_type: order_type.to_wire(),
        price: 100,
        quantity,
        ..Default::default()
    }
}

fn result(order: u64, status: OrderStatus, quantity: i64) -> OrderResult {
    OrderResult {
        symbol: SYMBOL,
        order_id: OrderId(order),
        status: status.to_wire(),
        quantity,
        ..Default::default()
    }
}

fn trade(maker: u64, quantity: i64, maker_remaining: i64) -> Trade {
    Trade {
        symbol: SYMBOL,
        maker_order_id: OrderId(maker),
        aggressor_side: Side::Buy.to_wire(),
        price: 100,
        quantity,
        maker_remaining,
        trade_id: TradeId(8),
        aggregate_trade_id: AggregateTradeId(7),
        ..Default::default()
    }
}

fn replaced(order: u64, price: i64, quantity: i64) -> OrderReplaced {
    OrderReplaced {
        symbol: SYMBOL,
        order_id: OrderId(order),
        price,
        quantity,
        ..Default::default()
    }
}

fn canceled(order: u64) -> OrderCanceled {
    OrderCanceled { symbol: SYMBOL, order_id: OrderId(order), ..Default::default() }
}

/// Orders 1, 2 and so on of six each that rest, and show so much of it at a time.
fn resting(orders: u64, slice: i64) -> Fold {
    let mut fold = Fold::new();
    let command = NewOrder { iceberg_quantity: slice, ..Default::default() };
    for order in 1..=orders {
        let (placed, rests) = (accepted(order, OrderType::Limit, 6), OrderStatus::New);
        let events = [Event::OrderAccepted(&placed), Event::OrderResult(&result(order, rests, 6))];
        let shown = if slice == 0 { 6 } else { slice };
        let expected = format!("order {order}: {shown} at 100");
        assert_eq!(told(&mut fold, Command::NewOrder(&command), &events), Ok(expected));
    }
    fold
}

#[test]
fn a_trade_is_told_with_its_own_number_and_that_of_what_it_is_a_part_of() {
    let mut fold = resting(1, 0);
    let trades = tells(&mut fold, &[Event::Trade(&trade(1, 2, 4))]);
    assert_eq!(trades.as_deref(), Ok("trade (8, 7) with 1: 2 at 100"));
}

#[test]
fn an_order_that_was_replaced_and_does_not_rest_has_left_the_book_in_the_same_transaction() {
    let mut fold = resting(1, 0);
    let left = tells(&mut fold, &[Event::OrderReplaced(&replaced(1, 90, 8))]);
    assert_eq!(left.as_deref(), Ok("no order 1: 6 at 100"));
    let gone = tells(&mut fold, &[Event::OrderCanceled(&canceled(1))]);
    assert_eq!(gone.as_deref(), Ok(""), "it was in no book");
}

#[test]
fn an_order_that_comes_to_rest_is_not_taken_for_another_one_that_was_replaced() {
    let mut fold = resting(1, 0);
    let second = accepted(2, OrderType::Limit, 3);
    assert_eq!(tells(&mut fold, &[Event::OrderAccepted(&second)]).as_deref(), Ok(""));
    let (moved, rests) = (replaced(1, 90, 6), result(2, OrderStatus::New, 3));
    let both = tells(&mut fold, &[Event::OrderReplaced(&moved), Event::OrderResult(&rests)]);
    assert_eq!(both.as_deref(), Ok("order 2: 3 at 100, no order 1: 6 at 100"));
}

#[test]
fn an_iceberg_between_two_slices_leaves_nothing_in_the_book() {
    let mut fold = resting(2, 2);
    let trades = [trade(1, 2, 4), trade(2, 2, 4)];
    let taken = tells(&mut fold, &trades.each_ref().map(Event::Trade));
    assert!(taken.is_ok(), "{taken:?}");
    let replaced = tells(&mut fold, &[Event::OrderReplaced(&replaced(1, 90, 4))]);
    assert_eq!(replaced.as_deref(), Ok(""));
    let canceled = tells(&mut fold, &[Event::OrderCanceled(&canceled(2))]);
    assert_eq!(canceled.as_deref(), Ok(""));
}

/// And nothing is kept of it, however long the feed lives.
#[test]
fn an_order_that_is_filled_ended_or_cancelled_is_open_no_more() {
    let (filled, taker) = (trade(1, 6, 0), accepted(9, OrderType::Limit, 6));
    let ended = result(9, OrderStatus::Filled, 6);
    let ends: [(u64, &[Event<'_>]); 3] = [
        (1, &[Event::Trade(&filled)]),
        (9, &[Event::OrderAccepted(&taker), Event::OrderResult(&ended)]),
        (1, &[Event::OrderCanceled(&canceled(1))]),
    ];
    for (order, events) in ends {
        let mut fold = resting(1, 0);
        assert!(tells(&mut fold, events).is_ok());
        assert_eq!(fold.orders.len(), usize::from(order != 1));
        let not_open =
            FoldError::NotOpen { event: "OrderCanceled", symbol: SYMBOL, order: OrderId(order) };
        let again = tells(&mut fold, &[Event::OrderCanceled(&canceled(order))]);
        assert_eq!(again, Err(not_open));
    }
}

#[test]
fn what_does_not_go_with_where_an_order_stands_ends_the_feed() {
    let (stop, taker) = (accepted(2, OrderType::StopLoss, 6), accepted(3, OrderType::Limit, 6));
    let placed = [Event::OrderAccepted(&stop), Event::OrderAccepted(&taker)];
    let (waits, takes, rests) = ("waiting for its trigger", "taking", "in the book");
    let fired = OrderTriggered { symbol: SYMBOL, order_id: OrderId(1), ..Default::default() };
    let refilled = OrderRefilled { symbol: SYMBOL, order_id: OrderId(2), ..Default::default() };
    let cases = [
        (Event::Trade(&trade(2, 1, 5)), waits),
        (Event::Trade(&trade(3, 1, 5)), takes),
        (Event::OrderReplaced(&replaced(3, 90, 6)), takes),
        (Event::OrderRefilled(&refilled), waits),
        (Event::OrderTriggered(&fired), rests),
    ];
    for (event, expected) in cases {
        let mut fold = resting(1, 0);
        assert!(tells(&mut fold, &placed).is_ok());
        let refused = tells(&mut fold, &[event]);
        assert!(
            matches!(refused, Err(FoldError::Standing { standing, .. }) if standing == expected),
            "{event:?}: {refused:?}"
        );
    }
}
