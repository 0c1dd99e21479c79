//! What nobody waits for is gathered before it is written: for a while, and not without bound. What somebody waits
//! for is where writes keep a time between them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    keeper::turn_keeper,
    patience::{Wait, eventually},
    support::{Place, Random, Venue},
};

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// A place whose log gathers for so long.
fn place(gather: Duration) -> Place {
    let mut place = Place::new();
    place.options.gather = gather;
    place
}

/// Waits until so much is durable, and nobody says that it is waited for.
fn await_disk(venue: &Venue, position: u64) {
    let wait = Wait::begin();
    let control = &venue.log.control;
    loop {
        let seen = control.durable_event().current();
        if control.durable().0 >= position {
            return;
        }
        wait.go_on(format_args!("{position} is not written"));
        control.durable_event().wait_changed(seen, Duration::from_millis(100));
    }
}

#[test]
fn what_nobody_waits_for_is_written_together_with_what_somebody_does() {
    let place = place(NEVER);
    let mut venue = place.open();
    venue.settle();
    let writes = place.disk.writes.load(Ordering::SeqCst);
    let durable = venue.log.control.durable();
    for _ in 0..200 {
        venue.submit(&[16; 16]);
    }
    assert_eq!(venue.log.control.durable(), durable);
    venue.settle();
    assert_eq!(place.disk.writes.load(Ordering::SeqCst), writes + 1);
    let known = venue.close();
    assert_eq!(place.open().model, known);
}

#[test]
fn what_nobody_waits_for_is_written_after_a_while() {
    let place = place(Duration::from_millis(1));
    let mut venue = place.open();
    for _ in 0..5 {
        venue.submit(&[16; 16]);
        await_disk(&venue, venue.log.control.appended().0);
    }
}

/// What is appended without end would otherwise be written piece by piece.
#[test]
fn what_comes_during_a_write_is_gathered_anew() {
    let mut place = place(NEVER);
    let (begin, passed) = (Instant::now(), Arc::new(AtomicU32::new(0)));
    let times = Arc::clone(&passed);
    place.environment.now = Arc::new(move || begin + NEVER * times.load(Ordering::SeqCst));
    let mut venue = place.open();
    venue.settle();
    let writes = place.disk.writes.load(Ordering::SeqCst);
    let durable = venue.log.control.durable().0;
    place.disk.hold(true);
    venue.submit(&[16; 16]);
    let written = venue.log.control.appended().0;
    turn_keeper(&venue.log.control);
    assert_eq!(venue.log.control.durable().0, durable);
    assert_eq!(place.disk.writes.load(Ordering::SeqCst), writes);
    passed.fetch_add(1, Ordering::SeqCst);
    venue.log.control.wake_keeper();
    let is_written = || place.disk.writes.load(Ordering::SeqCst) > writes;
    assert!(eventually(is_written), "nothing is written");
    venue.submit(&[16; 16]);
    place.disk.hold(false);
    await_disk(&venue, written);
    turn_keeper(&venue.log.control);
    assert_eq!(venue.log.control.durable().0, written);
    passed.fetch_add(1, Ordering::SeqCst);
    venue.log.control.wake_keeper();
    await_disk(&venue, venue.log.control.appended().0);
}

#[test]
fn much_that_nobody_waits_for_is_written_at_once() {
    let place = place(NEVER);
    let mut random = Random::new(40);
    let mut venue = place.open();
    venue.settle();
    for _ in 0..5 {
        let begin = venue.log.control.appended().0;
        venue.submit_up_to(&mut random, begin + (1 << 20));
        await_disk(&venue, begin + 1);
    }
}

#[test]
fn what_is_waited_for_between_two_writes_is_written_together() {
    let mut place = place(Duration::ZERO);
    place.options.write_interval = NEVER;
    let mut random = Random::new(41);
    let mut venue = place.open();
    let writes = place.disk.writes.load(Ordering::SeqCst);
    let begin = venue.log.control.appended().0;
    for _ in 0..200 {
        venue.log.writer.want_durable();
        venue.submit(&random.command(64));
    }
    turn_keeper(&venue.log.control);
    assert!(venue.log.control.durable().0 <= begin, "the time between two writes is not over");
    venue.submit_up_to(&mut random, begin + (1 << 20));
    await_disk(&venue, begin + 1);
    let writes = place.disk.writes.load(Ordering::SeqCst) - writes;
    assert!(writes <= 2, "{writes} writes of what one or, at a segment's end, two take");
    venue.kill();
}
