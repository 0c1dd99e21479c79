//! Whether giving the core away is the way to wait: not beside a thread that computes. Called by
//! [`super::Waiter`].
//!
//! Who yields to such a thread gets the core back when its slice is over, at a tick of the scheduler's: a few
//! milliseconds later, whatever has come meanwhile. Who sleeps is woken in the middle of the slice. So yields are left
//! out for a while once some of them in a short time took as long as no thread that waits in this way keeps a core,
//! and work had come when they were over: else nobody has lost anything.

use std::time::{Duration, Instant};

/// Threads that wait as this one does have given the core back by then.
const LONG: Duration = Duration::from_micros(500);

/// What of a long yield counts: a slice or two. The rest of it is a process that was stopped, or a machine.
const LONGEST: Duration = Duration::from_millis(16);

/// What a wait that a long yield has made longer adds to the score, and what another one with yields takes from it.
const WEIGHTS: [u32; 2] = [4, 1];

/// Score from which on there are no yields: two such waits, with fewer than four others between them. One alone may
/// have met a thread that was at work for once.
const ENOUGH: u32 = 8;

/// For so many times as long as the last one took there are none: no more than one part in so many of all time goes
/// to finding out that somebody still computes.
const REST: u32 = 64;

/// How often that is doubled, where the first wait behind it is such a one again.
const MAX_DOUBLINGS: u32 = 5;

/// What a thread's yields have met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yields {
    left_out_until: Option<Instant>,
    score: u32,
    doublings: u32,
    /// The last yield, if it was long and nothing was done since: how long, and when it came back.
    long: Option<(Duration, Instant)>,
}

impl Yields {
    pub(super) const fn new() -> Self {
        Self { left_out_until: None, score: 0, doublings: 0, long: None }
    }

    /// Takes note of a yield that took `after` and came back at `now`; true if it was a long one, behind which nobody
    /// was who waits.
    pub(super) fn note(&mut self, after: Duration, now: Instant) -> bool {
        self.long = (after > LONG).then(|| (after.min(LONGEST), now));
        self.long.is_some()
    }

    /// Takes note that nothing had come when the last one was over, and the wait goes on without them.
    pub(super) fn note_sleep(&mut self) {
        self.long = None;
    }

    /// Takes note that a wait is over in which there were yields: work was found.
    pub(super) fn note_work(&mut self) {
        let Some((after, now)) = self.long.take() else {
            self.score = self.score.saturating_sub(WEIGHTS[1]);
            self.doublings = 0;
            return;
        };
        self.score += WEIGHTS[0];
        if self.score >= ENOUGH {
            self.left_out_until = Some(now + after * (REST << self.doublings));
            self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
            // The first such wait behind the rest is enough again.
            self.score = ENOUGH - WEIGHTS[0];
        }
    }

    /// Whether they are left out at present; looks at the clock only if they were a moment ago.
    pub(super) fn are_left_out(&mut self, now: impl FnOnce() -> Instant) -> bool {
        if let Some(until) = self.left_out_until
            && now() >= until
        {
            self.left_out_until = None;
        }
        self.left_out_until.is_some()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(4);

    /// A wait whose last yield took so long, and behind which there was work.
    fn wait(yields: &mut Yields, after: Duration, now: Instant) {
        assert_eq!(yields.note(after, now), after > LONG);
        yields.note_work();
    }

    /// How long yields are left out behind `now`, and none if they are not.
    fn left_out(yields: &mut Yields, now: Instant) -> Option<Duration> {
        let until = if yields.are_left_out(|| now) { yields.left_out_until } else { None };
        until.map(|until| until - now)
    }

    #[test]
    fn one_long_yield_among_many_changes_nothing() {
        let (mut yields, now) = (Yields::new(), Instant::now());
        for _ in 0..10 {
            wait(&mut yields, SLICE, now);
            assert_eq!(left_out(&mut yields, now), None);
            // As long as a thread that waits may take.
            (0..4).for_each(|_| wait(&mut yields, LONG, now));
        }
        wait(&mut yields, SLICE, now);
        (0..3).for_each(|_| wait(&mut yields, LONG, now));
        assert_eq!(left_out(&mut yields, now), None);
        wait(&mut yields, SLICE, now);
        assert_eq!(left_out(&mut yields, now), None, "three others between them, and four before");
        wait(&mut yields, SLICE, now);
        assert_eq!(left_out(&mut yields, now), Some(SLICE * REST));
    }

    #[test]
    fn a_long_yield_behind_which_there_is_nothing_to_do_is_no_loss() {
        let (mut yields, now) = (Yields::new(), Instant::now());
        for _ in 0..10 {
            // Another yield, or a sleep, and then there was.
            yields.note(SLICE, now);
            wait(&mut yields, Duration::ZERO, now);
            yields.note(SLICE, now);
            yields.note_sleep();
            yields.note_work();
        }
        assert_eq!(left_out(&mut yields, now), None);
        assert_eq!(yields.score, 0);
    }

    #[test]
    fn who_computes_on_and_on_is_tried_for_one_part_in_many_of_the_time() {
        let (mut yields, begin) = (Yields::new(), Instant::now());
        let mut now = begin;
        wait(&mut yields, SLICE, now);
        let mut spent = SLICE;
        for doublings in [0, 1, 2, 3, 4, 5, 5] {
            now += SLICE;
            wait(&mut yields, SLICE, now);
            spent += SLICE;
            let rest = SLICE * (64 << doublings);
            assert_eq!(left_out(&mut yields, now), Some(rest));
            now += rest - Duration::from_nanos(1);
            assert!(yields.are_left_out(|| now));
            now += Duration::from_nanos(1);
            assert!(!yields.are_left_out(|| now));
        }
        assert!(spent * REST < now - begin);
        // It has gone, and another one comes later: as at first.
        (0..4).for_each(|_| wait(&mut yields, Duration::ZERO, now));
        wait(&mut yields, SLICE, now);
        assert_eq!(left_out(&mut yields, now), None);
        wait(&mut yields, SLICE, now);
        assert_eq!(left_out(&mut yields, now), Some(SLICE * REST));
    }

    #[test]
    fn a_process_that_was_stopped_for_long_waits_as_before_soon() {
        let (mut yields, now) = (Yields::new(), Instant::now());
        for _ in 0..2 {
            wait(&mut yields, Duration::MAX, now);
        }
        assert_eq!(left_out(&mut yields, now), Some(LONGEST * REST));
    }

    #[test]
    fn the_clock_is_not_looked_at_where_no_yield_was_long() {
        let mut yields = Yields::new();
        wait(&mut yields, LONG, Instant::now());
        assert!(!yields.are_left_out(|| unreachable!("a look at the clock")));
    }
}
