//! What a book should hold, kept so that a million commands can be checked one by one: queues of numbers
//! by price, from which cancelled ones are dropped when they come to the front.

use std::collections::{BTreeMap, HashMap, VecDeque};
use touchline_protocol::message::enums::Side;

#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub(crate) side: Side,
    pub(crate) price: i64,
    pub(crate) quantity: i64,
}

#[derive(Default)]
struct Level {
    queue: VecDeque<u64>,
    live: u32,
}

#[derive(Default)]
pub(crate) struct Shadow {
    levels: [BTreeMap<i64, Level>; 2],
    open: HashMap<u64, Open>,
    /// The open orders' numbers, in any order, to pick one from.
    numbers: Vec<u64>,
    places: HashMap<u64, usize>,
}

impl Shadow {
    fn levels(&mut self, side: Side) -> &mut BTreeMap<i64, Level> {
        &mut self.levels[usize::from(side == Side::Sell)]
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn level_count(&self) -> usize {
        self.levels.iter().map(BTreeMap::len).sum()
    }

    pub(crate) fn has_level(&self, side: Side, price: i64) -> bool {
        self.levels[usize::from(side == Side::Sell)].contains_key(&price)
    }

    pub(crate) fn best(&self, side: Side) -> Option<i64> {
        let prices = self.levels[usize::from(side == Side::Sell)].keys();
        let mut prices = prices.copied();
        if side == Side::Sell { prices.next() } else { prices.next_back() }
    }

    pub(crate) fn pick(&self, at: u64) -> Option<u64> {
        let at = usize::try_from(at).ok()?.checked_rem(self.numbers.len())?;
        self.numbers.get(at).copied()
    }

    pub(crate) fn get(&self, id: u64) -> Option<Open> {
        self.open.get(&id).copied()
    }

    pub(crate) fn add(&mut self, id: u64, open: Open) {
        let level = self.levels(open.side).entry(open.price).or_default();
        level.queue.push_back(id);
        level.live += 1;
        self.places.insert(id, self.numbers.len());
        self.numbers.push(id);
        assert!(self.open.insert(id, open).is_none());
    }

    pub(crate) fn set_quantity(&mut self, id: u64, quantity: i64) {
        self.open.get_mut(&id).expect("open").quantity = quantity;
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Open> {
        let open = self.open.remove(&id)?;
        let place = self.places.remove(&id).expect("an open order has a place");
        self.numbers.swap_remove(place);
        if let Some(&moved) = self.numbers.get(place) {
            self.places.insert(moved, place);
        }
        let levels = self.levels(open.side);
        let level = levels.get_mut(&open.price).expect("an open order has a level");
        level.live -= 1;
        if level.live == 0 {
            levels.remove(&open.price);
        }
        Some(open)
    }

    /// The order that is first at the best price of a side.
    pub(crate) fn first(&mut self, side: Side) -> Option<u64> {
        let price = self.best(side)?;
        let Self { levels, open, .. } = self;
        let queue = &mut levels[usize::from(side == Side::Sell)].get_mut(&price)?.queue;
        while !open.contains_key(queue.front()?) {
            queue.pop_front();
        }
        queue.front().copied()
    }
}
