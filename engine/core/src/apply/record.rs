//! Commands about records: put if absent, put if of a version, delete if of a version. What records mean
//! is their senders' business.

use super::Reject;
use super::define::{require, require_room};
use crate::limits::{RECORD_BLOCKS_MAX, RECORDS_MAX, number};
use crate::outbox::Outbox;
use crate::pool::NONE;
use crate::records::{Content, NO_KEY, NO_RECORD, RecordId};
use crate::{Core, RecordLimits};
use touchline_protocol::message::command::{DeleteRecord, PutRecord, SetRecordLimits};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::event::{Done, RecordDeleted, RecordPut};
use touchline_protocol::message::with_bytes::WithBytes;

/// Place of the id among the fields of a put.
const ID_FIELD: u32 = 2;

impl Core {
    /// Sets how many records and blocks there may be and takes the memory for them.
    pub(super) fn set_record_limits(
        &mut self,
        message: &SetRecordLimits,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let &SetRecordLimits { records, blocks, .. } = message;
        let in_range = |limit: u32, used: u32, most: u32, number: u32| {
            if (used..=most).contains(&limit) {
                Ok(())
            } else {
                Err(Reject::with(RejectReason::LimitOutOfRange, number))
            }
        };
        in_range(records, self.records.len(), RECORDS_MAX, number::RECORDS)?;
        in_range(blocks, self.records.blocks(), RECORD_BLOCKS_MAX, number::RECORD_BLOCKS)?;
        // What grew before memory ran out stays grown, which nobody can see.
        self.records
            .try_grow(records, blocks)
            .map_err(|_| Reject::with(RejectReason::LimitOutOfRange, number::RECORDS))?;
        self.record_limits = RecordLimits { records, blocks };
        outbox.push(&Done::default());
        Ok(())
    }

    pub(super) fn put_record(
        &mut self,
        message: &WithBytes<'_, PutRecord>,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let &PutRecord { kind, version, id, owner, unique_key, length, .. } = &**message;
        require(id != NO_RECORD, ID_FIELD)?;
        let present = match (self.records.find(&id), version) {
            (None, 0) => None,
            (None, _) => return Err(RejectReason::UnknownRecord.into()),
            (Some(slot), 0) => return Err(self.other_version(slot)),
            (Some(slot), _) => Some(self.named_record(slot, (kind, owner, version))?),
        };
        let owner_slot = match (present, owner) {
            (Some(_), _) | (None, NO_RECORD) => NONE,
            (None, _) => self.records.find(&owner).ok_or(RejectReason::UnknownOwner)?,
        };
        let has_key = unique_key != NO_KEY;
        if has_key {
            let holder = self.records.find_by_key(kind, &unique_key);
            if holder.is_some() && holder != present {
                return Err(RejectReason::UniqueKeyTaken.into());
            }
        }
        let raised = version.checked_add(1).ok_or(RejectReason::Overflow)?;
        if present.is_none() {
            require_room(self.records.len(), self.record_limits.records, number::RECORDS)?;
        }
        let content = Content::new(&unique_key, message.content());
        let freed = present.map_or(0, |slot| self.records.get(slot).blocks());
        let used = self.records.blocks() - freed + content.blocks();
        if used > self.record_limits.blocks {
            return Err(Reject::with(RejectReason::CapacityReached, number::RECORD_BLOCKS));
        }
        match present {
            Some(slot) => self.records.replace(slot, &content, has_key),
            None => {
                self.records.add((id, kind, raised), owner_slot, &content, has_key);
            }
        }
        let version = raised;
        outbox.push(&RecordPut { kind, version, id, owner, length, ..Default::default() });
        Ok(())
    }

    pub(super) fn delete_record(
        &mut self,
        message: &DeleteRecord,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let &DeleteRecord { kind, version, id, owner, .. } = message;
        let slot = self.records.find(&id).ok_or(RejectReason::UnknownRecord)?;
        let named = if version == 0 { self.records.get(slot).version } else { version };
        let slot = self.named_record(slot, (kind, owner, named))?;
        let owned = self.records.get(slot).owned;
        if owned > 0 {
            return Err(Reject::with(RejectReason::RecordInUse, owned));
        }
        let version = self.records.remove(slot).version;
        outbox.push(&RecordDeleted { kind, version, id, owner, ..Default::default() });
        Ok(())
    }

    /// The record in a slot, if it is of this kind, owner and version.
    fn named_record(
        &self,
        slot: u32,
        (kind, owner, version): (u32, RecordId, u32),
    ) -> Result<u32, Reject> {
        let record = self.records.get(slot);
        if record.kind != kind || self.records.owner_id(slot) != owner {
            return Err(RejectReason::UnknownRecord.into());
        }
        if record.version != version {
            return Err(self.other_version(slot));
        }
        Ok(slot)
    }

    fn other_version(&self, slot: u32) -> Reject {
        Reject::with(RejectReason::RecordVersion, self.records.get(slot).version)
    }
}
