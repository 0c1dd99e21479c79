//! `touchline`, the executable: parses the command line, composes the parts and supervises them.

mod admin;
mod cli;
mod doctor;
mod histories;
mod log;
mod names;
mod notice;
mod owner;
mod pruned;
mod scarce;
mod settings;
mod up;

use cli::Command;
use rustix::fs::Mode;
use rustix::process::umask;
use signal_hook::consts::SIGXFSZ;
use std::process::ExitCode;
use std::sync::Arc;
use touchline_protocol::causes::with_causes;
use touchline_protocol::{ending, outlet};

#[global_allocator]
static ALLOCATOR: touchline_engine::huge_pages::HugePages = touchline_engine::huge_pages::HugePages;

/// Exit code of a child of `up` that would end the same way if it were started again.
pub(crate) const NOT_AGAIN: u8 = 3;

/// Rights of a file's own user, as modes have them.
const OWN_RIGHTS: u32 = 0o700;

/// Keeps a umask from taking this user's own rights to what a venue makes, which nobody means: its keys could not be
/// read again. And from letting others write it: they could have a start refused, or an operator end the wrong process.
/// Gives the umask that there was, if it took own rights.
fn keep_own_rights() -> Option<u32> {
    let was = umask(Mode::empty());
    umask((was & !Mode::RWXU) | Mode::WGRP | Mode::WOTH);
    (was.bits() & OWN_RIGHTS != 0).then(|| was.bits())
}

fn main() -> ExitCode {
    let umask = keep_own_rights();
    let arguments = cli::parse();
    let done = |()| ExitCode::SUCCESS;
    let is_tool =
        matches!(arguments.command, Some(Command::Admin(_) | Command::Log(_) | Command::Doctor(_)));
    // A write beyond a limit on the size of files fails, and its command says so: unhandled, the signal ends it.
    let _as_it_was = signal_hook::flag::register(SIGXFSZ, Arc::default());
    if !is_tool {
        // In front of every thread. Where it fails all is as whoever has started this process wanted it.
        let _as_it_was = ending::unblock();
    }
    if let Some(umask) = umask {
        // Children are given what is left of it.
        notice::alert!(
            "touchline: umask {umask:03o} takes from new files what their own user needs: it is taken as {:03o}",
            umask & !OWN_RIGHTS
        );
    }
    let outcome = match arguments.command {
        None => up::run(&arguments.up).map(done),
        Some(Command::Up(up)) => up::run(&up).map(done),
        Some(Command::Engine(engine)) => run_engine(&engine).map(done),
        Some(Command::Adapter(adapter)) => run_adapter(&adapter).map(done),
        Some(Command::Admin(admin)) => admin::run(&admin).map(done),
        Some(Command::Log(log)) => log::run(&log).and_then(told),
        Some(Command::Doctor(doctor)) => doctor::run(&doctor).and_then(told),
    };
    let code = match outcome {
        Ok(code) => code,
        Err(error) => {
            let why = with_causes(error.as_ref());
            let scarce = scarce::told(&error, !is_tool).map(|told| format!("; {told}"));
            let why = why + &scarce.unwrap_or_default();
            if is_tool {
                notice::alert!("touchline: {why}");
            } else {
                notice::supervisor::alert!("touchline: {why}");
            }
            match error.downcast_ref() {
                Some(touchline_adapter::RunError::Pruned { .. }) => ExitCode::from(NOT_AGAIN),
                _ => ExitCode::FAILURE,
            }
        }
    };
    outlet::finish();
    code
}

/// A full disk must not pass for an empty report. What was found wrong is told by the exit code all the same.
fn told(code: ExitCode) -> anyhow::Result<ExitCode> {
    match notice::unwritten() {
        None => {}
        Some(error) if code == ExitCode::SUCCESS => {
            anyhow::bail!("it was done, but what came of it cannot be printed: {error}")
        }
        Some(error) => notice::alert!("touchline: what was found cannot be printed: {error}"),
    }
    Ok(code)
}

fn run_engine(arguments: &cli::EngineArguments) -> anyhow::Result<()> {
    end_with_supervisor(arguments.supervised)?;
    let mut settings = settings::load(&arguments.settings)?;
    if let Some(name) = &arguments.config_name {
        settings.rename_source(name);
    }
    let run = touchline_engine::run(touchline_engine::EngineOptions {
        data: arguments.data.data.clone(),
        config: settings.engine.clone(),
        written: settings.written.clone(),
        is_own_definition: arguments.settings.config.is_some(),
        accept_loss: arguments.start.accept_loss,
        must_exist: arguments.must_exist,
        allow_clock_behind: arguments.start.allow_clock_behind,
    });
    run.map_err(|error| settings.with_place(error))
}

fn run_adapter(arguments: &cli::AdapterArguments) -> anyhow::Result<()> {
    end_with_supervisor(arguments.supervised)?;
    let mut settings = settings::load(&arguments.settings)?;
    settings.apply(&arguments.front);
    touchline_adapter::run(touchline_adapter::AdapterOptions {
        data: arguments.data.clone(),
        http: arguments.front.http,
        config: settings.adapter,
        jobs: settings.jobs,
    })?;
    Ok(())
}

/// A supervised process gets SIGTERM when its supervisor dies, so that a killed `up` leaves nothing
/// that would hold the data folder.
pub(crate) fn end_with_supervisor(supervisor: Option<i32>) -> anyhow::Result<()> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    if supervisor.is_some() {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // A supervisor that died before the line above is not the parent any more.
        let parent = getppid().map(Pid::as_raw_pid);
        anyhow::ensure!(parent == supervisor, "the supervisor is gone");
    }
    Ok(())
}
