//! The folder of a store: locked by one adapter at a time, and known to hold what was written there. Used by
//! [`super::store`] and by whoever opens one.
//!
//! What is copied while it is written has pages of different moments, which nothing in it tells. So the lock's file
//! says, while a store is open, which file that is, and a copy is another one. Who dies leaves that behind, and goes
//! on with its own file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::store::HistoryError;

/// The database's file, and that of its readers.
const DATA: &str = "data.mdb";
const READERS: &str = "lock.mdb";

const LOCK: &str = "lock";

/// How the lock's file begins while the store is open.
const MARK: &str = "open ";

/// As if another file had been open.
const MARK_OF_NONE: &str = "open 0 0\n";

/// More than stands in the lock's file.
const MARK_BYTES_MAX: usize = 128;

/// The lock on a store's folder; the kernel gives it back at any death of the process. Dropping it, behind the store,
/// says that the store is closed.
#[derive(Debug)]
pub(crate) struct StoreLock {
    folder: PathBuf,
    file: File,
    is_open: bool,
}

/// Makes the folder of a store and locks it.
///
/// # Errors
/// [`HistoryError::Taken`] while another process has it; when the folder cannot be made.
pub(crate) fn lock(folder: &Path) -> Result<StoreLock, HistoryError> {
    let path = folder.join(LOCK);
    let failed = |source| HistoryError::File { path: path.clone(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let is_new = !path.exists();
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            if is_new && folder.join(DATA).exists() {
                // Somebody has copied the database alone, or not come to the end of it.
                file.write_all_at(MARK_OF_NONE.as_bytes(), 0).map_err(failed)?;
            }
            Ok(StoreLock { folder: folder.to_owned(), file, is_open: false })
        }
        Err(Errno::WOULDBLOCK) => Err(HistoryError::Taken { path }),
        Err(error) => Err(failed(error.into())),
    }
}

impl StoreLock {
    /// Whether the database is a copy of one that was open, or of one whose adapter had died.
    pub(crate) fn is_of_copy(&self) -> bool {
        let mut said = [0; MARK_BYTES_MAX];
        // What cannot be read says nothing.
        let length = self.file.read_at(&mut said, 0).unwrap_or_default();
        let said = &said[..length];
        let is_mark = said.starts_with(MARK.as_bytes()) && said.ends_with(b"\n");
        is_mark && self.mark().is_ok_and(|own| own.as_bytes() != said)
    }

    /// The store is open from now on. Where that cannot be written, on a full disk above all, a copy of it is
    /// believed.
    pub(crate) fn say_open(&mut self) {
        let write = |mark: String| {
            self.file.write_all_at(mark.as_bytes(), 0)?;
            self.file.set_len(mark.len() as u64)
        };
        let _unwritten = self.mark().and_then(write);
        self.is_open = true;
    }

    /// What the lock's file says of the database while that is open.
    fn mark(&self) -> io::Result<String> {
        let file = fs::metadata(self.folder.join(DATA))?;
        // Numbers of files are given again, and not every file system has times of birth.
        let born = file.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(format!("{MARK}{} {}\n", file.ino(), born.unwrap_or_default().as_nanos()))
    }

    /// Removes the database.
    pub(crate) fn clear(&self) -> Result<(), HistoryError> {
        for path in [DATA, READERS].map(|name| self.folder.join(name)) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(|source| HistoryError::File { path, source })?,
            }
        }
        Ok(())
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        if self.is_open {
            // Else a copy of the store is taken for one of an open one, and made anew.
            let _unwritten = self.file.set_len(0);
        }
    }
}

/// Gives the database's file the length that it says it has, in zeros, where it was cut off: its missing pages are
/// told as no pages then, and do not end the process.
pub(super) fn complete(folder: &Path, bytes: u64) -> Result<(), HistoryError> {
    let path = folder.join(DATA);
    let complete = || {
        let file = OpenOptions::new().write(true).open(&path)?;
        if file.metadata()?.len() < bytes { file.set_len(bytes) } else { Ok(()) }
    };
    complete().map_err(|source| HistoryError::File { path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(folder: &Path, ends: bool) {
        let mut lock = lock(folder).unwrap();
        assert!(!lock.is_of_copy());
        lock.say_open();
        lock.is_open = ends;
    }

    #[test]
    fn a_copy_of_a_store_that_was_not_closed_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let (data, copy) = (folder.path().join(DATA), folder.path().join("copy"));
        drop(lock(folder.path()).unwrap());
        fs::write(&data, "pages").unwrap();
        let replace = || {
            fs::copy(&data, &copy).unwrap();
            fs::rename(&copy, &data).unwrap();
        };
        let is_of_copy = || lock(folder.path()).unwrap().is_of_copy();
        say(folder.path(), true);
        replace();
        assert!(!is_of_copy(), "it was closed");
        say(folder.path(), false);
        assert!(!is_of_copy(), "its adapter has died");
        replace();
        assert!(is_of_copy());
        assert!(is_of_copy(), "to look at it does not change that");
        // Not every power cut leaves what was written.
        for said in ["", "open 1", "\0\0\0\0\0"] {
            fs::write(folder.path().join(LOCK), said).unwrap();
            assert!(!is_of_copy(), "{said:?}");
        }
        fs::remove_file(folder.path().join(LOCK)).unwrap();
        assert!(is_of_copy() && is_of_copy(), "it came alone");
        fs::remove_file(&data).unwrap();
        assert!(!is_of_copy(), "there is none");
    }

    #[test]
    fn a_file_that_was_cut_off_gets_its_length_and_no_other_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join(DATA);
        fs::write(&data, "pages").unwrap();
        complete(folder.path(), 5).unwrap();
        complete(folder.path(), 3).unwrap();
        assert_eq!(fs::read(&data).unwrap(), b"pages");
        complete(folder.path(), 7).unwrap();
        assert_eq!(fs::read(&data).unwrap(), b"pages\0\0");
    }
}
