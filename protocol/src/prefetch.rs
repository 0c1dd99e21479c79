//! A cache line asked for ahead of its use. Called by [`crate::sync`] for the words of shared memory.
//!
//! An ordinary load asks for its line, too, but holds up all that comes behind it in the processor until the line
//! has come; this does not.
#![allow(unsafe_code, reason = "the one way to the processor's instruction")]

/// Asks for the cache line that `place` begins in, to be read.
#[inline]
pub(crate) fn to_read<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is in every x86-64 processor. It reads no value, writes none, and ignores an
        // address that is not mapped; this one is that of a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    // Where there is no such instruction in the language, the line comes when it is needed.
    #[cfg(not(target_arch = "x86_64"))]
    let _not_asked_for = place;
}
