//! Memory of the kind that the live window is made of: a mapped file of shared memory, every page
//! present and writable. Called by [`super::append`], which compares the log with a bare copy into it.
#![allow(unsafe_code, reason = "mapping a file is unsafe, and the kind of memory is the point")]

use std::io;
use std::path::Path;
use std::thread;

use memmap2::{Advice, MmapMut, MmapOptions};

const PAGE_BYTES: usize = 4096;

/// A ring of mapped bytes.
pub(super) struct SharedMemory {
    map: MmapMut,
    next: usize,
}

impl SharedMemory {
    /// Maps `bytes` bytes of a new file without a name in `folder`.
    ///
    /// # Errors
    /// As the system says; no room above all.
    pub(super) fn new(folder: &Path, bytes: u64) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: the file has no name, so that nobody else can map, change or shorten it, and this
        // process maps it once; its space is taken, so that no access finds none.
        let mut map = unsafe { MmapOptions::new().len(length).map_mut(&file)? };
        if map.advise(Advice::PopulateWrite).is_err() {
            // Older kernels do not know it.
            map.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 0);
        }
        Ok(Self { map, next: 0 })
    }

    /// The next `bytes` bytes of the ring, zeroed by another thread. The window is not, since it is recycled as
    /// it is; but without it a copy takes a tenth longer, and a yardstick is to be as short as it can be.
    pub(super) fn next(&mut self, bytes: usize) -> &mut [u8] {
        if self.next + bytes > self.map.len() {
            self.next = 0;
        }
        let part = &mut self.map[self.next..self.next + bytes];
        self.next += bytes;
        thread::scope(|scope| {
            scope.spawn(|| part.fill(0));
        });
        part
    }
}
