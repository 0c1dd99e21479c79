//! Folder locks: one engine per data folder and per window. Taken by recovery, held while the engine
//! lives; the kernel releases them at any death of the process.

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

/// How long a lock is waited for that is held for a moment only.
const PATIENCE: Duration = Duration::from_secs(1);

/// Pause between two tries.
const AGAIN: Duration = Duration::from_millis(5);

/// A held lock.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks an open file or folder; `None` if somebody else holds it.
    pub(crate) fn take(file: File) -> io::Result<Option<Self>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Locks a window's folder, which other engines of this user lock for a moment when they look for windows
    /// that nobody needs.
    pub(crate) fn take_window(folder: &Path) -> io::Result<Self> {
        let begun = Instant::now();
        loop {
            if let Some(lock) = Self::take(File::open(folder)?)? {
                return Ok(lock);
            }
            if begun.elapsed() >= PATIENCE {
                let why = format!("{} is locked by another process", folder.display());
                return Err(io::Error::other(why));
            }
            thread::sleep(AGAIN);
        }
    }
}
