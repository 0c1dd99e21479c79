//! The adapter's part of `venue.toml`: section `[adapter]`. Read by the executable.
//!
//! Every key has a default; unknown keys are errors.

use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;
use touchline_protocol::client::Acknowledgement;
use touchline_protocol::log::reader::Follow;

use crate::front::FrontKind;
use crate::limits::LimitsConfig;
use crate::limits::network::Network;
use crate::spot::HEADER_PREFIX;

/// The instance of an adapter that was given no other name.
pub(crate) const INSTANCE: &str = "adapter";

/// Longest header prefix, in characters.
const HEADER_PREFIX_CHARACTERS_MAX: usize = 32;

/// Longest instance name, in characters: a session is named by it and a suffix of five.
const INSTANCE_CHARACTERS_MAX: usize = 26;

/// When a write counts as done, and what a read may show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledge {
    /// Once it is on disk: no power cut takes back what a client was told.
    #[default]
    Durable,
    /// Once the engine has published it: sooner, and safe from a crash of a process.
    Appended,
}

impl From<Acknowledge> for Acknowledgement {
    fn from(level: Acknowledge) -> Self {
        match level {
            Acknowledge::Durable => Self::Durable,
            Acknowledge::Appended => Self::Appended,
        }
    }
}

impl From<Acknowledge> for Follow {
    fn from(level: Acknowledge) -> Self {
        match level {
            Acknowledge::Durable => Self::Durable,
            Acknowledge::Appended => Self::Appended,
        }
    }
}

/// Section `[adapter]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdapterConfig {
    /// When a write counts as done: `"durable"` or `"appended"`.
    pub acknowledge: Acknowledge,
    /// Longest that a request may take, 1 to 60,000 ms.
    pub deadline_ms: u64,
    /// Prefix of the service's own header names: 1 to 32 letters, digits and dashes, no dash at
    /// either end.
    pub header_prefix: String,
    /// Request weight per client address and minute, at least 1.
    pub request_weight_per_minute: u64,
    /// Requests per client address and five minutes, at least 1.
    pub raw_requests_per_5_minutes: u64,
    /// Requests of an address that are refused with 429 within a minute before it is banned, at least 1.
    pub refusals_before_ban: u64,
    /// Addresses and networks that are answered 403 and nothing else.
    pub denied_addresses: Vec<Network>,
    /// Addresses and networks of proxies, whose `X-Forwarded-For` tells who the client is.
    pub trusted_proxies: Vec<Network>,
    /// Open client connections, 1 to 1,000,000.
    pub connections: usize,
    /// The HTTP server: `"hyper"`, or `"may"`, for trusted networks and measurements.
    pub front: FrontKind,
    /// Threads that serve connections, 1 to 64; 1 on may.
    pub workers: usize,
    /// Name of this adapter, 1 to 26 letters, digits and dashes: adapters that run at the same time
    /// on one engine need different ones.
    pub instance: String,
}

