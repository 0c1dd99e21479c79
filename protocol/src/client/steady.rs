//! A client that outlives its connections: it keeps what it sent until it is answered, connects again, and
//! sends again what was not decided. Used by programs that must not do anything twice.
//!
//! What makes that safe is the session's own sequence. The Welcome of a new connection names the last one
//! that was decided: what lies above it is sent again under its own sequence; what had left and lies below was
//! decided while its answer was lost, and is named, so that its outcome can be read from the log or by a
//! replay. That holds while one client at a time uses the session: the last sequence counts the commands of
//! all who log on under its name.
//!
//! A program that ends and starts again keeps [`SteadyClient::last_seen`], [`SteadyClient::told_to`] and what it
//! sends, and goes on with [`SteadyClient::resume`].
//!
//! There is no thread behind it: all happens in the calls, and a [`SteadyClient::poll`] that connects again
//! waits for the engine's answers.

mod told;

pub use told::{Back, Loss, Missed, Told};

use super::sender::{next_sequence, states_its_length};
use super::{Client, ClientCommand, ClientOptions, ConnectError, Reply, SendError};
use crate::message::decode::Event;
use crate::message::enums::RejectReason;
use crate::message::handshake::RefusalReason;
use crate::shm::descriptors::PassError;
use crate::units::{Incarnation, Position, Sequence};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Commands without an answer at the most; one more is [`SendError::Full`].
const UNDECIDED_MAX: usize = 65_536;
/// Losses that are told apart by what was missed in each; of more the two oldest are told as one, with what
/// came live between them.
const MISSED_MAX: usize = 1024;
/// Pause behind the first attempt to connect that failed, and the longest one.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];
/// So long an engine may say that it has no place before that is told as an error: the connection that was
/// lost may hold the place until the engine misses three of its heartbeats.
const CROWDED_LIMIT: Duration = Duration::from_secs(200);

struct Undecided {
    sequence: Sequence,
    bytes: Vec<u8>,
    /// Over this connection.
    has_left: bool,
    /// Over any connection, this one included: the engine may have it.
    has_ever_left: bool,
}

/// A session that is opened again whenever its connection is lost.
///
/// So it is when another program logs on under the session's name: over a stream
/// [`Notice::Closed`](super::Notice::Closed) says `Replaced` then, over shared memory nothing does. Two programs with one
/// name throw each other out again and again; who is told so and has not started the other on purpose gives up.
///
/// It makes up for no event that did not fit: where the event of a [`Reply`] is a
/// [`Gap`](crate::message::event::Gap), events of the transactions behind its `from` up to the reply's position are
/// missing, and only the log has them. The caller that needs them, over a stream, does this:
///
/// 1. It asks for a replay from [`told_to`](Self::told_to), which never goes beyond the `from` of such a gap, nor beyond
///    what a [`Back::Returned`] has named ([`request_replay`](Self::request_replay)).
/// 2. Until the replay's end comes it counts what is replayed ([`Reply::is_replayed`], with the request's correlation),
///    which is all that happened behind that position, and sets aside what comes live. What it had counted behind that
///    position before is told once more, and known by its number, a trade's or an order's.
/// 3. When [`Notice::Replayed`](super::Notice::Replayed) says that it is
///    [`Complete`](crate::message::enums::ReplayStatus::Complete) up to a position, of what was set aside it counts what
///    lies above that position and nothing else, and says [`caught_up`](Self::caught_up) with it. With any other status
///    not all was told: of a log that no longer reaches back so far only the account's state is left
///    ([`request_state`](Self::request_state), whose end names a position too); what cannot be read now is asked for
///    later.
/// 4. Behind another gap, or a loss, it begins anew.
///
/// Over shared memory there is no replay: the log itself has them, or another session of the account over a stream asks.
///
/// Dropping it gives up without a word what still waits: commands without an answer ([`undecided`](Self::undecided)),
/// of which the engine may have some and will decide them all the same, and those that have not left it yet, which
/// nobody will. Who wants to know polls until there are none.
pub struct SteadyClient {
    options: ClientOptions,
    client: Option<Client>,
    undecided: VecDeque<Undecided>,
    last_sequence: Sequence,
    /// The engine has said that it has accepted the session's commands up to here.
    accepted_to: Sequence,
    /// The log was found to be without some of that, which no further logon would change.
    is_without_accepted: bool,
    /// Why nothing more leaves over this connection: told once what has come over it is.
    send_fault: Option<SendError>,
    /// Every event up to here was delivered, or lies in a gap that a [`Back::Returned`] has named. More of the last
    /// transaction may be on its way: nothing marks the last event of what others do.
    told_to: Option<Position>,
    /// Where the client was away and the caller has not caught up.
    missed: Vec<Missed>,
    /// Of all that did not fit and the caller has not caught up with: behind where it begins, and where it ends.
    gap: Option<(Position, Position)>,
    /// All up to there the caller knows, whoever told it.
    caught_up_to: Position,
    /// Polled already, behind notices that are told first.
    next_reply: Option<Box<Reply>>,
    try_at: Instant,
    pause: Duration,
    /// Since when there is a connection, or none.
    since: Instant,
    /// Since when the engine says that it has no place.
    crowded_since: Option<Instant>,
    /// Why the last attempt to come back failed, if it may pass.
    away: Option<ConnectError>,
    /// What an earlier run missed is to be told first.
    is_resumed: bool,
}

