//! An order's place in its queue: taking the order out and putting it back there, as if nothing had
//! been. Called by replacements, which judge an order as if another were gone.

use super::level::RestingOrder;
use super::{BookPools, Handle, SymbolBook};
use crate::pool::NONE;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::Price;

/// An order that was taken out, and where it stood. It can be put back as long as the pools have not
/// changed since, but for others taken out after it and put back before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    handle: Handle,
    /// With the neighbours that it had.
    order: RestingOrder,
    side: Side,
    price: Price,
    /// What it hid, 10⁻⁸.
    hidden: u128,
}

impl SymbolBook {
    /// Takes a resting order of this book out, which hides so much.
    pub(crate) fn take_out(&mut self, pools: &mut BookPools, handle: Handle, hidden: i64) -> Place {
        let order = pools.orders[handle.0];
        let hidden = u128::from(hidden.cast_unsigned());
        let level = &mut pools.levels[order.level];
        level.hidden -= hidden;
        let side = if level.is_bid { Side::Buy } else { Side::Sell };
        let place = Place { handle, order, side, price: level.price, hidden };
        self.remove(pools, handle);
        place
    }

    /// Puts an order back where it was taken out.
    pub(crate) fn put_back(&mut self, pools: &mut BookPools, place: &Place) {
        let Place { handle: Handle(handle), order, side, price, hidden } = *place;
        let at = self.side_mut(side).find_or_insert(&mut pools.nodes, &mut pools.levels, price);
        let slot = pools.orders.take();
        assert_eq!(slot, Some(handle), "the slot freed last is the one taken next");
        pools.orders[handle] = RestingOrder { level: at, ..order };
        let level = &mut pools.levels[at];
        level.orders += 1;
        level.total += u128::from(order.remaining.0.cast_unsigned());
        level.hidden += hidden;
        if order.previous == NONE {
            level.first = handle;
        } else {
            pools.orders[order.previous].next = handle;
        }
        if order.next == NONE {
            level.last = handle;
        } else {
            pools.orders[order.next].previous = handle;
        }
    }
}
