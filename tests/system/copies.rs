//! A copy of a venue's folder that was made while the venue ran, as docs/OPERATIONS.md says under "Backup".

use super::log_tools::{lines, log, object};
use super::process::{Process, is_alive};
use super::readers::Load;
use super::venue::{UNLIMITED, Venue, borrowed};
use crate::patience::{eventually, join};
use rustix::process::Signal;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Bytes of a segment of these venues.
const SEGMENT: u64 = 2 << 20;

/// Copies what is there; what is removed or renamed meanwhile is not.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)?.flatten() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    match fs::copy(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a venue's folder by the recipe.
fn copy_venue(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for name in ["snapshots", "log", "master.key", "master.mark", "token-keys.json"] {
        if from.join(name).exists() {
            copy(&from.join(name), &to.join(name))?;
        }
    }
    Ok(())
}

/// Starts an engine on a copy.
///
/// # Errors
///
/// All that it says if it refuses to.
fn start(arguments: &[&str]) -> Result<Process, String> {
    let mut process = Process::start(arguments);
    let is_ready = || process.lines().iter().any(|line| line.starts_with("engine ready"));
    assert!(eventually(|| is_ready() || !is_alive(process.pid())), "neither ready nor ended");
    if is_ready() {
        return Ok(process);
    }
    // What it has said last may still be on its way.
    process.wait_for_end();
    Err(process.lines().join("\n"))
}

#[test]
fn a_copy_of_a_venue_that_runs_has_its_log_up_to_the_copy() {
    let settings = ["--set", "log.segment_mib=2", "--set", "log.snapshot_every_mib=3"];
    let venue = Venue::up(&[&UNLIMITED[..], &settings].concat());
    let mut load = Load::new(&venue);
    load.pass(4 * SEGMENT);
    let snapshots = venue.data().join("snapshots");
    let is_made = |name: &str| name.ends_with(".snap");
    let has_snapshot = || {
        let names = fs::read_dir(&snapshots).into_iter().flatten().flatten();
        names.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_made))
    };
    assert!(eventually(has_snapshot), "no snapshot is made");
    let begun = object(venue.data(), &["info", "--json"]).integer_at("end") as u64;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("copy");
    let is_copied = Arc::new(AtomicBool::new(false));
    let copying = {
        let (from, to, done) = (venue.data().to_owned(), data.clone(), Arc::clone(&is_copied));
        thread::spawn(move || {
            let copied = copy_venue(&from, &to);
            done.store(true, Ordering::Release);
            copied
        })
    };
    loop {
        load.pass(load.position + 1_000);
        if is_copied.load(Ordering::Acquire) {
            break;
        }
    }
    join(copying, "copying").expect("it can be copied");

    let mut arguments = venue.arguments("engine", false);
    let at = arguments.iter().position(|one| one == "--data").expect("it is given") + 1;
    arguments[at] = data.to_str().expect("temporary folders have plain names").to_owned();
    let mut engine = start(&borrowed(&arguments)).unwrap_or_else(|refusal| {
        // The segment that was being written has a hole.
        assert!(refusal.contains("--accept-loss"), "{refusal}");
        arguments.push("--accept-loss".to_owned());
        start(&borrowed(&arguments)).unwrap_or_else(|refusal| panic!("{refusal}"))
    });
    engine.signal(Signal::TERM);
    assert_eq!(engine.wait_for_end().code(), Some(0));
    let (code, told, errors) = log(&data, &["verify"]);
    assert_eq!(code, Some(0), "{told}{errors}");
    // All that lay below the segment that was being written then, and nothing else but the start.
    let (all, copied) = (lines(venue.data(), &["dump"]), lines(&data, &["dump"]));
    let same = all.iter().zip(&copied).take_while(|(one, other)| one == other).count();
    let whole = (begun / SEGMENT) * SEGMENT;
    assert!(all[same - 1].integer_at("position") as u64 >= whole - 4096, "{same} are the same");
    let behind = copied[same..].iter().map(|one| one.at("command").text_at("message"));
    let others: Vec<_> = behind.filter(|name| *name != "ConnectionEnded").collect();
    assert_eq!(others, ["EngineStarted"], "behind {same} that are the same");
}
