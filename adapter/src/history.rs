//! The history: every trade, ended order, ended list and candle, and what they were called. Filled by
//! the fold of the views, read by the handlers of the spot service.
//!
//! What was added of late stands in memory in two layers: one that grows, and one that is being
//! written to the store. What is older stands in the store alone. A reader sees them as one.

mod address_space;
pub(crate) mod aggregates;
mod breaks;
pub(crate) mod candles;
pub(crate) mod folder;
pub(crate) mod intervals;
pub(crate) mod names;
mod reached;
mod reader;
pub(crate) mod rows;
mod sealed;
pub(crate) mod statistics;
pub(crate) mod store;
pub mod writer;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{Position, SymbolId, TradeId};

use crate::notice::alert;
use breaks::BreakRow;
use candles::{Candle, Running, Tier};
pub use folder::suspect;
use names::Named;
pub(crate) use reader::{Direction, Reader};
use rows::{
    Key, ListRow, NameRow, OrderRow, OrderTradeRow, Rows, SideRow, TradeRow, of_candles, of_order,
    of_symbol, side_id,
};
pub use store::HistoryError;
use store::{Batch, Reached, Store};

/// What is known of a symbol's trades without looking at any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Market {
    /// The last trade with its number.
    pub(crate) last: Option<(u64, TradeRow)>,
    running: [Option<Running>; Tier::ALL.len()],
    /// The last time without candles, with when it began.
    last_break: Option<(u64, BreakRow)>,
}

/// A side of a trade.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// Group of the owner's orders and trades.
    pub(crate) owner: u64,
    /// Its order; the rest is found out from the trade.
    pub(crate) row: SideRow,
    /// It is the order's first trade, which the order itself tells.
    pub(crate) is_first: bool,
}

/// How many names a store has been given that says so many and has one of this era as its last: as near as can be to
/// what it says, which any look-up is right by.
fn names_of(said: u64, last_era: Option<u64>) -> Result<u64, HistoryError> {
    let Some(possible) = names::possible(last_era) else {
        return Err(HistoryError::Names { last_era: last_era.unwrap_or_default() });
    };
    let names = said.clamp(*possible.start(), *possible.end());
    if names != said {
        alert!(
            "adapter: the history says that it has {said} names, which cannot be: {names} is gone on with"
        );
    }
    Ok(names)
}

/// The history.
#[derive(Debug, Clone, Default)]
pub struct History {
    rows: Rows,
    frozen: Option<Arc<Batch>>,
    store: Option<Store>,
    /// By symbol number.
    markets: Vec<Market>,
    /// Names that were given.
    names: u64,
    /// How far the log was folded.
    reached: Reached,
    /// Behind the last transaction that was frozen.
    frozen_end: u64,
    /// Behind the last transaction that is in the store.
    stored_end: u64,
}

impl History {
    /// What stands in a store that goes so far; what comes is added behind it.
    ///
    /// # Errors
    /// When the store cannot be read. [`HistoryError::Names`] if it has a name of an era that cannot be.
    pub(crate) fn of(
        store: Store,
        reached: Option<Reached>,
        symbols: usize,
    ) -> Result<Self, HistoryError> {
        let reached = reached.unwrap_or_default();
        let mut history = Self {
            store: Some(store),
            reached,
            frozen_end: reached.end,
            stored_end: reached.end,
            ..Self::default()
        };
        let reader = history.reader()?;
        let last_era = reader.last_group::<NameRow>()?;
        let names = names_of(reached.names, last_era)?;
        let market = |symbol: usize| {
            let symbol = SymbolId(u32::try_from(symbol).unwrap_or(u32::MAX));
            reader.market(symbol)
        };
        let markets = (0..symbols).map(market).collect::<Result<_, _>>()?;
        drop(reader);
        history.markets = markets;
        (history.names, history.reached.names) = (names, names);
        Ok(history)
    }

    /// The next transaction was folded.
    pub(crate) fn folded(&mut self, transaction: &Transaction<'_>) {
        self.reached = Reached::behind(transaction, self.reached);
    }

