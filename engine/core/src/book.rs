//! The order book: price-time priority matching, without accounts, log or processes. Called by
//! `apply` for each symbol; [`OrderBook`] is the same thing for use on its own.
//!
//! [`SymbolBook`] is one symbol's two sides; its orders and levels lie in [`BookPools`], which all
//! symbols share. Reports go to a [`Sink`], statically dispatched, one call per fill.
//!
//! Prices are any `i64` here; what a symbol allows is its filters' business.

mod fired;
mod ladder;
mod level;
mod place;
mod pools;
mod side;
mod standalone;
#[cfg(test)]
mod steps;
mod validate;

pub(crate) use fired::ORDERS_MAX;
pub(crate) use place::Place;
pub(crate) use validate::Counts;

pub use ladder::LEVELS_MAX;
pub use pools::BookPools;
pub use standalone::{
    BookCapacity, BookError, Canceled, Coming, NewBookOrder, OrderBook, Placed, Reduced,
};

use crate::pool::{NONE, named};
use level::RestingOrder;
use side::BookSide;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{OrderId, Price, Qty};

/// Names a resting order in the pools for as long as it rests; afterwards another order may get it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(pub(crate) u32);

impl Handle {
    /// The handle as a number that can travel with a message.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The handle that had this number. Any number will do: whoever takes a handle from outside checks
    /// it against the order's id ([`OrderBook::cancel_at`]).
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// One aggressor met one resting order, at the resting order's price.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// Where the resting order lies. Still valid during the report, also when it is now filled.
    pub maker: Handle,
    /// The resting order's number.
    pub maker_id: OrderId,
    /// The resting order's owner.
    pub maker_owner: u32,
    /// The resting order's price.
    pub price: Price,
    /// Base quantity, above zero.
    pub quantity: Qty,
    /// What the resting order has still open; zero: it is filled and leaves the book.
    pub maker_remaining: Qty,
}

/// Receives what matching does, in order.
///
/// It is called in the middle of the taking, so it must not panic: a book whose sink did, with the pools that it
/// lies in, is in no order any more, and there is nothing to do with both but to drop them.
pub trait Sink {
    /// A fill.
    fn fill(&mut self, fill: &Fill);

    /// Asked before an order is met: false ends the taking in front of it, and nothing has happened.
    /// This and the next two are the venue's; [`OrderBook`] asks none of them.
    fn may_meet(&mut self, _maker: Handle, _owner: u32) -> bool {
        true
    }

    /// Asked when all that an order shows is filled: how much of what it hides is shown next, at the
    /// end of its price's queue. Zero: the order is filled. Never more than the order hides.
    fn refill(&mut self, _maker: Handle, _id: OrderId) -> Qty {
        Qty::ZERO
    }

    /// Asked behind each fill: true ends the taking there.
    fn pauses(&self) -> bool {
        false
    }
}

/// An order that takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aggressor {
    /// Its side.
    pub side: Side,
    /// The worst price it takes: [`Price::MAX`] for a buy or `Price(i64::MIN)` for a sell take all.
    pub limit: Price,
    /// Base quantity, above zero.
    pub quantity: Qty,
}

impl Aggressor {
    /// True when it takes at this price.
    #[must_use]
    pub fn reaches(&self, price: Price) -> bool {
        match self.side {
            Side::Buy => price <= self.limit,
            Side::Sell => price >= self.limit,
        }
    }
}

/// One price of one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DepthLevel {
    /// The price.
    pub price: Price,
    /// Sum of the open base quantities that are shown, 10⁻⁸; may exceed what [`Qty`] holds.
    pub quantity: u128,
    /// Sum of what icebergs hide, 10⁻⁸.
    pub hidden: u128,
    /// Number of orders.
    pub orders: u32,
}

/// A resting order as the book sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestingView {
    /// Where it lies.
    pub handle: Handle,
    /// Its number.
    pub id: OrderId,
    /// Its owner.
    pub owner: u32,
    /// Its side.
    pub side: Side,
    /// Its price.
    pub price: Price,
    /// What it has open.
    pub remaining: Qty,
}

/// One symbol's two sides.
///
/// Its orders and levels lie in one [`BookPools`], which is to be given to every call, and a [`Handle`] belongs to the
/// book that gave it. A copy is the book only until either of both is changed: the other one names then what lies in
/// the pools no more, or is another book's. None of this is checked.
#[derive(Clone, Copy, Debug)]
pub struct SymbolBook {
    bids: BookSide,
    asks: BookSide,
}

impl Default for SymbolBook {
    fn default() -> Self {
        Self::new()
    }
}

