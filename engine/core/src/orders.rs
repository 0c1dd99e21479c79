//! What the venue knows of open orders beyond the book: records under the book's handles, and the
//! ways to find an order by number and by client order id. Called by placement, settlement and
//! cancels.

mod look_ahead;

pub(crate) use look_ahead::Group;

use crate::book::{BookPools, Handle, RestingView};
use crate::chains::Chains;
use crate::filters::OrderKind;
use crate::hash::Seed;
use crate::lists::{List, Lists};
use crate::money;
use crate::open_counts::{OpenCounts, Pairs};
use crate::pool::NONE;
use crate::table::Table;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::message::command::Limits;
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{
    AccountId, OrderId, OrderListId, Position, Price, SessionId, SymbolId,
};

/// The part of an open order that is neither in the book nor its client order id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderRecord {
    /// Base quantity, executed part included.
    pub(crate) quantity: i64,
    pub(crate) executed_quote: i64,
    /// Position of the transaction that gave the order its place in the queue.
    pub(crate) priority: Position,
    pub(crate) symbol: SymbolId,
    pub(crate) session: SessionId,
    /// Its place among the orders of its account.
    pub(crate) place: u32,
    /// Slot of the counts of its account and symbol; set when it is inserted.
    pub(crate) pair: u32,
    pub(crate) kind: OrderKind,
    /// `IS_*` bits: which parts of [`OrderDetails`] matter.
    pub(crate) flags: u8,
    /// Against trades with its own account when it takes, if it names it.
    pub(crate) prevention: Option<SelfTradePrevention>,
}

/// The order hides a part of its quantity.
pub(crate) const IS_ICEBERG: u8 = 1;
/// A stop that waits to be triggered, or has been and waits for its turn: not in the book.
pub(crate) const IS_WAITING: u8 = 2;
/// The order belongs to a list, or did while that was open.
pub(crate) const HAS_LIST: u8 = 4;
/// The order's list is open: its other order is open too, and neither has executed anything.
pub(crate) const IS_PAIRED: u8 = 8;
/// A buy whose price or quantity changed when a part of it was executed: it locked exactly what the rest
/// needed then, and what it had paid by then is no part of its notional now.
pub(crate) const HAS_OWN_LOCK: u8 = 16;

const _: () = assert!(size_of::<OrderRecord>() <= 48);

impl OrderRecord {
    const VACANT: Self = Self {
        quantity: 0,
        executed_quote: 0,
        priority: Position(0),
        symbol: SymbolId(0),
        session: SessionId(0),
        place: NONE,
        pair: NONE,
        kind: OrderKind::LIMIT_BUY,
        flags: 0,
        prevention: None,
    };

    /// What the order has locked, given its price and what it has open (hidden parts included): of
    /// quote for a buy (its notional rounded up, less what it has paid), of base for a sell. Never
    /// stored, so that it cannot drift.
    #[inline(always)]
    pub(crate) fn locked(&self, price: Price, remaining: i64) -> i64 {
        match self.kind.side {
            Side::Sell => remaining,
            Side::Buy => {
                money::quote_rounded_up(price.0, self.quantity)
                    .expect("an order's notional is checked when it is placed")
                    - self.executed_quote
            }
        }
    }
}

/// What the venue keeps of each open order: always two cache lines, never three or four.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Slot {
    record: OrderRecord,
    client_order_id: ClientOrderId,
}

const _: () = assert!(size_of::<Slot>() == 96);

impl Slot {
    const VACANT: Self =
        Self { record: OrderRecord::VACANT, client_order_id: ClientOrderId::EMPTY };
}

/// What few orders need, apart from the record so that matching does not touch it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderDetails {
    /// What an iceberg shows at a time; 0 for other orders.
    pub(crate) iceberg: i64,
    /// What an iceberg hides at present.
    pub(crate) hidden: i64,
    /// The price that fires a waiting stop.
    pub(crate) stop_price: i64,
    /// The limit of a waiting stop once it is triggered; 0 for one that becomes MARKET.
    pub(crate) limit_price: i64,
    /// Number of the trade that triggered a waiting stop; 0 until then.
    pub(crate) fired_by: u64,
    /// The list that the order belongs to, also after that has come to its end.
    pub(crate) order_list_id: OrderListId,
    /// Slot of its list among the open ones; none when that is not open.
    pub(crate) list: u32,
    /// Of one with a lock of its own: what it locks for the rest and all that it has paid.
    pub(crate) own_lock: i64,
}

const _: () = assert!(size_of::<OrderDetails>() <= 64);

impl Default for OrderDetails {
    fn default() -> Self {
        Self {
            iceberg: 0,
            hidden: 0,
            stop_price: 0,
            limit_price: 0,
            fired_by: 0,
            order_list_id: OrderListId::NONE,
            list: NONE,
            own_lock: 0,
        }
    }
}

