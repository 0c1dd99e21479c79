//! What a log of known bytes must be found to be after some of them have changed: judged frame by frame
//! from what the frames were, without the code that is tested. Used by the searches for cut tails and
//! rotten bits.

use super::world::SEGMENT;
use touchline_protocol::log::frame::{self, FRAME_HEADER_BYTES, FrameKind};
use touchline_protocol::log::{SEGMENT_HEADER_BYTES, align_frame};

/// Bytes of a segment's header that mean anything.
const SEGMENT_HEADER_USED: u64 = 64;

/// A frame or a segment header of the log as it was.
#[derive(Clone, Copy, Debug)]
struct Piece {
    position: u64,
    /// Behind the last byte that a change of which is a change of the piece.
    covered: u64,
    /// Where the next piece begins.
    next: u64,
    attested: u64,
    is_transaction: bool,
    is_frame: bool,
}

/// A sound log.
pub(crate) struct Original {
    pub(crate) image: Vec<u8>,
    pieces: Vec<Piece>,
    /// Where it ends.
    pub(crate) end: u64,
}

/// What the start of an engine must make of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// It opens with so many transactions and ends there; so many bytes behind are reported.
    Ends { transactions: usize, end: u64, dropped: u64 },
    /// It is refused because of what is at this position; up to `attested` it is known to be good.
    Refused { position: u64, attested: u64 },
    /// The first segment's header says nothing: refused.
    NoLog,
}

impl Original {
    /// The log in `image`, all of whose frames are good.
    pub(crate) fn new(image: Vec<u8>) -> Self {
        let salt = u32::from_le_bytes(image[12..16].try_into().unwrap());
        let mut pieces = Vec::new();
        let mut position = 0;
        while position < image.len() as u64 {
            let piece = if position.is_multiple_of(SEGMENT) {
                let next = position + SEGMENT_HEADER_BYTES;
                let covered = position + SEGMENT_HEADER_USED;
                if image[position as usize..covered as usize].iter().all(|&byte| byte == 0) {
                    break;
                }
                Piece {
                    position,
                    covered,
                    next,
                    attested: 0,
                    is_transaction: false,
                    is_frame: false,
                }
            } else {
                let Ok(header) = frame::check(&image[position as usize..], position, salt) else {
                    break;
                };
                let end = position + u64::from(header.length);
                let is_padding = header.kind() == Some(FrameKind::Padding);
                Piece {
                    position,
                    covered: if is_padding { position + FRAME_HEADER_BYTES as u64 } else { end },
                    next: align_frame(end),
                    attested: header.attested,
                    is_transaction: header.kind() == Some(FrameKind::Transaction),
                    is_frame: true,
                }
            };
            position = piece.next;
            pieces.push(piece);
        }
        let rest = &image[position as usize..];
        assert!(rest.iter().all(|&byte| byte == 0), "nothing lies behind the end");
        Self { image, pieces, end: position }
    }

    /// The highest position that a frame vouches for.
    pub(crate) fn attested(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.attested).max().unwrap_or(0)
    }

    /// What is to become of the log when it holds `changed` instead, which differs from the original
    /// only within `from..to`.
    pub(crate) fn judge(&self, changed: &[u8], (from, to): (u64, u64)) -> Expected {
        let is_good = |piece: &Piece| {
            let range = piece.position.max(from) as usize..piece.covered.min(to) as usize;
            range.start >= range.end || changed[range.clone()] == self.image[range]
        };
        let broken = self.pieces.iter().position(|piece| !is_good(piece));
        if broken == Some(0) {
            return Expected::NoLog;
        }
        let good = &self.pieces[..broken.unwrap_or(self.pieces.len())];
        let end = good.last().map_or(0, |piece| piece.next);
        // What a good frame says counts wherever it lies.
        let frames = self.pieces.iter().filter(|piece| piece.is_frame && is_good(piece));
        let attested = frames.map(|piece| piece.attested).max().unwrap_or(0);
        if end < attested {
            return Expected::Refused { position: end, attested };
        }
        // Nothing lies behind the original's end but what was put there.
        let written = self.end.max(to.min(from + 1)) as usize;
        let used = changed[end as usize..written].iter().rposition(|&byte| byte != 0);
        Expected::Ends {
            transactions: good.iter().filter(|piece| piece.is_transaction).count(),
            end,
            dropped: used.map_or(0, |last| last as u64 + 1),
        }
    }
}
