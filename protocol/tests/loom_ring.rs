//! Every interleaving (within the given number of preemptions) of small cases of the ring and of
//! sleeping and waking: nothing lost, nothing torn, nobody left asleep. Where an order that the code
//! asks for were missing, the model finds it, with one exception: it never lets a load happen after
//! a later store, so that the release of the consumer's head rests on its comment alone.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p touchline-protocol --release --test loom_ring`
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::{sync::Arc, time::Duration};

use loom::sync::Mutex;
use loom::thread;
use touchline_protocol::{
    ring::{Capacity, Consumer, HeapRing, MessageBuffer, Producer, PushError},
    sync::{AtomicU32, AtomicU64, EndFlag, Ordering, ReadOnlyU32, fence, yield_now},
    wait::{self, EventCounter, EventWatch, LocalSignal, ParkingLine, wake_if_parked},
};

const FOR_EVER: Duration = Duration::from_secs(3600);

fn explore(preemptions: usize, case: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(case);
}

/// A framed message over `slots` slots in which every word behind the header is `mark`. Long ones
/// end one word into their last slot: fewer steps to explore.
fn message(slots: usize, mark: u64) -> Vec<u8> {
    let words = (slots - 1) * 8 + 1 + usize::from(slots == 1);
    let mut bytes = u64::try_from(words * 8 - 8).unwrap().to_le_bytes().to_vec();
    for _ in 1..words {
        bytes.extend_from_slice(&mark.to_le_bytes());
    }
    bytes
}

fn ring(slots: usize, start: u64) -> (Producer<Arc<HeapRing>>, Consumer<Arc<HeapRing>>) {
    let ring = Arc::new(HeapRing::starting_at(Capacity::new(slots).unwrap(), start));
    (Producer::new(Arc::clone(&ring)), Consumer::new(ring))
}

fn push(producer: &mut Producer<Arc<HeapRing>>, bytes: &[u8]) {
    while let Err(error) = producer.try_push(bytes) {
        assert!(matches!(error, PushError::Full { .. }), "{error}");
        yield_now();
    }
}

fn expect(consumer: &mut Consumer<Arc<HeapRing>>, into: &mut MessageBuffer, bytes: &[u8]) {
    loop {
        match consumer.poll(into).unwrap() {
            Some(length) => {
                assert_eq!(into.bytes(length), bytes);
                return;
            }
            None => yield_now(),
        }
    }
}

/// Sends messages of these sizes in slots through a ring of `slots` slots whose indices start at
/// `start`.
fn transfer(slots: usize, start: u64, sizes: &'static [usize], preemptions: usize) {
    explore(preemptions, move || {
        let (mut producer, mut consumer) = ring(slots, start);
        let sender = thread::spawn(move || {
            for (mark, size) in (1..).zip(sizes) {
                push(&mut producer, &message(*size, mark));
                producer.bring_near(2);
            }
        });
        let mut into = Box::new(MessageBuffer::new());
        for (mark, size) in (1..).zip(sizes) {
            expect(&mut consumer, &mut into, &message(*size, mark));
        }
        assert_eq!(consumer.poll(&mut into), Ok(None));
        sender.join().unwrap();
    });
}

#[test]
fn messages_of_one_slot_pass_in_order_through_two_slots() {
    transfer(2, 0, &[1, 1, 1, 1], 3);
}

#[test]
fn messages_of_one_to_three_slots_pass_whole_through_four() {
    transfer(4, 0, &[1, 2, 3, 2], 3);
}

#[test]
fn messages_pass_whole_where_slots_and_indices_wrap() {
    transfer(4, u64::MAX - 2, &[2, 3, 1], 3);
}

#[test]
fn a_batch_becomes_visible_as_a_whole() {
    explore(3, || {
        let (mut producer, mut consumer) = ring(4, 3);
        let sender = thread::spawn(move || {
            producer.stage(&message(1, 1)).unwrap();
            producer.stage(&message(2, 2)).unwrap();
            producer.publish();
        });
        let mut into = Box::new(MessageBuffer::new());
        expect(&mut consumer, &mut into, &message(1, 1));
        let length = consumer.poll(&mut into).unwrap().expect("published with the first");
        assert_eq!(into.bytes(length), message(2, 2));
        sender.join().unwrap();
    });
}

