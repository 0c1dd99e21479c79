//! A started executable: its output as it comes, its end, and a watchdog over both. Called by
//! [`super::venue`] and by the tests of the command line.

use crate::patience::watch;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use std::{fs, thread};

pub(crate) use crate::patience::{LOOK_AGAIN, PATIENCE as WATCHDOG, eventually};

/// Lines of output that are kept: more than a test that passes ever sees, and no more than memory has room
/// for if a process finds no end.
const LINES_MAX: usize = 100_000;

#[derive(Default)]
struct Printed {
    state: Mutex<PrintedState>,
    changed: Condvar,
}

#[derive(Default)]
struct PrintedState {
    lines: Vec<String>,
    ended_streams: usize,
}

/// A running executable. Dropping it kills it.
pub(crate) struct Process {
    name: String,
    child: Child,
    output: Arc<Printed>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts `touchline` with these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(Path::new("."), arguments)
    }

    /// Starts `touchline` with these arguments in a folder.
    pub(crate) fn start_in<A: AsRef<OsStr>>(folder: &Path, arguments: &[A]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_touchline"));
        Self::of(command.args(arguments).current_dir(folder))
    }

    /// Starts a command.
    pub(crate) fn of(command: &mut Command) -> Self {
        watch();
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
        let name = words.collect::<Vec<_>>().join(" ");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the executable starts");
        let output = Arc::new(Printed::default());
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        let readers = vec![read_into(stdout, &output), read_into(stderr, &output)];
        Self { name, child, output, readers }
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything printed so far, both streams.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.output.state.lock().unwrap_or_else(PoisonError::into_inner).lines.clone()
    }

    /// Waits for a line that `wanted` likes among the lines from number `from` on.
    pub(crate) fn wait_for(
        &self,
        from: usize,
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> String {
        let find =
            |state: &PrintedState| state.lines.iter().skip(from).find(|line| wanted(line)).cloned();
        let state = self.wait(|state| find(state).is_some() || state.ended_streams == 2);
        find(&state).unwrap_or_else(|| {
            panic!("{}: no {what}; printed:\n{}", self.name, state.lines.join("\n"))
        })
    }

    /// Waits until the process has ended; gives all that it printed.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        self.wait_for_end();
        self.lines()
    }

    /// Waits until the process, and every child that shares its output, has ended.
    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let ended = self.wait(|state| state.ended_streams == 2);
        assert_eq!(
            ended.ended_streams,
            2,
            "{}: does not end; printed:\n{}",
            self.name,
            ended.lines.join("\n")
        );
        let mut status = None;
        let is_gone = eventually(|| {
            status = self.child.try_wait().expect("the child is ours");
            status.is_some()
        });
        assert!(is_gone, "{}: ends its output and not itself", self.name);
        status.expect("it has ended")
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        send_signal(self.pid(), signal);
    }

    /// Ends it at once and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().expect("a running child can be killed");
            self.child.wait().expect("the child is ours");
        }
    }

    /// Waits, within the watchdog, until the output is as wanted; gives it as it then is.
    fn wait(&self, wanted: impl Fn(&PrintedState) -> bool) -> PrintedState {
        let deadline = Instant::now() + WATCHDOG;
        let mut state = self.output.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !wanted(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.output.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        PrintedState { lines: state.lines.clone(), ended_streams: state.ended_streams }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        for reader in self.readers.drain(..) {
            // A reader ends with its stream; one that is held open by a process that should be gone
            // is left to end with it instead of hanging the test.
            if eventually(|| reader.is_finished()) {
                let _ = reader.join();
            }
        }
    }
}

fn read_into(stream: impl Read + Send + 'static, output: &Arc<Printed>) -> JoinHandle<()> {
    let output = Arc::clone(output);
    thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            let mut state = output.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.lines.len() < LINES_MAX {
                state.lines.push(line);
            }
            output.changed.notify_all();
        }
        let mut state = output.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended_streams += 1;
        output.changed.notify_all();
    })
}

/// Has the kernel kill this process with the test that has started it of its own executable: a test that was
/// killed itself kills nobody, and what is stopped does not look.
pub(crate) fn end_with_parent() {
    let killed = set_parent_process_death_signal(Some(Signal::KILL));
    killed.expect("every signal may be asked for");
}

/// Sends a signal to a process that a test started. A process that is gone is no error.
pub(crate) fn send_signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().expect("process ids are positive"));
    let _ = kill_process(pid.expect("process ids are not zero"), signal);
}

/// Stops a process; back when none of its threads runs any more. On a busy machine they run on until
/// each has had a core to stop on.
pub(crate) fn stop(pid: u32) {
    send_signal(pid, Signal::STOP);
    let is_stopped =
        |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
    let all_are = || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it has not ended");
        threads
            .flatten()
            .all(|thread| fs::read_to_string(thread.path().join("stat")).is_ok_and(is_stopped))
    };
    assert!(eventually(all_are), "process {pid} does not stop");
}

/// True while the process is there and has not ended (a zombie has).
pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(") ").map(|(_, rest)| !rest.starts_with(['Z', 'X'])))
        .unwrap_or(false)
}

/// Ids of the running processes whose command line names `folder`: only those that a test started on
/// its own temporary folder.
pub(crate) fn processes_on(folder: &Path) -> Vec<u32> {
    let needle = folder.to_str().expect("temporary folders have plain names").as_bytes();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.windows(needle.len()).any(|window| window == needle) && is_alive(*pid)
        })
        .collect()
}
