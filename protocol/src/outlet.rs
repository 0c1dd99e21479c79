//! What a process that serves prints. Standard output and standard error may stand still: a pager waits, a
//! terminal was halted by Ctrl-S, a collector hangs. So each is written by a thread of its own, and what it falls
//! too far behind for is left out and counted: who serves does not wait for who reads. Called by the engine, the
//! adapter and their supervisor; a tool that is there to tell something writes by itself, and waits.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};
use std::panic;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Texts that wait for one output.
const WAITING_MAX: usize = 4096;

/// Pause between two looks whether an output has room again, at the end.
const AGAIN: Duration = Duration::from_millis(10);

/// Longest wait at the end for whoever reads.
const PATIENCE: Duration = Duration::from_secs(1);

static OUTPUT: OnceLock<Outlet> = OnceLock::new();
static ERRORS: OnceLock<Outlet> = OnceLock::new();

fn of_output() -> &'static Outlet {
    OUTPUT.get_or_init(|| Outlet::start("output", io::stdout()))
}

fn of_errors() -> &'static Outlet {
    ERRORS.get_or_init(|| Outlet::start("errors", io::stderr()))
}

/// Starts the threads, which the first text of each output would do otherwise: they run where whoever starts
/// them may run. From then on panics are told this way too: who ends the process behind one must not wait to
/// have it told.
pub fn begin() {
    of_output();
    of_errors();
    panic::set_hook(Box::new(|panic| {
        let trace = Backtrace::capture();
        let name = thread::current().name().unwrap_or("without a name").to_owned();
        let trace = match trace.status() {
            BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        errors(format!("thread {name}: {panic}{trace}\n"));
    }));
}

/// Standard output as a writer: each write is a text.
#[derive(Debug)]
pub struct Output;

impl Write for Output {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        output(String::from_utf8_lossy(text).into_owned());
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a text to standard output, as soon as that takes it.
pub fn output(text: String) {
    of_output().put(text);
}

/// Writes a text to standard error, as soon as that takes it.
pub fn errors(text: String) {
    of_errors().put(text);
}

/// Writes a formatted line to standard output, as [`outlet::output`](output) does. The standard macro would wait,
/// and panic where the output is closed.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => {
        $crate::outlet::output(format!($($argument)*) + "\n")
    };
}

/// Writes a formatted line to standard error, as [`outlet::errors`](errors) does.
#[macro_export]
macro_rules! alert {
    ($($argument:tt)*) => {
        $crate::outlet::errors(format!($($argument)*) + "\n")
    };
}

/// Waits until all is written, at most for a second. To be called at a process's end.
pub fn finish() {
    let deadline = Instant::now() + PATIENCE;
    for outlet in [OUTPUT.get(), ERRORS.get()].into_iter().flatten() {
        outlet.finish(deadline);
    }
}

enum Letter {
    Text(String),
    /// All that came before is written when this is answered.
    Answer(SyncSender<()>),
}

/// One output, and what waits for it.
struct Outlet(Mutex<Waiting>);

struct Waiting {
    letters: SyncSender<Letter>,
    /// Texts that found no room.
    left_out: u64,
    /// What the thread would have, where none could be started.
    unstarted: Option<Reader>,
}

/// An output, and what is to be written to it.
struct Reader {
    to: Box<dyn Write + Send>,
    letters: Receiver<Letter>,
}

/// Starts a thread by its name.
type Spawn = fn(&str, Box<dyn FnOnce() + Send>) -> io::Result<()>;

fn spawn(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

impl Outlet {
    fn start(name: &str, to: impl Write + Send + 'static) -> Self {
        Self::start_by(spawn, name, to)
    }

    /// Without threads nothing is served either: the process ends, and why is what it has to say.
    fn start_by(spawn: Spawn, name: &str, to: impl Write + Send + 'static) -> Self {
        let (letters, received) = sync_channel(WAITING_MAX);
        let reader = Arc::new(Mutex::new(Some(Reader { to: Box::new(to), letters: received })));
        let take = |reader: &Mutex<Option<Reader>>| {
            reader.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let of_thread = Arc::clone(&reader);
        let run = move || {
            if let Some(Reader { to, letters }) = take(&of_thread) {
                write(to, &letters);
            }
        };
        let started = spawn(name, Box::new(run));
        let unstarted = started.err().and_then(|_| take(&reader));
        Self(Mutex::new(Waiting { letters, left_out: 0, unstarted }))
    }

    fn put(&self, text: String) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.left_out > 0 {
            let count = waiting.left_out;
            let told = format!("{count} texts were left out here, nobody took them\n");
            if waiting.letters.try_send(Letter::Text(told)).is_ok() {
                waiting.left_out = 0;
            }
        }
        if waiting.letters.try_send(Letter::Text(text)).is_err() {
            waiting.left_out += 1;
        }
    }

    fn finish(&self, deadline: Instant) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Reader { to, letters }) = &mut waiting.unstarted {
            letters.try_iter().for_each(|letter| write_one(to, letter));
            return;
        }
        let letters = waiting.letters.clone();
        drop(waiting);
        let (answer, answered) = sync_channel(1);
        while letters.try_send(Letter::Answer(answer.clone())).is_err() {
            if Instant::now() >= deadline {
                return;
            }
            thread::sleep(AGAIN);
        }
        let _unheard = answered.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// The thread. A closed output is no reason to end.
fn write(mut to: impl Write, letters: &Receiver<Letter>) {
    for letter in letters {
        write_one(&mut to, letter);
    }
}

fn write_one(to: &mut impl Write, letter: Letter) {
    match letter {
        Letter::Text(text) => {
            let _unheard = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        }
        Letter::Answer(answer) => {
            let _gone = answer.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// An output that takes something only while it is not locked.
    #[derive(Clone, Default)]
    struct Halted(Arc<Mutex<Vec<u8>>>);

    impl Write for Halted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_an_output_that_stands_still_and_what_it_lacks_is_counted() {
        let halted = Halted::default();
        let outlet = Outlet::start("test", halted.clone());
        let held = halted.0.lock().unwrap();
        // One is being written.
        let most = WAITING_MAX + 1;
        for number in 0..most + 100 {
            outlet.put(format!("{number}\n"));
        }
        outlet.finish(Instant::now());
        let left_out = outlet.0.lock().unwrap().left_out;
        assert!((100..=101).contains(&left_out), "{left_out}");
        drop(held);
        outlet.finish(Instant::now() + Duration::from_secs(600));
        outlet.put("last\n".to_owned());
        outlet.finish(Instant::now() + Duration::from_secs(600));
        let written = String::from_utf8(halted.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = written.lines().collect();
        let told = format!("{left_out} texts were left out here, nobody took them");
        let behind = most + 100 - usize::try_from(left_out).unwrap();
        assert_eq!(lines[behind - 1], (behind - 1).to_string());
        assert_eq!(lines[behind..], [&told, "last"]);
    }

    #[test]
    fn where_no_thread_can_be_started_all_is_written_at_the_end() {
        let output = Halted::default();
        let refused: Spawn = |_, _| Err(io::ErrorKind::WouldBlock.into());
        let outlet = Outlet::start_by(refused, "test", output.clone());
        let written = || String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        for (text, all) in [("no thread\n", "no thread\n"), ("last\n", "no thread\nlast\n")] {
            outlet.put(text.to_owned());
            outlet.finish(Instant::now());
            assert_eq!(written(), all);
        }
    }
}
