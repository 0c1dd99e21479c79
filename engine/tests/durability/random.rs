//! Repeatable choices, and how large a search is. Used by every search here.

use crate::split_mix::SplitMix64;
use std::env;

/// What choices are made of.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.word()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Whether the whole of each search is wanted.
pub(crate) fn is_whole() -> bool {
    env::var_os("TOUCHLINE_WHOLE").is_some_and(|value| value != "0")
}

/// `whole` if that is wanted, else `share`.
pub(crate) fn size(share: u64, whole: u64) -> u64 {
    if is_whole() { whole } else { share }
}

/// The seeds of `cases` cases: from `TOUCHLINE_SEED` on, or `first`.
pub(crate) fn seeds(first: u64, cases: u64) -> impl Iterator<Item = u64> {
    let chosen = env::var("TOUCHLINE_SEED").ok().map(|text| text.parse().unwrap());
    // A seed that was chosen is to repeat one case.
    let count = if chosen.is_some() { 1 } else { cases };
    let first: u64 = chosen.unwrap_or(first);
    first..first + count
}

/// Says which case failed, when one fails.
pub(crate) struct Case(pub(crate) u64);

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the case that failed: TOUCHLINE_SEED={}", self.0);
        }
    }
}
