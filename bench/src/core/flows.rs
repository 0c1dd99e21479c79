//! The order flows, generated before anything is measured, each with what must come of it. Called by
//! [`super`].
//!
//! | flow | resting | levels | mix |
//! |---|---|---|---|
//! | calm | 1 k | 100 | 48 % passive orders, 42 % cancels of any order, 10 % orders that cross |
//! | deep | 1 M | 20 k | the same |
//! | crossing | 1 k | 1 k, thin | 40 % cross one to six levels, the rest refill and cancel |
//! | burst | 1.9 k at first, soon some twenty in all | up to 40 k touched | 50 % new (of them 15 % IOC), 41 % cancels, 9 % modifications |
//! | recorded | as recorded | as recorded | one hour of a real exchange |

mod burst;
mod living;
mod recorded;
mod steady;

use super::operation::{Depth, Operation, Tally};
use super::reference::Reference;
use crate::interrupt::is_interrupted;
use crate::random::permuted;
pub use burst::Scenario;
pub use recorded::recorded;

/// Operations between two looks at whether a signal came.
pub(super) const LOOK_EVERY: usize = 1 << 16;

/// A stream of operations and what must come of it.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name in reports.
    pub name: String,
    /// What fills the book, not measured.
    pub prefill: Vec<Operation>,
    /// What is measured.
    pub measured: Vec<Operation>,
    /// What must come of the measured part.
    pub expected: Tally,
    /// The book at the end.
    pub depth: Depth,
    /// What an engine must be able to hold.
    pub capacity: Capacity,
}

/// What an engine must be able to hold, and where prices begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacity {
    /// Orders resting at a time.
    pub orders: u32,
    /// Levels occupied at a time.
    pub levels: u32,
    /// Every id is below.
    pub ids: u32,
    /// Operations, those that fill the book with them.
    pub operations: u32,
    /// The first mid price in ticks.
    pub mid: i64,
}

/// A synthetic flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Synthetic {
    /// A small book at rest.
    Calm,
    /// A million orders.
    Deep,
    /// Orders that sweep.
    Crossing,
    /// A busy symbol whose price moves.
    Burst(Scenario),
}

impl Synthetic {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Calm => "calm".to_owned(),
            Self::Deep => "deep".to_owned(),
            Self::Crossing => "crossing".to_owned(),
            Self::Burst(scenario) => format!("burst: {}", scenario.name()),
        }
    }

    /// Generates `operations` operations.
    #[must_use]
    pub fn generate(self, operations: usize) -> Flow {
        match self {
            Self::Calm => steady::generate(&steady::CALM, operations),
            Self::Deep => steady::generate(&steady::deep(1_000_000), operations),
            Self::Crossing => steady::generate(&steady::CROSSING, operations),
            Self::Burst(scenario) => burst::generate(scenario, operations),
        }
    }
}

/// A flow like calm's with so many orders resting on one level per fifty of them.
#[must_use]
pub fn of_size(orders: u32, operations: usize) -> Flow {
    steady::generate(&steady::deep(orders), operations)
}

/// Puts a flow together while it is made.
struct Recorder {
    book: Reference,
    flow: Flow,
    bits: Option<u32>,
    next_id: u32,
    measuring: bool,
}

impl Recorder {
    /// `bits`: ids are a permutation of the numbers below two to that power; else they count up.
    fn new(name: String, mid: i64, bits: Option<u32>) -> Self {
        Self {
            book: Reference::default(),
            flow: Flow {
                name,
                prefill: Vec::new(),
                measured: Vec::new(),
                expected: Tally::default(),
                depth: Depth::default(),
                capacity: Capacity { mid, ..Capacity::default() },
            },
            bits,
            next_id: 0,
            measuring: false,
        }
    }

    fn fresh_id(&mut self) -> u32 {
        self.next_id += 1;
        match self.bits {
            Some(bits) => permuted(u64::from(self.next_id) - 1, bits) as u32,
            None => self.next_id - 1,
        }
    }

    /// From here on operations are measured.
    fn measure(&mut self) {
        self.measuring = true;
        self.book.tally = Tally::default();
    }

