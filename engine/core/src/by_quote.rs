//! The base quantity of a MARKET order by quote quantity: what the amount buys of the levels that are
//! there, or what has to be sold to them for it. Called by placement, before anything is locked.

use crate::book::DepthLevel;
use crate::{Reject, filters, money};
use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::message::enums::{RejectReason, Side};

/// What is asked, and of what.
pub(crate) struct ByQuote<'filters> {
    pub(crate) filters: &'filters SymbolFilters,
    pub(crate) side: Side,
    /// Quote to spend or to receive, 10⁻⁸.
    pub(crate) amount: i64,
    /// What the account has free of what the order pays with, 10⁻⁸.
    pub(crate) free: i64,
    /// Levels that are always looked at if they are needed.
    pub(crate) levels: u32,
}

impl ByQuote<'_> {
    /// The quantity, in whole LOT_SIZE steps, and whether the levels hold less than was asked. Each level
    /// costs its notional rounded up, so that no truncation of its fills can exceed the amount
    /// (facts §5.2).
    ///
    /// An order that its account cannot pay for is rejected, and a reject costs its sender nothing, so
    /// it must not cost the venue a walk through the whole book: once it is certain that the funds do not
    /// suffice, and `is_settled` says of the quantity up to there that looking further cannot find
    /// another reason that comes before, the walk ends there.
    ///
    /// # Errors
    /// LOT_SIZE when it comes to less than the least quantity, or an overflow.
    pub(crate) fn quantity(
        &self,
        levels: impl Iterator<Item = DepthLevel>,
        is_settled: impl Fn(i64) -> bool,
    ) -> Result<(i64, bool), Reject> {
        let (mut missing, mut quantity, mut ran_dry) = (self.amount, 0i64, true);
        let least = self.filters.lot_min.max(1);
        for (seen, level) in (1..).zip(levels) {
            let there = i64::try_from(level.quantity + level.hidden).unwrap_or(i64::MAX);
            let wanted = filters::quantity_for(self.filters, missing, level.price.0);
            let taken = wanted.min(there);
            quantity = quantity.checked_add(taken).ok_or(RejectReason::Overflow)?;
            missing -=
                money::quote_rounded_up(level.price.0, taken).ok_or(RejectReason::Overflow)?;
            if wanted <= there {
                ran_dry = false;
                break;
            }
            let needed = if self.side == Side::Buy { self.amount } else { quantity };
            let is_hopeless = needed > self.free && quantity >= least;
            if is_hopeless && seen >= self.levels && is_settled(quantity) {
                break;
            }
        }
        if quantity < least {
            return Err(RejectReason::LotSize.into());
        }
        Ok((quantity, ran_dry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use touchline_protocol::units::{Price, UNITS_PER_WHOLE};

    const WHOLE: i64 = UNITS_PER_WHOLE;

    /// A thousand levels with one unit each, at 1 and upwards; counts those that are looked at.
    fn levels(seen: &Cell<u32>) -> impl Iterator<Item = DepthLevel> {
        (1..=1000).map(|price| {
            seen.set(seen.get() + 1);
            DepthLevel {
                price: Price(price * WHOLE),
                quantity: WHOLE as u128,
                hidden: 0,
                orders: 1,
            }
        })
    }

    fn ask<'filters>(
        filters: &'filters SymbolFilters,
        side: Side,
        amount: i64,
        free: i64,
    ) -> ByQuote<'filters> {
        ByQuote { filters, side, amount: amount * WHOLE, free: free * WHOLE, levels: 10 }
    }

    #[test]
    fn who_cannot_pay_does_not_see_the_whole_book() {
        let filters = SymbolFilters { lot_min: 3 * WHOLE, ..SymbolFilters::default() };
        let check = |asked: &ByQuote<'_>, settled_at: i64, expected: u32| {
            let seen = Cell::new(0);
            let found = asked.quantity(levels(&seen), |quantity| quantity >= settled_at * WHOLE);
            assert_eq!(seen.get(), expected);
            found.map(|(quantity, ran_dry)| (quantity / WHOLE, ran_dry))
        };
        // 1 + 2 + … + 1000 is 500,500.
        let rich = ask(&filters, Side::Buy, 500_000, 500_000);
        assert_eq!(check(&rich, 0, 1000), Ok((999, false)));
        let richer = ask(&filters, Side::Buy, 600_000, 600_000);
        assert_eq!(check(&richer, 0, 1000), Ok((1000, true)));
        let poor = ask(&filters, Side::Buy, 600_000, 599_999);
        assert_eq!(check(&poor, 0, 10), Ok((10, true)));
        assert_eq!(check(&poor, 25, 25), Ok((25, true)));
        assert_eq!(check(&ask(&filters, Side::Sell, 600_000, 17), 0, 18), Ok((18, true)));
        assert_eq!(check(&ask(&filters, Side::Sell, 600_000, 0), 0, 10), Ok((10, true)));
        // Too small for LOT_SIZE is said first.
        let small = ask(&filters, Side::Buy, 2, 0);
        assert_eq!(check(&small, 0, 2), Err(RejectReason::LotSize.into()));
    }
}
