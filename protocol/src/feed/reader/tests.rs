//! A reader over a stream beside an engine that says what the test wants: what it missed, and snapshots that
//! are late, too long, or overtaken.

use super::*;
use crate::feed::broadcast::Broadcaster;
use crate::feed::layout::SLOTS_MIN;
use crate::feed::memory::FeedOutput;
use crate::message::Message;
use crate::message::enums::{Side, SymbolStatus};
use crate::message::feed::{
    FeedOrderAdded, FeedRequest, FeedSnapshot, FeedSymbolChanged, FeedTrade,
};
use crate::message::stream::Heartbeat;
use crate::patience::PATIENCE;
use crate::text::Name;
use crate::units::{Incarnation, OrderId, SymbolId};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// As long as a snapshot is waited for that does not come.
const MOMENT: Duration = Duration::from_millis(20);

/// A reader over a stream, and its engine.
fn reader() -> (FeedReader, UnixStream) {
    reader_of(1000)
}

/// The same, which takes snapshots of so many bytes.
fn reader_of(snapshot_bytes_max: u64) -> (FeedReader, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    options.timeout = PATIENCE;
    options.snapshot_bytes_max = snapshot_bytes_max;
    let source = Source::Stream(StreamSource::behind(FeedSequence(0)));
    let reader = reader_over(source, near, &options);
    (reader, far)
}

/// One that has no books yet.
fn reader_over(source: Source, near: UnixStream, options: &FeedOptions) -> FeedReader {
    FeedReader {
        source,
        line: FeedLine::new(near.into(), options, None).unwrap(),
        opened: FeedOpened::default(),
        waiter: Waiter::new(options.wait),
        message: Box::new([0; SLOT_WORDS]),
        seen: None,
        has_books: false,
    }
}

fn say<M: Message>(far: &mut UnixStream, message: &M) {
    far.write_all(bytemuck::bytes_of(message)).unwrap();
}

fn trade(sequence: u64) -> FeedTrade {
    FeedTrade { sequence: FeedSequence(sequence), ..Default::default() }
}

/// The head of a snapshot of two symbols, and one of them.
fn snapshot(sequence: u64) -> (FeedSnapshot, FeedSymbolChanged) {
    let bytes = 2 * size_of::<FeedSymbolChanged>() as u64;
    let sequence = FeedSequence(sequence);
    let head = FeedSnapshot { bytes, symbols: 2, sequence, ..Default::default() };
    let status = SymbolStatus::Trading.to_wire();
    (head, FeedSymbolChanged { status, ..Default::default() })
}

fn is_late(reader: &mut FeedReader) {
    let patience = reader.line.replace_timeout(MOMENT);
    let late = reader.recover().unwrap_err();
    reader.line.replace_timeout(patience);
    assert!(matches!(late, FeedError::SnapshotLate), "{late}");
}

fn read(reader: &mut FeedReader) -> Option<FeedSequence> {
    let is_there = reader.poll().unwrap().is_some();
    is_there.then(|| FeedSequence(reader.message[MARK_WORD]))
}

#[test]
fn until_a_late_snapshot_has_come_messages_are_missing() {
    let (mut reader, mut far) = reader();
    say(&mut far, &trade(1));
    is_late(&mut reader);
    say(&mut far, &trade(2));
    for _ in 0..2 {
        assert!(matches!(reader.poll(), Err(FeedError::Overrun(_))), "1 was passed over");
    }
    let (head, symbol) = snapshot(2);
    say(&mut far, &head);
    say(&mut far, &symbol);
    say(&mut far, &FeedSymbolChanged { symbol: SymbolId(1), ..symbol });
    say(&mut far, &trade(3));
    assert_eq!(reader.recover().unwrap().sequence(), FeedSequence(2));
    assert_eq!(read(&mut reader), Some(FeedSequence(3)));
}

/// A snapshot that is longer than this reader takes, and what comes behind it.
fn too_long(reader: &mut FeedReader, far: &mut UnixStream) {
    let (head, symbol) = snapshot(5);
    say(far, &head);
    say(far, &symbol);
    let error = reader.recover().unwrap_err();
    let is_told =
        matches!(error, FeedError::Connection(FeedConnectError::TooLong { bytes: 160, .. }));
    assert!(is_told, "{error}");
    say(far, &symbol);
    say(far, &trade(6));
}

