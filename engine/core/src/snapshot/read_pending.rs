//! Reading pending work.

use super::SnapshotError;
use super::read::Reading;
use super::read_orders::{kind, prevention};
use crate::limits::urgent_sweeps;
use crate::money::{self, AMOUNT_MAX};
use crate::pending::{ActiveOrder, Pending, Sweep, Waiter, Whose};
use crate::pool::{NONE, named};
use touchline_protocol::message::command::EVERY;
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::snapshot::records::{
    self, PendingOrderRecord, PendingRecord, PendingSweepRecord,
};
use touchline_protocol::units::{AccountId, KeyId, OrderListId, Price, SessionId, SymbolId};

type Outcome<E> = Result<(), SnapshotError<E>>;

impl<E> Reading<'_, E> {
    /// The pending work. It comes behind the orders, since it must have something to do.
    pub(super) fn pending(&mut self) -> Outcome<E> {
        let limits = &self.core.limits;
        let most = limits.pending_work + urgent_sweeps(limits);
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
            let (limits, pending) = (&self.core.limits, &self.core.pending);
            let has_room = pending.ordinary() <= limits.pending_work
                && pending.urgent() <= urgent_sweeps(limits);
            self.reader.require(has_room, "more than the limits allow")?;
            self.reader.step();
        }
        self.reader.end()?;
        self.link_places()
    }

    fn pending_order(&mut self, symbol: SymbolId) -> Result<Pending, SnapshotError<E>> {
        let raw: PendingOrderRecord = self.reader.take()?;
        let parts = kind(raw.side, raw.order_type, raw.time_in_force)
            .zip(prevention(raw.self_trade_prevention))
            .zip(SelfTradePrevention::from_wire(raw.prevention_now));
        let parts = parts.ok_or(self.reader.wrong("an enumeration out of range"))?;
        let ((kind, prevention), prevention_now) = parts;
        let core = &self.core;
        let sessions = core.sessions.len();
        let last = core.symbols.list[symbol.0 as usize].counters.order;
        let is_known = core.accounts.get(raw.account).is_some()
            && raw.session.0 <= sessions
            && raw.placed_by.0 <= sessions
            && raw.order_id.0 > 0
            && raw.order_id <= last
            && core.orders.find(&core.pools, symbol, raw.order_id).is_none()
            && (OrderListId::NONE..core.orders.lists.next_id()).contains(&raw.order_list_id)
            && raw.client_order_id.is_valid();
        self.reader.require(is_known, "a reference to nothing")?;
        const FLAGS: u8 = records::PENDING_RAN_DRY | records::PENDING_OWN_LOCK;
        let is_buy = kind.side == Side::Buy;
        let has_own_lock = raw.flags & records::PENDING_OWN_LOCK != 0;
        let in_range = |amount: i64| (0..=AMOUNT_MAX).contains(&amount);
        let is_sound = raw.reserved == [0; 6]
            && raw.flags & !FLAGS == 0
            && (is_buy || !has_own_lock)
            && in_range(raw.locked)
            && (0..=i64::MAX).contains(&raw.executed_quote)
            && (!is_buy || raw.executed_quote <= raw.locked)
            && raw.prevented >= 0
            && raw.prevented < raw.remaining
            && raw.remaining <= raw.quantity
            && (is_buy || raw.remaining <= AMOUNT_MAX)
            && raw.iceberg >= 0
            && raw.last_fill_price >= 0
            && (raw.price > 0) != kind.is_market()
            && (kind.is_market() || pays_for_the_rest(&raw, is_buy))
            && (raw.place != records::NO_PLACE) == kind.may_rest();
        self.reader.require(is_sound, "a field out of range")?;
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
            has_own_lock,
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
        self.add_lock_of_pending(&active)?;
        Ok(Pending::Order(active))
    }

    fn pending_sweep(&mut self, symbol: SymbolId) -> Result<Pending, SnapshotError<E>> {
        let raw: PendingSweepRecord = self.reader.take()?;
        let account = raw.account;
        let is_of_all = raw.whose == records::SWEEP_EVERYBODY;
        let has_detail = matches!(raw.whose, records::SWEEP_SESSION | records::SWEEP_KEY);
        let core = &self.core;
        let is_known = raw.session.0 <= core.sessions.len()
            && raw.reserved == 0
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

/// What a limit order has left of its lock pays for what it has open.
fn pays_for_the_rest(raw: &PendingOrderRecord, is_buy: bool) -> bool {
    let needed = money::quote_rounded_up(raw.price, raw.remaining);
    needed.is_some_and(|needed| !is_buy || raw.locked - raw.executed_quote >= needed)
}
