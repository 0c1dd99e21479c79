//! The book of one symbol, order by order.

use std::collections::{BTreeMap, HashMap, btree_map::Entry};

use super::BookError;
use crate::message::enums::Side;
use crate::units::{OrderId, SymbolId};

/// Names an order in errors too.
type Place = (SymbolId, OrderId);

/// An order as the book shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookOrder {
    /// Its number.
    pub order_id: OrderId,
    /// Its side.
    pub side: Side,
    /// Its price, 10⁻⁸.
    pub price: i64,
    /// What the book shows of it, 10⁻⁸.
    pub quantity: i64,
}

/// A price with what is open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookLevel {
    /// 10⁻⁸.
    pub price: i64,
    /// Sum over its orders, 10⁻⁸.
    pub quantity: i128,
    /// Number of its orders.
    pub orders: usize,
}

/// Where an order stands. Arrivals count up in a book, so that a level's queue is in their order.
#[derive(Debug, Clone, Copy)]
struct Standing {
    order: BookOrder,
    arrival: u64,
}

#[derive(Debug, Clone, Default)]
struct Level {
    quantity: i128,
    queue: BTreeMap<u64, OrderId>,
}

/// The orders of one symbol.
#[derive(Debug, Clone, Default)]
pub struct Book {
    orders: HashMap<OrderId, Standing>,
    bids: BTreeMap<i64, Level>,
    asks: BTreeMap<i64, Level>,
    arrivals: u64,
}

impl Book {
    /// Number of orders.
    #[must_use]
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    /// True without any order.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// An order by number.
    #[must_use]
    pub fn order(&self, id: OrderId) -> Option<&BookOrder> {
        self.orders.get(&id).map(|standing| &standing.order)
    }

    /// The best level of a side.
    #[must_use]
    pub fn best(&self, side: Side) -> Option<BookLevel> {
        self.depth(side).next()
    }

    /// The levels of a side, best first.
    pub fn depth(&self, side: Side) -> impl Iterator<Item = BookLevel> {
        self.levels(side).map(|(price, level)| BookLevel {
            price: *price,
            quantity: level.quantity,
            orders: level.queue.len(),
        })
    }

    /// The orders of a side in the order in which they would trade.
    pub fn orders(&self, side: Side) -> impl Iterator<Item = &BookOrder> {
        let queues = self.levels(side).flat_map(|(_, level)| level.queue.values());
        queues.filter_map(|id| self.order(*id))
    }

    fn levels(&self, side: Side) -> impl Iterator<Item = (&i64, &Level)> {
        // One of the two is empty, so that both sides are of one type.
        let (bids, asks) = match side {
            Side::Buy => (Some(&self.bids), None),
            Side::Sell => (None, Some(&self.asks)),
        };
        let bids = bids.into_iter().flat_map(|levels| levels.iter().rev());
        bids.chain(asks.into_iter().flatten())
    }

    pub(super) fn add(
        &mut self,
        place: Place,
        side: Side,
        price: i64,
        quantity: i64,
    ) -> Result<(), BookError> {
        if quantity <= 0 {
            return Err(BookError::Number { field: "quantity of an order", value: quantity });
        }
        let (symbol, order_id) = place;
        if self.orders.contains_key(&order_id) {
            return Err(BookError::AddedTwice { symbol, order: order_id });
        }
        let (order, arrival) = (BookOrder { order_id, side, price, quantity }, self.arrivals);
        self.arrivals += 1;
        self.orders.insert(order_id, Standing { order, arrival });
        let level = self.side(side).entry(price).or_default();
        level.quantity += i128::from(quantity);
        level.queue.insert(arrival, order_id);
        Ok(())
    }

    /// Takes `quantity` off an order that must stand at `at`; an order of which nothing is left leaves, which true says.
    pub(super) fn take(
        &mut self,
        place: Place,
        at: (Side, i64),
        quantity: i64,
    ) -> Result<bool, BookError> {
        let standing = self.find(place, at)?;
        let order = &mut standing.order;
        if quantity <= 0 || quantity > order.quantity {
            return Err(mismatch(place, "quantity", quantity, order.quantity));
        }
        order.quantity -= quantity;
        let (left, arrival) = (order.quantity, standing.arrival);
        self.lower(at, arrival, quantity, left == 0);
        if left == 0 {
            self.orders.remove(&place.1);
        }
        Ok(left == 0)
    }

    /// Removes an order that must stand at `at` and show `quantity`.
    pub(super) fn remove(
        &mut self,
        place: Place,
        at: (Side, i64),
        quantity: i64,
    ) -> Result<(), BookError> {
        let shown = self.find(place, at)?.order.quantity;
        if shown != quantity {
            return Err(mismatch(place, "quantity", quantity, shown));
        }
        self.take(place, at, quantity).map(|_| ())
    }

    fn find(&mut self, place: Place, at: (Side, i64)) -> Result<&mut Standing, BookError> {
        let (symbol, order) = place;
        let unknown = BookError::UnknownOrder { symbol, order };
        let standing = self.orders.get_mut(&order).ok_or(unknown)?;
        let found = standing.order;
        if found.side != at.0 {
            let number = |side: Side| i64::from(side.to_wire());
            return Err(mismatch(place, "side", number(at.0), number(found.side)));
        }
        if found.price != at.1 {
            return Err(mismatch(place, "price", at.1, found.price));
        }
        Ok(standing)
    }

    /// Takes `quantity` off a level; `leaves` says that the order of that arrival leaves it.
    fn lower(&mut self, (side, price): (Side, i64), arrival: u64, quantity: i64, leaves: bool) {
        let Entry::Occupied(mut level) = self.side(side).entry(price) else { return };
        level.get_mut().quantity -= i128::from(quantity);
        if leaves {
            level.get_mut().queue.remove(&arrival);
            if level.get().queue.is_empty() {
                level.remove();
            }
        }
    }

    fn side(&mut self, side: Side) -> &mut BTreeMap<i64, Level> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }
}

const fn mismatch(place: Place, what: &'static str, found: i64, expected: i64) -> BookError {
    BookError::Mismatch { symbol: place.0, order: place.1, what, found, expected }
}
