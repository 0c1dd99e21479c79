//! What an accepted order does in the book: taking, resting, and the report of how it stands; and the
//! continuation of orders whose transaction met as many makers as it may.

use super::ending::LIST_STEPS;
use super::settlement::{NOBODY, Settlement};
use super::{Context, Reject};
use crate::Core;
use crate::book::{Aggressor, Handle};
use crate::money;
use crate::orders::{OrderDetails, OrderRecord};
use crate::outbox::Outbox;
use crate::pending::{ActiveOrder, Pending, Sweep};
use crate::pool::NONE;
use touchline_protocol::message::command::EVERY;
use touchline_protocol::message::enums::{
    OrderStatus, RejectReason, SelfTradePrevention, Side, TimeInForce,
};
use touchline_protocol::message::event::{OrderContinues, OrderResult};
use touchline_protocol::units::{BookUpdateId, Price, Qty, SymbolId};

const NS_PER_MS: u64 = 1_000_000;

/// How far an order's taking has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taking {
    /// It is filled, or there is nothing left for it to take.
    Done,
    /// It goes on in a later transaction.
    Continues,
    /// It may not go on.
    Ended,
}

impl Core {
    /// Continues the pending work whose turn it is.
    pub(super) fn run_pending(
        &mut self,
        context: &Context,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let mut steps = self.limits.max_steps;
        let later = match *self.pending.next().ok_or(RejectReason::UnexpectedMessage)? {
            Pending::Order(mut active) => {
                let is_done = if self.ends_by_kill(&active) {
                    self.end(&active, OrderStatus::Expired, outbox);
                    true
                } else {
                    self.advance(context, &mut active, &mut steps, outbox)
                };
                self.left_over(active.symbol, (!is_done).then_some(active))
            }
            Pending::Triggered(symbol) => {
                let unfinished = self.run_triggered(context, symbol, &mut steps, outbox);
                self.left_over(symbol, unfinished)
            }
            Pending::Sweep(mut sweep) => {
                let is_done = self.advance_sweep(&mut sweep, &mut steps, outbox);
                self.report_sweep(&sweep, is_done, outbox);
                if is_done { self.behind_sweep(&sweep) } else { Some(Pending::Sweep(sweep)) }
            }
        };
        match later {
            Some(pending) => self.pending.set_next(pending),
            None => self.end_pending(),
        }
        Ok(())
    }

    /// True when an order that was to go on goes no further because its account was killed. By rules 5 also if that
    /// is let go by now, while what it has open is still to be cancelled; but no FOK that has taken something, which
    /// is executed whole or not at all (contract §3).
    fn ends_by_kill(&self, active: &ActiveOrder) -> bool {
        let is_killed = self.accounts.list[active.account.0 as usize].is_killed;
        if self.rules < 5 {
            return is_killed;
        }
        let is_fok = active.kind.time_in_force == TimeInForce::Fok;
        let has_begun = active.remaining < active.quantity;
        (is_killed || self.pending.has_kill_of(active.account)) && !(is_fok && has_begun)
    }

    /// Takes the pending work that went on and is done away.
    fn end_pending(&mut self) {
        let symbol = self.pending.next().map(Pending::symbol);
        if let Some(symbol) = symbol.and_then(|id| self.symbols.list.get_mut(id.0 as usize)) {
            symbol.has_pending = false;
        }
        self.pending.pop();
    }

    /// What an order leaves to later transactions: its rest if it is not done, else the turns of the
    /// stops that it has triggered.
    fn left_over(&mut self, symbol: SymbolId, unfinished: Option<ActiveOrder>) -> Option<Pending> {
        match unfinished {
            Some(mut active) => {
                if active.may_rest() {
                    active.place = self.keep_place(&active);
                }
                Some(Pending::Order(active))
            }
            None => self.has_triggered(symbol.0 as usize).then_some(Pending::Triggered(symbol)),
        }
    }

