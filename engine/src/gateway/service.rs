//! The gateway thread's loop: what the sockets have, what the duty thread says, what the time says. How a
//! proved peer comes to its session is here, stream sessions are in [`super::sessions`].

use super::backend::{ACCEPTS_MAX, Backend, Happened};
use super::crowd::Crowd;
use super::door::{ARRIVALS_MAX, Arrival, HANDSHAKE_LIMIT, PEERS_MAX};
use super::hear_out::hear_out;
use super::history::{Answer, History};
use super::logons::Logons;
use super::peer::{Peer, Progress, Welcomed};
use super::readers::Readers;
use super::refusals::Refusals;
use super::sessions::Sessions;
use super::watches::Watches;
use super::{GatewayOptions, Mail};
use crate::log::Control;
use crate::mailbox::{Asked, FromDuty, LogonLetter, LogonRequest, ToDuty};
use crate::notice::alert;
use rustc_hash::FxHashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use touchline_protocol::message::enums::{CloseReason, RejectReason};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::ring::SessionEnd;
use touchline_protocol::units::{Epoch, KeyId, Position, SessionId};
use touchline_protocol::wait::Waiter;

/// Connections that only the local user's roles may open, or a quarter of all if that is less: no
/// trader can lock out admin or adapter.
const LOCAL_CONNECTIONS: usize = 8;
/// Peers that have proved who they are and wait for the log or the feed; one more closes the oldest of the
/// key that has most of them. Who waits for neither is not kept out by those who do.
const WAITING_MAX: usize = 256;
/// Such peers of one key; one more of it is refused.
const WAITING_PER_KEY: usize = WAITING_MAX / 4;
/// Descriptors of those that have no session yet, at the most; one that is about to have rings of its own has
/// three.
pub const SESSIONLESS_MAX: usize = 2 * ACCEPTS_MAX + PEERS_MAX + 3 * ARRIVALS_MAX + WAITING_MAX;
/// How often deadlines are looked at while there are any.
const TICK: Duration = Duration::from_millis(250);
/// Longer between two looks at deadlines while there are any is a pause of the gateway's own: the process was
/// stopped, or had no core.
const PAUSE: Duration = Duration::from_millis(2 * TICK.as_millis() as u64);
/// Longest sleep: nothing depends on it.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// Sleep while messages wait for room in the duty thread's ring, or for their session's allowance: nobody tells of
/// either.
const STUCK: Duration = Duration::from_millis(1);
/// Longest that the gateway's end takes for clients and readers of the feed that do not read.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Longest that it takes for those that do: little at a time keeps the engine from its end no longer.
const LAST_WORDS_MAX: Duration = Duration::from_secs(5);
/// Turns without work before the first yield: fewer than the pauses of [`touchline_protocol::wait`], since a
/// turn takes longer than a pause. More of them keep the core from the duty thread, where the two share one.
const SPINS: u32 = 12;

pub(super) struct Gateway {
    pub(super) options: Arc<GatewayOptions>,
    /// Its watermarks.
    pub(super) log: Control,
    pub(super) backend: Box<dyn Backend + Send>,
    pub(super) mail: Arc<Mail>,
    pub(super) history: History,
    /// On the way to their session, or with rings of their own.
    pub(super) peers: FxHashMap<usize, Peer>,
    open: FxHashMap<(SessionId, Epoch), usize>,
    logons: Logons,
    pub(super) sessions: Sessions,
    pub(super) watches: Watches,
    pub(super) readers: Readers,
    next_ticket: usize,
    pub(super) refusals: Refusals,
    /// The same of logons for which a capacity is used up, which no other line is to keep back: it tells the way out.
    used_up: Refusals,
    pub(super) now: Instant,
    ticked: Instant,
    happened: Vec<Happened>,
    answer: Option<Answer>,
}

