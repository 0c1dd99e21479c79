//! One reader of the public feed: what it may say, and what is to leave for it next. It holds one piece at
//! the most that its socket has not taken. Called by [`super`].

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use touchline_protocol::framing::FrameBuffer;
use touchline_protocol::message::decode::{self, FeedTalk, Stream as Said};
use touchline_protocol::message::enums::CloseReason;
use touchline_protocol::message::handshake::SILENT_INTERVALS;
use touchline_protocol::message::stream::Heartbeat;
use touchline_protocol::units::{FeedSequence, KeyId, Position};

use super::PIECE_BYTES;
use super::StreamTerms;
use super::live::Live;
use super::pace::Pace;
use crate::feed::{FeedPlace, Share};
use crate::gateway::stall::Stall;

/// Messages that a reader may send between two ticks of the gateway.
const MESSAGES_PER_TICK: u32 = 64;

/// Why a reader is closed: what it is told, and what the operator is.
pub(super) type Close = (CloseReason, &'static str);

/// How far log and feed are, as a heartbeat tells it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Marks {
    /// The log's end.
    pub(super) appended: Position,
    /// On disk up to here.
    pub(super) durable: Position,
    /// The feed has read up to here.
    pub(super) feed: Position,
}

/// A snapshot on its way.
struct Leaving {
    snapshot: Arc<Share>,
    /// Bytes that were given to the socket, which has taken all of them but the last piece at the most.
    given: usize,
    pace: Pace,
}

/// What a reader has that gets the feed itself over its socket.
struct Stream {
    /// The last message that was sent.
    last: FeedSequence,
    terms: StreamTerms,
    heard: Instant,
    said: Instant,
}

/// One reader.
pub(super) struct Reader {
    pub(super) key: KeyId,
    socket: Arc<OwnedFd>,
    /// None over shared memory: its socket carries snapshots alone.
    stream: Option<Stream>,
    /// It has asked for a snapshot that has not come yet.
    asked: bool,
    leaving: Option<Leaving>,
    input: FrameBuffer,
    /// Messages that it has sent since the last tick.
    messages: u32,
    /// A buffer to go on with, while the socket has none.
    spare: Option<Vec<u8>>,
    /// The socket was given something, and takes nothing.
    stall: Stall,
    /// It is among those who are to be looked at.
    pub(super) is_queued: bool,
    _place: FeedPlace,
}

impl Reader {
    /// A reader over shared memory.
    pub(super) fn new(key: KeyId, socket: Arc<OwnedFd>, place: FeedPlace, now: Instant) -> Self {
        Self {
            key,
            socket,
            stream: None,
            asked: false,
            leaving: None,
            input: FrameBuffer::new(0),
            messages: 0,
            spare: Some(Vec::new()),
            stall: Stall::new(now),
            is_queued: false,
            _place: place,
        }
    }

    /// The same over a stream, for what comes behind message `last`.
    pub(super) fn over_stream(self, last: FeedSequence, terms: StreamTerms, now: Instant) -> Self {
        Self { stream: Some(Stream { last, terms, heard: now, said: now }), ..self }
    }

    pub(super) const fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// The socket, while nothing is half sent: only then may anything else be written to it.
    pub(super) fn free_socket(&self) -> Option<&OwnedFd> {
        (self.spare.is_some() && self.leaving.is_none()).then_some(&*self.socket)
    }

    /// True while the socket has something to take.
    pub(super) const fn is_sending(&self) -> bool {
        self.spare.is_none()
    }

    /// True while it waits for a snapshot of which nothing has come.
    pub(super) const fn is_owed_snapshot(&self) -> bool {
        self.asked
    }

    /// The snapshot that it takes, if it takes one, and whether it is [too slow](Pace::is_behind) while somebody
    /// waits.
    pub(super) fn takes_snapshot(&self) -> Option<(FeedSequence, bool)> {
        self.leaving.as_ref().map(|it| (it.snapshot.sequence(), it.pace.is_behind()))
    }

    /// Takes bytes; true if a request for a snapshot is among them.
    pub(super) fn received(&mut self, mut bytes: &[u8], now: Instant) -> Result<bool, Close> {
        if let Some(stream) = &mut self.stream {
            stream.heard = now;
        }
        // A heartbeat while it waits for the answer is no second request.
        let has_asked = self.asked;
        while !bytes.is_empty() {
            let count = self.input.push(bytes);
            bytes = &bytes[count..];
            while self.one_message()? {}
        }
        Ok(self.asked && !has_asked)
    }