    /// What comes behind a sweep: of one symbol that was begun in a halt, and over which the symbol has come to
    /// trade again, the turns of the stops that it has left and that were reached meanwhile.
    fn behind_sweep(&self, sweep: &Sweep) -> Option<Pending> {
        let symbol = sweep.symbol;
        let has_stops = symbol.0 != EVERY && self.has_triggered(symbol.0 as usize);
        has_stops.then_some(Pending::Triggered(symbol))
    }

    /// Leaves what an order's first transaction could not do to later ones.
    #[inline(always)]
    pub(super) fn leave_pending(
        &mut self,
        symbol: SymbolId,
        (active, is_done): (&ActiveOrder, bool),
    ) {
        if (!is_done || self.has_triggered(symbol.0 as usize))
            && let Some(pending) = self.left_over(symbol, (!is_done).then_some(*active))
        {
            self.push_pending(pending);
        }
    }

    /// Adds pending work; the caller has checked that there is room.
    pub(crate) fn push_pending(&mut self, pending: Pending) {
        if let Some(symbol) = self.symbols.list.get_mut(pending.symbol().0 as usize) {
            symbol.has_pending = true;
        }
        self.pending.push(pending);
    }

    /// An order's place among the orders of its account, made if it has none yet.
    #[inline(always)]
    pub(super) fn keep_place(&mut self, active: &ActiveOrder) -> u32 {
        if active.place == NONE {
            self.orders.keep_last_place(active.account, active.placed)
        } else {
            active.place
        }
    }

    /// Lets an order take for as many steps as are left, and ends its taking if it is done. True when
    /// it is.
    #[inline(always)]
    pub(super) fn advance(
        &mut self,
        context: &Context,
        active: &mut ActiveOrder,
        steps: &mut u32,
        outbox: &mut Outbox<'_>,
    ) -> bool {
        self.advance_from(context, active, (steps, false), outbox)
    }

    /// As [`advance`](Self::advance), for an order whose transaction has changed the book already or
    /// has not.
    #[inline(always)]
    pub(super) fn advance_from(
        &mut self,
        context: &Context,
        active: &mut ActiveOrder,
        (steps, mut changed): (&mut u32, bool),
        outbox: &mut Outbox<'_>,
    ) -> bool {
        let at = active.symbol.0 as usize;
        let mut is_spent = false;
        // No stop comes to wait while an order takes.
        let has_stops = !self.symbols.triggers[at].is_empty() && self.lets_stops_fire(at);
        let is_bound = self.is_bound_by_lock(active);
        let taking = loop {
            if has_stops {
                self.collect_triggered(at, steps);
            }
            let last = if is_bound { self.last_within_lock(active) } else { None };
            let (whole, is_last) = (active.aggressor(), last.is_some());
            let aggressor = Aggressor { quantity: last.unwrap_or(whole.quantity), ..whole };
            if is_spent
                || aggressor.quantity.is_zero()
                || !self.symbols.books[at].crosses(aggressor.side, aggressor.limit)
            {
                break Taking::Done;
            }
            if *steps == 0 {
                break Taking::Continues;
            }
            let before = active.remaining;
            let met_own = self.take(context, (active, &aggressor), steps, outbox);
            let has_taken = active.remaining < before;
            changed |= has_taken;
            is_spent = is_last && has_taken;
            if let Some(maker) = met_own {
                let expires = self.prevent(active, maker, steps, outbox);
                changed |= expires.maker;
                if expires.taker {
                    break Taking::Ended;
                }
            }
        };
        let counters = &mut self.symbols.list[at].counters;
        counters.book_update.0 += u64::from(changed);
        if taking == Taking::Continues {
            outbox.push(&OrderContinues {
                order_id: active.order_id,
                symbol: active.symbol,
                remaining: active.remaining,
                book_update_id: counters.book_update,
                ..Default::default()
            });
            return false;
        }
        if taking == Taking::Ended {
            self.end(active, OrderStatus::Expired, outbox);
            return true;
        }
        let saved = self.release_saved(active);
        self.end_taking(active, (changed, saved), outbox);
        true
    }

