//! A reader that does whatever it likes beside an engine that does whatever it may: pieces of messages, gaps,
//! snapshots that are old, late, or overtaken. Whatever its books say behind a call that told no error is what was
//! true behind the message that they name, and once the engine says all and rests, they come to the end.

#[path = "../../../../../tests/support/split_mix.rs"]
mod split_mix;

use super::*;
use crate::message::enums::Side;
use crate::message::feed::{
    FEED_FLAGS_OFFSET, FEED_LAST, FeedOrderAdded, FeedOrderDeleted, FeedOrderReplaced,
};
use crate::message::stream::Heartbeat;
use crate::units::OrderId;
use split_mix::SplitMix64;

/// Numbers that look random.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// How far a reader may be behind before what it lacks is told as a gap.
const LAP: u64 = 40;

/// All that is true: every message, and the books behind each.
struct Market {
    books: Books,
    messages: Vec<SlotWords>,
    /// By sequence.
    history: Vec<(FeedSnapshot, Vec<u8>)>,
    /// The last message that ends a transaction.
    whole: u64,
    orders: u64,
}

impl Market {
    fn new() -> Self {
        let books = Books::new();
        let history = vec![books.to_snapshot(Incarnation(1))];
        Self { books, messages: vec![[0; SLOT_WORDS]], history, whole: 0, orders: 0 }
    }

    fn last(&self) -> u64 {
        self.books.sequence().0
    }

    fn say<M: Message>(&mut self, message: &M, is_last: bool) {
        let mut words = [0; SLOT_WORDS];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[..size_of::<M>()].copy_from_slice(bytemuck::bytes_of(message));
        bytes[FEED_FLAGS_OFFSET] |= if is_last { FEED_LAST } else { 0 };
        words[MARK_WORD] = self.last() + 1;
        words[POSITION_WORD] = 4096 + 64 * (self.whole + 1);
        self.books.apply(decode::feed(message_bytes(&words)).unwrap()).unwrap();
        self.messages.push(words);
        self.history.push(self.books.to_snapshot(Incarnation(1)));
        self.whole = if is_last { self.last() } else { self.whole };
    }

    /// A transaction of a few messages.
    fn go_on(&mut self, random: &mut Random) {
        let count = 1 + random.below(4);
        for left in (0..count).rev() {
            self.one(random, left == 0);
        }
    }

    fn one(&mut self, random: &mut Random, is_last: bool) {
        let symbols = self.books.symbols().len() as u64;
        if symbols == 0 || random.once_in(20) {
            let symbol = SymbolId(random.below(symbols.min(3) + 1) as u32);
            let status = 1 + random.below(2) as u8;
            let name = crate::text::SymbolName::new("ONE").unwrap();
            return self
                .say(&FeedSymbolChanged { symbol, status, name, ..Default::default() }, is_last);
        }
        let symbol = SymbolId(random.below(symbols) as u32);
        let side = [Side::Buy, Side::Sell][random.below(2) as usize];
        let price = 1 + random.below(4) as i64;
        let known: Vec<_> = self.books.symbol(symbol).unwrap().book.orders(side).copied().collect();
        let some = (!known.is_empty()).then(|| known[random.below(known.len() as u64) as usize]);
        match (random.below(4), some) {
            (0, Some(order)) => {
                let quantity = 1 + random.below(order.quantity as u64) as i64;
                let (order_id, price) = (order.order_id, order.price);
                let aggressor_side = side.opposite().to_wire();
                let trade = FeedTrade {
                    symbol,
                    aggressor_side,
                    order_id,
                    price,
                    quantity,
                    ..Default::default()
                };
                self.say(&trade, is_last);
            }
            (1, Some(order)) => {
                let deleted = FeedOrderDeleted {
                    symbol,
                    side: side.to_wire(),
                    order_id: order.order_id,
                    price: order.price,
                    quantity: order.quantity,
                    ..Default::default()
                };
                self.say(&deleted, is_last);
            }
            (2, Some(order)) => {
                let replaced = FeedOrderReplaced {
                    symbol,
                    side: side.to_wire(),
                    order_id: order.order_id,
                    price,
                    quantity: 1 + random.below(9) as i64,
                    old_price: order.price,
                    old_quantity: order.quantity,
                    ..Default::default()
                };
                self.say(&replaced, is_last);
            }
            _ => {
                self.orders += 1;
                let added = FeedOrderAdded {
                    symbol,
                    side: side.to_wire(),
                    order_id: OrderId(self.orders),
                    price,
                    quantity: 1 + random.below(9) as i64,
                    ..Default::default()
                };
                self.say(&added, is_last);
            }
        }
    }

