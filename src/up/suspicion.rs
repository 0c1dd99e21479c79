//! Damage of the adapter's history that ends the process which reads it: no such process can tell, so its supervisor
//! does. Called by [`super::Supervisor`] at each death of the adapter.

use crate::notice::supervisor::alert;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use touchline_adapter::history;

/// How a process ends that reads what cannot be. Neither who kills it nor a system without memory uses these.
const CRASHES: [Signal; 3] = [Signal::SEGV, Signal::BUS, Signal::ABORT];

/// A history is not suspected again before: what ends an adapter with a new one, too, was not damage of the old one.
const AGAIN: Duration = Duration::from_hours(1);

/// What is suspected, and since when.
pub(super) struct Suspicion {
    data: PathBuf,
    instance: String,
    noted: Option<Instant>,
}

impl Suspicion {
    /// Of the history of an instance in this data folder; nothing yet.
    pub(super) const fn of(data: PathBuf, instance: String) -> Self {
        Self { data, instance, noted: None }
    }

    /// The adapter has ended with `status`: by a crash, its next start is to take the history for damaged.
    pub(super) fn died(&mut self, status: ExitStatus) {
        let is_crash = CRASHES.iter().any(|signal| status.signal() == Some(signal.as_raw()));
        if !is_crash || self.noted.is_some_and(|noted| noted.elapsed() < AGAIN) {
            return;
        }
        if history::suspect(&self.data, &self.instance) {
            self.noted = Some(Instant::now());
            alert!(
                "touchline: damage of its history may have ended the adapter: its next start makes the history anew \
                 if the log has its beginning"
            );
        }
    }
}
