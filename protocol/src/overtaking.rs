//! How bytes are read that may be overwritten meanwhile, so that no overwritten byte is ever believed:
//! the one rule between the keeper, which recycles segments of the live window, and the readers that
//! copy out of it. Used by the log's reader and by the engine's window; `tests/loom_window.rs` explores
//! every interleaving of it.
//!
//! Positions below `base` are not in the window any more. No reader is ever waited for:
//!
//! ```text
//!   keeper                              reader of the bytes at `position`
//!   base := the end of the segment      if position < base: they are gone
//!   fence                               copy them, word by word
//!   clear its beginning                 fence
//!   prepared := its new end             if position < base: throw the copy away
//!
//!   writer
//!   load prepared, fence
//!   write into the segment
//! ```
//!
//! The writer needs that fence of its own: by it, a reader that sees the writer's words also sees what the keeper has
//! stored in `base` before.

use crate::sync::{AtomicU64, Ordering, ReadOnlyU64, ReadOnlyWords, fence};

/// The keeper's part: says that everything below `to` is about to be overwritten. Only afterwards may it
/// be.
pub fn retract(base: &AtomicU64, to: u64) {
    // SYNC: pairs with the fence in `copy_out`: whoever sees a word that is stored after this fence
    // also sees this store, and throws its copy away.
    base.store(to, Ordering::Release);
    fence(Ordering::SeqCst);
}

/// The writer's part: how far the keeper has handed over what it retracted.
#[inline]
#[must_use]
pub fn take_over(prepared: &AtomicU64) -> u64 {
    // SYNC: pairs with the keeper's release store behind its clearing.
    let end = prepared.load(Ordering::Acquire);
    // SYNC: pairs with the fence in `copy_out`, as the one in `retract` does.
    fence(Ordering::Release);
    end
}

/// The reader's part: copies `into.len()` words from index `first` on, which stand for the bytes from
/// `position` on; false, and `into` means nothing, if the keeper was past `position` or came past it
/// meanwhile. `between` runs after the copy and before the last look at `base`.
///
/// The caller has seen, by an acquire load, that the bytes were published, and they lie in what the
/// keeper retracts at once. Who is told that they are gone also sees what the keeper did before it retracted
/// them: how far it had come on disk, above all.
///
/// # Panics
/// If the words do not reach that far.
pub fn copy_out(
    words: ReadOnlyWords<'_>,
    first: usize,
    into: &mut [u64],
    base: ReadOnlyU64<'_>,
    position: u64,
    between: impl FnOnce(),
) -> bool {
    // SYNC: an early look, to spare a useless copy. As below, an acquire load for who is told that the bytes
    // are gone: it pairs with the release store in `retract`.
    if position < base.load_acquire() {
        return false;
    }
    words.copy_to(first, into);
    between();
    // SYNC: pairs with the fences in `retract` and `take_over`: if a word of the copy came from the
    // overwriting, then the load below sees the `base` that was stored before it.
    fence(Ordering::Acquire);
    position >= base.load_acquire()
}
