//! Rules that go up while work is under way, with a snapshot behind every command.

use crate::crowded::{ANN, BOB, ONE, TWO, order, status, stop, world};
use crate::twins::Followed;
use crate::under_way::UnderWay;
use crate::venue::{Venue, roomy};
use touchline_core::RULES_MAX;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{SelfTradePrevention, Side, SymbolStatus};

/// Ann buys or sells for whatever it costs, and does not trade with herself: the first order that she meets is her
/// own, and more of hers stand among Bob's.
fn begin_taking(venue: &mut Venue, side: Side) {
    for (key, away, quantity) in [(ANN, 0, 1), (BOB, 1, 1), (BOB, 2, 1), (ANN, 2, 1), (BOB, 3, 9)] {
        let price = if side == Side::Buy { 11 + away } else { 9 - away };
        venue.must(&order(key, ONE, side.opposite(), (price, quantity)));
    }
    let mode = if venue.core.rules() > 1 { SelfTradePrevention::ExpireMaker.to_wire() } else { 0 };
    venue.must(&NewOrder { self_trade_prevention: mode, ..order(ANN, ONE, side, (0, 5)) });
    assert!(venue.core.has_pending(ONE));
}

/// A trade reaches three stops of Carl's, of which one is collected; then the symbol is halted.
fn begin_a_cascade(venue: &mut Venue) {
    for _ in 0..3 {
        venue.must(&order(BOB, TWO, Side::Sell, (10, 1)));
    }
    for quantity in [1, 2, 3] {
        venue.must(&stop(TWO, quantity));
    }
    venue.must(&order(ANN, TWO, Side::Buy, (10, 1)));
    venue.must(&status(TWO, SymbolStatus::Halt));
    assert!(venue.core.has_pending(TWO));
}

fn begin(rules: u32, side: Side, is_cascade_first: bool) -> Followed {
    let limits = Limits { pending_work: 2, max_steps: 2, ..roomy() };
    let mut venue = world(rules, limits);
    if rules > 1 && is_cascade_first {
        begin_a_cascade(&mut venue);
    }
    begin_taking(&mut venue, side);
    if rules > 1 && !is_cascade_first {
        begin_a_cascade(&mut venue);
    }
    Followed::new(venue)
}

/// Runs so much of what is pending that it is the rules' turn; gives what is under way, if anything still is.
fn before_rules(all: &mut Followed, transactions: u32) -> Option<UnderWay> {
    for _ in 0..transactions {
        if all.has_pending() {
            all.must(&RunPending::default());
        }
    }
    all.has_pending().then(|| UnderWay::of(&all.venue.core))
}

fn go_up(all: &mut Followed) {
    let rules = all.venue.core.rules() + 1;
    all.must(&SetRules { rules, ..Default::default() });
}

/// Everything comes to its end, whatever was reached in the halt included.
fn end(mut all: Followed) {
    all.drain();
    all.must(&status(TWO, SymbolStatus::Trading));
    all.drain();
    if all.venue.core.rules() > 1 {
        for symbol in [ONE, TWO] {
            all.must(&ExpireAll { symbol, ..Default::default() });
            all.drain();
        }
        let counts = all.venue.core.counts();
        assert_eq!((counts.open_orders, counts.price_levels), (0, 0));
    }
    all.venue.check_replay();
}

#[test]
fn rules_go_up_at_every_point() {
    for rules in 1..RULES_MAX {
        let (mut with_both, mut with_given_up, mut with_collected) = (0, 0, 0);
        for (side, is_cascade_first) in
            [(Side::Buy, false), (Side::Sell, false), (Side::Buy, true), (Side::Sell, true)]
        {
            for transactions in 0.. {
                let mut all = begin(rules, side, is_cascade_first);
                let Some(found) = before_rules(&mut all, transactions) else { break };
                with_both += u32::from(!found.orders.is_empty() && !found.reached.is_empty());
                let gave_up = found.orders.iter().any(|(_, order)| order.prevented > 0);
                with_given_up += u32::from(gave_up && !found.reached.is_empty());
                with_collected += u32::from(found.collected > 0);
                go_up(&mut all);
                end(all);
            }
        }
        assert_eq!(with_both > 0, rules > 1, "by rules {rules}");
        assert_eq!(with_given_up > 0, [2, 3].contains(&rules), "by rules {rules}");
        assert_eq!(with_collected > 0, rules > 1, "by rules {rules}");
    }
}

#[test]
fn all_rules_go_up_in_the_middle_of_one_order() {
    for side in [Side::Buy, Side::Sell] {
        for is_cascade_first in [false, true] {
            let mut all = begin(2, side, is_cascade_first);
            while all.has_pending() {
                if all.venue.core.rules() < RULES_MAX {
                    go_up(&mut all);
                }
                all.must(&RunPending::default());
            }
            assert!(all.venue.core.rules() > 6, "rules {}", all.venue.core.rules());
            end(all);
        }
    }
}
