//! The log writer: appends transactions and the engine's own records to the live window. Owned by the
//! duty thread; no allocation, no system call, no lock in what it does per command.
//!
//! ```text
//! begin   the raw command stands behind a header of length 0: not a frame, but found after a crash
//! (apply  writes the events behind it)
//! commit  the header is sealed in front of both, and one release store publishes the frame
//! abandon the header is wiped: nothing happened
//! ```

use thiserror::Error;
use touchline_protocol::{
    log::{
        FRAME_ALIGN, MAX_FRAME_BYTES, SEGMENT_HEADER_BYTES, align_frame,
        control::LogState,
        frame::{self, FRAME_HEADER_BYTES, FrameHeader, FrameKind, MAX_COMMAND_BYTES},
        window_segment_rest,
    },
    message::MessageHeader,
    units::Position,
    words,
};

use std::{
    sync::atomic::{Ordering, compiler_fence},
    time::Duration,
};

use super::{control::Control, window::Tail};

/// How often a closing writer looks whether the keeper has gone.
const CLOSING_CHECK: Duration = Duration::from_millis(100);
/// How often a writer that waits for room looks for it: the keeper hands it up just behind a move of `durable`.
const ROOM_CHECK: Duration = Duration::from_millis(1);

const MAX_FRAME: u64 = MAX_FRAME_BYTES as u64;
const HEADER: u64 = FRAME_HEADER_BYTES as u64;

/// Bytes that are brought near ahead of the next frame: more than an order that rests takes.
const NEAR_BYTES: u64 = 512;

// So that they lie in one window segment, of which there is a largest frame left or nothing.
const _: () = assert!(NEAR_BYTES <= MAX_FRAME);

// So that clearing the place of the next frame's beginning clears that of its header.
const _: () = assert!(HEADER <= FRAME_ALIGN);

/// Why nothing can be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BeginError {
    /// The disk does not keep up: the window holds nothing but what is not durable yet. To be tried
    /// again; nothing is lost.
    #[error("the live window is full at position {position}")]
    Full {
        /// Where the frame would begin.
        position: u64,
    },
    /// The log does not take anything any more; see [`Control::failure`].
    #[error("the log has failed or was closed")]
    NotRunning,
    /// No command is so long, or its length is not a multiple of eight.
    #[error("a command of {bytes} bytes")]
    CommandLength {
        /// Its length.
        bytes: usize,
    },
}

/// Why the log was not closed cleanly. What was appended stays in the live window.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CloseError {
    /// The disk failed before everything was durable.
    #[error("the log had failed: {why}")]
    Failed {
        /// The keeper's error.
        why: String,
    },
    /// The keeper was stopped first.
    #[error("the keeper had been stopped before everything was durable")]
    KeeperGone,
    /// No room for the closing record.
    #[error(transparent)]
    Begin(#[from] BeginError),
}

/// What was begun and not yet committed.
#[derive(Clone, Copy)]
struct Open {
    start: u64,
    command_length: usize,
}

/// Sizes that a frame's header tells.
#[derive(Clone, Copy)]
struct Parts {
    /// Bytes of the frame.
    length: usize,
    events: u16,
    command_length: usize,
}

impl Parts {
    /// Of a frame without command and events.
    const fn of_header(length: usize) -> Self {
        Self { length, events: 0, command_length: 0 }
    }
}

/// Appends to the log.
pub struct LogWriter {
    tail: Tail,
    control: Control,
    salt: u32,
    segment_bytes: u64,
    /// The beginning of a disk segment at which the tail stands or which it reaches next.
    boundary: u64,
    incarnation: u32,
    /// Time of the last frame.
    time_ns: u64,
    open: Option<Open>,
    /// Something was published since the keeper was last told.
    unannounced: bool,
    /// Somebody waits for what is published to be durable.
    is_wanted: bool,
    /// Events of the last committed transaction: from, to.
    committed: (u64, u64),
    /// Where the tail stood when what is ahead of it was brought near.
    near: u64,
}