    /// Behind the last transaction of the log that was folded; the log's beginning before the first.
    pub(crate) const fn reached(&self) -> Position {
        Position(self.reached.end)
    }

    /// Rows that are not being written yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.rows.len()
    }

    /// Adds a trade. What its row says of the aggregate trade up to it is found here.
    pub(crate) fn trade(
        &mut self,
        symbol: SymbolId,
        id: TradeId,
        mut row: TradeRow,
        [maker, taker]: [Side; 2],
    ) {
        let (id, group) = (id.0, of_symbol(symbol));
        for (side, is_maker) in [(maker, true), (taker, false)] {
            let id = side_id(id, is_maker);
            let Side { owner, row: order, is_first } = side;
            self.rows.sides.insert(Key { group: owner, id }, order.traded(&row, is_maker));
            if !is_first {
                let group = of_order(symbol, order.order);
                self.rows.order_trades.insert(Key { group, id }, OrderTradeRow);
            }
        }
        let market = market_of(&mut self.markets, symbol);
        let before = market.last.filter(|(_, last)| last.aggregate == row.aggregate);
        (row.aggregate_first, row.aggregate_quantity) = match before {
            // One order's fills, whose sum the fold has checked to be within the range.
            Some((_, last)) => {
                (last.aggregate_first, last.aggregate_quantity.saturating_add(row.quantity))
            }
            None => (id, row.quantity),
        };
        self.rows.trades.insert(Key { group, id }, row);
        market.last = Some((id, row));
        let one = Candle::of(id, &row);
        for (tier, running) in Tier::ALL.into_iter().zip(&mut market.running) {
            let open_ms = tier.open(row.time_ms);
            match running {
                Some(running) if running.open_ms == open_ms => {
                    running.candle.append(&one);
                    running.is_new = true;
                }
                _ => {
                    let begun = Running { open_ms, candle: one, is_new: true };
                    if let Some(ended) = running.replace(begun) {
                        keep(&mut self.rows, symbol, tier, &ended);
                    }
                }
            }
        }
        // A halt does not wait for what had begun to take when it came.
        if market.last_break.is_some_and(|(_, row)| row.lasts()) {
            self.status(symbol, false, row.time_ms);
            self.status(symbol, true, row.time_ms);
        }
    }

    /// The status of a symbol was set, to BREAK or to another one.
    pub(crate) fn status(&mut self, symbol: SymbolId, is_break: bool, time_ms: u64) {
        let market = market_of(&mut self.markets, symbol);
        // A millisecond with a trade was not wholly in BREAK.
        let traded = market.last.is_some_and(|(_, last)| last.time_ms == time_ms);
        let time_ms = time_ms + u64::from(is_break && traded);
        let noted = breaks::noted(market.last_break, is_break, time_ms);
        self.note_break(symbol, noted);
    }

    /// From one moment to another, which is now, no engine ran.
    pub(crate) fn was_off(&mut self, symbol: SymbolId, from_ms: u64, until_ms: u64) {
        let market = market_of(&mut self.markets, symbol);
        // As above: whatever it is said to be, it begins behind the last trade.
        let traded = market.last.map_or(0, |(_, last)| last.time_ms.saturating_add(1));
        let noted = breaks::noted_off(market.last_break, (from_ms.max(traded), until_ms));
        self.note_break(symbol, noted);
    }

    fn note_break(&mut self, symbol: SymbolId, noted: Option<(u64, BreakRow)>) {
        if let Some((from_ms, row)) = noted {
            market_of(&mut self.markets, symbol).last_break = noted;
            self.rows.breaks.insert(Key { group: of_symbol(symbol), id: from_ms }, row);
        }
    }

    /// Adds an order that has ended.
    pub(crate) fn ended_order(&mut self, group: u64, id: u64, row: OrderRow) {
        self.rows.orders.insert(Key { group, id }, row);
        self.name(Named::Order(group), row.client_order_id, id);
    }

    /// Adds a list that has ended.
    pub(crate) fn ended_list(&mut self, group: u64, id: u64, row: ListRow) {
        self.rows.lists.insert(Key { group, id }, row);
        self.name(Named::List(group), row.client_order_id, id);
    }

    fn name(&mut self, named: Named, name: ClientOrderId, id: u64) {
        if !name.is_empty() {
            let key = Key { group: self.names / names::ERA, id: named.hash(&name) };
            self.rows.names.insert(key, NameRow { id });
            self.names += 1;
        }
    }

    /// What is known of a symbol's trades without looking at any.
    #[must_use]
    pub(crate) fn market(&self, symbol: SymbolId) -> Market {
        self.markets.get(symbol.0 as usize).copied().unwrap_or_default()
    }

    /// All of it as it is now, to be read later.
    ///
    /// # Errors
    /// When the store has too many readers.
    pub(crate) fn reader(&self) -> Result<Reader, HistoryError> {
        Ok(Reader {
            rows: self.rows.clone(),
            frozen: self.frozen.clone(),
            store: self.store.as_ref().map(Store::reader).transpose()?,
            names: self.names,
            rows_read: Cell::new(0),
        })
    }

    /// Sets the growing layer aside to be written, with what the state adds to it. The layer before
    /// must have been thawed.
    pub(crate) fn freeze(&mut self, mut state: Batch) -> Arc<Batch> {
        for (symbol, market) in (0..).map(SymbolId).zip(&mut self.markets) {
            for (tier, running) in Tier::ALL.into_iter().zip(&mut market.running) {
                if let Some(running) = running {
                    keep(&mut self.rows, symbol, tier, running);
                    running.is_new = false;
                }
            }
        }
        state.rows = std::mem::take(&mut self.rows);
        state.reached = Reached { names: self.names, lists: state.reached.lists, ..self.reached };
        self.frozen_end = self.reached.end;
        let batch = Arc::new(state);
        self.frozen = Some(Arc::clone(&batch));
        batch
    }

    /// True if something was folded since the last freeze.
    pub(crate) const fn is_new(&self) -> bool {
        self.reached.end != self.frozen_end
    }

    /// True if all that was folded is in the store.
    pub(crate) const fn is_stored(&self) -> bool {
        self.reached.end == self.stored_end
    }

    /// Forgets what was set aside: it is in the store.
    pub(crate) fn thaw(&mut self) -> Option<Arc<Batch>> {
        self.stored_end = self.frozen_end;
        self.frozen.take()
    }

    /// Behind the last transaction of the log that is in the store.
    #[must_use]
    pub const fn stored(&self) -> Position {
        Position(self.stored_end)
    }
}

