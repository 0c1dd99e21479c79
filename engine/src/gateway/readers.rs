//! Readers of the public feed at the gateway: who is let in, the ring's memory that is passed to them, and
//! over streams the feed itself; snapshots over either. All of it is written as fast as each reader reads.
//! They have no session, and the duty thread never hears of them. Called by [`super::service`].

mod live;
mod pace;
mod reader;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{SendFlags, send};
use touchline_protocol::feed::{FeedInput, FeedMemoryError};
use touchline_protocol::message::enums::{CloseReason, RejectReason};
use touchline_protocol::message::feed::FeedOpened;
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::message::stream::SessionClosed;
use touchline_protocol::shm::descriptors::send_with_descriptors;
use touchline_protocol::units::{FeedSequence, KeyId};

use super::peer::Peer;
use super::service::Gateway;
use crate::config::FeedSection;
use crate::feed::{ALIVE_MAX, FeedDesk, FromFeed, InTheWay, OF_KEY_MAX, Share, ToFeed};
use live::{Live, Reached};
use reader::{Close, Marks, Reader};

/// Bytes that are given to a socket at once.
const PIECE_BYTES: usize = 64 << 10;

/// Pieces that are given to readers per turn: so long sessions wait for readers at the most.
const PIECES_PER_TURN: usize = 8;

/// Bytes that the kernel keeps for a reader over a stream. More of them would not make a slow reader
/// faster, only older what it reads.
const KERNEL_BYTES: usize = 256 << 10;

/// How often it is printed that a reader waits for a snapshot, while it does.
const PRINT_WAITS_EVERY: Duration = Duration::from_secs(10);

/// What the engine's own user is known by, who needs no key.
const OWN_USER: KeyId = KeyId(0);

/// How many may read the feed at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReaderLimits {
    /// All readers.
    all: usize,
    /// Readers of one key; the engine's own user, who has no key, is not limited.
    per_key: usize,
}

impl ReaderLimits {
    /// As section `[feed]` says.
    #[must_use]
    pub const fn of(feed: &FeedSection) -> Self {
        let per_key = match feed.readers_per_key {
            0 => feed.readers.div_ceil(2),
            given => given,
        };
        Self { all: feed.readers, per_key }
    }
}

/// What a reader of the public feed wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FeedWish {
    /// Its key; 0 for the engine's own user.
    pub(super) key: KeyId,
    /// None over shared memory.
    pub(super) stream: Option<StreamTerms>,
}

/// What a reader of the public feed over a stream has said of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StreamTerms {
    /// The interval of heartbeats.
    pub(super) heartbeat: Duration,
    /// It takes heartbeats that say how far the feed is.
    pub(super) takes_position: bool,
}

/// All readers, and the desk that they are served from.
pub(super) struct Readers {
    desk: Option<(Arc<FeedDesk>, ReaderLimits)>,
    live: Option<Live>,
    readers: FxHashMap<usize, Reader>,
    /// Those who may have something to be sent, by turns.
    due: VecDeque<usize>,
    /// Readers over streams who had everything when the feed was here.
    caught_up: Vec<usize>,
    reached: Option<Reached>,
    /// When it was printed last that a reader waits for a snapshot.
    printed_waits: Option<Instant>,
}

impl Readers {
    /// For at most so many readers of a feed, if there is one.
    pub(super) fn new(
        desk: Option<(Arc<FeedDesk>, ReaderLimits)>,
    ) -> Result<Self, FeedMemoryError> {
        let live = match &desk {
            Some((desk, _)) => {
                let (memory, slots, _) = desk.memory();
                Some(Live::new(FeedInput::map(memory.as_fd(), slots)?))
            }
            None => None,
        };
        Ok(Self {
            live,
            desk,
            readers: FxHashMap::default(),
            due: VecDeque::new(),
            caught_up: Vec::new(),
            reached: None,
            printed_waits: None,
        })
    }

    pub(super) fn has(&self, ticket: usize) -> bool {
        self.readers.contains_key(&ticket)
    }

    /// True when there is something to do that no socket tells of.
    pub(super) fn has_work(&self) -> bool {
        !self.due.is_empty()
            || !self.caught_up.is_empty() && self.live.as_ref().map(Live::reached) != self.reached
            || self.desk.as_ref().is_some_and(|(desk, _)| desk.from_feed.has_mail())
    }

