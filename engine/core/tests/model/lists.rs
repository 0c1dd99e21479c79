//! The model: lists of two orders of which one ends the other (OCO; contract 4, facts 5.5).

use crate::fields::side_of;
use crate::place::{OrderStatus, accepted, valid};
use crate::state::{List, Model, Order, Outcome, Place, Rejection, check};
use crate::venue::Owned;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{
    ListOrderStatus, ListStatusType, OrderType, RejectReason as Why, Side,
};
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

/// The two legs as single orders, the stop leg first.
fn legs(m: &PlaceOrderList) -> [NewOrder; 2] {
    let leg = NewOrder {
        command: m.command,
        symbol: m.symbol,
        side: m.side,
        quantity: m.quantity,
        self_trade_prevention: m.self_trade_prevention,
        flags: m.flags,
        ..Default::default()
    };
    let with_limit = m.stop_limit_price != 0;
    let stop_type = if with_limit { OrderType::StopLossLimit } else { OrderType::StopLoss };
    let stop = NewOrder {
        order_type: stop_type.to_wire(),
        time_in_force: m.stop_limit_time_in_force,
        price: m.stop_limit_price,
        stop_price: m.stop_price,
        iceberg_quantity: m.stop_iceberg_quantity,
        client_order_id: m.stop_client_order_id,
        ..leg
    };
    let limit = NewOrder {
        order_type: OrderType::LimitMaker.to_wire(),
        price: m.price,
        iceberg_quantity: m.limit_iceberg_quantity,
        client_order_id: m.limit_client_order_id,
        // The mode is the stop leg's: this one does not take.
        self_trade_prevention: 0,
        ..leg
    };
    [stop, limit]
}

impl Model {
    pub(crate) fn place_list(&mut self, m: &PlaceOrderList) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        self.may_place(account, symbol)?;
        let legs = legs(m);
        self.check_list(symbol, m, &legs)?;
        self.check_order_rate(account, 2)?;
        if m.flags == ORDER_VALIDATE_ONLY {
            return Ok(valid(m.symbol));
        }
        self.check_open_counts(account, symbol, &legs)?;
        self.check_names(account, symbol, &legs)?;
        let own = self.lists.iter().filter(|own| own.account == account && own.symbol == symbol);
        let name = m.list_client_order_id;
        let taken = own.filter(|own| !name.is_empty() && own.name == name).count() > 0;
        check(!taken, Why::DuplicateClientOrderId)?;
        check(self.prices_are_apart(symbol, m), Why::OrderListPrices)?;
        self.check_maker_only(symbol, &legs[1])?;
        // The legs exclude each other: they buy once.
        self.check_position(account, symbol, side_of(&legs[0]), m.quantity.into())?;
        self.check_room(symbol, &legs)?;
        // Locked once: what the dearer leg needs. The limit leg has its own lock, the stop leg what it
        // needs beyond that.
        let needed = legs.map(|leg| self.funds_needed(&leg, m.quantity));
        let locks = [(needed[0] - needed[1]).max(0), needed[1]];
        let locks = if side_of(&legs[0]) == Side::Sell { [0, needed[1]] } else { locks };
        let asset = self.symbol(symbol).paid_with(side_of(&legs[0]));
        let enough = locks[0] + locks[1] <= self.free(account, asset);
        check(enough, Why::InsufficientBalance)?;
        Ok(self.open_list(account, m, legs, locks))
    }

    /// What the fields decide: the list's own, then each leg as a single order of its type.
    fn check_list(
        &self,
        symbol: u32,
        m: &PlaceOrderList,
        legs: &[NewOrder; 2],
    ) -> Result<(), Rejection> {
        let terms = self.symbol(symbol);
        check(Side::from_wire(m.side).is_some(), Why::InvalidSide)?;
        check(terms.flags & SYMBOL_OCO != 0, Why::OrderTypeNotSupported)?;
        let both = (m.stop_limit_price == 0) == (m.stop_limit_time_in_force == 0);
        check(both, Why::UnsupportedCombination)?;
        for leg in legs {
            self.check_combination(terms, leg)?;
        }
        check(terms.is_trading(), Why::SymbolNotTrading)?;
        for leg in legs {
            Self::check_filters(&terms.filters, leg)?;
            self.check_averages(terms, leg)?;
        }
        Ok(())
    }

    /// SELL: price > last > stop price; BUY: price < last < stop price. Never traded: no.
    fn prices_are_apart(&self, symbol: u32, m: &PlaceOrderList) -> bool {
        self.symbol(symbol).last.is_some_and(|last| {
            let sells = m.side == Side::Sell.to_wire();
            if sells {
                m.price > last && last > m.stop_price
            } else {
                m.price < last && last < m.stop_price
            }
        })
    }

    /// Both legs are accepted; the stop leg waits, the limit leg rests.
    fn open_list(
        &mut self,
        account: u32,
        m: &PlaceOrderList,
        legs: [NewOrder; 2],
        locks: [i128; 2],
    ) -> Vec<Owned> {
        let counts = self.count_orders(account, 2);
        let id = self.lists_made;
        self.lists_made += 1;
        let mut events = Vec::new();
        let mut orders = Vec::new();
        for (leg, lock) in legs.iter().zip(locks) {
            let mut order = self.make(account, leg, counts);
            (order.list, order.locked) = (id, lock);
            self.release(&order, -lock);
            events.push(accepted(&order));
            if order.is_algo() {
                order.place = Place::Waiting;
            } else {
                order.place = self.next_turn();
                order.shown =
                    if order.iceberg > 0 { order.iceberg.min(order.open()) } else { order.open() };
            }
            orders.push(order.id);
            self.orders.push(order);
        }
        self.symbol_mut(m.symbol.0).updates += 1;
        let name = m.list_client_order_id;
        let (stop_leg, limit_leg) = (orders[0], orders[1]);
        let list = List { id, account, symbol: m.symbol.0, stop_leg, limit_leg, name };
        let behind = self.symbol(m.symbol.0).updates;
        events.push(list_changed(&list, Some(counts), behind));
        self.lists.push(list);
        events
    }

    pub(crate) fn cancel_list(&mut self, m: &CancelOrderList) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        let name = m.list_client_order_id;
        let mut own =
            self.lists.iter().filter(|own| own.account == account && own.symbol == symbol);
        let list = if m.order_list_id == OrderListId::NONE {
            let found = own.find(|own| !name.is_empty() && own.name == name);
            found.ok_or((Why::UnknownOrderList, 0))?
        } else {
            let found = own.find(|own| own.id == m.order_list_id.0);
            let list = found.ok_or((Why::UnknownOrderList, 0))?;
            check(name.is_empty() || list.name == name, Why::OrderListIdMismatch)?;
            list
        };
        Ok(self.end_one(symbol, list.limit_leg, OrderStatus::Canceled))
    }

    /// Ends an open order, and if it is in an open list both legs, the stop leg first. `behind` is the
    /// symbol's book update id behind the transaction. Gives how many orders and lists that were.
    pub(crate) fn end(
        &mut self,
        symbol: u32,
        id: u64,
        (status, behind): (OrderStatus, u64),
        events: &mut Vec<Owned>,
    ) -> (u64, u64) {
        let list = self.list_of(self.find(symbol, id).expect("it is open")).cloned();
        let legs = list.as_ref().map_or(vec![id], |list| vec![list.stop_leg, list.limit_leg]);
        for id in &legs {
            let order = self.take_out(symbol, *id);
            self.release(&order, order.locked);
            events.push(canceled(&order, status, order.locked, behind));
        }
        if let Some(list) = &list {
            self.close(list, behind, events);
        }
        (legs.len() as u64, u64::from(list.is_some()))
    }

    fn close(&mut self, list: &List, behind: u64, events: &mut Vec<Owned>) {
        self.lists.retain(|other| other.id != list.id);
        events.push(list_changed(list, None, behind));
    }

    /// On its first fill the limit leg becomes a single order and the stop leg expires, even when it was
    /// reached already and waits for its turn. True if there was a list.
    pub(crate) fn limit_leg_was_touched(&mut self, maker: &Order, events: &mut Vec<Owned>) -> bool {
        let Some(list) = self.list_of(maker).cloned() else { return false };
        self.note("a limit leg is touched");
        let stop = self.find(list.symbol, list.stop_leg).expect("its list is open");
        if stop.place != Place::Waiting {
            self.note("a limit leg is touched whose stop leg has fired");
        }
        let stop = self.take_out(list.symbol, list.stop_leg);
        self.release(&stop, stop.locked);
        let behind = self.symbol(list.symbol).updates + 1;
        events.push(canceled(&stop, OrderStatus::Expired, stop.locked, behind));
        self.close(&list, behind, events);
        true
    }

    /// At the stop leg's turn the limit leg expires first, and its lock passes to the stop leg. True if
    /// there was a list.
    pub(crate) fn limit_leg_gives_way(
        &mut self,
        stop: &mut Order,
        events: &mut Vec<Owned>,
    ) -> bool {
        let Some(list) = self.list_of(stop).cloned() else { return false };
        self.note("a stop leg has its turn");
        let limit = self.take_out(list.symbol, list.limit_leg);
        stop.locked += limit.locked;
        self.symbol_mut(list.symbol).updates += 1;
        let behind = self.symbol(list.symbol).updates;
        events.push(canceled(&limit, OrderStatus::Expired, 0, behind));
        self.close(&list, behind, events);
        true
    }
}

