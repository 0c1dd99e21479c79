//! What an operator is told: of a definition that is wrong, of settings that are not in force, of a limit that is used
//! up, and of a machine that has too little of something.

use super::binary::KEY_A;
use super::log_tools::log;
use super::process::Process;
use super::stream_client::{Member, options, unix};
use super::venue::Venue;
use crate::patience::run;
use crate::skipped::skipped;
use rustix::process::{Signal, geteuid};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use touchline_protocol::client::ConnectError;

/// A venue of one symbol, whose step is finer than an asset's precision.
const DEFINITION: &str = "[log]\nsegment_mib = 4\nwindow_mib = 8\n\
     [limits]\nopen_orders = 1024\nprice_levels = 1024\nrecords = 64\nrecord_blocks = 64\n\
     [[assets]]\nname = \"A\"\nprecision = 2\n\
     [[assets]]\nname = \"B\"\n\
     [[symbols]]\nname = \"AB\"\nbase = \"A\"\nquote = \"B\"\ntick_size = \"0.01\"\nlot_step = \"0.001\"\noco = true\n";

/// All that a command says until it ends, which it does not well.
fn refused(arguments: &[&str]) -> String {
    let mut process = Process::start(arguments);
    let status = process.wait_for_end();
    let said = process.lines().join("\n");
    assert!(!status.success(), "{arguments:?}: {said}");
    said
}

#[test]
fn a_definition_that_the_engine_refuses_is_told_with_file_and_line() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let [data, file] = ["data", "own.toml"].map(|name| folder.path().join(name));
    let [data, name] = [&data, &file].map(|path| path.to_str().expect("plain names"));
    let wrong = DEFINITION.replace("lot_step", "price_max = \"1\"\nprice_min = \"2\"\nlot_step");
    fs::write(&file, wrong).expect("the folder is ours");
    let told = format!("touchline: {name}, line 19: venue.toml symbols.price_max: ");
    for command in [&["up", "--http", "127.0.0.1:0"][..], &["engine"]] {
        let said = refused(&[command, &["--data", data, "--config", name]].concat());
        assert!(said.contains(&told) && said.contains("less than price_min"), "{said}");
    }
}

#[test]
fn what_a_symbol_takes_in_vain_or_cannot_keep_is_told_by_the_first_start() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("own.toml");
    fs::write(&file, DEFINITION).expect("the folder is ours");
    let venue = Venue::up(&["--config", file.to_str().expect("plain names")]);
    for told in [
        "engine: symbol AB says oco = true, and all such orders are refused",
        "engine: symbol AB: lot_step 0.001 has more decimals than asset A with precision 2",
    ] {
        venue.supervisor().wait_for(0, told, |line| line.contains(told));
    }
    let data = venue.data().to_str().expect("plain names");
    let mut admin = Command::new(env!("CARGO_BIN_EXE_touchline"));
    admin.args(["admin", "--data", data, "symbol", "add", "BA", "B", "A", "tick_size=0.001"]);
    let output = run(&mut admin).expect("the executable runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("warning: symbol BA: tick_size 0.001 has more decimals"), "{said}");
    let mut admin = Command::new(env!("CARGO_BIN_EXE_touchline"));
    admin.args(["admin", "--data", data, "symbol", "change", "BA", "quote_quantity=true"]);
    let output = run(admin.arg("order_types=[\"LIMIT\"]")).expect("the executable runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("warning: symbol BA says quote_quantity = true"), "{said}");
}

#[test]
fn settings_that_the_first_start_has_taken_are_told_when_they_are_changed() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("own.toml");
    fs::write(&file, DEFINITION).expect("the folder is ours");
    let mut venue = Venue::up(&["--config", file.to_str().expect("plain names")]);
    let end_untold = |venue: &mut Venue| {
        let (status, lines) = venue.end_up(Signal::TERM);
        assert_eq!(status.code(), Some(0));
        assert!(!lines.iter().any(|line| line.contains("not in force")), "{lines:?}");
    };
    end_untold(&mut venue);
    venue.start_up();
    end_untold(&mut venue);
    let changed = DEFINITION.replace("precision = 2", "precision = 3").replace("0.001", "0.01");
    fs::write(&file, changed).expect("the folder is ours");
    venue.allow(&["--set", "exchange.max_orders=3"]);
    venue.start_up();
    for told in [
        "engine: asset A: precision = 3 is not in force, but 2: an asset keeps its precision",
        "engine: exchange.max_orders = 3 is not in force, but 0: `touchline admin exchange --max-orders 3",
        "engine: symbol AB: lot_step = 0.01 is not in force, but 0.001: `touchline admin symbol change AB lot_step=0.01`",
    ] {
        venue.supervisor().wait_for(0, told, |line| line.contains(told));
    }
}

