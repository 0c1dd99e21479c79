//! The order that most measurements place in the engine's venue, and its cancel. Called by [`crate::rtt`],
//! [`crate::tcp`], [`crate::feed`] and [`crate::stream`].

use touchline_protocol::message::command::{CancelOrder, CommandHeader, NewOrder};
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::units::{KeyId, OrderId, UNITS_PER_WHOLE};

use crate::engine::SYMBOL;

/// One whole unit at a price of 500, until it is cancelled.
pub(crate) fn order(key_id: KeyId, side: Side) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id, ..Default::default() },
        symbol: SYMBOL,
        side: side.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: 500 * UNITS_PER_WHOLE,
        quantity: UNITS_PER_WHOLE,
        ..Default::default()
    }
}

/// The cancel of an order by its number.
pub(crate) fn cancel(key_id: KeyId, order_id: OrderId) -> CancelOrder {
    let command = CommandHeader { key_id, ..Default::default() };
    CancelOrder { command, symbol: SYMBOL, order_id, ..Default::default() }
}
