//! `touchline doctor` beside what a start makes of the same data folder and the same settings.

use super::log_tools::log;
use super::process::Process;
use super::readers::Load;
use super::venue::{Part, UNLIMITED, Venue, borrowed};
use crate::patience::run;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// Exit code of a doctor that has found something on which a start fails.
pub(crate) const FOUND_WRONG: i32 = 3;

/// Exit code and output of the doctor.
pub(crate) fn doctor(data: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_touchline"));
    outcome(command.arg("doctor").arg("--data").arg(data))
}

fn outcome(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, .. } = run(command).expect("the executable runs");
    (status.code(), String::from_utf8(stdout).expect("it prints text"))
}

/// What becomes of something in a data folder.
#[derive(Clone, Copy, Debug)]
enum Become {
    Gone,
    File(&'static str),
    Folder,
    /// With nobody at its other end.
    Pipe,
    /// A link to what can be read, and that nobody may write, whoever it is.
    Unwritable,
    /// A link to what is not there, as of a disk that is not mounted.
    Dangling,
    Mode(u32),
}

/// Does that, and gives it back as it was behind `meanwhile`.
fn with(path: &Path, what: Become, meanwhile: impl FnOnce()) {
    if let Become::Mode(mode) = what {
        let set = |mode| fs::set_permissions(path, Permissions::from_mode(mode));
        let before = fs::metadata(path).expect("it is there").permissions().mode();
        set(mode).expect("it is ours");
        meanwhile();
        return set(before).expect("it is ours");
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).expect("the folder is ours");
    }
    let aside = path.with_extension("aside");
    let was_there = fs::rename(path, &aside).is_ok();
    match what {
        Become::File(text) => {
            fs::write(path, text).expect("the folder is ours");
            fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is ours");
        }
        Become::Folder => fs::create_dir(path).expect("the folder is ours"),
        Become::Pipe => {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, path, FileType::Fifo, mode, 0).expect("the folder is ours");
        }
        Become::Unwritable => {
            symlink("/proc/sys/kernel/random/boot_id", path).expect("the folder is ours");
        }
        Become::Dangling => symlink("/nowhere/at/all", path).expect("the folder is ours"),
        Become::Gone | Become::Mode(_) => {}
    }
    meanwhile();
    let _gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    if was_there {
        fs::rename(&aside, path).expect("the folder is ours");
    }
}

/// As long as the header of a control page, and none.
const NO_PAGE: &str =
    "what somebody has put there, which is as long as the header of a control page is, or longer";

#[test]
fn the_doctor_finds_wrong_what_a_start_is_refused_for() {
    let mut venue = Venue::up(&[&UNLIMITED[..], &["--set", "log.segment_mib=2"]].concat());
    Load::new(&venue).pass(5 << 20);
    assert!(venue.stop_up(Signal::TERM).success());
    let (code, text) = doctor(venue.data());
    assert!(code == Some(0) && text.contains("`touchline log verify`"), "{text}");
    for (name, what, told) in [
        ("master.key", Become::Mode(0o644), "mode 644"),
        ("master.key", Become::Gone, "put the file back"),
        ("master.key", Become::File(""), "0 bytes, expected 32"),
        ("master.key", Become::File("another one of as many bytes, 32"), "is another one than"),
        ("master.mark", Become::File("0123456789abcdef"), "is another one than"),
        ("master.mark", Become::File("longer than any mark is"), "master.mark is damaged"),
        ("token-keys.json", Become::File(""), "not a list of keys"),
        ("key-addresses", Become::File("x ::1"), "line 1 of the list"),
        ("log/00000001.seg", Become::Gone, "00000001.seg is missing"),
        ("log-id", Become::File("0123456789abcdef0123456789ABCDEF\n"), "is this the right disk?"),
        ("log", Become::File(""), "log: Not a directory"),
        ("lock", Become::Folder, "lock"),
        ("lock", Become::Unwritable, "lock cannot be written"),
        ("engine.sock", Become::Folder, "engine.sock"),
        ("adapter-adapter.lock", Become::Folder, "adapter-adapter.lock"),
        ("bans-adapter", Become::Folder, "bans-adapter"),
        ("snapshots", Become::File(""), "snapshots"),
        ("history", Become::File(""), "history"),
        ("history/adapter", Become::File(""), "history/adapter"),
        ("leases", Become::File(""), "leases"),
        ("live", Become::File(""), "live"),
        ("live/control", Become::Folder, "live/control: "),
        ("live/control", Become::File(NO_PAGE), "control page of layout"),
    ] {
        with(&venue.data().join(name), what, || {
            let (code, text) = doctor(venue.data());
            assert_eq!(code, Some(FOUND_WRONG), "{name} {what:?}: {text}");
            let is_told = |line: &str| line.starts_with("WRONG") && line.contains(told);
            assert!(text.lines().any(is_told), "{name} {what:?}: {text}");
            let mut up = Process::start(&borrowed(&venue.arguments("up", true)));
            assert_eq!(up.wait_for_end().code(), Some(1), "{name} {what:?}: {:?}", up.lines());
        });
    }
    let (code, text) = doctor(venue.data());
    assert_eq!(code, Some(0), "{text}");
    venue.start_up();
}