    fn check(&self, books: &Books) {
        let (head, body) = books.to_snapshot(Incarnation(1));
        let (true_head, true_body) = &self.history[head.sequence.0 as usize];
        assert!(head.sequence.0 <= self.last());
        assert!(head == *true_head && body == *true_body, "behind message {}", head.sequence);
    }
}

/// The engine's side of the connection, and of the ring if there is one.
struct Engine {
    market: Market,
    far: UnixStream,
    ring: Option<Broadcaster<FeedOutput>>,
    /// Written to the ring up to here, or sent.
    given: u64,
    /// What the socket has not taken.
    unsent: Vec<u8>,
    asked: bool,
    heard: Vec<u8>,
}

impl Engine {
    /// Takes what the reader says: never a second request while one is owed.
    fn listen(&mut self) {
        let mut bytes = [0; 1024];
        while let Ok(count) = self.far.read(&mut bytes) {
            assert!(count > 0, "the reader is there");
            self.heard.extend_from_slice(&bytes[..count]);
        }
        while self.heard.len() >= 16 {
            assert!(!self.asked, "it asks while it is owed a snapshot");
            self.asked = true;
            self.heard.drain(..size_of::<FeedRequest>());
        }
    }

    fn queue<M: Message>(&mut self, message: &M) {
        self.unsent.extend_from_slice(bytemuck::bytes_of(message));
    }

    /// Sends so many bytes at the most.
    fn push(&mut self, most: usize) {
        let piece = &self.unsent[..most.min(self.unsent.len())];
        match self.far.write(piece) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }

    fn snapshot(&mut self, sequence: u64) {
        self.asked = false;
        let (head, body) = self.market.history[sequence as usize].clone();
        self.queue(&head);
        self.unsent.extend_from_slice(&body);
        if self.ring.is_none() {
            self.given = sequence;
        }
    }

    /// The ring has what there is, or only a part of a transaction of it.
    fn write_ring(&mut self, upto: u64, publishes: bool) {
        let Some(ring) = &mut self.ring else { return };
        while self.given < upto {
            self.given += 1;
            ring.write(&mut self.market.messages[self.given as usize].clone());
        }
        if publishes {
            ring.publish();
        }
    }

    fn send_live(&mut self, most: u64) {
        if self.ring.is_some() || self.asked || !self.unsent.is_empty() {
            return;
        }
        let last = self.market.last();
        if last - self.given > LAP {
            let [from, next] = [self.given + 1, last + 1].map(FeedSequence);
            self.queue(&FeedGap { from, next, ..Default::default() });
            self.given = last;
        }
        for _ in 0..most.min(last - self.given) {
            self.given += 1;
            let words = self.market.messages[self.given as usize];
            self.unsent.extend_from_slice(message_bytes(&words));
        }
    }

    /// A little of anything.
    fn act(&mut self, random: &mut Random) {
        self.listen();
        match random.below(8) {
            0..=2 => {
                let much = if random.once_in(30) { 500 } else { 3 };
                (0..random.below(much)).for_each(|_| self.market.go_on(random));
                let last = self.market.last();
                let upto = last.saturating_sub(random.below(3)).max(self.given);
                if random.once_in(3) {
                    self.write_ring(upto, false);
                } else {
                    self.write_ring(last, true);
                }
            }
            3 => self.send_live(1 + random.below(50)),
            4 if self.asked && self.unsent.is_empty() => {
                // Not older than a quarter of a lap, and whole.
                let lap = if self.ring.is_some() { u64::from(SLOTS_MIN) } else { LAP };
                let newest = self.given.min(self.market.last());
                let mut sequence =
                    if random.once_in(2) { self.market.whole.min(newest) } else { newest };
                sequence = sequence.saturating_sub(random.below(lap / 4));
                let is_whole = |at: u64| {
                    at == 0 || {
                        let bytes: &[u8] = bytemuck::cast_slice(&self.market.messages[at as usize]);
                        bytes[FEED_FLAGS_OFFSET] & FEED_LAST != 0
                    }
                };
                while !is_whole(sequence) {
                    sequence -= 1;
                }
                self.snapshot(sequence);
            }
            5 if self.ring.is_none() && self.unsent.is_empty() => self.queue(&Heartbeat::default()),
            _ => {
                let most = [1 + random.below(100) as usize, usize::MAX][random.below(2) as usize];
                self.push(most);
            }
        }
    }

