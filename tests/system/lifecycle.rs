//! Starting, stopping, losing a part, provisioning: what an operator does with the executable.

use super::http::Key;
use super::json::Json;
use super::process::{Process, eventually, processes_on, send_signal};
use super::trader::levels;
use super::units::WHOLE;
use super::venue::{Part, Venue, borrowed};
use crate::patience::{Running, finish, run};
use crate::skipped::skipped;
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::decode::Command as Logged;
use touchline_protocol::units::KeyId;

const SELL: &str = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";

#[test]
fn a_second_start_continues_where_the_first_stopped() {
    let mut venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let first = a.limit("BTCUSDT", "SELL", "1", "30000").integer_at("orderId");
    b.limit("BTCUSDT", "BUY", "0.25", "30000");
    let bid = b.limit("BTCUSDT", "BUY", "0.25", "29000").integer_at("orderId");
    let before = (a.balances(), b.balances(), a.order("BTCUSDT", first), b.order("BTCUSDT", bid));
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    let keys = (venue.key_a(), venue.key_b());

    for signal in [Signal::TERM, Signal::INT] {
        assert_eq!(venue.stop_up(signal).code(), Some(0), "a clean end after {signal:?}");
        for name in ["up", "engine", "adapter"] {
            let file = venue.data().join(format!("{name}.pid"));
            assert!(!file.exists(), "{} is left after a clean end", file.display());
        }
        venue.start_up();
        assert_eq!(
            (venue.key_a().api, venue.key_a().secret),
            (keys.0.api.clone(), keys.0.secret.clone())
        );
        assert_eq!(
            (venue.key_b().api, venue.key_b().secret),
            (keys.1.api.clone(), keys.1.secret.clone())
        );
        let (mut a, mut b) = (venue.a(), venue.b());
        let after =
            (a.balances(), b.balances(), a.order("BTCUSDT", first), b.order("BTCUSDT", bid));
        assert_eq!(after, before);
        let again = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
        assert_eq!(again, depth);
    }
    let (mut a, mut b) = (venue.a(), venue.b());
    let next = b.limit("BTCUSDT", "BUY", "0.75", "30000");
    assert_eq!(next.integer_at("orderId"), bid + 1, "numbers go on");
    assert_eq!(next.text_at("status"), "FILLED");
    assert_eq!(a.order("BTCUSDT", first).text_at("status"), "FILLED");
}

#[test]
fn paths_need_not_be_text_and_may_begin_like_options() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let [data, config] = [&b"-data \xff"[..], b"-venue \xfe.toml"].map(OsStr::from_bytes);
    fs::copy("venue.toml", folder.path().join(config)).expect("the settings can be copied");
    let options = [("--data=", data), ("--config=", config)].map(|(name, value)| {
        let mut option = OsString::from(name);
        option.push(value);
        option
    });
    let mut arguments: Vec<_> = options.iter().map(OsString::as_os_str).collect();
    let small =
        ["--http", "127.0.0.1:0", "--set", "log.segment_mib=4", "--set", "log.window_mib=8"];
    arguments.extend(small.map(OsStr::new));
    let mut up = Process::start_in(folder.path(), &arguments);
    up.wait_for(0, "ready line", |line| line.trim() == "ready");
    up.signal(Signal::TERM);
    assert!(up.wait_for_end().success());
    let found = fs::read_dir(folder.path()).expect("the folder is there");
    let mut names: Vec<_> = found.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, [data, config], "no other folder was made");
    assert!(folder.path().join(data).join("log").is_dir());
}

#[test]
fn engine_and_adapter_alone_end_cleanly_by_either_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut venue = Venue::separate(&[]);
        venue.a().place(SELL);
        for part in [Part::Adapter, Part::Engine] {
            let process = venue.part(part);
            process.signal(signal);
            assert_eq!(process.wait_for_end().code(), Some(0), "{part:?} after {signal:?}");
        }
        assert_eq!(processes_on(venue.data()), Vec::<u32>::new());
    }
}

