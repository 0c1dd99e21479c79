//! Open orders as the spot contract shows them; what has ended stands in the history. Fed by the fold,
//! read for GET /order and GET /openOrders.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId, TradeId};

use super::error::{FoldError, not_negative};
use crate::halving::first_of;
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

    /// What the history keeps of it.
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
        })
    }
}

type Key = (SymbolId, OrderId);

#[cfg(test)]
thread_local! {
    /// Looks at an open order by its number, of this thread.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// An open order, and what the store knows of it.
#[derive(Debug, Clone)]
struct Open {
    order: Order,
    /// The store has it, as it is or as it was.
    is_saved: bool,
    /// Its key is among those that have changed.
    is_changed: bool,
}

/// All open orders.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    /// By numbers that the venue gives out: nobody can aim them at a hash.
    orders: FxHashMap<Key, Open>,
    /// By names, of which the venue allows each once among an account's open orders on a symbol.
    named: HashMap<(AccountId, SymbolId, ClientOrderId), OrderId>,
    /// An account without any has no entry.
    by_account: FxHashMap<AccountId, BTreeSet<Key>>,
    /// Orders that have come or changed since they were last asked for; some may have ended.
    changed: Vec<Key>,
    /// Orders that the store has and that have ended since then.
    ended: Vec<Key>,
}

impl Orders {
    /// The open order with this number.
    #[must_use]
    pub fn get(&self, symbol: SymbolId, order: OrderId) -> Option<&Order> {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        self.orders.get(&(symbol, order)).map(|open| &open.order)
    }

    /// The account's open order on the symbol under this client order id.
    #[must_use]
    pub fn named(
        &self,
        account: AccountId,
        symbol: SymbolId,
        client_order_id: ClientOrderId,
    ) -> Option<&Order> {
        let order = self.named.get(&(account, symbol, client_order_id))?;
        self.get(symbol, *order)
    }

    /// Every open order, in no order.
    pub fn open(&self) -> impl Iterator<Item = &Order> {
        self.orders.values().map(|open| &open.order)
    }

    /// The account's open orders, by symbol and number.
    pub fn open_of(&self, account: AccountId) -> impl DoubleEndedIterator<Item = &Order> {
        self.within(account, (SymbolId(0), OrderId(0))..=(SymbolId(u32::MAX), OrderId(u64::MAX)))
    }

    /// The account's open orders on one symbol whose numbers are in `ids`, by number.
    pub fn open_on(
        &self,
        account: AccountId,
        symbol: SymbolId,
        ids: RangeInclusive<u64>,
    ) -> impl DoubleEndedIterator<Item = &Order> {
        let keys = (symbol, OrderId(*ids.start()))..=(symbol, OrderId(*ids.end()));
        self.within(account, keys)
    }

    fn within(
        &self,
        account: AccountId,
        keys: RangeInclusive<Key>,
    ) -> impl DoubleEndedIterator<Item = &Order> {
        let own = self.by_account.get(&account);
        let keys = own.into_iter().flat_map(move |own| own.range(keys.clone()));
        keys.filter_map(|key| self.get(key.0, key.1))
    }

    /// The number of the first of the account's open orders on a symbol that was placed at a moment or behind it: they
    /// count up with time.
    #[must_use]
    pub fn first_since(&self, account: AccountId, symbol: SymbolId, time_ms: u64) -> Option<u64> {
        let number = |order: &Order| (order.order_id.0, order.time_ms < time_ms);
        first_of(|ids| self.open_on(account, symbol, ids).map(number))
    }

    pub(super) fn accept(&mut self, order: Order) -> Result<(), FoldError> {
        let key = (order.symbol, order.order_id);
        self.insert(Open { order, is_saved: false, is_changed: true })?;
        self.changed.push(key);
        Ok(())
    }

