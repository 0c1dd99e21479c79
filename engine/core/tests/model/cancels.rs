//! The model: cancels and reductions of one order.

use crate::fields::{check_notional, fits_lot};
use crate::place::OrderStatus;
use crate::state::{Model, Order, Outcome, Rejection, check, up};
use crate::venue::Owned;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{RejectReason as Why, Side};
use touchline_protocol::message::event::*;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::*;

impl Model {
    pub(crate) fn cancel(&mut self, m: &CancelOrder) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        let order = self.named(account, symbol, m.order_id.0, ClientOrderId::EMPTY)?;
        Ok(self.end_one(symbol, order.id, OrderStatus::Canceled))
    }

    pub(crate) fn cancel_named(&mut self, m: &CancelOrderNamed) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        let order = self.named(account, symbol, m.order_id.0, m.client_order_id)?;
        Ok(self.end_one(symbol, order.id, OrderStatus::Canceled))
    }

    /// An open order of the account by number, or with number 0 by name; with both they must agree.
    pub(crate) fn named(
        &self,
        account: u32,
        symbol: u32,
        id: u64,
        name: ClientOrderId,
    ) -> Result<Order, Rejection> {
        let mut own = self.own(account, symbol);
        if id == 0 {
            let found = own.find(|order| !name.is_empty() && order.name == name);
            return found.cloned().ok_or((Why::UnknownOrder, 0));
        }
        let order = own.find(|order| order.id == id).ok_or((Why::UnknownOrder, 0))?;
        check(name.is_empty() || order.name == name, Why::ClientOrderIdMismatch)?;
        Ok(order.clone())
    }

    /// Ends an open order, and with it the list that it is in.
    pub(crate) fn end_one(&mut self, symbol: u32, id: u64, status: OrderStatus) -> Vec<Owned> {
        let order = self.find(symbol, id).expect("it is open");
        // One leg of an open list is in the book.
        let changes_book = order.in_book() || self.list_of(order).is_some();
        self.symbol_mut(symbol).updates += u64::from(changes_book);
        let behind = self.symbol(symbol).updates;
        let mut events = Vec::new();
        self.end(symbol, id, (status, behind), &mut events);
        events
    }

    pub(crate) fn reduce(&mut self, m: &ReduceOrder) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        check(self.symbol(symbol).is_trading(), Why::SymbolNotTrading)?;
        check(m.new_quantity > 0, Why::InvalidQuantity)?;
        check(fits_lot(&self.symbol(symbol).filters, m.new_quantity), Why::LotSize)?;
        let order = self.named(account, symbol, m.order_id.0, ClientOrderId::EMPTY)?;
        self.reduce_to(order, m.new_quantity)
    }

    /// Lowers an order's quantity; it keeps its place, and what it hides goes first.
    pub(crate) fn reduce_to(&mut self, order: Order, quantity: i64) -> Outcome {
        check(self.list_of(&order).is_none(), Why::NotReplaceable)?;
        check(quantity < order.quantity, Why::NotReduced)?;
        check(quantity > order.executed, Why::QuantityBelowExecuted)?;
        let price = if order.price > 0 { order.price } else { order.stop };
        check_notional(&self.symbol(order.symbol).filters, price, quantity)?;
        let released = match order.side {
            // What the rest needs stays locked, whatever the fills have left of it.
            Side::Buy if self.rules > 1 => order.locked - up(price, quantity - order.executed),
            Side::Buy => up(price, order.quantity) - up(price, quantity),
            Side::Sell => (order.quantity - quantity).into(),
        };
        self.release(&order, released);
        self.symbol_mut(order.symbol).updates += u64::from(order.in_book());
        let stored = self.find_mut(order.symbol, order.id).expect("it is open");
        stored.quantity = quantity;
        stored.shown = stored.shown.min(stored.open());
        stored.locked -= released;
        Ok(vec![Owned::Reduced(OrderReduced {
            order_id: OrderId(order.id),
            account: AccountId(order.account),
            symbol: SymbolId(order.symbol),
            quantity,
            executed_quantity: order.executed,
            released: released as i64,
            book_update_id: BookUpdateId(self.symbol(order.symbol).updates),
            price: order.price,
            ..Default::default()
        })])
    }
}
