//! Checks that the records fit together. Called by [`super`].

use crate::Core;
use crate::pool::named;
use crate::records::NO_RECORD;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

impl Core {
    /// Every record is found by its id and by its unique key, owners exist and know how many they own,
    /// nobody owns itself however many are in between, and no slot or block is lost.
    pub(super) fn validate_records(&self) -> Result<(), String> {
        let records = &self.records;
        let (mut with_key, mut blocks) = (0, 0);
        let mut owned = BTreeMap::<u32, u32>::new();
        for slot in records.slots() {
            let record = records.get(slot);
            let id = record.id;
            if id == NO_RECORD || records.find(&id) != Some(slot) {
                return Err(format!("record {id:02x?} is not found"));
            }
            if record.has_key {
                with_key += 1;
                if records.find_by_key(record.kind, &records.unique_key(slot)) != Some(slot) {
                    return Err(format!("record {id:02x?} is not found by its unique key"));
                }
            }
            let linked = records.linked_blocks(slot);
            if linked != record.blocks() {
                return Err(format!("record {id:02x?} has {linked} blocks"));
            }
            blocks += linked;
            if let Some(owner) = named(record.owner) {
                *owned.entry(owner).or_default() += 1;
            }
            let above = core::iter::successors(Some(slot), |&at| named(records.get(at).owner));
            if above.take(records.len() as usize + 1).count() > records.len() as usize {
                return Err(format!("record {id:02x?} owns itself"));
            }
        }
        for slot in records.slots() {
            let (found, expected) = (records.get(slot).owned, owned.remove(&slot).unwrap_or(0));
            if found != expected {
                return Err(format!("{:02x?} owns {expected}, not {found}", records.get(slot).id));
            }
        }
        let (limits, lengths) = (&self.record_limits, records.table_lengths());
        let is_sound = owned.is_empty()
            && records.is_consistent()
            && lengths == (records.len(), with_key)
            && blocks == records.blocks()
            && records.len() <= limits.records
            && blocks <= limits.blocks;
        if is_sound {
            Ok(())
        } else {
            Err(format!("{} records in {blocks} blocks, {lengths:?}: {limits:?}", records.len()))
        }
    }
}
