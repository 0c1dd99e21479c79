//! Windows in shared memory whose data folder is gone: they would take room until the next boot.
//! Removed when a window is made.
//!
//! A window folder is named by device and inode of its data folder and holds a file with that
//! folder's path. It is removed only if nobody holds its lock, the path leads to no such folder any
//! more, or to one that tells of another log, and the disk log had everything that was in it: a data
//! folder that was merely moved after a crash keeps its window as long as the window is of use. One in
//! which a copied window is kept stays, and so does one of any other name: an operator has moved it away,
//! of whose disk log nobody knows what it has.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use touchline_protocol::{
    log::control::{
        APPENDED_OFFSET, CONTROL_BYTES, CONTROL_FILE, ControlHeader, DURABLE_OFFSET, MAGIC, VERSION,
    },
    regular_file,
    shm::ReadOnlyRegion,
};

use crate::recovery::of_another_log;

use super::{super::lock::FolderLock, ORIGIN_FILE, keeps_copied};

/// Longest path that is looked at, bytes.
const PATH_BYTES_MAX: u64 = 4096;

/// Notes whose window lies in `folder`.
pub(super) fn note_origin(folder: &Path, data: &Path) -> io::Result<()> {
    let data = fs::canonicalize(data)?;
    fs::write(folder.join(ORIGIN_FILE), data.as_os_str().as_bytes())
}

/// Removes what is stale of the windows in `user`, except `own`. What cannot be judged stays.
pub(super) fn remove_stale(user: &Path, own: &Path) {
    let Ok(entries) = fs::read_dir(user) else { return };
    for folder in entries.flatten().map(|entry| entry.path()) {
        if folder != own {
            let _stays = remove_if_stale(&folder);
        }
    }
}

fn remove_if_stale(folder: &Path) -> io::Result<()> {
    // Held until it is gone, so that no engine begins to use it meanwhile.
    let Some(_lock) = FolderLock::take(File::open(folder)?)? else { return Ok(()) };
    if is_stale(folder)? { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// Whether an engine gives this name to the folder of a window.
fn is_window_folder_name(name: &str) -> bool {
    let mut parts = name.split('-');
    let mut is_number = || {
        let digits = parts.next()?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (!digits.is_empty() && digits.bytes().all(is_digit)).then_some(digits.len())
    };
    is_number() == Some(32)
        && is_number().is_some()
        && is_number().is_some()
        && parts.next().is_none()
}

/// Whether the data folder at `data` tells that another log is there than the one that a window's folder is named by.
fn is_of_another_log(data: &Path, name: &str) -> bool {
    let mut log_id = [0; 16];
    for (byte, at) in log_id.iter_mut().zip((0..).step_by(2)) {
        let digits = name.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(told) = digits else { return false };
        *byte = told;
    }
    of_another_log(data, &log_id).is_some()
}

/// The path that the data folder had whose window lies in `folder`, unless it is longer than any that is looked at.
pub(crate) fn origin(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut origin = regular_file::open(&folder.join(ORIGIN_FILE))?;
    if origin.metadata()?.len() > PATH_BYTES_MAX {
        return Ok(None);
    }
    let mut data = Vec::new();
    origin.read_to_end(&mut data)?;
    Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(&data))))
}

