//! What the adapter's history costs: how fast one core folds a log and writes it to the store, as the
//! store grows, and how long pages take out of it while events arrive. Called by the command line.
//!
//! The log is made up: cycles of four transactions (two orders that rest, a cancel, an order that takes)
//! of random accounts, symbols and names. Fold, store, tailer, writer and handlers are the adapter's own.

mod flow;
mod pages;
mod report;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use touchline_adapter::views::state::Archive;
use touchline_protocol::log::lease::Lease;
use touchline_protocol::log::transaction::Bookmark;

use crate::interrupt;
use crate::latency::Percentiles;
use crate::machine::Machine;
use crate::scratch::Scratch;
use crate::temporary::Temporary;
use flow::Flow;
use pages::Measured;
pub use report::HistoryReport;

/// Rows that make a batch, as in the adapter.
const BATCH_ROWS: usize = 20_000;

/// Rows of a line of the table.
const LINE_ROWS: u64 = 1_000_000;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// Folder for the store, on the disk that is to be measured.
    pub scratch: PathBuf,
    /// Millions of rows that the store grows to.
    pub millions: u64,
    /// Events per second that arrive while pages are read.
    pub rate: u64,
    /// Pages of each kind.
    pub pages: u32,
}

/// A part of the ingestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Line {
    /// Rows in the store behind it.
    pub rows: u64,
    /// Events of the log per second in it.
    pub events_per_second: u64,
    /// Rows per second.
    pub rows_per_second: u64,
    /// Bytes of the store's file behind it.
    pub bytes: u64,
}

/// Pages of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Pages {
    /// What was asked for.
    pub what: &'static str,
    /// Entries of the shortest.
    pub entries: usize,
    /// From the call of the handler to its reply.
    pub latency: Percentiles,
}

/// Measures.
///
/// # Errors
/// When the store cannot be used, a page is not what was asked for, or it is interrupted.
pub fn run(options: &HistoryOptions) -> Result<HistoryReport> {
    let folder = Temporary::new(&options.scratch)?;
    let archive = Archive::open(folder.path(), flow::LOG_ID)?;
    let mut state = archive.restore()?;
    let mut flow = Flow::new();
    flow.define(&mut state)?;
    let mut lines = Vec::new();
    let (mut rows, mut line_rows, mut events, mut nanoseconds) = (0, 0, 0, 0);
    while rows < options.millions * LINE_ROWS {
        interrupt::check()?;
        flow.prepare();
        let begin = Instant::now();
        events += flow.fold(&mut state)?;
        if state.history.waiting() >= BATCH_ROWS {
            let written = state.history.waiting() as u64;
            archive.save(&mut state)?;
            (rows, line_rows) = (rows + written, line_rows + written);
        }
        nanoseconds += begin.elapsed().as_nanos();
        if line_rows >= LINE_ROWS {
            let per_second =
                |count: u64| (u128::from(count) * 1_000_000_000 / nanoseconds.max(1)) as u64;
            lines.push(Line {
                rows,
                events_per_second: per_second(events),
                rows_per_second: per_second(line_rows),
                bytes: std::fs::metadata(folder.path().join("data.mdb"))?.len(),
            });
            (line_rows, events, nanoseconds) = (0, 0, 0);
        }
    }
    archive.save(&mut state)?;
    let lease = Lease::hold(folder.path(), "history", flow::LOG_ID, Bookmark::default())?;
    let (pages, lag_bytes) = pages::measure(options, flow, &archive, lease, state)?;
    let Measured { orders, kinds: pages, arrived } = pages;
    let (machine, scratch) = (Machine::here(), Scratch::of(&options.scratch)?);
    Ok(HistoryReport {
        machine,
        scratch,
        goals: report::goals(&lines, &pages, (rows, options.rate)),
        lines,
        orders,
        pages,
        rate: options.rate,
        arrived,
        lag_bytes,
    })
}
