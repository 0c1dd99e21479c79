//! What a start of `touchline up` is given: what an operator may allow, as a refused start asks for it, and what
//! it inherits.

use super::definition::end_of;
use super::process::{Process, eventually, send_signal};
use super::venue::{Part, Venue, borrowed};
use rustix::process::Signal;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::log::segment_path;

/// Changes a bit of the last transaction of a log whose end was durable.
fn damage(data: &Path) {
    let mut reader = LogReader::open(data, Follow::Durable).expect("there is a log");
    let mut last = 0;
    while let Some(transaction) = reader.next().expect("the log is sound") {
        last = transaction.position().0;
    }
    let path = segment_path(&data.join("log"), 0);
    let file = File::options().read(true).write(true).open(path).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, last + 64).expect("it holds the transaction");
    file.write_all_at(&[byte[0] ^ 1], last + 64).expect("it is ours");
}

fn command_line(pid: u32) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("it runs");
    text.replace('\0', " ")
}

#[test]
fn a_loss_is_accepted_for_the_first_start_only_and_a_clock_that_is_behind_for_all() {
    let mut venue = Venue::up(&[]);
    venue.a().limit("BTCUSDT", "SELL", "1", "50000");
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    damage(venue.data());
    let mut refused = Process::start(&borrowed(&venue.arguments("up", true)));
    assert_eq!(refused.wait_for_end().code(), Some(1));
    let asked = |line: &String| line.contains("start with --accept-loss");
    assert!(refused.lines().iter().any(asked), "{:?}", refused.lines());
    venue.allow(&["--accept-loss", "--allow-clock-behind"]);
    venue.start_up();
    let told = |line: &str| line.contains("LOSS ACCEPTED");
    venue.supervisor().wait_for(0, "word of the loss", told);
    let first = venue.pid("engine").expect("it runs");
    for flag in ["--accept-loss", "--allow-clock-behind"] {
        assert!(command_line(first).contains(flag), "{}", command_line(first));
    }
    venue.kill9(Part::Engine);
    let is_back = || venue.pid("engine").is_some_and(|pid| pid != first);
    assert!(eventually(is_back), "the engine is not restarted");
    let second = command_line(venue.pid("engine").expect("it runs"));
    assert!(second.contains("--allow-clock-behind"), "{second}");
    assert!(!second.contains("--accept-loss"), "{second}");
}

#[test]
fn a_venue_that_was_told_to_ignore_the_ends_of_children_notices_them() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let mut up = Command::new("env")
        .args(["--ignore-signal=CHLD", env!("CARGO_BIN_EXE_touchline")])
        .args(venue.arguments("up", true))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("coreutils are there");
    assert!(eventually(|| venue.pid("adapter").is_some()), "it does not start");
    let first = venue.pid("engine").expect("it runs");
    venue.kill9(Part::Engine);
    let is_back = || venue.pid("engine").is_some_and(|pid| pid != first);
    assert!(eventually(is_back), "the engine is not restarted");
    send_signal(up.id(), Signal::TERM);
    assert_eq!(end_of(&mut up).code(), Some(0));
}
