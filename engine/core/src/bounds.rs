//! The filters of a symbol as the bounds that a plain order is held against, reckoned out between orders, so
//! that each order costs a few comparisons. Kept with each symbol; asked by the short way of placement.
//!
//! Which filter forbids an order, and so why it is refused, is not known here: that is
//! [`filters`](crate::filters)' to say. Bounds follow from the filters, the average price and the last one,
//! and are no state.

use crate::averages::NS_PER_MINUTE;
use crate::money::{AMOUNT_MAX, per_whole};
use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::units::{Price, UNITS_PER_WHOLE};

/// Numbers that are whole steps beyond an origin, from the first that is allowed to the last. Whether a
/// number is one of them is told without a division.
#[derive(Clone, Copy, Debug)]
struct Steps {
    origin: i64,
    /// The step is this power of two, and an odd number whose product with `inverse` is 1 modulo 2⁶⁴.
    twos: u32,
    inverse: u64,
    /// How many steps the first number is beyond the origin, and how many there may be more.
    first: u64,
    more: u64,
}

impl Steps {
    /// Stands for no number.
    const NONE: Self = Self { origin: 0, twos: 0, inverse: 1, first: 0, more: 0 };

    /// From an origin and a step, both at least 0, the numbers from `least`, at or beyond the origin, to
    /// `most`; `None` if there are none. Without a step every number is one.
    fn between((origin, step): (i64, i64), (least, most): (i64, i64)) -> Option<Self> {
        let step = step.max(1).cast_unsigned();
        let beyond = |value: i64| u64::try_from(value.checked_sub(origin)?).ok();
        let first = beyond(least)?.div_ceil(step);
        let more = (beyond(most)? / step).checked_sub(first)?;
        let twos = step.trailing_zeros();
        let odd = step >> twos;
        // An odd number is its own inverse modulo 8, and each round doubles the bits that are right.
        let mut inverse = odd;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        Some(Self { origin, twos, inverse, first, more })
    }

    /// True for one of the numbers. Not to be asked of a number below 0.
    ///
    /// Multiplication by an odd number is a bijection modulo 2⁶⁴, and so is a rotation. They turn each multiple
    /// of the step into how many steps it is; so what is none, or lies in front of the origin and thus is as good
    /// as beyond 2⁶³, is turned into more than the last number is.
    #[inline(always)]
    const fn have(&self, value: i64) -> bool {
        let beyond = value.wrapping_sub(self.origin).cast_unsigned();
        let steps = beyond.wrapping_mul(self.inverse).rotate_right(self.twos);
        steps.wrapping_sub(self.first) <= self.more
    }
}

/// What the price, the quantity and the notional of a plain order may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// They hold from here on, ns, and for so long; 0: not any more, or not yet, or never.
    from_ns: u64,
    for_ns: u64,
    prices: Steps,
    lots: Steps,
    /// The least notional, 10⁻¹⁶, and how much more it may be.
    notional_least: u128,
    notional_more: u128,
    /// By PERCENT_PRICE: the least price, and how much more it may be.
    percent_least: u64,
    percent_more: u64,
    /// Nothing is allowed at all.
    is_shut: bool,
}

impl Bounds {
    /// Those of filters, which hold once they are [made anew](Self::renew).
    pub(crate) fn of(filters: &SymbolFilters) -> Self {
        let most = |bound: i64| if bound == 0 { i64::MAX } else { bound };
        let prices = Steps::between(
            (filters.price_min, filters.tick_size),
            (filters.price_min.max(1), most(filters.price_max)),
        );
        let lots = Steps::between(
            (filters.lot_min, filters.lot_step),
            (filters.lot_min.max(1), most(filters.lot_max)),
        );
        let whole = |amount: i64| u128::from(amount.cast_unsigned()) * UNITS_PER_WHOLE as u128;
        let notional_least = whole(filters.min_notional.max(1));
        let notional_more = whole(AMOUNT_MAX).checked_sub(notional_least);
        Self {
            from_ns: 0,
            for_ns: 0,
            prices: prices.unwrap_or(Steps::NONE),
            lots: lots.unwrap_or(Steps::NONE),
            notional_least,
            notional_more: notional_more.unwrap_or(0),
            percent_least: 0,
            percent_more: 0,
            is_shut: prices.is_none() || lots.is_none() || notional_more.is_none(),
        }
    }

    /// True if they are those of a time.
    #[inline(always)]
    pub(crate) const fn hold(&self, time_ns: u64) -> bool {
        time_ns.wrapping_sub(self.from_ns) < self.for_ns
    }

    /// A trade has changed the average price.
    #[inline(always)]
    pub(crate) const fn forget_average(&mut self) {
        // Where no average matters they hold for ever.
        if self.for_ns == NS_PER_MINUTE {
            self.for_ns = 0;
        }
    }

    /// Makes them those of the minute that a time lies in. `average`: what PERCENT_PRICE goes by, if it applies.
    /// Where nothing is allowed at all they do not hold.
    #[inline(always)]
    pub(crate) fn renew(&mut self, filters: &SymbolFilters, average: Option<Price>, time_ns: u64) {
        let (least, most) = match average {
            None => (0, u128::MAX),
            Some(average) => percent_prices(filters, average),
        };
        // All prices are below.
        let [least, most] = [least, most].map(|bound| u64::try_from(bound).unwrap_or(u64::MAX));
        self.for_ns = 0;
        if self.is_shut || least > most {
            return;
        }
        (self.percent_least, self.percent_more) = (least, most - least);
        (self.from_ns, self.for_ns) = if has_percent_price(filters) {
            (time_ns - time_ns % NS_PER_MINUTE, NS_PER_MINUTE)
        } else {
            (0, u64::MAX)
        };
    }

