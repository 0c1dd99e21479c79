//! Numbers that look random, and of what sizes the prices and quantities of a case are.

use crate::split_mix::SplitMix64;
use crate::venue::WHOLE;
use touchline_core::AMOUNT_MAX;

/// Numbers that look random, and are the same for the same seed.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// From `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Sizes of a case, 10⁻⁸ all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// About which each symbol's prices lie, and how far from each other.
    pub(crate) price: [i64; 3],
    pub(crate) tick: [i64; 3],
    pub(crate) least: i64,
    pub(crate) most: i64,
    /// What each account has of each asset, or a little less.
    pub(crate) deposit: i64,
}

pub(crate) const SCALES: [Scale; 7] = [
    // Whole numbers.
    Scale {
        price: [100 * WHOLE, 100 * WHOLE, WHOLE],
        tick: [WHOLE, WHOLE, WHOLE / 10],
        least: WHOLE,
        most: 8 * WHOLE,
        deposit: 1_000_000 * WHOLE,
    },
    // Everything is rounded: a unit of quote is worth a lot of base.
    Scale {
        price: [37, 41, WHOLE + 3],
        tick: [1, 1, 7],
        least: 3_000_001,
        most: 40_000_003,
        deposit: 900 * WHOLE,
    },
    // Odd numbers.
    Scale {
        price: [1_234_567_891, 987_654_321, 3_333_333],
        tick: [1_000_003, 7, 101],
        least: 1,
        most: 1_000_000_007,
        deposit: 100_000 * WHOLE,
    },
    // The largest amounts.
    Scale {
        price: [WHOLE, WHOLE, WHOLE],
        tick: [1, WHOLE / 50, WHOLE / 3 - 1],
        least: 1,
        most: AMOUNT_MAX / 6,
        deposit: AMOUNT_MAX / 5,
    },
    // Huge prices, specks of base.
    Scale {
        price: [AMOUNT_MAX / 2, AMOUNT_MAX, AMOUNT_MAX / 3],
        tick: [AMOUNT_MAX / 40, AMOUNT_MAX / 17, 1],
        least: 1,
        most: 30_000_000,
        deposit: AMOUNT_MAX / 5,
    },
    // Where prices end.
    Scale {
        price: [i64::MAX - 5, i64::MAX, i64::MAX / 2],
        tick: [1, 1 << 60, 1 << 40],
        least: 1,
        most: 9_000_000,
        deposit: AMOUNT_MAX / 5,
    },
    // The least prices and large quantities.
    Scale {
        price: [5, 1, 2],
        tick: [1, 1, 1],
        least: WHOLE / 3,
        most: AMOUNT_MAX / 4,
        deposit: AMOUNT_MAX / 5,
    },
];

impl Scale {
    /// A price about the last one, or about the middle one.
    pub(crate) fn price(&self, random: &mut Random, symbol: u32, last: Option<i64>) -> i64 {
        let at = symbol as usize;
        let middle = last.filter(|_| random.once_in(2)).unwrap_or(self.price[at]);
        let reach = if random.once_in(6) { 12 } else { 4 };
        let away = random.range(-reach, reach).saturating_mul(self.tick[at]);
        middle.saturating_add(away).max(1)
    }

    /// So many ticks above a price, or below it.
    pub(crate) fn beside(&self, symbol: u32, price: i64, ticks: i64) -> i64 {
        price.saturating_add(ticks.saturating_mul(self.tick[symbol as usize])).max(1)
    }

    pub(crate) fn quantity(&self, random: &mut Random) -> i64 {
        let Self { least, most, .. } = *self;
        let quantity = match random.below(8) {
            0 => least,
            1 => most,
            2 => random.range(least, (least + (most - least) / 1000).max(least)),
            _ => random.range(least, most / 3 + least),
        };
        if self.is_of_whole_numbers() { (quantity / WHOLE).max(1) * WHOLE } else { quantity }
    }

    pub(crate) const fn is_of_whole_numbers(&self) -> bool {
        self.least == WHOLE
    }
}
