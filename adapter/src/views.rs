//! What the log says now, in memory: accounts, keys, orders, books. Fed by the [`tailer`]; read by
//! the spot service for every GET and to resolve keys and symbols of every request.
//!
//! A reader never sees half a transaction. Whoever must see everything up to a log position asks
//! [`Views::when_reached`].

pub mod accounts;
pub mod book;
pub mod doubts;
mod engine_clock;
pub mod error;
pub mod lists;
pub(crate) mod looking;
pub mod orders;
pub mod records;
pub mod state;
pub mod tailer;
pub mod venue;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use thiserror::Error;
use touchline_protocol::units::Position;

use doubts::{Doubts, Owner, Unsettled};
use engine_clock::EngineClock;
use looking::Looking;
use state::State;

/// Why a view cannot answer up to the position that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotReached {
    /// The deadline passed first.
    #[error("the view is at log position {at}, {wanted} was asked for")]
    Behind {
        /// Where the view was at the deadline.
        at: Position,
        /// Where it should have been.
        wanted: Position,
    },
    /// The tailer has stopped: the view will never move again.
    #[error("the view has stopped at log position {at}")]
    Stopped {
        /// Where it stopped.
        at: Position,
    },
}

/// How a pause ended for whoever makes the state move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// There was none: somebody waits already.
    None,
    /// Somebody waits who did not before.
    Cut,
    /// Nobody waits.
    Whole,
}

type Callback = Box<dyn FnOnce(Result<(), NotReached>) + Send>;

struct Waiter {
    deadline: Instant,
    callback: Callback,
}

/// Who waits for which position; the number tells waiters for the same position apart.
#[derive(Default)]
struct Waiters {
    by_position: BTreeMap<(Position, u64), Waiter>,
    next: u64,
}

/// The state and those who wait for it to move on. Shared by all threads of the adapter.
pub struct Views {
    state: RwLock<State>,
    reached: AtomicU64,
    acknowledged: AtomicU64,
    /// When the engine was last alive, ms since the epoch.
    alive_ms: AtomicU64,
    engine_clock: EngineClock,
    watermark: Box<dyn Fn() -> Position + Send + Sync>,
    /// Up to where the log stands in the live window; `None`: where `watermark` says.
    appended: Option<Box<dyn Fn() -> Position + Send + Sync>>,
    /// Since when there is no session with the engine, if there is none; `None`: nobody tells.
    away_since: Option<Box<dyn Fn() -> Option<Instant> + Send + Sync>>,
    /// Whether the log has failed; `None`: nobody tells.
    has_failed: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    doubts: Doubts,
    stopped: AtomicBool,
    waiters: Mutex<Waiters>,
    /// Somebody waits who did not before.
    begun: Condvar,
}

impl Views {
    /// Views that hold what `state` does. `watermark` tells at any moment up to where the log stands at
    /// the adapter's acknowledgement level.
    #[must_use]
    pub fn new(state: State, watermark: impl Fn() -> Position + Send + Sync + 'static) -> Self {
        Self {
            reached: AtomicU64::new(state.history.reached().0),
            state: RwLock::new(state),
            acknowledged: AtomicU64::new(0),
            alive_ms: AtomicU64::new(u64::MAX),
            engine_clock: EngineClock::default(),
            watermark: Box::new(watermark),
            appended: None,
            away_since: None,
            has_failed: None,
            doubts: Doubts::default(),
            stopped: AtomicBool::new(false),
            waiters: Mutex::new(Waiters::default()),
            begun: Condvar::new(),
        }
    }

    /// `appended` tells at any moment up to where the log stands in the live window, on disk or not.
    #[must_use]
    pub fn with_appended(self, appended: impl Fn() -> Position + Send + Sync + 'static) -> Self {
        Self { appended: Some(Box::new(appended)), ..self }
    }

    /// `away_since` tells at any moment since when there is no session with the engine; `None` while there is one.
    #[must_use]
    pub fn with_engine(
        self,
        away_since: impl Fn() -> Option<Instant> + Send + Sync + 'static,
    ) -> Self {
        Self { away_since: Some(Box::new(away_since)), ..self }
    }

