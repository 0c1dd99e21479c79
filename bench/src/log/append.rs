//! What appending a command with its events costs, beside a bare copy of the same bytes with a
//! checksum into the same kind of memory. Called by [`super`].
//!
//! The checksum is the log's own, which goes over three parts of the bytes side by side; that of the crc32c
//! package, which at this length goes over them one after the other, is measured too, for whoever has no other,
//! and is no yardstick.
//!
//! Blocks of all three alternate: appends into the window as the keeper hands it on, copies into memory that
//! another thread has just zeroed. The keeper sleeps while a block of appends is timed; what it then writes
//! is not.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;
use touchline_protocol::log::frame::FRAME_HEADER_BYTES;
use touchline_protocol::log::{align_frame, checksum, place::SHARED_MEMORY};
use touchline_protocol::message::event::{OrderAccepted, OrderResult};

use super::memory::SharedMemory;
use super::subject::{ROOM, Record, Subject};
use crate::cores::Pinned;
use crate::interrupt;
use crate::machine::nanoseconds;

/// Bytes of the command.
const COMMAND_BYTES: usize = 128;

/// Bytes of its events: those of a LIMIT order that rests.
const EVENT_BYTES: usize = size_of::<OrderAccepted>() + size_of::<OrderResult>();

/// From one frame to the next.
const STRIDE: usize =
    align_frame((FRAME_HEADER_BYTES + COMMAND_BYTES + EVENT_BYTES) as u64) as usize;

/// The length that the log's checksum covers beside the bytes, as a frame states it.
const STATED: u32 = (FRAME_HEADER_BYTES + COMMAND_BYTES + EVENT_BYTES) as u32;

/// Records of a block: so many that it fits into what the window always has room for.
const RECORDS: usize = ROOM as usize / STRIDE * 3 / 4;

/// Blocks of each kind per round.
const BLOCKS: u32 = 40;

/// A block of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Append {
    /// Appending a thousand records, ns.
    pub append_ns_per_1000: u64,
    /// Copying a thousand with the log's checksum, ns.
    pub copy_ns_per_1000: u64,
    /// Copying a thousand with the checksum of the crc32c package, ns.
    pub package_copy_ns_per_1000: u64,
}

/// The blocks of a round, each beside its neighbours: one whose thread was taken off its core makes one ratio of many
/// wrong, and would make a sum of all of them long. On `core`, if one is given, as an engine's duty thread is.
pub(super) fn measure(subject: &mut Subject, core: Option<usize>) -> Result<Vec<Append>> {
    let mut memory = SharedMemory::new(Path::new(SHARED_MEMORY), subject.log.report.window.bytes)
        .with_context(|| format!("no memory in {SHARED_MEMORY} beside the window"))?;
    let bytes: Vec<u8> = (0..COMMAND_BYTES + EVENT_BYTES).map(|index| index as u8).collect();
    let each = |nanoseconds: u64| nanoseconds * 1000 / RECORDS as u64;
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        interrupt::check()?;
        subject.settle()?;
        let package = crc32c::crc32c;
        blocks.push(Append {
            append_ns_per_1000: each(append_block(subject, &bytes, core)?),
            copy_ns_per_1000: each(copy_block(&mut memory, &bytes, core, |copy| {
                checksum::of_frame(0, STATED, copy)
            })?),
            package_copy_ns_per_1000: each(copy_block(&mut memory, &bytes, core, package)?),
        });
    }
    Ok(blocks)
}

fn append_block(subject: &mut Subject, bytes: &[u8], core: Option<usize>) -> Result<u64> {
    let (command, events) = bytes.split_at(COMMAND_BYTES);
    let _pinned = Pinned::to(core)?;
    let begin = Instant::now();
    for _ in 0..RECORDS {
        subject.append(black_box(&Record { command, events }))?;
    }
    Ok(nanoseconds(begin.elapsed()))
}

fn copy_block(
    memory: &mut SharedMemory,
    bytes: &[u8],
    core: Option<usize>,
    checksum: impl Fn(&[u8]) -> u32,
) -> Result<u64> {
    let memory = memory.next(RECORDS * STRIDE);
    // Not before: the thread that has zeroed it would have been on that core, too.
    let _pinned = Pinned::to(core)?;
    let begin = Instant::now();
    for place in memory.chunks_exact_mut(STRIDE) {
        let (copy, behind) = place.split_at_mut(COMMAND_BYTES + EVENT_BYTES);
        copy.copy_from_slice(black_box(bytes));
        behind[..4].copy_from_slice(&checksum(copy).to_le_bytes());
    }
    Ok(nanoseconds(begin.elapsed()))
}
