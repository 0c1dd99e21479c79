//! How many commands a session may send: `engine.commands_per_second`, with as many at once after a
//! second of silence. Called for every command, on the duty thread; and where a connection begins or ends,
//! as the allowance is the session's.

use touchline_protocol::units::SessionId;

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

/// What sessions without a connection have still to pay: who logs on anew goes on with what it had left.
#[derive(Default)]
pub(super) struct Debts {
    /// Those of connections that ended not much longer than a second ago: others have paid.
    owed: Vec<(SessionId, RateLimit)>,
}

impl Debts {
    /// The session's connection ends.
    pub(super) fn keep(&mut self, session: SessionId, rate: RateLimit, now_ns: u64) {
        self.owed.retain(|(_, rate)| rate.paid_ns > now_ns);
        if rate.paid_ns > now_ns {
            self.owed.push((session, rate));
        }
    }

    /// The allowance of a session that has a connection from now on: so many commands a second; 0: unlimited.
    pub(super) fn allow(&mut self, session: SessionId, per_second: u32) -> RateLimit {
        let fresh = RateLimit::new(per_second);
        let Some(at) = self.owed.iter().position(|&(of, _)| of == session) else { return fresh };
        RateLimit { paid_ns: self.owed.swap_remove(at).1.paid_ns, ..fresh }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_has_what_it_had_left() {
        let (here, other) = (SessionId(7), SessionId(8));
        let mut debts = Debts::default();
        let now = 5 * SECOND_NS;
        let mut rate = debts.allow(here, 100);
        assert_eq!((0..60).filter(|_| rate.admits(now)).count(), 60);
        debts.keep(here, rate, now);
        let mut rate = debts.allow(other, 100);
        assert_eq!((0..1000).filter(|_| rate.admits(now)).count(), 100);
        let mut rate = debts.allow(here, 100);
        assert_eq!((0..1000).filter(|_| rate.admits(now)).count(), 40);
        // What has been paid meanwhile is owed no more, and takes up no room.
        debts.keep(here, rate, now);
        let later = now + SECOND_NS;
        debts.keep(other, RateLimit::new(100), later);
        assert!(debts.owed.is_empty());
        let mut rate = debts.allow(here, 100);
        assert_eq!((0..1000).filter(|_| rate.admits(later)).count(), 100);
    }

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
