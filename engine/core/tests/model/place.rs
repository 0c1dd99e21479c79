//! The model: an order from its message to its place.

use crate::fields::{side_of, time_in_force_of, type_of};
use crate::state::{Asked, Model, Order, Outcome, Place, Rejection, Work, check, check_detail};
use crate::venue::Owned;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{RejectReason as Why, SelfTradePrevention, TimeInForce};
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

impl Model {
    pub(crate) fn new_order(&mut self, m: &NewOrder) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        self.may_place(account, symbol)?;
        self.check_order(symbol, m)?;
        self.check_order_rate(account, 1)?;
        if m.flags == ORDER_VALIDATE_ONLY {
            return Ok(valid(m.symbol));
        }
        let mut events = Vec::new();
        self.place(account, m, &mut events)?;
        Ok(events)
    }

    /// A placement that is sound in itself: what account and book say, then the placement.
    pub(crate) fn place(
        &mut self,
        account: u32,
        m: &NewOrder,
        events: &mut Vec<Owned>,
    ) -> Result<(), Rejection> {
        let symbol = m.symbol.0;
        self.check_open_counts(account, symbol, &[*m])?;
        self.check_names(account, symbol, &[*m])?;
        self.check_stop_price(symbol, m)?;
        self.check_maker_only(symbol, m)?;
        let (quantity, short) = self.base_quantity(m)?;
        self.check_market_worth(m)?;
        self.check_position(account, symbol, side_of(m), quantity.into())?;
        self.check_room(symbol, &[*m])?;
        let needed = self.funds_needed(m, quantity);
        let asset = self.symbol(symbol).paid_with(side_of(m));
        check(needed <= self.free(account, asset), Why::InsufficientBalance)?;

        let counts = self.count_orders(account, 1);
        let mut order = self.make(account, m, counts);
        (order.quantity, order.short, order.locked) = (quantity, short, needed);
        self.lock(account, asset, needed);
        events.push(accepted(&order));
        if order.is_algo() {
            order.place = Place::Waiting;
            events.push(self.result(&order, OrderStatus::New, 0));
            self.orders.push(order);
        } else {
            self.enter(order, false, events);
        }
        Ok(())
    }

    /// An aggressor of this transaction: it takes, and rests, ends or goes on later.
    pub(crate) fn enter(&mut self, mut order: Order, changed: bool, events: &mut Vec<Owned>) {
        let symbol = order.symbol;
        order.mode = self.prevention(&order);
        if order.time_in_force == TimeInForce::Fok && !self.fills_wholly(&order) {
            let there: i128 = self
                .reachable(symbol, order.side, order.price)
                .iter()
                .map(|maker| i128::from(maker.open()))
                .sum();
            if there >= order.open().into() {
                self.note("FOK is killed by orders of its own");
            }
            return self.finish(order, false, events);
        }
        let mut steps = self.limits.max_steps;
        if let Some(rest) = self.take(order, changed, &mut steps, events) {
            self.work.push_back(Work::Aggressor(Box::new(rest)));
        } else if self.has_fired(symbol) {
            self.work.push_back(Work::Stops(symbol));
        }
    }

    /// The next order of a symbol, in nobody's queue yet.
    pub(crate) fn make(&mut self, account: u32, m: &NewOrder, counts: [u32; 2]) -> Order {
        self.placed += 1;
        let placed = self.placed;
        let symbol = self.symbol_mut(m.symbol.0);
        symbol.orders += 1;
        Order {
            symbol: m.symbol.0,
            id: symbol.orders,
            account,
            session: m.command.session.0,
            side: side_of(m),
            order_type: type_of(m),
            time_in_force: time_in_force_of(m),
            price: m.price,
            quantity: m.quantity,
            executed: 0,
            executed_quote: 0,
            locked: 0,
            stop: m.stop_price,
            iceberg: m.iceberg_quantity,
            shown: 0,
            list: -1,
            prevention: m.self_trade_prevention,
            mode: SelfTradePrevention::None,
            name: m.client_order_id,
            placed,
            place: Place::Taking,
            short: false,
            prevented: 0,
            out_of_lock: false,
            last_fill: None,
            asked_by: Asked { counts, ..Asked::by(&m.command) },
        }
    }

    /// The order counts of both intervals leave room for so many orders more, or the order is refused.
    pub(crate) fn check_order_rate(&self, account: u32, orders: u32) -> Result<(), Rejection> {
        let most = [self.limits.orders_per_interval_0, self.limits.orders_per_interval_1];
        for (index, count) in self.counts(account).into_iter().enumerate() {
            let room = most[index] == 0 || count + orders <= most[index];
            check_detail(room, Why::TooManyOrders, index as u32)?;
        }
        Ok(())
    }

    /// Counts accepted orders; gives the counts, these included.
    pub(crate) fn count_orders(&mut self, account: u32, orders: u32) -> [u32; 2] {
        let time = self.time;
        let accepted = &mut self.account_mut(account).accepted;
        accepted.extend((0..orders).map(|_| time));
        self.counts(account)
    }

    pub(crate) fn result(&self, order: &Order, status: OrderStatus, released: i128) -> Owned {
        Owned::Result(OrderResult {
            order_id: OrderId(order.id),
            account: AccountId(order.account),
            symbol: SymbolId(order.symbol),
            quantity: order.quantity,
            executed_quantity: order.executed,
            executed_quote: order.executed_quote,
            released: released as i64,
            book_update_id: BookUpdateId(self.symbol(order.symbol).updates),
            order_list_id: OrderListId(order.list),
            order_count_0: order.asked_by.counts[0],
            order_count_1: order.asked_by.counts[1],
            status: status.to_wire(),
            ..Default::default()
        })
    }
}

pub(crate) use touchline_protocol::message::enums::OrderStatus;

pub(crate) fn valid(symbol: SymbolId) -> Vec<Owned> {
    vec![Owned::Valid(OrderValid { symbol, ..Default::default() })]
}

pub(crate) fn accepted(order: &Order) -> Owned {
    Owned::Accepted(OrderAccepted {
        order_id: OrderId(order.id),
        account: AccountId(order.account),
        symbol: SymbolId(order.symbol),
        locked: order.locked as i64,
        price: order.price,
        quantity: order.quantity,
        order_list_id: OrderListId(order.list),
        side: order.side.to_wire(),
        order_type: order.order_type.to_wire(),
        time_in_force: order.time_in_force.to_wire(),
        session: SessionId(order.session),
        ..Default::default()
    })
}
