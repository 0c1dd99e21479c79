//! The executable's comparison of books, as JSON and as text. It needs nothing beside itself.

#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "support/second_core.rs"]
mod second_core;
#[path = "../../tests/support/skipped.rs"]
mod skipped;

use std::fs;
use std::process::{Command, Output, Stdio};

use patience::{Running, eventually, run};
use rustix::process::{Pid, Signal, kill_process};
use second_core::has_second_core;
use serde_json::Value;
use touchline_bench::latency::median;

fn core(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_touchline-bench"));
    command.arg("core").args(arguments);
    run(&mut command).expect("the executable was built for this test")
}

fn json(arguments: &[&str]) -> Value {
    let output = core(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

#[test]
fn what_the_rounds_come_to_is_told_beside_them() {
    if !has_second_core() {
        return;
    }
    let report = json(&[
        "--json",
        "--flow",
        "calm",
        "--flow",
        "burst",
        "--rounds",
        "3",
        "--operations",
        "3000",
    ]);
    let summary = &report["summary"];
    let rows = report["rows"].as_array().expect("rows");
    let flows = summary["flows"].as_array().expect("flows");
    assert_eq!((rows.len(), flows.len()), (6, 6));
    let calm = &flows[0];
    assert_eq!((&calm["peers"], &calm["peers_right"]), (&2.into(), &2.into()));
    let of = |engine: &str| {
        let engines = calm["engines"].as_array().expect("engines");
        engines.iter().find(|figure| figure["engine"] == engine).expect("it was measured").clone()
    };
    let cells = rows[0]["cells"].as_array().expect("cells");
    let cell = cells.iter().find(|cell| cell["engine"] == "touchline").expect("it was measured");
    let rounds = cell["rounds"].as_array().expect("rounds");
    let times = rounds.iter().map(|round| round["right"].as_u64().expect("a right one"));
    let own = of("touchline")["median"].as_u64().expect("a median");
    assert_eq!(own, median(times));
    let best = of(calm["best_peer"].as_str().expect("a peer"))["median"].as_u64().expect("one");
    assert_eq!(of("touchline")["to_best_peer"].as_u64(), Some(best * 100 / own));
    assert!(summary["worst_burst"]["engines"].as_array().expect("engines").len() == 7);
    // 46 batches have no such percentile.
    assert_eq!(report["batches"][0]["percentiles"]["p99_9"], Value::Null);
    assert_eq!(summary["batches_p99_9"], Value::Null);
    let goals = summary["goals"].as_array().expect("goals");
    // To the best peer and to both textbooks, by id and by handle: calm, its batches, worst burst; the burst with
    // the least lead. Three rounds are too few to judge any of them.
    assert_eq!(goals.len(), 20, "{goals:#?}");
    assert!(goals.iter().all(|goal| goal["reached"] == Value::Null && goal["bound"].is_u64()));
    let untold = |goal: &Value| goal["untold"].as_str().expect("a reason").to_owned();
    let batches = |goal: &&Value| goal["name"].as_str().expect("a name").contains("p99.9");
    let (batches, others): (Vec<_>, Vec<_>) = goals.iter().partition(batches);
    assert!(batches.len() == 6 && others.iter().all(|goal| untold(goal) == "too few rounds"));
    assert!(batches.iter().all(|goal| untold(goal) == "too few batches"), "{batches:#?}");
}

#[test]
fn a_thousand_batches_have_a_far_percentile_and_a_goal() {
    let engines = ["--engine", "touchline", "--engine", "matchcore"];
    let arguments = ["--json", "--flow", "calm", "--rounds", "1", "--operations", "64000"];
    let report = json(&[&arguments[..], &engines].concat());
    assert_eq!(report["summary"]["batches_p99_9"]["best_peer"], "matchcore");
    let goals = report["summary"]["goals"].as_array().expect("goals");
    let names = goals.iter().map(|goal| goal["name"].as_str().expect("a name"));
    assert!(names.clone().any(|name| name.starts_with("calm batches' p99.9")), "{names:?}");
}

#[test]
fn without_peers_there_is_no_ratio_to_one() {
    let arguments =
        ["--flow", "calm", "--engine", "touchline", "--rounds", "1", "--operations", "1000"];
    let report = json(&[&arguments[..], &["--json"]].concat());
    let calm = &report["summary"]["flows"][0];
    assert_eq!((&calm["peers"], &calm["best_peer"]), (&0.into(), &Value::Null));
    assert_eq!(calm["engines"][0]["to_best_peer"], Value::Null);
    assert_eq!(report["summary"]["goals"], Value::Array(Vec::new()));
    let output = core(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("0 of 0 peers right") && !text.contains("0.00 x"), "{text}");
}

#[test]
fn growth_is_told_by_size_with_its_goal() {
    let report =
        json(&["--growth", "--json", "--largest", "1000", "--rounds", "2", "--operations", "500"]);
    let curves = report["curves"].as_array().expect("curves");
    assert_eq!(curves.len(), 3);
    for curve in curves {
        assert_eq!(curve["points"][0]["to_first"], 100, "{curve}");
    }
    assert_eq!(report["goals"][0]["ratio"], report["calm_ratio"]);
    assert_eq!(report["goals"][0]["untold"], "too few rounds");
}

#[test]
fn an_interruption_ends_it_while_a_flow_is_generated() {
    let bench = Command::new(env!("CARGO_BIN_EXE_touchline-bench"))
        .args(["core", "--flow", "calm", "--operations", "100000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut bench = Running(bench.unwrap());
    let status = format!("/proc/{}/statm", bench.0.id());
    // The operations take far more than the program, and far less than all of them will.
    let is_generating = || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.is_some_and(|pages| pages > 10_000)
    };
    let began = eventually(|| {
        assert!(bench.0.try_wait().unwrap().is_none(), "it ended by itself");
        is_generating()
    });
    assert!(began, "it generates nothing");
    kill_process(Pid::from_child(&bench.0), Signal::INT).unwrap();
    assert_eq!(bench.end("the bench").code(), Some(130));
}
