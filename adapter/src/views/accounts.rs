//! Accounts with their balances, and API keys. Fed by the fold, read for GET /account and for every
//! signed request.

use std::collections::HashSet;

use bytemuck::{Pod, Zeroable};
use touchline_protocol::message::command::{CreateAccount, CreateKey, Limits, SetAccount, SetFees};
use touchline_protocol::text::Name;
use touchline_protocol::units::{AccountId, AssetId, KeyId};

use super::error::{FoldError, same};

/// What an account has of one asset, 10⁻⁸.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Balance {
    /// Free to trade or withdraw.
    pub free: i64,
    /// Held for open orders.
    pub locked: i64,
}

/// Accepted orders of an account in one calendar window (facts §8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OrderWindow {
    /// The window's number: the n-th begins n times the interval behind the epoch.
    window: u64,
    count: u32,
}

/// The windows that a moment lies in, for both intervals.
fn windows_at(limits: &Limits, time_ns: u64) -> [u64; 2] {
    [limits.interval_0_seconds, limits.interval_1_seconds]
        .map(|seconds| time_ns / (u64::from(seconds.max(1)) * 1_000_000_000))
}

/// An account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// Its unique name.
    pub name: Name,
    /// Commission as the maker, 10⁻⁸ of the received amount.
    pub maker_rate: i64,
    /// Commission as the taker, 10⁻⁸ of the received amount.
    pub taker_rate: i64,
    /// Commission as the buyer, besides that as maker or taker, 10⁻⁸ of the received amount.
    pub buyer_rate: i64,
    /// Commission as the seller, besides that as maker or taker, 10⁻⁸ of the received amount.
    pub seller_rate: i64,
    /// `ACCOUNT_*` bits.
    pub flags: u8,
    /// It takes no more orders, whatever its flags say.
    pub killed: bool,
    /// `PERMISSION_*` bits.
    pub permissions: u8,
    /// When a balance last changed, ms since the epoch; 0 for never.
    pub update_ms: u64,
    orders: [OrderWindow; 2],
    /// By asset number; assets behind its end have never been touched.
    balances: Vec<Held>,
    /// It is among those that have changed.
    is_changed: bool,
}

/// A balance, and whether it is among those that have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Held {
    balance: Balance,
    is_changed: bool,
}

impl Account {
    /// How many orders it has placed in the windows of both intervals that `time_ns` (since the epoch)
    /// lies in.
    #[must_use]
    pub fn order_counts(&self, limits: &Limits, time_ns: u64) -> [u32; 2] {
        let [first, second] = windows_at(limits, time_ns);
        let [of_first, of_second] = self.orders;
        [(of_first, first), (of_second, second)]
            .map(|(orders, window)| if orders.window == window { orders.count } else { 0 })
    }

    /// What it has of the asset.
    #[must_use]
    pub fn balance(&self, asset: AssetId) -> Balance {
        self.balances.get(asset.0 as usize).map(|held| held.balance).unwrap_or_default()
    }
}

/// An API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Whose it is.
    pub account: AccountId,
    /// `KEY_*` bits.
    pub permissions: u8,
    /// It is of no use any more.
    pub revoked: bool,
}

/// All accounts and keys.
#[derive(Debug, Clone)]
pub struct Accounts {
    accounts: Vec<Account>,
    /// Theirs: there may be more accounts than can be looked through for each new one.
    names: HashSet<Name>,
    keys: Vec<Key>,
    /// Balances that have changed since they were last asked for, each once.
    changed: Vec<(AccountId, AssetId)>,
    /// Accounts that have placed orders or whose balances have changed since then, each once.
    changed_accounts: Vec<AccountId>,
}

/// What changes of an account while it trades, besides its balances: as it is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct AccountRow {
    update_ms: u64,
    windows: [u64; 2],
    counts: [u32; 2],
}

/// What an account has of an asset, as it is saved, 10⁻⁸.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct BalanceRow {
    free: i64,
    locked: i64,
}

/// A change of one balance, 10⁻⁸.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) account: AccountId,
    pub(super) asset: AssetId,
    pub(super) free: i64,
    pub(super) locked: i64,
}

impl Change {
    /// Moves `amount` from free to locked; back if it is negative. Above `i64::MIN`.
    pub(super) const fn lock(account: AccountId, asset: AssetId, amount: i64) -> Self {
        Self { account, asset, free: -amount, locked: amount }
    }
}

impl Accounts {
    /// The fee account alone, which exists from the start.
    pub(super) fn new() -> Self {
        Self {
            accounts: vec![Account::default()],
            names: HashSet::from([Name::default()]),
            keys: Vec::new(),
            changed: Vec::new(),
            changed_accounts: Vec::new(),
        }
    }

    /// The balances that have changed since the last call.
    pub(super) fn take_changed(
        &mut self,
    ) -> impl Iterator<Item = (AccountId, AssetId, BalanceRow)> {
        let accounts = &mut self.accounts;
        self.changed.drain(..).filter_map(|(account, asset)| {
            let owner = accounts.get_mut(account.0 as usize)?;
            let held = owner.balances.get_mut(asset.0 as usize)?;
            held.is_changed = false;
            let Balance { free, locked } = held.balance;
            Some((account, asset, BalanceRow { free, locked }))
        })
    }

