//! Between a socket and hyper: holds each request head back until it is there whole, looks at it, and
//! lets nothing through that belongs to the request after it. Called by the socket.
//!
//! So the request line can be rewritten (see [`quoted_query`]) however the bytes were cut into
//! packets, and nothing else is ever taken for one. A head that hyper would read in a way of its own,
//! or refuse without a word, is refused here: hyper is given a stand-in for it, and the connection
//! answers that with the fault.

use bytes::{Buf, BytesMut};
use tokio::io::ReadBuf;

use super::quoted_query;
use super::socket::Progress;
use crate::http::Fault;

/// What hyper reads in place of a refused head.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// What is let through once the bytes that are open have gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The next head, when it is there whole.
    Head,
    /// A chunked body, byte by byte: where it ends is for hyper to say.
    Chunks,
    /// Everything: the connection will be closed, or hyper shall say what is wrong.
    Rest,
}

/// How long the body behind a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    /// The head contradicts itself in a way that hyper refuses.
    Unclear,
}

/// The gate of one connection.
#[derive(Debug)]
pub(super) struct Gate {
    held: BytesMut,
    /// Bytes that may go through, of those held and those to come.
    open: usize,
    then: Then,
    /// Held bytes in which no head ends.
    scanned: usize,
    ended: bool,
    max_head: usize,
}

impl Gate {
    pub(super) fn new(max_head: usize) -> Self {
        Self {
            held: BytesMut::new(),
            open: 0,
            then: Then::Head,
            scanned: 0,
            ended: false,
            max_head,
        }
    }

    /// Takes what was received.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Nothing more will be received.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Lets through what may go now; false if that is nothing.
    pub(super) fn give(&mut self, progress: &Progress, buffer: &mut ReadBuf<'_>) -> bool {
        if progress.is_refused() {
            self.then = Then::Rest;
        }
        if self.then == Then::Chunks && !progress.is_reading() {
            self.then = Then::Head;
            // The byte that the body turned out not to have.
            self.open = 0;
        }
        if !self.held.is_empty() {
            progress.received();
        }
        if self.open == 0 {
            match self.then {
                Then::Head => self.admit(progress),
                Then::Chunks => self.open = 1,
                Then::Rest => self.open = usize::MAX,
            }
        }
        let count = self.open.min(self.held.len()).min(buffer.remaining());
        buffer.put_slice(&self.held[..count]);
        self.held.advance(count);
        self.open -= count;
        count > 0
    }

    /// Opens for the next head and its body, if the head is there.
    fn admit(&mut self, progress: &Progress) {
        let end = end_of_head(&self.held, self.scanned);
        self.scanned = self.held.len();
        let length = end.unwrap_or(self.scanned);
        if length > self.max_head {
            return self.refuse(progress, Fault::HeadTooLong { limit: self.max_head });
        }
        if end.is_none() {
            if self.ended || !may_be_a_request(&self.held) {
                self.then = Then::Rest;
                self.open = usize::MAX;
            }
            return;
        }
        self.scanned = 0;
        let head = &mut self.held[..length];
        match examine(head) {
            Ok(framing) => {
                progress.disguised(quoted_query::disguise(head));
                let (body, then) = match framing {
                    Framing::Length(body) => (body, Then::Head),
                    Framing::Chunked => (0, Then::Chunks),
                    Framing::Unclear => (0, Then::Rest),
                };
                self.open = length.saturating_add(body);
                self.then = then;
            }
            Err(fault) => self.refuse(progress, fault),
        }
    }

    fn refuse(&mut self, progress: &Progress, fault: Fault) {
        progress.refuse(fault);
        self.held.clear();
        self.held.extend_from_slice(STAND_IN);
        self.then = Then::Rest;
        self.open = usize::MAX;
    }
}

/// The length of the head at the start of `held`, its empty line included. Empty lines before the
/// request line are part of it. None ends within the first `scanned` bytes.
fn end_of_head(held: &[u8], scanned: usize) -> Option<usize> {
    let first = held.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    // An empty line is up to three bytes, which may have come one by one.
    let from = scanned.saturating_sub(3).max(first);
    (from..held.len()).find_map(|at| match &held[at..] {
        [b'\n', b'\n', ..] => Some(at + 2),
        [b'\n', b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// False if what is held cannot become a request line, so that waiting for more is of no use.
fn may_be_a_request(held: &[u8]) -> bool {
    held.iter()
        .skip_while(|byte| matches!(byte, b'\r' | b'\n'))
        .take_while(|&&byte| byte != b' ')
        .all(|&byte| byte.is_ascii_graphic())
}

/// Looks at a whole head.
fn examine(head: &[u8]) -> Result<Framing, Fault> {
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let request_line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    if request_line.contains(&b'#') {
        return Err(Fault::BadHead { why: "A request target has no fragment (#)." });
    }
    let (mut lengths, mut is_coded) = (Vec::new(), false);
    for line in lines {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        is_coded |= name.eq_ignore_ascii_case(b"transfer-encoding");
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = std::str::from_utf8(value.trim_ascii()).ok();
            lengths.push(digits.and_then(|digits| digits.parse::<usize>().ok()));
        }
    }
    match (lengths.first(), is_coded) {
        (Some(_), true) => {
            Err(Fault::BadHead { why: "Content-Length and Transfer-Encoding exclude each other." })
        }
        (None, true) => Ok(Framing::Chunked),
        (None, false) => Ok(Framing::Length(0)),
        (Some(Some(length)), false) if lengths.iter().all(|other| *other == Some(*length)) => {
            Ok(Framing::Length(*length))
        }
        (Some(_), false) => Ok(Framing::Unclear),
    }
}

#[cfg(test)]
mod tests;
