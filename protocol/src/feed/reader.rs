//! The feed behind one connection, whatever carries it: messages in order, and snapshots when some were
//! missed.

use std::time::{Duration, Instant};

use super::FeedOptions;
use super::books::{BookError, Books};
use super::broadcast::{BroadcastReader, Overrun, SlotWords, message_bytes};
use super::connect::{Connection, FeedConnectError, connect};
use super::layout::{MARK_WORD, POSITION_WORD, SLOT_WORDS};
use super::line::{Came, FeedLine};
use super::memory::FeedInput;
use crate::message::decode::{self, DecodeError, FeedMessage};
use crate::message::enums::CloseReason;
use crate::message::feed::{FeedGap, FeedOpened};
use crate::units::{FeedSequence, Incarnation, Position};
use crate::wait::{SHARED_SLEEP_MAX, Waiter};

/// Snapshots that are asked for in one recovery: each was overtaken by the feed while it came.
const ATTEMPTS: u32 = 5;

/// Why the feed gives no message.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The reader was too slow: its books are of no use until it has taken a snapshot.
    #[error(transparent)]
    Overrun(#[from] Overrun),
    /// The engine wrote something that is no message of the feed.
    #[error("message {sequence} of the feed: {source}")]
    Decode {
        /// Which one.
        sequence: FeedSequence,
        /// What is wrong.
        source: DecodeError,
    },
    /// A message does not go with the books, or with the one before it.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The engine ended, or its feed did, and everything was read.
    #[error("the feed has ended behind message {0}")]
    Ended(FeedSequence),
    /// No snapshot came within [`FeedOptions::timeout`], whatever else did, or within that neither a MiB more of one nor
    /// its rest. The connection is sound: the next [`recover`](FeedReader::recover) or [`follow`](FeedReader::follow) waits for the same one.
    #[error("the snapshot that was asked for is late")]
    SnapshotLate,
    /// A snapshot is none that this reader takes, or the connection is of no more use.
    #[error(transparent)]
    Connection(#[from] FeedConnectError),
    /// The books have become larger than this reader takes ([`FeedOptions::snapshot_bytes_max`]): by orders without
    /// an end they would fill its memory.
    #[error("books that make a snapshot of {bytes} bytes, at most {most} are taken")]
    TooLarge {
        /// Bytes that a snapshot of them has.
        bytes: u64,
        /// The reader's bound.
        most: u64,
    },
    /// The feed overtook every snapshot while it came: this reader, or its ring, is too small for it.
    #[error("the feed overtook {ATTEMPTS} snapshots")]
    TooFast,
}

/// Where messages come from.
enum Source {
    /// The engine's memory.
    Ring(BroadcastReader<FeedInput>),
    /// The socket.
    Stream(StreamSource),
}

/// What a reader over a stream knows of the messages to come.
struct StreamSource {
    next: FeedSequence,
    /// The engine has said that some are missing, and nobody has done anything about it.
    overrun: Option<Overrun>,
}

impl StreamSource {
    const fn behind(last: FeedSequence) -> Self {
        Self { next: FeedSequence(last.0.wrapping_add(1)), overrun: None }
    }

    const fn last(&self) -> FeedSequence {
        FeedSequence(self.next.0.wrapping_sub(1))
    }

    /// Copies the next message into `into`; false if it is not there yet.
    fn poll(&mut self, line: &mut FeedLine, into: &mut SlotWords) -> Result<bool, FeedError> {
        if let Some(overrun) = self.overrun {
            return Err(overrun.into());
        }
        if let Some(last) = line.give_up() {
            *self = Self::behind(last);
        }
        let came = loop {
            match line.next(into).map_err(|error| self.fault(error))? {
                Some(Came::Snapshot(head)) if line.give_up_late(&head) => {
                    *self = Self::behind(head.sequence);
                }
                came => break came,
            }
        };
        match came {
            None => Ok(false),
            Some(Came::Message) => {
                self.expect(FeedSequence(into[MARK_WORD]))?;
                *self = Self::behind(self.next);
                Ok(true)
            }
            Some(Came::Gap(gap)) => {
                self.expect(gap.from)?;
                Err(self.missed(gap).into())
            }
            Some(Came::Snapshot(_)) => {
                Err(FeedConnectError::Unexpected("snapshot that was not asked for").into())
            }
        }
    }

    fn fault(&self, error: FeedConnectError) -> FeedError {
        match error {
            FeedConnectError::Closed { reason: Some(CloseReason::FeedEnded) } => {
                FeedError::Ended(self.last())
            }
            error => error.into(),
        }
    }

    /// What came in front of a snapshot that did not come was passed over.
    const fn lost(&mut self) {
        if self.overrun.is_none() {
            self.overrun = Some(Overrun { expected: self.next, found: self.next });
        }
    }

    const fn missed(&mut self, gap: FeedGap) -> Overrun {
        let overrun = Overrun { expected: self.next, found: gap.next };
        *self = Self { next: gap.next, overrun: Some(overrun) };
        overrun
    }

    fn expect(&self, found: FeedSequence) -> Result<(), BookError> {
        if found == self.next {
            return Ok(());
        }
        Err(BookError::Sequence { last: self.last(), found })
    }

    /// Passes over what has come in the connection's first `there` bytes, with the message that they end in.
    fn skip(&mut self, line: &mut FeedLine, there: u64, message: &mut SlotWords) {
        self.overrun = None;
        if let Some(last) = line.give_up() {
            *self = Self::behind(last);
        }
        while line.taken() < there {
            let taken = line.taken();
            match self.poll(line, message) {
                Ok(true) | Err(FeedError::Overrun(_)) => self.overrun = None,
                // A look passes over so many messages only that say nothing.
                Ok(false) if line.taken() > taken => {}
                // An error is told by the next poll too.
                Ok(false) | Err(_) => return,
            }
        }
    }
}

/// A reader of the public feed. Blocking with [`wait`](Self::wait), or poll-style.
///
/// Whoever wants the books goes on like this: [`recover`](Self::recover) gives them as they stood behind
/// some message; [`poll`](Self::poll) gives the messages behind it, each to be applied; and after an
/// overrun the same again. [`follow`](Self::follow) does it all.
///
/// Over shared memory a reader reads at its own pace, and nobody knows of it. Over a stream the engine
/// sends what the reader's socket takes; the reader has to poll or wait now and then, or it counts as
/// silent.
///
/// ```no_run
/// use std::path::PathBuf;
/// use std::time::Duration;
/// use touchline_protocol::feed::books::Books;
/// use touchline_protocol::feed::{FeedOptions, FeedReader};
/// use touchline_protocol::message::enums::Side;
/// use touchline_protocol::text::Name;
///
/// // As the engine's own user; over TCP with the key of a reader in `options.key`.
/// let socket = PathBuf::from("touchline-data/engine.sock");
/// let name = Name::new("my-reader").ok_or("31 characters of ASCII at the most")?;
/// let mut reader = FeedReader::open(&FeedOptions::new(socket, name))?;
/// let mut books = Books::new();
/// while !reader.is_closed() {
///     // Begins with a snapshot, and rebuilds the books from another one if messages were missed.
///     reader.follow(&mut books)?;
///     if let Some(symbol) = books.symbol_named("BTCUSDT") {
///         let [bid, ask] = [Side::Buy, Side::Sell].map(|side| symbol.book.best(side));
///         println!("symbol {}: {bid:?} {ask:?}", symbol.id);
///     }
///     reader.wait(Duration::from_secs(1));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FeedReader {
    source: Source,
    line: FeedLine,
    opened: FeedOpened,
    /// Knows from wait to wait whether pauses are in vain.
    waiter: Waiter,
    message: Box<SlotWords>,
    /// Behind the last transaction of which something was read.
    seen: Option<Position>,
    /// Books were given out, so that the ones that come back with `follow` are no empty ones.
    has_books: bool,
}

