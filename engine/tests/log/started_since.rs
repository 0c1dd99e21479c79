//! A pass over a log behind whose window an engine goes on meanwhile: what that one writes is no damage of what
//! the window was the last of.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, os::unix::fs::FileExt};

use touchline_engine::inspect::{EngineState, Inspection, Verdict, inspect};
use touchline_protocol::units::Position;

use crate::support::{Place, Random, SEGMENT, Venue};

/// So long the test of an endless pass goes on.
const PATIENCE: Duration = Duration::from_secs(20);

/// The process that the control page names is no more: it stands at 64.
fn forget_process(place: &Place) {
    let control = place.options.data.join("live/control");
    let file = fs::OpenOptions::new().write(true).open(control).unwrap();
    file.write_all_at(&u32::MAX.to_le_bytes(), 64).unwrap();
}

/// A log of some segments whose engine was killed.
fn killed(seed: u64) -> (Place, Random) {
    let place = Place::new();
    let mut random = Random::new(seed);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, 3 * SEGMENT + SEGMENT / 4);
    venue.settle();
    venue.kill();
    forget_process(&place);
    (place, random)
}

/// Looks at the log and does `meanwhile` once its window was looked at; gives how many transactions were seen.
fn look(place: &Place, meanwhile: impl FnOnce()) -> (usize, Inspection) {
    let (mut count, mut meanwhile) = (0, Some(meanwhile));
    let found = inspect(&place.options.data, &mut |_| {
        count += 1;
        if let Some(meanwhile) = meanwhile.take() {
            meanwhile();
        }
    });
    assert!(meanwhile.is_none(), "nothing was read");
    (count, found.unwrap())
}

/// Starts an engine, which goes on for `bytes`, all of it on disk.
fn start(place: &Place, random: &mut Random, bytes: u64) -> Venue {
    let mut venue = place.open();
    let begin = venue.log.control.appended().0;
    for part in 1..=4 {
        venue.submit_up_to(random, begin + part * bytes / 4);
        venue.settle();
    }
    venue
}

#[test]
fn an_engine_that_starts_behind_a_killed_one_during_a_pass_is_no_damage() {
    for (seed, bytes) in [(90, SEGMENT / 4), (91, 3 * SEGMENT)] {
        let (place, mut random) = killed(seed);
        let mut started = None;
        let (count, found) = look(&place, || started = Some(start(&place, &mut random, bytes)));
        let venue = started.unwrap();
        assert_eq!(found.verdict, Verdict::Sound);
        let window = found.window.unwrap();
        assert!(window.is_running(), "{window:?}");
        assert_eq!(found.end, window.durable);
        assert_eq!(window.durable, Position(venue.log.control.durable().0));
        assert_eq!(count, venue.model.records.len(), "each once");
        assert_eq!(found.transactions, count as u64);
        assert_eq!(found.incarnation.0, 2);
    }
}

#[test]
fn an_engine_that_starts_during_a_pass_and_is_killed_too_is_no_damage() {
    let (place, mut random) = killed(92);
    let mut model = None;
    let (count, found) = look(&place, || {
        model = Some(start(&place, &mut random, SEGMENT / 2).kill().0);
        forget_process(&place);
    });
    assert_eq!(found.verdict, Verdict::Sound);
    assert_eq!(found.window.map(|window| window.engine), Some(EngineState::Gone));
    assert_eq!(count, model.unwrap().records.len());
}

#[test]
fn an_engine_that_starts_during_a_pass_and_ends_in_order_is_no_damage() {
    let (place, mut random) = killed(93);
    let mut model = None;
    let (count, found) =
        look(&place, || model = Some(start(&place, &mut random, SEGMENT / 2).close()));
    assert_eq!((found.verdict, found.window, found.closed), (Verdict::Sound, None, true));
    assert_eq!(count, model.unwrap().records.len());
}

#[test]
fn damage_of_what_an_engine_has_written_that_started_during_a_pass_is_found() {
    for (seed, is_killed) in [(94, false), (95, true)] {
        let (place, mut random) = killed(seed);
        let mut left = None;
        let (_, found) = look(&place, || {
            let venue = start(&place, &mut random, SEGMENT / 2);
            let durable = venue.log.control.durable();
            let is_new = |position| position > 3 * SEGMENT + SEGMENT / 2;
            let mut positions = venue.model.records.iter().map(|record| record.position);
            let bad = positions.find(|&position| is_new(position)).unwrap();
            place.flip(bad + 60);
            let running = if is_killed {
                venue.kill();
                forget_process(&place);
                // What it wrote later vouches for it, without the window.
                fs::remove_dir_all(place.options.data.join("live")).unwrap();
                None
            } else {
                Some(venue)
            };
            left = Some((bad, durable, running));
        });
        let (bad, durable, _running) = left.unwrap();
        let Verdict::Damaged { position, attested, .. } = found.verdict else {
            panic!("{:?}", found.verdict)
        };
        assert_eq!(position, Position(bad));
        assert!(attested.0 > bad && attested <= Position(durable.0));
    }
}

/// By its clock, which is behind this machine's, its last sign of life is always too long ago.
#[test]
fn an_engine_whose_clock_is_behind_is_known_by_what_it_does_during_a_pass() {
    let place = Place::new();
    let mut random = Random::new(97);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, SEGMENT + SEGMENT / 4);
    venue.settle();
    let control = &venue.log.control;
    control.set_heartbeat(1);
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let (count, found) = thread::scope(|scope| {
        scope.spawn(|| {
            let mut beat = 2;
            // Not for ever, so that a pass that does not end is told as one.
            while !is_over.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE {
                control.set_heartbeat(beat);
                beat += 1;
                thread::yield_now();
            }
        });
        let looked = look(&place, || {});
        is_over.store(true, Ordering::Relaxed);
        looked
    });
    assert_eq!(found.verdict, Verdict::Sound);
    assert_eq!(found.window.map(|window| window.engine), Some(EngineState::Running));
    assert_eq!(count, venue.model.records.len());
}

#[test]
fn an_engine_that_was_only_stopped_and_goes_on_during_a_pass_is_no_damage() {
    let place = Place::new();
    let mut random = Random::new(96);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, SEGMENT + SEGMENT / 4);
    venue.settle();
    // Long ago.
    venue.log.control.set_heartbeat(1);
    let (count, found) = look(&place, || {
        for _ in 0..4 {
            venue.submit(&random.command(60_000));
            venue.settle();
        }
        venue.log.control.set_heartbeat(2);
    });
    assert_eq!(found.verdict, Verdict::Sound);
    assert_eq!(count, venue.model.records.len());
}
