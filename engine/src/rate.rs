//! How fast a session may send: `engine.commands_per_second`, with as many at once after a second of silence. What it
//! sends beyond that is refused, and what it sends beyond so many refusals waits where it lies: refusing it all would
//! let a flood keep the engine at work. Asked by the duty thread for every command, by the gateway for whatever comes
//! over a socket, and where a connection begins or ends, as the allowance is the session's. An [`Allowance`] is also
//! what the gateway paces the logons of a key by.

use rustc_hash::FxHashMap;
use std::hash::Hash;
use touchline_protocol::message::enums::Role;
use touchline_protocol::units::SessionId;

const SECOND_NS: u64 = 1_000_000_000;

/// Refusals in a second that a session has at the least: they cost the engine next to nothing, and a client that sends
/// a little too much learns at once that it does.
const REFUSALS_MIN: u32 = 1000;

/// So many in a second, and so many at once behind a pause: a leaky bucket that is kept as a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Nanoseconds per item; 0: unlimited.
    interval_ns: u64,
    /// Size of a burst, ns: the interval times the items that there may be at once.
    credit_ns: u64,
    /// When all that was taken so far is paid for, ns since the epoch.
    paid_ns: u64,
}

impl Allowance {
    /// So many in a second and so many at once; without an end of them where the first is 0.
    pub(crate) const fn new(per_second: u32, at_once: u32) -> Self {
        let interval_ns = if per_second == 0 { 0 } else { SECOND_NS / per_second as u64 };
        Self { interval_ns, credit_ns: interval_ns * at_once as u64, paid_ns: 0 }
    }

    /// When all will have been paid for, if one more is taken.
    const fn paid_with_one_more(&self, now_ns: u64) -> u64 {
        let begin = if self.paid_ns > now_ns { self.paid_ns } else { now_ns };
        begin + self.interval_ns
    }

    #[inline]
    const fn has_left(&self, now_ns: u64) -> bool {
        self.interval_ns == 0 || self.paid_with_one_more(now_ns) <= now_ns + self.credit_ns
    }

    /// Takes one; false if there is none.
    #[inline]
    pub(crate) const fn take(&mut self, now_ns: u64) -> bool {
        let has_left = self.has_left(now_ns);
        if has_left && self.interval_ns != 0 {
            self.paid_ns = self.paid_with_one_more(now_ns);
        }
        has_left
    }

    /// True while something of what was taken is not paid for; never where there is no end of them.
    pub(crate) const fn owes(&self, now_ns: u64) -> bool {
        self.paid_ns > now_ns
    }
}

/// What a session may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    commands: Allowance,
    refusals: Allowance,
}

impl RateLimit {
    /// So many commands a second; 0: unlimited.
    pub(crate) const fn new(per_second: u32) -> Self {
        let refusals = match per_second {
            0 => 0,
            1..REFUSALS_MIN => REFUSALS_MIN,
            _ => per_second,
        };
        Self {
            commands: Allowance::new(per_second, per_second),
            refusals: Allowance::new(refusals, refusals),
        }
    }

    /// True if one more command may be taken at `now_ns`, false if it is to be refused; it is counted as that.
    #[inline]
    pub(crate) const fn admits(&mut self, now_ns: u64) -> bool {
        let admits = self.commands.take(now_ns);
        if !admits {
            self.count_refusal(now_ns);
        }
        admits
    }

    /// Counts a message that is refused: as a command if no refusal is left.
    pub(crate) const fn count_refusal(&mut self, now_ns: u64) {
        let _counted = self.refusals.take(now_ns) || self.commands.take(now_ns);
    }

    /// Counts a message of which somebody else decides whether it is refused.
    pub(crate) const fn count_passed_on(&mut self, now_ns: u64) {
        let _counted = self.commands.take(now_ns) || self.refusals.take(now_ns);
    }

    /// True when neither a command nor a refusal is left: what comes next waits.
    #[inline]
    pub(crate) const fn is_spent(&self, now_ns: u64) -> bool {
        !self.commands.has_left(now_ns) && !self.refusals.has_left(now_ns)
    }

