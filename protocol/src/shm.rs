//! Shared mappings of descriptors, seen as atomic words. Used by the rings, the control page and
//! the log's live window; the only place where mapped memory becomes references.
//!
//! A [`Region`] may be written, a [`ReadOnlyRegion`] only loaded from. Both hand out [`Shared`] and
//! [`SharedReadOnly`] handles: bounds and alignment are checked when a handle is made and never
//! again, and a handle keeps its mapping alive.
//!
//! Memory that a peer may shrink would end this process by SIGBUS at the next access. So memory
//! meant for a peer is a sealed memfd without a name, and a received one is refused unless its size
//! is as agreed and it is sealed against shrinking.
#![allow(unsafe_code, reason = "mapped memory is reached through pointers")]

pub mod descriptors;

use std::{
    fs::File,
    io,
    ops::Deref,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr::NonNull,
    sync::Arc,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create},
    io::Errno,
};

use crate::sync::{ReadOnlyU32, ReadOnlyU64, ReadOnlyWords};

/// Touched once per this many bytes when the kernel cannot pre-fault; no page is smaller.
const PAGE_BYTES: usize = 4096;

/// Why a mapping or a handle could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ShmError {
    /// A call of the operating system failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The descriptor does not have the agreed size.
    #[error("shared memory has {found} bytes, {expected} expected")]
    Size {
        /// Agreed size in bytes.
        expected: usize,
        /// Size in bytes by fstat (negative: no size).
        found: i64,
    },
    /// The descriptor is no sealed memfd: whoever holds it too could shrink it under us.
    #[error("shared memory is not sealed against shrinking (seals: {seals:#x})")]
    NotSealed {
        /// Seals as F_GET_SEALS gives them; 0 also for what cannot have seals.
        seals: u32,
    },
    /// A handle reaches beyond the mapping or is misaligned.
    #[error("{bytes} bytes at offset {offset} do not lie aligned in a mapping of {length} bytes")]
    Range {
        /// Offset in bytes.
        offset: usize,
        /// Length in bytes.
        bytes: usize,
        /// Length of the mapping in bytes.
        length: usize,
    },
}

fn system(what: &'static str) -> impl FnOnce(Errno) -> ShmError {
    move |errno| ShmError::System { what, source: errno.into() }
}

/// What holders of a new memfd's descriptor, other than this process's own mapping, may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAccess {
    /// Only read: no write, no writable mapping, however the descriptor is opened again.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

/// A shared mapping that may be read and written. Clones share the mapping.
#[derive(Clone)]
pub struct Region {
    map: Arc<MmapRaw>,
}

impl Region {
    /// Makes a memfd of `length` bytes (zeros, all pages present), maps it, and seals it: its size
    /// is fixed for ever, and with [`PeerAccess::ReadOnly`] this mapping stays the only writable
    /// one. `name` is only seen in /proc. The descriptor is what a peer is to be given.
    ///
    /// # Errors
    /// If the system refuses a step.
    pub fn create(
        name: &str,
        length: usize,
        peer: PeerAccess,
    ) -> Result<(Self, OwnedFd), ShmError> {
        let descriptor = new_memfd(name)?;
        ftruncate(&descriptor, length as u64).map_err(system("size of shared memory"))?;
        let region = Self::map(descriptor.as_fd(), length)?;
        let mut seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        if peer == PeerAccess::ReadOnly {
            // Refuses later writable mappings, but leaves ours, which is why it exists already.
            seals |= SealFlags::FUTURE_WRITE;
        }
        fcntl_add_seals(&descriptor, seals).map_err(system("sealing shared memory"))?;
        Ok((region, descriptor))
    }

    /// Maps a memfd that a peer made.
    ///
    /// # Errors
    /// If its size is not `length`, it is not sealed against shrinking, or may not be written.
    pub fn from_descriptor(descriptor: BorrowedFd<'_>, length: usize) -> Result<Self, ShmError> {
        check_received(descriptor, length)?;
        Self::map(descriptor, length)
    }

    /// Maps the first `length` bytes of a file opened for reading and writing. The caller sees to
    /// it that nobody shrinks the file while it is mapped, and that its space is reserved.
    ///
    /// # Errors
    /// If the file is shorter, or the system refuses.
    pub fn map_file(file: &File, length: usize) -> Result<Self, ShmError> {
        check_file(file, length)?;
        Self::map(file.as_fd(), length)
    }

    fn map(descriptor: BorrowedFd<'_>, length: usize) -> Result<Self, ShmError> {
        let map = MmapOptions::new()
            .len(length)
            .map_raw(&descriptor)
            .map_err(|source| ShmError::System { what: "writable mapping", source })?;
        let region = Self { map: Arc::new(map) };
        if !populated(&region.map, Advice::PopulateWrite)? {
            region.touch()?;
        }
        Ok(region)
    }

