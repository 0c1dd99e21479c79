//! Records as they stand: by id, by unique key, and all of one owner in the order in which they were made.
//! Folded from the log; read by the jobs service, which alone knows what they carry.
//!
//! What belongs to one owner lies in blocks that readers share: a list of a hundred thousand records is
//! taken in a few hundred steps, does not change any more while it is written out, and holds nobody up. A
//! block that somebody still reads is copied when it changes.

use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::error::FoldError;

/// Records of one block at the most. A change copies one block at the worst.
const BLOCK: usize = 128;

/// What a record is known by, chosen by who made it.
pub type RecordId = [u8; 12];

/// The id of no record: the owner of what belongs to nobody.
pub const NOBODY: RecordId = [0; 12];

/// A digest of what no two records of a kind have in common; all zeros: nothing.
pub type UniqueKey = [u8; 32];

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: RecordId,
    /// What kind of record it is; its writers know what that means.
    pub kind: u32,
    /// How often it was put: 1 when it was made.
    pub version: u32,
    /// When it was made, in milliseconds since the epoch.
    pub created_ms: u64,
    /// When it was put last.
    pub updated_ms: u64,
    /// What it carries.
    pub content: Box<[u8]>,
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    owner: RecordId,
    /// The how-many-th record of all it was.
    number: u64,
}

/// Records of one owner that were made one after another, with their numbers.
#[derive(Debug, Clone, Default)]
pub struct Block {
    numbers: Vec<u64>,
    records: Vec<Record>,
}

impl Block {
    /// The records, in the order in which they were made.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Gives back room of records that are gone: else one that is left would hold a whole block's.
    fn give_back(&mut self) {
        let kept = self.records.len() * 2;
        if kept * 2 <= self.records.capacity() {
            self.records.shrink_to(kept);
            self.numbers.shrink_to(kept);
        }
    }
}

/// What a put says about a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Put<'a> {
    pub(super) id: RecordId,
    pub(super) owner: RecordId,
    pub(super) kind: u32,
    pub(super) version: u32,
    pub(super) unique_key: UniqueKey,
    pub(super) content: &'a [u8],
    pub(super) time_ms: u64,
}

/// All records.
#[derive(Debug, Clone, Default)]
pub struct Records {
    places: HashMap<RecordId, Place>,
    owned: HashMap<RecordId, Vec<Arc<Block>>>,
    by_key: HashMap<(u32, UniqueKey), RecordId>,
    /// The unique keys of those that have one.
    keys: HashMap<RecordId, UniqueKey>,
    /// Number of the one that was made last.
    made: u64,
    /// By number: those that have changed, or are gone, since they were last asked for.
    changed: HashMap<u64, RecordId>,
}

/// A record as it is saved, without what it carries, which lies behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RecordRow {
    created_ms: u64,
    updated_ms: u64,
    kind: u32,
    version: u32,
    id: RecordId,
    owner: RecordId,
    unique_key: UniqueKey,
}

impl Records {
    /// The record and its owner.
    #[must_use]
    pub fn get(&self, id: &RecordId) -> Option<(&Record, RecordId)> {
        let place = self.places.get(id)?;
        let blocks = self.owned.get(&place.owner)?;
        let (block, index) = find(blocks, place.number)?;
        Some((&blocks[block].records[index], place.owner))
    }

    /// The record of this kind that has this unique key.
    #[must_use]
    pub fn keyed(&self, kind: u32, key: &UniqueKey) -> Option<&Record> {
        let id = self.by_key.get(&(kind, *key))?;
        self.get(id).map(|(record, _)| record)
    }

    /// All records of an owner as they stand now, whatever changes later, in the order in which they were
    /// made.
    #[must_use]
    pub fn owned_by(&self, owner: &RecordId) -> Vec<Arc<Block>> {
        self.owned.get(owner).cloned().unwrap_or_default()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What has changed since the last call, by number: the rows to save, or nothing for what is gone.
    pub(super) fn take_changed(&mut self) -> Vec<(u64, Option<Vec<u8>>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|(number, id)| (number, self.row(number, &id))).collect()
    }

    fn row(&self, number: u64, id: &RecordId) -> Option<Vec<u8>> {
        // Another record may have got the id of one that is gone.
        let place = self.places.get(id).filter(|place| place.number == number)?;
        let (record, _) = self.get(id)?;
        let head = RecordRow {
            created_ms: record.created_ms,
            updated_ms: record.updated_ms,
            kind: record.kind,
            version: record.version,
            id: *id,
            owner: place.owner,
            unique_key: self.keys.get(id).copied().unwrap_or_default(),
        };
        Some([bytemuck::bytes_of(&head), &*record.content].concat())
    }

