//! The rules of records one by one, and who may write them.

use crate::venue::{Owned, Venue};
use crate::{put, venue_with};
use touchline_core::Reject;
use touchline_core::limits::{RECORD_BLOCKS_MAX, RECORDS_MAX, number};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, RejectReason as Why, Role};
use touchline_protocol::message::event::{RecordDeleted, RecordPut};
use touchline_protocol::units::KeyId;

const USER: PutRecordKey = PutRecordKey { kind: 1, id: [1; 12], owner: [0; 12] };
const JOB: PutRecordKey = PutRecordKey { kind: 2, id: [2; 12], owner: [1; 12] };

/// What names a record in every command.
#[derive(Clone, Copy)]
struct PutRecordKey {
    kind: u32,
    id: [u8; 12],
    owner: [u8; 12],
}

impl PutRecordKey {
    fn put(self, version: u32) -> PutRecord {
        let Self { kind, id, owner } = self;
        PutRecord { kind, version, id, owner, ..Default::default() }
    }

    fn delete(self, version: u32) -> DeleteRecord {
        let Self { kind, id, owner } = self;
        DeleteRecord { kind, version, id, owner, ..Default::default() }
    }
}

fn write(venue: &mut Venue, message: PutRecord, content: &[u8]) -> Result<Vec<Owned>, Reject> {
    venue.apply_bytes(&put(message, content))
}

fn rejected(outcome: Result<Vec<Owned>, Reject>, reason: Why, detail: u32) {
    assert_eq!(outcome.unwrap_err(), Reject { reason, detail });
}

#[test]
fn a_record_is_made_changed_and_deleted() {
    let mut venue = venue_with(4, 40);
    write(&mut venue, USER.put(0), b"ann").unwrap();
    for (version, content) in [(0, &b"first"[..]), (1, b"second"), (2, b"")] {
        let events = write(&mut venue, JOB.put(version), content).unwrap();
        let expected = RecordPut {
            kind: 2,
            version: version + 1,
            id: JOB.id,
            owner: USER.id,
            length: content.len() as u32,
            ..Default::default()
        };
        assert_eq!(events, [Owned::RecordPut(expected)]);
        let found: Vec<u8> = venue.core.record_content(&JOB.id).unwrap().collect();
        assert_eq!(found, content);
    }
    let events = venue.must(&JOB.delete(3));
    let (id, owner) = (JOB.id, JOB.owner);
    let expected = RecordDeleted { kind: 2, version: 3, id, owner, ..Default::default() };
    assert_eq!(events, [Owned::RecordDeleted(expected)]);
    assert_eq!(venue.core.record(&JOB.id), None);
    // Of the same id there may be another one later; it begins anew.
    write(&mut venue, JOB.put(0), b"again").unwrap();
    assert_eq!(venue.core.record(&JOB.id).unwrap().version, 1);
    venue.check_replay();
}

#[test]
fn a_write_of_another_version_names_the_present_one() {
    let mut venue = venue_with(4, 40);
    write(&mut venue, USER.put(0), b"1").unwrap();
    write(&mut venue, USER.put(1), b"2").unwrap();
    for version in [0, 1, 3, u32::MAX] {
        rejected(write(&mut venue, USER.put(version), b"3"), Why::RecordVersion, 2);
    }
    for version in [1, 3] {
        rejected(venue.apply(&USER.delete(version)), Why::RecordVersion, 2);
    }
    // 0: whichever it has.
    venue.must(&USER.delete(0));
    rejected(write(&mut venue, USER.put(2), b"3"), Why::UnknownRecord, 0);
    rejected(venue.apply(&USER.delete(0)), Why::UnknownRecord, 0);
}

#[test]
fn a_record_keeps_kind_and_owner_and_is_written_under_no_others() {
    let mut venue = venue_with(4, 40);
    write(&mut venue, USER.put(0), b"").unwrap();
    let other = PutRecordKey { id: [9; 12], ..USER };
    write(&mut venue, other.put(0), b"").unwrap();
    write(&mut venue, JOB.put(0), b"").unwrap();
    for wrong in [
        PutRecordKey { kind: 1, ..JOB },
        PutRecordKey { owner: other.id, ..JOB },
        PutRecordKey { owner: [0; 12], ..JOB },
        PutRecordKey { owner: [7; 12], ..JOB },
    ] {
        rejected(write(&mut venue, wrong.put(1), b"stolen"), Why::UnknownRecord, 0);
        rejected(venue.apply(&wrong.delete(1)), Why::UnknownRecord, 0);
        rejected(venue.apply(&wrong.delete(0)), Why::UnknownRecord, 0);
    }
}

