//! The file: its header, its checksums and its name. Called by recovery, by the child process that makes
//! snapshots, and by tools.

use crate::log::FRAME_ALIGN;
use crate::log::segment::LogIdentity;
use crate::log::transaction::Bookmark;
use crate::units::{Incarnation, Position};
use bytemuck::{Pod, Zeroable};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The first eight bytes of every snapshot.
pub const MAGIC: [u8; 8] = *b"TLINESNP";

/// Format version: another major is not read.
pub const FORMAT_MAJOR: u16 = 1;

/// Format version: raised by additions. A snapshot with a section that a reader does not know, or knows in
/// another version, is not used by it.
pub const FORMAT_MINOR: u16 = 1;

/// Bytes of the header.
pub const HEADER_BYTES: usize = size_of::<SnapshotHeader>();

/// Largest content of a block, in bytes.
pub const BLOCK_CONTENT_MAX: usize = 1 << 20;

/// Name of the folder of snapshots within the data folder.
pub const SNAPSHOT_FOLDER: &str = "snapshots";

/// The header, as it lies in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct SnapshotHeader {
    /// `TLINESNP`.
    pub magic: [u8; 8],
    /// Snapshot format.
    pub major: u16,
    /// Snapshot format.
    pub minor: u16,
    /// The log's salt.
    pub salt: u32,
    /// The log's id.
    pub log_id: [u8; 16],
    /// Behind the last transaction that the state holds.
    pub position: u64,
    /// Where that transaction begins.
    pub last_position: u64,
    /// Incarnation of the engine that wrote it.
    pub last_incarnation: u32,
    /// The checksum of its frame: what tells it from any other transaction at that position.
    pub last_crc: u32,
    /// Time of it, ns since the epoch.
    pub last_time_ns: u64,
    /// The state hash.
    pub state_hash: u64,
    /// Position of the snapshot that it was made from; 0: made from the log's beginning.
    pub previous: u64,
    /// Transactions that the state holds.
    pub transactions: u64,
    /// Zero.
    pub reserved: [u8; 32],
    /// Zero.
    pub reserved_1: u32,
    /// crc32c of all bytes before it, started from the salt.
    pub crc: u32,
}

const CRC_OFFSET: usize = HEADER_BYTES - 4;

const _: () = {
    assert!(HEADER_BYTES == 128);
    assert!(core::mem::offset_of!(SnapshotHeader, crc) == CRC_OFFSET);
};

/// Why a snapshot's header is not one of this log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Some other file.
    #[error("begins with {found:02x?}, not with the mark of a snapshot")]
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// Written by a build of another format.
    #[error("snapshot format {found_major}.{found_minor}, this build reads {FORMAT_MAJOR}.x")]
    Version {
        /// Major version in the header.
        found_major: u16,
        /// Minor version in the header.
        found_minor: u16,
    },
    /// The header is damaged.
    #[error("header checksum {found:08x}, computed {computed:08x}")]
    Crc {
        /// In the header.
        found: u32,
        /// Of its bytes.
        computed: u32,
    },
    /// A snapshot of another log.
    #[error("a snapshot of another log")]
    Foreign,
    /// Its positions contradict each other or the file's name.
    #[error("position {position} behind a transaction at {last_position}, named {named}")]
    Positions {
        /// In the header.
        position: u64,
        /// In the header.
        last_position: u64,
        /// By the file's name.
        named: u64,
    },
}

impl SnapshotHeader {
    /// Sets what is the same in all snapshots of a log, and the checksum.
    #[must_use]
    pub fn sealed(mut self, identity: &LogIdentity) -> Self {
        self.magic = MAGIC;
        (self.major, self.minor) = (FORMAT_MAJOR, FORMAT_MINOR);
        (self.salt, self.log_id) = (identity.salt, identity.log_id);
        self.crc = self.checksum();
        self
    }

    /// What its last transaction is found again by.
    #[must_use]
    pub const fn last(&self) -> Bookmark {
        Bookmark {
            position: Position(self.last_position),
            incarnation: Incarnation(self.last_incarnation),
            crc: self.last_crc,
        }
    }

    fn checksum(&self) -> u32 {
        crc32c::crc32c_append(self.salt, &bytemuck::bytes_of(self)[..CRC_OFFSET])
    }

