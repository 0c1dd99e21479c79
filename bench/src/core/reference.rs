//! A price-time book as plain as can be: generates the flows' context (what rests, what is best) and
//! says what every engine must come to. Called by [`super::flows`].

use std::collections::{BTreeMap, HashMap};

use touchline_protocol::message::enums::Side;

use super::operation::{Depth, Kind, Operation, Reports, Tally};

#[derive(Clone, Copy, Debug)]
struct Resting {
    id: u32,
    quantity: u64,
}

type Levels = BTreeMap<i64, BTreeMap<u64, Resting>>;

/// The book and what it has done so far.
#[derive(Default, Debug)]
pub(super) struct Reference {
    bids: Levels,
    asks: Levels,
    /// Side, price and place in the queue by id.
    places: HashMap<u32, (Side, i64, u64)>,
    placed: u64,
    filled: Vec<u32>,
    /// What came of the operations.
    pub(super) tally: Tally,
}

impl Reference {
    fn levels(&mut self, side: Side) -> &mut Levels {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    /// Best price of a side.
    pub(super) fn best(&self, side: Side) -> Option<i64> {
        match side {
            Side::Buy => self.bids.last_key_value(),
            Side::Sell => self.asks.first_key_value(),
        }
        .map(|(price, _)| *price)
    }

    /// Orders that rest.
    pub(super) fn orders(&self) -> usize {
        self.places.len()
    }

    /// Levels that are occupied.
    pub(super) fn levels_count(&self) -> usize {
        self.bids.len() + self.asks.len()
    }

    /// Open quantity, side and price of an order that rests.
    pub(super) fn resting(&self, id: u32) -> Option<(Side, i64, u64)> {
        let (side, price, queue) = *self.places.get(&id)?;
        let levels = if side == Side::Buy { &self.bids } else { &self.asks };
        Some((side, price, levels[&price][&queue].quantity))
    }

    /// Orders that the last operation filled wholly.
    pub(super) fn filled(&self) -> &[u32] {
        &self.filled
    }

    /// Does `operation` and completes it by what the book knows: the side of an order that rests.
    /// False, and nothing is done, if it names an order that does not rest.
    pub(super) fn apply(&mut self, operation: &mut Operation) -> bool {
        self.filled.clear();
        if let Some((side, ..)) = self.places.get(&operation.id) {
            operation.side = *side;
        } else if matches!(operation.kind, Kind::Cancel | Kind::Modify | Kind::Reduce) {
            return false;
        }
        match operation.kind {
            Kind::Add | Kind::Ioc => self.place(operation),
            Kind::Cancel => {
                self.remove(operation.id);
                self.tally.done(operation.id, 0);
            }
            Kind::Modify => {
                self.remove(operation.id);
                self.place(operation);
            }
            Kind::Reduce => {
                let (side, price, queue) = self.places[&operation.id];
                let level = self.levels(side).get_mut(&price).expect("its level is there");
                let resting = level.get_mut(&queue).expect("it is in its queue");
                resting.quantity = u64::from(operation.quantity);
                self.tally.done(operation.id, 0);
            }
        }
        true
    }

    fn place(&mut self, operation: &Operation) {
        let Operation { id, price, side, kind, .. } = *operation;
        let mut open = u64::from(operation.quantity);
        while open > 0
            && let Some(best) = self.best(side.opposite())
            && (if side == Side::Buy { best <= price } else { best >= price })
        {
            let levels = self.levels(side.opposite());
            let level = levels.get_mut(&best).expect("the best level is there");
            let mut maker = level.first_entry().expect("a level has orders");
            let traded = open.min(maker.get().quantity);
            maker.get_mut().quantity -= traded;
            open -= traded;
            let Resting { id: maker_id, quantity: left } = *maker.get();
            if left == 0 {
                maker.remove();
                if level.is_empty() {
                    levels.remove(&best);
                }
                self.places.remove(&maker_id);
                self.filled.push(maker_id);
            }
            self.tally.fill(maker_id, id, best, traded);
        }
        if open > 0 && kind != Kind::Ioc {
            let queue = self.placed;
            self.placed += 1;
            let resting = Resting { id, quantity: open };
            self.levels(side).entry(price).or_default().insert(queue, resting);
            self.places.insert(id, (side, price, queue));
        }
        self.tally.done(id, open);
    }

    fn remove(&mut self, id: u32) {
        let (side, price, queue) = self.places.remove(&id).expect("it rests");
        let levels = self.levels(side);
        let level = levels.get_mut(&price).expect("its level is there");
        level.remove(&queue);
        if level.is_empty() {
            levels.remove(&price);
        }
    }

    /// The book as it is.
    pub(super) fn depth(&self) -> Depth {
        let of = |(price, level): (&i64, &BTreeMap<u64, Resting>)| {
            (*price, level.values().map(|resting| resting.quantity).sum())
        };
        Depth {
            bids: self.bids.iter().rev().map(of).collect(),
            asks: self.asks.iter().map(of).collect(),
        }
    }
}
