//! A venue that can leave no more work to later transactions takes no order that may have to go on, and
//! every other.

use crate::orders::{ONE, limit, limits, stop, world};
use crate::venue::{Owned, Venue};
use touchline_core::Reject;
use touchline_core::limits::number;
use touchline_protocol::message::command::{Limits, NewOrder};
use touchline_protocol::message::enums::{OrderType, RejectReason, Side, TimeInForce};

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