impl LogWriter {
    pub(crate) fn new(tail: Tail, control: Control, time_ns: u64) -> Self {
        let identity = *control.identity();
        let incarnation = control.incarnation().0;
        let committed = (tail.start(), tail.start());
        let boundary = tail.start().next_multiple_of(identity.segment_bytes);
        Self {
            tail,
            control,
            salt: identity.salt,
            segment_bytes: identity.segment_bytes,
            boundary,
            incarnation,
            time_ns,
            open: None,
            unannounced: false,
            is_wanted: false,
            committed,
            near: 0,
        }
    }

    /// Where the next frame begins: the position of the transaction that is begun next. Everything
    /// decided so far lies below it.
    #[must_use]
    #[inline]
    pub fn position(&self) -> Position {
        let start = self.tail.start();
        Position(if start == self.boundary { start + SEGMENT_HEADER_BYTES } else { start })
    }

    /// The control page.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Time of the last frame in the log, ns since the epoch; 0 in a new log.
    #[must_use]
    pub fn last_time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Whether [`LogWriter::begin`] would find room and a log that runs.
    #[must_use]
    #[inline]
    pub fn can_take(&self) -> bool {
        self.control.is_running() && self.tail.would_reach(self.position().0 + MAX_FRAME)
    }

    /// Begins a transaction at [`LogWriter::position`]: puts the raw command into the tail,
    /// unpublished, and gives the room for its events behind it: at least
    /// [`touchline_protocol::log::frame::EVENTS_BYTES_MAX`], from a multiple of eight on. What was
    /// begun before and not committed is overwritten.
    ///
    /// # Errors
    /// See [`BeginError`]; nothing was changed.
    #[inline]
    pub fn begin(&mut self, command: &[u8]) -> Result<&mut [u8], BeginError> {
        let bytes = command.len();
        if bytes == 0 || bytes > MAX_COMMAND_BYTES || !bytes.is_multiple_of(8) {
            return Err(BeginError::CommandLength { bytes });
        }
        let start = self.reserve()?;
        let unpublished = FrameHeader {
            kind: FrameKind::Transaction as u8,
            incarnation: self.incarnation,
            position: start,
            command_length: bytes as u32,
            ..FrameHeader::default()
        };
        self.open = Some(Open { start, command_length: bytes });
        let frame = self.tail.bytes(start, start + MAX_FRAME);
        let (header, body) = frame.split_at_mut(FRAME_HEADER_BYTES);
        let (place, outbox) = body.split_at_mut(bytes);
        words::copy(command.as_chunks().0, bytemuck::cast_slice_mut(place));
        // The header behind it: whoever is killed in between leaves none in front of what was there before.
        compiler_fence(Ordering::SeqCst);
        header.copy_from_slice(bytemuck::bytes_of(&unpublished));
        Ok(outbox)
    }

    /// Publishes what was begun, with the first `event_bytes` bytes behind the command as its
    /// `events` events, and gives the position behind it. `time_ns` is the time it was decided at.
    /// Wakes nobody: see [`LogWriter::tell_keeper`].
    ///
    /// # Panics
    /// If nothing was begun, or `event_bytes` is not a multiple of eight or more than there is room.
    #[inline]
    pub fn commit(&mut self, time_ns: u64, event_bytes: usize, events: u16) -> Position {
        let Open { start, command_length } =
            self.open.take().expect("a transaction is begun before it is committed");
        let length = FRAME_HEADER_BYTES + command_length + event_bytes;
        assert!(event_bytes.is_multiple_of(8) && length <= MAX_FRAME_BYTES);
        self.committed = (start + HEADER + command_length as u64, start + length as u64);
        let parts = Parts { length, events, command_length };
        self.publish(start, FrameKind::Transaction, parts, time_ns)
    }

    /// Forgets what was begun: the command was rejected.
    #[inline]
    pub fn abandon(&mut self) {
        if let Some(Open { start, .. }) = self.open.take() {
            self.tail.bytes(start, start + HEADER).fill(0);
        }
    }

    /// The events of the last committed transaction, each with its header.
    pub fn committed_events(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.tail.published(self.committed.0, self.committed.1);
        std::iter::from_fn(move || {
            let head = rest.get(..MessageHeader::BYTES)?;
            let header: MessageHeader = bytemuck::pod_read_unaligned(head);
            let length = MessageHeader::BYTES + usize::from(header.block_length);
            let (event, behind) = rest.split_at_checked(length)?;
            rest = behind;
            Some(event)
        })
    }

