//! What a replacement is refused for, and that it leaves no trace then.

use super::*;

#[test]
fn a_maker_only_order_never_takes() {
    let mut venue = world();
    let maker =
        |side, price| NewOrder { order_type: 7, time_in_force: 0, ..limit(ANN, side, price, 5) };
    venue.must(&limit(BOB, SELL, 12, 1));
    venue.must(&maker(BUY, 10));
    rejected(&mut venue, &replace(2, 12, 5), Why::WouldTake, 0);
    rejected(&mut venue, &replace(2, 13, 9), Why::WouldTake, 0);
    assert_eq!(result(&venue.must(&replace(2, 11, 5))).status, 1);
    venue.check_replay();
}

/// Every reason, and the place in the queue as it was each time.
#[test]
fn every_reason() {
    let mut venue = world();
    let define = DefineSymbol {
        name: touchline_protocol::text::SymbolName::new("MARGIN").unwrap(),
        base: AssetId(0),
        quote: AssetId(1),
        status: 2,
        order_types: ORDER_TYPES_2,
        permissions: PERMISSION_MARGIN,
        ..Default::default()
    };
    venue.must(&define);
    venue.must(&limit(BOB, BUY, 10, 5));
    venue.must(&limit(ANN, BUY, 10, 5));
    venue.must(&limit(CAT, BUY, 10, 5));
    venue.must(&limit(CAT, SELL, 10, 7));
    let stop = NewOrder { order_type: 4, stop_price: 20 * WHOLE, ..limit(ANN, BUY, 20, 5) };
    venue.must(&stop);
    type Change = fn(&mut ReplaceOrder);
    let cases: &[(Change, Why)] = &[
        (|it| it.command.key_id = KeyId(9), Why::UnknownKey),
        (|it| it.command.session = SessionId(9), Why::UnknownSession),
        (|it| it.command.not_after_ns = 1, Why::TooLate),
        (|it| it.command.key_id = KeyId(BOB), Why::UnknownOrder),
        (|it| it.symbol = SymbolId(2), Why::UnknownSymbol),
        (|it| it.symbol = SymbolId(u32::MAX), Why::UnknownSymbol),
        (|it| it.symbol = SymbolId(1), Why::SymbolNotPermitted),
        (|it| it.order_id = OrderId(0), Why::UnknownOrder),
        (|it| it.order_id = OrderId(1), Why::UnknownOrder),
        (|it| it.order_id = OrderId(99), Why::UnknownOrder),
        (|it| it.order_id = OrderId(u64::MAX), Why::UnknownOrder),
        (|it| it.order_id = OrderId(5), Why::NotReplaceable),
        (|it| (it.order_id, it.new_price) = (OrderId(5), 21 * WHOLE), Why::NotReplaceable),
        (|it| it.new_price = 0, Why::InvalidPrice),
        (|it| it.new_price = -1, Why::InvalidPrice),
        (|it| it.new_price = i64::MIN, Why::InvalidPrice),
        (|it| it.new_price = i64::MAX, Why::PriceFilter),
        (|it| it.new_price = 1001 * WHOLE, Why::PriceFilter),
        (|it| it.new_price += 1, Why::PriceFilter),
        (|it| it.new_price = 101 * WHOLE, Why::PercentPrice),
        (|it| it.new_quantity = 0, Why::InvalidQuantity),
        (|it| it.new_quantity = -1, Why::InvalidQuantity),
        (|it| it.new_quantity = i64::MIN, Why::InvalidQuantity),
        (|it| (it.new_price, it.new_quantity) = (11 * WHOLE, i64::MIN), Why::InvalidQuantity),
        (|it| (it.new_price, it.new_quantity) = (11 * WHOLE, 0), Why::InvalidQuantity),
        (|it| it.new_quantity = i64::MAX, Why::LotSize),
        (|it| it.new_quantity += 1, Why::LotSize),
        (|it| it.new_quantity -= 1, Why::LotSize),
        (|it| it.new_quantity = 1001 * WHOLE, Why::LotSize),
        (|it| it.new_quantity = 2 * WHOLE, Why::QuantityBelowExecuted),
        (|it| (it.new_price, it.new_quantity) = (9 * WHOLE, 2 * WHOLE), Why::QuantityBelowExecuted),
        (|_| (), Why::NothingChanged),
        (|it| (it.new_price, it.new_quantity) = (9 * WHOLE, 1000 * WHOLE), Why::MaxPosition),
    ];
    for (change, reason) in cases {
        let mut message = replace(2, 10, 5);
        change(&mut message);
        rejected(&mut venue, &message, *reason, 0);
        assert_eq!(queue(&venue, Side::Buy), [2, 3]);
    }
    venue.must(&SetSymbolStatus { symbol: ONE, status: 5, ..Default::default() });
    rejected(&mut venue, &replace(2, 11, 5), Why::SymbolNotTrading, 0);
    rejected(&mut venue, &replace(2, 10, 4), Why::SymbolNotTrading, 0);
    rejected(&mut venue, &replace(2, -1, -1), Why::SymbolNotTrading, 0);
    venue.check_replay();
}

