//! Windows that do not count because their control page was copied to where it lies: kept under other names, for one
//! may be all there is of what its engine acknowledged. Called by recovery, which looks for windows.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use touchline_protocol::log::control::{CONTROL_FILE, WINDOW_FILE};

use super::{RecoveryError, leftover::named};
use crate::log::{live::COPIED, lock::FolderLock};
use crate::notice::alert;

/// The window first: a control page without one is found again by the start after a crash in between, a window without
/// a page would be taken for one that was never published.
const FILES: [&str; 2] = [WINDOW_FILE, CONTROL_FILE];

/// A window that was copied to its folder, which is locked.
pub(super) struct CopiedWindow {
    folder: PathBuf,
    incarnation: u32,
    _lock: FolderLock,
}

impl CopiedWindow {
    /// The one in `folder`, with a page of `incarnation`; tells of it.
    ///
    /// # Errors
    /// If there is a file of the name already that one of its files is to have.
    pub(super) fn of(folder: &Path, incarnation: u32, lock: FolderLock) -> io::Result<Self> {
        let copied = Self { folder: folder.to_owned(), incarnation, _lock: lock };
        for name in FILES {
            copied.check_free(name)?;
        }
        alert!(
            "log: the live window in {} was copied there and does not count: what it was when, nobody knows; it is to \
             be kept there as {} and {}",
            folder.display(),
            copied.kept_name(CONTROL_FILE),
            copied.kept_name(WINDOW_FILE)
        );
        Ok(copied)
    }

    /// Of the engine that made the original: a number that was used.
    pub(super) const fn incarnation(&self) -> u32 {
        self.incarnation
    }

    fn kept_name(&self, name: &str) -> String {
        format!("{COPIED}{}-{name}", self.incarnation)
    }

    /// Whether the file `name` can have its other name, if it is there.
    fn check_free(&self, name: &str) -> io::Result<()> {
        let kept = self.folder.join(self.kept_name(name));
        let is_there = |path: &Path| match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => found.map(|_| true).map_err(named(path)),
        };
        if is_there(&self.folder.join(name))? && is_there(&kept)? {
            return Err(named(&kept)(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "one that was copied before is kept there; move it away first",
            )));
        }
        Ok(())
    }

    /// Gives its files their other names, durably.
    pub(super) fn put_aside(&self) -> Result<(), RecoveryError> {
        let failed = |source| RecoveryError::of_left_window(&self.folder, source);
        for name in FILES {
            let (path, kept) = (self.folder.join(name), self.folder.join(self.kept_name(name)));
            match fs::rename(&path, &kept) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(named(&path)(error)));
                }
                _ => {}
            }
        }
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}
