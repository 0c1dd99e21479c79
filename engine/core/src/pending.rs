//! What one transaction does not finish: accepted orders that are not done taking, triggered stops that
//! wait for their turn, sweeps over many orders; and the queue of them. Called by placement, by sweeps
//! and by `RunPending`.

use crate::book::Aggressor;
use crate::filters::OrderKind;
use crate::hash::StateHash;
use crate::orders::{HAS_LIST, HAS_OWN_LOCK, IS_ICEBERG};
use crate::pool::NONE;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::message::command::{CommandHeader, EVERY};
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{
    AccountId, Epoch, KeyId, OrderId, OrderListId, Position, Price, Qty, Sequence, SessionId,
    SymbolId,
};

/// An accepted order from its acceptance to the end of its taking.
///
/// Its executed quote stays within `i64`: a buy pays out of its lock. What a sell takes at once comes
/// out of locks that all exist at its acceptance, since nothing else touches the book in between, so
/// it is at most the `AMOUNT_MAX` that the venue holds of the asset; what it sells later, at its
/// limit, is at most its notional, which is at most `AMOUNT_MAX` too; and twice that is in range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveOrder {
    pub(crate) order_id: OrderId,
    pub(crate) account: AccountId,
    pub(crate) symbol: SymbolId,
    pub(crate) kind: OrderKind,
    /// Limit price; zero for MARKET.
    pub(crate) price: Price,
    pub(crate) quantity: i64,
    pub(crate) remaining: i64,
    pub(crate) executed_quote: i64,
    /// The price that fires it, if it is a stop.
    pub(crate) stop_price: Price,
    /// What was locked at acceptance: quote for a buy, base for a sell. Of a buy that was replaced: what
    /// it locked then and what it had paid.
    pub(crate) locked: i64,
    /// It was changed after a part of it was executed: see [`HAS_OWN_LOCK`].
    pub(crate) has_own_lock: bool,
    /// What it shows at a time once it rests; 0: everything.
    pub(crate) iceberg: i64,
    /// The list that it belongs to.
    pub(crate) order_list_id: OrderListId,
    /// A MARKET order by quote quantity took all there was and wants more.
    pub(crate) ran_dry: bool,
    /// Against trades with its own account, if it names it: kept for when it takes again.
    pub(crate) prevention: Option<SelfTradePrevention>,
    /// What holds while it takes now.
    pub(crate) prevention_now: SelfTradePrevention,
    /// Base quantity that a MARKET order does not take because it would have taken it of its own
    /// account: its lock pays for nothing beyond that.
    pub(crate) prevented: i64,
    /// Position of its acceptance, or of its turn if it was triggered.
    pub(crate) priority: Position,
    /// Position of its placement.
    pub(crate) placed: Position,
    /// Its place among the orders of its account: none before it has rested or waited, unless it is
    /// pending and may rest.
    pub(crate) place: u32,
    /// Price and time of its last fill, which tell whether the next one belongs to the same aggregate
    /// trade; no fill has price zero.
    pub(crate) last_fill_price: Price,
    pub(crate) last_fill_time_ns: u64,
    /// Order counts of its account at acceptance, for the terminal reply.
    pub(crate) order_counts: [u32; 2],
    /// The session that placed it.
    pub(crate) placed_by: SessionId,
    /// The session that waits for its terminal reply.
    pub(crate) session: SessionId,
    pub(crate) epoch: Epoch,
    pub(crate) correlation: u64,
    pub(crate) sequence: Sequence,
    pub(crate) client_order_id: ClientOrderId,
}

impl ActiveOrder {
    /// What it asks of the book.
    pub(crate) const fn aggressor(&self) -> Aggressor {
        self.kind.aggressor(self.price, Qty(self.remaining - self.prevented))
    }

    /// True when what it cannot take will rest.
    pub(crate) const fn may_rest(&self) -> bool {
        self.kind.may_rest()
    }

    /// The flags of its record while it is open and waits for nothing.
    pub(crate) fn flags(&self) -> u8 {
        let iceberg = if self.iceberg > 0 { IS_ICEBERG } else { 0 };
        let list = if self.order_list_id == OrderListId::NONE { 0 } else { HAS_LIST };
        let own_lock = if self.has_own_lock { HAS_OWN_LOCK } else { 0 };
        iceberg | list | own_lock
    }

    /// What is left of its lock.
    pub(crate) const fn still_locked(&self) -> i64 {
        match self.kind.side {
            Side::Buy => self.locked - self.executed_quote,
            Side::Sell => self.remaining,
        }
    }

