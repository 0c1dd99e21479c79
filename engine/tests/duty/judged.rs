//! Commands that are judged before or beside the book: malformed, of another session, sent twice, or
//! of a key that is no more.

use super::client::{Client, limit};
use super::record::transactions;
use super::venue::{Venue, deposit};
use std::fs;
use touchline_engine::quarantine::Quarantine;
use touchline_protocol::message::MessageHeader;
use touchline_protocol::message::command::{CommandHeader, Deposit, Logon, NewOrder, RevokeKey};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, RejectReason, Role, Side};
use touchline_protocol::message::event::{Envelope, Rejected};
use touchline_protocol::units::{Epoch, KeyId, Sequence, SessionId};

/// Sends a message as it is and gives the one reply, which has to be a rejection that changed nothing.
fn rejected(venue: &mut Venue, client: &mut Client, message: &[u8]) -> (Envelope, Rejected) {
    let before = (venue.duty.core().state_hash(), venue.control.appended());
    client.push(message);
    venue.settle();
    let reply = client.read_one();
    assert!(reply.is_terminal());
    assert_eq!(reply.envelope.session, client.identity().0);
    let after = (venue.duty.core().state_hash(), venue.control.appended());
    assert_eq!(after, before, "a rejected command changed something");
    (reply.envelope, reply.rejection().expect("it is rejected"))
}

/// An order under `header`.
fn order(header: CommandHeader) -> NewOrder {
    NewOrder { command: header, ..limit(0, Side::Buy, 1, 1) }
}

/// The order's bytes with one of them changed.
fn damaged(order: &NewOrder, at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytemuck::bytes_of(order).to_vec();
    bytes[at] = byte;
    bytes
}

#[test]
fn a_malformed_message_is_rejected_under_its_own_numbers() {
    let mut venue = Venue::new("", "");
    let mut client = venue.trader("client", 1);
    let good = order(client.header(1));
    let shorter = {
        // A shorter block, framed as the ring wants it.
        let mut bytes = bytemuck::bytes_of(&good)[..64].to_vec();
        bytes[..2].copy_from_slice(&56_u16.to_le_bytes());
        bytes
    };
    let cases = [
        ("a reserved byte", damaged(&good, 143, 1), 1),
        ("a text beyond its end", damaged(&good, 96, 200), 1),
        ("no such template", damaged(&good, 3, 0xee), 0xee01),
        ("an event", damaged(&good, 2, 201), 201),
        ("another template's length", damaged(&good, 2, 2), 2),
        ("half an order", shorter, 1),
        // What cannot be trusted to be of this protocol names no template.
        ("another schema", damaged(&good, 4, 0), 0),
        ("a later version", damaged(&good, 6, 99), 0),
    ];
    for (what, message, template) in cases {
        let (envelope, rejected) = rejected(&mut venue, &mut client, &message);
        assert_eq!(rejected.reason, RejectReason::Malformed.to_wire(), "{what}");
        assert_eq!(rejected.template_id, template, "{what}");
        assert_eq!(envelope.correlation, good.command.correlation, "{what}");
        assert_eq!(envelope.sequence, Sequence(1), "{what}");
    }
    // Too short for numbers of its own.
    let header = MessageHeader { block_length: 0, ..good.header };
    let (envelope, rejected) = rejected(&mut venue, &mut client, bytemuck::bytes_of(&header));
    assert_eq!(rejected.reason, RejectReason::Malformed.to_wire());
    assert_eq!((envelope.correlation, envelope.sequence), (0, Sequence(0)));
    assert_eq!(venue.closed(), [], "the frames were honest");
    client.send(limit(0, Side::Buy, 1, 1));
    venue.settle();
    assert!(matches!(client.read()[0].event(), Event::OrderAccepted(_)), "sequence 1 is unused");
}

#[test]
fn another_session_or_epoch_in_the_header_is_stale() {
    let mut venue = Venue::new("", "");
    let mut client = venue.trader("client", 1);
    let mut other = venue.trader("other", 1);
    // Brings the session to epoch 2, so that there is an older one.
    client = venue.trader("client", client.header(0).key_id.0);
    let own = client.header(1);
    assert_eq!(own.epoch, Epoch(2));
    let theirs = other.header(1);
    let wrong = [
        CommandHeader { epoch: Epoch(1), ..own },
        CommandHeader { epoch: Epoch(3), ..own },
        CommandHeader { epoch: Epoch(0), ..own },
        CommandHeader { session: theirs.session, epoch: theirs.epoch, ..own },
        CommandHeader { session: theirs.session, ..own },
        CommandHeader { session: SessionId(99), ..own },
        // The engine's own session needs no epoch.
        CommandHeader { session: SessionId::ENGINE, epoch: Epoch(0), ..own },
    ];
    for header in wrong {
        let message = order(header);
        let (envelope, rejected) = rejected(&mut venue, &mut client, bytemuck::bytes_of(&message));
        assert_eq!(rejected.reason, RejectReason::StaleEpoch.to_wire(), "{header:?}");
        assert_eq!((envelope.correlation, envelope.sequence), (own.correlation, Sequence(1)));
        assert_eq!(rejected.template_id, 1);
    }
    assert_eq!(other.read().len(), 0);
    client.send(limit(0, Side::Buy, 1, 1));
    other.send(limit(0, Side::Buy, 1, 1));
    venue.settle();
    assert_eq!((client.count_answers(), other.count_answers()), (1, 1));
}

