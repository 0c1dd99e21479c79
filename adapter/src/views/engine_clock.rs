//! How the engine's clock stands to this machine's, which it does not follow when that is set while it runs. Read off
//! the engine's signs of life by the tailer, asked for wherever a time is held against those of the log.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// A sign of life that came between two looks which are no further apart is that young.
const LOOKS_APART: Duration = Duration::from_secs(1);

/// Two clocks that are no further apart may be one: a sign is up to half a second old, and a second between two looks.
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
    /// When the last one was given, by the engine's clock, and when it was looked at last.
    last: Option<(u64, Instant)>,
}

impl Signs {
    /// Looks at the last sign of life, given at `alive_ms` (0 for none): what the engine's clock is ahead of this
    /// machine's, which shows `time_ms()`. `None` of a sign that need not be a young one: the first may be a dead
    /// engine's, and what has not been looked at for long may have been given at any moment since.
    pub(super) fn look(
        &mut self,
        alive_ms: u64,
        now: Instant,
        time_ms: impl FnOnce() -> u64,
    ) -> Option<i64> {
        let last = self.last.replace((alive_ms, now));
        let (before_ms, looked) = last.filter(|(before_ms, _)| *before_ms != 0)?;
        let is_young = before_ms != alive_ms && now.duration_since(looked) <= LOOKS_APART;
        (is_young && alive_ms != 0).then(|| alive_ms.wrapping_sub(time_ms()).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sign_that_came_between_two_looks_tells_the_time() {
        let (mut signs, begin) = (Signs::default(), Instant::now());
        let mut look = |alive_ms, after_ms, time_ms| {
            signs.look(alive_ms, begin + Duration::from_millis(after_ms), || time_ms)
        };
        assert_eq!(look(5_000, 0, 9_000), None, "it may be a dead engine's");
        assert_eq!(look(5_000, 50, 9_000), None, "it is none");
        assert_eq!(look(5_500, 100, 9_000), Some(-3_500));
        assert_eq!(look(6_000, 600, 5_000), Some(1_000));
        assert_eq!(look(6_500, 1_601, 9_000), None, "it may have come long ago");
        assert_eq!(look(0, 1_650, 9_000), None, "there is none any more");
        assert_eq!(look(7_000, 1_700, 9_000), None, "as the first");
        assert_eq!(look(7_500, 1_750, 7_700), Some(-200));
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
