//! A look-up table from a 32-bit hash to a handle. Used for order numbers, client order ids and the
//! names of assets, symbols, accounts and sessions.
//!
//! Open addressing with linear probing at a load of at most one half. Removal shifts the entries
//! behind it back, so that no tombstones are left and the table does not decay. The caller compares
//! keys, since only it has them; the hash is kept with the handle so that most mismatches cost no
//! further cache line and growth needs no keys.

use crate::pool::NONE;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    handle: u32,
}

const EMPTY: Slot = Slot { hash: 0, handle: NONE };

/// The table. Without growth it holds nothing.
#[derive(Debug)]
pub(crate) struct Table {
    /// A power of two in number, or none.
    slots: Vec<Slot>,
    used: u32,
}

impl Table {
    /// A table without any room.
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), used: 0 }
    }

    /// Makes room for `entries` in all. Never shrinks.
    ///
    /// # Errors
    /// When there is no memory; the table is as it was.
    pub(crate) fn try_grow(&mut self, entries: u32) -> Result<(), TryReserveError> {
        let wanted = (entries as usize * 2).next_power_of_two();
        if entries == 0 || wanted <= self.slots.len() {
            return Ok(());
        }
        let mut slots = Vec::new();
        slots.try_reserve_exact(wanted)?;
        slots.resize(wanted, EMPTY);
        let old = core::mem::replace(&mut self.slots, slots);
        self.used = 0;
        for slot in old.into_iter().filter(|slot| slot.handle != NONE) {
            self.insert(slot.hash, slot.handle);
        }
        Ok(())
    }

    /// Entries.
    pub(crate) const fn len(&self) -> u32 {
        self.used
    }

    /// The handle under `hash` that `is_it` recognises.
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.handle == NONE {
                return None;
            }
            if slot.hash == hash && is_it(slot.handle) {
                return Some(slot.handle);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry whose key is not in the table.
    pub(crate) fn insert(&mut self, hash: u32, handle: u32) {
        assert!(
            (self.used as usize) < self.slots.len() / 2,
            "a table is never more than half full"
        );
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].handle != NONE {
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot { hash, handle };
        self.used += 1;
    }

    /// Removes the entry of `hash` and `handle`, which must be there.
    pub(crate) fn remove(&mut self, hash: u32, handle: u32) {
        let mask = self.slots.len() - 1;
        let mut hole = hash as usize & mask;
        while self.slots[hole].handle != handle {
            assert!(self.slots[hole].handle != NONE, "removed from a table that does not have it");
            hole = (hole + 1) & mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.handle == NONE {
                break;
            }
            // An entry may fill the hole when its home is not behind the hole: then its distance
            // from home is at least its distance from the hole.
            let from_home = at.wrapping_sub(slot.hash as usize) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Keys are their own handles; hashes collide on purpose and wrap around the end.
        #[test]
        fn behaves_like_a_map(operations in prop::collection::vec((0u32..40, any::<bool>()), 0..400)) {
            let hash = |key: u32| (key % 7).wrapping_sub(3);
            let mut table = Table::new();
            let mut model = BTreeMap::new();
            table.try_grow(20).unwrap();
            for (step, (key, add)) in operations.into_iter().enumerate() {
                if step == 100 {
                    table.try_grow(100).unwrap();
                }
                if add && model.len() < 20 && !model.contains_key(&key) {
                    table.insert(hash(key), key);
                    model.insert(key, ());
                } else if !add && model.remove(&key).is_some() {
                    table.remove(hash(key), key);
                }
                prop_assert_eq!(table.len() as usize, model.len());
                for key in 0..40 {
                    let found = table.find(hash(key), |handle| handle == key);
                    prop_assert_eq!(found.is_some(), model.contains_key(&key));
                }
            }
        }
    }

    #[test]
    fn a_table_without_room_finds_nothing() {
        assert_eq!(Table::new().find(5, |_| true), None);
    }
}
