//! Who sends a command, and may it be sent: the checks that come before any family's own.

use super::{Context, Reject};
use crate::Core;
use crate::rights::Family;
use crate::sessions::Sessions;
use touchline_protocol::message::command::{ACCOUNT_CAN_TRADE, CommandHeader};
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::units::{AccountId, KeyId, Sequence, SessionId};

const fn family(command: &Command<'_>) -> Family {
    match command {
        Command::NewOrder(_)
        | Command::CancelOrder(_)
        | Command::CancelOrderNamed(_)
        | Command::ReduceOrder(_)
        | Command::ReplaceOrder(_)
        | Command::CancelReplace(_)
        | Command::PlaceOrderList(_)
        | Command::CancelOrderList(_)
        | Command::CancelAll(_)
        | Command::MassCancel(_) => Family::Hot,
        Command::KillAccount(_) => Family::Admin,
        Command::SetRules(_)
        | Command::SetLimits(_)
        | Command::DefineAsset(_)
        | Command::DefineSymbol(_)
        | Command::SetSymbolStatus(_)
        | Command::CreateAccount(_)
        | Command::Deposit(_)
        | Command::Withdraw(_)
        | Command::CreateKey(_)
        | Command::RevokeKey(_)
        | Command::ExpireAll(_)
        | Command::SetAccount(_)
        | Command::SetFees(_)
        | Command::ChangeSymbol(_)
        | Command::SetVenueFilters(_)
        | Command::SetRecordLimits(_)
        | Command::PutRecord(_)
        | Command::DeleteRecord(_) => Family::Cold,
        Command::EngineStarted(_)
        | Command::Logon(_)
        | Command::ConnectionEnded(_)
        | Command::RunPending(_) => Family::Engine,
    }
}

/// The first rules version that has a command.
const fn least_rules(command: &Command<'_>) -> u32 {
    match command {
        Command::SetRules(_)
        | Command::SetLimits(_)
        | Command::EngineStarted(_)
        | Command::Logon(_)
        | Command::ConnectionEnded(_) => 0,
        Command::NewOrder(_)
        | Command::CancelOrder(_)
        | Command::CancelOrderNamed(_)
        | Command::ReduceOrder(_)
        | Command::DefineAsset(_)
        | Command::DefineSymbol(_)
        | Command::SetSymbolStatus(_)
        | Command::CreateAccount(_)
        | Command::Deposit(_)
        | Command::Withdraw(_)
        | Command::CreateKey(_)
        | Command::RevokeKey(_)
        | Command::RunPending(_) => 1,
        Command::SetVenueFilters(_)
        | Command::PlaceOrderList(_)
        | Command::CancelOrderList(_)
        | Command::ReplaceOrder(_)
        | Command::CancelReplace(_)
        | Command::CancelAll(_)
        | Command::MassCancel(_)
        | Command::KillAccount(_)
        | Command::ExpireAll(_)
        | Command::SetAccount(_)
        | Command::SetFees(_)
        | Command::ChangeSymbol(_)
        | Command::SetRecordLimits(_)
        | Command::PutRecord(_)
        | Command::DeleteRecord(_) => 2,
    }
}

/// Notes at whoever sent a command that it was accepted.
#[inline(always)]
pub(super) fn note_sequence(
    sessions: &mut Sessions,
    engine_sequence: &mut Sequence,
    header: &CommandHeader,
) {
    match sessions.get_mut(header.session) {
        Some(session) => session.last_sequence = header.sequence,
        None => note_engine_sequence(engine_sequence, header.sequence),
    }
}

/// As [`note_sequence`], of the engine's own commands, of which some have no number, which is then 0.
#[cold]
fn note_engine_sequence(engine_sequence: &mut Sequence, sequence: Sequence) {
    *engine_sequence = sequence.max(*engine_sequence);
}

