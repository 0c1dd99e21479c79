//! Each kind of sweep once, its events field by field.

use crate::venue::{Owned, WHOLE, named};
use crate::world::*;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderStatus, Side};
use touchline_protocol::message::event::{OrderCanceled, OrderContinues};
use touchline_protocol::units::*;

#[test]
fn cancel_all_ends_an_accounts_orders_on_one_symbol_the_oldest_first() {
    let mut venue = world(steps(256));
    let mut first = limit(by(ANN), ONE, Side::Buy, (9, 4));
    first.client_order_id = named("first");
    venue.must(&first);
    place(&mut venue, &limit(by(BOB), ONE, Side::Buy, (8, 1)));
    place(&mut venue, &limit(by(ANN), TWO, Side::Buy, (9, 1)));
    venue.must(&stop_limit(by(ANN), ONE, Side::Buy, (20, 21)));
    venue.must(&limit(by(ANN), ONE, Side::Sell, (12, 3)));
    venue.must(&limit(by(BOB), ONE, Side::Sell, (9, 1)));
    // Updates of the book so far: Ann's first order, Bob's, Ann's sell, Bob's fill.
    let of = |order_id, side: Side, order_type| OrderCanceled {
        order_id: OrderId(order_id),
        account: AccountId(1),
        symbol: ONE,
        order_list_id: OrderListId::NONE,
        status: OrderStatus::Canceled.to_wire(),
        side: side.to_wire(),
        order_type,
        time_in_force: 1,
        book_update_id: BookUpdateId(5),
        ..Default::default()
    };
    let expected = [
        Owned::Canceled(OrderCanceled {
            price: 9 * WHOLE,
            quantity: 4 * WHOLE,
            executed_quantity: WHOLE,
            executed_quote: 9 * WHOLE,
            released: 27 * WHOLE,
            client_order_id: named("first"),
            ..of(1, Side::Buy, 1)
        }),
        Owned::Canceled(OrderCanceled {
            price: 21 * WHOLE,
            quantity: WHOLE,
            released: 21 * WHOLE,
            ..of(3, Side::Buy, 4)
        }),
        Owned::Canceled(OrderCanceled {
            price: 12 * WHOLE,
            quantity: 3 * WHOLE,
            released: 3 * WHOLE,
            ..of(4, Side::Sell, 1)
        }),
        mass(1, ONE, 3),
    ];
    assert_eq!(venue.must(&cancel_all(by(ANN), ONE)), expected);
    assert_eq!(venue.core.counts().open_orders, 2, "Bob's, and Ann's on the other symbol");
    venue.must(&cancel_all(by(ANN), TWO));
    venue.must(&cancel_all(by(BOB), ONE));
    check_empty(&venue);
    venue.check_replay();
}

#[test]
fn a_mass_cancel_is_about_one_session_or_all_and_one_symbol_or_all() {
    use touchline_protocol::message::enums::{Lane, Role};
    for (symbol, scope, expected) in [
        (ONE, 1, vec![(ONE, 1), (ONE, 3)]),
        (ONE, 2, vec![(ONE, 1), (ONE, 2), (ONE, 3)]),
        (ALL, 1, vec![(ONE, 1), (TWO, 1), (ONE, 3), (TWO, 3)]),
        (ALL, 2, vec![(ONE, 1), (TWO, 1), (TWO, 2), (ONE, 2), (ONE, 3), (TWO, 3)]),
    ] {
        let mut venue = world(steps(256));
        let mine = venue.logon("mine", Role::Trader, Lane::Hot, KeyId(ANN));
        let other = venue.logon("other", Role::Trader, Lane::Hot, KeyId(ANN));
        for (session, at) in
            [(mine, ONE), (mine, TWO), (other, TWO), (other, ONE), (mine, ONE), (mine, TWO)]
        {
            let header = venue.header(session, KeyId(ANN));
            place(&mut venue, &limit(header, at, Side::Buy, (9, 1)));
        }
        place(&mut venue, &limit(by(BOB), ONE, Side::Buy, (9, 1)));
        let header = venue.header(mine, KeyId(ANN));
        let events = venue.must(&mass_cancel(header, symbol, scope));
        assert_eq!(ended(&events), expected, "scope {scope} on {symbol}");
        assert_eq!(*events.last().unwrap(), mass(1, symbol, expected.len() as u64));
        // One update per symbol for all of its orders together.
        for event in canceled(&events) {
            let counters = venue.core.symbol(event.symbol).unwrap().counters;
            assert_eq!(event.book_update_id, counters.book_update);
        }
        let again = venue.header(mine, KeyId(ANN));
        let events = venue.must(&mass_cancel(again, symbol, scope));
        assert_eq!(events, [mass(1, symbol, 0)], "nothing is left, and that is no reject");
        venue.check_replay();
    }
}

