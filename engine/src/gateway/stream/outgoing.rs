//! What is to leave for one stream session: bounded, in order, held back for the durable watermark if the
//! session asked for that, and with a `Gap` where something did not fit. Called by [`super::Stream`].
//!
//! The rules are those of a reply ring: terminal replies always fit, because no command is passed on
//! without room for its own; the events in front of one use what is left; what others do uses half of the
//! room at the most, and is told again only after the client has taken the notice that some was missing.

use std::collections::VecDeque;
use std::ops::Range;
use touchline_protocol::framing::frame_length;
use touchline_protocol::message::decode::{self, ENVELOPED_BYTES_MAX, disclose, enclose};
use touchline_protocol::message::event::{ENVELOPE_TERMINAL, ENVELOPE_UNSOLICITED, Envelope, Gap};
use touchline_protocol::message::stream::{ReplayEnd, StateEnd};
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::units::{Position, SessionId};

/// Room for the answer to one command, bytes: the largest reply and two notices of a gap.
const CREDIT_BYTES: usize = ENVELOPED_BYTES_MAX + 2 * GAP_BYTES;

const GAP_BYTES: usize = size_of::<Gap>() + size_of::<Envelope>();

/// Commands that are passed on and not answered yet, at the most: so much of the duty thread's ring one
/// session may take.
const IN_FLIGHT_MAX: usize = 64;

/// The queue of one session.
pub(super) struct Outgoing {
    session: SessionId,
    /// What is not handed to the socket yet.
    bytes: Vec<u8>,
    /// A buffer to go on with while the other one is under way.
    spare: Vec<u8>,
    /// Bytes that the socket has been given and has not taken.
    under_way: usize,
    /// Bytes handed to the socket since the session began.
    handed: u64,
    /// Up to here, counted as `handed` is, everything may leave.
    released: u64,
    /// What may leave when the log is on disk up to a position of its own, and all in front of it has left: ends,
    /// counted as `handed` is.
    marks: VecDeque<(u64, Position)>,
    waits_for_durable: bool,
    durable: Position,
    /// The log is never on disk beyond `durable`.
    is_failed: bool,
    capacity: usize,
    /// Commands whose terminal reply is still to come.
    in_flight: usize,
    /// Position behind the transaction that was told of last, and behind the one before that.
    current: Position,
    previous: Position,
    time_ns: u64,
    /// Position before the first transaction of which an event did not fit.
    gap_from: Option<Position>,
    /// Something that is no reply is missing, and nothing says so yet.
    owes_notice: bool,
    /// End, counted as `handed` is, of a notice that must be taken before others are told of again.
    unread_gap: Option<u64>,
}

impl Outgoing {
    /// Of a session whose logon lies between these positions, for so many bytes.
    pub(super) const fn new(
        session: SessionId,
        capacity: usize,
        waits_for_durable: bool,
        logon: Range<Position>,
    ) -> Self {
        Self {
            session,
            bytes: Vec::new(),
            spare: Vec::new(),
            under_way: 0,
            handed: 0,
            released: 0,
            marks: VecDeque::new(),
            waits_for_durable,
            durable: Position(0),
            is_failed: false,
            capacity,
            in_flight: 0,
            current: logon.end,
            previous: logon.start,
            time_ns: 0,
            gap_from: None,
            owes_notice: false,
            unread_gap: None,
        }
    }

    /// Bytes that the client has not taken.
    pub(super) const fn used(&self) -> usize {
        self.bytes.len() + self.under_way
    }

    /// Position and time of what was told of last, or may still be told of.
    pub(super) fn last(&self) -> (Position, u64) {
        let position = self.end().map_or(self.current, |end| self.current.min(end));
        (position, self.time_ns)
    }

    /// Position that nothing leaves beyond: of a session that waits for a disk which has failed.
    pub(super) const fn end(&self) -> Option<Position> {
        if self.is_failed && self.waits_for_durable { Some(self.durable) } else { None }
    }

    /// True when one more command may be passed on: its answer will fit.
    pub(super) const fn has_credit(&self) -> bool {
        self.in_flight < IN_FLIGHT_MAX
            && self.used() + (self.in_flight + 1) * CREDIT_BYTES <= self.capacity
    }

    /// True when what there is waits for the client to read, and neither for the engine's answers nor for
    /// its disk.
    pub(super) const fn waits_for_reader(&self) -> bool {
        self.in_flight == 0 && self.is_under_way()
    }