#[test]
fn who_goes_on_without_a_snapshot_that_is_too_long_reads_what_comes_behind_it() {
    let (mut reader, mut far) = reader_of(159);
    say(&mut far, &trade(1));
    too_long(&mut reader, &mut far);
    assert!(matches!(reader.poll(), Err(FeedError::Overrun(_))), "1 was passed over");
    reader.skip();
    say(&mut far, &trade(7));
    assert_eq!(read(&mut reader), Some(FeedSequence(7)), "6 had come");
}

#[test]
fn the_next_snapshot_is_asked_for_when_the_one_that_is_too_long_has_come() {
    let (mut reader, mut far) = reader_of(159);
    let (head, symbol) = snapshot(5);
    say(&mut far, &head);
    assert!(reader.recover().is_err());
    is_late(&mut reader);
    far.set_nonblocking(true).unwrap();
    let mut said = [0; 3 * size_of::<FeedRequest>()];
    let once = size_of::<FeedRequest>();
    assert_eq!(far.read(&mut said).unwrap(), once, "who asks while it is owed one is closed");
    say(&mut far, &symbol);
    say(&mut far, &symbol);
    is_late(&mut reader);
    assert_eq!(far.read(&mut said).unwrap(), once);
    let bytes = size_of::<FeedSymbolChanged>() as u64;
    let head = FeedSnapshot { bytes, symbols: 1, sequence: FeedSequence(9), ..head };
    say(&mut far, &head);
    say(&mut far, &symbol);
    assert_eq!(reader.recover().unwrap().sequence(), FeedSequence(9));
}

#[test]
fn who_goes_on_without_a_late_snapshot_reads_what_comes_behind_it() {
    // As much of it has come when it is given up.
    for parts in 0..3 {
        let (mut reader, mut far) = reader();
        is_late(&mut reader);
        let (head, symbol) = snapshot(5);
        if parts > 0 {
            say(&mut far, &head);
        }
        if parts > 1 {
            say(&mut far, &symbol);
        }
        is_late(&mut reader);
        reader.skip();
        if parts == 0 {
            say(&mut far, &head);
        }
        assert_eq!(read(&mut reader), None);
        for _ in parts.max(1)..3 {
            say(&mut far, &symbol);
        }
        say(&mut far, &trade(6));
        assert_eq!(read(&mut reader), Some(FeedSequence(6)), "{parts}");
        // The next one is another one.
        is_late(&mut reader);
        drop(reader);
        let mut said = Vec::new();
        far.read_to_end(&mut said).unwrap();
        assert_eq!(said.len(), 2 * size_of::<FeedRequest>());
    }
}

#[test]
fn who_goes_on_without_a_late_snapshot_reads_on_behind_what_was_passed_over() {
    for (before, behind) in [(true, true), (true, false), (false, true)] {
        let (mut reader, mut far) = reader();
        let last = if before { 1 } else { 0 };
        if before {
            say(&mut far, &trade(1));
        }
        is_late(&mut reader);
        if behind {
            say(&mut far, &trade(last + 1));
        }
        reader.skip();
        let next = if behind { last + 2 } else { last + 1 };
        say(&mut far, &trade(next));
        assert_eq!(read(&mut reader), Some(FeedSequence(next)), "{before} {behind}");
    }
    let (mut reader, mut far) = reader();
    let [from, next] = [1, 5].map(FeedSequence);
    say(&mut far, &FeedGap { from, next, ..Default::default() });
    is_late(&mut reader);
    reader.skip();
    say(&mut far, &trade(5));
    assert_eq!(read(&mut reader), Some(next), "a gap was passed over");
}

#[test]
fn who_goes_on_without_two_snapshots_reads_on_behind_what_was_passed_over_last() {
    let (mut reader, mut far) = reader_of(159);
    too_long(&mut reader, &mut far);
    is_late(&mut reader);
    say(&mut far, &trade(7));
    reader.skip();
    say(&mut far, &trade(8));
    assert_eq!(read(&mut reader), Some(FeedSequence(8)));
}

