//! `touchline-bench log`: what the log costs and what it can do, each beside the bare thing it is made
//! of, measured in the same round: a copy with a checksum, a held disk, a bare direct write, the core
//! alone, reading the files. [`crate::cli`] prints the report.
//!
//! Writer, keeper, recovery and inspection are the engine's own, in this process.

mod append;
mod disk;
mod flow;
mod goals;
mod memory;
mod paced;
mod replay;
mod report;
mod storage;
mod subject;
mod throughput;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use touchline_protocol::log::align_frame;
use touchline_protocol::log::frame::FRAME_HEADER_BYTES;

use crate::cores::Pinned;
use crate::machine::Machine;
use crate::scratch::Scratch;
use disk::BareDisk;
use flow::RecordedFlow;
use replay::Commands;
use subject::Subject;

pub use append::Append;
pub use paced::Paced;
pub use replay::Replay;
pub use report::{DurableRound, LogReport, Round};
pub use throughput::Throughput;
pub use verify::Verify;

/// Command and events of the small records: with the header a frame of 128 bytes.
const SMALL_COMMAND: [u8; 64] = [1; 64];
const SMALL_EVENTS: [u8; 16] = [2; 16];
const SMALL_FRAME: u64 =
    align_frame((FRAME_HEADER_BYTES + SMALL_COMMAND.len() + SMALL_EVENTS.len()) as u64);

const _: () = assert!(SMALL_FRAME == 128);

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Folder for temporary logs: on the disk that is to be measured.
    pub scratch: PathBuf,
    /// Rounds; medians over them are reported.
    pub rounds: usize,
    /// Commands of the log that is replayed and verified.
    pub commands: usize,
    /// Orders that are open in that log, about.
    pub open: u32,
    /// Core that the writer is pinned to while it appends, and the copy beside it while it copies, and that the log's
    /// other threads leave to it.
    pub core: Option<usize>,
    /// Bytes of the log's segments.
    pub segment_bytes: u64,
    /// Least time between two writes of the log, as `log.write_interval_us` has it.
    pub write_interval: Duration,
}

/// Measures.
///
/// # Errors
/// If a log cannot be made in `scratch` or in shared memory, what was written is not what is found, or
/// the run was interrupted.
pub fn run(options: &LogOptions) -> Result<LogReport> {
    // A core that cannot be had is told before anything is made.
    drop(Pinned::to(options.core)?);
    let scratch = Scratch::of(&options.scratch)?;
    let disk = BareDisk::new(&options.scratch)?;
    let skipped = disk.is_none().then(|| {
        format!(
            "what is counted in disk writes: {} lies in memory or refuses direct I/O; name a folder on \
             a disk by --scratch",
            options.scratch.display()
        )
    });
    let flow = RecordedFlow::make(options)?;
    let commands = Commands::of(&flow)?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        // First, so that the files are in the page cache when they are replayed.
        let verify = verify::measure(&flow)?;
        let replay = replay::measure(&flow, &commands)?;
        // Before anything makes segments on that disk.
        let bare_write = disk.as_ref().map(BareDisk::single_writes).transpose()?;
        let mut held = Subject::new(options)?;
        let append = append::measure(&mut held, options.core)?;
        let durable = match disk.as_ref().zip(bare_write) {
            Some((disk, bare_write)) => {
                let mut subject = Subject::new(options)?;
                let paced = paced::measure(&mut held, &mut subject, disk, options)?;
                // Its next segment would still be on its way to the disk.
                drop(held);
                let throughput = throughput::measure(subject, disk, options.core)?;
                Some(DurableRound { bare_write, paced, throughput })
            }
            None => None,
        };
        rounds.push(Round { append, durable, replay, verify });
    }
    Ok(LogReport::new(options, (Machine::here(), scratch), rounds, skipped))
}

/// `count` per second, if it took so many ns.
fn per_second(count: u64, nanoseconds: u64) -> u64 {
    let per_second = u128::from(count) * 1_000_000_000 / u128::from(nanoseconds.max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}
