//! The reply to a request that no service has answered. Called by both fronts.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::clock::unix_ns;
use crate::http::{Fault, Headers, Refused, Reply, Service};

/// The service's own reply to a fault, or the fixed one should that panic too.
pub(super) fn reply(
    service: &dyn Service,
    (path, headers): (&str, &Headers),
    peer: SocketAddr,
    fault: Fault,
) -> Reply {
    let refused = Refused { path, headers, peer, refused_ns: unix_ns() };
    catch_unwind(AssertUnwindSafe(|| service.fault(&refused, fault)))
        .unwrap_or_else(|_| Fault::Panicked.reply())
}
