//! A look-up table from a 32-bit hash to a handle. Used for order numbers, client order ids and the
//! names of assets, symbols, accounts and sessions.
//!
//! Entries of a place are chained through links that lie by handle, since handles are small numbers
//! without gaps. So there is nothing to probe, shift or leave behind: adding and removing an entry is a
//! store or two, and how long it takes does not depend on what came before. The caller compares keys,
//! since only it has them; the hash is kept with the link so that most mismatches cost no further
//! cache line and growth needs no keys.

use crate::pool::NONE;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// What is known of an entry, by its handle.
#[derive(Clone, Copy, Debug)]
struct Link {
    hash: u32,
    /// The next entry of the same place.
    next: u32,
}

const LOOSE: Link = Link { hash: 0, next: NONE };

/// The table. Without growth it holds nothing.
#[derive(Debug)]
pub(crate) struct Table {
    /// The first entry of each place; a power of two in number, or none. At least two for each entry.
    places: Vec<u32>,
    links: Vec<Link>,
    used: u32,
}

impl Table {
    /// A table without any room.
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), links: Vec::new(), used: 0 }
    }

    /// Makes room for `entries` in all, with handles below that. Never shrinks.
    ///
    /// # Errors
    /// When there is no memory; the table is as it was.
    pub(crate) fn try_grow(&mut self, entries: u32) -> Result<(), TryReserveError> {
        let more = (entries as usize).saturating_sub(self.links.len());
        if more == 0 {
            return Ok(());
        }
        let wanted = (entries as usize * 2).next_power_of_two();
        let mut places = Vec::new();
        places.try_reserve_exact(wanted)?;
        self.links.try_reserve_exact(more)?;
        self.links.resize(entries as usize, LOOSE);
        places.resize(wanted, NONE);
        for mut at in core::mem::replace(&mut self.places, places) {
            while at != NONE {
                let Link { hash, next } = self.links[at as usize];
                self.chain(hash, at);
                at = next;
            }
        }
        Ok(())
    }

    /// Bytes of memory that it has taken.
    #[cfg(test)]
    pub(crate) const fn memory(&self) -> usize {
        self.places.capacity() * size_of::<u32>() + self.links.capacity() * size_of::<Link>()
    }

    /// Entries.
    pub(crate) const fn len(&self) -> u32 {
        self.used
    }

    #[inline(always)]
    fn place(&self, hash: u32) -> usize {
        hash as usize & self.places.len().wrapping_sub(1)
    }

    /// The first entry in the place of `hash`: likely the one, if any is.
    #[inline(always)]
    pub(crate) fn first_guess(&self, hash: u32) -> u32 {
        self.places.get(self.place(hash)).copied().unwrap_or(NONE)
    }

    /// Goes on from entries that are not those of their hashes to the next ones of their places, or to
    /// [`NONE`]. Decides nothing: for loading what may be needed soon.
    pub(crate) fn guess_again(&self, hashes: &[u32], entries: &mut [u32]) {
        let Some(last) = self.links.len().checked_sub(1) else { return };
        for (&hash, entry) in hashes.iter().zip(entries) {
            let link = self.links[(*entry as usize).min(last)];
            let stays = *entry == NONE || link.hash == hash;
            *entry = if stays { *entry } else { link.next };
        }
    }

    /// The hash of an entry; any number for what is none.
    pub(crate) fn hash_of(&self, entry: u32) -> u32 {
        self.links.get(entry as usize).map_or(0, |link| link.hash)
    }

    /// The handle under `hash` that `is_it` recognises.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.first_guess(hash);
        while at != NONE {
            let link = self.links[at as usize];
            if link.hash == hash && is_it(at) {
                return Some(at);
            }
            at = link.next;
        }
        None
    }

    /// Adds an entry whose key is not in the table.
    #[inline(always)]
    pub(crate) fn insert(&mut self, hash: u32, handle: u32) {
        self.used += 1;
        self.chain(hash, handle);
    }

    #[inline(always)]
    fn chain(&mut self, hash: u32, handle: u32) {
        let place = self.place(hash);
        let next = core::mem::replace(&mut self.places[place], handle);
        self.links[handle as usize] = Link { hash, next };
    }

    /// Removes the entry under `hash` that `is_it` recognises and gives its handle.
    #[inline]
    pub(crate) fn take(&mut self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut before = NONE;
        let mut at = self.first_guess(hash);
        while at != NONE {
            let link = self.links[at as usize];
            if link.hash == hash && is_it(at) {
                self.unchain(hash, before, link.next);
                return Some(at);
            }
            before = at;
            at = link.next;
        }
        None
    }

    #[inline]
    fn unchain(&mut self, hash: u32, before: u32, next: u32) {
        self.used -= 1;
        if before == NONE {
            let place = self.place(hash);
            self.places[place] = next;
        } else {
            self.links[before as usize].next = next;
        }
    }

    /// Removes the entry of `hash` and `handle`, which must be there.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u32, handle: u32) {
        debug_assert_eq!(self.links[handle as usize].hash, hash, "removed under another hash");
        self.forget(handle);
    }

    /// Removes the entry of `handle`, which must be there: its hash is still known.
    #[inline(always)]
    pub(crate) fn forget(&mut self, handle: u32) {
        let Link { hash, next } = self.links[handle as usize];
        let place = self.place(hash);
        self.used -= 1;
        let mut at = self.places[place];
        if at == handle {
            self.places[place] = next;
            return;
        }
        loop {
            assert!(at != NONE, "removed from a table that does not have it");
            let link = &mut self.links[at as usize];
            if link.next == handle {
                link.next = next;
                return;
            }
            at = link.next;
        }
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
            table.try_grow(40).unwrap();
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
