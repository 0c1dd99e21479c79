//! Readers of the public feed that come back: who saw what the log does not have, because a power cut took it back,
//! is told.

use super::binary::{KEY_B, socket};
use super::feed::{Load, feed_options, follow_to, told};
use super::stream_client::{address, arguments, over_epoll};
use super::venue::{Part, Venue};
use touchline_protocol::client::Endpoint;
use touchline_protocol::feed::books::Books;
use touchline_protocol::feed::{FeedConnectError, FeedOptions, FeedReader};
use touchline_protocol::units::{Incarnation, Position};

/// Over a stream, and over shared memory as the engine's own user.
fn ways(venue: &mut Venue) -> [FeedOptions; 2] {
    let tcp = Endpoint::Tcp(address(&venue.part(Part::Engine).lines()));
    let key = Some((KEY_B, venue.key_b().secret));
    [feed_options(tcp, key), feed_options(socket(venue), None)]
}

fn comes_back(
    options: &FeedOptions,
    seen: (Incarnation, Position),
) -> Result<FeedReader, FeedConnectError> {
    FeedReader::open(&FeedOptions { last_seen: Some(seen), ..options.clone() })
}

#[test]
fn a_reader_that_saw_more_than_the_log_has_is_told() {
    let mut venue = Venue::separate(&arguments(&["feed.enabled=true", "feed.slots=1024"]));
    let mut load = Load::new(&venue);
    let mut seen = Vec::new();
    for options in ways(&mut venue) {
        let mut reader = FeedReader::open(&options).expect("it is let in");
        assert_eq!(reader.last_seen(), None, "it has read nothing");
        let mut books = Books::new();
        // Behind a snapshot, and behind messages.
        reader.follow(&mut books).expect("the feed is sound");
        seen.push((reader.last_seen().expect("a snapshot"), options.clone()));
        load.run(30);
        follow_to(&mut reader, &mut books, load.position);
        let last = reader.last_seen().expect("it has read something");
        assert_eq!(last, (reader.opened().incarnation, books.position()));
        seen.push((last, options));
    }
    for (seen, options) in &seen {
        comes_back(options, *seen).expect("the log has it");
    }
    let (incarnation, position) = seen[3].0;
    for options in ways(&mut venue) {
        for seen in [
            (incarnation, Position(position.0 + 64)),
            (incarnation, Position(1 << 40)),
            (Incarnation(incarnation.0 + 1), position),
            (incarnation, Position(position.0 + 1)),
        ] {
            let refused = comes_back(&options, seen).err();
            let is_told = matches!(&refused, Some(FeedConnectError::HistoryLost { .. }));
            assert!(is_told, "{seen:?} {refused:?}");
        }
    }
    venue.kill9(Part::Engine);
    venue.start_engine();
    for options in ways(&mut venue) {
        comes_back(&options, (incarnation, position)).expect("a killed engine loses nothing");
    }
    let mut load = Load::new(&venue);
    load.run(30);
    let mut books = Books::new();
    let [mut options, _] = ways(&mut venue);
    let mut reader = FeedReader::open(&options).expect("it is let in");
    follow_to(&mut reader, &mut books, load.position);
    let seen = reader.last_seen().expect("it has read something");
    venue.kill9(Part::Engine);
    venue.lose_live_window();
    venue.start_engine();
    [options, _] = ways(&mut venue);
    // On disk or not, it says which.
    match comes_back(&options, seen) {
        Ok(mut reader) => {
            let mut again = Books::new();
            reader.follow(&mut again).expect("the feed is sound");
            assert_eq!(told(&again), told(&books), "nothing was taken back");
        }
        Err(FeedConnectError::HistoryLost { position }) => assert!(position <= seen.1),
        Err(error) => panic!("{error}"),
    }
}

over_epoll!(a_reader_that_saw_more_than_the_log_has_is_told);
