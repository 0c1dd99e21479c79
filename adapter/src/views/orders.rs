//! Orders as the spot contract shows them: every open one, and the closed ones of late. Fed by the
//! fold, read for GET /order and for the fills that a reply ring lost.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use rustc_hash::FxHashMap;
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId, TradeId};

use super::error::FoldError;
use crate::history::rows::OrderRow;

/// What an order got as the aggressor from one resting order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// The trade's number.
    pub trade_id: TradeId,
    /// 10⁻⁸ of the quote asset per base unit.
    pub price: i64,
    /// Base quantity, 10⁻⁸.
    pub quantity: i64,
    /// Taken from what the aggressor received, 10⁻⁸.
    pub commission: i64,
}

/// One order with all that GET /order answers (spot contract §2 Order). Money is in 10⁻⁸.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The symbol.
    pub symbol: SymbolId,
    /// Its number on the symbol.
    pub order_id: OrderId,
    /// The list it belongs to.
    pub order_list_id: OrderListId,
    /// The owner.
    pub account: AccountId,
    /// The owner's name for it; empty for none.
    pub client_order_id: ClientOrderId,
    /// Limit price; 0 for MARKET.
    pub price: i64,
    /// Base quantity.
    pub quantity: i64,
    /// Base executed.
    pub executed: i64,
    /// Quote executed.
    pub executed_quote: i64,
    /// Where it stands.
    pub status: OrderStatus,
    /// Time in force; MARKET orders count as GTC (facts §3).
    pub time_in_force: TimeInForce,
    /// Order type.
    pub order_type: OrderType,
    /// Side.
    pub side: Side,
    /// Trigger price, also of a stop that was triggered; 0 for none.
    pub stop_price: i64,
    /// Visible quantity of an iceberg; 0 for none.
    pub iceberg_quantity: i64,
    /// Quote quantity that a MARKET order was placed by; 0 for none.
    pub quote_quantity: i64,
    /// When it was accepted, ms since the epoch.
    pub time_ms: u64,
    /// When it last changed, ms since the epoch.
    pub update_ms: u64,
    /// It is, or was, live on the book (facts §3 isWorking).
    pub working: bool,
    /// It stands in the book.
    pub resting: bool,
    /// Base quantity that the book shows of it; 0 while it does not rest, and between the fill that
    /// used up what an iceberg showed and its next slice.
    pub visible: i64,
    /// Its first trade; 0 for none.
    pub first_trade: TradeId,
    /// Its last trade; 0 for none.
    pub last_trade: TradeId,
    /// What it took as the aggressor, in order of execution.
    pub fills: Vec<Fill>,
}

impl Order {
    /// Base quantity that is still to be executed, 10⁻⁸.
    #[must_use]
    pub const fn remaining(&self) -> i64 {
        self.quantity - self.executed
    }

    /// Base quantity that it shows when it comes to rest, 10⁻⁸.
    #[must_use]
    pub fn shown(&self) -> i64 {
        match self.iceberg_quantity {
            0 => self.remaining(),
            slice => slice.min(self.remaining()),
        }
    }

    /// What the history keeps of it: all but its fills.
    #[must_use]
    pub(crate) fn row(&self) -> OrderRow {
        OrderRow {
            order_list: self.order_list_id.0,
            price: self.price,
            quantity: self.quantity,
            executed: self.executed,
            executed_quote: self.executed_quote,
            stop_price: self.stop_price,
            iceberg_quantity: self.iceberg_quantity,
            quote_quantity: self.quote_quantity,
            visible: self.visible,
            time_ms: self.time_ms,
            update_ms: self.update_ms,
            first_trade: self.first_trade.0,
            last_trade: self.last_trade.0,
            client_order_id: self.client_order_id,
            account: self.account.0,
            symbol: self.symbol.0,
            status: self.status.to_wire(),
            time_in_force: self.time_in_force.to_wire(),
            order_type: self.order_type.to_wire(),
            side: self.side.to_wire(),
            working: u8::from(self.working),
            resting: u8::from(self.resting),
            reserved: [0; 2],
        }
    }

    /// The order that a row was made of; `None` for a row that no order has made.
    #[must_use]
    pub(crate) fn of_row(id: u64, row: &OrderRow) -> Option<Self> {
        Some(Self {
            symbol: SymbolId(row.symbol),
            order_id: OrderId(id),
            order_list_id: OrderListId(row.order_list),
            account: AccountId(row.account),
            client_order_id: row.client_order_id,
            price: row.price,
            quantity: row.quantity,
            executed: row.executed,
            executed_quote: row.executed_quote,
            status: OrderStatus::from_wire(row.status)?,
            time_in_force: TimeInForce::from_wire(row.time_in_force)?,
            order_type: OrderType::from_wire(row.order_type)?,
            side: Side::from_wire(row.side)?,
            stop_price: row.stop_price,
            iceberg_quantity: row.iceberg_quantity,
            quote_quantity: row.quote_quantity,
            time_ms: row.time_ms,
            update_ms: row.update_ms,
            working: row.working != 0,
            resting: row.resting != 0,
            visible: row.visible,
            first_trade: TradeId(row.first_trade),
            last_trade: TradeId(row.last_trade),
            fills: Vec::new(),
        })
    }
}

