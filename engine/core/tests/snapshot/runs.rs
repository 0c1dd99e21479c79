//! Random runs of the model in which the venue is written and read again between any two steps.

use crate::parts::{again, sections, write};
use crate::situations::{
    steps_among_own_orders, steps_in_halts, steps_in_sweeps, steps_of_extremes, steps_over_hours,
};
use crate::steps::{Step, steps};
use crate::world::World;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use touchline_core::Core;
use touchline_protocol::snapshot::records;

/// Commands of a run unless `TOUCHLINE_COMMANDS` says otherwise.
const COMMANDS: u64 = 20_000;
/// Steps of a case at most.
const STEPS: usize = 300;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// How many commands a run has at least.
pub(crate) fn commands(otherwise: u64) -> u64 {
    variable("TOUCHLINE_COMMANDS").unwrap_or(otherwise)
}

/// The seed of a run's first case: another one in every process, unless one is named.
pub(crate) fn first_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let new = || RandomState::new().hash_one("seed") >> 16;
    variable("TOUCHLINE_SEED").unwrap_or_else(new)
}

pub(crate) fn case(rules: u32, seed: u64) -> Vec<Step> {
    case_of(steps(rules), seed)
}

/// As [`case`], with steps of a certain kind.
fn case_of(steps: impl Strategy<Value = Step>, seed: u64) -> Vec<Step> {
    sampled(prop::collection::vec(steps, 1..STEPS), seed)
}

/// What a strategy gives for a seed.
pub(crate) fn sampled<S: Strategy>(strategy: S, seed: u64) -> S::Value {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    strategy.new_tree(&mut runner).unwrap().current()
}

/// Plays steps, the venue written and read again behind every `every`-th; gives the commands.
fn play(rules: u32, steps: &[Step], every: usize, seen: &mut BTreeMap<u32, u64>) -> u64 {
    let mut world = World::new(rules);
    for (at, step) in steps.iter().enumerate() {
        world.step(step);
        if at % every == 0 {
            let core = &world.venue.core;
            for (section, _, records) in sections(&write(core)) {
                *seen.entry(section).or_default() += u64::from(records > 0);
            }
            world.venue.core = again(core, at as u64);
        }
    }
    let world = world.drain();
    // What the venues that were read have decided is what one that never was decides, to the byte.
    world.venue.check_replay();
    world.census.commands
}

fn run(rules: u32, commands: u64) -> BTreeMap<u32, u64> {
    run_of(rules, commands, |seed| case(rules, seed))
}

/// As [`run`], with cases of a certain kind.
fn run_of(rules: u32, commands: u64, case: impl Fn(u64) -> Vec<Step>) -> BTreeMap<u32, u64> {
    let mut seen = BTreeMap::new();
    let (mut done, mut seed) = (0, first_seed());
    while done < commands {
        eprintln!("rules {rules}, TOUCHLINE_SEED={seed}");
        let every = [1, 1, 2, 7][(seed % 4) as usize];
        done += play(rules, &case(seed), every, &mut seen);
        seed = seed.wrapping_add(1);
    }
    seen
}

#[test]
fn goes_on_as_if_nothing_had_been_by_rules_1() {
    run(1, commands(COMMANDS) / 8);
}

#[test]
fn goes_on_as_if_nothing_had_been_by_rules_2() {
    run(2, commands(COMMANDS) / 8);
}

#[test]
fn goes_on_as_if_nothing_had_been_by_rules_3() {
    run(3, commands(COMMANDS) / 8);
}

#[test]
fn goes_on_as_if_nothing_had_been_by_rules_4() {
    run(4, commands(COMMANDS) / 8);
}

#[test]
fn goes_on_as_if_nothing_had_been_by_rules_5() {
    run(5, commands(COMMANDS) / 8);
}

#[test]
fn goes_on_as_if_nothing_had_been_by_rules_6() {
    run(6, commands(COMMANDS) / 8);
}

#[test]
fn goes_on_as_if_nothing_had_been_by_rules_7() {
    run(7, commands(COMMANDS) / 8);
}

#[test]
fn goes_on_as_if_nothing_had_been_by_rules_8() {
    let commands = commands(COMMANDS);
    let seen = run(8, commands);
    if commands >= COMMANDS {
        for section in records::VENUE..=records::END {
            assert!(seen.get(&section).is_some_and(|&count| count > 0), "{section}: {seen:?}");
        }
    }
}

/// MARKET orders that are continued behind orders of their own account, as far as their lock pays.
#[test]
fn goes_on_as_if_nothing_had_been_among_own_orders() {
    let commands = commands(COMMANDS);
    for rules in 2..=8 {
        run_of(rules, commands / 8, |seed| case_of(steps_among_own_orders(), seed));
    }
}

/// Stops that a halt keeps, and those that go on behind it.
#[test]
fn goes_on_as_if_nothing_had_been_in_halts() {
    let commands = commands(COMMANDS);
    for rules in [4, 5, 8] {
        run_of(rules, commands / 8, |seed| case_of(steps_in_halts(), seed));
    }
}

/// Sweeps of all kinds that wait for each other.
#[test]
fn goes_on_as_if_nothing_had_been_in_sweeps() {
    let commands = commands(COMMANDS);
    for rules in [2, 4, 5, 7, 8] {
        run_of(rules, commands / 8, |seed| case_of(steps_in_sweeps(), seed));
    }
}

/// The largest numbers, and the minutes of the averages.
#[test]
fn goes_on_as_if_nothing_had_been_at_edges() {
    let commands = commands(COMMANDS);
    for rules in [2, 8] {
        run_of(rules, commands / 16, |seed| case_of(steps_of_extremes(), seed));
        run_of(rules, commands / 16, |seed| case_of(steps_over_hours(), seed));
    }
}

#[test]
fn a_venue_without_anything() {
    let core = again(&Core::new(), 3);
    assert_eq!(core.counts().accounts, 1);
}
