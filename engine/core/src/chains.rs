//! The open orders of each account in the order of their placement, oldest first: the way along which
//! a mass cancel goes. Called by [`Orders`](crate::orders::Orders) whenever an order comes to rest or to
//! wait, and whenever it ends.
//!
//! A place in a chain belongs to an open order, whose node lies with the rest of the order; or it is kept for an order
//! that is taking and may rest behind that, or for a mass cancel that goes on from there. Only kept places have their
//! nodes in here.

use crate::book::Handle;
use crate::limits::MAXIMA;
use crate::pool::{Linked, NONE, Pool, named};
use alloc::collections::TryReserveError;
use core::hint::black_box;
use touchline_protocol::units::Position;

/// This bit is set in the number of a kept place; that of an order's place is its handle.
const KEPT: u32 = 1 << 31;

const _: () = assert!(MAXIMA.open_orders <= KEPT);

/// A place in an account's chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    next: u32,
    previous: u32,
    /// Position of the order's placement; it never changes.
    placed: Position,
}

impl Node {
    /// In no chain.
    pub(crate) const LOOSE: Self = Self { next: NONE, previous: NONE, placed: Position(0) };

    /// Position of the placement of the order that stands here.
    pub(crate) const fn placed(&self) -> Position {
        self.placed
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::LOOSE
    }
}

impl Linked for Node {
    fn next_free(&self) -> u32 {
        self.next
    }

    fn set_next_free(&mut self, handle: u32) {
        self.next = handle;
    }
}

/// What is kept of an order, its node included.
pub(crate) trait Standing {
    /// Its node.
    fn node(&self) -> &Node;
    /// As [`node`](Self::node), to change.
    fn node_mut(&mut self) -> &mut Node;
}

/// Both ends of an account's chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    first: u32,
    last: u32,
}

impl Ends {
    /// Of a chain without any place.
    pub(crate) const NONE: Self = Self { first: NONE, last: NONE };
}

/// The kept places of all chains, and what is done with chains. What is kept of the orders, by handle, and
/// the ends of the account's chain are handed to each call.
#[derive(Debug)]
pub(crate) struct Chains {
    kept: Pool<Node>,
}

impl Chains {
    pub(crate) const fn new() -> Self {
        Self { kept: Pool::new() }
    }

    /// Makes room for so many kept places.
    pub(crate) fn try_grow(&mut self, kept: u32) -> Result<(), TryReserveError> {
        self.kept.try_grow(kept)
    }

    #[inline(always)]
    fn node<'node, S: Standing>(&'node self, orders: &'node [S], place: u32) -> &'node Node {
        if place & KEPT == 0 { orders[place as usize].node() } else { &self.kept[place & !KEPT] }
    }

