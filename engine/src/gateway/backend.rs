//! What the gateway needs of the kernel's socket interface: one trait, and whoever carries it out
//! ([`super::epoll`], `io_uring` where it is permitted).

use super::uring::unread;
use rustix::net::{Shutdown, shutdown};
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Which listening socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Listener {
    /// The engine's Unix socket.
    Local,
    /// The TCP address.
    Tcp,
}

/// Most bytes that one [`Happened::Received`] tells of.
pub(super) const READ_BYTES: usize = 16 << 10;

/// Most connections that a turn accepts of one listener: who knocks faster than is listened to waits in the
/// kernel's queue, where it costs no descriptor. A quarter of those that the door keeps of one kind and address, which so live
/// through the turns that it takes to read of them.
pub(super) const ACCEPTS_MAX: usize = 16;

/// What a turn found.
#[derive(Debug)]
pub(super) enum Happened {
    /// A connection was made.
    Accepted(Listener, OwnedFd),
    /// None can be accepted now, and none is before [`Backend::accept_again`].
    AcceptFailed(Listener, io::Error),
    /// Bytes came; [`Backend::bytes`] shows them until the next turn. Of one socket there is one of these per
    /// turn at the most: who sends faster than others is not served before them, and what it may cost is
    /// known before the next look.
    Received(usize, Range<usize>),
    /// All of what [`Backend::send`] was given has been taken; the buffer comes back, emptied.
    Sent(usize, Vec<u8>),
    /// So many bytes of it were taken, and the rest is not yet.
    Progressed(usize, usize),
    /// The peer has ended the connection, or it failed. Nothing more comes of it.
    Ended(usize),
}

/// Sockets by tickets. A ticket is never used twice.
pub(super) trait Backend {
    /// As in the setting `gateway.backend`.
    fn name(&self) -> &'static str;

    /// Accepts connections from now on.
    fn listen(&mut self, which: Listener, socket: OwnedFd) -> io::Result<()>;

    /// Tries again to accept connections after a failure. As long as that lasts (there may be no descriptor
    /// left) each attempt fails at once, so it is made now and then only.
    fn accept_again(&mut self, which: Listener);

    /// Reads what comes on a socket from now on.
    fn watch(&mut self, ticket: usize, socket: Arc<OwnedFd>) -> io::Result<()>;

    /// Reads no more of it until it is no more held, and not even what has come already: the peer's own sending
    /// stops then. To be called behind a [`Happened::Received`] of it.
    fn hold(&mut self, ticket: usize, held: bool);

    /// Sends all of the buffer. To be called again for the same ticket only after [`Happened::Sent`].
    fn send(&mut self, ticket: usize, buffer: Vec<u8>, happened: &mut Vec<Happened>);

    /// A socket that it watches.
    fn socket(&self, ticket: usize) -> Option<BorrowedFd<'_>>;

    /// What a socket has taken and its peer has not, if the kernel says so: it becomes less while the peer reads,
    /// long before there is room for more.
    fn unread(&self, ticket: usize) -> Option<u64> {
        unread(self.socket(ticket)?)
    }

    /// Tells the peer, behind all that was sent, that nothing more comes. What the peer sends is still read: a socket
    /// that is closed with something unread takes back what has not arrived. Again it does nothing.
    fn end(&self, ticket: usize) {
        if let Some(socket) = self.socket(ticket) {
            // One that is not connected any more has nobody to tell.
            let _gone = shutdown(socket, Shutdown::Write);
        }
    }

    /// Forgets a socket; what is not sent is given up.
    fn forget(&mut self, ticket: usize);

    /// Waits until something happens or the bell rings, at most for `limit`, and adds what happened.
    fn turn(&mut self, limit: Duration, happened: &mut Vec<Happened>) -> io::Result<()>;

    /// The bytes of a [`Happened::Received`] of the last turn.
    fn bytes(&self, at: &Range<usize>) -> &[u8];

    /// Ends it, and gives the sockets that it watched.
    fn into_sockets(self: Box<Self>) -> Vec<Arc<OwnedFd>>;
}

#[cfg(test)]
mod tests;
