//! Accounts, their balances, and their order counts per interval. Called by settlement, placement,
//! definitions and money movements.

use crate::fees::{FeeRates, PairFees};
use crate::grid::Grid;
use crate::hash::{Seed, StateHash};
use crate::table::Table;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::message::command::Limits;
use touchline_protocol::message::enums::SelfTradePrevention;
use touchline_protocol::text::Name;
use touchline_protocol::units::{AccountId, Amount, AssetId, SymbolId};

/// What an account has of one asset.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Balance {
    /// At the account's disposal.
    pub free: Amount,
    /// Set aside for open orders.
    pub locked: Amount,
}

/// Orders of an account within one calendar window of the order-rate limits.
///
/// The window is left behind lazily: a count of an older window means 0 until the next order is
/// accepted. Rejects leave it as it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct OrderWindow {
    /// Number of the window: time divided by the interval's length.
    pub(crate) window: u64,
    /// Orders accepted in it.
    pub(crate) count: u32,
}

impl OrderWindow {
    /// Orders in the window that is now.
    #[inline(always)]
    pub(crate) const fn count_in(&self, present: u64) -> u32 {
        if self.window == present { self.count } else { 0 }
    }
}

/// One account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) rates: FeeRates,
    /// Symbols on which it has rates of its own.
    pub(crate) paired_rates: u32,
    pub(crate) windows: [OrderWindow; 2],
    pub(crate) name: Name,
    pub(crate) flags: u8,
    pub(crate) permissions: u8,
    /// Of its orders that name none.
    pub(crate) self_trade_prevention: SelfTradePrevention,
    /// The kill switch: it places nothing.
    pub(crate) is_killed: bool,
    /// Connected sessions that take all events of it; follows from the sessions.
    pub(crate) watchers: u32,
}

/// What a trade moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TradeMoney {
    pub(crate) buyer: AccountId,
    pub(crate) seller: AccountId,
    pub(crate) base: AssetId,
    pub(crate) quote: AssetId,
    pub(crate) quantity: i64,
    pub(crate) quote_amount: i64,
    /// Of the base that the buyer receives.
    pub(crate) buyer_commission: i64,
    /// Of the quote that the seller receives.
    pub(crate) seller_commission: i64,
}

/// All accounts; the first is the fee account, which is always there.
///
/// No balance can leave the range of `i64`, so the sums here are not checked one by one:
/// 1. All that an asset's balances add up to is its `held` amount: only deposits and withdrawals
///    change the sum, everything else moves amounts between two balances.
/// 2. `held` is at most `AMOUNT_MAX`, checked at every deposit.
/// 3. No balance is below zero: withdrawals and locks are checked against the free balance; a fill
///    takes from a lock no more than the order has locked (a buy locks its notional rounded up, its
///    fills are truncated parts of it at its limit or better); commissions are at most what is
///    received.
///
/// So every balance is between 0 and `AMOUNT_MAX`. (Builds check overflow all the same.)
#[derive(Debug)]
pub(crate) struct Accounts {
    pub(crate) list: Vec<Account>,
    balances: Grid<Balance>,
    pub(crate) pair_fees: PairFees,
    /// Sum of the watchers of all accounts.
    watchers: u32,
    by_name: Table,
    seed: Seed,
}

impl Accounts {
    pub(crate) fn new(seed: Seed) -> Self {
        let mut made = Self {
            list: Vec::new(),
            balances: Grid::new(),
            pair_fees: PairFees::new(seed),
            watchers: 0,
            by_name: Table::new(),
            seed,
        };
        made.list.push(Account {
            rates: FeeRates::default(),
            paired_rates: 0,
            windows: [OrderWindow::default(); 2],
            name: Name::new(AccountId::FEES_NAME).expect("a short name"),
            flags: 0,
            permissions: 0,
            self_trade_prevention: SelfTradePrevention::None,
            is_killed: false,
            watchers: 0,
        });
        made
    }

    pub(crate) fn try_grow(&mut self, limits: &Limits) -> Result<(), TryReserveError> {
        self.list.try_reserve_exact((limits.accounts as usize).saturating_sub(self.list.len()))?;
        self.by_name.try_grow(limits.accounts)?;
        if self.by_name.len() == 0 {
            let fees = self.list[0].name;
            self.by_name.insert(self.seed.text(0, &fees), AccountId::FEES.0);
        }
        self.pair_fees.try_grow(limits.accounts)?;
        self.balances.try_grow(limits.accounts, limits.assets)
    }

    pub(crate) const fn len(&self) -> u32 {
        self.list.len() as u32
    }

    pub(crate) fn get(&self, id: AccountId) -> Option<&Account> {
        self.list.get(id.0 as usize)
    }

    pub(crate) fn find(&self, name: &Name) -> Option<AccountId> {
        self.by_name
            .find(self.seed.text(0, name), |at| self.list[at as usize].name == *name)
            .map(AccountId)
    }

