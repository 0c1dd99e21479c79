//! Orders and lists by number or name, wherever they are: in memory or in the history. Called by the
//! handlers of the spot service.

use std::ops::ControlFlow;

use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId, TradeId};

use super::State;
use crate::history::rows::{
    ListRow, OrderRow, OrderTradeRow, TradeRow, of_account, of_lists, of_order, of_symbol, trade_of,
};
use crate::history::{Direction, HistoryError};
use crate::views::lists::OrderList;
use crate::views::orders::{Fill, Order};

impl State {
    /// An order of the account; somebody else's is as unknown as none.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn order(
        &self,
        account: AccountId,
        symbol: SymbolId,
        order: OrderId,
    ) -> Result<Option<Order>, HistoryError> {
        if let Some(found) = self.orders.get(symbol, order) {
            return Ok((found.account == account).then(|| found.clone()));
        }
        let row = self.history.reader()?.get::<OrderRow>(of_account(account, symbol), order.0)?;
        Ok(row.and_then(|row| Order::of_row(order.0, &row)))
    }

    /// The account's last order on the symbol under this name.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn order_named(
        &self,
        account: AccountId,
        symbol: SymbolId,
        name: ClientOrderId,
    ) -> Result<Option<Order>, HistoryError> {
        if let Some(found) = self.orders.named(account, symbol, name) {
            return Ok(Some(found.clone()));
        }
        let found = self.history.reader()?.order_named(of_account(account, symbol), name)?;
        Ok(found.and_then(|(id, row)| Order::of_row(id, &row)))
    }

    /// What an order took as the aggressor, in order of execution.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn fills(&self, symbol: SymbolId, order: OrderId) -> Result<Vec<Fill>, HistoryError> {
        let reader = self.history.reader()?;
        let (mut taken, whole) = (Vec::new(), 0..=u64::MAX);
        let group = of_order(symbol, order.0);
        reader.scan::<OrderTradeRow>(group, whole, Direction::Forward, |side, _| {
            if let (trade, false) = trade_of(side) {
                taken.push(trade);
            }
            ControlFlow::Continue(())
        })?;
        let fill = |trade: u64| {
            let row = reader.get::<TradeRow>(of_symbol(symbol), trade)?;
            Ok(row.map(|row| Fill {
                trade_id: TradeId(trade),
                price: row.price,
                quantity: row.quantity,
                commission: row.taker_commission,
            }))
        };
        taken.into_iter().filter_map(|trade| fill(trade).transpose()).collect()
    }

    /// A list of the account; somebody else's is as unknown as none.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn list(
        &self,
        account: AccountId,
        list: OrderListId,
    ) -> Result<Option<OrderList>, HistoryError> {
        if let Some(found) = self.lists.get(list) {
            return Ok((found.account == account).then_some(*found));
        }
        let id = list.0.cast_unsigned();
        let row = self.history.reader()?.get::<ListRow>(of_lists(account), id)?;
        Ok(row.and_then(|row| OrderList::of_row(id, &row)))
    }

    /// The account's open list under this name that was placed last; without one the list that ended last.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn list_named(
        &self,
        account: AccountId,
        name: ClientOrderId,
    ) -> Result<Option<OrderList>, HistoryError> {
        if let Some(found) = self.lists.named(account, name) {
            return Ok(Some(*found));
        }
        let found = self.history.reader()?.list_named(of_lists(account), name)?;
        Ok(found.and_then(|(id, row)| OrderList::of_row(id, &row)))
    }
}
