//! Whether there is anybody to be woken for what one thread publishes: without an audience it spares the system call.
//! Used by the engine's feed thread; the gateway counts the readers that it lets in.
//!
//! The order of things is that of a [`ParkingLine`](super::ParkingLine), with a count in the flag's place.

use crate::sync::{AtomicU32, Ordering, fence};

/// How many there are.
#[derive(Debug, Default)]
pub struct Audience(AtomicU32);

impl Audience {
    /// Nobody is there.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one more. What was published before this call wakes nobody: its first look, be it in another process, is
    /// to come behind this call.
    pub fn join(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        // SYNC: pairs with the fence in `is_there`: the look behind this call sees what was published, or whoever
        // published it sees the count.
        fence(Ordering::SeqCst);
    }

    /// Counts one less.
    pub fn leave(&self) {
        // SYNC: orders nothing; seen late it costs a needless wake.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether somebody is to be woken for what was published before this call.
    pub fn is_there(&self) -> bool {
        // SYNC: pairs with the fence in `join`.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_until_the_last_one_has_left() {
        let audience = Audience::new();
        assert!(!audience.is_there());
        audience.join();
        audience.join();
        audience.leave();
        assert!(audience.is_there());
        audience.leave();
        assert!(!audience.is_there());
    }
}
