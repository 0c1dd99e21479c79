//! The stream sessions (TCP, Unix sockets) as the duty thread sees them: all of them share one pair of
//! rings with the gateway thread, which names the session in each message. Called by [`super::clients`]
//! and [`super::lanes`].
//!
//! The gateway is this process's own, empties the reply ring whatever the clients do, and holds each
//! session's credit against its socket. So here only the ring itself has to be kept from being full: no
//! command is taken without room for its terminal reply, and what others do takes half of the ring at the
//! most. What does not fit is owed to the session as one `Gap`.
//!
//! On this ring the reserved bytes of an envelope hold the low 24 bits of the connection's epoch, so that
//! the gateway never gives a reply of an older connection to a newer one.

use super::clients::Terms;
use super::connection::{CREDIT_SLOTS, REPLY_SLOTS, USUAL_SLOTS};
use crate::gateway::Bell;
use crate::mailbox::Detail;
use crate::rate::RateLimit;
use crate::side::told_to;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::hash_map::Entry;
use std::mem;
use std::sync::Arc;
use touchline_core::Addressee;
use touchline_protocol::message::decode::envelope_words;
use touchline_protocol::message::event::{
    ENVELOPE_TERMINAL, ENVELOPE_UNSOLICITED, Envelope, Gap, Trade,
};
use touchline_protocol::message::short_order;
use touchline_protocol::ring::{MessageBuffer, RingFault, SessionEnd};
use touchline_protocol::units::{AccountId, Epoch, Position, SessionId};
use touchline_protocol::wait::ParkingLine;

/// Marks a session that has no stream.
const NONE: u32 = u32::MAX;

/// One stream session.
pub(super) struct Stream {
    pub(super) session: SessionId,
    pub(super) epoch: Epoch,
    /// The account of which it takes all events.
    account: Option<AccountId>,
    /// The account whose side of a transaction it is told; all sides without one.
    side: Option<AccountId>,
    pub(super) rate: RateLimit,
    /// It waits until what it is told is on disk.
    awaits_disk: bool,
    pub(super) detail: Detail,
    /// Position before the first transaction of which an event did not fit.
    gap_from: Option<Position>,
    /// Position behind the transaction that it was told of last, and behind the one before that.
    last_position: Position,
    previous_position: Position,
    /// Something that is no reply is missing, and nothing says so yet.
    owes_notice: bool,
    /// The last event it was told of: a trade between two of its orders is noted twice.
    told: Option<(Position, u32)>,
}

/// All of them, and the rings.
pub(super) struct Streams {
    end: SessionEnd,
    bell: Arc<Bell>,
    list: Vec<Stream>,
    /// Where each session's stream is in the list; grows with logons only.
    by_session: Vec<u32>,
    /// Where those are in the list that take all events of an account.
    watchers: FxHashMap<AccountId, Vec<u32>>,
    /// Streams that owe a notice.
    owing: usize,
    replied: bool,
    /// One of those that were told something waits until it is on disk.
    awaits_disk: bool,
    is_starved: bool,
}

impl Streams {
    /// Over the duty thread's end of the rings and the gateway's bell.
    pub(super) const fn new(end: SessionEnd, bell: Arc<Bell>) -> Self {
        Self {
            end,
            bell,
            list: Vec::new(),
            by_session: Vec::new(),
            watchers: FxHashMap::with_hasher(FxBuildHasher),
            owing: 0,
            replied: false,
            awaits_disk: false,
            is_starved: false,
        }
    }

