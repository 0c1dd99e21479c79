//! The public feed through a real engine: readers that join late, are stopped for laps of the ring, or
//! outlive the engine, end with the books that REST shows; and who may read, and who may not.
//!
//! The reading process is this test's own executable, started for the one test that reads.

use super::binary::{KEY_A, KEY_B, options, socket, whole};
use super::http::Request;
use super::process::{WATCHDOG, end_with_parent, eventually, is_alive};
use super::random::Random;
use super::trader::levels;
use super::venue::{Part, UNLIMITED, Venue};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use touchline_protocol::client::{Client, ClientOptions, Endpoint};
use touchline_protocol::feed::books::Books;
use touchline_protocol::feed::{FeedConnectError, FeedError, FeedOptions, FeedReader};
use touchline_protocol::message::command::{MassCancel, NewOrder, RevokeKey};
use touchline_protocol::message::enums::{
    CancelScope, Lane, OrderType, RejectReason, Role, Side, TimeInForce,
};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::text::Name;
use touchline_protocol::units::{KeyId, SymbolId};

/// Slots of every ring here: few, so that laps are short.
const SLOTS: u64 = 1024;
const FEED: [&str; 4] = ["--set", "feed.enabled=true", "--set", "feed.slots=1024"];

/// Commands under way at once.
const UNDER_WAY: u32 = 128;

/// Tell the reading process what to do.
const SOCKET: &str = "TOUCHLINE_TEST_FEED_SOCKET";
const SECRET: &str = "TOUCHLINE_TEST_FEED_SECRET";
const OUTPUT: &str = "TOUCHLINE_TEST_FEED_OUTPUT";

pub(crate) fn feed_options(
    endpoint: impl Into<Endpoint>,
    key: Option<(u64, String)>,
) -> FeedOptions {
    let mut options = FeedOptions::new(endpoint, Name::new("reader").expect("a short name"));
    options.key = key.map(|(id, secret)| (KeyId(id), secret.into()));
    options.timeout = WATCHDOG;
    // Nobody polls while others have their turn, and the machine may be loaded.
    options.heartbeat_seconds = 60;
    options
}

fn open(venue: &Venue, key: Option<(u64, String)>) -> Result<FeedReader, FeedConnectError> {
    FeedReader::open(&feed_options(socket(venue), key))
}

/// Random orders of account A, some of which meet: most messages of the feed are caused by these.
pub(crate) struct Load {
    client: Client,
    random: Random,
    /// Behind the last transaction that was answered.
    pub(crate) position: u64,
}

impl Load {
    pub(crate) fn new(venue: &Venue) -> Self {
        let options = options(venue, "load", Some((KEY_A, &venue.key_a())));
        let client = Client::connect(&options).expect("an honest client is let in");
        Self { client, random: Random::new(7), position: 0 }
    }

    fn order(&mut self) -> NewOrder {
        let is_buy = self.random.below(2) == 0;
        let below = self.random.below(20) as i64;
        // Buys reach up to where sells reach down.
        let price = if is_buy { 20_005 - below } else { 20_000 + below };
        let side = if is_buy { Side::Buy } else { Side::Sell };
        let mut order = NewOrder {
            symbol: SymbolId(0),
            side: side.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: TimeInForce::Gtc.to_wire(),
            price: whole(price),
            quantity: whole(1) / 1000 * (1 + self.random.below(5) as i64),
            ..Default::default()
        };
        order.command.key_id = KeyId(KEY_A);
        order
    }

    /// Sends `count` orders, after each hundred a cancel of all that rest, and waits for all answers.
    pub(crate) fn run(&mut self, count: u32) {
        self.send_all(count, |load, sent| {
            if sent % 100 == 99 {
                let scope = CancelScope::Account.to_wire();
                let symbol = SymbolId(0);
                let mut cancel = MassCancel { symbol, scope, ..Default::default() };
                cancel.command.key_id = KeyId(KEY_A);
                load.client.sender().send(&mut cancel).expect("the ring has room");
            } else {
                let mut order = load.order();
                load.client.sender().send(&mut order).expect("the ring has room");
            }
        });
    }

    /// Sends `count` orders, which all rest, and waits for all answers.
    pub(crate) fn rest(&mut self, count: u32) {
        self.send_all(count, |load, sent| {
            let mut order = NewOrder {
                side: Side::Sell.to_wire(),
                price: whole(30_000 + i64::from(sent % 1000)),
                quantity: whole(1) / 1000,
                ..load.order()
            };
            load.client.sender().send(&mut order).expect("the ring has room");
        });
    }

