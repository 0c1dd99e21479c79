//! Follows a chunked body through the gate, so that the data of a chunk, which may be all of the body, goes to
//! hyper in one piece. Byte by byte each of its bytes would be a frame, a wake and a poll of its own.
//!
//! Where the body ends remains for hyper to say. All that is decided here is that a line of a form that hyper reads as
//! a size (RFC 9112 §7.1, and blanks behind the digits) is followed by so many bytes of data and a line end. Around
//! any other line, and behind the last chunk, nothing is opened but the next byte.

/// Bytes that a body may have besides its data, however short that is.
const FRAMING_FREE: usize = 8192;

/// For each so many bytes of data it may have one more byte besides.
const DATA_PER_FRAMING: usize = 8;

/// Bytes of the line end behind a chunk's data.
const LINE_END: usize = 2;

/// One chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunks {
    place: Place,
    /// Bytes of data in the chunks whose lines have gone through.
    data: usize,
    /// All other bytes so far: lines of sizes, line ends, trailers.
    framing: usize,
}

/// Where in the body the next byte is, with the size that was read on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Size(usize),
    Blank(usize),
    Extension(usize),
    LineEnd(usize),
    /// In the head, or in a chunk's data and the line end behind it, with so many bytes to come.
    Known(usize),
    /// Behind the last chunk, or behind what hyper is about to refuse.
    Tail,
}

impl Chunks {
    /// The body behind a head of so many bytes, which are yet to go through.
    pub(super) const fn behind(head: usize) -> Self {
        Self { place: Place::Known(head), data: 0, framing: 0 }
    }

    /// Bytes that are part of this request for certain if there is more of it. None if it has so much besides its data
    /// that it is not to be read on: each line costs far more than its bytes do, and hyper would take blanks and
    /// leading zeros without end.
    pub(super) const fn ahead(&self) -> Option<usize> {
        match self.place {
            Place::Known(left) => Some(left),
            _ if self.framing > FRAMING_FREE + self.data / DATA_PER_FRAMING => None,
            _ => Some(1),
        }
    }

    /// These have gone through: no more of them than [`Chunks::ahead`] allowed.
    pub(super) fn passed(&mut self, bytes: &[u8]) {
        if let Place::Known(left) = self.place {
            let left = left.saturating_sub(bytes.len());
            self.place = if left == 0 { Place::Start } else { Place::Known(left) };
            return;
        }
        for &byte in bytes {
            self.framing += 1;
            self.place = self.place.behind(byte);
        }
        if let Place::Known(left) = self.place {
            self.data = self.data.saturating_add(left - LINE_END);
            self.framing += LINE_END;
        }
    }
}

impl Place {
    fn behind(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Start, _) => digit(0, byte),
            (Self::Size(size) | Self::Blank(size) | Self::Extension(size), b'\r') => {
                Self::LineEnd(size)
            }
            (Self::Size(size) | Self::Blank(size), b' ' | b'\t') => Self::Blank(size),
            (Self::Size(size) | Self::Blank(size), b';') => Self::Extension(size),
            (Self::Size(size), _) => digit(size, byte),
            (Self::Extension(_), b'\n') => Self::Tail,
            (Self::Extension(size), _) => Self::Extension(size),
            (Self::LineEnd(size), b'\n') if size > 0 => {
                size.checked_add(LINE_END).map_or(Self::Tail, Self::Known)
            }
            _ => Self::Tail,
        }
    }
}

