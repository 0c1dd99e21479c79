//! How many small records per second become durable, beside how many are appended when no disk is in
//! the way, and beside what the bare disk takes in bytes. Called by [`super`].

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use touchline_engine::log::BeginError;

use super::disk::BareDisk;
use super::storage::Writes;
use super::subject::{Record, Subject, wait_for_room};
use super::{SMALL_COMMAND, SMALL_EVENTS, SMALL_FRAME, per_second};
use crate::cores::Pinned;
use crate::machine::nanoseconds;
use crate::stolen::Stolen;

/// Records per pass: several times what the window holds.
const RECORDS: u64 = 2 << 20;

/// Records between two wakes of the keeper: a turn of the duty thread takes as many.
const TURN: u64 = 64;

/// What one round has measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Throughput {
    /// Records appended per second, the keeper's writes reported as done without being done.
    pub appended_per_second: u64,
    /// Records per second from the first append to all of them on disk.
    pub durable_per_second: u64,
    /// Bytes per second that the bare disk takes in direct, synchronous writes of 8 MiB into new space.
    pub disk_bytes_per_second: u64,
    /// The same over what was written before: what the disk takes from whoever need not grow.
    pub overwritten_bytes_per_second: u64,
    /// Thousandths of all cores' time that the machine below took away while records became durable.
    pub stolen_durable: u64,
    /// While the bare disk was written to.
    pub stolen_disk: u64,
}

impl Throughput {
    /// Records per second that there could be: as appended, or what the disk takes in bytes.
    #[must_use]
    pub fn attainable(&self) -> u64 {
        self.appended_per_second.min(self.disk_bytes_per_second / SMALL_FRAME)
    }
}

/// Closes the log when it is measured: its next segment is not to be made beside the bare disk's writes.
/// The writer is on `core`, if one is given, and the bare disk's is off it, where the keeper was.
pub(super) fn measure(
    mut subject: Subject,
    disk: &BareDisk,
    core: Option<usize>,
) -> Result<Throughput> {
    subject.settle()?;
    let turned = subject.storage.turn(Writes::Discarded);
    let appended_per_second = pass(&mut subject, core)?;
    drop(turned);
    let stolen = Stolen::begin();
    let durable_per_second = pass(&mut subject, core)?;
    let stolen_durable = stolen.so_far().permille();
    drop(subject);
    let _off = Pinned::off(core)?;
    let stolen = Stolen::begin();
    let (disk_bytes_per_second, overwritten_bytes_per_second) =
        disk.bytes_per_second(RECORDS * SMALL_FRAME)?;
    Ok(Throughput {
        appended_per_second,
        durable_per_second,
        disk_bytes_per_second,
        overwritten_bytes_per_second,
        stolen_durable,
        stolen_disk: stolen.so_far().permille(),
    })
}

/// Appends as fast as there is room, until all of it is durable.
fn pass(subject: &mut Subject, core: Option<usize>) -> Result<u64> {
    let _pinned = Pinned::to(core)?;
    let record = Record { command: &SMALL_COMMAND, events: &SMALL_EVENTS };
    let begin = Instant::now();
    let mut left = RECORDS;
    while left > 0 {
        match subject.append(&record) {
            Ok(_) => {
                left -= 1;
                if left.is_multiple_of(TURN) {
                    subject.log.writer.tell_keeper();
                }
            }
            Err(BeginError::Full { .. }) => wait_for_room(&mut subject.log.writer)?,
            Err(error) => return Err(error.into()),
        }
    }
    subject.settle()?;
    Ok(per_second(RECORDS, nanoseconds(begin.elapsed())))
}
