//! Accounts: creating them, moving money, what they may do and what they pay. Called by `admin`.

use super::{Answer, Report, call, decimal_of, permission_bits, send};
use crate::cli::Movement;
use crate::names::Names;
use anyhow::{Context, Result};
use serde_json::json;
use std::path::Path;
use touchline_engine::genesis::{ACCOUNT_NAME, account_name};
use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW, CreateAccount, Deposit, EVERY,
    KillAccount, PERMISSION_SPOT, SetAccount, SetFees, Withdraw,
};
use touchline_protocol::message::event::Done;
use touchline_protocol::units::{AccountId, Amount, SymbolId};

pub(super) fn create(
    data: &Path,
    name: &str,
    maker_rate: &str,
    taker_rate: &str,
) -> Result<Report> {
    let mut command = CreateAccount {
        name: account_name(name).with_context(|| format!("name {name:?} is not {ACCOUNT_NAME}"))?,
        maker_rate: decimal_of("--maker-rate", maker_rate)?,
        taker_rate: decimal_of("--taker-rate", taker_rate)?,
        flags: ACCOUNT_CAN_TRADE | ACCOUNT_CAN_WITHDRAW | ACCOUNT_CAN_DEPOSIT,
        permissions: PERMISSION_SPOT,
        ..Default::default()
    };
    let done = send(data, &mut command)?;
    Ok((
        format!("account {name} has number {}", done.id),
        json!({"account": name, "number": done.id}),
    ))
}

pub(super) fn deposit(data: &Path, movement: &Movement) -> Result<Report> {
    let amount = decimal_of("amount", &movement.amount)?;
    let names = Names::read(data)?;
    let mut command = Deposit {
        account: names.holder(&movement.account)?,
        asset: names.asset(&movement.asset)?,
        amount,
        ..Default::default()
    };
    Ok(balance(movement, &send(data, &mut command)?))
}

pub(super) fn withdraw(data: &Path, movement: &Movement) -> Result<Report> {
    let amount = decimal_of("amount", &movement.amount)?;
    let names = Names::read(data)?;
    let mut command = Withdraw {
        account: names.holder(&movement.account)?,
        asset: names.asset(&movement.asset)?,
        amount,
        ..Default::default()
    };
    Ok(balance(movement, &send(data, &mut command)?))
}

fn balance(movement: &Movement, done: &Done) -> Report {
    let Movement { account, asset, .. } = movement;
    let (free, locked) = (Amount(done.free).to_string(), Amount(done.locked).to_string());
    (
        format!("account {account} has {free} {asset} free, {locked} locked"),
        json!({"account": account, "asset": asset, "free": free, "locked": locked}),
    )
}

pub(super) fn can_trade(data: &Path, account: &str, may: bool) -> Result<Report> {
    let names = Names::read(data)?;
    let mut command = names.account_settings(account)?;
    let is_killed = names.is_killed(command.account);
    command.flags &= !ACCOUNT_CAN_TRADE;
    if may {
        command.flags |= ACCOUNT_CAN_TRADE;
    }
    send(data, &mut command)?;
    let verb = if may { "may" } else { "may not" };
    // Each of the two holds without the other.
    let though = if may && is_killed { ", once it is killed no more: see unkill" } else { "" };
    Ok((
        format!("account {account} {verb} trade{though}"),
        json!({"account": account, "canTrade": may, "killed": is_killed}),
    ))
}

pub(super) fn permissions(data: &Path, account: &str, permissions: &str) -> Result<Report> {
    let bits = permission_bits(permissions)?;
    let settings = Names::read(data)?.account_settings(account)?;
    let mut command = SetAccount { permissions: bits, ..settings };
    send(data, &mut command)?;
    Ok((
        format!("account {account} has the permissions {permissions:?}"),
        json!({"account": account, "permissions": permissions}),
    ))
}

/// Without rates what was set for the symbol or the pair is withdrawn.
pub(super) fn fees(
    data: &Path,
    rates: Option<[&String; 4]>,
    account: Option<&str>,
    symbol: Option<&str>,
) -> Result<Report> {
    let names = Names::read(data)?;
    let parsed = match rates {
        None => [-1; 4],
        Some(rates) => {
            let mut parsed = [0; 4];
            for (rate, text) in parsed.iter_mut().zip(rates) {
                *rate = decimal_of("rate", text)?;
            }
            parsed
        }
    };
    let [maker_rate, taker_rate, buyer_rate, seller_rate] = parsed;
    let mut command = SetFees {
        account: account.map_or(Ok(AccountId(EVERY)), |name| names.account(name))?,
        symbol: symbol.map_or(Ok(SymbolId(EVERY)), |name| names.symbol(name))?,
        maker_rate,
        taker_rate,
        buyer_rate,
        seller_rate,
        ..Default::default()
    };
    send(data, &mut command)?;
    let whose = match (account, symbol) {
        (Some(account), Some(symbol)) => format!("account {account} on {symbol}"),
        (Some(account), None) => format!("account {account}"),
        (None, symbol) => symbol.unwrap_or_default().to_owned(),
    };
    let text = match rates {
        None => format!("the fees of {whose} are withdrawn"),
        Some([maker, taker, buyer, seller]) => {
            format!("{whose} pays maker {maker}, taker {taker}, buyer {buyer}, seller {seller}")
        }
    };
    Ok((text, json!({"account": account, "symbol": symbol, "rates": rates})))
}

pub(super) fn kill(data: &Path, account: &str, killed: bool) -> Result<Report> {
    let mut command = KillAccount {
        account: Names::read(data)?.account(account)?,
        killed: killed.into(),
        ..Default::default()
    };
    let (orders, lists) = match call(data, &mut command)? {
        Answer::Done(_) => (0, 0),
        Answer::MassCanceled(canceled) => (canceled.orders, canceled.lists),
    };
    let text = if killed {
        format!("account {account} is killed: {orders} orders were ended")
    } else {
        format!("account {account} is killed no more")
    };
    Ok((text, json!({"account": account, "killed": killed, "orders": orders, "lists": lists})))
}