#[test]
fn who_goes_on_without_a_snapshot_of_no_use_reads_what_comes_behind_it() {
    let (mut reader, mut far) = reader();
    say(&mut far, &trade(1));
    let (head, symbol) = snapshot(5);
    say(&mut far, &head);
    // There is no such status.
    (0..2).for_each(|_| say(&mut far, &FeedSymbolChanged { status: 0, ..symbol }));
    assert!(matches!(reader.recover(), Err(FeedError::Connection(FeedConnectError::Snapshot(_)))));
    reader.skip();
    say(&mut far, &trade(6));
    assert_eq!(read(&mut reader), Some(FeedSequence(6)));
}

/// Says a snapshot whole.
fn say_whole(far: &mut UnixStream, sequence: u64) {
    let (head, symbol) = snapshot(sequence);
    say(far, &head);
    say(far, &symbol);
    say(far, &FeedSymbolChanged { symbol: SymbolId(1), ..symbol });
}

#[test]
fn who_has_no_books_gets_some_also_in_front_of_the_first_message() {
    let (mut reader, mut far) = reader();
    say_whole(&mut far, 0);
    // They go on with message 1, as an empty venue's would.
    let mut books = Books::new();
    assert_eq!(reader.follow(&mut books).unwrap(), 0);
    assert_eq!(books.symbols().len(), 2);
    assert_eq!(reader.follow(&mut books).unwrap(), 0, "and no second ones");
    drop(reader);
    let mut said = Vec::new();
    far.read_to_end(&mut said).unwrap();
    assert_eq!(said.len(), size_of::<FeedRequest>());
}

#[test]
fn who_waits_is_told_at_once_that_messages_are_missing() {
    let (mut reader, mut far) = reader();
    assert!(!reader.wait(Duration::ZERO));
    say(&mut far, &FeedGap { from: FeedSequence(1), next: FeedSequence(5), ..Default::default() });
    for _ in 0..2 {
        assert!(reader.wait(Duration::ZERO));
        assert!(matches!(reader.poll(), Err(FeedError::Overrun(_))));
    }
}

#[test]
fn a_reader_that_is_overtaken_again_and_again_gives_up() {
    let (mut reader, mut far) = reader();
    for number in 0..2 * u64::from(ATTEMPTS) {
        say_whole(&mut far, 5 * number);
        let [from, next] = [1, 3].map(|behind| FeedSequence(5 * number + behind));
        say(&mut far, &FeedGap { from, next, ..Default::default() });
    }
    let error = reader.follow(&mut Books::new()).unwrap_err();
    assert!(matches!(error, FeedError::TooFast), "{error}");
}

#[test]
fn who_skips_behind_a_batch_that_is_longer_than_the_ring_reads_the_rest_of_it() {
    let (output, descriptor) = FeedOutput::create(SLOTS_MIN, Incarnation(1), [0; 16]).unwrap();
    let (mut reader, _far) = reader();
    let memory = FeedInput::map(descriptor.as_fd(), SLOTS_MIN).unwrap();
    reader.source = Source::Ring(BroadcastReader::new(memory));
    let mut broadcaster = Broadcaster::new(output);
    let mut message = SlotWords::default();
    let words: [u64; size_of::<FeedTrade>() / 8] = bytemuck::cast(FeedTrade::default());
    message[..words.len()].copy_from_slice(&words);
    // Nothing of it is published before its end.
    for _ in 0..SLOTS_MIN + 10 {
        broadcaster.write(&mut message);
    }
    assert!(matches!(reader.poll(), Err(FeedError::Overrun(_))));
    reader.skip();
    let behind_what_was_found = FeedSequence(u64::from(SLOTS_MIN) + 2);
    assert_eq!(read(&mut reader), Some(behind_what_was_found));
    reader.skip();
    assert_eq!(read(&mut reader), Some(FeedSequence(behind_what_was_found.0 + 1)));
    broadcaster.publish();
    reader.skip();
    assert_eq!(read(&mut reader), None);
}

#[test]
fn who_skips_passes_over_what_was_there_and_not_over_what_comes_meanwhile() {
    let (mut reader, mut far) = reader();
    (1..=4).for_each(|sequence| say(&mut far, &trade(sequence)));
    assert_eq!(read(&mut reader), Some(FeedSequence(1)));
    let there = reader.line.there();
    assert_eq!(there, 4 * size_of::<FeedTrade>() as u64);
    // From here on it comes meanwhile.
    let gap = FeedGap { from: FeedSequence(5), next: FeedSequence(8), ..Default::default() };
    say(&mut far, &gap);
    say(&mut far, &trade(8));
    let Source::Stream(stream) = &mut reader.source else { panic!("it reads a stream") };
    stream.skip(&mut reader.line, there, &mut reader.message);
    assert_eq!(reader.next_sequence(), FeedSequence(5));
    assert!(matches!(reader.poll(), Err(FeedError::Overrun(_))), "nothing of it is passed over");
    reader.skip();
    assert!(reader.poll().unwrap().is_none(), "all of it was there");
    say(&mut far, &trade(9));
    assert_eq!(read(&mut reader), Some(FeedSequence(9)));
}

