//! A sweep that goes on between the two orders of a list, which it is not about.

use crate::crowded::{ANN, BOB, CARL, ONE, TWO, order, world};
use crate::twins::Followed;
use crate::under_way::UnderWay;
use crate::venue::{WHOLE, roomy};
use touchline_core::RULES_MAX;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{CancelScope, Side, TimeInForce};
use touchline_protocol::units::*;

/// Most orders that a transaction passes over because the sweep is not about them.
const PASSED: u32 = 1_024;

/// What happens to the list while the sweep waits for its turn.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Nothing,
    ListCanceled,
    LimitLegTouched,
    LimitLegFilled,
    /// It rests in the end, in its place.
    StopLegTriggered,
    /// And the sweep of its symbol begins behind the other.
    AllSwept,
}

/// Ann has so many orders on a symbol, a list behind them, and three orders on another; those are to be cancelled.
fn amid_a_sweep(others: u32) -> Followed {
    let limits =
        Limits { open_orders: 1_100, price_levels: 100, pending_work: 2, max_steps: 2, ..roomy() };
    let mut venue = world(RULES_MAX, limits);
    venue.must(&order(BOB, ONE, Side::Sell, (10, 1)));
    venue.must(&order(CARL, ONE, Side::Buy, (10, 1)));
    for _ in 0..others {
        venue.must_quickly(&order(ANN, ONE, Side::Buy, (1, 1)));
    }
    venue.must(&PlaceOrderList {
        command: order(ANN, ONE, Side::Sell, (1, 1)).command,
        symbol: ONE,
        side: Side::Sell.to_wire(),
        stop_limit_time_in_force: TimeInForce::Gtc.to_wire(),
        quantity: 2 * WHOLE,
        price: 12 * WHOLE,
        stop_price: 8 * WHOLE,
        stop_limit_price: 7 * WHOLE,
        ..Default::default()
    });
    for price in 5..8 {
        venue.must(&order(ANN, TWO, Side::Buy, (price, 1)));
    }
    let mut all = Followed::new(venue);
    all.must(&cancel(TWO));
    assert!(all.has_pending());
    all
}

/// Ann's orders on a symbol.
fn cancel(symbol: SymbolId) -> MassCancel {
    MassCancel {
        command: order(ANN, ONE, Side::Buy, (1, 1)).command,
        symbol,
        scope: CancelScope::Account.to_wire(),
        ..Default::default()
    }
}

fn happens(all: &mut Followed, meanwhile: Meanwhile) {
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::ListCanceled => {
            let command = cancel(ONE).command;
            let order_list_id = OrderListId(0);
            all.must(&CancelOrderList {
                command,
                symbol: ONE,
                order_list_id,
                ..Default::default()
            });
        }
        Meanwhile::LimitLegTouched => {
            all.must(&order(BOB, ONE, Side::Buy, (12, 1)));
        }
        Meanwhile::LimitLegFilled => {
            all.must(&order(BOB, ONE, Side::Buy, (12, 2)));
        }
        Meanwhile::StopLegTriggered => {
            all.must(&order(CARL, ONE, Side::Buy, (8, 2)));
            all.must(&order(BOB, ONE, Side::Sell, (8, 1)));
        }
        Meanwhile::AllSwept => {
            all.must(&cancel(ONE));
            // They are a thousand.
            let limits = Limits { max_steps: 256, ..*all.venue.core.limits() };
            all.must(&SetLimits { limits, ..Default::default() });
            all.must(&KillAccount { account: AccountId(1), killed: 1, ..Default::default() });
        }
    }
}

#[test]
fn a_sweep_goes_on_between_the_orders_of_a_list() {
    let all = [
        Meanwhile::Nothing,
        Meanwhile::ListCanceled,
        Meanwhile::LimitLegTouched,
        Meanwhile::LimitLegFilled,
        Meanwhile::StopLegTriggered,
        Meanwhile::AllSwept,
    ];
    for others in PASSED - 2..=PASSED {
        for meanwhile in all {
            let mut all = amid_a_sweep(others);
            let is_within = UnderWay::of(&all.venue.core).is_within_a_list();
            assert_eq!(is_within, others == PASSED - 1, "behind {others} orders");
            happens(&mut all, meanwhile);
            all.drain();
            assert_eq!(all.venue.core.open_orders(TWO, Side::Buy).count(), 0, "{meanwhile:?}");
            all.venue.check_replay();
        }
    }
}
