//! The machine's disk until it is broken: then no write succeeds any more.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use touchline_engine::log::storage::{BlockFile, FileStorage, Storage};

/// EIO.
const IO_ERROR: i32 = 5;

#[derive(Default)]
pub(crate) struct Breakable {
    broken: Arc<AtomicBool>,
}

impl Breakable {
    /// From now on every write fails.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    fn file(&self, file: Box<dyn BlockFile>) -> Box<dyn BlockFile> {
        Box::new(BreakableFile { file, broken: Arc::clone(&self.broken) })
    }
}

impl Storage for Breakable {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        FileStorage.list(folder)
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        FileStorage.create(path, bytes).map(|file| self.file(file))
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

struct BreakableFile {
    file: Box<dyn BlockFile>,
    broken: Arc<AtomicBool>,
}

impl BlockFile for BreakableFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, into)
    }

    fn write_blocks(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(IO_ERROR));
        }
        self.file.write_blocks(offset, bytes)
    }

    fn write_unsynced(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(IO_ERROR));
        }
        self.file.write_unsynced(offset, bytes)
    }

    fn is_reserved(&self) -> bool {
        self.file.is_reserved()
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}
