//! What of a symbol, or of the venue's limits, can hardly be meant, but is allowed, as venues were made with it. Told of
//! by the engine's starts, of symbols by the first one, by `touchline admin` and by `touchline doctor`.

use super::rounding::{finer_than_amounts, grid};
use super::{define_symbol, trimmed};
use crate::config::{AssetSection, SymbolSection};
use touchline_core::limits::sessions_kept_back;
use touchline_protocol::message::command::{SYMBOL_OCO, SYMBOL_QUOTE_QUANTITY, SymbolFilters};
use touchline_protocol::message::enums::OrderType;
use touchline_protocol::units::{AssetId, KeyId};

/// One thing that is to be told of a symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Doubt {
    /// What, with the symbol and the value.
    pub found: String,
    /// What would be without it.
    pub advice: String,
}

/// An asset of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AssetFacts<'name> {
    /// Its name.
    pub name: &'name str,
    /// Decimal places that orders over REST may have.
    pub precision: u8,
}

/// A symbol as it is, or is to be.
#[derive(Clone, Copy, Debug)]
pub struct SymbolFacts<'name> {
    /// Its name.
    pub name: &'name str,
    /// Bit n is set when it takes the order type with wire number n.
    pub order_types: u8,
    /// `SYMBOL_*` bits.
    pub flags: u8,
    /// Its filters.
    pub filters: &'name SymbolFilters,
    /// Asset of quantities.
    pub base: AssetFacts<'name>,
    /// Asset of prices.
    pub quote: AssetFacts<'name>,
}

/// What is to be told of a symbol.
#[must_use]
pub fn doubts(symbol: &SymbolFacts<'_>) -> Vec<Doubt> {
    let mut doubts = useless_flags(symbol);
    doubts.extend(takes_nothing(symbol));
    if let Some(found) = finer_than_amounts(symbol.name, symbol.filters) {
        let advice = "tick_size times lot_step a multiple of 0.00000001, and price_min and lot_min of their steps";
        doubts.push(Doubt { found, advice: advice.to_owned() });
    }
    doubts.extend(finer_than_assets(symbol));
    doubts
}

/// The same of an entry of `[[symbols]]`, beside those of `[[assets]]`. One that is malformed is told of elsewhere.
#[must_use]
pub fn doubts_of_section(symbol: &SymbolSection, assets: &[AssetSection]) -> Vec<Doubt> {
    let facts = |name: &str| {
        let asset = assets.iter().find(|asset| asset.name == name)?;
        Some(AssetFacts { name: &asset.name, precision: asset.precision })
    };
    let (Some(base), Some(quote)) = (facts(&symbol.base), facts(&symbol.quote)) else {
        return Vec::new();
    };
    let Ok(defined) = define_symbol(symbol, |_| Some(AssetId(0))) else { return Vec::new() };
    let (order_types, flags) = (defined.order_types, defined.flags);
    let (name, filters) = (&*symbol.name, &defined.filters);
    doubts(&SymbolFacts { name, order_types, flags, filters, base, quote })
}

/// Session names of the engine's own user: an adapter's two, and that of `touchline admin`.
const OWN_NAMES: u32 = 3;

/// What is to be told of `limits.sessions`.
#[must_use]
pub fn doubt_of_sessions(sessions: u32) -> Option<Doubt> {
    let kept = sessions_kept_back(sessions, KeyId(1));
    (kept < OWN_NAMES).then(|| Doubt {
        found: format!(
            "limits.sessions = {sessions} keeps {kept} for the engine's own user: clients that log on first can take \
             the names that an adapter and `touchline admin` need"
        ),
        advice: format!("{} at the least", 4 * OWN_NAMES),
    })
}