impl FeedReader {
    /// Connects to the engine, and maps its broadcast ring if that is the carrier. The first message that
    /// is read is the next one that comes.
    ///
    /// # Errors
    /// See [`FeedConnectError`].
    pub fn open(options: &FeedOptions) -> Result<Self, FeedConnectError> {
        let Connection { opened, memory, line } = connect(options)?;
        let source = match memory {
            Some(memory) => {
                let mut ring = BroadcastReader::new(memory);
                ring.seek(ring.published());
                Source::Ring(ring)
            }
            None => Source::Stream(StreamSource::behind(opened.sequence)),
        };
        Ok(Self {
            source,
            line,
            opened,
            waiter: Waiter::new(options.wait),
            message: Box::new([0; SLOT_WORDS]),
            seen: None,
            has_books: false,
        })
    }

    /// What the engine said when it opened the feed.
    #[must_use]
    pub const fn opened(&self) -> &FeedOpened {
        &self.opened
    }

    /// The last message that the engine has published; over a stream, the last one that was read.
    #[must_use]
    pub fn published(&self) -> FeedSequence {
        match &self.source {
            Source::Ring(ring) => ring.published(),
            Source::Stream(stream) => stream.last(),
        }
    }

    /// The message that is read next.
    #[must_use]
    pub fn next_sequence(&self) -> FeedSequence {
        match &self.source {
            Source::Ring(ring) => ring.next_sequence(),
            Source::Stream(stream) => stream.next,
        }
    }

