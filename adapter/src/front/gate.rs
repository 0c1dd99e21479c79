//! Between a socket and hyper: holds each request head back until it is there whole, looks at it, and
//! lets nothing through that belongs to the request after it. Called by the socket.
//!
//! So the request line can be rewritten (see [`quoted_query`]) however the bytes were cut into
//! packets, and nothing else is ever taken for one. A head that hyper would read in a way of its own,
//! or refuse without a word (see [`head`](super::head)), is refused here: hyper is given a stand-in for
//! it, and the connection answers that with the fault.

mod chunks;
mod search;

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::ReadBuf;

use self::chunks::Chunks;
use self::search::Search;
use super::head::{Framing, examine};
use super::quoted_query;
use super::socket::Progress;
use crate::http::Fault;

/// Most bytes of a refused head's path that are kept.
const STAND_IN_PATH_MAX: usize = 64;

/// What is let through once the bytes that are open have gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The next head, when it is there whole.
    Head,
    /// A chunked body, as far as is certain: where it ends is for hyper to say.
    Chunks(Chunks),
    /// Everything: the connection will be closed.
    Rest,
}

/// The gate of one connection.
#[derive(Debug)]
pub(super) struct Gate {
    held: BytesMut,
    /// Bytes that may go through, of those held and those to come.
    open: usize,
    then: Then,
    search: Search,
    ended: bool,
    max_head: usize,
    max_headers: usize,
}

impl Gate {
    /// Heads have at most `max_head` bytes and `max_headers` fields.
    pub(super) fn new(max_head: usize, max_headers: usize) -> Self {
        Self {
            held: BytesMut::new(),
            open: 0,
            then: Then::Head,
            search: Search::default(),
            ended: false,
            max_head,
            max_headers,
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

    /// Bytes that were received and have not gone through.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Lets through what may go now; false if that is nothing. Fails when the body is not to be read on: `progress` then
    /// knows why.
    pub(super) fn give(
        &mut self,
        progress: &Progress,
        buffer: &mut ReadBuf<'_>,
    ) -> io::Result<bool> {
        if progress.is_refused() {
            self.then = Then::Rest;
        }
        if matches!(self.then, Then::Chunks(_)) && !progress.is_reading() {
            self.then = Then::Head;
            // The byte that the body turned out not to have.
            self.open = 0;
        }
        if !self.held.is_empty() {
            progress.received();
        }
        if self.open == 0 {
            match &self.then {
                Then::Head => self.admit(progress),
                Then::Chunks(chunks) => match chunks.ahead() {
                    Some(ahead) => self.open = ahead,
                    None => {
                        progress.refuse(Fault::BodyFraming);
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                },
                Then::Rest => self.open = usize::MAX,
            }
        }
        let count = self.open.min(self.held.len()).min(buffer.remaining());
        let given = &self.held[..count];
        buffer.put_slice(given);
        if let Then::Chunks(chunks) = &mut self.then {
            chunks.passed(given);
        }
        self.held.advance(count);
        self.open -= count;
        Ok(count > 0)
    }

    /// Opens for the next head and its body, if the head is there.
    fn admit(&mut self, progress: &Progress) {
        let end = self.search.end(&self.held);
        let length = end.unwrap_or(self.held.len());
        if length > self.max_head {
            return self.refuse(progress, Fault::HeadTooLong { limit: self.max_head });
        }
        if end.is_none() {
            if !self.search.may_be_a_request(&self.held) {
                return self.refuse(progress, Fault::BadHead { why: "This is not HTTP." });
            }
            if self.ended {
                self.then = Then::Rest;
                self.open = usize::MAX;
            }
            return;
        }
        self.search = Search::default();
        let head = &mut self.held[..length];
        let disguised_at = quoted_query::disguise(head);
        match examine(head, self.max_headers) {
            Ok(framing) => {
                progress.disguised(disguised_at);
                let (body, then) = match framing {
                    Framing::Length(body) => (body, Then::Head),
                    Framing::Chunked => (0, Then::Chunks(Chunks::behind(length))),
                };
                self.open = length.saturating_add(body);
                self.then = then;
            }
            Err(fault) => self.refuse(progress, fault),
        }
    }

    fn refuse(&mut self, progress: &Progress, fault: Fault) {
        progress.refuse(fault);
        let stand_in = stand_in(&self.held);
        self.held.clear();
        self.held.extend_from_slice(&stand_in);
        self.then = Then::Rest;
        self.open = usize::MAX;
    }
}

/// What hyper reads in place of a refused head: with the beginning of its path, as far as that is plain, so
/// that the service which was meant answers in its own words.
fn stand_in(head: &[u8]) -> Vec<u8> {
    let request_line = head.trim_ascii_start().split(|&byte| byte == b'\n').next();
    let target = request_line.and_then(|line| line.split(|&byte| byte == b' ').nth(1));
    let is_plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"/-._".contains(byte);
    let path: Vec<u8> = target
        .filter(|target| target.starts_with(b"/"))
        .map(|target| target.iter().take(STAND_IN_PATH_MAX).take_while(is_plain).copied().collect())
        .unwrap_or_else(|| vec![b'/']);
    [b"GET ", &*path, b" HTTP/1.1\r\n\r\n"].concat()
}

#[cfg(test)]
mod tests;
