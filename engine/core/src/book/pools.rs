//! What books are made of: the orders, levels and ladder nodes of all of them, in pools that they
//! share. Called by [`SymbolBook`](super::SymbolBook), and by the venue, which looks its orders up here.

use super::ladder::Nodes;
use super::level::{Level, RestingOrder};
use super::{Handle, RestingView};
use crate::pool::{NONE, Pool};
use alloc::collections::TryReserveError;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{OrderId, Qty};

/// Orders, levels and ladder nodes of any number of books, allocated once.
#[derive(Debug)]
pub struct BookPools {
    pub(super) orders: Pool<RestingOrder>,
    pub(super) levels: Pool<Level>,
    pub(super) nodes: Nodes,
}

impl Default for BookPools {
    fn default() -> Self {
        Self::new()
    }
}

impl BookPools {
    /// Without any room.
    #[must_use]
    pub const fn new() -> Self {
        Self { orders: Pool::new(), levels: Pool::new(), nodes: Nodes::new() }
    }

    /// Makes room for `orders` orders and `levels` levels (at most [`LEVELS_MAX`](super::LEVELS_MAX)) in all.
    ///
    /// # Errors
    /// When there is no memory. What is there stays usable.
    pub fn try_grow(&mut self, orders: u32, levels: u32) -> Result<(), TryReserveError> {
        self.orders.try_grow(orders)?;
        self.levels.try_grow(levels)?;
        self.nodes.try_grow(levels)
    }

    /// Resting orders.
    #[must_use]
    pub const fn orders(&self) -> u32 {
        self.orders.live()
    }

    /// Occupied price levels.
    #[must_use]
    pub const fn levels(&self) -> u32 {
        self.levels.live()
    }

    /// The order at `handle`, which must rest.
    ///
    /// # Panics
    /// It may when none rests there; if it does not, what it gives means nothing.
    #[must_use]
    #[inline]
    pub fn order(&self, handle: Handle) -> RestingView {
        let order = &self.orders[handle.0];
        let level = &self.levels[order.level];
        RestingView {
            handle,
            id: order.id,
            owner: order.owner,
            side: if level.is_bid { Side::Buy } else { Side::Sell },
            price: level.price,
            remaining: order.remaining,
        }
    }

    /// Shows `slice` of what the first order of a level hides, and puts it at the end of the queue.
    pub(super) fn show_next_slice(&mut self, at: u32, slice: Qty) {
        let level = &mut self.levels[at];
        let shown = u128::from(slice.0.cast_unsigned());
        level.total += shown;
        level.hidden -= shown;
        let (moved, last) = (level.first, level.last);
        self.orders[moved].remaining = slice;
        if moved == last {
            return;
        }
        let next = core::mem::replace(&mut self.orders[moved].next, NONE);
        level.first = next;
        level.last = moved;
        self.orders[next].previous = NONE;
        self.orders[moved].previous = last;
        self.orders[last].next = moved;
    }

    /// Notes that the order at `handle`, which rests, hides so much more (or less).
    pub(crate) fn change_hidden(&mut self, handle: Handle, before: i64, after: i64) {
        let level = &mut self.levels[self.orders[handle.0].level];
        level.hidden -= u128::from(before.cast_unsigned());
        level.hidden += u128::from(after.cast_unsigned());
    }

    /// True when the order at `handle`, which rests, is the only one at its price.
    #[inline]
    pub(super) fn is_alone(&self, handle: Handle) -> bool {
        self.levels[self.orders[handle.0].level].orders == 1
    }

    /// Loads orders with their neighbours, and the last orders of levels; any others in their stead
    /// where one is [`NONE`]. Each step is done for all before the next, so that the loads of a step
    /// wait together.
    pub(crate) fn touch(&self, orders: &[u32], levels: &[u32]) {
        use core::hint::black_box;
        let (Some(order_at), Some(level_at)) = (self.orders.any(), self.levels.any()) else {
            return;
        };
        for &at in orders {
            black_box(order_at(at).next);
        }
        for &at in levels {
            black_box(order_at(level_at(at).last).owner);
        }
        for &at in orders {
            let order = order_at(at);
            black_box(order_at(order.next).owner);
            black_box(order_at(order.previous).owner);
            black_box(level_at(order.level).orders);
        }
    }

    /// True when the order `id` rests at `handle`.
    #[inline]
    pub(crate) fn rests_at(&self, handle: Handle, id: OrderId) -> bool {
        self.orders.get(handle.0).is_some_and(|order| order.id == id && order.level != NONE)
    }

    /// What the order at `handle` shows, wherever it is.
    pub(crate) fn remaining(&self, handle: Handle) -> Qty {
        self.orders[handle.0].remaining
    }

    /// Gives the slot of an order that is in no queue back.
    pub(crate) fn release(&mut self, handle: Handle) {
        self.orders.release(handle.0);
    }

    /// Number of the order at `handle`.
    #[inline]
    pub(crate) fn id(&self, handle: u32) -> OrderId {
        self.orders[handle].id
    }

    /// Owner of the order at `handle`.
    pub(crate) fn owner(&self, handle: u32) -> u32 {
        self.orders[handle].owner
    }
}
