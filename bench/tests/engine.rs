//! The executable against a real engine: recordings replayed and checked, round trips measured.
//!
//! Needs the executable `touchline`: `TOUCHLINE_ENGINE`, or beside `touchline-bench`, where
//! `cargo test --workspace` builds it. The recorded hour also needs the data folder, `TOUCHLINE_DATA`
//! or `../shared/data` beside the workspace. Skipped where one is absent, unless
//! `TOUCHLINE_REQUIRE_ALL=1`.

#[path = "support/memory.rs"]
mod memory;
#[path = "../../tests/support/no_io_uring.rs"]
mod no_io_uring;
#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "support/second_core.rs"]
mod second_core;
#[path = "../../tests/support/skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use no_io_uring::where_io_uring_is_refused;
use patience::run;
use second_core::has_second_core;
use serde_json::Value;
use skipped::skipped;
use touchline_bench::latency::median_ratio;

const BENCH: &str = env!("CARGO_BIN_EXE_touchline-bench");

fn found(what: &str, path: PathBuf) -> Option<PathBuf> {
    if path.exists() {
        return Some(path);
    }
    skipped(format_args!("{what} at {}", path.display()));
    None
}

/// Which goals are judged, and which cannot be told.
fn judged(report: &Value) -> (usize, usize) {
    let goals = report["goals"].as_array().expect("goals");
    let untold = goals.iter().filter(|goal| goal["reached"].is_null());
    assert!(untold.clone().all(|goal| goal["untold"].is_string()), "{goals:#?}");
    (goals.len() - untold.clone().count(), untold.count())
}

fn engine() -> Option<PathBuf> {
    let path = std::env::var_os("TOUCHLINE_ENGINE")
        .map_or_else(|| Path::new(BENCH).with_file_name("touchline"), PathBuf::from);
    found("engine", path)
}

/// The engine, for what is measured between two busy threads.
fn engine_beside() -> Option<PathBuf> {
    has_second_core().then(engine).flatten()
}

fn recorded_hour() -> Option<PathBuf> {
    let folder = std::env::var_os("TOUCHLINE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    );
    found("recorded data", folder.join("aapl-2012-06-21-first-hour.messages.csv.gz"))
}

fn bench(engine: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(BENCH);
    command.args(arguments).arg("--engine").arg(engine);
    run(&mut command).expect("the executable was built for this test")
}

fn json(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {error}"))
}

/// Order 9 is introduced by no row, 4 is older than 11 although its row comes later, and 13 passes
/// over the older 11.
const MESSAGES: &str = "1.0,1,10,50,100,1\n\
    1.1,1,11,30,100,1\n\
    1.2,1,12,20,103,-1\n\
    1.3,5,0,10,101,1\n\
    1.4,2,10,20,100,1\n\
    1.5,4,10,30,100,1\n\
    1.6,1,4,7,100,1\n\
    1.7,4,4,5,100,1\n\
    1.7,4,4,2,100,1\n\
    1.8,1,13,9,100,1\n\
    1.9,4,13,9,100,1\n\
    2.0,3,9,40,102,-1\n\
    2.1,3,11,30,100,1\n";

const STATES: &str = "102,40,100,50\n\
    102,40,100,80\n\
    102,40,100,60\n\
    102,40,100,30\n\
    102,40,100,37\n\
    102,40,100,32\n\
    102,40,100,30\n\
    102,40,100,39\n\
    102,40,100,30\n\
    103,20,100,30\n\
    103,20,99,7\n";

fn replay_small(engine: &Path, states: &str, runs: &str) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let messages = folder.path().join("small.messages.csv");
    std::fs::write(&messages, MESSAGES).expect("a file in it");
    std::fs::write(folder.path().join("small.top-of-book.csv"), states).expect("a file in it");
    let messages = messages.to_str().expect("the path is UTF-8");
    bench(engine, &["replay", messages, "--json", "--runs", runs, "--rate", "1000"])
}

