//! The measurement of the adapter's history from outside: what it reports, and that it leaves nothing behind.

#[path = "support/memory.rs"]
mod memory;
#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "../../tests/support/skipped.rs"]
mod skipped;

use std::process::Command;

use patience::run;

#[test]
fn ingestion_and_pages_are_measured() {
    let (scratch, in_memory) = memory::or_on_disk();
    let mut command = Command::new(env!("CARGO_BIN_EXE_touchline-bench"));
    command.args(["history", "--json", "--millions", "1", "--pages", "8", "--scratch"]);
    let output = run(command.arg(scratch.path())).expect("the executable was built for this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
    assert!(report["scratch"]["in_memory"] == true || !in_memory);
    let lines = report["lines"].as_array().unwrap();
    assert!(lines.len() == 1 && lines[0]["rows"].as_u64().unwrap() >= 1_000_000, "{lines:#?}");
    let pages = report["pages"].as_array().unwrap();
    assert_eq!(pages.len(), 9);
    for kind in pages {
        assert_eq!(kind["latency"]["count"], 8, "{kind}");
        assert!(kind["entries"].as_u64().unwrap() > 0, "{kind}");
    }
    let goals = report["goals"].as_array().unwrap();
    // Pages out of so few rows are not judged.
    let (ingestion, pages) = goals.split_first().unwrap();
    assert!(ingestion["reached"].is_boolean(), "{ingestion}");
    assert!(pages.len() == 7 && pages.iter().all(|goal| goal["reached"].is_null()), "{goals:#?}");
    assert!(std::fs::read_dir(scratch.path()).unwrap().next().is_none());
}
