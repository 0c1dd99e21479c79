//! Scenarios: text files in a trader's words, each with every event that the core must answer with. The
//! files below `scenarios/` are found by themselves; `SCENARIOS` names a file or folder to play instead.
//!
//! Each file of `scenarios/bug_classes/` is about one bug that public engines had, and carries the patch
//! that would put it into this core; `scenarios/mutants.sh` shows that the scenario finds it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "scenarios/definitions.rs"]
mod definitions;
#[path = "scenarios/looks.rs"]
mod looks;
#[path = "scenarios/mutant.rs"]
mod mutant;
#[path = "scenarios/orders.rs"]
mod orders;
#[path = "scenarios/script.rs"]
mod script;
#[path = "scenarios/seen.rs"]
mod seen;
#[path = "scenarios/stage.rs"]
mod stage;
#[path = "support/venue.rs"]
mod venue;
#[path = "scenarios/words.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};

fn chosen() -> PathBuf {
    std::env::var_os("SCENARIOS").map_or_else(script::folder, PathBuf::from)
}

#[test]
fn every_scenario_holds() {
    let files = script::find(&chosen()).unwrap();
    let mut failures = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let name = file.strip_prefix(script::folder()).unwrap_or(file).display().to_string();
        failures.extend(script::play(&name, &text).err());
    }
    let failed = failures.len();
    assert!(failed == 0, "{failed} of {} scenarios:\n\n{}\n", files.len(), failures.join("\n\n"));
}

/// The patches must go on fitting the source that they are made for.
#[test]
fn every_bug_class_has_its_mutant() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut faults = Vec::new();
    for file in script::find(&script::folder().join("bug_classes")).unwrap() {
        let mutant = match mutant::of(&fs::read_to_string(&file).unwrap()) {
            Ok(mutant) => mutant,
            Err(fault) => {
                faults.push(format!("{}: {fault}", file.display()));
                continue;
            }
        };
        let source = fs::read_to_string(root.join(&mutant.file)).unwrap_or_default();
        let times = source.matches(&mutant.old).count();
        if times != 1 {
            let (file, of) = (file.display(), &mutant.file);
            faults.push(format!("{file}: old text stands {times} times in {of}: {}", mutant.old));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

const WORLD: &str = "# A title
# Why: the runner is tested
# Source: none
symbol BTC/USDT
account alice has 1000 USDT
";

fn fault(lines: &str) -> String {
    script::play("file", &format!("{WORLD}{lines}")).unwrap_err()
}

#[test]
fn a_scenario_that_holds_passes() {
    let lines = "alice buys 2 @ 100 as a\n> accepted a locks 200.00 side BUY\n> result a NEW 0\n\
                 expect book bids 100x2 asks -\nexpect alice USDT free 800 locked 200\n";
    script::play("file", &format!("{WORLD}{lines}")).unwrap();
}

/// Whatever is wrong is found, with its line.
#[test]
fn the_runner_finds_what_is_wrong() {
    let placed = "alice buys 2 @ 100 as a\n> accepted a locks 200\n> result a NEW 0\n";
    for (lines, expected) in [
        // An event too few, too many, in the wrong order, and a wrong detail.
        ("alice buys 2 @ 100 as a\n> accepted a locks 200\n", "file:6: alice buys"),
        ("alice buys 2 @ 100 as a\n> accepted a locks 200\n> result a NEW 0\n> done\n", "! done"),
        ("alice buys 2 @ 100 as a\n> result a NEW 0\n> accepted a locks 200\n", "! result a NEW"),
        (
            "alice buys 2 @ 100 as a\n> accepted a locks 200 side SELL\n> result a NEW 0\n",
            "! accep",
        ),
        ("alice buys 2 @ 100\n> rejected LotSize\n", "! rejected LotSize"),
        ("alice buys 20 @ 100\n> accepted #1 locks 2000\n", "rejected InsufficientBalance"),
        // Looks.
        (&format!("{placed}expect book bids 100x1 asks -\n"), "| book bids 100x2 asks -"),
        (&format!("{placed}expect alice USDT free 800 locked 100\n"), "file:9"),
        (&format!("{placed}expect order a gone\n"), "| order a open 2"),
        // A detail without its value, and one that does not exist.
        (&format!("{placed}expect order a open 2 locks\n"), "file:9"),
        (&format!("{placed}expect order a open 2 colour red\n"), "file:9"),
        // Texts that say nothing.
        ("", "expects nothing"),
        ("alice buys 2 @ 100 sometimes\n> done\n", "\"sometimes\" is nothing an order has"),
        ("mallory buys 2 @ 100\n> done\n", "no account \"mallory\""),
        ("expect open alice 0\n> done\n", "no command in front"),
        ("account bob has 1 USDT maker-rate 2\nexpect open bob 0\n", "file:6: account bob"),
    ] {
        let found = fault(lines);
        assert!(found.contains(expected), "{expected:?} is not in:\n{found}");
    }
    assert!(script::play("file", "alice\n").unwrap_err().contains("title"));
    assert!(script::play("file", "# T\n# Why: w\nwait 1\n").unwrap_err().contains("Source"));
}

#[test]
fn a_mutant_is_read_to_the_letter() {
    let text = "# T\n# Mutant: a.rs\n# - one\n# -     two\n# + 1\nalice\n";
    let expected = mutant::Mutant {
        file: "a.rs".to_owned(),
        old: "one\n    two".to_owned(),
        new: "1".to_owned(),
    };
    assert_eq!(mutant::of(text), Ok(expected));
    assert!(mutant::of("# T\n# Mutant: a.rs\n").is_err());
}
