//! How what the venue keeps of an order, and of an account's orders, lies in memory. Called by
//! [`Orders`](super::Orders).

use super::record::OrderRecord;
use crate::chains::{Ends, Node, Standing};
use crate::pool::NONE;
use crate::table::{Link, LinkOf};
use touchline_protocol::text::ClientOrderId;

/// What the venue keeps of each open order: two cache lines, the first of them what it is found and ended
/// by.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Slot {
    pub(super) record: OrderRecord,
    pub(super) by_id: Link,
    pub(super) by_name: Link,
    pub(super) client_order_id: ClientOrderId,
    /// Its place among the orders of its account.
    pub(super) node: Node,
}

const _: () = assert!(size_of::<Slot>() == 128);

impl Slot {
    pub(super) const VACANT: Self = Self {
        record: OrderRecord::VACANT,
        by_id: Link::LOOSE,
        by_name: Link::LOOSE,
        client_order_id: ClientOrderId::EMPTY,
        node: Node::LOOSE,
    };
}

impl Standing for Slot {
    #[inline(always)]
    fn node(&self) -> &Node {
        &self.node
    }

    #[inline(always)]
    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

/// The table of order numbers.
#[derive(Debug)]
pub(super) struct ById;

impl LinkOf<Slot> for ById {
    #[inline(always)]
    fn link(slot: &Slot) -> &Link {
        &slot.by_id
    }

    #[inline(always)]
    fn link_mut(slot: &mut Slot) -> &mut Link {
        &mut slot.by_id
    }
}

/// The table of client order ids.
#[derive(Debug)]
pub(super) struct ByName;

impl LinkOf<Slot> for ByName {
    #[inline(always)]
    fn link(slot: &Slot) -> &Link {
        &slot.by_name
    }

    #[inline(always)]
    fn link_mut(slot: &mut Slot) -> &mut Link {
        &mut slot.by_name
    }
}

/// What is known of an account's open orders.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct OfAccount {
    /// All of them, and the waiting stops.
    pub(super) totals: [u32; 2],
    /// Slot of the counts on the symbol that was asked for last, or none.
    pub(super) last_pair: u32,
    /// Its orders by placement.
    pub(super) ends: Ends,
}

impl OfAccount {
    pub(super) const NOTHING: Self = Self { totals: [0; 2], last_pair: NONE, ends: Ends::NONE };
}
