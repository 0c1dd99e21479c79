//! Stops: waiting for a trade at their stop price, being triggered by it, and taking their turn
//! (facts §5.3). Called by placement, and by the pending work.
//!
//! Waiting stops stand in a book of their own per symbol, by stop price: those that fire at a price or
//! above it as its sells, those that fire at a price or below it as its buys. After every trade,
//! and before anything else happens on the symbol, the stops that its price reaches are moved into a
//! heap, by trade and by placement; when the aggressor is done they run one by one in that order, as
//! pending work. Moving one is a step of the transaction's `max_steps`, running one is two. The stop leg
//! of a list ends its limit leg first, and has that one's lock from then on; while it waits for its turn
//! the limit leg may be touched, and then it never runs.
//!
//! By rules 5 none is moved while the symbol is not TRADING: what an order that was under way, or stops that had
//! been moved, still trade behind a halt sets nothing off. Those that the last price reaches when the symbol trades
//! again are moved then.

use super::Context;
use super::ending::LIST_STEPS;
use crate::Core;
use crate::book::{Handle, RestingView, SymbolBook};
use crate::filters::{self, OrderKind};
use crate::money;
use crate::orders::{IS_WAITING, OrderDetails, OrderRecord};
use crate::outbox::Outbox;
use crate::pending::ActiveOrder;
use crate::pool::NONE;
use crate::symbols::Symbol;
use touchline_protocol::message::enums::{Side, SymbolStatus, TimeInForce};
use touchline_protocol::message::event::{OrderContinues, OrderTriggered};
use touchline_protocol::units::{AccountId, Amount, Epoch, Price, Qty, Sequence, SymbolId};

/// Steps that running a triggered order takes, besides its makers.
pub(crate) const RUN_STEPS: u32 = 2;

/// The side of the trigger book that a stop waits on.
pub(super) const fn trigger_side(kind: OrderKind) -> Side {
    if kind.fires_upwards() { Side::Sell } else { Side::Buy }
}

/// True of a triggered stop for which so much of the book may be looked at in vain that nothing comes behind it in
/// its transaction: FOK by rules 5, a MARKET buy by rules 6.
const fn ends_in_vain(rules: u32, kind: OrderKind) -> bool {
    rules >= 5 && matches!(kind.time_in_force, TimeInForce::Fok)
        || rules >= 6 && kind.is_market() && matches!(kind.side, Side::Buy)
}

/// True when stops of a symbol that is TRADING have been triggered and have not had their turn.
#[inline(always)]
pub(super) fn has_triggered(symbol: &Symbol, triggers: &SymbolBook) -> bool {
    symbol.fired != NONE || !triggers.is_empty() && reached(symbol, triggers).is_some()
}

/// The side of the trigger book whose best stop the last trade reaches.
#[inline(always)]
fn reached(symbol: &Symbol, triggers: &SymbolBook) -> Option<Side> {
    let last = symbol.last_price;
    if last == Price::ZERO {
        None
    } else if triggers.crosses(Side::Buy, last) {
        Some(Side::Sell)
    } else {
        triggers.crosses(Side::Sell, last).then_some(Side::Buy)
    }
}

impl Core {
    /// Lets an accepted stop wait; says where.
    pub(super) fn wait(&mut self, active: &ActiveOrder) -> Handle {
        let at = active.symbol.0 as usize;
        let owner = (active.order_id, active.account.0);
        let (side, price) = (trigger_side(active.kind), active.stop_price);
        let triggers = &mut self.symbols.triggers[at];
        let handle = triggers.rest(&mut self.pools, side, price, Qty(active.remaining), owner);
        let record = OrderRecord {
            quantity: active.quantity,
            executed_quote: 0,
            priority: active.priority,
            symbol: active.symbol,
            session: active.placed_by,
            pair: NONE,
            kind: active.kind,
            flags: IS_WAITING | active.flags(),
            prevention: active.prevention,
        };
        let details = OrderDetails {
            iceberg: active.iceberg,
            hidden: 0,
            stop_price: price.0,
            limit_price: active.price.0,
            order_list_id: active.order_list_id,
            ..Default::default()
        };
        let name = &active.client_order_id;
        self.orders.insert(handle, (active.order_id, active.account), (record, details), name);
        self.orders.give_place(handle, active.account, (active.place, active.placed));
        handle
    }

    /// As [`has_triggered`], of a symbol by its number, whatever its status.
    #[inline(always)]
    pub(crate) fn has_triggered(&self, at: usize) -> bool {
        let symbol = &self.symbols.list[at];
        has_triggered(symbol, &self.symbols.triggers[at])
            && (symbol.fired != NONE || self.lets_stops_fire(at))
    }

    /// True while trades of a symbol trigger stops.
    #[inline(always)]
    pub(super) fn lets_stops_fire(&self, at: usize) -> bool {
        self.rules < 5 || self.symbols.list[at].status == SymbolStatus::Trading
    }

    /// Moves the stops that the last trade reaches to those that wait for their turn.
    #[inline(always)]
    pub(super) fn collect_triggered(&mut self, at: usize, steps: &mut u32) {
        while *steps > 0
            && let Some(side) = reached(&self.symbols.list[at], &self.symbols.triggers[at])
        {
            *steps -= 1;
            let symbol = &mut self.symbols.list[at];
            let triggers = &mut self.symbols.triggers[at];
            let handle = triggers.detach_first(&mut self.pools, side);
            self.orders.details_mut(handle).fired_by = symbol.counters.trade.0;
            let fired_by = |at| self.orders.details(Handle(at)).fired_by;
            symbol.fired = self.pools.push_fired(symbol.fired, handle.0, &fired_by);
        }
    }

