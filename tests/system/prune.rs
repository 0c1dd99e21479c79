//! `touchline log prune` beside what is there of an adapter's history: nothing is removed that one is to be made of,
//! and what is said of a pruned log whose history is gone.

use super::copies;
use super::doctor::{FOUND_WRONG, doctor};
use super::json::Json;
use super::log_tools::{log, object};
use super::process::Process;
use super::readers::Load;
use super::venue::{UNLIMITED, Venue, borrowed};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use touchline_adapter::views::state::Archive;
use touchline_protocol::log::reader::{Follow, LogReader};

/// Bytes of a segment of every venue here.
const SEGMENT: u64 = 4 << 20;

/// A venue that has ended, of some segments and one snapshot behind most of them, which its history goes as far as; and
/// a history that goes only as far as its beginning.
fn ended() -> Venue {
    let mut venue = Venue::up(&UNLIMITED);
    let placed = venue.a().limit("BTCUSDT", "SELL", "0.02", "20000");
    assert_eq!(placed.integer_at("orderId"), 1);
    assert!(venue.stop_up(Signal::TERM).success());
    copy(&venue.data().join("history"), &venue.data().join("early"));
    venue.start_up();
    Load::new(&venue).pass(2 * SEGMENT + SEGMENT / 4);
    assert!(venue.stop_up(Signal::TERM).success());
    assert_eq!(log(venue.data(), &["snapshot"]).0, Some(0));
    venue
}

/// Whom a prune keeps segments for, and how many it removes.
fn pruned(data: &Path, more: &[&str]) -> (Vec<String>, usize) {
    let found = object(data, &[&["prune", "--json"], more].concat());
    let name = |kept: &Json| kept.text_at("name").to_owned();
    let kept = found.at("keptFor").items().iter().map(name).collect();
    (kept, found.at("segments").items().len())
}

/// Does something to a data folder and gives it back as it was behind `meanwhile`.
fn with(data: &Path, change: impl FnOnce(), meanwhile: impl FnOnce()) {
    let aside = data.with_extension("aside");
    for name in ["history", "leases"] {
        copy(&data.join(name), &aside.join(name));
    }
    change();
    meanwhile();
    for name in ["history", "leases"] {
        let _gone = fs::remove_dir_all(data.join(name));
        copy(&aside.join(name), &data.join(name));
    }
    fs::remove_dir_all(aside).expect("it is ours");
}

fn copy(from: &Path, to: &Path) {
    copies::copy(from, to).expect("the folder is ours");
}

fn remove(data: &Path, names: &[&str]) {
    for path in names.iter().map(|name| data.join(name)) {
        fs::remove_dir_all(path).expect("it is ours");
    }
}

/// Has the history end with a transaction that the log does not have.
fn end_otherwise(data: &Path) {
    let log_id = LogReader::open(data, Follow::Durable).expect("there is a log").log_id();
    let mut archive = Archive::open(&data.join("history/adapter"), log_id).expect("it is whole");
    let (rows, mut reached) = archive.raw_rows().expect("it is whole");
    // The checksum of that transaction.
    reached[28] ^= 1;
    archive.put_raw_rows(&rows, &reached).expect("it can be written");
}

/// Changes a data folder.
type Change<'a> = &'a dyn Fn(&Path);

