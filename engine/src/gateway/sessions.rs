//! The stream sessions of the gateway: bytes to the duty thread's ring by turns, its replies ([`replies`]) to
//! sockets.
//! Called by [`super::service`] in each of its turns.

mod replies;

use super::history::{Ask, PIECE_BYTES, Replay};
use super::service::Gateway;
use super::stream::{Next, Replaying, Stream, Terms};
use crate::mailbox::{StateLetter, ToDuty};
use crate::rate::Debts;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};
use touchline_protocol::log::MAX_FRAME_BYTES;
use touchline_protocol::log::control::LogState;
use touchline_protocol::message::enums::{CloseReason, Role};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::ring::{MessageBuffer, PushError, SessionEnd};
use touchline_protocol::units::{Epoch, Position, SessionId};

/// Messages of one session that are passed on before it is another's turn.
const MESSAGES_PER_TURN: usize = 16;
/// So long a session that has used up what it may say is not looked at.
const PACED_FOR: Duration = Duration::from_millis(1);
/// Room that is waited for before a piece of history is asked for.
const PIECE_ROOM: usize = PIECE_BYTES + 2 * MAX_FRAME_BYTES;

/// Where a session's connection is.
#[derive(Clone, Copy)]
struct Route {
    ticket: usize,
    /// The low 24 bits of its epoch, as they stand in the ring's envelopes.
    epoch: [u8; 3],
}

/// All stream sessions, and this side's end of the rings.
pub(super) struct Sessions {
    rings: SessionEnd,
    buffer: Box<MessageBuffer>,
    streams: FxHashMap<usize, Stream>,
    /// By session number.
    routes: Vec<Option<Route>>,
    /// Those whose input is to be passed on, by turns.
    ready: VecDeque<usize>,
    /// Those whose output is to be looked at.
    dirty: Vec<usize>,
    /// Those that wait for the durable watermark.
    holding: Vec<usize>,
    /// Where the watermark was when they were looked at.
    durable: Position,
    /// Replays of which a piece is to be asked for when there is room.
    hungry: Vec<usize>,
    /// Replies for sessions whose opening is in mail that is not read yet.
    early: VecDeque<Vec<u8>>,
    /// States whose place is behind replies that are still in the ring.
    states: VecDeque<StateLetter>,
    /// Those that have used up what they may say for now, and when they were last looked at.
    paced: Vec<usize>,
    paced_at: Instant,
    debts: Debts,
    /// What allowances count their time from.
    begin: Instant,
    /// The duty thread's ring was full.
    is_stuck: bool,
    /// How far the log was on disk when it failed.
    failed_at: Option<Position>,
    /// All of them were told the engine's last word: their sockets stay until the gateway's own end, which hears
    /// them out.
    are_closed: bool,
}

fn low_bytes(epoch: Epoch) -> [u8; 3] {
    let [low, middle, high, _] = epoch.0.to_le_bytes();
    [low, middle, high]
}

