//! The venue as a log describes it: every command applied again, every event compared. Called by
//! `touchline log replay`; the step itself also by a start of the engine.

use touchline_core::{Applied, Context, Core, Outbox, Reject};
use touchline_protocol::log::{MAX_FRAME_BYTES, transaction::Transaction};
use touchline_protocol::message::decode::Command;
use touchline_protocol::units::Position;

use crate::recovery::{ReplayFault, same_events};

/// A core that follows a log.
#[derive(Debug)]
pub struct Replica {
    core: Core,
    area: Box<[u64]>,
    position: Position,
    transactions: u64,
}

impl Default for Replica {
    fn default() -> Self {
        Self::new()
    }
}

impl Replica {
    /// Before the first transaction.
    #[must_use]
    pub fn new() -> Self {
        Self {
            core: Core::with_table_seed(table_seed()),
            area: vec![0; MAX_FRAME_BYTES / 8].into_boxed_slice(),
            position: Position(0),
            transactions: 0,
        }
    }

    /// As a snapshot has it, behind so many transactions.
    #[must_use]
    pub fn at(core: Core, position: Position, transactions: u64) -> Self {
        Self { core, position, transactions, ..Self::new() }
    }

    /// Applies the next transaction's command.
    ///
    /// # Errors
    /// If this build decides it otherwise than the one that wrote the log; nothing more may be applied.
    pub fn apply(&mut self, transaction: &Transaction<'_>) -> Result<(), ReplayFault> {
        let command = transaction.command().map_err(|error| error.to_string())?;
        let context = Context { position: transaction.position(), time_ns: transaction.time_ns() };
        let area: &mut [u8] = bytemuck::cast_slice_mut(&mut self.area);
        let (length, count) = reapply(&mut self.core, &context, &command, area)?;
        same_events(transaction, &area[..length], count)?;
        self.position = transaction.end();
        self.transactions += 1;
        Ok(())
    }

    /// Behind the last transaction.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Transactions applied.
    #[must_use]
    pub const fn transactions(&self) -> u64 {
        self.transactions
    }

    /// The venue.
    #[must_use]
    pub const fn core(&self) -> &Core {
        &self.core
    }
}

/// A seed for the tables of a core that follows a log. Whoever could guess it could choose client order
/// ids that slow the core down; so if the system gives none, nothing else depends on that.
pub(crate) fn table_seed() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// Applies a command that was accepted once, its events to the beginning of `area`; gives their bytes
/// and number.
pub(crate) fn reapply(
    core: &mut Core,
    context: &Context,
    command: &Command<'_>,
    area: &mut [u8],
) -> Result<(usize, u16), ReplayFault> {
    if context.time_ns < core.last_time_ns() {
        return Err(format!("time goes back to {} ns", context.time_ns).into());
    }
    let mut outbox = Outbox::new(area);
    match core.apply(context, command, &mut outbox) {
        Ok(Applied::Committed) => Ok((outbox.len(), outbox.count())),
        Ok(Applied::Valid) => Err(format!("{} changes nothing", command.name()).into()),
        Err(Reject { reason, detail, .. }) => Err(ReplayFault::rejected(command, reason, detail)),
    }
}
