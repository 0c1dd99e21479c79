//! A look-up table from a 32-bit hash to a handle. Used for order numbers, client order ids and the
//! names of assets, symbols, accounts and sessions.
//!
//! Entries of a place are chained through links that lie by handle, since handles are small numbers
//! without gaps. So there is nothing to probe, shift or leave behind: adding and removing an entry is a
//! store or two, and how long it takes does not depend on what came before. The caller compares keys,
//! since only it has them; the hash is kept with the link so that most mismatches cost no further
//! cache line and growth needs no keys. Where most keys that are looked up are not there, a place can tell
//! nearly always that they are not ([`Telling`]).

mod place;

pub(crate) use place::{Bare, Place, Telling};

use crate::pool::{NONE, named};
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// Tables that need no more places than these, 256 KiB of them, for four per entry have so many, and others two: the
/// fewer entries are behind another one the fewer guesses of the processor are wrong.
const SPARSE_PLACES_MAX: usize = 1 << 16;

/// Places of a table for so many entries: a power of two.
const fn places_for(entries: usize) -> usize {
    let sparse = (entries * 4).next_power_of_two();
    if sparse <= SPARSE_PLACES_MAX { sparse } else { (entries * 2).next_power_of_two() }
}

/// What is known of an entry, by its handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    hash: u32,
    /// The next entry of the same place.
    next: u32,
}

impl Link {
    /// Of no entry.
    pub(crate) const LOOSE: Self = Self { hash: 0, next: NONE };

    /// Hash of its entry; of one that has left the table, too.
    pub(crate) const fn hash(&self) -> u32 {
        self.hash
    }
}

/// Says where in an item its link lies, of a table whose entries are items of something else.
pub(crate) trait LinkOf<T> {
    /// An item's link.
    fn link(item: &T) -> &Link;
    /// As [`link`](Self::link), to change.
    fn link_mut(item: &mut T) -> &mut Link;
}

/// Of a table whose links lie alone.
#[derive(Debug)]
pub(crate) struct Alone;

impl LinkOf<Link> for Alone {
    #[inline(always)]
    fn link(item: &Link) -> &Link {
        item
    }

    #[inline(always)]
    fn link_mut(item: &mut Link) -> &mut Link {
        item
    }
}

/// A table without its links: they lie in items, by handle, which are handed to each call. Without growth
/// it holds nothing. `P` is what each place says of its entries.
#[derive(Debug)]
pub(crate) struct Heads<L, P = Bare> {
    /// A power of two in number, or none. At least two for each entry.
    places: Vec<P>,
    links: PhantomData<L>,
}

