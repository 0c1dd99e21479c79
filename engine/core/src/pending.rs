//! What one transaction does not finish: accepted orders that are not done taking, triggered stops that
//! wait for their turn, sweeps over many orders; and the queue of them. Called by placement, by sweeps
//! and by `RunPending`.

mod active;
mod sweep;

pub(crate) use active::ActiveOrder;
pub(crate) use sweep::{Sweep, Waiter, Whose};

use crate::hash::StateHash;
use crate::pool::NONE;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::message::command::EVERY;
use touchline_protocol::units::{AccountId, SymbolId};

/// What is to be done before anything else is, on a symbol or on all.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    /// An order goes on.
    Order(ActiveOrder),
    /// The triggered stops of a symbol have their turn.
    Triggered(SymbolId),
    /// A sweep begins or goes on.
    Sweep(Sweep),
}

impl Pending {
    /// The symbol, or [`EVERY`].
    pub(crate) const fn symbol(&self) -> SymbolId {
        match self {
            Self::Order(ActiveOrder { symbol, .. })
            | Self::Triggered(symbol)
            | Self::Sweep(Sweep { symbol, .. }) => *symbol,
        }
    }

    /// Who waits for its terminal reply.
    pub(crate) const fn waiter(&self) -> Waiter {
        match self {
            Self::Order(order) => Waiter {
                session: order.session,
                epoch: order.epoch,
                correlation: order.correlation,
                sequence: order.sequence,
            },
            Self::Triggered(_) => Waiter::NOBODY,
            Self::Sweep(sweep) => sweep.waiter,
        }
    }

    /// Its place among the orders of an account, if it keeps one.
    pub(crate) const fn place(&self) -> u32 {
        match self {
            Self::Order(order) => order.place,
            Self::Triggered(_) => NONE,
            Self::Sweep(sweep) => sweep.place,
        }
    }

    const fn may_rest(&self) -> bool {
        matches!(self, Self::Order(order) if order.may_rest())
    }

    const fn is_of_every_symbol(&self) -> bool {
        self.symbol().0 == EVERY
    }

    const fn is_urgent(&self) -> bool {
        matches!(self, Self::Sweep(sweep) if sweep.whose.is_urgent())
    }

    fn hash(&self, rules: u32, hash: &mut StateHash) {
        match self {
            Self::Order(order) => order.hash(rules, hash),
            Self::Triggered(symbol) => hash.pair(u32::MAX, symbol.0),
            Self::Sweep(sweep) => sweep.hash(hash),
        }
    }
}

/// At most one entry of each symbol, and any number of those that are about all symbols. First in,
/// first out; but while the sweep of a killed account or a revoked key is among them, the orders come
/// first that are taking already (what they pay and whether they may take at all was judged by the book
/// as it stood), then those sweeps, then the rest. Urgent sweeps have room of their own, so that no
/// client's work can keep an operator's command out, and so has each symbol the turn of its stops when a halt of it
/// ends. That one counts in the limit while it waits, so that for this time there may be as many entries above the
/// limit as there are symbols.
///
/// Room for what rests in the end. Let `L` be the occupied price levels, those of waiting stops
/// included, `S` the waiting stops that may rest one day, and `R` the queued orders that may rest.
/// Whatever takes a level more, an order that rests at once, a stop that begins to wait (which takes one
/// in `S` too if it may rest), a list, or any of them in the place of an order that leaves, is accepted
/// only while `L + S + R` stays within the limit. From then on nothing needs room that it does not have:
///
/// * An order that crosses (LIMIT or iceberg, new or replaced) has none reserved. Before it rests it has
///   emptied every level that it reaches, by trades or by prevention, so one at the least; when it is
///   queued before that, the level that it will empty is still counted in `L`, and it counts in `R`
///   besides: then `L + S + R` may be above the limit, by one for each such order.
/// * A stop leaves `S` at its turn. It rests in the level kept for it, or takes first and is queued, and
///   then counts in `R` instead. Until its turn its order is counted where it waits.
/// * LIMIT_MAKER never crosses. IOC, FOK and MARKET never rest. A slice that an iceberg shows next stays
///   on its level; a limit leg that lives on, and an order that is reduced, stay where they are.
///
/// So whenever an order rests, `L` is below the limit. The same holds for orders: one that crosses has
/// filled or removed one at the least before it rests, and a stop is an order all the while.
#[derive(Debug)]
pub(crate) struct PendingQueue {
    /// A ring: `length` entries from `head` on.
    ring: Vec<Pending>,
    head: usize,
    length: usize,
    /// Entries that may rest: each keeps one open order and one price level free.
    may_rest: u32,
    /// Entries that are about all symbols.
    of_every_symbol: u32,
    /// Sweeps of killed accounts and revoked keys.
    urgent: u32,
}

