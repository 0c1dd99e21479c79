//! The receiving half of a session: replies in order, at the level that the owner asked for.

use super::{Acknowledgement, Line};
use crate::message::decode::{DecodeError, EventBuffer, disclose};
use crate::message::event::{ENVELOPE_UNSOLICITED, Envelope};
use crate::ring::{Consumer, MessageBuffer, RingFault, SharedInput, Signals};
use crate::shm::SharedReadOnly;
use crate::units::Position;
use crate::wait::{ParkingLine, WaitStrategy, Waiter};
use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;
use thiserror::Error;

/// Replies held back for the durable watermark. When they are as many, the ring is not read and the
/// engine in turn takes no more commands of the session.
const HELD_MAX: usize = 65_536;

/// Longest sleep before the socket is looked at again: an engine that is gone rings no bell.
const LINE_CHECK: Duration = Duration::from_millis(100);

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
}

/// The log's watermarks, as the engine publishes them in its control page.
pub(super) struct Watermarks {
    pub(super) durable: SharedReadOnly<AtomicU64>,
    pub(super) durable_event: SharedReadOnly<AtomicU32>,
}

/// Receives replies; one thread at a time.
pub struct Receiver {
    pub(super) input: Consumer<SharedInput>,
    pub(super) signals: Signals,
    pub(super) line: Arc<Line>,
    pub(super) watermarks: Watermarks,
    pub(super) acknowledgement: Acknowledgement,
    pub(super) wait: WaitStrategy,
    pub(super) held: VecDeque<Reply>,
    pub(super) buffer: Box<MessageBuffer>,
    /// The keeper rings whether or not somebody is parked, so this flag is read by nobody.
    pub(super) parked_for_durable: AtomicU32,
}

impl Receiver {
    /// The next reply, if there is one that may be handed on.
    ///
    /// # Errors
    /// See [`ReceiveError`]. Replies that came before the end are handed out first; those that are
    /// not durable by then never are.
    pub fn poll(&mut self) -> Result<Option<Reply>, ReceiveError> {
        if self.acknowledgement == Acknowledgement::Appended {
            return self.take();
        }
        while self.held.len() < HELD_MAX {
            match self.take() {
                Ok(Some(reply)) => self.held.push_back(reply),
                Ok(None) => break,
                Err(error) => {
                    return self.next_durable().map_or(Err(error), |reply| Ok(Some(reply)));
                }
            }
        }
        Ok(self.next_durable())
    }

    fn next_durable(&mut self) -> Option<Reply> {
        let first = self.held.front()?;
        if first.envelope.position > self.durable() { None } else { self.held.pop_front() }
    }

    fn take(&mut self) -> Result<Option<Reply>, ReceiveError> {
        let Some(length) = self.input.poll(&mut self.buffer)? else {
            // What the engine wrote before it closed is read first: look again after the flag.
            if self.line.is_closed() && !self.input.has_messages() {
                return Err(ReceiveError::Disconnected);
            }
            return Ok(None);
        };
        let (envelope, event) = disclose(self.buffer.bytes(length))?;
        Ok(Some(Reply { envelope, event }))
    }

    /// Up to where the log is on disk.
    #[must_use]
    pub fn durable(&self) -> Position {
        // The pair is the keeper's release store of the watermark.
        Position(self.watermarks.durable.view().load_acquire())
    }

    /// Waits until a reply may be there, at most for `limit`. May return early.
    pub fn wait(&mut self, limit: Duration) {
        let mut waiter = Waiter::new(self.wait);
        let first_held = self.held.front().map(|reply| reply.envelope.position);
        let (input, durable) = (&self.input, &self.watermarks.durable);
        let ready = || {
            input.has_messages()
                || first_held.is_some_and(|first| Position(durable.view().load_acquire()) >= first)
        };
        let ring = self.signals.line();
        let keeper =
            ParkingLine::new(&self.parked_for_durable, self.watermarks.durable_event.view());
        let slice = limit.min(LINE_CHECK);
        let found = match first_held {
            None => waiter.wait_until(iter::once(ring), slice, ready),
            Some(_) => waiter.wait_until([ring, keeper].into_iter(), slice, ready),
        };
        if !found {
            self.line.check();
        }
    }

    /// False once the engine has closed the connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.line.check()
    }
}
