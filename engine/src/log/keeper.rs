//! The keeper: the thread that makes the log durable and recycles the live window. Started when the
//! log is opened; it alone writes to segments while the engine runs. Another thread makes them
//! ([`super::ahead`]).
//!
//! It writes what is appended, as whole blocks, one write at a time, and moves `durable` to where
//! each write ended. It never writes a byte that was not published, and never tries again a write
//! that failed: after an error nothing becomes durable any more.
//!
//! It writes at once what somebody waits for ([`Control::want_durable`]). Otherwise it gathers for a while
//! and sleeps meanwhile: each write interrupts whoever spins on the core that it needs.

use std::{
    io, iter,
    panic::{AssertUnwindSafe, catch_unwind},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use memmap2::MmapMut;
use touchline_protocol::{
    log::{BLOCK_BYTES, WINDOW_SEGMENT_BYTES, window_segment_rest},
    wait::park,
};

use crate::snapshot::{SnapshotSchedule, SnapshotStarter};

use super::{
    ahead::message,
    control::Control,
    disk::{DiskError, DiskLog, aligned_buffer},
    window::{Body, Recycled},
};

/// Of the window so much is kept zeroed ahead of the tail, at least two segments: the writer goes on for so
/// long while a write to the disk takes its time. The rest holds what was published last, for readers.
const PREPARED_SHARE: u64 = 4;
const PREPARED_MIN: u64 = 2 * WINDOW_SEGMENT_BYTES;

/// So many bytes are gathered at the most: they take the disk some hundreds of µs, and are a small part of
/// any window.
const GATHER_BYTES: u64 = 1 << 20;

/// When more than this is appended and not on disk, the disk is behind.
const BACKLOG: u64 = WINDOW_SEGMENT_BYTES;

/// When this share of a segment was written while it was behind, it is to do nothing else than to write: a
/// burst passes sooner.
const LASTING_SHARE: u64 = 4;

/// Longest sleep. Nothing depends on it: who has something for the keeper wakes it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// When the keeper does what nobody waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How long nothing is appended before an attest record is wanted.
    pub(crate) attest_after: Duration,
    /// How long what is appended may wait before it is written.
    pub(crate) gather: Duration,
}

/// The keeper's state, before and while its thread runs.
pub(crate) struct Keeper {
    body: Body,
    disk: DiskLog,
    control: Control,
    buffer: MmapMut,
    durable: u64,
    /// Zeroed bytes of the window that there are to be ahead of the tail.
    prepared_ahead: u64,
    /// How the log is kept.
    pace: Pace,
    /// When `appended` last moved, and to where.
    moved: (Instant, u64),
    /// Since when there is something to be written that nobody waits for.
    gathers_since: Option<Instant>,
    /// Since which position the disk is behind.
    behind_since: Option<u64>,
    /// Has snapshots made, once it is told to.
    snapshots: Option<SnapshotStarter>,
}

impl Keeper {
    pub(crate) fn new(
        body: Body,
        disk: DiskLog,
        control: Control,
        durable: u64,
        pace: Pace,
    ) -> Result<Self, DiskError> {
        let buffer = aligned_buffer(WINDOW_SEGMENT_BYTES)?;
        let moved = (Instant::now(), durable);
        let prepared_ahead = (body.bytes() / PREPARED_SHARE).max(PREPARED_MIN);
        let snapshots = None;
        Ok(Self {
            body,
            disk,
            control,
            buffer,
            durable,
            prepared_ahead,
            pace,
            moved,
            gathers_since: None,
            behind_since: None,
            snapshots,
        })
    }

    /// Writes all that is appended.
    pub(crate) fn flush(&mut self) -> Result<(), DiskError> {
        while self.write_some()? {}
        Ok(())
    }

