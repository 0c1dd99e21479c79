//! What form the value of a parameter has, by the parameter's name. The intake refuses other values before
//! anything is found missing (facts §1.4); `document` describes the same forms.

use crate::parameters::pattern::{self, Form};
use crate::route::{DEPTH_LIMITS, DEPTH_LIMITS_LEGAL, Weight};

/// The form of a parameter of an operation of this weight. `None` for names that have a list, an error and a
/// place in the order of checks of their own, and for what may be any text.
pub(super) fn of(weight: Weight, name: &str) -> Option<Form> {
    Some(match name {
        "side"
        | "type"
        | "timeInForce"
        | "stopLimitTimeInForce"
        | "newOrderRespType"
        | "interval"
        | "listenKey"
        | "signature" => return None,
        "symbol" => (pattern::SYMBOL, pattern::is_symbol),
        "symbols" => (pattern::SYMBOLS, pattern::is_symbols),
        "limit" if weight == Weight::ByDepthLimit => (DEPTH_LIMITS_LEGAL, is_depth_limit),
        _ if name.ends_with("ClientOrderId") => (pattern::CLIENT_ID, pattern::is_client_id),
        _ if is_decimal(name) => (pattern::DECIMAL, pattern::is_decimal),
        _ => (pattern::LONG, pattern::is_long),
    })
}

/// Prices and quantities.
fn is_decimal(name: &str) -> bool {
    name == "quantity" || name == "price" || name.ends_with("Price") || name.ends_with("Qty")
}

fn is_depth_limit(text: &str) -> bool {
    DEPTH_LIMITS.iter().any(|(limit, _)| *limit == text)
}
