//! What the venue knows of open orders beyond the book: records under the book's handles, and the
//! ways to find an order by number and by client order id. Called by placement, settlement and
//! cancels.

mod look_ahead;
mod places;
mod plain;
mod record;
mod slot;

pub(crate) use look_ahead::Group;
pub(crate) use plain::PlainOrder;
pub(crate) use record::{
    HAS_LIST, HAS_OWN_LOCK, IS_ICEBERG, IS_PAIRED, IS_WAITING, OrderDetails, OrderRecord,
};

use slot::{ById, ByName, OfAccount, Slot};

use crate::book::{BookPools, Handle, RestingView};
use crate::chains::Chains;
use crate::hash::Seed;
use crate::limits::MAXIMA;
use crate::lists::{List, Lists};
use crate::money;
use crate::open_counts::{OpenCounts, Pairs};
use crate::pool::NONE;
use crate::table::{Heads, Place, Telling};
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::message::command::Limits;
use touchline_protocol::message::enums::Side;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, Price, SessionId, SymbolId};

const _: () = assert!(MAXIMA.open_orders <= Telling::ENTRIES_MAX);

/// All open orders.
#[derive(Debug)]
pub(crate) struct Orders {
    slots: Vec<Slot>,
    details: Vec<OrderDetails>,
    by_id: Heads<ById>,
    /// Only orders that have a client order id.
    by_client_order_id: Heads<ByName, Telling>,
    pub(crate) lists: Lists,
    open: Pairs,
    by_account: Vec<OfAccount>,
    /// By session: open orders that it placed.
    by_session: Vec<u32>,
    chains: Chains,
    /// Waiting stops that may come to rest.
    reserved: u32,
    seed: Seed,
}

/// What an order adds to its account's position if it is filled. Of an open list only one order can
/// be: the limit leg counts for both.
#[inline(always)]
fn bought(record: &OrderRecord) -> u128 {
    let is_counted_by_other = record.flags & IS_PAIRED != 0 && record.flags & IS_WAITING != 0;
    match record.kind.side {
        Side::Buy if !is_counted_by_other => u128::from(record.quantity.cast_unsigned()),
        _ => 0,
    }
}

