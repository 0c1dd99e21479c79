//! Checks that a book fits together. Called by tests through `OrderBook::validate` and
//! `Core::validate`, never while trading.

use super::ladder::Nodes;
use super::side::BookSide;
use super::{BookPools, SymbolBook};
use crate::pool::NONE;
use alloc::format;
use alloc::string::String;
use touchline_protocol::message::enums::Side;

/// What books hold of the pools.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    pub(crate) orders: u32,
    pub(crate) levels: u32,
}

impl BookPools {
    /// Checks that the books, which hold `counts` together, hold everything that is taken.
    pub(crate) fn validate(&self, counts: Counts) -> Result<(), String> {
        let taken = Counts { orders: self.orders.live(), levels: self.levels.live() };
        if taken != counts {
            return Err(format!("pools have {taken:?} live, books hold {counts:?}"));
        }
        let sound: [(&str, bool); 3] = [
            ("orders", self.orders.is_consistent()),
            ("levels", self.levels.is_consistent()),
            ("ladder nodes", Nodes::is_consistent(&self.nodes)),
        ];
        if let Some((name, _)) = sound.iter().find(|(_, sound)| !sound) {
            return Err(format!("a slot of the {name} is lost or free twice"));
        }
        if self.nodes.shared() > self.levels.live() {
            return Err(format!("{} ladder nodes for {counts:?}", self.nodes.shared()));
        }
        Ok(())
    }
}

impl SymbolBook {
    /// Checks both sides; gives what they hold of the pools. Whether they cross is the caller's to
    /// judge: during a continuation they may.
    pub(crate) fn validate(&self, pools: &BookPools) -> Result<Counts, String> {
        let counts = self.validate_queues(pools)?;
        if let (Some(bid), Some(ask)) = (self.best(Side::Buy), self.best(Side::Sell))
            && bid >= ask
        {
            return Err(format!("the book is crossed: bid {bid}, ask {ask}"));
        }
        Ok(counts)
    }

    /// As [`validate`](Self::validate), for queues that may cross, as those of waiting stops do.
    pub(crate) fn validate_queues(&self, pools: &BookPools) -> Result<Counts, String> {
        let bids = validate_side(&self.bids, pools, Side::Buy)?;
        let asks = validate_side(&self.asks, pools, Side::Sell)?;
        Ok(Counts { orders: bids.orders + asks.orders, levels: bids.levels + asks.levels })
    }
}

fn validate_side(side: &BookSide, pools: &BookPools, which: Side) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let mut better = NONE;
    let mut at = side.best;
    while at != NONE {
        let level = &pools.levels[at];
        let price = level.price;
        if better == NONE && side.best_price() != Some(price) {
            return Err(format!("cached best {:?} is not the best {price}", side.best_price()));
        }
        if better != NONE {
            let before = pools.levels[better].price;
            let sorted = if which == Side::Buy { before > price } else { before < price };
            if !sorted {
                return Err(format!("level {price} behind level {before}"));
            }
        }
        if level.better != better || level.is_bid != (which == Side::Buy) {
            return Err(format!("level {price} is linked to the wrong neighbour or side"));
        }
        if side.find(&pools.nodes, &pools.levels, price) != Some(at) {
            return Err(format!("level {price} is not found by its price"));
        }
        counts.orders += validate_queue(pools, at)?;
        counts.levels += 1;
        better = at;
        at = level.worse;
    }
    Ok(counts)
}

fn validate_queue(pools: &BookPools, at: u32) -> Result<u32, String> {
    let level = &pools.levels[at];
    let mut orders = 0;
    let mut total = 0u128;
    let mut previous = NONE;
    let mut handle = level.first;
    while handle != NONE {
        let order = &pools.orders[handle];
        if order.previous != previous || order.level != at {
            return Err(format!("order {} is linked wrongly at {}", order.id, level.price));
        }
        if !order.remaining.is_positive() {
            return Err(format!("order {} rests with {} open", order.id, order.remaining));
        }
        orders += 1;
        total += u128::from(order.remaining.0.cast_unsigned());
        previous = handle;
        handle = order.next;
    }
    if level.last != previous || level.orders != orders || level.total != total || orders == 0 {
        return Err(format!(
            "level {}: {orders} orders with {total} open, it says {} with {}",
            level.price, level.orders, level.total
        ));
    }
    Ok(orders)
}
