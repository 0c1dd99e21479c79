//! The ring through which an engine's reports go to another core: words in batches. Called by
//! [`super::burst`].
//!
//! What it costs must not hide what the engines cost, so it is as cheap as such a thing can be: reports
//! are staged in memory that the writer alone has and go over in batches; both sides know the other's
//! index from before and look again only when that is not enough; indices lie on lines of their own; a
//! report that an operation is done is one word, a fill three.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words that the ring holds: half of what a core's first cache does.
const WORDS: usize = 1 << 11;
/// Words that go over together at the most; an eighth of the ring, so that both sides are at work.
const BATCH_WORDS: usize = WORDS / 8;
/// Most words of one report.
pub(super) const REPORT_WORDS: usize = 3;

/// Keeps what is inside off the cache lines of its neighbours.
#[repr(align(128))]
struct OwnLine(AtomicU64);

struct Ring {
    /// Words written, and words read; both run on for ever.
    tail: OwnLine,
    head: OwnLine,
    words: Box<[AtomicU64; WORDS]>,
}

/// Both ends of an empty ring.
pub(super) fn ring() -> (Writer, Reader) {
    let ring = Arc::new(Ring {
        tail: OwnLine(AtomicU64::new(0)),
        head: OwnLine(AtomicU64::new(0)),
        words: Box::new([const { AtomicU64::new(0) }; WORDS]),
    });
    let writer =
        Writer { ring: Arc::clone(&ring), staged: [0; BATCH_WORDS], length: 0, tail: 0, head: 0 };
    (writer, Reader { ring, head: 0, tail: 0 })
}

/// The writing end. What is staged goes over at the latest when the writer is dropped.
pub(super) struct Writer {
    ring: Arc<Ring>,
    staged: [u64; BATCH_WORDS],
    length: usize,
    tail: u64,
    /// The reader's index when last read.
    head: u64,
}

impl Writer {
    /// Stages a report; a full batch goes over first.
    #[inline]
    pub(super) fn stage<const N: usize>(&mut self, report: [u64; N]) {
        const { assert!(N <= REPORT_WORDS) };
        if self.length + N > BATCH_WORDS {
            self.publish();
        }
        self.staged[self.length..][..N].copy_from_slice(&report);
        self.length += N;
    }

    /// Hands over what is staged; waits for room.
    pub(super) fn publish(&mut self) {
        let wanted = self.length as u64;
        while WORDS as u64 - (self.tail - self.head) < wanted {
            // Pairs with the release store in `Reader::take`: what is overwritten has been read.
            self.head = self.ring.head.0.load(Ordering::Acquire);
            if WORDS as u64 - (self.tail - self.head) < wanted {
                std::thread::yield_now();
            }
        }
        for &word in &self.staged[..self.length] {
            self.ring.words[self.tail as usize % WORDS].store(word, Ordering::Relaxed);
            self.tail += 1;
        }
        self.length = 0;
        // Pairs with the acquire load in `Reader::take`: who sees this tail sees the words below it.
        self.ring.tail.0.store(self.tail, Ordering::Release);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.publish();
    }
}

/// The reading end.
pub(super) struct Reader {
    ring: Arc<Ring>,
    head: u64,
    /// The writer's index when last read.
    tail: u64,
}

impl Reader {
    /// The next word; waits for it.
    #[inline]
    pub(super) fn take(&mut self) -> u64 {
        while self.head == self.tail {
            self.ring.head.0.store(self.head, Ordering::Release);
            self.tail = self.ring.tail.0.load(Ordering::Acquire);
            if self.head == self.tail {
                std::thread::yield_now();
            }
        }
        let word = self.ring.words[self.head as usize % WORDS].load(Ordering::Relaxed);
        self.head += 1;
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_over_in_order_many_times_round() {
        let (mut writer, mut reader) = ring();
        const REPORTS: u64 = 20_000;
        let mut wrong = 0;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..REPORTS {
                    if number % 3 == 0 {
                        writer.stage([number]);
                    } else {
                        writer.stage([number; 3]);
                    }
                    if number % 500 == 0 {
                        writer.publish();
                    }
                }
            });
            for number in 0..REPORTS {
                for _ in 0..if number % 3 == 0 { 1 } else { 3 } {
                    let word = reader.take();
                    // Not at once: the writer waits for room, and the scope for the writer.
                    wrong += u64::from(word != number);
                }
            }
        });
        assert_eq!(wrong, 0, "words came over wrong");
    }
}
