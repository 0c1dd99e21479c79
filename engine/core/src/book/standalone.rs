//! [`OrderBook`]: one book with pools and an order table of its own, for whoever wants matching and
//! nothing else (benches against other engines, tools, tests). The venue does not use it; it uses the
//! same [`SymbolBook`] underneath.

use super::{Aggressor, BookPools, DepthLevel, Fill, Handle, Sink, SymbolBook};
use crate::hash::Seed;
use crate::table::Table;
use alloc::string::String;
use core::fmt;
use touchline_protocol::message::enums::{Side, TimeInForce};
use touchline_protocol::units::{OrderId, Price, Qty};

/// An order for an [`OrderBook`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewBookOrder {
    /// Any number that no resting order has.
    pub id: OrderId,
    /// Handed on in reports.
    pub owner: u32,
    /// Buy or sell.
    pub side: Side,
    /// What to do with what cannot be filled at once.
    pub time_in_force: TimeInForce,
    /// The limit: any value.
    pub price: Price,
    /// Base quantity, above zero.
    pub quantity: Qty,
}

/// What became of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placed {
    /// Wholly filled.
    Filled,
    /// This much rests.
    Rests {
        /// Base quantity still open.
        remaining: Qty,
        /// Where: speeds up [`OrderBook::cancel_at`].
        handle: Handle,
    },
    /// This much is gone without a fill (IOC's rest, or all of an FOK).
    Expired {
        /// Base quantity that was not filled.
        remaining: Qty,
    },
}

/// A cancelled order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Canceled {
    /// Its side.
    pub side: Side,
    /// Its price.
    pub price: Price,
    /// What it had open.
    pub remaining: Qty,
}

/// A reduced order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduced {
    /// Its side.
    pub side: Side,
    /// Its price.
    pub price: Price,
    /// What it has open now.
    pub remaining: Qty,
}

/// Why a request was refused; the book is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BookError {
    /// A resting order has this number.
    DuplicateId(OrderId),
    /// No resting order has this number.
    UnknownOrder(OrderId),
    /// A quantity is not above zero.
    InvalidQuantity(Qty),
    /// A reduction that does not reduce.
    NotReduced {
        /// What the order has open.
        present: Qty,
        /// What was asked for.
        asked: Qty,
    },
    /// No order or no level is free for what might rest.
    Full,
}

impl fmt::Display for BookError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateId(id) => write!(formatter, "order {id} rests already"),
            Self::UnknownOrder(id) => write!(formatter, "no order {id} rests"),
            Self::InvalidQuantity(quantity) => {
                write!(formatter, "quantity {quantity} is not above 0")
            }
            Self::NotReduced { present, asked } => {
                write!(formatter, "new open quantity {asked} is not below the present {present}")
            }
            Self::Full => write!(formatter, "no free order or price level"),
        }
    }
}

impl core::error::Error for BookError {}

/// A book for one symbol.
#[derive(Debug)]
pub struct OrderBook {
    pools: BookPools,
    book: SymbolBook,
    ids: Table,
    seed: Seed,
    orders_max: u32,
    levels_max: u32,
}

/// Takes filled makers out of the order table before it hands the report on.
struct Forgetting<'book, S> {
    ids: &'book mut Table,
    seed: Seed,
    sink: &'book mut S,
}

impl<S: Sink> Sink for Forgetting<'_, S> {
    fn fill(&mut self, fill: &Fill) {
        if fill.maker_remaining.is_zero() {
            self.ids.remove(self.seed.order(0, fill.maker_id.0), fill.maker.0);
        }
        self.sink.fill(fill);
    }
}

impl OrderBook {
    /// A book for at most `orders` resting orders on at most `levels` prices (up to
    /// [`LEVELS_MAX`](super::LEVELS_MAX)). All memory is taken, and touched, here.
    ///
    /// # Panics
    /// When there is no memory, or `levels` is too large.
    #[must_use]
    pub fn with_capacity(orders: u32, levels: u32) -> Self {
        assert!(levels <= super::LEVELS_MAX, "{levels} levels asked for");
        let mut pools = BookPools::new();
        let mut ids = Table::new();
        pools.try_grow(orders, levels).expect("memory for the book");
        ids.try_grow(orders).expect("memory for the order table");
        let (orders_max, levels_max) = (orders, levels);
        Self { pools, book: SymbolBook::new(), ids, seed: Seed::new(0), orders_max, levels_max }
    }

    fn find(&self, id: OrderId) -> Option<Handle> {
        self.ids.find(self.seed.order(0, id.0), |handle| self.pools.id(handle) == id).map(Handle)
    }

