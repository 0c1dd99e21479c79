//! The control page as the engine sees it: watermarks, state, and the signals between duty thread
//! and keeper. Shared by log writer, keeper and whoever composes the engine.

use crate::gateway::Bell;
use crate::notice::alert;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use touchline_protocol::{
    log::{
        control::{
            APPENDED_OFFSET, CONTROL_FILE, ControlHeader, DURABLE_EVENT_OFFSET, DURABLE_OFFSET,
            FEED_OFFSET, HEARTBEAT_NS_OFFSET, LogState, PANICKED_OFFSET, STATE_OFFSET, WINDOW_FILE,
        },
        place::WindowFolders,
        reader::Follow,
        segment::LogIdentity,
    },
    shm::{Region, Shared, ShmError},
    sync::ReadOnlyU32,
    units::{Incarnation, Position},
    wait::{EventCounter, EventWatch, LocalSignal, ParkingLine, Rest},
};

use super::{
    live::{ORIGIN_FILE, UNFINISHED_CONTROL},
    lock::{DataLock, FolderLock},
};
use crate::snapshot::SnapshotSchedule;

/// What stays the same while the engine runs, and the locks that keep it its own.
pub(crate) struct Fixed {
    pub(crate) identity: LogIdentity,
    pub(crate) header: ControlHeader,
    /// The window's folder.
    pub(crate) folder: PathBuf,
    pub(crate) folders: WindowFolders,
    pub(crate) _data_lock: DataLock,
    pub(crate) _window_lock: FolderLock,
}

/// Off the lines of its neighbours: the duty thread looks at those with each command, and the keeper counts here.
#[repr(align(128))]
struct OwnLine(AtomicU64);

struct Inner {
    fixed: Fixed,
    appended: Shared<AtomicU64>,
    durable: Shared<AtomicU64>,
    durable_event: Shared<AtomicU32>,
    state: Shared<AtomicU32>,
    heartbeat_ns: Shared<AtomicU64>,
    panicked: Shared<AtomicU32>,
    feed: Shared<AtomicU64>,
    /// Neither lies in the page, which every session maps: see [`LocalSignal`].
    duty: LocalSignal,
    keeper: LocalSignal,
    /// What the keeper need not be woken for, and up to where it is waited for.
    keeper_rest: Rest,
    keeper_turns: OwnLine,
    attest_asked: AtomicBool,
    attested_to: AtomicU64,
    keeper_stop: AtomicBool,
    keeper_gone: AtomicBool,
    failure: Mutex<Option<String>>,
    snapshots: OnceLock<SnapshotSchedule>,
    gateway: OnceLock<Arc<Bell>>,
    follower: OnceLock<Follower>,
}

/// A thread that follows the log, and what it sleeps on.
struct Follower {
    signal: Arc<LocalSignal>,
    follow: Follow,
}

/// A handle to the control page. Clones share it.
#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

impl Control {
    pub(crate) fn new(page: &Region, fixed: Fixed) -> Result<Self, ShmError> {
        let inner = Inner {
            fixed,
            appended: page.u64_at(APPENDED_OFFSET)?,
            durable: page.u64_at(DURABLE_OFFSET)?,
            durable_event: page.u32_at(DURABLE_EVENT_OFFSET)?,
            state: page.u32_at(STATE_OFFSET)?,
            heartbeat_ns: page.u64_at(HEARTBEAT_NS_OFFSET)?,
            panicked: page.u32_at(PANICKED_OFFSET)?,
            feed: page.u64_at(FEED_OFFSET)?,
            duty: LocalSignal::new(),
            keeper: LocalSignal::new(),
            keeper_rest: Rest::new(),
            keeper_turns: OwnLine(AtomicU64::new(0)),
            attest_asked: AtomicBool::new(false),
            attested_to: AtomicU64::new(0),
            keeper_stop: AtomicBool::new(false),
            keeper_gone: AtomicBool::new(false),
            failure: Mutex::new(None),
            snapshots: OnceLock::new(),
            gateway: OnceLock::new(),
            follower: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The log.
    #[must_use]
    pub fn identity(&self) -> &LogIdentity {
        &self.inner.fixed.identity
    }

    /// This engine's incarnation.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        Incarnation(self.inner.fixed.header.incarnation)
    }

    /// The control page's file, for who is to map it read-only.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.inner.fixed.folder.join(CONTROL_FILE)
    }

