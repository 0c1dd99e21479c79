//! The door: a thread that accepts connections and hears who has come, until a peer has proved who it is.
//! Only then does the gateway hear of it. Whoever knocks, talks nonsense or never says a word costs time of
//! this thread, and none of the thread that carries orders. Started with the gateway.

use super::backend::{Backend, Happened, Listener};
use super::bell::Bell;
use super::crowd::Crowd;
use super::peer::{Origin, Peer, Progress, Said};
use super::refusals::Refusals;
use super::{GatewayOptions, Mail};
use rustc_hash::FxHashMap;
use rustix::net::sockopt::set_tcp_nodelay;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A peer that has not finished its handshake by then is closed.
pub(super) const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// Peers at the door at once that have said equally much: nothing, a part of a Hello, or all of it. One more closes
/// the oldest of the address that has most of these. So a crowd from everywhere that only knocks keeps nobody out who
/// says more than that; one that sends Hellos, each from another address, does keep out who takes long for the proof.
const PEERS_PER_KIND: usize = 128;
/// Peers at the door at once.
pub(super) const PEERS_MAX: usize = 3 * PEERS_PER_KIND;
/// Peers at the door at once of one address that have said equally much: nothing, a part of a Hello, or all of
/// it. One more closes the oldest of these, and of those who owe a proof the oldest of the key that most of them
/// name. So whoever only knocks keeps nobody out who comes from elsewhere, or who says more than that.
///
/// None is kept longer for a mere beginning: they would be in the way of those who have not been read of yet. So
/// many come in four turns, which is what it takes at the most to read of all: who brings a Hello is heard in time.
const PEERS_PER_ORIGIN: usize = PEERS_PER_KIND / 2;
/// Those that the gateway has not taken yet, at the most: each may have brought memory for its rings.
pub(super) const ARRIVALS_MAX: usize = 64;
/// Pause while there are so many.
const FULL: Duration = Duration::from_millis(1);
/// How often deadlines, and listeners that failed, are looked at while there are any.
const TICK: Duration = Duration::from_millis(250);
/// Longest sleep: nothing depends on it.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// A peer that has proved who it is.
pub(super) struct Arrival {
    pub(super) peer: Peer,
    /// What it wants.
    pub(super) progress: Progress,
}

/// The thread's state.
pub(super) struct Door {
    options: Arc<GatewayOptions>,
    backend: Box<dyn Backend + Send>,
    bell: Arc<Bell>,
    mail: Arc<Mail>,
    /// Those that have not proved who they are.
    peers: FxHashMap<usize, Peer>,
    /// Listeners that accept nothing at present: tried again with the next tick.
    refused_by_kernel: Vec<Listener>,
    next_ticket: usize,
    refusals: Refusals,
}

impl Door {
    /// Over a backend that listens, and that `bell` wakes.
    pub(super) fn new(
        options: Arc<GatewayOptions>,
        backend: Box<dyn Backend + Send>,
        bell: Arc<Bell>,
        mail: Arc<Mail>,
    ) -> Self {
        Self {
            options,
            backend,
            bell,
            mail,
            peers: FxHashMap::default(),
            refused_by_kernel: Vec::new(),
            next_ticket: 0,
            refusals: Refusals::default(),
        }
    }

