//! Open orders that end without being filled, cancelled or expired: alone, with the list that they
//! belong to, or as the leg of a list that gives way to the other (facts §5.5). Called by cancels and
//! by whatever else takes orders away; each order reports an `OrderCanceled`, each list behind it an
//! `OrderListChanged`.
//!
//! [`Core::end_order`] counts the book's update. Nothing else in here does: within the taking of an
//! order the caller passes the number that the events are to show, and counts it, once per order.

use crate::Core;
use crate::book::Handle;
use crate::lists::List;
use crate::orders::{IS_WAITING, OrderRecord};
use crate::outbox::Outbox;
use touchline_protocol::message::enums::{ListOrderStatus, ListStatusType, OrderStatus};
use touchline_protocol::message::event::{OrderCanceled, OrderListChanged};
use touchline_protocol::units::{AccountId, BookUpdateId, OrderListId, SessionId};

/// Steps of a transaction that it takes to end a list's other order and the list.
pub(crate) const LIST_STEPS: u32 = 3;

/// How many orders and lists were ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    pub(super) orders: u32,
    pub(super) lists: u32,
}

impl Core {
    /// Notes that the event that is pushed next concerns an order or list that `session` placed.
    #[inline(always)]
    pub(super) fn address(&self, session: SessionId, account: AccountId, outbox: &mut Outbox<'_>) {
        outbox.address(session, account, self.accounts.is_watched(account));
    }

    /// True when ending an open order, with its list if that is open, changes the book.
    #[inline(always)]
    pub(super) fn is_ended_in_book(&self, handle: Handle) -> bool {
        let is_waiting = self.orders.record(handle).flags & IS_WAITING != 0;
        !is_waiting || self.orders.list_of(handle).is_some()
    }

    /// Ends an open order, with its list if that is open; counts the book's update, one per call of
    /// `apply` however many orders are ended in it.
    #[inline(always)]
    pub(super) fn end_order(
        &mut self,
        handle: Handle,
        status: OrderStatus,
        outbox: &mut Outbox<'_>,
    ) -> Ended {
        let changes_book = self.is_ended_in_book(handle);
        let symbol = &mut self.symbols.list[self.orders.record(handle).symbol.0 as usize];
        if changes_book {
            symbol.count_removal(self.call);
        }
        let book_update_id = symbol.counters.book_update;
        self.end_with_list(handle, status, book_update_id, outbox)
    }

    /// Ends an open order; if its list is open, both its orders, the stop leg first, and the list.
    #[inline(always)]
    pub(super) fn end_with_list(
        &mut self,
        handle: Handle,
        status: OrderStatus,
        book_update_id: BookUpdateId,
        outbox: &mut Outbox<'_>,
    ) -> Ended {
        let Some(slot) = self.orders.list_of(handle) else {
            self.end_alone(handle, status, book_update_id, outbox);
            return Ended { orders: 1, lists: 0 };
        };
        let List { stop, limit, .. } = *self.orders.lists.get(slot);
        let session = self.orders.record(stop).session;
        self.end_alone(stop, status, book_update_id, outbox);
        self.end_alone(limit, status, book_update_id, outbox);
        self.close_list(slot, session, book_update_id, outbox);
        Ended { orders: 2, lists: 1 }
    }

    /// Ends the stop leg of an open list, and so the list, because its limit leg was touched.
    pub(super) fn expire_stop_leg(
        &mut self,
        slot: u32,
        book_update_id: BookUpdateId,
        outbox: &mut Outbox<'_>,
    ) {
        let stop = self.orders.lists.get(slot).stop;
        let session = self.orders.record(stop).session;
        self.end_alone(stop, OrderStatus::Expired, book_update_id, outbox);
        self.close_list(slot, session, book_update_id, outbox);
    }

