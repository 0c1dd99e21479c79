//! Read-only views of the venue, for the engine (sessions, pending work, the public feed's beginning),
//! for snapshotters and for tests. Nothing here changes anything.

mod views;

pub use views::{
    AccountView, AssetView, Counts, KeyView, OpenOrder, OpenOrderList, PendingHead, RecordView,
    SessionView, SymbolView,
};

use crate::book::{DepthLevel, Handle};
use crate::chains::order_at;
use crate::orders::{IS_ICEBERG, IS_WAITING};
use crate::pending::{ActiveOrder, Pending, Waiter};
use crate::pool::NONE;
use crate::{Balance, Core, FeeRates, RecordId, RecordLimits, UniqueKey};
use alloc::vec::Vec;
use touchline_protocol::message::command::Limits;
use touchline_protocol::message::enums::Side;
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::{
    AccountId, Amount, AssetId, KeyId, OrderId, OrderListId, Price, Qty, Sequence, SessionId,
    SymbolId,
};

impl Core {
    /// The behaviour version.
    #[must_use]
    pub const fn rules(&self) -> u32 {
        self.rules
    }

    /// Capacities and limits.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Capacities of records.
    #[must_use]
    pub const fn record_limits(&self) -> RecordLimits {
        self.record_limits
    }

    /// A record by id.
    #[must_use]
    pub fn record(&self, id: &RecordId) -> Option<RecordView> {
        self.records.find(id).map(|slot| {
            let record = self.records.get(slot);
            RecordView {
                kind: record.kind,
                version: record.version,
                owner: self.records.owner_id(slot),
                unique_key: self.records.unique_key(slot),
                length: record.carried(),
                owned: record.owned,
            }
        })
    }

