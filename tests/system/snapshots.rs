//! Snapshots as an operator meets them: made while the engine runs and killed while they are made, starts
//! that go on from them, segments that are removed. The executable, its processes and its files.

use super::json::Json;
use super::log_tools::log;
use super::process::{Process, eventually, is_alive, processes_on};
use super::readers::Load;
use super::venue::{Part, UNLIMITED, Venue, borrowed};
use crate::patience::Wait;
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::units::Position;

const MIB: u64 = 1 << 20;

/// A log is not let grow beyond this while something else is waited for.
const LOG_MAX: u64 = 512 * MIB;

/// Bytes of a segment of every venue here.
const SEGMENT: u64 = 4 * MIB;

fn object(data: &Path, arguments: &[&str]) -> Json {
    let (code, output, errors) = log(data, &[arguments, &["--json"]].concat());
    assert_eq!(code, Some(0), "{arguments:?}: {output}{errors}");
    Json::parse(output.trim())
}

/// Names in the folder of snapshots.
fn files(data: &Path) -> Vec<String> {
    let entries = fs::read_dir(data.join("snapshots")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().expect("plain names")).collect()
}

fn snapshots(data: &Path) -> Vec<PathBuf> {
    let names = files(data).into_iter().filter(|name| name.ends_with(".snap"));
    names.map(|name| data.join("snapshots").join(name)).collect()
}

fn options<'option>(more: &[&'option str]) -> Vec<&'option str> {
    [&UNLIMITED[..], more].concat()
}

/// The processes that make snapshots of a data folder.
fn makers(data: &Path) -> Vec<u32> {
    let makes = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.windows(9).any(|window| window == b"\0snapshot")
    };
    processes_on(data).into_iter().filter(makes).collect()
}

/// As [`eventually`], for what a process of the lowest priority does, which gets little of a busy machine.
fn patiently(condition: impl Fn() -> bool) -> bool {
    (0..5).any(|_| eventually(&condition))
}

#[test]
fn a_growing_log_gets_snapshots_and_a_killed_engine_starts_from_one() {
    let mut venue = Venue::up(&options(&["--set", "log.snapshot_every_mib=1"]));
    let placed = venue.a().limit("BTCUSDT", "SELL", "0.02", "20000").integer_at("orderId");
    let mut load = Load::new(&venue);
    load.pass(MIB + MIB / 4);
    let supervisor = venue.supervisor();
    let made = |line: &String| line.contains("a snapshot of position");
    assert!(patiently(|| supervisor.lines().iter().any(made)), "no snapshot");
    load.pass(load.position + MIB + MIB / 4);
    drop(load);
    assert!(patiently(|| snapshots(venue.data()).len() == 2), "no second one");
    assert!(patiently(|| makers(venue.data()).is_empty()));
    let lines = supervisor.lines().len();
    venue.kill9(Part::Engine);
    venue.supervisor().wait_for(lines, "start from a snapshot", |line| {
        line.contains("transactions by the snapshot at position")
    });
    venue.wait_until_engine_answers();
    assert_eq!(venue.a().order("BTCUSDT", placed).text_at("status"), "NEW");
    venue.a().cancel(&format!("symbol=BTCUSDT&orderId={placed}"));

    // The state of the next is the one that the whole log gives up to there.
    assert!(venue.stop_up(Signal::TERM).success());
    let data = venue.data();
    let made = object(data, &["snapshot"]);
    assert!(made.integer_at("replayed") > 0);
    let until = made.integer_at("position").to_string();
    let replayed = object(data, &["replay", "--until", &until]);
    assert_eq!(replayed.text_at("stateHash"), made.text_at("stateHash"));
    assert_eq!(replayed.integer_at("transactions"), made.integer_at("transactions"));
    assert_eq!(replayed.at("snapshot"), &Json::parse("null"), "from the log's beginning");
    let verified = object(data, &["verify"]);
    assert_eq!(verified.at("snapshots").items().len(), 2);
    assert_eq!(snapshots(data).len(), 2);
}

