//! The disk as a tool sees it: files are read, nothing else.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::Path,
};

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
        Ok(Box::new(ReadOnlyFile(File::open(path)?)))
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

    fn write_blocks(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        refused()
    }

    fn sync(&self) -> io::Result<()> {
        refused()
    }
}