    /// The bytes that a record carries.
    pub fn record_content(&self, id: &RecordId) -> Option<impl Iterator<Item = u8> + '_> {
        self.records.find(id).map(|slot| self.records.carried(slot))
    }

    /// The id of the record of a kind that has this unique key.
    #[must_use]
    pub fn find_record(&self, kind: u32, unique_key: &UniqueKey) -> Option<RecordId> {
        let slot = self.records.find_by_key(kind, unique_key)?;
        Some(self.records.get(slot).id)
    }

    /// Time of the last accepted command, ns since the epoch.
    #[must_use]
    pub const fn last_time_ns(&self) -> u64 {
        self.last_time_ns
    }

    /// The last sequence of the engine's own session: how much of the venue's definition is done.
    #[must_use]
    pub const fn engine_sequence(&self) -> Sequence {
        self.engine_sequence
    }

    /// How many orders, and how many stops among them, an account may have open on all symbols together; 0: any
    /// number.
    #[must_use]
    pub const fn venue_filters(&self) -> [u32; 2] {
        [self.max_orders, self.max_algo_orders]
    }

    /// How much of each capacity is in use.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        Counts {
            assets: self.assets.len(),
            symbols: self.symbols.len(),
            accounts: self.accounts.len(),
            keys: self.keys.len(),
            sessions: self.sessions.len(),
            open_orders: self.pools.orders(),
            price_levels: self.pools.levels(),
            pending_work: self.pending.len(),
            records: self.records.len(),
            record_blocks: self.records.blocks(),
        }
    }

    /// The pending work that the next `RunPending` continues. While there is some, that command is to be applied again
    /// and again, with sequence 0: other commands on the symbol are rejected until then
    /// ([`has_pending`](Self::has_pending)).
    #[must_use]
    pub fn pending_head(&self) -> Option<PendingHead> {
        self.pending.next().map(|pending| {
            let Waiter { session, epoch, correlation, sequence } = pending.waiter();
            PendingHead { symbol: pending.symbol(), session, epoch, correlation, sequence }
        })
    }

    /// True when a command on the symbol must wait for pending work: it would be rejected with
    /// [`LogUnavailable`](touchline_protocol::message::enums::RejectReason::LogUnavailable), and so would one that is
    /// about all symbols while any has some.
    #[must_use]
    pub fn has_pending(&self, id: SymbolId) -> bool {
        self.symbols
            .get(id)
            .is_some_and(|symbol| symbol.has_pending || self.pending.is_of_every_symbol())
    }

    /// A session by number.
    #[must_use]
    pub fn session(&self, id: SessionId) -> Option<SessionView> {
        self.sessions.get(id).map(|session| SessionView {
            name: session.name,
            key_id: session.key_id,
            role: session.role,
            lane: session.lane,
            epoch: session.epoch,
            last_sequence: session.last_sequence,
            connected: session.connected,
            cancel_on_disconnect: session.cancel_on_disconnect,
            account_events: session.account_events,
        })
    }

    /// A session's number, by its key (0 for admin and adapter) and name.
    #[must_use]
    pub fn find_session(&self, key_id: KeyId, name: &Name) -> Option<SessionId> {
        self.sessions.find(key_id, name)
    }

    /// An asset by number.
    #[must_use]
    pub fn asset(&self, id: AssetId) -> Option<AssetView> {
        self.assets.get(id).map(|asset| AssetView {
            name: asset.name,
            precision: asset.precision,
            held: Amount(asset.held),
        })
    }

    /// An asset's number by its name.
    #[must_use]
    pub fn find_asset(&self, name: &AssetName) -> Option<AssetId> {
        self.assets.find(name)
    }

    /// An account by number.
    #[must_use]
    pub fn account(&self, id: AccountId) -> Option<AccountView> {
        self.accounts.get(id).map(|account| AccountView {
            name: account.name,
            maker_rate: account.rates.maker,
            taker_rate: account.rates.taker,
            buyer_rate: account.rates.buyer,
            seller_rate: account.rates.seller,
            flags: account.flags,
            permissions: account.permissions,
            self_trade_prevention: account.self_trade_prevention,
            killed: account.is_killed,
        })
    }

    /// An account's number by its name.
    #[must_use]
    pub fn find_account(&self, name: &Name) -> Option<AccountId> {
        self.accounts.find(name)
    }

    /// What an account has of an asset; `None` when one of them does not exist.
    #[must_use]
    pub fn balance(&self, account: AccountId, asset: AssetId) -> Option<Balance> {
        self.accounts.get(account)?;
        self.assets.get(asset)?;
        Some(*self.accounts.balance(account, asset))
    }

    /// The commission rates of an account on a symbol: those set for the pair, or else for the symbol,
    /// or else for the account. `None` when one of them does not exist.
    #[must_use]
    pub fn fee_rates(&self, account: AccountId, symbol: SymbolId) -> Option<FeeRates> {
        self.accounts.get(account)?;
        let of_symbol = self.symbols.get(symbol)?.rates.as_ref();
        Some(*self.accounts.rates(account, symbol, of_symbol))
    }

    /// A key by number.
    #[must_use]
    pub fn key(&self, id: KeyId) -> Option<KeyView> {
        self.keys.get(id).map(|key| KeyView {
            account: key.account,
            permissions: key.permissions,
            revoked: key.revoked,
        })
    }

    /// A symbol by number.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<SymbolView> {
        self.symbols.get(id).map(|symbol| SymbolView {
            name: symbol.name,
            base: symbol.base,
            quote: symbol.quote,
            status: symbol.status,
            order_types: symbol.order_types,
            flags: symbol.flags,
            permissions: symbol.permissions,
            filters: symbol.filters,
            rates: symbol.rates,
            counters: symbol.counters,
        })
    }

    /// A symbol's number by its name.
    #[must_use]
    pub fn find_symbol(&self, name: &SymbolName) -> Option<SymbolId> {
        self.symbols.find(name)
    }

    /// The best price of a side.
    #[must_use]
    pub fn best(&self, symbol: SymbolId, side: Side) -> Option<Price> {
        self.symbols.books.get(symbol.0 as usize)?.best(side)
    }

    /// Levels of a side, best first; none for an unknown symbol.
    pub fn depth(&self, symbol: SymbolId, side: Side) -> impl Iterator<Item = DepthLevel> {
        let book = self.symbols.books.get(symbol.0 as usize);
        book.into_iter().flat_map(move |book| book.depth(&self.pools, side))
    }

    /// Open orders of a side in the order in which they would trade; none for an unknown symbol.
    pub fn open_orders(&self, symbol: SymbolId, side: Side) -> impl Iterator<Item = OpenOrder> {
        let book = self.symbols.books.get(symbol.0 as usize);
        book.into_iter()
            .flat_map(move |book| book.orders(&self.pools, side))
            .map(|order| self.view_order(order.handle))
    }

    /// Stops that wait for a trade at their stop price; none for an unknown symbol.
    pub fn waiting_orders(&self, symbol: SymbolId) -> impl Iterator<Item = OpenOrder> {
        let triggers = self.symbols.triggers.get(symbol.0 as usize);
        triggers
            .into_iter()
            .flat_map(|triggers| {
                let of = |side| triggers.orders(&self.pools, side);
                of(Side::Buy).chain(of(Side::Sell))
            })
            .map(|order| self.view_order(order.handle))
    }

    /// All open orders of an account, waiting stops included, oldest placement first; none for an unknown
    /// account.
    pub fn open_orders_of(&self, account: AccountId) -> impl Iterator<Item = OpenOrder> {
        let orders = &self.orders;
        let first = self.accounts.get(account).and_then(|_| orders.place_behind(account, NONE));
        core::iter::successors(first, move |&place| orders.place_behind(account, place))
            .filter_map(order_at)
            .map(|handle| self.view_order(handle))
    }

    /// Stops that were triggered and wait for their turn, in no order; none for an unknown symbol.
    #[must_use]
    pub fn triggered_orders(&self, symbol: SymbolId) -> Vec<OpenOrder> {
        let Some(symbol) = self.symbols.get(symbol) else { return Vec::new() };
        let fired = self.pools.fired(symbol.fired).into_iter();
        fired.map(|at| self.view_order(Handle(at))).collect()
    }

    /// Orders that are taking and go on as pending work: open, and in no book.
    pub fn taking_orders(&self) -> impl Iterator<Item = OpenOrder> {
        self.pending.iter().filter_map(|pending| match pending {
            Pending::Order(order) => Some(view_taking(order)),
            Pending::Triggered(_) | Pending::Sweep(_) => None,
        })
    }

    /// An open order by number.
    #[must_use]
    pub fn open_order(&self, symbol: SymbolId, id: OrderId) -> Option<OpenOrder> {
        self.orders.find(&self.pools, symbol, id).map(|handle| self.view_order(handle))
    }

    /// An open order by its owner's name for it.
    #[must_use]
    pub fn find_open_order(
        &self,
        account: AccountId,
        symbol: SymbolId,
        name: &ClientOrderId,
    ) -> Option<OpenOrder> {
        self.orders
            .find_by_client_order_id(&self.pools, account, symbol, name)
            .map(|handle| self.view_order(handle))
    }

    /// An open order list by number.
    #[must_use]
    pub fn open_order_list(&self, id: OrderListId) -> Option<OpenOrderList> {
        self.orders.lists.find(id).map(|slot| self.view_list(slot))
    }

    /// An open order list by its owner's name for it.
    #[must_use]
    pub fn find_open_order_list(
        &self,
        account: AccountId,
        symbol: SymbolId,
        name: &ClientOrderId,
    ) -> Option<OpenOrderList> {
        let lists = &self.orders.lists;
        lists.find_by_client_order_id(account, symbol, name).map(|slot| self.view_list(slot))
    }

    /// Open order lists of a side, in the order in which their limit legs would trade; none for an
    /// unknown symbol.
    pub fn open_order_lists(
        &self,
        symbol: SymbolId,
        side: Side,
    ) -> impl Iterator<Item = OpenOrderList> {
        let book = self.symbols.books.get(symbol.0 as usize);
        book.into_iter()
            .flat_map(move |book| book.orders(&self.pools, side))
            .filter_map(|order| self.orders.list_of(order.handle))
            .map(|slot| self.view_list(slot))
    }

    fn view_list(&self, slot: u32) -> OpenOrderList {
        let list = self.orders.lists.get(slot);
        OpenOrderList {
            order_list_id: list.id,
            account: list.account,
            symbol: list.symbol,
            stop_order_id: list.stop_order_id,
            limit_order_id: list.limit_order_id(),
            list_client_order_id: list.client_order_id,
        }
    }

    /// Number of an account's open orders on a symbol; 0 when one of them does not exist.
    #[must_use]
    pub fn open_order_count(&self, account: AccountId, symbol: SymbolId) -> u32 {
        if self.accounts.get(account).is_none() || self.symbols.get(symbol).is_none() {
            return 0;
        }
        self.orders.open_counts(account, symbol).all
    }

    /// Number of an account's open orders on all symbols, waiting stops included; 0 for an unknown account.
    #[must_use]
    pub fn open_orders_total(&self, account: AccountId) -> u32 {
        let [all, _] = self.accounts.get(account).map_or([0; 2], |_| self.orders.totals(account));
        all
    }

    pub(crate) fn view_order(&self, handle: Handle) -> OpenOrder {
        let order = self.orders.view(&self.pools, handle);
        let is_waiting = self.orders.record(handle).flags & IS_WAITING != 0;
        let record = self.orders.record(handle);
        OpenOrder {
            order_id: order.id,
            account: AccountId(order.owner),
            symbol: record.symbol,
            session: record.session,
            side: record.kind.side,
            order_type: record.kind.order_type,
            time_in_force: record.kind.time_in_force,
            price: Price(self.limit_price(&order)),
            stop_price: Price(if is_waiting { self.orders.details(handle).stop_price } else { 0 }),
            quantity: Qty(record.quantity),
            remaining: Qty(order.remaining.0 + self.orders.hidden(handle)),
            visible: if is_waiting { Qty::ZERO } else { order.remaining },
            iceberg: Qty(if record.flags & IS_ICEBERG == 0 {
                0
            } else {
                self.orders.details(handle).iceberg
            }),
            executed_quote: Amount(record.executed_quote),
            locked: Amount(self.orders.locked(&order)),
            priority: record.priority,
            self_trade_prevention: record.prevention,
            client_order_id: *self.orders.client_order_id(handle),
            order_list_id: self.orders.order_list_id(handle),
        }
    }
}

fn view_taking(order: &ActiveOrder) -> OpenOrder {
    OpenOrder {
        order_id: order.order_id,
        account: order.account,
        symbol: order.symbol,
        session: order.placed_by,
        side: order.kind.side,
        order_type: order.kind.order_type,
        time_in_force: order.kind.time_in_force,
        price: order.price,
        stop_price: Price::ZERO,
        quantity: Qty(order.quantity),
        remaining: Qty(order.remaining),
        visible: Qty::ZERO,
        iceberg: Qty(order.iceberg),
        executed_quote: Amount(order.executed_quote),
        locked: Amount(order.still_locked()),
        priority: order.priority,
        self_trade_prevention: order.prevention,
        client_order_id: order.client_order_id,
        order_list_id: order.order_list_id,
    }
}
