//! Adding, cancelling and taking, over and over, with more orders than there are places by far: no order
//! is lost, none is leaked, each price is first in first out, and the best price is one at which
//! somebody stands.
//!
//! `TOUCHLINE_COMMANDS=100000000 cargo test --release -p touchline-core --test cycles` runs longer;
//! `TOUCHLINE_SEED` repeats a run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "cycles/book.rs"]
mod book;
#[path = "cycles/shadow.rs"]
mod shadow;
#[path = "../../../tests/support/split_mix.rs"]
mod split_mix;
#[path = "support/venue.rs"]
mod venue;
#[path = "cycles/whole.rs"]
mod whole;

use split_mix::SplitMix64;
use std::hash::{BuildHasher, RandomState};

/// Commands of a run unless `TOUCHLINE_COMMANDS` says otherwise.
const COMMANDS: u64 = 1_000_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

fn commands() -> u64 {
    variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS)
}

/// Random numbers whose seed is printed when the test fails.
struct Random {
    seed: u64,
    numbers: SplitMix64,
}

impl Random {
    fn new() -> Self {
        let seed = variable("TOUCHLINE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
        Self { seed, numbers: SplitMix64(seed) }
    }

    fn word(&mut self) -> u64 {
        self.numbers.word()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.numbers.below(bound)
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the same again with TOUCHLINE_SEED={}", self.seed);
        }
    }
}
