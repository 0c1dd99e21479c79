//! A store as it stands, looked at by who asks how far it goes and changes nothing. Used by the archive of the state.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use heed::EnvFlags;
use heed::types::Bytes;
use touchline_protocol::log::place::HISTORY_FILE;

use super::super::address_space::MAP_BYTES;
use super::super::folder::{self, Damage};
use super::{
    FORMAT_SEALED, HistoryError, IDENTITY, Identity, META, REACHED, Reached, Store, decode,
    open_environment, tables, unseal,
};

/// What a store is found to hold.
pub(crate) struct Looked {
    pub(crate) reached: Reached,
    /// To be read; nothing if an older build wrote it, whose rows the next start seals.
    pub(crate) sealed: Option<Store>,
}

impl Store {
    /// Looks at the store in a folder that is locked, in which there is one; `None` if it holds nothing.
    ///
    /// # Errors
    /// As those of [`Store::open`]; [`HistoryError::Short`] for one that is cut off.
    pub(crate) fn look(folder: &Path, identity: Identity) -> Result<Option<Looked>, HistoryError> {
        if !folder::has_sound_size(folder, MAP_BYTES as u64) {
            return Err(HistoryError::Layout { path: folder.to_owned() });
        }
        let env = open_environment(folder, EnvFlags::READ_ONLY | EnvFlags::NO_LOCK)?;
        let pages = env.info().last_page_number as u64 + 1;
        let path = folder.join(HISTORY_FILE);
        let found = fs::metadata(&path).map_err(|source| HistoryError::File { path, source })?;
        // A start gives it its length. Here a page that is not there would end the process.
        if found.len() < pages * u64::from(env.stat().page_size) {
            return Err(HistoryError::Short { path: folder.to_owned() });
        }
        let reading = env.read_txn()?;
        let Some(meta) = env.open_database::<Bytes, Bytes>(&reading, Some(META))? else {
            return Ok(None);
        };
        let Some(identity_found) = meta.get(&reading, IDENTITY)? else { return Ok(None) };
        let foreign = || HistoryError::Foreign { path: folder.to_owned() };
        let format = identity.goes_on_with(identity_found).ok_or_else(foreign)?;
        let Some(bytes) = meta.get(&reading, REACHED)? else { return Ok(None) };
        if format < FORMAT_SEALED {
            let row = unseal(META, REACHED, bytes).unwrap_or(bytes);
            return Ok(Some(Looked { reached: decode(META, row)?, sealed: None }));
        }
        let reached = decode(META, unseal(META, REACHED, bytes)?)?;
        let (history, state) = tables(|name| {
            let found = env.open_database(&reading, Some(name))?;
            found.ok_or(HistoryError::Row { table: name, bytes: 0 })
        })?;
        // Else the tables are closed with it.
        reading.commit()?;
        let damage = Arc::new(Damage::not_noted(folder));
        Ok(Some(Looked { reached, sealed: Some(Self { env, meta, history, state, damage }) }))
    }
}
