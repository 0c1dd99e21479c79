//! Assets and how much of each the venue holds. Called by definitions and money movements.

use crate::hash::{Seed, StateHash};
use crate::table::Table;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::text::AssetName;
use touchline_protocol::units::AssetId;

/// One asset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asset {
    pub(crate) name: AssetName,
    pub(crate) precision: u8,
    /// Deposits less withdrawals: what the balances of the asset add up to, 0 to `AMOUNT_MAX`.
    pub(crate) held: i64,
}

/// All assets, in order of definition.
#[derive(Debug)]
pub(crate) struct Assets {
    pub(crate) list: Vec<Asset>,
    by_name: Table,
    seed: Seed,
}

impl Assets {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self { list: Vec::new(), by_name: Table::new(), seed }
    }

    pub(crate) fn try_grow(&mut self, capacity: u32) -> Result<(), TryReserveError> {
        self.list.try_reserve_exact((capacity as usize).saturating_sub(self.list.len()))?;
        self.by_name.try_grow(capacity)
    }

    pub(crate) const fn len(&self) -> u32 {
        self.list.len() as u32
    }

    pub(crate) fn get(&self, id: AssetId) -> Option<&Asset> {
        self.list.get(id.0 as usize)
    }

    pub(crate) fn find(&self, name: &AssetName) -> Option<AssetId> {
        self.by_name
            .find(self.seed.text(0, name), |at| self.list[at as usize].name == *name)
            .map(AssetId)
    }

    /// Adds an asset of a new name; the caller has checked the limit.
    pub(crate) fn add(&mut self, name: AssetName, precision: u8) -> AssetId {
        let id = self.len();
        self.list.push(Asset { name, precision, held: 0 });
        self.by_name.insert(self.seed.text(0, &name), id);
        AssetId(id)
    }

    pub(crate) fn hash(&self, hash: &mut StateHash) {
        hash.word(u64::from(self.len()));
        for asset in &self.list {
            hash.text(&asset.name);
            hash.word(u64::from(asset.precision));
            hash.signed(asset.held);
        }
    }
}
