//! Orders in the place of others: an open order with another price or quantity, and a cancel together
//! with a placement. Called by `apply`.
//!
//! Both are judged on the venue without the order that leaves: see [`vacate`](super::vacate).

use super::vacate::Vacated;
use super::{Context, Reject};
use crate::Core;
use crate::book::Handle;
use crate::filters::{self, OrderKind};
use crate::money::{self, AMOUNT_MAX};
use crate::orders::{IS_WAITING, OrderRecord};
use crate::outbox::Outbox;
use crate::pending::ActiveOrder;
use touchline_protocol::message::command::{CancelReplace, NewOrder, ReplaceOrder};
use touchline_protocol::message::enums::{OrderType, RejectReason, Side, SymbolStatus};
use touchline_protocol::message::event::OrderReplaced;
use touchline_protocol::units::{AccountId, OrderListId, Price, Qty};

impl Core {
    /// Changes an open order's price or quantity. One that only gets smaller keeps its place, as by
    /// `ReduceOrder`; any other gets a new one, and may take first.
    pub(super) fn replace_order(
        &mut self,
        context: &Context,
        message: &ReplaceOrder,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let account = self.placing_account(&message.command, message.symbol)?;
        let symbol = &self.symbols.list[message.symbol.0 as usize];
        if symbol.status != SymbolStatus::Trading {
            return Err(RejectReason::SymbolNotTrading.into());
        }
        if message.new_price <= 0 {
            return Err(RejectReason::InvalidPrice.into());
        }
        if message.new_quantity <= 0 {
            return Err(RejectReason::InvalidQuantity.into());
        }
        let handle = self.own_order(account, message.symbol, message.order_id)?;
        self.check_replaceable(handle, message)?;
        let keeps_price = self.pools.order(handle).price.0 == message.new_price;
        if keeps_price && message.new_quantity < self.orders.record(handle).quantity {
            let filters = &self.symbols.list[message.symbol.0 as usize].filters;
            filters::check_lot(filters, message.new_quantity)?;
            return self.reduce(handle, message.new_quantity, outbox);
        }
        self.check_new_values(context, (account, handle), message)?;
        let record = *self.orders.record(handle);
        let order = self.pools.order(handle);
        let open = order.remaining.0 + self.orders.hidden(handle);
        let open = message.new_quantity - (record.quantity - open);
        let locked =
            self.without(handle, |core| core.judge_replaced(account, &record, (message, open)))?;
        self.accept_replaced(context, handle, (message, locked), outbox);
        Ok(())
    }

    /// What of an order's state says whether it can be replaced at all.
    fn check_replaceable(&self, handle: Handle, message: &ReplaceOrder) -> Result<(), Reject> {
        let record = self.orders.record(handle);
        if record.flags & IS_WAITING != 0 || self.orders.list_of(handle).is_some() {
            return Err(RejectReason::NotReplaceable.into());
        }
        let order = self.pools.order(handle);
        let open = order.remaining.0 + self.orders.hidden(handle);
        if message.new_quantity <= record.quantity - open {
            return Err(RejectReason::QuantityBelowExecuted.into());
        }
        if (message.new_price, message.new_quantity) == (order.price.0, record.quantity) {
            return Err(RejectReason::NothingChanged.into());
        }
        Ok(())
    }

    /// The filters on the new price and quantity. Whatever rests in the book is a limit order.
    fn check_new_values(
        &self,
        context: &Context,
        (account, handle): (AccountId, Handle),
        message: &ReplaceOrder,
    ) -> Result<(), Reject> {
        let as_new = NewOrder {
            symbol: message.symbol,
            price: message.new_price,
            quantity: message.new_quantity,
            iceberg_quantity: self.orders.iceberg(handle),
            ..Default::default()
        };
        let site = self.site(account, message.symbol);
        filters::check_order(&site.symbol.filters, OrderKind::LIMIT_BUY, &as_new)?;
        self.check_averages(context.time_ns, &site, (&as_new, OrderKind::LIMIT_BUY))
    }

    /// What depends on the account's balance, on the book and on the venue's capacity, the order gone;
    /// gives what it locks for what it will have open.
    fn judge_replaced(
        &self,
        account: AccountId,
        record: &OrderRecord,
        (message, open): (&ReplaceOrder, i64),
    ) -> Result<i64, Reject> {
        let (kind, limit) = (record.kind, Price(message.new_price));
        let site = self.site(account, message.symbol);
        // What is executed is in the balance; up to rules 4 it was counted a second time, and an order that asks for
        // no more was judged as well.
        let grows = self.rules < 5 || message.new_quantity > record.quantity;
        if kind.side == Side::Buy && grows {
            let counted = if self.rules < 5 { message.new_quantity } else { open };
            self.check_position(&site, &self.open_at(&site), counted)?;
        }
        if kind.order_type == OrderType::LimitMaker && site.book.crosses(kind.side, limit) {
            return Err(RejectReason::WouldTake.into());
        }
        let prevention = record.prevention.unwrap_or(site.account.self_trade_prevention);
        let aggressor = kind.aggressor(limit, Qty(open));
        self.check_capacity(&site, (kind, prevention), &aggressor)?;
        // Executed quote grows over any number of replacements: see `ActiveOrder` for the bound.
        let worth = money::quote_rounded_up(message.new_price, open)
            .filter(|worth| record.executed_quote <= AMOUNT_MAX - worth)
            .ok_or(RejectReason::Overflow)?;
        let locked = if kind.side == Side::Buy { worth } else { open };
        if locked > self.means(&site, kind.side).free.0 {
            return Err(RejectReason::InsufficientBalance.into());
        }
        Ok(locked)
    }