#[test]
fn by_rules_1_there_is_none() {
    let mut venue = Venue::new();
    venue.set_rules();
    rejected(&mut venue, &replace(1, 10, 5), Why::UnexpectedMessage, 0);
}

/// Funds and position are reckoned with the order gone.
#[test]
fn funds_and_position_of_the_difference() {
    let mut venue = world();
    venue.must(&limit(ANN, BUY, 100, 100));
    assert_eq!(money(&venue, 1), [10_000, 0, 0, 10_000]);
    rejected(&mut venue, &replace(1, 101, 100), Why::InsufficientBalance, 0);
    rejected(&mut venue, &replace(1, 99, 102), Why::MaxPosition, 0);
    rejected(&mut venue, &replace(1, 1, 1), Why::MinNotional, 0);
    venue.must(&replace(1, 200, 50));
    venue.must(&replace(1, 99, 100));
    assert_eq!(money(&venue, 1), [10_000, 0, 100, 9_900]);
    venue.must(&limit(BOB, SELL, 1000, 10));
    let mut other = replace(2, 1000, 11);
    other.command = key(BOB);
    venue.must(&other);
    assert_eq!(money(&venue, 2), [9_989, 11, 10_000, 0]);
    other.new_quantity = 1000 * WHOLE;
    venue.must(&other);
    venue.check_replay();
}

/// A full venue: the order's own room and level are its successor's.
#[test]
fn room_of_the_order_is_its_own() {
    let mut venue = world_of(
        Limits { open_orders: 3, price_levels: 2, pending_work: 0, max_steps: 2, ..roomy() },
        filters(),
    );
    venue.must(&limit(ANN, BUY, 10, 5));
    venue.must(&limit(BOB, BUY, 10, 5));
    venue.must(&limit(ANN, BUY, 9, 5));
    rejected(&mut venue, &replace(1, 8, 5), Why::CapacityReached, number::PRICE_LEVELS);
    venue.must(&replace(3, 8, 5));
    venue.must(&replace(1, 8, 5));
    assert_eq!(queue(&venue, Side::Buy), [2, 3, 1]);
    venue.check_replay();
    // What may take longer than one transaction needs room in the queue of pending work.
    let limits = Limits { pending_work: 0, max_steps: 2, ..roomy() };
    let mut venue = world_of(limits, filters());
    for _ in 0..3 {
        venue.must(&limit(BOB, SELL, 12, 1));
    }
    venue.must(&limit(ANN, BUY, 10, 5));
    rejected(&mut venue, &replace(4, 12, 5), Why::CapacityReached, number::PENDING_WORK);
    venue.check_replay();
}

