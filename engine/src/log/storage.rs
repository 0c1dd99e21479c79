//! The few calls by which the log touches the disk, so that tests can put another disk under it.
//! Called by the keeper for writing and by recovery for reading and repair.

mod gated;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, IoSlice},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use rustix::{
    fs::{FallocateFlags, OFlags, fallocate},
    io::{Errno, pwritev},
};
use touchline_protocol::{log::BLOCK_BYTES, regular_file};

pub use gated::{GatedStorage, Write};

/// A disk that holds segment files.
pub trait Storage: Send + Sync {
    /// Names of the files in a folder.
    ///
    /// # Errors
    /// As the system says.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Makes a new file of `bytes` bytes, its space reserved; one of that name is replaced. What it
    /// holds is not defined before it is written, unless it [is reserved](BlockFile::is_reserved) as zeros.
    ///
    /// # Errors
    /// As the system says; no space left above all. Then it takes none.
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>>;

    /// As [`Storage::create`], for a file of which a part is never written. Space is taken for no more than is
    /// written, where the storage can leave it out, and a write may find none left.
    ///
    /// # Errors
    /// As there.
    fn create_sparse(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        self.create(path, bytes)
    }

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// As the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn BlockFile>>;

    /// Gives a file another name in the same folder, durable only after
    /// [`Storage::sync_folder`].
    ///
    /// # Errors
    /// As the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file, durable only after [`Storage::sync_folder`].
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// As the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file of blocks of [`BLOCK_BYTES`].
pub trait BlockFile: Send {
    /// Length in bytes.
    ///
    /// # Errors
    /// As the system says.
    fn length(&self) -> io::Result<u64>;

    /// Fills `into` from the byte `offset` on.
    ///
    /// # Errors
    /// As the system says; also if the file ends before.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes whole blocks; they are durable when it returns. `offset` and length are multiples of
    /// [`BLOCK_BYTES`], and so is the address of `bytes`.
    ///
    /// # Errors
    /// As the system says. How much was written is then unknown, and it is not to be tried again.
    fn write_blocks(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_parts(offset, &[IoSlice::new(bytes)])
    }

