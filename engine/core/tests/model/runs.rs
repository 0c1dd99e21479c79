//! Runs of random steps: how long, from which seed, and what must occur in them.

use crate::census::Census;
use crate::situations::{
    steps_among_own_orders, steps_in_halts, steps_in_sweeps, steps_of_extremes, steps_over_hours,
};
use crate::steps::{Step, steps};
use crate::world::World;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::panic::catch_unwind;
use std::sync::Once;

/// Commands of a run unless `TOUCHLINE_COMMANDS` says otherwise.
const COMMANDS: u64 = 200_000;
/// Steps of a case at most.
const STEPS: usize = 400;
/// Between two lines of a long run.
const COMMANDS_PER_LINE: u64 = 1_000_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

thread_local! {
    /// Panics are caught and retold in the end.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Shrinking goes over thousands of panics that nobody wants to read.
fn keep_quiet(quiet: bool) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(quiet);
}

/// Plays steps to the end; gives what occurred.
pub(crate) fn play(rules: u32, steps: &[Step]) -> Census {
    let mut world = World::new(rules);
    for step in steps {
        world.step(step);
    }
    let world = world.drain();
    world.venue.check_replay();
    world.census
}

/// What goes wrong when steps are played, if anything does.
fn goes_wrong(rules: u32, steps: &[Step]) -> Option<String> {
    let played = catch_unwind(|| play(rules, steps)).err()?;
    let text = played.downcast_ref::<String>().cloned();
    let text = text.or_else(|| played.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Some(text.unwrap_or_else(|| "a panic without words".to_owned()))
}

/// As few and as simple steps as still go wrong: simpler ones first, then without each that is not
/// needed.
fn shrink(rules: u32, mut tree: impl ValueTree<Value = Vec<Step>>) -> Vec<Step> {
    let mut shortest = tree.current();
    let mut tries = 3000;
    'simpler: while tries > 0 && tree.simplify() {
        loop {
            tries -= 1;
            if goes_wrong(rules, &tree.current()).is_some() {
                shortest = tree.current();
                break;
            }
            if tries == 0 || !tree.complicate() {
                break 'simpler;
            }
        }
    }
    for at in (0..shortest.len()).rev() {
        let mut without = shortest.clone();
        without.remove(at);
        if goes_wrong(rules, &without).is_some() {
            shortest = without;
        }
    }
    shortest
}

/// Cases of random steps until so many commands have been decided.
fn run(rules: u32, commands: u64) -> Census {
    run_of(rules, commands, steps(rules))
}

/// As [`run`], with steps of a certain kind.
fn run_of(rules: u32, commands: u64, steps: impl Strategy<Value = Step>) -> Census {
    let first = variable("TOUCHLINE_SEED").unwrap_or_else(new_seed);
    let strategy = prop::collection::vec(steps, 1..STEPS);
    let mut all = Census::default();
    let mut line = COMMANDS_PER_LINE;
    let mut seed = first;
    while all.commands < commands {
        let tree = strategy.new_tree(&mut runner(seed)).unwrap();
        let steps = tree.current();
        keep_quiet(true);
        let played = catch_unwind(|| play(rules, &steps));
        let Ok(census) = played else {
            let steps = shrink(rules, tree);
            keep_quiet(false);
            let reason = goes_wrong(rules, &steps).expect("it went wrong before");
            panic!(
                "rules {rules}; the same again with TOUCHLINE_SEED={seed}; in the end:\n\
                 {reason}\n{} steps:\n{steps:#?}",
                steps.len()
            );
        };
        keep_quiet(false);
        all.merge(&census);
        seed = seed.wrapping_add(1);
        if all.commands >= line {
            eprintln!("rules {rules}: {} commands, {} cases", all.commands, seed - first);
            line += COMMANDS_PER_LINE;
        }
    }
    if variable("TOUCHLINE_CENSUS").is_some() {
        eprintln!("rules {rules}, seed {first}");
        all.print();
    }
    all
}

fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(ProptestConfig::default(), rng)
}

/// Another one in every process.
fn new_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one("seed") >> 16
}

#[test]
fn agrees_with_the_model_by_rules_1() {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    run(1, commands / 8);
}

#[test]
fn agrees_with_the_model_by_rules_2() {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    run(2, commands / 8);
}

