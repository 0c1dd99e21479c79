//! Mail between threads of the engine: rare, so it may lock and allocate. Its reader looks at one atomic
//! number per turn and takes the lock only when there is mail. Here are the letters between duty thread and
//! gateway.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use touchline_protocol::message::ORDER_FILLED_MINOR;
use touchline_protocol::message::command::{LOGON_BRIEF, LOGON_TERSE, Logon};
use touchline_protocol::message::enums::{CloseReason, RejectReason};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::message::handshake::Hello;
use touchline_protocol::ring::SessionEnd;
use touchline_protocol::units::{AccountId, Epoch, Position, SessionId};

/// A queue of letters in one direction.
#[derive(Debug)]
pub struct Mailbox<T> {
    letters: Mutex<VecDeque<T>>,
    waiting: AtomicUsize,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self { letters: Mutex::new(VecDeque::new()), waiting: AtomicUsize::new(0) }
    }
}

impl<T> Mailbox<T> {
    /// Puts a letter in; the caller wakes the reader.
    pub fn put(&self, letter: T) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push_back(letter);
        // SYNC: the letter itself is handed over by the lock; the count only says when to take it.
        self.waiting.store(letters.len(), Ordering::Release);
    }

    /// Letters, at this moment.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// True when there may be a letter.
    pub fn has_mail(&self) -> bool {
        self.waiting() != 0
    }

    /// Takes the oldest letter.
    pub fn take(&self) -> Option<T> {
        if !self.has_mail() {
            return None;
        }
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        let letter = letters.pop_front();
        self.waiting.store(letters.len(), Ordering::Release);
        letter
    }
}

/// What a connection asks for that is no part of its logon, which is logged: how it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// It waits until what it is told is on disk.
    pub awaits_disk: bool,
    /// How much it is told of what it sends.
    pub detail: Detail,
}

/// How much a session is told in reply to its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// All events.
    #[default]
    Whole,
    /// No `OrderAccepted` in front of an order's other events (`LOGON_BRIEF`).
    Brief,
    /// As brief, and of an order that rests or a cancel a single `OrderOpened` or `OrderClosed`: `LOGON_TERSE` of a
    /// client that does not know an `OrderFilled` yet.
    TerseButFills,
    /// As that, and of an order that one resting order fills a single `OrderFilled` (`LOGON_TERSE`).
    Terse,
}

impl Detail {
    /// As a Hello asks for it.
    pub(crate) const fn of(hello: &Hello) -> Self {
        let Hello { flags, protocol_minor, .. } = *hello;
        if flags & LOGON_TERSE != 0 {
            if protocol_minor < ORDER_FILLED_MINOR { Self::TerseButFills } else { Self::Terse }
        } else if flags & LOGON_BRIEF != 0 {
            Self::Brief
        } else {
            Self::Whole
        }
    }
}

/// What a peer asks for that proved who it is.
pub struct LogonRequest {
    /// The command to log.
    pub logon: Box<Logon>,
    /// The engine's end of the session's rings; none for a stream.
    pub end: Option<Box<SessionEnd>>,
    /// What is asked for beside it.
    pub wishes: Wishes,
}

/// A request for a logon, which is taken once: by the duty thread, which logs it, or back by the gateway, whose peer
/// is gone or was told to come again. What was taken back is never logged: who comes again finds its session as it
/// was.
#[derive(Clone)]
pub struct Asked(Arc<Mutex<Option<LogonRequest>>>);

impl Asked {
    /// One that nobody has taken.
    #[must_use]
    pub fn new(request: LogonRequest) -> Self {
        Self(Arc::new(Mutex::new(Some(request))))
    }

