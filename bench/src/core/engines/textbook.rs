//! What a textbook says a fast book is, written for this comparison and not tuned against anything:
//! an array of ticks in a bounded window with an occupancy bitmap of three layers per side, intrusive queues of
//! orders in one slab with 32-bit links, cached best prices, and an index from id to slot.
//!
//! What that buys is limited, and the limits are part of the design: the window stands where the
//! first price was, and prices beyond it are kept in a sorted map. The index comes as a hash map, for
//! ids of any kind, and as an array, which is the fastest there can be as long as ids are dense, and
//! grows with every id that ever was. A large book looks ahead for the operations that it is shown.
//! Called through [`super::Engine`].

mod bitmap;
mod index;

pub use index::{Array, Map};

use std::collections::{BTreeMap, VecDeque};

use touchline_protocol::message::enums::Side;

use super::super::flows::Capacity;
use super::super::operation::{Depth, Kind, Operation, Reports};
use super::Engine;
use bitmap::Bitmap;
use index::Index;

/// Ticks in the window: 2 MiB of levels, and as much room as the bursts' prices need, which move by
/// 25,000 from where they begin.
const TICKS: usize = 1 << 17;
/// With room for fewer orders the book fits the cache, and looking ahead would only cost.
const LOOK_AHEAD_FROM: usize = 1 << 15;
/// Operations whose loads are under way at a time.
const GROUP: usize = 64;
const NONE: u32 = u32::MAX;
/// Slot of an id whose order lies beyond the window.
const BEYOND: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Order {
    quantity: u64,
    id: u32,
    tick: u32,
    next: u32,
    previous: u32,
    side: Side,
}

const _: () = assert!(size_of::<Order>() == 32);

/// Orders at one price, of either side: a price never has both.
#[derive(Clone, Copy, Debug)]
struct Level {
    total: u64,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct FarOrder {
    id: u32,
    quantity: u64,
}

/// The book.
#[derive(Debug)]
pub struct Textbook<I> {
    orders: Vec<Order>,
    free: u32,
    levels: Box<[Level; TICKS]>,
    bid_ticks: Bitmap,
    ask_ticks: Bitmap,
    /// Best ticks in the window, or [`TICKS`].
    best_bid: usize,
    best_ask: usize,
    /// Price of the window's first tick.
    base: i64,
    slots: I,
    far_bids: BTreeMap<i64, VecDeque<FarOrder>>,
    far_asks: BTreeMap<i64, VecDeque<FarOrder>>,
    /// Side and price of the orders beyond the window.
    far_ids: BTreeMap<u32, (Side, i64)>,
}

impl<I: Index> Textbook<I> {
    #[inline]
    fn tick(&self, price: i64) -> Option<usize> {
        let tick = usize::try_from(price.wrapping_sub(self.base)).ok()?;
        (tick < TICKS).then_some(tick)
    }

    #[inline]
    fn place<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        let Operation { id, price, side, kind, .. } = *operation;
        let mut open = u64::from(operation.quantity);
        match side {
            Side::Buy => {
                while open > 0
                    && self.best_ask < TICKS
                    && self.base + self.best_ask as i64 <= price
                    && !self.far_first(Side::Sell, self.best_ask)
                {
                    open = self.take_level(self.best_ask, id, open, reports);
                    if self.levels[self.best_ask].first == NONE {
                        self.ask_ticks.clear(self.best_ask);
                        self.best_ask = self.ask_ticks.up_from(self.best_ask);
                    }
                }
            }
            Side::Sell => {
                while open > 0
                    && self.best_bid < TICKS
                    && self.base + self.best_bid as i64 >= price
                    && !self.far_first(Side::Buy, self.best_bid)
                {
                    open = self.take_level(self.best_bid, id, open, reports);
                    if self.levels[self.best_bid].first == NONE {
                        self.bid_ticks.clear(self.best_bid);
                        self.best_bid = self.bid_ticks.down_from(self.best_bid);
                    }
                }
            }
        }
        if open > 0 && !(self.far_bids.is_empty() && self.far_asks.is_empty()) {
            let before = open;
            open = self.take_far(operation, open, reports);
            if open > 0 && open < before {
                // Between far levels may lie levels of the window.
                let rest = Operation { quantity: open as u32, ..*operation };
                return self.place(&rest, reports);
            }
        }
        if open > 0 && kind != Kind::Ioc {
            self.rest(id, side, price, open);
        }
        reports.done(id, open);
    }

    /// True when a level beyond the window is better than the window's best one.
    #[inline]
    fn far_first(&self, side: Side, tick: usize) -> bool {
        let price = self.base + tick as i64;
        match side {
            Side::Sell => {
                !self.far_asks.is_empty()
                    && self.far_asks.first_key_value().is_some_and(|(&far, _)| far < price)
            }
            Side::Buy => {
                !self.far_bids.is_empty()
                    && self.far_bids.last_key_value().is_some_and(|(&far, _)| far > price)
            }
        }
    }