/// What is told is there under the name that is told: a file in a folder that is none is not.
#[test]
fn what_is_in_the_way_of_a_start_is_named() {
    const NOT_MOUNTED: &str =
        "it is a link, and what it leads to is not there: is the disk mounted?";
    const NO_FOLDER: &str = "what is there is no folder";
    let mut venue = Venue::up(&[]);
    assert!(venue.stop_up(Signal::TERM).success());
    for (name, what, told) in [
        ("log", Become::Dangling, NOT_MOUNTED),
        ("snapshots", Become::Dangling, NOT_MOUNTED),
        ("history", Become::Dangling, NOT_MOUNTED),
        ("history", Become::File(""), NO_FOLDER),
        ("history/adapter", Become::Dangling, NOT_MOUNTED),
        ("history/adapter", Become::File(""), NO_FOLDER),
        ("history/adapter", Become::Pipe, NO_FOLDER),
        ("history/adapter/data.mdb", Become::Pipe, "not a regular file"),
        ("history/adapter/data.mdb", Become::Unwritable, "Permission denied"),
        ("history/adapter/lock.mdb", Become::Pipe, "not a regular file"),
        ("history/adapter/lock.mdb", Become::Unwritable, "Permission denied"),
    ] {
        let path = venue.data().join(name);
        with(&path, what, || {
            let mut up = Process::start(&borrowed(&venue.arguments("up", true)));
            assert_eq!(up.wait_for_end().code(), Some(1), "{name} {what:?}: {:?}", up.lines());
            let told = format!("{}: {told}", path.display());
            let lines = up.lines();
            assert!(lines.iter().any(|line| line.contains(&told)), "{name} {what:?}: {lines:?}");
            if let Become::Unwritable = what {
                // It can be looked at, and nobody has tried to write it.
                return;
            }
            let (code, text) = doctor(venue.data());
            assert_eq!(code, Some(FOUND_WRONG), "{name} {what:?}: {text}");
        });
    }
    with(&venue.data().join("snapshots"), Become::Dangling, || {
        let (code, _, errors) = log(venue.data(), &["snapshot"]);
        assert!(code == Some(1) && errors.contains(NOT_MOUNTED), "{errors}");
        let (_, text) = doctor(venue.data());
        let is_told = |line: &str| line.starts_with("WRONG") && line.contains(NOT_MOUNTED);
        assert!(text.lines().any(is_told), "{text}");
    });
    venue.start_up();
}

/// A snapshot and a reader's lease say how far the log was.
#[test]
fn the_doctor_finds_a_log_that_ends_before_what_was_made_of_it() {
    let mut venue = Venue::up(&[&UNLIMITED[..], &["--set", "log.segment_mib=2"]].concat());
    Load::new(&venue).pass(5 << 20);
    assert!(venue.stop_up(Signal::TERM).success());
    assert_eq!(log(venue.data(), &["snapshot"]).0, Some(0));
    assert_eq!(doctor(venue.data()).0, Some(0));
    for number in 1.. {
        let path = venue.data().join(format!("log/{number:08}.seg"));
        if fs::remove_file(path).is_err() {
            assert!(number > 2, "the log has no further segments");
            break;
        }
    }
    for (gone, told) in
        [("no such file", ".snap holds the state"), ("snapshots", ".lease a reader")]
    {
        with(&venue.data().join(gone), Become::Gone, || {
            let (code, text) = doctor(venue.data());
            assert_eq!(code, Some(FOUND_WRONG), "{text}");
            let is_told = |line: &str| line.contains(told) && line.contains("--accept-loss");
            let found = text.lines().find(|line| line.starts_with("WRONG") && is_told(line));
            let found = found.unwrap_or_else(|| panic!("{told}: {text}")).to_owned();
            let mut up = Process::start(&borrowed(&venue.arguments("up", true)));
            assert_eq!(up.wait_for_end().code(), Some(1), "{:?}", up.lines());
            // The same words, whatever has been read for them.
            let said = found.split_once("files").expect("it is about them").1.trim_start();
            assert!(up.lines().iter().any(|line| line.contains(said)), "{said}: {:?}", up.lines());
        });
    }
    venue.allow(&["--accept-loss"]);
    venue.start_up();
    assert!(venue.stop_up(Signal::TERM).success());
    assert_eq!(doctor(venue.data()).0, Some(0));
}

