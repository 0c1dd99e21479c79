//! Orders and lists by number or name, wherever they are: in memory or in the history. Called by the
//! handlers of the spot service.

use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId, TradeId};

use super::State;
use crate::history::rows::{
    ListRow, OrderRow, OrderTradeRow, TradeRow, of_account, of_lists, of_order, of_symbol, side_id,
    trade_of,
};
use crate::history::{Direction, HistoryError, Reader};
use crate::views::lists::OrderList;
use crate::views::orders::{Fill, Order};

/// What was looked for in the state: it is there, or the history is to be asked, which may have to wait
/// for the disk.
#[must_use]
pub struct Sought<T>(Place<T>);

type Look<T> = Box<dyn FnOnce() -> Result<Option<T>, HistoryError>>;

enum Place<T> {
    InMemory(Option<T>),
    InHistory(Look<T>),
}

impl<T> Sought<T> {
    fn in_history(
        state: &State,
        look: impl FnOnce(&Reader) -> Result<Option<T>, HistoryError> + 'static,
    ) -> Result<Self, HistoryError> {
        let reader = state.history.reader()?;
        Ok(Self(Place::InHistory(Box::new(move || look(&reader)))))
    }

    const fn in_memory(found: Option<T>) -> Self {
        Self(Place::InMemory(found))
    }

    /// What it is, as of when it was looked for; to be called when the views are let go.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn find(self) -> Result<Option<T>, HistoryError> {
        match self.0 {
            Place::InMemory(found) => Ok(found),
            Place::InHistory(look) => look(),
        }
    }
}

impl State {
    /// An order of the account; somebody else's is as unknown as none.
    ///
    /// # Errors
    /// When the history has too many readers.
    pub fn order(
        &self,
        account: AccountId,
        symbol: SymbolId,
        order: OrderId,
    ) -> Result<Sought<Order>, HistoryError> {
        if let Some(found) = self.orders.get(symbol, order) {
            let is_own = found.account == account;
            return Ok(Sought::in_memory(is_own.then(|| found.clone())));
        }
        Sought::in_history(self, move |history| {
            let row = history.get::<OrderRow>(of_account(account, symbol), order.0)?;
            Ok(row.and_then(|row| Order::of_row(order.0, &row)))
        })
    }

    /// The account's last order on the symbol under this name.
    ///
    /// # Errors
    /// When the history has too many readers.
    pub fn order_named(
        &self,
        account: AccountId,
        symbol: SymbolId,
        name: ClientOrderId,
    ) -> Result<Sought<Order>, HistoryError> {
        if let Some(found) = self.orders.named(account, symbol, name) {
            return Ok(Sought::in_memory(Some(found.clone())));
        }
        Sought::in_history(self, move |history| {
            let found = history.order_named(of_account(account, symbol), name)?;
            Ok(found.and_then(|(id, row)| Order::of_row(id, &row)))
        })
    }

    /// A list of the account; somebody else's is as unknown as none.
    ///
    /// # Errors
    /// When the history has too many readers.
    pub fn list(
        &self,
        account: AccountId,
        list: OrderListId,
    ) -> Result<Sought<OrderList>, HistoryError> {
        if let Some(found) = self.lists.get(list) {
            return Ok(Sought::in_memory((found.account == account).then_some(*found)));
        }
        let id = list.0.cast_unsigned();
        Sought::in_history(self, move |history| {
            let row = history.get::<ListRow>(of_lists(account), id)?;
            Ok(row.and_then(|row| OrderList::of_row(id, &row)))
        })
    }

    /// The account's open list under this name that was placed last; without one the list that ended last.
    ///
    /// # Errors
    /// When the history has too many readers.
    pub fn list_named(
        &self,
        account: AccountId,
        name: ClientOrderId,
    ) -> Result<Sought<OrderList>, HistoryError> {
        if let Some(found) = self.lists.named(account, name) {
            return Ok(Sought::in_memory(Some(*found)));
        }
        Sought::in_history(self, move |history| {
            let found = history.list_named(of_lists(account), name)?;
            Ok(found.and_then(|(id, row)| OrderList::of_row(id, &row)))
        })
    }
}

impl Reader {
    /// The first or the last `limit` sides that an order has of trades, from this [`side_id`] on, lowest number
    /// first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn sides_of(
        &self,
        order: &Order,
        from: u64,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<u64>, HistoryError> {
        let group = of_order(order.symbol, order.order_id.0);
        let page = self.page::<OrderTradeRow>(group, from..=u64::MAX, direction, limit)?;
        let mut sides: Vec<_> = page.into_iter().map(|(side, OrderTradeRow)| side).collect();
        let has_room = direction == Direction::Forward || sides.len() < limit;
        let first = if has_room { self.first_side_of(order)? } else { None };
        let first = first.filter(|first| *first >= from);
        // An older format has it among the others.
        if let Some(first) = first.filter(|first| sides.first() != Some(first)) {
            sides.insert(0, first);
            sides.truncate(limit);
        }
        Ok(sides)
    }

    /// The side that an order has of its first trade.
    fn first_side_of(&self, order: &Order) -> Result<Option<u64>, HistoryError> {
        let TradeId(id) = order.first_trade;
        if id == 0 {
            return Ok(None);
        }
        let trade = self.get::<TradeRow>(of_symbol(order.symbol), id)?;
        Ok(trade.map(|trade| side_id(id, trade.maker_order == order.order_id.0)))
    }

    /// What an order took as the aggressor, in order of execution.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn fills(&self, order: &Order) -> Result<Vec<Fill>, HistoryError> {
        let sides = self.sides_of(order, 0, Direction::Forward, usize::MAX)?;
        let taken = sides.into_iter().map(trade_of).filter(|(_, is_maker)| !is_maker);
        let fill = |trade: u64| {
            let row = self.get::<TradeRow>(of_symbol(order.symbol), trade)?;
            Ok(row.map(|row| Fill {
                trade_id: TradeId(trade),
                price: row.price,
                quantity: row.quantity,
                commission: row.taker_commission,
            }))
        };
        taken.filter_map(|(trade, _)| fill(trade).transpose()).collect()
    }
}
