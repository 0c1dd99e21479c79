//! [`OrderBook`]: one book with pools and an order table of its own, for whoever wants matching and
//! nothing else (benches against other engines, tools, tests). The venue does not use it; it uses the
//! same [`SymbolBook`] underneath.

use super::{Aggressor, BookPools, DepthLevel, Fill, Handle, RestingView, Sink, SymbolBook};
use crate::hash::Seed;
use crate::pool::NONE;
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

/// What a book must be able to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BookCapacity {
    /// Orders resting at a time.
    pub orders: u32,
    /// Occupied levels at a time, up to [`LEVELS_MAX`](super::LEVELS_MAX).
    pub levels: u32,
    /// What most prices are multiples of; 0 or a wrong one costs only time.
    pub tick: Price,
    /// Whether orders are found by number. If not, there is no table to keep: an order is named by
    /// the place that [`Placed::Rests`] told, and the caller never gives a resting order's number to
    /// another.
    pub finds_by_id: bool,
}

/// An operation that comes soon: see [`OrderBook::look_ahead`]. Plain data for every kind of operation,
/// since kinds come in no order that a processor could guess.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coming {
    /// True for a new order; else one that rests is cancelled, reduced or replaced.
    pub is_new: bool,
    /// The order's number, for a book that finds by number.
    pub id: OrderId,
    /// Where it rests, for a book that does not; looked at only if it is not new.
    pub handle: Handle,
    /// Its side; looked at only if it is new.
    pub side: Side,
    /// Its limit; looked at only if it is new.
    pub price: Price,
}

/// A book for one symbol.
///
/// A [`Sink`] that panics leaves it half changed, a filled order still in it or a count too high: whoever catches that
/// panic must throw the book away, and build another one.
///
/// Prices and quantities are counted in whatever the caller counts them in: the book compares and adds the
/// numbers and knows no scale, so whole ticks and lots are as good as the venue's 10⁻⁸. Only where
/// [`Price`] and [`Qty`] are printed does one stand for 10⁻⁸ (`Price(101)` is `0.00000101`); the number itself
/// is their field.
///
/// ```
/// use touchline_core::book::{Fill, NewBookOrder, OrderBook, Placed, Sink};
/// use touchline_protocol::message::enums::{Side, TimeInForce};
/// use touchline_protocol::units::{OrderId, Price, Qty};
///
/// struct Fills(Vec<Fill>);
///
/// impl Sink for Fills {
///     fn fill(&mut self, fill: &Fill) {
///         self.0.push(*fill);
///     }
/// }
///
/// let order = |id, side, price, quantity| NewBookOrder {
///     id: OrderId(id),
///     owner: 7,
///     side,
///     time_in_force: TimeInForce::Gtc,
///     price: Price(price),
///     quantity: Qty(quantity),
/// };
/// let mut book = OrderBook::with_capacity(1000, 100);
/// let mut fills = Fills(Vec::new());
/// book.place(&order(1, Side::Sell, 101, 5), &mut fills)?;
/// book.place(&order(2, Side::Sell, 102, 5), &mut fills)?;
///
/// // A buy that crosses takes the best price first; its rest goes into the book.
/// let placed = book.place(&order(3, Side::Buy, 101, 8), &mut fills)?;
/// assert!(matches!(placed, Placed::Rests { remaining: Qty(3), .. }));
/// let [fill] = fills.0[..] else { panic!("{:?}", fills.0) };
/// assert_eq!((fill.maker_id, fill.price, fill.quantity), (OrderId(1), Price(101), Qty(5)));
/// assert!(fill.maker_remaining.is_zero());
///
/// assert_eq!(book.cancel(OrderId(3))?.remaining, Qty(3));
/// assert_eq!((book.best(Side::Buy), book.best(Side::Sell)), (None, Some(Price(102))));
/// # Ok::<(), touchline_core::book::BookError>(())
/// ```
#[derive(Debug)]
pub struct OrderBook {
    pools: BookPools,
    book: SymbolBook,
    ids: Option<Table>,
    seed: Seed,
    orders_max: u32,
    levels_max: u32,
}

/// Takes filled makers out of the order table before it hands the report on.
struct Forgetting<'book, S> {
    ids: &'book mut Option<Table>,
    seed: Seed,
    sink: &'book mut S,
}

impl<S: Sink> Sink for Forgetting<'_, S> {
    #[inline]
    fn fill(&mut self, fill: &Fill) {
        if let Some(ids) = self.ids
            && fill.maker_remaining.is_zero()
        {
            ids.remove(self.seed.order(0, fill.maker_id.0), fill.maker.0);
        }
        self.sink.fill(fill);
    }
}