    #[inline(always)]
    fn node_mut<'node, S: Standing>(
        &'node mut self,
        orders: &'node mut [S],
        place: u32,
    ) -> &'node mut Node {
        if place & KEPT == 0 {
            orders[place as usize].node_mut()
        } else {
            &mut self.kept[place & !KEPT]
        }
    }

    /// Puts an order at the end of its account's chain: nothing of the account was placed later.
    #[inline(always)]
    pub(crate) fn append<S: Standing>(
        &mut self,
        orders: &mut [S],
        ends: &mut Ends,
        (order, placed): (Handle, Position),
    ) {
        let previous = core::mem::replace(&mut ends.last, order.0);
        self.set_next(orders, ends, (previous, order.0));
        *orders[order.0 as usize].node_mut() = Node { next: NONE, previous, placed };
    }

    /// As [`append`](Self::append), of any place.
    pub(crate) fn link_last<S: Standing>(
        &mut self,
        orders: &mut [S],
        ends: &mut Ends,
        (place, placed): (u32, Position),
    ) {
        let previous = core::mem::replace(&mut ends.last, place);
        self.set_next(orders, ends, (previous, place));
        *self.node_mut(orders, place) = Node { next: NONE, previous, placed };
    }

    /// A place that is kept for nobody yet and is in no chain; `None` when there is no room.
    pub(crate) fn loose(&mut self) -> Option<u32> {
        self.kept.take().map(|at| at | KEPT)
    }

    /// Keeps a place at the end of an account's chain: nothing of the account was placed later.
    pub(crate) fn keep_last<S: Standing>(
        &mut self,
        orders: &mut [S],
        ends: &mut Ends,
        placed: Position,
    ) -> u32 {
        let place = self.loose().expect("a place for each pending work");
        self.link_last(orders, ends, (place, placed));
        place
    }

    /// Keeps a place right behind another one, or in front of all (none), for a mass cancel that goes on
    /// there.
    pub(crate) fn mark<S: Standing>(
        &mut self,
        orders: &mut [S],
        ends: &mut Ends,
        previous: u32,
    ) -> u32 {
        let placed =
            if previous == NONE { Position(0) } else { self.node(orders, previous).placed };
        let place = self.loose().expect("a place for each pending work");
        let next = self.behind(orders, ends, previous).unwrap_or(NONE);
        *self.node_mut(orders, place) = Node { next, previous, placed };
        self.set_next(orders, ends, (previous, place));
        self.set_previous(orders, ends, (next, place));
        place
    }

    /// Keeps the place of an order that leaves it.
    pub(crate) fn keep<S: Standing>(
        &mut self,
        orders: &mut [S],
        ends: &mut Ends,
        order: Handle,
    ) -> u32 {
        let place = self.loose().expect("a place for each pending work, and for what is judged");
        self.replace(orders, ends, (order.0, place));
        place
    }

    /// Gives a kept place to an order.
    pub(crate) fn give<S: Standing>(
        &mut self,
        orders: &mut [S],
        ends: &mut Ends,
        (place, order): (u32, Handle),
    ) {
        self.replace(orders, ends, (place, order.0));
        self.kept.release(place & !KEPT);
    }

    /// Puts one place in the stead of another.
    fn replace<S: Standing>(&mut self, orders: &mut [S], ends: &mut Ends, (old, new): (u32, u32)) {
        let node = *self.node(orders, old);
        *self.node_mut(orders, new) = node;
        self.set_next(orders, ends, (node.previous, new));
        self.set_previous(orders, ends, (node.next, new));
    }

    /// Says what comes behind a place, or first (none).
    #[inline(always)]
    fn set_next<S: Standing>(
        &mut self,
        orders: &mut [S],
        ends: &mut Ends,
        (place, next): (u32, u32),
    ) {
        // No order has the number of a kept place, or none: nearly all places are told from these by the look-up.
        match orders.get_mut(place as usize) {
            Some(order) => order.node_mut().next = next,
            None if place == NONE => ends.first = next,
            None => self.kept[place & !KEPT].next = next,
        }
    }

    /// Says what comes in front of a place, or last (none).
    #[inline(always)]
    fn set_previous<S: Standing>(
        &mut self,
        orders: &mut [S],
        ends: &mut Ends,
        (place, previous): (u32, u32),
    ) {
        match orders.get_mut(place as usize) {
            Some(order) => order.node_mut().previous = previous,
            None if place == NONE => ends.last = previous,
            None => self.kept[place & !KEPT].previous = previous,
        }
    }

    /// Takes an order out of its account's chain.
    #[inline(always)]
    pub(crate) fn remove<S: Standing>(&mut self, orders: &mut [S], ends: &mut Ends, order: Handle) {
        let node = *orders[order.0 as usize].node();
        self.unlink(orders, ends, node);
    }

    /// Joins what stands on both sides of a place.
    #[inline(always)]
    fn unlink<S: Standing>(&mut self, orders: &mut [S], ends: &mut Ends, node: Node) {
        self.set_next(orders, ends, (node.previous, node.next));
        self.set_previous(orders, ends, (node.next, node.previous));
    }

    /// Gives a kept place up.
    pub(crate) fn give_up<S: Standing>(&mut self, orders: &mut [S], ends: &mut Ends, place: u32) {
        self.unlink(orders, ends, self.kept[place & !KEPT]);
        self.kept.release(place & !KEPT);
    }

    /// The place behind another one, or the first one (none).
    pub(crate) fn behind<S: Standing>(
        &self,
        orders: &[S],
        ends: &Ends,
        previous: u32,
    ) -> Option<u32> {
        named(if previous == NONE { ends.first } else { self.node(orders, previous).next })
    }

    /// Position of the placement of the order that a place is of.
    pub(crate) fn placed<S: Standing>(&self, orders: &[S], place: u32) -> Position {
        self.node(orders, place).placed
    }

    /// Kept places.
    pub(crate) const fn kept(&self) -> u32 {
        self.kept.live()
    }

    /// True when an account's chain is linked both ways and goes by placement, and no node is lost.
    pub(crate) fn is_consistent<S: Standing>(&self, orders: &[S], ends: &Ends) -> bool {
        let (mut previous, mut placed) = (NONE, Position(0));
        while let Some(at) = self.behind(orders, ends, previous) {
            let node = self.node(orders, at);
            if node.previous != previous || node.placed < placed {
                return false;
            }
            (previous, placed) = (at, node.placed);
        }
        ends.last == previous && self.kept.is_consistent()
    }
}

/// The order that stands at a place, if it is no kept one.
pub(crate) fn order_at(place: u32) -> Option<Handle> {
    (place & KEPT == 0).then_some(Handle(place))
}

/// The number of a kept place among those.
pub(crate) fn number_of_kept(place: u32) -> usize {
    (place & !KEPT) as usize
}

/// Loads the neighbours of orders' places, where these are orders' too.
pub(crate) fn touch_neighbours<S: Standing>(orders: &[S], nodes: impl Iterator<Item = Node>) {
    let Some(last) = orders.len().checked_sub(1) else { return };
    for Node { next, previous, .. } in nodes {
        for place in [next, previous] {
            black_box(orders[(place as usize).min(last)].node().next);
        }
    }
}
