//! What a venue is defined as, out of its snapshot, without what happens in it. Called by tools that look up
//! names and are not to take a venue's memory for that.

use super::SnapshotError;
use super::read::Reading;
use crate::{AccountView, AssetView, KeyView, SymbolView};
use touchline_protocol::units::{AccountId, AssetId, KeyId, SymbolId};

/// The assets, symbols, accounts and keys of a venue.
#[derive(Debug)]
pub struct Definitions(crate::Core);

impl Definitions {
    /// Reads the first sections of the stream that `read` gives, which fills what it is given whole or fails.
    /// Each is checked as [`Core::read_snapshot`](crate::Core::read_snapshot) does, and by its own hash; what
    /// comes behind them is not read, so the venue's state hash is not compared.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn read<E>(
        read: &mut dyn FnMut(&mut [u8]) -> Result<(), E>,
        table_seed: u64,
    ) -> Result<Self, SnapshotError<E>> {
        let mut reading = Reading { has_orders: false, ..Reading::new(read, table_seed) };
        reading.definitions()?;
        Ok(Self(reading.core))
    }

    /// An account by number.
    #[must_use]
    pub fn account(&self, id: AccountId) -> Option<AccountView> {
        self.0.account(id)
    }

    /// An asset by number.
    #[must_use]
    pub fn asset(&self, id: AssetId) -> Option<AssetView> {
        self.0.asset(id)
    }

    /// A key by number.
    #[must_use]
    pub fn key(&self, id: KeyId) -> Option<KeyView> {
        self.0.key(id)
    }

    /// A symbol by number.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<SymbolView> {
        self.0.symbol(id)
    }
}
