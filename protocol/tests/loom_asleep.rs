//! Every interleaving (within the given number of preemptions) of small cases of a thread that sleeps in the kernel's
//! queue of events: whoever has a letter for it, and whoever moves the durable watermark while it holds something back
//! for that, never leaves it asleep. The flags are the code that runs; the event and the sleeper's turns are modelled
//! on those of the engine (`engine/src/gateway/{bell,service}.rs`), with an event that is quieted in each turn. And of
//! an audience that may be empty: who has joined it is woken for whatever its first look did not find.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p touchline-protocol --release --test loom_asleep`
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::{sync::Arc, time::Duration};

use loom::thread;
use touchline_protocol::{
    sync::{AtomicU32, AtomicU64, Ordering, ReadOnlyU32, fence},
    wait::{Asleep, Audience, EventCounter, EventWatch},
};

const FOR_EVER: Duration = Duration::from_secs(3600);

/// What the sleeper and those who have news for it share.
#[derive(Default)]
struct Bell {
    asleep: Asleep,
    /// The event: readable while it is not what it was when it was quieted.
    event: AtomicU32,
    letters: AtomicU64,
    durable: AtomicU64,
}

impl Bell {
    fn put_letter(&self) {
        self.letters.fetch_add(1, Ordering::Release);
        self.ring(self.asleep.is_to_wake());
    }

    fn move_durable(&self, position: u64) {
        self.durable.store(position, Ordering::Release);
        self.ring(self.asleep.is_to_wake_for_durable());
    }

    fn ring(&self, is_to_wake: bool) {
        if is_to_wake {
            EventCounter::new(&self.event).advance();
        }
    }

    /// The sleeper's part, until it has taken all letters and what the last of them asked for is durable. Each letter
    /// is something that it holds back until the watermark is at the letter's number, if it `says_so`.
    fn turns(&self, letters: u64, says_so: bool) {
        let event = EventWatch::new(ReadOnlyU32::new(&self.event));
        let (mut quieted, mut taken, mut durable) = (event.current(), 0, 0);
        while taken < letters || durable < letters {
            self.asleep.begin(says_so && taken > durable);
            let has_work = self.letters.load(Ordering::Acquire) != taken
                || taken > durable && self.durable.load(Ordering::Acquire) != durable;
            if !has_work {
                event.wait_changed(quieted, FOR_EVER);
            }
            quieted = event.current();
            self.asleep.end();
            taken = self.letters.load(Ordering::Acquire);
            durable = self.durable.load(Ordering::Acquire);
        }
    }
}

/// Has a sleeper take so many letters, while the others do their parts.
fn explore(preemptions: usize, letters: u64, one: fn(&Bell), another: fn(&Bell)) {
    explore_as(preemptions, (letters, true), one, another);
}

/// The same of a sleeper that says what it waits for, or does not.
fn explore_as(
    preemptions: usize,
    (letters, says_so): (u64, bool),
    one: fn(&Bell),
    another: fn(&Bell),
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let bell = Arc::new(Bell::default());
        let others = [one, another].map(|does| {
            let bell = Arc::clone(&bell);
            thread::spawn(move || does(&bell))
        });
        bell.turns(letters, says_so);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_letter_wakes_whatever_else_is_awaited() {
    explore(
        3,
        2,
        |bell| bell.put_letter(),
        |bell| {
            bell.put_letter();
            bell.move_durable(2);
        },
    );
}

#[test]
fn the_watermark_wakes_who_holds_something_back_for_it() {
    explore(3, 1, |bell| bell.put_letter(), |bell| bell.move_durable(1));
}

#[test]
fn a_watermark_that_moves_on_wakes_for_each_that_it_is_awaited_for() {
    explore(
        2,
        2,
        |bell| {
            bell.put_letter();
            bell.put_letter();
        },
        |bell| {
            bell.move_durable(1);
            bell.move_durable(2);
        },
    );
}

/// What nobody must do who has news: ask whether the sleeper is to be woken before it has published.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_look_in_front_of_its_publication() {
    explore(
        3,
        1,
        |bell| bell.move_durable(1),
        |bell| {
            let is_to_wake = bell.asleep.is_to_wake();
            bell.letters.fetch_add(1, Ordering::Release);
            bell.ring(is_to_wake);
        },
    );
}

/// What the sleeper must not do: hold something back and not say so.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_sleeper_that_does_not_say_what_it_waits_for() {
    explore_as(3, (1, false), |bell| bell.put_letter(), |bell| bell.move_durable(1));
}

/// A sleeper and who has a letter for it, as `Asleep::begin` and `Asleep::is_to_wake` are, with or without the fence of
/// each.
fn falls_asleep(sleeper_fences: bool, other_fences: bool) {
    loom::model(move || {
        /// Flag, event and letters.
        type Words = (AtomicU32, AtomicU32, AtomicU64);
        let words = Arc::new(Words::default());
        let other = Arc::clone(&words);
        let other = thread::spawn(move || {
            other.2.store(1, Ordering::Release);
            if other_fences {
                fence(Ordering::SeqCst);
            }
            if other.0.load(Ordering::Relaxed) != 0 {
                EventCounter::new(&other.1).advance();
            }
        });
        let event = EventWatch::new(ReadOnlyU32::new(&words.1));
        let quieted = event.current();
        words.0.store(1, Ordering::Relaxed);
        if sleeper_fences {
            fence(Ordering::SeqCst);
        }
        if words.2.load(Ordering::Acquire) == 0 {
            event.wait_changed(quieted, FOR_EVER);
        }
        other.join().unwrap();
    });
}

#[test]
fn with_both_fences_a_letter_wakes() {
    falls_asleep(true, true);
}

/// What falling asleep must not be: without a fence in front of the last look.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_last_look_without_a_fence() {
    falls_asleep(false, true);
}

/// What nobody must do who has news: look at the flag without a fence behind what was published.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_look_at_the_flag_without_a_fence() {
    falls_asleep(true, false);
}

/// What the feed thread and a reader share: what is published, the event that wakes readers, and their number.
#[derive(Default)]
struct Feed {
    published: AtomicU64,
    event: AtomicU32,
    readers: Audience,
}

/// A reader is counted and let in while something is published, and reads it.
fn is_let_in(publish: fn(&Feed)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let feed = Arc::new(Feed::default());
        let writer = Arc::clone(&feed);
        let writer = thread::spawn(move || publish(&writer));
        feed.readers.join();
        let reader = Arc::clone(&feed);
        // Another thread, as the reader is in another process than the gateway, which counts it.
        let reader = thread::spawn(move || {
            let watch = EventWatch::new(ReadOnlyU32::new(&reader.event));
            loop {
                let seen = watch.current();
                if reader.published.load(Ordering::Acquire) == 1 {
                    return;
                }
                watch.wait_changed(seen, FOR_EVER);
            }
        });
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn who_is_counted_before_it_looks_is_woken_for_what_it_does_not_find() {
    is_let_in(|feed| {
        feed.published.store(1, Ordering::Release);
        if feed.readers.is_there() {
            EventCounter::new(&feed.event).advance();
        }
    });
}

/// What a writer must not do: look whether there is anybody before it has published.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_look_for_an_audience_in_front_of_the_publication() {
    is_let_in(|feed| {
        let is_there = feed.readers.is_there();
        feed.published.store(1, Ordering::Release);
        if is_there {
            EventCounter::new(&feed.event).advance();
        }
    });
}
