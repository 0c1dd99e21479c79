//! Cancel-on-disconnect: a connection's end, a newer logon, a revoked key, a start of the engine.

use crate::venue::{Owned, Venue};
use crate::world::*;
use touchline_core::limits::number;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, RejectReason as Why, Role, Side};
use touchline_protocol::message::event::{Done, SessionEnded};
use touchline_protocol::text::Name;
use touchline_protocol::units::*;

fn logon(name: &str, key: u64, flags: u8) -> Logon {
    Logon {
        command: by(key),
        name: Name::new(name).unwrap(),
        role: Role::Trader.to_wire(),
        lane: Lane::Hot.to_wire(),
        flags,
        ..Default::default()
    }
}

/// Logs a trader on; gives its session.
fn connect(venue: &mut Venue, name: &str, key: u64, flags: u8) -> SessionId {
    let events = venue.must(&logon(name, key, flags));
    let Some(Owned::Started(started)) = events.last() else { panic!("{events:?}") };
    started.session
}

/// A resting order of a session.
fn rest(venue: &mut Venue, session: SessionId, symbol: SymbolId) -> (SymbolId, u64) {
    let command = venue.header(session, venue.core.session(session).unwrap().key_id);
    place(venue, &limit(command, symbol, Side::Buy, (5, 1)))
}

fn over(venue: &Venue, session: SessionId) -> ConnectionEnded {
    ConnectionEnded {
        ended_session: session,
        ended_epoch: venue.core.session(session).unwrap().epoch,
        ..Default::default()
    }
}

const fn end_of(session: SessionId, epoch: u32) -> (SessionId, Epoch) {
    (session, Epoch(epoch))
}

