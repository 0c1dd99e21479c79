//! Settings with lines changed by chance: the share of the fuzz target `venue_toml` that runs with every
//! build.
//!
//! `TOUCHLINE_CASES=1000000 cargo test --release -p touchline-engine --test fuzz` runs longer;
//! `TOUCHLINE_SEED` repeats a single input.

#[path = "fuzz/venue_toml.rs"]
mod venue_toml;

use std::hash::{BuildHasher, RandomState};

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// Bytes of SplitMix64.
fn input(seed: u64) -> Vec<u8> {
    let word = |n: u64| {
        let mixed = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    (1..9).flat_map(|n| word(n).to_le_bytes()).collect()
}

/// Says which input failed, when one fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the same again with TOUCHLINE_SEED={}", self.0);
        }
    }
}

#[test]
fn any_settings_are_good_or_refused() {
    let chosen = variable("TOUCHLINE_SEED");
    let cases = if chosen.is_some() { 1 } else { variable("TOUCHLINE_CASES").unwrap_or(3_000) };
    let mut seed = Seed(chosen.unwrap_or_else(|| RandomState::new().hash_one(0)));
    let mut good = 0;
    for _ in 0..cases {
        good += u64::from(venue_toml::read(&input(seed.0)));
        seed.0 = seed.0.wrapping_add(1);
    }
    assert!(chosen.is_some() || (1..cases).contains(&good), "{good} of {cases} are good");
}
