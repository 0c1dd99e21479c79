//! Records as anyone would write them down: a map by id, looked through for everything.

use std::collections::BTreeMap;
use touchline_protocol::message::enums::RejectReason as Why;

pub(crate) type Id = [u8; 12];

/// A record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: u32,
    pub(crate) version: u32,
    pub(crate) owner: Id,
    pub(crate) key: [u8; 32],
    pub(crate) bytes: Vec<u8>,
}

/// What a put says.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) id: Id,
    pub(crate) entry: Entry,
}

/// All records and what there may be of them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Model {
    pub(crate) all: BTreeMap<Id, Entry>,
    pub(crate) records: u32,
    pub(crate) blocks: u32,
}

/// The version that a record has, or had; or why not.
pub(crate) type Outcome = Result<u32, (Why, u32)>;

const NONE: Id = [0; 12];

fn blocks_of(key: &[u8; 32], bytes: &[u8]) -> u32 {
    let key = if *key == [0; 32] { 0 } else { 32 };
    ((key + bytes.len()) as u32).div_ceil(60)
}

impl Model {
    pub(crate) fn used_blocks(&self) -> u32 {
        self.all.values().map(|entry| blocks_of(&entry.key, &entry.bytes)).sum()
    }

    pub(crate) fn owned_by(&self, id: Id) -> u32 {
        self.all.values().filter(|entry| entry.owner == id).count() as u32
    }

    pub(crate) fn set_limits(&mut self, records: u32, blocks: u32) -> Result<(), (Why, u32)> {
        if records < self.all.len() as u32 || records > 1 << 24 {
            return Err((Why::LimitOutOfRange, 14));
        }
        if blocks < self.used_blocks() || blocks > 1 << 26 {
            return Err((Why::LimitOutOfRange, 15));
        }
        (self.records, self.blocks) = (records, blocks);
        Ok(())
    }

    pub(crate) fn put(&mut self, put: &Put) -> Outcome {
        let Put { id, entry } = put;
        if *id == NONE {
            return Err((Why::InvalidDefinition, 2));
        }
        match self.all.get(id) {
            None if entry.version != 0 => return Err((Why::UnknownRecord, 0)),
            Some(now) if entry.version == 0 => return Err((Why::RecordVersion, now.version)),
            Some(now) if (now.kind, now.owner) != (entry.kind, entry.owner) => {
                return Err((Why::UnknownRecord, 0));
            }
            Some(now) if now.version != entry.version => {
                return Err((Why::RecordVersion, now.version));
            }
            None if entry.owner != NONE && !self.all.contains_key(&entry.owner) => {
                return Err((Why::UnknownOwner, 0));
            }
            _ => {}
        }
        let holds = |(other, held): (&Id, &Entry)| {
            other != id && held.kind == entry.kind && held.key == entry.key
        };
        if entry.key != [0; 32] && self.all.iter().any(holds) {
            return Err((Why::UniqueKeyTaken, 0));
        }
        let mut then = self.clone();
        then.all.insert(*id, Entry { version: entry.version + 1, ..entry.clone() });
        if then.all.len() as u32 > self.records {
            return Err((Why::CapacityReached, 14));
        }
        if then.used_blocks() > self.blocks {
            return Err((Why::CapacityReached, 15));
        }
        *self = then;
        Ok(entry.version + 1)
    }

    pub(crate) fn delete(&mut self, kind: u32, id: Id, owner: Id, version: u32) -> Outcome {
        let now = self.all.get(&id).ok_or((Why::UnknownRecord, 0))?;
        if (now.kind, now.owner) != (kind, owner) {
            return Err((Why::UnknownRecord, 0));
        }
        let had = now.version;
        if version != 0 && version != had {
            return Err((Why::RecordVersion, had));
        }
        match self.owned_by(id) {
            0 => {
                self.all.remove(&id);
                Ok(had)
            }
            owned => Err((Why::RecordInUse, owned)),
        }
    }
}