#[test]
fn a_small_recording_is_reproduced() {
    let Some(engine) = engine_beside() else { return };
    let output = replay_small(&engine, STATES, "1");
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["counts"]["unseen_cancels"], 1);
    assert_eq!(report["plain"]["hits"], 1);
    assert_eq!(report["plain"]["unexpected"], 0);
    assert_eq!(report["comparison"]["completed_matched"], 10);
    assert_eq!(report["comparison"]["not_recorded"]["other"], 0);
    assert_eq!(report["median"]["one_by_one"]["count"], report["plain"]["commands"]);
    assert_eq!(report["passes_that_differ"], 0);
    for baseline in ["bare", "ring"] {
        assert_eq!(report["median"][baseline]["count"], 20_000, "{baseline}");
    }
    assert!(report["median"]["messages_per_second"].as_u64().unwrap() > 0);
}

#[test]
fn a_recorded_state_that_cannot_be_explained_fails_the_check() {
    let Some(engine) = engine() else { return };
    let output = replay_small(&engine, &STATES.replace("100,37", "100,38"), "0");
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1), "{report:#}");
    assert!(report["other"].as_u64().unwrap() > 0);
    assert_eq!(report["passed"], false);
    // Nothing was measured, and nothing is told as if it were.
    let median = report["median"].as_object().unwrap();
    assert!(median.len() > 4 && median.values().all(Value::is_null), "{median:?}");
}

#[test]
fn the_recorded_hour_is_reproduced() {
    let (Some(engine), Some(messages)) = (engine(), recorded_hour()) else { return };
    let messages = messages.to_str().unwrap();
    let output = bench(&engine, &["replay", messages, "--json", "--runs", "0"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["plain"]["commands"], 89_712);
    assert_eq!(report["plain"]["hits"], 4_031);
    assert_eq!(report["plain"]["rows_off_reference"], 0);
    assert_eq!(report["comparison"]["matched"], 23_361);
    assert_eq!(report["comparison"]["matched_by_look_ahead"], 23_342);
    assert_eq!(report["comparison"]["completed_matched"], 23_440);
    assert_eq!(report["other"], 0);
}

#[test]
fn orders_are_measured_beside_a_flood_of_records() {
    let Some(engine) = engine_beside() else { return };
    let (scratch, in_memory) = memory::or_on_disk();
    let folder = scratch.path().to_str().unwrap();
    let output = bench(
        &engine,
        &["records", "--json", "--runs", "1", "--messages", "195", "--scratch", folder],
    );
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    // In ten equal blocks.
    assert_eq!(report["messages"], 200);
    assert!(report["scratch"]["in_memory"] == true || !in_memory);
    for kind in ["alone", "computing", "flooded"] {
        assert_eq!(report["median"][kind]["count"], 200, "{kind}");
    }
    assert!(report["median"]["records_per_second"].as_u64().unwrap() > 0);
}

#[test]
fn many_under_way_are_measured() {
    let Some(engine) = engine_beside() else { return };
    for wait in ["adaptive", "spin"] {
        let arguments = ["stream", "--json", "--runs", "1", "--messages", "10001", "--wait", wait];
        let output = bench(&engine, &arguments);
        let report = json(&output);
        assert_eq!(output.status.code(), Some(0), "{report:#}");
        // In five equal blocks.
        assert_eq!(report["messages"], 10_005);
        for figure in [
            "bare_tenths",
            "ring_tenths",
            "core_per_second",
            "session_per_second",
            "brief_per_second",
            "terse_per_second",
        ] {
            assert!(report["median"][figure].as_u64().unwrap() > 0, "{figure}");
        }
        assert_eq!(judged(&report), (5, 0));
    }
}

#[test]
fn round_trips_through_the_engine_are_measured() {
    let Some(engine) = engine_beside() else { return };
    let arguments = ["rtt", "--json", "--runs", "1", "--messages", "100", "--idle-sessions", "2"];
    let output = bench(&engine, &arguments);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let orders = ["order", "brief", "terse", "order_takes", "brief_takes", "terse_takes"];
    let builds = &report["machine"]["builds"];
    let started = builds["started"].as_str().unwrap();
    assert!(started.starts_with("touchline ") && started.contains("(sources "), "{started}");
    // The engine beside the bench may be an older one.
    let is_other = started != format!("touchline {}", builds["bench"].as_str().unwrap());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error.contains("is of another build"), is_other, "{error}");
    for kind in ["bare", "ring", "cancel", "terse_cancel"].into_iter().chain(orders) {
        assert_eq!(report["median"][kind]["count"], 100, "{kind}");
    }
    let p50 = |kind: &str| report["median"][kind]["p50"].as_u64().unwrap();
    assert_eq!(report["ratios"]["order_to_ring"], median_ratio([(p50("order"), p50("ring"))]));
    assert_eq!(report["goals"], Value::Array(Vec::new()), "of what waits adaptively");
    for (goal, kind) in ["hop", "hop_due"].into_iter().enumerate() {
        let goal = &report["hop_goals"][goal];
        assert_eq!(goal["reached"], p50(kind) <= 6_000, "{goal:#}");
    }
    assert!(report["scratch"]["file_system"].is_string());
}