    /// Runs triggered stops of a symbol, as many as the steps allow; gives the one that has to go on
    /// in a later transaction.
    pub(super) fn run_triggered(
        &mut self,
        context: &Context,
        symbol: SymbolId,
        steps: &mut u32,
        outbox: &mut Outbox<'_>,
    ) -> Option<ActiveOrder> {
        let at = symbol.0 as usize;
        let lets_more_fire = self.lets_stops_fire(at);
        loop {
            if lets_more_fire {
                self.collect_triggered(at, steps);
            }
            let first = self.symbols.list[at].fired;
            if *steps == 0 || first == NONE {
                break;
            }
            *steps = steps.saturating_sub(RUN_STEPS);
            let fired_by = |at| self.orders.details(Handle(at)).fired_by;
            self.symbols.list[at].fired = self.pools.pop_fired(first, &fired_by);
            let list = self.orders.list_of(Handle(first));
            let order = self.orders.view(&self.pools, Handle(first));
            let mut active = self.activate(context, symbol, &order);
            if let Some(slot) = list {
                *steps = steps.saturating_sub(LIST_STEPS);
                let counters = &mut self.symbols.list[at].counters;
                counters.book_update.0 += 1;
                let book_update_id = counters.book_update;
                active.locked += self.expire_limit_leg(slot, book_update_id, outbox);
            }
            let may_take = self.enter(&mut active, outbox) && !self.is_unfillable(&active);
            if !may_take {
                self.finish(&active, 0, outbox);
            } else if !self.advance(context, &mut active, steps, outbox) {
                return Some(active);
            }
            // One that meets an order of its own account may have taken nothing of all that its lock was reckoned from.
            let is_expired = !may_take || self.rules >= 7 && active.remaining > 0;
            if is_expired && ends_in_vain(self.rules, active.kind) {
                *steps = 0;
            }
        }
        if outbox.is_empty() {
            outbox.push(&OrderContinues {
                symbol,
                book_update_id: self.symbols.list[at].counters.book_update,
                ..Default::default()
            });
        }
        None
    }

    /// Makes of a waiting stop an order that is about to take.
    fn activate(&mut self, context: &Context, symbol: SymbolId, view: &RestingView) -> ActiveOrder {
        let handle = view.handle;
        let record = *self.orders.record(handle);
        let details = *self.orders.details(handle);
        let mut active = ActiveOrder {
            order_id: view.id,
            account: AccountId(view.owner),
            symbol,
            kind: record.kind,
            price: Price(details.limit_price),
            stop_price: Price(details.stop_price),
            quantity: record.quantity,
            remaining: view.remaining.0,
            executed_quote: 0,
            locked: self.orders.locked(view),
            has_own_lock: false,
            iceberg: details.iceberg,
            order_list_id: self.orders.order_list_id(handle),
            ran_dry: false,
            prevention: record.prevention,
            prevention_now: self.prevention(AccountId(view.owner), record.prevention),
            prevented: 0,
            priority: context.position,
            placed: self.orders.placed(handle),
            place: NONE,
            last_fill_price: Price::ZERO,
            last_fill_time_ns: 0,
            order_counts: [0; 2],
            placed_by: record.session,
            session: record.session,
            epoch: Epoch(0),
            correlation: 0,
            sequence: Sequence(0),
            client_order_id: *self.orders.client_order_id(handle),
        };
        if active.may_rest() {
            active.place = self.orders.suspend(handle, active.account);
        } else {
            self.orders.remove(handle, active.account);
        }
        self.pools.release(handle);
        active
    }

    /// Reports a triggered order, with what it locks from now on in place of what it had locked while
    /// it waited. False when it may not take: it fails a filter or its owner cannot pay for it.
    fn enter(&mut self, active: &mut ActiveOrder, outbox: &mut Outbox<'_>) -> bool {
        let needed = self.needed_when_triggered(active);
        let asset = self.symbols.list[active.symbol.0 as usize].paid_with(active.kind.side);
        let more = needed.map_or(0, |needed| needed - active.locked);
        self.accounts.lock(active.account, asset, more);
        active.locked += more;
        self.address(active.placed_by, active.account, outbox);
        outbox.push(&OrderTriggered {
            order_id: active.order_id,
            account: active.account,
            symbol: active.symbol,
            locked: more,
            book_update_id: self.symbols.list[active.symbol.0 as usize].counters.book_update,
            ..Default::default()
        });
        needed.is_some()
    }

    /// What a triggered order needs to lock, which for one of a list may be less than both its orders
    /// did. The kinds that become MARKET obey MARKET_LOT_SIZE only now, and such a buy needs what the
    /// book asks for, of which a lock at its stop price may be too little (facts §4, §6).
    fn needed_when_triggered(&self, active: &ActiveOrder) -> Option<i64> {
        let at = active.symbol.0 as usize;
        let symbol = &self.symbols.list[at];
        if active.kind.is_market() {
            filters::check_market_lot(&symbol.filters, active.remaining).ok()?;
        }
        if active.kind.side == Side::Sell {
            return Some(active.remaining);
        }
        if !active.kind.is_market() {
            return money::quote_rounded_up(active.price.0, active.remaining);
        }
        let free = self.accounts.balance(active.account, symbol.quote).free;
        let most = (Amount(free.0 + active.locked), self.levels_judged());
        self.market_lock(&self.symbols.books[at], &active.aggressor(), most).ok()
    }

    /// True for an FOK order that the book cannot fill.
    #[inline(always)]
    pub(super) fn is_unfillable(&self, active: &ActiveOrder) -> bool {
        active.kind.time_in_force == TimeInForce::Fok && !self.covers(active)
    }
}
