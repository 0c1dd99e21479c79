//! The thread that writes the history to its store, batch by batch. Started by [`crate::run`].
//!
//! A batch is due when enough rows wait, or after a moment. The store is only given what is durable in
//! the log, by the log itself: another engine may be as far, and have something else there. Whoever fills the history adds nothing while far more rows wait than a batch has, so that
//! memory is bounded however slow the disk is: by twice `WAITING_ROWS_MAX` rows, of which one half
//! waits and one is being written, and what the tailer folds in one go for each.
//!
//! What the disk refuses, when it is full above all, or a store that is full itself, is tried again: until then it
//! stays in memory, where whoever reads finds it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use touchline_protocol::log::lease::Lease;
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::units::Position;

use super::store::{Batch, HistoryError, Reached, Store};
use crate::notice::alert;
use crate::views::Views;
use crate::views::state::Archive;

/// Rows that make a batch due.
const BATCH_ROWS: usize = 20_000;

/// Rows at which whoever fills the history adds no more, until they are set aside to be written.
pub(crate) const WAITING_ROWS_MAX: usize = 8 * BATCH_ROWS;

/// Longest time that rows wait for a batch. Each commit writes the pages that its rows lie in, and many rows that come
/// one after the other lie in the same: with a fifth of it the same rows took two to six times the disk's bytes.
const BATCH_AGE: Duration = Duration::from_secs(1);

/// Pause between two looks whether a batch has become durable: while it does not, of a disk that has failed or an
/// engine that is gone, twice as long each time up to the longest.
const DURABLE_LOOK: Duration = Duration::from_millis(1);
const DURABLE_LOOK_MAX: Duration = Duration::from_millis(50);

/// Bytes of the log that the history may be behind before it is told.
const LAG_TOLD: u64 = 256 << 20;

/// Least time between two notices.
const NOTICE_PAUSE: Duration = Duration::from_secs(10);

/// Pause before a batch that the disk has refused is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// How it is with a transaction that was folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is not on disk yet, or nobody can tell.
    Open,
    /// It is on disk, in the log as it is now.
    Durable,
    /// The log goes on without it.
    Lost,
}

/// Tells how it is with the transaction of a bookmark that ends at a position.
pub type Judge = Box<dyn Fn(&Bookmark, Position) -> Fate + Send>;

#[derive(Debug, Default)]
struct Waiting {
    rows: usize,
    is_stopped: bool,
}

/// Where the two threads tell each other how many rows wait.
#[derive(Debug, Default)]
pub struct Gate {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Gate {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by whoever fills the history: so many rows wait. Waits itself while they are far too
    /// many, at most for `patience`; true if they still are, and none may be added.
    pub(crate) fn filled(&self, rows: usize, patience: Duration) -> bool {
        let mut waiting = self.waiting();
        waiting.rows = rows;
        if rows >= BATCH_ROWS {
            self.changed.notify_all();
        }
        let is_full =
            |waiting: &mut Waiting| waiting.rows >= WAITING_ROWS_MAX && !waiting.is_stopped;
        let (mut waiting, _) = self
            .changed
            .wait_timeout_while(waiting, patience, is_full)
            .unwrap_or_else(PoisonError::into_inner);
        is_full(&mut waiting)
    }

    /// Waits until a batch is due; true if it is the last one.
    fn wait_for_batch(&self) -> bool {
        let is_early = |waiting: &mut Waiting| waiting.rows < BATCH_ROWS && !waiting.is_stopped;
        let (waiting, _) = self
            .changed
            .wait_timeout_while(self.waiting(), BATCH_AGE, is_early)
            .unwrap_or_else(PoisonError::into_inner);
        waiting.is_stopped
    }

