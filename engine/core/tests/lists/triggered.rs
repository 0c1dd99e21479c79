//! A list whose stop leg is triggered: its limit leg expires in front of it, and what that had locked
//! is the stop leg's from then on.

use super::*;

/// What the stop leg's turn reports: the end of the limit leg, which releases nothing, the list's, and
/// the trigger with the change of its lock.
fn assert_turn(venue: &Venue, placed: &PlaceOrderList, events: &[Owned], change: i64) {
    let Owned::Canceled(canceled) = events[0] else { panic!("{events:?}") };
    let expected = ended(venue, placed, LIMIT, (EXPIRED, 0));
    let Owned::Canceled(expected) = expected else { unreachable!() };
    let update = canceled.book_update_id;
    assert_eq!(canceled, OrderCanceled { book_update_id: update, ..expected });
    let Owned::ListChanged(done) = all_done(venue) else { unreachable!() };
    assert_eq!(events[1], Owned::ListChanged(OrderListChanged { book_update_id: update, ..done }));
    assert_eq!(
        events[2],
        Owned::Triggered(OrderTriggered {
            order_id: STOP,
            account: ANN,
            symbol: ONE,
            locked: change * WHOLE,
            book_update_id: update,
            ..Default::default()
        })
    );
}

#[test]
fn the_limit_leg_ends_and_the_stop_leg_takes() {
    // Sells at 80 or better when the price falls to 90: 4 to a buyer at 85, the rest comes to rest.
    let mut venue = world();
    let placed = sell_list();
    venue.must(&placed);
    let before = book_update(&venue);
    venue.must(&limit(2, BUY, 85, 4));
    trade_at(&mut venue, 90);
    let events = venue.drain();
    assert_eq!(kinds(&events), ["canceled", "list", "triggered", "trade", "result"]);
    assert_turn(&venue, &placed, &events, 0);
    // A buy, a sell, a trade, the limit leg's end, and what the stop leg does.
    assert_eq!(book_update(&venue).0, before.0 + 5);
    let [result] = results(&events)[..] else { panic!("{events:?}") };
    assert_eq!((result.status, result.executed_quantity), (PARTIALLY_FILLED, 4 * WHOLE));
    assert_eq!(result.order_list_id, OrderListId(0));
    assert_eq!((result.order_count_0, result.order_count_1), (0, 0));
    let rest = venue.core.open_order(ONE, STOP).unwrap();
    assert_eq!((rest.price, rest.remaining), (Price(80 * WHOLE), Qty(6 * WHOLE)));
    assert_eq!(rest.order_list_id, OrderListId(0));
    assert_eq!(money(&venue, ANN, BASE), (FUNDS - 10 * WHOLE, 6 * WHOLE));
    assert_eq!(venue.core.open_order_list(OrderListId(0)), None);
    // It is a single order from now on, in its list's name only.
    venue.must(&limit(2, BUY, 80, 1));
    let events = venue.must(&cancel(STOP));
    let [Owned::Canceled(canceled)] = events[..] else { panic!("{events:?}") };
    assert_eq!(canceled.order_list_id, OrderListId(0));
    is_over(&venue);
}

#[test]
fn a_buys_lock_becomes_the_stop_legs() {
    // (stop limit, change of the lock, what remains locked for 10 at rest)
    for (stop_limit, change, locked) in [(120, 0, 1200), (90, 0, 900), (70, -200, 700)] {
        let mut venue = world();
        let placed = list(BUY, 90, 110, stop_limit);
        venue.must(&placed);
        trade_at(&mut venue, 110);
        let events = venue.drain();
        assert_eq!(kinds(&events), ["canceled", "list", "triggered", "result"]);
        assert_turn(&venue, &placed, &events, change);
        assert_eq!(results(&events)[0].status, NEW);
        assert_eq!(
            money(&venue, ANN, QUOTE),
            (FUNDS - locked * WHOLE, locked * WHOLE),
            "{stop_limit}"
        );
        venue.must(&cancel(STOP));
        is_over(&venue);
    }
}

#[test]
fn a_market_stop_leg_locks_what_the_book_asks_for() {
    // 10 cost 1150 now; 1100 were locked for the dearer order.
    let mut venue = world();
    let placed = list(BUY, 90, 110, 0);
    venue.must(&placed);
    venue.must(&limit(2, SELL, 115, 20));
    trade_at(&mut venue, 110);
    let events = venue.drain();
    assert_eq!(kinds(&events), ["canceled", "list", "triggered", "trade", "result"]);
    assert_turn(&venue, &placed, &events, 50);
    assert_eq!(results(&events)[0].status, FILLED);
    assert_eq!(money(&venue, ANN, QUOTE), (FUNDS - 1150 * WHOLE, 0));
    assert_eq!(money(&venue, ANN, BASE), (FUNDS + 10 * WHOLE, 0));
    is_over(&venue);
}

#[test]
fn a_market_stop_leg_that_cannot_be_paid_expires_with_all_its_lock_back() {
    let mut venue = world();
    venue.must(&Withdraw {
        account: ANN,
        asset: QUOTE,
        amount: FUNDS - 1149 * WHOLE,
        ..Default::default()
    });
    let placed = list(BUY, 90, 110, 0);
    venue.must(&placed);
    venue.must(&limit(2, SELL, 115, 20));
    trade_at(&mut venue, 110);
    let events = venue.drain();
    assert_eq!(kinds(&events), ["canceled", "list", "triggered", "result"]);
    assert_turn(&venue, &placed, &events, 0);
    let [result] = results(&events)[..] else { panic!("{events:?}") };
    assert_eq!((result.status, result.released), (EXPIRED, 1100 * WHOLE));
    assert_eq!(result.order_list_id, OrderListId(0));
    assert_eq!(money(&venue, ANN, QUOTE), (1149 * WHOLE, 0));
    is_over(&venue);
}

