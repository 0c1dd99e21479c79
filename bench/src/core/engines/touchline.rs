//! Touchline's own book, cancelled by id or by the place that the reply told. Called through
//! [`super::Engine`].

use std::collections::HashMap;

use touchline_core::book::{
    BookCapacity, Coming, Fill, Handle, NewBookOrder, OrderBook, Placed, Sink,
};
use touchline_protocol::message::enums::{Side, TimeInForce};
use touchline_protocol::units::{OrderId, Price, Qty};

use super::super::flows::{Capacity, Flow, LOOK_EVERY};
use super::super::operation::{Depth, Kind, Operation, Reports, Tally};
use super::Engine;
use crate::interrupt::is_interrupted;

struct Fills<'reports, R> {
    taker: u32,
    reports: &'reports mut R,
}

impl<R: Reports> Sink for Fills<'_, R> {
    #[inline]
    fn fill(&mut self, fill: &Fill) {
        let quantity = fill.quantity.0.cast_unsigned();
        self.reports.fill(fill.maker_id.0 as u32, self.taker, fill.price.0, quantity);
    }
}

fn new_book(capacity: &Capacity, finds_by_id: bool) -> OrderBook {
    let (orders, levels) = (capacity.orders + 1, capacity.levels + 1);
    OrderBook::new(&BookCapacity { orders, levels, tick: Price(1), finds_by_id })
}

fn place_of(operation: &Operation) -> Handle {
    Handle::from_number(operation.place)
}

#[inline]
fn place<R: Reports>(book: &mut OrderBook, operation: &Operation, reports: &mut R) -> Placed {
    let time_in_force =
        if operation.kind == Kind::Ioc { TimeInForce::Ioc } else { TimeInForce::Gtc };
    let order = NewBookOrder {
        id: OrderId(u64::from(operation.id)),
        owner: 0,
        side: operation.side,
        time_in_force,
        price: Price(operation.price),
        quantity: Qty(i64::from(operation.quantity)),
    };
    let mut fills = Fills { taker: operation.id, reports };
    let placed = book.place(&order, &mut fills);
    let placed = placed.unwrap_or(Placed::Expired { remaining: Qty(-1) });
    let open = match placed {
        Placed::Filled => 0,
        Placed::Rests { remaining, .. } | Placed::Expired { remaining } => remaining.0,
    };
    reports.done(operation.id, open.cast_unsigned());
    placed
}

#[inline]
fn reduce<R: Reports>(book: &mut OrderBook, operation: &Operation, reports: &mut R) {
    let left = Qty(i64::from(operation.quantity));
    let refused = book.reduce(OrderId(u64::from(operation.id)), left).is_err();
    reports.done(operation.id, u64::from(refused));
}

fn depth(book: &OrderBook) -> Depth {
    let side = |side| {
        book.depth(side)
            .map(|level| (level.price.0, u64::try_from(level.quantity).unwrap_or(u64::MAX)))
            .collect()
    };
    Depth { bids: side(Side::Buy), asks: side(Side::Sell) }
}

/// The flow with the places that a client would have got with the replies to its orders.
#[must_use]
pub fn with_places(mut flow: Flow) -> Flow {
    let mut book = new_book(&flow.capacity, true);
    let mut places = HashMap::new();
    for (step, operation) in flow.prefill.iter_mut().chain(&mut flow.measured).enumerate() {
        // Whoever wants the flow ends before it is measured.
        if step.is_multiple_of(LOOK_EVERY) && is_interrupted() {
            break;
        }
        operation.place = places.get(&operation.id).copied().unwrap_or_default();
        if matches!(operation.kind, Kind::Cancel | Kind::Modify) {
            // The reference has found the order to rest; a book that errs is found out when measured.
            let _known = book.cancel(OrderId(u64::from(operation.id)));
        }
        match operation.kind {
            Kind::Cancel => {}
            Kind::Reduce => reduce(&mut book, operation, &mut Tally::default()),
            Kind::Add | Kind::Ioc | Kind::Modify => {
                let placed = place(&mut book, operation, &mut Tally::default());
                if let Placed::Rests { handle, .. } = placed {
                    places.insert(operation.id, handle.number());
                }
            }
        }
    }
    flow
}

#[inline]
fn coming(operation: &Operation) -> Coming {
    Coming {
        is_new: matches!(operation.kind, Kind::Add | Kind::Ioc),
        id: OrderId(u64::from(operation.id)),
        handle: place_of(operation),
        side: operation.side,
        price: Price(operation.price),
    }
}

/// Cancels by id.
#[derive(Debug)]
pub struct Touchline(OrderBook);

impl Engine for Touchline {
    fn new(capacity: &Capacity) -> Self {
        Self(new_book(capacity, true))
    }

    #[inline]
    fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        let id = OrderId(u64::from(operation.id));
        match operation.kind {
            Kind::Cancel => {
                let unknown = self.0.cancel(id).is_err();
                return reports.done(operation.id, u64::from(unknown));
            }
            Kind::Reduce => return reduce(&mut self.0, operation, reports),
            Kind::Modify if self.0.cancel(id).is_err() => return,
            Kind::Add | Kind::Ioc | Kind::Modify => {}
        }
        place(&mut self.0, operation, reports);
    }

    #[inline]
    fn look_ahead(&mut self, operations: &[Operation]) {
        self.0.look_ahead(operations.iter().map(coming));
    }

    fn depth(&self) -> Depth {
        depth(&self.0)
    }
}

/// Cancels by the place that the reply told, checked against the id; nothing is found by id.
#[derive(Debug)]
pub struct TouchlineHandles(OrderBook);

impl Engine for TouchlineHandles {
    fn new(capacity: &Capacity) -> Self {
        Self(new_book(capacity, false))
    }

    #[inline]
    fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        let id = OrderId(u64::from(operation.id));
        let handle = place_of(operation);
        match operation.kind {
            Kind::Cancel => {
                let unknown = self.0.cancel_at(handle, id).is_err();
                return reports.done(operation.id, u64::from(unknown));
            }
            Kind::Reduce => {
                let left = Qty(i64::from(operation.quantity));
                let refused = self.0.reduce_at(handle, id, left).is_err();
                return reports.done(operation.id, u64::from(refused));
            }
            Kind::Modify if self.0.cancel_at(handle, id).is_err() => return,
            Kind::Add | Kind::Ioc | Kind::Modify => {}
        }
        place(&mut self.0, operation, reports);
    }

    #[inline]
    fn look_ahead(&mut self, operations: &[Operation]) {
        self.0.look_ahead(operations.iter().map(coming));
    }

    fn depth(&self) -> Depth {
        depth(&self.0)
    }
}
