//! Runs of random steps: how long, from which seed, and what must occur in them.

use crate::census::Census;
use crate::steps::{Step, steps};
use crate::world::World;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use std::cell::{Cell, RefCell};
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

/// Cases of random steps until so many commands have been decided.
fn run(rules: u32, commands: u64) -> Census {
    let seed = variable("TOUCHLINE_SEED").unwrap_or_else(rand_seed);
    let all = RefCell::new(Census::default());
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    };
    let strategy = prop::collection::vec(steps(rules), 1..STEPS);
    let mut line = COMMANDS_PER_LINE;
    for case in 0.. {
        if all.borrow().commands >= commands {
            break;
        }
        let seed = seed.wrapping_add(case);
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(config.clone(), rng);
        let tree = strategy.new_tree(&mut runner).unwrap();
        keep_quiet(true);
        let played = runner.run_one(tree, |steps| {
            let census = play(rules, &steps);
            all.borrow_mut().merge(&census);
            Ok(())
        });
        keep_quiet(false);
        if let Err(TestError::Fail(reason, steps)) = played {
            panic!(
                "rules {rules}; the same again with TOUCHLINE_SEED={seed}; in the end:\n\
                 {reason}\n{} steps:\n{steps:#?}",
                steps.len()
            );
        }
        if all.borrow().commands >= line {
            eprintln!("rules {rules}: {} commands, {case} cases", all.borrow().commands);
            line += COMMANDS_PER_LINE;
        }
    }
    let all = all.into_inner();
    if variable("TOUCHLINE_CENSUS").is_some() {
        eprintln!("rules {rules}, seed {seed}");
        all.print();
    }
    all
}

/// Another one in every process.
fn rand_seed() -> u64 {
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
    let census = run(2, commands - commands / 8);
    if census.commands >= COMMANDS / 2 {
        let missing = census.missing();
        assert!(missing.is_empty(), "never in {} commands: {missing:#?}", census.commands);
    }
}

#[test]
fn a_case_is_repeatable() {
    let of = |seed: u8| {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
        let steps = prop::collection::vec(steps(2), 1..STEPS);
        format!("{:?}", steps.new_tree(&mut runner).unwrap().current())
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}