fn ends(events: &[Owned]) -> Vec<(SessionId, Epoch)> {
    let of = |event: &Owned| match event {
        Owned::Ended(SessionEnded { session, epoch, .. }) => Some((*session, *epoch)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn the_end_of_a_connection_sweeps_its_own_orders_if_it_asked_for_that() {
    for flags in [0, LOGON_CANCEL_ON_DISCONNECT] {
        let mut venue = world(steps(256));
        let mine = connect(&mut venue, "mine", ANN, flags);
        let other = connect(&mut venue, "other", ANN, LOGON_CANCEL_ON_DISCONNECT);
        let wanted = flags != 0;
        assert_eq!(venue.core.session(mine).unwrap().cancel_on_disconnect, wanted);
        let orders = [rest(&mut venue, mine, ONE), rest(&mut venue, mine, TWO)];
        rest(&mut venue, other, ONE);
        let message = over(&venue, mine);
        let events = venue.must(&message);
        assert_eq!(ends(&events), [end_of(mine, 1)]);
        if wanted {
            assert_eq!(ended(&events), orders);
            assert_eq!(events.last(), Some(&mass(1, ALL, 2)));
        } else {
            assert_eq!(events.len(), 1);
        }
        assert_eq!(venue.apply(&message).expect_err("a reject").reason, Why::StaleEpoch);
        assert!(!venue.core.session(mine).unwrap().cancel_on_disconnect);
        assert_eq!(venue.core.open_order_count(AccountId(1), ONE), 2 - u32::from(wanted));
        venue.check_replay();
    }
}

#[test]
fn a_newer_logon_sweeps_for_the_older_connection_and_starts_at_once() {
    for max_steps in [256, 1] {
        let mut venue = world(steps(max_steps));
        let session = connect(&mut venue, "mine", ANN, LOGON_CANCEL_ON_DISCONNECT);
        let orders = [ONE, ONE, TWO].map(|symbol| rest(&mut venue, session, symbol));
        let mut events = venue.must(&logon("mine", ANN, 0));
        assert_eq!(ends(&events), [end_of(session, 1)]);
        let Some(Owned::Started(started)) = events.last() else { panic!("{events:?}") };
        assert_eq!((started.epoch, started.last_sequence), (Epoch(2), Sequence(3)));
        assert!(!events.iter().any(|event| matches!(event, Owned::Continues(_))));
        assert_eq!(venue.core.pending_head().is_some(), max_steps == 1);
        if let Some(head) = venue.core.pending_head() {
            assert_eq!((head.session, head.symbol), (SessionId::ENGINE, ALL));
        }
        events.extend(venue.drain());
        assert_eq!(ended(&events), orders);
        assert!(events.contains(&mass(1, ALL, 3)));
        assert!(!venue.core.session(session).unwrap().cancel_on_disconnect, "as the new one asks");
        rest(&mut venue, session, ONE);
        let message = over(&venue, session);
        assert_eq!(venue.must(&message).len(), 1);
        venue.check_replay();
    }
}

#[test]
fn a_revoked_key_sweeps_for_the_sessions_that_asked_for_it() {
    for max_steps in [256, 1] {
        let mut venue = world(steps(max_steps));
        let made = venue.must(&CreateKey {
            account: AccountId(1),
            permissions: KEY_ALL,
            ..Default::default()
        });
        let Owned::Done(Done { id: second, .. }) = made[0] else { panic!("{made:?}") };
        let asked = connect(&mut venue, "asked", ANN, LOGON_CANCEL_ON_DISCONNECT);
        let quiet = connect(&mut venue, "quiet", ANN, 0);
        let also = connect(&mut venue, "also", ANN, LOGON_CANCEL_ON_DISCONNECT);
        let foreign = connect(&mut venue, "asked", second, LOGON_CANCEL_ON_DISCONNECT);
        let of = [quiet, asked, foreign, also, asked].map(|one| rest(&mut venue, one, ONE));
        let mut events = venue.must(&RevokeKey { key: KeyId(ANN), ..Default::default() });
        assert_eq!(ends(&events), [end_of(also, 1), end_of(quiet, 1), end_of(asked, 1)]);
        let done = Done { id: ANN, ..Default::default() };
        assert_eq!(events.last(), Some(&Owned::Done(done)), "it does not wait for the sweep");
        events.extend(venue.drain());
        assert_eq!(ended(&events), [of[1], of[3], of[4]]);
        assert!(events.contains(&mass(1, ALL, 3)));
        let count = venue.core.open_order_count(AccountId(1), ONE);
        assert_eq!(count, 2, "of the session that did not ask, and of the other key");
        for session in [asked, also] {
            let message = over(&venue, session);
            assert_eq!(venue.apply(&message).expect_err("a reject").reason, Why::StaleEpoch);
        }
        venue.check_replay();
    }
}

#[test]
fn a_start_leaves_the_orders_until_the_engine_reports_the_end() {
    let mut venue = world(steps(256));
    let gone = connect(&mut venue, "gone", ANN, LOGON_CANCEL_ON_DISCONNECT);
    let back = connect(&mut venue, "back", ANN, LOGON_CANCEL_ON_DISCONNECT);
    let quiet = connect(&mut venue, "quiet", ANN, 0);
    let orders = [gone, back, quiet].map(|session| rest(&mut venue, session, ONE));
    venue.must(&EngineStarted::default());
    assert_eq!(venue.core.open_order_count(AccountId(1), ONE), 3);
    // Who comes back in time keeps what it has.
    let events = venue.must(&logon("back", ANN, LOGON_CANCEL_ON_DISCONNECT));
    assert_eq!(events.len(), 1);
    let message = over(&venue, gone);
    let events = venue.must(&message);
    assert_eq!(ended(&events), [orders[0]]);
    assert_eq!(venue.apply(&message).expect_err("a reject").reason, Why::StaleEpoch);
    let message = over(&venue, quiet);
    assert_eq!(venue.apply(&message).expect_err("a reject").reason, Why::StaleEpoch);
    assert_eq!(venue.core.open_order_count(AccountId(1), ONE), 2);
    venue.check_replay();
}

/// An aggressor of the session that waits to go on comes to rest before the sweep's turn, and is swept.
#[test]
fn what_is_pending_is_swept_when_it_has_come_to_rest() {
    let mut venue = world(steps(1));
    let session = connect(&mut venue, "mine", ANN, LOGON_CANCEL_ON_DISCONNECT);
    for _ in 0..3 {
        place(&mut venue, &limit(by(BOB), ONE, Side::Sell, (5, 1)));
    }
    let command = venue.header(session, KeyId(ANN));
    let order = place(&mut venue, &limit(command, ONE, Side::Buy, (5, 4)));
    let message = over(&venue, session);
    let events = venue.must(&message);
    assert!(matches!(events[..], [Owned::Ended(_), Owned::Continues(_)]));
    let events = venue.drain();
    assert_eq!(events.iter().filter(|event| matches!(event, Owned::Trade(_))).count(), 2);
    assert_eq!(ended(&events), [order]);
    check_empty(&venue);
    venue.check_replay();
}

#[test]
fn without_room_for_the_sweep_the_command_is_refused() {
    let mut venue = world(Limits { pending_work: 1, ..steps(1) });
    let session = connect(&mut venue, "mine", ANN, LOGON_CANCEL_ON_DISCONNECT);
    rest(&mut venue, session, TWO);
    for _ in 0..2 {
        place(&mut venue, &limit(by(BOB), ONE, Side::Sell, (5, 1)));
    }
    place(&mut venue, &limit(by(CARL), ONE, Side::Buy, (5, 2)));
    let full = |verdict: Result<Vec<Owned>, touchline_core::Reject>| {
        let reject = verdict.expect_err("a reject");
        assert_eq!((reject.reason, reject.detail), (Why::CapacityReached, number::PENDING_WORK));
    };
    let message = over(&venue, session);
    full(venue.apply(&message));
    full(venue.apply(&logon("mine", ANN, 0)));
    // What sweeps nothing needs no room.
    venue.must(&RevokeKey { key: KeyId(BOB), ..Default::default() });
    connect(&mut venue, "another", ANN, LOGON_CANCEL_ON_DISCONNECT);
    venue.drain();
    assert_eq!(ended(&venue.must(&message)), [(TWO, 1)]);
    venue.check_replay();
}

#[test]
fn a_revoked_keys_sweep_has_room_of_its_own_and_overtakes() {
    let mut venue = world(Limits { pending_work: 1, ..steps(1) });
    let session = connect(&mut venue, "mine", ANN, LOGON_CANCEL_ON_DISCONNECT);
    rest(&mut venue, session, TWO);
    for n in 0..3 {
        place(&mut venue, &stop_limit(by(BOB), ONE, Side::Buy, (5, 6 + n)));
    }
    for side in [Side::Sell, Side::Buy] {
        place(&mut venue, &limit(by(CARL), ONE, side, (5, 1)));
    }
    assert_eq!(venue.core.pending_head().unwrap().symbol, ONE, "the queue is full");
    venue.must(&RevokeKey { key: KeyId(ANN), ..Default::default() });
    let events = venue.must(&RunPending::default());
    assert_eq!(ended(&events), [(TWO, 1)]);
    assert_eq!(events.last(), Some(&mass(1, ALL, 1)));
    let triggered = |event: &&Owned| matches!(event, Owned::Triggered(_));
    assert_eq!(venue.drain().iter().filter(triggered).count(), 3);
    venue.check_replay();
}

#[test]
fn only_traders_may_ask_for_it_and_from_rules_2_on() {
    let mut venue = world(steps(256));
    for (role, lane) in
        [(Role::ReadOnly, Lane::Cold), (Role::Admin, Lane::Cold), (Role::Adapter, Lane::Hot)]
    {
        let key = if role == Role::ReadOnly { ANN } else { 0 };
        let message = Logon {
            role: role.to_wire(),
            lane: lane.to_wire(),
            ..logon("x", key, LOGON_CANCEL_ON_DISCONNECT)
        };
        let verdict = venue.apply(&message).expect_err("a reject").reason;
        assert_eq!(verdict, Why::UnsupportedCombination, "{role:?}");
    }
    // Bit 1 asks for something else.
    for flags in 4..=u8::MAX {
        let verdict = venue.apply(&logon("x", ANN, flags)).expect_err("a reject").reason;
        assert_eq!(verdict, Why::UnsupportedCombination);
    }
    let mut old = Venue::new();
    old.set_rules();
    old.set_limits(steps(1));
    old.account("ann", (0, 0));
    let message = logon("x", ANN, LOGON_CANCEL_ON_DISCONNECT);
    assert_eq!(old.apply(&message).expect_err("a reject").reason, Why::UnsupportedCombination);
}