impl Orders {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self {
            slots: Vec::new(),
            details: Vec::new(),
            by_id: Heads::new(),
            by_client_order_id: Heads::new(),
            lists: Lists::new(seed),
            open: Pairs::new(seed),
            by_account: Vec::new(),
            by_session: Vec::new(),
            chains: Chains::new(),
            reserved: 0,
            seed,
        }
    }

    pub(crate) fn try_grow(&mut self, limits: &Limits) -> Result<(), TryReserveError> {
        let more = (limits.open_orders as usize).saturating_sub(self.slots.len());
        let wanted = self.slots.len() + more;
        self.slots.try_reserve_exact(more)?;
        self.details.try_reserve_exact(more)?;
        self.by_id.try_grow(&mut self.slots, limits.open_orders)?;
        self.by_client_order_id.try_grow(&mut self.slots, limits.open_orders)?;
        self.lists.try_grow(limits.open_orders)?;
        self.open.try_grow(limits.open_orders)?;
        let accounts = (limits.accounts as usize).max(self.by_account.len());
        self.by_account.try_reserve_exact(accounts - self.by_account.len())?;
        self.by_account.resize(accounts, OfAccount::NOTHING);
        // Session 0 is the engine.
        let sessions = (limits.sessions as usize + 1).max(self.by_session.len());
        self.by_session.try_reserve_exact(sessions - self.by_session.len())?;
        self.by_session.resize(sessions, 0);
        // Each pending work keeps one place at the most (of the urgent sweeps only one has begun; the turns of stops
        // that were reached in a halt, which the limit does not bound, keep one only at the head of the queue), and
        // so does a triggered stop while it takes, and each order of a list while a replacement is judged.
        self.chains.try_grow(limits.pending_work + 4)?;
        self.slots.resize(wanted, Slot::VACANT);
        self.details.resize(wanted, OrderDetails::default());
        Ok(())
    }

    /// The record of an open order.
    #[inline(always)]
    pub(crate) fn record(&self, handle: Handle) -> &OrderRecord {
        &self.slots[handle.0 as usize].record
    }

    /// As [`record`](Self::record), to change.
    #[inline(always)]
    pub(crate) fn record_mut(&mut self, handle: Handle) -> &mut OrderRecord {
        &mut self.slots[handle.0 as usize].record
    }

    /// The details of an open order.
    #[inline(always)]
    pub(crate) fn details(&self, handle: Handle) -> &OrderDetails {
        &self.details[handle.0 as usize]
    }

    /// As [`details`](Self::details), to change.
    pub(crate) fn details_mut(&mut self, handle: Handle) -> &mut OrderDetails {
        &mut self.details[handle.0 as usize]
    }

    /// What an open order hides.
    #[inline(always)]
    pub(crate) fn hidden(&self, handle: Handle) -> i64 {
        if self.record(handle).flags & IS_ICEBERG == 0 { 0 } else { self.details(handle).hidden }
    }

    /// An open order, wherever it is. The price of a waiting stop is the one that its lock is
    /// reckoned with: its limit, or without one its stop price (facts §4).
    #[inline(always)]
    pub(crate) fn view(&self, pools: &BookPools, handle: Handle) -> RestingView {
        let record = self.record(handle);
        if record.flags & IS_WAITING == 0 {
            return pools.order(handle);
        }
        let OrderDetails { limit_price, stop_price, .. } = *self.details(handle);
        RestingView {
            handle,
            id: pools.id(handle.0),
            owner: pools.owner(handle.0),
            side: record.kind.side,
            price: Price(if limit_price > 0 { limit_price } else { stop_price }),
            remaining: pools.remaining(handle),
        }
    }

    /// Open orders of an account on all symbols: all of them, and the waiting stops (the exchange's
    /// filters).
    #[inline(always)]
    pub(crate) fn totals(&self, account: AccountId) -> [u32; 2] {
        self.by_account[account.0 as usize].totals
    }

    /// Open orders that a session placed, whoever's they are.
    pub(crate) fn of_session(&self, session: SessionId) -> u32 {
        self.by_session[session.0 as usize]
    }

    /// Waiting stops that may come to rest: each keeps a price level free.
    pub(crate) const fn reserved(&self) -> u32 {
        self.reserved
    }

    /// What an open order has locked. The limit leg of an open list locks as any order does, the stop
    /// leg what it needs beyond that: they exclude each other (facts §4).
    pub(crate) fn locked(&self, order: &RestingView) -> i64 {
        let open = order.remaining.0 + self.hidden(order.handle);
        let record = self.record(order.handle);
        let locked = self.locked_at(order.handle, order.price, open);
        if record.flags & IS_WAITING == 0 {
            return locked;
        }
        match self.list_of(order.handle) {
            Some(list) => {
                let limit_price = Price(self.lists.get(list).limit_price);
                (locked - record.locked(limit_price, open)).max(0)
            }
            None => locked,
        }
    }

    /// What an open order that is not the stop leg of an open list has locked, given its price and what
    /// it has open, hidden parts included.
    #[inline(always)]
    pub(crate) fn locked_at(&self, handle: Handle, price: Price, open: i64) -> i64 {
        let record = self.record(handle);
        if record.flags & HAS_OWN_LOCK == 0 {
            record.locked(price, open)
        } else {
            self.details(handle).own_lock - record.executed_quote
        }
    }

    /// What an open order shows at a time; 0 for what is no iceberg.
    pub(crate) fn iceberg(&self, handle: Handle) -> i64 {
        if self.record(handle).flags & IS_ICEBERG == 0 { 0 } else { self.details(handle).iceberg }
    }

    /// The list that an open order belongs to, open or not.
    #[inline(always)]
    pub(crate) fn order_list_id(&self, handle: Handle) -> OrderListId {
        if self.record(handle).flags & HAS_LIST == 0 {
            OrderListId::NONE
        } else {
            self.details(handle).order_list_id
        }
    }

    /// Slot of the open list that an order belongs to.
    #[inline(always)]
    pub(crate) fn list_of(&self, handle: Handle) -> Option<u32> {
        (self.record(handle).flags & IS_PAIRED != 0).then(|| self.details(handle).list)
    }

    /// Opens a list of two orders that are open and carry its number: from here on they exclude each
    /// other.
    pub(crate) fn pair(&mut self, list: List) {
        let (stop, limit) = (list.stop, list.limit);
        let slot = self.lists.open(list);
        let record = self.record(stop);
        let (pair, bought) = (record.pair, bought(record));
        self.open.at_mut(pair).bought -= bought;
        for handle in [stop, limit] {
            self.record_mut(handle).flags |= IS_PAIRED;
            self.details[handle.0 as usize].list = slot;
        }
    }

    /// Lets the limit leg of a list live on by itself. The list is still to be closed, and the stop
    /// leg to be ended.
    pub(crate) fn unpair_limit_leg(&mut self, handle: Handle) {
        self.record_mut(handle).flags &= !IS_PAIRED;
        self.details_mut(handle).list = NONE;
    }

    /// The client order id of an open order; empty for none.
    pub(crate) fn client_order_id(&self, handle: Handle) -> &ClientOrderId {
        &self.slots[handle.0 as usize].client_order_id
    }

    /// Open orders of an account on a symbol.
    #[inline(always)]
    pub(crate) fn open_counts(&self, account: AccountId, symbol: SymbolId) -> OpenCounts {
        *self.open.at(self.pair_of(account, symbol))
    }

    /// Slot of the counts of an account on a symbol; none if it has nothing open there.
    #[inline(always)]
    pub(crate) fn pair_of(&self, account: AccountId, symbol: SymbolId) -> u32 {
        let last = self.by_account[account.0 as usize].last_pair;
        self.open.find(last, account, symbol)
    }

    /// The counts in such a slot; of none, that nothing is open.
    #[inline(always)]
    pub(crate) fn counts_at(&self, pair: u32) -> &OpenCounts {
        self.open.at(pair)
    }

    /// An open order by number.
    #[inline(always)]
    pub(crate) fn find(&self, pools: &BookPools, symbol: SymbolId, id: OrderId) -> Option<Handle> {
        self.by_id
            .find(&self.slots, self.seed.order(symbol.0, id.0), |at, slot| {
                pools.id(at) == id && slot.record.symbol == symbol
            })
            .map(Handle)
    }

    /// An open order by its owner's name for it.
    #[inline(always)]
    pub(crate) fn find_by_client_order_id(
        &self,
        pools: &BookPools,
        account: AccountId,
        symbol: SymbolId,
        name: &ClientOrderId,
    ) -> Option<Handle> {
        if name.is_empty() {
            return None;
        }
        let hash = self.name_hash(account, symbol, name);
        self.find_by_name_hash(pools, (account, symbol, name), hash)
    }

    /// The hash of an owner's name for an order.
    #[inline(always)]
    pub(crate) fn name_hash(
        &self,
        account: AccountId,
        symbol: SymbolId,
        name: &ClientOrderId,
    ) -> u32 {
        self.seed.client_order_id(account, symbol, name)
    }

    /// As [`find_by_client_order_id`](Self::find_by_client_order_id), of a name whose hash is known; none
    /// has the empty name.
    #[inline(always)]
    pub(crate) fn find_by_name_hash(
        &self,
        pools: &BookPools,
        (account, symbol, name): (AccountId, SymbolId, &ClientOrderId),
        hash: u32,
    ) -> Option<Handle> {
        self.by_client_order_id
            .find(&self.slots, hash, |at, slot| {
                slot.client_order_id == *name
                    && pools.owner(at) == account.0
                    && slot.record.symbol == symbol
            })
            .map(Handle)
    }

    /// Counts an order among the open ones of its session, its account, and its account on its symbol, whose
    /// slot has just been looked for; gives that slot.
    #[inline(always)]
    fn add_to_counts(&mut self, record: &OrderRecord, (account, pair): (AccountId, u32)) -> u32 {
        let OrderRecord { symbol, session, kind, flags, .. } = *record;
        self.by_session[session.0 as usize] += 1;
        let pair = self.open.take_found((account, symbol), pair);
        let is_waiting = u32::from(flags & IS_WAITING != 0);
        let of_account = &mut self.by_account[account.0 as usize];
        of_account.last_pair = pair;
        of_account.totals[0] += 1;
        of_account.totals[1] += is_waiting;
        self.reserved += is_waiting * u32::from(kind.may_rest());
        let counts = self.open.at_mut(pair);
        counts.all += 1;
        counts.icebergs += u32::from(flags & IS_ICEBERG != 0);
        counts.algos += is_waiting;
        counts.sells += u32::from(kind.side == Side::Sell);
        counts.bought += bought(record);
        pair
    }

    /// Keeps a record of an order that now rests or waits at `handle`; its place is still to be given.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        handle: Handle,
        (id, account): (OrderId, AccountId),
        (mut record, details): (OrderRecord, OrderDetails),
        name: &ClientOrderId,
    ) {
        let symbol = record.symbol;
        if record.flags != 0 {
            self.details[handle.0 as usize] = details;
        }
        record.pair = self.add_to_counts(&record, (account, self.pair_of(account, symbol)));
        let slot = &mut self.slots[handle.0 as usize];
        slot.record = record;
        slot.client_order_id = *name;
        slot.by_id = self.by_id.insert_made(self.seed.order(symbol.0, id.0), handle.0);
        // Looked at where it is now: a copy on its way that is looked at in parts is made in parts, slowly.
        if !slot.client_order_id.is_empty() {
            let hash = self.seed.client_order_id(account, symbol, &slot.client_order_id);
            slot.by_name = self.by_client_order_id.insert_made(hash, handle.0);
        }
    }

    /// Lowers an open order's quantity, so that so much stays open. From rules 2 on a buy then locks what
    /// that needs; by rules 1 what it locked is lowered by as much as its notional.
    pub(crate) fn set_quantity(
        &mut self,
        rules: u32,
        order: &RestingView,
        (quantity, open): (i64, i64),
    ) {
        let at = order.handle.0 as usize;
        let record = &mut self.slots[at].record;
        let counts = self.open.at_mut(record.pair);
        counts.bought -= bought(record);
        record.quantity = quantity;
        counts.bought += bought(record);
        if rules >= 2 && record.kind.side == Side::Buy && open < quantity {
            if record.flags == 0 {
                self.details[at] = OrderDetails::default();
            }
            record.flags |= HAS_OWN_LOCK;
            let for_the_rest = money::quote_rounded_up(order.price.0, open)
                .expect("it was more when the order was placed");
            self.details[at].own_lock = for_the_rest + record.executed_quote;
        }
    }

    /// Forgets an order that has ended.
    #[inline(always)]
    pub(crate) fn remove(&mut self, handle: Handle, account: AccountId) {
        let ends = &mut self.by_account[account.0 as usize].ends;
        self.chains.remove(&mut self.slots, ends, handle);
        self.take_out(handle, account);
    }

    /// Forgets an order that takes (again) and may come to rest, or that is put back; its place is kept:
    /// gives that.
    pub(crate) fn suspend(&mut self, handle: Handle, account: AccountId) -> u32 {
        let ends = &mut self.by_account[account.0 as usize].ends;
        let kept = self.chains.keep(&mut self.slots, ends, handle);
        self.take_out(handle, account);
        kept
    }

    #[inline(always)]
    fn take_out(&mut self, handle: Handle, account: AccountId) {
        let Slot { record, client_order_id, .. } = &self.slots[handle.0 as usize];
        let OrderRecord { session, pair, kind, flags, .. } = *record;
        let bought = bought(record);
        let has_name = !client_order_id.is_empty();
        self.by_session[session.0 as usize] -= 1;
        self.by_id.forget(&mut self.slots, handle.0);
        if has_name {
            self.by_client_order_id.forget(&mut self.slots, handle.0);
        }
        let is_waiting = u32::from(flags & IS_WAITING != 0);
        let of_account = &mut self.by_account[account.0 as usize];
        of_account.totals[0] -= 1;
        of_account.totals[1] -= is_waiting;
        let counts = self.open.at_mut(pair);
        counts.all -= 1;
        counts.icebergs -= u32::from(flags & IS_ICEBERG != 0);
        counts.algos -= is_waiting;
        counts.sells -= u32::from(kind.side == Side::Sell);
        counts.bought -= bought;
        if counts.all == 0 {
            self.open.release(&mut of_account.last_pair, pair);
        }
        self.reserved -= is_waiting * u32::from(kind.may_rest());
    }

    /// Accounts and symbols with an open order, if their table is sound.
    pub(crate) fn checked_pairs(&self) -> Option<u32> {
        self.open.checked_len(self.by_account.iter().map(|of_account| of_account.last_pair))
    }

    /// Entries of the two tables: all orders, and those with a client order id. Counted one by one.
    pub(crate) fn table_lengths(&self) -> (u32, u32) {
        (self.by_id.count(&self.slots), self.by_client_order_id.count(&self.slots))
    }
}
