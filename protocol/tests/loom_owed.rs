//! Every interleaving (within the given number of preemptions) of small cases of a wake that is owed: whoever sends,
//! and however the keepers come and go, the sleeper takes all of it and is never left asleep.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p touchline-protocol --release --test loom_owed`
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::{iter, sync::Arc, time::Duration};

use loom::thread;
use touchline_protocol::{
    sync::{AtomicU32, AtomicU64, Ordering},
    wait::{LocalSignal, OwedWake, park},
};

const FOR_EVER: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Line {
    sent: AtomicU64,
    signal: LocalSignal,
    owed: OwedWake,
}

impl Line {
    fn wake(&self, is_due: bool) {
        if is_due {
            self.signal.wake();
        }
    }

    fn send(&self) {
        self.sent.fetch_add(1, Ordering::Release);
        self.wake(self.owed.sent());
    }

    /// The sleeper's part, until it has taken so much.
    fn take(&self, all: u64) {
        while self.sent.load(Ordering::Acquire) < all {
            park(iter::once(self.signal.line()), FOR_EVER, || {
                self.sent.load(Ordering::Acquire) >= all
            });
        }
    }
}

/// Has a sleeper take so much, while keepers, so many from the beginning, and another thread do their parts.
fn explore(preemptions: usize, all: u64, keepers: usize, own: fn(&Line), others: fn(&Line)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let line = Arc::new(Line::default());
        let taker = {
            let line = Arc::clone(&line);
            thread::spawn(move || line.take(all))
        };
        (0..keepers).for_each(|_| line.owed.keeper_begins());
        let other = {
            let line = Arc::clone(&line);
            thread::spawn(move || others(&line))
        };
        own(&line);
        other.join().unwrap();
        taker.join().unwrap();
    });
}

#[test]
fn a_keeper_that_sends_and_sleeps_wakes_for_what_it_sent() {
    let sends_and_sleeps = |line: &Line| {
        line.send();
        line.send();
        line.wake(line.owed.keeper_ends());
    };
    explore(4, 2, 1, sends_and_sleeps, |_| {});
}

#[test]
fn what_others_send_while_a_keeper_falls_asleep_is_woken_for_by_one_of_them() {
    let sends_and_sleeps = |line: &Line| {
        line.send();
        line.wake(line.owed.keeper_ends());
    };
    explore(3, 2, 1, sends_and_sleeps, Line::send);
}

#[test]
fn of_two_keepers_the_one_that_stays_settles_what_the_other_leaves() {
    let stays = |line: &Line| {
        line.send();
        line.wake(line.owed.keeper_passes());
        line.wake(line.owed.keeper_ends());
    };
    let leaves = |line: &Line| {
        line.send();
        line.wake(line.owed.keeper_ends());
    };
    explore(3, 2, 2, stays, leaves);
}

#[test]
fn a_keeper_that_comes_and_goes_while_another_sends_leaves_nobody_asleep() {
    let comes_and_goes = |line: &Line| {
        line.owed.keeper_begins();
        line.wake(line.owed.keeper_ends());
    };
    explore(4, 1, 0, Line::send, comes_and_goes);
}

#[test]
fn what_is_sent_behind_a_keeper_that_turns_to_something_longer_is_woken_for_when_it_ends() {
    let turns_and_ends = |line: &Line| {
        line.send();
        line.wake(line.owed.settle());
        line.wake(line.owed.keeper_ends());
    };
    explore(3, 2, 1, turns_and_ends, Line::send);
}

/// A keeper goes while another thread sends, by the same words as in `OwedWake`; `is_due` is the sender's part, behind
/// what it has sent: what is owed, and how many keepers there are.
fn a_keeper_goes_while_another_sends(is_due: fn(&AtomicU32, &AtomicU32) -> bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shared = Arc::new((Line::default(), AtomicU32::new(0), AtomicU32::new(1)));
        let [taker, keeper] = [(); 2].map(|()| Arc::clone(&shared));
        let taker = thread::spawn(move || taker.0.take(1));
        let keeper = thread::spawn(move || {
            let (line, owed, keepers) = &*keeper;
            keepers.fetch_sub(1, Ordering::Relaxed);
            line.wake(owed.swap(0, Ordering::AcqRel) > 0);
        });
        let (line, owed, keepers) = &*shared;
        line.sent.fetch_add(1, Ordering::Release);
        line.wake(is_due(owed, keepers));
        keeper.join().unwrap();
        taker.join().unwrap();
    });
}

#[test]
fn what_is_owed_is_marked_before_the_look_for_a_keeper() {
    a_keeper_goes_while_another_sends(|owed, keepers| {
        owed.fetch_add(1, Ordering::AcqRel);
        keepers.load(Ordering::Relaxed) == 0 && owed.swap(0, Ordering::AcqRel) > 0
    });
}

/// What a sender must not do: look for a keeper first, and mark what is owed then.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_look_for_a_keeper_in_front_of_the_mark() {
    a_keeper_goes_while_another_sends(|owed, keepers| {
        let is_kept = keepers.load(Ordering::Relaxed) > 0;
        owed.fetch_add(1, Ordering::AcqRel);
        !is_kept && owed.swap(0, Ordering::AcqRel) > 0
    });
}

/// What marking must not be: without the order in which a keeper goes and takes what is owed.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_mark_that_orders_nothing() {
    a_keeper_goes_while_another_sends(|owed, keepers| {
        owed.fetch_add(1, Ordering::Relaxed);
        keepers.load(Ordering::Relaxed) == 0 && owed.swap(0, Ordering::AcqRel) > 0
    });
}