impl PendingQueue {
    pub(crate) const fn new() -> Self {
        Self { ring: Vec::new(), head: 0, length: 0, may_rest: 0, of_every_symbol: 0, urgent: 0 }
    }

    /// Makes room for so many entries, urgent ones included.
    pub(crate) fn try_grow(&mut self, capacity: u32) -> Result<(), TryReserveError> {
        let capacity = capacity as usize;
        if capacity > self.ring.len() {
            self.ring.try_reserve_exact(capacity - self.ring.len())?;
            self.ring.rotate_left(self.head);
            self.head = 0;
            self.ring.resize(capacity, Pending::Triggered(SymbolId(0)));
        }
        Ok(())
    }

    /// All entries.
    pub(crate) const fn len(&self) -> u32 {
        self.length as u32
    }

    /// Entries that the limit on pending work counts.
    pub(crate) const fn ordinary(&self) -> u32 {
        self.len() - self.urgent
    }

    /// Sweeps of killed accounts and revoked keys.
    pub(crate) const fn urgent(&self) -> u32 {
        self.urgent
    }

    /// True while what a killed account has open is still being cancelled.
    pub(crate) fn has_kill_of(&self, account: AccountId) -> bool {
        let is_it = |pending: &Pending| matches!(pending, Pending::Sweep(sweep) if sweep.whose == Whose::Killed(account));
        self.urgent > 0 && self.iter().any(is_it)
    }

    /// Orders of an account that are taking and may rest in the end: open, and in no book yet.
    pub(crate) fn may_rest_of(&self, account: AccountId) -> u32 {
        if self.may_rest == 0 {
            return 0;
        }
        let is_its = |pending: &&Pending| matches!(pending, Pending::Order(order) if order.account == account && order.may_rest());
        self.iter().filter(is_its).count() as u32
    }

    /// Orders, and likewise price levels, that must stay free for entries that may rest.
    pub(crate) const fn reserved(&self) -> u32 {
        self.may_rest
    }

