//! The spot service (spot contract): REST requests in, engine commands and views out. Called by the
//! front; composed by [`crate::run`].
//!
//! A request runs through one order of checks (facts §1.4): route, weight, key, parameters, timing,
//! signature, and then what its handler checks. Placements and cancels end in the engine, whose
//! decision is the answer. Everything else is answered from the views once they hold all that was
//! acknowledged when the request arrived.

mod cancel;
mod document;
mod exchange;
mod forms;
mod fresh;
mod ids;
mod information;
mod intake;
mod long;
mod market;
mod market_data;
mod names;
mod paging;
mod place;
mod query;
mod reject;
mod report;
mod responses;
mod routes;
mod streams;
mod submission;

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use touchline_protocol::credentials::MasterKey;

use crate::api_error::ApiError;
use crate::denial;
use crate::http::{Completion, Fault, Headers, Refused, Reply, Request, Service};
use crate::json::JsonWriter;
use crate::key_ring::KeyRing;
use crate::limits::{Admission, Limits};
use crate::link::Submit;
use crate::route::{Route, Weight, not_found, wrong_method};
use crate::views::Views;
pub use document::document;
use exchange::Exchange;
use fresh::Fresh;
use information::Information;
use long::Readers;
use routes::Handler;
pub use routes::{Operation, Parameter, operations};
use streams::Streams;

/// Prefix of the service's own header names unless another is configured. Replies are written with
/// it and renamed on their way out.
pub const HEADER_PREFIX: &str = "X-SVC";

/// Longest body of a request, in bytes: many times what the longest order takes.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// Room for a reply to begin with, in bytes: an order with a fill fits.
const REPLY_BYTES: usize = 640;

/// Room for an order in a list, in bytes: nearly all fit.
const ORDER_BYTES: usize = 512;

/// Room for a trade, a candle or a ticker in a list, in bytes.
const TRADE_BYTES: usize = 256;

/// What of the service can be chosen.
#[derive(Debug, Clone)]
pub struct SpotConfig {
    /// Takes the place of [`HEADER_PREFIX`].
    pub header_prefix: String,
    /// Longest that a request may take, counted from its arrival: from when its body was there.
    pub deadline: Duration,
}

/// The spot service.
pub struct Spot {
    shared: Arc<Shared>,
}

struct Shared {
    views: Arc<Views>,
    engine: Arc<dyn Submit>,
    keys: KeyRing,
    limits: Arc<Limits>,
    fresh: Fresh,
    streams: Streams,
    /// Who is being sent long lists.
    readers: Arc<Readers>,
    information: Information,
    config: SpotConfig,
    key_header: String,
}

