//! The receiving half of a session: replies in order, at the level that the owner asked for.

use super::rings::RingReceiver;
use super::stream::StreamReceiver;
use crate::framing::FrameFault;
use crate::message::decode::{DecodeError, EventBuffer};
use crate::message::enums::CloseReason;
use crate::message::event::{ENVELOPE_REPLAYED, ENVELOPE_TERMINAL, ENVELOPE_UNSOLICITED, Envelope};
use crate::message::stream::{BalanceState, OrderState, ReplayEnd, StateEnd};
use crate::ring::RingFault;
use crate::units::Position;
use std::time::Duration;
use thiserror::Error;

/// A reply or an unsolicited event.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// What it belongs to.
    pub envelope: Envelope,
    /// What happened.
    pub event: EventBuffer,
}

impl Reply {
    /// True for an event that answers no command: what others did to orders of the session, or to
    /// those of its account if that was asked for. Correlation and sequence are 0 then.
    #[must_use]
    pub const fn is_unsolicited(&self) -> bool {
        self.envelope.flags & ENVELOPE_UNSOLICITED != 0
    }

    /// True for what was read from the log because of a [`Sender::request_replay`](super::Sender).
    #[must_use]
    pub const fn is_replayed(&self) -> bool {
        self.envelope.flags & ENVELOPE_REPLAYED != 0
    }

    /// True for the one last reply to a command.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        self.envelope.flags & ENVELOPE_TERMINAL != 0
    }
}

/// Why no further reply comes. Commands without a terminal reply are in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReceiveError {
    /// The engine closed the connection or is gone, and all its replies are read.
    #[error("the engine closed the connection")]
    Disconnected,
    /// The reply ring cannot be right.
    #[error("reply ring: {0}")]
    Ring(#[from] RingFault),
    /// A reply is not a message of this protocol.
    #[error("reply: {0}")]
    Decode(#[from] DecodeError),
    /// What the engine sends over the socket are no messages.
    #[error("replies: {0}")]
    Frame(#[from] FrameFault),
}

/// What the engine says on a stream besides replies and events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A replay has ended.
    Replayed(ReplayEnd),
    /// A balance, because the state was asked for.
    Balance(BalanceState),
    /// An open order, likewise.
    Order(OrderState),
    /// The state is complete.
    State(StateEnd),
    /// The engine ends the connection; `None` for a reason that this client does not know.
    Closed(Option<CloseReason>),
}

/// Receives replies; one thread at a time. Over a stream [`poll`](Self::poll) or [`wait`](Self::wait)
/// must be called often, because they answer for the connection's heartbeats.
pub struct Receiver(pub(super) Inlet);

/// What replies come over.
pub(super) enum Inlet {
    Rings(Box<RingReceiver>),
    Stream(Box<StreamReceiver>),
}

impl Receiver {
    /// The next reply, if there is one that may be handed on.
    ///
    /// # Errors
    /// See [`ReceiveError`]. Replies that came before the end are handed out first; those that are
    /// not durable by then never are, if that was asked for.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Reply>, ReceiveError> {
        match &mut self.0 {
            Inlet::Rings(rings) => rings.poll(),
            Inlet::Stream(stream) => stream.poll(),
        }
    }

    /// What came besides replies up to the last one that was polled, oldest first. Over shared memory
    /// there is none.
    pub fn next_notice(&mut self) -> Option<Notice> {
        match &mut self.0 {
            Inlet::Rings(_) => None,
            Inlet::Stream(stream) => stream.next_notice(),
        }
    }

    /// Up to where the log is on disk; over a stream as of the engine's last heartbeat, or of the last
    /// reply at the durable level.
    #[must_use]
    pub fn durable(&self) -> Position {
        match &self.0 {
            Inlet::Rings(rings) => rings.durable(),
            Inlet::Stream(stream) => stream.durable(),
        }
    }

    /// Waits until a reply may be there, at most for `limit`. May return early.
    pub fn wait(&mut self, limit: Duration) {
        match &mut self.0 {
            Inlet::Rings(rings) => rings.wait(limit),
            Inlet::Stream(stream) => stream.wait(limit),
        }
    }

    /// False once the engine has closed the connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        match &self.0 {
            Inlet::Rings(rings) => rings.is_connected(),
            Inlet::Stream(stream) => stream.is_connected(),
        }
    }
}
