//! Snapshots of the public books, made when a reader asks: one for all who ask at about the same time,
//! a bounded number of them in memory, and a bounded share of the feed thread's time. Called by the feed
//! thread.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use touchline_protocol::feed::books::Books;
use touchline_protocol::units::{FeedSequence, Incarnation};

/// Snapshots that may be in memory at once: the next one waits until readers have taken one of them.
const ALIVE_MAX: usize = 4;

/// Behind the making of a snapshot no other is made for so many times as long as it took.
const REST: u32 = 9;

/// A snapshot as it goes over a socket: its head, and the messages behind it.
#[derive(Debug)]
pub struct Snapshot {
    bytes: Vec<u8>,
    sequence: FeedSequence,
}

impl Snapshot {
    /// One of so many bytes, for tests of those who pass it on.
    #[cfg(test)]
    pub(crate) fn of_zeros(bytes: usize, sequence: FeedSequence) -> Self {
        Self { bytes: vec![0; bytes], sequence }
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The last message that is in it.
    #[must_use]
    pub const fn sequence(&self) -> FeedSequence {
        self.sequence
    }
}

/// Who asked, and what was made of late.
pub(super) struct Snapshots {
    incarnation: Incarnation,
    /// A snapshot serves while the feed is no further ahead of it.
    lag_max: u64,
    waiting: VecDeque<usize>,
    latest: Option<Arc<Snapshot>>,
    alive: Vec<Weak<Snapshot>>,
    next_at: Option<Instant>,
}

impl Snapshots {
    /// For a ring of `slots` slots: a reader has three quarters of a lap to read its snapshot.
    pub(super) const fn new(incarnation: Incarnation, slots: u64) -> Self {
        Self {
            incarnation,
            lag_max: slots / 4,
            waiting: VecDeque::new(),
            latest: None,
            alive: Vec::new(),
            next_at: None,
        }
    }

    pub(super) fn ask(&mut self, ticket: usize) {
        self.waiting.push_back(ticket);
    }

    /// True while somebody waits.
    pub(super) fn is_wanted(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Those who get `books`, which are whole, as a snapshot now; none if it is too early for one.
    pub(super) fn serve(&mut self, books: &Books) -> Option<(Vec<usize>, Arc<Snapshot>)> {
        if self.waiting.is_empty() {
            // Nobody is to keep the memory but readers.
            self.latest = None;
            return None;
        }
        let fresh =
            |latest: &&Arc<Snapshot>| books.sequence().0 - latest.sequence.0 <= self.lag_max;
        let snapshot = match self.latest.as_ref().filter(fresh) {
            Some(latest) => Arc::clone(latest),
            None => self.make(books)?,
        };
        Some((self.waiting.drain(..).collect(), snapshot))
    }

    fn make(&mut self, books: &Books) -> Option<Arc<Snapshot>> {
        let begin = Instant::now();
        self.latest = None;
        self.alive.retain(|one| one.strong_count() > 0);
        if self.alive.len() >= ALIVE_MAX || self.next_at.is_some_and(|at| begin < at) {
            return None;
        }
        let (head, body) = books.to_snapshot(self.incarnation);
        let bytes = [bytemuck::bytes_of(&head), &body].concat();
        let made = Arc::new(Snapshot { bytes, sequence: head.sequence });
        self.alive.push(Arc::downgrade(&made));
        let rest = begin.elapsed().saturating_mul(REST).min(Duration::from_secs(60));
        self.next_at = Some(Instant::now() + rest);
        self.latest = Some(Arc::clone(&made));
        Some(made)
    }
}
