//! Cut tails: the end of a log of several segments is cut off, or has a hole, at every byte of its last
//! 64 KiB. At or above the position that the rest vouches for the log ends with the last whole
//! transaction before the cut and the start says what was dropped; below, it is refused and the place
//! is named.
//!
//! By default one byte in 2,003 is tried. The whole is every byte, by the tools; an engine starts on every
//! cut, and on one hole and one changed byte in 16. Where the first byte that is cut off is a zero the log
//! is the one that is cut a byte later, so that one is tried for both.

use super::disk::SimDisk;
use super::frames::{Expected, Original};
use super::random::{Random, is_whole, size};
use super::world::{Place, Record, SEGMENT, copy_files};
use crate::patience::Wait;
use std::ops::Range;
use touchline_engine::inspect::{Verdict, inspect_at_rest};
use touchline_engine::recovery::RecoveryError;
use touchline_protocol::log::segment::SegmentError;

/// Bytes at the end that are cut.
const TAIL: u64 = 64 << 10;

/// What is done to the log at one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Damage {
    /// Everything from there on was never written.
    Cut,
    /// The sector in which it lies was never written, from there on.
    Hole,
    /// The byte there is another one.
    Byte,
}

/// A log of three segments, in whose last 64 KiB some transactions vouch for what lies before them and
/// some do not. The engine was killed; the window is there.
fn log() -> (Place, Original, Vec<Record>) {
    let mut random = Random::new(11);
    let place = Place::new(SimDisk::new(1, true));
    let mut venue = place.open();
    venue.define();
    venue.fill_up_to(&mut random, SEGMENT, 100);
    for _ in 0..100 {
        venue.trade(&mut random);
    }
    // The tail reaches over the boundary of the last segment.
    venue.fill_up_to(&mut random, 2 * SEGMENT, 26_000);
    let wait = Wait::begin();
    while venue.marks().0 < 2 * SEGMENT + 36_000 {
        wait.go_on("nothing is appended");
        for _ in 0..random.below(12) {
            venue.trade(&mut random);
        }
        venue.fill(&mut random, 3_000);
        if venue.marks().0 >= 2 * SEGMENT + 12_000 {
            // From here on nothing vouches for anything.
            place.disk.hold(true);
        } else if random.once_in(2) {
            venue.settle();
        }
    }
    place.disk.hold(false);
    venue.settle();
    let (records, _) = venue.kill();
    let original = Original::new(place.image());
    (place, original, records)
}

impl Damage {
    /// The bytes that it may change.
    fn range(self, original: &Original, at: u64) -> Range<usize> {
        let to = match self {
            Self::Cut => original.image.len() as u64,
            Self::Hole => (at + 1).next_multiple_of(512),
            Self::Byte => at + 1,
        };
        at as usize..to as usize
    }

    fn change(self, bytes: &mut [u8]) {
        match self {
            Self::Byte => bytes[0] ^= 0x5a,
            Self::Cut | Self::Hole => bytes.fill(0),
        }
    }
}

/// Opens the log as an engine does.
pub(super) fn check_start(place: &Place, expected: Expected, records: &[Record]) {
    match (expected, place.try_open()) {
        (Expected::Ends { transactions, end, dropped }, Ok(venue)) => {
            let report = &venue.log.report;
            assert_eq!(venue.history.records, records[..transactions]);
            assert_eq!((report.recovered_end.0, report.dropped.bytes), (end, dropped));
            assert_eq!(dropped > 0, report.lines.iter().any(|line| line.contains("taken out")));
        }
        (
            Expected::Refused { position, attested },
            Err(RecoveryError::Damaged { path, offset, position: found, attested: up_to, .. }),
        ) => {
            assert_eq!((found, up_to), (position, attested));
            assert_eq!((path, offset), (place.segment(position / SEGMENT), position % SEGMENT));
        }
        (Expected::NoLog, Err(RecoveryError::FirstSegment { path, .. })) => {
            assert_eq!(path, place.segment(0));
        }
        (expected, Ok(venue)) => panic!("{expected:?}, but opened: {:?}", venue.log.report),
        (expected, Err(error)) => panic!("{expected:?}, but {error}"),
    }
}

