//! How many orders an account has open on a symbol: an entry for each pair that has any, so that room
//! goes with the open orders and not with accounts times symbols. Called by
//! [`Orders`](crate::orders::Orders).

use crate::hash::Seed;
use crate::pool::{Linked, NONE, Pool};
use crate::table::Table;
use alloc::collections::TryReserveError;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{AccountId, SymbolId};

/// Open orders of an account on a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct OpenCounts {
    /// All of them (filter MAX_NUM_ORDERS).
    pub(crate) all: u32,
    /// Icebergs (filter MAX_NUM_ICEBERG_ORDERS).
    pub(crate) icebergs: u32,
    /// Waiting stops (filter MAX_NUM_ALGO_ORDERS).
    pub(crate) algos: u32,
    /// Those that sell; the others buy.
    pub(crate) sells: u32,
    /// Sum of the quantities of the buys, executed parts included (filter MAX_POSITION). Those of an
    /// open list count once.
    pub(crate) bought: u128,
}

impl OpenCounts {
    /// Of a pair that has nothing open.
    const NOTHING: Self = Self { all: 0, icebergs: 0, algos: 0, sells: 0, bought: 0 };

    /// Counts an order that has nothing but its record.
    #[inline(always)]
    pub(crate) fn add_plain(&mut self, side: Side, quantity: i64) {
        // There are no more open orders than this holds.
        self.all = self.all.wrapping_add(1);
        self.sells = self.sells.wrapping_add(u32::from(side == Side::Sell));
        self.bought += bought_plain(side, quantity);
    }

    /// Undoes [`add_plain`](Self::add_plain).
    #[inline(always)]
    pub(crate) fn remove_plain(&mut self, side: Side, quantity: i64) {
        self.all -= 1;
        self.sells -= u32::from(side == Side::Sell);
        self.bought -= bought_plain(side, quantity);
    }

    /// Those of a side.
    pub(crate) const fn of(&self, side: Side) -> u32 {
        match side {
            Side::Buy => self.all - self.sells,
            Side::Sell => self.sells,
        }
    }
}

/// What an order that has nothing but its record adds to its account's position if it is filled. Which side it is
/// cannot be guessed.
#[inline(always)]
fn bought_plain(side: Side, quantity: i64) -> u128 {
    let quantity = core::hint::select_unpredictable(side == Side::Buy, quantity, 0);
    u128::from(quantity.cast_unsigned())
}

/// An account and a symbol, and what it has open there.
#[derive(Clone, Copy, Default, Debug)]
struct Pair {
    /// While the slot is free: the next free one.
    account: u32,
    symbol: SymbolId,
    counts: OpenCounts,
}

impl Linked for Pair {
    fn next_free(&self) -> u32 {
        self.account
    }

    fn set_next_free(&mut self, handle: u32) {
        self.account = handle;
    }
}

/// All pairs with an open order. Most accounts trade one symbol for a while: each call is handed the slot of
/// the account's pair that was asked for last, or none.
#[derive(Debug)]
pub(crate) struct Pairs {
    pairs: Pool<Pair>,
    by_pair: Table,
    seed: Seed,
}

impl Pairs {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self { pairs: Pool::new(), by_pair: Table::new(), seed }
    }

    /// Makes room for so many pairs, each of which has an open order at the least.
    pub(crate) fn try_grow(&mut self, pairs: u32) -> Result<(), TryReserveError> {
        self.pairs.try_grow(pairs)?;
        self.by_pair.try_grow(pairs)
    }

    /// The slot of a pair that has anything open, or none.
    #[inline(always)]
    pub(crate) fn find(&self, last: u32, account: AccountId, symbol: SymbolId) -> u32 {
        if last != NONE && self.pairs[last].symbol == symbol {
            last
        } else {
            self.find_by_pair(account, symbol)
        }
    }

    #[inline(never)]
    fn find_by_pair(&self, account: AccountId, symbol: SymbolId) -> u32 {
        let found = self.by_pair.find(self.seed.pair(account.0, symbol.0), |at| {
            (self.pairs[at].account, self.pairs[at].symbol) == (account.0, symbol)
        });
        found.unwrap_or(NONE)
    }

    /// The slot of a pair that is about to have one open order more, and has just been looked for.
    #[inline(always)]
    pub(crate) fn take_found(
        &mut self,
        (account, symbol): (AccountId, SymbolId),
        found: u32,
    ) -> u32 {
        if found == NONE { self.make(account, symbol) } else { found }
    }

    /// The counts in a slot; of none, that nothing is open.
    #[inline(always)]
    pub(crate) fn at(&self, slot: u32) -> &OpenCounts {
        self.pairs.get(slot).map_or(&OpenCounts::NOTHING, |pair| &pair.counts)
    }

    #[inline(never)]
    fn make(&mut self, account: AccountId, symbol: SymbolId) -> u32 {
        let at = self.pairs.take().expect("as many pairs as open orders have room");
        self.pairs[at] = Pair { account: account.0, symbol, counts: OpenCounts::default() };
        self.by_pair.insert(self.seed.pair(account.0, symbol.0), at);
        at
    }

    /// The counts in a slot, to change; a pair that comes to have nothing open is then released.
    pub(crate) fn at_mut(&mut self, slot: u32) -> &mut OpenCounts {
        &mut self.pairs[slot].counts
    }

    /// Gives the slot of a pair up that has nothing open any more.
    #[inline(never)]
    pub(crate) fn release(&mut self, last: &mut u32, slot: u32) {
        let Pair { account, symbol, .. } = self.pairs[slot];
        if *last == slot {
            *last = NONE;
        }
        self.by_pair.remove(self.seed.pair(account, symbol.0), slot);
        self.pairs.release(slot);
    }

    /// Number of pairs, if pool and table agree about it and no slot is lost.
    pub(crate) fn checked_len(&self, last: impl Iterator<Item = u32>) -> Option<u32> {
        let is_sound = self.pairs.is_consistent() && self.by_pair.len() == self.pairs.live();
        let is_of = |(account, slot): (u32, u32)| {
            slot == NONE || self.pairs[slot].account == account && self.pairs[slot].counts.all > 0
        };
        let is_sound = is_sound && (0..).zip(last).all(is_of);
        is_sound.then_some(self.pairs.live())
    }
}
