//! Walking along the frames on disk, and searching behind the place where they end. Called by recovery
//! to find where the log ends and to replay it, and by the tools that look at a log.

use std::ops::Range;

use memmap2::MmapMut;
use touchline_protocol::log::{
    BLOCK_BYTES, FRAME_ALIGN, WINDOW_SEGMENT_BYTES, align_frame,
    frame::{self, FrameError, FrameHeader, FrameKind, Succession},
    segment::SegmentError,
    transaction::Transaction,
};

use super::{
    RecoveryError,
    ahead::{self, Checked},
    segments::Segments,
};
use crate::log::{DiskError, disk::aligned_buffer};

static BLANK: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];

/// Why the frames do not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// No further segment exists.
    #[error("there is no further segment")]
    NoSegment,
    /// A segment's header is missing or wrong.
    #[error(transparent)]
    Segment(SegmentError),
    /// The frame that belongs there is missing or wrong.
    #[error(transparent)]
    Frame(FrameError),
}

/// What a walk has seen.
#[derive(Debug, Clone)]
pub(crate) struct Walked {
    /// Behind the last good frame.
    pub(crate) end: u64,
    /// Why it is the last.
    pub(crate) reason: EndReason,
    /// Incarnation of the last frame; 0 if there is none.
    pub(crate) incarnation: u32,
    /// Time of the last frame, ns since the epoch.
    pub(crate) time_ns: u64,
    /// The highest position that a frame vouches for.
    pub(crate) attested: u64,
    /// Transactions.
    pub(crate) transactions: u64,
    /// True if the last frame, paddings aside, is a closing record.
    pub(crate) closed: bool,
}

/// Reads one window segment after the other, in which every frame lies whole.
struct Pages<'segments> {
    segments: &'segments Segments,
    buffer: MmapMut,
    /// Position of the buffer's first byte.
    start: Option<u64>,
}

impl<'segments> Pages<'segments> {
    fn new(segments: &'segments Segments) -> Result<Self, DiskError> {
        Ok(Self { segments, buffer: aligned_buffer(WINDOW_SEGMENT_BYTES)?, start: None })
    }

    /// The bytes from `position` to the end of its window segment, all on disk.
    fn at(&mut self, position: u64) -> Result<&[u8], DiskError> {
        let offset = position % WINDOW_SEGMENT_BYTES;
        let start = position - offset;
        if self.start != Some(start) {
            self.start = None;
            self.segments.read(start, &mut self.buffer)?;
            self.start = Some(start);
        }
        Ok(&self.buffer[offset as usize..])
    }
}

/// Takes a transaction of a log, and the good frames that lie in memory behind it.
pub(crate) type Visit<'visit> =
    dyn FnMut(&Transaction<'_>, &[u8]) -> Result<(), RecoveryError> + 'visit;

/// Walks along all good frames of `range`, which begins with a frame or a segment and ends with one or
/// where there is no more room, and shows each transaction to `visit`.
pub(crate) fn walk(
    segments: &Segments,
    range: Range<u64>,
    visit: &mut Visit<'_>,
) -> Result<Walked, RecoveryError> {
    let mut walked = Walked {
        end: range.start,
        reason: EndReason::NoSegment,
        incarnation: 0,
        time_ns: 0,
        attested: 0,
        transactions: 0,
        closed: false,
    };
    walked.go_on(segments, range.end, visit)?;
    Ok(walked)
}

impl Walked {
    /// Walks on from where it ended, up to `to`: more may have been written since.
    pub(crate) fn go_on(
        &mut self,
        segments: &Segments,
        to: u64,
        visit: &mut Visit<'_>,
    ) -> Result<(), RecoveryError> {
        let succession = Succession::behind(self.incarnation);
        ahead::read(segments, self.end..to, succession, &mut |bytes, checked| {
            self.take(bytes, checked, visit)
        })
    }

    /// Takes in the good frames of a window segment, of which `bytes` are all.
    fn take(
        &mut self,
        bytes: &[u8],
        checked: &Checked,
        visit: &mut Visit<'_>,
    ) -> Result<(), RecoveryError> {
        let Range { start, end } = checked.frames;
        let mut frames =
            &bytes[(start % WINDOW_SEGMENT_BYTES) as usize..][..(end - start) as usize];
        self.end = start;
        while let Some((header, frame)) = next_good(&mut frames) {
            self.take_frame(&header, (frame, frames), visit)?;
        }
        if let Some(reason) = checked.end {
            self.reason = reason;
        }
        Ok(())
    }

    fn take_frame(
        &mut self,
        header: &FrameHeader,
        (frame, behind): (&[u8], &[u8]),
        visit: &mut Visit<'_>,
    ) -> Result<(), RecoveryError> {
        match header.kind() {
            Some(FrameKind::Transaction) => {
                visit(&Transaction::of(*header, frame), behind)?;
                self.transactions += 1;
                self.closed = false;
            }
            Some(FrameKind::Closing) => self.closed = true,
            Some(FrameKind::Padding) => {}
            _ => self.closed = false,
        }
        self.incarnation = header.incarnation;
        self.time_ns = header.time_ns;
        self.attested = self.attested.max(header.attested);
        self.end = align_frame(header.position + u64::from(header.length));
        Ok(())
    }
}

/// Takes the first of some good frames away; the last one ends where the bytes do.
fn next_good<'bytes>(frames: &mut &'bytes [u8]) -> Option<(FrameHeader, &'bytes [u8])> {
    if frames.is_empty() {
        return None;
    }
    let header = FrameHeader::read(frames).expect("a good frame has a whole header");
    let (frame, behind) = frames.split_at(align_frame(u64::from(header.length)) as usize);
    *frames = behind;
    Some((header, frame))
}

