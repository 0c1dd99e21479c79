//! The HTTP servers that the adapter can run on, as the command line offers them. What they do is tested
//! elsewhere: the contract's tables on both, everything else on hyper, or on the one that
//! `TOUCHLINE_FRONT` names. Four of these tests are about what may does not do (README, "The second
//! front"), and fail there: that a long list of jobs comes in chunks (`jobs::lists::a_long_list_…`,
//! `jobs::long_list`), and that a body which is too long gets its answer (`jobs::rules::bodies_…`,
//! `openapi::jobs::what_…`).

use super::http::{Http, Request, now_ms};
use super::process::{Process, eventually, send_signal, stop};
use super::venue::{FRONTS, Part, Venue};
use crate::patience::{Wait, join};
use rustix::process::Signal;
use std::thread;

#[test]
fn the_second_front_says_what_it_is_for_and_survives_its_adapter() {
    let venue = Venue::up(&["--front", "may"]);
    let warned = |line: &str| line.contains("front may is for trusted networks");
    venue.supervisor().wait_for(0, "warning", warned);
    assert_eq!(venue.http().get("/api/v3/ping").header("server"), Some("M"), "may_minihttp's name");
    let adapter = venue.pid("adapter");
    send_signal(adapter.expect("it runs"), Signal::KILL);
    let is_back = || venue.pid("adapter").is_some_and(|pid| Some(pid) != adapter);
    assert!(eventually(is_back), "the adapter is started again");
    let answers = || {
        let request = Request::new("GET", "/api/v3/ping");
        venue.http().send(&request).is_ok_and(|reply| reply.header("server") == Some("M"))
    };
    assert!(eventually(answers), "on the same port and front");
}

#[test]
fn what_a_front_refuses_from_a_banned_address_it_refuses_for_the_ban() {
    for front in ["hyper", "may"] {
        let limits = ["adapter.request_weight_per_minute=30", "adapter.refusals_before_ban=3"];
        let venue = Venue::up(&["--front", front, "--set", limits[0], "--set", limits[1]]);
        let wait = Wait::begin();
        while venue.http().get("/api/v3/ping").status != 418 {
            wait.go_on("it is never banned");
        }
        let trace = Request::new("TRACE", "/api/v3/ping");
        let long = Request::new("POST", "/api/v3/order").body("x".repeat(17 << 10));
        // The answer to a body that is too long is not sure to come from may.
        for request in [trace, long].iter().take(if front == "may" { 1 } else { 2 }) {
            let reply = venue.http().call(request);
            let (status, code, _) = reply.error();
            assert_eq!((status, code), (418, -1003), "{front}: {reply:?}");
            assert!((100..=120).contains(&reply.number("Retry-After")), "{front}: {reply:?}");
        }
    }
}

/// An engine that hangs answers nobody: whoever waits for it when the adapter ends learns that.
#[test]
fn an_adapter_that_ends_answers_what_its_engine_does_not() {
    for front in FRONTS {
        ends_with_answers(front);
    }
}

fn ends_with_answers(front: &str) {
    const ORDER: &str =
        "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";
    const ORDERS: u64 = 4;
    let mut venue = Venue::separate(&["--set", "adapter.deadline_ms=60000", "--set", front]);
    let used = |http: &mut Http| http.get("/api/v3/ping").number("x-svc-used-weight-1m");
    let mut asks = venue.http();
    // It counts anew with each minute.
    assert!(eventually(|| now_ms() % 60_000 < 45_000));
    let before = used(&mut asks);
    stop(venue.part(Part::Engine).pid());
    let clients: Vec<_> = (0..ORDERS)
        .map(|_| {
            let mut a = venue.a();
            thread::spawn(move || a.send("POST", "/api/v3/order", ORDER))
        })
        .collect();
    let mut asked = 0;
    let all_wait = eventually(|| {
        asked += 1;
        used(&mut asks) == before + asked + ORDERS
    });
    assert!(all_wait, "the orders do not come");
    venue.part(Part::Adapter).signal(Signal::TERM);
    for client in clients {
        let answer = join(client, "the order").expect("an answer");
        assert_eq!(answer.error().1, -1006, "{front}");
    }
    assert_eq!(venue.part(Part::Adapter).wait_for_end().code(), Some(0));
    let lines = venue.part(Part::Adapter).lines();
    assert!(!lines.iter().any(|line| line.contains("cut off")), "{front}: {lines:?}");
}

#[test]
fn a_front_that_is_none_and_workers_that_it_cannot_have_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().to_str().expect("temporary folders have plain names");
    let refused = |arguments: &[&str], message: &str| {
        let mut process = Process::start(&[&["adapter", "--data", data], arguments].concat());
        process.wait_for(0, message, |line| line.contains(message));
        assert!(!process.wait_for_end().success());
    };
    refused(&["--front", "nginx"], "must be hyper or may");
    refused(
        &["--front", "may", "--set", "adapter.workers=2"],
        "adapter.workers is 2, must be 1 on front may",
    );
}

#[test]
fn a_wrong_setting_of_the_adapter_is_told_before_a_venue_is_made() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let data = data.to_str().expect("temporary folders have plain names");
    for (arguments, message) in [
        (&["--set", "adapter.deadline_ms=0"][..], "adapter.deadline_ms is 0, must be 1 to 60000"),
        (&["--set", "jobs.hashing_threads=0"], "jobs.hashing_threads is 0, must be 1 to 64"),
        (&["--header-prefix", "X-"], "adapter.header_prefix is \"X-\", must be"),
        (&["--front", "may", "--set", "adapter.workers=2"], "must be 1 on front may"),
    ] {
        let up = ["up", "--http", "127.0.0.1:0", "--data", data];
        let mut process = Process::start(&[&up[..], arguments].concat());
        assert_eq!(process.wait_for_end().code(), Some(1));
        let lines = process.lines();
        assert!(lines.len() == 1 && lines[0].contains(message), "{lines:?}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
    }
}