    /// True while something of what was sent is not paid for.
    const fn owes(&self, now_ns: u64) -> bool {
        self.commands.owes(now_ns) || self.refusals.owes(now_ns)
    }
}

/// So many debts are kept before it is looked which of them are paid.
const DEBTS_MIN: usize = 64;

/// What each debtor has still to pay. Those that have paid are forgotten, and take up no more room than the others.
pub(crate) struct Owed<Debtor, Debt> {
    debts: FxHashMap<Debtor, Debt>,
    /// How many were still owed when all were last looked at. That is done again once there are twice as many: in a
    /// crowd each costs no more than alone.
    looked: usize,
}

impl<Debtor: Eq + Hash, Debt> Owed<Debtor, Debt> {
    /// Nobody owes anything.
    pub(crate) fn new() -> Self {
        Self { debts: FxHashMap::default(), looked: 0 }
    }

    /// What the debtor owes, which may be paid by now; it is asked for no more until it is [kept](Self::keep) again.
    pub(crate) fn take(&mut self, debtor: &Debtor) -> Option<Debt> {
        self.debts.remove(debtor)
    }

    /// Keeps a debt, unless it is paid, which `is_owed` decides.
    pub(crate) fn keep(&mut self, debtor: Debtor, debt: Debt, is_owed: impl Fn(&Debt) -> bool) {
        if self.debts.len() >= (2 * self.looked).max(DEBTS_MIN) {
            self.debts.retain(|_, debt| is_owed(debt));
            self.looked = self.debts.len();
        }
        if is_owed(&debt) {
            self.debts.insert(debtor, debt);
        }
    }

    /// Debts that are kept, paid ones among them.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.debts.len()
    }
}

/// What sessions may send that log on, and what those without a connection have still to pay of it: who logs on anew
/// goes on with what it had left.
pub(crate) struct Debts {
    /// Of a session with a key; 0: unlimited.
    per_second: u32,
    owed: Owed<SessionId, RateLimit>,
}

