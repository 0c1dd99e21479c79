//! One session over a socket: frames in, replies out, heartbeats. It knows neither ring nor socket: the
//! gateway hands it bytes, asks it for the next message to pass on, and takes what is to leave. Every byte
//! from the client is hostile, and costs nobody but its sender: input and output are bounded.

mod closing;
mod outgoing;

use closing::Closing;
use outgoing::{LostEnd, Outgoing};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::ops::{Range, RangeInclusive};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use touchline_protocol::framing::{FrameBuffer, FrameFault};
use touchline_protocol::message::command::CommandHeader;
use touchline_protocol::message::decode::{self, ENVELOPED_BYTES_MAX, Stream as Said, enclose};
use touchline_protocol::message::enums::{CloseReason, RejectReason, ReplayStatus};
use touchline_protocol::message::event::{ENVELOPE_TERMINAL, Envelope, Rejected, SessionStarted};
use touchline_protocol::message::handshake::{ACKNOWLEDGE_DURABLE, SILENT_INTERVALS};
use touchline_protocol::message::stream::{
    Heartbeat, Logout, ReplayEnd, ReplayRequest, SessionClosed, StateRequest,
};
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::units::{AccountId, Epoch, Position, SessionId};

use super::backend::READ_BYTES;
use super::stall::Stall;
use crate::rate::RateLimit;

/// Room for what came and is not passed on yet.
const INPUT_BYTES: usize = 2 * READ_BYTES;
/// Where the command header lies in every command.
const COMMAND_HEADER: Range<usize> =
    MessageHeader::BYTES..MessageHeader::BYTES + size_of::<CommandHeader>();
/// Template ids of commands.
const COMMANDS: RangeInclusive<u16> = 1..=99;

/// Of what a session sends, and of what it is told, the kernel is asked to keep no more than this; it doubles it
/// for its own needs. Left alone it keeps some MiB for a client over TCP that reads nothing, and all that fits is
/// decided and answered while others wait for the cores. A line that takes long holds a session to so much per
/// round trip.
const KERNEL_BYTES: usize = 128 << 10;

/// Has the kernel keep little of a session's, so that a client that does not read is soon not read either.
pub(super) fn bound_kernel(socket: &OwnedFd) {
    // Where the system refuses, its own bounds hold.
    let _sent = set_socket_send_buffer_size(socket, KERNEL_BYTES);
    let _received = set_socket_recv_buffer_size(socket, KERNEL_BYTES);
}

/// What the next message of a session is.
pub(super) enum Next {
    /// None is whole, or there is no credit for the answer to one.
    Nothing,
    /// For the duty thread: so many bytes at [`Stream::message`].
    Command(usize),
    /// For the log: a replay.
    Replay {
        /// Of the request.
        correlation: u64,
        /// From where on.
        from: Position,
    },
    /// For the duty thread, by mail.
    State {
        /// Of the request.
        correlation: u64,
    },
    /// Something was dealt with here: ask again.
    Done,
    /// The session is to be ended.
    End(CloseReason, String),
}

/// What the handshake agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// `ACKNOWLEDGE_*`.
    pub(super) acknowledgement: u8,
    /// Silence after which a side says something.
    pub(super) heartbeat: Duration,
    /// Bytes that may wait for the client.
    pub(super) unsent_bytes: usize,
}

/// How far a session's replay is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Replaying {
    /// There is none, or it is over.
    Not,
    /// Its next piece is asked for.
    Due,
    /// Its next piece waits for room.
    Hungry,
}

/// One session.
pub(super) struct Stream {
    pub(super) session: SessionId,
    pub(super) epoch: Epoch,
    pub(super) account: AccountId,
    input: FrameBuffer,
    outgoing: Outgoing,
    /// What it may say before it is kept waiting, whatever that is.
    pub(super) rate: RateLimit,
    heartbeat: Duration,
    heard: Instant,
    said: Instant,
    /// Commands, or its end, wait for a client that takes nothing.
    stalled: Option<Stall>,
    /// The socket is not read.
    pub(super) is_held: bool,
    /// It is among those whose output is to be looked at.
    pub(super) is_dirty: bool,
    /// It is among those whose input is to be passed on.
    pub(super) is_ready: bool,
    /// It is among those that have used up what they may say.
    pub(super) is_paced: bool,
    /// It is among those that wait for the durable watermark.
    pub(super) is_holding: bool,
    /// Its state is being gathered, for a request of this correlation: what it says behind that waits.
    pub(super) awaits_state: Option<u64>,
    /// Another replay waits while a piece of one is due: so the reading thread owes a session one piece at
    /// the most, however many it asks for.
    pub(super) replaying: Replaying,
    /// The correlation of its replay.
    pub(super) replay: u64,
    /// It has said that it sends nothing more.
    has_logged_out: bool,
    /// It is ended, and only its last words are left.
    closing: Option<Closing>,
}

