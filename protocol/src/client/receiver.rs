//! The receiving half of a session: replies in order, at the level that the owner asked for.

use super::rings::RingReceiver;
use super::stream::StreamReceiver;
use crate::framing::FrameFault;
use crate::message::decode::{DecodeError, EventBuffer};
use crate::message::enums::CloseReason;
use crate::message::event::{ENVELOPE_REPLAYED, ENVELOPE_TERMINAL, ENVELOPE_UNSOLICITED, Envelope};
use crate::message::stream::{BalanceState, OrderState, ReplayEnd, StateEnd};
use crate::ring::RingFault;
use crate::shm::SharedReadOnly;
use crate::sync::ReadOnlyU32;
use crate::units::Position;
use crate::wait::sleep_while;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use thiserror::Error;

/// A reply or an unsolicited event.
#[derive(Clone, Copy, Debug, Default)]
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
    /// The engine closed the connection or is gone, and all its replies are read. Over a stream an engine
    /// of which nothing came for three intervals of heartbeats is gone.
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
    /// Over a stream so much came besides replies that no more of it is kept. What came stays to be taken, and what
    /// comes behind it is read once some of that has been; until then no reply comes.
    #[error(
        "the engine has said {NOTICES_MAX} things besides replies that nobody has taken (Receiver::next_notice)"
    )]
    Notices,
}

/// So much is kept of what comes besides replies until the caller takes it: the states of an account that are asked for
/// one after the other have some thousand parts each, and an engine may say such things unasked.
pub(super) const NOTICES_MAX: usize = 65_536;

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
    /// The engine ends the connection; `None` for a reason that this client does not know. By this client
    /// itself it is told with [`CloseReason::Silent`], of an engine that is out of reach.
    Closed(Option<CloseReason>),
}

/// The bells by which the engine wakes a receiver. For programs whose receiving thread sleeps elsewhere, in
/// an event loop: a second thread waits here in its place and wakes it.
pub struct Bell {
    pub(super) doorbell: SharedReadOnly<AtomicU32>,
    /// `None` if no reply is held back for the disk: a thread that waits on one bell can sleep soundly on
    /// every kernel, one that waits on several not.
    pub(super) disk: Option<DiskBells>,
}

/// The bells of a session that waits for the disk.
pub(super) struct DiskBells {
    /// Rung for each write of the log to disk, whoever waits.
    pub(super) durable_event: SharedReadOnly<AtomicU32>,
    /// Rung by this process ([`Receiver::ring`]).
    pub(super) own: Arc<AtomicU32>,
}

/// How often the bells had been rung.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rings {
    doorbell: u32,
    durable: u32,
    own: u32,
}

impl Bell {
    /// How often it was rung. Take it before the look for replies that the wait follows.
    #[must_use]
    pub fn rings(&self) -> Rings {
        // SYNC: the acquire loads pair with the fence in `wake_if_parked` and with the release addition in
        // `EventCounter::advance`: who sees a ring sees what it was rung for.
        let (durable, own) = self.disk.as_ref().map_or((0, 0), |disk| {
            let own = ReadOnlyU32::new(&disk.own).load_acquire();
            (disk.durable_event.view().load_acquire(), own)
        });
        Rings { doorbell: self.doorbell.view().load_acquire(), durable, own }
    }

    /// Sleeps until it is rung more often than `seen`, at most for `limit`. May return early. Writes of the
    /// log to disk, of which there may be thousands in a second, end the sleep only with `hears_disk`:
    /// while replies are held back for them ([`Receiver::holds_back`]) and nobody else looks.
    pub fn wait(&self, seen: Rings, hears_disk: bool, limit: Duration) {
        let disk = self.disk.as_ref();
        let own = disk.map(|disk| (ReadOnlyU32::new(&disk.own), seen.own));
        let durable = disk.filter(|_| hears_disk);
        let durable = durable.map(|disk| (disk.durable_event.view(), seen.durable));
        let doorbell = (self.doorbell.view(), seen.doorbell);
        sleep_while([Some(doorbell), own, durable].into_iter().flatten(), limit);
    }
}

