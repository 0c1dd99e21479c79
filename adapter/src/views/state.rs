//! The fold: one transaction of the log after the other becomes accounts, orders and books. Called
//! by the tailer alone.
//!
//! It is pure and deterministic: no clock, no thread, no file, and it knows none of the venue's
//! rules. Events say exactly what moved; where they say something twice, both must agree.

mod lookup;
mod orders;
mod saved;

use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::command::EVERY;
use touchline_protocol::message::decode::{Command, DecodeError, Event};
use touchline_protocol::message::enums::{Side, SymbolStatus};
use touchline_protocol::message::event::{Done, RecordPut};
use touchline_protocol::units::{AccountId, AssetId, SymbolId};

use super::accounts::{Accounts, Change, same_balance};
use super::error::{FoldError, not_negative, number, same};
use super::lists::Lists;
use super::orders::Orders;
use super::records::{self, Records};
use super::venue::Venue;
use crate::history::History;
pub use lookup::Sought;
#[doc(hidden)]
pub use saved::RawRow;
use saved::Saved;
pub use saved::{Archive, RestoreError};

/// The highest behaviour version that this build folds. A later one may move money or quantity in
/// ways that these events do not tell it.
pub const RULES_KNOWN: u32 = 8;

/// Everything that the views know.
#[derive(Debug, Clone)]
pub struct State {
    /// Assets, symbols, books, limits.
    pub venue: Venue,
    /// Accounts and keys.
    pub accounts: Accounts,
    /// Orders.
    pub orders: Orders,
    /// Order lists.
    pub lists: Lists,
    /// What other services than trading keep.
    pub records: Records,
    /// What has happened: trades, candles, ended orders and lists.
    pub history: History,
    /// Time of the last transaction, ns since the epoch; 0 before the first.
    pub time_ns: u64,
    /// False within a transaction, and for ever behind one that was not sound.
    is_whole: bool,
    saved: Saved,
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

/// What an event needs to know of its transaction.
#[derive(Clone, Copy)]
struct Scene<'a> {
    command: Command<'a>,
    time_ms: u64,
    /// Time of the transaction before.
    before_ms: u64,
}

impl State {
    /// Nothing but the fee account.
    #[must_use]
    pub fn new() -> Self {
        Self {
            venue: Venue::default(),
            accounts: Accounts::new(),
            orders: Orders::default(),
            lists: Lists::default(),
            records: Records::default(),
            history: History::default(),
            time_ns: 0,
            is_whole: true,
            saved: Saved::default(),
        }
    }

    /// Folds the next transaction of the log.
    ///
    /// # Errors
    /// As [`State::fold`].
    pub fn fold_transaction(&mut self, transaction: &Transaction<'_>) -> Result<(), FoldError> {
        let command = transaction.command()?;
        self.fold(transaction.time_ns(), command, transaction.events())?;
        self.history.folded(transaction);
        Ok(())
    }