impl Spot {
    /// A service that serves whom `limits` lets in, reads from `views`, sends orders to `engine`, and knows API keys and secrets
    /// by `keys`.
    #[must_use]
    pub fn new(
        config: SpotConfig,
        limits: Arc<Limits>,
        views: Arc<Views>,
        engine: Arc<dyn Submit>,
        keys: MasterKey,
    ) -> Self {
        denial::note_lost(&views, &*engine, config.deadline, submission::owner_of);
        let shared = Shared {
            views,
            engine,
            keys: KeyRing::new(keys),
            limits,
            fresh: Fresh::default(),
            streams: Streams::default(),
            readers: long::readers(),
            information: Information::default(),
            key_header: format!("{}-APIKEY", config.header_prefix),
            config,
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Service for Spot {
    fn call(&self, request: Request, done: Completion) {
        let shared = Arc::clone(&self.shared);
        let (address, now_ms) =
            (shared.limits.client(request.peer.ip(), &request.headers), request.arrived_ms());
        if shared.limits.denies(address) {
            return done.send(denied());
        }
        let route = match routes::TABLE.resolve(&request) {
            Ok(route) => route,
            Err(reply) => {
                let admission = shared.limits.admit(address, 1, now_ms);
                let refusal = admission.refusal.map(|refusal| ApiError::from(refusal).reply());
                return done.send(shared.complete(refusal.unwrap_or(reply), &admission));
            }
        };
        let admission = shared.limits.admit(address, weight(route, &request), now_ms);
        let deadline = request.arrived + shared.config.deadline;
        Exchange { shared, route, request, address, admission, deadline, done }.begin();
    }

    fn body_limit(&self, _path: &str) -> usize {
        BODY_BYTES_MAX
    }

    /// Refused requests use up weight like any other, and the limits come first (facts §1.4).
    fn fault(&self, refused: &Refused<'_>, fault: Fault) -> Reply {
        let (client, is_charged) = self.shared.limits.answerable(refused, fault);
        if self.shared.limits.denies(client) {
            return denied();
        }
        let now_ms = refused.refused_ns / 1_000_000;
        let admission = self.shared.limits.admit(client, u32::from(is_charged), now_ms);
        let refusal = admission.refusal.filter(|_| is_charged);
        let reply = refusal.map_or_else(
            || of_fault(refused.path, fault),
            |refusal| ApiError::from(refusal).reply(),
        );
        self.shared.complete(reply, &admission)
    }
}

/// The reply to a request that the front could not hand over. A method that no route has is like any other that the
/// path does not take; one whose target is no path, as of CONNECT, is told what the service takes at all.
fn of_fault(path: &str, fault: Fault) -> Reply {
    if fault != Fault::UnknownMethod || !path.starts_with('/') {
        return fault.reply();
    }
    routes::TABLE.allow(path).map_or_else(|| not_found(&Headers::default()), wrong_method)
}

/// The answer to an address that is not served: no more than its status (facts §1.1).
fn denied() -> Reply {
    Reply::empty(403)
}

fn weight(route: &Route<Handler>, request: &Request) -> u32 {
    match route.weight {
        Weight::Fixed(weight) => weight,
        varies => intake::parameters(request)
            .map_or_else(|_| varies.least(), |parameters| varies.of(&parameters)),
    }
}

impl Shared {
    /// Adds what every reply carries (facts §1.1).
    fn complete(&self, mut reply: Reply, admission: &Admission) -> Reply {
        reply = reply.header("Cache-Control", "no-cache, no-store, must-revalidate");
        if let Ok(uuid) = ids::uuid() {
            reply = reply.header("X-SVC-UUID", uuid);
        }
        self.limits.add_headers(admission, &mut reply);
        name_headers(&mut reply, &self.config.header_prefix);
        reply
    }
}

/// Has the names of the service's own headers begin as configured.
pub(crate) fn name_headers(reply: &mut Reply, prefix: &str) {
    if prefix == HEADER_PREFIX {
        return;
    }
    for (name, _) in &mut reply.headers {
        if let Some(rest) = name.strip_prefix(HEADER_PREFIX) {
            *name = format!("{prefix}{rest}").into();
        }
    }
}

/// A reply with a JSON body, status 200, as every reply of this service that is no error.
fn json(body: &impl Serialize) -> Result<Reply, ApiError> {
    json_within(REPLY_BYTES, body)
}

/// As [`json`], of which it is known how many bytes it takes, more or less: a long body that has no room from
/// the beginning is copied again and again as it grows.
fn json_within(room: usize, body: &impl Serialize) -> Result<Reply, ApiError> {
    json_by(room, |to| body.serialize(to))
}

/// A list, with room for so many bytes of each entry.
fn json_list<E>(entry_bytes: usize, entries: E) -> Result<Reply, ApiError>
where
    E: IntoIterator<Item: Serialize, IntoIter: ExactSizeIterator>,
{
    let entries = entries.into_iter();
    json_by(entry_bytes * entries.len(), |to| to.collect_seq(entries))
}

fn json_by(
    room: usize,
    write: impl FnOnce(&mut JsonWriter<'_>) -> serde_json::Result<()>,
) -> Result<Reply, ApiError> {
    let mut bytes = Vec::with_capacity(room);
    write(&mut JsonWriter::new(&mut bytes)).map_err(|_| ApiError::unknown())?;
    Ok(Reply::json(200, bytes))
}

#[cfg(test)]
mod tests;
