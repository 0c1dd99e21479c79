//! Placing lists: events, money, names, prices, fields, capacities.

use super::*;
use touchline_protocol::message::enums::SymbolStatus;

#[test]
fn both_orders_are_accepted_stop_leg_first() {
    for (placed, locks, asset) in [
        (sell_list(), [0, 10], BASE),
        (list(SELL, 110, 90, 0), [0, 10], BASE),
        // Buys lock the dearer price once: 10 at 90 and the rest of 10 at 120 (or 110).
        (buy_list(), [300, 900], QUOTE),
        (list(BUY, 90, 110, 0), [200, 900], QUOTE),
        // A stop limit below the limit leg's price needs nothing more.
        (list(BUY, 90, 110, 70), [0, 900], QUOTE),
    ] {
        let mut venue = world();
        let before = book_update(&venue);
        let mut message = placed;
        message.command.correlation = 7;
        let events = venue.must(&message);
        let is_limit_stop = placed.stop_limit_price > 0;
        let accepted = |order_id, price, order_type, locked| {
            Owned::Accepted(OrderAccepted {
                order_id,
                account: ANN,
                symbol: ONE,
                locked: locked * WHOLE,
                price,
                quantity: 10 * WHOLE,
                order_list_id: OrderListId(0),
                side: placed.side,
                order_type,
                time_in_force: GTC,
                ..Default::default()
            })
        };
        assert_eq!(
            events,
            [
                accepted(
                    STOP,
                    placed.stop_limit_price,
                    if is_limit_stop { STOP_LOSS_LIMIT } else { STOP_LOSS },
                    locks[0],
                ),
                accepted(LIMIT, placed.price, LIMIT_MAKER, locks[1]),
                Owned::ListChanged(OrderListChanged {
                    order_list_id: OrderListId(0),
                    account: ANN,
                    symbol: ONE,
                    limit_order_id: LIMIT,
                    stop_order_id: STOP,
                    list_status_type: 2,
                    list_order_status: 1,
                    list_client_order_id: named("list"),
                    order_count_0: 2,
                    order_count_1: 2,
                    book_update_id: BookUpdateId(before.0 + 1),
                    ..Default::default()
                }),
            ]
        );
        let locked = locks.iter().sum::<i64>() * WHOLE;
        assert_eq!(money(&venue, ANN, asset), (FUNDS - locked, locked));
        let open = venue.core.open_order_list(OrderListId(0)).unwrap();
        assert_eq!((open.stop_order_id, open.limit_order_id), (STOP, LIMIT));
        assert_eq!(venue.core.find_open_order_list(ANN, ONE, &named("list")), Some(open));
        for id in [STOP, LIMIT] {
            assert_eq!(venue.core.open_order(ONE, id).unwrap().order_list_id, OrderListId(0));
        }
        assert_eq!(venue.core.open_order_count(ANN, ONE), 2);
        venue.must(&cancel_list(0, ""));
        is_over(&venue);
    }
}

#[test]
fn rounding_never_leaves_either_order_short() {
    let mut venue = world();
    let odd = PlaceOrderList {
        price: 99 * WHOLE + 33,
        stop_price: 100 * WHOLE + 1,
        stop_limit_price: 99 * WHOLE + 34,
        quantity: WHOLE + 7,
        ..buy_list()
    };
    let events = venue.must(&odd);
    let [Owned::Accepted(stop), Owned::Accepted(limit), _] = events[..] else {
        panic!("{events:?}")
    };
    let needed = |price: i64| {
        let exact = i128::from(price) * i128::from(WHOLE + 7);
        ((exact + i128::from(WHOLE) - 1) / i128::from(WHOLE)) as i64
    };
    assert_eq!(limit.locked, needed(99 * WHOLE + 33));
    assert_eq!(stop.locked + limit.locked, needed(99 * WHOLE + 34));
    venue.must(&cancel(LIMIT));
    is_over(&venue);
}

