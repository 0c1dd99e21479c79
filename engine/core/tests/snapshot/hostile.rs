//! Bytes that are not those that were written.

use crate::parts::{Exhausted, read, seal, sections, write};
use crate::runs::case;
use crate::world::World;
use std::mem::offset_of;
use std::ops::Range;
use touchline_core::{Core, SnapshotError};
use touchline_protocol::snapshot::records::*;

/// Small snapshots that together have something in every section.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let mut missing: Vec<u32> = (VENUE..=END).collect();
    let mut samples = Vec::new();
    for seed in 0.. {
        let mut world = World::new(8);
        for step in case(8, seed) {
            world.step(&step);
            let bytes = write(&world.venue.core);
            let found = sections(&bytes);
            let filled = |section: &u32| {
                found.iter().any(|(number, _, records)| number == section && *records > 0)
            };
            if missing.iter().filter(|section| filled(section)).count() > 0 {
                missing.retain(|section| !filled(section));
                samples.push(bytes);
            }
            if missing.is_empty() {
                return samples;
            }
        }
    }
    samples
}

#[test]
fn every_flipped_bit_is_noticed() {
    for good in samples() {
        let mut bytes = good.clone();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes, 0).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(bytes, good);
    }
}

#[test]
fn every_cut_is_noticed() {
    for bytes in samples() {
        for length in 0..bytes.len() {
            let error = read(&bytes[..length], 0).unwrap_err();
            assert_eq!(error, SnapshotError::Source(Exhausted), "{length} bytes");
        }
    }
}

/// Limits that the machine's memory might not have are not tried.
fn takes_much_memory(section: u32, offset: usize, bit: usize) -> bool {
    let limits = 16 + offset_of!(VenueRecord, limits);
    let within = section == VENUE && (limits..limits + 56).contains(&offset);
    within && (offset - limits) % 4 * 8 + bit > 14
}

/// Somebody flips a bit and sets every hash right: that of the section, and, where the venue is another
/// then, the state hash. What comes out is a sound venue, or an error; never a panic. One bit of each
/// byte, or all with `TOUCHLINE_WHOLE=1`.
#[test]
fn a_forged_snapshot_is_sound_or_refused() {
    let is_whole = std::env::var_os("TOUCHLINE_WHOLE").is_some();
    let (mut refused, mut taken) = (0, 0);
    for good in samples() {
        let all = sections(&good);
        let (_, end, _) = all.last().unwrap();
        for (section, range, _) in &all[..all.len() - 1] {
            for offset in 0..range.len() - 8 {
                let one = (offset + good.len()) % 8;
                for bit in (0..8).filter(|&bit| is_whole || bit == one) {
                    if takes_much_memory(*section, offset, bit) {
                        continue;
                    }
                    let mut bytes = good.clone();
                    bytes[range.start + offset] ^= 1 << bit;
                    seal(&mut bytes, range);
                    match read_forged(&mut bytes, end) {
                        Err(_) => refused += 1,
                        Ok(core) => {
                            taken += 1;
                            let sound = core.validate();
                            assert!(sound.is_ok(), "section {section} + {offset}.{bit}: {sound:?}");
                            assert_eq!(write(&core), bytes, "section {section} + {offset}.{bit}");
                        }
                    }
                }
            }
        }
    }
    assert!(refused > 0 && taken > 0, "{refused} refused, {taken} taken");
}

/// Reads what may have another state hash than it says; then that is set right.
fn read_forged(bytes: &mut [u8], end: &Range<usize>) -> Result<Core, SnapshotError<Exhausted>> {
    match read(bytes, 0) {
        Err(SnapshotError::StateHash { computed, .. }) => {
            bytes[end.start + 16..end.start + 24].copy_from_slice(&computed.to_le_bytes());
            seal(bytes, end);
            read(bytes, 0).map(|(core, _)| core)
        }
        other => other.map(|(core, _)| core),
    }
}

#[test]
fn sections_of_another_version_order_or_number_are_named() {
    let world = World::new(8);
    let good = write(&world.venue.core);
    let (_, venue, _) = sections(&good)[0].clone();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        seal(&mut bytes, &venue);
        read(&bytes, 0).unwrap_err()
    };
    assert_eq!(with(0, 2), SnapshotError::Section { found: 2, expected: VENUE });
    assert_eq!(with(4, 9), SnapshotError::Version { section: VENUE, found: 9 });
    assert_eq!(with(8, 2), SnapshotError::Count { section: VENUE, found: 2, most: 1 });
    assert_eq!(with(16, 9), SnapshotError::Rules { found: 9 });
    let mut bytes = good.clone();
    let (_, end, _) = sections(&good).pop().unwrap();
    bytes[end.start + 8] = 0;
    seal(&mut bytes, &end);
    let why = "no state hash";
    assert_eq!(
        read(&bytes, 0).unwrap_err(),
        SnapshotError::Record { section: END, record: 0, why }
    );
}
