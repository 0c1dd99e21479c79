//! Snapshots of records that are not what was written.

use crate::parts::{Exhausted, read, seal, sections, write};
use crate::{put, venue_with};
use std::mem::offset_of;
use std::ops::Range;
use touchline_core::{Core, SnapshotError};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::snapshot::records::*;

/// A user with two jobs, another user, and contents of several lengths.
fn sample() -> Vec<u8> {
    let mut venue = venue_with(6, 30);
    let long = [7; 100];
    for (id, owner, key, content) in
        [(9, 0, 1, &b"ann"[..]), (5, 0, 2, &long), (1, 9, 0, b"a job"), (2, 9, 0, b"")]
    {
        let (id, owner, unique_key) = ([id; 12], [owner; 12], [key; 32]);
        let message = PutRecord { kind: 1, id, owner, unique_key, ..Default::default() };
        venue.apply_bytes(&put(message, content)).unwrap();
    }
    write(&venue.core)
}

fn section(bytes: &[u8], wanted: u32) -> Range<usize> {
    let found = sections(bytes).into_iter().find(|(number, ..)| *number == wanted);
    found.map(|(_, range, _)| range).expect("such a section")
}

/// Reads what may have another state hash than it says; then that is set right. Gives the bytes behind
/// the end, too.
fn read_forged(bytes: &mut [u8], end: usize) -> Result<(Core, usize), SnapshotError<Exhausted>> {
    match read(bytes, 0) {
        Err(SnapshotError::StateHash { computed, .. }) => {
            bytes[end + 16..end + 24].copy_from_slice(&computed.to_le_bytes());
            seal(bytes, &(end..end + 32));
            read(bytes, 0)
        }
        other => other,
    }
}

#[test]
fn flipped_bits_and_cuts_are_noticed() {
    let mut bytes = sample();
    for at in section(&bytes, RECORD_LIMITS).start..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            assert!(read(&bytes, 0).is_err(), "byte {at}, bit {bit}");
            bytes[at] ^= 1 << bit;
        }
        let error = read(&bytes[..at], 0).unwrap_err();
        assert_eq!(error, SnapshotError::Source(Exhausted), "{at} bytes");
    }
}

/// Somebody flips a bit and sets every hash right: a sound venue, or an error; never a panic.
#[test]
fn a_forged_snapshot_is_sound_or_refused() {
    let good = sample();
    let (mut refused, mut taken) = (0, 0);
    for wanted in [RECORD_LIMITS, RECORDS] {
        let range = section(&good, wanted);
        for at in range.start..range.end - 8 {
            for bit in 0..8 {
                // Limits that the machine's memory might not have are not tried.
                let is_large = (at - range.start) % 4 * 8 + bit > 14;
                if wanted == RECORD_LIMITS && at >= range.start + 16 && is_large {
                    continue;
                }
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                seal(&mut bytes, &range);
                // A section may have become one that ends the snapshot.
                let header = &bytes[range.start..range.start + 4];
                let is_end = *header == END.to_le_bytes();
                let end = if is_end { range.start } else { section(&good, END).start };
                match read_forged(&mut bytes, end) {
                    Err(_) => refused += 1,
                    Ok((core, left)) => {
                        taken += 1;
                        core.validate().unwrap_or_else(|error| panic!("{at}.{bit}: {error}"));
                        // The order of ids may be another one now; nothing else is.
                        assert_eq!(write(&core).len() + left, bytes.len(), "{at}.{bit}");
                    }
                }
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} refused, {taken} taken");
}

/// Where a field of a record lies: the number of the record, as they are sorted, and the field's offset.
fn place(bytes: &[u8], record: usize, field: usize) -> usize {
    let mut at = section(bytes, RECORDS).start + size_of::<SectionHeader>();
    for _ in 0..record {
        let head = &bytes[at..at + size_of::<RecordRecord>()];
        let head: RecordRecord = bytemuck::pod_read_unaligned(head);
        let key = if head.flags & RECORD_HAS_KEY == 0 { 0 } else { 32 };
        let parts = (head.length as usize + key).div_ceil(64);
        at += size_of::<RecordRecord>() + 64 * parts;
    }
    at + field
}

fn forged(record: usize, field: usize, value: &[u8]) -> Result<Core, SnapshotError<Exhausted>> {
    let mut bytes = sample();
    let (range, end) = (section(&bytes, RECORDS), section(&bytes, END).start);
    let at = place(&bytes, record, field);
    bytes[at..at + value.len()].copy_from_slice(value);
    seal(&mut bytes, &range);
    read_forged(&mut bytes, end).map(|(core, _)| core)
}

fn why(outcome: Result<Core, SnapshotError<Exhausted>>) -> (u64, &'static str) {
    match outcome {
        Err(SnapshotError::Record { section: RECORDS, record, why }) => (record, why),
        other => panic!("{:?}", other.err()),
    }
}

/// In the order of the snapshot: the users 5 and 9, then the jobs 1 and 2.
#[test]
fn what_contradicts_itself_is_named() {
    let content = size_of::<RecordRecord>();
    let id = offset_of!(RecordRecord, id);
    let owner = offset_of!(RecordRecord, owner);
    let out_of_range = "a field out of range";
    for (record, field, value, expected) in [
        (2, id, &[0; 12][..], out_of_range),
        (2, offset_of!(RecordRecord, version), &[0; 4], out_of_range),
        (2, offset_of!(RecordRecord, length), &1025u32.to_le_bytes(), out_of_range),
        (2, offset_of!(RecordRecord, flags), &[2], out_of_range),
        (1, id, &[5; 12], "an id that another record has"),
        (1, content, &[2; 32], "a unique key that another record has"),
        (1, content, &[0; 32], "a unique key of zeros"),
        (2, owner, &[2; 12], "no such owner before it"),
        (2, owner, &[1; 12], "no such owner before it"),
        (2, content + 5, &[1], "bytes behind its end"),
    ] {
        let record_number = record as u64;
        assert_eq!(why(forged(record, field, value)), (record_number, expected));
    }
    let mut few = sample();
    let (range, end) = (section(&few, RECORD_LIMITS), section(&few, END).start);
    few[range.start + 20..range.start + 24].copy_from_slice(&3u32.to_le_bytes());
    seal(&mut few, &range);
    let few = read_forged(&mut few, end).map(|(core, _)| core);
    assert_eq!(why(few), (1, "more blocks than there may be"));
}

/// The last version there is cannot be raised.
#[test]
fn versions_end() {
    let version = offset_of!(RecordRecord, version);
    let mut venue = venue_with(6, 30);
    venue.core = forged(2, version, &u32::MAX.to_le_bytes()).unwrap();
    let last =
        PutRecord { kind: 1, version: u32::MAX, id: [1; 12], owner: [9; 12], ..Default::default() };
    let reject = venue.apply_bytes(&put(last, b"more")).unwrap_err();
    assert_eq!(reject.reason, RejectReason::Overflow);
    let delete = DeleteRecord { kind: 1, id: [1; 12], owner: [9; 12], ..Default::default() };
    venue.must(&delete);
}
