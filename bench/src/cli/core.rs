//! The command line of `touchline-bench core`. Called by [`super`].

use std::fs::OpenOptions;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use touchline_engine::huge_pages::use_huge_pages;
use touchline_protocol::causes::with_causes;

use super::{show, tell};
use crate::core::engines::EngineKind;
use crate::core::growth::{self, GrowthOptions, GrowthReport};
use crate::core::{self, CoreOptions, FlowKind, plot};

/// What the help ends with.
pub(super) const HELP: &str = "\
Every engine gets the same operations; its fills, their hash and the final depth are checked before its
time counts. All engines run once before any runs again; medians over the rounds are printed. `textbook`
is ours too: the plain fast design, to be judged against. Engines that are not shown what comes are measured
beside those that are, on flows whose book is so large that it looks ahead (`deep`). Fewer than 5 rounds or
64,000 operations have figures and no verdict. Exit code 1 if Touchline or the textbook came to wrong results
or was given up.";

/// Orders of the smallest book of `--growth`: below it there would be nothing to measure.
const SMALLEST_BOOK: i64 = growth::SMALLEST_BOOK as i64;

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Only these flows [default: all]
    #[arg(long, value_enum)]
    flow: Vec<FlowKind>,
    /// Only these engines [default: all]
    #[arg(long, value_enum)]
    engine: Vec<EngineKind>,
    /// Interleaved rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Measured operations per flow; bursts have twice as many
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(64..=100_000_000))]
    operations: u32,
    /// Recorded messages for the flow `recorded`: CSV or gzip of it, as `replay --help` says
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,
    /// Instead: cost per command from 1 k to 10 M resting orders, 1 to 4,096 symbols and 10 to 1 M
    /// accounts
    #[arg(long, conflicts_with_all = ["flow", "engine", "recording"])]
    growth: bool,
    /// With --growth: leave out larger sizes
    #[arg(long, value_name = "SIZE", default_value_t = u32::MAX, requires = "growth",
          conflicts_with_all = ["flow", "engine", "recording"],
          value_parser = clap::value_parser!(u32).range(SMALLEST_BOOK..))]
    largest: u32,
    /// With --growth: write the curves to this SVG file
    // The parser asks for nothing that what else is there rules out, so it is ruled out here as well.
    #[arg(long, value_name = "FILE", requires = "growth",
          conflicts_with_all = ["flow", "engine", "recording"])]
    plot: Option<PathBuf>,
    /// Keep large blocks on small pages, for all engines
    #[arg(long)]
    small_pages: bool,
    /// Print one line of JSON instead of text: durations in ps per operation, those of batches in ns
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    let all_if_none = |flows: Vec<FlowKind>| {
        if flows.is_empty() { FlowKind::value_variants().to_vec() } else { flows }
    };
    if arguments.small_pages {
        use_huge_pages(false);
    }
    if arguments.growth {
        return run_growth(&arguments);
    }
    ensure!(
        arguments.recording.is_some() || !arguments.flow.contains(&FlowKind::Recorded),
        "--flow recorded needs --recording FILE"
    );
    let engines = arguments.engine;
    let report = core::run(&CoreOptions {
        flows: all_if_none(arguments.flow),
        engines: if engines.is_empty() { EngineKind::ALL.to_vec() } else { engines },
        rounds: usize::from(arguments.rounds),
        operations: arguments.operations as usize,
        recording: arguments.recording,
    })?;
    show(arguments.json, &report, || report.text())?;
    Ok(report.passed())
}

fn run_growth(arguments: &Arguments) -> Result<bool> {
    if let Some(file) = &arguments.plot {
        // What cannot be written is told before anything is measured; what was in it stays until then.
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(file);
        opened.with_context(|| file.display().to_string())?;
    }
    let report = growth::run(&GrowthOptions {
        rounds: usize::from(arguments.rounds),
        operations: arguments.operations as usize,
        largest: arguments.largest,
    });
    let Some(report) = unless_a_check_failed(report)? else { return Ok(false) };
    show(arguments.json, &report, || report.text())?;
    if let Some(file) = &arguments.plot {
        std::fs::write(file, plot::svg(&report)).with_context(|| file.display().to_string())?;
    }
    Ok(true)
}

/// None, and told why, of what ran and came to wrong results.
fn unless_a_check_failed(report: Result<GrowthReport>) -> Result<Option<GrowthReport>> {
    match report {
        Err(error) if growth::is_failed_check(&error) => {
            tell(&with_causes(error.as_ref()));
            Ok(None)
        }
        report => report.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::core::venue::VenueError;

    #[test]
    fn growth_that_came_to_wrong_results_has_failed_a_check() {
        let refused = VenueError::Refused { name: "NewOrder", reason: "full".to_owned() };
        assert!(unless_a_check_failed(Err(refused.into())).unwrap().is_none());
        assert!(unless_a_check_failed(Err(anyhow!("no memory"))).is_err());
    }
}
