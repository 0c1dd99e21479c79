//! Messages that do not go with the books, and snapshots that are none.

use super::*;
use crate::message::decode;
use crate::message::feed::{
    FeedOrderAdded, FeedOrderDeleted, FeedOrderReduced, FeedOrderReplaced, FeedSnapshot, FeedTrade,
};
use crate::units::Incarnation;

const SYMBOL: SymbolId = SymbolId(0);

fn symbol(sequence: u64) -> FeedSymbolChanged {
    FeedSymbolChanged {
        sequence: FeedSequence(sequence),
        symbol: SYMBOL,
        status: SymbolStatus::Trading.to_wire(),
        name: SymbolName::new("BTCUSDT").unwrap(),
        flags: FEED_LAST,
        ..Default::default()
    }
}

fn added(sequence: u64, order: u64, price: i64, quantity: i64) -> FeedOrderAdded {
    FeedOrderAdded {
        sequence: FeedSequence(sequence),
        side: Side::Buy.to_wire(),
        order_id: OrderId(order),
        price,
        quantity,
        ..Default::default()
    }
}

/// A symbol and two orders at one price.
fn books() -> Books {
    let mut books = Books::new();
    books.apply(FeedMessage::FeedSymbolChanged(&symbol(1))).unwrap();
    books.apply(FeedMessage::FeedOrderAdded(&added(2, 1, 10, 5))).unwrap();
    books.apply(FeedMessage::FeedOrderAdded(&added(3, 2, 10, 7))).unwrap();
    books
}

fn ids(books: &Books) -> Vec<u64> {
    books.symbols()[0].book.orders(Side::Buy).map(|order| order.order_id.0).collect()
}

#[test]
fn a_replaced_order_goes_to_the_end_of_its_queue_and_an_executed_one_leaves() {
    let mut books = books();
    assert!(books.in_transaction());
    let replaced = FeedOrderReplaced {
        sequence: FeedSequence(4),
        side: Side::Buy.to_wire(),
        order_id: OrderId(1),
        price: 10,
        quantity: 6,
        old_price: 10,
        old_quantity: 5,
        flags: FEED_LAST,
        ..Default::default()
    };
    books.apply(FeedMessage::FeedOrderReplaced(&replaced)).unwrap();
    assert!(!books.in_transaction());
    assert_eq!(ids(&books), [2, 1]);
    let trade = FeedTrade {
        sequence: FeedSequence(5),
        aggressor_side: Side::Sell.to_wire(),
        order_id: OrderId(2),
        price: 10,
        quantity: 7,
        ..Default::default()
    };
    books.apply(FeedMessage::FeedTrade(&trade)).unwrap();
    assert_eq!(ids(&books), [1]);
    let best = BookLevel { price: 10, quantity: 6, orders: 1 };
    assert_eq!(books.symbol_named("BTCUSDT").unwrap().book.best(Side::Buy), Some(best));
}

#[test]
fn orders_are_counted_as_they_come_and_leave() {
    let mut books = books();
    let trade = |sequence, order_id, quantity| FeedTrade {
        sequence: FeedSequence(sequence),
        aggressor_side: Side::Sell.to_wire(),
        order_id: OrderId(order_id),
        price: 10,
        quantity,
        ..Default::default()
    };
    let deleted = FeedOrderDeleted {
        sequence: FeedSequence(7),
        side: Side::Buy.to_wire(),
        order_id: OrderId(2),
        price: 11,
        quantity: 6,
        ..Default::default()
    };
    let replaced = FeedOrderReplaced {
        sequence: FeedSequence(6),
        side: Side::Buy.to_wire(),
        order_id: OrderId(2),
        old_price: 10,
        old_quantity: 7,
        price: 11,
        quantity: 6,
        ..Default::default()
    };
    let reduced = |sequence, quantity| FeedOrderReduced {
        sequence: FeedSequence(sequence),
        side: Side::Buy.to_wire(),
        order_id: OrderId(3),
        price: 10,
        quantity,
        ..Default::default()
    };
    let messages = [
        (FeedMessage::FeedTrade(&trade(4, 1, 4)), 2),
        (FeedMessage::FeedTrade(&trade(5, 1, 1)), 1),
        (FeedMessage::FeedOrderReplaced(&replaced), 1),
        (FeedMessage::FeedOrderDeleted(&deleted), 0),
        (FeedMessage::FeedOrderAdded(&added(8, 3, 10, 3)), 1),
        (FeedMessage::FeedOrderReduced(&reduced(9, 2)), 1),
        (FeedMessage::FeedOrderReduced(&reduced(10, 1)), 0),
    ];
    for (message, expected) in messages {
        books.apply(message).unwrap();
        let standing: usize = books.symbols().iter().map(|symbol| symbol.book.len()).sum();
        assert_eq!((books.orders(), standing as u64), (expected, expected));
        let (head, body) = books.to_snapshot(Incarnation(1));
        assert_eq!((head.orders, head.bytes), (expected, books.snapshot_bytes()));
        assert_eq!(Books::from_snapshot(&head, &body).unwrap().orders(), expected);
    }
}

#[test]
fn a_symbol_that_changes_keeps_its_orders() {
    let mut books = books();
    let (status, tick_size, lot_step) = (SymbolStatus::Halt, 3, 4);
    let changed = FeedSymbolChanged { status: status.to_wire(), tick_size, lot_step, ..symbol(4) };
    books.apply(FeedMessage::FeedSymbolChanged(&changed)).unwrap();
    let [symbol] = books.symbols() else { panic!("one symbol") };
    assert_eq!((symbol.status, symbol.tick_size, symbol.lot_step), (status, tick_size, lot_step));
    assert_eq!(ids(&books), [1, 2]);
}

