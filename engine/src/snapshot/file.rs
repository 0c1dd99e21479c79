//! A snapshot's file: header, blocks with checksums, trailer. Written front to back, the header last;
//! read front to back in bounded memory.

use std::io::{self, Write};
use thiserror::Error;
use touchline_protocol::log::segment::LogIdentity;
use touchline_protocol::snapshot::{
    BLOCK_CONTENT_MAX, HEADER_BYTES, HeaderError, SnapshotHeader, block_crc,
};

use crate::log::storage::BlockFile;

/// In front of each block: length and checksum.
const BLOCK_HEADER_BYTES: usize = 8;
/// The trailer's content.
const TRAILER_BYTES: usize = 16;

/// Why a snapshot is not used.
#[derive(Debug, Error)]
pub enum SnapshotFault {
    /// It cannot be read.
    #[error("{0}")]
    Disk(#[from] io::Error),
    /// Its header is not one of this log.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A block is not what was written.
    #[error("offset {offset}: block {number} of {length} bytes with checksum {found:08x}{}", computed
        .map(|computed| format!(", computed {computed:08x}")).unwrap_or_default())]
    Block {
        /// Byte offset of the block in the file.
        offset: u64,
        /// Its number.
        number: u64,
        /// Its length, as it says.
        length: u32,
        /// Its checksum, as it says.
        found: u32,
        /// The checksum of its content, if the length is possible.
        computed: Option<u32>,
    },
    /// It ends elsewhere than it says.
    #[error(
        "{bytes} bytes of content in {blocks} blocks and a file of {length} bytes, but it says {says:?}"
    )]
    End {
        /// Blocks read.
        blocks: u64,
        /// Bytes of content read.
        bytes: u64,
        /// Bytes of the file.
        length: u64,
        /// Blocks and bytes, as the trailer says.
        says: (u64, u64),
    },
    /// Its content is not a venue.
    #[error("{0}")]
    State(String),
    /// Header and content are of different states.
    #[error("state hash {found:016x} in the header of a state with {computed:016x}")]
    StateHash {
        /// In the header.
        found: u64,
        /// Of the state.
        computed: u64,
    },
    /// The log has another transaction where the last one of the snapshot should be, or none.
    #[error(
        "the transaction at position {position} that it ends with is not in the log{}",
        found.as_ref().map(|found| format!(": {found}")).unwrap_or_default()
    )]
    NotInLog {
        /// Where the transaction should be.
        position: u64,
        /// What is there.
        found: Option<String>,
    },
}

/// Writes the blocks of a snapshot.
pub(super) struct BlockWriter<W> {
    to: W,
    salt: u32,
    block: Vec<u8>,
    blocks: u64,
    bytes: u64,
}

impl<W: Write> BlockWriter<W> {
    pub(super) fn new(to: W, salt: u32) -> Self {
        Self { to, salt, block: Vec::with_capacity(BLOCK_CONTENT_MAX), blocks: 0, bytes: 0 }
    }

