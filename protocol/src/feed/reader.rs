//! The feed behind one connection: the broadcast ring, and snapshots when it was missed.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::FeedOptions;
use super::books::{BookError, Books};
use super::broadcast::{BroadcastReader, Overrun, SlotWords, message_bytes};
use super::connect::{FeedConnectError, FeedLine};
use super::layout::SLOT_WORDS;
use super::memory::FeedInput;
use crate::message::decode::{self, DecodeError, FeedMessage};
use crate::message::feed::FeedOpened;
use crate::units::FeedSequence;
use crate::wait::{WaitStrategy, Waiter};

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
    /// A message does not go with the books.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The engine ended, or its feed did, and everything was read.
    #[error("the feed has ended behind message {0}")]
    Ended(FeedSequence),
    /// A snapshot did not come.
    #[error(transparent)]
    Snapshot(#[from] FeedConnectError),
    /// The feed overtook every snapshot while it came: this reader, or its ring, is too small for it.
    #[error("the feed overtook {ATTEMPTS} snapshots")]
    TooFast,
}

/// A reader of the public feed. Blocking with [`wait`](Self::wait), or poll-style.
///
/// Whoever wants the books goes on like this: [`recover`](Self::recover) gives them as they stood behind
/// some message; [`poll`](Self::poll) gives the messages behind it, each to be applied; and after an
/// overrun the same again. [`follow`](Self::follow) does it all.
pub struct FeedReader {
    ring: BroadcastReader<FeedInput>,
    line: FeedLine,
    opened: FeedOpened,
    wait: WaitStrategy,
    message: Box<SlotWords>,
    /// Books were given out, so that the ones that come back with `follow` are no empty ones.
    has_books: bool,
}

impl FeedReader {
    /// Connects to the engine and maps its broadcast ring. The first message that is read is the next
    /// one that comes.
    ///
    /// # Errors
    /// See [`FeedConnectError`].
    pub fn open(options: &FeedOptions) -> Result<Self, FeedConnectError> {
        let (line, opened, memory) = FeedLine::open(options)?;
        let mut ring = BroadcastReader::new(FeedInput::map(memory.as_fd(), opened.slots)?);
        ring.seek(ring.published());
        Ok(Self {
            ring,
            line,
            opened,
            wait: options.wait,
            message: Box::new([0; SLOT_WORDS]),
            has_books: false,
        })
    }

    /// What the engine said when it opened the feed.
    #[must_use]
    pub const fn opened(&self) -> &FeedOpened {
        &self.opened
    }

    /// The last message that the engine has published.
    #[must_use]
    pub fn published(&self) -> FeedSequence {
        self.ring.published()
    }

    /// The message that is read next.
    #[must_use]
    pub fn next_sequence(&self) -> FeedSequence {
        self.ring.next_sequence()
    }

    /// The next message, or `None` if there is none yet.
    ///
    /// # Errors
    /// See [`FeedError`]. After an overrun: the same again until [`recover`](Self::recover) or
    /// [`skip`](Self::skip).
    pub fn poll(&mut self) -> Result<Option<FeedMessage<'_>>, FeedError> {
        if !self.ring.poll(&mut self.message)? {
            // The state first: behind it nothing is published any more.
            if self.ring.memory().has_ended() && !self.ring.has_more() {
                return Err(FeedError::Ended(FeedSequence(
                    self.ring.next_sequence().0.saturating_sub(1),
                )));
            }
            return Ok(None);
        }
        let sequence = FeedSequence(self.message[super::layout::MARK_WORD]);
        decode::feed(message_bytes(&self.message))
            .map(Some)
            .map_err(|source| FeedError::Decode { sequence, source })
    }

    /// Passes over everything that is published: for readers of trades, who need no books.
    pub fn skip(&mut self) {
        self.ring.seek(self.ring.published());
    }

    /// The books behind some message; the message behind that one is read next, and is there.
    ///
    /// # Errors
    /// If no snapshot comes, or the feed overtakes each.
    pub fn recover(&mut self) -> Result<Books, FeedError> {
        for _ in 0..ATTEMPTS {
            let books = self.line.snapshot()?;
            self.ring.seek(books.sequence());
            match self.ring.poll(&mut self.message) {
                Err(Overrun { .. }) => {}
                Ok(_) => {
                    self.ring.seek(books.sequence());
                    self.has_books = true;
                    return Ok(books);
                }
            }
        }
        Err(FeedError::TooFast)
    }

    /// Applies everything that is there to `books`, and makes them anew where that is needed; returns
    /// the number of messages. At the first call `books` may be [`Books::new`].
    ///
    /// # Errors
    /// See [`FeedError`]; an overrun is none.
    pub fn follow(&mut self, books: &mut Books) -> Result<u64, FeedError> {
        let mut applied = 0;
        let goes_on = books.sequence().0.checked_add(1) == Some(self.ring.next_sequence().0);
        if !(self.has_books && goes_on) {
            *books = self.recover()?;
        }
        loop {
            match self.poll() {
                Ok(Some(message)) => {
                    books.apply(message)?;
                    applied += 1;
                }
                Ok(None) => return Ok(applied),
                Err(FeedError::Overrun(_)) => *books = self.recover()?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until there is a message, or none can come any more, at most for `limit`; returns whether a
    /// poll would tell something.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let begin = Instant::now();
        let mut waiter = Waiter::new(self.wait);
        loop {
            let seen = self.ring.memory().events().current();
            if self.ring.has_more() || self.ring.memory().has_ended() {
                return true;
            }
            let Some(left) = limit.checked_sub(begin.elapsed()) else { return false };
            waiter.idle_or(|| {
                self.ring.memory().events().wait_changed(seen, left);
            });
        }
    }

    /// Looks whether the engine has closed the connection, as it does when it ends, dies or revokes the
    /// key; a system call. Without it a reader whose engine was killed waits for ever.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.line.is_closed()
    }
}