    /// Releases what a buy has saved by taking below its limit, if its rest goes into the book now: from then
    /// on it locks what that rest needs. Gives how much that was.
    fn release_saved(&mut self, active: &mut ActiveOrder) -> i64 {
        let rests = active.remaining > 0 && active.may_rest();
        // Maybe so little that it cost nothing.
        let has_bought = active.kind.side == Side::Buy && active.remaining < active.quantity;
        if self.rules < 3 || !rests || !has_bought {
            return 0;
        }
        let needed = money::known_quote_rounded_up(active.price.0, active.remaining);
        let saved = active.still_locked() - needed;
        if saved > 0 {
            (active.locked, active.has_own_lock) = (active.locked - saved, true);
            let asset = self.symbols.list[active.symbol.0 as usize].paid_with(active.kind.side);
            self.accounts.release(active.account, asset, saved);
        }
        saved
    }

    /// Lets an order that was just accepted take what it can. Apart from the way of those that find
    /// nothing to take, which is most orders' and which this one's needs would slow down.
    #[inline(never)]
    pub(super) fn begin_taking(
        &mut self,
        context: &Context,
        mut active: ActiveOrder,
        outbox: &mut Outbox<'_>,
    ) {
        if self.is_unfillable(&active) {
            self.finish(&active, 0, outbox);
            return;
        }
        let mut steps = self.limits.max_steps;
        let is_done = self.advance(context, &mut active, &mut steps, outbox);
        self.leave_pending(active.symbol, (&active, is_done));
    }

    /// Puts what an order that finds nothing more to take has open to rest, if it may, and reports how
    /// it stands. `changed`: its taking has changed the book. `saved`: so much of its lock is free already.
    #[inline(always)]
    pub(super) fn end_taking(
        &mut self,
        active: &ActiveOrder,
        (changed, saved): (bool, i64),
        outbox: &mut Outbox<'_>,
    ) {
        if active.remaining > 0 && active.may_rest() {
            self.rest(active);
            // One update per order: one that took first has changed the book already.
            let symbol = &mut self.symbols.list[active.symbol.0 as usize];
            symbol.counters.book_update.0 += u64::from(!changed);
        }
        self.finish(active, saved, outbox);
    }

    /// Lets an order take until a stop is reached or a list touched, which is then ended, or an order of
    /// its own account is met that it may not trade with: gives that one. One that goes as far as its lock
    /// pays takes once.
    fn take(
        &mut self,
        context: &Context,
        (active, aggressor): (&mut ActiveOrder, &Aggressor),
        steps: &mut u32,
        outbox: &mut Outbox<'_>,
    ) -> Option<Handle> {
        let at = active.symbol.0 as usize;
        let is_interrupted = self.is_bound_by_lock(active);
        let is_free = active.prevention_now == SelfTradePrevention::None;
        let own = if is_free { NOBODY } else { active.account };
        let shown_time_ns = self.shown_time(context.time_ns);
        let triggers = &self.symbols.triggers[at];
        let mut settlement = Settlement {
            accounts: &mut self.accounts,
            orders: &mut self.orders,
            symbol: &mut self.symbols.list[at],
            active,
            outbox,
            time_ns: context.time_ns,
            shown_time_ns,
            position: context.position,
            stops: [triggers.best(Side::Sell), triggers.best(Side::Buy)],
            is_interrupted,
            own,
            met_own: None,
            touched_list: None,
            met: NOBODY,
            averages: (self.rules >= 2).then_some(&mut self.symbols.averages),
        };
        let book = &mut self.symbols.books[at];
        (_, *steps) = book.take(&mut self.pools, aggressor, *steps, &mut settlement);
        let Settlement { met_own, touched_list, .. } = settlement;
        if let Some(slot) = touched_list {
            *steps = steps.saturating_sub(LIST_STEPS);
            let book_update = self.symbols.list[at].counters.book_update.0 + 1;
            self.expire_stop_leg(slot, BookUpdateId(book_update), outbox);
        }
        if active.last_fill_price != Price::ZERO {
            self.symbols.list[at].last_price = active.last_fill_price;
        }
        met_own
    }

