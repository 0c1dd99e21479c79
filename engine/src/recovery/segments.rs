//! The disk log as recovery sees it: which segments there are, and their bytes at positions. Called by
//! every step of recovery.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use touchline_protocol::log::{
    segment::{LogIdentity, SegmentError},
    segment_number, segment_path,
};

use super::RecoveryError;
use crate::log::{
    DiskError,
    disk::{READING, disk_error, unfinished_path},
    storage::{BlockFile, Storage},
};

/// Bytes of a segment's header that hold anything.
const HEADER_BYTES: usize = 64;

/// The segments of a log: all from `first` up to the one before `next` exist.
pub(crate) struct Segments {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) folder: PathBuf,
    pub(crate) identity: LogIdentity,
    pub(crate) first: u64,
    pub(crate) next: u64,
}

/// Removes the segments whose making was interrupted.
pub(super) fn remove_unfinished(storage: &dyn Storage, folder: &Path) -> Result<(), RecoveryError> {
    for name in storage.list(folder).map_err(disk_error("listing", folder))? {
        if name.strip_suffix(".new").is_some_and(|name| segment_number(name).is_some()) {
            let path = folder.join(name);
            storage.remove(&path).map_err(disk_error("removing", &path))?;
        }
    }
    Ok(())
}

/// Numbers of the segments in a folder in their order, with none missing in between.
pub(crate) fn segment_numbers(
    storage: &dyn Storage,
    folder: &Path,
) -> Result<Vec<u64>, RecoveryError> {
    let names = storage.list(folder).map_err(disk_error("listing", folder))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    if let Some(hole) = numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]) {
        return Err(RecoveryError::MissingSegment {
            missing: segment_path(folder, hole[0] + 1),
            next: segment_path(folder, hole[1]),
        });
    }
    Ok(numbers)
}

/// Looks at the folder so often while segments go: each look comes behind one that was there and is not any more.
const LOOKS: u32 = 1000;

impl Segments {
    /// The segments that are in a folder, of which there is at least one, also while a prune takes the oldest ones
    /// away between the look and the opening.
    pub(crate) fn open_all(
        storage: &Arc<dyn Storage>,
        folder: &Path,
    ) -> Result<Self, RecoveryError> {
        let mut looks = 1;
        loop {
            let numbers = segment_numbers(storage.as_ref(), folder)?;
            match Self::open(Arc::clone(storage), folder.to_owned(), &numbers) {
                Err(error) if error.is_not_found() && looks < LOOKS => looks += 1,
                opened => return opened,
            }
        }
    }

    /// The segments `numbers`, of which there is at least one; the log is known by the first one's
    /// header. All files must have their whole length.
    fn open(
        storage: Arc<dyn Storage>,
        folder: PathBuf,
        numbers: &[u64],
    ) -> Result<Self, RecoveryError> {
        let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else {
            return Err(RecoveryError::NoSegments { folder });
        };
        let path = segment_path(&folder, first);
        let file = storage.open(&path).map_err(disk_error("opening", &path))?;
        let refuse = |source| RecoveryError::FirstSegment { path: path.clone(), source };
        let length = file.length().map_err(disk_error("reading", &path))?;
        if length < HEADER_BYTES as u64 {
            return Err(refuse(SegmentError::TooShort { have: length as usize }));
        }
        let mut header = [0; HEADER_BYTES];
        file.read(0, &mut header).map_err(disk_error("reading the header of", &path))?;
        let (identity, number) = match LogIdentity::read_header(&header) {
            // It was made ahead of its time, when the one before was there.
            Err(SegmentError::Blank) if first > 0 => {
                let missing = segment_path(&folder, first - 1);
                return Err(RecoveryError::MissingSegment { missing, next: path });
            }
            read => read.map_err(refuse)?,
        };
        if number != first {
            return Err(refuse(SegmentError::Number { found: number, expected: first }));
        }
        let segments = Self { storage, folder, identity, first, next: last + 1 };
        for &number in numbers {
            let path = segments.path(number);
            let length = segments.file(number)?.length().map_err(disk_error("reading", &path))?;
            if length != identity.segment_bytes {
                return Err(RecoveryError::SegmentLength {
                    path,
                    found: length,
                    expected: identity.segment_bytes,
                });
            }
        }
        Ok(segments)
    }

    /// Whether the segment `number`, which exists, has the header that belongs to it.
    pub(crate) fn check_header(&self, number: u64) -> Result<Result<(), SegmentError>, DiskError> {
        let mut header = [0; HEADER_BYTES];
        self.read(number * self.identity.segment_bytes, &mut header)?;
        Ok(self.identity.check_header(number, &header))
    }

