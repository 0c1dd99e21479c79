//! What stands for the removed beginning of a log: its oldest snapshot. Called by `log replay`, and by
//! [`crate::names`].

use anyhow::{Result, bail};
use std::path::Path;
use touchline_engine::inspect::Replica;
use touchline_engine::snapshot::{list, load};
use touchline_protocol::log::reader::LogReader;
use touchline_protocol::snapshot::SnapshotHeader;

/// The venue of the oldest snapshot that is whole; the reader is moved behind it.
///
/// # Errors
/// If there is none, or the log cannot be read.
pub(crate) fn replica(data: &Path, reader: &mut LogReader) -> Result<Replica> {
    let begin = reader.position();
    for listed in list(data)?.into_iter().rev() {
        let last = listed.header.as_ref().ok().map(SnapshotHeader::last);
        if let (Some(last), Ok(replica)) = (last, load(data, listed))
            && reader.resume(&last)?
        {
            return Ok(replica);
        }
    }
    bail!("the log begins at position {begin}, and no snapshot stands for what was before it")
}