/// How many starts are in the log, what the last one tells of the time before it, and when it was, ns since the epoch.
fn last_start(venue: &Venue) -> (usize, u32, u64) {
    let mut reader = LogReader::open(venue.data(), Follow::Durable).expect("the venue has a log");
    let (mut starts, mut off_ms, mut time_ns) = (0, 0, 0);
    while let Some(transaction) = reader.next().expect("the log is sound") {
        if let Logged::EngineStarted(started) = transaction.command().expect("a command") {
            (starts, off_ms, time_ns) = (starts + 1, started.off_ms, transaction.time_ns());
        }
    }
    (starts, off_ms, time_ns)
}

/// The engine has nothing to do for two seconds by its own clock; gives when it was alive then.
fn idle(venue: &Venue) -> u64 {
    let reader = LogReader::open(venue.data(), Follow::Durable).expect("the venue has a log");
    let alive_ns = || reader.signs_of_life().expect("it runs").heartbeat_ns;
    let end_ns = alive_ns() + 2_000_000_000;
    assert!(eventually(|| alive_ns() >= end_ns), "the engine gives no sign of life");
    alive_ns()
}

/// Candles of that time are not there. The venue may have been idle before, which is none of it.
#[test]
fn a_start_tells_for_how_long_no_engine_ran() {
    // By the engine's own clock, however long all of it takes.
    let is_plausible = |venue: &Venue, starts: usize, alive_ns: u64| {
        let (found, off_ms, time_ns) = last_start(venue);
        assert_eq!(found, starts);
        let off_ns = u64::from(off_ms) * 1_000_000;
        assert!((1..=time_ns - alive_ns).contains(&off_ns), "{off_ns} of {}", time_ns - alive_ns);
    };
    let mut venue = Venue::up(&[]);
    venue.a().place(SELL);
    let (starts, off_ms, _) = last_start(&venue);
    assert_eq!((starts, off_ms), (1, 0), "nothing was before");
    let alive_ns = idle(&venue);
    assert!(venue.stop_up(Signal::INT).success());
    venue.start_up();
    is_plausible(&venue, 2, alive_ns);

    let mut venue = Venue::separate(&[]);
    venue.a().place(SELL);
    for signal in [Signal::TERM, Signal::KILL] {
        let (starts, ..) = last_start(&venue);
        let alive_ns = idle(&venue);
        venue.part(Part::Engine).signal(signal);
        venue.part(Part::Engine).wait_for_end();
        venue.start_engine();
        is_plausible(&venue, starts + 1, alive_ns);
    }
}

#[test]
fn without_its_engine_the_adapter_serves_what_it_can_and_heals() {
    let mut venue = Venue::separate(&["--set", "adapter.deadline_ms=3000"]);
    let mut a = venue.a();
    let id = a.limit("BTCUSDT", "SELL", "1", "50000").integer_at("orderId");
    let balances = a.balances();
    venue.kill9(Part::Engine);

    for _ in 0..3 {
        let refused = a.call("POST", "/api/v3/order", SELL);
        assert!(refused.is_unknown(), "an order without an engine: {refused:?}");
        let (status, code, _) = refused.error();
        assert!(
            [(500, -1000), (500, -1001), (500, -1006), (504, -1007), (503, -1008), (503, -1016)]
                .contains(&(status, code)),
            "{refused:?}"
        );
        let cancel = a.call("DELETE", "/api/v3/order", &format!("symbol=BTCUSDT&orderId={id}"));
        assert!(cancel.is_unknown(), "a cancel without an engine: {cancel:?}");
    }
    let mut http = venue.http();
    assert_eq!(http.get("/api/v3/ping").body, "{}");
    assert!(http.get("/api/v3/time").ok().integer_at("serverTime") > 0);
    let info = http.get("/api/v3/exchangeInfo").ok();
    assert_eq!(info.at("symbols").items().len(), 3);
    let depth = http.get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert_eq!(levels(&depth, "asks"), [(50_000 * WHOLE, WHOLE)]);
    assert_eq!(a.balances(), balances);
    assert_eq!(a.order("BTCUSDT", id).text_at("status"), "NEW");
    let wrong = a.call("POST", "/api/v3/order", "symbol=BTCUSDT");
    assert_eq!(wrong.status, 400, "what needs no engine to be refused is refused: {wrong:?}");

    venue.start_engine();
    venue.wait_until_engine_answers();
    assert_eq!(a.balances(), balances, "no order that was answered with 5XX came through later");
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert_eq!(levels(&depth, "asks"), [(50_000 * WHOLE, WHOLE)]);
    assert_eq!(a.limit("BTCUSDT", "SELL", "1", "50000").integer_at("orderId"), id + 1);
}

