//! Rotten bits: every bit of a log of 256 KiB is flipped, one at a time. Each flip is either refused,
//! because something that is left vouches for the place, or ends the log there, which the start tells,
//! or is harmless; never does the log silently say something else, and nothing panics.
//!
//! By default one bit in 4,001 is tried by the tools, and one in 80,021 by the start of an engine; the
//! whole is every bit and one in 257, two million images of 2 MiB: a thread on each core tries its share.
//! `TOUCHLINE_SHARE=2/8` tries the second of eight equal parts of the whole, so that it can be done in
//! parts.

use super::disk::SimDisk;
use super::frames::{Expected, Original};
use super::random::{Random, size};
use super::tail::{check_start, check_tools};
use super::world::{Place, Record};
use crate::patience::Wait;
use std::num::NonZero;
use std::thread;

/// Bits behind the log's end that are flipped too.
const BEHIND: u64 = 4096 * 8;

/// A log of 256 KiB, vouched for up to about the middle.
fn log() -> (Place, Original, Vec<Record>) {
    let mut random = Random::new(21);
    let place = Place::new(SimDisk::new(1, true));
    let mut venue = place.open();
    venue.define();
    let wait = Wait::begin();
    while venue.marks().0 < 256 << 10 {
        wait.go_on("nothing is appended");
        venue.trade(&mut random);
        if random.once_in(6) {
            venue.fill(&mut random, 4_000);
        }
        if venue.marks().0 < 128 << 10 {
            venue.settle();
        } else {
            place.disk.hold(true);
        }
    }
    place.disk.hold(false);
    venue.settle();
    let (records, _) = venue.kill();
    place.lose_window();
    let original = Original::new(place.image());
    (place, original, records)
}

fn flip(image: &mut [u8], bit: u64) {
    image[(bit / 8) as usize] ^= 1 << (bit % 8);
}

/// One of some equal parts of a search, from 0 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Share {
    index: u64,
    of: u64,
}

impl Share {
    /// What is asked for: all of it without `TOUCHLINE_SHARE`.
    fn asked() -> Self {
        let Ok(text) = std::env::var("TOUCHLINE_SHARE") else { return Self { index: 0, of: 1 } };
        let (index, of) = text.split_once('/').expect("TOUCHLINE_SHARE is like 2/8");
        let (index, of): (u64, u64) = (index.parse().unwrap(), of.parse().unwrap());
        assert!((1..=of).contains(&index), "there is no share {text}");
        Self { index: index - 1, of }
    }

    /// The part `index` of `of` parts of this one.
    fn part(self, index: u64, of: u64) -> Self {
        Self { index: self.index + index * self.of, of: self.of * of }
    }
}

/// Flips every `step`-th bit of a share of them; gives how many were refused, ended the log, and did no
/// harm. An engine starts on every `starts`-th bit.
fn search(
    place: &Place,
    original: &Original,
    records: &[Record],
    (share, step, starts): (Share, u64, u64),
) -> [u64; 3] {
    let segment = place.segment(0);
    let starts = starts * share.of;
    let mut next_start = 0;
    let mut counts = [0_u64; 3];
    let mut image = original.image.clone();
    let bits = (share.index * step..original.end * 8 + BEHIND).step_by((share.of * step) as usize);
    for bit in bits {
        flip(&mut image, bit);
        let expected = original.judge(&image, (bit / 8, bit / 8 + 1));
        place.disk.edit(&segment, |bytes| flip(bytes, bit));
        check_tools(place, expected);
        if bit >= next_start {
            next_start = bit + starts;
            check_start(place, expected, records);
            place.lose_window();
            place.restore(&original.image);
        } else {
            place.disk.edit(&segment, |bytes| flip(bytes, bit));
        }
        flip(&mut image, bit);
        counts[match expected {
            Expected::Refused { .. } | Expected::NoLog => 0,
            Expected::Ends { dropped: 1.., .. } => 1,
            Expected::Ends { .. } => 2,
        }] += 1;
    }
    counts
}

#[test]
fn every_bit_that_rots_is_noticed_or_harmless() {
    let (place, original, records) = log();
    assert!((100 << 10..200 << 10).contains(&original.attested()), "{}", original.attested());
    let (step, starts) = (size(4_001, 1), size(80_021, 257));
    let share = Share::asked();
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let counts: Vec<[u64; 3]> = thread::scope(|scope| {
        let (original, records) = (&original, &records);
        let running: Vec<_> = (0..threads)
            .map(|index| {
                let place = place.copy();
                place.lose_window();
                let share = share.part(index, threads);
                scope.spawn(move || search(&place, original, records, (share, step, starts)))
            })
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let [refused, ended, harmless] =
        [0, 1, 2].map(|kind| counts.iter().map(|counts| counts[kind]).sum::<u64>());
    println!("{refused} refused, {ended} ended, {harmless} harmless");
    let tried = (original.end * 8 + BEHIND).div_ceil(step);
    if share.of == 1 {
        assert_eq!(refused + ended + harmless, tried, "every bit once");
        assert!(refused > 100 && ended > 100 && harmless > 1, "{counts:?}");
    } else {
        assert!((refused + ended + harmless).abs_diff(tried / share.of) <= threads);
    }
}

#[test]
fn shares_and_their_parts_are_all_of_it() {
    let mut bits = Vec::new();
    for index in 0..3 {
        for part in 0..4 {
            let share = Share { index, of: 3 }.part(part, 4);
            bits.extend((share.index..100).step_by(share.of as usize));
        }
    }
    bits.sort_unstable();
    assert_eq!(bits, (0..100).collect::<Vec<_>>());
}
