//! What wakes the keeper while it gathers, and between two writes, over real logs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use touchline_protocol::log::WINDOW_SEGMENT_BYTES;
use touchline_protocol::log::control::{CONTROL_FILE, LogState};
use touchline_protocol::log::reader::Follow;
use touchline_protocol::wait::{LocalSignal, park};

use super::is_to_stay_awake;
use crate::log::storage::{GatedStorage, Write};
use crate::log::{Environment, Log, LogOptions, open_in};
use crate::patience::{PATIENCE, Wait, eventually, join};
use crate::recovery::NothingToReplay;
use crate::snapshot::SnapshotSchedule;

/// What nobody waits for is not written within the life of a test.
const NEVER: Duration = Duration::from_secs(3600);

/// Much that has come together.
const MIB: u64 = 1 << 20;

/// Rounds of a test. A keeper that is not woken looks once per second, for which all rounds together have no time.
const ROUNDS: u32 = 200;

fn open(data: &std::path::Path, write_interval: Duration) -> Log {
    open_on(Environment::default(), data, write_interval)
}

fn open_on(environment: Environment, data: &std::path::Path, write_interval: Duration) -> Log {
    let options =
        LogOptions { window_bytes: None, gather: NEVER, write_interval, ..LogOptions::small(data) };
    let environment = Environment { attest_after: NEVER, ..environment };
    open_in(&environment, &options, &mut NothingToReplay, &mut |_| {}).unwrap()
}

/// Appends a transaction without events and tells the keeper.
fn append(log: &mut Log) {
    log.writer.begin(&[1; 8]).unwrap();
    log.writer.commit(1, 0, 0);
    log.writer.tell_keeper();
}

/// A follower hears of each transaction at once, though none is written.
fn follows(log: &mut Log, mut append: impl FnMut(&mut Log)) {
    let durable = log.control.durable();
    let signal = Arc::new(LocalSignal::new());
    log.control.set_follower(Arc::clone(&signal), Follow::Appended);
    let (seen, sees) = mpsc::channel();
    let control = log.control.clone();
    let mut known = control.appended();
    let follower = std::thread::spawn(move || {
        for _ in 0..ROUNDS {
            while control.appended() == known {
                park([signal.line()].into_iter(), NEVER, || control.appended() != known);
            }
            known = control.appended();
            seen.send(()).unwrap();
        }
    });
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        append(log);
        sees.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())).expect("it is woken");
    }
    join(follower, "the follower");
    assert_eq!(log.control.durable(), durable, "nothing is to be written");
}

#[test]
fn whoever_follows_the_log_is_woken_while_it_gathers() {
    let folder = tempfile::tempdir().unwrap();
    follows(&mut open(folder.path(), Duration::ZERO), append);
}

#[test]
fn whoever_follows_the_log_is_woken_between_two_writes() {
    let folder = tempfile::tempdir().unwrap();
    follows(&mut open(folder.path(), NEVER), |log| {
        log.writer.want_durable();
        append(log);
    });
}

#[test]
fn whoever_follows_the_log_is_woken_when_it_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path(), NEVER);
    let signal = Arc::new(LocalSignal::new());
    log.control.set_follower(Arc::clone(&signal), Follow::Appended);
    // Its first turns have something to tell, too.
    assert!(eventually(|| log.control.is_keeper_parked()));
    signal.line().raise();
    log.control.fail("the test says so");
    assert_eq!((log.control.state(), signal.rings()), (LogState::LogFailed, 1));
}

#[test]
fn whoever_follows_what_is_durable_sleeps_while_it_gathers() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path(), Duration::ZERO);
    let signal = Arc::new(LocalSignal::new());
    log.control.set_follower(Arc::clone(&signal), Follow::Durable);
    assert!(eventually(|| log.control.is_keeper_parked()));
    let turns = log.control.keeper_turns();
    // What ends a sleep with nothing to do is no matter of the follower's.
    append(&mut log);
    assert!(eventually(|| log.control.keeper_turns() > turns && log.control.is_keeper_parked()));
    signal.line().raise();
    let rings = log.control.keeper_rings();
    (0..ROUNDS).for_each(|_| append(&mut log));
    assert_eq!((log.control.keeper_rings(), signal.rings()), (rings, 0));
}

/// A disk that tells of each write of blocks that `holds`, by its length, and ends none before what is given last is
/// dropped.
fn held_disk(
    holds: impl Fn(usize) -> bool + Send + Sync + 'static,
) -> (Environment, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (enter, entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    let may_leave = std::sync::Mutex::new(may_leave);
    let storage = GatedStorage::new(move |write| {
        if matches!(write, Write::Blocks(bytes) if holds(bytes)) {
            let _ended = enter.send(());
            // None is held up when nobody lets it go on any more.
            let _let_go = may_leave.lock().unwrap().recv();
        }
        Ok(true)
    });
    (Environment { storage: Arc::new(storage), ..Environment::default() }, entered, leave)
}

/// A log whose keeper is in a write until what is given with it is dropped.
fn in_a_write(folder: &std::path::Path) -> (Log, mpsc::Sender<()>) {
    let is_open = Arc::new(AtomicBool::new(false));
    let holds = Arc::clone(&is_open);
    let (environment, entered, leave) = held_disk(move |_| holds.load(Ordering::Acquire));
    let mut log = open_on(environment, folder, Duration::ZERO);
    is_open.store(true, Ordering::Release);
    log.writer.want_durable();
    append(&mut log);
    entered.recv_timeout(PATIENCE).expect("it is written");
    (log, leave)
}

#[test]
fn whoever_follows_what_is_appended_does_not_wait_for_a_write() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _leave) = in_a_write(folder.path());
    follows(&mut log, append);
}