/// Looks at it as the tools do.
pub(super) fn check_tools(place: &Place, expected: Expected) {
    let mut seen = 0;
    let storage = std::sync::Arc::new(place.disk.clone());
    let found = inspect_at_rest(storage, &place.options.data, &mut |_| seen += 1);
    if expected == Expected::NoLog {
        assert!(matches!(found, Err(RecoveryError::FirstSegment { .. })));
        return;
    }
    let found = found.unwrap();
    match (expected, found.verdict) {
        (Expected::Ends { transactions, end, dropped: 0 }, Verdict::Sound) => {
            assert_eq!((seen, found.end.0), (transactions, end));
        }
        (Expected::Ends { transactions, end, dropped }, Verdict::UnfinishedTail { bytes, .. }) => {
            assert_eq!((seen, found.end.0, bytes), (transactions, end, dropped));
        }
        (
            Expected::Refused { position, attested },
            Verdict::Damaged { position: at, attested: to, .. },
        ) => {
            assert_eq!((at.0, to.0), (position, attested));
        }
        (expected, verdict) => panic!("{expected:?}, but {verdict:?}"),
    }
}

#[test]
fn a_tail_that_is_cut_anywhere() {
    let (place, original, records) = log();
    let start = original.end - TAIL;
    assert!(start < 2 * SEGMENT && original.attested() > 2 * SEGMENT + 1_000);
    assert!(original.end > original.attested() + 10_000);
    let step = size(2_003, 1) as usize;
    let (mut refused, mut ended, mut starts) = (0, 0, 0);
    let mut image = original.image.clone();
    place.lose_window();
    for at in (start..original.end).step_by(step) {
        for kind in [Damage::Cut, Damage::Hole, Damage::Byte] {
            let is_same_as_next =
                kind != Damage::Byte && image[at as usize] == 0 && at + 1 < original.end;
            if is_whole() && is_same_as_next {
                continue;
            }
            let range = kind.range(&original, at);
            kind.change(&mut image[range.clone()]);
            let expected = original.judge(&image, (at, range.end as u64));
            place.overwrite(&image, range.clone());
            check_tools(&place, expected);
            image[range.clone()].copy_from_slice(&original.image[range.clone()]);
            if !is_whole() || kind == Damage::Cut || at % 16 == 0 {
                check_start(&place, expected, &records);
                place.lose_window();
                place.restore(&image);
                starts += 1;
            } else {
                place.overwrite(&image, range);
            }
            match expected {
                Expected::Ends { .. } => ended += 1,
                _ => refused += 1,
            }
        }
    }
    println!("{ended} ends, {refused} refusals, {starts} starts");
    assert!(ended > 50 && refused > 2, "{ended} ends, {refused} refusals");
}

#[test]
fn a_tail_that_is_cut_below_what_the_window_knows() {
    let (place, original, records) = log();
    let kept = tempfile::tempdir().unwrap();
    copy_files(&place.live(), kept.path());
    for at in (original.end - TAIL..original.end).step_by(size(5_003, 7) as usize) {
        for kind in [Damage::Cut, Damage::Hole] {
            let mut image = original.image.clone();
            kind.change(&mut image[kind.range(&original, at)]);
            let first = (at..original.end)
                .find(|&byte| image[byte as usize] != original.image[byte as usize]);
            place.restore(&image);
            match (first, place.try_open()) {
                (None, Ok(venue)) => assert_eq!(venue.history.records, records),
                (Some(first), Err(RecoveryError::WindowDiffers { path, offset, position, .. })) => {
                    assert_eq!(position, first);
                    let place = (place.segment(first / SEGMENT), first % SEGMENT);
                    assert_eq!((path, offset), place);
                }
                (first, Err(error)) => panic!("{first:?}: {error}"),
                (first, Ok(_)) => panic!("opened with {first:?} lost"),
            }
            place.lose_window();
            copy_files(kept.path(), &place.live());
        }
    }
}

#[test]
fn a_segment_that_is_cut_short_is_refused() {
    let (place, original, _) = log();
    place.lose_window();
    let image = &original.image;
    for number in 0..image.len() as u64 / SEGMENT {
        for short in [1, 511, 4096, SEGMENT - 64, SEGMENT] {
            place.restore(image);
            place.disk.edit(&place.segment(number), |bytes| {
                bytes.truncate((SEGMENT - short) as usize);
            });
            let storage = std::sync::Arc::new(place.disk.clone());
            assert!(inspect_at_rest(storage, &place.options.data, &mut |_| {}).is_err());
            match place.try_open() {
                Err(RecoveryError::SegmentLength { path, found, expected }) => {
                    assert_eq!(path, place.segment(number));
                    assert_eq!((found, expected), (SEGMENT - short, SEGMENT));
                }
                // The first one must at least say what log it is.
                Err(RecoveryError::FirstSegment { path, source })
                    if number == 0 && short == SEGMENT =>
                {
                    assert_eq!(path, place.segment(0));
                    assert_eq!(source, SegmentError::TooShort { have: 0 });
                }
                Err(error) => panic!("{error}"),
                Ok(_) => panic!("opened without {short} bytes of segment {number}"),
            }
        }
    }
}
