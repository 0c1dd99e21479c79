//! What there is of an adapter's history while no adapter runs, and how far it goes: what is needed of the log beside
//! what the lease of the history says. Asked by the tools, which change nothing of it.

use std::io::ErrorKind;
use std::path::Path;

use touchline_protocol::log::place::{HISTORY_FILE, HISTORY_FOLDER};
use touchline_protocol::log::transaction::Bookmark;

use super::claim::keep_out;
use crate::history::HistoryError;
use crate::views::state::{Archive, RestoreError};

/// What an instance has of its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptHistory {
    /// An adapter goes on with it, or begins to; or this user may not look.
    InUse,
    /// One that the next start can read, which ends with this transaction.
    UpTo(Bookmark),
    /// None in its place, whether or not an adapter has it open still; or one that holds nothing.
    Nothing,
    /// One that the next start cannot go on with, or that cannot be looked at, and why.
    Useless(String),
}

/// Looks at the history of the adapter `instance` in the data folder `data` as its next start would, for the log with
/// this id, and reads of it what that does. `is_pruned` says that the log has no beginning: then one that need not be
/// whole is taken, too. Whether the log has the transaction that it ends with is not asked.
///
/// An adapter that starts meanwhile waits until this returns, up to a minute. Damage that the database does not see may end the
/// process, as it would end that start.
#[must_use]
pub fn kept_history(data: &Path, instance: &str, log_id: [u8; 16], is_pruned: bool) -> KeptHistory {
    let folder = data.join(HISTORY_FOLDER).join(instance);
    // Whoever has one open that was removed goes on with it, and nobody behind that.
    if !folder.join(HISTORY_FILE).exists() {
        return KeptHistory::Nothing;
    }
    let Ok(_kept_out) = keep_out(data, instance) else { return KeptHistory::InUse };
    match Archive::look(&folder, log_id, is_pruned) {
        Ok(Some(last)) => KeptHistory::UpTo(last),
        Ok(None) => KeptHistory::Nothing,
        Err(RestoreError::Store(HistoryError::Taken { .. })) => KeptHistory::InUse,
        // Of another user's nothing is known, and what its lease says stands.
        Err(RestoreError::Store(HistoryError::File { source, .. }))
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            KeptHistory::InUse
        }
        Err(error) => KeptHistory::Useless(error.to_string()),
    }
}

/// The instance whose history holds the lease of this name; `None` for a lease of another kind of reader.
#[must_use]
pub fn instance_of_lease(name: &str) -> Option<&str> {
    name.strip_prefix(HISTORY_FOLDER)?.strip_prefix('-')
}

/// The name of the lease of an instance's history.
#[must_use]
pub fn lease_of_instance(instance: &str) -> String {
    format!("{HISTORY_FOLDER}-{instance}")
}

#[cfg(test)]
mod tests {
    use super::super::claim::Claim;
    use super::*;
    use crate::history::store::Reached;
    use std::fs;
    use touchline_protocol::units::{Incarnation, Position};

    const LOG: [u8; 16] = [7; 16];

    /// What stands in the folder, by name.
    fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut files: Vec<_> =
            entries.map(|entry| (name(&entry), fs::read(entry.path()).unwrap())).collect();
        files.sort();
        files
    }

    #[test]
    fn a_history_is_found_as_a_start_would_find_it_and_left_as_it_is() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("history/one");
        let kept = |is_pruned| kept_history(data.path(), "one", LOG, is_pruned);
        assert_eq!(kept(false), KeptHistory::Nothing);
        let mut archive = Archive::open(&folder, LOG).unwrap();
        assert_eq!(kept(false), KeptHistory::InUse);
        let reached =
            Reached { position: 4096, end: 4160, incarnation: 2, crc: 9, ..Default::default() };
        let last = Bookmark { position: Position(4096), incarnation: Incarnation(2), crc: 9 };
        drop(archive);
        assert_eq!(kept(false), KeptHistory::Nothing, "it is empty");
        archive = Archive::open(&folder, LOG).unwrap();
        archive.put_raw_rows(&[], bytemuck::bytes_of(&reached)).unwrap();
        drop(archive);
        let before = files(&folder);
        assert_eq!(kept(false), KeptHistory::UpTo(last));
        let of_other = kept_history(data.path(), "one", [8; 16], false);
        assert!(matches!(of_other, KeptHistory::Useless(why) if why.contains("another log")));
        assert!(files(&folder) == before, "it was changed");
        // From its claim on, an adapter may be about to open it.
        let claim = Claim::take(data.path(), "one").unwrap();
        assert_eq!(kept(false), KeptHistory::InUse);
        fs::rename(folder.join(HISTORY_FILE), folder.join("away")).unwrap();
        assert_eq!(kept(false), KeptHistory::Nothing, "nobody goes on with what was removed");
        fs::rename(folder.join("away"), folder.join(HISTORY_FILE)).unwrap();
        drop(claim);
        // Of a pruned log one that need not be whole is taken, too.
        for (name, said) in [("lock", "open 0 0\n"), ("lock", "damaged\n"), ("opening", "..")] {
            fs::write(folder.join(name), said).unwrap();
            assert!(matches!(kept(false), KeptHistory::Useless(_)), "{said:?}");
            assert_eq!(kept(true), KeptHistory::UpTo(last), "{said:?}");
            fs::write(folder.join(name), "").unwrap();
        }
        // What an older build wrote the next start goes on with.
        let archive = Archive::open(&folder, LOG).unwrap();
        archive.store().make_format_4().unwrap();
        drop(archive);
        assert_eq!(kept(false), KeptHistory::UpTo(last));
    }

    #[test]
    fn leases_are_named_by_their_instances() {
        assert_eq!(instance_of_lease(&lease_of_instance("a-b")), Some("a-b"));
        assert_eq!(instance_of_lease("historya"), None);
        assert_eq!(instance_of_lease("other-a"), None);
    }
}
