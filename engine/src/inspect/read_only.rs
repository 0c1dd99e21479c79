//! The disk as a tool sees it: files are read, nothing else.

use std::{
    fs::{self, File},
    io::{self, IoSlice},
    os::unix::fs::FileExt,
    path::Path,
};

use touchline_protocol::regular_file;

use crate::log::storage::{BlockFile, Storage};

/// The machine's file systems, for reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadOnlyFiles;

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Storage for ReadOnlyFiles {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn create(&self, _path: &Path, _bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        refused()
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn BlockFile>> {
        Ok(Box::new(ReadOnlyFile(regular_file::open(path)?)))
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        refused()
    }
}

struct ReadOnlyFile(File);

impl BlockFile for ReadOnlyFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }

    fn write_parts(&self, _offset: u64, _parts: &[IoSlice<'_>]) -> io::Result<()> {
        refused()
    }

    fn write_unsynced(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        refused()
    }

    fn is_reserved(&self) -> bool {
        false
    }

    fn sync(&self) -> io::Result<()> {
        refused()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn what_is_no_file_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&pipe, folder.path()] {
            let refused = ReadOnlyFiles.open(path).err().unwrap();
            assert_eq!(refused.to_string(), "not a regular file");
        }
    }
}