    /// Takes back what was saved, in the order of the numbers.
    pub(super) fn restore(
        &mut self,
        number: u64,
        row: &RecordRow,
        content: &[u8],
    ) -> Result<(), FoldError> {
        if i64::try_from(number).is_err() {
            return Err(FoldError::Record("was saved under a number that none can have"));
        }
        if number <= self.made {
            return Err(FoldError::Record("was saved out of order"));
        }
        self.made = number - 1;
        let RecordRow { created_ms, updated_ms, kind, version, id, owner, unique_key } = *row;
        let content = content.into();
        self.make(Record { id, kind, version, created_ms, updated_ms, content }, owner)?;
        self.name(kind, id, unique_key)?;
        self.changed.clear();
        Ok(())
    }

    /// Folds a put that the engine accepted.
    pub(super) fn put(&mut self, put: Put<'_>) -> Result<(), FoldError> {
        if put.version == 1 {
            let record = Record {
                id: put.id,
                kind: put.kind,
                version: put.version,
                created_ms: put.time_ms,
                updated_ms: put.time_ms,
                content: put.content.into(),
            };
            self.make(record, put.owner)?;
        } else {
            self.change(put)?;
        }
        self.name(put.kind, put.id, put.unique_key)
    }

    /// Gives a record its unique key, or none, in the place of the one that it had.
    fn name(&mut self, kind: u32, id: RecordId, key: UniqueKey) -> Result<(), FoldError> {
        if let Some(old) = self.keys.remove(&id) {
            self.by_key.remove(&(kind, old));
        }
        if key != [0; 32] {
            if self.by_key.insert((kind, key), id).is_some() {
                return Err(FoldError::Record("has the unique key of another"));
            }
            self.keys.insert(id, key);
        }
        Ok(())
    }

    fn make(&mut self, record: Record, owner: RecordId) -> Result<(), FoldError> {
        if owner != NOBODY && !self.places.contains_key(&owner) {
            return Err(FoldError::Record("belongs to one that does not exist"));
        }
        self.made += 1;
        let place = Place { owner, number: self.made };
        if self.places.insert(record.id, place).is_some() {
            return Err(FoldError::Record("was made twice"));
        }
        self.changed.insert(place.number, record.id);
        let blocks = self.owned.entry(owner).or_default();
        if blocks.last().is_none_or(|block| block.records.len() >= BLOCK) {
            blocks.push(Arc::default());
        }
        if let Some(block) = blocks.last_mut() {
            let block = Arc::make_mut(block);
            block.numbers.push(place.number);
            block.records.push(record);
        }
        Ok(())
    }

    fn change(&mut self, put: Put<'_>) -> Result<(), FoldError> {
        let unknown = FoldError::Record("was changed and is not there");
        let Some(place) = self.places.get(&put.id).copied() else { return Err(unknown) };
        let Some(blocks) = self.owned.get_mut(&place.owner) else { return Err(unknown) };
        let Some((block, index)) = find(blocks, place.number) else { return Err(unknown) };
        let record = &mut Arc::make_mut(&mut blocks[block]).records[index];
        let follows = record.version.checked_add(1) == Some(put.version);
        if !follows || record.kind != put.kind || place.owner != put.owner {
            return Err(FoldError::Record("was changed from another version, kind or owner"));
        }
        record.version = put.version;
        record.updated_ms = put.time_ms;
        record.content = put.content.into();
        self.changed.insert(place.number, put.id);
        Ok(())
    }

    /// Folds a deletion that the engine accepted.
    pub(super) fn delete(&mut self, id: &RecordId) -> Result<(), FoldError> {
        let unknown = FoldError::Record("was deleted and is not there");
        let Some(place) = self.places.remove(id) else { return Err(unknown) };
        self.changed.insert(place.number, *id);
        let Some(blocks) = self.owned.get_mut(&place.owner) else { return Err(unknown) };
        let Some((at, index)) = find(blocks, place.number) else { return Err(unknown) };
        let block = Arc::make_mut(&mut blocks[at]);
        block.numbers.remove(index);
        let record = block.records.remove(index);
        block.give_back();
        if block.records.is_empty() {
            blocks.remove(at);
        }
        if blocks.is_empty() {
            self.owned.remove(&place.owner);
        }
        if let Some(key) = self.keys.remove(id) {
            self.by_key.remove(&(record.kind, key));
        }
        Ok(())
    }
}

