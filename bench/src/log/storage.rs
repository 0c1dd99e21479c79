//! The disk under a measured log, with a switch: written to as ever, held at its next write, or not
//! written to at all. Called by [`super::subject`], turned by the measurements that compare.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use touchline_engine::log::storage::{BlockFile, FileStorage, Storage};

/// What becomes of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writes {
    /// It is done.
    Done,
    /// It waits, and with it the keeper, until the switch is turned.
    Held,
    /// It is reported as done and is not: what is durable is then a word without a disk behind it.
    Discarded,
}

#[derive(Debug)]
struct Switch {
    writes: Mutex<Writes>,
    turned: Condvar,
}

impl Switch {
    fn turn(&self, writes: Writes) {
        *self.writes.lock().unwrap_or_else(PoisonError::into_inner) = writes;
        self.turned.notify_all();
    }

    /// Whether a write is to be done, once it is not held any more.
    fn lets_through(&self) -> bool {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let held = |writes: &mut Writes| *writes == Writes::Held;
        let writes = self.turned.wait_while(writes, held).unwrap_or_else(PoisonError::into_inner);
        *writes == Writes::Done
    }
}

/// The machine's file systems behind a switch. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct SwitchedStorage {
    switch: Arc<Switch>,
}

/// The switch stands as it was turned until this is dropped.
pub(super) struct Turned(Arc<Switch>);

impl Drop for Turned {
    fn drop(&mut self) {
        self.0.turn(Writes::Done);
    }
}

impl SwitchedStorage {
    pub(super) fn new() -> Self {
        let switch = Switch { writes: Mutex::new(Writes::Done), turned: Condvar::new() };
        Self { switch: Arc::new(switch) }
    }

    /// Turns the switch until the answer is dropped.
    pub(super) fn turn(&self, writes: Writes) -> Turned {
        self.switch.turn(writes);
        Turned(Arc::clone(&self.switch))
    }

    fn wrap(&self, file: Box<dyn BlockFile>) -> Box<dyn BlockFile> {
        Box::new(SwitchedFile { file, switch: Arc::clone(&self.switch) })
    }
}

impl Storage for SwitchedStorage {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        FileStorage.list(folder)
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        Ok(self.wrap(FileStorage.create(path, bytes)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn BlockFile>> {
        Ok(self.wrap(FileStorage.open(path)?))
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

struct SwitchedFile {
    file: Box<dyn BlockFile>,
    switch: Arc<Switch>,
}

impl BlockFile for SwitchedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, into)
    }

    fn write_blocks(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.switch.lets_through() { self.file.write_blocks(offset, bytes) } else { Ok(()) }
    }

    fn write_unsynced(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.switch.lets_through() { self.file.write_unsynced(offset, bytes) } else { Ok(()) }
    }

    fn is_reserved(&self) -> bool {
        self.file.is_reserved()
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}
