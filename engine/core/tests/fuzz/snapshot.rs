//! One input of the fuzz target `snapshot`: bytes as a snapshot of a venue, or one of a venue that commands have made
//! with words of it changed, in either case with every hash set right behind them. What is read of it is refused, or
//! is a sound venue, of which the same bytes are written. Called by that target and by the test beside this folder.

use crate::commands::messages::Writer;
use crate::commands::source::Source;
use crate::commands::world::world;
use std::convert::Infallible;
use std::mem::offset_of;
use touchline_core::{Core, Definitions, SnapshotError};
use touchline_protocol::message::command::Limits;
use touchline_protocol::snapshot::records::{
    RECORD_LIMITS, RecordLimitsRecord, SectionHeader, VenueRecord,
};

/// Hashes that are set right at most: of all sections, and of the state.
const REPAIRS_MAX: usize = 64;
/// Capacities that a test has memory for.
const CAPACITY_MAX: u32 = 4096;
/// The limits that take memory, the first ones.
const CAPACITIES: usize = 8;
/// Where the limits of the first section's only record lie.
const LIMITS: usize = size_of::<SectionHeader>() + offset_of!(VenueRecord, limits);

/// The source has no more bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exhausted;

/// Gives what of the bytes was not read yet, piece by piece.
fn source<'rest, 'bytes>(
    rest: &'rest mut &'bytes [u8],
) -> impl FnMut(&mut [u8]) -> Result<(), Exhausted> + use<'rest, 'bytes> {
    |into| {
        into.copy_from_slice(rest.split_off(..into.len()).ok_or(Exhausted)?);
        Ok(())
    }
}

fn write(core: &Core) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(_) = core.write_snapshot::<Infallible>(&mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    });
    bytes
}

/// Makes the numbers at `at` no larger than a test has memory for; true if one was.
fn bound(bytes: &mut [u8], at: usize, count: usize) -> bool {
    let end = bytes.len().min(at + 4 * count);
    let mut was_larger = false;
    for number in bytes.get_mut(at..end).into_iter().flat_map(|bytes| bytes.as_chunks_mut().0) {
        let asked = u32::from_le_bytes(*number);
        if asked > CAPACITY_MAX {
            was_larger = true;
            *number = (asked % CAPACITY_MAX).to_le_bytes();
        }
    }
    was_larger
}

/// Reads a venue, sets right what hash is wrong, and reads again. Gives how many bytes were read, too.
fn read_repaired(bytes: &mut [u8]) -> Result<(Core, usize), SnapshotError<Exhausted>> {
    const { assert!(size_of::<Limits>() >= 4 * CAPACITIES) };
    let mut repairs = 0;
    loop {
        let mut rest = &*bytes;
        let read = Core::read_snapshot(&mut source(&mut rest), 7);
        let behind = bytes.len() - rest.len();
        let (at, computed) = match read {
            Err(SnapshotError::Hash { section, computed, found }) => {
                let record = behind - 8 - size_of::<RecordLimitsRecord>();
                if section == RECORD_LIMITS && bound(bytes, record, 2) {
                    // Its hash is another one now.
                    (behind - 8, found)
                } else {
                    (behind - 8, computed)
                }
            }
            // It is the last section's only word, with that section's hash behind it.
            Err(SnapshotError::StateHash { computed, .. }) => (behind - 16, computed),
            Err(error) => return Err(error),
            Ok((core, hash)) => {
                assert_eq!(core.state_hash(), hash);
                return Ok((core, behind));
            }
        };
        repairs += 1;
        assert!(repairs < REPAIRS_MAX, "a hash that is set right is refused again");
        bytes[at..at + 8].copy_from_slice(&computed.to_le_bytes());
    }
}

/// The snapshot of a venue that commands out of the source have made.
fn example(source: &mut Source<'_>) -> Vec<u8> {
    let mut subject = world(source);
    while !source.is_empty() {
        let words = Writer { source, core: &subject.core }.any();
        subject.apply(&words);
    }
    write(&subject.core)
}

/// Changes words of a snapshot: a bit, a number, a word in another's place, words that are twice there or not at all.
fn change(bytes: &mut Vec<u8>, source: &mut Source<'_>) {
    let mut at = || {
        let chosen = u16::from_le_bytes([source.byte(), source.byte()]);
        usize::from(chosen) % (bytes.len() / 8) * 8
    };
    let (at, from) = (at(), at());
    let (width, within) = (source.pick(&[1, 2, 4, 8]), source.below(8));
    match source.below(8) {
        0..=1 => bytes[at + within] ^= 1 << source.below(8),
        2..=4 => {
            let place = at + within / width * width;
            bytes[place..place + width].copy_from_slice(&source.number(9).to_le_bytes()[..width]);
        }
        5 => bytes.copy_within(from..from + 8, at),
        // With a count that is another one, too, in some record or header in front.
        6 => {
            let end = bytes.len().min(at + 8 * (1 + within));
            bytes.drain(at..end);
        }
        _ => {
            let end = bytes.len().min(from + 8 * (1 + within));
            let words = bytes[from..end].to_vec();
            bytes.splice(at..at, words);
        }
    }
}

/// Reads an input: a byte that says what the others are. Of every other one the next says how many words become
/// commands, and what is behind those changes their venue's snapshot. Gives whether a venue was taken.
pub(crate) fn read(input: &[u8]) -> bool {
    let Some((&kind, rest)) = input.split_first() else { return false };
    let mut bytes = if kind.is_multiple_of(2) {
        let Some((&count, rest)) = rest.split_first() else { return false };
        let (commands, changes) = rest.split_at((8 * usize::from(count)).min(rest.len()));
        let mut bytes = example(&mut Source::new(commands));
        let mut changes = Source::new(changes);
        for _ in 0..changes.below(4) {
            if bytes.len() >= 8 {
                change(&mut bytes, &mut changes);
            }
        }
        bytes
    } else {
        rest.to_vec()
    };
    // Those alone are read by whoever needs no order: of bytes of which nothing is set right.
    bound(&mut bytes, LIMITS, CAPACITIES);
    let mut definitions = &*bytes;
    let _read = Definitions::read(&mut source(&mut definitions), 7);
    match read_repaired(&mut bytes) {
        Err(_) => false,
        Ok((core, behind)) => {
            core.validate().unwrap_or_else(|error| panic!("{error}"));
            assert!(write(&core) == bytes[..behind], "another venue than was read");
            true
        }
    }
}
