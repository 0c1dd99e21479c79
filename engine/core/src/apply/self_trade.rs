//! Self-trade prevention: what happens when an order meets one of its own account. Called by taking, and
//! by placement where it must foresee it.
//!
//! Only the aggressor's mode counts, its own or else its account's; without one, or without an order
//! of its account on the other side, everything here costs a comparison. An order whose mode removes the
//! resting order goes on to whatever lies behind it, with all that it has open: a LIMIT order within its limit,
//! a MARKET sell as far as the book goes, a MARKET buy as far as its lock pays. That lock, and the quantity that
//! stands for an amount, are reckoned from the book as it stands, its own account's orders included: which of
//! them it will meet, no total of a price level tells. By rules 2 and 3 a MARKET order of either side did not take
//! elsewhere what it might have taken of them.

use super::ending::LIST_STEPS;
use crate::Core;
use crate::book::{Aggressor, Handle};
use crate::limits::LEVELS_JUDGED_MAX;
use crate::money;
use crate::outbox::Outbox;
use crate::pending::ActiveOrder;
use touchline_protocol::message::enums::{OrderStatus, SelfTradePrevention, Side};
use touchline_protocol::message::event::SelfTradePrevented;
use touchline_protocol::units::{AccountId, BookUpdateId, Qty, SymbolId};

/// Steps that a prevention takes.
pub(crate) const PREVENTION_STEPS: u32 = 2;

/// Which of the two orders that met come to their end.
pub(super) struct Expires {
    pub(super) maker: bool,
    pub(super) taker: bool,
}

impl Core {
    /// What holds for an order of an account that names `named`.
    pub(super) fn prevention(
        &self,
        account: AccountId,
        named: Option<SelfTradePrevention>,
    ) -> SelfTradePrevention {
        named.unwrap_or(self.accounts.list[account.0 as usize].self_trade_prevention)
    }

    /// Keeps an order from trading with one of its own account, which stands in front of it. One that
    /// belongs to an open list ends with its list.
    pub(super) fn prevent(
        &mut self,
        active: &mut ActiveOrder,
        maker: Handle,
        steps: &mut u32,
        outbox: &mut Outbox<'_>,
    ) -> Expires {
        *steps = steps.saturating_sub(PREVENTION_STEPS);
        let mode = active.prevention_now;
        let expires = Expires {
            maker: mode != SelfTradePrevention::ExpireTaker,
            taker: mode != SelfTradePrevention::ExpireMaker,
        };
        let resting = self.pools.order(maker);
        let open = resting.remaining.0 + self.orders.hidden(maker);
        let quantity = active.aggressor().quantity.0.min(open);
        let before = self.symbols.list[active.symbol.0 as usize].counters.book_update;
        self.address(self.orders.record(maker).session, active.account, outbox);
        self.address(active.placed_by, active.account, outbox);
        outbox.push(&SelfTradePrevented {
            maker_order_id: resting.id,
            taker_order_id: active.order_id,
            account: active.account,
            symbol: active.symbol,
            price: resting.price.0,
            quantity,
            mode: mode.to_wire(),
            book_update_id: before,
            ..Default::default()
        });
        if self.rules < 4 && active.kind.is_market() {
            active.prevented += quantity;
        }
        if expires.maker {
            let (status, book_update) = (OrderStatus::Expired, BookUpdateId(before.0 + 1));
            let ended = self.end_with_list(maker, status, book_update, outbox);
            *steps = steps.saturating_sub(ended.lists * LIST_STEPS);
        }
        expires
    }

    /// True for an order that goes on behind those of its own account as far as its lock pays, which was
    /// reckoned with them.
    #[inline(always)]
    pub(crate) fn is_bound_by_lock(&self, active: &ActiveOrder) -> bool {
        active.prevention_now == SelfTradePrevention::ExpireMaker
            && active.kind.is_market()
            && active.kind.side == Side::Buy
            && self.rules >= 4
    }

