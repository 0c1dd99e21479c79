//! The comparison as text and JSON. Called by [`super`].

use std::fmt::Write;

use serde::Serialize;

use super::engines::EngineKind;
use super::measure::Outcome;
use super::summary::{Comparison, Figure, LeastBurst, Summary};
use crate::goal::Goal;
use crate::latency::{Percentiles, median, ratio};
use crate::machine::Machine;

/// Columns of an engine's name.
const NAME: usize = 38;

/// What the tables do not tell by themselves.
const LEGEND: &str = "
handles: an order is found at the place that the reply to it told. That book keeps no index of ids and does not notice
an id that is given twice. Every other one keeps an index and pays for it; touchline by id also looks whether the id of
a new order rests already.
no look-ahead: not shown 64 operations before they come, as nobody shows them to the book of a live engine. The peers
have no call for that, and in a book of fewer than 32,768 orders nobody looks ahead.
matchcore is right only with what crosses cut to its limit in front of it, for which it is charged.
";

/// One engine on one flow.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The engine.
    pub engine: EngineKind,
    /// Every round.
    pub rounds: Vec<Outcome>,
}

impl Cell {
    /// Median over the rounds in ps per operation, or why there is none.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn median(&self) -> Result<u64, String> {
        let mut times = Vec::new();
        for round in &self.rounds {
            match round {
                Outcome::Right(picoseconds) => times.push(*picoseconds),
                Outcome::Wrong(picoseconds, difference) => {
                    return Err(format!("({})   wrong: {difference}", tenths(*picoseconds)));
                }
                Outcome::GivenUp(seconds) => return Err(format!("given up after {seconds} s")),
                Outcome::Panicked => return Err("panicked".to_owned()),
                Outcome::Unsuited => return Err("cannot do it".to_owned()),
            }
        }
        Ok(median(times))
    }
}

/// All engines on one flow.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The flow.
    pub flow: String,
    /// Measured operations.
    pub operations: usize,
    /// Fills among them.
    pub trades: u64,
    /// By engine.
    pub cells: Vec<Cell>,
}

#[cfg(test)]
impl Row {
    /// One round of so many operations, in ps per operation; without a time the results are wrong.
    pub(super) fn of(flow: &str, operations: usize, times: &[(EngineKind, Option<u64>)]) -> Self {
        let outcome =
            |time: Option<u64>| time.map_or(Outcome::Wrong(1, "x".to_owned()), Outcome::Right);
        let cell = |&(engine, time)| Cell { engine, rounds: vec![outcome(time)] };
        let cells = times.iter().map(cell).collect();
        Self { flow: flow.to_owned(), operations, trades: 0, cells }
    }
}

/// Durations of batches of 64 operations of one engine, medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Batches {
    /// The engine.
    pub engine: EngineKind,
    /// ns per batch.
    pub percentiles: Percentiles,
}

/// Batches of an engine that do not count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WrongBatches {
    /// The engine.
    pub engine: EngineKind,
    /// Why.
    pub why: String,
}

/// What a book of the deep flow takes.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// The engine.
    pub engine: EngineKind,
    /// Bytes.
    pub bytes: usize,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct CoreReport {
    /// The machine.
    pub machine: Machine,
    /// Interleaved rounds.
    pub rounds: usize,
    /// By flow.
    pub rows: Vec<Row>,
    /// On the calm flow.
    pub batches: Vec<Batches>,
    /// Engines whose batches do not count.
    pub wrong_batches: Vec<WrongBatches>,
    /// With a million resting orders.
    pub memory: Vec<Memory>,
    /// Flows that were left out, and why.
    pub skipped: Vec<String>,
    /// What follows from the rounds.
    pub summary: Summary,
}

impl CoreReport {
    /// Of a measurement that begins.
    pub(super) fn empty(rounds: usize) -> Self {
        Self {
            machine: Machine::here(),
            rounds,
            rows: Vec::new(),
            batches: Vec::new(),
            wrong_batches: Vec::new(),
            memory: Vec::new(),
            skipped: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Works out what follows from the rounds.
    pub(super) fn summarize(&mut self) {
        self.summary = Summary::of(self);
    }

    /// True if Touchline and the textbook came to the right results everywhere.
    #[must_use]
    pub fn passed(&self) -> bool {
        let cells = self.rows.iter().flat_map(|row| &row.cells);
        cells.filter(|cell| !cell.engine.is_peer()).all(|cell| cell.median().is_ok())
            && self.wrong_batches.iter().all(|wrong| wrong.engine.is_peer())
    }

    /// Several tables.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "the book alone: medians of {} interleaved rounds\nmachine: {}\n",
            self.rounds,
            self.machine.line()
        );
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        for (row, flow) in self.rows.iter().zip(&self.summary.flows) {
            write_row(text, row, flow);
        }
        if let Some(bursts) = &self.summary.worst_burst {
            put(text, format_args!("\nworst burst, {}", bursts.peers_line()));
            put(text, format_args!("  {:<NAME$}   M/s   to best peer   least ahead in", "engine"));
            for Figure { engine, median, to_best_peer } in &bursts.engines {
                if let Some(time) = median {
                    let (name, millions) = (engine.name(), tenths(1_000_000_000 / (*time).max(1)));
                    let faster = faster(*to_best_peer);
                    let of_engine = |least: &&LeastBurst| least.engine == *engine;
                    let least = self.summary.least_bursts.iter().find(of_engine).map_or_else(
                        || "-".to_owned(),
                        |least| format!("{} x, {}", ratio(least.to_best_peer, 100), least.flow),
                    );
                    put(text, format_args!("  {name:<NAME$}{millions:>6}{faster:>15}   {least}"));
                }
            }
        }
        if !(self.batches.is_empty() && self.wrong_batches.is_empty()) {
            put(text, format_args!("\nbatches of 64 operations, calm, ns per batch"));
            put(text, format_args!("  {:<NAME$}{}", "engine", Percentiles::HEADING));
            for Batches { engine, percentiles } in &self.batches {
                put(text, format_args!("  {:<NAME$}{}", engine.name(), percentiles.columns()));
            }
            for WrongBatches { engine, why } in &self.wrong_batches {
                put(text, format_args!("  {:<NAME$}   {why}", engine.name()));
            }
        }
        if !self.memory.is_empty() {
            put(text, format_args!("\nmemory with 1 M resting orders"));
            for Memory { engine, bytes } in &self.memory {
                let megabytes = tenths(*bytes as u64 / 1000);
                put(text, format_args!("  {:<NAME$}{megabytes:>8} MB", engine.name()));
            }
        }
        text.push_str(&Goal::lines(&self.summary.goals));
        text.push_str(LEGEND);
        for skipped in &self.skipped {
            put(text, format_args!("\nskipped: {skipped}"));
        }
    }
}

