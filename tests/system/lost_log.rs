//! What becomes of a venue whose log is not where it was: no other venue comes in its place, and nobody is told of
//! one as of the other. And what a restarted part is started with.

use super::process::{Process, eventually, send_signal};
use super::venue::{Part, UNLIMITED, Venue, borrowed, live_windows};
use crate::patience::Wait;
use crate::skipped::skipped;
use rustix::process::{Signal, getuid};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use touchline_protocol::client::SOCKET_NAME;
use touchline_protocol::log::place::SHARED_MEMORY;

const SELL: &str = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";

/// Beside the data folder.
fn away(venue: &Venue) -> PathBuf {
    venue.data().with_extension("away")
}

fn open_orders(venue: &Venue) -> usize {
    venue.a().call("GET", "/api/v3/openOrders", "symbol=BTCUSDT").ok().items().len()
}

#[test]
fn an_engine_that_is_started_again_begins_no_other_venue() {
    let mut venue = Venue::up(&[]);
    venue.a().place(SELL);
    let engine = venue.pid("engine").expect("the engine runs");
    fs::rename(venue.data(), away(&venue)).expect("the folder can be moved");
    let heard = venue.supervisor().lines().len();
    send_signal(engine, Signal::KILL);
    // Not once, and it goes on: the folder may come back.
    for attempt in 1..=2 {
        let heard = if attempt == 1 { heard } else { venue.supervisor().lines().len() };
        venue
            .supervisor()
            .wait_for(heard, "refusal", |line| line.contains("no new venue is begun in its place"));
    }
    assert!(!venue.data().exists(), "nothing is made where it was");
    assert!(venue.a().call("POST", "/api/v3/order", SELL).is_unknown());
    assert_eq!(open_orders(&venue), 1, "reads are answered");
    fs::rename(away(&venue), venue.data()).expect("the folder can be moved back");
    venue.wait_until_engine_answers();
    venue.a().place(SELL);
    assert_eq!(open_orders(&venue), 2);
    assert!(venue.stop_up(Signal::TERM).success());
}

/// What it has acknowledged may lie in the live window alone, which is in no copy of the folder.
#[test]
fn an_end_while_a_killed_engine_is_not_back_is_no_end_in_order() {
    let mut venue = Venue::up(&[]);
    venue.a().place(SELL);
    let [log, elsewhere] = [venue.data().join("log"), away(&venue)];
    // Each start is refused from now on: the engine is not back before the end, whenever that comes.
    fs::rename(&log, &elsewhere).expect("the log can be moved");
    venue.kill9(Part::Engine);
    let pause = |line: &str| line.contains("the engine died") && line.contains("restart in");
    venue.supervisor().wait_for(0, "planned restart", pause);
    let supervisor = venue.supervisor().pid();
    send_signal(supervisor, Signal::TERM);
    let told = |line: &str| line.contains("the engine has not ended in order");
    venue.supervisor().wait_for(0, "line about the engine's end", told);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(1));
    fs::rename(&elsewhere, &log).expect("the log can be moved back");
    venue.start_up();
    assert_eq!(open_orders(&venue), 1);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
}

#[test]
fn an_adapter_sends_nothing_to_the_engine_of_another_venue() {
    let mut venue = Venue::separate(&["--set", "adapter.deadline_ms=2000"]);
    venue.a().place(SELL);
    venue.kill9(Part::Engine);
    fs::rename(venue.data(), away(&venue)).expect("the folder can be moved");
    venue.start_engine();
    let told = |line: &str| line.contains("another venue is at this place");
    venue.part(Part::Adapter).wait_for(0, "refusal of the other log", told);
    assert!(venue.a().call("POST", "/api/v3/order", SELL).is_unknown());
    assert_eq!(open_orders(&venue), 1);
    venue.part(Part::Engine).signal(Signal::TERM);
    assert!(venue.part(Part::Engine).wait_for_end().success());
    let data = venue.data().to_str().expect("a plain name");
    let dumped = Process::start(&["log", "--data", data, "dump"]).into_lines();
    assert!(dumped.iter().any(|line| line.contains("EngineStarted")), "{dumped:?}");
    let sessions: Vec<_> = dumped.iter().filter(|line| line.contains("adapter-")).collect();
    assert!(
        sessions.is_empty(),
        "the other venue's own adapter would lose its session: {sessions:?}"
    );
    // Not removed: the adapter may write to it meanwhile.
    let other = venue.data().with_extension("other");
    fs::rename(venue.data(), other).expect("the other venue can be moved");
    fs::rename(away(&venue), venue.data()).expect("the folder can be moved back");
    venue.start_engine();
    venue.wait_until_engine_answers();
    assert_eq!(open_orders(&venue), 1);
}

