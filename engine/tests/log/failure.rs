//! Disks that fail while the engine runs, or cannot keep up.

use std::{sync::atomic::Ordering, thread, time::Duration};

use touchline_engine::log::{BeginError, CloseError, Log};
use touchline_protocol::log::WINDOW_BYTES_MIN;

use crate::{
    patience::{Wait, eventually},
    support::{Place, Random, SEGMENT, Venue, wait_until_failed},
};

/// The log has failed: `durable` stays, commands are refused, nothing that was appended is lost.
fn check_failed(place: &Place, mut venue: Venue, durable: u64, why: &str) {
    wait_until_failed(&venue);
    let control = &venue.log.control;
    assert_eq!(control.durable().0, durable);
    let writes = place.disk.writes.load(Ordering::SeqCst);
    assert!(control.failure().unwrap().contains(why), "{:?}", control.failure());
    assert!(!venue.log.writer.can_take());
    assert_eq!(venue.log.writer.begin(&[0; 8]), Err(BeginError::NotRunning));
    let Venue { log, model, .. } = venue;
    let Log { writer, keeper, control, .. } = log;
    assert!(matches!(writer.close(), Err(CloseError::Failed { .. })));
    keeper.stop();
    assert_eq!(control.durable().0, durable);
    assert_eq!(place.disk.writes.load(Ordering::SeqCst), writes, "it goes on");
    drop(control);
    place.disk.broken.store(false, Ordering::SeqCst);
    place.disk.panics.store(false, Ordering::SeqCst);
    let venue = place.open();
    assert!(venue.report().from_window > 0);
    assert_eq!(venue.model, model);
}

#[test]
fn an_io_error_stops_the_log_for_good() {
    let place = Place::new();
    let mut venue = place.open();
    venue.submit(&[16; 16]);
    venue.settle();
    let durable = venue.log.control.durable().0;
    place.disk.broken.store(true, Ordering::SeqCst);
    venue.submit(&[16; 16]);
    wait_until_failed(&venue);
    // A disk that works again changes nothing: what a failed write has done is not known.
    place.disk.broken.store(false, Ordering::SeqCst);
    check_failed(&place, venue, durable, "os error 5");
}

#[test]
fn a_full_disk_stops_the_log() {
    let place = Place::new();
    let mut random = Random::new(30);
    let mut venue = place.open();
    venue.settle();
    // Until a segment must be made; only then is there anything to say that the disk is full.
    place.disk.errno.store(28, Ordering::SeqCst);
    place.disk.hold(true);
    while venue.log.control.appended().0 < SEGMENT + SEGMENT / 2 {
        venue.append(&random.command(60_000));
    }
    let durable = venue.log.control.durable().0;
    place.disk.broken.store(true, Ordering::SeqCst);
    venue.log.writer.tell_keeper();
    place.disk.hold(false);
    check_failed(&place, venue, durable, "os error 28");
}

#[test]
fn a_panic_of_the_keeper_stops_the_log() {
    let place = Place::new();
    let mut venue = place.open();
    venue.settle();
    let durable = venue.log.control.durable().0;
    // The message of the panic is part of the test's output.
    place.disk.panics.store(true, Ordering::SeqCst);
    venue.submit(&[16; 16]);
    check_failed(&place, venue, durable, "the disk driver went mad");
}

#[test]
fn a_disk_that_does_not_keep_up_fills_the_window_and_nothing_is_lost() {
    let place = Place::new();
    let mut random = Random::new(31);
    let mut venue = place.open();
    place.disk.hold(true);
    while venue.log.writer.can_take() {
        venue.append(&random.command(60_000));
    }
    let position = venue.log.writer.position().0;
    assert!(position > WINDOW_BYTES_MIN - 3 * SEGMENT, "{position}");
    assert_eq!(venue.log.writer.begin(&[0; 8]), Err(BeginError::Full { position }));
    assert_eq!(venue.log.writer.position().0, position);
    place.disk.hold(false);
    for _ in 0..200 {
        venue.submit(&random.command(60_000));
    }
    let known = venue.close();
    assert_eq!(place.open().model, known);
}

#[test]
fn the_further_the_disk_is_behind_the_larger_are_its_writes() {
    let mut place = Place::new();
    place.options.window_bytes = Some(4 * WINDOW_BYTES_MIN);
    place.options.segment_bytes = 8 * SEGMENT;
    let mut random = Random::new(32);
    let mut venue = place.open();
    venue.settle();
    assert!(place.disk.largest_write.load(Ordering::SeqCst) < SEGMENT);
    place.disk.hold(true);
    while venue.log.writer.can_take() {
        venue.append(&random.command(60_000));
    }
    place.disk.hold(false);
    venue.settle();
    // An eighth of the window.
    assert_eq!(place.disk.largest_write.load(Ordering::SeqCst), 2 * SEGMENT);
    let known = venue.close();
    assert_eq!(place.open().model, known);
}

#[test]
fn nothing_is_written_behind_a_write_that_failed() {
    let mut place = Place::new();
    // No segment is to be made for what comes next.
    place.options.segment_bytes = 8 * SEGMENT;
    let mut random = Random::new(33);
    let mut venue = place.open();
    venue.settle();
    let writes = || place.disk.writes.load(Ordering::SeqCst);
    let before = writes();
    let wait = Wait::begin();
    // Else it writes the first of them by themselves.
    while !venue.log.control.is_keeper_parked() {
        wait.go_on("the keeper does not sleep");
        thread::sleep(Duration::from_millis(1));
    }
    place.disk.hold(true);
    while venue.log.writer.can_take() {
        venue.append(&random.command(60_000));
    }
    venue.log.writer.tell_keeper();
    assert!(eventually(|| writes() > before), "nothing is written");
    let durable = venue.log.control.durable().0;
    place.disk.broken.store(true, Ordering::SeqCst);
    place.disk.hold(false);
    wait_until_failed(&venue);
    assert_eq!(writes(), before + 1);
    check_failed(&place, venue, durable, "os error 5");
}

#[test]
fn closing_without_a_keeper_says_so() {
    let place = Place::new();
    let mut venue = place.open();
    venue.settle();
    venue.append(&[16; 16]);
    let Venue { log: Log { writer, keeper, control, .. }, model, .. } = venue;
    drop(control);
    keeper.stop();
    match writer.close() {
        // The keeper may have written it before it saw that it was to stop; then only the closing
        // record is missing.
        Err(CloseError::KeeperGone) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(place.open().model, model);
}
