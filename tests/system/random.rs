//! A seeded random number generator, so that a failing run can be repeated from the seed that it printed. Called by
//! the crash tests.

#[path = "../support/split_mix.rs"]
mod split_mix;

use split_mix::SplitMix64;

/// The generator.
pub(crate) struct Random(SplitMix64);

impl Random {
    /// Starts from `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    /// A seed that differs from run to run.
    pub(crate) fn fresh_seed() -> u64 {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("the clock stands behind 1970");
        now.as_nanos() as u64
    }

    /// The next 64 bits.
    #[allow(dead_code, reason = "not every test that draws needs them whole")]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.word()
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }
}
