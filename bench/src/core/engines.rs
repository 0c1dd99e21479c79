//! The engines that are compared, behind one trait. Called by the measurements.
//!
//! Each is driven through its own public interface as its documentation shows it, with as much room
//! reserved up front as it offers. `matchcore` by itself gives wrong results as well, and is right by a cut
//! of what crosses in front of it. Other crates were tried and left out, one of them for its results:
//! `nanobook` 0.19.3 cancels a neighbour once an order in front of it has traded, and after a while its
//! matching does not end. Of the results of the others nothing is said: `rust-order-book` 0.0.2 reports no
//! fills, so nothing can be checked; `limitbook` 0.1.0 has decimal prices only; `orderbook-rs` 0.15 is made
//! for many threads at a time, with 75 packages behind it, which one thread would only judge unfairly.

mod empty;
mod lobster;
mod matchcore;
mod no_look_ahead;
mod textbook;
mod touchline;

use clap::ValueEnum;
use serde::Serialize;

pub use empty::Empty;
pub use lobster::Lobster;
pub use matchcore::Matchcore;
pub use no_look_ahead::NoLookAhead;
pub use textbook::{Array, Map, Textbook};
pub use touchline::{Touchline, TouchlineHandles, with_places};

use super::flows::{Capacity, Flow};
use super::operation::{Depth, Operation, Reports};

/// An order book under test.
pub trait Engine {
    /// An empty book with room for what comes.
    fn new(capacity: &Capacity) -> Self;

    /// Whether it can do all that the flow asks.
    #[must_use]
    fn suits(_flow: &Flow) -> bool {
        true
    }

    /// Does one operation.
    fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R);

    /// Called with the operations that come next, for engines that look ahead.
    #[inline]
    fn look_ahead(&mut self, _coming: &[Operation]) {}

    /// The book as it is.
    fn depth(&self) -> Depth;
}

/// Which engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// The driver alone
    Empty,
    /// Touchline's book, cancels by id
    Touchline,
    /// Touchline's book, cancels by the place that the reply to the order told
    TouchlineHandles,
    /// Tick array and bitmap by the textbook with a hash map of ids, written for this comparison
    Textbook,
    /// The same with an array of ids, which must be dense
    TextbookArray,
    /// matchcore 0.4 (crates registry)
    Matchcore,
    /// lobster 0.7 (crates registry)
    Lobster,
    /// As `touchline`, and not shown what comes
    TouchlineNoLookAhead,
    /// As `touchline-handles`, and not shown what comes
    TouchlineHandlesNoLookAhead,
    /// As `textbook`, and not shown what comes
    TextbookNoLookAhead,
    /// As `textbook-array`, and not shown what comes
    TextbookArrayNoLookAhead,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Empty,
        Self::Touchline,
        Self::TouchlineHandles,
        Self::Textbook,
        Self::TextbookArray,
        Self::Matchcore,
        Self::Lobster,
        Self::TouchlineNoLookAhead,
        Self::TouchlineHandlesNoLookAhead,
        Self::TextbookNoLookAhead,
        Self::TextbookArrayNoLookAhead,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "driver alone",
            Self::Touchline => "touchline",
            Self::TouchlineHandles => "touchline, handles",
            Self::Textbook => "textbook (ours)",
            Self::TextbookArray => "textbook, array of ids",
            Self::Matchcore => "matchcore 0.4.0",
            Self::Lobster => "lobster 0.7.0",
            Self::TouchlineNoLookAhead => "touchline, no look-ahead",
            Self::TouchlineHandlesNoLookAhead => "touchline, handles, no look-ahead",
            Self::TextbookNoLookAhead => "textbook (ours), no look-ahead",
            Self::TextbookArrayNoLookAhead => "textbook, array of ids, no look-ahead",
        }
    }

    /// Of an engine that is not shown what comes, the one that is and else does the same.
    #[must_use]
    pub const fn with_look_ahead(self) -> Option<Self> {
        match self {
            Self::TouchlineNoLookAhead => Some(Self::Touchline),
            Self::TouchlineHandlesNoLookAhead => Some(Self::TouchlineHandles),
            Self::TextbookNoLookAhead => Some(Self::Textbook),
            Self::TextbookArrayNoLookAhead => Some(Self::TextbookArray),
            _ => None,
        }
    }

    /// Those of `engines` that are to be measured on a book. Nobody looks ahead in a small one: there, an
    /// engine that never does would be measured twice.
    #[must_use]
    pub fn distinct(engines: &[Self], in_large_book: bool) -> Vec<Self> {
        let is_distinct = |kind: &Self| {
            in_large_book || kind.with_look_ahead().is_none_or(|other| !engines.contains(&other))
        };
        engines.iter().copied().filter(is_distinct).collect()
    }

    /// True for engines that others have written.
    #[must_use]
    pub const fn is_peer(self) -> bool {
        matches!(self, Self::Matchcore | Self::Lobster)
    }
}

