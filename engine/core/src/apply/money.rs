//! Money that enters and leaves the venue.
//!
//! These are the operator's movements: the flags ACCOUNT_CAN_DEPOSIT and ACCOUNT_CAN_WITHDRAW tell the
//! services what a user may ask for and do not bind the operator, who must be able to pay out the fee
//! account and to empty a blocked one.

use super::Reject;
use crate::Core;
use crate::money::AMOUNT_MAX;
use crate::outbox::Outbox;
use touchline_protocol::message::command::{Deposit, Withdraw};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::event::Done;
use touchline_protocol::units::{AccountId, AssetId};

impl Core {
    pub(super) fn deposit(
        &mut self,
        message: &Deposit,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let held = self.movable(message.account, message.asset, message.amount)?;
        // The bound on which the range of every balance rests: see `Accounts`.
        let held = held
            .checked_add(message.amount)
            .filter(|&held| held <= AMOUNT_MAX)
            .ok_or(RejectReason::Overflow)?;
        self.assets.list[message.asset.0 as usize].held = held;
        self.move_free(message.account, message.asset, message.amount, outbox);
        Ok(())
    }

    pub(super) fn withdraw(
        &mut self,
        message: &Withdraw,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let held = self.movable(message.account, message.asset, message.amount)?;
        if message.amount > self.accounts.balance(message.account, message.asset).free.0 {
            return Err(RejectReason::InsufficientBalance.into());
        }
        self.assets.list[message.asset.0 as usize].held = held - message.amount;
        self.move_free(message.account, message.asset, -message.amount, outbox);
        Ok(())
    }

    /// Checks what both directions need; gives what the venue holds of the asset.
    fn movable(&self, account: AccountId, asset: AssetId, amount: i64) -> Result<i64, Reject> {
        self.accounts.get(account).ok_or(RejectReason::UnknownAccount)?;
        let held = self.assets.get(asset).ok_or(RejectReason::UnknownAsset)?.held;
        if amount <= 0 {
            return Err(RejectReason::InvalidQuantity.into());
        }
        Ok(held)
    }

    fn move_free(
        &mut self,
        account: AccountId,
        asset: AssetId,
        amount: i64,
        outbox: &mut Outbox<'_>,
    ) {
        let balance = self.accounts.balance_mut(account, asset);
        balance.free.0 += amount;
        let (free, locked) = (balance.free.0, balance.locked.0);
        outbox.push(&Done { free, locked, ..Default::default() });
    }
}