/// Receives replies; one thread at a time. Over a stream, and over shared memory where
/// [`ClientOptions::heartbeat_seconds`](super::ClientOptions) is not 0, [`poll`](Self::poll) or [`wait`](Self::wait)
/// must be called often, because they answer for the connection's heartbeats.
pub struct Receiver(pub(super) Inlet);

/// What replies come over.
pub(super) enum Inlet {
    Rings(Box<RingReceiver>),
    Stream(Box<StreamReceiver>),
}

impl Receiver {
    /// The next reply, if there is one that may be handed on. Over a stream none is given either behind some
    /// hundred notices that have come in front of it: the next poll goes on, and [`wait`](Self::wait) returns
    /// at once.
    ///
    /// # Errors
    /// See [`ReceiveError`]. Replies that came before the end are handed out first; those that are
    /// not durable 0.3 s behind it, behind a logout as long as the engine lives, over a stream at it, never are, if
    /// that was asked for. An engine that stands still for 10 s, over a stream for three heartbeats, is given up.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Reply>, ReceiveError> {
        let mut reply = Reply::default();
        Ok(self.poll_into(&mut reply)?.then_some(reply))
    }

    /// As [`poll`](Self::poll), into a reply that is there already, and that stays as it is if there is none, which
    /// false says, or an error. For who is in a hurry: a reply of some 180 bytes is not moved.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[inline]
    pub fn poll_into(&mut self, reply: &mut Reply) -> Result<bool, ReceiveError> {
        match &mut self.0 {
            Inlet::Rings(rings) => rings.poll_into(reply),
            Inlet::Stream(stream) => stream.poll_into(reply),
        }
    }

    /// What came besides replies up to the last one that was polled, oldest first. Over shared memory
    /// there is none. Whoever asks for a replay or a state has to take it, and all others do well to: of 65,536 that
    /// nobody has taken the next poll that finds one more tells ([`ReceiveError::Notices`]), so that no engine fills
    /// the memory of who does not look.
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

    /// What another thread may sleep on in this one's place, with [`Receiver::arm`]; `None` over a stream.
    #[must_use]
    pub fn bell(&self) -> Option<Bell> {
        match &self.0 {
            Inlet::Rings(rings) => Some(rings.bell()),
            Inlet::Stream(_) => None,
        }
    }

    /// Has the engine ring the [`Bell`] for what comes from now on, until [`Receiver::disarm`]. True if
    /// something is there already, for which it may not ring. Nobody may [`wait`](Self::wait) meanwhile; who owes
    /// heartbeats goes on to [`poll`](Self::poll) once in each interval. Over a stream nothing.
    #[must_use]
    pub fn arm(&self) -> bool {
        match &self.0 {
            Inlet::Rings(rings) => rings.arm(),
            Inlet::Stream(_) => false,
        }
    }

    /// True if replies are there that wait for the log to be on disk.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        match &self.0 {
            Inlet::Rings(rings) => rings.holds_back(),
            Inlet::Stream(_) => false,
        }
    }

    /// Rings the [`Bell`] of a session that waits for the disk from within this process: who sleeps on it
    /// should look again at what to wait for. Any other session's is not rung.
    pub fn ring(&self) {
        if let Inlet::Rings(rings) = &self.0 {
            rings.ring();
        }
    }

    /// The engine need not ring: this thread looks by itself.
    pub fn disarm(&self) {
        if let Inlet::Rings(rings) = &self.0 {
            rings.disarm();
        }
    }

    /// True once the connection over rings was given up because the engine stands still. It has not closed it: should it
    /// go on, it may take what it was sent until there is another connection of the same session.
    #[must_use]
    pub fn was_silent(&self) -> bool {
        match &self.0 {
            Inlet::Rings(rings) => rings.was_silent,
            Inlet::Stream(_) => false,
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
