//! The model: changes of an open order that may cost it its place, and a cancel with a placement.

use crate::fields::{check_notional, fits_lot, fits_price, parts_allowed};
use crate::place::OrderStatus;
use crate::state::{Asked, Model, Order, Outcome, Place, Rejection, check, up};
use crate::venue::Owned;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, RejectReason as Why, Side};
use touchline_protocol::message::event::*;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::*;

impl Model {
    pub(crate) fn replace(&mut self, m: &ReplaceOrder) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        self.may_place(account, symbol)?;
        check(self.symbol(symbol).is_trading(), Why::SymbolNotTrading)?;
        check(m.new_price > 0, Why::InvalidPrice)?;
        check(m.new_quantity > 0, Why::InvalidQuantity)?;
        let order = self.named(account, symbol, m.order_id.0, ClientOrderId::EMPTY)?;
        let alone = order.in_book() && self.list_of(&order).is_none();
        check(alone, Why::NotReplaceable)?;
        check(m.new_quantity > order.executed, Why::QuantityBelowExecuted)?;
        if m.new_price == order.price {
            check(m.new_quantity != order.quantity, Why::NothingChanged)?;
            if m.new_quantity < order.quantity {
                check(fits_lot(&self.symbol(symbol).filters, m.new_quantity), Why::LotSize)?;
                return self.reduce_to(order, m.new_quantity);
            }
        }
        self.check_new_values(&order, m)?;
        // From here on as if it were gone and came anew, with its number.
        self.take_out(symbol, order.id);
        let mut new = order.clone();
        (new.price, new.quantity, new.place) = (m.new_price, m.new_quantity, Place::Taking);
        let takes = !self.reachable(symbol, new.side, new.price).is_empty();
        check(new.order_type != OrderType::LimitMaker || !takes, Why::WouldTake)?;
        let as_new = NewOrder {
            symbol: m.symbol,
            side: new.side.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: new.time_in_force.to_wire(),
            price: new.price,
            ..Default::default()
        };
        self.check_room(symbol, &[as_new])?;
        new.locked = match new.side {
            Side::Buy => up(new.price, new.open()),
            Side::Sell => new.open().into(),
        };
        let more = new.locked - order.locked;
        let asset = self.symbol(symbol).paid_with(new.side);
        check(more <= self.free(account, asset), Why::InsufficientBalance)?;
        self.lock(account, asset, more);
        let counts = self.counts(account);
        new.asked_by = Asked { counts, ..Asked::by(&m.command) };
        new.last_fill = None;
        let mut events = vec![Owned::Replaced(OrderReplaced {
            order_id: OrderId(new.id),
            account: AccountId(account),
            symbol: SymbolId(symbol),
            price: new.price,
            quantity: new.quantity,
            executed_quantity: new.executed,
            locked: more as i64,
            book_update_id: BookUpdateId(self.symbol(symbol).updates),
            ..Default::default()
        })];
        if takes {
            self.note("a replaced order takes");
        }
        self.enter(new, true, &mut events);
        Ok(events)
    }

    /// The filters on an order's new price and quantity.
    fn check_new_values(&self, order: &Order, m: &ReplaceOrder) -> Result<(), Rejection> {
        let symbol = self.symbol(order.symbol);
        let f = &symbol.filters;
        check(fits_price(f, m.new_price), Why::PriceFilter)?;
        check(fits_lot(f, m.new_quantity), Why::LotSize)?;
        if order.iceberg > 0 {
            check(parts_allowed(f, m.new_quantity, order.iceberg), Why::IcebergParts)?;
        }
        check_notional(f, m.new_price, m.new_quantity)?;
        // What it will have executed in the end can be counted, whatever it was executed at before.
        let rest = up(m.new_price, m.new_quantity - order.executed);
        let executed = i128::from(order.executed_quote) + rest;
        check(executed <= i128::from(i64::MAX / 2), Why::Overflow)?;
        self.check_percent_price(symbol, m.new_price)?;
        let more = i128::from(m.new_quantity) - i128::from(order.quantity);
        if self.rules < 5 {
            return self.check_position(order.account, order.symbol, order.side, more);
        }
        // Who asks for no more has no larger position; else what is executed is in the balance and counts once.
        if more <= 0 {
            return Ok(());
        }
        let more = more - i128::from(order.executed);
        self.check_position(order.account, order.symbol, order.side, more)
    }

    /// The new order is judged as if the other were gone already; a reject of it undoes the cancel.
    pub(crate) fn cancel_replace(&mut self, m: &CancelReplace) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        self.may_place(account, symbol)?;
        let new = NewOrder {
            command: m.command,
            symbol: m.symbol,
            side: m.side,
            order_type: m.order_type,
            time_in_force: m.time_in_force,
            flags: m.flags,
            price: m.price,
            quantity: m.quantity,
            quote_quantity: m.quote_quantity,
            stop_price: m.stop_price,
            iceberg_quantity: m.iceberg_quantity,
            client_order_id: m.client_order_id,
            self_trade_prevention: m.self_trade_prevention,
            ..Default::default()
        };
        check(m.flags == 0, Why::UnsupportedCombination)?;
        self.check_order(symbol, &new)?;
        self.check_order_rate(account, 1)?;
        let (id, name) = (m.canceled_order_id.0, m.canceled_client_order_id);
        let old = self.named(account, symbol, id, name)?;
        let mut events = self.end_one(symbol, old.id, OrderStatus::Canceled);
        self.place(account, &new, &mut events)?;
        Ok(events)
    }
}
