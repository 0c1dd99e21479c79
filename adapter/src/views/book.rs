//! The price levels of one symbol as the public sees them: total open quantity per price. Fed by the
//! fold, read for GET /depth.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{BookUpdateId, SymbolId};

use super::error::{FoldError, same};

/// One price with the quantity that is open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// 10⁻⁸ of the quote asset per base unit.
    pub price: i64,
    /// Sum over the level's orders, 10⁻⁸ of the base asset; saturates at the largest `i64` (facts
    /// §7 depth).
    pub quantity: i64,
}

/// Both sides of a symbol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Book {
    bids: BTreeMap<i64, i128>,
    asks: BTreeMap<i64, i128>,
    last_update: BookUpdateId,
}

/// The best levels of both sides, copied out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Depth {
    /// The book's update id that they belong to.
    pub last_update: BookUpdateId,
    /// Highest price first.
    pub bids: Vec<Level>,
    /// Lowest price first.
    pub asks: Vec<Level>,
}

impl Book {
    /// The best `limit` levels of each side: O(limit).
    #[must_use]
    pub fn depth(&self, limit: usize) -> Depth {
        let level = |(&price, &quantity): (&i64, &i128)| Level {
            price,
            quantity: i64::try_from(quantity).unwrap_or(i64::MAX),
        };
        Depth {
            last_update: self.last_update,
            bids: self.bids.iter().rev().take(limit).map(level).collect(),
            asks: self.asks.iter().take(limit).map(level).collect(),
        }
    }

    /// The update id of the last change.
    #[must_use]
    pub const fn last_update(&self) -> BookUpdateId {
        self.last_update
    }

    pub(super) fn add(&mut self, side: Side, price: i64, quantity: i64) {
        *self.side(side).entry(price).or_default() += i128::from(quantity);
    }

    pub(super) fn take(
        &mut self,
        symbol: SymbolId,
        side: Side,
        price: i64,
        taken: i64,
    ) -> Result<(), FoldError> {
        let Entry::Occupied(mut level) = self.side(side).entry(price) else {
            return Err(FoldError::Level { symbol, price, before: 0, taken });
        };
        let before = *level.get();
        let left = before - i128::from(taken);
        if taken < 0 || left < 0 {
            return Err(FoldError::Level { symbol, price, before, taken });
        }
        if left == 0 {
            level.remove();
        } else {
            level.insert(left);
        }
        Ok(())
    }

    /// Takes over the update id that an event states; it never goes back.
    pub(super) fn updated(&mut self, id: BookUpdateId) -> Result<(), FoldError> {
        if id < self.last_update {
            return same("book update id", id.0, self.last_update.0);
        }
        self.last_update = id;
        Ok(())
    }

    fn side(&mut self, side: Side) -> &mut BTreeMap<i64, i128> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOL: SymbolId = SymbolId(0);

    #[test]
    fn depth_gives_the_best_levels_from_the_inside_out() {
        let mut book = Book::default();
        for price in [10, 12, 11] {
            book.add(Side::Buy, price, 1);
            book.add(Side::Sell, price + 10, 2);
        }
        book.add(Side::Buy, 12, 4);
        book.updated(BookUpdateId(7)).unwrap();
        let depth = book.depth(2);
        assert_eq!(depth.last_update, BookUpdateId(7));
        let level = |price, quantity| Level { price, quantity };
        assert_eq!(depth.bids, [level(12, 5), level(11, 1)]);
        assert_eq!(depth.asks, [level(20, 2), level(21, 2)]);
        assert_eq!(book.depth(5000).bids.len(), 3);
    }

    #[test]
    fn emptied_levels_vanish_and_no_level_goes_below_nothing() {
        let mut book = Book::default();
        book.add(Side::Buy, 10, 3);
        book.take(SYMBOL, Side::Buy, 10, 1).unwrap();
        assert_eq!(
            book.take(SYMBOL, Side::Buy, 10, 3),
            Err(FoldError::Level { symbol: SYMBOL, price: 10, before: 2, taken: 3 })
        );
        book.take(SYMBOL, Side::Buy, 10, 2).unwrap();
        assert_eq!(book, Book::default());
        assert!(book.take(SYMBOL, Side::Sell, 10, 1).is_err());
    }

    #[test]
    fn a_level_beyond_the_range_shows_as_the_largest_value() {
        let mut book = Book::default();
        book.add(Side::Sell, 1, i64::MAX);
        book.add(Side::Sell, 1, i64::MAX);
        assert_eq!(book.depth(1).asks[0].quantity, i64::MAX);
        book.take(SYMBOL, Side::Sell, 1, i64::MAX).unwrap();
        book.take(SYMBOL, Side::Sell, 1, i64::MAX).unwrap();
        assert_eq!(book, Book::default());
    }

    #[test]
    fn update_ids_never_go_back() {
        let mut book = Book::default();
        book.updated(BookUpdateId(3)).unwrap();
        book.updated(BookUpdateId(3)).unwrap();
        assert!(book.updated(BookUpdateId(2)).is_err());
        assert_eq!(book.last_update(), BookUpdateId(3));
    }
}
