//! Snapshots of the public feed that are longer than any socket holds: who takes them by the drop keeps them from
//! nobody.

use super::admin::admin;
use super::binary::{KEY_A, socket};
use super::feed::{Load, feed_options};
use super::feed_streams::{FEED_REQUEST, FEED_SNAPSHOT, RawReader, feed_venue};
use super::raw_session::{message, number, template};
use super::stream_client::{over_epoll, send, tcp};
use super::venue::Venue;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use touchline_protocol::client::Endpoint;
use touchline_protocol::feed::FeedReader;

/// Orders of a snapshot of some MiB, which no two sockets hold.
const ORDERS: u32 = 40_000;

/// More than a snapshot serves for: a quarter of the ring.
const FAR_ON: u32 = 300;

/// A reader of key B that asks for a snapshot of which it will not take much.
fn asks(venue: &Venue) -> RawReader {
    let mut slow = RawReader::open(venue, 60);
    set_socket_recv_buffer_size(&slow.0, 4096).expect("it may be small");
    let request = message(FEED_REQUEST, &[0; 8]);
    send(&mut slow.0, &request, request.len());
    slow
}

#[test]
fn slow_readers_of_one_key_keep_snapshots_from_nobody_else() {
    let venue = feed_venue(&[]);
    admin(&venue, &["symbol", "change", "BTCUSDT", "max_orders=0"]);
    let mut load = Load::new(&venue);
    load.rest(ORDERS);
    let mut slow = Vec::new();
    let mut begun = Vec::new();
    for _ in 0..2 {
        let mut reader = asks(&venue);
        let head = loop {
            let message = reader.read().expect("it is kept");
            if template(&message) == FEED_SNAPSHOT {
                break message;
            }
        };
        begun.push(number(&head, 8, 8));
        slow.push(reader);
        load.rest(FAR_ON);
    }
    assert!(begun[0] < begun[1], "they take two of them: {begun:?}");
    // One more waits for those of its own key, and so does the next.
    slow.push(asks(&venue));
    let told = |line: &str| line.contains("waits for a snapshot: its key 2 has 2 already");
    venue.supervisor().wait_for(0, "word of the reader that waits", told);
    slow.push(asks(&venue));

    let key_a = Some((KEY_A, venue.key_a().secret));
    let own_user = (Endpoint::SharedMemory(socket(&venue)), None);
    let mut orders = u64::from(ORDERS + 2 * FAR_ON);
    for (endpoint, key) in [(tcp(&venue), key_a), own_user] {
        load.rest(FAR_ON);
        orders += u64::from(FAR_ON);
        let mut honest = FeedReader::open(&feed_options(endpoint, key)).expect("it is let in");
        let books = honest.recover().expect("there is room for its snapshot");
        let found: u64 = books.symbols().iter().map(|symbol| symbol.book.len() as u64).sum();
        assert_eq!(found, orders);
    }
    // Nobody was closed for that.
    for (reader, sequence) in slow.iter_mut().zip(begun) {
        assert!(reader.read().is_some(), "the rest of the snapshot of {sequence}");
    }
}

over_epoll!(slow_readers_of_one_key_keep_snapshots_from_nobody_else);