    #[inline]
    fn take_level<R: Reports>(
        &mut self,
        tick: usize,
        taker: u32,
        mut open: u64,
        reports: &mut R,
    ) -> u64 {
        let level = &mut self.levels[tick];
        let price = self.base + tick as i64;
        while open > 0 && level.first != NONE {
            let slot = level.first;
            let order = &mut self.orders[slot as usize];
            let traded = open.min(order.quantity);
            open -= traded;
            order.quantity -= traded;
            level.total -= traded;
            reports.fill(order.id, taker, price, traded);
            if order.quantity == 0 {
                self.slots.forget(order.id);
                level.first = order.next;
                order.next = self.free;
                self.free = slot;
                if level.first == NONE {
                    level.last = NONE;
                } else {
                    self.orders[level.first as usize].previous = NONE;
                }
            }
        }
        open
    }

    #[inline]
    fn rest(&mut self, id: u32, side: Side, price: i64, quantity: u64) {
        let Some(tick) = self.tick(price) else { return self.rest_far(id, side, price, quantity) };
        let slot = self.free;
        let level = &mut self.levels[tick];
        let last = level.last;
        let order = &mut self.orders[slot as usize];
        self.free = order.next;
        *order = Order { id, quantity, tick: tick as u32, next: NONE, previous: last, side };
        self.slots.set(id, slot);
        level.last = slot;
        level.total += quantity;
        if last != NONE {
            self.orders[last as usize].next = slot;
            return;
        }
        level.first = slot;
        match side {
            Side::Buy => {
                self.bid_ticks.set(tick);
                if self.best_bid == TICKS || tick > self.best_bid {
                    self.best_bid = tick;
                }
            }
            Side::Sell => {
                self.ask_ticks.set(tick);
                self.best_ask = self.best_ask.min(tick);
            }
        }
    }

    /// False if no such order rests.
    #[inline]
    fn cancel(&mut self, id: u32) -> bool {
        let slot = self.slots.get(id);
        if slot >= BEYOND {
            return slot == BEYOND && self.cancel_far(id);
        }
        self.slots.forget(id);
        let Order { quantity, tick, next, previous, side, .. } = self.orders[slot as usize];
        self.orders[slot as usize].next = self.free;
        self.free = slot;
        let tick = tick as usize;
        let level = &mut self.levels[tick];
        level.total -= quantity;
        if next == NONE {
            level.last = previous;
        } else {
            self.orders[next as usize].previous = previous;
        }
        if previous != NONE {
            self.orders[previous as usize].next = next;
            return true;
        }
        level.first = next;
        if next != NONE {
            return true;
        }
        match side {
            Side::Buy => {
                self.bid_ticks.clear(tick);
                if tick == self.best_bid {
                    self.best_bid = self.bid_ticks.down_from(tick);
                }
            }
            Side::Sell => {
                self.ask_ticks.clear(tick);
                if tick == self.best_ask {
                    self.best_ask = self.ask_ticks.up_from(tick);
                }
            }
        }
        true
    }

    /// Reads what the operations will look at, so that the cache misses are under way together: first the
    /// index, then orders and levels, then their neighbours. What is not there is read elsewhere, without
    /// a branch to guess; nothing is changed.
    #[inline(never)]
    fn touch(&self, operations: &[Operation]) {
        let mut orders = [NONE; GROUP];
        for (order, operation) in orders.iter_mut().zip(operations) {
            *order = self.slots.get(operation.id);
        }
        let mut neighbours = [[NONE; 2]; GROUP];
        let mut levels = [0; GROUP];
        let mut lasts = [NONE; GROUP];
        let found = orders.iter().zip(operations).zip(&mut neighbours);
        for (((&order, operation), neighbours), (level, last)) in
            found.zip(levels.iter_mut().zip(&mut lasts))
        {
            let Order { tick, next, previous, .. } = self.orders[self.within(order)];
            (*neighbours, *level) = ([next, previous], tick);
            let tick = operation.price.wrapping_sub(self.base).cast_unsigned() as usize;
            *last = self.levels[tick.min(TICKS - 1)].last;
        }
        let mut sum = 0;
        for ((&[next, previous], &level), &last) in neighbours.iter().zip(&levels).zip(&lasts) {
            for order in [next, previous, last] {
                sum ^= self.orders[self.within(order)].quantity;
            }
            sum ^= self.levels[(level as usize).min(TICKS - 1)].total;
        }
        std::hint::black_box(sum);
    }

    /// A place in the slab, also for a link that leads nowhere.
    #[inline]
    fn within(&self, slot: u32) -> usize {
        (slot as usize).min(self.orders.len() - 1)
    }

    fn far(&mut self, side: Side) -> &mut BTreeMap<i64, VecDeque<FarOrder>> {
        match side {
            Side::Buy => &mut self.far_bids,
            Side::Sell => &mut self.far_asks,
        }
    }

    #[cold]
    fn rest_far(&mut self, id: u32, side: Side, price: i64, quantity: u64) {
        self.far(side).entry(price).or_default().push_back(FarOrder { id, quantity });
        self.far_ids.insert(id, (side, price));
        self.slots.set(id, BEYOND);
    }

