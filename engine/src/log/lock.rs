//! Folder locks: one engine per data folder and per window. Taken by recovery, held while the engine
//! lives; the kernel releases them at any death of the process.

use std::{fs::File, io};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

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
}
