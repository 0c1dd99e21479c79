//! What comes over the socket of a feed connection: snapshots that are late or too long, heartbeats, the end.

use super::*;
use crate::message::enums::SymbolStatus;
use crate::message::feed::{FeedSymbolChanged, FeedTrade};
use crate::message::stream::SessionClosed;
use crate::patience::{PATIENCE, join};
use crate::text::Name;
use crate::units::SymbolId;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// As long as a snapshot is waited for that does not come.
const MOMENT: Duration = Duration::from_millis(20);

impl FeedLine {
    /// Waits for so long from now on; gives how long it has waited so far.
    pub(in crate::feed) const fn replace_timeout(&mut self, timeout: Duration) -> Duration {
        std::mem::replace(&mut self.timeout, timeout)
    }
}

/// A line whose heartbeat is always due, to an engine that has sent a message and its last word, and
/// has closed the connection.
fn ended() -> FeedLine {
    let (near, mut far) = UnixStream::pair().unwrap();
    let options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    let line = FeedLine::new(near.into(), &options, Some(Duration::ZERO)).unwrap();
    let reason = CloseReason::FeedEnded.to_wire();
    far.write_all(bytemuck::bytes_of(&FeedTrade::default())).unwrap();
    let closed = SessionClosed { reason, ..Default::default() };
    far.write_all(bytemuck::bytes_of(&closed)).unwrap();
    line
}

fn is_last_word(error: &FeedConnectError) -> bool {
    matches!(error, FeedConnectError::Closed { reason: Some(CloseReason::FeedEnded) })
}

#[test]
fn a_heartbeat_to_an_engine_that_has_ended_hides_nothing_that_it_said() {
    let (mut line, mut message) = (ended(), SlotWords::default());
    assert!(matches!(line.next(&mut message), Ok(Some(Came::Message))));
    assert!(is_last_word(&line.next(&mut message).unwrap_err()));
    assert!(is_last_word(&ended().snapshot().unwrap_err()), "nor does a request");
}

/// What is wrong with a snapshot that announces so many bytes, and of which one symbol comes, within this time; `None`
/// if it is late.
fn snapshot_of(bytes: u64, timeout: Duration) -> Option<FeedConnectError> {
    let (near, mut far) = UnixStream::pair().unwrap();
    let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    options.snapshot_bytes_max = 1000;
    options.timeout = timeout;
    let mut line = FeedLine::new(near.into(), &options, None).unwrap();
    let head = FeedSnapshot { bytes, symbols: 1, ..Default::default() };
    far.write_all(bytemuck::bytes_of(&head)).unwrap();
    far.write_all(bytemuck::bytes_of(&FeedSymbolChanged::default())).unwrap();
    let came = line.snapshot();
    assert!(!matches!(came, Ok(Some(_))));
    came.err()
}

#[test]
fn a_snapshot_is_as_long_as_it_says_and_no_longer_than_is_taken() {
    let symbol = size_of::<FeedSymbolChanged>() as u64;
    assert!(matches!(
        snapshot_of(1001, PATIENCE),
        Some(FeedConnectError::TooLong { bytes: 1001, most: 1000 })
    ));
    assert!(matches!(snapshot_of(symbol - 8, PATIENCE), Some(FeedConnectError::Unexpected(_))));
    assert!(snapshot_of(symbol + 8, MOMENT).is_none(), "the rest never comes");
    assert!(
        matches!(snapshot_of(symbol, PATIENCE), Some(FeedConnectError::Snapshot(_))),
        "no status is 0"
    );
}

#[test]
fn a_snapshot_that_is_late_is_waited_for_and_not_asked_for_again() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    options.timeout = PATIENCE;
    let mut line = FeedLine::new(near.into(), &options, None).unwrap();
    let is_late = |line: &mut FeedLine| {
        let patience = line.replace_timeout(MOMENT);
        assert!(line.snapshot().unwrap().is_none());
        line.replace_timeout(patience);
    };
    let bytes = 2 * size_of::<FeedSymbolChanged>() as u64;
    let head = FeedSnapshot { bytes, symbols: 2, sequence: FeedSequence(7), ..Default::default() };
    let symbol = |symbol| FeedSymbolChanged {
        symbol: SymbolId(symbol),
        status: SymbolStatus::Trading.to_wire(),
        ..Default::default()
    };
    is_late(&mut line);
    is_late(&mut line);
    far.write_all(bytemuck::bytes_of(&head)).unwrap();
    is_late(&mut line);
    far.write_all(bytemuck::bytes_of(&symbol(0))).unwrap();
    is_late(&mut line);
    far.write_all(bytemuck::bytes_of(&symbol(1))).unwrap();
    let books = line.snapshot().unwrap().expect("it is whole");
    assert_eq!(books.sequence(), FeedSequence(7));
    // What comes behind it is the next one's, which is asked for.
    is_late(&mut line);
    drop(line);
    let mut said = Vec::new();
    far.read_to_end(&mut said).unwrap();
    assert_eq!(said.len(), 2 * size_of::<FeedRequest>(), "two snapshots were asked for");
}

#[test]
fn a_snapshot_may_take_for_ever() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    options.timeout = Duration::MAX;
    let mut line = FeedLine::new(near.into(), &options, None).unwrap();
    let status = SymbolStatus::Trading.to_wire();
    let symbol = FeedSymbolChanged { status, ..Default::default() };
    let bytes = size_of::<FeedSymbolChanged>() as u64;
    let head = FeedSnapshot { bytes, symbols: 1, ..Default::default() };
    far.write_all(bytemuck::bytes_of(&head)).unwrap();
    far.write_all(bytemuck::bytes_of(&symbol)).unwrap();
    assert_eq!(line.snapshot().unwrap().expect("it comes").symbols().len(), 1);
}

