//! `touchline admin`: operates a running venue over an admin session. Every action is one logged command and is
//! reported once it is durable; but the addresses of keys and the keys of tokens are files of the adapters, and
//! `show-key` changes nothing and asks no engine.

mod accounts;
mod keys;
mod symbols;
mod turn;

pub(crate) use keys::KINDS;
pub(crate) use symbols::STATUSES;

use crate::cli::{AdminAction, AdminArguments};
use crate::owner::check_is_own;
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use touchline_engine::genesis::{RULES, bounds_of, key_of};
use touchline_protocol::client::{
    Acknowledgement, CallError, Client, ClientCommand, ClientOptions, SOCKET_NAME,
};
use touchline_protocol::decimal;
use touchline_protocol::message::command::{
    PERMISSION_LEVERAGED, PERMISSION_MARGIN, PERMISSION_SPOT, PERMISSION_TRADE_GROUP_2, SetRules,
};
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::enums::{Lane, RejectReason, Role};
use touchline_protocol::message::event::{Done, MassCanceled};
use touchline_protocol::text::Name;

/// A kill or an expiry of very many orders takes many transactions.
const LIMIT: Duration = Duration::from_secs(30);

/// What an action did: for people, and as an object.
type Report = (String, Value);

pub(crate) fn run(arguments: &AdminArguments) -> Result<()> {
    let data = &arguments.data;
    check_is_venue(data)?;
    check_is_own(data)?;
    let _turn = turn::take(data, turn::PATIENCE)?;
    let (text, object) = perform(data, &arguments.action)?;
    let report = if arguments.json { object.to_string() } else { text };
    // A key that nobody is shown is of no use, so this is told, unlike other lines that are not heard.
    writeln!(io::stdout(), "{report}").with_context(|| {
        let number = object["number"].as_u64().map(|number| format!(": its number is {number}"));
        let number = number.unwrap_or_default();
        format!("it was done, but what came of it cannot be printed{number}")
    })
}

fn perform(data: &Path, action: &AdminAction) -> Result<Report> {
    match action {
        AdminAction::Account { name, maker_rate, taker_rate } => {
            accounts::create(data, name, maker_rate, taker_rate)
        }
        AdminAction::Deposit(movement) => accounts::deposit(data, movement),
        AdminAction::Withdraw(movement) => accounts::withdraw(data, movement),
        AdminAction::CanTrade { account, may } => accounts::can_trade(data, account, *may),
        AdminAction::Permissions { account, permissions } => {
            accounts::permissions(data, account, permissions)
        }
        AdminAction::Fees { maker, taker, buyer, seller, account, symbol, .. } => {
            let rates = match (maker, taker) {
                (Some(maker), Some(taker)) => Some([maker, taker, buyer, seller]),
                _ => None,
            };
            accounts::fees(data, rates, account.as_deref(), symbol.as_deref())
        }
        AdminAction::Kill { account } => accounts::kill(data, account, true),
        AdminAction::Unkill { account } => accounts::kill(data, account, false),
        AdminAction::Key { account, kinds, addresses } => {
            keys::create(data, account, kinds, addresses.as_deref())
        }
        AdminAction::ShowKey { key } => keys::show(data, key),
        AdminAction::RevokeKey { key } => keys::revoke(data, key),
        AdminAction::KeyAddresses { key, networks } => keys::set_addresses(data, key, networks),
        AdminAction::Asset { name, precision } => symbols::define_asset(data, name, *precision),
        AdminAction::Symbol(action) => symbols::perform(data, action),
        AdminAction::Exchange { max_orders, max_algo_orders } => {
            symbols::set_exchange_filters(data, *max_orders, *max_algo_orders)
        }
        AdminAction::TokenKey { revoke } => keys::replace_token_key(data, *revoke),
        AdminAction::Rules { version } => set_rules(data, *version),
    }
}

/// What the first start of an engine leaves: without it there is no venue to operate.
const MASTER_KEY_FILE: &str = "master.key";

fn check_is_venue(data: &Path) -> Result<()> {
    let has_key = data
        .join(MASTER_KEY_FILE)
        .try_exists()
        .with_context(|| format!("cannot look into {}", data.display()))?;
    ensure!(
        has_key || touchline_engine::has_log(data)?,
        "{} holds no venue: is it the right folder?",
        data.display()
    );
    Ok(())
}

fn set_rules(data: &Path, version: u32) -> Result<Report> {
    let mut command = SetRules { rules: version, ..Default::default() };
    send(data, &mut command).with_context(|| format!("rules {version}"))?;
    Ok((format!("the venue follows rules {version}"), json!({"rules": version})))
}

fn decimal_of(what: &str, text: &str) -> Result<i64> {
    decimal::parse(text.as_bytes()).with_context(|| format!("{what} {text:?}"))
}

/// The permissions of accounts and symbols (spot contract §2 Enumerations).
pub(crate) const PERMISSIONS: [(&str, u8); 4] = [
    ("SPOT", PERMISSION_SPOT),
    ("MARGIN", PERMISSION_MARGIN),
    ("LEVERAGED", PERMISSION_LEVERAGED),
    ("TRD_GRP_002", PERMISSION_TRADE_GROUP_2),
];

/// Bits of the permissions with these names, commas between.
fn permission_bits(text: &str) -> Result<u8> {
    bits("permission", &PERMISSIONS, text)
}

