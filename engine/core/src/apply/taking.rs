//! What an accepted order does in the book: taking, resting, and the report of how it stands; and the
//! continuation of orders whose transaction met as many makers as it may.

use super::settlement::Settlement;
use super::{Context, Reject};
use crate::Core;
use crate::orders::{IS_ICEBERG, OrderDetails, OrderRecord};
use crate::outbox::Outbox;
use crate::pending::ActiveOrder;
use touchline_protocol::message::enums::{OrderStatus, RejectReason};
use touchline_protocol::message::event::{OrderContinues, OrderResult};
use touchline_protocol::units::{OrderListId, Qty};

impl Core {
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
    pub(super) fn advance(
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
                position: context.position,
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
        let details = OrderDetails { iceberg: active.iceberg, hidden };
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
