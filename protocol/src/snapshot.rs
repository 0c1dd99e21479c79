//! Snapshots of a venue: what such a file is made of. Written by the child process that makes them,
//! read by recovery and tools; [`records`] is what the core writes into it.
//!
//! A snapshot is the state of the venue behind one transaction of its log. It lies in the data folder's
//! `snapshots/`, named by the position behind that transaction:
//!
//! ```text
//! header   128 bytes     which log, where in it, which state: SnapshotHeader
//! block    length u32    bytes of its content, a multiple of 8, at most 1 MiB
//!          crc    u32    crc32c of the block's number (u64, from 0) and its content, from the log's salt
//!          content       the next part of the sections
//! …
//! trailer  length u32    0
//!          crc    u32    as of a block
//!          blocks u64    how many there are before it
//!          bytes  u64    of content in all of them
//! ```

#[cfg(all(feature = "transport", not(loom)))]
mod file;
pub mod records;

#[cfg(all(feature = "transport", not(loom)))]
pub use file::*;
