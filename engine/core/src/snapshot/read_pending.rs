//! Reading pending work.

use super::SnapshotError;
use super::read::Reading;
use super::read_orders::{kind, prevention};
use crate::Core;
use crate::filters::OrderKind;
use crate::limits::{pending_entries, urgent_sweeps};
use crate::money::{self, AMOUNT_MAX};
use crate::pending::{ActiveOrder, Pending, Sweep, Waiter, Whose};
use crate::pool::{NONE, named};
use touchline_protocol::message::command::EVERY;
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::snapshot::records::{
    self, PendingOrderRecord, PendingRecord, PendingSweepRecord,
};
use touchline_protocol::units::{
    AccountId, Amount, KeyId, OrderListId, Price, Qty, SessionId, SymbolId, UNITS_PER_WHOLE,
    notional,
};

type Outcome<E> = Result<(), SnapshotError<E>>;

impl<E> Reading<'_, E> {
    /// The pending work. It comes behind the orders, since it must have something to do.
    pub(super) fn pending(&mut self) -> Outcome<E> {
        let most = pending_entries(&self.core.limits);
        for _ in 0..self.reader.begin(records::PENDING, most.into())? {
            let PendingRecord { kind, symbol } = self.reader.take()?;
            let known = self.core.symbols.get(symbol);
            let is_free = known.is_some_and(|symbol| !symbol.has_pending);
            let is_of_every = kind == records::PENDING_SWEEP && symbol.0 == EVERY;
            self.reader.require(is_free || is_of_every, "of no symbol, or a second one of it")?;
            let pending = match kind {
                records::PENDING_ORDER => self.pending_order(symbol)?,
                // An urgent sweep may have ended all stops that were to run.
                records::PENDING_REACHED => Pending::Triggered(symbol),
                records::PENDING_SWEEP => self.pending_sweep(symbol)?,
                _ => return Err(self.reader.wrong("of no known kind")),
            };
            self.core.push_pending(pending);
            let (core, pending) = (&self.core, &self.core.pending);
            let has_room = pending.ordinary() <= core.most_ordinary_work()
                && pending.urgent() <= urgent_sweeps(&core.limits);
            self.reader.require(has_room, "more than the limits allow")?;
            self.reader.step();
        }
        self.reader.end()?;
        let core = &self.core;
        let have_turn = (0..).zip(&core.symbols.list).all(|(at, symbol)| {
            // Else the next order of the symbol would leave work for which no room was asked.
            symbol.has_pending || !core.has_triggered(at)
        });
        self.reader.require(have_turn, "stops that were reached and will have no turn")?;
        self.link_places()
    }

    fn pending_order(&mut self, symbol: SymbolId) -> Result<Pending, SnapshotError<E>> {
        let raw: PendingOrderRecord = self.reader.take()?;
        let parts = kind(raw.side, raw.order_type, raw.time_in_force)
            .zip(prevention(raw.self_trade_prevention))
            .zip(SelfTradePrevention::from_wire(raw.prevention_now));
        let parts = parts.ok_or(self.reader.wrong("an enumeration out of range"))?;
        let ((kind, prevention), prevention_now) = parts;
        self.check_pending_order(symbol, &raw, kind)?;
        let active = ActiveOrder {
            order_id: raw.order_id,
            account: raw.account,
            symbol,
            kind,
            price: Price(raw.price),
            quantity: raw.quantity,
            remaining: raw.remaining,
            executed_quote: raw.executed_quote,
            // It matters to orders that wait alone.
            stop_price: Price::ZERO,
            locked: raw.locked,
            has_own_lock: raw.flags & records::PENDING_OWN_LOCK != 0,
            iceberg: raw.iceberg,
            order_list_id: raw.order_list_id,
            ran_dry: raw.flags & records::PENDING_RAN_DRY != 0,
            prevention,
            prevention_now,
            prevented: raw.prevented,
            priority: raw.priority,
            placed: raw.placed,
            place: self.place_of_pending(raw.place, raw.account)?,
            last_fill_price: Price(raw.last_fill_price),
            last_fill_time_ns: raw.last_fill_time_ns,
            order_counts: [raw.order_count_0, raw.order_count_1],
            placed_by: raw.placed_by,
            session: raw.session,
            epoch: raw.epoch,
            correlation: raw.correlation,
            sequence: raw.sequence,
            client_order_id: raw.client_order_id,
        };
        let aggressor = active.aggressor();
        let book = &self.core.symbols.books[symbol.0 as usize];
        let crosses = book.crosses(aggressor.side, aggressor.limit);
        self.reader.require(crosses, "nothing to continue")?;
        self.reader.require(self.core.stays_in_range(&active), "more to pay than there is")?;
        self.add_lock_of_pending(&active)?;
        Ok(Pending::Order(active))
    }

    /// What can be said of an order before it is put together: what it names, and its fields by themselves.
    fn check_pending_order(
        &self,
        symbol: SymbolId,
        raw: &PendingOrderRecord,
        kind: OrderKind,
    ) -> Outcome<E> {
        let core = &self.core;
        let sessions = core.sessions.len();
        let last = core.symbols.list[symbol.0 as usize].counters.order;
        let name = &raw.client_order_id;
        let namesake = core.orders.find_by_client_order_id(&core.pools, raw.account, symbol, name);
        let is_known = core.accounts.get(raw.account).is_some()
            && raw.session.0 <= sessions
            && raw.placed_by.0 <= sessions
            && raw.order_id.0 > 0
            && raw.order_id <= last
            && core.orders.find(&core.pools, symbol, raw.order_id).is_none()
            && namesake.is_none()
            && (OrderListId::NONE..core.orders.lists.next_id()).contains(&raw.order_list_id)
            && raw.client_order_id.is_valid();
        self.reader.require(is_known, "a reference to nothing")?;
        self.reader.require(is_sound(raw, kind), "a field out of range")
    }

    fn pending_sweep(&mut self, symbol: SymbolId) -> Result<Pending, SnapshotError<E>> {
        let raw: PendingSweepRecord = self.reader.take()?;
        let account = raw.account;
        let is_of_all = raw.whose == records::SWEEP_EVERYBODY;
        let has_detail = matches!(raw.whose, records::SWEEP_SESSION | records::SWEEP_KEY);
        let core = &self.core;
        let is_known = raw.session.0 <= core.sessions.len()
            && raw.reserved == 0
            // It has ended no more than were ever open at once.
            && [raw.orders, raw.lists].iter().all(|&ended| ended <= u32::MAX.into())
            && (has_detail || raw.detail == 0)
            && if is_of_all {
                account.0 == EVERY && symbol.0 != EVERY && raw.place == records::NO_PLACE
            } else {
                core.accounts.get(account).is_some()
            };
        self.reader.require(is_known, "a field out of range, or a reference to nothing")?;
        let whose = match raw.whose {
            records::SWEEP_EVERYBODY => Some(Whose::Everybody),
            records::SWEEP_ACCOUNT => Some(Whose::Account(account)),
            records::SWEEP_SESSION => {
                let session = u32::try_from(raw.detail).ok().map(SessionId);
                // The engine's own commands, which no session sends, have the number in front of all.
                let session = session.filter(|session| session.0 <= core.sessions.len());
                session.map(|session| Whose::Session(account, session))
            }
            records::SWEEP_KEY => {
                let key = core.keys.get(KeyId(raw.detail));
                key.map(|_| Whose::Key(account, KeyId(raw.detail)))
            }
            records::SWEEP_KILLED => Some(Whose::Killed(account)),
            _ => None,
        };
        let whose = whose.ok_or(self.reader.wrong("about nobody's orders"))?;
        let is_of_every = symbol.0 == EVERY;
        self.reader.require(is_of_every || !whose.is_urgent(), "urgent, and of one symbol only")?;
        let is_settled = is_of_every || self.core.is_settled_for_sweep(symbol);
        self.reader.require(is_settled, "a sweep in front of stops that were reached")?;
        Ok(Pending::Sweep(Sweep {
            whose,
            symbol,
            position: raw.position,
            place: self.place_of_pending(raw.place, account)?,
            orders: raw.orders,
            lists: raw.lists,
            waiter: Waiter {
                session: raw.session,
                epoch: raw.epoch,
                correlation: raw.correlation,
                sequence: raw.sequence,
            },
        }))
    }

    /// The node of the place that pending work keeps, if it keeps one.
    fn place_of_pending(
        &mut self,
        number: u32,
        account: AccountId,
    ) -> Result<u32, SnapshotError<E>> {
        let Some(number) = named(number) else { return Ok(NONE) };
        let kept = self.core.orders.loose_place();
        let taken = kept.and_then(|kept| self.take_place(number, account, kept).map(|()| kept));
        taken.ok_or(self.reader.wrong("a place of nobody, or of another"))
    }
}

