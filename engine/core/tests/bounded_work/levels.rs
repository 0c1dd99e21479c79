//! What is decided about an order before it takes is decided by no more price levels than
//! `LEVELS_JUDGED_MAX`, whatever its sender can pay.

use crate::orders::{ONE, by, limit, limits, market, stop, trade_at, with_name, world};
use crate::venue::{Owned, Venue, WHOLE};
use touchline_core::Reject;
use touchline_core::limits::{LEVELS_JUDGED_MAX, number};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{
    OrderStatus, OrderType, RejectReason, SelfTradePrevention, Side, TimeInForce,
};
use touchline_protocol::units::*;

const LEVELS: i64 = LEVELS_JUDGED_MAX as i64;
const TOO_DEEP: Reject =
    Reject { reason: RejectReason::CapacityReached, detail: number::MAX_STEPS };

/// One unit at each price from 1 on, at one price more than are looked at.
fn ladder(rules: u32) -> Venue {
    let mut venue = world(rules, limits(512, LEVELS + 10));
    for price in 1..=LEVELS + 1 {
        venue.must_quickly(&limit(1, Side::Sell, price, 1));
    }
    venue
}

/// What came of an order in the end: its status and what it has executed, in whole units.
fn outcome(venue: &mut Venue, order: &NewOrder) -> Result<(OrderStatus, i64), Reject> {
    let mut events = venue.apply(order)?;
    events.extend(venue.drain());
    let result = events.iter().find_map(|event| match event {
        Owned::Result(result) => Some(*result),
        _ => None,
    });
    let result = result.expect("it has ended");
    let status = OrderStatus::from_wire(result.status).unwrap();
    Ok((status, result.executed_quantity / WHOLE))
}

#[test]
fn fill_or_kill_finds_no_more_than_that() {
    for (quantity, expected) in
        [(LEVELS + 1, (OrderStatus::Expired, 0)), (LEVELS, (OrderStatus::Filled, LEVELS))]
    {
        let order = NewOrder {
            time_in_force: TimeInForce::Fok.to_wire(),
            ..limit(2, Side::Buy, LEVELS + 1, quantity)
        };
        assert_eq!(outcome(&mut ladder(2), &order), Ok(expected));
    }
}

/// Where its account has an order on the other side, be it out of reach, FOK looks at the orders one by one: by
/// rules 5 at as many, by those before at one transaction's steps.
#[test]
fn fill_or_kill_among_own_orders_finds_no_more_orders_than_that() {
    let (filled, killed) = (OrderStatus::Filled, (OrderStatus::Expired, 0));
    for (rules, max_steps, quantity, expected) in [
        (4, 16, 16, (filled, 16)),
        (4, 16, 17, killed),
        (5, 16, 17, (filled, 17)),
        (5, 1, 17, (filled, 17)),
        (5, 512, LEVELS, (filled, LEVELS)),
        (5, 512, LEVELS + 1, killed),
    ] {
        for own in [limit(2, Side::Sell, 500, 1), stop(2, OrderType::StopLoss, Side::Sell, 1)] {
            let mut venue = world(rules, limits(max_steps, LEVELS + 10));
            venue.must_quickly(&own);
            for _ in 0..quantity {
                venue.must_quickly(&limit(1, Side::Sell, 100, 1));
            }
            let order = NewOrder {
                time_in_force: TimeInForce::Fok.to_wire(),
                self_trade_prevention: SelfTradePrevention::ExpireMaker.to_wire(),
                ..limit(2, Side::Buy, 100, quantity)
            };
            let found = outcome(&mut venue, &order);
            assert_eq!(found, Ok(expected), "rules {rules}, {max_steps} steps, {quantity}");
        }
    }
}

#[test]
fn a_market_buy_is_refused_beyond() {
    let mut venue = ladder(2);
    assert_eq!(outcome(&mut venue, &market(2, Side::Buy, LEVELS + 1)), Err(TOO_DEEP));
    let by_quote = |levels: i64| NewOrder {
        quantity: 0,
        quote_quantity: levels * (levels + 1) / 2 * WHOLE,
        ..market(2, Side::Buy, 0)
    };
    assert_eq!(outcome(&mut venue, &by_quote(LEVELS + 1)), Err(TOO_DEEP));
    // Who cannot pay for what is looked at is told so.
    let free = venue.core.balance(AccountId(2), AssetId(1)).unwrap().free.0;
    let (account, asset) = (AccountId(2), AssetId(1));
    let amount = free - 9 * WHOLE;
    venue.must(&Withdraw { account, asset, amount, ..Default::default() });
    let poor = Err(RejectReason::InsufficientBalance.into());
    assert_eq!(outcome(&mut venue, &market(2, Side::Buy, LEVELS + 1)), poor);
    venue.must(&Deposit { account, asset, amount, ..Default::default() });
    assert_eq!(
        outcome(&mut venue, &market(2, Side::Buy, LEVELS)),
        Ok((OrderStatus::Filled, LEVELS))
    );
    let filled = Ok((OrderStatus::Filled, LEVELS));
    assert_eq!(outcome(&mut ladder(2), &by_quote(LEVELS)), filled);
    // The log of rules 1 knows no bound.
    let filled = Ok((OrderStatus::Filled, LEVELS + 1));
    assert_eq!(outcome(&mut ladder(1), &market(2, Side::Buy, LEVELS + 1)), filled);
}