    pub(crate) fn path(&self, number: u64) -> PathBuf {
        segment_path(&self.folder, number)
    }

    /// The file that holds `position`, and the offset in it.
    pub(crate) fn place(&self, position: u64) -> (PathBuf, u64) {
        let segment_bytes = self.identity.segment_bytes;
        (self.path(position / segment_bytes), position % segment_bytes)
    }

    /// Position of the first byte there is.
    pub(crate) fn begin(&self) -> u64 {
        self.first * self.identity.segment_bytes
    }

    /// Position behind the last byte there is room for.
    pub(crate) fn end(&self) -> u64 {
        self.next * self.identity.segment_bytes
    }

    pub(crate) fn file(&self, number: u64) -> Result<Box<dyn BlockFile>, DiskError> {
        let path = self.path(number);
        self.storage.open(&path).map_err(disk_error("opening", &path))
    }

    /// Fills `into` with the bytes from `position` on, which lie in one segment that exists.
    pub(crate) fn read(&self, position: u64, into: &mut [u8]) -> Result<(), DiskError> {
        if into.is_empty() {
            return Ok(());
        }
        let (path, offset) = self.place(position);
        self.file(position / self.identity.segment_bytes)?
            .read(offset, into)
            .map_err(disk_error(READING, &path))
    }

    /// Takes in the segments that were made since, up to the one before `next`.
    pub(super) fn extend(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// The temporary name of a file that is to replace or accompany a segment.
    pub(super) fn unfinished(&self, number: u64) -> PathBuf {
        unfinished_path(&self.path(number))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::log::storage::FileStorage;
    use touchline_protocol::log::{SEGMENT_HEADER_BYTES, WINDOW_SEGMENT_BYTES};

    /// A folder whose oldest segment is removed behind each of the first looks.
    struct Leaving {
        removed: AtomicU64,
        most: u64,
    }

    impl Storage for Leaving {
        fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
            let names = FileStorage.list(folder);
            let number = self.removed.load(Ordering::Relaxed);
            if number < self.most {
                fs::remove_file(segment_path(folder, number))?;
                self.removed.store(number + 1, Ordering::Relaxed);
            }
            names
        }

        fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
            FileStorage.create(path, bytes)
        }

        fn open(&self, path: &Path) -> io::Result<Box<dyn BlockFile>> {
            FileStorage.open(path)
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

    /// Its checksum is right: somebody has made it.
    #[test]
    fn a_segment_behind_the_last_position_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let identity =
            LogIdentity { log_id: [1; 16], salt: 2, segment_bytes: WINDOW_SEGMENT_BYTES };
        let (number, segment_bytes) = (u64::MAX / WINDOW_SEGMENT_BYTES, WINDOW_SEGMENT_BYTES);
        for number in [number, u64::MAX] {
            let path = segment_path(folder.path(), number);
            let mut header = [0; SEGMENT_HEADER_BYTES as usize];
            identity.write_header(number, &mut header);
            fs::write(&path, header).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_len(segment_bytes).unwrap();
            let storage: Arc<dyn Storage> = Arc::new(FileStorage);
            let refused = Segments::open_all(&storage, folder.path()).err().unwrap();
            let beyond = SegmentError::Beyond { found: number, segment_bytes };
            assert!(
                matches!(&refused, RecoveryError::FirstSegment { path: told, source }
                    if *told == path && *source == beyond),
                "{refused}"
            );
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn segments_that_go_while_the_folder_is_looked_at_are_no_fault() {
        let folder = tempfile::tempdir().unwrap();
        let identity =
            LogIdentity { log_id: [1; 16], salt: 2, segment_bytes: WINDOW_SEGMENT_BYTES };
        for number in 0..5 {
            let mut bytes = vec![0; WINDOW_SEGMENT_BYTES as usize];
            identity.write_header(number, &mut bytes[..SEGMENT_HEADER_BYTES as usize]);
            fs::write(segment_path(folder.path(), number), bytes).unwrap();
        }
        let open = |most| {
            let storage: Arc<dyn Storage> = Arc::new(Leaving { removed: AtomicU64::new(0), most });
            Segments::open_all(&storage, folder.path())
        };
        let segments = open(3).unwrap();
        assert_eq!((segments.first, segments.next), (3, 5));
        // One that is not there though the folder names it ends the looks.
        std::os::unix::fs::symlink("nowhere", segment_path(folder.path(), 5)).unwrap();
        assert!(open(0).err().unwrap().is_not_found());
    }
}
