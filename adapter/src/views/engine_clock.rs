//! How the engine's clock stands to this machine's, which it does not follow when that is set while it runs. Read off
//! the engine's signs of life by the tailer, asked for wherever a time is held against those of the log.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// A sign of life that came between two looks which are no further apart is that young.
const LOOKS_APART: Duration = Duration::from_secs(1);

/// Two clocks that are no further apart may be one: a sign is taken for up to a second older than it is, and its clock
/// for that much further ahead.
const SAME_NS: u64 = 2_000_000_000;

const NS_PER_MS: i64 = 1_000_000;

/// What the engine's clock is ahead of this machine's.
#[derive(Debug, Default)]
pub(super) struct EngineClock {
    ahead_ns: AtomicI64,
}

impl EngineClock {
    /// It was so much ahead when it was seen last.
    pub(super) fn is_ahead(&self, ms: i64) {
        // SYNC: orders nothing; a time to be reckoned with.
        self.ahead_ns.store(ms.saturating_mul(NS_PER_MS), Ordering::Relaxed);
    }

    /// What the engine's clock shows when this machine's shows `time_ns`, since the epoch.
    pub(super) fn at(&self, time_ns: u64) -> u64 {
        let ahead_ns = self.ahead_ns.load(Ordering::Relaxed);
        if ahead_ns.unsigned_abs() <= SAME_NS {
            time_ns
        } else {
            time_ns.saturating_add_signed(ahead_ns)
        }
    }
}

/// The signs of life as they are looked at.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// When the last one was given, by the engine's clock, and when it was looked for.
    last: Option<(u64, Instant)>,
}

impl Signs {
    /// Looks at the last sign of life, given at `alive_ms` (0 for none), which was looked for at `begun`: what the
    /// engine's clock is ahead of this machine's at the most, which shows what `clock()` gives before the moment that
    /// it gives. `None` of a sign that need not be a young one: the first may be a dead engine's, and what has not been
    /// looked at for long may have been given at any moment since.
    pub(super) fn look(
        &mut self,
        alive_ms: u64,
        begun: Instant,
        clock: impl FnOnce() -> (u64, Instant),
    ) -> Option<i64> {
        let (before_ms, looked) = self.last.replace((alive_ms, begun))?;
        if alive_ms == before_ms || alive_ms == 0 || before_ms == 0 {
            return None;
        }
        let (time_ms, now) = clock();
        // It is that old at the most, and taken for that: a request with a short `recvWindow` is not to come too late
        // for the time in which nobody has looked.
        let age = now.duration_since(looked);
        let age_ms = i64::try_from(age.as_millis()).ok().filter(|_| age <= LOOKS_APART)?;
        Some(alive_ms.wrapping_sub(time_ms).cast_signed().saturating_add(age_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sign_that_came_between_two_looks_tells_the_time() {
        let (mut signs, begin) = (Signs::default(), Instant::now());
        let mut look = |alive_ms, after_ms, (time_ms, until_ms)| {
            let at = |ms| begin + Duration::from_millis(ms);
            signs.look(alive_ms, at(after_ms), || (time_ms, at(until_ms)))
        };
        assert_eq!(look(5_000, 0, (9_000, 0)), None, "it may be a dead engine's");
        assert_eq!(look(5_000, 50, (9_000, 50)), None, "it is none");
        assert_eq!(look(5_500, 100, (9_000, 100)), Some(-3_450));
        assert_eq!(look(6_000, 600, (5_000, 600)), Some(1_500));
        assert_eq!(look(6_500, 1_601, (9_000, 1_601)), None, "it may have come long ago");
        assert_eq!(look(0, 1_650, (9_000, 1_650)), None, "there is none any more");
        assert_eq!(look(7_000, 1_700, (9_000, 1_700)), None, "as the first");
        assert_eq!(look(7_500, 1_750, (7_700, 1_750)), Some(-150));
        // Stopped while it looked.
        assert_eq!(look(8_000, 1_800, (3_609_000, 3_602_000)), None);
        assert_eq!(look(8_500, 1_850, (8_600, 2_250)), Some(350), "since the look before began");
    }

    /// However long ago the sign was given, a command has at least the time that its request has.
    #[test]
    fn a_sign_is_taken_for_no_younger_than_it_may_be() {
        const BEHIND_MS: u64 = 3_600_000;
        let (begin, begin_ms) = (Instant::now(), 9_000_000);
        for age_ms in [0, 1, 49, 100, 999] {
            let mut signs = Signs::default();
            signs.look(1_000, begin, || (begin_ms, begin));
            let now_ms = begin_ms + 1_000;
            let given_ms = now_ms - age_ms - BEHIND_MS;
            let ahead = signs.look(given_ms, begin, || (now_ms, begin + LOOKS_APART));
            let ahead = ahead.expect("it is young");
            assert!((-3_600_000..=-3_599_000).contains(&ahead), "{ahead} for one of {age_ms} ms");
        }
    }

    #[test]
    fn clocks_that_stand_apart_by_no_more_than_a_sign_is_old_are_one() {
        let clock = EngineClock::default();
        let at = |ahead_ms| {
            clock.is_ahead(ahead_ms);
            clock.at(10_000_000_000)
        };
        assert_eq!([0, -2_000, 2_000].map(at), [10_000_000_000; 3]);
        assert_eq!([-2_001, 3_000].map(at), [7_999_000_000, 13_000_000_000]);
        assert_eq!([i64::MIN, -11_000].map(at), [0; 2]);
    }
}