    /// Behind the last published frame.
    #[must_use]
    pub fn appended(&self) -> Position {
        // SYNC: pairs with the release store in `Tail::publish`.
        Position(self.inner.appended.load(Ordering::Acquire))
    }

    /// On disk up to here.
    #[must_use]
    #[inline]
    pub fn durable(&self) -> Position {
        // SYNC: pairs with the release store in `set_durable`.
        Position(self.inner.durable.load(Ordering::Acquire))
    }

    /// What the engine does with the log.
    #[must_use]
    pub fn state(&self) -> LogState {
        // A word that names no state was written by somebody else: nothing is to be trusted.
        LogState::from_word(self.inner.state.load(Ordering::Acquire)).unwrap_or(LogState::LogFailed)
    }

    /// Whether commands may be accepted.
    #[must_use]
    #[inline]
    pub fn is_running(&self) -> bool {
        self.inner.state.load(Ordering::Acquire) == LogState::Running as u32
    }

    /// Why the log failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.inner.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts the moves of [`Control::durable`] and changes of [`Control::state`].
    #[must_use]
    pub fn durable_event(&self) -> EventWatch<'_> {
        EventWatch::new(ReadOnlyU32::new(&self.inner.durable_event))
    }

    /// What the duty thread may sleep on besides its rings: the keeper rings when there is room again,
    /// when it wants an attest record, and when the log has failed.
    #[must_use]
    pub fn duty_line(&self) -> ParkingLine<'_> {
        self.inner.duty.line()
    }

    /// The duty thread's sign of life, ns since the epoch.
    #[inline]
    pub fn set_heartbeat(&self, now_ns: u64) {
        // SYNC: release pairs with the acquire load of whoever reads it from the page: what was decided before this time
        // lies below what `appended` says then.
        self.inner.heartbeat_ns.store(now_ns, Ordering::Release);
    }

    /// The last of these; 0 before the first.
    pub(crate) fn heartbeat(&self) -> u64 {
        // SYNC: a number alone, stored by whoever asks, or by a thread that has ended.
        self.inner.heartbeat_ns.load(Ordering::Relaxed)
    }

    /// The duty thread has panicked: the process ends behind this, and the next start is to know why.
    pub fn note_panic(&self) {
        // SYNC: orders nothing; it is read when this process is gone.
        self.inner.panicked.store(1, Ordering::Relaxed);
    }

    /// The public feed has read the log up to here, and published what is public of it.
    pub(crate) fn set_feed(&self, position: Position) {
        // SYNC: a number to be shown. Who has seen it, and then looks at `appended`, sees no less.
        self.inner.feed.store(position.0, Ordering::Release);
    }

    /// The last of these; 0 if there is no feed.
    pub(crate) fn feed(&self) -> Position {
        // SYNC: pairs with the release store in `set_feed`.
        Position(self.inner.feed.load(Ordering::Acquire))
    }

    pub(crate) fn wake_duty(&self) {
        self.inner.duty.wake();
    }

    /// Wakes the keeper if it sleeps, which then looks what there is to do.
    #[inline]
    pub fn wake_keeper(&self) {
        self.inner.keeper.wake();
    }

    /// Wakes the keeper if it sleeps, unless it keeps a pause between two writes: somebody waits for all that
    /// is appended, up to `appended`, to be durable. Called by the duty thread alone.
    #[inline]
    pub(crate) fn want_durable(&self, appended: u64) {
        self.wake_keeper_for(appended, true);
    }

    /// Wakes the keeper if `appended` is more than it sleeps for, or if whoever follows the log sleeps,
    /// whom it then wakes; beside a keeper that is awake, whoever follows what is appended. Called by the duty thread
    /// alone.
    #[inline]
    pub(crate) fn tell_keeper(&self, appended: u64) {
        self.wake_keeper_for(appended, false);
    }

    #[inline]
    fn wake_keeper_for(&self, appended: u64, is_wanted: bool) {
        if self.inner.keeper_rest.tell(appended, is_wanted, || self.is_follower_parked())
            && !self.inner.keeper.wake_if_seen_parked()
        {
            self.wake_follower_seen_parked();
        }
    }

    /// A keeper that is awake may be in a write, and looks only behind it what else was appended.
    fn wake_follower_seen_parked(&self) {
        if let Some(signal) = self.follower_of_appended() {
            signal.wake_if_seen_parked();
        }
    }

    #[inline]
    fn follower_of_appended(&self) -> Option<&LocalSignal> {
        let follower = self.inner.follower.get()?;
        (follower.follow == Follow::Appended).then_some(&*follower.signal)
    }

    /// What the keeper sleeps by, and by which it knows up to where it is waited for.
    pub(crate) fn keeper_rest(&self) -> &Rest {
        &self.inner.keeper_rest
    }

    pub(crate) fn keeper_line(&self) -> ParkingLine<'_> {
        self.inner.keeper.line()
    }

    /// Whether the keeper sleeps, or is about to.
    #[must_use]
    pub fn is_keeper_parked(&self) -> bool {
        self.inner.keeper.is_parked()
    }

    /// How often the keeper has begun to look what there is to do. What it found before the last of them, it has done.
    #[must_use]
    pub fn keeper_turns(&self) -> u64 {
        // SYNC: pairs with the release addition in `note_keeper_turn`.
        self.inner.keeper_turns.0.load(Ordering::Acquire)
    }

    pub(super) fn note_keeper_turn(&self) {
        // SYNC: who has seen it finds what the keeper has done before, and the keeper what was published before.
        self.inner.keeper_turns.0.fetch_add(1, Ordering::AcqRel);
    }

    #[cfg(test)]
    pub(super) fn keeper_rings(&self) -> u32 {
        self.inner.keeper.rings()
    }

    pub(crate) fn set_durable(&self, position: u64) {
        // SYNC: pairs with the acquire loads here and in readers: below it the disk files hold
        // what was written.
        self.inner.durable.store(position, Ordering::Release);
        EventCounter::new(&self.inner.durable_event).advance();
        self.ring_gateway();
    }

    fn ring_gateway(&self) {
        if let Some(bell) = self.inner.gateway.get() {
            bell.ring_durable();
        }
    }

    /// Rings the gateway from now on whenever `durable` has moved, or never will again, and it waits for that.
    pub(crate) fn ring_when_durable(&self, bell: Arc<Bell>) {
        self.inner.gateway.get_or_init(|| bell);
    }

    pub(crate) fn set_state(&self, state: LogState) {
        // SYNC: pairs with the acquire loads above and in readers.
        self.inner.state.store(state as u32, Ordering::Release);
        EventCounter::new(&self.inner.durable_event).advance();
    }

    /// The keeper's last act when anything goes wrong: nothing becomes durable any more.
    pub(crate) fn fail(&self, why: &str) {
        let mut failure = self.inner.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| why.to_owned());
        drop(failure);
        // Told when it is so: whoever hears of it finds it, and a reader of this that is slow holds nothing up.
        self.set_state(LogState::LogFailed);
        self.wake_duty();
        self.ring_gateway();
        self.wake_follower();
        alert!(
            "log failed at durable position {}: {why}; commands are refused from now on; repair the \
             disk and start the engine again: what was appended is still in the live window",
            self.durable()
        );
    }

    #[inline]
    pub(crate) fn attest_asked(&self) -> bool {
        // SYNC: orders nothing; an attest record says what `durable` is when it is written.
        self.inner.attest_asked.load(Ordering::Relaxed)
    }

    pub(crate) fn ask_attest(&self) {
        self.inner.attest_asked.store(true, Ordering::Relaxed);
        self.wake_duty();
    }

    /// Called when a record was written that vouches for what lies before it and ends at `end`.
    pub(crate) fn attested(&self, end: u64) {
        self.inner.attested_to.store(end, Ordering::Relaxed);
        self.inner.attest_asked.store(false, Ordering::Relaxed);
    }

    pub(crate) fn attested_to(&self) -> u64 {
        self.inner.attested_to.load(Ordering::Relaxed)
    }

    /// Tells the keeper when to have snapshots made; once and for all.
    pub(crate) fn schedule_snapshots(&self, schedule: SnapshotSchedule) {
        self.inner.snapshots.get_or_init(|| schedule);
        self.wake_keeper();
    }

    pub(crate) fn snapshot_schedule(&self) -> Option<&SnapshotSchedule> {
        self.inner.snapshots.get()
    }

    /// Has `signal` rung when there is more to read of what is appended or durable, as `follow` says, or never will
    /// be; once and for all. So a thread that follows the log may sleep. It is the keeper that rings, and the duty
    /// thread where the keeper is awake, as it is in a write.
    pub(crate) fn set_follower(&self, signal: Arc<LocalSignal>, follow: Follow) {
        self.inner.follower.get_or_init(|| Follower { signal, follow });
    }

    /// Whether there is a thread that follows what is appended, and it sleeps or is about to; see
    /// [`LocalSignal::is_parked`].
    #[inline]
    pub(crate) fn is_follower_parked(&self) -> bool {
        self.follower_of_appended().is_some_and(LocalSignal::is_parked)
    }

    /// Wakes the thread that follows what is appended, if there is one and it sleeps.
    pub(crate) fn wake_follower_of_appended(&self) {
        if let Some(signal) = self.follower_of_appended() {
            signal.wake();
        }
    }

    /// Wakes the thread that follows the log, whichever of both, if there is one and it sleeps.
    pub(crate) fn wake_follower(&self) {
        if let Some(follower) = self.inner.follower.get() {
            follower.signal.wake();
        }
    }

    pub(crate) fn stop_keeper(&self) {
        // SYNC: the doorbell's fence makes the keeper see it before it sleeps.
        self.inner.keeper_stop.store(true, Ordering::Release);
        self.wake_keeper();
    }

    pub(crate) fn keeper_should_stop(&self) -> bool {
        self.inner.keeper_stop.load(Ordering::Acquire)
    }

    pub(crate) fn keeper_is_gone(&self) -> bool {
        self.inner.keeper_gone.load(Ordering::Acquire)
    }

    /// Called by the keeper's thread at its end, whatever ended it.
    pub(crate) fn keeper_ends(&self) {
        self.inner.keeper_gone.store(true, Ordering::Release);
        EventCounter::new(&self.inner.durable_event).advance();
    }

    /// The folder of memory-backed files in which the window would be, if it is not in the data folder: what a reader
    /// of this engine's own log is opened with.
    #[must_use]
    pub fn shared_memory_root(&self) -> &Path {
        &self.inner.fixed.folders.root
    }

    /// Removes the window's files after a clean end: all they hold is on disk. What cannot be removed
    /// does no harm, because the page says that it does not count.
    pub(crate) fn remove_window(&self) {
        let folder = &self.inner.fixed.folder;
        let removed = remove_window_files(folder);
        if let Err(error) = removed {
            alert!("live window {} stays behind: {error}", folder.display());
        }
        if *folder == self.inner.fixed.folders.shared_memory {
            // Fails while other logs of this user have windows there, as it should.
            let _in_use = fs::remove_dir(&self.inner.fixed.folders.user);
        }
    }
}

/// Removes control page, window and folder, also those of a start that was broken off; nothing is left is
/// no error. A folder in which there is something else stays, a copied window above all.
pub(crate) fn remove_window_files(folder: &Path) -> io::Result<()> {
    for name in [CONTROL_FILE, UNFINISHED_CONTROL, WINDOW_FILE, ORIGIN_FILE] {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    // One that holds no window is in nobody's way, be it a link, a mount, or kept by what an operator has put there.
    let _stays = fs::remove_dir(folder);
    Ok(())
}
