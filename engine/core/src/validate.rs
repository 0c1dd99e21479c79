//! Checks that the whole venue fits together. Called by tests and by replay checks after a command,
//! never while trading: it allocates, and takes time in proportion to the size of the venue.

mod lists;
mod records;

use crate::book::Handle;
use crate::chains::order_at;
use crate::money;
use crate::open_counts::OpenCounts;
use crate::pending::Pending;
use crate::pool::{NONE, named};
use crate::rights::Rights;
use crate::sessions::Session;
use crate::{Core, OpenOrder};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use touchline_protocol::message::enums::{Side, TimeInForce};
use touchline_protocol::units::{AccountId, AssetId, Price, Qty, SessionId, SymbolId};

/// What open and pending orders have locked, by account and asset.
type Locks = BTreeMap<(u32, u32), i64>;

/// The open orders, counted anew.
#[derive(Default)]
struct Tally {
    /// Those with a client order id.
    named: u32,
    /// Stops that may rest one day.
    may_rest: u32,
    placed_by: BTreeMap<SessionId, u32>,
    /// By account and symbol.
    open: BTreeMap<(u32, u32), OpenCounts>,
}

impl Tally {
    /// Counts an order; `is_paired` says that it is of an open list.
    fn add(&mut self, order: &OpenOrder, is_paired: bool) {
        let is_waiting = order.stop_price != Price::ZERO;
        let is_market = order.price == Price::ZERO;
        self.named += u32::from(!order.client_order_id.is_empty());
        *self.placed_by.entry(order.session).or_default() += 1;
        let counts = self.open.entry((order.account.0, order.symbol.0)).or_default();
        counts.all += 1;
        counts.icebergs += u32::from(order.iceberg != Qty::ZERO);
        counts.algos += u32::from(is_waiting);
        counts.sells += u32::from(order.side == Side::Sell);
        let is_counted_once = is_waiting && is_paired;
        if order.side == Side::Buy && !is_counted_once {
            counts.bought += u128::from(order.quantity.0.cast_unsigned());
        }
        let rests = !is_market && order.time_in_force == TimeInForce::Gtc;
        self.may_rest += u32::from(is_waiting && rests);
    }
}

impl Core {
    /// Checks books, tables, counts, locks and the conservation of money.
    ///
    /// # Errors
    /// The first thing that does not fit, with its numbers.
    pub fn validate(&self) -> Result<(), String> {
        let mut locks = Locks::new();
        self.validate_books(&mut locks)?;
        self.validate_pending(&mut locks)?;
        self.validate_chains()?;
        self.validate_fees()?;
        self.validate_money(&locks)?;
        self.validate_records()?;
        self.validate_capacities()
    }

    fn validate_books(&self, locks: &mut Locks) -> Result<(), String> {
        let mut counts = crate::book::Counts::default();
        let mut tally = Tally::default();
        let mut all = Vec::new();
        for (symbol, book) in (0..).zip(&self.symbols.books) {
            let of_book = book.validate(&self.pools)?;
            counts.orders += of_book.orders;
            counts.levels += of_book.levels;
            let waiting = self.symbols.triggers[symbol as usize].validate_queues(&self.pools)?;
            let stops = self.validate_stops(SymbolId(symbol), locks)?;
            let fired = self.pools.fired(self.symbols.list[symbol as usize].fired).len() as u32;
            counts.orders += waiting.orders + fired;
            counts.levels += waiting.levels;
            let mut booked = Vec::new();
            for side in [Side::Buy, Side::Sell] {
                self.validate_side(SymbolId(symbol), side, locks)?;
                self.validate_hidden(SymbolId(symbol), side)?;
                booked.extend(self.open_orders(SymbolId(symbol), side));
            }
            if let Some(order) = booked.iter().find(|order| order.stop_price != Price::ZERO) {
                return Err(format!("order {} of {symbol} waits in the book", order.order_id));
            }
            for order in booked.iter().chain(&stops) {
                tally.add(order, self.is_paired(order));
            }
            all.append(&mut booked);
            all.extend(stops);
        }
        self.validate_lists(&all)?;
        self.pools.validate(counts)?;
        if self.orders.table_lengths() != (counts.orders, tally.named) {
            let (found, named) = (self.orders.table_lengths(), tally.named);
            return Err(format!("tables have {found:?} for {counts:?}, {named} of them named"));
        }
        self.validate_tally(&tally)
    }

