//! Where the views begin: with what the adapter's own history holds, if the log goes on behind it, else
//! at the log's beginning. Called by the adapter's start.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use touchline_protocol::log::lease::{Lease, LeaseError, leases};
use touchline_protocol::log::place::HISTORY_FOLDER;
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::units::Position;

use super::{AdapterOptions, RunError, instance_of_lease, lease_of_instance};
use crate::history::HistoryError;
use crate::notice::alert;
use crate::views::error::FoldError;
use crate::views::state::{Archive, RestoreError, State};

/// How long a prune may take to give back what a lease needs.
const GIVEN_BACK: Duration = Duration::from_secs(2);

/// Pause between two looks whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What an instance has of its history.
enum Found {
    /// A history that the log goes on behind, where the reader stands.
    History(Archive, Box<State>),
    /// Nothing yet.
    Nothing(Archive),
    /// What is of no use, and why.
    Useless(String),
}

/// Opens the history of the instance and moves the reader behind the last transaction that it holds. A
/// history that does not belong to the log, or is damaged, is told and made anew, once its lease holds all of the
/// log: whatever ends the adapter in between, nothing that is needed again is let go.
///
/// # Errors
/// [`RunError::Pruned`] if it would have to be made anew from a beginning that is gone: what a pruned log cannot
/// bring back is never removed, whichever build comes upon it.
pub(super) fn open(
    options: &AdapterOptions,
    reader: &mut LogReader,
) -> Result<(Archive, State), RunError> {
    let folder = options.data.join(HISTORY_FOLDER).join(&options.config.instance);
    let begin = reader.position();
    let pruned = || RunError::Pruned { position: begin.0 };
    let archive = match find(&folder, reader)? {
        Found::History(archive, state) => return Ok((archive, *state)),
        Found::Nothing(_) if begin.0 > 0 => return Err(pruned()),
        Found::Nothing(archive) => {
            if had_history(options, reader.log_id()) {
                alert!(
                    "adapter: there is no history in {} where there was one: it is made anew from the log's beginning",
                    folder.display()
                );
            }
            archive
        }
        Found::Useless(why) if begin.0 > 0 => {
            alert!("adapter: the history cannot be used: {why}");
            return Err(pruned());
        }
        Found::Useless(why) => {
            hold_from(options, reader, Bookmark::nothing_before(begin))?;
            // What was removed of the log while this lease was made is gone, and with it the history that is given
            // up below: so it is given up only if the lease came first.
            let begins = beginning_behind(options, begin)?;
            if begins > begin {
                alert!("adapter: the history cannot be used: {why}");
                hold_from(options, reader, Bookmark::nothing_before(begins))?;
                return Err(RunError::Pruned { position: begins.0 });
            }
            alert!("adapter: the history is made anew from the log's beginning: {why}");
            Archive::make(&folder, reader.log_id())?
        }
    };
    reader.seek(begin);
    let state = archive.restore()?;
    Ok((archive, state))
}

