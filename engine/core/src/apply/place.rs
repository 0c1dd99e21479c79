//! Placing orders, and continuing those whose transaction met as many makers as it may.

use super::settlement::Settlement;
use super::{Applied, Context, Reject};
use crate::Core;
use crate::accounts::OrderWindow;
use crate::book::{Aggressor, SymbolBook};
use crate::filters::{self, OrderKind};
use crate::limits::number;
use crate::money;
use crate::orders::OrderRecord;
use crate::outbox::Outbox;
use crate::pending::ActiveOrder;
use crate::symbols::Symbol;
use touchline_protocol::message::command::{NewOrder, ORDER_VALIDATE_ONLY};
use touchline_protocol::message::enums::{
    OrderStatus, OrderType, RejectReason, Side, SymbolStatus, TimeInForce,
};
use touchline_protocol::message::event::{OrderAccepted, OrderContinues, OrderResult, OrderValid};
use touchline_protocol::units::{AccountId, Amount, OrderListId, Price, Qty, SymbolId, notional};

impl Core {
    /// Places an order, or only checks it.
    pub(super) fn new_order(
        &mut self,
        context: &Context,
        message: &NewOrder,
        outbox: &mut Outbox<'_>,
    ) -> Result<Applied, Reject> {
        let account = self.trading_account(&message.command)?;
        let symbol = self.settled_symbol(message.symbol)?;
        if symbol.permissions & self.accounts.list[account.0 as usize].permissions == 0 {
            return Err(RejectReason::SymbolNotPermitted.into());
        }
        let kind = filters::order_kind(message, symbol.order_types)?;
        filters::check_order(&symbol.filters, kind.order_type, message.price, message.quantity)?;
        if symbol.status != SymbolStatus::Trading {
            return Err(RejectReason::SymbolNotTrading.into());
        }
        let windows = self.count_order(account, context.time_ns)?;
        if message.flags & ORDER_VALIDATE_ONLY != 0 {
            outbox.push(&OrderValid { symbol: message.symbol, ..Default::default() });
            return Ok(Applied::Valid);
        }
        let locked = self.check_engine_state(account, message, kind)?;
        self.accept(context, (account, message, kind), (locked, windows), outbox);
        Ok(Applied::Committed)
    }

    /// A symbol whose book may be touched. The engine runs a symbol's pending work before it passes on
    /// the next command of that symbol, so the reject is for a caller that does not.
    pub(super) fn settled_symbol(&self, id: SymbolId) -> Result<&Symbol, Reject> {
        let symbol = self.symbols.get(id).ok_or(RejectReason::UnknownSymbol)?;
        if symbol.has_pending {
            return Err(RejectReason::LogUnavailable.into());
        }
        Ok(symbol)
    }

    /// The account's order counts with one more order, if the limits allow it. Calendar windows: the
    /// n-th is from n times the interval on (facts §8).
    fn count_order(&self, account: AccountId, time_ns: u64) -> Result<[OrderWindow; 2], Reject> {
        let limits = [self.limits.orders_per_interval_0, self.limits.orders_per_interval_1];
        let seconds = [self.limits.interval_0_seconds, self.limits.interval_1_seconds];
        let mut windows = self.accounts.list[account.0 as usize].windows;
        for (index, order_window) in windows.iter_mut().enumerate() {
            let window = time_ns / (u64::from(seconds[index]) * 1_000_000_000);
            if order_window.window != window {
                *order_window = OrderWindow { window, count: 0 };
            }
            if limits[index] != 0 && order_window.count >= limits[index] {
                return Err(Reject::with(RejectReason::TooManyOrders, index as u32));
            }
            order_window.count = order_window.count.saturating_add(1);
        }
        Ok(windows)
    }

