//! The duty thread: polls the sessions' rings, applies each command to the core, appends the
//! transaction to the log and publishes the replies. Started by [`crate::run`], alone on its core.
//!
//! A turn takes a bounded number of messages from every hot session, a few from the cold ones and a
//! few steps of pending work. While work is pending no client's command is taken, so that none comes
//! between its parts; what operators send is, so that a halt, a kill or a revocation overtakes it.

mod absent;
mod clients;
mod connection;
mod lanes;
mod logons;
mod presence;
mod replies;
mod served;
mod state;
mod streams;
mod transaction;
mod unsolicited;

use crate::clock::{Clock, ClockNotice};
use crate::config::EngineSection;
use crate::gateway::Mail;
use crate::log::{BeginError, CloseError, Control, LogWriter};
use crate::mailbox::{StateLetter, ToDuty};
use crate::notice::alert;
use crate::quarantine::Quarantine;
use crate::rate::Debts;
use absent::Absent;
use clients::{ClientIndex, Clients, STARVED_LIMIT};
use logons::LogonsOwed;
use replies::reply_events;
use served::Served;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use streams::Streams;
use touchline_core::{Addressees, Core, Reject};
use touchline_protocol::message::command::{CommandHeader, ConnectionEnded, RunPending};
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::message::enums::{CloseReason, OrderType, RejectReason, Role, TimeInForce};
use touchline_protocol::message::event::{Envelope, Trade};
use touchline_protocol::message::stream::Logout;
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::ring::{MessageBuffer, SessionEnd};
use touchline_protocol::units::{Epoch, SessionId};
use touchline_protocol::wait::Waiter;
use transaction::{Refusal, Venue, transact};

/// Where the command header lies in every command.
const COMMAND_HEADER: Range<usize> =
    MessageHeader::BYTES..MessageHeader::BYTES + size_of::<CommandHeader>();
/// Mail taken per turn.
const LETTERS_PER_TURN: u32 = 8;

/// Settings and links of the duty thread.
pub struct DutyOptions {
    /// The venue, as recovered.
    pub core: Core,
    /// The log's tail.
    pub writer: LogWriter,
    /// Engine time.
    pub clock: Clock,
    /// The gateway's mail.
    pub mail: Arc<Mail>,
    /// This side's end of the rings that all stream sessions share with the gateway.
    pub streams: SessionEnd,
    /// Set (and [`Mail::duty_signal`] rung) to end the thread.
    pub stop: Arc<AtomicBool>,
    /// Section `[engine]`.
    pub settings: EngineSection,
}

/// The duty thread's state.
pub struct Duty {
    core: Core,
    writer: LogWriter,
    /// Whom the events of the last transaction concern.
    addressees: Addressees,
    clock: Clock,
    mail: Arc<Mail>,
    stop: Arc<AtomicBool>,
    settings: EngineSection,
    clients: Clients,
    /// Where the polling of the hot lane begins, so that none of its sessions is always last.
    next_hot: usize,
    /// Where the cold lane goes on, so that each of its sessions has its turn.
    next_cold: usize,
    /// Ends of connections for which there is no room yet: in the log, or for their cancels behind the pending
    /// work.
    ends_owed: VecDeque<ConnectionEnded>,
    /// Letters taken of the gateway's mail since the start.
    letters_taken: u64,
    /// Logons for which the log has no room yet.
    logons_owed: LogonsOwed,
    /// Sessions whose connections ended with an earlier engine.
    absent: Absent,
    /// An order that has to be continued came before the cold lane was polled.
    cold_was_shut_out: bool,
    /// The same of the stream sessions.
    streams_were_shut_out: bool,
    /// Messages of the turn whose sessions have used up their allowance with them.
    paced_work: u32,
    buffer: Box<MessageBuffer>,
    waiter: Waiter,
    now_ns: u64,
    served: Served,
}