    /// Makes every page present and writable by a write that changes nothing.
    fn touch(&self) -> Result<(), ShmError> {
        for word in self.words(0, self.len() / 8)?.iter().step_by(PAGE_BYTES / 8) {
            // SYNC: orders nothing. The exchange of a value for itself is there to be a write (the
            // compiler may turn an addition of zero into a load); if it fails, somebody else's
            // value stands, and only this page's first touch stays to be paid later.
            let value = word.load(Ordering::Relaxed);
            let _ = word.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Length of the mapping in bytes.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether the mapping has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `count` 64-bit words from the byte `offset` on.
    ///
    /// # Errors
    /// If they do not lie within the mapping, or `offset` is not a multiple of 8.
    pub fn words(&self, offset: usize, count: usize) -> Result<Shared<[AtomicU64]>, ShmError> {
        Ok(Shared { target: words(&self.map, offset, count)?, map: Arc::clone(&self.map) })
    }

    /// The 64-bit word at the byte `offset`.
    ///
    /// # Errors
    /// If it does not lie within the mapping, or `offset` is not a multiple of 8.
    pub fn u64_at(&self, offset: usize) -> Result<Shared<AtomicU64>, ShmError> {
        Ok(Shared { target: place(&self.map, offset, 1)?, map: Arc::clone(&self.map) })
    }

    /// The 32-bit word at the byte `offset`.
    ///
    /// # Errors
    /// If it does not lie within the mapping, or `offset` is not a multiple of 4.
    pub fn u32_at(&self, offset: usize) -> Result<Shared<AtomicU32>, ShmError> {
        Ok(Shared { target: place(&self.map, offset, 1)?, map: Arc::clone(&self.map) })
    }
}

/// A shared mapping that may only be read. Clones share the mapping.
#[derive(Clone)]
pub struct ReadOnlyRegion {
    map: Arc<MmapRaw>,
}

impl ReadOnlyRegion {
    /// Maps a memfd that a peer made, or gave back.
    ///
    /// # Errors
    /// If its size is not `length`, or it is not sealed against shrinking.
    pub fn from_descriptor(descriptor: BorrowedFd<'_>, length: usize) -> Result<Self, ShmError> {
        check_received(descriptor, length)?;
        Self::map(descriptor, length)
    }

    /// Maps the first `length` bytes of a file opened for reading. The caller sees to it that
    /// nobody shrinks the file while it is mapped.
    ///
    /// # Errors
    /// If the file is shorter, or the system refuses.
    pub fn map_file(file: &File, length: usize) -> Result<Self, ShmError> {
        check_file(file, length)?;
        Self::map(file.as_fd(), length)
    }

    fn map(descriptor: BorrowedFd<'_>, length: usize) -> Result<Self, ShmError> {
        let map = MmapOptions::new()
            .len(length)
            .map_raw_read_only(&descriptor)
            .map_err(|source| ShmError::System { what: "read-only mapping", source })?;
        let region = Self { map: Arc::new(map) };
        if !populated(&region.map, Advice::PopulateRead)? {
            region.touch()?;
        }
        Ok(region)
    }

    /// Makes every page present by reading it.
    fn touch(&self) -> Result<(), ShmError> {
        let words = self.words(0, self.len() / 8)?;
        for first in (0..words.view().len()).step_by(PAGE_BYTES / 8) {
            words.view().copy_to(first, &mut [0]);
        }
        Ok(())
    }

    /// Length of the mapping in bytes.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether the mapping has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `count` 64-bit words from the byte `offset` on.
    ///
    /// # Errors
    /// If they do not lie within the mapping, or `offset` is not a multiple of 8.
    pub fn words(
        &self,
        offset: usize,
        count: usize,
    ) -> Result<SharedReadOnly<[AtomicU64]>, ShmError> {
        let target = words(&self.map, offset, count)?;
        Ok(SharedReadOnly(Shared { target, map: Arc::clone(&self.map) }))
    }

    /// The 64-bit word at the byte `offset`.
    ///
    /// # Errors
    /// If it does not lie within the mapping, or `offset` is not a multiple of 8.
    pub fn u64_at(&self, offset: usize) -> Result<SharedReadOnly<AtomicU64>, ShmError> {
        let target = place(&self.map, offset, 1)?;
        Ok(SharedReadOnly(Shared { target, map: Arc::clone(&self.map) }))
    }

    /// The 32-bit word at the byte `offset`.
    ///
    /// # Errors
    /// If it does not lie within the mapping, or `offset` is not a multiple of 4.
    pub fn u32_at(&self, offset: usize) -> Result<SharedReadOnly<AtomicU32>, ShmError> {
        let target = place(&self.map, offset, 1)?;
        Ok(SharedReadOnly(Shared { target, map: Arc::clone(&self.map) }))
    }
}

/// An atomic word, or a run of them, in a mapping that it keeps alive.
pub struct Shared<T: ?Sized> {
    target: NonNull<T>,
    map: Arc<MmapRaw>,
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `target` was made by `place` or `words` below: aligned, within the mapping, and
        // of an atomic type, for which every bit pattern is valid and which other threads and
        // processes may change under a shared reference. `map` keeps the mapping in place for at
        // least as long as the reference, which borrows `self`.
        unsafe { self.target.as_ref() }
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self { target: self.target, map: Arc::clone(&self.map) }
    }
}

// SAFETY: a handle is a shared reference to `T` and a counted reference to the mapping. The first
// may go to another thread if `T` is `Sync`; the second always may (`MmapRaw` is `Send + Sync`).
unsafe impl<T: ?Sized + Sync> Send for Shared<T> {}
// SAFETY: as above; `&Shared<T>` gives nothing but `&T` and further handles.
unsafe impl<T: ?Sized + Sync> Sync for Shared<T> {}

/// As [`Shared`], in a mapping without write permission: it gives views that only load.
pub struct SharedReadOnly<T: ?Sized>(Shared<T>);

impl<T: ?Sized> Clone for SharedReadOnly<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl SharedReadOnly<[AtomicU64]> {
    /// The words, to load from.
    #[inline]
    pub fn view(&self) -> ReadOnlyWords<'_> {
        ReadOnlyWords::new(&self.0)
    }
}