/// Calls `$action::<E>($($argument),*)` for the engine of a kind.
macro_rules! for_engine {
    ($kind:expr, $action:ident($($argument:expr),*)) => {
        match $kind {
            $crate::core::engines::EngineKind::Empty => {
                $action::<$crate::core::engines::Empty>($($argument),*)
            }
            $crate::core::engines::EngineKind::Touchline => {
                $action::<$crate::core::engines::Touchline>($($argument),*)
            }
            $crate::core::engines::EngineKind::TouchlineHandles => {
                $action::<$crate::core::engines::TouchlineHandles>($($argument),*)
            }
            $crate::core::engines::EngineKind::Textbook => {
                $action::<$crate::core::engines::Textbook<$crate::core::engines::Map>>($($argument),*)
            }
            $crate::core::engines::EngineKind::TextbookArray => {
                $action::<$crate::core::engines::Textbook<$crate::core::engines::Array>>($($argument),*)
            }
            $crate::core::engines::EngineKind::Matchcore => {
                $action::<$crate::core::engines::Matchcore>($($argument),*)
            }
            $crate::core::engines::EngineKind::Lobster => {
                $action::<$crate::core::engines::Lobster>($($argument),*)
            }
            $crate::core::engines::EngineKind::TouchlineNoLookAhead => {
                use $crate::core::engines::{NoLookAhead, Touchline};
                $action::<NoLookAhead<Touchline>>($($argument),*)
            }
            $crate::core::engines::EngineKind::TouchlineHandlesNoLookAhead => {
                use $crate::core::engines::{NoLookAhead, TouchlineHandles};
                $action::<NoLookAhead<TouchlineHandles>>($($argument),*)
            }
            $crate::core::engines::EngineKind::TextbookNoLookAhead => {
                use $crate::core::engines::{Map, NoLookAhead, Textbook};
                $action::<NoLookAhead<Textbook<Map>>>($($argument),*)
            }
            $crate::core::engines::EngineKind::TextbookArrayNoLookAhead => {
                use $crate::core::engines::{Array, NoLookAhead, Textbook};
                $action::<NoLookAhead<Textbook<Array>>>($($argument),*)
            }
        }
    };
}
pub(super) use for_engine;

#[cfg(test)]
mod tests {
    use super::super::flows::{Scenario, Synthetic};
    use super::super::operation::Tally;
    use super::*;

    fn run<E: Engine>(flow: &Flow) -> (Tally, Depth) {
        let mut engine = E::new(&flow.capacity);
        flow.prefill.iter().for_each(|operation| engine.apply(operation, &mut Tally::default()));
        let mut tally = Tally::default();
        for batch in flow.measured.chunks(64) {
            engine.look_ahead(batch);
            batch.iter().for_each(|operation| engine.apply(operation, &mut tally));
        }
        (tally, engine.depth())
    }

    fn check<E: Engine>(flow: &Flow) {
        let (tally, depth) = run::<E>(flow);
        assert_eq!(tally, flow.expected, "{}", flow.name);
        assert!(depth == flow.depth, "{}: another book at the end", flow.name);
    }

    #[test]
    fn a_large_book_that_looks_ahead_comes_to_the_same() {
        let flow = with_places(super::super::flows::of_size(40_000, 20_000));
        check::<Touchline>(&flow);
        check::<TouchlineHandles>(&flow);
        check::<Textbook<Map>>(&flow);
        check::<Textbook<Array>>(&flow);
        check::<Textbook<Array>>(&at_the_edge(&flow));
        check::<NoLookAhead<Touchline>>(&flow);
        check::<NoLookAhead<TouchlineHandles>>(&flow);
        check::<NoLookAhead<Textbook<Map>>>(&flow);
        check::<NoLookAhead<Textbook<Array>>>(&flow);
    }

    /// Counts what it is shown, and tells it as its depth.
    struct Shown(u64);

    impl Engine for Shown {
        fn new(_capacity: &Capacity) -> Self {
            Self(0)
        }

        fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
            reports.done(operation.id, 1);
        }

        fn look_ahead(&mut self, coming: &[Operation]) {
            self.0 += coming.len() as u64;
        }

        fn depth(&self) -> Depth {
            Depth { bids: vec![(0, self.0)], asks: Vec::new() }
        }
    }

    #[test]
    fn an_engine_without_look_ahead_is_shown_nothing_and_does_the_rest() {
        let flow = Synthetic::Calm.generate(100);
        let (tally, depth) = run::<Shown>(&flow);
        assert_eq!((tally.done, depth.bids[0].1), (100, 100));
        let (tally, depth) = run::<NoLookAhead<Shown>>(&flow);
        assert_eq!((tally.done, depth.bids[0].1), (100, 0));
    }

    #[test]
    fn in_a_small_book_no_engine_is_measured_twice() {
        use EngineKind::{Textbook, Touchline, TouchlineHandlesNoLookAhead, TouchlineNoLookAhead};
        let engines = [Touchline, Textbook, TouchlineNoLookAhead, TouchlineHandlesNoLookAhead];
        assert_eq!(EngineKind::distinct(&engines, true), engines);
        // Who is asked for by itself is measured.
        let small = [Touchline, Textbook, TouchlineHandlesNoLookAhead];
        assert_eq!(EngineKind::distinct(&engines, false), small);
        assert_eq!(EngineKind::distinct(&EngineKind::ALL, false).len(), 7);
    }

    /// The flow for an engine whose window of 2^17 ticks ends where prices begin.
    fn at_the_edge(flow: &Flow) -> Flow {
        let mut flow = flow.clone();
        flow.capacity.mid += 1 << 16;
        flow
    }

    #[test]
    fn engines_come_to_what_the_reference_comes_to() {
        let flows = [
            Synthetic::Calm.generate(10_000),
            Synthetic::Crossing.generate(10_000),
            Synthetic::Burst(Scenario::Swing40).generate(10_000),
            Synthetic::Burst(Scenario::FlashCrash).generate(10_000),
        ];
        for flow in &flows.map(with_places) {
            check::<Touchline>(flow);
            check::<TouchlineHandles>(flow);
            check::<Textbook<Map>>(flow);
            check::<Textbook<Array>>(flow);
            check::<Matchcore>(flow);
            check::<Textbook<Map>>(&at_the_edge(flow));
            check::<Textbook<Array>>(&at_the_edge(flow));
            // Where prices move, this one looks at every price that ever was, time and again.
            if !flow.name.starts_with("burst") {
                check::<Lobster>(flow);
            }
        }
    }
}
