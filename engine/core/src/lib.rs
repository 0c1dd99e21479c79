//! The deterministic state machine of a Touchline venue: accounts, symbols, books, sessions, and the
//! one function that changes them, [`Core::apply`].
//!
//! The engine's duty thread calls it for every command, recovery, replicas and snapshotters call it
//! for every command in the log. Equal commands at equal positions and times give equal states and
//! equal event bytes, on every machine: there is no clock, thread, file, random number, float or hash
//! order in here. Time comes in with the command and never goes back.
//!
//! A command is either accepted, and then wholly done (what one transaction may not do at once becomes
//! pending work that later commands run), or rejected, and then not a bit of state has changed.
//!
//! Memory is taken only by `SetLimits` and `SetRecordLimits`, which come before trading.
//!
//! [`book`] is the order book on its own, for use without accounts, log or processes.

#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod accounts;
mod apply;
mod assets;
mod averages;
pub mod book;
mod bounds;
mod by_quote;
mod calendar;
mod chains;
mod fees;
mod filters;
mod grid;
mod hash;
mod keys;
pub mod limits;
mod lists;
mod look_ahead;
mod money;
mod open_counts;
mod orders;
mod outbox;
mod pending;
mod pool;
mod query;
mod records;
mod rights;
mod sessions;
mod snapshot;
mod state_hash;
mod symbols;
mod table;
mod validate;

pub use accounts::Balance;
pub use apply::{Applied, Context, Reject};
pub use averages::AVERAGE_MINUTES_MAX;
pub use fees::FeeRates;
pub use filters::{ORDER_TYPES, ORDER_TYPES_2};
pub use money::AMOUNT_MAX;
pub use outbox::{Addressee, Addressees, OUTBOX_BYTES_MAX, Outbox};
pub use query::{
    AccountView, AssetView, Counts, KeyView, OpenOrder, OpenOrderList, PendingHead, RecordView,
    SessionView, SymbolView,
};
pub use records::{RecordId, UniqueKey};
pub use snapshot::{Definitions, SnapshotError};
pub use symbols::SymbolCounters;

use book::BookPools;
use hash::Seed;
use touchline_protocol::message::command::Limits;
use touchline_protocol::units::Sequence;

/// The highest rules version that this build knows.
pub const RULES_MAX: u32 = 8;

/// The first rules version that has records.
pub const RECORD_RULES: u32 = 2;

/// Capacities of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordLimits {
    /// Records.
    pub records: u32,
    /// Blocks of [`RECORD_BLOCK_BYTES`](touchline_protocol::message::command::RECORD_BLOCK_BYTES).
    pub blocks: u32,
}

/// A venue.
///
/// It begins empty, and is made by commands of the engine's own, from
/// [`SessionId::ENGINE`](touchline_protocol::units::SessionId::ENGINE), which a default header names: the rules, one
/// version after the other; then the limits, which take the memory; then assets, symbols, accounts and keys. What one
/// command leaves to be done goes on with each `RunPending`, of sequence 0, while there is
/// [some](Self::pending_head).
///
/// ```
/// use touchline_core::{Applied, Context, Core, OUTBOX_BYTES_MAX, Outbox, RULES_MAX, Reject};
/// use touchline_protocol::message::command::{DefineAsset, Limits, RunPending, SetLimits, SetRules};
/// use touchline_protocol::message::decode::Command;
/// use touchline_protocol::text::AssetName;
/// use touchline_protocol::units::Position;
///
/// let mut core = Core::new();
/// let mut memory = vec![0_u64; OUTBOX_BYTES_MAX.div_ceil(8)];
/// let mut position = 0;
/// let mut apply = |core: &mut Core, command: &Command<'_>| -> Result<(), Reject> {
///     position += 64;
///     let context = Context { position: Position(position), time_ns: 1_700_000_000_000_000_000 };
///     let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut memory));
///     assert_eq!(core.apply(&context, command, &mut outbox)?, Applied::Committed);
///     // The events are in `outbox`.
///     while core.pending_head().is_some() {
///         outbox.clear();
///         core.apply(&context, &Command::RunPending(&RunPending::default()), &mut outbox)?;
///     }
///     Ok(())
/// };
/// for rules in 1..=RULES_MAX {
///     apply(&mut core, &Command::SetRules(&SetRules { rules, ..Default::default() }))?;
/// }
/// let limits = Limits {
///     assets: 2,
///     symbols: 1,
///     accounts: 10,
///     keys: 10,
///     sessions: 10,
///     open_orders: 1000,
///     price_levels: 1000,
///     pending_work: 8,
///     max_steps: 256,
///     interval_0_seconds: 10,
///     interval_1_seconds: 86_400,
///     ..Default::default()
/// };
/// apply(&mut core, &Command::SetLimits(&SetLimits { limits, ..Default::default() }))?;
/// let name = AssetName::new("BTC").expect("a short name");
/// let asset = DefineAsset { name, precision: 8, ..Default::default() };
/// apply(&mut core, &Command::DefineAsset(&asset))?;
/// assert!(core.find_asset(&name).is_some());
/// # Ok::<(), Reject>(())
/// ```
#[derive(Debug)]
pub struct Core {
    rules: u32,
    limits: Limits,
    record_limits: RecordLimits,
    /// EXCHANGE_MAX_NUM_ORDERS and EXCHANGE_MAX_NUM_ALGO_ORDERS; 0: no limit.
    max_orders: u32,
    max_algo_orders: u32,
    last_time_ns: u64,
    calendar: calendar::Calendar,
    /// Number of the present call of `apply`, but that the short way of orders, which removes none, does not count; means
    /// nothing outside of it, and is no state.
    call: u64,
    /// Last sequence of the engine's own commands that had one.
    engine_sequence: Sequence,
    assets: assets::Assets,
    symbols: symbols::Symbols,
    accounts: accounts::Accounts,
    keys: keys::Keys,
    sessions: sessions::Sessions,
    pools: BookPools,
    orders: orders::Orders,
    pending: pending::PendingQueue,
    records: records::Records,
}

impl Core {
    /// An empty venue: rules version 0, all limits 0, no account but the fee account.
    #[must_use]
    pub fn new() -> Self {
        Self::with_table_seed(0)
    }

    /// As [`new`](Self::new), with a seed for the look-up tables. The seed changes nothing that can be
    /// seen, neither events nor the state hash; one that clients cannot guess keeps them from choosing
    /// client order ids that all collide.
    #[must_use]
    pub fn with_table_seed(seed: u64) -> Self {
        let seed = Seed::new(seed);
        Self {
            rules: 0,
            limits: Limits::default(),
            record_limits: RecordLimits::default(),
            max_orders: 0,
            max_algo_orders: 0,
            last_time_ns: 0,
            calendar: calendar::Calendar::new(),
            call: 0,
            engine_sequence: Sequence(0),
            assets: assets::Assets::new(seed),
            symbols: symbols::Symbols::new(seed),
            accounts: accounts::Accounts::new(seed),
            keys: keys::Keys::new(),
            sessions: sessions::Sessions::new(seed),
            pools: BookPools::new(),
            orders: orders::Orders::new(seed),
            pending: pending::PendingQueue::new(),
            records: records::Records::new(seed),
        }
    }
}

impl Default for Core {
    fn default() -> Self {
        Self::new()
    }
}
