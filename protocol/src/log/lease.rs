//! Leases: how far back those who keep something made from the log still need it. A reader that goes on
//! where it stopped, in whichever process and after any pause, holds one; `touchline log prune` leaves what
//! it needs. Held by the adapter for its history, read by prune and `touchline log info`.
//!
//! A lease is a file of its own, so that it holds while nobody runs, and whoever gives a reader up removes
//! it. All integers little-endian, offsets in bytes:
//!
//! ```text
//!  offset  size
//!       0     8   magic      "TLLEASE1"
//!       8    16   log id     of the log that is read
//!      24     8   needed u64 nothing before this position is needed
//!      32     4   last   u32 incarnation of the transaction there, the last one that the reader has; 0: none
//!      36     4   last   u32 crc of its frame: a log that has another one there is not the one that was read
//!      40    20   zero
//!      60     4   crc    u32 crc32c of bytes 0..60
//! ```
//!
//! The transaction is durable before a lease names it, for a start refuses a log that has lost it: who follows what is
//! appended only waits until its last transaction is on disk.
//!
//! It is made durably and then written in place, without a sync: what a power cut brings back is an older
//! lease, which holds more. So a reader that finds no room to make its lease anew goes on with the one that
//! it has, if that holds no less, and else writes that one in place, too.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
use thiserror::Error;

use super::transaction::Bookmark;
use crate::regular_file;
use crate::units::{Incarnation, Position};

/// Name of the folder of leases within the data folder.
pub const LEASE_FOLDER: &str = "leases";

/// The first eight bytes of every lease, its format's number included.
pub const MAGIC: [u8; 8] = *b"TLLEASE1";

/// Bytes of a lease.
pub const LEASE_BYTES: usize = 64;

/// Longest name in bytes.
pub const NAME_BYTES_MAX: usize = 64;

const SUFFIX: &str = ".lease";
const CRC_OFFSET: usize = LEASE_BYTES - 4;

/// Looks at a lease before it is called damaged: its holder may be writing it.
const LOOKS: usize = 8;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct RawLease {
    magic: [u8; 8],
    log_id: [u8; 16],
    needed: u64,
    last_incarnation: u32,
    last_crc: u32,
    reserved: [u8; 20],
    crc: u32,
}

const _: () = {
    assert!(size_of::<RawLease>() == LEASE_BYTES);
    assert!(core::mem::offset_of!(RawLease, needed) == 24);
    assert!(core::mem::offset_of!(RawLease, last_crc) == 36);
    assert!(core::mem::offset_of!(RawLease, crc) == CRC_OFFSET);
};