impl Gateway {
    pub(super) fn new(
        options: Arc<GatewayOptions>,
        log: Control,
        backend: Box<dyn Backend + Send>,
        mail: Arc<Mail>,
        rings: SessionEnd,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let per_second = options.commands_per_second;
        Ok(Self {
            readers: Readers::new(options.feed.clone()).map_err(io::Error::other)?,
            history: History::start(&options.data, log.shared_memory_root(), mail.bell())?,
            options,
            log,
            backend,
            mail,
            peers: FxHashMap::default(),
            open: FxHashMap::default(),
            logons: Logons::new(per_second),
            sessions: Sessions::new(rings, per_second, now),
            watches: Watches::default(),
            next_ticket: 0,
            refusals: Refusals::default(),
            used_up: Refusals::default(),
            now,
            ticked: now,
            happened: Vec::new(),
            answer: None,
        })
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut waiter = Waiter::yielding_after(SPINS, self.options.settings.wait.into());
        while !stop.load(Ordering::Acquire) {
            if self.turn(Duration::ZERO)? || !waiter.linger() && self.sleep(stop)? {
                waiter.reset();
            }
        }
        let begin = Instant::now();
        self.say_last_words()?;
        let limit = (begin + LAST_WORDS_MAX).max(Instant::now() + LAST_WORDS);
        let given_up = hear_out(self.backend.into_sockets(), LAST_WORDS, limit);
        if given_up > 0 {
            let what = "had not read all that they were told when the engine ended";
            alert!("engine: connections that {what}: {given_up}");
        }
        Ok(())
    }

    /// Log and feed have ended in front of the gateway: sessions get what they are told and why they end, and
    /// readers over streams the rest of the feed. A backend may hand over what a turn gave it only in its next one.
    fn say_last_words(&mut self) -> io::Result<()> {
        self.turn(Duration::ZERO)?;
        self.close_all_sessions(CloseReason::EngineStopped);
        let begin = self.now;
        while self.has_last_words(begin) && self.now < begin + LAST_WORDS_MAX {
            let has_work = self.readers.has_work() || self.sessions.has_replies();
            self.turn(if has_work { Duration::ZERO } else { LAST_WORDS / 100 })?;
        }
        Ok(())
    }

    fn has_last_words(&self, begin: Instant) -> bool {
        let may_come = self.mail.from_duty.has_mail()
            || self.mail.states.has_mail()
            || self.readers.have_streams();
        may_come && self.now < begin + LAST_WORDS
            || self.sessions.have_words(self.now, LAST_WORDS)
            || self.readers.are_taking(self.now, LAST_WORDS)
    }

    /// One turn; gives whether there was anything to do.
    pub(super) fn turn(&mut self, limit: Duration) -> io::Result<bool> {
        let mut happened = std::mem::take(&mut self.happened);
        self.backend.turn(limit, &mut happened)?;
        self.mail.bell.unpark();
        self.turn_at(Instant::now(), happened)
    }

    /// The rest of a turn, in which this has happened up to `now`.
    pub(super) fn turn_at(
        &mut self,
        now: Instant,
        mut happened: Vec<Happened>,
    ) -> io::Result<bool> {
        self.now = now;
        self.look_at_log();
        let mut worked = !happened.is_empty();
        for one in happened.drain(..) {
            self.take(one);
        }
        self.happened = happened;
        worked |= self.let_in_arrivals();
        worked |= self.read_mail();
        worked |= self.read_answers()?;
        worked |= self.read_feed_mail();
        worked |= self.serve_readers();
        worked |= self.pass_on();
        worked |= self.sessions.drain(&self.mail);
        self.flush();
        let since = self.now.duration_since(self.ticked);
        if since >= TICK {
            self.ticked = self.now;
            self.close_late_peers();
            // What came meanwhile is not read yet.
            self.forgive(since.saturating_sub(PAUSE));
            self.tick_sessions();
            self.end_silent();
            self.tick_readers();
        }
        Ok(worked)
    }

    /// The gateway has not looked for so long: that is no silence of its clients, and no time in which they
    /// read nothing.
    fn forgive(&mut self, lost: Duration) {
        if !lost.is_zero() {
            self.sessions.forgive(lost, self.now);
            self.watches.forgive(lost, self.now);
            self.readers.forgive(lost, self.now);
        }
    }

