//! The base quantity of a MARKET order by quote quantity: what the amount buys of the levels that are
//! there, or what has to be sold to them for it. Called by placement, before anything is locked.

use crate::book::DepthLevel;
use crate::limits::number;
use crate::{Reject, money};
use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::message::enums::{RejectReason, Side};
use touchline_protocol::units::UNITS_PER_WHOLE;

/// The quantity that comes as close to `amount` (quote, 10⁻⁸) as LOT_SIZE and MARKET_LOT_SIZE let it
/// come from below, and whether the levels hold less than was asked. Each level costs its notional
/// rounded up, so that no truncation of its fills can exceed the amount (facts §5.2).
///
/// # Errors
/// LOT_SIZE or MARKET_LOT_SIZE when it comes to less than the least quantity, an overflow, or a want of
/// more than `levels_max` levels.
pub(crate) fn quantity(
    filters: &SymbolFilters,
    (side, amount): (Side, i64),
    levels_max: u32,
    levels: impl Iterator<Item = DepthLevel>,
) -> Result<(i64, bool), Reject> {
    MarketLots::of(filters).quantity((side, amount), levels_max, levels)
}

/// The quantities of a MARKET order (spot contract §2): LOT_SIZE's, and of these MARKET_LOT_SIZE's, if
/// there are any.
struct MarketLots {
    lots: Lots,
    market: Option<Lots>,
    /// Levels for which it took divisions to say how much is wanted of them.
    #[cfg(test)]
    divided: core::cell::Cell<u32>,
}

impl MarketLots {
    fn of(filters: &SymbolFilters) -> Self {
        let SymbolFilters { lot_min, lot_max, lot_step, .. } = *filters;
        let SymbolFilters { market_lot_min, market_lot_max, market_lot_step, .. } = *filters;
        let lots = Lots::ALL.among(lot_min, lot_max, lot_step).unwrap_or(Lots::ALL);
        Self {
            lots,
            market: lots.among(market_lot_min, market_lot_max, market_lot_step),
            #[cfg(test)]
            divided: core::cell::Cell::new(0),
        }
    }

    /// See [`quantity`].
    fn quantity(
        &self,
        (side, amount): (Side, i64),
        levels_max: u32,
        levels: impl Iterator<Item = DepthLevel>,
    ) -> Result<(i64, bool), Reject> {
        let (mut missing, mut quantity, mut is_short) = (amount, 0i64, true);
        for (seen, level) in (0..).zip(levels) {
            if seen == levels_max {
                return Err(Reject::with(RejectReason::CapacityReached, number::MAX_STEPS));
            }
            let price = level.price.0;
            let there = i64::try_from(level.quantity + level.hidden).unwrap_or(i64::MAX);
            if let Some(reached) = self.passed((missing, price), (quantity, there)) {
                (quantity, is_short) = (reached, true);
            } else {
                #[cfg(test)]
                self.divided.set(self.divided.get() + 1);
                let wanted = money::quantity_paid_for(missing, price);
                let reached =
                    quantity.checked_add(wanted.min(there)).ok_or(RejectReason::Overflow)?;
                if wanted <= there {
                    return Ok((self.cut(reached)?, false));
                }
                // What is wanted beyond this level may be less than a step, or more than the largest
                // quantity. Where prices rise less than a step stays so; where they fall it may become
                // one further down.
                let most = self.cut(quantity.saturating_add(wanted));
                is_short = most.map_or(true, |most| most > reached);
                match most {
                    Ok(most) if !is_short && (side == Side::Buy || self.is_largest(most)) => {
                        return Ok((most, false));
                    }
                    _ => {}
                }
                quantity = reached;
            }
            missing -= money::quote_rounded_up(price, there).ok_or(RejectReason::Overflow)?;
        }
        Ok((self.cut(quantity)?, is_short))
    }

    /// What `quantity` becomes by the whole of a level where surely a step more is wanted than is there, and
    /// may be had. It takes no division; several for each level would make an order that is refused in the
    /// end as dear as hundreds of others.
    fn passed(&self, (missing, price): (i64, i64), (quantity, there): (i64, i64)) -> Option<i64> {
        let Lots { most, step, .. } = self.market.unwrap_or(self.lots);
        let beyond = there.checked_add(i64::try_from(step).ok()?)?;
        let wide = |value: i64| u128::from(value.cast_unsigned());
        let is_wanted = wide(missing) * wide(UNITS_PER_WHOLE) >= wide(beyond) * wide(price);
        (is_wanted && quantity.checked_add(beyond)? <= most).then(|| quantity + there)
    }

