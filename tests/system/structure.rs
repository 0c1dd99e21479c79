//! Invariants of the architecture that can be read from the source tree: who depends on whom, where
//! unsafe code stands, and what must not be left in the code.

use crate::patience::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file longer than this has more than one purpose.
const MAX_LINES: usize = 700;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust source of the workspace with its path from the root.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["src", "protocol", "engine", "adapter", "bench", "tests", "tuning"] {
        collect(&root().join(folder), &mut found);
    }
    assert!(found.len() > 30, "only {} sources found", found.len());
    found
}

fn collect(folder: &Path, found: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" {
            collect(&path, found);
        } else if name.ends_with(".rs") {
            let shown = path.strip_prefix(root()).expect("below the root").display().to_string();
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            found.push((shown, text));
        }
    }
}

/// Names in the dependency tables of a package; `development` adds those of its tests.
fn dependencies(package: &str, development: bool) -> Vec<String> {
    let path = root().join(package).join("Cargo.toml");
    let text = fs::read_to_string(&path).expect("every package has a Cargo.toml");
    let mut within = false;
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let table = header.trim_end_matches(']').rsplit('.').next().unwrap_or_default();
            within = match table {
                "dependencies" | "build-dependencies" => !header.starts_with("workspace"),
                "dev-dependencies" => development,
                _ => false,
            };
        } else if within && let Some((name, _)) = line.split_once(['.', '=', ' ']) {
            names.push(name.trim_matches('"').to_owned());
        }
    }
    names
}

fn own(names: Vec<String>) -> Vec<String> {
    let mut own: Vec<_> = names.into_iter().filter(|name| name.starts_with("touchline")).collect();
    own.sort();
    own
}

#[test]
fn packages_depend_in_one_direction() {
    for development in [false, true] {
        assert_eq!(own(dependencies("protocol", development)), Vec::<String>::new());
        assert_eq!(own(dependencies("engine/core", development)), ["touchline-protocol"]);
    }
    assert_eq!(own(dependencies("adapter", false)), ["touchline-protocol"]);
    assert_eq!(own(dependencies("engine", false)), ["touchline-core", "touchline-protocol"]);
    for package in [".", "protocol", "engine", "engine/core", "adapter"] {
        let names = own(dependencies(package, true));
        assert!(!names.contains(&"touchline-bench".to_owned()), "{package} depends on the bench");
        if package == "adapter" {
            assert!(!names.contains(&"touchline-engine".to_owned()), "adapter depends on engine");
        }
        if package == "engine" {
            assert!(!names.contains(&"touchline-adapter".to_owned()), "engine depends on adapter");
        }
    }
}

/// What a package takes along for whoever depends on it, with the features that it asks for itself.
fn taken_along(package: &str) -> Vec<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.current_dir(root()).args(["tree", "--package", package, "--edges", "normal"]);
    tree.args(["--prefix", "none", "--format", "{lib}", "--offline", "--locked"]);
    let output = run(&mut tree).expect("cargo is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn who_borrows_the_core_takes_no_operating_system_along() {
    let system = ["crc32c", "hmac", "libc", "memmap2", "rustix", "sha2"];
    let of = |package| taken_along(package).into_iter().filter(|name| system.contains(&&**name));
    assert_eq!(of("touchline-core").collect::<Vec<_>>(), Vec::<String>::new());
    assert!(of("touchline-protocol").count() >= system.len(), "the search finds none");
}

#[test]
fn the_engine_knows_no_web() {
    let web = ["hyper", "http", "serde_json", "tokio", "jsonwebtoken", "argon2", "may_minihttp"];
    for package in ["engine", "engine/core", "protocol"] {
        for name in dependencies(package, false) {
            assert!(!web.iter().any(|word| name.starts_with(word)), "{package} depends on {name}");
        }
    }
}

#[test]
fn no_secret_reaches_the_duty_thread_or_the_core() {
    let (mut looked_at, mut elsewhere) = (0, 0);
    for (path, text) in sources() {
        let knows =
            |(_, line): (usize, &str)| words(line, "credentials") || words(line, "MasterKey");
        let found = code_lines(before_tests(&text)).find(|&line| knows(line));
        let is_duty = path == "engine/src/duty.rs" || path.starts_with("engine/src/duty/");
        if is_duty || path.starts_with("engine/core/src/") {
            looked_at += 1;
            assert_eq!(found, None, "{path} knows of secrets");
        } else if path.starts_with("engine/src/") {
            elsewhere += usize::from(found.is_some());
        }
    }
    assert!(looked_at > 40 && elsewhere > 0, "{looked_at} looked at, {elsewhere} others know");
}

#[test]
fn the_two_services_of_the_adapter_do_not_meet() {
    let mut looked_at = [0, 0];
    for (path, text) in sources() {
        for (index, (own, other)) in [("spot", "jobs"), ("jobs", "spot")].into_iter().enumerate() {
            let in_service = path.starts_with(&format!("adapter/src/{own}/"))
                || path == format!("adapter/src/{own}.rs");
            if in_service {
                looked_at[index] += 1;
                for (number, line) in code_lines(&text) {
                    assert!(!words(line, other), "{path}:{number}: {own} uses {other}");
                }
            }
        }
    }
    assert!(looked_at.iter().all(|files| *files > 10), "only {looked_at:?} files looked at");
}