#[test]
fn the_supervisor_says_so_and_restarts_what_died() {
    let mut venue = Venue::up(&[]);
    let id = venue.a().limit("BTCUSDT", "SELL", "1", "50000").integer_at("orderId");
    for (part, name) in [(Part::Engine, "engine"), (Part::Adapter, "adapter")] {
        let before = venue.pid(name).expect("its pid file is there while it runs");
        let printed = venue.supervisor().lines().len();
        venue.kill9(part);
        let of_death = format!("touchline: the {name} died (");
        venue.supervisor().wait_for(printed, "line about the death", |line| {
            line.starts_with(&of_death) && line.contains("restart in")
        });
        assert!(
            eventually(|| venue.pid(name).is_some_and(|pid| pid != before)),
            "{name} is not restarted; printed:\n{}",
            venue.supervisor().lines().join("\n")
        );
        let address = venue.address();
        let reachable = eventually(|| {
            venue.a().send("GET", "/api/v3/account", "").is_ok_and(|reply| reply.status == 200)
        });
        assert!(reachable, "nothing serves {address} any more");
        venue.wait_until_engine_answers();
        venue.read_environment();
        assert_eq!(venue.environment("BASE_URL"), format!("http://{address}"));
        assert_eq!(venue.a().order("BTCUSDT", id).text_at("status"), "NEW");
    }
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
}

/// `touchline up` on a new folder, with little disk.
fn first_up(folder: &Path) -> Process {
    first_up_with(folder, &[])
}

/// The same, with more on the command line.
fn first_up_with(folder: &Path, more: &[&str]) -> Process {
    let own = ["up", "--data", "data", "--http", "127.0.0.1:0"];
    let small = ["--set", "log.segment_mib=4", "--set", "log.window_mib=8"];
    Process::start_in(folder, &[own.as_slice(), small.as_slice(), more].concat())
}

#[test]
fn an_engine_that_dies_before_the_adapter_is_ready_is_restarted() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut up = first_up(folder.path());
    let ready = up.wait_for(0, "engine that is ready", |line| line.contains("engine ready"));
    let pid = ready.rsplit_once("pid=").and_then(|(_, pid)| pid.parse().ok());
    send_signal(pid.expect("the line names the process"), Signal::KILL);
    up.wait_for(0, "engine that is back", |line| line.contains("the engine is back"));
    up.wait_for(0, "ready line", |line| line.trim() == "ready");
    up.signal(Signal::INT);
    assert_eq!(up.wait_for_end().code(), Some(0), "{:?}", up.lines());
}

#[test]
fn an_end_that_is_asked_for_in_the_midst_of_a_start_is_a_clean_one() {
    for begun in ["live window", "engine ready"] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut up = first_up(folder.path());
        up.wait_for(0, "begun start", |line| line.contains(begun));
        up.signal(Signal::INT);
        assert_eq!(up.wait_for_end().code(), Some(0), "behind {begun:?}: {:?}", up.lines());
        let mut again = first_up(folder.path());
        again.wait_for(0, "ready line", |line| line.trim() == "ready");
        again.signal(Signal::INT);
        assert_eq!(again.wait_for_end().code(), Some(0), "{:?}", again.lines());
    }
}

