//! What the log says of a venue's accounts, assets and keys. Called by `admin`, which takes names, and
//! by the ready block, which shows keys.

use anyhow::{Context, Result};
use std::path::Path;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::units::{AccountId, AssetId, KeyId};

/// Names of accounts and assets, as the log defines them.
#[derive(Default)]
pub(crate) struct Names {
    accounts: Vec<(String, AccountId)>,
    assets: Vec<(String, AssetId)>,
    keys: Vec<(KeyId, AccountId)>,
}

impl Names {
    /// Reads the whole log, as far as it is on disk.
    pub(crate) fn read(data: &Path) -> Result<Self> {
        let mut names = Self::default();
        let mut reader = LogReader::open(data, Follow::Durable)?;
        while let Some(transaction) = reader.next()? {
            let done = transaction.events().find_map(|event| match event {
                Ok(Event::Done(done)) => Some(done.id),
                _ => None,
            });
            let Some(number) = done else { continue };
            let id = u32::try_from(number).unwrap_or(u32::MAX);
            match transaction.command() {
                Ok(Command::CreateAccount(account)) => {
                    names.accounts.push((account.name.to_string(), AccountId(id)));
                }
                Ok(Command::DefineAsset(asset)) => {
                    names.assets.push((asset.name.to_string(), AssetId(id)));
                }
                Ok(Command::CreateKey(key)) => names.keys.push((KeyId(number), key.account)),
                Ok(Command::RevokeKey(revoked)) => {
                    names.keys.retain(|(key, _)| *key != revoked.key);
                }
                _ => {}
            }
        }
        Ok(names)
    }

    /// By name, or else by number.
    pub(crate) fn account(&self, name: &str) -> Result<AccountId> {
        let number = self.accounts.iter().find(|(_, id)| id.to_string() == name);
        find(&self.accounts, "account", name)
            .or_else(|error| number.map(|(_, id)| *id).ok_or(error))
    }

    /// The accounts that have an API key, by number, each with its oldest one that is not revoked.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&str, KeyId)> {
        self.accounts.iter().filter_map(|(name, id)| {
            let key = self.keys.iter().find(|(_, account)| account == id)?;
            Some((name.as_str(), key.0))
        })
    }

    pub(crate) fn asset(&self, name: &str) -> Result<AssetId> {
        find(&self.assets, "asset", name)
    }
}

fn find<I: Copy>(known: &[(String, I)], what: &str, name: &str) -> Result<I> {
    known.iter().find(|(one, _)| one == name).map(|(_, id)| *id).with_context(|| {
        let names: Vec<&str> = known.iter().map(|(one, _)| one.as_str()).collect();
        format!("no {what} {name:?}; there is {}", names.join(", "))
    })
}