/// The engine sends its last message and ends; the sender, who holds no end of that ring, finds the socket closed and
/// tells of it by `set`; the receiver, if `is_set`, looks at the ring once more and gives up
/// (`protocol/src/client/rings.rs`).
fn an_end_that_the_sender_finds<F: Default + Send + Sync + 'static>(
    set: fn(&F),
    is_set: fn(&F) -> bool,
) {
    explore(3, move || {
        let (mut producer, mut consumer) = ring(2, 0);
        // The kernel orders what the engine does before it closes the socket and what is done by who finds it so.
        let shared = Arc::new((AtomicU32::new(0), F::default()));
        let [engine, sender] = [(); 2].map(|()| Arc::clone(&shared));
        let engine = thread::spawn(move || {
            producer.try_push(&message(1, 7)).unwrap();
            engine.0.store(1, Ordering::Release);
        });
        let sender = thread::spawn(move || {
            if sender.0.load(Ordering::Acquire) == 1 {
                set(&sender.1);
            }
        });
        let mut into = Box::new(MessageBuffer::new());
        if consumer.poll(&mut into).unwrap().is_none() && is_set(&shared.1) {
            assert!(consumer.has_messages(), "given up with a message unread");
        }
        engine.join().unwrap();
        sender.join().unwrap();
    });
}

#[test]
fn what_came_before_an_end_that_another_thread_finds_is_read() {
    an_end_that_the_sender_finds(EndFlag::set, EndFlag::is_set);
}

/// What the flag must not be: one that orders nothing.
#[test]
#[should_panic(expected = "given up with a message unread")]
fn the_model_finds_an_end_that_hides_what_came_before_it() {
    an_end_that_the_sender_finds(
        |flag: &AtomicU32| flag.store(1, Ordering::Relaxed),
        |flag| flag.load(Ordering::Relaxed) == 1,
    );
}

#[test]
fn a_parked_consumer_is_woken_for_every_message() {
    explore(3, || {
        let (mut producer, mut consumer) = ring(4, 0);
        let signal = Arc::new(LocalSignal::new());
        let waker = Arc::clone(&signal);
        let sender = thread::spawn(move || {
            for mark in 1..=2 {
                producer.try_push(&message(1, mark)).unwrap();
                waker.wake();
            }
        });
        let mut into = Box::new(MessageBuffer::new());
        for mark in 1..=2 {
            let length = loop {
                if let Some(length) = consumer.poll(&mut into).unwrap() {
                    break length;
                }
                wait::park(std::iter::once(signal.line()), FOR_EVER, || consumer.has_messages());
            };
            assert_eq!(into.bytes(length), message(1, mark));
        }
        sender.join().unwrap();
    });
}

#[test]
fn one_sleeper_on_two_lines_is_woken_by_both_wakers() {
    explore(2, || {
        let lines = [(); 2].map(|()| Arc::new((LocalSignal::new(), AtomicU64::new(0))));
        let wakers = lines.clone().map(|line| {
            thread::spawn(move || {
                line.1.store(1, Ordering::Release);
                line.0.wake();
            })
        });
        let done = || lines.iter().all(|line| line.1.load(Ordering::Acquire) == 1);
        let arrived = || lines.iter().map(|line| line.1.load(Ordering::Relaxed)).sum::<u64>();
        let mut seen = 0;
        while !done() {
            wait::park(lines.iter().map(|line| line.0.line()), FOR_EVER, || arrived() > seen);
            seen = arrived();
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

#[test]
fn every_watch_sees_the_last_advance() {
    explore(2, || {
        let shared = Arc::new((AtomicU32::new(u32::MAX), AtomicU64::new(0)));
        let watches = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let watch = EventWatch::new(ReadOnlyU32::new(&shared.0));
                loop {
                    let seen = watch.current();
                    if shared.1.load(Ordering::Relaxed) == 2 {
                        return;
                    }
                    watch.wait_changed(seen, FOR_EVER);
                }
            })
        });
        for value in 1..=2 {
            shared.1.store(value, Ordering::Relaxed);
            EventCounter::new(&shared.0).advance();
        }
        for watch in watches {
            watch.join().unwrap();
        }
    });
}