/// Everything but what it refers to, and what is in the book.
fn is_sound(raw: &PendingOrderRecord, kind: OrderKind) -> bool {
    const FLAGS: u8 = records::PENDING_RAN_DRY | records::PENDING_OWN_LOCK;
    let (is_buy, is_market) = (kind.side == Side::Buy, kind.is_market());
    raw.reserved == [0; 6]
        && raw.flags & !FLAGS == 0
        && (is_buy || raw.flags & records::PENDING_OWN_LOCK == 0)
        && (0..=AMOUNT_MAX).contains(&raw.locked)
        && (0..=i64::MAX).contains(&raw.executed_quote)
        && (!is_buy || raw.executed_quote <= raw.locked)
        && raw.prevented >= 0
        && (raw.prevented == 0 || is_market)
        && raw.prevented < raw.remaining
        && raw.remaining <= raw.quantity
        && (is_buy || raw.remaining <= AMOUNT_MAX)
        && raw.iceberg >= 0
        && raw.last_fill_price >= 0
        && (raw.price > 0) != is_market
        && (is_market || locks_what_it_asks_for(raw, is_buy))
        && (raw.place != records::NO_PLACE) == kind.may_rest()
}

/// A limit order locks what its price and quantity ask for, but for one that was changed, and in any case
/// enough for what it has open.
fn locks_what_it_asks_for(raw: &PendingOrderRecord, is_buy: bool) -> bool {
    let worth = |quantity: i64| money::quote_rounded_up(raw.price, quantity);
    let has_own_lock = raw.flags & records::PENDING_OWN_LOCK != 0;
    worth(raw.remaining).is_some_and(|needed| {
        !is_buy
            || raw.locked - raw.executed_quote >= needed
                && (has_own_lock || worth(raw.quantity) == Some(raw.locked))
    })
}

impl Core {
    /// True when what an order still takes does not bring what it pays beyond what it has locked, nor what
    /// it is paid beyond what an amount can be: see [`ActiveOrder`].
    fn stays_in_range(&self, active: &ActiveOrder) -> bool {
        let book = &self.symbols.books[active.symbol.0 as usize];
        let (aggressor, is_market) = (active.aggressor(), active.kind.is_market());
        if active.kind.side == Side::Buy {
            let left = Amount(active.still_locked());
            return !is_market
                || self.is_bound_by_lock(active)
                || self.market_lock(book, &aggressor, (left, u32::MAX)).is_ok();
        }
        let rest = if is_market { 0 } else { notional(active.price, Qty(active.remaining)) };
        let mut most = (i128::from(i64::MAX) - i128::from(active.executed_quote))
            * i128::from(UNITS_PER_WHOLE)
            - rest;
        let mut open = aggressor.quantity.0;
        for level in book.reachable(&self.pools, aggressor.side, aggressor.limit) {
            let there = i64::try_from(level.quantity + level.hidden).unwrap_or(i64::MAX).min(open);
            most -= notional(level.price, Qty(there));
            open -= there;
            if open == 0 || most < 0 {
                break;
            }
        }
        most >= 0
    }
}