impl SteadyClient {
    /// Opens the session for the first time. Each later connection must be to the same log, whether or not
    /// [`ClientOptions::log_id`] names it.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(options: ClientOptions) -> Result<Self, ConnectError> {
        let client = Client::connect(&options)?;
        let mut steady = Self::without_connection(options);
        steady.last_sequence = client.welcome().last_sequence;
        steady.client = Some(client);
        steady.saw_welcome();
        Ok(steady)
    }

    fn without_connection(options: ClientOptions) -> Self {
        Self {
            options,
            client: None,
            undecided: VecDeque::new(),
            last_sequence: Sequence(0),
            accepted_to: Sequence(0),
            is_without_accepted: false,
            send_fault: None,
            told_to: None,
            missed: Vec::new(),
            gap: None,
            caught_up_to: Position(0),
            next_reply: None,
            try_at: Instant::now(),
            pause: PAUSES[0],
            since: Instant::now(),
            crowded_since: None,
            away: None,
            is_resumed: false,
        }
    }

    /// Opens the session of an earlier run of the program, which kept [`told_to`](Self::told_to) and, for
    /// [`ClientOptions::last_seen`], [`last_seen`](Self::last_seen). The first poll tells [`Back::Returned`] with what
    /// was missed, in one part that begins at `told_to`. The program may know some of that: an event that it has kept is
    /// known by its number, a trade's or an order's.
    ///
    /// `decided` is empty, for only the program knows what it sent. What lies above the
    /// [`Welcome`](crate::message::handshake::Welcome)'s `last_sequence` ([`connection`](Self::connection)) was not decided
    /// and never is unless it is sent again; what lies up to it was, accepted if the log has events of it.
    ///
    /// # Errors
    /// See [`ConnectError`]. A log that ends in front of `told_to` does not have what was told, which
    /// [`ConnectError::HistoryLost`] says as well where [`ClientOptions::last_seen`] did not ask for it; its position is
    /// 0 then, for nothing is known of how much the log has.
    pub fn resume(options: ClientOptions, told_to: Position) -> Result<Self, ConnectError> {
        let mut steady = Self::connect(options)?;
        if steady.last_seen().is_none_or(|(_, end)| told_to > end) {
            return Err(ConnectError::HistoryLost { position: Position(0) });
        }
        steady.is_resumed = true;
        if let Some((_, to)) = steady.last_seen().filter(|(_, to)| told_to < *to) {
            steady.missed.push(Missed { from: told_to, seen: told_to, to });
        }
        Ok(steady)
    }

    /// The connection, while there is one. To look at only: a command that left over it and not by
    /// [`send`](Self::send) would take the next one's sequence, and that one would count as decided.
    #[must_use]
    pub const fn connection(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// As [`Sender::request_replay`](super::Sender::request_replay), over this connection: when it
    /// is lost, what has not come of the answer never does.
    ///
    /// # Errors
    /// [`SendError::Disconnected`] while there is no connection; else see [`SendError`].
    pub fn request_replay(&mut self, correlation: u64, from: Position) -> Result<(), SendError> {
        self.connected()?.sender.request_replay(correlation, from)
    }

    /// As [`Sender::request_state`](super::Sender::request_state), over this connection: when it
    /// is lost, what has not come of the answer never does.
    ///
    /// # Errors
    /// [`SendError::Disconnected`] while there is no connection; else see [`SendError`].
    pub fn request_state(&mut self, correlation: u64) -> Result<(), SendError> {
        self.connected()?.sender.request_state(correlation)
    }

    /// As [`Sender::log_out`](super::Sender::log_out). The end is told as [`Back::Lost`]; whoever polls on
    /// behind it comes back.
    ///
    /// # Errors
    /// [`SendError::Disconnected`] while there is no connection, [`SendError::Full`] while commands wait for
    /// room; else see [`SendError`].
    pub fn log_out(&mut self) -> Result<(), SendError> {
        self.send_waiting();
        let has_left = self.undecided.back().is_none_or(|last| last.has_left);
        let fault = self.send_fault;
        let client = self.connected()?;
        if !has_left {
            return Err(fault.unwrap_or(SendError::Full));
        }
        let outcome = client.sender.log_out();
        self.send_fault = outcome.err().filter(|error| matches!(error, SendError::Ring(_)));
        outcome
    }

    fn connected(&mut self) -> Result<&mut Client, SendError> {
        self.client.as_mut().ok_or(SendError::Disconnected)
    }

    /// Incarnation and position that were seen last, a Welcome's included: what was missed before that
    /// one is named by [`Back::Returned`].
    #[must_use]
    pub const fn last_seen(&self) -> Option<(Incarnation, Position)> {
        self.options.last_seen
    }

    /// Up to here all was told, or the caller has [`caught_up`](Self::caught_up): what a program keeps for
    /// [`resume`](Self::resume) once it has kept what was told. A replay from [`last_seen`](Self::last_seen) would leave
    /// out what had not come of the transaction that was seen last: nothing marks the last event of what others do. It
    /// does not go beyond the `from` of a `Gap` either until the caller has caught up with where that one ends, nor,
    /// behind several of them, beyond the lowest until it has with the highest.
    #[must_use]
    pub fn told_to(&self) -> Option<Position> {
        let told_to = self.missed.first().map(|first| first.from).or(self.told_to)?;
        Some(self.gap.map_or(told_to, |(from, _)| told_to.min(from)))
    }

    /// Why the last attempt to come back failed, where that is no error of [`poll`](Self::poll) because the next one may
    /// not: nobody listens, or nobody may dial there; the engine does not answer, or has no place. `None` while there is
    /// a connection, before the first attempt behind a loss, and behind an attempt whose error `poll` gave.
    #[must_use]
    pub const fn why_away(&self) -> Option<&ConnectError> {
        self.away.as_ref()
    }

    /// Commands without an answer.
    #[must_use]
    pub fn undecided(&self) -> usize {
        self.undecided.len()
    }

    /// The log does not have what was seen last ([`ConnectError::HistoryLost`]), and the caller knows:
    /// the next attempt goes on with what the log has, from the last sequence of the session that this one names. It must be the same log all the same: to another venue
    /// ([`ConnectError::OtherLog`]) another client goes.
    ///
    /// What was missed before is named no more, nor is a `Gap` looked at that came before.
    pub fn accept_history_loss(&mut self) {
        (self.options.last_seen, self.told_to) = (None, None);
        self.missed.clear();
        self.gap = None;
        (self.caught_up_to, self.accepted_to) = (Position(0), Sequence(0));
        self.is_without_accepted = false;
    }

    /// The caller knows all up to a position, by a replay, from the log or by the account's state: what was
    /// missed up to there is named no more, and a `Gap` that ends there is closed. Until then it is named again with each return, so that a replay
    /// which breaks off can be asked for anew.
    pub fn caught_up(&mut self, to: Position) {
        self.caught_up_to = self.caught_up_to.max(to);
        self.gap = self.gap.filter(|&(_, end)| end > to).map(|(from, end)| (from.max(to), end));
        self.missed.retain(|missed| missed.to > to);
        for missed in &mut self.missed {
            missed.from = missed.from.max(to);
            missed.seen = missed.seen.max(to);
        }
    }

    /// Numbers the command and sends it, now or when the connection is back. The caller has set
    /// `correlation` and `not_after_ns`; a command that would be of no use later says so by the latter. A
    /// `key_id` of 0 is sent as the session's own key, as by [`Sender::send`](super::Sender::send). One that
    /// waits for the connection gets another number if another uses the session under its name meanwhile:
    /// [`Back::Returned`] tells, and the correlation stays.
    ///
    /// # Errors
    /// [`SendError::Full`], [`SendError::Unframed`] and [`SendError::NoSequence`]: what the connection itself is not the cause of.
    pub fn send<C: ClientCommand>(&mut self, command: &mut C) -> Result<Sequence, SendError> {
        if self.undecided.len() >= UNDECIDED_MAX {
            return Err(SendError::Full);
        }
        if !states_its_length(command.as_bytes()) {
            return Err(SendError::Unframed);
        }
        let sequence = next_sequence(self.last_sequence)?;
        command.command_mut().sequence = sequence;
        let bytes = command.as_bytes().to_vec();
        self.undecided.push_back(Undecided {
            sequence,
            bytes,
            has_left: false,
            has_ever_left: false,
        });
        self.last_sequence = sequence;
        self.send_waiting();
        Ok(sequence)
    }

    /// Sends what has not left over this connection yet, in order, as far as there is room.
    fn send_waiting(&mut self) {
        let Some(client) = &mut self.client else { return };
        let first = self.undecided.partition_point(|one| one.has_left);
        for one in self.undecided.range_mut(first..) {
            if let Err(error) = client.sender.stage_bytes(&mut one.bytes, one.sequence) {
                // Full: the next poll tries again. An end shows when replies are polled.
                let may_pass = matches!(error, SendError::Full | SendError::Disconnected);
                self.send_fault = (!may_pass).then_some(error);
                break;
            }
            (one.has_left, one.has_ever_left) = (true, true);
        }
        client.sender.publish();
    }

    /// The next reply or news; connects again if it is time for that.
    ///
    /// An attempt to connect waits in here: for each step of the handshake (to connect, the challenge if there is
    /// a key, the Welcome) up to [`ClientOptions::handshake_timeout`], so while an engine is stopped, or its log
    /// is slow, several times that. Who must not stand still for so long polls on a thread of its own; a limit
    /// below the engine's own 5 s would never get in while the log is slow.
    ///
    /// # Errors
    /// What no further attempt would mend: see [`ConnectError`]; another venue at the same place is
    /// [`ConnectError::OtherLog`]. An engine that is not there, or goes away in
    /// the handshake, is no error, and neither is one that has no place or no room in its log, or cannot read
    /// that, or is logged on to too often, for the first 200 s: of those [`why_away`](Self::why_away) tells.
    pub fn poll(&mut self) -> Result<Option<Told>, ConnectError> {
        if std::mem::take(&mut self.is_resumed) {
            let (decided, renumbered, missed) = (Vec::new(), Vec::new(), self.missed.clone());
            let back = Back::Returned { decided, resent: 0, renumbered, missed };
            return Ok(Some(Told::Connection(back)));
        }
        let Some(client) = &mut self.client else { return self.come_back() };
        if let Some(notice) = client.receiver.next_notice() {
            return Ok(Some(Told::Notice(notice)));
        }
        let polled = match self.next_reply.take() {
            Some(reply) => Ok(Some(*reply)),
            None => client.receiver.poll(),
        };
        match polled {
            Ok(Some(reply)) => {
                // The notices in front of a reply come with its poll.
                if let Some(notice) = client.receiver.next_notice() {
                    self.next_reply = Some(Box::new(reply));
                    return Ok(Some(Told::Notice(notice)));
                }
                self.saw(&reply);
                Ok(Some(Told::Reply(Box::new(reply))))
            }
            Ok(None) => {
                // Notices that no reply follows come with a poll that finds none.
                let notice = client.receiver.next_notice();
                if let (None, Some(fault)) = (notice, self.send_fault) {
                    return Ok(Some(self.lose(fault.into(), Instant::now())));
                }
                if self.undecided.back().is_some_and(|last| !last.has_left) {
                    self.send_waiting();
                }
                Ok(notice.map(Told::Notice))
            }
            Err(error) => {
                // Why the engine closed it may have come with its end.
                if let Some(notice) = client.receiver.next_notice() {
                    return Ok(Some(Told::Notice(notice)));
                }
                Ok(Some(self.lose(error.into(), Instant::now())))
            }
        }
    }

    /// Waits until there may be something to poll, at most for `limit`.
    pub fn wait(&mut self, limit: Duration) {
        self.wait_from(Instant::now(), limit, std::thread::sleep);
    }

    fn wait_from(&mut self, now: Instant, limit: Duration, sleep: impl FnOnce(Duration)) {
        if self.is_resumed || self.next_reply.is_some() || self.send_fault.is_some() {
            return;
        }
        match &mut self.client {
            Some(client) => client.receiver.wait(limit),
            None => sleep(self.try_at.saturating_duration_since(now).min(limit)),
        }
    }

    /// The connection is lost. One that was short counts as an attempt that failed: two clients of one
    /// session would else throw each other out without pause, each time by a transaction of the log.
    fn lose(&mut self, loss: Loss, now: Instant) -> Told {
        let was_short = now.duration_since(self.since) < 2 * PAUSES[1];
        (self.client, self.send_fault) = (None, None);
        (self.since, self.try_at) = (now, now);
        if was_short {
            self.put_off(now);
        } else {
            self.pause = PAUSES[0];
        }
        Told::Connection(Back::Lost(loss))
    }

    /// The next attempt comes behind a pause, and the one behind that later still.
    fn put_off(&mut self, now: Instant) {
        self.try_at = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSES[1]);
    }

    fn saw(&mut self, reply: &Reply) {
        if reply.is_replayed() {
            return;
        }
        if let Some((_, position)) = &mut self.options.last_seen
            && reply.envelope.position > *position
        {
            self.told_to = Some(*position);
            *position = reply.envelope.position;
        }
        if let Ok(Event::Gap(gap)) = reply.event.event() {
            self.saw_gap(gap.from, reply.envelope.position);
        }
        if reply.is_terminal() {
            let sequence = reply.envelope.sequence;
            let found = self.undecided.iter().position(|one| one.sequence == sequence);
            if let Some(index) = found {
                self.undecided.remove(index);
            }
            // What was refused, or only checked, leaves the session's last sequence as it is.
            let event = reply.event.event();
            if event.is_ok_and(|event| !matches!(event, Event::Rejected(_) | Event::OrderValid(_)))
            {
                self.accepted_to = self.accepted_to.max(sequence);
            }
        }
    }

    /// Something behind `from`, up to `to`, did not fit. One part stands for all of them: a replay reads on to the log's
    /// end in any case.
    fn saw_gap(&mut self, from: Position, to: Position) {
        if to > self.caught_up_to {
            let from = from.max(self.caught_up_to);
            let (first, last) = self.gap.unwrap_or((from, to));
            self.gap = Some((first.min(from), last.max(to)));
        }
    }

    fn saw_welcome(&mut self) {
        if let Some(client) = &self.client {
            let welcome = client.welcome();
            self.options.last_seen = Some((welcome.incarnation, welcome.position));
            // Another venue at the same place knows nothing of what was sent to this one.
            self.options.log_id.get_or_insert(welcome.log_id);
            self.told_to = Some(welcome.position);
            self.accepted_to = welcome.last_sequence;
        }
    }

    fn come_back(&mut self) -> Result<Option<Told>, ConnectError> {
        if Instant::now() < self.try_at {
            return Ok(None);
        }
        match self.connect_again() {
            Ok(client) => {
                let decided_to = client.welcome().last_sequence;
                self.miss(client.welcome().position);
                let decided = self.take_decided(decided_to);
                let renumbered = self.renumber(decided_to);
                let resent = self.undecided.iter().filter(|one| one.has_ever_left).count();
                (self.client, self.since) = (Some(client), Instant::now());
                (self.crowded_since, self.away) = (None, None);
                self.saw_welcome();
                self.send_waiting();
                let missed = self.missed.clone();
                let back = Back::Returned { decided, resent, renumbered, missed };
                Ok(Some(Told::Connection(back)))
            }
            Err(error) => {
                self.put_off(Instant::now());
                self.away = None;
                if !self.may_pass(&error) {
                    return Err(error);
                }
                self.away = Some(error);
                Ok(None)
            }
        }
    }

    /// A log that is an older copy, and has grown since to where the lost one was, has incarnation and position that were
    /// seen, but not the session's commands.
    fn connect_again(&mut self) -> Result<Client, ConnectError> {
        let lost = Err(ConnectError::HistoryLost { position: Position(0) });
        if self.is_without_accepted {
            return lost;
        }
        let client = Client::connect(&self.options)?;
        self.is_without_accepted = client.welcome().last_sequence < self.accepted_to;
        if self.is_without_accepted { lost } else { Ok(client) }
    }

    /// What was not told before this position, that of a Welcome, was missed.
    fn miss(&mut self, to: Position) {
        let (Some(from), Some((_, seen))) = (self.told_to, self.options.last_seen) else { return };
        let [from, seen] = [from, seen].map(|known| known.max(self.caught_up_to));
        if seen >= to {
            return;
        }
        match self.missed.last_mut() {
            // Nothing was told between them.
            Some(last) if last.to >= seen => last.to = to,
            _ => self.missed.push(Missed { from, seen, to }),
        }
        if self.missed.len() > MISSED_MAX {
            let oldest = self.missed.remove(0);
            (self.missed[0].from, self.missed[0].seen) = (oldest.from, oldest.seen);
        }
    }

    /// Takes out what was decided while its answer was lost: what the engine may have had, up to the last
    /// sequence that it names. The rest has not left over this connection.
    fn take_decided(&mut self, decided_to: Sequence) -> Vec<Sequence> {
        let is_decided = |one: &Undecided| one.has_ever_left && one.sequence <= decided_to;
        let decided = self.undecided.iter().filter(|one| is_decided(one));
        let decided = decided.map(|one| one.sequence).collect();
        self.undecided.retain(|one| !is_decided(one));
        self.undecided.iter_mut().for_each(|one| one.has_left = false);
        decided
    }

    /// What the engine never had was not decided, whatever its number says: if another's commands have gone
    /// past the first of them, all get new ones. Commands leave in order, so nothing that had left stands
    /// among them. If there are no further numbers they keep theirs, and are answered as duplicates.
    fn renumber(&mut self, decided_to: Sequence) -> Vec<(Sequence, Sequence)> {
        self.last_sequence = self.last_sequence.max(decided_to);
        let mut renumbered = Vec::new();
        if self.undecided.front().is_some_and(|first| first.sequence <= decided_to) {
            for one in &mut self.undecided {
                let Ok(sequence) = next_sequence(self.last_sequence) else { break };
                renumbered.push((one.sequence, sequence));
                (one.sequence, self.last_sequence) = (sequence, sequence);
            }
        }
        renumbered
    }

    /// True for what a later attempt may find mended.
    fn may_pass(&mut self, error: &ConnectError) -> bool {
        match error {
            ConnectError::Connect { .. }
            | ConnectError::NoAnswer { .. }
            | ConnectError::Io(_)
            | ConnectError::Pass(PassError::System(_) | PassError::NoneFree) => {
                self.crowded_since = None;
                true
            }
            ConnectError::Refused { reason: Some(reason), reject } => {
                let may_pass = match reason {
                    RefusalReason::TooManySessions | RefusalReason::LogUnavailable => true,
                    // The disk does not keep up, what the lost connection leaves to cancel has no room, or the
                    // key has logged on too often.
                    RefusalReason::Rejected => matches!(
                        reject,
                        Some(
                            RejectReason::LogUnavailable
                                | RejectReason::CapacityReached
                                | RejectReason::RateExceeded
                        )
                    ),
                    _ => false,
                };
                let since = *self.crowded_since.get_or_insert_with(Instant::now);
                may_pass && since.elapsed() < CROWDED_LIMIT
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
