//! Orders and lists by number or name, wherever they are: in memory or in the history. Called by the
//! handlers of the spot service.

use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId};

use super::State;
use crate::history::HistoryError;
use crate::history::rows::{ListRow, OrderRow, of_account, of_lists};
use crate::views::lists::OrderList;
use crate::views::orders::Order;

impl State {
    /// An order of the account; somebody else's is as unknown as none. What it took as the aggressor
    /// is told only of one that is in memory.
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
        if let Some(found) = self.orders.latest(account, symbol, name) {
            return Ok(Some(found.clone()));
        }
        let found = self.history.reader()?.order_named(of_account(account, symbol), name)?;
        Ok(found.and_then(|(id, row)| Order::of_row(id, &row)))
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

    /// The account's last list under this name.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn list_named(
        &self,
        account: AccountId,
        name: ClientOrderId,
    ) -> Result<Option<OrderList>, HistoryError> {
        if let Some(found) = self.lists.latest(account, name) {
            return Ok(Some(*found));
        }
        let found = self.history.reader()?.list_named(of_lists(account), name)?;
        Ok(found.and_then(|(id, row)| OrderList::of_row(id, &row)))
    }
}
