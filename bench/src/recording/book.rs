//! A price-time book as plain as can be: the independent reference that the engine's answers and
//! the recording are both held against. Called by [`super::flow`].

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Serialize;
use touchline_protocol::message::enums::Side;

/// The best level of each side; price and size are 0 where a side is empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Top {
    /// Lowest sell price, 10⁻⁴ of the currency.
    pub ask_price: i64,
    /// Open size at it, whole units.
    pub ask_size: i64,
    /// Highest buy price, 10⁻⁴ of the currency.
    pub bid_price: i64,
    /// Open size at it, whole units.
    pub bid_size: i64,
}

impl Top {
    /// Whether both sides have orders: a recording has no state without.
    #[must_use]
    pub const fn is_two_sided(&self) -> bool {
        self.ask_size > 0 && self.bid_size > 0
    }
}

/// A resting order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resting {
    /// Its side.
    pub side: Side,
    /// 10⁻⁴ of the currency.
    pub price: i64,
    /// Open size, whole units.
    pub size: i64,
}

#[derive(Default)]
struct Level {
    size: i64,
    queue: VecDeque<u64>,
}

/// Resting orders by their exchange numbers. It never matches: executions are told to it.
#[derive(Default)]
pub struct Book {
    orders: HashMap<u64, Resting>,
    buys: BTreeMap<i64, Level>,
    sells: BTreeMap<i64, Level>,
}

impl Book {
    /// Puts an order behind all others at its price; false, and nothing changes, if the number rests
    /// already.
    pub fn add(&mut self, order: u64, resting: Resting) -> bool {
        if self.orders.contains_key(&order) {
            return false;
        }
        self.orders.insert(order, resting);
        let level = self.side_mut(resting.side).entry(resting.price).or_default();
        level.size += resting.size;
        level.queue.push_back(order);
        true
    }

    /// The order as it stands.
    #[must_use]
    pub fn get(&self, order: u64) -> Option<Resting> {
        self.orders.get(&order).copied()
    }

    /// Takes `size`, at most what is open, from an order; it ends when nothing is left. Returns what
    /// is left, or `None` if there is no such order.
    pub fn take(&mut self, order: u64, size: i64) -> Option<i64> {
        let resting = self.orders.get_mut(&order)?;
        let taken = size.min(resting.size);
        resting.size -= taken;
        let Resting { side, price, size: left } = *resting;
        let levels = self.side_mut(side);
        let level = levels.get_mut(&price).expect("every resting order has its level");
        level.size -= taken;
        if left == 0 {
            level.queue.retain(|&queued| queued != order);
            if level.queue.is_empty() {
                levels.remove(&price);
            }
            self.orders.remove(&order);
        }
        Some(left)
    }

    /// Whether an aggressor of any price would meet `order` first: best level, front of the queue.
    #[must_use]
    pub fn is_next(&self, order: u64) -> bool {
        self.orders.get(&order).is_some_and(|resting| {
            self.levels(resting.side)
                .next()
                .is_some_and(|(_, level)| level.queue.front() == Some(&order))
        })
    }

    /// Whether `order` stands at the best level of its side.
    #[must_use]
    pub fn is_at_best_level(&self, order: u64) -> bool {
        self.orders.get(&order).is_some_and(|resting| {
            self.levels(resting.side).next().is_some_and(|(price, _)| price == resting.price)
        })
    }

    /// The orders before `order` at its price.
    pub fn before(&self, order: u64) -> impl Iterator<Item = u64> {
        let queue = self.orders.get(&order).and_then(|resting| {
            self.side(resting.side).get(&resting.price).map(|level| &level.queue)
        });
        queue.into_iter().flatten().copied().take_while(move |&queued| queued != order)
    }

    /// The orders of a side beyond its best `depth` levels.
    pub fn beyond(&self, side: Side, depth: usize) -> impl Iterator<Item = u64> {
        self.levels(side).skip(depth).flat_map(|(_, level)| level.queue.iter().copied())
    }

    /// Whether an order of `side` at `price` would trade.
    #[must_use]
    pub fn would_cross(&self, side: Side, price: i64) -> bool {
        self.levels(side.opposite()).next().is_some_and(|(best, _)| match side {
            Side::Buy => price >= best,
            Side::Sell => price <= best,
        })
    }

    /// The best level of each side.
    #[must_use]
    pub fn top(&self) -> Top {
        let best =
            |side| self.levels(side).next().map_or((0, 0), |(price, level)| (price, level.size));
        let ((ask_price, ask_size), (bid_price, bid_size)) = (best(Side::Sell), best(Side::Buy));
        Top { ask_price, ask_size, bid_price, bid_size }
    }

    /// The levels of a side, best first.
    fn levels(&self, side: Side) -> impl Iterator<Item = (i64, &Level)> {
        let (up, down) = match side {
            Side::Buy => (None, Some(self.buys.iter().rev())),
            Side::Sell => (Some(self.sells.iter()), None),
        };
        up.into_iter()
            .flatten()
            .chain(down.into_iter().flatten())
            .map(|(price, level)| (*price, level))
    }

    const fn side(&self, side: Side) -> &BTreeMap<i64, Level> {
        match side {
            Side::Buy => &self.buys,
            Side::Sell => &self.sells,
        }
    }

    const fn side_mut(&mut self, side: Side) -> &mut BTreeMap<i64, Level> {
        match side {
            Side::Buy => &mut self.buys,
            Side::Sell => &mut self.sells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resting(side: Side, price: i64, size: i64) -> Resting {
        Resting { side, price, size }
    }

    #[test]
    fn the_first_at_the_best_price_is_next() {
        let mut book = Book::default();
        assert!(book.add(1, resting(Side::Buy, 100, 5)));
        assert!(book.add(2, resting(Side::Buy, 101, 6)));
        assert!(book.add(3, resting(Side::Buy, 101, 7)));
        assert!(!book.add(3, resting(Side::Sell, 200, 7)), "the number rests already");
        assert!(book.is_next(2) && !book.is_next(3) && !book.is_next(1) && !book.is_next(9));
        assert!(book.is_at_best_level(3) && !book.is_at_best_level(1));
        assert_eq!(book.before(3).collect::<Vec<_>>(), [2]);
        assert_eq!(book.beyond(Side::Buy, 1).collect::<Vec<_>>(), [1]);
        assert_eq!(book.top(), Top { bid_price: 101, bid_size: 13, ..Top::default() });
        assert!(book.would_cross(Side::Sell, 101) && !book.would_cross(Side::Sell, 102));
        assert!(!book.would_cross(Side::Buy, 101), "nobody sells");
    }

    #[test]
    fn taking_keeps_priority_until_nothing_is_left() {
        let mut book = Book::default();
        book.add(1, resting(Side::Sell, 100, 5));
        book.add(2, resting(Side::Sell, 100, 6));
        assert_eq!(book.take(1, 2), Some(3));
        assert!(book.is_next(1));
        assert_eq!(book.top().ask_size, 9);
        assert_eq!(book.take(1, 4), Some(0), "never more than is open");
        assert_eq!((book.get(1), book.take(1, 1)), (None, None));
        assert!(book.is_next(2));
        assert_eq!(book.take(2, 6), Some(0));
        assert_eq!(book.top(), Top::default());
    }
}