#[test]
fn an_engine_of_which_nothing_comes_is_given_up_and_one_that_says_something_is_not() {
    let interval = Duration::from_millis(100);
    let (near, mut far) = UnixStream::pair().unwrap();
    let options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    let mut line = FeedLine::new(near.into(), &options, Some(interval)).unwrap();
    let mut message = SlotWords::default();
    let mut heard = Instant::now();
    for _ in 0..2 * SILENT_INTERVALS {
        std::thread::sleep(interval / 2);
        far.write_all(bytemuck::bytes_of(&Heartbeat::default())).unwrap();
        heard = Instant::now();
        assert!(matches!(line.next(&mut message), Ok(None)));
    }
    let error = loop {
        match line.next(&mut message) {
            Ok(None) => std::thread::yield_now(),
            Ok(came) => panic!("{came:?}"),
            Err(error) => break error,
        }
    };
    let is_silent = matches!(error, FeedConnectError::Closed { reason: Some(CloseReason::Silent) });
    assert!(is_silent && heard.elapsed() >= interval * SILENT_INTERVALS, "{error}");
}

#[test]
fn one_look_passes_over_so_many_heartbeats_and_the_next_one_goes_on() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    let mut line = FeedLine::new(near.into(), &options, None).unwrap();
    far.write_all(&bytemuck::bytes_of(&Heartbeat::default()).repeat(1000)).unwrap();
    far.write_all(bytemuck::bytes_of(&FeedTrade::default())).unwrap();
    let (mut message, mut looks) = (SlotWords::default(), 1);
    while line.next(&mut message).unwrap().is_none() {
        assert!(line.has_more(), "there is no reason to sleep");
        looks += 1;
    }
    assert!((2..10).contains(&looks), "{looks} looks");
}

#[test]
fn a_snapshot_comes_behind_heartbeats_too_however_many_they_are() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    options.timeout = Duration::MAX;
    let mut line = FeedLine::new(near.into(), &options, None).unwrap();
    let given_up = FeedTrade::default();
    line.given_up = 1000 * size_of::<FeedTrade>() as u64;
    far.write_all(&bytemuck::bytes_of(&given_up).repeat(1000)).unwrap();
    far.write_all(&bytemuck::bytes_of(&Heartbeat::default()).repeat(1000)).unwrap();
    far.write_all(bytemuck::bytes_of(&FeedSnapshot::default())).unwrap();
    let reader = std::thread::spawn(move || line.snapshot().unwrap().is_some());
    assert!(join(reader, "the reader sleeps while there is more"));
}

#[test]
fn an_end_is_seen_behind_a_snapshot_that_nobody_reads() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    let line = FeedLine::new(near.into(), &options, None).unwrap();
    far.write_all(bytemuck::bytes_of(&FeedSnapshot::default())).unwrap();
    assert!(!line.is_closed());
    drop(far);
    assert!(line.is_closed(), "who reads the ring alone waits for ever");
}

#[test]
fn an_engine_that_says_all_but_what_it_was_asked_for_holds_nobody_up() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    let mut line = FeedLine::new(near.into(), &options, None).unwrap();
    // The time is over behind the first message.
    line.timeout = Duration::ZERO;
    let trade = |number| FeedTrade { sequence: FeedSequence(number), ..Default::default() };
    (1..=100).for_each(|number| far.write_all(bytemuck::bytes_of(&trade(number))).unwrap());
    assert!(line.snapshot().unwrap().is_none());
    assert_eq!(line.passed_over, Some(FeedSequence(1)), "it listens for as long as somebody talks");
    // It is owed, and read when it comes.
    far.write_all(bytemuck::bytes_of(&FeedSnapshot::default())).unwrap();
    line.timeout = Duration::MAX;
    assert!(line.snapshot().unwrap().is_some());
}

#[test]
fn an_engine_that_takes_no_request_and_goes_on_talking_holds_nobody_up() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    let mut line = FeedLine::new(near.into(), &options, None).unwrap();
    line.timeout = Duration::ZERO;
    while line.say(bytemuck::bytes_of(&FeedRequest::default())).is_ok() {}
    far.write_all(&bytemuck::bytes_of(&FeedTrade::default()).repeat(100)).unwrap();
    assert!(matches!(line.snapshot(), Err(FeedConnectError::Io(_))));
    assert_eq!(line.taken(), 0, "it listens for as long as somebody talks");
}

#[test]
fn a_snapshot_of_which_a_little_comes_now_and_then_is_late() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    options.timeout = Duration::from_millis(50);
    let mut line = FeedLine::new(near.into(), &options, None).unwrap();
    let head = FeedSnapshot { bytes: 1 << 30, ..Default::default() };
    far.write_all(bytemuck::bytes_of(&head)).unwrap();
    let engine = std::thread::spawn(move || {
        let symbol = FeedSymbolChanged::default();
        // Each in time, until nobody reads any more.
        while far.write_all(bytemuck::bytes_of(&symbol)).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let reader = std::thread::spawn(move || line.snapshot().unwrap().is_none());
    assert!(join(reader, "the reader waits for ever"));
    join(engine, "the engine");
}
