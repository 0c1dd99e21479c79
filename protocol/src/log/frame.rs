//! One frame of the log: a transaction (a command and the events it caused) or a record of the
//! engine's own. Sealed by the log writer, checked by recovery and readers.
//!
//! All integers little-endian, offsets in bytes from the frame's beginning, a multiple of 64:
//!
//! ```text
//!  offset  size
//!       0     4   length      u32  bytes of the frame, a multiple of 8; 0: no frame
//!       4     4   crc         u32  crc32c of bytes 0..4 and 8..length, started from the log's salt;
//!                                  of a padding: of bytes 0..4 and 8..48
//!       8     1   kind        u8   FrameKind
//!       9     1   flags       u8   zero
//!      10     2   events      u16  number of events
//!      12     4   incarnation u32  of the engine that wrote it; never decreases
//!      16     8   position    u64  where the frame itself lies
//!      24     8   time_ns     u64  ns since the epoch; never decreases from transaction to transaction
//!      32     8   attested    u64  how far the log was on disk when this was written; at most position
//!      40     4   command     u32  bytes of the command, a multiple of 8
//!      44     4   zero
//!      48     …   the command, a message with its header
//!       …     …   the events, each a message with its header
//!  length     …   zero up to the next multiple of 64, where the next frame begins
//! ```
//!
//! No frame crosses a multiple of 2 MiB, and none stands on the header of a disk segment.

use bytemuck::{Pod, Zeroable};
use thiserror::Error;

use super::{FRAME_ALIGN, MAX_FRAME_BYTES, checksum, window_segment_rest};

/// Bytes of the header.
pub const FRAME_HEADER_BYTES: usize = size_of::<FrameHeader>();

/// Room for events that every transaction has, bytes.
pub const EVENTS_BYTES_MAX: usize = 60 << 10;

/// Largest command in a frame, bytes.
pub const MAX_COMMAND_BYTES: usize = MAX_FRAME_BYTES - FRAME_HEADER_BYTES - EVENTS_BYTES_MAX;

/// The header as it lies in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct FrameHeader {
    /// Bytes of the whole frame.
    pub length: u32,
    /// Checksum; set by [`seal`].
    pub crc: u32,
    /// [`FrameKind`].
    pub kind: u8,
    /// Zero.
    pub flags: u8,
    /// Number of events.
    pub events: u16,
    /// The writing engine's incarnation.
    pub incarnation: u32,
    /// Where the frame lies.
    pub position: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// How far the log was durable when this was written.
    pub attested: u64,
    /// Bytes of the command.
    pub command_length: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = {
    assert!(FRAME_HEADER_BYTES == 48);
    assert!(core::mem::offset_of!(FrameHeader, crc) == 4);
    assert!(core::mem::offset_of!(FrameHeader, kind) == 8);
    assert!(core::mem::offset_of!(FrameHeader, flags) == 9);
    assert!(core::mem::offset_of!(FrameHeader, events) == 10);
    assert!(core::mem::offset_of!(FrameHeader, incarnation) == 12);
    assert!(core::mem::offset_of!(FrameHeader, position) == 16);
    assert!(core::mem::offset_of!(FrameHeader, time_ns) == 24);
    assert!(core::mem::offset_of!(FrameHeader, attested) == 32);
    assert!(core::mem::offset_of!(FrameHeader, command_length) == 40);
    assert!(core::mem::offset_of!(FrameHeader, reserved) == 44);
};

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FrameKind {
    /// A command and its events.
    Transaction = 1,
    /// The rest of a window segment: its content means nothing.
    Padding = 2,
    /// The first record of each start of an engine.
    Incarnation = 3,
    /// Says how far the log is durable, when nothing else was to be said for a while.
    Attest = 4,
    /// A clean end: everything before it is durable. Its time is when the engine was last alive.
    Closing = 5,
}

impl FrameKind {
    /// The kind by its number.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Transaction),
            2 => Some(Self::Padding),
            3 => Some(Self::Incarnation),
            4 => Some(Self::Attest),
            5 => Some(Self::Closing),
            _ => None,
        }
    }
}

