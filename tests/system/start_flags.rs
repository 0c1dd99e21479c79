//! What a start of `touchline up` is given: what an operator may allow, as a refused start asks for it, and what
//! it inherits.

use super::definition::end_of;
use super::process::{Process, eventually, processes_on, send_signal};
use super::venue::{Part, Venue, borrowed};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
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

/// Starts `touchline` by another program, which sets its signals as they are to be, and waits for a line; what is
/// to be kept until it has ended.
fn start_by(by: &[&str], arguments: &[String], ready: &str) -> (Child, impl Sized + use<>) {
    let mut process = Command::new(by[0])
        .args(&by[1..])
        .arg(env!("CARGO_BIN_EXE_touchline"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("coreutils are there");
    let output = process.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(output).lines();
    let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with(ready)));
    assert!(found.is_some(), "it is never ready");
    (process, lines)
}

/// Kills the engine of a venue, and waits until it is back.
fn assert_restarts(venue: &mut Venue) {
    let first = venue.pid("engine").expect("it runs");
    venue.kill9(Part::Engine);
    let is_back = || venue.pid("engine").is_some_and(|pid| pid != first);
    assert!(eventually(is_back), "the engine is not restarted");
}

#[test]
fn a_venue_that_was_told_to_ignore_the_ends_of_children_notices_them() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let by = ["env", "--ignore-signal=CHLD"];
    let (mut up, _output) = start_by(&by, &venue.arguments("up", true), "ready");
    assert_restarts(&mut venue);
    send_signal(up.id(), Signal::TERM);
    assert_eq!(end_of(&mut up).code(), Some(0));
}

#[test]
fn a_terminal_that_is_gone_ends_a_venue_as_it_should() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    // What runs this test may be to outlive its own.
    let by = ["env", "--default-signal=HUP"];
    let (mut up, _output) = start_by(&by, &venue.arguments("up", true), "ready");
    send_signal(up.id(), Signal::HUP);
    assert_eq!(end_of(&mut up).code(), Some(0));
    let (mut engine, _output) = start_by(&by, &venue.arguments("engine", false), "engine ready");
    let (mut adapter, _output) = start_by(&by, &venue.arguments("adapter", true), "adapter ready");
    for process in [&mut adapter, &mut engine] {
        send_signal(process.id(), Signal::HUP);
        assert_eq!(end_of(process).code(), Some(0));
    }
    for name in ["up", "engine", "adapter"] {
        assert!(!venue.data().join(format!("{name}.pid")).exists(), "{name}");
    }
}

/// As by `nohup`.
#[test]
fn a_venue_that_is_to_outlive_its_terminal_does() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let by = ["env", "--ignore-signal=HUP"];
    let (mut up, _output) = start_by(&by, &venue.arguments("up", true), "ready");
    for process in [up.id(), venue.pid("engine").expect("it runs")] {
        send_signal(process, Signal::HUP);
    }
    assert_restarts(&mut venue);
    send_signal(up.id(), Signal::TERM);
    assert_eq!(end_of(&mut up).code(), Some(0));
}

/// Whoever blocks signals, as one that waits for them in a thread of its own does, starts its children so, too.
#[test]
fn a_venue_that_was_started_with_signals_blocked_ends_by_them() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let by = ["env", "--block-signal"];
    let (mut up, _output) = start_by(&by, &venue.arguments("up", true), "ready");
    send_signal(up.id(), Signal::TERM);
    assert_eq!(end_of(&mut up).code(), Some(0));
    let (mut up, _output) = start_by(&by, &venue.arguments("up", true), "ready");
    send_signal(up.id(), Signal::KILL);
    end_of(&mut up);
    assert!(eventually(|| processes_on(venue.data()).is_empty()), "it has left processes behind");
}
