//! Those who are not in yet, and have said something: whoever is in is served before them, and they one after
//! another. Called by [`super::service`] in each of its turns.
//!
//! A message of a handshake costs tens of microseconds, most of them in the kernel, which hands the answer to
//! whoever waits for it. An order that is under way meanwhile would wait for all of that; so they wait for it,
//! but not for long: a caller's turn comes after [`PATIENCE`] however many orders there are.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So long one caller after the other waits at the most while orders are under way.
pub(super) const PATIENCE: Duration = Duration::from_micros(200);

/// What a peer has said.
pub(super) struct Said {
    /// Whose.
    pub(super) ticket: usize,
    /// The bytes.
    pub(super) bytes: Box<[u8]>,
}

/// The queue. A peer is in it once at the most: it is held meanwhile.
pub(super) struct Callers {
    queue: VecDeque<Said>,
    /// Since when the first of them is the first.
    since: Instant,
}

impl Callers {
    /// Nobody.
    pub(super) const fn new(now: Instant) -> Self {
        Self { queue: VecDeque::new(), since: now }
    }

    /// True when somebody waits.
    pub(super) fn are_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Puts one behind the others.
    pub(super) fn put(&mut self, said: Said, now: Instant) {
        if self.queue.is_empty() {
            self.since = now;
        }
        self.queue.push_back(said);
    }

    /// The next one: if orders `are_under_way`, only if it has waited for long.
    pub(super) fn next(&mut self, are_under_way: bool, now: Instant) -> Option<Said> {
        if are_under_way && now.duration_since(self.since) < PATIENCE {
            return None;
        }
        self.since = now;
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(tickets: std::ops::Range<usize>, now: Instant) -> Callers {
        let mut callers = Callers::new(now);
        for ticket in tickets {
            callers.put(Said { ticket, bytes: Box::default() }, now);
        }
        callers
    }

    #[test]
    fn callers_wait_for_orders_and_each_has_its_turn_after_a_while() {
        let begin = Instant::now();
        let mut callers = waiting(0..3, begin);
        let mut served = Vec::new();
        for moment in 0..1000_u32 {
            let now = begin + moment * PATIENCE / 100;
            served.extend(callers.next(true, now).map(|said| (said.ticket, moment)));
        }
        assert_eq!(served, [(0, 100), (1, 200), (2, 300)]);
        assert!(!callers.are_waiting());
    }

    #[test]
    fn callers_do_not_wait_for_nobody() {
        let now = Instant::now();
        let mut callers = waiting(0..3, now);
        let mut next = || callers.next(false, now).map(|said| said.ticket);
        assert_eq!([next(), next(), next(), next()], [Some(0), Some(1), Some(2), None]);
    }
}
