//! Filters and order counts: each order of a list is judged as one of its own, both are counted.

use super::*;

/// Each filter, met by one order and not by the other.
#[test]
fn every_filter_binds_each_order() {
    type Filter = fn(&mut SymbolFilters);
    let limit_price = |price| PlaceOrderList { price, ..sell_list() };
    let stop_price = |stop_price| PlaceOrderList { stop_price, ..sell_list() };
    let stop_limit = |stop_limit_price| PlaceOrderList { stop_limit_price, ..sell_list() };
    let tick: Filter = |it| it.tick_size = WHOLE;
    let lot: Filter = |it| (it.lot_min, it.lot_step) = (WHOLE, WHOLE);
    let parts: Filter = |it| it.iceberg_parts = 4;
    let percent: Filter =
        |it| (it.percent_price_up, it.percent_price_down) = (3 * WHOLE / 2, WHOLE / 2);
    let least: Filter = |it| it.min_notional = 900 * WHOLE;
    let position: Filter = |it| it.max_position = 100_019 * WHOLE;
    let quantity = |quantity| PlaceOrderList { quantity, ..sell_list() };
    let cases: [(Filter, PlaceOrderList, Option<Why>); 22] = [
        (tick, sell_list(), None),
        (tick, limit_price(110 * WHOLE + 1), Some(Why::PriceFilter)),
        (tick, stop_price(90 * WHOLE + 1), Some(Why::PriceFilter)),
        (tick, stop_limit(80 * WHOLE + 1), Some(Why::PriceFilter)),
        (lot, quantity(10 * WHOLE + 1), Some(Why::LotSize)),
        (
            lot,
            PlaceOrderList { limit_iceberg_quantity: WHOLE + 1, ..sell_list() },
            Some(Why::LotSize),
        ),
        (lot, PlaceOrderList { stop_iceberg_quantity: 1, ..sell_list() }, Some(Why::LotSize)),
        (parts, PlaceOrderList { limit_iceberg_quantity: 3 * WHOLE, ..sell_list() }, None),
        (
            parts,
            PlaceOrderList { limit_iceberg_quantity: 2 * WHOLE, ..sell_list() },
            Some(Why::IcebergParts),
        ),
        (
            parts,
            PlaceOrderList { stop_iceberg_quantity: 2 * WHOLE, ..sell_list() },
            Some(Why::IcebergParts),
        ),
        (percent, sell_list(), None),
        (percent, limit_price(151 * WHOLE), Some(Why::PercentPrice)),
        (percent, stop_limit(49 * WHOLE), Some(Why::PercentPrice)),
        // The stop price itself is not bound.
        (percent, stop_price(WHOLE), None),
        (least, list(SELL, 110, 90, 89), Some(Why::MinNotional)),
        (least, list(SELL, 110, 90, 90), None),
        (least, list(SELL, 110, 89, 0), Some(Why::MinNotional)),
        (least, list(SELL, 110, 90, 0), None),
        (least, list(BUY, 89, 110, 120), Some(Why::MinNotional)),
        // 100,000 are there, and a list buys its quantity once.
        (position, PlaceOrderList { quantity: 20 * WHOLE, ..buy_list() }, Some(Why::MaxPosition)),
        (position, PlaceOrderList { quantity: 19 * WHOLE, ..buy_list() }, None),
        (position, PlaceOrderList { quantity: 50 * WHOLE, ..sell_list() }, None),
    ];
    for (filter, message, why) in cases {
        let mut filters = SymbolFilters::default();
        filter(&mut filters);
        let mut venue = world_of(roomy(), filters);
        assert_eq!(reason(&mut venue, &message), why.map(|why| (why, 0)), "{message:?}");
    }
}

#[test]
fn a_position_counts_a_list_once_for_as_long_as_it_is_open() {
    let filters = SymbolFilters { max_position: 100_019 * WHOLE, ..Default::default() };
    let mut venue = world_of(roomy(), filters);
    venue.must(&buy_list());
    let nine = || limit(1, BUY, 1, 9);
    assert_eq!(reason(&mut venue, &limit(1, BUY, 1, 10)), Some((Why::MaxPosition, 0)));
    venue.must(&nine());
    // The stop leg lives on by itself, and counts.
    trade_at(&mut venue, 110);
    venue.drain();
    let stop = venue.core.open_order(ONE, STOP).unwrap();
    assert_eq!((stop.price.0, stop.remaining.0), (120 * WHOLE, 10 * WHOLE));
    assert_eq!(reason(&mut venue, &limit(1, BUY, 1, 1)), Some((Why::MaxPosition, 0)));
    venue.must(&cancel(STOP));
    venue.must(&limit(1, BUY, 1, 10));
}