/// Where the log begins, which began at `begin` before a lease was taken on that. A prune that was about to remove the
/// beginning sees the lease, and gives it back soon.
fn beginning_behind(options: &AdapterOptions, begin: Position) -> Result<Position, RunError> {
    let asked = Instant::now();
    loop {
        let begins = LogReader::open(&options.data, Follow::Durable)?.position();
        if begins <= begin || asked.elapsed() >= GIVEN_BACK {
            return Ok(begins);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Looks at the history in `folder`; the reader stands at the log's beginning.
fn find(folder: &Path, reader: &mut LogReader) -> Result<Found, RunError> {
    let archive = match open_store(folder, reader) {
        Err(error) if error.is_of_content() => return Ok(Found::Useless(error.to_string())),
        opened => opened?,
    };
    let Some((bookmark, _)) = archive.last() else { return Ok(Found::Nothing(archive)) };
    let is_of_log = match reader.resume(&bookmark) {
        Ok(true) => agrees(&archive, reader, &bookmark).map(Some),
        found => found.map(|_| None),
    };
    let why = match is_of_log {
        Ok(Some(true)) => match archive.restore() {
            Ok(state) => return Ok(Found::History(archive, Box::new(state))),
            Err(error) => return useless(error),
        },
        Ok(Some(false)) => format!(
            "it says something else of the transaction at position {} that it ends with than the log",
            bookmark.position
        ),
        Ok(None) => format!(
            "the log does not have the transaction at position {} that it ends with",
            bookmark.position
        ),
        Err(error @ ReadError::TooOld { .. }) => error.to_string(),
        Err(error) => return Err(error.into()),
    };
    Ok(Found::Useless(why))
}

/// Whether the history says of the log's transaction that it ends with what the log says: with a later time or another
/// end, nothing of the log could follow it. The reader stands behind that transaction, before and after.
fn agrees(
    archive: &Archive,
    reader: &mut LogReader,
    bookmark: &Bookmark,
) -> Result<bool, ReadError> {
    reader.seek(bookmark.position);
    let is_same = reader.next()?.is_none_or(|last| archive.ends_with(&last));
    Ok(reader.resume(bookmark)? && is_same)
}

/// What does not hold what it should is of no use; what the system keeps from being read now is not given up for that.
/// Nor is what a newer build has written behind rules that this one does not know: it cannot read such a log either,
/// and so could bring back nothing of it.
fn useless(error: RestoreError) -> Result<Found, RunError> {
    match error {
        RestoreError::Store(error) if !error.is_of_content() => Err(error.into()),
        RestoreError::Fold(FoldError::Rules { .. }) => Err(error.into()),
        error => Ok(Found::Useless(error.to_string())),
    }
}

/// A copy that need not be whole, or what is damaged here and there, is used where nothing else is left.
fn open_store(folder: &Path, reader: &LogReader) -> Result<Archive, HistoryError> {
    match Archive::open(folder, reader.log_id()) {
        Err(error @ (HistoryError::Copied { .. } | HistoryError::Damaged { .. }))
            if reader.position().0 > 0 =>
        {
            alert!(
                "adapter: {error}; it is used, for the log has no beginning to make it anew from"
            );
            Archive::open_doubtful(folder, reader.log_id())
        }
        opened => opened,
    }
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
    hold_from(options, reader, last.unwrap_or_else(|| Bookmark::nothing_before(reader.position())))
}

/// Whether this instance had a history of the log: its lease says what that ended with. One that cannot be read says
/// nothing; it is written anew.
fn had_history(options: &AdapterOptions, log_id: [u8; 16]) -> bool {
    let name = lease_of_instance(&options.config.instance);
    any_had(&options.data, log_id, |lease| lease == name)
}

/// Whether an adapter of any instance had a history of the log with this id: its lease in the data folder `data` says
/// what that ended with.
#[must_use]
pub fn any_had_history(data: &Path, log_id: [u8; 16]) -> bool {
    any_had(data, log_id, |lease| instance_of_lease(lease).is_some())
}

fn any_had(data: &Path, log_id: [u8; 16], is_of: impl Fn(&str) -> bool) -> bool {
    let held = leases(data).unwrap_or_default();
    held.iter()
        .any(|lease| is_of(&lease.name) && lease.log_id == log_id && lease.last.position.0 > 0)
}

fn hold_from(
    options: &AdapterOptions,
    reader: &LogReader,
    last: Bookmark,
) -> Result<Lease, LeaseError> {
    let name = lease_of_instance(&options.config.instance);
    Lease::hold(&options.data, &name, reader.log_id(), last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heed::MdbError;
    use touchline_protocol::units::OrderListId;

    #[test]
    fn a_store_that_cannot_be_read_for_another_reason_than_what_it_holds_is_not_given_up() {
        let of = |error| useless(RestoreError::Store(HistoryError::Store(heed::Error::Mdb(error))));
        assert!(matches!(of(MdbError::ReadersFull), Err(RunError::History(_))));
        assert!(matches!(of(MdbError::Corrupted), Ok(Found::Useless(_))));
        let row = HistoryError::Row { table: "records", bytes: 3 };
        assert!(matches!(useless(row.into()), Ok(Found::Useless(_))));
    }

    #[test]
    fn a_store_behind_rules_that_only_a_newer_build_knows_is_not_given_up() {
        let newer = FoldError::Rules { found: 9, known: 8 };
        let Err(refused) = useless(newer.into()) else { panic!("it would be made anew") };
        assert_eq!(
            refused.to_string(),
            "the history store: the venue follows rules version 9, this build knows up to 8: use a newer build"
        );
        assert!(matches!(
            useless(FoldError::ListNotOpen(OrderListId(3)).into()),
            Ok(Found::Useless(_))
        ));
    }
}
