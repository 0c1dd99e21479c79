//! How often somebody may ask: attempts to log in or to register, by client address and by that and the account,
//! logins that failed by account, writes by user, and requests of any kind if that is limited. All of it per adapter,
//! in fixed windows of time, in tables of fixed size ([`crate::limits::counts`]).

use std::hash::Hash;
use std::net::IpAddr;

use super::config::JobsConfig;
use super::refusal::Refusal;
use crate::http::Reply;
use crate::limits::counts::{Charge, Counted, Counts, Exceeded, Interval, RequestLimit, client};
use crate::views::records::{RecordId, UniqueKey};

/// Client addresses, accounts, and users, that are counted apart from each other.
const ROWS: usize = 16_384;

/// Counts that all further ones share. An address may name a thousand accounts a minute, so it takes few to
/// fill the rows.
const SHARED: usize = 16_384;

/// The limits and what was used of them.
pub(super) struct Quotas {
    requests: Option<Counts>,
    writes: Option<Counts<RecordId>>,
    attempts_by_address: Counts,
    attempts_by_both: Counts<(UniqueKey, IpAddr)>,
    /// Whoever made them: somebody who has many addresses guesses as often, and no more.
    failures_by_account: Counts<UniqueKey>,
}

impl Quotas {
    pub(super) fn new(config: &JobsConfig) -> Self {
        let per = |interval_num, limit| {
            let (counted, interval) = (Counted::RawRequests, Interval::Minute);
            vec![RequestLimit { counted, interval, interval_num, limit }]
        };
        let (requests, writes) = (config.requests_per_15_minutes, config.writes_per_minute);
        Self {
            requests: (requests > 0).then(|| counts(per(15, requests))),
            writes: (writes > 0).then(|| counts(per(1, writes))),
            attempts_by_address: counts(per(1, config.attempts_per_address)),
            attempts_by_both: counts(per(1, config.attempts_per_account)),
            failures_by_account: counts(per(1, config.failures_per_account())),
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

    /// Counts a write of a user's, whatever becomes of it.
    pub(super) fn write_of(&self, user: RecordId, now_ms: u64) -> Result<(), Refusal> {
        let Some(writes) = &self.writes else { return Ok(()) };
        match writes.charge_key(user, 1, now_ms).exceeded {
            None => Ok(()),
            Some(Exceeded { retry_after_s, .. }) => Err(Refusal::TooManyWrites { retry_after_s }),
        }
    }

    /// Counts an attempt from an address.
    pub(super) fn attempt_from(&self, address: IpAddr, now_ms: u64) -> Result<(), Refusal> {
        outcome(self.attempts_by_address.charge(address, 1, now_ms).exceeded)
    }

    /// Counts an attempt from an address at an account, be there one or not: nobody is kept out by what others try.
    pub(super) fn attempt_at(
        &self,
        account: UniqueKey,
        address: IpAddr,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        outcome(self.attempts_by_both.charge_key((account, client(address)), 1, now_ms).exceeded)
    }

    /// Whether there may be another login to an account, after all that have failed.
    pub(super) fn login_to(&self, account: UniqueKey, now_ms: u64) -> Result<(), Refusal> {
        outcome(self.failures_by_account.look_key(account, now_ms))
    }

    /// Counts a login to an account that has failed.
    pub(super) fn login_failed(&self, account: UniqueKey, now_ms: u64) {
        let _next_time = self.failures_by_account.charge_key(account, 1, now_ms);
    }
}

fn counts<K: Eq + Hash>(limits: Vec<RequestLimit>) -> Counts<K> {
    Counts::new(limits, ROWS, SHARED).expect("one limit of whole minutes is within the bounds")
}

fn outcome(exceeded: Option<Exceeded>) -> Result<(), Refusal> {
    match exceeded {
        None => Ok(()),
        Some(Exceeded { retry_after_s, .. }) => Err(Refusal::TooManyAttempts { retry_after_s }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn account(number: u64) -> UniqueKey {
        let mut key = UniqueKey::default();
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    }

    #[test]
    fn few_addresses_that_name_many_accounts_lock_out_nobody() {
        let config = JobsConfig::default();
        let quotas = Quotas::new(&config);
        let mut named = 0;
        for last in 1..=40 {
            let address = IpAddr::from([192, 0, 2, last]);
            for _ in 0..config.attempts_per_address {
                quotas.attempt_from(address, NOW_MS).unwrap();
                named += 1;
                let _counted = quotas.attempt_at(account(named), address, NOW_MS);
                let _looked = quotas.login_to(account(named), NOW_MS);
                quotas.login_failed(account(named), NOW_MS);
            }
        }
        assert!(named > 2 * ROWS as u64);
        let others = || (1..=1000).map(|number| account(u64::MAX - number));
        let owner = IpAddr::from([198, 51, 100, 1]);
        let refused =
            others().filter(|one| quotas.attempt_at(*one, owner, NOW_MS).is_err()).count();
        assert_eq!(refused, 0);
        assert!(others().all(|one| quotas.login_to(one, NOW_MS).is_ok()));
        // An account's own attempts are limited all the same.
        let one = account(u64::MAX);
        let mut attempts = 0..=config.attempts_per_account;
        assert!(attempts.any(|_| quotas.attempt_at(one, owner, NOW_MS).is_err()));
        let mut failures = 0..config.failures_per_account();
        assert!(failures.any(|_| {
            quotas.login_failed(one, NOW_MS);
            quotas.login_to(one, NOW_MS).is_err()
        }));
    }

    #[test]
    fn a_client_is_told_how_much_it_has_left_and_until_when() {
        let config = JobsConfig { requests_per_15_minutes: 2, ..JobsConfig::default() };
        let quotas = Quotas::new(&config);
        let told = |now_ms| {
            let charge = quotas.request(IpAddr::from([198, 51, 100, 1]), now_ms).unwrap();
            let mut reply = Reply::empty(200);
            quotas.add_headers(&charge, now_ms, &mut reply);
            let headers = reply.headers.iter().map(|(name, value)| format!("{name}: {value}"));
            let retry_after_s = charge.exceeded.map(|exceeded| exceeded.retry_after_s);
            (retry_after_s, headers.collect::<Vec<_>>())
        };
        let expected = |remaining: u64, reset_s: u64| {
            vec![
                "X-RateLimit-Limit: 2".to_owned(),
                format!("X-RateLimit-Remaining: {remaining}"),
                format!("X-RateLimit-Reset: {reset_s}"),
            ]
        };
        let begin_s = (NOW_MS / 1000).next_multiple_of(900);
        let (begin_ms, end_s) = (begin_s * 1000, begin_s + 900);
        assert_eq!(told(begin_ms), (None, expected(1, end_s)));
        assert_eq!(told(begin_ms + 1), (None, expected(0, end_s)));
        assert_eq!(told(begin_ms + 1), (Some(900), expected(0, end_s)));
        assert_eq!(told(begin_ms + 899_999), (Some(1), expected(0, end_s)));
        assert_eq!(told(begin_ms + 900_000), (None, expected(1, end_s + 900)));
        let unlimited = JobsConfig { requests_per_15_minutes: 0, ..config };
        let quotas = Quotas::new(&unlimited);
        assert_eq!(quotas.request(IpAddr::from([198, 51, 100, 1]), begin_ms), None);
    }

    #[test]
    fn writes_are_counted_by_user_and_minute() {
        let config = JobsConfig { writes_per_minute: 2, ..JobsConfig::default() };
        let quotas = Quotas::new(&config);
        let minute_ms = NOW_MS.next_multiple_of(60_000);
        let refused = |user: u8, now_ms| match quotas.write_of([user; 12], now_ms) {
            Ok(()) => None,
            Err(Refusal::TooManyWrites { retry_after_s }) => Some(retry_after_s),
            Err(other) => panic!("{other:?}"),
        };
        let all = [1, 1, 1, 2].map(|user| refused(user, minute_ms + 59_000));
        assert_eq!(all, [None, None, Some(1), None]);
        assert_eq!(refused(1, minute_ms + 60_000), None);
        let unlimited = Quotas::new(&JobsConfig { writes_per_minute: 0, ..config });
        assert!((0..1000).all(|_| unlimited.write_of([1; 12], minute_ms).is_ok()));
    }

    #[test]
    fn attempts_are_counted_by_the_minute() {
        let config = JobsConfig {
            attempts_per_address: 1,
            attempts_per_account: 1,
            ..JobsConfig::default()
        };
        let quotas = Quotas::new(&config);
        let (one, address) = (account(1), IpAddr::from([198, 51, 100, 1]));
        let minute_ms = NOW_MS.next_multiple_of(60_000);
        let retry_after_s = |attempt| match attempt {
            Ok(()) => None,
            Err(Refusal::TooManyAttempts { retry_after_s }) => Some(retry_after_s),
            Err(other) => panic!("{other:?}"),
        };
        for (after_ms, expected) in [(0, None), (1, Some(60)), (59_001, Some(1)), (60_000, None)] {
            let now_ms = minute_ms + after_ms;
            assert_eq!(retry_after_s(quotas.attempt_from(address, now_ms)), expected);
            assert_eq!(retry_after_s(quotas.attempt_at(one, address, now_ms)), expected);
        }
        // What failed a minute ago keeps nobody out either.
        for _ in 0..config.failures_per_account() {
            assert_eq!(retry_after_s(quotas.login_to(one, minute_ms)), None);
            quotas.login_failed(one, minute_ms);
        }
        assert_eq!(retry_after_s(quotas.login_to(one, minute_ms + 1)), Some(60));
        assert_eq!(retry_after_s(quotas.login_to(one, minute_ms + 60_000)), None);
    }

    #[test]
    fn who_tries_an_account_keeps_out_himself_and_its_owner_only_from_many_addresses() {
        let config = JobsConfig::default();
        let quotas = Quotas::new(&config);
        let (one, owner) = (account(1), IpAddr::from([198, 51, 100, 1]));
        let owner_may = || {
            quotas
                .attempt_at(one, owner, NOW_MS)
                .and_then(|()| quotas.login_to(one, NOW_MS))
                .is_ok()
        };
        let mut guesses = 0;
        for last in 1..=20 {
            let attacker = IpAddr::from([192, 0, 2, last]);
            assert_eq!(owner_may(), guesses < config.failures_per_account(), "{guesses}");
            for _ in 0..2 * config.attempts_per_account {
                let attempt = quotas.attempt_at(one, attacker, NOW_MS);
                if attempt.and_then(|()| quotas.login_to(one, NOW_MS)).is_ok() {
                    guesses += 1;
                    quotas.login_failed(one, NOW_MS);
                }
            }
            assert!(guesses <= u64::from(last) * config.attempts_per_account);
        }
        assert_eq!(guesses, config.failures_per_account());
        assert!(!owner_may() && quotas.login_to(account(2), NOW_MS).is_ok());
        let same_network = IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, 1]);
        let other_half = IpAddr::from([0x2001, 0xdb8, 0, 1, 9, 9, 9, 9]);
        for _ in 0..config.attempts_per_account {
            quotas.attempt_at(one, same_network, NOW_MS).unwrap();
        }
        assert!(quotas.attempt_at(one, other_half, NOW_MS).is_err(), "one client of IPv6");
    }
}
