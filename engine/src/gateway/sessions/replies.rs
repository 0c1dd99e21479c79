//! What the duty thread says to stream sessions: replies and events by the ring that they share, and by mail the
//! states that they asked for, each of which has its place among what the ring carries. Called by
//! [`super::super::service`] in each of its turns.

use super::Sessions;
use crate::gateway::Mail;
use crate::mailbox::StateLetter;
use std::ops::Range;
use std::time::{Duration, Instant};
use touchline_protocol::message::MessageHeader;
use touchline_protocol::message::decode::ENVELOPED_BYTES_MAX;
use touchline_protocol::message::event::Envelope;
use touchline_protocol::ring::layout::MAX_SLOTS;

/// Replies taken out of the ring per turn.
const REPLIES_PER_TURN: usize = 4096;
/// Where the envelope lies in a message of the ring, and its reserved bytes in it.
const ENVELOPE: Range<usize> = MessageHeader::BYTES..MessageHeader::BYTES + size_of::<Envelope>();
const RESERVED: Range<usize> = ENVELOPE.end - 3..ENVELOPE.end;

impl Sessions {
    /// True when the duty thread has said something that no session was given yet.
    pub(in crate::gateway) fn has_replies(&self) -> bool {
        self.rings.input.has_messages()
    }

    /// True while something is on its way to a session, or may leave now, unless that has read nothing for so long.
    pub(in crate::gateway) fn have_words(&self, now: Instant, stall_limit: Duration) -> bool {
        self.has_replies()
            || !self.states.is_empty()
            || self.streams.values().any(|stream| stream.has_words(now, stall_limit))
    }

    /// Takes replies out of the ring and gives each to its session, and each state behind those in front of
    /// which it is not to come; gives whether there was one. With mail that is not read, the letter that opens
    /// a session may be in it: what comes for one that is not there is kept until it is read.
    pub(in crate::gateway) fn drain(&mut self, mail: &Mail) -> bool {
        // In this order: a state that stands in front of any of these replies was put before that was published.
        let published = self.rings.input.published();
        while let Some(state) = mail.states.take() {
            self.states.push_back(state);
        }
        let (mut taken, mut had_state) = (0, false);
        while taken < REPLIES_PER_TURN {
            let at = self.rings.input.consumed();
            while let Some(state) = self.states.pop_front_if(|state| state.behind == at) {
                self.state_came(&state);
                had_state = true;
            }
            if at == published {
                break;
            }
            // Both ends of these rings are this process's own: a fault here is a broken engine, which
            // the duty thread finds too.
            let Ok(Some(length)) = self.rings.input.poll(&mut self.buffer) else { break };
            taken += 1;
            let mut message = [0; ENVELOPED_BYTES_MAX];
            let Some(message) = message.get_mut(..length) else { continue };
            message.copy_from_slice(self.buffer.bytes(length));
            if !self.deliver(message) && mail.from_duty.has_mail() {
                self.early.push_back(message.to_vec());
            }
        }
        self.rings.input.release();
        taken > 0 || had_state
    }

    /// Takes all replies that are in the ring by now.
    pub(in crate::gateway) fn drain_all(&mut self, mail: &Mail) {
        // Each takes a slot at least, so no more than that were there when this began.
        for _ in 0..MAX_SLOTS.div_ceil(REPLIES_PER_TURN) {
            if !self.drain(mail) {
                return;
            }
        }
    }

    /// The connection that a reply is for, if it is still there.
    fn route(&self, envelope: &Envelope) -> Option<usize> {
        let route = self.routes.get(envelope.session.0 as usize)?.as_ref()?;
        (route.epoch == envelope.reserved).then_some(route.ticket)
    }

    /// Gives a message of the ring to its session; false if that is not there.
    fn deliver(&mut self, message: &mut [u8]) -> bool {
        let Some(envelope) = message.get_mut(ENVELOPE) else { return false };
        let mut envelope: Envelope = bytemuck::pod_read_unaligned(envelope);
        let Some(ticket) = self.route(&envelope) else { return false };
        let Some(stream) = self.streams.get_mut(&ticket) else { return false };
        envelope.reserved = [0; 3];
        message[RESERVED].fill(0);
        stream.put(&envelope, message);
        let has_input = stream.has_input();
        self.mark_dirty(ticket);
        if has_input {
            self.mark_ready(ticket);
        }
        true
    }

