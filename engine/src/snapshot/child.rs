//! Snapshots made while the engine runs: by a child process, this executable again, that reads the log
//! as anybody may and that nothing waits for. Started, watched and ended by the keeper; whatever becomes
//! of it, the engine goes on.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::notice::{alert, say};

/// Longest pause before a failed making is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// How often a child that runs is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// When a child process makes a snapshot, and how.
#[derive(Clone, Debug)]
pub struct SnapshotSchedule {
    /// As soon as so many bytes of log have become durable behind the last one.
    pub every_bytes: u64,
    /// Position of the last one; 0 without any.
    pub last: u64,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Pause after a first failure; it doubles with each that follows, up to ten minutes.
    pub pause: Duration,
}

/// A child process that ends with whoever holds it.
struct Running {
    process: Child,
    /// How far the log was durable when it began.
    durable: u64,
    begun: Instant,
    looked: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without effect if it has ended; then the wait only takes its status.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// The schedule as the keeper follows it.
pub(crate) struct SnapshotStarter {
    schedule: SnapshotSchedule,
    pause: Duration,
    again: Option<Instant>,
    running: Option<Running>,
}

impl SnapshotStarter {
    pub(crate) const fn new(schedule: SnapshotSchedule) -> Self {
        let pause = schedule.pause;
        Self { schedule, pause, again: None, running: None }
    }

    /// Starts a child if it is time, or looks whether the one that runs has ended. Never waits.
    pub(crate) fn tick(&mut self, durable: u64) {
        if let Some(running) = &mut self.running {
            if running.looked.elapsed() >= LOOK_EVERY {
                running.looked = Instant::now();
                let ended = running.process.try_wait();
                self.ended(ended);
            }
            return;
        }
        let has_grown = durable.saturating_sub(self.schedule.last) >= self.schedule.every_bytes;
        if !has_grown || self.again.is_some_and(|at| Instant::now() < at) {
            return;
        }
        match self.start() {
            Ok(process) => {
                let now = Instant::now();
                self.running = Some(Running { process, durable, begun: now, looked: now });
            }
            Err(error) => self.failed(&format!("cannot be started: {error}")),
        }
    }

    /// How long at most until [`tick`](Self::tick) is to be called again.
    pub(crate) fn patience(&self) -> Duration {
        if self.running.is_some() { LOOK_EVERY } else { LONGEST_PAUSE }
    }

    fn start(&self) -> io::Result<Child> {
        // A group of its own: Ctrl-C is the engine's, which ends its child itself.
        Command::new(&self.schedule.program)
            .args(&self.schedule.arguments)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
    }

    fn ended(&mut self, outcome: io::Result<Option<ExitStatus>>) {
        match outcome {
            Ok(None) => return,
            Ok(Some(status)) if status.success() => {
                if let Some(running) = &self.running {
                    self.schedule.last = running.durable;
                    let (durable, took) = (running.durable, running.begun.elapsed());
                    say!("log: a snapshot of position {durable} or later was made in {took:.1?}");
                }
                self.pause = self.schedule.pause;
                self.again = None;
            }
            Ok(Some(status)) => self.failed(&format!("ended with {status}")),
            Err(error) => self.failed(&format!("cannot be waited for: {error}")),
        }
        self.running = None;
    }

    fn failed(&mut self, why: &str) {
        alert!(
            "log: the process that makes a snapshot {why}; the engine goes on, next try in {:?}",
            self.pause
        );
        self.again = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}
