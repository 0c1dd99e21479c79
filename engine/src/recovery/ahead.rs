//! The disk log read and checked ahead of whoever uses it: one window segment after the other, every
//! frame's place, shape, checksum and incarnation judged before it is handed on. Called by
//! [`super::chain::walk`], and so by every start and every tool that reads a whole log.
//!
//! The first window segment is read where it is used. If the log goes on behind it, a thread reads and
//! checks the others while those before them are applied. It reads nothing that good frames do not lead
//! to, and hands on what it finds in the log's order, errors too.

use std::{
    ops::Range,
    path::Path,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use memmap2::MmapMut;
use touchline_protocol::log::{
    SEGMENT_HEADER_BYTES, WINDOW_SEGMENT_BYTES, align_frame,
    frame::{self, Succession},
};

use super::{RecoveryError, chain::EndReason, segments::Segments};
use crate::log::{
    DiskError,
    disk::{aligned_buffer, disk_error},
};

/// Window segments in memory: one is used, one waits, one is read.
const BUFFERS: usize = 3;

/// What is good of a window segment.
#[derive(Debug)]
pub(super) struct Checked {
    /// From the first good frame to behind the last one; empty without any.
    pub(super) frames: Range<u64>,
    /// Why the frames do not go on there, if they do not.
    pub(super) end: Option<EndReason>,
}

/// Takes a window segment's bytes, and what is good of it.
pub(super) type Visit<'visit> = dyn FnMut(&[u8], &Checked) -> Result<(), RecoveryError> + 'visit;

/// Reads the frames of `range`, which begins with a frame or a segment and ends with one or where there
/// is no more room, and shows each window segment to `visit`; the last one says why it is. `succession` has
/// seen the frames before.
pub(super) fn read(
    segments: &Segments,
    range: Range<u64>,
    succession: Succession,
    visit: &mut Visit<'_>,
) -> Result<(), RecoveryError> {
    if range.is_empty() {
        return Ok(());
    }
    let mut reading = Reading { segments, range, succession };
    let mut buffer = aligned_buffer(WINDOW_SEGMENT_BYTES)?;
    let first = reading.read_next(&mut buffer)?;
    visit(&buffer, &first)?;
    if first.end.is_none() { read_rest(reading, buffer, visit) } else { Ok(()) }
}

/// A window segment that was read, or why it could not be.
type Filled = (MmapMut, Result<Checked, DiskError>);

/// Goes on with `reading` in a thread, until it ends or `visit` does not go on.
fn read_rest(
    reading: Reading<'_>,
    buffer: MmapMut,
    visit: &mut Visit<'_>,
) -> Result<(), RecoveryError> {
    let (hand_on, filled) = sync_channel::<Filled>(BUFFERS);
    let (give_back, empty) = sync_channel(BUFFERS);
    // There is room for all of them, and the thread, which takes them, has not begun.
    let _taken = give_back.send(buffer);
    for _ in 1..BUFFERS {
        let _taken = give_back.send(aligned_buffer(WINDOW_SEGMENT_BYTES)?);
    }
    // What this closure owns it drops at its end: that ends the thread, which the scope waits for.
    thread::scope(move |scope| {
        thread::Builder::new()
            .name("read-ahead".to_owned())
            .spawn_scoped(scope, move || reading.run(&empty, &hand_on))
            .map_err(disk_error("starting a thread to read", Path::new("the log")))?;
        for (buffer, checked) in filled {
            visit(&buffer, &checked?)?;
            // A thread that has ended wants none.
            let _taken = give_back.send(buffer);
        }
        Ok(())
    })
}

/// How far the frames are read.
struct Reading<'segments> {
    segments: &'segments Segments,
    /// What is left to be read.
    range: Range<u64>,
    succession: Succession,
}

impl Reading<'_> {
    /// The thread: fills what is empty, until the frames end or nobody wants more.
    fn run(mut self, empty: &Receiver<MmapMut>, hand_on: &SyncSender<Filled>) {
        while let Ok(mut buffer) = empty.recv() {
            let checked = self.read_next(&mut buffer);
            let goes_on = matches!(checked, Ok(Checked { end: None, .. }));
            if hand_on.send((buffer, checked)).is_err() || !goes_on {
                return;
            }
        }
    }

    /// Reads the window segment in which the range begins into `buffer`, and checks its frames.
    fn read_next(&mut self, buffer: &mut [u8]) -> Result<Checked, DiskError> {
        let base = self.range.start - self.range.start % WINDOW_SEGMENT_BYTES;
        self.segments.read(base, buffer)?;
        let from = self.range.start;
        let next = base + WINDOW_SEGMENT_BYTES;
        let identity = &self.segments.identity;
        let mut frames = from..from;
        if from.is_multiple_of(identity.segment_bytes) {
            if let Err(error) = identity.check_header(from / identity.segment_bytes, buffer) {
                return Ok(Checked { frames, end: Some(EndReason::Segment(error)) });
            }
            frames = from + SEGMENT_HEADER_BYTES..from + SEGMENT_HEADER_BYTES;
        }
        let to = next.min(self.range.end);
        while frames.end < to {
            let bytes = &buffer[(frames.end - base) as usize..];
            let checked = frame::check(bytes, frames.end, identity.salt)
                .and_then(|header| self.succession.admit(&header).map(|()| header));
            match checked {
                Ok(header) => frames.end = align_frame(frames.end + u64::from(header.length)),
                Err(error) => {
                    return Ok(Checked { frames, end: Some(EndReason::Frame(error)) });
                }
            }
        }
        self.range.start = frames.end;
        let end = (frames.end >= self.range.end).then_some(EndReason::NoSegment);
        Ok(Checked { frames, end })
    }
}
