//! How the measurements of the history are printed. Called by the command line.

use std::fmt;

use serde::Serialize;

use super::{Line, Pages};
use crate::goal::{Compared, Goal};
use crate::latency::{Percentiles, duration};
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
    /// What is to be reached.
    pub goals: Vec<Goal>,
}

/// Events per second that one core stores at least, whatever the store holds.
const EVENTS_PER_SECOND: u64 = 200_000;

/// What a page of so many entries may take, ns, p99, while so many events per second are due, out of so many rows.
const PAGE_NS: u64 = 2_000_000;
const ENTRIES: usize = 1_000;
const DUE_PER_SECOND: u64 = 50_000;
const ROWS: u64 = 3_000_000;

/// Said in the place of a verdict.
const TOO_FEW_ROWS: &str = "fewer than 3 M rows";
const TOO_FEW_DUE: &str = "fewer than 50,000 events/s due";
const TOO_FEW_ENTRIES: &str = "fewer than 1,000 entries";

/// Of these lines of the ingestion, and of pages of a thousand entries out of so many rows while so many events per second
/// are due.
pub(super) fn goals(
    lines: &[Line],
    pages: &[Pages],
    (rows, due_per_second): (u64, u64),
) -> Vec<Goal> {
    let slowest = lines.iter().map(|line| line.events_per_second).min();
    let per_second = |events| format!("{events}/s");
    let mut goals = vec![
        Compared::to_bound(slowest, EVENTS_PER_SECOND, &per_second)
            .at_least("events stored, in the slowest million rows", 100),
    ];
    let why = if rows < ROWS {
        Some(TOO_FEW_ROWS)
    } else {
        (due_per_second < DUE_PER_SECOND).then_some(TOO_FEW_DUE)
    };
    for page in pages.iter().filter(|page| page.is_judged) {
        let goal = Compared::to_bound(page.latency.p99, PAGE_NS, &duration)
            .at_most(format!("page, p99: {}", page.what), 100);
        let why = why.or_else(|| (page.entries < ENTRIES).then_some(TOO_FEW_ENTRIES));
        goals.push(why.map_or(goal.clone(), |why| goal.without_verdict(why)));
    }
    goals
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
        writeln!(out, "\nhistory behind the log at the end: {} KiB", self.lag_bytes >> 10)?;
        out.write_str(&Goal::lines(&self.goals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_out_of_a_full_store_are_judged_and_the_slowest_million() {
        let line = |rows, events_per_second| Line { rows, events_per_second, ..Line::default() };
        let page = |entries, p99| Pages {
            what: "orders",
            is_judged: true,
            entries,
            latency: Percentiles { p99: Some(p99), ..Percentiles::default() },
        };
        let no_list = Pages { is_judged: false, ..page(1, 9_000_000) };
        let pages = [no_list, page(999, 1), page(1_000, 2_000_000), page(1_000, 2_000_001)];
        let told = |lines: &[Line], rows, due| -> Vec<_> {
            let goals = goals(lines, &pages, (rows, due));
            goals.into_iter().map(|goal| (goal.reached, goal.untold)).collect()
        };
        let (yes, no) = ((Some(true), None), (Some(false), None));
        let untold = |why| (None, Some(why));
        // Where the history is too short a page is never told, whatever it has taken.
        let full = [line(1_010_000, 200_000), line(3_000_000, 900_000)];
        assert_eq!(told(&full, 3_000_000, 50_000), [yes, untold(TOO_FEW_ENTRIES), yes, no]);
        let slow = [line(1_000_000, 900_000), line(3_000_000, 199_999)];
        assert_eq!(told(&slow, 3_000_000, 49_999)[0], no);
        assert_eq!(told(&slow, 3_000_000, 49_999)[1..], [untold(TOO_FEW_DUE); 3]);
        assert_eq!(told(&full, 2_999_999, 50_000)[1..], [untold(TOO_FEW_ROWS); 3]);
        assert_eq!(told(&[], 0, 50_000)[0].0, None);
    }
}
