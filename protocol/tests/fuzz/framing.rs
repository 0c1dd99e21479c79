//! One input of the fuzz target `framing`: bytes over a stream, in pieces of chance, to the buffer that makes
//! frames of them. The frames are those that the bytes have when all of them are there at once, whatever the
//! pieces, and the same fault ends both. Called by that target and by the test beside this folder.

use touchline_protocol::framing::{FrameBuffer, FrameFault, frame_length};
use touchline_protocol::message::{MessageHeader, SCHEMA_ID};

/// How a stream ended.
pub(crate) type Ended = (Vec<Vec<u8>>, Option<FrameFault>);

/// Splits bytes that are all there.
fn split(mut bytes: &[u8]) -> Ended {
    let mut frames = Vec::new();
    loop {
        match frame_length(bytes) {
            Ok(Some(length)) => {
                let (frame, rest) = bytes.split_at(length);
                frames.push(frame.to_vec());
                bytes = rest;
            }
            Ok(None) => return (frames, None),
            Err(fault) => return (frames, Some(fault)),
        }
    }
}

/// The next frame that is whole, as [`split`] gives it.
fn take(buffer: &mut FrameBuffer, frames: &mut Vec<Vec<u8>>) -> Result<bool, FrameFault> {
    let Some(frame) = buffer.peek()? else { return Ok(false) };
    assert_eq!(frame.as_ptr().align_offset(8), 0, "frames are aligned");
    let length = frame.len();
    frames.push(frame.to_vec());
    buffer.take(length);
    Ok(true)
}

/// Passes the bytes on in pieces as `pieces` says, through a buffer of the smallest size there is.
fn stream(mut bytes: &[u8], pieces: &[u8]) -> Ended {
    let mut buffer = FrameBuffer::new(0);
    let (mut frames, mut pieces) = (Vec::new(), pieces.iter().cycle());
    while !bytes.is_empty() {
        let piece = 1 + pieces.next().map_or(0, |piece| usize::from(*piece) * 3);
        let piece = &bytes[..piece.min(bytes.len())];
        let before = buffer.len();
        let count = if piece.len().is_multiple_of(2) {
            buffer.push(piece)
        } else {
            let space = buffer.space();
            let count = piece.len().min(space.len());
            space[..count].copy_from_slice(&piece[..count]);
            buffer.filled(count);
            count
        };
        assert_eq!(buffer.len(), before + count);
        bytes = &bytes[count..];
        loop {
            match take(&mut buffer, &mut frames) {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => return (frames, Some(fault)),
            }
        }
        assert!(buffer.room() > 0, "a buffer that is full holds a whole frame");
    }
    (frames, None)
}

/// Reads an input: a byte that says how many of the next are the sizes of pieces, those, and the stream. Of
/// every other header that is read there, schema and length are made good ones, so that frames come about.
pub(crate) fn read(input: &[u8]) -> Ended {
    let Some((&count, rest)) = input.split_first() else { return (Vec::new(), None) };
    let (pieces, rest) = rest.split_at(usize::from(count % 16).min(rest.len()));
    let mut bytes = rest.to_vec();
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + MessageHeader::BYTES) {
        // One in sixteen stays as it is.
        if header[7] % 16 > 0 {
            header[0] &= 0xf8;
            header[1] %= 17;
            header[4..6].copy_from_slice(&SCHEMA_ID.to_le_bytes());
        }
        at += MessageHeader::BYTES + usize::from(u16::from_le_bytes([header[0], header[1]]));
    }
    let expected = split(&bytes);
    assert_eq!(stream(&bytes, pieces), expected);
    expected
}