#[test]
fn who_skips_passes_over_heartbeats_too_however_many_they_are() {
    let (mut reader, mut far) = reader();
    far.write_all(&bytemuck::bytes_of(&Heartbeat::default()).repeat(1000)).unwrap();
    say(&mut far, &trade(1));
    reader.skip();
    say(&mut far, &trade(2));
    assert_eq!(read(&mut reader), Some(FeedSequence(2)), "1 was there");
}

#[test]
fn who_follows_on_has_books_also_where_a_snapshot_comes_that_was_given_up() {
    let (mut reader, mut far) = reader();
    let mut books = Books::new();
    say_whole(&mut far, 7);
    assert_eq!(reader.follow(&mut books).unwrap(), 0);
    is_late(&mut reader);
    reader.skip();
    // It is older than the books, and was made before what was sent in front of it.
    say_whole(&mut far, 5);
    let symbol = FeedSymbolChanged { sequence: FeedSequence(6), ..snapshot(0).1 };
    say(&mut far, &symbol);
    say_whole(&mut far, 6);
    say(&mut far, &FeedSymbolChanged { sequence: FeedSequence(7), ..symbol });
    assert_eq!(reader.follow(&mut books).unwrap(), 1);
    assert_eq!((books.sequence(), reader.next_sequence()), (FeedSequence(7), FeedSequence(8)));
}

/// What goes on with a book, whatever it says.
fn changed(sequence: u64) -> FeedSymbolChanged {
    FeedSymbolChanged { sequence: FeedSequence(sequence), ..snapshot(0).1 }
}

/// A ring, which the reader reads from now on.
fn over_ring(reader: &mut FeedReader) -> Broadcaster<FeedOutput> {
    let (output, descriptor) = FeedOutput::create(SLOTS_MIN, Incarnation(1), [0; 16]).unwrap();
    let memory = FeedInput::map(descriptor.as_fd(), SLOTS_MIN).unwrap();
    reader.source = Source::Ring(BroadcastReader::new(memory));
    Broadcaster::new(output)
}

/// Publishes so many messages together, which go on with a book.
fn broadcast(ring: &mut Broadcaster<FeedOutput>, count: u64) {
    for _ in 0..count {
        let mut message = SlotWords::default();
        let words: [u64; size_of::<FeedSymbolChanged>() / 8] = bytemuck::cast(changed(0));
        message[..words.len()].copy_from_slice(&words);
        ring.write(&mut message);
    }
    ring.publish();
}

#[test]
fn who_follows_is_held_up_by_what_was_there_and_not_by_what_comes_meanwhile() {
    let (mut reader, mut far) = reader();
    let mut books = Books::new();
    say_whole(&mut far, 0);
    assert_eq!(reader.follow(&mut books).unwrap(), 0);
    (1..=3).for_each(|sequence| say(&mut far, &changed(sequence)));
    let there = reader.there();
    // From here on it comes meanwhile.
    (4..=9).for_each(|sequence| say(&mut far, &changed(sequence)));
    assert_eq!(reader.follow_to(there, &mut books).unwrap(), 3);
    assert!(reader.wait(Duration::ZERO), "there is no reason to sleep");
    assert_eq!(reader.follow(&mut books).unwrap(), 6);

    let (mut books, mut ring) = (Books::new(), over_ring(&mut reader));
    broadcast(&mut ring, 3);
    let there = reader.there();
    broadcast(&mut ring, 6);
    assert_eq!(reader.follow_to(there, &mut books).unwrap(), 3);
    assert!(reader.wait(Duration::ZERO));
    assert_eq!(reader.follow(&mut books).unwrap(), 6);
}