#[test]
fn an_owner_exists_before_and_for_as_long_as_it_owns() {
    let mut venue = venue_with(4, 40);
    rejected(write(&mut venue, JOB.put(0), b""), Why::UnknownOwner, 0);
    let own = PutRecordKey { owner: JOB.id, ..JOB };
    rejected(write(&mut venue, own.put(0), b""), Why::UnknownOwner, 0);
    write(&mut venue, USER.put(0), b"").unwrap();
    write(&mut venue, JOB.put(0), b"").unwrap();
    write(&mut venue, PutRecordKey { id: [3; 12], ..JOB }.put(0), b"").unwrap();
    rejected(venue.apply(&USER.delete(0)), Why::RecordInUse, 2);
    venue.must(&JOB.delete(1));
    rejected(venue.apply(&USER.delete(1)), Why::RecordInUse, 1);
    // An owner may be changed meanwhile.
    write(&mut venue, USER.put(1), b"renamed").unwrap();
    venue.must(&PutRecordKey { id: [3; 12], ..JOB }.delete(0));
    venue.must(&USER.delete(2));
    assert_eq!(venue.core.counts().records, 0);
}

#[test]
fn a_unique_key_is_there_once_per_kind() {
    let mut venue = venue_with(8, 80);
    let with =
        |key: PutRecordKey, version, n: u8| PutRecord { unique_key: [n; 32], ..key.put(version) };
    let second = PutRecordKey { id: [4; 12], ..USER };
    let other_kind = PutRecordKey { kind: 3, id: [5; 12], ..USER };
    write(&mut venue, with(USER, 0, 1), b"ann").unwrap();
    rejected(write(&mut venue, with(second, 0, 1), b"bob"), Why::UniqueKeyTaken, 0);
    write(&mut venue, with(other_kind, 0, 1), b"no user").unwrap();
    write(&mut venue, with(second, 0, 2), b"bob").unwrap();
    // A record may keep its key, and not take another's.
    write(&mut venue, with(USER, 1, 1), b"ann, changed").unwrap();
    rejected(write(&mut venue, with(second, 1, 1), b"bob"), Why::UniqueKeyTaken, 0);
    // A key that its record gave up is free.
    write(&mut venue, with(USER, 2, 0), b"without").unwrap();
    assert_eq!(venue.core.find_record(1, &[1; 32]), None);
    write(&mut venue, with(second, 1, 1), b"bob").unwrap();
    assert_eq!(venue.core.find_record(1, &[1; 32]), Some(second.id));
    venue.must(&second.delete(0));
    assert_eq!(venue.core.find_record(1, &[1; 32]), None);
}

#[test]
fn capacities_are_counted_in_records_and_blocks() {
    let mut venue = venue_with(2, 3);
    write(&mut venue, USER.put(0), &[1; 60]).unwrap();
    rejected(write(&mut venue, JOB.put(0), &[1; 121]), Why::CapacityReached, number::RECORD_BLOCKS);
    let keyed = PutRecord { unique_key: [1; 32], ..JOB.put(0) };
    rejected(write(&mut venue, keyed, &[1; 89]), Why::CapacityReached, number::RECORD_BLOCKS);
    write(&mut venue, keyed, &[1; 88]).unwrap();
    assert_eq!(venue.core.counts().record_blocks, 3);
    // What a change gives up counts for what it takes.
    write(&mut venue, PutRecord { version: 1, ..keyed }, &[2; 28]).unwrap();
    write(&mut venue, PutRecord { version: 2, ..keyed }, &[3; 88]).unwrap();
    let third = PutRecordKey { id: [3; 12], ..USER };
    rejected(write(&mut venue, third.put(0), b""), Why::CapacityReached, number::RECORDS);
    let set = |records, blocks| SetRecordLimits { records, blocks, ..Default::default() };
    for (records, blocks, which) in [
        (1, 3, number::RECORDS),
        (RECORDS_MAX + 1, 3, number::RECORDS),
        (2, 2, number::RECORD_BLOCKS),
        (2, RECORD_BLOCKS_MAX + 1, number::RECORD_BLOCKS),
    ] {
        rejected(venue.apply(&set(records, blocks)), Why::LimitOutOfRange, which);
    }
    venue.must(&set(3, 3));
    write(&mut venue, third.put(0), b"").unwrap();
    venue.must(&set(3, 4));
    write(&mut venue, third.put(1), b"now it fits").unwrap();
    venue.check_replay();
}

