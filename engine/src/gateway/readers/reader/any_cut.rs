//! Bytes of any kind to a reader, in pieces of any sizes: it has asked, or is closed, as by the same bytes in one
//! piece; and it holds no more than a piece of a message behind them.

use super::tests::reader;
use super::*;
use crate::gateway::pieces::pieces;
use proptest::prelude::*;
use touchline_protocol::message::feed::FeedRequest;
use touchline_protocol::message::stream::StateRequest;
use touchline_protocol::ring::MAX_MESSAGE_BYTES;

/// Whether it has asked, how many messages it has sent, and why it is closed.
fn played<'bytes>(pieces: impl Iterator<Item = &'bytes [u8]>) -> (bool, u32, Option<Close>) {
    let now = Instant::now();
    let mut reader = reader(now);
    let mut asked = 0;
    for piece in pieces {
        match reader.received(piece, now) {
            Ok(has_asked) => asked += u32::from(has_asked),
            Err(close) => return (reader.asked, reader.messages, Some(close)),
        }
        assert!(reader.input.len() < MAX_MESSAGE_BYTES, "all that is whole was taken");
        assert_eq!(asked > 0, reader.asked);
        assert!(asked <= 1, "one request is told once");
    }
    (reader.asked, reader.messages, None)
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let heartbeat = bytemuck::bytes_of(&Heartbeat::default()).to_vec();
    let request = bytemuck::bytes_of(&FeedRequest::default()).to_vec();
    let of_a_session = bytemuck::bytes_of(&StateRequest::default()).to_vec();
    let altered = (Just(heartbeat.clone()), any::<prop::sample::Index>(), any::<u8>());
    let altered = altered.prop_map(|(mut bytes, at, byte)| {
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes
    });
    prop_oneof![
        60 => Just(heartbeat),
        2 => Just(request),
        1 => Just(of_a_session),
        1 => altered,
        1 => prop::collection::vec(any::<u8>(), 0..64),
    ]
}

proptest! {
    #[test]
    fn what_a_reader_says_is_the_same_however_it_comes(
        messages in prop::collection::vec(message(), 0..80),
        sizes in prop::collection::vec(prop_oneof![1..16usize, 1..4096usize], 1..20),
    ) {
        let bytes = messages.concat();
        prop_assert_eq!(played(pieces(&bytes, sizes)), played(std::iter::once(&bytes[..])));
    }
}