#[test]
fn open_orders_are_counted_as_two_and_one_of_them_as_an_algo_order() {
    type Filter = fn(&mut SymbolFilters);
    let iceberg = || PlaceOrderList { limit_iceberg_quantity: WHOLE, ..sell_list() };
    let both = || PlaceOrderList { stop_iceberg_quantity: WHOLE, ..iceberg() };
    let two: Filter = |it| it.max_orders = 2;
    let one: Filter = |it| it.max_orders = 1;
    let algo: Filter = |it| it.max_algo_orders = 1;
    let one_iceberg: Filter = |it| it.max_iceberg_orders = 1;
    let cases: [(Filter, PlaceOrderList, Option<Why>); 6] = [
        (two, sell_list(), None),
        (one, sell_list(), Some(Why::MaxNumOrders)),
        (algo, sell_list(), None),
        (one_iceberg, sell_list(), None),
        (one_iceberg, iceberg(), None),
        (one_iceberg, both(), Some(Why::MaxNumIcebergOrders)),
    ];
    for (filter, message, why) in cases {
        let mut filters = SymbolFilters::default();
        filter(&mut filters);
        let mut venue = world_of(roomy(), filters);
        assert_eq!(reason(&mut venue, &message), why.map(|why| (why, 0)), "{message:?}");
    }
    // With a list open: the next order is one too many, and the next algo order.
    let filters = SymbolFilters { max_orders: 3, max_algo_orders: 1, ..Default::default() };
    let mut venue = world_of(roomy(), filters);
    venue.must(&sell_list());
    let second = PlaceOrderList {
        list_client_order_id: named("b"),
        limit_client_order_id: named("c"),
        stop_client_order_id: named("d"),
        ..sell_list()
    };
    assert_eq!(reason(&mut venue, &second), Some((Why::MaxNumOrders, 0)));
    let stop = NewOrder { order_type: 4, stop_price: WHOLE, ..limit(1, SELL, 1, 1) };
    assert_eq!(reason(&mut venue, &stop), Some((Why::MaxNumAlgoOrders, 0)));
    venue.must(&limit(1, BUY, 1, 1));
    assert_eq!(reason(&mut venue, &limit(1, BUY, 1, 1)), Some((Why::MaxNumOrders, 0)));
    venue.must(&cancel_list(0, ""));
    venue.must(&stop);
}

#[test]
fn the_exchange_counts_them_likewise() {
    let mut venue = world();
    let filters = |max_orders, max_algo_orders| SetVenueFilters {
        max_orders,
        max_algo_orders,
        ..Default::default()
    };
    venue.must(&filters(1, 0));
    assert_eq!(reason(&mut venue, &sell_list()), Some((Why::ExchangeMaxNumOrders, 0)));
    venue.must(&filters(2, 1));
    venue.must(&sell_list());
    assert_eq!(reason(&mut venue, &limit(1, BUY, 1, 1)), Some((Why::ExchangeMaxNumOrders, 0)));
    venue.must(&filters(9, 1));
    let stop = NewOrder { order_type: 4, stop_price: WHOLE, ..limit(1, SELL, 1, 1) };
    assert_eq!(reason(&mut venue, &stop), Some((Why::ExchangeMaxNumAlgoOrders, 0)));
    venue.must(&cancel(STOP));
    venue.must(&stop);
}

#[test]
fn order_windows_take_two_or_nothing() {
    let mut venue = world();
    let limits = |orders_per_interval_0| Limits { orders_per_interval_0, ..roomy() };
    venue.set_limits(limits(3));
    venue.must(&sell_list());
    venue.must(&cancel_list(0, ""));
    assert_eq!(reason(&mut venue, &sell_list()), Some((Why::TooManyOrders, 0)));
    let events = venue.must(&limit(1, BUY, 1, 1));
    assert_eq!(results(&events)[0].order_count_0, 3);
    venue.set_limits(Limits { orders_per_interval_1: 4, ..roomy() });
    assert_eq!(reason(&mut venue, &sell_list()), Some((Why::TooManyOrders, 1)));
    venue.set_limits(Limits { orders_per_interval_1: 5, ..roomy() });
    venue.must(&sell_list());
    venue.check_replay();
}