    /// Adds an operation; false if it names an order that does not rest.
    fn push(&mut self, mut operation: Operation) -> bool {
        if !self.book.apply(&mut operation) {
            return false;
        }
        let capacity = &mut self.flow.capacity;
        capacity.orders = capacity.orders.max(self.book.orders() as u32);
        capacity.levels = capacity.levels.max(self.book.levels_count() as u32);
        let part = if self.measuring { &mut self.flow.measured } else { &mut self.flow.prefill };
        part.push(operation);
        true
    }

    /// Whether a signal came, looked at now and then. A flow that is cut short for it is sound, and whoever
    /// asked for it ends before it is measured.
    fn is_interrupted(&self) -> bool {
        let pushed = self.flow.prefill.len() + self.flow.measured.len();
        pushed.is_multiple_of(LOOK_EVERY) && is_interrupted()
    }

    fn finish(mut self) -> Flow {
        self.flow.expected = self.book.tally;
        self.flow.depth = self.book.depth();
        self.flow.capacity.operations = (self.flow.prefill.len() + self.flow.measured.len()) as u32;
        self.flow.capacity.ids = self.bits.map_or(self.next_id, |bits| 1 << bits);
        self.flow
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation::Kind;
    use super::*;

    fn share(flow: &Flow, kind: Kind) -> usize {
        flow.measured.iter().filter(|operation| operation.kind == kind).count() * 100
            / flow.measured.len()
    }

    #[test]
    fn calm_keeps_its_size_and_mix() {
        let flow = Synthetic::Calm.generate(50_000);
        assert_eq!(flow.measured.len(), 50_000);
        assert!((900..1200).contains(&flow.capacity.orders), "{:?}", flow.capacity);
        assert!((80..=140).contains(&flow.capacity.levels), "{:?}", flow.capacity);
        assert!((38..46).contains(&share(&flow, Kind::Cancel)));
        let per_trade = flow.measured.len() as u64 / flow.expected.trades;
        assert!((6..14).contains(&per_trade), "one trade in {per_trade} operations");
    }

    #[test]
    fn crossing_orders_cross_several_levels() {
        let flow = Synthetic::Crossing.generate(50_000);
        assert!((500..1500).contains(&flow.capacity.orders), "{:?}", flow.capacity);
        assert!(flow.expected.trades * 100 / 50_000 > 40, "{:?}", flow.expected);
    }

    #[test]
    fn bursts_have_their_mix_and_move() {
        for scenario in Scenario::ALL {
            let flow = Synthetic::Burst(scenario).generate(100_000);
            assert!((38..44).contains(&share(&flow, Kind::Cancel)), "{scenario:?}");
            assert!((7..11).contains(&share(&flow, Kind::Modify)), "{scenario:?}");
            assert!((5..10).contains(&share(&flow, Kind::Ioc)), "{scenario:?}");
            let prices = || flow.measured.iter().map(|operation| operation.price);
            let touched = prices().max().unwrap_or(0) - prices().filter(|&p| p > 0).min().unwrap();
            assert_eq!(touched > 10_000, scenario != Scenario::Static, "{scenario:?}: {touched}");
            assert!(flow.expected.trades > 5_000);
        }
    }

    #[test]
    fn bursts_begin_with_many_orders_and_soon_have_few() {
        for scenario in Scenario::ALL {
            let flow = Synthetic::Burst(scenario).generate(100_000);
            let mut book = Reference::default();
            let mut resting = Vec::new();
            for operation in flow.prefill.iter().chain(&flow.measured) {
                assert!(book.apply(&mut operation.clone()));
                resting.push(book.orders());
            }
            let first = resting[flow.prefill.len()];
            let mut later = resting.split_off(flow.prefill.len() + flow.measured.len() / 2);
            later.sort_unstable();
            let [half, most] = [50, 90].map(|percent| later[later.len() * percent / 100]);
            assert!((1_700..=2_000).contains(&first), "{scenario:?}: {first}");
            assert!(half < 60 && most < 150, "{scenario:?}: {half}, {most}");
        }
    }

    #[test]
    fn a_flow_is_the_same_each_time() {
        let [one, other] = [(); 2].map(|()| Synthetic::Crossing.generate(5_000));
        assert_eq!((one.measured, one.expected), (other.measured, other.expected));
    }
}
