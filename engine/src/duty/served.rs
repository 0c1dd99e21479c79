//! How long the duty thread has served: what its deadlines are measured by. Kept by [`super::Duty`].

use super::clients::IDLE_LIMIT;

/// So much of the time between two turns counts at the most: no sleep is longer. Beyond that the process was stopped or
/// had no core, or the machine slept, and what clients did or could have done meanwhile is not seen yet.
const COUNTED_NS: u64 = IDLE_LIMIT.as_nanos() as u64;

/// Time from the first turn on without such pauses, ns. What a start takes before that is nobody's time: nobody could
/// have come.
#[derive(Default)]
pub(super) struct Served {
    ns: u64,
    /// Engine time of the last turn; none before the first.
    last_ns: Option<u64>,
}

impl Served {
    /// One more turn, at this engine time.
    #[inline]
    pub(super) fn turn(&mut self, now_ns: u64) {
        let last_ns = self.last_ns.replace(now_ns).unwrap_or(now_ns);
        self.ns += now_ns.saturating_sub(last_ns).min(COUNTED_NS);
    }

    /// So long, up to the turn that was made last.
    #[inline]
    pub(super) const fn ns(&self) -> u64 {
        self.ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn it_begins_with_the_first_turn_and_a_pause_is_hardly_counted() {
        let mut served = Served::default();
        assert_eq!(served.ns(), 0);
        let mut now_ns = 77 * SECOND;
        served.turn(now_ns);
        assert_eq!(served.ns(), 0);
        for step in 1..=5 {
            now_ns += SECOND / 10;
            served.turn(now_ns);
            assert_eq!(served.ns(), step * SECOND / 10);
        }
        now_ns += 3600 * SECOND;
        served.turn(now_ns);
        assert_eq!(served.ns(), SECOND);
        served.turn(now_ns + COUNTED_NS);
        assert_eq!(served.ns(), SECOND + COUNTED_NS, "the longest sleep counts");
    }
}
