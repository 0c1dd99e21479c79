//! How long an engine's thread has worked. Called by the measurements.
//!
//! It is the thread's own processor time: on a machine that others use too, their turns would be
//! counted by the clock on the wall, to one engine more than to another.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A running measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Duration);

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(i64::unsigned_abs);
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

impl Stopwatch {
    /// Begins.
    pub(super) fn start() -> Self {
        Self(now())
    }

    /// Worked since then, by the same thread.
    pub(super) fn elapsed(&self) -> Duration {
        now().saturating_sub(self.0)
    }
}
