//! Rotten bits: every bit of a log of 256 KiB is flipped, one at a time. Each flip is either refused,
//! because something that is left vouches for the place, or ends the log there, which the start tells,
//! or is harmless; never does the log silently say something else, and nothing panics.
//!
//! By default one bit in 4,001 is tried by the tools, and one in 80,021 by the start of an engine; the
//! whole is every bit and one in 257.

use super::disk::SimDisk;
use super::frames::{Expected, Original};
use super::random::{Random, size};
use super::tail::{check_start, check_tools};
use super::world::{Place, Record};

/// Bits behind the log's end that are flipped too.
const BEHIND: u64 = 4096 * 8;

/// A log of 256 KiB, vouched for up to about the middle.
fn log() -> (Place, Original, Vec<Record>) {
    let mut random = Random::new(21);
    let place = Place::new(SimDisk::new(1, true));
    let mut venue = place.open();
    venue.define();
    while venue.marks().0 < 256 << 10 {
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

#[test]
fn every_bit_that_rots_is_noticed_or_harmless() {
    let (place, original, records) = log();
    assert!((100 << 10..200 << 10).contains(&original.attested()), "{}", original.attested());
    let segment = place.segment(0);
    let starts = size(80_021, 257);
    let mut next_start = 0;
    let mut counts = [0_u64; 3];
    let mut image = original.image.clone();
    for bit in (0..original.end * 8 + BEHIND).step_by(size(4_001, 1) as usize) {
        flip(&mut image, bit);
        let expected = original.judge(&image, (bit / 8, bit / 8 + 1));
        place.disk.edit(&segment, |bytes| flip(bytes, bit));
        check_tools(&place, expected);
        if bit >= next_start {
            next_start = bit + starts;
            check_start(&place, expected, &records);
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
    let [refused, ended, harmless] = counts;
    println!("{refused} refused, {ended} ended, {harmless} harmless");
    assert!(refused > 100 && ended > 100 && harmless > 1, "{counts:?}");
}
