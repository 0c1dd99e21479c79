//! Settings with lines changed by chance: the share of the fuzz target `venue_toml` that runs with every
//! build.
//!
//! `TOUCHLINE_CASES=1000000 cargo test --release -p touchline-engine --test fuzz` runs longer;
//! `TOUCHLINE_SEED` repeats a single input.

#[path = "../../tests/support/chance.rs"]
mod chance;
#[path = "fuzz/venue_toml.rs"]
mod venue_toml;

use chance::{chosen_seed, inputs};

#[test]
fn any_settings_are_good_or_refused() {
    let (mut good, mut cases) = (0, 0);
    inputs(3_000, |random| {
        cases += 1;
        let input: Vec<u8> = (0..8).flat_map(|_| random.word().to_le_bytes()).collect();
        good += u64::from(venue_toml::read(&input));
    });
    assert!(chosen_seed().is_some() || (1..cases).contains(&good), "{good} of {cases} are good");
}