/// Why bytes are not the frame that belongs at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Nothing was written there.
    #[error("no frame: its length is zero")]
    Blank,
    /// Fewer bytes than the frame has.
    #[error("{have} bytes of a frame of {need}")]
    TooShort {
        /// Bytes that are there.
        have: usize,
        /// Bytes of the frame.
        need: usize,
    },
    /// No frame has this length here.
    #[error("frame length {found}, with {rest} bytes left in its segment")]
    Length {
        /// In the header.
        found: u32,
        /// Bytes to the next boundary that no frame crosses.
        rest: u64,
    },
    /// A kind that this build does not know.
    #[error("frame kind {found}")]
    Kind {
        /// In the header.
        found: u8,
    },
    /// A reserved field is set, or the parts do not fit the kind.
    #[error("a frame of kind {kind} with {command} command bytes, {events} events, flags {flags}")]
    Shape {
        /// Kind in the header.
        kind: u8,
        /// Command bytes in the header.
        command: u32,
        /// Events in the header.
        events: u16,
        /// Flags in the header.
        flags: u8,
    },
    /// The frame belongs elsewhere.
    #[error("frame of position {found} at position {expected}")]
    Position {
        /// In the header.
        found: u64,
        /// Where it lies.
        expected: u64,
    },
    /// No frame begins there, whatever the bytes are.
    #[error("no frame begins at position {position}: it is no multiple of {FRAME_ALIGN}")]
    Unaligned {
        /// Where one was looked for.
        position: u64,
    },
    /// It vouches for what comes behind it.
    #[error("frame at {position} claims that the log is durable up to {claimed}")]
    Claim {
        /// Where it lies.
        position: u64,
        /// Its claim.
        claimed: u64,
    },
    /// The bytes are not those that were written.
    #[error("frame checksum {found:08x}, computed {computed:08x}")]
    Crc {
        /// In the header.
        found: u32,
        /// Of its bytes.
        computed: u32,
    },
    /// A frame of an engine that does not write here any more, or not yet.
    #[error("frame of incarnation {found} behind one of incarnation {current}")]
    Incarnation {
        /// In the header.
        found: u32,
        /// Of the frame before it.
        current: u32,
    },
}

impl FrameHeader {
    /// The header at the beginning of `bytes`.
    ///
    /// # Errors
    /// [`FrameError::TooShort`].
    pub fn read(bytes: &[u8]) -> Result<Self, FrameError> {
        let head = bytes
            .get(..FRAME_HEADER_BYTES)
            .ok_or(FrameError::TooShort { have: bytes.len(), need: FRAME_HEADER_BYTES })?;
        Ok(bytemuck::pod_read_unaligned(head))
    }

    /// What the frame is; `None` for a number that names nothing.
    #[must_use]
    pub const fn kind(&self) -> Option<FrameKind> {
        FrameKind::from_byte(self.kind)
    }

    /// Checks everything but the checksum of a header that lies at `position`, so that its length
    /// may be trusted to be in range: 48 to [`MAX_FRAME_BYTES`], and within its window segment.
    ///
    /// # Errors
    /// See [`FrameError`].
    pub fn check_shape(&self, position: u64) -> Result<FrameKind, FrameError> {
        if self.length == 0 {
            return Err(FrameError::Blank);
        }
        let kind = self.kind().ok_or(FrameError::Kind { found: self.kind })?;
        let rest = window_segment_rest(position);
        let length = self.length as usize;
        let in_range = (FRAME_HEADER_BYTES..=MAX_FRAME_BYTES).contains(&length)
            && length.is_multiple_of(8)
            && length as u64 <= rest
            && (kind != FrameKind::Padding || length as u64 == rest);
        if !in_range {
            return Err(FrameError::Length { found: self.length, rest });
        }
        let body = length - FRAME_HEADER_BYTES;
        let command = self.command_length as usize;
        let fits = match kind {
            FrameKind::Transaction => command > 0 && command <= body && command.is_multiple_of(8),
            FrameKind::Padding => command == 0 && self.events == 0,
            FrameKind::Incarnation | FrameKind::Attest | FrameKind::Closing => {
                body == 0 && command == 0 && self.events == 0
            }
        };
        if !fits || self.flags != 0 || self.reserved != 0 {
            return Err(FrameError::Shape {
                kind: self.kind,
                command: self.command_length,
                events: self.events,
                flags: self.flags,
            });
        }
        if self.position != position {
            return Err(FrameError::Position { found: self.position, expected: position });
        }
        if self.attested > position {
            return Err(FrameError::Claim { position, claimed: self.attested });
        }
        Ok(kind)
    }