/// What became of a command of the engine's own.
#[derive(Debug, thiserror::Error)]
pub enum OwnCommandError {
    /// The core rejected it.
    #[error("{name} was rejected: {reason:?} (detail {detail})")]
    Rejected {
        /// The command.
        name: &'static str,
        /// Why.
        reason: RejectReason,
        /// As the reason says.
        detail: u32,
    },
    /// The log cannot take it.
    #[error("{name}: {source}")]
    Log {
        /// The command.
        name: &'static str,
        /// What the log said.
        source: BeginError,
    },
    /// The log failed while there was no room for it.
    #[error("{name} waits for room in the live window: {source}")]
    Room {
        /// The command.
        name: &'static str,
        /// What became of the log.
        source: CloseError,
    },
    /// Its bytes are no command.
    #[error(transparent)]
    Decode(#[from] decode::DecodeError),
}

impl Duty {
    /// Takes over; nothing is polled before [`run`](Self::run).
    #[must_use]
    pub fn new(options: DutyOptions) -> Self {
        let DutyOptions { core, writer, mut clock, mail, streams, stop, settings } = options;
        let waiter = Waiter::new(settings.wait.into());
        let (now_ns, _) = clock.now();
        let reconnect_ns = u64::from(settings.reconnect_seconds) * 1_000_000_000;
        let absent = Absent::new(&core, reconnect_ns);
        let clients = Clients {
            connections: Vec::with_capacity(settings.connections),
            streams: Streams::new(streams, mail.bell()),
            debts: Debts::new(settings.commands_per_second),
            quarantine: Quarantine::default(),
        };
        Self {
            core,
            writer,
            addressees: Addressees::new(),
            clock,
            mail,
            stop,
            clients,
            ends_owed: VecDeque::new(),
            letters_taken: 0,
            logons_owed: LogonsOwed::new(),
            absent,
            settings,
            next_hot: 0,
            next_cold: 0,
            cold_was_shut_out: false,
            streams_were_shut_out: false,
            paced_work: 0,
            buffer: Box::new(MessageBuffer::new()),
            waiter,
            now_ns,
            served: Served::default(),
        }
    }

    /// From now on these senders' commands are refused: before [`run`](Self::run).
    pub fn refuse(&mut self, quarantine: Quarantine) {
        self.clients.quarantine = quarantine;
    }

    /// The venue.
    #[must_use]
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// The time now, ns since the epoch.
    pub fn now(&mut self) -> u64 {
        self.read_clock();
        self.now_ns
    }

    /// The log's control page.
    #[must_use]
    pub fn control(&self) -> &Control {
        self.writer.control()
    }

    /// Gives the log back for closing, where the thread is not to run.
    #[must_use]
    pub fn into_log(self) -> LogWriter {
        self.writer
    }

    /// Waits until everything appended is on disk: at the start, before there is a client.
    ///
    /// # Errors
    /// If the disk failed.
    pub fn wait_durable(&mut self) -> Result<(), CloseError> {
        self.writer.wait_durable()
    }

    /// Logs and applies a command of the engine's own session at the start, before any client: where the live
    /// window has no room it waits for the disk. A definition may be larger than any window.
    ///
    /// # Errors
    /// See [`OwnCommandError`]; nothing was changed.
    pub fn first_command(&mut self, bytes: &[u8]) -> Result<(), OwnCommandError> {
        match self.own_command(bytes) {
            Err(OwnCommandError::Log { name, source: BeginError::Full { .. } }) => {
                let waited = self.writer.wait_for_room();
                waited.map_err(|source| OwnCommandError::Room { name, source })?;
                self.own_command(bytes)
            }
            done => done,
        }
    }

