//! io_uring with safe edges: whatever the kernel may still write to or read from belongs to this module
//! until the kernel says that it is done. Called by [`super::Uring`] alone; [`unread`] by the other backend too.
//!
//! Two kinds of memory are lent to the kernel. The pool that receives are written into is leaked when the
//! ring is made, so it outlives any request; a part of it is shown only between the completion that names
//! it and its being given back. A buffer that is being sent is kept in a table until its completion.
#![allow(unsafe_code, reason = "requests hand addresses to the kernel")]

use super::super::backend::READ_BYTES;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustc_hash::FxHashMap;
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl};
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::time::Duration;

/// Requests that may wait for a submission.
const ENTRIES: u32 = 1024;
/// Completions that the kernel keeps; it keeps more where it can.
const COMPLETIONS: u32 = 4096;
/// Buffers of [`READ_BYTES`] that receives are written into.
const BUFFERS: u16 = 256;
/// The group that they belong to.
const GROUP: u16 = 0;
/// Readable, as poll(2) says it.
const READABLE: u32 = 1;
/// What [`unread`] asks, `SIOCOUTQ` by its other name.
const UNREAD: Opcode = 0x5411;
/// Bits of a request's name in the kernel that no caller sets: what its completion hands over is told by them, and
/// not by who asked.
const HANDS_OVER_SOCKET: u64 = 1 << 63;
const HANDS_OVER_BUFFER: u64 = 1 << 62;
/// Of these the rest of the name is the buffer's number.
const GIVES_BACK: u64 = 1 << 61;
const HANDS_OVER: u64 = HANDS_OVER_SOCKET | HANDS_OVER_BUFFER | GIVES_BACK;
const NO_SIGNAL: i32 = 0x4000;
const CLOSE_ON_EXEC: i32 = 0x80000;

/// Bytes that a socket has taken and its peer has not, as the kernel counts them; none if it does not say. Over TCP
/// the peer has what its kernel has acknowledged. Of a Unix socket a piece counts, and somewhat more than it has,
/// until all of it is read.
pub(in super::super) fn unread(socket: BorrowedFd<'_>) -> Option<u64> {
    // SAFETY: of a socket, or of anything else that knows it, this request writes one int, and fails otherwise.
    let asked = unsafe { Getter::<UNREAD, i32>::new() };
    // SAFETY: the int that it writes is that request's own, and nothing is lent beyond the call.
    u64::try_from(unsafe { ioctl(socket, asked) }.ok()?).ok()
}

/// What a request came to.
#[derive(Debug)]
pub(super) struct Completion {
    /// As the request was named.
    pub(super) user: u64,
    /// Bytes, events, or an error.
    pub(super) result: Result<u32, Errno>,
    /// Of an accept: the socket that it made.
    pub(super) accepted: Option<OwnedFd>,
    /// Of a send: what it was given, which the kernel reads no more.
    pub(super) sent: Option<Vec<u8>>,
    /// More completions of the same request will come.
    pub(super) has_more: bool,
    /// Of a receive: there is more to be received.
    pub(super) leaves_more: bool,
    /// The buffer that was written into.
    pub(super) buffer: Option<u16>,
    /// A buffer that was given back and that the kernel has not taken, which may want memory for it: it is ours.
    pub(super) refused: Option<u16>,
}

/// The ring.
pub(super) struct Ring {
    ring: IoUring,
    pool: NonNull<u8>,
    /// Buffers that are ours at present: the kernel has filled them, or not taken them.
    is_ours: Box<[bool]>,
    /// Requests that found no room in the queue: they go in before any other, once the kernel takes some.
    waiting: VecDeque<squeue::Entry>,
    /// What is being sent, by request. Never freed while the kernel may read it, so not by a drop.
    sending: ManuallyDrop<FxHashMap<u64, Vec<u8>>>,
}

// SAFETY: the pool is plain leaked memory without ties to a thread, and all access to it goes through
// `&self` or `&mut self` of this one owner; the ring itself is Send.
unsafe impl Send for Ring {}

/// A ring that tells by a flag that there is work to be done in our name, and leaves it until we enter the
/// kernel: else it interrupts this core for every message that comes. Kernels before 5.19 know no such flag.
fn build() -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_cqsize(COMPLETIONS);
    builder.clone().setup_coop_taskrun().setup_taskrun_flag().build(ENTRIES).or_else(|error| {
        if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) {
            builder.build(ENTRIES)
        } else {
            Err(error)
        }
    })
}