/// All open orders.
#[derive(Debug)]
pub(crate) struct Orders {
    slots: Vec<Slot>,
    details: Vec<OrderDetails>,
    by_id: Table,
    /// Only orders that have a client order id.
    by_client_order_id: Table,
    pub(crate) lists: Lists,
    open: Pairs,
    /// By account: all open orders, waiting stops.
    totals: Vec<[u32; 2]>,
    /// By session: open orders that it placed.
    by_session: Vec<u32>,
    /// By account: its orders by placement.
    pub(crate) chains: Chains,
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
            by_id: Table::new(),
            by_client_order_id: Table::new(),
            lists: Lists::new(seed),
            open: Pairs::new(seed),
            totals: Vec::new(),
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
        self.by_id.try_grow(limits.open_orders)?;
        self.by_client_order_id.try_grow(limits.open_orders)?;
        self.lists.try_grow(limits.open_orders)?;
        self.open.try_grow(limits.open_orders, limits.accounts)?;
        let accounts = (limits.accounts as usize).max(self.totals.len());
        self.totals.try_reserve_exact(accounts - self.totals.len())?;
        self.totals.resize(accounts, [0; 2]);
        // Session 0 is the engine.
        let sessions = (limits.sessions as usize + 1).max(self.by_session.len());
        self.by_session.try_reserve_exact(sessions - self.by_session.len())?;
        self.by_session.resize(sessions, 0);
        // Each pending work keeps one place at the most (of the urgent sweeps only one has begun), and so
        // does a triggered stop while it takes.
        self.chains.try_grow(limits.accounts, limits.open_orders + limits.pending_work + 2)?;
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
        self.totals[account.0 as usize]
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
        self.open.get(account, symbol)
    }

    /// An open order by number.
    #[inline(always)]
    pub(crate) fn find(&self, pools: &BookPools, symbol: SymbolId, id: OrderId) -> Option<Handle> {
        self.by_id
            .find(self.seed.order(symbol.0, id.0), |at| {
                pools.id(at) == id && self.slots[at as usize].record.symbol == symbol
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
        self.by_client_order_id
            .find(self.seed.client_order_id(account, symbol, name), |at| {
                let slot = &self.slots[at as usize];
                slot.client_order_id == *name
                    && pools.owner(at) == account.0
                    && slot.record.symbol == symbol
            })
            .map(Handle)
    }

    /// Keeps a record of an order that now rests or waits at `handle`; its place is made before.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        handle: Handle,
        (id, account): (OrderId, AccountId),
        (mut record, details): (OrderRecord, OrderDetails),
        name: &ClientOrderId,
    ) {
        let symbol = record.symbol;
        self.by_session[record.session.0 as usize] += 1;
        record.pair = self.open.take(account, symbol);
        let OrderRecord { pair, kind, flags, place, .. } = record;
        if flags != 0 {
            self.details[handle.0 as usize] = details;
        }
        self.chains.set_order(place, Some(handle));
        let counts = self.open.at_mut(pair);
        let is_waiting = u32::from(flags & IS_WAITING != 0);
        counts.all += 1;
        counts.icebergs += u32::from(flags & IS_ICEBERG != 0);
        counts.algos += is_waiting;
        counts.sells += u32::from(kind.side == Side::Sell);
        counts.bought += bought(&record);
        let [all, algos] = &mut self.totals[account.0 as usize];
        *all += 1;
        *algos += is_waiting;
        self.reserved += is_waiting * u32::from(kind.may_rest());
        let slot = &mut self.slots[handle.0 as usize];
        slot.record = record;
        slot.client_order_id = *name;
        self.by_id.insert(self.seed.order(symbol.0, id.0), handle.0);
        // Looked at where it is now: a copy on its way that is looked at in parts is made in parts, slowly.
        if !slot.client_order_id.is_empty() {
            let hash = self.seed.client_order_id(account, symbol, &slot.client_order_id);
            self.by_client_order_id.insert(hash, handle.0);
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
        self.chains.remove(account, self.record(handle).place);
        self.take_out(handle, account);
    }

    /// Forgets an order that takes (again) and may come to rest; its place is kept.
    pub(crate) fn suspend(&mut self, handle: Handle, account: AccountId) {
        self.chains.set_order(self.record(handle).place, None);
        self.take_out(handle, account);
    }

    #[inline(always)]
    fn take_out(&mut self, handle: Handle, account: AccountId) {
        let Slot { record, client_order_id } = &self.slots[handle.0 as usize];
        let OrderRecord { session, pair, flags, kind, .. } = *record;
        let bought = bought(record);
        let has_name = !client_order_id.is_empty();
        self.by_session[session.0 as usize] -= 1;
        self.by_id.forget(handle.0);
        if has_name {
            self.by_client_order_id.forget(handle.0);
        }
        let counts = self.open.at_mut(pair);
        let is_waiting = u32::from(flags & IS_WAITING != 0);
        counts.all -= 1;
        counts.icebergs -= u32::from(flags & IS_ICEBERG != 0);
        counts.algos -= is_waiting;
        counts.sells -= u32::from(kind.side == Side::Sell);
        counts.bought -= bought;
        if counts.all == 0 {
            self.open.release(pair);
        }
        let [all, algos] = &mut self.totals[account.0 as usize];
        *all -= 1;
        *algos -= is_waiting;
        self.reserved -= is_waiting * u32::from(kind.may_rest());
    }

    /// Accounts and symbols with an open order, if their table is sound.
    pub(crate) fn checked_pairs(&self) -> Option<u32> {
        self.open.checked_len()
    }

    /// Entries of the two tables: all orders, and those with a client order id.
    pub(crate) const fn table_lengths(&self) -> (u32, u32) {
        (self.by_id.len(), self.by_client_order_id.len())
    }
}