    /// Takes back an open order that was saved, if its values are such as the fold leaves: it adds to them and takes
    /// from them as it finds them.
    pub(super) fn restore(&mut self, order: Order) -> Result<(), FoldError> {
        let Order { symbol, order_id, visible, .. } = order;
        not_negative(&[order.price, order.quantity, order.executed, order.executed_quote])?;
        not_negative(&[order.iceberg_quantity, visible, order.remaining()])?;
        not_negative(&[order.remaining() - visible])?;
        let found = match (order.working, order.resting) {
            _ if !order.status.is_open() => "has ended",
            (false, true) => "rests in the book and waits for its trigger",
            (_, false) if visible != 0 => "is shown and does not rest in the book",
            _ => return self.insert(Open { order, is_saved: true, is_changed: false }),
        };
        Err(FoldError::Standing { event: "a saved row", symbol, order: order_id, found })
    }

    fn insert(&mut self, open: Open) -> Result<(), FoldError> {
        let Order { symbol, order_id, account, client_order_id, .. } = open.order;
        let key = (symbol, order_id);
        match self.orders.entry(key) {
            Entry::Occupied(_) => {
                return Err(FoldError::AcceptedTwice { symbol, order: order_id });
            }
            Entry::Vacant(place) => place.insert(open),
        };
        if !client_order_id.is_empty() {
            self.named.insert((account, symbol, client_order_id), order_id);
        }
        self.by_account.entry(account).or_default().insert(key);
        Ok(())
    }

    /// What has changed since the last call: open orders as they are now, or nothing for one that was
    /// there then and is open no more.
    pub(super) fn take_changed(&mut self) -> impl Iterator<Item = (Key, Option<OrderRow>)> {
        // Drained, since lists that grow anew with each batch are zeroed anew by the system.
        let ended = self.ended.drain(..).map(|key| (key, None));
        let orders = &mut self.orders;
        let changed = self.changed.drain(..).filter_map(|key| {
            let open = orders.get_mut(&key)?;
            (open.is_saved, open.is_changed) = (true, false);
            Some((key, Some(open.order.row())))
        });
        ended.chain(changed)
    }

    pub(super) fn open_mut(
        &mut self,
        symbol: SymbolId,
        order: OrderId,
    ) -> Result<&mut Order, FoldError> {
        let key = (symbol, order);
        let open = self.orders.get_mut(&key).ok_or(FoldError::NotOpen { symbol, order })?;
        if !std::mem::replace(&mut open.is_changed, true) {
            self.changed.push(key);
        }
        Ok(&mut open.order)
    }

