//! How far the store goes: what it says of the last transaction of the log that it holds, and what it has counted up
//! to there. Written with every batch, held against the log by the adapter's start.

use bytemuck::{Pod, Zeroable};
use touchline_protocol::log::transaction::{Bookmark, Transaction};
use touchline_protocol::units::{Incarnation, Position};

/// How far the store goes. Written with every batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Reached {
    /// Begin of the last transaction of the log that it holds.
    pub(crate) position: u64,
    /// Behind that transaction.
    pub(crate) end: u64,
    /// Time of that transaction, ns since the epoch.
    pub(crate) time_ns: u64,
    pub(crate) incarnation: u32,
    pub(crate) crc: u32,
    /// Names that were given, which tells the era of the next one.
    pub(crate) names: u64,
    /// Order lists that were placed.
    pub(crate) lists: u64,
}

impl Reached {
    /// How far it goes behind this transaction, as before in everything else.
    pub(crate) fn behind(last: &Transaction<'_>, before: Self) -> Self {
        let bookmark = last.bookmark();
        Self {
            position: bookmark.position.0,
            end: last.end().0,
            time_ns: last.time_ns(),
            incarnation: bookmark.incarnation.0,
            crc: bookmark.crc,
            ..before
        }
    }

    /// What that transaction is found again by.
    pub(crate) const fn bookmark(&self) -> Bookmark {
        Bookmark {
            position: Position(self.position),
            incarnation: Incarnation(self.incarnation),
            crc: self.crc,
        }
    }
}