#[test]
fn a_second_supervisor_or_engine_on_the_same_folder_is_refused() {
    let venue = Venue::up(&[]);
    for command in ["up", "engine"] {
        let arguments = venue.arguments(command, command == "up");
        let mut second = Process::start(&borrowed(&arguments));
        let status = second.wait_for_end();
        assert!(!status.success(), "a second {command} runs");
        assert!(!second.lines().is_empty(), "{command} is refused without a word");
    }
    venue.a().place(SELL);
}

/// Runs `touchline admin` to its end; success and what it printed.
fn admin(data: &Path, arguments: &[&str]) -> (bool, String) {
    let data = data.to_str().expect("temporary folders have plain names");
    let mut process = Process::start(&[&["admin", "--data", data], arguments].concat());
    let status = process.wait_for_end();
    (status.success(), process.lines().join("\n"))
}

/// The words of a text that have only letters and digits.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

/// The two 64-character words in the output of `admin key`.
fn key_in(text: &str) -> Key {
    let found: Vec<_> = words(text).filter(|word| word.len() == 64).collect();
    match found[..] {
        [api, secret] => Key { api: api.to_owned(), secret: secret.to_owned() },
        _ => panic!("no key and secret in {text:?}"),
    }
}

fn number_in(text: &str) -> u32 {
    let numbers: Vec<u32> = words(text).filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [number] => number,
        _ => panic!("not one number in {text:?}"),
    }
}

#[test]
fn a_third_account_is_provisioned_and_trades() {
    let mut venue = Venue::up(&[]);
    let run = |arguments: &[&str]| -> String {
        let (success, output) = admin(venue.data(), arguments);
        assert!(success, "admin {arguments:?} failed: {output}");
        output
    };
    let account =
        number_in(&run(&["account", "carol", "--maker-rate", "0.0005", "--taker-rate", "0.002"]));
    assert!(account > 2, "the demo accounts have 1 and 2");
    run(&["deposit", "carol", "USDT", "50000.5"]);
    let key = key_in(&run(&["key", "carol"]));
    let json = run(&["--json", "key", "carol"]);
    let second_key = key_in(&json);
    serde_json::from_str::<Json>(&json).expect("--json prints JSON");
    assert_ne!(second_key.api, key.api);

    let mut carol = venue.trader(key.clone());
    let reply = carol.account();
    assert_eq!(reply.integer_at("makerCommission"), 5);
    assert_eq!(reply.integer_at("takerCommission"), 20);
    assert_eq!(carol.balances()["USDT"], (50_000 * WHOLE + WHOLE / 2, 0));
    assert_eq!(carol.balances()["BTC"], (0, 0));
    venue.a().limit("BTCUSDT", "SELL", "1", "40000");
    let bought = carol.limit("BTCUSDT", "BUY", "1", "40000");
    let fill = &bought.at("fills").items()[0];
    assert_eq!(fill.text_at("commission"), "0.00200000", "her own taker rate");
    assert_eq!(carol.balances()["BTC"], (WHOLE - 2 * WHOLE / 1000, 0));
    assert_eq!(venue.trader(second_key).balances(), carol.balances());

    let before = carol.balances();
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    venue.start_up();
    assert_eq!(venue.trader(key).balances(), before, "what was provisioned is in the log");
}