    /// The rates of an account on a symbol, of which those of everybody on that symbol, if there are
    /// some, are given.
    #[inline(always)]
    pub(crate) fn rates<'rates>(
        &'rates self,
        account: AccountId,
        symbol: SymbolId,
        of_symbol: Option<&'rates FeeRates>,
    ) -> &'rates FeeRates {
        let of_account = &self.list[account.0 as usize];
        let of_pair =
            if of_account.paired_rates == 0 { None } else { self.pair_fees.get(account, symbol) };
        of_pair.or(of_symbol).unwrap_or(&of_account.rates)
    }

    /// True when a session takes all events of an account.
    #[inline(always)]
    pub(crate) fn is_watched(&self, account: AccountId) -> bool {
        // In a venue where nobody watches, no account is looked at.
        self.watchers > 0 && self.list[account.0 as usize].watchers > 0
    }

    /// Notes that one session more takes all events of an account.
    pub(crate) fn watch(&mut self, account: AccountId) {
        self.list[account.0 as usize].watchers += 1;
        self.watchers += 1;
    }

    /// Notes that one of the sessions that take all events of an account does so no longer.
    pub(crate) fn unwatch(&mut self, account: AccountId) {
        self.list[account.0 as usize].watchers -= 1;
        self.watchers -= 1;
    }

    /// Adds an account of a new name; the caller has checked the limit.
    pub(crate) fn add(&mut self, account: Account) -> AccountId {
        let id = self.len();
        self.by_name.insert(self.seed.text(0, &account.name), id);
        self.list.push(account);
        AccountId(id)
    }

    /// The balance of an account and asset that exist.
    #[inline(always)]
    pub(crate) fn balance(&self, account: AccountId, asset: AssetId) -> &Balance {
        self.balances.at(account.0, asset.0)
    }

    /// An account that exists, and all its balances by asset.
    #[inline(always)]
    pub(crate) fn with_balances(&mut self, account: AccountId) -> (&mut Account, &mut [Balance]) {
        (&mut self.list[account.0 as usize], self.balances.row_mut(account.0))
    }

    #[inline(always)]
    pub(crate) fn balance_mut(&mut self, account: AccountId, asset: AssetId) -> &mut Balance {
        self.balances.at_mut(account.0, asset.0)
    }

    /// Moves from free to locked; the caller has checked that as much is free.
    #[inline(always)]
    pub(crate) fn lock(&mut self, account: AccountId, asset: AssetId, amount: i64) {
        let balance = self.balance_mut(account, asset);
        balance.free.0 -= amount;
        balance.locked.0 += amount;
    }

    /// Moves from locked back to free.
    #[inline(always)]
    pub(crate) fn release(&mut self, account: AccountId, asset: AssetId, amount: i64) {
        let balance = self.balance_mut(account, asset);
        balance.locked.0 -= amount;
        balance.free.0 += amount;
    }

    /// Moves what a trade moves. Buyer, seller and even the fee account may be the same.
    pub(crate) fn settle(&mut self, money: &TradeMoney) {
        let TradeMoney { buyer, seller, base, quote, .. } = *money;
        self.balance_mut(buyer, quote).locked.0 -= money.quote_amount;
        self.balance_mut(seller, quote).free.0 += money.quote_amount - money.seller_commission;
        self.balance_mut(seller, base).locked.0 -= money.quantity;
        self.balance_mut(buyer, base).free.0 += money.quantity - money.buyer_commission;
        if money.seller_commission > 0 {
            self.balance_mut(AccountId::FEES, quote).free.0 += money.seller_commission;
        }
        if money.buyer_commission > 0 {
            self.balance_mut(AccountId::FEES, base).free.0 += money.buyer_commission;
        }
    }

    pub(crate) fn hash(&self, rules: u32, assets: u32, hash: &mut StateHash) {
        hash.word(u64::from(self.len()));
        for (id, account) in (0..).zip(&self.list) {
            hash.text(&account.name);
            hash.signed(account.rates.maker);
            hash.signed(account.rates.taker);
            // None counts as 0: what an account of rules version 1 has.
            let prevention = account.self_trade_prevention.to_wire() - 1;
            let flags = u16::from_le_bytes([account.flags, prevention]);
            hash.pair(u32::from(flags), u32::from(account.permissions));
            if rules >= 2 {
                hash.word(u64::from(account.is_killed));
                hash.signed(account.rates.buyer);
                hash.signed(account.rates.seller);
                hash.word(account.paired_rates.into());
            }
            for window in &account.windows {
                hash.word(window.window);
                hash.word(u64::from(window.count));
            }
            for asset in 0..assets {
                let balance = self.balances.at(id, asset);
                hash.signed(balance.free.0);
                hash.signed(balance.locked.0);
            }
        }
    }
}
