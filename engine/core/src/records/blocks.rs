//! Contents of records in blocks of one cache line, chained. Held by [`super::Records`].

use crate::pool::{Linked, NONE, Pool, named};
use alloc::collections::TryReserveError;
use touchline_protocol::message::command::RECORD_BLOCK_BYTES;

const BLOCK_BYTES: usize = RECORD_BLOCK_BYTES as usize;

/// A part of a content, and the handle of the next part.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Block {
    next: u32,
    bytes: [u8; BLOCK_BYTES],
}

const _: () = assert!(size_of::<Block>() == 64);

impl Default for Block {
    fn default() -> Self {
        Self { next: NONE, bytes: [0; BLOCK_BYTES] }
    }
}

impl Linked for Block {
    fn next_free(&self) -> u32 {
        self.next
    }

    fn set_next_free(&mut self, handle: u32) {
        self.next = handle;
    }
}

/// Blocks that a content of so many bytes takes.
pub(super) const fn needed(bytes: usize) -> u32 {
    bytes.div_ceil(BLOCK_BYTES) as u32
}

/// All blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    pool: Pool<Block>,
}

impl Blocks {
    pub(super) const fn new() -> Self {
        Self { pool: Pool::new() }
    }

    pub(super) fn try_grow(&mut self, blocks: u32) -> Result<(), TryReserveError> {
        self.pool.try_grow(blocks)
    }

    /// Blocks in use.
    pub(super) const fn len(&self) -> u32 {
        self.pool.live()
    }

    /// Writes a content; gives its first block, [`NONE`] for an empty one. There is room for it.
    pub(super) fn put(&mut self, content: &[u8]) -> u32 {
        // From the end, so that each block's next one is known.
        content.chunks(BLOCK_BYTES).rev().fold(NONE, |next, part| {
            let mut block = Block { next, ..Block::default() };
            block.bytes[..part.len()].copy_from_slice(part);
            self.pool.put(block).expect("there are as many blocks as the limit allows")
        })
    }

    /// Gives all blocks of a content back.
    pub(super) fn release(&mut self, first: u32) {
        let mut at = first;
        while at != NONE {
            let next = self.pool[at].next;
            self.pool.release(at);
            at = next;
        }
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = &Block> {
        core::iter::successors(named(first), |&at| named(self.pool[at].next))
            .map(|at| &self.pool[at])
    }

    /// The bytes of a content of this length.
    pub(super) fn read(&self, first: u32, length: usize) -> impl Iterator<Item = u8> + '_ {
        self.chain(first).flat_map(|block| block.bytes).take(length)
    }

    /// The first bytes of a content that has as many.
    pub(super) fn beginning<const N: usize>(&self, first: u32) -> [u8; N] {
        const { assert!(N <= BLOCK_BYTES) };
        core::array::from_fn(|at| self.pool[first].bytes[at])
    }

    /// Blocks that a content is linked through, at most one more than there are in use.
    pub(super) fn linked(&self, first: u32) -> u32 {
        self.chain(first).take(self.len() as usize + 1).count() as u32
    }

    /// True when no block is lost.
    pub(super) fn is_consistent(&self) -> bool {
        self.pool.is_consistent()
    }

    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.pool.memory()
    }
}