    /// The entries, first in first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pending> {
        (0..self.length).map(|offset| &self.ring[self.slot(offset)])
    }

    const fn slot(&self, offset: usize) -> usize {
        (self.head + offset) % self.ring.len()
    }

    /// Which entry goes on next, counted from the first.
    fn turn(&self) -> usize {
        if self.urgent == 0 {
            return 0;
        }
        let is_taking = |pending: &Pending| matches!(pending, Pending::Order(_));
        let first = |is: &dyn Fn(&Pending) -> bool| self.iter().position(is);
        first(&is_taking).or_else(|| first(&Pending::is_urgent)).expect("one is urgent")
    }

    /// The entry that goes on next.
    pub(crate) fn next(&self) -> Option<&Pending> {
        (self.length > 0).then(|| &self.ring[self.slot(self.turn())])
    }

    /// Replaces the entry that went on by its later self, which is about the same symbol.
    pub(crate) fn set_next(&mut self, pending: Pending) {
        let slot = self.slot(self.turn());
        let entry = &mut self.ring[slot];
        self.may_rest -= u32::from(entry.may_rest());
        *entry = pending;
        self.may_rest += u32::from(entry.may_rest());
    }

    /// Removes the entry that went on.
    pub(crate) fn pop(&mut self) {
        let turn = self.turn();
        let entry = &self.ring[self.slot(turn)];
        self.may_rest -= u32::from(entry.may_rest());
        self.of_every_symbol -= u32::from(entry.is_of_every_symbol());
        self.urgent -= u32::from(entry.is_urgent());
        for offset in (0..turn).rev() {
            let (from, to) = (self.slot(offset), self.slot(offset + 1));
            self.ring[to] = self.ring[from];
        }
        self.head = self.slot(1);
        self.length -= 1;
    }

    /// Adds an entry; the caller has checked the limit.
    pub(crate) fn push(&mut self, pending: Pending) {
        assert!(self.length < self.ring.len(), "room is checked before a command is accepted");
        let at = self.slot(self.length);
        self.may_rest += u32::from(pending.may_rest());
        self.of_every_symbol += u32::from(pending.is_of_every_symbol());
        self.urgent += u32::from(pending.is_urgent());
        self.ring[at] = pending;
        self.length += 1;
    }

    /// True while an entry is about all symbols.
    pub(crate) const fn is_of_every_symbol(&self) -> bool {
        self.of_every_symbol > 0
    }

    pub(crate) fn hash(&self, rules: u32, hash: &mut StateHash) {
        hash.word(self.length as u64);
        self.iter().for_each(|pending| pending.hash(rules, hash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_protocol::units::{KeyId, OrderId, Position};

    #[test]
    fn growth_keeps_the_order_of_a_wrapped_ring() {
        let entry =
            |id| Pending::Order(ActiveOrder { order_id: OrderId(id), ..ActiveOrder::VACANT });
        let id = |pending: &Pending| match pending {
            Pending::Order(order) => order.order_id.0,
            _ => panic!("{pending:?}"),
        };
        let mut queue = PendingQueue::new();
        queue.try_grow(3).unwrap();
        (1..=3).for_each(|id| queue.push(entry(id)));
        queue.pop();
        queue.pop();
        queue.push(entry(4));
        queue.push(entry(5));
        queue.try_grow(5).unwrap();
        queue.push(entry(6));
        let ids: [u64; 4] = core::array::from_fn(|n| id(queue.iter().nth(n).unwrap()));
        assert_eq!(ids, [3, 4, 5, 6]);
        assert_eq!((queue.len(), queue.reserved()), (4, 4));
        assert_eq!(id(queue.next().unwrap()), 3);
    }

    #[test]
    fn urgent_sweeps_go_in_front_of_all_but_orders_that_are_taking() {
        let order = |id, symbol| {
            let order = ActiveOrder { order_id: OrderId(id), ..ActiveOrder::VACANT };
            Pending::Order(ActiveOrder { symbol: SymbolId(symbol), ..order })
        };
        let sweep = |whose, position| {
            let position = Position(position);
            Pending::Sweep(Sweep::new(whose, SymbolId(EVERY), position, Waiter::NOBODY))
        };
        let (killed, key) = (Whose::Killed(AccountId(7)), Whose::Key(AccountId(8), KeyId(9)));
        let mut queue = PendingQueue::new();
        queue.try_grow(6).unwrap();
        // The ring is wrapped.
        (0..4).for_each(|_| queue.push(Pending::Triggered(SymbolId(0))));
        (0..4).for_each(|_| queue.pop());
        queue.push(Pending::Triggered(SymbolId(1)));
        queue.push(order(1, 2));
        queue.push(sweep(Whose::Account(AccountId(7)), 1));
        assert!(!queue.has_kill_of(AccountId(7)));
        queue.push(sweep(killed, 2));
        queue.push(sweep(key, 3));
        queue.push(order(2, 3));
        assert_eq!((queue.len(), queue.ordinary(), queue.urgent()), (6, 4, 2));
        assert!(queue.has_kill_of(AccountId(7)) && !queue.has_kill_of(AccountId(8)));
        // The first order leaves stops that it has triggered, and they wait like the others.
        assert!(matches!(queue.next(), Some(Pending::Order(order)) if order.order_id.0 == 1));
        queue.set_next(Pending::Triggered(SymbolId(2)));
        let mut turns = Vec::new();
        while let Some(next) = queue.next() {
            turns.push(match next {
                Pending::Triggered(symbol) => symbol.0,
                Pending::Order(order) => 100 + order.order_id.0 as u32,
                Pending::Sweep(sweep) => 200 + sweep.position.0 as u32,
            });
            queue.pop();
        }
        assert_eq!(turns, [102, 202, 203, 1, 2, 201]);
        assert_eq!((queue.len(), queue.urgent(), queue.reserved()), (0, 0, 0));
        assert!(!queue.is_of_every_symbol());
    }
}