impl Stream {
    /// Of a session that has just been opened; `logon` are the positions before and behind its logon.
    pub(super) fn new(
        started: &SessionStarted,
        (terms, rate): (Terms, RateLimit),
        logon: Range<Position>,
        now: Instant,
    ) -> Self {
        let is_durable = terms.acknowledgement == ACKNOWLEDGE_DURABLE;
        Self {
            session: started.session,
            epoch: started.epoch,
            account: started.account,
            input: FrameBuffer::new(INPUT_BYTES),
            outgoing: Outgoing::new(started.session, terms.unsent_bytes, is_durable, logon),
            rate,
            heartbeat: terms.heartbeat,
            heard: now,
            said: now,
            stalled: None,
            is_held: false,
            is_dirty: false,
            is_ready: false,
            is_paced: false,
            is_holding: false,
            awaits_state: None,
            replaying: Replaying::Not,
            replay: 0,
            has_logged_out: false,
            closing: None,
        }
    }

    /// Bytes came; false if there is no room for them, as there is unless the stream [is full](Self::is_full).
    #[must_use]
    pub(super) fn received(&mut self, mut bytes: &[u8], now: Instant) -> bool {
        self.heard = now;
        if self.has_logged_out || self.closing.is_some() {
            return true;
        }
        while !bytes.is_empty() {
            match self.input.push(bytes) {
                0 => return false,
                count => bytes = &bytes[count..],
            }
        }
        true
    }

    /// It is read again, and so can be heard again: its silence begins now.
    pub(super) const fn let_go(&mut self, now: Instant) {
        self.is_held = false;
        self.heard = now;
    }

    /// True when one more read could find no room.
    pub(super) fn is_full(&self) -> bool {
        // Behind its end all that comes is dropped.
        self.closing.is_none() && self.input.room() < READ_BYTES
    }

