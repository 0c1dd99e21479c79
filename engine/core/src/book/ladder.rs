//! From a price to its level: one ladder per side of a book. Called by [`side`](super::side) only,
//! through [`Ladder::find`], [`Ladder::insert`] and [`Ladder::remove`]; a window of ticks with
//! occupancy bitmaps can stand in front of it behind the same three functions.
//!
//! The structure is a radix tree over the 64 bits of a price, four bits per step, that skips every
//! step on which all prices below agree. What decided for it:
//! - every `i64` is a valid price, and memory depends on the number of levels alone (n levels need at
//!   most n - 1 nodes of one cache line);
//! - a look-up takes one cache line per step on which prices differ: at most 16, three or four for
//!   20,000 levels on a decimal grid, against 14 or more for a binary tree;
//! - an insertion or removal changes at most two nodes. Nothing is ever rebalanced, split in passing
//!   or moved, so there is no slow case beyond the 16 steps, and no recursion.
//!
//! Order among prices is asked for only when a level is inserted: the ladder then names a neighbour,
//! and levels are linked from best to worst from there on.

use super::level::Level;
use crate::pool::{Linked, NONE, Pool};
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::units::Price;

/// A reference to a node or a leaf (a level), in one `u32`.
///
/// 0: nothing. Bit 31 set: the leaf of the level in bits 0-30. Else a node: which four bits of the
/// price it decides on in bits 27-30, its handle + 1 in bits 0-26.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Ref(u32);

const LEAF: u32 = 1 << 31;
const DIGIT_SHIFT: u32 = 27;
const NODE_MASK: u32 = (1 << DIGIT_SHIFT) - 1;

/// Most levels that pools can hold.
pub const LEVELS_MAX: u32 = NODE_MASK - 1;

impl Ref {
    const NOTHING: Self = Self(0);

    const fn leaf(level: u32) -> Self {
        Self(LEAF | level)
    }

    const fn node(node: u32, digit: u32) -> Self {
        Self(digit << DIGIT_SHIFT | (node + 1))
    }

    const fn as_leaf(self) -> Option<u32> {
        if self.0 & LEAF != 0 { Some(self.0 & !LEAF) } else { None }
    }

    /// Handle and digit, of a reference that is a node.
    const fn as_node(self) -> (u32, u32) {
        ((self.0 & NODE_MASK) - 1, self.0 >> DIGIT_SHIFT)
    }
}

/// Sixteen children: one cache line.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(64))]
struct Children([Ref; 16]);

const _: () = assert!(size_of::<Children>() == 64);

impl Linked for Children {
    fn next_free(&self) -> u32 {
        self.0[0].0
    }

    fn set_next_free(&mut self, handle: u32) {
        self.0[0] = Ref(handle);
    }
}

/// The nodes of all ladders.
#[derive(Debug)]
pub(crate) struct Nodes {
    children: Pool<Children>,
    /// Bit n is set when child n is there; by node handle.
    occupied: Vec<u16>,
}

impl Nodes {
    pub(crate) const fn new() -> Self {
        Self { children: Pool::new(), occupied: Vec::new() }
    }

    /// Makes room for the nodes that `levels` levels may need.
    pub(crate) fn try_grow(&mut self, levels: u32) -> Result<(), TryReserveError> {
        let wanted = levels as usize;
        if wanted > self.occupied.len() {
            self.occupied.try_reserve_exact(wanted - self.occupied.len())?;
            self.children.try_grow(levels)?;
            self.occupied.resize(wanted, 0);
        }
        Ok(())
    }

    /// Nodes in use.
    pub(crate) const fn live(&self) -> u32 {
        self.children.live()
    }

    /// True when no node is lost.
    pub(crate) fn is_consistent(&self) -> bool {
        self.children.is_consistent()
    }

    fn take(&mut self) -> u32 {
        let node = self.children.take().expect("n levels need at most n - 1 nodes");
        self.occupied[node as usize] = 0;
        node
    }

