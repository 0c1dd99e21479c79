//! Crash images: the power is cut, or the process dies, in the middle of any call to the disk, while
//! the venue trades or while it starts. What was acknowledged at the session's level is there
//! afterwards, nothing else than what was done is, and the core is the one that a reference makes of
//! the same commands. Now and then there is a snapshot of what was durable, from which the next starts
//! go on.

use super::disk::SimDisk;
use super::random::{Case, Random, seeds, size};
use super::snapshots;
use super::world::{History, Place, Record, SEGMENT, Venue};
use std::time::Duration;
use touchline_protocol::log::{WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES};

/// Accidents that one data folder has, one after the other.
const LIVES: u64 = 4;

/// Bytes of the window for each filler with which it is nearly filled.
const FILLER_SHARE: u64 = 35_000;

/// What happens to the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Accident {
    /// Memory is gone, and so is the live window.
    PowerCut,
    /// Memory stays.
    Death,
    /// The window is removed between death and start.
    WindowRemoved,
}

/// What must be there at the next start.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// What was done, as far as anybody knows.
    pub(super) records: Vec<Record>,
    /// Up to here it is acknowledged as durable.
    pub(super) durable: u64,
    /// All of `records` must be there: they are in the window.
    pub(super) is_in_window: bool,
}

impl Known {
    /// The log was opened with these transactions.
    pub(super) fn check(&self, found: &[Record]) {
        assert_eq!(found, &self.records[..found.len().min(self.records.len())], "never happened");
        let lost = &self.records[found.len()..];
        assert!(
            lost.iter().all(|record| record.end() > self.durable),
            "durable and lost: {lost:?}"
        );
        assert!(!self.is_in_window || lost.is_empty(), "appended and lost: {lost:?}");
    }

    pub(super) fn suffer(&mut self, accident: Accident) {
        if accident != Accident::Death {
            self.is_in_window = false;
        }
    }
}

pub(super) fn happen(place: &Place, accident: Accident) {
    match accident {
        Accident::PowerCut => place.cut_power(),
        Accident::Death => place.disk.die(),
        Accident::WindowRemoved => {
            place.disk.die();
            place.lose_window();
        }
    }
}

fn any_accident(random: &mut Random) -> Accident {
    [
        Accident::PowerCut,
        Accident::PowerCut,
        Accident::Death,
        Accident::Death,
        Accident::WindowRemoved,
    ][random.below(5) as usize]
}

/// The disk stands still, from now on, while the window is nearly filled.
fn fall_behind(place: &Place, venue: &mut Venue, random: &mut Random) {
    place.disk.hold(true);
    fill(place, venue, random);
}

/// Appends as much as a part of the window holds, or as there is room for.
fn fill(place: &Place, venue: &mut Venue, random: &mut Random) {
    let window = place.options.window_bytes.expect("the window's size is set");
    for _ in 0..window / FILLER_SHARE {
        if venue.log.writer.can_take() {
            venue.fill(random, 60_000);
        }
    }
}

/// One engine's life, from a start that may be cut off to an accident.
fn live(place: &Place, random: &mut Random, known: &mut Known) {
    let most = if random.once_in(4) { 6 } else { 40 };
    let after = random.below(most);
    place.disk.plan(after);
    let mut venue = match place.try_open() {
        Ok(venue) => venue,
        Err(error) => {
            assert!(place.disk.has_failed(), "refused after a legitimate fault: {error}");
            return;
        }
    };
    known.check(&venue.history.records);
    let commands = random.below(80);
    let large = random.once_in(3);
    venue.define();
    for _ in 0..commands {
        if large && random.once_in(3) {
            venue.fill(random, 40_000);
        } else {
            venue.trade(random);
        }
        match random.below(8) {
            0 => venue.log.writer.tell_keeper(),
            1 => {
                venue.log.writer.want_durable();
                venue.log.writer.tell_keeper();
            }
            2 => venue.settle(),
            4 if large && random.once_in(8) => {
                fall_behind(place, &mut venue, random);
                place.disk.hold(false);
            }
            3 if random.once_in(4) && !place.disk.has_failed() => {
                snapshots::take(place, &venue);
            }
            _ => {}
        }
    }
    // Often the accident is to come while much is under way.
    if random.once_in(3) {
        venue.settle();
    }
    if random.once_in(10) && !place.disk.has_failed() {
        // Whether that succeeds or not, what is durable then says it all.
        let control = venue.log.control.clone();
        known.records = venue.close().0;
        known.durable = control.durable().0;
    } else {
        (known.records, known.durable) = venue.kill();
    }
    known.is_in_window = true;
}