    /// True when something came that is not passed on yet.
    pub(super) const fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Decides what is to be done with the next message.
    pub(super) fn next(&mut self) -> Next {
        if self.closing.is_some() || self.has_logged_out || self.awaits_state.is_some() {
            return Next::Nothing;
        }
        let frame = match self.input.peek() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Next::Nothing,
            Err(fault) => return malformed(&fault),
        };
        if !self.outgoing.has_credit() {
            return Next::Nothing;
        }
        let length = frame.len();
        // Of whatever version: what the duty thread cannot read it answers.
        let template = template_of(frame);
        if COMMANDS.contains(&template) || template == Logout::TEMPLATE {
            return self.command(length, template);
        }
        if template == ReplayRequest::TEMPLATE && self.replaying == Replaying::Due {
            return Next::Nothing;
        }
        let said = match decode::stream(frame) {
            Ok(Said::Heartbeat(_)) => Next::Done,
            Ok(Said::ReplayRequest(request)) => {
                Next::Replay { correlation: request.correlation, from: request.from }
            }
            Ok(Said::StateRequest(request)) => {
                let correlation = request.correlation;
                match self.end() {
                    None => Next::State { correlation },
                    // Its state is of what is not on disk, and never will be.
                    Some(_) => {
                        self.refuse_state(correlation);
                        Next::Done
                    }
                }
            }
            _ => Next::End(CloseReason::Malformed, format!("template {template} in a session")),
        };
        self.input.take(length);
        said
    }

    /// A command goes on as it is, under the session's own name only.
    fn command(&mut self, length: usize, template: u16) -> Next {
        let header = self.message(length).get(COMMAND_HEADER);
        let Some(header) = header.map(bytemuck::pod_read_unaligned::<CommandHeader>) else {
            self.reject(&CommandHeader::default(), RejectReason::Malformed, template);
            self.input.take(length);
            return Next::Done;
        };
        if (header.session, header.epoch) != (self.session, self.epoch) {
            self.reject(&header, RejectReason::StaleEpoch, template);
            self.input.take(length);
            return Next::Done;
        }
        let message = self.message(length);
        if template == Logout::TEMPLATE && decode::as_message::<Logout>(message).is_err() {
            // One that the duty thread cannot read ends nothing there.
            self.reject(&header, RejectReason::Malformed, template);
            self.input.take(length);
            return Next::Done;
        }
        Next::Command(length)
    }

    /// The message that [`Next::Command`] told of.
    pub(super) fn message(&self, length: usize) -> &[u8] {
        match self.input.peek() {
            Ok(Some(frame)) if frame.len() == length => frame,
            _ => &[],
        }
    }

    /// That message was passed on.
    pub(super) fn passed_on(&mut self, length: usize) {
        let template = template_of(self.message(length));
        self.input.take(length);
        if template == Logout::TEMPLATE {
            self.has_logged_out = true;
        } else {
            self.outgoing.passed_on();
        }
    }

    /// Answers a command that is not passed on.
    fn reject(&mut self, header: &CommandHeader, reason: RejectReason, template_id: u16) {
        let rejected = Rejected { reason: reason.to_wire(), template_id, ..Default::default() };
        let (position, time_ns) = self.outgoing.last();
        let envelope = Envelope {
            correlation: header.correlation,
            sequence: header.sequence,
            position,
            time_ns,
            session: self.session,
            flags: ENVELOPE_TERMINAL,
            ..Default::default()
        };
        let mut enclosed = [0; ENVELOPED_BYTES_MAX];
        let length = enclose(&envelope, bytemuck::bytes_of(&rejected), &mut enclosed)
            .expect("a rejection is no larger than the largest event");
        // It counts as the answer to a command under way.
        self.outgoing.passed_on();
        self.outgoing.put(&envelope, &enclosed[..length]);
    }

    /// An event for the session, in its envelope.
    pub(super) fn put(&mut self, envelope: &Envelope, message: &[u8]) {
        if self.closing.is_none() {
            self.outgoing.put(envelope, message);
        }
    }

    /// Messages that tell of nothing behind `position`, behind what is there.
    pub(super) fn put_as_of(&mut self, position: Position, messages: &[u8]) {
        if self.closing.is_none() {
            self.outgoing.put_as_of(position, messages);
        }
    }

    /// Room for what was asked for besides commands.
    pub(super) const fn spare_room(&self) -> usize {
        self.outgoing.spare_room()
    }

    /// Position that it is told of nothing beyond, if there is one: see [`Outgoing::end`].
    pub(super) const fn end(&self) -> Option<Position> {
        self.outgoing.end()
    }

    /// The log has failed: see [`Outgoing::fail`].
    pub(super) fn fail(&mut self, durable: Position) {
        for lost in self.outgoing.fail(durable) {
            match lost {
                LostEnd::Replay(correlation) => self.break_off_replay(correlation),
                LostEnd::State(correlation) => self.refuse_state(correlation),
            }
        }
    }

    /// Its state, as of a position, came.
    pub(super) fn state_came(&mut self, position: Position, messages: &[u8]) {
        let correlation = self.awaits_state.take();
        if self.end().is_some_and(|end| position > end) {
            self.refuse_state(correlation.unwrap_or_default());
        } else {
            self.put_as_of(position, messages);
        }
    }

    /// A piece of its replay, up to a position, came; gives whether it has another one.
    pub(super) fn history_came(
        &mut self,
        position: Position,
        messages: &[u8],
        is_over: bool,
    ) -> bool {
        let is_lost = self.end().is_some_and(|end| position > end);
        if is_lost {
            self.break_off_replay(self.replay);
        } else {
            self.put_as_of(position, messages);
        }
        let goes_on = !is_over && !is_lost;
        self.replaying = if goes_on { Replaying::Hungry } else { Replaying::Not };
        goes_on
    }

    /// What it asked for is not on disk, and never will be: it may ask again for what is.
    fn break_off_replay(&mut self, correlation: u64) {
        let (position, _) = self.outgoing.last();
        let status = ReplayStatus::Unavailable.to_wire();
        let end = ReplayEnd { correlation, position, status, ..Default::default() };
        self.put_as_of(position, bytemuck::bytes_of(&end));
    }

    fn refuse_state(&mut self, correlation: u64) {
        if self.closing.is_none() {
            let header = CommandHeader { correlation, ..Default::default() };
            self.reject(&header, RejectReason::LogUnavailable, StateRequest::TEMPLATE);
        }
    }

    /// What is to leave, if the socket is free.
    pub(super) fn take(&mut self, durable: Position, now: Instant) -> Option<Vec<u8>> {
        self.outgoing.release(durable);
        if self.closing.is_none() {
            self.outgoing.announce_gap();
        }
        let leaving = self.outgoing.take();
        if leaving.is_some() {
            self.said = now;
        }
        leaving
    }

    /// The socket has taken so many bytes.
    pub(super) const fn progressed(&mut self, bytes: usize) {
        self.outgoing.progressed(bytes);
        self.stalled = None;
    }

    /// The socket has taken all that it was given.
    pub(super) fn sent(&mut self, buffer: Vec<u8>) {
        self.outgoing.sent(buffer);
        self.stalled = None;
    }

    /// True while the socket has something to take, or may be given something now, unless the peer has read nothing for
    /// so long.
    pub(super) fn has_words(&self, now: Instant, stall_limit: Duration) -> bool {
        let is_stalled = self.stalled.is_some_and(|stall| stall.lasts(now) >= stall_limit);
        !self.outgoing.is_idle() && !is_stalled
    }

    /// True when something waits for the durable watermark.
    pub(super) fn awaits_durable(&self) -> bool {
        self.outgoing.awaits_durable()
    }

    /// Says why the session ends; nothing is said behind that. Who has logged out may take as long as it wants to
    /// read the rest, and for `stall_limit` nothing.
    pub(super) fn close(&mut self, reason: CloseReason, stall_limit: Duration, now: Instant) {
        if self.closing.is_none() {
            self.outgoing.announce_owed_gap();
            let closed = SessionClosed { reason: reason.to_wire(), ..Default::default() };
            self.outgoing.put_plain(bytemuck::bytes_of(&closed));
            self.closing = Some(Closing::of(reason, stall_limit, now));
            self.stalled = None;
        }
    }

    /// True when its last words are all given to the socket. To be asked for what that keeps of them: closed in front
    /// of a peer that still sends, it would take them back.
    pub(super) const fn has_said_all(&self) -> bool {
        self.closing.is_some() && self.outgoing.used() == 0
    }

    /// True when its last words have arrived, of which the socket keeps `unread` bytes, or its time is over.
    pub(super) fn is_over(&self, unread: Option<u64>, now: Instant) -> bool {
        let has_arrived = self.has_said_all() && unread.is_none_or(|unread| unread == 0);
        has_arrived || self.closing.is_some_and(|closing| closing.is_late(self.stalled, now))
    }

    /// True when it has logged out and is owed answers that have not arrived.
    pub(super) fn is_owed(&self, unread: Option<u64>) -> bool {
        let is_left = self.outgoing.used() > 0 || unread.is_some_and(|unread| unread > 0);
        matches!(self.closing, Some(Closing::Owed(_))) && is_left
    }

    /// True when it is ended and only its last words are left.
    pub(super) const fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// The gateway did not look for so long: nothing of that is counted against the client. Its own silence is
    /// one: the client hears of it as soon as it may.
    pub(super) fn forgive(&mut self, lost: Duration, now: Instant) {
        self.heard = now.min(self.heard + lost);
        if let Some(stall) = &mut self.stalled {
            stall.forgive(lost, now);
        }
        if let Some(closing) = &mut self.closing {
            closing.forgive(lost);
        }
    }

    /// True while something waits for it to read: then [`tick`](Self::tick) is to know what it has left unread.
    pub(super) fn is_waited_for(&self) -> bool {
        if self.closing.is_some() {
            return self.outgoing.is_under_way() || self.has_said_all();
        }
        // What a replay holds open is of use to others too.
        let is_wanted = self.replaying == Replaying::Hungry
            || !self.outgoing.has_credit() && !self.input.is_empty();
        is_wanted && self.outgoing.waits_for_reader()
    }

    /// Looks at the time: says something after a silence, and gives up a peer that is silent or does not
    /// read; `unread` is what its socket keeps for it.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        stall_limit: Duration,
        (appended, durable): (Position, Position),
        unread: Option<u64>,
    ) -> Option<(CloseReason, String)> {
        let stalled = self.look(unread, now);
        if self.closing.is_some() {
            return None;
        }
        // What waits for the disk is no sign of life: a client would take a late disk for a dead engine.
        if now.duration_since(self.said) >= self.heartbeat && self.outgoing.is_idle() {
            let heartbeat = Heartbeat { appended, durable, ..Default::default() };
            self.outgoing.put_in_front(bytemuck::bytes_of(&heartbeat));
        }
        let silence = now.duration_since(self.heard);
        // A peer that is not read cannot be heard.
        if silence >= self.heartbeat * SILENT_INTERVALS && !self.is_held {
            let why = format!("nothing came for {} s", silence.as_secs());
            return Some((CloseReason::Silent, why));
        }
        (stalled? >= stall_limit).then(|| {
            let why = format!("it has read none of its replies for {} s", stall_limit.as_secs());
            (CloseReason::ReaderStalled, why)
        })
    }

    /// Looks whether it reads; gives for how long it has read nothing of what is waited for.
    fn look(&mut self, unread: Option<u64>, now: Instant) -> Option<Duration> {
        if !self.is_waited_for() {
            self.stalled = None;
            return None;
        }
        let stall = self.stalled.get_or_insert(Stall::new(now));
        stall.look(unread, now);
        Some(stall.lasts(now))
    }
}

fn template_of(frame: &[u8]) -> u16 {
    let head = frame.get(..MessageHeader::BYTES);
    head.map_or(0, |head| bytemuck::pod_read_unaligned::<MessageHeader>(head).template_id)
}

fn malformed(fault: &FrameFault) -> Next {
    Next::End(CloseReason::Malformed, fault.to_string())
}

#[cfg(test)]
mod any_cut;
#[cfg(test)]
mod tests;
