//! Checks that the whole venue fits together. Called by tests and by replay checks after a command,
//! never while trading: it allocates, and takes time in proportion to the size of the venue.

use crate::Core;
use crate::money;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{AccountId, AssetId, SymbolId};

/// What open and pending orders have locked, by account and asset.
type Locks = BTreeMap<(u32, u32), i64>;

impl Core {
    /// Checks books, tables, counts, locks and the conservation of money.
    ///
    /// # Errors
    /// The first thing that does not fit, with its numbers.
    pub fn validate(&self) -> Result<(), String> {
        let mut locks = Locks::new();
        self.validate_books(&mut locks)?;
        self.validate_pending(&mut locks)?;
        self.validate_money(&locks)?;
        self.validate_capacities()
    }

    fn validate_books(&self, locks: &mut Locks) -> Result<(), String> {
        let mut counts = crate::book::Counts::default();
        let mut named = 0;
        let mut open = BTreeMap::<(u32, u32), u32>::new();
        for (symbol, book) in (0..).zip(&self.symbols.books) {
            let of_book = book.validate(&self.pools)?;
            counts.orders += of_book.orders;
            counts.levels += of_book.levels;
            for side in [Side::Buy, Side::Sell] {
                self.validate_side(SymbolId(symbol), side, locks)?;
                for order in self.open_orders(SymbolId(symbol), side) {
                    named += u32::from(!order.client_order_id.is_empty());
                    *open.entry((order.account.0, symbol)).or_default() += 1;
                }
            }
        }
        self.pools.validate(counts)?;
        if self.orders.table_lengths() != (counts.orders, named) {
            let found = self.orders.table_lengths();
            return Err(format!("tables have {found:?} for {counts:?}, {named} of them named"));
        }
        for account in 0..self.accounts.len() {
            for symbol in 0..self.symbols.len() {
                let found = self.orders.open_counts(AccountId(account), SymbolId(symbol)).all;
                let expected = open.get(&(account, symbol)).copied().unwrap_or(0);
                if found != expected {
                    return Err(format!(
                        "account {account} has {expected} orders on {symbol}, counted {found}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn validate_side(&self, id: SymbolId, side: Side, locks: &mut Locks) -> Result<(), String> {
        let symbol = &self.symbols.list[id.0 as usize];
        let mut before = None;
        for order in self.open_orders(id, side) {
            let name = &order.client_order_id;
            let found = self.open_order(id, order.order_id);
            let by_name = self.find_open_order(order.account, id, name);
            if found != Some(order) || !name.is_empty() && by_name != Some(order) {
                return Err(format!("open order {} of {id} is not found", order.order_id));
            }
            if order.symbol != id || order.side != side || order.remaining > order.quantity {
                return Err(format!("order {} of {id} is recorded wrongly", order.order_id));
            }
            if order.order_id > symbol.counters.order {
                return Err(format!("order {} of {id} was never given out", order.order_id));
            }
            if before
                .is_some_and(|(price, priority)| price == order.price && priority > order.priority)
            {
                return Err(format!("order {} of {id} lost its place", order.order_id));
            }
            before = Some((order.price, order.priority));
            let needed = match side {
                Side::Sell => Some(order.remaining.0),
                Side::Buy => money::quote_rounded_up(order.price.0, order.remaining.0),
            };
            if needed.is_none_or(|needed| order.locked.0 < needed) {
                return Err(format!("order {} locks {} only", order.order_id, order.locked));
            }
            *locks.entry((order.account.0, symbol.paid_with(side).0)).or_default() +=
                order.locked.0;
        }
        Ok(())
    }

    fn validate_pending(&self, locks: &mut Locks) -> Result<(), String> {
        let mut may_rest = 0;
        let mut seen = BTreeMap::new();
        for active in self.pending.iter() {
            let symbol = &self.symbols.list[active.symbol.0 as usize];
            let book = &self.symbols.books[active.symbol.0 as usize];
            let aggressor = active.aggressor();
            let crosses = book.crosses(aggressor.side, aggressor.limit);
            if active.remaining <= 0 || !symbol.has_pending || !crosses {
                return Err(format!("order {} has nothing to continue", active.order_id));
            }
            if seen.insert(active.symbol, ()).is_some() {
                return Err(format!("symbol {} has two pending orders", active.symbol));
            }
            may_rest += u32::from(active.may_rest());
            let asset = symbol.paid_with(active.kind.side);
            *locks.entry((active.account.0, asset.0)).or_default() += active.still_locked();
        }
        let flagged = self.symbols.list.iter().filter(|symbol| symbol.has_pending).count();
        if flagged != seen.len() || may_rest != self.pending.reserved() {
            return Err(format!("{flagged} symbols wait for {} pending orders", seen.len()));
        }
        Ok(())
    }

    fn validate_money(&self, locks: &Locks) -> Result<(), String> {
        for (id, asset) in (0..).zip(&self.assets.list) {
            let mut sum = 0i128;
            for account in 0..self.accounts.len() {
                let balance = self.accounts.balance(AccountId(account), AssetId(id));
                let expected = locks.get(&(account, id)).copied().unwrap_or(0);
                if balance.free.0 < 0 || balance.locked.0 != expected {
                    return Err(format!(
                        "account {account}, asset {id}: {balance:?}, orders lock {expected}"
                    ));
                }
                sum += i128::from(balance.free.0) + i128::from(balance.locked.0);
            }
            if sum != i128::from(asset.held) {
                return Err(format!("asset {id}: balances add up to {sum}, held {}", asset.held));
            }
        }
        Ok(())
    }

    fn validate_capacities(&self) -> Result<(), String> {
        let counts = self.counts();
        let limits = &self.limits;
        // An empty venue has the fee account and, as yet, no limit.
        let within = counts.assets <= limits.assets
            && counts.symbols <= limits.symbols
            && counts.accounts <= limits.accounts.max(1)
            && counts.keys <= limits.keys
            && counts.sessions <= limits.sessions
            && counts.open_orders <= limits.open_orders
            && counts.price_levels <= limits.price_levels
            && counts.pending_work <= limits.pending_work;
        if within { Ok(()) } else { Err(format!("{counts:?} beyond {limits:?}")) }
    }
}
