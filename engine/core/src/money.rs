//! Amounts of money from prices, quantities and rates. Called by settlement and by the filters.
//!
//! The rounding is [`Amount`](touchline_protocol::units::Amount)'s; here it is done with a 64-bit
//! division where the notional allows it (below about 472,000 quote units), since a 128-bit division
//! is several times slower and one fill needs up to four.

use touchline_protocol::units::UNITS_PER_WHOLE;

/// Most of one asset that the venue holds, and largest notional of one order, 10⁻⁸.
///
/// Half of the range of `i64`: a deposit that would bring more in is rejected, so no balance goes beyond it, and what
/// an order has executed in quote is at most twice as much.
pub const AMOUNT_MAX: i64 = i64::MAX / 2;

/// A notional at 10⁻¹⁶ divided by 10⁸, truncated.
#[inline(always)]
pub(crate) const fn per_whole(notional: u128) -> u128 {
    // 10⁸ is 2⁸ × 390,625.
    if notional >> 72 == 0 {
        ((notional >> 8) as u64 / 390_625) as u128
    } else {
        notional / UNITS_PER_WHOLE as u128
    }
}

/// Price × quantity, both at least zero, in 10⁻¹⁶ of the quote asset.
#[inline(always)]
pub(crate) const fn notional(price: i64, quantity: i64) -> u128 {
    price.cast_unsigned() as u128 * quantity.cast_unsigned() as u128
}

/// Quote amount of `quantity` at `price`, both above zero, truncated to 10⁻⁸. `None` beyond `i64`.
#[inline(always)]
pub(crate) fn quote_truncated(price: i64, quantity: i64) -> Option<i64> {
    i64::try_from(per_whole(notional(price, quantity))).ok()
}

/// Quote amount of `quantity` at `price`, both above zero, rounded up to 10⁻⁸. `None` beyond `i64`.
#[inline(always)]
pub(crate) fn quote_rounded_up(price: i64, quantity: i64) -> Option<i64> {
    i64::try_from(per_whole(notional(price, quantity) + UNITS_PER_WHOLE as u128 - 1)).ok()
}

/// As [`quote_rounded_up`], of an order whose notional was checked when it was placed. Of any other price
/// and quantity it is no amount.
#[inline(always)]
pub(crate) fn known_quote_rounded_up(price: i64, quantity: i64) -> i64 {
    rounded_up(notional(price, quantity))
}

/// As [`known_quote_rounded_up`], of a notional.
#[inline(always)]
pub(crate) const fn rounded_up(notional: u128) -> i64 {
    per_whole(notional.wrapping_add(UNITS_PER_WHOLE as u128 - 1)) as i64
}

/// The most that `amount` pays for at `price`, both at least zero and the price above: its quote amount rounded up
/// is no more than `amount`. At most `i64::MAX`.
pub(crate) fn quantity_paid_for(amount: i64, price: i64) -> i64 {
    let exact = i128::from(amount) * i128::from(UNITS_PER_WHOLE) / i128::from(price);
    i64::try_from(exact).unwrap_or(i64::MAX)
}

/// What is kept of a received `amount` at `rate` (10⁻⁸, 0 to 10⁸), truncated (facts §4).
#[inline(always)]
pub(crate) const fn commission(amount: i64, rate: i64) -> i64 {
    // A rate is at most one whole, so the result is at most `amount`.
    per_whole(amount.cast_unsigned() as u128 * rate.cast_unsigned() as u128) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use touchline_protocol::units::{Amount, Price, Qty, notional as exact_notional};

    proptest! {
        #[test]
        fn rounds_as_the_units_do(
            price in prop_oneof![1..=i64::MAX, 1..1_000_000_000_000i64],
            quantity in prop_oneof![1..=i64::MAX, 1..1_000_000_000_000i64],
        ) {
            let exact = exact_notional(Price(price), Qty(quantity));
            let truncated = Amount::from_notional_truncated(exact).map(|amount| amount.0);
            let raised = Amount::from_notional_rounded_up(exact).map(|amount| amount.0);
            prop_assert_eq!(quote_truncated(price, quantity), truncated);
            prop_assert_eq!(quote_rounded_up(price, quantity), raised);
            if let Some(raised) = raised {
                prop_assert_eq!(known_quote_rounded_up(price, quantity), raised);
            }
        }

        #[test]
        fn commission_is_at_most_the_amount(amount in 0..=i64::MAX, rate in 0..=UNITS_PER_WHOLE) {
            let exact = exact_notional(Price(amount), Qty(rate));
            let truncated = Amount::from_notional_truncated(exact).unwrap().0;
            prop_assert_eq!(commission(amount, rate), truncated);
            prop_assert!(commission(amount, rate) <= amount);
        }
    }

    #[test]
    fn the_switch_to_wide_division_is_exact() {
        for notional in [(1u128 << 72) - 1, 1 << 72, (1 << 72) + 1, u128::from(u64::MAX)] {
            assert_eq!(per_whole(notional), notional / 100_000_000);
        }
    }
}