    /// True while there are deadlines to look at.
    pub(super) fn have_deadlines(&self) -> bool {
        self.readers.values().any(|reader| reader.is_stream() || reader.is_sending())
    }

    /// True while there are readers over streams.
    pub(super) fn have_streams(&self) -> bool {
        self.readers.values().any(Reader::is_stream)
    }

    /// True while one of them has something to take, and has taken of it in the time of the limit.
    pub(super) fn are_taking(&self, now: Instant, stall_limit: Duration) -> bool {
        let is_taking = |reader: &Reader| reader.is_stream() && reader.is_taking(now, stall_limit);
        self.readers.values().any(is_taking)
    }

    pub(super) fn progressed(&mut self, ticket: usize, now: Instant) {
        if let Some(reader) = self.readers.get_mut(&ticket) {
            reader.progressed(now);
        }
    }

    /// Counts nothing against anybody that was the gateway's own pause.
    pub(super) fn forgive(&mut self, lost: Duration, now: Instant) {
        self.readers.values_mut().for_each(|reader| reader.forgive(lost, now));
    }

    fn queue_up(&mut self, ticket: usize) {
        if let Some(reader) = self.readers.get_mut(&ticket)
            && !reader.is_queued
        {
            reader.is_queued = true;
            self.due.push_back(ticket);
        }
    }

    /// Those who had everything are to be looked at again.
    fn wake_caught_up(&mut self) {
        self.due.extend(self.caught_up.drain(..));
    }

    /// The readers of the oldest snapshot in the way that nobody takes fast enough.
    fn oldest_behind(&self, what: InTheWay) -> Vec<usize> {
        let mut takers = BTreeMap::<FeedSequence, Vec<(usize, bool)>>::new();
        for (&ticket, reader) in &self.readers {
            let is_meant = what == InTheWay::All || what == InTheWay::OfKey(reader.key);
            if let (true, Some((sequence, is_behind))) = (is_meant, reader.takes_snapshot()) {
                takers.entry(sequence).or_default().push((ticket, is_behind));
            }
        }
        let mut by_age = takers.into_values();
        let oldest = by_age.find(|takers| takers.iter().all(|(_, is_behind)| *is_behind));
        oldest.unwrap_or_default().into_iter().map(|(ticket, _)| ticket).collect()
    }

    fn found(&self, is_it: impl Fn(&Reader) -> bool) -> Vec<usize> {
        let found = self.readers.iter().filter(|(_, reader)| is_it(reader));
        found.map(|(ticket, _)| *ticket).collect()
    }
}

impl Gateway {
    /// A peer has proved who it is and wants the feed: the feed thread knows its key.
    pub(super) fn subscribe(&mut self, ticket: usize, key: KeyId) {
        let Some((desk, limits)) = &self.readers.desk else {
            return self.turn_away(ticket, RefusalReason::NoFeed, None);
        };
        match self.full_for(key, *limits) {
            None => desk.tell_feed(ToFeed::Admit { ticket, key }),
            Some(why) => {
                self.turn_away_because(ticket, RefusalReason::TooManySessions, None, Some(why));
            }
        }
    }

