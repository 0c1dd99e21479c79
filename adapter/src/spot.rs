//! The spot service (spot contract): REST requests in, engine commands and views out. Called by the
//! front; composed by [`crate::run`].
//!
//! A request runs through one order of checks (facts §1.4): route, weight, key, parameters, timing,
//! signature, and then what its handler checks. Placements and cancels end in the engine, whose
//! decision is the answer. Everything else is answered from the views once they hold all that was
//! acknowledged when the request arrived.

mod cancel;
mod document;
mod forms;
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

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::units::{KeyId, Position};

use crate::api_error::ApiError;
use crate::denial::Denial;
use crate::http::{Completion, Fault, Headers, Method, Refused, Reply, Request, Service};
use crate::json::JsonWriter;
use crate::key_ring::KeyRing;
use crate::limits::{Admission, Limits};
use crate::link::{Decision, Doubt, NotSent, OrderCommand, Outcome, Submit, Terminal};
use crate::route::{Route, Security, Weight, not_found, open_to_any_origin, wrong_method};
use crate::views::doubts::{Owner, Unsettled};
use crate::views::{NotReached, Views};
pub use document::document;
use information::Information;
use intake::Intake;
use long::{Readers, Steps};
use report::Report;
use routes::{Handler, Serve};
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

/// When a client may try again whose command found the way to the engine full, or the engine late, in seconds.
const BUSY_RETRY_S: u64 = 1;

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
        let shared = Shared {
            views,
            engine,
            keys: KeyRing::new(keys),
            limits,
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

/// Code of the one 429 that the engine decides.
const TOO_MANY_ORDERS: i32 = -1015;

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

/// True for what the views may say only because they are behind: a key or a symbol may be quite new, and a
/// symbol may do since a moment ago what it did not do.
fn may_be_outdated(refusal: &ApiError) -> bool {
    [
        ApiError::api_key_rejected(),
        ApiError::invalid_symbol(),
        ApiError::quote_order_qty_unsupported(),
        ApiError::iceberg_orders_unsupported(),
        ApiError::oco_orders_unsupported(),
        ApiError::limit_maker_orders_unsupported(),
    ]
    .contains(refusal)
}

/// True for what says that there is no such order or list.
fn is_not_there(refusal: &ApiError) -> bool {
    [ApiError::order_not_found(), ApiError::order_list_not_found()].contains(refusal)
}

/// Whose key it is.
fn owner_of(views: &Views, key: KeyId) -> Option<Owner> {
    let account = views.read(|state| state.accounts.key(key).map(|record| record.account));
    account.map(Owner::Account)
}

/// What the checks and the handler came to.
enum Next {
    /// The answer.
    Reply(Reply),
    /// What leads to the answer, step by step.
    Steps(Steps),
    /// A command, whose outcome is the answer.
    Submit(Box<Submission>),
}

/// A command for the engine and how its outcome is told.
struct Submission {
    command: OrderCommand,
    report: Box<dyn Report>,
    /// The request's deadline comes before the end of its `recvWindow`.
    deadline_first: bool,
}

/// One request on its way to its reply. Dropped unanswered, it answers through its completion.
struct Exchange {
    shared: Arc<Shared>,
    route: &'static Route<Handler>,
    request: Request,
    /// Whose request it is.
    address: IpAddr,
    admission: Admission,
    deadline: Instant,
    done: Completion,
}

impl Exchange {
    fn begin(self) {
        if let Some(refusal) = self.admission.refusal {
            return self.answer(Err(refusal.into()));
        }
        match self.route.handler.serve {
            Serve::AtOnce(_) => self.run(),
            Serve::ByEngine(_) => self.run_at_once(),
            Serve::FromViews(_) if self.route.security.needs_signature() => match self.awaited() {
                Some(unsettled) => self.run_when_settled(&unsettled),
                None => self.run_when_current(),
            },
            Serve::FromViews(_) | Serve::InSteps(_) => self.run_when_current(),
        }
    }

    /// What the account whose request it is waits for.
    fn awaited(&self) -> Option<Unsettled> {
        self.shared.views.awaited(|| self.owner(), self.shared.config.deadline)
    }

    fn owner(&self) -> Option<Owner> {
        let account = intake::account(&self.shared, self.route, &self.request, self.address)?;
        Some(Owner::Account(account))
    }

    /// Shows the account what became of its commands, if that can be known soon: an engine that comes back finds it.
    fn run_when_settled(self, unsettled: &Unsettled) {
        let Some(until) = unsettled.wait_until(self.deadline) else {
            return self.run_when_current();
        };
        let views = Arc::clone(&self.shared.views);
        views.when_reached(unsettled.position, until, move |_| {
            self.resume(Self::run_when_current);
        });
    }

    fn run_when_current(self) {
        let current = self.shared.views.current();
        self.run_when_reached(current);
    }

    fn run(self) {
        let next = self.attempt();
        if !next.as_ref().is_err_and(is_not_there) {
            return self.proceed(next);
        }
        let owner = self.owner();
        self.deny(owner, u64::MAX);
    }

    /// It may be there in a moment, or when an engine is back: who is told that it is not sends it again. Commands that
    /// are under way are looked at with numbers up to `last`.
    fn deny(self, owner: Option<Owner>, last: u64) {
        let Shared { views, engine, .. } = &*self.shared;
        let is_own = |key| owner.is_some() && owner_of(views, key) == owner;
        match Denial::of((views, &**engine), owner, &is_own, last) {
            Denial::Unknown => self.answer(Err(ApiError::engine_timeout())),
            Denial::Reached(position) => self.when_reached(position, |exchange| {
                let next = exchange.attempt();
                exchange.proceed(next);
            }),
            Denial::Ended(command) => {
                let (engine, deadline) = (Arc::clone(engine), self.deadline);
                let ended = move |has_ended| {
                    self.resume(move |exchange| match has_ended {
                        true => exchange.deny(owner, command.saturating_sub(1)),
                        false => exchange.answer(Err(ApiError::engine_timeout())),
                    });
                };
                engine.when_ended(command, deadline, Box::new(ended));
            }
        }
    }

    /// An order need not wait for the views: the engine decides. Only when they are what refuses it, it
    /// is tried again once they have caught up.
    fn run_at_once(self) {
        let next = self.attempt();
        if !next.as_ref().is_err_and(may_be_outdated) {
            return self.proceed(next);
        }
        self.run_when_current();
    }

    fn proceed(self, next: Result<Next, ApiError>) {
        match next {
            Ok(Next::Reply(reply)) => self.answer(Ok(reply)),
            Ok(Next::Steps(steps)) => self.step(steps),
            Ok(Next::Submit(submission)) => self.submit(*submission),
            Err(error) => self.answer(Err(error)),
        }
    }

    /// Others have their turn between one step and the next.
    fn step(self, mut steps: Steps) {
        match steps() {
            Some(outcome) => self.answer(outcome),
            None => self.resume(move |exchange| exchange.step(steps)),
        }
    }

    fn run_when_reached(self, position: Position) {
        self.when_reached(position, Self::run);
    }

    fn when_reached(self, position: Position, then: impl FnOnce(Self) + Send + 'static) {
        if self.shared.views.reached() >= position {
            return then(self);
        }
        let views = Arc::clone(&self.shared.views);
        views.when_reached(position, self.deadline, move |outcome| {
            self.resume(move |exchange| match outcome {
                Ok(()) => then(exchange),
                Err(not_reached) => {
                    let refusal = exchange.not_reached(&not_reached);
                    exchange.answer(Err(refusal));
                }
            });
        });
    }

    /// The answer to a request for which the views would have had to go on first. Of a command nothing has left.
    fn not_reached(&self, why: &NotReached) -> ApiError {
        match why {
            NotReached::Stopped { .. } => ApiError::disconnected(),
            NotReached::Behind { .. } => match self.route.handler.serve {
                Serve::ByEngine(_) => queued_in_vain(),
                Serve::AtOnce(_) | Serve::FromViews(_) | Serve::InSteps(_) => {
                    ApiError::engine_timeout()
                }
            },
        }
    }

    /// Goes on with the request on the thread that serves its connection.
    fn resume(self, then: impl FnOnce(Self) + Send + 'static) {
        let Self { shared, route, request, address, admission, deadline, done } = self;
        done.resume(move |done| {
            then(Self { shared, route, request, address, admission, deadline, done });
        });
    }

    fn attempt(&self) -> Result<Next, ApiError> {
        let intake = Intake::new(&self.shared, self.route, &self.request, self.address)?;
        match self.route.handler.serve {
            Serve::AtOnce(answer) | Serve::FromViews(answer) => answer(&intake).map(Next::Reply),
            Serve::InSteps(begin) => begin(&intake).map(Next::Steps),
            Serve::ByEngine(command) => {
                command(&intake).map(|submission| Next::Submit(Box::new(submission)))
            }
        }
    }

    /// From here on the request is not needed any more, and others may have its memory.
    fn submit(self, submission: Submission) {
        let Self { shared, request, address, admission, deadline, done, .. } = self;
        let client = (address, request.arrived_ms());
        drop(request);
        let engine = Arc::clone(&shared.engine);
        let Submission { mut command, report, deadline_first } = submission;
        let key = command.header_mut().key_id;
        let submitted =
            Submitted { shared, client, key, admission, deadline, report, deadline_first };
        let tell = move |outcome| {
            // Here, since a client that has gone has no more turns, and comes back to ask.
            if matches!(outcome, Outcome::Unknown(_)) {
                submitted.note_doubt();
            }
            done.resume(move |done| submitted.conclude(outcome, done));
        };
        engine.submit(command, deadline, Box::new(tell));
    }

    fn answer(self, outcome: Result<Reply, ApiError>) {
        let mut reply = outcome.unwrap_or_else(|error| error.reply());
        if self.route.method == Method::Get && self.route.security == Security::None {
            reply = open_to_any_origin(reply);
        }
        let reply = self.shared.complete(reply, &self.admission);
        self.done.send(reply);
    }
}

/// A request whose command is on its way.
struct Submitted {
    shared: Arc<Shared>,
    /// Whose request it was, and when it arrived, ms since the epoch.
    client: (IpAddr, u64),
    /// Whose key sent it.
    key: KeyId,
    admission: Admission,
    deadline: Instant,
    report: Box<dyn Report>,
    deadline_first: bool,
}

impl Submitted {
    fn conclude(self, outcome: Outcome, done: Completion) {
        let decision = match outcome {
            Outcome::Decided(decision) if self.deadline_first && reject::is_too_late(&decision) => {
                // Certain, so not told as what may have happened.
                return self.answer(Err(queued_in_vain()), done);
            }
            Outcome::Decided(decision) => decision,
            Outcome::NotSent(NotSent::Disconnected) => {
                return self.answer(Err(ApiError::disconnected()), done);
            }
            Outcome::NotSent(NotSent::Busy) => {
                return self.answer(Err(queued_in_vain()), done);
            }
            Outcome::Unknown(doubt) => {
                let answer = match doubt {
                    Doubt::Timeout => ApiError::engine_timeout(),
                    Doubt::ConnectionLost | Doubt::UnexpectedReply => {
                        ApiError::unexpected_response()
                    }
                };
                return self.answer(Err(answer), done);
            }
        };
        self.shared.views.acknowledge(decision.position);
        match self.report(&decision) {
            Ok(Some(reply)) => self.answer(Ok(reply), done),
            Err(error) => self.answer(Err(error), done),
            Ok(None) => {
                let views = Arc::clone(&self.shared.views);
                views.when_reached(decision.position, self.deadline, move |outcome| {
                    done.resume(move |done| {
                        let reply = self.late_report(&decision, outcome);
                        self.answer(reply, done);
                    });
                });
            }
        }
    }

    /// Before the client hears of it, who is to ask what became of the command.
    fn note_doubt(&self) {
        let views = &self.shared.views;
        if let Some(owner) = owner_of(views, self.key) {
            views.doubt(owner, self.shared.config.deadline);
        }
    }

    /// The answer that had to wait for the views.
    fn late_report(
        &self,
        decision: &Decision,
        reached: Result<(), NotReached>,
    ) -> Result<Reply, ApiError> {
        let unexpected = ApiError::unexpected_response;
        reached.map_err(|_| unexpected())?;
        // What the views do not hold was done all the same.
        self.report(decision)?.ok_or_else(unexpected)
    }

    /// What the engine's decision comes to. Where something was done, and the answer to it cannot be made,
    /// the client has to look what became of the command; a rejection is an answer whatever it says.
    fn report(&self, decision: &Decision) -> Result<Option<Reply>, ApiError> {
        let is_rejected = matches!(decision.terminal, Terminal::Rejected(_));
        let report = self.report.reply(decision, &self.shared.views);
        report.map_err(|error| if is_rejected { error } else { ApiError::unexpected_response() })
    }

    fn answer(self, outcome: Result<Reply, ApiError>, done: Completion) {
        if outcome.as_ref().is_err_and(|error| error.code == TOO_MANY_ORDERS) {
            let (address, arrived_ms) = self.client;
            self.shared.limits.note_too_many_orders(address, arrived_ms);
        }
        let reply = outcome.unwrap_or_else(|error| error.reply());
        done.send(self.shared.complete(reply, &self.admission));
    }
}

/// The answer to a command that did not get to its turn in time: nothing has happened, nor will.
fn queued_in_vain() -> ApiError {
    ApiError::too_many_requests_queued().with_retry_after(BUSY_RETRY_S)
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