    /// What an order that is [bound by its lock](Self::is_bound_by_lock) can pay for of the book that it is about to
    /// take from, as many steps of LOT_SIZE as its lock pays for, which is then the last that it takes; `None` while
    /// its lock pays for what it would take of the next order. Looked at anew in front of every order, so that it does
    /// not matter where a transaction ends.
    #[inline(never)]
    pub(super) fn last_within_lock(&self, active: &ActiveOrder) -> Option<Qty> {
        let at = active.symbol.0 as usize;
        let next = self.pools.order(self.symbols.books[at].first(&self.pools, Side::Sell)?);
        let paid_for = money::quantity_paid_for(active.still_locked(), next.price.0);
        if active.aggressor().quantity.min(next.remaining).0 <= paid_for {
            return None;
        }
        let step = self.symbols.list[at].filters.lot_step.max(1);
        Some(Qty(paid_for - paid_for % step))
    }

    /// True when an order may meet one of its own account that it may not trade with.
    fn may_meet_own(
        &self,
        (account, symbol): (AccountId, SymbolId),
        prevention: SelfTradePrevention,
        side: Side,
    ) -> bool {
        prevention != SelfTradePrevention::None
            && self.orders.open_counts(account, symbol).of(side.opposite()) > 0
    }

    /// False when an order surely needs no more than one transaction's steps.
    pub(super) fn may_exceed(
        &self,
        (account, symbol): (AccountId, SymbolId),
        prevention: SelfTradePrevention,
        aggressor: &Aggressor,
    ) -> bool {
        let (book, steps) = (&self.symbols.books[symbol.0 as usize], self.limits.max_steps);
        if !self.may_meet_own((account, symbol), prevention, aggressor.side) {
            return book.may_exceed(&self.pools, aggressor, steps);
        }
        // An order of its own takes steps and fills nothing, so all within the limit may be met.
        let mut orders = 0;
        book.reachable(&self.pools, aggressor.side, aggressor.limit).any(|level| {
            orders += u64::from(level.orders);
            orders > u64::from(steps / PREVENTION_STEPS) || level.hidden > 0
        })
    }

    /// True when the whole of an FOK order can be filled, and not with orders of its own account.
    pub(super) fn covers(&self, active: &ActiveOrder) -> bool {
        let (of, mode) = ((active.account, active.symbol), active.prevention_now);
        if self.may_meet_own(of, mode, active.kind.side) {
            return self.covers_without_own(active);
        }
        let book = &self.symbols.books[active.symbol.0 as usize];
        book.covers(&self.pools, &active.aggressor(), self.levels_judged())
    }

    /// Walks what an FOK order would take, order by order, since no total of a price level tells whose it is: all
    /// that a level shows comes before anything that it hides. It is killed if it would have to look at more orders
    /// than so many: [`LEVELS_JUDGED_MAX`], by rules 2 to 4 one transaction's steps, of which the result depended then.
    fn covers_without_own(&self, active: &ActiveOrder) -> bool {
        let book = &self.symbols.books[active.symbol.0 as usize];
        let aggressor = active.aggressor();
        let most = if self.rules < 5 { self.limits.max_steps } else { LEVELS_JUDGED_MAX };
        let wide = |value: i64| u128::from(value.cast_unsigned());
        let mut missing = wide(aggressor.quantity.0);
        let (mut price, mut hidden) = (None, 0);
        for (seen, order) in (0..).zip(book.orders(&self.pools, aggressor.side.opposite())) {
            if price != Some(order.price) {
                missing = missing.saturating_sub(hidden);
                (price, hidden) = (Some(order.price), 0);
            }
            if missing == 0 || !aggressor.reaches(order.price) {
                break;
            }
            if seen == most {
                return false;
            }
            if order.owner != active.account.0 {
                missing = missing.saturating_sub(wide(order.remaining.0));
                hidden += wide(self.orders.hidden(order.handle));
            } else if active.prevention_now != SelfTradePrevention::ExpireMaker {
                return false;
            }
        }
        missing <= hidden
    }
}
