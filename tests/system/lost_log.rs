//! What becomes of a venue whose log is not where it was: no other venue comes in its place, and nobody is told of
//! one as of the other. And what a restarted part is started with.

use super::process::{Process, eventually, send_signal};
use super::venue::{Part, Venue, borrowed};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;

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
    fs::remove_dir_all(venue.data()).expect("the other venue can be removed");
    fs::rename(away(&venue), venue.data()).expect("the folder can be moved back");
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
    for trace in ["leases", "history"] {
        let mut engine = Process::start(&borrowed(&venue.arguments("engine", false)));
        engine.wait_for(0, "refusal", |line| {
            line.contains(trace) && line.contains("bring the segments back")
        });
        assert_eq!(engine.wait_for_end().code(), Some(1));
        assert_eq!(fs::read_dir(&log).expect("the folder is made").count(), 0, "but no log");
        // With one of them out of the way it is the other that tells.
        fs::rename(venue.data().join(trace), venue.data().with_extension(trace))
            .expect("the folder can be moved");
    }
    for trace in ["leases", "history"] {
        fs::rename(venue.data().with_extension(trace), venue.data().join(trace))
            .expect("the folder can be moved back");
    }
    fs::remove_dir(&log).expect("it is empty");
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
    let mut venue = Venue::up(&["--set", "gateway.tcp=127.0.0.1:0"]);
    let listens = |venue: &Venue| -> Vec<String> {
        let lines = venue.supervisor().lines().into_iter();
        let of_gateway = lines.filter(|line| line.starts_with("engine: gateway: "));
        of_gateway.filter_map(|line| Some(line.split_once(" tcp=")?.1.to_owned())).collect()
    };
    let first = listens(&venue);
    assert!(matches!(&first[..], [address] if !address.ends_with(":0")), "{first:?}");
    venue.kill9(Part::Engine);
    assert!(eventually(|| listens(&venue).len() == 2));
    assert_eq!(listens(&venue)[1], first[0]);
    venue.wait_until_engine_answers();
}