/// The bits of the names in a list with commas.
fn bits(what: &str, names: &[(&str, u8)], text: &str) -> Result<u8> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).try_fold(0, |bits, name| {
        let found = names.iter().find(|(known, _)| *known == name);
        let (_, bit) = found.with_context(|| {
            let known: Vec<_> = names.iter().map(|(known, _)| *known).collect();
            format!("{what} {name:?} is none of {}", known.join(", "))
        })?;
        Ok(bits | bit)
    })
}

/// Sends a command that one thing comes of.
fn send<C: ClientCommand>(data: &Path, command: &mut C) -> Result<Done> {
    match call(data, command)? {
        Answer::Done(done) => Ok(done),
        Answer::MassCanceled(_) => bail!("the engine answered with MassCanceled"),
    }
}

/// The engine's last word.
enum Answer {
    Done(Done),
    MassCanceled(MassCanceled),
}

fn call<C: ClientCommand>(data: &Path, command: &mut C) -> Result<Answer> {
    let name = Name::new("admin").unwrap_or_default();
    let mut options = ClientOptions::new(data.join(SOCKET_NAME), Role::Admin, Lane::Cold, name);
    options.acknowledgement = Acknowledgement::Durable;
    let mut client = Client::connect(&options)?;
    let reply = client.call(command, LIMIT).map_err(|error| named(error, command.as_bytes()))?;
    match reply.event.event()? {
        Event::Done(done) => Ok(Answer::Done(*done)),
        Event::MassCanceled(canceled) => Ok(Answer::MassCanceled(*canceled)),
        other => bail!("the engine answered with {}", other.name()),
    }
}

/// A reject says by a number what it is about, and little of what to do; for people, by its name and with a
/// way on, where there are any.
fn named(error: CallError, command: &[u8]) -> Error {
    let CallError::Rejected { reason, detail } = error else { return error.into() };
    let command = decode::command(command).ok();
    if let (Some(Command::SetRules(set)), RejectReason::LimitOutOfRange) = (&command, reason) {
        return anyhow!("{error}, {}", about_rules(set.rules));
    }
    let key = command.and_then(|command| key_of(&command, reason, detail));
    if let (Some(key), RejectReason::CapacityReached) = (key, reason) {
        return anyhow!(
            "{error}, {key}: it is used up; raise it in the settings and start the engine again"
        );
    }
    let bounds = key.filter(|_| reason == RejectReason::InvalidDefinition).and_then(bounds_of);
    match (key.or_else(|| way_on(reason)), bounds) {
        (Some(key), Some(bounds)) => anyhow!("{error}, {key}: {bounds}"),
        (Some(more), None) => anyhow!("{error}, {more}"),
        (None, _) => error.into(),
    }
}

/// Why an engine does not raise a venue to the rules that were asked for.
fn about_rules(asked: u32) -> String {
    let why = if asked > RULES {
        "this build knows none above that"
    } else {
        "the venue follows these or newer ones already, or not yet those before them (`touchline log state` tells \
         which it follows)"
    };
    format!("rules are raised one at a time, to {RULES} at the most: {why}")
}

/// What an operator can do about a reject that leaves that open.
const fn way_on(reason: RejectReason) -> Option<&'static str> {
    Some(match reason {
        RejectReason::SymbolInUse => {
            "steps of prices and quantities, and what they begin at, change only while the symbol is not TRADING \
             and has no open orders: see symbol status and symbol expire"
        }
        RejectReason::LogUnavailable => {
            "the disk is behind or has failed: the engine says which, and may be asked again if it is behind"
        }
        RejectReason::UnexpectedMessage => {
            "the venue follows older rules than this needs: see rules"
        }
        RejectReason::Quarantined => {
            "an engine has panicked of a command of an operator: move its file out of the data folder's poison/ and start \
             the engine again"
        }
        RejectReason::AlreadyDefined => "the name or number is taken",
        RejectReason::UnknownKey => "there is no such key, or it is revoked",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_protocol::message::command::CreateAccount;

    #[test]
    fn rules_that_are_not_the_next_ones_are_told_how_they_are_raised() {
        let told = |rules| {
            let command = SetRules { rules, ..Default::default() };
            let reason = RejectReason::LimitOutOfRange;
            named(CallError::Rejected { reason, detail: 0 }, command.as_bytes()).to_string()
        };
        let highest = format!("one at a time, to {RULES} at the most");
        for (rules, why) in [(RULES, "or newer ones already"), (RULES + 1, "knows none above")] {
            let told = told(rules);
            assert!(told.contains(&highest) && told.contains(why), "{told}");
        }
        let account = CreateAccount::default();
        let (reason, detail) = (RejectReason::CapacityReached, 2);
        let told = named(CallError::Rejected { reason, detail }, account.as_bytes()).to_string();
        assert!(told.contains("limits.accounts: it is used up; raise it"), "{told}");
        let command = SetRules { rules: 2, ..Default::default() };
        let (reason, detail) = (RejectReason::LogUnavailable, 0);
        let told = named(CallError::Rejected { reason, detail }, command.as_bytes()).to_string();
        assert!(told.contains("the disk") && !told.contains("one at a time"), "{told}");
    }

    #[test]
    fn permissions_are_named_by_lists() {
        assert_eq!(permission_bits("SPOT, TRD_GRP_002").unwrap(), 9);
        assert_eq!(permission_bits("").unwrap(), 0);
        let error = permission_bits("SPOT,spot").unwrap_err().to_string();
        assert_eq!(error, "permission \"spot\" is none of SPOT, MARGIN, LEVERAGED, TRD_GRP_002");
    }
}