/// Block and index of a record by its number.
fn find(blocks: &[Arc<Block>], number: u64) -> Option<(usize, usize)> {
    let behind =
        blocks.partition_point(|block| block.numbers.first().is_some_and(|&first| first <= number));
    let block = behind.checked_sub(1)?;
    let index = blocks[block].numbers.binary_search(&number).ok()?;
    Some((block, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const USERS: u32 = 1;
    const JOBS: u32 = 2;

    fn id(number: u32) -> RecordId {
        let mut id = [0xee; 12];
        id[..4].copy_from_slice(&number.to_le_bytes());
        id
    }

    fn put(number: u32, owner: RecordId, version: u32) -> Put<'static> {
        let kind = if owner == NOBODY { USERS } else { JOBS };
        let unique_key = [0; 32];
        Put { id: id(number), owner, kind, version, unique_key, content: b"one", time_ms: 5 }
    }

    fn numbers(blocks: &[Arc<Block>]) -> Vec<u32> {
        let records = blocks.iter().flat_map(|block| block.records());
        records.map(|record| u32::from_le_bytes(record.id[..4].try_into().unwrap())).collect()
    }

    #[test]
    fn a_record_is_found_by_id_key_and_owner_until_it_is_deleted() {
        let mut records = Records::default();
        let key = [7; 32];
        records.put(Put { unique_key: key, ..put(1, NOBODY, 1) }).unwrap();
        records.put(put(2, id(1), 1)).unwrap();
        records.put(Put { content: b"two", time_ms: 9, ..put(2, id(1), 2) }).unwrap();
        let (job, owner) = records.get(&id(2)).unwrap();
        assert_eq!((job.created_ms, job.updated_ms, job.version, owner), (5, 9, 2, id(1)));
        assert_eq!(&*job.content, b"two");
        assert_eq!(records.keyed(USERS, &key).unwrap().id, id(1));
        assert!(records.keyed(JOBS, &key).is_none());
        let other = [8; 32];
        records.put(Put { unique_key: other, ..put(1, NOBODY, 2) }).unwrap();
        assert!(records.keyed(USERS, &key).is_none());
        assert_eq!(numbers(&records.owned_by(&id(1))), [2]);
        records.delete(&id(2)).unwrap();
        records.delete(&id(1)).unwrap();
        assert!(records.is_empty() && records.keyed(USERS, &other).is_none());
        assert!(records.owned.is_empty() && records.keys.is_empty() && records.by_key.is_empty());
    }

    #[test]
    fn a_log_that_contradicts_itself_is_noticed() {
        let mut records = Records::default();
        assert!(records.put(put(2, id(1), 1)).is_err(), "no such owner");
        records.put(Put { unique_key: [7; 32], ..put(1, NOBODY, 1) }).unwrap();
        assert!(records.put(put(3, NOBODY, 2)).is_err(), "changed before it was made");
        assert!(records.put(put(1, NOBODY, 3)).is_err(), "a version was left out");
        assert!(records.delete(&id(9)).is_err());
        assert!(records.put(Put { unique_key: [7; 32], ..put(4, NOBODY, 1) }).is_err());
        assert!(records.put(put(1, NOBODY, 1)).is_err(), "made twice");
    }

    #[test]
    fn a_list_that_was_taken_does_not_change_any_more() {
        let mut records = Records::default();
        records.put(put(1, NOBODY, 1)).unwrap();
        for number in 10..1010 {
            records.put(put(number, id(1), 1)).unwrap();
        }
        let before = records.owned_by(&id(1));
        for number in (10..1010).step_by(3) {
            records.delete(&id(number)).unwrap();
        }
        records.put(Put { content: b"two", ..put(11, id(1), 2) }).unwrap();
        records.put(put(2000, id(1), 1)).unwrap();
        assert_eq!(numbers(&before), (10..1010).collect::<Vec<_>>());
        assert_eq!(&*before[0].records()[1].content, b"one");
        let after = records.owned_by(&id(1));
        let left = (10..1010).filter(|number| (number - 10) % 3 != 0).chain([2000]);
        assert_eq!(numbers(&after), left.collect::<Vec<_>>());
    }

    #[test]
    fn the_last_records_of_their_blocks_hold_no_room_for_those_that_are_gone() {
        let mut records = Records::default();
        records.put(put(1, NOBODY, 1)).unwrap();
        let all = 10..10 + 4 * BLOCK as u32;
        all.clone().for_each(|number| records.put(put(number, id(1), 1)).unwrap());
        for number in all.filter(|number| (number - 10) % BLOCK as u32 != 77) {
            records.delete(&id(number)).unwrap();
        }
        let left = records.owned_by(&id(1));
        assert_eq!(left.len(), 4);
        for block in left {
            let room = block.records.capacity().max(block.numbers.capacity());
            assert!(block.records.len() == 1 && room <= 4, "room for {room}");
        }
    }

    /// Saves what has changed, as the store does.
    fn save(records: &mut Records, saved: &mut BTreeMap<u64, Vec<u8>>) {
        for (number, row) in records.take_changed() {
            match row {
                Some(row) => drop(saved.insert(number, row)),
                None => drop(saved.remove(&number)),
            }
        }
    }

    fn restored(saved: &BTreeMap<u64, Vec<u8>>) -> Records {
        let mut records = Records::default();
        for (number, row) in saved {
            let (head, content) = row.split_at(size_of::<RecordRow>());
            records.restore(*number, &bytemuck::pod_read_unaligned(head), content).unwrap();
        }
        records
    }

    #[test]
    fn no_record_was_saved_behind_all_numbers() {
        let row = RecordRow {
            created_ms: 5,
            updated_ms: 5,
            kind: USERS,
            version: 1,
            id: id(1),
            owner: NOBODY,
            unique_key: [0; 32],
        };
        for number in [1 << 63, u64::MAX] {
            let restored = Records::default().restore(number, &row, b"");
            assert!(matches!(restored, Err(FoldError::Record(_))), "{number}");
        }
    }

    #[test]
    fn what_was_saved_comes_back_with_keys_owners_and_order() {
        let (mut records, mut saved) = (Records::default(), BTreeMap::new());
        records.put(Put { unique_key: [7; 32], ..put(1, NOBODY, 1) }).unwrap();
        (10..300).for_each(|number| records.put(put(number, id(1), 1)).unwrap());
        save(&mut records, &mut saved);
        records.delete(&id(20)).unwrap();
        records.put(put(20, id(1), 1)).unwrap();
        records.put(Put { content: b"two", time_ms: 9, ..put(11, id(1), 2) }).unwrap();
        records.delete(&id(299)).unwrap();
        save(&mut records, &mut saved);
        assert!(records.take_changed().is_empty());
        let mut again = restored(&saved);
        assert!(again.take_changed().is_empty(), "what was saved need not be saved");
        assert_eq!(numbers(&again.owned_by(&id(1))), numbers(&records.owned_by(&id(1))));
        assert_eq!(again.get(&id(11)), records.get(&id(11)));
        assert_eq!(again.keyed(USERS, &[7; 32]), records.keyed(USERS, &[7; 32]));
        again.put(put(301, id(1), 1)).unwrap();
        assert_eq!(numbers(&again.owned_by(&id(1))).last(), Some(&301));
    }

    proptest! {
        /// Against a list that is searched from its beginning.
        #[test]
        fn it_holds_what_a_plain_list_holds(
            steps in prop::collection::vec((0u32..40, 0u8..4), 1..600)
        ) {
            let mut records = Records::default();
            let mut model: Vec<(u32, u32, u32)> = Vec::new();
            for owner in [1, 2] {
                records.put(put(owner, NOBODY, 1)).unwrap();
            }
            for (number, what) in steps {
                let number = number + 10;
                let at = model.iter().position(|row| row.0 == number);
                match (what, at) {
                    (0, Some(at)) => {
                        model.remove(at);
                        records.delete(&id(number)).unwrap();
                    }
                    (1, Some(at)) => {
                        model[at].2 += 1;
                        records.put(put(number, id(model[at].1), model[at].2)).unwrap();
                    }
                    (_, None) => {
                        let owner = 1 + u32::from(what & 1);
                        model.push((number, owner, 1));
                        records.put(put(number, id(owner), 1)).unwrap();
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(records.len(), model.len() + 2);
            for owner in [1, 2] {
                let expected = model.iter().filter(|row| row.1 == owner).map(|row| row.0);
                prop_assert_eq!(numbers(&records.owned_by(&id(owner))), expected.collect::<Vec<_>>());
            }
            for number in 10..50 {
                let found = records.get(&id(number)).map(|(record, _)| record.version);
                let expected = model.iter().find(|row| row.0 == number).map(|row| row.2);
                prop_assert_eq!(found, expected);
            }
        }
    }
}