    /// What depends on the account's orders and balance and on the venue's capacity. Gives the amount
    /// to lock.
    fn check_engine_state(
        &self,
        account: AccountId,
        message: &NewOrder,
        kind: OrderKind,
    ) -> Result<i64, Reject> {
        let id = message.symbol;
        let symbol = &self.symbols.list[id.0 as usize];
        let book = &self.symbols.books[id.0 as usize];
        let open = self.orders.open_count(account, id);
        if symbol.filters.max_orders != 0 && open >= symbol.filters.max_orders {
            return Err(RejectReason::MaxNumOrders.into());
        }
        let name = &message.client_order_id;
        if self.orders.find_by_client_order_id(&self.pools, account, id, name).is_some() {
            return Err(RejectReason::DuplicateClientOrderId.into());
        }
        let aggressor = kind.aggressor(Price(message.price), Qty(message.quantity));
        self.check_capacity(book, kind, &aggressor)?;
        let free = self.accounts.balance(account, symbol.paid_with(kind.side)).free;
        let locked = match (kind.side, kind.order_type) {
            (Side::Sell, _) => Some(message.quantity),
            (Side::Buy, OrderType::Market) => self.market_lock(book, &aggressor, free),
            (Side::Buy, _) => money::quote_rounded_up(message.price, message.quantity),
        };
        locked
            .filter(|&locked| locked <= free.0)
            .ok_or_else(|| RejectReason::InsufficientBalance.into())
    }

    /// Room for what may rest and for what may have to be continued; why this is enough:
    /// [`PendingQueue`](crate::pending::PendingQueue).
    fn check_capacity(
        &self,
        book: &SymbolBook,
        kind: OrderKind,
        aggressor: &Aggressor,
    ) -> Result<(), Reject> {
        if book.crosses(aggressor.side, aggressor.limit) {
            let is_full = self.pending.len() >= self.limits.pending_work;
            if is_full && book.may_exceed(&self.pools, aggressor, self.limits.max_steps) {
                return Err(Reject::with(RejectReason::CapacityReached, number::PENDING_WORK));
            }
            return Ok(());
        }
        if !kind.may_rest() {
            return Ok(());
        }
        let reserved = u64::from(self.pending.reserved());
        if u64::from(self.pools.orders()) + reserved >= u64::from(self.limits.open_orders) {
            return Err(Reject::with(RejectReason::CapacityReached, number::OPEN_ORDERS));
        }
        if u64::from(self.pools.levels()) + reserved >= u64::from(self.limits.price_levels)
            && !book.has_level(&self.pools, aggressor.side, aggressor.limit)
        {
            return Err(Reject::with(RejectReason::CapacityReached, number::PRICE_LEVELS));
        }
        Ok(())
    }

    /// What a MARKET buy needs: the cost of what is there, rounded up level by level, so that no
    /// truncation of its fills can exceed it. `None` as soon as it is more than what is free.
    fn market_lock(&self, book: &SymbolBook, aggressor: &Aggressor, free: Amount) -> Option<i64> {
        let mut missing = aggressor.quantity.0;
        let mut cost = 0i64;
        for level in book.reachable(&self.pools, Side::Buy, aggressor.limit) {
            let quantity = i64::try_from(level.quantity).unwrap_or(i64::MAX).min(missing);
            let exact = notional(level.price, Qty(quantity));
            cost = cost.checked_add(Amount::from_notional_rounded_up(exact)?.0)?;
            missing -= quantity;
            if cost > free.0 {
                return None;
            }
            if missing == 0 {
                break;
            }
        }
        Some(cost)
    }

    /// From here on nothing is refused.
    fn accept(
        &mut self,
        context: &Context,
        (account, message, kind): (AccountId, &NewOrder, OrderKind),
        (locked, windows): (i64, [OrderWindow; 2]),
        outbox: &mut Outbox<'_>,
    ) {
        let symbol = &mut self.symbols.list[message.symbol.0 as usize];
        symbol.counters.order.0 += 1;
        let order_id = symbol.counters.order;
        let asset = symbol.paid_with(kind.side);
        self.accounts.lock(account, asset, locked);
        self.accounts.list[account.0 as usize].windows = windows;
        outbox.push(&OrderAccepted {
            order_id,
            account,
            symbol: message.symbol,
            locked,
            price: message.price,
            quantity: message.quantity,
            order_list_id: OrderListId::NONE,
            side: kind.side.to_wire(),
            order_type: kind.order_type.to_wire(),
            time_in_force: kind.time_in_force.to_wire(),
            session: message.command.session,
            ..Default::default()
        });
        let mut active = ActiveOrder {
            order_id,
            account,
            symbol: message.symbol,
            kind,
            price: Price(message.price),
            quantity: message.quantity,
            remaining: message.quantity,
            executed_quote: 0,
            locked,
            priority: context.position,
            last_fill_price: Price::ZERO,
            last_fill_time_ns: 0,
            order_counts: windows.map(|window| window.count),
            session: message.command.session,
            epoch: message.command.epoch,
            correlation: message.command.correlation,
            sequence: message.command.sequence,
            client_order_id: message.client_order_id,
        };
        let book = &self.symbols.books[message.symbol.0 as usize];
        let is_killed = kind.time_in_force == TimeInForce::Fok
            && !book.covers(&self.pools, &active.aggressor());
        if is_killed {
            self.finish(&active, outbox);
        } else if !self.advance(context, &mut active, outbox) {
            self.symbols.list[message.symbol.0 as usize].has_pending = true;
            self.pending.push(active);
        }
    }

