//! No engine: what the driver costs by itself. Called through [`super::Engine`].

use super::super::flows::Capacity;
use super::super::operation::{Depth, Operation, Reports};
use super::Engine;

/// Reports each operation as done.
#[derive(Debug)]
pub struct Empty;

impl Engine for Empty {
    fn new(_capacity: &Capacity) -> Self {
        Self
    }

    #[inline]
    fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        reports.done(operation.id, u64::from(operation.quantity) ^ operation.price.cast_unsigned());
    }

    fn depth(&self) -> Depth {
        Depth::default()
    }
}
