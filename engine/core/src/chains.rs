//! The open orders of each account in the order of their placement, oldest first: the way along which
//! a mass cancel goes. Called by [`Orders`](crate::orders::Orders) whenever an order comes to rest or to
//! wait, and whenever it ends.
//!
//! A node may stand for no order. It then keeps a place: of an order that is taking and will rest
//! (again) when it is done, or of a mass cancel that goes on behind it.

use crate::book::Handle;
use crate::pool::{Linked, NONE, Pool, named};
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::hint::black_box;
use touchline_protocol::units::{AccountId, Position};

/// A place in an account's chain.
#[derive(Clone, Copy, Default, Debug)]
struct Node {
    next: u32,
    previous: u32,
    /// Handle of the order, or none.
    order: u32,
    /// Position of the order's placement; it never changes.
    placed: Position,
}

impl Linked for Node {
    fn next_free(&self) -> u32 {
        self.next
    }

    fn set_next_free(&mut self, handle: u32) {
        self.next = handle;
    }
}

/// Both ends of a chain.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// The chains of all accounts.
#[derive(Debug)]
pub(crate) struct Chains {
    nodes: Pool<Node>,
    ends: Vec<Ends>,
}

impl Chains {
    pub(crate) const fn new() -> Self {
        Self { nodes: Pool::new(), ends: Vec::new() }
    }

    pub(crate) fn try_grow(&mut self, accounts: u32, nodes: u32) -> Result<(), TryReserveError> {
        let accounts = (accounts as usize).max(self.ends.len());
        self.ends.try_reserve_exact(accounts - self.ends.len())?;
        self.ends.resize(accounts, Ends { first: NONE, last: NONE });
        self.nodes.try_grow(nodes)
    }

    /// Adds a place at the end of an account's chain: nothing of the account was placed later.
    #[inline(always)]
    pub(crate) fn append(&mut self, account: AccountId, placed: Position) -> u32 {
        let last = self.ends[account.0 as usize].last;
        self.insert_behind(account, last, placed)
    }

    /// Adds a place behind another one, or in front of all (none).
    #[inline(always)]
    fn insert_behind(&mut self, account: AccountId, previous: u32, placed: Position) -> u32 {
        let node = self.nodes.take_as_left();
        let node = node.expect("a place for each open order and each pending work");
        let ends = &mut self.ends[account.0 as usize];
        let next = if previous == NONE {
            core::mem::replace(&mut ends.first, node)
        } else {
            core::mem::replace(&mut self.nodes[previous].next, node)
        };
        if next == NONE {
            ends.last = node;
        } else {
            self.nodes[next].previous = node;
        }
        self.nodes[node] = Node { next, previous, order: NONE, placed };
        node
    }

    /// A place right behind another one, or in front of all (none), for a mass cancel that goes on
    /// there.
    pub(crate) fn mark(&mut self, account: AccountId, previous: u32) -> u32 {
        let placed = if previous == NONE { Position(0) } else { self.nodes[previous].placed };
        self.insert_behind(account, previous, placed)
    }

    /// Says which order a place stands for, if any.
    #[inline(always)]
    pub(crate) fn set_order(&mut self, node: u32, order: Option<Handle>) {
        self.nodes[node].order = order.map_or(NONE, |handle| handle.0);
    }

    /// Gives a place up.
    #[inline(always)]
    pub(crate) fn remove(&mut self, account: AccountId, node: u32) {
        let Node { next, previous, .. } = self.nodes[node];
        let ends = &mut self.ends[account.0 as usize];
        if previous == NONE {
            ends.first = next;
        } else {
            self.nodes[previous].next = next;
        }
        if next == NONE {
            ends.last = previous;
        } else {
            self.nodes[next].previous = previous;
        }
        self.nodes.release(node);
    }

    /// The place behind another one, or the first one (none).
    pub(crate) fn behind(&self, account: AccountId, previous: u32) -> Option<u32> {
        named(if previous == NONE {
            self.ends[account.0 as usize].first
        } else {
            self.nodes[previous].next
        })
    }

    /// The order that a place stands for.
    pub(crate) fn order(&self, node: u32) -> Option<Handle> {
        named(self.nodes[node].order).map(Handle)
    }

    /// Position of the placement of the order that a place stands for.
    pub(crate) fn placed(&self, node: u32) -> Position {
        self.nodes[node].placed
    }

    /// Loads places with their neighbours; any others in the stead of what names none.
    pub(crate) fn touch(&self, places: &[u32]) {
        let Some(node_at) = self.nodes.any() else { return };
        for &place in places {
            black_box(node_at(place).order);
        }
        for &place in places {
            let node = node_at(place);
            black_box(node_at(node.next).order);
            black_box(node_at(node.previous).order);
        }
    }

    /// Places in all chains.
    pub(crate) const fn len(&self) -> u32 {
        self.nodes.live()
    }

    /// True when an account's chain is linked both ways and goes by placement, and no node is lost.
    pub(crate) fn is_consistent(&self, account: AccountId) -> bool {
        let (mut previous, mut placed) = (NONE, Position(0));
        while let Some(at) = self.behind(account, previous) {
            let node = &self.nodes[at];
            if node.previous != previous || node.placed < placed {
                return false;
            }
            (previous, placed) = (at, node.placed);
        }
        self.ends[account.0 as usize].last == previous && self.nodes.is_consistent()
    }
}
