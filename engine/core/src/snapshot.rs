//! The whole venue as a stream of bytes, and back: what a later start of the engine goes on from in
//! place of all that the log holds. Called by whoever makes snapshots, and by recovery.
//!
//! The stream is a row of sections ([`records`](touchline_protocol::snapshot::records)), each with its
//! header in front and a hash of its words behind it, the state hash in the last one. Nothing of it
//! depends on slots, handles, tables or spare room: orders stand in the order in which they would
//! trade, and are put to rest anew.
//!
//! Whoever reads trusts no byte: each record is checked by itself, against those that it names, against
//! the limits of the venue, and what orders lock against the balances; memory is taken only by limits
//! whose hash was right; in the end the state hash is computed and compared. What comes out of it
//! passes [`Core::validate`], or it is a named error.

mod definitions;
mod locks;
mod of_records;
mod read;
mod read_orders;
mod read_pending;
mod stream;
mod write;

use crate::Core;
use core::fmt;
pub use definitions::Definitions;
use read::Reading;
use stream::Writer;
use touchline_protocol::snapshot::records;

/// The version of each section's records that this build writes and reads.
const SECTION_VERSION: u32 = 1;

/// Why bytes are not a venue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SnapshotError<E> {
    /// The source gave no more bytes.
    Source(E),
    /// Another section than the one that comes there.
    Section {
        /// Its number.
        found: u32,
        /// The number of the one that comes there.
        expected: u32,
    },
    /// Records of a version that this build does not read.
    Version {
        /// The section's number.
        section: u32,
        /// The version.
        found: u32,
    },
    /// A venue whose behaviour this build does not know.
    Rules {
        /// The rules version.
        found: u32,
    },
    /// More records than there may be.
    Count {
        /// The section's number.
        section: u32,
        /// How many there are said to be.
        found: u64,
        /// How many there may be.
        most: u64,
    },
    /// The words of a section are not those that were written.
    Hash {
        /// The section's number.
        section: u32,
        /// Hash behind the section.
        found: u64,
        /// Hash of its words.
        computed: u64,
    },
    /// A record that no venue has, or that contradicts another.
    Record {
        /// The section's number.
        section: u32,
        /// Which of its records, from 0.
        record: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No memory for what the limits ask for.
    Memory,
    /// The records are not the state that was written.
    StateHash {
        /// Written.
        found: u64,
        /// Of the state that the records give.
        computed: u64,
    },
}

impl<E: fmt::Display> fmt::Display for SnapshotError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(source) => source.fmt(formatter),
            Self::Section { found, expected } => {
                write!(formatter, "section {found} in the place of section {expected}")
            }
            Self::Version { section, found } => write!(
                formatter,
                "section {section} of version {found}, this build reads version {SECTION_VERSION}"
            ),
            Self::Rules { found } => {
                let known = crate::RULES_MAX;
                write!(formatter, "rules version {found}, this build knows up to {known}")
            }
            Self::Count { section, found, most } => {
                write!(
                    formatter,
                    "{found} records in section {section}, at most {most} may be there"
                )
            }
            Self::Hash { section, found, computed } => {
                write!(
                    formatter,
                    "section {section} has hash {found:016x}, computed {computed:016x}"
                )
            }
            Self::Record { section, record, why } => {
                write!(formatter, "record {record} of section {section}: {why}")
            }
            Self::Memory => formatter.write_str("no memory for what its limits ask for"),
            Self::StateHash { found, computed } => {
                write!(formatter, "state hash {found:016x}, computed {computed:016x}")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for SnapshotError<E> {}

impl Core {
    /// Writes the venue as a stream of bytes, in portions of a few hundred bytes at the most; gives its
    /// state hash. Besides what `write` takes it needs four bytes for each slot of an order and eight for
    /// each slot of a record, as many as were ever in use at once.
    ///
    /// # Errors
    /// What `write` gives.
    pub fn write_snapshot<E>(
        &self,
        write: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut writer = Writer::new(write);
        self.write_definitions(&mut writer)?;
        let places = self.write_places(&mut writer)?;
        self.write_orders(&mut writer, &places)?;
        self.write_pending(&mut writer, &places)?;
        self.write_balances(&mut writer)?;
        self.write_records(&mut writer)?;
        let state_hash = self.state_hash();
        writer.begin(records::END, 1)?;
        writer.put(&records::EndRecord { state_hash })?;
        writer.end()?;
        Ok(state_hash)
    }

    /// The venue whose stream `read` gives, which fills what it is given whole or fails; and its state
    /// hash. Nothing is read behind the end. `table_seed`: see [`with_table_seed`](Self::with_table_seed).
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn read_snapshot<E>(
        read: &mut dyn FnMut(&mut [u8]) -> Result<(), E>,
        table_seed: u64,
    ) -> Result<(Self, u64), SnapshotError<E>> {
        let mut reading = Reading::new(read, table_seed);
        reading.definitions()?;
        reading.places()?;
        reading.orders()?;
        reading.lists()?;
        reading.pending()?;
        reading.balances()?;
        reading.records()?;
        let Reading { core, mut reader, .. } = reading;
        let count = reader.begin(records::END, 1)?;
        let end: records::EndRecord = reader.take()?;
        reader.end()?;
        reader.require(count == 1, "no state hash")?;
        let computed = core.state_hash();
        if end.state_hash != computed {
            return Err(SnapshotError::StateHash { found: end.state_hash, computed });
        }
        Ok((core, computed))
    }
}