impl Sessions {
    /// `commands_per_second`: of each; 0: unlimited.
    pub(super) fn new(rings: SessionEnd, commands_per_second: u32, now: Instant) -> Self {
        Self {
            rings,
            buffer: Box::default(),
            streams: FxHashMap::default(),
            routes: Vec::new(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            holding: Vec::new(),
            durable: Position(0),
            hungry: Vec::new(),
            early: VecDeque::new(),
            states: VecDeque::new(),
            paced: Vec::new(),
            paced_at: now,
            debts: Debts::new(commands_per_second),
            begin: now,
            is_stuck: false,
            failed_at: None,
            are_closed: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// True when messages wait for room in the duty thread's ring, or for the allowance of their session.
    pub(super) const fn is_kept_waiting(&self) -> bool {
        self.is_stuck || !self.paced.is_empty()
    }

    /// True when something is held back until the log is on disk.
    pub(super) fn awaits_durable(&self) -> bool {
        !self.holding.is_empty()
    }

    /// True when there is something to do that no socket tells of.
    pub(super) fn has_work(&self, durable: Position) -> bool {
        self.has_replies()
            || !self.ready.is_empty() && !self.is_stuck
            || !self.dirty.is_empty()
            || !self.holding.is_empty() && durable != self.durable
    }

    pub(super) fn open(
        &mut self,
        ticket: usize,
        started: &SessionStarted,
        terms: Terms,
        (logon, now): (Range<Position>, Instant),
    ) {
        let at = started.session.0 as usize;
        if self.routes.len() <= at {
            self.routes.resize(at + 1, None);
        }
        self.routes[at] = Some(Route { ticket, epoch: low_bytes(started.epoch) });
        let role = Role::from_wire(started.role).unwrap_or(Role::ReadOnly);
        let rate = self.debts.allow(started.session, role);
        let mut stream = Stream::new(started, (terms, rate), logon, now);
        if let Some(durable) = self.failed_at {
            stream.fail(durable);
        }
        self.streams.insert(ticket, stream);
        self.deliver_early();
    }

    fn mark_ready(&mut self, ticket: usize) {
        if let Some(stream) = self.streams.get_mut(&ticket)
            && !stream.is_ready
        {
            stream.is_ready = true;
            self.ready.push_back(ticket);
        }
    }

    fn mark_dirty(&mut self, ticket: usize) {
        if let Some(stream) = self.streams.get_mut(&ticket)
            && !stream.is_dirty
        {
            stream.is_dirty = true;
            self.dirty.push(ticket);
        }
    }

    /// Counts nothing against anybody that was the gateway's own pause.
    pub(super) fn forgive(&mut self, lost: Duration, now: Instant) {
        self.streams.values_mut().for_each(|stream| stream.forgive(lost, now));
    }

    /// Those whose messages wait for their time are looked at again, but not in each of many turns that are others'.
    fn recall_paced(&mut self, now: Instant) {
        if now.duration_since(self.paced_at) < PACED_FOR {
            return;
        }
        self.paced_at = now;
        for ticket in std::mem::take(&mut self.paced) {
            if let Some(stream) = self.streams.get_mut(&ticket) {
                stream.is_paced = false;
            }
            self.mark_ready(ticket);
        }
    }

    /// Ends a session: it says why, and takes nothing more.
    fn close(
        &mut self,
        ticket: usize,
        reason: CloseReason,
        (now, stall_limit): (Instant, Duration),
    ) {
        let now_ns = self.nanoseconds(now);
        if let Some(stream) = self.streams.get_mut(&ticket)
            && !stream.is_closing()
        {
            // Now, and not with its last words: the session may be back before those have arrived.
            self.debts.keep(stream.session, stream.rate, now_ns);
            stream.close(reason, stall_limit, now);
        }
        self.mark_dirty(ticket);
        // One that is held is read again.
        self.mark_ready(ticket);
    }

    /// As allowances have it.
    pub(super) fn nanoseconds(&self, now: Instant) -> u64 {
        now.duration_since(self.begin).as_nanos() as u64
    }

    fn find(&self, session: SessionId, epoch: Epoch) -> Option<usize> {
        let route = self.routes.get(session.0 as usize)?.as_ref()?;
        let stream = self.streams.get(&route.ticket)?;
        (stream.epoch == epoch).then_some(route.ticket)
    }

    /// Forgets a session; gives it back.
    fn remove(&mut self, ticket: usize, now: Instant) -> Option<Stream> {
        let stream = self.streams.remove(&ticket)?;
        if !stream.is_closing() {
            self.debts.keep(stream.session, stream.rate, self.nanoseconds(now));
        }
        let at = stream.session.0 as usize;
        if self.routes[at].is_some_and(|route| route.ticket == ticket) {
            self.routes[at] = None;
        }
        Some(stream)
    }
}

impl Gateway {
    pub(super) fn session_received(&mut self, ticket: usize, at: &Range<usize>) {
        let Some(stream) = self.sessions.streams.get_mut(&ticket) else { return };
        if !stream.received(self.backend.bytes(at), self.now) {
            // A backend that reads what is held is broken, and what it read is lost.
            let why = "more was read of it than there is room for";
            return self.end_session(ticket, CloseReason::Other, why);
        }
        if stream.is_full() && !stream.is_held {
            stream.is_held = true;
            self.backend.hold(ticket, true);
        }
        self.sessions.mark_ready(ticket);
    }

    pub(super) fn session_sent(&mut self, ticket: usize, buffer: Vec<u8>) {
        if let Some(stream) = self.sessions.streams.get_mut(&ticket) {
            stream.sent(buffer);
            self.sessions.mark_dirty(ticket);
            self.sessions.mark_ready(ticket);
        }
    }

    pub(super) fn session_progressed(&mut self, ticket: usize, bytes: usize) {
        if let Some(stream) = self.sessions.streams.get_mut(&ticket) {
            stream.progressed(bytes);
            self.sessions.mark_ready(ticket);
        }
    }

    /// The socket is gone: what was not passed on is given up.
    pub(super) fn session_ended(&mut self, ticket: usize) {
        self.backend.forget(ticket);
        self.history.ask(Ask::Drop { ticket });
        if let Some(stream) = self.sessions.remove(ticket, self.now)
            && !stream.is_closing()
        {
            let (session, epoch) = (stream.session, stream.epoch);
            self.mail.tell_duty(ToDuty::Ended { session, epoch, is_silent: false });
        }
    }

    /// The duty thread has ended a session, for this reason.
    pub(super) fn close_session(&mut self, session: SessionId, epoch: Epoch, reason: CloseReason) {
        let Some(ticket) = self.sessions.find(session, epoch) else { return };
        self.sessions.routes[session.0 as usize] = None;
        self.end_lingering(session, ticket);
        self.sessions.close(ticket, reason, (self.now, self.options.reader_stall));
    }

    /// The duty thread has ended, and all its mail is read: says for this reason that every session ends, behind
    /// what it was still to be told.
    pub(super) fn close_all_sessions(&mut self, reason: CloseReason) {
        self.sessions.drain_all(&self.mail);
        self.sessions.are_closed = true;
        for ticket in self.sessions.streams.keys().copied().collect::<Vec<_>>() {
            if let Some(stream) = self.sessions.streams.get_mut(&ticket) {
                stream.close(reason, self.options.reader_stall, self.now);
            }
            self.sessions.mark_dirty(ticket);
        }
        self.flush();
    }

    /// Gives up an older connection of the session that has still something to say: who logs on again and again
    /// and reads nothing would have the place of many.
    fn end_lingering(&mut self, session: SessionId, newer: usize) {
        let mut streams = self.sessions.streams.iter();
        let older = streams.find(|&(&ticket, stream)| {
            stream.session == session && stream.is_closing() && ticket != newer
        });
        if let Some((&ticket, stream)) = older {
            let was_owed = stream.is_owed(self.backend.unread(ticket));
            self.session_ended(ticket);
            if was_owed {
                self.tell_of_lost_answers(session, "a newer connection of it has ended");
            }
        }
    }

    fn tell_of_lost_answers(&mut self, session: SessionId, why: &str) {
        let what = "answers that it had not read when it logged out are lost";
        self.refusals.print(&format!("session {session}: {what}: {why}"));
    }

    /// Ends a session from this side.
    fn end_session(&mut self, ticket: usize, reason: CloseReason, why: &str) {
        let Some(stream) = self.sessions.streams.get_mut(&ticket) else { return };
        let (session, epoch) = (stream.session, stream.epoch);
        self.sessions.close(ticket, reason, (self.now, self.options.reader_stall));
        self.end_lingering(session, ticket);
        self.refusals.print(&format!("session {session} ended: {why}"));
        self.sessions.routes[session.0 as usize] = None;
        self.mail.tell_duty(ToDuty::Ended { session, epoch, is_silent: false });
    }

    /// Passes messages on to the duty thread, some of each session before it is the next one's turn.
    pub(super) fn pass_on(&mut self) -> bool {
        self.sessions.is_stuck = false;
        let mut has_passed = false;
        self.sessions.recall_paced(self.now);
        for _ in 0..self.sessions.ready.len() {
            let Some(ticket) = self.sessions.ready.pop_front() else { break };
            let Some(stream) = self.sessions.streams.get_mut(&ticket) else { continue };
            stream.is_ready = false;
            let has_more = self.pass_on_some(ticket, &mut has_passed);
            self.release(ticket);
            if has_more {
                self.sessions.mark_ready(ticket);
            }
            if self.sessions.is_stuck {
                break;
            }
        }
        if has_passed {
            self.sessions.rings.output.publish();
            self.sessions.rings.signals.wake_peer();
        }
        has_passed
    }

    /// Passes some messages of one session on; true when it may have more.
    fn pass_on_some(&mut self, ticket: usize, has_passed: &mut bool) -> bool {
        let now_ns = self.sessions.nanoseconds(self.now);
        for _ in 0..MESSAGES_PER_TURN {
            let Some(stream) = self.sessions.streams.get_mut(&ticket) else { return false };
            if stream.has_input() && stream.rate.is_spent(now_ns) {
                if !stream.is_paced {
                    stream.is_paced = true;
                    self.sessions.paced.push(ticket);
                }
                return false;
            }
            match stream.next() {
                Next::Nothing => return false,
                Next::Done => {
                    stream.rate.count_passed_on(now_ns);
                    self.sessions.mark_dirty(ticket);
                }
                Next::Command(length) => {
                    match self.sessions.rings.output.stage(stream.message(length)) {
                        Ok(()) => {
                            stream.passed_on(length);
                            stream.rate.count_passed_on(now_ns);
                            *has_passed = true;
                        }
                        Err(PushError::Full { .. }) => {
                            self.sessions.is_stuck = true;
                            return true;
                        }
                        Err(error) => {
                            let why = error.to_string();
                            self.end_session(ticket, CloseReason::Malformed, &why);
                            return false;
                        }
                    }
                }
                Next::Replay { correlation, from } => {
                    let replay = Replay {
                        ticket,
                        session: stream.session,
                        account: stream.account,
                        correlation,
                        from,
                        until: stream.end(),
                    };
                    stream.rate.count_passed_on(now_ns);
                    stream.replaying = Replaying::Due;
                    stream.replay = correlation;
                    self.sessions.hungry.retain(|&hungry| hungry != ticket);
                    self.history.ask(Ask::Drop { ticket });
                    self.history.ask(Ask::Replay(replay));
                }
                Next::State { correlation } => {
                    stream.rate.count_passed_on(now_ns);
                    stream.awaits_state = Some(correlation);
                    let Stream { session, epoch, account, .. } = *stream;
                    self.mail.tell_duty(ToDuty::State {
                        ticket,
                        session,
                        epoch,
                        account,
                        correlation,
                    });
                    return false;
                }
                Next::End(reason, why) => {
                    self.end_session(ticket, reason, &why);
                    return false;
                }
            }
        }
        true
    }

    /// Reads a session's socket again when there is room for what it has.
    fn release(&mut self, ticket: usize) {
        if let Some(stream) = self.sessions.streams.get_mut(&ticket)
            && stream.is_held
            && !stream.is_full()
        {
            stream.let_go(self.now);
            self.backend.hold(ticket, false);
        }
    }

    /// A piece of its account's history, up to a position, came for a session.
    pub(super) fn history_came(
        &mut self,
        ticket: usize,
        position: Position,
        messages: &[u8],
        is_over: bool,
    ) {
        let Some(stream) = self.sessions.streams.get_mut(&ticket) else { return };
        if stream.is_closing() {
            // Nothing is said behind the end.
            return self.history.ask(Ask::Drop { ticket });
        }
        let goes_on = stream.history_came(position, messages, is_over);
        self.sessions.mark_dirty(ticket);
        self.sessions.mark_ready(ticket);
        if goes_on {
            self.sessions.hungry.push(ticket);
        } else if !is_over {
            self.history.ask(Ask::Drop { ticket });
        }
    }

    /// The log has failed, and no session knows of it yet.
    pub(super) fn log_has_failed(&self) -> bool {
        self.sessions.failed_at.is_none() && self.log.state() == LogState::LogFailed
    }

    /// Looks whether the log has failed since: before anything of the turn is done, so that nobody is told to wait
    /// for what never comes.
    pub(super) fn look_at_log(&mut self) {
        // SYNC: the state is looked at first: behind a failure the watermark moves no more.
        if !self.log_has_failed() {
            return;
        }
        let durable = self.durable();
        self.sessions.failed_at = Some(durable);
        for ticket in self.sessions.streams.keys().copied().collect::<Vec<_>>() {
            if let Some(stream) = self.sessions.streams.get_mut(&ticket) {
                stream.fail(durable);
            }
            self.sessions.mark_dirty(ticket);
            // Commands may have waited behind answers that wait no more: no socket tells of it.
            self.sessions.mark_ready(ticket);
        }
    }

    /// Hands what may leave to the sockets.
    pub(super) fn flush(&mut self) {
        let durable = self.durable();
        if durable != self.sessions.durable {
            self.sessions.durable = durable;
            for ticket in std::mem::take(&mut self.sessions.holding) {
                if let Some(stream) = self.sessions.streams.get_mut(&ticket) {
                    stream.is_holding = false;
                }
                self.sessions.mark_dirty(ticket);
            }
        }
        let mut sent = Vec::new();
        while let Some(ticket) = self.sessions.dirty.pop() {
            let Some(stream) = self.sessions.streams.get_mut(&ticket) else { continue };
            stream.is_dirty = false;
            if let Some(leaving) = stream.take(durable, self.now) {
                self.backend.send(ticket, leaving, &mut sent);
            }
            if stream.awaits_durable() && !stream.is_holding {
                stream.is_holding = true;
                self.sessions.holding.push(ticket);
            }
            let has_said_all = stream.has_said_all();
            let unread = if has_said_all { self.backend.unread(ticket) } else { None };
            if stream.is_over(unread, self.now) && !self.sessions.are_closed {
                let (session, was_owed) = (stream.session, stream.is_owed(unread));
                self.session_ended(ticket);
                if was_owed {
                    let seconds = self.options.reader_stall.as_secs();
                    self.tell_of_lost_answers(
                        session,
                        &format!("it reads nothing for {seconds} s"),
                    );
                }
            } else if has_said_all {
                self.backend.end(ticket);
            }
            for one in sent.drain(..) {
                self.take(one);
            }
        }
        let Sessions { hungry, streams, .. } = &mut self.sessions;
        hungry.retain(|ticket| {
            let Some(stream) = streams.get_mut(ticket) else { return false };
            if stream.is_closing() {
                self.history.ask(Ask::Drop { ticket: *ticket });
                return false;
            }
            let has_room = stream.spare_room() >= PIECE_ROOM;
            if has_room {
                stream.replaying = Replaying::Due;
                self.history.ask(Ask::More { ticket: *ticket });
            }
            !has_room
        });
    }

    /// Heartbeats, and peers that are silent or do not read.
    pub(super) fn tick_sessions(&mut self) {
        let watermarks = (self.log.appended(), self.durable());
        let tickets: Vec<usize> = self.sessions.streams.keys().copied().collect();
        for ticket in tickets {
            let Some(stream) = self.sessions.streams.get_mut(&ticket) else { continue };
            let unread = if stream.is_waited_for() { self.backend.unread(ticket) } else { None };
            if let Some((reason, why)) =
                stream.tick(self.now, self.options.reader_stall, watermarks, unread)
            {
                self.end_session(ticket, reason, &why);
            }
            self.sessions.mark_dirty(ticket);
        }
        self.flush();
    }
}

#[cfg(test)]
mod tests;
