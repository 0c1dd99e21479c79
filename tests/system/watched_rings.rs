//! Clients over shared memory that stand still: the engine watches those that asked for it.

use super::binary::KEY_A;
use super::stream_client::{Member, limit, options, over_epoll, venue};
use super::units::WHOLE;
use super::venue::Venue;
use crate::patience::{eventually, in_a_few_tries};
use std::time::Duration;
use touchline_protocol::client::{ClientOptions, Endpoint};
use touchline_protocol::message::command::LOGON_CANCEL_ON_DISCONNECT;
use touchline_protocol::message::enums::Side;

/// A session whose orders go with its connection.
fn wishes(venue: &Venue, name: &str, heartbeat_seconds: u8) -> ClientOptions {
    let shared = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    let flags = LOGON_CANCEL_ON_DISCONNECT;
    let key = venue.key_a();
    ClientOptions { heartbeat_seconds, flags, ..options(shared, name, (KEY_A, &key)) }
}

fn open(venue: &Venue, name: &str, heartbeat_seconds: u8) -> Member {
    let member = Member::open(&wishes(venue, name, heartbeat_seconds)).expect("it is let in");
    assert_eq!(member.client.welcome().heartbeat_seconds, u32::from(heartbeat_seconds));
    member
}

/// Waits for replies for longer than a silence may last; true if its connection lives.
fn lives_on(venue: &Venue) -> bool {
    let mut waiting = open(venue, "waiting", 1);
    (0..50).all(|_| {
        waiting.client.receiver().wait(Duration::from_millis(100));
        waiting.client.receiver().poll().is_ok()
    })
}

#[test]
fn the_orders_of_a_client_that_stands_still_go_if_it_asked_to_be_watched() {
    let venue = venue(&[]);
    let mut a = venue.a();
    let mut unwatched = open(&venue, "unwatched", 0);
    unwatched.place(limit(Side::Sell, 41_000, 2));
    let mut watched = open(&venue, "watched", 1);
    watched.place(limit(Side::Sell, 40_000, 1));
    let told = |line: &str| line.contains("nothing moved for three intervals of heartbeats");
    venue.supervisor().wait_for(0, "word of its silence", told);
    assert!(eventually(|| a.balances()["BTC"].1 == 2 * WHOLE), "its order stays");
    assert!(eventually(|| !watched.client.receiver().is_connected()), "it is connected");
    // On a machine that stands still for seconds, so does a client.
    assert!(in_a_few_tries(|| lives_on(&venue)), "who waits for replies is given up");
    unwatched.assert_alive();
    assert_eq!(a.balances()["BTC"].1, 2 * WHOLE);
    watched = open(&venue, "watched", 1);
    watched.assert_alive();
}

over_epoll!(the_orders_of_a_client_that_stands_still_go_if_it_asked_to_be_watched);