impl Debts {
    /// Nobody owes anything; so many commands a second for a session with a key; 0: unlimited.
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second, owed: Owed::new() }
    }

    /// The session's connection ends.
    pub(crate) fn keep(&mut self, session: SessionId, rate: RateLimit, now_ns: u64) {
        self.owed.keep(session, rate, |rate| rate.owes(now_ns));
    }

    /// The allowance of a session that has a connection in this role from now on. The engine's own user, who has no
    /// key, is not held back.
    pub(crate) fn allow(&mut self, session: SessionId, role: Role) -> RateLimit {
        if !role.has_key() {
            return RateLimit::new(0);
        }
        self.owed.take(&session).unwrap_or_else(|| RateLimit::new(self.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many messages are taken at one moment until none is left, and how many of them are admitted.
    fn flood(rate: &mut RateLimit, now_ns: u64) -> (usize, usize) {
        let (mut taken, mut admitted) = (0, 0);
        while !rate.is_spent(now_ns) && taken < 100_000 {
            taken += 1;
            admitted += usize::from(rate.admits(now_ns));
        }
        (taken, admitted)
    }

    #[test]
    fn a_flood_is_refused_for_a_while_and_then_waits() {
        for (per_second, refused) in [(1, 1000), (20, 1000), (1000, 1000), (4000, 4000)] {
            let mut rate = RateLimit::new(per_second);
            let mut now = 5 * SECOND_NS;
            let admitted = per_second as usize;
            assert_eq!(flood(&mut rate, now), (admitted + refused, admitted), "{per_second}");
            now += SECOND_NS / refused as u64 - 1;
            assert_eq!(flood(&mut rate, now), (0, 0), "{per_second}");
            now += 1;
            let (taken, admitted) = flood(&mut rate, now);
            assert_eq!(taken, 1 + admitted, "{per_second}");
            assert!(!rate.admits(now) && rate.is_spent(now));
            now += 10 * SECOND_NS;
            let admitted = per_second as usize;
            assert_eq!(flood(&mut rate, now), (admitted + refused, admitted), "{per_second}");
        }
        assert_eq!(flood(&mut RateLimit::new(0), 0), (100_000, 100_000), "there is no end of them");
    }

    #[test]
    fn no_more_at_once_than_in_a_second_also_where_a_second_is_no_multiple_of_what_one_takes() {
        for per_second in [3, 999, 47_000] {
            let mut rate = RateLimit::new(per_second);
            let expected = per_second.max(REFUSALS_MIN) + per_second;
            let flooded = flood(&mut rate, 5 * SECOND_NS);
            assert_eq!(flooded, (expected as usize, per_second as usize), "{per_second}");
        }
    }

    #[test]
    fn what_is_refused_for_another_reason_counts_as_a_refusal_and_then_as_a_command() {
        let now = 5 * SECOND_NS;
        for count in [RateLimit::count_refusal, RateLimit::count_passed_on] {
            let mut rate = RateLimit::new(20);
            let mut counted = 0;
            while !rate.is_spent(now) && counted < 100_000 {
                count(&mut rate, now);
                counted += 1;
            }
            assert_eq!(counted, 1020);
        }
        let mut rate = RateLimit::new(20);
        rate.count_refusal(now);
        assert_eq!((0..100).filter(|_| rate.admits(now)).count(), 20, "it was a refusal");
        let mut rate = RateLimit::new(20);
        rate.count_passed_on(now);
        assert_eq!((0..100).filter(|_| rate.admits(now)).count(), 19, "it was a command");
    }

    #[test]
    fn refusals_are_owed_as_commands_are() {
        let (here, now) = (SessionId(7), 5 * SECOND_NS);
        let mut debts = Debts::new(20);
        let mut rate = debts.allow(here, Role::Trader);
        (0..1000).for_each(|_| rate.count_refusal(now));
        debts.keep(here, rate, now);
        let mut rate = debts.allow(here, Role::Trader);
        assert_eq!(flood(&mut rate, now), (20, 20));
    }

    #[test]
    fn who_comes_back_has_what_it_had_left() {
        let (here, other) = (SessionId(7), SessionId(8));
        let mut debts = Debts::new(100);
        let now = 5 * SECOND_NS;
        let mut rate = debts.allow(here, Role::Trader);
        assert_eq!((0..60).filter(|_| rate.admits(now)).count(), 60);
        debts.keep(here, rate, now);
        let mut rate = debts.allow(other, Role::Trader);
        assert_eq!((0..1000).filter(|_| rate.admits(now)).count(), 100);
        let mut rate = debts.allow(here, Role::Trader);
        assert_eq!((0..1000).filter(|_| rate.admits(now)).count(), 40);
        // What has been paid meanwhile is owed no more.
        debts.keep(here, rate, now);
        let later = now + SECOND_NS;
        debts.keep(other, RateLimit::new(100), later);
        let mut rate = debts.allow(here, Role::Trader);
        assert_eq!((0..1000).filter(|_| rate.admits(later)).count(), 100);
    }

    #[test]
    fn who_has_no_key_is_not_held_back() {
        let mut debts = Debts::new(1);
        for (role, taken) in [
            (Role::Trader, 1001),
            (Role::ReadOnly, 1001),
            (Role::Admin, 100_000),
            (Role::Adapter, 100_000),
        ] {
            let mut rate = debts.allow(SessionId(7), role);
            assert_eq!(flood(&mut rate, 5 * SECOND_NS).0, taken, "{role:?}");
        }
    }

    #[test]
    fn debts_that_are_paid_take_up_no_room() {
        let mut debts = Debts::new(100);
        let mut now = 5 * SECOND_NS;
        for round in 0..10 {
            for session in 0..1000 {
                let mut rate = debts.allow(SessionId(1000 * round + session), Role::Trader);
                assert!(rate.admits(now));
                debts.keep(SessionId(1000 * round + session), rate, now);
            }
            assert!((1000..=2000).contains(&debts.owed.len()), "{}", debts.owed.len());
            assert!(debts.owed.looked >= 64, "each costs as much as all");
            now += 10 * SECOND_NS;
        }
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
