//! What this machine's clock shows. Called by the fronts for when a request has come, and wherever a time is held against
//! that of an engine or of an earlier run.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since the epoch; 0 before it.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds since the epoch; 0 before it.
pub(crate) fn unix_ms() -> u64 {
    unix_ns() / 1_000_000
}
