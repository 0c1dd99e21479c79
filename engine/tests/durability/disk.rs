//! A disk in memory that knows, sector by sector, what would survive a power cut. Put under the log by
//! every test here.
//!
//! What programs see and what is durable are kept apart: the names of files until their folder is
//! synced, the length of a new file until it is synced, and sectors that were written without a sync, as
//! all are on a disk without direct writes until the write's own sync is done. An *accident* is planned
//! for one changing call: the call is done in part, every later one fails, and the test then lets the
//! process die ([`SimDisk::die`]) or cuts the power ([`SimDisk::cut_power`]).
//!
//! The fault model is the one that the log is written for: of a write in flight each 512-byte sector is
//! old or new, in any combination; changes of names reach the disk in the order in which they were made.
//! A new file holds, until it is written, what other files held there, or on every other disk zeros. All files lie in the folders of
//! segments and of snapshots, so that their names are enough, and a copy of a disk serves another data
//! folder.

use super::random::Random;
use crate::patience::HOLD_PATIENCE;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use touchline_engine::log::storage::{BlockFile, Storage};
use touchline_protocol::log::BLOCK_BYTES;

/// What is written as a whole or not at all.
pub(crate) const SECTOR: usize = 512;

/// EIO.
pub(crate) const IO_ERROR: i32 = 5;

/// Folders whose names count.
#[derive(Clone, Copy)]
enum Folder {
    Segments,
    Data,
    /// The one that the data folder lies in.
    Above,
}

impl Folder {
    /// All were synced.
    const ALL: [bool; 3] = [true; 3];