    /// True while the socket has something to take.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// Room beside what answers to commands under way need.
    pub(super) const fn spare_room(&self) -> usize {
        self.capacity.saturating_sub(self.used() + (self.in_flight + 1) * CREDIT_BYTES)
    }

    /// A command was passed on.
    pub(super) const fn passed_on(&mut self) {
        self.in_flight += 1;
    }

    /// True when something waits for the durable watermark.
    pub(super) fn awaits_durable(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Puts an event in its envelope into the queue, or notes that it is missing.
    pub(super) fn put(&mut self, envelope: &Envelope, message: &[u8]) {
        if envelope.position > self.current {
            self.previous = self.current;
            self.current = envelope.position;
        }
        self.time_ns = envelope.time_ns;
        if envelope.flags & ENVELOPE_TERMINAL != 0 {
            self.in_flight = self.in_flight.saturating_sub(1);
            self.put_gap(envelope);
            self.push(message, envelope.position);
        } else if envelope.flags & ENVELOPE_UNSOLICITED != 0 {
            self.put_unsolicited(envelope, message);
        } else if self.gap_from.is_some() || message.len() > self.spare_room() {
            self.miss(message);
        } else {
            self.push(message, envelope.position);
        }
    }

    fn put_unsolicited(&mut self, envelope: &Envelope, message: &[u8]) {
        let has_room = self.used() + GAP_BYTES + message.len() <= self.capacity / 2;
        if self.has_caught_up() && has_room {
            self.put_gap(envelope);
            self.push(message, envelope.position);
        } else {
            self.miss(message);
            self.owes_notice = true;
        }
    }

    /// Puts a message that waits for nothing into the queue, behind what is there.
    pub(super) fn put_plain(&mut self, message: &[u8]) {
        self.put_as_of(Position(0), message);
    }

    /// True when nothing can leave now: there is nothing, or it waits for the durable watermark.
    pub(super) const fn is_idle(&self) -> bool {
        self.under_way == 0 && self.released <= self.handed
    }

    /// Puts a message that waits for nothing, and tells of nothing, in front of what waits. Only while the
    /// queue [is idle](Self::is_idle), so there is one at the most.
    pub(super) fn put_in_front(&mut self, message: &[u8]) {
        debug_assert!(self.is_idle());
        self.bytes.splice(..0, message.iter().copied());
        let added = message.len() as u64;
        for (end, _) in &mut self.marks {
            *end += added;
        }
        // A notice that was handed over has been taken: nothing is under way.
        self.unread_gap = self.unread_gap.filter(|&end| end > self.handed).map(|end| end + added);
        self.released = self.handed + added;
    }

    /// Puts messages that tell of nothing behind `position` into the queue, behind what is there.
    pub(super) fn put_as_of(&mut self, position: Position, messages: &[u8]) {
        self.push(messages, position);
    }

    /// Says that something is missing, once there is room and the client has read the last such notice.
    pub(super) fn announce_gap(&mut self) {
        if self.has_caught_up() && self.used() <= self.capacity / 4 {
            self.announce_owed_gap();
        }
    }

    /// Says that something is missing, if it is, whatever room there is: nothing more comes.
    pub(super) fn announce_owed_gap(&mut self) {
        if !self.owes_notice {
            return;
        }
        let envelope = Envelope {
            position: self.last().0,
            time_ns: self.time_ns,
            flags: ENVELOPE_UNSOLICITED,
            ..Default::default()
        };
        self.put_gap(&envelope);
    }

    fn has_caught_up(&mut self) -> bool {
        let taken = self.handed - self.under_way as u64;
        self.unread_gap = self.unread_gap.filter(|&end| taken < end);
        self.unread_gap.is_none()
    }

    /// Notes a message that finds no room; of a notice of a gap, the gap that it was about.
    fn miss(&mut self, message: &[u8]) {
        self.note_missing(from_of(message).unwrap_or(self.previous));
    }

    /// Notes a message that never leaves. A notice of a gap is given anew: what it is about may be on disk.
    fn lose(&mut self, message: &[u8]) {
        if let Some(from) = from_of(message) {
            self.note_missing(from);
            self.owes_notice = true;
        }
    }

    fn note_missing(&mut self, from: Position) {
        self.gap_from = Some(self.gap_from.map_or(from, |known| known.min(from)));
    }

    fn put_gap(&mut self, envelope: &Envelope) {
        let Some(from) = self.gap_from.take() else { return };
        let gap = Gap { from, ..Default::default() };
        let flags = envelope.flags & ENVELOPE_UNSOLICITED;
        let session = self.session;
        if self.end().is_some_and(|end| from >= end) {
            // Nothing that is on disk is missing.
            return;
        }
        // What a failed log refuses lies in front of what was told of last.
        let (position, _) = self.last();
        let envelope = Envelope { session, flags, position, ..*envelope };
        let mut enclosed = [0; ENVELOPED_BYTES_MAX];
        let length = enclose(&envelope, bytemuck::bytes_of(&gap), &mut enclosed)
            .expect("a gap is no larger than the largest event");
        self.push(&enclosed[..length], position);
        if self.owes_notice {
            self.owes_notice = false;
            self.unread_gap = Some(self.handed + self.bytes.len() as u64);
        }
    }

    fn push(&mut self, message: &[u8], position: Position) {
        if self.end().is_some_and(|end| position > end) {
            return self.lose(message);
        }
        self.bytes.extend_from_slice(message);
        let end = self.handed + self.bytes.len() as u64;
        if !self.waits_for_durable || self.marks.is_empty() && position <= self.durable {
            self.released = end;
            return;
        }
        match self.marks.back_mut() {
            Some((last_end, last)) if *last == position => *last_end = end,
            _ => self.marks.push_back((end, position)),
        }
    }

    /// The log has failed, and is on disk up to `durable` for ever: what waits for more never leaves, and holds
    /// nothing up. Gives the ends of what was asked for besides commands that are among what is lost.
    pub(super) fn fail(&mut self, durable: Position) -> Vec<LostEnd> {
        let mut lost = Vec::new();
        self.release(durable);
        self.is_failed = true;
        let mut from = (self.released.max(self.handed) - self.handed) as usize;
        let waiting = self.bytes.split_off(from);
        let first = from;
        for (end, position) in std::mem::take(&mut self.marks) {
            let end = (end - self.handed) as usize;
            let messages = &waiting[from - first..end - first];
            if position <= durable {
                self.bytes.extend_from_slice(messages);
            } else {
                for message in each(messages) {
                    lost.extend(LostEnd::of(message));
                    self.lose(message);
                }
            }
            from = end;
        }
        self.released = self.handed + self.bytes.len() as u64;
        // Of a log that has failed nobody is told so much that a notice would have to be waited for.
        self.unread_gap = None;
        lost
    }

    /// The log is on disk up to `durable`.
    pub(super) fn release(&mut self, durable: Position) {
        self.durable = durable;
        while let Some(&(end, position)) = self.marks.front()
            && position <= durable
        {
            self.released = end;
            self.marks.pop_front();
        }
    }

    /// What may leave now, if the socket is free.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let count = (self.released - self.handed.min(self.released)) as usize;
        if self.under_way > 0 || count == 0 {
            return None;
        }
        let mut leaving = std::mem::take(&mut self.spare);
        if count == self.bytes.len() {
            std::mem::swap(&mut leaving, &mut self.bytes);
        } else {
            leaving.extend(self.bytes.drain(..count));
        }
        self.handed += count as u64;
        self.under_way = count;
        Some(leaving)
    }

