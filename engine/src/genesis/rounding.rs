//! Symbols whose prices times quantities need more decimals than an amount has: they are allowed, and told of.
//! Called by [`super::doubts`].

use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::units::UNITS_PER_WHOLE;

/// What is to be told of a symbol if a price times a quantity that its filters allow may be no multiple of 10⁻⁸;
/// `None` of all others. A fill's quote amount is then cut to that, and to nothing where it is less.
pub(super) fn finer_than_amounts(name: &str, filters: &SymbolFilters) -> Option<String> {
    let price = grid(filters.price_min, filters.tick_size);
    let quantity = grid(filters.lot_min, filters.lot_step);
    let is_exact = (price * quantity).is_multiple_of(UNITS_PER_WHOLE.unsigned_abs().into());
    (!is_exact).then(|| {
        format!(
            "symbol {name}: tick_size times lot_step needs more than 8 decimals: what a fill is worth is cut to these"
        )
    })
}

/// The greatest number of which all values are multiples that lie a multiple of `step` above `least` (spot contract
/// §2 PRICE_FILTER, LOT_SIZE). A step of 0 is no rule: then it is the unit, 10⁻⁸.
pub(super) fn grid(least: i64, step: i64) -> u128 {
    if step == 0 {
        return 1;
    }
    let (mut greater, mut less) = (step.unsigned_abs(), least.unsigned_abs());
    while less != 0 {
        (greater, less) = (less, greater % less);
    }
    greater.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: i64 = 100_000_000;

    fn is_told([price_min, tick_size, lot_min, lot_step]: [i64; 4]) -> bool {
        let filters =
            SymbolFilters { price_min, tick_size, lot_min, lot_step, ..Default::default() };
        finer_than_amounts("AB", &filters).is_some_and(|told| told.contains("symbol AB"))
    }

    #[test]
    fn only_what_needs_more_than_eight_decimals_is_told() {
        // 0.0001 times 0.0001 is 10⁻⁸.
        let step = ONE / 10_000;
        assert!(!is_told([step, step, step, step]));
        assert!(!is_told([0, step, 0, step]));
        assert!(is_told([0, step, 0, step / 10]));
        assert!(is_told([0, step / 10, 0, step]));
        assert!(!is_told([0, 1, 0, ONE]));
        assert!(!is_told([0, ONE, 0, 1]));
        // Coarse, and no multiple: 0.00000003 times 0.5.
        assert!(is_told([0, 3, 0, ONE / 2]));
        // Steps count from the least value, which lies between theirs.
        assert!(is_told([step / 2, step, 0, step]));
        assert!(is_told([0, step, step / 2, step]));
    }

    #[test]
    fn a_rule_that_is_off_leaves_every_unit() {
        assert!(is_told([0, 0, 0, ONE / 10]));
        assert!(is_told([ONE, 0, ONE, 0]));
        assert!(!is_told([0, 0, 0, ONE]));
        assert!(!is_told([i64::MAX, i64::MAX, ONE, ONE]));
    }
}