    #[cold]
    fn cancel_far(&mut self, id: u32) -> bool {
        self.slots.forget(id);
        let Some((side, price)) = self.far_ids.remove(&id) else { return false };
        let levels = self.far(side);
        let Some(queue) = levels.get_mut(&price) else { return false };
        queue.retain(|order| order.id != id);
        if queue.is_empty() {
            levels.remove(&price);
        }
        true
    }

    /// Takes the best level beyond the window, if it is within the limit and the window has no better.
    #[cold]
    fn take_far<R: Reports>(
        &mut self,
        operation: &Operation,
        mut open: u64,
        reports: &mut R,
    ) -> u64 {
        let Operation { id, price: limit, side, .. } = *operation;
        let found = match side {
            Side::Buy => self.far_asks.first_key_value().map(|(&price, _)| price),
            Side::Sell => self.far_bids.last_key_value().map(|(&price, _)| price),
        };
        let (near, is_reached): (usize, fn(i64, i64) -> bool) = match side {
            Side::Buy => (self.best_ask, |price, limit| price <= limit),
            Side::Sell => (self.best_bid, |price, limit| price >= limit),
        };
        let Some(price) = found.filter(|&price| is_reached(price, limit)) else { return open };
        if near < TICKS && is_reached(self.base + near as i64, price) {
            return open;
        }
        let Some(mut queue) = self.far(side.opposite()).remove(&price) else { return open };
        while open > 0
            && let Some(maker) = queue.front_mut()
        {
            let traded = open.min(maker.quantity);
            open -= traded;
            maker.quantity -= traded;
            reports.fill(maker.id, id, price, traded);
            if maker.quantity == 0 {
                let maker = maker.id;
                queue.pop_front();
                self.slots.forget(maker);
                self.far_ids.remove(&maker);
            }
        }
        if !queue.is_empty() {
            self.far(side.opposite()).insert(price, queue);
        }
        open
    }

    #[cold]
    fn reduce(&mut self, id: u32, quantity: u64) -> bool {
        let slot = self.slots.get(id);
        if slot == BEYOND {
            let Some(&(side, price)) = self.far_ids.get(&id) else { return false };
            let order = self
                .far(side)
                .get_mut(&price)
                .and_then(|queue| queue.iter_mut().find(|order| order.id == id));
            return order.map(|order| order.quantity = quantity).is_some();
        }
        let Some(order) = self.orders.get_mut(slot as usize) else { return false };
        self.levels[order.tick as usize].total -= order.quantity - quantity;
        order.quantity = quantity;
        true
    }
}

fn boxed<const N: usize, T: Clone>(item: T) -> Box<[T; N]> {
    let boxed: Result<Box<[T; N]>, _> = vec![item; N].into_boxed_slice().try_into();
    boxed.unwrap_or_else(|_| unreachable!("a vector of N items has N items"))
}

impl<I: Index> Engine for Textbook<I> {
    fn new(capacity: &Capacity) -> Self {
        let vacant =
            Order { id: 0, quantity: 0, tick: 0, next: NONE, previous: NONE, side: Side::Buy };
        let orders = (0..capacity.orders + 1).map(|slot| Order { next: slot + 1, ..vacant });
        Self {
            orders: orders.collect(),
            free: 0,
            levels: boxed(Level { total: 0, first: NONE, last: NONE }),
            bid_ticks: Bitmap::new(),
            ask_ticks: Bitmap::new(),
            best_bid: TICKS,
            best_ask: TICKS,
            base: capacity.mid - TICKS as i64 / 2,
            slots: I::new(capacity),
            far_bids: BTreeMap::new(),
            far_asks: BTreeMap::new(),
            far_ids: BTreeMap::new(),
        }
    }

    #[inline]
    fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        match operation.kind {
            Kind::Cancel => {
                let known = self.cancel(operation.id);
                return reports.done(operation.id, u64::from(!known));
            }
            Kind::Reduce => {
                let known = self.reduce(operation.id, u64::from(operation.quantity));
                return reports.done(operation.id, u64::from(!known));
            }
            Kind::Modify if !self.cancel(operation.id) => return,
            Kind::Add | Kind::Ioc | Kind::Modify => {}
        }
        self.place(operation, reports);
    }

    #[inline]
    fn look_ahead(&mut self, operations: &[Operation]) {
        if self.orders.len() >= LOOK_AHEAD_FROM {
            operations.chunks(GROUP).for_each(|group| self.touch(group));
        }
    }

    fn depth(&self) -> Depth {
        let near = |tick: usize| (self.base + tick as i64, self.levels[tick].total);
        let far = |(price, queue): (&i64, &VecDeque<FarOrder>)| {
            (*price, queue.iter().map(|order| order.quantity).sum())
        };
        let mut depth = Depth {
            bids: self.far_bids.iter().map(far).collect(),
            asks: self.far_asks.iter().map(far).collect(),
        };
        let ticks = 0..TICKS;
        depth.bids.extend(ticks.clone().filter(|&at| self.bid_ticks.is_set(at)).map(near));
        depth.asks.extend(ticks.filter(|&at| self.ask_ticks.is_set(at)).map(near));
        depth.bids.sort_unstable_by(|one, other| other.cmp(one));
        depth.asks.sort_unstable();
        depth
    }
}
