//! Where a setting stands: in which line of the file, or in which word of the command line. Called by [`super::parse`]
//! for what is wrong.

use anyhow::{Error, anyhow};
use serde::Deserialize;
use std::collections::HashMap;
use std::ops::Range;
use toml::de::DeTable;
use touchline_adapter::config::AdapterConfig;
use touchline_adapter::jobs::config::JobsConfig;
use touchline_engine::config::{
    AccountSection, AssetSection, EngineSection, ExchangeSection, FeedSection, GatewaySection,
    LimitsSection, LogSection, SymbolSection,
};

/// The whole file. Read from its text, and not from a table, it says where what it cannot read stands.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct File {
    #[serde(rename = "engine")]
    _engine: EngineSection,
    #[serde(rename = "gateway")]
    _gateway: GatewaySection,
    #[serde(rename = "log")]
    _log: LogSection,
    #[serde(rename = "feed")]
    _feed: FeedSection,
    #[serde(rename = "limits")]
    _limits: LimitsSection,
    #[serde(rename = "exchange")]
    _exchange: ExchangeSection,
    #[serde(rename = "assets")]
    _assets: Vec<AssetSection>,
    #[serde(rename = "symbols")]
    _symbols: Vec<SymbolSection>,
    #[serde(rename = "accounts")]
    _accounts: Vec<AccountSection>,
    #[serde(rename = "adapter")]
    _adapter: AdapterConfig,
    #[serde(rename = "jobs")]
    _jobs: JobsConfig,
}

/// A file of settings, and what the command line says beside it.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    /// By keys such as `log.window_mib`.
    of_command_line: HashMap<String, String>,
}

impl Source {
    pub(super) fn new(name: String, text: &str) -> Self {
        Self { name, text: text.to_owned(), of_command_line: HashMap::new() }
    }

    /// Notes that the command line has set a key.
    pub(super) fn note(&mut self, key: &str, word: String) {
        self.of_command_line.insert(key.to_owned(), word);
    }

    /// Where the value of `key` comes from; the file where nobody knows the line.
    pub(super) fn place(&self, key: &str) -> String {
        match self.of_command_line.get(key) {
            Some(word) => word.clone(),
            None => self.name_with(self.offset_of(key)),
        }
    }

    /// The same of a key of an entry of a list; the first line of an entry that does not have the key.
    pub(super) fn place_of_entry(&self, key: &str, entry: usize) -> String {
        self.name_with(self.offset_in_entry(key, entry))
    }

    /// What is wrong in the file itself, with the line; `error` is what reading it as a table has found.
    pub(super) fn wrong(&self, error: Error) -> Error {
        let unknown = DeTable::parse(&self.text).ok().and_then(|table| {
            let mut keys = table.get_ref().iter().map(|(key, _)| key);
            let known = toml::from_str::<toml::Table>(super::REFERENCE).ok()?;
            keys.find(|key| !known.contains_key(&**key.get_ref())).map(|key| key.span().start)
        });
        if unknown.is_some() {
            return error.context(self.name_with(unknown));
        }
        // Of several wrong places this one may be another than what the error is about.
        match toml::from_str::<File>(&self.text) {
            Err(found) if found.span().is_some() => {
                let offset = found.span().map(|span| span.start);
                let key = offset.and_then(|offset| self.key_of_value_at(offset));
                let key = key.map_or_else(String::new, |key| format!(" (key `{key}`)"));
                let words = found.span().and_then(|value| self.words_wanted(&found, value));
                let words = words.map_or_else(String::new, |words| format!("; {words}"));
                anyhow!("{}{key}{words}", found.message()).context(self.name_with(offset))
            }
            _ => error.context(self.name.clone()),
        }
    }

    /// Which words are wanted instead of a value that is no text, if some are: of a text that is none of them that is
    /// said.
    fn words_wanted(&self, found: &toml::de::Error, value: Range<usize>) -> Option<String> {
        const OF_TEXT: &str = "unknown variant ";
        if found.message().starts_with(OF_TEXT) {
            return None;
        }
        let (before, behind) = (self.text.get(..value.start)?, self.text.get(value.end..)?);
        let of_text = toml::from_str::<File>(&format!("{before}\"\"{behind}")).err()?;
        if of_text.span().is_none_or(|span| span.start != value.start) {
            // Of another key: this one takes any text.
            return None;
        }
        let (_, words) = of_text.message().strip_prefix(OF_TEXT)?.split_once(", ")?;
        Some(words.to_owned())
    }

    /// Where in the text a key of a section stands.
    fn offset_of(&self, key: &str) -> Option<usize> {
        let (section, key) = key.split_once('.')?;
        let table = DeTable::parse(&self.text).ok()?;
        let section = table.get_ref().get(section)?.get_ref().as_table()?;
        start_of(section, key)
    }

    /// The key of a section, or of an entry of a list, whose value stands there in the text.
    fn key_of_value_at(&self, offset: usize) -> Option<String> {
        let table = DeTable::parse(&self.text).ok()?;
        let sections = table.get_ref().values().map(|section| section.get_ref());
        let entries = sections.flat_map(|section| {
            let entries = section.as_array().map(|entries| entries.iter());
            let entries = entries.into_iter().flatten().map(|entry| entry.get_ref());
            section.as_table().into_iter().chain(entries.filter_map(|entry| entry.as_table()))
        });
        let mut keys = entries.flat_map(|entry| entry.iter());
        let found = keys.find(|(_, value)| value.span().contains(&offset));
        found.map(|(key, _)| key.get_ref().to_string())
    }

    /// Where in the text a key of an entry of a list stands, or else the entry. A key in a table of its own is
    /// named behind that: `accounts.balances.BTC`.
    fn offset_in_entry(&self, key: &str, entry: usize) -> Option<usize> {
        let (section, key) = key.split_once('.')?;
        let table = DeTable::parse(&self.text).ok()?;
        let entry = table.get_ref().get(section)?.get_ref().as_array()?.get(entry)?;
        let keys = entry.get_ref().as_table()?;
        let within = key
            .split_once('.')
            .and_then(|(outer, inner)| start_of(keys.get(outer)?.get_ref().as_table()?, inner));
        let outer = key.split('.').next().unwrap_or_default();
        within.or_else(|| start_of(keys, outer)).or_else(|| Some(entry.span().start))
    }

    fn name_with(&self, offset: Option<usize>) -> String {
        let before = offset.and_then(|offset| self.text.get(..offset));
        match before {
            Some(before) => format!("{}, line {}", self.name, before.split('\n').count()),
            None => self.name.clone(),
        }
    }
}

/// Where a key of a table begins.
fn start_of(table: &DeTable<'_>, key: &str) -> Option<usize> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(name, _)| name.span().start)
}
