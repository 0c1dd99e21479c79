//! Records: what the venue keeps for the services beside trading, by id, by unique key, and with how
//! many others each owns. Called by the commands about records, snapshots and the state hash.
//!
//! The core knows neither users nor jobs. It says which put comes first, that an id and a unique key are
//! there once, that an owner exists for as long as it owns something, and what the version is.
//!
//! Memory is taken by `SetRecordLimits` only. A record is a slot, an entry in each of two tables, and the
//! blocks of its content: its unique key, if it has one, and what it carries behind that.

mod blocks;

use crate::hash::{Seed, StateHash};
use crate::pool::{Linked, NONE, Pool, named};
use crate::table::Table;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use blocks::Blocks;
use touchline_protocol::message::command::RECORD_BYTES_MAX;

/// A record's id; all zeros name none.
pub type RecordId = [u8; 12];
/// What at most one record of a kind has; all zeros: nothing.
pub type UniqueKey = [u8; 32];

/// The id of no record.
pub(crate) const NO_RECORD: RecordId = [0; 12];
/// No unique key.
pub(crate) const NO_KEY: UniqueKey = [0; 32];

const KEY_BYTES: usize = size_of::<UniqueKey>();

/// Most bytes of a content: unique key and what the record carries.
pub(crate) const CONTENT_BYTES_MAX: usize = KEY_BYTES + RECORD_BYTES_MAX as usize;

/// A unique key and what a record carries, in one piece; zeros behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    bytes: [u8; CONTENT_BYTES_MAX],
    length: usize,
}

impl Content {
    /// The unique key, unless it is [`NO_KEY`], and at most [`RECORD_BYTES_MAX`] bytes behind it.
    pub(crate) fn new(unique_key: &UniqueKey, carried: &[u8]) -> Self {
        let key: &[u8] = if *unique_key == NO_KEY { &[] } else { unique_key };
        let mut bytes = [0; CONTENT_BYTES_MAX];
        let length = key.len() + carried.len();
        bytes[..key.len()].copy_from_slice(key);
        bytes[key.len()..length].copy_from_slice(carried);
        Self { bytes, length }
    }

    /// All of it, without the zeros behind it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Blocks that it takes.
    pub(crate) const fn blocks(&self) -> u32 {
        blocks::needed(self.length)
    }
}

/// What is known of a record besides its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) id: RecordId,
    pub(crate) kind: u32,
    /// From 1; 0 in a slot that no record has.
    pub(crate) version: u32,
    /// Slot of its owner, or [`NONE`]; in a free slot the next free one.
    pub(crate) owner: u32,
    /// How many it owns.
    pub(crate) owned: u32,
    /// The first block of its content, or [`NONE`].
    first: u32,
    /// Bytes of its content.
    length: u16,
    pub(crate) has_key: bool,
}

impl Record {
    /// Bytes that it carries: its content without its unique key.
    pub(crate) const fn carried(&self) -> u32 {
        self.length as u32 - if self.has_key { KEY_BYTES as u32 } else { 0 }
    }

    /// Blocks that its content takes.
    pub(crate) const fn blocks(&self) -> u32 {
        blocks::needed(self.length as usize)
    }
}

impl Default for Record {
    fn default() -> Self {
        Self {
            id: NO_RECORD,
            kind: 0,
            version: 0,
            owner: NONE,
            owned: 0,
            first: NONE,
            length: 0,
            has_key: false,
        }
    }
}

impl Linked for Record {
    fn next_free(&self) -> u32 {
        self.owner
    }

    fn set_next_free(&mut self, handle: u32) {
        self.owner = handle;
    }
}

/// All records.
#[derive(Debug)]
pub(crate) struct Records {
    pool: Pool<Record>,
    by_id: Table,
    /// Only records with a unique key.
    by_key: Table,
    blocks: Blocks,
    seed: Seed,
}

