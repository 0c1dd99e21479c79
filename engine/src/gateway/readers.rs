//! Readers of the public feed at the gateway: who is let in, the ring's memory that is passed to them,
//! and snapshots, which are written as fast as each reader reads. They have no session, and the duty
//! thread never hears of them. Called by [`super::service`].

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use touchline_protocol::message::decode::{self, FeedTalk};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::feed::{FeedOpened, FeedRequest};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::shm::descriptors::send_with_descriptors;
use touchline_protocol::units::KeyId;

use super::backend::Happened;
use super::service::Gateway;
use crate::feed::{FeedDesk, FeedPlace, FromFeed, Snapshot, ToFeed};

/// A reader that takes nothing of its snapshot for so long is closed.
const STALL_LIMIT: Duration = Duration::from_secs(5);

/// Bytes of a snapshot that are given to a socket at once.
const PIECE_BYTES: usize = 256 << 10;

/// Words of the one message that a reader may send.
const REQUEST_WORDS: usize = size_of::<FeedRequest>() / 8;

/// A snapshot on its way.
struct Leaving {
    snapshot: Arc<Snapshot>,
    /// Bytes that were given to the socket.
    given: usize,
    /// When the socket last took some.
    moved: Instant,
}

impl Leaving {
    /// The next piece, in a buffer that is used again; none if all was given.
    fn piece(&mut self, mut buffer: Vec<u8>) -> Option<Vec<u8>> {
        let rest = &self.snapshot.bytes()[self.given..];
        let piece = &rest[..rest.len().min(PIECE_BYTES)];
        self.given += piece.len();
        buffer.clear();
        buffer.extend_from_slice(piece);
        (!buffer.is_empty()).then_some(buffer)
    }
}

/// One reader.
struct Reader {
    key: KeyId,
    /// It has asked for a snapshot that has not come yet.
    asked: bool,
    leaving: Option<Leaving>,
    request: [u64; REQUEST_WORDS],
    filled: usize,
    _place: FeedPlace,
}

impl Reader {
    /// Takes bytes; true once they are the request for a snapshot.
    fn received(&mut self, bytes: &[u8]) -> Result<bool, &'static str> {
        let into = &mut bytemuck::cast_slice_mut(&mut self.request)[self.filled..];
        if self.asked || self.leaving.is_some() || bytes.len() > into.len() {
            return Err("it says more than it may");
        }
        into[..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
        if self.filled < size_of::<FeedRequest>() {
            return Ok(false);
        }
        let Ok(FeedTalk::FeedRequest(_)) = decode::feed_talk(bytemuck::cast_slice(&self.request))
        else {
            return Err("what it says is no request");
        };
        self.filled = 0;
        self.asked = true;
        Ok(true)
    }
}

/// All readers, and the desk that they are served from.
pub(super) struct Readers {
    desk: Option<(Arc<FeedDesk>, usize)>,
    readers: FxHashMap<usize, Reader>,
    /// Those whose socket took a whole piece at once, with the buffer to go on in.
    resumed: Vec<(usize, Vec<u8>)>,
}

impl Readers {
    pub(super) fn new(desk: Option<(Arc<FeedDesk>, usize)>) -> Self {
        Self { desk, readers: FxHashMap::default(), resumed: Vec::new() }
    }

    pub(super) fn has(&self, ticket: usize) -> bool {
        self.readers.contains_key(&ticket)
    }

    /// True when there is something to do that no socket tells of.
    pub(super) fn has_work(&self) -> bool {
        !self.resumed.is_empty()
            || self.desk.as_ref().is_some_and(|(desk, _)| desk.from_feed.has_mail())
    }

    /// True while snapshots are on their way.
    pub(super) fn are_sending(&self) -> bool {
        self.readers.values().any(|reader| reader.leaving.is_some())
    }

    pub(super) fn progressed(&mut self, ticket: usize, now: Instant) {
        let leaving = self.readers.get_mut(&ticket).and_then(|reader| reader.leaving.as_mut());
        if let Some(leaving) = leaving {
            leaving.moved = now;
        }
    }

    fn found(&self, is_it: impl Fn(&Reader) -> bool) -> Vec<usize> {
        let found = self.readers.iter().filter(|(_, reader)| is_it(reader));
        found.map(|(ticket, _)| *ticket).collect()
    }
}

impl Gateway {
    /// A peer has proved who it is and wants the feed: the feed thread knows its key.
    pub(super) fn subscribe(&mut self, ticket: usize, key: KeyId) {
        let coming = self.peers.values().filter(|peer| peer.wants_feed().is_some()).count();
        let refusal = match &self.readers.desk {
            None => RefusalReason::NoFeed,
            // The peer itself is among those who come.
            Some((_, most)) if self.readers.readers.len() + coming > *most => {
                RefusalReason::TooManySessions
            }
            Some((desk, _)) => return desk.tell_feed(ToFeed::Admit { ticket, key }),
        };
        self.turn_away(ticket, refusal, None);
    }