    fn is_largest(&self, quantity: i64) -> bool {
        self.cut(i64::MAX) == Ok(quantity)
    }

    /// The largest quantity that is no more than `quantity`.
    fn cut(&self, quantity: i64) -> Result<i64, Reject> {
        self.lots.cut(quantity).ok_or(RejectReason::LotSize)?;
        let market = self.market.as_ref().and_then(|lots| lots.cut(quantity));
        market.ok_or_else(|| RejectReason::MarketLotSize.into())
    }
}

/// Quantities from `least` to `most` that are `offset` more than a multiple of `step`.
#[derive(Clone, Copy)]
struct Lots {
    least: i64,
    most: i64,
    offset: i128,
    step: i128,
}

impl Lots {
    const ALL: Self = Self { least: 1, most: i64::MAX, offset: 0, step: 1 };

    /// Those that are at least `least`, at most `most` and a whole number of steps above `least`; 0
    /// disables a rule. `None` if the steps never meet.
    fn among(self, least: i64, most: i64, step: i64) -> Option<Self> {
        let most = if most == 0 { self.most } else { self.most.min(most) };
        let step = i128::from(step.max(1));
        let (divisor, inverse) = bezout(self.step, step);
        let apart = i128::from(least) - self.offset;
        if apart % divisor != 0 {
            return None;
        }
        // The first multiple of the own step that leads from the own offset to a step of the other.
        let other = step / divisor;
        let multiple = (apart / divisor % other * inverse).rem_euclid(other);
        let offset = self.offset + self.step * multiple;
        Some(Self { least: self.least.max(least), most, offset, step: self.step * other })
    }

    /// The largest of them that is no more than `quantity`.
    fn cut(&self, quantity: i64) -> Option<i64> {
        let most = i128::from(quantity.min(self.most));
        let found = most - (most - self.offset).rem_euclid(self.step);
        i64::try_from(found).ok().filter(|&found| found >= self.least)
    }
}

