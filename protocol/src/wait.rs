//! Waiting for work without burning a core, and waking who waits. Used by the duty thread, the
//! gateway, the adapter's link and the client library.
//!
//! Waiting goes up a ladder: a few pauses (less than 1 µs together), a few yields of the core (a fifth of a µs each
//! where nobody else needs it), then sleep on a futex (10-20 µs to come back, 0.5-6.5 µs for the one who wakes).
//! A thread leaves out its pauses, but for a try now and then, while another thread wants its core; and its yields while
//! each costs it a slice of the scheduler's. Two words per direction make sleeping safe, each written by
//! one side only, so that each side can map the other's word read-only:
//!
//! ```text
//!   sleeper                                   waker
//!   seen := doorbell                          publish the message
//!   parked := 1                               fence
//!   fence                                     if parked = 1:
//!   if there is no message:                     doorbell += 1
//!     futex wait while doorbell = seen          futex wake on doorbell
//!   parked := 0
//! ```
//!
//! The fences make at least one side see what the other wrote first: the waker the flag, or the
//! sleeper the message. The futex is the doorbell and not the flag because a waker that may not
//! change the futex word can come between the sleeper's last look and its falling asleep, and be
//! missed: a bell that was rung is not equal to `seen` any more, and the sleeper does not fall
//! asleep.

mod asleep;
mod audience;
mod futex;
mod owed;
mod rest;
mod yields;

use std::time::{Duration, Instant};

use crate::sync::{AtomicU32, Ordering, ReadOnlyU32, fence, spin_loop, yield_now};

pub use asleep::Asleep;
pub use audience::Audience;
pub use futex::MAX_LINES;
pub use owed::OwedWake;
pub use rest::{Rest, Sleep};
use yields::Yields;

/// Pauses before the first yield of a thread that waits adaptively: 0.7 µs where a pause takes 28 ns, a little
/// more than an order's round trip. Where more threads wait for each other than there are cores, who is to answer
/// may be waiting for this very core.
pub const SPINS: u32 = 24;

/// Pauses of one step. Between two of them only `ready` is asked: whatever else the caller does per turn, and a look at
/// the clock, cost as much as several pauses.
const STEP_PAUSES: u32 = 16;

/// Yields before the first sleep: some 25 µs of an idle core, more than a wake takes. With fewer, two
/// sides that answer each other fall asleep in turn, each while the other is being woken, and stay so:
/// 20 yields gave round trips of 11 µs, 120 give 0.9 µs (`touchline-bench rtt`).
const YIELDS: u32 = 120;

/// A core that was given away and comes back later than this was given to somebody who needed it: one that
/// nobody waits for comes back in a third of a microsecond, and a change of threads and back takes more than one.
const TAKEN: Duration = Duration::from_micros(1);

/// Failures that count: after so many in a row every 2ⁿ-th wait begins with pauses.
const MAX_FAILURES: u32 = 6;

/// Who sleeps no longer than this looks from time to time whether there is something, because nobody rings: its yields
/// look sooner. So it yields beside whomever, also beside a thread that computes and keeps the core for a slice of the
/// scheduler's.
pub const LOOKS: Duration = Duration::from_millis(1);

/// Threads that one ring wakes at the most: the sleeper of the line, and one that waits in its place. Each wake costs
/// the thread that rings some microseconds, and any process that maps the word can put thousands of threads to sleep
/// on it. So a line's words are to be mapped by its two sides alone: a peer that misbehaves then takes only its own
/// wake away.
const SLEEPERS: u32 = 4;

/// Longest sleep on an event that other processes map, before one looks by oneself: whoever maps a word may move its
/// sleepers to another one, and take wakes away.
#[cfg(not(loom))]
pub(crate) const SHARED_SLEEP_MAX: Duration = Duration::from_millis(100);

/// How a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitStrategy {
    /// Never gives the core away. Only for a thread with a core of its own: on a shared core it
    /// costs the others milliseconds.
    Spin,
    /// Spins briefly, yields briefly, then sleeps. Idle, it takes next to no CPU.
    #[default]
    Adaptive,
}

