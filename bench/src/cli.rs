//! The command line: arguments, help and exit codes. Called by the executable.

mod core;
mod engine;
mod feed;
mod history;
mod hostile;
mod jobs;
mod log;
mod records;
mod replay;
mod rest;
mod rtt;
mod stream;
mod tcp;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use serde::Serialize;
use touchline_adapter::front::FrontKind;
use touchline_engine::huge_pages::use_huge_pages;
use touchline_protocol::causes::with_causes;

use crate::rest::constant;
use crate::rtt::PeerKind;
use crate::stolen::begin_measurement;
use crate::{builds, child, cores, interrupt};

const EXIT_CODES: &str = "Exit codes: 0 all well, 1 a check failed, 2 it could not be run, \
                          130 interrupted.";

/// Measurements of Touchline against a real engine process.
#[derive(Parser, Debug)]
#[command(name = "touchline-bench", version = builds::VERSION, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Replay recorded exchange order flow, check every outcome and the book, and time it
    #[command(after_help = replay::HELP)]
    Replay(replay::Arguments),
    /// Measure the order book alone against other order books
    #[command(after_help = core::HELP)]
    Core(core::Arguments),
    /// Measure round trips through an engine beside a bare ring and a bare cache line
    #[command(after_help = rtt::HELP)]
    Rtt(rtt::Arguments),
    /// Measure round trips of orders with and without a flood of record writes beside them
    #[command(after_help = records::HELP)]
    Records(records::Arguments),
    /// Measure orders over loopback TCP beside plain echoes of the same bytes
    #[command(after_help = tcp::HELP)]
    Tcp(tcp::Arguments),
    /// Measure orders with and without a client beside them that does what harm it can
    #[command(after_help = hostile::HELP)]
    Hostile(hostile::Arguments),
    /// Measure what readers of the public feed cost the duty thread, and how late they are
    #[command(after_help = feed::HELP)]
    Feed(feed::Arguments),
    /// Measure how much passes per second, through the ring and through a session
    #[command(after_help = stream::HELP)]
    Stream(stream::Arguments),
    /// Measure the log: appending, making durable, replaying, verifying, each beside the bare thing
    #[command(after_help = log::HELP)]
    Log(log::Arguments),
    /// Measure the adapter's history: ingestion as its store grows, pages while events arrive
    #[command(after_help = history::HELP)]
    History(history::Arguments),
    /// Measure signed orders over REST beside the same HTTP front with a constant answer
    #[command(after_help = rest::HELP)]
    Rest(rest::Arguments),
    /// Measure the jobs service: jobs of many users made over REST, a long list, a restart
    #[command(after_help = jobs::HELP)]
    Jobs(jobs::Arguments),
    #[command(hide = true, name = constant::SUBCOMMAND)]
    RestConstant { front: FrontKind },
    #[command(hide = true, name = child::SUBCOMMAND, trailing_var_arg = true)]
    Child {
        parent: i32,
        #[arg(allow_hyphen_values = true)]
        program: Vec<OsString>,
    },
    #[command(hide = true)]
    RttPeer { kind: PeerKind },
}

impl Command {
    /// True of the processes that a measurement starts, which end with it.
    fn is_part_of_another(&self) -> bool {
        matches!(self, Self::Child { .. } | Self::RestConstant { .. } | Self::RttPeer { .. })
    }

    /// True of measurements that mean nothing where all threads take turns on one core. Of `rest`, `jobs` and `history`
    /// it is processor time that counts; `core` leaves out its bursts, and `log` says what its disk and writer did.
    const fn needs_two_cores(&self) -> bool {
        match self {
            Self::Rtt(_)
            | Self::Records(_)
            | Self::Tcp(_)
            | Self::Hostile(_)
            | Self::Feed(_)
            | Self::Stream(_) => true,
            Self::Replay(arguments) => arguments.is_timed(),
            _ => false,
        }
    }
}

/// Parses the command line and does what it says.
#[must_use]
pub fn main() -> ExitCode {
    use_huge_pages(true);
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(_) if interrupt::is_interrupted() => {
            tell("interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            tell(&with_causes(error.as_ref()));
            ExitCode::from(2)
        }
    }
}

