//! `touchline-bench replay`: recorded exchange order flow through shared memory into a real engine
//! process, checked command by command and state by state, and timed.
//!
//! Two passes check, each on a fresh engine: the *plain* flow, which holds what the rows introduce,
//! and the *completed* flow, which also holds what the recording reveals (see [`crate::recording`]).
//! The book is rebuilt from the engine's replies alone. After them come the measured runs; each of
//! their passes must leave the same fingerprint of events as the checked one. The baselines are taken right before
//! and behind the pass that is compared with them.

pub mod drive;
pub mod observation;
mod report;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use touchline_protocol::client::Reply;

use crate::engine::{Engine, EngineOptions};
use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::{Machine, nanoseconds};
use crate::recording::book::Top;
use crate::recording::explanation::{Tops, compare};
use crate::recording::flow::{Completion, Flow};
use crate::recording::rows::{read_messages, read_top_of_book};
use crate::rtt::{Baselines, wait_name};
use crate::scratch::Scratch;
use drive::{Pace, Timing, drive};
use observation::{Observation, observe};
pub use report::{CheckedPass, MeasuredRun, ReplayReport};

/// Round trips of each baseline in a block, and its blocks in front of the pass that is compared with them, and
/// behind it.
const BASELINE_TRIPS: u32 = 1_000;
const BASELINE_BLOCKS: u32 = 10;

/// What is to be replayed and measured.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The recorded messages.
    pub messages: PathBuf,
    /// The recorded top-of-book states.
    pub top_of_book: PathBuf,
    /// Best levels per side that the messages cover.
    pub recorded_depth: usize,
    /// The engine.
    pub engine: EngineOptions,
    /// Commands per second of the scheduled pass; none: without that pass.
    pub rate: Option<u32>,
    /// Measured runs.
    pub runs: usize,
}

/// The only file beside `messages` whose name says that it holds top-of-book states.
///
/// # Errors
/// If there is none, or several.
pub fn top_of_book_beside(messages: &Path) -> Result<PathBuf> {
    // A file that is not there has nothing beside it.
    messages.metadata().with_context(|| messages.display().to_string())?;
    let folder = messages.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.contains("top-of-book") {
            found.push(path);
        }
    }
    match <[PathBuf; 1]>::try_from(found) {
        Ok([path]) => Ok(path),
        Err(found) => bail!(
            "{} files named *top-of-book* in {}: give one by --top-of-book",
            found.len(),
            folder.display()
        ),
    }
}

/// Replays, checks and measures.
///
/// # Errors
/// If a file cannot be read, the engine does not start or falls silent, or the run was interrupted.
/// What the checks find is no error but in the report.
pub fn run(options: &ReplayOptions) -> Result<ReplayReport> {
    let rows = read_messages(&options.messages)?;
    let recorded = read_top_of_book(&options.top_of_book)?;
    let plain = Flow::plain(&rows);
    let revealed =
        Flow::completed(&rows, Completion { revealed_orders: true, recorded_depth: None });
    let recorded_depth = Some(options.recorded_depth);
    let completed = Flow::completed(&rows, Completion { revealed_orders: true, recorded_depth });

    let mut replies = Vec::new();
    let plain_pass = checked_pass(&options.engine, &plain, &mut replies)?;
    let completed_pass = checked_pass(&options.engine, &completed, &mut replies)?;
    let tops =
        Tops { plain: &plain_pass.tops, revealed: &revealed.tops, completed: &completed_pass.tops };
    let comparison = compare(tops, &recorded).context(
        "the replayed book and the recorded states have nothing in common: do the files belong \
         together?",
    )?;

    let mut runs = Vec::new();
    if options.runs > 0 {
        let mut baselines = Baselines::start(options.engine.wait)?;
        for _ in 0..options.runs {
            runs.push(measured_run(options, &plain, &mut baselines, &mut replies)?);
        }
    }
    Ok(ReplayReport {
        machine: Machine::here(),
        scratch: Scratch::of(&options.engine.scratch)?,
        wait: wait_name(options.engine.wait),
        counts: plain.counts,
        revealed_orders: completed.counts.revealed_orders,
        orders_beyond_depth: completed.counts.orders_beyond_depth,
        recorded_depth: options.recorded_depth,
        plain: CheckedPass::new(&plain, &plain_pass),
        completed: CheckedPass::new(&completed, &completed_pass),
        comparison,
        rate: options.rate,
        runs,
    })
}

fn checked_pass(
    engine: &EngineOptions,
    flow: &Flow,
    replies: &mut Vec<Reply>,
) -> Result<Observation> {
    pass(engine, flow, Pace::Saturate, replies)?;
    Ok(observe(flow, replies))
}

/// One pass on a fresh engine.
fn pass(
    engine: &EngineOptions,
    flow: &Flow,
    pace: Pace,
    replies: &mut Vec<Reply>,
) -> Result<Timing> {
    interrupt::check()?;
    let engine = Engine::start(engine)?;
    let timing = drive(flow, engine.trader()?, engine.key(), pace, replies)?;
    engine.stop()?;
    Ok(timing)
}

fn measured_run(
    options: &ReplayOptions,
    flow: &Flow,
    baselines: &mut Baselines,
    replies: &mut Vec<Reply>,
) -> Result<MeasuredRun> {
    let mut fingerprints = Vec::new();
    let mut measured = |pace| {
        let timing = pass(&options.engine, flow, pace, replies)?;
        fingerprints.push(observe(flow, replies).fingerprint);
        Ok::<_, anyhow::Error>(timing)
    };
    let [mut bare, mut ring] = [(); 2].map(|()| Distribution::default());
    let mut beside = || {
        let mut block = || baselines.block(BASELINE_TRIPS, &mut bare, &mut ring);
        (0..BASELINE_BLOCKS).try_for_each(|_| block())
    };
    let saturated = measured(Pace::Saturate)?;
    beside()?;
    let one_by_one = measured(Pace::OneByOne)?;
    beside()?;
    let scheduled = options.rate.map(|rate| measured(Pace::Rate(rate))).transpose()?;
    let commands = flow.steps.len() as u128;
    let elapsed = u128::from(nanoseconds(saturated.elapsed).max(1));
    Ok(MeasuredRun {
        messages_per_second: u64::try_from(commands * 1_000_000_000 / elapsed).unwrap_or(u64::MAX),
        one_by_one: one_by_one.latency.percentiles(),
        scheduled: scheduled.map(|timing| timing.latency.percentiles()),
        bare: bare.percentiles(),
        ring: ring.percentiles(),
        fingerprints,
    })
}

/// Rows after which two sequences of tops differ.
fn rows_that_differ(one: &[Top], other: &[Top]) -> usize {
    let common = one.iter().zip(other).filter(|(left, right)| left != right).count();
    common + one.len().abs_diff(other.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_file_is_found_if_there_is_no_choice() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a.messages.csv"), "").unwrap();
        assert!(top_of_book_beside(&path("a.messages.csv")).is_err());
        std::fs::write(path("a.top-of-book.csv"), "").unwrap();
        let found = top_of_book_beside(&path("a.messages.csv")).unwrap();
        assert_eq!(found, path("a.top-of-book.csv"));
        std::fs::write(path("b.top-of-book.csv"), "").unwrap();
        let error = top_of_book_beside(&path("a.messages.csv")).unwrap_err().to_string();
        assert!(error.starts_with("2 files"), "{error}");
    }

    #[test]
    fn missing_rows_differ_too() {
        let top = Top { bid_size: 1, ..Top::default() };
        assert_eq!(rows_that_differ(&[top, top, top], &[top, Top::default()]), 2);
    }
}
