//! Snapshots of the public books, made when a reader asks: one for all who ask at about the same time,
//! a bounded number of them in memory and with each key, and a bounded share of the feed thread's time. Called by
//! the feed thread.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use touchline_protocol::feed::books::Books;
use touchline_protocol::units::{FeedSequence, Incarnation, KeyId};

/// Snapshots that may be in memory at once: the next one waits until readers have taken one of them.
pub const ALIVE_MAX: usize = 4;

/// Of those, snapshots that readers of one key may have at once: no single key takes all. The engine's own user
/// is not limited.
pub const OF_KEY_MAX: usize = ALIVE_MAX / 2;

/// Behind the making of a snapshot no other is made for so many times as long as it took.
const REST: u32 = 9;

/// How often it is told that somebody waits in vain.
const TELL_EVERY: Duration = Duration::from_millis(250);

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

/// A snapshot with the readers of one key, who have the same one of these: while it is held the snapshot is in
/// memory, and counts as that key's.
#[derive(Debug)]
pub struct Share {
    snapshot: Arc<Snapshot>,
    key: KeyId,
}

impl Share {
    /// For readers of this key; 0: of the engine's own user.
    pub(crate) const fn new(snapshot: Arc<Snapshot>, key: KeyId) -> Self {
        Self { snapshot, key }
    }
}

impl std::ops::Deref for Share {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// What is in the way of a snapshot that somebody waits for: others that readers have not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InTheWay {
    /// There are as many as may be.
    All,
    /// This key has as many as it may have.
    OfKey(KeyId),
}

/// Who asked, and what was made of late.
pub(super) struct Snapshots {
    incarnation: Incarnation,
    /// A snapshot serves while the feed is no further ahead of it.
    lag_max: u64,
    waiting: VecDeque<(usize, KeyId)>,
    /// In memory as long as readers want, in the order in which they were made.
    alive: Vec<Weak<Snapshot>>,
    shares: Vec<(KeyId, Weak<Share>)>,
    next_at: Option<Instant>,
    told_at: Option<Instant>,
}

impl Snapshots {
    /// For a ring of `slots` slots: a reader has three quarters of a lap to read its snapshot.
    pub(super) const fn new(incarnation: Incarnation, slots: u64) -> Self {
        Self {
            incarnation,
            lag_max: slots / 4,
            waiting: VecDeque::new(),
            alive: Vec::new(),
            shares: Vec::new(),
            next_at: None,
            told_at: None,
        }
    }

    pub(super) fn ask(&mut self, ticket: usize, key: KeyId) {
        self.waiting.push_back((ticket, key));
    }

    /// Who asked waits no more.
    pub(super) fn give_up(&mut self, ticket: usize) {
        self.waiting.retain(|(waiting, _)| *waiting != ticket);
    }

    /// True while somebody waits.
    pub(super) fn is_wanted(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Those who get `books`, which are whole, as a snapshot now; none if it is too early for one, or there is no
    /// room.
    pub(super) fn serve(&mut self, books: &Books) -> Vec<(usize, Arc<Share>)> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        self.alive.retain(|one| one.strong_count() > 0);
        self.shares.retain(|(_, share)| share.strong_count() > 0);
        let newest = self.alive.last().and_then(Weak::upgrade);
        let is_fresh = |one: &Arc<Snapshot>| books.sequence().0 - one.sequence.0 <= self.lag_max;
        let snapshot = match newest.filter(is_fresh) {
            Some(newest) => newest,
            None => match self.make(books) {
                Some(made) => made,
                None => return Vec::new(),
            },
        };
        let mut served = Vec::new();
        for (ticket, key) in std::mem::take(&mut self.waiting) {
            match self.share(&snapshot, key) {
                Some(share) => served.push((ticket, share)),
                None => self.waiting.push_back((ticket, key)),
            }
        }
        served
    }

    /// What is in the way of those who wait, if it is not the time alone and was not told a moment ago.
    pub(super) fn in_the_way(&mut self, now: Instant) -> Option<InTheWay> {
        let (_, first) = *self.waiting.front()?;
        let waits_for_key = self.waiting.iter().all(|(_, key)| self.is_full(*key));
        let found = if waits_for_key {
            InTheWay::OfKey(first)
        } else if self.alive.len() >= ALIVE_MAX {
            InTheWay::All
        } else {
            return None;
        };
        if self.told_at.is_some_and(|told| now.duration_since(told) < TELL_EVERY) {
            return None;
        }
        self.told_at = Some(now);
        Some(found)
    }

    /// True if readers of this key have as many snapshots as they may.
    fn is_full(&self, key: KeyId) -> bool {
        let of_key = || self.shares.iter().filter(|(of, _)| *of == key).count();
        key.0 != 0 && of_key() >= OF_KEY_MAX
    }

    /// The key's share of a snapshot, if it has one or may have one.
    fn share(&mut self, snapshot: &Arc<Snapshot>, key: KeyId) -> Option<Arc<Share>> {
        let of_key = self.shares.iter().filter(|(of, _)| *of == key);
        let mut shares = of_key.filter_map(|(_, share)| share.upgrade());
        if let Some(share) = shares.find(|share| Arc::ptr_eq(&share.snapshot, snapshot)) {
            return Some(share);
        }
        if self.is_full(key) {
            return None;
        }
        let share = Arc::new(Share::new(Arc::clone(snapshot), key));
        self.shares.push((share.key, Arc::downgrade(&share)));
        Some(share)
    }

