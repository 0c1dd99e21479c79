//! Lines about peers that were refused or ended, not more than one in a second: who knocks often fills no
//! disk. Called by the gateway for each.

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
        if self.last_print.is_some_and(|last| last.elapsed() < PRINT_EVERY) {
            self.passed_over += 1;
            return;
        }
        match self.passed_over {
            0 => alert!("engine: {what}"),
            more => alert!("engine: {what} (and {more} other notices before it)"),
        }
        self.last_print = Some(Instant::now());
        self.passed_over = 0;
    }
}
