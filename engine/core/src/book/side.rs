//! One side of a book: its levels, linked from best to worst, with the best one at hand. Called by
//! [`SymbolBook`](super::SymbolBook).

use super::ladder::{Ladder, Neighbour, Nodes};
use super::level::Level;
use crate::pool::{NONE, Pool};
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::Price;

/// One side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BookSide {
    side: Side,
    ladder: Ladder,
    /// The best level, or none.
    pub(crate) best: u32,
    /// Price of the best level; meaningless without one. Here so that an order that does not cross
    /// touches no level of the other side.
    pub(crate) best_price: Price,
}

impl BookSide {
    pub(crate) const fn new(side: Side) -> Self {
        Self { side, ladder: Ladder::EMPTY, best: NONE, best_price: Price::ZERO }
    }

    /// True when `price` is better than `other` for an order on this side.
    fn is_better(&self, price: Price, other: Price) -> bool {
        match self.side {
            Side::Buy => price > other,
            Side::Sell => price < other,
        }
    }

    /// True when an aggressor with limit `limit` trades with this side's best order.
    pub(crate) fn is_reached_by(&self, limit: Price) -> bool {
        self.best != NONE && !self.is_better(limit, self.best_price)
    }

    /// The level of `price`.
    pub(crate) fn find(&self, nodes: &Nodes, levels: &Pool<Level>, price: Price) -> Option<u32> {
        if self.best != NONE && self.best_price == price {
            return Some(self.best);
        }
        self.ladder.find(nodes, levels, price)
    }

    /// The level of `price`, made if it is not there. The caller has made sure that there is room.
    pub(crate) fn find_or_insert(
        &mut self,
        nodes: &mut Nodes,
        levels: &mut Pool<Level>,
        price: Price,
    ) -> u32 {
        if let Some(level) = self.find(nodes, levels, price) {
            return level;
        }
        let level = levels.take().expect("room for a level is checked before an order rests");
        levels[level].price = price;
        levels[level].is_bid = self.side == Side::Buy;
        let (better, worse) = match (self.ladder.insert(nodes, levels, level), self.side) {
            (None, _) => (NONE, NONE),
            (Some(Neighbour::Above(higher)), Side::Buy) => (higher, levels[higher].worse),
            (Some(Neighbour::Below(lower)), Side::Buy) => (levels[lower].better, lower),
            (Some(Neighbour::Above(higher)), Side::Sell) => (levels[higher].better, higher),
            (Some(Neighbour::Below(lower)), Side::Sell) => (lower, levels[lower].worse),
        };
        levels[level].better = better;
        levels[level].worse = worse;
        if worse != NONE {
            levels[worse].better = level;
        }
        if better == NONE {
            self.best = level;
            self.best_price = price;
        } else {
            levels[better].worse = level;
        }
        level
    }

    /// Removes a level that has no orders any more.
    pub(crate) fn remove(&mut self, nodes: &mut Nodes, levels: &mut Pool<Level>, level: u32) {
        let Level { better, worse, price, .. } = levels[level];
        self.ladder.remove(nodes, price);
        if worse != NONE {
            levels[worse].better = better;
        }
        if better == NONE {
            self.best = worse;
            if worse != NONE {
                self.best_price = levels[worse].price;
            }
        } else {
            levels[better].worse = worse;
        }
        levels.release(level);
    }
}
