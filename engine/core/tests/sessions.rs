//! Sessions: logons, epochs, sequences, roles and lanes, revoked keys, starts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use touchline_core::limits::{SESSIONS_PER_KEY_MAX, number};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, RejectReason as Why, Role};
use touchline_protocol::message::event::{SessionEnded, SessionStarted};
use touchline_protocol::text::{AssetName, Name};
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, roomy};

const NO_KEY: KeyId = KeyId(0);

fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(roomy());
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol("ONE", pair, SymbolFilters::default());
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.1, 100 * WHOLE);
    }
    venue
}

fn logon(name: &str, role: Role, lane: Lane, key_id: KeyId) -> Logon {
    Logon {
        command: CommandHeader { key_id, ..Default::default() },
        name: Name::new(name).unwrap(),
        role: role.to_wire(),
        lane: lane.to_wire(),
        ..Default::default()
    }
}

fn trader(name: &str, key: u64) -> Logon {
    logon(name, Role::Trader, Lane::Hot, KeyId(key))
}

fn buy(command: CommandHeader) -> NewOrder {
    let quantity = WHOLE;
    NewOrder {
        command,
        side: 1,
        order_type: 1,
        time_in_force: 1,
        price: WHOLE,
        quantity,
        ..Default::default()
    }
}

#[track_caller]
fn rejected<M: Message>(venue: &mut Venue, message: &M, reason: Why) {
    assert_eq!(venue.apply(message).expect_err("a reject").reason, reason, "{}", M::NAME);
}

#[test]
fn a_logon_fences_the_older_connection() {
    let mut venue = world();
    let started = |epoch, last| {
        Owned::Started(SessionStarted {
            session: SessionId(1),
            epoch: Epoch(epoch),
            last_sequence: Sequence(last),
            key_id: KeyId(1),
            account: AccountId(1),
            role: 1,
            lane: 1,
            ..Default::default()
        })
    };
    assert_eq!(venue.must(&trader("desk", 1)), [started(1, 0)]);
    let old = venue.header(SessionId(1), KeyId(1));
    venue.must(&buy(CommandHeader { sequence: Sequence(7), ..old }));
    let ended = SessionEnded { session: SessionId(1), epoch: Epoch(1), ..Default::default() };
    assert_eq!(venue.must(&trader("desk", 1)), [Owned::Ended(ended), started(2, 7)]);
    rejected(&mut venue, &buy(CommandHeader { sequence: Sequence(8), ..old }), Why::StaleEpoch);
    let new = CommandHeader { epoch: Epoch(2), ..old };
    for sequence in [0, 1, 7] {
        let header = CommandHeader { sequence: Sequence(sequence), ..new };
        rejected(&mut venue, &buy(header), Why::DuplicateSequence);
    }
    venue.must(&buy(CommandHeader { sequence: Sequence(u64::MAX), ..new }));
    let view = venue.core.session(SessionId(1)).unwrap();
    assert_eq!((view.epoch, view.last_sequence), (Epoch(2), Sequence(u64::MAX)));
    assert!(view.connected && !view.cancel_on_disconnect);
    assert_eq!(venue.core.find_session(KeyId(1), &view.name), Some(SessionId(1)));
    venue.check_replay();
}

#[test]
fn sessions_are_told_apart_by_key_and_name() {
    let mut venue = world();
    for (message, id) in [(trader("a", 1), 1), (trader("a", 2), 2), (trader("b", 1), 3)] {
        venue.must(&message);
        let key_id = message.command.key_id;
        assert_eq!(venue.core.find_session(key_id, &message.name), Some(SessionId(id)));
    }
    assert_eq!(venue.core.counts().sessions, 3);
    assert_eq!(venue.core.find_session(KeyId(2), &Name::new("b").unwrap()), None);
}

#[test]
fn a_connection_ends_only_in_its_own_epoch() {
    let mut venue = world();
    venue.must(&trader("desk", 1));
    let ended = |session, epoch| ConnectionEnded {
        ended_session: SessionId(session),
        ended_epoch: Epoch(epoch),
        ..Default::default()
    };
    rejected(&mut venue, &ended(0, 0), Why::UnknownSession);
    rejected(&mut venue, &ended(2, 1), Why::UnknownSession);
    venue.must(&trader("desk", 1));
    rejected(&mut venue, &ended(1, 1), Why::StaleEpoch);
    venue.must(&ended(1, 2));
    assert!(!venue.core.session(SessionId(1)).unwrap().connected);
    rejected(&mut venue, &ended(1, 2), Why::StaleEpoch);
    let events = venue.must(&trader("desk", 1));
    assert_eq!(events.len(), 1, "no older connection to end: {events:?}");
}

