//! The fold of the public feed: the events of one transaction become the messages that everybody may
//! see. Called by the feed thread, and by the tests that compare it with the core.
//!
//! It is pure and deterministic, and knows none of the venue's rules: events say what moved. What it
//! keeps of an order is what events do not repeat: where it stands and what it shows. Owners, client
//! ids and sessions never come in here.

mod messages;

use std::collections::HashMap;

use touchline_core::{Core, OpenOrder};
use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::message::decode::{Command, DecodeError, Event};
use touchline_protocol::message::enums::{ListOrderStatus, OrderStatus, OrderType, Side};
use touchline_protocol::message::event::{
    Done, OrderAccepted, OrderCanceled, OrderListChanged, OrderReduced, OrderRefilled,
    OrderReplaced, OrderResult, OrderTriggered, Trade,
};
use touchline_protocol::message::feed::{
    FeedOrderAdded, FeedOrderDeleted, FeedOrderReduced, FeedOrderReplaced, FeedSymbolChanged,
    FeedTrade,
};
use touchline_protocol::text::SymbolName;
use touchline_protocol::units::{OrderId, Position, SymbolId};

pub use messages::Messages;

/// Why the log cannot be folded: the feed ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// A message cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// An event about an order that is not open.
    #[error("{event}: order {order} of symbol {symbol} is not open")]
    NotOpen {
        /// The event.
        event: &'static str,
        /// The symbol.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
    },
    /// An event about an order that stands elsewhere.
    #[error("{event}: order {order} of symbol {symbol} is {standing}")]
    Standing {
        /// The event.
        event: &'static str,
        /// The symbol.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
        /// How it stands.
        standing: &'static str,
    },
    /// An event about a symbol that was not defined.
    #[error("symbol {0} is not known")]
    UnknownSymbol(SymbolId),
    /// A number that names nothing.
    #[error("{field} {value} means nothing")]
    Number {
        /// Of which field.
        field: &'static str,
        /// The number.
        value: u8,
    },
}

/// Where an open order stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// A stop that waits for its trigger.
    Waits,
    /// It takes, or goes on taking later.
    Takes,
    /// It rests in the book.
    Rests,
}

impl Standing {
    const fn name(self) -> &'static str {
        match self {
            Self::Waits => "waiting for its trigger",
            Self::Takes => "taking",
            Self::Rests => "in the book",
        }
    }
}

/// An open order.
#[derive(Clone, Copy, Debug)]
struct Order {
    side: Side,
    price: i64,
    remaining: i64,
    /// What an iceberg shows at a time; 0: everything.
    slice: i64,
    /// What the book shows of it; 0 unless it rests, and of an iceberg between two slices.
    visible: i64,
    standing: Standing,
}

/// What everybody may know of a symbol.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    name: SymbolName,
    status: u8,
    tick_size: i64,
    lot_step: i64,
}

impl Symbol {
    const fn new(name: SymbolName, status: u8, filters: &SymbolFilters) -> Self {
        Self { name, status, tick_size: filters.tick_size, lot_step: filters.lot_step }
    }

    fn message(self, symbol: SymbolId) -> FeedSymbolChanged {
        FeedSymbolChanged {
            symbol,
            status: self.status,
            tick_size: self.tick_size,
            lot_step: self.lot_step,
            name: self.name,
            ..Default::default()
        }
    }
}

type Key = (SymbolId, OrderId);

/// An order that has left its place by a replacement, of which nothing has been told yet: if it comes to
/// rest at once, that is one message and not two.
#[derive(Clone, Copy, Debug)]
struct Moved {
    key: Key,
    side: Side,
    old_price: i64,
    old_quantity: i64,
}

/// The fold's state.
#[derive(Debug, Default)]
pub struct Fold {
    symbols: Vec<Symbol>,
    orders: HashMap<Key, Order>,
    moved: Option<Moved>,
    messages: Messages,
}

