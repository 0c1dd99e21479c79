//! Decisions out of bytes: each takes a byte or a few, so that a fuzzer that changes a byte changes one
//! decision and leaves the others as they were. Used by everything here that makes commands.

use touchline_core::AMOUNT_MAX;
use touchline_protocol::units::UNITS_PER_WHOLE;

/// Numbers at which something may change: signs, ends of types, the venue's own bounds.
const EDGES: [i64; 20] = [
    0,
    1,
    -1,
    2,
    3,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
    AMOUNT_MAX,
    AMOUNT_MAX + 1,
    AMOUNT_MAX - UNITS_PER_WHOLE,
    i64::MAX / UNITS_PER_WHOLE,
    u32::MAX as i64,
    u32::MAX as i64 - 1,
    u32::MAX as i64 + 1,
    i32::MAX as i64,
    u16::MAX as i64,
    UNITS_PER_WHOLE,
    UNITS_PER_WHOLE - 1,
];

/// The bytes of an input that have not been used yet. Behind their end all are zero.
pub(crate) struct Source<'bytes> {
    rest: &'bytes [u8],
}

impl<'bytes> Source<'bytes> {
    pub(crate) fn new(bytes: &'bytes [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.rest.split_off_first().copied().unwrap_or(0)
    }

    /// The next `count` bytes as they are, fewer at the end.
    pub(crate) fn bytes(&mut self, count: usize) -> &'bytes [u8] {
        let count = count.min(self.rest.len());
        self.rest.split_off(..count).unwrap_or_default()
    }

    /// Below `bound`, which is at most 256.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// True once in so many times, and at the end of the bytes.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn edge(&mut self) -> i64 {
        self.pick(&EDGES)
    }

    /// A number below `near`, or now and then an edge.
    pub(crate) fn number(&mut self, near: usize) -> i64 {
        if self.once_in(16) { self.edge() } else { self.below(near) as i64 }
    }
}
