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

/// What one round has measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Append {
    /// Appending a thousand records, ns.
    pub append_ns_per_1000: u64,
    /// Copying a thousand with the log's checksum, ns.
    pub copy_ns_per_1000: u64,
    /// Copying a thousand with the checksum of the crc32c package, ns.
    pub package_copy_ns_per_1000: u64,
}

pub(super) fn measure(subject: &mut Subject) -> Result<Append> {
    let mut memory = SharedMemory::new(Path::new(SHARED_MEMORY), subject.log.report.window.bytes)
        .with_context(|| format!("no memory in {SHARED_MEMORY} beside the window"))?;
    let bytes: Vec<u8> = (0..COMMAND_BYTES + EVENT_BYTES).map(|index| index as u8).collect();
    let (mut append, mut copy, mut package_copy) = (0, 0, 0);
    for _ in 0..BLOCKS {
        interrupt::check()?;
        subject.settle()?;
        append += append_block(subject, &bytes)?;
        copy += copy_block(&mut memory, &bytes, |copy| checksum::of_frame(0, STATED, copy));
        package_copy += copy_block(&mut memory, &bytes, crc32c::crc32c);
    }
    let records = u64::from(BLOCKS) * RECORDS as u64;
    Ok(Append {
        append_ns_per_1000: append * 1000 / records,
        copy_ns_per_1000: copy * 1000 / records,
        package_copy_ns_per_1000: package_copy * 1000 / records,
    })
}

fn append_block(subject: &mut Subject, bytes: &[u8]) -> Result<u64> {
    let (command, events) = bytes.split_at(COMMAND_BYTES);
    let begin = Instant::now();
    for _ in 0..RECORDS {
        subject.append(black_box(&Record { command, events }))?;
    }
    Ok(nanoseconds(begin.elapsed()))
}

fn copy_block(memory: &mut SharedMemory, bytes: &[u8], checksum: impl Fn(&[u8]) -> u32) -> u64 {
    let memory = memory.next(RECORDS * STRIDE);
    let begin = Instant::now();
    for place in memory.chunks_exact_mut(STRIDE) {
        let (copy, behind) = place.split_at_mut(COMMAND_BYTES + EVENT_BYTES);
        copy.copy_from_slice(black_box(bytes));
        behind[..4].copy_from_slice(&checksum(copy).to_le_bytes());
    }
    nanoseconds(begin.elapsed())
}