#[test]
fn the_process_that_makes_a_snapshot_gives_way_and_ends_with_its_engine() {
    let mut venue = Venue::separate(&options(&["--set", "log.snapshot_every_mib=1"]));
    venue.kill9(Part::Adapter);
    let nice = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
        fields.split(' ').nth(16).and_then(|nice| nice.parse::<i32>().ok())
    };
    let mut load = Load::new(&venue);
    let mut seen = Vec::new();
    let mut told = Vec::new();
    // Each may have ended before it is looked at: so one that gives way is looked for among all of them.
    let gives_way = eventually(|| {
        assert!(load.position < LOG_MAX, "the log has grown by much: {told:?}");
        load.pass(load.position + MIB);
        seen = makers(venue.data());
        let nices: Vec<_> = seen.iter().filter_map(|&pid| nice(pid)).collect();
        told.extend_from_slice(&nices);
        nices.contains(&19)
    });
    assert!(gives_way, "{told:?}");
    drop(load);
    venue.kill9(Part::Engine);
    assert!(eventually(|| processes_on(venue.data()).is_empty()), "a child outlives its engine");
    // Its new parent may not have waited for it yet.
    assert!(eventually(|| !is_alive(seen[0])), "a child outlives its engine");
    venue.start_engine();
    assert_eq!(log(venue.data(), &["verify"]).0, Some(0));
}