#[test]
fn books_that_begin_again_are_whole_and_wait_for_the_first_message() {
    let mut books = books();
    assert!(books.in_transaction());
    books.restart(Position(640), 9);
    assert!(!books.in_transaction());
    assert_eq!((books.position(), books.time_ns()), (Position(640), 9));
    let next = FeedOrderAdded { position: Position(704), time_ns: 11, ..added(1, 3, 10, 1) };
    books.apply(FeedMessage::FeedOrderAdded(&next)).unwrap();
    assert_eq!((books.position(), books.time_ns()), (Position(704), 11));
    assert_eq!(ids(&books), [1, 2, 3]);
}

#[test]
fn what_does_not_go_with_the_books_is_refused() {
    let refused = |message: FeedMessage<'_>| books().apply(message).unwrap_err();
    let (last, order) = (FeedSequence(3), OrderId(1));
    assert_eq!(
        refused(FeedMessage::FeedOrderAdded(&added(5, 3, 1, 1))),
        BookError::Sequence { last, found: FeedSequence(5) }
    );
    assert_eq!(
        refused(FeedMessage::FeedOrderAdded(&added(4, 1, 1, 1))),
        BookError::AddedTwice { symbol: SYMBOL, order }
    );
    for quantity in [0, -1, i64::MIN] {
        let message = added(4, 3, 1, quantity);
        let error = refused(FeedMessage::FeedOrderAdded(&message));
        assert!(matches!(error, BookError::Number { .. }), "{error}");
    }
    let trade = FeedTrade {
        sequence: FeedSequence(4),
        aggressor_side: Side::Sell.to_wire(),
        order_id: order,
        price: 10,
        quantity: 5,
        ..Default::default()
    };
    for (trade, what) in [
        (FeedTrade { price: 9, ..trade }, "price"),
        (FeedTrade { quantity: 6, ..trade }, "quantity"),
        (FeedTrade { quantity: -1, ..trade }, "quantity"),
        (FeedTrade { aggressor_side: Side::Buy.to_wire(), ..trade }, "side"),
    ] {
        let error = refused(FeedMessage::FeedTrade(&trade));
        assert!(
            matches!(error, BookError::Mismatch { what: found, .. } if found == what),
            "{error}"
        );
    }
    // An order that leaves is told with all that is shown of it.
    for quantity in [4, 6] {
        let (sequence, side) = (FeedSequence(4), Side::Buy.to_wire());
        let deleted = FeedOrderDeleted {
            sequence,
            side,
            order_id: order,
            price: 10,
            quantity,
            ..Default::default()
        };
        let replaced = FeedOrderReplaced {
            sequence,
            side,
            order_id: order,
            old_price: 10,
            old_quantity: quantity,
            price: 11,
            quantity: 5,
            ..Default::default()
        };
        let expected = BookError::Mismatch {
            symbol: SYMBOL,
            order,
            what: "quantity",
            found: quantity,
            expected: 5,
        };
        assert_eq!(refused(FeedMessage::FeedOrderDeleted(&deleted)), expected);
        assert_eq!(refused(FeedMessage::FeedOrderReplaced(&replaced)), expected);
    }
    let unknown = FeedTrade { order_id: OrderId(9), ..trade };
    assert!(matches!(
        refused(FeedMessage::FeedTrade(&unknown)),
        BookError::UnknownOrder { order: OrderId(9), .. }
    ));
    let elsewhere = FeedTrade { symbol: SymbolId(1), ..trade };
    assert_eq!(refused(FeedMessage::FeedTrade(&elsewhere)), BookError::UnknownSymbol(SymbolId(1)));
    for skipped in [2, u32::MAX] {
        let symbol = FeedSymbolChanged { symbol: SymbolId(skipped), ..symbol(4) };
        let error = refused(FeedMessage::FeedSymbolChanged(&symbol));
        assert_eq!(error, BookError::UnknownSymbol(SymbolId(skipped)));
    }
}

#[test]
fn a_snapshot_is_read_again_and_damage_is_found() {
    let books = books();
    let (head, body) = books.to_snapshot(Incarnation(1));
    let read = |head: &FeedSnapshot, body: &[u8]| {
        let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(body);
        Books::from_snapshot(head, &bytemuck::cast_slice(&words)[..body.len()])
    };
    let again = read(&head, &body).unwrap();
    assert_eq!((again.sequence(), ids(&again)), (FeedSequence(3), vec![1, 2]));
    assert!(!again.in_transaction());

    let short = body.len() - 64;
    assert!(matches!(read(&head, &body[..short]), Err(SnapshotError::Count { .. })));
    for (bytes, cut) in [(short, short), (body.len() - 8, body.len() - 8)] {
        let head = FeedSnapshot { bytes: bytes as u64, ..head };
        assert!(read(&head, &body[..cut]).is_err());
    }
    for head in [FeedSnapshot { symbols: 2, ..head }, FeedSnapshot { orders: 1, ..head }] {
        assert!(matches!(read(&head, &body), Err(SnapshotError::Count { .. })));
    }
    let mut trades = body.clone();
    trades.truncate(body.len() - 128);
    trades.extend_from_slice(bytemuck::bytes_of(&FeedTrade::default()));
    let head = FeedSnapshot { bytes: trades.len() as u64, orders: 0, ..head };
    assert!(matches!(
        read(&head, &trades),
        Err(SnapshotError::Unexpected { name: "FeedTrade", .. })
    ));
    assert!(decode::feed(&trades).is_ok());
}
