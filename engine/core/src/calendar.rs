//! Which calendar windows of the order-rate limits a time lies in (facts §8). Called by placement for
//! every order, by replacements and lists.
//!
//! Time rarely leaves both windows, so the present ones are kept: a comparison instead of two divisions.
//! They follow from time and limits, and are no state.

use touchline_protocol::message::command::Limits;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The windows that were asked for last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calendar {
    /// Both windows hold from here, ns, up to there: nowhere at first.
    from_ns: u64,
    until_ns: u64,
    /// The n-th is from n times the interval on.
    windows: [u64; 2],
}

impl Calendar {
    /// Knows no window; so again whenever the intervals change.
    pub(crate) const fn new() -> Self {
        Self { from_ns: 0, until_ns: 0, windows: [0; 2] }
    }

    #[inline]
    const fn has(&self, time_ns: u64) -> bool {
        self.from_ns <= time_ns && time_ns < self.until_ns
    }

    /// Makes [`windows`](Self::windows) a look-up until one of them ends.
    #[inline]
    pub(crate) fn turn_to(&mut self, time_ns: u64, limits: &Limits) {
        if !self.has(time_ns) {
            *self = Self::at(time_ns, limits);
        }
    }

    /// The windows that were turned to last.
    #[inline(always)]
    pub(crate) const fn present(&self) -> [u64; 2] {
        self.windows
    }

    /// Numbers of the windows that a time lies in.
    #[inline]
    pub(crate) fn windows(&self, time_ns: u64, limits: &Limits) -> [u64; 2] {
        if self.has(time_ns) { self.windows } else { Self::at(time_ns, limits).windows }
    }

    #[inline(never)]
    fn at(time_ns: u64, limits: &Limits) -> Self {
        let lengths = [limits.interval_0_seconds, limits.interval_1_seconds]
            .map(|seconds| u64::from(seconds) * NS_PER_SECOND);
        let windows = lengths.map(|length| time_ns / length);
        let [begin_0, begin_1] = [windows[0] * lengths[0], windows[1] * lengths[1]];
        let [end_0, end_1] =
            [begin_0.saturating_add(lengths[0]), begin_1.saturating_add(lengths[1])];
        Self { from_ns: begin_0.max(begin_1), until_ns: end_0.min(end_1), windows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever time was asked for before, at the edges of windows above all.
        #[test]
        fn a_known_window_is_the_window(
            seconds in (1u32..9, 1u32..40),
            times in prop::collection::vec((0u64..200, 0u64..3), 1..50),
        ) {
            let (interval_0_seconds, interval_1_seconds) = seconds;
            let limits = Limits { interval_0_seconds, interval_1_seconds, ..Limits::default() };
            let mut calendar = Calendar::new();
            for (second, beside) in times {
                let time_ns = (second * NS_PER_SECOND + beside).saturating_sub(1);
                let exact = [interval_0_seconds, interval_1_seconds]
                    .map(|seconds| time_ns / (u64::from(seconds) * NS_PER_SECOND));
                prop_assert_eq!(calendar.windows(time_ns, &limits), exact);
                calendar.turn_to(time_ns, &limits);
                prop_assert_eq!(calendar.windows(time_ns, &limits), exact);
            }
        }
    }

    #[test]
    fn time_may_end() {
        let limits =
            Limits { interval_0_seconds: 10, interval_1_seconds: 86_400, ..Limits::default() };
        let mut calendar = Calendar::new();
        calendar.turn_to(u64::MAX, &limits);
        assert_eq!(calendar.windows(u64::MAX, &limits)[0], u64::MAX / 10_000_000_000);
    }
}