    /// `has_failed` tells at any moment whether the log of the last engine has failed: no more of it gets on disk
    /// before another one starts.
    #[must_use]
    pub fn with_failure(self, has_failed: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { has_failed: Some(Box::new(has_failed)), ..self }
    }

    /// Looks at the state. The tailer waits meanwhile, and everybody else with it: copy out what is needed
    /// and a reader of the history; read the history and write JSON later.
    pub fn read<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        let _looking = Looking::begin();
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything before this position is in the state.
    #[must_use]
    pub fn reached(&self) -> Position {
        Position(self.reached.load(Ordering::Acquire))
    }

    /// What a reader must see who arrives now: all that is acknowledged, by whatever adapter.
    #[must_use]
    pub fn current(&self) -> Position {
        (self.watermark)().max(Position(self.acknowledged.load(Ordering::Acquire)))
    }

    /// A reply up to this position was handed to a client: later readers must see it even if the
    /// watermark cannot be read.
    pub fn acknowledge(&self, position: Position) {
        self.acknowledged.fetch_max(position.0, Ordering::AcqRel);
    }

    /// All that was done by now, acknowledged or not: an engine that ends leaves it to the next one.
    #[must_use]
    pub fn appended(&self) -> Position {
        self.appended.as_ref().map_or_else(|| (self.watermark)(), |appended| appended())
    }

    /// Nobody knows what became of a command of the owner's. Its readers wait for that, until `patience` is over.
    pub fn doubt(&self, owner: Owner, patience: Duration) {
        let until = Instant::now() + patience;
        self.doubts.add(owner, Unsettled { position: self.appended(), until }, self.reached());
    }

    /// What a reader waits for before he is shown what is there: for what is in doubt of him, and while the engine is
    /// away for all that it had appended, whoever's it is. Another adapter may have told him that nobody knows of it,
    /// or this one before it was started again. `owner` tells who he is, if he is anybody, and is asked only if there
    /// is anything to be waited for. An engine that is away is waited for until it has been so for `patience`. Beside one
    /// whose log has failed nobody waits: it brings nothing more to disk.
    #[must_use]
    pub fn awaited(
        &self,
        owner: impl FnOnce() -> Option<Owner>,
        patience: Duration,
    ) -> Option<Unsettled> {
        let left_behind = self.left_behind(patience);
        if left_behind.is_none()
            && (!self.doubts.any(self.reached()) || self.is_beside_failed_log())
        {
            return None;
        }
        let own = self.unsettled(owner()?);
        match (own, left_behind) {
            (Some(own), Some(all)) => Some(own.and(all)),
            (own, all) => own.or(all),
        }
    }

    /// Up to where the views must be before an owner is told that something is not there: all that was appended when
    /// this is asked. Beside an engine whose log has failed nobody can be shown more than what is on disk, and that
    /// decides; but `None` for whom something is in doubt of: only the next engine's start brings it to disk, and who
    /// was told that it is not there would do it again.
    #[must_use]
    pub fn certain_from(&self, owner: Option<Owner>) -> Option<Position> {
        let appended = self.appended();
        if self.reached() >= appended || !self.is_beside_failed_log() {
            return Some(appended);
        }
        let is_in_doubt = || {
            self.doubts.any(self.reached())
                && owner.is_some_and(|one| self.unsettled(one).is_some())
        };
        // Looked at behind the failure: it moves no more.
        let on_disk = self.current();
        if on_disk < appended && is_in_doubt() { None } else { Some(appended.min(on_disk)) }
    }

    /// The engine's log has failed, and the engine is there all the same.
    #[must_use]
    pub fn is_beside_failed_log(&self) -> bool {
        let is_away = || self.away_since.as_ref().is_some_and(|away_since| away_since().is_some());
        self.has_failed.as_ref().is_some_and(|has_failed| has_failed()) && !is_away()
    }

    /// What is in doubt of the owner.
    fn unsettled(&self, owner: Owner) -> Option<Unsettled> {
        self.doubts.of(owner, self.reached())
    }

    /// What an engine that is away had appended, and nobody can be shown yet.
    fn left_behind(&self, patience: Duration) -> Option<Unsettled> {
        let until = self.away_since.as_ref()?()? + patience;
        let position = self.appended();
        (position > self.reached()).then_some(Unsettled { position, until })
    }