impl OrderBook {
    /// With fewer orders at rest than these [`OrderBook::look_ahead`] does nothing: all that it would look at
    /// is in the cache anyway, and it would only take time.
    pub const LOOK_AHEAD_FROM: u32 = 1 << 15;

    /// A book for at most `orders` resting orders, found by number, on at most `levels` prices. All
    /// memory is taken, and touched, here.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_capacity(orders: u32, levels: u32) -> Self {
        Self::new(&BookCapacity { orders, levels, tick: Price(1), finds_by_id: true })
    }

    /// A book that can hold so much. All memory is taken, and touched, here.
    ///
    /// # Panics
    /// When there is no memory, or there are too many levels.
    #[must_use]
    pub fn new(capacity: &BookCapacity) -> Self {
        let BookCapacity { orders, levels, tick, finds_by_id } = *capacity;
        assert!(levels <= super::LEVELS_MAX, "{levels} levels asked for");
        let mut pools = BookPools::new();
        pools.try_grow(orders, levels).expect("memory for the book");
        let ids = finds_by_id.then(|| {
            let mut ids = Table::new();
            ids.try_grow(orders).expect("memory for the order table");
            ids
        });
        let book = SymbolBook::with_tick(tick);
        Self { pools, book, ids, seed: Seed::new(0), orders_max: orders, levels_max: levels }
    }

    #[inline]
    const fn hash(&self, id: OrderId) -> u32 {
        self.seed.order(0, id.0)
    }

    fn find(&self, id: OrderId) -> Option<Handle> {
        let ids = self.ids.as_ref()?;
        ids.find(self.hash(id), |handle| self.pools.id(handle) == id).map(Handle)
    }

    /// Places an order: takes what it can, then rests or expires by its time in force.
    ///
    /// # Errors
    /// [`BookError::InvalidQuantity`], [`BookError::DuplicateId`], [`BookError::Full`].
    #[inline]
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
        if time_in_force == TimeInForce::Fok && !self.book.covers(&self.pools, &aggressor, u32::MAX)
        {
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
            if let Some(ids) = &mut self.ids {
                ids.insert(self.seed.order(0, id.0), handle.0);
            }
            Placed::Rests { remaining, handle }
        } else {
            Placed::Expired { remaining }
        })
    }

    /// Whether an order could rest. One that takes first and then rests has emptied a level, and an
    /// order on it, before it needs its own.
    #[inline]
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
    #[inline]
    pub fn cancel(&mut self, id: OrderId) -> Result<Canceled, BookError> {
        let hash = self.hash(id);
        let ids = self.ids.as_mut().ok_or(BookError::UnknownOrder(id))?;
        let handle = ids.take(hash, |handle| self.pools.id(handle) == id);
        Ok(self.remove(Handle(handle.ok_or(BookError::UnknownOrder(id))?)))
    }

    /// Cancels a resting order at the place that [`place`](Self::place) gave; if another order or
    /// none lies there now, looks it up by number.
    ///
    /// # Errors
    /// [`BookError::UnknownOrder`].
    #[inline]
    pub fn cancel_at(&mut self, handle: Handle, id: OrderId) -> Result<Canceled, BookError> {
        if !self.pools.rests_at(handle, id) {
            return self.cancel(id);
        }
        let hash = self.hash(id);
        if let Some(ids) = &mut self.ids {
            ids.remove(hash, handle.0);
        }
        Ok(self.remove(handle))
    }

    /// Takes an order out that is in the table no more.
    #[inline]
    fn remove(&mut self, handle: Handle) -> Canceled {
        let RestingView { side, price, remaining, .. } = self.pools.order(handle);
        self.book.remove(&mut self.pools, handle);
        Canceled { side, price, remaining }
    }

    /// Cancels an order and places another in its stead, as one step: if the new one cannot be placed,
    /// the old one stays as it is. The new order has no claim on the old one's place in the queue; it
    /// may have the same number.
    ///
    /// # Errors
    /// [`BookError::UnknownOrder`] of the old one, and those of [`place`](Self::place) but
    /// [`BookError::Full`]: the old order makes room, except for a price level that it shares.
    pub fn replace<S: Sink>(
        &mut self,
        (handle, old): (Handle, OrderId),
        order: &NewBookOrder,
        sink: &mut S,
    ) -> Result<(Canceled, Placed), BookError> {
        let handle = if self.pools.rests_at(handle, old) { Some(handle) } else { self.find(old) };
        let handle = handle.ok_or(BookError::UnknownOrder(old))?;
        if !order.quantity.is_positive() {
            return Err(BookError::InvalidQuantity(order.quantity));
        }
        if order.id != old && self.find(order.id).is_some() {
            return Err(BookError::DuplicateId(order.id));
        }
        if order.time_in_force == TimeInForce::Gtc && !self.has_room_without(handle, order) {
            return Err(BookError::Full);
        }
        let canceled = self.cancel_at(handle, old)?;
        Ok((canceled, self.place(order, sink)?))
    }

    /// Whether an order could rest once the one at `handle` has left.
    fn has_room_without(&self, handle: Handle, order: &NewBookOrder) -> bool {
        self.pools.levels() < self.levels_max
            || self.book.crosses(order.side, order.price)
            || self.pools.is_alone(handle)
            || self.book.has_level(&self.pools, order.side, order.price)
    }

    /// Brings what the coming operations will look at into the cache, all of it at a time instead of
    /// one miss after the other. Changes nothing, and nothing has to come true. In a book of fewer than
    /// [`LOOK_AHEAD_FROM`](Self::LOOK_AHEAD_FROM) orders it does nothing, and takes nothing from `coming`.
    #[inline]
    pub fn look_ahead(&self, coming: impl Iterator<Item = Coming>) {
        if self.pools.orders() >= Self::LOOK_AHEAD_FROM {
            self.touch(coming);
        }
    }

    /// In rounds, each over all operations: what one finds the next looks at. Within a round nothing
    /// depends on what was found, also not whether anything was: a wrong guess of the processor would
    /// cost what the round is to save.
    #[inline(never)]
    fn touch(&self, coming: impl Iterator<Item = Coming>) {
        /// Operations whose loads are under way at a time.
        const GROUP: usize = 64;
        let mut coming = coming.peekable();
        while coming.peek().is_some() {
            let mut new = [(Side::Buy, Price::ZERO); GROUP];
            let mut hashes = [0; GROUP];
            let mut entries = [NONE; GROUP];
            let mut changed = [0; GROUP];
            let (mut count, mut news, mut changes) = (0, 0, 0);
            for coming in coming.by_ref().take(GROUP) {
                hashes[count] = self.hash(coming.id);
                entries[count] = match &self.ids {
                    Some(ids) => ids.first_guess(hashes[count]),
                    None => coming.handle.0,
                };
                new[news] = (coming.side, coming.price);
                changed[changes] = count;
                count += 1;
                news += usize::from(coming.is_new);
                changes += usize::from(!coming.is_new);
            }
            if let Some(ids) = &self.ids {
                // A quarter of the orders are not the first of their place, few of them not the second.
                ids.guess_again(&hashes[..count], &mut entries[..count]);
                ids.guess_again(&hashes[..count], &mut entries[..count]);
            }
            let resting = changed.map(|at| entries[at]);
            let mut levels = [NONE; GROUP];
            for (level, &(side, price)) in levels.iter_mut().zip(&new[..news]) {
                *level = self.book.level_at(&self.pools, side, price).unwrap_or(NONE);
            }
            self.pools.touch(&resting[..changes], &levels[..news]);
        }
    }

    /// Lowers what a resting order has open to `remaining`; it keeps its place in the queue.
    ///
    /// # Errors
    /// [`BookError::UnknownOrder`], [`BookError::InvalidQuantity`], [`BookError::NotReduced`].
    pub fn reduce(&mut self, id: OrderId, remaining: Qty) -> Result<Reduced, BookError> {
        let handle = self.find(id).ok_or(BookError::UnknownOrder(id))?;
        self.reduce_known(handle, remaining)
    }

    /// As [`reduce`](Self::reduce), at the place that [`place`](Self::place) gave; if another order or
    /// none lies there now, looks it up by number.
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce).
    pub fn reduce_at(
        &mut self,
        handle: Handle,
        id: OrderId,
        remaining: Qty,
    ) -> Result<Reduced, BookError> {
        if self.pools.rests_at(handle, id) {
            self.reduce_known(handle, remaining)
        } else {
            self.reduce(id, remaining)
        }
    }

    fn reduce_known(&mut self, handle: Handle, remaining: Qty) -> Result<Reduced, BookError> {
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
    pub fn orders(&self, side: Side) -> impl Iterator<Item = RestingView> {
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
        let Some(ids) = &self.ids else { return Ok(()) };
        for side in [Side::Buy, Side::Sell] {
            for order in self.orders(side) {
                if self.find(order.id) != Some(order.handle) {
                    return Err(alloc::format!("order {} is not found by its number", order.id));
                }
            }
        }
        if ids.len() != self.pools.orders() {
            return Err(alloc::format!("{} numbers for {} orders", ids.len(), self.len()));
        }
        Ok(())
    }
}