#[test]
fn admin_refuses_what_makes_no_sense_and_changes_nothing() {
    let venue = Venue::up(&[]);
    let before = (venue.a().balances(), venue.b().balances());
    let bad: [&[&str]; 13] = [
        &["deposit", "A", "NOSUCH", "1"],
        &["deposit", "A", "BTC", "0"],
        &["deposit", "A", "BTC", "-1"],
        &["deposit", "A", "BTC", "1e5"],
        &["deposit", "A", "BTC", "1.123456789"],
        &["deposit", "A", "BTC", "999999999999999999999"],
        &["deposit", "99", "BTC", "1"],
        &["deposit", "nobody", "BTC", "1"],
        &["account", ""],
        &["account", "A"],
        &["account", "dora", "--maker-rate", "1.5"],
        &["key", "99"],
        &["launder"],
    ];
    for arguments in bad {
        let (success, output) = admin(venue.data(), arguments);
        assert!(!success, "admin {arguments:?} succeeded: {output}");
        assert!(!output.is_empty(), "admin {arguments:?} fails without a word");
    }
    let (success, output) = admin(&venue.data().join("no-venue-here"), &["key", "1"]);
    assert!(!success && !output.is_empty(), "{output}");
    let empty = tempfile::tempdir().expect("a temporary folder can be made");
    for arguments in [["key", "1"], ["token-key", "--revoke"]] {
        let (success, output) = admin(empty.path(), &arguments);
        assert!(!success && output.contains("no venue"), "{arguments:?}: {output}");
    }
    assert_eq!(fs::read_dir(empty.path()).expect("the folder is there").count(), 0, "left behind");
    assert_eq!((venue.a().balances(), venue.b().balances()), before);
}

