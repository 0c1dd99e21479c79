//! Waits of tests, none of which lasts for ever: what does not come fails the test, which says what it was.
//! Part of every test executable that waits for threads, programs or conditions.
//!
//! Nothing here measures anything. The bounds are far above what the slowest machine takes, and are met
//! only by what hangs.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read, Write};
use std::panic::resume_unwind;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A test waits no longer than this for any one thing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// As [`PATIENCE`], for what a test itself holds up while it does much else.
pub(crate) const HOLD_PATIENCE: Duration = Duration::from_secs(600);

/// As [`PATIENCE`], for the end of a program with all that it does.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(1200);

/// When no test has begun or ended for so long, and none has started anything, the whole executable hangs.
const LAST_RESORT: Duration = Duration::from_secs(1800);

/// Pause between two looks at something that cannot be waited for.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// One wait, for a loop that asks in each turn whether it may go on.
pub(crate) struct Wait(Instant);

impl Wait {
    /// It begins now.
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// Panics once it has lasted too long; `what` says what does not happen.
    #[track_caller]
    pub(crate) fn go_on(&self, what: impl Display) {
        assert!(self.0.elapsed() < PATIENCE, "waited for {PATIENCE:?}: {what}");
    }
}

/// Looks until `condition` holds; false if it does not within [`PATIENCE`].
pub(crate) fn eventually(condition: impl FnMut() -> bool) -> bool {
    holds_within(PATIENCE, condition)
}

/// Looks until it finds the same fifty times in a row: a tenth of a second in which whatever is looked at does not move,
/// which is as much as can be seen of one that moves no more. False if it moves on for [`PATIENCE`].
pub(crate) fn until_still<T: PartialEq>(mut look: impl FnMut() -> T) -> bool {
    const LOOKS: u32 = 50;
    let (mut seen, mut looks) = (None, 0);
    eventually(|| {
        let found = Some(look());
        looks = if found == seen { looks + 1 } else { 0 };
        seen = found;
        looks == LOOKS
    })
}

fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !condition() {
        if begin.elapsed() > limit {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
    true
}

/// Tries of what a machine that stands still can spoil: few, so that what goes wrong in most of them does not pass.
const TRIES: usize = 3;

/// True if an attempt succeeds that may be repeated a few times.
pub(crate) fn in_a_few_tries(mut attempt: impl FnMut() -> bool) -> bool {
    (0..TRIES).any(|_| attempt())
}

/// What a thread gives at its end, which is waited for; a panic of it goes on here.
#[track_caller]
pub(crate) fn join<T>(thread: JoinHandle<T>, what: &str) -> T {
    assert!(eventually(|| thread.is_finished()), "after {PATIENCE:?} {what} has not ended");
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Where so many threads wait for each other, so that they go on at one moment.
pub(crate) struct StartLine {
    missing: AtomicUsize,
}

impl StartLine {
    pub(crate) const fn of(threads: usize) -> Self {
        Self { missing: AtomicUsize::new(threads) }
    }

    /// Waits for the others; unlike a barrier not for ever, if one of them was never started.
    pub(crate) fn wait(&self) {
        self.missing.fetch_sub(1, Ordering::SeqCst);
        let wait = Wait::begin();
        while self.missing.load(Ordering::SeqCst) > 0 {
            wait.go_on("not all come to the start");
            thread::yield_now();
        }
    }
}

/// Does something at its end, also where that comes by a panic.
pub(crate) struct AtEnd<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A started program. Dropping it kills it.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(&mut self, what: &str) -> ExitStatus {
        let ended = holds_within(PROGRAM_PATIENCE, || self.status().is_some());
        assert!(ended, "after {PROGRAM_PATIENCE:?} {what} has not ended");
        self.status().expect("it has ended")
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("the child is ours")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A stopped process dies of it too.
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Runs a program without input to its end.
///
/// # Errors
///
/// It cannot be started.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> io::Result<Output> {
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    Ok(finish(Running(child), &format!("{command:?}")))
}

/// Waits for the end of a program; gives what it wrote to those of its outputs that are piped.
#[track_caller]
pub(crate) fn finish(mut running: Running, what: &str) -> Output {
    watch();
    let stdout = running.0.stdout.take().map(gather);
    let stderr = running.0.stderr.take().map(gather);
    let ended = holds_within(PROGRAM_PATIENCE, || running.status().is_some());
    let status = ended.then(|| running.status().expect("it has ended"));
    drop(running);
    let [stdout, stderr] = [stdout, stderr].map(|gathered| {
        let Some((bytes, reader)) = gathered else { return Vec::new() };
        // Of a program that was killed, children may hold on to it.
        let is_whole = eventually(|| reader.is_finished());
        assert!(is_whole || !ended, "{what} has ended, and its output goes on");
        lock(&bytes).clone()
    });
    let Some(status) = status else {
        let said = [&stdout, &stderr].map(|bytes| String::from_utf8_lossy(bytes));
        panic!(
            "after {PROGRAM_PATIENCE:?} {what} has not ended; it printed:\n{}{}",
            said[0], said[1]
        )
    };
    Output { status, stdout, stderr }
}

/// Reads a stream to its end beside everything else.
fn gather(mut stream: impl Read + Send + 'static) -> (Arc<Mutex<Vec<u8>>>, JoinHandle<()>) {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&bytes);
    let reader = thread::spawn(move || {
        let mut piece = [0; 1 << 14];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            lock(&into).extend_from_slice(&piece[..count]);
        }
    });
    (bytes, reader)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of the tests of this executable that are under way.
struct Tests {
    names: BTreeMap<u64, String>,
    next: u64,
    last_sign: Instant,
}

static TESTS: Mutex<Option<Tests>> = Mutex::new(None);

/// A test, from the first time that it does something that could hang to the end of its thread.
struct Test(u64);

impl Test {
    fn begin() -> Self {
        let mut tests = lock(&TESTS);
        let tests = tests.get_or_insert_with(|| {
            thread::spawn(look_after_tests);
            Tests { names: BTreeMap::new(), next: 0, last_sign: Instant::now() }
        });
        let number = tests.next;
        tests.next += 1;
        // The harness names a test's thread after it.
        let name = thread::current().name().unwrap_or("a thread of a test").to_owned();
        tests.names.insert(number, name);
        Self(number)
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        if let Some(tests) = &mut *lock(&TESTS) {
            tests.names.remove(&self.0);
            tests.last_sign = Instant::now();
        }
    }
}

/// The last resort: from now on this thread's test is among those of which one has to begin, end or start
/// something now and then, or the executable is aborted. Called by what tests of many threads or processes
/// begin with.
pub(crate) fn watch() {
    thread_local! {
        static TEST: Test = Test::begin();
    }
    TEST.with(|_| {
        if let Some(tests) = &mut *lock(&TESTS) {
            tests.last_sign = Instant::now();
        }
    });
}

fn look_after_tests() {
    loop {
        thread::sleep(LAST_RESORT / 100);
        let hanging = match &*lock(&TESTS) {
            Some(tests) if !tests.names.is_empty() && tests.last_sign.elapsed() > LAST_RESORT => {
                tests.names.values().cloned().collect::<Vec<_>>()
            }
            _ => continue,
        };
        // Not by a macro, whose output the harness keeps until the test ends.
        let said = format!(
            "\nfor {LAST_RESORT:?} no test has begun, ended or started anything; hanging: {hanging:#?}\n"
        );
        let _nobody_reads = io::stderr().write_all(said.as_bytes());
        kill_children();
        std::process::abort();
    }
}

/// Kills what this process has started and not waited for.
fn kill_children() {
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            if let Some(child) = rustix::process::Pid::from_raw(child) {
                let _gone = rustix::process::kill_process(child, rustix::process::Signal::KILL);
            }
        }
    }
}
