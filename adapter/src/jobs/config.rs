//! Section `[jobs]` of `venue.toml`. Read by the executable; every key has a default, unknown keys are
//! errors.

use serde::Deserialize;
use thiserror::Error;

use crate::auth::keys::TOKEN_LIFETIME_MAX_S;

/// Section `[jobs]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobsConfig {
    /// How long a token is good for, 60 to 2,592,000 s.
    pub token_lifetime_s: u64,
    /// Attempts to log in or to register, per client address and minute, at least 1.
    pub attempts_per_address: u64,
    /// The same, per e-mail address, client address and minute. Ten times as many logins to an e-mail address may fail
    /// within a minute, whoever made them.
    pub attempts_per_account: u64,
    /// Jobs made, changed and deleted, per user and minute; 0: as many as you like. Each is written to the log.
    pub writes_per_minute: u64,
    /// Requests of every kind per client address and quarter of an hour; 0: as many as you like.
    pub requests_per_15_minutes: u64,
    /// Threads that hash passwords, 1 to 64; each takes 19 MiB once it was needed.
    pub hashing_threads: usize,
    /// Logins and registrations that may wait for them, 0 to 10,000; more are answered 503, and so are those of a client
    /// address that has half of the places, threads and line together.
    pub hashing_waiting: usize,
}

impl Default for JobsConfig {
    fn default() -> Self {
        Self {
            token_lifetime_s: 24 * 3600,
            attempts_per_address: 1000,
            attempts_per_account: 100,
            writes_per_minute: 6_000,
            requests_per_15_minutes: 0,
            hashing_threads: 2,
            hashing_waiting: 128,
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("jobs.{key} is {found}, must be {expected}")]
pub struct JobsConfigError {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub found: u64,
    /// What it may be.
    pub expected: &'static str,
}

/// Logins to an account that may fail, for each attempt that an address has at it.
const FAILURES_PER_ATTEMPT: u64 = 10;

impl JobsConfig {
    /// Logins to an e-mail address that may fail within a minute, whoever made them.
    #[must_use]
    pub const fn failures_per_account(&self) -> u64 {
        self.attempts_per_account.saturating_mul(FAILURES_PER_ATTEMPT)
    }

    /// Checks every value against its range.
    ///
    /// # Errors
    /// The first that is outside.
    pub fn validate(&self) -> Result<(), JobsConfigError> {
        let check = |key, found, (least, most), expected| {
            let is_fit = (least..=most).contains(&found);
            is_fit.then_some(()).ok_or(JobsConfigError { key, found, expected })
        };
        let lifetime = (60, TOKEN_LIFETIME_MAX_S);
        check("token_lifetime_s", self.token_lifetime_s, lifetime, "60 to 2592000")?;
        let some = (1, u64::MAX);
        check("attempts_per_address", self.attempts_per_address, some, "at least 1")?;
        check("attempts_per_account", self.attempts_per_account, some, "at least 1")?;
        check("hashing_threads", self.hashing_threads as u64, (1, 64), "1 to 64")?;
        check("hashing_waiting", self.hashing_waiting as u64, (0, 10_000), "0 to 10000")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_default_and_ranges_are_told() {
        let read = |json: &str| serde_json::from_str::<JobsConfig>(json);
        assert_eq!(read("{}").unwrap(), JobsConfig::default());
        JobsConfig::default().validate().unwrap();
        assert!(read(r#"{"token_lifetime":5}"#).is_err());
        for (json, message) in [
            (r#"{"token_lifetime_s":59}"#, "jobs.token_lifetime_s is 59, must be 60 to 2592000"),
            (
                r#"{"token_lifetime_s":2592001}"#,
                "jobs.token_lifetime_s is 2592001, must be 60 to 2592000",
            ),
            (r#"{"attempts_per_address":0}"#, "jobs.attempts_per_address is 0, must be at least 1"),
            (r#"{"attempts_per_account":0}"#, "jobs.attempts_per_account is 0, must be at least 1"),
            (r#"{"hashing_threads":0}"#, "jobs.hashing_threads is 0, must be 1 to 64"),
            (r#"{"hashing_threads":65}"#, "jobs.hashing_threads is 65, must be 1 to 64"),
            (r#"{"hashing_waiting":10001}"#, "jobs.hashing_waiting is 10001, must be 0 to 10000"),
        ] {
            assert_eq!(read(json).unwrap().validate().unwrap_err().to_string(), message);
        }
    }
}