    /// The accounts that have changed since the last call.
    pub(super) fn take_changed_accounts(
        &mut self,
    ) -> impl Iterator<Item = (AccountId, AccountRow)> {
        let accounts = &mut self.accounts;
        self.changed_accounts.drain(..).filter_map(|id| {
            let account = accounts.get_mut(id.0 as usize)?;
            account.is_changed = false;
            let row = AccountRow {
                update_ms: account.update_ms,
                windows: account.orders.map(|orders| orders.window),
                counts: account.orders.map(|orders| orders.count),
            };
            Some((id, row))
        })
    }

    /// Takes back what was saved of an account.
    pub(super) fn restore_account(
        &mut self,
        account: AccountId,
        row: &AccountRow,
    ) -> Result<(), FoldError> {
        let account = self.get_mut(account)?;
        account.update_ms = row.update_ms;
        let [first, second] = row.windows;
        let [of_first, of_second] = row.counts;
        account.orders = [(first, of_first), (second, of_second)]
            .map(|(window, count)| OrderWindow { window, count });
        Ok(())
    }

    /// Takes back a balance that was saved; `assets` is the number of defined assets.
    pub(super) fn restore_balance(
        &mut self,
        account: AccountId,
        asset: AssetId,
        row: &BalanceRow,
        assets: usize,
    ) -> Result<(), FoldError> {
        let BalanceRow { free, locked } = *row;
        if let Some(negative) = [free, locked].into_iter().find(|part| *part < 0) {
            return Err(FoldError::Negative(negative));
        }
        let owner = known(&mut self.accounts, account)?;
        held_of(owner, asset, assets)?.balance = Balance { free, locked };
        Ok(())
    }

    /// The account.
    #[must_use]
    pub fn get(&self, account: AccountId) -> Option<&Account> {
        self.accounts.get(account.0 as usize)
    }

    /// Every account, the fee account first.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter()
    }

    /// The key, revoked or not.
    #[must_use]
    pub fn key(&self, key: KeyId) -> Option<&Key> {
        self.keys.get(usize::try_from(key.0.checked_sub(1)?).ok()?)
    }

    pub(super) fn create(&mut self, made: &CreateAccount, id: u64) -> Result<(), FoldError> {
        next("account", id, self.accounts.len())?;
        if !self.names.insert(made.name) {
            let name = made.name.as_str().to_owned();
            return Err(FoldError::Duplicate { what: "account", name });
        }
        self.accounts.push(Account {
            name: made.name,
            maker_rate: made.maker_rate,
            taker_rate: made.taker_rate,
            flags: made.flags,
            permissions: made.permissions,
            ..Account::default()
        });
        Ok(())
    }

    pub(super) fn set(&mut self, set: &SetAccount) -> Result<(), FoldError> {
        let account = self.get_mut(set.account)?;
        account.flags = set.flags;
        account.permissions = set.permissions;
        Ok(())
    }

    /// The rates of an account wherever nothing else is set.
    pub(super) fn set_fees(&mut self, set: &SetFees) -> Result<(), FoldError> {
        let account = self.get_mut(set.account)?;
        account.maker_rate = set.maker_rate;
        account.taker_rate = set.taker_rate;
        account.buyer_rate = set.buyer_rate;
        account.seller_rate = set.seller_rate;
        Ok(())
    }

    /// An order of the account was accepted.
    pub(super) fn count_order(
        &mut self,
        account: AccountId,
        limits: &Limits,
        time_ns: u64,
    ) -> Result<(), FoldError> {
        let id = account;
        let account = known(&mut self.accounts, account)?;
        if !std::mem::replace(&mut account.is_changed, true) {
            self.changed_accounts.push(id);
        }
        let counts = account.order_counts(limits, time_ns);
        let windows = windows_at(limits, time_ns);
        for ((orders, count), window) in account.orders.iter_mut().zip(counts).zip(windows) {
            *orders = OrderWindow { window, count: count.saturating_add(1) };
        }
        Ok(())
    }

    /// The venue's limits are other ones from now on. The numbers of windows of another length mean
    /// nothing any more, so their counts begin anew, as the venue's do.
    pub(super) fn restart_windows(&mut self, before: &Limits, now: &Limits) {
        let changed = [
            before.interval_0_seconds != now.interval_0_seconds,
            before.interval_1_seconds != now.interval_1_seconds,
        ];
        for (id, account) in (0..).map(AccountId).zip(&mut self.accounts) {
            for (orders, _) in
                account.orders.iter_mut().zip(changed).filter(|(_, is_changed)| *is_changed)
            {
                *orders = OrderWindow::default();
                if !std::mem::replace(&mut account.is_changed, true) {
                    self.changed_accounts.push(id);
                }
            }
        }
    }

    pub(super) fn kill(&mut self, account: AccountId, killed: bool) -> Result<(), FoldError> {
        self.get_mut(account)?.killed = killed;
        Ok(())
    }

    fn get_mut(&mut self, account: AccountId) -> Result<&mut Account, FoldError> {
        known(&mut self.accounts, account)
    }

    pub(super) fn create_key(&mut self, made: &CreateKey, id: u64) -> Result<(), FoldError> {
        next("key", id, self.keys.len() + 1)?;
        self.get(made.account).ok_or(FoldError::UnknownAccount(made.account))?;
        let (account, permissions) = (made.account, made.permissions);
        self.keys.push(Key { account, permissions, revoked: false });
        Ok(())
    }

    pub(super) fn revoke(&mut self, key: KeyId) -> Result<(), FoldError> {
        let unknown = FoldError::UnknownKey(key.0);
        let index = key.0.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.keys.get_mut(index)).ok_or(unknown)?.revoked = true;
        Ok(())
    }

    /// Applies a change; `assets` is the number of defined assets.
    pub(super) fn change(
        &mut self,
        change: Change,
        assets: usize,
        time_ms: u64,
    ) -> Result<Balance, FoldError> {
        let Change { account, asset, .. } = change;
        let owner = known(&mut self.accounts, account)?;
        if !std::mem::replace(&mut owner.is_changed, true) {
            self.changed_accounts.push(account);
        }
        owner.update_ms = time_ms;
        let held = held_of(owner, asset, assets)?;
        if !std::mem::replace(&mut held.is_changed, true) {
            self.changed.push((account, asset));
        }
        let moved = |which, before: i64, delta: i64| {
            before.checked_add(delta).filter(|after| *after >= 0).ok_or(FoldError::Balance {
                which,
                account,
                asset,
                before,
                delta,
            })
        };
        let after = Balance {
            free: moved("free", held.balance.free, change.free)?,
            locked: moved("locked", held.balance.locked, change.locked)?,
        };
        held.balance = after;
        Ok(after)
    }
}

