//! Making the live window: where it lies, how large it is, and its two files. Called when the log is
//! opened, after everything an older window held is on disk.

mod stale;

use std::{
    ffi::OsStr,
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
    process::getuid,
};
use touchline_protocol::{
    log::{
        WINDOW_BYTES_AUTO, WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES,
        control::{CONTROL_BYTES, CONTROL_FILE, ControlHeader, WINDOW_FILE},
        place::{WindowFolders, user_folder},
    },
    shm::{Region, ShmError},
};

pub(crate) use self::stale::origin;
use super::{WindowPlace, control::remove_window_files, lock::FolderLock, window::Window};
use crate::host::free_bytes;

/// The control page's name while it is being made.
pub(crate) const UNFINISHED_CONTROL: &str = "control.new";

/// What the names begin with of the files of a window that was copied to where it lies. Nobody removes them but the
/// operator.
pub(crate) const COPIED: &str = "copied-";

/// The file beside a window in shared memory that holds the path of its data folder.
pub(crate) const ORIGIN_FILE: &str = "origin";

/// Where the window was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowReport {
    /// Its folder.
    pub folder: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// True if it lies in shared memory.
    pub in_shared_memory: bool,
    /// Why it does not lie in shared memory although that was to be tried.
    pub why_not: Option<String>,
    /// Why the system has not joined all its pages to huge ones although that was wanted.
    pub why_small: Option<String>,
}

/// A line for the operator.
impl fmt::Display for WindowReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, bytes, in_shared_memory, why_not, why_small } = self;
        write!(formatter, "log: live window of {} MiB in {}", bytes >> 20, folder.display())?;
        if *in_shared_memory {
            return match why_small {
                Some(why) => write!(formatter, ", not wholly on large pages ({why})"),
                None => Ok(()),
            };
        }
        let why = why_not.as_deref().unwrap_or("as configured");
        write!(
            formatter,
            " ({why}): it lies in the page cache, whose write-back can stall the duty thread for milliseconds"
        )
    }
}

/// A new window in its folder, which is locked.
pub(crate) struct NewWindow {
    pub(crate) window: Window,
    pub(crate) lock: FolderLock,
    pub(crate) report: WindowReport,
}

/// Makes the window's folder and file where `place` says, of `bytes` bytes or as large as is fitting.
pub(crate) fn create(
    folders: &WindowFolders,
    place: WindowPlace,
    bytes: Option<u64>,
) -> Result<NewWindow, (PathBuf, io::Error)> {
    let mut why_not = None;
    if place != WindowPlace::Data {
        match in_shared_memory(folders, bytes) {
            Ok(new) => return Ok(new),
            Err(error) if place == WindowPlace::SharedMemory => {
                return Err((folders.shared_memory.clone(), error));
            }
            Err(error) => why_not = Some(error.to_string()),
        }
    }
    let failed = |error| (folders.data.clone(), error);
    make_folder(&folders.data).map_err(failed)?;
    let bytes = fitting(&folders.data, bytes).map_err(failed)?;
    let mut new = in_folder(&folders.data, bytes).map_err(failed)?;
    new.report.why_not = why_not;
    Ok(new)
}

fn in_shared_memory(folders: &WindowFolders, bytes: Option<u64>) -> io::Result<NewWindow> {
    make_folder(&folders.user)?;
    check_own(&folders.user)?;
    stale::remove_stale(&folders.user, &folders.shared_memory);
    let bytes = fitting(&folders.user, bytes)?;
    make_folder(&folders.shared_memory)?;
    let mut new = in_folder(&folders.shared_memory, bytes)?;
    if let Some(data) = folders.data.parent() {
        stale::note_origin(&folders.shared_memory, data).inspect_err(|_| {
            // Else it would take up its whole room until another start.
            let _stays = remove_window_files(&folders.shared_memory);
        })?;
    }
    new.report.in_shared_memory = true;
    Ok(new)
}

/// Anybody may make folders where this one lies, so it could be somebody else's.
fn check_own(user: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(user)?;
    if !metadata.is_dir() || metadata.uid() != getuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other(format!(
            "{} is not a folder that only this user may enter",
            user.display()
        )));
    }
    Ok(())
}