    /// Continues the head of the pending work.
    pub(super) fn run_pending(
        &mut self,
        context: &Context,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let mut active = *self.pending.head().ok_or(RejectReason::UnexpectedMessage)?;
        if self.advance(context, &mut active, outbox) {
            self.pending.pop();
            self.symbols.list[active.symbol.0 as usize].has_pending = false;
        } else {
            self.pending.set_head(active);
        }
        Ok(())
    }

    /// Lets an order meet as many makers as one transaction may, and ends its taking if it is done.
    /// True when it is.
    fn advance(
        &mut self,
        context: &Context,
        active: &mut ActiveOrder,
        outbox: &mut Outbox<'_>,
    ) -> bool {
        let at = active.symbol.0 as usize;
        let aggressor = active.aggressor();
        let book = &mut self.symbols.books[at];
        if book.crosses(aggressor.side, aggressor.limit) {
            let mut settlement = Settlement {
                accounts: &mut self.accounts,
                orders: &mut self.orders,
                symbol: &mut self.symbols.list[at],
                active,
                outbox,
                time_ns: context.time_ns,
            };
            book.take(&mut self.pools, &aggressor, self.limits.max_steps, &mut settlement);
            self.symbols.list[at].counters.book_update.0 += 1;
            if active.remaining > 0 && book.crosses(aggressor.side, aggressor.limit) {
                outbox.push(&OrderContinues {
                    order_id: active.order_id,
                    symbol: active.symbol,
                    remaining: active.remaining,
                    book_update_id: self.symbols.list[at].counters.book_update,
                    ..Default::default()
                });
                return false;
            }
        }
        if active.remaining > 0 && active.may_rest() {
            self.rest(active);
        }
        self.finish(active, outbox);
        true
    }

    /// Puts what an order could not take into the book.
    fn rest(&mut self, active: &ActiveOrder) {
        let at = active.symbol.0 as usize;
        let owner = (active.order_id, active.account.0);
        let remaining = Qty(active.remaining);
        let book = &mut self.symbols.books[at];
        let is_first_change = active.remaining == active.quantity;
        let handle = book.rest(&mut self.pools, active.kind.side, active.price, remaining, owner);
        let record = OrderRecord {
            quantity: active.quantity,
            executed_quote: active.executed_quote,
            priority: active.priority,
            symbol: active.symbol,
            session: active.session,
            kind: active.kind,
        };
        let name = &active.client_order_id;
        self.orders.insert(handle, (active.order_id, active.account), record, name);
        // One update per transaction: an order that took first has changed the book already.
        if is_first_change {
            self.symbols.list[at].counters.book_update.0 += 1;
        }
    }

    /// Releases the lock of an order that has ended, and reports how it stands.
    fn finish(&mut self, active: &ActiveOrder, outbox: &mut Outbox<'_>) {
        let symbol = &self.symbols.list[active.symbol.0 as usize];
        let executed_quantity = active.quantity - active.remaining;
        let status = if active.remaining == 0 {
            OrderStatus::Filled
        } else if !active.may_rest() {
            OrderStatus::Expired
        } else if executed_quantity == 0 {
            OrderStatus::New
        } else {
            OrderStatus::PartiallyFilled
        };
        let released = if status.is_open() { 0 } else { active.still_locked() };
        if released > 0 {
            self.accounts.release(active.account, symbol.paid_with(active.kind.side), released);
        }
        outbox.push(&OrderResult {
            order_id: active.order_id,
            account: active.account,
            symbol: active.symbol,
            quantity: active.quantity,
            executed_quantity,
            executed_quote: active.executed_quote,
            released,
            book_update_id: symbol.counters.book_update,
            order_list_id: OrderListId::NONE,
            order_count_0: active.order_counts[0],
            order_count_1: active.order_counts[1],
            status: status.to_wire(),
            ..Default::default()
        });
    }
}