impl Fold {
    /// As before the first transaction of a log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As behind the last transaction that the core has applied; and the messages that make its books
    /// of nothing, numbered from 1 on by whoever applies them.
    #[must_use]
    pub fn of_core(core: &Core) -> (Self, Messages) {
        let (mut fold, mut begin) = (Self::new(), Messages::default());
        let symbols = (0..core.counts().symbols).map(SymbolId);
        for (id, symbol) in symbols.filter_map(|id| Some((id, core.symbol(id)?))) {
            let symbol = Symbol::new(symbol.name, symbol.status.to_wire(), &symbol.filters);
            begin.push(&symbol.message(id));
            fold.symbols.push(symbol);
            for order in
                [Side::Buy, Side::Sell].into_iter().flat_map(|side| core.open_orders(id, side))
            {
                fold.insert(&order, Standing::Rests);
                begin.push(&FeedOrderAdded {
                    symbol: id,
                    side: order.side.to_wire(),
                    order_id: order.order_id,
                    price: order.price.0,
                    quantity: order.visible.0,
                    ..Default::default()
                });
            }
            for order in core.waiting_orders(id).chain(core.triggered_orders(id)) {
                fold.insert(&order, Standing::Waits);
            }
        }
        for order in core.taking_orders() {
            let taking = Order {
                side: order.side,
                price: order.price.0,
                remaining: order.remaining.0,
                slice: order.iceberg.0,
                visible: 0,
                standing: Standing::Takes,
            };
            fold.orders.insert((order.symbol, order.order_id), taking);
        }
        (fold, begin)
    }

    fn insert(&mut self, order: &OpenOrder, standing: Standing) {
        let kept = Order {
            side: order.side,
            price: order.price.0,
            remaining: order.remaining.0,
            slice: order.iceberg.0,
            visible: if standing == Standing::Rests { order.visible.0 } else { 0 },
            standing,
        };
        self.orders.insert((order.symbol, order.order_id), kept);
    }

