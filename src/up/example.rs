//! The symbol that the ready block shows, and an order to try it with. Called by [`super::ready`].

use crate::names::{Listed, Names};
use touchline_protocol::decimal::DecimalText;
use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::message::enums::OrderType;

/// Units of 10⁻⁸ in one whole.
const WHOLE: i64 = 100_000_000;

/// The demo venue's symbol, and an order near to what its namesake has cost.
const DEMO: (&str, Figures) = ("BTCUSDT", Figures { price: 20_000 * WHOLE, quantity: WHOLE / 100 });

/// A symbol of the venue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Example {
    /// Its name.
    pub(super) symbol: String,
    /// Of a LIMIT order to buy; none where no simple one would be taken.
    pub(super) order: Option<Figures>,
}

/// Price and quantity of an order, in 10⁻⁸ units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Figures {
    price: i64,
    quantity: i64,
}

impl Example {
    /// The first symbol that is traded, or else the first one.
    pub(super) fn of(names: &Names) -> Option<Self> {
        let is_traded = |symbol: &Listed<'_>| symbol.is_trading;
        let found = names.listed().find(is_traded).or_else(|| names.listed().next())?;
        let order = found.is_trading.then(|| Figures::of(&found)).flatten();
        Some(Self { symbol: found.name.to_owned(), order })
    }
}

impl Figures {
    /// The least that the symbol takes: it rests below all others, and costs little.
    fn of(symbol: &Listed<'_>) -> Option<Self> {
        let filters = &symbol.definition.filters;
        let takes_limit = OrderType::Limit.is_in(symbol.definition.order_types);
        // What an average price permits moves, and what a position does is up to what the account has.
        let has_average = filters.percent_price_up != 0 || filters.percent_price_down != 0;
        if !takes_limit || has_average || filters.max_position != 0 {
            return None;
        }
        let (name, figures) = DEMO;
        let demo = (name == symbol.name).then_some(figures);
        [demo, Self::least(filters)].into_iter().flatten().find(|figures| figures.pass(filters))
    }

    /// The first price of the grid, and the least quantity that is enough at it.
    fn least(filters: &SymbolFilters) -> Option<Self> {
        let SymbolFilters { price_min, tick_size, lot_min, lot_step, .. } = *filters;
        let price = first(price_min, tick_size);
        let (least, step) = (first(lot_min, lot_step), first(lot_step, 0));
        let wanted = (notional_min(filters) - 1) / i128::from(price) + 1;
        let steps = (wanted - i128::from(least) + i128::from(step) - 1).div_euclid(step.into());
        let quantity = i128::from(least) + steps.max(0) * i128::from(step);
        Some(Self { price, quantity: quantity.try_into().ok()? })
    }

    /// Whether the symbol's filters let it pass.
    fn pass(&self, filters: &SymbolFilters) -> bool {
        let Self { price, quantity } = *self;
        let SymbolFilters { price_min, price_max, tick_size, .. } = *filters;
        let SymbolFilters { lot_min, lot_max, lot_step, .. } = *filters;
        is_in_grid(price, price_min, price_max, tick_size)
            && is_in_grid(quantity, lot_min, lot_max, lot_step)
            && i128::from(price) * i128::from(quantity) >= notional_min(filters)
    }

    /// As a parameter.
    pub(super) fn price(&self) -> String {
        text(self.price)
    }

    /// As a parameter.
    pub(super) fn quantity(&self) -> String {
        text(self.quantity)
    }
}

/// The first value above 0 that a filter has in its grid; a whole one where it has none, which is within every
/// asset's precision.
const fn first(least: i64, step: i64) -> i64 {
    match (least, step) {
        (1.., _) => least,
        (_, 1..) => step,
        _ => WHOLE,
    }
}

/// What price times quantity is at the least, in 10⁻¹⁶: MIN_NOTIONAL, and one unit.
fn notional_min(filters: &SymbolFilters) -> i128 {
    i128::from(filters.min_notional.max(1)) * i128::from(WHOLE)
}

/// Values of 0 are no rule (spot contract §2 Filters).
const fn is_in_grid(value: i64, least: i64, most: i64, step: i64) -> bool {
    value >= least && (most == 0 || value <= most) && (step == 0 || (value - least) % step == 0)
}

/// As short as it can be: an asset's precision may be less than eight.
fn text(units: i64) -> String {
    DecimalText::new(units).trimmed().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_protocol::message::command::ChangeSymbol;

    /// Price and quantity of the order for a symbol that takes these types.
    fn shown(name: &str, order_types: u8, filters: SymbolFilters) -> Option<(String, String)> {
        let definition = ChangeSymbol { order_types, filters, ..Default::default() };
        let figures = Figures::of(&Listed { name, definition: &definition, is_trading: true });
        figures.map(|figures| (figures.price(), figures.quantity()))
    }

    #[test]
    fn the_figures_pass_the_filters_or_are_not_shown() {
        let limit = 1 << OrderType::Limit.to_wire();
        let none = SymbolFilters::default();
        let all = SymbolFilters {
            price_min: WHOLE / 100,
            price_max: 1_000_000 * WHOLE,
            tick_size: WHOLE / 100,
            lot_min: WHOLE / 100_000,
            lot_max: 9000 * WHOLE,
            lot_step: WHOLE / 100_000,
            min_notional: 10 * WHOLE,
            ..none
        };
        let coarse =
            SymbolFilters { tick_size: WHOLE / 2, lot_min: 3 * WHOLE, lot_step: 2 * WHOLE, ..none };
        for (name, filters, figures) in [
            ("BTCUSDT", all, Some(("20000", "0.01"))),
            ("BTCUSDT", SymbolFilters { price_max: 19_999 * WHOLE, ..all }, Some(("0.01", "1000"))),
            ("OTHER", all, Some(("0.01", "1000"))),
            ("OTHER", none, Some(("1", "1"))),
            ("OTHER", SymbolFilters { min_notional: 2 * WHOLE + 1, ..none }, Some(("1", "3"))),
            ("OTHER", coarse, Some(("0.5", "3"))),
            ("OTHER", SymbolFilters { min_notional: 4 * WHOLE, ..coarse }, Some(("0.5", "9"))),
            ("OTHER", SymbolFilters { price_min: 1, ..none }, Some(("0.00000001", "1"))),
            ("OTHER", SymbolFilters { price_max: 1, ..none }, None),
            ("OTHER", SymbolFilters { lot_max: 2 * WHOLE, ..coarse }, None),
            ("OTHER", SymbolFilters { price_min: 1, min_notional: i64::MAX, ..none }, None),
            ("OTHER", SymbolFilters { percent_price_up: WHOLE, ..none }, None),
            ("OTHER", SymbolFilters { max_position: WHOLE, ..none }, None),
        ] {
            let expected = figures.map(|(price, quantity)| (price.into(), quantity.into()));
            assert_eq!(shown(name, limit, filters), expected, "{name} {filters:?}");
        }
        assert_eq!(shown("OTHER", 1 << OrderType::Market.to_wire(), none), None);
    }
}
