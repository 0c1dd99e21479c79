//! How far the public feed is: told to its readers, by `/status` and by `touchline log info`, so that a feed that
//! stands still does not look like a quiet market.

use super::admin::admin;
use super::binary::{KEY_B, socket};
use super::feed::feed_options;
use super::json::Json;
use super::log_tools::object;
use super::process::eventually;
use super::stream_client::{tcp, venue};
use super::venue::Venue;
use std::time::Duration;
use touchline_protocol::feed::FeedReader;

fn status(venue: &Venue) -> Json {
    let response = venue.http().get("/status");
    assert_eq!(response.status, 200, "{}", response.body);
    Json::parse(&response.body)
}

#[test]
fn a_feed_tells_how_far_it_is_where_nothing_public_happens() {
    let venue = venue(&["feed.enabled=true", "feed.slots=1024"]);
    let mut shared =
        FeedReader::open(&feed_options(socket(&venue), None)).expect("the engine's user reads");
    let before = shared.position_read().expect("it is told from the beginning");
    assert_eq!(shared.lag(), None, "nothing tells it the log's end");
    let mut options = feed_options(tcp(&venue), Some((KEY_B, venue.key_b().secret)));
    options.heartbeat_seconds = 1;
    let mut streamed = FeedReader::open(&options).expect("the key is good");
    assert_eq!((streamed.position_read(), streamed.lag()), (None, None), "before a heartbeat");

    admin(&venue, &["deposit", "A", "BTC", "1"]);
    assert!(eventually(|| shared.position_read() > Some(before)), "a deposit is not public");
    let read = shared.position_read();
    assert!(eventually(|| {
        assert!(streamed.poll().expect("it is kept").is_none());
        streamed.wait(Duration::from_millis(20));
        streamed.position_read() >= read && streamed.lag() == Some(0)
    }));
    assert!(shared.poll().expect("it is sound").is_none(), "nothing was public");

    assert!(eventually(|| {
        let told = status(&venue);
        told.integer_at("feedBehind") == 0 && told.at("feed") == told.at("appended")
    }));
    let info = object(venue.data(), &["info", "--json"]);
    assert!(info.integer_at("feed") >= i128::from(before.0), "{info:?}");
    assert!(info.integer_at("feedBehind") >= 0);
}

#[test]
fn without_a_feed_nothing_is_told_of_one() {
    let venue = venue(&[]);
    let null = Json::parse("null");
    let (told, info) = (status(&venue), object(venue.data(), &["info", "--json"]));
    for field in ["feed", "feedBehind"] {
        assert_eq!((told.at(field), info.at(field)), (&null, &null), "{field}");
    }
}