    fn send_all(&mut self, count: u32, mut send: impl FnMut(&mut Self, u32)) {
        let (mut sent, mut answered) = (0, 0);
        let mut heard = Instant::now();
        while answered < count {
            while sent < count && sent - answered < UNDER_WAY {
                send(self, sent);
                sent += 1;
            }
            while let Some(reply) = self.client.receiver().poll().expect("the connection lives") {
                heard = Instant::now();
                if reply.is_terminal() {
                    answered += 1;
                    self.position = self.position.max(reply.envelope.position.0);
                }
            }
            assert!(heard.elapsed() < WATCHDOG, "{answered} of {count} are answered");
            self.client.receiver().wait(Duration::from_millis(100));
        }
    }
}

/// Every order of the books as text: two readers have the same books if this is the same.
pub(crate) fn told(books: &Books) -> String {
    let mut told = String::new();
    for symbol in books.symbols() {
        for side in [Side::Buy, Side::Sell] {
            for order in symbol.book.orders(side) {
                let (id, price, quantity) = (order.order_id, order.price, order.quantity);
                told.push_str(&format!("{}:{id}@{price}*{quantity} ", symbol.name.as_str()));
            }
        }
    }
    told
}

/// Follows until the books hold everything up to `position`.
pub(crate) fn follow_to(reader: &mut FeedReader, books: &mut Books, position: u64) {
    let begin = Instant::now();
    while books.position().0 < position {
        reader.follow(books).expect("the feed is sound");
        assert!(begin.elapsed() < WATCHDOG, "{} of {position}", books.position());
        reader.wait(Duration::from_millis(20));
    }
}

/// The books are what REST shows.
pub(crate) fn assert_shown(venue: &Venue, books: &Books) {
    let mut trader = venue.a();
    let request = Request::new("GET", "/api/v3/depth?symbol=BTCUSDT&limit=5000");
    let depth = trader.http.call(&request).ok();
    let book = &books.symbol_named("BTCUSDT").expect("the demo venue has it").book;
    for (side, name) in [(Side::Buy, "bids"), (Side::Sell, "asks")] {
        let found = book.depth(side).map(|level| (i128::from(level.price), level.quantity));
        assert_eq!(found.collect::<Vec<_>>(), levels(&depth, name), "{name}");
    }
}

/// The reading process, if this is one: writes a line whenever it has read all there is, until it is
/// killed.
#[test]
fn reading_process() {
    let Some(path) = env::var_os(SOCKET) else { return };
    end_with_parent();
    let secret = env::var(SECRET).expect("it has a key");
    let mut output =
        File::create(env::var_os(OUTPUT).expect("it has an output")).expect("its folder is there");
    let key = Some((KEY_B, secret));
    let mut reader =
        FeedReader::open(&feed_options(PathBuf::from(path), key)).expect("it is let in");
    let (mut books, mut applied, mut last) = (Books::new(), 0, None);
    loop {
        applied += reader.follow(&mut books).expect("the feed is sound");
        if last != Some(books.sequence()) && !books.in_transaction() {
            last = Some(books.sequence());
            let (position, sequence) = (books.position(), books.sequence());
            writeln!(output, "{position} {sequence} {applied} {}", told(&books)).expect("room");
        }
        reader.wait(Duration::from_millis(100));
    }
}

/// A reading process. Dropping it kills it.
struct Reader {
    child: Child,
    output: PathBuf,
}

/// What a reading process has said last.
struct Said {
    position: u64,
    sequence: u64,
    applied: u64,
    books: String,
}

impl Reader {
    fn start(venue: &Venue, folder: &Path) -> Self {
        let output = folder.join("books");
        let child = Command::new(env::current_exe().expect("a test has an executable"))
            .args(["--exact", "system::feed::reading_process", "--nocapture"])
            .env(SOCKET, socket(venue))
            .env(SECRET, venue.key_b().secret)
            .env(OUTPUT, &output)
            .stdout(Stdio::null())
            .spawn()
            .expect("the test's own executable starts");
        let reader = Self { child, output };
        assert!(eventually(|| reader.said().is_some()), "the reader reads nothing");
        reader
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the reader lives");
    }