    /// Takes the next whole message; false if there is none.
    fn one_message(&mut self) -> Result<bool, Close> {
        const NO_REQUEST: Close = (CloseReason::Malformed, "what it says is no request");
        let Some(frame) = self.input.peek().map_err(|_| NO_REQUEST)? else { return Ok(false) };
        let length = frame.len();
        let is_heartbeat =
            self.stream.is_some() && matches!(decode::stream(frame), Ok(Said::Heartbeat(_)));
        if !is_heartbeat {
            let Ok(FeedTalk::FeedRequest(_)) = decode::feed_talk(frame) else {
                return Err(NO_REQUEST);
            };
            if self.asked || self.leaving.is_some() {
                return Err((CloseReason::Malformed, "it asks while it is owed a snapshot"));
            }
            self.asked = true;
        }
        self.input.take(length);
        self.messages += 1;
        if self.messages > MESSAGES_PER_TICK {
            return Err((CloseReason::Other, "it says more than it may"));
        }
        Ok(true)
    }

    /// The snapshot that it asked for is there.
    pub(super) fn answer(&mut self, snapshot: Arc<Share>, now: Instant) {
        self.asked = false;
        self.leaving = Some(Leaving { snapshot, given: 0, pace: Pace::new(now) });
    }

    /// What is to leave next, if the socket is free: the rest of a snapshot, messages of the feed unless a
    /// snapshot is owed, a heartbeat.
    pub(super) fn next_piece(
        &mut self,
        live: Option<&mut Live>,
        marks: Marks,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let mut buffer = self.spare.take()?;
        buffer.clear();
        self.fill(&mut buffer, live, marks, now);
        if buffer.is_empty() {
            self.spare = Some(buffer);
            return None;
        }
        self.stall = Stall::new(now);
        if let Some(stream) = &mut self.stream {
            stream.said = now;
        }
        Some(buffer)
    }

    fn fill(
        &mut self,
        buffer: &mut Vec<u8>,
        live: Option<&mut Live>,
        Marks { appended, durable, feed }: Marks,
        now: Instant,
    ) {
        if let Some(leaving) = &mut self.leaving {
            let rest = &leaving.snapshot.bytes()[leaving.given..];
            let piece = &rest[..rest.len().min(PIECE_BYTES)];
            leaving.given += piece.len();
            buffer.extend_from_slice(piece);
            if leaving.given == leaving.snapshot.bytes().len() {
                let last = leaving.snapshot.sequence();
                self.leaving = None;
                if let Some(stream) = &mut self.stream {
                    stream.last = last;
                }
            }
            return;
        }
        let Some(stream) = &mut self.stream else { return };
        if let (Some(live), false) = (live, self.asked) {
            let (piece, last) = live.piece_behind(stream.last);
            buffer.extend_from_slice(piece);
            stream.last = last;
        }
        if buffer.is_empty() && now.duration_since(stream.said) >= stream.terms.heartbeat {
            let feed = if stream.terms.takes_position { feed } else { Position(0) };
            let heartbeat = Heartbeat { appended, durable, feed, ..Default::default() };
            buffer.extend_from_slice(bytemuck::bytes_of(&heartbeat));
        }
    }

    /// The socket has taken some of what it was given.
    pub(super) const fn progressed(&mut self, now: Instant) {
        self.stall = Stall::new(now);
    }

    /// The socket has taken all that it was given.
    pub(super) fn sent(&mut self, buffer: Vec<u8>, now: Instant) {
        self.spare = Some(buffer);
        self.stall = Stall::new(now);
    }

    /// The gateway did not look for so long: nothing of that is counted against the reader.
    pub(super) fn forgive(&mut self, lost: Duration, now: Instant) {
        let later = |then: Instant| now.min(then + lost);
        self.stall.forgive(lost, now);
        if let Some(leaving) = &mut self.leaving {
            leaving.pace.forgive(lost, now);
        }
        if let Some(stream) = &mut self.stream {
            stream.heard = later(stream.heard);
        }
    }

    /// True when it has something to take, and has taken of it in the time of the limit.
    pub(super) fn is_taking(&self, now: Instant, stall_limit: Duration) -> bool {
        self.is_sending() && self.stall.lasts(now) <= stall_limit
    }

    /// Looks at the time: why the reader is to be closed, if it is.
    /// `unread` is what its socket keeps for it, while the socket [has something to take](Self::is_sending).
    pub(super) fn tick(
        &mut self,
        now: Instant,
        stall_limit: Duration,
        unread: Option<u64>,
    ) -> Option<Close> {
        self.messages = 0;
        self.stall.look(unread, now);
        if self.is_sending() && !self.is_taking(now, stall_limit) {
            return Some((CloseReason::ReaderStalled, "it takes nothing of what it is sent"));
        }
        if let Some(leaving) = &mut self.leaving {
            leaving.pace.look(leaving.given, stall_limit, now);
            if leaving.pace.is_overdue() {
                return Some((CloseReason::ReaderStalled, "it takes its snapshot too slowly"));
            }
        }
        let stream = self.stream.as_ref()?;
        let silence = stream.terms.heartbeat * SILENT_INTERVALS;
        let is_silent = now.duration_since(stream.heard) >= silence;
        is_silent.then_some((CloseReason::Silent, "nothing came for three intervals of heartbeats"))
    }
}

#[cfg(test)]
mod any_cut;
#[cfg(test)]
mod tests;