/// A reply waits for the disk. A worker has it and falls asleep; a second thread, which sleeps on the
/// bells, hears the disk only if it has found that it has to, so the worker rings for it
/// (`adapter/src/link/watch.rs`). `worker_rings` leaves that out.
fn a_reply_that_a_worker_leaves_behind(worker_rings: bool) {
    struct Words {
        /// How far the log is on disk, and the bell that each write rings.
        durable: AtomicU64,
        durable_event: AtomicU32,
        own_bell: AtomicU32,
        /// Whether the reply has yet to be handed on, the worker is awake, the sleeper hears the disk.
        looked: Mutex<(bool, bool, bool)>,
    }
    let words = Arc::new(Words {
        durable: AtomicU64::new(0),
        durable_event: AtomicU32::new(0),
        own_bell: AtomicU32::new(0),
        looked: Mutex::new((true, true, false)),
    });
    let (disk, sleeper) = (Arc::clone(&words), Arc::clone(&words));
    let disk = thread::spawn(move || {
        disk.durable.store(1, Ordering::Release);
        EventCounter::new(&disk.durable_event).advance();
    });
    let sleeper = thread::spawn(move || {
        loop {
            let [event, own] = [&sleeper.durable_event, &sleeper.own_bell]
                .map(|word| (ReadOnlyU32::new(word), ReadOnlyU32::new(word).load_acquire()));
            let hears_disk = {
                let mut looked = sleeper.looked.lock().unwrap();
                looked.0 &= sleeper.durable.load(Ordering::Acquire) == 0;
                if !looked.0 {
                    return;
                }
                looked.2 = !looked.1;
                looked.2
            };
            wait::sleep_while([own].into_iter().chain(hears_disk.then_some(event)), FOR_EVER);
        }
    });
    let left_behind = {
        let mut looked = words.looked.lock().unwrap();
        looked.0 &= words.durable.load(Ordering::Acquire) == 0;
        looked.1 = false;
        !std::mem::replace(&mut looked.2, true) && looked.0
    };
    // A worker that hands the reply on itself rings here so that the case ends.
    let is_done = !words.looked.lock().unwrap().0;
    if is_done || left_behind && worker_rings {
        EventCounter::new(&words.own_bell).advance();
    }
    disk.join().unwrap();
    sleeper.join().unwrap();
}

#[test]
fn a_reply_that_a_worker_leaves_to_the_disk_is_handed_on() {
    explore(3, || a_reply_that_a_worker_leaves_behind(true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_the_reply_that_nobody_rang_for() {
    explore(3, || a_reply_that_a_worker_leaves_behind(false));
}

/// Replies that the adapter's link waits for: its thread sleeps on the bell all the time, and the flag goes up and down
/// for it and for a worker that looks in its place (`adapter/src/link/watch.rs`).
#[derive(Default)]
struct Link {
    /// Published by the engine.
    replies: AtomicU64,
    parked: AtomicU32,
    doorbell: AtomicU32,
    /// Rung within the process, so that a case ends.
    own_bell: AtomicU32,
    /// Replies that were handed on, and workers that are awake.
    looked: Mutex<(u64, usize)>,
}

impl Link {
    fn line(&self) -> ParkingLine<'_> {
        ParkingLine::new(&self.parked, ReadOnlyU32::new(&self.doorbell))
    }

    fn has_more(&self, handed_on: u64) -> bool {
        self.replies.load(Ordering::Acquire) > handed_on
    }

    /// The engine's part.
    fn reply(&self) {
        self.replies.fetch_add(1, Ordering::Release);
        wake_if_parked(ReadOnlyU32::new(&self.parked), &self.doorbell);
    }

    /// The part of the link's thread, until so many replies are handed on.
    fn watch(&self, all: u64, arm: Arm) {
        loop {
            let bells = [&self.doorbell, &self.own_bell]
                .map(|word| (ReadOnlyU32::new(word), ReadOnlyU32::new(word).load_acquire()));
            let may_sleep = {
                let mut looked = self.looked.lock().unwrap();
                let nobody_else = looked.1 == 0;
                if nobody_else {
                    self.line().lower();
                }
                let before = std::mem::replace(&mut looked.0, self.replies.load(Ordering::Acquire));
                if looked.0 == all {
                    return;
                }
                looked.0 == before && !(nobody_else && arm(self, looked.0))
            };
            if may_sleep {
                wait::sleep_while(bells, FOR_EVER);
            }
        }
    }

    /// The part of a worker that is awake and falls asleep.
    fn worker_sleeps(&self, all: u64, arm: Arm) {
        let mut looked = self.looked.lock().unwrap();
        looked.1 -= 1;
        loop {
            looked.0 = self.replies.load(Ordering::Acquire);
            if looked.0 == all {
                return EventCounter::new(&self.own_bell).advance();
            }
            if looked.1 > 0 || !arm(self, looked.0) {
                return;
            }
        }
    }

    /// The part of a worker that wakes.
    fn worker_wakes(&self) {
        let mut looked = self.looked.lock().unwrap();
        looked.1 += 1;
        if looked.1 == 1 {
            self.line().lower();
        }
    }
}

/// Has the engine ring from now on, and tells whether there is more than so many replies by then.
type Arm = fn(&Link, u64) -> bool;

fn arm(link: &Link, handed_on: u64) -> bool {
    link.line().raise();
    link.has_more(handed_on)
}

/// The engine sends two replies to a thread that sleeps on the bell, beside `workers` that fall asleep.
fn hands_on(preemptions: usize, workers: usize, arm: Arm) {
    explore(preemptions, move || {
        let link = Arc::new(Link::default());
        link.looked.lock().unwrap().1 = workers;
        let [engine, watching] = [(); 2].map(|()| Arc::clone(&link));
        let engine = thread::spawn(move || {
            engine.reply();
            engine.reply();
        });
        let watching = thread::spawn(move || watching.watch(2, arm));
        (0..workers).for_each(|_| link.worker_sleeps(2, arm));
        engine.join().unwrap();
        watching.join().unwrap();
    });
}

#[test]
fn who_sleeps_on_a_bell_under_a_raised_flag_is_woken_for_every_reply() {
    hands_on(3, 0, arm);
}

#[test]
fn a_worker_that_falls_asleep_leaves_the_bell_to_who_sleeps_on_it() {
    hands_on(2, 1, arm);
}

#[test]
fn a_worker_that_wakes_and_falls_asleep_again_takes_no_ring_away() {
    explore(2, || {
        let link = Arc::new(Link::default());
        let [engine, watching] = [(); 2].map(|()| Arc::clone(&link));
        let engine = thread::spawn(move || engine.reply());
        let watching = thread::spawn(move || watching.watch(1, arm));
        link.worker_wakes();
        link.worker_sleeps(1, arm);
        engine.join().unwrap();
        watching.join().unwrap();
    });
}

/// What raising the flag must not be: without a fence in front of the look behind it.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_flag_that_is_raised_without_a_fence() {
    hands_on(3, 0, |link, handed_on| {
        link.parked.store(1, Ordering::Relaxed);
        link.has_more(handed_on)
    });
}

/// What nobody must do: look first and raise the flag then.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_flag_that_is_raised_behind_the_look() {
    hands_on(3, 0, |link, handed_on| {
        let has_more = link.has_more(handed_on);
        link.line().raise();
        has_more
    });
}

