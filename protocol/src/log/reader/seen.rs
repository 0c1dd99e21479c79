//! Whether the log still has what was seen of it: by this reader, by one whose bookmark was kept, or by a client
//! of some engine. Called by the reader when another engine has started, and by whoever goes on where it was.

use super::{LogReader, ReadError};
use crate::{
    log::{
        FRAME_ALIGN, SEGMENT_HEADER_BYTES, WINDOW_SEGMENT_BYTES, align_frame,
        frame::{FrameHeader, FrameKind},
        frame_start,
        transaction::Bookmark,
    },
    units::{Incarnation, Position},
};
use std::ops::Range;

impl LogReader {
    /// Goes behind the transaction that `bookmark` names; false, without moving, if this log does not
    /// have it.
    ///
    /// # Errors
    /// If the log cannot be read, or begins behind it ([`ReadError::TooOld`]).
    pub fn resume(&mut self, bookmark: &Bookmark) -> Result<bool, ReadError> {
        let Some(end) = self.find(bookmark)? else { return Ok(false) };
        self.seek(Position(end));
        self.last = Some(*bookmark);
        Ok(true)
    }

    /// True if the log has the transaction that `bookmark` names, as of now: of what is read ahead without an
    /// engine nothing counts. The reader does not move.
    ///
    /// # Errors
    /// If the log cannot be read, or begins behind it ([`ReadError::TooOld`]).
    pub fn holds(&mut self, bookmark: &Bookmark) -> Result<bool, ReadError> {
        if self.live.is_none() {
            self.disk.forget();
        }
        Ok(self.find(bookmark)?.is_some())
    }

    /// True if the log has what an engine of that incarnation had written up to `position`, which is the
    /// end of a transaction
    /// ([`Transaction::end`](crate::log::transaction::Transaction::end)): no start has given up a part of it since.
    ///
    /// # Errors
    /// If the log cannot be read, or begins behind it ([`ReadError::TooOld`]).
    pub fn has(&mut self, incarnation: Incarnation, position: Position) -> Result<bool, ReadError> {
        let limit = self.limit().unwrap_or(u64::MAX);
        let start = frame_start(position.0, self.identity.segment_bytes);
        if !position.0.is_multiple_of(FRAME_ALIGN) || position.0 > limit {
            return Ok(false);
        }
        if start >= limit {
            return Ok(self.incarnation() == Some(incarnation));
        }
        match self.whole(start)? {
            // It went on there itself.
            Some(header) if header.incarnation == incarnation.0 => Ok(true),
            // A later one did, which began where the one before it had ended: that need not be this one.
            Some(header)
                if header.kind() == Some(FrameKind::Incarnation)
                    && header.incarnation > incarnation.0 =>
            {
                self.is_end_of(incarnation, position.0)
            }
            _ => Ok(false),
        }
    }

