//! Whoever the duty thread takes commands from: sessions with rings of their own, and those that share the
//! gateway's. Called by [`super`] and its parts, which need not know which is which.

use super::connection::Connection;
use super::streams::Streams;
use crate::mailbox::Detail;
use crate::quarantine::Quarantine;
use crate::rate::{Debts, RateLimit};
use std::iter;
use std::time::Duration;
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::event::{ENVELOPE_TERMINAL, Envelope, Rejected};
use touchline_protocol::units::{AccountId, Epoch, Position, SessionId};
use touchline_protocol::wait::{LOOKS, ParkingLine};

/// Longest sleep: so often the heartbeat moves when nothing else does.
pub(super) const IDLE_LIMIT: Duration = Duration::from_millis(500);
/// Longest sleep while a message or an end of a connection waits for log space, or the gateway's messages for it to
/// take its replies: nobody rings.
pub(super) const STARVED_LIMIT: Duration = LOOKS;
/// Longest sleep while the messages of one session wait for it to read its replies, or for its allowance: neither
/// rings, but all others do. So it is longer than one in place of which a thread looks: that yields beside whoever
/// computes, for which all others would wait.
const KEPT_LIMIT: Duration = Duration::from_micros(1500);
const _: () = assert!(KEPT_LIMIT.as_nanos() > LOOKS.as_nanos());

/// On which terms a client is served.
pub(super) struct Terms {
    /// The account of which it takes all events.
    pub(super) account: Option<AccountId>,
    /// The account whose side of a transaction it is told; all sides without one.
    pub(super) side: Option<AccountId>,
    /// How many commands it may send.
    pub(super) rate: RateLimit,
    /// It waits until what it is told is on disk.
    pub(super) awaits_disk: bool,
    /// How much it is told of what it sends.
    pub(super) detail: Detail,
}

/// One of the clients; good until the next one is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientIndex {
    /// It has rings of its own.
    Ring(usize),
    /// It shares the gateway's.
    Stream(usize),
}

/// All of them.
pub(super) struct Clients {
    pub(super) connections: Vec<Connection>,
    pub(super) streams: Streams,
    pub(super) debts: Debts,
    /// Whose commands are refused.
    pub(super) quarantine: Quarantine,
}

impl Clients {
    /// The client that is the present connection of a session.
    pub(super) fn find(&self, session: SessionId, epoch: Epoch) -> Option<ClientIndex> {
        self.of_session(session).filter(|&client| self.identity(client) == (session, epoch))
    }

    /// The client of a session, whatever its epoch.
    pub(super) fn of_session(&self, session: SessionId) -> Option<ClientIndex> {
        if let Some(index) = self.streams.find(session) {
            return Some(ClientIndex::Stream(index));
        }
        let index = self.connections.iter().position(|one| one.session() == session)?;
        Some(ClientIndex::Ring(index))
    }

    /// Session and epoch of every client.
    pub(super) fn identities(&self) -> impl Iterator<Item = (SessionId, Epoch)> {
        let rings = self.connections.iter().map(|one| (one.session(), one.epoch()));
        rings.chain(self.streams.iter().map(|one| (one.session, one.epoch)))
    }

    /// Session and epoch.
    #[inline]
    pub(super) fn identity(&self, client: ClientIndex) -> (SessionId, Epoch) {
        match client {
            ClientIndex::Ring(index) => {
                let connection = &self.connections[index];
                (connection.session(), connection.epoch())
            }
            ClientIndex::Stream(index) => {
                let stream = self.streams.get(index);
                (stream.session, stream.epoch)
            }
        }
    }

    /// True if the client may send one more command now, false if it is to be refused; it is counted as that.
    #[inline]
    pub(super) fn admits(&mut self, client: ClientIndex, now_ns: u64) -> bool {
        self.rate(client).admits(now_ns)
    }

    /// Counts a message of the client's that is refused by who sends it, or because nobody can read it.
    pub(super) fn count_refusal(&mut self, client: ClientIndex, now_ns: u64) {
        self.rate(client).count_refusal(now_ns);
    }

    /// The client is about to be removed: what it has still to pay its session owes.
    pub(super) fn keep_debt(&mut self, client: ClientIndex, now_ns: u64) {
        let (session, rate) = (self.identity(client).0, *self.rate(client));
        self.debts.keep(session, rate, now_ns);
    }

    /// How much the client is told of what it sends.
    #[inline]
    pub(super) fn detail(&self, client: ClientIndex) -> Detail {
        match client {
            ClientIndex::Ring(index) => self.connections[index].detail(),
            ClientIndex::Stream(index) => self.streams.get(index).detail,
        }
    }

    #[inline]
    fn rate(&mut self, client: ClientIndex) -> &mut RateLimit {
        match client {
            ClientIndex::Ring(index) => self.connections[index].rate(),
            ClientIndex::Stream(index) => &mut self.streams.get_mut(index).rate,
        }
    }

    /// Stages one event of the transaction that the client's command caused. A terminal reply always
    /// fits, by the credit; another may not.
    #[inline]
    pub(super) fn reply(&mut self, client: ClientIndex, envelope: &Envelope, event: &[u8]) {
        match client {
            ClientIndex::Ring(index) => self.connections[index].reply(envelope, event),
            ClientIndex::Stream(index) => self.streams.reply(index, envelope, event),
        }
    }

    /// What the client has set off goes on as pending work, and is answered when that ends. Whose rings are
    /// shared waits for it before it sends anything else.
    pub(super) fn answers_later(&mut self, client: ClientIndex) {
        if let ClientIndex::Ring(index) = client {
            self.connections[index].answers_later();
        }
    }

    /// One of those was answered.
    pub(super) fn answered_later(&mut self, client: ClientIndex) {
        if let ClientIndex::Ring(index) = client {
            self.connections[index].answered_later();
        }
    }

    /// Lets the client see what is staged: the replies of the transaction that ends at `position`.
    #[inline]
    pub(super) fn publish(&mut self, client: ClientIndex, position: Position) {
        match client {
            ClientIndex::Ring(index) => self.connections[index].publish(position),
            ClientIndex::Stream(index) => self.streams.publish(index, position),
        }
    }

    /// What this thread is woken by when they sleep: whose messages wait for something else wakes nobody.
    pub(super) fn parking_lines(&self) -> impl Iterator<Item = ParkingLine<'_>> + Clone {
        let heard = self.connections.iter().filter(|one| !one.is_kept_waiting());
        iter::once(self.streams.parking_line()).chain(heard.map(Connection::parking_line))
    }

    /// How long the thread may sleep on those lines.
    pub(super) fn sleep_limit(&self) -> Duration {
        if self.streams.is_starved() {
            STARVED_LIMIT
        } else if self.connections.iter().any(Connection::is_kept_waiting) {
            KEPT_LIMIT
        } else {
            IDLE_LIMIT
        }
    }

    /// While there is nothing to do: so that the next replies are with their readers sooner.
    pub(super) fn bring_near(&mut self) {
        self.connections.iter_mut().for_each(Connection::bring_near);
        self.streams.bring_near();
    }

    pub(super) fn reject(
        &mut self,
        client: ClientIndex,
        envelope: Envelope,
        reason: RejectReason,
        detail: u32,
        template_id: u16,
    ) {
        let rejected =
            Rejected { reason: reason.to_wire(), template_id, detail, ..Default::default() };
        let envelope = Envelope { flags: ENVELOPE_TERMINAL, ..envelope };
        self.reply(client, &envelope, bytemuck::bytes_of(&rejected));
        self.publish(client, envelope.position);
    }
}