#[test]
fn the_log_is_kept_that_a_history_is_to_be_made_of() {
    let mut venue = ended();
    let data = venue.data().to_owned();
    let nobody = Vec::<String>::new();
    assert_eq!(pruned(&data, &["--dry-run"]), (nobody.clone(), 2), "its history goes further");
    let own = ["history-adapter".to_owned()];
    let store = |data: &Path| data.join("history/adapter/data.mdb");
    let cases: [(Change<'_>, &[String], &str); 11] = [
        (&|data| remove(data, &["history"]), &own, "there is no history in"),
        (&|data| fs::remove_file(store(data)).expect("it is ours"), &own, "there is no history in"),
        // As in a copy that was made beside a running venue.
        (
            &|data| remove(data, &["history", "leases"]),
            &["history".to_owned()],
            "no adapter has a history of this log",
        ),
        (
            &|data| {
                let bytes = fs::metadata(store(data)).expect("it is there").len();
                fs::write(store(data), vec![0; bytes as usize]).expect("it is ours");
            },
            &own,
            "MDB_INVALID",
        ),
        (
            &|data| {
                let mut bytes = fs::read(store(data)).expect("it is there");
                bytes[2 * 4096..].fill(0);
                fs::write(store(data), bytes).expect("it is ours");
            },
            &own,
            "MDB_",
        ),
        (
            &|data| {
                let file = fs::File::options().write(true).open(store(data)).expect("it is there");
                file.set_len(2 * 4096).expect("it is ours");
            },
            &own,
            "is shorter than it says",
        ),
        (
            &|data| fs::write(data.join("history/adapter/lock"), "damaged\n").expect("it is ours"),
            &own,
            "is damaged",
        ),
        (
            &|data| fs::remove_file(data.join("history/adapter/lock")).expect("it is ours"),
            &own,
            "is a copy",
        ),
        (&end_otherwise, &own, "the log does not have the transaction"),
        // Brought back from an earlier copy, as it is, and without a lease.
        (
            &|data| {
                remove(data, &["history"]);
                copy(&data.join("early"), &data.join("history"));
            },
            &own,
            "no lease says",
        ),
        (
            &|data| {
                remove(data, &["history", "leases"]);
                copy(&data.join("early"), &data.join("history"));
            },
            &own,
            "no lease says",
        ),
    ];
    for (change, kept, told) in cases {
        with(
            &data,
            || change(&data),
            || {
                for how in ["--dry-run", "--yes"] {
                    assert_eq!(pruned(&data, &[how]), (kept.to_vec(), 0), "{told}");
                    let (code, text, errors) = log(&data, &["prune", how]);
                    assert_eq!(code, Some(0), "{errors}");
                    let says = |part: &str| text.contains(part);
                    assert!(says(told) && says("--without-history"), "{told}: {text}");
                }
                let given_up = pruned(&data, &["--dry-run", "--without-history"]);
                assert_eq!(given_up, (nobody.clone(), 2), "{told}");
            },
        );
    }
    // One that is whole needs no lease, and what is looked at is left as it is.
    with(
        &data,
        || remove(&data, &["leases"]),
        || {
            assert_eq!(pruned(&data, &["--dry-run"]), (nobody.clone(), 2));
        },
    );

    // What the message says to do.
    remove(&data, &["history"]);
    venue.start_up();
    assert!(venue.stop_up(Signal::TERM).success());
    assert_eq!(pruned(&data, &["--yes"]), (nobody, 2));
    venue.start_up();
    assert_eq!(venue.a().order("BTCUSDT", 1).text_at("status"), "NEW");
}

/// It was made anew while it could be, or nobody serves REST: then all else goes on.
#[test]
fn a_pruned_log_without_its_history_is_found_by_the_doctor_and_pruned_no_further_unasked() {
    let mut venue = ended();
    let data = venue.data().to_owned();
    assert_eq!(pruned(&data, &["--yes"]).1, 2);
    assert_eq!(doctor(&data).0, Some(0));
    venue.start_up();
    Load::new(&venue).pass(4 * SEGMENT);
    assert!(venue.stop_up(Signal::TERM).success());
    assert_eq!(log(&data, &["snapshot", "--kept", "1"]).0, Some(0));
    let found = || {
        let (code, text) = doctor(&data);
        let is_told = |line: &str| line.starts_with("WRONG") && line.contains("was pruned");
        assert_eq!(code == Some(FOUND_WRONG), text.lines().any(is_told), "{text}");
        code
    };
    assert_eq!(found(), Some(0));
    // The earlier one ends before the log begins.
    for history in [None, Some("early")] {
        with(
            &data,
            || {
                remove(&data, &["history"]);
                history.iter().for_each(|from| copy(&data.join(from), &data.join("history")));
            },
            || {
                assert_eq!(found(), Some(FOUND_WRONG), "{history:?}");
                assert_eq!(pruned(&data, &["--dry-run"]), (vec!["history-adapter".to_owned()], 0));
                assert!(pruned(&data, &["--dry-run", "--without-history"]).1 > 0);
                let mut up = Process::start(&borrowed(&venue.arguments("up", true)));
                up.wait_for(0, "end of the adapter", |line| line.contains("was pruned"));
                up.wait_for(0, "ready line", |line| line.contains("ready without REST"));
                up.signal(Signal::TERM);
                assert_eq!(up.wait_for_end().code(), Some(0));
            },
        );
    }
    // Used, for there is no other.
    let lock = data.join("history/adapter/lock");
    with(
        &data,
        || fs::write(&lock, "open 0 0\n").expect("it is ours"),
        || {
            assert_eq!(found(), Some(0));
            assert!(pruned(&data, &["--dry-run"]).1 > 0);
        },
    );
    venue.start_up();
}