fn digit(size: usize, byte: u8) -> Place {
    let value = char::from(byte).to_digit(16).and_then(|value| usize::try_from(value).ok());
    let longer = value.and_then(|value| size.checked_mul(16)?.checked_add(value));
    longer.map_or(Place::Tail, Place::Size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINNING: Chunks = Chunks { place: Place::Start, data: 0, framing: 0 };

    /// The place behind these bytes of a body, which are sent on as [`Chunks::ahead`] allows.
    fn behind(bytes: &[u8]) -> Chunks {
        let mut chunks = BEGINNING;
        let mut rest = bytes;
        while !rest.is_empty() {
            let ahead = chunks.ahead().expect("little framing");
            let (piece, behind) = rest.split_at(ahead.min(rest.len()));
            chunks.passed(piece);
            rest = behind;
        }
        chunks
    }

    #[test]
    fn a_chunk_is_open_with_the_line_end_behind_it() {
        for (line, size) in [
            ("5\r\n", 5),
            ("aF\r\n", 0xaf),
            ("0005\r\n", 5),
            ("5 \t\r\n", 5),
            ("5;x=y\r\n", 5),
            ("5 ; x=\"7\"\r\n", 5),
            ("2\r\nab\r\n5\r\n", 5),
            ("4\r\n\r\n0\r\r\n5\r\n", 5),
            ("7ffffffffffffff0\r\n", 0x7fff_ffff_ffff_fff0),
        ] {
            assert_eq!(behind(line.as_bytes()).ahead(), Some(size + 2), "{line:?}");
        }
        assert_eq!(behind(b"5\r\nabc").ahead(), Some(4));
        assert_eq!(behind(b"5\r\nabcde\r\n"), Chunks { data: 5, framing: 5, ..BEGINNING });
    }

    #[test]
    fn behind_any_other_line_there_is_one_byte_at_a_time() {
        for line in [
            "\r\n",
            "\n",
            " 5\r\n",
            "+5\r\n",
            "-5\r\n",
            "0x5\r\n",
            "g\r\n",
            "5\n",
            "5\r",
            "5\r\r\n",
            "5 5\r\n",
            "5;\n",
            "5;\n5\r\n",
            "5;\rx\r\n",
            "5\u{e9}\r\n",
            "10000000000000005\r\n",
            "fffffffffffffffe\r\n",
            "0\r\n",
            "000\r\n5\r\n",
            "0;x\r\n5\r\n",
            "0\r\nX: 5\r\n5\r\n",
            "0\r\n\r\n5\r\n",
            "1\r\nab\r\n5\r\n",
        ] {
            let mut chunks = BEGINNING;
            let mut rest = line.as_bytes();
            while let Some(ahead) = chunks.ahead().filter(|_| !rest.is_empty()) {
                assert!(ahead < 5, "{line:?}: {ahead}");
                let (piece, behind) = rest.split_at(ahead.min(rest.len()));
                chunks.passed(piece);
                rest = behind;
            }
            assert_eq!(chunks.ahead(), Some(1), "{line:?}");
        }
    }

    /// How much of an endless repetition goes through, in bytes.
    fn taken(first: &str, again: &str) -> Option<usize> {
        let mut chunks = behind(first.as_bytes());
        let mut sent = again.bytes().cycle();
        let mut count = 0;
        while let Some(ahead) = chunks.ahead() {
            let piece: Vec<u8> = sent.by_ref().take(ahead).collect();
            chunks.passed(&piece);
            count += piece.len();
            if count > 1 << 24 {
                return None;
            }
        }
        Some(count)
    }

    #[test]
    fn what_is_besides_the_data_is_bounded_by_it() {
        for (first, again) in
            [("", "0"), ("5", " "), ("5;", "x"), ("0\r\n", "X: y\r\n"), ("?", "z")]
        {
            let count = taken(first, again);
            assert!(count.is_some_and(|count| count <= FRAMING_FREE + 1), "{again:?}: {count:?}");
        }
        let tiny = taken("", "1\r\nx\r\n");
        assert!(tiny.is_some_and(|count| count < 3 * FRAMING_FREE / 2), "{tiny:?}");
        let chunk = |size: usize| format!("{size:x}\r\n{}\r\n", "x".repeat(size));
        let small = taken("", &chunk(20));
        assert!(small.is_some(), "{small:?}");
        for size in [64, 100, 300, 5000] {
            assert_eq!(taken("", &chunk(size)), None, "chunks of {size} bytes");
        }
        let behind_data = taken(&chunk(100_000), " ");
        assert_eq!(behind_data, Some(FRAMING_FREE + 100_000 / DATA_PER_FRAMING + 1 - 9));
    }
}
