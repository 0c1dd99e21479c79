//! The gateway's sockets by completion: io_uring with receives into buffers that the kernel picks, and one
//! system call per turn for all that was asked for. While the gateway spins, a look at what has happened is a
//! read of memory.

mod refused;
mod ring;

use super::backend::{ACCEPTS_MAX, Backend, Happened, Listener, READ_BYTES};
use super::bell::Bell;
use refused::Refused;
pub(super) use ring::unread;
use ring::{Completion, Ring};
use rustc_hash::FxHashMap;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a request is for, in the upper bits of its name; the ticket stands in the lower ones.
const KIND_SHIFT: u32 = 56;
const NOTHING: u64 = 0;
const ACCEPT_LOCAL: u64 = 1;
const ACCEPT_TCP: u64 = 2;
const BELL: u64 = 3;
const RECEIVE: u64 = 4;
const SEND: u64 = 5;

/// Accepts under way of a listener, each of one connection: one of many shots goes on while nobody looks, and
/// whoever knocks then takes a descriptor.
const ACCEPTS: usize = ACCEPTS_MAX;

/// Completions that are looked at per turn.
const COMPLETIONS_PER_TURN: usize = 1024;

/// Turns in which nothing happens before the kernel is entered only to receive again: an order's way through
/// the duty thread takes fewer, and its reply takes the receive along.
const PATIENT_TURNS: u32 = 32;

/// Buffers that are kept for a later turn at the most: a quarter of them.
const SHOWN_MAX: usize = 64;

const fn name(kind: u64, ticket: usize) -> u64 {
    kind << KIND_SHIFT | ticket as u64
}

/// A socket that is watched, or was and has requests under way.
struct Watched {
    socket: Arc<OwnedFd>,
    /// A receive is under way.
    is_receiving: bool,
    is_held: bool,
    /// How much of what is being sent the socket has taken.
    sending: Option<usize>,
    /// It ended: nothing is told of it any more.
    has_ended: bool,
    is_forgotten: bool,
}

/// The backend.
pub(super) struct Uring {
    ring: Ring,
    bell: Arc<Bell>,
    /// Each with its accepts under way.
    listeners: Vec<(Listener, OwnedFd, usize)>,
    sockets: FxHashMap<usize, Watched>,
    /// Buffers that turns have told of and that are not given back yet.
    shown: Vec<u16>,
    /// Buffers that were given back in vain.
    refused: Refused,
    /// Sockets whose receive has ended and that are to be received from again.
    resting: Vec<usize>,
    /// Those whose receive brought nothing, for want of a buffer most often: they come before the others.
    starved: Vec<usize>,
    /// One of those that are to be received from has more already.
    is_pressing: bool,
    /// Turns without a completion, one after the other.
    idle_turns: u32,
}

impl Uring {
    /// Makes the ring, and tries on a pair of sockets whether the kernel permits what is needed.
    pub(super) fn new(bell: Arc<Bell>) -> io::Result<Self> {
        let mut made = Self {
            ring: Ring::new()?,
            bell,
            listeners: Vec::new(),
            sockets: FxHashMap::default(),
            shown: Vec::new(),
            refused: Refused::default(),
            resting: Vec::new(),
            starved: Vec::new(),
            is_pressing: false,
            idle_turns: 0,
        };
        // In front of the trial, so that this is one too: a kernel before 5.13 refuses such a poll at once.
        made.listen_to_bell();
        made.try_receive()?;
        // Each ring would go by way of the thread that has asked for it, this one: the thread that takes the turns gives
        // that poll up with its first one, and asks anew.
        made.ring.cancel(name(BELL, 0), name(NOTHING, 0));
        Ok(made)
    }

    fn listen_to_bell(&mut self) {
        self.ring.poll(name(BELL, 0), self.bell.event());
    }

