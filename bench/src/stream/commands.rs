//! The commands that [`super`] sends: orders that rest at 64 prices, each cancelled when so many others have
//! come behind it.

use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{KeyId, UNITS_PER_WHOLE};

use crate::orders;

/// Orders that rest meanwhile: more than commands may be under way, so that the number of an order is always
/// known when its cancel leaves.
pub(super) const AT_REST: usize = 4096;

/// Commands before the first that is timed: fewer than that and what is touched for the first time, tables, pages and
/// guesses, is most of what is measured. Even, so that as many orders are at rest behind them.
pub(super) const WARM_UP: usize = 65_536;

/// Prices, each one tick below the other.
const PRICES: usize = 64;

const TICK: i64 = UNITS_PER_WHOLE / 10_000;

/// What the command of a number does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Places the order of this number.
    Place(usize),
    /// Cancels the order of this number.
    Cancel(usize),
}

/// The step of a number: the first place the orders that rest, then cancels and orders alternate.
pub(super) const fn step(number: usize) -> Step {
    match number.checked_sub(AT_REST) {
        None => Step::Place(number),
        Some(behind) if behind.is_multiple_of(2) => Step::Cancel(behind / 2),
        Some(behind) => Step::Place(AT_REST + behind / 2),
    }
}

/// The order of a number.
pub(super) fn order(key: KeyId, number: usize) -> NewOrder {
    let mut order = orders::order(key, Side::Buy);
    order.command.correlation = number as u64;
    order.price -= (number % PRICES) as i64 * TICK;
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_cancelled_after_the_others_have_come() {
        let mut open = std::collections::VecDeque::new();
        for number in 0..3 * AT_REST {
            match step(number) {
                Step::Place(order) => open.push_back(order),
                Step::Cancel(order) => assert_eq!(open.pop_front(), Some(order)),
            }
            assert!(number < AT_REST || open.len() >= AT_REST - 1);
        }
    }
}
