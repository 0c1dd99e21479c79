//! The log that is measured: the engine's own, with its live window in shared memory and its segments
//! in a temporary folder, but nobody who decides anything. Called by every measurement of a running
//! log.

use std::fs::File;
use std::iter;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use touchline_engine::config::LogSection;
use touchline_engine::log::{
    self, BeginError, Environment, Log, LogOptions, LogWriter, WindowPlace,
};
use touchline_engine::recovery::NothingToReplay;
use touchline_protocol::log::WINDOW_SEGMENT_BYTES;
use touchline_protocol::log::control::{CONTROL_BYTES, PREPARED_UNTIL_OFFSET};
use touchline_protocol::log::place::SHARED_MEMORY;
use touchline_protocol::shm::{ReadOnlyRegion, SharedReadOnly};
use touchline_protocol::sync::AtomicU64;
use touchline_protocol::units::Position;
use touchline_protocol::wait::park;

use super::storage::SwitchedStorage;
use crate::cores::Pinned;
use crate::interrupt;
use crate::temporary::Temporary;

/// What a settled log has room for at least without the keeper's doing, bytes.
pub(super) const ROOM: u64 = 2 * WINDOW_SEGMENT_BYTES;

/// How often a wait looks for an interruption.
const SLICE: Duration = Duration::from_millis(20);

/// Longest sleep of a writer without room: as the duty thread's.
const STARVED: Duration = Duration::from_millis(1);

/// Longest that anything may take to be on disk.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running log and the folders it lies in.
pub(super) struct Subject {
    // Closed before its folders go: fields are dropped in this order.
    pub(super) log: Log,
    pub(super) storage: SwitchedStorage,
    prepared: SharedReadOnly<AtomicU64>,
    _data: Temporary,
    _window: Temporary,
}

/// A record as it is handed to the log.
pub(super) struct Record<'bytes> {
    pub(super) command: &'bytes [u8],
    pub(super) events: &'bytes [u8],
}

/// How the log in the folder `data` is opened.
pub(super) fn options(data: &Path, segment_bytes: u64, write_interval: Duration) -> LogOptions {
    LogOptions {
        data: data.to_owned(),
        window_place: WindowPlace::SharedMemory,
        window_bytes: None,
        segment_bytes,
        gather: Duration::from_micros(LogSection::default().gather_us),
        write_interval,
        accept_loss: false,
    }
}

/// Sleeps until the window has room for a record, as the duty thread does.
pub(super) fn wait_for_room(writer: &mut LogWriter) -> Result<()> {
    while !writer.can_take() {
        writer.tell_keeper();
        interrupt::check()?;
        let control = writer.control();
        if let Some(why) = control.failure() {
            bail!("the log failed: {why}");
        }
        park(iter::once(control.duty_line()), STARVED, || writer.can_take());
    }
    Ok(())
}

impl Subject {
    /// A new log, whose threads leave the core to the one that writes, as an engine's do.
    pub(super) fn new(wanted: &super::LogOptions) -> Result<Self> {
        let super::LogOptions { scratch, core, segment_bytes, write_interval, .. } = wanted;
        let (data, window) = (Temporary::new(scratch)?, Temporary::new(Path::new(SHARED_MEMORY))?);
        let storage = SwitchedStorage::new();
        let environment = Environment {
            storage: std::sync::Arc::new(storage.storage()),
            shared_memory: window.path().to_owned(),
            ..Environment::default()
        };
        let off = Pinned::off(*core)?;
        let options = options(data.path(), *segment_bytes, *write_interval);
        let log = log::open_in(&environment, &options, &mut NothingToReplay, &mut |_| {})?;
        drop(off);
        let page = ReadOnlyRegion::map_file(&File::open(log.control.path())?, CONTROL_BYTES)?;
        let prepared = page.u64_at(PREPARED_UNTIL_OFFSET)?;
        Ok(Self { log, storage, prepared, _data: data, _window: window })
    }

    /// Appends one record; wakes nobody.
    #[inline]
    pub(super) fn append(&mut self, record: &Record<'_>) -> Result<Position, BeginError> {
        let writer = &mut self.log.writer;
        let outbox = writer.begin(record.command)?;
        outbox[..record.events.len()].copy_from_slice(record.events);
        Ok(writer.commit(1, record.events.len(), 1))
    }

    /// Waits until all is on disk and the window has [`ROOM`] again.
    pub(super) fn settle(&mut self) -> Result<()> {
        let begin = Instant::now();
        let control = &self.log.control;
        loop {
            self.log.writer.want_durable();
            self.log.writer.tell_keeper();
            let seen = control.durable_event().current();
            let appended = control.appended().0;
            if control.durable().0 == appended
                && self.prepared.view().load_acquire() >= appended + ROOM
            {
                return Ok(());
            }
            interrupt::check()?;
            if let Some(why) = control.failure() {
                bail!("the log failed: {why}");
            }
            if begin.elapsed() > PATIENCE {
                bail!("the log was not on disk within {PATIENCE:?}");
            }
            // Nothing tells of a window that was prepared, which comes right behind.
            let limit = if control.durable().0 == appended { Duration::ZERO } else { SLICE };
            control.durable_event().wait_changed(seen, limit);
        }
    }
}