    /// One turn that waits for what comes.
    pub(super) fn sleep(&mut self, stop: &AtomicBool) -> io::Result<bool> {
        self.mail.bell.park(self.sessions.awaits_durable());
        self.answer = self.next_answer()?;
        let has_work = stop.load(Ordering::Acquire)
            || self.mail.arrivals.has_mail()
            || self.mail.from_duty.has_mail()
            || self.mail.states.has_mail()
            || self.answer.is_some()
            || self.readers.has_work()
            || self.sessions.has_work(self.durable())
            || self.log_has_failed();
        self.turn(if has_work { Duration::ZERO } else { self.patience() })
    }

    /// Until the next deadline, roughly: idle costs nothing.
    fn patience(&self) -> Duration {
        if self.sessions.is_kept_waiting() {
            return STUCK;
        }
        let shaking = self.peers.values().any(|peer| !peer.is_open());
        let has_sessions = !self.sessions.is_empty() || !self.watches.is_empty();
        if shaking || has_sessions || self.readers.have_deadlines() { TICK } else { LONGEST_SLEEP }
    }

    /// The log is on disk up to here.
    pub(super) fn durable(&self) -> Position {
        self.log.durable()
    }

    pub(super) fn take(&mut self, happened: Happened) {
        match happened {
            Happened::Received(ticket, at) => {
                if self.peers.contains_key(&ticket) {
                    self.peer_received(ticket, &at);
                } else if self.readers.has(ticket) {
                    self.reader_received(ticket, &at);
                } else {
                    self.session_received(ticket, &at);
                }
            }
            Happened::Sent(ticket, buffer) if self.readers.has(ticket) => {
                self.reader_sent(ticket, buffer);
            }
            Happened::Sent(ticket, buffer) => self.session_sent(ticket, buffer),
            Happened::Progressed(ticket, _) if self.readers.has(ticket) => {
                self.readers.progressed(ticket, self.now);
            }
            Happened::Progressed(ticket, bytes) => self.session_progressed(ticket, bytes),
            Happened::Ended(ticket) => {
                if self.peers.contains_key(&ticket) {
                    self.remove(ticket);
                } else if self.readers.has(ticket) {
                    self.forget_reader(ticket);
                } else {
                    self.session_ended(ticket);
                }
            }
            // The door listens.
            Happened::Accepted(..) | Happened::AcceptFailed(..) => {}
        }
    }

    /// Takes those that have come through the door; gives whether there were any.
    pub(super) fn let_in_arrivals(&mut self) -> bool {
        let mut had_arrivals = false;
        // No more than were there: others come while these are let in.
        for _ in 0..self.mail.arrivals.waiting() {
            let Some(Arrival { peer, progress }) = self.mail.arrivals.take() else { break };
            had_arrivals = true;
            if peer.waits_as().is_some_and(|key| !self.make_place(key)) {
                peer.refuse(RefusalReason::TooManySessions, None);
                self.refusals.print("refused a session: too many wait for the log or the feed");
                continue;
            }
            let ticket = self.next_ticket;
            self.next_ticket += 1;
            if let Err(error) = self.backend.watch(ticket, peer.socket()) {
                self.refusals.print(&format!("cannot watch a connection: {error}"));
                continue;
            }
            self.peers.insert(ticket, peer);
            self.go_on(ticket, progress);
        }
        had_arrivals
    }

    /// True when one more of a key may wait for the log or the feed.
    fn make_place(&mut self, key: KeyId) -> bool {
        let peers = self.peers.iter();
        let crowd = Crowd::of(peers.filter_map(|(&ticket, peer)| Some((ticket, peer.waits_as()?))));
        if crowd.full(&key, WAITING_PER_KEY).is_some() {
            return false;
        }
        if let Some(oldest) = crowd.too_many(WAITING_MAX)
            && let Some(peer) = self.peers.get(&oldest)
        {
            peer.refuse(RefusalReason::TooManySessions, None);
            self.forget_peer(oldest);
            self.refusals.print("refused a session: too many wait for the log or the feed");
        }
        true
    }