impl<L, P: Place> Heads<L, P> {
    /// A table without any room.
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), links: PhantomData }
    }

    /// Makes room for `entries` in all, with handles below that. Never shrinks.
    ///
    /// # Errors
    /// When there is no memory; the table is as it was.
    pub(crate) fn try_grow<T>(
        &mut self,
        items: &mut [T],
        entries: u32,
    ) -> Result<(), TryReserveError>
    where
        L: LinkOf<T>,
    {
        assert!(entries <= P::ENTRIES_MAX, "a table of {entries} entries");
        let wanted = places_for(entries as usize);
        if wanted <= self.places.len() {
            return Ok(());
        }
        let mut places = Vec::new();
        places.try_reserve_exact(wanted)?;
        places.resize(wanted, P::VACANT);
        for place in core::mem::replace(&mut self.places, places) {
            let mut at = place.first();
            while at != NONE {
                let Link { hash, next } = *L::link(&items[at as usize]);
                self.chain(items, hash, at);
                at = next;
            }
        }
        Ok(())
    }

    /// Entries, counted one by one: for checks that all fits together.
    pub(crate) fn count<T>(&self, items: &[T]) -> u32
    where
        L: LinkOf<T>,
    {
        let next = |&at: &u32| named(L::link(&items[at as usize]).next);
        let of_place =
            |place: &P| core::iter::successors(named(place.first()), next).count() as u32;
        self.places.iter().map(of_place).sum()
    }

    #[inline(always)]
    fn place(&self, hash: u32) -> usize {
        hash as usize & self.places.len().wrapping_sub(1)
    }

    #[inline(always)]
    fn place_of(&self, hash: u32) -> P {
        self.places.get(self.place(hash)).copied().unwrap_or(P::VACANT)
    }

    /// False when no entry has this hash; true when one may have it.
    #[inline(always)]
    pub(crate) fn may_have(&self, hash: u32) -> bool {
        self.place_of(hash).may_have(hash)
    }

    /// The first entry in the place of `hash`: likely the one, if any is.
    #[inline(always)]
    pub(crate) fn first_guess(&self, hash: u32) -> u32 {
        self.place_of(hash).first()
    }

    /// Goes on from entries that are not those of their hashes to the next ones of their places, or to
    /// [`NONE`]. Decides nothing: for loading what may be needed soon.
    pub(crate) fn guess_again<T>(&self, items: &[T], hashes: &[u32], entries: &mut [u32])
    where
        L: LinkOf<T>,
    {
        let Some(last) = items.len().checked_sub(1) else { return };
        for (&hash, entry) in hashes.iter().zip(entries) {
            let link = *L::link(&items[(*entry as usize).min(last)]);
            let stays = *entry == NONE || link.hash == hash;
            *entry = if stays { *entry } else { link.next };
        }
    }

    /// The handle under `hash` that `is_it` recognises.
    #[inline(always)]
    pub(crate) fn find<T>(
        &self,
        items: &[T],
        hash: u32,
        mut is_it: impl FnMut(u32, &T) -> bool,
    ) -> Option<u32>
    where
        L: LinkOf<T>,
    {
        let mut at = self.first_guess(hash);
        while at != NONE {
            let item = &items[at as usize];
            let link = L::link(item);
            if link.hash == hash && is_it(at, item) {
                return Some(at);
            }
            at = link.next;
        }
        None
    }

    /// Adds an entry whose key is not in the table.
    #[inline(always)]
    fn chain<T>(&mut self, items: &mut [T], hash: u32, handle: u32)
    where
        L: LinkOf<T>,
    {
        *L::link_mut(&mut items[handle as usize]) = self.insert_made(hash, handle);
    }

    /// Adds an entry whose key is not in the table and whose item is just being made: gives the link that is to be
    /// in it.
    #[inline(always)]
    pub(crate) fn insert_made(&mut self, hash: u32, handle: u32) -> Link {
        let place = self.place(hash);
        let place = &mut self.places[place];
        let next = place.first();
        *place = place.with_one_more(handle, hash);
        Link { hash, next }
    }

    /// Removes the entry under `hash` that `is_it` recognises and gives its handle.
    #[inline]
    fn take<T>(
        &mut self,
        items: &mut [T],
        hash: u32,
        mut is_it: impl FnMut(u32) -> bool,
    ) -> Option<u32>
    where
        L: LinkOf<T>,
    {
        let mut before = NONE;
        let mut at = self.first_guess(hash);
        while at != NONE {
            let link = *L::link(&items[at as usize]);
            if link.hash == hash && is_it(at) {
                self.unchain(items, (hash, before), link.next);
                return Some(at);
            }
            before = at;
            at = link.next;
        }
        None
    }

    /// Removes what is behind `before`, or the first entry, of the place of `hash`: `next` comes instead.
    #[inline(always)]
    fn unchain<T>(&mut self, items: &mut [T], (hash, before): (u32, u32), next: u32)
    where
        L: LinkOf<T>,
    {
        let place = self.place(hash);
        if before == NONE {
            self.places[place] = P::of(next, || *L::link(&items[next as usize]));
            return;
        }
        let link = L::link_mut(&mut items[before as usize]);
        link.next = next;
        if self.places[place].first() == before {
            self.places[place] = P::of(before, || *link);
        }
    }

    /// Removes the entry of `handle`, which must be there: its hash is still known.
    #[inline(always)]
    pub(crate) fn forget<T>(&mut self, items: &mut [T], handle: u32)
    where
        L: LinkOf<T>,
    {
        let Link { hash, next } = *L::link(&items[handle as usize]);
        let mut before = NONE;
        let mut at = self.places[self.place(hash)].first();
        while at != handle {
            assert!(at != NONE, "removed from a table that does not have it");
            before = at;
            at = L::link(&items[at as usize]).next;
        }
        self.unchain(items, (hash, before), next);
    }
}

/// The table. Without growth it holds nothing.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Heads<Alone>,
    links: Vec<Link>,
    used: u32,
}

impl Table {
    /// A table without any room.
    pub(crate) const fn new() -> Self {
        Self { heads: Heads::new(), links: Vec::new(), used: 0 }
    }

