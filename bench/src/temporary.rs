//! Temporary folders of measurements, and what measurements that were killed have left. Called by the measurements.
//!
//! Each folder is locked as long as it is in use; the kernel gives the lock back at any death of the process. Where one
//! is made, others beside it that nobody holds locked are removed, with the windows in shared memory of the engines
//! whose data lay in them: those are killed with the bench that started them, and nobody else knows of them.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use rustix::process::geteuid;
use tempfile::TempDir;
use touchline_protocol::log::control::CONTROL_FILE;

/// How the names of such folders begin. Folders that builds without locks made are called otherwise.
const PREFIX: &str = "touchline-bench-run-";

/// Where engines have their windows, in a folder of each user.
const SHARED_MEMORY: &str = "/dev/shm";

/// The file of a window's folder that says whose it is.
const ORIGIN_FILE: &str = "origin";

/// A folder is made anew so often where somebody takes it for one that was left.
const TRIES: u32 = 10;

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub struct Temporary {
    // Removed while it is locked: fields are dropped in this order.
    folder: TempDir,
    _lock: File,
}

impl Temporary {
    /// Makes one in `parent`, and removes what was left there by measurements that were killed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(parent: &Path) -> Result<Self> {
        remove_left(parent, Path::new(SHARED_MEMORY));
        let problem = || format!("no folder in {}", parent.display());
        for _ in 0..TRIES {
            let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent);
            let folder = made.with_context(problem)?;
            // Until it is locked another one may find it left, and remove it.
            if let Some(lock) = locked(folder.path())
                && folder.path().exists()
            {
                return Ok(Self { folder, _lock: lock });
            }
        }
        bail!("{}: each was removed at once", problem())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The lock of a folder of this user, unless somebody holds it.
fn locked(folder: &Path) -> Option<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, folder, flags, Mode::empty()).ok()?);
    let is_own = file.metadata().ok()?.uid() == geteuid().as_raw();
    (is_own && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()).then_some(file)
}

/// Removes folders in `parent` that nobody holds, and windows in `shared` of engines whose data lay there. What cannot
/// be judged or removed stays.
fn remove_left(parent: &Path, shared: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        if let Some(_lock) = locked(&entry.path()) {
            remove_windows(&entry.path(), shared);
            let _stays = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the windows of engines whose data lay in `folder`, which an engine would leave that was killed before all
/// was on disk.
fn remove_windows(folder: &Path, shared: &Path) {
    let Ok(folder) = fs::canonicalize(folder) else { return };
    let user = shared.join(format!("touchline-{}", geteuid().as_raw()));
    let Ok(windows) = fs::read_dir(user) else { return };
    for window in windows.flatten().map(|window| window.path()) {
        let Some(_lock) = locked(&window) else { continue };
        let Ok(origin) = fs::read(window.join(ORIGIN_FILE)) else { continue };
        let origin = Path::new(std::ffi::OsStr::from_bytes(&origin));
        if origin.starts_with(&folder) && window.join(CONTROL_FILE).exists() {
            let _stays = fs::remove_dir_all(&window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder as one that was killed leaves it.
    fn left_in(parent: &Path) -> std::path::PathBuf {
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).unwrap().keep();
        fs::write(made.join("venue.toml"), "").unwrap();
        made
    }

    #[test]
    fn what_was_left_is_removed_and_what_is_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let left = left_in(parent.path());
        let strangers = ["touchline-bench-abcdef", "other"].map(|name| parent.path().join(name));
        strangers.iter().for_each(|stranger| fs::create_dir(stranger).unwrap());
        let first = Temporary::new(parent.path()).unwrap();
        assert!(!left.exists() && strangers.iter().all(|stranger| stranger.exists()));
        let second = Temporary::new(parent.path()).unwrap();
        assert!(first.path().exists() && second.path().exists());
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists() && second.path().exists());
    }

    #[test]
    fn nothing_is_removed_behind_a_link() {
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("file"), "").unwrap();
        let link = parent.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(elsewhere.path(), link).unwrap();
        drop(Temporary::new(parent.path()).unwrap());
        assert!(elsewhere.path().join("file").exists());
    }

    #[test]
    fn windows_of_what_was_left_go_with_it() {
        let (parent, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let left = left_in(parent.path());
        let user = shared.path().join(format!("touchline-{}", geteuid().as_raw()));
        let window = |name: &str, origin: &Path| {
            let window = user.join(name);
            fs::create_dir_all(&window).unwrap();
            fs::write(window.join(CONTROL_FILE), "").unwrap();
            fs::write(window.join(ORIGIN_FILE), origin.as_os_str().as_bytes()).unwrap();
            window
        };
        let data = fs::canonicalize(&left).unwrap().join("data");
        let (own, held) = (window("own", &data), window("held", &data));
        let other = window("other", &fs::canonicalize(parent.path()).unwrap().join("data"));
        let lock = locked(&held).unwrap();
        remove_left(parent.path(), shared.path());
        assert_eq!([&left, &own, &held, &other].map(|it| it.exists()), [false, false, true, true]);
        drop(lock);
    }
}