    /// What is counted along the way is what there is.
    fn validate_tally(&self, tally: &Tally) -> Result<(), String> {
        if tally.may_rest != self.orders.reserved() {
            let (may_rest, reserved) = (tally.may_rest, self.orders.reserved());
            return Err(format!("{may_rest} stops may rest, {reserved} levels reserved"));
        }
        let sessions = (0..=self.sessions.len()).map(SessionId);
        // Before limits are set there is no room for any count.
        for session in sessions.take_while(|_| self.limits.accounts > 0) {
            let expected = tally.placed_by.get(&session).copied().unwrap_or(0);
            if self.orders.of_session(session) != expected {
                return Err(format!("session {} has placed {expected} open orders", session.0));
            }
        }
        let is_right = |session: &Session| session.rights == Rights::of(session.role, session.lane);
        if !self.sessions.list.iter().all(is_right) {
            return Err("a session has rights that its role and lane do not give".into());
        }
        self.validate_open_counts(&tally.open)
    }

    fn validate_open_counts(&self, open: &BTreeMap<(u32, u32), OpenCounts>) -> Result<(), String> {
        if self.orders.checked_pairs() != Some(open.len() as u32) {
            let found = self.orders.checked_pairs();
            return Err(format!("{} pairs have open orders, {found:?} are counted", open.len()));
        }
        let mut totals = BTreeMap::<u32, [u32; 2]>::new();
        for (&(account, symbol), expected) in open {
            let found = self.orders.open_counts(AccountId(account), SymbolId(symbol));
            if found != *expected {
                return Err(format!(
                    "account {account} has {expected:?} orders on {symbol}, counted {found:?}"
                ));
            }
            let [all, algos] = totals.entry(account).or_default();
            (*all, *algos) = (*all + found.all, *algos + found.algos);
        }
        // Before limits are set there is no room for any count.
        let accounts = if self.limits.accounts == 0 { 0 } else { self.accounts.len() };
        for account in 0..accounts {
            let expected = totals.get(&account).copied().unwrap_or_default();
            if self.orders.totals(AccountId(account)) != expected {
                return Err(format!("account {account} has {expected:?} orders in all"));
            }
        }
        Ok(())
    }