/// A sleeper and its waker as `park` and `wake_if_parked` are, with or without the fence of each.
fn parks(sleeper_fences: bool, waker_fences: bool) {
    explore(3, move || {
        let link = Arc::new(Link::default());
        let waker = Arc::clone(&link);
        let waker = thread::spawn(move || {
            waker.replies.store(1, Ordering::Release);
            if waker_fences {
                fence(Ordering::SeqCst);
            }
            wait::wake_if_seen_parked(ReadOnlyU32::new(&waker.parked), &waker.doorbell);
        });
        let doorbell = ReadOnlyU32::new(&link.doorbell);
        let seen = doorbell.load_relaxed();
        link.parked.store(1, Ordering::Relaxed);
        if sleeper_fences {
            fence(Ordering::SeqCst);
        }
        if !link.has_more(0) {
            wait::sleep_while([(doorbell, seen)], FOR_EVER);
        }
        waker.join().unwrap();
    });
}

#[test]
fn with_both_fences_nobody_is_left_asleep() {
    parks(true, true);
}

/// What parking must not be: without its fence.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_parking_without_a_fence() {
    parks(false, true);
}

/// What waking must not be: without its fence.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_waking_without_a_fence() {
    parks(true, false);
}

/// What the ring must not be: the same words with a relaxed publication. If the model let this
/// pass, its verdict on the real ring would be worth nothing.
#[test]
#[should_panic(expected = "torn")]
fn the_model_finds_a_missing_release() {
    explore(2, || {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let writer = Arc::clone(&shared);
        let sender = thread::spawn(move || {
            writer.0.store(7, Ordering::Relaxed);
            writer.1.store(1, Ordering::Relaxed);
        });
        if shared.1.load(Ordering::Relaxed) == 1 {
            fence(Ordering::Acquire);
            assert_eq!(shared.0.load(Ordering::Relaxed), 7, "torn");
        }
        sender.join().unwrap();
    });
}

/// What parking must not be: no doorbell, the flag itself is the futex, and a waker that may only
/// read it. The wake between last look and sleep is lost; the model sees the sleeper left alone.
#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_the_wake_up_that_is_lost_without_a_doorbell() {
    explore(2, || {
        let shared = Arc::new((AtomicU32::new(0), AtomicU64::new(0), AtomicU32::new(0)));
        let waker = Arc::clone(&shared);
        let sender = thread::spawn(move || {
            waker.1.store(1, Ordering::Release);
            fence(Ordering::SeqCst);
            if waker.0.load(Ordering::Relaxed) == 1 {
                // Wakes who sleeps on the flag, but leaves the flag as it is.
                EventCounter::new(&waker.2).advance();
            }
        });
        shared.0.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if shared.1.load(Ordering::Acquire) == 0 {
            EventWatch::new(ReadOnlyU32::new(&shared.0)).wait_changed(1, FOR_EVER);
        }
        sender.join().unwrap();
    });
}
