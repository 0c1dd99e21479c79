//! The executable's allocator. It counts, so that the memory an order book takes is what it takes and
//! no estimate, and it asks for huge pages below large blocks, as a host that is prepared for trading
//! gives them: without, a random access to a large book is mostly the walk through page tables. All
//! engines that are compared get the same. Read by [`crate::core`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::mm::{Advice, madvise};

/// Bytes handed out and not given back. Loaded and stored rather than added to: an atomic addition
/// costs several times more and would be charged to engines that allocate. Exact as long as one thread
/// allocates, which holds while memory is measured.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Whether blocks may lie on small pages.
static SMALL_PAGES: AtomicBool = AtomicBool::new(false);

/// Blocks from this size on begin at a multiple of it, and are advised.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes that are allocated now; 0 where [`Counting`] is not installed.
#[must_use]
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// From now on no block is advised.
pub fn use_small_pages() {
    SMALL_PAGES.store(true, Ordering::Relaxed);
}

fn add(bytes: usize) {
    LIVE.store(LIVE.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
}

/// What is asked of the system.
fn aligned(layout: Layout) -> Layout {
    if layout.size() < HUGE_PAGE {
        return layout;
    }
    layout.align_to(HUGE_PAGE).unwrap_or(layout)
}

/// The system's allocator, counted and advised.
#[derive(Debug)]
pub struct Counting;

// SAFETY: blocks come from the system's allocator, with the caller's layout or a stricter one that is
// computed from it alone, so that giving back uses the same; counting in an atomic and advising neither
// allocate nor unwind, and advice changes no byte.
#[allow(unsafe_code, reason = "the only way to see every allocation is to be the allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract; the size is the caller's.
        let block = unsafe { System.alloc(aligned(layout)) };
        let whole_pages = layout.size() & !(HUGE_PAGE - 1);
        if whole_pages > 0 && !block.is_null() && !SMALL_PAGES.load(Ordering::Relaxed) {
            // SAFETY: the range is within the block, which nobody else has yet. Refused advice leaves
            // small pages.
            let _refused =
                unsafe { madvise(block.cast(), whole_pages, Advice::LinuxHugepage) }.is_err();
        }
        block
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(layout.size().wrapping_neg());
        // SAFETY: the caller keeps the contract; `alloc` has asked for the same layout.
        unsafe { System.dealloc(pointer, aligned(layout)) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size().max(size) < HUGE_PAGE {
            add(size.wrapping_sub(layout.size()));
            // SAFETY: the caller keeps the contract, which is the same.
            return unsafe { System.realloc(pointer, layout, size) };
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
