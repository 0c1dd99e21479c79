//! Sessions that lost their connection with an earlier engine: whoever asked for its orders to be
//! cancelled then has a while to come back.

use super::client::limit;
use super::full::knock_as;
use super::venue::Venue;
use crate::patience::eventually;
use std::thread;
use std::time::Duration;
use touchline_core::{Applied, Context, Core, OUTBOX_BYTES_MAX, Outbox};
use touchline_engine::config::EngineConfig;
use touchline_engine::duty::OwnCommandError;
use touchline_engine::genesis::Genesis;
use touchline_engine::mailbox::FromDuty;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::{Lane, Role, Side};
use touchline_protocol::text::Name;
use touchline_protocol::units::*;

/// Applies a command of the earlier engine's log.
fn apply(core: &mut Core, position: &mut u64, bytes: &[u8]) {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    let mut memory = vec![0u64; OUTBOX_BYTES_MAX.div_ceil(8)];
    let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut memory));
    let command = decode::command(bytemuck::cast_slice(&words)).unwrap();
    *position += 1;
    let context = Context { position: Position(*position), time_ns: *position };
    assert_eq!(core.apply(&context, &command, &mut outbox), Ok(Applied::Committed));
}

/// What an earlier engine left: three sessions of three accounts with an order each on the second
/// symbol, of which the first two had asked for their orders to be cancelled.
fn left(definition: &str) -> Core {
    left_by(definition, 2)
}

/// The same, of which so many had.
fn left_by(definition: &str, asking: u32) -> Core {
    let config: EngineConfig = toml::from_str(definition).unwrap();
    let (mut core, mut position) = (Core::new(), 0);
    for command in Genesis::new(&config).unwrap().remaining(Sequence(0)) {
        apply(&mut core, &mut position, command);
    }
    for key in 1..=3u32 {
        let logon = Logon {
            command: CommandHeader { key_id: KeyId(key.into()), ..Default::default() },
            name: Name::new("trader").unwrap(),
            role: Role::Trader.to_wire(),
            lane: Lane::Hot.to_wire(),
            flags: if key <= asking { LOGON_CANCEL_ON_DISCONNECT } else { 0 },
            ..Default::default()
        };
        apply(&mut core, &mut position, bytemuck::bytes_of(&logon));
        let mut order = limit(1, Side::Buy, 10, 1);
        order.command = CommandHeader {
            key_id: KeyId(key.into()),
            session: SessionId(key),
            epoch: Epoch(1),
            sequence: Sequence(1),
            ..Default::default()
        };
        apply(&mut core, &mut position, bytemuck::bytes_of(&order));
    }
    apply(&mut core, &mut position, bytemuck::bytes_of(&EngineStarted::default()));
    core
}

/// Longer than the sessions have to come back where that is a second.
const LONG: Duration = Duration::from_millis(1500);

fn owners(venue: &Venue) -> Vec<u32> {
    let open = venue.duty.core().open_orders(SymbolId(1), Side::Buy);
    open.map(|order| order.account.0).collect()
}

#[test]
fn who_does_not_come_back_in_time_leaves_no_orders() {
    let mut venue = Venue::left("reconnect_seconds = 0", left);
    venue.settle();
    assert_eq!(owners(&venue), [3], "only of the session that asked for nothing");
    for session in [1, 2, 3].map(SessionId) {
        assert!(!venue.duty.core().session(session).unwrap().cancel_on_disconnect);
    }
}

/// One is looked at behind the other.
#[test]
fn none_of_many_who_stay_away_leaves_orders() {
    let mut venue = Venue::left("reconnect_seconds = 0", |definition| left_by(definition, 3));
    venue.settle();
    assert_eq!(owners(&venue), []);
}

#[test]
fn who_comes_back_in_time_keeps_its_orders() {
    let mut venue = Venue::left("reconnect_seconds = 3600", left);
    let mut back = venue.trader_that_leaves_nothing("trader", 1);
    venue.settle();
    assert_eq!(owners(&venue), [1, 2, 3], "there is time left");
    venue.disconnect(&back);
    venue.settle();
    assert!(back.read().is_empty());
    assert_eq!(owners(&venue), [2, 3], "now it has left by itself");
}