/// A life, accidents on the way, and at last a start that nothing disturbs.
fn run(place: &Place, random: &mut Random, mut known: Known) {
    for _ in 0..LIVES {
        live(place, random, &mut known);
        let accident = any_accident(random);
        happen(place, accident);
        known.suffer(accident);
    }
    place.disk.plan(u64::MAX);
    let venue = place.open();
    known.check(&venue.history.records);
    let found = venue.history.records.clone();
    venue.history.check(&found);
}

#[test]
fn nothing_acknowledged_is_lost_at_any_crash_point() {
    for seed in seeds(1, size(300, 10_000) / LIVES) {
        let _case = Case(seed);
        let mut random = Random::new(seed);
        let is_direct = !random.once_in(4);
        let mut place = Place::new(SimDisk::new(random.word(), is_direct));
        if random.once_in(2) {
            // Only what somebody waits for is written before much has come together.
            place.options.gather = Duration::from_secs(3600);
        }
        let mut known = Known::default();
        if random.once_in(3) {
            // Close to the end of a segment, where a crash meets the making of files.
            let mut venue = place.open();
            venue.define();
            let short = 1_000 + random.below(60_000);
            let boundary = SEGMENT * (1 + random.below(2));
            venue.fill_up_to(&mut random, boundary, short);
            known.durable = u64::MAX;
            known.records = venue.close().0;
        }
        run(&place, &mut random, known);
    }
}

#[test]
fn a_backlog_is_lost_only_behind_what_is_durable() {
    let (mut largest, mut cases) = (0, 0);
    for seed in seeds(1, size(40, 1_000)) {
        let _case = Case(seed);
        let mut random = Random::new(seed);
        let is_direct = !random.once_in(4);
        let mut place = Place::new(SimDisk::new(random.word(), is_direct));
        if random.once_in(3) {
            // Writes of several window segments, some of which end with a segment of the disk log.
            place.options.window_bytes = Some((4 << random.below(2)) * WINDOW_BYTES_MIN);
            place.options.segment_bytes = SEGMENT * (2 + random.below(5));
        }
        let mut venue = place.open();
        venue.define();
        if random.once_in(2) {
            // So that the window begins anew in the midst of the backlog.
            fill(&place, &mut venue, &mut random);
        }
        venue.settle();
        fall_behind(&place, &mut venue, &mut random);
        let (appended, durable) = venue.marks();
        // What is written in several pieces.
        assert!(appended - durable > 2 * WINDOW_SEGMENT_BYTES, "{durable} of {appended}");
        place.disk.plan(random.below(16));
        place.disk.hold(false);
        venue.settle();
        let (records, durable) = venue.kill();
        largest = largest.max(place.disk.largest_write());
        cases += 1;
        let mut known = Known { records, durable, is_in_window: true };
        let accident = any_accident(&mut random);
        happen(&place, accident);
        known.suffer(accident);
        place.disk.plan(u64::MAX);
        known.check(&place.open().history.records);
    }
    // One case that is repeated may have a small window.
    let had_largest = cases == 1 || largest as u64 > 3 * WINDOW_SEGMENT_BYTES;
    assert!(had_largest, "no piece was of the largest: {largest}");
}

#[test]
fn a_reference_core_without_a_log_agrees() {
    // The comparison that all of the above rests on can fail.
    let place = Place::new(SimDisk::new(1, true));
    let mut random = Random::new(2);
    let mut venue = place.open();
    venue.define();
    for _ in 0..200 {
        venue.trade(&mut random);
    }
    assert!(venue.history.state.core.counts().open_orders > 0);
    let records = venue.history.records.clone();
    venue.history.check(&records);
    let mut other = History::new();
    other.records.clone_from(&records);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| other.check(&records)));
    assert!(outcome.is_err());
}