    /// Waiting and triggered stops of a symbol: found by their numbers, recorded as such; adds up what
    /// they lock.
    fn validate_stops(&self, id: SymbolId, locks: &mut Locks) -> Result<Vec<OpenOrder>, String> {
        let symbol = &self.symbols.list[id.0 as usize];
        let fired = self.pools.fired(symbol.fired).into_iter();
        let fired = fired.map(|at| self.view_order(Handle(at)));
        let stops: Vec<OpenOrder> = self.waiting_orders(id).chain(fired).collect();
        for stop in &stops {
            let is_sound = stop.stop_price > Price::ZERO
                && stop.symbol == id
                && stop.remaining == stop.quantity
                && self.open_order(id, stop.order_id) == Some(*stop);
            if !is_sound {
                return Err(format!("stop {} of {id} is recorded wrongly", stop.order_id));
            }
            *locks.entry((stop.account.0, symbol.paid_with(stop.side).0)).or_default() +=
                stop.locked.0;
        }
        Ok(stops)
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

    /// Each level knows what its icebergs hide, and stops that wait hide nothing.
    fn validate_hidden(&self, id: SymbolId, side: Side) -> Result<(), String> {
        let mut hidden = BTreeMap::<Price, u128>::new();
        for order in self.open_orders(id, side) {
            let of_order = order.remaining.0 - order.visible.0;
            *hidden.entry(order.price).or_default() += u128::from(of_order.cast_unsigned());
        }
        let at = id.0 as usize;
        for level in self.symbols.books[at].depth(&self.pools, side) {
            let expected = hidden.get(&level.price).copied().unwrap_or(0);
            if level.hidden != expected {
                let (price, found) = (level.price, level.hidden);
                return Err(format!("level {price} of {id} hides {expected}, it says {found}"));
            }
        }
        let waiting = &self.symbols.triggers[at];
        if waiting.depth(&self.pools, side).any(|level| level.hidden != 0) {
            return Err(format!("stops of {id} that wait hide something"));
        }
        Ok(())
    }

    fn validate_pending(&self, locks: &mut Locks) -> Result<(), String> {
        let mut may_rest = 0;
        let mut seen = BTreeMap::new();
        for pending in self.pending.iter() {
            let id = pending.symbol();
            let Some(symbol) = self.symbols.get(id) else {
                if !matches!(pending, Pending::Sweep(_)) || !self.pending.is_of_every_symbol() {
                    return Err(format!("{pending:?} of no symbol"));
                }
                continue;
            };
            if seen.insert(id, ()).is_some() || !symbol.has_pending {
                return Err(format!("symbol {id} is pending twice, or does not know"));
            }
            match pending {
                // An urgent sweep may have ended all that was to run.
                Pending::Triggered(_) => {}
                Pending::Sweep(_) if self.is_settled_for_sweep(id) => {}
                Pending::Sweep(_) => return Err(format!("a sweep of {id} before its stops")),
                Pending::Order(active) => {
                    let aggressor = active.aggressor();
                    let book = &self.symbols.books[id.0 as usize];
                    let crosses = book.crosses(aggressor.side, aggressor.limit);
                    if !aggressor.quantity.is_positive() || !crosses {
                        return Err(format!("order {} has nothing to continue", active.order_id));
                    }
                    may_rest += u32::from(active.may_rest());
                    let asset = symbol.paid_with(active.kind.side);
                    *locks.entry((active.account.0, asset.0)).or_default() += active.still_locked();
                }
            }
        }
        let mut symbols = (0..).zip(&self.symbols.list);
        if symbols.any(|(at, symbol)| !symbol.has_pending && self.has_triggered(at)) {
            return Err("stops that were reached have no turn".into());
        }
        let flagged = self.symbols.list.iter().filter(|symbol| symbol.has_pending).count();
        if flagged != seen.len() || may_rest != self.pending.reserved() {
            return Err(format!("{flagged} symbols wait for {} pending orders", seen.len()));
        }
        Ok(())
    }

    /// Entries that the limit on pending work counts, at the most; by rules 5 with the turns of stops that were
    /// reached in a halt, for which the limit does not ask.
    pub(crate) fn most_ordinary_work(&self) -> u32 {
        let of_halts = if self.rules < 5 { 0 } else { self.symbols.len() };
        self.limits.pending_work + of_halts
    }

    /// True when no stop of a symbol ought to have had its turn before a sweep of that symbol; by rules 5 it may be
    /// reached already, since the sweep may have begun in a halt.
    pub(crate) fn is_settled_for_sweep(&self, id: SymbolId) -> bool {
        let at = id.0 as usize;
        if self.rules < 5 { !self.has_triggered(at) } else { self.symbols.list[at].fired == NONE }
    }

    /// Each open order has its place among those of its account, by placement; what is pending may
    /// keep one; there is no other place.
    fn validate_chains(&self) -> Result<(), String> {
        let mut found = BTreeMap::<u32, u32>::new();
        let mut kept = Vec::new();
        for account in (0..self.accounts.len()).map(AccountId) {
            if self.limits.accounts == 0 {
                break;
            }
            if !self.orders.has_consistent_places(account) {
                return Err(format!("the orders of account {account} are linked wrongly"));
            }
            let mut at = NONE;
            while let Some(node) = self.orders.place_behind(account, at) {
                at = node;
                let Some(handle) = order_at(node) else {
                    kept.push(node);
                    continue;
                };
                let owner = self.pools.owner(handle.0);
                if owner != account.0 {
                    return Err(format!("account {account} has an order of {owner} in its chain"));
                }
                found.insert(handle.0, node);
            }
        }
        let mut of_pending: Vec<u32> =
            self.pending.iter().filter_map(|pending| named(pending.place())).collect();
        kept.sort_unstable();
        of_pending.sort_unstable();
        let places = found.len() + kept.len();
        if found.len() != self.pools.orders() as usize
            || kept != of_pending
            || places != self.orders.places(&self.pools) as usize
        {
            return Err(format!(
                "{} orders and {} pending works have places, of {}",
                found.len(),
                kept.len(),
                self.orders.places(&self.pools)
            ));
        }
        Ok(())
    }

    /// All rates are in range, and each account knows on how many symbols it has its own.
    fn validate_fees(&self) -> Result<(), String> {
        let fees = &self.accounts.pair_fees;
        let mut pairs = 0;
        for (id, account) in (0..).zip(&self.accounts.list) {
            let of = |symbol: u32| fees.get(AccountId(id), SymbolId(symbol));
            // Without any, none is looked up; one that is there all the same is missed in the end.
            let symbols = if account.paired_rates == 0 { 0 } else { self.symbols.len() };
            let own: Vec<_> = (0..symbols).filter_map(of).collect();
            if own.len() != account.paired_rates as usize {
                return Err(format!("account {id} has rates on {} symbols", own.len()));
            }
            pairs += own.len();
            let mut rates = own.into_iter().chain([&account.rates]);
            if let Some(rates) = rates.find(|rates| rates.first_out_of_range().is_some()) {
                return Err(format!("account {id} pays {rates:?}"));
            }
        }
        for symbol in &self.symbols.list {
            if symbol.rates.is_some_and(|rates| rates.first_out_of_range().is_some()) {
                return Err(format!("symbol {} costs {:?}", symbol.name, symbol.rates));
            }
        }
        if pairs != fees.len() as usize || !fees.is_consistent() {
            return Err(format!("{pairs} pairs have rates, {} are held", fees.len()));
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
            && self.pending.ordinary() <= self.most_ordinary_work()
            && self.pending.urgent() <= crate::limits::urgent_sweeps(limits)
            // What is queued besides will empty a level before it rests.
            && counts.price_levels + self.orders.reserved() <= limits.price_levels;
        if within { Ok(()) } else { Err(format!("{counts:?} beyond {limits:?}")) }
    }
}
