//! Orders that are LIMIT and GTC and nothing else, which most are: what they leave out need not be looked at.
//! Called by the short way of placement, by settlement and by cancels.

use super::Orders;
use super::record::OrderRecord;
use super::slot::{ById, ByName, OfAccount, Slot};
use crate::book::{BookPools, Handle};
use crate::chains::Chains;
use crate::filters::OrderKind;
use crate::open_counts::Pairs;
use crate::table::{Heads, Telling};
use alloc::vec::Vec;
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, Position, SymbolId};

/// An order that comes to rest and is LIMIT and GTC and nothing else: what its message does not say of it.
pub(crate) struct PlainOrder {
    pub(crate) order_id: OrderId,
    pub(crate) account: AccountId,
    pub(crate) side: Side,
    /// Position of its placement.
    pub(crate) placed: Position,
    /// Slot of the counts of its account and symbol, or none.
    pub(crate) pair: u32,
    /// Of its client order id.
    pub(crate) name_hash: u32,
}

impl Orders {
    /// False when no order has a name with this hash, as with most.
    #[inline(always)]
    pub(crate) fn may_have_namesake(&self, hash: u32) -> bool {
        self.by_client_order_id.may_have(hash)
    }

    /// True when an open order of an account on a symbol has this name, whose hash is known.
    #[inline(never)]
    pub(crate) fn is_among_namesakes(
        &self,
        pools: &BookPools,
        account: AccountId,
        symbol: SymbolId,
        name: &ClientOrderId,
        hash: u32,
    ) -> bool {
        self.find_by_name_hash(pools, (account, symbol, name), hash).is_some()
    }

    /// As [`insert`](Self::insert), for an order that is LIMIT and GTC and nothing else; it is given its
    /// place too.
    #[inline(always)]
    pub(crate) fn insert_plain(&mut self, handle: Handle, order: &PlainOrder, message: &NewOrder) {
        let PlainOrder { order_id, account, side, placed, .. } = *order;
        let NewOrder { symbol, quantity, .. } = *message;
        let session = message.command.session;
        // No count of open orders is more than there may be, which is no more than this holds.
        let of_session = &mut self.by_session[session.0 as usize];
        *of_session = of_session.wrapping_add(1);
        let pair = self.open.take_found((account, symbol), order.pair);
        self.open.at_mut(pair).add_plain(side, quantity);
        let of_account = &mut self.by_account[account.0 as usize];
        of_account.last_pair = pair;
        of_account.totals[0] = of_account.totals[0].wrapping_add(1);
        // One view of all slots, so that which there are is looked at once.
        let slots = &mut self.slots[..];
        self.chains.append(slots, &mut of_account.ends, (handle, placed));
        let slot = &mut slots[handle.0 as usize];
        slot.record = OrderRecord {
            quantity,
            executed_quote: 0,
            priority: placed,
            symbol,
            session,
            pair,
            kind: OrderKind { side, order_type: OrderType::Limit, time_in_force: TimeInForce::Gtc },
            flags: 0,
            prevention: None,
        };
        slot.by_id = self.by_id.insert_made(self.seed.order(symbol.0, order_id.0), handle.0);
        slot.client_order_id = message.client_order_id;
        if !message.client_order_id.is_empty() {
            slot.by_name = self.by_client_order_id.insert_made(order.name_hash, handle.0);
        }
    }

    /// An order by number, if it is open, of an account and has nothing but its record.
    #[inline(always)]
    pub(crate) fn find_plain(
        &mut self,
        pools: &BookPools,
        (account, symbol, id): (AccountId, SymbolId, OrderId),
    ) -> Option<OpenPlain<'_>> {
        let hash = self.seed.order(symbol.0, id.0);
        let is_it = |at, slot: &Slot| pools.id(at) == id && slot.record.symbol == symbol;
        let at = self.by_id.find(&self.slots, hash, is_it)?;
        let found = self.plain(Handle(at), account);
        (found.record().flags == 0 && pools.owner(at) == account.0).then_some(found)
    }

    /// An open order of an account that has nothing but its record.
    #[inline(always)]
    pub(crate) fn plain(&mut self, handle: Handle, account: AccountId) -> OpenPlain<'_> {
        OpenPlain {
            handle,
            account,
            // One view of all, so that which there are is looked at once.
            slots: &mut self.slots,
            by_id: &mut self.by_id,
            by_client_order_id: &mut self.by_client_order_id,
            by_account: &mut self.by_account,
            by_session: &mut self.by_session,
            open: &mut self.open,
            chains: &mut self.chains,
        }
    }
}

/// An open order that has nothing but its record, and whatever it stands in.
pub(crate) struct OpenPlain<'orders> {
    pub(crate) handle: Handle,
    account: AccountId,
    slots: &'orders mut [Slot],
    by_id: &'orders mut Heads<ById>,
    by_client_order_id: &'orders mut Heads<ByName, Telling>,
    by_account: &'orders mut Vec<OfAccount>,
    by_session: &'orders mut Vec<u32>,
    open: &'orders mut Pairs,
    chains: &'orders mut Chains,
}

impl OpenPlain<'_> {
    /// Its record.
    #[inline(always)]
    pub(crate) fn record(&self) -> &OrderRecord {
        &self.slots[self.handle.0 as usize].record
    }

    /// Its client order id; empty for none.
    #[inline(always)]
    pub(crate) fn client_order_id(&self) -> &ClientOrderId {
        &self.slots[self.handle.0 as usize].client_order_id
    }

    /// Forgets it: it has ended.
    #[inline(always)]
    pub(crate) fn forget(self) {
        let Self { handle, account, slots, .. } = self;
        let Slot { record, client_order_id, .. } = &slots[handle.0 as usize];
        let OrderRecord { session, pair, kind, quantity, .. } = *record;
        let has_name = !client_order_id.is_empty();
        self.by_session[session.0 as usize] -= 1;
        self.by_id.forget(slots, handle.0);
        if has_name {
            self.by_client_order_id.forget(slots, handle.0);
        }
        let of_account = &mut self.by_account[account.0 as usize];
        self.chains.remove(slots, &mut of_account.ends, handle);
        of_account.totals[0] -= 1;
        let counts = self.open.at_mut(pair);
        counts.remove_plain(kind.side, quantity);
        if counts.all == 0 {
            self.open.release(&mut of_account.last_pair, pair);
        }
    }
}