/// However often an order is replaced and executed, what it has executed stays in range.
#[test]
fn executed_quote_is_bounded() {
    let mut venue = world_of(roomy(), SymbolFilters::default());
    for asset in [0, 1] {
        let rest = AMOUNT_MAX - 30_000 * WHOLE;
        venue.deposit(AccountId(1), AssetId(asset), rest);
    }
    let round = |quantity, price| NewOrder { price, quantity, ..limit(ANN, BUY, 0, 0) };
    let half = AMOUNT_MAX / 2 - 10_000 * WHOLE;
    venue.must(&round(2 * WHOLE, half));
    venue.must(&NewOrder { side: SELL, ..round(WHOLE, half) });
    let message = |price, quantity| ReplaceOrder {
        new_price: price,
        new_quantity: quantity,
        ..replace(1, 0, 0)
    };
    // Half of the most is executed; the rest may be worth the other half and no more.
    let other = AMOUNT_MAX - half;
    rejected(&mut venue, &message(other / 2 + 1, 3 * WHOLE), Why::Overflow, 0);
    rejected(&mut venue, &message(other + 1, 2 * WHOLE), Why::Overflow, 0);
    venue.must(&message(half / 3, 4 * WHOLE));
    venue.must(&NewOrder { side: SELL, ..round(WHOLE, half / 3) });
    rejected(&mut venue, &message(half / 2, 4 * WHOLE), Why::Overflow, 0);
    venue.check_replay();
}

/// A venue to which refused replacements happen goes the same way as one without them.
#[test]
fn a_refused_replacement_leaves_no_trace() {
    let run = |with_rejects: bool| {
        let mut venue = world_of(Limits { price_levels: 3, ..roomy() }, filters());
        for (owner, side, price, quantity) in [
            (BOB, BUY, 10, 3),
            (ANN, BUY, 10, 4),
            (CAT, BUY, 10, 5),
            (ANN, BUY, 9, 4),
            (ANN, SELL, 12, 6),
        ] {
            let mut order = limit(owner, side, price, quantity);
            order.iceberg_quantity = if quantity > 3 { 2 * WHOLE } else { 0 };
            venue.must(&order);
        }
        for round in 0..12 {
            if with_rejects {
                // First, in the middle and last of a queue, alone on a level, of either side.
                for order_id in [2, 4, 5] {
                    for (price, quantity) in [(11, 4), (10, 900), (8, 4), (9, 8)] {
                        let message = replace(order_id, price, quantity);
                        let open = venue.core.open_order(ONE, OrderId(order_id));
                        if open.is_some() {
                            let _ = venue.apply(&replace(order_id, price, 5000));
                        }
                        if quantity == 900 {
                            assert!(venue.apply(&message).is_err());
                        }
                    }
                }
            }
            let side = if round % 3 == 2 { BUY } else { SELL };
            let price = if side == BUY { 12 } else { 9 };
            venue.must(&NewOrder { time_in_force: 2, ..limit(CAT, side, price, 1) });
        }
        let events: Vec<u8> =
            venue.journal.iter().flat_map(|entry| entry.events.iter().copied()).collect();
        (events, venue.core.state_hash())
    };
    assert_eq!(run(true), run(false));
}

/// What the order was paid and what it asks for are more than a sum can hold, each by itself is not.
#[test]
fn more_than_can_be_added_up_is_refused() {
    let mut venue = world_of(roomy(), SymbolFilters::default());
    let (ann, bob) = (AccountId(1), AccountId(2));
    venue.deposit(ann, AssetId(0), 1_000_000 * WHOLE);
    venue.deposit(bob, AssetId(1), 46_000_000_000 * WHOLE);
    venue.must(&NewOrder { quantity: WHOLE / 2, ..limit(BOB, BUY, 92_000_000_000, 1) });
    venue.must(&limit(ANN, SELL, 46_000_000, 1_000));
    let amount = venue.core.balance(ann, AssetId(1)).unwrap().free.0;
    venue.must(&Withdraw { account: ann, asset: AssetId(1), amount, ..Default::default() });
    venue.deposit(bob, AssetId(1), amount);
    venue.must(&limit(BOB, BUY, 46_000_000, 900));
    rejected(&mut venue, &replace(2, 46_000, 1_000_000), Why::Overflow, 0);
    rejected(&mut venue, &replace(2, 46_000_001, 1_000), Why::Overflow, 0);
    venue.check_replay();
}