#[test]
fn admin_says_so_when_nobody_can_read_what_came_of_it() {
    let venue = Venue::up(&[]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let admin = Command::new(env!("CARGO_BIN_EXE_touchline"))
        .args(["admin", "--data", venue.data().to_str().expect("a plain name"), "key", "A"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the built executable starts");
    let output = finish(Running(admin), "touchline admin");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("it was done") && !errors.contains("panicked"), "{errors}");
}

#[test]
fn the_live_window_can_lie_in_the_data_folder() {
    let mut venue = Venue::separate(&["--set", "log.window=data"]);
    let live = venue.data().join("live");
    assert!(live.join("window").exists(), "no window in {}", live.display());
    let said = venue.part(Part::Engine).lines();
    assert!(
        said.iter().any(|line| line.contains("window") && line.contains("live")),
        "nothing is said about the window: {said:?}"
    );
    let mut a = venue.a();
    let id = a.limit("BTCUSDT", "SELL", "1", "50000").integer_at("orderId");
    venue.kill9(Part::Engine);
    venue.start_engine();
    venue.wait_until_engine_answers();
    assert_eq!(a.order("BTCUSDT", id).text_at("status"), "NEW");
}

#[test]
fn help_names_the_commands_and_bad_flags_are_refused() {
    let mut help = Process::start(&["--help"]);
    assert_eq!(help.wait_for_end().code(), Some(0));
    let text = help.lines().join("\n");
    for word in ["up", "engine", "adapter", "admin", "log", "doctor"] {
        assert!(words(&text).any(|found| found == word), "--help does not name {word}:\n{text}");
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let data = data.to_str().expect("temporary folders have plain names");
    let bad: [&[&str]; 10] = [
        &["--no-such-flag"],
        &["no-such-command"],
        &["up", "--data", data, "--http", "nowhere"],
        &["up", "--data", data, "--http", "127.0.0.1:99999"],
        &["up", "--data", data, "--http", "127.0.0.1:0", "--set", "log.no_such_key=1"],
        &["up", "--data", data, "--http", "127.0.0.1:0", "--set", "no-equals-sign"],
        &["up", "--data", data, "--http", "127.0.0.1:0", "--set", "log.segment_mib=many"],
        &["up", "--data", data, "--http", "127.0.0.1:0", "--config", "/no/such/file"],
        &["up", "--data", data, "--http", "127.0.0.1:0", "--header-prefix", "no blanks: ever"],
        &["up", "--data", "/proc/no-folder-here", "--http", "127.0.0.1:0"],
    ];
    for arguments in bad {
        let mut process = Process::start(arguments);
        let status = process.wait_for_end();
        assert!(status.code().is_some_and(|code| code != 0), "{arguments:?}: {status}");
        assert!(!process.lines().is_empty(), "{arguments:?} is refused without a word");
        assert!(processes_on(folder.path()).is_empty(), "{arguments:?} leaves processes");
    }
}

#[test]
fn the_doctor_looks_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let data = data.to_str().expect("temporary folders have plain names");
    let mut doctor = Process::start(&["doctor", "--json", "--data", data]);
    assert_eq!(doctor.wait_for_end().code(), Some(0), "{:?}", doctor.lines());
    let text = doctor.lines().join("\n");
    assert!(text.ends_with("\"ready\":true}"), "{text}");
    let answer = Json::parse(&text);
    let names: Vec<_> =
        answer.at("findings").items().iter().map(|finding| finding.text_at("name")).collect();
    for name in ["cores", "disk", "live window", "sockets"] {
        assert!(names.contains(&name), "{name} is not looked at: {names:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder is there").count(), 0);

    let mut sick = Process::start(&["doctor", "--data", "/proc/no-folder-here"]);
    assert_eq!(sick.wait_for_end().code(), Some(3));
    assert!(sick.lines().iter().any(|line| line.starts_with("WRONG")), "{:?}", sick.lines());
}

/// A definition of two assets and a symbol; `keys` are the symbol's, and what comes behind it.
pub(crate) fn definition_of(name: &str, keys: &str) -> String {
    format!(
        "[[assets]]\nname = \"A\"\n[[assets]]\nname = \"B\"\n\
         [[symbols]]\nname = \"{name}\"\nbase = \"A\"\nquote = \"B\"\n{keys}"
    )
}

#[test]
fn the_doctor_tells_of_a_definition_that_a_start_would_refuse() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (file, new, old) = ("venue.toml", "new", "old");
    let small = ["--set", "log.segment_mib=4", "--set", "log.window_mib=8"];
    let arguments = [&["engine", "--data", old][..], &small].concat();
    let mut engine = Process::start_in(folder.path(), &arguments);
    engine.wait_for(0, "ready line", |line| line.starts_with("engine ready"));
    engine.signal(Signal::TERM);
    assert!(engine.wait_for_end().success());
    let no_asset = "[[symbols]]\nname = \"AB\"\nbase = \"A\"\nquote = \"B\"\n".to_owned();
    let no_price = definition_of("AB", "price_min = \"2\"\nprice_max = \"1\"\n");
    let named = "venue.toml symbols.base: \"A\" is not the name of an asset";
    let rejected = "DefineSymbol of \"AB\" is rejected: InvalidDefinition (detail 9), price_max";
    for (definition, data, wrong) in [
        (&no_asset, new, Some(named)),
        (&no_price, new, Some(rejected)),
        // A venue that has a log is no more made of what stands in the file.
        (&no_asset, old, None),
        (&no_price, old, None),
        (&definition_of("AB", ""), new, None),
    ] {
        fs::write(folder.path().join(file), definition).expect("the folder is ours");
        let arguments = ["doctor", "--json", "--config", file, "--data", data];
        let mut doctor = Process::start_in(folder.path(), &arguments);
        let (status, text) = (doctor.wait_for_end(), doctor.lines().join("\n"));
        let found = Json::parse(&text);
        let found = found.at("findings").items().iter();
        let wrongs: Vec<_> = found
            .filter(|finding| finding.text_at("state") == "wrong")
            .map(|finding| finding.text_at("found"))
            .collect();
        assert_eq!(status.code(), Some(if wrong.is_some() { 3 } else { 0 }), "{data}: {text}");
        let as_expected = match (&wrongs[..], wrong) {
            ([found], Some(part)) => found.contains(part),
            (found, None) => found.is_empty(),
            _ => false,
        };
        assert!(as_expected, "{wrongs:?}: {text}");
        assert!(text.ends_with(&format!("\"ready\":{}}}", wrong.is_none())), "{text}");
    }
}

#[test]
fn the_help_of_a_command_tells_what_it_does_with_the_folder_and_with_json() {
    for (command, told) in [
        ("up", "made if it does not exist"),
        ("engine", "made if it does not exist"),
        ("adapter", "where there is none yet it waits for the engine's first start"),
        ("doctor", "a file is written into it, or into the nearest folder above it"),
        ("log", "dump prints JSON lines always"),
    ] {
        let mut help = Process::start(&[command, "--help"]);
        assert_eq!(help.wait_for_end().code(), Some(0));
        let lines = help.lines();
        let text: Vec<_> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
        assert!(text.join(" ").contains(told), "{command}: {lines:?}");
    }
}

/// Starts a venue of the definition in `venue.toml` of the folder; the ready block.
fn ready_block(folder: &Path) -> (Process, Vec<String>) {
    let config = ["--config", "venue.toml"].as_slice();
    let process = first_up_with(folder, config);
    process.wait_for(0, "ready line", |line| line.trim() == "ready");
    let lines = process.lines();
    (process, lines)
}

#[test]
fn the_ready_block_shows_a_symbol_that_the_venue_has() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let coarse = "tick_size = \"0.5\"\nlot_min = \"2\"\nlot_step = \"2\"\nmin_notional = \"5\"\n\
                  [[symbols]]\nname = \"SECOND\"\nbase = \"B\"\nquote = \"A\"\n\
                  [[accounts]]\nname = \"Z\"\nkeys = 1\nbalances = { A = \"1\", B = \"5\" }\n";
    let write = |text: &str| fs::write(folder.path().join("venue.toml"), text).expect("it is ours");
    write(&definition_of("A-B.1", coarse));
    let has_tools = has_curl_and_openssl(folder.path());
    for (name, order) in [("A-B.1", "quantity=10&price=0.5&"), ("SECOND", "quantity=1&price=1&")] {
        let (mut process, block) = ready_block(folder.path());
        let pasted: Vec<_> = block.iter().filter(|line| line.contains("symbol=")).collect();
        let [depth, place] = pasted[..] else { panic!("not two lines: {block:?}") };
        assert!(depth.contains(&format!("depth?symbol={name}'")), "{depth}");
        assert!(place.contains(&format!("symbol={name}&")) && place.contains(order), "{place}");
        if has_tools {
            let reply = |line| shell(folder.path(), line).expect("a pasted line runs");
            assert!(reply(depth).contains("\"bids\":["), "{}", reply(depth));
            let placed = reply(place);
            assert!(placed.contains("\"orderId\":1,"), "{placed}");
        }
        let halted = ["symbol", "status", name, "HALT"];
        assert!(admin(&folder.path().join("data"), &halted).0);
        process.signal(Signal::INT);
        assert_eq!(process.wait_for_end().code(), Some(0));
    }
    let (mut process, block) = ready_block(folder.path());
    let shown: Vec<_> = block.iter().filter(|line| line.contains("symbol=")).collect();
    assert!(shown.len() == 1 && shown[0].contains("depth?symbol=A-B.1'"), "none trades: {shown:?}");
    process.signal(Signal::INT);
    assert_eq!(process.wait_for_end().code(), Some(0));

    fs::remove_dir_all(folder.path().join("data")).expect("the venue has ended");
    write("[[assets]]\nname = \"A\"\n");
    let (mut process, block) = ready_block(folder.path());
    assert!(!block.iter().any(|line| line.contains("symbol=")), "there is no symbol: {block:?}");
    process.signal(Signal::INT);
    assert_eq!(process.wait_for_end().code(), Some(0));
}