    /// Logs and applies a command of the engine's own session; waits for nothing.
    ///
    /// # Errors
    /// See [`OwnCommandError`]; nothing was changed.
    pub fn own_command(&mut self, bytes: &[u8]) -> Result<(), OwnCommandError> {
        self.read_clock();
        let command = decode::command(bytes)?;
        let name = command.name();
        match transact(&mut self.venue(), bytes, &command, |_| {}) {
            Ok(Some(position)) => {
                self.tell_others(None, position);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(Refusal::Log(source)) => Err(OwnCommandError::Log { name, source }),
            Err(Refusal::Core(Reject { reason, detail })) => {
                Err(OwnCommandError::Rejected { name, reason, detail })
            }
        }
    }

    /// Runs until told to stop; gives the log back for closing.
    #[must_use]
    pub fn run(mut self) -> LogWriter {
        // What was logged before there was a client is announced as what comes later is.
        self.writer.tell_keeper();
        self.read_clock();
        while !self.stop.load(Ordering::Acquire) {
            let work = self.work();
            // A turn that served only sessions over their rate counts as one without work: their messages wait again,
            // and so does this thread. Yielding to a thread that computes would have all others wait for that one.
            // More than a turn takes of a ring, and orders judged by levels, keep this thread awake as others' do.
            let is_timely = if work == self.paced_work {
                self.bring_near();
                // Read in front of a few pauses, and not when there is a message already: that would wait for
                // it. So what comes is stamped with a time that is less than a microsecond older, unless the
                // core is taken from this thread meanwhile, as it may be behind any reading.
                self.read_clock();
                self.idle()
            } else {
                self.waiter.reset();
                false
            };
            if !is_timely {
                self.read_clock();
            }
        }
        self.writer
    }

    /// One turn; gives the amount of work done.
    pub fn turn(&mut self) -> u32 {
        self.read_clock();
        self.work()
    }

    /// A turn's work, at the time that was read last.
    fn work(&mut self) -> u32 {
        self.paced_work = 0;
        self.served.turn(self.now_ns);
        let mut work = self.read_mail();
        work += self.report_owed_ends();
        work += self.report_absent();
        work += if is_held_up(&self.core, &self.writer) {
            self.poll_operators()
        } else {
            self.poll_lanes()
        };
        // Before the keeper is told: who waits for a command to be durable sees with it what it has set off.
        work += self.run_pending();
        self.writer.attest_if_asked(self.now_ns);
        let (position, now_ns) = (self.writer.position(), self.now_ns);
        let mut is_awaited = false;
        for connection in &mut self.clients.connections {
            connection.announce_gap(position, now_ns);
            is_awaited |= connection.wake_if_replied();
        }
        self.clients.streams.announce_gaps(position, now_ns);
        is_awaited |= self.clients.streams.wake_if_replied();
        if is_awaited {
            self.writer.want_durable();
        }
        self.writer.tell_keeper();
        work
    }

    fn read_clock(&mut self) {
        self.now_ns = read(&mut self.clock);
        self.writer.control().set_heartbeat(self.now_ns);
    }

    /// While there is nothing to do: what the next command needs of other cores and of memory.
    fn bring_near(&mut self) {
        self.writer.bring_near();
        self.clients.bring_near();
    }

    /// Waits one step; true if that was a few pauses and nothing else.
    fn idle(&mut self) -> bool {
        let (stop, mail) = (&self.stop, &self.mail);
        let Clients { connections, streams, .. } = &self.clients;
        let writer = &self.writer;
        let own = [mail.duty_signal.line(), writer.control().duty_line()];
        let lines = own.into_iter().chain(self.clients.parking_lines());
        let room = is_answering(writer);
        let is_starved = !room || !self.ends_owed.is_empty();
        let limit = if is_starved { STARVED_LIMIT } else { self.clients.sleep_limit() };
        let next_hot = &mut self.next_hot;
        self.waiter.idle(lines, limit, || {
            // In turns, because who is found is served first: else of two that send together always the same.
            let ready = first_from(connections, *next_hot, |one| room && one.is_ready());
            *next_hot = ready.unwrap_or(*next_hot);
            ready.is_some()
                || (room && streams.is_ready())
                || stop.load(Ordering::Relaxed)
                || mail.to_duty.has_mail()
                || (writer.control().is_running() && writer.attest_asked())
        })
    }

    fn read_mail(&mut self) -> u32 {
        let mut letters = self.let_in_owed();
        while letters < LETTERS_PER_TURN
            && let Some(letter) = self.mail.to_duty.take()
        {
            letters += 1;
            self.letters_taken += 1;
            match letter {
                ToDuty::Logon(letter) => {
                    self.logons_owed.add(self.letters_taken, letter);
                    self.let_in_owed();
                }
                ToDuty::State { ticket, session, epoch, account, correlation } => {
                    let position = self.writer.position();
                    // Of a session that has just ended nobody waits for the answer.
                    let Some(client) = self.clients.find(session, epoch) else { continue };
                    if let ClientIndex::Stream(index) = client {
                        self.clients.streams.await_disk(index);
                    }
                    let is_admitted = self.clients.admits(client, self.now_ns);
                    let messages = if is_admitted {
                        state::messages(&self.core, account, correlation, position)
                    } else {
                        state::refusal(session, correlation, (position, self.now_ns))
                    };
                    let behind = self.clients.streams.published();
                    self.mail.tell_state(StateLetter { ticket, behind, position, messages });
                    if is_admitted {
                        // It took as long as many commands: whoever has sent one comes before the next of these.
                        return letters;
                    }
                }
                ToDuty::Ended { session, epoch, is_silent } => {
                    if let Some(client) = self.clients.find(session, epoch) {
                        let (reason, why) = if is_silent {
                            (CloseReason::Silent, "nothing moved for three intervals of heartbeats")
                        } else {
                            (CloseReason::Other, "its socket closed")
                        };
                        self.end_connection(client, reason, why);
                    }
                }
            }
        }
        letters
    }

    const fn venue(&mut self) -> Venue<'_> {
        let Self { core, writer, addressees, now_ns, .. } = self;
        Venue { core, writer, addressees, now_ns: *now_ns }
    }

