//! What the log says of a venue's accounts, assets, keys and symbols. Called by `admin` and `log dump`, which
//! take names, and by the ready block, which shows keys and a symbol.

use crate::log::Pass;
use crate::{notice, pruned};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use touchline_engine::genesis::AssetFacts;
use touchline_engine::snapshot::{Definitions, list};
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::{
    ChangeSymbol, CommandHeader, CreateAccount, DefineSymbol, KillAccount, SetAccount,
};
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::SymbolStatus;
use touchline_protocol::units::{AccountId, AssetId, KeyId, Position, SymbolId};

/// Accounts, assets, keys and symbols, as the log defines them.
#[derive(Default)]
pub(crate) struct Names {
    accounts: Vec<(String, AccountId)>,
    settings: BTreeMap<AccountId, SetAccount>,
    killed: BTreeSet<AccountId>,
    assets: Vec<(String, AssetId)>,
    /// Decimal places, by the number of the asset.
    precisions: Vec<u8>,
    keys: Vec<(KeyId, AccountId)>,
    symbols: Vec<(String, SymbolId)>,
    definitions: BTreeMap<SymbolId, ChangeSymbol>,
    /// Base and quote.
    assets_of: BTreeMap<SymbolId, [AssetId; 2]>,
    /// As messages give it.
    statuses: BTreeMap<SymbolId, u8>,
}

/// A symbol as the log has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed<'names> {
    /// Its name.
    pub(crate) name: &'names str,
    /// The command that would change it to what it is.
    pub(crate) definition: &'names ChangeSymbol,
    /// Its status is TRADING.
    pub(crate) is_trading: bool,
}

impl Names {
    /// Reads the newest snapshot's definitions and the log behind it, as far as it is on disk by then; without a
    /// snapshot the whole log. So a kill switch waits for what came since the last snapshot, and not for years,
    /// nor for an end that a flood puts further and further away.
    pub(crate) fn read(data: &Path) -> Result<Self> {
        let mut reader = LogReader::open(data, Follow::Durable)?;
        // A kill switch is not kept waiting for a folder to be mended while the log has the names, too.
        let listed = list(data).unwrap_or_else(|error| {
            notice::alert!("snapshots: {error}");
            Vec::new()
        });
        let mut names = match pruned::definitions(data, &mut reader, listed)? {
            Some(defined) => Self::of(&defined),
            None if reader.position() == Position(0) => Self::default(),
            None => bail!(pruned::unknown(reader.position())),
        };
        let mut pass = Pass::new(reader);
        while let Some(transaction) = pass.next()? {
            let done = transaction.events().find_map(|event| match event {
                Ok(Event::Done(done)) => Some(done.id),
                _ => None,
            });
            match (done, transaction.command()) {
                // A kill ends with what it has ended, some transactions later at times.
                (_, Ok(Command::KillAccount(kill))) => names.note_kill(kill),
                (Some(number), Ok(command)) => names.note(command, number),
                _ => {}
            }
        }
        Ok(names)
    }

    /// What a log that was pruned does not define itself: as the snapshot has it that stands for what is gone.
    pub(crate) fn of_pruned(data: &Path) -> Result<Self> {
        let mut reader = LogReader::open(data, Follow::Durable)?;
        let oldest_first = list(data)?.into_iter().rev();
        match pruned::definitions(data, &mut reader, oldest_first)? {
            Some(defined) => Ok(Self::of(&defined)),
            None => bail!(pruned::unknown(reader.position())),
        }
    }