#[test]
fn a_sequence_is_decided_once() {
    let mut venue = Venue::new("", "");
    let mut client = venue.trader("client", 1);
    client.push(bytemuck::bytes_of(&order(client.header(5))));
    venue.settle();
    assert!(matches!(client.read()[0].event(), Event::OrderAccepted(_)));
    for sequence in [5, 4, 1, 0, 5] {
        let message = order(client.header(sequence));
        let (envelope, rejected) = rejected(&mut venue, &mut client, bytemuck::bytes_of(&message));
        assert_eq!(rejected.reason, RejectReason::DuplicateSequence.to_wire(), "{sequence}");
        assert_eq!(envelope.sequence, Sequence(sequence));
        assert_eq!(envelope.correlation, client.correlation(sequence));
    }
    // A new connection of the session remembers, and goes on behind it.
    let mut client = venue.trader("client", 1);
    assert_eq!(client.sequence(), 5);
    let message = order(client.header(5));
    let (_, rejected) = rejected(&mut venue, &mut client, bytemuck::bytes_of(&message));
    assert_eq!(rejected.reason, RejectReason::DuplicateSequence.to_wire());
    assert_eq!(client.send(limit(0, Side::Buy, 1, 1)), 6);
    venue.settle();
    assert!(matches!(client.read()[0].event(), Event::OrderAccepted(_)));
}

#[test]
fn a_revoked_key_ends_its_connections_and_no_others() {
    let mut venue = Venue::new("", "");
    // Opened in this order, so that ending some of them moves others about.
    let mut ended = vec![venue.trader("first", 2)];
    let mut others = vec![venue.trader("one", 1)];
    ended.push(venue.trader("second", 2));
    let mut admin = venue.cold("admin", Role::Admin);
    let mut adapter = venue.try_open("adapter", (Role::Adapter, Lane::Hot, 0), 1024).unwrap();
    others.push(venue.trader("three", 3));
    ended.push(venue.trader("third", 2));
    for client in ended.iter_mut().chain(&mut others) {
        client.send(limit(0, Side::Buy, 1, 1));
    }
    admin.send(RevokeKey { key: KeyId(2), ..Default::default() });
    admin.send(deposit());
    venue.settle();
    assert_eq!(admin.count_answers(), 2, "the admin's own connection goes on");
    let mut closed: Vec<_> =
        venue.closed().into_iter().map(|(session, epoch, _)| (session, epoch)).collect();
    closed.sort();
    let mut expected: Vec<_> = ended.iter().map(Client::identity).collect();
    expected.sort();
    assert_eq!(closed, expected);
    for client in &mut ended {
        assert_eq!(client.count_answers(), 1, "what was sent before it was answered");
        client.send(limit(0, Side::Buy, 1, 1));
    }
    let before = venue.control.appended();
    assert_eq!(venue.duty.turn(), 0, "a revoked key's messages are work");
    assert_eq!(venue.control.appended(), before);
    for client in &mut ended {
        assert_eq!(client.read().len(), 0, "a revoked key's message is answered");
    }
    assert_eq!(
        venue.try_open("first", (Role::Trader, Lane::Hot, 2), 1024).err(),
        Some(RejectReason::UnknownKey)
    );
    for client in &mut others {
        assert_eq!(client.count_answers(), 1);
        client.send(limit(0, Side::Buy, 1, 1));
    }
    // The adapter serves every key: it loses this one alone.
    for (sequence, key, reason) in [(1, 2, Some(RejectReason::UnknownKey)), (2, 1, None)] {
        let header = CommandHeader { key_id: KeyId(key), ..adapter.header(sequence) };
        adapter.push(bytemuck::bytes_of(&order(header)));
        venue.settle();
        assert_eq!(adapter.read().last().unwrap().reason(), reason);
    }
    for client in &mut others {
        assert_eq!(client.count_answers(), 1);
    }
    assert_eq!(venue.closed(), []);
}

/// The time that a turn has begun with may be long past when a command's turn comes: a process that was stopped goes
/// on in the middle. So a command with a last time is judged by a time that is read when it is taken.
#[test]
fn a_command_with_a_last_time_is_judged_by_the_time_at_which_it_is_taken() {
    let mut venue = Venue::new("", "");
    let mut trader = venue.trader("trader", 1);
    let last_times = [0, u64::MAX, 0, u64::MAX, 0];
    for (sequence, not_after_ns) in (1..).zip(last_times) {
        let command = CommandHeader { not_after_ns, ..trader.header(sequence) };
        trader.push(bytemuck::bytes_of(&order(command)));
    }
    assert_eq!(venue.duty.turn(), 5, "all in one turn");
    let times: Vec<_> =
        transactions(venue.folder.path()).iter().rev().take(5).map(|one| one.time_ns).collect();
    let [fifth, fourth, third, second, first] = times[..] else { panic!("{times:?}") };
    assert!(first < second && second == third && third < fourth && fourth == fifth, "{times:?}");
    let told: Vec<_> = trader
        .read()
        .iter()
        .filter(|reply| reply.is_terminal())
        .map(|reply| reply.envelope.time_ns)
        .collect();
    assert_eq!(told, [first, second, third, fourth, fifth]);
}