    /// The engine was alive then.
    pub(crate) fn note_alive(&self, time_ms: u64) {
        // SYNC: orders nothing; a time to be compared with.
        self.alive_ms.store(time_ms, Ordering::Relaxed);
    }

    /// The engine's clock is so much ahead of this machine's, ms.
    pub(crate) fn note_ahead(&self, ms: i64) {
        self.engine_clock.is_ahead(ms);
    }

    /// What the engine's clock shows, by which the log's times go, when this machine's shows `time_ns`, since the
    /// epoch. The engine does not follow a clock that is set while it runs.
    #[must_use]
    pub fn engine_ns(&self, time_ns: u64) -> u64 {
        self.engine_clock.at(time_ns)
    }

    /// The latest time of the engine's clock at which this machine's shows no more than `time_ns`, since the epoch: what
    /// a command is good for. Of one that is ahead the link knows it, by each reply.
    #[must_use]
    pub fn not_after_ns(&self, time_ns: u64) -> u64 {
        time_ns.min(self.engine_ns(time_ns))
    }

    /// When the engine was last alive, ms since the epoch: it says so twice a second. 0 if none is known to have run,
    /// and [`u64::MAX`] before anybody has looked.
    #[must_use]
    pub fn alive_ms(&self) -> u64 {
        self.alive_ms.load(Ordering::Relaxed)
    }

    /// Another engine writes the log, which goes up to `watermark` now. What was appended or acknowledged behind that,
    /// by an engine before it, is lost: nobody is to wait for it, nor waits on.
    fn another_engine(&self, watermark: impl Fn() -> Position) {
        let acknowledged = self.acknowledged.load(Ordering::Acquire);
        // Looked at behind the line above: what the new engine has acknowledged by then is below it.
        let end = watermark().0;
        // What the engine before had appended is on disk by now, or nowhere.
        self.doubts.end_at(Position(end));
        if acknowledged > end {
            let _more_since = self.acknowledged.compare_exchange(
                acknowledged,
                end,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            // What it has acknowledged between the two looks may have been taken back with that.
            self.acknowledge(watermark());
        }
        self.lower_waiters(Position(end));
    }

    /// Who waits for more than what is before `end` waits for that.
    fn lower_waiters(&self, end: Position) {
        {
            let by_position = &mut self.waiters().by_position;
            let beyond = by_position.split_off(&(Position(end.0 + 1), 0));
            by_position.extend(beyond.into_iter().map(|((_, number), one)| ((end, number), one)));
        }
        // Those who are there already: nothing need move the views for them.
        self.move_to(self.reached());
    }

    /// True once the tailer has stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Calls `callback` once the state holds everything before `position`: at once on this thread if
    /// it does already, else later on the tailer's. With an error if `deadline` passes first (looked
    /// at when the tailer wakes, see [`tailer::IDLE`]) or if the tailer has stopped.
    pub fn when_reached(
        &self,
        position: Position,
        deadline: Instant,
        callback: impl FnOnce(Result<(), NotReached>) + Send + 'static,
    ) {
        if self.reached() >= position {
            return callback(Ok(()));
        }
        let mut waiters = self.waiters();
        // Again under the lock: the tailer moves on first and then takes the lock to find waiters.
        if self.reached() >= position {
            drop(waiters);
            return callback(Ok(()));
        }
        if self.is_stopped() {
            drop(waiters);
            return callback(Err(NotReached::Stopped { at: self.reached() }));
        }
        let number = waiters.next;
        waiters.next += 1;
        let waiter = Waiter { deadline, callback: Box::new(callback) };
        waiters.by_position.insert((position, number), waiter);
        drop(waiters);
        self.begun.notify_one();
    }

    /// Pauses until somebody waits, at most for `limit`.
    fn pause(&self, limit: Duration) -> Pause {
        let waiters = self.waiters();
        let nobody = |waiters: &mut Waiters| waiters.by_position.is_empty();
        if !waiters.by_position.is_empty() {
            return Pause::None;
        }
        let ended = self.begun.wait_timeout_while(waiters, limit, nobody);
        if ended.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
            Pause::Whole
        } else {
            Pause::Cut
        }
    }

