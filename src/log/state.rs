//! `touchline log state`: what a venue is at the end of its log: its assets, symbols, accounts with their balances,
//! and keys. Called by [`super`].

use super::Pass;
use super::check::progress;
use crate::admin::{KINDS, PERMISSIONS, STATUSES};
use crate::{notice, pruned};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use touchline_engine::inspect::Replica;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW,
};
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{AccountId, Amount, AssetId, KeyId, SymbolId};

/// What an account may do (spot contract §4, account information).
const MAY: [(&str, u8); 3] = [
    ("trade", ACCOUNT_CAN_TRADE),
    ("withdraw", ACCOUNT_CAN_WITHDRAW),
    ("deposit", ACCOUNT_CAN_DEPOSIT),
];

pub(super) fn run(data: &Path, json: bool) -> Result<ExitCode> {
    let mut reader = LogReader::open(data, Follow::Durable)?;
    let mut replica = pruned::newest_replica(data, &mut reader)?;
    let mut pass = Pass::judging(reader, data)?;
    let mut progress = progress("read");
    while let Some(transaction) = pass.next()? {
        if let Err(why) = replica.apply(&transaction) {
            bail!("position {}: {why}; `touchline log replay` tells more", transaction.position());
        }
        progress(transaction.end());
    }
    let counts = replica.core().counts();
    let all = [venue(&replica)]
        .into_iter()
        .chain((0..counts.assets).filter_map(|n| asset(&replica, n)))
        .chain((0..counts.symbols).filter_map(|n| symbol(&replica, n)))
        .chain((0..counts.accounts).filter_map(|n| account(&replica, n)))
        .chain((1..=counts.keys).filter_map(|n| key(&replica, n)));
    for Line { text, object } in all {
        if json {
            notice::say!("{object}");
        } else {
            notice::say!("{text}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One thing, both ways.
struct Line {
    text: String,
    object: Value,
}

fn venue(replica: &Replica) -> Line {
    let (core, position) = (replica.core(), replica.position());
    let (rules, counts, hash) = (core.rules(), core.counts(), core.state_hash());
    Line {
        text: format!(
            "venue    at position {position}: rules {rules}, {} open orders, {} records, state hash {hash:016x}",
            counts.open_orders, counts.records
        ),
        object: json!({
            "kind": "venue", "position": position.0, "rules": rules,
            "openOrders": counts.open_orders, "records": counts.records,
            "stateHash": format!("{hash:016x}"),
        }),
    }
}

fn asset(replica: &Replica, number: u32) -> Option<Line> {
    let core = replica.core();
    let asset = core.asset(AssetId(number))?;
    let (name, held) = (asset.name, asset.held);
    Some(Line {
        text: format!("asset    {number} {name}: {} decimals, {held} held", asset.precision),
        object: json!({
            "kind": "asset", "number": number, "name": name.as_str(),
            "precision": asset.precision, "held": held.to_string(),
        }),
    })
}

fn symbol(replica: &Replica, number: u32) -> Option<Line> {
    let core = replica.core();
    let id = SymbolId(number);
    let symbol = core.symbol(id)?;
    let name_of = |asset| core.asset(asset).map(|asset| asset.name.as_str().to_owned());
    let (base, quote) = (name_of(symbol.base)?, name_of(symbol.quote)?);
    let (status, _) = STATUSES.iter().find(|(_, status)| *status == symbol.status)?;
    let best = |side| core.best(id, side).map(|price| price.to_string());
    let (bid, ask) = (best(Side::Buy), best(Side::Sell));
    let shown = |price: &Option<String>| price.clone().unwrap_or_else(|| "none".to_owned());
    Some(Line {
        text: format!(
            "symbol   {number} {}: {status}, {base} for {quote}, bid {}, ask {}",
            symbol.name,
            shown(&bid),
            shown(&ask)
        ),
        object: json!({
            "kind": "symbol", "number": number, "name": symbol.name.as_str(), "status": status,
            "base": base, "quote": quote, "bid": bid, "ask": ask,
            "permissions": named(&PERMISSIONS, symbol.permissions),
        }),
    })
}

fn account(replica: &Replica, number: u32) -> Option<Line> {
    let core = replica.core();
    let id = AccountId(number);
    let account = core.account(id)?;
    let may = named(&MAY, account.flags);
    let permissions = named(&PERMISSIONS, account.permissions);
    let has = |amount: Amount| amount.0 != 0;
    let balances: Vec<_> = (0..core.counts().assets)
        .map(AssetId)
        .filter_map(|asset| Some((core.asset(asset)?.name, core.balance(id, asset)?)))
        .filter(|(_, balance)| has(balance.free) || has(balance.locked))
        .collect();
    let killed = if account.killed { ", killed" } else { "" };
    let held: Vec<_> = balances
        .iter()
        .map(|(asset, balance)| {
            format!("; {asset} {} free, {} locked", balance.free, balance.locked)
        })
        .collect();
    let rate = |rate| Amount(rate).to_string();
    Some(Line {
        text: format!(
            "account  {number} {}: may {}, {}, maker {}, taker {}{killed}{}",
            account.name,
            listed(&may, "nothing"),
            listed(&permissions, "no permission"),
            rate(account.maker_rate),
            rate(account.taker_rate),
            held.concat()
        ),
        object: json!({
            "kind": "account", "number": number, "name": account.name.as_str(), "may": may,
            "permissions": permissions, "killed": account.killed,
            "makerRate": rate(account.maker_rate), "takerRate": rate(account.taker_rate),
            "buyerRate": rate(account.buyer_rate), "sellerRate": rate(account.seller_rate),
            "balances": balances.iter().map(|(asset, balance)| json!({
                "asset": asset.as_str(),
                "free": balance.free.to_string(), "locked": balance.locked.to_string(),
            })).collect::<Vec<_>>(),
        }),
    })
}

fn key(replica: &Replica, number: u32) -> Option<Line> {
    let core = replica.core();
    let key = core.key(KeyId(number.into()))?;
    let kinds = named(&KINDS, key.permissions);
    let owner = core.account(key.account)?.name;
    let revoked = if key.revoked { ", revoked" } else { "" };
    Some(Line {
        text: format!("key      {number} of {owner}: {}{revoked}", listed(&kinds, "nothing")),
        object: json!({
            "kind": "key", "number": number, "account": owner.as_str(), "kinds": kinds,
            "revoked": key.revoked,
        }),
    })
}

/// The names of the bits that are set.
fn named(names: &[(&'static str, u8)], bits: u8) -> Vec<&'static str> {
    names.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect()
}

fn listed(names: &[&str], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.join(" ") }
}