    /// Places an order: takes what it can, then rests or expires by its time in force.
    ///
    /// # Errors
    /// [`BookError::InvalidQuantity`], [`BookError::DuplicateId`], [`BookError::Full`].
    pub fn place<S: Sink>(
        &mut self,
        order: &NewBookOrder,
        sink: &mut S,
    ) -> Result<Placed, BookError> {
        let NewBookOrder { id, owner, side, time_in_force, price, quantity } = *order;
        if !quantity.is_positive() {
            return Err(BookError::InvalidQuantity(quantity));
        }
        if self.find(id).is_some() {
            return Err(BookError::DuplicateId(id));
        }
        let crosses = self.book.crosses(side, price);
        if time_in_force == TimeInForce::Gtc && !self.has_room(side, price, crosses) {
            return Err(BookError::Full);
        }
        let aggressor = Aggressor { side, limit: price, quantity };
        if time_in_force == TimeInForce::Fok && !self.book.covers(&self.pools, &aggressor) {
            return Ok(Placed::Expired { remaining: quantity });
        }
        let mut remaining = quantity;
        if crosses {
            let mut sink = Forgetting { ids: &mut self.ids, seed: self.seed, sink };
            (remaining, _) = self.book.take(&mut self.pools, &aggressor, u32::MAX, &mut sink);
        }
        Ok(if remaining.is_zero() {
            Placed::Filled
        } else if time_in_force == TimeInForce::Gtc {
            let handle = self.book.rest(&mut self.pools, side, price, remaining, (id, owner));
            self.ids.insert(self.seed.order(0, id.0), handle.0);
            Placed::Rests { remaining, handle }
        } else {
            Placed::Expired { remaining }
        })
    }

    /// Whether an order could rest. One that takes first and then rests has emptied a level, and an
    /// order on it, before it needs its own.
    fn has_room(&self, side: Side, price: Price, crosses: bool) -> bool {
        crosses
            || self.pools.orders() < self.orders_max
                && (self.pools.levels() < self.levels_max
                    || self.book.has_level(&self.pools, side, price))
    }

    /// Cancels a resting order.
    ///
    /// # Errors
    /// [`BookError::UnknownOrder`].
    pub fn cancel(&mut self, id: OrderId) -> Result<Canceled, BookError> {
        let handle = self.find(id).ok_or(BookError::UnknownOrder(id))?;
        Ok(self.remove(handle, id))
    }

    /// Cancels a resting order at the place that [`place`](Self::place) gave; if another order or
    /// none lies there now, looks it up by number.
    ///
    /// # Errors
    /// [`BookError::UnknownOrder`].
    pub fn cancel_at(&mut self, handle: Handle, id: OrderId) -> Result<Canceled, BookError> {
        if self.pools.rests_at(handle, id) { Ok(self.remove(handle, id)) } else { self.cancel(id) }
    }

    fn remove(&mut self, handle: Handle, id: OrderId) -> Canceled {
        let order = self.pools.order(handle);
        self.ids.remove(self.seed.order(0, id.0), handle.0);
        self.book.remove(&mut self.pools, handle);
        Canceled { side: order.side, price: order.price, remaining: order.remaining }
    }

    /// Lowers what a resting order has open to `remaining`; it keeps its place in the queue.
    ///
    /// # Errors
    /// [`BookError::UnknownOrder`], [`BookError::InvalidQuantity`], [`BookError::NotReduced`].
    pub fn reduce(&mut self, id: OrderId, remaining: Qty) -> Result<Reduced, BookError> {
        let handle = self.find(id).ok_or(BookError::UnknownOrder(id))?;
        let order = self.pools.order(handle);
        if !remaining.is_positive() {
            return Err(BookError::InvalidQuantity(remaining));
        }
        if remaining >= order.remaining {
            return Err(BookError::NotReduced { present: order.remaining, asked: remaining });
        }
        self.book.reduce(&mut self.pools, handle, remaining);
        Ok(Reduced { side: order.side, price: order.price, remaining })
    }

    /// The best price of a side.
    #[must_use]
    pub fn best(&self, side: Side) -> Option<Price> {
        self.book.best(side)
    }

    /// Levels of a side, best first.
    pub fn depth(&self, side: Side) -> impl Iterator<Item = DepthLevel> {
        self.book.depth(&self.pools, side)
    }

    /// Orders of a side in the order in which they would trade.
    pub fn orders(&self, side: Side) -> impl Iterator<Item = super::RestingView> {
        self.book.orders(&self.pools, side)
    }

    /// Number of resting orders.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.pools.orders()
    }

    /// True when nothing rests.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pools.orders() == 0
    }

    /// Checks every link, sum and count of the book. For tests: takes time in proportion to its size.
    ///
    /// # Errors
    /// What does not fit together.
    pub fn validate(&self) -> Result<(), String> {
        let counts = self.book.validate(&self.pools)?;
        self.pools.validate(counts)?;
        for side in [Side::Buy, Side::Sell] {
            for order in self.orders(side) {
                if self.find(order.id) != Some(order.handle) {
                    return Err(alloc::format!("order {} is not found by its number", order.id));
                }
            }
        }
        if self.ids.len() != self.pools.orders() {
            return Err(alloc::format!("{} numbers for {} orders", self.ids.len(), self.len()));
        }
        Ok(())
    }
}