impl Records {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self {
            pool: Pool::new(),
            by_id: Table::new(),
            by_key: Table::new(),
            blocks: Blocks::new(),
            seed,
        }
    }

    /// Makes room for so many records and blocks in all. Never shrinks.
    pub(crate) fn try_grow(&mut self, records: u32, blocks: u32) -> Result<(), TryReserveError> {
        self.pool.try_grow(records)?;
        self.by_id.try_grow(records)?;
        self.by_key.try_grow(records)?;
        self.blocks.try_grow(blocks)
    }

    /// Records.
    pub(crate) const fn len(&self) -> u32 {
        self.pool.live()
    }

    /// Blocks in use.
    pub(crate) const fn blocks(&self) -> u32 {
        self.blocks.len()
    }

    /// The record of a live slot.
    pub(crate) fn get(&self, slot: u32) -> &Record {
        &self.pool[slot]
    }

    /// The slot of a record by id.
    pub(crate) fn find(&self, id: &RecordId) -> Option<u32> {
        self.by_id.find(self.seed.record_id(id), |slot| self.pool[slot].id == *id)
    }

    /// The slot of the record of a kind that has this unique key.
    pub(crate) fn find_by_key(&self, kind: u32, key: &UniqueKey) -> Option<u32> {
        self.by_key.find(self.seed.unique_key(kind, key), |slot| {
            self.pool[slot].kind == kind && self.unique_key(slot) == *key
        })
    }

    /// The unique key of a live record, or [`NO_KEY`].
    pub(crate) fn unique_key(&self, slot: u32) -> UniqueKey {
        let Record { has_key, first, .. } = self.pool[slot];
        if has_key { self.blocks.beginning(first) } else { NO_KEY }
    }

    /// The id of a live record's owner, or [`NO_RECORD`].
    pub(crate) fn owner_id(&self, slot: u32) -> RecordId {
        named(self.pool[slot].owner).map_or(NO_RECORD, |owner| self.pool[owner].id)
    }

    /// Slots of all records, in no order that means anything.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.pool.handed_out().filter(|&slot| self.pool[slot].version != 0)
    }

    /// Adds a record of a new id and key with this content; `owner` is a slot or [`NONE`]. The caller has
    /// checked both limits. Gives its slot.
    pub(crate) fn add(
        &mut self,
        (id, kind, version): (RecordId, u32, u32),
        owner: u32,
        content: &Content,
        has_key: bool,
    ) -> u32 {
        let record = Record { id, kind, version, owner, ..Record::default() };
        let slot = self.pool.put(record).expect("there are as many slots as the limit allows");
        self.by_id.insert(self.seed.record_id(&id), slot);
        if let Some(owner) = named(owner) {
            self.pool[owner].owned += 1;
        }
        self.fill(slot, content, has_key);
        slot
    }

    /// Puts another content in the place of a record's and raises its version. The caller has checked the
    /// limit of blocks, that the key is free, and that the version can rise.
    pub(crate) fn replace(&mut self, slot: u32, content: &Content, has_key: bool) {
        self.empty(slot);
        self.pool[slot].version += 1;
        self.fill(slot, content, has_key);
    }

    /// Removes a record that owns nothing; gives what it was.
    pub(crate) fn remove(&mut self, slot: u32) -> Record {
        self.empty(slot);
        let record = self.pool[slot];
        self.by_id.remove(self.seed.record_id(&record.id), slot);
        if let Some(owner) = named(record.owner) {
            self.pool[owner].owned -= 1;
        }
        self.pool[slot].version = 0;
        self.pool.release(slot);
        record
    }

    fn fill(&mut self, slot: u32, content: &Content, has_key: bool) {
        let first = self.blocks.put(content.bytes());
        let record = &mut self.pool[slot];
        (record.first, record.length, record.has_key) = (first, content.length as u16, has_key);
        let kind = record.kind;
        if has_key {
            let key = self.blocks.beginning(first);
            self.by_key.insert(self.seed.unique_key(kind, &key), slot);
        }
    }

    fn empty(&mut self, slot: u32) {
        let Record { kind, has_key, first, .. } = self.pool[slot];
        if has_key {
            let key = self.blocks.beginning(first);
            self.by_key.remove(self.seed.unique_key(kind, &key), slot);
        }
        self.blocks.release(first);
    }

    /// What a live record carries.
    pub(crate) fn carried(&self, slot: u32) -> impl Iterator<Item = u8> + '_ {
        let record = &self.pool[slot];
        let content = self.blocks.read(record.first, record.length.into());
        content.skip((u32::from(record.length) - record.carried()) as usize)
    }

    /// The content of a live record in one piece.
    pub(crate) fn content(&self, slot: u32) -> Content {
        let record = &self.pool[slot];
        let mut content = Content { bytes: [0; CONTENT_BYTES_MAX], length: record.length.into() };
        for (byte, from) in
            content.bytes.iter_mut().zip(self.blocks.read(record.first, record.length.into()))
        {
            *byte = from;
        }
        content
    }

    /// Slots as a snapshot has them: owners before what they own, and else by id. Four bytes each, and
    /// four more for every slot.
    pub(crate) fn by_rank(&self) -> Vec<u32> {
        /// Not known yet; no record is that deep.
        const UNKNOWN: u32 = u32::MAX;
        let mut depths = alloc::vec![UNKNOWN; self.pool.handed_out().len()];
        let mut slots: Vec<u32> = self.slots().collect();
        for &slot in &slots {
            let above = core::iter::successors(Some(slot), |&at| named(self.pool[at].owner));
            let unknown = above.take_while(|&at| depths[at as usize] == UNKNOWN).count();
            let first_known =
                core::iter::successors(Some(slot), |&at| named(self.pool[at].owner)).nth(unknown);
            let base = first_known.map_or(0, |at| depths[at as usize] + 1);
            let mut at = slot;
            for below in (0..unknown as u32).rev() {
                depths[at as usize] = base + below;
                at = self.pool[at].owner;
            }
        }
        slots.sort_unstable_by_key(|&slot| (depths[slot as usize], self.pool[slot].id));
        slots
    }

    /// Sum over all records of the hash of each: the order in which they lie is no state.
    pub(crate) fn hash(&self, hash: &mut StateHash) {
        hash.word(self.len().into());
        hash.word(self.slots().map(|slot| self.hash_of(slot)).fold(0, u64::wrapping_add));
    }

    fn hash_of(&self, slot: u32) -> u64 {
        let record = &self.pool[slot];
        let mut hash = StateHash::new();
        hash.pair(record.kind, record.version);
        for id in [record.id, self.owner_id(slot)] {
            let [low, middle, high] = bytemuck::cast::<_, [u32; 3]>(id).map(u32::from_le);
            hash.pair(middle, low);
            hash.word(high.into());
        }
        hash.pair(record.length.into(), record.has_key.into());
        let content = self.content(slot);
        let words = content.length.div_ceil(8);
        for word in &content.bytes.as_chunks::<8>().0[..words] {
            hash.word(u64::from_le_bytes(*word));
        }
        hash.finish()
    }

    /// Entries of the two tables: all records, and those with a unique key.
    pub(crate) const fn table_lengths(&self) -> (u32, u32) {
        (self.by_id.len(), self.by_key.len())
    }

    /// True when no slot and no block is lost.
    pub(crate) fn is_consistent(&self) -> bool {
        self.pool.is_consistent() && self.blocks.is_consistent()
    }

    /// Blocks that the record's content is linked through.
    pub(crate) fn linked_blocks(&self, slot: u32) -> u32 {
        self.blocks.linked(self.pool[slot].first)
    }

    /// Bytes of memory that the limits have taken.
    #[cfg(test)]
    fn memory(&self) -> usize {
        self.pool.memory() + self.by_id.memory() + self.by_key.memory() + self.blocks.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a million jobs of about sixty bytes take: a slot, two entries of tables, and two blocks where
    /// one would not do.
    #[test]
    fn a_job_takes_at_most_four_hundred_bytes() {
        const JOBS: u32 = 1_000_000;
        for carried in [40, 60, 61, 88] {
            let blocks = Content::new(&NO_KEY, &[b'x'; 120][..carried]).blocks();
            let mut records = Records::new(Seed::new(0));
            records.try_grow(JOBS, JOBS * blocks).unwrap();
            let each = records.memory().div_ceil(JOBS as usize);
            assert!(each <= 400, "{each} bytes for a job of {carried}");
            assert!(carried != 60 || each == 133, "docs/JOBS.md and ARCHITECTURE say 133: {each}");
        }
    }

    #[test]
    fn owners_come_before_what_they_own_and_else_ids_decide() {
        let mut records = Records::new(Seed::new(1));
        records.try_grow(8, 8).unwrap();
        let none = Content::new(&NO_KEY, &[]);
        let mut add = |first: u8, owner| {
            let mut id = NO_RECORD;
            id[0] = first;
            records.add((id, 1, 1), owner, &none, false)
        };
        // Slots are given out in this order: 0, 1, 2, …
        let root = add(9, NONE);
        let child = add(5, root);
        let leaf = add(1, child);
        let other = add(4, root);
        let alone = add(7, NONE);
        assert_eq!(records.by_rank(), [alone, root, other, child, leaf]);
    }
}
