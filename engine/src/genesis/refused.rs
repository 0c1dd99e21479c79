//! What the core refuses of a definition that is tried out, in words, and which entry of `venue.toml` it is about.
//! Called by [`super`].

use super::{bounds_of, key_of, no_memory};
use crate::config::ConfigError;
use touchline_core::{Core, Reject};
use touchline_protocol::message::command::Deposit;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::RejectReason;

/// How many entries of each list were taken so far: the next command of the kind is about the one behind them.
#[derive(Clone, Copy, Default)]
pub(super) struct Taken {
    assets: usize,
    symbols: usize,
    accounts: usize,
}

impl Taken {
    /// Notes a command that the core has taken.
    pub(super) const fn note(&mut self, command: &Command<'_>) {
        match command {
            Command::DefineAsset(_) => self.assets += 1,
            Command::DefineSymbol(_) => self.symbols += 1,
            Command::CreateAccount(_) => self.accounts += 1,
            _ => {}
        }
    }

    /// What is wrong with `command`, which `core` refuses.
    pub(super) fn refused(self, core: &Core, command: &Command<'_>, reject: Reject) -> ConfigError {
        let Reject { reason, detail, .. } = reject;
        let (section, entry) = match command {
            Command::DefineAsset(_) => ("assets", self.assets),
            Command::DefineSymbol(_) => ("symbols", self.symbols),
            Command::CreateAccount(_) => ("accounts", self.accounts),
            // These follow their account.
            Command::Deposit(_) | Command::CreateKey(_) => {
                ("accounts", self.accounts.saturating_sub(1))
            }
            _ => return ConfigError::of("definition", told(core, command, reject)),
        };
        let named = key_of(command, reason, detail).filter(|key| !key.starts_with("limits"));
        let key = match (command, named) {
            (Command::Deposit(deposit), _) => format!("balances.{}", asset_name(core, deposit)),
            (Command::CreateKey(_), _) => "keys".to_owned(),
            (_, named) => named.unwrap_or("name").to_owned(),
        };
        ConfigError::of_entry(section, entry, &key, told(core, command, reject))
    }
}

/// The reject with what can be done about it.
fn told(core: &Core, command: &Command<'_>, reject: Reject) -> String {
    let Reject { reason, detail, .. } = reject;
    if let Some(told) = no_memory(command, reason, detail) {
        return told;
    }
    let key = key_of(command, reason, detail);
    let shown = key.map(|key| format!(", {key}")).unwrap_or_default();
    let why = why(command, reason, key).map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} is rejected: {reason:?} (detail {detail}){shown}{why}", subject(core, command))
}

/// What a value must be that was refused, where that is not in the name of the reason.
fn why(
    command: &Command<'_>,
    reason: RejectReason,
    key: Option<&'static str>,
) -> Option<&'static str> {
    Some(match (reason, key) {
        (RejectReason::AlreadyDefined, _) => match command {
            Command::CreateAccount(_) => {
                "the name occurs twice, or is that of the venue's own account for fees"
            }
            _ => "the name occurs twice",
        },
        (RejectReason::CapacityReached, _) => "there are more entries than it allows, so raise it",
        (RejectReason::InvalidQuantity, _) => "a balance is more than 0; leave out what is none",
        (RejectReason::Overflow, _) => {
            "all balances of an asset together are more than a venue can hold"
        }
        (RejectReason::InvalidDefinition, Some(key)) => return bounds_of(key),
        _ => return None,
    })
}

/// A command of a definition, with the names of what it makes or is about, as the venue has them so far.
fn subject(core: &Core, command: &Command<'_>) -> String {
    let account_name = |id| core.account(id).map(|account| account.name.to_string());
    let name = match command {
        Command::DefineAsset(message) => message.name.to_string(),
        Command::DefineSymbol(message) => message.name.to_string(),
        Command::CreateAccount(message) => message.name.to_string(),
        Command::Deposit(deposit) => {
            let account = account_name(deposit.account).unwrap_or_default();
            let asset = asset_name(core, deposit);
            return format!("{} of {asset:?} for {account:?}", command.name());
        }
        Command::CreateKey(message) => account_name(message.account).unwrap_or_default(),
        _ => return command.name().to_owned(),
    };
    format!("{} of {name:?}", command.name())
}

fn asset_name(core: &Core, deposit: &Deposit) -> String {
    core.asset(deposit.asset).map(|asset| asset.name.to_string()).unwrap_or_default()
}