    /// The socket has taken so many bytes.
    pub(super) const fn progressed(&mut self, bytes: usize) {
        self.under_way = self.under_way.saturating_sub(bytes);
    }

    /// The socket has taken all that it was given.
    pub(super) fn sent(&mut self, buffer: Vec<u8>) {
        self.under_way = 0;
        self.spare = buffer;
    }
}

/// Of a notice of a gap: where what is missing begins.
fn from_of(message: &[u8]) -> Option<Position> {
    let header = message.get(..MessageHeader::BYTES).map(bytemuck::pod_read_unaligned);
    header.filter(|header: &MessageHeader| header.template_id == Gap::TEMPLATE)?;
    let (_, event) = disclose(message).ok()?;
    match event.event() {
        Ok(decode::Event::Gap(gap)) => Some(gap.from),
        _ => None,
    }
}

/// The end of an answer that never comes whole, by the correlation of what was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LostEnd {
    Replay(u64),
    State(u64),
}

impl LostEnd {
    fn of(message: &[u8]) -> Option<Self> {
        if let Ok(end) = decode::as_message::<ReplayEnd>(message) {
            return Some(Self::Replay(end.correlation));
        }
        decode::as_message::<StateEnd>(message).ok().map(|end| Self::State(end.correlation))
    }
}

/// Whole messages, one by one.
fn each(mut messages: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = frame_length(messages).ok()??;
        let (message, rest) = messages.split_at_checked(length)?;
        messages = rest;
        Some(message)
    })
}

#[cfg(test)]
mod tests;
