//! The public feed over TCP and the Unix stream: the same books as over shared memory, and readers that are
//! slow, silent, hostile or revoked, each of whom learns why, and costs nobody else anything.

use super::binary::{KEY_A, KEY_B, socket};
use super::feed::{Load, assert_shown, feed_options, follow_to, told};
use super::http::Key;
use super::process::{WATCHDOG, eventually};
use super::raw_session::{
    CHALLENGE, Hello, REFUSED, message, number, proof, read_message, template,
};
use super::stream_client::{
    HEARTBEAT, Member, RawStream, SESSION_CLOSED, address, arguments, over_epoll, send, tcp, unix,
    venue,
};
use super::venue::{Part, Venue};
use crate::patience::{Wait, in_a_few_tries};
use rustix::process::Signal;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use touchline_protocol::client::{ClientOptions, Endpoint};
use touchline_protocol::feed::books::Books;
use touchline_protocol::feed::{FeedConnectError, FeedError, FeedReader};
use touchline_protocol::message::command::{LOGON_FEED, RevokeKey};
use touchline_protocol::message::enums::{CloseReason, Lane, Role};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::text::Name;
use touchline_protocol::units::KeyId;

/// A feed with a small ring, so that laps are short.
const FEED: [&str; 2] = ["feed.enabled=true", "feed.slots=1024"];

/// Template ids of the conversation.
const FEED_OPENED: u16 = 420;
pub(crate) const FEED_REQUEST: u16 = 421;
pub(crate) const FEED_SNAPSHOT: u16 = 422;

pub(crate) fn feed_venue(settings: &[&str]) -> Venue {
    // Nobody here is given up for what a loaded machine does to a reader whose turn has not come.
    let patient = ["engine.reader_stall_seconds=600"];
    venue(&[&FEED[..], &patient, settings].concat())
}

fn key_b(venue: &Venue) -> Option<(u64, String)> {
    Some((KEY_B, venue.key_b().secret))
}

fn open(venue: &Venue, endpoint: Endpoint) -> Result<FeedReader, FeedConnectError> {
    FeedReader::open(&feed_options(endpoint, key_b(venue)))
}

/// The reason that the engine gives for the end of the connection, or why it is none.
fn end_of(reader: &mut FeedReader) -> FeedError {
    let begin = Instant::now();
    loop {
        match reader.poll() {
            Ok(_) => assert!(begin.elapsed() < WATCHDOG, "it does not end"),
            Err(error) => return error,
        }
        reader.wait(Duration::from_millis(20));
    }
}

fn closed_for(error: &FeedError) -> Option<CloseReason> {
    match error {
        FeedError::Connection(FeedConnectError::Closed { reason }) => *reason,
        error => panic!("{error}"),
    }
}

#[test]
fn whatever_carries_the_feed_its_books_are_the_same() {
    let venue = feed_venue(&[]);
    let mut load = Load::new(&venue);
    load.run(330);
    let shared = Endpoint::SharedMemory(socket(&venue));
    let mut readers: Vec<(FeedReader, Books)> = Vec::new();
    for endpoint in [shared, tcp(&venue), unix(&venue)] {
        readers.push((open(&venue, endpoint).expect("the key is good"), Books::new()));
    }
    for _ in 0..4 {
        load.run(770);
        for (reader, books) in &mut readers {
            follow_to(reader, books, load.position);
        }
        // One that joins in the midst of things.
        let late = open(&venue, tcp(&venue)).expect("the key is good");
        readers.push((late, Books::new()));
        let (reader, books) = readers.last_mut().expect("it is there");
        follow_to(reader, books, load.position);
        let expected = told(&readers[0].1);
        assert!(!expected.is_empty(), "orders rest");
        for (reader, books) in &readers {
            assert_eq!(
                (told(books), books.sequence()),
                (expected.clone(), readers[0].1.sequence())
            );
            assert_eq!(reader.next_sequence().0, books.sequence().0 + 1);
        }
    }
    assert_shown(&venue, &readers[1].1);
}