    /// All that a venue has; the fee account is nobody's.
    fn of(venue: &Definitions) -> Self {
        let mut names = Self::default();
        let accounts = (AccountId::FEES.0 + 1..).map(AccountId);
        for (account, view) in accounts.map_while(|id| Some((id, venue.account(id)?))) {
            let set = SetAccount {
                account,
                flags: view.flags,
                permissions: view.permissions,
                self_trade_prevention: view.self_trade_prevention.to_wire(),
                ..Default::default()
            };
            names.accounts.push((view.name.to_string(), account));
            names.settings.insert(account, set);
            if view.killed {
                names.killed.insert(account);
            }
        }
        for (id, asset) in (0..).map(AssetId).map_while(|id| Some((id, venue.asset(id)?))) {
            names.assets.push((asset.name.to_string(), id));
            names.precisions.push(asset.precision);
        }
        let keys = (1..).map(KeyId).map_while(|id| Some((id, venue.key(id)?)));
        let live = keys.filter(|(_, key)| !key.revoked);
        names.keys = live.map(|(id, key)| (id, key.account)).collect();
        for (symbol, view) in (0..).map(SymbolId).map_while(|id| Some((id, venue.symbol(id)?))) {
            let definition = ChangeSymbol {
                symbol,
                order_types: view.order_types,
                flags: view.flags,
                permissions: view.permissions,
                filters: view.filters,
                ..Default::default()
            };
            names.symbols.push((view.name.to_string(), symbol));
            names.assets_of.insert(symbol, [view.base, view.quote]);
            names.definitions.insert(symbol, definition);
            names.statuses.insert(symbol, view.status.to_wire());
        }
        names
    }

    /// Symbols alone, for tests.
    #[cfg(test)]
    pub(crate) fn of_symbols(names: impl Iterator<Item = String>) -> Self {
        Self { symbols: names.zip((0..).map(SymbolId)).collect(), ..Self::default() }
    }

    fn note_kill(&mut self, kill: &KillAccount) {
        if kill.killed == 0 {
            self.killed.remove(&kill.account);
        } else {
            self.killed.insert(kill.account);
        }
    }

    /// Takes over what a command defined; `number` is that of what it made.
    fn note(&mut self, command: Command<'_>, number: u64) {
        let id = u32::try_from(number).unwrap_or(u32::MAX);
        match command {
            Command::CreateAccount(made) => {
                let account = AccountId(id);
                self.accounts.push((made.name.to_string(), account));
                let CreateAccount { flags, permissions, .. } = *made;
                let set = SetAccount { account, flags, permissions, ..Default::default() };
                self.settings.insert(account, set);
            }
            Command::SetAccount(set) => {
                self.settings.insert(set.account, *set);
            }
            Command::DefineAsset(asset) => {
                self.assets.push((asset.name.to_string(), AssetId(id)));
                self.precisions.push(asset.precision);
            }
            Command::CreateKey(key) => self.keys.push((KeyId(number), key.account)),
            Command::RevokeKey(revoked) => self.keys.retain(|(key, _)| *key != revoked.key),
            Command::DefineSymbol(made) => {
                let symbol = SymbolId(id);
                self.symbols.push((made.name.to_string(), symbol));
                self.assets_of.insert(symbol, [made.base, made.quote]);
                let DefineSymbol { order_types, flags, permissions, filters, .. } = *made;
                let definition = ChangeSymbol {
                    symbol,
                    order_types,
                    flags,
                    permissions,
                    filters,
                    ..Default::default()
                };
                self.definitions.insert(symbol, definition);
                self.statuses.insert(symbol, made.status);
            }
            Command::SetSymbolStatus(set) => {
                self.statuses.insert(set.symbol, set.status);
            }
            Command::ChangeSymbol(changed) => {
                self.definitions.insert(changed.symbol, *changed);
            }
            _ => {}
        }
    }

    /// The command that would set the account to what it is.
    pub(crate) fn account_settings(&self, name: &str) -> Result<SetAccount> {
        let account = self.account(name)?;
        let set = self.settings.get(&account).context("the account is the venue's own")?;
        Ok(SetAccount { command: CommandHeader::default(), ..*set })
    }

    /// Whether the kill switch holds the account.
    pub(crate) fn is_killed(&self, account: AccountId) -> bool {
        self.killed.contains(&account)
    }

    /// The command that would change the symbol to what it is.
    pub(crate) fn symbol_definition(&self, name: &str) -> Result<ChangeSymbol> {
        let symbol = self.symbol(name)?;
        let definition = self.definitions.get(&symbol).context("the symbol has no definition")?;
        Ok(ChangeSymbol { command: CommandHeader::default(), ..*definition })
    }

    pub(crate) fn symbol(&self, name: &str) -> Result<SymbolId> {
        find(&self.symbols, "symbol", name)
    }