#[test]
fn making_a_snapshot_may_be_killed_at_any_moment() {
    let venue = Venue::up(&options(&[]));
    let mut load = Load::new(&venue);
    let data = venue.data().to_str().expect("temporary folders have plain names").to_owned();
    let mut unfinished = 0;
    for round in 0..12 {
        load.pass(load.position + 20_000);
        let left = files(venue.data());
        let mut maker = Process::start(&["log", "snapshot", "--data", &data]);
        // Every third dies before it has read much, the others while they write.
        let is_writing = || {
            let is_made = |name: &String| name.ends_with(".new") && !left.contains(name);
            files(venue.data()).iter().any(is_made)
        };
        let mut looks = if round % 3 == 0 { round * 40 } else { u32::MAX };
        let mut writes = false;
        let wait = Wait::begin();
        while !writes && looks > 0 && is_alive(maker.pid()) {
            wait.go_on("nothing is written");
            looks -= 1;
            writes = is_writing();
        }
        maker.kill();
        unfinished += u32::from(is_writing());
        let (code, text, errors) = log(venue.data(), &["verify"]);
        assert_eq!(code, Some(0), "{text}{errors}");
    }
    println!("{unfinished} of 12 were killed while they wrote");
    assert!(unfinished > 0, "none was killed while it wrote");
    let made = object(venue.data(), &["snapshot"]);
    assert!(made.integer_at("transactions") > 0);
    let left: Vec<_> =
        files(venue.data()).into_iter().filter(|name| name.contains("new")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A venue whose log's beginning was removed beside its running engine.
fn pruned() -> Venue {
    let mut venue = Venue::separate(&options(&[]));
    venue.kill9(Part::Adapter);
    let mut load = Load::new(&venue);
    load.pass(2 * SEGMENT + MIB);
    let data = venue.data();
    let (code, _, errors) = log(data, &["prune", "--yes"]);
    assert!(code == Some(1) && errors.contains("no snapshot"), "{errors}");
    object(data, &["snapshot"]);
    load.pass(load.position + MIB);
    let (code, _, errors) = log(data, &["prune"]);
    assert!(code == Some(1) && errors.contains("--yes"), "{errors}");
    // Who only looks leaves nothing behind, so it may look at what it must not write.
    let lock = data.join("snapshots/lock");
    fs::remove_file(&lock).expect("who made the snapshot has left it");
    let listed = |more: &[&str]| {
        let listed = object(data, &[&["prune", "--dry-run"], more].concat());
        let readers = listed.at("keptFor").items().iter();
        let names: Vec<String> = readers.map(|lease| lease.text_at("name").to_owned()).collect();
        (listed.at("segments").items().len(), names)
    };
    // The adapter that was killed would go on, until its history is given up.
    assert_eq!(listed(&[]), (0, vec!["history-adapter".to_owned()]));
    assert!(!lock.exists());
    let lease = data.join("leases/history-adapter.lease");
    let held = fs::read(&lease).expect("it is held");
    let others = ["another", "zebra"].map(|name| data.join(format!("leases/{name}.lease")));
    others.iter().for_each(|path| fs::write(path, &held).expect("the folder is ours"));
    fs::write(&lease, "half").expect("it was held");
    let name = lease.display().to_string();
    let (code, _, errors) = log(data, &["prune", "--yes"]);
    assert!(code == Some(1) && errors.contains(&name), "{errors}");
    let (code, told, errors) = log(data, &["info"]);
    assert!(code == Some(0) && errors.contains(&name), "{errors}");
    assert!(told.contains("of another: ") && told.contains("of zebra: "), "{told}");
    fs::remove_file(lease).expect("it is there");
    others.iter().for_each(|path| fs::remove_file(path).expect("it is there"));
    // What it has stands there, and would be gone on with.
    assert_eq!(listed(&[]), (0, vec!["history-adapter".to_owned()]));
    assert_eq!(listed(&["--without-history"]), (2, Vec::new()));
    assert!(data.join("log/00000000.seg").exists());
    let path = snapshots(data).pop().expect("one was made");
    let good = fs::read(&path).expect("it can be read");
    let mut rotten = good.clone();
    rotten[300] ^= 1;
    fs::write(&path, rotten).expect("it can be written");
    let (code, _, errors) = log(data, &["prune", "--yes"]);
    assert!(code == Some(1) && errors.contains("block 0"), "{errors}");
    assert_eq!(log(data, &["verify"]).0, Some(3), "a snapshot that is not whole");
    fs::write(&path, good).expect("it can be written");

    let mut reader = LogReader::open(data, Follow::Durable).expect("there is a log");
    let removed = object(data, &["prune", "--yes", "--without-history"]);
    assert_eq!(removed.integer_at("beginAfter"), i128::from(2 * SEGMENT));
    assert!(!data.join("log/00000000.seg").exists() && !data.join("log/00000001.seg").exists());
    // The engine goes on, and a reader of what is gone is told.
    load.pass(load.position + MIB);
    reader.seek(Position(4096));
    let old = reader.next().err();
    assert!(
        matches!(old, Some(ReadError::TooOld { position: 4096, oldest }) if oldest == 2 * SEGMENT),
        "{old:?}"
    );
    drop(load);
    venue
}

/// The supervisor says once that the adapter is not started again, and goes on with the engine.
fn up_serves_a_pruned_log_without_rest(venue: &Venue) {
    let arguments = venue.arguments("up", true);
    let mut up = Process::start(&borrowed(&arguments));
    up.wait_for(0, "end of the adapter", |line| line.contains("was pruned"));
    up.wait_for(0, "ready line", |line| line.contains("ready without REST"));
    let engine = venue.pid("engine").expect("its pid file is there while it runs");
    assert!(is_alive(engine));
    up.signal(Signal::TERM);
    assert_eq!(up.wait_for_end().code(), Some(0));
    assert!(!is_alive(engine));
    up.wait_for(0, "word that it is not", |line| line.contains("is not started again"));
    let lines = up.lines();
    let told = lines.iter().filter(|line| line.contains("is not started again"));
    assert_eq!(told.count(), 1, "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("restart in")), "{lines:?}");
}

#[test]
fn a_pruned_log_goes_on_and_starts_and_an_adapter_whose_history_ends_before_it_says_so() {
    let mut venue = pruned();
    let before = object(venue.data(), &["replay"]);
    venue.kill9(Part::Engine);
    venue.start_engine();
    let begins = format!("its files begin at position {}", 2 * SEGMENT);
    for told in ["transactions by the snapshot at position", &begins] {
        venue.part(Part::Engine).wait_for(0, told, |line| line.contains(told));
    }
    let data = venue.data();
    let info = object(data, &["info"]);
    assert_eq!(info.integer_at("begin"), i128::from(2 * SEGMENT));
    assert_eq!(info.at("snapshots").items().len(), 1);
    let after = object(data, &["replay"]);
    assert!(after.integer_at("transactions") > before.integer_at("transactions"));
    // What the snapshot stands for was not replayed, and is told apart.
    let stands = after.at("snapshot");
    assert_eq!(stands.at("position"), &info.at("snapshots").items()[0]);
    let replayed = object(data, &["verify"]).integer_at("transactions");
    assert!(after.integer_at("transactions") <= replayed, "{after:?}");
    let told = format!(" behind the snapshot at position {}", stands.integer_at("position"));
    let (_, text, _) = log(data, &["replay"]);
    let count = after.integer_at("transactions").to_string();
    assert!(text.starts_with(&count) && text.contains(&told), "{text}");
    // The next snapshot is made from the one that stands for what is gone.
    let made = object(data, &["snapshot"]);
    let in_all = stands.integer_at("transactions") + after.integer_at("transactions");
    assert_eq!(made.integer_at("transactions"), in_all);
    assert_eq!(made.text_at("stateHash"), after.text_at("stateHash"));
    assert_eq!(log(data, &["verify"]).0, Some(0));
    // What was defined in the removed segments is still known by name.
    let end = after.integer_at("position").to_string();
    let folder = data.to_str().expect("temporary folders have plain names");
    for action in [["deposit", "A", "USDT", "1"], ["can-trade", "A", "true", "--json"]] {
        let mut admin = Process::start(&[&["admin", "--data", folder], &action[..]].concat());
        let status = admin.wait_for_end();
        assert!(status.success(), "{action:?}: {:?}", admin.lines());
    }
    for (about, number) in [(["--account", "A"], "1"), (["--symbol", "BTCUSDT"], "0")] {
        let (code, named, errors) = log(data, &["dump", about[0], about[1], "--to", &end]);
        assert!(code == Some(0) && !named.is_empty(), "{about:?}: {errors}");
        let (_, numbered, _) = log(data, &["dump", about[0], number, "--to", &end]);
        assert_eq!(named, numbered, "{about:?}");
    }
    let (code, _, errors) = log(data, &["dump", "--account", "nobody"]);
    assert!(code == Some(1) && errors.contains("no account \"nobody\""), "{errors}");

    let arguments = venue.arguments("adapter", true);
    let mut adapter = Process::start(&borrowed(&arguments));
    adapter.wait_for(0, "reason", |line| line.contains("was pruned"));
    assert_eq!(adapter.wait_for_end().code(), Some(3), "not to be started again");

    venue.kill9(Part::Engine);
    up_serves_a_pruned_log_without_rest(&venue);

    // Without a snapshot such a log is refused, and nothing of it is touched.
    for path in snapshots(venue.data()) {
        fs::remove_file(path).expect("it can be removed");
    }
    let arguments = venue.arguments("engine", false);
    let mut engine = Process::start(&borrowed(&arguments));
    engine.wait_for(0, "reason", |line| line.contains("no snapshot stands for what was before it"));
    assert!(!engine.wait_for_end().success());
    let (code, text, _) = log(venue.data(), &["verify"]);
    assert!(code == Some(3) && text.contains("no snapshot stands for"), "{text}");
}

/// A kill switch that reads years of log comes too late: names are those of the newest snapshot and of what
/// came since.
#[test]
fn a_name_is_looked_up_in_the_newest_snapshot_and_not_in_all_of_the_log() {
    let venue = Venue::separate(&options(&[]));
    let admin = |arguments: &[&str]| {
        let folder = venue.data().to_str().expect("temporary folders have plain names");
        let mut admin = Process::start(&[&["admin", "--data", folder], arguments].concat());
        (admin.wait_for_end().success(), admin.lines())
    };
    assert!(admin(&["account", "before"]).0);
    let mut load = Load::new(&venue);
    load.pass(2 * SEGMENT);
    drop(load);
    object(venue.data(), &["snapshot"]);
    assert!(admin(&["account", "behind"]).0);
    // Whoever begins at the log's beginning does not come to its end.
    let first = venue.data().join("log/00000000.seg");
    let file = OpenOptions::new().write(true).open(first).expect("it is there");
    file.write_all_at(&[0; 4096], SEGMENT / 2).expect("it can be written");
    for account in ["A", "before", "behind"] {
        let (is_done, lines) = admin(&["deposit", account, "USDT", "1"]);
        assert!(is_done, "{account}: {lines:?}");
        assert!(admin(&["kill", account]).0);
    }
    let newest = snapshots(venue.data()).pop().expect("one was made");
    let good = fs::read(&newest).expect("it can be read");
    let mut rotten = good.clone();
    rotten[300] ^= 1;
    fs::write(&newest, rotten).expect("it can be written");
    let (is_done, lines) = admin(&["unkill", "A"]);
    assert!(!is_done && lines.iter().any(|line| line.contains("00000000.seg")), "{lines:?}");
    fs::write(&newest, good).expect("it can be written");
    assert!(admin(&["unkill", "A"]).0);
    let (folder, aside) = (venue.data().join("snapshots"), venue.data().join("aside"));
    fs::rename(&folder, &aside).expect("the folder is ours");
    fs::write(&folder, "no folder").expect("it can be written");
    let (is_done, lines) = admin(&["kill", "A"]);
    let tells = |what: &str| lines.iter().any(|line| line.contains(what));
    assert!(!is_done && tells("snapshots: ") && tells("00000000.seg"), "{lines:?}");
}