    /// As [`BlockFile::write_blocks`], of blocks that lie in several places, one behind the other, in one
    /// write. What is said there of `bytes` holds for each part.
    ///
    /// # Errors
    /// As there.
    fn write_parts(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()>;

    /// As [`BlockFile::write_blocks`], but durable only after [`BlockFile::sync`]: for a file that nobody
    /// relies on before that. Each durable write into new space has the file system commit its journal,
    /// which other files' writes wait for.
    ///
    /// # Errors
    /// As there.
    fn write_unsynced(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Whether a new file has its whole space without having been written, and reads as zeros, also after
    /// a power cut behind [`BlockFile::sync`]. Each durable write into such space is one of the file
    /// system's journal too: three times as dear for a block, twice as dear for 2 MiB, half as
    /// dear again for 8 MiB.
    fn is_reserved(&self) -> bool;

    /// Makes the file's length and space durable, and whatever was written to it.
    ///
    /// # Errors
    /// As the system says.
    fn sync(&self) -> io::Result<()>;
}

/// The machine's own file systems.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileStorage;

impl Storage for FileStorage {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()?;
        Ok(names)
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        let made = DirectFile::create(path).and_then(|mut file| {
            file.reserve(bytes)?;
            Ok(file)
        });
        let made = made.inspect_err(|_| {
            // What was reserved of it before the disk was full would keep the disk full.
            let _gone = fs::remove_file(path);
        })?;
        Ok(Box::new(made))
    }

    fn create_sparse(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        let made = DirectFile::create(path)?;
        made.buffered.set_len(bytes)?;
        Ok(Box::new(made))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn BlockFile>> {
        Ok(Box::new(DirectFile::open(path, OpenOptions::new().read(true).write(true))?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

/// A file written past the page cache where the file system allows it.
struct DirectFile {
    /// For reading, which need not be aligned, and for what is written unsynced where `unsynced` was refused.
    buffered: File,
    /// Opened with O_DSYNC, and with O_DIRECT where that is granted: a write is durable when it returns.
    synced: File,
    /// Opened with O_DIRECT, if the file is new.
    unsynced: Option<File>,
    /// Its space was given by the file system when it was made.
    is_reserved: bool,
}

impl DirectFile {
    fn create(path: &Path) -> io::Result<Self> {
        let file = Self::open(
            path,
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600),
        )?;
        Ok(Self { unsynced: open_direct(path, OFlags::DIRECT)?, ..file })
    }

    /// Takes the space of a new file.
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        match fallocate(&self.buffered, FallocateFlags::empty(), 0, bytes) {
            // Not every file system can reserve; the zeros that are written next then do.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.buffered.set_len(bytes),
            reserved => {
                reserved?;
                self.is_reserved = true;
                Ok(())
            }
        }
    }

    fn open(path: &Path, how: &OpenOptions) -> io::Result<Self> {
        let buffered = regular_file::open_as(how, path)?;
        let direct = open_direct(path, OFlags::DIRECT | OFlags::DSYNC)?;
        Ok(Self { buffered, synced: or_synced(direct, path)?, unsynced: None, is_reserved: false })
    }
}

/// Opens an existing file past the page cache; `None` where the file system refuses that.
fn open_direct(path: &Path, flags: OFlags) -> io::Result<Option<File>> {
    match open_flagged(path, flags) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// What was opened with O_DIRECT and O_DSYNC, or, where that was refused, with O_DSYNC alone.
fn or_synced(direct: Option<File>, path: &Path) -> io::Result<File> {
    direct.map_or_else(|| open_flagged(path, OFlags::DSYNC), Ok)
}

fn open_flagged(path: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path)
}

/// Calls `write` with what is left of `parts`, and where it belongs, until nothing is.
fn write_all_parts(
    parts: &[IoSlice<'_>],
    mut offset: u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> Result<usize, Errno>,
) -> io::Result<()> {
    let mut left = parts.to_vec();
    let mut left = left.as_mut_slice();
    while !left.is_empty() {
        match write(left, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut left, written);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether a file that is there may be written past the page cache.
pub(crate) fn grants_direct(path: &Path) -> io::Result<bool> {
    Ok(open_direct(path, OFlags::DIRECT | OFlags::DSYNC)?.is_some())
}

impl BlockFile for DirectFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.buffered.metadata()?.len())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.buffered.read_exact_at(into, offset)
    }

    fn write_parts(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        debug_assert!(offset.is_multiple_of(BLOCK_BYTES));
        debug_assert!(parts.iter().all(|part| (part.len() as u64).is_multiple_of(BLOCK_BYTES)));
        write_all_parts(parts, offset, |left, offset| pwritev(&self.synced, left, offset))
    }

    fn write_unsynced(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        debug_assert!(offset.is_multiple_of(BLOCK_BYTES));
        debug_assert!((bytes.len() as u64).is_multiple_of(BLOCK_BYTES));
        self.unsynced.as_ref().unwrap_or(&self.buffered).write_all_at(bytes, offset)
    }

    fn is_reserved(&self) -> bool {
        self.is_reserved
    }

    fn sync(&self) -> io::Result<()> {
        self.buffered.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::disk::aligned_buffer;
    use rustix::fs::fcntl_getfl;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn blocks_come_back_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one");
        let file = FileStorage.create(&path, 3 * BLOCK_BYTES).unwrap();
        assert_eq!(file.length().unwrap(), 3 * BLOCK_BYTES);
        let mut block = aligned_buffer(BLOCK_BYTES).unwrap();
        block.fill(7);
        file.write_blocks(BLOCK_BYTES, &block).unwrap();
        file.write_unsynced(0, &block).unwrap();
        file.sync().unwrap();
        let other = FileStorage.open(&path).unwrap();
        let mut read = [1; 20];
        other.write_unsynced(2 * BLOCK_BYTES, &block).unwrap();
        for offset in [0, 3 * BLOCK_BYTES - 20] {
            other.read(offset, &mut read).unwrap();
            assert_eq!(read, [7; 20]);
        }
        block.fill(0);
        file.write_unsynced(0, &block).unwrap();
        other.read(BLOCK_BYTES - 10, &mut read).unwrap();
        assert_eq!(read[10..], [7; 10]);
        assert!(other.read(3 * BLOCK_BYTES - 10, &mut read).is_err());
        let renamed = folder.path().join("two");
        FileStorage.rename(&path, &renamed).unwrap();
        FileStorage.sync_folder(folder.path()).unwrap();
        assert_eq!(FileStorage.list(folder.path()).unwrap(), ["two"]);
        FileStorage.remove(&renamed).unwrap();
        assert!(FileStorage.open(&renamed).is_err());
    }

    #[test]
    fn parts_of_one_write_lie_one_behind_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = 4 * BLOCK_BYTES;
        let file = FileStorage.create(&folder.path().join("one"), bytes).unwrap();
        let mut memory = aligned_buffer(bytes).unwrap();
        for (block, fill) in memory.chunks_mut(BLOCK_BYTES as usize).zip(1..) {
            block.fill(fill);
        }
        let (first, rest) = memory.split_at(BLOCK_BYTES as usize);
        let empty = IoSlice::new(&rest[..0]);
        // The keeper's parts: full blocks or none, and the last one, or none.
        for parts in [[IoSlice::new(rest), IoSlice::new(first)], [empty, IoSlice::new(&memory)]] {
            file.write_parts(0, &parts).unwrap();
            let mut read = vec![0; bytes as usize];
            file.read(0, &mut read).unwrap();
            assert_eq!(read, parts.iter().flat_map(|part| part.to_vec()).collect::<Vec<u8>>());
        }
        file.write_parts(BLOCK_BYTES, &[IoSlice::new(first), empty]).unwrap();
        let mut read = vec![0; 3 * BLOCK_BYTES as usize];
        file.read(0, &mut read).unwrap();
        assert_eq!(
            read,
            [first, first, &rest[BLOCK_BYTES as usize..][..BLOCK_BYTES as usize]].concat()
        );
    }

    #[test]
    fn a_write_that_is_cut_short_goes_on_where_it_was_cut() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
        let (first, rest) = bytes.split_at(1000);
        let parts = [&rest[..0], first, &rest[..0], rest, &rest[..0]].map(IoSlice::new);
        // In each part, at its end, and over it.
        for most in [1, 999, 1000, 1001, 2999, 3000] {
            let mut written: Vec<u8> = Vec::new();
            let mut is_interrupted = false;
            let done = write_all_parts(&parts, 70, |left, offset| {
                assert_eq!(offset, 70 + written.len() as u64);
                is_interrupted = !is_interrupted;
                if is_interrupted {
                    return Err(Errno::INTR);
                }
                let before = written.len();
                written.extend(left.iter().flat_map(|part| part.iter()).take(most));
                Ok(written.len() - before)
            });
            done.unwrap();
            assert_eq!(written, bytes, "{most} at a time");
        }
        let full = write_all_parts(&parts, 0, |_, _| Ok(0)).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::WriteZero);
    }

    /// A disk that has failed once may say next time that all is well, when it has lost what it was given.
    #[test]
    fn a_write_that_fails_is_not_tried_again() {
        for errno in [Errno::IO, Errno::NOSPC, Errno::AGAIN, Errno::DQUOT, Errno::FBIG] {
            let mut calls = 0;
            let failed = write_all_parts(&[IoSlice::new(&[7; 8])], 0, |_, _| {
                calls += 1;
                if calls == 1 { Err(errno) } else { Ok(8) }
            });
            assert_eq!(Errno::from_io_error(&failed.unwrap_err()), Some(errno));
        }
    }

    #[test]
    fn what_is_written_is_durable_when_it_returns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one");
        let direct = |file: &File| fcntl_getfl(file).unwrap() & (OFlags::DIRECT | OFlags::DSYNC);
        let new = DirectFile::create(&path).unwrap();
        let old = DirectFile::open(&path, OpenOptions::new().read(true).write(true)).unwrap();
        let expected = OFlags::DSYNC
            | if grants_direct(&path).unwrap() { OFlags::DIRECT } else { OFlags::empty() };
        assert_eq!([direct(&new.synced), direct(&old.synced)], [expected; 2]);
        let refused = or_synced(None, &path).unwrap();
        assert_eq!(direct(&refused), OFlags::DSYNC);
    }

    #[test]
    fn a_sparse_file_takes_room_for_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one");
        let bytes = 1 << 20;
        let file = FileStorage.create_sparse(&path, bytes).unwrap();
        let mut block = aligned_buffer(BLOCK_BYTES).unwrap();
        block.fill(7);
        file.write_blocks(bytes - BLOCK_BYTES, &block).unwrap();
        file.sync().unwrap();
        assert_eq!(file.length().unwrap(), bytes);
        let mut read = [1; 20];
        for (offset, held) in [(0, 0), (bytes - 20, 7)] {
            file.read(offset, &mut read).unwrap();
            assert_eq!(read, [held; 20]);
        }
        // Blocks of 512 bytes.
        let taken = fs::metadata(&path).unwrap().blocks() * 512;
        assert!((BLOCK_BYTES..=bytes / 2).contains(&taken), "{taken}");
    }

    #[test]
    fn a_file_that_finds_no_room_takes_none() {
        let folder = tempfile::tempdir().unwrap();
        // More than any disk has.
        let made = FileStorage.create(&folder.path().join("one"), 1 << 62);
        assert!(made.is_err());
        assert_eq!(FileStorage.list(folder.path()).unwrap(), [""; 0]);
    }
}