type Key = (SymbolId, OrderId);

/// All open orders and a bounded number of closed ones.
#[derive(Debug, Clone)]
pub struct Orders {
    /// By numbers that the venue gives out: nobody can aim them at a hash.
    orders: FxHashMap<Key, Order>,
    latest: HashMap<(AccountId, SymbolId, ClientOrderId), OrderId>,
    /// Open ones; an account without any has no entry.
    by_account: FxHashMap<AccountId, BTreeSet<Key>>,
    /// Oldest first.
    closed: VecDeque<Key>,
    closed_max: usize,
    /// What has changed since it was last asked for, and whether it was there then.
    changed: FxHashMap<Key, bool>,
}

impl Orders {
    /// None yet; `closed_max` closed ones are remembered, the oldest is forgotten first.
    #[must_use]
    pub fn new(closed_max: usize) -> Self {
        Self {
            orders: FxHashMap::default(),
            latest: HashMap::new(),
            by_account: FxHashMap::default(),
            closed: VecDeque::new(),
            closed_max,
            changed: FxHashMap::default(),
        }
    }

    /// The order with this number, open or closed of late.
    #[must_use]
    pub fn get(&self, symbol: SymbolId, order: OrderId) -> Option<&Order> {
        self.orders.get(&(symbol, order))
    }

    /// The account's last order on the symbol under this client order id, open or closed of late.
    #[must_use]
    pub fn latest(
        &self,
        account: AccountId,
        symbol: SymbolId,
        client_order_id: ClientOrderId,
    ) -> Option<&Order> {
        let order = self.latest.get(&(account, symbol, client_order_id))?;
        self.get(symbol, *order)
    }

    /// Every open order, in no order.
    pub fn open(&self) -> impl Iterator<Item = &Order> {
        self.orders.values().filter(|order| order.status.is_open())
    }

    /// The account's open orders, by symbol and number.
    pub fn open_of(&self, account: AccountId) -> impl Iterator<Item = &Order> {
        let keys = self.by_account.get(&account).into_iter().flatten();
        keys.filter_map(|key| self.orders.get(key))
    }

    /// The account's open orders on one symbol, by number.
    pub fn open_on(&self, account: AccountId, symbol: SymbolId) -> impl Iterator<Item = &Order> {
        let all = (symbol, OrderId(0))..=(symbol, OrderId(u64::MAX));
        let keys =
            self.by_account.get(&account).into_iter().flat_map(move |keys| keys.range(all.clone()));
        keys.filter_map(|key| self.orders.get(key))
    }