    /// Receives a byte over a pair of sockets, as sessions will.
    fn try_receive(&mut self) -> io::Result<()> {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::io::write(&far, &[1])?;
        drop(far);
        self.ring.receive(name(RECEIVE, 0), near.as_fd());
        for _ in 0..100 {
            self.ring.submit(Duration::from_millis(100))?;
            while let Some(completion) = self.ring.next() {
                if completion.user == name(BELL, 0) {
                    self.rang(&completion)?;
                    continue;
                }
                let length = completion.result?;
                if let Some(buffer) = completion.buffer {
                    self.ring.give_back(buffer);
                }
                if completion.user == name(RECEIVE, 0) {
                    return if length == 1 {
                        Ok(())
                    } else {
                        Err(io::Error::other("a receive lost bytes"))
                    };
                }
            }
        }
        Err(io::Error::other("a receive does not end"))
    }

    fn listen_on(&mut self, which: Listener) {
        let kind = if which == Listener::Local { ACCEPT_LOCAL } else { ACCEPT_TCP };
        let listener = self.listeners.iter_mut().find(|(one, ..)| *one == which);
        if let Some((_, socket, under_way)) = listener {
            while *under_way < ACCEPTS {
                *under_way += 1;
                self.ring.accept(name(kind, 0), socket.as_fd());
            }
        }
    }

    fn receive(&mut self, ticket: usize) {
        if let Some(watched) = self.sockets.get_mut(&ticket)
            && !(watched.is_receiving || watched.is_held || watched.has_ended)
        {
            watched.is_receiving = true;
            self.ring.receive(name(RECEIVE, ticket), watched.socket.as_fd());
        }
    }

    fn receive_again(&mut self) {
        self.is_pressing = false;
        for buffer in self.shown.drain(..) {
            self.ring.give_back(buffer);
        }
        if !self.refused.is_empty() {
            for buffer in self.refused.take_due(Instant::now()) {
                self.ring.give_back(buffer);
            }
            if !self.ring.has_lent() {
                // Each receive would fail at once, again and again.
                return;
            }
        }
        let first = std::mem::take(&mut self.starved);
        for ticket in first.into_iter().chain(std::mem::take(&mut self.resting)) {
            self.receive(ticket);
        }
    }

    fn complete(&mut self, completion: Completion, happened: &mut Vec<Happened>) -> io::Result<()> {
        if let Some(buffer) = completion.refused {
            self.refused.add(buffer, Instant::now());
        }
        let ticket = (completion.user & ((1 << KIND_SHIFT) - 1)) as usize;
        match completion.user >> KIND_SHIFT {
            ACCEPT_LOCAL => self.accepted(Listener::Local, completion, happened),
            ACCEPT_TCP => self.accepted(Listener::Tcp, completion, happened),
            BELL => self.rang(&completion)?,
            RECEIVE => self.received(ticket, &completion, happened),
            SEND => self.sent(ticket, completion, happened),
            _ => {}
        }
        Ok(())
    }

    /// The bell rang, or cannot be waited for.
    fn rang(&mut self, completion: &Completion) -> io::Result<()> {
        match completion.result {
            // The poll of the thread that made this was given up: it is asked for anew by this one.
            Ok(_) | Err(Errno::CANCELED) => {}
            Err(error) => {
                // Another poll would fail in the same way, and at once.
                let kind = io::Error::from(error).kind();
                return Err(io::Error::new(
                    kind,
                    format!("io_uring cannot wait for the bell: {error}"),
                ));
            }
        }
        self.bell.quiet();
        if !completion.has_more {
            self.listen_to_bell();
        }
        Ok(())
    }

    /// True when a turn is to begin receives for want of which nothing comes, or to offer buffers.
    fn has_due(&self) -> bool {
        !self.starved.is_empty() && (self.refused.is_empty() || self.ring.has_lent())
            || self.refused.pause().is_some_and(|pause| pause.is_zero())
    }

    fn accepted(&mut self, which: Listener, completion: Completion, happened: &mut Vec<Happened>) {
        if let Some((.., under_way)) = self.listeners.iter_mut().find(|(one, ..)| *one == which) {
            *under_way -= 1;
        }
        match completion.result {
            Ok(_) => {
                let socket = completion.accepted;
                happened.extend(socket.map(|socket| Happened::Accepted(which, socket)));
            }
            Err(Errno::INTR | Errno::CONNABORTED | Errno::AGAIN) => {}
            Err(error) => {
                happened.push(Happened::AcceptFailed(which, error.into()));
                // Another one would fail in the same way.
                return;
            }
        }
        self.listen_on(which);
    }