fn known(accounts: &mut [Account], account: AccountId) -> Result<&mut Account, FoldError> {
    accounts.get_mut(account.0 as usize).ok_or(FoldError::UnknownAccount(account))
}

/// What an account holds of an asset; `assets` is the number of defined assets.
fn held_of(owner: &mut Account, asset: AssetId, assets: usize) -> Result<&mut Held, FoldError> {
    if asset.0 as usize >= assets {
        return Err(FoldError::UnknownAsset(asset));
    }
    if owner.balances.len() < assets {
        owner.balances.resize(assets, Held::default());
    }
    Ok(&mut owner.balances[asset.0 as usize])
}

/// Checks that a definition got the next number.
pub(super) fn next(what: &'static str, found: u64, expected: usize) -> Result<(), FoldError> {
    let expected = expected as u64;
    if found == expected { Ok(()) } else { Err(FoldError::NotNext { what, found, expected }) }
}

/// Holds a balance against what an event says of it.
pub(super) fn same_balance(balance: Balance, free: i64, locked: i64) -> Result<(), FoldError> {
    same("free balance", free, balance.free)?;
    same("locked balance", locked, balance.locked)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: AccountId = AccountId(0);

    fn deposited(accounts: &mut Accounts, asset: u32, amount: i64, time_ms: u64) {
        let change = Change { account: ACCOUNT, asset: AssetId(asset), free: amount, locked: 0 };
        accounts.change(change, 2, time_ms).unwrap();
    }

    /// Assets with what is free of them, and accounts with when they changed and how many orders they placed.
    type Saved = (Vec<(u32, i64)>, Vec<(u32, u64, [u32; 2])>);

    /// What the next batch would save.
    fn saved(accounts: &mut Accounts) -> Saved {
        let balances = accounts.take_changed().map(|(_, asset, row)| (asset.0, row.free)).collect();
        let changed = accounts.take_changed_accounts();
        let changed = changed.map(|(id, row)| (id.0, row.update_ms, row.counts)).collect();
        (balances, changed)
    }

    #[test]
    fn each_batch_saves_what_has_changed_since_the_one_before() {
        let mut accounts = Accounts::new();
        assert_eq!(saved(&mut accounts), (vec![], vec![]));
        deposited(&mut accounts, 1, 5, 10);
        deposited(&mut accounts, 1, 6, 11);
        assert_eq!(saved(&mut accounts), (vec![(1, 11)], vec![(0, 11, [0, 0])]));
        assert_eq!(saved(&mut accounts), (vec![], vec![]));
        deposited(&mut accounts, 1, 7, 12);
        deposited(&mut accounts, 0, 1, 13);
        assert_eq!(saved(&mut accounts), (vec![(1, 18), (0, 1)], vec![(0, 13, [0, 0])]));
        let limits =
            Limits { interval_0_seconds: 10, interval_1_seconds: 60, ..Default::default() };
        for counts in [[1, 1], [2, 2]] {
            accounts.count_order(ACCOUNT, &limits, 1).unwrap();
            assert_eq!(saved(&mut accounts), (vec![], vec![(0, 13, counts)]));
        }
        deposited(&mut accounts, 1, -18, 14);
        assert_eq!(saved(&mut accounts), (vec![(1, 0)], vec![(0, 14, [2, 2])]));
    }
}
