//! Child processes that never outlive this one: started through the own executable, which asks the
//! kernel to end it with its parent before it becomes the program; ended by their id and waited for.
//! Called by [`crate::process`], [`crate::rtt`] and [`crate::jobs`].

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

/// Name of the hidden subcommand that [`become_program`] serves.
pub const SUBCOMMAND: &str = "child";

/// A command that runs `program` with `arguments` as a child that dies with this process.
///
/// # Errors
/// If the own executable cannot be found.
pub fn command(
    program: &Path,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<Command> {
    let own = std::env::current_exe().context("cannot find the own executable")?;
    let mut command = Command::new(own);
    command.arg(SUBCOMMAND).arg(std::process::id().to_string()).arg(program);
    command.args(arguments.into_iter().map(Into::into));
    Ok(command)
}

/// Ties this process to its parent, which must still be `parent`, and becomes `program`.
///
/// # Errors
/// If the parent is gone or the program cannot be run.
pub fn become_program(parent: i32, program: &[OsString]) -> Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A parent that died before the line above sends no signal any more.
    let alive = getppid().is_some_and(|now| now.as_raw_nonzero().get() == parent);
    anyhow::ensure!(alive, "the parent process is gone");
    let (program, arguments) = program.split_first().context("no program to become")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}

/// Kills and waits for the process when dropped, unless it was waited for.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    is_waited_for: bool,
}

impl Guarded {
    /// Starts `command`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.spawn()?, is_waited_for: false })
    }

    /// Its id, which is its own until it has been waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process, to take its pipes.
    pub const fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends a signal, unless the process has been waited for: its id may be another's by then.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.is_waited_for {
            return Ok(());
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits for the end of a process that is known to be ending.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.is_waited_for = true;
        Ok(status)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Both do nothing once the process was waited for, and nothing is left to be told here.
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_child_is_gone() {
        let child = Guarded::spawn(Command::new("sleep").arg("3600")).unwrap();
        let pid = Pid::from_raw(child.child.id().try_into().unwrap()).unwrap();
        assert!(rustix::process::test_kill_process(pid).is_ok());
        drop(child);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }

    #[test]
    fn a_stranger_is_no_parent() {
        let error = become_program(1 << 30, &["true".into()]).unwrap_err();
        assert!(error.to_string().contains("parent"), "{error}");
        set_parent_process_death_signal(None).unwrap();
    }
}