/// What a symbol says that it takes, while it does not take the order types that this is made of.
fn useless_flags(symbol: &SymbolFacts<'_>) -> Vec<Doubt> {
    let takes = |kind: OrderType| kind.is_in(symbol.order_types);
    let takes_stop = takes(OrderType::StopLoss) || takes(OrderType::StopLossLimit);
    let has = |flag: u8| symbol.flags & flag != 0;
    let flags = [
        (
            has(SYMBOL_OCO) && !(takes(OrderType::LimitMaker) && takes_stop),
            "oco",
            "LIMIT_MAKER and STOP_LOSS or STOP_LOSS_LIMIT",
        ),
        (has(SYMBOL_QUOTE_QUANTITY) && !takes(OrderType::Market), "quote_quantity", "MARKET"),
    ];
    let useless = flags.into_iter().filter(|(is_useless, ..)| *is_useless);
    let told = |(_, key, types)| Doubt {
        found: format!("symbol {} says {key} = true, and all such orders are refused", symbol.name),
        advice: format!("its order_types need {types} for that"),
    };
    useless.map(told).collect()
}

/// Keys by which a symbol refuses all orders, or all that have a price. Whoever wants no orders for now sets its status.
fn takes_nothing(symbol: &SymbolFacts<'_>) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if symbol.order_types == 0 {
        let found = format!("symbol {}: order_types = []: every order is refused", symbol.name);
        doubts.push(Doubt { found, advice: "the order types that it is to take".to_owned() });
    }
    // Either is off if it is 0.
    let SymbolFilters { percent_price_up: up, percent_price_down: down, .. } = *symbol.filters;
    if up != 0 && up < down {
        let (name, up, down) = (symbol.name, trimmed(up), trimmed(down));
        let found = format!(
            "symbol {name}: percent_price_up {up} is less than percent_price_down {down}: once there is an average price, \
             every price is refused"
        );
        let advice = "percent_price_up above 1, and percent_price_down below it".to_owned();
        doubts.push(Doubt { found, advice });
    }
    doubts
}