    /// A key that is not revoked.
    pub(crate) fn key(&self, key: KeyId) -> Result<KeyId> {
        self.account_of(key).map(|_| key)
    }

    fn account_of(&self, key: KeyId) -> Result<AccountId> {
        let found = self.keys.iter().find(|(known, _)| *known == key);
        found
            .map(|(_, account)| *account)
            .with_context(|| format!("no key {key}, or it is revoked"))
    }

    /// The name of the account of a key that is not revoked.
    pub(crate) fn owner(&self, key: KeyId) -> Result<&str> {
        let account = self.account_of(key)?;
        let owner = self.accounts.iter().find(|(_, id)| *id == account);
        owner.map(|(name, _)| name.as_str()).with_context(|| format!("key {key} has no account"))
    }

    /// By name or by number, if it is one account's.
    pub(crate) fn account(&self, text: &str) -> Result<AccountId> {
        let mut sought = Sought::new("account", text);
        self.accounts().try_for_each(|(name, number)| sought.learn(name, number))?;
        let found = self.accounts.iter().find(|(_, id)| sought.found == Some(id.0.into()));
        found.map_or_else(|| find(&self.accounts, "account", text), |(_, id)| Ok(*id))
    }

    /// An account, or the fee account, which has money without being anybody's.
    pub(crate) fn holder(&self, text: &str) -> Result<AccountId> {
        let mut sought = Sought::holder(text);
        self.accounts().try_for_each(|(name, number)| sought.learn(name, number))?;
        let is_fees = sought.found == Some(AccountId::FEES.0.into());
        if is_fees { Ok(AccountId::FEES) } else { self.account(text) }
    }

    /// Every account's name and number.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.accounts.iter().map(|(name, id)| (name.as_str(), id.0.into()))
    }

    /// Every symbol's name and number.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = (&str, u64)> {
        self.symbols.iter().map(|(name, id)| (name.as_str(), id.0.into()))
    }

    /// Every symbol, by number.
    pub(crate) fn listed(&self) -> impl Iterator<Item = Listed<'_>> {
        let trading = Some(SymbolStatus::Trading.to_wire());
        self.symbols.iter().filter_map(move |(name, symbol)| {
            let definition = self.definitions.get(symbol)?;
            let is_trading = self.statuses.get(symbol).copied() == trading;
            Some(Listed { name, definition, is_trading })
        })
    }

    /// The accounts that have an API key, by number, each with its oldest one that is not revoked.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&str, KeyId)> {
        self.accounts.iter().filter_map(|(name, id)| {
            let key = self.keys.iter().find(|(_, account)| account == id)?;
            Some((name.as_str(), key.0))
        })
    }

    /// The keys that are not revoked, each with its account.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (KeyId, AccountId)> {
        self.keys.iter().copied()
    }

    pub(crate) fn asset(&self, name: &str) -> Result<AssetId> {
        find(&self.assets, "asset", name)
    }

    /// Base and quote of a symbol.
    pub(crate) fn assets_of(&self, symbol: SymbolId) -> Option<[AssetId; 2]> {
        self.assets_of.get(&symbol).copied()
    }

    /// What is to be known of an asset beside a symbol.
    pub(crate) fn asset_facts(&self, asset: AssetId) -> Option<AssetFacts<'_>> {
        let name = &self.assets.iter().find(|(_, id)| *id == asset)?.0;
        Some(AssetFacts { name, precision: *self.precisions.get(asset.0 as usize)? })
    }
}

/// What somebody gives by its name or its number: `7`, or `#7`, which most names are not, or with more of these.
/// A name may be a number, too; what could be meant two ways is refused, as money would go to the wrong one.
pub(crate) struct Sought {
    what: &'static str,
    pub(crate) text: String,
    number: Option<u64>,
    /// The number of what is meant, as far as definitions were seen.
    found: Option<u64>,
    /// What was found stays what is meant.
    is_settled: bool,
}

impl Sought {
    pub(crate) fn new(what: &'static str, text: &str) -> Self {
        let digits = text.trim_start_matches('#');
        // Only as numbers are shown: who means the name 007, which may not be there, does not mean account 7.
        let number = digits.parse().ok().filter(|number: &u64| number.to_string() == digits);
        Self { what, text: text.to_owned(), number, found: None, is_settled: false }
    }

