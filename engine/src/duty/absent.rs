//! Sessions that lost their connection with an earlier engine and had asked for their orders to be
//! cancelled then: they have a while to come back and keep what they have open; after it their end is
//! reported. Called by [`super::Duty::turn`].

use touchline_core::Core;
use touchline_protocol::message::command::ConnectionEnded;
use touchline_protocol::units::SessionId;

/// Sessions looked at per turn.
const SESSIONS_PER_TURN: u32 = 1024;

/// What of the sessions is still to be looked at when the time is over.
pub(super) struct Absent {
    /// So long the duty thread has to have served, ns.
    reconnect_ns: u64,
    /// The number of the last of the gateway's letters that come before the first end; known when that is due.
    last_letter: Option<u64>,
    /// The next one; counted from 1.
    next: u32,
    /// The last one that was there at the start.
    last: u32,
}

impl Absent {
    /// Of a venue as it was recovered, which they have so long to come back to, ns.
    pub(super) const fn new(core: &Core, reconnect_ns: u64) -> Self {
        Self { reconnect_ns, last_letter: None, next: 1, last: core.counts().sessions }
    }

    /// True when the time is over, where the duty thread has served for so long, and not all were looked at.
    pub(super) const fn is_due(&self, served_ns: u64) -> bool {
        served_ns >= self.reconnect_ns && self.next <= self.last
    }

    /// Which of the gateway's letters is the last one that comes before the first end, where one is due: the last that
    /// has come by the first call. Those behind it could put the end off for ever.
    pub(super) fn last_letter(&mut self, last_by_now: impl FnOnce() -> u64) -> u64 {
        *self.last_letter.get_or_insert_with(last_by_now)
    }

    /// The end that is to be reported next.
    pub(super) fn next(&mut self, core: &Core) -> Option<ConnectionEnded> {
        for _ in 0..SESSIONS_PER_TURN {
            if self.next > self.last {
                return None;
            }
            let id = SessionId(self.next);
            self.next += 1;
            let session = core.session(id)?;
            if session.cancel_on_disconnect && !session.connected {
                return Some(ConnectionEnded {
                    ended_session: id,
                    ended_epoch: session.epoch,
                    ..Default::default()
                });
            }
        }
        None
    }
}
