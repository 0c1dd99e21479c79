//! One connection as the duty thread sees it: its rings, and the credit that keeps the engine from
//! ever waiting for a reader.
//!
//! A session is polled only while its reply ring has room for a terminal reply and a gap notice, so
//! a command that is taken can always be answered. Fills use what is left; when they do not fit, one
//! `Gap` says from which position on to read the log.
//!
//! What others do to a session's orders takes half of the ring at the most, so nobody's trades take the
//! room of its replies. When that half is full one `Gap` is written, and nothing more of that kind until
//! the client has read up to it: who sleeps loses events that the log has, and nothing else.

use super::clients::Terms;
use crate::mailbox::Detail;
use crate::rate::RateLimit;
use crate::side::told_to;
use touchline_core::Addressee;
use touchline_protocol::message::command::{ChangeSymbol, ExpireAll};
use touchline_protocol::message::decode::{ENVELOPED_BYTES_MAX, envelope_words};
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::message::event::{
    ENVELOPE_TERMINAL, ENVELOPE_UNSOLICITED, Envelope, Gap, Trade,
};
use touchline_protocol::message::short_order;
use touchline_protocol::message::stream::Logout;
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::ring::{MessageBuffer, RingFault, SessionEnd};
use touchline_protocol::units::{AccountId, Epoch, Position, SessionId};
use touchline_protocol::wait::ParkingLine;

/// Slots of the largest reply.
pub(super) const REPLY_SLOTS: u64 = ENVELOPED_BYTES_MAX.div_ceil(64) as u64;
/// Slots of a gap notice.
const GAP_SLOTS: u64 = 1;
/// Slots that are kept free for the answer to a command that was taken.
pub(super) const CREDIT_SLOTS: u64 = REPLY_SLOTS + GAP_SLOTS;

/// Slots of what an order that rests is answered with.
pub(super) const USUAL_SLOTS: u64 = 4;

/// Why a connection is ended from this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConnectionFault {
    /// The peer broke a ring.
    #[error(transparent)]
    Ring(#[from] RingFault),
    /// The peer sends, but does not read its replies.
    #[error("it has read none of its replies for {seconds} s")]
    ReaderStalled {
        /// For how long.
        seconds: u64,
    },
}

pub(super) struct Connection {
    session: SessionId,
    epoch: Epoch,
    lane: Lane,
    /// It sends what operators do: of the cold lane, or an admin's.
    is_operator: bool,
    end: Box<SessionEnd>,
    /// Commands that were taken and are answered when pending work ends: an operator may have several.
    answers_due: u64,
    /// Position before the first transaction of which an event did not fit.
    gap_from: Option<Position>,
    /// Position behind the transaction that it was told of last.
    last_position: Position,
    /// It was told something since it was last woken for that.
    replied: bool,
    /// What it is told is to be on disk at once.
    awaits_disk: bool,
    /// The account of which it takes all events.
    account: Option<AccountId>,
    /// The account whose side of a transaction it is told; all sides without one.
    side: Option<AccountId>,
    detail: Detail,
    /// Something that is no reply is missing, and nothing says so yet.
    owes_notice: bool,
    /// Slot behind a gap notice up to which it must have read before it is told of others again.
    unread_gap: Option<u64>,
    /// It has messages, but at its last poll it had no credit: since when, and how far its reader was.
    starved: Option<Stall>,
    rate: RateLimit,
    /// It has messages, but at its last poll nothing was left of its allowance.
    is_paced: bool,
}

/// A reader that stands still while its commands wait.
#[derive(Clone, Copy)]
struct Stall {
    /// How long the duty thread had served by then.
    since_ns: u64,
    consumed: u64,
}

impl Connection {
    /// One that is told of what lies behind the position `before`: its own logon may have taken away what
    /// an older connection left.
    pub(super) fn new(
        (session, epoch): (SessionId, Epoch),
        (role, lane): (Role, Lane),
        Terms { account, side, rate, awaits_disk, detail }: Terms,
        end: Box<SessionEnd>,
        before: Position,
    ) -> Self {
        Self {
            session,
            epoch,
            lane,
            is_operator: matches!(lane, Lane::Cold) || matches!(role, Role::Admin),
            end,
            answers_due: 0,
            gap_from: None,
            last_position: before,
            replied: false,
            awaits_disk,
            account,
            side,
            detail,
            owes_notice: false,
            unread_gap: None,
            starved: None,
            rate,
            is_paced: false,
        }
    }

    pub(super) const fn rate(&mut self) -> &mut RateLimit {
        &mut self.rate
    }

    pub(super) const fn detail(&self) -> Detail {
        self.detail
    }

    pub(super) const fn session(&self) -> SessionId {
        self.session
    }