    /// Where [`LogReader::has`] is false: the end of what the log kept of that incarnation. A later engine began there,
    /// and whatever the earlier one had behind it was given up, however far the log goes by now. `position` or more if
    /// nothing was given up and the log merely begins behind `position`; 0 if the log cannot tell.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn kept(
        &mut self,
        incarnation: Incarnation,
        position: Position,
    ) -> Result<Position, ReadError> {
        let oldest = self.disk.oldest()?;
        let limit = self.watermark().0;
        if position.0 < oldest {
            // Else where that engine ended stood in front of the log's beginning; or this log's own one of that number
            // began behind `position`, and so another one of a copy had it.
            let first = self.whole(frame_start(oldest, self.identity.segment_bytes))?;
            let has_it = first.is_some_and(|first| first.incarnation == incarnation.0);
            return Ok(Position(if has_it { oldest } else { 0 }));
        }
        Ok(Position(match self.left_at(incarnation, oldest..limit)? {
            // Else where that engine ended stood in front of the log's beginning.
            Some(left) if left == frame_start(oldest, self.identity.segment_bytes) => 0,
            Some(left) if left < position.0 => left,
            // The log cannot tell: it is another log, or this is no position where a frame begins; or a copy of this
            // data folder went on by itself and wrote it, from nobody knows where on.
            _ => 0,
        }))
    }

    /// Where the first frame of a later incarnation begins. Frames are found forwards only, but one begins behind each
    /// boundary that none crosses, and no incarnation is below one in front of it.
    fn left_at(
        &mut self,
        incarnation: Incarnation,
        log: Range<u64>,
    ) -> Result<Option<u64>, ReadError> {
        let segment_bytes = self.identity.segment_bytes;
        let (mut low, mut high) =
            (log.start / WINDOW_SEGMENT_BYTES, log.end.div_ceil(WINDOW_SEGMENT_BYTES));
        while low < high {
            let middle = low.midpoint(high);
            let first = frame_start(middle * WINDOW_SEGMENT_BYTES, segment_bytes);
            let header = if first < log.end { self.whole(first)? } else { None };
            match header {
                Some(header) if header.incarnation <= incarnation.0 => low = middle + 1,
                _ => high = middle,
            }
        }
        let boundary = low * WINDOW_SEGMENT_BYTES;
        let before = boundary.saturating_sub(WINDOW_SEGMENT_BYTES).max(log.start);
        let mut at = frame_start(before, segment_bytes);
        while at < log.end {
            let Some(header) = self.whole(at)? else { return Ok(Some(at)) };
            if header.incarnation > incarnation.0 {
                return Ok(Some(at));
            }
            at = frame_start(align_frame(at + u64::from(header.length)), segment_bytes);
        }
        Ok(None)
    }

    /// True if the frame that ends at `position` is of that incarnation, or nothing is before it.
    fn is_end_of(&mut self, incarnation: Incarnation, position: u64) -> Result<bool, ReadError> {
        let is_behind_header = position % self.identity.segment_bytes == SEGMENT_HEADER_BYTES;
        let end = if is_behind_header { position - SEGMENT_HEADER_BYTES } else { position };
        let Some(last) = end.checked_sub(1) else { return Ok(true) };
        // Frames are found forwards only, and one begins behind each boundary that none crosses.
        let boundary = last - last % WINDOW_SEGMENT_BYTES;
        let mut at = frame_start(boundary, self.identity.segment_bytes);
        let mut writer = None;
        while at < end {
            let Some(header) = self.whole(at)? else { return Ok(false) };
            writer = Some(header.incarnation);
            at = align_frame(at + u64::from(header.length));
        }
        Ok(at == end && writer == Some(incarnation.0))
    }

    /// The header of the frame at `start`, if a whole frame is there.
    fn whole(&mut self, start: u64) -> Result<Option<FrameHeader>, ReadError> {
        match self.load(start) {
            Err(error) if error.is_damage() => Ok(None),
            loaded => loaded,
        }
    }

    /// The position behind the frame that `bookmark` names, if the log has it.
    fn find(&mut self, bookmark: &Bookmark) -> Result<Option<u64>, ReadError> {
        let position = bookmark.position.0;
        let limit = self.limit().unwrap_or(u64::MAX);
        let sound = position.is_multiple_of(FRAME_ALIGN)
            && frame_start(position, self.identity.segment_bytes) == position
            && position < limit;
        if !sound {
            return Ok(None);
        }
        let found = self.whole(position)?.filter(|header| {
            header.crc == bookmark.crc && header.incarnation == bookmark.incarnation.0
        });
        Ok(found.map(|header| align_frame(position + u64::from(header.length))))
    }

    /// Checks that the log still has the last transaction that was given out, and goes behind that: what
    /// the engine had written of its own behind it may be lost, and something else be there.
    pub(super) fn check_history(&mut self) -> Result<(), ReadError> {
        let Some(last) = self.last else { return Ok(()) };
        if !self.resume(&last)? {
            return Err(ReadError::HistoryLost { position: last.position.0 });
        }
        Ok(())
    }
}