    /// How far the engine's feed has read the log, in bytes since the log's beginning; all that is public in front
    /// of it is published. While the market is quiet it goes on with what is not public. Over shared memory as
    /// it is now; over a stream as the last heartbeat said that was read, which comes when there was nothing
    /// else for [`FeedOptions::heartbeat_seconds`]; a snapshot that comes behind it may be older, and what is in front
    /// of this position still come. `None` if nothing told it: no heartbeat yet, or an engine older than handshake
    /// 1.5.
    #[must_use]
    pub fn position_read(&self) -> Option<Position> {
        match &self.source {
            Source::Ring(ring) => ring.memory().read_to(),
            Source::Stream(_) => {
                self.line.heartbeat().map(|it| it.feed).filter(|position| position.0 > 0)
            }
        }
    }

    /// How much of the log the engine's feed had not read at the last heartbeat that was read, in bytes; where the
    /// feed follows what is durable, with what was not on disk yet. `None` over shared memory, where
    /// nothing tells the log's end, and where [`position_read`](Self::position_read) is.
    #[must_use]
    pub fn lag(&self) -> Option<u64> {
        let heartbeat = self.line.heartbeat().filter(|it| it.feed.0 > 0)?;
        Some(heartbeat.appended.0.saturating_sub(heartbeat.feed.0))
    }

    /// The engine's incarnation, and the position behind the last transaction of which a message or a snapshot was
    /// read; `None` before the first. Whoever comes back names it ([`FeedOptions::last_seen`]): unless
    /// `feed.follow` is `durable`, the feed tells what a power cut may take back.
    #[must_use]
    pub fn last_seen(&self) -> Option<(Incarnation, Position)> {
        self.seen.map(|position| (self.opened.incarnation, position))
    }

