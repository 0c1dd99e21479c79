//! An engine that is not shown what comes, as nobody shows it to the book of a live engine. Called through
//! [`super::Engine`].

use super::super::flows::{Capacity, Flow};
use super::super::operation::{Depth, Operation, Reports};
use super::Engine;

/// The same engine, to which each operation is news.
#[derive(Debug)]
pub struct NoLookAhead<E>(E);

impl<E: Engine> Engine for NoLookAhead<E> {
    fn new(capacity: &Capacity) -> Self {
        Self(E::new(capacity))
    }

    fn suits(flow: &Flow) -> bool {
        E::suits(flow)
    }

    #[inline]
    fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        self.0.apply(operation, reports);
    }

    fn depth(&self) -> Depth {
        self.0.depth()
    }
}