#[test]
fn orders_over_tcp_are_measured_beside_echoes() {
    let Some(engine) = engine_beside() else { return };
    let output = bench(&engine, &["tcp", "--json", "--runs", "1", "--messages", "20"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let p50 = |kind: usize| report["median"][kind]["p50"].as_u64().unwrap();
    // Of the two with two threads, the quicker one.
    let t2 = [1, 2].into_iter().min_by_key(|&kind| p50(kind)).unwrap();
    for kind in 0..6 {
        // Of so few messages there is no p99, and no ratio of one.
        assert_eq!(report["median"][kind]["count"], 20, "{report:#}");
        assert!(report["median"][kind]["p99"].is_null() && report["p99_to_t2"][kind].is_null());
        for (ratio, beside) in [("p50_to_t", 0), ("p50_to_t2", t2)] {
            assert_eq!(report[ratio][kind], median_ratio([(p50(kind), p50(beside))]), "{kind}");
        }
    }
    let (judged, untold) = judged(&report);
    // Those of p99 have nothing to tell, and with a third core there are two of T.
    assert!(matches!(judged + untold, 6 | 8) && untold >= 2, "{:#}", report["goals"]);
}

#[test]
fn where_io_uring_is_refused_that_is_in_the_report_and_nothing_beside_it() {
    let Some(engine) = engine_beside() else { return };
    where_io_uring_is_refused(|| {
        let output = bench(&engine, &["tcp", "--json", "--runs", "1", "--messages", "20"]);
        let report = json(&output);
        assert_eq!(output.status.code(), Some(0), "{report:#}");
        assert!(report["io_uring_refused"].is_string(), "{report:#}");
        let goals = report["goals"].as_array().unwrap();
        let of_io_uring =
            goals.iter().filter(|goal| format!("{}", goal["name"]).contains("io_uring"));
        assert!(of_io_uring.clone().count() >= 4, "{goals:#?}");
        assert!(of_io_uring.clone().all(|goal| goal["reached"].is_null()), "{goals:#?}");
    });
}

#[test]
fn orders_over_rest_are_measured() {
    let Some(engine) = engine() else { return };
    let arguments = ["rest", "--json", "--runs", "2", "--requests", "200", "--bystanders", "20"];
    let output = bench(&engine, &arguments);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let cpu_ns = |server: &str| report["median"][server]["cpu_ns"].as_u64().unwrap();
    for server in ["constant", "appended", "durable"] {
        assert_eq!(report["median"][server]["latency"]["count"], 200, "{server}");
        assert!(cpu_ns(server) > 0, "{server}");
    }
    let waiting_ns = |server: &str| report["median"][server]["waiting_ns"].as_u64().unwrap();
    assert!(waiting_ns("constant") == 0 && waiting_ns("appended") > 0, "{report:#}");
    let run = |run: usize, server: &str| report["runs"][run][server]["cpu_ns"].as_u64().unwrap();
    let expected = median_ratio([0, 1].map(|at| (run(at, "durable"), run(at, "constant"))));
    assert_eq!(report["ratios"]["durable"], expected);
    let crowd = &report["crowd"];
    assert_eq!(
        (crowd["connections"].as_u64(), crowd["runs"].as_array().unwrap().len()),
        (Some(20), 2)
    );
    assert_eq!(crowd["with"]["count"], 200);
    // Twenty are no crowd.
    assert_eq!(judged(&report), (2, 2));
}

#[test]
fn orders_over_the_second_front_are_measured() {
    let Some(engine) = engine() else { return };
    let arguments = ["rest", "--front", "may", "--json", "--runs", "1", "--requests", "200"];
    let output = bench(&engine, &[&arguments[..], &["--bystanders", "0"]].concat());
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    for server in ["constant", "appended"] {
        let block = &report["median"]["may"][server];
        assert_eq!(block["latency"]["count"], 200, "{server}");
        assert!(block["cpu_ns"].as_u64().unwrap() > 0, "{server}");
    }
    assert!(report["crowd"].is_null());
    assert_eq!(judged(&report), (2, 0));
}

#[test]
fn jobs_are_measured() {
    let Some(engine) = engine() else { return };
    let arguments = ["jobs", "--json", "--users", "5", "--jobs", "500", "--list", "50"];
    let output = bench(&engine, &arguments);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    for figure in ["rate", "adapter_cpu_ns", "engine_cpu_ns"] {
        assert!(report[figure].as_u64().unwrap() > 0, "{figure}");
    }
    assert_eq!(report["latency"]["count"], 500);
    // 2,000 jobs go before all others, in turns.
    assert_eq!(report["list"]["jobs"], 2_500 / 5 + 50);
    assert_eq!(judged(&report), (2, 0));
    assert!(report["scratch"]["file_system"].is_string());
}

#[test]
fn the_feed_and_hostile_clients_are_measured() {
    let Some(engine) = engine_beside() else { return };
    // For the window of the feed's venue.
    if !memory::is_there() {
        return;
    }
    let output = bench(&engine, &["feed", "--runs", "1", "--messages", "100", "--json"]);
    let report = json(&output);
    assert!(output.status.success(), "{report}");
    assert_eq!(report["blocks"], 3);
    for kind in 0..4 {
        assert!(report["ns_per_1000"][kind].as_u64().unwrap() > 0, "{report}");
        assert!((1..=100).contains(&report["read_percent"][kind].as_u64().unwrap()), "{report}");
    }
    // Of three blocks.
    assert_eq!(judged(&report), (0, 2));
    for carrier in ["memory", "tcp"] {
        let lag = &report["lag"][carrier];
        assert_eq!(lag["message"]["count"], 100);
        assert!(lag["message"]["p50"].as_u64() >= lag["reply"]["p50"].as_u64(), "{lag}");
    }
    let output = bench(&engine, &["hostile", "--runs", "1", "--core", "9999"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("core 9999"), "{said}");
    let output = bench(&engine, &["hostile", "--runs", "1", "--messages", "100", "--json"]);
    let report = json(&output);
    assert!(output.status.success(), "{report}");
    assert_eq!(judged(&report), (12, 0));
    for carrier in 0..2 {
        for kind in 0..7 {
            assert_eq!(report["median"][carrier][kind]["count"], 100, "{report}");
        }
        for harm in
            ["commands", "unread_commands", "messages_elsewhere", "knocks", "knocks_elsewhere"]
        {
            assert!(
                report["runs"][0]["harm"][carrier][harm].as_u64().unwrap() > 0,
                "nobody did harm"
            );
        }
    }
}
