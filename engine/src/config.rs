//! The engine's part of `venue.toml`: settings of the process, and the venue's definition, which
//! becomes logged commands at the first start ([`crate::genesis`]). Read by the executable.
//!
//! Every key has a default that the commented reference file `venue.toml` shows; unknown keys are
//! errors. Decimals are texts, so that no float ever touches money.

mod definition;
mod limits;

pub use definition::{
    AccountSection, AssetSection, Decimal, ExchangeSection, OrderTypes, SymbolSection, spellings,
};
pub use limits::{LimitsSection, limit_key, no_memory};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use touchline_protocol::feed::layout::{SLOTS_MAX, SLOTS_MIN, is_slot_count};
use touchline_protocol::log::SEGMENT_BYTES_DEFAULT;
use touchline_protocol::message::handshake::HEARTBEAT_SECONDS_MAX;
use touchline_protocol::wait::WaitStrategy;

/// Connections without which no venue works: two of an adapter, and one of `touchline admin`.
const CONNECTIONS_MIN: u64 = 3;

/// How idle threads wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Pause, yield, then park: idle costs next to nothing.
    #[default]
    Adaptive,
    /// Never park: only with a core of its own.
    Spin,
}

impl From<Wait> for WaitStrategy {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Adaptive => Self::Adaptive,
            Wait::Spin => Self::Spin,
        }
    }
}

/// Section `[engine]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineSection {
    /// How the duty thread waits.
    pub wait: Wait,
    /// Core that the duty thread is pinned to; none: not pinned.
    pub core: Option<usize>,
    /// Large blocks of memory, above all the core's, and the live window in shared memory lie on huge pages
    /// where the system has them.
    pub huge_pages: bool,
    /// Messages taken from each hot session per turn, 1 to 1024.
    pub messages_per_turn: u32,
    /// Messages taken from all stream sessions together per turn, 1 to 4096.
    pub stream_messages_per_turn: u32,
    /// Messages taken from all cold sessions together per turn, 1 to 1024.
    pub cold_messages_per_turn: u32,
    /// Transactions of pending work per turn, 1 to 1024; behind them operators are heard.
    pub pending_per_turn: u32,
    /// Connections at once, 3 to 120.
    pub connections: usize,
    /// A client that sends, but reads none of its replies for so many seconds, is given up; 1 to 3600. A pause of the
    /// process or of its machine does not count.
    pub reader_stall_seconds: u32,
    /// So long, from when a started engine lets clients in, a session that asked for its orders to be cancelled when
    /// its connection ends may come back and keep them, in seconds; 0 to 3600. A pause of the process or of its machine
    /// does not count.
    pub reconnect_seconds: u32,
    /// Commands that a trader's or a read-only session may send per second, over all of its connections, with
    /// as many at once after a pause, up to 1,000,000,000; 0: unlimited. As many more are rejected, 1,000 at the
    /// least, and the rest waits unread. A key may log on as often, 64 times a second at the most, with 64 at once.
    pub commands_per_second: u32,
}

impl Default for EngineSection {
    fn default() -> Self {
        Self {
            wait: Wait::Adaptive,
            core: None,
            huge_pages: true,
            messages_per_turn: 64,
            stream_messages_per_turn: 256,
            cold_messages_per_turn: 4,
            pending_per_turn: 4,
            connections: 64,
            reader_stall_seconds: 5,
            reconnect_seconds: 10,
            commands_per_second: 0,
        }
    }
}

/// Which of the kernel's interfaces the gateway uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatewayBackend {
    /// io_uring where it is permitted, else epoll.
    #[default]
    Auto,
    /// Completions, a system call per turn; epoll where it is refused.
    IoUring,
    /// Readiness, a system call per read and write.
    Epoll,
}

/// Section `[gateway]`: sessions over sockets.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySection {
    /// TCP address and port of stream sessions, or "off"; port 0 takes a free one, which is printed.
    pub tcp: TcpAddress,
    /// Which interface.
    pub backend: GatewayBackend,
    /// How the gateway thread waits.
    pub wait: Wait,
    /// Stream sessions at once, 1 to 10,000.
    pub sessions: usize,
    /// Seconds after which a silent side of a stream says something, unless the client wishes otherwise;
    /// after three times as long a silence it is given up; 1 to 60.
    pub heartbeat_seconds: u8,
    /// KiB that may wait for one client, 256 to 65,536.
    pub unsent_kib: usize,
}

