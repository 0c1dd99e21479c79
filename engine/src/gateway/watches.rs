//! Sessions over rings whose clients asked to be watched: whether anything of theirs has moved lately. Kept by
//! [`super::service`], which asks at each tick; the duty thread has no part in it.

use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};
use touchline_protocol::message::handshake::SILENT_INTERVALS;
use touchline_protocol::ring::PeerMoves;

/// What a client asked for, and where it is to be seen.
pub(super) struct Watch {
    /// So often something moves, at the least.
    pub(super) interval: Duration,
    pub(super) moves: PeerMoves,
}

struct Watched {
    watch: Watch,
    /// What was there at the last look.
    seen: (u32, u64),
    /// When it was first seen so.
    since: Instant,
}

/// All that are watched, by their tickets.
#[derive(Default)]
pub(super) struct Watches(FxHashMap<usize, Watched>);

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A session is open from now on.
    pub(super) fn begin(&mut self, ticket: usize, watch: Watch, now: Instant) {
        let seen = watch.moves.look();
        self.0.insert(ticket, Watched { watch, seen, since: now });
    }

    pub(super) fn forget(&mut self, ticket: usize) {
        self.0.remove(&ticket);
    }

    /// Nobody has looked for so long.
    pub(super) fn forgive(&mut self, lost: Duration, now: Instant) {
        for watched in self.0.values_mut() {
            watched.since = now.min(watched.since + lost);
        }
    }

    /// Those of which nothing has moved for too long; they are watched no more.
    pub(super) fn take_silent(&mut self, now: Instant) -> Vec<usize> {
        let silent = self.0.extract_if(|_, watched| watched.is_silent(now));
        silent.map(|(ticket, _)| ticket).collect()
    }
}

impl Watched {
    fn is_silent(&mut self, now: Instant) -> bool {
        let seen = self.watch.moves.look();
        if seen != self.seen {
            (self.seen, self.since) = (seen, now);
        }
        now.duration_since(self.since) >= self.watch.interval * SILENT_INTERVALS
    }
}

#[cfg(test)]
mod tests;
