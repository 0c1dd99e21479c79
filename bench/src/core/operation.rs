//! What every engine is asked and what it tells: operations, reports, and the tally by which
//! engines are compared. Called by everything in [`super`].

use serde::Serialize;
use touchline_protocol::message::enums::Side;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A limit order whose rest stays.
    Add,
    /// A limit order whose rest is gone.
    Ioc,
    /// Cancel.
    Cancel,
    /// Cancel and re-insert with another price and quantity under the same id; loses its place.
    Modify,
    /// Lower the open quantity to [`Operation::quantity`]; keeps its place.
    Reduce,
}

/// One operation, as small as a message would be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Limit in ticks.
    pub price: i64,
    /// The order's id.
    pub id: u32,
    /// Quantity, above zero for everything but a cancel.
    pub quantity: u32,
    /// Where the order lies by the reply to its placing: for engines that give such handles.
    pub place: u32,
    /// What is asked.
    pub kind: Kind,
    /// The order's side.
    pub side: Side,
}

/// Receives what an engine does.
pub trait Reports {
    /// A fill at the maker's price.
    fn fill(&mut self, maker: u32, taker: u32, price: i64, quantity: u64);
    /// An operation is done. `open`: what was not filled of a new or modified order; else 0, or 1 if
    /// the engine refuses.
    fn done(&mut self, id: u32, open: u64);
}

/// What engines that do the same have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Fills.
    pub trades: u64,
    /// Sum of their quantities.
    pub volume: u64,
    /// Of maker, taker, price and quantity of all fills in order.
    pub hash: u64,
    /// Operations done.
    pub done: u64,
    /// Sum of what they left open.
    pub open: u64,
}

impl Reports for Tally {
    #[inline]
    fn fill(&mut self, maker: u32, taker: u32, price: i64, quantity: u64) {
        self.trades += 1;
        self.volume += quantity;
        let who = (u64::from(maker) << 32 | u64::from(taker)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let what = price.cast_unsigned().wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ quantity;
        self.hash =
            (self.hash.rotate_left(7) ^ who.wrapping_add(what)).wrapping_mul(0x94d0_49bb_1331_11eb);
    }

    #[inline]
    fn done(&mut self, _id: u32, open: u64) {
        self.done += 1;
        self.open = self.open.wrapping_add(open);
    }
}

/// Price and open quantity of each level, best first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Depth {
    /// Buy levels.
    pub bids: Vec<(i64, u64)>,
    /// Sell levels.
    pub asks: Vec<(i64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_tells_order_and_parties_of_fills() {
        let of = |fills: &[(u32, u32, i64, u64)]| {
            let mut tally = Tally::default();
            fills.iter().for_each(|&(maker, taker, price, quantity)| {
                tally.fill(maker, taker, price, quantity);
            });
            tally
        };
        let both = [(1, 2, 3, 4), (5, 6, 7, 8)];
        assert_eq!((of(&both).trades, of(&both).volume), (2, 12));
        assert_ne!(of(&both).hash, of(&[both[1], both[0]]).hash);
        assert_ne!(of(&[(1, 2, 3, 4)]).hash, of(&[(2, 1, 3, 4)]).hash);
        assert_ne!(of(&[(1, 2, 3, 4)]).hash, of(&[(1, 2, 4, 4)]).hash);
    }
}
