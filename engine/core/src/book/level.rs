//! The two kinds of pooled items that a book is made of: resting orders and price levels.

use crate::pool::{Linked, NONE};
use touchline_protocol::units::{OrderId, Price, Qty};

/// A resting order: what matching touches, half a cache line. Everything else about an order lies
/// elsewhere under the same handle.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct RestingOrder {
    /// Its number.
    pub(crate) id: OrderId,
    /// Base quantity still open and shown, above zero. What an iceberg hides lies with its record.
    pub(crate) remaining: Qty,
    /// The order behind it on its level.
    pub(crate) next: u32,
    /// The order in front of it on its level.
    pub(crate) previous: u32,
    /// Its level; none in a free slot.
    pub(crate) level: u32,
    /// The owner's number; the book only hands it on.
    pub(crate) owner: u32,
}

// Aligned, so that none lies on two cache lines.
const _: () = assert!(size_of::<RestingOrder>() == 32);

impl Default for RestingOrder {
    fn default() -> Self {
        Self {
            id: OrderId(0),
            remaining: Qty::ZERO,
            next: NONE,
            previous: NONE,
            level: NONE,
            owner: 0,
        }
    }
}

impl Linked for RestingOrder {
    fn next_free(&self) -> u32 {
        self.next
    }

    fn set_next_free(&mut self, handle: u32) {
        self.next = handle;
        self.level = NONE;
    }
}

/// All orders of one side at one price, first come first.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Level {
    /// Sum of what its orders show. 2³² orders of 2⁶³ fit, so no sum is ever cut or checked.
    pub(crate) total: u128,
    /// Sum of what its icebergs hide.
    pub(crate) hidden: u128,
    /// The price.
    pub(crate) price: Price,
    /// The order that trades first.
    pub(crate) first: u32,
    /// The order that trades last.
    pub(crate) last: u32,
    /// Number of orders, above zero.
    pub(crate) orders: u32,
    /// The next level with a better price on the side.
    pub(crate) better: u32,
    /// The next level with a worse price on the side.
    pub(crate) worse: u32,
    /// True for the bids.
    pub(crate) is_bid: bool,
}

/// What a price is turned over by to become a key of its side.
#[inline]
pub(crate) const fn flip(is_bid: bool) -> u64 {
    (is_bid as u64).wrapping_neg() ^ 1 << 63
}

impl Level {
    /// The price in its side's order: lower is better.
    #[inline]
    pub(crate) const fn key(&self) -> u64 {
        self.price.0.cast_unsigned() ^ flip(self.is_bid)
    }
}

const _: () = assert!(size_of::<Level>() == 64);

impl Default for Level {
    fn default() -> Self {
        Self {
            total: 0,
            hidden: 0,
            price: Price::ZERO,
            first: NONE,
            last: NONE,
            orders: 0,
            better: NONE,
            worse: NONE,
            is_bid: false,
        }
    }
}

impl Linked for Level {
    fn next_free(&self) -> u32 {
        self.worse
    }

    fn set_next_free(&mut self, handle: u32) {
        self.worse = handle;
    }
}