impl Default for GatewaySection {
    fn default() -> Self {
        Self {
            tcp: TcpAddress(None),
            backend: GatewayBackend::Auto,
            wait: Wait::Adaptive,
            sessions: 1000,
            heartbeat_seconds: 10,
            unsent_kib: 256,
        }
    }
}

/// An address to listen on, or none ("off").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpAddress(pub Option<SocketAddr>);

impl<'de> Deserialize<'de> for TcpAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "off" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|address| Self(Some(address)))
            .map_err(|_| D::Error::custom(format!("address {text:?}, expected IP:PORT or \"off\"")))
    }
}

/// Where the log's live window lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowPlace {
    /// Shared memory where it has room, else the data folder.
    #[default]
    Auto,
    /// Shared memory, or no start.
    SharedMemory,
    /// The data folder: write-back may stall the engine.
    Data,
}

/// Section `[log]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// Size of a disk segment in MiB, even, 2 to 1024; frozen at the first start.
    pub segment_mib: u64,
    /// Where the live window lies.
    pub window: WindowPlace,
    /// Size of the live window in MiB, even, at least 8; 0: 64, or a quarter of what is free.
    pub window_mib: u64,
    /// How long a transaction that no session waits for on disk may wait to be written, in µs, at most
    /// 1,000,000: with what is being written by then, what a power cut can take from sessions that are
    /// answered when it is appended. Where [`LogSection::write_interval_us`] is longer, that is how long.
    pub gather_us: u64,
    /// Least time from the beginning of one write to disk to the next, unless a MiB has come together, in µs,
    /// at most 100,000: fewer writes, of more transactions each. 0: the disk's own pace. The rest behind such a
    /// MiB, or behind a boundary that cut a write short, does not wait.
    pub write_interval_us: u64,
    /// A snapshot is made whenever the log has grown by so many MiB, at most 1,048,576; 0: only by
    /// command.
    pub snapshot_every_mib: u64,
    /// Snapshots that are kept when another one is made, 1 to 1000.
    pub snapshots_kept: usize,
}

impl Default for LogSection {
    fn default() -> Self {
        Self {
            segment_mib: SEGMENT_BYTES_DEFAULT >> 20,
            window: WindowPlace::Auto,
            window_mib: 0,
            gather_us: 10_000,
            write_interval_us: 0,
            snapshot_every_mib: 1024,
            snapshots_kept: 2,
        }
    }
}

/// How far the public feed follows the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeedFollow {
    /// What the engine has published: sooner, and taken back by a power cut.
    #[default]
    Appended,
    /// What is on disk.
    Durable,
}

/// Section `[feed]`: the public feed.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedSection {
    /// There is one; else it costs nothing.
    pub enabled: bool,
    /// How far it follows the log.
    pub follow: FeedFollow,
    /// Messages that its ring holds, 128 bytes each: a power of two, 1024 to 8,388,608.
    pub slots: u32,
    /// Readers at once, of the memory and of streams together, 1 to 1000.
    pub readers: usize,
    /// Of those, readers of one key, up to 1000; 0: half of them, rounded up. The engine's own user, who has no
    /// key, is not limited.
    pub readers_per_key: usize,
}

impl Default for FeedSection {
    fn default() -> Self {
        Self {
            enabled: false,
            follow: FeedFollow::Appended,
            slots: 65_536,
            readers: 64,
            readers_per_key: 0,
        }
    }
}

/// All that the engine reads of `venue.toml`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// The process.
    pub engine: EngineSection,
    /// Sessions over sockets.
    pub gateway: GatewaySection,
    /// The log.
    pub log: LogSection,
    /// The public feed.
    pub feed: FeedSection,
    /// Capacities.
    pub limits: LimitsSection,
    /// Filters of the exchange.
    pub exchange: ExchangeSection,
    /// Assets of a new venue.
    pub assets: Vec<AssetSection>,
    /// Symbols of a new venue.
    pub symbols: Vec<SymbolSection>,
    /// Accounts of a new venue.
    pub accounts: Vec<AccountSection>,
}