    /// Starts the thread, and the one that makes segments ahead.
    pub(crate) fn start(self) -> io::Result<KeeperHandle> {
        let mut keeper = Self { disk: self.disk.make_ahead()?, ..self };
        let control = keeper.control.clone();
        let thread = thread::Builder::new().name("keeper".to_owned()).spawn(move || {
            let control = keeper.control.clone();
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
        while !self.control.keeper_should_stop() {
            let wrote = self.is_due() && self.write_some()?;
            let recycled = self.recycle();
            if recycled == Recycled::Whole {
                self.control.wake_duty();
            }
            self.tick_snapshots();
            if !wrote && recycled == Recycled::Nothing {
                self.sleep();
            }
        }
        Ok(())
    }

    fn tick_snapshots(&mut self) {
        if self.snapshots.is_none() {
            self.snapshots = self.control.snapshot_schedule().cloned().map(SnapshotStarter::new);
        }
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.tick(self.durable);
        }
    }

    /// Looks what is appended, has the follower see it, and tells whether it is to be written now.
    fn is_due(&mut self) -> bool {
        let appended = self.body.appended();
        if appended != self.moved.1 {
            self.moved = (Instant::now(), appended);
            // It is not to wait for the disk.
            self.control.wake_follower();
        }
        if appended == self.durable {
            self.gathers_since = None;
            return false;
        }
        let since = *self.gathers_since.get_or_insert(self.moved.0);
        self.control.wanted() > self.durable
            || appended - self.durable >= GATHER_BYTES
            || since.elapsed() >= self.pace.gather
    }

    /// Writes what is appended up to the next boundary of a window segment, where a frame always
    /// ends; false if there is nothing.
    fn write_some(&mut self) -> Result<bool, DiskError> {
        let appended = self.body.appended();
        if appended == self.durable {
            return Ok(false);
        }
        self.note_backlog(appended);
        let end = appended.min(self.durable + window_segment_rest(self.durable));
        if end == appended {
            self.gathers_since = None;
        }
        let start = self.durable - self.durable % BLOCK_BYTES;
        let used = (end - start) as usize;
        let blocks = used.next_multiple_of(BLOCK_BYTES as usize);
        self.body.copy(start, &mut self.buffer[..used]);
        self.buffer[used..blocks].fill(0);
        self.disk.write(start, &self.buffer[..blocks])?;
        self.durable = end;
        self.control.set_durable(end);
        self.control.wake_follower();
        Ok(true)
    }

    /// Tells the disk log whether it has been behind for long.
    fn note_backlog(&mut self, appended: u64) {
        if appended - self.durable <= BACKLOG {
            self.behind_since = None;
        } else {
            self.behind_since.get_or_insert(self.durable);
        }
        let lasting = self.control.identity().segment_bytes / LASTING_SHARE;
        let lasts = self.behind_since.is_some_and(|since| self.durable - since >= lasting);
        self.disk.set_behind(lasts);
    }

    /// Makes a part of another segment ready for the tail, if few are and the lowest one is on disk.
    fn recycle(&mut self) -> Recycled {
        let identity = *self.control.identity();
        let appended = self.body.appended();
        if self.body.prepared() - appended >= self.prepared_ahead {
            return Recycled::Nothing;
        }
        self.body.recycle(self.durable, |position, segment| {
            if position.is_multiple_of(identity.segment_bytes) {
                identity.write_header(position / identity.segment_bytes, segment);
            }
        })
    }

    /// Sleeps until there is something to write, or an attest record is due.
    fn sleep(&mut self) {
        let patience = self.snapshots.as_ref().map_or(LONGEST_SLEEP, SnapshotStarter::patience);
        let mut limit = patience.min(LONGEST_SLEEP);
        // Whatever is appended ends a sleep with nothing to do, and begins the gathering.
        let mut rests_to = self.durable;
        if let Some(since) = self.gathers_since {
            rests_to += GATHER_BYTES - 1;
            limit = limit.min(self.pace.gather.saturating_sub(since.elapsed()));
        } else if self.durable > self.control.attested_to() && !self.control.attest_asked() {
            let quiet = self.moved.0.elapsed();
            if quiet >= self.pace.attest_after {
                self.control.ask_attest();
            } else {
                limit = limit.min(self.pace.attest_after - quiet);
            }
        }
        let Self { body, control, durable, moved, .. } = self;
        control.keeper_rests_to(rests_to);
        park(iter::once(control.keeper_line()), limit, || {
            let appended = body.appended();
            control.keeper_should_stop()
                || control.wanted() > *durable
                || appended > rests_to
                || appended != moved.1 && control.is_follower_parked()
        });
        control.keeper_rests_to(u64::MAX);
    }
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

    /// Ends the thread after the write it is at. What is appended and not durable yet stays in the
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
