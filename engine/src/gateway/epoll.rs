//! The gateway's sockets by readiness: epoll through mio, one system call per read and per write. What is
//! used where io_uring is not permitted.

use super::backend::{ACCEPTS_MAX, Backend, Happened, Listener, READ_BYTES};
use super::bell::Bell;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustc_hash::FxHashMap;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// As [`Backend::name`].
pub(super) const NAME: &str = "epoll";

const LOCAL: Token = Token(usize::MAX);
const TCP: Token = Token(usize::MAX - 1);
const BELL: Token = Token(usize::MAX - 2);

/// Events taken per turn: of everybody at the door, and some more.
const EVENTS: usize = 512;
/// Sockets read per turn.
const READS: usize = 64;

/// A socket that is watched.
struct Watched {
    socket: Arc<OwnedFd>,
    /// There may be something to read.
    is_readable: bool,
    /// The end comes behind what there is to read, and is no event of its own.
    is_ending: bool,
    /// It is in the queue of those to be read.
    is_queued: bool,
    is_held: bool,
    /// Something that the socket did not take at once, and how much of it was taken.
    unsent: Option<(Vec<u8>, usize)>,
}

/// The backend.
pub(super) struct Epoll {
    poll: Poll,
    events: Events,
    bell: Arc<Bell>,
    listeners: Vec<(Listener, OwnedFd)>,
    /// Listeners that are to be tried again: they have failed, or there may be more than was accepted.
    again: Vec<Listener>,
    sockets: FxHashMap<usize, Watched>,
    /// Sockets that are to be read, in the order in which they became so.
    queue: std::collections::VecDeque<usize>,
    buffer: Box<[u8]>,
}

impl Epoll {
    pub(super) fn new(bell: Arc<Bell>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let event = bell.event().as_raw_fd();
        poll.registry().register(&mut SourceFd(&event), BELL, Interest::READABLE)?;
        Ok(Self {
            poll,
            events: Events::with_capacity(EVENTS),
            bell,
            listeners: Vec::new(),
            again: Vec::new(),
            sockets: FxHashMap::default(),
            queue: std::collections::VecDeque::new(),
            buffer: vec![0; READS * READ_BYTES].into_boxed_slice(),
        })
    }

    fn accept(&mut self, which: Listener, happened: &mut Vec<Happened>) {
        let Some((_, listener)) = self.listeners.iter().find(|(one, _)| *one == which) else {
            return;
        };
        for _ in 0..ACCEPTS_MAX {
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => happened.push(Happened::Accepted(which, socket)),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => {
                    happened.push(Happened::AcceptFailed(which, error.into()));
                    return;
                }
            }
        }
        // No event tells of those that were there already.
        self.accept_again(which);
    }

    fn queue_up(&mut self, ticket: usize) {
        if let Some(watched) = self.sockets.get_mut(&ticket)
            && watched.is_readable
            && !watched.is_held
            && !watched.is_queued
        {
            watched.is_queued = true;
            self.queue.push_back(ticket);
        }
    }

    /// Reads each queued socket once, as far as there are buffers.
    fn read(&mut self, happened: &mut Vec<Happened>) {
        let (mut used, mut looks) = (0, 0);
        // No more than were there: some come back. Those that are gone or held take no other's place.
        for _ in 0..self.queue.len() {
            if looks == READS {
                return;
            }
            let Some(ticket) = self.queue.pop_front() else { return };
            let Some(watched) = self.sockets.get_mut(&ticket) else { continue };
            watched.is_queued = false;
            if watched.is_held {
                continue;
            }
            looks += 1;
            let into = &mut self.buffer[used..used + READ_BYTES];
            match recv(&watched.socket, into, RecvFlags::DONTWAIT) {
                Ok((0, _)) => happened.push(Happened::Ended(ticket)),
                Ok((count, _)) => {
                    happened.push(Happened::Received(ticket, used..used + count));
                    used += READ_BYTES;
                    // A short read has emptied the socket: the next bytes are an event again.
                    watched.is_readable = count == READ_BYTES || watched.is_ending;
                    self.queue_up(ticket);
                }
                Err(Errno::AGAIN) => watched.is_readable = false,
                Err(Errno::INTR) => self.queue_up(ticket),
                Err(_) => happened.push(Happened::Ended(ticket)),
            }
        }
    }

    /// Gives the socket as much as it takes.
    fn write(&mut self, ticket: usize, happened: &mut Vec<Happened>) {
        let Some(watched) = self.sockets.get_mut(&ticket) else { return };
        let Some((buffer, sent)) = &mut watched.unsent else { return };
        let before = *sent;
        while *sent < buffer.len() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&watched.socket, &buffer[*sent..], flags) {
                Ok(count) => *sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if *sent > before {
                        happened.push(Happened::Progressed(ticket, *sent - before));
                    }
                    return;
                }
                Err(_) => {
                    watched.unsent = None;
                    happened.push(Happened::Ended(ticket));
                    return;
                }
            }
        }
        let (mut buffer, _) = watched.unsent.take().expect("it was there");
        buffer.clear();
        happened.push(Happened::Sent(ticket, buffer));
    }
}

