//! Writing: one section after the other, from what the venue holds.

use super::stream::Writer;
use crate::Core;
use crate::book::Handle;
use crate::chains::{number_of_kept, order_at};
use crate::fees::FeeRates;
use crate::orders::{HAS_LIST, HAS_OWN_LOCK, IS_ICEBERG, IS_PAIRED, IS_WAITING};
use crate::pending::{ActiveOrder, Pending, Sweep, Whose};
use crate::pool::{NONE, named};
use alloc::vec::Vec;
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::snapshot::records::{
    self, AccountRecord, AssetRecord, AverageRecord, BalanceRecord, KeyRecord, ListRecord,
    OrderDetailsRecord, OrderRecord, PairFeesRecord, PendingOrderRecord, PendingRecord,
    PendingSweepRecord, PlaceRecord, SessionRecord, SymbolRecord, VenueRecord,
};
use touchline_protocol::units::{AccountId, AssetId, SymbolId};

/// An order's flags are written as they are.
const _: () = {
    assert!(IS_ICEBERG == records::ORDER_ICEBERG && IS_WAITING == records::ORDER_WAITING);
    assert!(HAS_LIST == records::ORDER_OF_LIST && IS_PAIRED == records::ORDER_PAIRED);
    assert!(HAS_OWN_LOCK == records::ORDER_OWN_LOCK && NONE == records::NO_PLACE);
};

/// The numbers of places: of open orders by handle, and of kept ones.
#[derive(Default)]
pub(super) struct Places {
    orders: Vec<u32>,
    kept: Vec<u32>,
}

impl Places {
    fn at(&mut self, place: u32) -> &mut u32 {
        let (numbers, at) = match order_at(place) {
            Some(handle) => (&mut self.orders, handle.0 as usize),
            None => (&mut self.kept, number_of_kept(place)),
        };
        if numbers.len() <= at {
            numbers.resize(at + 1, records::NO_PLACE);
        }
        &mut numbers[at]
    }

    fn number_of_order(&self, handle: Handle) -> u32 {
        self.orders[handle.0 as usize]
    }

    fn number_of_kept(&self, place: u32) -> u32 {
        named(place).map_or(records::NO_PLACE, |place| self.kept[number_of_kept(place)])
    }
}

impl Core {
    pub(super) fn write_definitions<E>(&self, to: &mut Writer<'_, E>) -> Result<(), E> {
        to.begin(records::VENUE, 1)?;
        to.put(&VenueRecord {
            rules: self.rules,
            reserved: 0,
            limits: self.limits,
            max_orders: self.max_orders,
            max_algo_orders: self.max_algo_orders,
            last_time_ns: self.last_time_ns,
            engine_sequence: self.engine_sequence,
            next_order_list_id: self.orders.lists.next_id(),
        })?;
        to.end()?;
        to.begin(records::ASSETS, self.assets.len().into())?;
        for asset in &self.assets.list {
            let (name, held, precision) = (asset.name, asset.held, asset.precision);
            to.put(&AssetRecord { name, held, precision, reserved: [0; 7] })?;
        }
        to.end()?;
        self.write_symbols(to)?;
        self.write_accounts(to)?;
        to.begin(records::KEYS, self.keys.len().into())?;
        for key in &self.keys.list {
            to.put(&KeyRecord {
                account: key.account,
                permissions: key.permissions,
                revoked: key.revoked.into(),
                reserved: [0; 2],
            })?;
        }
        to.end()?;
        self.write_sessions(to)
    }

