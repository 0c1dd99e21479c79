//! Whether a reader takes its snapshot fast enough. Room for snapshots is scarce: who takes one by the drop is not
//! to keep it from all others. Kept by [`super::reader`], which looks at each tick.

use std::time::{Duration, Instant};

/// Of its snapshot a reader is to take so much in each time for which it may stall.
const PACE_BYTES: i64 = 1 << 20;

/// So far ahead of the pace a reader may be. More that it took does not count: the kernels of both sides may take
/// much at once, and a reader that then stands is not to live on that for long.
const AHEAD_MAX: i64 = 2 * PACE_BYTES;

/// How far ahead of the pace a reader is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Bytes. It begins with those of one time, in which nothing has to be taken.
    ahead: i64,
    /// Bytes that it had taken at the last look.
    taken: usize,
    looked: Instant,
}

impl Pace {
    /// It begins now.
    pub(super) const fn new(now: Instant) -> Self {
        Self { ahead: PACE_BYTES, taken: 0, looked: now }
    }

    /// The reader has taken so many bytes in all by now; for `stall_limit` it may stall.
    pub(super) fn look(&mut self, taken: usize, stall_limit: Duration, now: Instant) {
        let time = now.duration_since(self.looked).as_nanos();
        let owed = time.saturating_mul(PACE_BYTES as u128) / stall_limit.as_nanos().max(1);
        let owed = i64::try_from(owed).unwrap_or(i64::MAX);
        let more = i64::try_from(taken.saturating_sub(self.taken)).unwrap_or(i64::MAX);
        self.ahead = self.ahead.saturating_add(more).saturating_sub(owed).min(AHEAD_MAX);
        (self.taken, self.looked) = (taken, now);
    }

    /// True if it is too slow, whoever waits.
    pub(super) const fn is_overdue(&self) -> bool {
        self.ahead < 0
    }

    /// True if it has used up half of the time in which nothing has to be taken: while somebody waits for the
    /// place, that is too slow.
    pub(super) const fn is_behind(&self) -> bool {
        self.ahead < PACE_BYTES / 2
    }

    /// So much of the time is not the reader's.
    pub(super) fn forgive(&mut self, lost: Duration, now: Instant) {
        self.looked = now.min(self.looked + lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_secs(5);
    const TICK: Duration = Duration::from_millis(250);

    /// Ticks until a reader is overdue that has taken `taken` bytes at a tick, 1,000 at the most.
    fn lives(taken: impl Fn(usize) -> usize) -> usize {
        let begin = Instant::now();
        let mut pace = Pace::new(begin);
        (1..=1000)
            .find(|&tick| {
                pace.look(taken(tick), STALL, begin + TICK * u32::try_from(tick).unwrap());
                pace.is_overdue()
            })
            .unwrap_or(1000)
    }

    #[test]
    fn who_takes_a_mebibyte_in_each_time_is_kept_however_its_kernel_does_it() {
        let pace = PACE_BYTES as usize;
        assert_eq!(lives(|tick| tick * pace / 20), 1000, "evenly");
        assert_eq!(lives(|tick| tick / 20 * pace), 1000, "all at the end of each");
        // The kernels take three mebibytes at once, and then nothing before there is room for one.
        assert_eq!(lives(|tick| 3 * pace + tick / 20 * pace), 1000, "in bursts");
    }

    #[test]
    fn what_was_taken_long_ago_does_not_count() {
        let pace = PACE_BYTES as usize;
        assert_eq!(lives(|_| 0), 21, "one time");
        assert_eq!(lives(|tick| tick * 2000), 21, "8 kB in a second");
        // However much was taken at once: 2 MiB of it last for two times.
        assert_eq!(lives(|tick| 30 * pace + tick * 2000), 43);
        assert_eq!(lives(|tick| tick.min(100) * pace), 141);
        assert_eq!(lives(|tick| tick * pace / 21), 421, "a little too slow");
    }

    #[test]
    fn who_has_used_up_half_of_its_first_time_is_behind_and_not_overdue() {
        let begin = Instant::now();
        let mut pace = Pace::new(begin);
        pace.look(0, STALL, begin + STALL * 9 / 20);
        assert!(!pace.is_behind());
        pace.look(1000, STALL, begin + STALL * 11 / 20);
        assert!(pace.is_behind() && !pace.is_overdue());
        pace.look(1 << 20, STALL, begin + STALL);
        assert!(!pace.is_behind());
        // A pause that was not the reader's.
        pace.forgive(99 * STALL, begin + 100 * STALL);
        pace.look(1 << 20, STALL, begin + 100 * STALL);
        assert!(!pace.is_behind());
    }
}
