//! Sleep that is not ended by each piece of work: a thread that works behind another one, and may let work come
//! together, says before it sleeps up to where it need not be woken. The log's keeper sleeps so behind the duty
//! thread; `tests/loom_rest.rs` explores every interleaving of it.
//!
//! Work is a number that only grows: what is there reaches up to it. The sleeper's words are ordered as its
//! parked flag is ([`crate::wait`]): the waker sees what the sleeper has said before its last look, or that
//! look sees what the waker has published.
//!
//! ```text
//!   sleeper                                  waker
//!   rests_to, pauses := what it may miss     publish reached; wanted := reached
//!   parked := 1                              fence
//!   fence                                    if reached > rests_to, or wanted and not pauses:
//!   if reached <= rests_to,                    if parked = 1: ring
//!      and wanted is done or it pauses: sleep
//!   parked := 0; nothing may be missed
//! ```

use std::{iter, time::Duration};

use super::{ParkingLine, park};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// What a sleeper need not be woken for, and what its waker wants of it.
pub struct Rest {
    /// Somebody waits for all below it to be done.
    wanted: AtomicU64,
    /// Up to here work is no reason to wake.
    rests_to: AtomicU64,
    /// 1: neither is that somebody waits; only the time limit ends the sleep.
    pauses: AtomicU32,
}

/// What one sleep is to miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sleep {
    /// All below it is done.
    pub done: u64,
    /// Work up to here does not end it.
    pub rests_to: u64,
    /// Neither does somebody who waits: it ends by its limit.
    pub pauses: bool,
    /// Its longest duration, an hour at the most.
    pub limit: Duration,
}

impl Default for Rest {
    fn default() -> Self {
        Self::new()
    }
}

impl Rest {
    /// As at the beginning: awake, and nothing is wanted.
    #[must_use]
    pub fn new() -> Self {
        Self {
            wanted: AtomicU64::new(0),
            rests_to: AtomicU64::new(u64::MAX),
            pauses: AtomicU32::new(0),
        }
    }

    /// The waker's part, behind the publication of work up to `reached`: true if the sleeper is to be woken, should
    /// it sleep. `is_wanted` says that somebody waits for it to be done; `otherwise` is asked behind the fence,
    /// where the answer would be no. Wake by [`wake_if_seen_parked`](super::wake_if_seen_parked).
    #[inline]
    pub fn tell(&self, reached: u64, is_wanted: bool, otherwise: impl FnOnce() -> bool) -> bool {
        if is_wanted {
            // SYNC: the fence makes the sleeper see it before it sleeps; pairs with the acquire load in `wanted`.
            self.wanted.store(reached, Ordering::Release);
        }
        // SYNC: pairs with the fence in `park`: the last look sees what was published and wanted, or what the
        // sleeper has said before it is seen here.
        fence(Ordering::SeqCst);
        let is_enough = reached > self.rests_to.load(Ordering::Relaxed);
        is_enough || is_wanted && self.pauses.load(Ordering::Relaxed) == 0 || otherwise()
    }

    /// Up to where somebody waits for the work to be done. All of it is published.
    #[inline]
    pub fn wanted(&self) -> u64 {
        // SYNC: pairs with the release store in `tell`, behind the publication.
        self.wanted.load(Ordering::Acquire)
    }

    /// The sleeper's part: sleeps on `line`. `reached` looks how far the work reaches; `otherwise` ends the
    /// sleep before it begins, told how far that was. As [`park`] it may return early without reason.
    pub fn sleep(
        &self,
        line: ParkingLine<'_>,
        sleep: &Sleep,
        mut reached: impl FnMut() -> u64,
        mut otherwise: impl FnMut(u64) -> bool,
    ) {
        let Sleep { done, rests_to, pauses, limit } = *sleep;
        // SYNC: both are ordered before the last look by the fence in `park`.
        self.rests_to.store(rests_to, Ordering::Relaxed);
        self.pauses.store(pauses.into(), Ordering::Relaxed);
        park(iter::once(line), limit, || {
            let reached = reached();
            reached > rests_to || !pauses && self.wanted() > done || otherwise(reached)
        });
        // SYNC: seen late they cost nothing, because the next sleep says anew what it may miss, in front of its
        // own last look. Raised to the highest, so that who is awake is not looked at.
        self.pauses.store(0, Ordering::Relaxed);
        self.rests_to.store(u64::MAX, Ordering::Relaxed);
    }
}
