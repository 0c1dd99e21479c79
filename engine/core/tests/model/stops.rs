//! The model: pending work, and stops from the trade that reaches them to their turn (facts 5.3).

use crate::fields::fits_market_lot;
use crate::matching::STEPS_OTHER_LEG;
use crate::state::{
    Asked, Model, Order, Outcome, Place, Sweep, Whose, Work, check, fires_upwards, has_limit,
    is_reached, up,
};
use crate::venue::Owned;
use touchline_protocol::message::command::EVERY;
use touchline_protocol::message::enums::{OrderStatus, RejectReason as Why, Side, TimeInForce};
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

/// Steps of a transaction's share: a stop is noted as fired, and it has its turn.
const STEPS_COLLECT: u32 = 1;
const STEPS_TRIGGER: u32 = 2;

/// True when the events tell that an order on the symbol of the transaction has expired.
fn has_expired(id: u64, events: &[Owned]) -> bool {
    let expired = OrderStatus::Expired.to_wire();
    events.iter().any(|event| match event {
        Owned::Result(result) => result.order_id.0 == id && result.status == expired,
        _ => false,
    })
}

impl Model {
    /// True if a symbol has something to be done before its next command; a sweep over all symbols
    /// holds every one of them.
    pub(crate) fn is_pending(&self, symbol: u32) -> bool {
        self.work.iter().any(|work| work.symbol().is_none_or(|of| of == symbol))
    }

    pub(crate) fn run_pending(&mut self) -> Outcome {
        check(!self.work.is_empty(), Why::UnexpectedMessage)?;
        let mut steps = self.limits.max_steps;
        let mut events = Vec::new();
        let turn = self.turn();
        let (symbol, rest) = match self.work.remove(turn).expect("not empty") {
            Work::Sweep(sweep) => {
                let symbol = sweep.symbol;
                if let Some(rest) = self.run_sweep(sweep, &mut steps, &mut events) {
                    self.work.insert(turn, Work::Sweep(rest));
                } else if let Some(symbol) = symbol.filter(|symbol| self.has_fired(*symbol)) {
                    // It began in a halt.
                    self.note("a sweep leaves stops their turn");
                    self.work.insert(turn, Work::Stops(symbol));
                }
                return Ok(events);
            }
            Work::Aggressor(order) => {
                let symbol = order.symbol;
                if self.ends_by_kill(&order) {
                    self.note("an aggressor of a killed account ends");
                    self.finish(*order, true, &mut events);
                    (symbol, None)
                } else {
                    (symbol, self.take(*order, false, &mut steps, &mut events))
                }
            }
            Work::Stops(symbol) => (symbol, self.run_fired(symbol, &mut steps, &mut events)),
        };
        if let Some(order) = rest {
            self.work.insert(turn, Work::Aggressor(Box::new(order)));
        } else if self.has_fired(symbol) {
            self.work.insert(turn, Work::Stops(symbol));
        }
        Ok(events)
    }

    /// By rules 5 a kill whose sweep is still to come ends an aggressor also if it was taken back, but none that is
    /// FOK and partly executed.
    fn ends_by_kill(&mut self, order: &Order) -> bool {
        let killed = self.account(order.account).killed;
        if self.rules < 5 {
            return killed;
        }
        let whose = Whose::Account(order.account);
        let kill = |work: &Work| matches!(work, Work::Sweep(sweep) if sweep.urgent && sweep.whose == whose);
        let killed = killed || self.work.iter().any(kill);
        let begun = order.time_in_force == TimeInForce::Fok && order.executed > 0;
        if killed && begun {
            self.note("a killed account's FOK goes on");
        }
        killed && !begun
    }

    /// Notes which stops the last trade has reached, one step each. Those that fire upwards first, then
    /// by how far the price went through them: when the steps end in between, those left count as
    /// waiting, which shows in the number of prices in use.
    pub(crate) fn collect(&mut self, symbol: u32, steps: &mut u32) {
        let trade = self.symbol(symbol).trades;
        let turn = |stop: &Order| {
            let upwards = fires_upwards(stop.order_type, stop.side);
            (!upwards, if upwards { stop.stop } else { -stop.stop }, stop.id)
        };
        if !self.lets_stops_fire(symbol) {
            if self.on(symbol).any(|stop| self.is_reached(stop)) {
                self.note("a stop is reached in a halt");
            }
            return;
        }
        while *steps > 0 {
            let reached = self.on(symbol).filter(|stop| self.is_reached(stop));
            let Some(id) = reached.min_by_key(|stop| turn(stop)).map(|stop| stop.id) else { break };
            self.find_mut(symbol, id).expect("found").place = Place::Fired { trade };
            *steps = steps.saturating_sub(STEPS_COLLECT);
        }
    }

    /// By rules 5 nothing fires in a halt.
    fn lets_stops_fire(&self, symbol: u32) -> bool {
        self.rules < 5 || self.symbol(symbol).is_trading()
    }

