//! Sessions that lost their connection with an earlier engine: whoever asked for its orders to be
//! cancelled then has a while to come back.

use super::client::limit;
use super::venue::Venue;
use crate::patience::eventually;
use std::thread;
use std::time::Duration;
use touchline_core::{Applied, Context, Core, OUTBOX_BYTES_MAX, Outbox};
use touchline_engine::config::EngineConfig;
use touchline_engine::genesis::Genesis;
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
            flags: if key < 3 { LOGON_CANCEL_ON_DISCONNECT } else { 0 },
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
