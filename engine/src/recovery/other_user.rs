//! The live window of an engine that ran as another user, and died: it lies in that user's folder in shared memory,
//! where a start does not look for it. Called by recovery where it knows of no window that would bring to disk what was
//! acknowledged, and by `touchline doctor`.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use rustix::process::getuid;
use touchline_protocol::{
    client::SOCKET_NAME,
    log::{control::WINDOW_FILE, place::WindowFolders},
};

use super::RecoveryError;

/// Checks that the last engine, if it ran as another user, has left no window.
///
/// # Errors
/// If it has, or that cannot be looked at.
pub(super) fn check_none(data: &Path, folders: &WindowFolders) -> Result<(), RecoveryError> {
    check_none_but_of(data, folders, getuid().as_raw())
}

/// As [`check_none`], for a start by the user of that number.
fn check_none_but_of(data: &Path, folders: &WindowFolders, own: u32) -> Result<(), RecoveryError> {
    // Each engine makes its socket anew, so it belongs to the user of the last one.
    let socket = data.join(SOCKET_NAME);
    let Ok(user) = fs::symlink_metadata(&socket).map(|found| found.uid()) else { return Ok(()) };
    // After a boot, and in another container, that user has no folder there, and so has left nothing.
    let Ok(Some(folder)) = folders.of_user(user) else { return Ok(()) };
    if user == own {
        return Ok(());
    }
    match fs::symlink_metadata(folder.join(WINDOW_FILE)) {
        Ok(_) => Err(RecoveryError::WindowOfOther { folder, user }),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(RecoveryError::WindowUnseen { folder, user, socket })
        }
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use touchline_protocol::log::place::user_folder;

    /// A data folder with the socket of an engine of this user, and where its window lies in shared memory.
    fn place() -> (tempfile::TempDir, PathBuf, WindowFolders) {
        let root = tempfile::tempdir().unwrap();
        let (data, memory) = (root.path().join("data"), root.path().join("shm"));
        fs::create_dir(&data).unwrap();
        fs::create_dir(&memory).unwrap();
        fs::write(data.join(SOCKET_NAME), []).unwrap();
        let folders = WindowFolders::of(&data, b"0123456789abcdef", &memory).unwrap();
        (root, data, folders)
    }

    #[test]
    fn a_window_that_another_users_engine_has_left_is_told_and_not_passed_over() {
        let (_root, data, folders) = place();
        let own = getuid().as_raw();
        let checked = |own| check_none_but_of(&data, &folders, own);
        checked(own + 1).unwrap();
        fs::create_dir_all(&folders.shared_memory).unwrap();
        checked(own + 1).unwrap();
        fs::write(folders.shared_memory.join(WINDOW_FILE), []).unwrap();
        checked(own).unwrap();
        let told = checked(own + 1).unwrap_err().to_string();
        let folder = folders.shared_memory.display().to_string();
        assert!(told.contains(&folder) && told.contains(&format!("user {own}")), "{told}");
        fs::remove_file(data.join(SOCKET_NAME)).unwrap();
        checked(own + 1).unwrap();
    }

    #[test]
    fn a_link_in_the_place_of_that_users_folder_is_not_followed() {
        let (root, data, folders) = place();
        let elsewhere = root.path().join("elsewhere");
        let key = folders.shared_memory.file_name().unwrap();
        fs::create_dir_all(elsewhere.join(key)).unwrap();
        fs::write(elsewhere.join(key).join(WINDOW_FILE), []).unwrap();
        std::os::unix::fs::symlink(&elsewhere, user_folder(&folders.root)).unwrap();
        check_none_but_of(&data, &folders, getuid().as_raw() + 1).unwrap();
    }
}
