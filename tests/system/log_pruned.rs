//! `touchline log diff` and `replay` of a log whose beginning was pruned, and a report of `diff` that is lost.

use super::json::Json;
use super::log_tools::{copy_of, lines, log, object, traded};
use super::readers::Load;
use super::venue::{Part, UNLIMITED, Venue};
use crate::patience::{Running, finish};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Bytes of a segment of these venues.
const SEGMENT: u64 = 2 << 20;

/// A venue that has ended, and a copy of it whose log has lost its first segment, for which a snapshot stands.
fn pruned() -> (Venue, TempDir, PathBuf) {
    let settings = ["--set", "log.segment_mib=2", "--set", "log.window_mib=8"];
    let mut venue = Venue::up(&[&UNLIMITED[..], &settings].concat());
    let mut load = Load::new(&venue);
    load.pass(SEGMENT + SEGMENT / 2);
    let made = object(venue.data(), &["snapshot", "--json"]).text_at("path").to_owned();
    load.pass(load.position + SEGMENT / 2);
    drop(load);
    assert!(venue.stop_up(Signal::TERM).success());
    let (folder, copy) = copy_of(&venue);
    let snapshots = copy.join("snapshots");
    fs::create_dir(&snapshots).expect("a folder can be made");
    let name = PathBuf::from(&made);
    let name = name.file_name().expect("it is a file");
    fs::copy(&made, snapshots.join(name)).expect("it can be copied");
    fs::remove_file(copy.join("log/00000000.seg")).expect("it is there");
    (venue, folder, copy)
}

#[test]
fn a_pruned_log_is_compared_from_where_it_begins() {
    let (mut venue, _folder, copy) = pruned();
    let begin = object(&copy, &["info", "--json"]).integer_at("begin");
    let kept = lines(&copy, &["dump"]).len() as i128;
    let name = |data: &Path| data.to_str().expect("temporary folders have plain names").to_owned();
    let (whole, pruned) = (name(venue.data()), name(&copy));
    for (data, other) in [(venue.data(), &*pruned), (&copy, &*whole)] {
        let (code, output, errors) = log(data, &["diff", other]);
        assert_eq!(code, Some(0), "{output}{errors}");
        assert_eq!(output, format!("{kept} transactions, the same in both\n"));
        assert!(errors.contains(&format!("{pruned} begins at position {begin}")), "{errors}");
        let found = object(data, &["diff", other, "--json"]);
        assert_eq!((found.integer_at("from"), found.integer_at("same")), (begin, kept));
    }

    venue.start_engine();
    venue.kill9(Part::Engine);
    let (code, output, _) = log(&copy, &["diff", &whole, "--json"]);
    let found = Json::parse(output.trim());
    assert_eq!((code, found.integer_at("same")), (Some(3), kept));
    assert_eq!(found.at("left"), &Json::parse("null"));
    assert_eq!(found.at("right").at("command").text_at("message"), "EngineStarted");

    // Positions of two logs say nothing of each other.
    let mut other = traded();
    assert!(other.stop_up(Signal::TERM).success());
    let (code, output, _) = log(&copy, &["diff", &name(other.data()), "--json"]);
    let found = Json::parse(output.trim());
    assert_eq!((code, found.integer_at("same")), (Some(3), 0));
    assert_eq!(found.at("from"), &Json::parse("null"));
}

#[test]
fn a_state_before_the_oldest_snapshot_is_not_shown_as_another_one() {
    let (_venue, _folder, copy) = pruned();
    let stands = object(&copy, &["replay", "--json"]).at("snapshot").integer_at("position");
    let first = lines(&copy, &["dump"])[0].integer_at("position");
    assert!(first < stands);
    for until in [0, first, stands - 64] {
        let (code, output, errors) = log(&copy, &["replay", "--until", &until.to_string()]);
        assert_eq!((code, output.as_str()), (Some(1), ""), "{errors}");
        let told = format!("position {until} is older than the oldest snapshot, at {stands}");
        assert!(errors.contains(&told), "{errors}");
    }
    let found = object(&copy, &["replay", "--json", "--until", &stands.to_string()]);
    assert_eq!((found.integer_at("position"), found.integer_at("transactions")), (stands, 0));
}

/// Its exit code says what was found, whether or not anybody can read more.
#[test]
fn what_is_found_wrong_and_cannot_be_printed_is_told_to_be_lost() {
    let mut venue = traded();
    let (_folder, copy) = copy_of(&venue);
    venue.a().limit("BTCUSDT", "SELL", "0.03", "21000");
    assert!(venue.stop_up(Signal::TERM).success());
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let running = Command::new(env!("CARGO_BIN_EXE_touchline"))
        .args(["log", "diff"])
        .arg(venue.data())
        .arg("--data")
        .arg(copy)
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn();
    let running = Running(running.expect("the built executable starts"));
    let output = finish(running, "a report for a full disk");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("cannot be printed"), "{errors}");
}
