//! Bytes of chance to the parsers of messages, of streams, of the log and of the public feed: the share of the
//! fuzz targets `messages`, `framing`, `log_frames` and `feed` that runs with every build.
//!
//! `TOUCHLINE_CASES=10000000 cargo test --release -p touchline-protocol --test fuzz` runs longer;
//! `TOUCHLINE_SEED` repeats a single input.

#![cfg(not(loom))]

#[path = "../../tests/support/chance.rs"]
mod chance;
#[path = "fuzz/feed.rs"]
mod feed;
#[path = "fuzz/framing.rs"]
mod framing;
#[path = "fuzz/log_frames.rs"]
mod log_frames;
#[path = "fuzz/messages.rs"]
mod messages;

use chance::{chosen_seed, inputs};
use messages::Taken;
use std::collections::BTreeMap;

/// The bodies of messages are zeros but for some bytes: reserved bytes and texts want most to be zero.
#[test]
fn any_bytes_are_a_message_or_none() {
    let templates = messages::templates().len();
    let mut taken = BTreeMap::<Taken, u64>::new();
    inputs(100_000, |random| {
        let length = 8 * (5 + random.word() % 28);
        let mut input = vec![0; length as usize + 1];
        input[0] = (random.word() % (templates as u64 + 1)) as u8;
        for _ in 0..random.word() % 6 {
            let at = 1 + (random.word() % length) as usize;
            input[at] = random.word() as u8;
        }
        *taken.entry(messages::read(&input)).or_default() += 1;
        messages::read(&random.bytes(length as usize));
    });
    if chosen_seed().is_none() {
        assert_eq!(taken.len(), 6, "{taken:?}");
    }
}

#[test]
fn any_log_is_read_up_to_its_damage() {
    let mut transactions = 0;
    inputs(2_000, |random| {
        let length = random.word() % 4096;
        transactions += log_frames::read(&random.bytes(length as usize));
    });
    assert!(transactions > 0 || chosen_seed().is_some());
}

#[test]
fn any_stream_is_the_same_frames_in_whatever_pieces() {
    let (mut frames, mut faults) = (0, 0);
    inputs(3_000, |random| {
        let length = random.word() % 20_000;
        let (found, fault) = framing::read(&random.bytes(length as usize));
        frames += found.len();
        faults += usize::from(fault.is_some());
    });
    assert!(chosen_seed().is_some() || (frames > 1000 && faults > 100));
}

#[test]
fn any_feed_ends_in_books_or_an_error() {
    let (mut applied, mut faults) = (0, 0);
    inputs(10_000, |random| {
        let length = random.word() % 512;
        let read = feed::read(&random.bytes(length as usize));
        applied += read.applied;
        faults += read.faults;
    });
    assert!(chosen_seed().is_some() || (applied > 1000 && faults > 1000));
}