    /// The time of a transaction as it tells aggregate trades apart.
    #[inline(always)]
    const fn shown_time(&self, time_ns: u64) -> u64 {
        if self.rules < 3 { time_ns } else { time_ns - time_ns % NS_PER_MS }
    }

    /// Puts what an order could not take into the book; says where.
    #[inline(always)]
    pub(super) fn rest(&mut self, active: &ActiveOrder) -> Handle {
        let at = active.symbol.0 as usize;
        let owner = (active.order_id, active.account.0);
        let shown = if active.iceberg > 0 {
            active.iceberg.min(active.remaining)
        } else {
            active.remaining
        };
        let hidden = active.remaining - shown;
        let book = &mut self.symbols.books[at];
        let handle = book.rest(&mut self.pools, active.kind.side, active.price, Qty(shown), owner);
        if hidden > 0 {
            self.pools.change_hidden(handle, 0, hidden);
        }
        let record = OrderRecord {
            quantity: active.quantity,
            executed_quote: active.executed_quote,
            priority: active.priority,
            symbol: active.symbol,
            session: active.placed_by,
            pair: NONE,
            kind: active.kind,
            flags: active.flags(),
            prevention: active.prevention,
        };
        let details = OrderDetails {
            iceberg: active.iceberg,
            hidden,
            order_list_id: active.order_list_id,
            own_lock: active.locked,
            ..Default::default()
        };
        let name = &active.client_order_id;
        self.orders.insert(handle, (active.order_id, active.account), (record, details), name);
        self.orders.give_place(handle, active.account, (active.place, active.placed));
        handle
    }

    /// Reports how an order that is done taking stands, and what it has `saved`; if it has ended, its lock is
    /// released.
    #[inline(always)]
    pub(super) fn finish(&mut self, active: &ActiveOrder, saved: i64, outbox: &mut Outbox<'_>) {
        let status = if active.remaining == 0 && !active.ran_dry {
            OrderStatus::Filled
        } else if !active.may_rest() {
            OrderStatus::Expired
        } else if active.remaining == active.quantity {
            OrderStatus::New
        } else {
            OrderStatus::PartiallyFilled
        };
        if status.is_open() {
            self.report(active, status, saved, outbox);
        } else {
            self.end(active, status, outbox);
        }
    }

    /// Reports how an order ended, and releases its lock.
    #[inline(always)]
    pub(super) fn end(
        &mut self,
        active: &ActiveOrder,
        status: OrderStatus,
        outbox: &mut Outbox<'_>,
    ) {
        let released = active.still_locked();
        let symbol = &self.symbols.list[active.symbol.0 as usize];
        if released > 0 {
            let asset = symbol.paid_with(active.kind.side);
            self.accounts.release(active.account, asset, released);
        }
        if active.place != NONE {
            self.orders.give_place_up(active.account, active.place);
        }
        self.report(active, status, released, outbox);
    }

    /// Reports how an order stands.
    #[inline(always)]
    pub(super) fn report(
        &self,
        active: &ActiveOrder,
        status: OrderStatus,
        released: i64,
        outbox: &mut Outbox<'_>,
    ) {
        let symbol = &self.symbols.list[active.symbol.0 as usize];
        let executed_quantity = active.quantity - active.remaining;
        self.address(active.placed_by, active.account, outbox);
        outbox.push(&OrderResult {
            order_id: active.order_id,
            account: active.account,
            symbol: active.symbol,
            quantity: active.quantity,
            executed_quantity,
            executed_quote: active.executed_quote,
            released,
            book_update_id: symbol.counters.book_update,
            order_list_id: active.order_list_id,
            order_count_0: active.order_counts[0],
            order_count_1: active.order_counts[1],
            status: status.to_wire(),
            ..Default::default()
        });
    }
}
