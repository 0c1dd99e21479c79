//! The memory of the live window: its file, mapped where large pages can be. Made by
//! [`Window::map`](super::Window::map).
#![allow(unsafe_code, reason = "memory is mapped and taken apart by hand")]

use std::{ffi::c_void, fs::File, hint::black_box, io, ptr, slice, sync::Arc};

use rustix::{
    io::Errno,
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap},
};

use crate::huge_pages::HUGE_PAGE_BYTES;

/// No page is smaller: what is reserved begins at a multiple of it, and is touched once per so many bytes when the
/// kernel cannot pre-fault.
const PAGE_BYTES: usize = 4096;

/// `MADV_COLLAPSE` of the kernel, which not every C library names.
const COLLAPSE: i32 = 25;

/// What was reserved of this process's addresses, in which a mapping lies.
struct Room {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: the pointer is to memory that belongs to this value and to no thread; nothing is done by it but to give
// the room back, when nobody else has this value.
unsafe impl Send for Room {}
// SAFETY: likewise.
unsafe impl Sync for Room {}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: the room is this value's, reserved by who made it; nobody has a reference into it any more, as
        // whoever uses a pointer keeps this value.
        let unmapped = unsafe { munmap(self.start, self.bytes) };
        debug_assert!(unmapped.is_ok(), "the window's memory cannot be given back: {unmapped:?}");
    }
}

/// A file that is mapped shared, to be written, beginning at a multiple of [`HUGE_PAGE_BYTES`], for who has it alone.
pub(super) struct Mapping(SharedMapping);

/// The same for who has it beside others. Where it lies is part of this value: the writer of the log looks it up
/// several times per frame.
#[derive(Clone)]
pub(super) struct SharedMapping {
    start: *mut u8,
    bytes: u64,
    /// Keeps it mapped.
    _room: Arc<Room>,
}

// SAFETY: the pointer is to memory that belongs to no thread and stays mapped as long as `_room` is kept; what is done
// through it by several threads is for their callers to say.
unsafe impl Send for SharedMapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of a file that has them all.
    pub(super) fn new(file: &File, bytes: u64) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let length = usize::try_from(bytes).map_err(too_large)?;
        // Memory is reserved by whole pages, so this is room for a huge page's beginning and all behind it.
        let room_bytes =
            length.checked_add(HUGE_PAGE_BYTES - PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let reserved = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping anywhere touches nobody's memory.
        let room =
            unsafe { mmap_anonymous(ptr::null_mut(), room_bytes, ProtFlags::empty(), reserved) }?;
        let padding = room.addr().next_multiple_of(HUGE_PAGE_BYTES) - room.addr();
        // SAFETY: the room begins at a page, so that the padding is at most what it is larger than `length` by.
        let start = unsafe { room.byte_add(padding) };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: `length` bytes from `start` on lie in the room, which was reserved above and is used for
        // nothing else, so that replacing a part of it takes nobody's memory. Where that fails, the part may be
        // somebody else's already: the room is then given up and never unmapped.
        let start =
            unsafe { mmap(start, length, access, MapFlags::SHARED | MapFlags::FIXED, file, 0) }?;
        let room = Arc::new(Room { start: room, bytes: room_bytes });
        Ok(Self(SharedMapping { start: start.cast(), bytes, _room: room }))
    }

    /// Joins the pages that the file has to huge ones, if the system does that, which it does in shared memory without
    /// being mounted for it: a direct write then takes a few long runs of memory in the place of many short ones, for
    /// which a virtual disk may need twice as long.
    ///
    /// # Errors
    /// Of the kernel, which refuses it before Linux 6.1, for a file on a disk, where system or process are not to have
    /// huge pages, and where none are free; some may be joined then.
    pub(super) fn join(&mut self) -> io::Result<()> {
        let length = self.0.bytes as usize;
        let mut more_tries = 0..2;
        loop {
            // SAFETY: the mapping is `length` bytes from `start` on. Joining pages changes no byte.
            if unsafe { libc::madvise(self.0.start.cast(), length, COLLAPSE) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            // Else somebody held a page for a moment.
            if error.kind() != io::ErrorKind::WouldBlock || more_tries.next().is_none() {
                return Err(error);
            }
        }
    }

    /// Makes every page present and writable.
    pub(super) fn populate(&mut self) -> io::Result<()> {
        match self.make_present() {
            // Kernels before 5.14 do not know it, and some sandboxes refuse it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
                self.touch();
                Ok(())
            }
            present => Ok(present?),
        }
    }

    fn make_present(&mut self) -> Result<(), Errno> {
        let length = self.0.bytes as usize;
        // SAFETY: the mapping is `length` bytes from `start` on. Making pages present changes no byte.
        unsafe { madvise(self.0.start.cast(), length, Advice::LinuxPopulateWrite) }
    }

    /// Makes every page present by a store that changes nothing, hidden from the compiler, which would leave it out.
    fn touch(&mut self) {
        for byte in self.content().iter_mut().step_by(PAGE_BYTES) {
            *byte = black_box(*byte);
        }
    }

    /// All of it.
    pub(super) fn content(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is so many bytes, which have no invalid values. Nobody else in this process has a
        // reference into it: `self` is borrowed exclusively, and is not shared yet. Other processes map the file
        // read-only.
        unsafe { slice::from_raw_parts_mut(self.0.start, self.0.bytes as usize) }
    }

    /// For several owners, who agree on who touches what of it.
    pub(super) fn share(self) -> SharedMapping {
        self.0
    }
}

