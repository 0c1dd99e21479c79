//! Which ticks of the window are occupied, in three layers of bits: the next one upwards or downwards is
//! found in a few steps, however far it is. Called by [`Textbook`](super::Textbook).

use super::TICKS;

const WORDS: usize = TICKS / 64;
const GROUPS: usize = WORDS / 64;
const _: () = assert!(GROUPS <= 64, "one word tells of all groups");

/// One bit per tick, one per 64 of those, and one per 64 of these.
#[derive(Debug)]
pub(super) struct Bitmap {
    words: Box<[u64; WORDS]>,
    groups: [u64; GROUPS],
    top: u64,
}

impl Bitmap {
    /// No tick.
    pub(super) fn new() -> Self {
        Self { words: Box::new([0; WORDS]), groups: [0; GROUPS], top: 0 }
    }

    /// Whether a tick is occupied.
    pub(super) fn is_set(&self, tick: usize) -> bool {
        self.words[tick / 64] >> (tick % 64) & 1 == 1
    }

    /// A tick is occupied.
    #[inline]
    pub(super) fn set(&mut self, tick: usize) {
        let word = tick / 64;
        self.words[word] |= 1 << (tick % 64);
        self.groups[word / 64] |= 1 << (word % 64);
        self.top |= 1 << (word / 64);
    }

    /// A tick is not.
    #[inline]
    pub(super) fn clear(&mut self, tick: usize) {
        let word = tick / 64;
        self.words[word] &= !(1 << (tick % 64));
        if self.words[word] == 0 {
            self.groups[word / 64] &= !(1 << (word % 64));
            if self.groups[word / 64] == 0 {
                self.top &= !(1 << (word / 64));
            }
        }
    }

    /// The first occupied tick from `tick` upwards, or [`TICKS`].
    #[inline]
    pub(super) fn up_from(&self, tick: usize) -> usize {
        let here = self.words[tick / 64] >> (tick % 64);
        if here != 0 {
            return tick + first(here);
        }
        let word = tick / 64;
        let above = self.groups[word / 64] & higher(word % 64);
        if above != 0 {
            return self.lowest(word / 64 * 64 + first(above));
        }
        let groups = self.top & higher(word / 64);
        if groups == 0 {
            return TICKS;
        }
        let group = first(groups);
        self.lowest(group * 64 + first(self.groups[group]))
    }

    /// The first occupied tick from `tick` downwards, or [`TICKS`].
    #[inline]
    pub(super) fn down_from(&self, tick: usize) -> usize {
        let here = self.words[tick / 64] << (63 - tick % 64);
        if here != 0 {
            return tick - here.leading_zeros() as usize;
        }
        let word = tick / 64;
        let below = self.groups[word / 64] & lower(word % 64);
        if below != 0 {
            return self.highest(word / 64 * 64 + last(below));
        }
        let groups = self.top & lower(word / 64);
        if groups == 0 {
            return TICKS;
        }
        let group = last(groups);
        self.highest(group * 64 + last(self.groups[group]))
    }

    #[inline]
    fn lowest(&self, word: usize) -> usize {
        word * 64 + first(self.words[word])
    }

    #[inline]
    fn highest(&self, word: usize) -> usize {
        word * 64 + last(self.words[word])
    }
}

/// The lowest bit that is set; one is.
#[inline]
const fn first(bits: u64) -> usize {
    bits.trailing_zeros() as usize
}

/// The highest bit that is set; one is.
#[inline]
const fn last(bits: u64) -> usize {
    63 - bits.leading_zeros() as usize
}

/// The bits above one.
#[inline]
const fn higher(bit: usize) -> u64 {
    u64::MAX << bit << 1
}

/// The bits below one.
#[inline]
const fn lower(bit: usize) -> u64 {
    (1 << bit) - 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::Random;

    #[test]
    fn neighbours_are_those_of_a_sorted_set() {
        let mut random = Random::new(5);
        // Few ticks that lie far from each other, and many that lie near.
        for (spread, most) in [(1, 3), (1, 400), (64, 40), (4_096, 12)] {
            let (mut bitmap, mut set) = (Bitmap::new(), BTreeSet::new());
            for step in 0..20_000 {
                let tick = random.index(TICKS / spread) * spread;
                if set.len() < most {
                    bitmap.set(tick);
                    set.insert(tick);
                } else if let Some(&gone) = set.iter().nth(random.index(set.len())) {
                    bitmap.clear(gone);
                    set.remove(&gone);
                }
                let from = [0, TICKS - 1, random.index(TICKS)][step % 3];
                assert_eq!(bitmap.up_from(from), *set.range(from..).next().unwrap_or(&TICKS));
                let below = *set.range(..=from).next_back().unwrap_or(&TICKS);
                assert_eq!(bitmap.down_from(from), below);
                assert_eq!(bitmap.is_set(from), set.contains(&from));
            }
        }
    }
}
