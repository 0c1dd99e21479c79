//! Bytes of chance to the parsers of messages, of streams, of the log and of the public feed: the share of the
//! fuzz targets `messages`, `framing`, `log_frames` and `feed` that runs with every build.
//!
//! `TOUCHLINE_CASES=10000000 cargo test --release -p touchline-protocol --test fuzz` runs longer;
//! `TOUCHLINE_SEED` repeats a single input.

#![cfg(not(loom))]

#[path = "fuzz/feed.rs"]
mod feed;
#[path = "fuzz/framing.rs"]
mod framing;
#[path = "fuzz/log_frames.rs"]
mod log_frames;
#[path = "fuzz/messages.rs"]
mod messages;

use messages::Taken;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.word() as u8).collect()
    }
}

/// Says which input failed, when one fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the same again with TOUCHLINE_SEED={}", self.0);
        }
    }
}

/// Runs inputs of fresh seeds, or the one that is asked for.
fn inputs(cases: u64, mut run: impl FnMut(&mut Random)) {
    let chosen = variable("TOUCHLINE_SEED");
    let cases = if chosen.is_some() { 1 } else { variable("TOUCHLINE_CASES").unwrap_or(cases) };
    let mut seed = Seed(chosen.unwrap_or_else(|| RandomState::new().hash_one(0)));
    for _ in 0..cases {
        run(&mut Random(seed.0));
        seed.0 = seed.0.wrapping_add(1);
    }
}

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
        messages::read(&random.bytes(length));
    });
    if variable("TOUCHLINE_SEED").is_none() {
        assert_eq!(taken.len(), 6, "{taken:?}");
    }
}

#[test]
fn any_log_is_read_up_to_its_damage() {
    let mut transactions = 0;
    inputs(2_000, |random| {
        let length = random.word() % 4096;
        transactions += log_frames::read(&random.bytes(length));
    });
    assert!(transactions > 0 || variable("TOUCHLINE_SEED").is_some());
}

#[test]
fn any_stream_is_the_same_frames_in_whatever_pieces() {
    let (mut frames, mut faults) = (0, 0);
    inputs(3_000, |random| {
        let length = random.word() % 20_000;
        let (found, fault) = framing::read(&random.bytes(length));
        frames += found.len();
        faults += usize::from(fault.is_some());
    });
    assert!(variable("TOUCHLINE_SEED").is_some() || (frames > 1000 && faults > 100));
}

#[test]
fn any_feed_ends_in_books_or_an_error() {
    let (mut applied, mut faults) = (0, 0);
    inputs(10_000, |random| {
        let length = random.word() % 512;
        let read = feed::read(&random.bytes(length));
        applied += read.applied;
        faults += read.faults;
    });
    assert!(variable("TOUCHLINE_SEED").is_some() || (applied > 1000 && faults > 1000));
}
