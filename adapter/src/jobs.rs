//! The jobs service (jobs contract): people register and log in, and keep a list of jobs that they have
//! applied for. Called by the front through `crate::services`; composed by [`crate::run`].
//!
//! Users and jobs are records in the engine's log, which alone decides what is taken: that an e-mail
//! address is used once, and that nobody overwrites a change that he has not seen. What is read comes from
//! the views, once they hold all that was acknowledged when the request arrived. Passwords and tokens stay
//! here: the engine gets the password's hash, and nothing of a token.

pub mod config;
mod document;
mod email;
mod exchange;
mod fields;
mod listing;
mod quotas;
mod readers;
pub mod record;
mod refusal;
mod responses;
mod routes;
mod users;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use crate::auth::pool::HashingPool;
use crate::auth::token::Tokens;
use crate::denial;
use crate::http::{Completion, Fault, Refused, Reply, Request, Service};
use crate::limits::Limits;
use crate::link::{Records, Submit};
use crate::route::{Lookup, RouteTable, Security};
use crate::views::Views;
use config::JobsConfig;
pub use document::document;
use exchange::Exchange;
use quotas::Quotas;
use readers::Readers;
use refusal::Refusal;
use routes::Handler;
pub use routes::operations;

/// Longest body of a request, in bytes (facts §13).
pub const BODY_BYTES_MAX: usize = 100 * 1024;

/// The jobs service.
pub struct Jobs {
    shared: Arc<Shared>,
}

/// What all requests share.
struct Shared {
    views: Arc<Views>,
    engine: Arc<dyn Submit<Records>>,
    tokens: Tokens,
    pool: HashingPool,
    quotas: Quotas,
    readers: Arc<Readers>,
    limits: Arc<Limits>,
    routes: RouteTable<Handler>,
    deadline: Duration,
}

impl Jobs {
    /// A service that reads from `views`, writes through `engine`, knows users by `tokens`, and has `pool`
    /// hash their passwords; `limits` tell which addresses are not served, and whom proxies speak for.
    /// `deadline` is the longest that a request may take, from its arrival.
    #[must_use]
    pub fn new(
        config: &JobsConfig,
        deadline: Duration,
        limits: Arc<Limits>,
        views: Arc<Views>,
        engine: Arc<dyn Submit<Records>>,
        (tokens, pool): (Tokens, HashingPool),
    ) -> Self {
        denial::note_lost(&views, &*engine, deadline, |_, owner| Some(owner));
        let shared = Shared {
            views,
            engine,
            tokens,
            pool,
            quotas: Quotas::new(config),
            readers: readers::readers(),
            limits,
            routes: RouteTable::new(routes::routes()).expect("no route stands there twice"),
            deadline,
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Service for Jobs {
    fn call(&self, request: Request, done: Completion) {
        let mut exchange = Exchange::new(Arc::clone(&self.shared), request, done);
        if self.shared.limits.denies(exchange.address) {
            return exchange.answer(Reply::empty(403));
        }
        if let Err(refusal) = exchange.count() {
            return exchange.refuse(&refusal);
        }
        let route = match self.shared.routes.lookup(exchange.method(), exchange.path()) {
            Lookup::Found(route) => route,
            Lookup::Options(allow) => {
                let reply = preflight(allow);
                return exchange.answer(reply);
            }
            Lookup::WrongMethod(_) | Lookup::NotFound => {
                return exchange.refuse(&Refusal::NoRoute);
            }
        };
        let ready = match route.security {
            Security::Bearer => exchange.authenticate(),
            _ => Ok(()),
        };
        let ready = ready.and_then(|()| exchange.read_argument(route));
        let ready = ready.and_then(|()| exchange.check_coding());
        match ready {
            Ok(()) => (route.handler)(exchange),
            Err(refusal) => exchange.refuse(&refusal),
        }
    }

    fn body_limit(&self, _path: &str) -> usize {
        BODY_BYTES_MAX
    }

    fn fault(&self, refused: &Refused<'_>, fault: Fault) -> Reply {
        let (client, is_counted) = self.shared.limits.answerable(refused, fault);
        let now_ms = refused.refused_ns / 1_000_000;
        if self.shared.limits.denies(client) {
            return complete(Reply::empty(403));
        }
        let quotas = &self.shared.quotas;
        let charge = if is_counted { quotas.request(client, now_ms) } else { None };
        let reply = match charge.and_then(|charge| charge.exceeded) {
            Some(exceeded) => Refusal::from(exceeded).reply(),
            None => refusal::of_fault(fault, self.shared.routes.allow(refused.path)),
        };
        let mut reply = complete(reply);
        if let Some(charge) = charge {
            quotas.add_headers(&charge, now_ms, &mut reply);
        }
        reply
    }
}

/// Adds what every reply carries: any page's script may read it, nobody keeps it, and nobody guesses what
/// it is.
fn complete(reply: Reply) -> Reply {
    reply
        .header("Access-Control-Allow-Origin", "*")
        .header("Cache-Control", "no-store")
        .header("X-Content-Type-Options", "nosniff")
}

/// What a browser asks before it lets a page send a token.
fn preflight(allow: &str) -> Reply {
    Reply::empty(204)
        .header("Allow", allow.to_owned())
        .header("Access-Control-Allow-Methods", allow.to_owned())
        .header("Access-Control-Allow-Headers", "Authorization, Content-Type")
        .header("Access-Control-Max-Age", "600")
}

#[cfg(test)]
mod tests;
