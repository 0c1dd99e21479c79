//! Inputs of chance: what the tests have in common that run a share of the fuzz targets with every build. Part of the
//! test executable `fuzz` of each package.
//!
//! `TOUCHLINE_CASES` says how many inputs there are, `TOUCHLINE_SEED` repeats a single one.
#![allow(dead_code, reason = "no test executable uses all of it")]

#[path = "split_mix.rs"]
mod split_mix;

use split_mix::SplitMix64;
use std::hash::{BuildHasher, RandomState};

/// A whole number from the environment.
pub(crate) fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// The seed that is asked for; no other input is tried then.
pub(crate) fn chosen_seed() -> Option<u64> {
    variable("TOUCHLINE_SEED")
}

/// What inputs are made of.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.word()
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.word() as u8).collect()
    }
}

/// Seeds one behind the other; says at which one a test failed.
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    /// The one that is asked for, or any.
    pub(crate) fn first() -> Self {
        Self(chosen_seed().unwrap_or_else(|| RandomState::new().hash_one(0)))
    }

    pub(crate) fn next(&mut self) {
        self.0 = self.0.wrapping_add(1);
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the same again with TOUCHLINE_SEED={}", self.0);
        }
    }
}

/// Runs inputs of fresh seeds, or the one that is asked for; true if they were as many as usual.
pub(crate) fn inputs(usual: u64, mut run: impl FnMut(&mut Random)) -> bool {
    let cases = match chosen_seed() {
        Some(_) => 1,
        None => variable("TOUCHLINE_CASES").unwrap_or(usual),
    };
    let mut seed = Seed::first();
    for _ in 0..cases {
        run(&mut Random::new(seed.0));
        seed.next();
    }
    cases >= usual
}
