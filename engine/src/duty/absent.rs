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
    deadline_ns: u64,
    /// The next one; counted from 1.
    next: u32,
    /// The last one that was there at the start.
    last: u32,
}

impl Absent {
    /// Of a venue as it was recovered; engine time, ns.
    pub(super) const fn new(core: &Core, deadline_ns: u64) -> Self {
        Self { deadline_ns, next: 1, last: core.counts().sessions }
    }

    /// The end that is to be reported next, at the engine time `now_ns`.
    pub(super) fn next(&mut self, core: &Core, now_ns: u64) -> Option<ConnectionEnded> {
        if now_ns < self.deadline_ns {
            return None;
        }
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
