//! Stops that have been triggered and wait for their turn: a leftist heap through the links of the
//! orders themselves, so that it needs no memory of its own. Called by the venue's triggers, through
//! [`BookPools`].
//!
//! In the heap an order's `next` is its left child, `previous` its right child, and `level` holds its
//! parent and its rank: the number of orders on the path that keeps to the right. That path has at most
//! log₂(n + 1) orders, and merging goes down right paths only, so each call takes no more than some 50
//! steps, and recursion is no deeper. An order may leave from anywhere: its children are merged in its
//! place, and above it ranks are set right for as long as they change, which is no longer a way, since
//! each that changes is one more than the last.

use super::level::RestingOrder;
use super::{BookPools, Handle};
use crate::pool::{NONE, Pool};
use alloc::vec;
use alloc::vec::Vec;
use touchline_protocol::units::{OrderId, Qty};

/// The order that comes first: by what triggered it, then by its number.
type Key = (u64, u64);

/// Bits of `level` that hold the parent; the rank stands above them.
const PARENT_BITS: u32 = 26;
/// All of them set: no parent.
const NO_PARENT: u32 = (1 << PARENT_BITS) - 1;

/// Orders that a heap can tell apart, which bounds how many orders there may be in all.
pub(crate) const ORDERS_MAX: u32 = NO_PARENT;

impl BookPools {
    /// Takes the slot of an order that is in no queue; the caller has made sure that one is free.
    pub(crate) fn take_unqueued(&mut self, remaining: Qty, (id, owner): (OrderId, u32)) -> Handle {
        let handle = self.orders.take().expect("room for an order is checked before");
        self.orders[handle] = RestingOrder { id, remaining, owner, ..RestingOrder::default() };
        Handle(handle)
    }

    /// Adds an order, which is in no queue, to the heap at `root`; gives the new root. `fired_by` tells
    /// for any order which trade triggered it.
    pub(crate) fn push_fired(
        &mut self,
        root: u32,
        order: u32,
        fired_by: &impl Fn(u32) -> u64,
    ) -> u32 {
        let node = &mut self.orders[order];
        (node.next, node.previous) = (NONE, NONE);
        set_links(node, NO_PARENT, 1);
        self.rooted(root, order, fired_by)
    }

    /// Takes the first order out of the heap at `root`; gives the new root. The order's slot stays
    /// taken.
    pub(crate) fn pop_fired(&mut self, root: u32, fired_by: &impl Fn(u32) -> u64) -> u32 {
        let RestingOrder { next, previous, .. } = self.orders[root];
        self.rooted(next, previous, fired_by)
    }

    /// Takes any order out of the heap at `root`; gives the new root. The order's slot stays taken.
    pub(crate) fn remove_fired(
        &mut self,
        root: u32,
        order: u32,
        fired_by: &impl Fn(u32) -> u64,
    ) -> u32 {
        if order == root {
            return self.pop_fired(root, fired_by);
        }
        let orders = &mut self.orders;
        let RestingOrder { next, previous, .. } = orders[order];
        let above = parent(&orders[order]);
        let joined = merge(orders, next, previous, fired_by);
        if joined != NONE {
            set_parent(&mut orders[joined], above);
        }
        let node = &mut orders[above];
        let child = if node.next == order { &mut node.next } else { &mut node.previous };
        *child = joined;
        let mut at = above;
        while at != NO_PARENT && settle_rank(orders, at) {
            at = parent(&orders[at]);
        }
        root
    }

    fn rooted(&mut self, one: u32, other: u32, fired_by: &impl Fn(u32) -> u64) -> u32 {
        let root = merge(&mut self.orders, one, other, fired_by);
        if root != NONE {
            set_parent(&mut self.orders[root], NO_PARENT);
        }
        root
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
    if at == NONE { 0 } else { orders[at].level >> PARENT_BITS }
}

const fn parent(order: &RestingOrder) -> u32 {
    order.level & NO_PARENT
}

const fn set_links(order: &mut RestingOrder, parent: u32, rank: u32) {
    order.level = rank << PARENT_BITS | parent;
}

const fn set_parent(order: &mut RestingOrder, parent: u32) {
    order.level = order.level & !NO_PARENT | parent;
}

/// Puts the child of the higher rank to the left and sets the rank; true when that was another.
fn settle_rank(orders: &mut Pool<RestingOrder>, at: u32) -> bool {
    let RestingOrder { next: left, previous: right, .. } = orders[at];
    let (left_rank, right_rank) = (rank(orders, left), rank(orders, right));
    if left_rank < right_rank {
        (orders[at].next, orders[at].previous) = (right, left);
    }
    let new = 1 + left_rank.min(right_rank);
    let is_changed = new != rank(orders, at);
    let above = parent(&orders[at]);
    set_links(&mut orders[at], above, new);
    is_changed
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
    orders[first].previous = right;
    set_parent(&mut orders[right], first);
    settle_rank(orders, first);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Links, order and ranks of a heap; gives the orders in it.
    fn checked(pools: &BookPools, root: u32, fired_by: &impl Fn(u32) -> u64) -> Vec<u32> {
        let orders = &pools.orders;
        let found = pools.fired(root);
        for &at in &found {
            let RestingOrder { next, previous, .. } = orders[at];
            assert!(rank(orders, next) >= rank(orders, previous));
            assert_eq!(rank(orders, at), 1 + rank(orders, previous));
            for child in [next, previous].into_iter().filter(|&child| child != NONE) {
                assert_eq!(parent(&orders[child]), at);
                assert!(key(orders, child, fired_by) > key(orders, at, fired_by));
            }
        }
        assert!(root == NONE || parent(&orders[root]) == NO_PARENT);
        found
    }

    proptest! {
        #[test]
        fn comes_out_sorted_whatever_leaves_before(
            keys in prop::collection::vec(0..20u64, 1..300),
            leaving in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            let mut pools = BookPools::new();
            pools.try_grow(300, 0).unwrap();
            let fired_by = |at: u32| keys[at as usize];
            let mut root = NONE;
            for id in 0..keys.len() as u64 {
                let at = pools.orders.take().unwrap();
                pools.orders[at].id = OrderId(id * 7 % 307);
                root = pools.push_fired(root, at, &fired_by);
            }
            let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
            prop_assert_eq!(checked(&pools, root, &fired_by).len(), expected.len());
            for index in leaving {
                if !expected.is_empty() {
                    let at = expected.swap_remove(index.index(expected.len()));
                    root = pools.remove_fired(root, at, &fired_by);
                    prop_assert_eq!(checked(&pools, root, &fired_by).len(), expected.len());
                }
            }
            expected.sort_by_key(|&at| key(&pools.orders, at, &fired_by));
            for at in expected {
                prop_assert_eq!(root, at);
                root = pools.pop_fired(root, &fired_by);
            }
            prop_assert_eq!(root, NONE);
        }
    }
}
