//! One wake for many commands: who sends and who remembers to wake. Used by the adapter's engine link.
//!
//! A wake takes whoever wakes some microseconds, and who sends from the turns of an event loop sends again in a moment.
//! So what is sent only owes a wake, and a thread that comes by settles it: when it has nothing else to do, before it
//! turns to something longer, or when enough has come together. Where there is no such thread, the wake is due at once.

use crate::sync::{AtomicU32, Ordering};

/// A wake that is owed to one sleeper, and how many threads there are that will settle it.
///
/// Each method tells whether the caller is to wake the sleeper now. Whoever sends publishes before [`sent`](Self::sent).
#[derive(Default)]
pub struct OwedWake {
    /// What was sent since the last wake, and turns of keepers behind the first of it.
    owed: AtomicU32,
    /// Threads that are awake and will come by.
    keepers: AtomicU32,
}

impl OwedWake {
    /// What was sent, and turns of keepers meanwhile, that one wake is put off for: a fifth of a millisecond where each
    /// takes some ten microseconds. For each order that the adapter sends there are two turns, one for its request and
    /// one for its answer.
    pub const AT_THE_MOST: u32 = 24;

    /// Nothing is owed, and nobody would settle it.
    pub fn new() -> Self {
        Self::default()
    }

    /// A thread will come by from now on, and say when it does not any more.
    pub fn keeper_begins(&self) {
        self.keepers.fetch_add(1, Ordering::Relaxed);
    }

    /// That thread comes by no more: it is about to sleep, or ends. True if the caller must now send a wake that is
    /// owed, be it for another thread's messages.
    #[must_use]
    pub fn keeper_ends(&self) -> bool {
        // SYNC: in front of the swap in `settle`, which releases it to whoever counts behind that.
        self.keepers.fetch_sub(1, Ordering::Relaxed);
        self.settle()
    }

    /// That thread comes by and goes on with something short.
    #[must_use]
    pub fn keeper_passes(&self) -> bool {
        // Looked at first: mostly nothing is owed, and then the word is only read.
        // SYNC: orders nothing; what this does not see yet the next one does, or `keeper_ends`.
        self.owed.load(Ordering::Relaxed) > 0 && self.count() >= Self::AT_THE_MOST && self.settle()
    }

    /// Something was sent and published.
    #[must_use]
    pub fn sent(&self) -> bool {
        let owed = self.count();
        // SYNC: the last keeper's `settle` finds what was counted, or came before, and this finds nobody.
        let is_kept = self.keepers.load(Ordering::Relaxed) > 0;
        !(is_kept && owed < Self::AT_THE_MOST) && self.settle()
    }

    /// Whoever has something longer to do, or needs the sleeper now, settles what is owed.
    #[must_use]
    pub fn settle(&self) -> bool {
        // SYNC: acquires what was published before each `count` that this takes, since the wake is for that, and
        // releases to each `count` behind it that a keeper has gone.
        self.owed.swap(0, Ordering::AcqRel) > 0
    }

    fn count(&self) -> u32 {
        // SYNC: releases what was published to whoever settles it, and acquires which keepers had gone before.
        self.owed.fetch_add(1, Ordering::AcqRel).saturating_add(1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn without_a_keeper_each_is_woken_for_at_once() {
        let owed = OwedWake::new();
        assert!(owed.sent());
        assert!(owed.sent());
        owed.keeper_begins();
        assert!(!owed.sent());
        assert!(owed.keeper_ends());
        assert!(owed.sent());
        assert!(!owed.settle(), "nothing is owed any more");
    }

    #[test]
    fn one_wake_does_for_all_that_was_sent_in_a_turn() {
        let owed = OwedWake::new();
        owed.keeper_begins();
        owed.keeper_begins();
        assert!(!owed.keeper_ends(), "nothing was sent");
        assert!(!owed.keeper_passes());
        for _ in 1..OwedWake::AT_THE_MOST {
            assert!(!owed.sent());
        }
        assert!(owed.sent(), "as many as there may be");
        assert!(!owed.sent());
        assert!(owed.settle(), "before something longer");
        assert!(!owed.sent());
        assert!(owed.keeper_ends());
        assert!(!owed.settle());
    }

    #[test]
    fn a_keeper_that_never_sleeps_settles_it_all_the_same() {
        let owed = OwedWake::new();
        owed.keeper_begins();
        assert!(!owed.sent());
        let passes = (1..).take_while(|_| !owed.keeper_passes()).count();
        assert!(passes < OwedWake::AT_THE_MOST as usize, "{passes}");
        assert!(!owed.settle());
    }
}