    /// Makes room for `entries` in all, with handles below that. Never shrinks.
    ///
    /// # Errors
    /// When there is no memory; the table is as it was.
    pub(crate) fn try_grow(&mut self, entries: u32) -> Result<(), TryReserveError> {
        let more = (entries as usize).saturating_sub(self.links.len());
        if more > 0 {
            self.links.try_reserve_exact(more)?;
            self.heads.try_grow(&mut self.links, entries)?;
            self.links.resize(entries as usize, Link::LOOSE);
        }
        Ok(())
    }

    /// Bytes of memory that it has taken.
    #[cfg(test)]
    pub(crate) const fn memory(&self) -> usize {
        self.heads.places.capacity() * size_of::<Bare>() + self.links.capacity() * size_of::<Link>()
    }

    /// Entries.
    pub(crate) const fn len(&self) -> u32 {
        self.used
    }

    /// See [`Heads::first_guess`].
    #[inline(always)]
    pub(crate) fn first_guess(&self, hash: u32) -> u32 {
        self.heads.first_guess(hash)
    }

    /// See [`Heads::guess_again`].
    pub(crate) fn guess_again(&self, hashes: &[u32], entries: &mut [u32]) {
        self.heads.guess_again(&self.links, hashes, entries);
    }

    /// The handle under `hash` that `is_it` recognises.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.heads.find(&self.links, hash, |at, _| is_it(at))
    }

    /// Adds an entry whose key is not in the table.
    #[inline(always)]
    pub(crate) fn insert(&mut self, hash: u32, handle: u32) {
        self.used += 1;
        self.heads.chain(&mut self.links, hash, handle);
    }

    /// Removes the entry under `hash` that `is_it` recognises and gives its handle.
    #[inline]
    pub(crate) fn take(&mut self, hash: u32, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let taken = self.heads.take(&mut self.links, hash, is_it);
        self.used -= u32::from(taken.is_some());
        taken
    }

    /// Removes the entry of `hash` and `handle`, which must be there.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u32, handle: u32) {
        debug_assert_eq!(self.links[handle as usize].hash, hash, "removed under another hash");
        self.used -= 1;
        self.heads.forget(&mut self.links, handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec;
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

    /// What each place says stays true, whatever comes and goes: of keys that share places, and more or less of their
    /// hashes.
    fn places_say_what_is_so<P: Place + PartialEq + core::fmt::Debug>(
        operations: Vec<(u32, bool)>,
    ) -> Result<(), TestCaseError> {
        let hash = |key: u32| (key % 3) << 29 | (key % 5).wrapping_sub(2) & 0x0fff_ffff;
        let mut links = vec![Link::LOOSE; 40];
        let mut heads = Heads::<Alone, P>::new();
        let mut model = BTreeMap::new();
        heads.try_grow(&mut links, 20).unwrap();
        for (step, (key, add)) in operations.into_iter().enumerate() {
            if step == 100 {
                heads.try_grow(&mut links, 40).unwrap();
            }
            if add && !model.contains_key(&key) {
                heads.chain(&mut links, hash(key), key);
                model.insert(key, ());
            } else if !add && model.remove(&key).is_some() {
                if step % 2 == 0 {
                    heads.forget(&mut links, key);
                } else {
                    let taken = heads.take(&mut links, hash(key), |handle| handle == key);
                    prop_assert_eq!(taken, Some(key));
                }
            }
            prop_assert_eq!(heads.count(&links) as usize, model.len());
            prop_assert!(model.keys().all(|&key| heads.may_have(hash(key))));
            for place in &heads.places {
                let first = place.first();
                prop_assert_eq!(*place, P::of(first, || links[first as usize]));
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn bare_places_say_what_is_so(operations in prop::collection::vec((0u32..40, any::<bool>()), 0..400)) {
            places_say_what_is_so::<Bare>(operations)?;
        }

        #[test]
        fn telling_places_say_what_is_so(operations in prop::collection::vec((0u32..40, any::<bool>()), 0..400)) {
            places_say_what_is_so::<Telling>(operations)?;
        }
    }

    #[test]
    fn small_tables_are_sparse_and_none_gets_fewer_places_for_more_entries() {
        let places = [0, 1, 16_384, 16_385, 32_768, 32_769, 1 << 20].map(places_for);
        assert_eq!(places, [1, 4, 1 << 16, 1 << 16, 1 << 16, 1 << 17, 1 << 21]);
        assert!((0..70_000).is_sorted_by_key(places_for));
    }

    #[test]
    fn a_table_without_room_finds_nothing() {
        assert_eq!(Table::new().find(5, |_| true), None);
    }
}
