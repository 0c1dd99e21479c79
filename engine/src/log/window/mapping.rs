//! The memory of the live window: its file, mapped where large pages can be. Made by
//! [`Window::map`](super::Window::map).
#![allow(unsafe_code, reason = "memory is mapped and taken apart by hand")]

use std::{ffi::c_void, fs::File, hint::black_box, io, ptr, slice};

use rustix::{
    io::Errno,
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap},
};

use crate::huge_pages::HUGE_PAGE_BYTES;

/// Touched once per this many bytes when the kernel cannot pre-fault; no page is smaller.
const PAGE_BYTES: usize = 4096;

/// `MADV_COLLAPSE` of the kernel, which not every C library names.
const COLLAPSE: i32 = 25;

/// A file that is mapped shared, to be written, beginning at a multiple of [`HUGE_PAGE_BYTES`].
pub(super) struct Mapping {
    /// What was reserved, in which the mapping lies.
    room: *mut c_void,
    room_bytes: usize,
    start: *mut u8,
    bytes: u64,
}

// SAFETY: the pointers are to memory that belongs to this value and to no thread; what is done through
// them by several threads is for their callers to say.
unsafe impl Send for Mapping {}
// SAFETY: likewise; nothing here writes the memory through a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of a file that has them all.
    pub(super) fn new(file: &File, bytes: u64) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let length = usize::try_from(bytes).map_err(too_large)?;
        let room_bytes = length.checked_add(HUGE_PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let reserved = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping anywhere touches nobody's memory.
        let room =
            unsafe { mmap_anonymous(ptr::null_mut(), room_bytes, ProtFlags::empty(), reserved) }?;
        let padding = room.addr().next_multiple_of(HUGE_PAGE_BYTES) - room.addr();
        // SAFETY: the padding is less than a huge page, by which the room is larger than `length`.
        let start = unsafe { room.byte_add(padding) };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: `length` bytes from `start` on lie in the room, which was reserved above and is used for
        // nothing else, so that replacing a part of it takes nobody's memory. Where that fails, the part may be
        // somebody else's already: the room is then given up and never unmapped.
        let start =
            unsafe { mmap(start, length, access, MapFlags::SHARED | MapFlags::FIXED, file, 0) }?;
        Ok(Self { room, room_bytes, start: start.cast(), bytes })
    }

    /// Makes every page present and writable, and has them joined to huge ones if that is wanted and the system
    /// joins them, which it does in shared memory without being mounted for it: a direct write then takes a few
    /// long runs of memory in the place of many short ones, for which a virtual disk may need twice as long.
    pub(super) fn populate(&mut self, huge: bool) -> io::Result<()> {
        let length = self.bytes as usize;
        if huge {
            // SAFETY: the mapping is `length` bytes from `start` on. Joining pages changes no byte. It is refused
            // where the kernel is older than 6.1, the file lies on a disk, or no huge pages are free: then it goes
            // without.
            let _refused = unsafe { libc::madvise(self.start.cast(), length, COLLAPSE) };
        }
        // SAFETY: the mapping is `length` bytes from `start` on. Making pages present changes no byte.
        let populated = unsafe { madvise(self.start.cast(), length, Advice::LinuxPopulateWrite) };
        match populated {
            // Kernels before 5.14 do not know it, and some sandboxes refuse it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
                for byte in self.content().iter_mut().step_by(PAGE_BYTES) {
                    // A store that changes nothing, hidden from the compiler, which would leave it out.
                    *byte = black_box(*byte);
                }
                Ok(())
            }
            populated => Ok(populated?),
        }
    }

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

    /// As [`Mapping::pointer`], by the offset in the mapping.
    #[inline]
    pub(super) fn pointer_at(&self, offset: u64, length: u64) -> *mut u8 {
        assert!(
            offset < self.bytes && length <= self.bytes - offset,
            "{length} bytes at offset {offset} cross the window's end"
        );
        // SAFETY: `offset` is below `bytes`, the length of the mapping.
        unsafe { self.start.add(offset as usize) }
    }

    /// All of it, for whoever shares it with nobody in this process.
    pub(super) fn content(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is so many bytes, which have no invalid values. Nobody else in this process has a
        // reference into it: `self` is borrowed exclusively, and who is lent a part of it by a pointer shares
        // this value. Other processes map the file read-only.
        unsafe { slice::from_raw_parts_mut(self.start, self.bytes as usize) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the room is this value's, which `new` has reserved; nobody has a reference into it any more, as
        // whoever uses a pointer keeps this value.
        let unmapped = unsafe { munmap(self.room, self.room_bytes) };
        debug_assert!(unmapped.is_ok(), "the window's memory cannot be given back: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        file.write_all(&[7; 100]).unwrap();
        file.as_file().set_len(BYTES).unwrap();
        let mut mapping = Mapping::new(file.as_file(), BYTES).unwrap();
        assert!(mapping.pointer(3 * BYTES, BYTES).addr().is_multiple_of(HUGE_PAGE_BYTES));
        mapping.populate(huge).unwrap();
        assert_eq!(mapping.content().len() as u64, BYTES);
        assert_eq!(mapping.content()[..101], [[7; 100].as_slice(), &[0]].concat());
        mapping.content()[BYTES as usize - 1] = 9;
        assert_eq!(std::fs::read(file.path()).unwrap().last(), Some(&9));
        assert_eq!(maps_of(file.path()), 1);
        drop(mapping);
        assert_eq!(maps_of(file.path()), 0);
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Mapping::new(file.as_file(), u64::MAX - 4096).is_err());
        let read_only = File::open(file.path()).unwrap();
        assert!(Mapping::new(&read_only, BYTES).is_err());
        assert_eq!(maps_of(file.path()), 0, "nothing of it is left mapped");
    }
}