/// As where root starts by hand what a service's user ran. Only root can give a window to somebody else.
#[test]
fn the_window_that_another_users_engine_has_left_is_not_passed_over() {
    if !getuid().is_root() {
        return skipped("root, who alone may give folders away");
    }
    let mut venue = Venue::separate(&[]);
    venue.a().place(SELL);
    venue.kill9(Part::Engine);
    let windows = live_windows(venue.data());
    let [window] = &windows[..] else { panic!("the killed engine has left its own: {windows:?}") };
    let user = 1_000_000_000 + std::process::id();
    let theirs = Path::new(SHARED_MEMORY).join(format!("touchline-{user}"));
    fs::create_dir(&theirs).expect("it can be made");
    let moved = theirs.join(window.file_name().expect("it has a name"));
    fs::rename(window, &moved).expect("it can be moved");
    for path in [&theirs, &moved, &venue.data().join(SOCKET_NAME)] {
        chown(path, Some(user), None).expect("root may");
    }
    let mut refused = Process::start(&borrowed(&venue.arguments("engine", false)));
    let code = refused.wait_for_end().code();
    let output = refused.lines().join("\n");
    fs::rename(&moved, window).expect("it can be moved back");
    fs::remove_dir(&theirs).expect("it is empty");
    assert_eq!(code, Some(1), "{output}");
    let shown = moved.to_str().expect("a plain name");
    assert!(output.contains(shown) && output.contains(&format!("user {user}")), "{output}");
    venue.start_engine();
    venue.wait_until_engine_answers();
    assert_eq!(open_orders(&venue), 1);
}

#[test]
fn a_venue_whose_log_is_gone_is_not_begun_anew() {
    let mut venue = Venue::up(&[]);
    venue.a().place(SELL);
    assert!(venue.stop_up(Signal::TERM).success());
    let [log, elsewhere] = [venue.data().join("log"), away(&venue)];
    fs::rename(&log, &elsewhere).expect("the log can be moved");
    let refused = |traces: &[&str]| {
        let mut engine = Process::start(&borrowed(&venue.arguments("engine", false)));
        engine.wait_for(0, "refusal", |line| {
            line.contains("bring the segments back") && traces.iter().all(|one| line.contains(one))
        });
        assert_eq!(engine.wait_for_end().code(), Some(1));
        assert!(fs::read_dir(&log).map_or(0, Iterator::count) == 0, "a log was made");
    };
    refused(&["leases", "history"]);
    // Nor is a key made, with which the log would be of no use when it is back.
    let key = [venue.data().join("master.key"), venue.data().with_extension("key")];
    fs::rename(&key[0], &key[1]).expect("the key can be moved");
    refused(&["leases", "history"]);
    assert!(!key[0].exists());
    fs::rename(&key[1], &key[0]).expect("the key can be moved back");
    for trace in ["leases", "history"] {
        // With one of them out of the way it is the other that tells.
        fs::rename(venue.data().join(trace), venue.data().with_extension(trace))
            .expect("the folder can be moved");
        refused(if trace == "leases" { &["log-id", "history"] } else { &["log-id"] });
    }
    for trace in ["leases", "history"] {
        fs::rename(venue.data().with_extension(trace), venue.data().join(trace))
            .expect("the folder can be moved back");
    }
    let _was_made = fs::remove_dir(&log);
    fs::rename(&elsewhere, &log).expect("the log can be moved back");
    venue.start_up();
    assert_eq!(open_orders(&venue), 1);
}

#[test]
fn settings_are_those_that_the_start_has_checked() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = folder.path().join("venue.toml");
    fs::copy("venue.toml", &config).expect("the settings can be copied");
    let mut venue = Venue::up(&["--config", config.to_str().expect("a plain name")]);
    fs::write(&config, "[[symbols").expect("it can be written");
    for part in [Part::Engine, Part::Adapter] {
        venue.kill9(part);
        let name = format!("{part:?}").to_lowercase();
        let heard = |line: &str| line.contains(&format!("the {name} is back"));
        venue.supervisor().wait_for(0, "restart", heard);
    }
    venue.wait_until_engine_answers();
    assert!(venue.stop_up(Signal::TERM).success());
    let mut up = Process::start(&borrowed(&venue.arguments("up", true)));
    up.wait_for(0, "refusal", |line| line.contains("venue.toml: TOML parse error"));
    assert_eq!(up.wait_for_end().code(), Some(1), "a new start reads the file");
}

#[test]
fn a_restarted_engine_listens_where_it_did() {
    let mut venue = Venue::up(&[&UNLIMITED[..], &["--set", "gateway.tcp=127.0.0.1:0"]].concat());
    let listens = |venue: &Venue| -> Vec<String> {
        let lines = venue.supervisor().lines().into_iter();
        let of_gateway = lines.filter(|line| line.starts_with("engine: gateway: "));
        of_gateway
            .filter_map(|line| {
                line.split_once(" tcp=")?.1.split_whitespace().next().map(str::to_owned)
            })
            .collect()
    };
    let first = listens(&venue);
    assert!(matches!(&first[..], [address] if !address.ends_with(":0")), "{first:?}");
    venue.kill9(Part::Engine);
    assert!(eventually(|| listens(&venue).len() == 2));
    assert_eq!(listens(&venue)[1], first[0]);
    venue.wait_until_engine_answers();
    // Somebody else has the port before it is back: then another one is better than none.
    let wait = Wait::begin();
    let taken = loop {
        // Whoever is faster: the one that is started again waits for a while before it is.
        send_signal(venue.pid("engine").expect("the engine runs"), Signal::KILL);
        let tries = (0..50).find_map(|_| {
            thread::sleep(Duration::from_millis(1));
            TcpListener::bind(&first[0]).ok()
        });
        if let Some(taken) = tries {
            break taken;
        }
        wait.go_on("the port is never free");
        venue.wait_until_engine_answers();
    };
    assert!(eventually(|| listens(&venue).last().is_some_and(|last| *last != first[0])));
    venue.wait_until_engine_answers();
    drop(taken);
}
