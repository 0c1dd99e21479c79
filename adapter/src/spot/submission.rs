//! A command of the spot service on its way to the engine, and what its outcome is told as. Called by
//! [`super::exchange`], which sends it, and by the handlers, which make it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use touchline_protocol::units::KeyId;

use super::Shared;
use super::intake::Signed;
use super::reject;
use super::report::Report;
use crate::api_error::ApiError;
use crate::http::{Completion, Reply};
use crate::limits::Admission;
use crate::link::{Decision, Doubt, NotSent, OrderCommand, Outcome, Terminal};
use crate::views::doubts::Owner;
use crate::views::{NotReached, Views};

/// Code of the one 429 that the engine decides.
const TOO_MANY_ORDERS: i32 = -1015;

/// When a client may try again whose command found the way to the engine full, or the engine late, in seconds.
const BUSY_RETRY_S: u64 = 1;

/// A command for the engine and how its outcome is told.
pub(super) struct Submission {
    command: OrderCommand,
    report: Box<dyn Report>,
    /// The request's deadline comes before the end of its `recvWindow`.
    deadline_first: bool,
}

impl Submission {
    /// A command of a signed request, in its name and within its time.
    pub(super) fn new(
        mut command: OrderCommand,
        signed: &Signed,
        report: impl Report + 'static,
    ) -> Self {
        let header = command.header_mut();
        header.key_id = signed.caller.key;
        header.not_after_ns = signed.not_after_ns;
        let deadline_first = signed.deadline_first;
        Self { command, report: Box::new(report), deadline_first }
    }

    /// Sends it; its outcome, or that there is none until `deadline`, is told to the client.
    pub(super) fn send(self, client: Client, deadline: Instant, done: Completion) {
        let Self { mut command, report, deadline_first } = self;
        let key = command.header_mut().key_id;
        let engine = Arc::clone(&client.shared.engine);
        let submitted = Submitted { client, key, deadline, report, deadline_first };
        let tell = move |outcome| {
            // Here, since a client that has gone has no more turns, and comes back to ask.
            if matches!(outcome, Outcome::Unknown(_)) {
                submitted.note_doubt();
            }
            done.resume(move |done| submitted.conclude(outcome, done));
        };
        engine.submit(command, deadline, Box::new(tell));
    }
}

/// Whose request a command came from.
pub(super) struct Client {
    pub(super) shared: Arc<Shared>,
    pub(super) address: IpAddr,
    /// When the request arrived, ms since the epoch.
    pub(super) arrived_ms: u64,
    pub(super) admission: Admission,
}

/// A request whose command is on its way.
struct Submitted {
    client: Client,
    /// Whose key sent it.
    key: KeyId,
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
        self.client.shared.views.acknowledge(decision.position);
        match self.report(&decision) {
            Ok(Some(reply)) => self.answer(Ok(reply), done),
            Err(error) => self.answer(Err(error), done),
            Ok(None) => {
                let views = Arc::clone(&self.client.shared.views);
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
        let views = &self.client.shared.views;
        if let Some(owner) = owner_of(views, self.key) {
            views.doubt(owner, self.client.shared.config.deadline);
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
        let report = self.report.reply(decision, &self.client.shared);
        report.map_err(|error| if is_rejected { error } else { ApiError::unexpected_response() })
    }

    fn answer(self, outcome: Result<Reply, ApiError>, done: Completion) {
        if outcome.as_ref().is_err_and(|error| error.code == TOO_MANY_ORDERS) {
            let Client { shared, address, arrived_ms, .. } = &self.client;
            shared.limits.note_too_many_orders(*address, *arrived_ms);
        }
        let reply = outcome.unwrap_or_else(|error| error.reply());
        done.send(self.client.shared.complete(reply, &self.client.admission));
    }
}

/// Whose key it is.
pub(super) fn owner_of(views: &Views, key: KeyId) -> Option<Owner> {
    let account = views.read(|state| state.accounts.key(key).map(|record| record.account));
    account.map(Owner::Account)
}

/// The answer to a command that did not get to its turn in time: nothing has happened, nor will.
pub(super) fn queued_in_vain() -> ApiError {
    ApiError::too_many_requests_queued().with_retry_after(BUSY_RETRY_S)
}
