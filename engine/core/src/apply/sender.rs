//! Who sends a command, and may it be sent: the checks that come before any family's own.

use super::{Context, Reject};
use crate::Core;
use crate::sessions::Session;
use touchline_protocol::message::command::{
    ACCOUNT_CAN_TRADE, CommandHeader, KEY_BINARY, KEY_TRADE,
};
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::{Lane, RejectReason, Role};
use touchline_protocol::units::{AccountId, KeyId, SessionId};

/// Who may send a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Orders and cancels: the hot lane.
    Hot,
    /// Definitions and money movements: the cold lane.
    Cold,
    /// The kill switch: an admin's, of either lane.
    Admin,
    /// The engine alone.
    Engine,
}

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

impl Core {
    /// Session, epoch, sequence, role, lane, rules version, not-after, and the key of cold commands.
    #[inline(always)]
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
            if !may_send(session, family, header.key_id) {
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

    /// The account that an order or cancel is for: its key lives and is permitted the session's way in,
    /// and the account may trade. The engine itself needs no permission of the key.
    #[inline(always)]
    pub(super) fn trading_account(&self, header: &CommandHeader) -> Result<AccountId, Reject> {
        let key = self.keys.live(header.key_id).ok_or(RejectReason::UnknownKey)?;
        let needed = match self.sessions.get(header.session).map(|session| session.role) {
            None => 0,
            Some(Role::Adapter) => KEY_TRADE,
            Some(_) => KEY_BINARY,
        };
        if key.permissions & needed != needed {
            return Err(RejectReason::KeyNotPermitted.into());
        }
        if self.accounts.list[key.account.0 as usize].flags & ACCOUNT_CAN_TRADE == 0 {
            return Err(RejectReason::AccountCannotTrade.into());
        }
        Ok(key.account)
    }
}

/// The families of a session by role and lane, a bit each. Beside the adapter everybody sends with the key
/// that opened the session, or without any.
const fn families(role: Role, lane: Lane) -> u8 {
    let of_lane = match lane {
        Lane::Hot => Family::Hot,
        Lane::Cold => Family::Cold,
    };
    match (role, lane) {
        (Role::Adapter, _) | (Role::Trader, Lane::Hot) => 1 << of_lane as u8,
        (Role::Admin, Lane::Hot) => 1 << Family::Admin as u8,
        (Role::Admin, Lane::Cold) => 1 << Family::Admin as u8 | 1 << Family::Cold as u8,
        (Role::Trader, Lane::Cold) | (Role::ReadOnly, _) => 0,
    }
}

#[inline(always)]
fn may_send(session: &Session, family: Family, key_id: KeyId) -> bool {
    families(session.role, session.lane) & 1 << family as u8 != 0
        && (key_id == session.key_id || session.role == Role::Adapter)
}