/// The two words by which one sleeper is woken by one waker.
#[derive(Clone, Copy)]
pub struct ParkingLine<'a> {
    parked: &'a AtomicU32,
    doorbell: ReadOnlyU32<'a>,
}

impl<'a> ParkingLine<'a> {
    /// `parked` is the sleeper's own flag, `doorbell` the waker's.
    pub fn new(parked: &'a AtomicU32, doorbell: ReadOnlyU32<'a>) -> Self {
        Self { parked, doorbell }
    }

    /// Has the waker ring from now on, for a sleeper in whose place another thread waits for the bell. What
    /// was published before this call rings nobody: look for it behind this call.
    pub fn raise(self) {
        self.parked.store(1, Ordering::Relaxed);
        // SYNC: as in `park`: the look behind this call sees what was published, or the waker sees the flag.
        fence(Ordering::SeqCst);
    }

    /// Has the waker ring no more.
    pub fn lower(self) {
        // SYNC: orders nothing; seen late it costs the waker one needless ring.
        self.parked.store(0, Ordering::Relaxed);
    }
}

/// Parked flag and doorbell on the heap, for a sleeper and a waker in one process: nobody else can sleep on that
/// bell, take its wakes away or move its sleepers elsewhere. On cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct LocalSignal {
    parked: AtomicU32,
    doorbell: AtomicU32,
}

impl LocalSignal {
    /// Nobody sleeps, no bell was rung.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the sleeper sleeps on.
    pub fn line(&self) -> ParkingLine<'_> {
        ParkingLine::new(&self.parked, ReadOnlyU32::new(&self.doorbell))
    }

    /// Whether the sleeper sleeps or is about to. To be looked at behind a fence that stands behind what
    /// the sleeper may wait for, as in [`wake_if_parked`].
    pub fn is_parked(&self) -> bool {
        // SYNC: ordered by the caller's fence.
        self.parked.load(Ordering::Relaxed) != 0
    }

    /// Wakes the sleeper if it sleeps; to be called after publishing.
    #[inline]
    pub fn wake(&self) -> bool {
        wake_if_parked(ReadOnlyU32::new(&self.parked), &self.doorbell)
    }

    /// As [`wake`](Self::wake), for who has had a [`SeqCst`](Ordering::SeqCst) fence between what it published and
    /// this.
    #[inline]
    pub fn wake_if_seen_parked(&self) -> bool {
        wake_if_seen_parked(ReadOnlyU32::new(&self.parked), &self.doorbell)
    }

    /// How often it was rung.
    pub fn rings(&self) -> u32 {
        // SYNC: orders nothing; a number to be looked at.
        self.doorbell.load(Ordering::Relaxed)
    }
}

/// Wakes the owner of `parked` by `doorbell` if it sleeps or is about to; to be called by the only
/// waker of this line, after it has published what the sleeper waits for. Returns whether the bell
/// was rung, which costs a system call; otherwise the cost is a fence and a load.
///
/// A peer that holds its flag up without sleeping makes each call ring: call it once per batch.
#[inline]
pub fn wake_if_parked(parked: ReadOnlyU32<'_>, doorbell: &AtomicU32) -> bool {
    // SYNC: pairs with the fence in `park`: what we published before is seen by the sleeper's last
    // look, or its flag is seen here.
    fence(Ordering::SeqCst);
    wake_if_seen_parked(parked, doorbell)
}

/// As [`wake_if_parked`], for who has had a [`SeqCst`](Ordering::SeqCst) fence between what it published and this.
#[inline]
pub fn wake_if_seen_parked(parked: ReadOnlyU32<'_>, doorbell: &AtomicU32) -> bool {
    if parked.load_relaxed() == 0 {
        return false;
    }
    // SYNC: relaxed, because the two fences order it: a sleeper that takes this ring into account
    // before its fence has its fence behind ours, so that its last look sees what we published.
    doorbell.fetch_add(1, Ordering::Relaxed);
    futex::wake(doorbell, SLEEPERS);
    true
}

