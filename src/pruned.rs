//! What stands for the removed beginning of a log, or is read in its place: its snapshots. Called by
//! `log replay`, `log state`, `log info`, `log dump` and the doctor, and by [`crate::names`].

use crate::log::FoundDamage;
use anyhow::{Result, bail};
use std::path::Path;
use touchline_engine::inspect::Replica;
use touchline_engine::snapshot::{self, Definitions, Listed, list, load};
use touchline_protocol::log::reader::LogReader;
use touchline_protocol::snapshot::SnapshotHeader;
use touchline_protocol::units::Position;

/// The venue of the oldest snapshot that is whole; the reader is moved behind it.
///
/// # Errors
/// If there is none, or the log cannot be read.
pub(crate) fn replica(data: &Path, reader: &mut LogReader) -> Result<Replica> {
    let begin = reader.position();
    let oldest_first = list(data)?.into_iter().rev();
    match first(reader, oldest_first, |listed| load(data, listed).ok())? {
        Some(replica) => Ok(replica),
        None => bail!(FoundDamage(unknown(begin))),
    }
}

/// The venue of the newest snapshot that is whole, and the reader moved behind it; without one, and without need of
/// one, a venue that is empty.
///
/// # Errors
/// If the beginning of the log is missing and no snapshot stands for it, or the log cannot be read.
pub(crate) fn newest_replica(data: &Path, reader: &mut LogReader) -> Result<Replica> {
    let begin = reader.position();
    match first(reader, list(data)?, |listed| load(data, listed).ok())? {
        Some(replica) => Ok(replica),
        None if begin == Position(0) => Ok(Replica::new()),
        None => bail!(FoundDamage(unknown(begin))),
    }
}

/// What the venue of the first of these snapshots is defined as that can be used; the reader is moved behind it,
/// and stays where it is without one.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn definitions(
    data: &Path,
    reader: &mut LogReader,
    listed: impl IntoIterator<Item = Listed>,
) -> Result<Option<Definitions>> {
    first(reader, listed, |listed| snapshot::definitions(data, listed).ok())
}

/// What is wrong with the beginning of a log that begins at `begin`: it may begin behind its own only with a
/// snapshot that stands for what was before, whose last transaction it still has. Of those only the headers are
/// looked at.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn missing_beginning(data: &Path, begin: Position) -> Result<Option<String>> {
    let stands = |listed: &Listed| {
        listed.header.as_ref().is_ok_and(|header| header.last_position >= begin.0)
    };
    let is_whole = begin.0 == 0 || list(data)?.iter().any(stands);
    Ok((!is_whole).then(|| unknown(begin)))
}

/// Why a log that was pruned up to `begin` cannot be read.
pub(crate) fn unknown(begin: Position) -> String {
    format!("the log begins at position {begin}, and no snapshot stands for what was before it")
}

fn first<T>(
    reader: &mut LogReader,
    listed: impl IntoIterator<Item = Listed>,
    mut read: impl FnMut(Listed) -> Option<T>,
) -> Result<Option<T>> {
    let begin = reader.position();
    for listed in listed {
        let last = listed.header.as_ref().ok().map(SnapshotHeader::last);
        if let (Some(last), Some(found)) = (last, read(listed)) {
            if reader.resume(&last)? {
                return Ok(Some(found));
            }
            reader.seek(begin);
        }
    }
    Ok(None)
}
