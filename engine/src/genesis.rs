//! The venue's definition as commands: what a new log begins with. Called once by the engine's
//! start; replay never reads configuration.
//!
//! The commands carry the sequences 1, 2, … of the engine's own session, so a first start that was
//! cut off goes on where it stopped.

use crate::config::{AccountSection, ConfigError, EngineConfig, SymbolSection};
use std::collections::HashMap;
use touchline_protocol::client::ClientCommand;
use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW, CreateAccount, CreateKey,
    DefineAsset, DefineSymbol, Deposit, KEY_ALL, PERMISSION_SPOT, SetLimits, SetRules,
    SymbolFilters,
};
use touchline_protocol::message::enums::{OrderType, SymbolStatus};
use touchline_protocol::text::{AssetName, Name, SymbolName};
use touchline_protocol::units::{AccountId, AssetId, Sequence};

/// The behaviour version that this build writes.
pub const RULES: u32 = 1;

/// Commands as bytes, in order, each 8-byte aligned.
#[derive(Default)]
pub struct Genesis {
    commands: Vec<Vec<u64>>,
}

impl Genesis {
    /// Makes the commands of `config`.
    ///
    /// # Errors
    /// Names the entry that contradicts another or is malformed.
    pub fn new(config: &EngineConfig) -> Result<Self, ConfigError> {
        let mut genesis = Self::default();
        genesis.push(SetRules { rules: RULES, ..Default::default() });
        genesis.push(SetLimits { limits: (&config.limits).into(), ..Default::default() });
        let mut assets = HashMap::new();
        for (index, asset) in config.assets.iter().enumerate() {
            let name = AssetName::new(&asset.name)
                .filter(|name| name.is_valid() && !name.is_empty())
                .ok_or_else(|| wrong("assets.name", &asset.name, "1 to 15 printable characters"))?;
            if assets.insert(asset.name.as_str(), AssetId(index as u32)).is_some() {
                return Err(wrong("assets.name", &asset.name, "a name that occurs once"));
            }
            genesis.push(DefineAsset { name, precision: asset.precision, ..Default::default() });
        }
        for symbol in &config.symbols {
            genesis.push(define_symbol(symbol, &assets)?);
        }
        for (index, account) in config.accounts.iter().enumerate() {
            genesis.account(AccountId(index as u32 + 1), account, &assets)?;
        }
        Ok(genesis)
    }

    /// The commands behind the first `done`, as messages in 8-byte aligned words.
    pub fn remaining(&self, done: Sequence) -> impl Iterator<Item = &[u8]> {
        let done = usize::try_from(done.0).unwrap_or(usize::MAX);
        self.commands.iter().skip(done).map(|words| bytemuck::cast_slice(words))
    }

    /// Checksum of the first `done` commands, to tell whether they are those that a log holds.
    pub fn checksum(&self, done: Sequence) -> u32 {
        let done = usize::try_from(done.0).unwrap_or(usize::MAX);
        self.commands
            .iter()
            .take(done)
            .fold(0, |checksum, words| crc32c::crc32c_append(checksum, bytemuck::cast_slice(words)))
    }

    fn account(
        &mut self,
        id: AccountId,
        account: &AccountSection,
        assets: &HashMap<&str, AssetId>,
    ) -> Result<(), ConfigError> {
        let name = Name::new(&account.name)
            .filter(|name| name.is_valid() && !name.is_empty())
            .ok_or_else(|| wrong("accounts.name", &account.name, "1 to 31 printable characters"))?;
        self.push(CreateAccount {
            name,
            maker_rate: account.maker_rate.0,
            taker_rate: account.taker_rate.0,
            flags: ACCOUNT_CAN_TRADE | ACCOUNT_CAN_WITHDRAW | ACCOUNT_CAN_DEPOSIT,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        });
        for (asset, amount) in &account.balances {
            let asset = *assets
                .get(asset.as_str())
                .ok_or_else(|| wrong("accounts.balances", asset, "the name of an asset"))?;
            self.push(Deposit { account: id, asset, amount: amount.0, ..Default::default() });
        }
        for _ in 0..account.keys {
            self.push(CreateKey { account: id, permissions: KEY_ALL, ..Default::default() });
        }
        Ok(())
    }

    fn push<C: ClientCommand>(&mut self, mut command: C) {
        command.command_mut().sequence = Sequence(self.commands.len() as u64 + 1);
        self.commands.push(bytemuck::allocation::pod_collect_to_vec(bytemuck::bytes_of(&command)));
    }
}

/// Bits of the order types that [`RULES`] takes.
const ORDER_TYPES: u8 = 1 << OrderType::Limit.to_wire() | 1 << OrderType::Market.to_wire();

fn define_symbol(
    symbol: &SymbolSection,
    assets: &HashMap<&str, AssetId>,
) -> Result<DefineSymbol, ConfigError> {
    let in_alphabet =
        |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    let name = SymbolName::new(&symbol.name)
        .filter(|name| !name.is_empty() && name.as_bytes().iter().copied().all(in_alphabet))
        .ok_or_else(|| {
            wrong("symbols.name", &symbol.name, "1 to 20 characters of A-Z, 0-9, -, _ and .")
        })?;
    let asset = |key: &str, name: &str| {
        assets.get(name).copied().ok_or_else(|| wrong(key, name, "the name of an asset"))
    };
    Ok(DefineSymbol {
        name,
        base: asset("symbols.base", &symbol.base)?,
        quote: asset("symbols.quote", &symbol.quote)?,
        status: SymbolStatus::Trading.to_wire(),
        order_types: ORDER_TYPES,
        permissions: PERMISSION_SPOT,
        filters: SymbolFilters {
            price_min: symbol.price_min.0,
            price_max: symbol.price_max.0,
            tick_size: symbol.tick_size.0,
            lot_min: symbol.lot_min.0,
            lot_max: symbol.lot_max.0,
            lot_step: symbol.lot_step.0,
            market_lot_min: symbol.market_lot_min.0,
            market_lot_max: symbol.market_lot_max.0,
            market_lot_step: symbol.market_lot_step.0,
            min_notional: symbol.min_notional.0,
            max_orders: symbol.max_orders,
            ..Default::default()
        },
        ..Default::default()
    })
}

fn wrong(key: &str, found: &str, expected: &str) -> ConfigError {
    ConfigError { key: key.to_owned(), problem: format!("{found:?} is not {expected}") }
}