    /// Why there is no place for a reader of a key, who has just come and is counted already; none if there is.
    fn full_for(&self, key: KeyId, limits: ReaderLimits) -> Option<String> {
        let coming = self.peers.values().filter_map(Peer::wants_feed).map(|wish| wish.key);
        let all = self.readers.readers.values().map(|reader| reader.key).chain(coming);
        let (count, of_key) =
            all.fold((0, 0), |(count, of_key), one| (count + 1, of_key + usize::from(one == key)));
        if count > limits.all {
            Some(format!("there are {} already, by feed.readers", limits.all))
        } else if key != OWN_USER && of_key > limits.per_key {
            let most = limits.per_key;
            Some(format!("key {} has {most} already, by feed.readers_per_key", key.0))
        } else {
            None
        }
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
                FromFeed::Snapshot { ticket, snapshot } => self.answer(ticket, snapshot),
                FromFeed::SnapshotWaits(what) => self.make_way(what),
                FromFeed::Revoked { key } => self.key_revoked(key),
                FromFeed::Ended => {
                    self.readers.desk = None;
                    // Those over streams get what is left first.
                    let without = self.readers.found(|reader| !reader.is_stream());
                    self.close_readers(without, (CloseReason::FeedEnded, "the feed has ended"));
                    // Nobody judges their keys any more.
                    for ticket in self.coming(|_| true) {
                        self.turn_away(ticket, RefusalReason::NoFeed, None);
                    }
                }
            }
        }
        had_mail
    }

    fn let_in(&mut self, ticket: usize, desk: &Arc<FeedDesk>) {
        let Some(peer) = self.peers.remove(&ticket) else { return };
        let (Some(wish), Some(live)) = (peer.wants_feed(), &self.readers.live) else {
            return self.backend.forget(ticket);
        };
        let (memory, slots, incarnation) = desk.memory();
        let (log_id, sequence) = (self.options.log_id, live.published());
        let opened = FeedOpened { slots, incarnation, log_id, sequence, ..Default::default() };
        let opened = bytemuck::bytes_of(&opened);
        let socket = peer.socket();
        // Counted first: from its first look at the ring it is woken.
        let place = desk.reader(wish.stream.is_some());
        let reader = Reader::new(wish.key, Arc::clone(&socket), place, self.now);
        let is_told = match wish.stream {
            None => {
                self.readers.readers.insert(ticket, reader);
                send_with_descriptors(&socket, opened, &[memory]).is_ok()
            }
            Some(terms) => {
                let reader = reader.over_stream(sequence, terms, self.now);
                self.readers.readers.insert(ticket, reader);
                self.readers.queue_up(ticket);
                set_socket_send_buffer_size(&socket, KERNEL_BYTES).is_ok() && peer.write(opened)
            }
        };
        if !is_told {
            self.forget_reader(ticket);
        }
    }

    fn turn_away(&mut self, ticket: usize, reason: RefusalReason, reject: Option<RejectReason>) {
        let why = reject.map(|reject| format!("{reject:?}"));
        self.turn_away_because(ticket, reason, reject, why);
    }

    /// Says the reason before the socket is forgotten, which ends it.
    fn turn_away_because(
        &mut self,
        ticket: usize,
        reason: RefusalReason,
        reject: Option<RejectReason>,
        why: Option<String>,
    ) {
        let Some(peer) = self.peers.get(&ticket) else { return };
        peer.refuse(reason, reject);
        self.forget_peer(ticket);
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        self.refusals.print(&format!("refused a reader of the feed: {reason:?}{why}"));
    }

    fn key_revoked(&mut self, key: KeyId) {
        let of_key = |reader: &Reader| reader.key == key;
        let close = (CloseReason::KeyRevoked, "its key was revoked");
        self.close_readers(self.readers.found(of_key), close);
        // Those whose answer is on its way.
        for ticket in self.coming(|wish| wish.key == key) {
            self.turn_away(ticket, RefusalReason::Rejected, Some(RejectReason::UnknownKey));
        }
    }

    /// Peers that want the feed and have no answer yet.
    fn coming(&self, are_meant: impl Fn(FeedWish) -> bool) -> Vec<usize> {
        let wanted = |peer: &Peer| peer.wants_feed().is_some_and(&are_meant);
        let coming = self.peers.iter().filter(|(_, peer)| wanted(peer));
        coming.map(|(ticket, _)| *ticket).collect()
    }

    pub(super) fn reader_received(&mut self, ticket: usize, at: &Range<usize>) {
        let Some(reader) = self.readers.readers.get_mut(&ticket) else { return };
        match (reader.received(self.backend.bytes(at), self.now), &self.readers.desk) {
            (Ok(true), Some((desk, _))) => {
                desk.tell_feed(ToFeed::Snapshot { ticket, key: reader.key });
            }
            (Ok(_), _) => {}
            (Err(close), _) => self.close_readers(vec![ticket], close),
        }
    }

    fn answer(&mut self, ticket: usize, snapshot: Arc<Share>) {
        if let Some(reader) = self.readers.readers.get_mut(&ticket) {
            reader.answer(snapshot, self.now);
            self.readers.wake_caught_up();
            self.readers.queue_up(ticket);
        }
    }

    /// Somebody waits for a snapshot, and there is no room for it: the readers of the oldest are closed if all of
    /// them are too slow for that.
    fn make_way(&mut self, what: InTheWay) {
        let printed = self.readers.printed_waits;
        if printed.is_none_or(|at| self.now.duration_since(at) >= PRINT_WAITS_EVERY) {
            self.readers.printed_waits = Some(self.now);
            self.print_waits(what);
        }
        let close = (CloseReason::ReaderStalled, "it takes its snapshot slowly, and another waits");
        self.close_readers(self.readers.oldest_behind(what), close);
    }

    fn print_waits(&mut self, what: InTheWay) {
        self.refusals.print(&match what {
            InTheWay::All => format!(
                "a reader of the feed waits for a snapshot: {ALIVE_MAX} are with others, which take them slowly"
            ),
            InTheWay::OfKey(key) => format!(
                "a reader of the feed waits for a snapshot: its key {key} has {OF_KEY_MAX} already, and takes them slowly"
            ),
        });
    }

    /// The socket has taken all that it was given.
    pub(super) fn reader_sent(&mut self, ticket: usize, buffer: Vec<u8>) {
        if let Some(reader) = self.readers.readers.get_mut(&ticket) {
            reader.sent(buffer, self.now);
            // By turns: a reader that is as fast as the gateway does not keep it from others.
            self.readers.queue_up(ticket);
        }
    }

    /// Gives readers what is next for each; gives whether there was anything.
    pub(super) fn serve_readers(&mut self) -> bool {
        let reached = self.readers.live.as_ref().map(Live::reached);
        if reached != self.readers.reached {
            self.readers.reached = reached;
            self.readers.wake_caught_up();
        }
        let mut has_sent = false;
        for _ in 0..self.readers.due.len().min(PIECES_PER_TURN) {
            let Some(ticket) = self.readers.due.pop_front() else { break };
            has_sent |= self.serve_reader(ticket);
        }
        has_sent
    }

    fn serve_reader(&mut self, ticket: usize) -> bool {
        // The feed first: what it has read was appended before.
        let feed = self.log.feed();
        let marks = Marks { feed, durable: self.durable(), appended: self.log.appended() };
        let Readers { readers, live, caught_up, .. } = &mut self.readers;
        let Some(reader) = readers.get_mut(&ticket) else { return false };
        reader.is_queued = false;
        // The end first: behind it nothing is published any more.
        let has_ended = live.as_ref().is_none_or(Live::has_ended);
        let Some(piece) = reader.next_piece(live.as_mut(), marks, self.now) else {
            if reader.is_stream() && !reader.is_sending() {
                if has_ended {
                    self.end_reader(ticket, CloseReason::FeedEnded);
                } else {
                    reader.is_queued = true;
                    caught_up.push(ticket);
                }
            }
            return false;
        };
        let mut happened = Vec::new();
        self.backend.send(ticket, piece, &mut happened);
        for one in happened {
            self.take(one);
        }
        true
    }

    /// Heartbeats, and readers that are silent or do not read.
    pub(super) fn tick_readers(&mut self) {
        self.readers.wake_caught_up();
        let (now, limit) = (self.now, self.options.reader_stall);
        let ended = self.readers.readers.iter_mut().filter_map(|(&ticket, reader)| {
            let unread = if reader.is_sending() { self.backend.unread(ticket) } else { None };
            Some((ticket, reader.tick(now, limit, unread)?))
        });
        for (ticket, close) in ended.collect::<Vec<_>>() {
            self.close_readers(vec![ticket], close);
        }
    }

    fn close_readers(&mut self, tickets: Vec<usize>, (reason, why): Close) {
        for ticket in tickets {
            self.refusals.print(&format!("closed a reader of the feed: {why}"));
            self.end_reader(ticket, reason);
        }
    }

    /// Says why, if nothing is half said, and forgets the reader.
    fn end_reader(&mut self, ticket: usize, reason: CloseReason) {
        let reader = self.readers.readers.get(&ticket).filter(|reader| reader.is_stream());
        if let Some(socket) = reader.and_then(Reader::free_socket) {
            let closed = SessionClosed { reason: reason.to_wire(), ..Default::default() };
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            // A socket without room for it is one that nobody reads.
            let _told = send(socket, bytemuck::bytes_of(&closed), flags);
        }
        self.forget_reader(ticket);
    }

    /// Forgets a reader; dropping its socket closes it.
    pub(super) fn forget_reader(&mut self, ticket: usize) {
        let Some(reader) = self.readers.readers.remove(&ticket) else { return };
        self.backend.forget(ticket);
        if let (true, Some((desk, _))) = (reader.is_owed_snapshot(), &self.readers.desk) {
            desk.tell_feed(ToFeed::NoSnapshot { ticket });
        }
    }
}

#[cfg(test)]
mod tests;
