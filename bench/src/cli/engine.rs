//! The arguments of every measurement of a real engine process. Called by its neighbours.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use touchline_protocol::wait::WaitStrategy;

use super::executable;
use crate::engine::EngineOptions;

/// Most runs of a measurement.
pub(super) const RUNS_MAX: i64 = 1000;

#[derive(clap::Args, Debug)]
pub(super) struct EngineArguments {
    /// The executable touchline [default: beside this one]
    #[arg(long, value_name = "PATH")]
    engine: Option<PathBuf>,
    /// Folder for temporary data folders [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// How the engine and this side wait
    #[arg(long, value_enum, default_value_t = Wait::Adaptive)]
    pub(super) wait: Wait,
    /// Print one line of JSON instead of text: durations in ns, ratios in hundredths
    #[arg(long)]
    pub(super) json: bool,
}

/// Of a measurement that is nothing without a run.
#[derive(clap::Args, Debug)]
pub(super) struct Runs {
    /// Measured runs, whose medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=RUNS_MAX))]
    runs: u16,
}

impl Runs {
    pub(super) fn count(&self) -> usize {
        self.runs.into()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Wait {
    /// Pause, yield, then sleep
    Adaptive,
    /// Never give the core away
    Spin,
}

impl EngineArguments {
    /// The engine that they ask for; an error if it is not there.
    pub(super) fn options(&self) -> Result<EngineOptions> {
        let executable = executable(self.engine.as_deref())?;
        let scratch = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        Ok(EngineOptions { executable, scratch, wait: self.wait.into() })
    }
}

impl From<Wait> for WaitStrategy {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Adaptive => Self::Adaptive,
            Wait::Spin => Self::Spin,
        }
    }
}