    fn set(&mut self, node: u32, digit_value: usize, child: Ref) {
        self.children[node].0[digit_value] = child;
        self.occupied[node as usize] |= 1 << digit_value;
    }

    /// The leaf with the lowest or highest price below `at`.
    fn extreme(&self, mut at: Ref, highest: bool) -> u32 {
        loop {
            if let Some(level) = at.as_leaf() {
                return level;
            }
            let (node, _) = at.as_node();
            let occupied = self.occupied[node as usize];
            let digit_value =
                if highest { 15 - occupied.leading_zeros() } else { occupied.trailing_zeros() };
            at = self.children[node].0[digit_value as usize];
        }
    }
}

/// A level next to a newly inserted one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Neighbour {
    /// The closest level at a higher price.
    Above(u32),
    /// The closest level at a lower price.
    Below(u32),
}

/// The levels of one side by price.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Ladder {
    root: Ref,
}

/// The price with its sign bit flipped: unsigned order is price order.
const fn key_of(price: Price) -> u64 {
    price.0.cast_unsigned() ^ (1 << 63)
}

/// Digit `digit` of a key: bits `4 × digit` to `4 × digit + 3`.
const fn digit_of(key: u64, digit: u32) -> usize {
    (key >> (4 * digit) & 15) as usize
}

impl Ladder {
    /// Without any level.
    pub(crate) const EMPTY: Self = Self { root: Ref::NOTHING };

    /// The level of `price`.
    pub(crate) fn find(self, nodes: &Nodes, levels: &Pool<Level>, price: Price) -> Option<u32> {
        let key = key_of(price);
        let mut at = self.root;
        while at != Ref::NOTHING {
            if let Some(level) = at.as_leaf() {
                return (levels[level].price == price).then_some(level);
            }
            let (node, digit) = at.as_node();
            at = nodes.children[node].0[digit_of(key, digit)];
        }
        None
    }

    /// Adds `level` under its price, which no other level has; gives a neighbour, or `None` when the
    /// level is the only one.
    pub(crate) fn insert(
        &mut self,
        nodes: &mut Nodes,
        levels: &Pool<Level>,
        level: u32,
    ) -> Option<Neighbour> {
        if self.root == Ref::NOTHING {
            self.root = Ref::leaf(level);
            return None;
        }
        let key = key_of(levels[level].price);
        let relative = key_of(levels[self.any_relative(nodes, key)].price);
        assert!(key != relative, "a level is inserted once");
        let digit = (63 - (key ^ relative).leading_zeros()) / 4;

        // Down to the place where the paths part; above it the prices agree.
        let mut parent = None;
        let mut at = self.root;
        while at.as_leaf().is_none() && at.as_node().1 > digit {
            let (node, node_digit) = at.as_node();
            parent = Some((node, digit_of(key, node_digit)));
            at = nodes.children[node].0[digit_of(key, node_digit)];
        }
        let mine = digit_of(key, digit);
        if at.as_leaf().is_none() && at.as_node().1 == digit {
            let (node, _) = at.as_node();
            let neighbour = Self::beside(nodes, node, mine);
            nodes.set(node, mine, Ref::leaf(level));
            return Some(neighbour);
        }
        let theirs = digit_of(relative, digit);
        let node = nodes.take();
        nodes.set(node, theirs, at);
        let neighbour = Self::beside(nodes, node, mine);
        nodes.set(node, mine, Ref::leaf(level));
        self.replace(nodes, parent, Ref::node(node, digit));
        Some(neighbour)
    }

    /// Removes the level of `price`, which must be there.
    pub(crate) fn remove(&mut self, nodes: &mut Nodes, price: Price) {
        let key = key_of(price);
        let mut grandparent = None;
        let mut parent = None;
        let mut at = self.root;
        while at.as_leaf().is_none() {
            let (node, digit) = at.as_node();
            grandparent = parent;
            parent = Some((node, digit_of(key, digit)));
            at = nodes.children[node].0[digit_of(key, digit)];
        }
        let Some((node, digit_value)) = parent else {
            self.root = Ref::NOTHING;
            return;
        };
        nodes.children[node].0[digit_value] = Ref::NOTHING;
        nodes.occupied[node as usize] &= !(1 << digit_value);
        let left = nodes.occupied[node as usize];
        if left.count_ones() == 1 {
            let sibling = nodes.children[node].0[left.trailing_zeros() as usize];
            self.replace(nodes, grandparent, sibling);
            nodes.children.release(node);
        }
    }

