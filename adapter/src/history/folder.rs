//! The folder of a store: locked by one adapter at a time, and known to hold what was written there. Used by
//! [`super::store`] and by whoever opens one.
//!
//! What is copied while it is written has pages of different moments, which nothing in it tells. So the lock's file
//! says, while a store is open, which file that is, and a copy is another one. Who dies leaves that behind, and goes
//! on with its own file. Damage that nothing has come upon before, since a start does not read all of a store, is
//! noted there for the next start. Some damage ends the process that opens a store, which only a start behind it can
//! tell: so the starts that have not come to their end are counted. What ends the process later, whoever has started
//! it sees, and has it noted here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use touchline_protocol::folder::make;
use touchline_protocol::log::place::HISTORY_FOLDER;
use touchline_protocol::regular_file;

use super::store::HistoryError;
use crate::notice::alert;

/// The database's file, and that of its readers.
const DATA: &str = "data.mdb";
const READERS: &str = "lock.mdb";

const LOCK: &str = "lock";

/// Has a byte for each time, one after the other, that the process ended while it opened the store.
const OPENING: &str = "opening";

/// So often it may have been killed by chance.
const DEATHS_MAX: u64 = 2;

/// How the lock's file begins while the store is open.
const MARK: &str = "open ";

/// As if another file had been open.
const MARK_OF_NONE: &str = "open 0 0\n";

/// What the lock's file says instead once something of the store could not be read.
const DAMAGED: &str = "damaged\n";

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
    make(folder).map_err(|source| HistoryError::File { path: folder.to_owned(), source })?;
    let is_new = !path.exists();
    let mut options = OpenOptions::new();
    // Who may open it may lock it, and so keep the adapter from starting.
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = regular_file::open_as(&options, &path).map_err(failed)?;
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

/// Which file of a store it is that the system does not let be opened, to be read alone or written: the database says
/// only that there is one. The folder, where each could be.
pub(super) fn unopened(folder: &Path, is_written: bool, source: io::Error) -> HistoryError {
    let mut how = OpenOptions::new();
    how.read(true).write(is_written);
    let refused = [DATA, READERS].into_iter().find_map(|name| {
        let path = folder.join(name);
        let source = regular_file::open_as(&how, &path).err()?;
        // One that is not there would have been made.
        let is_there = path.symlink_metadata().is_ok();
        is_there.then_some(HistoryError::File { path, source })
    });
    refused.unwrap_or_else(|| HistoryError::File { path: folder.to_owned(), source })
}

/// Locks the folder of a store for who only looks at it, as any number may at once; changes nothing.
///
/// # Errors
/// [`HistoryError::Taken`] while an adapter has it; [`HistoryError::Copied`] where nothing can be locked, because
/// somebody has copied the database alone; when the lock's file cannot be read.
pub(crate) fn lock_to_look(folder: &Path) -> Result<StoreLock, HistoryError> {
    let path = folder.join(LOCK);
    let file = match regular_file::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(HistoryError::Copied { path: folder.to_owned() });
        }
        opened => opened.map_err(|source| HistoryError::File { path: path.clone(), source })?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(StoreLock { folder: folder.to_owned(), file, is_open: false }),
        Err(Errno::WOULDBLOCK) => Err(HistoryError::Taken { path }),
        Err(error) => Err(HistoryError::File { path, source: error.into() }),
    }
}

impl StoreLock {
    /// Whether the database is a copy of one that was open, or of one whose adapter had died.
    pub(crate) fn is_of_copy(&self) -> bool {
        self.said(|said| {
            // A longer one of which only the beginning was overwritten says nothing.
            let is_line = said.iter().position(|&byte| byte == b'\n') == said.len().checked_sub(1);
            let is_mark = is_line && said.starts_with(MARK.as_bytes());
            is_mark && self.mark().is_ok_and(|own| own.as_bytes() != said)
        })
    }

    /// Whether something of the store could not be read when it was open.
    pub(crate) fn is_of_damaged(&self) -> bool {
        self.said(|said| said == DAMAGED.as_bytes())
    }

    fn said<T>(&self, judge: impl FnOnce(&[u8]) -> T) -> T {
        let mut said = [0; MARK_BYTES_MAX];
        // What cannot be read says nothing.
        let length = self.file.read_at(&mut said, 0).unwrap_or_default();
        judge(&said[..length])
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
        for path in [DATA, READERS, OPENING].map(|name| self.folder.join(name)) {
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
        if self.is_open && !self.is_of_damaged() {
            // Else a copy of the store is taken for one of an open one, and made anew.
            let _unwritten = self.file.set_len(0);
        }
    }
}

/// That a store is being opened. Dropping it says that this has not ended the process.
#[derive(Debug)]
pub(crate) struct Opening {
    path: PathBuf,
}

impl Opening {
    /// Begins to open the store in `folder`, which is locked. `None` if that has ended the process again and again.
    pub(crate) fn begin(folder: &Path) -> Option<Self> {
        if Self::has_failed(folder) {
            return None;
        }
        let path = folder.join(OPENING);
        let file = regular_file::open_as(OpenOptions::new().append(true).create(true), &path);
        // Where that finds no room, damage of this kind ends every start, and is seen by that.
        let _unwritten = file.and_then(|mut file| file.write_all(b"."));
        Some(Self { path })
    }