#[test]
fn numbers_of_lists_are_the_venues_and_go_up() {
    let mut venue = world();
    let other = venue.symbol_of(
        "TWO",
        (BASE, QUOTE),
        SymbolFilters::default(),
        (ORDER_TYPES_2, SYMBOL_OCO),
    );
    for side in [SELL, BUY] {
        venue.must(&NewOrder { symbol: other, ..limit(2, side, 100, 1) });
    }
    let id = |events: &[Owned]| match events.last() {
        Some(Owned::ListChanged(changed)) => changed.order_list_id.0,
        other => panic!("{other:?}"),
    };
    assert_eq!(id(&venue.must(&sell_list())), 0);
    // Other names of the same symbol, the same names on another one, and of another account.
    let unnamed = PlaceOrderList {
        list_client_order_id: Default::default(),
        limit_client_order_id: Default::default(),
        stop_client_order_id: Default::default(),
        ..sell_list()
    };
    assert_eq!(id(&venue.must(&unnamed)), 1);
    assert_eq!(id(&venue.must(&unnamed)), 2);
    assert_eq!(id(&venue.must(&PlaceOrderList { symbol: other, ..sell_list() })), 3);
    assert_eq!(id(&venue.must(&PlaceOrderList { command: header(2), ..sell_list() })), 4);
    assert_eq!(reason(&mut venue, &sell_list()), Some((Why::DuplicateClientOrderId, 0)));
    venue.must(&cancel_list(0, "list"));
    assert_eq!(id(&venue.must(&sell_list())), 5);
    venue.check_replay();
}

#[test]
fn names_are_unique() {
    let mut venue = world();
    let named_order = |name: &str| NewOrder { client_order_id: named(name), ..limit(1, BUY, 1, 1) };
    venue.must(&named_order("open"));
    venue.must(&sell_list());
    let fresh = || PlaceOrderList {
        list_client_order_id: named("list 2"),
        limit_client_order_id: named("limit 2"),
        stop_client_order_id: named("stop 2"),
        ..sell_list()
    };
    let taken = Some((Why::DuplicateClientOrderId, 0));
    for message in [
        PlaceOrderList { list_client_order_id: named("list"), ..fresh() },
        PlaceOrderList { limit_client_order_id: named("limit"), ..fresh() },
        PlaceOrderList { limit_client_order_id: named("stop"), ..fresh() },
        PlaceOrderList { limit_client_order_id: named("open"), ..fresh() },
        PlaceOrderList { stop_client_order_id: named("stop"), ..fresh() },
        PlaceOrderList { stop_client_order_id: named("limit"), ..fresh() },
        PlaceOrderList { stop_client_order_id: named("open"), ..fresh() },
        PlaceOrderList { stop_client_order_id: named("limit 2"), ..fresh() },
    ] {
        assert_eq!(reason(&mut venue, &message), taken, "{message:?}");
    }
    for name in ["limit", "stop"] {
        assert_eq!(reason(&mut venue, &named_order(name)), taken);
    }
    // A list's name is no order's.
    venue.must(&named_order("list"));
    venue.must(&PlaceOrderList { list_client_order_id: named("limit"), ..fresh() });
}

#[test]
fn prices_stand_around_the_last_one() {
    let mut venue = world();
    let wrong = Some((Why::OrderListPrices, 0));
    for (side, price, stop_price) in [
        (SELL, 100, 90),
        (SELL, 99, 90),
        (SELL, 110, 100),
        (SELL, 110, 101),
        (SELL, 90, 110),
        (BUY, 100, 110),
        (BUY, 101, 110),
        (BUY, 90, 100),
        (BUY, 90, 99),
        (BUY, 110, 90),
    ] {
        for stop_limit_price in [0, 100] {
            let message = list(side, price, stop_price, stop_limit_price);
            assert_eq!(reason(&mut venue, &message), wrong, "{message:?}");
        }
    }
    let never_traded = venue.symbol_of(
        "NEW",
        (BASE, QUOTE),
        SymbolFilters::default(),
        (ORDER_TYPES_2, SYMBOL_OCO),
    );
    let message = PlaceOrderList { symbol: never_traded, ..sell_list() };
    assert_eq!(reason(&mut venue, &message), wrong);
    // The limit leg is one that only makes.
    venue.must(&limit(2, BUY, 105, 1));
    let crossing = list(SELL, 105, 90, 0);
    assert_eq!(reason(&mut venue, &crossing), Some((Why::WouldTake, 0)));
    venue.must(&list(SELL, 106, 90, 0));
}