    /// Waits for `time`, or until the end is asked for.
    fn pause(&self, time: Duration) {
        let goes_on = |waiting: &mut Waiting| !waiting.is_stopped;
        let waited = self.changed.wait_timeout_while(self.waiting(), time, goes_on);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The rows that waited are being written; others may come.
    fn set_aside(&self) {
        self.waiting().rows = 0;
        self.changed.notify_all();
    }

    fn written(&self, rows: usize) {
        self.waiting().rows = rows;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.waiting().is_stopped = true;
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.waiting().is_stopped
    }

    /// What becomes of rows that the store does not take, as an operator is told.
    fn what_stays(&self) -> &'static str {
        if self.waiting().rows < WAITING_ROWS_MAX {
            "it stays in memory"
        } else {
            "it stays in memory, which holds no more: whoever reads, or cancels what others have placed since, has no \
             answer until it is written"
        }
    }
}

/// The running thread; dropping it writes what waits and ends it.
pub struct Writer {
    gate: Arc<Gate>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works with.
pub struct Work {
    views: Arc<Views>,
    store: Store,
    judge: Judge,
    gate: Arc<Gate>,
    lease: Lease,
}

impl Writer {
    /// Starts the thread; `failed` is called if it ends because the store refuses, and with `None` if it
    /// panics.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        work: Work,
        failed: impl FnOnce(Option<HistoryError>) + Send + 'static,
    ) -> io::Result<Self> {
        let gate = Arc::clone(&work.gate);
        let thread = thread::Builder::new().name("history".to_owned()).spawn(move || {
            let guard = StopGate(Arc::clone(&work.gate));
            let end = catch_unwind(AssertUnwindSafe(|| work.run()));
            drop(guard);
            match end {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failed(Some(error)),
                Err(_panic) => failed(None),
            }
        })?;
        Ok(Self { gate, thread: Some(thread) })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.gate.stop();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Nobody waits for a thread that is no more.
struct StopGate(Arc<Gate>);

impl Drop for StopGate {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Work {
    /// The history of `views`, which were restored from `archive`, is to be written to it. `judge`
    /// tells what of the log is durable: the views may be ahead of that. Whoever fills the history
    /// tells `gate`. `lease` holds the log from the last transaction of `archive` on.
    #[must_use]
    pub fn new(
        views: Arc<Views>,
        archive: &Archive,
        judge: impl Fn(&Bookmark, Position) -> Fate + Send + 'static,
        gate: Arc<Gate>,
        lease: Lease,
    ) -> Self {
        Self { views, store: archive.store(), judge: Box::new(judge), gate, lease }
    }

    fn run(&self) -> Result<(), HistoryError> {
        let (mut lag_told, mut lease_told) = (Told::default(), Told::default());
        loop {
            let is_last = self.gate.wait_for_batch();
            let Some(batch) = self.views.write(|state| state.freeze()) else {
                if is_last {
                    return Ok(());
                }
                continue;
            };
            self.gate.set_aside();
            let end = Position(batch.reached.end);
            if !self.becomes_durable(&batch.reached)? {
                return Ok(());
            }
            self.commit(&batch)?;
            if let Err(error) = self.lease.advance(batch.reached.bookmark()) {
                // The next batch tries again; until then more of the log is held than is needed.
                lease_told.tell(|| alert!("adapter: the history's lease on the log: {error}"));
            }
            let (written, rows) =
                self.views.write(|state| (state.history.thaw(), state.history.waiting()));
            self.gate.written(rows);
            // Thousands of rows are given back here, not while readers wait.
            drop((batch, written));
            let current = self.views.current().0;
            let lag = current.saturating_sub(end.0);
            if lag > LAG_TOLD {
                let of_views = current.saturating_sub(self.views.reached().0);
                lag_told.tell(|| alert!("adapter: {}", behind(lag, of_views)));
            }
        }
    }

    /// Writes a batch, as soon as the disk takes it: what is read needs the adapter, and the adapter would find
    /// the same disk at its next start.
    ///
    /// # Errors
    /// When the store cannot go on, or the end is asked for and the disk still refuses.
    fn commit(&self, batch: &Batch) -> Result<(), HistoryError> {
        let mut told = Told::default();
        loop {
            match self.store.commit(batch) {
                Err(error) if error.is_to_be_tried_again() && !self.gate.is_stopped() => {
                    told.tell(|| {
                        let (room, kept) = (self.store.room(&error), self.gate.what_stays());
                        alert!("adapter: {error}{room}; {kept}, and is tried again each second");
                    });
                }
                Ok(()) if told.0.is_some() => {
                    alert!("adapter: the history is written again");
                    return Ok(());
                }
                outcome => return outcome,
            }
            self.gate.pause(AGAIN);
        }
    }

    /// Waits until the log is durable up to there; false if the end is asked for first.
    ///
    /// # Errors
    /// [`HistoryError::Lost`] if the log is not the one that was folded.
    fn becomes_durable(&self, reached: &Reached) -> Result<bool, HistoryError> {
        let mut pause = DURABLE_LOOK;
        loop {
            match (self.judge)(&reached.bookmark(), Position(reached.end)) {
                Fate::Durable => return Ok(true),
                Fate::Lost => return Err(HistoryError::Lost { position: reached.position }),
                Fate::Open if self.gate.is_stopped() => return Ok(false),
                Fate::Open => {
                    self.gate.pause(pause);
                    pause = longer(pause);
                }
            }
        }
    }
}

/// What an operator is told of a history that is so much of the log behind, and of views that are, in bytes.
fn behind(history: u64, views: u64) -> String {
    let [history, views] = [history, views].map(|bytes| bytes >> 20);
    let what = format!("the history is {history} MiB behind the log");
    if views == 0 {
        return what;
    }
    format!(
        "{what}, and the views {views} MiB: reads over REST wait for them, and get -1007 (of the jobs service 503) \
         where that takes too long"
    )
}

/// The pause behind one after which a batch was not durable yet.
fn longer(pause: Duration) -> Duration {
    (pause * 2).min(DURABLE_LOOK_MAX)
}

/// When something was told last.
#[derive(Default)]
struct Told(Option<Instant>);

impl Told {
    /// Tells it, unless that was done a moment ago.
    fn tell(&mut self, tell: impl FnOnce()) {
        if self.0.is_none_or(|told| told.elapsed() > NOTICE_PAUSE) {
            self.0 = Some(Instant::now());
            tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::PATIENCE;
    use crate::views::tailer::tests::definition;
    use std::sync::mpsc;

    #[test]
    fn a_panic_is_told_and_nobody_waits_for_the_thread_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), [7; 16]).unwrap();
        let mut state = archive.restore().unwrap();
        state.fold_transaction(&definition(0, 4096).transaction()).unwrap();
        let views = Arc::new(Views::new(state, || Position(0)));
        let gate = Arc::new(Gate::default());
        let lease = Lease::hold(folder.path(), "history", [7; 16], Bookmark::default()).unwrap();
        let work = Work::new(views, &archive, |_, _| panic!("asked to"), Arc::clone(&gate), lease);
        let (sender, told) = mpsc::channel();
        let writer =
            Writer::start(work, move |error| sender.send(error.is_none()).unwrap()).unwrap();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(true));
        assert!(!gate.filled(WAITING_ROWS_MAX, PATIENCE), "nobody waits");
        drop(writer);
    }

    #[test]
    fn an_operator_is_told_when_memory_holds_no_more_and_nobody_is_answered() {
        let gate = Gate::default();
        let is_told = |rows| {
            gate.filled(rows, Duration::ZERO);
            gate.what_stays().contains("no answer")
        };
        assert_eq!(
            [0, WAITING_ROWS_MAX - 1, WAITING_ROWS_MAX, 0].map(is_told),
            [false, false, true, false]
        );
    }

    /// The views wait for the store, and readers for the views.
    #[test]
    fn an_operator_is_told_what_it_means_that_the_views_are_behind_with_the_history() {
        let history = "the history is 300 MiB behind the log";
        assert_eq!(behind(300 << 20, (1 << 20) - 1), history);
        let told = behind(300 << 20, 290 << 20);
        let meaning = told.strip_prefix(history).expect("the same in front");
        assert!(meaning.contains("the views 290 MiB") && meaning.contains("-1007"), "{told}");
    }

    /// An engine that is gone may be gone for long.
    #[test]
    fn what_does_not_become_durable_is_looked_at_less_and_less_often() {
        let pauses = std::iter::successors(Some(DURABLE_LOOK), |pause| Some(longer(*pause)));
        let pauses: Vec<_> = pauses.take(8).map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 50, 50]);
    }

    #[test]
    fn what_the_log_goes_on_without_is_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), [7; 16]).unwrap();
        let mut state = archive.restore().unwrap();
        let folded = definition(0, 4096);
        state.fold_transaction(&folded.transaction()).unwrap();
        let views = Arc::new(Views::new(state, || Position(0)));
        let lease = Lease::hold(folder.path(), "history", [7; 16], Bookmark::default()).unwrap();
        let expected = (folded.transaction().bookmark(), folded.transaction().end());
        let judge = move |last: &Bookmark, end| {
            assert_eq!((*last, end), expected);
            Fate::Lost
        };
        let gate = Arc::new(Gate::default());
        let work = Work::new(views, &archive, judge, gate, lease);
        let (sender, told) = mpsc::channel();
        let writer = Writer::start(work, move |error| sender.send(error).unwrap()).unwrap();
        let error = told.recv_timeout(PATIENCE).unwrap().expect("no panic");
        assert!(matches!(error, HistoryError::Lost { position: 4096 }), "{error}");
        drop(writer);
        drop(archive);
        let archive = Archive::open(folder.path(), [7; 16]).unwrap();
        assert!(archive.last().is_none(), "nothing was stored");
    }
}