    /// A stop that waits at a price that the last trade reaches.
    fn is_reached(&self, order: &Order) -> bool {
        let last = self.symbol(order.symbol).last;
        order.place == Place::Waiting && is_reached(order.order_type, order.side, order.stop, last)
    }

    /// True if a symbol has stops that have not had their turn yet.
    pub(crate) fn has_fired(&self, symbol: u32) -> bool {
        let fires = self.lets_stops_fire(symbol);
        self.on(symbol).any(|order| match order.place {
            Place::Fired { .. } => true,
            _ => fires && self.is_reached(order),
        })
    }

    /// Gives the fired stops their turn, by the trade that reached them, then by placement.
    fn run_fired(
        &mut self,
        symbol: u32,
        steps: &mut u32,
        events: &mut Vec<Owned>,
    ) -> Option<Order> {
        loop {
            self.collect(symbol, steps);
            let fired = self.on(symbol).filter_map(|order| match order.place {
                Place::Fired { trade } => Some((trade, order.id)),
                _ => None,
            });
            let Some((_, id)) = fired.min().filter(|_| *steps > 0) else { break };
            *steps = steps.saturating_sub(STEPS_TRIGGER);
            let mut order = self.take_out(symbol, id);
            if self.limit_leg_gives_way(&mut order, events) {
                *steps = steps.saturating_sub(STEPS_OTHER_LEG);
            }
            (order.stop, order.place, order.mode) = (0, Place::Taking, self.prevention(&order));
            // Nobody waits for it; its session hears of it unasked.
            order.asked_by = Asked { session: order.session, ..Asked::default() };
            let needed = self.needed_when_triggered(&order);
            if needed.is_none() {
                self.note("a stop cannot be executed at its turn");
            }
            if !events.is_empty() {
                self.note("several stops in one transaction");
            }
            let more = needed.map_or(0, |needed| needed - order.locked);
            self.release(&order, -more);
            order.locked += more;
            events.push(Owned::Triggered(OrderTriggered {
                order_id: OrderId(id),
                account: AccountId(order.account),
                symbol: SymbolId(symbol),
                locked: more as i64,
                book_update_id: BookUpdateId(self.symbol(symbol).updates),
                ..Default::default()
            }));
            let fok = order.time_in_force == TimeInForce::Fok;
            let buys_at_any_price = !has_limit(order.order_type) && order.side == Side::Buy;
            if needed.is_none() || fok && !self.fills_wholly(&order) {
                self.finish(order, true, events);
                if fok && self.rules > 4 || buys_at_any_price && self.rules > 5 {
                    // So much may have been looked at for it that nothing comes behind it.
                    *steps = 0;
                }
            } else if let Some(rest) = self.take(order, false, steps, events) {
                return Some(rest);
            } else if buys_at_any_price && self.rules > 6 && has_expired(id, events) {
                self.note("a MARKET buy is the last of its transaction that might take");
                *steps = 0;
            }
        }
        if events.is_empty() {
            events.push(Owned::Continues(OrderContinues {
                symbol: SymbolId(symbol),
                book_update_id: BookUpdateId(self.symbol(symbol).updates),
                ..Default::default()
            }));
        }
        None
    }

    /// What a stop must have locked at its turn, or nothing if it cannot be executed: one without a limit
    /// becomes MARKET, for which MARKET_LOT_SIZE and the book's cost are judged now (facts 4, 6).
    fn needed_when_triggered(&self, order: &Order) -> Option<i128> {
        if has_limit(order.order_type) {
            let buys = order.side == Side::Buy;
            return Some(if buys { up(order.price, order.open()) } else { order.open().into() });
        }
        if !fits_market_lot(&self.symbol(order.symbol).filters, order.quantity) {
            return None;
        }
        if order.side == Side::Sell {
            return Some(order.open().into());
        }
        let cost = self.cost(order.symbol, order.quantity);
        let quote = self.symbol(order.symbol).quote;
        (cost <= self.free(order.account, quote) + order.locked).then_some(cost)
    }

    /// An account with an order that waits for its turn, if there is one.
    pub(crate) fn account_that_waits(&self) -> Option<u32> {
        let aggressor = self.work.iter().find_map(|work| match work {
            Work::Aggressor(order) => Some(order.account),
            _ => None,
        });
        let fired = |order: &&Order| matches!(order.place, Place::Fired { .. });
        aggressor.or_else(|| self.orders.iter().find(fired).map(|order| order.account))
    }

    /// Who waits for the head of the pending work: its symbol, session and correlation.
    pub(crate) fn head(&self) -> Option<(u32, u32, u64)> {
        self.work.get(self.turn()).map(|work| match work {
            Work::Aggressor(order) => {
                (order.symbol, order.asked_by.session, order.asked_by.correlation)
            }
            Work::Stops(symbol) => (*symbol, 0, 0),
            Work::Sweep(Sweep { symbol, asked_by, .. }) => {
                (symbol.unwrap_or(EVERY), asked_by.session, asked_by.correlation)
            }
        })
    }
}