/// Sleeps until one of the wakers of `lines` rings, at most for `limit` and at most an hour. It may
/// return early without reason, so the caller looks again. `ready` is the last look before falling
/// asleep, made when all flags are up.
///
/// One sleeper waits on at most [`MAX_LINES`] lines at once. With more of them, or with several
/// where the kernel cannot wait for several (before 5.16, or forbidden), it sleeps for at most 1 ms.
pub fn park<'a>(
    lines: impl Iterator<Item = ParkingLine<'a>> + Clone,
    limit: Duration,
    mut ready: impl FnMut() -> bool,
) {
    let mut bells = futex::WaitSet::new();
    for line in lines.clone() {
        // SYNC: both ordered before the last look by the fence below; see `wake_if_parked`.
        bells.add(line.doorbell, line.doorbell.load_relaxed());
        line.parked.store(1, Ordering::Relaxed);
    }
    // SYNC: pairs with the fence in `wake_if_parked`: the last look sees what was published, or the
    // waker sees the flag.
    fence(Ordering::SeqCst);
    if !ready() {
        bells.wait(limit);
    }
    for line in lines {
        line.lower();
    }
}

/// Where a waiting thread stands on the ladder.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    strategy: WaitStrategy,
    /// Pauses before the first yield.
    spins: u32,
    idle_turns: u32,
    /// Waits, this one counted, before pauses are tried again; 0: they are not left out.
    skips: u32,
    /// How often in a row they were tried in vain, and somebody else needed the core meanwhile.
    failures: u32,
    yields: Yields,
}

impl Waiter {
    /// At the foot of the ladder.
    pub const fn new(strategy: WaitStrategy) -> Self {
        Self::yielding_after(SPINS, strategy)
    }

    /// At the foot of a ladder with so many pauses: for a thread whose turns take longer than a pause.
    pub const fn yielding_after(spins: u32, strategy: WaitStrategy) -> Self {
        Self { strategy, spins, idle_turns: 0, skips: 0, failures: 0, yields: Yields::new() }
    }

    /// Back to the foot of the ladder: work was found. Where pauses are in vain the foot is behind them.
    #[inline]
    pub fn reset(&mut self) {
        // Behind a yield it is 0 already: the last one came back at once, or else waits are to be skipped.
        if self.skips == 0 && self.idle_turns > 0 {
            self.failures = 0;
        }
        self.yields.note_work();
        self.step_down();
    }

    /// Back to the foot of the ladder, whether or not anything was found.
    pub(crate) fn step_down(&mut self) {
        self.yields.note_end();
        if self.skips > 0 {
            self.skips -= u32::from(self.idle_turns > self.spins);
        }
        self.idle_turns = if self.skips > 0 { self.spins } else { 0 };
    }

    /// Gives the core away, and notes whether somebody took it.
    fn give_away(&mut self) {
        let begin = Instant::now();
        yield_now();
        let end = Instant::now();
        self.note_return(end - begin, end);
    }

    /// The core that was given away came back after so long, at `now`. If another thread took it, that may be the one
    /// that is to answer, and the pauses before the yield kept it waiting; or it has a core of its own and was only a
    /// little late this time. So pauses are tried again, less often each time that they were for nothing. A thread that
    /// kept the core for long computes and answers nobody: that is no reason to leave pauses out.
    fn note_return(&mut self, after: Duration, now: Instant) {
        if self.yields.note(after, now) {
            (self.skips, self.failures) = (0, 0);
            return;
        }
        if after < TAKEN {
            (self.skips, self.failures) = (0, 0);
        } else if self.skips == 0 {
            self.failures = (self.failures + 1).min(MAX_FAILURES);
            self.skips = 1 << self.failures;
        }
    }

