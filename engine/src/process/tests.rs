//! Starts that find no room, and starts that are refused.

use super::*;
use crate::skipped::skipped;
use rustix::process::geteuid;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use tempfile::TempDir;
use touchline_protocol::log::place::LIVE_FOLDER;
use touchline_protocol::log::reader::LogReader;
use touchline_protocol::units::Sequence;

const MIB_OF_WINDOW: u64 = 8;
/// A transaction that makes a key takes 192 bytes, so these take more than the window has.
const KEYS: u32 = 100_000;

/// What the engine is started with in a new folder, with so many keys and this in section `[gateway]`.
fn options(folder: &TempDir, keys: u32, gateway: &str) -> EngineOptions {
    let text = format!(
        "[log]\nsegment_mib = 4\nwindow = \"data\"\nwindow_mib = {MIB_OF_WINDOW}\n\
         [limits]\nkeys = {keys}\nopen_orders = 1024\nprice_levels = 1024\nrecords = 64\n\
         record_blocks = 64\n[gateway]\n{gateway}\n[[assets]]\nname = \"A\"\n\
         [[accounts]]\nname = \"a\"\nkeys = {keys}\n"
    );
    EngineOptions {
        data: folder.path().to_owned(),
        config: toml::from_str(&text).expect("a sound venue.toml"),
        is_own_definition: true,
        written: Written::default(),
        accept_loss: false,
        must_exist: false,
        allow_clock_behind: false,
    }
}

fn duty(options: &EngineOptions, core: Core, writer: LogWriter, clock: Clock) -> Duty {
    let (mail, rings) = gateway::mail().expect("memory for the rings");
    let (streams, stop) = (rings.duty, Arc::default());
    let settings = options.config.engine.clone();
    Duty::new(DutyOptions { core, writer, clock, mail, streams, stop, settings })
}

#[test]
fn a_definition_that_is_larger_than_the_window_is_logged() {
    crate::patience::watch();
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(&folder, KEYS, "");
    let genesis = check_definition(&options.config, &options.data).expect("a sound definition");
    let genesis = genesis.expect("no log holds it");
    let mut core = Core::new();
    let (log, defined) = open_log(&options, &mut core, 1).expect("a new log");
    let Log { writer, keeper, control, .. } = log;
    let clock =
        Clock::start(SystemTime, LastTime::default(), false).expect("a new log has no time");
    let mut duty = duty(&options, core, writer, clock);
    define_venue(&mut duty, &genesis, defined).expect("there is room for one after the other");
    begin(&mut duty, &options.config, Incarnation(1), None).expect("it has begun");
    assert_eq!(duty.core().counts().keys, KEYS);
    assert!(control.appended().0 > 2 * MIB_OF_WINDOW * MIB);
    drop(duty);
    keeper.stop();
}

/// A start on what [`options`] gives, in a process that takes no signals.
fn start_once(options: &EngineOptions) -> (StartReport, Result<Running>) {
    let genesis = check_definition(&options.config, &options.data).expect("a sound definition");
    let mut core = Core::new();
    let (log, defined) = open_log(options, &mut core, 1).expect("the log is in order");
    let report = log.report.clone();
    let master_key = MasterKey::new([5; 32]);
    let (mail, rings) = gateway::mail().expect("memory for the rings");
    let venue = Venue { core, genesis, defined, master_key };
    let links = Links { mail, rings, stop: Arc::new(AtomicBool::new(true)) };
    (report, start(options, log, venue, links))
}

#[test]
fn a_start_that_is_refused_closes_the_log() {
    crate::patience::watch();
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    let refused = options(&folder, 1, &format!("tcp = \"{address}\""));
    for attempt in 0..2 {
        let (report, outcome) = start_once(&refused);
        assert_eq!(report.clean, attempt > 0, "attempt {attempt}");
        let error = outcome.err().expect("the port is taken").to_string();
        assert!(error.contains("gateway.tcp"), "{error}");
        assert!(!folder.path().join(LIVE_FOLDER).exists(), "no window is left");
        assert!(!folder.path().join(SOCKET_NAME).exists(), "nor a socket");
    }
    let (report, outcome) = start_once(&options(&folder, 1, ""));
    assert!(report.clean);
    outcome.and_then(Running::join).expect("it starts, and ends as it was told to");
}

/// As when the folder is another user's, with whose permissions a test of root would meet no error.
#[test]
fn a_log_that_cannot_be_looked_for_is_not_said_to_be_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(!has_log(folder.path()).expect("it may be looked into"));
    fs::write(folder.path().join(SEGMENT_FOLDER), "").expect("the folder is ours");
    for must_exist in [false, true] {
        let refused = run(EngineOptions { must_exist, ..options(&folder, 1, "") });
        let why = refused.expect_err("there is no folder of segments").to_string();
        assert!(why.contains("listing") && why.contains("Not a directory"), "{why}");
    }
    let key = master_key::load(folder.path()).map(|_| ()).expect_err("there may be a log");
    assert!(key.to_string().contains("Not a directory"), "{key}");
    assert!(!folder.path().join("master.key").exists(), "no new venue is begun");
}

/// What each start in the log tells of the time before it.
fn times_off(options: &EngineOptions) -> Vec<u32> {
    let mut reader = LogReader::open(&options.data, Follow::Durable).expect("there is a log");
    let mut found = Vec::new();
    while let Some(transaction) = reader.next().expect("the log is sound") {
        if let Command::EngineStarted(started) = transaction.command().expect("a command") {
            found.push(started.off_ms);
        }
    }
    found
}