    /// True for a price, a quantity, and the product of both that a LIMIT order may have.
    #[inline(always)]
    pub(crate) const fn allow(&self, price: i64, quantity: i64, notional: u128) -> bool {
        (price | quantity) >= 0
            && self.prices.have(price)
            && self.lots.have(quantity)
            && price.cast_unsigned().wrapping_sub(self.percent_least) <= self.percent_more
            && notional.wrapping_sub(self.notional_least) <= self.notional_more
    }
}

/// True if PERCENT_PRICE bounds prices.
pub(crate) const fn has_percent_price(filters: &SymbolFilters) -> bool {
    (filters.percent_price_up | filters.percent_price_down) != 0
}

/// The least and the highest price that PERCENT_PRICE allows; any number beyond all prices stands for none.
#[inline(always)]
fn percent_prices(filters: &SymbolFilters, average: Price) -> (u128, u128) {
    let bound = |multiplier: i64| {
        u128::from(average.0.cast_unsigned()) * u128::from(multiplier.cast_unsigned())
    };
    let least = per_whole(bound(filters.percent_price_down) + UNITS_PER_WHOLE as u128 - 1);
    let most = match filters.percent_price_up {
        0 => u128::MAX,
        up => per_whole(bound(up)),
    };
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::{self, OrderKind};
    use proptest::prelude::*;
    use touchline_protocol::message::command::NewOrder;
    use touchline_protocol::message::enums::{OrderType, TimeInForce};

    /// Small numbers, so that bounds are met, and any.
    fn number() -> impl Strategy<Value = i64> {
        let small = 0..50i64;
        let wholes = (0..50i64).prop_map(|wholes| wholes * UNITS_PER_WHOLE / 4);
        prop_oneof![
            Just(0),
            small.clone(),
            wholes,
            any::<i64>().prop_map(|any| any & i64::MAX),
            small.prop_map(|less| i64::MAX - less),
        ]
    }

    /// What an order says: a number of any sign, and what lies near a bound.
    fn asked() -> impl Strategy<Value = (bool, i64)> {
        (any::<bool>(), prop_oneof![number(), any::<i64>(), -3..3i64])
    }

    prop_compose! {
        fn any_filters()(numbers in prop::array::uniform9(number())) -> SymbolFilters {
            let [price_min, price_more, tick_size, lot_min, lot_more, lot_step, up, down, least] = numbers;
            let most = |least: i64, more| if more == 0 { 0 } else { least.saturating_add(more) };
            SymbolFilters {
                price_min,
                price_max: most(price_min, price_more),
                tick_size,
                lot_min,
                lot_max: most(lot_min, lot_more),
                lot_step,
                percent_price_up: up,
                percent_price_down: down,
                min_notional: least,
                ..Default::default()
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// What bounds allow is what no filter forbids.
        #[test]
        fn bounds_say_what_the_filters_do(
            filters in any_filters(),
            average in prop::option::of(number().prop_map(|price| Price(price.max(1)))),
            (near_price, price) in asked(),
            (near_lot, quantity) in asked(),
            ticks in 0..4i64,
        ) {
            let average = average.filter(|_| has_percent_price(&filters));
            let near = |is_near: bool, value: i64, least: i64, step: i64| {
                if is_near { least.saturating_add(step.saturating_mul(ticks)).saturating_add(value % 2) } else { value }
            };
            let price = near(near_price, price, filters.price_min, filters.tick_size);
            let quantity = near(near_lot, quantity, filters.lot_min, filters.lot_step);
            let message = NewOrder { price, quantity, ..Default::default() };
            let kind = OrderKind {
                order_type: OrderType::Limit,
                time_in_force: TimeInForce::Gtc,
                ..OrderKind::LIMIT_BUY
            };
            let is_allowed = filters::check_order(&filters, kind, &message).is_ok()
                && average.is_none_or(|average| {
                    filters::check_percent_price(&filters, price, average).is_ok()
                });
            let mut bounds = Bounds::of(&filters);
            let time_ns = 7 * NS_PER_MINUTE + 5;
            bounds.renew(&filters, average, time_ns);
            let notional = crate::money::notional(price, quantity);
            prop_assert_eq!(bounds.hold(time_ns) && bounds.allow(price, quantity, notional), is_allowed);
        }
    }

    #[test]
    fn they_hold_for_a_minute_or_until_a_trade() {
        let filters = SymbolFilters { percent_price_up: UNITS_PER_WHOLE, ..Default::default() };
        let (begin, end) = (7 * NS_PER_MINUTE, 8 * NS_PER_MINUTE);
        let mut bounds = Bounds::of(&filters);
        assert!(!bounds.hold(begin));
        bounds.renew(&filters, None, begin + 5);
        let holds = [begin - 1, begin, end - 1, end].map(|time_ns| bounds.hold(time_ns));
        assert_eq!(holds, [false, true, true, false]);
        bounds.forget_average();
        assert!(!bounds.hold(begin));
        let mut of_none = Bounds::of(&SymbolFilters::default());
        of_none.renew(&SymbolFilters::default(), None, begin);
        of_none.forget_average();
        assert!(of_none.hold(0) && of_none.hold(end));
    }
}
