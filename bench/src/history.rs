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
use crate::machine::{Machine, nanoseconds};
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
    /// Whether they are pages of orders or trades, which is what the goal is about.
    pub is_judged: bool,
    /// Entries of the shortest.
    pub entries: usize,
    /// From the call of the handler to its reply.
    pub latency: Percentiles,
}

/// What was folded and stored, and how long it took.
#[derive(Clone, Copy, Default)]
struct Part {
    rows: u64,
    events: u64,
    nanoseconds: u64,
}

/// The ingestion so far.
#[derive(Default)]
struct Ingestion {
    rows: u64,
    lines: Vec<Line>,
    /// Behind the last line.
    since: Part,
}

impl Ingestion {
    /// Adds a part; gives whether a line ends behind it. Batches end behind a whole million, and what is beyond belongs
    /// to the next one: a line that began anew there would leave the last million without one.
    fn ends_line(&mut self, part: Part) -> bool {
        self.rows += part.rows;
        self.since.rows += part.rows;
        self.since.events += part.events;
        self.since.nanoseconds += part.nanoseconds;
        self.rows >= (self.lines.len() as u64 + 1) * LINE_ROWS
    }

    /// Ends a line, the store's file being so long.
    fn end_line(&mut self, bytes: u64) {
        let Part { rows, events, nanoseconds } = std::mem::take(&mut self.since);
        let per_second = |count: u64| {
            (u128::from(count) * 1_000_000_000 / u128::from(nanoseconds.max(1))) as u64
        };
        self.lines.push(Line {
            rows: self.rows,
            events_per_second: per_second(events),
            rows_per_second: per_second(rows),
            bytes,
        });
    }
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
    let mut ingestion = Ingestion::default();
    while (ingestion.lines.len() as u64) < options.millions {
        interrupt::check()?;
        flow.prepare();
        let begin = Instant::now();
        let mut part = Part { events: flow.fold(&mut state)?, ..Part::default() };
        if state.history.waiting() >= BATCH_ROWS {
            part.rows = state.history.waiting() as u64;
            archive.save(&mut state)?;
        }
        part.nanoseconds = nanoseconds(begin.elapsed());
        if ingestion.ends_line(part) {
            let bytes = std::fs::metadata(folder.path().join("data.mdb"))?.len();
            ingestion.end_line(bytes);
        }
    }
    archive.save(&mut state)?;
    let Ingestion { rows, lines, .. } = ingestion;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_of_each_million() {
        let part = Part { rows: 20_250, events: 20_250, nanoseconds: 20_250_000 };
        let mut ingestion = Ingestion::default();
        while ingestion.rows < 10 * LINE_ROWS {
            if ingestion.ends_line(part) {
                ingestion.end_line(0);
            }
        }
        let lines = &ingestion.lines;
        assert_eq!((lines.len(), lines[9].rows), (10, ingestion.rows));
        // Within a batch of the million that it is of.
        for (line, million) in lines.iter().zip(1..) {
            assert!((0..part.rows).contains(&(line.rows - million * LINE_ROWS)), "{line:?}");
            assert_eq!((line.events_per_second, line.rows_per_second), (1_000_000, 1_000_000));
        }
    }
}
