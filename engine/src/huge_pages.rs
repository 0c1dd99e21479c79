//! An allocator that puts large blocks on huge pages, once that is switched on. Installed by the
//! executables; switched on by an engine before it makes its core, whose orders, levels and tables are a
//! few large blocks that are accessed at random: on small pages an access to a large book is mostly the
//! walk through page tables. The core writes to all of its memory when it makes it, so that none is
//! touched for the first time later.
//!
//! Large blocks come from the system. Smaller ones come from mimalloc: an order over REST takes two dozen
//! of them and gives them back, with many orders under way at a time, which the lists that the system's
//! allocator keeps for each thread are too short for.
#![allow(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use mimalloc::MiMalloc;
use rustix::mm::{Advice, madvise};

/// Blocks from this size on begin at a multiple of it, and are advised.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Whether large blocks are advised.
static ON: AtomicBool = AtomicBool::new(false);

/// From now on large blocks, and the live windows of logs that are opened, are to lie on huge pages, or not.
/// What is allocated stays as it is. Without effect on blocks where [`HugePages`] is not installed, or the
/// system has no huge pages to give (`/sys/kernel/mm/transparent_hugepage/enabled` is `never`), and on a
/// window outside shared memory.
pub fn use_huge_pages(on: bool) {
    // SYNC: orders nothing; a block that is allocated meanwhile is as good on either.
    ON.store(on, Ordering::Relaxed);
}

/// Whether large memory is to lie on huge pages: what is not allocated, but mapped, asks for itself.
pub(crate) fn are_huge_pages_used() -> bool {
    // SYNC: as above.
    ON.load(Ordering::Relaxed)
}

/// What is asked of the system for a large block: computed from the layout alone, so that it is given back
/// as it was taken, whatever was switched in between.
fn aligned(layout: Layout) -> Layout {
    layout.align_to(HUGE_PAGE_BYTES).unwrap_or(layout)
}

/// The two allocators, of which the system's is advised.
#[derive(Clone, Copy, Debug, Default)]
pub struct HugePages;

// SAFETY: blocks come from one of two allocators, which the size in the layout alone decides, with the
// caller's layout or a stricter one that is computed from it alone, so that giving back uses the same;
// advising neither allocates nor unwinds, and changes no byte.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() < HUGE_PAGE_BYTES {
            // SAFETY: the caller keeps the contract, which is the same.
            return unsafe { MiMalloc.alloc(layout) };
        }
        // SAFETY: the caller keeps the contract; the size is the caller's.
        let block = unsafe { System.alloc(aligned(layout)) };
        let whole_pages = layout.size() & !(HUGE_PAGE_BYTES - 1);
        if whole_pages > 0 && !block.is_null() && are_huge_pages_used() {
            // SAFETY: the range is within the block, which nobody else has yet. Refused advice leaves
            // small pages.
            let _refused =
                unsafe { madvise(block.cast(), whole_pages, Advice::LinuxHugepage) }.is_err();
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < HUGE_PAGE_BYTES {
            // SAFETY: the caller keeps the contract, which is the same.
            return unsafe { MiMalloc.alloc_zeroed(layout) };
        }
        // SAFETY: the caller keeps the contract, which is the same.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block has so many bytes, and nobody else has it yet.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if layout.size() < HUGE_PAGE_BYTES {
            // SAFETY: the caller keeps the contract, and `alloc` has asked the same allocator.
            return unsafe { MiMalloc.dealloc(pointer, layout) };
        }
        // SAFETY: the caller keeps the contract; `alloc` has asked for the same layout.
        unsafe { System.dealloc(pointer, aligned(layout)) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size().max(size) < HUGE_PAGE_BYTES {
            // SAFETY: the caller keeps the contract, which is the same.
            return unsafe { MiMalloc.realloc(pointer, layout, size) };
        }
        // SAFETY: the caller has made sure that such a layout is valid.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the size is not zero, as the caller has made sure.
        let block = unsafe { self.alloc(wanted) };
        if !block.is_null() {
            // SAFETY: both blocks have so many bytes, and the new one is not the old one.
            unsafe { block.copy_from_nonoverlapping(pointer, size.min(layout.size())) };
            // SAFETY: the caller gives the old block up.
            unsafe { self.dealloc(pointer, layout) };
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIGN: usize = 16;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, ALIGN).unwrap()
    }

    #[test]
    fn a_block_keeps_its_bytes_from_one_allocator_to_the_other_and_back() {
        let sizes = [100, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES, 5000, 100];
        let kept = |block: *const u8| {
            // SAFETY: the block has at least a hundred bytes, all of them written.
            unsafe { std::slice::from_raw_parts(block, 100) }.iter().all(|&byte| byte == 0xa5)
        };
        // SAFETY: no size is zero.
        let mut block = unsafe { HugePages.alloc(layout(sizes[0])) };
        // SAFETY: the block has a hundred bytes.
        unsafe { block.write_bytes(0xa5, 100) };
        for pair in sizes.windows(2) {
            // SAFETY: the block was made with this layout, and is used no more by its old address.
            block = unsafe { HugePages.realloc(block, layout(pair[0]), pair[1]) };
            let align = if pair[1] < HUGE_PAGE_BYTES { ALIGN } else { HUGE_PAGE_BYTES };
            assert!(block.addr().is_multiple_of(align) && kept(block), "{pair:?}");
        }
        // SAFETY: as above.
        unsafe { HugePages.dealloc(block, layout(100)) };
        // SAFETY: the size is not zero.
        let zeroed = unsafe { HugePages.alloc_zeroed(layout(5000)) };
        // SAFETY: the block has so many bytes, all of them written.
        assert!(unsafe { std::slice::from_raw_parts(zeroed, 5000) }.iter().all(|&byte| byte == 0));
        // SAFETY: as above.
        unsafe { HugePages.dealloc(zeroed, layout(5000)) };
    }
}