    fn write_symbols<E>(&self, to: &mut Writer<'_, E>) -> Result<(), E> {
        to.begin(records::SYMBOLS, self.symbols.len().into())?;
        for symbol in &self.symbols.list {
            let FeeRates { maker, taker, buyer, seller } = symbol.rates.unwrap_or_default();
            to.put(&SymbolRecord {
                name: symbol.name,
                base: symbol.base,
                quote: symbol.quote,
                last_order_id: symbol.counters.order.0,
                last_trade_id: symbol.counters.trade.0,
                last_aggregate_trade_id: symbol.counters.aggregate_trade.0,
                last_book_update_id: symbol.counters.book_update.0,
                last_price: symbol.last_price.0,
                status: symbol.status.to_wire(),
                order_types: symbol.order_types,
                flags: symbol.flags,
                permissions: symbol.permissions,
                state: if symbol.rates.is_some() { records::SYMBOL_HAS_RATES } else { 0 },
                maker_rate: maker,
                taker_rate: taker,
                buyer_rate: buyer,
                seller_rate: seller,
                filters: symbol.filters,
            })?;
        }
        to.end()?;
        let symbols = || (0..self.symbols.len()).map(SymbolId);
        let used = symbols().map(|symbol| self.symbols.averages.used(symbol).count() as u64);
        to.begin(records::AVERAGES, used.sum())?;
        for symbol in symbols() {
            for (minute, notional, quantity) in self.symbols.averages.used(symbol) {
                to.put(&AverageRecord {
                    symbol,
                    reserved: 0,
                    minute,
                    notional_low: notional as u64,
                    notional_high: (notional >> 64) as u64,
                    quantity_low: quantity as u64,
                    quantity_high: (quantity >> 64) as u64,
                })?;
            }
        }
        to.end()
    }

    fn write_accounts<E>(&self, to: &mut Writer<'_, E>) -> Result<(), E> {
        to.begin(records::ACCOUNTS, self.accounts.len().into())?;
        for account in &self.accounts.list {
            let [window_0, window_1] = account.windows;
            to.put(&AccountRecord {
                name: account.name,
                maker_rate: account.rates.maker,
                taker_rate: account.rates.taker,
                buyer_rate: account.rates.buyer,
                seller_rate: account.rates.seller,
                window_0: window_0.window,
                window_1: window_1.window,
                count_0: window_0.count,
                count_1: window_1.count,
                flags: account.flags,
                permissions: account.permissions,
                self_trade_prevention: account.self_trade_prevention.to_wire(),
                killed: account.is_killed.into(),
                reserved: 0,
            })?;
        }
        to.end()?;
        let fees = &self.accounts.pair_fees;
        to.begin(records::PAIR_FEES, fees.len().into())?;
        for (id, _) in
            (0..).zip(&self.accounts.list).filter(|(_, account)| account.paired_rates > 0)
        {
            let account = AccountId(id);
            for symbol in (0..self.symbols.len()).map(SymbolId) {
                let Some(&FeeRates { maker, taker, buyer, seller }) = fees.get(account, symbol)
                else {
                    continue;
                };
                to.put(&PairFeesRecord {
                    account,
                    symbol,
                    maker_rate: maker,
                    taker_rate: taker,
                    buyer_rate: buyer,
                    seller_rate: seller,
                })?;
            }
        }
        to.end()
    }

    fn write_sessions<E>(&self, to: &mut Writer<'_, E>) -> Result<(), E> {
        to.begin(records::SESSIONS, self.sessions.len().into())?;
        for session in &self.sessions.list {
            let flag = |holds: bool, bit: u8| if holds { bit } else { 0 };
            to.put(&SessionRecord {
                name: session.name,
                key_id: session.key_id,
                last_sequence: session.last_sequence,
                epoch: session.epoch,
                role: session.role.to_wire(),
                lane: session.lane.to_wire(),
                flags: flag(session.connected, records::SESSION_CONNECTED)
                    | flag(session.cancel_on_disconnect, records::SESSION_CANCELS)
                    | flag(session.is_swept_with_key, records::SESSION_SWEPT_WITH_KEY)
                    | flag(session.account_events, records::SESSION_ACCOUNT_EVENTS),
                reserved: 0,
            })?;
        }
        to.end()
    }

    /// The places among the orders of each account; gives their numbers.
    pub(super) fn write_places<E>(&self, to: &mut Writer<'_, E>) -> Result<Places, E> {
        let orders = &self.orders;
        to.begin(records::PLACES, orders.places(&self.pools).into())?;
        let (mut numbers, mut next) = (Places::default(), 0);
        for account in (0..self.accounts.len()).map(AccountId) {
            let mut at = NONE;
            while let Some(place) = orders.place_behind(account, at) {
                let placed = orders.placed_at(place);
                to.put(&PlaceRecord { placed, account, reserved: 0 })?;
                *numbers.at(place) = next;
                next += 1;
                at = place;
            }
        }
        to.end()?;
        Ok(numbers)
    }

