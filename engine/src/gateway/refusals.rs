//! Lines about peers that were refused or ended, not more than one in a second of the door and one of each
//! kind of the gateway: who knocks often fills no disk. Called by both for each.

use crate::notice::alert;
use std::time::{Duration, Instant};

/// Lines are printed at most once in this time, with the number of those passed over.
const PRINT_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Refusals {
    last_print: Option<Instant>,
    passed_over: u64,
}

impl Refusals {
    pub(super) fn print(&mut self, what: &str) {
        match self.due(Instant::now()) {
            None => {}
            Some(0) => alert!("engine: {what}"),
            Some(more) => alert!("engine: {what} (and {more} other notices before it)"),
        }
    }

    /// Whether one of this moment is to be printed, and how many were passed over since the last that was.
    fn due(&mut self, now: Instant) -> Option<u64> {
        if self.last_print.is_some_and(|last| now.duration_since(last) < PRINT_EVERY) {
            self.passed_over += 1;
            return None;
        }
        self.last_print = Some(now);
        Some(std::mem::take(&mut self.passed_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_a_second_and_none_of_the_others_is_forgotten() {
        let (mut refusals, begin) = (Refusals::default(), Instant::now());
        let knocks = (0..2500_u32).map(|knock| begin + knock * Duration::from_millis(1));
        let printed: Vec<u64> = knocks.filter_map(|now| refusals.due(now)).collect();
        assert_eq!(printed, [0, 999, 999]);
        assert_eq!(refusals.due(begin + Duration::from_secs(60)), Some(499));
        assert_eq!(refusals.due(begin + Duration::from_secs(61)), Some(0));
    }
}
