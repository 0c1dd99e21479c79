//! What wakes the keeper while it gathers, and between two writes, over real logs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use touchline_protocol::log::WINDOW_SEGMENT_BYTES;
use touchline_protocol::wait::{LocalSignal, park};

use crate::log::{Environment, Log, LogOptions, WindowPlace, open_in};
use crate::patience::{PATIENCE, Wait, join};
use crate::recovery::NothingToReplay;

/// What nobody waits for is not written within the life of a test.
const NEVER: Duration = Duration::from_secs(3600);

/// Rounds of a test. A keeper that is not woken looks once per second, for which all rounds together have no time.
const ROUNDS: u32 = 200;

fn open(data: &std::path::Path, write_interval: Duration) -> Log {
    let options = LogOptions {
        data: data.to_owned(),
        window_place: WindowPlace::Data,
        window_bytes: None,
        segment_bytes: WINDOW_SEGMENT_BYTES,
        gather: NEVER,
        write_interval,
        accept_loss: false,
    };
    let environment = Environment { attest_after: NEVER, ..Environment::default() };
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
    log.control.set_follower(Arc::clone(&signal));
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