#[test]
fn a_start_ends_every_connection() {
    let mut venue = world();
    venue.must(&trader("a", 1));
    venue.must(&trader("b", 2));
    venue.must(&EngineStarted { incarnation: 2, ..Default::default() });
    for session in [SessionId(1), SessionId(2)] {
        assert!(!venue.core.session(session).unwrap().connected);
    }
    venue.check_replay();
}

#[test]
fn logons_that_are_refused() {
    let mut venue = world();
    venue.must(&CreateKey { account: AccountId(1), permissions: KEY_TRADE, ..Default::default() });
    venue.must(&trader("desk", 1));
    rejected(&mut venue, &Logon { role: 0, ..trader("x", 1) }, Why::RoleNotPermitted);
    rejected(&mut venue, &Logon { lane: 3, ..trader("x", 1) }, Why::RoleNotPermitted);
    rejected(&mut venue, &trader("", 1), Why::InvalidDefinition);
    let flags = LOGON_CANCEL_ON_DISCONNECT;
    rejected(&mut venue, &Logon { flags, ..trader("x", 1) }, Why::UnsupportedCombination);
    rejected(&mut venue, &trader("x", 0), Why::UnknownKey);
    rejected(&mut venue, &trader("x", 9), Why::UnknownKey);
    rejected(&mut venue, &trader("x", 3), Why::KeyNotPermitted);
    let read_only = logon("x", Role::ReadOnly, Lane::Hot, KeyId(3));
    rejected(&mut venue, &read_only, Why::KeyNotPermitted);
    let admin = logon("x", Role::Admin, Lane::Cold, KeyId(1));
    rejected(&mut venue, &admin, Why::RoleNotPermitted);
    let other_role = logon("desk", Role::ReadOnly, Lane::Hot, KeyId(1));
    rejected(&mut venue, &other_role, Why::RoleNotPermitted);
    let other_lane = logon("desk", Role::Trader, Lane::Cold, KeyId(1));
    rejected(&mut venue, &other_lane, Why::RoleNotPermitted);
    // A logon comes from the engine alone.
    let mut own = trader("more", 1);
    own.command = venue.header(SessionId(1), KeyId(1));
    rejected(&mut venue, &own, Why::RoleNotPermitted);
}

#[test]
fn sessions_are_bounded_in_all_and_per_key() {
    let mut venue = world();
    venue.set_limits(Limits { sessions: 2, ..roomy() });
    venue.must(&trader("a", 1));
    venue.must(&trader("b", 1));
    let reject = venue.apply(&trader("c", 1)).unwrap_err();
    assert_eq!((reject.reason, reject.detail), (Why::CapacityReached, number::SESSIONS));
    venue.must(&trader("b", 1));
    venue.set_limits(Limits { sessions: SESSIONS_PER_KEY_MAX + 10, ..roomy() });
    for n in 2..SESSIONS_PER_KEY_MAX {
        venue.must(&trader(&format!("n{n}"), 1));
    }
    rejected(&mut venue, &trader("one more", 1), Why::CapacityReached);
    venue.must(&trader("one more", 2));
    // The revocation of all of them is the largest of its kind, and fits the outbox.
    let events = venue.must(&RevokeKey { key: KeyId(1), ..Default::default() });
    assert_eq!(events.len() as u32, SESSIONS_PER_KEY_MAX + 1);
    assert!(matches!(events.last(), Some(Owned::Done(done)) if done.id == 1));
}