/// Whether a process catches SIGTERM.
fn catches_an_end(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << (Signal::TERM.as_raw() - 1) != 0)
}

#[test]
fn an_engine_that_is_told_to_end_while_it_starts_takes_its_pid_file_with_it() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("data/engine.pid");
    let small = ["--set", "log.segment_mib=4", "--set", "log.window_mib=8"];
    let arguments = [["engine", "--data", "data"].as_slice(), &small].concat();
    let mut engine = Process::start_in(folder.path(), &arguments);
    let id = engine.pid().to_string();
    assert!(
        eventually(|| fs::read_to_string(&file).is_ok_and(|written| written == id)),
        "it writes no id: {:?}",
        engine.lines()
    );
    // Most of a start comes behind this.
    assert!(catches_an_end(engine.pid()), "it writes its id before it hears signals");
    engine.signal(Signal::TERM);
    assert_eq!(engine.wait_for_end().code(), Some(0), "{:?}", engine.lines());
    assert!(!file.exists(), "left behind");
}

/// An engine takes a while to be ready, and to end in the midst of that: if its supervisor is killed meanwhile, the next
/// one is to know whose it was.
#[test]
fn a_supervisor_writes_its_process_id_before_its_engine_is_ready() {
    let mut venue = Venue::up(&[]);
    assert!(venue.stop_up(Signal::TERM).success());
    // The first ends the start late, and the second has whoever writes there say so.
    for name in ["engine.sock", "up.pid"] {
        fs::create_dir(venue.data().join(name)).expect("the folder is ours");
    }
    let lines = Process::start(&borrowed(&venue.arguments("up", true))).into_lines();
    let has = |wanted: &dyn Fn(&str) -> bool| lines.iter().any(|line| wanted(line));
    assert!(!has(&|line| line.contains("engine ready")), "{lines:?}");
    assert!(has(&|line| line.contains("cannot write") && line.contains("up.pid")), "{lines:?}");
}