    /// Checks that this is the header of a snapshot of this log at the position that its name says.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn check(&self, identity: &LogIdentity, named: u64) -> Result<(), HeaderError> {
        if self.magic != MAGIC {
            return Err(HeaderError::Magic { found: self.magic });
        }
        if self.major != FORMAT_MAJOR {
            return Err(HeaderError::Version { found_major: self.major, found_minor: self.minor });
        }
        let computed = self.checksum();
        if self.crc != computed {
            return Err(HeaderError::Crc { found: self.crc, computed });
        }
        if (self.log_id, self.salt) != (identity.log_id, identity.salt) {
            return Err(HeaderError::Foreign);
        }
        let (position, last_position) = (self.position, self.last_position);
        // A log is read on from the last one: only where a frame can begin.
        let is_aligned = (position | last_position).is_multiple_of(FRAME_ALIGN);
        let is_ordered = last_position < position && self.previous <= position;
        if position != named || !is_aligned || !is_ordered {
            return Err(HeaderError::Positions { position, last_position, named });
        }
        Ok(())
    }
}

/// The checksum of the block of this number.
#[must_use]
pub fn block_crc(salt: u32, number: u64, content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(salt, &number.to_le_bytes()), content)
}

/// The file of the snapshot at `position` in the snapshot folder `folder`.
#[must_use]
pub fn snapshot_path(folder: &Path, position: u64) -> PathBuf {
    folder.join(format!("{position:020}.snap"))
}

/// The position in the name of a snapshot; `None` for any other name.
#[must_use]
pub fn snapshot_position(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".snap")?;
    let position = digits.parse().ok()?;
    // Only the one spelling that `snapshot_path` gives, so that no two names mean one snapshot.
    (format!("{position:020}") == digits).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: LogIdentity =
        LogIdentity { log_id: *b"0123456789abcdef", salt: 0x5a17_5a17, segment_bytes: 4 << 20 };

    fn header() -> SnapshotHeader {
        SnapshotHeader {
            position: 0x2040,
            last_position: 0x2000,
            last_incarnation: 3,
            last_crc: 0x1122_3344,
            last_time_ns: 5,
            state_hash: 6,
            previous: 0x1000,
            transactions: 7,
            ..Default::default()
        }
        .sealed(&IDENTITY)
    }

    #[test]
    fn golden_bytes() {
        let text: String =
            bytemuck::bytes_of(&header()).iter().map(|byte| format!("{byte:02x}")).collect();
        let golden = "544c494e45534e50 0100 0100 175a175a 30313233343536373839616263646566 \
                      4020000000000000 0020000000000000 03000000 44332211 0500000000000000 \
                      0600000000000000 0010000000000000 0700000000000000 \
                      000000000000000000000000000000000000000000000000000000000000000000000000 dca839b3";
        assert_eq!(text, golden.replace(' ', ""));
        assert_eq!(block_crc(0x5a17_5a17, 1, b"touchline"), 0x8bfc_83e3);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        assert_eq!(header().check(&IDENTITY, 0x2040), Ok(()));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bad = header();
            bytemuck::bytes_of_mut(&mut bad)[bit / 8] ^= 1 << (bit % 8);
            assert!(bad.check(&IDENTITY, 0x2040).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn what_does_not_belong_is_named() {
        let other = LogIdentity { log_id: [1; 16], ..IDENTITY };
        assert_eq!(header().check(&other, 0x2040), Err(HeaderError::Foreign));
        assert!(matches!(
            header().check(&IDENTITY, 0x2041),
            Err(HeaderError::Positions { named: 0x2041, .. })
        ));
        let askew = SnapshotHeader { last_position: 0x2030, ..header() }.sealed(&IDENTITY);
        assert!(matches!(
            askew.check(&IDENTITY, 0x2040),
            Err(HeaderError::Positions { last_position: 0x2030, .. })
        ));
        let newer = SnapshotHeader { major: 2, ..header() };
        assert_eq!(
            newer.check(&IDENTITY, 0x2040),
            Err(HeaderError::Version { found_major: 2, found_minor: FORMAT_MINOR })
        );
        assert!(matches!(
            SnapshotHeader::default().check(&IDENTITY, 0),
            Err(HeaderError::Magic { .. })
        ));
    }

    #[test]
    fn names_go_both_ways() {
        for position in [0, 4096, u64::MAX] {
            let path = snapshot_path(Path::new("snapshots"), position);
            let name = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(snapshot_position(name), Some(position));
        }
        for name in ["1.snap", "00000000000000000001.snap.new", "+0000000000000000001.snap"] {
            assert_eq!(snapshot_position(name), None, "{name}");
        }
    }
}