/// A value of the configuration that the engine cannot run with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("venue.toml {key}: {problem}")]
pub struct ConfigError {
    /// The key, as `section.key`; of balances `accounts.balances.ASSET`.
    pub key: String,
    /// Of a section that is a list, such as `[[symbols]]`: which entry it is, from 0.
    pub entry: Option<usize>,
    /// What is wrong with it.
    pub problem: String,
}

impl ConfigError {
    /// What is wrong with a key of a section that is no list.
    pub(crate) fn of(key: &str, problem: String) -> Self {
        Self { key: key.to_owned(), entry: None, problem }
    }

    /// What is wrong with a key of an entry of a list.
    pub(crate) fn of_entry(section: &str, entry: usize, key: &str, problem: String) -> Self {
        Self { key: format!("{section}.{key}"), entry: Some(entry), problem }
    }
}

impl EngineConfig {
    /// Checks the ranges that the types do not.
    ///
    /// # Errors
    /// Names the first key that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let engine = &self.engine;
        in_range("engine.messages_per_turn", engine.messages_per_turn.into(), 1, 1024)?;
        let of_streams = engine.stream_messages_per_turn;
        in_range("engine.stream_messages_per_turn", of_streams.into(), 1, 4096)?;
        in_range("engine.cold_messages_per_turn", engine.cold_messages_per_turn.into(), 1, 1024)?;
        in_range("engine.pending_per_turn", engine.pending_per_turn.into(), 1, 1024)?;
        in_range("engine.connections", engine.connections as u64, CONNECTIONS_MIN, 120)?;
        in_range("engine.reader_stall_seconds", engine.reader_stall_seconds.into(), 1, 3600)?;
        in_range("engine.reconnect_seconds", engine.reconnect_seconds.into(), 0, 3600)?;
        let per_second = engine.commands_per_second.into();
        in_range("engine.commands_per_second", per_second, 0, 1_000_000_000)?;
        let gateway = &self.gateway;
        in_range("gateway.sessions", gateway.sessions as u64, 1, 10_000)?;
        in_range(
            "gateway.heartbeat_seconds",
            gateway.heartbeat_seconds.into(),
            1,
            HEARTBEAT_SECONDS_MAX.into(),
        )?;
        in_range("gateway.unsent_kib", gateway.unsent_kib as u64, 256, 65_536)?;
        in_range("log.segment_mib", self.log.segment_mib, 2, 1024)?;
        in_range("log.gather_us", self.log.gather_us, 0, 1_000_000)?;
        in_range("log.write_interval_us", self.log.write_interval_us, 0, 100_000)?;
        in_range("log.snapshot_every_mib", self.log.snapshot_every_mib, 0, 1 << 20)?;
        in_range("log.snapshots_kept", self.log.snapshots_kept as u64, 1, 1000)?;
        in_range("feed.readers", self.feed.readers as u64, 1, 1000)?;
        in_range("feed.readers_per_key", self.feed.readers_per_key as u64, 0, 1000)?;
        if !is_slot_count(self.feed.slots) {
            let problem = format!(
                "{} is no power of two between {SLOTS_MIN} and {SLOTS_MAX}",
                self.feed.slots
            );
            return Err(ConfigError::of("feed.slots", problem));
        }
        if self.log.window_mib != 0 {
            in_range("log.window_mib", self.log.window_mib, 8, 65_536)?;
        }
        for (key, mib) in
            [("log.segment_mib", self.log.segment_mib), ("log.window_mib", self.log.window_mib)]
        {
            if mib % 2 != 0 {
                let problem = format!("{mib} is not even");
                return Err(ConfigError::of(key, problem));
            }
        }
        self.limits.validate()
    }
}

fn in_range(key: &str, value: u64, least: u64, most: u64) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let problem = format!("{value} is not between {least} and {most}");
    Err(ConfigError::of(key, problem))
}