#[test]
fn the_core_is_deterministic_by_construction() {
    let text = fs::read_to_string(root().join("engine/core/src/lib.rs")).expect("core is there");
    for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        assert!(text.lines().any(|line| line.trim() == attribute), "core lacks {attribute}");
    }
    let banned = ["std", "f32", "f64", "HashMap", "HashSet", "Instant", "SystemTime"];
    let (mut looked_at, mut lines, mut of_all) = (0, 0, 0);
    for (path, text) in sources() {
        if !path.starts_with("engine/core/src/") || path.contains("test") {
            continue;
        }
        looked_at += 1;
        of_all += text.lines().count();
        for (number, line) in code_lines(before_tests(&text)) {
            lines += 1;
            for word in banned {
                let found = words(line, word);
                assert!(!found, "{path}:{number}: {word} in the core: {line}");
            }
        }
    }
    assert!(looked_at > 30, "only {looked_at} files looked at");
    assert!(lines * 4 > of_all * 3, "only {lines} lines of {of_all} looked at");
}

/// True when `line` contains `word` where no longer name goes on in front of it.
fn words(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

/// The part of a source in front of its unit tests, which come last.
fn before_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at])
}

/// Lines with their numbers, comments cut off.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

#[test]
fn the_places_of_unsafe_code_are_those_that_the_architecture_names() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let named = between(&text, "**`unsafe` lives in few places**", "(Workspace");
    let mut places = 0;
    for (path, text) in sources() {
        let is_product = !path.starts_with("bench/") && !path.contains("tests");
        if is_product && lifts_the_lint(&text) {
            places += 1;
            assert!(named.contains(&format!("`{path}`")), "{path} has unsafe code");
        }
    }
    assert_eq!(named.matches(".rs`").count(), places, "one that has none is named");
}

/// True if the lint against unsafe code is lifted somewhere, by itself or among others.
fn lifts_the_lint(text: &str) -> bool {
    // The lint's name may stand on a line of its own.
    let text: String = code_lines(text).flat_map(|(_, line)| line.split_whitespace()).collect();
    text.match_indices("unsafe_code").any(|(at, _)| {
        let before = in_front_of_the_list(&text[..at]);
        ["allow", "expect"].iter().any(|lift| {
            // Of an attribute, or within one that holds under a condition.
            before.strip_suffix(lift).is_some_and(|before| before.ends_with(['[', ',', '(']))
        })
    })
}

/// What stands in front of the parenthesis that is open at the end of a text.
fn in_front_of_the_list(text: &str) -> &str {
    let mut depth = 0;
    let open = text.char_indices().rev().find(|(_, letter)| {
        depth += match letter {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth < 0
    });
    open.map_or("", |(at, _)| &text[..at])
}

#[test]
fn a_lint_is_found_lifted_wherever_it_stands_in_the_list() {
    for (text, lifts) in [
        ("#![allow(unsafe_code, reason = \"it must\")]", true),
        ("#[expect(\n    dead_code,\n    unsafe_code\n)]", true),
        ("#![cfg_attr(not(loom), allow(unsafe_code))]", true),
        ("#[allow(dead_code, reason = \"a (b)\", unsafe_code)]", true),
        ("#[allow(dead_code)] // unsafe_code", false),
        ("#![forbid(unsafe_code)]", false),
        ("// says unsafe_code (allow)", false),
    ] {
        assert_eq!(lifts_the_lint(text), lifts, "{text}");
    }
}

/// What stands between two texts.
fn between<'text>(text: &'text str, begin: &str, end: &str) -> &'text str {
    let (_, behind) = text.split_once(begin).expect(begin);
    behind.split_once(end).expect(end).0
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let mut blocks = 0;
    for (path, text) in sources() {
        let lines: Vec<_> = text.lines().collect();
        for (number, line) in code_lines(&text) {
            let opens = [concat!("unsafe", " {"), concat!("unsafe", " impl")];
            // Within quotes it is a text.
            let code: String = line.split('"').step_by(2).collect();
            if opens.iter().any(|open| words(&code, open)) {
                blocks += 1;
                assert!(is_justified(&lines[..number]), "{path}:{number}: no SAFETY above: {line}");
            }
        }
    }
    assert!(blocks > 0, "shared memory is mapped somewhere, so the search finds nothing any more");
}

/// True when the comment right above the last line, or within its own statement, has a SAFETY note.
fn is_justified(lines: &[&str]) -> bool {
    let (_, above) = lines.split_last().expect("the line itself is there");
    for line in above.iter().rev().map(|line| line.trim()) {
        if line.starts_with("// SAFETY:") {
            return true;
        }
        // The statement may have begun on an earlier line, and attributes may stand in between.
        let goes_on = line.starts_with("//")
            || line.starts_with("#[")
            || line.ends_with('(')
            || line.ends_with('=')
            || line.ends_with(',')
            || line.ends_with(')')
            || line.ends_with("=>");
        if !goes_on {
            return false;
        }
    }
    false
}

#[test]
fn files_are_short_and_nothing_is_left_to_do() {
    let banned = [
        concat!("to", "do!("),
        concat!("unimpl", "emented!("),
        concat!("#[ig", "nore"),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("dbg", "!("),
    ];
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{path} has {lines} lines, at most {MAX_LINES} are allowed");
        assert!(text.starts_with("//!"), "{path} does not begin with its purpose");
        for (index, line) in text.lines().enumerate() {
            for word in banned {
                assert!(!line.contains(word), "{path}:{}: {word}", index + 1);
            }
        }
        assert!(!path.ends_with("/mod.rs"), "{path}: modules are foo.rs and foo/");
    }
}
