//! Whether a thread is to be woken that sleeps on something else than a word of memory, as one does that waits for
//! sockets: whoever has news for it makes the call that wakes only while it sleeps. Used by the bell of the engine's
//! gateway and its door.
//!
//! The order of things is that of a [`ParkingLine`](super::ParkingLine), with two flags: the durable watermark moves
//! thousands of times in a second, and a sleeper that waits for nothing of it is not to be woken by it.

use crate::sync::{AtomicU32, Ordering, fence};

/// The flags of one sleeper. Each is written by the sleeper only, however many there are who look at them.
#[derive(Debug, Default)]
pub struct Asleep {
    is_asleep: AtomicU32,
    awaits_durable: AtomicU32,
}

impl Asleep {
    /// It is awake.
    pub fn new() -> Self {
        Self::default()
    }

    /// The sleeper is about to sleep, and whether it waits for the durable watermark. Behind this it takes its last
    /// look, at all that it is ever woken for; what is published behind that wakes it, a move of the watermark if it
    /// waits for that.
    #[inline]
    pub fn begin(&self, awaits_durable: bool) {
        self.awaits_durable.store(awaits_durable.into(), Ordering::Relaxed);
        self.is_asleep.store(1, Ordering::Relaxed);
        // SYNC: pairs with the fence in `is_to_wake`: the last look sees what was published, or whoever published it sees
        // the flags.
        fence(Ordering::SeqCst);
    }

    /// The sleeper is awake, and looks at everything behind this.
    #[inline]
    pub fn end(&self) {
        // SYNC: orders nothing; seen late it costs a needless wake.
        self.is_asleep.store(0, Ordering::Relaxed);
    }

    /// Whether it is to be woken for what was published before this call.
    #[inline]
    pub fn is_to_wake(&self) -> bool {
        // SYNC: pairs with the fence in `begin`.
        fence(Ordering::SeqCst);
        self.is_asleep.load(Ordering::Relaxed) != 0
    }

    /// The same where the durable watermark was moved.
    #[inline]
    pub fn is_to_wake_for_durable(&self) -> bool {
        // SYNC: behind the fence in `is_to_wake`. The two flags may be of different sleeps: one that is older than the
        // sleep of now means that the fence of `begin` comes behind that one, and the last look sees the watermark.
        self.is_to_wake() && self.awaits_durable.load(Ordering::Relaxed) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_a_sleeper_is_woken_and_for_the_watermark_only_one_that_waits_for_it() {
        let asleep = Asleep::new();
        let seen = || (asleep.is_to_wake(), asleep.is_to_wake_for_durable());
        assert_eq!(seen(), (false, false));
        asleep.begin(false);
        assert_eq!(seen(), (true, false));
        asleep.end();
        assert_eq!(seen(), (false, false));
        asleep.begin(true);
        assert_eq!(seen(), (true, true));
        asleep.end();
        assert_eq!(seen(), (false, false), "it looks by itself");
        asleep.begin(false);
        assert_eq!(seen(), (true, false), "it waits for that no more");
    }
}