    pub(super) fn write_orders<E>(&self, to: &mut Writer<'_, E>, places: &Places) -> Result<(), E> {
        for (section, books) in
            [(records::BOOKS, &self.symbols.books), (records::WAITING, &self.symbols.triggers)]
        {
            let levels = books.iter().flat_map(|book| {
                [Side::Buy, Side::Sell].into_iter().flat_map(|side| book.depth(&self.pools, side))
            });
            to.begin(section, levels.map(|level| u64::from(level.orders)).sum())?;
            for book in books {
                for side in [Side::Buy, Side::Sell] {
                    for order in book.orders(&self.pools, side) {
                        self.write_order(to, order.handle, places)?;
                    }
                }
            }
            to.end()?;
        }
        let reached = |symbol: &crate::symbols::Symbol| self.pools.fired(symbol.fired);
        let count = self.symbols.list.iter().map(|symbol| reached(symbol).len() as u64).sum();
        to.begin(records::REACHED, count)?;
        for symbol in &self.symbols.list {
            let mut orders = reached(symbol);
            orders.sort_unstable_by_key(|&at| {
                (self.orders.details(Handle(at)).fired_by, self.pools.id(at))
            });
            for at in orders {
                self.write_order(to, Handle(at), places)?;
            }
        }
        to.end()?;
        self.write_lists(to)
    }

    fn write_order<E>(
        &self,
        to: &mut Writer<'_, E>,
        handle: Handle,
        places: &Places,
    ) -> Result<(), E> {
        let view = self.orders.view(&self.pools, handle);
        let record = self.orders.record(handle);
        let is_waiting = record.flags & IS_WAITING != 0;
        let stop_price = self.orders.details(handle).stop_price;
        to.put(&OrderRecord {
            order_id: view.id,
            price: if is_waiting { stop_price } else { view.price.0 },
            remaining: view.remaining.0,
            quantity: record.quantity,
            executed_quote: record.executed_quote,
            priority: record.priority,
            account: AccountId(view.owner),
            symbol: record.symbol,
            session: record.session,
            place: places.number_of_order(handle),
            side: record.kind.side.to_wire(),
            order_type: record.kind.order_type.to_wire(),
            time_in_force: record.kind.time_in_force.to_wire(),
            flags: record.flags,
            self_trade_prevention: record.prevention.map_or(0, SelfTradePrevention::to_wire),
            reserved: [0; 3],
            client_order_id: *self.orders.client_order_id(handle),
        })?;
        if record.flags == 0 {
            return Ok(());
        }
        let details = self.orders.details(handle);
        to.put(&OrderDetailsRecord {
            iceberg: details.iceberg,
            hidden: details.hidden,
            limit_price: details.limit_price,
            fired_by: details.fired_by,
            order_list_id: self.orders.order_list_id(handle),
            own_lock: if record.flags & HAS_OWN_LOCK == 0 { 0 } else { details.own_lock },
        })
    }

    fn write_lists<E>(&self, to: &mut Writer<'_, E>) -> Result<(), E> {
        let lists = &self.orders.lists;
        to.begin(records::LISTS, lists.len().into())?;
        for book in &self.symbols.books {
            for side in [Side::Buy, Side::Sell] {
                let orders = book.orders(&self.pools, side);
                for slot in orders.filter_map(|order| self.orders.list_of(order.handle)) {
                    let list = lists.get(slot);
                    to.put(&ListRecord {
                        order_list_id: list.id,
                        stop_order_id: list.stop_order_id,
                        account: list.account,
                        symbol: list.symbol,
                        list_client_order_id: list.client_order_id,
                    })?;
                }
            }
        }
        to.end()
    }

