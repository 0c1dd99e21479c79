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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::Wait;
    use touchline_protocol::message::decode::FeedMessage;
    use touchline_protocol::message::feed::FeedSymbolChanged;

    /// Books behind this message, which has changed a symbol.
    fn go_on(books: &mut Books, sequence: u64) {
        let changed =
            FeedSymbolChanged { sequence: FeedSequence(sequence), status: 1, ..Default::default() };
        books.apply(FeedMessage::FeedSymbolChanged(&changed)).unwrap();
    }

    /// Asks, and waits until it is not too early any more.
    fn get(snapshots: &mut Snapshots, books: &Books, tickets: &[usize]) -> Arc<Snapshot> {
        tickets.iter().for_each(|ticket| snapshots.ask(*ticket));
        let wait = Wait::begin();
        loop {
            wait.go_on("there is none");
            if let Some((served, snapshot)) = snapshots.serve(books) {
                assert_eq!(served, tickets);
                return snapshot;
            }
        }
    }

    #[test]
    fn those_who_ask_together_get_the_same_until_the_feed_has_gone_on() {
        let (mut snapshots, mut books) = (Snapshots::new(Incarnation(1), 8), Books::new());
        let first = get(&mut snapshots, &books, &[1, 2]);
        let has_same = |snapshots: &mut Snapshots, books: &Books| {
            Arc::ptr_eq(&first, &get(snapshots, books, &[3]))
        };
        assert!(has_same(&mut snapshots, &books));
        go_on(&mut books, 1);
        go_on(&mut books, 2);
        assert!(has_same(&mut snapshots, &books), "a quarter of a lap");
        go_on(&mut books, 3);
        let next = get(&mut snapshots, &books, &[4]);
        assert_eq!((first.sequence(), next.sequence()), (FeedSequence(0), FeedSequence(3)));
        // Nobody waits: what no reader holds is gone.
        let seen = Arc::downgrade(&next);
        drop(next);
        assert!(snapshots.serve(&books).is_none());
        assert_eq!(seen.strong_count(), 0);
    }

    #[test]
    fn so_many_are_in_memory_and_the_next_waits_for_one_of_them() {
        let (mut snapshots, books) = (Snapshots::new(Incarnation(1), 8), Books::new());
        let mut held = Vec::new();
        for ticket in 0..ALIVE_MAX {
            held.push(get(&mut snapshots, &books, &[ticket]));
            assert!(snapshots.serve(&books).is_none());
        }
        snapshots.ask(9);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(20) {
            assert!(snapshots.serve(&books).is_none(), "it is one too many");
        }
        assert!(snapshots.is_wanted());
        held.pop();
        let wait = Wait::begin();
        while snapshots.serve(&books).is_none() {
            wait.go_on("there is none");
        }
    }
}
