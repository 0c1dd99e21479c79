//! The state hash: equal for two venues exactly when they behave alike from here on (but for
//! collisions). Called by snapshotters, replicas and replay checks; it takes time in proportion to the
//! size of the venue.

use crate::book::Handle;
use crate::hash::StateHash;
use crate::limits;
use crate::orders::HAS_OWN_LOCK;
use crate::pool::named;
use crate::{Core, RecordLimits};
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::units::{AccountId, SymbolId};

impl Core {
    /// Hash of everything that is state: rules, limits, time, counters, assets, symbols, accounts with
    /// balances and order counts, keys, sessions, pending work, and each open order with its priority,
    /// by symbol and side in the order in which it would trade; and records with their limits, if any are
    /// set. Slots, tables, free lists and spare
    /// room are not part of it.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        let mut hash = StateHash::new();
        hash.word(u64::from(self.rules));
        for limit in limits::by_number(&self.limits) {
            hash.word(u64::from(limit));
        }
        hash.word(self.last_time_ns);
        hash.word(self.engine_sequence.0);
        self.assets.hash(&mut hash);
        self.symbols.hash(self.rules, &mut hash);
        self.accounts.hash(self.rules, self.assets.len(), &mut hash);
        self.keys.hash(&mut hash);
        self.sessions.hash(&mut hash);
        self.pending.hash(self.rules, &mut hash);
        for book in &self.symbols.books {
            for side in [Side::Buy, Side::Sell] {
                for order in book.orders(&self.pools, side) {
                    let record = self.orders.record(order.handle);
                    hash.word(order.id.0);
                    hash.pair(order.owner, record.session.0);
                    hash.signed(order.price.0);
                    hash.signed(order.remaining.0);
                    hash.signed(record.quantity);
                    hash.signed(record.executed_quote);
                    hash.word(record.priority.0);
                    // No prevention counts as 0: what an order of rules version 1 has.
                    let kind = [
                        record.kind.order_type.to_wire(),
                        record.kind.time_in_force.to_wire(),
                        record.prevention.map_or(0, SelfTradePrevention::to_wire),
                        0,
                    ];
                    hash.word(u64::from(u32::from_le_bytes(kind)));
                    hash.text(self.orders.client_order_id(order.handle));
                    if self.rules >= 2 {
                        hash.word(self.orders.placed(order.handle).0);
                    }
                    if record.flags != 0 {
                        let details = self.orders.details(order.handle);
                        hash.signed(details.iceberg);
                        hash.signed(details.hidden);
                        if record.flags & HAS_OWN_LOCK != 0 {
                            hash.signed(details.own_lock);
                        }
                        self.hash_list(order.handle, &mut hash);
                    }
                }
                // No order has number 0: the end of a side cannot be taken for an order.
                hash.word(0);
            }
        }
        if self.rules >= 2 {
            self.hash_waiting(&mut hash);
        }
        if self.record_limits != RecordLimits::default() {
            hash.pair(self.record_limits.records, self.record_limits.blocks);
            self.records.hash(&mut hash);
        }
        hash.finish()
    }

    /// The list that an order belongs to, and whether that is open. Which orders it has follows from
    /// its number, which both carry.
    fn hash_list(&self, handle: Handle, hash: &mut StateHash) {
        hash.signed(self.orders.order_list_id(handle).0);
        match self.orders.list_of(handle) {
            Some(slot) => hash.text(&self.orders.lists.get(slot).client_order_id),
            None => hash.word(0),
        }
        hash.word(u64::from(self.orders.record(handle).flags));
    }

    /// The exchange's filters, the number of lists, where pending work goes on, and the stops that wait:
    /// by stop price, those of one price by placement; triggered ones summed up, since the shape of
    /// their heap is no state.
    fn hash_waiting(&self, hash: &mut StateHash) {
        hash.pair(self.max_orders, self.max_algo_orders);
        self.orders.lists.hash(hash);
        self.hash_pair_fees(hash);
        for place in self.pending.iter().filter_map(|pending| named(pending.place())) {
            hash.word(self.orders.placed_at(place).0);
        }
        for (symbol, triggers) in self.symbols.list.iter().zip(&self.symbols.triggers) {
            for side in [Side::Buy, Side::Sell] {
                for order in triggers.orders(&self.pools, side) {
                    hash.word(self.hash_of_stop(order.handle));
                }
                hash.word(0);
            }
            let fired = self.pools.fired(symbol.fired);
            let of = |&at: &u32| self.hash_of_stop(Handle(at));
            hash.word(fired.iter().map(of).fold(0, u64::wrapping_add));
        }
    }

    /// Rates of accounts on symbols, in the order of both, whatever their slots are.
    fn hash_pair_fees(&self, hash: &mut StateHash) {
        for (id, account) in (0..).zip(&self.accounts.list) {
            if account.paired_rates == 0 {
                continue;
            }
            for symbol in (0..self.symbols.len()).map(SymbolId) {
                if let Some(rates) = self.accounts.pair_fees.get(AccountId(id), symbol) {
                    hash.pair(id, symbol.0);
                    rates.hash(hash);
                }
            }
        }
    }

    fn hash_of_stop(&self, handle: Handle) -> u64 {
        let mut hash = StateHash::new();
        let order = self.orders.view(&self.pools, handle);
        let record = self.orders.record(handle);
        let details = self.orders.details(handle);
        hash.word(order.id.0);
        hash.pair(order.owner, record.session.0);
        for value in [
            order.remaining.0,
            record.quantity,
            details.iceberg,
            details.stop_price,
            details.limit_price,
        ] {
            hash.signed(value);
        }
        hash.word(details.fired_by);
        hash.word(record.priority.0);
        hash.word(self.orders.placed(handle).0);
        hash.word(u64::from_le_bytes([
            record.kind.side.to_wire(),
            record.kind.order_type.to_wire(),
            record.kind.time_in_force.to_wire(),
            record.prevention.map_or(0, SelfTradePrevention::to_wire),
            0,
            0,
            0,
            0,
        ]));
        hash.text(self.orders.client_order_id(handle));
        self.hash_list(handle, &mut hash);
        hash.finish()
    }
}
