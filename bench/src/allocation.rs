//! The executable's allocator: the engine's, which puts large blocks on huge pages as a host that is
//! prepared for trading gives them, and a count on top of it, so that the memory an order book takes is
//! what it takes and no estimate. All engines that are compared get the same. Read by [`crate::core`].

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};

use touchline_engine::huge_pages::HugePages;

/// Bytes handed out and not given back. Loaded and stored rather than added to: an atomic addition
/// costs several times more and would be charged to engines that allocate. Exact as long as one thread
/// allocates, which holds while memory is measured.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Bytes that are allocated now; 0 where [`Counting`] is not installed.
#[must_use]
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

fn add(bytes: usize) {
    LIVE.store(LIVE.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
}

/// The engine's allocator, counted.
#[derive(Debug)]
pub struct Counting;

// SAFETY: every call goes to the engine's allocator unchanged; counting in an atomic neither allocates nor
// unwinds.
#[allow(unsafe_code, reason = "the only way to see every allocation is to be the allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { HugePages.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(layout.size().wrapping_neg());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { HugePages.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size.wrapping_sub(layout.size()));
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { HugePages.realloc(pointer, layout, size) }
    }
}
