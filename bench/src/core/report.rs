//! The comparison as text and JSON. Called by [`super`].

use std::fmt::Write;

use serde::Serialize;

use super::engines::EngineKind;
use super::measure::Outcome;
use crate::latency::{Percentiles, median, ratio};
use crate::machine::Machine;

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
                Outcome::GivenUp => return Err("given up after 10 s".to_owned()),
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

impl Row {
    /// Median of the fastest engine that others have written and that was right.
    #[must_use]
    pub fn best_peer(&self) -> Option<u64> {
        let peers = self.cells.iter().filter(|cell| cell.engine.is_peer());
        peers.filter_map(|cell| cell.median().ok()).min()
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
    /// With a million resting orders.
    pub memory: Vec<Memory>,
    /// Flows that were left out, and why.
    pub skipped: Vec<String>,
}

impl CoreReport {
    /// True if Touchline and the textbook came to the right results everywhere.
    #[must_use]
    pub fn passed(&self) -> bool {
        let own = |cell: &&Cell| !cell.engine.is_peer();
        self.rows
            .iter()
            .flat_map(|row| row.cells.iter().filter(own))
            .all(|cell| cell.median().is_ok())
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
        for row in &self.rows {
            let Row { flow, operations, trades, .. } = row;
            put(text, format_args!("\n{flow}: {operations} operations, {trades} fills"));
            put(
                text,
                format_args!("  engine                 ns/op   net of driver   to best peer"),
            );
            let driver = row.cells.iter().find(|cell| cell.engine == EngineKind::Empty);
            let driver = driver.and_then(|cell| cell.median().ok()).unwrap_or(0);
            for cell in &row.cells {
                let name = cell.engine.name();
                match cell.median() {
                    Ok(time) => {
                        let best = row.best_peer().unwrap_or(0);
                        let [whole, net] = [time, time.saturating_sub(driver)].map(tenths);
                        let faster = ratio(best, time);
                        put(text, format_args!("  {name:<20}{whole:>8}{net:>16}{faster:>13} x"));
                    }
                    Err(why) => put(text, format_args!("  {name:<20}   {why}")),
                }
            }
        }
        if let Some(line) = self.worst_burst() {
            put(text, format_args!("\n{line}"));
        }
        if !self.batches.is_empty() {
            put(text, format_args!("\nbatches of 64 operations, calm, ns per batch"));
            put(text, format_args!("  {:<20}{}", "engine", Percentiles::HEADING));
            for Batches { engine, percentiles } in &self.batches {
                put(text, format_args!("  {:<20}{}", engine.name(), percentiles.columns()));
            }
        }
        if !self.memory.is_empty() {
            put(text, format_args!("\nmemory with 1 M resting orders"));
            for Memory { engine, bytes } in &self.memory {
                let megabytes = tenths(*bytes as u64 / 1000);
                put(text, format_args!("  {:<20}{megabytes:>8} MB", engine.name()));
            }
        }
        for skipped in &self.skipped {
            put(text, format_args!("\nskipped: {skipped}"));
        }
    }

    /// Each engine's slowest burst, in operations per second.
    fn worst_burst(&self) -> Option<String> {
        let bursts = || self.rows.iter().filter(|row| row.flow.starts_with("burst"));
        let engines: Vec<EngineKind> =
            bursts().next()?.cells.iter().map(|cell| cell.engine).collect();
        let slowest = |engine: EngineKind| {
            let cells =
                bursts().filter_map(move |row| row.cells.iter().find(|cell| cell.engine == engine));
            cells.map(Cell::median).collect::<Result<Vec<_>, _>>().ok()?.into_iter().max()
        };
        let best = engines.iter().filter(|engine| engine.is_peer()).filter_map(|&it| slowest(it));
        let best = best.min().unwrap_or(0);
        let mut text = "worst burst: million operations per second, to best peer".to_owned();
        for engine in engines {
            if let Some(time) = slowest(engine) {
                let millions = tenths(1_000_000_000 / time.max(1));
                let faster = ratio(best, time);
                // Writing to a String cannot fail.
                let _infallible =
                    write!(text, "\n  {:<20}{millions:>8}{faster:>13} x", engine.name());
            }
        }
        Some(text)
    }
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _infallible = writeln!(text, "{line}");
}

/// Thousandths as a number with one decimal.
fn tenths(thousandths: u64) -> String {
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
        assert!(cell(vec![Outcome::GivenUp, right.clone()]).median().is_err());
        let row = Row {
            flow: String::new(),
            operations: 1,
            trades: 0,
            cells: vec![
                cell(vec![right]),
                Cell { engine: EngineKind::Touchline, rounds: vec![Outcome::Right(1)] },
                Cell {
                    engine: EngineKind::Lobster,
                    rounds: vec![Outcome::Wrong(1, String::new())],
                },
            ],
        };
        assert_eq!(row.best_peer(), Some(1500), "wrong peers and our own do not count");
        assert_eq!(
            (tenths(1_449), tenths(1_450), tenths(99)),
            ("1.4".into(), "1.5".into(), "0.1".into())
        );
    }
}