    /// Gives whether the feed thread had written.
    pub(super) fn read_feed_mail(&mut self) -> bool {
        let Some((desk, _)) = self.readers.desk.clone() else { return false };
        let mut had_mail = false;
        while let Some(letter) = desk.from_feed.take() {
            had_mail = true;
            match letter {
                FromFeed::Admitted { ticket } => self.let_in(ticket, &desk),
                FromFeed::Refused { ticket, reason } => {
                    self.turn_away(ticket, RefusalReason::Rejected, Some(reason));
                }
                FromFeed::Snapshot { ticket, snapshot } => self.begin_to_send(ticket, snapshot),
                FromFeed::Revoked { key } => self.key_revoked(key),
                FromFeed::Ended => {
                    self.readers.desk = None;
                    self.close_readers(self.readers.found(|_| true), "the feed has ended");
                }
            }
        }
        had_mail
    }

    fn let_in(&mut self, ticket: usize, desk: &Arc<FeedDesk>) {
        let Some(peer) = self.peers.remove(&ticket) else { return };
        let key = peer.wants_feed().unwrap_or_default();
        let (memory, slots, incarnation) = desk.memory();
        let log_id = self.options.log_id;
        let opened = FeedOpened { slots, incarnation, log_id, ..Default::default() };
        // Counted first: from its first look at the ring it is woken.
        let reader = Reader {
            key,
            asked: false,
            leaving: None,
            request: [0; REQUEST_WORDS],
            filled: 0,
            _place: desk.reader(),
        };
        self.readers.readers.insert(ticket, reader);
        let passed = send_with_descriptors(&peer.socket(), bytemuck::bytes_of(&opened), &[memory]);
        if passed.is_err() {
            self.forget_reader(ticket);
        }
    }

    /// Says why before the socket is forgotten, which ends it.
    fn turn_away(&mut self, ticket: usize, reason: RefusalReason, reject: Option<RejectReason>) {
        let Some(peer) = self.peers.get(&ticket) else { return };
        peer.refuse(reason, reject);
        self.forget_peer(ticket);
        let what = reject.map_or(String::new(), |reject| format!(" ({reject:?})"));
        self.refusals.print(&format!("refused a reader of the feed: {reason:?}{what}"));
    }

    fn key_revoked(&mut self, key: KeyId) {
        let of_key = |reader: &Reader| reader.key == key;
        self.close_readers(self.readers.found(of_key), "its key was revoked");
        // Those whose answer is on its way.
        let coming = self.peers.iter().filter(|(_, peer)| peer.wants_feed() == Some(key));
        let coming: Vec<usize> = coming.map(|(ticket, _)| *ticket).collect();
        for ticket in coming {
            self.remove(ticket);
        }
    }

    pub(super) fn reader_received(&mut self, ticket: usize, at: &Range<usize>) {
        let Some(reader) = self.readers.readers.get_mut(&ticket) else { return };
        match (reader.received(self.backend.bytes(at)), &self.readers.desk) {
            (Ok(true), Some((desk, _))) => desk.tell_feed(ToFeed::Snapshot { ticket }),
            (Ok(_), _) => {}
            (Err(why), _) => self.close_readers(vec![ticket], why),
        }
    }

    fn begin_to_send(&mut self, ticket: usize, snapshot: Arc<Snapshot>) {
        let Some(reader) = self.readers.readers.get_mut(&ticket) else { return };
        reader.asked = false;
        reader.leaving = Some(Leaving { snapshot, given: 0, moved: self.now });
        self.reader_sent(ticket, Vec::new());
    }

    /// The socket has taken all that it was given: the next piece.
    pub(super) fn reader_sent(&mut self, ticket: usize, buffer: Vec<u8>) {
        let Some(reader) = self.readers.readers.get_mut(&ticket) else { return };
        let Some(leaving) = &mut reader.leaving else { return };
        leaving.moved = self.now;
        let Some(piece) = leaving.piece(buffer) else {
            reader.leaving = None;
            return;
        };
        let mut happened = Vec::new();
        self.backend.send(ticket, piece, &mut happened);
        for one in happened {
            match one {
                // Not at once: a reader that is as fast as the gateway does not keep it from others.
                Happened::Sent(ticket, buffer) => self.readers.resumed.push((ticket, buffer)),
                other => self.take(other),
            }
        }
    }

    /// Goes on with snapshots whose last piece was taken at once; gives whether there were any.
    pub(super) fn resume_readers(&mut self) -> bool {
        let resumed = std::mem::take(&mut self.readers.resumed);
        let worked = !resumed.is_empty();
        for (ticket, buffer) in resumed {
            self.reader_sent(ticket, buffer);
        }
        worked
    }

    pub(super) fn close_slow_readers(&mut self) {
        let now = self.now;
        let is_stalled = |reader: &Reader| {
            let moved = reader.leaving.as_ref().map(|leaving| leaving.moved);
            moved.is_some_and(|moved| now.duration_since(moved) > STALL_LIMIT)
        };
        let stalled = self.readers.found(is_stalled);
        self.close_readers(stalled, "it takes nothing of its snapshot");
    }

    fn close_readers(&mut self, tickets: Vec<usize>, why: &str) {
        for ticket in tickets {
            self.refusals.print(&format!("closed a reader of the feed: {why}"));
            self.forget_reader(ticket);
        }
    }

    /// Forgets a reader; dropping its socket closes it.
    pub(super) fn forget_reader(&mut self, ticket: usize) {
        if self.readers.readers.remove(&ticket).is_some() {
            self.backend.forget(ticket);
        }
    }
}
