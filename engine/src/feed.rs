//! The public feed: a thread of its own follows the log, as any reader does, and broadcasts what
//! everybody may know to readers in other processes. Started by [`crate::run`] when it is wanted; the
//! duty thread knows nothing of it.
//!
//! [`fold`] turns transactions into messages; the gateway ([`crate::gateway`]) lets readers in and
//! passes them the ring's memory and snapshots; [`FeedDesk`] is what the two threads share.

pub mod fold;
mod snapshots;
mod thread;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::units::{Incarnation, KeyId};
use touchline_protocol::wait::{Audience, LocalSignal};

use crate::mailbox::Mailbox;

pub use snapshots::{ALIVE_MAX, InTheWay, OF_KEY_MAX, Share, Snapshot};
pub use thread::{FeedHandle, FeedOptions, start};

/// From the gateway to the feed thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToFeed {
    /// A peer has proved that it holds this key, which the venue may not know any more.
    Admit {
        /// Comes back in the answer.
        ticket: usize,
        /// The key; 0 for the engine's own user.
        key: KeyId,
    },
    /// A reader wants a snapshot.
    Snapshot {
        /// Comes back in the answer.
        ticket: usize,
        /// The reader's key; 0 for the engine's own user.
        key: KeyId,
    },
    /// A reader is gone before it got the snapshot that it wanted.
    NoSnapshot {
        /// The ticket of the question.
        ticket: usize,
    },
}

/// From the feed thread to the gateway.
#[derive(Clone)]
pub enum FromFeed {
    /// The reader may have the ring.
    Admitted {
        /// The ticket of the question.
        ticket: usize,
    },
    /// The reader may not.
    Refused {
        /// The ticket of the question.
        ticket: usize,
        /// What is wrong with its key.
        reason: RejectReason,
    },
    /// A snapshot for a reader.
    Snapshot {
        /// The ticket of the question.
        ticket: usize,
        /// All its bytes.
        snapshot: Arc<Share>,
    },
    /// A snapshot that somebody waits for has to wait for others. Told now and then while that lasts.
    SnapshotWaits(InTheWay),
    /// A key is of no use any more: its readers are to go.
    Revoked {
        /// The key.
        key: KeyId,
    },
    /// The feed has ended before the engine: no reader gets anything any more.
    Ended,
}

/// What the gateway and the feed thread share.
pub struct FeedDesk {
    /// To the feed thread.
    pub to_feed: Mailbox<ToFeed>,
    /// To the gateway.
    pub from_feed: Mailbox<FromFeed>,
    /// The ring's memory, which readers cannot write.
    memory: OwnedFd,
    slots: u32,
    incarnation: Incarnation,
    /// What the feed thread sleeps on; keeper and duty thread ring it too.
    signal: Arc<LocalSignal>,
    /// Readers of the memory, and of streams.
    readers: [Audience; 2],
    stop: AtomicBool,
}

impl FeedDesk {
    /// A desk of the smallest ring with no feed thread behind it, for tests of the gateway's readers.
    #[cfg(test)]
    pub(crate) fn without_feed(memory: OwnedFd) -> Self {
        Self {
            to_feed: Mailbox::default(),
            from_feed: Mailbox::default(),
            memory,
            slots: touchline_protocol::feed::layout::SLOTS_MIN,
            incarnation: Incarnation(1),
            signal: Arc::new(LocalSignal::new()),
            readers: [Audience::new(), Audience::new()],
            stop: AtomicBool::new(false),
        }
    }

    /// What a reader needs to map the ring.
    #[must_use]
    pub fn memory(&self) -> (BorrowedFd<'_>, u32, Incarnation) {
        (self.memory.as_fd(), self.slots, self.incarnation)
    }

    /// Puts a letter to the feed thread and wakes it.
    pub fn tell_feed(&self, letter: ToFeed) {
        self.to_feed.put(letter);
        self.signal.wake();
    }

    /// Counts a reader, of a stream or of the memory, until what is returned is dropped. Without readers
    /// nobody is woken: a reader is counted before its first look at the ring, which finds what nobody was woken for.
    #[must_use]
    pub fn reader(self: &Arc<Self>, is_stream: bool) -> FeedPlace {
        self.readers[usize::from(is_stream)].join();
        FeedPlace { desk: Arc::clone(self), is_stream }
    }

    /// Whether there are readers to be woken for what was published before this call.
    fn has_readers(&self, are_streams: bool) -> bool {
        self.readers[usize::from(are_streams)].is_there()
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// A reader that is counted.
pub struct FeedPlace {
    desk: Arc<FeedDesk>,
    is_stream: bool,
}

impl Drop for FeedPlace {
    fn drop(&mut self) {
        self.desk.readers[usize::from(self.is_stream)].leave();
    }
}