    fn received(&mut self, ticket: usize, completion: &Completion, happened: &mut Vec<Happened>) {
        self.shown.extend(completion.buffer);
        let Some(watched) = self.sockets.get_mut(&ticket) else { return };
        watched.is_receiving = false;
        let is_told = !watched.is_forgotten;
        match (completion.result, completion.buffer) {
            (Ok(count), Some(buffer)) if count > 0 => {
                let start = usize::from(buffer) * READ_BYTES;
                if is_told {
                    happened.push(Happened::Received(ticket, start..start + count as usize));
                }
                self.is_pressing |= completion.leaves_more;
                self.resting.push(ticket);
            }
            // For want of buffers, which go back before it is asked again; or held, and let go again before
            // the kernel knew.
            (Err(Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN), _) => {
                self.starved.push(ticket);
            }
            _ => {
                watched.has_ended = true;
                if is_told {
                    happened.push(Happened::Ended(ticket));
                }
            }
        }
        self.bury(ticket);
    }

    fn sent(&mut self, ticket: usize, completion: Completion, happened: &mut Vec<Happened>) {
        let Some(mut buffer) = completion.sent else { return };
        let Some(watched) = self.sockets.get_mut(&ticket) else { return };
        let Some(before) = watched.sending.take() else { return };
        match completion.result {
            _ if watched.is_forgotten => {}
            Ok(count) if before + (count as usize) < buffer.len() => {
                let sent = before + count as usize;
                watched.sending = Some(sent);
                self.ring.send(completion.user, watched.socket.as_fd(), buffer, sent);
                happened.push(Happened::Progressed(ticket, count as usize));
            }
            Ok(_) => {
                buffer.clear();
                happened.push(Happened::Sent(ticket, buffer));
            }
            Err(Errno::INTR | Errno::AGAIN) => {
                watched.sending = Some(before);
                self.ring.send(completion.user, watched.socket.as_fd(), buffer, before);
            }
            Err(_) => {
                watched.has_ended = true;
                happened.push(Happened::Ended(ticket));
            }
        }
        self.bury(ticket);
    }

    /// Drops a forgotten socket once the kernel has no request for it: its number is not used again
    /// before that.
    fn bury(&mut self, ticket: usize) {
        if let Some(watched) = self.sockets.get(&ticket)
            && watched.is_forgotten
            && !watched.is_receiving
            && watched.sending.is_none()
        {
            self.sockets.remove(&ticket);
        }
    }
}

impl Backend for Uring {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn listen(&mut self, which: Listener, socket: OwnedFd) -> io::Result<()> {
        // Of a socket that does not block the kernel would say so instead of waiting for it.
        let flags = fcntl_getfl(&socket)?;
        fcntl_setfl(&socket, flags - OFlags::NONBLOCK)?;
        self.listeners.push((which, socket, 0));
        self.listen_on(which);
        Ok(())
    }

    fn accept_again(&mut self, which: Listener) {
        self.listen_on(which);
    }

    fn watch(&mut self, ticket: usize, socket: Arc<OwnedFd>) -> io::Result<()> {
        let watched = Watched {
            socket,
            is_receiving: false,
            is_held: false,
            sending: None,
            has_ended: false,
            is_forgotten: false,
        };
        self.sockets.insert(ticket, watched);
        self.receive(ticket);
        Ok(())
    }

    fn hold(&mut self, ticket: usize, held: bool) {
        let Some(watched) = self.sockets.get_mut(&ticket) else { return };
        watched.is_held = held;
        if held && watched.is_receiving {
            self.ring.cancel(name(RECEIVE, ticket), name(NOTHING, 0));
        } else {
            self.receive(ticket);
        }
    }

    fn send(&mut self, ticket: usize, buffer: Vec<u8>, _: &mut Vec<Happened>) {
        if let Some(watched) = self.sockets.get_mut(&ticket)
            && watched.sending.is_none()
            && !watched.has_ended
        {
            watched.sending = Some(0);
            self.ring.send(name(SEND, ticket), watched.socket.as_fd(), buffer, 0);
        }
    }

