//! Bursts: one busy symbol whose price stands, swings or falls, with ids in random order. Called by
//! [`super`].

use touchline_protocol::message::enums::Side;

use super::super::operation::{Kind, Operation};
use super::living::Living;
use super::{Flow, Recorder};
use crate::random::Random;

/// How the mid price moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// Not at all.
    Static,
    /// Up and down by a quarter, four times.
    Swing25,
    /// Up and down by two fifths, four times.
    Swing40,
    /// Down by half, steadily.
    Crash,
    /// Down by two fifths within a hundredth of the stream, and as fast back later.
    FlashCrash,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Static, Self::Swing25, Self::Swing40, Self::Crash, Self::FlashCrash];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Swing25 => "swing 25 %",
            Self::Swing40 => "swing 40 %",
            Self::Crash => "crash",
            Self::FlashCrash => "flash crash",
        }
    }

    /// The mid price at `step` of `steps`.
    fn mid(self, step: usize, steps: usize) -> i64 {
        let at = step as i64 * 1000 / steps.max(1) as i64;
        // Each of four swings: up for a quarter, down for two, up for the last; from -250 to 250.
        let swing = match at % 250 * 4 {
            up @ 0..250 => up,
            down @ 250..750 => 500 - down,
            up => up - 1000,
        };
        match self {
            Self::Static => MID,
            Self::Swing25 => MID + MID * swing / 1000,
            Self::Swing40 => MID + MID * 2 * swing / 1250,
            Self::Crash => MID - MID * at / 2000,
            Self::FlashCrash => match at {
                0..400 => MID,
                400..410 => MID - MID * 4 * (at - 399) / 100,
                410..600 => MID * 6 / 10,
                600..610 => MID * 6 / 10 + MID * 4 * (at - 599) / 100,
                _ => MID,
            },
        }
    }
}

const MID: i64 = 50_000;
/// Mean distance in ticks of passive orders from the mid price.
const SPREAD: i64 = 100;
const PREFILL: usize = 2_000;
const QUANTITY_MAX: u32 = 100;

struct Generator {
    recorder: Recorder,
    random: Random,
    living: Living,
    mid: i64,
}

/// Generates `operations` operations.
pub(super) fn generate(scenario: Scenario, operations: usize) -> Flow {
    let bits = (operations + PREFILL).next_power_of_two().ilog2().max(4);
    let name = format!("burst: {}", scenario.name());
    let mut generator = Generator {
        recorder: Recorder::new(name, MID, Some(bits)),
        random: Random::new(scenario as u64 + 100),
        living: Living::default(),
        mid: MID,
    };
    for _ in 0..PREFILL {
        generator.new_order(Kind::Add);
    }
    generator.recorder.measure();
    for step in 0..operations {
        if generator.recorder.is_interrupted() {
            break;
        }
        generator.mid = scenario.mid(step, operations);
        generator.step();
    }
    generator.recorder.finish()
}

impl Generator {
    fn step(&mut self) {
        let living = &self.living;
        match self.random.below(1000) {
            0..75 => self.new_order(Kind::Ioc),
            75..500 => self.new_order(Kind::Add),
            500..910 => {
                let young = self.random.chance(70);
                let id = if young {
                    living.young(&mut self.random)
                } else {
                    living.any(&mut self.random)
                };
                self.change(id, Kind::Cancel);
            }
            _ => {
                let id = living.any(&mut self.random);
                self.change(id, Kind::Modify);
            }
        }
    }

    fn push(&mut self, operation: Operation) {
        let done = self.recorder.push(operation);
        assert!(done, "the generator names orders that rest");
        for &id in self.recorder.book.filled() {
            self.living.remove(id);
        }
        if matches!(operation.kind, Kind::Cancel | Kind::Modify) {
            self.living.remove(operation.id);
        }
        if self.recorder.book.resting(operation.id).is_some() {
            self.living.add(operation.id);
        }
    }

    fn price(&mut self, side: Side) -> i64 {
        // Around zero some orders reach over the mid price and trade.
        let away = self.random.distance(SPREAD) - 3;
        if side == Side::Buy { self.mid - away } else { self.mid + away }
    }

    fn new_order(&mut self, kind: Kind) {
        let side = if self.random.chance(50) { Side::Buy } else { Side::Sell };
        let price = if kind == Kind::Ioc {
            let reach = self.random.distance(5);
            if side == Side::Buy { self.mid + reach } else { self.mid - reach }
        } else {
            self.price(side)
        };
        let quantity = self.random.between(1, QUANTITY_MAX);
        let id = self.recorder.fresh_id();
        self.push(Operation { id, price, quantity, place: 0, kind, side });
    }

    fn change(&mut self, id: Option<u32>, kind: Kind) {
        let Some((id, (side, _, _))) =
            id.and_then(|id| Some((id, self.recorder.book.resting(id)?)))
        else {
            return self.new_order(Kind::Add);
        };
        let (price, quantity) = match kind {
            Kind::Modify => (self.price(side), self.random.between(1, QUANTITY_MAX)),
            _ => (0, 0),
        };
        self.push(Operation { id, price, quantity, place: 0, kind, side });
    }
}
