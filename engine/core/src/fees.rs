//! Commission rates (facts §4): an account's own, those of a symbol in their place, and those of an
//! account on a symbol in place of both. Called by settlement on every fill, and by definitions.

use crate::hash::{Seed, StateHash};
use crate::pool::{Linked, Pool};
use crate::table::Table;
use alloc::collections::TryReserveError;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{AccountId, SymbolId, UNITS_PER_WHOLE};

/// What a fill costs those who take part, 10⁻⁸ of the received amount: the maker or the taker rate, and
/// besides the buyer or the seller rate. Each sum is 0 to 10⁸.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FeeRates {
    /// Of the resting order.
    pub maker: i64,
    /// Of the aggressor.
    pub taker: i64,
    /// Of the buy, besides.
    pub buyer: i64,
    /// Of the sell, besides.
    pub seller: i64,
}

impl FeeRates {
    const fn of_side(&self, side: Side) -> i64 {
        match side {
            Side::Buy => self.buyer,
            Side::Sell => self.seller,
        }
    }

    /// What a resting order of this side pays.
    pub(crate) const fn of_maker(&self, side: Side) -> i64 {
        self.maker + self.of_side(side)
    }

    /// What an aggressor of this side pays.
    pub(crate) const fn of_taker(&self, side: Side) -> i64 {
        self.taker + self.of_side(side)
    }

    /// The rates as a list: maker, taker, buyer, seller.
    pub(crate) const fn list(&self) -> [i64; 4] {
        [self.maker, self.taker, self.buyer, self.seller]
    }

    /// The place of the first rate that is out of range, by itself or in the sum that it is part of.
    pub(crate) fn first_out_of_range(&self) -> Option<u32> {
        let is_out = |rate: i64| !(0..=UNITS_PER_WHOLE).contains(&rate);
        if let Some(at) = self.list().into_iter().position(is_out) {
            return Some(at as u32);
        }
        let besides = self.buyer.max(self.seller);
        [self.maker, self.taker].iter().position(|rate| is_out(rate + besides)).map(|at| at as u32)
    }

    pub(crate) fn hash(&self, hash: &mut StateHash) {
        self.list().into_iter().for_each(|rate| hash.signed(rate));
    }
}

/// Rates of an account on a symbol.
#[derive(Clone, Copy, Default, Debug)]
struct PairRates {
    account: AccountId,
    symbol: SymbolId,
    rates: FeeRates,
    next_free: u32,
}

impl Linked for PairRates {
    fn next_free(&self) -> u32 {
        self.next_free
    }

    fn set_next_free(&mut self, handle: u32) {
        self.next_free = handle;
    }
}

/// The rates of all pairs that have some, at most as many as accounts.
#[derive(Debug)]
pub(crate) struct PairFees {
    pairs: Pool<PairRates>,
    by_pair: Table,
    seed: Seed,
}

impl PairFees {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self { pairs: Pool::new(), by_pair: Table::new(), seed }
    }

    pub(crate) fn try_grow(&mut self, pairs: u32) -> Result<(), TryReserveError> {
        self.pairs.try_grow(pairs)?;
        self.by_pair.try_grow(pairs)
    }

    fn find(&self, account: AccountId, symbol: SymbolId) -> Option<u32> {
        self.by_pair.find(self.seed.pair(account.0, symbol.0), |at| {
            (self.pairs[at].account, self.pairs[at].symbol) == (account, symbol)
        })
    }

    /// The rates of a pair, if it has some.
    pub(crate) fn get(&self, account: AccountId, symbol: SymbolId) -> Option<&FeeRates> {
        self.find(account, symbol).map(|at| &self.pairs[at].rates)
    }

    pub(crate) const fn len(&self) -> u32 {
        self.pairs.live()
    }

    /// Sets the rates of a pair; true when it had none. The caller has checked the limit.
    pub(crate) fn set(&mut self, account: AccountId, symbol: SymbolId, rates: FeeRates) -> bool {
        if let Some(at) = self.find(account, symbol) {
            self.pairs[at].rates = rates;
            return false;
        }
        let at = self.pairs.take().expect("room for a pair is checked before");
        self.pairs[at] = PairRates { account, symbol, rates, next_free: 0 };
        self.by_pair.insert(self.seed.pair(account.0, symbol.0), at);
        true
    }

    /// Withdraws the rates of a pair; true when it had some.
    pub(crate) fn remove(&mut self, account: AccountId, symbol: SymbolId) -> bool {
        let Some(at) = self.find(account, symbol) else { return false };
        self.by_pair.remove(self.seed.pair(account.0, symbol.0), at);
        self.pairs.release(at);
        true
    }

    /// True when pool and table hold the same, and no slot is lost.
    pub(crate) fn is_consistent(&self) -> bool {
        self.pairs.is_consistent() && self.by_pair.len() == self.pairs.live()
    }
}
