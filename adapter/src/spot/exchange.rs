//! One request of the spot service on its way to its reply: what it waits for, and what its checks and its handler come
//! to. Called by [`super::Spot`]; what leaves for the engine goes on as a [`Submission`].

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use touchline_protocol::units::Position;

use super::Shared;
use super::intake::{self, Intake};
use super::long::Steps;
use super::routes::{Handler, Serve};
use super::submission::{Client, Submission, owner_of, queued_in_vain};
use crate::api_error::ApiError;
use crate::denial::Denial;
use crate::http::{Completion, Method, Reply, Request};
use crate::limits::Admission;
use crate::route::{Route, Security, open_to_any_origin};
use crate::views::NotReached;
use crate::views::doubts::{Owner, Unsettled};

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

/// What the checks and the handler came to.
enum Next {
    /// The answer.
    Reply(Reply),
    /// What leads to the answer, step by step.
    Steps(Steps),
    /// A command, whose outcome is the answer.
    Submit(Box<Submission>),
}

/// One request on its way to its reply. Dropped unanswered, it answers through its completion.
pub(super) struct Exchange {
    pub(super) shared: Arc<Shared>,
    pub(super) route: &'static Route<Handler>,
    pub(super) request: Request,
    /// Whose request it is.
    pub(super) address: IpAddr,
    pub(super) admission: Admission,
    pub(super) deadline: Instant,
    pub(super) done: Completion,
}

impl Exchange {
    pub(super) fn begin(self) {
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
        let arrived_ms = request.arrived_ms();
        drop(request);
        submission.send(Client { shared, address, arrived_ms, admission }, deadline, done);
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
