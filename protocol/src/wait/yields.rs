//! Whether giving the core away is the way to wait: not beside a thread that computes. Called by
//! [`super::Waiter`].
//!
//! Who yields to such a thread gets the core back when its slice is over, at a tick of the scheduler's: a few
//! milliseconds later, whatever has come meanwhile. Who sleeps is woken in the middle of the slice. So yields are left
//! out for a while once two of them in a short time took as long as no thread that waits in this way keeps a core,
//! and work had come when they were over: else nobody has lost anything.

use std::time::{Duration, Instant};

/// Threads that wait as this one does have given the core back by then.
const LONG: Duration = Duration::from_micros(500);

/// What of a long yield counts: a slice. The rest of it is a process that was stopped, or a machine.
const LONGEST: Duration = Duration::from_millis(4);

/// Two long yields that are closer together than this many times what the second took mean a thread that computes on
/// and on; a single one may have met a thread that was at work for once.
const NEAR: u32 = 16;

/// After that, yields are left out for this many times what the long one took: a short time, so that waits that lost
/// their slices by chance soon have their yields again.
const FIRST_PERIOD: u32 = 16;

/// How often that is doubled, where there is another one soon behind it: beside who computes on and on one slice in two
/// seconds goes to finding that out.
const MAX_DOUBLINGS: u32 = 5;

/// What a thread's yields have met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yields {
    left_out_until: Option<Instant>,
    /// When the last loss was over, or until when there was none because yields were left out.
    lost_until: Option<Instant>,
    doublings: u32,
    /// The last yield of this wait, if it was long: how long, and when it came back.
    long: Option<(Duration, Instant)>,
}

impl Yields {
    pub(super) const fn new() -> Self {
        Self { left_out_until: None, lost_until: None, doublings: 0, long: None }
    }

    /// Takes note of a yield that took `after` and came back at `now`; true if it was long: who had the core meanwhile
    /// computes, and is not one who waits for others as this thread does.
    pub(super) fn note(&mut self, after: Duration, now: Instant) -> bool {
        self.long = (after > LONG).then(|| (after.min(LONGEST), now));
        self.long.is_some()
    }

    /// Takes note that nothing had come when the last one was over, and that there is no other one in this wait.
    pub(super) fn note_end(&mut self) {
        self.long = None;
    }

    /// Takes note that work was found: what this wait did last was a loss if it was a long yield.
    pub(super) fn note_work(&mut self) {
        let Some((after, now)) = self.long.take() else { return };
        if self.lost_until.is_some_and(|before| now < before + after * NEAR) {
            self.left_out_until = Some(now + after * (FIRST_PERIOD << self.doublings));
            self.lost_until = self.left_out_until;
            self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
        } else {
            self.lost_until = Some(now);
            self.doublings = 0;
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
    fn one_loss_alone_changes_nothing() {
        let (mut yields, mut now) = (Yields::new(), Instant::now());
        for _ in 0..10 {
            // As long as a thread that waits may take.
            wait(&mut yields, LONG, now);
            wait(&mut yields, SLICE, now);
            assert_eq!(left_out(&mut yields, now), None);
            now += SLICE * NEAR;
        }
        let earlier = now - Duration::from_nanos(1);
        wait(&mut yields, SLICE, earlier);
        assert_eq!(left_out(&mut yields, earlier), Some(SLICE * FIRST_PERIOD));
    }

    #[test]
    fn a_long_yield_behind_which_there_is_nothing_to_do_is_no_loss() {
        let (mut yields, now) = (Yields::new(), Instant::now());
        for _ in 0..10 {
            // Another yield, or a sleep, and then there was.
            yields.note(SLICE, now);
            wait(&mut yields, Duration::ZERO, now);
            yields.note(SLICE, now);
            yields.note_end();
            yields.note_work();
        }
        assert_eq!(left_out(&mut yields, now), None);
        assert_eq!(yields.lost_until, None);
    }

    #[test]
    fn who_computes_on_and_on_is_tried_less_and_less_often() {
        let (mut yields, mut now) = (Yields::new(), Instant::now());
        wait(&mut yields, SLICE, now);
        for doublings in [0, 1, 2, 3, 4, 5, 5] {
            now += SLICE;
            // Others come between them, which are nobody's slice and no sign of anything.
            wait(&mut yields, Duration::from_micros(2), now);
            wait(&mut yields, SLICE, now);
            let rest = SLICE * [16, 32, 64, 128, 256, 512][doublings];
            assert_eq!(left_out(&mut yields, now), Some(rest));
            now += rest - Duration::from_nanos(1);
            assert!(yields.are_left_out(|| now));
            now += Duration::from_nanos(1);
            assert!(!yields.are_left_out(|| now));
        }
        // It has gone, and another one comes later: as at first.
        now += SLICE * NEAR;
        wait(&mut yields, SLICE, now);
        assert_eq!(left_out(&mut yields, now), None);
        wait(&mut yields, SLICE, now);
        assert_eq!(left_out(&mut yields, now), Some(SLICE * FIRST_PERIOD));
    }

    #[test]
    fn a_process_that_was_stopped_for_long_waits_as_before_soon() {
        let (mut yields, now) = (Yields::new(), Instant::now());
        for _ in 0..2 {
            wait(&mut yields, Duration::MAX, now);
        }
        assert_eq!(left_out(&mut yields, now), Some(LONGEST * FIRST_PERIOD));
    }

    #[test]
    fn the_clock_is_not_looked_at_where_no_yield_was_long() {
        let mut yields = Yields::new();
        wait(&mut yields, LONG, Instant::now());
        assert!(!yields.are_left_out(|| unreachable!("a look at the clock")));
    }
}