    /// Folds one transaction: its time, its command and the events it caused.
    ///
    /// # Errors
    /// [`FoldError`] when it contradicts what was folded before; the state is of no use then.
    pub fn fold<'a>(
        &mut self,
        time_ns: u64,
        command: Command<'a>,
        events: impl Iterator<Item = Result<Event<'a>, DecodeError>>,
    ) -> Result<(), FoldError> {
        if time_ns < self.time_ns {
            return same("transaction time (ns)", time_ns, self.time_ns);
        }
        let [time_ms, before_ms] = [time_ns, self.time_ns].map(|ns| ns / 1_000_000);
        self.time_ns = time_ns;
        self.is_whole = false;
        let scene = Scene { command, time_ms, before_ms };
        self.command(command)?;
        for event in events {
            let event = event?;
            self.event(scene, event)?;
            self.saved.define(time_ns, command, Some(event));
        }
        self.saved.define(time_ns, command, None);
        self.is_whole = true;
        Ok(())
    }

    /// What a command does that no event of its own tells: its terminal event is that of the cancels
    /// that it causes.
    fn command(&mut self, command: Command<'_>) -> Result<(), FoldError> {
        match command {
            Command::KillAccount(kill) => self.accounts.kill(kill.account, kill.killed != 0),
            Command::RevokeKey(revoked) => self.accounts.revoke(revoked.key),
            _ => Ok(()),
        }
    }

    fn event(&mut self, scene: Scene<'_>, event: Event<'_>) -> Result<(), FoldError> {
        match event {
            Event::OrderAccepted(accepted) => self.accepted(scene, accepted),
            Event::Trade(trade) => self.trade(scene, trade),
            Event::OrderResult(result) => self.result(scene, result),
            Event::OrderCanceled(canceled) => self.canceled(scene, canceled),
            Event::OrderReduced(reduced) => self.reduced(scene, reduced),
            Event::OrderReplaced(replaced) => self.replaced(scene, replaced),
            Event::OrderContinues(continues) => self.continues(continues),
            Event::OrderTriggered(triggered) => self.triggered(scene, triggered),
            Event::OrderRefilled(refilled) => self.refilled(refilled),
            Event::OrderListChanged(changed) => self.list_changed(scene, changed),
            Event::SelfTradePrevented(prevented) => self.prevented(prevented),
            Event::Done(done) => self.done(scene, done),
            Event::RecordPut(put) => self.record_put(scene, put),
            Event::RecordDeleted(deleted) => self.records.delete(&deleted.id),
            Event::OrderValid(_)
            | Event::SessionStarted(_)
            | Event::SessionEnded(_)
            | Event::MassCanceled(_) => Ok(()),
            Event::Rejected(_)
            | Event::Gap(_)
            | Event::OrderOpened(_)
            | Event::OrderClosed(_)
            | Event::OrderFilled(_) => Err(unexpected(scene, event)),
        }
    }

    /// What a record carries stands in the command.
    fn record_put(&mut self, scene: Scene<'_>, put: &RecordPut) -> Result<(), FoldError> {
        let Command::PutRecord(sent) = scene.command else {
            return Err(unexpected(scene, Event::RecordPut(put)));
        };
        self.records.put(records::Put {
            id: put.id,
            owner: put.owner,
            kind: put.kind,
            version: put.version,
            unique_key: sent.unique_key,
            content: sent.content(),
            time_ms: scene.time_ms,
        })
    }

    fn done(&mut self, scene: Scene<'_>, done: &Done) -> Result<(), FoldError> {
        match scene.command {
            Command::SetRules(set) if set.rules > RULES_KNOWN => {
                Err(FoldError::Rules { found: set.rules, known: RULES_KNOWN })
            }
            Command::SetRules(_)
            | Command::SetRecordLimits(_)
            | Command::KillAccount(_)
            | Command::RevokeKey(_) => Ok(()),
            Command::EngineStarted(started) => {
                self.engine_started(scene, started.off_ms);
                Ok(())
            }
            Command::SetLimits(set) => {
                self.accounts.restart_windows(&self.venue.limits, &set.limits);
                self.venue.set_limits(set.limits);
                Ok(())
            }
            Command::DefineAsset(made) => self.venue.define_asset(made, done.id),
            Command::DefineSymbol(made) => self.venue.define_symbol(made, done.id),
            Command::SetSymbolStatus(set) => {
                let status = number("symbol status", set.status, SymbolStatus::from_wire)?;
                self.venue.set_status(set.symbol, status)?;
                let is_break = status == SymbolStatus::Break;
                self.history.status(set.symbol, is_break, scene.time_ms);
                Ok(())
            }
            Command::CreateAccount(made) => self.accounts.create(made, done.id),
            Command::CreateKey(made) => self.accounts.create_key(made, done.id),
            Command::SetAccount(set) => self.accounts.set(set),
            // What is set for a symbol, or for an account on one, no view shows.
            Command::SetFees(set) if set.symbol.0 != EVERY => Ok(()),
            Command::SetFees(set) => self.accounts.set_fees(set),
            Command::ChangeSymbol(changed) => self.venue.change_symbol(changed),
            Command::SetVenueFilters(set) => {
                self.venue.set_filters(set);
                Ok(())
            }
            Command::Deposit(moved) => {
                self.moved(scene, (moved.account, moved.asset, moved.amount), done)
            }
            Command::Withdraw(moved) => {
                not_negative(&[moved.amount])?;
                self.moved(scene, (moved.account, moved.asset, -moved.amount), done)
            }
            _ => Err(unexpected(scene, Event::Done(done))),
        }
    }

    /// No engine ran for so long before; for [`u32::MAX`], at least for so long. One did when the transaction before
    /// was made.
    fn engine_started(&mut self, scene: Scene<'_>, off_ms: u32) {
        let from_ms = match off_ms {
            0 => return,
            u32::MAX => scene.before_ms,
            off_ms => scene.time_ms.saturating_sub(off_ms.into()).max(scene.before_ms),
        };
        for symbol in self.venue.symbols() {
            self.history.was_off(symbol.id, from_ms, scene.time_ms);
        }
    }

    fn moved(
        &mut self,
        scene: Scene<'_>,
        (account, asset, free): (AccountId, AssetId, i64),
        done: &Done,
    ) -> Result<(), FoldError> {
        not_negative(&[done.free, done.locked])?;
        let after = self.accounts.change(
            Change { account, asset, free, locked: 0 },
            self.venue.assets().len(),
            scene.time_ms,
        )?;
        same_balance(after, done.free, done.locked)
    }

    fn assets(&self, symbol: SymbolId) -> Result<(AssetId, AssetId), FoldError> {
        let symbol = self.venue.symbol(symbol).ok_or(FoldError::UnknownSymbol(symbol))?;
        Ok((symbol.base, symbol.quote))
    }

    /// Holds `amount` for an order, or gives it back if it is negative: quote for a buy, base for a
    /// sell.
    fn lock(
        &mut self,
        scene: Scene<'_>,
        account: AccountId,
        symbol: SymbolId,
        side: Side,
        amount: i64,
    ) -> Result<(), FoldError> {
        let (base, quote) = self.assets(symbol)?;
        let asset = match side {
            Side::Buy => quote,
            Side::Sell => base,
        };
        if amount == i64::MIN {
            return Err(FoldError::Negative(amount));
        }
        self.change(scene, Change::lock(account, asset, amount))
    }

    fn unlock(
        &mut self,
        scene: Scene<'_>,
        account: AccountId,
        symbol: SymbolId,
        side: Side,
        amount: i64,
    ) -> Result<(), FoldError> {
        self.lock(scene, account, symbol, side, -amount)
    }

    fn change(&mut self, scene: Scene<'_>, change: Change) -> Result<(), FoldError> {
        if change.free == 0 && change.locked == 0 {
            return Ok(());
        }
        self.accounts.change(change, self.venue.assets().len(), scene.time_ms)?;
        Ok(())
    }
}

fn unexpected(scene: Scene<'_>, event: Event<'_>) -> FoldError {
    FoldError::Unexpected { event: event.name(), command: scene.command.name() }
}

#[cfg(test)]
mod tests;