    /// True when one more session of a key, or of the local user's roles, may be opened.
    fn has_place(&self, is_local: bool, is_stream: bool) -> bool {
        // The peer itself is admitted already.
        let admitted = self.peers.values().filter(|peer| peer.is_admitted());
        if is_stream {
            let coming = admitted.filter(|peer| peer.is_stream()).count();
            return self.sessions.len() + coming <= self.options.settings.sessions;
        }
        let most = self.options.connections_max;
        let kept_back = if is_local { 0 } else { LOCAL_CONNECTIONS.min(most / 4) };
        admitted.filter(|peer| !peer.is_stream()).count() + kept_back <= most
    }

    fn peer_received(&mut self, ticket: usize, at: &Range<usize>) {
        let Some(peer) = self.peers.get_mut(&ticket) else { return };
        let progress = peer.received(self.backend.bytes(at), &self.options);
        self.go_on(ticket, progress);
    }

    fn go_on(&mut self, ticket: usize, progress: Progress) {
        match progress {
            Progress::Waiting => {}
            Progress::Check { incarnation, position } => {
                self.history.check(ticket, incarnation, position);
            }
            Progress::LogOn { logon, end, wishes } => {
                let key = logon.command.key_id;
                if !self.has_place(key.0 == 0, end.is_none()) {
                    let why = match end {
                        None => format!("gateway.sessions = {}", self.options.settings.sessions),
                        Some(_) => format!("engine.connections = {}", self.options.connections_max),
                    };
                    let why = format!("refused a session: {why} are in use");
                    self.refuse_logon(ticket, RefusalReason::TooManySessions, None, &why);
                } else if !self.logons.admit(key, self.sessions.nanoseconds(self.now)) {
                    let why = format!("refused a logon: key {key} logs on too often");
                    let reject = Some(RejectReason::RateExceeded);
                    self.refuse_logon(ticket, RefusalReason::Rejected, reject, &why);
                } else {
                    let asked = Asked::new(LogonRequest { logon, end, wishes });
                    if let Some(peer) = self.peers.get_mut(&ticket) {
                        peer.has_asked(asked.clone());
                        self.mail.tell_duty(ToDuty::Logon(LogonLetter { ticket, asked }));
                    }
                }
            }
            Progress::Subscribe(key) => self.subscribe(ticket, key),
            Progress::Gone(why) => {
                if let Some(why) = why {
                    self.refusals.print(&why);
                }
                self.remove(ticket);
            }
        }
    }

    fn refuse_logon(
        &mut self,
        ticket: usize,
        reason: RefusalReason,
        reject: Option<RejectReason>,
        why: &str,
    ) {
        if let Some(peer) = self.peers.get(&ticket) {
            peer.refuse(reason, reject);
            self.forget_peer(ticket);
            self.refusals.print(why);
        }
    }

    pub(super) fn forget_peer(&mut self, ticket: usize) -> Option<Peer> {
        let peer = self.peers.remove(&ticket)?;
        peer.withdraw();
        self.backend.forget(ticket);
        self.history.forget(ticket);
        self.watches.forget(ticket);
        Some(peer)
    }

    /// Forgets a peer; dropping its socket closes it.
    pub(super) fn remove(&mut self, ticket: usize) {
        let Some(peer) = self.forget_peer(ticket) else { return };
        if let Some((session, epoch)) = peer.session() {
            self.open.remove(&(session, epoch));
            self.mail.tell_duty(ToDuty::Ended { session, epoch, is_silent: false });
        }
    }

    /// Has the duty thread end those over rings that asked to be watched and stand still.
    fn end_silent(&mut self) {
        for ticket in self.watches.take_silent(self.now) {
            if let Some((session, epoch)) = self.peers.get(&ticket).and_then(Peer::session) {
                self.mail.tell_duty(ToDuty::Ended { session, epoch, is_silent: true });
            }
        }
    }