/// A list's report; with order counts it has been placed, without it has come to its end.
fn list_changed(list: &List, placed: Option<[u32; 2]>, behind: u64) -> Owned {
    let (kind, status) = match placed {
        Some(_) => (ListStatusType::ExecStarted, ListOrderStatus::Executing),
        None => (ListStatusType::AllDone, ListOrderStatus::AllDone),
    };
    let counts = placed.unwrap_or_default();
    Owned::ListChanged(OrderListChanged {
        order_list_id: OrderListId(list.id),
        account: AccountId(list.account),
        symbol: SymbolId(list.symbol),
        limit_order_id: OrderId(list.limit_leg),
        stop_order_id: OrderId(list.stop_leg),
        list_status_type: kind.to_wire(),
        list_order_status: status.to_wire(),
        list_client_order_id: list.name,
        book_update_id: BookUpdateId(behind),
        order_count_0: counts[0],
        order_count_1: counts[1],
        ..Default::default()
    })
}

pub(crate) fn canceled(order: &Order, status: OrderStatus, released: i128, behind: u64) -> Owned {
    Owned::Canceled(OrderCanceled {
        order_id: OrderId(order.id),
        account: AccountId(order.account),
        symbol: SymbolId(order.symbol),
        price: order.price,
        quantity: order.quantity,
        executed_quantity: order.executed,
        executed_quote: order.executed_quote,
        released: released as i64,
        book_update_id: BookUpdateId(behind),
        order_list_id: OrderListId(order.list),
        status: status.to_wire(),
        side: order.side.to_wire(),
        order_type: order.order_type.to_wire(),
        time_in_force: order.time_in_force.to_wire(),
        client_order_id: order.name,
        ..Default::default()
    })
}