    /// Whether that has ended the process again and again.
    pub(crate) fn has_failed(folder: &Path) -> bool {
        fs::metadata(folder.join(OPENING)).is_ok_and(|file| file.len() >= DEATHS_MAX)
    }

    /// Of a store that is opened whatever has happened before.
    pub(crate) fn of(folder: &Path) -> Self {
        Self { path: folder.join(OPENING) }
    }

    /// It is open.
    pub(crate) fn ends(&self) {
        let _gone = fs::remove_file(&self.path);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.ends();
    }
}

/// Notes, for the next start, that the adapter of this instance has died as one does that reads what the database
/// does not see to be damaged. False if it has no store, if another process has that, or if it cannot be written.
#[must_use]
pub fn suspect(data: &Path, instance: &str) -> bool {
    let folder = data.join(HISTORY_FOLDER).join(instance);
    if !folder.join(DATA).exists() {
        return false;
    }
    // Of one that is in use nobody knows who damaged what.
    let Ok(_lock) = lock(&folder) else { return false };
    Damage::of(&folder).write().is_ok()
}

/// Notes damage that is found while a store is open.
#[derive(Debug)]
pub(super) struct Damage {
    lock: PathBuf,
    is_noted: AtomicBool,
}

impl Damage {
    /// Of the store in `folder`.
    pub(super) fn of(folder: &Path) -> Self {
        Self { lock: folder.join(LOCK), is_noted: AtomicBool::new(false) }
    }

    /// Of a store that is only looked at: nothing is told, and nothing noted.
    pub(super) fn not_noted(folder: &Path) -> Self {
        Self { is_noted: AtomicBool::new(true), ..Self::of(folder) }
    }

    /// Hands on what the store has said. The first time that it could not read itself is told and noted.
    pub(super) fn note<T>(&self, outcome: Result<T, HistoryError>) -> Result<T, HistoryError> {
        if let Err(error) = &outcome
            && error.is_of_content()
            && !self.is_noted.swap(true, Ordering::Relaxed)
        {
            alert!(
                "adapter: {error}: requests for what is damaged fail; the next start of the adapter makes \
                 the history anew if the log has its beginning"
            );
            // Without it the next start comes upon the damage as this one did.
            let _unwritten = self.write();
        }
        outcome
    }