impl SharedMapping {
    /// Bytes of it.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where `position` lies, for `length` bytes that do not cross the mapping's end.
    #[inline]
    pub(super) fn pointer(&self, position: u64, length: u64) -> *mut u8 {
        self.pointer_at(position % self.bytes, length)
    }

    /// As [`SharedMapping::pointer`], by the offset in the mapping.
    #[inline]
    pub(super) fn pointer_at(&self, offset: u64, length: u64) -> *mut u8 {
        if offset >= self.bytes || length > self.bytes - offset {
            refuse(offset, length);
        }
        // SAFETY: `offset` is below `bytes`, the length of the mapping.
        unsafe { self.start.add(offset as usize) }
    }
}

/// By itself, and given numbers: a message that refers to them would have them in memory for every frame.
#[cold]
fn refuse(offset: u64, length: u64) -> ! {
    panic!("{length} bytes at offset {offset} cross the window's end");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::live::reserve;
    use crate::skipped::skipped;
    use std::io::Write as _;
    use touchline_protocol::log::place::SHARED_MEMORY;

    const BYTES: u64 = 2 * HUGE_PAGE_BYTES as u64;

    /// What this process has mapped of a file, as the kernel tells it.
    fn maps_of(path: &std::path::Path) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.ends_with(path.to_str().unwrap())).count()
    }

    #[test]
    fn a_file_is_mapped_where_huge_pages_can_be_and_keeps_its_bytes() {
        for huge in [false, true] {
            // Where pages can be joined, if anywhere.
            let shared_memory = tempfile::NamedTempFile::new_in(SHARED_MEMORY);
            let files = [tempfile::NamedTempFile::new(), shared_memory];
            files.into_iter().flatten().for_each(|file| keeps_its_bytes(file, huge));
        }
    }

    fn keeps_its_bytes(mut file: tempfile::NamedTempFile, huge: bool) {
        reserve(file.as_file(), BYTES).unwrap();
        file.write_all(&[7; 100]).unwrap();
        let mut mapping = Mapping::new(file.as_file(), BYTES).unwrap();
        assert!(mapping.content().as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES));
        let is_joined = huge && mapping.join().is_ok();
        mapping.populate().unwrap();
        assert_eq!(written(&mut mapping), BYTES, "a first store would be a fault");
        if is_joined {
            assert_eq!(of_mapping(&mut mapping, "ShmemPmdMapped:"), BYTES);
        }
        assert_eq!(mapping.content().len() as u64, BYTES);
        assert_eq!(mapping.content()[..101], [[7; 100].as_slice(), &[0]].concat());
        mapping.content()[BYTES as usize - 1] = 9;
        assert_eq!(std::fs::read(file.path()).unwrap().last(), Some(&9));
        assert_eq!(maps_of(file.path()), 1);
        drop(mapping);
        assert_eq!(maps_of(file.path()), 0);
    }

    /// Bytes that the kernel counts under `what` for the mapping.
    fn of_mapping(mapping: &mut Mapping, what: &str) -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let begin = format!("{:x}-", mapping.content().as_ptr().addr());
        let lines = smaps.lines().skip_while(|line| !line.starts_with(&begin));
        let found = lines.into_iter().find_map(|line| line.strip_prefix(what)).unwrap();
        found.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Bytes in pages that were written through the mapping, or made to be.
    fn written(mapping: &mut Mapping) -> u64 {
        of_mapping(mapping, "Shared_Dirty:") + of_mapping(mapping, "Private_Dirty:")
    }

    #[test]
    fn pages_of_shared_memory_are_joined() {
        let Ok(file) = tempfile::NamedTempFile::new_in(SHARED_MEMORY) else {
            return skipped("shared memory");
        };
        // Nothing is joined to what the file does not have yet.
        reserve(file.as_file(), BYTES).unwrap();
        let mut mapping = Mapping::new(file.as_file(), BYTES).unwrap();
        match mapping.join() {
            Ok(()) => assert_eq!(of_mapping(&mut mapping, "ShmemPmdMapped:"), BYTES),
            Err(error) => skipped(format_args!("huge pages to be joined to ({error})")),
        }
    }

    #[test]
    fn pages_that_the_kernel_does_not_make_present_are_touched() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 100]).unwrap();
        file.as_file().set_len(BYTES).unwrap();
        let mut mapping = Mapping::new(file.as_file(), BYTES).unwrap();
        assert_eq!(of_mapping(&mut mapping, "Rss:"), 0);
        mapping.touch();
        assert_eq!(written(&mut mapping), BYTES);
        assert_eq!(mapping.content()[..101], [[7; 100].as_slice(), &[0]].concat());
    }

    #[test]
    fn pages_that_the_file_does_not_have_are_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(BYTES).unwrap();
        let mut mapping = Mapping::new(file.as_file(), BYTES).unwrap();
        file.as_file().set_len(BYTES / 2).unwrap();
        match mapping.make_present() {
            // Which touches them, at once.
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
                skipped("kernel that makes pages present");
            }
            present => assert_eq!(present, Err(Errno::FAULT)),
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Mapping::new(file.as_file(), u64::MAX - 4096).is_err());
        let read_only = File::open(file.path()).unwrap();
        assert!(Mapping::new(&read_only, BYTES).is_err());
        assert_eq!(maps_of(file.path()), 0, "nothing of the file is left mapped");
    }
}
