//! Section `[limits]` of `venue.toml`: capacities, which are part of the log. Read by a new venue's definition
//! ([`crate::genesis`]) and by each start of the engine.

use serde::Deserialize;
use touchline_core::RecordLimits;
use touchline_protocol::message::command::Limits;

/// Section `[limits]`: capacities, logged; a start with other values logs the change.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Assets.
    pub assets: u32,
    /// Symbols.
    pub symbols: u32,
    /// Accounts, the fee account included.
    pub accounts: u32,
    /// API keys ever made.
    pub keys: u32,
    /// Durable sessions.
    pub sessions: u32,
    /// Open orders over all symbols.
    pub open_orders: u32,
    /// Occupied price levels over all symbols.
    pub price_levels: u32,
    /// Orders, triggered stops and sweeps that wait to be continued; kills and revocations not counted.
    pub pending_work: u32,
    /// Makers that one transaction visits at most, 1 to 512.
    pub max_steps: u32,
    /// Orders per account in the first interval; 0: unlimited.
    pub orders_per_interval_0: u32,
    /// Orders per account in the second interval; 0: unlimited.
    pub orders_per_interval_1: u32,
    /// First interval in seconds.
    pub interval_0_seconds: u32,
    /// Second interval in seconds.
    pub interval_1_seconds: u32,
    /// Records: what other services than trading keep, the jobs service its users and jobs.
    pub records: u32,
    /// Blocks of 60 bytes that records take.
    pub record_blocks: u32,
}

impl Default for LimitsSection {
    fn default() -> Self {
        Self {
            assets: 16,
            symbols: 64,
            accounts: 1024,
            keys: 4096,
            sessions: 256,
            open_orders: 131_072,
            price_levels: 65_536,
            pending_work: 64,
            max_steps: 256,
            orders_per_interval_0: 50,
            orders_per_interval_1: 160_000,
            interval_0_seconds: 10,
            interval_1_seconds: 86_400,
            records: 65_536,
            record_blocks: 131_072,
        }
    }
}

impl From<&LimitsSection> for RecordLimits {
    fn from(section: &LimitsSection) -> Self {
        Self { records: section.records, blocks: section.record_blocks }
    }
}

impl From<&LimitsSection> for Limits {
    fn from(section: &LimitsSection) -> Self {
        Self {
            assets: section.assets,
            symbols: section.symbols,
            accounts: section.accounts,
            keys: section.keys,
            sessions: section.sessions,
            open_orders: section.open_orders,
            price_levels: section.price_levels,
            pending_work: section.pending_work,
            max_steps: section.max_steps,
            orders_per_interval_0: section.orders_per_interval_0,
            orders_per_interval_1: section.orders_per_interval_1,
            interval_0_seconds: section.interval_0_seconds,
            interval_1_seconds: section.interval_1_seconds,
            reserved: 0,
        }
    }
}