    /// What an account has at a position came for a session.
    fn state_came(&mut self, state: &StateLetter) {
        if let Some(stream) = self.streams.get_mut(&state.ticket) {
            stream.state_came(state.position, &state.messages);
            self.mark_dirty(state.ticket);
            self.mark_ready(state.ticket);
        }
    }

    /// Delivers what came before its session's opening was known.
    pub(super) fn deliver_early(&mut self) {
        for mut message in std::mem::take(&mut self.early) {
            if !self.deliver(&mut message) {
                self.early.push_back(message);
            }
        }
    }

    /// All mail is read: what is for nobody was for a connection that has ended.
    pub(in crate::gateway) fn forget_early(&mut self) {
        self.early.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::stream::Terms;
    use crate::gateway::{self, StreamRings};
    use touchline_protocol::framing::FrameBuffer;
    use touchline_protocol::message::Message;
    use touchline_protocol::message::decode::{disclose, enclose};
    use touchline_protocol::message::event::{Done, ENVELOPE_TERMINAL, SessionStarted};
    use touchline_protocol::message::stream::StateEnd;
    use touchline_protocol::units::{Epoch, Position, SessionId};

    const TICKET: usize = 3;

    /// Positions of the replies and states that leave for the session, in order; a state's below zero.
    fn left(sessions: &mut Sessions) -> Vec<i64> {
        let stream = sessions.streams.get_mut(&TICKET).expect("it is open");
        let bytes = stream.take(Position(0), Instant::now()).expect("something leaves");
        let mut frames = FrameBuffer::new(bytes.len());
        frames.push(&bytes);
        let mut positions = Vec::new();
        while let Some(frame) = frames.peek().expect("messages") {
            let header: MessageHeader =
                bytemuck::pod_read_unaligned(&frame[..MessageHeader::BYTES]);
            positions.push(if header.template_id == StateEnd::TEMPLATE {
                let end: StateEnd = bytemuck::pod_read_unaligned(frame);
                -(end.position.0 as i64)
            } else {
                disclose(frame).expect("an event in its envelope").0.position.0 as i64
            });
            let length = frame.len();
            frames.take(length);
        }
        positions
    }

    /// Whoever begins with a state and goes on with what comes behind it counts nothing twice.
    #[test]
    fn a_state_stands_among_the_events_where_its_position_does() {
        let (mail, StreamRings { mut duty, gateway }) = gateway::mail().expect("memory for rings");
        let mut sessions = Sessions::new(gateway, 0, Instant::now());
        let (session, epoch) = (SessionId(1), Epoch(1));
        let started = SessionStarted { session, epoch, ..Default::default() };
        let heartbeat = Duration::from_secs(60);
        let terms = Terms { acknowledgement: 0, heartbeat, unsent_bytes: 1 << 20 };
        let logon = Position(0)..Position(0);
        sessions.open(TICKET, &started, terms, (logon, Instant::now()));
        let mut say = |position: u64| {
            let (position, flags) = (Position(position), ENVELOPE_TERMINAL);
            let reserved = [1, 0, 0];
            let envelope = Envelope { session, position, flags, reserved, ..Default::default() };
            let mut enclosed = [0; ENVELOPED_BYTES_MAX];
            let done = Done::default();
            let length = enclose(&envelope, bytemuck::bytes_of(&done), &mut enclosed);
            let enclosed = &enclosed[..length.expect("it is short")];
            duty.output.try_push(enclosed).expect("there is room");
            duty.output.published()
        };
        let tell = |position: u64, behind: u64| {
            let position = Position(position);
            let messages =
                bytemuck::bytes_of(&StateEnd { position, ..Default::default() }).to_vec();
            mail.states.put(StateLetter { ticket: TICKET, behind, position, messages });
        };
        tell(1, 0);
        say(2);
        let behind = say(3);
        tell(3, behind);
        tell(3, behind);
        say(4);
        let behind = say(5);
        tell(5, behind);
        assert!(sessions.drain(&mail));
        assert_eq!(left(&mut sessions), [-1, 2, 3, -3, -3, 4, 5, -5]);
        tell(5, behind);
        assert!(sessions.drain(&mail), "a state alone is something too");
        assert!(!sessions.drain(&mail));
    }
}
