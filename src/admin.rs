//! `touchline admin`: provisions a running venue over an admin session. Every action is one logged
//! command and is reported once it is durable.

use crate::cli::{AdminAction, AdminArguments};
use crate::names::Names;
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use touchline_protocol::client::{
    Acknowledgement, Client, ClientCommand, ClientOptions, SOCKET_NAME,
};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::decimal;
use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW, CreateAccount, CreateKey,
    Deposit, KEY_ALL, PERMISSION_SPOT, SetRules,
};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::message::event::Done;
use touchline_protocol::text::Name;
use touchline_protocol::units::{Amount, KeyId};

const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn run(arguments: &AdminArguments) -> Result<()> {
    let data = &arguments.data.data;
    // One admin at a time: a second logon of the same session would cut the first one off.
    let _turn = take_turn(data)?;
    let (text, object) = match &arguments.action {
        AdminAction::Account { name, maker_rate, taker_rate } => {
            create_account(data, name, maker_rate, taker_rate)?
        }
        AdminAction::Deposit { account, asset, amount } => deposit(data, account, asset, amount)?,
        AdminAction::Key { account } => create_key(data, account)?,
        AdminAction::Rules { version } => set_rules(data, *version)?,
    };
    if arguments.json {
        println!("{object}");
    } else {
        println!("{text}");
    }
    Ok(())
}

fn take_turn(data: &Path) -> Result<File> {
    let path = data.join("admin.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot open {}: is there a venue?", path.display()))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn create_account(
    data: &Path,
    name: &str,
    maker_rate: &str,
    taker_rate: &str,
) -> Result<(String, serde_json::Value)> {
    let mut command = CreateAccount {
        name: Name::new(name)
            .filter(|name| name.is_valid() && !name.is_empty())
            .with_context(|| format!("name {name:?} is not 1 to 31 printable characters"))?,
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

fn deposit(
    data: &Path,
    account: &str,
    asset: &str,
    amount: &str,
) -> Result<(String, serde_json::Value)> {
    let amount = decimal_of("amount", amount)?;
    let names = Names::read(data)?;
    let mut command = Deposit {
        account: names.account(account)?,
        asset: names.asset(asset)?,
        amount,
        ..Default::default()
    };
    let done = send(data, &mut command)?;
    let (free, locked) = (Amount(done.free).to_string(), Amount(done.locked).to_string());
    Ok((
        format!("account {account} has {free} {asset} free, {locked} locked"),
        json!({"account": account, "asset": asset, "free": free, "locked": locked}),
    ))
}

fn create_key(data: &Path, account: &str) -> Result<(String, serde_json::Value)> {
    let master = MasterKey::load(&data.join("master.key"))?;
    let mut command = CreateKey {
        account: Names::read(data)?.account(account)?,
        permissions: KEY_ALL,
        ..Default::default()
    };
    let done = send(data, &mut command)?;
    let (key, secret) = (master.api_key(KeyId(done.id)), master.secret(KeyId(done.id)));
    Ok((
        format!("API_KEY={key}\nSECRET_KEY={secret}"),
        json!({"account": account, "number": done.id, "apiKey": key, "secretKey": secret}),
    ))
}

fn set_rules(data: &Path, version: u32) -> Result<(String, serde_json::Value)> {
    let mut command = SetRules { rules: version, ..Default::default() };
    send(data, &mut command)
        .with_context(|| format!("rules {version}: versions go up one by one, as far as known"))?;
    Ok((format!("the venue follows rules {version}"), json!({"rules": version})))
}

fn decimal_of(what: &str, text: &str) -> Result<i64> {
    decimal::parse(text.as_bytes()).with_context(|| format!("{what} {text:?}"))
}

fn send<C: ClientCommand>(data: &Path, command: &mut C) -> Result<Done> {
    let name = Name::new("admin").unwrap_or_default();
    let mut options = ClientOptions::new(data.join(SOCKET_NAME), Role::Admin, Lane::Cold, name);
    options.acknowledgement = Acknowledgement::Durable;
    let mut client = Client::connect(&options)?;
    let reply = client.call(command, LIMIT)?;
    match reply.event.event()? {
        Event::Done(done) => Ok(*done),
        other => bail!("the engine answered with {}", other.name()),
    }
}
