//! The measurement of the log from outside: what it reports, what it leaves out where there is no disk,
//! and that it leaves nothing behind.

#[path = "support/memory.rs"]
mod memory;
#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "../../tests/support/skipped.rs"]
mod skipped;

use crate::skipped::skipped;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use patience::{Running, eventually, run};
use rustix::process::{Pid, Signal, kill_process};

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_touchline-bench"));
    run(command.arg("log").args(arguments)).expect("the executable was built for this test")
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("the folder is there").next().is_none()
}

#[test]
fn without_a_disk_the_rest_is_measured_and_what_is_skipped_is_said() {
    // Direct writes to it are no disk writes.
    let Some(scratch) = memory::folder() else { return };
    let folder = scratch.path().to_str().unwrap();
    let arguments = [
        "--scratch",
        folder,
        "--rounds",
        "2",
        "--commands",
        "3000",
        "--json",
        "--segment-mib",
        "4",
    ];
    let output = bench(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["skipped"].as_str().unwrap().contains(folder));
    assert_eq!(report["segment_bytes"], 4 << 20);
    assert_eq!(report["scratch"], serde_json::json!({"file_system": "tmpfs", "in_memory": true}));
    let rounds = report["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        assert!(round["durable"].is_null());
        for (part, figure) in [
            ("replay", "replay_per_second"),
            ("replay", "core_per_second"),
            ("verify", "bytes"),
            ("verify", "verify_bytes_per_second"),
            ("verify", "read_bytes_per_second"),
        ] {
            assert!(round[part][figure].as_u64().unwrap() > 0, "{part} {figure}");
        }
        let blocks = round["append"].as_array().unwrap();
        assert_eq!(blocks.len(), 40);
        for kind in ["append_ns_per_1000", "copy_ns_per_1000", "package_copy_ns_per_1000"] {
            assert!(blocks.iter().all(|block| block[kind].as_u64().unwrap() > 0), "{kind}");
        }
    }
    assert_eq!(report["goals"].as_array().unwrap().len(), 3);
    assert!(is_empty(scratch.path()));
    let text = bench(&["--scratch", folder, "--rounds", "1", "--commands", "1000"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("\nskipped: "), "{text}");
}

#[test]
fn on_a_disk_every_goal_has_its_figure() {
    // For the windows, whose place is memory in all that is measured.
    if !memory::is_there() {
        return;
    }
    // Debug builds and busy machines reach none: what counts is that all is measured.
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_str().unwrap();
    let output = bench(&["--scratch", folder, "--rounds", "1", "--commands", "1000", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(is_empty(scratch.path()));
    if let Some(why) = report["skipped"].as_str() {
        return skipped(format_args!("disk under the folder for temporary files: {why}"));
    }
    let durable = &report["rounds"][0]["durable"];
    assert_eq!(durable["bare_write"]["count"], 500);
    let count = |kind: &str| durable["paced"][kind]["count"].as_u64().unwrap();
    assert!(count("writer_off") > 100_000);
    for kind in ["writer_on", "durable", "bare_durable"] {
        assert_eq!(count(kind), count("writer_off"), "{kind}");
    }
    assert_eq!(report["goals"].as_array().unwrap().len(), 7);
}

#[test]
fn an_interruption_ends_it_and_leaves_nothing_behind() {
    if !memory::is_there() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let bench = Command::new(env!("CARGO_BIN_EXE_touchline-bench"))
        .args(["log", "--rounds", "1000", "--commands", "1000", "--scratch"])
        .arg(scratch.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut bench = Running(bench.unwrap());
    let threads = format!("/proc/{}/task", bench.0.id());
    let keeper_runs = || {
        let tasks = fs::read_dir(&threads).into_iter().flatten().flatten();
        tasks.into_iter().any(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "keeper\n")
        })
    };
    let began = eventually(|| {
        assert!(bench.0.try_wait().unwrap().is_none(), "it ended by itself");
        keeper_runs()
    });
    assert!(began, "it measures nothing");
    kill_process(Pid::from_child(&bench.0), Signal::INT).unwrap();
    assert_eq!(bench.end("the bench").code(), Some(130));
    assert!(is_empty(scratch.path()));
}
