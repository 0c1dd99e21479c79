//! One request on its way to its reply, and the steps that operations have in common: counting it, knowing
//! who sends it, waiting for the views, writing a record. Dropped unanswered, it answers through its
//! completion.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use percent_encoding::percent_decode_str;
use touchline_protocol::message::event::Rejected;
use touchline_protocol::units::Position;

use super::record::{self, JOB, Job};
use super::refusal::Refusal;
use super::routes::Handler;
use super::{Shared, complete};
use crate::denial::Denial;
use crate::http::{Completion, Method, Reply, Request};
use crate::limits::counts::Charge;
use crate::link::{NotSent, Outcome, RecordCommand, RecordTerminal, Records, Traffic};
use crate::route::Route;
use crate::views::doubts::Owner;
use crate::views::records::{NOBODY, Record, RecordId};

/// A request and who is behind it.
pub(super) struct Exchange {
    pub(super) shared: Arc<Shared>,
    pub(super) request: Request,
    /// The user of the request's token; nobody on open routes.
    pub(super) user: RecordId,
    /// The path's last segment, decoded, where the route has one for it.
    pub(super) argument: String,
    /// Whose request it is: the peer's, or that of whom a trusted proxy speaks for.
    pub(super) address: IpAddr,
    charge: Option<Charge>,
    /// The views hold all that was done when something was not found in them.
    is_certain: bool,
    deadline: Instant,
    done: Completion,
}

/// What the engine did with a record, or not.
pub(super) struct Decided {
    /// Position behind it in the log; of a reject, behind the transaction before.
    pub(super) position: Position,
    /// When, in milliseconds since the epoch.
    pub(super) time_ms: u64,
    pub(super) outcome: Result<(), Rejected>,
}

impl Exchange {
    pub(super) fn new(shared: Arc<Shared>, request: Request, done: Completion) -> Self {
        let deadline = request.arrived + shared.deadline;
        let address = shared.limits.client(request.peer.ip(), &request.headers);
        let (user, argument, charge, is_certain) = (NOBODY, String::new(), None, false);
        Self { shared, request, user, argument, address, charge, is_certain, deadline, done }
    }

    pub(super) const fn method(&self) -> Method {
        self.request.method
    }

    pub(super) fn path(&self) -> &str {
        &self.request.path
    }

    /// When the request arrived, in seconds since the epoch.
    pub(super) const fn now_s(&self) -> u64 {
        self.request.arrived_ns / 1_000_000_000
    }

    /// Counts the request, if requests are limited.
    pub(super) fn count(&mut self) -> Result<(), Refusal> {
        self.charge = self.shared.quotas.request(self.address, self.request.arrived_ms());
        match self.charge.and_then(|charge| charge.exceeded) {
            None => Ok(()),
            Some(exceeded) => Err(exceeded.into()),
        }
    }

    /// Finds out whose token the request carries: `Authorization: Bearer TOKEN`, once.
    pub(super) fn authenticate(&mut self) -> Result<(), Refusal> {
        let mut headers = self.request.headers.get_all("authorization");
        let (Some(header), None) = (headers.next(), headers.next()) else {
            return Err(Refusal::Unauthenticated);
        };
        let text = std::str::from_utf8(header).map_err(|_| Refusal::Unauthenticated)?;
        let mut words = text.split(' ');
        let (Some("Bearer"), Some(token)) = (words.next(), words.next()) else {
            return Err(Refusal::Unauthenticated);
        };
        let subject = self.shared.tokens.subject(token, self.now_s());
        let user = subject.ok().filter(|subject| subject.len() == 24);
        let user = user.and_then(|subject| record::read_id(&subject));
        self.user = user.filter(|user| *user != NOBODY).ok_or(Refusal::Unauthenticated)?;
        Ok(())
    }

