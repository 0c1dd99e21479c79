//! Opening what has the name of a file and may be anything: whoever opens a pipe, or reads one, waits for its other
//! end. Used by whoever opens a file of a data folder.

use std::{
    fs::{self, File, FileType, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

/// Opens an existing file for reading.
///
/// # Errors
/// As the system says; of kind [`io::ErrorKind::InvalidInput`] for what is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_as(File::options().read(true), path)
}

/// As [`open`], in the way that `how` says, which sets no flags of the system's.
///
/// # Errors
/// As there. Of a pipe that nobody reads the system may say something of its own.
pub fn open_as(how: &OpenOptions, path: &Path) -> io::Result<File> {
    open_kind(how, path, |kind| kind.is_file())
}

/// As [`open_as`], but a device may be in the file's place, for what is to be locked, or written and not read: nobody
/// waits for its other end either.
///
/// # Errors
/// As there.
pub fn open_or_device(how: &OpenOptions, path: &Path) -> io::Result<File> {
    open_kind(how, path, |kind| kind.is_file() || kind.is_char_device())
}

fn open_kind(
    how: &OpenOptions,
    path: &Path,
    is_wanted: impl FnOnce(FileType) -> bool,
) -> io::Result<File> {
    // Without effect on a regular file.
    let file = how.clone().custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    if is_wanted(file.metadata()?.file_type()) {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// Makes a file anew, with the rights of `mode`, in place of whatever has its name. That may be a link, which would
/// lead to somebody's file, or a file that another user has open, or may read: neither is written to.
///
/// # Errors
/// As the system says, also if the name is a folder's, or is taken again meanwhile.
pub fn replace(path: &Path, mode: u32) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().write(true).create_new(true).mode(mode).open(path)
}

/// Puts a small file in place of whatever has its name: whoever opens that sees the old one or all of the new one, also
/// behind a power cut, and once this returns the new one. It is drafted beside itself, under its name and `.new`: two
/// that put the same one at the same time spoil each other's.
///
/// # Errors
/// As the system says. The old one is there then, and the draft is not; but for an error of the folder, behind which
/// either may be there after a power cut.
pub fn put_whole(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let mut file = replace(draft.as_ref(), mode)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&draft, path)).inspect_err(|_| {
        // Half of it would keep a full disk full.
        let _gone = fs::remove_file(&draft);
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Longest text that [`read_to_string`] reads, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// The text of a small file.
///
/// # Errors
/// As [`read_bounded`] says, for [`TEXT_BYTES_MAX`]; also if it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    text_of(read_bounded(path, TEXT_BYTES_MAX)?)
}

/// What stands in a file of `bytes_max` bytes at most: whoever has grown it costs no reader more memory than that.
///
/// # Errors
/// As [`open`] says; of kind [`io::ErrorKind::FileTooLarge`] for a longer one.
pub fn read_bounded(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    read_at_most(open(path)?, bytes_max)
}

/// All that a reader, such as a pipe, has up to its end, as [`read_bounded`] reads it.
///
/// # Errors
/// As there.
pub fn read_at_most(from: impl io::Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let told = format!("longer than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, told));
    }
    Ok(bytes)
}

/// The text that bytes are.
///
/// # Errors
/// Of kind [`io::ErrorKind::InvalidData`] if they are not UTF-8.
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType::Fifo, Mode, mknodat};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn what_is_no_file_is_refused_and_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/null")] {
            for refused in [open(path).map(drop), read_to_string(path).map(drop)] {
                let refused = refused.unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
                assert_eq!(refused.to_string(), "not a regular file");
            }
        }
        // One end alone, and both.
        for how in [File::options().write(true), File::options().read(true).write(true)] {
            assert!(open_as(how, &pipe).is_err());
            assert!(open_or_device(how, &pipe).is_err());
            assert!(open_as(how, Path::new("/dev/null")).is_err());
            open_or_device(how, Path::new("/dev/null")).unwrap();
        }
    }

    #[test]
    fn no_more_of_a_file_is_read_than_it_may_have() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let put = |bytes: usize| File::create(&path).unwrap().set_len(bytes as u64).unwrap();
        put(TEXT_BYTES_MAX);
        assert_eq!(read_to_string(&path).unwrap().len(), TEXT_BYTES_MAX, "as long as may be");
        for (bytes, bytes_max) in [(TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX), (1 << 20, 7)] {
            put(bytes);
            let bounded = read_bounded(&path, bytes_max).map(drop);
            for refused in [bounded, read_to_string(&path).map(drop)] {
                assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
            }
        }
        assert_eq!(read_at_most(io::repeat(0), 7).unwrap_err().to_string(), "longer than 7 bytes");
    }

    #[test]
    fn what_is_replaced_is_written_to_by_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&other, "somebody's").unwrap();
        symlink(&other, &path).unwrap();
        replace(&path, 0o600).unwrap().write_all(b"ours").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let before = File::open(&path).unwrap();
        replace(&path, 0o600).unwrap().write_all(b"secret").unwrap();
        assert_eq!(io::read_to_string(before).unwrap(), "ours", "who had it open sees no more");
        assert_eq!(fs::read_to_string(&path).unwrap(), "secret");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(replace(folder.path(), 0o600).is_err(), "a folder stays");
    }

    #[test]
    fn a_file_is_put_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&other, "somebody's").unwrap();
        symlink(&other, folder.path().join("file.new")).unwrap();
        put_whole(&path, 0o600, b"first").unwrap();
        let before = File::open(&path).unwrap();
        put_whole(&path, 0o600, b"second").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
        assert_eq!(io::read_to_string(before).unwrap(), "first");
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(put_whole(&path, 0o600, b"third").is_err(), "a folder stays");
        assert!(!folder.path().join("file.new").exists(), "a draft is left");
    }

    #[test]
    fn a_file_is_opened_as_it_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let made = open_as(File::options().write(true).create(true), &path).unwrap();
        (&made).write_all(b"text").unwrap();
        assert_eq!(read_to_string(&path).unwrap(), "text");
        open_as(File::options().write(true).truncate(true), &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }
}
