//! A list whose limit leg is touched: its stop leg expires behind the first fill, whatever its size.

use super::*;

#[test]
fn the_first_fill_ends_the_stop_leg_and_then_the_aggressor_goes_on() {
    // The aggressor takes 4 of the list and 3 of what lies behind it.
    for (placed, top_up, price) in
        [(sell_list(), 0, 110), (buy_list(), 300, 90), (list(BUY, 90, 110, 0), 200, 90)]
    {
        let side = placed.side;
        let (other, behind) = if side == SELL { (BUY, 111) } else { (SELL, 89) };
        for taken in [1, 4, 10] {
            let mut venue = world();
            venue.must(&placed);
            venue.must(&limit(2, side, behind, 3));
            let before = book_update(&venue);
            let rest = if taken == 10 { 3 } else { 0 };
            let events = venue.must(&limit(2, other, behind, taken + rest));
            let mut expected = vec!["accepted", "trade", "canceled", "list"];
            expected.extend(["trade"].iter().filter(|_| rest > 0));
            expected.push("result");
            assert_eq!(kinds(&events), expected);
            assert_eq!(
                events[2..4],
                [ended(&venue, &placed, STOP, (EXPIRED, top_up * WHOLE)), all_done(&venue)]
            );
            assert_eq!(book_update(&venue).0, before.0 + 1);
            let trade = trades(&events)[0];
            assert_eq!((trade.maker_order_id, trade.price), (LIMIT, price * WHOLE));
            assert_eq!(trade.maker_remaining, (10 - taken) * WHOLE);
            assert_eq!(venue.core.open_order_list(OrderListId(0)), None);
            // What is left of the limit leg is a single order, which keeps its list's number.
            let left = venue.core.open_order(ONE, LIMIT);
            assert_eq!(left.is_some(), taken < 10);
            if let Some(left) = left {
                assert_eq!(left.order_list_id, OrderListId(0));
                let events = venue.must(&cancel(LIMIT));
                assert_eq!(kinds(&events), ["canceled"]);
                let Owned::Canceled(canceled) = events[0] else { unreachable!() };
                assert_eq!(canceled.order_list_id, OrderListId(0));
                assert_eq!(canceled.executed_quantity, taken * WHOLE);
            }
            is_over(&venue);
        }
    }
}

#[test]
fn later_fills_are_an_orders_own() {
    let mut venue = world();
    venue.must(&buy_list());
    venue.must(&limit(2, SELL, 90, 1));
    let events = venue.must(&limit(2, SELL, 90, 4));
    assert_eq!(kinds(&events), ["accepted", "trade", "result"]);
    let events = venue.must(&limit(2, SELL, 90, 5));
    assert_eq!(kinds(&events), ["accepted", "trade", "result"]);
    assert_eq!(money(&venue, ANN, QUOTE), (FUNDS - 900 * WHOLE, 0));
    assert_eq!(money(&venue, ANN, BASE), (FUNDS + 10 * WHOLE, 0));
    is_over(&venue);
}

#[test]
fn several_lists_on_one_level_end_one_behind_the_other() {
    let mut venue = world();
    let unnamed = PlaceOrderList {
        list_client_order_id: Default::default(),
        limit_client_order_id: Default::default(),
        stop_client_order_id: Default::default(),
        ..sell_list()
    };
    for _ in 0..3 {
        venue.must(&unnamed);
    }
    let events = venue.must(&limit(2, BUY, 110, 25));
    assert_eq!(
        kinds(&events),
        [
            "accepted", "trade", "canceled", "list", "trade", "canceled", "list", "trade",
            "canceled", "list", "result",
        ]
    );
    assert_eq!(results(&events)[0].status, FILLED);
    assert_eq!(venue.core.open_order_count(ANN, ONE), 1);
    assert_eq!(venue.core.waiting_orders(ONE).count(), 0);
    let updates: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Owned::Canceled(canceled) => Some(canceled.book_update_id.0),
            _ => None,
        })
        .collect();
    assert_eq!(updates, [book_update(&venue).0; 3], "all of one transaction");
    venue.check_replay();
}

#[test]
fn an_iceberg_shows_its_next_slice_and_then_its_list_ends() {
    let mut venue = world();
    let placed = PlaceOrderList {
        limit_iceberg_quantity: 4 * WHOLE,
        stop_iceberg_quantity: 3 * WHOLE,
        ..sell_list()
    };
    venue.must(&placed);
    let events = venue.must(&limit(2, BUY, 110, 4));
    assert_eq!(kinds(&events), ["accepted", "trade", "refilled", "canceled", "list", "result"]);
    assert_eq!(events[3], ended(&venue, &placed, STOP, (EXPIRED, 0)));
    let left = venue.core.open_order(ONE, LIMIT).unwrap();
    assert_eq!((left.remaining.0, left.visible.0), (6 * WHOLE, 4 * WHOLE));
    let events = venue.must(&limit(2, BUY, 110, 6));
    assert_eq!(kinds(&events), ["accepted", "trade", "refilled", "trade", "result"]);
    is_over(&venue);
}

/// The trade that touches a list's limit leg reaches somebody's stop as well: the list ends first, the
/// stop is triggered behind the aggressor.
#[test]
fn a_touch_that_is_a_trigger_too() {
    let mut venue = world();
    venue.must(&sell_list());
    let stop = NewOrder {
        order_type: STOP_LOSS,
        time_in_force: 0,
        stop_price: 110 * WHOLE,
        ..limit(2, BUY, 0, 6)
    };
    venue.must(&stop);
    let events = venue.must(&limit(2, BUY, 110, 2));
    assert_eq!(kinds(&events), ["accepted", "trade", "canceled", "list", "result"]);
    let events = venue.drain();
    assert_eq!(kinds(&events), ["triggered", "trade", "result"]);
    assert_eq!(venue.core.open_order(ONE, LIMIT).unwrap().remaining, Qty(2 * WHOLE));
    venue.check_replay();
}

/// A list may meet an order of its own account.
#[test]
fn an_account_touches_its_own_list() {
    let mut venue = world();
    venue.must(&sell_list());
    let events = venue.must(&limit(1, BUY, 110, 10));
    assert_eq!(kinds(&events), ["accepted", "trade", "canceled", "list", "result"]);
    assert_eq!(money(&venue, ANN, BASE), (FUNDS, 0));
    is_over(&venue);
}

/// Or be kept from it, and then both its orders end.
#[test]
fn self_trade_prevention_ends_the_whole_list() {
    for (mode, expected, open) in [
        (2, vec!["accepted", "prevented", "result"], 2),
        (3, vec!["accepted", "prevented", "canceled", "canceled", "list", "result"], 1),
        (4, vec!["accepted", "prevented", "canceled", "canceled", "list", "result"], 0),
    ] {
        let mut venue = world();
        let placed = sell_list();
        venue.must(&placed);
        let own = NewOrder { self_trade_prevention: mode, ..limit(1, BUY, 110, 4) };
        let events = venue.must(&own);
        let found: Vec<&str> = events
            .iter()
            .map(|event| match event {
                Owned::Prevented(_) => "prevented",
                other => kinds(&[*other])[0],
            })
            .collect();
        assert_eq!(found, expected, "mode {mode}");
        assert_eq!(venue.core.open_order_count(ANN, ONE), open);
        if open < 2 {
            assert_eq!(
                events[2..5],
                [
                    ended(&venue, &placed, STOP, (EXPIRED, 0)),
                    ended(&venue, &placed, LIMIT, (EXPIRED, 10 * WHOLE)),
                    all_done(&venue),
                ]
            );
        }
        venue.check_replay();
    }
}