    /// Until `stop` is set and the bell rung, or the backend fails.
    pub(super) fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut happened = Vec::new();
        let mut ticked = Instant::now();
        while !stop.load(Ordering::Acquire) {
            self.bell.park(false);
            let stops = stop.load(Ordering::Acquire);
            self.backend
                .turn(if stops { Duration::ZERO } else { self.patience() }, &mut happened)?;
            self.bell.unpark();
            for one in happened.drain(..) {
                self.take(one, stop);
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                for listener in self.refused_by_kernel.drain(..) {
                    self.backend.accept_again(listener);
                }
                self.close_late();
            }
        }
        Ok(())
    }

    /// Until the next deadline, roughly: idle costs nothing.
    fn patience(&self) -> Duration {
        let has_deadlines = !self.peers.is_empty() || !self.refused_by_kernel.is_empty();
        if has_deadlines { TICK } else { LONGEST_SLEEP }
    }

    fn take(&mut self, happened: Happened, stop: &AtomicBool) {
        match happened {
            Happened::Accepted(listener, socket) => self.admit(listener, socket),
            Happened::AcceptFailed(listener, error) => {
                self.refusals.print(&format!("cannot accept a connection: {error}"));
                // Each who knocks meanwhile may fail anew.
                if !self.refused_by_kernel.contains(&listener) {
                    self.refused_by_kernel.push(listener);
                }
            }
            Happened::Received(ticket, at) => self.received(ticket, &at, stop),
            Happened::Ended(ticket) => self.remove(ticket),
            // What a handshake says fits into any socket, and is written at once.
            Happened::Sent(..) | Happened::Progressed(..) => {}
        }
    }

    fn admit(&mut self, listener: Listener, socket: OwnedFd) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if listener == Listener::Tcp {
            // Without it a client of ours waits 40 ms for a reply: told, and served all the same.
            if let Err(error) = set_tcp_nodelay(&socket, true) {
                self.refusals.print(&format!("TCP_NODELAY: {error}"));
            }
        }
        let origin = match Origin::of(listener, &socket) {
            Ok(origin) => origin,
            // It is gone again.
            Err(error) => {
                return self.refusals.print(&format!("a connection from nowhere: {error}"));
            }
        };
        let socket = Arc::new(socket);
        if let Err(error) = self.backend.watch(ticket, Arc::clone(&socket)) {
            return self.refusals.print(&format!("cannot watch a connection: {error}"));
        }
        self.make_place(ticket, origin, Said::Nothing);
        self.peers.insert(ticket, Peer::new(socket, origin));
    }

    /// Closes a connection if there are too many beside this one, which comes from here and has said this.
    fn make_place(&mut self, ticket: usize, origin: Origin, said: Said) {
        let others = self.peers.iter().filter(|(other, _)| **other != ticket);
        let groups = others.map(|(&other, peer)| (other, (peer.origin(), peer.said())));
        let alike = groups.filter(|(_, (_, has))| has.is_like(&said));
        let from_here = alike.clone().filter(|(_, (from, _))| *from == origin);
        let full = Crowd::of(from_here).too_many(PEERS_PER_ORIGIN);
        if let Some(oldest) = full.or_else(|| Crowd::of(alike).too_many(PEERS_PER_KIND)) {
            self.refusals.print("closed a connection: too many are in their handshake");
            self.remove(oldest);
        }
    }

    fn received(&mut self, ticket: usize, at: &Range<usize>, stop: &AtomicBool) {
        let Some(peer) = self.peers.get_mut(&ticket) else { return };
        let before = peer.said();
        match peer.received(self.backend.bytes(at), &self.options) {
            Progress::Waiting => {
                let (origin, said) = (peer.origin(), peer.said());
                if said != before {
                    self.make_place(ticket, origin, said);
                }
            }
            Progress::Gone(why) => {
                if let Some(why) = why {
                    self.refusals.print(&why);
                }
                self.remove(ticket);
            }
            progress => self.hand_over(ticket, progress, stop),
        }
    }

    /// The peer is the gateway's from now on.
    fn hand_over(&mut self, ticket: usize, progress: Progress, stop: &AtomicBool) {
        // Others wait in the kernel's queue meanwhile.
        while self.mail.arrivals.waiting() >= ARRIVALS_MAX && !stop.load(Ordering::Acquire) {
            thread::sleep(FULL);
        }
        let Some(peer) = self.peers.remove(&ticket) else { return };
        // Nothing of it is under way in the kernel: its bytes have just come, and none were asked for since.
        self.backend.forget(ticket);
        self.mail.arrivals.put(Arrival { peer, progress });
        self.mail.bell.ring();
    }

    /// Forgets a peer; dropping its socket closes it.
    fn remove(&mut self, ticket: usize) {
        if self.peers.remove(&ticket).is_some() {
            self.backend.forget(ticket);
        }
    }

    fn close_late(&mut self) {
        let is_late = |peer: &Peer| peer.since().elapsed() > HANDSHAKE_LIMIT;
        let late = self.peers.iter().filter(|(_, peer)| is_late(peer));
        for ticket in late.map(|(&ticket, _)| ticket).collect::<Vec<_>>() {
            self.refusals.print("closed a connection whose handshake took over 5 s");
            self.remove(ticket);
        }
    }
}

#[cfg(test)]
mod tests;