#[test]
fn an_id_of_zeros_is_none() {
    let mut venue = venue_with(2, 3);
    let none = PutRecordKey { id: [0; 12], ..USER };
    rejected(write(&mut venue, none.put(0), b""), Why::InvalidDefinition, 2);
    rejected(venue.apply(&none.delete(0)), Why::UnknownRecord, 0);
}

/// The words of a message with its command header set.
fn sent_by(header: CommandHeader, words: &[u64]) -> Vec<u64> {
    let mut words = words.to_vec();
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    bytes[8..48].copy_from_slice(bytemuck::bytes_of(&header));
    words
}

#[test]
fn only_adapter_and_admin_write_records_and_by_the_cold_lane() {
    let mut venue = venue_with(4, 40);
    venue.set_limits(Limits {
        accounts: 2,
        keys: 1,
        assets: 1,
        sessions: 8,
        ..*venue.core.limits()
    });
    let (_, key) = venue.account("ann", (0, 0));
    let none = KeyId(0);
    let allowed = [(Role::Adapter, Lane::Cold, none), (Role::Admin, Lane::Cold, none)];
    let refused = [
        (Role::Adapter, Lane::Hot, none),
        (Role::Trader, Lane::Hot, key),
        (Role::Trader, Lane::Cold, key),
        (Role::ReadOnly, Lane::Cold, key),
    ];
    let limits = SetRecordLimits { records: 4, blocks: 40, ..Default::default() };
    let commands = [
        put(USER.put(0), b"x"),
        crate::venue::aligned(bytemuck::bytes_of(&USER.delete(0))),
        crate::venue::aligned(bytemuck::bytes_of(&limits)),
    ];
    for (n, (role, lane, key)) in refused.into_iter().chain(allowed).enumerate() {
        let session = venue.logon(&format!("session-{n}"), role, lane, key);
        for words in &commands {
            let header = venue.header(session, key);
            let outcome = venue.apply_bytes(&sent_by(header, words));
            if n < refused.len() {
                rejected(outcome, Why::RoleNotPermitted, 0);
            } else {
                outcome.unwrap();
            }
        }
    }
}

#[test]
fn rules_1_know_no_records() {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(crate::venue::roomy());
    let limits = SetRecordLimits { records: 4, blocks: 40, ..Default::default() };
    rejected(venue.apply(&limits), Why::UnexpectedMessage, 0);
    rejected(write(&mut venue, USER.put(0), b""), Why::UnexpectedMessage, 0);
    rejected(venue.apply(&USER.delete(0)), Why::UnexpectedMessage, 0);
}

/// A venue that has no limits of records has the hash, and the snapshot, of a venue before there were any.
#[test]
fn a_venue_without_records_is_what_it_was() {
    let mut venue = venue_with(0, 0);
    let without = crate::parts::write(&venue.core);
    let sections = crate::parts::sections(&without);
    assert_eq!(sections.len(), 16);
    let before = venue.core.state_hash();
    venue.must(&SetRecordLimits { records: 1, ..Default::default() });
    assert_ne!(venue.core.state_hash(), before);
    assert_eq!(crate::parts::sections(&crate::parts::write(&venue.core)).len(), 18);
    assert_eq!(PutRecord::TEMPLATE, 61);
}

/// Each field of a record is state.
#[test]
fn one_difference_is_seen() {
    let base = PutRecord { unique_key: [1; 32], ..JOB.put(0) };
    let made = |message: PutRecord, content: &[u8], again: bool| {
        let mut venue = venue_with(4, 40);
        for key in [USER, PutRecordKey { id: [9; 12], ..USER }] {
            write(&mut venue, key.put(0), b"").unwrap();
        }
        write(&mut venue, message, content).unwrap();
        if again {
            write(&mut venue, PutRecord { version: 1, ..message }, content).unwrap();
        }
        venue.core.state_hash()
    };
    let hashes = [
        made(base, b"touchline", false),
        made(base, b"touchlinf", false),
        made(base, b"touchline\0", false),
        made(base, b"", false),
        made(base, b"touchline", true),
        made(PutRecord { kind: 3, ..base }, b"touchline", false),
        made(PutRecord { id: [3; 12], ..base }, b"touchline", false),
        made(PutRecord { owner: [9; 12], ..base }, b"touchline", false),
        made(PutRecord { owner: [0; 12], ..base }, b"touchline", false),
        made(PutRecord { unique_key: [2; 32], ..base }, b"touchline", false),
        made(PutRecord { unique_key: [0; 32], ..base }, b"touchline", false),
    ];
    for (n, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..n].contains(hash), "number {n} has the hash of one before it");
    }
}
