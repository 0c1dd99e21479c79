//! Atomics under one name: the machine's in every normal build, loom's model under `cfg(loom)`.
//! Used by what shares memory and runs under loom (rings, waiting, the window's reader, the feed), so that the code
//! which loom checks is the code which runs.
//!
//! The read-only views give loads and nothing else. A side that maps its peer's pages without
//! write permission holds only such views, so a store that would fault cannot be written.
//!
//! Acquire loads are made of a relaxed load and an acquire fence: on pages mapped read-only, Rust
//! defines atomic loads only if they are relaxed. On x86-64 both forms are one `mov`.

use crate::prefetch;

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};

/// Something that ends once and for all, as one thread has found it and others of the process learn it: a connection,
/// whose last messages lie in memory that the peer had written before.
#[derive(Debug, Default)]
pub struct EndFlag(AtomicU32);

impl EndFlag {
    /// It has not ended.
    pub fn new() -> Self {
        Self::default()
    }

    /// It has: what this thread has written, and seen of others, is seen by who is told of it.
    pub fn set(&self) {
        // SYNC: pairs with the acquire load in `is_set`. Whoever sets it has seen the peer's end, which lies behind
        // all that the peer has published.
        self.0.store(1, Ordering::Release);
    }

    /// Whether it has. To be looked at in front of the last look for what came before the end.
    #[inline]
    pub fn is_set(&self) -> bool {
        // SYNC: pairs with the release store in `set`: the look behind it finds all that came before the end.
        self.0.load(Ordering::Acquire) != 0
    }
}

/// One 32-bit word that the holder may only read.
#[derive(Clone, Copy)]
pub struct ReadOnlyU32<'a>(&'a AtomicU32);

impl<'a> ReadOnlyU32<'a> {
    /// Restricts `word` to loads.
    pub fn new(word: &'a AtomicU32) -> Self {
        Self(word)
    }

    /// A load that orders nothing.
    #[inline]
    pub fn load_relaxed(self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// A load after which everything written before the matching release store is visible.
    #[inline]
    pub fn load_acquire(self) -> u32 {
        let value = self.0.load(Ordering::Relaxed);
        // SYNC: pairs with the release store of whoever owns the word (named at the caller).
        fence(Ordering::Acquire);
        value
    }

    /// The word as a futex address. The kernel too only reads it, for waiting and for waking.
    pub(crate) fn futex(self) -> &'a AtomicU32 {
        self.0
    }
}

/// One 64-bit word that the holder may only read.
#[derive(Clone, Copy)]
pub struct ReadOnlyU64<'a>(&'a AtomicU64);

impl<'a> ReadOnlyU64<'a> {
    /// Restricts `word` to loads.
    pub fn new(word: &'a AtomicU64) -> Self {
        Self(word)
    }

    /// A load that orders nothing.
    #[inline]
    pub fn load_relaxed(self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A load after which everything written before the matching release store is visible.
    #[inline]
    pub fn load_acquire(self) -> u64 {
        let value = self.0.load(Ordering::Relaxed);
        // SYNC: pairs with the release store of whoever owns the word (named at the caller).
        fence(Ordering::Acquire);
        value
    }
}

/// A run of 64-bit words that the holder may only read.
#[derive(Clone, Copy)]
pub struct ReadOnlyWords<'a>(&'a [AtomicU64]);

impl<'a> ReadOnlyWords<'a> {
    /// Restricts `words` to loads.
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }

    /// Number of words.
    #[inline]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are no words.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The `count` words from index `first` on.
    ///
    /// # Panics
    /// As [`copy_to`](Self::copy_to).
    #[inline]
    pub fn part(self, first: usize, count: usize) -> Self {
        Self(&self.0[first..first + count])
    }

    /// Asks for the cache line of the word `index` and waits for nothing. Under loom there are no caches.
    ///
    /// # Panics
    /// As [`copy_to`](Self::copy_to).
    #[inline]
    pub fn touch(self, index: usize) {
        prefetch::to_read(&self.0[index]);
    }

    /// Fills `into` with the words from index `first` on, by relaxed loads.
    ///
    /// # Panics
    /// If the words do not reach that far: the caller's index is wrong, never a peer's.
    #[inline]
    pub fn copy_to(self, first: usize, into: &mut [u64]) {
        let words = &self.0[first..first + into.len()];
        for (copy, word) in into.iter_mut().zip(words) {
            *copy = word.load(Ordering::Relaxed);
        }
    }
}
