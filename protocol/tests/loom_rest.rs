//! Every interleaving (within the given number of preemptions) of small cases of the keeper's sleep: who
//! waits for the disk, who follows the log, and work that comes together, each wake it, and nobody is left
//! asleep. Telling, sleeping and waking are the code that runs; what the keeper does awake is modelled as it
//! is in the engine (`engine/src/log/keeper.rs`), with a write that takes no time.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p touchline-protocol --release --test loom_rest`
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::{sync::Arc, time::Duration};

use loom::thread;
use touchline_protocol::{
    sync::{AtomicU32, AtomicU64, Ordering, ReadOnlyU32, fence},
    wait::{
        EventCounter, EventWatch, LocalSignal, ParkingLine, Rest, Sleep, park, sleep_while,
        wake_if_seen_parked,
    },
};

const FOR_EVER: Duration = Duration::from_secs(3600);

fn explore(preemptions: usize, case: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(case);
}

/// When the keeper writes, and what it sleeps through meanwhile.
#[derive(Clone, Copy)]
struct Pace {
    /// It gathers until more than this is there that nobody waits for.
    gather: u64,
    /// It keeps a pause until the clock has struck.
    keeps_pause: bool,
}

/// What duty thread, keeper and a follower of the log share.
#[derive(Default)]
struct Log {
    rest: Rest,
    appended: AtomicU64,
    durable: AtomicU64,
    durable_event: AtomicU32,
    parked: AtomicU32,
    doorbell: AtomicU32,
    struck: AtomicU32,
    ended: AtomicU32,
    follower: LocalSignal,
}

impl Log {
    fn appended(&self) -> u64 {
        self.appended.load(Ordering::Acquire)
    }

    /// The duty thread's part: appends up to `position` and tells the keeper.
    fn append(&self, position: u64, is_wanted: bool) {
        self.appended.store(position, Ordering::Release);
        if self.rest.tell(position, is_wanted, || self.follower.is_parked())
            && !wake_if_seen_parked(ReadOnlyU32::new(&self.parked), &self.doorbell)
        {
            self.follower.wake_if_seen_parked();
        }
    }

    fn wait_durable(&self, position: u64) {
        let watch = EventWatch::new(ReadOnlyU32::new(&self.durable_event));
        loop {
            let seen = watch.current();
            if self.durable.load(Ordering::Relaxed) >= position {
                return;
            }
            watch.wait_changed(seen, FOR_EVER);
        }
    }

    /// Rings for the keeper whatever it sleeps through, once what it looks at is set.
    fn ring(&self, what: &AtomicU32) {
        what.store(1, Ordering::Release);
        EventCounter::new(&self.doorbell).advance();
    }

    /// The keeper's part, until all below `end` is written or it is ended.
    fn keep(&self, pace: Pace, end: u64) {
        let mut moved = 0;
        let is_ended = || self.ended.load(Ordering::Acquire) == 1;
        while self.durable.load(Ordering::Relaxed) < end && !is_ended() {
            let appended = self.appended();
            if appended != moved {
                moved = appended;
                self.follower.wake();
            }
            let durable = self.durable.load(Ordering::Relaxed);
            let is_wanted = self.rest.wanted() > durable;
            let pauses = pace.keeps_pause && self.struck.load(Ordering::Acquire) == 0;
            if appended - durable > pace.gather || is_wanted && !pauses {
                self.durable.store(appended, Ordering::Relaxed);
                EventCounter::new(&self.durable_event).advance();
                continue;
            }
            let gathers = if appended == durable { 0 } else { pace.gather };
            let sleep = Sleep {
                done: durable,
                rests_to: durable + gathers,
                pauses: is_wanted && pauses,
                limit: FOR_EVER,
            };
            let line = ParkingLine::new(&self.parked, ReadOnlyU32::new(&self.doorbell));
            let otherwise = |appended| {
                is_ended()
                    || self.struck.load(Ordering::Acquire) == 1 && pauses
                    || appended != moved && self.follower.is_parked()
            };
            self.rest.sleep(line, &sleep, || self.appended(), otherwise);
        }
    }
}

fn keeper(log: &Arc<Log>, pace: Pace, end: u64) -> thread::JoinHandle<()> {
    let log = Arc::clone(log);
    thread::spawn(move || log.keep(pace, end))
}

#[test]
fn one_that_gathers_is_woken_by_who_waits() {
    explore(2, || {
        let log = Arc::new(Log::default());
        let keeper = keeper(&log, Pace { gather: 10, keeps_pause: false }, 3);
        log.append(1, false);
        log.append(2, true);
        log.wait_durable(2);
        log.append(3, true);
        log.wait_durable(3);
        keeper.join().unwrap();
    });
}

#[test]
fn what_nobody_waits_for_is_written_once_enough_has_come_together() {
    explore(3, || {
        let log = Arc::new(Log::default());
        let keeper = keeper(&log, Pace { gather: 1, keeps_pause: false }, 2);
        log.append(1, false);
        log.append(2, false);
        keeper.join().unwrap();
    });
}

#[test]
fn what_is_wanted_in_a_pause_is_written_behind_it_and_what_comes_later_at_once() {
    explore(2, || {
        let log = Arc::new(Log::default());
        let keeper = keeper(&log, Pace { gather: 10, keeps_pause: true }, 2);
        let clock = Arc::clone(&log);
        let clock = thread::spawn(move || clock.ring(&clock.struck));
        log.append(1, true);
        log.append(2, true);
        keeper.join().unwrap();
        clock.join().unwrap();
    });
}

