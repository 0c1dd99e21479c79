//! One aggressor over more resting orders than any transaction visits.

use crate::orders::{limit, limits, list, market, trade_at, world};
use crate::venue::{Owned, Venue, WHOLE};
use crate::work::{Situation, Work, same_for_every, survives};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{OrderStatus, SelfTradePrevention, Side};

/// How the resting orders stand.
#[derive(Clone, Copy)]
enum Queue {
    /// All at one price.
    One,
    /// On a thousand prices, each order somewhere else than the one before it.
    Thousand,
    /// As that, and every seventh is an iceberg that is met three times.
    Icebergs,
    /// As that, some are limit legs of lists, whose other legs go with the first fill, and some are the
    /// aggressor's own, which it removes: among them lists too.
    All,
}

fn price(queue: Queue, n: i64) -> i64 {
    match queue {
        Queue::One => 1_000,
        Queue::Thousand | Queue::Icebergs | Queue::All => 1_000 + n * 387 % 1_000,
    }
}

fn is_own(queue: Queue, n: i64) -> bool {
    matches!(queue, Queue::All) && n % 5 == 0
}

fn resting(queue: Queue, n: i64) -> NewOrder {
    let key = if is_own(queue, n) { 1 } else { 2 + n as u64 % 3 };
    let order = limit(key, Side::Sell, price(queue, n), 1);
    match queue {
        Queue::Icebergs | Queue::All if n % 7 == 0 => {
            NewOrder { quantity: 3 * WHOLE, iceberg_quantity: WHOLE, ..order }
        }
        _ => order,
    }
}

/// So many sells.
fn sells(rules: u32, max_steps: u32, queue: Queue, orders: i64) -> Venue {
    let mut venue = world(rules, limits(max_steps, 2 * orders));
    // In front of the stop legs of lists, and behind their limit legs.
    trade_at(&mut venue, 500);
    for n in 0..orders {
        let order = resting(queue, n);
        if matches!(queue, Queue::All) && n % 7 != 0 && n % 3 == 0 {
            let key = order.command.key_id.0;
            venue.must_quickly(&list(key, Side::Sell, price(queue, n), 400 - n % 10));
        } else {
            venue.must_quickly(&order);
        }
    }
    venue
}

/// What can be bought of so many.
fn sum(queue: Queue, orders: i64) -> i64 {
    let others = (0..orders).filter(|&n| !is_own(queue, n));
    others.map(|n| resting(queue, n).quantity / WHOLE).sum()
}

/// Buys all that there is and wants five more.
fn sweep(sum: i64, queue: Queue) -> NewOrder {
    let mode = match queue {
        Queue::All => SelfTradePrevention::ExpireMaker.to_wire(),
        _ => 0,
    };
    NewOrder { self_trade_prevention: mode, ..limit(1, Side::Buy, 3_000, sum + 5) }
}

/// All is taken, best price first and at each price in the order of placement; what the buyer wants
/// beyond it rests.
fn check_sweep(work: &Work, sum: i64) {
    let trades: Vec<_> = work.trades().map(|trade| (trade.price, trade.maker_order_id)).collect();
    assert_eq!(work.trades().map(|trade| trade.quantity).sum::<i64>(), sum * WHOLE);
    assert!(trades.is_sorted_by_key(|(price, _)| *price));
    let mut results = work.story.iter().filter_map(|event| match event {
        Owned::Result(result) => Some(result),
        _ => None,
    });
    let result = results.next().unwrap();
    assert!(results.next().is_none(), "one terminal reply");
    assert!(matches!(work.story.last(), Some(Owned::Result(last)) if last == result));
    assert_eq!(result.executed_quantity, sum * WHOLE);
    assert_eq!(result.status, OrderStatus::PartiallyFilled.to_wire());
    // No leg of any list is left either.
    assert_eq!(work.venue.core.counts().open_orders, 1);
}

#[test]
fn a_sweep_over_a_hundred_thousand_survives_crashes() {
    const ORDERS: i64 = 100_000;
    let prepare = |max_steps| sells(2, max_steps, Queue::All, ORDERS);
    let sum = sum(Queue::All, ORDERS);
    let situation = Situation::new(&prepare, &sweep(sum, Queue::All));
    // Somewhere in the middle of its 500 transactions.
    let work = survives(&situation, 256, &[1, 389]);
    check_sweep(&work, sum);
    assert!(work.transactions >= ORDERS as usize / 256);
}

#[test]
fn a_sweep_is_the_same_however_it_is_divided() {
    const ORDERS: i64 = 2_000;
    for (rules, queue) in [
        (1, Queue::One),
        (1, Queue::Thousand),
        (2, Queue::One),
        (2, Queue::Icebergs),
        (2, Queue::All),
    ] {
        let prepare = |max_steps| sells(rules, max_steps, queue, ORDERS);
        let sum = sum(queue, ORDERS);
        let situation = Situation::new(&prepare, &sweep(sum, queue));
        let work = same_for_every(&situation, &[1, 2, 3, 7, 64, 256]);
        check_sweep(&work, sum);
        survives(&situation, 3, &[1, 2, 456]);
    }
}

#[test]
fn a_market_order_for_nearly_all_is_the_same_however_it_is_divided() {
    const ORDERS: i64 = 2_000;
    let prepare = |max_steps| sells(2, max_steps, Queue::Icebergs, ORDERS);
    let wanted = sum(Queue::Icebergs, ORDERS) - 3;
    let situation = Situation::new(&prepare, &market(1, Side::Buy, wanted));
    let work = same_for_every(&situation, &[1, 2, 3, 7, 64, 256]);
    assert_eq!(work.trades().map(|trade| trade.quantity).sum::<i64>(), wanted * WHOLE);
}
