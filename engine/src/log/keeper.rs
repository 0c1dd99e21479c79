//! The keeper: the thread that makes the log durable and recycles the live window. Started when the
//! log is opened; it alone writes to segments while the engine runs. Another thread makes them
//! ([`super::ahead`]).
//!
//! It writes what is appended, as whole blocks, one write at a time, and moves `durable` to where
//! each write ended. It never writes a byte that was not published, and never tries again a write
//! that failed: after an error nothing becomes durable any more.
//!
//! It writes at once what somebody waits for ([`Control::want_durable`]), but for the time between two writes
//! that it may be told to keep. Otherwise it gathers for a while and sleeps meanwhile: each write interrupts
//! whoever spins on the core that it needs. The further the disk is behind, the larger are the writes: what one
//! costs beside its bytes, above all the file system's note of it in its journal, is then paid less often.
//!
//! The disk takes full blocks as they lie in the window: nobody writes there any more before the keeper gives
//! them back, which it does when they are durable. Only the block in which the log ends is copied.

mod progress;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use memmap2::MmapMut;
use touchline_protocol::{log::BLOCK_BYTES, wait::Sleep};

use crate::snapshot::SnapshotSchedule;

use super::{
    Now,
    ahead::message,
    control::Control,
    disk::{DiskError, DiskLog, aligned_buffer},
    window::Body,
};
use progress::Progress;

/// So many bytes are gathered at the most: they take the disk some hundreds of µs, and are a small part of
/// any window.
const GATHER_BYTES: u64 = 1 << 20;

/// Longest sleep. Nothing depends on it: who has something for the keeper wakes it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// When the keeper does what nobody waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How long nothing is appended before an attest record is wanted.
    pub(crate) attest_after: Duration,
    /// How long what is appended may wait before it is written.
    pub(crate) gather: Duration,
    /// Least time from the beginning of a write of all there is to the next, unless much has come together.
    pub(crate) write_interval: Duration,
}

/// The keeper's state, before and while its thread runs.
pub(crate) struct Keeper {
    progress: Progress,
    disk: DiskLog,
    /// The block that is written last, as long as the log writer has not filled it.
    last: MmapMut,
    /// How the log is kept.
    pace: Pace,
    now: Now,
    /// When `appended` last moved, and to where.
    moved: (Instant, u64),
    /// Since when there is something to be written that nobody waits for.
    gathers_since: Option<Instant>,
    /// When the last write of [`Keeper::write_some`] began, if it took all there was.
    wrote: Option<Instant>,
}

impl Keeper {
    pub(crate) fn new(
        body: Body,
        disk: DiskLog,
        control: Control,
        durable: u64,
        (pace, now): (Pace, Now),
    ) -> Result<Self, DiskError> {
        Ok(Self {
            progress: Progress::new(body, control, durable),
            disk,
            last: aligned_buffer(BLOCK_BYTES)?,
            pace,
            moved: (now(), durable),
            now,
            gathers_since: None,
            wrote: None,
        })
    }

    /// Writes all that is appended.
    pub(crate) fn flush(&mut self) -> Result<(), DiskError> {
        while self.progress.look() != self.progress.durable() {
            self.write_some()?;
        }
        Ok(())
    }