#[test]
fn a_slow_reader_is_told_what_it_missed_and_holds_nobody_up() {
    let venue = feed_venue(&[]);
    let mut load = Load::new(&venue);
    load.run(130);
    let endpoints = [tcp(&venue), unix(&venue)];
    let slow = |endpoint| open(&venue, endpoint).expect("the key is good");
    let mut slow: Vec<FeedReader> = endpoints.map(slow).into();
    let (mut quick, mut books) =
        (open(&venue, tcp(&venue)).expect("the key is good"), Books::new());
    // More than the ring and both sockets hold.
    for _ in 0..10 {
        load.run(1250);
        follow_to(&mut quick, &mut books, load.position);
    }
    for reader in &mut slow {
        let (mut last, mut missed) = (reader.opened().sequence, None);
        while missed.is_none() {
            match reader.poll() {
                Ok(Some(_)) => last.0 += 1,
                Ok(None) => assert!(reader.wait(WATCHDOG), "nothing comes behind {last}"),
                Err(FeedError::Overrun(overrun)) => missed = Some(overrun),
                Err(error) => panic!("{error}"),
            }
        }
        let missed = missed.expect("the loop ends with one");
        assert_eq!(missed.expected.0, last.0 + 1, "nothing is left out untold");
        assert!(missed.found.0 > missed.expected.0 + 1024, "{missed}");
        assert!(matches!(reader.poll(), Err(FeedError::Overrun(again)) if again == missed));
        let mut late = Books::new();
        follow_to(reader, &mut late, load.position);
        assert_eq!((told(&late), late.sequence()), (told(&books), books.sequence()));
    }
    // And on, as if nothing had been.
    load.run(330);
    follow_to(&mut quick, &mut books, load.position);
    for reader in &mut slow {
        let mut late = Books::new();
        follow_to(reader, &mut late, load.position);
        assert_eq!(told(&late), told(&books));
    }
}

#[test]
fn a_reader_learns_that_the_feed_has_ended_and_an_engine_that_was_killed_says_nothing() {
    let mut venue = Venue::separate(&arguments(&FEED));
    let endpoints = |venue: &mut Venue| {
        [Endpoint::Tcp(address(&venue.part(Part::Engine).lines())), unix(venue)]
    };
    let mut load = Load::new(&venue);
    load.run(230);
    let [tcp, unix] = endpoints(&mut venue).map(|endpoint| {
        let mut reader = open(&venue, endpoint).expect("the key is good");
        let mut books = Books::new();
        follow_to(&mut reader, &mut books, load.position);
        assert!(!reader.is_closed());
        (reader, books)
    });
    venue.kill9(Part::Engine);
    let mut before = [tcp, unix];
    for (reader, _) in &mut before {
        assert!(eventually(|| reader.is_closed()), "the engine is dead");
        assert_eq!(closed_for(&end_of(reader)), None);
    }
    venue.start_engine();
    for ((reader, books), again) in before.into_iter().zip(endpoints(&mut venue)) {
        assert!(!told(&books).is_empty(), "orders rest");
        let mut again = open(&venue, again).expect("the key is good");
        assert!(again.opened().incarnation > reader.opened().incarnation);
        let mut anew = Books::new();
        again.follow(&mut anew).expect("the feed is sound");
        assert_eq!((anew.sequence().0, told(&anew)), (0, told(&books)), "as the log says");
    }
    let mut load = Load::new(&venue);
    load.run(60);
    let readers = endpoints(&mut venue).map(|endpoint| {
        let mut reader = open(&venue, endpoint).expect("the key is good");
        let mut books = Books::new();
        follow_to(&mut reader, &mut books, load.position);
        (reader, books)
    });
    // Nobody reads this while it comes.
    load.run(60);
    venue.part(Part::Engine).signal(Signal::TERM);
    assert!(venue.part(Part::Engine).wait_for_end().success());
    for (mut reader, mut books) in readers {
        let ended = loop {
            match reader.follow(&mut books) {
                Ok(_) => assert!(reader.wait(WATCHDOG), "it does not end"),
                Err(error) => break error,
            }
        };
        assert!(matches!(ended, FeedError::Ended(last) if last == books.sequence()), "{ended}");
        assert!(books.position().0 >= load.position, "all of it was sent");
    }
}

#[test]
fn readers_of_a_revoked_key_are_told_so() {
    let venue = feed_venue(&[]);
    let mut readers = [tcp(&venue), unix(&venue)]
        .map(|endpoint| open(&venue, endpoint).expect("the key is good"));
    let name = Name::new("operator").expect("a short name");
    let admin = ClientOptions::new(socket(&venue), Role::Admin, Lane::Cold, name);
    let mut admin = Member::open(&admin).expect("the engine's user is let in");
    admin.call(RevokeKey { key: KeyId(KEY_B), ..Default::default() }).expect("the key is there");
    for reader in &mut readers {
        assert_eq!(closed_for(&end_of(reader)), Some(CloseReason::KeyRevoked));
    }
    let refused = open(&venue, tcp(&venue)).err();
    assert!(
        matches!(
            refused,
            Some(FeedConnectError::Refused { reason: Some(RefusalReason::Rejected), .. })
        ),
        "{refused:?}"
    );
}