    /// Ends the limit leg of a list, and so the list, because its stop leg, which is in no queue any
    /// more, has its turn. Gives what the limit leg had locked: it stays locked, for the stop leg.
    pub(super) fn expire_limit_leg(
        &mut self,
        slot: u32,
        book_update_id: BookUpdateId,
        outbox: &mut Outbox<'_>,
    ) -> i64 {
        let limit = self.orders.lists.get(slot).limit;
        let session = self.orders.record(limit).session;
        let canceled = self.take_out(limit, OrderStatus::Expired, book_update_id);
        self.address(session, canceled.account, outbox);
        outbox.push(&OrderCanceled { released: 0, ..canceled });
        self.close_list(slot, session, book_update_id, outbox);
        canceled.released
    }

    /// Ends an open order, whatever becomes of its list, and gives its lock back.
    #[inline(always)]
    fn end_alone(
        &mut self,
        handle: Handle,
        status: OrderStatus,
        book_update_id: BookUpdateId,
        outbox: &mut Outbox<'_>,
    ) {
        let OrderRecord { kind, session, .. } = *self.orders.record(handle);
        let canceled = self.take_out(handle, status, book_update_id);
        let asset = self.symbols.list[canceled.symbol.0 as usize].paid_with(kind.side);
        self.accounts.release(canceled.account, asset, canceled.released);
        self.address(session, canceled.account, outbox);
        outbox.push(&canceled);
    }

    /// Takes an open order out of wherever it is: the book, the waiting stops, or those that wait for
    /// their turn. Its lock, which the report says is released, is still to be.
    #[inline(always)]
    fn take_out(
        &mut self,
        handle: Handle,
        status: OrderStatus,
        book_update_id: BookUpdateId,
    ) -> OrderCanceled {
        let order = self.orders.view(&self.pools, handle);
        let record = *self.orders.record(handle);
        let account = AccountId(order.owner);
        // Most orders have nothing but their record.
        let (price, hidden, released, order_list_id) = if record.flags == 0 {
            let released = record.locked(order.price, order.remaining.0);
            (order.price.0, 0, released, OrderListId::NONE)
        } else {
            let (price, released) = (self.limit_price(&order), self.orders.locked(&order));
            let order_list_id = self.orders.order_list_id(handle);
            (price, self.orders.hidden(handle), released, order_list_id)
        };
        let canceled = OrderCanceled {
            order_id: order.id,
            account,
            symbol: record.symbol,
            price,
            quantity: record.quantity,
            executed_quantity: record.quantity - order.remaining.0 - hidden,
            executed_quote: record.executed_quote,
            released,
            book_update_id,
            order_list_id,
            status: status.to_wire(),
            side: record.kind.side.to_wire(),
            order_type: record.kind.order_type.to_wire(),
            time_in_force: record.kind.time_in_force.to_wire(),
            client_order_id: *self.orders.client_order_id(handle),
            ..Default::default()
        };
        if hidden > 0 {
            self.pools.change_hidden(handle, hidden, 0);
        }
        let at = record.symbol.0 as usize;
        if record.flags & IS_WAITING == 0 {
            self.symbols.books[at].remove(&mut self.pools, handle);
        } else if self.orders.details(handle).fired_by == 0 {
            self.symbols.triggers[at].remove(&mut self.pools, handle);
        } else {
            let fired_by = |at| self.orders.details(Handle(at)).fired_by;
            let symbol = &mut self.symbols.list[at];
            symbol.fired = self.pools.remove_fired(symbol.fired, handle.0, &fired_by);
            self.pools.release(handle);
        }
        self.orders.remove(handle, account);
        canceled
    }

    /// Closes an open list, which `session` placed, and reports its end. The order of it that lives on,
    /// if any, is on its own.
    fn close_list(
        &mut self,
        slot: u32,
        session: SessionId,
        book_update_id: BookUpdateId,
        outbox: &mut Outbox<'_>,
    ) {
        let list = self.orders.lists.close(slot);
        self.address(session, list.account, outbox);
        outbox.push(&OrderListChanged {
            order_list_id: list.id,
            account: list.account,
            symbol: list.symbol,
            limit_order_id: list.limit_order_id(),
            stop_order_id: list.stop_order_id,
            list_status_type: ListStatusType::AllDone.to_wire(),
            list_order_status: ListOrderStatus::AllDone.to_wire(),
            list_client_order_id: list.client_order_id,
            book_update_id,
            ..Default::default()
        });
    }
}