#[test]
fn a_revoked_key_is_of_no_use_at_once() {
    let mut venue = world();
    venue.must(&trader("a", 1));
    venue.must(&trader("b", 1));
    venue.must(&trader("a", 2));
    venue.must(&logon("all", Role::Adapter, Lane::Hot, NO_KEY));
    let before = venue.header(SessionId(1), KeyId(1));
    venue.must(&ConnectionEnded {
        ended_session: SessionId(2),
        ended_epoch: Epoch(1),
        ..Default::default()
    });
    let events = venue.must(&RevokeKey { key: KeyId(1), ..Default::default() });
    let ended = SessionEnded { session: SessionId(1), epoch: Epoch(1), ..Default::default() };
    assert_eq!(events[0], Owned::Ended(ended), "only the connected one has an end");
    assert_eq!(events.len(), 2);
    for (session, connected, epoch) in [(1, false, 2), (2, false, 2), (3, true, 1)] {
        let view = venue.core.session(SessionId(session)).unwrap();
        assert_eq!((view.connected, view.epoch), (connected, Epoch(epoch)));
    }
    assert!(venue.core.key(KeyId(1)).unwrap().revoked);
    rejected(&mut venue, &buy(before), Why::StaleEpoch);
    let guessed = CommandHeader { epoch: Epoch(2), ..before };
    rejected(&mut venue, &buy(guessed), Why::UnknownKey);
    let adapter = venue.header(SessionId(4), KeyId(1));
    rejected(&mut venue, &buy(adapter), Why::UnknownKey);
    rejected(&mut venue, &trader("a", 1), Why::UnknownKey);
    let other = venue.header(SessionId(3), KeyId(2));
    venue.must(&buy(other));
    venue.check_replay();
}

#[test]
fn roles_and_lanes_bind() {
    let mut venue = world();
    let sessions = [
        (Role::Trader, Lane::Hot, KeyId(1)),
        (Role::Trader, Lane::Cold, KeyId(1)),
        (Role::ReadOnly, Lane::Hot, KeyId(1)),
        (Role::Admin, Lane::Cold, NO_KEY),
        (Role::Admin, Lane::Hot, NO_KEY),
        (Role::Adapter, Lane::Hot, NO_KEY),
        (Role::Adapter, Lane::Cold, NO_KEY),
    ];
    for (index, (role, lane, key)) in sessions.into_iter().enumerate() {
        let session = venue.logon(&format!("s{index}"), role, lane, key);
        assert_eq!(session, SessionId(index as u32 + 1));
    }
    // Which session may send: an order of key 1, an order of key 2, a definition, an engine command.
    let may = [
        (1, [true, false, false]),
        (2, [false, false, false]),
        (3, [false, false, false]),
        (4, [false, false, true]),
        (5, [false, false, false]),
        (6, [true, true, false]),
        (7, [false, false, true]),
    ];
    for (session, [own, other, definition]) in may {
        let session = SessionId(session);
        for (key, permitted) in [(1, own), (2, other)] {
            let order = buy(venue.header(session, KeyId(key)));
            if permitted {
                venue.must(&order);
            } else {
                rejected(&mut venue, &order, Why::RoleNotPermitted);
            }
        }
        let command = venue.header(session, NO_KEY);
        let name = AssetName::new(&format!("A{session}")).unwrap();
        let define = DefineAsset { command, name, ..Default::default() };
        if definition {
            venue.must(&define);
        } else {
            rejected(&mut venue, &define, Why::RoleNotPermitted);
        }
        let command = venue.header(session, NO_KEY);
        let started = EngineStarted { command, incarnation: 3, ..Default::default() };
        rejected(&mut venue, &started, Why::RoleNotPermitted);
    }
    // An admin acts for no key; an adapter for any that lives.
    let name = AssetName::new("LAST").unwrap();
    for (session, key, reason) in [(4, 1, Why::RoleNotPermitted), (7, 9, Why::UnknownKey)] {
        let command = venue.header(SessionId(session), KeyId(key));
        rejected(&mut venue, &DefineAsset { command, name, ..Default::default() }, reason);
    }
    let command = venue.header(SessionId(7), KeyId(1));
    venue.must(&DefineAsset { command, name, ..Default::default() });
    venue.check_replay();
}

#[test]
fn the_engines_own_sequence() {
    let mut venue = world();
    let define = |sequence, name| DefineAsset {
        command: CommandHeader { sequence: Sequence(sequence), ..Default::default() },
        name: AssetName::new(name).unwrap(),
        ..Default::default()
    };
    venue.must(&define(1, "G1"));
    venue.must(&define(0, "G2"));
    rejected(&mut venue, &define(1, "G3"), Why::DuplicateSequence);
    venue.must(&define(5, "G3"));
    rejected(&mut venue, &define(5, "G4"), Why::DuplicateSequence);
    venue.check_replay();
}
