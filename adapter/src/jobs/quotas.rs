//! How often somebody may ask: attempts to log in or to register, by client address and by account, and
//! requests of any kind if that is limited. All of it per adapter, in fixed windows of time, in tables of
//! fixed size ([`crate::limits::counts`]).

use std::net::IpAddr;

use super::config::JobsConfig;
use super::refusal::Refusal;
use crate::http::Reply;
use crate::limits::counts::{Charge, Counted, Counts, Exceeded, Interval, RequestLimit};
use crate::views::records::UniqueKey;

/// Client addresses, and accounts, that are counted apart from each other.
const ROWS: usize = 16_384;

/// The limits and what was used of them.
pub(super) struct Quotas {
    requests: Option<Counts>,
    attempts_by_address: Counts,
    attempts_by_account: Counts<UniqueKey>,
}

impl Quotas {
    pub(super) fn new(config: &JobsConfig) -> Self {
        let per = |interval_num, limit| {
            let (counted, interval) = (Counted::RawRequests, Interval::Minute);
            vec![RequestLimit { counted, interval, interval_num, limit }]
        };
        let fits = "one limit of whole minutes is within the bounds";
        let requests = config.requests_per_15_minutes;
        Self {
            requests: (requests > 0).then(|| Counts::new(per(15, requests), ROWS).expect(fits)),
            attempts_by_address: Counts::new(per(1, config.attempts_per_address), ROWS)
                .expect(fits),
            attempts_by_account: Counts::new(per(1, config.attempts_per_account), ROWS)
                .expect(fits),
        }
    }

    /// Counts a request of any kind; `None` if those are not limited.
    pub(super) fn request(&self, address: IpAddr, now_ms: u64) -> Option<Charge> {
        self.requests.as_ref().map(|requests| requests.charge(address, 1, now_ms))
    }

    /// Tells a client how many requests it has left (facts §13).
    pub(super) fn add_headers(&self, charge: &Charge, now_ms: u64, reply: &mut Reply) {
        let Some(limit) = self.requests.as_ref().and_then(|requests| requests.limits().first())
        else {
            return;
        };
        let window = limit.window_ms();
        let end_s = (now_ms / window + 1) * (window / 1000);
        for (name, value) in [
            ("X-RateLimit-Limit", limit.limit),
            ("X-RateLimit-Remaining", limit.limit.saturating_sub(charge.first_used())),
            ("X-RateLimit-Reset", end_s),
        ] {
            reply.headers.push((name.into(), value.to_string().into()));
        }
    }

    /// Counts an attempt from an address.
    pub(super) fn attempt_from(&self, address: IpAddr, now_ms: u64) -> Result<(), Refusal> {
        outcome(self.attempts_by_address.charge(address, 1, now_ms).exceeded)
    }

    /// Counts an attempt at an account, be there one or not.
    pub(super) fn attempt_at(&self, account: UniqueKey, now_ms: u64) -> Result<(), Refusal> {
        outcome(self.attempts_by_account.charge_key(account, 1, now_ms).exceeded)
    }
}

fn outcome(exceeded: Option<Exceeded>) -> Result<(), Refusal> {
    match exceeded {
        None => Ok(()),
        Some(Exceeded { retry_after_s, .. }) => Err(Refusal::TooManyAttempts { retry_after_s }),
    }
}