#[test]
fn up_is_the_default_command_and_its_folder_the_default_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let options =
        ["--http", "127.0.0.1:0", "--set", "log.segment_mib=4", "--set", "log.window_mib=8"];
    let mut process = Process::start_in(folder.path(), &options);
    process.wait_for(0, "ready line", |line| line.trim() == "ready");
    let block = process.lines();
    let data = folder.path().join("touchline-data");
    let environment = fs::read_to_string(data.join("demo.env")).expect("demo.env is written");
    let variable = |name: &str| {
        let value = environment.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        value.unwrap_or_else(|| panic!("demo.env lacks {name}"))
    };
    let shown = |name: &str| block.iter().any(|line| line.contains(variable(name)));
    assert!(shown("BASE_URL") && shown("API_KEY") && shown("API_KEY_B"), "{block:?}");
    let master = MasterKey::load(&data.join("master.key")).expect("it is there");
    for (number, suffix) in [(1, ""), (2, "_B")] {
        let [id, secret] =
            ["KEY_ID", "SECRET_KEY"].map(|name| variable(&format!("{name}{suffix}")));
        assert_eq!((id, secret), (&*format!("{number}"), &*master.secret(KeyId(number))));
        let line = format!("              key id  {number}");
        assert!(block.contains(&line), "{block:?}");
    }
    let symbols = "  symbols     0 BTCUSDT, 1 ETHUSDT, 2 ETHBTC".to_owned();
    assert!(block.contains(&symbols), "{block:?}");
    let pasted: Vec<_> = block.iter().filter(|line| line.contains("curl ")).collect();
    assert!(!pasted.is_empty(), "no curl line: {block:?}");
    if has_curl_and_openssl(folder.path()) {
        let replies = pasted.iter().map(|line| {
            shell(folder.path(), line).unwrap_or_else(|| panic!("{line:?} does not run"))
        });
        let replies: String = replies.collect();
        assert!(replies.contains("\"orderId\":1,"), "no order was placed: {replies}");
    }
    process.signal(Signal::INT);
    assert_eq!(process.wait_for_end().code(), Some(0));
}

/// True if lines that are made to be pasted can be tried; else that is told.
fn has_curl_and_openssl(folder: &Path) -> bool {
    let has_them = shell(folder, "command -v curl && command -v openssl").is_some();
    if !has_them {
        skipped("curl and openssl: the printed lines were not tried");
    }
    has_them
}

/// What a shell line prints when it succeeds.
fn shell(folder: &Path, line: &str) -> Option<String> {
    let output = run(Command::new("sh").args(["-c", line]).current_dir(folder)).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