#[test]
fn a_market_sell_by_quantity_looks_at_none() {
    let mut venue = world(2, limits(512, LEVELS + 10));
    for price in 1..=LEVELS + 1 {
        venue.must_quickly(&limit(1, Side::Buy, price, 1));
    }
    let filled = Ok((OrderStatus::Filled, LEVELS + 1));
    assert_eq!(outcome(&mut venue, &market(2, Side::Sell, LEVELS + 1)), filled);
}

#[test]
fn a_stop_that_would_need_more_expires_at_its_turn() {
    let mut venue = world(2, limits(512, LEVELS + 10));
    let wide = NewOrder {
        quantity: (LEVELS + 1) * WHOLE,
        ..stop(4, OrderType::StopLoss, Side::Buy, 10_000)
    };
    venue.must_quickly(&wide);
    for price in 1..=LEVELS + 1 {
        venue.must_quickly(&limit(1, Side::Sell, 10_000 + price, 1));
    }
    trade_at(&mut venue, 10_000);
    let events = venue.drain();
    let Some(Owned::Result(result)) = events.last() else { panic!("{events:?}") };
    assert_eq!((result.status, result.executed_quantity), (OrderStatus::Expired.to_wire(), 0));
    assert_eq!(venue.core.open_orders(ONE, Side::Sell).count() as i64, LEVELS + 1);
    venue.must(&CancelAll { command: by(1), symbol: ONE, ..Default::default() });
}

/// Runs all pending work, in which nothing may trade; gives how many orders expire, in all and in the transaction with
/// the most of them.
fn expired_untraded(venue: &mut Venue) -> (usize, Option<usize>) {
    let mut expired = Vec::new();
    while venue.core.pending_head().is_some() {
        let events = venue.must_quickly(&RunPending::default());
        let is_expired = |event: &&Owned| matches!(event, Owned::Result(result) if result.status == OrderStatus::Expired.to_wire());
        expired.push(events.iter().filter(is_expired).count());
        assert!(!events.iter().any(|event| matches!(event, Owned::Trade(_))));
    }
    (expired.iter().sum(), expired.into_iter().max())
}

/// Each of many stops looks at all levels there are in vain: by rules 6 one of them is as much as a transaction does.
#[test]
fn stops_that_look_at_as_many_in_vain_have_a_transaction_each() {
    for (rules, in_the_largest) in [(5, 20), (6, 1)] {
        let mut venue = world(rules, limits(512, LEVELS + 100));
        for n in 0..20 {
            let wide = NewOrder {
                quantity: (LEVELS + 1) * WHOLE,
                ..stop(4, OrderType::StopLoss, Side::Buy, 10_000)
            };
            venue.must_quickly(&with_name(wide, &format!("stop {n}")));
        }
        for price in 1..=LEVELS + 1 {
            venue.must_quickly(&limit(1, Side::Sell, 10_000 + price, 1));
        }
        trade_at(&mut venue, 10_000);
        assert_eq!(expired_untraded(&mut venue), (20, Some(in_the_largest)), "rules {rules}");
    }
}

/// Each of many stops pays for all levels there are, meets an order of its own account first, and takes nothing: by
/// rules 7 one of them is as much as a transaction does.
#[test]
fn stops_that_prevention_ends_have_a_transaction_each() {
    const LOT: i64 = WHOLE / 1000;
    let small = |order: NewOrder, lots: i64| NewOrder { quantity: lots * LOT, ..order };
    let (taker, both) = (SelfTradePrevention::ExpireTaker, SelfTradePrevention::ExpireBoth);
    for (rules, in_the_largest, mode) in [(6, 10, taker), (7, 1, taker), (7, 1, both)] {
        let mut venue = world(rules, limits(512, LEVELS + 100));
        for n in 0..10 {
            let wide = NewOrder {
                self_trade_prevention: mode.to_wire(),
                ..small(stop(4, OrderType::StopLoss, Side::Buy, 10_000), LEVELS)
            };
            venue.must_quickly(&with_name(wide, &format!("stop {n}")));
            venue.must_quickly(&small(limit(4, Side::Sell, 10_001, 1), 1));
        }
        for price in 2..=LEVELS {
            venue.must_quickly(&small(limit(1, Side::Sell, 10_000 + price, 1), 1));
        }
        trade_at(&mut venue, 10_000);
        let found = expired_untraded(&mut venue);
        assert_eq!(found, (10, Some(in_the_largest)), "rules {rules}, {mode:?}");
    }
}
