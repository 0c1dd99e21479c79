//! Core and model hold the same, and the money is all there.

use crate::state::{Order, Place};
use crate::world::World;
use touchline_core::OpenOrder;
use touchline_core::book::DepthLevel;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::*;

impl World {
    pub(crate) fn compare(&self) {
        self.compare_balances();
        for symbol in 0..self.model.symbols.len() as u32 {
            for side in [Side::Buy, Side::Sell] {
                self.compare_book(symbol, side);
            }
            self.compare_waiting(symbol);
            let counters = self.venue.core.symbol(SymbolId(symbol)).unwrap().counters;
            let of = self.model.symbol(symbol);
            let found = (counters.order.0, counters.trade.0, counters.aggregate_trade.0);
            assert_eq!(found, (of.orders, of.trades, of.aggregates), "counters of {symbol}");
            assert_eq!(counters.book_update.0, of.updates, "book updates of {symbol}");
        }
        let core = &self.venue.core;
        let head = core.pending_head();
        let head = head.map(|head| (head.symbol.0, head.session.0, head.correlation));
        assert_eq!(head, self.model.head(), "head of the pending work");
        let counts = core.counts();
        assert_eq!(counts.pending_work as usize, self.model.work.len());
        assert_eq!(counts.open_orders as usize, self.model.orders.len());
        assert_eq!(counts.price_levels, self.model.price_levels_in_use());
        for (id, session) in (1..).zip(&self.model.sessions) {
            let view = core.session(SessionId(id)).unwrap();
            let found = (view.epoch.0, view.last_sequence.0, view.connected);
            assert_eq!(found, (session.epoch, session.last, session.connected), "session {id}");
        }
    }

    fn compare_balances(&self) {
        for asset in 0..self.model.assets.len() as u32 {
            let mut sum = 0;
            for id in 0..self.model.accounts.len() as u32 {
                let balance = self.venue.core.balance(AccountId(id), AssetId(asset)).unwrap();
                let (free, locked) = (i128::from(balance.free.0), i128::from(balance.locked.0));
                assert_eq!(free, self.model.free(id, asset), "free of {id}, asset {asset}");
                assert_eq!(locked, self.model.locked(id, asset), "locked of {id}, asset {asset}");
                sum += free + locked;
            }
            let held = self.model.held.get(&asset).copied().unwrap_or(0);
            assert_eq!(sum, held, "all of asset {asset}");
        }
    }

    /// Every order in its queue, and the sums by price.
    fn compare_book(&self, symbol: u32, side: Side) {
        let core = &self.venue.core;
        let expected = self.model.book(symbol, side);
        let found: Vec<_> =
            core.open_orders(SymbolId(symbol), side).map(|it| of_core(&it)).collect();
        let orders: Vec<_> = expected.iter().map(|order| of_model(order)).collect();
        assert_eq!(found, orders, "{side:?} side of {symbol}");
        let mut levels: Vec<(i64, u32, u128, u128)> = Vec::new();
        for order in expected {
            if levels.last().is_none_or(|level| level.0 != order.price) {
                levels.push((order.price, 0, 0, 0));
            }
            let level = levels.last_mut().unwrap();
            level.1 += 1;
            level.2 += order.shown as u128;
            level.3 += (order.open() - order.shown) as u128;
        }
        let of = |level: DepthLevel| (level.price.0, level.orders, level.quantity, level.hidden);
        let found: Vec<_> = core.depth(SymbolId(symbol), side).map(of).collect();
        assert_eq!(found, levels, "depth of {symbol}");
    }

    /// Which of several stops that one trade fires are noted first shows only in the number of prices.
    fn compare_waiting(&self, symbol: u32) {
        let of_core = |stop: OpenOrder| (stop.order_id.0, stop.stop_price.0, of_core(&stop));
        let mut found: Vec<_> =
            self.venue.core.waiting_orders(SymbolId(symbol)).map(of_core).collect();
        let stops = self.model.on(symbol).filter(|order| order.place == Place::Waiting);
        let mut expected: Vec<_> = stops.map(|stop| (stop.id, stop.stop, of_model(stop))).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "stops of {symbol}");
    }
}

/// What is compared of an open order: numbers, owner and session; side, type, time in force; price,
/// quantity, open, visible, iceberg, quote executed, locked; its name.
type Seen = ([u64; 3], [u8; 3], [i64; 7], String);

fn of_core(order: &OpenOrder) -> Seen {
    (
        [order.order_id.0, order.account.0.into(), order.session.0.into()],
        [order.side.to_wire(), order.order_type.to_wire(), order.time_in_force.to_wire()],
        [
            order.price.0,
            order.quantity.0,
            order.remaining.0,
            if order.stop_price.0 > 0 { 0 } else { order.visible.0 },
            order.iceberg.0,
            order.executed_quote.0,
            order.locked.0,
        ],
        order.client_order_id.as_str().to_owned(),
    )
}

fn of_model(order: &Order) -> Seen {
    (
        [order.id, order.account.into(), order.session.into()],
        [order.side.to_wire(), order.order_type.to_wire(), order.time_in_force.to_wire()],
        [
            order.price,
            order.quantity,
            order.open(),
            order.shown,
            order.iceberg,
            order.executed_quote,
            order.locked as i64,
        ],
        order.name.as_str().to_owned(),
    )
}