    /// All behind length and checksum, in the words that they are in the log.
    #[inline(always)]
    fn words(&self) -> [u64; 5] {
        let first = u64::from(self.kind)
            | u64::from(self.flags) << 8
            | u64::from(self.events) << 16
            | u64::from(self.incarnation) << 32;
        let last = u64::from(self.command_length) | u64::from(self.reserved) << 32;
        [first, self.position, self.time_ns, self.attested, last]
    }

    /// Bytes that the checksum covers, itself left out.
    #[inline(always)]
    fn covered(&self) -> usize {
        match self.kind() {
            Some(FrameKind::Padding) => FRAME_HEADER_BYTES,
            _ => self.length as usize,
        }
    }
}

/// Writes `header` in front of a frame whose body is in place: the checksum is computed, and the
/// length, which makes it a frame, is written last.
///
/// # Panics
/// If `frame` is shorter than `header.length` (for a padding: than the header).
#[inline(always)]
pub fn seal(header: &FrameHeader, frame: &mut [u8], salt: u32) {
    let covered = header.covered();
    // Whole words: the checksum reads them back at once, and would wait for anything smaller.
    for (place, word) in frame[8..FRAME_HEADER_BYTES].chunks_exact_mut(8).zip(header.words()) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let crc = checksum::of_frame(salt, header.length, &frame[8..covered]);
    frame[4..8].copy_from_slice(&crc.to_le_bytes());
    frame[..4].copy_from_slice(&header.length.to_le_bytes());
}

/// Checks that `bytes` begin with the frame that belongs at `position`, checksum included.
///
/// # Errors
/// See [`FrameError`].
pub fn check(bytes: &[u8], position: u64, salt: u32) -> Result<FrameHeader, FrameError> {
    let header = FrameHeader::read(bytes)?;
    header.check_shape(position)?;
    let covered = header.covered();
    let frame =
        bytes.get(..covered).ok_or(FrameError::TooShort { have: bytes.len(), need: covered })?;
    let computed = checksum::of_frame(salt, header.length, &frame[8..]);
    if header.crc == computed {
        Ok(header)
    } else {
        Err(FrameError::Crc { found: header.crc, computed })
    }
}

/// Watches over the incarnations along the log: each begins with its own record and is higher than
/// the one before it, so that a frame left over from a dropped end of the log never passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Succession {
    current: Option<u32>,
}

impl Succession {
    /// Nothing was read yet: the first frame decides.
    #[must_use]
    pub const fn new() -> Self {
        Self { current: None }
    }

    /// The last frame was of that incarnation; 0 before the first.
    #[must_use]
    pub const fn behind(incarnation: u32) -> Self {
        Self { current: if incarnation == 0 { None } else { Some(incarnation) } }
    }

    /// The incarnation of the last frame; 0 before the first.
    #[must_use]
    pub fn current(&self) -> u32 {
        self.current.unwrap_or(0)
    }

    /// Accepts the next frame, or says why it does not belong here.
    ///
    /// # Errors
    /// [`FrameError::Incarnation`].
    pub fn admit(&mut self, header: &FrameHeader) -> Result<(), FrameError> {
        let found = header.incarnation;
        let belongs = match self.current {
            None => true,
            Some(current) if header.kind() == Some(FrameKind::Incarnation) => found > current,
            Some(current) => found == current,
        };
        if !belongs {
            return Err(FrameError::Incarnation { found, current: self.current() });
        }
        self.current = Some(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