#[test]
fn fields_that_do_not_go_together() {
    let mut venue = world();
    let plain = venue.symbol_of(
        "PLAIN",
        (BASE, QUOTE),
        SymbolFilters::default(),
        (ORDER_TYPES_2, SYMBOL_ICEBERG),
    );
    let types = |venue: &mut Venue, name, without: u8| {
        let types = ORDER_TYPES_2 & !(1 << without);
        venue.symbol_of(name, (BASE, QUOTE), SymbolFilters::default(), (types, SYMBOL_OCO))
    };
    let no_maker = types(&mut venue, "NOMAKER", LIMIT_MAKER);
    let no_stop = types(&mut venue, "NOSTOP", STOP_LOSS);
    let no_stop_limit = types(&mut venue, "NOSTOPLIMIT", STOP_LOSS_LIMIT);
    let market = || list(SELL, 110, 90, 0);
    let combination = Why::UnsupportedCombination;
    let cases = [
        (PlaceOrderList { side: 0, ..sell_list() }, Why::InvalidSide),
        (PlaceOrderList { side: 3, ..sell_list() }, Why::InvalidSide),
        (PlaceOrderList { symbol: SymbolId(99), ..sell_list() }, Why::UnknownSymbol),
        (PlaceOrderList { symbol: plain, ..sell_list() }, Why::OrderTypeNotSupported),
        (PlaceOrderList { symbol: no_maker, ..sell_list() }, Why::OrderTypeNotSupported),
        (PlaceOrderList { symbol: no_stop, ..market() }, Why::OrderTypeNotSupported),
        (PlaceOrderList { symbol: no_stop_limit, ..sell_list() }, Why::OrderTypeNotSupported),
        (PlaceOrderList { stop_limit_time_in_force: 0, ..sell_list() }, combination),
        (PlaceOrderList { stop_limit_time_in_force: 1, ..market() }, combination),
        (PlaceOrderList { stop_limit_time_in_force: 4, ..sell_list() }, Why::InvalidTimeInForce),
        (PlaceOrderList { stop_iceberg_quantity: WHOLE, ..market() }, combination),
        (
            PlaceOrderList {
                stop_iceberg_quantity: WHOLE,
                stop_limit_time_in_force: IOC,
                ..sell_list()
            },
            combination,
        ),
        (PlaceOrderList { symbol: no_stop, limit_iceberg_quantity: 1, ..sell_list() }, combination),
        (PlaceOrderList { symbol: no_stop, stop_iceberg_quantity: 1, ..sell_list() }, combination),
        (PlaceOrderList { self_trade_prevention: 9, ..sell_list() }, combination),
        (PlaceOrderList { flags: 2, ..sell_list() }, combination),
        (PlaceOrderList { price: 0, ..sell_list() }, Why::InvalidPrice),
        (PlaceOrderList { price: -1, ..sell_list() }, Why::InvalidPrice),
        (PlaceOrderList { stop_price: 0, ..sell_list() }, Why::InvalidPrice),
        (PlaceOrderList { stop_price: i64::MIN, ..market() }, Why::InvalidPrice),
        (PlaceOrderList { stop_limit_price: -1, ..sell_list() }, Why::InvalidPrice),
        (PlaceOrderList { quantity: 0, ..sell_list() }, Why::InvalidQuantity),
        (PlaceOrderList { quantity: -WHOLE, ..buy_list() }, Why::InvalidQuantity),
        (PlaceOrderList { quantity: i64::MAX, ..buy_list() }, Why::Overflow),
        (PlaceOrderList { limit_iceberg_quantity: -1, ..sell_list() }, Why::InvalidQuantity),
        (PlaceOrderList { stop_iceberg_quantity: -1, ..sell_list() }, Why::InvalidQuantity),
        (PlaceOrderList { command: header(9), ..sell_list() }, Why::UnknownKey),
    ];
    for (message, why) in cases {
        assert_eq!(reason(&mut venue, &message), Some((why, 0)), "{message:?}");
    }
    venue.must(&SetSymbolStatus {
        symbol: ONE,
        status: SymbolStatus::Halt.to_wire(),
        ..Default::default()
    });
    for message in [sell_list(), PlaceOrderList { price: -1, ..sell_list() }] {
        assert_eq!(reason(&mut venue, &message), Some((Why::SymbolNotTrading, 0)));
    }
}