/// Whether a window's folder can be made in shared memory; leaves nothing behind.
pub(crate) fn try_shared_memory(shared_memory: &Path) -> io::Result<()> {
    let user = user_folder(shared_memory);
    let place = match check_own(&user) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => shared_memory,
        own => own.map(|()| &*user)?,
    };
    let trial = place.join(format!("doctor-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&trial)?;
    fs::remove_dir(&trial)
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The size asked for, or a quarter of what is free up to [`WINDOW_BYTES_AUTO`].
fn fitting(folder: &Path, asked: Option<u64>) -> io::Result<u64> {
    if let Some(bytes) = asked {
        return Ok(bytes);
    }
    let free = free_bytes(folder)?;
    let bytes = (free / 4).min(WINDOW_BYTES_AUTO);
    let bytes = bytes - bytes % WINDOW_SEGMENT_BYTES;
    if bytes < WINDOW_BYTES_MIN {
        return Err(io::Error::other(format!(
            "only {free} bytes are free in {}, four times {WINDOW_BYTES_MIN} are needed",
            folder.display()
        )));
    }
    Ok(bytes)
}

fn in_folder(folder: &Path, bytes: u64) -> io::Result<NewWindow> {
    let lock = FolderLock::take_window(folder)?;
    let path = folder.join(WINDOW_FILE);
    let file = new_file(&path)?;
    let window = reserve(&file, bytes).and_then(|()| Window::map(&file, bytes));
    let window = window.inspect_err(|_| {
        // Half a window would only take room.
        let _gone = fs::remove_file(&path);
    })?;
    let report = WindowReport {
        folder: folder.to_owned(),
        bytes,
        in_shared_memory: false,
        why_not: None,
        why_small: window.why_small.as_ref().map(ToString::to_string),
    };
    Ok(NewWindow { window, lock, report })
}

/// A file that was not there: whoever has mapped an older one keeps that.
fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Takes the space of a new file, so that no store into its mapping finds the disk full where the file system changes
/// it in place. One that writes what changes to another place (btrfs, ZFS; any one once a snapshot or a copy shares the
/// file's blocks) may need new space for a store: where there is none the process dies by SIGBUS. Nothing that was
/// appended is lost then, but the next start needs room.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Not every file system can reserve: written zeros take the space as well.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            io::copy(&mut io::repeat(0).take(bytes), &mut &*file)?;
            file.sync_all()
        }
        reserved => Ok(reserved?),
    }
}

/// Makes a control page without its name: nobody finds it before [`publish`].
pub(crate) fn create_control(folder: &Path, header: &ControlHeader) -> io::Result<Region> {
    let file = new_file(&folder.join(UNFINISHED_CONTROL))?;
    reserve(&file, CONTROL_BYTES as u64)?;
    let header = header.in_file(&file)?;
    std::os::unix::fs::FileExt::write_all_at(&file, bytemuck::bytes_of(&header), 0)?;
    Region::map_file(&file, CONTROL_BYTES).map_err(|error| match error {
        ShmError::System { source, .. } => source,
        other => io::Error::other(other),
    })
}

/// Whether there is something of a window in `folder` that was copied there and is kept.
fn keeps_copied(folder: &Path) -> io::Result<bool> {
    let is_copied = |name: &OsStr| name.as_encoded_bytes().starts_with(COPIED.as_bytes());
    for entry in fs::read_dir(folder)? {
        if is_copied(&entry?.file_name()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives the control page its name, in place of an older one.
pub(crate) fn publish(folder: &Path) -> io::Result<()> {
    fs::rename(folder.join(UNFINISHED_CONTROL), folder.join(CONTROL_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::statvfs;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn shared_memory_is_tried_as_a_window_would_use_it() {
        let memory = tempfile::tempdir().unwrap();
        let (user, tried) = (user_folder(memory.path()), || try_shared_memory(memory.path()));
        tried().unwrap();
        make_folder(&user).unwrap();
        tried().unwrap();
        assert_eq!(fs::read_dir(&user).unwrap().count(), 0);
        fs::remove_dir(&user).unwrap();
        fs::create_dir(&user).unwrap();
        // Whatever the umask.
        fs::set_permissions(&user, Permissions::from_mode(0o755)).unwrap();
        assert!(tried().unwrap_err().to_string().contains("only this user"));
        fs::remove_dir(&user).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), &user).unwrap();
        assert!(tried().is_err(), "whatever it leads to");
        assert!(try_shared_memory(&memory.path().join("nowhere")).is_err());
    }

    #[test]
    fn a_file_system_without_a_limit_has_room() {
        // One that counts no blocks, as shared memory without a size.
        let folder = Path::new("/proc/self");
        assert_eq!(statvfs(folder).unwrap().f_blocks, 0);
        assert_eq!(fitting(folder, None).unwrap(), WINDOW_BYTES_AUTO);
    }

    #[test]
    fn the_operator_is_told_of_a_window_that_is_slower_than_it_could_be() {
        let report = |in_shared_memory, why_small: Option<&str>| {
            let folder = PathBuf::from("/window");
            let why_small = why_small.map(str::to_owned);
            WindowReport { folder, bytes: 4 << 20, in_shared_memory, why_not: None, why_small }
                .to_string()
        };
        let told = "log: live window of 4 MiB in /window";
        assert_eq!(report(true, None), told);
        assert_eq!(report(true, Some("none")), format!("{told}, not wholly on large pages (none)"));
        assert!(report(false, Some("none")).starts_with(&format!("{told} (as configured): ")));
    }
}