    /// Reads what stands for the route's segment in braces, if it has one.
    pub(super) fn read_argument(&mut self, route: &Route<Handler>) -> Result<(), Refusal> {
        let Some(raw) = route.argument(self.path()) else { return Ok(()) };
        // The decoder lets a % stand that two digits do not follow.
        let is_escape = |rest: &str| {
            let digits = rest.as_bytes().first_chunk::<2>();
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        let is_sound = raw.split('%').skip(1).all(is_escape);
        let decoded = percent_decode_str(raw).decode_utf8().ok().filter(|_| is_sound);
        let undecodable = || Refusal::Invalid(format!("Failed to decode param '{raw}'"));
        self.argument = decoded.ok_or_else(undecodable)?.into_owned();
        Ok(())
    }

    /// That the body, if one is read, is in no coding. What type it says that it has is not looked at.
    pub(super) fn check_coding(&self) -> Result<(), Refusal> {
        let is_none = |coding: &[u8]| {
            let coding = coding.trim_ascii();
            coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
        };
        let mut fields = self.request.headers.get_all("content-encoding");
        let is_plain = fields.all(|field| field.split(|&byte| byte == b',').all(is_none));
        let is_read = matches!(self.method(), Method::Post | Method::Patch);
        if is_plain || !is_read || self.request.body.is_empty() {
            Ok(())
        } else {
            Err(Refusal::Encoded)
        }
    }

    /// The id that the path names.
    pub(super) fn job_id(&self) -> Result<RecordId, Refusal> {
        record::read_id(&self.argument).ok_or_else(|| Refusal::NoItem(self.argument.clone()))
    }

    /// That there is no such job, or that it is another user's.
    pub(super) fn no_job(&self) -> Refusal {
        Refusal::NoJob(self.argument.clone())
    }

    /// Looks at a job of the user's; the refusal is for [`Exchange::deny`].
    pub(super) fn own_job<R>(
        &self,
        id: &RecordId,
        look: impl FnOnce(&Record, Job<'_>) -> R,
    ) -> Result<R, Refusal> {
        self.shared
            .views
            .read(|state| {
                let (found, owner) = state.records.get(id)?;
                let is_own = owner == self.user && found.kind == JOB;
                let job = is_own.then(|| Job::decode(&found.content)).flatten()?;
                Some(look(found, job))
            })
            .ok_or_else(|| self.no_job())
    }

    /// Goes on once the views hold all that was acknowledged by now, and all that is in doubt of the user if that can
    /// be known soon: who looks what became of a write, and sees nothing of it, does it again.
    pub(super) fn when_current(self, then: impl FnOnce(Self) + Send + 'static) {
        let views = Arc::clone(&self.shared.views);
        let awaited = views.awaited(|| Some(Owner::User(self.user)), self.shared.deadline);
        let waits = awaited.and_then(|one| Some((one.position, one.wait_until(self.deadline)?)));
        let Some((position, until)) = waits else { return self.when_acknowledged(then) };
        views.when_reached(position, until, move |_| {
            self.resume(move |exchange| exchange.when_acknowledged(then));
        });
    }

    fn when_acknowledged(self, then: impl FnOnce(Self) + Send + 'static) {
        let current = self.shared.views.current();
        self.when_reached(current, then);
    }

    /// Refuses the user for what the views do not show: now if they held all that was done when it was looked for, else
    /// once they do and it is still not there when `look` has looked again. It may be there in a moment, or when an
    /// engine is back, and who is told that it is not does it again ([`Denial`]).
    pub(super) fn deny(self, refusal: &Refusal, look: impl FnOnce(Self) + Send + 'static) {
        let owner = Owner::User(self.user);
        self.deny_to(owner, refusal, look);
    }

    /// As [`Exchange::deny`], whom it would be there for.
    pub(super) fn deny_to(
        mut self,
        owner: Owner,
        refusal: &Refusal,
        look: impl FnOnce(Self) + Send + 'static,
    ) {
        if self.is_certain {
            return self.refuse(refusal);
        }
        self.is_certain = true;
        self.when_certain(owner, u64::MAX, look);
    }

    /// Writes that are under way are looked at with numbers up to `last`.
    fn when_certain(self, owner: Owner, last: u64, look: impl FnOnce(Self) + Send + 'static) {
        let Shared { views, engine, .. } = &*self.shared;
        match Denial::of((views, &**engine), Some(owner), &|whose| whose == owner, last) {
            Denial::Unknown => self.refuse(&Refusal::Busy),
            Denial::Reached(position) => self.when_reached(position, look),
            Denial::Ended(write) => {
                let (engine, deadline) = (Arc::clone(engine), self.deadline);
                let ended = move |has_ended| {
                    self.resume(move |exchange| match has_ended {
                        true => exchange.when_certain(owner, write.saturating_sub(1), look),
                        false => exchange.refuse(&Refusal::Busy),
                    });
                };
                engine.when_ended(write, deadline, Box::new(ended));
            }
        }
    }

    /// Goes on once the views hold all before `position`.
    pub(super) fn when_reached(self, position: Position, then: impl FnOnce(Self) + Send + 'static) {
        let views = Arc::clone(&self.shared.views);
        if views.reached() >= position {
            return then(self);
        }
        views.when_reached(position, self.deadline, move |reached| {
            self.resume(move |exchange| match reached {
                Ok(()) => then(exchange),
                Err(_) => exchange.refuse(&Refusal::Busy),
            });
        });
    }

    /// The request, unless it has taken as long as it may: for work that is long and of no use then.
    pub(super) fn in_time(self) -> Option<Self> {
        if Instant::now() < self.deadline {
            return Some(self);
        }
        self.refuse(&Refusal::Busy);
        None
    }

    /// Goes on with the request on the thread that serves its connection.
    fn resume(self, then: impl FnOnce(Self) + Send + 'static) {
        let Self { shared, request, user, argument, address, charge, is_certain, deadline, done } =
            self;
        done.resume(move |done| {
            let moved = Self {
                shared,
                request,
                user,
                argument,
                address,
                charge,
                is_certain,
                deadline,
                done,
            };
            then(moved);
        });
    }

    /// Has the engine write or delete a record, if the user may write so often, and goes on with what it decided.
    pub(super) fn write(
        self,
        mut command: RecordCommand,
        then: impl FnOnce(Self, Decided) + Send + 'static,
    ) {
        if self.user != NOBODY {
            let counted = self.shared.quotas.write_of(self.user, self.request.arrived_ms());
            if let Err(refusal) = counted {
                return self.refuse(&refusal);
            }
        }
        let (engine, deadline) = (Arc::clone(&self.shared.engine), self.deadline);
        // What the client is told to be unknown does not happen later either.
        let patience = u64::try_from(self.shared.deadline.as_nanos()).unwrap_or(u64::MAX);
        Records::header_mut(&mut command).not_after_ns =
            self.shared.views.not_after_ns(self.request.arrived_ns.saturating_add(patience));
        let owner = Records::whose(&command);
        let done = move |outcome| {
            // Here, since a client that has gone has no more turns, and comes back to ask.
            if matches!(outcome, Outcome::Unknown(_)) {
                self.shared.views.doubt(owner, self.shared.deadline);
            }
            self.resume(move |exchange| exchange.decided(outcome, then));
        };
        engine.submit(command, deadline, Box::new(done));
    }

    /// Goes on with what the engine decided, if it did.
    fn decided(self, outcome: Outcome<Records>, then: impl FnOnce(Self, Decided)) {
        let decision = match outcome {
            Outcome::Decided(decision) => decision,
            Outcome::NotSent(NotSent::Disconnected | NotSent::Busy) => {
                return self.refuse(&Refusal::Busy);
            }
            Outcome::Unknown(_) => return self.refuse(&Refusal::Unknown),
        };
        self.shared.views.acknowledge(decision.position);
        let outcome = match decision.terminal {
            RecordTerminal::Put(_) | RecordTerminal::Deleted(_) => Ok(()),
            RecordTerminal::Rejected(rejected) => Err(rejected),
        };
        let (position, time_ms) = (decision.position, decision.time_ns / 1_000_000);
        then(self, Decided { position, time_ms, outcome });
    }

    pub(super) fn refuse(self, refusal: &Refusal) {
        self.answer(refusal.reply());
    }

    pub(super) fn answer(self, reply: Reply) {
        let mut reply = complete(reply);
        if let Some(charge) = self.charge {
            let now_ms = self.request.arrived_ms();
            self.shared.quotas.add_headers(&charge, now_ms, &mut reply);
        }
        self.done.send(reply);
    }
}