    fn read_mail(&mut self) -> bool {
        let mut had_mail = false;
        while let Some(letter) = self.mail.from_duty.take() {
            had_mail = true;
            match letter {
                FromDuty::Opened { ticket, started, logon } => {
                    self.welcome(ticket, &started, logon);
                }
                // The memory, if any, is unmapped here.
                FromDuty::Refused { ticket, reason, used_up, end: _ } => {
                    if let Some(peer) = self.peers.get(&ticket) {
                        peer.refuse(RefusalReason::Rejected, Some(reason));
                        self.forget_peer(ticket);
                        let what = format!("refused a logon: {reason:?}");
                        match used_up {
                            None => self.refusals.print(&what),
                            Some(used_up) => self.used_up.print(&format!("{what}: {used_up}")),
                        }
                    }
                }
                FromDuty::Closed { session, epoch, reason, why, end } => {
                    let is_stream = end.is_none();
                    drop(end);
                    if reason != CloseReason::LoggedOut {
                        self.refusals.print(&format!("session {session} ended: {why}"));
                    }
                    if is_stream {
                        // All that it was to be told is in the ring by now.
                        self.sessions.drain_all(&self.mail);
                        self.close_session(session, epoch, reason);
                    } else if let Some(ticket) = self.open.remove(&(session, epoch)) {
                        self.forget_peer(ticket);
                    }
                }
            }
        }
        self.sessions.forget_early();
        had_mail
    }

    /// A session is open; `logon` are the positions before and behind its logon.
    fn welcome(&mut self, ticket: usize, started: &SessionStarted, logon: Range<Position>) {
        let identity = (started.session, started.epoch);
        let durable = self.durable();
        let welcomed = self.peers.get_mut(&ticket).map_or(Welcomed::Gone, |peer| {
            peer.welcome(&self.options, started, logon.end, durable)
        });
        match welcomed {
            Welcomed::Rings(watch) => {
                self.open.insert(identity, ticket);
                if let Some(watch) = watch {
                    self.watches.begin(ticket, watch, self.now);
                }
            }
            Welcomed::Stream(terms) => {
                self.peers.remove(&ticket);
                self.sessions.open(ticket, started, terms, (logon, self.now));
            }
            Welcomed::Gone => {
                self.forget_peer(ticket);
                let (session, epoch) = identity;
                self.mail.tell_duty(ToDuty::Ended { session, epoch, is_silent: false });
            }
        }
    }

    fn next_answer(&mut self) -> io::Result<Option<Answer>> {
        self.answer.take().map_or_else(|| self.history.next(), |answer| Ok(Some(answer)))
    }

    fn read_answers(&mut self) -> io::Result<bool> {
        let mut had_answers = false;
        while let Some(answer) = self.next_answer()? {
            had_answers = true;
            match answer {
                Answer::Checked { ticket, has: true, .. } => {
                    if let Some(peer) = self.peers.get_mut(&ticket) {
                        let progress = peer.history_is_there(&self.options);
                        self.go_on(ticket, progress);
                    }
                }
                Answer::Checked { ticket, has: false, kept } => {
                    if let Some(peer) = self.peers.get(&ticket) {
                        peer.refuse_history(kept);
                        self.forget_peer(ticket);
                        self.refusals
                            .print("refused a session: what it saw last is not in the log");
                    }
                }
                Answer::Unreadable { ticket, error } => {
                    if let Some(peer) = self.peers.get(&ticket) {
                        peer.refuse(RefusalReason::LogUnavailable, None);
                        self.forget_peer(ticket);
                        self.refusals.print(&format!(
                            "refused a session: what it saw last cannot be looked up: {error}"
                        ));
                    }
                }
                Answer::Piece { ticket, position, messages, is_over } => {
                    self.history_came(ticket, position, &messages, is_over);
                }
            }
        }
        Ok(had_answers)
    }

    /// Refuses those who have waited too long for the log, the feed or the duty thread: all here have done their
    /// part of the handshake.
    pub(super) fn close_late_peers(&mut self) {
        let is_late = |peer: &Peer| self.now.duration_since(peer.since()) > HANDSHAKE_LIMIT;
        let late = self.peers.iter().filter(|(_, peer)| !peer.is_open() && is_late(peer));
        for ticket in late.map(|(&ticket, _)| ticket).collect::<Vec<_>>() {
            let Some(peer) = self.peers.get(&ticket) else { continue };
            // What the duty thread has taken it decides at this moment, and its answer holds.
            if !peer.withdraw() {
                continue;
            }
            peer.refuse(RefusalReason::LogUnavailable, None);
            self.refusals.print("refused a connection that nobody came to decide about within 5 s");
            self.remove(ticket);
        }
    }
}