    /// The event that begins `offset` bytes behind the first one of the last committed transaction;
    /// none where no event begins.
    pub fn committed_event(&self, offset: usize) -> Option<&[u8]> {
        let rest = self.tail.published(self.committed.0, self.committed.1).get(offset..)?;
        let head = rest.get(..MessageHeader::BYTES)?;
        let header: MessageHeader = bytemuck::pod_read_unaligned(head);
        rest.get(..MessageHeader::BYTES + usize::from(header.block_length))
    }

    /// Somebody waits for all that is published by the next [`LogWriter::tell_keeper`] to be durable.
    #[inline]
    pub fn want_durable(&mut self) {
        self.is_wanted = true;
    }

    /// Tells the keeper what was published since the last call. To be called once per turn, after the
    /// replies were published: it costs a fence, and a system call if the keeper sleeps and is to wake:
    /// because somebody waits for it to be durable, or it slept with nothing to do, or much has come
    /// together. Without it nothing is lost, but it becomes durable up to a second late.
    #[inline]
    pub fn tell_keeper(&mut self) {
        let is_new = std::mem::take(&mut self.unannounced);
        let appended = self.tail.start();
        if std::mem::take(&mut self.is_wanted) {
            if is_new || self.control.durable().0 < appended {
                self.control.want_durable(appended);
            }
        } else if is_new {
            self.control.tell_keeper(appended);
        }
    }

    /// Brings the lines that the next frame is written to here from memory, where another lap has left them. For
    /// who waits for a command: else the reply to it stands in line behind the stores to them. Brings none twice.
    #[inline]
    pub fn bring_near(&mut self) {
        let start = self.tail.start();
        if self.near != start && self.tail.bring_near(NEAR_BYTES) {
            self.near = start;
        }
    }

    /// Whether the keeper wants an attest record.
    #[must_use]
    #[inline]
    pub fn attest_asked(&self) -> bool {
        self.control.attest_asked()
    }

    /// Appends an attest record if the keeper wants one. To be called once per turn; it also counts
    /// the header of a new disk segment as appended, as soon as the keeper has prepared it.
    #[inline]
    pub fn attest_if_asked(&mut self, time_ns: u64) {
        if self.attest_asked() {
            // Without room there is traffic, and an attest record is for the quiet.
            let _full = self.append_record(FrameKind::Attest, time_ns);
        }
        self.pass_segment_header();
    }

    /// Ends the log: waits until everything is durable, appends the closing record, waits for that
    /// too, and removes the live window. The keeper must still run, and nothing may be begun.
    ///
    /// # Errors
    /// See [`CloseError`]: then the next start recovers as after a crash.
    pub fn close(mut self) -> Result<Position, CloseError> {
        self.abandon();
        self.wait_for_room()?;
        // Nothing else will tell how long the engine ran on behind its last transaction: the page goes.
        let time_ns = self.time_ns.max(self.control.heartbeat());
        let end = self.append_record(FrameKind::Closing, time_ns)?;
        self.wait_durable()?;
        self.control.set_state(LogState::Stopped);
        self.control.remove_window();
        Ok(end)
    }

    /// Appends one of the engine's own records, which consist of a header alone.
    pub(crate) fn append_record(
        &mut self,
        kind: FrameKind,
        time_ns: u64,
    ) -> Result<Position, BeginError> {
        let start = self.reserve()?;
        let end = self.publish(start, kind, Parts::of_header(FRAME_HEADER_BYTES), time_ns);
        self.control.attested(end.0);
        Ok(end)
    }

    /// Room for the largest frame; gives where it begins.
    #[inline]
    fn reserve(&mut self) -> Result<u64, BeginError> {
        if !self.control.is_running() {
            return Err(BeginError::NotRunning);
        }
        let position = self.position().0;
        if !self.tail.reaches(position + MAX_FRAME) {
            return Err(BeginError::Full { position });
        }
        self.pass_segment_header();
        Ok(position)
    }

