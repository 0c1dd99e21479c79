//! Whose commands are written to disk at once, and whose are gathered: what a session waits for that is
//! answered when it is durable is not to wait for anything else.

use super::client::{Client, limit};
use super::streams;
use super::venue::Venue;
use crate::keeper::turn_keeper;
use crate::patience::Wait;
use std::time::Duration;
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{Lane, OrderType, RejectReason, Role, Side};
use touchline_protocol::units::{KeyId, SymbolId};

/// What nobody waits for is not written within the life of a test.
const NEVER: Duration = Duration::from_secs(3600);

/// Waits until everything appended is durable.
fn await_disk(venue: &Venue) {
    let wait = Wait::begin();
    while venue.control.durable() < venue.control.appended() {
        wait.go_on("nobody writes");
        let event = venue.control.durable_event();
        let seen = event.current();
        if venue.control.durable() < venue.control.appended() {
            event.wait_changed(seen, Duration::from_millis(100));
        }
    }
}

/// A venue whose definition is on disk, with an appended and a durable session.
fn open() -> (Venue, Client, Client) {
    let mut venue = Venue::that_gathers(NEVER);
    let appended = venue.trader("appended", 1);
    venue.bench.wishes.awaits_disk = true;
    let durable = venue.trader("durable", 2);
    venue.duty.wait_durable().unwrap();
    (venue, appended, durable)
}

/// An order of a session that does not wait is appended, and not written.
fn append(venue: &mut Venue, client: &mut Client, side: Side) {
    client.send(limit(0, side, 10, 1));
    venue.settle();
    turn_keeper(&venue.control);
    assert!(venue.control.durable() < venue.control.appended(), "nobody waits for it");
}

#[test]
fn who_waits_for_the_disk_has_everything_before_written() {
    let (mut venue, mut appended, mut durable) = open();
    for _ in 0..3 {
        append(&mut venue, &mut appended, Side::Buy);
        durable.send(limit(0, Side::Buy, 10, 1));
        venue.settle();
        await_disk(&venue);
    }
}

#[test]
fn a_reject_that_waits_for_the_disk_has_what_it_was_judged_by_written() {
    let (mut venue, mut appended, mut durable) = open();
    append(&mut venue, &mut appended, Side::Buy);
    durable.read();
    durable.send(limit(7, Side::Buy, 10, 1));
    venue.settle();
    assert_eq!(durable.read_one().reason(), Some(RejectReason::UnknownSymbol));
    await_disk(&venue);
}

#[test]
fn who_is_told_of_a_trade_and_waits_for_the_disk_has_it_written() {
    let (mut venue, mut appended, mut durable) = open();
    durable.send(limit(0, Side::Buy, 10, 1));
    venue.settle();
    await_disk(&venue);
    append(&mut venue, &mut appended, Side::Buy);
    for _ in 0..2 {
        appended.send(limit(0, Side::Sell, 10, 1));
    }
    venue.settle();
    durable.read();
    assert!(!durable.told_so_far().is_empty(), "one of the two met its order");
    await_disk(&venue);
}

#[test]
fn what_a_command_has_set_off_is_written_with_it() {
    let (mut venue, mut appended, mut durable) = open();
    // It is for the session that placed it, which does not wait, to be told that it has fired.
    appended.send(NewOrder {
        symbol: SymbolId(0),
        side: Side::Buy.to_wire(),
        order_type: OrderType::StopLoss.to_wire(),
        quantity: 100_000_000,
        stop_price: 10 * 100_000_000,
        ..Default::default()
    });
    venue.settle();
    append(&mut venue, &mut appended, Side::Sell);
    durable.send(limit(0, Side::Buy, 10, 1));
    venue.duty.turn();
    assert!(venue.duty.core().pending_head().is_none(), "the stop has still to fire");
    await_disk(&venue);
}

#[test]
fn a_session_over_a_socket_that_waits_for_the_disk_has_its_commands_written() {
    let (mut venue, mut appended, _durable) = open();
    let mut durable = streams::open(&mut venue, "stream", 3, 0);
    venue.bench.wishes.awaits_disk = false;
    let mut other = streams::open(&mut venue, "other", 3, 0);
    venue.duty.wait_durable().unwrap();
    append(&mut venue, &mut appended, Side::Buy);
    assert!(other.send(&mut venue, limit(0, Side::Buy, 10, 1)));
    venue.settle();
    assert!(venue.control.durable() < venue.control.appended(), "nobody waits for it");
    assert!(durable.send(&mut venue, limit(0, Side::Buy, 10, 1)));
    venue.settle();
    await_disk(&venue);
}

#[test]
fn an_adapter_has_its_commands_written_at_once_if_its_answers_wait_for_that() {
    let mut venue = Venue::that_gathers(NEVER);
    for awaits_disk in [false, true] {
        venue.bench.wishes.awaits_disk = awaits_disk;
        let name = if awaits_disk { "durable" } else { "appended" };
        let mut adapter = venue.try_open(name, (Role::Adapter, Lane::Hot, 0), 1024).unwrap();
        venue.duty.wait_durable().unwrap();
        let mut order = limit(0, Side::Buy, 10, 1);
        order.command = adapter.header(1);
        order.command.key_id = KeyId(1);
        adapter.push(bytemuck::bytes_of(&order));
        venue.settle();
        if awaits_disk {
            await_disk(&venue);
        } else {
            turn_keeper(&venue.control);
            assert!(venue.control.durable() < venue.control.appended(), "nobody waits for it");
        }
    }
}
