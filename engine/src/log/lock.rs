//! Folder locks: one engine per data folder and per window. Taken by recovery, held while the engine
//! lives; the kernel releases them at any death of the process. Tools ask whether one is held.

use std::{
    fs::File,
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use touchline_protocol::regular_file;

/// How long a lock is waited for that is held for a moment only.
const PATIENCE: Duration = Duration::from_secs(1);

/// So long a start waits for those who only ask whether the data folder's lock is held. One holds it for microseconds,
/// unless it is stopped just then.
const ASKING_PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two tries.
const AGAIN: Duration = Duration::from_millis(5);

/// A window's folder is locked by another process.
#[derive(Debug, thiserror::Error)]
#[error("its folder is locked by another process")]
pub(crate) struct WindowIsLocked;

/// A held lock.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
}

/// What keeps a data folder one engine's.
#[derive(Debug)]
pub(crate) struct DataLock {
    /// On the file that names the process.
    pub(crate) _file: FolderLock,
    /// On the folder of segments itself, which holds though somebody removes that file; `None` where the file system
    /// locks no folders.
    pub(crate) _segments: Option<FolderLock>,
}

impl FolderLock {
    /// Locks an open file or folder; `None` if somebody else holds it.
    pub(crate) fn take(file: File) -> io::Result<Option<Self>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Locks the lock file of a data folder; `None` if an engine holds it. Who only asks ([`is_held`]) keeps no engine
    /// out: that is waited for.
    pub(crate) fn take_data(file: &File) -> io::Result<Option<Self>> {
        let begun = Instant::now();
        loop {
            if let Some(lock) = Self::take(file.try_clone()?)? {
                return Ok(Some(lock));
            }
            // Any number of those who ask, and no engine, may have it together.
            match flock(file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => flock(file, FlockOperation::Unlock)?,
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
            if begun.elapsed() >= ASKING_PATIENCE {
                let why =
                    "another process that only looks whether it is locked does not let go of it";
                return Err(io::Error::other(why));
            }
            thread::sleep(AGAIN);
        }
    }

    /// As [`FolderLock::take`], of a folder that a network file system may keep from being locked: some lock only what
    /// is open for writing, as no folder ever is. Gives `Some(None)` then.
    pub(crate) fn take_where_possible(folder: &Path) -> io::Result<Option<Option<Self>>> {
        match Self::take(File::open(folder)?) {
            Err(error)
                if matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::BADF | Errno::OPNOTSUPP | Errno::NOLCK)
                ) =>
            {
                Ok(Some(None))
            }
            taken => Ok(taken?.map(Some)),
        }
    }

    /// Locks a window's folder, which other engines of this user lock for a moment when they look for windows
    /// that nobody needs.
    ///
    /// # Errors
    /// [`WindowIsLocked`] if somebody holds it for longer, or what the system says.
    pub(crate) fn take_window(folder: &Path) -> io::Result<Self> {
        let begun = Instant::now();
        loop {
            if let Some(lock) = Self::take(File::open(folder)?)? {
                return Ok(lock);
            }
            if begun.elapsed() >= PATIENCE {
                return Err(io::Error::other(WindowIsLocked));
            }
            thread::sleep(AGAIN);
        }
    }
}

impl Drop for FolderLock {
    /// Closing the file is not enough: a process that another thread begins just then has it open, too, until it is
    /// the program that it is to become.
    fn drop(&mut self) {
        let _as_closing_does = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Whether an engine holds the lock file at `path`; false if there is none, or it cannot be looked at. Beside no engine
/// it is locked for a moment, as any number may have it at once and an engine may not: a start waits for that
/// ([`FolderLock::take_data`]).
pub(crate) fn is_held(path: &Path) -> bool {
    let Ok(file) = regular_file::open(path) else { return false };
    // Closing it lets go of it.
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::join;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn who_asks_whether_a_lock_is_held_keeps_no_engine_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!is_held(&path));
        let file = || File::options().create(true).append(true).open(&path).unwrap();
        let asking = file();
        flock(&asking, FlockOperation::NonBlockingLockShared).unwrap();
        assert!(!is_held(&path), "another one asks");
        let (is_tried, start) = (AtomicBool::new(false), file());
        thread::scope(|scope| {
            let start = scope.spawn(|| {
                is_tried.store(true, Ordering::Release);
                FolderLock::take_data(&start)
            });
            while !is_tried.load(Ordering::Acquire) {
                thread::yield_now();
            }
            thread::sleep(4 * AGAIN);
            drop(asking);
            let lock = start.join().unwrap().unwrap().expect("nobody has it but who asks");
            assert!(is_held(&path));
            // Another engine is refused, and does not wait.
            assert!(FolderLock::take_data(&file()).unwrap().is_none());
            drop(lock);
        });
    }

    #[test]
    fn a_lock_that_was_let_go_of_is_held_by_no_child_that_is_about_to_begin() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::open(folder.path()).unwrap();
        let file = open();
        let of_child = file.try_clone().unwrap();
        let lock = FolderLock::take(file).unwrap().unwrap();
        assert!(FolderLock::take(open()).unwrap().is_none());
        drop(lock);
        assert!(FolderLock::take(open()).unwrap().is_some());
        drop(of_child);
    }

    #[test]
    fn engines_start_though_somebody_asks_all_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let file = || File::options().create(true).append(true).open(&path).unwrap();
        let is_over = std::sync::Arc::new(AtomicBool::new(false));
        let asking: Vec<_> = (0..2)
            .map(|_| {
                let (path, is_over) = (path.clone(), std::sync::Arc::clone(&is_over));
                thread::spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        is_held(&path);
                    }
                })
            })
            .collect();
        for _ in 0..50 {
            assert!(FolderLock::take_data(&file()).unwrap().is_some());
        }
        is_over.store(true, Ordering::Relaxed);
        asking.into_iter().for_each(|thread| join(thread, "who asks"));
    }
}
