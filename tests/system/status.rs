//! How far the adapter says that it is with the log.

use super::http::Http;
use super::json::Json;
use super::venue::{Part, UNLIMITED, Venue};
use std::time::{Duration, Instant};
use touchline_protocol::log::reader::{Follow, LogReader};

/// Fail-safe: long enough never to be met by a working adapter.
const PATIENCE: Duration = Duration::from_secs(60);

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
    let begin = Instant::now();
    loop {
        let status = status(http);
        if wanted(&status) {
            return status;
        }
        assert!(begin.elapsed() < PATIENCE, "{status:?}");
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

/// Nobody waits for the disk here. What was answered is shown all the same, and before it is there.
#[test]
fn what_is_answered_before_it_is_on_disk_is_shown_before_it_is() {
    let more = ["--set", "adapter.acknowledge=appended", "--set", "log.gather_us=1000000"];
    let venue = Venue::up(&[&UNLIMITED[..], &more].concat());
    let (mut http, mut trader) = (venue.http(), venue.a());
    let ahead = (0..20).filter(|_| {
        let placed = trader.limit("BTCUSDT", "BUY", "0.01", "20000");
        let shown = trader.order("BTCUSDT", placed.integer_at("orderId"));
        assert_eq!(shown.text_at("status"), "NEW");
        let status = status(&mut http);
        status.integer_at("durable") < status.integer_at("appended")
    });
    assert!(ahead.count() > 0, "the disk is ahead of all answers");
}
