//! The one thread that follows the log and folds it into the views. Started by [`crate::run`].

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thiserror::Error;
use touchline_protocol::log::control::LogState;
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::transaction::{Bookmark, Transaction};
use touchline_protocol::units::{Incarnation, Position};

use super::engine_clock::Signs;
use super::error::FoldError;
use super::state::State;
use super::{Pause, Views};
use crate::clock::unix_ms;
use crate::history::writer::{Fate, Gate};

/// Longest sleep of the tailer: waiters are given up at most this much behind their deadline.
pub const IDLE: Duration = Duration::from_millis(50);

/// Pause at the end of the log while nobody waits for the views. To be woken for each write of the log to
/// disk costs more than to fold what comes in one such write. While nothing comes it is twice as long each
/// time, up to [`IDLE`].
const PAUSE: Duration = Duration::from_millis(2);

/// Pause before the log is looked at again for those who wait, where it does not tell in time what it has.
const LATE_PAUSE: Duration = Duration::from_micros(100);

/// Pause before the log is read again when the system had no descriptor or no memory for it.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(20);

/// Transactions folded in one go: as long readers wait, and so long at the most.
const BATCH: usize = 64;

/// Why the views do not follow the log any more.
#[derive(Debug, Error)]
pub enum TailError {
    /// The log cannot be read on.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A transaction contradicts the ones before.
    #[error("transaction at log position {position}: {source}")]
    Fold {
        /// Where its frame begins.
        position: Position,
        /// What is wrong with it.
        source: FoldError,
    },
}

/// What the tailer reads: the log, or what a test puts in its place.
pub trait Source: Send + 'static {
    /// The next transaction, or `None` at the watermark.
    ///
    /// # Errors
    /// When the log cannot be read on.
    fn next(&mut self) -> Result<Option<Transaction<'_>>, ReadError>;
    /// How far it may be read now.
    fn watermark(&self) -> Position;
    /// How many engines have written it since it is read.
    fn engines(&self) -> u64;
    /// Waits until there may be more, at most for `limit`.
    ///
    /// # Errors
    /// When the log is not the one that was read before.
    fn wait(&mut self, limit: Duration) -> Result<(), ReadError>;
    /// When the engine that writes it was last alive, ms since the epoch; 0 if none is known.
    fn alive_ms(&self) -> u64;
    /// True if there may be more long before [`Source::wait`] knows of it.
    fn is_told_late(&self) -> bool;
}

impl Source for LogReader {
    fn next(&mut self) -> Result<Option<Transaction<'_>>, ReadError> {
        Self::next(self)
    }

    fn watermark(&self) -> Position {
        Self::watermark(self)
    }

    fn engines(&self) -> u64 {
        Self::engines(self)
    }

    fn wait(&mut self, limit: Duration) -> Result<(), ReadError> {
        Self::wait(self, limit)
    }

    fn alive_ms(&self) -> u64 {
        self.signs_of_life().map_or(0, |signs| signs.heartbeat_ns / 1_000_000)
    }

    fn is_told_late(&self) -> bool {
        // It waits for the disk.
        self.follow() == Follow::Appended
    }
}

/// The running tailer; dropping it ends the thread.
pub struct Tailer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tailer {
    /// Starts the thread. It tells `gate` how many rows wait for the history's store, if there is one.
    /// When it ends, for whatever reason, the views are told first and then `ended` is called; with
    /// `None` if it was stopped or has panicked.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        mut source: impl Source,
        views: Arc<Views>,
        gate: Option<Arc<Gate>>,
        ended: impl FnOnce(Option<TailError>) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&stop);
        let thread = thread::Builder::new().name("views".to_owned()).spawn(move || {
            let follow = || follow(&mut source, &views, gate.as_deref(), &own);
            let end = catch_unwind(AssertUnwindSafe(follow));
            views.stop();
            ended(end.ok().and_then(Result::err));
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Tailer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn follow(
    source: &mut impl Source,
    views: &Views,
    gate: Option<&Gate>,
    stop: &AtomicBool,
) -> Result<(), TailError> {
    let mut reached = views.reached();
    let mut next_look = Instant::now();
    let mut next_wait = next_look;
    let mut pause = PAUSE;
    let mut engines = source.engines();
    let mut signs = Signs::default();
    while !stop.load(Ordering::Acquire) {
        if std::mem::replace(&mut engines, source.engines()) != engines {
            // It has begun by this machine's clock, whatever was set while the one before ran. First of all: who is
            // told of it goes by that clock.
            signs = Signs::default();
            views.note_ahead(0);
            views.another_engine(|| source.watermark());
        }
        let begun = Instant::now();
        let alive_ms = source.alive_ms();
        views.note_alive(alive_ms);
        if let Some(ahead_ms) = signs.look(alive_ms, begun, || (unix_ms(), Instant::now())) {
            views.note_ahead(ahead_ms);
        }
        // Taken before the last look for a transaction: at the end of the log everything before it
        // has been folded, be it transactions or records that mean nothing to the views.
        let watermark = source.watermark();
        let before = reached;
        let (batch, mut rows) = fold_batch(source, views, &mut reached)?;
        pause = if reached == before { (pause * 2).min(IDLE) } else { PAUSE };
        views.move_to(if batch == Batch::End { reached.max(watermark) } else { reached });
        let mut expire = || {
            let now = Instant::now();
            if now >= next_look {
                views.expire(now);
                next_look = now + IDLE;
            }
        };
        expire();
        // Nothing is folded while the store is far behind; who waits for the views is told in time.
        while gate.is_some_and(|gate| gate.filled(rows, IDLE)) && !stop.load(Ordering::Acquire) {
            rows = views.read(|state| state.history.waiting());
            expire();
        }
        let paused = if batch == Batch::End { views.pause(pause) } else { Pause::None };
        if wait_for_more(source, batch, paused, &mut next_wait)? == Next::Later {
            thread::sleep(SHORTAGE_PAUSE);
        }
    }
    Ok(())
}

/// When the log is read on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// At once.
    Now,
    /// When the system may have a descriptor and memory for it again.
    Later,
}

/// Waits behind one go along the log, and the pause that was made behind it, until there may be more.
fn wait_for_more(
    source: &mut impl Source,
    batch: Batch,
    paused: Pause,
    next_wait: &mut Instant,
) -> Result<Next, TailError> {
    match batch {
        Batch::Full => return Ok(Next::Now),
        Batch::Short => return Ok(Next::Later),
        // What the request that came meanwhile waits for may be there.
        Batch::End if paused == Pause::Cut => return Ok(Next::Now),
        Batch::End => {}
    }
    let is_told_late = source.is_told_late();
    if is_told_late && Instant::now() < *next_wait {
        // Only its look for another engine is needed, now and then.
        if paused == Pause::None {
            thread::sleep(LATE_PAUSE);
        }
        return Ok(Next::Now);
    }
    *next_wait = Instant::now() + IDLE;
    match source.wait(if is_told_late { Duration::ZERO } else { IDLE }) {
        Err(error) if error.is_shortage() => Ok(Next::Later),
        waited => Ok(waited.map(|()| Next::Now)?),
    }
}

/// How one go along the log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch {
    /// There may be more.
    Full,
    /// At the log's end.
    End,
    /// The system had no descriptor or no memory for what comes next.
    Short,
}

