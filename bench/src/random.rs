//! The generator behind the synthetic flows: xorshift64*, seeded through splitmix64, so that a seed
//! gives the same flow on every machine. Called by [`crate::core`] and [`crate::history`].

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each seed.
    pub(crate) const fn new(seed: u64) -> Self {
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
        // The one state that xorshift never leaves.
        Self(if state == 0 { 1 } else { state })
    }

    /// 64 random bits.
    pub(crate) const fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is above zero.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        ((self.bits() as u128 * end as u128) >> 64) as u64
    }

    /// As [`below`](Self::below), for an index.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from `first` to `last`.
    pub(crate) fn between(&mut self, first: u32, last: u32) -> u32 {
        first + self.below(u64::from(last - first) + 1) as u32
    }

    /// True `percent` times out of a hundred.
    pub(crate) const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A distance in ticks with this mean: most are small, few are large (geometric).
    pub(crate) fn distance(&mut self, mean: i64) -> i64 {
        let mut ticks = 0;
        while self.below(mean.unsigned_abs() + 1) != 0 && ticks < 20 * mean {
            ticks += 1;
        }
        ticks
    }
}

/// A permutation of the numbers below two to the power of `bits`.
pub(crate) const fn permuted(number: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let mut mixed = number & mask;
    let mut round = 0;
    while round < 3 {
        mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
        mixed ^= mixed >> (bits / 2 + 1);
        round += 1;
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_stay_in_range_and_depend_on_the_seed() {
        let mut random = Random::new(7);
        assert!((0..1000).all(|_| random.below(3) < 3 && (5..=9).contains(&random.between(5, 9))));
        let mean = (0..10_000).map(|_| random.distance(20)).sum::<i64>() / 10_000;
        assert!((15..25).contains(&mean), "{mean}");
        assert_ne!(Random::new(1).bits(), Random::new(2).bits());
        assert_eq!(Random::new(1).bits(), Random::new(1).bits());
    }

    #[test]
    fn a_permutation_hits_every_number_once() {
        for bits in [1, 2, 10, 13] {
            let images: HashSet<_> = (0..1 << bits).map(|number| permuted(number, bits)).collect();
            assert_eq!(images.len(), 1 << bits);
            assert!(images.iter().all(|&image| image < 1 << bits));
        }
        assert_ne!(permuted(1, 20) + 1, permuted(2, 20));
    }
}
