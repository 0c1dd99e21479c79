//! Where the live window of a log lies. Used by the engine, which makes it, and by readers, which
//! find it by the same rule and need no message from the engine.
//!
//! In memory the folder is named by the log and by device and inode of its data folder, and in the data folder the
//! control page says which file it is, so that a copied data folder never goes on from the window of its original. Where
//! a data folder was mounted anew, and has another device, a start finds its window again and renames its folder:
//!
//! ```text
//! /dev/shm/touchline-<uid>/<log id>-<device>-<inode>/     preferred: memory, no write-back
//! <data>/live/                                            where there is no room there
//! ```

use super::segment::log_id_text;
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The folder of memory-backed files on Linux.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// Name of the window's folder within the data folder.
pub const LIVE_FOLDER: &str = "live";

/// Name of the folder in the data folder in which readers of the log keep what they have made of it, each in a
/// folder of its own: there is none before there is a log.
pub const HISTORY_FOLDER: &str = "history";

/// Name of the file in such a folder that holds it.
pub const HISTORY_FILE: &str = "data.mdb";

/// Both folders in which the window of one log may lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowFolders {
    /// The folder of memory-backed files: [`SHARED_MEMORY`] or what stands for it.
    pub root: PathBuf,
    /// The folder of this user in shared memory: 0700, shared by all logs of the user.
    pub user: PathBuf,
    /// The log's folder within `user`.
    pub shared_memory: PathBuf,
    /// The log's folder within its data folder.
    pub data: PathBuf,
}

impl WindowFolders {
    /// The folders for the log `log_id` in the data folder `data`; `shared_memory` is
    /// [`SHARED_MEMORY`] or what stands for it.
    ///
    /// # Errors
    /// If the data folder cannot be looked at.
    pub fn of(data: &Path, log_id: &[u8; 16], shared_memory: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(data)?;
        let key = format!("{}-{:x}-{:x}", log_id_text(log_id), metadata.dev(), metadata.ino());
        let (root, user) = (shared_memory.to_owned(), user_folder(shared_memory));
        let (shared_memory, data) = (user.join(key), data.join(LIVE_FOLDER));
        Ok(Self { root, user, shared_memory, data })
    }

    /// Those in which a window of this log may be found. Anybody may make folders where the user's one lies in
    /// shared memory: what is somebody else's, or no folder, holds no window of this user, and what it holds is
    /// not to be opened.
    ///
    /// # Errors
    /// If that cannot be looked at.
    pub fn to_search(&self) -> io::Result<impl Iterator<Item = &PathBuf>> {
        let own = is_own(&self.user)?.then_some(&self.shared_memory);
        Ok(own.into_iter().chain([&self.data]))
    }

    /// The log's folder in shared memory if the user of the number `user` runs its engine, and that user has folders
    /// there.
    ///
    /// # Errors
    /// If that cannot be looked at.
    pub fn of_user(&self, user: u32) -> io::Result<Option<PathBuf>> {
        let is_there = belongs_to(&folder_of(&self.root, user), user)?;
        Ok(is_there.then(|| self.place_of(user)))
    }

    /// The same, whether or not that user has folders there.
    #[must_use]
    pub fn place_of(&self, user: u32) -> PathBuf {
        let key = self.shared_memory.file_name().unwrap_or_default();
        folder_of(&self.root, user).join(key)
    }
}

/// The folder of this user in shared memory, whatever its logs.
#[must_use]
pub fn user_folder(shared_memory: &Path) -> PathBuf {
    folder_of(shared_memory, rustix::process::getuid().as_raw())
}

fn folder_of(shared_memory: &Path, user: u32) -> PathBuf {
    shared_memory.join(format!("touchline-{user}"))
}

/// True for a folder that is there and belongs to this user.
fn is_own(folder: &Path) -> io::Result<bool> {
    belongs_to(folder, rustix::process::getuid().as_raw())
}

/// True for a folder that is there and belongs to the user of that number.
fn belongs_to(folder: &Path, user: u32) -> io::Result<bool> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match fs::symlink_metadata(folder) {
        Ok(found) => Ok(found.is_dir() && found.uid() == user),
        // What this user may not even look at, this user has not made.
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The kernel's id of its present running: another after each boot.
///
/// # Errors
/// If /proc does not give it.
pub fn boot_id() -> io::Result<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    parse_boot_id(&text).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("boot id {:?}", text.trim()))
    })
}

fn parse_boot_id(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text
        .trim()
        .chars()
        .filter(|&character| character != '-')
        .map(|character| character.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let digits: [u8; 32] = digits.try_into().ok()?;
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_ids_are_read_or_refused() {
        let id = parse_boot_id("00112233-4455-6677-8899-aabbccddeeff\n").unwrap();
        assert_eq!(id[0], 0);
        assert_eq!(id[1], 0x11);
        assert_eq!(id[15], 0xff);
        assert_eq!(parse_boot_id("00112233"), None);
        assert_eq!(parse_boot_id("zz112233-4455-6677-8899-aabbccddeeff"), None);
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    }

    #[test]
    fn a_copied_data_folder_has_another_window() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("a"), root.path().join("b"));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        let folder = |data: &Path| WindowFolders::of(data, b"0123456789abcdef", root.path());
        let of_first = folder(&first).unwrap();
        assert_eq!(of_first, folder(&first).unwrap());
        assert_ne!(of_first.shared_memory, folder(&second).unwrap().shared_memory);
        assert_eq!(of_first.data, first.join("live"));
        let name = of_first.shared_memory.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("30313233343536373839616263646566-"), "{name}");
    }
}
