//! Every interleaving (within the given number of preemptions) of a writer that laps a reader in one slot
//! of the broadcast ring: the reader gets a message whole or is told that it was overrun. Writing and
//! reading are the code that runs.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p touchline-protocol --release --test loom_broadcast`
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use touchline_protocol::feed::broadcast::{Found, read_slot, write_slot};
use touchline_protocol::feed::layout::{BUSY, MARK_WORD};
use touchline_protocol::sync::{AtomicU64, Ordering, ReadOnlyWords, fence};

/// Header, mark and two words of content.
const WORDS: usize = 4;
/// A lap: the slot's messages have these numbers.
const LAP: u64 = 8;

type Slot = [AtomicU64; WORDS];

fn explore(preemptions: usize, case: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(case);
}

fn slot() -> Arc<Slot> {
    Arc::new([(); WORDS].map(|()| AtomicU64::new(0)))
}

/// The header states the length behind it; both words of content belong to the number.
fn message(sequence: u64) -> [u64; WORDS] {
    [(WORDS as u64 - 1) * 8, sequence, sequence + 100, sequence + 200]
}

fn read(slot: &Slot, sequence: u64) -> Found {
    let mut into = [0; WORDS];
    let found = read_slot(ReadOnlyWords::new(slot), sequence, &mut into);
    if found == Found::Copied {
        assert_eq!(into, message(sequence), "a torn message was believed");
    }
    found
}

#[test]
fn a_reader_gets_a_whole_message_or_is_told_that_it_was_overrun() {
    explore(3, || {
        let slot = slot();
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || {
            for sequence in [1, 1 + LAP] {
                write_slot(&*writer, sequence, &message(sequence));
            }
        });
        // In order: a reader never asks for an older message than it has had.
        let first = read(&slot, 1);
        if let Found::Overrun(by) = first {
            assert_eq!(by, 1 + LAP);
        }
        read(&slot, 1 + LAP);
        writer.join().unwrap();
        assert_eq!(read(&slot, 1), Found::Overrun(1 + LAP));
        assert_eq!(read(&slot, 1 + LAP), Found::Copied);
        assert_eq!(read(&slot, 1 + 2 * LAP), Found::NotYet);
    });
}

#[test]
fn two_readers_are_no_more_to_a_writer_than_one() {
    explore(2, || {
        let slot = slot();
        write_slot(&*slot, 1, &message(1));
        let [writer, other] = [(); 2].map(|()| Arc::clone(&slot));
        let writer = thread::spawn(move || write_slot(&*writer, 1 + LAP, &message(1 + LAP)));
        let other = thread::spawn(move || assert_ne!(read(&other, 1), Found::NotYet));
        assert_ne!(read(&slot, 1), Found::NotYet);
        writer.join().unwrap();
        other.join().unwrap();
    });
}

/// What a writer must not do: leave the old mark standing while it writes.
#[test]
#[should_panic(expected = "a torn message was believed")]
fn the_model_finds_a_writer_that_does_not_mark_its_slot() {
    explore(3, || {
        let slot = slot();
        write_slot(&*slot, 1, &message(1));
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || {
            for (word, value) in writer.iter().zip(message(1 + LAP)) {
                word.store(value, Ordering::Relaxed);
            }
        });
        read(&slot, 1);
        writer.join().unwrap();
    });
}

/// What a reader must not do: look at the mark only before it copies.
#[test]
#[should_panic(expected = "a torn message was believed")]
fn the_model_finds_a_reader_without_a_last_look() {
    explore(3, || {
        let slot = slot();
        write_slot(&*slot, 1, &message(1));
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || write_slot(&*writer, 1 + LAP, &message(1 + LAP)));
        if slot[MARK_WORD].load(Ordering::Relaxed) & !BUSY == 1 {
            fence(Ordering::Acquire);
            let mut into = [0; WORDS];
            ReadOnlyWords::new(&*slot).copy_to(0, &mut into);
            into[MARK_WORD] = 1;
            assert_eq!(into, message(1), "a torn message was believed");
        }
        writer.join().unwrap();
    });
}

/// What a writer must not do: write into a slot without a fence behind its mark.
#[test]
#[should_panic(expected = "a torn message was believed")]
fn the_model_finds_a_writer_without_a_fence_behind_its_mark() {
    explore(3, || {
        let slot = slot();
        write_slot(&*slot, 1, &message(1));
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || {
            writer[MARK_WORD].store(BUSY | (1 + LAP), Ordering::Relaxed);
            for (index, value) in message(1 + LAP).into_iter().enumerate() {
                if index != MARK_WORD {
                    writer[index].store(value, Ordering::Relaxed);
                }
            }
            writer[MARK_WORD].store(1 + LAP, Ordering::Release);
        });
        read(&slot, 1);
        writer.join().unwrap();
    });
}

/// What a reader must not do: look for the last time without a fence behind its copy.
#[test]
#[should_panic(expected = "a torn message was believed")]
fn the_model_finds_a_reader_without_a_fence_before_its_last_look() {
    explore(3, || {
        let slot = slot();
        write_slot(&*slot, 1, &message(1));
        let writer = Arc::clone(&slot);
        let writer = thread::spawn(move || write_slot(&*writer, 1 + LAP, &message(1 + LAP)));
        if slot[MARK_WORD].load(Ordering::Relaxed) == 1 {
            fence(Ordering::Acquire);
            let mut into = [0; WORDS];
            ReadOnlyWords::new(&*slot).copy_to(0, &mut into);
            into[MARK_WORD] = 1;
            if slot[MARK_WORD].load(Ordering::Relaxed) == 1 {
                assert_eq!(into, message(1), "a torn message was believed");
            }
        }
        writer.join().unwrap();
    });
}
