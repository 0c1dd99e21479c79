//! Any writes, by chance: the same outcome as the naive model's, the same records in the end, and the
//! same venue out of the log and out of a snapshot at any place of it. `TOUCHLINE_CASES` for more.

use crate::model::{Entry, Id, Model, Outcome, Put};
use crate::venue::{Owned, Venue};
use crate::{parts, put, venue_with};
use proptest::prelude::*;
use touchline_protocol::message::command::*;

#[derive(Clone, Debug)]
enum Write {
    /// The version that is meant: the present one plus this.
    Put(Put, i32),
    Delete {
        kind: u32,
        id: Id,
        owner: Id,
        version: i32,
    },
    Limits(u32, u32),
    Restart,
}

/// Few ids, so that they meet; 0 is none.
fn id() -> impl Strategy<Value = Id> {
    prop_oneof![8 => 1..7u8, 1 => Just(0)].prop_map(|n| [n; 12])
}

fn owner() -> impl Strategy<Value = Id> {
    prop_oneof![2 => Just([0; 12]), 1 => id()]
}

fn kind() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(1u32), 1 => 0..3u32]
}

/// Mostly the version that is there.
fn version() -> impl Strategy<Value = i32> {
    prop_oneof![8 => Just(0), 1 => -2..3i32]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let edges = prop::sample::select(vec![0usize, 1, 27, 28, 29, 59, 60, 61, 88, 89, 1023, 1024]);
    let length = prop_oneof![2 => edges, 1 => 0..200usize];
    (length, any::<u8>())
        .prop_map(|(length, first)| (0..length).map(|at| first.wrapping_add(at as u8)).collect())
}

fn write() -> impl Strategy<Value = Write> {
    let key = prop_oneof![3 => Just(0u8), 2 => 1..4u8].prop_map(|n| [n; 32]);
    let put = (id(), kind(), owner(), key, content(), version()).prop_map(
        |(id, kind, owner, key, bytes, version)| {
            Write::Put(Put { id, entry: Entry { kind, version: 0, owner, key, bytes } }, version)
        },
    );
    let delete = (kind(), id(), owner(), version())
        .prop_map(|(kind, id, owner, version)| Write::Delete { kind, id, owner, version });
    prop_oneof![
        12 => put,
        4 => delete,
        1 => (0..9u32, 0..60u32).prop_map(|(records, blocks)| Write::Limits(records, blocks)),
        1 => Just(Write::Restart),
    ]
}

/// The owner and kind that a record has, three times in four; so that most writes meet them.
fn aim(model: &Model, id: Id, given: (u32, Id), by: i32) -> (u32, Id, u32) {
    let Some(now) = model.all.get(&id) else {
        return (given.0, given.1, by.max(0).cast_unsigned());
    };
    let version = now.version.saturating_add_signed(by);
    if given.0 == 1 { (now.kind, now.owner, version) } else { (given.0, given.1, version) }
}

fn outcome(result: Result<Vec<Owned>, touchline_core::Reject>) -> Outcome {
    match result {
        Err(reject) => Err((reject.reason, reject.detail)),
        Ok(events) => match events[..] {
            [Owned::RecordPut(event)] => Ok(event.version),
            [Owned::RecordDeleted(event)] => Ok(event.version),
            _ => panic!("{events:?}"),
        },
    }
}

fn play(venue: &mut Venue, model: &mut Model, write: &Write) {
    match write {
        Write::Put(wanted, by) => {
            let (id, given) = (wanted.id, (wanted.entry.kind, wanted.entry.owner));
            let (kind, owner, version) = aim(model, id, given, *by);
            let Entry { key, bytes, .. } = wanted.entry.clone();
            let entry = Entry { kind, version, owner, key, bytes };
            let message =
                PutRecord { kind, version, id, owner, unique_key: key, ..Default::default() };
            let found = outcome(venue.apply_bytes(&put(message, &entry.bytes)));
            assert_eq!(found, model.put(&Put { id, entry }), "{write:?}");
        }
        Write::Delete { kind, id, owner, version } => {
            let (kind, owner, version) = aim(model, *id, (*kind, *owner), *version);
            let id = *id;
            let message = DeleteRecord { kind, version, id, owner, ..Default::default() };
            let found = outcome(venue.apply(&message));
            assert_eq!(found, model.delete(kind, id, owner, version), "{write:?}");
        }
        &Write::Limits(records, blocks) => {
            let message = SetRecordLimits { records, blocks, ..Default::default() };
            let found = venue.apply(&message).map(|_| ());
            let found = found.map_err(|reject| (reject.reason, reject.detail));
            assert_eq!(found, model.set_limits(records, blocks), "{write:?}");
        }
        Write::Restart => venue.core = parts::again(&venue.core, 0x5eed),
    }
}

/// Every record, and only those, as the model has it.
fn compare(venue: &Venue, model: &Model) {
    let counts = venue.core.counts();
    assert_eq!(counts.records as usize, model.all.len());
    assert_eq!(counts.record_blocks, model.used_blocks());
    for (id, entry) in &model.all {
        let view = venue.core.record(id).expect("a record");
        let content: Vec<u8> = venue.core.record_content(id).expect("a record").collect();
        let found = Entry {
            kind: view.kind,
            version: view.version,
            owner: view.owner,
            key: view.unique_key,
            bytes: content,
        };
        assert_eq!((&found, view.length as usize), (entry, entry.bytes.len()));
        assert_eq!(view.owned, model.owned_by(*id));
        if entry.key != [0; 32] {
            assert_eq!(venue.core.find_record(entry.kind, &entry.key), Some(*id));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("TOUCHLINE_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(300),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn any_writes_come_out_as_the_model_says(writes in prop::collection::vec(write(), 1..120)) {
        let (records, blocks) = (5, 40);
        let mut venue = venue_with(records, blocks);
        let mut model = Model { records, blocks, ..Model::default() };
        for write in &writes {
            venue.time_ns += 1;
            play(&mut venue, &mut model, write);
            compare(&venue, &model);
        }
        venue.check_replay();
        parts::again(&venue.core, 1);
    }
}
