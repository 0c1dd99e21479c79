//! Where the views begin: with what the adapter's own history holds, if the log goes on behind it, else
//! at the log's beginning. Called by the adapter's start.

use touchline_protocol::log::lease::{Lease, LeaseError};
use touchline_protocol::log::reader::{LogReader, ReadError};
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::units::Position;

use super::{AdapterOptions, RunError};
use crate::history::HistoryError;
use crate::notice::alert;
use crate::views::state::{Archive, State};

/// Name of the folder within the data folder that has one folder of history per instance.
const HISTORY_FOLDER: &str = "history";

/// Opens the history of the instance and moves the reader behind the last transaction that it holds. A
/// history that does not belong to the log is told and made anew, once its lease holds all of the log: whatever
/// ends the adapter in between, nothing that is needed again is let go.
///
/// # Errors
/// [`RunError::Pruned`] if it would have to be made anew from a beginning that is gone.
pub(super) fn open(
    options: &AdapterOptions,
    reader: &mut LogReader,
) -> Result<(Archive, State), RunError> {
    let config = &options.config;
    let folder = options.data.join(HISTORY_FOLDER).join(&config.instance);
    let begin = reader.position();
    // What a pruned log cannot bring back is never emptied, whichever build comes upon it.
    let mut archive = match Archive::open_kept(&folder, reader.log_id()) {
        Err(error @ HistoryError::Foreign { .. }) if begin.0 > 0 => {
            alert!("adapter: the history cannot be used: {error}");
            return Err(RunError::Pruned { position: begin.0 });
        }
        Err(error @ HistoryError::Foreign { .. }) => {
            hold_from(options, reader, nothing_before(begin))?;
            alert!("adapter: the history is made anew from the log's beginning: {error}");
            Archive::open(&folder, reader.log_id())?
        }
        opened => opened?,
    };
    let why = match archive.last() {
        None => None,
        Some((bookmark, _)) => match reader.resume(&bookmark) {
            Ok(true) => match archive.restore() {
                Ok(state) => return Ok((archive, state)),
                Err(error) => Some(error.to_string()),
            },
            Ok(false) => Some(format!(
                "the log does not have the transaction at position {} that it ends with",
                bookmark.position
            )),
            Err(error @ ReadError::TooOld { .. }) => Some(error.to_string()),
            Err(error) => return Err(error.into()),
        },
    };
    if begin.0 > 0 {
        if let Some(why) = why {
            alert!("adapter: the history cannot be used: {why}");
        }
        return Err(RunError::Pruned { position: begin.0 });
    }
    if let Some(why) = why {
        hold_from(options, reader, nothing_before(begin))?;
        alert!("adapter: the history is made anew from the log's beginning: {why}");
        archive.clear()?;
    }
    reader.seek(begin);
    let state = archive.restore()?;
    Ok((archive, state))
}

/// Holds what the history does not have yet, and the last transaction that it has, by which it is known to
/// be of the log. `reader` stands where the history ends.
///
/// # Errors
/// When the lease cannot be written.
pub(super) fn hold(
    options: &AdapterOptions,
    reader: &LogReader,
    archive: &Archive,
) -> Result<Lease, LeaseError> {
    let last = archive.last().map(|(last, _)| last);
    hold_from(options, reader, last.unwrap_or_else(|| nothing_before(reader.position())))
}

/// What a history has last that has nothing, and needs the log from there on.
fn nothing_before(position: Position) -> Bookmark {
    Bookmark { position, ..Default::default() }
}

fn hold_from(
    options: &AdapterOptions,
    reader: &LogReader,
    last: Bookmark,
) -> Result<Lease, LeaseError> {
    let name = format!("{HISTORY_FOLDER}-{}", options.config.instance);
    Lease::hold(&options.data, &name, reader.log_id(), last)
}