impl SymbolBook {
    /// An empty book.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_tick(Price(1))
    }

    /// An empty book whose prices are mostly multiples of `tick`, which is what levels are laid out
    /// by. Other prices are as right, and a little slower; so are all if the tick is wrong.
    #[must_use]
    pub const fn with_tick(tick: Price) -> Self {
        Self {
            bids: BookSide::aligned_to(tick, Side::Buy),
            asks: BookSide::aligned_to(tick, Side::Sell),
        }
    }

    #[inline]
    const fn side(&self, side: Side) -> &BookSide {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.asks,
        }
    }

    #[inline]
    const fn side_mut(&mut self, side: Side) -> &mut BookSide {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    /// The best price of a side.
    #[must_use]
    pub fn best(&self, side: Side) -> Option<Price> {
        self.side(side).best_price()
    }

    /// True without any order.
    #[inline(always)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.bids.best == NONE && self.asks.best == NONE
    }

    /// True when an order of `side` with this limit would trade.
    #[must_use]
    #[inline(always)]
    pub fn crosses(&self, side: Side, limit: Price) -> bool {
        self.side(side.opposite()).is_reached_by(limit)
    }

    /// True when a side has orders at a price.
    #[must_use]
    pub fn has_level(&self, pools: &BookPools, side: Side, price: Price) -> bool {
        self.level_at(pools, side, price).is_some()
    }

    pub(crate) fn level_at(&self, pools: &BookPools, side: Side, price: Price) -> Option<u32> {
        self.side(side).find(&pools.nodes, &pools.levels, price)
    }

    /// Levels of a side, best first.
    pub fn depth<'pools>(
        &self,
        pools: &'pools BookPools,
        side: Side,
    ) -> impl Iterator<Item = DepthLevel> + use<'pools> {
        self.level_handles(pools, side).map(|at| {
            let level = &pools.levels[at];
            DepthLevel {
                price: level.price,
                quantity: level.total,
                hidden: level.hidden,
                orders: level.orders,
            }
        })
    }

    /// Orders of a side in the order in which they would trade.
    pub fn orders<'pools>(
        &self,
        pools: &'pools BookPools,
        side: Side,
    ) -> impl Iterator<Item = RestingView> + use<'pools> {
        self.level_handles(pools, side).flat_map(|level| {
            let first = named(pools.levels[level].first);
            core::iter::successors(first, |&at| named(pools.orders[at].next))
                .map(|at| pools.order(Handle(at)))
        })
    }

    fn level_handles<'pools>(
        &self,
        pools: &'pools BookPools,
        side: Side,
    ) -> impl Iterator<Item = u32> + use<'pools> {
        core::iter::successors(named(self.side(side).best), |&at| named(pools.levels[at].worse))
    }

    /// Levels that an aggressor may take, best first.
    pub fn reachable<'pools>(
        &self,
        pools: &'pools BookPools,
        side: Side,
        limit: Price,
    ) -> impl Iterator<Item = DepthLevel> + use<'pools> {
        self.depth(pools, side.opposite()).take_while(move |level| match side {
            Side::Buy => level.price <= limit,
            Side::Sell => level.price >= limit,
        })
    }

    /// True when the whole of an aggressor can be filled: what decides FOK. Judged from the totals of
    /// the levels within its limit, of which no more than `levels` are looked at.
    #[must_use]
    pub fn covers(&self, pools: &BookPools, aggressor: &Aggressor, levels: u32) -> bool {
        let mut missing = u128::from(aggressor.quantity.0.cast_unsigned());
        let reachable = self.reachable(pools, aggressor.side, aggressor.limit);
        reachable.take(levels as usize).any(|level| {
            missing = missing.saturating_sub(level.quantity + level.hidden);
            missing == 0
        })
    }

    /// False when an aggressor surely meets at most `steps` makers: the levels that it can touch have
    /// no more orders than that, and none that hides something and so may be met again and again.
    /// Looks at no more than `steps` + 1 levels.
    #[must_use]
    pub fn may_exceed(&self, pools: &BookPools, aggressor: &Aggressor, steps: u32) -> bool {
        let mut missing = u128::from(aggressor.quantity.0.cast_unsigned());
        let mut orders = 0;
        for level in self.reachable(pools, aggressor.side, aggressor.limit) {
            orders += u64::from(level.orders);
            missing = missing.saturating_sub(level.quantity);
            if orders > u64::from(steps) || level.hidden > 0 {
                return true;
            }
            if missing == 0 {
                return false;
            }
        }
        false
    }

    /// Lets an aggressor take, best price first and first come first at each price, until it is
    /// filled, nothing within its limit is left, `steps` are used up (a maker met is one, a refill
    /// another), or the sink ends it. Gives what it has still open and the steps that are left.
    ///
    /// # Panics
    /// When the pools are not this book's, or the sink shows more of an order than that hides ([`Sink::refill`]): one
    /// that [`rest`](Self::rest) put there hides nothing.
    #[inline]
    pub fn take<S: Sink>(
        &mut self,
        pools: &mut BookPools,
        aggressor: &Aggressor,
        steps: u32,
        sink: &mut S,
    ) -> (Qty, u32) {
        let side = self.side_mut(aggressor.side.opposite());
        let mut open = aggressor.quantity.0;
        let mut steps = steps;
        while open > 0 && steps > 0 && side.is_reached_by(aggressor.limit) {
            let at = side.best;
            let level = &mut pools.levels[at];
            let maker = level.first;
            let order = &mut pools.orders[maker];
            if !sink.may_meet(Handle(maker), order.owner) {
                break;
            }
            steps -= 1;
            let quantity = open.min(order.remaining.0);
            open -= quantity;
            order.remaining.0 -= quantity;
            level.total -= u128::from(quantity.cast_unsigned());
            sink.fill(&Fill {
                maker: Handle(maker),
                maker_id: order.id,
                maker_owner: order.owner,
                price: level.price,
                quantity: Qty(quantity),
                maker_remaining: order.remaining,
            });
            if order.remaining.is_zero() {
                let slice = sink.refill(Handle(maker), order.id);
                if slice.is_zero() {
                    let next = order.next;
                    level.first = next;
                    level.orders -= 1;
                    pools.orders.release(maker);
                    if next == NONE {
                        side.remove(&mut pools.nodes, &mut pools.levels, at);
                    } else {
                        pools.orders[next].previous = NONE;
                    }
                } else {
                    steps = steps.saturating_sub(1);
                    pools.show_next_slice(at, slice);
                }
            }
            if sink.pauses() {
                break;
            }
        }
        (Qty(open), steps)
    }

    /// Puts an order at the end of its price's queue. The caller has made sure that it does not cross
    /// and that an order and, if its price has none, a level are free.
    ///
    /// # Panics
    /// When the pools have no room for it ([`BookPools::try_grow`]), with the book half changed; in builds with debug
    /// assertions also when `remaining` is not above zero.
    #[inline(always)]
    pub fn rest(
        &mut self,
        pools: &mut BookPools,
        side: Side,
        price: Price,
        remaining: Qty,
        (id, owner): (OrderId, u32),
    ) -> Handle {
        debug_assert!(remaining.is_positive());
        let at = self.side_mut(side).find_or_insert(&mut pools.nodes, &mut pools.levels, price);
        let level = &mut pools.levels[at];
        let last = level.last;
        let order = RestingOrder { id, remaining, next: NONE, previous: last, level: at, owner };
        let handle = pools.orders.put(order).expect("room for an order is checked before it rests");
        level.last = handle;
        level.orders += 1;
        level.total += u128::from(remaining.0.cast_unsigned());
        if last == NONE {
            level.first = handle;
        } else {
            pools.orders[last].next = handle;
        }
        Handle(handle)
    }

    /// Takes a resting order of this book out.
    ///
    /// # Panics
    /// It may when no order of this book rests at `handle`; if it does not, it leaves the book in no order.
    #[inline(always)]
    pub fn remove(&mut self, pools: &mut BookPools, handle: Handle) {
        self.take_away(pools, handle);
    }

    /// Takes the order of a side that would trade first out; its slot stays taken. The side has one.
    pub(crate) fn detach_first(&mut self, pools: &mut BookPools, side: Side) -> Handle {
        let first = Handle(pools.levels[self.side(side).best].first);
        self.detach(pools, first);
        first
    }

    /// The order of a side that would trade first.
    pub(crate) fn first(&self, pools: &BookPools, side: Side) -> Option<Handle> {
        named(self.side(side).best).map(|level| Handle(pools.levels[level].first))
    }

    /// As [`remove`](Self::remove); gives the order's price and what it had open.
    #[inline(always)]
    pub(crate) fn take_away(&mut self, pools: &mut BookPools, handle: Handle) -> (Price, Qty) {
        let taken = self.detach(pools, handle);
        pools.orders.release(handle.0);
        taken
    }

    /// Takes a resting order of this book out; its slot stays taken. Gives its price and what it had open.
    #[inline(always)]
    pub(crate) fn detach(&mut self, pools: &mut BookPools, handle: Handle) -> (Price, Qty) {
        let RestingOrder { remaining, next, previous, level: at, .. } = pools.orders[handle.0];
        let level = &mut pools.levels[at];
        let price = level.price;
        level.total -= u128::from(remaining.0.cast_unsigned());
        level.orders -= 1;
        if previous == NONE {
            level.first = next;
        } else {
            pools.orders[previous].next = next;
        }
        if next == NONE {
            level.last = previous;
        } else {
            pools.orders[next].previous = previous;
        }
        if level.orders == 0 {
            let side = if level.is_bid { Side::Buy } else { Side::Sell };
            self.side_mut(side).remove(&mut pools.nodes, &mut pools.levels, at);
        }
        (price, remaining)
    }

    /// Lowers what a resting order of this book has open to `remaining`, above zero; it keeps its
    /// place in the queue.
    ///
    /// # Panics
    /// It may when no order of this book rests at `handle`, or `remaining` is not below what it has open; if it does
    /// not, it leaves the book in no order.
    pub fn reduce(&mut self, pools: &mut BookPools, handle: Handle, remaining: Qty) {
        let order = &mut pools.orders[handle.0];
        debug_assert!(remaining.is_positive() && remaining < order.remaining);
        let taken = order.remaining.0 - remaining.0;
        order.remaining = remaining;
        pools.levels[order.level].total -= u128::from(taken.cast_unsigned());
    }
}
