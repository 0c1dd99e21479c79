//! What a place of a table says of its entries, in four bytes. Called by [`Heads`](super::Heads).

use super::Link;
use crate::pool::NONE;

/// What a place says of its entries.
pub(crate) trait Place: Copy {
    /// Entries of a table at most; handles are below that.
    const ENTRIES_MAX: u32;
    /// Of a place without any entry.
    const VACANT: Self;

    /// Of a place whose first entry, if it has one, is `first`, which has this link.
    fn of(first: u32, link: impl FnOnce() -> Link) -> Self;

    /// With an entry under `hash` in front of those that it has.
    fn with_one_more(self, handle: u32, hash: u32) -> Self;

    /// The first entry, or [`NONE`].
    fn first(self) -> u32;

    /// False when no entry has this hash; true when one may have it.
    fn may_have(self, hash: u32) -> bool;
}

/// The first entry and nothing else: the least to do where what is looked up is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bare(u32);

impl Place for Bare {
    const ENTRIES_MAX: u32 = NONE;
    const VACANT: Self = Self(NONE);

    #[inline(always)]
    fn of(first: u32, _link: impl FnOnce() -> Link) -> Self {
        Self(first)
    }

    #[inline(always)]
    fn with_one_more(self, handle: u32, _hash: u32) -> Self {
        Self(handle)
    }

    #[inline(always)]
    fn first(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn may_have(self, _hash: u32) -> bool {
        self.0 != NONE
    }
}

/// The first entry, whether it is the only one, and a little of its hash: where most of what is looked up is not
/// there, as with the names of new orders, that is known by the place alone, without a look at the entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Telling(u32);

/// Bits of the first entry's handle, the lowest.
const HANDLE_BITS: u32 = 26;
const HANDLE: u32 = (1 << HANDLE_BITS) - 1;

/// Bits of the first entry's hash, above those of the handle: its highest, since its lowest choose the place.
const TAG_BITS: u32 = 4;

/// Set if the first entry is the only one.
const SOLE_AT: u32 = HANDLE_BITS + TAG_BITS;

const _: () = assert!(SOLE_AT == u32::BITS - 2 && NONE == u32::MAX);

impl Telling {
    const fn new(handle: u32, hash: u32, is_sole: bool) -> Self {
        Self(handle | tag(hash) | (is_sole as u32) << SOLE_AT)
    }

    /// The highest bit of a place without entries, of which all bits are set.
    const fn is_vacant(self) -> bool {
        self.0.cast_signed() < 0
    }
}

const fn tag(hash: u32) -> u32 {
    hash >> (u32::BITS - TAG_BITS) << HANDLE_BITS
}

impl Place for Telling {
    const ENTRIES_MAX: u32 = 1 << HANDLE_BITS;
    const VACANT: Self = Self(u32::MAX);

    #[inline(always)]
    fn of(first: u32, link: impl FnOnce() -> Link) -> Self {
        if first == NONE {
            return Self::VACANT;
        }
        let Link { hash, next } = link();
        Self::new(first, hash, next == NONE)
    }

    #[inline(always)]
    fn with_one_more(self, handle: u32, hash: u32) -> Self {
        Self::new(handle, hash, self.is_vacant())
    }

    #[inline(always)]
    fn first(self) -> u32 {
        if self.is_vacant() { NONE } else { self.0 & HANDLE }
    }

    #[inline(always)]
    fn may_have(self, hash: u32) -> bool {
        // The tag becomes zeros if it is that of the hash. Then an only entry has just its own bit, several have less,
        // and more is set in a place with another one and in one without any.
        (self.0 ^ tag(hash)) >> HANDLE_BITS <= 1 << (SOLE_AT - HANDLE_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: u32 = Telling::ENTRIES_MAX - 1;

    #[test]
    fn a_place_gives_back_its_first_entry_whatever_the_hash() {
        for handle in [0, 1, LAST] {
            for hash in [0, 1, 0x0fff_ffff, 0xf000_0000, u32::MAX] {
                for next in [NONE, 0, LAST] {
                    let place = Telling::of(handle, || Link { hash, next });
                    assert_eq!(place.first(), handle);
                    assert!(place.may_have(hash));
                }
                let sole = Telling::VACANT.with_one_more(handle, hash);
                assert_eq!(sole, Telling::of(handle, || Link { hash, next: NONE }));
                let two = sole.with_one_more(7, !hash);
                assert_eq!(two, Telling::of(7, || Link { hash: !hash, next: handle }));
            }
        }
        assert_eq!(Telling::VACANT.first(), NONE);
        assert_eq!(Telling::of(NONE, || panic!("there is none")), Telling::VACANT);
    }

    #[test]
    fn a_sole_entry_excludes_hashes_that_begin_otherwise_and_a_vacant_place_all() {
        for high in 0..16_u32 {
            for other in 0..16_u32 {
                let [own, asked] = [high << 28 | 5, other << 28 | 6];
                let sole = Telling::VACANT.with_one_more(LAST, own);
                assert_eq!(sole.may_have(asked), high == other);
                assert!(sole.with_one_more(3, own).may_have(asked));
            }
            assert!(!Telling::VACANT.may_have(high << 28));
        }
    }
}