    /// Starts the thread, and the one that makes segments ahead.
    pub(crate) fn start(self) -> io::Result<KeeperHandle> {
        let mut keeper = Self { disk: self.disk.make_ahead()?, ..self };
        let control = keeper.progress.control.clone();
        let thread = thread::Builder::new().name("keeper".to_owned()).spawn(move || {
            let control = keeper.progress.control.clone();
            match catch_unwind(AssertUnwindSafe(|| keeper.run())) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => control.fail(&error.to_string()),
                Err(panic) => control.fail(&format!("the keeper panicked: {}", message(&*panic))),
            }
            // Only now: what ends with it, a process and a thread, may wait for the disk that failed.
            drop(keeper);
            control.keeper_ends();
        })?;
        Ok(KeeperHandle { control, thread: Some(thread) })
    }

    fn run(&mut self) -> Result<(), DiskError> {
        while !self.progress.control.keeper_should_stop() {
            self.progress.control.note_keeper_turn();
            let is_due = self.is_due();
            if is_due {
                self.write_some()?;
            }
            self.progress.follow_up();
            if !is_due {
                self.sleep();
            }
        }
        Ok(())
    }

    /// Looks what is appended, has the follower see it, and tells whether it is to be written now: not if nobody
    /// waits for what there is, or a write was just made.
    fn is_due(&mut self) -> bool {
        let appended = self.progress.look();
        if appended != self.moved.1 {
            self.moved = ((self.now)(), appended);
            // It is not to wait for the disk.
            self.progress.control.wake_follower_of_appended();
        }
        self.disk.set_load(self.progress.load(appended));
        let behind = appended - self.progress.durable();
        if behind == 0 {
            self.gathers_since = None;
            return false;
        }
        let since = *self.gathers_since.get_or_insert(self.moved.0);
        let is_wanted = self.progress.is_wanted();
        let is_awaited = is_wanted || self.since(since) >= self.pace.gather;
        behind >= GATHER_BYTES || is_awaited && self.pause().is_zero()
    }

    /// How long ago that was.
    fn since(&self, when: Instant) -> Duration {
        (self.now)().duration_since(when)
    }

    /// How long it is until the next write may begin.
    fn pause(&self) -> Duration {
        let since = self.wrote.map_or(Duration::MAX, |wrote| self.since(wrote));
        self.pace.write_interval.saturating_sub(since)
    }

    /// Writes what is appended, or as much of it as one write takes, and waits for it.
    fn write_some(&mut self) -> Result<(), DiskError> {
        self.wrote = Some((self.now)());
        let Self { progress, disk, last, .. } = self;
        let appended = progress.look();
        let piece = progress.next_piece(appended);
        disk.write(piece.start, &progress.blocks(piece, last))?;
        progress.reach(piece.end);
        if piece.end == appended {
            self.gathers_since = None;
        } else {
            // The rest behind a boundary was due with it.
            self.wrote = None;
        }
        Ok(())
    }

    /// Sleeps until there is something to write, or an attest record is due.
    fn sleep(&mut self) {
        let mut limit =
            self.progress.patience().map_or(LONGEST_SLEEP, |limit| limit.min(LONGEST_SLEEP));
        // Whatever is appended ends a sleep with nothing to do, and begins the gathering.
        let durable = self.progress.durable();
        let control = &self.progress.control;
        let mut rests_to = durable;
        let pause = self.pause();
        if let Some(since) = self.gathers_since {
            rests_to += GATHER_BYTES - 1;
            limit = limit.min(self.pace.gather.saturating_sub(self.since(since)).max(pause));
        } else if durable > control.attested_to() && !control.attest_asked() {
            let quiet = self.since(self.moved.0);
            if quiet >= self.pace.attest_after {
                control.ask_attest();
            } else {
                limit = limit.min(self.pace.attest_after - quiet);
            }
        }
        // Then who waits need not wake it: it looks when the pause is over.
        let pauses = self.progress.is_wanted() && !pause.is_zero();
        if pauses {
            limit = limit.min(pause);
        }
        let sleep = Sleep { done: durable, rests_to, pauses, limit };
        let has_schedule = self.progress.has_schedule();
        let Self { progress: Progress { body, control, .. }, moved, .. } = self;
        control.keeper_rest().sleep(
            control.keeper_line(),
            &sleep,
            || body.appended(),
            |appended| is_to_stay_awake(control, has_schedule, appended != moved.1),
        );
    }
}

/// Whether a keeper that has looked at everything has something to do that it is rung for, whatever it sleeps through:
/// it knows when to have snapshots made, or not yet, and more `is_appended` than it has told who follows the log.
fn is_to_stay_awake(control: &Control, has_schedule: bool, is_appended: bool) -> bool {
    control.keeper_should_stop()
        || !has_schedule && control.snapshot_schedule().is_some()
        || is_appended && control.is_follower_parked()
}

/// The running keeper.
pub struct KeeperHandle {
    control: Control,
    thread: Option<JoinHandle<()>>,
}

impl KeeperHandle {
    /// Has snapshots made from now on, by child processes that end with the keeper. Only the first call
    /// counts.
    pub fn schedule_snapshots(&self, schedule: SnapshotSchedule) {
        self.control.schedule_snapshots(schedule);
    }

    /// Ends the thread after the writes that are under way. What is appended and not durable yet stays in the
    /// live window: close the [`super::LogWriter`] first. Dropping the handle does the same.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for KeeperHandle {
    fn drop(&mut self) {
        self.control.stop_keeper();
        if let Some(thread) = self.thread.take() {
            // The thread catches its own panics and has reported them.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
