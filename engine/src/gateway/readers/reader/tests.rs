//! What a reader over a stream may say, and how long it may take.

use super::*;
use crate::feed::{FeedDesk, Snapshot};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use touchline_protocol::feed::broadcast::Broadcaster;
use touchline_protocol::feed::layout::{SLOT_WORDS, SLOTS_MIN};
use touchline_protocol::feed::{FeedInput, FeedOutput};
use touchline_protocol::message::decode::FeedMessage;
use touchline_protocol::message::feed::{FeedRequest, FeedTrade};
use touchline_protocol::units::Incarnation;

const STALL: Duration = Duration::from_secs(5);
const NOTHING_NEW: Marks = Marks { appended: Position(0), durable: Position(0), feed: Position(0) };

pub(super) fn reader(now: Instant) -> Reader {
    let (near, far) = UnixStream::pair().unwrap();
    let desk = Arc::new(FeedDesk::without_feed(far.into()));
    let place = desk.reader(true);
    let terms = StreamTerms { heartbeat: Duration::from_secs(3600), takes_position: true };
    let reader = Reader::new(KeyId(1), Arc::new(near.into()), place, now);
    reader.over_stream(FeedSequence(0), terms, now)
}

fn snapshot(bytes: usize) -> Arc<Share> {
    let snapshot = Arc::new(Snapshot::of_zeros(bytes, FeedSequence(7)));
    Arc::new(Share::new(snapshot, KeyId(1)))
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
fn a_heartbeat_says_how_far_the_feed_is_to_who_takes_that() {
    let begin = Instant::now();
    let now = begin + Duration::from_secs(3600);
    let marks = Marks { appended: Position(30), durable: Position(20), feed: Position(10) };
    for (takes_position, feed) in [(true, marks.feed), (false, Position(0))] {
        let mut reader = reader(begin);
        reader.stream.as_mut().unwrap().terms.takes_position = takes_position;
        let piece = reader.next_piece(None, marks, now).expect("a heartbeat is due");
        let said: Heartbeat = bytemuck::pod_read_unaligned(&piece);
        assert_eq!((said.appended, said.durable, said.feed), (marks.appended, marks.durable, feed));
    }
}

#[test]
fn who_takes_a_snapshot_by_the_drop_does_not_keep_it() {
    let begin = Instant::now();
    let mut reader = reader(begin);
    // Thirty paces of it.
    reader.answer(snapshot(30 << 20), begin);
    let _taken = reader.next_piece(None, NOTHING_NEW, begin).expect("the snapshot");
    let mut now = begin;
    // Its socket takes a little of the first piece now and then, for which it may stall once.
    while now < begin + STALL {
        now += Duration::from_secs(1);
        assert_eq!(reader.tick(now, STALL, None), None);
        reader.progressed(now);
    }
    let closed = reader.tick(now + Duration::from_secs(1), STALL, None);
    assert_eq!(closed.map(|(reason, _)| reason), Some(CloseReason::ReaderStalled));
}

/// Gives the reader so many pieces, all of which its socket takes at once.
fn take(reader: &mut Reader, pieces: usize, now: Instant) {
    for _ in 0..pieces {
        let piece = reader.next_piece(None, NOTHING_NEW, now).expect("the snapshot");
        reader.sent(piece, now);
    }
}

#[test]
fn who_takes_a_snapshot_at_its_pace_gets_all_of_it_and_who_then_dawdles_does_not() {
    const PIECES: usize = (1 << 20) / PIECE_BYTES;
    let begin = Instant::now();
    let [mut steady, mut dawdler] = [reader(begin), reader(begin)];
    let mut now = begin;
    for reader in [&mut steady, &mut dawdler] {
        reader.answer(snapshot(30 << 20), now);
        take(reader, 10 * PIECES, now);
    }
    for interval in 1..=20 {
        now = begin + interval * STALL;
        assert_eq!(steady.tick(now, STALL, None), None, "in interval {interval}");
        take(&mut steady, PIECES, now);
        let closed = dawdler.tick(now, STALL, None);
        // Of ten mebibytes that it took at once two count.
        assert_eq!(closed.is_some(), interval > 3, "in interval {interval}");
        take(&mut dawdler, 1, now);
    }
    assert!(steady.next_piece(None, NOTHING_NEW, now).is_none(), "it has all of it");
}

#[test]
fn who_says_more_than_it_may_between_two_ticks_is_closed() {
    let now = Instant::now();
    let mut reader = reader(now);
    let heartbeats = [Heartbeat::default(); MESSAGES_PER_TICK as usize];
    let (one, all) = (bytemuck::bytes_of(&heartbeats[0]), bytemuck::cast_slice(&heartbeats));
    for _ in 0..3 {
        assert_eq!(reader.received(all, now), Ok(false));
        assert_eq!(reader.tick(now, STALL, None), None);
    }
    assert_eq!(reader.received(all, now), Ok(false));
    let closed = reader.received(one, now);
    assert_eq!(closed.map_err(|(reason, _)| reason), Err(CloseReason::Other));
}

/// A ring and its reading end.
fn ring() -> (Broadcaster<FeedOutput>, Live) {
    let (output, memory) = FeedOutput::create(SLOTS_MIN, Incarnation(1), [0; 16]).unwrap();
    let live = Live::new(FeedInput::map(memory.as_fd(), SLOTS_MIN).unwrap());
    (Broadcaster::new(output), live)
}

fn write(ring: &mut Broadcaster<FeedOutput>, messages: usize) {
    for _ in 0..messages {
        let mut words = [0; SLOT_WORDS];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[..size_of::<FeedTrade>()].copy_from_slice(bytemuck::bytes_of(&FeedTrade::default()));
        ring.write(&mut words);
    }
    ring.publish();
}

/// The sequences of the messages in a piece, which has nothing else.
fn sequences(piece: &[u8]) -> Vec<u64> {
    let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(piece);
    let messages = bytemuck::cast_slice::<u64, u8>(&words).chunks(size_of::<FeedTrade>());
    messages
        .map(|bytes| match decode::feed(bytes).unwrap() {
            FeedMessage::FeedTrade(trade) => trade.sequence.0,
            other => panic!("{}", other.name()),
        })
        .collect()
}

#[test]
fn a_snapshot_comes_in_one_piece_and_the_feed_goes_on_behind_it() {
    let now = Instant::now();
    let ((mut ring, mut live), mut reader) = (ring(), reader(now));
    let mut next = |reader: &mut Reader, now| {
        let piece = reader.next_piece(Some(&mut live), NOTHING_NEW, now)?;
        reader.sent(piece.clone(), now);
        Some(piece)
    };
    write(&mut ring, 3);
    assert_eq!(sequences(&next(&mut reader, now).unwrap()), [1, 2, 3]);
    let request = FeedRequest::default();
    assert_eq!(reader.received(bytemuck::bytes_of(&request), now), Ok(true));
    write(&mut ring, 6);
    assert_eq!(next(&mut reader, now), None, "what is behind the snapshot comes behind it");
    // A heartbeat is due all the while.
    let now = now + Duration::from_secs(3600);
    let bytes = 2 * PIECE_BYTES + 8;
    reader.answer(snapshot(bytes), now);
    for length in [PIECE_BYTES, PIECE_BYTES, 8] {
        assert_eq!(next(&mut reader, now), Some(vec![0; length]));
    }
    let now = now + Duration::from_secs(3600);
    assert_eq!(sequences(&next(&mut reader, now).unwrap()), [8, 9], "it is of message 7");
    assert_eq!(next(&mut reader, now), None);
}

#[test]
fn who_asks_while_its_snapshot_comes_is_closed() {
    let now = Instant::now();
    let mut reader = reader(now);
    reader.answer(snapshot(2 * PIECE_BYTES), now);
    let piece = reader.next_piece(None, NOTHING_NEW, now).expect("the first half");
    reader.sent(piece, now);
    let request = FeedRequest::default();
    let closed = reader.received(bytemuck::bytes_of(&request), now);
    assert_eq!(closed.map_err(|(reason, _)| reason), Err(CloseReason::Malformed));
}

#[test]
fn a_pause_of_the_gateway_is_held_against_no_reader() {
    let begin = Instant::now();
    let mut reader = reader(begin);
    reader.answer(snapshot(1 << 19), begin);
    let _taken = reader.next_piece(None, NOTHING_NEW, begin).expect("the snapshot");
    // Longer than it may be silent, take nothing, or have its snapshot.
    let pause = Duration::from_secs(3 * 3600) + STALL;
    let now = begin + pause;
    reader.forgive(pause, now);
    assert_eq!(reader.tick(now + STALL, STALL, None), None);
    let closed = reader.tick(now + 2 * STALL, STALL, None);
    assert_eq!(closed.map(|(reason, _)| reason), Some(CloseReason::ReaderStalled));
}

/// Its socket has no room all the while.
#[test]
fn who_takes_the_feed_slowly_is_kept_and_who_takes_nothing_more_is_not() {
    let mut now = Instant::now();
    let ((mut ring, mut live), mut reader) = (ring(), reader(now));
    write(&mut ring, 100);
    let _taken = reader.next_piece(Some(&mut live), NOTHING_NEW, now).expect("the feed");
    for unread in [400, 300, 200, 100] {
        assert_eq!(reader.tick(now, STALL, Some(unread)), None, "{unread} are left");
        now += STALL;
    }
    let closed = reader.tick(now + Duration::from_secs(1), STALL, Some(100));
    assert_eq!(closed.map(|(reason, _)| reason), Some(CloseReason::ReaderStalled));
}