    /// Folds one transaction: the position behind it, its time, its command and the events it caused.
    /// Gives what of it is public, which may be nothing.
    ///
    /// # Errors
    /// [`FoldError`] when it contradicts what was folded before; the fold is of no use then.
    pub fn fold<'a>(
        &mut self,
        position: Position,
        time_ns: u64,
        command: Command<'_>,
        events: impl Iterator<Item = Result<Event<'a>, DecodeError>>,
    ) -> Result<&mut Messages, FoldError> {
        self.messages.clear();
        for event in events {
            self.event(command, event?)?;
        }
        self.tell_moved();
        self.messages.finish(position, time_ns);
        Ok(&mut self.messages)
    }

    fn event(&mut self, command: Command<'_>, event: Event<'_>) -> Result<(), FoldError> {
        if let Event::OrderResult(result) = event {
            return self.result(result);
        }
        self.tell_moved();
        match event {
            Event::OrderAccepted(accepted) => self.accepted(command, accepted),
            Event::Trade(trade) => self.trade(trade),
            Event::OrderCanceled(canceled) => self.canceled(canceled),
            Event::OrderReduced(reduced) => self.reduced(reduced),
            Event::OrderReplaced(replaced) => self.replaced(replaced),
            Event::OrderTriggered(triggered) => self.triggered(triggered),
            Event::OrderRefilled(refilled) => self.refilled(refilled),
            Event::OrderListChanged(changed) => self.list_changed(changed),
            Event::Done(done) => self.done(command, done),
            _ => Ok(()),
        }
    }

    fn accepted(
        &mut self,
        command: Command<'_>,
        accepted: &OrderAccepted,
    ) -> Result<(), FoldError> {
        let order_type = OrderType::from_wire(accepted.order_type)
            .ok_or(FoldError::Number { field: "order type", value: accepted.order_type })?;
        let waits = order_type.is_stop();
        // The acceptance does not say what of an iceberg shows.
        let slice = match command {
            Command::NewOrder(order) => order.iceberg_quantity,
            Command::CancelReplace(order) => order.iceberg_quantity,
            Command::PlaceOrderList(list) if waits => list.stop_iceberg_quantity,
            Command::PlaceOrderList(list) => list.limit_iceberg_quantity,
            _ => 0,
        };
        let order = Order {
            side: side(accepted.side)?,
            price: accepted.price,
            remaining: accepted.quantity,
            slice,
            visible: 0,
            standing: if waits { Standing::Waits } else { Standing::Takes },
        };
        self.orders.insert((accepted.symbol, accepted.order_id), order);
        Ok(())
    }

    fn trade(&mut self, trade: &Trade) -> Result<(), FoldError> {
        let key = (trade.symbol, trade.maker_order_id);
        let maker = self.standing("Trade", key, Standing::Rests)?;
        maker.visible = maker.visible.saturating_sub(trade.quantity);
        maker.remaining = trade.maker_remaining;
        if maker.remaining == 0 {
            self.orders.remove(&key);
        }
        self.messages.push(&FeedTrade {
            symbol: trade.symbol,
            aggressor_side: trade.aggressor_side,
            order_id: trade.maker_order_id,
            price: trade.price,
            quantity: trade.quantity,
            trade_id: trade.trade_id,
            aggregate_trade_id: trade.aggregate_trade_id,
            ..Default::default()
        });
        Ok(())
    }

    fn result(&mut self, result: &OrderResult) -> Result<(), FoldError> {
        let status = OrderStatus::from_wire(result.status)
            .ok_or(FoldError::Number { field: "order status", value: result.status })?;
        let key = (result.symbol, result.order_id);
        let order = self.open("OrderResult", key)?;
        order.remaining = result.quantity.saturating_sub(result.executed_quantity);
        if !status.is_open() {
            self.orders.remove(&key);
        } else if order.standing == Standing::Takes {
            return self.rest("OrderResult", key);
        }
        self.tell_moved();
        Ok(())
    }

    fn canceled(&mut self, canceled: &OrderCanceled) -> Result<(), FoldError> {
        let key = (canceled.symbol, canceled.order_id);
        let order = *self.open("OrderCanceled", key)?;
        self.orders.remove(&key);
        if order.visible > 0 {
            self.deleted(key, order.side, order.price, order.visible);
        }
        Ok(())
    }

    /// An iceberg first gives up what it hides.
    fn reduced(&mut self, reduced: &OrderReduced) -> Result<(), FoldError> {
        let key = (reduced.symbol, reduced.order_id);
        let order = self.open("OrderReduced", key)?;
        order.remaining = reduced.quantity.saturating_sub(reduced.executed_quantity);
        let less = order.visible - order.visible.min(order.remaining);
        order.visible -= less;
        let order = *order;
        if less > 0 {
            self.messages.push(&FeedOrderReduced {
                symbol: key.0,
                side: order.side.to_wire(),
                order_id: key.1,
                price: order.price,
                quantity: less,
                ..Default::default()
            });
        }
        Ok(())
    }

    /// The order leaves its place; its result says where it stands then.
    fn replaced(&mut self, replaced: &OrderReplaced) -> Result<(), FoldError> {
        let key = (replaced.symbol, replaced.order_id);
        let order = self.standing("OrderReplaced", key, Standing::Rests)?;
        let moved =
            Moved { key, side: order.side, old_price: order.price, old_quantity: order.visible };
        order.price = replaced.price;
        order.remaining = replaced.quantity.saturating_sub(replaced.executed_quantity);
        order.visible = 0;
        order.standing = Standing::Takes;
        self.moved = (moved.old_quantity > 0).then_some(moved);
        Ok(())
    }

    fn triggered(&mut self, triggered: &OrderTriggered) -> Result<(), FoldError> {
        let key = (triggered.symbol, triggered.order_id);
        self.standing("OrderTriggered", key, Standing::Waits)?.standing = Standing::Takes;
        Ok(())
    }

    /// An iceberg shows its next slice.
    fn refilled(&mut self, refilled: &OrderRefilled) -> Result<(), FoldError> {
        let key = (refilled.symbol, refilled.order_id);
        let order = self.standing("OrderRefilled", key, Standing::Rests)?;
        order.visible = refilled.visible;
        let order = *order;
        self.added(key, order);
        Ok(())
    }

    /// A list was placed: both orders have been accepted and none has a result of its own; the stop leg
    /// waits, the limit leg rests.
    fn list_changed(&mut self, changed: &OrderListChanged) -> Result<(), FoldError> {
        if changed.list_order_status != ListOrderStatus::Executing.to_wire() {
            return Ok(());
        }
        self.rest("OrderListChanged", (changed.symbol, changed.limit_order_id))
    }

    fn done(&mut self, command: Command<'_>, done: &Done) -> Result<(), FoldError> {
        let id = match command {
            Command::DefineSymbol(made) => {
                self.symbols.push(Symbol::new(made.name, made.status, &made.filters));
                SymbolId(done.id as u32)
            }
            Command::SetSymbolStatus(set) => {
                self.symbol(set.symbol)?.status = set.status;
                set.symbol
            }
            Command::ChangeSymbol(changed) => {
                let symbol = self.symbol(changed.symbol)?;
                *symbol = Symbol::new(symbol.name, symbol.status, &changed.filters);
                changed.symbol
            }
            _ => return Ok(()),
        };
        let message = self.symbol(id)?.message(id);
        self.messages.push(&message);
        Ok(())
    }

    fn symbol(&mut self, id: SymbolId) -> Result<&mut Symbol, FoldError> {
        self.symbols.get_mut(id.0 as usize).ok_or(FoldError::UnknownSymbol(id))
    }

    /// Puts an order that takes into the book.
    fn rest(&mut self, event: &'static str, key: Key) -> Result<(), FoldError> {
        let order = self.standing(event, key, Standing::Takes)?;
        order.standing = Standing::Rests;
        order.visible =
            if order.slice == 0 { order.remaining } else { order.slice.min(order.remaining) };
        let order = *order;
        match self.moved.take_if(|moved| moved.key == key) {
            Some(moved) => self.messages.push(&FeedOrderReplaced {
                symbol: key.0,
                side: order.side.to_wire(),
                order_id: key.1,
                price: order.price,
                quantity: order.visible,
                old_price: moved.old_price,
                old_quantity: moved.old_quantity,
                ..Default::default()
            }),
            None => self.added(key, order),
        }
        Ok(())
    }

    fn added(&mut self, key: Key, order: Order) {
        self.messages.push(&FeedOrderAdded {
            symbol: key.0,
            side: order.side.to_wire(),
            order_id: key.1,
            price: order.price,
            quantity: order.visible,
            ..Default::default()
        });
    }

    fn deleted(&mut self, key: Key, side: Side, price: i64, quantity: i64) {
        self.messages.push(&FeedOrderDeleted {
            symbol: key.0,
            side: side.to_wire(),
            order_id: key.1,
            price,
            quantity,
            ..Default::default()
        });
    }

    /// A replaced order has not come to rest at once: it has left the book.
    fn tell_moved(&mut self) {
        let Some(moved) = self.moved.take() else { return };
        self.deleted(moved.key, moved.side, moved.old_price, moved.old_quantity);
    }

    fn open(&mut self, event: &'static str, key: Key) -> Result<&mut Order, FoldError> {
        let (symbol, order) = key;
        self.orders.get_mut(&key).ok_or(FoldError::NotOpen { event, symbol, order })
    }

    fn standing(
        &mut self,
        event: &'static str,
        key: Key,
        expected: Standing,
    ) -> Result<&mut Order, FoldError> {
        let found = self.open(event, key)?;
        if found.standing == expected {
            return Ok(found);
        }
        let standing = found.standing.name();
        Err(FoldError::Standing { event, symbol: key.0, order: key.1, standing })
    }
}

fn side(number: u8) -> Result<Side, FoldError> {
    Side::from_wire(number).ok_or(FoldError::Number { field: "side", value: number })
}

#[cfg(test)]
mod tests;
