//! The commands that [`super`] sends: orders that rest at 64 prices, each cancelled when so many others have
//! come behind it.

use touchline_protocol::message::command::{CancelOrder, CommandHeader, NewOrder};
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::units::{KeyId, OrderId, UNITS_PER_WHOLE};

use crate::engine::SYMBOL;

/// Orders that rest meanwhile: more than commands may be under way, so that the number of an order is always
/// known when its cancel leaves.
pub(super) const AT_REST: usize = 4096;

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

pub(super) fn order(key_id: KeyId, number: usize) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id, correlation: number as u64, ..Default::default() },
        symbol: SYMBOL,
        side: Side::Buy.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: 500 * UNITS_PER_WHOLE - (number % PRICES) as i64 * TICK,
        quantity: UNITS_PER_WHOLE,
        ..Default::default()
    }
}

pub(super) fn cancel(key_id: KeyId, order_id: OrderId) -> CancelOrder {
    let command = CommandHeader { key_id, ..Default::default() };
    CancelOrder { command, symbol: SYMBOL, order_id, ..Default::default() }
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
