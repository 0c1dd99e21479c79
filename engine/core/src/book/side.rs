//! One side of a book: its levels, linked from best to worst, with the best one at hand. Called by
//! [`SymbolBook`](super::SymbolBook).
//!
//! Sides are alike because they count prices differently: a level's *key* is its price in unsigned
//! order for the asks, and that order turned round for the bids. The best level has the lowest key on
//! either side, so no comparison asks which side it is on.

use super::ladder::{Ladder, Lookup, Neighbour, Nodes};
use super::level::{Level, flip};
use crate::pool::{NONE, Pool};
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::Price;

/// One side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BookSide {
    /// A price with these bits turned over is its key.
    flip: u64,
    /// Key of the best level; meaningless without one. Here so that an order that does not cross
    /// touches no level of the other side.
    best_key: u64,
    /// The best level, or none.
    pub(crate) best: u32,
    ladder: Ladder,
}

impl BookSide {
    /// Without any level, for prices that are mostly multiples of `tick`.
    pub(crate) const fn aligned_to(tick: Price, side: Side) -> Self {
        let flip = flip(matches!(side, Side::Buy));
        Self { flip, best_key: 0, best: NONE, ladder: Ladder::aligned_to(tick.0) }
    }

    #[inline(always)]
    const fn key_of(&self, price: Price) -> u64 {
        price.0.cast_unsigned() ^ self.flip
    }

    const fn is_bid(&self) -> bool {
        self.flip == flip(true)
    }

    /// Price of the best level, if there is one.
    #[inline]
    pub(crate) fn best_price(&self) -> Option<Price> {
        (self.best != NONE).then_some(Price((self.best_key ^ self.flip).cast_signed()))
    }

    /// True when an aggressor with limit `limit` trades with this side's best order.
    #[inline(always)]
    pub(crate) fn is_reached_by(&self, limit: Price) -> bool {
        self.best != NONE && self.best_key <= self.key_of(limit)
    }

    /// The level of `price`.
    #[inline]
    pub(crate) fn find(&self, nodes: &Nodes, levels: &Pool<Level>, price: Price) -> Option<u32> {
        let key = self.key_of(price);
        match self.ladder.look_up(nodes, levels, key) {
            Lookup::Level(level) => Some(level),
            Lookup::Vacant(_) => None,
            Lookup::Unknown => self.ladder.find_from_root(nodes, levels, key),
        }
    }

    /// The level of `price`, made if it is not there. The caller has made sure that there is room.
    #[inline(always)]
    pub(crate) fn find_or_insert(
        &mut self,
        nodes: &mut Nodes,
        levels: &mut Pool<Level>,
        price: Price,
    ) -> u32 {
        let key = self.key_of(price);
        match self.ladder.look_up(nodes, levels, key) {
            Lookup::Level(level) => level,
            Lookup::Vacant(vacancy) => {
                let level = self.new_level(levels, price);
                let neighbour = nodes.fill(vacancy, level);
                self.link(levels, level, key, Some(neighbour));
                level
            }
            Lookup::Unknown => self.find_or_insert_from_root(nodes, levels, price),
        }
    }

    #[inline(never)]
    fn find_or_insert_from_root(
        &mut self,
        nodes: &mut Nodes,
        levels: &mut Pool<Level>,
        price: Price,
    ) -> u32 {
        let key = self.key_of(price);
        if let Some(level) = self.ladder.find_from_root(nodes, levels, key) {
            return level;
        }
        let level = self.new_level(levels, price);
        let neighbour = self.ladder.insert_from_root(nodes, levels, (key, level));
        self.link(levels, level, key, neighbour);
        level
    }

    #[inline]
    fn new_level(&self, levels: &mut Pool<Level>, price: Price) -> u32 {
        let level = Level { price, is_bid: self.is_bid(), ..Level::default() };
        levels.put(level).expect("room for a level is checked before an order rests")
    }

    /// Links a new level with its neighbours.
    #[inline]
    fn link(
        &mut self,
        levels: &mut Pool<Level>,
        level: u32,
        key: u64,
        neighbour: Option<Neighbour>,
    ) {
        let (better, worse) = match neighbour {
            None => (NONE, NONE),
            Some(Neighbour::Above(worse)) => (levels[worse].better, worse),
            Some(Neighbour::Below(better)) => (better, levels[better].worse),
        };
        levels[level].better = better;
        levels[level].worse = worse;
        if worse != NONE {
            levels[worse].better = level;
        }
        if better == NONE {
            self.best = level;
            self.best_key = key;
        } else {
            levels[better].worse = level;
        }
    }

    /// Removes a level that has no orders any more.
    #[inline(always)]
    pub(crate) fn remove(&mut self, nodes: &mut Nodes, levels: &mut Pool<Level>, level: u32) {
        let Level { better, worse, price, .. } = levels[level];
        self.ladder.remove(nodes, self.key_of(price));
        if worse != NONE {
            levels[worse].better = better;
        }
        if better == NONE {
            self.best = worse;
            if worse != NONE {
                self.best_key = self.key_of(levels[worse].price);
            }
        } else {
            levels[better].worse = worse;
        }
        levels.release(level);
    }
}
