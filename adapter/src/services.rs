//! The two services behind one front: paths below `/api/v1` are the jobs service's, all others the spot
//! service's. Composed by [`crate::run`]; the services do not know each other.

use crate::http::{Completion, Fault, Refused, Reply, Request, Service};
use crate::jobs::Jobs;
use crate::spot::Spot;

/// Both services.
pub(crate) struct Services {
    spot: Spot,
    jobs: Jobs,
}

impl Services {
    /// These two.
    pub(crate) const fn new(spot: Spot, jobs: Jobs) -> Self {
        Self { spot, jobs }
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

    fn body_limit(&self, path: &str) -> usize {
        self.of(path).body_limit(path)
    }

    fn fault(&self, refused: &Refused<'_>, fault: Fault) -> Reply {
        self.of(refused.path).fault(refused, fault)
    }
}
