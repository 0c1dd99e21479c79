//! Aggregate trades: the fills of one aggressor at one price and time as one entry. Called by the handler
//! of GET /aggTrades.
//!
//! The last trade of an aggregate trade tells all of it, so a page is read from its end backwards, and
//! costs by its entries, however many trades an entry has.

use std::ops::{ControlFlow, RangeInclusive};

use super::HistoryError;
use super::reader::Direction;
use super::rows::{TradeRow, of_symbol};
use super::statistics::SymbolHistory;

/// Trades of one entry that are passed over before its first one is looked for: that costs as much as
/// some rows in a row.
const PASSED_OVER_MAX: u32 = 16;

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aggregate {
    /// Its number; they count up by one.
    pub(crate) id: u64,
    /// Number of its first trade.
    pub(crate) first: u64,
    /// Number of its last trade.
    pub(crate) last: u64,
    /// What they have in common; with the base quantity of all of them.
    pub(crate) trade: TradeRow,
}

impl Aggregate {
    fn ending_with(last: u64, trade: TradeRow) -> Self {
        Self { id: trade.aggregate, first: trade.aggregate_first, last, trade }
    }
}

impl SymbolHistory<'_> {
    /// The first `limit` entries from the one on that begins with the trade `first`, those up to the trade
    /// `last`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn oldest_aggregates(
        &self,
        first: u64,
        last: u64,
        limit: usize,
    ) -> Result<Vec<Aggregate>, HistoryError> {
        let group = of_symbol(self.symbol);
        let Some(trade) = self.reader.get::<TradeRow>(group, first)? else { return Ok(Vec::new()) };
        let next_page = trade.aggregate.saturating_add(limit as u64);
        let last = match self.first_aggregate(next_page)? {
            Some(behind) => last.min(behind.saturating_sub(1)),
            None => last,
        };
        self.newest_aggregates(first..=last, limit)
    }

    /// The last `limit` entries of these trades, the oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn newest_aggregates(
        &self,
        trades: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<Aggregate>, HistoryError> {
        let group = of_symbol(self.symbol);
        let mut found: Vec<Aggregate> = Vec::with_capacity(limit.min(1024));
        let mut left = Some(trades);
        while let Some(trades) = left.take() {
            let (first, mut passed_over) = (*trades.start(), 0);
            self.reader.scan(group, trades, Direction::Backward, |id, trade: TradeRow| {
                match found.last().filter(|entry| entry.id == trade.aggregate) {
                    Some(entry) if passed_over == PASSED_OVER_MAX => {
                        left = entry.first.checked_sub(1).map(|last| first..=last);
                        return ControlFlow::Break(());
                    }
                    Some(_) => passed_over += 1,
                    None if found.len() == limit => return ControlFlow::Break(()),
                    None => {
                        passed_over = 0;
                        found.push(Aggregate::ending_with(id, trade));
                    }
                }
                ControlFlow::Continue(())
            })?;
        }
        found.reverse();
        Ok(found)
    }
}