    /// Adds a portion of content.
    pub(super) fn add(&mut self, mut portion: &[u8]) -> io::Result<()> {
        while !portion.is_empty() {
            let room = BLOCK_CONTENT_MAX - self.block.len();
            let (now, later) = portion.split_at(room.min(portion.len()));
            self.block.extend_from_slice(now);
            portion = later;
            if self.block.len() == BLOCK_CONTENT_MAX {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let length = self.block.len() as u32;
        let crc = block_crc(self.salt, self.blocks, &self.block);
        self.to.write_all(&length.to_le_bytes())?;
        self.to.write_all(&crc.to_le_bytes())?;
        self.to.write_all(&self.block)?;
        self.blocks += 1;
        self.bytes += u64::from(length);
        self.block.clear();
        Ok(())
    }

    /// Ends with the trailer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        let trailer: [u64; 2] = [self.blocks.to_le(), self.bytes.to_le()];
        let content: &[u8] = bytemuck::cast_slice(&trailer);
        self.to.write_all(&0u32.to_le_bytes())?;
        self.to.write_all(&block_crc(self.salt, self.blocks, content).to_le_bytes())?;
        self.to.write_all(content)?;
        Ok(self.to)
    }
}

/// Takes content, portion by portion.
pub type Portions<'to> = dyn FnMut(&[u8]) -> io::Result<()> + 'to;

/// The bytes of a whole snapshot file in memory, for tests: the header, whose last fields are set here,
/// and what `content` writes, which gives the state hash.
///
/// # Errors
/// What `content` gives.
pub fn write_file(
    identity: &LogIdentity,
    header: &SnapshotHeader,
    content: impl FnOnce(&mut Portions<'_>) -> io::Result<u64>,
) -> io::Result<Vec<u8>> {
    let mut blocks = BlockWriter::new(vec![0; HEADER_BYTES], identity.salt);
    let state_hash = content(&mut |portion| blocks.add(portion))?;
    let mut bytes = blocks.finish()?;
    let header = SnapshotHeader { state_hash, ..*header }.sealed(identity);
    bytes[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header));
    Ok(bytes)
}

/// Reads the header of a snapshot of this log whose name says `named`.
pub(super) fn read_header(
    file: &dyn BlockFile,
    identity: &LogIdentity,
    named: u64,
) -> Result<SnapshotHeader, SnapshotFault> {
    let mut bytes = [0; HEADER_BYTES];
    file.read(0, &mut bytes)?;
    let header: SnapshotHeader = bytemuck::pod_read_unaligned(&bytes);
    header.check(identity, named)?;
    Ok(header)
}

/// The sections of a snapshot that is read: whoever reads them takes what they give only after
/// [`finish`](Self::finish).
pub struct SnapshotContent<'file> {
    file: &'file dyn BlockFile,
    salt: u32,
    state_hash: u64,
    length: u64,
    offset: u64,
    blocks: u64,
    bytes: u64,
    content: Vec<u8>,
    at: usize,
    is_finished: bool,
    /// What went wrong with the file.
    fault: Option<SnapshotFault>,
}

impl<'file> SnapshotContent<'file> {
    pub(super) fn new(
        file: &'file dyn BlockFile,
        header: &SnapshotHeader,
    ) -> Result<Self, SnapshotFault> {
        Ok(Self {
            file,
            salt: header.salt,
            state_hash: header.state_hash,
            length: file.length()?,
            offset: HEADER_BYTES as u64,
            blocks: 0,
            bytes: 0,
            content: Vec::new(),
            at: 0,
            is_finished: false,
            fault: None,
        })
    }

    /// Fills `into` with the next bytes.
    ///
    /// # Errors
    /// Why there are none, or why they are not those that were written.
    pub fn fill(&mut self, into: &mut [u8]) -> Result<(), String> {
        let mut filled = 0;
        while filled < into.len() {
            if self.at == self.content.len() {
                let loaded = self.load(BLOCK_CONTENT_MAX);
                if self.keep(loaded)? == 0 {
                    return Err("its content ends too soon".to_owned());
                }
            }
            let count = (into.len() - filled).min(self.content.len() - self.at);
            into[filled..filled + count].copy_from_slice(&self.content[self.at..self.at + count]);
            filled += count;
            self.at += count;
        }
        Ok(())
    }

    /// Checks that everything was read, that the file ends there, and that `state_hash` is the one that
    /// it speaks of.
    ///
    /// # Errors
    /// Why what was read is not to be taken.
    pub fn finish(&mut self, state_hash: u64) -> Result<(), String> {
        let checked = self.check_end().and_then(|()| {
            if self.state_hash == state_hash {
                return Ok(());
            }
            Err(SnapshotFault::StateHash { found: self.state_hash, computed: state_hash })
        });
        self.keep(checked)?;
        self.is_finished = true;
        Ok(())
    }

    fn keep<T>(&mut self, outcome: Result<T, SnapshotFault>) -> Result<T, String> {
        outcome.map_err(|fault| {
            let why = fault.to_string();
            self.fault = Some(fault);
            why
        })
    }

    /// What became of it, after whoever read it gave `outcome`.
    pub(super) fn outcome(self, outcome: Result<(), String>) -> Result<(), SnapshotFault> {
        match (self.fault, outcome) {
            (Some(fault), _) => Err(fault),
            (None, Err(why)) => Err(SnapshotFault::State(why)),
            (None, Ok(())) if self.is_finished => Ok(()),
            (None, Ok(())) => Err(SnapshotFault::State("it was not read to its end".to_owned())),
        }
    }