    /// Stops it, wherever it is, and returns when it stands.
    fn stop(&self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.child.id());
        let stands = || fs::read_to_string(&stat).expect("it is there").contains(") T ");
        assert!(eventually(stands), "it does not stop");
    }

    fn said(&self) -> Option<Said> {
        assert!(is_alive(self.child.id()), "the reader has ended by itself");
        let text = fs::read_to_string(&self.output).unwrap_or_default();
        // The last line may be half written.
        let line = text[..text.rfind('\n')?].lines().last()?;
        let mut parts = line.splitn(4, ' ');
        let mut number = || parts.next()?.parse().ok();
        let (position, sequence, applied) = (number()?, number()?, number()?);
        Some(Said { position, sequence, applied, books: parts.next()?.to_owned() })
    }

    fn reach(&self, position: u64) -> Said {
        let reached = || self.said().is_some_and(|said| said.position >= position);
        assert!(eventually(reached), "the reader stays below {position}");
        self.said().expect("it has said something")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A stopped process dies of it too.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

#[test]
fn readers_that_join_late_or_are_lapped_end_with_the_books_that_are_shown() {
    let venue = Venue::up(&[&UNLIMITED[..], &FEED].concat());
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut load = Load::new(&venue);
    let (mut early, mut books) =
        (open(&venue, None).expect("the engine's user reads"), Books::new());
    early.follow(&mut books).expect("the feed is sound");
    load.run(3050);
    follow_to(&mut early, &mut books, load.position);
    assert!(!told(&books).is_empty(), "orders rest");
    assert_shown(&venue, &books);

    let late = Reader::start(&venue, folder.path());
    let said = late.reach(load.position);
    assert_eq!((said.sequence, said.books), (books.sequence().0, told(&books)));
    assert!(said.applied < SLOTS, "its books come out of a snapshot");

    for _ in 0..3 {
        let before = late.reach(load.position);
        late.stop();
        load.run(3 * SLOTS as u32 + 50);
        late.signal(Signal::CONT);
        let after = late.reach(load.position);
        let told_since = after.sequence - before.sequence;
        assert!(told_since > 2 * SLOTS, "a lap and more: {told_since}");
        let applied = after.applied - before.applied;
        assert!(applied < told_since, "it was overtaken: {applied} of {told_since}");
        follow_to(&mut early, &mut books, load.position);
        assert_eq!((after.sequence, after.books), (books.sequence().0, told(&books)));
    }
    assert_shown(&venue, &books);
}

#[test]
fn the_feed_ends_with_its_engine_and_begins_anew_with_the_next_one() {
    let mut venue = Venue::separate(&[&UNLIMITED[..], &FEED].concat());
    let mut load = Load::new(&venue);
    load.run(230);
    let mut reader = open(&venue, None).expect("the engine's user reads");
    let mut books = Books::new();
    follow_to(&mut reader, &mut books, load.position);
    let before = told(&books);
    assert!(!reader.is_closed());
    venue.kill9(Part::Engine);
    assert!(eventually(|| reader.is_closed()), "the engine is dead");

    venue.start_engine();
    let mut again = open(&venue, None).expect("the engine's user reads");
    assert!(again.opened().incarnation > reader.opened().incarnation);
    let mut books = Books::new();
    again.follow(&mut books).expect("the feed is sound");
    assert_eq!((books.sequence().0, told(&books)), (0, before), "as the log says");
    let mut load = Load::new(&venue);
    load.run(60);
    follow_to(&mut again, &mut books, load.position);
    assert_shown(&venue, &books);

    venue.part(Part::Engine).signal(Signal::TERM);
    assert!(venue.part(Part::Engine).wait_for_end().success());
    let begin = Instant::now();
    let ended = loop {
        match again.follow(&mut books) {
            Ok(_) => assert!(begin.elapsed() < WATCHDOG, "it does not end"),
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, FeedError::Ended(last) if last == books.sequence()), "{ended}");
}

#[test]
fn only_who_holds_a_living_key_reads() {
    let venue = Venue::up(&FEED);
    let key = |id| Some((id, venue.key_b().secret));
    let mut reader = open(&venue, key(KEY_B)).expect("the key is good");
    assert!(reader.poll().expect("nothing was traded").is_none());
    // Another account's secret, and a key that was never made.
    for id in [KEY_A, 99] {
        let refused = open(&venue, key(id)).err().expect("it proves nothing");
        assert!(
            matches!(
                refused,
                FeedConnectError::Refused { reason: Some(RefusalReason::NotAuthenticated), .. }
            ),
            "{refused}"
        );
    }
    let name = Name::new("operator").expect("a short name");
    let admin = ClientOptions::new(socket(&venue), Role::Admin, Lane::Cold, name);
    let mut admin = Client::connect(&admin).expect("the engine's user is let in");
    let mut revoke = RevokeKey { key: KeyId(KEY_B), ..Default::default() };
    admin.call(&mut revoke, WATCHDOG).expect("the key is there");
    assert!(eventually(|| reader.is_closed()), "its key is revoked");
    let refused = open(&venue, key(KEY_B)).err().expect("the key is revoked");
    assert!(
        matches!(
            refused,
            FeedConnectError::Refused {
                reason: Some(RefusalReason::Rejected),
                reject: Some(RejectReason::UnknownKey),
            }
        ),
        "{refused}"
    );
}

#[test]
fn without_a_feed_readers_are_told_so() {
    let venue = Venue::up(&[]);
    let refused = open(&venue, None).err().expect("there is none");
    assert!(
        matches!(refused, FeedConnectError::Refused { reason: Some(RefusalReason::NoFeed), .. }),
        "{refused}"
    );
}
