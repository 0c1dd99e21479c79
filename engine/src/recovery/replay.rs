//! Replaying the log: every transaction's command is applied again, and the events it causes must be
//! byte for byte those of the log. Called by recovery during its walk, and by the tools' replay.

use std::{
    fmt,
    iter::once,
    time::{Duration, Instant},
};

use thiserror::Error;
use touchline_core::RULES_MAX;
use touchline_protocol::{
    log::{MAX_FRAME_BYTES, transaction::Transaction},
    message::{decode::Command, enums::RejectReason},
    units::Position,
};

use super::{RecoveryError, chain::transactions, segments::Segments};
use crate::config::no_memory;
use crate::snapshot::SnapshotContent;

/// How often a long replay tells how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Transactions between two looks at the clock, each of which costs a tenth of a command.
const LOOK_EVERY: u64 = 256;

/// Transactions whose commands are shown to the state at a time before they come.
const AHEAD: u64 = 64;

/// What the log is replayed into.
pub trait Replayed {
    /// Takes the state of a snapshot in place of all that came before; `content` is to be read to its
    /// end and [`finish`](SnapshotContent::finish)ed first. A state that cannot is replayed from the
    /// log's beginning.
    ///
    /// # Errors
    /// Why the snapshot is not taken; the state is as before then.
    fn restore(&mut self, _content: &mut SnapshotContent<'_>) -> Result<(), String> {
        Err("this state is only ever replayed from the beginning".to_owned())
    }

    /// Told which commands are replayed next, so that it may load what they will look at. It need not take
    /// them, and decides nothing by them.
    fn look_ahead<'bytes>(&self, _coming: impl Iterator<Item = &'bytes [u8]>) {}

    /// Applies the command of the transaction that begins at `position`, as decided at `time_ns`, and
    /// writes its events to the beginning of `outbox`, which is aligned to eight and has room for the
    /// largest transaction; gives their bytes and their number.
    ///
    /// # Errors
    /// Why the command, which was once accepted, is not.
    fn replay(
        &mut self,
        position: Position,
        time_ns: u64,
        command: &[u8],
        outbox: &mut [u8],
    ) -> Result<(usize, u16), ReplayFault>;
}

/// Why a command that was accepted once is not decided so again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayFault {
    /// The venue's limits are sound, and there is no memory for them.
    #[error("{0}")]
    NoMemory(String),
    /// A newer build has raised the venue to rules that this one does not know.
    #[error(
        "the venue follows rules version {found} from here on, this build knows up to {RULES_MAX}"
    )]
    Rules {
        /// In the log.
        found: u32,
    },
    /// This build does not decide as the one that wrote the log.
    #[error("{0}")]
    Different(String),
}

impl ReplayFault {
    /// Of a command that is rejected.
    #[must_use]
    pub fn rejected(command: &Command<'_>, reason: RejectReason, detail: u32) -> Self {
        if let Command::SetRules(set) = command
            && set.rules > RULES_MAX
        {
            return Self::Rules { found: set.rules };
        }
        no_memory(command, reason, detail).map_or_else(
            || {
                let name = command.name();
                Self::Different(format!("{name} is rejected: {reason:?} (detail {detail})"))
            },
            Self::NoMemory,
        )
    }

    /// What is to be thought of the log, or this build, behind the fault's own text.
    #[must_use]
    pub const fn judgement(&self) -> &'static str {
        match self {
            Self::NoMemory(_) => "",
            Self::Rules { .. } => ": use the build that raised it, or a newer one",
            Self::Different(_) => {
                "; this build does not decide as the one that wrote the log: use that one"
            }
        }
    }
}

impl From<String> for ReplayFault {
    fn from(why: String) -> Self {
        Self::Different(why)
    }
}

/// What a log is opened with that is to be new: one that holds anything is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NothingToReplay;

impl Replayed for NothingToReplay {
    fn replay(
        &mut self,
        position: Position,
        _: u64,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<(usize, u16), ReplayFault> {
        Err(format!("a new log has a transaction at {position}").into())
    }
}

/// What a start does and finds, as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// How far a replay is.
    Replayed {
        /// Replayed up to here.
        position: Position,
        /// Room in the log's files: replay ends at or before it.
        of: Position,
        /// Transactions replayed.
        transactions: u64,
    },
    /// A line for the operator: what was found, and what is done about it next. It is told before anything is
    /// taken out of the log, because a start that is refused or killed behind that is followed by one that finds it
    /// done.
    Found(String),
}

impl fmt::Display for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replayed { position, of, transactions } => write!(
                formatter,
                "replayed {transactions} transactions, up to position {position} of at most {of}"
            ),
            Self::Found(line) => formatter.write_str(line),
        }
    }
}

/// A replay in progress.
pub(super) struct Replay<'state, R> {
    state: &'state mut R,
    progress: &'state mut dyn FnMut(Progress),
    of: Position,
    transactions: u64,
    told: Instant,
    outbox: Box<[u64]>,
}

impl<'state, R: Replayed> Replay<'state, R> {
    pub(super) fn new(
        state: &'state mut R,
        progress: &'state mut dyn FnMut(Progress),
        of: u64,
    ) -> Self {
        Self {
            state,
            progress,
            of: Position(of),
            transactions: 0,
            told: Instant::now(),
            outbox: vec![0; MAX_FRAME_BYTES / 8].into_boxed_slice(),
        }
    }

    /// Transactions replayed.
    pub(super) const fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Replays one transaction; good frames `behind` it are at hand.
    pub(super) fn apply(
        &mut self,
        segments: &Segments,
        transaction: &Transaction<'_>,
        behind: &[u8],
    ) -> Result<(), RecoveryError> {
        if self.transactions.is_multiple_of(AHEAD) {
            let coming = once(*transaction).chain(transactions(behind)).take(AHEAD as usize);
            self.state.look_ahead(coming.map(|transaction| transaction.command_bytes()));
        }
        self.compare(transaction).map_err(|why| {
            let position = transaction.position();
            let (path, offset) = segments.place(position.0);
            RecoveryError::Replay { path, offset, position: position.0, why }
        })?;
        self.transactions += 1;
        if self.transactions.is_multiple_of(LOOK_EVERY) && self.told.elapsed() >= PROGRESS_EVERY {
            self.told = Instant::now();
            (self.progress)(Progress::Replayed {
                position: transaction.end(),
                of: self.of,
                transactions: self.transactions,
            });
        }
        Ok(())
    }

    fn compare(&mut self, transaction: &Transaction<'_>) -> Result<(), ReplayFault> {
        let outbox: &mut [u8] = bytemuck::cast_slice_mut(&mut self.outbox);
        let (length, count) = self.state.replay(
            transaction.position(),
            transaction.time_ns(),
            transaction.command_bytes(),
            outbox,
        )?;
        Ok(same_events(transaction, &outbox[..length], count)?)
    }
}

/// Checks that regenerated events are byte for byte those of the log.
pub(crate) fn same_events(
    transaction: &Transaction<'_>,
    regenerated: &[u8],
    count: u16,
) -> Result<(), String> {
    let (logged, length) = (transaction.event_bytes(), regenerated.len());
    if count != transaction.event_count() || length != logged.len() {
        return Err(format!(
            "replay gives {count} events of {length} bytes, the log has {} of {}",
            transaction.event_count(),
            logged.len()
        ));
    }
    if regenerated == logged {
        return Ok(());
    }
    let same = regenerated.iter().zip(logged).take_while(|(new, old)| new == old).count();
    Err(format!("replay gives other events than the log, from their byte {same} of {length} on"))
}