fn write_row(text: &mut String, row: &Row, summary: &Comparison) {
    let Row { flow, operations, trades, .. } = row;
    let peers = summary.peers_line();
    put(text, format_args!("\n{flow}: {operations} operations, {trades} fills, {peers}"));
    put(text, format_args!("  {:<NAME$}   ns/op   net of driver   to best peer", "engine"));
    let driver = row.cells.iter().find(|cell| cell.engine == EngineKind::Empty);
    let driver = driver.and_then(|cell| cell.median().ok()).unwrap_or(0);
    for cell in &row.cells {
        let name = cell.engine.name();
        match cell.median() {
            Ok(time) => {
                let to_best_peer =
                    summary.of_engine(cell.engine).and_then(|figure| figure.to_best_peer);
                let [whole, net] = [time, time.saturating_sub(driver)].map(tenths);
                let faster = faster(to_best_peer);
                put(text, format_args!("  {name:<NAME$}{whole:>8}{net:>16}{faster:>15}"));
            }
            Err(why) => put(text, format_args!("  {name:<NAME$}   {why}")),
        }
    }
}

/// How many times faster than the best peer; `-` where there is none.
fn faster(hundredths: Option<u64>) -> String {
    hundredths.map_or("-".to_owned(), |hundredths| format!("{} x", ratio(hundredths, 100)))
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _infallible = writeln!(text, "{line}");
}

/// Thousandths as a number with one decimal.
pub(super) fn tenths(thousandths: u64) -> String {
    let tenths = (thousandths + 50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_round_spoils_the_cell() {
        let right = Outcome::Right(1500);
        let engine = EngineKind::Matchcore;
        let cell = |rounds: Vec<Outcome>| Cell { engine, rounds };
        assert_eq!(cell(vec![right.clone(), Outcome::Right(2500)]).median(), Ok(2000));
        assert!(cell(vec![right.clone(), Outcome::Wrong(1, "x".to_owned())]).median().is_err());
        assert!(cell(vec![Outcome::GivenUp(10), right]).median().is_err());
        assert_eq!(
            (tenths(1_449), tenths(1_450), tenths(99)),
            ("1.4".into(), "1.5".into(), "0.1".into())
        );
    }

    #[test]
    fn without_a_right_peer_the_text_shows_no_ratio() {
        let cell = |engine, round| Cell { engine, rounds: vec![round] };
        let text = |peer: Outcome| {
            let mut report = CoreReport::empty(5);
            report.rows.push(Row {
                flow: "burst: static".to_owned(),
                operations: 64_000,
                trades: 0,
                cells: vec![
                    cell(EngineKind::Touchline, Outcome::Right(2_000)),
                    cell(EngineKind::Matchcore, peer),
                ],
            });
            report.summarize();
            report.text()
        };
        let wrong = text(Outcome::Wrong(1, "other fills".to_owned()));
        assert!(wrong.contains("0 of 1 peers right") && !wrong.contains(" x\n"), "{wrong}");
        assert_eq!(wrong.matches("  -\n").count(), 2, "{wrong}");
        let right = text(Outcome::Right(6_000));
        assert!(right.contains("1 of 1 peers right, the best is matchcore"), "{right}");
        assert!(right.contains("3.00   >= 3.00: reached"), "{right}");
        assert!(right.contains("keeps no index of ids"), "{right}");
    }

    #[test]
    fn own_books_that_are_wrong_in_batches_fail_the_run() {
        let passed = |engine| {
            let mut report = CoreReport::empty(1);
            assert!(report.passed());
            report.wrong_batches.push(WrongBatches { engine, why: "wrong: more".to_owned() });
            assert!(report.text().contains("wrong: more"));
            report.passed()
        };
        assert!(passed(EngineKind::Matchcore));
        assert!(!passed(EngineKind::TouchlineHandles) && !passed(EngineKind::TextbookArray));
    }
}
