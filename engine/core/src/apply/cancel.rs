//! Cancelling and reducing open orders.

use super::Reject;
use crate::Core;
use crate::book::{Handle, RestingView};
use crate::filters;
use crate::orders::IS_WAITING;
use crate::outbox::Outbox;
use touchline_protocol::message::command::{CancelOrder, CancelOrderNamed, ReduceOrder};
use touchline_protocol::message::enums::{OrderStatus, RejectReason, SymbolStatus};
use touchline_protocol::message::event::OrderReduced;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, Qty, SymbolId};

impl Core {
    /// Cancels by number. Works in every status of the symbol.
    #[inline(never)]
    pub(super) fn cancel_order(
        &mut self,
        message: &CancelOrder,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let account = self.trading_account(&message.command)?;
        self.settled_symbol(message.symbol)?;
        let handle = self.own_order(account, message.symbol, message.order_id)?;
        self.cancel(handle, outbox);
        Ok(())
    }

    /// Cancels by number, by client order id, or by both if they agree.
    pub(super) fn cancel_order_named(
        &mut self,
        message: &CancelOrderNamed,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let account = self.trading_account(&message.command)?;
        self.settled_symbol(message.symbol)?;
        let names = (message.order_id, &message.client_order_id);
        let handle = self.named_order(account, message.symbol, names)?;
        self.cancel(handle, outbox);
        Ok(())
    }

    /// An open order of the account by number (0: not given), by client order id (empty: not given), or
    /// by both if they agree.
    pub(super) fn named_order(
        &self,
        account: AccountId,
        symbol: SymbolId,
        (id, name): (OrderId, &ClientOrderId),
    ) -> Result<Handle, Reject> {
        if id == OrderId(0) {
            let found = self.orders.find_by_client_order_id(&self.pools, account, symbol, name);
            return found.ok_or_else(|| RejectReason::UnknownOrder.into());
        }
        let handle = self.own_order(account, symbol, id)?;
        if !name.is_empty() && self.orders.client_order_id(handle) != name {
            return Err(RejectReason::ClientOrderIdMismatch.into());
        }
        Ok(handle)
    }

    /// Lowers an order's quantity; it keeps its place. The new quantity obeys LOT_SIZE and
    /// MIN_NOTIONAL as a new order's does, so that no reduction gets around them.
    pub(super) fn reduce_order(
        &mut self,
        message: &ReduceOrder,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let account = self.trading_account(&message.command)?;
        let symbol = self.settled_symbol(message.symbol)?;
        if symbol.status != SymbolStatus::Trading {
            return Err(RejectReason::SymbolNotTrading.into());
        }
        if message.new_quantity <= 0 {
            return Err(RejectReason::InvalidQuantity.into());
        }
        filters::check_lot(&symbol.filters, message.new_quantity)?;
        let handle = self.own_order(account, message.symbol, message.order_id)?;
        if self.orders.list_of(handle).is_some() {
            return Err(RejectReason::NotReplaceable.into());
        }
        self.reduce(handle, message.new_quantity, outbox)
    }

    /// Lowers the quantity of an open order, which is in no open list, to one that LOT_SIZE allows.
    pub(super) fn reduce(
        &mut self,
        handle: Handle,
        new_quantity: i64,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let order = self.orders.view(&self.pools, handle);
        let record = *self.orders.record(handle);
        let hidden = self.orders.hidden(handle);
        let executed_quantity = record.quantity - order.remaining.0 - hidden;
        if new_quantity >= record.quantity {
            return Err(RejectReason::NotReduced.into());
        }
        if new_quantity <= executed_quantity {
            return Err(RejectReason::QuantityBelowExecuted.into());
        }
        let at = record.symbol.0 as usize;
        let symbol = &self.symbols.list[at];
        filters::check_notional(&symbol.filters, order.price.0, new_quantity)?;
        let (account, asset) = (AccountId(order.owner), symbol.paid_with(record.kind.side));

        let remaining = new_quantity - executed_quantity;
        let locked_before = self.orders.locked(&order);
        self.orders.set_quantity(self.rules, &order, (new_quantity, remaining));
        self.lower_remaining(at, &order, hidden, remaining);
        let released = locked_before - self.orders.locked(&self.orders.view(&self.pools, handle));
        self.accounts.release(account, asset, released);
        self.address(record.session, account, outbox);
        let counters = &mut self.symbols.list[at].counters;
        counters.book_update.0 += u64::from(record.flags & IS_WAITING == 0);
        outbox.push(&OrderReduced {
            order_id: order.id,
            account,
            symbol: record.symbol,
            quantity: new_quantity,
            executed_quantity,
            released,
            book_update_id: counters.book_update,
            price: self.limit_price(&order),
            ..Default::default()
        });
        Ok(())
    }

    /// The limit price of an open order; 0 for a waiting stop without one.
    #[inline(always)]
    pub(crate) fn limit_price(&self, order: &RestingView) -> i64 {
        if self.orders.record(order.handle).flags & IS_WAITING == 0 {
            order.price.0
        } else {
            self.orders.details(order.handle).limit_price
        }
    }

    /// Lowers what a resting order has open; an iceberg first gives up what it hides.
    fn lower_remaining(&mut self, at: usize, order: &RestingView, hidden: i64, remaining: i64) {
        let shown = order.remaining.0.min(remaining);
        if hidden > 0 {
            self.pools.change_hidden(order.handle, hidden, remaining - shown);
            self.orders.details_mut(order.handle).hidden = remaining - shown;
        }
        if shown < order.remaining.0 {
            let is_waiting = self.orders.record(order.handle).flags & IS_WAITING != 0;
            let symbols = &mut self.symbols;
            let book = if is_waiting { &mut symbols.triggers[at] } else { &mut symbols.books[at] };
            book.reduce(&mut self.pools, order.handle, Qty(shown));
        }
    }

    /// An open order of the account. Somebody else's is as unknown as none.
    #[inline(always)]
    pub(super) fn own_order(
        &self,
        account: AccountId,
        symbol: SymbolId,
        id: OrderId,
    ) -> Result<Handle, Reject> {
        self.orders
            .find(&self.pools, symbol, id)
            .filter(|handle| self.pools.owner(handle.0) == account.0)
            .ok_or_else(|| RejectReason::UnknownOrder.into())
    }

    /// Cancels an open order, with its list if that is open.
    #[inline(never)]
    pub(super) fn cancel(&mut self, handle: Handle, outbox: &mut Outbox<'_>) {
        self.end_order(handle, OrderStatus::Canceled, outbox);
    }
}
