//! The two services behind one front: paths below `/api/v1` are the jobs service's, all others the spot
//! service's. Composed by [`crate::run`]; the services do not know each other.

use std::sync::Arc;

use crate::http::{Completion, Fault, Refused, Reply, Request, Service};
use crate::jobs::Jobs;
use crate::link::{Link, Records};
use crate::spot::Spot;

/// Both services.
pub(crate) struct Services {
    spot: Spot,
    jobs: Jobs,
    links: (Arc<Link>, Arc<Link<Records>>),
}

impl Services {
    /// These two, each with the link that its commands go over.
    pub(crate) fn new(
        (spot, orders): (Spot, Arc<Link>),
        (jobs, records): (Jobs, Arc<Link<Records>>),
    ) -> Self {
        Self { spot, jobs, links: (orders, records) }
    }

    fn of(&self, path: &str) -> &dyn Service {
        let below = path.strip_prefix("/api/v1");
        if below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            &self.jobs
        } else {
            &self.spot
        }
    }
}

impl Service for Services {
    fn call(&self, request: Request, done: Completion) {
        self.of(&request.path).call(request, done);
    }

    fn worker_wakes(&self) {
        self.links.0.worker_wakes();
        self.links.1.worker_wakes();
    }

    fn worker_looks(&self) {
        self.links.0.worker_looks();
        self.links.1.worker_looks();
    }

    fn worker_turns(&self) {
        self.links.0.worker_turns();
        self.links.1.worker_turns();
    }

    fn worker_sleeps(&self) {
        self.links.0.worker_sleeps();
        self.links.1.worker_sleeps();
    }

    fn body_limit(&self, path: &str) -> usize {
        self.of(path).body_limit(path)
    }

    fn fault(&self, refused: &Refused<'_>, fault: Fault) -> Reply {
        self.of(refused.path).fault(refused, fault)
    }
}