#[test]
fn a_start_tells_for_how_long_no_engine_ran() {
    crate::patience::watch();
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(&folder, 1, "");
    // A first start that is cut off behind a part of the definition.
    let genesis = Genesis::new(&options.config).expect("a sound definition");
    let mut core = Core::new();
    let (log, _) = open_log(&options, &mut core, 1).expect("a new log");
    let clock =
        Clock::start(SystemTime, LastTime::default(), false).expect("a new log has no time");
    let mut duty = duty(&options, core, log.writer, clock);
    let first = genesis.remaining(Sequence(0)).next().expect("it is not empty");
    duty.first_command(first).expect("there is room");
    duty.into_log().close().expect("the disk is in order");
    log.keeper.stop();
    drop(log.control);
    thread::sleep(Duration::from_millis(5));
    let (report, outcome) = start_once(&options);
    assert!(report.last_alive_ns > 0);
    outcome.and_then(Running::join).expect("it goes on with the definition");
    assert_eq!(times_off(&options), [0], "no engine has started before");
    // Behind which no engine runs for an hour and nearly one millisecond.
    let mut core = Core::new();
    let (log, _) = open_log(&options, &mut core, 1).expect("the log is in order");
    let StartReport { last_alive_ns, incarnation, .. } = log.report;
    let now_ns = last_alive_ns + 3_600_001 * NS_PER_MS - 1;
    let clock = Clock::start(SystemTime, LastTime { log_ns: now_ns, shown_ns: 0 }, true)
        .expect("it begins there");
    let mut duty = self::duty(&options, core, log.writer, clock);
    begin(&mut duty, &options.config, incarnation, Some(last_alive_ns..now_ns))
        .expect("it has begun");
    duty.into_log().close().expect("the disk is in order");
    log.keeper.stop();
    drop(log.control);
    assert_eq!(times_off(&options), [0, 3_600_000]);
}

#[test]
fn a_time_without_an_engine_is_told_as_far_as_it_can_be() {
    let now_ns = 1 << 60;
    for (before_ns, expected) in [
        (0, 0),
        (NS_PER_MS - 1, 0),
        (NS_PER_MS, 1),
        (2 * NS_PER_MS - 1, 1),
        (u64::from(u32::MAX - 1) * NS_PER_MS, u32::MAX - 1),
        (u64::from(u32::MAX) * NS_PER_MS, u32::MAX),
        ((u64::from(u32::MAX) + 1) * NS_PER_MS, u32::MAX),
        (now_ns, u32::MAX),
    ] {
        assert_eq!(off_ms(&(now_ns - before_ns..now_ns)), expected, "{before_ns} ns");
    }
    for yet_to_come in [now_ns + 1, u64::MAX] {
        assert_eq!(off_ms(&(yet_to_come..now_ns)), 0, "{yet_to_come}");
    }
}

#[test]
fn a_data_folder_whose_path_begins_like_an_option_gets_snapshots() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = EngineOptions { data: "-d".into(), ..options(&folder, 1, "") };
    let schedule = snapshot_schedule(&options, None).expect("they are on by default");
    assert!(schedule.arguments.iter().any(|argument| argument == "--data=-d"));
}

/// The log of a venue that has run once, its state, and an hour behind that.
fn an_hour_ahead(options: &EngineOptions) -> (Log, Core, u64) {
    start_once(options).1.and_then(Running::join).expect("it starts");
    let mut core = Core::new();
    let (log, _) = open_log(options, &mut core, 1).expect("the log is in order");
    let ahead = core.last_time_ns() + 3_600_000_000_000;
    (log, core, ahead)
}

/// A start that finds the log ended in order, and the clock behind it.
fn refused_by_the_clock(options: &EngineOptions) {
    let (report, outcome) = start_once(options);
    assert!(report.clean);
    let error = outcome.err().expect("the clock is behind").to_string();
    assert!(error.contains("--allow-clock-behind"), "{error}");
}

#[test]
fn a_start_before_the_time_of_the_log_closes_it() {
    crate::patience::watch();
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(&folder, 1, "");
    let (log, core, ahead) = an_hour_ahead(&options);
    let clock = Clock::start(SystemTime, LastTime { log_ns: ahead, shown_ns: 0 }, true)
        .expect("it begins there");
    let mut duty = duty(&options, core, log.writer, clock);
    begin(&mut duty, &options.config, log.report.incarnation, None).expect("it has begun");
    duty.into_log().close().expect("the disk is in order");
    // With both of them the lock is given back.
    log.keeper.stop();
    drop(log.control);
    for _ in 0..2 {
        refused_by_the_clock(&options);
    }
}

/// The last sign of life of an engine that had nothing to do is the time of the log's last frame.
#[test]
fn a_start_before_the_end_of_an_idle_engine_is_refused() {
    crate::patience::watch();
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(&folder, 1, "");
    let (log, _core, ahead) = an_hour_ahead(&options);
    log.control.set_heartbeat(ahead);
    log.writer.close().expect("the disk is in order");
    log.keeper.stop();
    drop(log.control);
    refused_by_the_clock(&options);
}

#[test]
fn a_folder_that_others_may_write_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mode = |mode| {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let told = || doubt_of_folder(folder.path());
    for private in [0o700, 0o755, 0o775] {
        mode(private);
        assert_eq!(told(), None, "{private:o}");
    }
    for open in [0o777, 0o1777, 0o702] {
        mode(open);
        assert!(told().expect("anybody may write it").contains("everybody"), "{open:o}");
    }
    assert_eq!(doubt_of_folder(&folder.path().join("none")), None);
    mode(0o755);
    // Only who may give folders away can try the rest.
    let other = geteuid().as_raw() ^ 1;
    if chown(folder.path(), Some(other), None).is_err() {
        return skipped("root, who alone may give folders away");
    }
    let belongs = format!("belongs to user {other}");
    assert!(told().expect("it is another user's").contains(&belongs));
}