/// One more reader is told that there is no place for it.
fn assert_no_place(venue: &Venue) {
    let refused = open(venue, tcp(venue)).err();
    assert!(
        matches!(
            refused,
            Some(FeedConnectError::Refused { reason: Some(RefusalReason::TooManySessions), .. })
        ),
        "{refused:?}"
    );
}

#[test]
fn a_single_key_does_not_take_all_places() {
    // Half of them, where nothing else is said.
    let venue = feed_venue(&["feed.readers=4"]);
    let [first, _second] =
        [tcp(&venue), unix(&venue)].map(|one| open(&venue, one).expect("there is a place"));
    assert_no_place(&venue);
    let key_a = Some((KEY_A, venue.key_a().secret));
    let _others =
        FeedReader::open(&feed_options(tcp(&venue), key_a)).expect("other keys have theirs");
    drop(first);
    assert!(eventually(|| open(&venue, tcp(&venue)).is_ok()), "a place is free again");
}

#[test]
fn a_hundred_readers_read_the_same() {
    let venue = feed_venue(&["feed.readers=100", "feed.readers_per_key=1000"]);
    let mut load = Load::new(&venue);
    load.run(130);
    let mut readers: Vec<(FeedReader, Books)> = (0..100)
        .map(|index| if index % 2 == 0 { tcp(&venue) } else { unix(&venue) })
        .map(|endpoint| (open(&venue, endpoint).expect("there is a place"), Books::new()))
        .collect();
    assert_no_place(&venue);
    for _ in 0..3 {
        load.run(330);
        for (reader, books) in &mut readers {
            follow_to(reader, books, load.position);
        }
        let expected = told(&readers[0].1);
        assert!(readers.iter().all(|(_, books)| told(books) == expected));
    }
    assert_shown(&venue, &readers[0].1);
    readers.truncate(99);
    assert!(eventually(|| open(&venue, tcp(&venue)).is_ok()), "a place is free again");
}

/// A reader over TCP without the client library.
pub(crate) struct RawReader(pub(crate) TcpStream);

impl RawReader {
    fn hello(heartbeat_seconds: u8) -> Vec<u8> {
        let role = Role::ReadOnly.to_wire();
        let mut hello = Hello { role, ..Hello::trader(KEY_B, "raw-reader") }.bytes();
        hello[14] = LOGON_FEED;
        hello[15] = 1;
        hello[69] = heartbeat_seconds;
        hello
    }

    pub(crate) fn open(venue: &Venue, heartbeat_seconds: u8) -> Self {
        let key: &Key = &venue.key_b();
        let mut socket = RawStream::dial(&tcp(venue));
        let hello = Self::hello(heartbeat_seconds);
        send(&mut socket, &hello, hello.len());
        let challenge = read_message(&mut socket).expect("a challenge");
        assert_eq!(template(&challenge), CHALLENGE);
        let proof = message(302, &proof(key, &challenge[8..40], &hello));
        send(&mut socket, &proof, proof.len());
        let opened = read_message(&mut socket).expect("an answer");
        assert_eq!(template(&opened), FEED_OPENED);
        Self(socket)
    }

    /// The next message that is no heartbeat.
    pub(crate) fn read(&mut self) -> Option<Vec<u8>> {
        let wait = Wait::begin();
        loop {
            wait.go_on("nothing but heartbeats comes");
            let message = read_message(&mut self.0)?;
            if template(&message) != HEARTBEAT {
                return Some(message);
            }
        }
    }

    /// Waits for the engine's last word; its reason.
    fn closed(&mut self) -> Option<u16> {
        let wait = Wait::begin();
        while let Some(message) = self.read() {
            if template(&message) == SESSION_CLOSED {
                return Some(number(&message, 8, 2) as u16);
            }
            wait.go_on("the engine talks on");
        }
        None
    }
}

/// True if a reader that only polls is kept for longer than a silence may last.
fn listens_on(venue: &Venue) -> bool {
    let mut options = feed_options(tcp(venue), key_b(venue));
    options.heartbeat_seconds = 1;
    let mut listener = FeedReader::open(&options).expect("the key is good");
    (0..50).all(|_| {
        listener.wait(Duration::from_millis(100));
        listener.poll().is_ok_and(|message| message.is_none())
    })
}

