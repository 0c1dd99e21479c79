//! The live window of an engine that ran as another user, and died: it lies in that user's folder in shared memory,
//! where a start does not look for it. Called by recovery where it knows of no window that would bring to disk what was
//! acknowledged, and by `touchline doctor`; who has made a window notes its place here.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::Path,
};

use rustix::process::getuid;
use touchline_protocol::{
    client::SOCKET_NAME,
    log::{control::WINDOW_FILE, place::WindowFolders},
    regular_file,
};

use super::RecoveryError;

/// The file in the data folder that names the folder of the last engine's live window: whoever gives the files of
/// another user's engine to the one who is to start it gives him its socket, too.
const PLACE_FILE: &str = "window-place";

/// Far longer than any path.
const PLACE_BYTES_MAX: u64 = 1 << 14;

/// Notes that the live window lies in `folder`. Where that cannot be, the socket alone tells whose it is.
pub(crate) fn note_place(data: &Path, folder: &Path) {
    let path = data.join(PLACE_FILE);
    // Whatever is there, be it another user's.
    let _gone = fs::remove_file(&path);
    let line = [folder.as_os_str().as_bytes(), b"\n"].concat();
    if File::create_new(&path).and_then(|mut file| file.write_all(&line)).is_err() {
        let _gone = fs::remove_file(&path);
    }
}

/// The user in whose folder that is, of this data folder and no other: it may have come with a copy.
fn noted_user(path: &Path, folders: &WindowFolders) -> Option<u32> {
    let mut line = Vec::new();
    regular_file::open(path).ok()?.take(PLACE_BYTES_MAX).read_to_end(&mut line).ok()?;
    let folder = Path::new(OsStr::from_bytes(line.strip_suffix(b"\n")?));
    let user = folder.parent()?.file_name()?.to_str()?.strip_prefix("touchline-")?.parse().ok()?;
    (folder == folders.place_of(user)).then_some(user)
}

/// Checks that the last engine, if it ran as another user, has left no window.
///
/// # Errors
/// If it has, or that cannot be looked at.
pub(super) fn check_none(data: &Path, folders: &WindowFolders) -> Result<(), RecoveryError> {
    check_none_but_of(data, folders, getuid().as_raw())
}

/// As [`check_none`], for a start by the user of that number.
fn check_none_but_of(data: &Path, folders: &WindowFolders, own: u32) -> Result<(), RecoveryError> {
    let (place, socket) = (data.join(PLACE_FILE), data.join(SOCKET_NAME));
    let noted = noted_user(&place, folders);
    // Each engine makes its socket anew, so it belongs to the user of the last one, unless it was given away.
    let owner = fs::symlink_metadata(&socket).ok().map(|found| found.uid());
    let told = [(noted, place), (owner, socket)];
    for user in [noted, owner].into_iter().flatten().filter(|user| *user != own) {
        // After a boot, and in another container, that user has no folder there, and so has left nothing.
        let Ok(Some(folder)) = folders.of_user(user) else { continue };
        match fs::symlink_metadata(folder.join(WINDOW_FILE)) {
            Ok(_) => return Err(RecoveryError::WindowOfOther { folder, user }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let by = told.into_iter().filter(|(told, _)| *told == Some(user));
                let told_by = by.map(|(_, path)| path).collect();
                return Err(RecoveryError::WindowUnseen { folder, user, told_by });
            }
            Err(_) => {}
        }
    }
    Ok(())
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

    /// Who is to start what another user's engine has left is given its files, the socket among them.
    #[test]
    fn a_window_is_told_of_also_where_the_socket_was_given_away() {
        let (root, data, folders) = place();
        let own = getuid().as_raw();
        fs::remove_file(data.join(SOCKET_NAME)).unwrap();
        fs::create_dir_all(&folders.shared_memory).unwrap();
        fs::write(folders.shared_memory.join(WINDOW_FILE), []).unwrap();
        let checked = || check_none_but_of(&data, &folders, own + 1);
        checked().unwrap();
        note_place(&data, &folders.shared_memory);
        checked().unwrap_err();
        check_none_but_of(&data, &folders, own).unwrap();
        // That of a copy, of a window in the data folder, and whatever else may stand there.
        let elsewhere = user_folder(&folders.root).join("0-0-0");
        for other in [&elsewhere, &folders.data, root.path(), Path::new("")] {
            note_place(&data, other);
            checked().unwrap();
        }
        fs::write(data.join(PLACE_FILE), vec![b'/'; 1 << 20]).unwrap();
        checked().unwrap();
    }

    #[test]
    fn who_cannot_look_is_told_all_that_tells_of_that_user() {
        let paths = ["a", "b"].map(PathBuf::from).to_vec();
        let error =
            RecoveryError::WindowUnseen { folder: PathBuf::from("f"), user: 7, told_by: paths };
        assert!(error.to_string().contains("remove a, b to go on"), "{error}");
    }
}
