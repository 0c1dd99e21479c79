//! `touchline-bench core`: the order book alone, against other books. No process, log or account.
//!
//! One driver feeds every engine the same operations, generated beforehand. What an engine comes to
//! (fills, volume, a hash over maker, taker, price and quantity of each fill, the final depth) is
//! compared with an independent book before its time counts. Rounds are interleaved: every engine runs
//! once before any runs again. Time is the engine thread's own processor time. Called by [`crate::cli`].

mod burst;
pub mod engines;
pub mod flows;
mod goals;
pub mod growth;
mod measure;
pub mod operation;
pub mod plot;
mod reference;
mod report;
mod reports;
mod stopwatch;
pub mod summary;
pub mod venue;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use touchline_core::book::OrderBook;

use crate::cores;
use crate::interrupt;
use crate::latency::Percentiles;
use crate::stolen;
use engines::{EngineKind, for_engine, with_places};
use flows::{Flow, Scenario, Synthetic};
pub use measure::Outcome;
pub use report::{Batches, Cell, CoreReport, Memory, Row, WrongBatches};

/// A flow by its name on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
pub enum FlowKind {
    /// 1 k orders at rest
    Calm,
    /// 1 M orders at rest
    Deep,
    /// 40 % of the orders cross
    Crossing,
    /// Five scenarios of a busy symbol, reports read by a second core
    Burst,
    /// A recorded hour, given by --recording
    Recorded,
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct CoreOptions {
    /// The flows.
    pub flows: Vec<FlowKind>,
    /// The engines.
    pub engines: Vec<EngineKind>,
    /// Interleaved rounds.
    pub rounds: usize,
    /// Measured operations per flow; bursts have twice as many.
    pub operations: usize,
    /// Recorded messages.
    pub recording: Option<PathBuf>,
}

/// Measures.
///
/// # Errors
/// If the recording cannot be read, or the run was interrupted.
pub fn run(options: &CoreOptions) -> Result<CoreReport> {
    let mut report = CoreReport::empty(options.rounds);
    for &kind in &options.flows {
        match kind {
            FlowKind::Calm => {
                let flow = with_places(Synthetic::Calm.generate(options.operations));
                report.rows.push(compare(options, &flow, throughput)?);
                (report.batches, report.wrong_batches) = batches(options, &flow)?;
            }
            FlowKind::Deep => {
                let flow = with_places(Synthetic::Deep.generate(options.operations));
                report.memory = memory(options, &flow)?;
                report.rows.push(compare(options, &flow, throughput)?);
            }
            FlowKind::Crossing => {
                let flow = with_places(Synthetic::Crossing.generate(options.operations));
                report.rows.push(compare(options, &flow, throughput)?);
            }
            FlowKind::Burst if cores::allowed()? < 2 => {
                report.skipped.push("bursts: no second core to read the reports".to_owned());
            }
            FlowKind::Burst => {
                for scenario in Scenario::ALL {
                    let flow = Synthetic::Burst(scenario).generate(2 * options.operations);
                    let flow = with_places(flow);
                    report.rows.push(compare(options, &flow, burst_throughput)?);
                }
            }
            FlowKind::Recorded => match &options.recording {
                None => report.skipped.push("recorded: no data (--recording FILE)".to_owned()),
                Some(path) => {
                    let flow = with_places(flows::recorded(path)?);
                    report.rows.push(compare(options, &flow, throughput)?);
                }
            },
        }
    }
    report.summarize();
    // What the host took up to now, and not up to the beginning.
    report.machine.stolen_permille = stolen::of_measurement().permille();
    Ok(report)
}

fn throughput(kind: EngineKind, flow: &Flow) -> Outcome {
    use measure::throughput;
    let checked = kind != EngineKind::Empty;
    for_engine!(kind, throughput(flow, checked))
}

fn burst_throughput(kind: EngineKind, flow: &Flow) -> Outcome {
    use burst::throughput;
    let checked = kind != EngineKind::Empty;
    for_engine!(kind, throughput(flow, checked))
}

/// The engines that are measured on a flow.
fn engines_on(options: &CoreOptions, flow: &Flow) -> Vec<EngineKind> {
    let is_large = flow.capacity.orders >= OrderBook::LOOK_AHEAD_FROM;
    EngineKind::distinct(&options.engines, is_large)
}

fn compare(
    options: &CoreOptions,
    flow: &Flow,
    pass: fn(EngineKind, &Flow) -> Outcome,
) -> Result<Row> {
    let mut cells: Vec<Cell> = engines_on(options, flow)
        .into_iter()
        .map(|engine| Cell { engine, rounds: Vec::with_capacity(options.rounds) })
        .collect();
    for _ in 0..options.rounds {
        for cell in &mut cells {
            interrupt::check()?;
            // One bad pass decides; others like it would only take time.
            if matches!(cell.rounds.last(), None | Some(Outcome::Right(_))) {
                cell.rounds.push(pass(cell.engine, flow));
            }
        }
    }
    interrupt::check()?;
    let (name, trades) = (flow.name.clone(), flow.expected.trades);
    Ok(Row { flow: name, operations: flow.measured.len(), trades, cells })
}

/// What the batches take, and the engines whose results are wrong.
fn batches(options: &CoreOptions, flow: &Flow) -> Result<(Vec<Batches>, Vec<WrongBatches>)> {
    use measure::batches;
    let engines = engines_on(options, flow);
    let mut runs = vec![Ok(Vec::new()); engines.len()];
    for _ in 0..options.rounds {
        for (&kind, runs) in engines.iter().zip(&mut runs) {
            interrupt::check()?;
            let Ok(right) = runs else { continue };
            let checked = kind != EngineKind::Empty;
            match for_engine!(kind, batches(flow, checked)) {
                Ok(run) => right.push(run),
                Err(why) => *runs = Err(why),
            }
        }
    }
    interrupt::check()?;
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for (engine, runs) in engines.into_iter().zip(runs) {
        match runs {
            Ok(runs) => found.push(Batches { engine, percentiles: Percentiles::median(&runs) }),
            Err(why) => wrong.push(WrongBatches { engine, why }),
        }
    }
    Ok((found, wrong))
}

fn memory(options: &CoreOptions, flow: &Flow) -> Result<Vec<Memory>> {
    use measure::memory;
    let mut found = Vec::new();
    // Looking ahead takes no memory of its own.
    for engine in EngineKind::distinct(&options.engines, false) {
        interrupt::check()?;
        if engine == EngineKind::Empty {
            continue;
        }
        found.push(Memory { engine, bytes: for_engine!(engine, memory(flow)) });
    }
    Ok(found)
}
