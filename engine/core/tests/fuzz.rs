//! Command bytes of chance to a venue, and snapshots of such venues changed by chance: the share of the fuzz targets
//! `core_commands` and `snapshot` that runs with every build. What is checked behind each command stands in
//! `fuzz/subject.rs`.
//!
//! `TOUCHLINE_COMMANDS=100000000 cargo test --release -p touchline-core --test fuzz` runs longer, and so does
//! `TOUCHLINE_CASES=1000000` for snapshots; `TOUCHLINE_SEED` repeats a single input.

#[path = "fuzz/commands.rs"]
mod commands;
#[path = "fuzz/fields.rs"]
mod fields;
#[path = "fuzz/snapshot.rs"]
mod snapshot;

use commands::{Summary, play};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use touchline_protocol::message::decode::Command;

/// Commands of a run unless `TOUCHLINE_COMMANDS` says otherwise.
const COMMANDS: u64 = 60_000;
/// Snapshots of a run unless `TOUCHLINE_CASES` says otherwise.
const SNAPSHOTS: u64 = 500;
/// Bytes of an input at most.
const BYTES_MAX: u64 = 8192;
/// Between two lines of a long run.
const COMMANDS_PER_LINE: u64 = 10_000_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The input of a seed.
fn input(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let length = random.word() % BYTES_MAX;
    (0..length).map(|_| random.word() as u8).collect()
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

fn merge<K: Ord>(into: &mut BTreeMap<K, u64>, from: BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(key).or_default() += count;
    }
}

fn add(all: &mut Summary, one: Summary) {
    all.commands += one.commands;
    all.undecoded += one.undecoded;
    merge(&mut all.accepted, one.accepted);
    merge(&mut all.refused, one.refused);
    merge(&mut all.reasons, one.reasons);
}

#[test]
fn whatever_the_bytes_say_the_venue_is_sound() {
    let repeated = variable("TOUCHLINE_SEED");
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    let first = repeated.unwrap_or_else(|| RandomState::new().hash_one(0));
    let mut all = Summary::default();
    let mut line = COMMANDS_PER_LINE;
    let mut seed = Seed(first);
    while all.commands < commands {
        add(&mut all, play(&input(seed.0)));
        if repeated.is_some() {
            return;
        }
        if all.commands >= line {
            line += COMMANDS_PER_LINE;
            println!("{} commands, the last input's seed {}", all.commands, seed.0);
        }
        seed.0 = seed.0.wrapping_add(1);
    }
    println!("{all:#?}");
    if commands < COMMANDS {
        return;
    }
    for (_, name) in Command::TEMPLATES {
        assert!(all.accepted.contains_key(name), "no {name} was ever accepted");
        assert!(all.refused.contains_key(name), "no {name} was ever refused");
    }
}

#[test]
fn a_snapshot_of_any_bytes_is_sound_or_refused() {
    let repeated = variable("TOUCHLINE_SEED");
    let cases =
        if repeated.is_some() { 1 } else { variable("TOUCHLINE_CASES").unwrap_or(SNAPSHOTS) };
    let mut seed = Seed(repeated.unwrap_or_else(|| RandomState::new().hash_one(0)));
    let mut taken = 0;
    for _ in 0..cases {
        taken += u64::from(snapshot::read(&input(seed.0)));
        seed.0 = seed.0.wrapping_add(1);
    }
    println!("{taken} of {cases} are taken");
    assert!(cases < SNAPSHOTS || (1..cases).contains(&taken), "{taken} of {cases} are taken");
}

#[test]
fn every_field_may_be_at_every_edge() {
    let [refused, accepted] = fields::every_field_at_every_edge();
    println!("{refused} refused, {accepted} accepted");
    assert!(refused > 10_000 && accepted > 1_000);
}
