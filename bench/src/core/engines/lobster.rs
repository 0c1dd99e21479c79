//! `lobster` 0.7.0: BTreeMap of prices to vectors of orders in an arena, ids in a hash map. It has no
//! IOC and no modification: both are a limit order or a cancel of what is left. Called through
//! [`super::Engine`].

use lobster::{OrderBook, OrderEvent, OrderType};
use touchline_protocol::message::enums::Side;

use super::super::flows::{Capacity, Flow};
use super::super::operation::{Depth, Kind, Operation, Reports};
use super::Engine;

/// The book.
#[derive(Debug)]
pub struct Lobster(OrderBook);

impl Lobster {
    #[inline]
    fn place<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        let id = u128::from(operation.id);
        let side = match operation.side {
            Side::Buy => lobster::Side::Bid,
            Side::Sell => lobster::Side::Ask,
        };
        let qty = u64::from(operation.quantity);
        let price = operation.price.cast_unsigned();
        let mut open = qty;
        match self.0.execute(OrderType::Limit { id, side, qty, price }) {
            OrderEvent::Filled { filled_qty, fills, .. }
            | OrderEvent::PartiallyFilled { filled_qty, fills, .. } => {
                open -= filled_qty;
                for fill in &fills {
                    let maker = fill.order_2 as u32;
                    reports.fill(maker, operation.id, fill.price.cast_signed(), fill.qty);
                }
            }
            _ => {}
        }
        if operation.kind == Kind::Ioc && open > 0 {
            self.0.execute(OrderType::Cancel { id });
        }
        reports.done(operation.id, open);
    }
}

impl Engine for Lobster {
    fn new(capacity: &Capacity) -> Self {
        Self(OrderBook::new(capacity.orders as usize, 10, false))
    }

    /// It cannot reduce an order in its place.
    fn suits(flow: &Flow) -> bool {
        flow.measured.iter().all(|operation| operation.kind != Kind::Reduce)
    }

    #[inline]
    fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        if matches!(operation.kind, Kind::Cancel | Kind::Modify) {
            self.0.execute(OrderType::Cancel { id: u128::from(operation.id) });
        }
        match operation.kind {
            Kind::Cancel | Kind::Reduce => reports.done(operation.id, 0),
            _ => self.place(operation, reports),
        }
    }

    fn depth(&self) -> Depth {
        let depth = self.0.depth(0);
        let levels = |levels: &[lobster::BookLevel]| {
            levels.iter().map(|level| (level.price.cast_signed(), level.qty)).collect::<Vec<_>>()
        };
        let mut bids = levels(&depth.bids);
        bids.reverse();
        Depth { bids, asks: levels(&depth.asks) }
    }
}
