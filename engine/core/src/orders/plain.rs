//! Orders that are LIMIT and GTC and nothing else, which most are: what they leave out need not be looked at.
//! Called by the short way of placement and by cancels.

use super::Orders;
use super::record::OrderRecord;
use crate::book::{BookPools, Handle};
use crate::filters::OrderKind;
use crate::pool::NONE;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, Position, SessionId, SymbolId};

/// An order that comes to rest and is LIMIT and GTC and nothing else: what its record is made of.
pub(crate) struct PlainOrder {
    pub(crate) order_id: OrderId,
    pub(crate) account: AccountId,
    pub(crate) symbol: SymbolId,
    pub(crate) side: Side,
    pub(crate) quantity: i64,
    /// Position of its placement.
    pub(crate) placed: Position,
    pub(crate) session: SessionId,
    /// Slot of the counts of its account and symbol, or none.
    pub(crate) pair: u32,
    /// Of its client order id.
    pub(crate) name_hash: u32,
}

impl Orders {
    /// The first order that may have a name with this hash, or none: most names have a place of their own.
    #[inline(always)]
    pub(crate) fn first_namesake(&self, hash: u32) -> u32 {
        self.by_client_order_id.first_guess(hash)
    }

    /// True when an open order of an account on a symbol has this name, whose hash is known.
    #[inline(never)]
    pub(crate) fn is_among_namesakes(
        &self,
        pools: &BookPools,
        named: (AccountId, SymbolId, &ClientOrderId),
        hash: u32,
    ) -> bool {
        self.find_by_name_hash(pools, named, hash).is_some()
    }

    /// As [`insert`](Self::insert), for an order that is LIMIT and GTC and nothing else; it is given its
    /// place too.
    #[inline(always)]
    pub(crate) fn insert_plain(
        &mut self,
        handle: Handle,
        order: &PlainOrder,
        name: &ClientOrderId,
    ) {
        let PlainOrder { order_id, account, symbol, side, quantity, placed, session, .. } = *order;
        let mut record = OrderRecord {
            quantity,
            executed_quote: 0,
            priority: placed,
            symbol,
            session,
            pair: NONE,
            kind: OrderKind { side, order_type: OrderType::Limit, time_in_force: TimeInForce::Gtc },
            flags: 0,
            prevention: None,
        };
        record.pair = self.add_to_counts(&record, (account, order.pair));
        let ends = &mut self.by_account[account.0 as usize].ends;
        self.chains.append(&mut self.slots, ends, (handle, placed));
        let slot = &mut self.slots[handle.0 as usize];
        slot.record = record;
        slot.by_id = self.by_id.insert_made(self.seed.order(symbol.0, order_id.0), handle.0);
        slot.client_order_id = *name;
        if !name.is_empty() {
            slot.by_name = self.by_client_order_id.insert_made(order.name_hash, handle.0);
        }
    }

    /// True for an open order that has nothing but its record: it rests, whole, alone and by a lock that
    /// follows from its price.
    #[inline(always)]
    pub(crate) fn is_plain(&self, handle: Handle) -> bool {
        self.record(handle).flags == 0
    }

    /// As [`remove`](Self::remove), of an order that has nothing but its record.
    #[inline(always)]
    pub(crate) fn remove_plain(&mut self, handle: Handle, account: AccountId) {
        self.remove_flagged(handle, account, 0);
    }
}
