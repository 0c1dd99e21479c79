//! Flows of a steady book: calm, deep, crossing. Called by [`super`].

use touchline_protocol::message::enums::Side;

use super::super::operation::{Kind, Operation};
use super::living::Living;
use super::{Flow, Recorder};
use crate::random::Random;

/// What a steady flow is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    name: &'static str,
    /// Orders that rest; the mix is turned for as long as there are more or fewer.
    orders: u32,
    /// Ticks on each side that passive orders are spread over.
    width: u64,
    /// Percent of the operations that cross.
    crossing: u64,
    /// Percent of the operations that cancel; all else is passive orders.
    cancels: u64,
    /// The mid price moves by one tick each so many operations.
    drift: u64,
    /// Whether a crossing order is as large as the levels it reaches for, up to six.
    sweeps: bool,
}

pub(super) const CALM: Shape = Shape {
    name: "calm",
    orders: 1_000,
    width: 50,
    crossing: 10,
    cancels: 42,
    drift: 1_000,
    sweeps: false,
};

pub(super) const CROSSING: Shape = Shape {
    name: "crossing",
    orders: 1_000,
    width: 500,
    crossing: 40,
    cancels: 5,
    drift: 1_000,
    sweeps: true,
};

/// So many orders, fifty to a level.
pub(super) const fn deep(orders: u32) -> Shape {
    let width = if orders < 200 { 2 } else { orders as u64 / 100 };
    Shape { name: "deep", orders, width, ..CALM }
}

const MID: i64 = 1_000_000;
const QUANTITY_MAX: u32 = 100;

struct Generator {
    shape: Shape,
    recorder: Recorder,
    random: Random,
    living: Living,
    mid: i64,
}

/// Generates the book and `operations` operations on it.
pub(super) fn generate(shape: &Shape, operations: usize) -> Flow {
    let mut generator = Generator {
        shape: *shape,
        recorder: Recorder::new(shape.name.to_owned(), MID, None),
        random: Random::new(u64::from(shape.orders) + shape.crossing),
        living: Living::default(),
        mid: MID,
    };
    while generator.living.len() < shape.orders as usize && !generator.recorder.is_interrupted() {
        generator.passive();
    }
    generator.recorder.measure();
    for _ in 0..operations {
        if generator.recorder.is_interrupted() {
            break;
        }
        generator.step();
    }
    generator.recorder.finish()
}

impl Generator {
    fn step(&mut self) {
        if self.random.below(self.shape.drift) == 0 {
            self.mid += if self.random.chance(50) { 1 } else { -1 };
        }
        let dice = self.random.below(100);
        if dice < self.shape.crossing {
            return self.crossing();
        }
        let few = self.living.len() < self.shape.orders as usize * 49 / 50;
        let many = self.living.len() > self.shape.orders as usize * 51 / 50;
        if (dice < self.shape.crossing + self.shape.cancels && !few) || many {
            self.cancel();
        } else {
            self.passive();
        }
    }

    fn push(&mut self, operation: Operation) {
        let done = self.recorder.push(operation);
        assert!(done, "the generator names orders that rest");
        for &id in self.recorder.book.filled() {
            self.living.remove(id);
        }
        match operation.kind {
            Kind::Cancel => self.living.remove(operation.id),
            _ if self.recorder.book.resting(operation.id).is_some() => {
                self.living.add(operation.id);
            }
            _ => {}
        }
    }

    fn order(&mut self, kind: Kind, side: Side, price: i64, quantity: u32) {
        let id = self.recorder.fresh_id();
        self.push(Operation { id, price, quantity, place: 0, kind, side });
    }

    fn side(&mut self) -> Side {
        if self.random.chance(50) { Side::Buy } else { Side::Sell }
    }

    fn passive(&mut self) {
        let side = self.side();
        let away = 1 + self.random.below(self.shape.width) as i64;
        let best = self.recorder.book.best(side.opposite());
        let price = match (side, best) {
            (Side::Buy, best) => (self.mid - away).min(best.map_or(i64::MAX, |best| best - 1)),
            (Side::Sell, best) => (self.mid + away).max(best.map_or(0, |best| best + 1)),
        };
        let quantity = self.random.between(1, QUANTITY_MAX);
        self.order(Kind::Add, side, price, quantity);
    }

    fn crossing(&mut self) {
        let side = self.side();
        let Some(best) = self.recorder.book.best(side.opposite()) else { return self.passive() };
        let toward = if side == Side::Buy { 1 } else { -1 };
        if !self.shape.sweeps {
            let quantity = self.random.between(1, QUANTITY_MAX);
            let price = best + toward * i64::from(self.random.between(0, 2));
            return self.order(Kind::Add, side, price, quantity);
        }
        let levels = if self.random.chance(80) { 1 } else { self.random.between(2, 6) };
        let price = best + toward * i64::from(levels) * 10;
        let quantity = self.random.between(levels, levels * QUANTITY_MAX);
        self.order(Kind::Ioc, side, price, quantity);
    }

    fn cancel(&mut self) {
        let Some(id) = self.living.any(&mut self.random) else { return self.passive() };
        let kind = Kind::Cancel;
        self.push(Operation { id, price: 0, quantity: 0, place: 0, kind, side: Side::Buy });
    }
}