impl Default for AdapterConfig {
    fn default() -> Self {
        Self {
            acknowledge: Acknowledge::Durable,
            deadline_ms: 10_000,
            header_prefix: HEADER_PREFIX.to_owned(),
            request_weight_per_minute: 1200,
            raw_requests_per_5_minutes: 6100,
            refusals_before_ban: 100,
            denied_addresses: Vec::new(),
            trusted_proxies: Vec::new(),
            connections: 10_000,
            front: FrontKind::Hyper,
            workers: 1,
            instance: INSTANCE.to_owned(),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("adapter.{key} is {found}, must be {expected}")]
pub struct ConfigError {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub found: String,
    /// What it may be.
    pub expected: &'static str,
}

/// True for what an instance can be named.
#[must_use]
pub fn is_instance(name: &str) -> bool {
    is_name(name, INSTANCE_CHARACTERS_MAX)
}

fn is_name(text: &str, characters_max: usize) -> bool {
    (1..=characters_max).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl AdapterConfig {
    /// Checks every value against its range.
    ///
    /// # Errors
    /// The first that is outside.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let number = |key, found: u64, most: u64, expected| {
            let found_text = found.to_string();
            (1..=most).contains(&found).then_some(()).ok_or(ConfigError {
                key,
                found: found_text,
                expected,
            })
        };
        number("deadline_ms", self.deadline_ms, 60_000, "1 to 60000")?;
        let weight = self.request_weight_per_minute;
        number("request_weight_per_minute", weight, u64::MAX, "at least 1")?;
        let raw = self.raw_requests_per_5_minutes;
        number("raw_requests_per_5_minutes", raw, u64::MAX, "at least 1")?;
        let refusals = self.refusals_before_ban;
        number("refusals_before_ban", refusals, u64::MAX, "at least 1")?;
        number("connections", self.connections as u64, 1_000_000, "1 to 1000000")?;
        let workers = self.workers as u64;
        match self.front {
            FrontKind::Hyper => number("workers", workers, 64, "1 to 64")?,
            FrontKind::May => number("workers", workers, 1, "1 on front may")?,
        }
        let text = |key, found: &String, is_right: bool, expected| {
            is_right.then_some(()).ok_or(ConfigError { key, found: format!("{found:?}"), expected })
        };
        let prefix = &self.header_prefix;
        let is_prefix = is_name(prefix, HEADER_PREFIX_CHARACTERS_MAX)
            && !prefix.starts_with('-')
            && !prefix.ends_with('-');
        let expected = "1 to 32 letters, digits and dashes, no dash at either end";
        text("header_prefix", prefix, is_prefix, expected)?;
        let instance = &self.instance;
        text("instance", instance, is_instance(instance), "1 to 26 letters, digits and dashes")
    }

    /// The limits on requests.
    #[must_use]
    pub fn limits(&self) -> LimitsConfig {
        LimitsConfig {
            request_weight_per_minute: self.request_weight_per_minute,
            raw_requests_per_5_minutes: self.raw_requests_per_5_minutes,
            refusals_before_ban: self.refusals_before_ban,
            denied: self.denied_addresses.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
        }
    }

    /// Longest that a request may take.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<AdapterConfig, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn every_key_has_a_default_and_unknown_ones_are_refused() {
        assert_eq!(read("{}").unwrap(), AdapterConfig::default());
        AdapterConfig::default().validate().unwrap();
        let read_one = read(r#"{"acknowledge":"appended","deadline_ms":5}"#).unwrap();
        assert_eq!(read_one.acknowledge, Acknowledge::Appended);
        assert_eq!(read_one.deadline(), Duration::from_millis(5));
        assert!(read(r#"{"deadline":5}"#).unwrap_err().to_string().contains("deadline"));
        assert!(read(r#"{"acknowledge":"soon"}"#).is_err());
        assert_eq!(read(r#"{"front":"may"}"#).unwrap().front, FrontKind::May);
        assert!(read(r#"{"front":"May"}"#).is_err());
        let networks = r#"{"denied_addresses":["10.0.0.0/8"],"trusted_proxies":["::1"]}"#;
        let limits = read(networks).unwrap().limits();
        assert_eq!(limits.denied, ["10.0.0.0/8".parse().unwrap()]);
        assert_eq!(limits.trusted_proxies, ["::1".parse().unwrap()]);
        let error = read(r#"{"denied_addresses":["10.0.0.1/8"]}"#).unwrap_err().to_string();
        assert!(error.contains("10.0.0.1/8"), "{error}");
    }

    #[test]
    fn values_out_of_range_are_named() {
        for (json, message) in [
            (r#"{"deadline_ms":0}"#, "adapter.deadline_ms is 0, must be 1 to 60000"),
            (r#"{"deadline_ms":60001}"#, "adapter.deadline_ms is 60001, must be 1 to 60000"),
            (
                r#"{"request_weight_per_minute":0}"#,
                "adapter.request_weight_per_minute is 0, must be at least 1",
            ),
            (
                r#"{"raw_requests_per_5_minutes":0}"#,
                "adapter.raw_requests_per_5_minutes is 0, must be at least 1",
            ),
            (
                r#"{"refusals_before_ban":0}"#,
                "adapter.refusals_before_ban is 0, must be at least 1",
            ),
            (r#"{"connections":0}"#, "adapter.connections is 0, must be 1 to 1000000"),
            (r#"{"workers":65}"#, "adapter.workers is 65, must be 1 to 64"),
            (r#"{"front":"may","workers":2}"#, "adapter.workers is 2, must be 1 on front may"),
            (
                r#"{"header_prefix":"X:Y"}"#,
                "adapter.header_prefix is \"X:Y\", must be 1 to 32 letters, digits and dashes, no dash at either end",
            ),
            (
                r#"{"header_prefix":"X-"}"#,
                "adapter.header_prefix is \"X-\", must be 1 to 32 letters, digits and dashes, no dash at either end",
            ),
            (
                r#"{"header_prefix":"-X"}"#,
                "adapter.header_prefix is \"-X\", must be 1 to 32 letters, digits and dashes, no dash at either end",
            ),
            (
                r#"{"instance":""}"#,
                "adapter.instance is \"\", must be 1 to 26 letters, digits and dashes",
            ),
        ] {
            let error = read(json).unwrap().validate().unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