impl Ring {
    /// Makes a ring, and gives the kernel its buffers.
    pub(super) fn new() -> io::Result<Self> {
        let ring = build()?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::other("the kernel is too old for it"));
        }
        let pool = vec![0_u8; usize::from(BUFFERS) * READ_BYTES].leak();
        let mut made = Self {
            ring,
            pool: NonNull::from(pool).cast(),
            is_ours: vec![true; usize::from(BUFFERS)].into_boxed_slice(),
            waiting: VecDeque::new(),
            sending: ManuallyDrop::default(),
        };
        for buffer in 0..BUFFERS {
            made.give_back(buffer);
        }
        Ok(made)
    }

    /// Queues a request by this name, with the bits that say what its completion hands over.
    fn push(&mut self, entry: squeue::Entry, user: u64, hands_over: u64) {
        self.waiting.push_back(entry.user_data(user & !HANDS_OVER | hands_over));
        if !self.push_waiting() {
            // The queue is full: the kernel empties it. Why it does not is told by the turn's own call.
            let _submitted = self.ring.submit();
            self.push_waiting();
        }
    }

    /// Puts what waits into the queue, as far as there is room; true if nothing waits any more.
    fn push_waiting(&mut self) -> bool {
        while let Some(entry) = self.waiting.front() {
            // SAFETY: each caller of `push` names what its entry points to: the leaked pool, a buffer that
            // stays in `sending` until its completion, or nothing. A descriptor that is not open any more
            // is an error of the request and touches no memory of ours.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                return false;
            }
            self.waiting.pop_front();
        }
        true
    }

    /// Accepts one connection.
    pub(super) fn accept(&mut self, user: u64, listener: BorrowedFd<'_>) {
        // Points to nothing: nobody wants the address.
        let listener = types::Fd(listener.as_raw_fd());
        let accept = opcode::Accept::new(listener, std::ptr::null_mut(), std::ptr::null_mut());
        self.push(accept.flags(CLOSE_ON_EXEC).build(), user, HANDS_OVER_SOCKET);
    }

    /// Tells whenever the descriptor is readable.
    pub(super) fn poll(&mut self, user: u64, descriptor: BorrowedFd<'_>) {
        // Points to nothing.
        let poll = opcode::PollAdd::new(types::Fd(descriptor.as_raw_fd()), READABLE);
        self.push(poll.multi(true).build(), user, 0);
    }

    /// Receives once, into one buffer of the kernel's choice.
    pub(super) fn receive(&mut self, user: u64, socket: BorrowedFd<'_>) {
        // Writes into the leaked pool only, into a buffer that `is_ours` does not name: the address is the
        // kernel's to choose, and the length the buffer's.
        let socket = types::Fd(socket.as_raw_fd());
        let receive = opcode::Recv::new(socket, std::ptr::null_mut(), READ_BYTES as u32)
            .buf_group(GROUP)
            .build();
        self.push(receive.flags(squeue::Flags::BUFFER_SELECT), user, 0);
    }

    /// Sends the buffer from `from` on; it is kept until the completion of `user`.
    ///
    /// # Panics
    /// If `user` has another send under way.
    pub(super) fn send(&mut self, user: u64, socket: BorrowedFd<'_>, buffer: Vec<u8>, from: usize) {
        let bytes = &buffer[from..];
        // Points into the buffer's heap memory, which does not move with the Vec and is neither changed
        // nor freed before its completion takes it out of the table.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let send = opcode::Send::new(types::Fd(socket.as_raw_fd()), bytes.as_ptr(), length);
        // Two would be told apart by nothing, and the wrong one be given back while the kernel reads it.
        let name = user & !HANDS_OVER;
        assert!(!self.sending.contains_key(&name), "a second send of {user} is under way");
        self.sending.insert(name, buffer);
        self.push(send.flags(NO_SIGNAL).build(), user, HANDS_OVER_BUFFER);
    }

    /// Asks for the request to be given up, which is neither an accept nor a send.
    pub(super) fn cancel(&mut self, target: u64, user: u64) {
        // Points to nothing.
        self.push(opcode::AsyncCancel::new(target).build(), user, 0);
    }

    /// Lets the kernel write into a buffer again, unless a completion says that it has refused it.
    pub(super) fn give_back(&mut self, buffer: u16) {
        let index = usize::from(buffer);
        if !std::mem::replace(&mut self.is_ours[index], false) {
            return;
        }
        // SAFETY: `index` is below BUFFERS, or the line above had panicked: the address is in the pool.
        let address = unsafe { self.pool.add(index * READ_BYTES) };
        // From here on nothing shows these bytes: `bytes` looks at `is_ours`.
        let provide =
            opcode::ProvideBuffers::new(address.as_ptr(), READ_BYTES as i32, 1, GROUP, buffer);
        self.push(provide.build(), u64::from(buffer), GIVES_BACK);
    }

    /// True unless all buffers are ours: nothing can be received then.
    pub(super) fn has_lent(&self) -> bool {
        self.is_ours.contains(&false)
    }

    /// Has the kernel refuse all of its buffers, one after the other: none is left to it.
    #[cfg(test)]
    pub(super) fn lose_buffers(&mut self) {
        // Both point to nothing.
        self.push(opcode::RemoveBuffers::new(BUFFERS, GROUP).build(), 0, 0);
        for buffer in 0..BUFFERS {
            let none = opcode::ProvideBuffers::new(std::ptr::null_mut(), 0, 0, GROUP, buffer);
            self.push(none.build(), u64::from(buffer), GIVES_BACK);
        }
    }

    /// A range of the pool; empty unless it lies in one buffer that is ours.
    pub(super) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        let index = range.start / READ_BYTES;
        let end = (index + 1) * READ_BYTES;
        if range.end < range.start
            || range.end > end
            || !self.is_ours.get(index).copied().unwrap_or(false)
        {
            return &[];
        }
        // SAFETY: the range lies in the pool, which is leaked, initialised memory; the kernel has
        // completed its write to this buffer and gets it back only by `give_back`, which takes `&mut
        // self` and so ends this borrow.
        unsafe { std::slice::from_raw_parts(self.pool.add(range.start).as_ptr(), range.len()) }
    }

    /// True when something is queued for the kernel.
    pub(super) fn has_queued(&mut self) -> bool {
        !self.ring.submission().is_empty()
    }

    /// Hands the kernel what is queued and waits for a completion, at most for `limit`; without a limit,
    /// and with nothing to be done on either side, it is no system call.
    pub(super) fn submit(&mut self, limit: Duration) -> io::Result<()> {
        self.push_waiting();
        let is_pending = !self.ring.completion().is_empty() || !self.waiting.is_empty();
        let outcome = if limit.is_zero() || is_pending {
            let queue = self.ring.submission();
            // What comes of a socket waits for our entering the kernel, and so do completions that found no
            // place.
            if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                return Ok(());
            }
            drop(queue);
            self.ring.submit()
        } else {
            let timeout = Timespec::from(limit);
            self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
        };
        match outcome {
            Err(error)
                if ![Errno::TIME, Errno::INTR, Errno::BUSY, Errno::AGAIN]
                    .iter()
                    .any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Has the kernel refuse everything from now on: another file stands where the ring's descriptor was.
    #[cfg(test)]
    pub(super) fn lose(&self) {
        let null = std::fs::File::open("/dev/null").expect("every system has one");
        // SAFETY: the descriptor is the ring's, which stays its owner: what is made here is never dropped.
        let place = unsafe { OwnedFd::from_raw_fd(self.ring.as_raw_fd()) };
        let mut place = ManuallyDrop::new(place);
        rustix::io::dup2(&null, &mut place).expect("two open descriptors");
    }

    /// The next completion, which owns what it hands over.
    pub(super) fn next(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let buffer = cqueue::buffer_select(entry.flags());
        if let Some(buffer) = buffer
            && let Some(is_ours) = self.is_ours.get_mut(usize::from(buffer))
        {
            *is_ours = true;
        }
        let result =
            u32::try_from(entry.result()).map_err(|_| Errno::from_raw_os_error(-entry.result()));
        let name = entry.user_data();
        let is_of_buffer = name & GIVES_BACK != 0;
        let user = if is_of_buffer { 0 } else { name & !HANDS_OVER };
        let accepted = result.ok().filter(|_| name & HANDS_OVER_SOCKET != 0).map(|descriptor| {
            // SAFETY: only `accept` sets this bit, for one connection: the kernel has just opened the descriptor for
            // this completion, which the queue gives out once; so nobody else owns it, and nobody else closes it.
            unsafe { OwnedFd::from_raw_fd(descriptor as i32) }
        });
        // Only `send` sets that bit, and a send has one completion: the kernel has read what it reads.
        let sent = if name & HANDS_OVER_BUFFER != 0 { self.sending.remove(&user) } else { None };
        // Only `give_back` sets this one, with the number of one buffer: the kernel has it, or fails and has not.
        let refused = (is_of_buffer && result.is_err()).then_some(name as u16);
        if let Some(is_ours) = refused.and_then(|one| self.is_ours.get_mut(usize::from(one))) {
            *is_ours = true;
        }
        let has_more = cqueue::more(entry.flags());
        let leaves_more = cqueue::sock_nonempty(entry.flags());
        Some(Completion { user, result, accepted, sent, has_more, leaves_more, buffer, refused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::Wait;
    use crate::skipped::skipped;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// None where the kernel refuses one.
    fn new_ring() -> Option<Ring> {
        Ring::new().map_err(|error| skipped(format_args!("io_uring ({error})"))).ok()
    }

    /// A listener at a path of a folder.
    fn listening() -> (TempDir, PathBuf, UnixListener) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a listener");
        (folder, path, listener)
    }

    /// The next completion, once it has come.
    fn next(ring: &mut Ring) -> Completion {
        let wait = Wait::begin();
        loop {
            ring.submit(Duration::from_millis(10)).expect("the kernel takes what is queued");
            match ring.next() {
                // Those of buffers that were given back say nothing.
                Some(completion) if completion.user == 0 => {}
                Some(completion) => return completion,
                None => wait.go_on("nothing comes of a request"),
            }
        }
    }

    #[test]
    fn only_what_was_asked_for_by_an_accept_or_a_send_hands_something_over_whatever_its_name() {
        let Some(mut ring) = new_ring() else { return };
        let (_folder, path, listener) = listening();
        let name = HANDS_OVER_SOCKET | HANDS_OVER_BUFFER | 7;
        // One after the other, all by one name.
        ring.accept(name, listener.as_fd());
        let mut peer = UnixStream::connect(&path).expect("a connection");
        let made = next(&mut ring);
        assert_eq!((made.user, made.sent), (7, None));
        let socket = made.accepted.expect("its socket");
        ring.poll(name, peer.as_fd());
        ring.send(name, socket.as_fd(), vec![5; 3], 1);
        let mut given_back = None;
        let mut has_polled = false;
        while given_back.is_none() || !has_polled {
            let done = next(&mut ring);
            assert!(done.user == 7 && done.accepted.is_none(), "{done:?}");
            if done.has_more {
                assert_eq!(done.sent, None, "what is being sent is the kernel's");
                has_polled = true;
            } else {
                assert_eq!(done.result, Ok(2));
                given_back = done.sent;
            }
        }
        assert_eq!(given_back, Some(vec![5; 3]));
        let mut bytes = [0; 2];
        peer.read_exact(&mut bytes).expect("what was sent");
        assert_eq!(bytes, [5; 2]);
        // The descriptor has one owner: when that is gone, the peer reads the end.
        drop(socket);
        assert_eq!(peer.read(&mut bytes).expect("the end"), 0);
    }

    #[test]
    fn a_buffer_that_the_kernel_refuses_is_ours_again() {
        let Some(mut ring) = new_ring() else { return };
        ring.lose_buffers();
        let (mut refused, wait) = (Vec::new(), Wait::begin());
        while refused.len() < usize::from(BUFFERS) {
            wait.go_on("not all are refused");
            ring.submit(Duration::ZERO).expect("the kernel takes what is queued");
            refused.extend(std::iter::from_fn(|| ring.next()).filter_map(|one| one.refused));
        }
        assert_eq!(refused, (0..BUFFERS).collect::<Vec<_>>());
        assert!(!ring.has_lent());
        assert_eq!(ring.bytes(&(READ_BYTES..READ_BYTES + 3)).len(), 3, "it is ours");
        ring.give_back(1);
        assert!(ring.has_lent() && ring.bytes(&(READ_BYTES..READ_BYTES + 3)).is_empty());
        let (near, mut far) = UnixStream::pair().expect("two sockets");
        far.write_all(&[5; 3]).expect("the socket takes it");
        ring.receive(7, near.as_fd());
        let received = next(&mut ring);
        assert_eq!((received.result, received.buffer, received.refused), (Ok(3), Some(1), None));
    }

    #[test]
    fn a_socket_that_nobody_takes_out_of_its_completion_is_closed() {
        let Some(mut ring) = new_ring() else { return };
        let (_folder, path, listener) = listening();
        ring.accept(7, listener.as_fd());
        let mut peer = UnixStream::connect(&path).expect("a connection");
        drop(next(&mut ring));
        assert_eq!(peer.read(&mut [0]).expect("the end"), 0);
    }
}
