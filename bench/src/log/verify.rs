//! How fast `touchline log verify` goes over a log, beside reading the same bytes, both from the page
//! cache. Called by [`super`].
//!
//! What counts are the log's bytes, from its beginning to its end: segments are made as large as they will be, and
//! ahead. Verifying also looks whether anything lies behind the end; that is in its time and not in its bytes.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;
use touchline_engine::inspect::{Inspection, Verdict, inspect};
use touchline_protocol::log::{SEGMENT_FOLDER, WINDOW_SEGMENT_BYTES, segment_number};

use super::flow::RecordedFlow;
use super::per_second;
use crate::interrupt;
use crate::machine::nanoseconds;

/// What one round has measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Verify {
    /// Bytes of the log, from its beginning to its end.
    pub bytes: u64,
    /// Of these, verified per second.
    pub verify_bytes_per_second: u64,
    /// And read per second.
    pub read_bytes_per_second: u64,
}

pub(super) fn measure(flow: &RecordedFlow) -> Result<Verify> {
    // The first pass brings the files into the page cache: they were written past it.
    let found = verified(flow)?;
    let log = found.begin.0..found.end.0;
    let bytes = log.end - log.start;
    let reading = read(flow, &log, found.identity.segment_bytes)?;
    interrupt::check()?;
    let begin = Instant::now();
    let again = verified(flow)?;
    let verifying = nanoseconds(begin.elapsed());
    ensure!(again == found, "the log that was verified as {found:?} is {again:?}");
    Ok(Verify {
        bytes,
        verify_bytes_per_second: per_second(bytes, verifying),
        read_bytes_per_second: per_second(bytes, reading),
    })
}

fn verified(flow: &RecordedFlow) -> Result<Inspection> {
    let found = inspect(flow.data.path(), &mut |_| {})?;
    ensure!(
        found.verdict == Verdict::Sound,
        "the log that was just written is {:?}",
        found.verdict
    );
    ensure!(found.transactions == flow.commands, "verified {} commands", found.transactions);
    Ok(found)
}

/// Reads the segments' bytes of these positions in pieces of 2 MiB; gives the time that it took, ns.
fn read(flow: &RecordedFlow, log: &Range<u64>, segment_bytes: u64) -> Result<u64> {
    let segments = segments(flow)?;
    let mut buffer = vec![0; usize::try_from(WINDOW_SEGMENT_BYTES)?];
    let mut bytes = 0;
    let begin = Instant::now();
    for (number, path) in segments {
        interrupt::check()?;
        let Some(part) = part_in(log, number * segment_bytes, segment_bytes) else { continue };
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(part.start))?;
        let mut file = file.take(part.end - part.start);
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => bytes += count as u64,
            }
        }
    }
    let took = nanoseconds(begin.elapsed());
    ensure!(bytes == log.end - log.start, "read {bytes} bytes of {log:?}");
    Ok(took)
}

/// The offsets of those of the log's positions that lie in the segment that begins at `first`, if there are any.
fn part_in(log: &Range<u64>, first: u64, segment_bytes: u64) -> Option<Range<u64>> {
    let offset = |position: u64| position.saturating_sub(first).min(segment_bytes);
    let part = offset(log.start)..offset(log.end);
    (!part.is_empty()).then_some(part)
}

fn segments(flow: &RecordedFlow) -> Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(flow.data.path().join(SEGMENT_FOLDER))? {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().and_then(segment_number) {
            segments.push((number, entry.path()));
        }
    }
    segments.sort();
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bytes_of_the_log_are_read() {
        let parts = [0, 100, 200, 300].map(|first| part_in(&(100..230), first, 100));
        assert_eq!(parts, [None, Some(0..100), Some(0..30), None]);
        assert_eq!(part_in(&(150..160), 100, 100), Some(50..60));
        assert_eq!(part_in(&(100..200), 200, 100), None);
    }
}
