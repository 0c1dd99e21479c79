//! How other threads wake the gateway or its door, which sleep in the kernel's queue of socket events: an
//! eventfd, and a flag that spares the system call while they are awake. The protocol is that of
//! [`touchline_protocol::wait`].

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// A thread's bell. The gateway's is rung by duty thread, keeper, door and helper threads, the door's when it
/// is to end.
#[derive(Debug)]
pub struct Bell {
    event: OwnedFd,
    parked: AtomicBool,
    /// The gateway holds replies back for the durable watermark.
    awaits_durable: AtomicBool,
}

impl Bell {
    /// A bell that nobody listens to yet.
    ///
    /// # Errors
    /// If the system gives no eventfd.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, parked: AtomicBool::new(false), awaits_durable: AtomicBool::new(false) })
    }

    /// Wakes the gateway if it sleeps; to be called after publishing what it is to see.
    #[inline]
    pub fn ring(&self) {
        // SYNC: pairs with the fence in `park`: the gateway's last look sees what was published before
        // this fence, or its flag is seen here.
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed) {
            // It can only fail when it was rung 2^64 - 2 times unheard.
            let _rung = rustix::io::write(&self.event, &1_u64.to_le_bytes());
        }
    }

    /// [`ring`](Self::ring), if the gateway waits for the durable watermark, which has moved.
    #[inline]
    pub fn ring_durable(&self) {
        // SYNC: as in `ring`; the flag is set before the gateway parks.
        fence(Ordering::SeqCst);
        if self.awaits_durable.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    /// The gateway is about to sleep; behind this it takes its last look.
    pub(super) fn park(&self, awaits_durable: bool) {
        self.awaits_durable.store(awaits_durable, Ordering::Relaxed);
        self.parked.store(true, Ordering::Relaxed);
        // SYNC: pairs with the fences in `ring` and `ring_durable`.
        fence(Ordering::SeqCst);
    }

    /// The gateway is awake.
    pub(super) fn unpark(&self) {
        self.parked.store(false, Ordering::Relaxed);
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
