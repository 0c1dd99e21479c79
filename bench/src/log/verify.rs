//! How fast `touchline log verify` goes over a log, beside reading the same files, both from the page
//! cache. Called by [`super`].

use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;
use touchline_engine::inspect::{Verdict, inspect};
use touchline_protocol::log::{SEGMENT_FOLDER, WINDOW_SEGMENT_BYTES, segment_number};

use super::flow::RecordedFlow;
use super::per_second;
use crate::interrupt;
use crate::machine::nanoseconds;

/// What one round has measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Verify {
    /// Bytes of the log's files verified per second.
    pub verify_bytes_per_second: u64,
    /// Bytes of the same files read per second.
    pub read_bytes_per_second: u64,
}

pub(super) fn measure(flow: &RecordedFlow) -> Result<Verify> {
    // The first reading brings the files into the page cache: they were written past it.
    read(flow)?;
    let (bytes, reading) = read(flow)?;
    interrupt::check()?;
    let begin = Instant::now();
    let found = inspect(flow.data.path(), &mut |_| {})?;
    let verifying = nanoseconds(begin.elapsed());
    ensure!(
        found.verdict == Verdict::Sound,
        "the log that was just written is {:?}",
        found.verdict
    );
    ensure!(found.transactions == flow.commands, "verified {} commands", found.transactions);
    Ok(Verify {
        verify_bytes_per_second: per_second(bytes, verifying),
        read_bytes_per_second: per_second(bytes, reading),
    })
}

/// Reads all segments in pieces of 2 MiB; gives their bytes and the time that it took, ns.
fn read(flow: &RecordedFlow) -> Result<(u64, u64)> {
    let paths = segments(flow)?;
    let mut buffer = vec![0; usize::try_from(WINDOW_SEGMENT_BYTES)?];
    let mut bytes = 0;
    let begin = Instant::now();
    for path in paths {
        interrupt::check()?;
        let mut file = File::open(path)?;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => bytes += count as u64,
            }
        }
    }
    Ok((bytes, nanoseconds(begin.elapsed())))
}

fn segments(flow: &RecordedFlow) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(flow.data.path().join(SEGMENT_FOLDER))? {
        let entry = entry?;
        if entry.file_name().to_str().and_then(segment_number).is_some() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}
