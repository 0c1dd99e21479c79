//! `touchline log` as an operator uses it: beside a running engine, on a copy, on a damaged copy.

use super::admin::admin;
use super::copies;
use super::doctor::doctor;
use super::json::Json;
use super::process::{eventually, send_signal};
use super::readers::Load;
use super::venue::{Part, UNLIMITED, Venue};
use crate::patience::{Running, finish, run};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Exit code of a log that is damaged or that differs.
const FOUND_WRONG: i32 = 3;

/// What the log grows by at full speed beside one run of a tool. Each tool reads what the log has when it
/// begins: without a bound a machine on which tools are slow would have ever more to read.
const GROWTH_PER_TOOL: u64 = 2 << 20;

/// Pause between two batches of commands when the log has grown by as much.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs `touchline log` on a data folder: exit code, output, errors.
pub(crate) fn log(data: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_touchline"));
    command.arg("log").args(arguments).arg("--data").arg(data);
    let Output { status, stdout, stderr } = run(&mut command).expect("the executable runs");
    let text = |bytes| String::from_utf8(bytes).expect("the tools print text");
    (status.code(), text(stdout), text(stderr))
}

pub(crate) fn object(data: &Path, arguments: &[&str]) -> Json {
    let (code, output, errors) = log(data, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {output}{errors}");
    Json::parse(output.trim())
}

pub(crate) fn lines(data: &Path, arguments: &[&str]) -> Vec<Json> {
    let (code, output, errors) = log(data, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {errors}");
    output.lines().map(Json::parse).collect()
}

/// What `log info` tells once it finds that the engine runs: on a machine that stands still, that is silent.
pub(crate) fn running(data: &Path) -> Json {
    let mut last = None;
    let runs = eventually(|| {
        let info = last.insert(object(data, &["info", "--json"]));
        info.text_at("engine") == "running"
    });
    last.filter(|_| runs).expect("the engine runs")
}

fn messages(transactions: &[Json]) -> Vec<&str> {
    transactions.iter().map(|line| line.at("command").text_at("message")).collect()
}

/// A venue on which A's order of 2 was met by B's of 1, and A's rest cancelled.
pub(crate) fn traded() -> Venue {
    let venue = Venue::up(&[]);
    let placed = venue.a().limit("BTCUSDT", "SELL", "0.02", "20000");
    venue.b().limit("BTCUSDT", "BUY", "0.01", "20000");
    venue.a().cancel(&format!("symbol=BTCUSDT&orderId={}", placed.integer_at("orderId")));
    venue
}

pub(crate) fn copy_of(venue: &Venue) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let copy = folder.path().join("copy");
    // Of a venue that runs, a segment may get another name meanwhile.
    copies::copy(&venue.data().join("log"), &copy.join("log")).expect("it can be copied");
    // Without which no start goes on with it.
    fs::copy(venue.data().join("master.key"), copy.join("master.key")).expect("it can be copied");
    (folder, copy)
}

#[test]
fn the_tools_read_beside_a_running_engine_and_after_it() {
    let mut venue = traded();
    let running = object(venue.data(), &["info", "--json"]);
    assert_eq!(running.at("runningDurable").integer(), running.integer_at("end"));
    assert_eq!(running.at("cleanEnd"), &Json::parse("false"), "it has not ended");
    assert!(running.integer_at("firstTimeNs") < running.integer_at("lastTimeNs"));
    let of_orders = |info: &Json| {
        ["NewOrder", "CancelOrder", "CancelOrderNamed"]
            .iter()
            .filter_map(|name| info.at("commands").find(name).map(Json::integer))
            .sum::<i128>()
    };
    assert_eq!(of_orders(&running), 3);
    let replayed = object(venue.data(), &["replay", "--json"]);
    assert_eq!(replayed.integer_at("transactions"), running.integer_at("transactions"));

    assert!(venue.stop_up(Signal::TERM).success());
    let ended = object(venue.data(), &["info", "--json"]);
    assert_eq!(ended.at("cleanEnd"), &Json::parse("true"));
    assert_eq!(ended.at("runningDurable"), &Json::parse("null"));
    assert_eq!(ended.integer_at("firstTimeNs"), running.integer_at("firstTimeNs"));
    assert_eq!(of_orders(&ended), 3);
    assert_eq!(ended.at("verdict").text_at("outcome"), "sound");
    let (code, text, _) = log(venue.data(), &["verify"]);
    assert_eq!(code, Some(0));
    assert!(text.trim_end().ends_with("sound"), "{text}");
}

#[test]
fn a_dump_shows_what_was_asked_for() {
    let mut venue = traded();
    assert!(venue.stop_up(Signal::TERM).success());
    let data = venue.data();
    let all = lines(data, &["dump"]);
    let info = object(data, &["info", "--json"]);
    assert_eq!(all.len() as i128, info.integer_at("transactions"));

    let of_order = lines(data, &["dump", "--symbol", "BTCUSDT", "--order", "1"]);
    assert_eq!(messages(&of_order).len(), 3, "placed, traded against, cancelled");
    let trade = &of_order[1].at("events").items()[1];
    assert_eq!(trade.text_at("message"), "Trade");
    assert_eq!(trade.text_at("price"), "20000.00000000");
    assert_eq!(trade.text_at("quantity"), "0.01000000");
    assert_eq!(trade.text_at("aggressorSide"), "Buy");

    let of_b = lines(data, &["dump", "--account", "B", "--symbol", "BTCUSDT"]);
    assert_eq!(messages(&of_b), ["NewOrder"], "only the trade is about both");
    let (from, to) = (all[5].integer_at("position"), all[8].integer_at("position"));
    let some = lines(data, &["dump", "--from", &from.to_string(), "--to", &to.to_string()]);
    assert_eq!(some, all[5..8]);
    // In the midst of the longest pause, so that no rounding of a time matters.
    let times: Vec<_> = all.iter().map(|line| line.integer_at("timeNs")).collect();
    let parted = (1..all.len()).max_by_key(|&at| times[at] - times[at - 1]).expect("there are two");
    let middle_us = i128::midpoint(times[parted - 1], times[parted]) / 1_000;
    let middle = format!("{}.{:06}", middle_us / 1_000_000, middle_us % 1_000_000);
    assert_eq!(lines(data, &["dump", "--until", &middle]), all[..parted]);
    assert_eq!(lines(data, &["dump", "--since", &middle]), all[parted..]);
    assert_eq!(lines(data, &["dump", "--until", "1"]), []);
    assert_eq!(lines(data, &["dump", "--since", "1"]), all);
}

/// Who asks for all that became of an account or a symbol is shown how it was made, too, and how its keys ended.
#[test]
fn a_dump_of_one_thing_has_its_definition() {
    let venue = traded();
    admin(&venue, &["account", "C"]);
    let key = admin(&venue, &["key", "C"]).integer_at("number").to_string();
    admin(&venue, &["revoke-key", &key]);
    let of = |arguments: &[&str]| lines(venue.data(), &[&["dump"], arguments].concat());
    let of_c = of(&["--account", "C"]);
    assert_eq!(messages(&of_c), ["CreateAccount", "CreateKey", "RevokeKey"]);
    assert_eq!(messages(&of(&["--account", "B"]))[0], "CreateAccount");
    let of_symbol = of(&["--symbol", "ETHBTC"]);
    assert_eq!(messages(&of_symbol), ["DefineSymbol"]);
    assert_eq!(of_symbol[0].at("command").text_at("name"), "ETHBTC");
}

/// Whoever goes on from the last `end` that was shown finds nothing until there is something, and no error.
#[test]
fn a_dump_from_the_end_of_the_log_is_empty() {
    let mut venue = traded();
    let end = |venue: &Venue| {
        let all = lines(venue.data(), &["dump"]);
        all.last().expect("the log is not empty").integer_at("end").to_string()
    };
    let from = |venue: &Venue, position: &str| lines(venue.data(), &["dump", "--from", position]);
    let beyond = |position: &str| {
        let position: u64 = position.parse().expect("a position");
        (position + 64).to_string()
    };
    let running = end(&venue);
    assert_eq!(from(&venue, &running), []);
    let (code, _, errors) = log(venue.data(), &["dump", "--from", &beyond(&running)]);
    assert!(code == Some(1) && errors.contains("there is no transaction"), "{errors}");
    venue.a().limit("BTCUSDT", "SELL", "0.03", "21000");
    assert_eq!(messages(&from(&venue, &running)), ["NewOrder"]);

    assert!(venue.stop_up(Signal::TERM).success());
    let ended = end(&venue);
    assert_eq!(from(&venue, &ended), []);
    // Behind the last transaction stands that the log ends there.
    let whole = object(venue.data(), &["info", "--json"]).integer_at("end").to_string();
    assert_ne!(ended, whole);
    assert_eq!(from(&venue, &whole), []);
    let (code, _, errors) = log(venue.data(), &["dump", "--from", &beyond(&whole)]);
    assert!(code == Some(1) && errors.contains("there is no transaction"), "{errors}");
}

#[test]
fn wrong_arguments_are_named() {
    let mut venue = traded();
    assert!(venue.stop_up(Signal::TERM).success());
    for (arguments, named) in [
        (["dump", "--account", "nobody"], "account \"nobody\""),
        (["dump", "--symbol", "NOTHING"], "symbol \"NOTHING\""),
        (["dump", "--from", "4161"], "position 4161"),
    ] {
        let (code, _, errors) = log(venue.data(), &arguments);
        assert_eq!(code, Some(1), "{arguments:?}");
        assert!(errors.contains(named), "{errors}");
    }
    let (code, _, errors) = log(&venue.data().join("nowhere"), &["verify"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("nowhere"), "{errors}");
}

/// Flips a bit in the middle of the frame between two positions of a log's first segment.
pub(crate) fn damage(data: &Path, (position, end): (i128, i128)) {
    let segment = data.join("log/00000000.seg");
    let file = fs::File::options().read(true).write(true).open(segment).expect("it is there");
    let at = u64::try_from(i128::midpoint(position, end) - 16).expect("in range");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it can be read");
    file.write_all_at(&[byte[0] ^ 4], at).expect("it can be written");
}

#[test]
fn verify_names_the_first_bad_frame() {
    let mut venue = traded();
    assert!(venue.stop_up(Signal::TERM).success());
    let frames: Vec<(i128, i128)> = lines(venue.data(), &["dump"])
        .iter()
        .map(|line| (line.integer_at("position"), line.integer_at("end")))
        .collect();
    for &(position, end) in &frames {
        let (_folder, copy) = copy_of(&venue);
        damage(&copy, (position, end));
        let (code, output, _) = log(&copy, &["verify", "--json"]);
        let verdict = Json::parse(output.trim());
        let verdict = verdict.at("verdict");
        assert_eq!(code, Some(FOUND_WRONG), "{verdict:?}");
        assert_eq!(verdict.text_at("outcome"), "damaged");
        assert_eq!(verdict.integer_at("position"), position);
        assert_eq!(verdict.integer_at("offset"), position, "one segment: both are the same");
        assert!(verdict.text_at("path").ends_with("00000000.seg"));
    }
    let (_folder, copy) = copy_of(&venue);
    let end = object(&copy, &["verify", "--json"]).integer_at("end");
    let file = fs::File::options().write(true).open(copy.join("log/00000000.seg"));
    let end = u64::try_from(end).expect("in range");
    file.expect("it is there").write_all_at(b"half a frame", end).expect("it can be written");
    let tail = object(&copy, &["verify", "--json"]);
    assert_eq!(tail.at("verdict").text_at("outcome"), "unfinishedTail");
    assert_eq!(tail.at("verdict").integer_at("bytes"), 12);
}

/// What every tool that reads a whole log says of `data`, which is damaged: where, and by its exit code.
fn assert_tools_tell_damage(data: &Path, place: &str) {
    let shown = data.to_str().expect("temporary folders have plain names");
    for arguments in [
        &["info"][..],
        &["info", "--json"],
        &["verify"],
        &["replay"],
        &["replay", "--json"],
        &["state"],
        &["dump"],
        &["dump", "--account", "A"],
        &["diff", shown],
    ] {
        let (code, output, errors) = log(data, arguments);
        assert_eq!(code, Some(FOUND_WRONG), "{arguments:?}: {output}{errors}");
        assert!(output.contains(place) || errors.contains(place), "{arguments:?}: {errors}");
        assert!(!output.contains("the same in both"), "{arguments:?}: {output}");
    }
}

#[test]
fn no_tool_takes_damage_for_the_end_of_a_log_without_an_engine() {
    let mut venue = traded();
    assert!(venue.stop_up(Signal::TERM).success());
    let all = lines(venue.data(), &["dump"]);
    let frame = |line: &Json| (line.integer_at("position"), line.integer_at("end"));
    let (bad, last) = (frame(&all[all.len() - 4]), frame(&all[all.len() - 1]));
    let (_folder, copy) = copy_of(&venue);
    damage(&copy, bad);
    assert_tools_tell_damage(&copy, &bad.0.to_string());
    // Its end was clean, and lies where nobody comes to.
    let (_, text, _) = log(&copy, &["info"]);
    assert!(text.contains("how it ended lies behind the damage"), "{text}");
    let (_, text, _) = log(&copy, &["info", "--json"]);
    assert_eq!(Json::parse(&text).at("cleanEnd"), &Json::parse("null"));
    // What was asked for lies before it.
    let until = bad.0.to_string();
    for arguments in [["replay", "--until", &until], ["dump", "--to", &until]] {
        let (code, _, errors) = log(&copy, &arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
    }

    // A write that was torn is no damage: nothing vouches for it.
    let (_folder, copy) = copy_of(&venue);
    let segment = fs::File::options().write(true).open(copy.join("log/00000000.seg"));
    let segment = segment.expect("it is there");
    let end = u64::try_from(last.1).expect("in range");
    segment.write_all_at(&[0; 4096], end).expect("it can be written");
    segment.write_all_at(b"half a frame", end).expect("it can be written");
    assert_eq!(lines(&copy, &["dump"]), all);
    let replayed = object(&copy, &["replay", "--json"]);
    assert_eq!(replayed.integer_at("transactions"), all.len() as i128);
    let info = object(&copy, &["info", "--json"]);
    assert_eq!(info.at("verdict").text_at("outcome"), "unfinishedTail");
    let (code, output, _) = log(&copy, &["diff", copy.to_str().expect("a plain name")]);
    assert_eq!((code, output.ends_with("the same in both\n")), (Some(0), true), "{output}");
}

#[test]
fn no_tool_takes_a_missing_segment_for_the_end_of_a_log() {
    let mut venue = Venue::up(
        &[&UNLIMITED[..], &["--set", "log.segment_mib=2", "--set", "log.window_mib=8"]].concat(),
    );
    Load::new(&venue).pass(5 << 20);
    assert!(venue.stop_up(Signal::TERM).success());
    let (_folder, copy) = copy_of(&venue);
    fs::remove_file(copy.join("log/00000001.seg")).expect("it is there");
    assert_tools_tell_damage(&copy, "00000001.seg");
}

/// Flips a bit of a segment's header.
fn damage_header(data: &Path, segment: &str, offset: u64) {
    let file = fs::File::options().read(true).write(true).open(data.join("log").join(segment));
    let file = file.expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("it can be read");
    file.write_all_at(&[byte[0] ^ 4], offset).expect("it can be written");
}

/// `log snapshot` tells damage, and makes none.
fn assert_no_snapshot(data: &Path, place: &str) {
    let (code, output, errors) = log(data, &["snapshot"]);
    assert_eq!(code, Some(FOUND_WRONG), "{output}{errors}");
    assert!(errors.contains(place), "{errors}");
    let made = fs::read_dir(data.join("snapshots")).into_iter().flatten().flatten();
    let made = made.filter(|entry| entry.path().extension().is_some_and(|what| what == "snap"));
    assert_eq!(made.count(), 0, "a snapshot of a damaged log");
}

#[test]
fn a_damaged_header_of_a_segment_is_told_by_every_tool() {
    let mut venue = Venue::up(
        &[&UNLIMITED[..], &["--set", "log.segment_mib=2", "--set", "log.window_mib=8"]].concat(),
    );
    Load::new(&venue).pass(5 << 20);
    assert!(venue.stop_up(Signal::TERM).success());
    let second = 2 << 20;
    let in_second = lines(venue.data(), &["dump", "--json"])
        .iter()
        .map(|line| line.integer_at("position"))
        .find(|&position| position > second);
    let from = in_second.expect("the log has grown").to_string();
    for offset in [0, 8, 16, 40] {
        let (_folder, copy) = copy_of(&venue);
        damage_header(&copy, "00000001.seg", offset);
        assert_tools_tell_damage(&copy, "00000001.seg");
        assert_no_snapshot(&copy, "00000001.seg");
        let (code, _, errors) = log(&copy, &["dump", "--from", &from]);
        assert_eq!(code, Some(FOUND_WRONG), "{errors}");
    }
    // The first one says which log it is.
    for offset in [0, 8, 20] {
        let (_folder, copy) = copy_of(&venue);
        damage_header(&copy, "00000000.seg", offset);
        assert_tools_tell_damage(&copy, "00000000.seg offset 0");
        assert_no_snapshot(&copy, "00000000.seg offset 0");
    }
    for length in [0, 63] {
        let (_folder, copy) = copy_of(&venue);
        let first = fs::File::options().write(true).open(copy.join("log/00000000.seg"));
        first.and_then(|file| file.set_len(length)).expect("it is there");
        let place = format!("00000000.seg offset 0: {length} bytes");
        assert_tools_tell_damage(&copy, &place);
        assert_no_snapshot(&copy, &place);
        let (code, text) = doctor(&copy);
        assert!(code == Some(FOUND_WRONG) && text.contains(&place), "{text}");
    }
}

#[test]
fn a_log_without_its_beginning_is_whole_only_with_a_snapshot() {
    let mut venue = Venue::up(
        &[&UNLIMITED[..], &["--set", "log.segment_mib=2", "--set", "log.window_mib=8"]].concat(),
    );
    let mut load = Load::new(&venue);
    load.pass(1 << 20);
    let old = object(venue.data(), &["snapshot", "--json"]).text_at("path").to_owned();
    load.pass(5 << 20);
    drop(load);
    assert!(venue.stop_up(Signal::TERM).success());
    let (_folder, copy) = copy_of(&venue);
    assert_eq!(object(&copy, &["info", "--json"]).at("whole"), &Json::Bool(true));
    object(&copy, &["snapshot", "--json"]);
    fs::remove_file(copy.join("log/00000000.seg")).expect("it is there");
    // Pruned: the snapshot stands for what was removed.
    for arguments in [&["info"][..], &["verify"], &["dump"], &["replay"]] {
        let (code, output, errors) = log(&copy, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
        assert!(!output.contains("NOT WHOLE"), "{output}");
    }
    // What no adapter can serve, until it has the history that was made of it.
    let (code, text) = doctor(&copy);
    assert!(code == Some(FOUND_WRONG) && text.contains("there is no history in"), "{text}");
    copies::copy(&venue.data().join("history"), &copy.join("history")).expect("it can be copied");
    assert_eq!(doctor(&copy).0, Some(0));

    let begin = object(&copy, &["info", "--json"]).integer_at("begin").to_string();
    let first = lines(&copy, &["dump"])[0].integer_at("position").to_string();
    let snapshots = copy.join("snapshots");
    fs::remove_dir_all(&snapshots).expect("it is there");
    assert_beginning_is_missed(&copy, (&begin, &first));
    // Nor does one stand for it that is older than what is there.
    fs::create_dir(&snapshots).expect("the folder is ours");
    let name = Path::new(&old).file_name().expect("it is a file");
    fs::copy(&old, snapshots.join(name)).expect("it can be copied");
    assert_beginning_is_missed(&copy, (&begin, &first));
}

/// What every tool says of a log that begins at `begin`, with a transaction at `first`, and that no engine starts on.
fn assert_beginning_is_missed(data: &Path, (begin, first): (&str, &str)) {
    let told = format!("begins at position {begin}, and no snapshot stands for what was before it");
    for arguments in [["info"], ["verify"], ["dump"], ["replay"]] {
        let (code, output, errors) = log(data, &arguments);
        assert_eq!(code, Some(FOUND_WRONG), "{arguments:?}: {output}{errors}");
        assert!(output.contains(&told) || errors.contains(&told), "{arguments:?}: {errors}");
    }
    let (code, text, _) = log(data, &["info", "--json"]);
    assert_eq!((code, Json::parse(&text).at("whole")), (Some(FOUND_WRONG), &Json::Bool(false)));
    // What was asked for is there.
    assert!(!lines(data, &["dump", "--from", first]).is_empty());
    let (code, text) = doctor(data);
    assert!(code == Some(FOUND_WRONG) && text.contains(&told), "{text}");
}

#[test]
fn two_logs_part_where_they_part() {
    let mut venue = traded();
    let (_folder, copy) = copy_of(&venue);
    let same = object(&copy, &["info", "--json"]).integer_at("transactions");
    venue.a().limit("BTCUSDT", "SELL", "0.03", "21000");
    assert!(venue.stop_up(Signal::TERM).success());
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let (code, output, _) = log(&copy, &["diff", data, "--json"]);
    assert_eq!(code, Some(FOUND_WRONG));
    let found = Json::parse(output.trim());
    assert_eq!(found.integer_at("same"), same);
    assert_eq!(found.at("left"), &Json::parse("null"));
    assert_eq!(found.at("right").at("command").text_at("quantity"), "0.03000000");
    let (code, output, _) = log(venue.data(), &["diff", data]);
    assert_eq!((code, output.ends_with("the same in both\n")), (Some(0), true), "{output}");
}

/// Runs every tool on `data`; each does what it is there for, whatever happens to the log meanwhile.
/// Counts in `begun` each that begins.
fn assert_tools_work(data: &Path, begun: &AtomicU64) {
    let shown = data.to_str().expect("temporary folders have plain names");
    for arguments in [
        &["info"][..],
        &["info", "--json"],
        &["verify"],
        &["dump"],
        &["dump", "--account", "A", "--symbol", "BTCUSDT"],
        &["replay"],
        &["state"],
    ] {
        begun.fetch_add(1, Ordering::Relaxed);
        let (code, output, errors) = log(data, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
        assert!(!output.is_empty() && !output.contains("DAMAGED"), "{arguments:?}: {output}");
    }
    begun.fetch_add(1, Ordering::Relaxed);
    // The other side may have grown meanwhile, but nothing in it is different.
    let (code, output, errors) = log(data, &["diff", shown, "--json"]);
    assert!(matches!(code, Some(0 | FOUND_WRONG)), "diff: {errors}");
    let found = Json::parse(output.trim());
    let null = Json::parse("null");
    assert!(found.at("left") == &null || found.at("right") == &null, "{output}");
}

/// Every file below `folder`, with its content and the time of its last change.
fn files(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        let kind = entry.file_type().expect("it has a type");
        if kind.is_dir() {
            found.extend(files(&path));
        } else if kind.is_file() {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let content = fs::read(&path).expect("it can be read");
            found.insert(path, (changed.expect("files have times"), content));
        }
    }
    found
}

#[test]
fn every_tool_is_safe_beside_a_busy_engine() {
    let venue = Venue::up(&UNLIMITED);
    let mut load = Load::new(&venue);
    // Several segments, and a lap of the window; then on for as long as the tools need.
    load.pass(10 << 20);
    let lap = load.position;
    let begun = AtomicU64::new(0);
    thread::scope(|scope| {
        let tools = scope.spawn(|| assert_tools_work(venue.data(), &begun));
        while !tools.is_finished() {
            load.pass(load.position);
            if load.position > lap + GROWTH_PER_TOOL * begun.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
            }
        }
        tools.join().expect("the tools work");
    });
    let end = load.position;
    venue.wait_until_engine_answers();
    let info = object(venue.data(), &["info", "--json"]);
    assert!(info.integer_at("end") >= i128::from(end), "{info:?}");
    assert_eq!(info.at("verdict").text_at("outcome"), "sound");
}

#[test]
fn no_tool_changes_a_byte_of_what_a_killed_engine_left() {
    let mut venue = Venue::separate(&UNLIMITED);
    let mut load = Load::new(&venue);
    load.pass(1 << 20);
    // The tools are to find orders on disk, and who waits for no more than an answer may be ahead of it.
    let end = i128::from(load.position);
    let durable = || object(venue.data(), &["info", "--json"]).integer_at("runningDurable");
    assert!(eventually(|| durable() >= end), "not on disk");
    venue.kill9(Part::Engine);
    venue.kill9(Part::Adapter);
    let before = files(venue.data());
    assert_tools_work(venue.data(), &AtomicU64::new(0));
    assert!(before == files(venue.data()), "a file has changed");
    venue.start_engine();
    venue.start_adapter();
    venue.wait_until_engine_answers();
    let info = object(venue.data(), &["info", "--json"]);
    assert!(info.integer_at("end") > i128::from(load.position), "what was appended is there");
}

#[test]
fn an_older_copy_is_not_read_as_one_log_with_the_window_of_an_engine_that_was_killed() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let (_folder, copy) = copy_of(&venue);
    venue.start_engine();
    venue.start_adapter();
    venue.wait_until_engine_answers();
    venue.a().limit("BTCUSDT", "SELL", "0.02", "20000");
    venue.kill9(Part::Engine);
    venue.kill9(Part::Adapter);
    let segments = venue.data().join("log");
    fs::remove_dir_all(&segments).expect("it is ours");
    fs::rename(copy.join("log"), &segments).expect("both lie in the same file system");
    let before = files(venue.data());
    let data = venue.data().to_str().expect("a plain name").to_owned();
    for arguments in
        [&["info"][..], &["verify"], &["dump"], &["replay"], &["diff", &data], &["snapshot"]]
    {
        let (code, output, errors) = log(venue.data(), arguments);
        let told = format!("{output}{errors}");
        assert_eq!(code, Some(FOUND_WRONG), "{arguments:?}: {told}");
        assert!(told.contains("move the window's folder away"), "{arguments:?}: {told}");
    }
    let mut after = files(venue.data());
    // The one file that a tool makes where it makes no snapshot.
    after.remove(&venue.data().join("snapshots/lock"));
    assert!(before == after, "{:?}", after.keys());
}

#[test]
fn an_engine_is_said_to_run_only_while_it_does() {
    let mut venue = Venue::separate(&[]);
    let engine = |venue: &Venue| object(venue.data(), &["info", "--json"]);
    let running = running(venue.data());
    let null = Json::parse("null");
    let pid = venue.pid("engine").expect("it runs");

    send_signal(pid, Signal::STOP);
    assert!(eventually(|| engine(&venue).text_at("engine") == "silent"));
    let (_, text, _) = log(venue.data(), &["info"]);
    assert!(text.contains("no sign of life") && text.contains(&pid.to_string()), "{text}");
    assert_eq!(engine(&venue).at("runningDurable"), &null);
    send_signal(pid, Signal::CONT);
    assert!(eventually(|| engine(&venue).text_at("engine") == "running"));

    venue.kill9(Part::Engine);
    let killed = engine(&venue);
    assert_eq!(killed.text_at("engine"), "notRunning");
    assert_eq!(killed.at("runningDurable"), &null);
    assert!(killed.integer_at("windowAppended") >= running.integer_at("runningDurable"));
    let (_, text, _) = log(venue.data(), &["info"]);
    assert!(text.contains("not running; the live window holds what was appended"), "{text}");
}

#[test]
fn an_engine_whose_window_is_not_to_be_seen_is_known_by_its_lock() {
    let mut venue = Venue::separate(&["--set", "log.window=data"]);
    let (live, aside) = (venue.data().join("live"), venue.data().join("aside"));
    fs::rename(&live, &aside).expect("the folder is ours");
    let info = object(venue.data(), &["info", "--json"]);
    assert_eq!(info.text_at("engine"), "unseen");
    assert_eq!(info.at("cleanEnd"), &Json::Bool(false), "it has not ended");
    let (code, text, _) = log(venue.data(), &["info"]);
    assert!(code == Some(0) && text.contains("one holds the lock"), "{text}");
    assert!(!text.contains("not running"), "{text}");
    // What lies behind the end may be what it writes just now, and nobody says that it is dropped.
    let segment = fs::File::options().write(true).open(venue.data().join("log/00000000.seg"));
    let segment = segment.expect("it is there");
    let last = segment.metadata().expect("it is ours").len() - 4096;
    segment.write_all_at(b"half a frame", last).expect("it can be written");
    let verified = object(venue.data(), &["verify", "--json"]);
    assert_eq!(verified.at("verdict").text_at("outcome"), "sound");
    fs::rename(&aside, &live).expect("the folder is ours");
    running(venue.data());
    venue.kill9(Part::Engine);
    fs::rename(&live, &aside).expect("the folder is ours");
    let info = object(venue.data(), &["info", "--json"]);
    assert_eq!(info.text_at("engine"), "notRunning");
    assert_eq!(info.at("cleanEnd"), &Json::Bool(false));
    let verified = object(venue.data(), &["verify", "--json"]);
    assert_eq!(verified.at("verdict").text_at("outcome"), "unfinishedTail");
}

#[test]
fn a_report_that_cannot_be_written_is_no_success_unless_its_reader_went_away() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let data = venue.data().to_str().expect("a plain name");
    let reports: [&[&str]; 5] = [
        &["log", "info", "--json"],
        &["log", "verify"],
        &["log", "replay", "--json"],
        &["log", "diff", data],
        &["doctor", "--json"],
    ];
    for report in reports {
        let command = |stdout: Stdio| {
            let running = Command::new(env!("CARGO_BIN_EXE_touchline"))
                .args(report)
                .args(["--data", data])
                .stdout(stdout)
                .stderr(Stdio::piped())
                .spawn();
            running.expect("the built executable starts")
        };
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let output = finish(Running(command(full.into())), "a report for a full disk");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{report:?}: {errors}");
        assert!(errors.contains("cannot be printed"), "{report:?}: {errors}");
        let mut unread = command(Stdio::piped());
        drop(unread.stdout.take());
        let output = finish(Running(unread), "a report that nobody reads");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{report:?}: {errors}");
    }
}

/// Each file of a venue is in the tables of `protocol/FORMATS.md`.
#[test]
fn every_file_of_a_data_folder_is_described() {
    let venue = Venue::up(&["--set", "adapter.instance=zulu", "--set", "log.window=data"]);
    let key = venue.key_a().api;
    admin(&venue, &["key-addresses", &key, "127.0.0.1"]);
    log(venue.data(), &["snapshot"]);
    let formats = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/protocol/FORMATS.md"));
    let formats = formats.expect("it is part of the project");
    let mut folders = vec![venue.data().to_owned()];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it is ours").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = entry.path();
            let path = path.strip_prefix(venue.data()).expect("it is in there");
            let name = path.to_str().expect("a plain name").replace("zulu", "INSTANCE");
            let name = match name.split_once('/') {
                Some(("log", _)) => "log/NNNNNNNN.seg".to_owned(),
                Some(("snapshots", file)) if file.ends_with(".snap") => {
                    "snapshots/P.snap".to_owned()
                }
                Some(("leases", _)) => "leases/NAME.lease".to_owned(),
                _ => name,
            };
            assert!(formats.contains(&format!("`{name}`")), "{name} is not described");
            looked_at += 1;
        }
    }
    assert!(looked_at >= 15, "{looked_at} files");
}
