//! The executable's baselines between real processes, and its exit codes.

#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "support/second_core.rs"]
mod second_core;
#[path = "../../tests/support/skipped.rs"]
mod skipped;

use std::process::{Command, Output, Stdio};

use patience::{Running, Wait, run};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use second_core::has_second_core;
use skipped::skipped;
use touchline_bench::latency::median_ratio;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_touchline-bench"));
    run(command.args(arguments)).expect("the executable was built for this test")
}

#[test]
fn baselines_are_measured_between_processes() {
    if !has_second_core() {
        return;
    }
    let arguments = ["rtt", "--no-engine", "--messages", "200", "--runs", "2", "--json"];
    let output = bench(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        for kind in ["bare", "ring"] {
            assert_eq!(run[kind]["count"], 200, "{kind}");
            assert!(run[kind]["p50"].as_u64().unwrap() > 0, "{kind}");
        }
        assert!(run["order"].is_null());
    }
    let p50 = |run: &serde_json::Value, kind: &str| run[kind]["p50"].as_u64().unwrap();
    let expected = median_ratio(runs.iter().map(|run| (p50(run, "ring"), p50(run, "bare"))));
    assert_eq!(report["ratios"]["ring_to_bare"], expected);
}

#[test]
fn what_cannot_be_run_ends_with_2_and_says_why() {
    cannot_be_run(&[
        (&["replay", "/nonexistent/messages.csv", "--runs", "0"], "nonexistent"),
        (&["replay"], "FILE"),
        (&["rtt", "--messages", "0"], "--messages"),
        (&["log", "--rounds", "0"], "--rounds"),
        (&["log", "--scratch", "/nonexistent/folder"], "/nonexistent/folder"),
        (&["log", "--core", "5000"], "no core 5000"),
        (&["replay", "/nonexistent.csv", "--runs", "0"], "/nonexistent.csv: No such file"),
        (&["core", "--growth", "--plot", "/nonexistent/plot.svg"], "/nonexistent/plot.svg"),
    ]);
}

#[test]
fn what_cannot_be_run_between_two_threads_ends_with_2_and_says_why() {
    if has_second_core() {
        cannot_be_run(&[
            (&["rtt", "--engine", "/nonexistent/touchline"], "no engine at"),
            (&["feed", "--core", "5000", "--engine", "/bin/true"], "no core 5000"),
            (&["rtt", "--engine", "/bin/true"], "the engine said nothing: it ended before"),
        ]);
    }
}

fn cannot_be_run(cases: &[(&[&str], &str)]) {
    for (arguments, said) in cases {
        let output = bench(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
        assert!(!error.contains("feed has ended"), "{arguments:?}: {error}");
    }
}

/// What the bench says where it may use one core only.
fn on_one_core(arguments: &[&str]) -> Output {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    // What a thread starts may run where it may; the other tests stay where they are.
    let on_one = || {
        let all = sched_getaffinity(None).expect("the system tells");
        let mut only = CpuSet::new();
        only.set((0..CpuSet::MAX_CPU).find(|&core| all.is_set(core)).expect("there is one"));
        sched_setaffinity(None, &only).expect("it is one of its own");
        bench(arguments)
    };
    std::thread::scope(|scope| scope.spawn(on_one).join().expect("it did not panic"))
}

#[test]
fn threads_at_the_same_time_are_not_measured_on_one_core() {
    for measurement in ["rtt", "records", "tcp", "hostile", "feed", "stream", "replay FILE"] {
        let arguments: Vec<&str> = measurement.split(' ').collect();
        let output = on_one_core(&arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{measurement}: {error}");
        assert!(error.contains("needs 2 cores; this process may use 1"), "{measurement}: {error}");
    }
    // Checks need no time.
    let checks = on_one_core(&["replay", "/nonexistent/messages.csv", "--runs", "0"]);
    assert!(!String::from_utf8_lossy(&checks.stderr).contains("cores"), "{checks:?}");
    let flow = ["core", "--flow", "burst", "--engine", "empty", "--operations", "64", "--rounds"];
    let core = on_one_core(&[&flow[..], &["1"]].concat());
    let text = String::from_utf8_lossy(&core.stdout);
    assert!(core.status.success() && text.contains("skipped: bursts"), "{core:?}");
}

#[test]
fn an_engine_that_does_not_start_leaves_nothing_behind() {
    if !has_second_core() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_str().unwrap();
    let output = bench(&["rtt", "--engine", "/bin/false", "--scratch", folder]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("ended before it was ready"), "{error}");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn an_interruption_ends_the_children_too() {
    if !has_second_core() {
        return;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        // Behind `nohup` the end of the terminal is to interrupt nothing.
        if ignored & 1 << (signal.as_raw() - 1) != 0 {
            skipped(format_args!("{signal:?} that is not ignored"));
            continue;
        }
        let bench = Command::new(env!("CARGO_BIN_EXE_touchline-bench"))
            .args(["rtt", "--no-engine", "--messages", "100000000", "--runs", "1000"])
            .stderr(Stdio::null())
            .spawn();
        let mut bench = Running(bench.unwrap());
        let pid = bench.0.id();
        // Both baselines have a process of their own; until they run there is nothing to interrupt.
        let wait = Wait::begin();
        let children = loop {
            wait.go_on("it has no children");
            assert!(bench.0.try_wait().unwrap().is_none(), "it ended by itself");
            let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            let children: Vec<i32> =
                list.split_whitespace().map(|id| id.parse().unwrap()).collect();
            if children.len() == 2 {
                break children;
            }
            std::thread::yield_now();
        };
        let process = |id: i32| Pid::from_raw(id).unwrap();
        kill_process(process(pid.try_into().unwrap()), signal).unwrap();
        assert_eq!(bench.end("the bench").code(), Some(130), "{signal:?}");
        for child in children {
            assert!(test_kill_process(process(child)).is_err(), "child {child} is alive");
        }
    }
}

/// What takes no time to measure.
const QUICK: [&str; 9] =
    ["core", "--flow", "calm", "--engine", "empty", "--rounds", "1", "--operations", "64"];

#[test]
fn a_report_that_cannot_be_printed_is_told_and_one_that_nobody_reads_is_not() {
    let start = |output: Stdio, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_touchline-bench"));
        let all = command.args(QUICK).args(more).stdout(output).stderr(Stdio::piped());
        all.spawn().unwrap()
    };
    for more in [&[][..], &["--json"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = start(full.into(), more).wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("cannot be printed: No space left"), "{error}");
        let mut unread = start(Stdio::piped(), more);
        drop(unread.stdout.take());
        let output = unread.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*error), (Some(0), ""));
    }
}

#[test]
fn malformed_rows_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let messages = folder.path().join("messages.csv");
    std::fs::write(&messages, "1.0,1,5,18,5853200,1\n1.0,9,5,18,5853200,1\n").unwrap();
    std::fs::write(folder.path().join("top-of-book.csv"), "1,2,3,4\n").unwrap();
    let own = env!("CARGO_BIN_EXE_touchline-bench");
    let output = bench(&["replay", messages.to_str().unwrap(), "--engine", own, "--runs", "0"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("line 2: event \"9\""), "{error}");
}
