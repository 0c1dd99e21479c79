//! Parking and waking between threads.

use std::{
    fs,
    os::fd::AsFd,
    sync::{
        atomic::{AtomicBool, AtomicU64},
        mpsc,
    },
    thread,
};

use rustix::thread::gettid;

use super::*;
use crate::patience::{PATIENCE as FOR_EVER, Wait};
use crate::shm::{PeerAccess, ReadOnlyRegion, Region};

/// What a wait that lasts [`FOR_EVER`] shows.
const LOST: &str = "a wake-up is lost";
const ROUNDS: u64 = 2_000;

/// Lets the two sides of a ping-pong count to [`ROUNDS`], each sleeping for the other's move.
fn ping_pong(signals: [(ParkingLine<'_>, &(dyn Fn() -> bool + Sync)); 2]) {
    let ball = AtomicU64::new(0);
    let [(first_line, wake_second), (second_line, wake_first)] = signals;
    let play = |side: u64, line: ParkingLine<'_>, wake_peer: &(dyn Fn() -> bool + Sync)| {
        for round in (0..ROUNDS).filter(|round| round % 2 == side) {
            let wait = Wait::begin();
            while ball.load(Ordering::Acquire) != round {
                park(std::iter::once(line), FOR_EVER, || ball.load(Ordering::Acquire) == round);
                wait.go_on(LOST);
            }
            ball.store(round + 1, Ordering::Release);
            wake_peer();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| play(0, first_line, wake_second));
        play(1, second_line, wake_first);
    });
    assert_eq!(ball.load(Ordering::Relaxed), ROUNDS);
}

#[test]
fn no_wake_up_is_lost_within_a_process() {
    let (first, second) = (LocalSignal::new(), LocalSignal::new());
    ping_pong([(first.line(), &|| second.wake()), (second.line(), &|| first.wake())]);
}

#[test]
fn who_else_sleeps_on_a_bell_takes_no_wake_up_away() {
    let signals = [LocalSignal::new(), LocalSignal::new()];
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for signal in &signals {
            let bell = signal.line().doorbell;
            let is_over = &is_over;
            scope.spawn(move || {
                loop {
                    let seen = bell.load_acquire();
                    if is_over.load(Ordering::Acquire) {
                        return;
                    }
                    sleep_while([(bell, seen)], FOR_EVER);
                }
            });
        }
        let [first, second] = &signals;
        ping_pong([(first.line(), &|| second.wake()), (second.line(), &|| first.wake())]);
        is_over.store(true, Ordering::Release);
        for signal in &signals {
            signal.line().raise();
            signal.wake();
        }
    });
}

