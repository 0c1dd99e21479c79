//! Section `[limits]` of `venue.toml`: capacities, which are part of the log. Read by a new venue's definition
//! ([`crate::genesis`]) and by each start of the engine.

use super::CONNECTIONS_MIN;
use serde::Deserialize;
use touchline_core::RecordLimits;
use touchline_core::limits::{CELLS_MAX, MAXIMA, MINIMA, RECORD_BLOCKS_MAX, RECORDS_MAX, number};
use touchline_protocol::message::command::Limits;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::RejectReason;

use super::{ConfigError, in_range};

/// The keys of the section, by the numbers by which rejects name a limit ([`touchline_core::limits::number`]).
const KEYS: [&str; 16] = [
    "limits.assets",
    "limits.symbols",
    "limits.accounts",
    "limits.keys",
    "limits.sessions",
    "limits.open_orders",
    "limits.price_levels",
    "limits.pending_work",
    "limits.max_steps",
    "limits.orders_per_interval_0",
    "limits.orders_per_interval_1",
    "limits.interval_0_seconds",
    "limits.interval_1_seconds",
    "limits",
    "limits.records",
    "limits.record_blocks",
];

/// The key that a reject with this reason and detail is about, if it is about one of the section.
#[must_use]
pub fn limit_key(reason: RejectReason, detail: u32) -> Option<&'static str> {
    let is_limit = matches!(reason, RejectReason::LimitOutOfRange | RejectReason::CapacityReached);
    KEYS.get(detail as usize).copied().filter(|_| is_limit)
}

/// What ends the text about a venue whose limits need more memory than there is.
const NO_MEMORY: &str = "no memory is left for what limits.open_orders and limits.records let the venue hold: more has to \
                         be allowed to this process (ulimit -v, the machine's overcommit)";

/// What a reject of this command means, if it is that the memory for limits which are sound is not to be had. The core
/// has no other reject for that.
#[must_use]
pub fn no_memory(command: &Command<'_>, reason: RejectReason, detail: u32) -> Option<String> {
    let is_in_range = match command {
        Command::SetLimits(set) => {
            let most = MINIMA.open_orders..=MAXIMA.open_orders;
            detail == number::OPEN_ORDERS && most.contains(&set.limits.open_orders)
        }
        Command::SetRecordLimits(set) => detail == number::RECORDS && set.records <= RECORDS_MAX,
        _ => false,
    };
    (is_in_range && reason == RejectReason::LimitOutOfRange)
        .then(|| format!("{}: {NO_MEMORY}", command.name()))
}

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
    /// Steps that one transaction takes at most, 1 to 512; a maker that is met is one.
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