    /// Changes the state; readers see none of it before `change` returns.
    pub(crate) fn write<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let _looking = Looking::begin();
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The state holds everything before `position`: calls those who waited for it.
    fn move_to(&self, position: Position) {
        self.reached.fetch_max(position.0, Ordering::AcqRel);
        let due = {
            let mut waiters = self.waiters();
            if waiters.by_position.is_empty() {
                return;
            }
            let beyond = waiters.by_position.split_off(&(Position(position.0 + 1), 0));
            std::mem::replace(&mut waiters.by_position, beyond)
        };
        for waiter in due.into_values() {
            call(waiter.callback, Ok(()));
        }
    }

    /// Gives up on those whose deadline is not after `now`.
    fn expire(&self, now: Instant) {
        let at = self.reached();
        let late: Vec<_> = {
            let mut waiters = self.waiters();
            waiters.by_position.extract_if(.., |_, waiter| waiter.deadline <= now).collect()
        };
        for ((wanted, _), waiter) in late {
            call(waiter.callback, Err(NotReached::Behind { at, wanted }));
        }
    }

    /// The state will never move again: tells everyone who waits, now and later.
    fn stop(&self) {
        let waiting = {
            let mut waiters = self.waiters();
            self.stopped.store(true, Ordering::Release);
            std::mem::take(&mut waiters.by_position)
        };
        let at = self.reached();
        for waiter in waiting.into_values() {
            call(waiter.callback, Err(NotReached::Stopped { at }));
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a test does in the tailer's place.
#[cfg(test)]
impl Views {
    pub(crate) fn arrive(&self, position: Position) {
        self.move_to(position);
    }

    /// Another engine's log goes up to there.
    pub(crate) fn succeed(&self, end: Position) {
        self.another_engine(|| end);
    }

    pub(crate) fn expire_now(&self) {
        self.expire(Instant::now());
    }

    pub(crate) fn halt(&self) {
        self.stop();
    }

    pub(crate) fn fold(
        &self,
        command: touchline_protocol::message::decode::Command<'_>,
        events: &[touchline_protocol::message::decode::Event<'_>],
    ) {
        let events = events.iter().copied().map(Ok);
        self.write(|state| state.fold(u64::MAX, command, events)).expect("a sound transaction");
    }
}

/// A callback that panics costs its own request only: what it holds is dropped, which answers it.
fn call(callback: Callback, outcome: Result<(), NotReached>) {
    let _panicked = catch_unwind(AssertUnwindSafe(|| callback(outcome)));
}

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    fn views() -> Views {
        Views::new(State::new(), || Position(30))
    }

    fn wait(
        views: &Views,
        position: u64,
        deadline: Instant,
    ) -> mpsc::Receiver<Result<(), NotReached>> {
        let (sender, receiver) = mpsc::channel();
        views.when_reached(Position(position), deadline, move |outcome| {
            sender.send(outcome).unwrap();
        });
        receiver
    }

    #[test]
    fn callbacks_run_at_once_or_when_the_view_gets_there() {
        let views = views();
        let later = Instant::now() + Duration::from_secs(3600);
        views.move_to(Position(10));
        assert_eq!(wait(&views, 10, later).try_recv(), Ok(Ok(())));
        let at_20 = wait(&views, 20, later);
        let at_21 = wait(&views, 21, later);
        views.move_to(Position(20));
        assert_eq!(at_20.try_recv(), Ok(Ok(())));
        assert_eq!(at_21.try_recv(), Err(mpsc::TryRecvError::Empty));
        views.move_to(Position(500));
        assert_eq!(at_21.try_recv(), Ok(Ok(())));
        assert_eq!(views.reached(), Position(500));
    }

    #[test]
    fn deadlines_and_the_end_of_the_tailer_are_told() {
        let views = views();
        let now = Instant::now();
        let late = wait(&views, 5, now);
        let patient = wait(&views, 6, now + Duration::from_secs(3600));
        views.expire(now);
        let behind = NotReached::Behind { at: Position(0), wanted: Position(5) };
        assert_eq!(late.try_recv(), Ok(Err(behind)));
        assert_eq!(patient.try_recv(), Err(mpsc::TryRecvError::Empty));
        views.stop();
        let stopped = Err(NotReached::Stopped { at: Position(0) });
        assert_eq!(patient.try_recv(), Ok(stopped));
        assert_eq!(wait(&views, 7, now).try_recv(), Ok(stopped));
    }

    #[test]
    fn a_panicking_callback_costs_nobody_else() {
        let views = views();
        let later = Instant::now() + Duration::from_secs(3600);
        views.when_reached(Position(1), later, |_| panic!("asked to"));
        let other = wait(&views, 2, later);
        views.move_to(Position(2));
        assert_eq!(other.try_recv(), Ok(Ok(())));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "while the views are held")]
    fn who_looks_at_the_views_may_not_wait_for_the_disk() {
        let views = views();
        views.read(|_| ());
        looking::assert_ended();
        views.read(|_| looking::assert_ended());
    }

    #[test]
    fn a_reader_must_see_whatever_was_acknowledged() {
        let views = views();
        assert_eq!(views.current(), Position(30));
        views.acknowledge(Position(40));
        views.acknowledge(Position(35));
        assert_eq!(views.current(), Position(40));
        views.another_engine(|| Position(45));
        assert_eq!(views.current(), Position(40));
        views.another_engine(|| Position(33));
        assert_eq!(views.current(), Position(33), "the rest is lost");
    }

    #[test]
    fn nobody_waits_on_for_what_is_lost_with_its_engine() {
        let views = views();
        let later = Instant::now() + Duration::from_secs(3600);
        views.move_to(Position(30));
        let waiting = [50, 70, 80].map(|position| wait(&views, position, later));
        let at_once = || waiting.each_ref().map(|one| one.try_recv().is_ok());
        views.another_engine(|| Position(64));
        assert_eq!(at_once(), [false; 3]);
        views.arrive(Position(64));
        assert_eq!(at_once(), [true; 3]);
        // An engine that shows what is in its window may have got further than the next one's log.
        let waits = wait(&views, 90, later);
        views.another_engine(|| Position(64));
        assert_eq!(waits.try_recv(), Ok(Ok(())));
    }

    #[test]
    fn what_is_in_doubt_is_known_when_another_engine_has_begun() {
        let owner = Owner::User([7; 12]);
        let views = views().with_appended(|| Position(70));
        views.move_to(Position(30));
        assert_eq!((views.appended(), views.current()), (Position(70), Position(30)));
        assert_eq!(views.unsettled(owner), None);
        views.doubt(owner, Duration::ZERO);
        assert_eq!(views.unsettled(owner).map(|one| one.position), Some(Position(70)));
        // A power cut has taken the rest.
        views.another_engine(|| Position(50));
        assert_eq!(views.unsettled(owner).map(|one| one.position), Some(Position(50)));
        views.move_to(Position(50));
        assert_eq!(views.unsettled(owner), None);
        assert!(!views.doubts.any(views.reached()));
    }

    #[test]
    fn what_an_engine_that_is_away_had_appended_is_in_doubt_of_everybody() {
        let since = Arc::new(Mutex::new(None));
        let told = Arc::clone(&since);
        let views =
            views().with_appended(|| Position(70)).with_engine(move || *told.lock().unwrap());
        views.move_to(Position(30));
        let hour = Duration::from_secs(3600);
        assert_eq!(views.awaited(|| panic!("nobody is in doubt"), hour), None);
        let lost = Instant::now();
        *since.lock().unwrap() = Some(lost);
        let all = Unsettled { position: Position(70), until: lost + hour };
        assert_eq!(views.awaited(|| Some(Owner::User([8; 12])), hour), Some(all));
        assert_eq!(views.awaited(|| None, hour), None, "it is nobody's");
        // Whose command it was that is in doubt here waits as long as that had.
        let owner = Owner::User([7; 12]);
        views.doubt(owner, 2 * hour);
        let own = views.awaited(|| Some(owner), hour).unwrap();
        assert!(own.position == all.position && own.until >= lost + 2 * hour);
        assert_eq!(views.awaited(|| Some(Owner::User([8; 12])), hour), Some(all));
        views.move_to(Position(70));
        assert_eq!(views.awaited(|| Some(owner), hour), None);
    }
}