/// Whether nobody needs what is in a folder, which is locked.
fn is_stale(folder: &Path) -> io::Result<bool> {
    let Some(data) = origin(folder)? else { return Ok(false) };
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !is_window_folder_name(name) {
        return Ok(false);
    }
    let is_there = match fs::metadata(&data) {
        // Whatever its device is called since its file system was mounted anew. A file system that was made anew may
        // give a new data folder the inode of the one before.
        Ok(found) => {
            name.ends_with(&format!("-{:x}", found.ino())) && !is_of_another_log(&data, name)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    Ok(!is_there && is_on_disk(folder)? && !keeps_copied(folder)?)
}

/// True when everything that was appended to the window had reached the disk.
fn is_on_disk(folder: &Path) -> io::Result<bool> {
    let path = folder.join(CONTROL_FILE);
    if !path.exists() {
        // The engine never got so far as to take a command.
        return Ok(true);
    }
    let file = regular_file::open(&path)?;
    if file.metadata()?.len() != CONTROL_BYTES as u64 {
        return Ok(false);
    }
    let mut head = [0; size_of::<ControlHeader>()];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut head, 0)?;
    let header: ControlHeader = bytemuck::pod_read_unaligned(&head);
    if header.magic != MAGIC || header.version != VERSION {
        return Ok(false);
    }
    let page = ReadOnlyRegion::map_file(&file, CONTROL_BYTES).map_err(io::Error::other)?;
    let word = |offset| -> io::Result<u64> {
        Ok(page.u64_at(offset).map_err(io::Error::other)?.view().load_acquire())
    };
    Ok(word(APPENDED_OFFSET)? == word(DURABLE_OFFSET)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use touchline_protocol::log::control::WINDOW_FILE;

    struct Place {
        _root: tempfile::TempDir,
        user: PathBuf,
        data: PathBuf,
        folder: PathBuf,
    }

    /// A window of a data folder, with these positions in its control page.
    fn place(appended: u64, durable: u64) -> Place {
        let root = tempfile::tempdir().unwrap();
        let (user, data) = (root.path().join("user"), root.path().join("data"));
        fs::create_dir(&data).unwrap();
        let found = fs::metadata(&data).unwrap();
        let folder = user.join(format!("{:032x}-{:x}-{:x}", 255, found.dev(), found.ino()));
        fs::create_dir_all(&folder).unwrap();
        note_origin(&folder, &data).unwrap();
        fs::write(folder.join(WINDOW_FILE), [0; 64]).unwrap();
        let control = File::create(folder.join(CONTROL_FILE)).unwrap();
        control.set_len(CONTROL_BYTES as u64).unwrap();
        control.write_all_at(&MAGIC, 0).unwrap();
        control.write_all_at(&VERSION.to_le_bytes(), 8).unwrap();
        control.write_all_at(&appended.to_le_bytes(), APPENDED_OFFSET as u64).unwrap();
        control.write_all_at(&durable.to_le_bytes(), DURABLE_OFFSET as u64).unwrap();
        Place { _root: root, user, data, folder }
    }

    #[test]
    fn a_window_without_its_data_folder_goes() {
        let place = place(4160, 4160);
        remove_stale(&place.user, Path::new("elsewhere"));
        assert!(place.folder.exists(), "its data folder is there");
        fs::remove_dir(&place.data).unwrap();
        let lock = FolderLock::take(File::open(&place.folder).unwrap()).unwrap();
        remove_stale(&place.user, Path::new("elsewhere"));
        assert!(place.folder.exists(), "it is in use");
        drop(lock);
        remove_stale(&place.user, &place.folder);
        assert!(place.folder.exists(), "it is the caller's own");
        remove_stale(&place.user, Path::new("elsewhere"));
        assert!(!place.folder.exists());
    }

    #[test]
    fn what_was_moved_away_stays_under_whatever_name() {
        let place = place(4160, 4160);
        fs::remove_dir(&place.data).unwrap();
        let own = place.folder.file_name().unwrap().to_str().unwrap().to_owned();
        let names =
            [format!("{own}.bak"), format!("{own}-old"), format!("{own}-1"), "aside".to_owned()];
        let mut folder = place.folder;
        for name in names {
            let away = place.user.join(name);
            fs::rename(&folder, &away).unwrap();
            remove_stale(&place.user, Path::new("elsewhere"));
            assert!(away.join(WINDOW_FILE).exists(), "{}", away.display());
            folder = away;
        }
        let back = place.user.join(own);
        fs::rename(&folder, &back).unwrap();
        remove_stale(&place.user, Path::new("elsewhere"));
        assert!(!back.exists());
    }

    #[test]
    fn a_path_that_leads_to_another_folder_is_none() {
        let place = place(4160, 4160);
        // The old one is kept beside, so that its inode cannot be given to the new one.
        fs::rename(&place.data, place.user.join("moved")).unwrap();
        fs::create_dir(&place.data).unwrap();
        remove_stale(&place.user, Path::new("elsewhere"));
        assert!(!place.folder.exists());
    }

    #[test]
    fn a_path_that_leads_to_a_folder_of_another_log_is_none_though_it_has_the_inode() {
        for (told, goes) in [("", false), ("0", false), ("f", true)] {
            let place = place(4160, 4160);
            let id = if told == "0" { format!("{:032x}", 255) } else { told.repeat(32) };
            fs::write(place.data.join("log-id"), id).unwrap();
            remove_stale(&place.user, Path::new("elsewhere"));
            assert_eq!(place.folder.exists(), !goes, "{told:?}");
        }
        let lacking = place(8192, 4160);
        fs::write(lacking.data.join("log-id"), "f".repeat(32)).unwrap();
        remove_stale(&lacking.user, Path::new("elsewhere"));
        assert!(lacking.folder.exists(), "the disk lacks some of it");
    }

    #[test]
    fn what_the_disk_lacks_stays_and_so_does_what_cannot_be_judged() {
        let lacking = place(8192, 4160);
        fs::remove_dir(&lacking.data).unwrap();
        remove_stale(&lacking.user, Path::new("elsewhere"));
        assert!(lacking.folder.exists());
        let unknown = place(4160, 4160);
        fs::remove_dir(&unknown.data).unwrap();
        fs::remove_file(unknown.folder.join(ORIGIN_FILE)).unwrap();
        remove_stale(&unknown.user, Path::new("elsewhere"));
        assert!(unknown.folder.exists());
        let kept = place(4160, 4160);
        fs::remove_dir(&kept.data).unwrap();
        let copied = kept.folder.join("copied-3-window");
        fs::rename(kept.folder.join(WINDOW_FILE), &copied).unwrap();
        remove_stale(&kept.user, Path::new("elsewhere"));
        assert!(copied.exists());
    }
}