    fn socket(&self, ticket: usize) -> Option<BorrowedFd<'_>> {
        Some(self.sockets.get(&ticket)?.socket.as_fd())
    }

    fn forget(&mut self, ticket: usize) {
        let Some(watched) = self.sockets.get_mut(&ticket) else { return };
        watched.is_forgotten = true;
        watched.is_held = true;
        if watched.is_receiving || watched.sending.is_some() {
            // Ends what is under way; a socket that is not connected any more has nothing under way.
            let _ended = shutdown(&watched.socket, Shutdown::Both);
        }
        if watched.is_receiving {
            self.ring.cancel(name(RECEIVE, ticket), name(NOTHING, 0));
        }
        self.bury(ticket);
    }

    fn turn(&mut self, limit: Duration, happened: &mut Vec<Happened>) -> io::Result<()> {
        // Buffers go back, and receives begin anew, with what goes to the kernel anyway, a reply most often.
        if self.ring.has_queued()
            || self.is_pressing
            || self.has_due()
            || self.shown.len() >= SHOWN_MAX
            || !self.resting.is_empty() && self.idle_turns >= PATIENT_TURNS
            || !limit.is_zero()
        {
            self.receive_again();
        }
        let limit = self.refused.pause().map_or(limit, |pause| pause.min(limit));
        self.ring.submit(limit)?;
        self.idle_turns = self.idle_turns.saturating_add(1);
        for _ in 0..COMPLETIONS_PER_TURN {
            let Some(completion) = self.ring.next() else { break };
            self.idle_turns = 0;
            self.complete(completion, happened)?;
        }
        Ok(())
    }

    fn bytes(&self, at: &Range<usize>) -> &[u8] {
        self.ring.bytes(at)
    }

    fn into_sockets(self: Box<Self>) -> Vec<Arc<OwnedFd>> {
        self.sockets.into_values().map(|watched| watched.socket).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::{PATIENCE, Wait, join};
    use crate::skipped::skipped;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::thread::gettid;
    use std::sync::mpsc;
    use std::{fs, thread};

    /// None where the kernel refuses io_uring.
    fn new_uring() -> Option<Uring> {
        let made = Uring::new(Arc::new(Bell::new().expect("an eventfd")));
        made.map_err(|error| skipped(format_args!("io_uring ({error})"))).ok()
    }

    /// A socket that is watched, and its other end.
    fn watch(uring: &mut Uring, ticket: usize) -> OwnedFd {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .expect("a pair of sockets");
        uring.watch(ticket, Arc::new(near)).expect("a receive is queued");
        far
    }

    #[test]
    fn a_submission_that_the_kernel_refuses_is_an_error_of_the_turn() {
        let Some(mut uring) = new_uring() else { return };
        let mut happened = Vec::new();
        // The first turn gives up a poll and asks for another one.
        for _ in 0..2 {
            uring.turn(Duration::ZERO, &mut happened).expect("the kernel takes what is queued");
        }
        assert!(!uring.ring.has_queued());
        uring.ring.lose();
        // Without anything to hand over or to wait for there is no system call, so nothing to fail.
        uring.turn(Duration::ZERO, &mut happened).expect("nothing is asked of the kernel");
        let _far = watch(&mut uring, 1);
        assert!(uring.turn(Duration::ZERO, &mut happened).is_err(), "a submission");
        assert!(uring.turn(Duration::from_millis(1), &mut happened).is_err(), "a wait");
        assert!(happened.is_empty());
    }

    #[test]
    fn where_the_bell_cannot_be_waited_for_there_is_no_io_uring() {
        if new_uring().is_none() {
            return;
        }
        let refused = Uring::new(Arc::new(Bell::unheard())).err().expect("nobody could wake it");
        assert!(refused.to_string().contains("cannot wait for the bell"), "{refused}");
    }

    #[test]
    fn a_bell_that_cannot_be_waited_for_any_more_is_an_error_of_the_turn() {
        let Some(mut uring) = new_uring() else { return };
        let mut happened = Vec::new();
        uring.turn(Duration::ZERO, &mut happened).expect("the kernel takes what is queued");
        let unheard = Bell::unheard();
        uring.ring.poll(name(BELL, 0), unheard.event());
        let ended = uring.turn(PATIENCE, &mut happened).expect_err("it would never sleep again");
        assert!(ended.to_string().contains("cannot wait for the bell"), "{ended}");
    }

    /// Else that thread would have to get a core before the one that waits is woken.
    #[test]
    fn no_ring_of_the_bell_goes_by_way_of_the_thread_that_has_made_it() {
        const RINGS: u64 = 200;
        let (give, given) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let maker = thread::spawn(move || {
            give.send((new_uring(), gettid())).expect("it is waited for");
            let _ended = may_end.recv();
        });
        let (uring, maker_id) = given.recv().expect("it is made");
        let Some(mut uring) = uring else { return };
        let switches = || -> u64 {
            let status = fs::read_to_string(format!("/proc/self/task/{maker_id}/status"));
            let status = status.expect("it lives");
            let line =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.expect("the kernel counts them").trim().parse().expect("a number")
        };
        hear_a_ring(&mut uring);
        let before = switches();
        (0..RINGS).for_each(|_| hear_a_ring(&mut uring));
        let woken = switches() - before;
        assert!(woken < RINGS / 2, "it was woken {woken} times");
        drop(end);
        join(maker, "the thread that has made it");
    }

    fn is_rung(bell: &Bell) -> bool {
        let mut event = [PollFd::from_borrowed_fd(bell.event(), PollFlags::IN)];
        poll(&mut event, Some(&Timespec::default())).expect("it can be looked at") > 0
    }

    /// Rings the bell, and takes turns until it is heard.
    fn hear_a_ring(uring: &mut Uring) {
        let (bell, mut happened) = (Arc::clone(&uring.bell), Vec::new());
        bell.park(false);
        bell.ring();
        let wait = Wait::begin();
        while is_rung(&bell) {
            wait.go_on("the bell is not heard");
            uring.turn(Duration::from_millis(10), &mut happened).expect("a turn");
        }
    }

    /// As when the thread that made it has ended.
    #[test]
    fn a_poll_of_the_bell_that_is_given_up_is_begun_anew() {
        let Some(mut uring) = new_uring() else { return };
        let mut happened = Vec::new();
        uring.ring.cancel(name(BELL, 0), name(NOTHING, 0));
        uring.turn(Duration::ZERO, &mut happened).expect("the kernel takes what is queued");
        hear_a_ring(&mut uring);
    }

    #[test]
    fn buffers_that_the_kernel_refuses_are_offered_again_and_meanwhile_it_is_asked_for_nothing() {
        let Some(mut uring) = new_uring() else { return };
        let (mut happened, wait) = (Vec::new(), Wait::begin());
        uring.turn(Duration::ZERO, &mut happened).expect("the kernel takes what is queued");
        uring.ring.lose_buffers();
        let far = watch(&mut uring, 1);
        rustix::io::write(&far, &[1, 2, 3]).expect("the socket takes it");
        // The kernel takes what is behind a refused one only with the next turn.
        while uring.ring.has_queued() || uring.ring.has_lent() || uring.starved.is_empty() {
            wait.go_on("there are buffers still");
            uring.refused.offer_at(Instant::now() + 2 * PATIENCE);
            uring.turn(Duration::ZERO, &mut happened).expect("a turn");
        }
        let before = uring.idle_turns;
        for _ in 0..100 {
            uring.turn(Duration::ZERO, &mut happened).expect("a turn");
        }
        assert_eq!(uring.idle_turns, before + 100, "something was asked for in vain");
        assert!(happened.is_empty(), "{happened:?}");
        uring.refused.offer_at(Instant::now());
        while happened.is_empty() {
            wait.go_on("the buffers stay lost");
            uring.turn(PATIENCE, &mut happened).expect("a turn");
        }
        let [Happened::Received(1, at)] = &happened[..] else { panic!("{happened:?}") };
        assert_eq!(uring.bytes(at), [1, 2, 3]);
        while !uring.refused.is_empty() {
            wait.go_on("some of the buffers stay lost");
            uring.turn(PATIENCE, &mut happened).expect("a turn");
        }
        assert_eq!(happened.len(), 1, "{happened:?}");
    }
}
