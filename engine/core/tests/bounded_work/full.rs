//! A venue that can leave no more work to later transactions takes no order that may have to go on, and
//! every other.

use crate::orders::{ONE, by, limit, limits, list, stop, trade_at, world};
use crate::venue::{Owned, Venue, WHOLE};
use touchline_core::Reject;
use touchline_core::limits::number;
use touchline_protocol::message::command::{CancelAll, Limits, NewOrder};
use touchline_protocol::message::enums::{
    OrderType, RejectReason, SelfTradePrevention, Side, TimeInForce,
};

/// Steps of a transaction: a maker met is one.
const STEPS: u32 = 3;

/// One more order for sale than an aggressor may meet at once, each on a price of its own.
fn venue(pending_work: u32) -> Venue {
    let mut venue = world(2, Limits { pending_work, ..limits(STEPS, 100) });
    for more in 0..=i64::from(STEPS) {
        venue.must(&limit(1, Side::Sell, 10 + more, 1));
    }
    venue
}

/// Buys so much of what [`venue`] sells, or as much as there is.
fn buy(time_in_force: TimeInForce, quantity: i64) -> NewOrder {
    NewOrder { time_in_force: time_in_force.to_wire(), ..limit(2, Side::Buy, 20, quantity) }
}

fn is_told_full(found: Result<Vec<Owned>, Reject>) -> bool {
    let full = Reject { reason: RejectReason::CapacityReached, detail: number::PENDING_WORK };
    found.err() == Some(full)
}

#[test]
fn a_full_queue_takes_only_what_is_done_at_once() {
    let steps = i64::from(STEPS);
    for time_in_force in [TimeInForce::Gtc, TimeInForce::Ioc] {
        let mut full = venue(0);
        assert!(is_told_full(full.apply(&buy(time_in_force, steps + 1))), "{time_in_force:?}");
        full.must(&buy(time_in_force, steps));
        assert!(full.core.pending_head().is_none());
        assert_eq!(full.core.open_orders(ONE, Side::Sell).count(), 1);

        let mut roomy = venue(1);
        roomy.must(&buy(time_in_force, steps + 1));
        assert!(roomy.core.pending_head().is_some(), "{time_in_force:?} goes on");
        roomy.drain();
        assert_eq!(roomy.core.open_orders(ONE, Side::Sell).count(), 0);
    }
}

#[test]
fn with_a_stop_on_the_symbol_a_full_queue_takes_nothing_that_trades() {
    for time_in_force in [TimeInForce::Gtc, TimeInForce::Ioc] {
        let mut full = venue(0);
        full.must(&stop(3, OrderType::StopLoss, Side::Sell, 5));
        assert!(is_told_full(full.apply(&buy(time_in_force, 1))), "{time_in_force:?}");
        full.must(&limit(2, Side::Buy, 9, 1));
    }
}

/// It shows its units one by one, each of them a maker met and but for the last one a slice: as an order
/// they are few, as steps they are more than a transaction has.
#[test]
fn an_iceberg_in_front_of_who_prevents_self_trades_may_take_longer_than_its_one_order() {
    let buy = NewOrder {
        self_trade_prevention: SelfTradePrevention::ExpireTaker.to_wire(),
        ..buy(TimeInForce::Gtc, 3)
    };
    let venue = |pending_work: u32| {
        let mut venue = world(2, Limits { pending_work, ..limits(4, 100) });
        venue.must(&NewOrder { iceberg_quantity: WHOLE, ..limit(1, Side::Sell, 10, 3) });
        // Out of its reach, so that all there is to prevent is looked for and nothing prevented.
        venue.must(&limit(2, Side::Sell, 30, 1));
        venue
    };
    assert!(is_told_full(venue(0).apply(&buy)));
    let mut roomy = venue(1);
    roomy.must(&buy);
    assert!(roomy.core.pending_head().is_some(), "three makers and two slices are five steps");
    roomy.drain();
    assert_eq!(roomy.core.open_orders(ONE, Side::Buy).count(), 0);
}

/// Four lists take five steps each, and only the last may overdraw them.
#[test]
fn a_sweep_of_lists_is_reckoned_by_what_lists_take() {
    let venue = |max_steps: u32, pending_work: u32| {
        let mut venue = world(2, Limits { pending_work, ..limits(max_steps, 100) });
        trade_at(&mut venue, 10);
        for more in 0..4 {
            venue.must(&list(1, Side::Sell, 12 + more, 8 - more));
        }
        venue
    };
    let all = CancelAll { command: by(1), symbol: ONE, ..Default::default() };
    assert!(is_told_full(venue(15, 0).apply(&all)));
    let mut roomy = venue(15, 1);
    roomy.must(&all);
    assert!(roomy.core.pending_head().is_some(), "three of them take all steps");
    for (max_steps, pending_work) in [(16, 1), (19, 0)] {
        let mut enough = venue(max_steps, pending_work);
        enough.must(&all);
        assert!(enough.core.pending_head().is_none(), "{max_steps} steps");
        assert_eq!(enough.core.counts().open_orders, 0);
    }
}