    /// Waits one step after a turn without work: a few pauses, a yield, or a sleep of at most `limit`.
    /// `lines` and `ready` are as in [`park`]; `ready` also ends the pauses. True if the core was not given
    /// away, so that hardly any time has gone by: less than a microsecond.
    #[inline]
    pub fn idle<'a>(
        &mut self,
        lines: impl Iterator<Item = ParkingLine<'a>> + Clone,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        if self.pause(&mut ready) {
            return true;
        }
        let is_blind = || limit <= LOOKS || lines.clone().nth(MAX_LINES).is_some();
        if !self.linger_if(is_blind) {
            park(lines, limit, ready);
        }
        false
    }

    /// Pauses until `ready`, at most for a step. False, without a pause, when it is time for something else.
    #[inline]
    fn pause(&mut self, mut ready: impl FnMut() -> bool) -> bool {
        let left = match self.strategy {
            WaitStrategy::Spin => STEP_PAUSES,
            WaitStrategy::Adaptive => self.spins.saturating_sub(self.idle_turns).min(STEP_PAUSES),
        };
        for _ in 0..left {
            self.idle_turns = self.idle_turns.saturating_add(1);
            spin_loop();
            if ready() {
                break;
            }
        }
        left > 0
    }

    /// Waits one step without falling asleep: a pause or a yield. False, without a step, when it is time
    /// to sleep: for a thread that sleeps on something else than lines.
    #[inline]
    pub fn linger(&mut self) -> bool {
        self.linger_if(|| false)
    }

    /// As [`linger`](Self::linger), with yields beside whomever if nobody would end the sleep.
    #[inline]
    fn linger_if(&mut self, is_blind: impl FnOnce() -> bool) -> bool {
        if self.strategy == WaitStrategy::Spin || self.idle_turns < self.spins {
            spin_loop();
        } else if self.idle_turns < self.spins.saturating_add(YIELDS)
            && (!self.yields.are_left_out(Instant::now) || is_blind())
        {
            self.give_away();
        } else {
            self.yields.note_end();
            return false;
        }
        self.idle_turns = self.idle_turns.saturating_add(1);
        true
    }

    /// Waits until `ready`, at most for `limit`; returns whether it was ready.
    pub fn wait_until<'a>(
        &mut self,
        lines: impl Iterator<Item = ParkingLine<'a>> + Clone,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        let begin = Instant::now();
        while !ready() {
            let Some(left) = limit.checked_sub(begin.elapsed()) else {
                self.step_down();
                return false;
            };
            self.idle(lines.clone(), left, &mut ready);
        }
        self.reset();
        true
    }
}

/// Sleeps while every word of `words` has the value beside it, at most for `limit` and at most an hour: for
/// a thread that waits for bells in another's place. It may return early without reason.
pub fn sleep_while<'a>(words: impl IntoIterator<Item = (ReadOnlyU32<'a>, u32)>, limit: Duration) {
    let mut bells = futex::WaitSet::new();
    for (word, seen) in words {
        bells.add(word, seen);
    }
    bells.wait(limit);
}

/// The writing end of a counter of events that are rare enough to wake every waiter each time, such
/// as the moves of the durable watermark. Wraps.
#[derive(Clone, Copy)]
pub struct EventCounter<'a>(&'a AtomicU32);

impl<'a> EventCounter<'a> {
    /// Counts in `word`.
    pub fn new(word: &'a AtomicU32) -> Self {
        Self(word)
    }

    /// Counts one event and wakes all who wait; a system call. To be called after what the event is
    /// about has been written.
    pub fn advance(self) {
        // SYNC: pairs with the acquire load in `EventWatch::current`: who sees this count sees what
        // was written before it.
        self.0.fetch_add(1, Ordering::Release);
        futex::wake(self.0, futex::EVERYBODY);
    }
}

/// The reading end of an [`EventCounter`]; a read-only mapping is enough.
#[derive(Clone, Copy)]
pub struct EventWatch<'a>(ReadOnlyU32<'a>);

impl<'a> EventWatch<'a> {
    /// Watches the counter in `word`.
    pub fn new(word: ReadOnlyU32<'a>) -> Self {
        Self(word)
    }

    /// The count now. Take it before looking at what the events are about.
    pub fn current(self) -> u32 {
        // SYNC: pairs with the release addition in `EventCounter::advance`.
        self.0.load_acquire()
    }

    /// Sleeps until the count is another than `seen`, at most for `limit` and at most an hour, and
    /// returns the count then. It may return `seen` early without reason.
    pub fn wait_changed(self, seen: u32, limit: Duration) -> u32 {
        let current = self.current();
        if current != seen {
            return current;
        }
        let mut bell = futex::WaitSet::new();
        bell.add(self.0, seen);
        bell.wait(limit);
        self.current()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
