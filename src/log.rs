//! `touchline log`: looks at a venue's log, on a copy or beside a running engine. Only `snapshot` and
//! `prune` write to the data folder.
//!
//! Exit codes: 0 as asked and nothing is wrong; 1 it could not be done; 3 the log is damaged, its beginning is
//! missing and no snapshot stands for it, or the two logs differ.

mod check;
mod diff;
mod dump;
mod info;
mod json;
mod prune;
mod replay;
mod snapshot;
mod state;

pub(crate) use dump::seconds;

use crate::cli::{LogAction, LogArguments};
use crate::notice;
use anyhow::{Result, bail};
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use touchline_engine::inspect::{InspectError, check_window, inspect_end};
use touchline_engine::recovery::RecoveryError;
use touchline_engine::snapshot::MakeError;
use touchline_protocol::causes::with_causes;
use touchline_protocol::log::reader::{LogReader, ReadError};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::units::Position;

/// The log is damaged or without its beginning, or two logs differ.
const FOUND_WRONG: u8 = 3;

/// What is told of an engine that goes on without its disk.
pub(crate) const LOG_FAILED: &str =
    "THE LOG HAS FAILED: its disk refused a write, and every command is refused since";

/// One pass over a log: up to what was durable when the pass began, so that it ends beside the busiest
/// engine; without an engine up to where the log ends.
pub(crate) struct Pass {
    reader: LogReader,
    end: Option<Position>,
    /// The data folder, if damage is to be told from the log's end, which without an engine look alike.
    judged: Option<PathBuf>,
    /// Where the last transaction that was read begins, or the pass.
    last: Position,
}

impl Pass {
    pub(crate) fn new(reader: LogReader) -> Self {
        let end = reader.incarnation().map(|_| reader.watermark());
        let last = reader.position();
        Self { reader, end, judged: None, last }
    }

    /// A pass over the log in `data` that fails with [`FoundDamage`] where that is damaged.
    ///
    /// # Errors
    /// If an engine has left a live window of another past, which a reader would go on from in the middle.
    fn judging(reader: LogReader, data: &Path) -> Result<Self> {
        check_window(data, &reader)?;
        let pass = Self::new(reader);
        Ok(Self { judged: pass.end.is_none().then(|| data.to_owned()), ..pass })
    }

    /// As [`Pass::judging`], without an end of its own: what comes later is read, too.
    fn endless(reader: LogReader, data: &Path) -> Result<Self> {
        check_window(data, &reader)?;
        Ok(Self { end: None, ..Self::new(reader) })
    }

    /// Ends it at `position`, so that what is wrong there is not looked at; a transaction behind that may still
    /// be given.
    fn stop_at(&mut self, position: u64) {
        let position = Position(position);
        self.end = Some(self.end.map_or(position, |end| end.min(position)));
    }

    /// Whether damage is what it ends at, beside no engine: of an endless pass nothing else asks.
    ///
    /// # Errors
    /// [`FoundDamage`].
    fn check_end(&self, data: &Path) -> Result<()> {
        check_end(data, self.last)
    }

    /// True where it ends, if it has an end: nothing before that is left to be read or to come.
    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| self.reader.has_read_to(end))
    }

    pub(crate) fn next(&mut self) -> Result<Option<Transaction<'_>>> {
        if self.is_over() {
            return Ok(None);
        }
        let next = self.reader.next()?;
        match (&next, &self.judged) {
            (Some(transaction), _) => self.last = transaction.position(),
            (None, Some(data)) => check_end(data, self.last)?,
            (None, None) => {}
        }
        Ok(next)
    }
}

/// Checks that a log may end where reading from `last` on ends.
fn check_end(data: &Path, last: Position) -> Result<()> {
    let verdict = inspect_end(data, last)?;
    if verdict.is_damage() {
        bail!(FoundDamage(check::verdict_text(&verdict)));
    }
    Ok(())
}

/// The log is damaged: where, and what is wrong there. Or its beginning is missing, which it needs.
#[derive(Debug)]
pub(crate) struct FoundDamage(pub(crate) String);

impl fmt::Display for FoundDamage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for FoundDamage {}

/// True if the log is damaged, so that it could not be read as a whole or at all.
fn is_damage(error: &anyhow::Error) -> bool {
    let (of_segments, of_reader) = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(InspectError::Recovery(error)), _) | (_, Some(MakeError::Log(error))) => {
            (Some(error), None)
        }
        (Some(InspectError::Reader(error)), _) | (_, Some(MakeError::Reader(error))) => {
            (None, Some(error))
        }
        (_, Some(MakeError::Damaged { .. } | MakeError::NotOnDisk { .. })) => return true,
        _ => (error.downcast_ref(), error.downcast_ref()),
    };
    of_segments.is_some_and(is_damaged_segment)
        || of_reader.is_some_and(ReadError::is_damage)
        || error.is::<FoundDamage>()
}

/// True if it is the bytes of a segment, or one that is missing, or a window that does not go with them, and not that
/// something could not be read.
fn is_damaged_segment(error: &RecoveryError) -> bool {
    match error {
        RecoveryError::MissingSegment { .. }
        | RecoveryError::SegmentLength { .. }
        | RecoveryError::Misplaced { .. } => true,
        RecoveryError::FirstSegment { source, .. } => source.is_damage(),
        other => other.is_of_window(),
    }
}

pub(crate) fn run(arguments: &LogArguments) -> Result<ExitCode> {
    run_action(arguments).or_else(|error| {
        if !is_damage(&error) {
            return Err(error);
        }
        notice::alert!("touchline: {}", with_causes(error.as_ref()));
        Ok(ExitCode::from(FOUND_WRONG))
    })
}

fn run_action(arguments: &LogArguments) -> Result<ExitCode> {
    let data = &arguments.data;
    match &arguments.action {
        LogAction::Info => info::run(data, arguments.json),
        LogAction::Verify => check::run(data, arguments.json),
        LogAction::Dump(options) => dump::run(data, options),
        LogAction::Diff { other } => diff::run(data, other, arguments.json),
        LogAction::Replay { until } => replay::run(data, *until, arguments.json),
        LogAction::State => state::run(data, arguments.json),
        LogAction::Snapshot(options) => snapshot::run(data, options, arguments.json),
        LogAction::Prune(options) => prune::run(data, options, arguments.json),
    }
}