/// A client whose order has ended an engine may send it again by another session or another adapter.
#[test]
fn a_key_that_is_refused_is_refused_whichever_session_names_it_and_no_other_key_is() {
    let mut venue = Venue::new("", "");
    let mut adapters = ["one", "two"]
        .map(|name| venue.try_open(name, (Role::Adapter, Lane::Hot, 0), 1024).unwrap());
    let mut own = ["trader", "again"].map(|name| venue.trader(name, 1));
    let mut other = venue.trader("trader", 2);
    let of_key = |client: &Client, sequence, key| {
        order(CommandHeader { key_id: KeyId(key), ..client.header(sequence) })
    };
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("poison");
    fs::create_dir(&folder).unwrap();
    let deadly = order(own[0].header(1));
    fs::write(folder.join("1-4096.fatal"), bytemuck::bytes_of(&deadly)).unwrap();
    venue.duty.refuse(Quarantine::read(data.path(), None).0);
    for adapter in &mut adapters {
        for (sequence, key, reason) in [(1, 1, Some(RejectReason::Quarantined)), (2, 2, None)] {
            adapter.push(bytemuck::bytes_of(&of_key(adapter, sequence, key)));
            venue.settle();
            assert_eq!(adapter.read().last().unwrap().reason(), reason, "key {key}");
        }
    }
    for client in &mut own {
        let message = order(client.header(1));
        let (_, rejected) = rejected(&mut venue, client, bytemuck::bytes_of(&message));
        assert_eq!(rejected.reason, RejectReason::Quarantined.to_wire());
    }
    other.send(limit(0, Side::Buy, 1, 1));
    venue.settle();
    assert_eq!(other.read().last().unwrap().reason(), None, "another key");
}

/// What names no key may come again by another adapter, which serves the same clients, and by no other session.
#[test]
fn a_session_that_is_refused_without_a_key_is_refused_over_each_adapter_if_it_is_one() {
    for (is_adapter, sent_by) in [(true, [true, true, false]), (false, [false, false, true])] {
        let mut venue = Venue::new("", "");
        let roles = [("one", Role::Adapter), ("two", Role::Adapter), ("operator", Role::Admin)];
        let mut clients = roles.map(|(name, role)| venue.cold(name, role));
        let keyless = |client: &Client| Deposit { command: client.header(1), ..deposit() };
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("poison");
        fs::create_dir(&folder).unwrap();
        let deadly = keyless(&clients[if is_adapter { 0 } else { 2 }]);
        fs::write(folder.join("1-4096.fatal"), bytemuck::bytes_of(&deadly)).unwrap();
        venue.duty.refuse(Quarantine::read(data.path(), None).0);
        for (client, is_refused) in clients.iter_mut().zip(sent_by) {
            client.push(bytemuck::bytes_of(&keyless(client)));
            venue.settle();
            let reason = client.read().last().unwrap().reason();
            let quarantined = reason == Some(RejectReason::Quarantined);
            assert_eq!(quarantined, is_refused, "{is_adapter} {reason:?}");
        }
    }
}

/// A logon is the engine's own command, and names the key of whom it is for.
#[test]
fn a_key_that_is_refused_is_not_logged_on_and_what_names_no_key_is() {
    let mut venue = Venue::new("", "");
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("poison");
    fs::create_dir(&folder).unwrap();
    let logon = |key| {
        let command = CommandHeader { key_id: KeyId(key), ..Default::default() };
        Logon { command, ..Default::default() }
    };
    fs::write(folder.join("1-4096.fatal"), bytemuck::bytes_of(&logon(1))).unwrap();
    fs::write(folder.join("2-4096.fatal"), bytemuck::bytes_of(&logon(0))).unwrap();
    venue.duty.refuse(Quarantine::read(data.path(), None).0);
    let before = (venue.duty.core().state_hash(), venue.control.appended());
    for (name, role) in [("one", Role::Trader), ("two", Role::Trader), ("three", Role::ReadOnly)] {
        let refused = venue.try_open(name, (role, Lane::Hot, 1), 1024).err();
        assert_eq!(refused, Some(RejectReason::Quarantined), "{name}");
    }
    let after = (venue.duty.core().state_hash(), venue.control.appended());
    assert_eq!(after, before, "a refused logon changed something");
    venue.trader("one", 2);
    venue.cold("operator", Role::Admin);
    let mut adapter = venue.try_open("adapter", (Role::Adapter, Lane::Hot, 0), 1024).unwrap();
    let message = order(CommandHeader { key_id: KeyId(1), ..adapter.header(1) });
    let (_, rejected) = rejected(&mut venue, &mut adapter, bytemuck::bytes_of(&message));
    assert_eq!(rejected.reason, RejectReason::Quarantined.to_wire());
}