/// Folds up to [`BATCH`] transactions; gives also the rows that wait for the history's store.
fn fold_batch(
    source: &mut impl Source,
    views: &Views,
    reached: &mut Position,
) -> Result<(Batch, usize), TailError> {
    views.write(|state| {
        let batch = fold_into(state, source, reached)?;
        Ok((batch, state.history.waiting()))
    })
}

fn fold_into(
    state: &mut State,
    source: &mut impl Source,
    reached: &mut Position,
) -> Result<Batch, TailError> {
    for _ in 0..BATCH {
        let transaction = match source.next() {
            Ok(Some(transaction)) => transaction,
            Ok(None) => return Ok(Batch::End),
            Err(error) if error.is_shortage() => return Ok(Batch::Short),
            Err(error) => return Err(error.into()),
        };
        state
            .fold_transaction(&transaction)
            .map_err(|source| TailError::Fold { position: transaction.position(), source })?;
        *reached = transaction.end();
    }
    Ok(Batch::Full)
}

/// An engine's log as it stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engine {
    /// Its start.
    pub incarnation: Incarnation,
    /// What it does with the log; `None` for a state that this build does not know.
    pub state: Option<LogState>,
    /// How far the log may be read now.
    pub position: Position,
    /// How far its public feed has read the log; `None` if it has none.
    pub feed: Option<Position>,
}

/// Tells at any moment, on any thread, how far the log stands: a reader that never reads.
pub struct Watermark(Mutex<Attached>);

struct Attached {
    reader: LogReader,
    /// When it looks for another engine, though nothing tells of one.
    next_look: Instant,
}

impl Watermark {
    /// Takes a reader of its own, opened at the same level as the tailer's.
    #[must_use]
    pub fn new(reader: LogReader) -> Self {
        Self(Mutex::new(Attached { reader, next_look: Instant::now() }))
    }

    /// How far the log may be read now; 0 if no engine has run since the machine started.
    #[must_use]
    pub fn now(&self) -> Position {
        self.attached().reader.watermark()
    }

    /// The same, and whose log it is; `None` if no engine has run since the machine started.
    #[must_use]
    pub fn look(&self) -> Option<Engine> {
        let Attached { reader, .. } = &*self.attached();
        let incarnation = reader.incarnation()?;
        // The feed first: none is then ahead of what it follows.
        let feed = reader.signs_of_life().and_then(|signs| signs.feed);
        Some(Engine { incarnation, state: reader.state(), position: reader.watermark(), feed })
    }

    /// Whether the log of the last engine has failed, which may have ended since.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.attached().reader.state() == Some(LogState::LogFailed)
    }

    /// How it is with a folded transaction that ends at `end`. Where somebody has removed the control page of a
    /// running engine, `session` tells how far the log goes.
    #[must_use]
    pub fn fate(&self, last: &Bookmark, end: Position, session: impl Fn() -> Position) -> Fate {
        let mut attached = self.attached();
        let reader = &mut attached.reader;
        let limit = match reader.incarnation() {
            Some(_) => reader.watermark(),
            None => session(),
        };
        if limit < end {
            return Fate::Open;
        }
        match reader.holds(last) {
            Ok(true) => Fate::Durable,
            Ok(false) => Fate::Lost,
            // The tailer reads the same log, and reports what is wrong with it.
            Err(_unreadable) => Fate::Open,
        }
    }

    fn attached(&self) -> MutexGuard<'_, Attached> {
        let mut attached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A new engine stops the page of the one before it takes the first command, so a page that
        // is not stopped is the one that counts: unless it was removed while its engine ran, or its log was
        // replaced by a copy of it. Nobody finds it to stop it then.
        let is_stopped = matches!(attached.reader.state(), None | Some(LogState::Stopped));
        let now = Instant::now();
        if is_stopped || now >= attached.next_look {
            attached.next_look = now + IDLE;
            // What cannot be attached now is the tailer's to report; the old page stands meanwhile.
            let _attached = attached.reader.attach();
        }
        attached
    }
}

#[cfg(test)]
pub(crate) mod tests;
