//! Decimal texts of the contract as exact counts of 10⁻⁸, and the commission rule. Called by every
//! test that computes money. Written apart from the product's own decimals on purpose.

/// Units of 10⁻⁸ in one whole.
pub(crate) const WHOLE: i128 = 100_000_000;

/// The demo venue's commission: one thousandth, for maker and taker alike.
const COMMISSION_DIVISOR: i128 = 1000;

/// Reads a decimal string of the contract: digits, a point, exactly eight digits.
///
/// Panics on any other form, because no other form may ever be sent (spot contract §1, facts §3).
pub(crate) fn units(text: &str) -> i128 {
    let Some((whole, fraction)) = text.split_once('.') else {
        panic!("decimal {text:?} has no point")
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    assert!(
        !whole.is_empty() && digits(whole) && fraction.len() == 8 && digits(fraction),
        "decimal {text:?} is not digits, a point and eight digits"
    );
    assert!(whole.len() == 1 || !whole.starts_with('0'), "decimal {text:?} has a leading zero");
    format!("{whole}{fraction}").parse().expect("digits that fit")
}

/// The decimal string of a count of 10⁻⁸.
pub(crate) fn decimal(units: i128) -> String {
    assert!(units >= 0, "{units} is negative");
    format!("{}.{:08}", units / WHOLE, units % WHOLE)
}

/// What a fill moves from buyer to seller: price times quantity, cut to 10⁻⁸.
pub(crate) fn quote_amount(price: i128, quantity: i128) -> i128 {
    price * quantity / WHOLE
}

/// What a resting BUY locks: price times quantity, raised to 10⁻⁸.
pub(crate) fn quote_lock(price: i128, quantity: i128) -> i128 {
    (price * quantity + WHOLE - 1) / WHOLE
}

/// Commission on what a side receives, cut to 10⁻⁸ (facts §4).
pub(crate) fn commission(received: i128) -> i128 {
    received / COMMISSION_DIVISOR
}