#[test]
fn a_market_stop_leg_obeys_its_lot_size_when_it_runs() {
    let filters = SymbolFilters { market_lot_max: 9 * WHOLE, ..Default::default() };
    let mut venue = world_of(roomy(), filters);
    venue.must(&list(SELL, 110, 90, 0));
    venue.must(&limit(2, BUY, 85, 20));
    trade_at(&mut venue, 90);
    let events = venue.drain();
    assert_eq!(kinds(&events), ["canceled", "list", "triggered", "result"]);
    assert_eq!(results(&events)[0].status, EXPIRED);
    assert_eq!(results(&events)[0].released, 10 * WHOLE);
    is_over(&venue);
}

#[test]
fn a_market_stop_leg_without_a_counterparty_expires() {
    for placed in [list(SELL, 110, 90, 0), list(BUY, 90, 110, 0)] {
        let mut venue = world();
        venue.must(&placed);
        trade_at(&mut venue, placed.stop_price / WHOLE);
        let events = venue.drain();
        assert_eq!(kinds(&events), ["canceled", "list", "triggered", "result"]);
        assert_eq!(results(&events)[0].status, EXPIRED);
        is_over(&venue);
    }
}

#[test]
fn the_stop_legs_time_in_force_holds_when_it_runs() {
    for (time_in_force, there, executed, status) in [
        (IOC, 4, 4, EXPIRED),
        (IOC, 10, 10, FILLED),
        (FOK, 9, 0, EXPIRED),
        (FOK, 10, 10, FILLED),
        (GTC, 4, 4, PARTIALLY_FILLED),
    ] {
        for placed in [sell_list(), buy_list()] {
            let mut venue = world();
            let placed = PlaceOrderList { stop_limit_time_in_force: time_in_force, ..placed };
            let events = venue.must(&placed);
            let Owned::Accepted(accepted) = events[0] else { panic!("{events:?}") };
            assert_eq!(accepted.time_in_force, time_in_force);
            let (other, price) = if placed.side == SELL { (BUY, 85) } else { (SELL, 115) };
            venue.must(&limit(2, other, price, there));
            trade_at(&mut venue, placed.stop_price / WHOLE);
            let events = venue.drain();
            let [result] = results(&events)[..] else { panic!("{events:?}") };
            assert_eq!(
                (result.status, result.executed_quantity),
                (status, executed * WHOLE),
                "{time_in_force} {there}"
            );
            assert_eq!(venue.core.open_order(ONE, LIMIT), None);
            if status == PARTIALLY_FILLED {
                venue.must(&cancel(STOP));
            }
            is_over(&venue);
        }
    }
}

#[test]
fn an_iceberg_stop_leg_rests_as_one() {
    let mut venue = world();
    let placed = PlaceOrderList { stop_iceberg_quantity: 3 * WHOLE, ..sell_list() };
    venue.must(&placed);
    trade_at(&mut venue, 90);
    venue.drain();
    let rest = venue.core.open_order(ONE, STOP).unwrap();
    assert_eq!((rest.remaining, rest.visible), (Qty(10 * WHOLE), Qty(3 * WHOLE)));
    let depth = venue.core.depth(ONE, touchline_protocol::message::enums::Side::Sell).next();
    assert_eq!(depth.unwrap().hidden, 7 * WHOLE as u128);
    venue.must(&limit(2, BUY, 80, 10));
    is_over(&venue);
}

#[test]
fn an_iceberg_limit_leg_goes_with_all_that_it_hides() {
    let mut venue = world();
    let placed = PlaceOrderList { limit_iceberg_quantity: 3 * WHOLE, ..sell_list() };
    venue.must(&placed);
    trade_at(&mut venue, 90);
    let events = venue.drain();
    assert_turn(&venue, &placed, &events, 0);
    assert_eq!(venue.core.depth(ONE, touchline_protocol::message::enums::Side::Sell).count(), 1);
    venue.must(&cancel(STOP));
    is_over(&venue);
}

/// A FOK stop leg does not count its own limit leg, nor does the limit leg stand in anybody's way.
#[test]
fn the_limit_leg_is_gone_before_the_stop_leg_looks_at_the_book() {
    let mut venue = world();
    let placed = PlaceOrderList { self_trade_prevention: 2, ..sell_list() };
    venue.must(&placed);
    venue.must(&limit(1, BUY, 84, 5));
    venue.must(&limit(2, BUY, 85, 4));
    trade_at(&mut venue, 90);
    let events = venue.drain();
    // 4 trade; then its own buy stands in front of it, and its mode ends the taker.
    let [result] = results(&events)[..] else { panic!("{events:?}") };
    assert_eq!((result.status, result.executed_quantity), (EXPIRED, 4 * WHOLE));
    venue.must(&cancel(OrderId(5)));
    is_over(&venue);
}

/// A name is free again as soon as its order or list is over.
#[test]
fn names_are_free_when_the_list_is_over() {
    let mut venue = world();
    venue.must(&sell_list());
    trade_at(&mut venue, 90);
    venue.drain();
    trade_at(&mut venue, 79);
    assert_eq!(reason(&mut venue, &sell_list()), Some((Why::DuplicateClientOrderId, 0)));
    // The list's and the limit leg's are; the stop leg's is not: it rests.
    let other_stop = PlaceOrderList { stop_client_order_id: named("x"), ..list(SELL, 110, 70, 60) };
    venue.must(&other_stop);
    venue.must(&cancel(STOP));
    venue.must(&cancel_list(1, "list"));
    venue.must(&list(SELL, 110, 70, 60));
    venue.must(&cancel_list(-1, "list"));
    is_over(&venue);
}