    /// The order has ended: forgets it, and gives what the history keeps of it.
    pub(super) fn close(&mut self, symbol: SymbolId, order: OrderId) -> Option<OrderRow> {
        let key = (symbol, order);
        let Open { order, is_saved, .. } = self.orders.remove(&key)?;
        if is_saved {
            self.ended.push(key);
        }
        if let Entry::Occupied(mut keys) = self.by_account.entry(order.account) {
            keys.get_mut().remove(&key);
            if keys.get().is_empty() {
                keys.remove();
            }
        }
        let name = (order.account, symbol, order.client_order_id);
        if let Entry::Occupied(named) = self.named.entry(name)
            && *named.get() == order.order_id
        {
            named.remove();
        }
        Some(order.row())
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
        }
    }

    #[test]
    fn a_name_leads_to_the_order_that_is_open_under_it() {
        let mut orders = Orders::default();
        let named = |orders: &Orders, name: &str| {
            orders
                .named(AccountId(1), SYMBOL, ClientOrderId::new(name).unwrap())
                .map(|order| order.order_id.0)
        };
        orders.accept(order(1, "a")).unwrap();
        assert_eq!(named(&orders, "a"), Some(1));
        orders.close(SYMBOL, OrderId(1));
        assert_eq!(named(&orders, "a"), None);
        orders.accept(order(2, "a")).unwrap();
        orders.accept(order(3, "")).unwrap();
        assert_eq!((named(&orders, "a"), named(&orders, "")), (Some(2), None));
        for id in [2, 3] {
            orders.close(SYMBOL, OrderId(id));
        }
        assert!(
            orders.orders.is_empty() && orders.named.is_empty(),
            "what has ended takes no room"
        );
    }

    #[test]
    fn what_has_changed_is_told_once_and_what_came_and_went_in_between_not_at_all() {
        let mut orders = Orders::default();
        let told = |orders: &mut Orders| -> Vec<_> {
            let mut told: Vec<_> = orders
                .take_changed()
                .map(|((_, id), row)| (id.0, row.map(|row| row.executed)))
                .collect();
            told.sort_unstable();
            told
        };
        for id in [1, 2, 3] {
            orders.accept(order(id, "")).unwrap();
        }
        orders.restore(order(4, "")).unwrap();
        orders.close(SYMBOL, OrderId(2));
        assert_eq!(told(&mut orders), [(1, Some(2)), (3, Some(2))]);
        assert_eq!(told(&mut orders), []);
        for _ in 0..2 {
            orders.open_mut(SYMBOL, OrderId(3)).unwrap().executed += 1;
        }
        orders.open_mut(SYMBOL, OrderId(1)).unwrap();
        orders.close(SYMBOL, OrderId(1));
        orders.close(SYMBOL, OrderId(4));
        assert_eq!(told(&mut orders), [(1, None), (3, Some(4)), (4, None)]);
        assert_eq!(told(&mut orders), []);
    }

    #[test]
    fn what_was_saved_of_an_open_order_goes_together() {
        type Wrong = fn(&mut Order);
        let negative: [(Wrong, i64); 9] = [
            (|order| order.price = -1, -1),
            (|order| order.quantity = -2, -2),
            (|order| order.executed = -3, -3),
            (|order| order.executed_quote = -4, -4),
            (|order| order.iceberg_quantity = -5, -5),
            (|order| order.visible = -6, -6),
            (|order| order.executed = 14, -7),
            (|order| order.visible = 6, -1),
            (|order| order.quantity = i64::MIN, i64::MIN),
        ];
        for (wrong, value) in negative {
            let mut saved = order(1, "a");
            wrong(&mut saved);
            let mut orders = Orders::default();
            assert_eq!(orders.restore(saved), Err(FoldError::Negative(value)));
            assert!(orders.orders.is_empty());
        }
        let elsewhere: [(Wrong, &str); 2] = [
            (|order| order.working = false, "waits for its trigger"),
            (|order| order.resting = false, "does not rest"),
        ];
        for (wrong, part) in elsewhere {
            let mut saved = order(1, "a");
            wrong(&mut saved);
            let error = Orders::default().restore(saved).unwrap_err().to_string();
            assert!(error.contains("a saved row about order 1") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_row_tells_all_of_an_order() {
        let whole = Order {
            order_list_id: OrderListId(9),
            stop_price: 11,
            iceberg_quantity: 12,
            quote_quantity: 13,
            update_ms: 14,
            executed_quote: 15,
            status: OrderStatus::PartiallyFilled,
            time_in_force: TimeInForce::Ioc,
            order_type: OrderType::StopLossLimit,
            side: Side::Sell,
            working: false,
            first_trade: TradeId(16),
            last_trade: TradeId(17),
            ..order(1, "a")
        };
        for order in [whole, order(2, "b")] {
            assert_eq!(Order::of_row(order.order_id.0, &order.row()), Some(order));
        }
    }

    #[test]
    fn an_account_is_shown_its_open_orders_and_nothing_else() {
        let mut orders = Orders::default();
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
        let on: Vec<_> = orders
            .open_on(AccountId(1), SYMBOL, 0..=u64::MAX)
            .map(|order| order.order_id.0)
            .collect();
        assert_eq!(on, [1, 2]);
        assert_eq!(orders.open_on(AccountId(9), SYMBOL, 0..=u64::MAX).count(), 0);
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
    fn closed_and_unknown_orders_do_not_change_and_a_number_is_open_once() {
        let mut orders = Orders::default();
        orders.accept(order(1, "a")).unwrap();
        assert_eq!(
            orders.accept(order(1, "b")),
            Err(FoldError::AcceptedTwice { symbol: SYMBOL, order: OrderId(1) })
        );
        orders.close(SYMBOL, OrderId(1));
        let not_open = |id| FoldError::NotOpen { symbol: SYMBOL, order: OrderId(id) };
        assert_eq!(orders.open_mut(SYMBOL, OrderId(1)), Err(not_open(1)));
        assert_eq!(orders.open_mut(SYMBOL, OrderId(9)), Err(not_open(9)));
    }
}
