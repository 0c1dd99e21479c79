//! One supervised child process: started, heard, restarted with back-off, ended.

use super::Notice;
use crate::notice::supervisor::{alert, say};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use touchline_protocol::causes::with_causes;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A child that lived this long starts again with the first pause.
const LIVED_LONG: Duration = Duration::from_secs(2);
/// How often a child that is ending is looked at.
const END_STEP: Duration = Duration::from_millis(10);

/// Which child it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Engine,
    Adapter,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Engine => "engine",
            Self::Adapter => "adapter",
        })
    }
}

/// How a child ended, in words.
pub(super) fn told(status: ExitStatus) -> String {
    if status.signal() == Some(Signal::KILL.as_raw()) {
        format!(
            "{status}, which the system sends for want of memory: see its log, and the limit of the container"
        )
    } else {
        status.to_string()
    }
}

/// Whether a child that ended with `status` would end so again.
pub(super) fn is_for_good(status: ExitStatus) -> bool {
    status.code() == Some(i32::from(crate::NOT_AGAIN))
}

/// Starts a thread of that name.
type StartThread<'a> = &'a mut dyn FnMut(String, Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// A child process and what is known of it.
pub(super) struct Child {
    role: Role,
    arguments: Vec<OsString>,
    sender: Sender<Notice>,
    process: Option<std::process::Child>,
    started: Instant,
    ready: bool,
    /// That the last process which ended by itself has failed or was killed: what an end in order would have saved is
    /// not saved until one that has come back ends in order.
    has_died_badly: bool,
    restarts: u32,
    pause: Duration,
    restart_at: Option<Instant>,
    /// Held by each thread that still reads what a process of this child says.
    readers: Arc<()>,
    /// Where the adapter serves over HTTP, or the engine over TCP, once it has said so.
    pub(super) address: Option<String>,
    /// The engine's clients find it again where they were, also when port 0 was asked for; unless somebody else has
    /// the port by then.
    keeps_address: bool,
}

impl Child {
    pub(super) fn new(role: Role, arguments: Vec<OsString>, sender: Sender<Notice>) -> Self {
        Self {
            role,
            arguments,
            sender,
            process: None,
            started: Instant::now(),
            ready: false,
            has_died_badly: false,
            restarts: 0,
            pause: FIRST_PAUSE,
            restart_at: None,
            readers: Arc::default(),
            address: None,
            keeps_address: false,
        }
    }

    pub(super) fn start(&mut self) -> Result<()> {
        self.start_heard(&mut start_thread)
    }

    /// Who hears it comes first: a process that nobody hears would run on in the way of the next one.
    fn start_heard(&mut self, start_thread: StartThread<'_>) -> Result<()> {
        let (role, sender) = (self.role, self.sender.clone());
        let hear = move |output| {
            // A supervisor that is gone needs no notice.
            for line in lines(output) {
                let _heard = sender.send(Notice::Line(role, line));
            }
            let _heard = sender.send(Notice::Closed(role));
        };
        let outputs = self.reader("output", start_thread, hear)?;
        // Not where the supervisor's own goes: whoever reads that may stand still, and the child with it.
        let hear = move |errors| {
            for line in lines(errors) {
                alert!("{}", with_speaker(role, &line));
            }
        };
        let errors = self.reader("errors", start_thread, hear)?;
        // This executable, also when the file at its path was replaced since. A process group of its
        // own, so that Ctrl-C reaches the supervisor alone, which ends the children in order.
        let mut process = Command::new("/proc/self/exe")
            .args(&self.arguments)
            .args(self.kept_address())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the {}", self.role))?;
        // They are there, and each reader waits for its own.
        let _reads = process.stdout.take().map(|stream| outputs.send(stream));
        let _reads = process.stderr.take().map(|stream| errors.send(stream));
        self.process = Some(process);
        self.started = Instant::now();
        self.ready = false;
        self.restart_at = None;
        Ok(())
    }

    /// A thread that reads a stream with `hear` once it is sent one, and ends if it never is.
    fn reader<S: Send + 'static>(
        &self,
        what: &str,
        start_thread: StartThread<'_>,
        hear: impl FnOnce(S) + Send + 'static,
    ) -> Result<Sender<S>> {
        let (sender, streams) = channel();
        let reads = Arc::clone(&self.readers);
        let read = move || {
            let _reads = reads;
            if let Ok(stream) = streams.recv() {
                hear(stream);
            }
        };
        start_thread(format!("{} {what}", self.role), Box::new(read))?;
        Ok(sender)
    }

    /// Takes in a line that the child printed.
    pub(super) fn line(&mut self, line: &str) {
        say!("{}: {line}", self.role);
        if self.role == Role::Engine && line.starts_with("gateway: ") {
            // What stands behind it may be any path.
            self.note_address(line.split(" unix=").next().unwrap_or_default(), "tcp=");
        }
        let Some(rest) = line.strip_prefix(&format!("{} ready", self.role)) else { return };
        self.ready = true;
        self.keeps_address = self.role == Role::Engine;
        self.note_address(rest, "http=");
        if self.restarts > 0 {
            say!("touchline: the {} is back", self.role);
        }
    }

    /// The setting by which an engine that is started again listens where it did.
    fn kept_address(&self) -> Option<OsString> {
        let address = self.address.as_ref().filter(|_| self.keeps_address)?;
        Some(super::option("--set", format!("gateway.tcp={address}")))
    }

    fn note_address(&mut self, line: &str, name: &str) {
        let named = line.split_whitespace().find_map(|word| word.strip_prefix(name));
        if let Some(address) = named {
            self.address = Some(address.to_owned());
        }
    }

    /// True once all that its processes have said was heard.
    pub(super) fn is_silent(&self) -> bool {
        Arc::strong_count(&self.readers) == 1
    }

    pub(super) const fn is_ready(&self) -> bool {
        self.ready
    }

    /// The id of its process, until that was waited for.
    pub(super) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(std::process::Child::id)
    }

    pub(super) fn replace_argument(&mut self, name: &str, value: &str) {
        if let Some(at) = self.arguments.iter().position(|argument| argument == name) {
            self.arguments[at + 1] = value.into();
        }
    }

    pub(super) fn add_argument(&mut self, argument: OsString) {
        self.arguments.push(argument);
    }

    pub(super) fn remove_argument(&mut self, name: &str) {
        self.arguments.retain(|argument| argument != name);
    }

    /// Waits for a child that closed its output.
    pub(super) fn reap(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().context("no such child")?;
        Ok(process.wait()?)
    }

    /// The child died: plans its restart, unless it would die again. Gives how it ended.
    pub(super) fn died(&mut self) -> Result<ExitStatus> {
        let status = self.reap()?;
        self.has_died_badly = !status.success();
        if is_for_good(status) {
            self.tell_for_good();
            return Ok(status);
        }
        if !self.ready {
            self.keeps_address = false;
        }
        self.plan_restart(&format!("died ({})", told(status)));
        Ok(status)
    }

    /// Tells that a child is not started again; why, it has said itself.
    pub(super) fn tell_for_good(&self) {
        alert!(
            "touchline: the {} would end like this each time and is not started again; the rest goes on",
            self.role
        );
    }

    fn plan_restart(&mut self, why: &str) {
        if self.ready && self.started.elapsed() >= LIVED_LONG {
            self.pause = FIRST_PAUSE;
        }
        say!(
            "touchline: the {} {why}; the rest goes on, restart in {} ms",
            self.role,
            self.pause.as_millis()
        );
        self.restart_at = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// How long until the planned restart.
    pub(super) fn until_restart(&self) -> Option<Duration> {
        self.restart_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    pub(super) fn restart_if_due(&mut self) {
        if self.until_restart().is_some_and(|left| left.is_zero()) {
            self.restarts += 1;
            self.ready = false;
            if let Err(error) = self.start() {
                self.plan_restart(&format!("cannot be started ({})", with_causes(error.as_ref())));
            }
        }
    }

    /// Asks the child to end and waits; kills it when it takes longer than `limit`. False if it did not end well,
    /// which is told of an engine.
    pub(super) fn end(&mut self, limit: Duration) -> Result<bool> {
        let ended_well = self.end_process(limit)?;
        if !ended_well && self.role == Role::Engine {
            alert!(
                "touchline: the engine has not ended in order: what was acknowledged may be in the live window alone, so \
                 start and end the venue before its folder is copied"
            );
        }
        Ok(ended_well)
    }

    /// One that is not ready yet may end by the signal itself: each step of a start may be repeated.
    fn end_process(&mut self, limit: Duration) -> Result<bool> {
        self.restart_at = None;
        // What an adapter has is on disk, or comes from the log again.
        let is_owing = self.has_died_badly && self.role == Role::Engine;
        let Some(mut process) = self.process.take() else { return Ok(!is_owing) };
        if let Some(pid) = i32::try_from(process.id()).ok().and_then(Pid::from_raw) {
            // It may just have ended by itself; the wait below tells.
            let _asked = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if let Some(status) = process.try_wait()? {
                let by_signal = status.signal() == Some(Signal::TERM.as_raw());
                return Ok(status.success() || by_signal && !self.ready && !is_owing);
            }
            thread::sleep(END_STEP);
        }
        alert!("touchline: the {} did not end in {limit:?} and is killed", self.role);
        process.kill()?;
        process.wait()?;
        Ok(false)
    }
}

fn start_thread(name: String, read: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name(name).spawn(read).map(drop)
}

/// Lines as they come, until the stream ends; what is no text is shown as such.
fn lines(stream: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// A line of a child's standard error, with whose it is, if that does not stand there.
fn with_speaker(role: Role, line: &str) -> String {
    let speaker = format!("{role}: ");
    let is_told = [speaker.as_str(), "touchline: "].iter().any(|told| line.starts_with(told));
    if is_told { line.to_owned() } else { speaker + line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_that_was_killed_it_is_told_that_memory_may_be_short() {
        for (wait_status, is_memory) in [(9, true), (11, false), (1 << 8, false)] {
            let told = told(ExitStatus::from_raw(wait_status));
            assert_eq!(told.contains("want of memory"), is_memory, "{told}");
        }
    }

    #[test]
    fn an_error_is_told_with_whose_it_is() {
        let told = |line| with_speaker(Role::Engine, line);
        assert_eq!(
            told("log failed at durable position 7"),
            "engine: log failed at durable position 7"
        );
        for line in ["engine: no room", "touchline: no room"] {
            assert_eq!(told(line), line);
        }
    }

    /// As where a container gives no more threads.
    #[test]
    fn where_nobody_can_hear_a_process_none_runs_on_and_the_next_start_is_heard() {
        const PATIENCE: Duration = Duration::from_secs(600);
        for started in 0..2 {
            let (sender, notices) = channel();
            let mut child = Child::new(Role::Engine, vec!["--list".into()], sender);
            let mut left = started;
            let outcome = child.start_heard(&mut |name, read| {
                let is_left = left > 0;
                left -= i32::from(is_left);
                is_left.then(|| start_thread(name, read)).ok_or(io::ErrorKind::WouldBlock)?
            });
            assert!(outcome.is_err());
            assert_eq!(child.process_id(), None, "behind {started} threads");
            child.start().unwrap();
            while !matches!(notices.recv_timeout(PATIENCE).unwrap(), Notice::Closed(_)) {}
            assert!(child.reap().unwrap().success());
            drop(child);
            assert!(notices.recv_timeout(PATIENCE).is_err(), "only the second one has ended");
        }
    }

    /// A process that runs on until a signal ends it, as one does that is still starting.
    fn begin(child: &mut Child) {
        child.process = Some(Command::new("sleep").arg("1000").spawn().unwrap());
        child.ready = false;
    }

    #[test]
    fn an_engine_that_died_and_is_not_back_has_not_ended_well() {
        const LIMIT: Duration = Duration::from_secs(600);
        for (role, is_well) in [(Role::Engine, false), (Role::Adapter, true)] {
            let mut child = Child::new(role, Vec::new(), channel().0);
            assert!(child.end(LIMIT).unwrap(), "none was started");
            begin(&mut child);
            assert!(child.end(LIMIT).unwrap(), "a first start may be repeated");
            begin(&mut child);
            child.process.as_mut().unwrap().kill().unwrap();
            child.died().unwrap();
            assert_eq!(child.end(LIMIT).unwrap(), is_well, "{role} in the pause");
            begin(&mut child);
            assert_eq!(child.end(LIMIT).unwrap(), is_well, "{role} while it starts again");
            child.process = Some(Command::new("true").spawn().unwrap());
            child.died().unwrap();
            assert!(child.end(LIMIT).unwrap(), "{role} that was back and has ended in order");
        }
    }
}
