//! Symbols: definitions, counters and books. Called by definitions, placement and settlement.

use crate::averages::Averages;
use crate::book::SymbolBook;
use crate::bounds::{Bounds, has_percent_price};
use crate::fees::FeeRates;
use crate::hash::{Seed, StateHash};
use crate::table::Table;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::message::enums::{Side, SymbolStatus};
use touchline_protocol::text::SymbolName;
use touchline_protocol::units::{
    AggregateTradeId, AssetId, BookUpdateId, OrderId, Price, SymbolId, TradeId,
};

/// The last numbers that a symbol gave out; 0 before the first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SymbolCounters {
    /// Last order.
    pub order: OrderId,
    /// Last trade.
    pub trade: TradeId,
    /// Last aggregate trade.
    pub aggregate_trade: AggregateTradeId,
    /// Last change of the book.
    pub book_update: BookUpdateId,
}

/// One symbol without its book.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub(crate) base: AssetId,
    pub(crate) quote: AssetId,
    pub(crate) counters: SymbolCounters,
    pub(crate) status: SymbolStatus,
    pub(crate) order_types: u8,
    pub(crate) flags: u8,
    pub(crate) permissions: u8,
    /// There is pending work of this symbol alone: nothing else may touch the book.
    pub(crate) has_pending: bool,
    pub(crate) name: SymbolName,
    pub(crate) filters: SymbolFilters,
    /// Commission rates of everybody on it, in place of each account's own.
    pub(crate) rates: Option<FeeRates>,
    /// Price of the last trade, zero before the first. It decides nothing before rules version 2.
    pub(crate) last_price: Price,
    /// Triggered stops that wait for their turn: root of the heap.
    pub(crate) fired: u32,
    /// The call of `apply` that last counted a removal from the book; no state.
    pub(crate) counted_in: u64,
    /// What its filters allow plain orders; no state.
    pub(crate) bounds: Bounds,
}

impl Symbol {
    /// The asset that an order of a side gives away, and so locks.
    #[inline(always)]
    pub(crate) const fn paid_with(&self, side: Side) -> AssetId {
        match side {
            Side::Buy => self.quote,
            Side::Sell => self.base,
        }
    }

    /// Counts that orders were taken out of the book: one update per call of `apply`, however many
    /// they are.
    #[inline(always)]
    pub(crate) fn count_removal(&mut self, call: u64) {
        if self.counted_in != call {
            self.counted_in = call;
            self.counters.book_update.0 += 1;
        }
    }
}

/// All symbols, in order of definition. Books lie apart, so that matching can borrow a book and the
/// counters of its symbol at the same time.
#[derive(Debug)]
pub(crate) struct Symbols {
    pub(crate) list: Vec<Symbol>,
    pub(crate) books: Vec<SymbolBook>,
    /// Waiting stops by stop price, see `apply::trigger`.
    pub(crate) triggers: Vec<SymbolBook>,
    pub(crate) averages: Averages,
    by_name: Table,
    seed: Seed,
}

