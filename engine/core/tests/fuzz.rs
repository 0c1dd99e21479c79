//! Command bytes of chance to a venue, and snapshots of such venues changed by chance: the share of the fuzz targets
//! `core_commands` and `snapshot` that runs with every build. What is checked behind each command stands in
//! `fuzz/subject.rs`.
//!
//! `TOUCHLINE_COMMANDS=100000000 cargo test --release -p touchline-core --test fuzz` runs longer, and so does
//! `TOUCHLINE_CASES=1000000` for snapshots; `TOUCHLINE_SEED` repeats a single input.

#[path = "../../../tests/support/chance.rs"]
mod chance;
#[path = "fuzz/commands.rs"]
mod commands;
#[path = "fuzz/fields.rs"]
mod fields;
#[path = "fuzz/snapshot.rs"]
mod snapshot;

use chance::{Random, Seed, chosen_seed, inputs, variable};
use commands::{Summary, play};
use std::collections::BTreeMap;
use touchline_protocol::message::decode::Command;

/// Commands of a run unless `TOUCHLINE_COMMANDS` says otherwise.
const COMMANDS: u64 = 60_000;
/// Snapshots of a run unless `TOUCHLINE_CASES` says otherwise.
const SNAPSHOTS: u64 = 500;
/// Bytes of an input at most.
const BYTES_MAX: usize = 8192;
/// Between two lines of a long run.
const COMMANDS_PER_LINE: u64 = 10_000_000;

/// The input of a seed.
fn input(random: &mut Random) -> Vec<u8> {
    let length = random.below(BYTES_MAX);
    random.bytes(length)
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
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    let mut all = Summary::default();
    let mut line = COMMANDS_PER_LINE;
    let mut seed = Seed::first();
    while all.commands < commands {
        add(&mut all, play(&input(&mut Random::new(seed.0))));
        if chosen_seed().is_some() {
            return;
        }
        if all.commands >= line {
            line += COMMANDS_PER_LINE;
            println!("{} commands, the last input's seed {}", all.commands, seed.0);
        }
        seed.next();
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
    let (mut taken, mut cases) = (0, 0);
    let are_many = inputs(SNAPSHOTS, |random| {
        cases += 1;
        taken += u64::from(snapshot::read(&input(random)));
    });
    println!("{taken} of {cases} are taken");
    assert!(!are_many || (1..cases).contains(&taken), "{taken} of {cases} are taken");
}

#[test]
fn every_field_may_be_at_every_edge() {
    let [refused, accepted] = fields::every_field_at_every_edge();
    println!("{refused} refused, {accepted} accepted");
    assert!(refused > 10_000 && accepted > 1_000);
}