    /// The request, unless it was taken before.
    pub fn take(&self) -> Option<LogonRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether it was taken.
    pub fn is_taken(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// A peer that proved who it is.
pub struct LogonLetter {
    /// Comes back in the answer.
    pub ticket: usize,
    /// What it asks for.
    pub asked: Asked,
}

/// From the gateway to the duty thread.
pub enum ToDuty {
    /// A peer proved who it is: log it on.
    Logon(LogonLetter),
    /// A session asks for what its account has.
    State {
        /// Comes back in the answer.
        ticket: usize,
        /// The session, whose rate it counts against.
        session: SessionId,
        /// Its epoch.
        epoch: Epoch,
        /// The account.
        account: AccountId,
        /// Of the request.
        correlation: u64,
    },
    /// A connection's socket closed, or its client stands still.
    Ended {
        /// Its session.
        session: SessionId,
        /// Its epoch.
        epoch: Epoch,
        /// It asked to be watched, and nothing of it has moved for too long.
        is_silent: bool,
    },
}

/// A capacity for which a logon is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsedUp {
    /// `limits.sessions`, which is so much: the name is new.
    Sessions(u32),
    /// The names that one key may have in its life, which are so many: the name is new.
    NamesOfKey(u32),
    /// `limits.pending_work`, which is so much: the end of the older connection has orders to cancel.
    PendingWork(u32),
}

impl std::fmt::Display for UsedUp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sessions(most) => write!(
                formatter,
                "its name is new, and limits.sessions = {most} is used up, of which some are kept for the local user's \
                 programs: log on under a name of before, or raise limits.sessions and start the engine again"
            ),
            Self::NamesOfKey(most) => write!(
                formatter,
                "its name is new, and its key has had {most} names, which is all it may: log on under one of these, or \
                 by another key"
            ),
            Self::PendingWork(most) => write!(
                formatter,
                "limits.pending_work = {most} is used up, and the older connection leaves orders to cancel: try again"
            ),
        }
    }
}

/// From the duty thread to the gateway.
pub enum FromDuty {
    /// The session is open.
    Opened {
        /// The ticket of the logon.
        ticket: usize,
        /// The core's event.
        started: SessionStarted,
        /// Positions before and behind the logon.
        logon: Range<Position>,
    },
    /// The core rejected the logon. As of a connection that ended, the memory comes along.
    Refused {
        /// The ticket of the logon.
        ticket: usize,
        /// Why.
        reason: RejectReason,
        /// Which capacity is used up, if it is that.
        used_up: Option<UsedUp>,
        /// The engine's end of the rings, if it was to have rings of its own.
        end: Option<Box<SessionEnd>>,
    },
    /// The duty thread ended a connection: close its socket. The memory comes along because
    /// unmapping it is a system call, which the duty thread leaves to others.
    Closed {
        /// Its session.
        session: SessionId,
        /// Its epoch.
        epoch: Epoch,
        /// Why, for the client.
        reason: CloseReason,
        /// Why, for the log line.
        why: String,
        /// The engine's end of the session's rings, if it had rings of its own.
        end: Option<Box<SessionEnd>>,
    },
}

/// From the duty thread to the gateway: what an account has, as messages: open orders, balances, the end; or
/// that it may not ask so often.
pub struct StateLetter {
    /// The ticket of the request.
    pub ticket: usize,
    /// Slots that the duty thread had published on the ring of the streams: the letter's place among what that
    /// carries.
    pub behind: u64,
    /// All that they say was decided before.
    pub position: Position,
    /// One behind the other.
    pub messages: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_what_is_asked_for_is_told() {
        use Detail::{Brief, Terse, TerseButFills, Whole};
        let asked = [0, LOGON_BRIEF, LOGON_TERSE, LOGON_TERSE | LOGON_BRIEF, 3];
        for (protocol_minor, terse) in
            [(4, TerseButFills), (5, TerseButFills), (6, Terse), (7, Terse)]
        {
            let told = asked
                .map(|flags| Detail::of(&Hello { flags, protocol_minor, ..Default::default() }));
            assert_eq!(told, [Whole, Brief, terse, terse, Whole], "handshake 1.{protocol_minor}");
        }
    }
}
