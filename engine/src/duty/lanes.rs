//! The two lanes: whose messages are taken in a turn, how many, and which may be taken while work is
//! pending. Called by [`super::Duty::turn`].

use super::clients::ClientIndex;
use super::transaction::Venue;
use super::{COMMAND_HEADER, Duty, Executed, execute, is_answering, is_held_up};
use crate::notice::alert;
use touchline_protocol::message::command::CommandHeader;
use touchline_protocol::message::enums::{CloseReason, Lane};
use touchline_protocol::outlet;

impl Duty {
    /// The hot lane's rings, the stream sessions, then the cold lane; but whichever of the last two was kept
    /// from being polled at all, by an order that came before it, comes first in the next turn.
    pub(super) fn poll_lanes(&mut self) -> u32 {
        let cold_first = std::mem::take(&mut self.cold_was_shut_out);
        let mut work = if cold_first { self.poll_cold() } else { 0 };
        let streams_first = self.streams_were_shut_out;
        if streams_first {
            work += self.poll_streams();
        }
        let first = self.next_hot;
        if !is_held_up(&self.core, &self.writer) {
            // Else whoever was to begin would be passed over, perhaps each time.
            self.next_hot = first.wrapping_add(1);
        }
        work += self.poll_hot(first, self.settings.messages_per_turn);
        if !streams_first {
            work += self.poll_streams();
        }
        if !cold_first {
            self.cold_was_shut_out = is_held_up(&self.core, &self.writer);
            work += self.poll_cold();
        }
        work
    }

    /// While work is pending: what operators send, an admin of the hot lane too, but for what has to
    /// wait. Everybody else's messages stay where they are.
    pub(super) fn poll_operators(&mut self) -> u32 {
        let quota = self.settings.cold_messages_per_turn;
        self.poll_cold() + self.poll_hot(self.next_hot, quota)
    }

    /// At most `limit` messages of each hot session, beginning with the one at the index `first`.
    fn poll_hot(&mut self, first: usize, limit: u32) -> u32 {
        let mut work = 0;
        let count = self.clients.connections.len();
        // A division for each session would take longer than the look at it.
        let mut index = first.checked_rem(count).unwrap_or(0);
        for _ in 0..count {
            // A connection that ends in here moves another one: that one waits for the next turn.
            if self.may_be_due(index, Lane::Hot) {
                work += self.poll(index, limit);
            }
            index = following(index, count);
        }
        work
    }

    /// True unless the session at the index is of another lane, has nothing, or is not there any more.
    #[inline]
    fn may_be_due(&self, index: usize, lane: Lane) -> bool {
        let connection = self.clients.connections.get(index);
        connection.is_some_and(|one| one.lane() == lane && !one.is_at_rest())
    }

    /// At most `stream_messages_per_turn` over all stream sessions: the gateway puts them into the ring
    /// by turns. Ends early as [`poll`](Self::poll) does.
    fn poll_streams(&mut self) -> u32 {
        self.streams_were_shut_out = is_held_up(&self.core, &self.writer);
        for done in 0..self.settings.stream_messages_per_turn {
            let Self { core, writer, addressees, clients, buffer, now_ns, clock, .. } = self;
            let has_room = is_answering(writer);
            if !has_room || is_held_up(core, writer) {
                return done;
            }
            let length = match clients.streams.poll(buffer) {
                Ok(Some(length)) => length,
                Ok(None) => return done,
                Err(fault) => {
                    // Both ends of these rings are this process's own.
                    alert!("engine: the gateway's ring: {fault}");
                    outlet::finish();
                    std::process::abort();
                }
            };
            let bytes = buffer.bytes(length);
            let Some(header) = bytes.get(COMMAND_HEADER) else { continue };
            let header: CommandHeader = bytemuck::pod_read_unaligned(header);
            // Of a connection that has ended since: given up, as its client was told or will find out.
            let Some(client) = clients
                .streams
                .find(header.session)
                .filter(|&index| clients.streams.get(index).epoch == header.epoch)
                .map(ClientIndex::Stream)
            else {
                continue;
            };
            let mut venue = Venue { core, writer, addressees, now_ns: *now_ns };
            let executed = execute(&mut venue, clock, clients, client, bytes);
            *now_ns = venue.now_ns;
            match executed {
                // No operator comes over a stream, and nobody else revokes.
                Executed::Answered | Executed::Revoked => {}
                Executed::Looked => return done + 1,
                Executed::LoggedOut => {
                    self.end_connection(client, CloseReason::LoggedOut, "it logged out");
                }
            }
        }
        self.settings.stream_messages_per_turn
    }

    /// At most `cold_messages_per_turn` over all cold sessions: a record never makes orders wait.
    fn poll_cold(&mut self) -> u32 {
        let mut left = self.settings.cold_messages_per_turn;
        for _ in 0..self.clients.connections.len() {
            if left == 0 {
                break;
            }
            self.next_cold = following(self.next_cold, self.clients.connections.len());
            let index = self.next_cold;
            if !self.may_be_due(index, Lane::Cold) {
                continue;
            }
            left -= self.poll(index, left);
        }
        self.settings.cold_messages_per_turn - left
    }

    /// Takes up to `limit` messages of one session. Ends early when the log has no room, when work is
    /// pending that the next message must not overtake, when the session has no room for replies, or behind an
    /// order that was judged by levels for nothing: a row of such orders would make a turn of milliseconds.
    ///
    /// Ends the connection where it is to end. That is not left to the caller: an outcome of several words would be
    /// read in other sizes than it was just written in, which waits for all stores to the log and the rings.
    fn poll(&mut self, index: usize, limit: u32) -> u32 {
        let stall_limit_ns = u64::from(self.settings.reader_stall_seconds) * 1_000_000_000;
        let stall = (self.served.ns(), stall_limit_ns);
        let client = ClientIndex::Ring(index);
        let Self { core, writer, addressees, clients, buffer, now_ns, clock, paced_work, .. } =
            self;
        for done in 0..limit {
            let has_room = is_answering(writer);
            let connection = &mut clients.connections[index];
            if !has_room || is_held_up(core, writer) && !connection.overtakes() {
                return done;
            }
            if !writer.control().is_running() {
                connection.forget_answers();
            }
            match connection.poll(buffer, *now_ns, stall) {
                Ok(None) => {
                    if connection.is_paced() {
                        *paced_work += done;
                    }
                    return done;
                }
                Ok(Some(length)) => {
                    let bytes = buffer.bytes(length);
                    let mut venue = Venue { core, writer, addressees, now_ns: *now_ns };
                    let executed = execute(&mut venue, clock, clients, client, bytes);
                    *now_ns = venue.now_ns;
                    match executed {
                        Executed::Answered => {}
                        Executed::Looked => return done + 1,
                        Executed::Revoked => {
                            self.close_fenced();
                            return done + 1;
                        }
                        Executed::LoggedOut => {
                            self.end_connection(client, CloseReason::LoggedOut, "it logged out");
                            return done + 1;
                        }
                    }
                }
                Err(fault) => {
                    self.end_connection(client, CloseReason::Other, &fault.to_string());
                    return done;
                }
            }
        }
        limit
    }
}

/// The index behind `index`, of so many; the first one behind the last, and behind one that is not there any more.
#[inline]
const fn following(index: usize, count: usize) -> usize {
    if index + 1 < count { index + 1 } else { 0 }
}