#[test]
fn lists_are_of_rules_2() {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(roomy());
    assert_eq!(reason(&mut venue, &sell_list()), Some((Why::UnexpectedMessage, 0)));
    assert_eq!(reason(&mut venue, &cancel_list(0, "")), Some((Why::UnexpectedMessage, 0)));
}

#[test]
fn validation_alone_changes_nothing() {
    let mut venue = world();
    let only = PlaceOrderList { flags: ORDER_VALIDATE_ONLY, ..sell_list() };
    let valid = Owned::Valid(OrderValid { symbol: ONE, ..Default::default() });
    assert_eq!(venue.apply(&only), Ok(vec![valid]));
    let bad = PlaceOrderList { flags: ORDER_VALIDATE_ONLY, price: 0, ..sell_list() };
    assert_eq!(reason(&mut venue, &bad), Some((Why::InvalidPrice, 0)));
    assert_eq!(venue.core.open_order_list(OrderListId(0)), None);
}

#[test]
fn funds_for_the_dearer_order_are_enough() {
    for (placed, asset, needed) in [
        (sell_list(), BASE, 10),
        (buy_list(), QUOTE, 1200),
        (list(BUY, 90, 110, 0), QUOTE, 1100),
        (list(BUY, 90, 110, 80), QUOTE, 900),
    ] {
        let mut venue = world();
        let amount = FUNDS - needed * WHOLE + 1;
        venue.must(&Withdraw { account: ANN, asset, amount, ..Default::default() });
        assert_eq!(reason(&mut venue, &placed), Some((Why::InsufficientBalance, 0)));
        venue.deposit(ANN, asset, 1);
        venue.must(&placed);
        assert_eq!(money(&venue, ANN, asset), (0, needed * WHOLE));
    }
}

#[test]
fn room_is_needed_for_both_orders() {
    let full = |open_orders, price_levels| Limits { open_orders, price_levels, ..roomy() };
    let capacity = |number| Some((Why::CapacityReached, number));
    let market = || list(SELL, 110, 90, 0);
    for (limits, message, why) in [
        (full(1, 9), sell_list(), capacity(5)),
        (full(2, 9), sell_list(), None),
        // A level to rest on, one to wait on, and one for the stop leg to rest on one day.
        (full(9, 2), sell_list(), capacity(6)),
        (full(9, 3), sell_list(), None),
        (full(9, 1), market(), capacity(6)),
        (full(9, 2), market(), None),
        (full(9, 2), PlaceOrderList { stop_limit_time_in_force: FOK, ..sell_list() }, None),
    ] {
        let mut venue = world();
        venue.set_limits(limits);
        assert_eq!(reason(&mut venue, &message), why, "{limits:?}");
        if why.is_none() {
            place_again(&mut venue, &message);
        }
    }
    // Levels that are there already are shared, but for the one that is kept.
    let mut venue = world();
    venue.must(&sell_list());
    let second = PlaceOrderList {
        list_client_order_id: named("b"),
        limit_client_order_id: named("c"),
        stop_client_order_id: named("d"),
        ..sell_list()
    };
    venue.set_limits(full(9, 3));
    assert_eq!(reason(&mut venue, &second), capacity(6));
    venue.set_limits(full(9, 4));
    venue.must(&second);
}

/// A list that fills every capacity can be cancelled, and placed again.
fn place_again(venue: &mut Venue, message: &PlaceOrderList) {
    venue.must(&cancel(STOP));
    venue.must(message);
    venue.must(&cancel_list(1, "list"));
    is_over(venue);
}
