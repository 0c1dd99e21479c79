//! What MARKET orders come to with the book as it is. Called by placement, and by stops that become one
//! at their turn.
//!
//! Both are decided by the totals of price levels, of which no more than [`LEVELS_JUDGED_MAX`] are looked
//! at: otherwise one order, and one that is refused in the end at that, could hold everything up for as
//! long as the book is deep.

use super::Reject;
use super::site::Site;
use crate::book::{Aggressor, SymbolBook};
use crate::limits::{LEVELS_JUDGED_MAX, number};
use crate::{Core, by_quote, filters, money};
use touchline_protocol::message::enums::{RejectReason, Side};
use touchline_protocol::units::{Amount, Price, SymbolId};

impl Core {
    /// The base quantity of a MARKET order by quote quantity, and whether the book holds less than it
    /// asks for. Fixed once, at acceptance: nothing else changes the book before the order is done.
    pub(super) fn quantity_by_quote(
        &self,
        id: SymbolId,
        (side, amount): (Side, i64),
    ) -> Result<(i64, bool), Reject> {
        let (symbol, book) =
            (&self.symbols.list[id.0 as usize], &self.symbols.books[id.0 as usize]);
        let limit = if side == Side::Buy { Price::MAX } else { Price(i64::MIN) };
        let levels = book.reachable(&self.pools, side, limit);
        by_quote::quantity(&symbol.filters, (side, amount), self.levels_judged(), levels)
    }

    /// By rules 5 a MARKET order by quantity is not taken for nothing: as of a limit order, its quantity is worth at
    /// least one unit of quote, here at the best price that there is. An empty book says nothing.
    pub(super) fn check_market_worth(
        &self,
        site: &Site<'_>,
        (side, quantity): (Side, i64),
    ) -> Result<(), Reject> {
        if self.rules < 5 {
            return Ok(());
        }
        let best = site.book.best(side.opposite());
        best.map_or(Ok(()), |best| filters::check_worth(best.0, quantity))
    }

    /// Price levels that are looked at to decide about an order. By rules 1, whose log was written
    /// without a bound, all of them.
    pub(super) const fn levels_judged(&self) -> u32 {
        if self.rules < 2 { u32::MAX } else { LEVELS_JUDGED_MAX }
    }

    /// What a MARKET buy needs: the cost of what is there, rounded up level by level, so that no
    /// truncation of its fills can exceed it.
    ///
    /// # Errors
    /// As soon as it is more than what is free, or when it would be spread over more than so many levels.
    pub(crate) fn market_lock(
        &self,
        book: &SymbolBook,
        aggressor: &Aggressor,
        (free, levels_max): (Amount, u32),
    ) -> Result<i64, Reject> {
        let mut missing = aggressor.quantity.0;
        let mut cost = 0i64;
        let levels = book.reachable(&self.pools, Side::Buy, aggressor.limit);
        for (seen, level) in (0..).zip(levels) {
            if missing == 0 {
                break;
            }
            if seen == levels_max {
                return Err(Reject::with(RejectReason::CapacityReached, number::MAX_STEPS));
            }
            let quantity =
                i64::try_from(level.quantity + level.hidden).unwrap_or(i64::MAX).min(missing);
            cost = money::quote_rounded_up(level.price.0, quantity)
                .and_then(|added| cost.checked_add(added))
                .filter(|&cost| cost <= free.0)
                .ok_or(RejectReason::InsufficientBalance)?;
            missing -= quantity;
        }
        Ok(cost)
    }
}