impl Backend for Epoll {
    fn name(&self) -> &'static str {
        NAME
    }

    fn listen(&mut self, which: Listener, socket: OwnedFd) -> io::Result<()> {
        let token = if which == Listener::Local { LOCAL } else { TCP };
        let registry = self.poll.registry();
        registry.register(&mut SourceFd(&socket.as_raw_fd()), token, Interest::READABLE)?;
        self.listeners.push((which, socket));
        Ok(())
    }

    fn accept_again(&mut self, which: Listener) {
        // Those who wait since then are no event any more.
        if !self.again.contains(&which) {
            self.again.push(which);
        }
    }

    fn watch(&mut self, ticket: usize, socket: Arc<OwnedFd>) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        registry.register(&mut SourceFd(&socket.as_raw_fd()), Token(ticket), both)?;
        let watched = Watched {
            socket,
            is_readable: false,
            is_ending: false,
            is_queued: false,
            is_held: false,
            unsent: None,
        };
        self.sockets.insert(ticket, watched);
        Ok(())
    }

    fn hold(&mut self, ticket: usize, held: bool) {
        if let Some(watched) = self.sockets.get_mut(&ticket) {
            watched.is_held = held;
        }
        self.queue_up(ticket);
    }

    fn send(&mut self, ticket: usize, buffer: Vec<u8>, happened: &mut Vec<Happened>) {
        if let Some(watched) = self.sockets.get_mut(&ticket) {
            watched.unsent = Some((buffer, 0));
            self.write(ticket, happened);
        }
    }

    fn socket(&self, ticket: usize) -> Option<BorrowedFd<'_>> {
        Some(self.sockets.get(&ticket)?.socket.as_fd())
    }

    fn forget(&mut self, ticket: usize) {
        if let Some(watched) = self.sockets.remove(&ticket) {
            let raw = watched.socket.as_raw_fd();
            // Closing it does the same, once nobody else holds it.
            let _gone = self.poll.registry().deregister(&mut SourceFd(&raw));
        }
    }

    fn turn(&mut self, limit: Duration, happened: &mut Vec<Happened>) -> io::Result<()> {
        let has_work = !(self.queue.is_empty() && self.again.is_empty());
        let limit = if has_work { Duration::ZERO } else { limit };
        match self.poll.poll(&mut self.events, Some(limit)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in &events {
            match event.token() {
                LOCAL => self.accept_again(Listener::Local),
                TCP => self.accept_again(Listener::Tcp),
                BELL => self.bell.quiet(),
                Token(ticket) => {
                    if event.is_writable() {
                        self.write(ticket, happened);
                    }
                    if (event.is_readable() || event.is_read_closed() || event.is_error())
                        && let Some(watched) = self.sockets.get_mut(&ticket)
                    {
                        watched.is_readable = true;
                        watched.is_ending |= event.is_read_closed();
                        self.queue_up(ticket);
                    }
                }
            }
        }
        self.events = events;
        // What was said comes before those who have just come: they may take the place of who says nothing.
        self.read(happened);
        for which in std::mem::take(&mut self.again) {
            self.accept(which, happened);
        }
        Ok(())
    }

    fn bytes(&self, at: &Range<usize>) -> &[u8] {
        &self.buffer[at.clone()]
    }

    fn into_sockets(self: Box<Self>) -> Vec<Arc<OwnedFd>> {
        self.sockets.into_values().map(|watched| watched.socket).collect()
    }
}