#[test]
fn books_do_not_become_larger_than_the_snapshots_that_are_taken() {
    // Of two symbols and two orders.
    let (mut reader, mut far) = reader_of(2 * 80 + 2 * 64);
    let mut books = Books::new();
    say_whole(&mut far, 0);
    assert_eq!(reader.follow(&mut books).unwrap(), 0);
    let added = |sequence| FeedOrderAdded {
        sequence: FeedSequence(sequence),
        side: Side::Buy.to_wire(),
        order_id: OrderId(sequence),
        price: 1,
        quantity: 1,
        ..Default::default()
    };
    (1..=2).for_each(|sequence| say(&mut far, &added(sequence)));
    assert_eq!(reader.follow(&mut books).unwrap(), 2);
    (3..=9).for_each(|sequence| say(&mut far, &added(sequence)));
    let error = reader.follow(&mut books).unwrap_err();
    assert!(matches!(error, FeedError::TooLarge { bytes: 352, most: 288 }), "{error}");
    assert_eq!(books.orders(), 3, "one more than is taken");
}

#[test]
fn a_snapshot_that_a_ring_has_overtaken_is_asked_for_anew_and_the_next_one_is_gone_on_from() {
    let (mut reader, mut far) = reader();
    let mut ring = over_ring(&mut reader);
    let last = u64::from(SLOTS_MIN) + 10;
    broadcast(&mut ring, last);
    for sequence in [1, 2, last - 2] {
        say_whole(&mut far, sequence);
    }
    assert_eq!(reader.recover().unwrap().sequence(), FeedSequence(last - 2));
    assert_eq!(read(&mut reader), Some(FeedSequence(last - 1)));
    assert_eq!(read(&mut reader), Some(FeedSequence(last)));
    assert_eq!(read(&mut reader), None);
}

#[test]
fn a_late_snapshot_changes_nothing_of_what_is_said_to_be_missing() {
    let (mut reader, mut far) = reader();
    let [from, next] = [1, 5].map(FeedSequence);
    say(&mut far, &FeedGap { from, next, ..Default::default() });
    for _ in 0..2 {
        let error = reader.poll().unwrap_err();
        let expected = Overrun { expected: from, found: next };
        assert!(matches!(error, FeedError::Overrun(error) if error == expected), "{error}");
        is_late(&mut reader);
    }
}

#[test]
fn what_does_not_follow_what_came_last_is_no_feed() {
    let [from, next] = [3, 5].map(FeedSequence);
    let gap = FeedGap { from, next, ..Default::default() };
    for message in [bytemuck::bytes_of(&trade(3)), bytemuck::bytes_of(&gap)] {
        let (mut reader, mut far) = reader();
        say(&mut far, &trade(1));
        far.write_all(message).unwrap();
        assert_eq!(read(&mut reader), Some(FeedSequence(1)));
        let error = reader.poll().unwrap_err();
        let expected = BookError::Sequence { last: FeedSequence(1), found: from };
        assert!(matches!(error, FeedError::Book(error) if error == expected), "{error}");
    }
}

#[test]
fn what_a_heartbeat_says_of_the_feed_is_told_unless_it_comes_from_an_engine_that_says_nothing() {
    let (mut reader, mut far) = reader();
    let [durable, appended] = [256, 640].map(Position);
    for (feed, told) in [(0, (None, None)), (128, (Some(Position(128)), Some(512)))] {
        let feed = Position(feed);
        say(&mut far, &Heartbeat { appended, durable, feed, ..Default::default() });
        assert_eq!(read(&mut reader), None);
        assert_eq!((reader.position_read(), reader.lag()), told);
    }
}

#[test]
fn the_last_that_was_seen_is_a_snapshots_end_or_a_messages() {
    let (mut reader, mut far) = reader();
    reader.opened.incarnation = Incarnation(3);
    assert_eq!(reader.last_seen(), None);
    let (head, symbol) = snapshot(5);
    say(&mut far, &FeedSnapshot { position: Position(640), ..head });
    say(&mut far, &symbol);
    say(&mut far, &FeedSymbolChanged { symbol: SymbolId(1), ..symbol });
    assert!(reader.recover().is_ok());
    assert_eq!(reader.last_seen(), Some((Incarnation(3), Position(640))));
    say(&mut far, &FeedTrade { position: Position(704), ..trade(6) });
    assert_eq!(read(&mut reader), Some(FeedSequence(6)));
    assert_eq!(reader.last_seen(), Some((Incarnation(3), Position(704))));
}

mod random;
