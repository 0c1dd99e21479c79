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

/// How often it is told that a child still runs.
const TELL_EVERY: Duration = Duration::from_secs(600);

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
    /// When it is to be told that it still runs.
    tell_at: Instant,
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
                let tell_at = now + TELL_EVERY;
                self.running = Some(Running { process, durable, begun: now, looked: now, tell_at });
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
            Ok(None) => return self.tell_of_a_long_one(),
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

    /// One that hangs is not known from one that has much to do, so it is not ended; but while it is there
    /// no other is started, and somebody should know.
    fn tell_of_a_long_one(&mut self) {
        let Some(running) = &mut self.running else { return };
        if Instant::now() < running.tell_at {
            return;
        }
        running.tell_at = Instant::now() + TELL_EVERY;
        alert!(
            "log: process {} has been making a snapshot for {:.0?}; the engine goes on, end it if it hangs",
            running.process.id(),
            running.begun.elapsed()
        );
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::Wait;
    use rustix::process::{Pid, test_kill_process};

    fn starter(program: &str, argument: &str) -> SnapshotStarter {
        SnapshotStarter::new(SnapshotSchedule {
            every_bytes: 100,
            last: 50,
            program: program.into(),
            arguments: vec![argument.into()],
            pause: Duration::from_millis(1),
        })
    }

    /// Ticks until something holds of the starter.
    fn tick_until(
        starter: &mut SnapshotStarter,
        durable: u64,
        holds: impl Fn(&SnapshotStarter) -> bool,
    ) {
        let wait = Wait::begin();
        while !holds(starter) {
            wait.go_on("it never comes");
            std::thread::yield_now();
            starter.tick(durable);
        }
    }

    #[test]
    fn a_child_is_started_when_the_log_has_grown_and_counts_from_where_it_began() {
        let mut starter = starter("/bin/true", "");
        starter.tick(149);
        assert!(starter.running.is_none());
        tick_until(&mut starter, 150, |starter| starter.schedule.last == 150);
        assert!(starter.running.is_none() && starter.again.is_none());
        starter.tick(249);
        assert!(starter.running.is_none());
    }

    #[test]
    fn after_a_failure_the_pause_doubles_up_to_its_bound_and_ends_with_a_success() {
        let mut failing = starter("/bin/false", "");
        tick_until(&mut failing, 150, |starter| starter.pause == Duration::from_millis(8));
        assert_eq!(failing.schedule.last, 50);
        failing.pause = LONGEST_PAUSE;
        failing.failed("is a test");
        assert_eq!(failing.pause, LONGEST_PAUSE);
        assert!(failing.again.is_some_and(|at| at > Instant::now() + LONGEST_PAUSE / 2));
        (failing.again, failing.schedule.program) = (None, "/bin/true".into());
        tick_until(&mut failing, 150, |starter| starter.schedule.last == 150);
        assert_eq!(failing.pause, Duration::from_millis(1));
    }

    #[test]
    fn a_program_that_is_not_there_harms_nobody() {
        let mut starter = starter("/nowhere/at/all", "");
        tick_until(&mut starter, 150, |starter| starter.pause > Duration::from_millis(2));
        assert!(starter.running.is_none());
    }

    #[test]
    fn a_child_that_does_not_end_is_told_of_now_and_then_and_stays() {
        let mut starter = starter("/bin/sleep", "1000");
        starter.tick(150);
        let tell_at = |starter: &SnapshotStarter| {
            starter.running.as_ref().map(|running| running.tell_at).expect("it runs")
        };
        let first = tell_at(&starter);
        starter.ended(Ok(None));
        assert_eq!(tell_at(&starter), first, "nothing to tell yet");
        let now = Instant::now();
        starter.running.as_mut().expect("it runs").tell_at = now;
        starter.ended(Ok(None));
        assert!(tell_at(&starter) >= now + TELL_EVERY, "told, and it goes on");
    }

    #[test]
    fn a_child_ends_with_its_starter() {
        let mut starter = starter("/bin/sleep", "1000");
        starter.tick(150);
        let running = starter.running.as_ref().expect("it was started");
        let pid = Pid::from_child(&running.process);
        assert!(test_kill_process(pid).is_ok());
        drop(starter);
        assert!(test_kill_process(pid).is_err(), "killed, and waited for");
    }
}