    /// Continues the pending work, a bounded number of times.
    fn run_pending(&mut self) -> u32 {
        let command = RunPending::default();
        let command = Command::RunPending(&command);
        for done in 0..self.settings.pending_per_turn {
            let Some(head) = self.core.pending_head() else { return done };
            let outcome = transact(&mut self.venue(), command.bytes(), &command, |_| {});
            let Ok(Some(end)) = outcome else { return done };
            let owner = self.clients.find(head.session, head.epoch);
            if let Some(client) = owner {
                let envelope = Envelope {
                    correlation: head.correlation,
                    sequence: head.sequence,
                    position: end,
                    time_ns: self.now_ns,
                    session: head.session,
                    ..Default::default()
                };
                let events = self.writer.committed_events();
                if reply_events(&mut self.clients, client, envelope, events) {
                    self.clients.answered_later(client);
                }
            }
            self.tell_others(owner, end);
        }
        self.settings.pending_per_turn
    }
}

/// The index of the first of `all` that is wanted, looked for from the index `from` on and then from the first one.
#[inline]
fn first_from<T>(all: &[T], from: usize, is_wanted: impl Fn(&T) -> bool) -> Option<usize> {
    let from = from.checked_rem(all.len())?;
    (from..all.len()).chain(0..from).find(|&index| is_wanted(&all[index]))
}

/// True while work is pending, which comes before what clients send. A log that has failed continues
/// none, so it holds nobody up: all that comes is refused.
fn is_held_up(core: &Core, writer: &LogWriter) -> bool {
    core.pending_head().is_some() && writer.control().is_running()
}

/// True unless the disk is behind: what comes is taken, or refused by a log that has failed.
#[inline]
fn is_answering(writer: &LogWriter) -> bool {
    writer.can_take() || !writer.control().is_running()
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Executed {
    /// It is answered.
    Answered,
    /// It is answered, and was [judged by levels](is_market) for nothing: no more of its sender's in
    /// this turn.
    Looked,
    /// It has revoked a key, whose sessions are to end.
    Revoked,
    /// Its sender has logged out: to be ended.
    LoggedOut,
}

/// Applies one message of a client: logged, answered and told to whom else it concerns, or rejected and
/// answered.
#[inline]
fn execute(
    venue: &mut Venue<'_>,
    clock: &mut Clock,
    clients: &mut Clients,
    client: ClientIndex,
    bytes: &[u8],
) -> Executed {
    let identity = clients.identity(client);
    let control = venue.writer.control();
    let mut envelope = Envelope {
        // As of a log that has failed nothing is decided any more.
        position: if control.is_running() { venue.writer.position() } else { control.durable() },
        time_ns: venue.now_ns,
        session: identity.0,
        ..Default::default()
    };
    let template = decode::header(bytes).map_or(0, |header| header.template_id);
    // Decoded where it lies: a copy would be read in other sizes than it was just written in, which waits for the
    // stores.
    let decoded = decode::command(bytes);
    let Ok(command) = &decoded else {
        return no_command(clients, (client, identity), bytes, envelope, template);
    };
    let header = command.header();
    envelope.correlation = header.correlation;
    envelope.sequence = header.sequence;
    let (core, now_ns) = (&*venue.core, venue.now_ns);
    if let Some(reason) = refused_unjudged(clients, core, (client, identity), header, now_ns) {
        clients.reject(client, envelope, reason, 0, template);
        return Executed::Answered;
    }
    if header.not_after_ns != 0 {
        // The turn's time may be as old as a stop of this process that came behind its reading.
        venue.now_ns = read(clock);
        envelope.time_ns = venue.now_ns;
    }
    let outcome = transact(venue, bytes, command, |outbox| {
        reply_events(clients, client, envelope, outbox.events());
    });
    match outcome {
        Ok(Some(position)) => {
            envelope.position = position;
            if !replies::reply(clients, client, envelope, command, venue.writer) {
                clients.answers_later(client);
            }
            if !venue.addressees.notes().is_empty() {
                unsolicited::tell(venue, position, clients, Some(client));
            }
            // It has traded, or it was killed.
            if is_fill_or_kill(command) && !has_trade(venue.writer) {
                return Executed::Looked;
            }
            if matches!(command, Command::RevokeKey(_)) {
                return Executed::Revoked;
            }
        }
        Ok(None) => return judged(command),
        Err(Refusal::Log(_)) => {
            // Decided on nothing, so it waits for no disk: that of a log that has failed stands still for ever.
            envelope.position = venue.writer.control().durable();
            clients.reject(client, envelope, RejectReason::LogUnavailable, 0, template);
        }
        Err(Refusal::Core(Reject { reason, detail })) => {
            clients.reject(client, envelope, reason, detail, template);
            return judged(command);
        }
    }
    Executed::Answered
}

/// What is no command: a word of goodbye, or refused.
#[cold]
fn no_command(
    clients: &mut Clients,
    (client, identity): (ClientIndex, (SessionId, Epoch)),
    bytes: &[u8],
    mut envelope: Envelope,
    template: u16,
) -> Executed {
    if decode::as_message::<Logout>(bytes)
        .is_ok_and(|logout| (logout.command.session, logout.command.epoch) == identity)
    {
        return Executed::LoggedOut;
    }
    if let Some(header) = bytes.get(COMMAND_HEADER) {
        let header: CommandHeader = bytemuck::pod_read_unaligned(header);
        envelope.correlation = header.correlation;
        envelope.sequence = header.sequence;
    }
    clients.count_refusal(client, envelope.time_ns);
    clients.reject(client, envelope, RejectReason::Malformed, 0, template);
    Executed::Answered
}

/// Why a command is refused by who sends it alone, before the core sees it; `None` of one that it is to judge.
#[inline]
fn refused_unjudged(
    clients: &mut Clients,
    core: &Core,
    (client, identity): (ClientIndex, (SessionId, Epoch)),
    header: &CommandHeader,
    now_ns: u64,
) -> Option<RejectReason> {
    if (header.session, header.epoch) != identity {
        clients.count_refusal(client, now_ns);
        Some(RejectReason::StaleEpoch)
    } else if !clients.admits(client, now_ns) {
        Some(RejectReason::RateExceeded)
    } else if clients.quarantine.holds(header, |session| is_adapter(core, session)) {
        Some(RejectReason::Quarantined)
    } else {
        None
    }
}

fn is_adapter(core: &Core, session: SessionId) -> bool {
    core.session(session).is_some_and(|one| one.role == Role::Adapter)
}

/// What became of a command that was answered and has changed nothing.
#[inline]
fn judged(command: &Command<'_>) -> Executed {
    if is_market(command) || is_fill_or_kill(command) {
        Executed::Looked
    } else {
        Executed::Answered
    }
}

/// True of an order that is judged by the levels that it would take: thousands of them, and where it is refused then,
/// no limit of orders and no fee counts it.
const fn is_market(command: &Command<'_>) -> bool {
    matches!(kind(command), Some((order_type, _)) if order_type == OrderType::Market.to_wire())
}

/// As [`is_market`], of an order that is executed whole or not at all; of one that prevents self-trades by the resting
/// orders that it would take.
#[inline]
const fn is_fill_or_kill(command: &Command<'_>) -> bool {
    matches!(kind(command), Some((_, time_in_force)) if time_in_force == TimeInForce::Fok.to_wire())
}

/// Type and time in force of the one order that a command would place, as the message has them.
#[inline]
const fn kind(command: &Command<'_>) -> Option<(u8, u8)> {
    match command {
        Command::NewOrder(order) => Some((order.order_type, order.time_in_force)),
        Command::CancelReplace(order) => Some((order.order_type, order.time_in_force)),
        _ => None,
    }
}

/// True if the transaction that was committed last has traded something.
fn has_trade(writer: &LogWriter) -> bool {
    writer.committed_events().any(|event| template_of(event) == Trade::TEMPLATE)
}

fn template_of(event: &[u8]) -> u16 {
    event
        .get(..MessageHeader::BYTES)
        .map_or(0, |head| bytemuck::pod_read_unaligned::<MessageHeader>(head).template_id)
}

/// The time now, ns since the epoch; tells what the reading has noticed.
#[inline]
fn read(clock: &mut Clock) -> u64 {
    let (now_ns, notice) = clock.now();
    if let Some(notice) = notice {
        announce(notice);
    }
    now_ns
}

#[cold]
fn announce(notice: ClockNotice) {
    match notice {
        ClockNotice::Stepped { offset_ns } => alert!(
            "engine: the real-time clock was set by {} ms; engine time goes on as it was until the \
             next start",
            offset_ns / 1_000_000
        ),
        ClockNotice::Rejoined => alert!("engine: the real-time clock agrees with engine time"),
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
