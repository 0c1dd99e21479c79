//! One order against one random book, decided in several ways: by other rules, with another time in force,
//! over more transactions. What one of them says about the other needs no model.

use super::*;

/// Numbers that look random and are the same for ever.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Orders of both that rest, each side at its own prices; some show a part of themselves.
    fn book(&mut self) -> Vec<NewOrder> {
        let of = |dice: &mut Self| {
            let side = 1 + dice.roll(2) as u8;
            let price = if side == BUY { 4 } else { 10 } + dice.roll(5) as i64;
            let mut order = limit(1 + dice.roll(2), side, price, 1 + dice.roll(9) as i64);
            if dice.roll(2) == 0 {
                order.iceberg_quantity = (1 + dice.roll(3) as i64) * WHOLE;
            }
            order
        };
        (0..3 + self.roll(8)).map(|_| of(self)).collect()
    }

    /// A MARKET order of Ann's, by quantity or by quote quantity.
    fn market_order(&mut self) -> NewOrder {
        let mode = 1 + self.roll(4) as u8;
        let mut order = market(mode, 1 + self.roll(2) as u8, 1 + self.roll(25) as i64);
        if self.roll(2) == 0 {
            (order.quantity, order.quote_quantity) = (0, (10 + self.roll(300) as i64) * WHOLE);
        }
        order
    }
}

/// The venue and the events behind the order, by these rules and in as many transactions as it takes.
fn decided(
    (rules, max_steps): (u32, u32),
    book: &[NewOrder],
    order: &NewOrder,
) -> Option<(Venue, Vec<Owned>)> {
    let mut venue = world(Limits { max_steps, ..roomy() });
    for rules in 3..=rules {
        venue.must(&SetRules { rules, ..Default::default() });
    }
    for resting in book {
        let _refused = venue.apply(resting);
    }
    let mut events = venue.apply(order).ok()?;
    events.extend(venue.drain());
    venue.check_replay();
    Some((venue, events))
}

/// What an order's own result says, all of its pending work done.
fn outcome(events: &[Owned]) -> OrderResult {
    let of = |event: &Owned| match event {
        Owned::Result(result) => Some(*result),
        _ => None,
    };
    events.iter().rev().find_map(of).unwrap()
}

fn accepted(events: &[Owned]) -> OrderAccepted {
    let Owned::Accepted(accepted) = events[0] else { panic!("{events:?}") };
    accepted
}

/// By rules 4 it gets no less than by rules 3, pays no more than it locked, and stops at nothing that it could
/// take.
#[test]
fn a_market_order_goes_on_as_far_as_it_can() {
    let mut dice = Dice(11);
    let (mut more, mut bound) = (0, 0);
    for case in 0..4000 {
        let (book, order) = (dice.book(), dice.market_order());
        let by = |rules, max_steps| decided((rules, max_steps), &book, &order);
        let Some((venue, events)) = by(4, 512) else { continue };
        let (found, accepted) = (outcome(&events), accepted(&events));
        let (_, old_events) = by(3, 512).unwrap();
        let old = outcome(&old_events);
        assert_eq!((found.quantity, accepted.locked), {
            let Owned::Accepted(old) = old_events[0] else { panic!("{old_events:?}") };
            (old.quantity, old.locked)
        });
        assert!(found.executed_quantity >= old.executed_quantity, "case {case}");
        let goes_on = order.self_trade_prevention == EXPIRE_MAKER;
        assert!(goes_on || old.executed_quantity == found.executed_quantity, "case {case}");
        more += u32::from(found.executed_quantity > old.executed_quantity);
        assert_eq!(found.executed_quantity % WHOLE, 0, "case {case}");
        let paid = found.executed_quote;
        assert!(order.side == SELL || paid <= accepted.locked, "case {case}");
        assert!(order.quote_quantity == 0 || paid <= order.quote_quantity, "case {case}");
        if goes_on && found.executed_quantity < found.quantity {
            let left = venue.core.depth(ONE, Side::from_wire(order.side).unwrap().opposite());
            if let Some(next) = left.map(|level| level.price.0).next() {
                assert_eq!(order.side, BUY, "case {case}: a sell goes on to the end");
                assert!(accepted.locked - paid < next, "case {case}: its lock pays for one more");
                bound += 1;
            }
        }
        let (_, divided) = by(4, 1 + dice.roll(5) as u32).unwrap();
        assert_eq!(trades(&divided), trades(&events), "case {case}");
    }
    assert!(more > 200 && bound > 40, "{more} got more, {bound} as far as their lock paid");
}

/// A FOK order is killed just where an IOC order would not be filled, and else does the same.
#[test]
fn fill_or_kill_is_what_immediate_or_cancel_would_fill() {
    let mut dice = Dice(12);
    let (mut filled, mut killed) = (0, 0);
    for case in 0..4000 {
        let book = dice.book();
        let side = 1 + dice.roll(2) as u8;
        let price = if side == BUY { 10 } else { 4 } + dice.roll(5) as i64;
        let mode = 1 + dice.roll(4) as u8;
        let order = guarded(mode, side, price, 1 + dice.roll(25) as i64);
        let lives = [FOK, IOC].map(|time_in_force| NewOrder { time_in_force, ..order });
        let [all, some] = lives.map(|order| decided((4, 512), &book, &order).unwrap());
        let (found, other) = (outcome(&all.1), outcome(&some.1));
        if other.executed_quantity == order.quantity {
            assert_eq!(all.1[1..], some.1[1..], "case {case}");
            filled += 1;
        } else {
            assert_eq!((found.executed_quantity, all.1.len()), (0, 2), "case {case}");
            killed += 1;
        }
    }
    assert!(filled > 500 && killed > 500, "{filled} filled, {killed} killed");
}
