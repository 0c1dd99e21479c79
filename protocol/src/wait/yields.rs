//! Whether giving the core away is the way to wait: not beside a thread that computes. Called by
//! [`super::Waiter`].
//!
//! Who yields to such a thread gets the core back when its slice is over, at a tick of the scheduler's: a few
//! milliseconds later, whatever has come meanwhile. Who sleeps is woken in the middle of the slice. So yields are left
//! out for a while once two of them in a short time took as long as no thread that waits in this way keeps a core.

use std::time::{Duration, Instant};

/// Threads that wait as this one does have given the core back by then.
const LONG: Duration = Duration::from_micros(500);

/// What of a long yield counts: a slice or two. The rest of it is a process that was stopped, or a machine.
const LONGEST: Duration = Duration::from_millis(16);

/// A second long yield within so many times as long as it took tells that somebody computes on and on: one alone may
/// have met a thread that was at work for once.
const NEAR: u32 = 16;

/// For so many times as long as the second one took there are none: no more than one part in so many of all time goes
/// to finding out that somebody still computes.
const REST: u32 = 256;

/// How often that is doubled, where the first yield behind it is long again.
const MAX_DOUBLINGS: u32 = 3;

/// What a thread's yields have met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yields {
    left_out_until: Option<Instant>,
    /// When a long one came back, or until when there were none because of it.
    long_until: Option<Instant>,
    doublings: u32,
}

impl Yields {
    pub(super) const fn new() -> Self {
        Self { left_out_until: None, long_until: None, doublings: 0 }
    }

    /// Takes note of a yield that took `after` and came back at `now`; true if it was a long one, behind which nobody
    /// was who waits.
    pub(super) fn note(&mut self, after: Duration, now: Instant) -> bool {
        if after <= LONG {
            return false;
        }
        let after = after.min(LONGEST);
        if self.long_until.is_some_and(|before| now < before + after * NEAR) {
            self.left_out_until = Some(now + after * (REST << self.doublings));
            self.long_until = self.left_out_until;
            self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
        } else {
            self.long_until = Some(now);
            self.doublings = 0;
        }
        true
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

    /// How long yields are left out behind `now`, and none if they are not.
    fn left_out(yields: &mut Yields, now: Instant) -> Option<Duration> {
        let until = if yields.are_left_out(|| now) { yields.left_out_until } else { None };
        until.map(|until| until - now)
    }

    #[test]
    fn one_long_yield_alone_changes_nothing() {
        let (mut yields, mut now) = (Yields::new(), Instant::now());
        for _ in 0..10 {
            assert!(!yields.note(LONG, now), "as long as who waits may take");
            assert!(yields.note(SLICE, now));
            assert_eq!(left_out(&mut yields, now), None);
            now += SLICE * NEAR;
        }
        assert!(yields.note(SLICE, now - Duration::from_nanos(1)));
        assert_eq!(left_out(&mut yields, now), Some(SLICE * REST - Duration::from_nanos(1)));
    }

    #[test]
    fn who_computes_on_and_on_is_tried_for_one_part_in_many_of_the_time() {
        let (mut yields, begin) = (Yields::new(), Instant::now());
        let mut now = begin;
        yields.note(SLICE, now);
        let mut spent = SLICE;
        for rest in [256, 512, 1024, 2048, 2048] {
            now += SLICE;
            // A short one in between is of nobody's slice, and is no sign of anything.
            yields.note(Duration::from_micros(2), now);
            yields.note(SLICE, now);
            spent += SLICE;
            assert_eq!(left_out(&mut yields, now), Some(SLICE * rest));
            now += SLICE * rest - Duration::from_nanos(1);
            assert!(yields.are_left_out(|| now));
            now += Duration::from_nanos(1);
            assert!(!yields.are_left_out(|| now));
        }
        assert!(spent * REST < now - begin + SLICE * REST);
        // It has gone, and another one comes later: as at first.
        now += SLICE * NEAR;
        yields.note(SLICE, now);
        assert_eq!(left_out(&mut yields, now), None);
        yields.note(SLICE, now);
        assert_eq!(left_out(&mut yields, now), Some(SLICE * REST));
    }

    #[test]
    fn a_process_that_was_stopped_for_long_waits_as_before_soon() {
        let (mut yields, now) = (Yields::new(), Instant::now());
        for _ in 0..2 {
            yields.note(Duration::MAX, now);
        }
        assert_eq!(left_out(&mut yields, now), Some(LONGEST * REST));
    }

    #[test]
    fn the_clock_is_not_looked_at_where_no_yield_was_long() {
        let mut yields = Yields::new();
        yields.note(LONG, Instant::now());
        assert!(!yields.are_left_out(|| unreachable!("a look at the clock")));
    }
}
