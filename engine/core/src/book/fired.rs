//! Stops that have been triggered and wait for their turn: a leftist heap through the links of the
//! orders themselves, so that it needs no memory of its own. Called by the venue's triggers, through
//! [`BookPools`].
//!
//! In the heap an order's `next` is its left child, `previous` its right child, and `level` its rank:
//! the number of orders on the path that keeps to the right. That path has at most log₂(n + 1) orders,
//! and merging goes down right paths only, so each call takes no more than some 50 steps, and recursion
//! is no deeper.

use super::BookPools;
use super::level::RestingOrder;
use crate::pool::{NONE, Pool};
use alloc::vec;
use alloc::vec::Vec;

/// The order that comes first: by what triggered it, then by its number.
type Key = (u64, u64);

impl BookPools {
    /// Adds an order, which is in no queue, to the heap at `root`; gives the new root. `fired_by` tells
    /// for any order which trade triggered it.
    pub(crate) fn push_fired(
        &mut self,
        root: u32,
        order: u32,
        fired_by: &impl Fn(u32) -> u64,
    ) -> u32 {
        let node = &mut self.orders[order];
        (node.next, node.previous, node.level) = (NONE, NONE, 1);
        merge(&mut self.orders, root, order, fired_by)
    }

    /// Takes the first order out of the heap at `root`; gives the new root. The order's slot stays
    /// taken.
    pub(crate) fn pop_fired(&mut self, root: u32, fired_by: &impl Fn(u32) -> u64) -> u32 {
        let RestingOrder { next, previous, .. } = self.orders[root];
        merge(&mut self.orders, next, previous, fired_by)
    }

    /// The orders of a heap, in no particular order. For checks and hashes: it allocates.
    pub(crate) fn fired(&self, root: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            if at != NONE {
                found.push(at);
                open.extend([self.orders[at].next, self.orders[at].previous]);
            }
        }
        found
    }
}

fn key(orders: &Pool<RestingOrder>, at: u32, fired_by: &impl Fn(u32) -> u64) -> Key {
    (fired_by(at), orders[at].id.0)
}

fn rank(orders: &Pool<RestingOrder>, at: u32) -> u32 {
    if at == NONE { 0 } else { orders[at].level }
}

fn merge(
    orders: &mut Pool<RestingOrder>,
    one: u32,
    other: u32,
    fired_by: &impl Fn(u32) -> u64,
) -> u32 {
    if one == NONE || other == NONE {
        return one.min(other);
    }
    let is_ordered = key(orders, one, fired_by) < key(orders, other, fired_by);
    let (first, second) = if is_ordered { (one, other) } else { (other, one) };
    let right = merge(orders, orders[first].previous, second, fired_by);
    let left = orders[first].next;
    let is_leftist = rank(orders, left) >= rank(orders, right);
    let node = &mut orders[first];
    (node.next, node.previous) = if is_leftist { (left, right) } else { (right, left) };
    orders[first].level = 1 + rank(orders, orders[first].previous);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use touchline_protocol::units::OrderId;

    proptest! {
        #[test]
        fn comes_out_sorted(keys in prop::collection::vec(0..20u64, 1..300)) {
            let mut pools = BookPools::new();
            pools.try_grow(300, 0).unwrap();
            let fired_by = |at: u32| keys[at as usize];
            let mut root = NONE;
            for id in 0..keys.len() as u64 {
                let at = pools.orders.take().unwrap();
                pools.orders[at].id = OrderId(id * 7 % 301);
                root = pools.push_fired(root, at, &fired_by);
            }
            prop_assert_eq!(pools.fired(root).len(), keys.len());
            let mut last = (0, 0);
            for _ in 0..keys.len() {
                let found = key(&pools.orders, root, &fired_by);
                prop_assert!(found >= last);
                last = found;
                root = pools.pop_fired(root, &fired_by);
            }
            prop_assert_eq!(root, NONE);
        }
    }
}
