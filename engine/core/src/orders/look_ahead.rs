//! Loading what coming commands will look at before they come: of a cancelled order its record, its
//! neighbours and its entries in the tables, of a new one the place of its name and its price level.
//! Called by [`Core::look_ahead`](crate::Core::look_ahead).
//!
//! All of a group is loaded in rounds, each over all commands: what one round finds the next looks at. So
//! misses of a round wait together, and one command after the other would wait for each of its own.
//! Nothing is decided here and nothing has to be right: a wrong guess loads something else.

use super::Orders;
use crate::book::{BookPools, SymbolBook};
use crate::chains::{Node, touch_neighbours};
use crate::pool::NONE;
use core::hint::black_box;
use touchline_protocol::message::enums::Side;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, Price, SymbolId};

/// Commands whose loads are under way at a time.
pub(crate) const GROUP: usize = 64;

/// What a group of commands is about.
pub(crate) struct Group {
    /// Of each order that is cancelled, its number's hash.
    cancelled: [u32; GROUP],
    /// Of each new order, its name's hash.
    names: [u32; GROUP],
    /// Of each new order, the level that it would rest at.
    levels: [u32; GROUP],
    cancels: usize,
    news: usize,
}

impl Group {
    pub(crate) const fn new() -> Self {
        Self {
            cancelled: [0; GROUP],
            names: [0; GROUP],
            levels: [NONE; GROUP],
            cancels: 0,
            news: 0,
        }
    }

    /// True when no other command has room.
    pub(crate) const fn is_full(&self) -> bool {
        self.cancels + self.news == GROUP
    }

    /// Makes room for all again.
    pub(crate) const fn clear(&mut self) {
        (self.cancels, self.news) = (0, 0);
    }
}

impl Orders {
    /// Notes in `group`, which has room, that an order will be cancelled.
    pub(crate) fn expect_cancel(&self, group: &mut Group, symbol: SymbolId, id: OrderId) {
        group.cancelled[group.cancels] = self.seed.order(symbol.0, id.0);
        group.cancels += 1;
    }

    /// Notes in `group`, which has room, that an order of this name will be placed in a book.
    pub(crate) fn expect_new(
        &self,
        group: &mut Group,
        (account, symbol, name): (AccountId, SymbolId, &ClientOrderId),
        (pools, book): (&BookPools, &SymbolBook),
        (side, price): (Side, Price),
    ) {
        group.names[group.news] = self.seed.client_order_id(account, symbol, name);
        group.levels[group.news] = book.level_at(pools, side, price).unwrap_or(NONE);
        group.news += 1;
    }

    /// Loads what the commands of a group will look at.
    pub(crate) fn touch(&self, pools: &BookPools, group: &Group) {
        let Some(last) = self.slots.len().checked_sub(1) else { return };
        let cancelled = &group.cancelled[..group.cancels];
        let names = &group.names[..group.news];
        let mut entries = [NONE; GROUP];
        for (entry, &hash) in entries.iter_mut().zip(cancelled) {
            *entry = self.by_id.first_guess(hash);
        }
        let mut namesakes = [NONE; GROUP];
        for (namesake, &hash) in namesakes.iter_mut().zip(names) {
            *namesake = self.by_client_order_id.first_guess(hash);
        }
        let entries = &mut entries[..cancelled.len()];
        // A quarter of the orders are not the first of their place, few of them not the second.
        self.by_id.guess_again(&self.slots, cancelled, entries);
        self.by_id.guess_again(&self.slots, cancelled, entries);
        let namesakes = &mut namesakes[..names.len()];
        self.by_client_order_id.guess_again(&self.slots, names, namesakes);
        // Nothing asks for them: else they would not be loaded at all.
        black_box(&namesakes);
        let mut nodes = [Node::LOOSE; GROUP];
        let mut hashes = [0; GROUP];
        for ((node, hash), &entry) in nodes.iter_mut().zip(&mut hashes).zip(&*entries) {
            let slot = &self.slots[(entry as usize).min(last)];
            // Both of its cache lines.
            black_box(slot.record.quantity);
            *node = slot.node;
            *hash = slot.by_name.hash();
        }
        pools.touch(entries, &group.levels[..group.news]);
        touch_neighbours(&self.slots, nodes[..entries.len()].iter().copied());
        for &hash in &hashes[..entries.len()] {
            black_box(self.by_client_order_id.first_guess(hash));
        }
    }
}