/// Turns until none of the sessions that asked for that has an order left.
fn wait_for_cancels(venue: &mut Venue) {
    assert!(eventually(|| {
        venue.duty.turn();
        owners(venue) == [3]
    }));
}

#[test]
fn how_long_a_start_takes_is_not_taken_from_those_who_come_back() {
    let mut venue = Venue::left("reconnect_seconds = 1", left);
    thread::sleep(LONG);
    venue.duty.turn();
    assert_eq!(owners(&venue), [1, 2, 3], "nobody could have come before");
    wait_for_cancels(&mut venue);
}

#[test]
fn a_pause_of_the_machine_is_not_taken_from_those_who_come_back() {
    let mut venue = Venue::left("reconnect_seconds = 1", left);
    venue.duty.turn();
    thread::sleep(LONG);
    venue.duty.turn();
    assert_eq!(owners(&venue), [1, 2, 3], "nobody could have come meanwhile");
    wait_for_cancels(&mut venue);
}

/// Holds the disk up, and logs what leaves nothing behind until the log has no room for more; before the first turn.
fn fill(venue: &mut Venue) {
    venue.disk.hold_up(true);
    let mut logon = Logon { name: Name::new("filler").unwrap(), ..Default::default() };
    (logon.role, logon.lane) = (Role::Trader.to_wire(), Lane::Hot.to_wire());
    logon.command.key_id = KeyId(3);
    let refused = loop {
        match venue.duty.own_command(bytemuck::bytes_of(&logon)) {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, OwnCommandError::Log { .. }), "{refused}");
}

/// Knocks that are more than a turn lets in, and behind them one of the first session's client: its ticket.
fn knock_late(venue: &Venue) -> usize {
    const OTHERS: usize = 20;
    for ticket in 0..OTHERS {
        knock_as(venue, ticket, (&format!("late {ticket}"), 3));
    }
    knock_as(venue, OTHERS, ("trader", 1));
    OTHERS
}

/// Whether the ticket is among those that were let in since the last look.
fn is_in(venue: &Venue, wanted: usize) -> bool {
    let letters: Vec<_> = std::iter::from_fn(|| venue.mail.from_duty.take()).collect();
    letters.iter().any(|one| matches!(one, FromDuty::Opened { ticket, .. } if *ticket == wanted))
}

#[test]
fn who_waits_to_be_let_in_when_the_time_is_over_keeps_its_orders() {
    let mut venue = Venue::left("reconnect_seconds = 0", left);
    fill(&mut venue);
    let ticket = knock_late(&venue);
    for _ in 0..5 {
        venue.duty.turn();
    }
    assert!(!is_in(&venue, ticket), "there is no room to log that");
    venue.disk.hold_up(false);
    assert!(eventually(|| {
        venue.duty.turn();
        is_in(&venue, ticket)
    }));
    assert_eq!(owners(&venue)[0], 1);
    assert!(eventually(|| {
        venue.duty.turn();
        owners(&venue) == [1, 3]
    }));
}

#[test]
fn who_knocks_without_end_does_not_put_off_the_end_of_who_stays_away() {
    let mut venue = Venue::left("reconnect_seconds = 0", left);
    let ticket = knock_late(&venue);
    let (mut turns, mut is_back) = (0, false);
    while owners(&venue) != [1, 3] {
        // More than a turn lets in, each time.
        for ticket in 0..10 {
            knock_as(&venue, 100 + ticket, ("endless", 2));
        }
        venue.duty.turn();
        is_back |= is_in(&venue, ticket);
        assert_eq!(owners(&venue)[0], 1, "its logon waits, or was let in");
        turns += 1;
        assert!(turns < 20, "they are let in for ever before anybody is ended");
    }
    assert!(is_back);
}
