//! Transactions of as many events as there may be: they are within what the outbox must hold, and come as near to it
//! as what is added up there can come together.

use crate::orders::{ONE, by, limit, limits, list, stop, trade_at, world};
use crate::venue::{Owned, Venue, WHOLE};
use touchline_core::limits::STEPS_MAX;
use touchline_core::{OUTBOX_BYTES_MAX, RULES_MAX};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, SelfTradePrevention, Side};
use touchline_protocol::message::event::*;

const PREVENTION: usize = size_of::<SelfTradePrevented>() + size_of::<OrderCanceled>();
const RUN: usize = size_of::<OrderTriggered>() + size_of::<OrderResult>();
/// A transaction that goes on has this event in the place of a result.
const CONTINUES: usize = size_of::<OrderResult>() - size_of::<OrderContinues>();

/// The first account's list is to give way to an order that buys all there is: one unit less of the second account's
/// than a transaction has steps, each at a price of its own, and behind them what `last` puts at the next price.
fn venue(last: impl Fn(&mut Venue, i64)) -> Venue {
    let orders = i64::from(STEPS_MAX);
    let mut venue = world(RULES_MAX, limits(STEPS_MAX, orders + 20));
    trade_at(&mut venue, 10);
    venue.must_quickly(&list(1, Side::Sell, 11, 9));
    for more in 1..orders {
        venue.must_quickly(&limit(2, Side::Sell, 20 + more, 1));
    }
    last(&mut venue, 20 + orders);
    venue.must_quickly(&limit(2, Side::Sell, 21 + orders, 9));
    venue
}

/// Bytes of the events of the order that takes the place of the list, those events, and all that come behind them.
fn bytes_of_replacement(venue: &mut Venue) -> (usize, Vec<Owned>, Vec<Owned>) {
    let stop_leg = venue.core.waiting_orders(ONE).map(|order| order.order_id).min().unwrap();
    let buy = limit(1, Side::Buy, 5_000, 600);
    let events = venue.must(&CancelReplace {
        command: by(1),
        symbol: ONE,
        side: buy.side,
        order_type: buy.order_type,
        time_in_force: buy.time_in_force,
        price: buy.price,
        quantity: buy.quantity,
        canceled_order_id: stop_leg,
        self_trade_prevention: SelfTradePrevention::ExpireMaker.to_wire(),
        ..Default::default()
    });
    assert!(matches!(events.last(), Some(Owned::Continues(_))), "{:?}", events.last());
    let bytes = venue.journal.last().unwrap().events.len();
    let later = venue.drain();
    venue.check_replay();
    (bytes, events, later)
}

fn trades(events: &[Owned]) -> u32 {
    events.iter().filter(|event| matches!(event, Owned::Trade(_))).count() as u32
}

/// The last step is a fill that shows the next slice of the limit leg of a list, ends its stop leg, and reaches a stop:
/// that one is collected in the next transaction.
#[test]
fn the_last_fill_may_touch_a_list_and_refill_it() {
    let mut venue = venue(|venue, price| {
        let list = list(3, Side::Sell, price, 9);
        let (quantity, limit_iceberg_quantity) = (3 * WHOLE, WHOLE);
        venue.must_quickly(&PlaceOrderList { quantity, limit_iceberg_quantity, ..list });
        venue.must_quickly(&stop(4, OrderType::StopLoss, Side::Buy, price));
    });
    let (bytes, events, later) = bytes_of_replacement(&mut venue);
    assert_eq!(trades(&events), STEPS_MAX);
    assert!(later.iter().any(|event| matches!(event, Owned::Triggered(_))));
    // A fill is no prevention, and no turn of a stop.
    assert_eq!(bytes + PREVENTION + RUN + CONTINUES, OUTBOX_BYTES_MAX);
}

/// The last step is the prevention of a trade with a list of the same account.
#[test]
fn the_last_prevention_may_end_a_list() {
    let mut venue = venue(|venue, price| {
        venue.must_quickly(&list(1, Side::Sell, price, 9));
    });
    let (bytes, events, _) = bytes_of_replacement(&mut venue);
    assert_eq!(trades(&events), STEPS_MAX - 1);
    // The last step was meant for a trade and a slice.
    let missing = size_of::<Trade>() + size_of::<OrderRefilled>() + RUN + CONTINUES;
    assert_eq!(bytes + missing, OUTBOX_BYTES_MAX);
}
