//! The history: every trade and candle. Filled by
//! the fold of the views, read by the handlers of the spot service.
//!
//! It stands in memory, in tables that a [`Reader`] reads page by page.

pub(crate) mod candles;
pub(crate) mod intervals;
mod reader;
pub(crate) mod rows;
pub(crate) mod statistics;

use touchline_protocol::units::{SymbolId, TradeId};

use candles::{Candle, Running, Tier};
pub(crate) use reader::{Direction, Reader};
use rows::{Key, Rows, SideRow, TradeRow, of_candles, of_symbol, side_id};

/// Why the history cannot be read: no reason as long as it is all in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {}

/// What is known of a symbol's trades without looking at any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Market {
    /// The last trade with its number.
    pub(crate) last: Option<(u64, TradeRow)>,
    running: [Option<Running>; Tier::ALL.len()],
}

/// Both sides of a trade.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides {
    /// Group of the maker's orders and trades.
    pub(crate) maker: u64,
    pub(crate) maker_row: SideRow,
    /// Group of the taker's orders and trades.
    pub(crate) taker: u64,
    pub(crate) taker_row: SideRow,
}

/// The history.
#[derive(Debug, Clone, Default)]
pub struct History {
    rows: Rows,
    /// By symbol number.
    markets: Vec<Market>,
}

impl History {
    /// Adds a trade.
    pub(crate) fn trade(&mut self, symbol: SymbolId, id: TradeId, row: TradeRow, sides: &Sides) {
        let (id, group) = (id.0, of_symbol(symbol));
        self.rows.trades.insert(Key { group, id }, row);
        let maker = Key { group: sides.maker, id: side_id(id, true) };
        let taker = Key { group: sides.taker, id: side_id(id, false) };
        self.rows.sides.insert(maker, sides.maker_row);
        self.rows.sides.insert(taker, sides.taker_row);
        let index = symbol.0 as usize;
        if self.markets.len() <= index {
            self.markets.resize(index + 1, Market::default());
        }
        let market = &mut self.markets[index];
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
    }

    /// What is known of a symbol's trades without looking at any.
    #[must_use]
    pub(crate) fn market(&self, symbol: SymbolId) -> Market {
        self.markets.get(symbol.0 as usize).copied().unwrap_or_default()
    }

    /// All of it as it is now.
    ///
    /// # Errors
    /// None as long as it is all in memory.
    pub(crate) fn reader(&self) -> Result<Reader<'_>, HistoryError> {
        Ok(Reader { layers: vec![&self.rows] })
    }
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

#[cfg(test)]
mod tests;
