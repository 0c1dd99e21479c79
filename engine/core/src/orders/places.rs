//! The places of open orders among those of their accounts: see [`chains`](crate::chains). Called by placement,
//! taking, stops, replacements and sweeps.

use super::Orders;
use crate::book::{BookPools, Handle};
use crate::pool::NONE;
use touchline_protocol::units::{AccountId, Position};

impl Orders {
    /// Gives an order its place among those of its account: one that is kept for it, or if that is none
    /// the last one, nothing of the account being placed later.
    #[inline(always)]
    pub(crate) fn give_place(
        &mut self,
        handle: Handle,
        account: AccountId,
        (kept, placed): (u32, Position),
    ) {
        let ends = &mut self.by_account[account.0 as usize].ends;
        if kept == NONE {
            self.chains.append(&mut self.slots, ends, (handle, placed));
        } else {
            self.chains.give(&mut self.slots, ends, (kept, handle));
        }
    }

    /// Keeps a place for an order that is taking; nothing of the account was placed later.
    pub(crate) fn keep_last_place(&mut self, account: AccountId, placed: Position) -> u32 {
        let ends = &mut self.by_account[account.0 as usize].ends;
        self.chains.keep_last(&mut self.slots, ends, placed)
    }

    /// Keeps a place behind another one, or in front of all (none), for a mass cancel that goes on there.
    pub(crate) fn mark_place(&mut self, account: AccountId, previous: u32) -> u32 {
        let ends = &mut self.by_account[account.0 as usize].ends;
        self.chains.mark(&mut self.slots, ends, previous)
    }

    /// Gives a kept place up.
    pub(crate) fn give_place_up(&mut self, account: AccountId, kept: u32) {
        let ends = &mut self.by_account[account.0 as usize].ends;
        self.chains.give_up(&mut self.slots, ends, kept);
    }

    /// A kept place that is in no chain yet; `None` when there is no room.
    pub(crate) fn loose_place(&mut self) -> Option<u32> {
        self.chains.loose()
    }

    /// Puts a place that is in no chain yet at the end of its account's.
    pub(crate) fn link_place(&mut self, account: AccountId, place: u32, placed: Position) {
        let ends = &mut self.by_account[account.0 as usize].ends;
        self.chains.link_last(&mut self.slots, ends, (place, placed));
    }

    /// The place behind another one, or the first one (none), of an account.
    pub(crate) fn place_behind(&self, account: AccountId, previous: u32) -> Option<u32> {
        // The fee account is there before limits make room for the orders of any.
        let ends = &self.by_account.get(account.0 as usize)?.ends;
        self.chains.behind(&self.slots, ends, previous)
    }

    /// Position of the placement of the order that a place is of.
    pub(crate) fn placed_at(&self, place: u32) -> Position {
        self.chains.placed(&self.slots, place)
    }

    /// Position of an open order's placement.
    pub(crate) fn placed(&self, handle: Handle) -> Position {
        self.slots[handle.0 as usize].node.placed()
    }

    /// Places of all accounts: of orders, each of which is open between commands, and kept ones.
    pub(crate) const fn places(&self, pools: &BookPools) -> u32 {
        pools.orders() + self.chains.kept()
    }

    /// True when the places of an account are linked both ways and go by placement, and none is lost.
    pub(crate) fn has_consistent_places(&self, account: AccountId) -> bool {
        self.chains.is_consistent(&self.slots, &self.by_account[account.0 as usize].ends)
    }
}
