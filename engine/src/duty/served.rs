//! How long the duty thread has served: what its deadlines are measured by. Kept by [`super::Duty`].

/// Time from the first turn on, ns. What a start takes before that is nobody's time: nobody could have come.
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
        self.ns += now_ns.saturating_sub(last_ns);
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
    fn it_begins_with_the_first_turn() {
        let mut served = Served::default();
        assert_eq!(served.ns(), 0);
        served.turn(77 * SECOND);
        assert_eq!(served.ns(), 0);
        for step in 1..=5 {
            served.turn(77 * SECOND + step * SECOND / 10);
            assert_eq!(served.ns(), step * SECOND / 10);
        }
    }
}