    /// An account, or the fee account, which no command defines.
    pub(crate) fn holder(text: &str) -> Self {
        let mut sought = Self::new("account", text);
        let fees = AccountId::FEES.0.into();
        let is_fees = text == AccountId::FEES_NAME || sought.number == Some(fees);
        sought.found = is_fees.then_some(fees);
        sought
    }

    /// Hears of a definition.
    pub(crate) fn learn(&mut self, name: &str, number: u64) -> Result<()> {
        let is_known = self.is_settled && self.found.is_some();
        if is_known || self.text != name && self.number != Some(number) {
            return Ok(());
        }
        if let Some(other) = self.found.replace(number).filter(|other| *other != number) {
            let (what, text) = (self.what, &self.text);
            let marks = "#".repeat(1 + text.len() - text.trim_start_matches('#').len());
            bail!(
                "{text:?} is the name of one {what} and the number of another: say {marks}{other} or \
                 {marks}{number}, or a name that is no number"
            );
        }
        Ok(())
    }

    /// What was found, if anything was, stays what is meant: no later definition makes it doubtful.
    pub(crate) const fn settle(&mut self) {
        self.is_settled = true;
    }

    /// True if a definition of what is meant was seen.
    pub(crate) const fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// The number of what is meant; one that was not defined yet stands for itself.
    pub(crate) fn number(&self) -> Option<u64> {
        self.found.or(self.number)
    }
}

/// Names that are told where one is not known.
const TOLD: usize = 20;

fn find<I: Copy>(known: &[(String, I)], what: &str, name: &str) -> Result<I> {
    known.iter().find(|(one, _)| one == name).map(|(_, id)| *id).with_context(|| {
        let names: Vec<&str> = known.iter().map(|(one, _)| one.as_str()).take(TOLD).collect();
        let more = match known.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("no {what} {name:?}; there is {}{more}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str, defined: &[(&str, u64)]) -> Result<Option<u64>> {
        let mut sought = Sought::new("account", text);
        for (name, number) in defined {
            sought.learn(name, *number)?;
        }
        Ok(sought.found)
    }

    #[test]
    fn what_was_found_stays_what_is_meant_once_that_is_settled() {
        let mut sought = Sought::new("account", "2");
        sought.settle();
        assert_eq!(sought.number(), Some(2), "it is not there yet");
        sought.learn("B", 2).unwrap();
        sought.learn("2", 3).unwrap();
        assert_eq!(sought.number(), Some(2));
    }

    #[test]
    fn who_misspells_a_name_is_told_some_and_not_a_million() {
        let known: Vec<_> = (0..1_000_000).map(|number| (format!("N{number}"), number)).collect();
        assert_eq!(find(&known, "account", "N7").unwrap(), 7);
        let told = |most: usize| find(&known[..most], "account", "X").unwrap_err().to_string();
        assert_eq!(told(2), "no account \"X\"; there is N0, N1");
        assert!(
            told(20).ends_with(", N19") && told(known.len()).ends_with(", N19 and 999980 more")
        );
    }

    #[test]
    fn what_is_one_ones_name_and_anothers_number_is_refused() {
        let defined = [("A", 1), ("B", 2), ("2", 3), ("4", 4), ("#1", 5), ("9", 6)];
        for (text, number) in [
            ("A", Some(1)),
            ("1", Some(1)),
            ("B", Some(2)),
            ("#2", Some(2)),
            ("#3", Some(3)),
            ("3", Some(3)),
            ("4", Some(4)),
            ("#5", Some(5)),
            ("9", Some(6)),
            ("##1", Some(1)),
            ("7", None),
            ("01", None),
            ("+1", None),
            ("#+1", None),
            ("#B", None),
            ("", None),
        ] {
            assert_eq!(meant(text, &defined).unwrap(), number, "{text:?}");
        }
        for (text, says) in [("2", "say #2 or #3"), ("#1", "say ##1 or ##5")] {
            let error = meant(text, &defined).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