impl Symbols {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self {
            list: Vec::new(),
            books: Vec::new(),
            triggers: Vec::new(),
            averages: Averages::new(),
            by_name: Table::new(),
            seed,
        }
    }

    pub(crate) fn try_grow(&mut self, capacity: u32) -> Result<(), TryReserveError> {
        let more = (capacity as usize).saturating_sub(self.list.len());
        self.list.try_reserve_exact(more)?;
        self.books.try_reserve_exact(more)?;
        self.triggers.try_reserve_exact(more)?;
        self.averages.try_grow(capacity)?;
        self.by_name.try_grow(capacity)
    }

    pub(crate) const fn len(&self) -> u32 {
        self.list.len() as u32
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: SymbolId) -> Option<&Symbol> {
        self.list.get(id.0 as usize)
    }

    pub(crate) fn find(&self, name: &SymbolName) -> Option<SymbolId> {
        self.by_name
            .find(self.seed.text(0, name), |at| self.list[at as usize].name == *name)
            .map(SymbolId)
    }

    /// Adds a symbol of a new name; the caller has checked the limit.
    pub(crate) fn add(&mut self, symbol: Symbol) -> SymbolId {
        let id = self.len();
        self.by_name.insert(self.seed.text(0, &symbol.name), id);
        let tick = Price(symbol.filters.tick_size);
        self.list.push(symbol);
        self.books.push(SymbolBook::with_tick(tick));
        self.triggers.push(SymbolBook::with_tick(tick));
        SymbolId(id)
    }

    /// Gives a symbol other filters. With another tick its books, in which nothing is then, are laid out by
    /// that one: prices between ticks are found more slowly.
    pub(crate) fn set_filters(&mut self, id: SymbolId, filters: &SymbolFilters) {
        let at = id.0 as usize;
        let tick = filters.tick_size;
        if tick != self.list[at].filters.tick_size {
            for book in [&mut self.books[at], &mut self.triggers[at]] {
                debug_assert!(
                    [Side::Buy, Side::Sell].iter().all(|&side| book.best(side).is_none())
                );
                *book = SymbolBook::with_tick(Price(tick));
            }
        }
        self.list[at].filters = *filters;
        self.list[at].bounds = Bounds::of(filters);
    }

    /// A symbol whose bounds are those of a time, its book and its waiting stops; `None` if there is none or
    /// nothing is allowed on it at all.
    #[inline(always)]
    pub(crate) fn at_time(
        &mut self,
        id: SymbolId,
        time_ns: u64,
    ) -> Option<(&mut Symbol, &mut SymbolBook, &SymbolBook)> {
        let at = id.0 as usize;
        let symbol = self.list.get_mut(at)?;
        if !symbol.bounds.hold(time_ns) && !renew_bounds((id, symbol), &mut self.averages, time_ns)
        {
            return None;
        }
        Some((symbol, self.books.get_mut(at)?, self.triggers.get(at)?))
    }

    /// Definitions, counters and status; books are hashed with the orders.
    pub(crate) fn hash(&self, rules: u32, hash: &mut StateHash) {
        hash.word(u64::from(self.len()));
        for (id, symbol) in (0..).zip(&self.list) {
            hash.text(&symbol.name);
            hash.pair(symbol.base.0, symbol.quote.0);
            hash.word(u64::from_le_bytes([
                symbol.status.to_wire(),
                symbol.order_types,
                symbol.flags,
                symbol.permissions,
                symbol.has_pending.into(),
                0,
                0,
                0,
            ]));
            let filters: [u64; 18] = bytemuck::cast(symbol.filters);
            filters.iter().for_each(|&word| hash.word(word));
            hash.word(symbol.counters.order.0);
            hash.word(symbol.counters.trade.0);
            hash.word(symbol.counters.aggregate_trade.0);
            hash.word(symbol.counters.book_update.0);
            if rules >= 2 {
                hash.signed(symbol.last_price.0);
                hash.word(symbol.rates.is_some().into());
                symbol.rates.unwrap_or_default().hash(hash);
                self.averages.hash(SymbolId(id), hash);
            }
        }
    }
}

/// Makes a symbol's bounds those of a time; false if nothing is allowed at all.
#[inline(never)]
fn renew_bounds(
    (id, symbol): (SymbolId, &mut Symbol),
    averages: &mut Averages,
    time_ns: u64,
) -> bool {
    let average = if has_percent_price(&symbol.filters) {
        let last = (symbol.last_price != Price::ZERO).then_some(symbol.last_price);
        averages.prepared(id, time_ns, symbol.filters.percent_price_minutes).or(last)
    } else {
        None
    };
    symbol.bounds.renew(&symbol.filters, average, time_ns);
    symbol.bounds.hold(time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::NONE;
    use alloc::format;

    #[test]
    fn another_tick_lays_the_books_out_anew() {
        let mut symbols = Symbols::new(Seed::new(0));
        symbols.try_grow(1).unwrap();
        let coarse = SymbolFilters { tick_size: 100_000_000, ..Default::default() };
        let id = symbols.add(Symbol {
            base: AssetId(0),
            quote: AssetId(1),
            counters: SymbolCounters::default(),
            status: SymbolStatus::Halt,
            order_types: 0,
            flags: 0,
            permissions: 0,
            has_pending: false,
            name: SymbolName::new("ONE").unwrap(),
            filters: coarse,
            rates: None,
            last_price: Price::ZERO,
            fired: NONE,
            counted_in: 0,
            bounds: Bounds::of(&coarse),
        });
        let fine = SymbolFilters { tick_size: 10_000, ..coarse };
        symbols.set_filters(id, &fine);
        assert_eq!(symbols.list[0].filters, fine);
        let expected = format!("{:?}", SymbolBook::with_tick(Price(10_000)));
        for book in [symbols.books[0], symbols.triggers[0]] {
            assert_eq!(format!("{book:?}"), expected);
        }
    }
}
