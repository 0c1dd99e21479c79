//! Messages over a byte stream (TCP, or a Unix socket). A frame is a message as it stands: the header's
//! block length says where it ends. Used by the engine's gateway and by the client library.
//!
//! The bytes are hostile: what cannot be the beginning of a message is a [`FrameFault`] as soon as that
//! is known, and a buffer holds no more than it was made for.

use crate::message::{MessageHeader, SCHEMA_ID};
use crate::ring::MAX_MESSAGE_BYTES;

/// Bytes that no sender of messages sends. The stream is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// The header names another schema.
    #[error("schema {found:#06x}, expected {SCHEMA_ID:#06x}")]
    Schema {
        /// What stands there.
        found: u16,
    },
    /// The header states a length in bytes (its own included) that is no multiple of 8, or too long.
    #[error("message of {length} bytes: a multiple of 8 up to {MAX_MESSAGE_BYTES} is possible")]
    Length {
        /// Stated length in bytes, header included.
        length: usize,
    },
}

/// Length of the frame that `bytes` begin with, in bytes, a multiple of 8; `None` if more of them are
/// needed to know it, or they are not all there.
///
/// # Errors
/// If it cannot be a frame.
#[inline]
pub fn frame_length(bytes: &[u8]) -> Result<Option<usize>, FrameFault> {
    let Some(head) = bytes.first_chunk::<{ MessageHeader::BYTES }>() else { return Ok(None) };
    let header: MessageHeader = bytemuck::pod_read_unaligned(head);
    if header.schema_id != SCHEMA_ID {
        return Err(FrameFault::Schema { found: header.schema_id });
    }
    let length = MessageHeader::BYTES + usize::from(header.block_length);
    if !length.is_multiple_of(8) || length > MAX_MESSAGE_BYTES {
        return Err(FrameFault::Length { length });
    }
    Ok((bytes.len() >= length).then_some(length))
}

/// Bytes that came and are not taken yet, in the pieces in which they came. Frames are given out aligned
/// to 8 bytes.
#[derive(Debug)]
pub struct FrameBuffer {
    words: Box<[u64]>,
    /// Where the next frame begins: a multiple of 8.
    start: usize,
    end: usize,
}

impl FrameBuffer {
    /// Room for so many bytes, at least for one message.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let words = bytes.max(MAX_MESSAGE_BYTES).div_ceil(8);
        Self { words: vec![0; words].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Bytes that are there.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.end - self.start
    }

    /// True when there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Bytes that there is room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.words.len() * 8 - self.len()
    }

    /// Room behind what is there, to be read into and then [`filled`](Self::filled). Empty only when
    /// there is none at all.
    pub fn space(&mut self) -> &mut [u8] {
        self.make_room();
        &mut bytemuck::cast_slice_mut(&mut self.words)[self.end..]
    }

    /// So many bytes of [`space`](Self::space) were read.
    ///
    /// # Panics
    /// If there was not so much room.
    pub fn filled(&mut self, bytes: usize) {
        assert!(self.end + bytes <= self.words.len() * 8, "{bytes} bytes were no room for");
        self.end += bytes;
    }

    /// Puts as many of the bytes behind what is there as there is room for; gives their number.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let space = self.space();
        let count = bytes.len().min(space.len());
        space[..count].copy_from_slice(&bytes[..count]);
        self.end += count;
        count
    }

    /// The next whole frame, which stays until it is [`taken`](Self::take).
    ///
    /// # Errors
    /// If what comes next cannot be a frame.
    #[inline]
    pub fn peek(&self) -> Result<Option<&[u8]>, FrameFault> {
        let bytes = &bytemuck::cast_slice::<u64, u8>(&self.words)[self.start..self.end];
        Ok(frame_length(bytes)?.map(|length| &bytes[..length]))
    }

    /// Drops the frame that [`peek`](Self::peek) showed, of so many bytes.
    ///
    /// # Panics
    /// If so many bytes are not there.
    #[inline]
    pub fn take(&mut self, length: usize) {
        assert!(length <= self.len(), "{length} bytes are not there");
        self.start += length;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    fn make_room(&mut self) {
        if self.start == 0 || self.end < self.words.len() * 8 {
            return;
        }
        let (start, end) = (self.start, self.end);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        bytes.copy_within(start..end, 0);
        (self.start, self.end) = (0, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::command::{CancelOrder, NewOrder};
    use crate::message::stream::Heartbeat;
    use proptest::prelude::*;

    fn messages() -> Vec<Vec<u8>> {
        vec![
            bytemuck::bytes_of(&NewOrder { price: 7, ..Default::default() }).to_vec(),
            bytemuck::bytes_of(&CancelOrder::default()).to_vec(),
            bytemuck::bytes_of(&Heartbeat::default()).to_vec(),
        ]
    }

    /// Reads all there is, checking that frames are aligned.
    fn frames(buffer: &mut FrameBuffer) -> Result<Vec<Vec<u8>>, FrameFault> {
        let mut found = Vec::new();
        while let Some(frame) = buffer.peek()? {
            assert!(frame.as_ptr().addr().is_multiple_of(8));
            let frame = frame.to_vec();
            buffer.take(frame.len());
            found.push(frame);
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_whatever_the_pieces(
            picks in prop::collection::vec(0usize..3, 0..200),
            pieces in prop::collection::vec(1usize..6000, 1..50),
            room in 1usize..10_000,
        ) {
            let sent: Vec<Vec<u8>> = picks.iter().map(|&pick| messages()[pick].clone()).collect();
            let bytes = sent.concat();
            let (mut buffer, mut found, mut at) = (FrameBuffer::new(room), Vec::new(), 0);
            for piece in pieces.iter().cycle() {
                if at == bytes.len() {
                    break;
                }
                let piece = &bytes[at..bytes.len().min(at + piece)];
                at += buffer.push(piece);
                found.extend(frames(&mut buffer).unwrap());
            }
            prop_assert_eq!(found, sent);
            prop_assert!(buffer.is_empty());
        }

        #[test]
        fn any_bytes_are_frames_or_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..5000),
            has_schema in any::<bool>()) {
            let mut bytes = bytes;
            if has_schema && bytes.len() >= 8 {
                bytes[4..6].copy_from_slice(&SCHEMA_ID.to_le_bytes());
            }
            let mut buffer = FrameBuffer::new(0);
            let taken = buffer.push(&bytes);
            if let Ok(found) = frames(&mut buffer) {
                let length: usize = found.iter().map(Vec::len).sum();
                prop_assert_eq!(length + buffer.len(), taken);
            }
        }
    }

    #[test]
    fn what_cannot_be_a_frame_is_known_by_its_header() {
        let header = |length: u16, schema: u16| {
            [length, 1, schema, 1].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
        };
        assert_eq!(frame_length(&header(57, SCHEMA_ID)), Err(FrameFault::Length { length: 65 }));
        assert_eq!(
            frame_length(&header(4096, SCHEMA_ID)),
            Err(FrameFault::Length { length: 4104 })
        );
        assert_eq!(frame_length(&header(56, 1)), Err(FrameFault::Schema { found: 1 }));
        assert_eq!(frame_length(&header(4088, SCHEMA_ID)), Ok(None));
        assert_eq!(frame_length(&header(0, SCHEMA_ID)), Ok(Some(8)));
        assert_eq!(frame_length(&header(0, SCHEMA_ID)[..7]), Ok(None));
    }
}