    /// Reads the next block, of at most `most` bytes; gives its length, 0 for the trailer.
    fn load(&mut self, most: usize) -> Result<usize, SnapshotFault> {
        let (offset, number) = (self.offset, self.blocks);
        let mut head = [0; BLOCK_HEADER_BYTES];
        self.file.read(offset, &mut head)?;
        let [length, found] = bytemuck::cast::<_, [u32; 2]>(head).map(u32::from_le);
        let bytes = if length == 0 { TRAILER_BYTES } else { length as usize };
        let behind = self.length.saturating_sub(offset + BLOCK_HEADER_BYTES as u64);
        let fault = |computed| SnapshotFault::Block { offset, number, length, found, computed };
        if bytes > most.max(TRAILER_BYTES) || !bytes.is_multiple_of(8) || bytes as u64 > behind {
            return Err(fault(None));
        }
        self.content.resize(bytes, 0);
        self.at = 0;
        self.file.read(offset + BLOCK_HEADER_BYTES as u64, &mut self.content)?;
        let computed = block_crc(self.salt, number, &self.content);
        if computed != found {
            return Err(fault(Some(computed)));
        }
        self.offset += (BLOCK_HEADER_BYTES + bytes) as u64;
        if length == 0 {
            // Not content: nobody may take it for such.
            self.at = self.content.len();
            return Ok(0);
        }
        self.blocks += 1;
        self.bytes += bytes as u64;
        Ok(bytes)
    }

    fn check_end(&mut self) -> Result<(), SnapshotFault> {
        let is_used_up = self.at == self.content.len();
        let is_trailer = is_used_up && self.load(0)? == 0;
        let mut says = (0, 0);
        if is_trailer {
            let word = |at: usize| {
                let bytes = self.content[at..at + 8].first_chunk().copied().unwrap_or_default();
                u64::from_le_bytes(bytes)
            };
            says = (word(0), word(8));
        }
        let (blocks, bytes, length) = (self.blocks, self.bytes, self.length);
        if says != (blocks, bytes) || self.offset != length {
            return Err(SnapshotFault::End { blocks, bytes, length, says });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::storage::{FileStorage, Storage};
    use std::fs;

    #[test]
    fn content_of_any_length_comes_back_however_it_was_portioned() {
        let identity = LogIdentity { log_id: [7; 16], salt: 77, segment_bytes: 4 << 20 };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.snap");
        let most = BLOCK_CONTENT_MAX;
        for bytes in [0, 8, most - 8, most, most + 8, 2 * most, 3 * most + 64] {
            let content: Vec<u8> = (0..bytes).map(|at| (at / 8 % 251) as u8).collect();
            for portion in [8, 1000, most, 5 * most] {
                let written = write_file(&identity, &SnapshotHeader::default(), |to| {
                    content.chunks(portion).try_for_each(&mut *to)?;
                    Ok(5)
                });
                let written = written.unwrap();
                let blocks = bytes.div_ceil(most) + 1;
                let expected = HEADER_BYTES + bytes + blocks * BLOCK_HEADER_BYTES + TRAILER_BYTES;
                assert_eq!(written.len(), expected, "{bytes} {portion}");
                fs::write(&path, &written).unwrap();
                let file = FileStorage.open(&path).unwrap();
                let header = bytemuck::pod_read_unaligned(&written[..HEADER_BYTES]);
                let begin = || SnapshotContent::new(file.as_ref(), &header).unwrap();
                let (mut read, mut back) = (begin(), vec![0; bytes]);
                read.fill(&mut back).unwrap();
                assert!(back == content, "{bytes} {portion}");
                read.finish(5).unwrap();
                assert!(read.outcome(Ok(())).is_ok());
                // Of another state, read in part, and taken before its end was seen.
                let mut other = begin();
                other.fill(&mut back).unwrap();
                assert!(other.finish(6).is_err());
                assert!(matches!(other.outcome(Ok(())), Err(SnapshotFault::StateHash { .. })));
                if bytes > 0 {
                    let mut part = begin();
                    part.fill(&mut back[8..]).unwrap();
                    assert!(part.finish(5).is_err());
                    assert!(matches!(part.outcome(Ok(())), Err(SnapshotFault::End { .. })));
                }
                assert!(matches!(begin().outcome(Ok(())), Err(SnapshotFault::State(_))));
                assert!(begin().fill(&mut vec![0; bytes + 8]).is_err());
            }
        }
    }
}