/// Steps that a symbol states and that orders over REST cannot keep, as these have no more decimals than an asset's
/// precision allows. A rule that is off states none: then the precision is the step.
fn finer_than_assets(symbol: &SymbolFacts<'_>) -> Vec<Doubt> {
    let filters = symbol.filters;
    let steps = [
        ("tick_size", filters.tick_size, ("price_min", filters.price_min), symbol.quote),
        ("lot_step", filters.lot_step, ("lot_min", filters.lot_min), symbol.base),
        (
            "market_lot_step",
            filters.market_lot_step,
            ("market_lot_min", filters.market_lot_min),
            symbol.base,
        ),
    ];
    let finer = steps.into_iter().filter_map(|(key, step, (least_key, least), asset)| {
        let unit = 10_u128.pow(8_u32.saturating_sub(asset.precision.into()));
        if step == 0 || grid(least, step).is_multiple_of(unit) {
            return None;
        }
        // Steps count from the least value.
        let is_step = !u128::from(step.unsigned_abs()).is_multiple_of(unit);
        let (key, value) = if is_step { (key, step) } else { (least_key, least) };
        let (value, name, precision) = (trimmed(value), asset.name, asset.precision);
        let unit = trimmed(i64::try_from(unit).unwrap_or(i64::MAX));
        let what = if key.starts_with("tick") || key.starts_with("price") {
            "such prices cannot be sent over REST"
        } else {
            "such quantities cannot be sent over REST, where what is left of them can then not be sold"
        };
        Some(Doubt {
            found: format!(
                "symbol {}: {key} {value} has more decimals than asset {name} with precision {precision}: {what}",
                symbol.name
            ),
            advice: format!("{key} a multiple of {unit}, or a precision of {name} that covers it"),
        })
    });
    finer.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EngineConfig;

    /// What is told of a symbol with these keys, between assets of these precisions.
    fn told(precisions: [u8; 2], keys: &str) -> Vec<String> {
        let [base, quote] = precisions;
        let text = format!(
            "[[assets]]\nname = \"A\"\nprecision = {base}\n[[assets]]\nname = \"B\"\nprecision = {quote}\n\
             [[symbols]]\nname = \"AB\"\nbase = \"A\"\nquote = \"B\"\n{keys}"
        );
        let config: EngineConfig = toml::from_str(&text).unwrap();
        let doubts = doubts_of_section(&config.symbols[0], &config.assets).into_iter();
        doubts.map(|doubt| format!("{} -> {}", doubt.found, doubt.advice)).collect()
    }

    #[test]
    fn a_step_that_an_assets_precision_cannot_show_is_told_with_its_value() {
        const COARSE: &str = "tick_size = \"0.01\"\nlot_step = \"0.001\"\nlot_min = \"0.001\"\n";
        for (precisions, keys, key) in [
            ([8, 8], "", None),
            ([3, 2], "", None),
            ([2, 2], "", Some("lot_step 0.001 has more decimals than asset A with precision 2: ")),
            ([3, 1], "", Some("tick_size 0.01 has more decimals than asset B with precision 1: ")),
            ([0, 2], "", Some("lot_step 0.001")),
            ([3, 2], "price_min = \"0.005\"\n", Some("price_min 0.005 has more decimals")),
            ([3, 2], "market_lot_step = \"0.0001\"\n", Some("market_lot_step 0.0001")),
        ] {
            let told = told(precisions, &format!("{COARSE}{keys}"));
            assert_eq!(told.len(), usize::from(key.is_some()), "{precisions:?} {keys}: {told:?}");
            for (told, key) in told.iter().zip(key) {
                assert!(told.starts_with(&format!("symbol AB: {key}")), "{told}");
            }
        }
        let off = told([2, 2], "tick_size = \"1\"\nlot_min = \"0.001\"\n");
        assert!(!off.iter().any(|told| told.contains("precision")), "{off:?}");
    }

    #[test]
    fn names_for_fewer_clients_than_could_take_those_of_adapter_and_operator_are_told() {
        let told = doubt_of_sessions(11).unwrap();
        assert!(told.found.starts_with("limits.sessions = 11 keeps 2 "), "{}", told.found);
        assert_eq!(told.advice, "12 at the least");
        for enough in [12, 256, u32::MAX] {
            assert_eq!(doubt_of_sessions(enough), None);
        }
    }

    #[test]
    fn a_symbol_that_can_take_nothing_is_told() {
        const STEPS: &str = "tick_size = \"0.0001\"\nlot_step = \"0.0001\"\n";
        const PERCENT: &str = "percent_price_up 0.5 is less than percent_price_down 2: ";
        for (keys, expected) in [
            ("percent_price_up = \"0.5\"\npercent_price_down = \"2\"", Some(PERCENT)),
            ("percent_price_up = \"2\"\npercent_price_down = \"0.5\"", None),
            ("percent_price_up = \"1\"\npercent_price_down = \"1\"", None),
            // Each may be off.
            ("percent_price_up = \"0.5\"", None),
            ("percent_price_down = \"2\"", None),
            ("order_types = []", Some("order_types = []: ")),
            ("order_types = [\"MARKET\"]", None),
        ] {
            let told = told([8, 8], &format!("{STEPS}{keys}"));
            assert_eq!(told.len(), usize::from(expected.is_some()), "{keys}: {told:?}");
            for (told, expected) in told.iter().zip(expected) {
                assert!(told.starts_with(&format!("symbol AB: {expected}")), "{told}");
            }
        }
    }

    #[test]
    fn what_a_symbol_takes_in_vain_is_told() {
        for (keys, expected) in [
            ("", &[][..]),
            ("quote_quantity = true", &[]),
            ("oco = true", &["oco"]),
            ("oco = true\norder_types = [\"LIMIT_MAKER\", \"LIMIT\"]", &["oco"]),
            ("oco = true\norder_types = [\"STOP_LOSS_LIMIT\", \"STOP_LOSS\"]", &["oco"]),
            ("oco = true\norder_types = [\"LIMIT_MAKER\", \"STOP_LOSS\"]", &[]),
            ("oco = true\norder_types = [\"LIMIT_MAKER\", \"STOP_LOSS_LIMIT\"]", &[]),
            (
                "oco = true\nquote_quantity = true\norder_types = [\"LIMIT\"]",
                &["oco", "quote_quantity"],
            ),
        ] {
            let told =
                told([8, 8], &format!("tick_size = \"0.0001\"\nlot_step = \"0.0001\"\n{keys}"));
            assert_eq!(told.len(), expected.len(), "{keys}: {told:?}");
            for (told, key) in told.iter().zip(expected) {
                assert!(told.starts_with(&format!("symbol AB says {key} = true")), "{told}");
            }
        }
    }
}
