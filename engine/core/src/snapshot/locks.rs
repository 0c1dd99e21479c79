//! Reading balances: what is locked of each must be what the orders of its account lock.

use super::SnapshotError;
use super::read::Reading;
use crate::Core;
use crate::book::Handle;
use crate::money::AMOUNT_MAX;
use crate::pending::ActiveOrder;
use alloc::vec;
use touchline_protocol::snapshot::records::{self, BalanceRecord};
use touchline_protocol::units::{AccountId, Amount, AssetId};

impl Core {
    /// Notes in a balance that an order locks so much of it; false if that is out of range.
    fn add_lock(&mut self, account: AccountId, asset: AssetId, amount: i64) -> bool {
        let locked = &mut self.accounts.balance_mut(account, asset).locked.0;
        let sum = locked.checked_add(amount).filter(|&sum| amount >= 0 && sum <= AMOUNT_MAX);
        *locked = sum.unwrap_or(*locked);
        sum.is_some()
    }
}

impl<E> Reading<'_, E> {
    /// Adds up what an open order locks.
    pub(super) fn add_lock_of_open(&mut self, handle: Handle) -> Result<(), SnapshotError<E>> {
        let core = &mut self.core;
        let view = core.orders.view(&core.pools, handle);
        let record = core.orders.record(handle);
        let asset = core.symbols.list[record.symbol.0 as usize].paid_with(record.kind.side);
        let locked = core.orders.locked(&view);
        let in_range = core.add_lock(AccountId(view.owner), asset, locked);
        self.reader.require(in_range, "orders lock more than a venue can hold")
    }

    /// Adds up what a pending order still locks.
    pub(super) fn add_lock_of_pending(
        &mut self,
        active: &ActiveOrder,
    ) -> Result<(), SnapshotError<E>> {
        let asset = self.core.symbols.list[active.symbol.0 as usize].paid_with(active.kind.side);
        let in_range = self.core.add_lock(active.account, asset, active.still_locked());
        self.reader.require(in_range, "orders lock more than a venue can hold")
    }

    /// The balances, the last thing of all: what is locked was added up from the orders.
    pub(super) fn balances(&mut self) -> Result<(), SnapshotError<E>> {
        let Self { core, reader, .. } = self;
        let most = u64::from(core.accounts.len()) * u64::from(core.assets.len());
        let count = reader.begin(records::BALANCES, most)?;
        let mut sums = vec![0i128; core.assets.len() as usize];
        let mut locked_sum = 0i128;
        let mut before = None;
        for _ in 0..count {
            let BalanceRecord { account, asset, free, locked } = reader.take()?;
            let is_sound = core.accounts.get(account).is_some()
                && core.assets.get(asset).is_some()
                && before.is_none_or(|before| before < (account, asset))
                && free >= 0
                && (free, locked) != (0, 0);
            reader.require(is_sound, "a field out of range, or out of its order")?;
            let balance = core.accounts.balance_mut(account, asset);
            reader.require(balance.locked.0 == locked, "locked is not what its orders lock")?;
            balance.free = Amount(free);
            sums[asset.0 as usize] += i128::from(free) + i128::from(locked);
            locked_sum += i128::from(locked);
            before = Some((account, asset));
            reader.step();
        }
        reader.end()?;
        // What is locked where there is no record is missing in the sum.
        let mut locks = 0i128;
        for account in (0..core.accounts.len()).map(AccountId) {
            for asset in (0..core.assets.len()).map(AssetId) {
                locks += i128::from(core.accounts.balance(account, asset).locked.0);
            }
        }
        reader.require(locks == locked_sum, "a balance with locked money is missing")?;
        let is_held = |(asset, sum): (&crate::assets::Asset, &i128)| i128::from(asset.held) == *sum;
        let all_held = core.assets.list.iter().zip(&sums).all(is_held);
        reader.require(all_held, "balances do not add up to what the venue holds")
    }
}