#[test]
fn a_raised_flag_has_the_bell_rung_for_a_thread_that_sleeps_in_anothers_place() {
    let signal = LocalSignal::new();
    let (published, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    assert!(!signal.wake(), "nobody has asked for it");
    signal.line().raise();
    thread::scope(|scope| {
        scope.spawn(|| {
            let bell = signal.line().doorbell;
            while taken.load(Ordering::Relaxed) < ROUNDS {
                let wait = Wait::begin();
                let seen = bell.load_acquire();
                let found = published.load(Ordering::Acquire);
                if taken.swap(found, Ordering::AcqRel) == found {
                    sleep_while([(bell, seen)], FOR_EVER);
                    wait.go_on(LOST);
                }
            }
        });
        for round in 1..=ROUNDS {
            published.store(round, Ordering::Release);
            assert!(signal.wake());
            let wait = Wait::begin();
            while taken.load(Ordering::Acquire) != round {
                wait.go_on(LOST);
                yield_now();
            }
        }
    });
    signal.line().lower();
    assert!(!signal.wake());
}

#[test]
fn each_side_needs_only_to_read_the_others_words() {
    let make = || {
        let (region, descriptor) = Region::create("test", 4096, PeerAccess::ReadOnly).unwrap();
        (region, ReadOnlyRegion::from_descriptor(descriptor.as_fd(), 4096).unwrap())
    };
    let ((first, first_seen), (second, second_seen)) = (make(), make());
    let words = |region: &Region| (region.u32_at(0).unwrap(), region.u32_at(128).unwrap());
    let seen = |region: &ReadOnlyRegion| (region.u32_at(0).unwrap(), region.u32_at(128).unwrap());
    let ((first_parked, first_bell), (second_parked, second_bell)) =
        (words(&first), words(&second));
    let (first_seen_parked, first_seen_bell) = seen(&first_seen);
    let (second_seen_parked, second_seen_bell) = seen(&second_seen);
    ping_pong([
        (ParkingLine::new(&first_parked, second_seen_bell.view()), &|| {
            wake_if_parked(second_seen_parked.view(), &first_bell)
        }),
        (ParkingLine::new(&second_parked, first_seen_bell.view()), &|| {
            wake_if_parked(first_seen_parked.view(), &second_bell)
        }),
    ]);
}

#[test]
fn one_sleeper_is_woken_by_each_of_many_wakers() {
    // One more than the kernel waits on: the last line is noticed by looking.
    for lines in [2, 64, MAX_LINES, MAX_LINES + 1] {
        let signals: Vec<_> = (0..lines).map(|_| LocalSignal::new()).collect();
        let rung: Vec<_> = (0..lines).map(|_| AtomicBool::new(false)).collect();
        let turn = AtomicU64::new(0);
        thread::scope(|scope| {
            let waker = scope.spawn(|| {
                for (index, (signal, rung)) in signals.iter().zip(&rung).enumerate() {
                    let wait = Wait::begin();
                    while turn.load(Ordering::Acquire) != index as u64 {
                        wait.go_on(LOST);
                        yield_now();
                    }
                    rung.store(true, Ordering::Release);
                    signal.wake();
                }
            });
            for (index, rung) in rung.iter().enumerate() {
                turn.store(index as u64, Ordering::Release);
                let mut waiter = Waiter::new(WaitStrategy::Adaptive);
                let all = signals.iter().map(LocalSignal::line);
                assert!(waiter.wait_until(all, FOR_EVER, || rung.load(Ordering::Acquire)));
            }
            waker.join().unwrap();
        });
    }
}

#[test]
fn the_flag_is_up_at_the_last_look_and_down_afterwards() {
    let (parked, doorbell) = (AtomicU32::new(0), AtomicU32::new(0));
    let line = ParkingLine::new(&parked, ReadOnlyU32::new(&doorbell));
    let mut looked = false;
    park(std::iter::once(line), FOR_EVER, || {
        looked = true;
        assert_eq!(parked.load(Ordering::Relaxed), 1);
        true
    });
    assert!(looked);
    assert_eq!(parked.load(Ordering::Relaxed), 0);
    assert_eq!(doorbell.load(Ordering::Relaxed), 0);
}

#[test]
fn the_bell_is_rung_only_for_a_sleeper_and_a_rung_bell_prevents_sleep() {
    let signal = LocalSignal::new();
    assert!(!signal.wake());
    assert_eq!(signal.doorbell.load(Ordering::Relaxed), 0);
    // The last look sees nothing, and then, before falling asleep, the bell rings.
    park(std::iter::once(signal.line()), FOR_EVER, || {
        assert!(signal.wake());
        false
    });
    assert_eq!(signal.doorbell.load(Ordering::Relaxed), 1);
}

#[test]
fn several_lines_do_not_sleep_either_when_one_was_rung() {
    let signals = [LocalSignal::new(), LocalSignal::new(), LocalSignal::new()];
    park(signals.iter().map(LocalSignal::line), FOR_EVER, || {
        assert!(signals[2].wake());
        false
    });
}

#[test]
fn a_limit_ends_the_wait() {
    let signals = [LocalSignal::new(), LocalSignal::new()];
    for strategy in [WaitStrategy::Spin, WaitStrategy::Adaptive] {
        for lines in 0..=2 {
            let lines = signals[..lines].iter().map(LocalSignal::line);
            let limit = Duration::from_millis(2);
            assert!(!Waiter::new(strategy).wait_until(lines, limit, || false));
        }
    }
}

#[test]
fn the_ladder_spins_then_yields_then_parks_until_reset() {
    #[derive(PartialEq, Eq, Debug)]
    enum Step {
        Paused { looks: u32 },
        Yielded,
        Parked,
    }
    let signal = LocalSignal::new();
    let step = |waiter: &mut Waiter, ready_at: u32| {
        // Whatever else this machine's cores compute meanwhile.
        waiter.yields = Yields::new();
        let (mut looks, mut has_parked) = (0, false);
        let kept_core = waiter.idle(std::iter::once(signal.line()), FOR_EVER, || {
            looks += 1;
            has_parked |= signal.is_parked();
            has_parked || looks == ready_at
        });
        match (kept_core, has_parked) {
            (true, false) => Step::Paused { looks },
            (false, false) => Step::Yielded,
            (false, true) => Step::Parked,
            (true, true) => panic!("slept and kept the core"),
        }
    };
    let mut waiter = Waiter::new(WaitStrategy::Adaptive);
    for _ in 0..2 {
        // What comes ends a step's pauses, and the next step goes on from there.
        assert_eq!(step(&mut waiter, 2), Step::Paused { looks: 2 });
        let mut left = SPINS - 2;
        while left > 0 {
            let looks = left.min(STEP_PAUSES);
            assert_eq!(step(&mut waiter, u32::MAX), Step::Paused { looks });
            left -= looks;
        }
        for _ in 0..YIELDS {
            assert_eq!(step(&mut waiter, u32::MAX), Step::Yielded);
        }
        assert_eq!(step(&mut waiter, u32::MAX), Step::Parked);
        assert_eq!(step(&mut waiter, u32::MAX), Step::Parked, "left the top of the ladder");
        // Whoever else the machine has to serve.
        waiter.note_return(Duration::ZERO, Instant::now());
        waiter.reset();
    }
    // Who shares its core gives it away at once, until it comes back at once.
    waiter.note_return(TAKEN, Instant::now());
    waiter.reset();
    for _ in 0..YIELDS {
        assert_eq!(step(&mut waiter, u32::MAX), Step::Yielded);
    }
    assert_eq!(step(&mut waiter, u32::MAX), Step::Parked);
    waiter.note_return(TAKEN - Duration::from_nanos(1), Instant::now());
    waiter.reset();
    assert_eq!(step(&mut waiter, u32::MAX), Step::Paused { looks: STEP_PAUSES });
    let mut spinner = Waiter::new(WaitStrategy::Spin);
    let whole = Step::Paused { looks: STEP_PAUSES };
    assert!((0..1_000).all(|_| step(&mut spinner, u32::MAX) == whole));
    // However long it has been idle.
    spinner.idle_turns = u32::MAX;
    assert!(spinner.linger());
    assert_eq!(step(&mut spinner, u32::MAX), whole);
}

#[test]
fn beside_who_computes_a_wait_goes_from_pauses_to_sleep() {
    let mut waiter = Waiter::new(WaitStrategy::Adaptive);
    // The pauses are tried again whatever was before: this one does not answer.
    waiter.note_return(TAKEN, Instant::now());
    // It holds for longer than this test takes.
    let ahead = Instant::now() + FOR_EVER;
    for _ in 0..8 {
        waiter.idle_turns = SPINS + 1;
        waiter.note_return(Duration::from_millis(16), ahead);
        waiter.reset();
    }
    for _ in 0..3 {
        for left in (0..SPINS).rev() {
            assert!(waiter.linger(), "{left} pauses are missing");
        }
        assert!(!waiter.linger(), "yields");
        assert!(!waiter.linger(), "yields behind a sleep");
        waiter.reset();
    }
}

#[test]
fn a_yield_that_was_long_counts_if_work_had_come_when_it_was_over() {
    // What they come to holds for longer than this test takes.
    let ahead = Instant::now() + FOR_EVER;
    let long = |waiter: &mut Waiter| {
        waiter.idle_turns = SPINS + 1;
        waiter.note_return(Duration::from_millis(16), ahead);
    };
    let is_left_out = |waiter: &Waiter| waiter.yields.clone().are_left_out(Instant::now);
    let mut waiter = Waiter::new(WaitStrategy::Adaptive);
    for _ in 0..10 {
        // The limit ended that wait, and the next one had its work among other yields.
        long(&mut waiter);
        waiter.step_down();
        waiter.idle_turns = SPINS + 1;
        waiter.reset();
        // The top of the ladder.
        long(&mut waiter);
        waiter.idle_turns = SPINS + YIELDS;
        assert!(!waiter.linger());
        waiter.reset();
        assert!(!is_left_out(&waiter));
    }
    for _ in 0..8 {
        long(&mut waiter);
        waiter.reset();
    }
    assert!(is_left_out(&waiter));
    // Nobody would end a sleep that is short, or one on too many lines: there are yields.
    let signal = LocalSignal::new();
    for (limit, lines) in [(LOOKS, 1), (FOR_EVER, MAX_LINES + 1)] {
        waiter.idle_turns = SPINS;
        let lines = std::iter::repeat_n(signal.line(), lines);
        assert!(!waiter.idle(lines, limit, || false));
        assert_eq!(waiter.idle_turns, SPINS + 1, "it slept");
        waiter.yields.note_end();
    }
    waiter.idle_turns = SPINS;
    assert!(!waiter.idle(std::iter::once(signal.line()), LOOKS * 2, || false));
    assert_eq!(waiter.idle_turns, SPINS, "a yield");
}

#[test]
fn pauses_that_are_in_vain_are_tried_less_and_less_often() {
    /// One wait on a core that somebody else needs; true if it began with pauses.
    fn wait(waiter: &mut Waiter, suffices: bool) -> bool {
        waiter.reset();
        let has_paused = waiter.pause(|| suffices);
        while !(has_paused && suffices) && waiter.pause(|| false) {}
        if !(has_paused && suffices) {
            waiter.idle_turns += 1;
            waiter.note_return(TAKEN, Instant::now());
        }
        has_paused
    }
    let mut waiter = Waiter::new(WaitStrategy::Adaptive);
    let waits_between = |waiter: &mut Waiter| (0..100).find(|_| wait(waiter, false)).unwrap();
    for expected in [0, 1, 3, 7, 15, 31, 63, 63] {
        assert_eq!(waits_between(&mut waiter), expected);
    }
    // What is answered while it pauses goes on with them, and one failure is not taken for many.
    assert_eq!((0..100).position(|_| wait(&mut waiter, true)), Some(63));
    assert!((0..100).all(|_| wait(&mut waiter, true)));
    for expected in [0, 1, 3] {
        assert_eq!(waits_between(&mut waiter), expected);
    }
    // Nor does it change anything that work comes without a wait, while pauses are left out and when they are not,
    assert!((0..7).all(|_| !wait(&mut waiter, false)));
    (0..1_000).for_each(|_| waiter.reset());
    assert_eq!(waits_between(&mut waiter), 0);
    // or that a limit ends pauses which were not long enough.
    assert!((0..15).all(|_| !wait(&mut waiter, false)));
    waiter.reset();
    assert!(!waiter.wait_until(std::iter::empty(), Duration::ZERO, || false));
    waiter.pause(|| false);
    assert!(!waiter.wait_until(std::iter::empty(), Duration::ZERO, || false));
    assert_eq!(waits_between(&mut waiter), 0);
    assert_eq!(waits_between(&mut waiter), 31);
    // Where nobody else needs the core any more, pauses cost nobody anything.
    waiter.note_return(TAKEN - Duration::from_nanos(1), Instant::now());
    assert!(wait(&mut waiter, false));
    assert_eq!(waits_between(&mut waiter), 1);
    // The last yield of a wait counts, and of several late ones the first.
    waiter.note_return(Duration::ZERO, Instant::now());
    assert!(wait(&mut waiter, false));
    waiter.note_return(TAKEN, Instant::now());
    assert_eq!(waits_between(&mut waiter), 1);
    // Who keeps the core for long computes, and is none whom pauses keep waiting.
    waiter.note_return(Duration::from_millis(16), Instant::now());
    assert!(wait(&mut waiter, false));
    assert_eq!(waits_between(&mut waiter), 1);
}

#[test]
fn every_watch_sees_every_advance_also_through_a_read_only_mapping() {
    let (region, descriptor) = Region::create("test", 4096, PeerAccess::ReadOnly).unwrap();
    let seen_region = ReadOnlyRegion::from_descriptor(descriptor.as_fd(), 4096).unwrap();
    let word = region.u32_at(64).unwrap();
    // The count wraps in the middle.
    word.store(u32::MAX - 100, Ordering::Relaxed);
    let watermark = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let seen_word = seen_region.u32_at(64).unwrap();
                let watch = EventWatch::new(seen_word.view());
                let mut last = 0;
                while last < ROUNDS {
                    let wait = Wait::begin();
                    let seen = watch.current();
                    let now = watermark.load(Ordering::Relaxed);
                    assert!(now >= last);
                    last = now;
                    if last < ROUNDS {
                        watch.wait_changed(seen, FOR_EVER);
                        wait.go_on(LOST);
                    }
                }
            });
        }
        let counter = EventCounter::new(&word);
        for value in 1..=ROUNDS {
            watermark.store(value, Ordering::Relaxed);
            counter.advance();
        }
    });
    assert_eq!(word.load(Ordering::Relaxed), (u32::MAX - 100).wrapping_add(ROUNDS as u32));
}