#[test]
fn a_logon_beyond_the_limit_of_sessions_is_told_with_the_limit_and_a_way_out() {
    // Two are the adapter's.
    let venue = Venue::up(&["--set", "limits.sessions=3"]);
    let key = venue.key_a();
    let open = |name: &str| Member::open(&options(unix(&venue), name, (KEY_A, &key))).err();
    assert!(open("first").is_none());
    let error = open("second").expect("there is no room for its name");
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("raise limits.sessions and start the engine again"), "{error}");
    let of_engine = |line: &str| line.contains("limits.sessions = 3 is used up");
    venue.supervisor().wait_for(0, "which limit it is", of_engine);
    let data = venue.data().to_str().expect("plain names");
    let said = refused(&["admin", "--data", data, "account", "Z"]);
    assert!(said.contains("raise limits.sessions"), "{said}");
    let of_adapter = ["adapter", "--data", data, "--http", "127.0.0.1:0"];
    let adapter = Process::start(&[&of_adapter[..], &["--set", "adapter.instance=x"]].concat());
    let is_told = |line: &str| line.contains("raise limits.sessions") && line.contains("retrying");
    adapter.wait_for(0, "why it is not let in", is_told);
}

/// `touchline` with these arguments, under a limit that a shell sets.
fn limited(limit: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limit}; exec \"$0\" \"$@\" 2>&1")]);
    command.arg(env!("CARGO_BIN_EXE_touchline")).args(arguments);
    let output = run(&mut command).expect("there is a shell");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn what_is_too_scarce_for_a_venue_is_named() {
    for (limit, found, told) in [
        (
            "ulimit -n 16",
            "WRONG  open files     16 at once",
            "this process may have 16 (ulimit -n)",
        ),
        (
            "ulimit -v 1228800",
            "WRONG  address space  1200 MiB for each process (ulimit -v)",
            "touchline: 1200 MiB of address space are allowed (ulimit -v)",
        ),
        // One that the rings of sessions do not fit in, and one that the live window does not.
        (
            "ulimit -f 2048",
            "WRONG  file size      no file may be longer than 1048576 bytes (ulimit -f)",
            "this process may make none longer than 1048576 bytes (ulimit -f)",
        ),
        (
            "ulimit -f 6144",
            "WRONG  file size      no file may be longer than 3145728 bytes (ulimit -f)",
            "this process may make none longer than 3145728 bytes (ulimit -f)",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let data = folder.path().join("data");
        let data = data.to_str().expect("plain names");
        let (code, said) = limited(limit, &["doctor", "--data", data]);
        assert_eq!(code, Some(super::doctor::FOUND_WRONG), "{said}");
        assert!(said.contains(found), "{said}");
        let (code, said) = limited(limit, &["up", "--data", data, "--http", "127.0.0.1:0"]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn a_umask_takes_nothing_from_the_venues_own_user() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let script = "umask 277; exec \"$0\" up --http 127.0.0.1:0 --data \"$1\" 2>&1";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_touchline")]).arg(&data);
    let up = Process::of(&mut shell);
    let is_told = |line: &str| line.contains("umask 277") && line.contains("taken as 077");
    up.wait_for(0, "a word of the umask", is_told);
    up.wait_for(0, "ready line", |line| line.trim() == "ready");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for name in ["master.key", "demo.env"] {
        assert_eq!(mode(&data.join(name)) & 0o600, 0o600, "{name}");
    }
    let mut up = up;
    up.signal(Signal::TERM);
    assert_eq!(up.wait_for_end().code(), Some(0));
}

/// A folder that was made for the venue lets others in, as most do.
#[test]
fn no_umask_lets_others_write_what_is_the_venues() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("the folder is ours");
    let script = "umask 000; exec \"$0\" up --http 127.0.0.1:0 --data \"$1\" 2>&1";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_touchline")]).arg(&data);
    let mut up = Process::of(&mut shell);
    up.wait_for(0, "ready line", |line| line.trim() == "ready");
    for entry in fs::read_dir(&data).expect("it is there") {
        let path = entry.expect("it is read").path();
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o022, 0, "{}: {mode:o}", path.display());
    }
    up.signal(Signal::TERM);
    assert_eq!(up.wait_for_end().code(), Some(0));
}

/// A root that operates a service's venue would leave files in it that the service could not read.
#[test]
fn nobody_makes_files_in_the_venue_of_another_user() {
    const OTHER: u32 = 65534;
    if !geteuid().is_root() {
        return skipped("rights to give a file to another user");
    }
    let mut venue = Venue::up(&[]);
    let folder = venue.data().to_owned();
    let data = folder.to_str().expect("plain names");
    let give_lock = |user| chown(folder.join("lock"), Some(user), None).expect("root may");
    let whose = format!("{data} is the venue of user {OTHER}, ");
    let admin = |arguments: &[&str]| {
        let mut process = Process::start(&[&["admin", "--data", data], arguments].concat());
        (process.wait_for_end().success(), process.lines().join("\n"))
    };
    // Whoever runs the engine may.
    give_lock(OTHER);
    assert!(admin(&["kill", "A"]).0);
    fs::remove_file(folder.join("admin.lock")).expect("it was made");
    chown(folder.join("engine.sock"), Some(OTHER), None).expect("root may");
    let (done, said) = admin(&["token-key", "--revoke"]);
    assert!(!done && said.contains(&whose), "{said}");

    assert!(venue.stop_up(Signal::TERM).success());
    for arguments in [&["admin", "show-key", "1"][..], &["log", "snapshot"]] {
        let said = refused(&[arguments, &["--data", data]].concat());
        assert!(said.contains(&whose), "{said}");
    }
    assert!(!folder.join("admin.lock").exists() && !folder.join("snapshots").exists());
    give_lock(geteuid().as_raw());
    assert!(admin(&["show-key", "1"]).0);
    assert_eq!(log(&folder, &["snapshot"]).0, Some(0));
}
