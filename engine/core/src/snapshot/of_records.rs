//! Writing and reading records. A venue without limits for them has no section of them.

use super::SnapshotError;
use super::read::Reading;
use super::stream::Writer;
use crate::limits::{RECORD_BLOCKS_MAX, RECORDS_MAX};
use crate::pool::NONE;
use crate::records::{CONTENT_BYTES_MAX, Content, NO_KEY, NO_RECORD, UniqueKey};
use crate::{Core, RECORD_RULES, RecordLimits};
use touchline_protocol::message::command::RECORD_BYTES_MAX;
use touchline_protocol::snapshot::records::{
    self, RECORD_HAS_KEY, RecordLimitsRecord, RecordPart, RecordRecord,
};

const PART_BYTES: usize = size_of::<RecordPart>();

impl Core {
    /// Limits and records, owners first.
    pub(super) fn write_records<E>(&self, to: &mut Writer<'_, E>) -> Result<(), E> {
        let RecordLimits { records, blocks } = self.record_limits;
        if self.record_limits == RecordLimits::default() {
            return Ok(());
        }
        to.begin(records::RECORD_LIMITS, 1)?;
        to.put(&RecordLimitsRecord { records, blocks })?;
        to.end()?;
        to.begin(records::RECORDS, self.records.len().into())?;
        for slot in self.records.by_rank() {
            let record = self.records.get(slot);
            to.put(&RecordRecord {
                id: record.id,
                owner: self.records.owner_id(slot),
                kind: record.kind,
                version: record.version,
                length: record.carried(),
                flags: if record.has_key { RECORD_HAS_KEY } else { 0 },
            })?;
            for part in self.records.content(slot).bytes().chunks(PART_BYTES) {
                let mut padded = RecordPart::default();
                padded.bytes[..part.len()].copy_from_slice(part);
                to.put(&padded)?;
            }
        }
        to.end()
    }
}

impl<E> Reading<'_, E> {
    /// Limits and records, if there are any.
    pub(super) fn records(&mut self) -> Result<(), SnapshotError<E>> {
        if !self.reader.is_next(records::RECORD_LIMITS)? {
            return Ok(());
        }
        let count = self.reader.begin(records::RECORD_LIMITS, 1)?;
        let RecordLimitsRecord { records, blocks } = self.reader.take()?;
        // The hash first: what comes now takes memory.
        self.reader.end()?;
        let limits = RecordLimits { records, blocks };
        let is_sound = count == 1
            && self.core.rules >= RECORD_RULES
            && limits != RecordLimits::default()
            && records <= RECORDS_MAX
            && blocks <= RECORD_BLOCKS_MAX;
        self.reader.require(is_sound, "limits out of range")?;
        self.core.records.try_grow(records, blocks).map_err(|_| SnapshotError::Memory)?;
        self.core.record_limits = limits;
        for _ in 0..self.reader.begin(records::RECORDS, records.into())? {
            self.record()?;
            self.reader.step();
        }
        self.reader.end()
    }

    fn record(&mut self) -> Result<(), SnapshotError<E>> {
        let record: RecordRecord = self.reader.take()?;
        let RecordRecord { id, owner, kind, version, length, flags } = record;
        let is_sound = id != NO_RECORD
            && version > 0
            && length <= RECORD_BYTES_MAX
            && flags & !RECORD_HAS_KEY == 0;
        self.reader.require(is_sound, "a field out of range")?;
        let has_key = flags & RECORD_HAS_KEY != 0;
        let (unique_key, carried) = self.content(length as usize, has_key)?;
        let (core, reader) = (&mut self.core, &self.reader);
        reader.require(core.records.find(&id).is_none(), "an id that another record has")?;
        reader.require(
            !has_key || core.records.find_by_key(kind, &unique_key).is_none(),
            "a unique key that another record has",
        )?;
        let owner = match owner {
            NO_RECORD => NONE,
            _ => core.records.find(&owner).ok_or(reader.wrong("no such owner before it"))?,
        };
        let content = Content::new(&unique_key, &carried[..length as usize]);
        let used = core.records.blocks() + content.blocks();
        reader.require(used <= core.record_limits.blocks, "more blocks than there may be")?;
        core.records.add((id, kind, version), owner, &content, has_key);
        Ok(())
    }

    /// A unique key and what a record carries, zeros behind it.
    fn content(
        &mut self,
        length: usize,
        has_key: bool,
    ) -> Result<(UniqueKey, [u8; RECORD_BYTES_MAX as usize]), SnapshotError<E>> {
        const ROOM: usize = CONTENT_BYTES_MAX.next_multiple_of(PART_BYTES);
        let begin = if has_key { size_of::<UniqueKey>() } else { 0 };
        let end = begin + length;
        let mut bytes = [0; ROOM];
        for part in bytes[..end.next_multiple_of(PART_BYTES)].chunks_mut(PART_BYTES) {
            let RecordPart { bytes } = self.reader.take()?;
            part.copy_from_slice(&bytes);
        }
        self.reader.require(bytes[end..].iter().all(|&byte| byte == 0), "bytes behind its end")?;
        let (mut key, mut carried) = (NO_KEY, [0; RECORD_BYTES_MAX as usize]);
        key[..begin].copy_from_slice(&bytes[..begin]);
        carried[..length].copy_from_slice(&bytes[begin..end]);
        self.reader.require(has_key == (key != NO_KEY), "a unique key of zeros")?;
        Ok((key, carried))
    }
}