#[test]
fn agrees_with_the_model_by_rules_3() {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    run(3, commands / 8);
}

#[test]
fn agrees_with_the_model_by_rules_4() {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    run(4, commands / 8);
}

#[test]
fn agrees_with_the_model_by_rules_5() {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    run(5, commands / 8);
}

#[test]
fn agrees_with_the_model_by_rules_6() {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    run(6, commands / 8);
}

#[test]
fn agrees_with_the_model_by_rules_7() {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    run(7, commands / 8);
}

#[test]
fn agrees_with_the_model_by_rules_8() {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS);
    come_to_all(COMMANDS / 2, || run(8, commands / 2), Census::missing);
}

#[test]
fn agrees_with_the_model_among_own_orders() {
    let expected =
        ["corner: a MARKET order goes on behind its own", "corner: a lock pays for no more"];
    let parts = [2, 3, 4, 5, 6, 7, 8].map(|rules| (rules, 7));
    run_by_rules(8, &parts, steps_among_own_orders, &expected);
}

#[test]
fn agrees_with_the_model_in_halts() {
    let expected = [
        "corner: a stop is reached in a halt",
        "corner: stops that were reached in a halt have their turn",
    ];
    run_by_rules(4, &[(4, 4), (5, 4), (8, 2)], steps_in_halts, &expected);
}

/// Runs of so many commands whose steps must come to all that `missing` asks for. What is rare, a handful of times in a
/// run, is at times in none of it: so they go on until all has occurred, up to ten times as long.
fn come_to_all(commands: u64, run: impl Fn() -> Census, missing: impl Fn(&Census) -> Vec<String>) {
    let mut all = run();
    if all.commands < commands {
        return;
    }
    for _ in 1..10 {
        if missing(&all).is_empty() {
            return;
        }
        all.merge(&run());
    }
    let missing = missing(&all);
    assert!(missing.is_empty(), "never in {} commands: {missing:#?}", all.commands);
}

/// Those of the names that did not occur.
fn not_seen(census: &Census, names: &[&str]) -> Vec<String> {
    let names = names.iter().filter(|name| !census.seen.contains_key(**name));
    names.map(|name| (*name).to_owned()).collect()
}

/// Runs of steps of a certain kind, which must come to what is named. `share` 8 stands for an eighth of all commands, and
/// `parts` gives which part of these each version of the rules has, likewise.
fn run_by_rules<S: Strategy<Value = Step>>(
    share: u64,
    parts: &[(u32, u64)],
    steps: impl Fn() -> S,
    expected: &[&str],
) {
    let commands = variable("TOUCHLINE_COMMANDS").unwrap_or(COMMANDS) / share;
    let run = || {
        let mut all = Census::default();
        for &(rules, part) in parts {
            all.merge(&run_of(rules, commands / part, steps()));
        }
        all
    };
    come_to_all(COMMANDS / share, run, |census| not_seen(census, expected));
}

/// Older rules, and mostly the newest.
const BY_RULES: [(u32, u64); 6] = [(2, 8), (4, 8), (5, 8), (6, 8), (7, 8), (8, 2)];

#[test]
fn agrees_with_the_model_in_sweeps() {
    let expected = [
        "corner: a sweep waits behind other work",
        "corner: a connection's end sweeps",
        "corner: a fired stop of a killed account ends",
        "corner: an aggressor of a killed account ends",
        "reject CapacityReached 7",
    ];
    run_by_rules(8, &BY_RULES, steps_in_sweeps, &expected);
}

#[test]
fn agrees_with_the_model_at_extremes() {
    let expected = ["reject Overflow", "OrderContinues", "OrderRefilled", "OrderTriggered"];
    run_by_rules(8, &BY_RULES, steps_of_extremes, &expected);
}

#[test]
fn agrees_with_the_model_over_hours() {
    let expected = ["reject PercentPrice", "reject MinNotional", "OrderTriggered"];
    run_by_rules(8, &BY_RULES, steps_over_hours, &expected);
}

#[test]
fn a_case_is_repeatable() {
    let strategy = prop::collection::vec(steps(8), 1..STEPS);
    let of = |seed| format!("{:?}", strategy.new_tree(&mut runner(seed)).unwrap().current());
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}
