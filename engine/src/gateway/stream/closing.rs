//! How long a session that is ended may take to read its last words. Kept by [`super::Stream`].

use crate::gateway::stall::Stall;
use std::time::{Duration, Instant};
use touchline_protocol::message::enums::CloseReason;

/// So long a session that is ended may take to read why.
const LINGER: Duration = Duration::from_secs(2);

/// The end of a session.
#[derive(Clone, Copy, Debug)]
pub(super) enum Closing {
    /// It was ended, and has until then to read why.
    Until(Instant),
    /// It has logged out, and is owed all answers: it is given up only when it takes nothing for so long.
    Owed(Duration),
}

impl Closing {
    /// For this reason; `stall_limit` is how long whoever reads nothing is borne with.
    pub(super) fn of(reason: CloseReason, stall_limit: Duration, now: Instant) -> Self {
        match reason {
            CloseReason::LoggedOut => Self::Owed(stall_limit),
            _ => Self::Until(now + LINGER),
        }
    }

    /// True when its time is over; `stall` is how it takes nothing, if it does not.
    pub(super) fn is_late(self, stall: Option<Stall>, now: Instant) -> bool {
        match self {
            Self::Until(end) => now >= end,
            Self::Owed(limit) => stall.is_some_and(|stall| stall.lasts(now) >= limit),
        }
    }

    /// The gateway did not look for so long.
    pub(super) fn forgive(&mut self, lost: Duration) {
        if let Self::Until(end) = self {
            *end += lost;
        }
    }
}