#[test]
fn the_doctor_tells_of_tokens_that_a_start_would_end() {
    let mut venue = Venue::up(&[]);
    venue.a().limit("BTCUSDT", "SELL", "0.02", "20000");
    assert!(venue.stop_up(Signal::TERM).success());
    let is_told = |line: &str| line.starts_with("could") && line.contains("token-keys.json");
    let (_, text) = doctor(venue.data());
    assert!(!text.lines().any(is_told), "{text}");
    with(&venue.data().join("token-keys.json"), Become::Gone, || {
        let (code, text) = doctor(venue.data());
        assert!(code == Some(0) && text.lines().any(is_told), "{text}");
        // No adapter has given any.
        with(&venue.data().join("leases"), Become::Gone, || {
            let (code, text) = doctor(venue.data());
            assert!(code == Some(0) && !text.lines().any(is_told), "{text}");
        });
    });
}

/// What begins to read a pipe waits for a writer, who never comes.
#[test]
fn a_pipe_under_the_name_of_a_file_holds_nobody_up() {
    let mut venue = Venue::separate(&["--set", "log.window=data"]);
    venue.kill9(Part::Adapter);
    venue.kill9(Part::Engine);
    let data = venue.data().to_owned();
    let start = || {
        let mut engine = Process::start(&borrowed(&venue.arguments("engine", false)));
        (engine.wait_for_end().code(), engine.lines().join("\n"))
    };
    let told = "not a regular file";
    for name in ["log/00000000.seg", "lock", "master.key", "live/control", "live/window"] {
        with(&data.join(name), Become::Pipe, || {
            let (code, text) = start();
            assert!(code == Some(1) && text.contains(told), "{name}: {text}");
            let (code, text) = doctor(&data);
            assert_eq!(code, Some(FOUND_WRONG), "{name}: {text}");
        });
    }
    with(&data.join("log/00000000.seg"), Become::Pipe, || {
        for action in ["info", "verify", "dump", "replay", "snapshot"] {
            let (code, _, errors) = log(&data, &[action]);
            assert!(code == Some(1) && errors.contains(told), "{action}: {errors}");
        }
    });
    // What an adapter opens.
    venue.start_engine();
    let start = || {
        let mut adapter = Process::start(&borrowed(&venue.arguments("adapter", true)));
        (adapter.wait_for_end().code(), adapter.lines().join("\n"))
    };
    for name in [
        "adapter-adapter.lock",
        "bans-adapter",
        "token-keys.json",
        "key-addresses",
        "history/adapter/lock",
    ] {
        with(&data.join(name), Become::Pipe, || {
            let (code, text) = start();
            assert!(code == Some(1) && text.contains(told), "{name}: {text}");
            let (code, text) = doctor(&data);
            assert_eq!(code, Some(FOUND_WRONG), "{name}: {text}");
        });
    }
    for name in ["adapter.pid", "history/adapter/opening"] {
        with(&data.join(name), Become::Pipe, || {
            venue.start_adapter();
            venue.kill9(Part::Adapter);
        });
    }
    venue.kill9(Part::Engine);
    // One that can be done without is told, and keeps nobody from a start.
    let names = ["log-id", "log-id.new", "master.mark", "leases/history-adapter.lease"];
    for name in names {
        let path = data.join(name);
        with(&path, Become::Pipe, || {
            if name == "log-id.new" {
                fs::remove_file(data.join("log-id")).expect("it is there");
            }
            let (code, _, errors) = log(&data, &["info"]);
            assert_eq!(code, Some(0), "{name}: {errors}");
            assert_eq!(errors.contains(told), name.contains("lease"), "{name}: {errors}");
            venue.start_engine();
            venue.kill9(Part::Engine);
        });
    }
    venue.start_engine();
}

