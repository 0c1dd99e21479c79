//! A long-running child that says on a line of its output that it is ready, and ends when asked to.
//! Called by [`crate::engine`], [`crate::rest`] and [`crate::jobs`].

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::child::{self, Guarded};
use crate::interrupt;

/// Longest that a process may take to start.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Longest that a process may take to end when it is asked to.
const END_LIMIT: Duration = Duration::from_secs(20);

/// How often a wait looks for an interruption.
const SLICE: Duration = Duration::from_millis(100);

/// The process. Dropped, it is asked to end, so that it removes what it holds in shared memory; only
/// if it does not is it killed.
pub struct Process {
    name: &'static str,
    guarded: Guarded,
    output: Receiver<String>,
    errors: PathBuf,
    is_stopped: bool,
}

impl Process {
    /// Starts `executable` and waits for the first line that begins with `ready`, which is given
    /// back without that beginning. What it says on its error output goes into `folder`.
    ///
    /// # Errors
    /// If it does not start or does not get ready, with what it said.
    pub fn start(
        name: &'static str,
        executable: &Path,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        folder: &Path,
        ready: &str,
    ) -> Result<(Self, String)> {
        let errors = folder.join(format!("{name}.stderr"));
        let mut guarded = Guarded::spawn(
            child::command(executable, arguments)?
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(File::create(&errors)?),
        )?;
        let output = lines(&mut guarded)?;
        let process = Self { name, guarded, output, errors, is_stopped: false };
        let line = process.wait_ready(ready).with_context(|| process.said())?;
        Ok((process, line))
    }

    /// Its id, as long as this value lives.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.guarded.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(self.guarded.signal(signal)?)
    }

    /// Its name and what it said on its error output.
    #[must_use]
    pub fn said(&self) -> String {
        let said = fs::read_to_string(&self.errors).unwrap_or_default();
        match said.trim() {
            "" => format!("the {} said nothing", self.name),
            said => format!("{}: {said}", self.name),
        }
    }

    /// Ends it the way an operator does, and waits for it.
    ///
    /// # Errors
    /// If it does not end in time, or not with success.
    pub fn stop(mut self) -> Result<()> {
        let Self { name, .. } = self;
        self.is_stopped = true;
        let has_ended = self.ask_to_end();
        anyhow::ensure!(has_ended, "the {name} did not end within {END_LIMIT:?} of SIGTERM");
        let status = self.guarded.wait()?;
        anyhow::ensure!(status.success(), "ended with {status}: {}", self.said());
        Ok(())
    }

    fn wait_ready(&self, ready: &str) -> Result<String> {
        let begin = Instant::now();
        loop {
            interrupt::check()?;
            match self.output.recv_timeout(SLICE) {
                Ok(line) => {
                    if let Some(rest) = line.strip_prefix(ready) {
                        return Ok(rest.to_owned());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("it ended before it was ready"),
                Err(RecvTimeoutError::Timeout) if begin.elapsed() > START_LIMIT => {
                    bail!("it was not ready within {START_LIMIT:?}")
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks the process to end and waits for the end of its output; false if it does not come.
    fn ask_to_end(&self) -> bool {
        // A paused process acts on the first only after the second. Both fail only if it has ended.
        let _asked = self.guarded.signal(Signal::TERM);
        let _resumed = self.guarded.signal(Signal::CONT);
        let begin = Instant::now();
        while begin.elapsed() < END_LIMIT {
            let left = END_LIMIT.saturating_sub(begin.elapsed());
            if self.output.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
                return true;
            }
        }
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_stopped {
            self.ask_to_end();
        }
    }
}

/// Reads the lines of a process on a thread of their own, which ends with the process.
fn lines(process: &mut Guarded) -> Result<Receiver<String>> {
    let output = process.child().stdout.take().context("the process has no output")?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("child's output".to_owned()).spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Nobody listens any more: the pipe is read on, so that the process can write.
            let _unheard = sender.send(line);
        }
    })?;
    Ok(receiver)
}
