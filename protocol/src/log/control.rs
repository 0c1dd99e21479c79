//! Where everything lies in the control page, the file `control` beside the live window: offsets and
//! values, and how its header is read. Written by the engine, mapped read-only by readers and tools.
//!
//! The file is made anew at each start of the engine and renamed into place when the engine is ready,
//! so a mapped page belongs to one incarnation for ever. All integers little-endian, offsets in bytes:
//!
//! ```text
//!  offset  size
//!       0    88   ControlHeader    written once, before the file gets its name
//!     128     8   appended        u64  behind the last published frame; stored by the duty thread
//!     256     8   durable         u64  on disk up to here, where a frame may begin; keeper
//!     384     8   window_base     u64  lowest position whose bytes the window still holds; keeper
//!     512     8   prepared_until  u64  the duty thread may write up to here; keeper
//!     896     4   durable_event   u32  counts moves of durable and changes of state; a futex
//!    1024     4   state           u32  LogState
//!    1152     8   heartbeat_ns    u64  the duty thread's own sign of life, ns since the epoch
//!    1536     4   panicked        u32  1 once the duty thread has panicked
//!    1664     8   feed            u64  the public feed has read the log up to here; 0: there is none; feed thread
//! ```
//!
//! All else is zero. The words at 640, 768, 1280 and 1408 are reserved: earlier engines woke their own threads by
//! them, and no process that maps the page may sleep on them.
//!
//! Words that are written independently are 128 bytes apart: two cache lines, because the
//! adjacent-line prefetcher fetches lines in pairs.

use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt, MetadataExt},
    time::UNIX_EPOCH,
};

use bytemuck::{Pod, Zeroable};

/// Bytes of the control page.
pub const CONTROL_BYTES: usize = 4096;

/// Name of the control page in the window's folder.
pub const CONTROL_FILE: &str = "control";

/// Name of the live window in its folder.
pub const WINDOW_FILE: &str = "window";

/// The first eight bytes of the control page.
pub const MAGIC: [u8; 8] = *b"TLINECTL";

/// Version of this layout; any other is refused.
pub const VERSION: u32 = 1;

/// Offset of the u64 position behind the last published frame.
pub const APPENDED_OFFSET: usize = 128;

/// Offset of the u64 position up to which the log is on disk.
pub const DURABLE_OFFSET: usize = 256;

/// Offset of the u64 lowest position whose bytes the window still holds.
pub const WINDOW_BASE_OFFSET: usize = 384;

/// Offset of the u64 position up to which the duty thread may write.
pub const PREPARED_UNTIL_OFFSET: usize = 512;

/// Offset of the u32 counter of moves of `durable` and changes of `state`.
pub const DURABLE_EVENT_OFFSET: usize = 896;

/// Offset of the u32 [`LogState`].
pub const STATE_OFFSET: usize = 1024;

/// Offset of the u64 time at which the duty thread was last alive, ns since the epoch.
pub const HEARTBEAT_NS_OFFSET: usize = 1152;

/// Offset of the u32 that says whether the duty thread has panicked.
pub const PANICKED_OFFSET: usize = 1536;

/// Offset of the u64 position up to which the public feed has read the log; 0: there is no feed.
pub const FEED_OFFSET: usize = 1664;

/// What holds for the whole life of a control page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ControlHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// Incarnation of the engine that made it.
    pub incarnation: u32,
    /// The log, as in its segment headers.
    pub log_id: [u8; 16],
    /// The running of the kernel in which it was made: the window means nothing after a reboot.
    pub boot_id: [u8; 16],
    /// Bytes of the window: a multiple of 2 MiB, at least 8 MiB.
    pub window_bytes: u64,
    /// Bytes of a disk segment.
    pub segment_bytes: u64,
    /// Process id of the engine.
    pub pid: u32,
    /// Zero.
    pub reserved: u32,
    /// The inode number of the page's own file, by which a copy is known where no birth is told; 0 in pages of engines
    /// before.
    pub file_number: u64,
    /// When that file was born, ns since the epoch; 0 where the file system does not tell.
    pub file_born_ns: u64,
}

impl ControlHeader {
    /// The same for a page in `file`, which is new.
    ///
    /// # Errors
    /// If the file cannot be looked at.
    pub fn in_file(self, file: &File) -> io::Result<Self> {
        let (file_number, file_born_ns) = identify(file)?;
        Ok(Self { file_number, file_born_ns, ..self })
    }

    /// True if the page was made in another file than this one: it was copied, with a window that was or was not
    /// written meanwhile, and nobody knows what of it is of which moment. Where the file system tells when the file was
    /// born, that alone decides: no copy keeps it, while a file's number may come back, or change with a mount.
    ///
    /// # Errors
    /// If the file cannot be looked at.
    pub fn is_copied_to(&self, file: &File) -> io::Result<bool> {
        let (number, born_ns) = identify(file)?;
        let is_told = self.file_born_ns != 0 && born_ns != 0;
        let is_same =
            if is_told { self.file_born_ns == born_ns } else { self.file_number == number };
        Ok(self.file_number != 0 && !is_same)
    }

