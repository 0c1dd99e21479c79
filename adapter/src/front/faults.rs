//! The reply to a request that no service has answered, and when that was. Called by both fronts.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::http::{Fault, Refused, Reply, Service};

/// The service's own reply to a fault, or the fixed one should that panic too.
pub(super) fn reply(service: &dyn Service, path: &str, peer: SocketAddr, fault: Fault) -> Reply {
    let refused = Refused { path, peer, refused_ns: unix_ns() };
    catch_unwind(AssertUnwindSafe(|| service.fault(&refused, fault)))
        .unwrap_or_else(|_| Fault::Panicked.reply())
}

/// Nanoseconds since the epoch.
pub(super) fn unix_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