/// The market of a symbol, made if it is new.
fn market_of(markets: &mut Vec<Market>, symbol: SymbolId) -> &mut Market {
    let index = symbol.0 as usize;
    if markets.len() <= index {
        markets.resize(index + 1, Market::default());
    }
    &mut markets[index]
}

/// Gives a candle to the rows, if they do not have it as it is.
fn keep(rows: &mut Rows, symbol: SymbolId, tier: Tier, running: &Running) {
    if running.is_new {
        let key = Key { group: of_candles(symbol, tier), id: running.open_ms };
        rows.candles.insert(key, running.candle);
    }
}

impl Market {
    /// The candle of a tier that still grows, with when it began.
    pub(crate) fn running(&self, tier: Tier) -> Option<(u64, Candle)> {
        self.running[tier as usize].map(|running| (running.open_ms, running.candle))
    }
}

impl Reader {
    /// A symbol's market as the rows tell it.
    fn market(&self, symbol: SymbolId) -> Result<Market, HistoryError> {
        let whole = || 0..=u64::MAX;
        let last = self.edge(of_symbol(symbol), whole(), Direction::Backward)?;
        let mut running = [None; Tier::ALL.len()];
        for (tier, running) in Tier::ALL.into_iter().zip(&mut running) {
            let group = of_candles(symbol, tier);
            self.scan(group, whole(), Direction::Backward, |open_ms, candle| {
                *running = Some(Running { open_ms, candle, is_new: false });
                ControlFlow::Break(())
            })?;
        }
        let last_break = self.edge(of_symbol(symbol), whole(), Direction::Backward)?;
        Ok(Market { last, running, last_break })
    }
}

#[cfg(test)]
mod tests;
