//! Core and model hold the same, and the money is all there.

use crate::state::{Order, Place};
use crate::world::World;
use touchline_core::OpenOrder;
use touchline_core::book::DepthLevel;
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::units::*;

impl World {
    pub(crate) fn compare(&self) {
        self.compare_balances();
        for symbol in 0..self.model.symbols.len() as u32 {
            for side in [Side::Buy, Side::Sell] {
                self.compare_book(symbol, side);
            }
            self.compare_waiting(symbol);
            self.compare_lists(symbol);
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
        self.compare_sessions();
        self.compare_accounts();
    }

    fn compare_sessions(&self) {
        for (id, session) in (1..).zip(&self.model.sessions) {
            let view = self.venue.core.session(SessionId(id)).unwrap();
            let found = (view.epoch.0, view.last_sequence.0);
            assert_eq!(found, (session.epoch, session.last), "session {id}");
            let found = (view.connected, view.cancel_on_disconnect);
            assert_eq!(found, (session.connected, session.cancel_on_disconnect), "session {id}");
        }
    }

    fn compare_accounts(&self) {
        for (id, account) in (0..).zip(&self.model.accounts) {
            let view = self.venue.core.account(AccountId(id)).unwrap();
            assert_eq!(view.name, account.name);
            if id > 0 {
                let found = (view.flags, view.permissions, view.killed);
                assert_eq!(found, (account.flags, account.permissions, account.killed), "of {id}");
            }
            for symbol in 0..self.model.symbols.len() as u32 {
                let found = self.venue.core.fee_rates(AccountId(id), SymbolId(symbol)).unwrap();
                let rates = self.model.rates(id, symbol);
                let expected = [rates.maker, rates.taker, rates.buyer, rates.seller];
                let found = [found.maker, found.taker, found.buyer, found.seller];
                assert_eq!(found, expected, "rates of {id} on {symbol}");
                let open = self.venue.core.open_order_count(AccountId(id), SymbolId(symbol));
                assert_eq!(open as usize, self.model.own(id, symbol).count(), "open of {id}");
            }
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

    fn compare_lists(&self, symbol: u32) {
        let of_side = |side| self.venue.core.open_order_lists(SymbolId(symbol), side);
        let found = of_side(Side::Buy).count() + of_side(Side::Sell).count();
        let lists: Vec<_> = self.model.lists.iter().filter(|list| list.symbol == symbol).collect();
        assert_eq!(found, lists.len(), "lists of {symbol}");
        for list in lists {
            let found = self.venue.core.open_order_list(OrderListId(list.id)).unwrap();
            assert_eq!(found.account.0, list.account, "list {}", list.id);
        }
        assert_eq!(self.venue.core.has_pending(SymbolId(symbol)), self.model.is_pending(symbol));
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

/// What is compared of an open order: numbers, owner and session; side, type, time in force, mode;
/// price, quantity, open, visible, iceberg, quote executed, locked, list; its name.
type Seen = ([u64; 3], [u8; 4], [i64; 8], String);

fn of_core(order: &OpenOrder) -> Seen {
    (
        [order.order_id.0, order.account.0.into(), order.session.0.into()],
        [
            order.side.to_wire(),
            order.order_type.to_wire(),
            order.time_in_force.to_wire(),
            order.self_trade_prevention.map_or(0, SelfTradePrevention::to_wire),
        ],
        [
            order.price.0,
            order.quantity.0,
            order.remaining.0,
            if order.stop_price.0 > 0 { 0 } else { order.visible.0 },
            order.iceberg.0,
            order.executed_quote.0,
            order.locked.0,
            order.order_list_id.0,
        ],
        order.client_order_id.as_str().to_owned(),
    )
}

fn of_model(order: &Order) -> Seen {
    (
        [order.id, order.account.into(), order.session.into()],
        [
            order.side.to_wire(),
            order.order_type.to_wire(),
            order.time_in_force.to_wire(),
            order.prevention,
        ],
        [
            order.price,
            order.quantity,
            order.open(),
            order.shown,
            order.iceberg,
            order.executed_quote,
            order.locked as i64,
            order.list,
        ],
        order.name.as_str().to_owned(),
    )
}