    fn of(path: &Path) -> Self {
        match path.file_name().and_then(|name| name.to_str()) {
            Some("log") => Self::Segments,
            Some("data") => Self::Data,
            _ => Self::Above,
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[derive(Clone, Default)]
struct File {
    /// As programs read it.
    bytes: Vec<u8>,
    /// Sectors that are otherwise on the disk, and how.
    behind: BTreeMap<usize, Vec<u8>>,
    /// The length survives.
    is_length_durable: bool,
}

#[derive(Clone)]
enum NameChange {
    Set(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Clone)]
struct State {
    files: BTreeMap<usize, File>,
    /// Number of the next file.
    next: usize,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Not durable yet, in their order.
    changes: Vec<NameChange>,
    /// Folders that were synced ever.
    synced_folders: [bool; 3],
    /// Writes go past the page cache.
    is_direct: bool,
    /// New files read as zeros.
    reserves: bool,
    random: Random,
    calls: u64,
    /// Changing calls before the one that fails.
    plan: Option<u64>,
    is_failing: bool,
    /// The next write to this file fails.
    failing_write: Option<String>,
    unreadable: Option<String>,
    /// The next read of this file fails.
    failing_read: Option<String>,
    /// Bytes of the largest write.
    largest_write: usize,
    /// Changing calls of a kind that fail, without anything being done.
    refused: Option<(Call, i32)>,
    /// How many were.
    refusals: u64,
}

/// Kinds of changing calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Create,
    Write,
    Sync,
    Name,
}

/// The disk. Clones share it; see [`SimDisk::copy`].
#[derive(Clone)]
pub(crate) struct SimDisk(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Writes wait.
    is_held: Mutex<bool>,
    released: Condvar,
}

impl Shared {
    fn new(state: State) -> Arc<Self> {
        let is_held = Mutex::new(false);
        Arc::new(Self { state: Mutex::new(state), is_held, released: Condvar::new() })
    }

    fn wait_while_held(&self) {
        let held = self.is_held.lock().unwrap();
        let waited = self.released.wait_timeout_while(held, HOLD_PATIENCE, |held| *held);
        let is_held = *waited.unwrap().0;
        assert!(!is_held, "writes are held up for ever");
    }
}

impl SimDisk {
    /// An empty disk; its choices come from `seed`.
    pub(crate) fn new(seed: u64, is_direct: bool) -> Self {
        let mut random = Random::new(seed);
        let reserves = random.once_in(2);
        Self(Shared::new(State {
            files: BTreeMap::new(),
            next: 0,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            synced_folders: [false; 3],
            is_direct,
            reserves,
            random,
            calls: 0,
            plan: None,
            is_failing: false,
            failing_write: None,
            unreadable: None,
            failing_read: None,
            largest_write: 0,
            refused: None,
            refusals: 0,
        }))
    }

    /// Holds up all writes from now on, or lets them go on.
    pub(crate) fn hold(&self, hold: bool) {
        *self.0.is_held.lock().unwrap_or_else(PoisonError::into_inner) = hold;
        self.0.released.notify_all();
    }

    /// Another disk that holds the same.
    pub(crate) fn copy(&self) -> Self {
        Self(Shared::new(self.state().clone()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After so many more changing calls one fails, half done, and so do all behind it.
    pub(crate) fn plan(&self, after: u64) {
        let mut state = self.state();
        state.calls = 0;
        state.plan = Some(after);
    }

    /// The next write to this file fails, half done; later ones succeed.
    pub(crate) fn fail_write(&self, path: &Path) {
        self.state().failing_write = Some(name_of(path));
    }

    /// Whether a planned failure has come.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().is_failing
    }

    /// Bytes of the largest write so far.
    pub(crate) fn largest_write(&self) -> usize {
        self.state().largest_write
    }

    /// From now on every changing call of this kind fails; `None`: none.
    pub(crate) fn refuse(&self, refused: Option<(Call, i32)>) {
        self.state().refused = refused;
    }

    /// How many calls were refused so far.
    pub(crate) fn refusals(&self) -> u64 {
        self.state().refusals
    }

    /// From now on reading this file fails; `None`: no file.
    pub(crate) fn make_unreadable(&self, path: Option<&Path>) {
        self.state().unreadable = path.map(name_of);
    }

    /// The next read of this file fails; later ones succeed.
    pub(crate) fn fail_read(&self, path: &Path) {
        self.state().failing_read = Some(name_of(path));
    }

    /// The process has died: another one finds what that one saw, and the disk works again.
    pub(crate) fn die(&self) {
        let mut state = self.state();
        state.plan = None;
        state.is_failing = false;
        state.reclaim();
    }

    /// The power was cut and is back: only what is durable is left, and of the rest any part.
    /// The folder's own name and its parent's count too: the data folder was made by the engine.
    pub(crate) fn cut_power(&self) {
        let mut state = self.state();
        let state = &mut *state;
        let kept = state.random.below(state.changes.len() as u64 + 1) as usize;
        let changes = std::mem::take(&mut state.changes);
        let mut names = std::mem::take(&mut state.durable_names);
        for change in &changes[..kept] {
            change.make(&mut names);
        }
        if state.synced_folders != Folder::ALL && state.random.once_in(2) {
            names.clear();
        }
        for file in state.files.values_mut() {
            for (sector, old) in std::mem::take(&mut file.behind) {
                // The page cache may have been written back by itself.
                if !state.random.once_in(3) {
                    file.bytes[sector * SECTOR..][..SECTOR].copy_from_slice(&old);
                }
            }
            if !file.is_length_durable && state.random.once_in(2) {
                file.bytes.clear();
            }
        }
        state.durable_names = names.clone();
        state.names = names;
        state.plan = None;
        state.is_failing = false;
        state.reclaim();
    }

    /// The bytes of a file as programs read them.
    pub(crate) fn read(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.files[&state.names[&name_of(path)]].bytes.clone()
    }

    /// Changes a file behind everybody's back.
    pub(crate) fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let file = state.names[&name_of(path)];
        edit(&mut state.files.get_mut(&file).unwrap().bytes);
    }

    /// Makes, or makes anew, a file with these bytes, durable.
    pub(crate) fn put(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state();
        let file = state.add(File { bytes, behind: BTreeMap::new(), is_length_durable: true });
        state.names.insert(name_of(path), file);
        state.durable_names.insert(name_of(path), file);
    }

    /// Takes a file away, durably.
    pub(crate) fn take(&self, path: &Path) {
        let mut state = self.state();
        state.names.remove(&name_of(path)).unwrap();
        state.durable_names.remove(&name_of(path));
        // Changes that are not durable yet count no more: the tests put whole images in their place.
        state.changes.clear();
        state.reclaim();
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.state().names.contains_key(&name_of(path))
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }
}

impl NameChange {
    fn make(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set(path, file) => {
                names.insert(path.clone(), *file);
            }
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

/// How a changing call goes.
enum Outcome {
    Done,
    /// It is done in part or not, and fails.
    Interrupted,
}

impl State {
    /// Forgets what no name leads to. Nobody has a file open.
    fn reclaim(&mut self) {
        let named: BTreeSet<usize> =
            self.names.values().chain(self.durable_names.values()).copied().collect();
        let pending: BTreeSet<usize> = (self.changes.iter())
            .filter_map(|change| match change {
                NameChange::Set(_, file) => Some(*file),
                _ => None,
            })
            .collect();
        self.files.retain(|file, _| named.contains(file) || pending.contains(file));
    }

    fn add(&mut self, file: File) -> usize {
        self.files.insert(self.next, file);
        self.next += 1;
        self.next - 1
    }

    fn call(&mut self, kind: Call) -> io::Result<Outcome> {
        if let Some((refused, error)) = self.refused
            && refused == kind
        {
            self.refusals += 1;
            return Err(io::Error::from_raw_os_error(error));
        }
        if self.is_failing {
            return Err(io::Error::from_raw_os_error(IO_ERROR));
        }
        self.calls += 1;
        if self.plan.is_none_or(|after| self.calls <= after) {
            return Ok(Outcome::Done);
        }
        self.plan = None;
        self.is_failing = true;
        Ok(Outcome::Interrupted)
    }

    fn change_names(&mut self, change: NameChange) -> io::Result<()> {
        let outcome = self.call(Call::Name)?;
        if matches!(outcome, Outcome::Interrupted) && self.random.once_in(2) {
            return outcome.result();
        }
        change.make(&mut self.names);
        self.changes.push(change);
        outcome.result()
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(&name_of(path)).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Which sectors of a write of so many get through.
    fn survivors(&mut self, count: usize) -> Vec<bool> {
        let random = &mut self.random;
        let edge = random.below(count as u64 + 1) as usize;
        let kind = random.below(6);
        (0..count)
            .map(|sector| match kind {
                0 => false,
                1 => true,
                2 => sector < edge,
                3 => sector >= edge,
                4 => sector != edge,
                _ => random.once_in(2),
            })
            .collect()
    }
}

impl Outcome {
    fn result(self) -> io::Result<()> {
        match self {
            Self::Done => Ok(()),
            Self::Interrupted => Err(io::Error::from_raw_os_error(IO_ERROR)),
        }
    }
}

impl Storage for SimDisk {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        // One space of names for both: what belongs to snapshots is known by its name.
        let is_of_snapshots = folder.ends_with("snapshots");
        assert!(is_of_snapshots || matches!(Folder::of(folder), Folder::Segments));
        let names = state.names.keys();
        Ok(names.filter(|name| name.contains(".snap") == is_of_snapshots).cloned().collect())
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        let mut state = self.state();
        let outcome = state.call(Call::Create)?;
        if matches!(outcome, Outcome::Interrupted) && state.random.once_in(2) {
            outcome.result()?;
            return Err(io::ErrorKind::Other.into());
        }
        let mut content = Vec::new();
        if !state.reserves {
            // What lay there before: another file's bytes.
            content =
                state.files.values().next().map(|file| file.bytes.clone()).unwrap_or_default();
        }
        content.resize(bytes as usize, if state.reserves { 0 } else { 0xee });
        let file = state.add(File { bytes: content, ..File::default() });
        state.names.insert(name_of(path), file);
        state.changes.push(NameChange::Set(name_of(path), file));
        outcome.result()?;
        Ok(Box::new(SimFile { disk: self.clone(), name: name_of(path), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn BlockFile>> {
        let file = self.state().find(path)?;
        Ok(Box::new(SimFile { disk: self.clone(), name: name_of(path), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.find(from)?;
        state.change_names(NameChange::Rename(name_of(from), name_of(to)))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.find(path)?;
        state.change_names(NameChange::Remove(name_of(path)))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        let outcome = state.call(Call::Sync)?;
        let changes = std::mem::take(&mut state.changes);
        let done = match outcome {
            Outcome::Done => changes.len(),
            Outcome::Interrupted => state.random.below(changes.len() as u64 + 1) as usize,
        };
        for change in &changes[..done] {
            change.make(&mut state.durable_names);
        }
        state.changes = changes[done..].to_vec();
        outcome.result()?;
        state.synced_folders[Folder::of(folder) as usize] = true;
        Ok(())
    }
}

struct SimFile {
    disk: SimDisk,
    name: String,
    file: usize,
}

impl BlockFile for SimFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[&self.file].bytes.len() as u64)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let fails = state.failing_read.take_if(|name| *name == self.name).is_some();
        if fails || state.unreadable.as_ref() == Some(&self.name) {
            return Err(io::Error::from_raw_os_error(IO_ERROR));
        }
        let bytes = state.files[&self.file].bytes.get(offset as usize..);
        let bytes = bytes.and_then(|bytes| bytes.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_parts(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        assert!(offset.is_multiple_of(BLOCK_BYTES), "whole blocks are written");
        for part in parts {
            assert!((part.len() as u64).is_multiple_of(BLOCK_BYTES), "whole blocks are written");
            let address = part.as_ptr().addr();
            assert!(address.is_multiple_of(BLOCK_BYTES as usize), "from aligned memory");
        }
        let copy = || parts.iter().flat_map(|part| part.iter().copied()).collect::<Vec<u8>>();
        let bytes = &*copy();
        self.disk.0.wait_while_held();
        assert!(copy() == bytes, "nobody changes what is being written");
        let mut state = self.disk.state();
        let state = &mut *state;
        state.largest_write = state.largest_write.max(bytes.len());
        let mut outcome = state.call(Call::Write)?;
        if state.failing_write.as_ref() == Some(&self.name) {
            state.failing_write = None;
            outcome = Outcome::Interrupted;
        }
        let from = offset as usize;
        let Outcome::Interrupted = outcome else {
            let file = state.files.get_mut(&self.file).unwrap();
            file.bytes[from..][..bytes.len()].copy_from_slice(bytes);
            // A sync is one of the whole file.
            if state.is_direct {
                let sectors = from / SECTOR..(from + bytes.len()) / SECTOR;
                file.behind.retain(|sector, _| !sectors.contains(sector));
            } else {
                file.behind.clear();
            }
            return Ok(());
        };
        let survivors = state.survivors(bytes.len() / SECTOR);
        let file = state.files.get_mut(&self.file).unwrap();
        for (index, (new, survives)) in bytes.chunks(SECTOR).zip(survivors).enumerate() {
            let old = &mut file.bytes[from + index * SECTOR..][..SECTOR];
            if !survives && !state.is_direct {
                // In the page cache, where the next process finds it, and not on the disk.
                file.behind.entry(from / SECTOR + index).or_insert_with(|| old.to_vec());
            }
            if survives || !state.is_direct {
                old.copy_from_slice(new);
            }
        }
        outcome.result()
    }

    fn write_unsynced(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        assert!(offset.is_multiple_of(BLOCK_BYTES), "whole blocks are written");
        assert!((bytes.len() as u64).is_multiple_of(BLOCK_BYTES), "whole blocks are written");
        self.disk.0.wait_while_held();
        let mut state = self.disk.state();
        let state = &mut *state;
        let outcome = state.call(Call::Write)?;
        let survivors = match outcome {
            Outcome::Done => vec![true; bytes.len() / SECTOR],
            Outcome::Interrupted => state.survivors(bytes.len() / SECTOR),
        };
        let file = state.files.get_mut(&self.file).unwrap();
        let first = offset as usize / SECTOR;
        for ((sector, new), survives) in (first..).zip(bytes.chunks(SECTOR)).zip(survivors) {
            if survives {
                let old = &mut file.bytes[sector * SECTOR..][..SECTOR];
                file.behind.entry(sector).or_insert_with(|| old.to_vec());
                old.copy_from_slice(new);
            }
        }
        outcome.result()
    }

    fn is_reserved(&self) -> bool {
        self.disk.state().reserves
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let outcome = state.call(Call::Sync)?;
        if let Outcome::Interrupted = outcome
            && state.random.once_in(2)
        {
            return outcome.result();
        }
        let file = state.files.get_mut(&self.file).unwrap();
        file.is_length_durable = true;
        file.behind.clear();
        outcome.result()
    }
}
