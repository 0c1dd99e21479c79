//! Open order lists (OCO, facts §5.5): which two orders exclude each other, and the ways to find a
//! list by number and by its owner's name for it. Held by [`Orders`](crate::orders::Orders); a list
//! that has come to its end is not in here any more, its number stays with the order that lives on.

use crate::book::Handle;
use crate::hash::{Seed, StateHash};
use crate::pool::{Linked, NONE, Pool};
use crate::table::Table;
use alloc::collections::TryReserveError;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId};

/// Stands for a symbol where tables spread the numbers of lists: no symbol has it.
const LISTS_SCOPE: u32 = u32::MAX;

/// An open list. Both its orders are open and neither has executed anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) id: OrderListId,
    pub(crate) account: AccountId,
    pub(crate) symbol: SymbolId,
    /// Where the stop leg lies: it waits for its trigger, or has been fired and waits for its turn.
    pub(crate) stop: Handle,
    /// Where the limit leg lies: it rests in the book.
    pub(crate) limit: Handle,
    /// Number of the stop leg; the limit leg's is the next.
    pub(crate) stop_order_id: OrderId,
    /// Price of the limit leg, 10⁻⁸, which it keeps for as long as the list is open: what the limit
    /// leg locks need not be locked again by the stop leg.
    pub(crate) limit_price: i64,
    /// The owner's name for it; empty for none.
    pub(crate) client_order_id: ClientOrderId,
}

impl List {
    /// Number of the limit leg.
    pub(crate) const fn limit_order_id(&self) -> OrderId {
        OrderId(self.stop_order_id.0 + 1)
    }
}

impl Default for List {
    fn default() -> Self {
        Self {
            id: OrderListId::NONE,
            account: AccountId(0),
            symbol: SymbolId(0),
            stop: Handle(NONE),
            limit: Handle(NONE),
            stop_order_id: OrderId(0),
            limit_price: 0,
            client_order_id: ClientOrderId::EMPTY,
        }
    }
}

impl Linked for List {
    fn next_free(&self) -> u32 {
        self.stop.0
    }

    fn set_next_free(&mut self, handle: u32) {
        self.stop = Handle(handle);
    }
}

/// All open lists. Room for them needs no limit of its own: each has two open orders.
#[derive(Debug)]
pub(crate) struct Lists {
    pool: Pool<List>,
    by_id: Table,
    /// Only lists that have a client order id.
    by_client_order_id: Table,
    /// The number that the venue's next list gets.
    next_id: OrderListId,
    seed: Seed,
}

impl Lists {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self {
            pool: Pool::new(),
            by_id: Table::new(),
            by_client_order_id: Table::new(),
            next_id: OrderListId(0),
            seed,
        }
    }

    pub(crate) fn try_grow(&mut self, open_orders: u32) -> Result<(), TryReserveError> {
        let lists = open_orders / 2;
        self.pool.try_grow(lists)?;
        self.by_id.try_grow(lists)?;
        self.by_client_order_id.try_grow(lists)
    }

    /// Open lists.
    pub(crate) const fn len(&self) -> u32 {
        self.pool.live()
    }

    /// The number that the next list gets.
    pub(crate) const fn next_id(&self) -> OrderListId {
        self.next_id
    }

    /// The open list in a slot.
    pub(crate) fn get(&self, slot: u32) -> &List {
        &self.pool[slot]
    }

    fn hash_of_id(&self, id: OrderListId) -> u32 {
        self.seed.order(LISTS_SCOPE, id.0.cast_unsigned())
    }

    fn hash_of_name(&self, list: &List) -> u32 {
        self.seed.client_order_id(list.account, list.symbol, &list.client_order_id)
    }

    /// Opens a list under the next number; gives its slot. The caller has checked that its orders have
    /// room and that its client order id is free.
    pub(crate) fn open(&mut self, list: List) -> u32 {
        let list = List { id: self.next_id, ..list };
        self.next_id.0 += 1;
        self.restore(list)
    }

    /// The number that the next list gets, as a snapshot has it.
    pub(crate) const fn set_next_id(&mut self, next_id: OrderListId) {
        self.next_id = next_id;
    }

    /// Takes an open list in under its own number, for which there is room; gives its slot.
    pub(crate) fn restore(&mut self, list: List) -> u32 {
        let slot = self.pool.take().expect("there are twice as many orders as lists");
        self.pool[slot] = list;
        self.by_id.insert(self.hash_of_id(list.id), slot);
        if !list.client_order_id.is_empty() {
            self.by_client_order_id.insert(self.hash_of_name(&list), slot);
        }
        slot
    }

    /// Ends a list; gives what it was.
    pub(crate) fn close(&mut self, slot: u32) -> List {
        let list = self.pool[slot];
        self.by_id.remove(self.hash_of_id(list.id), slot);
        if !list.client_order_id.is_empty() {
            self.by_client_order_id.remove(self.hash_of_name(&list), slot);
        }
        self.pool.release(slot);
        list
    }

    /// The slot of an open list by number.
    pub(crate) fn find(&self, id: OrderListId) -> Option<u32> {
        self.by_id.find(self.hash_of_id(id), |slot| self.pool[slot].id == id)
    }

    /// The slot of an open list by its owner's name for it.
    pub(crate) fn find_by_client_order_id(
        &self,
        account: AccountId,
        symbol: SymbolId,
        name: &ClientOrderId,
    ) -> Option<u32> {
        if name.is_empty() {
            return None;
        }
        self.by_client_order_id.find(self.seed.client_order_id(account, symbol, name), |slot| {
            let list = &self.pool[slot];
            list.client_order_id == *name && list.account == account && list.symbol == symbol
        })
    }

    /// Entries of the two tables: all lists, and those with a client order id.
    pub(crate) const fn table_lengths(&self) -> (u32, u32) {
        (self.by_id.len(), self.by_client_order_id.len())
    }

    /// True when no slot is lost.
    pub(crate) fn is_consistent(&self) -> bool {
        self.pool.is_consistent()
    }

    /// The counter; lists themselves are hashed with their orders.
    pub(crate) fn hash(&self, hash: &mut StateHash) {
        hash.signed(self.next_id.0);
    }
}