    fn make(&mut self, books: &Books) -> Option<Arc<Snapshot>> {
        let begin = Instant::now();
        if self.alive.len() >= ALIVE_MAX
            || self.next_at.is_some_and(|at| begin < at)
            || self.waiting.iter().all(|(_, key)| self.is_full(*key))
        {
            return None;
        }
        let (head, body) = books.to_snapshot(self.incarnation);
        let bytes = [bytemuck::bytes_of(&head), &body].concat();
        let made = Arc::new(Snapshot { bytes, sequence: head.sequence });
        self.alive.push(Arc::downgrade(&made));
        let rest = begin.elapsed().saturating_mul(REST).min(Duration::from_secs(60));
        self.next_at = Some(Instant::now() + rest);
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

    const OWN_USER: KeyId = KeyId(0);

    /// Waits until it is not too early any more; who gets the snapshot, and what it is.
    fn served(snapshots: &mut Snapshots, books: &Books) -> (Vec<usize>, Arc<Share>) {
        let wait = Wait::begin();
        loop {
            wait.go_on("there is none");
            let (tickets, shares): (Vec<_>, Vec<_>) = snapshots.serve(books).into_iter().unzip();
            if let Some(first) = shares.first() {
                assert!(shares.iter().all(|one| Arc::ptr_eq(&one.snapshot, &first.snapshot)));
                return (tickets, Arc::clone(first));
            }
        }
    }

    /// Asks for readers of this key, and waits.
    fn get(
        snapshots: &mut Snapshots,
        books: &Books,
        (tickets, key): (&[usize], KeyId),
    ) -> Arc<Share> {
        tickets.iter().for_each(|ticket| snapshots.ask(*ticket, key));
        let (served, share) = served(snapshots, books);
        assert_eq!(served, tickets);
        share
    }

    /// Nothing comes for so long that it is not the time which is in the way.
    fn assert_none(snapshots: &mut Snapshots, books: &Books) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(20) {
            assert!(snapshots.serve(books).is_empty(), "it is one too many");
        }
        assert!(snapshots.is_wanted());
    }

    /// Goes further on than a snapshot serves.
    fn go_far_on(books: &mut Books) {
        let last = books.sequence().0;
        (1..=3).for_each(|more| go_on(books, last + more));
    }

    #[test]
    fn those_who_ask_together_get_the_same_until_the_feed_has_gone_on() {
        let (mut snapshots, mut books) = (Snapshots::new(Incarnation(1), 8), Books::new());
        let first = get(&mut snapshots, &books, (&[1, 2], KeyId(1)));
        let has_same = |snapshots: &mut Snapshots, books: &Books| {
            // Nobody waits in between.
            assert!(snapshots.serve(books).is_empty());
            let again = get(snapshots, books, (&[3], KeyId(2)));
            Arc::ptr_eq(&first.snapshot, &again.snapshot)
        };
        assert!(has_same(&mut snapshots, &books));
        go_on(&mut books, 1);
        go_on(&mut books, 2);
        assert!(has_same(&mut snapshots, &books), "a quarter of a lap");
        go_on(&mut books, 3);
        let next = get(&mut snapshots, &books, (&[4], OWN_USER));
        assert_eq!((first.sequence(), next.sequence()), (FeedSequence(0), FeedSequence(3)));
        // What no reader holds is gone.
        let seen = Arc::downgrade(&next.snapshot);
        drop(next);
        assert_eq!(seen.strong_count(), 0);
    }

    #[test]
    fn so_many_are_in_memory_and_the_next_waits_for_one_of_them() {
        let (mut snapshots, mut books) = (Snapshots::new(Incarnation(1), 8), Books::new());
        let mut held = Vec::new();
        for ticket in 0..ALIVE_MAX {
            held.push(get(&mut snapshots, &books, (&[ticket], OWN_USER)));
            go_far_on(&mut books);
        }
        assert_eq!(snapshots.in_the_way(Instant::now()), None, "nobody waits");
        snapshots.ask(9, KeyId(1));
        assert_none(&mut snapshots, &books);
        let now = Instant::now();
        assert_eq!(snapshots.in_the_way(now), Some(InTheWay::All));
        assert_eq!(snapshots.in_the_way(now), None, "it was told");
        assert_eq!(snapshots.in_the_way(now + TELL_EVERY), Some(InTheWay::All));
        held.pop();
        assert_eq!(served(&mut snapshots, &books).0, [9]);
    }

    #[test]
    fn one_key_has_two_of_them_and_another_key_the_next() {
        let (mut snapshots, mut books) = (Snapshots::new(Incarnation(1), 8), Books::new());
        let [hoarder, honest] = [KeyId(1), KeyId(2)];
        let mut held = Vec::new();
        for ticket in 0..OF_KEY_MAX {
            held.push(get(&mut snapshots, &books, (&[ticket], hoarder)));
            go_far_on(&mut books);
        }
        for ticket in 6..9 {
            snapshots.ask(ticket, hoarder);
        }
        assert_none(&mut snapshots, &books);
        assert_eq!(snapshots.in_the_way(Instant::now()), Some(InTheWay::OfKey(hoarder)));
        // Who waits for its own is in nobody's way.
        let next = get(&mut snapshots, &books, (&[10], honest));
        assert_none(&mut snapshots, &books);
        // Nor is one waited for that is gone.
        snapshots.give_up(7);
        held.pop();
        assert_eq!(served(&mut snapshots, &books).0, [6, 8]);
        drop(next);
    }

    #[test]
    fn a_key_that_has_two_gets_more_of_the_newest_of_them() {
        let (mut snapshots, mut books) = (Snapshots::new(Incarnation(1), 8), Books::new());
        let key = KeyId(1);
        let _oldest = get(&mut snapshots, &books, (&[1], key));
        go_far_on(&mut books);
        let newest = get(&mut snapshots, &books, (&[2], key));
        let again = get(&mut snapshots, &books, (&[3, 4], key));
        assert!(Arc::ptr_eq(&newest, &again), "it is the key's share");
    }
}
