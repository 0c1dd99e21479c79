//! `touchline log`: looks at a venue's log, on a copy or beside a running engine. Only `snapshot` and
//! `prune` write to the data folder.
//!
//! Exit codes: 0 as asked and nothing is wrong; 1 it could not be done; 3 the log is damaged, or the
//! two logs differ.

mod check;
mod diff;
mod dump;
mod info;
mod json;
mod prune;
mod replay;
mod snapshot;

pub(crate) use dump::seconds;

use crate::cli::{LogAction, LogArguments};
use anyhow::Result;
use std::process::ExitCode;
use touchline_protocol::log::reader::{LogReader, ReadError};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::units::Position;

/// The log is damaged, or two logs differ.
const FOUND_WRONG: u8 = 3;

/// One pass over a log: up to what was durable when the pass began, so that it ends beside the busiest
/// engine; without an engine up to where the log ends.
pub(crate) struct Pass {
    reader: LogReader,
    end: Option<Position>,
}

impl Pass {
    pub(crate) fn new(reader: LogReader) -> Self {
        let end = reader.incarnation().map(|_| reader.watermark());
        Self { reader, end }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Transaction<'_>>, ReadError> {
        if self.end.is_some_and(|end| self.reader.position() >= end) {
            return Ok(None);
        }
        self.reader.next()
    }
}

pub(crate) fn run(arguments: &LogArguments) -> Result<ExitCode> {
    let data = &arguments.data;
    match &arguments.action {
        LogAction::Info => info::run(data, arguments.json),
        LogAction::Verify => check::run(data, arguments.json),
        LogAction::Dump(options) => dump::run(data, options),
        LogAction::Diff { other } => diff::run(data, other, arguments.json),
        LogAction::Replay { until } => replay::run(data, *until, arguments.json),
        LogAction::Snapshot(options) => snapshot::run(data, options, arguments.json),
        LogAction::Prune(options) => prune::run(data, options, arguments.json),
    }
}
