//! How the measurements of the history are printed. Called by the command line.

use std::fmt;

use serde::Serialize;

use super::{Line, Pages};
use crate::latency::Percentiles;
use crate::machine::Machine;
use crate::scratch::Scratch;

/// All that was measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HistoryReport {
    /// What it was measured on.
    pub machine: Machine,
    /// Where temporary data was.
    pub scratch: Scratch,
    /// The ingestion, as the store grew.
    pub lines: Vec<Line>,
    /// Orders and trades that pages were read of.
    pub orders: (u64, u64),
    /// Pages while events arrived.
    pub pages: Vec<Pages>,
    /// Events per second that were due meanwhile.
    pub rate: u64,
    /// Events per second that the views have taken: fewer than were due, if they cannot keep up.
    pub arrived: u64,
    /// How far the history was behind the log at the end, bytes of the log.
    pub lag_bytes: u64,
}

impl fmt::Display for HistoryReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "machine: {}\nscratch: {}\n", self.machine.line(), self.scratch.line())?;
        writeln!(out, "one core folds the log and writes the store, each batch synced:")?;
        writeln!(out, "   rows stored    events/s      rows/s   bytes/row")?;
        for line in &self.lines {
            writeln!(
                out,
                "{:>14} {:>11} {:>11} {:>11}",
                line.rows,
                line.events_per_second,
                line.rows_per_second,
                line.bytes / line.rows.max(1)
            )?;
        }
        let (orders, trades) = self.orders;
        writeln!(
            out,
            "\npages out of {orders} orders and {trades} trades, JSON included, while {} of {} events/s arrive;\n\
             the store was just written, so that they come out of the page cache, not from the disk:",
            self.arrived, self.rate
        )?;
        writeln!(out, "{:<26} entries {}", "", Percentiles::HEADING)?;
        for pages in &self.pages {
            writeln!(out, "{:<26} {:>7} {}", pages.what, pages.entries, pages.latency.columns())?;
        }
        writeln!(out, "\nhistory behind the log at the end: {} KiB", self.lag_bytes >> 10)
    }
}
