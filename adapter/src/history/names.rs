//! Finds ended orders and lists by what their owner called them.
//!
//! Names are random, so a table sorted by them would be written all over, and the more so the larger
//! it is. Here a name is a hash within an *era* of so many names: what is written of late lies close
//! together, and a look-up asks one era after the other, the newest first.
//!
//! An era is of a size at which a batch that comes while much goes on puts several names on each of its
//! pages: a page that gets one name costs as much to write as one that gets ten. A hundred million names are
//! then 1,526 looks for a name that nothing has, each of less than a microsecond while its page is in memory,
//! and of a read of the disk where it is not.

use std::ops::RangeInclusive;

use sha2::{Digest, Sha256};
use touchline_protocol::text::ClientOrderId;

use super::HistoryError;
use super::reader::Reader;
use super::rows::{ListRow, NameRow, OrderRow};

/// Names of an era. A store whose eras were larger stays good: it has fewer of them, which are older.
pub(super) const ERA: u64 = 1 << 16;

/// Names of the largest era of any build.
const ERA_MAX: u64 = 1 << 20;

/// Eras that no venue comes to: of a million names each second it takes four years to have had so many.
const ERAS_MAX: u64 = 1 << 31;

/// How many names a store can have been given if this is the last era that it has one of: each name has a row when it is
/// given, though a later one may take its place. Whoever said that there are more would have a look-up for what nothing
/// has ask eras without end, and by fewer it would not come to those that there are. None of an era that cannot be.
pub(super) fn possible(last_era: Option<u64>) -> Option<RangeInclusive<u64>> {
    match last_era {
        None => Some(0..=0),
        Some(era) if era < ERAS_MAX => Some(era * ERA + 1..=(era + 1) * ERA_MAX),
        Some(_) => None,
    }
}

/// What a name is given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// An order: its account's group of orders on the symbol.
    Order(u64),
    /// A list: its account's group of lists.
    List(u64),
}

impl Named {
    /// A hash that nobody can aim at another's.
    #[expect(clippy::host_endian_bytes, reason = "the store is read where it was written")]
    pub(super) fn hash(self, name: &ClientOrderId) -> u64 {
        let (kind, group) = match self {
            Self::Order(group) => (0_u64, group),
            Self::List(group) => (1, group),
        };
        let mut hash = Sha256::new();
        hash.update(kind.to_ne_bytes());
        hash.update(group.to_ne_bytes());
        hash.update(name.as_bytes());
        let digest = hash.finalize();
        let first = digest.first_chunk().copied().unwrap_or_default();
        u64::from_ne_bytes(first)
    }
}

impl Reader {
    /// The last ended order of the group under this name, with its number.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn order_named(
        &self,
        group: u64,
        name: ClientOrderId,
    ) -> Result<Option<(u64, OrderRow)>, HistoryError> {
        self.named(Named::Order(group), name, |id| {
            let row = self.get::<OrderRow>(group, id)?;
            Ok(row.filter(|row| row.client_order_id == name))
        })
    }

    /// The last ended list of the group under this name, with its number.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn list_named(
        &self,
        group: u64,
        name: ClientOrderId,
    ) -> Result<Option<(u64, ListRow)>, HistoryError> {
        self.named(Named::List(group), name, |id| {
            let row = self.get::<ListRow>(group, id)?;
            Ok(row.filter(|row| row.client_order_id == name))
        })
    }

    /// Asks the eras, the newest first; `row` tells whether the name is that of the row.
    fn named<R>(
        &self,
        named: Named,
        name: ClientOrderId,
        row: impl Fn(u64) -> Result<Option<R>, HistoryError>,
    ) -> Result<Option<(u64, R)>, HistoryError> {
        let hash = named.hash(&name);
        for era in (0..=self.names / ERA).rev() {
            let Some(found) = self.get::<NameRow>(era, hash)? else { continue };
            if let Some(row) = row(found.id)? {
                return Ok(Some((found.id, row)));
            }
        }
        Ok(None)
    }
}