    /// A level that agrees with `key` for as many leading digits as any level does.
    fn any_relative(self, nodes: &Nodes, key: u64) -> u32 {
        let mut at = self.root;
        loop {
            if let Some(level) = at.as_leaf() {
                return level;
            }
            let (node, digit) = at.as_node();
            let children = &nodes.children[node].0;
            at = children[digit_of(key, digit)];
            if at == Ref::NOTHING {
                at = children[nodes.occupied[node as usize].trailing_zeros() as usize];
            }
        }
    }

    /// The level next to the free place `digit_value` of `node`, which has other children.
    fn beside(nodes: &Nodes, node: u32, digit_value: usize) -> Neighbour {
        let occupied = nodes.occupied[node as usize];
        let above = u32::from(occupied) >> digit_value;
        let children = &nodes.children[node].0;
        if above != 0 {
            let child = children[digit_value + above.trailing_zeros() as usize];
            Neighbour::Above(nodes.extreme(child, false))
        } else {
            let child = children[15 - occupied.leading_zeros() as usize];
            Neighbour::Below(nodes.extreme(child, true))
        }
    }

    fn replace(&mut self, nodes: &mut Nodes, parent: Option<(u32, usize)>, child: Ref) {
        match parent {
            Some((node, digit_value)) => nodes.set(node, digit_value, child),
            None => self.root = child,
        }
    }
}

const _: () = assert!(NONE > LEVELS_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use core::ops::Bound::{Excluded, Unbounded};
    use proptest::prelude::*;

    fn prices() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => -20..20i64,
            2 => (0..64u32).prop_map(|bit| 1i64.wrapping_shl(bit)),
            1 => any::<i64>(),
            1 => Just(i64::MIN),
            1 => Just(i64::MAX),
            2 => (0..50i64).prop_map(|tick| 5_000_000_000_000 + tick * 1_000_000),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_an_ordered_map(
            operations in prop::collection::vec((prices(), any::<bool>()), 0..300),
        ) {
            let mut levels = Pool::<Level>::new();
            let mut nodes = Nodes::new();
            levels.try_grow(300).unwrap();
            nodes.try_grow(300).unwrap();
            let mut ladder = Ladder::default();
            let mut model = BTreeMap::new();
            for (price, add) in operations {
                let known = model.get(&price).copied();
                prop_assert_eq!(ladder.find(&nodes, &levels, Price(price)), known);
                if add && known.is_none() {
                    let level = levels.take().unwrap();
                    levels[level].price = Price(price);
                    let neighbour = ladder.insert(&mut nodes, &levels, level);
                    let above = model.range((Excluded(price), Unbounded)).next();
                    let below = model.range(..price).next_back();
                    match neighbour {
                        None => prop_assert!(model.is_empty()),
                        Some(Neighbour::Above(found)) => prop_assert_eq!(above.map(|it| *it.1), Some(found)),
                        Some(Neighbour::Below(found)) => prop_assert_eq!(below.map(|it| *it.1), Some(found)),
                    }
                    model.insert(price, level);
                } else if !add && let Some(level) = known {
                    ladder.remove(&mut nodes, Price(price));
                    levels.release(level);
                    model.remove(&price);
                }
                prop_assert_eq!(nodes.live() == 0, model.len() <= 1);
                prop_assert!(nodes.live() as usize <= model.len().saturating_sub(1));
                prop_assert!(nodes.is_consistent());
                for (&price, &level) in &model {
                    prop_assert_eq!(ladder.find(&nodes, &levels, Price(price)), Some(level));
                }
            }
        }
    }
}