#[test]
fn the_doctor_finds_a_window_that_a_start_cannot_go_on_from() {
    let mut venue = Venue::separate(&["--set", "log.window=data"]);
    assert_eq!(doctor(venue.data()).0, Some(0), "beside its engine");
    venue.kill9(Part::Adapter);
    venue.kill9(Part::Engine);
    let live = venue.data().join("live");
    let page = fs::read(live.join("control")).expect("it was left behind");
    for (name, what, told) in [
        ("window", Become::File("short"), "live/window: shared memory has 5 bytes"),
        ("window", Become::Folder, "live/window: "),
        ("control", Become::Folder, "live/control: "),
        ("control", Become::File(NO_PAGE), "control page of layout"),
    ] {
        with(&live.join(name), what, || refused_for_its_window(&venue, told));
    }
    let control = live.join("control");
    fs::write(&control, &page[..2048]).expect("the folder is ours");
    refused_for_its_window(&venue, "2048 bytes");
    fs::write(&control, page).expect("the folder is ours");
    // What it can go on from, and what is gone, is no reason not to start.
    assert_eq!(doctor(venue.data()).0, Some(0));
    with(&live.join("window"), Become::Gone, || assert_eq!(doctor(venue.data()).0, Some(0)));
    venue.start_engine();
}

/// The doctor and a start say the same of a window, and how to go on without it.
fn refused_for_its_window(venue: &Venue, told: &str) {
    let folder = format!("left in {}: ", venue.data().join("live").display());
    let advice = "move that folder away to go on from the disk alone";
    let (code, text) = doctor(venue.data());
    assert_eq!(code, Some(FOUND_WRONG), "{told}: {text}");
    let is_told = |line: &str| [told, &folder, advice].iter().all(|part| line.contains(part));
    assert!(text.lines().any(|line| line.starts_with("WRONG") && is_told(line)), "{told}: {text}");
    let mut engine = Process::start(&borrowed(&venue.arguments("engine", false)));
    assert_eq!(engine.wait_for_end().code(), Some(1), "{told}: {:?}", engine.lines());
    assert!(engine.lines().iter().any(|line| is_told(line)), "{told}: {:?}", engine.lines());
}

/// Files that the adapter of the test may have open.
const FILES: u64 = 3000;

/// As many as then fit, beside what the adapter has open for itself and its one worker.
const FITTING: usize = 3000 - 128 - 3;

#[test]
fn the_doctor_counts_the_files_of_the_adapter_as_that_does() {
    for (connections, fit) in [(FITTING, true), (FITTING + 1, false)] {
        let setting = format!("adapter.connections={connections}");
        let options = ["--set", &setting, "--set", "adapter.front=hyper"];
        let mut venue = Venue::up(&options);
        let limit = Rlimit { current: Some(FILES), maximum: Some(FILES) };
        let supervisor = venue.supervisor().pid().try_into().expect("a process id");
        prlimit(Pid::from_raw(supervisor), Resource::Nofile, limit).expect("its user may lower it");
        let heard = venue.supervisor().lines().len();
        venue.kill9(Part::Adapter);
        let is_back = |line: &str| line.contains("the adapter is back");
        venue.supervisor().wait_for(heard, "restart", is_back);

        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -n {FILES} && exec \"$0\" \"$@\"")]);
        limited.args([env!("CARGO_BIN_EXE_touchline"), "doctor"]).args(options);
        let (code, text) = outcome(limited.arg("--data").arg(venue.data()));
        assert_eq!(code, Some(0), "{text}");
        let line = text.lines().find(|line| line.contains("open files"));
        let expected = if fit { "good" } else { "could" };
        assert!(line.is_some_and(|line| line.starts_with(expected)), "{text}");
        // What the adapter says on its standard error may come behind what it says on the other stream.
        let (_status, lines) = venue.end_up(Signal::INT);
        let is_told = lines.iter().any(|line| line.contains("open files are allowed"));
        assert_eq!(is_told, !fit, "{lines:?}");
    }
}

/// The trial of the disk meets the limit, too.
#[test]
fn a_limit_on_the_size_of_files_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -f 100; exec \"$0\" doctor --data \"$1\"",
        env!("CARGO_BIN_EXE_touchline"),
    ]);
    let (code, told) = outcome(command.arg(folder.path()));
    assert_eq!(code, Some(FOUND_WRONG), "{told}");
    assert!(told.contains("WRONG  file size"), "{told}");
}