/// Why a lease cannot be held or read.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// A call of the operating system failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The name is none that a lease may have.
    #[error("{name:?} is no name of a lease: 1 to {NAME_BYTES_MAX} letters, digits and dashes")]
    Name {
        /// What was given.
        name: String,
    },
    /// The file is not a lease, or not whole.
    #[error(
        "{} is no lease: {why}; its reader writes it anew at its next start, and if it has none any more \
         the file may be removed",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl LeaseError {
    /// The disk has no room for another file.
    fn is_for_want_of_room(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LeaseError {
    move |source| LeaseError::Io { what, path: path.to_owned(), source }
}

/// A lease as its holder has it. Dropping it leaves the file: the reader goes on some other day.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    log_id: [u8; 16],
    data: DataFolder,
}

impl Lease {
    /// Replaces the lease of this name by one that keeps the log with this id from `last` on, the last transaction that
    /// its reader has, which must be durable. A reader that has none gives a position, as a bookmark of incarnation 0.
    /// On return a lease that keeps as much or more is on disk; where the disk is full, the old file is overwritten in
    /// place. No two readers may share a name, which is not checked.
    ///
    /// # Errors
    /// If the name is none, or the file cannot be written and the one that is there does not hold so much.
    pub fn hold(
        data: &Path,
        name: &str,
        log_id: [u8; 16],
        last: Bookmark,
    ) -> Result<Self, LeaseError> {
        if !is_name(name) {
            return Err(LeaseError::Name { name: name.to_owned() });
        }
        let folder = data.join(LEASE_FOLDER);
        let data = DataFolder::open(data).map_err(failed("opening", data))?;
        let lease = Self { path: folder.join(format!("{name}{SUFFIX}")), log_id, data };
        // Of the lease that is on disk: one that was named and not synced may not stay.
        let is_held = lease.holds(last);
        if let Err(refused) = lease.make(last) {
            if is_held {
                // The one on disk keeps more than it has to: the next advance lets that go.
                let _later = lease.advance(last);
            } else if !refused.is_for_want_of_room() || lease.write_over(last).is_err() {
                return Err(refused);
            }
        }
        Ok(lease)
    }

    /// Whether the lease that is on disk holds what a reader needs that has this transaction.
    fn holds(&self, last: Bookmark) -> bool {
        read(&self.path)
            .is_ok_and(|(log_id, held)| log_id == self.log_id && held.position <= last.position)
    }

    /// On disk when this returns. A power cut meanwhile may leave one that is told as damaged, which lets nothing
    /// go.
    fn write_over(&self, last: Bookmark) -> io::Result<()> {
        let file = regular_file::open_as(OpenOptions::new().write(true), &self.path)?;
        let lease = encode(self.log_id, last);
        file.write_all_at(&lease, 0)?;
        file.set_len(lease.len() as u64)?;
        file.sync_all()
    }

    /// The reader has this transaction, and nothing before it is needed any more. What is made from it and from
    /// what is before it must be on disk, and so must the transaction itself.
    ///
    /// # Errors
    /// If the file cannot be written, or another data folder has come in the place of the one that it was held in. It
    /// then holds what it held, or is told as damaged: no more is let go either way.
    pub fn advance(&self, last: Bookmark) -> Result<(), LeaseError> {
        self.data.check().map_err(failed("looking at", &self.data.path))?;
        match regular_file::open_as(OpenOptions::new().write(true), &self.path) {
            Ok(file) => file
                .write_all_at(&encode(self.log_id, last), 0)
                .map_err(failed("writing", &self.path)),
            // Somebody gave the reader up, which is still here.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make(last),
            Err(error) => Err(failed("opening", &self.path)(error)),
        }
    }

    fn make(&self, last: Bookmark) -> Result<(), LeaseError> {
        let Some(folder) = self.path.parent() else { return Ok(()) };
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("making", folder)(error));
            }
            _ => {}
        }
        folder.parent().map_or(Ok(()), sync_folder)?;
        let new = self.path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut how = OpenOptions::new();
            how.write(true).create(true).truncate(true).mode(0o600);
            let mut file = regular_file::open_or_device(&how, &new)?;
            file.write_all(&encode(self.log_id, last))?;
            file.sync_all()
        };
        if let Err(error) = write() {
            // A full disk is not kept full by it.
            let _gone = fs::remove_file(&new);
            return Err(failed("writing", &new)(error));
        }
        fs::rename(&new, &self.path).map_err(failed("naming", &self.path))?;
        sync_folder(folder)
    }
}

/// A data folder that is open, so that no other one can be taken for it: its path may come to be another log's, which
/// a lease of this one would keep from its start.
#[derive(Debug)]
struct DataFolder {
    path: PathBuf,
    opened: File,
}

impl DataFolder {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), opened: File::open(path)? })
    }

    /// That it is still what its path leads to.
    fn check(&self) -> io::Result<()> {
        let (held, found) = (self.opened.metadata()?, fs::metadata(&self.path)?);
        if (held.dev(), held.ino()) == (found.dev(), found.ino()) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "another data folder has come in its place"))
    }
}

fn sync_folder(folder: &Path) -> Result<(), LeaseError> {
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(failed("syncing", folder))
}

/// A lease that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// Of the reader.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Of the log that it is about.
    pub log_id: [u8; 16],
    /// The last transaction that the reader has: nothing before it is needed. Of incarnation 0 if it has none,
    /// and needs all from the position on.
    pub last: Bookmark,
}

/// The leases in the data folder `data`, by name. A data folder without any has none.
///
/// # Errors
/// If the folder or a file cannot be read, or a file is not a lease.
pub fn leases(data: &Path) -> Result<Vec<HeldLease>, LeaseError> {
    each_lease(data)?.into_iter().collect()
}