    pub(super) fn parking_line(&self) -> ParkingLine<'_> {
        self.end.signals.line()
    }

    pub(super) const fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// True when there is a message that may be taken.
    pub(super) fn is_ready(&self) -> bool {
        !self.is_starved && self.end.input.has_messages()
    }

    /// Adds one that is told of what lies behind the position `before`: its own logon may have taken away
    /// what an older connection left.
    pub(super) fn add(
        &mut self,
        (session, epoch): (SessionId, Epoch),
        Terms { account, side, rate, awaits_disk, detail }: Terms,
        before: Position,
    ) {
        let at = session.0 as usize;
        if self.by_session.len() <= at {
            self.by_session.resize(at + 1, NONE);
        }
        self.by_session[at] = self.list.len() as u32;
        if let Some(account) = account {
            self.watchers.entry(account).or_default().push(self.list.len() as u32);
        }
        self.list.push(Stream {
            session,
            epoch,
            account,
            side,
            rate,
            awaits_disk,
            detail,
            gap_from: None,
            last_position: before,
            previous_position: before,
            owes_notice: false,
            told: None,
        });
    }

    /// The stream of a session, if it has one.
    #[inline]
    pub(super) fn find(&self, session: SessionId) -> Option<usize> {
        match self.by_session.get(session.0 as usize) {
            None | Some(&NONE) => None,
            Some(&index) => Some(index as usize),
        }
    }

    pub(super) fn get(&self, index: usize) -> &Stream {
        &self.list[index]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Stream {
        &mut self.list[index]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.list.iter()
    }

    pub(super) fn remove(&mut self, index: usize) -> Stream {
        let removed = self.list.swap_remove(index);
        self.by_session[removed.session.0 as usize] = NONE;
        if let Some(account) = removed.account
            && let Entry::Occupied(mut watchers) = self.watchers.entry(account)
        {
            watchers.get_mut().retain(|&at| at != index as u32);
            if watchers.get().is_empty() {
                watchers.remove();
            }
        }
        if let Some(moved) = self.list.get(index) {
            self.by_session[moved.session.0 as usize] = index as u32;
            let was = self.list.len() as u32;
            let watchers = moved.account.and_then(|account| self.watchers.get_mut(&account));
            let places = watchers.into_iter().flatten();
            places.filter(|at| **at == was).for_each(|at| *at = index as u32);
        }
        self.owing -= usize::from(removed.owes_notice);
        removed
    }

    /// The next message of whatever session, unless there is no room for its answer.
    #[inline]
    pub(super) fn poll(&mut self, into: &mut MessageBuffer) -> Result<Option<usize>, RingFault> {
        self.is_starved = self.end.output.free_slots(CREDIT_SLOTS)? < CREDIT_SLOTS;
        if self.is_starved {
            return Ok(None);
        }
        Ok(self.end.input.poll(into)?.map(|length| short_order::restore(into, length)))
    }

    /// Stages one event of the transaction that a command caused.
    #[inline]
    pub(super) fn reply(&mut self, index: usize, envelope: &Envelope, event: &[u8]) {
        let mut room = Trade::default();
        // A terminal reply is about whoever sent the command.
        let is_terminal = envelope.flags & ENVELOPE_TERMINAL != 0;
        let side = self.list[index].side.filter(|_| !is_terminal);
        let Some(event) = told_to(side, event, &mut room) else { return };
        if is_terminal {
            self.stage_gap(index, envelope);
        } else if self.list[index].gap_from.is_some() || !self.has_room(REPLY_SLOTS + CREDIT_SLOTS)
        {
            self.miss(index, envelope.position);
            return;
        }
        self.stage(index, envelope, event);
    }

    /// Lets the gateway see what is staged of the transaction that ends at `position`.
    #[inline]
    pub(super) fn publish(&mut self, index: usize, position: Position) {
        self.end.output.publish();
        let stream = &mut self.list[index];
        if stream.last_position < position {
            stream.previous_position = stream.last_position;
            stream.last_position = position;
        }
        self.awaits_disk |= stream.awaits_disk;
        self.replied = true;
    }

    /// The streams that are to be told of an event beside `but`, whose command caused it.
    pub(super) fn tell(
        &mut self,
        note: &Addressee,
        envelope: &Envelope,
        event: &[u8],
        is_told: impl Fn(&Stream) -> bool,
    ) {
        if let Some(index) = self.find(note.session)
            && is_told(&self.list[index])
        {
            self.tell_one(index, note, envelope, event);
        }
        let watchers = note.account.and_then(|account| self.watchers.get_mut(&account));
        // Nobody begins or ends to watch meanwhile.
        let Some(places) = watchers.map(mem::take) else { return };
        for index in places.iter().map(|&index| index as usize) {
            if is_told(&self.list[index]) {
                self.tell_one(index, note, envelope, event);
            }
        }
        if let Some(watchers) = note.account.and_then(|account| self.watchers.get_mut(&account)) {
            *watchers = places;
        }
    }

    fn tell_one(&mut self, index: usize, note: &Addressee, envelope: &Envelope, event: &[u8]) {
        let half = self.end.output.capacity().slots() as u64 / 2;
        let has_room = self.has_room(half);
        let stream = &mut self.list[index];
        let this = Some((envelope.position, note.offset));
        if stream.told == this {
            return;
        }
        stream.told = this;
        let mut room = Trade::default();
        let Some(event) = told_to(stream.side, event, &mut room) else { return };
        if !has_room || stream.gap_from.is_some() && stream.owes_notice {
            self.miss(index, envelope.position);
            let stream = &mut self.list[index];
            self.owing += usize::from(!stream.owes_notice);
            stream.owes_notice = true;
            return;
        }
        let envelope =
            Envelope { session: stream.session, flags: ENVELOPE_UNSOLICITED, ..*envelope };
        self.stage_gap(index, &envelope);
        self.stage(index, &envelope, event);
        self.publish(index, envelope.position);
    }

    /// Says at `position` to whom something is missing that it is, where there is room again.
    #[inline]
    pub(super) fn announce_gaps(&mut self, position: Position, time_ns: u64) {
        if self.owing > 0 {
            self.announce(position, time_ns);
        }
    }

    #[cold]
    fn announce(&mut self, position: Position, time_ns: u64) {
        let half = self.end.output.capacity().slots() as u64 / 2;
        for index in 0..self.list.len() {
            if self.list[index].owes_notice && self.has_room(half) {
                let (session, flags) = (self.list[index].session, ENVELOPE_UNSOLICITED);
                let envelope = Envelope { position, time_ns, session, flags, ..Default::default() };
                self.stage_gap(index, &envelope);
                self.publish(index, position);
            }
        }
    }

    fn has_room(&mut self, wanted: u64) -> bool {
        self.end.output.free_slots(wanted).is_ok_and(|free| free >= wanted)
    }

    /// Notes that an event of the transaction that ends at `position` is missing, of which others may have
    /// been told before.
    fn miss(&mut self, index: usize, position: Position) {
        let stream = &mut self.list[index];
        let is_told_of = stream.last_position == position;
        let from = if is_told_of { stream.previous_position } else { stream.last_position };
        stream.gap_from.get_or_insert(from);
    }

    #[inline]
    fn stage_gap(&mut self, index: usize, envelope: &Envelope) {
        let stream = &mut self.list[index];
        if let Some(from) = stream.gap_from.take() {
            self.owing -= usize::from(stream.owes_notice);
            stream.owes_notice = false;
            let gap = Gap { from, ..Default::default() };
            let flags = envelope.flags & ENVELOPE_UNSOLICITED;
            // What a failed log refuses lies in front of what was told of last.
            let position = envelope.position.max(stream.last_position);
            let envelope = Envelope { flags, position, ..*envelope };
            self.stage(index, &envelope, bytemuck::bytes_of(&gap));
        }
    }

    #[inline]
    fn stage(&mut self, index: usize, envelope: &Envelope, event: &[u8]) {
        let [low, middle, high, _] = self.list[index].epoch.0.to_le_bytes();
        let envelope = Envelope { reserved: [low, middle, high], ..*envelope };
        let staged = envelope_words(&envelope, event)
            .is_some_and(|(front, body)| self.end.output.stage_behind(&front, body).is_ok());
        if !staged {
            self.miss(index, envelope.position);
        }
    }

    /// Brings the slots of the next replies near.
    #[inline]
    pub(super) fn bring_near(&mut self) {
        self.end.output.bring_near(USUAL_SLOTS);
    }

    /// Slots that were published on the ring since it began.
    pub(super) fn published(&self) -> u64 {
        self.end.output.published()
    }

    /// Somebody waits until what is not said on the ring is on disk.
    pub(super) fn await_disk(&mut self, index: usize) {
        self.awaits_disk |= self.list[index].awaits_disk;
    }

    /// Wakes the gateway if there is something for it and it sleeps: once per turn, because a wake is a
    /// system call. True if somebody now waits until what he was told is on disk.
    #[inline]
    pub(super) fn wake_if_replied(&mut self) -> bool {
        if mem::take(&mut self.replied) {
            self.bell.ring();
        }
        mem::take(&mut self.awaits_disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_protocol::message::decode::{Event, disclose};
    use touchline_protocol::ring::RingCapacities;
    use touchline_protocol::ring::layout::MIN_SESSION_SLOTS;

    /// None yet, over rings of which the other end is given too.
    fn streams() -> (Streams, SessionEnd) {
        let sizes = RingCapacities::new(MIN_SESSION_SLOTS, MIN_SESSION_SLOTS).unwrap();
        let (end, descriptors) = SessionEnd::create(sizes).unwrap();
        let reader = SessionEnd::attach(&descriptors, sizes).unwrap();
        (Streams::new(end, Arc::new(Bell::new().unwrap())), reader)
    }

    const fn terms(account: Option<AccountId>) -> Terms {
        Terms {
            account,
            side: None,
            rate: RateLimit::new(0),
            awaits_disk: false,
            detail: Detail::Whole,
        }
    }

    /// The sessions that are told of an event of this session and account, in order; of those that `is_told` lets.
    fn told_of(
        (streams, reader): &mut (Streams, SessionEnd),
        (position, session, account): (u64, u32, Option<u32>),
        is_told: impl Fn(&Stream) -> bool,
    ) -> Vec<u32> {
        let envelope = Envelope { position: Position(position), ..Default::default() };
        let note =
            Addressee { offset: 0, session: SessionId(session), account: account.map(AccountId) };
        streams.tell(&note, &envelope, bytemuck::bytes_of(&Trade::default()), is_told);
        let (mut buffer, mut told) = (MessageBuffer::new(), Vec::new());
        while let Some(length) = reader.input.poll(&mut buffer).unwrap() {
            told.push(disclose(buffer.bytes(length)).unwrap().0.session.0);
        }
        reader.input.release();
        told
    }

    #[test]
    fn an_event_is_told_to_its_session_and_to_those_that_take_all_of_its_account_alone() {
        let mut both = streams();
        for (session, account) in [(1, Some(1)), (2, Some(2)), (3, None), (4, Some(1)), (5, None)] {
            let terms = terms(account.map(AccountId));
            both.0.add((SessionId(session), Epoch(1)), terms, Position(1));
        }
        assert_eq!(told_of(&mut both, (2, 3, Some(1)), |_| true), [3, 1, 4]);
        assert_eq!(told_of(&mut both, (3, 9, Some(2)), |_| true), [2]);
        assert_eq!(told_of(&mut both, (4, 1, Some(1)), |_| true), [1, 4], "once each");
        assert_eq!(told_of(&mut both, (5, 5, None), |_| true), [5]);
        assert_eq!(told_of(&mut both, (6, 9, None), |_| true), []);
        assert_eq!(told_of(&mut both, (7, 9, Some(3)), |_| true), []);
        // Whom the caller leaves out is left out in either way of being told.
        assert_eq!(told_of(&mut both, (8, 3, Some(1)), |one| one.session.0 != 3), [1, 4]);
        assert_eq!(told_of(&mut both, (9, 3, Some(1)), |one| one.session.0 != 1), [3, 4]);
        // The last one of the list takes the place of who leaves.
        let first = both.0.find(SessionId(1)).unwrap();
        assert_eq!(both.0.remove(first).session, SessionId(1));
        assert_eq!(told_of(&mut both, (10, 5, Some(1)), |_| true), [5, 4]);
        let second = both.0.find(SessionId(2)).unwrap();
        both.0.remove(second);
        assert_eq!(told_of(&mut both, (11, 9, Some(1)), |_| true), [4]);
        assert_eq!(told_of(&mut both, (12, 2, Some(2)), |_| true), []);
        assert_eq!(both.0.iter().count(), 3);
    }

    #[test]
    fn a_gap_begins_before_the_transaction_of_which_a_part_did_not_fit() {
        for single in 0..4 {
            let (mut streams, mut reader) = streams();
            let session = SessionId(1);
            streams.add((session, Epoch(1)), terms(None), Position(1));
            let trade = Trade::default();
            // Transactions of one event, then of four, until half of the ring is full.
            for number in 2..200 {
                let envelope = Envelope { position: Position(number), ..Default::default() };
                for offset in 0..if number < 2 + single { 1 } else { 4 } {
                    let note = Addressee { offset, session, account: None };
                    streams.tell(&note, &envelope, bytemuck::bytes_of(&trade), |_| true);
                }
            }
            let (mut buffer, mut told) = (MessageBuffer::new(), Vec::new());
            while let Some(length) = reader.input.poll(&mut buffer).unwrap() {
                told.push(disclose(buffer.bytes(length)).unwrap().0.position.0);
            }
            reader.input.release();
            streams.announce_gaps(Position(200), 0);
            let length = reader.input.poll(&mut buffer).unwrap().expect("a notice");
            let (_, notice) = disclose(buffer.bytes(length)).unwrap();
            let Ok(Event::Gap(gap)) = notice.event() else { panic!("no notice of a gap") };
            let last = *told.last().unwrap();
            let is_whole = told.iter().filter(|&&position| position == last).count() == 4;
            assert_eq!(gap.from.0, if is_whole { last } else { last - 1 }, "{told:?}");
        }
    }
}