    /// Number of orders held, open and closed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    /// True without any order.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    pub(super) fn accept(&mut self, order: Order) -> Result<(), FoldError> {
        let key = (order.symbol, order.order_id);
        if self.orders.contains_key(&key) {
            return Err(FoldError::AcceptedTwice { symbol: key.0, order: key.1 });
        }
        if !order.client_order_id.is_empty() {
            let name = (order.account, order.symbol, order.client_order_id);
            self.latest.insert(name, order.order_id);
        }
        self.by_account.entry(order.account).or_default().insert(key);
        self.orders.insert(key, order);
        self.changed.insert(key, false);
        Ok(())
    }

    /// Takes back an open order that was saved.
    pub(super) fn restore(&mut self, order: Order) -> Result<(), FoldError> {
        let key = (order.symbol, order.order_id);
        self.accept(order)?;
        self.changed.remove(&key);
        Ok(())
    }

    /// What has changed since the last call: open orders as they are now, or nothing for one that was
    /// there then and is open no more.
    pub(super) fn take_changed(&mut self) -> impl Iterator<Item = (Key, Option<&Order>)> {
        let orders = &self.orders;
        std::mem::take(&mut self.changed).into_iter().filter_map(|(key, was_there)| {
            let open = orders.get(&key).filter(|order| order.status.is_open());
            (was_there || open.is_some()).then_some((key, open))
        })
    }

    pub(super) fn open_mut(
        &mut self,
        symbol: SymbolId,
        order: OrderId,
    ) -> Result<&mut Order, FoldError> {
        let key = (symbol, order);
        let open = self
            .orders
            .get_mut(&key)
            .filter(|order| order.status.is_open())
            .ok_or(FoldError::NotOpen { symbol, order })?;
        self.changed.entry(key).or_insert(true);
        Ok(open)
    }

    /// Notes that the order has ended, and forgets the oldest beyond the bound. Gives what is kept of
    /// it.
    pub(super) fn close(&mut self, symbol: SymbolId, order: OrderId) -> Option<OrderRow> {
        let key = (symbol, order);
        let ended = self.orders.get(&key).map(Order::row);
        let owner = self.orders.get(&key).map(|order| order.account);
        if let Some(Entry::Occupied(mut keys)) = owner.map(|owner| self.by_account.entry(owner)) {
            keys.get_mut().remove(&key);
            if keys.get().is_empty() {
                keys.remove();
            }
        }
        self.closed.push_back(key);
        while self.closed.len() > self.closed_max {
            let Some(oldest) = self.closed.pop_front() else { break };
            let Some(order) = self.orders.remove(&oldest) else { continue };
            let name = (order.account, order.symbol, order.client_order_id);
            if self.latest.get(&name) == Some(&order.order_id) {
                self.latest.remove(&name);
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOL: SymbolId = SymbolId(3);

    fn order(id: u64, name: &str) -> Order {
        Order {
            symbol: SYMBOL,
            order_id: OrderId(id),
            order_list_id: OrderListId::NONE,
            account: AccountId(1),
            client_order_id: ClientOrderId::new(name).unwrap(),
            price: 5,
            quantity: 7,
            executed: 2,
            executed_quote: 0,
            status: OrderStatus::New,
            time_in_force: TimeInForce::Gtc,
            order_type: OrderType::Limit,
            side: Side::Buy,
            stop_price: 0,
            iceberg_quantity: 0,
            quote_quantity: 0,
            time_ms: 1,
            update_ms: 1,
            working: true,
            resting: true,
            visible: 5,
            first_trade: TradeId(0),
            last_trade: TradeId(0),
            fills: Vec::new(),
        }
    }

    #[test]
    fn the_latest_order_of_a_client_id_is_found_until_it_is_forgotten() {
        let mut orders = Orders::new(1);
        let latest = |orders: &Orders, name: &str| {
            orders
                .latest(AccountId(1), SYMBOL, ClientOrderId::new(name).unwrap())
                .map(|order| order.order_id.0)
        };
        orders.accept(order(1, "a")).unwrap();
        orders.open_mut(SYMBOL, OrderId(1)).unwrap().status = OrderStatus::Filled;
        orders.close(SYMBOL, OrderId(1));
        assert_eq!(latest(&orders, "a"), Some(1));
        orders.accept(order(2, "a")).unwrap();
        assert_eq!(latest(&orders, "a"), Some(2));
        orders.accept(order(3, "")).unwrap();
        orders.open_mut(SYMBOL, OrderId(3)).unwrap().status = OrderStatus::Canceled;
        orders.close(SYMBOL, OrderId(3));
        assert_eq!(orders.get(SYMBOL, OrderId(1)), None, "forgotten: one closed order is kept");
        assert_eq!(latest(&orders, "a"), Some(2), "the name belongs to the newer order");
        assert_eq!(latest(&orders, ""), None);
        assert_eq!(orders.len(), 2);
    }

    #[test]
    fn an_account_is_shown_its_open_orders_and_nothing_else() {
        let mut orders = Orders::new(10);
        let other = SymbolId(2);
        for (id, symbol, account) in [(2, SYMBOL, 1), (1, SYMBOL, 1), (1, other, 1), (3, SYMBOL, 2)]
        {
            let account = AccountId(account);
            orders.accept(Order { symbol, account, ..order(id, "") }).unwrap();
        }
        let keys = |orders: &Orders| -> Vec<_> {
            orders.open_of(AccountId(1)).map(|order| (order.symbol.0, order.order_id.0)).collect()
        };
        assert_eq!(keys(&orders), [(2, 1), (3, 1), (3, 2)]);
        let on: Vec<_> =
            orders.open_on(AccountId(1), SYMBOL).map(|order| order.order_id.0).collect();
        assert_eq!(on, [1, 2]);
        assert_eq!(orders.open_on(AccountId(9), SYMBOL).count(), 0);
        orders.close(SYMBOL, OrderId(1));
        assert_eq!(keys(&orders), [(2, 1), (3, 2)]);
        orders.close(SYMBOL, OrderId(3));
        assert_eq!(orders.by_account.len(), 1, "who has nothing open takes no room");
    }

    #[test]
    fn an_iceberg_shows_no_more_than_is_open() {
        let shown = |iceberg_quantity| Order { iceberg_quantity, ..order(1, "a") }.shown();
        assert_eq!([shown(0), shown(1), shown(5), shown(6)], [5, 1, 5, 5]);
    }

    #[test]
    fn closed_and_unknown_orders_do_not_change_and_numbers_are_used_once() {
        let mut orders = Orders::new(10);
        orders.accept(order(1, "a")).unwrap();
        assert_eq!(
            orders.accept(order(1, "b")),
            Err(FoldError::AcceptedTwice { symbol: SYMBOL, order: OrderId(1) })
        );
        orders.open_mut(SYMBOL, OrderId(1)).unwrap().status = OrderStatus::Expired;
        let not_open = |id| FoldError::NotOpen { symbol: SYMBOL, order: OrderId(id) };
        assert_eq!(orders.open_mut(SYMBOL, OrderId(1)), Err(not_open(1)));
        assert_eq!(orders.open_mut(SYMBOL, OrderId(9)), Err(not_open(9)));
    }
}
