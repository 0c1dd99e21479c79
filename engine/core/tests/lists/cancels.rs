//! A list that its owner cancels, by either order or as a whole, and what else may be done to one.

use super::*;
use touchline_protocol::message::enums::SymbolStatus;

fn by_name(name: &str) -> CancelOrderNamed {
    CancelOrderNamed {
        command: header(1),
        symbol: ONE,
        client_order_id: named(name),
        ..Default::default()
    }
}

#[test]
fn every_way_ends_both_orders() {
    type Way = fn(&mut Venue) -> Vec<Owned>;
    let ways: [Way; 8] = [
        |venue| venue.must(&cancel(STOP)),
        |venue| venue.must(&cancel(LIMIT)),
        |venue| venue.must(&by_name("stop")),
        |venue| venue.must(&by_name("limit")),
        |venue| venue.must(&CancelOrderNamed { order_id: STOP, ..by_name("stop") }),
        |venue| venue.must(&cancel_list(0, "")),
        |venue| venue.must(&cancel_list(-1, "list")),
        |venue| venue.must(&cancel_list(0, "list")),
    ];
    for way in ways {
        for (placed, released) in
            [(sell_list(), [0, 10]), (buy_list(), [300, 900]), (list(BUY, 90, 110, 0), [200, 900])]
        {
            let mut venue = world();
            venue.must(&placed);
            let before = book_update(&venue);
            let events = way(&mut venue);
            let of = |venue: &Venue, id, released: i64| {
                ended(venue, &placed, id, (CANCELED, released * WHOLE))
            };
            assert_eq!(
                events,
                [of(&venue, STOP, released[0]), of(&venue, LIMIT, released[1]), all_done(&venue),]
            );
            assert_eq!(book_update(&venue).0, before.0 + 1);
            assert_eq!(venue.core.open_order_list(OrderListId(0)), None);
            assert_eq!(venue.core.find_open_order_list(ANN, ONE, &named("list")), None);
            is_over(&venue);
        }
    }
}

#[test]
fn cancels_that_name_nothing() {
    let mut venue = world();
    venue.must(&sell_list());
    venue.must(&PlaceOrderList {
        list_client_order_id: named("other"),
        limit_client_order_id: named("c"),
        stop_client_order_id: named("d"),
        ..sell_list()
    });
    venue.symbol_of("TWO", (BASE, QUOTE), SymbolFilters::default(), (ORDER_TYPES_2, SYMBOL_OCO));
    let unknown = Some((Why::UnknownOrderList, 0));
    let cases = [
        (cancel_list(2, ""), unknown),
        (cancel_list(i64::MAX, ""), unknown),
        (cancel_list(i64::MIN, ""), unknown),
        (cancel_list(-1, ""), unknown),
        (cancel_list(-1, "limit"), unknown),
        (cancel_list(2, "list"), unknown),
        (CancelOrderList { command: header(2), ..cancel_list(0, "") }, unknown),
        (CancelOrderList { command: header(2), ..cancel_list(-1, "list") }, unknown),
        (CancelOrderList { symbol: SymbolId(1), ..cancel_list(0, "") }, unknown),
        (CancelOrderList { symbol: SymbolId(1), ..cancel_list(-1, "list") }, unknown),
        (
            CancelOrderList { symbol: SymbolId(2), ..cancel_list(0, "") },
            Some((Why::UnknownSymbol, 0)),
        ),
        (CancelOrderList { command: header(9), ..cancel_list(0, "") }, Some((Why::UnknownKey, 0))),
        (cancel_list(0, "other"), Some((Why::OrderListIdMismatch, 0))),
        (cancel_list(0, "none"), Some((Why::OrderListIdMismatch, 0))),
    ];
    for (message, why) in cases {
        assert_eq!(reason(&mut venue, &message), why, "{message:?}");
    }
    let mismatch = CancelOrderNamed { order_id: STOP, ..by_name("limit") };
    assert_eq!(reason(&mut venue, &mismatch), Some((Why::ClientOrderIdMismatch, 0)));
    venue.must(&cancel_list(0, ""));
    assert_eq!(reason(&mut venue, &cancel_list(0, "")), unknown);
    assert_eq!(reason(&mut venue, &cancel_list(-1, "list")), unknown);
    assert_eq!(reason(&mut venue, &cancel(STOP)), Some((Why::UnknownOrder, 0)));
    venue.must(&cancel_list(1, "other"));
    is_over(&venue);
}

#[test]
fn a_halt_keeps_nobody_from_cancelling() {
    let mut venue = world();
    venue.must(&sell_list());
    venue.must(&SetSymbolStatus {
        symbol: ONE,
        status: SymbolStatus::Halt.to_wire(),
        ..Default::default()
    });
    venue.must(&cancel_list(0, ""));
    is_over(&venue);
}

#[test]
fn no_order_of_an_open_list_is_changed() {
    let mut venue = world();
    venue.must(&sell_list());
    let reduce = |order_id| ReduceOrder {
        command: header(1),
        symbol: ONE,
        order_id,
        new_quantity: WHOLE,
        ..Default::default()
    };
    for id in [STOP, LIMIT] {
        assert_eq!(reason(&mut venue, &reduce(id)), Some((Why::NotReplaceable, 0)));
    }
    // Touched, the limit leg is an order like any other.
    venue.must(&limit(2, BUY, 110, 2));
    venue.must(&ReduceOrder { new_quantity: 5 * WHOLE, ..reduce(LIMIT) });
    assert_eq!(money(&venue, ANN, BASE).1, 3 * WHOLE);
    let events = venue.must(&cancel(LIMIT));
    let [Owned::Canceled(canceled)] = events[..] else { panic!("{events:?}") };
    assert_eq!(canceled.order_list_id, OrderListId(0));
    assert_eq!((canceled.executed_quantity, canceled.released), (2 * WHOLE, 3 * WHOLE));
    is_over(&venue);
}
