//! Open orders taken out of the venue until it is decided whether something is accepted in their
//! place. Called by replacements.
//!
//! A replacement is judged by the very checks that judge a new order, on the venue without the order
//! that it replaces. Then the order is put back, accepted or not: into the same slot, between the
//! neighbours that it had, with the same lock, counts and names, so that not a bit of state differs.

use super::Reject;
use crate::Core;
use crate::book::{Handle, Place};
use crate::orders::{IS_WAITING, OrderDetails, OrderRecord};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId};

/// An open order that was taken out, whole; a list that it belongs to stays.
#[derive(Clone, Copy)]
pub(super) struct Vacated {
    pub(super) order_id: OrderId,
    pub(super) account: AccountId,
    handle: Handle,
    place: Place,
    /// Its place among the orders of its account.
    pub(super) kept: u32,
    pub(super) record: OrderRecord,
    details: OrderDetails,
    pub(super) client_order_id: ClientOrderId,
    /// What it had locked, 10⁻⁸: free now.
    pub(super) locked: i64,
    /// Base quantity executed, 10⁻⁸.
    pub(super) executed: i64,
}

impl Core {
    /// What `judge` says of the venue without an open order that waits for no turn, or without both of
    /// its list if that is open. The venue is as before.
    pub(super) fn without<T>(
        &mut self,
        handle: Handle,
        judge: impl FnOnce(&Self) -> Result<T, Reject>,
    ) -> Result<T, Reject> {
        let (first, second) = match self.orders.list_of(handle) {
            Some(slot) => {
                let list = *self.orders.lists.get(slot);
                (list.stop, Some(list.limit))
            }
            None => (handle, None),
        };
        let first = self.vacate(first);
        let second = second.map(|second| self.vacate(second));
        let judged = judge(self);
        if let Some(second) = second {
            self.put_back(&second);
        }
        self.put_back(&first);
        judged
    }

    /// Takes an open order that waits for no turn out and gives its lock back; it keeps its place among
    /// the orders of its account.
    pub(super) fn vacate(&mut self, handle: Handle) -> Vacated {
        let order = self.orders.view(&self.pools, handle);
        let record = *self.orders.record(handle);
        let hidden = self.orders.hidden(handle);
        let at = record.symbol.0 as usize;
        let asset = self.symbols.list[at].paid_with(record.kind.side);
        let (account, locked) = (AccountId(order.owner), self.orders.locked(&order));
        let details = *self.orders.details(handle);
        let client_order_id = *self.orders.client_order_id(handle);
        let kept = self.orders.suspend(handle, account);
        let book = if record.flags & IS_WAITING == 0 {
            &mut self.symbols.books[at]
        } else {
            &mut self.symbols.triggers[at]
        };
        let place = book.take_out(&mut self.pools, handle, hidden);
        self.accounts.release(account, asset, locked);
        Vacated {
            order_id: order.id,
            account,
            handle,
            place,
            kept,
            record,
            details,
            client_order_id,
            locked,
            executed: record.quantity - order.remaining.0 - hidden,
        }
    }

    /// Undoes [`vacate`](Self::vacate); what was vacated last is put back first.
    fn put_back(&mut self, vacated: &Vacated) {
        let Vacated { order_id, account, handle, ref place, record, details, .. } = *vacated;
        let at = record.symbol.0 as usize;
        let asset = self.symbols.list[at].paid_with(record.kind.side);
        self.accounts.lock(account, asset, vacated.locked);
        let book = if record.flags & IS_WAITING == 0 {
            &mut self.symbols.books[at]
        } else {
            &mut self.symbols.triggers[at]
        };
        book.put_back(&mut self.pools, place);
        let name = &vacated.client_order_id;
        self.orders.insert(handle, (order_id, account), (record, details), name);
        let placed = self.orders.placed_at(vacated.kept);
        self.orders.give_place(handle, account, (vacated.kept, placed));
    }
}