    fn write(&self) -> io::Result<()> {
        let file = regular_file::open_as(OpenOptions::new().write(true), &self.lock)?;
        file.set_len(0)?;
        file.write_all_at(DAMAGED.as_bytes(), 0)
    }
}

/// Where the database says how it is laid out, from the beginning of each of its first two pages, behind the page's
/// own header.
mod layout {
    pub(super) const BYTES: usize = 152;
    pub(super) const MAGIC: usize = 16;
    pub(super) const VERSION: usize = 20;
    pub(super) const PAGE_BYTES: usize = 40;
    pub(super) const LAST_PAGE: usize = 136;
    pub(super) const TRANSACTION: usize = 144;
}

/// The magic number and the version of a layout that is known here.
const KNOWN: [u32; 2] = [0xBEEF_C0DE, 1];

/// True unless the database says that it has pages of no possible size, or more of them than `most` bytes hold, by
/// which it would end the process or have it map more than there is. What is no database at all it tells itself.
pub(super) fn has_sound_size(folder: &Path, most: u64) -> bool {
    let Ok(file) = regular_file::open(&folder.join(DATA)) else { return true };
    let read = |from| {
        let mut meta = [0; layout::BYTES];
        file.read_exact_at(&mut meta, from).ok()?;
        let small = |at: usize| u32::from_le_bytes(meta[at..at + 4].try_into().unwrap_or_default());
        let large = |at: usize| u64::from_le_bytes(meta[at..at + 8].try_into().unwrap_or_default());
        let is_known = [small(layout::MAGIC), small(layout::VERSION)] == KNOWN;
        let size = (small(layout::PAGE_BYTES), large(layout::LAST_PAGE));
        is_known.then(|| (large(layout::TRANSACTION), size))
    };
    let Some((first, size)) = read(0) else { return true };
    let is_sound = |(page_bytes, last): (u32, u64)| {
        let bytes = last.checked_add(1).and_then(|pages| pages.checked_mul(page_bytes.into()));
        (256..=1 << 16).contains(&page_bytes) && bytes.is_some_and(|bytes| bytes <= most)
    };
    // The page of the later transaction is the one that counts.
    let second = read(size.0.into()).filter(|(transaction, _)| *transaction > first);
    is_sound(second.map_or(size, |(_, size)| size))
}

/// Gives the database's file the length that it says it has, in zeros, where it was cut off: its missing pages are
/// told as no pages then, and do not end the process.
pub(super) fn complete(folder: &Path, bytes: u64) -> Result<(), HistoryError> {
    let path = folder.join(DATA);
    let complete = || {
        let file = regular_file::open_as(OpenOptions::new().write(true), &path)?;
        if file.metadata()?.len() < bytes { file.set_len(bytes) } else { Ok(()) }
    };
    complete().map_err(|source| HistoryError::File { path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType::Fifo, Mode, mknodat};

    #[test]
    fn a_store_is_its_own_users() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("history/adapter");
        let _lock = lock(&folder).unwrap();
        for (path, mode) in [(folder.as_path(), 0o700), (&folder.join(LOCK), 0o600)] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, mode, "{}", path.display());
        }
    }

    /// Whoever opens a pipe waits for its other end.
    #[test]
    fn pipes_in_the_places_of_files_hold_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = |name| {
            let path = folder.path().join(name);
            mknodat(CWD, &path, Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            path
        };
        for name in [DATA, OPENING] {
            pipe(name);
        }
        Opening::begin(folder.path()).unwrap();
        assert!(has_sound_size(folder.path(), 1), "what it is the database tells");
        complete(folder.path(), 1).unwrap_err();
        let path = pipe(LOCK);
        assert!(matches!(lock(folder.path()), Err(HistoryError::File { .. })));
        Damage::of(folder.path()).write().unwrap_err();
        fs::remove_file(path).unwrap();
        lock(folder.path()).unwrap();
    }

    #[test]
    fn damage_is_noted_for_the_next_start_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let noted = |error: HistoryError| {
            let mut lock = lock(folder.path()).unwrap();
            lock.say_open();
            Damage::of(folder.path()).note(Err::<(), _>(error)).unwrap_err();
            drop(lock);
            let lock = super::lock(folder.path()).unwrap();
            (lock.is_of_damaged(), lock.is_of_copy())
        };
        fs::write(folder.path().join(DATA), "pages").unwrap();
        assert_eq!(noted(HistoryError::Lost { position: 7 }), (false, false));
        for _ in 0..2 {
            assert_eq!(noted(HistoryError::Row { table: "sides", bytes: 3 }), (true, false));
        }
        assert_eq!(noted(HistoryError::Lost { position: 7 }), (false, false), "it was opened anew");
    }

    #[test]
    fn a_store_that_is_suspected_is_of_a_damaged_one_once_nobody_has_it() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join(HISTORY_FOLDER).join("one");
        assert!(!suspect(data.path(), "one"), "there is none");
        assert!(!folder.exists());
        let mut open = lock(&folder).unwrap();
        fs::write(folder.join(DATA), "pages").unwrap();
        open.say_open();
        assert!(!suspect(data.path(), "one"), "it is in use");
        // As a death leaves it.
        open.is_open = false;
        drop(open);
        assert!(suspect(data.path(), "one"));
        assert!(lock(&folder).unwrap().is_of_damaged());
    }

    #[test]
    fn a_store_whose_opening_ends_the_process_again_and_again_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let begin = || Opening::begin(folder.path());
        let dies = || {
            let opening = begin().unwrap();
            let said = fs::read(&opening.path).unwrap();
            let path = opening.path.clone();
            drop(opening);
            fs::write(path, said).unwrap();
        };
        dies();
        drop(begin().unwrap());
        dies();
        dies();
        assert!(begin().is_none() && begin().is_none());
        drop(Opening::of(folder.path()));
        dies();
        dies();
        lock(folder.path()).unwrap().clear().unwrap();
        begin().unwrap().ends();
        assert!(!folder.path().join(OPENING).exists());
    }

    #[test]
    fn a_size_that_no_database_has_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let write = |metas: &[(u64, u32, u64)]| {
            let mut bytes = vec![0; 4096 * metas.len()];
            for (page, &(transaction, page_bytes, last)) in bytes.chunks_mut(4096).zip(metas) {
                page[layout::MAGIC..][..4].copy_from_slice(&KNOWN[0].to_le_bytes());
                page[layout::VERSION..][..4].copy_from_slice(&KNOWN[1].to_le_bytes());
                page[layout::PAGE_BYTES..][..4].copy_from_slice(&page_bytes.to_le_bytes());
                page[layout::LAST_PAGE..][..8].copy_from_slice(&last.to_le_bytes());
                page[layout::TRANSACTION..][..8].copy_from_slice(&transaction.to_le_bytes());
            }
            fs::write(folder.path().join(DATA), bytes).unwrap();
        };
        let is_sound = || has_sound_size(folder.path(), 1 << 20);
        assert!(is_sound(), "there is none");
        let good = (7, 4096, 255);
        write(&[good, (6, 4096, 1)]);
        assert!(is_sound());
        for (page_bytes, last) in
            [(0, 1), (4096, 256), (4096, u64::MAX), (4096, 1 << 60), (1 << 17, 1)]
        {
            write(&[(5, 4096, 1), (6, page_bytes, last)]);
            assert!(!is_sound(), "{page_bytes} {last}");
            write(&[good, (6, page_bytes, last)]);
            assert!(is_sound(), "the other page counts: {page_bytes} {last}");
        }
        fs::write(folder.path().join(DATA), [7; 9000]).unwrap();
        assert!(is_sound(), "that it is none is told elsewhere");
    }

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
        for said in ["", "open 1", "open 1 2\n3\n", "\0\0\0\0\0"] {
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