    /// Seals the frame at `start` and publishes it, with a padding behind it where the window segment
    /// has no room for another frame; gives the position behind the frame.
    #[inline]
    fn publish(&mut self, start: u64, kind: FrameKind, parts: Parts, time_ns: u64) -> Position {
        let next = align_frame(start + parts.length as u64);
        self.time_ns = time_ns;
        self.unannounced = true;
        let rest = window_segment_rest(start) - (next - start);
        let header = self.header(start, kind, parts);
        let (frame, behind) =
            self.tail.bytes(start, next + rest.min(FRAME_ALIGN)).split_at_mut(parts.length);
        frame::seal(&header, frame, self.salt);
        // Zeros up to the next frame, and where its header will be, which must not look like begun or like a
        // frame whatever an abandoned transaction has left there.
        clear(behind);
        self.tail.publish(next);
        if rest > 0 && rest < MAX_FRAME {
            self.pad(next, rest);
        }
        self.pass_segment_header();
        Position(next)
    }

    /// Publishes a padding of `rest` bytes at `start`.
    #[cold]
    fn pad(&mut self, start: u64, rest: u64) {
        let header = self.header(start, FrameKind::Padding, Parts::of_header(rest as usize));
        frame::seal(&header, self.tail.bytes(start, start + rest), self.salt);
        self.tail.publish(start + rest);
    }

    /// Always inlined: the parts stay in registers, and are not read back from memory in other sizes
    /// than they were stored in, which costs as much as the checksum of a cache line.
    #[inline(always)]
    fn header(&self, start: u64, kind: FrameKind, parts: Parts) -> FrameHeader {
        FrameHeader {
            length: parts.length as u32,
            kind: kind as u8,
            events: parts.events,
            command_length: parts.command_length as u32,
            incarnation: self.incarnation,
            position: start,
            time_ns: self.time_ns,
            attested: self.control.durable().0,
            ..FrameHeader::default()
        }
    }

    /// At the beginning of a disk segment: its header, which the keeper has prepared, is published
    /// like a frame.
    #[inline]
    fn pass_segment_header(&mut self) {
        if self.tail.start() == self.boundary {
            self.publish_segment_header();
        }
    }

    #[cold]
    fn publish_segment_header(&mut self) {
        let behind = self.boundary + SEGMENT_HEADER_BYTES;
        if self.tail.reaches(behind) {
            self.tail.publish(behind);
            self.boundary += self.segment_bytes;
            self.unannounced = true;
        }
    }

    pub(crate) fn wait_durable(&mut self) -> Result<(), CloseError> {
        self.want_durable();
        self.tell_keeper();
        let end = self.tail.start();
        self.wait_until(CLOSING_CHECK, |writer| writer.control.durable().0 == end)
    }

    /// Waits until [`LogWriter::begin`] finds room, for all that the disk needs: for who has nothing else to do.
    ///
    /// # Errors
    /// If the disk failed.
    pub(crate) fn wait_for_room(&mut self) -> Result<(), CloseError> {
        self.wait_durable()?;
        self.wait_until(ROOM_CHECK, Self::can_take)
    }

    /// Waits until it is so; looks whenever `durable` moves, and as often as this.
    fn wait_until(&self, often: Duration, is_so: impl Fn(&Self) -> bool) -> Result<(), CloseError> {
        let control = &self.control;
        loop {
            let seen = control.durable_event().current();
            // In this order: what the keeper did before it ended counts.
            let gone = control.keeper_is_gone();
            if is_so(self) {
                return Ok(());
            }
            if let Some(why) = control.failure() {
                return Err(CloseError::Failed { why });
            }
            if gone {
                return Err(CloseError::KeeperGone);
            }
            control.durable_event().wait_changed(seen, often);
        }
    }
}

/// Zeros, in the place of one to two frame alignments by stores of a fixed size, which may overlap: what is good for
/// every size is a call.
#[inline]
fn clear(bytes: &mut [u8]) {
    const HALF: usize = FRAME_ALIGN as usize;
    if !(HALF..=2 * HALF).contains(&bytes.len()) {
        return bytes.fill(0);
    }
    if let Some(first) = bytes.first_chunk_mut::<HALF>() {
        *first = [0; HALF];
    }
    if let Some(last) = bytes.last_chunk_mut::<HALF>() {
        *last = [0; HALF];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_cleared_whatever_its_size() {
        for length in 0..=3 * FRAME_ALIGN as usize {
            let mut bytes = vec![7; length];
            clear(&mut bytes);
            assert_eq!(bytes, vec![0; length]);
        }
    }
}