/// True if all checks passed.
fn run(command: Command) -> Result<bool> {
    if !command.is_part_of_another() {
        interrupt::watch()?;
        if command.needs_two_cores() {
            cores::need_two()?;
        }
        begin_measurement();
    }
    match command {
        Command::Child { parent, program } => match child::become_program(parent, &program)? {},
        Command::RestConstant { front } => constant::serve(front).map(|()| true),
        Command::RttPeer { kind } => crate::rtt::serve(kind).map(|()| true),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Core(arguments) => core::run(arguments),
        Command::Rtt(arguments) => rtt::run(arguments),
        Command::Records(arguments) => records::run(arguments),
        Command::Tcp(arguments) => tcp::run(arguments),
        Command::Hostile(arguments) => hostile::run(arguments),
        Command::Feed(arguments) => feed::run(arguments),
        Command::Stream(arguments) => stream::run(arguments),
        Command::Log(arguments) => log::run(arguments),
        Command::History(arguments) => history::run(arguments),
        Command::Rest(arguments) => rest::run(arguments),
        Command::Jobs(arguments) => jobs::run(arguments),
    }
}

/// Prints a report as one line of JSON, or as text.
fn show(as_json: bool, report: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    if as_json { print(&(serde_json::to_string(report)? + "\n")) } else { print(&text()) }
}

/// Writes to standard output. Who closes a pipe has heard enough; a full disk must not pass for an empty report.
fn print(text: &str) -> Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("it was measured, but what came of it cannot be printed"),
    }
}

/// Writes a line to standard error, if that takes it.
fn tell(line: &str) {
    let _unheard = writeln!(io::stderr(), "touchline-bench: {line}");
}

/// The executable `touchline`: the one that was named, or the one beside this.
fn executable(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("touchline"),
    };
    let path = path.canonicalize().with_context(|| {
        format!("no engine at {}: build it, or name it by --engine", path.display())
    })?;
    if let Some(warning) = builds::note_started(&path) {
        tell(&warning);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_fit_together() {
        Arguments::command().debug_assert();
    }

    /// What is said to arguments that are refused.
    fn refused(arguments: &str) -> String {
        let all = ["touchline-bench"].into_iter().chain(arguments.split(' '));
        match Arguments::try_parse_from(all) {
            Ok(_) => panic!("{arguments} is taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_measurement_of_nothing_is_refused() {
        for measurement in ["rtt", "records", "tcp", "hostile", "feed", "stream", "rest"] {
            for runs in ["0", "1001", "9223372036854775807"] {
                let said = refused(&format!("{measurement} --runs {runs}"));
                assert!(said.contains("--runs"), "{measurement} {runs}: {said}");
            }
        }
        // Its checks are something without any run.
        let checks = ["touchline-bench", "replay", "FILE", "--runs", "0"];
        assert!(Arguments::try_parse_from(checks).is_ok());
        assert!(refused("replay FILE --runs 1001").contains("--runs"));
        assert!(refused("core --growth --largest 999").contains("--largest"));
        assert!(refused("history --rate 1").contains("--rate"));
    }

    #[test]
    fn what_belongs_to_growth_is_refused_without_it() {
        for option in ["--plot FILE", "--largest 1000"] {
            for other in ["", " --flow calm", " --engine touchline", " --recording FILE"] {
                let said = refused(&format!("core {option}{other}"));
                assert!(said.contains("--growth") || said.contains("cannot be used"), "{said}");
            }
            let with: Vec<String> = format!("touchline-bench core --growth {option}")
                .split(' ')
                .map(str::to_owned)
                .collect();
            assert!(Arguments::try_parse_from(with).is_ok(), "{option}");
        }
    }

    #[test]
    fn a_recorded_flow_that_is_asked_for_needs_its_recording() {
        let arguments = ["touchline-bench", "core", "--flow", "calm", "--flow", "recorded"];
        let error = run(Arguments::parse_from(arguments).command).unwrap_err().to_string();
        assert!(error.contains("--recording"), "{error}");
    }

    #[test]
    fn every_measurement_says_how_it_measures() {
        for measurement in Arguments::command().get_subcommands().filter(|it| !it.is_hide_set()) {
            let help = measurement.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.len() > 200, "{}: {help:?}", measurement.get_name());
        }
    }
}