    pub(super) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) const fn lane(&self) -> Lane {
        self.lane
    }

    pub(super) fn parking_line(&self) -> ParkingLine<'_> {
        self.end.signals.line()
    }

    /// True when there is a message that may be taken.
    pub(super) fn is_ready(&self) -> bool {
        !self.is_kept_waiting() && self.end.input.has_messages()
    }

    /// True when a poll would find nothing, neither a message nor a fault, and leave all as it is.
    #[inline]
    pub(super) fn is_at_rest(&self) -> bool {
        !self.is_kept_waiting() && self.end.input.is_at_rest() && !self.end.output.is_broken()
    }

    /// True when its messages wait for its session's allowance.
    pub(super) const fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// True when its messages wait for its reader, or for its session's allowance.
    #[inline]
    pub(super) const fn is_kept_waiting(&self) -> bool {
        self.starved.is_some() || self.is_paced
    }

    /// True when its next message may be executed while work is pending: any of an operator's but two kinds. Some the
    /// core takes of a symbol without pending work only; and a logout comes behind the answers that are still due.
    pub(super) fn overtakes(&mut self) -> bool {
        if !self.is_operator {
            return false;
        }
        // A broken ring is found out by the poll that comes when nothing is pending any more.
        let Ok(Some(word)) = self.end.input.peek() else { return false };
        let MessageHeader { template_id, .. } = bytemuck::cast(word);
        ![ExpireAll::TEMPLATE, ChangeSymbol::TEMPLATE, Logout::TEMPLATE].contains(&template_id)
    }

    pub(super) fn into_end(self) -> Box<SessionEnd> {
        self.end
    }

    /// The next message, unless the session has no credit for its answer, or nothing left of its allowance. A reader
    /// that stands still is given up by what the duty thread has served, in which no pause of the process counts.
    #[inline]
    pub(super) fn poll(
        &mut self,
        into: &mut MessageBuffer,
        now_ns: u64,
        (served_ns, stall_limit_ns): (u64, u64),
    ) -> Result<Option<usize>, ConnectionFault> {
        if self.end.output.free_slots(CREDIT_SLOTS)? < CREDIT_SLOTS {
            self.starve(served_ns, stall_limit_ns)?;
            return Ok(None);
        }
        self.starved = None;
        if self.rate.is_spent(now_ns) {
            self.is_paced = self.end.input.has_messages();
            // As a poll that finds nothing does: the room is the client's again.
            self.end.input.release();
            return Ok(None);
        }
        self.is_paced = false;
        // No stall of its reader: the room is kept for answers that the engine still owes.
        if self.answers_due > 0 && !self.has_room_for(CREDIT_SLOTS) {
            return Ok(None);
        }
        Ok(self.end.input.poll(into)?.map(|length| short_order::restore(into, length)))
    }

    /// A command that was taken is answered when pending work ends.
    pub(super) const fn answers_later(&mut self) {
        self.answers_due += 1;
    }

    /// One of those was answered.
    pub(super) const fn answered_later(&mut self) {
        self.answers_due = self.answers_due.saturating_sub(1);
    }

    /// None of those is answered any more: a log that has failed continues nothing.
    pub(super) const fn forget_answers(&mut self) {
        self.answers_due = 0;
    }

    /// True if so many slots are free beside those for the answers that are due later.
    fn has_room_for(&mut self, slots: u64) -> bool {
        let wanted = slots + self.answers_due * CREDIT_SLOTS;
        self.end.output.free_slots(wanted).is_ok_and(|free| free >= wanted)
    }

    /// Notes since when the reader stands still; one that does so for too long is given up.
    #[cold]
    fn starve(&mut self, served_ns: u64, stall_limit_ns: u64) -> Result<(), ConnectionFault> {
        if !self.end.input.has_messages() {
            self.starved = None;
            return Ok(());
        }
        let consumed = self.end.output.consumed()?;
        let stall = match self.starved {
            Some(stall) if stall.consumed == consumed => stall,
            _ => Stall { since_ns: served_ns, consumed },
        };
        self.starved = Some(stall);
        let stalled_ns = served_ns - stall.since_ns;
        if stalled_ns >= stall_limit_ns {
            return Err(ConnectionFault::ReaderStalled { seconds: stalled_ns / 1_000_000_000 });
        }
        Ok(())
    }

    /// Stages one event. A terminal reply always fits, by the credit; another may not.
    #[inline]
    pub(super) fn reply(&mut self, envelope: &Envelope, event: &[u8]) {
        let mut room = Trade::default();
        let terminal = envelope.flags & ENVELOPE_TERMINAL != 0;
        // A terminal reply is about whoever sent the command.
        let side = self.side.filter(|_| !terminal);
        let Some(event) = told_to(side, event, &mut room) else { return };
        if terminal {
            self.stage_gap(envelope);
        } else if self.gap_from.is_some() || !self.has_spare_room() {
            self.gap_from.get_or_insert(self.last_position);
            return;
        }
        self.stage(envelope, event);
    }

    /// True when it is told of what others do, in any case: who is told all tails the log.
    pub(super) const fn takes_unsolicited(&self) -> bool {
        self.side.is_some()
    }

    /// True when it is to be told of an event that is no reply to it.
    pub(super) fn is_told(&self, note: &Addressee) -> bool {
        note.session == self.session || note.account.is_some() && note.account == self.account
    }

    /// Stages an event that is no reply, unless it would take the room of replies, or what did not fit
    /// before is not read up to yet.
    pub(super) fn tell(&mut self, envelope: &Envelope, event: &[u8]) {
        let mut room = Trade::default();
        let Some(event) = told_to(self.side, event, &mut room) else { return };
        if self.has_caught_up() && self.has_room_beside_replies() {
            self.stage_gap(envelope);
            self.stage(envelope, event);
        } else {
            self.gap_from.get_or_insert(self.last_position);
            self.owes_notice = true;
        }
    }

    /// Lets the client see what it was told of the transaction that ends at `position`.
    pub(super) fn publish_told(&mut self, position: Position, now_ns: u64) {
        if self.end.output.has_staged() {
            self.publish(position);
        }
        self.announce_gap(position, now_ns);
    }

    /// Says at the position `position` that something is missing, as soon as there is room for that: once,
    /// unless the client has caught up meanwhile.
    #[inline]
    pub(super) fn announce_gap(&mut self, position: Position, now_ns: u64) {
        if self.owes_notice {
            self.try_announce_gap(position, now_ns);
        }
    }

    #[cold]
    fn try_announce_gap(&mut self, position: Position, time_ns: u64) {
        if !self.has_room_for(GAP_SLOTS + CREDIT_SLOTS) || !self.has_caught_up() {
            return;
        }
        let is_full = !self.has_room_beside_replies();
        let (session, flags) = (self.session, ENVELOPE_UNSOLICITED);
        self.stage_gap(&Envelope { position, time_ns, session, flags, ..Default::default() });
        self.publish(position);
        self.unread_gap = is_full.then(|| self.end.output.published());
    }

    /// True when the client has read up to the last notice that was written for want of room.
    fn has_caught_up(&mut self) -> bool {
        if let Some(slot) = self.unread_gap
            && self.end.output.consumed().is_ok_and(|consumed| consumed >= slot)
        {
            self.unread_gap = None;
        }
        self.unread_gap.is_none()
    }

    fn has_room_beside_replies(&mut self) -> bool {
        let half = self.end.output.capacity().slots() as u64 / 2;
        self.end.output.free_slots(half).is_ok_and(|free| free >= half)
    }

    fn has_spare_room(&mut self) -> bool {
        self.has_room_for(REPLY_SLOTS + CREDIT_SLOTS)
    }

    #[inline]
    fn stage_gap(&mut self, envelope: &Envelope) {
        if let Some(from) = self.gap_from.take() {
            let gap = Gap { from, ..Default::default() };
            let flags = envelope.flags & ENVELOPE_UNSOLICITED;
            // What a failed log refuses lies in front of what was told of last.
            let position = envelope.position.max(self.last_position);
            let envelope = Envelope { flags, position, ..*envelope };
            self.owes_notice = false;
            self.stage(&envelope, bytemuck::bytes_of(&gap));
        }
    }

    #[inline]
    fn stage(&mut self, envelope: &Envelope, event: &[u8]) {
        let staged = envelope_words(envelope, event)
            .is_some_and(|(front, body)| self.end.output.stage_behind(&front, body).is_ok());
        // A ring whose index the peer broke takes nothing more; the next poll ends the connection.
        if !staged {
            self.gap_from.get_or_insert(self.last_position);
        }
    }

    /// Brings the slots of the next replies near.
    #[inline]
    pub(super) fn bring_near(&mut self) {
        self.end.output.bring_near(USUAL_SLOTS);
    }

    /// Lets the client see what is staged: the replies of the transaction that ends at `position`.
    #[inline]
    pub(super) fn publish(&mut self, position: Position) {
        self.end.output.publish();
        self.last_position = self.last_position.max(position);
        self.replied = true;
    }

    /// Wakes the client if it was told something and sleeps: once per turn, because a wake is a system
    /// call. True if that is to be on disk at once.
    #[inline]
    pub(super) fn wake_if_replied(&mut self) -> bool {
        if !std::mem::take(&mut self.replied) {
            return false;
        }
        self.end.signals.wake_peer();
        self.awaits_disk
    }
}