    fn hash(&self, rules: u32, hash: &mut StateHash) {
        if rules >= 2 {
            hash.signed(self.iceberg);
            hash.signed(self.order_list_id.0);
            let prevention = self.prevention.map_or(0, SelfTradePrevention::to_wire);
            let now = self.prevention_now.to_wire();
            let flags = [self.ran_dry.into(), prevention, now, self.has_own_lock.into()];
            hash.pair(self.placed_by.0, u32::from_le_bytes(flags));
            hash.signed(self.prevented);
            hash.word(self.placed.0);
        }
        hash.word(self.order_id.0);
        hash.pair(self.account.0, self.symbol.0);
        let kind = [
            self.kind.side.to_wire(),
            self.kind.order_type.to_wire(),
            self.kind.time_in_force.to_wire(),
            0,
        ];
        hash.pair(self.session.0, u32::from_le_bytes(kind));
        for value in [
            self.price.0,
            self.quantity,
            self.remaining,
            self.executed_quote,
            self.locked,
            self.last_fill_price.0,
        ] {
            hash.signed(value);
        }
        for word in [self.priority.0, self.last_fill_time_ns, self.correlation, self.sequence.0] {
            hash.word(word);
        }
        hash.pair(self.order_counts[0], self.order_counts[1]);
        hash.word(u64::from(self.epoch.0));
        hash.text(&self.client_order_id);
    }
}

/// Who waits for a terminal reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiter {
    pub(crate) session: SessionId,
    pub(crate) epoch: Epoch,
    pub(crate) correlation: u64,
    pub(crate) sequence: Sequence,
}

impl Waiter {
    /// The engine itself waits for no reply.
    pub(crate) const NOBODY: Self =
        Self { session: SessionId::ENGINE, epoch: Epoch(0), correlation: 0, sequence: Sequence(0) };

    /// The sender of a command.
    pub(crate) const fn of(command: &CommandHeader) -> Self {
        let CommandHeader { session, epoch, correlation, sequence, .. } = *command;
        Self { session, epoch, correlation, sequence }
    }
}

/// Whose orders a sweep is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// Everybody's, on one symbol.
    Everybody,
    /// An account's.
    Account(AccountId),
    /// Those of an account that a session placed.
    Session(AccountId, SessionId),
    /// Those of an account that were placed by the sessions of a revoked key that had asked for their
    /// orders to be cancelled at the end.
    Key(AccountId, KeyId),
    /// An account's, because it was killed.
    Killed(AccountId),
}

impl Whose {
    /// The account that it is about; [`EVERY`] for everybody.
    pub(crate) const fn account(self) -> AccountId {
        match self {
            Self::Everybody => AccountId(EVERY),
            Self::Account(account)
            | Self::Session(account, _)
            | Self::Key(account, _)
            | Self::Killed(account) => account,
        }
    }

    /// True for what an operator takes away: it overtakes other pending work.
    pub(crate) const fn is_urgent(self) -> bool {
        matches!(self, Self::Key(..) | Self::Killed(_))
    }

    const fn words(self) -> [u64; 3] {
        let (kind, detail) = match self {
            Self::Everybody => (0, 0),
            Self::Account(_) => (1, 0),
            Self::Session(_, session) => (2, session.0 as u64),
            Self::Key(_, key) => (3, key.0),
            Self::Killed(_) => (4, 0),
        };
        [kind, self.account().0 as u64, detail]
    }
}

/// Many orders that are to be cancelled or expired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    pub(crate) whose: Whose,
    /// The symbol, or [`EVERY`].
    pub(crate) symbol: SymbolId,
    /// Position of the command: only orders placed before it are swept.
    pub(crate) position: Position,
    /// Place among the account's orders behind which it goes on; none: at the beginning.
    pub(crate) place: u32,
    /// Orders and lists that it has ended.
    pub(crate) orders: u64,
    pub(crate) lists: u64,
    pub(crate) waiter: Waiter,
}

impl Sweep {
    /// A sweep that has not begun.
    pub(crate) const fn new(
        whose: Whose,
        symbol: SymbolId,
        position: Position,
        waiter: Waiter,
    ) -> Self {
        Self { whose, symbol, position, place: NONE, orders: 0, lists: 0, waiter }
    }

    fn hash(&self, hash: &mut StateHash) {
        hash.pair(u32::MAX - 1, self.symbol.0);
        self.whose.words().into_iter().for_each(|word| hash.word(word));
        for word in [self.position.0, self.orders, self.lists, self.waiter.correlation] {
            hash.word(word);
        }
        hash.word(self.waiter.sequence.0);
        hash.pair(self.waiter.session.0, self.waiter.epoch.0);
    }
}

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
/// client's work can keep an operator's command out.
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
impl ActiveOrder {
    const VACANT: Self = Self {
        order_id: OrderId(0),
        account: AccountId(0),
        symbol: SymbolId(0),
        kind: OrderKind::LIMIT_BUY,
        price: Price::ZERO,
        stop_price: Price::ZERO,
        quantity: 0,
        remaining: 0,
        executed_quote: 0,
        locked: 0,
        has_own_lock: false,
        iceberg: 0,
        order_list_id: OrderListId::NONE,
        ran_dry: false,
        prevention: None,
        prevention_now: SelfTradePrevention::None,
        prevented: 0,
        priority: Position(0),
        placed: Position(0),
        place: NONE,
        last_fill_price: Price::ZERO,
        last_fill_time_ns: 0,
        order_counts: [0; 2],
        placed_by: SessionId(0),
        session: SessionId(0),
        epoch: Epoch(0),
        correlation: 0,
        sequence: Sequence(0),
        client_order_id: ClientOrderId::EMPTY,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

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
