//! How far the adapter says that it is with the log.

use super::definition::administer;
use super::failed_disk::let_write;
use super::http::Http;
use super::json::Json;
use super::process::stop;
use super::venue::{Part, UNLIMITED, Venue};
use crate::patience::Wait;
use rustix::process::Signal;
use touchline_protocol::log::reader::{Follow, LogReader};

fn status(http: &mut Http) -> Json {
    let response = http.get("/status");
    assert_eq!(response.status, 200, "{}", response.body);
    assert_eq!(response.header("Cache-Control"), Some("no-store"));
    Json::parse(&response.body)
}

fn is_connected(status: &Json) -> bool {
    *status.at("engineConnected") == Json::Bool(true)
}

/// The status once it satisfies `wanted`.
fn status_when(http: &mut Http, wanted: impl Fn(&Json) -> bool) -> Json {
    let wait = Wait::begin();
    loop {
        let status = status(http);
        if wanted(&status) {
            return status;
        }
        wait.go_on(format_args!("{status:?}"));
    }
}

#[test]
fn the_status_tells_how_far_views_and_history_are() {
    let mut venue = Venue::separate(&UNLIMITED);
    let mut http = venue.http();
    let before = status(&mut http);
    venue.a().limit("BTCUSDT", "BUY", "0.01", "20000");
    let moved = status(&mut http);
    for field in ["appended", "durable"] {
        assert!(moved.integer_at(field) > before.integer_at(field), "{field}: {moved:?}");
    }
    assert_eq!(moved.integer_at("incarnation"), before.integer_at("incarnation"));
    let caught_up = status_when(&mut http, |status| {
        ["viewsBehind", "historyBehind"].iter().all(|field| status.integer_at(field) == 0)
            && status.integer_at("appended") == status.integer_at("durable")
    });
    assert_eq!(caught_up.text_at("log"), "running");
    let mut reader = LogReader::open(venue.data(), Follow::Durable).expect("there is a log");
    let mut end = 0;
    while let Some(transaction) = reader.next().expect("the log is sound") {
        end = i128::from(transaction.end().0);
    }
    assert!(
        caught_up.integer_at("views") >= end && caught_up.integer_at("history") == end,
        "{caught_up:?}"
    );
    venue.kill9(Part::Engine);
    let lost = status_when(&mut http, |status| !is_connected(status));
    assert_eq!(lost.integer_at("views"), caught_up.integer_at("views"));
    venue.start_engine();
    let again = status_when(&mut http, is_connected);
    assert_eq!(again.integer_at("incarnation"), caught_up.integer_at("incarnation") + 1);
}

/// Nobody stops its control page then, by which who reads is told that another engine has started.
#[test]
fn an_engine_whose_predecessors_window_was_removed_is_followed() {
    let mut venue = Venue::separate(&UNLIMITED);
    let mut http = venue.http();
    venue.a().limit("BTCUSDT", "BUY", "0.01", "20000");
    let before = status(&mut http);
    venue.kill9(Part::Engine);
    venue.lose_live_window();
    venue.start_engine();
    venue.wait_until_engine_answers();
    venue.a().limit("BTCUSDT", "BUY", "0.01", "20000");
    let after = status_when(&mut http, |status| {
        status.integer_at("incarnation") > before.integer_at("incarnation")
            && ["viewsBehind", "historyBehind"].iter().all(|field| status.integer_at(field) == 0)
    });
    assert!(after.integer_at("history") > before.integer_at("durable"), "{after:?}");
}

/// Its control page tells nobody any more how far the log is on disk; its session does.
#[test]
fn the_history_is_written_beside_an_engine_whose_window_was_removed() {
    let mut venue = Venue::separate(&UNLIMITED);
    let before = status(&mut venue.http());
    venue.remove_live_window();
    venue.kill9(Part::Adapter);
    venue.start_adapter();
    venue.a().limit("BTCUSDT", "BUY", "0.01", "20000");
    let is_written = |status: &Json| status.integer_at("history") > before.integer_at("durable");
    status_when(&mut venue.http(), is_written);
}

/// An adapter that cannot read its control page has only its answers to tell how far the log is. What they told of
/// is lost: whoever reads is not to wait for it.
#[test]
fn nobody_waits_for_what_was_acknowledged_and_is_lost() {
    let mut venue = Venue::separate(
        &[UNLIMITED.as_slice(), &["--set", "adapter.acknowledge=appended"]].concat(),
    );
    for _ in 0..30 {
        venue.b().limit("BTCUSDT", "BUY", "0.01", "20000");
    }
    venue.remove_live_window();
    venue.kill9(Part::Adapter);
    venue.start_adapter();
    let_write(&mut venue, Part::Engine, false);
    // One transaction, which takes more of the log than a start does.
    venue.a().limit("BTCUSDT", "SELL", "0.3", "20000");
    venue.kill9(Part::Engine);
    venue.start_engine();
    let mut http = venue.http();
    status_when(&mut http, |status| {
        is_connected(status)
            && ["viewsBehind", "historyBehind"].iter().all(|field| status.integer_at(field) == 0)
    });
    let open = venue.b().call("GET", "/api/v3/openOrders", "").ok();
    assert_eq!(open.items().len(), 30);
}

/// An order is answered at the appended level, and is lost with the window before it is on disk. The engine that
/// comes next is soon as far, with something else: nothing of what is not its log may get into the history.
#[test]
fn what_the_log_has_lost_does_not_get_into_the_history() {
    let mut venue = Venue::separate(
        &[UNLIMITED.as_slice(), &["--set", "adapter.acknowledge=appended"]].concat(),
    );
    let mut http = venue.http();
    venue.a().limit("BTCUSDT", "BUY", "0.01", "20000");
    let before = status_when(&mut http, |status| {
        ["viewsBehind", "historyBehind"].iter().all(|field| status.integer_at(field) == 0)
            && status.integer_at("appended") == status.integer_at("durable")
    });
    let_write(&mut venue, Part::Engine, false);
    venue.a().limit("BTCUSDT", "BUY", "0.02", "20000");
    status_when(&mut http, |status| status.integer_at("views") > before.integer_at("durable"));
    // It finds the new engine when that is beyond what was lost.
    stop(venue.part(Part::Adapter).pid());
    venue.kill9(Part::Engine);
    venue.lose_live_window();
    venue.start_engine();
    for _ in 0..4 {
        assert!(administer(venue.data()), "the engine does not serve");
    }
    let adapter = venue.part(Part::Adapter);
    adapter.signal(Signal::CONT);
    assert!(!adapter.wait_for_end().success(), "{:?}", adapter.lines());
    let told = |line: &String| line.contains("is not part of the log any more");
    assert!(adapter.lines().iter().any(told), "{:?}", adapter.lines());
    venue.start_adapter();
    venue.wait_until_engine_answers();
    let made_anew = |line: &String| line.contains("made anew");
    let lines = venue.said_at_start();
    assert!(!lines.iter().any(made_anew), "{lines:?}");
}
