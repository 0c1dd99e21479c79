//! How other threads wake the gateway or its door, which sleep in the kernel's queue of socket events: by an
//! eventfd, which they write to only while the one that it wakes sleeps.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use touchline_protocol::wait::Asleep;

/// A thread's bell. The gateway's is rung by duty thread, keeper, door and helper threads, the door's when it
/// is to end.
#[derive(Debug)]
pub struct Bell {
    event: OwnedFd,
    asleep: Asleep,
}

impl Bell {
    /// A bell that nobody listens to yet.
    ///
    /// # Errors
    /// If the system gives no eventfd.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, asleep: Asleep::new() })
    }

    /// A bell that nothing can wait for: it is no open file but a mere name of one.
    #[cfg(test)]
    pub(super) fn unheard() -> Self {
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        let event = rustix::fs::open("/", flags, rustix::fs::Mode::empty());
        Self { event: event.expect("there is a root"), asleep: Asleep::new() }
    }

    /// Wakes the thread that waits for this bell, if it sleeps; to be called after publishing what it is to see.
    #[inline]
    pub fn ring(&self) {
        if self.asleep.is_to_wake() {
            self.strike();
        }
    }

    /// [`ring`](Self::ring), if that thread waits for the durable watermark, which has moved.
    #[inline]
    pub fn ring_durable(&self) {
        if self.asleep.is_to_wake_for_durable() {
            self.strike();
        }
    }

    fn strike(&self) {
        // It can only fail when it was rung 2^64 - 2 times unheard.
        let _rung = rustix::io::write(&self.event, &1_u64.to_le_bytes());
    }

    /// The thread is about to sleep, and whether it holds replies back for the durable watermark; behind this it takes
    /// its last look.
    pub(super) fn park(&self, awaits_durable: bool) {
        self.asleep.begin(awaits_durable);
    }

    /// The thread is awake.
    pub(super) fn unpark(&self) {
        self.asleep.end();
    }

    /// Forgets rings.
    pub(super) fn quiet(&self) {
        let _rings = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }

    /// Readable when it was rung.
    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