/// A keeper that wakes the follower once, for the first of what is appended, and is in a write from then on until it
/// is ended.
fn in_a_write(log: &Arc<Log>) -> thread::JoinHandle<()> {
    let log = Arc::clone(log);
    thread::spawn(move || {
        let sleep = Sleep { done: 0, rests_to: 0, pauses: false, limit: FOR_EVER };
        let line = || ParkingLine::new(&log.parked, ReadOnlyU32::new(&log.doorbell));
        while log.appended() == 0 {
            log.rest.sleep(line(), &sleep, || log.appended(), |_| false);
        }
        log.follower.wake();
        let watch = EventWatch::new(ReadOnlyU32::new(&log.doorbell));
        loop {
            let seen = watch.current();
            if log.ended.load(Ordering::Acquire) == 1 {
                return;
            }
            watch.wait_changed(seen, FOR_EVER);
        }
    })
}

/// A follower sleeps until it has heard of all that was appended; `append` is the duty thread's part.
fn follows(keeper: fn(&Arc<Log>) -> thread::JoinHandle<()>, append: fn(&Log, u64)) {
    explore(2, move || {
        let log = Arc::new(Log::default());
        let keeper = keeper(&log);
        let follower = Arc::clone(&log);
        let follower = thread::spawn(move || {
            let line = || [follower.follower.line()].into_iter();
            loop {
                let known = follower.appended();
                if known == 2 {
                    break;
                }
                park(line(), FOR_EVER, || follower.appended() != known);
            }
            follower.ring(&follower.ended);
        });
        append(&log, 1);
        append(&log, 2);
        follower.join().unwrap();
        keeper.join().unwrap();
    });
}

fn gathers(log: &Arc<Log>) -> thread::JoinHandle<()> {
    keeper(log, Pace { gather: 10, keeps_pause: false }, 10)
}

#[test]
fn whoever_follows_is_woken_while_it_gathers() {
    follows(gathers, |log, position| log.append(position, false));
}

#[test]
fn whoever_follows_is_woken_while_it_writes() {
    follows(in_a_write, |log, position| log.append(position, false));
}

/// What the duty thread must not do: leave the follower to a keeper that is awake.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_follower_that_waits_for_the_disk() {
    follows(in_a_write, |log, position| {
        log.appended.store(position, Ordering::Release);
        if log.rest.tell(position, false, || log.follower.is_parked()) {
            wake_if_seen_parked(ReadOnlyU32::new(&log.parked), &log.doorbell);
        }
    });
}

/// What the duty thread must not do: leave the follower to a keeper that gathers.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_follower_that_nobody_asked_about() {
    follows(gathers, |log, position| {
        log.appended.store(position, Ordering::Release);
        if log.rest.tell(position, false, || false) {
            wake_if_seen_parked(ReadOnlyU32::new(&log.parked), &log.doorbell);
        }
    });
}

/// What the duty thread must not do: look whether the keeper sleeps before it has published.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_telling_in_front_of_its_publication() {
    explore(3, || {
        let log = Arc::new(Log::default());
        let keeper = keeper(&log, Pace { gather: 0, keeps_pause: false }, 1);
        if log.rest.tell(1, false, || false) {
            wake_if_seen_parked(ReadOnlyU32::new(&log.parked), &log.doorbell);
        }
        log.appended.store(1, Ordering::Release);
        keeper.join().unwrap();
    });
}

/// A keeper that sleeps until there is anything and who appends it, as `Rest::sleep` and `Rest::tell` are, with or
/// without the fence of each.
fn rests(sleeper_fences: bool, waker_fences: bool) {
    explore(3, move || {
        // Up to where work is no reason to wake: all of it, for who is awake.
        let shared = Arc::new((Log::default(), AtomicU64::new(u64::MAX)));
        let waker = Arc::clone(&shared);
        let waker = thread::spawn(move || {
            let (log, rests_to) = &*waker;
            log.appended.store(1, Ordering::Release);
            if waker_fences {
                fence(Ordering::SeqCst);
            }
            if 1 > rests_to.load(Ordering::Relaxed) {
                wake_if_seen_parked(ReadOnlyU32::new(&log.parked), &log.doorbell);
            }
        });
        let (log, rests_to) = &*shared;
        let doorbell = ReadOnlyU32::new(&log.doorbell);
        let seen = doorbell.load_relaxed();
        rests_to.store(0, Ordering::Relaxed);
        log.parked.store(1, Ordering::Relaxed);
        if sleeper_fences {
            fence(Ordering::SeqCst);
        }
        if log.appended() == 0 {
            sleep_while([(doorbell, seen)], FOR_EVER);
        }
        waker.join().unwrap();
    });
}

#[test]
fn with_both_fences_what_is_appended_ends_the_rest() {
    rests(true, true);
}

/// What a keeper must not do: look for the last time without a fence behind what it has said.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_rest_without_a_fence() {
    rests(false, true);
}

/// What the duty thread must not do: look what the keeper rests to without a fence behind its publication.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_telling_without_a_fence() {
    rests(true, false);
}
