//! The client's end of a session: sends commands under its header, reads replies when the test wants.

use touchline_protocol::client::ClientCommand;
use touchline_protocol::message::command::{CommandHeader, NewOrder, PlaceOrderList};
use touchline_protocol::message::decode::{Event, EventBuffer, disclose};
use touchline_protocol::message::enums::{OrderType, RejectReason, Side, TimeInForce};
use touchline_protocol::message::event::{
    ENVELOPE_TERMINAL, ENVELOPE_UNSOLICITED, Envelope, Rejected, SessionStarted,
};
use touchline_protocol::ring::{MessageBuffer, SessionEnd};
use touchline_protocol::units::{Epoch, KeyId, Sequence, SessionId, SymbolId};

/// One message of the reply ring.
pub(crate) struct Reply {
    pub(crate) envelope: Envelope,
    event: EventBuffer,
}

impl Reply {
    pub(crate) fn event(&self) -> Event<'_> {
        self.event.event().unwrap()
    }

    pub(crate) const fn is_terminal(&self) -> bool {
        self.envelope.flags & ENVELOPE_TERMINAL != 0
    }

    pub(crate) const fn is_unsolicited(&self) -> bool {
        self.envelope.flags & ENVELOPE_UNSOLICITED != 0
    }

    pub(crate) fn rejection(&self) -> Option<Rejected> {
        match self.event() {
            Event::Rejected(rejected) => Some(*rejected),
            _ => None,
        }
    }

    pub(crate) fn reason(&self) -> Option<RejectReason> {
        self.rejection().and_then(|rejected| RejectReason::from_wire(rejected.reason))
    }
}

/// A session's client.
pub(crate) struct Client {
    pub(crate) end: SessionEnd,
    key: KeyId,
    session: SessionId,
    epoch: Epoch,
    sequence: u64,
    buffer: MessageBuffer,
    /// What it read that is no reply.
    told: Vec<Reply>,
}

impl Client {
    pub(crate) fn new(end: SessionEnd, started: &SessionStarted) -> Self {
        Self {
            end,
            key: started.key_id,
            session: started.session,
            epoch: started.epoch,
            sequence: started.last_sequence.0,
            buffer: MessageBuffer::new(),
            told: Vec::new(),
        }
    }

    /// The session and its epoch.
    pub(crate) const fn identity(&self) -> (SessionId, Epoch) {
        (self.session, self.epoch)
    }

    /// The sequence of the last command.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The correlation that belongs to a sequence of this session.
    pub(crate) const fn correlation(&self, sequence: u64) -> u64 {
        (self.session.0 as u64) << 32 | (sequence ^ 0x5a5a)
    }

    /// What an honest command of this session with that sequence carries.
    pub(crate) fn header(&self, sequence: u64) -> CommandHeader {
        CommandHeader {
            correlation: self.correlation(sequence),
            sequence: Sequence(sequence),
            key_id: self.key,
            session: self.session,
            epoch: self.epoch,
            ..Default::default()
        }
    }

    /// Sends a command under the next sequence. False, and nothing sent, when the ring is full.
    pub(crate) fn try_send<C: ClientCommand>(&mut self, mut command: C) -> bool {
        *command.command_mut() = self.header(self.sequence + 1);
        let sent = self.end.output.try_push(command.as_bytes()).is_ok();
        self.sequence += u64::from(sent);
        sent
    }

    /// Sends a command under the next sequence, which is given back.
    pub(crate) fn send<C: ClientCommand>(&mut self, command: C) -> u64 {
        assert!(self.try_send(command), "the request ring is full");
        self.sequence
    }

    /// Sends bytes as they are.
    pub(crate) fn push(&mut self, message: &[u8]) {
        self.end.output.try_push(message).unwrap();
    }

    /// Reads at most `limit` replies, and keeps what comes with them and is none.
    pub(crate) fn read_some(&mut self, limit: usize) -> Vec<Reply> {
        let mut replies = Vec::new();
        while replies.len() < limit
            && let Some(length) = self.end.input.poll(&mut self.buffer).unwrap()
        {
            let (envelope, event) = disclose(self.buffer.bytes(length)).unwrap();
            let reply = Reply { envelope, event };
            if reply.is_unsolicited() { &mut self.told } else { &mut replies }.push(reply);
        }
        replies
    }

    /// All that it read and that is no reply, reading what is there.
    pub(crate) fn told(&mut self) -> Vec<Reply> {
        let replies = self.read();
        assert_eq!(replies.len(), 0, "replies are there too");
        std::mem::take(&mut self.told)
    }

    /// As [`Client::told`], of what was read before.
    pub(crate) fn told_so_far(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.told)
    }

    /// Reads at most `limit` messages that are no replies; there must be no others.
    pub(crate) fn read_some_told(&mut self, limit: usize) {
        for _ in 0..limit {
            let Some(length) = self.end.input.poll(&mut self.buffer).unwrap() else { return };
            let (envelope, event) = disclose(self.buffer.bytes(length)).unwrap();
            self.told.push(Reply { envelope, event });
        }
    }

    /// Reads all that is there.
    pub(crate) fn read(&mut self) -> Vec<Reply> {
        self.read_some(usize::MAX)
    }

    /// Reads the one reply that is to be there.
    pub(crate) fn read_one(&mut self) -> Reply {
        let mut replies = self.read();
        assert_eq!(replies.len(), 1);
        replies.remove(0)
    }

    /// Reads all that is there; gives the number of terminal replies.
    pub(crate) fn count_answers(&mut self) -> u64 {
        self.read().iter().map(|reply| u64::from(reply.is_terminal())).sum()
    }
}

/// One to sell a whole unit of the first symbol at 110, with a stop at 90.
pub(crate) fn list() -> PlaceOrderList {
    const WHOLE: i64 = 100_000_000;
    PlaceOrderList {
        symbol: SymbolId(0),
        side: Side::Sell.to_wire(),
        stop_limit_time_in_force: TimeInForce::Gtc.to_wire(),
        quantity: WHOLE,
        price: 110 * WHOLE,
        stop_price: 90 * WHOLE,
        stop_limit_price: 90 * WHOLE,
        ..Default::default()
    }
}

/// A LIMIT order; price and quantity in whole units.
pub(crate) fn limit(symbol: u32, side: Side, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        symbol: SymbolId(symbol),
        side: side.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: price * 100_000_000,
        quantity: quantity * 100_000_000,
        ..Default::default()
    }
}