#[test]
fn a_silent_reader_is_given_up_and_one_that_only_listens_is_not() {
    let venue = feed_venue(&[]);
    let mut silent = RawReader::open(&venue, 1);
    let first = read_message(&mut silent.0).expect("the engine says something");
    assert_eq!(template(&first), HEARTBEAT);
    assert_eq!(silent.closed(), Some(CloseReason::Silent.to_wire()));
    // On a machine that stands still for seconds, so does a reader.
    assert!(in_a_few_tries(|| listens_on(&venue)), "who sends heartbeats is given up");
}

#[test]
fn what_no_reader_says_ends_its_connection_and_nobody_elses() {
    let venue = feed_venue(&[]);
    let mut load = Load::new(&venue);
    let (mut honest, mut books) =
        (open(&venue, tcp(&venue)).expect("the key is good"), Books::new());
    let request = message(FEED_REQUEST, &[0; 8]);
    let heartbeat = message(HEARTBEAT, &[0; 24]);
    let malformed = CloseReason::Malformed;
    let breaks = [
        ("noise", vec![0xa5; 4096], malformed),
        ("zeros", vec![0; 64], malformed),
        (
            "a request with a reserved bit",
            message(FEED_REQUEST, &[1, 0, 0, 0, 0, 0, 0, 0]),
            malformed,
        ),
        ("two requests at once", [request.clone(), request.clone()].concat(), malformed),
        ("an order", message(1, &[0; 136]), malformed),
        ("the engine's own answer", message(FEED_OPENED, &[0; 32]), malformed),
        ("a flood of heartbeats", heartbeat.repeat(100), CloseReason::Other),
    ];
    for (what, bytes, reason) in breaks {
        let mut vandal = RawReader::open(&venue, 60);
        send(&mut vandal.0, &bytes, bytes.len());
        // With bytes of it unread the system may end the connection before the reason arrives.
        let told = vandal.closed();
        assert!(told.is_none() || told == Some(reason.to_wire()), "{what}: {told:?}");
        load.run(30);
        follow_to(&mut honest, &mut books, load.position);
    }
    for cut in [1, 8, 15] {
        let mut half = RawReader::open(&venue, 60);
        send(&mut half.0, &request[..cut], cut);
    }
    let mut whole = RawReader::open(&venue, 60);
    for byte in &request {
        whole.0.write_all(&[*byte]).expect("the gateway reads");
    }
    let snapshot = whole.read().expect("an answer");
    assert_eq!(template(&snapshot), FEED_SNAPSHOT);
    assert_eq!(number(&snapshot, 8, 8), books.sequence().0, "of the newest message");

    // A feed over a stream has heartbeats, and is for who has a key.
    let refusal = |hello: &[u8]| {
        let mut socket = RawStream::dial(&tcp(&venue));
        send(&mut socket, hello, hello.len());
        let refused = read_message(&mut socket).expect("an answer");
        assert_eq!(template(&refused), REFUSED);
        RefusalReason::from_wire(number(&refused, 8, 2) as u16)
    };
    assert_eq!(refusal(&RawReader::hello(0)), Some(RefusalReason::InvalidHello));
    assert_eq!(refusal(&RawReader::hello(61)), Some(RefusalReason::InvalidHello));
    let mut with_more = RawReader::hello(1);
    with_more[14] |= 1;
    assert_eq!(refusal(&with_more), Some(RefusalReason::InvalidHello));
    let mut operator = RawReader::hello(1);
    operator[12] = Role::Admin.to_wire();
    operator[16..24].fill(0);
    assert_eq!(refusal(&operator), Some(RefusalReason::RoleNotPermitted));
    load.run(30);
    follow_to(&mut honest, &mut books, load.position);
    assert_shown(&venue, &books);
}

over_epoll!(
    whatever_carries_the_feed_its_books_are_the_same,
    a_slow_reader_is_told_what_it_missed_and_holds_nobody_up,
    a_reader_learns_that_the_feed_has_ended_and_an_engine_that_was_killed_says_nothing,
    readers_of_a_revoked_key_are_told_so,
    a_hundred_readers_read_the_same,
    a_silent_reader_is_given_up_and_one_that_only_listens_is_not,
    what_no_reader_says_ends_its_connection_and_nobody_elses,
);
