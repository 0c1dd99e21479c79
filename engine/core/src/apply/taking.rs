//! What an accepted order does in the book: taking, resting, and the report of how it stands; and the
//! continuation of orders whose transaction met as many makers as it may.

use super::settlement::Settlement;
use super::{Context, Reject};
use crate::Core;
use crate::orders::{IS_ICEBERG, OrderDetails, OrderRecord};
use crate::outbox::Outbox;
use crate::pending::{ActiveOrder, Pending};
use touchline_protocol::message::enums::{OrderStatus, RejectReason, Side};
use touchline_protocol::message::event::{OrderContinues, OrderResult};
use touchline_protocol::units::{OrderListId, Price, Qty, SymbolId};

impl Core {
    /// Continues the head of the pending work.
    pub(super) fn run_pending(
        &mut self,
        context: &Context,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let Pending { symbol, order } =
            *self.pending.head().ok_or(RejectReason::UnexpectedMessage)?;
        let mut steps = self.limits.max_steps;
        let unfinished = match order {
            Some(mut active) => {
                let is_done = self.advance(context, &mut active, &mut steps, outbox);
                (!is_done).then_some(active)
            }
            None => self.run_triggered(context, symbol, &mut steps, outbox),
        };
        if unfinished.is_some() || self.has_triggered(symbol.0 as usize) {
            self.pending.set_head(unfinished);
        } else {
            self.pending.pop();
            self.symbols.list[symbol.0 as usize].has_pending = false;
        }
        Ok(())
    }

    /// Leaves what an order's first transaction could not do to later ones.
    pub(super) fn leave_pending(&mut self, symbol: SymbolId, unfinished: Option<ActiveOrder>) {
        if unfinished.is_some() || self.has_triggered(symbol.0 as usize) {
            self.symbols.list[symbol.0 as usize].has_pending = true;
            self.pending.push(Pending { symbol, order: unfinished });
        }
    }

    /// Lets an order take for as many steps as are left, and ends its taking if it is done. True when
    /// it is.
    pub(super) fn advance(
        &mut self,
        context: &Context,
        active: &mut ActiveOrder,
        steps: &mut u32,
        outbox: &mut Outbox<'_>,
    ) -> bool {
        let at = active.symbol.0 as usize;
        let mut took = false;
        let is_done = loop {
            self.collect_triggered(at, steps);
            let aggressor = active.aggressor();
            if active.remaining == 0
                || !self.symbols.books[at].crosses(aggressor.side, aggressor.limit)
            {
                break true;
            }
            if *steps == 0 {
                break false;
            }
            took = true;
            self.take(context, active, steps, outbox);
        };
        let counters = &mut self.symbols.list[at].counters;
        counters.book_update.0 += u64::from(took);
        if !is_done {
            outbox.push(&OrderContinues {
                order_id: active.order_id,
                symbol: active.symbol,
                remaining: active.remaining,
                book_update_id: counters.book_update,
                ..Default::default()
            });
            return false;
        }
        if active.remaining > 0 && active.may_rest() {
            self.rest(active);
        }
        self.finish(active, outbox);
        true
    }

    /// Lets an order take until a stop is reached.
    fn take(
        &mut self,
        context: &Context,
        active: &mut ActiveOrder,
        steps: &mut u32,
        outbox: &mut Outbox<'_>,
    ) {
        let at = active.symbol.0 as usize;
        let aggressor = active.aggressor();
        let triggers = &self.symbols.triggers[at];
        let mut settlement = Settlement {
            accounts: &mut self.accounts,
            orders: &mut self.orders,
            symbol: &mut self.symbols.list[at],
            active,
            outbox,
            time_ns: context.time_ns,
            position: context.position,
            stops: [triggers.best(Side::Sell), triggers.best(Side::Buy)],
            is_triggered: false,
            averages: (self.rules >= 2).then_some(&mut self.symbols.averages),
        };
        let book = &mut self.symbols.books[at];
        (_, *steps) = book.take(&mut self.pools, &aggressor, *steps, &mut settlement);
        // The last price matters from the rules on that know stops.
        if self.rules >= 2 && active.last_fill_price != Price::ZERO {
            self.symbols.list[at].last_price = active.last_fill_price;
        }
    }

    /// Puts what an order could not take into the book.
    fn rest(&mut self, active: &ActiveOrder) {
        let at = active.symbol.0 as usize;
        let owner = (active.order_id, active.account.0);
        let is_iceberg = active.iceberg > 0;
        let shown =
            if is_iceberg { active.iceberg.min(active.remaining) } else { active.remaining };
        let hidden = active.remaining - shown;
        let book = &mut self.symbols.books[at];
        let is_first_change = active.remaining == active.quantity;
        let handle = book.rest(&mut self.pools, active.kind.side, active.price, Qty(shown), owner);
        if hidden > 0 {
            self.pools.change_hidden(handle, 0, hidden);
        }
        let record = OrderRecord {
            quantity: active.quantity,
            executed_quote: active.executed_quote,
            priority: active.priority,
            symbol: active.symbol,
            session: active.session,
            kind: active.kind,
            flags: if is_iceberg { IS_ICEBERG } else { 0 },
        };
        let details = OrderDetails { iceberg: active.iceberg, hidden, ..Default::default() };
        let name = &active.client_order_id;
        self.orders.insert(handle, (active.order_id, active.account), (record, details), name);
        // One update per transaction: an order that took first has changed the book already.
        if is_first_change {
            self.symbols.list[at].counters.book_update.0 += 1;
        }
    }

    /// Releases the lock of an order that has ended, and reports how it stands.
    pub(super) fn finish(&mut self, active: &ActiveOrder, outbox: &mut Outbox<'_>) {
        let symbol = &self.symbols.list[active.symbol.0 as usize];
        let executed_quantity = active.quantity - active.remaining;
        let status = if active.remaining == 0 && !active.ran_dry {
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
        self.report(active, status, released, outbox);
    }

    /// Reports how an order stands.
    pub(super) fn report(
        &self,
        active: &ActiveOrder,
        status: OrderStatus,
        released: i64,
        outbox: &mut Outbox<'_>,
    ) {
        let symbol = &self.symbols.list[active.symbol.0 as usize];
        let executed_quantity = active.quantity - active.remaining;
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
