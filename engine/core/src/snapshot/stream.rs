//! Sections in a stream of bytes: the header in front, records, the hash of both behind them.

use super::{SECTION_VERSION, SnapshotError};
use crate::hash::StateHash;
use bytemuck::Pod;
use touchline_protocol::snapshot::records::SectionHeader;

/// Takes the words of a record in; records are multiples of eight bytes long.
fn add(hash: &mut StateHash, bytes: &[u8]) {
    for word in bytes.as_chunks::<8>().0 {
        hash.word(u64::from_le_bytes(*word));
    }
}

/// Writes sections.
pub(super) struct Writer<'sink, E> {
    sink: &'sink mut dyn FnMut(&[u8]) -> Result<(), E>,
    hash: StateHash,
}

impl<'sink, E> Writer<'sink, E> {
    pub(super) fn new(sink: &'sink mut dyn FnMut(&[u8]) -> Result<(), E>) -> Self {
        Self { sink, hash: StateHash::new() }
    }

    /// Begins a section of so many records.
    pub(super) fn begin(&mut self, section: u32, records: u64) -> Result<(), E> {
        self.hash = StateHash::new();
        self.put(&SectionHeader { section, version: SECTION_VERSION, records })
    }

    /// Writes a record, or a part of one.
    pub(super) fn put<R: Pod>(&mut self, record: &R) -> Result<(), E> {
        const { assert!(size_of::<R>().is_multiple_of(8)) };
        let bytes = bytemuck::bytes_of(record);
        add(&mut self.hash, bytes);
        (self.sink)(bytes)
    }

    /// Ends the section.
    pub(super) fn end(&mut self) -> Result<(), E> {
        (self.sink)(&self.hash.finish().to_le_bytes())
    }
}

/// Reads sections.
pub(super) struct Reader<'source, E> {
    source: &'source mut dyn FnMut(&mut [u8]) -> Result<(), E>,
    hash: StateHash,
    section: u32,
    /// Of the section that comes now, if it was looked at.
    header: Option<SectionHeader>,
    /// Number of the record that is read.
    record: u64,
}

impl<'source, E> Reader<'source, E> {
    pub(super) fn new(source: &'source mut dyn FnMut(&mut [u8]) -> Result<(), E>) -> Self {
        Self { source, hash: StateHash::new(), section: 0, header: None, record: 0 }
    }

    /// Begins a section, the one that comes now; gives the number of its records, at most `most`.
    pub(super) fn begin(&mut self, section: u32, most: u64) -> Result<u64, SnapshotError<E>> {
        self.section = section;
        let SectionHeader { section: found, version, records } = self.header()?;
        self.header = None;
        self.record = 0;
        if found != section {
            return Err(SnapshotError::Section { found, expected: section });
        }
        if version != SECTION_VERSION {
            return Err(SnapshotError::Version { section, found: version });
        }
        if records > most {
            return Err(SnapshotError::Count { section, found: records, most });
        }
        Ok(records)
    }

    /// Looks whether this section comes now.
    pub(super) fn is_next(&mut self, section: u32) -> Result<bool, SnapshotError<E>> {
        Ok(self.header()?.section == section)
    }

    /// The header of the section that comes now.
    fn header(&mut self) -> Result<SectionHeader, SnapshotError<E>> {
        if let Some(header) = self.header {
            return Ok(header);
        }
        self.hash = StateHash::new();
        let header = self.take()?;
        self.header = Some(header);
        Ok(header)
    }

    /// Reads a record, or a part of one.
    pub(super) fn take<R: Pod>(&mut self) -> Result<R, SnapshotError<E>> {
        const { assert!(size_of::<R>().is_multiple_of(8)) };
        let mut record = R::zeroed();
        let bytes = bytemuck::bytes_of_mut(&mut record);
        (self.source)(bytes).map_err(SnapshotError::Source)?;
        add(&mut self.hash, bytes);
        Ok(record)
    }

    /// The record is read.
    pub(super) const fn step(&mut self) {
        self.record += 1;
    }

    /// Fails, naming the record that is read, unless its condition holds.
    pub(super) fn require(&self, holds: bool, why: &'static str) -> Result<(), SnapshotError<E>> {
        if holds { Ok(()) } else { Err(self.wrong(why)) }
    }

    /// The record that is read is wrong.
    pub(super) const fn wrong(&self, why: &'static str) -> SnapshotError<E> {
        SnapshotError::Record { section: self.section, record: self.record, why }
    }

    /// Ends the section.
    pub(super) fn end(&mut self) -> Result<(), SnapshotError<E>> {
        let computed = self.hash.finish();
        let mut found = [0; 8];
        (self.source)(&mut found).map_err(SnapshotError::Source)?;
        let found = u64::from_le_bytes(found);
        if found != computed {
            return Err(SnapshotError::Hash { section: self.section, found, computed });
        }
        Ok(())
    }
}