/// The leases in the data folder `data`, by name, each as it was found: for who only looks, so that a
/// damaged one does not hide the others.
///
/// # Errors
/// If the folder cannot be read.
pub fn each_lease(data: &Path) -> Result<Vec<Result<HeldLease, LeaseError>>, LeaseError> {
    let folder = data.join(LEASE_FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("listing", &folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed("listing", &folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.and_then(|name| name.strip_suffix(SUFFIX)) else { continue };
        found.push((name.to_owned(), path));
    }
    found.sort_unstable();
    let held = |(name, path): (String, PathBuf)| {
        let (log_id, last) = read(&path)?;
        Ok(HeldLease { name, path, log_id, last })
    };
    Ok(found.into_iter().map(held).collect())
}

fn read(path: &Path) -> Result<([u8; 16], Bookmark), LeaseError> {
    let mut why = "";
    for _ in 0..LOOKS {
        let mut bytes = Vec::new();
        let most = LEASE_BYTES as u64 + 1;
        regular_file::open(path)
            .and_then(|file| file.take(most).read_to_end(&mut bytes))
            .map_err(failed("reading", path))?;
        match decode(&bytes) {
            Ok(lease) => return Ok(lease),
            Err(found) => why = found,
        }
    }
    Err(LeaseError::Damaged { path: path.to_owned(), why })
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

fn encode(log_id: [u8; 16], last: Bookmark) -> [u8; LEASE_BYTES] {
    let mut raw = RawLease {
        magic: MAGIC,
        log_id,
        needed: last.position.0.to_le(),
        last_incarnation: last.incarnation.0.to_le(),
        last_crc: last.crc.to_le(),
        reserved: [0; 20],
        crc: 0,
    };
    raw.crc = crc32c::crc32c(&bytemuck::bytes_of(&raw)[..CRC_OFFSET]).to_le();
    bytemuck::cast(raw)
}

fn decode(bytes: &[u8]) -> Result<([u8; 16], Bookmark), &'static str> {
    let raw: RawLease =
        bytemuck::try_pod_read_unaligned(bytes).map_err(|_| "it is not 64 bytes")?;
    if raw.magic != MAGIC {
        return Err("it does not begin with the mark of a lease of this format");
    }
    if u32::from_le(raw.crc) != crc32c::crc32c(&bytes[..CRC_OFFSET]) {
        return Err("its checksum is wrong");
    }
    let last = Bookmark {
        position: Position(u64::from_le(raw.needed)),
        incarnation: Incarnation(u32::from_le(raw.last_incarnation)),
        crc: u32::from_le(raw.last_crc),
    };
    Ok((raw.log_id, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: [u8; 16] = [7; 16];

    fn at(position: u64) -> Bookmark {
        Bookmark::nothing_before(Position(position))
    }

    fn names(data: &Path) -> Vec<(String, u64)> {
        leases(data).unwrap().into_iter().map(|lease| (lease.name, lease.last.position.0)).collect()
    }

    fn owned(all: &[(&str, u64)]) -> Vec<(String, u64)> {
        all.iter().map(|(name, needed)| ((*name).to_owned(), *needed)).collect()
    }

    #[test]
    fn the_bytes_of_a_lease() {
        let mut wanted = [0; 64];
        wanted[..8].copy_from_slice(b"TLLEASE1");
        wanted[8..24].fill(7);
        wanted[24..32].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        wanted[32..40].copy_from_slice(&[0x04, 0x03, 0x02, 0x01, 0xd4, 0xc3, 0xb2, 0xa1]);
        wanted[60..].copy_from_slice(&[0x3a, 0x7a, 0x49, 0x59]);
        let last = Bookmark {
            position: Position(0x1122_3344_5566_7788),
            incarnation: Incarnation(0x0102_0304),
            crc: 0xa1b2_c3d4,
        };
        assert_eq!(encode(LOG, last), wanted);
        assert_eq!(decode(&wanted), Ok((LOG, last)));
    }

    #[test]
    fn a_lease_holds_what_its_reader_needs_until_it_is_removed() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(names(data.path()), []);
        let second = Lease::hold(data.path(), "second", LOG, at(9)).unwrap();
        let first = Lease::hold(data.path(), "first", LOG, at(4096)).unwrap();
        assert_eq!(names(data.path()), owned(&[("first", 4096), ("second", 9)]));
        first.advance(at(8192)).unwrap();
        assert_eq!(names(data.path()), owned(&[("first", 8192), ("second", 9)]));
        // Nobody need run for it to hold.
        drop(first);
        assert_eq!(names(data.path()), owned(&[("first", 8192), ("second", 9)]));
        // What is begun anew needs more than before.
        let first = Lease::hold(data.path(), "first", [8; 16], at(64)).unwrap();
        let found = leases(data.path()).unwrap();
        assert_eq!((found[0].log_id, found[0].last), ([8; 16], at(64)));
        fs::remove_file(&found[1].path).unwrap();
        assert_eq!(names(data.path()), owned(&[("first", 64)]));
        // A reader that lives says again what it needs, though it was given up.
        second.advance(at(10)).unwrap();
        assert_eq!(names(data.path()), owned(&[("first", 64), ("second", 10)]));
        // Though all of them were.
        fs::remove_dir_all(data.path().join(LEASE_FOLDER)).unwrap();
        first.advance(at(128)).unwrap();
        assert_eq!(names(data.path()), owned(&[("first", 128)]));
        fs::remove_dir_all(data.path()).unwrap();
        fs::write(data.path(), "no folder").unwrap();
        assert!(matches!(first.advance(at(256)), Err(LeaseError::Io { .. })));
        fs::remove_file(data.path()).unwrap();
    }

    #[test]
    fn nothing_is_written_into_a_data_folder_that_came_in_the_place_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let [data, away] = ["data", "away"].map(|name| root.path().join(name));
        fs::create_dir(&data).unwrap();
        let lease = Lease::hold(&data, "adapter", LOG, at(9)).unwrap();
        fs::rename(&data, &away).unwrap();
        fs::create_dir(&data).unwrap();
        assert!(matches!(lease.advance(at(10)), Err(LeaseError::Io { .. })));
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
        // Nor over what another log's reader of this name has there.
        drop(Lease::hold(&data, "adapter", [8; 16], at(64)).unwrap());
        assert!(matches!(lease.advance(at(10)), Err(LeaseError::Io { .. })));
        assert_eq!(leases(&data).unwrap()[0].log_id, [8; 16]);
        assert_eq!(names(&away), owned(&[("adapter", 9)]));
        // It may come back.
        fs::remove_dir_all(&data).unwrap();
        fs::rename(&away, &data).unwrap();
        lease.advance(at(10)).unwrap();
        assert_eq!(names(&data), owned(&[("adapter", 10)]));
    }

    #[test]
    fn a_folder_that_cannot_be_listed_is_told_and_is_not_one_without_leases() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(LEASE_FOLDER), "no folder").unwrap();
        let told = leases(data.path()).unwrap_err().to_string();
        assert!(told.contains("listing") && told.contains(LEASE_FOLDER), "{told}");
    }

    /// A device that has no room, in the place of the file that would be made.
    fn fill_disk(data: &Path, name: &str) {
        let new = data.join(LEASE_FOLDER).join(format!("{name}.new"));
        std::os::unix::fs::symlink("/dev/full", new).unwrap();
    }

    #[test]
    fn a_full_disk_has_room_for_a_lease_that_is_there() {
        let data = tempfile::tempdir().unwrap();
        Lease::hold(data.path(), "reader", LOG, at(4096)).unwrap();
        for needed in [8192, 64] {
            fill_disk(data.path(), "reader");
            Lease::hold(data.path(), "reader", LOG, at(needed)).unwrap();
            assert_eq!(names(data.path()), owned(&[("reader", needed)]));
        }
        // One that is longer than a lease is cut: else it stays damaged.
        fs::write(data.path().join("leases/reader.lease"), [0; 2 * LEASE_BYTES]).unwrap();
        fill_disk(data.path(), "reader");
        Lease::hold(data.path(), "reader", LOG, at(96)).unwrap();
        assert_eq!(names(data.path()), owned(&[("reader", 96)]));
        let folder = fs::read_dir(data.path().join(LEASE_FOLDER)).unwrap();
        assert_eq!(folder.count(), 1, "what found no room is left");
        fill_disk(data.path(), "other");
        let refused = Lease::hold(data.path(), "other", LOG, at(0)).unwrap_err().to_string();
        assert!(refused.contains("other.new") && refused.contains("No space left"), "{refused}");
    }

    #[test]
    fn a_reader_that_finds_no_room_goes_on_with_the_lease_that_it_has_if_that_holds_enough() {
        let data = tempfile::tempdir().unwrap();
        Lease::hold(data.path(), "reader", LOG, at(4096)).unwrap();
        // No file of this name can be made any more.
        fs::create_dir(data.path().join("leases/reader.new")).unwrap();
        let hold = |log_id, position| Lease::hold(data.path(), "reader", log_id, at(position));
        for (log_id, position) in [(LOG, 4095), ([8; 16], 4096)] {
            assert!(matches!(hold(log_id, position), Err(LeaseError::Io { .. })));
            assert_eq!(names(data.path()), owned(&[("reader", 4096)]));
        }
        hold(LOG, 4096).unwrap();
        hold(LOG, 8192).unwrap().advance(at(8200)).unwrap();
        assert_eq!(names(data.path()), owned(&[("reader", 8200)]));
        fs::write(data.path().join("leases/reader.lease"), "no lease").unwrap();
        assert!(matches!(hold(LOG, 8200), Err(LeaseError::Io { .. })));
    }

    #[test]
    fn only_plain_names_are_names() {
        let data = tempfile::tempdir().unwrap();
        for name in ["", "a/b", "..", "a b", "ä", &"n".repeat(NAME_BYTES_MAX + 1)] {
            let refused = Lease::hold(data.path(), name, LOG, at(0)).unwrap_err();
            assert!(matches!(&refused, LeaseError::Name { name: told } if told == name));
        }
        let longest = "n".repeat(NAME_BYTES_MAX);
        Lease::hold(data.path(), &longest, LOG, at(0)).unwrap();
        assert_eq!(names(data.path()), owned(&[(&longest, 0)]));
    }

    #[test]
    fn whatever_is_not_whole_is_told_with_its_file() {
        let data = tempfile::tempdir().unwrap();
        Lease::hold(data.path(), "reader", LOG, at(4096)).unwrap();
        let path = data.path().join("leases/reader.lease");
        let good = fs::read(&path).unwrap();
        // What is no lease by its name is nobody's.
        fs::write(data.path().join("leases/reader.new"), "half").unwrap();
        assert_eq!(names(data.path()), owned(&[("reader", 4096)]));
        let mut bad = Vec::new();
        for at in 0..LEASE_BYTES {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            bad.push(bytes);
            bad.push(good[..at].to_vec());
        }
        bad.push([&good[..], &[0]].concat());
        for bytes in bad {
            fs::write(&path, &bytes).unwrap();
            let told = leases(data.path()).unwrap_err().to_string();
            assert!(told.contains(&path.display().to_string()), "{told}");
        }
        // Of a format that is not known, and whole.
        let mut other = good;
        other[7] = b'2';
        let crc = crc32c::crc32c(&other[..CRC_OFFSET]);
        other[CRC_OFFSET..].copy_from_slice(&crc.to_le_bytes());
        fs::write(&path, &other).unwrap();
        let told = leases(data.path()).unwrap_err().to_string();
        assert!(told.contains("mark of a lease"), "{told}");
        // It hides nobody else's.
        Lease::hold(data.path(), "after", LOG, at(64)).unwrap();
        Lease::hold(data.path(), "then", LOG, at(128)).unwrap();
        let found: Vec<_> = each_lease(data.path()).unwrap();
        let sound =
            |lease: &Result<HeldLease, _>| lease.as_ref().ok().map(|lease| lease.name.clone());
        let found: Vec<_> = found.iter().map(sound).collect();
        assert_eq!(found, [Some("after".to_owned()), None, Some("then".to_owned())]);
    }
}