    /// Says all, and rests.
    fn finish(&mut self) {
        self.listen();
        self.write_ring(self.market.last(), true);
        self.push(usize::MAX);
        if self.asked && self.unsent.is_empty() {
            self.snapshot(self.market.whole);
        }
        self.send_live(u64::MAX);
        self.push(usize::MAX);
    }
}

/// What the reader does; whether its books are to be made anew.
fn read_on(
    random: &mut Random,
    reader: &mut FeedReader,
    books: &mut Books,
) -> Result<(), FeedError> {
    match random.below(12) {
        0..=5 => reader.follow(books).map(drop),
        6 => {
            *books = reader.recover()?;
            Ok(())
        }
        7..=9 => {
            // By hand, as the description of the reader says.
            if !reader.has_books || books.sequence().0 + 1 != reader.next_sequence().0 {
                *books = reader.recover()?;
            }
            match reader.poll() {
                Ok(Some(message)) => Ok(books.apply(message)?),
                Ok(None) => Ok(()),
                Err(FeedError::Overrun(_)) => {
                    *books = reader.recover()?;
                    Ok(())
                }
                Err(error) => Err(error),
            }
        }
        10 => {
            reader.skip();
            Ok(())
        }
        _ => {
            reader.wait(Duration::ZERO);
            Ok(())
        }
    }
}

fn run(seed: u64) {
    eprintln!("TOUCHLINE_SEED={seed}");
    let mut random = Random(SplitMix64(seed));
    let (near, far) = UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
    options.timeout = Duration::from_micros(random.below(3) * 100);
    let is_small = random.once_in(4);
    options.snapshot_bytes_max = if is_small { 2000 } else { 1 << 30 };
    let is_ring = random.once_in(2);
    let mut market = Market::new();
    (0..random.below(30)).for_each(|_| market.go_on(&mut random));
    let given = market.last();
    let (source, ring) = if is_ring {
        let (output, memory) = FeedOutput::create(SLOTS_MIN, Incarnation(1), [0; 16]).unwrap();
        let input = FeedInput::map(memory.as_fd(), SLOTS_MIN).unwrap();
        (Source::Ring(BroadcastReader::new(input)), Some(Broadcaster::new(output)))
    } else {
        (Source::Stream(StreamSource::behind(FeedSequence(given))), None)
    };
    let mut engine = Engine {
        market,
        far,
        given: if is_ring { 0 } else { given },
        ring,
        unsent: Vec::new(),
        asked: false,
        heard: Vec::new(),
    };
    engine.write_ring(given, true);
    let mut reader = reader_over(source, near, &options);
    let mut books = Books::new();
    for _ in 0..300 {
        (0..random.below(4)).for_each(|_| engine.act(&mut random));
        match read_on(&mut random, &mut reader, &mut books) {
            Ok(()) if reader.has_books => engine.market.check(&books),
            Ok(()) => {}
            Err(FeedError::SnapshotLate | FeedError::TooFast | FeedError::Overrun(_)) => {}
            Err(
                FeedError::Connection(FeedConnectError::TooLong { .. })
                | FeedError::TooLarge { .. },
            ) if is_small => {}
            // By hand, behind a snapshot that was given up and comes after all.
            Err(FeedError::Book(BookError::Sequence { .. })) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
        if reader.has_books {
            engine.market.check(&books);
        }
    }
    for _ in 0..200 {
        engine.finish();
        match reader.follow(&mut books) {
            Ok(_) if books.sequence() == FeedSequence(engine.market.last()) => {
                return engine.market.check(&books);
            }
            Err(
                FeedError::Connection(FeedConnectError::TooLong { .. })
                | FeedError::TooLarge { .. },
            ) if is_small => return,
            Ok(_) | Err(FeedError::SnapshotLate | FeedError::TooFast) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    panic!("seed {seed}: it never comes to the end");
}

#[test]
fn books_are_true_or_made_anew() {
    let asked = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = asked("TOUCHLINE_SEED").unwrap_or(0);
    (first..first + asked("TOUCHLINE_CASES").unwrap_or(40)).for_each(run);
}
