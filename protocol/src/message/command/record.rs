//! Commands about records: the cold lane's, template ids 60-62. What records mean is their sender's
//! business; the jobs service keeps its users and jobs in them.

use super::CommandHeader;
use crate::message::with_bytes::MessageWithBytes;
use crate::message::{MessageHeader, message};

/// Most bytes that a record carries.
pub const RECORD_BYTES_MAX: u32 = 1024;
/// Bytes that a block of `SetRecordLimits` holds, of a record's unique key and of what it carries.
pub const RECORD_BLOCK_BYTES: u32 = 60;

message! {
    /// Sets how many records there may be, and how much they may carry. Refused below what is in use.
    SetRecordLimits, template 60, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// Records.
        48 records: u32,
        /// Blocks of `RECORD_BLOCK_BYTES`. A record takes whole ones: for its unique key, which takes 32
        /// bytes if it has one, and what it carries behind that.
        52 blocks: u32,
    }
    reserved {} texts {}
}

message! {
    /// Makes a record, or puts another content in the place of the one that it has. The block goes on
    /// behind these fields: with `length` bytes, and zeros up to a multiple of eight.
    PutRecord, template 61, 120 bytes {
        /// SBE header; its block length covers the bytes behind the fields too.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// What kind of record it is: any number. A record keeps its kind.
        48 kind: u32,
        /// The version that the record has now; 0: there is none of this id. The put makes it one more.
        52 version: u32,
        /// Its id, chosen by the sender; not all zeros. No two records have the same, whatever their kinds.
        56 id: [u8; 12],
        /// Id of the record that it belongs to, which must exist; all zeros: of none. A record keeps its
        /// owner.
        68 owner: [u8; 12],
        /// No two records of a kind have the same; all zeros: it has none. A digest of what is unique.
        80 unique_key: [u8; 32],
        /// Bytes behind these fields, at most `RECORD_BYTES_MAX`.
        112 length: u32,
        /// Zero.
        116 reserved: u32,
    }
    reserved { reserved } texts {}
}

impl MessageWithBytes for PutRecord {
    const BYTES_MAX: u32 = RECORD_BYTES_MAX;

    fn stated_bytes(&self) -> u32 {
        self.length
    }
}

message! {
    /// Deletes a record. One that owns others cannot be deleted.
    DeleteRecord, template 62, 80 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The kind that it has.
        48 kind: u32,
        /// The version that it has now; 0: whichever.
        52 version: u32,
        /// Its id.
        56 id: [u8; 12],
        /// The owner that it has.
        68 owner: [u8; 12],
    }
    reserved {} texts {}
}
