//! The machine's own file systems with a gate in front of each write: a disk that is counted, held up or
//! broken. Called by tests of the log and by its benchmark.

use std::{
    io::{self, IoSlice},
    path::Path,
    sync::Arc,
};

use super::{BlockFile, FileStorage, Storage};

/// A write that comes to the gate, with its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// By [`BlockFile::write_blocks`] or [`BlockFile::write_parts`].
    Blocks(usize),
    /// By [`BlockFile::write_unsynced`].
    Unsynced(usize),
}

/// True if a write is to be done; false if it is only to be reported as done. An error is the write's.
type Gate = dyn Fn(Write) -> io::Result<bool> + Send + Sync;

/// [`FileStorage`] behind a gate. Clones share it.
#[derive(Clone)]
pub struct GatedStorage(Arc<Gate>);

impl GatedStorage {
    /// Every write of every file asks `gate` first, which may take its time: true has it done, false has
    /// it reported as done, and an error is what it fails with.
    pub fn new(gate: impl Fn(Write) -> io::Result<bool> + Send + Sync + 'static) -> Self {
        Self(Arc::new(gate))
    }

    fn file(&self, file: Box<dyn BlockFile>) -> Box<dyn BlockFile> {
        Box::new(GatedFile { file, gate: Arc::clone(&self.0) })
    }
}

impl Storage for GatedStorage {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        FileStorage.list(folder)
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        FileStorage.create(path, bytes).map(|file| self.file(file))
    }

    fn create_sparse(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        FileStorage.create_sparse(path, bytes).map(|file| self.file(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn BlockFile>> {
        FileStorage.open(path).map(|file| self.file(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        FileStorage.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        FileStorage.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        FileStorage.sync_folder(folder)
    }
}

struct GatedFile {
    file: Box<dyn BlockFile>,
    gate: Arc<Gate>,
}

impl BlockFile for GatedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, into)
    }

    fn write_parts(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let passes = (self.gate)(Write::Blocks(bytes))?;
        if passes { self.file.write_parts(offset, parts) } else { Ok(()) }
    }

    fn write_unsynced(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let passes = (self.gate)(Write::Unsynced(bytes.len()))?;
        if passes { self.file.write_unsynced(offset, bytes) } else { Ok(()) }
    }

    fn is_reserved(&self) -> bool {
        self.file.is_reserved()
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}