#[test]
fn expire_all_goes_through_the_book_in_any_status() {
    let mut venue = world(steps(256));
    for (key, side, price) in [
        (ANN, Side::Buy, 8),
        (BOB, Side::Sell, 12),
        (CARL, Side::Sell, 11),
        (ANN, Side::Sell, 12),
        (BOB, Side::Buy, 9),
        (CARL, Side::Buy, 8),
    ] {
        place(&mut venue, &limit(by(key), ONE, side, (price, 1)));
    }
    // Downwards 7 and 8, upwards 30 and 20, the nearest last.
    for (side, stop) in [(Side::Sell, 6), (Side::Buy, 30), (Side::Sell, 7), (Side::Buy, 20)] {
        place(&mut venue, &stop_limit(by(ANN), ONE, side, (stop, stop)));
    }
    place(&mut venue, &limit(by(ANN), TWO, Side::Buy, (8, 1)));
    venue.must(&SetSymbolStatus { symbol: ONE, status: 5, ..Default::default() });
    let events = venue.must(&expire_all(ONE));
    let expected = [3, 2, 4, 5, 1, 6, 10, 8, 9, 7].map(|order| (ONE, order));
    assert_eq!(ended(&events), expected);
    assert!(canceled(&events).iter().all(|event| event.status == OrderStatus::Expired.to_wire()));
    assert_eq!(*events.last().unwrap(), mass(EVERY, ONE, 10));
    assert_eq!(venue.must(&expire_all(ONE)), [mass(EVERY, ONE, 0)]);
    venue.must(&expire_all(TWO));
    check_empty(&venue);
    venue.check_replay();
}

/// What gives an order another place in its queue does not make it younger: a refill, being triggered,
/// and coming to rest later than others because it took in several transactions.
#[test]
fn what_counts_is_the_placement() {
    let mut venue = world(steps(1));
    let stop = place(&mut venue, &stop_limit(by(ANN), ONE, Side::Buy, (10, 9)));
    let mut iceberg = limit(by(ANN), ONE, Side::Buy, (8, 3));
    iceberg.iceberg_quantity = WHOLE;
    let iceberg = place(&mut venue, &iceberg);
    let young = place(&mut venue, &limit(by(ANN), TWO, Side::Buy, (5, 1)));
    // Bob's trades trigger the stop and refill the iceberg.
    for (side, price) in [(Side::Sell, 10), (Side::Buy, 10), (Side::Sell, 9), (Side::Sell, 8)] {
        venue.must(&limit(by(BOB), ONE, side, (price, 1)));
        venue.drain();
    }
    assert_eq!(venue.core.open_order(ONE, OrderId(stop.1)), None, "it was triggered and filled");
    // Another one, which is triggered and rests.
    let stop = place(&mut venue, &stop_limit(by(ANN), TWO, Side::Buy, (10, 9)));
    let younger = place(&mut venue, &limit(by(ANN), TWO, Side::Buy, (4, 1)));
    for side in [Side::Sell, Side::Buy] {
        venue.must(&limit(by(BOB), TWO, side, (10, 1)));
    }
    venue.drain();
    assert!(venue.core.open_orders(TWO, Side::Buy).any(|order| order.order_id.0 == stop.1));
    // An aggressor that rests behind an order which was placed after it.
    for _ in 0..2 {
        venue.must(&limit(by(CARL), ONE, Side::Sell, (20, 1)));
    }
    let aggressor = place(&mut venue, &limit(by(ANN), ONE, Side::Buy, (20, 3)));
    assert!(venue.core.has_pending(ONE));
    let youngest = place(&mut venue, &limit(by(ANN), TWO, Side::Buy, (3, 1)));
    venue.drain();
    let events = sweep(&mut venue, &mass_cancel(by(ANN), ALL, 2));
    assert_eq!(ended(&events), [iceberg, young, stop, younger, aggressor, youngest]);
    check_empty(&venue);
    venue.check_replay();
}

#[test]
fn a_sweep_that_goes_on_says_so_and_nothing_comes_between() {
    let mut venue = world(steps(3));
    for (symbol, price) in [(ONE, 5), (TWO, 5), (ONE, 6), (TWO, 6), (ONE, 7)] {
        place(&mut venue, &limit(by(ANN), symbol, Side::Buy, (price, 1)));
    }
    place(&mut venue, &limit(by(BOB), ONE, Side::Buy, (5, 1)));
    let update = venue.core.symbol(ONE).unwrap().counters.book_update;
    let continues = |symbol, update| {
        Owned::Continues(OrderContinues {
            symbol,
            book_update_id: BookUpdateId(update),
            ..Default::default()
        })
    };
    let mut header = by(ANN);
    (header.correlation, header.sequence) = (77, Sequence(9));
    let events = venue.must(&cancel_all(header, ONE));
    assert_eq!(ended(&events), [(ONE, 1), (ONE, 2)]);
    assert_eq!(events[2], continues(ONE, update.0 + 1));
    let head = venue.core.pending_head().unwrap();
    assert_eq!((head.symbol, head.correlation, head.sequence), (ONE, 77, Sequence(9)));
    let blocked = |venue: &mut crate::venue::Venue, symbol| {
        let order = limit(by(BOB), symbol, Side::Buy, (5, 1));
        let verdict = venue.apply(&order);
        assert_eq!(verdict.is_err(), venue.core.has_pending(symbol));
        verdict.is_err()
    };
    assert!(blocked(&mut venue, ONE) && !blocked(&mut venue, TWO));
    let events = venue.must(&RunPending::default());
    assert_eq!(ended(&events), [(ONE, 3)]);
    assert_eq!(canceled(&events)[0].book_update_id.0, update.0 + 2);
    assert_eq!(events[1], mass(1, ONE, 3));
    // Over all symbols: everything waits.
    place(&mut venue, &limit(by(ANN), ONE, Side::Buy, (5, 1)));
    let events = venue.must(&mass_cancel(by(ANN), ALL, 2));
    assert_eq!(events[2], continues(ALL, 0));
    assert!(blocked(&mut venue, ONE) && blocked(&mut venue, TWO));
    assert_eq!(venue.core.pending_head().unwrap().symbol, ALL);
    assert_eq!(venue.drain().last(), Some(&mass(1, ALL, 3)));
    assert!(!blocked(&mut venue, ONE) && !blocked(&mut venue, TWO));
    venue.check_replay();
}