#[test]
fn waiting_for_a_change_ends_by_limit_or_at_once() {
    let word = AtomicU32::new(5);
    let watch = EventWatch::new(ReadOnlyU32::new(&word));
    assert_eq!(watch.wait_changed(5, Duration::from_millis(1)), 5);
    assert_eq!(watch.wait_changed(4, FOR_EVER), 5);
    EventCounter::new(&word).advance();
    assert_eq!(watch.wait_changed(5, FOR_EVER), 6);
}

/// Whether a thread of this process sleeps in the kernel.
fn is_asleep(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    // Behind the name, which may have any characters, is the state.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S"))
}

#[test]
fn a_ring_wakes_few_however_many_sleep_on_the_bell() {
    let signal = LocalSignal::new();
    let line = signal.line();
    let (tell, told) = mpsc::channel();
    let woken = AtomicU32::new(0);
    let crowd = SLEEPERS + 8;
    line.raise();
    let seen = line.doorbell.load_relaxed();
    let count = || woken.load(Ordering::Relaxed);
    thread::scope(|scope| {
        for _ in 0..crowd {
            let (tell, woken) = (tell.clone(), &woken);
            scope.spawn(move || {
                tell.send(gettid().as_raw_nonzero().get()).unwrap();
                sleep_while([(line.doorbell, seen)], FOR_EVER);
                woken.fetch_add(1, Ordering::Relaxed);
            });
        }
        let threads: Vec<i32> = told.iter().take(crowd as usize).collect();
        let wait = Wait::begin();
        while !threads.iter().copied().all(is_asleep) {
            wait.go_on("a thread does not fall asleep");
            yield_now();
        }
        assert!(signal.wake(), "the flag is up");
        let wait = Wait::begin();
        while count() < SLEEPERS {
            wait.go_on(LOST);
            yield_now();
        }
        // Whom a ring wakes is awake when it is over; one that was may sleep on something else by now.
        let asleep = threads.iter().copied().filter(|&thread| is_asleep(thread)).count();
        let at_once = count();
        EventCounter::new(&signal.doorbell).advance();
        assert_eq!(at_once, SLEEPERS);
        assert!(asleep >= (crowd - SLEEPERS) as usize, "only {asleep} sleep on");
    });
    assert_eq!(woken.into_inner(), crowd);
}
