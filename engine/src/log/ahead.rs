//! Segments made ahead: a thread that makes the next segment of the disk log while the present one is
//! written, so that what becomes durable waits neither for its zeros nor for its syncs. Owned by the
//! [`super::disk::DiskLog`] of a running keeper.
//!
//! One segment is made ahead of the highest that was written to, a little at a time: the zeros go to the
//! same disk as the writes, which a burst of them would hold up. They keep a lead over how far the present
//! segment is written, and are otherwise spread. Where the file system reserves space that reads as zeros none are
//! written in a burst, which they would hold up; a segment that is needed before it has all of its zeros is left
//! without the rest, and in a flood each segment is left as it was reserved: see [`super::disk`].
//!
//! A failure harms nothing while the present segment has room: it is told, and tried again each second.
//! Once the keeper waits for the next one, one more try decides.

use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use super::disk::{DiskError, SegmentMaker, disk_error};
use crate::notice::alert;

/// Pause before a segment that could not be made is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Zeros written at once while there is time.
const SMALL_PART: u64 = 128 << 10;

/// Zeros written at once while there is none.
const LARGE_PART: u64 = 1 << 20;

/// Pause behind a small part.
const PAUSE: Duration = Duration::from_millis(1);

/// Bytes by which the zeros of the next segment lead the writes into the present one, at least: as much
/// as may be written during a pause.
const LEAD: u64 = 2 << 20;

/// How much there is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Load {
    /// The disk keeps up.
    Calm,
    /// It is behind what is appended: what can wait is not to be written now.
    Burst,
    /// It has been for long.
    Flood,
}

/// What keeper and maker tell each other.
#[derive(Default)]
struct State {
    /// Segments below it exist.
    next: u64,
    /// The highest segment that is to be made.
    wanted: u64,
    /// The keeper waits.
    is_needed: bool,
    /// Why the segment that the keeper waits for was not made.
    failed: Option<DiskError>,
    /// The thread is to end, or has ended.
    stop: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes of the highest segment that was written to which are written.
    written: AtomicU64,
    /// The [`Load`] as it was told last; 0, as at first, is [`Load::Calm`].
    load: AtomicU8,
    /// How often the maker has begun to make something.
    #[cfg(test)]
    turns: AtomicU64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much there is to be written.
    fn load(&self) -> Load {
        match self.load.load(Ordering::Relaxed) {
            calm if calm == Load::Calm as u8 => Load::Calm,
            burst if burst == Load::Burst as u8 => Load::Burst,
            _ => Load::Flood,
        }
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.state(), condition).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running maker, as the keeper sees it. Dropping it ends it.
pub(super) struct Ahead {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Starts the thread, which at once makes all segments up to `wanted`.
    pub(super) fn start(maker: SegmentMaker, wanted: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        *shared.state() = State { next: maker.next(), wanted, ..State::default() };
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("segments".to_owned()).spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(|| make_all(&theirs, maker)));
            let mut state = theirs.state();
            if let Err(panic) = ended {
                let error = io::Error::other(format!("panicked: {}", message(&*panic)));
                state.failed =
                    Some(disk_error("making a segment after", "a panic".as_ref())(error));
            }
            state.stop = true;
            drop(state);
            theirs.changed.notify_all();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has the segments up to `number` made. Waits for nothing.
    pub(super) fn want(&self, number: u64) {
        let mut state = self.shared.state();
        state.wanted = state.wanted.max(number);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Tells how many bytes of the highest segment that was written to are written.
    pub(super) fn keep_pace(&self, written: u64) {
        // SYNC: orders nothing; the maker only hurries by it.
        self.shared.written.store(written, Ordering::Relaxed);
    }

    /// Tells how much there is to be written.
    pub(super) fn set_load(&self, load: Load) {
        // SYNC: orders nothing; the maker only saves or puts off work by it.
        self.shared.load.store(load as u8, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn turns(&self) -> u64 {
        self.shared.turns.load(Ordering::SeqCst)
    }

    /// Waits until the segment `number` exists; gives the number behind the highest that does.
    pub(super) fn wait_for(&self, number: u64) -> Result<u64, DiskError> {
        self.want(number);
        self.shared.state().is_needed = true;
        self.shared.changed.notify_all();
        let goes_on =
            |state: &mut State| state.next <= number && state.failed.is_none() && !state.stop;
        let mut state = self.shared.wait_while(goes_on);
        state.is_needed = false;
        if state.next > number {
            return Ok(state.next);
        }
        let ended = || disk_error("making", "segments".as_ref())(io::Error::other("it has ended"));
        Err(state.failed.take().unwrap_or_else(ended))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.state().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It catches its own panics.
            let _ended = thread.join();
        }
    }
}

/// What to do next.
enum Turn {
    /// Another part of a segment; whether the keeper was waiting for it by then.
    Make {
        is_needed: bool,
    },
    End,
}

/// The thread: makes what is wanted, part by part.
fn make_all(shared: &Shared, mut maker: SegmentMaker) {
    let mut is_told = false;
    loop {
        let is_idle = |state: &mut State| state.next > state.wanted && !state.stop;
        let turn = match &*shared.wait_while(is_idle) {
            State { stop: true, .. } => Turn::End,
            State { is_needed, .. } => Turn::Make { is_needed: *is_needed },
        };
        let Turn::Make { is_needed } = turn else { return };
        #[cfg(test)]
        shared.turns.fetch_add(1, Ordering::SeqCst);
        let leads = maker.zeroed() >= shared.written.load(Ordering::Relaxed) + LEAD;
        let load = shared.load();
        let has_time = load == Load::Calm && leads;
        let made = match load {
            // Bursts have put its zeros off, and who waits for the disk does not wait for all of them now.
            _ if is_needed => maker.make_unfilled(LARGE_PART),
            Load::Flood => maker.make_unfilled(LARGE_PART),
            Load::Burst => maker.reserve().and_then(|is_reserved| {
                if is_reserved || leads {
                    pause(shared, PAUSE);
                    Ok(())
                } else {
                    maker.make_some(LARGE_PART)
                }
            }),
            Load::Calm => maker.make_some(if has_time { SMALL_PART } else { LARGE_PART }),
        };
        match made {
            Ok(()) => {
                is_told = false;
                shared.state().next = maker.next();
                shared.changed.notify_all();
                if has_time {
                    pause(shared, PAUSE);
                }
            }
            // The keeper did not need the file when this try began: told once, and tried again.
            Err(error) if !is_needed => {
                if !is_told {
                    alert!("log: {error}; the present segment has room left, trying again");
                }
                is_told = true;
                pause(shared, AGAIN);
            }
            Err(error) => {
                let mut state = shared.state();
                state.failed = Some(error);
                state.stop = true;
                return;
            }
        }
    }
}

/// So long without another part, unless the keeper needs one.
fn pause(shared: &Shared, time: Duration) {
    let goes_on = |state: &mut State| !state.is_needed && !state.stop;
    let waited = shared.changed.wait_timeout_while(shared.state(), time, goes_on);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}

/// What a panic said.
pub(super) fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