    /// The next message, or `None` if there is none yet. Over a stream none is given either behind some hundred
    /// heartbeats, or parts of a snapshot that nobody waits for, which have come in front of it: the next poll goes on,
    /// and [`wait`](Self::wait) returns at once.
    ///
    /// # Errors
    /// See [`FeedError`]. After an overrun: the same again until [`recover`](Self::recover) or
    /// [`skip`](Self::skip).
    pub fn poll(&mut self) -> Result<Option<FeedMessage<'_>>, FeedError> {
        let is_there = match &mut self.source {
            Source::Ring(ring) => {
                let is_there = ring.poll(&mut self.message)?;
                // The state first: behind it nothing is published any more.
                if !is_there && ring.memory().has_ended() && !ring.has_more() {
                    let last = ring.next_sequence().0.saturating_sub(1);
                    return Err(FeedError::Ended(FeedSequence(last)));
                }
                is_there
            }
            Source::Stream(stream) => stream.poll(&mut self.line, &mut self.message)?,
        };
        if !is_there {
            return Ok(None);
        }
        let sequence = FeedSequence(self.message[MARK_WORD]);
        self.seen = Some(Position(self.message[POSITION_WORD]));
        decode::feed(message_bytes(&self.message))
            .map(Some)
            .map_err(|source| FeedError::Decode { sequence, source })
    }

    /// Passes over everything that is published, or over a stream has come when it is called, however much comes
    /// meanwhile: for readers of trades, who need no books.
    pub fn skip(&mut self) {
        match &mut self.source {
            Source::Ring(ring) => {
                // Messages are read as they are written, which may be before they are published.
                let read = FeedSequence(ring.next_sequence().0.saturating_sub(1));
                let behind = ring.published().max(read);
                ring.seek(behind);
                let polled = ring.poll(&mut self.message);
                // What is written may be more than a lap ahead of what is published.
                ring.seek(polled.map_or_else(|overrun| overrun.found, |_| behind));
            }
            Source::Stream(stream) => {
                let there = self.line.there();
                stream.skip(&mut self.line, there, &mut self.message);
            }
        }
    }

    /// The books behind some message; the message behind that one is read next. Over shared memory it
    /// is there. An engine that talks on and on holds this up no longer than one that says nothing:
    /// [`FeedOptions::timeout`] for each thing that is waited for.
    ///
    /// # Errors
    /// If no snapshot comes within [`FeedOptions::timeout`] ([`FeedError::SnapshotLate`]), one is longer than this reader takes, or the feed
    /// overtakes each. The next call waits for the one that was asked for, and asks anew behind one that is too
    /// long; until one has come, a poll over a stream says that messages are missing.
    pub fn recover(&mut self) -> Result<Books, FeedError> {
        for _ in 0..ATTEMPTS {
            let came = self.line.snapshot();
            if let (Source::Stream(stream), Err(_) | Ok(None)) = (&mut self.source, &came) {
                stream.lost();
            }
            let books = came.map_err(|error| match &self.source {
                Source::Ring(_) => error.into(),
                Source::Stream(stream) => stream.fault(error),
            });
            let books = books?.ok_or(FeedError::SnapshotLate)?;
            let is_overtaken = match &mut self.source {
                Source::Ring(ring) => {
                    ring.seek(books.sequence());
                    let polled = ring.poll(&mut self.message);
                    ring.seek(books.sequence());
                    polled.is_err()
                }
                // The engine goes on behind the snapshot, or says that it could not.
                Source::Stream(stream) => {
                    *stream = StreamSource::behind(books.sequence());
                    false
                }
            };
            if !is_overtaken {
                self.has_books = true;
                self.seen = Some(books.position());
                return Ok(books);
            }
        }
        Err(FeedError::TooFast)
    }

    /// Applies everything to `books` that is there when it is called, however much comes meanwhile, and makes them
    /// anew where that is needed; returns the number of messages. What came meanwhile the next call applies, for which
    /// [`wait`](Self::wait) does not wait. The last message may be in the middle of a transaction
    /// ([`Books::in_transaction`]). At the first call `books` may be [`Books::new`].
    ///
    /// # Errors
    /// See [`FeedError`]; an overrun is none.
    pub fn follow(&mut self, books: &mut Books) -> Result<u64, FeedError> {
        let goes_on = books.sequence().0.checked_add(1) == Some(self.next_sequence().0);
        if !(self.has_books && goes_on) {
            *books = self.recover()?;
        }
        let there = self.there();
        self.follow_to(there, books)
    }

    /// How far the feed is there now: sequences of a ring, bytes of a stream.
    fn there(&self) -> u64 {
        match &self.source {
            Source::Ring(ring) => ring.published().0,
            Source::Stream(_) => self.line.there(),
        }
    }

    /// All in front of this is read.
    fn has_read(&self, there: u64) -> bool {
        match &self.source {
            Source::Ring(ring) => ring.next_sequence().0 > there,
            Source::Stream(_) => self.line.taken() >= there,
        }
    }

    /// Applies what is there; behind it no more than one message.
    fn follow_to(&mut self, there: u64, books: &mut Books) -> Result<u64, FeedError> {
        let (mut applied, mut recoveries) = (0, 0);
        loop {
            match self.poll() {
                Ok(Some(message)) => match books.apply(message) {
                    Ok(()) => {
                        applied += 1;
                        let (bytes, most) =
                            (books.snapshot_bytes(), self.line.snapshot_bytes_max());
                        if bytes > most {
                            return Err(FeedError::TooLarge { bytes, most });
                        }
                        if self.has_read(there) {
                            return Ok(applied);
                        }
                        continue;
                    }
                    // A snapshot that nobody waited for any more has come meanwhile, and this is what comes behind it.
                    Err(BookError::Sequence { .. }) => {}
                    Err(error) => return Err(error.into()),
                },
                Ok(None) => return Ok(applied),
                Err(FeedError::Overrun(_)) => {}
                Err(error) => return Err(error),
            }
            if recoveries == ATTEMPTS {
                return Err(FeedError::TooFast);
            }
            recoveries += 1;
            *books = self.recover()?;
        }
    }

    /// Waits until there is a message, or the engine has said that none can come any more, at most for `limit`; returns
    /// whether a poll may tell something.
    ///
    /// Over shared memory an engine that was killed says nothing: this ends with its `limit`, each time, and
    /// [`poll`](Self::poll) and [`follow`](Self::follow) go on saying that there is nothing new. So who waits there asks
    /// [`is_closed`](Self::is_closed) now and then, at the latest when this gives false.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let begin = Instant::now();
        loop {
            let (seen, is_ready) = match &mut self.source {
                Source::Ring(ring) => {
                    // The count first: what comes behind it ends the sleep.
                    let seen = ring.memory().events().current();
                    (seen, ring.has_more() || ring.memory().has_ended())
                }
                Source::Stream(stream) => (0, stream.overrun.is_some() || self.line.has_more()),
            };
            if is_ready {
                self.waiter.reset();
                return true;
            }
            let Some(left) = limit.checked_sub(begin.elapsed()) else {
                self.waiter.step_down();
                return false;
            };
            if self.waiter.linger() {
                continue;
            }
            match &self.source {
                Source::Ring(ring) => {
                    ring.memory().events().wait_changed(seen, left.min(SHARED_SLEEP_MAX));
                }
                Source::Stream(_) => self.line.sleep(left),
            }
        }
    }

    /// Looks whether the engine has closed the connection, as it does when it ends, dies or revokes the
    /// key; a system call. Over shared memory a reader whose engine was killed waits for ever without it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.line.is_closed()
    }
}

#[cfg(test)]
mod tests;
