//! Events that are no replies: what a transaction did to orders of others than its sender. Told, after it
//! is committed, to the session that placed the order, if it is connected, and to those that take all
//! events of the order's account; in the log's order, each event once. Called by [`super`] behind every
//! transaction. Whom an event concerns is decided by the core.

use super::Duty;
use super::clients::{ClientIndex, Clients};
use super::connection::Connection;
use super::transaction::Venue;
use touchline_protocol::message::event::{ENVELOPE_UNSOLICITED, Envelope};
use touchline_protocol::units::Position;

impl Duty {
    /// Tells others than the connection that was replied to of the last transaction, which ends at
    /// `position`.
    #[inline]
    pub(super) fn tell_others(&mut self, replied: Option<ClientIndex>, position: Position) {
        if self.addressees.notes().is_empty() {
            return;
        }
        let Self { core, writer, addressees, now_ns, clients, .. } = self;
        let venue = Venue { core, writer, addressees, now_ns: *now_ns };
        tell(&venue, position, clients, replied);
    }
}

/// Tells every connection that the last transaction, which ends at `position`, concerns, except for
/// the one that was replied to.
#[inline(never)]
pub(super) fn tell(
    venue: &Venue<'_>,
    position: Position,
    clients: &mut Clients,
    replied: Option<ClientIndex>,
) {
    for (index, connection) in clients.connections.iter_mut().enumerate() {
        if Some(ClientIndex::Ring(index)) != replied && connection.takes_unsolicited() {
            tell_one(venue, position, connection);
        }
    }
    let but = match replied {
        Some(ClientIndex::Stream(index)) => Some(clients.streams.get(index).session),
        _ => None,
    };
    let envelope = Envelope { position, time_ns: venue.now_ns, ..Default::default() };
    for note in venue.addressees.notes() {
        let Some(event) = venue.writer.committed_event(note.offset as usize) else { continue };
        clients.streams.tell(note, &envelope, event, |stream| {
            Some(stream.session) != but
                && venue.core.session(stream.session).is_some_and(|one| one.epoch == stream.epoch)
        });
    }
}

fn tell_one(venue: &Venue<'_>, position: Position, connection: &mut Connection) {
    let notes = venue.addressees.notes();
    if !notes.iter().any(|note| connection.is_told(note)) {
        return;
    }
    // A newer logon or a revocation has fenced it, perhaps by this very transaction.
    let session = venue.core.session(connection.session());
    if session.is_none_or(|session| session.epoch != connection.epoch()) {
        return;
    }
    let envelope = Envelope {
        position,
        time_ns: venue.now_ns,
        session: connection.session(),
        flags: ENVELOPE_UNSOLICITED,
        ..Default::default()
    };
    let mut last = None;
    for note in notes {
        // A trade between two orders of one session is noted twice.
        if last == Some(note.offset) || !connection.is_told(note) {
            continue;
        }
        last = Some(note.offset);
        if let Some(event) = venue.writer.committed_event(note.offset as usize) {
            connection.tell(&envelope, event);
        }
    }
    connection.publish_told(position, venue.now_ns);
}
