//! How many commands a session may send: `engine.commands_per_second`, with as many at once after a
//! second of silence. Called for every command, on the duty thread.

const SECOND_NS: u64 = 1_000_000_000;

/// One session's allowance: a leaky bucket that is kept as a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLimit {
    /// Time that one command takes up, ns; 0: unlimited.
    interval_ns: u64,
    /// When all that was sent so far has been paid for.
    paid_ns: u64,
}

impl RateLimit {
    /// So many commands a second; 0: unlimited.
    pub(super) const fn new(per_second: u32) -> Self {
        let interval_ns = if per_second == 0 { 0 } else { SECOND_NS / per_second as u64 };
        Self { interval_ns, paid_ns: 0 }
    }

    /// True if one more command may be taken at `now_ns`; it is counted then.
    #[inline]
    pub(super) const fn admits(&mut self, now_ns: u64) -> bool {
        if self.interval_ns == 0 {
            return true;
        }
        let begin = if self.paid_ns > now_ns { self.paid_ns } else { now_ns };
        if begin + self.interval_ns > now_ns + SECOND_NS {
            return false;
        }
        self.paid_ns = begin + self.interval_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_commands_at_once_and_then_one_by_one() {
        let mut rate = RateLimit::new(100);
        let mut now = 5 * SECOND_NS;
        assert_eq!((0..1000).filter(|_| rate.admits(now)).count(), 100);
        for _ in 0..50 {
            now += SECOND_NS / 100;
            assert!(rate.admits(now) && !rate.admits(now));
        }
        now += 10 * SECOND_NS;
        assert_eq!((0..1000).filter(|_| rate.admits(now)).count(), 100);
        let mut unlimited = RateLimit::new(0);
        assert!((0..1000).all(|_| unlimited.admits(now)));
    }
}