/// The greatest common divisor of two numbers above zero, and what to multiply the first with to get
/// it, but for a multiple of the second.
const fn bezout(one: i128, other: i128) -> (i128, i128) {
    let (mut divisor, mut rest) = (one, other);
    let (mut factor, mut next) = (1, 0);
    while rest != 0 {
        let quotient = divisor / rest;
        (divisor, rest) = (rest, divisor - quotient * rest);
        (factor, next) = (next, factor - quotient * next);
    }
    (divisor, factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use touchline_protocol::units::Price;

    const WHOLE: i64 = UNITS_PER_WHOLE;

    /// So many levels with `there` units each, at 1 and upwards.
    fn levels(count: i64, there: i64) -> impl Iterator<Item = DepthLevel> {
        (1..=count).map(move |price| DepthLevel {
            price: Price(price * WHOLE),
            quantity: there as u128,
            hidden: 0,
            orders: 1,
        })
    }

    fn bought(
        filters: &SymbolFilters,
        amount: i64,
        levels_max: u32,
    ) -> Result<(i64, bool), Reject> {
        quantity(filters, (Side::Buy, amount * WHOLE), levels_max, levels(1000, WHOLE))
            .map(|(quantity, dry)| (quantity / WHOLE, dry))
    }

    #[test]
    fn it_looks_at_no_more_levels_than_it_may() {
        let none = SymbolFilters::default();
        // 1 + 2 + … + 1000 is 500,500.
        assert_eq!(bought(&none, 500_500, 1000), Ok((1000, false)));
        assert_eq!(bought(&none, 600_000, 1000), Ok((1000, true)));
        let deep = Reject::with(RejectReason::CapacityReached, number::MAX_STEPS);
        assert_eq!(bought(&none, 500_500, 999), Err(deep));
        assert_eq!(bought(&none, 55, 10), Ok((10, false)));
        assert_eq!(bought(&none, 56, 10), Err(deep));
    }

    #[test]
    fn a_sell_goes_on_to_prices_at_which_the_rest_is_a_step() {
        let lots = SymbolFilters { lot_step: WHOLE, ..Default::default() };
        let sold = |filters: &SymbolFilters, amount: i64, bids: &[(i64, i64)]| {
            let levels = bids.iter().map(|&(price, there)| DepthLevel {
                price: Price(price * WHOLE),
                quantity: (there * WHOLE) as u128,
                hidden: 0,
                orders: 1,
            });
            quantity(filters, (Side::Sell, amount * WHOLE), 10, levels)
                .map(|(quantity, dry)| (quantity / WHOLE, dry))
        };
        assert_eq!(sold(&lots, 190, &[(100, 1), (10, 50)]), Ok((10, false)), "100 + 9 × 10");
        assert_eq!(sold(&lots, 190, &[(100, 1), (10, 5)]), Ok((6, true)), "and it wants more");
        assert_eq!(sold(&lots, 190, &[(100, 1), (95, 1)]), Ok((1, false)), "95 is too much");
        assert_eq!(sold(&lots, 190, &[(100, 1)]), Ok((1, false)), "no step is missing");
        assert_eq!(sold(&lots, 195, &[(100, 1), (95, 1)]), Ok((2, false)));
        let most = SymbolFilters { lot_max: WHOLE, ..lots };
        assert_eq!(sold(&most, 190, &[(100, 1), (10, 50)]), Ok((1, false)), "the largest");
        let far = [(100, 2); 11];
        assert_eq!(sold(&most, 9_000, &far), Ok((1, false)), "it looks no further than it must");
    }

    /// A level that is taken whole, with more to come, costs no division.
    #[test]
    fn only_where_it_may_end_a_level_is_looked_at_closely() {
        let divided = |filters: &SymbolFilters, side, amount: i64| {
            let lots = MarketLots::of(filters);
            let found = lots.quantity((side, amount * WHOLE), 2000, levels(1000, WHOLE));
            (found.map(|(quantity, is_short)| (quantity / WHOLE, is_short)), lots.divided.get())
        };
        let none = SymbolFilters::default();
        let lots = SymbolFilters { lot_step: WHOLE, market_lot_step: WHOLE / 2, ..none };
        for side in [Side::Buy, Side::Sell] {
            for filters in [&none, &lots] {
                assert_eq!(divided(filters, side, 600_000), (Ok((1000, true)), 0));
                assert_eq!(divided(filters, side, 500_500), (Ok((1000, false)), 1));
                assert_eq!(divided(filters, side, 55), (Ok((10, false)), 1));
            }
            // The largest quantity is reached before the amount.
            let most = SymbolFilters { lot_max: 7 * WHOLE, ..lots };
            assert_eq!(divided(&most, side, 500_500), (Ok((7, false)), 1));
        }
    }

    #[test]
    fn a_quantity_obeys_both_filters() {
        let lots = SymbolFilters {
            lot_min: WHOLE,
            lot_max: 7 * WHOLE,
            lot_step: 2 * WHOLE,
            ..Default::default()
        };
        assert_eq!(bought(&lots, 10, 1000), Ok((3, false)), "four are no odd number");
        assert_eq!(bought(&lots, 500_500, 1000), Ok((7, false)), "no more than the largest");
        let small = SymbolFilters { lot_min: 3 * WHOLE, ..lots };
        assert_eq!(bought(&small, 4, 1000), Err(RejectReason::LotSize.into()));
        let market =
            SymbolFilters { market_lot_min: 5 * WHOLE, market_lot_step: 5 * WHOLE, ..lots };
        assert_eq!(bought(&market, 500_500, 1000), Ok((5, false)));
        assert_eq!(bought(&market, 14, 1000), Err(RejectReason::MarketLotSize.into()));
        // Odd numbers and even ones.
        let never = SymbolFilters { market_lot_min: 2 * WHOLE, market_lot_step: 2 * WHOLE, ..lots };
        assert_eq!(bought(&never, 500_500, 1000), Err(RejectReason::MarketLotSize.into()));
    }

    /// As [`quantity`], with divisions for each level.
    fn plainly(
        lots: &MarketLots,
        (side, amount): (Side, i64),
        levels_max: u32,
        levels: &[DepthLevel],
    ) -> Result<(i64, bool), Reject> {
        let (mut missing, mut quantity, mut is_short) = (amount, 0i64, true);
        for (seen, level) in (0..).zip(levels) {
            if seen == levels_max {
                return Err(Reject::with(RejectReason::CapacityReached, number::MAX_STEPS));
            }
            let there = i64::try_from(level.quantity + level.hidden).unwrap_or(i64::MAX);
            let wanted = money::quantity_paid_for(missing, level.price.0);
            let reached = quantity.checked_add(wanted.min(there)).ok_or(RejectReason::Overflow)?;
            if wanted <= there {
                return Ok((lots.cut(reached)?, false));
            }
            let most = lots.cut(quantity.saturating_add(wanted));
            is_short = most.map_or(true, |most| most > reached);
            if !is_short && (side == Side::Buy || lots.is_largest(most.unwrap())) {
                return most.map(|most| (most, false));
            }
            quantity = reached;
            let cost = money::quote_rounded_up(level.price.0, there);
            missing -= cost.ok_or(RejectReason::Overflow)?;
        }
        Ok((lots.cut(quantity)?, is_short))
    }

    fn sizes() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => 0..40i64,
            2 => (0..40i64).prop_map(|wholes| wholes * WHOLE),
            1 => 0..=i64::MAX,
            1 => (0..40i64).prop_map(|less| i64::MAX - less),
        ]
    }

    proptest! {
        #[test]
        fn levels_that_are_passed_are_those_that_are_taken_whole(
            lot in (sizes(), sizes(), sizes()),
            market in (sizes(), sizes(), sizes()),
            (buys, amount, levels_max) in (any::<bool>(), sizes(), 0..9u32),
            levels in prop::collection::vec((sizes(), sizes(), sizes()), 0..9),
        ) {
            let filters = SymbolFilters {
                lot_min: lot.0,
                lot_max: lot.1,
                lot_step: lot.2,
                market_lot_min: market.0,
                market_lot_max: market.1,
                market_lot_step: market.2,
                ..Default::default()
            };
            let levels: Vec<DepthLevel> = levels
                .into_iter()
                .map(|(price, quantity, hidden)| DepthLevel {
                    price: Price(price.max(1)),
                    quantity: quantity.max(1) as u128,
                    hidden: hidden as u128,
                    orders: 1,
                })
                .collect();
            let order = (if buys { Side::Buy } else { Side::Sell }, amount.max(1));
            let found = quantity(&filters, order, levels_max, levels.iter().copied());
            let lots = MarketLots::of(&filters);
            prop_assert_eq!(found, plainly(&lots, order, levels_max, &levels));
        }

        #[test]
        fn it_is_the_largest_that_both_filters_allow(
            (least, most, step) in (0..40i64, 0..300i64, 0..25i64),
            (market_least, market_most, market_step) in (0..40i64, 0..300i64, 0..25i64),
            quantity in 0..400i64,
        ) {
            let filters = SymbolFilters {
                lot_min: least,
                lot_max: most,
                lot_step: step,
                market_lot_min: market_least,
                market_lot_max: market_most,
                market_lot_step: market_step,
                ..Default::default()
            };
            let fits = |value: i64, least: i64, most: i64, step: i64| {
                value >= least.max(1)
                    && (most == 0 || value <= most)
                    && (step == 0 || (value - least) % step == 0)
            };
            let lots: Vec<i64> =
                (0..=quantity).filter(|&value| fits(value, least, most, step)).collect();
            let both = lots.iter().rfind(|&&value| fits(value, market_least, market_most, market_step));
            let expected = match (lots.last(), both) {
                (None, _) => Err(RejectReason::LotSize.into()),
                (_, None) => Err(RejectReason::MarketLotSize.into()),
                (_, Some(&largest)) => Ok(largest),
            };
            prop_assert_eq!(MarketLots::of(&filters).cut(quantity), expected);
        }
    }

    #[test]
    fn the_largest_steps_do_not_overflow() {
        let filters = SymbolFilters {
            lot_min: i64::MAX - 1,
            lot_step: i64::MAX,
            market_lot_min: i64::MAX - 2,
            market_lot_step: i64::MAX - 1,
            ..Default::default()
        };
        assert_eq!(MarketLots::of(&filters).cut(i64::MAX), Err(RejectReason::MarketLotSize.into()));
    }
}