    /// From here on nothing is refused.
    fn accept_replaced(
        &mut self,
        context: &Context,
        handle: Handle,
        (message, locked): (&ReplaceOrder, i64),
        outbox: &mut Outbox<'_>,
    ) {
        let iceberg = self.orders.iceberg(handle);
        let order_list_id = self.orders.order_list_id(handle);
        let vacated = self.vacate(handle);
        let Vacated { order_id, account, record, executed, .. } = vacated;
        let symbol = &self.symbols.list[record.symbol.0 as usize];
        self.accounts.lock(account, symbol.paid_with(record.kind.side), locked);
        self.address(record.session, account, outbox);
        outbox.push(&OrderReplaced {
            order_id,
            account,
            symbol: record.symbol,
            price: message.new_price,
            quantity: message.new_quantity,
            executed_quantity: executed,
            locked: locked - vacated.locked,
            book_update_id: symbol.counters.book_update,
            ..Default::default()
        });
        let of = (iceberg, order_list_id);
        let mut active = self.taking_again(context, &vacated, (message, locked), of);
        // It has left its place: the book has changed, whatever it takes now.
        let mut steps = self.limits.max_steps;
        let is_done = self.advance_from(context, &mut active, (&mut steps, true), outbox);
        self.leave_pending(record.symbol, (&active, is_done));
    }

    /// An order that has left its place, with other values and about to take; from now on it locks
    /// `locked`.
    fn taking_again(
        &self,
        context: &Context,
        vacated: &Vacated,
        (message, locked): (&ReplaceOrder, i64),
        (iceberg, order_list_id): (i64, OrderListId),
    ) -> ActiveOrder {
        let Vacated { order_id, account, ref record, executed, .. } = *vacated;
        let is_buy = record.kind.side == Side::Buy;
        let holder = &self.accounts.list[account.0 as usize];
        let windows = self.order_windows(holder, context.time_ns);
        ActiveOrder {
            order_id,
            account,
            symbol: record.symbol,
            kind: record.kind,
            price: Price(message.new_price),
            stop_price: Price::ZERO,
            quantity: message.new_quantity,
            remaining: message.new_quantity - executed,
            executed_quote: record.executed_quote,
            locked: locked + if is_buy { record.executed_quote } else { 0 },
            has_own_lock: is_buy && executed > 0,
            iceberg,
            order_list_id,
            ran_dry: false,
            prevention: record.prevention,
            prevention_now: self.prevention(account, record.prevention),
            prevented: 0,
            priority: context.position,
            placed: self.orders.placed_at(vacated.kept),
            place: vacated.kept,
            last_fill_price: Price::ZERO,
            last_fill_time_ns: 0,
            order_counts: windows.map(|window| window.count),
            placed_by: record.session,
            session: message.command.session,
            epoch: message.command.epoch,
            correlation: message.command.correlation,
            sequence: message.command.sequence,
            client_order_id: vacated.client_order_id,
        }
    }

    /// Cancels one order and places another, both or neither.
    pub(super) fn cancel_replace(
        &mut self,
        context: &Context,
        message: &CancelReplace,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let account = self.placing_account(&message.command, message.symbol)?;
        if message.flags != 0 {
            return Err(RejectReason::UnsupportedCombination.into());
        }
        let new = placement_of(message);
        let (kind, windows) = self.check_placement(context.time_ns, account, &new)?;
        let names = (message.canceled_order_id, &message.canceled_client_order_id);
        let canceled = self.named_order(account, message.symbol, names)?;
        let terms = self.without(canceled, |core| {
            core.check_engine_state(&core.site(account, new.symbol), &new, kind)
        })?;
        self.cancel(canceled, outbox);
        self.accept(context, (account, &new, kind), (&terms, windows), outbox);
        Ok(())
    }
}

/// The placement that a cancel-replace asks for.
fn placement_of(message: &CancelReplace) -> NewOrder {
    NewOrder {
        command: message.command,
        symbol: message.symbol,
        side: message.side,
        order_type: message.order_type,
        time_in_force: message.time_in_force,
        price: message.price,
        quantity: message.quantity,
        quote_quantity: message.quote_quantity,
        stop_price: message.stop_price,
        iceberg_quantity: message.iceberg_quantity,
        client_order_id: message.client_order_id,
        self_trade_prevention: message.self_trade_prevention,
        ..Default::default()
    }
}
