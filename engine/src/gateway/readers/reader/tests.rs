//! What a reader over a stream may say, and how long it may take.

use super::*;
use crate::feed::FeedDesk;
use std::os::unix::net::UnixStream;
use touchline_protocol::message::feed::FeedRequest;

const STALL: Duration = Duration::from_secs(5);
const NOTHING_NEW: (Position, Position) = (Position(0), Position(0));

fn reader(now: Instant) -> Reader {
    let (near, far) = UnixStream::pair().unwrap();
    let desk = Arc::new(FeedDesk::without_feed(far.into()));
    let place = desk.reader(true);
    let heartbeat = Duration::from_secs(3600);
    let reader = Reader::new(KeyId(1), Arc::new(near.into()), place, now);
    reader.over_stream(FeedSequence(0), heartbeat)
}

fn snapshot(bytes: usize) -> Arc<Snapshot> {
    Arc::new(Snapshot::of_zeros(bytes, FeedSequence(7)))
}

#[test]
fn a_heartbeat_asks_for_nothing() {
    let now = Instant::now();
    let mut reader = reader(now);
    let (request, heartbeat) = (FeedRequest::default(), Heartbeat::default());
    let (request, heartbeat) = (bytemuck::bytes_of(&request), bytemuck::bytes_of(&heartbeat));
    assert_eq!(reader.received(heartbeat, now), Ok(false));
    assert_eq!(reader.received(&[request, heartbeat].concat(), now), Ok(true));
    assert_eq!(reader.received(heartbeat, now), Ok(false), "it has asked, and waits");
    reader.answer(snapshot(64), now);
    assert_eq!(reader.received(heartbeat, now), Ok(false));
    let piece = reader.next_piece(None, NOTHING_NEW, now).expect("the snapshot");
    reader.sent(piece, now);
    assert_eq!(reader.received(request, now), Ok(true), "it has what it asked for");
    assert!(reader.received(request, now).is_err());
}

#[test]
fn who_takes_a_snapshot_by_the_drop_does_not_keep_it() {
    let begin = Instant::now();
    let mut reader = reader(begin);
    reader.answer(snapshot(5 << 19), begin);
    let _taken = reader.next_piece(None, NOTHING_NEW, begin).expect("the snapshot");
    let mut now = begin;
    // Two and a half paces of it take three times the limit.
    while now < begin + 3 * STALL {
        assert_eq!(reader.tick(now, STALL), None);
        now += Duration::from_secs(1);
        reader.progressed(now);
    }
    let closed = reader.tick(now + Duration::from_secs(1), STALL);
    assert_eq!(closed.map(|(reason, _)| reason), Some(CloseReason::ReaderStalled));
}

#[test]
fn who_says_more_than_it_may_between_two_ticks_is_closed() {
    let now = Instant::now();
    let mut reader = reader(now);
    let heartbeats = [Heartbeat::default(); MESSAGES_PER_TICK as usize];
    let (one, all) = (bytemuck::bytes_of(&heartbeats[0]), bytemuck::cast_slice(&heartbeats));
    for _ in 0..3 {
        assert_eq!(reader.received(all, now), Ok(false));
        assert_eq!(reader.tick(now, STALL), None);
    }
    assert_eq!(reader.received(all, now), Ok(false));
    let closed = reader.received(one, now);
    assert_eq!(closed.map_err(|(reason, _)| reason), Err(CloseReason::Other));
}