    /// The header of the control page in `file`, of whatever layout; `None` if nothing of it ever reached the
    /// disk: a page gets its name with its header complete, so it is blank or short only after a power cut.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; size_of::<Self>()];
        match file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let is_blank = bytes.iter().all(|&byte| byte == 0);
        Ok((!is_blank).then(|| bytemuck::pod_read_unaligned(&bytes)))
    }

    /// True if it was made in another running of the kernel, as far as that can be known: then neither it nor
    /// the window beside it means anything.
    #[must_use]
    pub fn is_of_another_boot(&self, boot_id: &[u8; 16]) -> bool {
        self.magic == MAGIC && self.boot_id != *boot_id
    }
}

/// Number and time of birth of a file, which change neither by another name nor by what is written to it.
fn identify(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    let born = metadata.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born_ns = born.and_then(|since| u64::try_from(since.as_nanos()).ok());
    Ok((metadata.ino(), born_ns.unwrap_or(0)))
}

/// What the engine does with the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum LogState {
    /// It recovers; nothing is accepted yet.
    Starting = 1,
    /// It appends and makes durable.
    Running = 2,
    /// The disk failed: `durable` stands still for ever and commands are refused.
    LogFailed = 3,
    /// All that was appended is on disk, and the window does not count any more.
    Stopped = 4,
}

impl LogState {
    /// The state by its number.
    #[must_use]
    pub const fn from_word(word: u32) -> Option<Self> {
        match word {
            1 => Some(Self::Starting),
            2 => Some(Self::Running),
            3 => Some(Self::LogFailed),
            4 => Some(Self::Stopped),
            _ => None,
        }
    }
}

const _: () = {
    assert!(size_of::<ControlHeader>() == 88);
    assert!(core::mem::offset_of!(ControlHeader, version) == 8);
    assert!(core::mem::offset_of!(ControlHeader, incarnation) == 12);
    assert!(core::mem::offset_of!(ControlHeader, log_id) == 16);
    assert!(core::mem::offset_of!(ControlHeader, boot_id) == 32);
    assert!(core::mem::offset_of!(ControlHeader, window_bytes) == 48);
    assert!(core::mem::offset_of!(ControlHeader, segment_bytes) == 56);
    assert!(core::mem::offset_of!(ControlHeader, pid) == 64);
    assert!(core::mem::offset_of!(ControlHeader, file_number) == 72);
    assert!(core::mem::offset_of!(ControlHeader, file_born_ns) == 80);
    assert!(APPENDED_OFFSET == 128 && DURABLE_OFFSET == 256);
    assert!(WINDOW_BASE_OFFSET == 384 && PREPARED_UNTIL_OFFSET == 512);
    assert!(DURABLE_EVENT_OFFSET == 896 && STATE_OFFSET == 1024);
    assert!(
        HEARTBEAT_NS_OFFSET == 1152
            && PANICKED_OFFSET == 1536
            && FEED_OFFSET == 1664
            && FEED_OFFSET + 8 <= CONTROL_BYTES
    );
    assert!(LogState::Starting as u32 == 1 && LogState::Stopped as u32 == 4);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_page_is_known_from_a_copy_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CONTROL_FILE);
        let unnamed = File::create(folder.path().join("control.new")).unwrap();
        let page = ControlHeader::zeroed().in_file(&unnamed).unwrap();
        fs::rename(folder.path().join("control.new"), &path).unwrap();
        fs::write(&path, bytemuck::bytes_of(&page)).unwrap();
        let own = File::open(&path).unwrap();
        assert_eq!(ControlHeader::read(&own).unwrap(), Some(page));
        assert!(!page.is_copied_to(&own).unwrap());
        let copy = folder.path().join("copy");
        // File systems tell times by a clock of some milliseconds.
        let copy = loop {
            let _none = fs::remove_file(&copy);
            fs::copy(&path, &copy).unwrap();
            let made = File::open(&copy).unwrap();
            if page.file_born_ns == 0 || identify(&made).unwrap().1 != page.file_born_ns {
                break made;
            }
        };
        assert!(page.is_copied_to(&copy).unwrap());
        // A number that was used before may come back, and some file systems give another one; a time stays.
        let renumbered = ControlHeader { file_number: page.file_number + 1, ..page };
        assert_eq!(renumbered.is_copied_to(&own).unwrap(), page.file_born_ns == 0);
        if page.file_born_ns != 0 {
            let later = ControlHeader { file_born_ns: page.file_born_ns - 1, ..page };
            assert!(later.is_copied_to(&own).unwrap());
        }
        let unknown = ControlHeader { file_born_ns: 0, ..page };
        let unknown_renumbered = ControlHeader { file_born_ns: 0, ..renumbered };
        assert!(unknown_renumbered.is_copied_to(&own).unwrap());
        assert!(!unknown.is_copied_to(&own).unwrap() && unknown.is_copied_to(&copy).unwrap());
        let of_before = ControlHeader { file_number: 0, file_born_ns: 0, ..page };
        assert!(!of_before.is_copied_to(&copy).unwrap());
    }
}
