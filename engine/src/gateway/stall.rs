//! For how long a peer has taken nothing of what it is sent. A socket that has no room tells only when it has
//! room for much again: whoever reads slowly takes long for that. So what the kernel still keeps for the peer is
//! looked at too. Kept by [`super::stream`] and [`super::readers`], which ask at each tick.

use std::time::{Duration, Instant};

/// Since when a peer has taken nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    since: Instant,
    /// What the kernel kept for it at the last look.
    unread: Option<u64>,
}

impl Stall {
    /// It begins now.
    pub(super) const fn new(now: Instant) -> Self {
        Self { since: now, unread: None }
    }

    /// The kernel keeps so much for the peer by now, if it says so: less than before is progress.
    pub(super) fn look(&mut self, unread: Option<u64>, now: Instant) {
        if let (Some(unread), Some(before)) = (unread, self.unread)
            && unread < before
        {
            self.since = now;
        }
        self.unread = unread.or(self.unread);
    }

    /// So long it has lasted.
    pub(super) fn lasts(&self, now: Instant) -> Duration {
        now.duration_since(self.since)
    }

    /// So much of it is not the peer's.
    pub(super) fn forgive(&mut self, lost: Duration, now: Instant) {
        self.since = now.min(self.since + lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_before_is_progress_and_nobody_is_forgiven_ahead() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut stall = Stall::new(begin);
        for (after, unread) in [(1, Some(8)), (2, Some(8)), (3, None), (4, Some(9))] {
            stall.look(unread, begin + second * after);
            assert_eq!(stall.lasts(begin + second * after), second * after, "{unread:?}");
        }
        stall.look(Some(8), begin + second * 5);
        assert_eq!(stall.lasts(begin + second * 5), Duration::ZERO);
        // What is not known takes nothing away of what was.
        stall.look(None, begin + second * 6);
        stall.look(Some(7), begin + second * 7);
        assert_eq!(stall.lasts(begin + second * 7), Duration::ZERO);
        stall.forgive(second * 60, begin + second * 8);
        assert_eq!(stall.lasts(begin + second * 9), second);
    }
}