impl SharedReadOnly<AtomicU64> {
    /// The word, to load from.
    #[inline]
    pub fn view(&self) -> ReadOnlyU64<'_> {
        ReadOnlyU64::new(&self.0)
    }
}

impl SharedReadOnly<AtomicU32> {
    /// The word, to load from.
    #[inline]
    pub fn view(&self) -> ReadOnlyU32<'_> {
        ReadOnlyU32::new(&self.0)
    }
}

fn words(map: &MmapRaw, offset: usize, count: usize) -> Result<NonNull<[AtomicU64]>, ShmError> {
    Ok(NonNull::slice_from_raw_parts(place::<AtomicU64>(map, offset, count)?, count))
}

/// A pointer to `count` values of the atomic type `T` that lie aligned within `map`.
fn place<T>(map: &MmapRaw, offset: usize, count: usize) -> Result<NonNull<T>, ShmError> {
    let bytes = count.saturating_mul(size_of::<T>());
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= map.len());
    // The mapping begins at a page, so the offset alone decides the alignment.
    if !fits || !offset.is_multiple_of(align_of::<T>()) {
        return Err(ShmError::Range { offset, bytes, length: map.len() });
    }
    let start = NonNull::new(map.as_mut_ptr()).ok_or(ShmError::Range {
        offset,
        bytes,
        length: map.len(),
    })?;
    // SAFETY: `offset` is at most the length of the mapping, which is one allocation.
    Ok(unsafe { start.add(offset) }.cast())
}

fn new_memfd(name: &str) -> Result<OwnedFd, ShmError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the flag.
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    }
    .map_err(system("creating shared memory"))
}

fn check_received(descriptor: BorrowedFd<'_>, length: usize) -> Result<(), ShmError> {
    // Seals first: without them the size means nothing.
    let seals = match fcntl_get_seals(descriptor) {
        Ok(seals) => seals,
        Err(Errno::INVAL) => SealFlags::empty(),
        Err(errno) => return Err(system("seals of shared memory")(errno)),
    };
    if !seals.contains(SealFlags::SHRINK) {
        return Err(ShmError::NotSealed { seals: seals.bits() });
    }
    let found = fstat(descriptor).map_err(system("size of shared memory"))?.st_size;
    if usize::try_from(found) != Ok(length) {
        return Err(ShmError::Size { expected: length, found });
    }
    Ok(())
}

fn check_file(file: &File, length: usize) -> Result<(), ShmError> {
    let found = fstat(file).map_err(system("size of the file"))?.st_size;
    if usize::try_from(found).is_ok_and(|found| found >= length) {
        Ok(())
    } else {
        Err(ShmError::Size { expected: length, found })
    }
}

/// Asks the kernel to make every page present; false if it does not know how (before 5.14, or
/// forbidden), so that each page has to be touched. Anything else that goes wrong here, such as no
/// memory left, would be SIGBUS at first touch.
fn populated(map: &MmapRaw, advice: Advice) -> Result<bool, ShmError> {
    let Err(source) = map.advise(advice) else { return Ok(true) };
    match Errno::from_io_error(&source) {
        Some(Errno::INVAL | Errno::NOSYS | Errno::PERM) => Ok(false),
        _ => Err(ShmError::System { what: "pre-faulting shared memory", source }),
    }
}

#[cfg(test)]
mod tests;