/// The transactions among some good frames.
pub(super) fn transactions(mut frames: &[u8]) -> impl Iterator<Item = Transaction<'_>> {
    std::iter::from_fn(move || next_good(&mut frames))
        .filter(|(header, _)| header.kind() == Some(FrameKind::Transaction))
        .map(|(header, frame)| Transaction::of(header, frame))
}

/// What lies behind the end of the frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Beyond {
    /// The highest position that a good frame there vouches for.
    pub(crate) attested: u64,
    /// The highest incarnation of a good frame there.
    pub(crate) incarnation: u32,
    /// Good frames.
    pub(crate) frames: u64,
    /// Position behind the last byte that is not zero, if there is one.
    pub(crate) used: Option<u64>,
    /// Position of the first segment with a whole header that is not its own, and what is wrong with that.
    pub(crate) misplaced: Option<(u64, SegmentError)>,
}

/// Searches everything behind `end`, where the good frames end with one of `incarnation`.
pub(crate) fn search_beyond(
    segments: &Segments,
    end: u64,
    incarnation: u32,
) -> Result<Beyond, RecoveryError> {
    let mut pages = Pages::new(segments)?;
    let mut beyond = Beyond::default();
    let mut position = end;
    while position < segments.end() {
        let bytes = pages.at(position)?;
        let block = bytes.len().min((BLOCK_BYTES - position % BLOCK_BYTES) as usize);
        // The comparison first: nearly all blocks are blank, and it is the faster look.
        if bytes[..block] != BLANK[..block]
            && let Some(last) = bytes[..block].iter().rposition(|&byte| byte != 0)
        {
            beyond.used = Some(position + last as u64 + 1);
            if beyond.misplaced.is_none() {
                beyond.misplaced = misplaced(segments, position, bytes);
            }
            for offset in (0..block).step_by(FRAME_ALIGN as usize) {
                let place = position + offset as u64;
                let header = frame::check(&bytes[offset..], place, segments.identity.salt);
                // A frame of an older incarnation is a leftover of an end that was dropped before.
                if let Ok(header) = header
                    && header.incarnation >= incarnation
                {
                    beyond.frames += 1;
                    beyond.attested = beyond.attested.max(header.attested);
                    beyond.incarnation = beyond.incarnation.max(header.incarnation);
                }
            }
        }
        position += block as u64;
    }
    Ok(beyond)
}

/// What is wrong with the header of the segment that begins at `position` with `bytes`, if one begins there whose
/// header is whole.
fn misplaced(segments: &Segments, position: u64, bytes: &[u8]) -> Option<(u64, SegmentError)> {
    let segment_bytes = segments.identity.segment_bytes;
    let number = position.is_multiple_of(segment_bytes).then_some(position / segment_bytes)?;
    let why = segments.identity.check_header(number, bytes).err()?;
    why.is_of_another().then_some((position, why))
}
