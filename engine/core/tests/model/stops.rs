//! The naive venue: pending work, and stops from being triggered to their turn.

use crate::naive::*;
use crate::venue::Owned;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

impl NaiveVenue {
    pub(crate) fn run_pending(&mut self, time: u64) -> Outcome {
        let (symbol, order) = self.pending.pop_front().ok_or((Why::UnexpectedMessage, 0))?;
        let mut events = Vec::new();
        let mut steps = self.limits.max_steps;
        let rest = match order {
            Some(order) => self.advance(symbol, order, time, &mut steps, &mut events),
            None => self.run_triggered(symbol, time, &mut steps, &mut events),
        };
        if rest.is_some() || self.symbols[symbol as usize].has_triggered() {
            self.pending.push_front((symbol, rest));
        }
        Ok(events)
    }

    pub(crate) fn collect(&mut self, id: u32, steps: &mut u32) {
        let symbol = &mut self.symbols[id as usize];
        // Those that fire upwards first, then by how far the price went through them: which stops are
        // left for a later transaction decides how many price levels are in use until then.
        let turn = |stop: &NaiveOrder| {
            let fires_upwards = upwards(stop.order_type, stop.side);
            (!fires_upwards, if fires_upwards { stop.stop } else { -stop.stop }, stop.id)
        };
        while *steps > 0
            && let Some(at) = (0..symbol.waiting.len())
                .filter(|&at| symbol.waiting[at].is_reached(symbol.last))
                .min_by_key(|&at| turn(&symbol.waiting[at]))
        {
            let mut stop = symbol.waiting.remove(at);
            stop.fired_by = symbol.trades;
            symbol.fired.push(stop);
            *steps -= 1;
        }
    }

    fn run_triggered(
        &mut self,
        id: u32,
        time: u64,
        steps: &mut u32,
        events: &mut Vec<Owned>,
    ) -> Option<NaiveOrder> {
        loop {
            self.collect(id, steps);
            let symbol = &mut self.symbols[id as usize];
            let first = (0..symbol.fired.len())
                .min_by_key(|&at| (symbol.fired[at].fired_by, symbol.fired[at].id));
            let Some(first) = first.filter(|_| *steps > 0) else { break };
            let mut order = symbol.fired.remove(first);
            let updates = symbol.updates;
            (order.counts, order.correlation, order.stop) = ([0; 2], 0, 0);
            *steps = steps.saturating_sub(2);
            let needed = self.needed_when_triggered(id, &order);
            let more = needed.map_or(0, |needed| needed - order.locked);
            let asset = self.symbols[id as usize].paid_with(order.side);
            self.lock(order.account, asset, more);
            order.locked += more;
            events.push(Owned::Triggered(OrderTriggered {
                order_id: OrderId(order.id),
                account: AccountId(order.account),
                symbol: SymbolId(id),
                locked: more as i64,
                book_update_id: BookUpdateId(updates),
                ..Default::default()
            }));
            let there = self.symbols[id as usize].resting(order.side, order.price);
            let kill = order.time_in_force == FOK && there < i128::from(order.quantity);
            if needed.is_none() || kill {
                self.finish(id, order, events);
            } else if let Some(order) = self.advance(id, order, time, steps, events) {
                return Some(order);
            }
        }
        if events.is_empty() {
            events.push(Owned::Continues(OrderContinues {
                symbol: SymbolId(id),
                book_update_id: BookUpdateId(self.symbols[id as usize].updates),
                ..Default::default()
            }));
        }
        None
    }

    fn needed_when_triggered(&self, id: u32, order: &NaiveOrder) -> Option<i128> {
        let symbol = &self.symbols[id as usize];
        let f = &symbol.filters;
        if order.price > 0 {
            return Some(order.locked);
        }
        if !fits(order.quantity, f.market_lot_min, f.market_lot_max, f.market_lot_step) {
            return None;
        }
        if order.side == SELL {
            return Some(order.locked);
        }
        let cost = symbol.cost(order.quantity);
        let free = self.accounts[order.account as usize].free.get(&symbol.quote);
        (cost <= free.copied().unwrap_or(0) + order.locked).then_some(cost)
    }
}