impl Core {
    /// Session, epoch, sequence, role, lane, rules version, not-after, and the key of cold commands.
    pub(super) fn check_sender(
        &self,
        context: &Context,
        command: &Command<'_>,
    ) -> Result<(), Reject> {
        let header = command.header();
        let family = family(command);
        if header.session == SessionId::ENGINE {
            if header.sequence.0 != 0 && header.sequence <= self.engine_sequence {
                return Err(RejectReason::DuplicateSequence.into());
            }
        } else {
            let session = self.sessions.get(header.session).ok_or(RejectReason::UnknownSession)?;
            if header.epoch != session.epoch {
                return Err(RejectReason::StaleEpoch.into());
            }
            if header.sequence <= session.last_sequence {
                return Err(RejectReason::DuplicateSequence.into());
            }
            if !session.may_send(family, header.key_id) {
                return Err(RejectReason::RoleNotPermitted.into());
            }
        }
        // Before rules are set nothing but what a start needs is taken.
        if self.rules < least_rules(command) {
            return Err(RejectReason::UnexpectedMessage.into());
        }
        if header.not_after_ns != 0 && context.time_ns > header.not_after_ns {
            return Err(RejectReason::TooLate.into());
        }
        // Hot commands look their key up by `trading_account`; the engine's logon has checks of its own.
        if matches!(family, Family::Cold | Family::Admin) && header.key_id != KeyId(0) {
            self.keys.live(header.key_id).ok_or(RejectReason::UnknownKey)?;
        }
        Ok(())
    }

    /// The account that an order or cancel is for, if all that [`check_sender`](Self::check_sender) and
    /// [`trading_account`](Self::trading_account) look at is in order.
    #[inline(never)]
    pub(super) fn plain_sender(
        &self,
        context: &Context,
        header: &CommandHeader,
    ) -> Option<AccountId> {
        let Some(session) = self.sessions.get(header.session) else {
            return self.account_of_engine(context, header);
        };
        if header.epoch != session.epoch
            || header.sequence <= session.last_sequence
            || !session.may_send(Family::Hot, header.key_id)
        {
            return None;
        }
        // One less, so that 0 becomes the last time there is.
        let last_ns = header.not_after_ns.wrapping_sub(1);
        if self.rules == 0
            || context.time_ns < self.last_time_ns
            || context.time_ns.wrapping_sub(1) > last_ns
        {
            return None;
        }
        let key = self.keys.live(header.key_id)?;
        let lacking = session.rights.key_permission & !key.permissions;
        let flags = self.accounts.get(key.account)?.flags;
        (lacking == 0 && flags & ACCOUNT_CAN_TRADE != 0).then_some(key.account)
    }

    /// As [`plain_sender`](Self::plain_sender), of an order or cancel of the engine's own.
    #[cold]
    fn account_of_engine(&self, context: &Context, header: &CommandHeader) -> Option<AccountId> {
        let is_next = header.sequence.0 == 0 || header.sequence > self.engine_sequence;
        let is_late = header.not_after_ns != 0 && context.time_ns > header.not_after_ns;
        let is_in_order = header.session == SessionId::ENGINE && is_next && !is_late;
        if !is_in_order || self.rules == 0 || context.time_ns < self.last_time_ns {
            return None;
        }
        self.trading_account(header).ok()
    }

    /// The account that an order or cancel is for: its key lives and is permitted the session's way in,
    /// and the account may trade. The engine itself needs no permission of the key.
    #[inline(always)]
    pub(super) fn trading_account(&self, header: &CommandHeader) -> Result<AccountId, Reject> {
        let key = self.keys.live(header.key_id).ok_or(RejectReason::UnknownKey)?;
        let session = self.sessions.get(header.session);
        let key_permission = session.map_or(0, |session| session.rights.key_permission);
        if key.permissions & key_permission != key_permission {
            return Err(RejectReason::KeyNotPermitted.into());
        }
        if self.accounts.list[key.account.0 as usize].flags & ACCOUNT_CAN_TRADE == 0 {
            return Err(RejectReason::AccountCannotTrade.into());
        }
        Ok(key.account)
    }
}
