//! Windows that do not count because their control page was copied to where it lies: kept under other names, for one
//! may be all there is of what its engine acknowledged. Called by recovery, which looks for windows.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use touchline_protocol::{
    log::control::{CONTROL_FILE, ControlHeader, MAGIC, VERSION, WINDOW_FILE},
    regular_file,
};

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
    /// The one in `folder`, with a page of `incarnation`, for which [`check_free`] has found room; tells of it.
    pub(super) fn of(folder: &Path, incarnation: u32, lock: FolderLock) -> Self {
        let copied = Self { folder: folder.to_owned(), incarnation, _lock: lock };
        alert!(
            "log: the live window in {} was copied there and does not count: what it was when, nobody knows; it is to \
             be kept there as {} and {}",
            folder.display(),
            copied.kept_name(CONTROL_FILE),
            copied.kept_name(WINDOW_FILE)
        );
        copied
    }

    fn kept_name(&self, name: &str) -> String {
        kept_name(self.incarnation, name)
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

fn kept_name(incarnation: u32, name: &str) -> String {
    format!("{COPIED}{incarnation}-{name}")
}

/// Whether the files in `folder` of a window that was copied there, with a page of `incarnation`, can have their other
/// names.
///
/// # Errors
/// If one that is there cannot.
pub(super) fn check_free(folder: &Path, incarnation: u32) -> io::Result<()> {
    let is_there = |path: &Path| match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => found.map(|_| true).map_err(named(path)),
    };
    for name in FILES {
        let kept = folder.join(kept_name(incarnation, name));
        if is_there(&folder.join(name))? && is_there(&kept)? {
            return Err(named(&kept)(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "one that was copied before is kept there; move it away first",
            )));
        }
    }
    Ok(())
}

/// The highest incarnation of which the windows of the log `log_id` tell that lie in `folder`, whether they count or
/// not: also those of an earlier running of the machine or of another one, and those that are kept for they were
/// copied. What cannot be read tells of none.
pub(super) fn highest_told(folder: &Path, log_id: &[u8; 16]) -> u32 {
    let page = regular_file::open(&folder.join(CONTROL_FILE));
    let header = page.ok().and_then(|page| ControlHeader::read(&page).ok().flatten());
    let of_page = header
        .filter(|it| it.magic == MAGIC && it.version == VERSION && it.log_id == *log_id)
        .map(|header| header.incarnation);
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let of_copies = names.filter_map(|name| {
        let (incarnation, file) = name.to_str()?.strip_prefix(COPIED)?.split_once('-')?;
        incarnation.parse().ok().filter(|_| FILES.contains(&file))
    });
    of_copies.chain(of_page).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    const LOG: [u8; 16] = [7; 16];

    /// What a folder tells with a page, if it has one, and files of these names.
    fn told(page: Option<ControlHeader>, names: &[&str]) -> u32 {
        let folder = tempfile::tempdir().unwrap();
        if let Some(page) = page {
            fs::write(folder.path().join(CONTROL_FILE), bytemuck::bytes_of(&page)).unwrap();
        }
        for name in names {
            fs::write(folder.path().join(name), []).unwrap();
        }
        highest_told(folder.path(), &LOG)
    }

    #[test]
    fn the_highest_number_counts_whether_the_page_tells_it_or_what_was_copied() {
        let page = ControlHeader {
            magic: MAGIC,
            version: VERSION,
            incarnation: 5,
            log_id: LOG,
            ..ControlHeader::zeroed()
        };
        let lower = ["copied-3-window", "copied-4-control"];
        let higher = ["copied-3-window", "copied-6-control", "copied-4-window"];
        assert_eq!((told(None, &[]), told(Some(page), &[])), (0, 5));
        assert_eq!((told(Some(page), &lower), told(Some(page), &higher)), (5, 6));
        assert_eq!((told(None, &["copied-6-window"]), told(None, &["copied-7-control"])), (6, 7));
        // Nothing of the log's, as this build knows it.
        let strangers = [
            ControlHeader { magic: [0; 8], ..page },
            ControlHeader { version: VERSION + 1, ..page },
            ControlHeader { log_id: [8; 16], ..page },
        ];
        assert_eq!(strangers.map(|page| told(Some(page), &["copied-3-window"])), [3; 3]);
        let others =
            ["copied-9", "copied-9-other", "copied-x-window", "9-window", "copied--window"];
        assert_eq!(told(Some(page), &others), 5);
    }
}