    pub(super) fn write_pending<E>(
        &self,
        to: &mut Writer<'_, E>,
        places: &Places,
    ) -> Result<(), E> {
        to.begin(records::PENDING, self.pending.len().into())?;
        for pending in self.pending.iter() {
            let symbol = pending.symbol();
            match pending {
                Pending::Order(active) => {
                    to.put(&PendingRecord { kind: records::PENDING_ORDER, symbol })?;
                    to.put(&pending_order(active, places))?;
                }
                Pending::Triggered(_) => {
                    to.put(&PendingRecord { kind: records::PENDING_REACHED, symbol })?;
                }
                Pending::Sweep(sweep) => {
                    to.put(&PendingRecord { kind: records::PENDING_SWEEP, symbol })?;
                    to.put(&pending_sweep(sweep, places))?;
                }
            }
        }
        to.end()
    }

    pub(super) fn write_balances<E>(&self, to: &mut Writer<'_, E>) -> Result<(), E> {
        let all = || {
            let accounts = (0..self.accounts.len()).map(AccountId);
            accounts
                .flat_map(|account| (0..self.assets.len()).map(move |id| (account, AssetId(id))))
                .map(|(account, asset)| (account, asset, *self.accounts.balance(account, asset)))
                .filter(|(_, _, balance)| !balance.free.is_zero() || !balance.locked.is_zero())
        };
        to.begin(records::BALANCES, all().count() as u64)?;
        for (account, asset, balance) in all() {
            let (free, locked) = (balance.free.0, balance.locked.0);
            to.put(&BalanceRecord { account, asset, free, locked })?;
        }
        to.end()
    }
}

fn pending_order(active: &ActiveOrder, places: &Places) -> PendingOrderRecord {
    let flag = |holds: bool, bit: u8| if holds { bit } else { 0 };
    PendingOrderRecord {
        order_id: active.order_id,
        price: active.price.0,
        quantity: active.quantity,
        remaining: active.remaining,
        executed_quote: active.executed_quote,
        locked: active.locked,
        iceberg: active.iceberg,
        order_list_id: active.order_list_id,
        prevented: active.prevented,
        priority: active.priority,
        placed: active.placed,
        last_fill_price: active.last_fill_price.0,
        last_fill_time_ns: active.last_fill_time_ns,
        correlation: active.correlation,
        sequence: active.sequence,
        account: active.account,
        place: places.number_of_kept(active.place),
        order_count_0: active.order_counts[0],
        order_count_1: active.order_counts[1],
        placed_by: active.placed_by,
        session: active.session,
        epoch: active.epoch,
        side: active.kind.side.to_wire(),
        order_type: active.kind.order_type.to_wire(),
        time_in_force: active.kind.time_in_force.to_wire(),
        flags: flag(active.ran_dry, records::PENDING_RAN_DRY)
            | flag(active.has_own_lock, records::PENDING_OWN_LOCK),
        self_trade_prevention: active.prevention.map_or(0, SelfTradePrevention::to_wire),
        prevention_now: active.prevention_now.to_wire(),
        reserved: [0; 6],
        client_order_id: active.client_order_id,
    }
}

fn pending_sweep(sweep: &Sweep, places: &Places) -> PendingSweepRecord {
    let (whose, detail) = match sweep.whose {
        Whose::Everybody => (records::SWEEP_EVERYBODY, 0),
        Whose::Account(_) => (records::SWEEP_ACCOUNT, 0),
        Whose::Session(_, session) => (records::SWEEP_SESSION, session.0.into()),
        Whose::Key(_, key) => (records::SWEEP_KEY, key.0),
        Whose::Killed(_) => (records::SWEEP_KILLED, 0),
    };
    PendingSweepRecord {
        detail,
        position: sweep.position,
        orders: sweep.orders,
        lists: sweep.lists,
        correlation: sweep.waiter.correlation,
        sequence: sweep.waiter.sequence,
        session: sweep.waiter.session,
        epoch: sweep.waiter.epoch,
        whose,
        account: sweep.whose.account(),
        place: places.number_of_kept(sweep.place),
        reserved: 0,
    }
}