impl LimitsSection {
    /// Checks that this build can hold so much. What a venue has in use is known when its log is read.
    ///
    /// # Errors
    /// Names the first key that is out of range.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let [limits, least, most] =
            [self.into(), MINIMA, MAXIMA].map(bytemuck::cast::<Limits, [u32; 14]>);
        for (key, ((limit, least), most)) in
            KEYS.iter().zip(limits.into_iter().zip(least).zip(most))
        {
            let least = u64::from(least);
            // An adapter has two, and waits for them for ever where there are fewer.
            let least = if *key == "limits.sessions" { CONNECTIONS_MIN } else { least };
            in_range(key, limit.into(), least, most.into())?;
        }
        in_range("limits.records", self.records.into(), 0, RECORDS_MAX.into())?;
        in_range("limits.record_blocks", self.record_blocks.into(), 0, RECORD_BLOCKS_MAX.into())?;
        let cells = u64::from(self.accounts) * u64::from(self.assets);
        in_range("limits.accounts times limits.assets", cells, 0, CELLS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::ReplayFault;
    use touchline_core::RULES_MAX;
    use touchline_protocol::message::command::{SetLimits, SetRecordLimits, SetRules};

    #[test]
    fn each_key_has_the_number_of_its_limit() {
        let keys = KEYS.map(|key| key.trim_start_matches("limits."));
        for (number, key) in keys.into_iter().enumerate().filter(|(number, _)| *number != 13) {
            let section: LimitsSection = toml::from_str(&format!("{key} = 77")).unwrap();
            let limits: [u32; 14] = bytemuck::cast(Limits::from(&section));
            let records = RecordLimits::from(&section);
            let all = [&limits[..], &[records.records, records.blocks]].concat();
            let named: Vec<_> = (0..all.len()).filter(|&at| all[at] == 77).collect();
            assert_eq!(named, [number], "{key}");
            assert_eq!(limit_key(RejectReason::CapacityReached, number as u32), Some(KEYS[number]));
        }
        assert_eq!(limit_key(RejectReason::CapacityReached, 16), None);
        assert_eq!(limit_key(RejectReason::AlreadyDefined, 0), None);
    }

    #[test]
    fn a_lack_of_memory_is_not_taken_for_a_limit_or_another_build() {
        let limits = SetLimits { limits: MINIMA, ..Default::default() };
        let most = Limits { open_orders: MAXIMA.open_orders + 1, ..MINIMA };
        let too_many = SetLimits { limits: most, ..Default::default() };
        let records = SetRecordLimits { records: 7, ..Default::default() };
        let (out, used) = (RejectReason::LimitOutOfRange, RejectReason::CapacityReached);
        for (command, reason, detail, is_memory) in [
            (Command::SetLimits(&limits), out, number::OPEN_ORDERS, true),
            (Command::SetRecordLimits(&records), out, number::RECORDS, true),
            (Command::SetLimits(&limits), out, number::ASSETS, false),
            (Command::SetLimits(&limits), used, number::OPEN_ORDERS, false),
            (Command::SetLimits(&too_many), out, number::OPEN_ORDERS, false),
            (Command::SetRecordLimits(&records), out, number::RECORD_BLOCKS, false),
        ] {
            let told = no_memory(&command, reason, detail);
            assert_eq!(told.is_some(), is_memory, "{command:?} {detail}");
            let fault = ReplayFault::rejected(&command, reason, detail);
            assert_eq!(fault.judgement().contains("this build"), !is_memory);
        }
    }

    #[test]
    fn rules_that_this_build_does_not_know_are_told_with_both_versions() {
        let fault = |rules| {
            let set = SetRules { rules, ..Default::default() };
            let rejected = RejectReason::LimitOutOfRange;
            let fault = ReplayFault::rejected(&Command::SetRules(&set), rejected, 0);
            format!("{fault}{}", fault.judgement())
        };
        let next = RULES_MAX + 1;
        assert_eq!(
            fault(next),
            format!(
                "the venue follows rules version {next} from here on, this build knows up to {RULES_MAX}: \
                 use the build that raised it, or a newer one"
            )
        );
        // One that is known is rejected for what the log says before it.
        assert!(fault(RULES_MAX).contains("does not decide as the one that wrote"));
    }

    #[test]
    fn what_this_build_cannot_hold_is_named_with_its_bounds() {
        assert_eq!(LimitsSection::default().validate(), Ok(()));
        for (keys, told) in [
            ("max_steps = 0", "venue.toml limits.max_steps: 0 is not between 1 and 512"),
            ("accounts = 0", "limits.accounts: 0 is not between 1 and 16777216"),
            (
                "interval_1_seconds = 86401",
                "limits.interval_1_seconds: 86401 is not between 1 and 86400",
            ),
            ("records = 16777217", "limits.records: 16777217 is not between 0 and 16777216"),
            ("record_blocks = 67108865", "limits.record_blocks: 67108865 is not between"),
            ("accounts = 8388608", "limits.accounts times limits.assets: 134217728 is not between"),
        ] {
            let section: LimitsSection = toml::from_str(keys).unwrap();
            let error = section.validate().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