#[test]
fn whoever_follows_what_is_durable_sleeps_through_a_write() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, leave) = in_a_write(folder.path());
    let signal = Arc::new(LocalSignal::new());
    log.control.set_follower(Arc::clone(&signal), Follow::Durable);
    signal.line().raise();
    append(&mut log);
    assert_eq!(signal.rings(), 0);
    drop(leave);
    assert!(eventually(|| signal.rings() > 0));
}

#[test]
fn a_keeper_does_not_fall_asleep_over_a_schedule_that_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path(), NEVER);
    assert!(!is_to_stay_awake(&log.control, false, false));
    log.control.schedule_snapshots(SnapshotSchedule {
        every_bytes: u64::MAX / 2,
        last: 0,
        program: "/bin/false".into(),
        arguments: Vec::new(),
        pause: NEVER,
    });
    assert!(is_to_stay_awake(&log.control, false, false));
    assert!(!is_to_stay_awake(&log.control, true, false), "it knows it");
}

#[test]
fn who_waits_rings_for_no_keeper_that_keeps_the_time_between_two_writes() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path(), NEVER);
    let control = log.control.clone();
    let wait = Wait::begin();
    loop {
        let rings = control.keeper_rings();
        let mut slept = 0;
        for _ in 0..20 {
            log.writer.want_durable();
            append(&mut log);
            // Time to go to sleep again for one that was woken.
            std::thread::sleep(Duration::from_millis(1));
            slept += u32::from(control.is_keeper_parked());
        }
        // The first ring comes before it knows that somebody waits.
        if control.keeper_rings() == rings && slept == 20 {
            return;
        }
        wait.go_on("who waits rings");
    }
}

/// What is waited for is on disk soon, each time.
fn serves_who_waits(log: &mut Log) {
    let wait = Wait::begin();
    for _ in 0..ROUNDS {
        append(log);
        append(log);
        log.writer.want_durable();
        log.writer.tell_keeper();
        loop {
            let seen = log.control.durable_event().current();
            if log.control.durable() == log.control.appended() {
                break;
            }
            wait.go_on("the keeper does not write");
            log.control.durable_event().wait_changed(seen, Duration::from_millis(100));
        }
    }
}

#[test]
fn a_keeper_that_gathers_is_woken_by_who_waits() {
    let folder = tempfile::tempdir().unwrap();
    serves_who_waits(&mut open(folder.path(), Duration::ZERO));
}

#[test]
fn a_keeper_writes_what_is_waited_for_when_the_time_between_two_writes_is_over() {
    let folder = tempfile::tempdir().unwrap();
    serves_who_waits(&mut open(folder.path(), Duration::from_millis(1)));
}

/// Else a power cut would leave nothing that tells of an incarnation of which a reader has something, and the next
/// one would have the same number.
#[test]
fn the_record_of_an_incarnation_is_on_disk_before_anybody_finds_its_window() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("live").join(CONTROL_FILE);
    let (written, writes) = mpsc::channel();
    let theirs = page.clone();
    let storage = GatedStorage::new(move |write| {
        if matches!(write, Write::Blocks(_)) {
            // Nobody takes it any more when the log is dropped.
            let _last = written.send(theirs.exists());
        }
        Ok(true)
    });
    let environment = Environment { storage: Arc::new(storage), ..Environment::default() };
    let log = open_on(environment, folder.path(), Duration::ZERO);
    assert!(page.exists());
    // The header of the first segment, and the record: nothing else is written before somebody waits for it.
    assert_eq!(writes.try_iter().collect::<Vec<_>>(), [false, false]);
    assert_eq!(log.control.durable(), log.control.appended());
}

/// Appends large transactions up to `position`.
fn append_up_to(log: &mut Log, position: u64) {
    while log.control.appended().0 < position {
        log.writer.begin(&[1; 8]).unwrap();
        log.writer.commit(1, 32_000, 1);
    }
}

/// Between them lies a boundary that no write crosses.
#[test]
fn what_lies_behind_a_boundary_is_written_with_what_lies_in_front_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, entered, leave) = held_disk(|bytes| bytes as u64 >= MIB);
    let mut log = open_on(environment, folder.path(), NEVER);
    // Much that has come together waits for no time between two writes.
    append_up_to(&mut log, MIB + MIB / 16);
    log.writer.tell_keeper();
    entered.recv_timeout(PATIENCE).expect("it is written");
    append_up_to(&mut log, WINDOW_SEGMENT_BYTES + MIB / 2);
    log.writer.want_durable();
    log.writer.tell_keeper();
    drop(leave);
    let wait = Wait::begin();
    while log.control.durable() != log.control.appended() {
        wait.go_on("what lies behind the boundary is not written");
        std::thread::sleep(Duration::from_millis(1));
    }
}
